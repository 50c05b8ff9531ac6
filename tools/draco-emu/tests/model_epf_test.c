// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridge of two endpoint functions: commands, link, window, doorbells,
 * scratchpads, and what a host's end does to them.
 */
#include <stdlib.h>
#include <string.h>

#include "epf.h"
#include "rig/rig.h"
#include "tap.h"

static const char topology[] =
	"fabric = \"epf\";\n"
	"switches = ( { name = \"s\"; model = \"epf\"; ports = 2; } );\n"
	"hosts = ( { name = \"a\"; ports = ( \"s:1\" ); },\n"
	"          { name = \"b\"; ports = ( \"s:2\" ); } );\n"
	"ntbs = ( { a = \"a.0\"; b = \"b.0\"; } );\n";

#define A		0
#define B		1
#define SPAD		0x1000u
#define TARGET		RIG_FREE
#define LINK_UP		(1u << 16)

static struct epf_end *end_of(unsigned int host)
{
	return rig_guest[host].port->end;
}

static uint64_t load(unsigned int host, unsigned int bar, uint64_t offset,
		     size_t n)
{
	uint64_t v = 0;

	epf_function_ops.bar_read(end_of(host), bar, offset, &v, n);
	return v;
}

static void store(unsigned int host, unsigned int bar, uint64_t offset,
		  uint64_t v, size_t n)
{
	epf_function_ops.bar_write(end_of(host), bar, offset, &v, n);
}

/* Status of a command: 1 or 2. */
static uint32_t run(unsigned int host, uint32_t command, uint32_t argument)
{
	uint32_t status;

	store(host, 0, 0x04, argument, 4);
	store(host, 0, 0x00, command, 4);
	status = load(host, 0, 0x08, 2);
	store(host, 0, 0x08, 0, 2);
	return status;
}

static uint32_t aim(unsigned int host, uint64_t addr, uint64_t size)
{
	store(host, 0, 0x10, (uint32_t)addr, 4);
	store(host, 0, 0x14, addr >> 32, 4);
	store(host, 0, 0x18, (uint32_t)size, 4);
	store(host, 0, 0x1c, size >> 32, 4);
	return run(host, 3, 0);
}

static uint64_t raised(unsigned int host, unsigned int vector)
{
	return rig_raised(&rig_guest[host], vector);
}

static void begin(void)
{
	rig_start(topology, 1, NULL);
	for (unsigned int i = 0; i < 2; i++)
		epf_function_ops.attach(end_of(i));
}

static void end(void)
{
	for (unsigned int i = 0; i < 2; i++)
		epf_function_ops.detach(end_of(i));
	rig_stop();
}

static void test_commands(void)
{
	begin();
	CHECK_EQ(load(A, 0, 0x20, 4), 1);
	CHECK_EQ(load(A, 0, 0x2c, 4), EPF_SPADS);
	CHECK_EQ(run(A, 1, 1 << 16 | 32), 1);
	CHECK_EQ(run(A, 1, 1 << 16 | 33), 2);
	CHECK_EQ(run(A, 1, 0), 2);
	CHECK_EQ(run(A, 7, 0), 2);
	CHECK_EQ(load(A, 0, 0x08, 2), 0);
	CHECK_EQ(aim(A, TARGET, 4096), 1);
	CHECK_EQ(aim(A, TARGET, 0), 2);
	CHECK_EQ(aim(A, TARGET, (4 << 20) + 1), 2);
	CHECK_EQ(run(A, 3, 1), 2);
	end();
}

static void test_link(void)
{
	begin();
	run(A, 1, 32);
	run(B, 1, 32);
	CHECK_EQ(run(A, 5, 0), 1);
	CHECK_EQ(load(A, 0, 0x08, 4) & LINK_UP, 0);
	CHECK_EQ(raised(A, 0), 0);
	CHECK_EQ(run(B, 5, 0), 1);
	CHECK_EQ(load(A, 0, 0x0a, 2), 1);
	CHECK_EQ(raised(A, 0), 1);
	CHECK_EQ(raised(B, 0), 1);
	fabric_link_break(&rig_fabric, rig_guest[B].port->link, true);
	CHECK_EQ(load(A, 0, 0x0a, 2), 0);
	CHECK_EQ(raised(A, 0), 2);
	fabric_link_break(&rig_fabric, rig_guest[B].port->link, false);
	CHECK_EQ(load(A, 0, 0x0a, 2), 1);
	epf_function_ops.reset(end_of(B), FUNCTION_RESET_DEVICE);
	CHECK_EQ(load(A, 0, 0x0a, 2), 0);
	CHECK_EQ(raised(A, 0), 4);
	CHECK_EQ(run(B, 5, 0), 1);
	CHECK_EQ(raised(A, 0), 5);
	/* B has not asked for interrupts since. */
	CHECK_EQ(raised(B, 0), 3);
	end();
}

static void test_window(void)
{
	unsigned char *mem;

	begin();
	mem = rig_guest[B].mem;
	memset(mem + TARGET, 0x42, 8192);
	CHECK_EQ(load(A, 2, 0, 4), 0xffffffff);
	CHECK_EQ(aim(B, TARGET, 5000), 1);
	CHECK_EQ(load(A, 2, 0, 4), 0x42424242);
	store(A, 2, 4992, 0x1122334455667788, 8);
	CHECK_EQ(mem[TARGET + 4999], 0x11);
	store(A, 2, 4996, 0, 8);
	CHECK_EQ(mem[TARGET + 4999], 0x11);
	CHECK_EQ(load(A, 2, 5000, 1), 0xff);
	epf_function_ops.detach(end_of(B));
	CHECK_EQ(load(A, 2, 0, 4), 0xffffffff);
	epf_function_ops.attach(end_of(B));
	CHECK_EQ(load(A, 2, 0, 4), 0x42424242);
	CHECK_EQ(run(B, 4, 0), 1);
	CHECK_EQ(load(A, 2, 0, 4), 0xffffffff);
	CHECK_EQ(aim(B, TARGET, 5000), 1);
	epf_function_ops.reset(end_of(B), FUNCTION_RESET_FLR);
	CHECK_EQ(load(A, 2, 0, 4), 0xffffffff);
	end();
}

static void test_doorbells(void)
{
	begin();
	run(B, 1, 8);
	for (unsigned int n = 1; n < 8; n++) {
		store(A, 4, 4 * n + load(A, 0, 0xb4 + 4 * n, 4),
		      load(A, 0, 0x34 + 4 * n, 4), 4);
		CHECK_EQ(raised(B, n), 1);
		CHECK_EQ(raised(A, n), 0);
	}
	/* One that it has no vector for, and another value. */
	store(A, 4, 4 * 8, load(A, 0, 0x34 + 4 * 8, 4), 4);
	CHECK_EQ(raised(B, 8), 0);
	store(A, 4, 4 * 2, 0, 4);
	CHECK_EQ(raised(B, 2), 1);
	run(B, 2, 8);
	store(A, 4, 4 * 2, load(A, 0, 0x34 + 4 * 2, 4), 4);
	CHECK_EQ(raised(B, 2), 1);
	end();
}

static void test_scratchpads(void)
{
	begin();
	store(A, 0, SPAD + 4 * EPF_SPADS + 4 * 7, 0xabcd, 4);
	CHECK_EQ(load(B, 0, SPAD + 4 * 7, 4), 0xabcd);
	CHECK_EQ(load(A, 0, SPAD + 4 * 7, 4), 0);
	store(A, 0, SPAD, 9, 4);
	CHECK_EQ(load(B, 0, SPAD + 4 * EPF_SPADS, 4), 9);
	epf_function_ops.reset(end_of(B), FUNCTION_RESET_LOST);
	CHECK_EQ(load(A, 0, SPAD + 4 * EPF_SPADS + 4 * 7, 4), 0);
	CHECK_EQ(load(A, 0, SPAD, 4), 9);
	end();
}

static void test_any_access(void)
{
	begin();
	srand(2);
	for (unsigned int i = 0; i < 100000; i++) {
		unsigned int host = rand() % 2, bar = rand() % 3 * 2;
		uint64_t v = (uint64_t)rand() << 31 ^ (uint64_t)rand();
		uint64_t at = (unsigned int)rand() % (bar == 2 ? 1u << 22 :
						      bar ? 0xff8u : 0x1800u);

		store(host, bar, at, i % 5 ? v : v % 9, 1 + rand() % 8);
		load(host, bar, at, 1 + rand() % 8);
		if (!(i % 7))
			run(host, rand() % 8, rand() % 40);
	}
	CHECK_EQ(load(A, 0, 0x20, 4), 1);
	end();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(commands), T(link), T(window), T(doorbells), T(scratchpads),
	T(any_access),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
