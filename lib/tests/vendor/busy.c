// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * With a real CUDA device: a kernel that runs until it is told to end, in a
 * stream that the default stream waits for, while a peer reads and writes the
 * same device's memory and its owner registers, forks and deregisters. Prints
 * TAP and times. Ends with 77 where there is no device.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fabrex/fabrex.h>

#include "base/clock.h"
#include "cuda.h"

#define LENGTH	(1u << 20)
#define TURNS	200
#define STRING_(x)	#x
#define STRING(x)	STRING_(x)
#define CALL(name, ...) \
	(((__typeof__(&name))(uintptr_t)symbol(STRING(name)))(__VA_ARGS__))

/* Ends when the word in the host's memory is not 0 any more. */
static const char kernel[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry wait(.param .u64 flag)\n"
	"{ .reg .u64 %a; .reg .u32 %r; .reg .pred %p;\n"
	"ld.param.u64 %a, [flag];\n"
	"L: ld.volatile.global.u32 %r, [%a];\n"
	"setp.eq.u32 %p, %r, 0; @%p bra L; ret; }\n";

static void *cuda;
static int points, failures;

static void *symbol(const char *name)
{
	return dlsym(cuda, name);
}

static void ok(int good, const char *what)
{
	printf("%sok %d %s\n", good ? "" : "not ", ++points, what);
	if (!good)
		printf("# last error: %s\n", fabrex_strerror_last());
	failures += !good;
}

static void need(int good, const char *what)
{
	if (good)
		return;
	ok(0, what);
	exit(1);
}

static void say(const char *what, uint64_t since)
{
	printf("# %s: %.3f ms\n", what, (double)(fxi_now_ns() - since) / 1e6);
}

/* ---- the owner --------------------------------------------------------- */

struct owner {
	struct fabrex_port *port;
	CUstream stream;
	volatile uint32_t *flag;
	CUdeviceptr memory[2];
};

static void start_device(struct owner *o)
{
	CUcontext context;
	CUfunction function;
	CUmodule module;
	void *flag, *parameters[1];

	need(!CALL(cuInit, 0) &&
	     !CALL(cuDevicePrimaryCtxRetain, &context, 0) &&
	     !CALL(cuCtxSetCurrent, context) &&
	     !CALL(cuMemAlloc, &o->memory[0], LENGTH) &&
	     !CALL(cuMemAlloc, &o->memory[1], LENGTH) &&
	     !CALL(cuMemHostAlloc, &flag, 4096, 0) &&
	     !CALL(cuStreamCreate, &o->stream, 0) &&
	     !CALL(cuModuleLoadData, &module, kernel) &&
	     !CALL(cuModuleGetFunction, &function, module, "wait"),
	     "the device starts");
	o->flag = flag;
	*o->flag = 0;
	parameters[0] = &flag;
	need(!CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, o->stream,
		   parameters, NULL), "the kernel starts");
}

static void change_things(struct owner *o)
{
	static char host[LENGTH];
	struct fabrex_mr *mr, *device;
	uint64_t since = fxi_now_ns();
	pid_t pid;

	ok(!fabrex_mr_register(o->port, host, LENGTH, FABREX_MR_ALL, &mr),
	   "the owner registers host memory");
	say("registration of host memory", since);
	since = fxi_now_ns();
	ok(!fabrex_mr_register(o->port, (void *)(uintptr_t)o->memory[1],
			       LENGTH, FABREX_MR_ALL, &device),
	   "and device memory");
	say("registration of device memory", since);
	since = fxi_now_ns();
	pid = fork();
	if (!pid)
		_exit(0);
	say("fork()", since);
	ok(waitpid(pid, NULL, 0) == pid, "and forks");
	since = fxi_now_ns();
	ok(!fabrex_mr_deregister(device), "and deregisters device memory");
	say("deregistration", since);
}

/* Tells where the memory is, then works while the peer does. */
static int owner(const char *fabric, int in, int out)
{
	struct fabrex_remote remote;
	struct fabrex_mr *mr;
	struct owner o;
	char done;

	need(!fabrex_open(fabric, &o.port), "the owner's port");
	start_device(&o);
	need(!fabrex_mr_register(o.port, (void *)(uintptr_t)o.memory[0],
				 LENGTH, FABREX_MR_ALL, &mr), "registration");
	fabrex_mr_remote(mr, &remote);
	need(write(out, &remote, sizeof(remote)) == sizeof(remote), "pipe");
	change_things(&o);
	need(read(in, &done, 1) == 1, "the peer's word");
	ok(CALL(cuStreamQuery, o.stream) == CUDA_ERROR_NOT_READY,
	   "the kernel is still running");
	*o.flag = 1;
	ok(!CALL(cuStreamSynchronize, o.stream), "and ends well");
	fabrex_close(o.port);
	fflush(stdout);
	return failures;
}

/* ---- the peer ---------------------------------------------------------- */

struct peer {
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;
	unsigned char *memory;
	struct fabrex_remote to;
};

static double move(const struct peer *p, uint8_t opcode, int *failed)
{
	const struct fabrex_op op = {
		.opcode = opcode, .peer = (uint16_t)p->to.peer, .mr = p->mr,
		.length = LENGTH, .rkey = p->to.rkey,
	};
	uint64_t since = fxi_now_ns();
	struct fabrex_wc wc;
	int n = 0;

	need(fabrex_post(p->queue, &op, 1) == 1, "posting");
	while (!n)
		n = fabrex_poll(p->queue, &wc, 1);
	*failed += n != 1 || wc.status != FABREX_WC_OK;
	return (double)(fxi_now_ns() - since) / 1e9;
}

static void peer_moves(const struct peer *p)
{
	double longest = 0, sum = 0, took;
	int i, failed = 0, wrong = 0;

	for (i = 0; i < TURNS; i++) {
		memset(p->memory, i + 1, LENGTH);
		took = move(p, FABREX_OP_WRITE, &failed);
		longest = took > longest ? took : longest;
		sum += took;
		memset(p->memory, 0, LENGTH);
		took = move(p, FABREX_OP_READ, &failed);
		longest = took > longest ? took : longest;
		sum += took;
		wrong += p->memory[0] != ((i + 1) & 255) ||
			 p->memory[LENGTH - 1] != ((i + 1) & 255);
	}
	ok(!failed && !wrong, "a peer writes and reads 1 MiB, again and again");
	printf("# %d operations: %.3f ms on average, %.3f ms the longest\n",
	       2 * TURNS, sum / (2 * TURNS) * 1e3, longest * 1e3);
}

int main(void)
{
	int to[2], from[2], status = -1;
	char fabric[64];
	struct peer p;
	pid_t pid;

	cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!cuda || access("/dev/nvidiactl", F_OK)) {
		printf("1..0 # SKIP no %s\n", cuda ? "NVIDIA device" :
						     "libcuda.so.1");
		return 77;
	}
	snprintf(fabric, sizeof(fabric), "loopback:busy-%d", (int)getpid());
	need(!pipe(to) && !pipe(from), "pipes");
	pid = fork();
	if (!pid)
		_exit(owner(fabric, to[0], from[1]));
	need(read(from[0], &p.to, sizeof(p.to)) == sizeof(p.to), "the owner");
	need(!fabrex_open(fabric, &p.port) &&
	     !fabrex_queue_create(p.port, NULL, 0, &p.queue) &&
	     !fabrex_mr_alloc(p.port, LENGTH, FABREX_MR_ALL, &p.mr),
	     "the peer's port");
	p.memory = fabrex_mr_addr(p.mr);
	points = 100;		/* the owner counts from 1 */
	peer_moves(&p);
	need(write(to[1], "", 1) == 1, "pipe");
	ok(waitpid(pid, &status, 0) == pid && !status, "the owner is content");
	fabrex_close(p.port);
	return failures != 0;
}
