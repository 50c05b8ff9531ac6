// SPDX-License-Identifier: GPL-2.0-only
/*
 * Windows: loads and stores through BAR 4, refusals, faults.
 */
#include <string.h>

#include "rig/pair.h"
#include "tap.h"

#define SERIAL	0x5eedull

static unsigned int make_window(struct draco_window_create w, uint32_t *id)
{
	struct draco_acpl cpl;
	unsigned int sc;

	memcpy(rig_data(A), &w, sizeof(w));
	sc = rig_admin(A, rig_cmd(DRACO_ADM_WINDOW_CREATE, 0, sizeof(w)), &cpl);
	*id = cpl.id;
	return sc;
}

static struct draco_window_create window(void)
{
	struct draco_window_create w = {
		.slot = 2, .nslots = 1, .peer = 1, .rkey = rkey,
		.access = DRACO_ACCESS_REMOTE_READ | DRACO_ACCESS_REMOTE_WRITE,
		.offset = 4096, .length = 8192, .serial = SERIAL,
	};

	return w;
}

static uint64_t load(uint64_t offset, size_t n)
{
	uint64_t v = 0;

	port_function_ops.bar_read(A->port, DRACO_BAR_WINDOW, offset, &v, n);
	return v;
}

static void store(uint64_t offset, uint64_t v, size_t n)
{
	port_function_ops.bar_write(A->port, DRACO_BAR_WINDOW, offset, &v, n);
}

#define WIN	(2u * 65536)

static void test_window_accesses(void)
{
	struct draco_window_create w;
	unsigned char buf[300];
	uint32_t id;

	BEGIN();
	w = window();
	CHECK_EQ(load(WIN, 4), 0xffffffff);
	CHECK_EQ(make_window(w, &id), 0);
	CHECK_EQ(id, 1);
	CHECK_EQ(load(WIN + 5, 1), B->mem[DST + 4096 + 5]);
	store(WIN + 16, 0x1122334455667788, 8);
	CHECK_EQ(word(B, DST + 4096 + 16), 0x1122334455667788);
	CHECK_EQ(load(WIN + 20, 4), 0x11223344);
	for (unsigned int i = 0; i < sizeof(buf); i++)
		buf[i] = (unsigned char)i;
	port_function_ops.bar_write(A->port, DRACO_BAR_WINDOW, WIN + 4001, buf,
				    sizeof(buf));
	CHECK(!memcmp(B->mem + DST + 4096 + 4001, buf, sizeof(buf)));
	CHECK_EQ(load(WIN + 65536, 4), 0xffffffff);
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_WINDOW_DESTROY, id, 0), NULL),
		 0);
	CHECK_EQ(load(WIN, 8), ~0ull);
	store(WIN + 16, 0, 8);
	CHECK_EQ(word(B, DST + 4096 + 16), 0x1122334455667788);
	END();
}

static void test_window_refusals(void)
{
	struct draco_window_create w;
	uint32_t id;

	BEGIN();
	w = window();
	w.rkey ^= 1ull << 50;
	CHECK_EQ(make_window(w, &id), DRACO_SC_BAD_KEY);
	w = window();
	w.length = 65536 + 1;
	CHECK_EQ(make_window(w, &id), DRACO_SC_BAD_FIELD);
	w.length = 65536;
	CHECK_EQ(make_window(w, &id), DRACO_SC_BAD_KEY);
	w = window();
	w.slot = 8;
	CHECK_EQ(make_window(w, &id), DRACO_SC_BAD_FIELD);
	w.slot = 7;
	w.nslots = ~0u;
	CHECK_EQ(make_window(w, &id), DRACO_SC_BAD_FIELD);
	w = window();
	w.offset = 8;
	CHECK_EQ(make_window(w, &id), DRACO_SC_BAD_FIELD);
	w = window();
	w.access = DRACO_ACCESS_REMOTE_ATOMIC;
	CHECK_EQ(make_window(w, &id), DRACO_SC_BAD_FIELD);
	w = window();
	w.peer = 200;
	CHECK_EQ(make_window(w, &id), DRACO_SC_BAD_ID);
	w.peer = 3;
	CHECK_EQ(make_window(w, &id), DRACO_SC_HOST_DOWN);
	w = window();
	CHECK_EQ(make_window(w, &id), DRACO_SC_OK);
	CHECK_EQ(make_window(w, &id), DRACO_SC_BUSY);
	END();
}

static unsigned int take_events(struct rig_guest *g, unsigned int type,
				unsigned int ms)
{
	struct draco_event *ev = rig_data(g);
	struct draco_acmd cmd = rig_cmd(DRACO_ADM_GET_EVENTS, 0, 64 * 64);
	struct draco_acmd abort_cmd;
	unsigned int found = 0;
	struct draco_acpl cpl;
	uint16_t cid = rig_post(g, &cmd);

	if (!rig_wait(g, cid, &cpl, ms)) {
		abort_cmd = rig_cmd(DRACO_ADM_ABORT, cid, 0);
		rig_admin(g, abort_cmd, NULL);
		rig_wait(g, cid, &cpl, RIG_HUNG);
		return 0;
	}
	for (unsigned int i = 0; i < cpl.result; i++)
		found += ev[i].type == type &&
			 (type != DRACO_EV_WINDOW_FAULT ||
			  ev[i].arg[1] == SERIAL);
	return found;
}

static void test_window_faults(void)
{
	uint32_t id;

	BEGIN();
	CHECK_EQ(make_window(window(), &id), 0);
	CHECK(load(WIN, 8) != ~0ull);
	take_events(A, 0, 300);
	CHECK_EQ(load(WIN + 8192, 4), 0xffffffff);
	CHECK_EQ(load(WIN + 8190, 4), 0xffffffff);
	CHECK_EQ(take_events(A, DRACO_EV_WINDOW_FAULT, RIG_HUNG), 1);
	CHECK_EQ(rig_admin(B, rig_cmd(DRACO_ADM_MR_INVALIDATE, rmr, 0),
			   NULL), 0);
	CHECK_EQ(load(WIN, 4), 0xffffffff);
	store(WIN, 5, 8);
	CHECK(word(B, DST + 4096) != 5);
	CHECK_EQ(take_events(A, DRACO_EV_WINDOW_FAULT, 300), 0);
	END();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(window_accesses), T(window_refusals), T(window_faults),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
