// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzer: registers, ring and operands of a modelled GPU as a hostile host
 * writes them, also while a command runs. Pages around VRAM are not mapped, so
 * a step outside ends it; the engine has to stop when it is told to.
 */
#define _GNU_SOURCE
#include <draco/gpu.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gpu.h"

#define SIZE	(1u << 20)
#define GUARD	4096u

static struct gpu *gpu;
static unsigned char *vram;
static int fd;
static atomic_bool link_up;

static void start(void)
{
	struct gpu_desc d = { .name = "gpu", .size = SIZE, .link = &link_up };
	unsigned char *all;

	if (gpu)
		return;
	atomic_store(&link_up, true);
	fd = memfd_create("vram", MFD_CLOEXEC);
	all = mmap(NULL, SIZE + 2 * GUARD, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fd < 0 || ftruncate(fd, SIZE) || all == MAP_FAILED)
		abort();
	vram = mmap(all + GUARD, SIZE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, fd, 0);
	if (vram == MAP_FAILED)
		abort();
	d.vram = vram;
	d.fd = fd;
	gpu = gpu_create(&d);
	if (!gpu)
		abort();
}

/* Some values have to be right for the entry to get anywhere. */
static void help(struct draco_gpu_cmd *c, unsigned char how)
{
	if (how & 1)
		c->op %= 5;
	if (how & 2) {
		c->type = c->op == DRACO_GPU_REDUCE ? c->type % 4 : 0;
		c->function = c->op == DRACO_GPU_REDUCE ? c->function % 4 : 0;
		c->__rsvd[0] = c->__rsvd[1] = 0;
	}
	if (how & 4) {
		c->dst %= SIZE;
		c->src0 %= SIZE;
		c->length %= SIZE;
		if (c->op == DRACO_GPU_REDUCE)
			c->src1 %= SIZE;
	}
	if (how & 8) {
		c->dst &= ~7ull;
		c->src0 &= ~7ull;
		c->length &= ~7ull;
		c->src1 &= ~7ull;
	}
}

static void one_step(const unsigned char *data)
{
	struct draco_gpu_cmd c;
	uint32_t where, v;

	memcpy(&where, data + 1, 4);
	memcpy(&v, data + 5, 4);
	if (data[0] & 0x80) {
		gpu_write(gpu, DRACO_GPU_CTRL + (where & 0x1c),
			  data[0] & 0x40 ? v & 0xff : v);
	} else if (data[0] & 0x40) {
		memcpy(vram + where % (SIZE - 4), &v, 4);
	} else {
		memcpy(&c, data + 1, sizeof(c));
		help(&c, data[0]);
		memcpy(vram + (where & 0x3c0), &c, sizeof(c));
	}
	if (data[0] & 0x20)
		(void)gpu_read(gpu, DRACO_GPU_CTRL + (where & 0x1c));
}

static bool settled(void)
{
	for (int i = 0; i < 100000; i++) {
		uint32_t s = gpu_read(gpu, DRACO_GPU_STATUS);

		if (!(s & DRACO_GPU_STATUS_BUSY))
			return true;
		nanosleep(&(struct timespec){ 0, 10000 }, NULL);
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool wait = size && data[0] & 0x10;

	start();
	memset(vram, 0, 8192);
	gpu_reset(gpu);
	gpu_write(gpu, DRACO_GPU_RING_SIZE, 16);
	if (size && data[0] & 1)
		gpu_write(gpu, DRACO_GPU_CTRL, 1);
	for (; size >= 65; data += 65, size -= 65)
		one_step(data);
	gpu_write(gpu, DRACO_GPU_TAIL, 16);
	if (wait && !settled())
		abort();
	gpu_write(gpu, DRACO_GPU_CTRL, 0);
	if (gpu_read(gpu, DRACO_GPU_STATUS))
		abort();
	return 0;
}
