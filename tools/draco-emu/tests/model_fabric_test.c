// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fabric model: paths and who sees whom, binding state machine, owners
 * who agree, refuse and vanish, the state file, the control socket's commands.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "rig/pair.h"
#include "tap.h"

static struct draco_acmd command(unsigned int op, uint32_t id, uint64_t arg0)
{
	struct draco_acmd c = rig_cmd(op, id, 4096);

	c.arg[0] = arg0;
	return c;
}

static uint32_t ep_id(unsigned int i)
{
	return fabric_ep_id(&rig_fabric, i);
}

static struct draco_object ep(unsigned int i)
{
	struct draco_object o;

	fabric_object(&rig_fabric, ep_id(i), &o);
	return o;
}

static unsigned int state(unsigned int i)
{
	rig_settle();
	return ep(i).state;
}

static uint64_t counted(struct counters *c, enum counter which)
{
	return count_get(c, which);
}

static uint32_t port_id(struct rig_guest *g)
{
	return g->port->link->id;
}

static unsigned int bind_ep(struct rig_guest *by, unsigned int i,
			    struct rig_guest *to, uint64_t *slot)
{
	struct draco_acpl cpl;
	unsigned int sc;

	sc = rig_admin(by, command(DRACO_ADM_BIND, ep_id(i), port_id(to)),
		       &cpl);
	if (slot)
		*slot = cpl.result;
	return sc;
}

static unsigned int unbind_ep(struct rig_guest *by, unsigned int i,
			      unsigned int flags)
{
	struct draco_acmd c = command(DRACO_ADM_UNBIND, ep_id(i), 0);

	c.flags = flags;
	return rig_admin(by, c, NULL);
}

/* Wait for the next event of that kind. */
static bool event(struct rig_guest *g, unsigned int type,
		  struct draco_event *out)
{
	for (int tries = 0; tries < 20; tries++) {
		struct draco_acmd c = rig_cmd(DRACO_ADM_GET_EVENTS, 0, 64);
		uint16_t cid = rig_post(g, &c);
		struct draco_acpl cpl;

		if (!rig_wait(g, cid, &cpl, RIG_HUNG)) {
			rig_admin(g, rig_cmd(DRACO_ADM_ABORT, cid, 0), NULL);
			return false;
		}
		memcpy(out, rig_data(g), sizeof(*out));
		if (out->type == type)
			return true;
	}
	return false;
}

/* ---- Paths ---- */

static struct link *link_called(const char *name)
{
	return fabric_link_by_id(&rig_fabric, fabric_find(&rig_fabric, name));
}

static bool reach(struct rig_guest *x, struct rig_guest *y)
{
	return fabric_reachable(&rig_fabric, x->port, y->port);
}

static void test_paths(void)
{
	struct fabrex_sqe s;

	BEGIN();
	CHECK(reach(A, C) && reach(C, A) && reach(A, B) && reach(A, A));
	rkey = rig_mr(C, DST, LEN, RIG_ALL, PD, NULL);
	s = entry(FABREX_OP_WRITE);
	s.peer = 2;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(count_get(&link_called("s1:7")->counters, CNT_TX_BYTES), 4096);
	/* One link goes: around over the other. */
	fabric_link_break(&rig_fabric, link_called("s1:7"), true);
	CHECK(reach(A, C));
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(count_get(&link_called("s1:8")->counters, CNT_TX_BYTES), 4096);
	fabric_link_control(&rig_fabric, link_called("s2:6"),
			    DRACO_PORTC_DISABLE);
	CHECK(!reach(A, C) && reach(A, B));
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_UNREACHABLE);
	fabric_link_break(&rig_fabric, link_called("s1:7"), false);
	CHECK(reach(A, C));
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	END();
}

static void test_link_states(void)
{
	struct draco_object o;
	struct draco_event ev;

	BEGIN();
	fabric_link_control(&rig_fabric, link_called("s1:7"),
			    DRACO_PORTC_DISABLE);
	fabric_object(&rig_fabric, link_called("s1:7")->id, &o);
	CHECK_EQ(o.state, DRACO_LINK_DISABLED);
	CHECK_EQ(o.speed, 0);
	fabric_object(&rig_fabric, link_called("s2:5")->id, &o);
	CHECK_EQ(o.state, DRACO_LINK_DOWN);
	CHECK_EQ(o.max_speed, 16000);
	CHECK(event(B, DRACO_EV_LINK, &ev));
	CHECK_EQ(ev.object, link_called("s1:7")->id);
	CHECK_EQ(ev.state, DRACO_LINK_DISABLED);
	fabric_link_control(&rig_fabric, link_called("s1:7"),
			    DRACO_PORTC_ENABLE);
	fabric_object(&rig_fabric, link_called("s2:5")->id, &o);
	CHECK_EQ(o.state, DRACO_LINK_UP);
	END();
}

static void test_peer_events(void)
{
	struct draco_event ev;

	BEGIN();
	CHECK(event(B, DRACO_EV_PEER_UP, &ev));
	fabric_link_control(&rig_fabric, A->port->link, DRACO_PORTC_DISABLE);
	CHECK(event(B, DRACO_EV_PEER_DOWN, &ev));
	CHECK_EQ(ev.arg[1], 0);
	CHECK_EQ(ev.arg[0], 1);
	CHECK(!(rig_read(A, DRACO_REG_STATUS) & DRACO_STATUS_LINK));
	fabric_link_control(&rig_fabric, A->port->link, DRACO_PORTC_ENABLE);
	CHECK(event(B, DRACO_EV_PEER_UP, &ev));
	CHECK_EQ(ev.arg[0], 1);
	CHECK(rig_disable(A));
	CHECK(event(B, DRACO_EV_PEER_DOWN, &ev));
	CHECK(rig_enable(A));
	CHECK(event(B, DRACO_EV_PEER_UP, &ev));
	CHECK_EQ(ev.arg[0], 2);
	/* Who comes later is told of those that are there. */
	CHECK(event(A, DRACO_EV_PEER_UP, &ev));
	END();
}

/* ---- Binding ---- */

static void test_bind_and_release(void)
{
	struct draco_event ev;
	struct draco_acmd c;
	struct draco_acpl cpl;
	uint64_t slot;
	uint16_t cid;

	BEGIN();
	rig_host_up(B, true);
	CHECK_EQ(bind_ep(A, 0, B, &slot), 0);
	CHECK_EQ(slot, 2);
	CHECK_EQ(state(0), DRACO_EP_BOUND);
	CHECK_EQ(ep(0).bound, port_id(B));
	CHECK(rig_slot_full(B, 2));
	CHECK_EQ(bind_ep(A, 0, A, NULL), DRACO_SC_BOUND);
	c = command(DRACO_ADM_UNBIND, ep_id(0), 3000);
	cid = rig_post(A, &c);
	CHECK(event(B, DRACO_EV_RELEASE_REQUEST, &ev));
	CHECK_EQ(ev.object, ep_id(0));
	CHECK_EQ(ev.arg[1], 2);
	CHECK_EQ(ev.arg[2], 3000);
	CHECK_EQ(state(0), DRACO_EP_RELEASING);
	CHECK_EQ(unbind_ep(A, 0, 0), DRACO_SC_IN_PROGRESS);
	CHECK_EQ(bind_ep(A, 0, A, NULL), DRACO_SC_IN_PROGRESS);
	c = command(DRACO_ADM_RELEASE_REPLY, ep_id(0), ev.arg[0] + 1);
	CHECK_EQ(rig_admin(B, c, NULL), DRACO_SC_TIMEOUT);
	c.arg[0] = ev.arg[0];
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_NOT_BOUND);
	CHECK_EQ(rig_admin(B, c, NULL), DRACO_SC_OK);
	CHECK(!rig_wait(A, cid, &cpl, 30));
	CHECK(rig_power_off(B, 2));
	CHECK(rig_wait(A, cid, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, 0);
	CHECK_EQ(state(0), DRACO_EP_FREE);
	CHECK_EQ(ep(0).bound, 0);
	END();
}

/* A asks for an endpoint of B, which agrees; the slot gets 50 ms to be empty,
 * and is not. The command is over then.
 */
static void release_late(unsigned int i)
{
	struct draco_acmd c = command(DRACO_ADM_UNBIND, ep_id(i), 60000);
	struct draco_event ev;
	struct draco_acpl cpl;
	uint16_t cid;

	c.arg[1] = 50;
	cid = rig_post(A, &c);
	CHECK(event(B, DRACO_EV_RELEASE_REQUEST, &ev));
	CHECK_EQ(rig_admin(B, command(DRACO_ADM_RELEASE_REPLY, ep_id(i),
				      ev.arg[0]), NULL), 0);
	CHECK(rig_wait(A, cid, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, DRACO_SC_TIMEOUT);
	CHECK_EQ(cpl.result, 1);
	CHECK_EQ(state(i), DRACO_EP_RELEASING);
}

/* An owner that has agreed does not get the endpoint back, however long its host
 * takes; whoever asks again waits for the same slot.
 */
static void test_slow_slot(void)
{
	struct draco_acpl cpl;
	struct draco_acmd c;
	uint16_t cid;

	BEGIN();
	rig_host_up(B, true);
	CHECK_EQ(bind_ep(A, 0, B, NULL), 0);
	release_late(0);
	CHECK_EQ(bind_ep(A, 0, A, NULL), DRACO_SC_IN_PROGRESS);
	c = command(DRACO_ADM_UNBIND, ep_id(0), 60000);
	c.arg[1] = 60000;
	cid = rig_post(A, &c);
	CHECK(!rig_wait(A, cid, &cpl, 30));
	CHECK_EQ(unbind_ep(A, 0, 0), DRACO_SC_IN_PROGRESS);
	CHECK(rig_power_off(B, 2));
	CHECK(rig_wait(A, cid, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, 0);
	CHECK_EQ(state(0), DRACO_EP_FREE);
	/* Nobody asks again. */
	CHECK_EQ(bind_ep(A, 1, B, NULL), 0);
	release_late(1);
	CHECK(rig_power_off(B, ep(1).slot));
	CHECK_EQ(state(1), DRACO_EP_FREE);
	END();
}

static void test_owner_refuses(void)
{
	struct draco_holder *h, mine = { .pid = 42, .comm = "train",
					 .reason = "open files" };
	struct draco_event ev;
	struct draco_acpl cpl;
	struct draco_acmd c;
	uint16_t cid;

	BEGIN();
	rig_host_up(B, true);
	CHECK_EQ(bind_ep(A, 0, B, NULL), 0);
	c = command(DRACO_ADM_UNBIND, ep_id(0), 0);
	cid = rig_post(A, &c);
	CHECK(event(B, DRACO_EV_RELEASE_REQUEST, &ev));
	CHECK_EQ(ev.arg[2], 5000);
	memcpy(rig_data(B), &mine, sizeof(mine));
	c = command(DRACO_ADM_RELEASE_REPLY, ep_id(0), ev.arg[0]);
	c.arg[1] = DRACO_RELEASE_BUSY;
	CHECK_EQ(rig_admin(B, c, NULL), 0);
	CHECK(rig_wait(A, cid, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, DRACO_SC_BUSY);
	h = rig_data(A);
	CHECK_EQ(h->pid, 42);
	CHECK_EQ(h->port, port_id(B));
	CHECK(!strcmp(h->comm, "train") && !strcmp(h->reason, "open files"));
	CHECK_EQ(state(0), DRACO_EP_BOUND);
	END();
}

static void test_owner_silent_or_gone(void)
{
	struct draco_event ev;
	struct draco_acpl cpl;
	struct draco_acmd c;
	uint16_t cid;

	BEGIN();
	rig_host_up(B, true);
	CHECK_EQ(bind_ep(A, 0, B, NULL), 0);
	c = command(DRACO_ADM_UNBIND, ep_id(0), 50);
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_TIMEOUT);
	CHECK_EQ(state(0), DRACO_EP_BOUND);
	c.arg[0] = 5000;
	c.cid = 0;
	cid = rig_post(A, &c);
	CHECK(event(B, DRACO_EV_RELEASE_REQUEST, &ev));
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_ABORT, cid, 0), &cpl), 0);
	CHECK(rig_wait(A, cid, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, DRACO_SC_ABORTED);
	CHECK_EQ(state(0), DRACO_EP_BOUND);
	c.cid = 0;
	cid = rig_begin(A, &c);
	CHECK(rig_disable(B));
	CHECK(rig_wait(A, cid, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, 0);
	CHECK_EQ(state(0), DRACO_EP_FREE);
	/* Nobody to ask at all. */
	CHECK(rig_power_off(B, 2));
	CHECK_EQ(bind_ep(A, 1, B, NULL), 0);
	CHECK_EQ(unbind_ep(A, 1, 0), 0);
	CHECK_EQ(state(1), DRACO_EP_FREE);
	END();
}

static void test_force_and_removal(void)
{
	struct draco_event ev;
	uint64_t slot;

	BEGIN();
	rig_host_up(A, true);
	rig_host_up(B, true);
	CHECK_EQ(bind_ep(A, 0, B, NULL), 0);
	CHECK_EQ(unbind_ep(A, 0, DRACO_BINDF_FORCE), 0);
	CHECK_EQ(state(0), DRACO_EP_FREE);
	CHECK(event(B, DRACO_EV_RELEASE_REQUEST, &ev));
	CHECK(ev.flags & DRACO_EVF_FORCE);
	/* At once elsewhere, while the dead one still fills its slot. */
	CHECK(rig_slot_full(B, 2));
	CHECK_EQ(bind_ep(A, 0, A, NULL), 0);
	CHECK_EQ(bind_ep(A, 1, B, &slot), 0);
	CHECK_EQ(slot, 3);
	CHECK(rig_power_off(B, 2));
	CHECK_EQ(state(0), DRACO_EP_BOUND);
	json_object_put(control_execute(&rig_fabric,
			"{\"cmd\":\"remove\",\"endpoint\":\"box.gpu1\"}"));
	CHECK_EQ(state(1), DRACO_EP_GONE);
	CHECK_EQ(bind_ep(A, 1, A, NULL), DRACO_SC_GONE);
	CHECK_EQ(unbind_ep(A, 1, 0), DRACO_SC_GONE);
	json_object_put(control_execute(&rig_fabric,
			"{\"cmd\":\"insert\",\"endpoint\":\"box.gpu1\"}"));
	CHECK_EQ(state(1), DRACO_EP_FREE);
	END();
}

static void test_bind_refusals(void)
{
	struct draco_acmd c;
	struct draco_acpl cpl;

	BEGIN();
	rig_host_up(A, true);
	CHECK_EQ(rig_admin(A, command(DRACO_ADM_BIND, 1, port_id(A)), NULL),
		 DRACO_SC_BAD_ID);
	CHECK_EQ(rig_admin(A, command(DRACO_ADM_BIND, ep_id(0), 1), NULL),
		 DRACO_SC_BAD_ID);
	CHECK_EQ(rig_admin(A, command(DRACO_ADM_BIND, ep_id(0), ~0ull), NULL),
		 DRACO_SC_BAD_ID);
	CHECK_EQ(unbind_ep(A, 0, 0), DRACO_SC_NOT_BOUND);
	c = command(DRACO_ADM_BIND, ep_id(0), port_id(A));
	c.flags = DRACO_BINDF_DRY_RUN;
	CHECK_EQ(rig_admin(A, c, &cpl), 0);
	CHECK_EQ(cpl.result, 2);
	CHECK_EQ(state(0), DRACO_EP_FREE);
	fabric_link_break(&rig_fabric, link_called("s1:5"), true);
	CHECK_EQ(bind_ep(A, 0, A, NULL), DRACO_SC_LINK_DOWN);
	fabric_link_break(&rig_fabric, link_called("s1:5"), false);
	for (unsigned int i = 0; i < 3; i++)
		CHECK_EQ(bind_ep(A, i, A, NULL), 0);
	CHECK_EQ(bind_ep(A, 3, A, NULL), DRACO_SC_NO_SLOT);
	END();
}

/* What is in a slot that was given up is dead: its owner is asked to empty it. */
static bool told_to_empty(struct rig_guest *g, unsigned int n)
{
	struct draco_event ev;

	do {
		if (!event(g, DRACO_EV_RELEASE_REQUEST, &ev))
			return false;
	} while (ev.object != ep_id(n));
	return ev.flags & DRACO_EVF_FORCE && ev.arg[0] && ev.arg[1];
}

static void test_bind_abort(void)
{
	struct draco_acpl cpl;
	struct draco_acmd c;
	uint16_t cid;

	BEGIN();
	rig_host_up(B, true);
	rig_hold_presence(true);
	c = command(DRACO_ADM_BIND, ep_id(0), port_id(B));
	cid = rig_post(A, &c);
	CHECK(!rig_wait(A, cid, &cpl, 30));
	CHECK_EQ(state(0), DRACO_EP_BINDING);
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_ABORT, cid, 0), &cpl), 0);
	CHECK_EQ(cpl.result, 1);
	CHECK(rig_wait(A, cid, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, DRACO_SC_ABORTED);
	CHECK_EQ(state(0), DRACO_EP_FREE);
	CHECK(told_to_empty(B, 0));
	rig_hold_presence(false);
	END();
}

static void test_hosts_come_and_go(void)
{
	uint64_t slot;

	BEGIN();
	CHECK_EQ(bind_ep(A, 0, B, &slot), 0);
	CHECK_EQ(slot, 2);
	CHECK_EQ(state(0), DRACO_EP_ATTACHING);
	CHECK_EQ(ep(0).slot, 2);
	CHECK_EQ(bind_ep(A, 1, B, &slot), 0);
	CHECK_EQ(slot, 3);
	rig_host_up(B, true);
	CHECK_EQ(state(0), DRACO_EP_BOUND);
	CHECK_EQ(state(1), DRACO_EP_BOUND);
	rig_host_up(B, false);
	CHECK_EQ(state(0), DRACO_EP_ATTACHING);
	CHECK_EQ(ep(0).bound, port_id(B));
	rig_host_up(B, true);
	CHECK_EQ(state(0), DRACO_EP_BOUND);
	rig_host_up(B, false);
	CHECK_EQ(unbind_ep(A, 0, 0), 0);
	CHECK_EQ(state(0), DRACO_EP_FREE);
	END();
}

/* Releasing asks for no link; binding and plugging in do. */
static void test_uplink_down(void)
{
	struct draco_event ev;
	struct link *uplink;
	struct draco_acpl cpl;
	struct draco_acmd c;
	uint16_t cid;

	BEGIN();
	uplink = link_called("s1:5");
	rig_host_up(B, true);
	CHECK_EQ(bind_ep(A, 0, B, NULL), 0);
	CHECK_EQ(bind_ep(A, 1, B, NULL), 0);
	fabric_link_break(&rig_fabric, uplink, true);
	CHECK(!rig_slot_linked(B, 2) && !rig_slot_linked(B, 3));
	CHECK_EQ(state(0), DRACO_EP_BOUND);
	CHECK_EQ(counted(&uplink->counters, CNT_LINK_DOWNS), 1);
	c = rig_cmd(DRACO_ADM_GET_COUNTERS, ep_id(0), 128);
	CHECK_EQ(rig_admin(A, c, NULL), 0);
	c = command(DRACO_ADM_UNBIND, ep_id(0), 3000);
	cid = rig_post(A, &c);
	CHECK(event(B, DRACO_EV_RELEASE_REQUEST, &ev));
	c = command(DRACO_ADM_RELEASE_REPLY, ep_id(0), ev.arg[0]);
	CHECK_EQ(rig_admin(B, c, NULL), DRACO_SC_OK);
	CHECK(rig_power_off(B, 2));
	CHECK(rig_wait(A, cid, &cpl, 5000));
	CHECK_EQ(cpl.status, 0);
	CHECK_EQ(bind_ep(A, 0, B, NULL), DRACO_SC_LINK_DOWN);
	CHECK_EQ(unbind_ep(A, 1, DRACO_BINDF_FORCE), 0);
	CHECK_EQ(state(1), DRACO_EP_FREE);
	fabric_link_break(&rig_fabric, uplink, false);
	rig_settle();
	CHECK_EQ(bind_ep(A, 0, B, NULL), 0);
	/* A host that comes up meanwhile has it when the link is back. */
	rig_host_up(B, false);
	fabric_link_break(&rig_fabric, uplink, true);
	rig_host_up(B, true);
	CHECK_EQ(state(0), DRACO_EP_ATTACHING);
	fabric_link_break(&rig_fabric, uplink, false);
	rig_settle();
	CHECK_EQ(state(0), DRACO_EP_BOUND);
	/* The link goes while the slot is being filled. */
	rig_hold_presence(true);
	c = command(DRACO_ADM_BIND, ep_id(2), port_id(B));
	cid = rig_post(A, &c);
	CHECK(!rig_wait(A, cid, &cpl, 30));
	fabric_link_break(&rig_fabric, uplink, true);
	rig_hold_presence(false);
	CHECK(rig_wait(A, cid, &cpl, 5000));
	CHECK_EQ(cpl.status, DRACO_SC_LINK_DOWN);
	CHECK_EQ(state(2), DRACO_EP_FREE);
	CHECK(told_to_empty(B, 2));
	END();
}

static bool file_has(const char *path, const char *text)
{
	char buf[4096] = "";
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;

	if (f)
		fclose(f);
	return n && strstr(buf, text);
}

static void test_state_file(void)
{
	char path[] = "/tmp/model-fabric-XXXXXX";
	uint64_t slot;
	int fd = mkstemp(path);

	close(fd);
	unlink(path);
	rig_start(NULL, 2, path);
	CHECK(rig_enable(A) && rig_enable(B));
	CHECK_EQ(bind_ep(A, 4, B, &slot), 0);
	CHECK_EQ(bind_ep(A, 5, B, &slot), 0);
	CHECK_EQ(unbind_ep(A, 4, 0), 0);
	END();
	CHECK(file_has(path, "binding box.gpu5 b.0 3\n"));
	CHECK(!file_has(path, "gpu4"));
	rig_start(NULL, 2, path);
	CHECK_EQ(state(5), DRACO_EP_ATTACHING);
	CHECK_EQ(ep(5).slot, 3);
	CHECK_EQ(state(4), DRACO_EP_FREE);
	CHECK(rig_enable(A));
	CHECK_EQ(rig_read(A, DRACO_REG_GENERATION), 2);
	END();
	unlink(path);
}

static void test_topology_bindings(void)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "%s bindings = ( { endpoint = \"box.gpu3\"; port = \"c.0\"; } );",
		 rig_topology);
	rig_start(text, 2, NULL);
	CHECK_EQ(state(3), DRACO_EP_ATTACHING);
	CHECK_EQ(ep(3).bound, port_id(C));
	END();
}

/* ---- Endpoint memory ---- */

#define BAR	0x80000000ull

static unsigned char vram[2][1 << 16] __attribute__((aligned(4096)));

static bool setup_vram(uint64_t *from, uint64_t *to)
{
	rig_host_up(A, true);
	rig_host_up(B, true);
	if (bind_ep(A, 0, A, NULL) || bind_ep(A, 5, B, NULL) ||
	    !rig_map_bar(A, 2, BAR, vram[0], sizeof(vram[0])) ||
	    !rig_map_bar(B, 2, BAR, vram[1], sizeof(vram[1])))
		return false;
	*from = rig_mr(A, BAR, sizeof(vram[0]), RIG_ALL, PD, NULL);
	*to = rig_mr(B, BAR, sizeof(vram[1]), RIG_ALL, PD, NULL);
	memset(vram[0], 0x3c, sizeof(vram[0]));
	memset(vram[1], 0, sizeof(vram[1]));
	return true;
}

static void test_endpoint_to_endpoint(void)
{
	struct counters *own, *e0, *e5;
	struct fabrex_sqe s;
	uint64_t from, to;

	BEGIN();
	CHECK(setup_vram(&from, &to));
	own = &A->port->counters;
	e0 = &rig_fabric.eps[0].counters;
	e5 = &rig_fabric.eps[5].counters;
	s = entry(FABREX_OP_WRITE);
	s.lkey = from;
	s.rkey = to;
	s.length = 20000;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(!memcmp(vram[0], vram[1], 20000));
	CHECK_EQ(counted(own, CNT_P2P_BYTES), 20000);
	CHECK_EQ(counted(own, CNT_HOST_BYTES), 0);
	CHECK_EQ(counted(e0, CNT_TX_BYTES), 20000);
	CHECK_EQ(counted(e5, CNT_RX_BYTES), 20000);
	/* Host memory at one end. */
	s.rkey = rkey;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(counted(own, CNT_P2P_BYTES), 20000);
	CHECK_EQ(counted(own, CNT_HOST_BYTES), 20000);
	/* Behind an uplink that is down nothing answers. */
	s.rkey = to;
	fabric_link_control(&rig_fabric, rig_fabric.eps[5].uplink,
			    DRACO_PORTC_DISABLE);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RFAULT);
	fabric_link_control(&rig_fabric, rig_fabric.eps[5].uplink,
			    DRACO_PORTC_ENABLE);
	fabric_link_break(&rig_fabric, rig_fabric.eps[0].uplink, true);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_LFAULT);
	END();
}

/* ---- Control socket ---- */

static bool control_ok(const char *line)
{
	struct json_object *r = control_execute(&rig_fabric, line), *ok;
	bool good = json_object_object_get_ex(r, "ok", &ok) &&
		    json_object_get_boolean(ok);

	json_object_put(r);
	return good;
}

static void test_control(void)
{
	struct fabrex_sqe s;

	BEGIN();
	CHECK(control_ok("{\"cmd\":\"status\"}"));
	CHECK(control_ok("{\"cmd\":\"topology\"}"));
	CHECK(control_ok("{\"cmd\":\"log\",\"count\":5}"));
	CHECK(control_ok("{\"cmd\":\"counters\",\"object\":\"a.0\"}"));
	CHECK(control_ok("{\"cmd\":\"counters\",\"object\":\"box.gpu0\"}"));
	CHECK(!control_ok("{\"cmd\":\"counters\",\"object\":\"box\"}"));
	CHECK(control_ok("{\"cmd\":\"link\",\"port\":\"b.0\",\"state\":\"down\"}"));
	s = entry(FABREX_OP_WRITE);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_UNREACHABLE);
	CHECK(control_ok("{\"cmd\":\"link\",\"port\":\"b.0\",\"state\":\"up\"}"));
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(control_ok("{\"cmd\":\"fault\",\"kind\":\"corrupt-payload\",\"port\":\"a.0\"}"));
	s.flags = FABREX_SQE_CHECK;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_DATA);
	CHECK(control_ok("{\"cmd\":\"slow\",\"port\":\"s1:7\",\"bytes_per_second\":5}"));
	CHECK(control_ok("{\"cmd\":\"slow\",\"port\":\"s1:7\",\"bytes_per_second\":0}"));
	CHECK(control_ok("{\"cmd\":\"admin-hang\",\"port\":\"a.0\",\"count\":0}"));
	CHECK(control_ok("{\"cmd\":\"admin-hang\",\"port\":\"a.0\",\"opcode\":5,\"count\":0}"));
	CHECK(!control_ok("{\"cmd\":\"admin-hang\",\"port\":\"a.0\",\"opcode\":256}"));
	CHECK(!control_ok("{\"cmd\":\"fault\",\"kind\":\"x\",\"port\":\"a.0\"}"));
	CHECK(!control_ok("{\"cmd\":\"link\",\"port\":\"zz\",\"state\":\"up\"}"));
	CHECK(!control_ok("{\"cmd\":\"link\",\"port\":\"b.0\",\"state\":7}"));
	CHECK(!control_ok("{\"cmd\":5}"));
	CHECK(!control_ok("{}"));
	CHECK(!control_ok("[1,2]"));
	CHECK(!control_ok("nonsense"));
	CHECK(!control_ok(""));
	END();
}

static void test_switch_reset(void)
{
	struct draco_event ev;

	BEGIN();
	CHECK(control_ok("{\"cmd\":\"switch-reset\",\"switch\":\"s1\"}"));
	CHECK(rig_wait_status(A, DRACO_STATUS_READY | DRACO_STATUS_FATAL,
			      DRACO_STATUS_FATAL));
	CHECK_EQ(rig_read(A, DRACO_REG_ERROR), DRACO_FATAL_RESET);
	CHECK(in_error(&qa, FABREX_QERR_RESET));
	CHECK(rig_wait_status(B, DRACO_STATUS_FATAL, DRACO_STATUS_FATAL));
	CHECK_EQ(rig_read(C, DRACO_REG_STATUS) & DRACO_STATUS_READY, 1);
	CHECK(event(C, DRACO_EV_RESET, &ev));
	CHECK(event(C, DRACO_EV_PEER_DOWN, &ev));
	CHECK(rig_disable(A) && rig_enable(A));
	CHECK_EQ(rig_read(A, DRACO_REG_GENERATION), 2);
	END();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(paths), T(link_states), T(peer_events), T(bind_and_release),
	T(slow_slot), T(owner_refuses), T(owner_silent_or_gone),
	T(force_and_removal), T(bind_refusals), T(bind_abort),
	T(hosts_come_and_go), T(uplink_down), T(state_file),
	T(topology_bindings), T(endpoint_to_endpoint), T(control), T(switch_reset),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
