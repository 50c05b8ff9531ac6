// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: commands, and above all that which binds ports.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <switchtec/mrpc.h>

#include "control.h"
#include "loop.h"
#include "rig/partition.h"
#include "tap.h"

static void test_commands(void)
{
	begin();
	wr(A, MRPC_INPUT, 0x12345678);
	CHECK_EQ(run(A, MRPC_ECHO), 0);
	CHECK_EQ(rd(A, MRPC_STATUS), MRPC_DONE);
	CHECK_EQ(rd(A, MRPC_OUTPUT), ~0x12345678u);
	/* The upper half names a switch. */
	CHECK_EQ(run(A, 0xffff0000 | MRPC_PING), 0);
	CHECK_EQ(rd(A, MRPC_OUTPUT) & 0xff, MRPC_PING_MAIN);
	CHECK_EQ(rd(A, MRPC_OUTPUT + 4), ~0x12345678u);
	CHECK_EQ(run(A, 0x7777), MRPC_RET_BAD_COMMAND);
	CHECK_EQ(rd(A, MRPC_STATUS), MRPC_ERROR);
	CHECK_EQ(rd(A, MRPC_OUTPUT), 0);
	/* Bytes are stored alone. */
	store(A, 0, MRPC_INPUT + 1, 0xab, 1);
	CHECK_EQ(rd(A, MRPC_INPUT), 0x1234ab78);
	CHECK_EQ(rd(B, MRPC_INPUT), 0);
	pfx_function_ops.reset(part(A), FUNCTION_RESET_FLR);
	CHECK_EQ(rd(A, MRPC_INPUT), 0);
	CHECK_EQ(rd(A, MRPC_STATUS), 0);
	end();
}

/* ---- Binding ---- */

static uint32_t bind_cmd(unsigned int host, uint8_t sub, uint8_t a, uint8_t b,
			 uint8_t c)
{
	wr(host, MRPC_INPUT, sub | a << 8 | b << 16 | (uint32_t)c << 24);
	return run(host, MRPC_BIND);
}

/* What INFO says of a port: partition, logical port and state. */
static uint32_t info_of(unsigned int host, unsigned int phys)
{
	if (bind_cmd(host, MRPC_BIND_INFO, phys, 0, 0) ||
	    load(host, 0, MRPC_OUTPUT, 1) != 1 ||
	    load(host, 0, MRPC_OUTPUT + 4, 1) != phys)
		return 0;
	return rd(host, MRPC_OUTPUT + 4) >> 8;
}

static uint32_t bindings_seen(unsigned int host, unsigned int of)
{
	return rd(host, EVENT_AT(of) + PART_EVENT_BINDING) >>
	       EVENT_COUNT_SHIFT & 0xff;
}

static bool wait_info(unsigned int phys, uint32_t want)
{
	for (int i = 0; i < RIG_HUNG / 10; i++) {
		if (info_of(A, phys) == want)
			return true;
		usleep(10000);
	}
	return false;
}

#define FREE	(MRPC_BIND_NONE | MRPC_BIND_NONE << 8)
#define AT(part, logical, state) ((part) | (logical) << 8 | (state) << 16)

static void test_bind(void)
{
	begin();
	rig_host_up(&rig_guest[B], true);
	CHECK_EQ(info_of(A, 5), FREE);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 2, 5), 0);
	CHECK(wait_info(5, AT(B, 2, MRPC_BIND_BOUND)));
	CHECK(rig_slot_full(&rig_guest[B], 3));
	CHECK(!strcmp(rig_slot_endpoint(&rig_guest[B], 3)->name, "box.gpu0"));
	CHECK_EQ(bindings_seen(A, B), 1);
	CHECK_EQ(bindings_seen(B, B), 1);
	CHECK_EQ(bindings_seen(B, A), 0);
	/* Both are taken; the others are not what they have to be. */
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, A, 1, 5),
		 MRPC_BIND_RET_PORT_BOUND);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 2, 6),
		 MRPC_BIND_RET_LOGICAL_BOUND);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, 3, 1, 6),
		 MRPC_BIND_RET_NO_PARTITION);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 3, 6),
		 MRPC_BIND_RET_NO_LOGICAL);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 0, 6),
		 MRPC_BIND_RET_NO_LOGICAL);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 11), MRPC_BIND_RET_NO_PORT);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 4), MRPC_BIND_RET_NO_PORT);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 1), MRPC_BIND_RET_UPSTREAM);
	CHECK_EQ(bind_cmd(A, 3, B, 1, 1), MRPC_BIND_RET_SUB);
	fabric_link_control(&rig_fabric, pfx_link(part(A)->pfx, 6),
			    DRACO_PORTC_DISABLE);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 6), MRPC_BIND_RET_DISABLED);
	end();
}

static void wait_for(void *arg)
{
	while (!atomic_load((atomic_bool *)arg))
		usleep(1000);
}

/* Two managers at once: the second hears that the first was faster. */
static void test_two_binds(void)
{
	static atomic_bool go;

	begin();
	loop_defer(wait_for, &go);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 5), 0);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 6),
		 MRPC_BIND_RET_LOGICAL_BOUND);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, A, 1, 5),
		 MRPC_BIND_RET_IN_PROGRESS);
	CHECK_EQ(info_of(A, 5), FREE | MRPC_BIND_IN_PROGRESS << 16);
	atomic_store(&go, true);
	CHECK(wait_info(5, AT(B, 1, MRPC_BIND_BOUND)));
	CHECK_EQ(info_of(A, 6), FREE);
	end();
}

static void test_unbind(void)
{
	begin();
	rig_host_up(&rig_guest[A], true);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, A, 1, MRPC_BIND_OPTION),
		 MRPC_BIND_RET_NOT_BOUND);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, A, 1, 7), 0);
	CHECK(wait_info(7, AT(A, 1, MRPC_BIND_BOUND)));
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, A, 1, 0), MRPC_BIND_RET_OPTION);
	/* With the device in: it is not done before the slot is empty. */
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, A, 1, MRPC_BIND_OPTION), 0);
	CHECK(wait_info(7, AT(A, 1, MRPC_BIND_BOUND | MRPC_BIND_IN_PROGRESS)));
	rig_settle();
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, A, 1, MRPC_BIND_OPTION),
		 MRPC_BIND_RET_IN_PROGRESS);
	CHECK_EQ(bindings_seen(A, A), 1);
	CHECK(rig_power_off(&rig_guest[A], 2));
	CHECK(wait_info(7, FREE));
	CHECK_EQ(bindings_seen(A, A), 2);
	/* The host has taken it out before: at once. */
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, A, 1, 8), 0);
	CHECK(wait_info(8, AT(A, 1, MRPC_BIND_BOUND)));
	CHECK(rig_power_off(&rig_guest[A], 2));
	CHECK_EQ(info_of(A, 8), AT(A, 1, MRPC_BIND_BOUND));
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, A, 1, MRPC_BIND_OPTION), 0);
	CHECK(wait_info(8, FREE));
	/* A host that is not there has it when it comes. */
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 8), 0);
	CHECK(wait_info(8, AT(B, 1, MRPC_BIND_BOUND)));
	CHECK(!rig_slot_full(&rig_guest[B], 2));
	rig_host_up(&rig_guest[B], true);
	rig_settle();
	CHECK(rig_slot_full(&rig_guest[B], 2));
	end();
}

/* QEMU does not take it: the port is free again, and can be bound. */
static void test_bind_refused(void)
{
	begin();
	rig_host_up(&rig_guest[B], true);
	rig_refuse_plug();
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 5), 0);
	CHECK(wait_info(5, FREE | MRPC_BIND_FAILED << 16));
	CHECK_EQ(bindings_seen(A, B), 1);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 5), 0);
	CHECK(wait_info(5, AT(B, 1, MRPC_BIND_BOUND)));
	end();
}

/* What says that it is bound is not so before it is in the slot. */
static void test_bind_in_progress(void)
{
	begin();
	rig_host_up(&rig_guest[B], true);
	rig_hold_presence(true);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 5), 0);
	rig_settle();
	CHECK_EQ(info_of(A, 5), FREE | MRPC_BIND_IN_PROGRESS << 16);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, A, 1, 5),
		 MRPC_BIND_RET_IN_PROGRESS);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 6),
		 MRPC_BIND_RET_LOGICAL_BOUND);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, B, 1, MRPC_BIND_OPTION),
		 MRPC_BIND_RET_IN_PROGRESS);
	CHECK_EQ(bindings_seen(A, B), 0);
	rig_hold_presence(false);
	CHECK(wait_info(5, AT(B, 1, MRPC_BIND_BOUND)));
	CHECK_EQ(bindings_seen(A, B), 1);
	/* A host that boots changes nothing of what is bound to it. */
	rig_host_up(&rig_guest[B], false);
	rig_hold_presence(true);
	rig_host_up(&rig_guest[B], true);
	CHECK_EQ(info_of(A, 5), AT(B, 1, MRPC_BIND_BOUND));
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, B, 1, MRPC_BIND_OPTION),
		 MRPC_BIND_RET_IN_PROGRESS);
	rig_hold_presence(false);
	rig_settle();
	CHECK_EQ(bindings_seen(A, B), 1);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, B, 1, MRPC_BIND_OPTION), 0);
	end();
}

/* ---- Ports with several endpoints ---- */

static bool slot_has(unsigned int host, unsigned int slot, const char *want)
{
	char names[128];

	rig_slot_names(&rig_guest[host], slot, names, sizeof(names));
	if (strcmp(names, want))
		printf("# host %u, slot %u: \"%s\"\n", host, slot, names);
	return !strcmp(names, want);
}

struct order {
	const char *line;
	bool ok;
};

static void do_control(void *arg)
{
	struct order *o = arg;
	struct json_object *r = control_execute(&rig_fabric, o->line), *ok;

	o->ok = json_object_object_get_ex(r, "ok", &ok) &&
		json_object_get_boolean(ok);
	json_object_put(r);
}

static bool control(const char *line)
{
	struct order o = { .line = line };

	loop_defer(do_control, &o);
	rig_settle();
	return o.ok;
}

#define ALL_OF_9	"many.gpu0 many.gpu1 many.nvme0"

/* All that is behind a port comes and goes by one command, and one event. */
static void test_shared_port(void)
{
	begin();
	rig_host_up(&rig_guest[B], true);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 9), 0);
	CHECK(wait_info(9, AT(B, 1, MRPC_BIND_BOUND)));
	CHECK(slot_has(B, 2, ALL_OF_9));
	CHECK_EQ(bindings_seen(A, B), 1);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, A, 1, 9),
		 MRPC_BIND_RET_PORT_BOUND);
	CHECK_EQ(info_of(A, 10), FREE);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 2, 10), 0);
	CHECK(wait_info(10, AT(B, 2, MRPC_BIND_BOUND)));
	CHECK(slot_has(B, 3, "many.gpu2 many.gpu3"));
	/* In use: none of them answers, until the slot is empty. */
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, B, 1, MRPC_BIND_OPTION), 0);
	CHECK(wait_info(9, AT(B, 1, MRPC_BIND_BOUND | MRPC_BIND_IN_PROGRESS)));
	CHECK(slot_has(B, 2, "many.gpu0 dead many.gpu1 dead many.nvme0 dead"));
	CHECK_EQ(bindings_seen(A, B), 2);
	CHECK(rig_power_off(&rig_guest[B], 2));
	CHECK(wait_info(9, FREE));
	CHECK_EQ(bindings_seen(A, B), 3);
	/* In order: the host has emptied it before. */
	CHECK(rig_power_off(&rig_guest[B], 3));
	CHECK_EQ(info_of(A, 10), AT(B, 2, MRPC_BIND_BOUND));
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, B, 2, MRPC_BIND_OPTION), 0);
	CHECK(wait_info(10, FREE));
	CHECK_EQ(bindings_seen(A, B), 4);
	end();
}

static void test_shared_port_refused(void)
{
	begin();
	rig_host_up(&rig_guest[B], true);
	rig_refuse_plug();
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 9), 0);
	CHECK(wait_info(9, FREE | MRPC_BIND_FAILED << 16));
	CHECK(slot_has(B, 2, ""));
	CHECK_EQ(bindings_seen(A, B), 1);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 9), 0);
	CHECK(wait_info(9, AT(B, 1, MRPC_BIND_BOUND)));
	CHECK(slot_has(B, 2, ALL_OF_9));
	end();
}

/* Whatever takes its host down, it finds all of them when it is back. */
static void test_shared_port_of_the_gone(void)
{
	begin();
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 9), 0);
	CHECK(wait_info(9, AT(B, 1, MRPC_BIND_BOUND)));
	for (int i = 0; i < 2; i++) {
		CHECK(slot_has(B, 2, ""));
		rig_host_up(&rig_guest[B], true);
		CHECK(slot_has(B, 2, ALL_OF_9));
		CHECK_EQ(info_of(A, 9), AT(B, 1, MRPC_BIND_BOUND));
		rig_host_up(&rig_guest[B], false);
		CHECK_EQ(info_of(A, 9), AT(B, 1, MRPC_BIND_BOUND));
	}
	/* Unbound while it is off: at once. */
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, B, 1, MRPC_BIND_OPTION), 0);
	CHECK(wait_info(9, FREE));
	rig_host_up(&rig_guest[B], true);
	CHECK(slot_has(B, 2, ""));
	end();
}

/* One of them is pulled out of the appliance, and put back. */
static void test_shared_port_loses_one(void)
{
	begin();
	rig_host_up(&rig_guest[B], true);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 9), 0);
	CHECK(wait_info(9, AT(B, 1, MRPC_BIND_BOUND)));
	control("{\"cmd\":\"remove\",\"endpoint\":\"many.gpu0\"}");
	CHECK(slot_has(B, 2, "many.gpu0 dead many.gpu1 many.nvme0"));
	CHECK_EQ(info_of(A, 9), AT(B, 1, MRPC_BIND_BOUND));
	/* A host that boots without it gets the others. */
	rig_host_up(&rig_guest[B], false);
	rig_host_up(&rig_guest[B], true);
	CHECK(slot_has(B, 2, "many.gpu1 many.nvme0"));
	control("{\"cmd\":\"insert\",\"endpoint\":\"many.gpu0\"}");
	CHECK(slot_has(B, 2, "many.gpu1 many.nvme0"));
	rig_host_up(&rig_guest[B], false);
	rig_host_up(&rig_guest[B], true);
	CHECK(slot_has(B, 2, ALL_OF_9));
	/* Back, but not in the slot: it is not in the way of an unbind. */
	control("{\"cmd\":\"remove\",\"endpoint\":\"many.nvme0\"}");
	control("{\"cmd\":\"insert\",\"endpoint\":\"many.nvme0\"}");
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, B, 1, MRPC_BIND_OPTION), 0);
	CHECK(wait_info(9, AT(B, 1, MRPC_BIND_BOUND | MRPC_BIND_IN_PROGRESS)));
	CHECK(rig_power_off(&rig_guest[B], 2));
	CHECK(wait_info(9, FREE));
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, C, 1, 9), 0);
	CHECK(wait_info(9, AT(C, 1, MRPC_BIND_BOUND)));
	rig_host_up(&rig_guest[C], true);
	CHECK(slot_has(C, 2, ALL_OF_9));
	end();
}

static void test_shared_port_link(void)
{
	begin();
	rig_host_up(&rig_guest[B], true);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 10), 0);
	CHECK(wait_info(10, AT(B, 1, MRPC_BIND_BOUND)));
	control("{\"cmd\":\"link\",\"port\":\"p:10\",\"state\":\"down\"}");
	CHECK(slot_has(B, 2, "many.gpu2 cut many.gpu3 cut"));
	control("{\"cmd\":\"link\",\"port\":\"p:10\",\"state\":\"up\"}");
	CHECK(slot_has(B, 2, "many.gpu2 many.gpu3"));
	/* Without a way to it, it is bound and waits for the link. */
	control("{\"cmd\":\"link\",\"port\":\"p:9\",\"state\":\"down\"}");
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 2, 9), 0);
	CHECK(wait_info(9, AT(B, 2, MRPC_BIND_BOUND)));
	CHECK(slot_has(B, 3, ""));
	control("{\"cmd\":\"link\",\"port\":\"p:9\",\"state\":\"up\"}");
	CHECK(slot_has(B, 3, ALL_OF_9));
	CHECK_EQ(info_of(A, 9), AT(B, 2, MRPC_BIND_BOUND));
	end();
}

/* The file names one of them: the others go the same way. */
static void test_shared_port_in_the_file(void)
{
	begin_with(PARTITIONS
		   "bindings = ( { endpoint = \"many.gpu1\"; port = \"c.0\"; },\n"
		   "  { endpoint = \"box.gpu2\"; port = \"c.0\"; },\n"
		   "  { endpoint = \"many.nvme0\"; port = \"c.0\"; } );\n");
	CHECK_EQ(info_of(A, 9), AT(C, 1, MRPC_BIND_BOUND));
	CHECK_EQ(info_of(A, 7), AT(C, 2, MRPC_BIND_BOUND));
	rig_host_up(&rig_guest[C], true);
	CHECK(slot_has(C, 2, ALL_OF_9));
	CHECK(slot_has(C, 3, "box.gpu2"));
	CHECK_EQ(info_of(A, 9), AT(C, 1, MRPC_BIND_BOUND));
	end();
}

/* Who is no manager may look and not bind; the table says so. */
static void test_permission(void)
{
	begin();
	CHECK_EQ(bind_cmd(B, MRPC_BIND_BIND, B, 1, 5), MRPC_RET_DENIED);
	CHECK_EQ(bind_cmd(B, MRPC_BIND_UNBIND, B, 1, 2), MRPC_RET_DENIED);
	CHECK_EQ(info_of(B, 5), FREE);
	CHECK_EQ(bind_cmd(B, MRPC_BIND_INFO, MRPC_BIND_ALL, 0, 0), 0);
	CHECK_EQ(load(B, 0, MRPC_OUTPUT, 1), 10);
	wr(B, MRPC_INPUT, MRPC_BIND);
	CHECK_EQ(run(B, MRPC_PERMISSION), 0);
	CHECK_EQ(rd(B, MRPC_OUTPUT), 1 << A);
	wr(B, MRPC_INPUT, MRPC_ECHO);
	CHECK_EQ(run(B, MRPC_PERMISSION), 0);
	CHECK_EQ(rd(B, MRPC_OUTPUT), 7);
	wr(B, MRPC_INPUT, 1);
	CHECK_EQ(run(B, MRPC_COUNTERS), 0);
	wr(B, MRPC_INPUT, 2);
	CHECK_EQ(run(B, MRPC_COUNTERS), MRPC_RET_BAD_SUB);
	end();
}

static void test_links(void)
{
	begin();
	fabric_link_break(&rig_fabric, pfx_link(part(A)->pfx, 6), true);
	store(A, 0, MRPC_INPUT, 0, 8);
	CHECK_EQ(run(A, MRPC_LINKS), 0);
	/* Port, partition, logical, stack; widths, upstream, rate. */
	CHECK_EQ(load(A, 0, MRPC_OUTPUT + 12, 8), 0x8401101001000102);
	CHECK_EQ(load(A, 0, MRPC_OUTPUT + 4 * 12, 8), 0x8400101004ffff05);
	CHECK_EQ(load(A, 0, MRPC_OUTPUT + 5 * 12, 8), 0x0400001005ffff06);
	CHECK_EQ(load(A, 0, MRPC_OUTPUT + 10 * 12 + 3, 1), MRPC_LINKS_NOBODY);
	store(A, 0, MRPC_INPUT, 1 << 6, 8);
	CHECK_EQ(run(A, MRPC_LINKS), 0);
	CHECK_EQ(load(A, 0, MRPC_OUTPUT, 1), 6);
	CHECK_EQ(load(A, 0, MRPC_OUTPUT + 12 + 3, 1), MRPC_LINKS_NOBODY);
	end();
}

enum { DOWN, UP, NONSENSE };

/* What is said of a link, in all three places. */
static int link_of(unsigned int phys)
{
	uint64_t at;
	uint8_t width, ltssm;

	store(B, 0, MRPC_INPUT, 1ull << phys, 8);
	if (run(B, MRPC_LINKS) || load(B, 0, MRPC_OUTPUT, 1) != phys)
		return NONSENSE;
	at = load(B, 0, MRPC_OUTPUT, 8);
	width = at >> 40 & 0xff;
	ltssm = (uint8_t)load(B, 0, MRPC_OUTPUT + 8, 2);
	if (at >> 63)
		return width == 16 && ltssm == 3 ? UP : NONSENSE;
	return !width && !ltssm ? DOWN : NONSENSE;
}

/* By its link another host sees whether the owner has a device in its slot. */
static void test_link_of_the_bound(void)
{
	begin();
	CHECK_EQ(link_of(4), DOWN);
	CHECK_EQ(link_of(5), UP);
	CHECK_EQ(link_of(9), UP);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, C, 1, 9), 0);
	CHECK(wait_info(9, AT(C, 1, MRPC_BIND_BOUND)));
	CHECK_EQ(link_of(9), DOWN);	/* the host is off */
	rig_hold_presence(true);
	rig_host_up(&rig_guest[C], true);
	CHECK_EQ(link_of(9), DOWN);
	rig_hold_presence(false);
	rig_settle();
	CHECK_EQ(link_of(9), UP);
	control("{\"cmd\":\"remove\",\"endpoint\":\"many.gpu0\"}");
	CHECK_EQ(link_of(9), UP);
	CHECK(rig_power_off(&rig_guest[C], 2));
	CHECK_EQ(link_of(9), DOWN);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, C, 1, MRPC_BIND_OPTION), 0);
	CHECK(wait_info(9, FREE));
	CHECK_EQ(link_of(9), UP);
	/* One that is taken away is not there any more, whatever its host does. */
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, C, 1, 9), 0);
	CHECK(wait_info(9, AT(C, 1, MRPC_BIND_BOUND)));
	CHECK_EQ(bind_cmd(A, MRPC_BIND_UNBIND, C, 1, MRPC_BIND_OPTION), 0);
	rig_settle();
	CHECK_EQ(info_of(A, 9),
		 AT(C, 1, MRPC_BIND_BOUND | MRPC_BIND_IN_PROGRESS));
	CHECK_EQ(link_of(9), DOWN);
	rig_host_up(&rig_guest[C], false);
	CHECK(wait_info(9, FREE));
	CHECK_EQ(link_of(9), UP);
	/* Nothing is behind it, and nothing comes before it is put back. */
	CHECK_EQ(link_of(5), UP);
	control("{\"cmd\":\"remove\",\"endpoint\":\"box.gpu0\"}");
	CHECK_EQ(link_of(5), DOWN);
	control("{\"cmd\":\"insert\",\"endpoint\":\"box.gpu0\"}");
	CHECK_EQ(link_of(5), UP);
	end();
}

static void test_link_of_hosts(void)
{
	begin();
	CHECK_EQ(link_of(3), UP);
	pfx_function_ops.detach(part(C));
	CHECK_EQ(link_of(3), DOWN);
	pfx_function_ops.attach(part(C));
	CHECK_EQ(link_of(3), UP);
	control("{\"cmd\":\"link\",\"port\":\"c.0\",\"state\":\"down\"}");
	CHECK_EQ(link_of(3), DOWN);
	end();
}

/* ---- Firmware that answers wrongly, or not at all ---- */

static bool fault(const char *kind, const char *rest)
{
	char line[256];

	snprintf(line, sizeof(line),
		 "{\"cmd\":\"fault\",\"kind\":\"%s\",\"port\":\"a.0\"%s}", kind,
		 rest);
	return control(line);
}

static bool hang(const char *rest)
{
	char line[256];

	snprintf(line, sizeof(line),
		 "{\"cmd\":\"admin-hang\",\"port\":\"a.0\"%s}", rest);
	return control(line);
}

static void test_no_answer(void)
{
	begin();
	CHECK(hang(",\"opcode\":65"));
	run(A, MRPC_COUNTERS);
	CHECK(rd(A, MRPC_STATUS) != MRPC_IN_PROGRESS);
	run(B, MRPC_ECHO);
	CHECK(rd(B, MRPC_STATUS) != MRPC_IN_PROGRESS);
	run(A, MRPC_ECHO);
	CHECK_EQ(rd(A, MRPC_STATUS), MRPC_IN_PROGRESS);
	/* It takes no other command before it is reset. */
	run(A, MRPC_COUNTERS);
	CHECK_EQ(rd(A, MRPC_STATUS), MRPC_IN_PROGRESS);
	pfx_function_ops.reset(part(A), FUNCTION_RESET_FLR);
	CHECK_EQ(run(A, MRPC_ECHO), 0);
	CHECK_EQ(rd(A, MRPC_STATUS), MRPC_DONE);
	/* The numbers of commands have more than eight bits. */
	CHECK(hang(",\"opcode\":256"));
	run(A, MRPC_PING);
	CHECK_EQ(rd(A, MRPC_STATUS), MRPC_IN_PROGRESS);
	end();
}

static void test_wrong_answers(void)
{
	begin();
	CHECK(fault("corrupt-completion", ""));
	CHECK_EQ(bind_cmd(A, MRPC_BIND_INFO, MRPC_BIND_ALL, 0, 0), 0);
	CHECK_EQ(rd(A, MRPC_OUTPUT), ~0u);
	CHECK_EQ(rd(A, MRPC_OUTPUT + MRPC_PAYLOAD - 4), ~0u);
	CHECK_EQ(info_of(A, 6), FREE);
	/* Cut off in the middle of the second port's entry. */
	CHECK(fault("short-answer", ",\"opcode\":12,\"length\":9"));
	wr(A, MRPC_INPUT, 0);
	CHECK_EQ(run(A, MRPC_ECHO), 0);
	CHECK_EQ(rd(A, MRPC_OUTPUT), ~0u);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_INFO, MRPC_BIND_ALL, 0, 0), 0);
	CHECK_EQ(rd(A, MRPC_OUTPUT), 10);
	CHECK_EQ(rd(A, MRPC_OUTPUT + 4), 1 | FREE << 8);
	CHECK_EQ(rd(A, MRPC_OUTPUT + 8), 2);
	CHECK_EQ(rd(A, MRPC_OUTPUT + 12), 0);
	/* A count and a state that are wrong, in two answers each. */
	CHECK(fault("wrong-answer",
		    ",\"opcode\":12,\"sub\":2,\"offset\":0,\"value\":200,\"count\":2"));
	CHECK(fault("wrong-answer",
		    ",\"opcode\":12,\"sub\":2,\"offset\":7,\"value\":255,\"count\":2"));
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(bind_cmd(A, MRPC_BIND_INFO, 5, 0, 0), 0);
		CHECK_EQ(load(A, 0, MRPC_OUTPUT, 1), 200);
		CHECK_EQ(rd(A, MRPC_OUTPUT + 4), 5 | FREE << 8 | 0xffu << 24);
	}
	CHECK_EQ(info_of(A, 5), FREE);
	/* What another host asks is answered rightly. */
	CHECK(fault("wrong-answer", ",\"value\":1"));
	CHECK_EQ(info_of(B, 5), FREE);
	CHECK_EQ(run(A, MRPC_PING), 0);
	CHECK_EQ(load(A, 0, MRPC_OUTPUT, 1), 1);
	end();
}

/* The command says something, and that is all it does. */
static void test_wrong_returns(void)
{
	begin();
	rig_host_up(&rig_guest[B], true);
	CHECK(fault("wrong-return", ",\"opcode\":12,\"sub\":0,\"value\":409616"));
	CHECK_EQ(info_of(A, 5), FREE);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 5), MRPC_RET_DENIED);
	CHECK_EQ(rd(A, MRPC_STATUS), MRPC_ERROR);
	CHECK(fault("wrong-return", ",\"opcode\":12,\"sub\":0"));
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 5), 0);
	CHECK_EQ(rd(A, MRPC_STATUS), MRPC_DONE);
	rig_settle();
	CHECK_EQ(info_of(A, 5), FREE);
	CHECK_EQ(bind_cmd(A, MRPC_BIND_BIND, B, 1, 5), 0);
	CHECK(wait_info(5, AT(B, 1, MRPC_BIND_BOUND)));
	end();
}

/* What is armed ends with the function's reset, or when that is asked for. */
static void test_faults_end(void)
{
	begin();
	wr(A, MRPC_INPUT, 0);
	CHECK(fault("short-answer", ",\"count\":100"));
	CHECK(hang(",\"opcode\":7"));
	pfx_function_ops.reset(part(A), FUNCTION_RESET_DEVICE);
	CHECK_EQ(run(A, MRPC_ECHO), 0);
	CHECK_EQ(rd(A, MRPC_OUTPUT), ~0u);
	run(A, MRPC_COUNTERS);
	CHECK(rd(A, MRPC_STATUS) != MRPC_IN_PROGRESS);
	CHECK(fault("short-answer", ",\"count\":100"));
	CHECK(fault("wrong-answer", ",\"offset\":1,\"value\":5,\"count\":100"));
	CHECK(fault("short-answer", ",\"count\":0"));
	CHECK_EQ(run(A, MRPC_ECHO), 0);
	CHECK_EQ(rd(A, MRPC_OUTPUT), 0xffff05ff);
	end();
}

static void test_faults_refused(void)
{
	begin();
	CHECK(!fault("corrupt-payload", ""));
	CHECK(!fault("short-answer", ",\"length\":1024"));
	CHECK(!fault("wrong-answer", ",\"offset\":-1"));
	CHECK(!fault("wrong-answer", ",\"value\":256"));
	CHECK(!fault("wrong-return", ",\"opcode\":65536"));
	CHECK(!fault("wrong-return", ",\"sub\":256"));
	CHECK(!fault("wrong-return", ",\"count\":\"many\""));
	CHECK(!control("{\"cmd\":\"fault\",\"kind\":\"wrong-return\",\"port\":\"p:5\"}"));
	for (unsigned int i = 0; i < PFX_FAULTS; i++)
		CHECK(fault("wrong-return", ",\"opcode\":1"));
	CHECK(!fault("wrong-return", ",\"opcode\":1"));
	CHECK(fault("wrong-return", ",\"count\":0"));
	CHECK(fault("wrong-return", ",\"opcode\":1"));
	end();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(commands), T(bind), T(two_binds), T(unbind), T(bind_refused),
	T(bind_in_progress),
	T(shared_port), T(shared_port_refused), T(shared_port_of_the_gone),
	T(shared_port_loses_one), T(shared_port_link),
	T(shared_port_in_the_file), T(permission), T(links),
	T(link_of_the_bound), T(link_of_hosts), T(no_answer), T(wrong_answers),
	T(wrong_returns), T(faults_end), T(faults_refused),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
