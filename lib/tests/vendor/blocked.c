// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * With a real CUDA device: a thread copies to pageable memory in a stream that
 * waits, as applications do behind a collective. The copy does not return before
 * the stream goes on. Which functions of the driver wait for it in other threads?
 * The collective must not call those. Prints TAP and a table; ends with 77 where
 * there is no device.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda.h"

#define LENGTH	(1u << 20)
#define GIVE_UP	300		/* ms */
#define STRING_(x)	#x
#define STRING(x)	STRING_(x)
#define CALL(name, ...) \
	(((__typeof__(&name))(uintptr_t)dlsym(cuda, STRING(name)))(__VA_ARGS__))

static void *cuda;
static CUcontext context;
static CUstream waiting, blocking, other;
static CUdeviceptr memory, far;
static CUevent event;
static CUmodule module;
static CUfunction function;
static CUipcMemHandle handle;
static uint64_t *word;
static void *pinned;
static char pageable[LENGTH];
/* The copy that waits: so many bytes, in its stream or in the default one. */
static size_t copied;
static bool by_default;

static const char kernel[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry nothing()\n{ ret; }\n";

static struct {
	CUevent event;
	CUstream stream;
	CUdeviceptr memory;
	CUfunction function;
} victim;

static void need(bool good, const char *what)
{
	if (good)
		return;
	printf("not ok 1 %s\n1..1\n", what);
	exit(1);
}

/* ---- what is tried ----------------------------------------------------- */

static int event_create(void)
{
	CUevent e;

	return CALL(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
}

static int event_destroy(void)
{
	return CALL(cuEventDestroy, victim.event);
}

static int event_record(void)
{
	return CALL(cuEventRecord, event, other);
}

static int event_query(void)
{
	int ret = CALL(cuEventQuery, event);

	return ret == CUDA_ERROR_NOT_READY ? 0 : ret;
}

static int stream_create(void)
{
	CUstream s;

	return CALL(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
}

static int stream_sync(void)
{
	return CALL(cuStreamSynchronize, other);
}

static int stream_capturing(void)
{
	CUstreamCaptureStatus status;

	return CALL(cuStreamIsCapturing, other, &status);
}

static int stream_write(void)
{
	return CALL(cuStreamWriteValue64, other, (CUdeviceptr)(uintptr_t)(word + 1),
		    1, 0);
}

static int hold(CUstream stream)
{
	return CALL(cuStreamWaitValue64, stream, (CUdeviceptr)(uintptr_t)word,
		    1, 0);
}

static int stream_hold(void)
{
	return hold(waiting);
}

static int mem_alloc(void)
{
	CUdeviceptr p;

	return CALL(cuMemAlloc, &p, LENGTH);
}

static int host_alloc(void)
{
	void *p;

	return CALL(cuMemHostAlloc, &p, 4096, 0);
}

static int copy_inside(void)
{
	return CALL(cuMemcpyAsync, memory, memory + LENGTH / 2, LENGTH / 2,
		    other);
}

static int copy_far(void)
{
	return CALL(cuMemcpyAsync, far, memory, LENGTH / 2, other);
}

static int copy_pinned(void)
{
	return CALL(cuMemcpyDtoHAsync, pinned, memory, LENGTH, other);
}

static int copy_to_pageable(void)
{
	static char room[64];

	return CALL(cuMemcpyDtoHAsync, room, memory, sizeof(room), other);
}

static int copy_much_to_pageable(void)
{
	static char room[LENGTH];

	return CALL(cuMemcpyDtoHAsync, room, memory, LENGTH, other);
}

static int copy_from_pageable(void)
{
	static char room[LENGTH];

	return CALL(cuMemcpyHtoDAsync, memory, room, LENGTH, other);
}

static int copy_little_from_pageable(void)
{
	static char room[64];

	return CALL(cuMemcpyHtoDAsync, memory, room, sizeof(room), other);
}

static int copy_from_pinned(void)
{
	return CALL(cuMemcpyHtoDAsync, memory, pinned, LENGTH, other);
}

static int launch(void)
{
	return CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, other, NULL,
		    NULL);
}

static void called(void *arg)
{
	(void)arg;
}

static int host_function(void)
{
	return CALL(cuLaunchHostFunc, other, called, NULL);
}

static int module_load(void)
{
	CUmodule m;

	return CALL(cuModuleLoadData, &m, kernel);
}

static int module_function(void)
{
	CUfunction f;

	return CALL(cuModuleGetFunction, &f, module, "nothing");
}

static int ipc_get(void)
{
	CUipcMemHandle own;

	return CALL(cuIpcGetMemHandle, &own, memory);
}

static int ipc_open(void)
{
	CUdeviceptr p;

	return CALL(cuIpcOpenMemHandle, &p, handle,
		    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static int retain(void)
{
	CUcontext c;

	return CALL(cuDevicePrimaryCtxRetain, &c, 0);
}

static int push_pop(void)
{
	CUcontext c;

	return CALL(cuCtxPushCurrent, context) || CALL(cuCtxPopCurrent, &c);
}

static int attributes(void)
{
	CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	unsigned int type;
	void *values[] = { &type };

	return CALL(cuPointerGetAttributes, 1, &which, values, memory);
}

static int attribute_of_host(void)
{
	CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	unsigned int type;
	void *values[] = { &type };

	return CALL(cuPointerGetAttributes, 1, &which, values,
		    (CUdeviceptr)(uintptr_t)pageable);
}

static int sync_memops(void)
{
	int on = 1;

	return CALL(cuPointerSetAttribute, &on,
		    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory);
}

static int dmabuf(void)
{
	int fd = -1, ret = CALL(cuMemGetHandleForAddressRange, &fd, memory,
				LENGTH, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);

	close(fd);
	return ret;
}

static int mem_free(void)
{
	return CALL(cuMemFree, victim.memory);
}

static int stream_destroy(void)
{
	return CALL(cuStreamDestroy, victim.stream);
}

static int capture_mode(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	return CALL(cuThreadExchangeStreamCaptureMode, &mode);
}

static int context_id(void)
{
	unsigned long long id;

	return CALL(cuCtxGetId, context, &id);
}

static int primary_state(void)
{
	unsigned int flags;
	int active;

	return CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active);
}

static int by_address(void)
{
	char text[32];
	CUdevice device;

	return CALL(cuDeviceGetPCIBusId, text, sizeof(text), 0) ||
	       CALL(cuDeviceGetByPCIBusId, &device, text);
}

static int first_launch(void)
{
	return CALL(cuLaunchKernel, victim.function, 1, 1, 1, 1, 1, 1, 0, other,
		    NULL, NULL);
}

/* What is destroyed, or used for the first time. */
static void victims_make(void)
{
	CUmodule fresh;

	need(!CALL(cuEventCreate, &victim.event, CU_EVENT_DISABLE_TIMING) &&
	     !CALL(cuStreamCreate, &victim.stream, CU_STREAM_NON_BLOCKING) &&
	     !CALL(cuMemAlloc, &victim.memory, LENGTH) &&
	     !CALL(cuModuleLoadData, &fresh, kernel) &&
	     !CALL(cuModuleGetFunction, &victim.function, fresh, "nothing"),
	     "more objects");
}

static const struct try {
	const char *name;
	int (*call)(void);
	bool needed;		/* while operations are performed */
} tries[] = {
	{ "cuCtxPushCurrent, cuCtxPopCurrent", push_pop, true },
	{ "cuDevicePrimaryCtxRetain", retain, true },
	{ "cuDevicePrimaryCtxGetState", primary_state, true },
	{ "cuDeviceGetByPCIBusId", by_address, true },
	{ "cuCtxGetId", context_id, true },
	{ "cuThreadExchangeStreamCaptureMode", capture_mode, true },
	{ "cuPointerGetAttributes, device memory", attributes, true },
	{ "cuPointerGetAttributes, host memory", attribute_of_host, true },
	{ "cuPointerSetAttribute, SYNC_MEMOPS", sync_memops, true },
	{ "cuMemGetHandleForAddressRange, dma-buf", dmabuf, true },
	{ "cuMemcpyAsync, within the device", copy_inside, true },
	{ "cuMemcpyAsync, to memory of another process", copy_far, true },
	{ "cuMemcpyDtoHAsync, pinned memory", copy_pinned, true },
	{ "cuMemcpyDtoHAsync, 64 bytes, pageable", copy_to_pageable, true },
	{ "cuMemcpyDtoHAsync, 1 MiB, pageable", copy_much_to_pageable, false },
	{ "cuMemcpyHtoDAsync, 1 MiB, pageable", copy_from_pageable, true },
	{ "cuMemcpyHtoDAsync, 64 bytes, pageable", copy_little_from_pageable, true },
	{ "cuMemcpyHtoDAsync, pinned memory", copy_from_pinned, true },
	{ "cuLaunchKernel", launch, true },
	{ "cuLaunchKernel, for the first time", first_launch, true },
	{ "cuLaunchHostFunc", host_function, false },
	{ "cuEventRecord", event_record, true },
	{ "cuEventQuery", event_query, true },
	{ "cuStreamSynchronize, another stream", stream_sync, true },
	{ "cuStreamIsCapturing", stream_capturing, true },
	{ "cuStreamWriteValue64", stream_write, true },
	{ "cuStreamWaitValue64, the same stream", stream_hold, false },
	{ "cuModuleGetFunction", module_function, false },
	{ "cuModuleLoadData", module_load, false },
	{ "cuEventCreate", event_create, false },
	{ "cuStreamCreate", stream_create, false },
	{ "cuMemAlloc", mem_alloc, false },
	{ "cuMemHostAlloc", host_alloc, false },
	{ "cuIpcGetMemHandle", ipc_get, false },
	{ "cuIpcOpenMemHandle", ipc_open, true },
	{ "cuStreamDestroy", stream_destroy, false },
	{ "cuEventDestroy", event_destroy, false },
	{ "cuMemFree", mem_free, false },
};

#define TRIES	(sizeof(tries) / sizeof(*tries))

/* ---- one of them ------------------------------------------------------- */

struct thread {
	pthread_t id;
	const struct try *try;
	atomic_int state;	/* 1: in the call, 2: it has returned */
	int error;
};

static void *thread_main(void *arg)
{
	struct thread *t = arg;

	CALL(cuCtxSetCurrent, context);
	atomic_store(&t->state, 1);
	if (t->try)
		t->error = t->try->call();
	else if (by_default)
		t->error = CALL(cuMemcpyDtoH, pageable, memory, copied);
	else
		t->error = CALL(cuMemcpyDtoHAsync, pageable, memory, copied,
				waiting);
	atomic_store(&t->state, 2);
	return NULL;
}

static void start(struct thread *t, const struct try *try)
{
	*t = (struct thread){ .try = try };
	if (pthread_create(&t->id, NULL, thread_main, t))
		exit(1);
	while (!atomic_load(&t->state))
		usleep(100);
}

static bool returns(const struct thread *t)
{
	int ms;

	for (ms = 0; ms < GIVE_UP && atomic_load(&t->state) < 2; ms++)
		usleep(1000);
	return atomic_load(&t->state) == 2;
}

static void let_go(void)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

/* Beside the copy; and, if asked for, beside a thread that waits for it, too. */
static bool try_one(const struct try *try, bool beside, int *error)
{
	static const struct try creates = { .call = event_create };
	struct thread copy, create, t;
	bool returned;

	victims_make();
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	hold(by_default ? blocking : waiting);
	start(&copy, NULL);
	usleep(20000);
	if (beside) {
		start(&create, &creates);
		usleep(20000);
	}
	start(&t, try);
	returned = returns(&t);
	let_go();
	pthread_join(copy.id, NULL);
	if (beside)
		pthread_join(create.id, NULL);
	pthread_join(t.id, NULL);
	if (t.error)
		*error = t.error;
	return returned;
}

/* ---- setting up -------------------------------------------------------- */

static void context_open(void)
{
	need(!CALL(cuInit, 0) &&
	     !CALL(cuDevicePrimaryCtxRetain, &context, 0) &&
	     !CALL(cuCtxSetCurrent, context) &&
	     !CALL(cuMemAlloc, &memory, LENGTH), "the device starts");
}

/* Memory for others, until the pipe is closed. */
static void lender(int in, int out)
{
	char end;

	context_open();
	need(!CALL(cuIpcGetMemHandle, &handle, memory), "a handle");
	if (write(out, &handle, sizeof(handle)) == sizeof(handle) &&
	    !read(in, &end, 1))
		_exit(0);
	_exit(1);
}

static void borrow(int from)
{
	CUipcMemHandle first;

	need(read(from, &first, sizeof(first)) == sizeof(first) &&
	     read(from, &handle, sizeof(handle)) == sizeof(handle),
	     "memory of others");
	context_open();
	need(!CALL(cuIpcOpenMemHandle, &far, first,
		   CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) &&
	     !CALL(cuStreamCreate, &waiting, CU_STREAM_NON_BLOCKING) &&
	     !CALL(cuStreamCreate, &blocking, 0) &&
	     !CALL(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING) &&
	     !CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING) &&
	     !CALL(cuMemHostAlloc, &pinned, LENGTH, 0) &&
	     !CALL(cuMemHostAlloc, (void **)&word, 4096, 0) &&
	     !CALL(cuModuleLoadData, &module, kernel) &&
	     !CALL(cuModuleGetFunction, &function, module, "nothing") &&
	     !launch() && !event_record() && !stream_sync(), "set-up");
}

static const char *said(bool asked, bool returned)
{
	return !asked ? "-" : returned ? "returns" : "waits";
}

/*
 * Beside a copy of few bytes, beside one of many, and so on. What waits for a
 * cuMemcpyDtoH() that waits for a blocking stream is only reported: all copies of
 * pageable memory have been seen to.
 */
static int try_all(void)
{
	bool few, many, beside, synchronous;
	int i, error, failures = 0;

	printf("# %-44s %-9s %-9s %-9s %s\n", "beside a copy of", "64 bytes",
	       "1 MiB", "cuMemcpy", "1 MiB and cuEventCreate");
	for (i = 0; i < (int)TRIES; i++) {
		const struct try *t = &tries[i];

		error = 0;
		copied = 64;
		few = try_one(t, false, &error);
		copied = LENGTH;
		many = try_one(t, false, &error);
		beside = t->needed && try_one(t, true, &error);
		by_default = true;
		synchronous = try_one(t, false, &error);
		by_default = false;
		printf("# %-44s %-9s %-9s %-9s %s\n", t->name,
		       said(true, few), said(true, many),
		       said(true, synchronous), said(t->needed, beside));
		if (error)
			printf("# error %d\n", error);
		failures += error || (t->needed && !(few && many && beside));
	}
	return failures;
}

int main(void)
{
	int to[2], from[2], failures, i;
	pid_t pid;

	cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!cuda || access("/dev/nvidiactl", F_OK)) {
		printf("1..0 # SKIP no %s\n", cuda ? "NVIDIA device" :
						     "libcuda.so.1");
		return 77;
	}
	need(!pipe(to) && !pipe(from), "pipes");
	for (i = 0; i < 2; i++) {
		pid = fork();
		need(pid >= 0, "processes");
		if (!pid) {
			close(to[1]);
			lender(to[0], from[1]);
		}
	}
	borrow(from[0]);
	failures = try_all();
	printf("%sok 1 functions that operations call do not wait for a copy behind them\n1..1\n",
	       failures ? "not " : "");
	close(to[1]);
	while (wait(NULL) > 0)
		;
	fflush(stdout);
	_exit(failures != 0);
}
