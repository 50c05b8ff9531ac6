// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random calls of /dev/dgpu<N>, of dma-bufs and of registrations of them, from
 * several threads. The kernel's log is what fails it. FABREX_FUZZ_SECONDS and
 * FABREX_FUZZ_SEED as in fuzz/.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/dma-buf.h>

#include "kselftest_harness.h"
#include "gpu.h"

#define FILES	3
#define SLOTS	8
#define THREADS	3

static const size_t sizes[] = {
	sizeof(struct dgpu_info), sizeof(struct dgpu_alloc),
	sizeof(struct dgpu_handle), sizeof(struct dgpu_export),
	sizeof(struct dgpu_submit), sizeof(struct dgpu_wait),
	sizeof(struct dgpu_move), sizeof(struct dgpu_handle),
	sizeof(struct dgpu_buffer), sizeof(struct dgpu_peer),
	sizeof(struct dgpu_share), sizeof(struct dgpu_open),
};

#define CMDS	(sizeof(sizes) / sizeof(sizes[0]))

/* Shared by the threads without locks: they are to get in each other's way. */
static struct gpu gpus[FILES];
static volatile int dmabufs[SLOTS];
static volatile uint32_t mrs[SLOTS];
static volatile uint64_t names[SLOTS];
static int port;
static uint64_t end;

struct state {
	pthread_t thread;
	uint32_t seed;
	unsigned long calls, accepted;
};

static uint32_t rnd(struct state *s, uint32_t n)
{
	return raw_random(&s->seed) % n;
}

static uint64_t word(struct state *s)
{
	switch (rnd(s, 5)) {
	case 0:
		return rnd(s, 8);
	case 1:
		return 1ull << rnd(s, 64);
	case 2:
		return -1ull - rnd(s, 3);
	case 3:
		return 4096ull * rnd(s, 512);
	default:
		return raw_random(&s->seed);
	}
}

static void plausible(struct state *s, unsigned int cmd, void *arg,
		      struct dgpu_cmd *cmds)
{
	struct dgpu_alloc *alloc = arg;
	struct dgpu_submit *submit = arg;
	struct dgpu_move *move = arg;
	struct dgpu_export *export = arg;
	struct dgpu_handle *handle = arg;
	struct dgpu_peer *peer = arg;
	struct dgpu_open *open = arg;

	if (cmd == DGPU_CMD_ALLOC) {
		alloc->length = 1 + rnd(s, 1u << 20);
		alloc->flags = rnd(s, 4);
	} else if (cmd == DGPU_CMD_SUBMIT) {
		submit->cmds = (uintptr_t)cmds;
		submit->count = 1 + rnd(s, 4);
		submit->flags = rnd(s, 2);
	} else if (cmd == DGPU_CMD_EXPORT) {
		export->handle = 1 + rnd(s, 8);
		export->flags = rnd(s, 2);
	} else if (cmd == DGPU_CMD_MOVE) {
		move->handle = 1 + rnd(s, 8);
		move->place = 1 + rnd(s, 2);
	} else if (cmd == DGPU_CMD_PEER) {
		peer->flags = rnd(s, 2);
		peer->fd = gpus[rnd(s, FILES)].fd;
		peer->handle = 1 + rnd(s, 8);
		peer->own = 1 + rnd(s, 8);
		peer->length = 1 + rnd(s, 1u << rnd(s, 20));
	} else if (cmd == DGPU_CMD_OPEN) {
		open->name = names[rnd(s, SLOTS)];
	} else if (cmd != DGPU_CMD_INFO && cmd != DGPU_CMD_WAIT) {
		handle->handle = 1 + rnd(s, 8);
	}
	for (int i = 0; i < 4; i++)
		cmds[i] = (struct dgpu_cmd){
			.op = rnd(s, 6), .type = rnd(s, 8) ? 0 : rnd(s, 5),
			.dst = rnd(s, 6), .src0 = rnd(s, 6), .src1 = rnd(s, 3),
			.length = rnd(s, 1u << rnd(s, 20)),
			.dst_offset = rnd(s, 1u << rnd(s, 20)),
		};
}

static void keep(struct state *s, int fd)
{
	int old = __atomic_exchange_n(&dmabufs[rnd(s, SLOTS)], fd,
				      __ATOMIC_RELAXED);

	if (old > 0)
		close(old);
}

static void call(struct state *s)
{
	unsigned int cmd = rnd(s, CMDS + 1);
	size_t size = cmd < CMDS ? sizes[cmd] : 64;
	struct dgpu_cmd cmds[4];
	union {
		uint64_t words[32];
		struct dgpu_export export;
		struct dgpu_submit submit;
		struct dgpu_wait wait;
		struct dgpu_share share;
	} u = { { 0 } };
	uint64_t *arg = u.words;

	plausible(s, cmd, &u, cmds);
	for (uint32_t n = rnd(s, 3); n && rnd(s, 2); n--)
		arg[rnd(s, size / 8)] = word(s);
	if (rnd(s, 16))
		memcpy(arg, &(uint32_t){ size }, 4);
	/* Waiting is allowed, and takes long. */
	if (cmd == DGPU_CMD_SUBMIT)
		u.submit.delay_ms %= 3;
	if (cmd == DGPU_CMD_WAIT)
		u.wait.timeout_ms %= 50;
	s->calls++;
	if (ioctl(gpus[rnd(s, FILES)].fd, _IO(DGPU_TYPE, cmd),
		  rnd(s, 64) ? (void *)arg : (void *)(uintptr_t)word(s)))
		return;
	s->accepted++;
	if (cmd == DGPU_CMD_EXPORT)
		keep(s, u.export.out_fd);
	if (cmd == DGPU_CMD_SHARE)
		names[rnd(s, SLOTS)] = u.share.out_name;
}

static void reg(struct state *s)
{
	uint32_t slot = rnd(s, SLOTS), id;
	struct raw_mr mr;

	id = __atomic_exchange_n(&mrs[slot], 0, __ATOMIC_RELAXED);
	if (id)
		raw_destroy(port, id);
	if (!gpu_mr(port, dmabufs[rnd(s, SLOTS)], rnd(s, 9000),
		    1 + rnd(s, 9000), rnd(s, 16), rnd(s, 2) ? FABREX_MR_PIN : 0,
		    0, &mr))
		mrs[slot] = mr.id;
}

static void poke(struct state *s)
{
	struct dma_buf_sync sync = { .flags = rnd(s, 8) };
	uint64_t offset = (uint64_t)rnd(s, 8) << 40 | 4096u * rnd(s, 8);
	int fd = rnd(s, 2) ? gpus[rnd(s, FILES)].fd : dmabufs[rnd(s, SLOTS)];
	size_t length = 4096u * (1 + rnd(s, 4));
	void *p;

	ioctl(dmabufs[rnd(s, SLOTS)], DMA_BUF_IOCTL_SYNC, &sync);
	p = mmap64(NULL, length, PROT_READ | PROT_WRITE,
		   rnd(s, 8) ? MAP_SHARED : MAP_PRIVATE, fd,
		   rnd(s, 4) ? offset : offset & 0xffff);
	if (p == MAP_FAILED)
		return;
	/* Touched by the kernel: what is revoked meanwhile is no signal. */
	madvise(p, length, MADV_POPULATE_WRITE);
	munmap(p, length);
}

static void *work(void *arg)
{
	struct state *s = arg;

	while (raw_now_ns() < end) {
		for (int i = 0; i < 8; i++)
			call(s);
		reg(s);
		poke(s);
	}
	return NULL;
}

static unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

FIXTURE(fuzz) {
};

FIXTURE_SETUP(fuzz)
{
}

FIXTURE_TEARDOWN(fuzz)
{
}

TEST_F_TIMEOUT(fuzz, random_calls, 120)
{
	unsigned long seed = setting("FABREX_FUZZ_SEED", 20);
	struct state s[THREADS] = { 0 };
	unsigned long calls = 0, accepted = 0;

	end = raw_now_ns() + 1000000000ull * setting("FABREX_FUZZ_SECONDS", 4);
	port = raw_open();
	ASSERT_GE(port, 0);
	for (int i = 0; i < FILES; i++)
		ASSERT_EQ(gpu_open(&gpus[i], 0), 0);
	for (int i = 0; i < THREADS; i++) {
		s[i].seed = seed + i;
		ASSERT_EQ(pthread_create(&s[i].thread, NULL, work, &s[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(s[i].thread, NULL);
		calls += s[i].calls;
		accepted += s[i].accepted;
	}
	printf("# %lu calls, %lu accepted, seed %lu\n", calls, accepted, seed);
	EXPECT_GT(accepted, calls / 20);
}

TEST_HARNESS_MAIN
