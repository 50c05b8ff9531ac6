// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a function does for its model, with a client that is no friend: vectors,
 * DMA, memory that goes, requests to the client, death.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "vfio_user.h"
#include "vfio_user_proto.h"

#define PAGES		20000u

static void test_irqs(void)
{
	int ev[3], pipes[2], null;
	uint64_t pending;

	CHECK(start() && negotiate() && enable());
	CHECK(!pipe(pipes));
	null = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		ev[i] = eventfd(0, EFD_CLOEXEC);
	function_raise(fn, 1);			/* nobody listens: pending */
	CHECK(!client_read(&cl, 0, 0x8000, &pending, 8));
	CHECK_EQ(pending, 2);
	CHECK_EQ(client_set_irqs(&cl, 0, 3, ev), 0);
	CHECK_EQ(counted(ev[1]), 1);
	function_raise(fn, 2);
	function_raise(fn, 2);
	CHECK_EQ(counted(ev[2]), 2);
	CHECK_EQ(counted(ev[0]), 0);
	CHECK_EQ(client_set_irqs(&cl, 2, 1, NULL), 0);
	function_raise(fn, 2);
	CHECK_EQ(counted(ev[2]), 0);
	function_raise(fn, 31);
	function_raise(fn, 32);			/* no such vector */
	CHECK_EQ(client_set_irqs(&cl, 0, 1, &null), -EBADF);
	CHECK_EQ(client_set_irqs(&cl, 0, 1, pipes), -EBADF);
	CHECK_EQ(client_set_irqs(&cl, 31, 2, ev), -EINVAL);
	CHECK_EQ(client_set_irqs(&cl, 0xffffffffu, 2, ev), -EINVAL);
	function_raise(fn, 0);
	CHECK_EQ(counted(ev[0]), 1);
	CHECK_EQ(function_interrupts(fn), 4);
	for (int i = 0; i < 3; i++)
		close(ev[i]);
	close(pipes[0]);
	close(pipes[1]);
	close(null);
	stop();
}

/* A client that always wins the race against F_SETFL. */
static atomic_bool sabotage;

int fcntl(int fd, int cmd, ...)
{
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	if (cmd == F_SETFL && atomic_load(&sabotage))
		arg &= ~O_NONBLOCK;
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

/* Full, and whoever writes waits. */
static void fill_counter(int fd)
{
	uint64_t most = ~0ull - 1, n;

	fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	if (read(fd, &n, 8) < 0 && errno != EAGAIN)
		abort();
	if (write(fd, &most, 8) < 0 && errno != EAGAIN)
		abort();
	fcntl(fd, F_SETFL, O_RDWR);
}

static void *raise_often(void *arg)
{
	for (unsigned int i = 0; i < 20000; i++)
		function_raise(fn, i % 2);
	atomic_store((atomic_bool *)arg, true);
	return NULL;
}

/* A client that wants whoever raises its vectors to wait for it. */
static void test_full_eventfd(void)
{
	int ev[2] = { eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC) };
	atomic_bool done = false;
	pthread_t t;

	CHECK(start() && negotiate() && enable());
	CHECK_EQ(client_set_irqs(&cl, 0, 2, ev), 0);
	fill_counter(ev[0]);
	function_raise(fn, 0);
	function_raise(fn, 1);
	CHECK_EQ(counted(ev[1]), 1);
	CHECK(!function_unstick(fn));
	fill_counter(ev[0]);
	/* And all the time, so that it hits between two of our calls. */
	pthread_create(&t, NULL, raise_often, &done);
	for (int i = 0; !atomic_load(&done) && i < 200000; i++)
		fill_counter(ev[0]);
	for (int i = 0; !atomic_load(&done) && i < 6000; i++) {
		usleep(20000);
		function_unstick(fn);
	}
	CHECK(atomic_load(&done));
	pthread_join(t, NULL);
	close(ev[0]);
	close(ev[1]);
	stop();
}

static void test_stuck_eventfd(void)
{
	int ev = eventfd(0, EFD_CLOEXEC);
	atomic_bool done = false;
	bool freed = false;
	pthread_t t;

	CHECK(start() && negotiate() && enable());
	CHECK_EQ(client_set_irqs(&cl, 0, 1, &ev), 0);
	fill_counter(ev);
	atomic_store(&sabotage, true);
	pthread_create(&t, NULL, raise_often, &done);
	for (int i = 0; i < 1200 && !freed; i++) {
		usleep(100000);
		freed = function_unstick(fn);
	}
	atomic_store(&sabotage, false);
	CHECK(freed);
	CHECK(client_closed(&cl));
	pthread_join(t, NULL);
	CHECK(atomic_load(&done));
	close(ev);
	stop();
}

/* All of a range, across regions. */
static int move(struct dma_map *m, uint64_t addr, char *buf, size_t len,
		unsigned int prot)
{
	struct dma_hold h;

	for (; len; addr += h.len, buf += h.len, len -= h.len) {
		if (dma_get(m, addr, len, prot, &h))
			return -EFAULT;
		if (prot == DMA_PROT_READ)
			memcpy(buf, h.ptr, h.len);
		else
			memcpy(h.ptr, buf, h.len);
		if (dma_put(&h))
			return -EFAULT;
	}
	return 0;
}

static int dma_read(struct dma_map *m, uint64_t addr, void *buf, size_t len)
{
	return move(m, addr, buf, len, DMA_PROT_READ);
}

static int dma_write(struct dma_map *m, uint64_t addr, char *buf, size_t len)
{
	return move(m, addr, buf, len, DMA_PROT_WRITE);
}

static void test_dma(void)
{
	char hello[] = "hello";
	struct dma_hold h;

	CHECK(start() && negotiate() && enable());
	CHECK(!dma_write(function_dma(fn), GUEST + 100, hello, 5));
	CHECK(!memcmp(mem + 100, "hello", 5));
	CHECK_EQ(dma_get(function_dma(fn), GUEST + MEM_SIZE - 8, 100,
			 DMA_PROT_READ, &h), 0);
	CHECK_EQ(h.len, 8);
	CHECK(!dma_put(&h));
	CHECK_EQ(dma_get(function_dma(fn), GUEST + MEM_SIZE, 1, DMA_PROT_READ,
			 &h), -ENXIO);
	CHECK(!client_set_config(&cl, PCI_COMMAND, PCI_COMMAND_MEMORY, 2));
	CHECK_EQ(dma_get(function_dma(fn), GUEST, 1, DMA_PROT_READ, &h),
		 -EFAULT);
	CHECK_EQ(model.master, 101);
	stop();
}

static void test_bad_maps(void)
{
	int null = open("/dev/zero", O_RDWR), file, ev = eventfd(0, 0);
	struct vu_dma_unmap all = { .argsz = sizeof(all), .flags = 2 };
	char name[] = "/tmp/emu-test-XXXXXX";

	file = mkstemp(name);
	unlink(name);
	CHECK(!ftruncate(file, MEM_SIZE));
	CHECK(start() && negotiate() && enable());
	CHECK_EQ(client_map(&cl, GUEST, MEM_SIZE, mem_fd, 0), -EEXIST);
	CHECK_EQ(client_map(&cl, GUEST - 4096, 8192, mem_fd, 0), -EEXIST);
	CHECK_EQ(client_map(&cl, 0x1000, 0, mem_fd, 0), -EINVAL);
	CHECK_EQ(client_map(&cl, 0x1001, 4096, mem_fd, 0), -EINVAL);
	CHECK_EQ(client_map(&cl, ~0ull << 12, 8192, mem_fd, 0), -EINVAL);
	CHECK_EQ(client_map(&cl, 0x1000, 4096, mem_fd, MEM_SIZE), -EOVERFLOW);
	CHECK_EQ(client_map(&cl, 0x1000, 8192, mem_fd, ~0ull << 12),
		 -EOVERFLOW);
	CHECK_EQ(client_map(&cl, 0x1000, 4096, mem_fd, 77), -EINVAL);
	CHECK_EQ(client_map(&cl, 0x1000, 4096, null, 0), -EBADF);
	CHECK_EQ(client_map(&cl, 0x1000, 4096, ev, 0), -EBADF);
	CHECK_EQ(client_map(&cl, 0x1000, 4096, cl.fd, 0), -EBADF);
	CHECK_EQ(client_map(&cl, 0x1000, 4096, -1, 0), 0);	/* no memory */
	CHECK_EQ(client_unmap(&cl, GUEST, 4096), -EINVAL);	/* a part */
	CHECK_EQ(client_unmap(&cl, GUEST + 4096, MEM_SIZE), -EINVAL);
	CHECK_EQ(client_unmap(&cl, GUEST, 0), -EINVAL);
	CHECK_EQ(dma_map_count(function_dma(fn)), 2);
	CHECK(client_call(&cl, VU_DMA_UNMAP, &all, sizeof(all), NULL, 0, NULL,
			  0) >= 0);
	CHECK_EQ(dma_map_count(function_dma(fn)), 0);
	close(null);
	close(file);
	close(ev);
	stop();
}

/* An IOMMU maps single pages in any order, and takes whole ranges away. */
static void test_single_pages(void)
{
	const uint64_t base = 1ull << 32;
	struct dma_map *m;
	uint32_t got = 0, i;

	CHECK(start() && negotiate() && enable());
	m = function_dma(fn);
	for (i = 0; i < PAGES; i++) {
		uint64_t page = i * 7919u % PAGES;	/* each one once */

		if (client_map(&cl, base + page * 4096, 4096, mem_fd,
			       page % 16 * 4096))
			break;
	}
	CHECK_EQ(i, PAGES);
	CHECK_EQ(dma_map_count(m), PAGES + 1);
	CHECK_EQ(client_map(&cl, base + 5 * 4096, 4096, mem_fd, 0), -EEXIST);
	mem[3 * 4096 + 8] = 77;
	CHECK(!dma_read(m, base + (16 + 3) * 4096 + 8, &got, 1));
	CHECK_EQ(got, 77);
	CHECK(client_unmap(&cl, base + 16 * 4096, 4096) >= 0);
	CHECK_EQ(dma_read(m, base + (16 * 4096) - 1, &got, 2), -EFAULT);
	CHECK(client_unmap(&cl, base + 16 * 4096, 4096) >= 0);	/* none */
	CHECK_EQ(client_unmap(&cl, base, 4096 + 1), -EINVAL);
	CHECK(client_unmap(&cl, base, base) >= 0);
	CHECK_EQ(dma_map_count(m), 1);
	CHECK(client_unmap(&cl, base, -base) >= 0);	/* to the very end */
	CHECK(!dma_read(m, GUEST + 3 * 4096 + 8, &got, 1));
	CHECK(client_unmap(&cl, 0, ~0ull) >= 0);
	CHECK_EQ(dma_map_count(m), 0);
	stop();
}

struct pump {
	pthread_t thread;
	atomic_bool stop;
	atomic_uint done, refused;
};

static void *pump_dma(void *arg)
{
	struct pump *p = arg;
	static _Thread_local char buf[65536];

	while (!p->stop) {
		if (dma_write(function_dma(fn), GUEST, buf, sizeof(buf)))
			p->refused++;
		else
			p->done++;
	}
	return NULL;
}

static void test_unmap_under_dma(void)
{
	struct pump p[2] = { 0 };
	int i;

	CHECK(start() && negotiate() && enable());
	for (i = 0; i < 2; i++)
		pthread_create(&p[i].thread, NULL, pump_dma, &p[i]);
	for (i = 0; i < 300; i++) {
		if (client_unmap(&cl, GUEST, MEM_SIZE) < 0 ||
		    client_map(&cl, GUEST, MEM_SIZE, mem_fd, 0))
			break;
	}
	wait_until(&p[0].done, 1);
	wait_until(&p[1].done, 1);
	client_close(&cl);			/* and disconnect under it */
	wait_until(&model.detach, 1);
	for (int j = 0; j < 2; j++) {
		wait_until(&p[j].refused, 1);
		p[j].stop = true;
		pthread_join(p[j].thread, NULL);
	}
	CHECK_EQ(i, 300);
	CHECK(p[0].done && p[0].refused && p[1].done && p[1].refused);
	stop();
}

static void test_shrunk_memory(void)
{
	int fd = memory(0);
	char buf[16] = "x";

	CHECK(start() && negotiate() && enable());
	CHECK_EQ(client_map(&cl, 0x1000000, MEM_SIZE, fd, 0), 0);
	CHECK(!dma_write(function_dma(fn), 0x1000000, buf, 16));
	CHECK(!ftruncate(fd, 4096));
	CHECK(!dma_write(function_dma(fn), 0x1000000, buf, 16));
	CHECK_EQ(dma_write(function_dma(fn), 0x1000000 + 8192, buf, 16),
		 -EFAULT);
	CHECK(client_closed(&cl));		/* thrown out */
	CHECK(wait_until(&model.detach, 1));
	close(fd);
	client_close(&cl);
	CHECK(negotiate());
	stop();
}

static void test_dead(void)
{
	struct dma_hold h;
	uint32_t v = 0;

	CHECK(start() && negotiate() && enable());
	CHECK(!client_write(&cl, 2, 64, &v, 4));
	function_set_dead(fn);
	CHECK_EQ(client_config(&cl, PCI_VENDOR_ID, 4), 0xffffffffu);
	CHECK(!client_read(&cl, 0, 0, &v, 4));
	CHECK_EQ(v, 0xffffffffu);
	CHECK(!client_read(&cl, 2, 64, &v, 4));
	CHECK_EQ(*(uint32_t *)((char *)function_bar_memory(fn, 2) + 64),
		 0xffffffffu);
	CHECK_EQ(dma_get(function_dma(fn), GUEST, 1, DMA_PROT_READ, &h),
		 -EFAULT);
	CHECK(!client_set_config(&cl, PCI_COMMAND, PCI_COMMAND_MASTER, 2));
	CHECK_EQ(dma_get(function_dma(fn), GUEST, 1, DMA_PROT_READ, &h),
		 -EFAULT);
	stop();
}

/* ---- Requests to the client ---- */

struct question {
	pthread_t thread;
	bool write;
	uint64_t addr;
	uint8_t buf[VU_MAX_DMA];
	size_t len;
	int ret;
};

static void *ask_thread(void *arg)
{
	struct question *q = arg;

	q->ret = function_message(fn, q->write, q->addr, q->buf, q->len);
	return NULL;
}

static void ask(struct question *q, bool write, uint64_t addr, size_t len)
{
	q->write = write;
	q->addr = addr;
	q->len = len;
	q->ret = 1;
	pthread_create(&q->thread, NULL, ask_thread, q);
}

static int answer_to(struct question *q)
{
	pthread_join(q->thread, NULL);
	return q->ret;
}

static bool read_all(void *buf, size_t len)
{
	return recv(cl.fd, buf, len, MSG_WAITALL) == (ssize_t)len;
}

/* The next request that the server makes. */
static bool asked(struct vu_header *h, struct vu_dma_access *a, void *data)
{
	size_t len;

	if (!read_all(h, sizeof(*h)) || h->size < sizeof(*h) + 16 || h->flags)
		return false;
	len = h->size - sizeof(*h) - 16;	/* two 64-bit words first */
	if (!read_all(&a->addr, 8) || !read_all(&a->count, 8) ||
	    (len && !read_all(data, len)))
		return false;
	return len == (h->command == VU_DMA_WRITE ? a->count : 0);
}

static int answer(const struct vu_header *to, uint32_t flags,
		  const struct vu_dma_access *a, const void *data, size_t len)
{
	uint8_t msg[sizeof(*to) + sizeof(*a) + VU_MAX_DMA] = { 0 };
	struct vu_header h = *to;

	h.flags = VU_FLAG_REPLY | flags;
	h.error = flags ? EFAULT : 0;
	h.size = (uint32_t)(sizeof(h) + (a ? sizeof(*a) + len : 0));
	memcpy(msg, &h, sizeof(h));
	if (a)
		memcpy(msg + sizeof(h), a, sizeof(*a));
	if (len)
		memcpy(msg + sizeof(h) + sizeof(*a), data, len);
	return client_raw(&cl, msg, h.size, NULL, 0);
}

static void test_messages(void)
{
	static struct question q, r;
	static uint8_t data[VU_MAX_DMA + 64];
	struct vu_dma_access a, b;
	struct vu_header h, i;

	CHECK(start() && negotiate());
	CHECK_EQ(function_message(fn, false, 0, q.buf, 8), -EFAULT);
	CHECK(enable());
	ask(&q, false, 0x12345678000ull, VU_MAX_DMA);
	CHECK(asked(&h, &a, data));
	CHECK_EQ(h.command, VU_DMA_READ);
	CHECK_EQ(a.addr, 0x12345678000ll);
	CHECK_EQ(a.count, VU_MAX_DMA);
	for (unsigned int k = 0; k < VU_MAX_DMA; k++)
		data[k] = (uint8_t)(k * 7);
	CHECK(!answer(&h, 0, &a, data, VU_MAX_DMA));
	CHECK_EQ(answer_to(&q), 0);
	CHECK(!memcmp(q.buf, data, VU_MAX_DMA));
	memset(q.buf, 0x5c, 300);
	ask(&q, true, 0x1001, 300);
	CHECK(asked(&h, &a, data));
	CHECK_EQ(h.command, VU_DMA_WRITE);
	CHECK(a.addr == 0x1001 && a.count == 300);
	CHECK(data[0] == 0x5c && data[299] == 0x5c);
	/* Two at once, answered in the other order, and in between. */
	ask(&r, false, 0x2000, 8);
	CHECK(asked(&i, &b, data));
	CHECK_EQ(client_config(&cl, 0, 2), 0x1234);
	CHECK(!answer(&i, 0, &b, "abcdefgh", 8));
	CHECK(!answer(&h, 0, NULL, NULL, 0));
	CHECK_EQ(answer_to(&q), 0);
	CHECK_EQ(answer_to(&r), 0);
	CHECK(!memcmp(r.buf, "abcdefgh", 8));
	CHECK_EQ(function_message(fn, true, 0, data, VU_MAX_DMA + 1), -EINVAL);
	stop();
}

static void test_bad_answers(void)
{
	static struct question q;
	struct vu_dma_access a;
	struct vu_header h;
	uint8_t data[64];

	CHECK(start() && negotiate() && enable());
	ask(&q, false, 0, 64);
	CHECK(asked(&h, &a, data));
	CHECK(!answer(&h, VU_FLAG_ERROR, NULL, NULL, 0));
	CHECK_EQ(answer_to(&q), -EFAULT);
	ask(&q, false, 0, 64);
	CHECK(asked(&h, &a, data));
	CHECK(!answer(&h, 0, &a, data, 40));		/* too little */
	CHECK_EQ(answer_to(&q), -EFAULT);
	ask(&q, false, 0, 64);
	CHECK(asked(&h, &a, data));
	h.command = VU_DMA_WRITE;			/* not what was asked */
	CHECK(!answer(&h, 0, NULL, NULL, 0));
	CHECK(client_closed(&cl));
	CHECK_EQ(answer_to(&q), -ENOTCONN);
	client_close(&cl);
	CHECK(negotiate());
	ask(&q, false, 0, 8);				/* not enabled again */
	CHECK_EQ(answer_to(&q), -EFAULT);
	stop();
}

static unsigned int ms_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned int)((now.tv_sec - t->tv_sec) * 1000 +
			      (now.tv_nsec - t->tv_nsec) / 1000000);
}

/* Nobody waits for ever: a reset, a silent client, a client that is gone. */
static void test_no_answer(void)
{
	static struct question q;
	static uint8_t data[VU_MAX_DMA];
	struct timespec t;
	struct vu_dma_access a;
	struct vu_header h;

	CHECK(start() && negotiate() && enable());
	ask(&q, false, 0, 64);
	CHECK(asked(&h, &a, data));
	CHECK_EQ(client_call(&cl, VU_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0),
		 0);
	CHECK_EQ(answer_to(&q), -ENOTCONN);
	CHECK(!answer(&h, 0, &a, data, 64));		/* late: never mind */
	CHECK_EQ(client_config(&cl, 0, 2), 0x1234);
	CHECK(!client_set_config(&cl, PCI_COMMAND, PCI_COMMAND_MASTER, 2));
	clock_gettime(CLOCK_MONOTONIC, &t);
	ask(&q, false, 0, 64);
	CHECK(client_closed(&cl));
	CHECK_EQ(answer_to(&q), -ETIMEDOUT);
	CHECK(ms_since(&t) >= 3900);
	client_close(&cl);
	close(mem_fd);
	munmap(mem, MEM_SIZE);
	CHECK(negotiate() && enable());
	ask(&q, true, 0, VU_MAX_DMA);
	usleep(20000);
	client_close(&cl);
	CHECK_EQ(answer_to(&q), -ENOTCONN);
	stop();
}

/* It neither answers nor reads. */
static void test_deaf_client(void)
{
	static struct question q[24];
	unsigned int late = 0, gone = 0;

	CHECK(start() && negotiate() && enable());
	for (int i = 0; i < 24; i++)
		ask(&q[i], true, 0, VU_MAX_DMA);
	for (int i = 0; i < 24; i++) {
		int ret = answer_to(&q[i]);

		late += ret == -ETIMEDOUT;
		gone += ret == -ENOTCONN || ret == -EFAULT;
	}
	CHECK_EQ(late + gone, 24);
	CHECK(late >= 1);
	CHECK(wait_until(&model.detach, 1));
	client_close(&cl);
	CHECK(negotiate());
	stop();
}

static const struct tap_test tests[] = {
	{ "irqs", test_irqs },
	{ "full_eventfd", test_full_eventfd },
	{ "stuck_eventfd", test_stuck_eventfd },
	{ "dma", test_dma },
	{ "bad_maps", test_bad_maps },
	{ "single_pages", test_single_pages },
	{ "unmap_under_dma", test_unmap_under_dma },
	{ "shrunk_memory", test_shrunk_memory },
	{ "dead", test_dead },
	{ "messages", test_messages },
	{ "bad_answers", test_bad_answers },
	{ "no_answer", test_no_answer },
	{ "deaf_client", test_deaf_client },
};

int main(int argc, char **argv)
{
	return bench_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
