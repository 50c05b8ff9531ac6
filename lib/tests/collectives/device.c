// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Allocations of GPUs, copies and streams, as applications have them.
 */
#include <dlfcn.h>

#include "cuda.h"
#include "device.h"
#include "hip.h"
#include "world.h"

#define TO_DEVICE	1	/* hipMemcpyKind */
#define TO_HOST		2
#define STRING_(x)	#x
#define STRING(x)	STRING_(x)
#define CALL(lib, name, ...) \
	(((__typeof__(&name))(uintptr_t)symbol(lib, STRING(name))) \
	 (__VA_ARGS__))

static void *symbol(void *lib, const char *name)
{
	void *found = dlsym(lib, name);

	if (!found)
		test_note("%s", name);
	CHECK(found);
	return found;
}

static void *load(const char *file)
{
	const char *dir = getenv("FABREX_TEST_RUNTIME");
	char path[512];
	void *lib;

	setenv("FABREX_TEST_GPUS", "2", 0);
	CHECK(dir);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	test_note("%s", path);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	CHECK(lib);
	return lib;
}

void gpu_make_current(const struct gpu *g)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuCtxSetCurrent, g->context), 0);
	else if (g->hip)
		CHECK_EQ(CALL(g->hip, hipSetDevice, g->device), 0);
}

void gpu_cuda_on(struct gpu *g, int device, uint64_t bytes)
{
	CUdeviceptr ptr = 0;
	CUcontext context;
	int count = 0;

	memset(g, 0, sizeof(*g));
	g->cuda = load("libcuda.so.1");
	CHECK_EQ(CALL(g->cuda, cuInit, 0), 0);
	/* Real ones may be fewer than the tests': they are shared, then. */
	CHECK_EQ(CALL(g->cuda, cuDeviceGetCount, &count), 0);
	CHECK(count > 0);
	device %= count;
	g->device = device;
	CHECK_EQ(CALL(g->cuda, cuDevicePrimaryCtxRetain, &context, device), 0);
	g->context = context;
	gpu_make_current(g);
	CHECK_EQ(CALL(g->cuda, cuMemAlloc, &ptr, bytes), 0);
	g->memory = (char *)(uintptr_t)ptr;
}

void gpu_hip_on(struct gpu *g, int device, uint64_t bytes)
{
	void *ptr = NULL;

	memset(g, 0, sizeof(*g));
	g->device = device;
	g->hip = load("libamdhip64.so.5");
	gpu_make_current(g);
	CHECK_EQ(CALL(g->hip, hipMalloc, &ptr, bytes), 0);
	g->memory = ptr;
}

void gpu_cuda(struct gpu *g, uint64_t bytes)
{
	gpu_cuda_on(g, 0, bytes);
}

void gpu_hip(struct gpu *g, uint64_t bytes)
{
	gpu_hip_on(g, 1, bytes);
}

static void *library(const struct gpu *g)
{
	return g->cuda ? g->cuda : g->hip;
}

bool gpu_to_others(const struct gpu *g, uint64_t *bytes)
{
	uint64_t (*count)(void);

	*(void **)&count = dlsym(library(g), "gpu_bytes_to_others");
	*bytes = count ? count() : 0;
	return count;
}

void gpu_stop(const struct gpu *g, bool on)
{
	void (*hold)(bool on);

	*(void **)&hold = symbol(library(g), "gpu_hold");
	hold(on);
}

void gpu_none(struct gpu *g, uint64_t bytes)
{
	memset(g, 0, sizeof(*g));
	g->memory = malloc(bytes);
	CHECK(g->memory);
}

void gpu_put(const struct gpu *g, char *to, const void *from, uint64_t n)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuMemcpyHtoD, (CUdeviceptr)(uintptr_t)to,
			      from, n), 0);
	else if (g->hip)
		CHECK_EQ(CALL(g->hip, hipMemcpy, to, from, n, TO_DEVICE), 0);
	else
		memcpy(to, from, n);
}

void gpu_get(const struct gpu *g, void *to, const char *from, uint64_t n)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuMemcpyDtoH, to,
			      (CUdeviceptr)(uintptr_t)from, n), 0);
	else if (g->hip)
		CHECK_EQ(CALL(g->hip, hipMemcpy, to, from, n, TO_HOST), 0);
	else
		memcpy(to, from, n);
}

/* ---- streams ----------------------------------------------------------- */

#define NON_BLOCKING	1
#define COPY_DEFAULT	4	/* hipMemcpyKind */

struct fabrex_stream *stream_of(uint32_t kind, void *native)
{
	const struct fabrex_stream_attr attr = {
		.kind = kind, .native = native,
	};
	struct fabrex_stream *stream;

	CHECK_EQ(fabrex_stream_create(&attr, sizeof(attr), &stream), 0);
	return stream;
}

struct fabrex_stream *gpu_stream_known(const struct gpu *g, void *native)
{
	return stream_of(g->cuda ? FABREX_MEMORY_CUDA :
			 g->hip ? FABREX_MEMORY_HIP : FABREX_MEMORY_HOST,
			 native);
}

static void *stream_make(const struct gpu *g, unsigned int flags)
{
	CUstream cuda = NULL;
	void *hip = NULL;

	if (g->cuda) {
		CHECK_EQ(CALL(g->cuda, cuStreamCreate, &cuda, flags), 0);
		return cuda;
	}
	CHECK_EQ(CALL(g->hip, hipStreamCreateWithFlags, &hip, flags), 0);
	return hip;
}

void *gpu_stream(const struct gpu *g)
{
	return stream_make(g, NON_BLOCKING);
}

void *gpu_stream_blocking(const struct gpu *g)
{
	return stream_make(g, 0);
}

void gpu_stream_end(const struct gpu *g, void *stream)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuStreamDestroy, stream), 0);
	else
		CHECK_EQ(CALL(g->hip, hipStreamDestroy, stream), 0);
}

void gpu_stream_sync(const struct gpu *g, void *stream)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuStreamSynchronize, stream), 0);
	else
		CHECK_EQ(CALL(g->hip, hipStreamSynchronize, stream), 0);
}

void gpu_stream_copy(const struct gpu *g, void *stream, char *to,
		     const char *from, uint64_t n)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuMemcpyAsync,
			      (CUdeviceptr)(uintptr_t)to,
			      (CUdeviceptr)(uintptr_t)from, n, stream), 0);
	else
		CHECK_EQ(CALL(g->hip, hipMemcpyAsync, to, from, n,
			      COPY_DEFAULT, stream), 0);
}

void gpu_stream_call(const struct gpu *g, void *stream,
		     void (*function)(void *arg), void *arg)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuLaunchHostFunc, stream, function,
			      arg), 0);
	else
		CHECK_EQ(CALL(g->hip, hipLaunchHostFunc, stream, function,
			      arg), 0);
}

void gpu_stream_put(const struct gpu *g, void *stream, char *to,
		    const void *from, uint64_t n)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuMemcpyHtoDAsync,
			      (CUdeviceptr)(uintptr_t)to, from, n, stream),
			 0);
	else
		CHECK_EQ(CALL(g->hip, hipMemcpyAsync, to, from, n, TO_DEVICE,
			      stream), 0);
}

void gpu_stream_get(const struct gpu *g, void *stream, void *to,
		    const char *from, uint64_t n)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuMemcpyDtoHAsync, to,
			      (CUdeviceptr)(uintptr_t)from, n, stream), 0);
	else
		CHECK_EQ(CALL(g->hip, hipMemcpyAsync, to, from, n, TO_HOST,
			      stream), 0);
}

static void join_cuda(void *cuda, CUstream earlier, CUstream later)
{
	CUevent event;

	CHECK_EQ(CALL(cuda, cuEventCreate, &event, CU_EVENT_DISABLE_TIMING),
		 0);
	CHECK_EQ(CALL(cuda, cuEventRecord, event, earlier), 0);
	CHECK_EQ(CALL(cuda, cuStreamWaitEvent, later, event, 0), 0);
	CHECK_EQ(CALL(cuda, cuEventDestroy, event), 0);
}

void gpu_stream_join(const struct gpu *g, void *earlier, void *later)
{
	void *event;

	if (g->cuda) {
		join_cuda(g->cuda, earlier, later);
		return;
	}
	CHECK_EQ(CALL(g->hip, hipEventCreateWithFlags, &event,
		      HIP_EVENT_NO_TIMING), 0);
	CHECK_EQ(CALL(g->hip, hipEventRecord, event, earlier), 0);
	CHECK_EQ(CALL(g->hip, hipStreamWaitEvent, later, event, 0), 0);
	CHECK_EQ(CALL(g->hip, hipEventDestroy, event), 0);
}

#define SIGNAL_MEMORY	2	/* hipMallocSignalMemory */

uint64_t *gpu_word(const struct gpu *g)
{
	void *word;

	if (g->cuda) {
		CHECK_EQ(CALL(g->cuda, cuMemHostAlloc, &word, sizeof(uint64_t),
			      0), 0);
	} else if (g->hip) {
		CHECK_EQ(CALL(g->hip, hipExtMallocWithFlags, &word,
			      sizeof(uint64_t), SIGNAL_MEMORY), 0);
	} else {
		word = malloc(sizeof(uint64_t));
		CHECK(word);
	}
	*(uint64_t *)word = 0;
	return word;
}

void gpu_stream_hold(const struct gpu *g, void *stream, uint64_t *word,
		     uint64_t value)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuStreamWaitValue64, stream,
			      (CUdeviceptr)(uintptr_t)word, value, 0), 0);
	else
		CHECK_EQ(CALL(g->hip, hipStreamWaitValue64, stream, word,
			      value, 0, UINT64_MAX), 0);
}

void gpu_stream_write(const struct gpu *g, void *stream, uint64_t *word,
		      uint64_t value)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuStreamWriteValue64, stream,
			      (CUdeviceptr)(uintptr_t)word, value, 0), 0);
	else
		CHECK_EQ(CALL(g->hip, hipStreamWriteValue64, stream, word,
			      value, 0), 0);
}
