// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a careless or hostile process does with dma-bufs: everything closed in
 * every order, killed in the middle, foreign descriptors, moves that race with
 * registration. Kernel logs and counts tell the rest.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/dma-buf.h>

#include "kselftest_harness.h"
#include "bench.h"
#include "gpu.h"

#define MIB	(1u << 20)

/* All that one can have open at once. */
struct all {
	int port;
	uint16_t self;
	struct gpu gpu;
	struct gpu_buf buf;
	int dmabuf;
	struct raw_queue q;
	struct raw_mr mr;
	void *map;		/* of the buffer, by the GPU's file */
	void *shared;		/* of the dma-buf */
};

static int all_open(struct all *a)
{
	struct fabrex_port_query port;
	int err;

	memset(a, 0, sizeof(*a));
	a->port = raw_open();
	err = raw_query(a->port, &port) ?: gpu_open(&a->gpu, 0) ?:
	      gpu_alloc(&a->gpu, MIB, 0, &a->buf);
	if (err)
		return err;
	a->self = port.out_peer;
	a->dmabuf = gpu_export(&a->buf, 0, 0, 0);
	a->map = gpu_mmap(&a->buf);
	a->shared = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED,
			 a->dmabuf, 0);
	if (a->dmabuf < 0 || a->map == MAP_FAILED || a->shared == MAP_FAILED)
		return -EBADF;
	*(volatile char *)a->map = 1;
	*(volatile char *)a->shared = 2;
	return raw_queue(a->port, 64, 64, 0, &a->q) ?:
	       gpu_mr(a->port, a->dmabuf, 0, MIB, RAW_ALL, 0, 0, &a->mr);
}

static struct fabrex_sqe turn(const struct all *a)
{
	return raw_rw(FABREX_OP_WRITE, a->self, &a->mr, 0, a->mr.key, MIB / 2,
		      MIB / 2);
}

/* Operations are under way. */
static void busy(struct all *a)
{
	struct fabrex_sqe sqe = turn(a);

	for (int i = 0; i < 32; i++)
		raw_put(&a->q, &sqe);
	raw_submit(&a->q);
}

/* The nth of what is open goes. */
static void drop(struct all *a, int n)
{
	switch (n) {
	case 0:
		close(a->port);
		break;
	case 1:
		close(a->gpu.fd);
		break;
	case 2:
		close(a->dmabuf);
		break;
	case 3:
		munmap(a->map, MIB);
		break;
	case 4:
		munmap(a->shared, MIB);
		break;
	default:
		/* The rings; unmapped last they keep the port's file. */
		munmap(a->q.ring, a->q.info.out_ring_size);
		munmap((void *)a->q.db, RAW_PAGE);
	}
}

FIXTURE(hostile) {
	struct gpu gpu;
	struct bench_count count;
};

FIXTURE_SETUP(hostile)
{
	ASSERT_EQ(gpu_open(&self->gpu, 0), 0);
	ASSERT_EQ(bench_count(&self->count), 0);
}

/* Files of killed processes are closed a little later. */
FIXTURE_TEARDOWN(hostile)
{
	struct bench_count count = { 0 };
	struct dgpu_info info = { 0 };

	for (int i = 0; i < RAW_WAIT_MS / 10; i++) {
		gpu_info(&self->gpu, &info);
		bench_count(&count);
		if (info.out_free == self->gpu.info.out_free &&
		    !info.out_exports && count.mrs == self->count.mrs)
			break;
		usleep(10000);
	}
	EXPECT_EQ(info.out_free, self->gpu.info.out_free);
	EXPECT_EQ(info.out_buffers, 0);
	EXPECT_EQ(info.out_exports, 0);
	EXPECT_EQ(info.out_mappings, 0);
	EXPECT_EQ(count.mrs, self->count.mrs);
	EXPECT_EQ(count.queues, self->count.queues);
	EXPECT_EQ(count.pinned, self->count.pinned);
	close(self->gpu.fd);
}

#define ITEMS	6

/* Heap's algorithm. */
static bool next_order(int *order, int *state)
{
	for (int i = 1; i < ITEMS; i++) {
		int j = i & 1 ? state[i] : 0, swap;

		if (state[i] >= i) {
			state[i] = 0;
			continue;
		}
		swap = order[i];
		order[i] = order[j];
		order[j] = swap;
		state[i]++;
		return true;
	}
	return false;
}

/* Every seventh of the 720 orders. */
TEST_F_TIMEOUT(hostile, closed_in_any_order, 120)
{
	int order[ITEMS] = { 0, 1, 2, 3, 4, 5 }, state[ITEMS] = { 0 }, n = 0;
	struct all a;

	do {
		if (n++ % 7)
			continue;
		ASSERT_EQ(all_open(&a), 0);
		busy(&a);
		for (int i = 0; i < ITEMS; i++)
			drop(&a, order[i]);
	} while (next_order(order, state));
	EXPECT_EQ(n, 720);
}

static void child(int ready, bool busily)
{
	struct all a;
	struct fabrex_cqe cqe;
	struct fabrex_sqe sqe;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (all_open(&a) || write(ready, "", 1) != 1)
		_exit(1);
	sqe = turn(&a);
	while (busily) {
		busy(&a);
		for (int i = 0; i < 32; i++)
			raw_poll(&a.q, &cqe, RAW_WAIT_MS);
		raw_post(&a.q, &sqe);
		raw_poll(&a.q, &cqe, RAW_WAIT_MS);
	}
	for (;;)
		pause();
}

/* Importer and owner of the memory in one, killed with operations running. */
TEST_F_TIMEOUT(hostile, killed, 90)
{
	for (int i = 0; i < 20; i++) {
		int pipes[2], status;
		pid_t pid;
		char c;

		ASSERT_EQ(pipe(pipes), 0);
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			child(pipes[1], true);
		ASSERT_EQ(read(pipes[0], &c, 1), 1);
		usleep(raw_random(&(uint32_t){ i + 1 }) % 3000);
		kill(pid, SIGKILL);
		ASSERT_EQ(waitpid(pid, &status, 0), pid);
		EXPECT_TRUE(WIFSIGNALED(status));
		close(pipes[0]);
		close(pipes[1]);
	}
}

static int pass(int sock, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} u = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
			  .cmsg_level = SOL_SOCKET,
			  .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { .iov_base = "", .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = &u, .msg_controllen = sizeof(u) };

	memcpy(CMSG_DATA(&u.head), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -errno;
}

static int passed(int sock)
{
	char room[CMSG_SPACE(sizeof(int))], c;
	struct iovec iov = { .iov_base = &c, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	int fd = -1;

	if (recvmsg(sock, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static void owner(int sock)
{
	struct gpu gpu;
	struct gpu_buf buf;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (gpu_open(&gpu, 0) || gpu_alloc(&gpu, MIB, 0, &buf))
		_exit(1);
	fd = gpu_export(&buf, 0, 0, 0);
	if (fd < 0 || pass(sock, fd))
		_exit(1);
	for (;;)
		pause();
}

/* The process that owns the memory dies, the importer goes on. */
TEST_F_TIMEOUT(hostile, owner_killed, 90)
{
	struct fabrex_port_query port;
	int fd = raw_open();
	struct raw_queue q;

	ASSERT_EQ(raw_query(fd, &port), 0);
	ASSERT_EQ(raw_queue(fd, 64, 64, 0, &q), 0);
	for (int i = 0; i < 20; i++) {
		struct fabrex_cqe cqe = { .status = 0 };
		int socks[2], dmabuf, done = 0;
		struct fabrex_sqe sqe;
		struct raw_mr mr;
		pid_t pid;

		ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, socks), 0);
		pid = fork();
		if (!pid)
			owner(socks[1]);
		dmabuf = passed(socks[0]);
		ASSERT_GE(dmabuf, 0);
		ASSERT_EQ(gpu_mr(fd, dmabuf, 0, MIB, RAW_ALL, 0, 0, &mr), 0);
		sqe = raw_rw(FABREX_OP_WRITE, port.out_peer, &mr, 0, mr.key,
			     MIB / 2, MIB / 2);
		for (int n = 0; n < 32; n++)
			raw_put(&q, &sqe);
		raw_submit(&q);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		for (; done < 32 && raw_poll(&q, &cqe, RAW_WAIT_MS); done++)
			EXPECT_TRUE(cqe.status == FABREX_WC_OK ||
				    cqe.status == FABREX_WC_ABORTED ||
				    cqe.status == FABREX_WC_LKEY ||
				    cqe.status == FABREX_WC_RKEY)
				TH_LOG("status %u", cqe.status);
		EXPECT_EQ(done, 32);
		for (int n = 0; n < 500; n++)
			if (raw_do(&q, &sqe, &cqe) == FABREX_WC_LKEY)
				break;
		EXPECT_EQ(cqe.status, FABREX_WC_LKEY);
		EXPECT_LT(gpu_mr(fd, dmabuf, 0, MIB, RAW_ALL, 0, 0,
				 &(struct raw_mr){ 0 }), 0);
		EXPECT_EQ(raw_destroy(fd, mr.id), 0);
		close(dmabuf);
		close(socks[0]);
		close(socks[1]);
	}
	raw_queue_free(&q);
	close(fd);
}

struct mover {
	struct gpu_buf *buf;
	bool stop;
	unsigned int moves;
	int err;
};

static void *keep_moving(void *arg)
{
	struct mover *m = arg;

	for (unsigned int i = 0; !__atomic_load_n(&m->stop, __ATOMIC_RELAXED);
	     i++) {
		int err = gpu_move(m->buf, i % 5 ? DGPU_PLACE_VRAM :
						   DGPU_PLACE_SYSTEM);

		m->moves += !err;
		if (err && err != -EBUSY)
			m->err = err;
	}
	return NULL;
}

/* Registration, use and end while the buffer is on the move all the time. */
TEST_F_TIMEOUT(hostile, moves_race_with_registration, 90)
{
	struct mover m = { 0 };
	pthread_t thread;
	struct fabrex_sqe sqe;
	struct all a;
	int good = 0;

	ASSERT_EQ(all_open(&a), 0);
	m.buf = &a.buf;
	ASSERT_EQ(pthread_create(&thread, NULL, keep_moving, &m), 0);
	for (int i = 0; i < 150; i++) {
		struct raw_mr mr;
		int err = gpu_mr(a.port, a.dmabuf, 5, 9000, RAW_ALL,
				 i & 1 ? FABREX_MR_PIN : 0, 0, &mr);

		ASSERT_EQ(err, 0);
		sqe = raw_rw(FABREX_OP_WRITE, a.self, &mr, 0, mr.key, 4500,
			     4500);
		err = raw_do(&a.q, &sqe, NULL);
		EXPECT_TRUE(!err || err == FABREX_WC_LKEY ||
			    err == FABREX_WC_RKEY || err == FABREX_WC_ABORTED)
			TH_LOG("status %d", err);
		/* A pinned one does not move. */
		if (i & 1)
			EXPECT_EQ(err, 0);
		good += !err;
		EXPECT_EQ(raw_destroy(a.port, mr.id), 0);
	}
	__atomic_store_n(&m.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	EXPECT_EQ(m.err, 0);
	if (!gpu_stuck(&a.buf))
		EXPECT_GT(m.moves, 3);
	EXPECT_GE(good, 75);
	for (int i = 0; i < ITEMS; i++)
		drop(&a, i);
}

/* Descriptors that are no dma-buf, or one of somebody else's. */
TEST_F(hostile, foreign_descriptors)
{
	struct dma_buf_export_sync_file sync = { .flags = DMA_BUF_SYNC_RW,
						 .fd = -1 };
	struct raw_mr mr;
	struct all a;
	int fd;

	ASSERT_EQ(all_open(&a), 0);
	EXPECT_EQ(gpu_mr(a.port, a.port, 0, 4096, RAW_ALL, 0, 0, &mr), -EINVAL);
	EXPECT_EQ(gpu_mr(a.port, a.gpu.fd, 0, 4096, RAW_ALL, 0, 0, &mr),
		  -EINVAL);
	fd = memfd_create("plain", 0);
	EXPECT_EQ(gpu_mr(a.port, fd, 0, 4096, RAW_ALL, 0, 0, &mr), -EINVAL);
	close(fd);
	fd = udma_create(4096, NULL);
	if (fd >= 0) {
		EXPECT_EQ(gpu_mr(a.port, fd, 4095, 2, RAW_ALL, 0, 0, &mr),
			  -EINVAL);
		close(fd);
	}
	/* A fence that outlives all that it came from. */
	EXPECT_EQ(ioctl(a.dmabuf, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &sync), 0);
	EXPECT_EQ(gpu_mr(a.port, sync.fd, 0, 4096, RAW_ALL, 0, 0, &mr),
		  -EINVAL);
	EXPECT_EQ(gpu_mr(a.port, a.dmabuf, MIB - 10, 11, RAW_ALL, 0, 0, &mr),
		  -EINVAL);
	EXPECT_EQ(gpu_mr(a.port, a.dmabuf, -1ull, 1, RAW_ALL, 0, 0, &mr),
		  -EINVAL);
	for (int i = 0; i < ITEMS; i++)
		drop(&a, i);
	close(sync.fd);
}

TEST_HARNESS_MAIN
