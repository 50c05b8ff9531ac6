// SPDX-License-Identifier: GPL-2.0-only
/*
 * The protocol on a function's socket: negotiation, regions, config space,
 * resets, hostile messages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "vfio_user.h"
#include "vfio_user_proto.h"


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
	for (int i = 0; i < 120000 && open_fds() != before; i++)
		usleep(1000);
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
	CHECK_EQ(function_create(&d, &bench_ops, NULL, &f), -ENAMETOOLONG);
	d.bar[0].size = 5000;
	CHECK_EQ(function_create(&d, &bench_ops, NULL, &f), -EINVAL);
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
	{ "bad_access", test_bad_access },
	{ "bad_messages", test_bad_messages },
	{ "framing", test_framing },
	{ "fds_in_stream", test_fds_in_stream },
	{ "no_fd_leak", test_no_fd_leak },
	{ "long_path", test_long_path },
};

int main(int argc, char **argv)
{
	return bench_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
