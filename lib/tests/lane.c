// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of the streams that copies of a device's memory go by: what is kept of
 * them is bounded, and given back with the port where that can be done safely.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"
#include "gpu.h"
#include "memory/lane.h"
#include "memory/memory.h"
#include "party.h"
#include "runtime.h"

#define COPIES	100u		/* at once */


static int place[2];

TEST(lane_cap)
{
	static struct lanes lanes;
	struct lane *taken[LANES], *lane;
	uintptr_t here = (uintptr_t)&place[0], there = (uintptr_t)&place[1];
	uint32_t i;

	for (i = 0; i < LANES; i++) {
		taken[i] = fxi_lane_take(&lanes, here, 1);
		CHECK(taken[i] && !taken[i]->stream);
		taken[i]->place = here;
		taken[i]->serial = 1;
		taken[i]->stream = &place[0];
	}
	CHECK(!fxi_lane_take(&lanes, here, 1));
	for (i = 0; i < LANES; i++)
		fxi_lane_give(taken[i]);
	/* All are of that place; one that lost its stream is free. */
	CHECK(!fxi_lane_take(&lanes, there, 1));
	lane = fxi_lane_take(&lanes, here, 1);
	CHECK(lane && lane->stream == &place[0]);
	lane->stream = NULL;
	fxi_lane_give(lane);
	CHECK(fxi_lane_take(&lanes, there, 1) == lane && !lane->stream);
	/* Another context at the same place: its streams are gone. */
	for (i = 0; i < LANES - 1; i++) {
		taken[i] = fxi_lane_take(&lanes, here, 2);
		CHECK(taken[i] && !taken[i]->stream);
	}
	CHECK(!fxi_lane_take(&lanes, here, 2));
}

struct copy {
	uint32_t kind;
	void *addr;
	pthread_t thread;
	bool good;
};

static void *copies(void *arg)
{
	struct copy *c = arg;
	char buffer[64] = "x";

	c->good = fxi_memory_copy(c->kind, c->addr, buffer, sizeof(buffer),
				  false);
	return NULL;
}

/* After it is closed @rest of those are kept that a port has had. */
static void check_kept(enum gpu_vendor vendor, uint32_t kind, void *addr,
		       uint32_t rest)
{
	void *gpu = runtime_load("libtest-gpu.so");
	struct copy c[COPIES];
	struct fabrex_port *port;
	uint32_t i, before;
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	before = CALL(gpu, gpu_streams, vendor, GPU_NON_BLOCKING);
	CHECK_EQ(fabrex_mr_register(port, addr, 4096, FABREX_MR_ALL, &mr), 0);
	CHECK(fxi_memory_copies(kind));
	CALL(gpu, gpu_hold, true);
	for (i = 0; i < COPIES; i++) {
		c[i].kind = kind;
		c[i].addr = addr;
		CHECK(!pthread_create(&c[i].thread, NULL, copies, &c[i]));
	}
	/* Each has a stream of its own. */
	while (CALL(gpu, gpu_streams, vendor, GPU_NON_BLOCKING) <
	       before + COPIES)
		sched_yield();
	CALL(gpu, gpu_hold, false);
	for (i = 0; i < COPIES; i++) {
		CHECK(!pthread_join(c[i].thread, NULL));
		CHECK(c[i].good);
	}
	CHECK_EQ(CALL(gpu, gpu_streams, vendor, GPU_NON_BLOCKING),
		 before + LANES);
	CHECK_EQ(fabrex_close(port), 0);
	CHECK_EQ(CALL(gpu, gpu_streams, vendor, GPU_NON_BLOCKING),
		 before + rest);
}

TEST(lane_kept_cuda)
{
	void *lib = cuda_up("libcuda.so.1");

	check_kept(GPU_NVIDIA, FABREX_MEMORY_CUDA, cuda_alloc(lib, 4096), 0);
}

TEST(lane_kept_hip)
{
	void *lib = runtime_load("libamdhip64.so.5");

	check_kept(GPU_AMD, FABREX_MEMORY_HIP, hip_alloc(lib, 4096), LANES);
}

/* To destroy the stream of a context that is gone, none is made. */
TEST(lane_context_gone)
{
	void *lib = cuda_up("libcuda.so.1");
	void *gpu = runtime_load("libtest-gpu.so");
	char *addr = cuda_alloc(lib, 4096), byte;
	struct fabrex_port *port;
	uint32_t kept;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	CHECK_EQ(fabrex_memory_query(addr, &(struct fabrex_memory){ 0 },
				     sizeof(struct fabrex_memory)), 0);
	CHECK(fxi_memory_copy(FABREX_MEMORY_CUDA, addr, &byte, 1, true));
	kept = CALL(gpu, gpu_streams, GPU_NVIDIA, GPU_NON_BLOCKING);
	CHECK(kept > 0);
	CHECK_EQ(CALL(lib, cuDevicePrimaryCtxRelease, 0), 0);
	CHECK_EQ(fabrex_close(port), 0);
	CHECK_EQ(CALL(gpu, gpu_streams, GPU_NVIDIA, GPU_NON_BLOCKING), kept);
}

/* What is kept is of the parent's run time, whatever the child does. */
TEST(lane_fork)
{
	void *lib = runtime_load("libamdhip64.so.5");
	void *gpu = runtime_load("libtest-gpu.so");
	char *addr = hip_alloc(lib, 4096), byte;
	struct fabrex_port *port, *own;
	struct fabrex_mr *mr;
	uint32_t kept;
	int status;
	pid_t pid;

	CHECK_EQ(fabrex_open(loop_name("a"), &port), 0);
	CHECK_EQ(fabrex_mr_register(port, addr, 4096, FABREX_MR_ALL, &mr), 0);
	CHECK(fxi_memory_copy(FABREX_MEMORY_HIP, addr, &byte, 1, true));
	kept = CALL(gpu, gpu_streams, GPU_AMD, GPU_NON_BLOCKING);
	CHECK(kept > 0);
	pid = fork();
	if (!pid) {
		CHECK_EQ(fabrex_open(loop_name("child"), &own), 0);
		CHECK_EQ(fabrex_close(own), 0);
		CHECK_EQ(CALL(gpu, gpu_streams, GPU_AMD, GPU_NON_BLOCKING),
			 kept);
		/* The test run time works here: the stream is a new one. */
		CHECK(fxi_memory_copy(FABREX_MEMORY_HIP, addr, &byte, 1,
				      true));
		CHECK_EQ(CALL(gpu, gpu_streams, GPU_AMD, GPU_NON_BLOCKING),
			 kept + 1);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(fabrex_close(port), 0);
}
