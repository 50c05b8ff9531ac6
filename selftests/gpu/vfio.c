// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions of dma-bufs that vfio-pci exports, an exporter that is none of ours:
 * what is moved, and all its ways to revoke, with operations running. Needs
 * FABREX_VFIO="<bdf> <bdf>", two GPUs that the port's device can reach.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "gpu.h"
#include "vfio_export.h"

#define VRAM	2
#define SIZE	(256u << 10)
#define ODD	777u			/* nothing has to be aligned */

static char bdf[2][32];

FIXTURE(vfio) {
	int fd;
	uint16_t self;
	struct raw_queue q;
	struct vfio_export *v[2];
	uint8_t *mem[2];		/* SIZE of VRAM, as the CPU sees it */
	int dmabuf[2];
	struct raw_mr mr[2];		/* from ODD to the end of that */
};

static int share(struct vfio_export *v, int fd, int *dmabuf, struct raw_mr *mr)
{
	*dmabuf = vfio_export_dmabuf(v, VRAM, 0, SIZE);
	return *dmabuf < 0 ? *dmabuf :
	       gpu_mr(fd, *dmabuf, ODD, SIZE - ODD, RAW_ALL, 0, 0, mr);
}

FIXTURE_SETUP(vfio)
{
	struct fabrex_port_query port;
	const char *names = getenv("FABREX_VFIO");

	if (!names || sscanf(names, "%31s %31s", bdf[0], bdf[1]) != 2)
		SKIP(return, "FABREX_VFIO does not name two GPUs");
	self->fd = raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(raw_query(self->fd, &port), 0);
	self->self = port.out_peer;
	ASSERT_EQ(raw_queue(self->fd, 64, 256, 0, &self->q), 0);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(vfio_export_bind(bdf[i]), 0);
		ASSERT_EQ(vfio_export_open(bdf[i], &self->v[i]), 0);
		ASSERT_EQ(vfio_export_map(self->v[i], VRAM, 0, SIZE,
					  (void **)&self->mem[i]), 0);
		ASSERT_EQ(share(self->v[i], self->fd, &self->dmabuf[i],
				&self->mr[i]), 0);
	}
}

FIXTURE_TEARDOWN(vfio)
{
	raw_queue_free(&self->q);
	for (int i = 0; i < 2; i++) {
		munmap(self->mem[i], SIZE);
		close(self->dmabuf[i]);
		if (self->v[i])
			vfio_export_close(self->v[i]);
	}
	close(self->fd);
}

static struct fabrex_sqe move(const struct raw_mr *from, const struct raw_mr *to,
			      uint64_t offset, uint64_t length, uint16_t self)
{
	return raw_rw(FABREX_OP_WRITE, self, from, offset, to->key, offset,
		      length);
}

TEST_F(vfio, gpu_to_gpu)
{
	const uint64_t n = SIZE - ODD;
	struct fabrex_sqe w = move(&self->mr[0], &self->mr[1], 0, n,
				   self->self);
	struct fabrex_counters before, after;

	raw_fill(self->mem[0], SIZE, 1);
	memset(self->mem[1], 0xa5, SIZE);
	ASSERT_EQ(raw_counters(self->fd, 0, &before), 0);
	ASSERT_EQ(raw_do(&self->q, &w, NULL), FABREX_WC_OK);
	ASSERT_EQ(raw_counters(self->fd, 0, &after), 0);
	EXPECT_EQ(memcmp(self->mem[1] + ODD, self->mem[0] + ODD, n), 0);
	EXPECT_TRUE(raw_all(self->mem[1], ODD, 0xa5));
	/* Behind a translating IOMMU the device cannot know what is there. */
	EXPECT_EQ(after.out_p2p_bytes - before.out_p2p_bytes,
		  getenv("FABREX_TRANSLATED") ? 0 : n);
	EXPECT_EQ(after.out_host_bytes - before.out_host_bytes,
		  getenv("FABREX_TRANSLATED") ? n : 0);
	w = move(&self->mr[0], &self->mr[1], 1, n, self->self);
	EXPECT_EQ(raw_do(&self->q, &w, NULL), FABREX_WC_LBOUNDS);
}

TEST_F(vfio, gpu_and_host)
{
	struct fabrex_sqe sqe;
	struct raw_mr host;

	ASSERT_EQ(raw_mr(self->fd, SIZE, RAW_ALL, &host), 0);
	raw_fill(self->mem[0], SIZE, 2);
	sqe = move(&self->mr[0], &host, 0, SIZE - ODD, self->self);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(memcmp(host.addr, self->mem[0] + ODD, SIZE - ODD), 0);
	sqe = raw_rw(FABREX_OP_READ, self->self, &self->mr[1], 5, host.key, 5,
		     1000);
	memset(self->mem[1], 0, SIZE);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(memcmp(host.addr + 5, self->mem[1] + ODD + 5, 1000), 0);
	EXPECT_EQ(self->mem[1][ODD + 4], 0);
	EXPECT_EQ(self->mem[1][ODD + 1005], 0);
	EXPECT_EQ(raw_mr_free(&host), 0);
}

/* Regions beyond 4 GiB come in several pieces. */
TEST_F(vfio, across_pieces)
{
	const uint64_t piece = 0xfffff000ull, at = piece - 3000, n = 6000;
	struct fabrex_sqe sqe;
	struct raw_mr all;
	uint8_t *end;
	int fd;

	if (vfio_export_bar(self->v[0], VRAM) < piece + 4096)
		SKIP(return, "the GPU has less than 4 GiB");
	fd = vfio_export_dmabuf(self->v[0], VRAM, 0, 0);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(gpu_mr(self->fd, fd, 0, piece + 4096, RAW_ALL, 0, 0, &all),
		  0);
	close(fd);
	ASSERT_EQ(vfio_export_map(self->v[0], VRAM, piece - 4096, 8192,
				  (void **)&end), 0);
	memset(end, 0, 8192);
	raw_fill(self->mem[1], SIZE, 3);
	sqe = raw_rw(FABREX_OP_WRITE, self->self, &self->mr[1], 0, all.key, at,
		     n);
	ASSERT_EQ(raw_do(&self->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(memcmp(end + 1096, self->mem[1] + ODD, n), 0);
	EXPECT_TRUE(raw_all(end, 1096, 0));
	EXPECT_TRUE(raw_all(end + 1096 + n, 8192 - 1096 - n, 0));
	munmap(end, 8192);
	EXPECT_EQ(raw_destroy(self->fd, all.id), 0);
}

/* The ways to revoke; undone by restore(). */

enum { RESET, MEMORY, SLEEP, CLOSE, WAYS };

static int take_away(struct vfio_export **v, int how)
{
	switch (how) {
	case RESET:
		return vfio_export_reset(*v);
	case MEMORY:
		return vfio_export_memory(*v, false);
	case SLEEP:
		return vfio_export_sleep(*v, true);
	}
	vfio_export_close(*v);
	*v = NULL;
	return 0;
}

static int restore(struct vfio_export **v, const char *name, int how)
{
	switch (how) {
	case MEMORY:
		return vfio_export_memory(*v, true);
	case SLEEP:
		return vfio_export_sleep(*v, false);
	case CLOSE:
		return vfio_export_open(name, v);
	}
	return 0;
}

/* Waits for the MR_REVOKED of a region. */
static bool told(int fd, uint32_t id)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct fabrex_event ev;

	while (poll(&p, 1, RAW_WAIT_MS) == 1)
		if (read(fd, &ev, sizeof(ev)) == sizeof(ev) &&
		    ev.type == FABREX_EVENT_MR_REVOKED && ev.id == id)
			return true;
	return false;
}

TEST_F(vfio, revoked)
{
	struct raw_mr host;

	ASSERT_EQ(raw_mr(self->fd, 4096, RAW_ALL, &host), 0);
	for (int how = MEMORY; how < WAYS; how++) {
		struct fabrex_sqe to, from;

		to = move(&host, &self->mr[0], 0, 64, self->self);
		from = move(&self->mr[0], &host, 0, 64, self->self);
		EXPECT_EQ(raw_do(&self->q, &to, NULL), FABREX_WC_OK);
		munmap(self->mem[0], SIZE);	/* it would keep VFIO's file */
		ASSERT_EQ(take_away(&self->v[0], how), 0);
		EXPECT_EQ(raw_do(&self->q, &to, NULL), FABREX_WC_RKEY);
		EXPECT_EQ(raw_do(&self->q, &from, NULL), FABREX_WC_LKEY);
		EXPECT_TRUE(told(self->fd, self->mr[0].id));
		EXPECT_EQ(raw_destroy(self->fd, self->mr[0].id), 0);
		EXPECT_EQ(gpu_mr(self->fd, self->dmabuf[0], 0, 4096, RAW_ALL, 0,
				 0, &self->mr[0]), -ENODEV);
		close(self->dmabuf[0]);
		ASSERT_EQ(restore(&self->v[0], bdf[0], how), 0);
		ASSERT_EQ(vfio_export_map(self->v[0], VRAM, 0, SIZE,
					  (void **)&self->mem[0]), 0);
		ASSERT_EQ(share(self->v[0], self->fd, &self->dmabuf[0],
				&self->mr[0]), 0);
	}
	EXPECT_EQ(raw_mr_free(&host), 0);
}

/* Operations without pause; what became of them. */

struct traffic {
	int port;
	uint16_t self;
	struct raw_mr local;
	atomic_ullong key;		/* where to; 0: pause */
	atomic_bool stop;
	atomic_uint ok, failed, strange;
	pthread_t thread;
};

static void one_round(struct traffic *t, struct raw_queue *q, uint64_t key)
{
	struct fabrex_sqe sqe = raw_rw(FABREX_OP_WRITE, t->self, &t->local, 0,
				       key, 0, SIZE - ODD);
	unsigned int failed = t->failed;
	struct fabrex_cqe cqe;

	for (int i = 0; i < 8; i++)
		raw_put(q, &sqe);
	raw_submit(q);
	for (int i = 0; i < 8; i++) {
		if (!raw_poll(q, &cqe, RAW_WAIT_MS))
			t->strange++;
		else if (cqe.status == FABREX_WC_OK)
			t->ok++;
		else if (cqe.status == FABREX_WC_RKEY ||
			 cqe.status == FABREX_WC_ABORTED)
			t->failed++;
		else
			t->strange++;
	}
	if (t->failed != failed)
		usleep(500);
}

static void *traffic_run(void *arg)
{
	struct traffic *t = arg;
	struct raw_queue q;

	if (raw_queue(t->port, 64, 256, 0, &q)) {
		t->strange++;
		return NULL;
	}
	while (!t->stop) {
		uint64_t key = t->key;

		if (key)
			one_round(t, &q, key);
		else
			usleep(200);
	}
	raw_queue_free(&q);
	return NULL;
}

static bool reaches(atomic_uint *count, unsigned int wanted)
{
	for (int i = 0; i < RAW_WAIT_MS && *count < wanted; i++)
		usleep(1000);
	return *count >= wanted;
}

static int rounds(void)
{
	const char *n = getenv("FABREX_REVOKES");

	return n ? atoi(n) : 100;
}

/*
 * What is there after a revocation stays, whatever was under way. A region that
 * was told so works no more; until then it can be mapped again, as after a
 * reset.
 */
TEST_F_TIMEOUT(vfio, revoked_under_load, 600)
{
	struct traffic t = { .port = self->fd, .self = self->self };
	int n = rounds();

	ASSERT_EQ(raw_mr(self->fd, SIZE, RAW_ALL, &t.local), 0);
	memset(t.local.addr, 1, SIZE);
	ASSERT_EQ(pthread_create(&t.thread, NULL, traffic_run, &t), 0);
	for (int i = 0; i < n; i++) {
		unsigned int ok = t.ok, failed = t.failed;
		int how = i % WAYS;

		t.key = self->mr[0].key;
		ASSERT_TRUE(reaches(&t.ok, ok + 1));
		munmap(self->mem[0], SIZE);
		ASSERT_EQ(take_away(&self->v[0], how), 0);
		if (how != RESET) {
			EXPECT_TRUE(reaches(&t.failed, failed + 1));
			EXPECT_TRUE(told(self->fd, self->mr[0].id));
		}
		ASSERT_EQ(restore(&self->v[0], bdf[0], how), 0);
		ASSERT_EQ(vfio_export_map(self->v[0], VRAM, 0, SIZE,
					  (void **)&self->mem[0]), 0);
		if (how != RESET) {
			memset(self->mem[0], 2, SIZE);
			usleep(2000);
			EXPECT_TRUE(raw_all(self->mem[0], SIZE, 2));
		}
		t.key = 0;
		EXPECT_EQ(raw_destroy(self->fd, self->mr[0].id), 0);
		close(self->dmabuf[0]);
		ASSERT_EQ(share(self->v[0], self->fd, &self->dmabuf[0],
				&self->mr[0]), 0);
	}
	t.stop = true;
	pthread_join(t.thread, NULL);
	EXPECT_EQ(t.strange, 0);
	printf("# %d revocations, %u operations done, %u refused\n", n, t.ok,
	       t.failed);
	EXPECT_EQ(raw_mr_free(&t.local), 0);
}

TEST_HARNESS_MAIN
