// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: the DMA engine. Copies in a host's memory and through its
 * windows, completions, errors, channels that are stopped.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pfx.h"
#include "pfx_dma.h"
#include "rig/fakes.h"
#include "rig/rig.h"
#include "tap.h"

static const char topology[] =
	"fabric = \"pfx\";\n"
	"switches = ( { name = \"p\"; model = \"pfx\"; ports = 8; } );\n"
	"hosts = ( { name = \"a\"; ports = ( \"p:1\" ); },\n"
	"          { name = \"b\"; ports = ( \"p:2\" ); } );\n"
	"ntbs = ( { a = \"a.0\"; b = \"b.0\"; } );\n";

#define CHANNEL		0x1000u
#define CH_CQ_HEAD	0x0u
#define CH_SQ_TAIL	0x4u
#define CH_CTRL		0x8u
#define CH_STATUS	0xcu
#define SETUP		0x160000u
#define ENTRIES		8u
#define SQ		0x10000u
#define CQ		0x11000u
#define SRC		0x100000u
#define DST		0x300000u
#define WINDOW		0x8000000000ull	/* where the host has BAR 4 */
#define TARGET		0x400000u

static struct pfx_dma *dma;
static struct function *engine;
static unsigned char *mem;
static uint16_t sq_tail;

static uint32_t rd(uint64_t offset)
{
	uint32_t v;

	pfx_dma_function_ops.bar_read(dma, 0, offset, &v, 4);
	return v;
}

static void wr(uint64_t offset, uint32_t v)
{
	pfx_dma_function_ops.bar_write(dma, 0, offset, &v, 4);
}

static void set_up(void)
{
	wr(SETUP + 4, CQ);
	wr(SETUP + 0xc, ENTRIES);
	wr(SETUP + 0x10, SQ);
	wr(SETUP + 0x18, ENTRIES);
	wr(SETUP, rd(SETUP) | 2);
	wr(CHANNEL + CH_CTRL, 4);
	wr(CHANNEL + CH_CTRL, 0);
	sq_tail = 0;
}

static void begin(void)
{
	rig_start(topology, 1, NULL);
	for (unsigned int i = 0; i < 2; i++)
		pfx_function_ops.attach(rig_guest[i].port->part);
	mem = rig_guest[0].mem;
	dma = rig_guest[0].port->part->dma;
	engine = dma->fn = fake_function_create(mem, RIG_MEM);
	pfx_dma_function_ops.attach(dma);
	memset(mem + CQ, 0, 0x1000);
	set_up();
}

static void end(void)
{
	pfx_dma_function_ops.detach(dma);
	for (unsigned int i = 0; i < 2; i++)
		pfx_function_ops.detach(rig_guest[i].port->part);
	rig_stop();
	fake_function_destroy(engine);
}

static void post(struct pfx_dma_desc d)
{
	d.id = 0x100 + sq_tail;
	d.dst_fabric = d.src_fabric = d.dst_fabric ? d.dst_fabric : 0xffff;
	memcpy(mem + SQ + 32 * sq_tail, &d, sizeof(d));
	sq_tail = (sq_tail + 1) % ENTRIES;
	wr(CHANNEL + CH_SQ_TAIL, sq_tail);
}

static struct pfx_dma_desc copy(uint64_t src, uint64_t dst, uint32_t n)
{
	return (struct pfx_dma_desc){
		.bytes = n, .control = 1 << 6,
		.src = { (uint32_t)src, src >> 32 },
		.dst = { (uint32_t)dst, dst >> 32 },
	};
}

static uint32_t cpl(unsigned int n, unsigned int word)
{
	uint32_t v;

	memcpy(&v, mem + CQ + 32 * n + 4 * word, 4);
	return v;
}

/* The n-th completion, of the phase that makes it new. */
static bool wait_cpl(unsigned int n, unsigned int phase)
{
	for (int i = 0; i < RIG_HUNG / 10; i++) {
		if (__atomic_load_n((uint32_t *)(mem + CQ + 32 * n + 28),
				    __ATOMIC_ACQUIRE) >> 16 == phase)
			return true;
		usleep(10000);
	}
	return false;
}

static void test_copies(void)
{
	begin();
	CHECK_EQ(rd(0x84), PFX_DMA_CHANNELS);
	for (unsigned int i = 0; i < (1 << 20); i++)
		mem[SRC + i] = i * 7 + (i >> 9);
	post(copy(SRC, DST, 1 << 20));
	post(copy(SRC + 3, DST + (1 << 20) + 1, 5));
	CHECK(wait_cpl(0, 1) && wait_cpl(1, 1));
	CHECK(!memcmp(mem + SRC, mem + DST, 1 << 20));
	CHECK(!memcmp(mem + SRC + 3, mem + DST + (1 << 20) + 1, 5));
	CHECK_EQ(cpl(0, 3), 1 << 20);
	CHECK_EQ(cpl(0, 4), 1);
	CHECK_EQ(cpl(0, 6), 0);
	CHECK_EQ(cpl(0, 7) & 0xffff, 0x100);
	CHECK_EQ(cpl(1, 7) & 0xffff, 0x101);
	/* It interrupts after it has stored. */
	while (fake_function_raised(engine, 1) < 2)
		usleep(1000);
	CHECK_EQ(fake_function_raised(engine, 0), 0);
	end();
}

/* The rings go round; a completion ring that is full is waited for. */
static void test_rings(void)
{
	begin();
	for (unsigned int i = 0; i < ENTRIES - 1; i++)
		post(copy(SRC, DST, 8));
	CHECK(wait_cpl(ENTRIES - 2, 1));
	post(copy(SRC, DST + 64, 8));
	mem[SRC] = 99;
	usleep(50000);
	CHECK(cpl(ENTRIES - 1, 7) == 0);
	wr(CHANNEL + CH_CQ_HEAD, ENTRIES - 1);
	CHECK(wait_cpl(ENTRIES - 1, 1));
	CHECK_EQ(mem[DST + 64], 99);
	post(copy(SRC, DST, 8));
	CHECK(wait_cpl(0, 0));
	end();
}

static void test_errors(void)
{
	struct pfx_dma_desc d = copy(SRC, DST, 8);

	begin();
	post(copy(RIG_MEM, DST, 8));		/* nothing is there */
	CHECK(wait_cpl(0, 1));
	CHECK_EQ(cpl(0, 6), 1 << 1);
	d.opcode = 3;
	post(d);
	CHECK(wait_cpl(1, 1));
	CHECK_EQ(cpl(1, 6), 1 << 16);
	d = copy(SRC, DST, 8);
	d.dst_fabric = 5;
	post(d);
	CHECK(wait_cpl(2, 1));
	CHECK_EQ(cpl(2, 6), 1 << 14);
	post(copy(SRC, DST, (1 << 20) + 1));
	CHECK(wait_cpl(3, 1));
	CHECK_EQ(cpl(3, 6), 1);
	/* A store that reaches nothing is no error: it is posted. */
	post(copy(SRC, RIG_MEM, 8));
	CHECK(wait_cpl(4, 1));
	CHECK_EQ(cpl(4, 6), 0);
	/* If it is to stop at errors, it says why and waits. */
	wr(CHANNEL + CH_CTRL, 8);
	post(copy(RIG_MEM, DST, 8));
	CHECK(wait_cpl(5, 1));
	while (!fake_function_raised(engine, 0))
		usleep(1000);
	CHECK_EQ(rd(CHANNEL + CH_STATUS), 1 << 21 | 1 << 9);
	post(copy(SRC, DST, 8));
	usleep(50000);
	CHECK_EQ(cpl(6, 7), 0);
	wr(CHANNEL + CH_CTRL, 8);
	CHECK(wait_cpl(6, 1));
	end();
}

static void test_stopped(void)
{
	begin();
	wr(CHANNEL + CH_CTRL, 2);
	CHECK(rd(CHANNEL + CH_STATUS) & 1 << 10);
	post(copy(SRC, DST, 8));
	usleep(50000);
	CHECK_EQ(cpl(0, 7), 0);
	wr(CHANNEL + CH_CTRL, 1);
	CHECK(rd(CHANNEL + CH_STATUS) & 1 << 9);
	wr(CHANNEL + CH_CTRL, 0);
	CHECK(wait_cpl(0, 1));
	/* The function's reset halts it; nothing of the rings is known. */
	pfx_dma_function_ops.reset(dma, FUNCTION_RESET_FLR);
	CHECK(rd(CHANNEL + CH_STATUS) & 1 << 10);
	CHECK_EQ(rd(SETUP + 0x10), 0);
	CHECK_EQ(rd(CHANNEL + CH_SQ_TAIL), 0);
	end();
}

/* BAR 4 of the management function, aimed at the other host's memory. */
static void test_windows(void)
{
	struct pfx_part *a;
	unsigned char *other;

	begin();
	a = rig_guest[0].port->part;
	other = rig_guest[1].mem;
	pthread_mutex_lock(&a->pfx->lock);
	a->ctrl.active.bar[4].ctl |= BAR_DIRECT;
	a->ctrl.active.bar[4].size = 1 << 20 | 20;
	a->ctrl.active.bar[4].addr[0] = TARGET | 1;
	pthread_mutex_unlock(&a->pfx->lock);
	fake_function_bar(rig_guest[0].port->fn, 4, WINDOW, 4 << 20);
	memset(mem + SRC, 0x3c, 200000);
	post(copy(SRC, WINDOW + 16, 200000));
	CHECK(wait_cpl(0, 1));
	CHECK(!memcmp(other + TARGET + 16, mem + SRC, 200000));
	CHECK_EQ(other[TARGET + 15], 0);
	CHECK_EQ(other[TARGET + 16 + 200000], 0);
	other[TARGET] = 0x77;
	post(copy(WINDOW, DST, 1));
	CHECK(wait_cpl(1, 1));
	CHECK_EQ(mem[DST], 0x77);
	/* Behind the window there is nothing. */
	post(copy(WINDOW + (1 << 20), DST, 8));
	CHECK(wait_cpl(2, 1));
	CHECK_EQ(cpl(2, 6), 1 << 1);
	end();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(copies), T(rings), T(errors), T(stopped), T(windows),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
