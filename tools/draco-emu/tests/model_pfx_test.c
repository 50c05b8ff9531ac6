// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: registers of partitions as a driver uses them, windows,
 * doorbells, messages and events.
 */
#include <stdlib.h>
#include <string.h>

#include <switchtec/mrpc.h>

#include "rig/partition.h"
#include "tap.h"

#define CTRL(p)		(GAS_NTB_CTRL + (p) * GAS_NTB_CTRL_SIZE)
#define DBMSG(p)	(GAS_NTB_DBMSG + (p) * GAS_NTB_DBMSG_SIZE)
#define BAR_AT(p, n)	(CTRL(p) + CTRL_BARS + 16 * (n))
#define PFF_AT(n)	(GAS_PFF + (n) * GAS_PFF_SIZE)
#define LUT_AREA	(PFX_LUT_ENTRIES * 65536u)
#define TARGET		RIG_FREE	/* in the memory of the other host */

/* ---- Identity ---- */

static void test_identity(void)
{
	struct function_desc d;
	char text[25] = "";

	begin();
	CHECK_EQ(rd(A, GAS_SYS + SYS_DEVICE_ID), 0x4000);
	for (unsigned int i = 0; i < 3; i++) {
		CHECK_EQ(load(i, 0, GAS_SYS + SYS_PARTITION, 1), i);
		CHECK_EQ(load(i, 0, GAS_NTB_INFO, 1), 3);
		CHECK_EQ(load(i, 0, GAS_NTB_INFO + 1, 1), i);
	}
	for (unsigned int i = 0; i < 8; i++)
		text[i] = (char)load(A, 0, GAS_SYS + SYS_VENDOR + i, 1);
	CHECK(!strcmp(text, "MICROCHP"));
	for (unsigned int i = 0; i < 24; i++)
		text[i] = (char)load(A, 0, GAS_SYS + SYS_PRODUCT + i, 1);
	CHECK(!strcmp(text, "PFX 100xG4, emulated    "));
	CHECK_EQ(load(A, 0, GAS_SYS + SYS_REVISION, 2), 'B' | '0' << 8);
	pfx_describe(part(A), &d);
	CHECK_EQ(d.class_code, 0x068000);
	CHECK_EQ(d.bar[2].size, 4 << 20);
	pfx_describe(part(C), &d);
	CHECK_EQ(d.class_code, 0x058000);
	CHECK_EQ(d.bar[2].size, 0);
	end();
}

static void test_partitions(void)
{
	begin();
	/* Upstream port, its management function, the slots. */
	CHECK_EQ(rd(B, EVENT_AT(A) + PART_USP), 0);
	CHECK_EQ(rd(B, EVENT_AT(B) + PART_USP), 5);
	CHECK_EQ(rd(B, EVENT_AT(B) + PART_VEP), 6);
	CHECK_EQ(rd(B, EVENT_AT(B) + PART_DSP), 7);
	CHECK_EQ(rd(B, EVENT_AT(B) + PART_DSP + 4), 8);
	CHECK_EQ(rd(B, EVENT_AT(B) + PART_DSP + 8), PART_NONE);
	CHECK_EQ(rd(B, EVENT_AT(3) + PART_USP), 0);
	for (unsigned int i = 0; i < 13; i++)
		CHECK_EQ(load(A, 0, PFF_AT(i), 2), 0x11f8);
	CHECK_EQ(load(A, 0, PFF_AT(13), 2), 0xffff);
	CHECK_EQ(rd(A, PFF_AT(6) + PFF_LINK), 4 << 16 | 16 << 20);
	/* Which partitions have a bridge, and to whom. */
	CHECK_EQ(rd(A, GAS_NTB_INFO + INFO_EP_MAP), 3);
	CHECK_EQ(rd(A, GAS_NTB_INFO + INFO_TARGETS + 4), 1 << B);
	CHECK_EQ(rd(B, GAS_NTB_INFO + INFO_TARGETS + 16 + 4), 1 << A);
	CHECK_EQ(rd(A, GAS_NTB_INFO + INFO_TARGETS), 0);
	end();
}

/* ---- Locks ---- */

static uint32_t op(unsigned int host, unsigned int block, uint32_t what)
{
	wr(host, CTRL(block) + CTRL_OP, what);
	return rd(host, CTRL(block) + CTRL_STATUS);
}

static void test_locks(void)
{
	begin();
	CHECK_EQ(rd(A, CTRL(B) + CTRL_STATUS), CTRL_NORMAL);
	CHECK_EQ(op(A, B, OP_CONFIGURE), CTRL_NORMAL);
	CHECK_EQ(op(A, B, OP_LOCK), CTRL_LOCKED);
	CHECK_EQ(op(A, B, OP_LOCK), CTRL_LOCKED);
	CHECK_EQ(rd(B, CTRL(B) + CTRL_STATUS), CTRL_NORMAL);
	/* The second one waits; it does not see what the first writes. */
	CHECK_EQ(op(B, B, OP_LOCK), CTRL_LOCKING);
	wr(A, CTRL(B) + CTRL_REQ, 5 << REQ_ID_SHIFT | REQ_ON);
	CHECK_EQ(rd(B, CTRL(B) + CTRL_REQ) & REQ_ON, 0);
	wr(B, CTRL(B) + CTRL_REQ + 4, 6 << REQ_ID_SHIFT | REQ_ON);
	CHECK_EQ(rd(A, CTRL(B) + CTRL_REQ + 4) & REQ_ON, 0);
	CHECK_EQ(op(A, B, OP_CONFIGURE), CTRL_NORMAL);
	CHECK_EQ(rd(B, CTRL(B) + CTRL_STATUS), CTRL_LOCKED);
	CHECK_EQ(rd(B, CTRL(B) + CTRL_REQ) >> REQ_ID_SHIFT, 5);
	/* Given up: what was written is forgotten. */
	wr(B, CTRL(B) + CTRL_REQ, 0);
	CHECK_EQ(rd(B, CTRL(B) + CTRL_REQ) & REQ_ON, 0);
	CHECK_EQ(op(B, B, OP_RESET), CTRL_NORMAL);
	CHECK_EQ(rd(B, CTRL(B) + CTRL_REQ) >> REQ_ID_SHIFT, 5);
	/* Who is no end of the bridge has nothing to say. */
	CHECK_EQ(op(C, B, OP_LOCK), 0);
	CHECK_EQ(op(C, C, OP_LOCK), 0);
	end();
}

/* A host that goes away with a lock does not keep it. */
static void test_lock_of_the_dead(void)
{
	begin();
	CHECK_EQ(op(A, B, OP_LOCK), CTRL_LOCKED);
	CHECK_EQ(op(A, A, OP_LOCK), CTRL_LOCKED);
	CHECK_EQ(op(B, B, OP_LOCK), CTRL_LOCKING);
	CHECK_EQ(op(B, A, OP_LOCK), CTRL_LOCKING);
	pfx_function_ops.reset(part(A), FUNCTION_RESET_LOST);
	CHECK_EQ(rd(B, CTRL(B) + CTRL_STATUS), CTRL_LOCKED);
	CHECK_EQ(rd(B, CTRL(A) + CTRL_STATUS), CTRL_LOCKED);
	end();
}

/* ---- Windows ---- */

static void let_in(unsigned int host, uint16_t id)
{
	op(host, host, OP_LOCK);
	wr(host, CTRL(host) + CTRL_REQ, (uint32_t)id << REQ_ID_SHIFT | REQ_ON);
	op(host, host, OP_CONFIGURE);
}

/* Page @n of @host's first window to @addr of @to, as the host there sets it. */
static uint32_t aim_page(unsigned int host, unsigned int n, unsigned int to,
			 uint64_t addr)
{
	op(to, host, OP_LOCK);
	wr(to, BAR_AT(host, 2), BAR_LUT | 16 << 8 |
	   (PFX_LUT_ENTRIES - 1) << 14);
	store(to, 0, CTRL(host) + CTRL_LUT + 8 * n, addr | to << 1 | LUT_ON, 8);
	return op(to, host, OP_CONFIGURE);
}

static uint32_t aim_direct(unsigned int host, unsigned int bar,
			   unsigned int to, uint64_t addr, uint32_t size)
{
	op(to, host, OP_LOCK);
	wr(to, BAR_AT(host, bar), rd(to, BAR_AT(host, bar)) | BAR_DIRECT);
	wr(to, BAR_AT(host, bar) + 4, size | __builtin_ctz(size));
	store(to, 0, BAR_AT(host, bar) + 8, addr | to, 8);
	return op(to, host, OP_CONFIGURE);
}

static void test_pages(void)
{
	unsigned char *mem;

	begin();
	mem = rig_guest[B].mem;
	memset(mem + TARGET, 0x5a, 2 << 16);
	CHECK_EQ(aim_page(A, 3, B, TARGET), CTRL_NORMAL);
	/* Only requesters of the table get through. */
	CHECK_EQ(load(A, 2, 3 << 16, 4), 0xffffffff);
	let_in(A, 7);
	CHECK_EQ(load(A, 2, 3 << 16, 4), 0xffffffff);
	let_in(A, PFX_CPU);
	CHECK_EQ(load(A, 2, 3 << 16, 4), 0x5a5a5a5a);
	store(A, 2, (3 << 16) + 5, 0x1122334455667788, 8);
	CHECK(!memcmp(mem + TARGET + 5, "\x88\x77\x66\x55\x44\x33\x22\x11", 8));
	/* Pages beside it are nobody's; an access may reach into the next. */
	CHECK_EQ(load(A, 2, 2 << 16, 4), 0xffffffff);
	CHECK_EQ(load(A, 2, (4 << 16) - 4, 8), ~0ull);
	CHECK_EQ(aim_page(A, 4, B, TARGET), CTRL_NORMAL);
	CHECK_EQ(load(A, 2, (4 << 16) - 4, 8) >> 32, 0x5a5a5a5a);
	CHECK_EQ(load(A, 2, (4 << 16) - 4, 4), 0x5a5a5a5a);
	CHECK_EQ(count_get(&rig_guest[B].port->counters, CNT_ERRORS), 0);
	/* Beyond the memory of the host that it is aimed at: counted there. */
	CHECK_EQ(aim_page(A, 3, B, RIG_MEM), CTRL_NORMAL);
	CHECK_EQ(load(A, 2, 3 << 16, 4), 0xffffffff);
	store(A, 2, 3 << 16, 0, 4);
	CHECK_EQ(count_get(&rig_guest[B].port->counters, CNT_ERRORS), 2);
	CHECK_EQ(count_get(&rig_guest[A].port->counters, CNT_ERRORS), 0);
	end();
}

static void test_direct(void)
{
	unsigned char *mem;

	begin();
	mem = rig_guest[A].mem;
	let_in(B, PFX_CPU);
	memset(mem + TARGET, 0x77, 1 << 20);
	CHECK_EQ(aim_direct(B, 4, A, TARGET, 1 << 20), CTRL_NORMAL);
	CHECK_EQ(load(B, 4, 0, 4), 0x77777777);
	store(B, 4, (1 << 20) - 8, 42, 8);
	CHECK_EQ(mem[TARGET + (1 << 20) - 8], 42);
	CHECK_EQ(load(B, 4, 1 << 20, 4), 0xffffffff);
	CHECK_EQ(load(B, 4, (1 << 20) - 4, 8), ~0ull);
	/* That of the first BAR is behind the pages. */
	CHECK_EQ(aim_page(B, 0, A, 0), CTRL_NORMAL);
	CHECK_EQ(aim_direct(B, 2, A, TARGET, 1 << 20), CTRL_NORMAL);
	CHECK_EQ(load(B, 2, LUT_AREA, 4), 0x77777777);
	CHECK_EQ(load(B, 2, LUT_AREA + (1 << 20), 4), 0xffffffff);
	end();
}

/* Nothing changes before it is configured, or if it cannot be. */
static void test_configure(void)
{
	begin();
	let_in(A, PFX_CPU);
	memset(rig_guest[B].mem + TARGET, 1, 4096);
	CHECK_EQ(aim_direct(A, 4, B, TARGET, 4096), CTRL_NORMAL);
	op(B, A, OP_LOCK);
	store(B, 0, BAR_AT(A, 4) + 8, 0, 8);
	CHECK_EQ(load(A, 4, 0, 4), 0x01010101);
	op(B, A, OP_RESET);
	/* An address that is not aligned to the size, and a size too large. */
	CHECK_EQ(aim_direct(A, 4, B, TARGET + 4096, 8192), CTRL_LOCKED);
	CHECK_EQ(rd(B, CTRL(A) + CTRL_BAR_ERROR), 1 << 4);
	CHECK_EQ(aim_direct(A, 4, B, TARGET, 8 << 20), CTRL_LOCKED);
	op(B, A, OP_RESET);
	/* A BAR that has no windows, a host that is not behind the bridge. */
	CHECK_EQ(aim_direct(A, 0, B, TARGET, 4096), CTRL_LOCKED);
	CHECK_EQ(rd(B, CTRL(A) + CTRL_BAR_ERROR), 1 << 0);
	op(B, A, OP_RESET);
	CHECK_EQ(op(B, A, OP_LOCK), CTRL_LOCKED);
	store(B, 0, CTRL(A) + CTRL_LUT + 8, TARGET | C << 1 | LUT_ON, 8);
	CHECK_EQ(op(B, A, OP_CONFIGURE), CTRL_LOCKED);
	CHECK_EQ(rd(B, CTRL(A) + CTRL_LUT_ERROR), 2);
	store(B, 0, CTRL(A) + CTRL_LUT + 8, 0, 8);
	CHECK_EQ(op(B, A, OP_CONFIGURE), CTRL_NORMAL);
	CHECK_EQ(load(A, 4, 0, 4), 0x01010101);
	end();
}

static void test_windows_of_the_gone(void)
{
	begin();
	let_in(A, PFX_CPU);
	CHECK_EQ(aim_direct(A, 4, B, TARGET, 4096), CTRL_NORMAL);
	CHECK_EQ(load(A, 4, 0, 4), 0);
	fabric_link_break(&rig_fabric, rig_guest[B].port->link, true);
	CHECK_EQ(load(A, 4, 0, 4), 0xffffffff);
	fabric_link_break(&rig_fabric, rig_guest[B].port->link, false);
	CHECK_EQ(load(A, 4, 0, 4), 0);
	pfx_function_ops.detach(part(B));
	CHECK_EQ(load(A, 4, 0, 4), 0xffffffff);
	pfx_function_ops.attach(part(B));
	CHECK_EQ(load(A, 4, 0, 4), 0);
	/* Its own reset forgets what its peer had set up. */
	pfx_function_ops.reset(part(A), FUNCTION_RESET_DEVICE);
	let_in(A, PFX_CPU);
	CHECK_EQ(load(A, 4, 0, 4), 0xffffffff);
	end();
}

/* ---- Doorbells and messages ---- */

#define DB_VECTOR	5u
#define MSG_VECTOR	6u

static void prepare_doorbells(unsigned int host, unsigned int peer)
{
	for (unsigned int i = 0; i < 64; i++)
		store(host, 0, DBMSG(host) + DB_VECTORS + i,
		      i < DOORBELLS ? DB_VECTOR : MSG_VECTOR, 1);
	store(host, 0, DBMSG(host) + DB_OUT_MASK, ~0ull, 8);
	wr(host, DBMSG(host) + MSG_MAP, (peer << 2) | (peer << 2 | 1) << 8 |
	   (peer << 2 | 2) << 16 | (uint32_t)(peer << 2 | 3) << 24);
	for (unsigned int i = 0; i < MESSAGES; i++)
		store(host, 0, DBMSG(host) + MSG_IN + 8 * i, 0x101ull << 32, 8);
}

static uint64_t raised(unsigned int host, unsigned int vector)
{
	return rig_raised(&rig_guest[host], vector);
}

static void test_doorbells(void)
{
	begin();
	prepare_doorbells(A, B);
	prepare_doorbells(B, A);
	store(A, 0, DBMSG(A) + DB_OUT_MASK, 0xff00000000, 8);
	store(A, 0, DBMSG(A) + DB_OUT, 0x300000004, 8);
	CHECK_EQ(load(B, 0, DBMSG(B) + DB_IN, 8), 0x300000000);
	CHECK_EQ(raised(B, DB_VECTOR), 0);
	store(B, 0, DBMSG(B) + DB_IN_MASK, 0x200000000, 8);
	CHECK_EQ(raised(B, DB_VECTOR), 1);
	store(A, 0, DBMSG(A) + DB_OUT, 0x200000000, 8);
	CHECK_EQ(raised(B, DB_VECTOR), 1);
	store(B, 0, DBMSG(B) + DB_IN, 0x200000000, 8);
	CHECK_EQ(load(B, 0, DBMSG(B) + DB_IN, 8), 0x100000000);
	store(A, 0, DBMSG(A) + DB_OUT, 0x200000000, 8);
	CHECK_EQ(raised(B, DB_VECTOR), 2);
	CHECK_EQ(raised(A, DB_VECTOR), 0);
	/* Nobody rings through the block of another, nor the messages' bits. */
	store(C, 0, DBMSG(A) + DB_OUT, 0x100000000, 8);
	CHECK_EQ(load(B, 0, DBMSG(B) + DB_IN, 8), 0x300000000);
	store(B, 0, DBMSG(B) + DB_OUT, 0xf000000000000000, 8);
	CHECK_EQ(load(A, 0, DBMSG(A) + DB_IN, 8), 0x300000000);
	CHECK_EQ(rd(A, DBMSG(A) + DB_OUT), 0);
	end();
}

static void test_messages(void)
{
	begin();
	prepare_doorbells(A, B);
	prepare_doorbells(B, A);
	store(B, 0, DBMSG(B) + DB_IN_MASK, 0xfull << 60, 8);
	wr(A, DBMSG(A) + MSG_OUT + 8, 0xabcd);
	CHECK_EQ(load(B, 0, DBMSG(B) + MSG_IN + 8, 8), 0xabcd | 1ull << 32 |
		 1ull << 40 | (uint64_t)A << 48);
	CHECK_EQ(raised(B, MSG_VECTOR), 1);
	CHECK_EQ(load(B, 0, DBMSG(B) + DB_IN, 8), 1ull << 61);
	/* One more waits until that is taken; of those only the last. */
	wr(A, DBMSG(A) + MSG_OUT + 8, 1);
	wr(A, DBMSG(A) + MSG_OUT + 8, 2);
	CHECK_EQ(rd(A, DBMSG(A) + MSG_OUT + 12) & 1, 1);
	CHECK_EQ(rd(B, DBMSG(B) + MSG_IN + 8), 0xabcd);
	store(B, 0, DBMSG(B) + MSG_IN + 12, 1, 1);
	CHECK_EQ(rd(B, DBMSG(B) + MSG_IN + 8), 2);
	CHECK_EQ(rd(A, DBMSG(A) + MSG_OUT + 12) & 1, 0);
	CHECK_EQ(raised(B, MSG_VECTOR), 2);
	store(B, 0, DBMSG(B) + MSG_IN + 12, 1, 1);
	CHECK_EQ(rd(B, DBMSG(B) + MSG_IN + 12) & 1, 0);
	CHECK_EQ(load(B, 0, DBMSG(B) + DB_IN, 8), 0);
	/* Not to a host that is not behind the bridge. */
	wr(A, DBMSG(A) + MSG_MAP, C << 2);
	wr(A, DBMSG(A) + MSG_OUT, 7);
	CHECK_EQ(rd(C, DBMSG(C) + MSG_IN), 0);
	CHECK_EQ(rd(A, DBMSG(A) + MSG_OUT + 4) & 1, 0);
	end();
}

/* ---- Events ---- */

static void test_events(void)
{
	uint64_t mrpc = EVENT_AT(A) + PART_EVENT_MRPC, before;

	begin();
	run(A, MRPC_ECHO);
	CHECK_EQ(rd(A, mrpc), 1 << EVENT_COUNT_SHIFT | EVENT_OCCURRED);
	before = raised(A, PFX_EVENT_VECTOR);
	/* What has occurred interrupts when that is asked for. */
	wr(A, mrpc, EVENT_INTERRUPT);
	CHECK_EQ(raised(A, PFX_EVENT_VECTOR), before + 1);
	wr(A, mrpc, EVENT_INTERRUPT | EVENT_OCCURRED);
	CHECK_EQ(rd(A, mrpc), 1 << EVENT_COUNT_SHIFT | EVENT_INTERRUPT);
	run(A, MRPC_ECHO);
	CHECK_EQ(raised(A, PFX_EVENT_VECTOR), before + 2);
	/* It is no other partition's. */
	CHECK_EQ(rd(B, mrpc), 0);
	CHECK_EQ(rd(B, EVENT_AT(B) + PART_EVENT_MRPC), 0);
	CHECK_EQ(rd(A, GAS_SW_EVENT + SW_EVENT_FIRST), EVENT_NOT_SUPPORTED);
	CHECK_EQ(rd(A, PFF_AT(0) + PFF_EVENT_FIRST), EVENT_NOT_SUPPORTED);
	end();
}

static uint32_t links_of(unsigned int host, unsigned int pff)
{
	return rd(host, PFF_AT(pff) + PFF_EVENT_LINK) >> EVENT_COUNT_SHIFT &
	       0xff;
}

/* Each partition hears of each link, and has its own view of that. */
static void test_link_events(void)
{
	uint32_t a, b;
	uint64_t interrupts;

	begin();
	a = links_of(A, 5);
	b = links_of(B, 5);
	wr(A, PFF_AT(5) + PFF_EVENT_LINK, EVENT_OCCURRED | EVENT_INTERRUPT);
	CHECK(rd(B, PFF_AT(5) + PFF_EVENT_LINK) & EVENT_OCCURRED);
	interrupts = raised(A, PFX_EVENT_VECTOR);
	fabric_link_break(&rig_fabric, rig_guest[B].port->link, true);
	CHECK_EQ(links_of(A, 5), a + 1);
	CHECK_EQ(links_of(B, 5), b + 1);
	CHECK_EQ(links_of(A, 0), links_of(B, 0));
	CHECK_EQ(raised(A, PFX_EVENT_VECTOR), interrupts + 1);
	pfx_function_ops.reset(part(B), FUNCTION_RESET_DEVICE);
	CHECK_EQ(links_of(A, 5), a + 2);
	CHECK_EQ(raised(A, PFX_EVENT_VECTOR), interrupts + 2);
	end();
}

/* Whatever a host does, nothing breaks but its own. */
static void test_any_access(void)
{
	begin();
	let_in(A, PFX_CPU);
	srand(1);
	for (unsigned int i = 0; i < 200000; i++) {
		unsigned int host = rand() % 3, bar = rand() % 8 ? 0 : 2;
		uint64_t at = (unsigned int)rand() % (GAS_SIZE - 8);
		uint64_t v = (uint64_t)rand() << 31 ^ (uint64_t)rand();

		/* Rather where there are registers. */
		if (!bar && i % 2)
			at = CTRL(rand() % 3) + (unsigned int)rand() % 0x1800;
		if (host == C)
			bar = 0;
		if (i % 16 == 5)
			op(host, rand() % 3, rand() % 4);
		store(host, bar, at, v, 1 + rand() % 8);
		load(host, bar, at, 1 + rand() % 8);
	}
	CHECK_EQ(rd(C, GAS_SYS), 0x4000);
	end();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(identity), T(partitions), T(locks), T(lock_of_the_dead), T(pages),
	T(direct), T(configure), T(windows_of_the_gone), T(doorbells),
	T(messages), T(events), T(link_events), T(any_access),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
