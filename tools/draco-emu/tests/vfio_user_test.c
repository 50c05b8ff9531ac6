// SPDX-License-Identifier: GPL-2.0-only
/*
 * A function behind its socket, driven by a client: negotiation, regions,
 * config space, interrupts, DMA, resets, hostile messages. The model counts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "function.h"
#include "tap.h"
#include "vfio_user.h"
#include "vfio_user_proto.h"

#define MEM_SIZE	(4u << 20)
#define GUEST		0x40000000ull
#define REGS		256
#define PAGES		20000u

static char sock_path[128];
static struct function *fn;
static struct client cl;
static int mem_fd = -1;
static uint8_t *mem;

/* ---- The model ---- */

static struct {
	uint8_t regs[REGS];
	size_t last_len;
	atomic_uint attach, detach, flr, device, lost, bars, master;
} model;

static void m_read(void *arg, unsigned int bar, uint64_t offset, void *buf,
		   size_t count)
{
	(void)arg;
	memset(buf, (int)bar + 0x10, count);
	if (!bar && offset + count <= REGS)
		memcpy(buf, model.regs + offset, count);
}

static void m_write(void *arg, unsigned int bar, uint64_t offset,
		    const void *buf, size_t count)
{
	(void)arg;
	model.last_len = count;
	if (!bar && offset + count <= REGS)
		memcpy(model.regs + offset, buf, count);
}

static void m_attach(void *arg)
{
	(void)arg;
	model.attach++;
}

static void m_detach(void *arg)
{
	(void)arg;
	model.detach++;
}

static void m_reset(void *arg, enum function_reset why)
{
	(void)arg;
	if (why == FUNCTION_RESET_FLR)
		model.flr++;
	else if (why == FUNCTION_RESET_DEVICE)
		model.device++;
	else
		model.lost++;
	memset(model.regs, 0, sizeof(model.regs));
}

static void m_master(void *arg, bool on)
{
	(void)arg;
	model.master += on ? 1 : 100;
}

static void m_bars(void *arg)
{
	(void)arg;
	model.bars++;
}

static const struct function_ops ops = {
	.bar_read = m_read, .bar_write = m_write, .attach = m_attach,
	.detach = m_detach, .reset = m_reset, .bus_master = m_master,
	.bars = m_bars,
};

/* ---- Set-up ---- */

static bool wait_until(atomic_uint *v, unsigned int n)
{
	int i;

	for (i = 0; i < 10000; i++) {
		if (atomic_load(v) >= n)
			return true;
		usleep(1000);
	}
	return false;
}

static int memory(unsigned int seals)
{
	int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, MEM_SIZE))
		abort();
	if (seals)
		fcntl(fd, F_ADD_SEALS, seals);
	return fd;
}

static bool start(void)
{
	struct function_desc d = {
		.name = "test", .socket = sock_path, .vendor = 0x1234,
		.device = 0xda00, .class_code = 0x068000, .revision = 1,
		.link_speed = 4, .link_width = 16,
		.bar[0] = { .size = 0x10000, .flags = FUNCTION_BAR_64 },
		.bar[2] = { .size = 1 << 20, .flags = FUNCTION_BAR_64 |
			    FUNCTION_BAR_PREFETCH | FUNCTION_BAR_MEMORY },
		.bar[4] = { .size = 1 << 20, .flags = FUNCTION_BAR_64 },
		.msix_vectors = 32, .msix_bar = 0, .msix_table = 0x4000,
		.msix_pba = 0x8000, .dma = true,
	};

	memset(&model, 0, sizeof(model));
	return !function_create(&d, &ops, NULL, &fn);
}

static bool negotiate(void)
{
	return !client_connect(&cl, sock_path) && client_version(&cl) > 0;
}

/* Decode BARs, be a master, and map guest memory. */
static bool enable(void)
{
	mem_fd = memory(F_SEAL_SHRINK);
	mem = mmap(NULL, MEM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, mem_fd,
		   0);
	return !client_set_config(&cl, PCI_COMMAND, PCI_COMMAND_MEMORY |
				  PCI_COMMAND_MASTER, 2) &&
	       !client_map(&cl, GUEST, MEM_SIZE, mem_fd, 0);
}

static void stop(void)
{
	client_close(&cl);
	function_destroy(fn);
	fn = NULL;
	if (mem_fd >= 0) {
		munmap(mem, MEM_SIZE);
		close(mem_fd);
	}
	mem_fd = -1;
}

/* ---- Tests ---- */

static void test_version(void)
{
	char reply[256], msg[64] = { 0 };

	CHECK(start());
	CHECK(!client_connect(&cl, sock_path));
	CHECK(client_call(&cl, VU_VERSION, msg, 4, NULL, 0, reply,
			  sizeof(reply)) > 4);
	CHECK(strstr(reply + 4, "\"max_msg_fds\":16"));
	CHECK(!strstr(reply + 4, "write_multiple"));
	CHECK(wait_until(&model.attach, 1));
	client_close(&cl);
	CHECK(wait_until(&model.detach, 1));
	CHECK(negotiate());		/* another client may come */
	CHECK(wait_until(&model.attach, 2));
	stop();
	CHECK_EQ(model.lost, 2);
}

static void test_info(void)
{
	struct vu_device_info i = { .argsz = sizeof(i) };
	struct vu_irq_info q = { .argsz = sizeof(q), .index = VU_IRQ_MSIX };

	CHECK(start() && negotiate());
	CHECK_EQ(client_call(&cl, VU_DEVICE_GET_INFO, &i, sizeof(i), NULL, 0,
			     &i, sizeof(i)), sizeof(i));
	CHECK_EQ(i.num_regions, 9);
	CHECK_EQ(i.num_irqs, 5);
	CHECK_EQ(client_call(&cl, VU_DEVICE_GET_IRQ_INFO, &q, sizeof(q), NULL,
			     0, &q, sizeof(q)), sizeof(q));
	CHECK_EQ(q.count, 32);
	q.index = 5;
	CHECK_EQ(client_call(&cl, VU_DEVICE_GET_IRQ_INFO, &q, sizeof(q), NULL,
			     0, &q, sizeof(q)), -EINVAL);
	CHECK_EQ(client_call(&cl, VU_DIRTY_PAGES, NULL, 0, NULL, 0, NULL, 0),
		 -EOPNOTSUPP);
	stop();
}

static void test_regions(void)
{
	struct { struct vu_region_info i; struct vu_sparse_cap c; } r = {
		.i = { .argsz = sizeof(r.i), .index = 2 }
	};
	uint8_t *p;

	CHECK(start() && negotiate() && enable());
	CHECK_EQ(client_call(&cl, VU_DEVICE_GET_REGION_INFO, &r.i, sizeof(r.i),
			     NULL, 0, &r, sizeof(r)), sizeof(r.i));
	CHECK_EQ(r.i.argsz, sizeof(r));		/* wants more room */
	CHECK_EQ(cl.reply_fd, -1);
	r.i.argsz = sizeof(r);
	CHECK_EQ(client_call(&cl, VU_DEVICE_GET_REGION_INFO, &r.i, sizeof(r.i),
			     NULL, 0, &r, sizeof(r)), sizeof(r));
	CHECK_EQ(r.i.size, 1 << 20);
	CHECK_EQ(r.i.flags, 0xf);
	CHECK_EQ(r.c.nr_areas, 1);
	CHECK_EQ(r.c.size, 1 << 20);
	CHECK(cl.reply_fd >= 0);
	CHECK(ftruncate(cl.reply_fd, 0) < 0);	/* sealed */
	p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED,
		 cl.reply_fd, 0);
	CHECK(p != MAP_FAILED);
	p[77] = 0x5a;
	CHECK_EQ(((uint8_t *)function_bar_memory(fn, 2))[77], 0x5a);
	CHECK(!client_read(&cl, 2, 70, &r, 16));
	CHECK_EQ(((uint8_t *)&r)[7], 0x5a);
	munmap(p, 1 << 20);
	stop();
}

static void test_access(void)
{
	uint8_t buf[4096], back[4096];
	uint32_t v = 0x12345678;

	memset(buf, 0xa5, sizeof(buf));
	CHECK(start() && negotiate());
	CHECK(!client_read(&cl, 0, 0, &v, 4));
	CHECK_EQ(v, 0xffffffffu);		/* memory enable is off */
	CHECK(enable());
	v = 0x12345678;
	CHECK(!client_write(&cl, 0, 8, &v, 4));
	CHECK(!client_read(&cl, 0, 9, back, 2));
	CHECK_EQ(back[0], 0x56);
	CHECK(!client_post(&cl, 0, 8, buf, 3));	/* posted, then read */
	CHECK(!client_read(&cl, 0, 8, back, 4));
	CHECK(!memcmp(back, "\xa5\xa5\xa5\x12", 4));
	CHECK(!client_write(&cl, 4, 0xff000, buf, 4096));
	CHECK_EQ(model.last_len, 4096);
	CHECK(!client_read(&cl, 4, 1, back, 4095));
	CHECK_EQ(back[4094], 0x14);
	stop();
}

static void test_write_multi(void)
{
	struct { uint64_t n; struct vu_multi_write w[3]; } m = {
		.n = 3, .w = {
			{ .offset = 0, .count = 4, .data = "abcd" },
			{ .offset = 4, .count = 8, .data = "efghijkl" },
			{ .offset = 12, .count = 1, .data = "m" },
		}
	};
	char back[13];

	CHECK(start() && negotiate() && enable());
	CHECK(!client_send(&cl, VU_REGION_WRITE_MULTI, VU_FLAG_NO_REPLY, &m,
			   sizeof(m), NULL, 0));
	CHECK(!client_read(&cl, 0, 0, back, 13));
	CHECK(!memcmp(back, "abcdefghijklm", 13));
	m.w[2].count = 9;
	CHECK_EQ(client_call(&cl, VU_REGION_WRITE_MULTI, &m, sizeof(m), NULL,
			     0, NULL, 0), -EPIPE);
	stop();
}

static void test_config(void)
{
	uint64_t addr, size;

	CHECK(start() && negotiate());
	CHECK_EQ(client_config(&cl, PCI_VENDOR_ID, 4), 0xda001234u);
	CHECK_EQ(client_config(&cl, PCI_CLASS_REVISION, 4), 0x06800001u);
	CHECK(!client_set_config(&cl, PCI_VENDOR_ID, 0, 4));
	CHECK_EQ(client_config(&cl, PCI_VENDOR_ID, 4), 0xda001234u);
	CHECK(!client_set_config(&cl, PCI_BASE_ADDRESS_0, ~0u, 4));
	CHECK(!client_set_config(&cl, PCI_BASE_ADDRESS_1, ~0u, 4));
	CHECK_EQ(client_config(&cl, PCI_BASE_ADDRESS_0, 4), 0xffff0004u);
	CHECK_EQ(client_config(&cl, PCI_BASE_ADDRESS_1, 4), 0xffffffffu);
	CHECK(!function_bar_addr(fn, 0, &addr, &size));
	CHECK(!client_set_config(&cl, PCI_BASE_ADDRESS_0, 0xfe000000u, 4));
	CHECK(!client_set_config(&cl, PCI_BASE_ADDRESS_1, 0x12, 4));
	CHECK(!client_set_config(&cl, PCI_COMMAND, PCI_COMMAND_MEMORY, 2));
	CHECK(function_bar_addr(fn, 0, &addr, &size));
	CHECK_EQ(addr, 0x12fe000000ll);
	CHECK_EQ(size, 0x10000);
	CHECK(model.bars >= 1);
	CHECK(!client_set_config(&cl, PCI_COMMAND, 0, 2));
	CHECK(!function_bar_addr(fn, 0, &addr, &size));
	stop();
}

static uint32_t find_cap(uint8_t id)
{
	uint32_t at = client_config(&cl, PCI_CAPABILITY_LIST, 1), n = 0;

	while (at && n++ < 16) {
		if (client_config(&cl, at, 1) == id)
			return at;
		at = client_config(&cl, at + 1, 1);
	}
	return 0;
}

/* In D3hot nothing is decoded, and nothing is forgotten. */
static void test_asleep(void)
{
	uint64_t addr, size;
	uint32_t pm;

	CHECK(start() && negotiate());
	pm = find_cap(PCI_CAP_ID_PM);
	CHECK(pm);
	CHECK(!client_set_config(&cl, PCI_BASE_ADDRESS_0, 0xfe000000u, 4));
	CHECK(!client_set_config(&cl, PCI_BASE_ADDRESS_1, 0x12, 4));
	CHECK(!client_set_config(&cl, PCI_COMMAND, PCI_COMMAND_MEMORY, 2));
	CHECK(function_bar_addr(fn, 0, &addr, &size));
	CHECK(!client_set_config(&cl, pm + PCI_PM_CTRL, 3, 2));
	CHECK(!function_bar_addr(fn, 0, &addr, &size));
	CHECK_EQ(client_config(&cl, PCI_COMMAND, 2), PCI_COMMAND_MEMORY);
	CHECK(!client_set_config(&cl, pm + PCI_PM_CTRL, 0, 2));
	CHECK(function_bar_addr(fn, 0, &addr, &size));
	CHECK_EQ(addr, 0x12fe000000ll);
	stop();
}

static void test_flr(void)
{
	uint32_t exp, one = 1;
	uint64_t addr, size;

	CHECK(start() && negotiate() && enable());
	exp = find_cap(PCI_CAP_ID_EXP);
	CHECK(exp && find_cap(PCI_CAP_ID_MSIX) && find_cap(PCI_CAP_ID_PM));
	CHECK(client_config(&cl, exp + PCI_EXP_DEVCAP, 4) & PCI_EXP_DEVCAP_FLR);
	CHECK(!client_set_config(&cl, PCI_BASE_ADDRESS_0, 0xfe000000u, 4));
	CHECK(!client_write(&cl, 0, 0, &one, 4));
	CHECK(!client_set_config(&cl, exp + PCI_EXP_DEVCTL,
				 PCI_EXP_DEVCTL_BCR_FLR, 2));
	CHECK_EQ(model.flr, 1);
	CHECK_EQ(client_config(&cl, PCI_COMMAND, 2), 0);
	CHECK(!client_set_config(&cl, PCI_COMMAND, PCI_COMMAND_MEMORY, 2));
	CHECK(function_bar_addr(fn, 0, &addr, &size));	/* kept, see config.h */
	CHECK(!client_read(&cl, 0, 0, &one, 4));
	CHECK_EQ(one, 0);
	CHECK_EQ(client_call(&cl, VU_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0),
		 0);
	CHECK_EQ(model.device, 1);
	CHECK_EQ(client_config(&cl, PCI_BASE_ADDRESS_0, 4), 4);
	stop();
}

static uint64_t counted(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t n = 0;

	if (poll(&p, 1, 200) == 1 && read(fd, &n, 8) != 8)
		return 999;
	return n;
}

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
	for (int i = 0; !atomic_load(&done) && i < 100; i++) {
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
	for (int i = 0; i < 10 && !freed; i++) {
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

static void test_dma(void)
{
	uint64_t old, word = 5;
	struct dma_hold h;

	CHECK(start() && negotiate() && enable());
	CHECK(!dma_write(function_dma(fn), GUEST + 100, "hello", 5));
	CHECK(!memcmp(mem + 100, "hello", 5));
	memcpy(mem + 64, &word, 8);
	CHECK(!dma_fetch_add(function_dma(fn), GUEST + 64, 3, &old));
	CHECK_EQ(old, 5);
	CHECK(!dma_cmp_swap(function_dma(fn), GUEST + 64, 8, 9, &old));
	CHECK_EQ(old, 8);
	CHECK_EQ(mem[64], 9);
	CHECK_EQ(dma_fetch_add(function_dma(fn), GUEST + 65, 1, &old), -EINVAL);
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
	clock_gettime(CLOCK_MONOTONIC, &t);
	CHECK_EQ(client_call(&cl, VU_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0),
		 0);
	CHECK_EQ(answer_to(&q), -ENOTCONN);
	CHECK(ms_since(&t) < 1000);
	CHECK(!answer(&h, 0, &a, data, 64));		/* late: never mind */
	CHECK_EQ(client_config(&cl, 0, 2), 0x1234);
	CHECK(!client_set_config(&cl, PCI_COMMAND, PCI_COMMAND_MASTER, 2));
	clock_gettime(CLOCK_MONOTONIC, &t);
	ask(&q, false, 0, 64);
	CHECK(client_closed(&cl));
	CHECK_EQ(answer_to(&q), -ETIMEDOUT);
	CHECK(ms_since(&t) >= 3900 && ms_since(&t) < 4900);
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

/* Each of these ends the connection; the next client is served. */

static bool kills(uint16_t command, uint32_t flags, const void *payload,
		  size_t len, const int *fds, unsigned int nfds)
{
	bool ok = negotiate();

	ok = ok && !client_send(&cl, command, flags, payload, len, fds, nfds);
	ok = ok && client_closed(&cl);
	client_close(&cl);
	return ok;
}

static bool kills_access(uint16_t command, uint32_t region, uint64_t offset,
			 uint32_t count, size_t bytes)
{
	uint8_t msg[256] = { 0 };
	struct vu_access a = {
		.offset = offset, .region = region, .count = count,
	};

	memcpy(msg, &a, sizeof(a));
	return kills(command, 0, msg, sizeof(a) + bytes, NULL, 0);
}

static void test_bad_access(void)
{
	CHECK(start());
	CHECK(kills_access(VU_REGION_READ, 9, 0, 4, 0));
	CHECK(kills_access(VU_REGION_READ, 6, 0, 4, 0));
	CHECK(kills_access(VU_REGION_READ, 0, 0xfffe, 4, 0));
	CHECK(kills_access(VU_REGION_READ, 0, ~0ull - 1, 4, 0));
	CHECK(kills_access(VU_REGION_READ, 2, 0, 65537, 0));
	CHECK(kills_access(VU_REGION_READ, 0, 0, 0, 0));
	CHECK(kills_access(VU_REGION_READ, 0, 0, 4, 4));
	CHECK(kills_access(VU_REGION_READ, 7, 4096, 1, 0));
	CHECK(kills_access(VU_REGION_WRITE, 7, 4094, 4, 4));
	CHECK(kills_access(VU_REGION_WRITE, 0, 0, 8, 4));
	CHECK(kills_access(VU_REGION_WRITE, 0, 0, 0xffffffffu, 4));
	CHECK(kills_access(VU_REGION_WRITE, 1, 0, 4, 4));
	stop();
}

static void test_bad_messages(void)
{
	struct vu_header h = { .command = VU_DEVICE_RESET, .size = 15 };
	struct vu_irq_set q = { .argsz = sizeof(q), .flags = 0x27, .index = 2 };
	struct vu_dma_map m = { .argsz = sizeof(m), .flags = 7, .size = 4096 };
	char json[] = "\0\0\0\0[[[[[[[[[[[[[[[[[[", v1[5] = { 1, 0, 0, 0, 0 };
	int fds[17];

	for (int i = 0; i < 17; i++)
		fds[i] = 0;
	CHECK(start());
	CHECK(kills(VU_DEVICE_RESET, 1, NULL, 0, NULL, 0));
	CHECK(kills(VU_DEVICE_RESET, 0x40, NULL, 0, NULL, 0));
	CHECK(kills(VU_DEVICE_RESET, 0, fds, 4, NULL, 0));
	CHECK(kills(VU_DEVICE_RESET, 0, NULL, 0, fds, 1));
	CHECK(kills(VU_DEVICE_RESET, 0, NULL, 0, fds, 17));
	CHECK(kills(VU_VERSION, 0, json, 4, NULL, 0));	/* a second one */
	CHECK(kills(VU_DEVICE_SET_IRQS, 0, &q, sizeof(q), NULL, 0));
	CHECK(kills(VU_DMA_MAP, 0, &m, sizeof(m), NULL, 0));
	CHECK(kills(VU_DMA_MAP, 0, &m, 8, NULL, 0));
	m.flags = 3;
	CHECK(kills(VU_DMA_MAP, 0, &m, sizeof(m), fds, 2));

	CHECK(negotiate());
	CHECK(!client_raw(&cl, &h, sizeof(h), NULL, 0));
	CHECK(client_closed(&cl));
	client_close(&cl);
	h.size = 0xffffffffu;
	CHECK(negotiate());
	CHECK(!client_raw(&cl, &h, sizeof(h), NULL, 0));
	CHECK(client_closed(&cl));
	client_close(&cl);

	CHECK(!client_connect(&cl, sock_path));		/* before VERSION */
	CHECK_EQ(client_call(&cl, VU_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0),
		 -EPIPE);
	client_close(&cl);
	CHECK(!client_connect(&cl, sock_path));
	CHECK_EQ(client_call(&cl, VU_VERSION, json, sizeof(json), NULL, 0,
			     NULL, 0), -EPIPE);
	client_close(&cl);
	CHECK(!client_connect(&cl, sock_path));
	CHECK_EQ(client_call(&cl, VU_VERSION, v1, 5, NULL, 0, NULL, 0), -EPIPE);
	client_close(&cl);
	CHECK(negotiate());
	stop();
}

/* Byte by byte, and several messages in one write. */
static void test_framing(void)
{
	struct {
		struct vu_header h;
		struct vu_access a;
		uint32_t v;
	} __attribute__((packed)) w = {
		.h = { .command = VU_REGION_WRITE, .size = sizeof(w),
		       .flags = VU_FLAG_NO_REPLY },
		.a = { .offset = 0, .region = 0, .count = 4 }, .v = 0x11,
	};
	uint8_t many[50 * sizeof(w)];
	uint32_t v;

	CHECK(start() && negotiate() && enable());
	for (size_t i = 0; i < sizeof(w); i++) {
		CHECK(!client_raw(&cl, (char *)&w + i, 1, NULL, 0));
		if (i % 7 == 0)
			usleep(500);
	}
	CHECK(!client_read(&cl, 0, 0, &v, 4));
	CHECK_EQ(v, 0x11);
	for (int i = 0; i < 50; i++) {
		w.v = (uint32_t)i;
		w.a.offset = 4 * (unsigned int)i;
		memcpy(many + (size_t)i * sizeof(w), &w, sizeof(w));
	}
	CHECK(!client_raw(&cl, many, sizeof(many), NULL, 0));
	CHECK(!client_read(&cl, 0, 4 * 49, &v, 4));
	CHECK_EQ(v, 49);
	stop();
}

/* A descriptor belongs to its own message also when others are around it. */
static void test_fds_in_stream(void)
{
	struct {
		struct vu_header h;
		struct vu_irq_set q;
	} __attribute__((packed)) s = {
		.h = { .command = VU_DEVICE_SET_IRQS, .size = sizeof(s),
		       .flags = VU_FLAG_NO_REPLY },
		.q = { .argsz = sizeof(s.q), .flags = VU_IRQ_DATA_EVENTFD |
		       VU_IRQ_TRIGGER, .index = 2, .count = 1 },
	};
	int ev[2] = { eventfd(0, 0), eventfd(0, 0) };
	uint32_t v = 7;

	CHECK(start() && negotiate() && enable());
	CHECK(!client_post(&cl, 0, 0, &v, 4));
	CHECK(!client_raw(&cl, &s, sizeof(s), &ev[0], 1));
	s.q.start = 1;
	CHECK(!client_raw(&cl, &s, sizeof(s), &ev[1], 1));
	CHECK(!client_post(&cl, 0, 0, &v, 4));
	CHECK(!client_read(&cl, 0, 0, &v, 4));
	function_raise(fn, 0);
	function_raise(fn, 1);
	CHECK_EQ(counted(ev[0]), 1);
	CHECK_EQ(counted(ev[1]), 1);
	close(ev[0]);
	close(ev[1]);
	stop();
}

static unsigned int open_fds(void)
{
	unsigned int n = 0;

	for (int i = 0; i < 256; i++)
		n += fcntl(i, F_GETFD) >= 0;
	return n;
}

static void test_no_fd_leak(void)
{
	unsigned int before;
	int fds[8];

	CHECK(start());
	before = open_fds();
	for (int i = 0; i < 8; i++)
		fds[i] = 0;
	for (int i = 0; i < 20; i++) {
		CHECK(kills(VU_DEVICE_GET_INFO, 0, fds, 16, fds, 8));
		CHECK(negotiate());
		CHECK(client_set_irqs(&cl, 0, 8, fds) < 0);
		CHECK(!client_raw(&cl, fds, 3, fds, 8));	/* half */
		client_close(&cl);
	}
	CHECK(wait_until(&model.detach, 40));
	usleep(20000);
	CHECK_EQ(open_fds(), before);
	stop();
}

static void test_long_path(void)
{
	char path[200];
	struct function_desc d = { .name = "long", .socket = path };
	struct function *f;

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	CHECK_EQ(function_create(&d, &ops, NULL, &f), -ENAMETOOLONG);
	d.bar[0].size = 5000;
	CHECK_EQ(function_create(&d, &ops, NULL, &f), -EINVAL);
}

static const struct tap_test tests[] = {
	{ "version", test_version },
	{ "info", test_info },
	{ "regions", test_regions },
	{ "access", test_access },
	{ "write_multi", test_write_multi },
	{ "config", test_config },
	{ "asleep", test_asleep },
	{ "flr", test_flr },
	{ "irqs", test_irqs },
	{ "full_eventfd", test_full_eventfd },
	{ "stuck_eventfd", test_stuck_eventfd },
	{ "dma", test_dma },
	{ "bad_maps", test_bad_maps },
	{ "unmap_under_dma", test_unmap_under_dma },
	{ "single_pages", test_single_pages },
	{ "shrunk_memory", test_shrunk_memory },
	{ "dead", test_dead },
	{ "messages", test_messages },
	{ "bad_answers", test_bad_answers },
	{ "no_answer", test_no_answer },
	{ "deaf_client", test_deaf_client },
	{ "bad_access", test_bad_access },
	{ "bad_messages", test_bad_messages },
	{ "framing", test_framing },
	{ "fds_in_stream", test_fds_in_stream },
	{ "no_fd_leak", test_no_fd_leak },
	{ "long_path", test_long_path },
};

int main(int argc, char **argv)
{
	char dir[] = "/tmp/emu-test-XXXXXX";
	int ret;

	if (!mkdtemp(dir))
		return 1;
	snprintf(sock_path, sizeof(sock_path), "%s/f.sock", dir);
	ret = tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		      argc > 1 ? argv[1] : NULL);
	rmdir(dir);
	return ret;
}
