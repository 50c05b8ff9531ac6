// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine of a modelled GPU by its registers: commands, refusals, a host
 * that rewrites its ring, sparse memory, and every way to end.
 */
#define _GNU_SOURCE
#include <draco/gpu.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "gpu.h"
#include "tap.h"

#define MIB		(1ull << 20)
#define RING		0x10000u
#define ENTRIES		16u

static struct gpu *gpu;
static unsigned char *vram;
static uint64_t size;
static int fd = -1;
static atomic_bool link_up;
static uint32_t tail;

/* ---- A driver in miniature ---- */

static bool start(uint64_t bytes)
{
	struct gpu_desc d = { .name = "gpu", .size = bytes,
			      .link = &link_up };

	size = bytes;
	fd = memfd_create("vram", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		return false;
	vram = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_NORESERVE, fd, 0);
	atomic_store(&link_up, true);
	d.vram = vram;
	d.fd = fd;
	gpu = gpu_create(&d);
	return gpu && vram != MAP_FAILED;
}

static void stop(void)
{
	gpu_destroy(gpu);
	munmap(vram, size);
	close(fd);
}

static uint32_t status(void)
{
	return gpu_read(gpu, DRACO_GPU_STATUS);
}

static void set_ring(uint64_t base, uint32_t entries)
{
	gpu_write(gpu, DRACO_GPU_RING_BASE, (uint32_t)base);
	gpu_write(gpu, DRACO_GPU_RING_BASE + 4, base >> 32);
	gpu_write(gpu, DRACO_GPU_RING_SIZE, entries);
}

static void disable(void)
{
	gpu_write(gpu, DRACO_GPU_CTRL, 0);
}

static bool enable(void)
{
	set_ring(RING, ENTRIES);
	gpu_write(gpu, DRACO_GPU_CTRL, DRACO_GPU_CTRL_ENABLE);
	tail = 0;
	return status() == DRACO_GPU_STATUS_READY;
}

static struct draco_gpu_cmd *slot(uint32_t n)
{
	return (struct draco_gpu_cmd *)(vram + RING) + n % ENTRIES;
}

static void post(const struct draco_gpu_cmd *c)
{
	*slot(tail++) = *c;
	gpu_write(gpu, DRACO_GPU_TAIL, tail);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ 0, 20000 }, NULL);
}

static bool wait_head(uint32_t n)
{
	for (int i = 0; i < 6000000; i++) {
		if (gpu_read(gpu, DRACO_GPU_HEAD) == n)
			return true;
		if (status() & DRACO_GPU_STATUS_FATAL)
			return false;
		nap();
	}
	return false;
}

static bool wait_status(uint32_t mask, uint32_t want)
{
	for (int i = 0; i < 6000000; i++) {
		if ((status() & mask) == want)
			return true;
		nap();
	}
	return false;
}

/* Status of the command, or -1. */
static int run(struct draco_gpu_cmd c, uint64_t *result)
{
	post(&c);
	if (!wait_head(tail))
		return -1;
	if (result)
		*result = slot(tail - 1)->result;
	return slot(tail - 1)->status;
}

static struct draco_gpu_cmd command(unsigned int op, uint64_t dst,
				    uint64_t src0, uint64_t src1,
				    uint64_t length)
{
	return (struct draco_gpu_cmd){ .op = op, .dst = dst, .src0 = src0,
				       .src1 = src1, .length = length,
				       .cookie = 0xc00c1e };
}

#define FILL(d, p, n)		command(DRACO_GPU_FILL, d, 0, p, n)
#define COPY(d, s, n)		command(DRACO_GPU_COPY, d, s, 0, n)
#define REDUCE(d, a, b, n)	command(DRACO_GPU_REDUCE, d, a, b, n)
#define CRC(s, n)		command(DRACO_GPU_CRC32C, 0, s, 0, n)

/* ---- Commands ---- */

static void test_commands(void)
{
	struct draco_gpu_cmd c;
	uint64_t crc;

	CHECK(start(8 * MIB) && enable());
	CHECK_EQ(run(FILL(MIB, 0x1122334455667788, MIB), NULL), DRACO_GPU_DONE);
	CHECK(vram[MIB] == 0x88 && vram[2 * MIB - 1] == 0x11);
	CHECK(!vram[2 * MIB] && !vram[MIB - 1]);
	CHECK_EQ(run(COPY(3 * MIB + 1, MIB, MIB), NULL), DRACO_GPU_DONE);
	CHECK(!memcmp(vram + 3 * MIB + 1, vram + MIB, MIB));
	CHECK_EQ(run(CRC(3 * MIB + 1, MIB), &crc), DRACO_GPU_DONE);
	CHECK_EQ(crc, fxi_crc32c(0, vram + MIB, MIB));
	CHECK_EQ(run(command(DRACO_GPU_NOP, ~0ull, ~0ull, ~0ull, ~0ull), NULL),
		 DRACO_GPU_DONE);
	c = REDUCE(5 * MIB, MIB, MIB, MIB);
	c.type = DRACO_GPU_INT32;
	CHECK_EQ(run(c, NULL), DRACO_GPU_DONE);
	CHECK_EQ(*(uint32_t *)(vram + 5 * MIB), 0x55667788u * 2);
	CHECK_EQ(*(uint32_t *)(vram + 6 * MIB - 4), 0x11223344u * 2);
	CHECK(!vram[6 * MIB]);
	CHECK_EQ(run(FILL(size, 1, 0), NULL), DRACO_GPU_DONE);
	CHECK_EQ(run(FILL(size - 8, 1, 8), NULL), DRACO_GPU_DONE);
	CHECK_EQ(vram[size - 8], 1);
	CHECK_EQ(slot(tail - 1)->cookie, 0xc00c1e);
	CHECK(wait_status(~0u, DRACO_GPU_STATUS_READY));	/* not busy */
	stop();
}

static void test_overlapping_copy(void)
{
	unsigned char *want = malloc(4 * MIB);

	CHECK(start(8 * MIB) && enable());
	for (int pass = 0; pass < 2; pass++) {
		uint64_t from = pass ? MIB : MIB + 12345;
		uint64_t to = pass ? MIB + 12345 : MIB;

		for (uint64_t i = 0; i < 4 * MIB; i++)
			vram[MIB + i] = (unsigned char)(i * 31 >> 3);
		memcpy(want, vram + from, 3 * MIB);
		CHECK_EQ(run(COPY(to, from, 3 * MIB), NULL), DRACO_GPU_DONE);
		CHECK(!memcmp(want, vram + to, 3 * MIB));
	}
	free(want);
	stop();
}

static void test_ring_wraps(void)
{
	CHECK(start(MIB) && enable());
	for (uint32_t round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < ENTRIES; i++) {
			struct draco_gpu_cmd c = FILL(0x20000 + 8 * i,
						      round * 100 + i, 8);

			*slot(tail++) = c;
		}
		gpu_write(gpu, DRACO_GPU_TAIL, tail);
		CHECK(wait_head(tail));
		for (uint32_t i = 0; i < ENTRIES; i++) {
			CHECK_EQ(slot(i)->status, DRACO_GPU_DONE);
			CHECK_EQ(vram[0x20000 + 8 * i],
				 (round * 100 + i) & 0xff);
		}
	}
	stop();
}

/* ---- Refusals ---- */

static bool refused(struct draco_gpu_cmd c, int want)
{
	static unsigned char before[MIB];
	uint64_t result = 1;

	memcpy(before, vram, MIB);
	return run(c, &result) == want && !result &&
	       !memcmp(before, vram, RING) &&
	       !memcmp(before + RING + ENTRIES * 64,
		       vram + RING + ENTRIES * 64, MIB - RING - ENTRIES * 64);
}

static void test_bad_commands(void)
{
	struct draco_gpu_cmd c = REDUCE(0, 4096, 8192, 64);

	CHECK(start(MIB) && enable());
	memset(vram, 0x42, RING);
	CHECK(refused(command(7, 0, 0, 0, 8), DRACO_GPU_BAD_COMMAND));
	CHECK(refused(command(255, 0, 0, 0, 8), DRACO_GPU_BAD_COMMAND));
	c.type = 4;
	CHECK(refused(c, DRACO_GPU_BAD_COMMAND));
	c.type = DRACO_GPU_INT32;
	c.function = 4;
	CHECK(refused(c, DRACO_GPU_BAD_COMMAND));
	c.function = 0;
	c.__rsvd = 1;
	CHECK(refused(c, DRACO_GPU_BAD_COMMAND));
	/* In no mesh. */
	c = COPY(0, 4096, 8);
	c.op = DRACO_GPU_PEER_WRITE;
	CHECK(refused(c, DRACO_GPU_NO_LINK));
	c.peer = 1;
	CHECK(refused(c, DRACO_GPU_NO_LINK));
	c = FILL(0, 0, 8);
	c.type = 1;
	CHECK(refused(c, DRACO_GPU_BAD_COMMAND));
	CHECK(refused(FILL(4, 0, 8), DRACO_GPU_BAD_ALIGN));
	CHECK(refused(FILL(0, 0, 9), DRACO_GPU_BAD_ALIGN));
	CHECK(refused(REDUCE(0, 4096, 8192, 2), DRACO_GPU_BAD_ALIGN));
	CHECK(refused(REDUCE(0, 4098, 8192, 8), DRACO_GPU_BAD_ALIGN));
	c = REDUCE(0, 4096, 8193, 8);
	c.type = DRACO_GPU_BF16;
	CHECK(refused(c, DRACO_GPU_BAD_ALIGN));
	CHECK(!(status() & DRACO_GPU_STATUS_FATAL));
	stop();
}

static void test_bad_ranges(void)
{
	const uint64_t top = ~7ull, end = RING + ENTRIES * 64;

	CHECK(start(MIB) && enable());
	CHECK(refused(FILL(MIB - 8, 0, 16), DRACO_GPU_BAD_RANGE));
	CHECK(refused(FILL(MIB + 8, 0, 0), DRACO_GPU_BAD_RANGE));
	CHECK(refused(FILL(8, 0, top), DRACO_GPU_BAD_RANGE));
	CHECK(refused(FILL(top, 0, 16), DRACO_GPU_BAD_RANGE));
	CHECK(refused(COPY(0, top, 4096), DRACO_GPU_BAD_RANGE));
	CHECK(refused(COPY(MIB - 1, 0, 2), DRACO_GPU_BAD_RANGE));
	CHECK(refused(REDUCE(0, 4096, MIB - 4, 8), DRACO_GPU_BAD_RANGE));
	CHECK(refused(CRC(1, MIB), DRACO_GPU_BAD_RANGE));
	/* The ring: the last byte before it, and the first behind. */
	CHECK(refused(FILL(RING - 8, 0, 16), DRACO_GPU_BAD_RANGE));
	CHECK(refused(CRC(end - 1, 1), DRACO_GPU_BAD_RANGE));
	CHECK(refused(COPY(0, RING + 64, 1), DRACO_GPU_BAD_RANGE));
	CHECK(refused(REDUCE(0, 4096, 0, RING + 4), DRACO_GPU_BAD_RANGE));
	CHECK_EQ(run(FILL(RING - 8, 0, 8), NULL), DRACO_GPU_DONE);
	CHECK_EQ(run(FILL(end, 0, 8), NULL), DRACO_GPU_DONE);
	stop();
}

static bool fatal_ring(uint64_t base, uint32_t entries)
{
	bool ok;

	set_ring(base, entries);
	gpu_write(gpu, DRACO_GPU_CTRL, 1);
	gpu_write(gpu, DRACO_GPU_TAIL, 1);
	ok = status() == DRACO_GPU_STATUS_FATAL &&
	     !gpu_read(gpu, DRACO_GPU_HEAD);
	disable();
	return ok && !status();
}

static void test_bad_rings(void)
{
	CHECK(start(MIB));
	CHECK(fatal_ring(0, 0));
	CHECK(fatal_ring(0, 4));
	CHECK(fatal_ring(0, 12));
	CHECK(fatal_ring(0, 8192));
	CHECK(fatal_ring(32, 16));
	CHECK(fatal_ring(MIB - 512, 16));
	CHECK(fatal_ring(MIB, 8));
	CHECK(fatal_ring(~63ull, 16));
	CHECK(fatal_ring(1ull << 63, 16));
	set_ring(MIB - 8 * 64, 8);
	gpu_write(gpu, DRACO_GPU_CTRL, 1);
	CHECK_EQ(status(), DRACO_GPU_STATUS_READY);
	set_ring(0, 32);			/* not while enabled */
	CHECK_EQ(gpu_read(gpu, DRACO_GPU_RING_BASE), MIB - 8 * 64);
	CHECK_EQ(gpu_read(gpu, DRACO_GPU_RING_SIZE), 8);
	disable();
	CHECK(enable());
	gpu_write(gpu, DRACO_GPU_TAIL, ENTRIES + 1);
	CHECK(wait_status(~0u, DRACO_GPU_STATUS_FATAL));
	CHECK_EQ(gpu_read(gpu, DRACO_GPU_CTRL), 1);
	disable();
	CHECK(enable());
	CHECK_EQ(run(FILL(0, 1, 8), NULL), DRACO_GPU_DONE);
	gpu_reset(gpu);
	CHECK_EQ(status() | gpu_read(gpu, DRACO_GPU_CTRL) |
		 gpu_read(gpu, DRACO_GPU_HEAD) |
		 gpu_read(gpu, DRACO_GPU_RING_SIZE), 0);
	CHECK_EQ(vram[0], 1);			/* memory is kept */
	stop();
}

/* ---- A host that rewrites entries while they run ---- */

static atomic_bool quit;

static void *scribble(void *arg)
{
	uint64_t x = 1;

	while (!atomic_load(&quit)) {
		uint64_t *w = (uint64_t *)(vram + RING);

		x = x * 6364136223846793005ull + 1442695040888963407ull;
		__atomic_store_n(&w[x >> 33 & (ENTRIES * 8 - 1)],
				 x & 1 ? x >> 40 & 0xfffff8 : x,
				 __ATOMIC_RELAXED);
	}
	return arg;
}

static void test_hostile_ring(void)
{
	pthread_t t;
	uint32_t n = 0;

	CHECK(start(MIB) && enable());
	atomic_store(&quit, false);
	pthread_create(&t, NULL, scribble, NULL);
	for (n = 0; n < 20000; n += ENTRIES) {
		gpu_write(gpu, DRACO_GPU_TAIL, n);
		if (!wait_head(n))
			break;
	}
	atomic_store(&quit, true);
	pthread_join(t, NULL);
	CHECK_EQ(n, 20000);
	stop();
}

/* ---- Size and sparseness ---- */

static uint64_t backed(void)
{
	struct stat st;

	return fstat(fd, &st) ? ~0ull : (uint64_t)st.st_blocks * 512;
}

static void test_sparse(void)
{
	uint64_t crc, want = 0;

	CHECK(start(16384 * MIB) && enable());
	CHECK_EQ(run(FILL(8192 * MIB, 0, 4096 * MIB), NULL), DRACO_GPU_DONE);
	CHECK_EQ(run(CRC(4096 * MIB, 256 * MIB), &crc), DRACO_GPU_DONE);
	CHECK(backed() < MIB);
	CHECK_EQ(run(FILL(size - 64, 5, 64), NULL), DRACO_GPU_DONE);
	CHECK_EQ(vram[size - 8], 5);
	/* Zeroes count as zeroes whether there is memory or not. */
	memset(vram + 4096 * MIB + 5000, 0, 3 * MIB);
	for (uint64_t i = 0; i < 256; i++) {
		static const char zero[MIB];

		want = fxi_crc32c((uint32_t)want, zero, MIB);
	}
	CHECK_EQ(crc, want);
	CHECK_EQ(run(CRC(4096 * MIB, 256 * MIB), &crc), DRACO_GPU_DONE);
	CHECK_EQ(crc, want);
	CHECK_EQ(run(FILL(4096 * MIB, 0, 8 * MIB), NULL), DRACO_GPU_DONE);
	CHECK(backed() < 5 * MIB);
	stop();
}

/* ---- Ends ---- */

/* Long enough to be in the middle of: a checksum over 2 GiB of holes. */
static void start_long(void)
{
	struct draco_gpu_cmd c = CRC(MIB, 4095 * MIB);

	post(&c);
}

static void test_disable_under_way(void)
{
	CHECK(start(4096 * MIB) && enable());
	start_long();
	CHECK(wait_status(DRACO_GPU_STATUS_BUSY, DRACO_GPU_STATUS_BUSY));
	disable();
	CHECK_EQ(status(), 0);
	CHECK_EQ(gpu_read(gpu, DRACO_GPU_HEAD), 0);
	CHECK_EQ(slot(0)->status, DRACO_GPU_PENDING);
	CHECK(enable());
	CHECK_EQ(run(FILL(0, 9, 8), NULL), DRACO_GPU_DONE);
	start_long();
	gpu_reset(gpu);
	CHECK_EQ(status(), 0);
	stop();
}

static void test_link_lost(void)
{
	CHECK(start(4096 * MIB) && enable());
	start_long();
	CHECK(wait_status(DRACO_GPU_STATUS_BUSY, DRACO_GPU_STATUS_BUSY));
	atomic_store(&link_up, false);
	CHECK(wait_status(~0u, DRACO_GPU_STATUS_FATAL));
	CHECK_EQ(gpu_read(gpu, DRACO_GPU_HEAD), 0);
	disable();
	atomic_store(&link_up, true);
	CHECK(enable());
	CHECK_EQ(run(FILL(0, 9, 8), NULL), DRACO_GPU_DONE);
	stop();
}

static void *kill_it(void *arg)
{
	nap();
	gpu_kill(gpu);
	return arg;
}

/* Killed from another thread while its own one starts and stops it. */
static void test_killed(void)
{
	for (int i = 0; i < 50; i++) {
		pthread_t t;

		CHECK(start(64 * MIB) && enable());
		pthread_create(&t, NULL, kill_it, NULL);
		for (int k = 0; k < 20; k++) {
			struct draco_gpu_cmd c = FILL(MIB, 1, 60 * MIB);

			disable();
			enable();
			post(&c);
		}
		pthread_join(t, NULL);
		munmap(vram, size);		/* a touch would crash */
		disable();
		gpu_write(gpu, DRACO_GPU_CTRL, 1);
		gpu_write(gpu, DRACO_GPU_TAIL, 1);
		CHECK_EQ(status(), 0);
		vram = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		stop();
	}
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(commands), T(overlapping_copy), T(ring_wraps), T(bad_commands),
	T(bad_ranges), T(bad_rings), T(hostile_ring), T(sparse),
	T(disable_under_way), T(link_lost), T(killed),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
