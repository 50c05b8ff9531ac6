// SPDX-License-Identifier: GPL-2.0-only
/* The test driver of the modelled GPU by itself: memory, engine, moves. */

#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "gpu.h"

#define MIB	(1u << 20)

FIXTURE(exporter) {
	struct gpu gpu;
	uint64_t free;
};

FIXTURE_SETUP(exporter)
{
	ASSERT_EQ(gpu_open(&self->gpu, 0), 0);
	self->free = self->gpu.info.out_free;
}

FIXTURE_TEARDOWN(exporter)
{
	struct dgpu_info info;

	EXPECT_EQ(gpu_info(&self->gpu, &info), 0);
	EXPECT_EQ(info.out_free, self->free);
	EXPECT_EQ(info.out_exports, self->gpu.info.out_exports);
	EXPECT_EQ(info.out_buffers, self->gpu.info.out_buffers);
	close(self->gpu.fd);
}

TEST_F(exporter, says_what_it_is)
{
	struct dgpu_info *info = &self->gpu.info;

	EXPECT_GE(info->out_vram, 64u * MIB);
	EXPECT_TRUE(info->out_flags & DGPU_INFO_ENGINE);
	EXPECT_GT(strlen((char *)info->out_name), 3);
	EXPECT_NE(info->out_devfn, 0);
}

TEST_F(exporter, memory_is_found_and_given_back)
{
	struct gpu_buf a, b;
	struct dgpu_buffer sa, sb;
	uint8_t *p;

	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, 0, &a), 0);
	ASSERT_EQ(gpu_alloc(&self->gpu, 4097, 0, &b), 0);
	ASSERT_EQ(gpu_state(&a, &sa), 0);
	ASSERT_EQ(gpu_state(&b, &sb), 0);
	EXPECT_EQ(sa.out_length, MIB);
	EXPECT_EQ(sb.out_length, 8192);
	EXPECT_TRUE(sa.out_offset + MIB <= sb.out_offset ||
		    sb.out_offset + 8192 <= sa.out_offset);
	p = gpu_mmap(&a);
	ASSERT_NE(p, MAP_FAILED);
	raw_fill(p, MIB, 7);
	EXPECT_EQ(raw_differs(p, MIB, 7), -1);
	munmap(p, MIB);
	p = gpu_mmap(&a);
	EXPECT_EQ(raw_differs(p, MIB, 7), -1);
	munmap(p, MIB);
	EXPECT_EQ(gpu_free(&a), 0);
	EXPECT_EQ(gpu_free(&a), -ENOENT);
	EXPECT_EQ(gpu_free(&b), 0);
}

/* Two files: the memory goes with the last handle, whichever that is. */
TEST_F(exporter, shared_memory_goes_with_its_last_handle)
{
	struct gpu_buf mine, theirs, again;
	struct gpu other;
	uint64_t name, same;
	uint32_t users;
	uint8_t *p, *q;

	ASSERT_EQ(gpu_open(&other, self->gpu.info.out_index), 0);
	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, 0, &mine), 0);
	ASSERT_EQ(gpu_alloc(&other, 8192, 0, &again), 0);
	ASSERT_EQ(gpu_share(&mine, &name, &users), 0);
	EXPECT_EQ(users, 1);
	EXPECT_EQ(gpu_share_open(&other, name ^ 1, &theirs), -ENOENT);
	EXPECT_EQ(gpu_share_open(&other, 0, &theirs), -ENOENT);
	ASSERT_EQ(gpu_share_open(&other, name, &theirs), 0);
	EXPECT_EQ(theirs.length, MIB);
	ASSERT_EQ(gpu_share(&theirs, &same, &users), 0);
	EXPECT_EQ(same, name);
	EXPECT_EQ(users, 2);
	p = gpu_mmap(&mine);
	q = gpu_mmap(&theirs);
	ASSERT_NE(p, MAP_FAILED);
	ASSERT_NE(q, MAP_FAILED);
	raw_fill(p, MIB, 9);
	EXPECT_EQ(raw_differs(q, MIB, 9), -1);
	munmap(p, MIB);
	EXPECT_EQ(gpu_free(&mine), 0);
	EXPECT_EQ(raw_differs(q, MIB, 9), -1);
	EXPECT_EQ(gpu_fill(&theirs, 0, MIB, 0x0505050505050505ull), 0);
	EXPECT_EQ(q[MIB - 1], 5);
	munmap(q, MIB);
	close(other.fd);
	EXPECT_EQ(gpu_share_open(&self->gpu, name, &theirs), -ENOENT);
}

TEST_F(exporter, too_much_is_refused)
{
	struct gpu_buf a, b;

	EXPECT_EQ(gpu_alloc(&self->gpu, self->gpu.info.out_vram + 1, 0, &a),
		  -ENOSPC);
	EXPECT_EQ(gpu_alloc(&self->gpu, -1ull, 0, &a), -ENOSPC);
	EXPECT_EQ(gpu_alloc(&self->gpu, 0, 0, &a), -EINVAL);
	EXPECT_EQ(gpu_alloc(&self->gpu, 4096, 1u << 30, &a), -EINVAL);
	ASSERT_EQ(gpu_alloc(&self->gpu, self->free, 0, &a), 0);
	EXPECT_EQ(gpu_alloc(&self->gpu, 4096, 0, &b), -ENOSPC);
	EXPECT_EQ(gpu_free(&a), 0);
}

TEST_F(exporter, engine_fills_copies_and_checks)
{
	struct gpu_buf a, b;
	uint32_t crc, other;
	uint64_t *p;

	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, 0, &a), 0);
	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, 0, &b), 0);
	EXPECT_EQ(gpu_fill(&a, 0, MIB, 0x0123456789abcdefull), 0);
	p = gpu_mmap(&a);
	EXPECT_EQ(p[0], 0x0123456789abcdefull);
	EXPECT_EQ(p[MIB / 8 - 1], 0x0123456789abcdefull);
	EXPECT_EQ(gpu_pattern(&a, MIB, 3), 0);
	EXPECT_NE(memcmp(p, p + 512, 4096), 0);
	EXPECT_EQ(gpu_crc(&a, 100, 5000, &crc), 0);
	EXPECT_EQ(crc, raw_crc32c((uint8_t *)p + 100, 5000));
	EXPECT_EQ(gpu_copy(&b, 0, &a, 0, MIB), 0);
	EXPECT_EQ(gpu_crc(&a, 0, MIB, &crc), 0);
	EXPECT_EQ(gpu_crc(&b, 0, MIB, &other), 0);
	EXPECT_EQ(crc, other);
	p[77]++;
	EXPECT_EQ(gpu_crc(&a, 0, MIB, &crc), 0);
	EXPECT_NE(crc, other);
	munmap(p, MIB);
	EXPECT_EQ(gpu_free(&a), 0);
	EXPECT_EQ(gpu_free(&b), 0);
}

TEST_F(exporter, engine_says_what_is_wrong)
{
	struct dgpu_cmd cmd[2] = { 0 };
	struct gpu_buf a;

	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, 0, &a), 0);
	EXPECT_EQ(gpu_fill(&a, 4, 64, 1), -EIO);
	EXPECT_EQ(gpu_fill(&a, MIB - 8, 16, 1), -EINVAL);
	cmd[0] = (struct dgpu_cmd){ .op = DRACO_GPU_FILL, .dst = a.handle,
				    .length = 12 };
	cmd[1] = (struct dgpu_cmd){ .op = DRACO_GPU_CRC32C, .src0 = a.handle,
				    .length = 64 };
	EXPECT_EQ(gpu_submit(&self->gpu, cmd, 2, 0, 0, NULL), -EIO);
	EXPECT_EQ(cmd[0].status, DRACO_GPU_BAD_ALIGN);
	EXPECT_EQ(cmd[1].status, DRACO_GPU_DONE);
	cmd[1].status = 0;
	cmd[1].result = 0;
	cmd[1].dst = a.handle;
	EXPECT_EQ(gpu_submit(&self->gpu, cmd + 1, 1, 0, 0, NULL), -EINVAL);
	cmd[1].dst = 0;
	cmd[1].src0 = 99999;
	EXPECT_EQ(gpu_submit(&self->gpu, cmd + 1, 1, 0, 0, NULL), -ENOENT);
	cmd[1].op = 0x77;
	EXPECT_EQ(gpu_submit(&self->gpu, cmd + 1, 1, 0, 0, NULL), -EINVAL);
	EXPECT_EQ(gpu_submit(&self->gpu, cmd, 0, 0, 0, NULL), -EINVAL);
	EXPECT_EQ(gpu_free(&a), 0);
}

TEST_F(exporter, scattered_buffers_work_like_others)
{
	struct gpu_buf a, b;
	uint32_t seed = 5;
	uint8_t *p;

	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, DGPU_ALLOC_SCATTER, &a), 0);
	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, 0, &b), 0);
	p = gpu_mmap(&a);
	raw_fill(p, MIB, seed);
	EXPECT_EQ(gpu_copy(&b, 0, &a, 0, MIB), 0);
	munmap(p, MIB);
	p = gpu_mmap(&b);
	EXPECT_EQ(raw_differs(p, MIB, seed), -1);
	munmap(p, MIB);
	EXPECT_EQ(gpu_crc(&a, 0, MIB, &seed), -EINVAL);
	EXPECT_EQ(gpu_free(&a), 0);
	EXPECT_EQ(gpu_free(&b), 0);
}

TEST_F(exporter, cleared_when_asked)
{
	struct gpu_buf a;
	uint8_t *p;

	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, 0, &a), 0);
	EXPECT_EQ(gpu_fill(&a, 0, MIB, -1ull), 0);
	EXPECT_EQ(gpu_free(&a), 0);
	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, DGPU_ALLOC_CLEAR, &a), 0);
	EXPECT_EQ(gpu_fill(&a, MIB - 8, 8, 0), 0);
	p = gpu_mmap(&a);
	EXPECT_TRUE(raw_all(p, MIB, 0));
	munmap(p, MIB);
	EXPECT_EQ(gpu_free(&a), 0);
}

TEST_F(exporter, moves_keep_every_byte)
{
	static const uint32_t places[] = {
		DGPU_PLACE_VRAM, DGPU_PLACE_SYSTEM, DGPU_PLACE_SYSTEM,
		DGPU_PLACE_VRAM, DGPU_PLACE_VRAM,
	};
	struct dgpu_buffer s;
	struct gpu_buf a;
	uint64_t was;
	uint8_t *p;

	ASSERT_EQ(gpu_alloc(&self->gpu, 3 * MIB, 0, &a), 0);
	p = gpu_mmap(&a);
	raw_fill(p, a.length, 11);
	ASSERT_EQ(gpu_state(&a, &s), 0);
	was = s.out_offset;
	for (unsigned int i = 0; i < 5; i++) {
		EXPECT_EQ(gpu_move(&a, places[i]), 0);
		EXPECT_EQ(raw_differs(p, a.length, 11), -1);
		ASSERT_EQ(gpu_state(&a, &s), 0);
		EXPECT_EQ(s.out_place, places[i]);
		EXPECT_EQ(s.out_moves, i + 1);
		if (i == 0)
			EXPECT_NE(s.out_offset, was);
	}
	EXPECT_EQ(gpu_move(&a, DGPU_PLACE_SYSTEM), 0);
	EXPECT_EQ(gpu_fill(&a, 0, 8, 42), 0);
	EXPECT_EQ(gpu_state(&a, &s), 0);
	EXPECT_EQ(s.out_place, DGPU_PLACE_VRAM);
	EXPECT_EQ(*(uint64_t *)p, 42);
	EXPECT_EQ(gpu_move(&a, 7), -EINVAL);
	munmap(p, a.length);
	EXPECT_EQ(gpu_free(&a), 0);
}

static sigjmp_buf caught;

static void on_bus(int sig)
{
	siglongjmp(caught, 1);
}

static bool faults(volatile uint8_t *p)
{
	struct sigaction sa = { .sa_handler = on_bus }, old;
	bool hit = true;

	sigaction(SIGBUS, &sa, &old);
	if (!sigsetjmp(caught, 1)) {
		(void)*p;
		hit = false;
	}
	sigaction(SIGBUS, &old, NULL);
	return hit;
}

TEST_F(exporter, freed_and_revoked_memory_faults)
{
	struct dgpu_buffer s;
	struct gpu_buf a, b;
	uint8_t *p, *q, *r;
	uint64_t seq;
	int fd;
	struct dgpu_cmd nop = { .op = DRACO_GPU_CRC32C };

	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, 0, &a), 0);
	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, 0, &b), 0);
	p = gpu_mmap(&a);
	q = gpu_mmap(&b);
	fd = gpu_export(&b, 4096, 8192, 0);
	ASSERT_GE(fd, 0);
	r = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(r, MAP_FAILED);
	q[4096 + 5] = 99;
	EXPECT_EQ(r[5], 99);
	EXPECT_FALSE(faults(p));
	EXPECT_EQ(gpu_free(&a), 0);
	EXPECT_TRUE(faults(p));
	EXPECT_EQ(gpu_revoke(&b), 0);
	EXPECT_EQ(gpu_revoke(&b), 0);
	EXPECT_TRUE(faults(q));
	EXPECT_TRUE(faults(r + 4096));
	EXPECT_EQ(gpu_state(&b, &s), 0);
	EXPECT_EQ(s.out_place, DGPU_PLACE_NONE);
	nop.src0 = b.handle;
	EXPECT_EQ(gpu_submit(&self->gpu, &nop, 1, 0, 0, &seq), -ENODEV);
	EXPECT_EQ(gpu_export(&b, 0, 0, 0), -ENODEV);
	EXPECT_EQ(gpu_move(&b, DGPU_PLACE_VRAM), -ENODEV);
	EXPECT_EQ(gpu_free(&b), 0);
	munmap(p, MIB);
	munmap(q, MIB);
	munmap(r, 8192);
	close(fd);
}

TEST_F(exporter, jobs_are_waited_for)
{
	struct dgpu_cmd cmd = { .op = DRACO_GPU_FILL, .length = MIB };
	uint64_t begun = raw_now_ns(), seq = 0;
	struct gpu_buf a;

	ASSERT_EQ(gpu_alloc(&self->gpu, MIB, 0, &a), 0);
	cmd.dst = a.handle;
	EXPECT_EQ(gpu_submit(&self->gpu, &cmd, 1, DGPU_SUBMIT_ASYNC, 3000,
			     &seq), 0);
	EXPECT_EQ(gpu_wait(&self->gpu, seq, 10), -ETIMEDOUT);
	EXPECT_EQ(gpu_wait(&self->gpu, seq + 1, 10), -EINVAL);
	/* A move waits for the fence. */
	EXPECT_EQ(gpu_move(&a, DGPU_PLACE_VRAM), 0);
	EXPECT_GE(raw_now_ns() - begun, 2900000000ull);
	EXPECT_EQ(gpu_wait(&self->gpu, seq, 0), 0);
	EXPECT_EQ(gpu_free(&a), 0);
}

TEST_F(exporter, dma_bufs_outlive_the_handle)
{
	struct gpu other;
	struct gpu_buf a;
	int fd;

	ASSERT_EQ(gpu_open(&other, 0), 0);
	ASSERT_EQ(gpu_alloc(&other, MIB, 0, &a), 0);
	fd = gpu_export(&a, 0, 0, DGPU_EXPORT_READ_ONLY);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(gpu_export(&a, 1, 4096, 0), -EINVAL);
	EXPECT_EQ(gpu_export(&a, MIB, 0, 0), -EINVAL);
	EXPECT_EQ(gpu_export(&a, 4096, MIB, 0), -EINVAL);
	EXPECT_EQ(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	close(other.fd);
	close(fd);
}

TEST_HARNESS_MAIN
