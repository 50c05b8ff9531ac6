// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs as memory regions: what is moved, who may, moves, revocation, pins,
 * fences. On one host with two GPUs, which sends to itself through the switch.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "gpu.h"

#define MIB	(1u << 20)
#define READS	FABREX_ACCESS_REMOTE_READ

FIXTURE(import) {
	int fd;
	uint16_t self;
	struct raw_queue q;
	struct gpu gpu[2];
	struct gpu_buf buf[2];	/* 1 MiB each */
	struct raw_mr mr[2];	/* the whole of them, all rights */
	bool stuck;		/* what is mapped does not move */
};

/* Export all of a buffer, register it, forget the dma-buf. */
static int whole(int fd, struct gpu_buf *buf, uint32_t flags, struct raw_mr *mr)
{
	int dmabuf = gpu_export(buf, 0, 0, 0), err;

	if (dmabuf < 0)
		return dmabuf;
	err = gpu_mr(fd, dmabuf, 0, buf->length, RAW_ALL, flags, 0, mr);
	close(dmabuf);
	return err;
}

FIXTURE_SETUP(import)
{
	struct fabrex_port_query port;

	self->fd = raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(raw_query(self->fd, &port), 0);
	self->self = port.out_peer;
	ASSERT_EQ(raw_queue(self->fd, 64, 256, 0, &self->q), 0);
	for (int i = 0; i < 2; i++) {
		unsigned int from = i ? self->gpu[0].info.out_index + 1 : 0;

		ASSERT_EQ(gpu_open(&self->gpu[i], from), 0);
		ASSERT_EQ(gpu_alloc(&self->gpu[i], MIB, 0, &self->buf[i]), 0);
		ASSERT_EQ(whole(self->fd, &self->buf[i], 0, &self->mr[i]), 0);
	}
	self->stuck = gpu_stuck(&self->buf[0]);
}

FIXTURE_TEARDOWN(import)
{
	raw_queue_free(&self->q);
	close(self->fd);
	for (int i = 0; i < 2; i++) {
		struct dgpu_info info = { 0 };

		gpu_free(&self->buf[i]);
		/* Of a dma-buf, the file is given back a little later. */
		for (int n = 0; n < RAW_WAIT_MS / 5; n++) {
			gpu_info(&self->gpu[i], &info);
			if (!info.out_exports)
				break;
			usleep(5000);
		}
		EXPECT_EQ(info.out_mappings, 0);
		EXPECT_EQ(info.out_exports, 0);
		EXPECT_EQ(info.out_free, self->gpu[i].info.out_free);
		close(self->gpu[i].fd);
	}
}

static struct fabrex_sqe move(const struct raw_mr *from, uint64_t loffset,
			      const struct raw_mr *to, uint64_t roffset,
			      uint64_t length, uint16_t self)
{
	return raw_rw(FABREX_OP_WRITE, self, from, loffset, to->key, roffset,
		      length);
}

TEST_F(import, gpu_to_gpu)
{
	struct fabrex_sqe w = move(&self->mr[0], 0, &self->mr[1], 0, MIB,
				   self->self);
	struct fabrex_counters before, after;
	struct fabrex_cqe cqe;
	uint32_t crc, other;

	ASSERT_EQ(gpu_pattern(&self->buf[0], MIB, 1), 0);
	ASSERT_EQ(gpu_fill(&self->buf[1], 0, MIB, 0), 0);
	ASSERT_EQ(gpu_crc(&self->buf[0], 0, MIB, &crc), 0);
	ASSERT_EQ(raw_counters(self->fd, 0, &before), 0);
	w.flags = FABREX_SQE_CHECK;
	ASSERT_EQ(raw_do(&self->q, &w, &cqe), FABREX_WC_OK);
	ASSERT_EQ(raw_counters(self->fd, 0, &after), 0);
	EXPECT_EQ(cqe.crc, crc);
	EXPECT_EQ(cqe.length, MIB);
	ASSERT_EQ(gpu_crc(&self->buf[1], 0, MIB, &other), 0);
	EXPECT_EQ(other, crc);
	EXPECT_EQ(after.out_p2p_bytes - before.out_p2p_bytes, MIB);
	EXPECT_EQ(after.out_host_bytes - before.out_host_bytes, 0);
	/* And back, by a READ. */
	ASSERT_EQ(gpu_pattern(&self->buf[1], MIB, 2), 0);
	ASSERT_EQ(gpu_crc(&self->buf[1], 0, MIB, &crc), 0);
	w = raw_rw(FABREX_OP_READ, self->self, &self->mr[0], 0,
		   self->mr[1].key, 0, MIB);
	ASSERT_EQ(raw_do(&self->q, &w, &cqe), FABREX_WC_OK);
	ASSERT_EQ(gpu_crc(&self->buf[0], 0, MIB, &other), 0);
	EXPECT_EQ(other, crc);
}

TEST_F(import, gpu_and_host)
{
	struct fabrex_counters before, after;
	struct fabrex_sqe sqe;
	struct raw_mr host;
	uint32_t crc;

	ASSERT_EQ(raw_mr(self->fd, MIB, RAW_ALL, &host), 0);
	ASSERT_EQ(gpu_pattern(&self->buf[0], MIB, 3), 0);
	ASSERT_EQ(gpu_crc(&self->buf[0], 0, MIB, &crc), 0);
	ASSERT_EQ(raw_counters(self->fd, 0, &before), 0);
	sqe = move(&self->mr[0], 0, &host, 0, MIB, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(raw_crc32c(host.addr, MIB), crc);
	raw_fill(host.addr, MIB, 77);
	sqe = move(&host, 0, &self->mr[1], 0, MIB, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	ASSERT_EQ(raw_counters(self->fd, 0, &after), 0);
	ASSERT_EQ(gpu_crc(&self->buf[1], 0, MIB, &crc), 0);
	EXPECT_EQ(raw_crc32c(host.addr, MIB), crc);
	EXPECT_EQ(after.out_host_bytes - before.out_host_bytes, 2 * MIB);
	EXPECT_EQ(after.out_p2p_bytes, before.out_p2p_bytes);
	EXPECT_EQ(raw_mr_free(&host), 0);
}

/* Part of a buffer, part of that dma-buf, in many pieces, nothing aligned. */
TEST_F(import, sub_ranges)
{
	const uint64_t base = 2 * 4096, skip = 4096 + 123, n = 300001;
	struct gpu_buf scattered;
	struct raw_mr from, to;
	struct fabrex_sqe sqe;
	uint8_t *src, *dst;
	int fd;

	ASSERT_EQ(gpu_alloc(&self->gpu[1], MIB, DGPU_ALLOC_SCATTER, &scattered),
		  0);
	src = gpu_mmap(&self->buf[0]);
	dst = gpu_mmap(&scattered);
	raw_fill(src, MIB, 4);
	memset(dst, 0xa5, MIB);
	fd = gpu_export(&self->buf[0], base, 128 * 4096, 0);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(gpu_mr(self->fd, fd, skip, n, RAW_ALL, 0, 0, &from), 0);
	EXPECT_EQ(gpu_mr(self->fd, fd, 128 * 4096 - 1, 2, RAW_ALL, 0, 0, &to),
		  -EINVAL);
	close(fd);
	fd = gpu_export(&scattered, 4096, 0, 0);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(gpu_mr(self->fd, fd, 17, n, RAW_ALL, 0, 0, &to), 0);
	close(fd);
	sqe = move(&from, 0, &to, 0, n, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(memcmp(dst + 4096 + 17, src + base + skip, n), 0);
	EXPECT_TRUE(raw_all(dst, 4096 + 17, 0xa5));
	EXPECT_TRUE(raw_all(dst + 4096 + 17 + n, MIB - 4096 - 17 - n, 0xa5));
	sqe = move(&from, 1, &to, 0, n, self->self);
	EXPECT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_LBOUNDS);
	sqe = move(&from, 0, &to, 1, n, self->self);
	EXPECT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_RBOUNDS);
	/* Moving it to system memory and back changes nothing for the key. */
	EXPECT_EQ(gpu_move(&scattered, DGPU_PLACE_SYSTEM),
		  self->stuck ? -EBUSY : 0);
	EXPECT_EQ(gpu_move(&scattered, DGPU_PLACE_VRAM),
		  self->stuck ? -EBUSY : 0);
	memset(dst, 0, MIB);
	sqe = move(&from, 0, &to, 0, n, self->self);
	for (int i = 0; i < RAW_WAIT_MS / 10; i++) {
		if (raw_do(&self->q, &sqe, NULL) == FABREX_WC_OK)
			break;
		usleep(10000);
	}
	EXPECT_EQ(memcmp(dst + 4096 + 17, src + base + skip, n), 0);
	EXPECT_TRUE(raw_all(dst + 4096 + 17 + n, MIB - 4096 - 17 - n, 0));
	EXPECT_EQ(raw_destroy(self->fd, from.id), 0);
	EXPECT_EQ(raw_destroy(self->fd, to.id), 0);
	EXPECT_EQ(gpu_free(&scattered), 0);
	munmap(src, MIB);
	munmap(dst, MIB);
}

TEST_F(import, overlapping)
{
	struct raw_mr low, high;
	struct fabrex_sqe sqe;
	uint8_t *p = gpu_mmap(&self->buf[1]);
	int fd = gpu_export(&self->buf[1], 0, 0, 0);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(gpu_mr(self->fd, fd, 0, 5000, RAW_ALL, 0, 0, &low), 0);
	ASSERT_EQ(gpu_mr(self->fd, fd, 3000, 5000, RAW_ALL, 0, 0, &high), 0);
	memset(p, 0, 8192);
	ASSERT_EQ(gpu_fill(&self->buf[0], 0, 4096, 0x1111111111111111ull), 0);
	sqe = move(&self->mr[0], 0, &low, 3000, 2000, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(raw_destroy(self->fd, low.id), 0);
	sqe = move(&self->mr[0], 0, &high, 2000, 100, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_TRUE(raw_all(p + 3000, 2100, 0x11));
	EXPECT_EQ(p[2999], 0);
	EXPECT_EQ(p[5100], 0);
	sqe = move(&self->mr[0], 0, &low, 0, 1, self->self);
	EXPECT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_RKEY);
	EXPECT_EQ(raw_destroy(self->fd, high.id), 0);
	close(fd);
	munmap(p, MIB);
}

TEST_F(import, atomics)
{
	uint64_t *word = gpu_mmap(&self->buf[1]);
	struct fabrex_sqe sqe;

	word[8] = 40;
	sqe = raw_rw(FABREX_OP_FETCH_ADD, self->self, &self->mr[0], 64,
		     self->mr[1].key, 64, 0);
	sqe.operand = 2;
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(word[8], 42);
	sqe.opcode = FABREX_OP_CMP_SWAP;
	sqe.compare = 42;
	sqe.operand = 7;
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(word[8], 7);
	munmap(word, MIB);
	word = gpu_mmap(&self->buf[0]);
	EXPECT_EQ(word[8], 42);	/* what was there is in the other GPU */
	munmap(word, MIB);
}

TEST_F(import, window)
{
	struct fabrex_window_create win = {
		.size = sizeof(win), .peer = self->self,
		.access = FABREX_ACCESS_REMOTE_READ |
			  FABREX_ACCESS_REMOTE_WRITE,
		.rkey = self->mr[1].key, .offset = 8192, .length = 8192,
	};
	uint8_t *p = gpu_mmap(&self->buf[1]);
	uint8_t *w;

	ASSERT_EQ(raw_ioctl(self->fd, FABREX_IOCTL_WINDOW_CREATE, &win), 0);
	w = mmap64(NULL, win.out_length, PROT_READ | PROT_WRITE, MAP_SHARED,
		   self->fd, win.out_mmap);
	ASSERT_NE(w, MAP_FAILED);
	memset(p, 0xa5, 5 * 4096);
	for (int i = 0; i < 256; i++)
		w[4000 + i] = i;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	EXPECT_EQ(w[4000 + 77], 77);
	for (int i = 0; i < 256; i++)
		EXPECT_EQ(p[8192 + 4000 + i], i);
	EXPECT_EQ(p[8192 + 3999], 0xa5);
	p[8192] = 99;
	EXPECT_EQ(w[0], 99);
	ASSERT_EQ(gpu_revoke(&self->buf[1]), 0);
	EXPECT_EQ(*(volatile uint32_t *)w, 0xffffffffu);
	*(volatile uint32_t *)w = 1;
	munmap(w, win.out_length);
	EXPECT_EQ(raw_destroy(self->fd, win.out_id), 0);
	munmap(p, MIB);
}

TEST_F(import, rights)
{
	int fd = gpu_export(&self->buf[0], 0, 0, DGPU_EXPORT_READ_ONLY);
	int null = open("/dev/null", O_RDWR), rw;
	struct fabrex_sqe sqe;
	struct raw_mr mr;

	ASSERT_GE(fd, 0);
	EXPECT_EQ(gpu_mr(self->fd, fd, 0, 4096, FABREX_ACCESS_LOCAL_WRITE, 0,
			 0, &mr), -EACCES);
	EXPECT_EQ(gpu_mr(self->fd, fd, 0, 4096, FABREX_ACCESS_REMOTE_WRITE, 0,
			 0, &mr), -EACCES);
	EXPECT_EQ(gpu_mr(self->fd, fd, 0, 4096, FABREX_ACCESS_REMOTE_ATOMIC, 0,
			 0, &mr), -EACCES);
	ASSERT_EQ(gpu_mr(self->fd, fd, 0, 4096, READS, 0, 0, &mr), 0);
	sqe = move(&self->mr[1], 0, &mr, 0, 64, self->self);
	EXPECT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_RACCESS);
	sqe.opcode = FABREX_OP_READ;
	EXPECT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(raw_destroy(self->fd, mr.id), 0);
	rw = gpu_export(&self->buf[0], 4096, 8192, 0);
	EXPECT_EQ(gpu_mr(self->fd, rw, 8192, 1, READS, 0, 0, &mr), -EINVAL);
	EXPECT_EQ(gpu_mr(self->fd, rw, 1, 8192, READS, 0, 0, &mr), -EINVAL);
	EXPECT_EQ(gpu_mr(self->fd, rw, -1ull, 2, READS, 0, 0, &mr), -EINVAL);
	EXPECT_EQ(gpu_mr(self->fd, rw, 0, 0, READS, 0, 0, &mr), -EINVAL);
	EXPECT_EQ(gpu_mr(self->fd, null, 0, 4096, READS, 0, 0, &mr), -EINVAL);
	EXPECT_EQ(gpu_mr(self->fd, self->gpu[0].fd, 0, 4096, READS, 0, 0,
			 &mr), -EINVAL);
	EXPECT_EQ(gpu_mr(self->fd, 9999, 0, 4096, READS, 0, 0, &mr), -EBADF);
	EXPECT_EQ(gpu_mr(self->fd, -1, 0, 4096, READS, 0, 0, &mr), -EBADF);
	close(fd);
	close(rw);
	close(null);
}

/* The next MR_REVOKED of the file, its id; 0 in time for none. */
static uint32_t revoked(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct fabrex_event ev;

	while (poll(&p, 1, timeout_ms) == 1)
		if (read(fd, &ev, sizeof(ev)) == sizeof(ev) &&
		    ev.type == FABREX_EVENT_MR_REVOKED)
			return ev.id;
	return 0;
}

TEST_F(import, revoked_by_all_means)
{
	struct raw_mr other;

	ASSERT_EQ(raw_mr(self->fd, 4096, RAW_ALL, &other), 0);
	for (int how = 0; how < 4; how++) {
		struct gpu gpu = { .fd = -1 };
		struct dgpu_buffer state;
		struct gpu_buf buf;
		struct fabrex_sqe sqe;
		struct raw_mr mr;

		ASSERT_EQ(gpu_open(&gpu, 0), 0);
		ASSERT_EQ(gpu_alloc(&gpu, MIB, 0, &buf), 0);
		ASSERT_EQ(whole(self->fd, &buf, how == 3 ? FABREX_MR_PIN : 0,
				&mr), 0);
		sqe = move(&other, 0, &mr, 0, 64, self->self);
		EXPECT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
		ASSERT_EQ(gpu_state(&buf, &state), 0);
		EXPECT_EQ(state.out_mappings, 1);
		EXPECT_EQ(state.out_pins > 0, how == 3 || self->stuck);
		if (how == 1)
			close(gpu.fd);
		else
			EXPECT_EQ(how ? gpu_revoke(&buf) : gpu_free(&buf), 0);
		EXPECT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_RKEY);
		EXPECT_EQ(revoked(self->fd, RAW_WAIT_MS), mr.id);
		sqe = move(&mr, 0, &other, 0, 64, self->self);
		EXPECT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_LKEY);
		EXPECT_EQ(raw_destroy(self->fd, mr.id), 0);
		EXPECT_EQ(raw_destroy(self->fd, mr.id), -ENOENT);
		if (how != 1)
			close(gpu.fd);
	}
	EXPECT_EQ(raw_mr_free(&other), 0);
}

static int eventually(struct raw_queue *q, const struct fabrex_sqe *sqe)
{
	int status = -1;

	for (int i = 0; i < RAW_WAIT_MS / 10 && status; i++) {
		status = raw_do(q, sqe, NULL);
		if (status)
			usleep(10000);
	}
	return status;
}

TEST_F(import, moved_and_back)
{
	struct fabrex_sqe sqe = move(&self->mr[0], 0, &self->mr[1], 0, MIB,
				     self->self);
	struct dgpu_buffer state;
	uint32_t crc, other;

	if (self->stuck)
		SKIP(return, "this kernel has no DMABUF_MOVE_NOTIFY");
	for (int i = 0; i < 12; i++) {
		struct gpu_buf *b = &self->buf[i & 1];
		uint32_t place = i / 2 % 3 == 1 ? DGPU_PLACE_SYSTEM :
						  DGPU_PLACE_VRAM;

		ASSERT_EQ(gpu_pattern(&self->buf[0], MIB, i), 0);
		ASSERT_EQ(gpu_move(b, place), 0);
		ASSERT_EQ(eventually(&self->q, &sqe), 0);
		ASSERT_EQ(gpu_state(b, &state), 0);
		EXPECT_EQ(state.out_place, place);
		EXPECT_EQ(state.out_mappings, 1);
		ASSERT_EQ(gpu_crc(&self->buf[0], 0, MIB, &crc), 0);
		ASSERT_EQ(gpu_crc(&self->buf[1], 0, MIB, &other), 0);
		EXPECT_EQ(crc, other);
	}
	EXPECT_EQ(revoked(self->fd, 0), 0);
}

TEST_F(import, pinned)
{
	struct dgpu_buffer state;
	struct fabrex_sqe sqe;
	struct raw_mr mr;

	ASSERT_EQ(raw_destroy(self->fd, self->mr[1].id), 0);
	EXPECT_EQ(gpu_move(&self->buf[1], DGPU_PLACE_VRAM), 0);
	ASSERT_EQ(whole(self->fd, &self->buf[1], FABREX_MR_PIN, &mr), 0);
	ASSERT_EQ(gpu_state(&self->buf[1], &state), 0);
	EXPECT_EQ(state.out_pins, 1 + self->stuck);
	EXPECT_EQ(gpu_move(&self->buf[1], DGPU_PLACE_VRAM), -EBUSY);
	sqe = move(&self->mr[0], 0, &mr, 0, 64, self->self);
	EXPECT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(raw_destroy(self->fd, mr.id), 0);
	ASSERT_EQ(gpu_state(&self->buf[1], &state), 0);
	EXPECT_EQ(state.out_pins, 0);
	EXPECT_EQ(state.out_mappings, 0);
	EXPECT_EQ(gpu_move(&self->buf[1], DGPU_PLACE_VRAM), 0);
}

/* What the engine still has to do is done before the device may look. */
TEST_F(import, fences)
{
	struct dgpu_cmd cmd = { .op = DRACO_GPU_FILL,
				.dst = self->buf[1].handle, .length = 4096,
				.src1_offset = 0x4242424242424242ull };
	uint64_t begun = raw_now_ns();
	struct fabrex_sqe sqe;
	struct raw_mr host, mr;

	ASSERT_EQ(raw_mr(self->fd, 4096, RAW_ALL, &host), 0);
	ASSERT_EQ(gpu_submit(&self->gpu[1], &cmd, 1, DGPU_SUBMIT_ASYNC, 400,
			     NULL), 0);
	ASSERT_EQ(whole(self->fd, &self->buf[1], 0, &mr), 0);
	EXPECT_GE(raw_now_ns() - begun, 350000000ull);
	sqe = move(&mr, 0, &host, 0, 4096, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_TRUE(raw_all(host.addr, 4096, 0x42));
	EXPECT_EQ(raw_destroy(self->fd, mr.id), 0);
	EXPECT_EQ(raw_mr_free(&host), 0);
}

struct registration {
	int fd, err;
	struct gpu_buf *buf;
	struct raw_mr mr;
	bool done;
};

static void *registers(void *arg)
{
	struct registration *r = arg;

	r->err = whole(r->fd, r->buf, 0, &r->mr);
	__atomic_store_n(&r->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* In another thread, until it has mapped the buffer and waits for a fence. */
static int begins(struct registration *r, pthread_t *thread)
{
	struct dgpu_buffer state;
	int err;

	if (pthread_create(thread, NULL, registers, r))
		return -EAGAIN;
	do {
		err = gpu_state(r->buf, &state);
	} while (!err && state.out_mappings < 2 &&
		 !__atomic_load_n(&r->done, __ATOMIC_ACQUIRE));
	return err;
}

/* The buffer's reservation is needed to give the GPU more to do. */
TEST_F(import, fences_hold_up_nobody)
{
	struct dgpu_cmd cmd = { .op = DRACO_GPU_FILL,
				.dst = self->buf[1].handle, .length = 4096 };
	struct registration r = { .fd = self->fd, .buf = &self->buf[1] };
	struct fabrex_sqe sqe;
	struct raw_mr host;
	uint64_t first, seq;
	pthread_t thread;

	ASSERT_EQ(raw_mr(self->fd, 4096, RAW_ALL, &host), 0);
	ASSERT_EQ(gpu_submit(&self->gpu[1], &cmd, 1, DGPU_SUBMIT_ASYNC, 5000,
			     &first), 0);
	ASSERT_EQ(begins(&r, &thread), 0);
	cmd.src1_offset = 0x4343434343434343ull;
	ASSERT_EQ(gpu_submit(&self->gpu[1], &cmd, 1, DGPU_SUBMIT_ASYNC, 0,
			     &seq), 0);
	EXPECT_EQ(gpu_wait(&self->gpu[1], first, 1), -ETIMEDOUT);
	pthread_join(thread, NULL);
	ASSERT_EQ(r.err, 0);
	ASSERT_EQ(gpu_wait(&self->gpu[1], seq, 60000), 0);
	sqe = move(&r.mr, 0, &host, 0, 4096, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_TRUE(raw_all(host.addr, 4096, 0x43));
	EXPECT_EQ(raw_destroy(self->fd, r.mr.id), 0);
	EXPECT_EQ(raw_mr_free(&host), 0);
}

/* What was mapped before the wait is somewhere else after it. */
TEST_F(import, moved_while_it_is_waited_for)
{
	struct dgpu_cmd cmd = { .op = DRACO_GPU_FILL,
				.dst = self->buf[1].handle, .length = 4096,
				.src1_offset = 0x4444444444444444ull };
	struct registration r = { .fd = self->fd, .buf = &self->buf[1] };
	struct fabrex_sqe sqe;
	struct raw_mr host;
	pthread_t thread;
	uint64_t seq;

	if (self->stuck)
		SKIP(return, "what is mapped does not move");
	ASSERT_EQ(raw_mr(self->fd, 4096, RAW_ALL, &host), 0);
	ASSERT_EQ(gpu_submit(&self->gpu[1], &cmd, 1, DGPU_SUBMIT_ASYNC, 2000,
			     NULL), 0);
	ASSERT_EQ(begins(&r, &thread), 0);
	EXPECT_EQ(gpu_move(&self->buf[1], DGPU_PLACE_VRAM), 0);
	pthread_join(thread, NULL);
	ASSERT_EQ(r.err, 0);
	sqe = move(&r.mr, 0, &host, 0, 4096, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_TRUE(raw_all(host.addr, 4096, 0x44));
	/* Where it was before has the same bytes, but not these. */
	cmd.src1_offset = 0x4545454545454545ull;
	ASSERT_EQ(gpu_submit(&self->gpu[1], &cmd, 1, DGPU_SUBMIT_ASYNC, 0,
			     &seq), 0);
	ASSERT_EQ(gpu_wait(&self->gpu[1], seq, 60000), 0);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_TRUE(raw_all(host.addr, 4096, 0x45));
	EXPECT_EQ(raw_destroy(self->fd, r.mr.id), 0);
	EXPECT_EQ(raw_mr_free(&host), 0);
}

TEST_F(import, watch_page)
{
	struct fabrex_watch watch = { .size = sizeof(watch), .entries = 100 };
	int dmabuf = gpu_export(&self->buf[1], 0, 0, 0);
	volatile uint32_t *count;
	struct raw_mr mr, host;
	void *page = raw_pages(4096);
	int err;
	struct fabrex_mr_register arg = {
		.size = sizeof(arg), .flags = FABREX_MR_WATCH,
		.addr = (uintptr_t)page, .length = 4096, .watch = 98,
	};

	ASSERT_EQ(raw_ioctl(self->fd, FABREX_IOCTL_WATCH, &watch), 0);
	EXPECT_EQ(raw_ioctl(self->fd, FABREX_IOCTL_WATCH, &watch), -EEXIST);
	count = mmap64(NULL, watch.out_length, PROT_READ, MAP_SHARED, self->fd,
		       watch.out_mmap);
	ASSERT_NE(count, MAP_FAILED);
	EXPECT_EQ(mmap64(NULL, watch.out_length, PROT_WRITE, MAP_SHARED,
			 self->fd, watch.out_mmap), MAP_FAILED);
	ASSERT_EQ(gpu_mr(self->fd, dmabuf, 0, MIB, RAW_ALL, FABREX_MR_WATCH, 99,
			 &mr), 0);
	EXPECT_EQ(gpu_mr(self->fd, dmabuf, 0, MIB, RAW_ALL, FABREX_MR_WATCH,
			 100, &host), -EINVAL);
	/* Memory of processes is watched by kernels with MMU_NOTIFIER. */
	err = raw_ioctl(self->fd, FABREX_IOCTL_MR_REGISTER, &arg);
	EXPECT_TRUE(!err || err == -EOPNOTSUPP);
	EXPECT_EQ(count[99], 0);
	ASSERT_EQ(gpu_move(&self->buf[1], DGPU_PLACE_VRAM),
		  self->stuck ? -EBUSY : 0);
	EXPECT_EQ(count[99], !self->stuck);
	EXPECT_EQ(count[98], 0);
	ASSERT_EQ(gpu_revoke(&self->buf[1]), 0);
	EXPECT_GE(count[99], 1);
	munmap(page, 4096);
	EXPECT_EQ(count[98] > 0, !err);
	EXPECT_EQ(count[97], 0);
	EXPECT_EQ(raw_destroy(self->fd, mr.id), 0);
	munmap((void *)count, watch.out_length);
	close(dmabuf);
}

TEST_F(import, system_memory_by_udmabuf)
{
	struct fabrex_sqe sqe;
	struct raw_mr mr;
	uint8_t *p;
	int fd;

	fd = udma_create(MIB, (void **)&p);
	if (fd == -ENOENT)
		SKIP(return, "no /dev/udmabuf");
	ASSERT_GE(fd, 0);
	ASSERT_EQ(gpu_mr(self->fd, fd, 100, MIB - 100, RAW_ALL, 0, 0, &mr), 0);
	close(fd);
	raw_fill(p, MIB, 8);
	sqe = move(&mr, 0, &self->mr[1], 0, MIB - 100, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	ASSERT_EQ(gpu_fill(&self->buf[0], 0, MIB, 0), 0);
	sqe = move(&self->mr[1], 0, &mr, 4096, 65536, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(memcmp(p + 4196, p + 100, 4096), 0);
	EXPECT_EQ(raw_destroy(self->fd, mr.id), 0);
	munmap(p, MIB);
}

TEST_HARNESS_MAIN
