// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzer: registers, ring and operands of a modelled GPU as a hostile host
 * writes them, also while a command runs. Pages around VRAM, its own and that
 * of a peer in its mesh, are not mapped, so a step outside ends it; the engine
 * has to stop when it is told to, also while it waits for a link.
 */
#define _GNU_SOURCE
#include <draco/gpu.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fabric.h"
#include "gpu.h"
#include "mesh.h"

#define PEERS	2u
#define INSTANCE 7u
#define SIZE	(1u << 20)
#define GUARD	4096u
#define GBPS	50.0
#define SLOW	0.1		/* 0.2 ms for all of VRAM */

static struct gpu *gpus[PEERS], *gpu;
static unsigned char *vram;
static atomic_bool link_up;

static struct topology topology = { .nappliances = 1 };
static struct fabric fabric;
static struct fabric_ep eps[PEERS];
static struct seat seats[PEERS];
static struct oneway ways[PEERS * PEERS];
static struct mesh mesh = {
	.fabric = &fabric, .id = 1, .n = PEERS, .seats = seats, .ways = ways,
};

static struct gpu *make(unsigned int n)
{
	struct gpu_desc d = {
		.name = "gpu", .size = SIZE, .link = &link_up,
		.seat = &seats[n], .instance = INSTANCE,
	};
	struct gpu *g;
	int fd = memfd_create("vram", MFD_CLOEXEC);
	unsigned char *all;

	seats[n].mesh = &mesh;
	seats[n].ep = &eps[n];
	seats[n].number = n + 1;
	pthread_rwlock_init(&seats[n].lock, NULL);
	atomic_store(&eps[n].answers, true);
	all = mmap(NULL, SIZE + 2 * GUARD, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fd < 0 || ftruncate(fd, SIZE) || all == MAP_FAILED)
		abort();
	d.vram = mmap(all + GUARD, SIZE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_FIXED, fd, 0);
	if (d.vram == MAP_FAILED)
		abort();
	d.fd = fd;
	vram = d.vram;
	g = gpu_create(&d);
	if (!g)
		abort();
	gpu_join(g);
	return g;
}

static void start(void)
{
	if (gpus[0])
		return;
	atomic_store(&link_up, true);
	fabric.topo = &topology;
	fabric.meshes = &mesh;
	for (unsigned int i = 0; i < PEERS * PEERS; i++)
		ways[i].rate = GBPS;
	throttle_init(&fabric);
	gpus[1] = make(1);
	gpus[0] = make(0);	/* the last: its @vram */
	gpu = gpus[0];
}

/* Some values have to be right for the entry to get anywhere. */
static void help(struct draco_gpu_cmd *c, unsigned char how)
{
	if (how & 1)
		c->op %= DRACO_GPU_PEER_WRITE + 1;
	if (how & 2) {
		bool peer = c->op >= DRACO_GPU_PEER_READ;

		c->type = c->op == DRACO_GPU_REDUCE ? c->type % 4 : 0;
		c->function = c->op == DRACO_GPU_REDUCE ? c->function % 4 : 0;
		c->__rsvd = 0;
		c->peer = peer ? c->peer % (PEERS + 2) : 0;
		c->instance = peer ? INSTANCE : 0;
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
		gpu_write(gpu, DRACO_GPU_CTRL + (where & 0x3c),
			  data[0] & 0x40 ? v & 0xff : v);
	} else if (data[0] & 0x40) {
		memcpy(vram + where % (SIZE - 4), &v, 4);
	} else {
		memcpy(&c, data + 1, sizeof(c));
		help(&c, data[0]);
		memcpy(vram + (where & 0x3c0), &c, sizeof(c));
	}
	if (data[0] & 0x20)
		(void)gpu_read(gpu, DRACO_GPU_CTRL + (where & 0x3c));
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
	throttle_set(&fabric, size && data[0] & 8 ? SLOW : 0);
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
