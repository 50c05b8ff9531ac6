// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin commands about the fabric: IDENTIFY, GET_OBJECTS, GET_PEERS, GET_EVENTS,
 * GET_REQUESTS, GET_LOG, GET_COUNTERS, GET_LINKS, PORT_CONTROL, ABORT. Called
 * by admin.c.
 */
#include <stdio.h>
#include <string.h>

#include "binding.h"
#include "fabric.h"
#include "port.h"

#define FIRMWARE	"draco-emu 1.0"

static void fill_limits(struct port *p, struct draco_identify *id)
{
	id->operations = ((2ull << FABREX_OP_SEND) - 1) |
			 (1ull << DRACO_OPS_CHECK);
	id->max_queues = p->queues.max;
	id->max_mrs = p->mrs.max;
	id->max_windows = p->windows.max;
	id->window_slot_size = p->windows.slot_size;
	id->max_transfer = PORT_MAX_TRANSFER;
	id->max_mr_pages = MR_MAX_PAGES;
	id->max_sq = FABREX_SQ_MAX;
	id->max_cq = FABREX_CQ_MAX;
	id->max_rq = FABREX_RQ_MAX;
	id->max_cell = FABREX_CELL_MAX;
}

unsigned int admin_identify(struct port *p, struct admin_cmd *c)
{
	struct draco_identify id = {
		.port_id = p->link->id,
		.host_id = fabric_host_id(p->fabric, p->host),
		.peer = p->peer,
		.max_peers = DRACO_MAX_PEERS,
		.generation = atomic_load(&p->generation),
		.flags = DRACO_IDF_EMULATED | DRACO_IDF_LINKS | DRACO_IDF_MESH |
			 (p->manager ? DRACO_IDF_MANAGER : 0),
		.firmware = FIRMWARE,
	};
	uint32_t counts[8] = { 0 };
	uint64_t seq;

	fill_limits(p, &id);
	fabric_object_counts(p->fabric, counts, &seq);
	memcpy(id.objects, counts, sizeof(counts));
	id.topology_seq = seq;
	memcpy(id.name, p->name, sizeof(id.name));
	memcpy(id.host, p->fabric->topo->hosts[p->host].name, sizeof(id.host));
	memcpy(id.fabric, p->fabric->topo->name, sizeof(id.fabric));
	return admin_out(p, c, &id, sizeof(id));
}

unsigned int admin_get_objects(struct port *p, struct admin_cmd *c)
{
	size_t room = admin_room(c, sizeof(struct draco_object));
	uint64_t type = c->cmd.arg[0], first = c->cmd.arg[1], seq;
	uint32_t next;
	size_t n;

	if (!room || type > DRACO_OBJ_ENDPOINT)
		return DRACO_SC_BAD_FIELD;
	if (first > UINT32_MAX)
		first = UINT32_MAX;
	n = fabric_objects(p->fabric, type, first, p->admin.buf, room, &next,
			   &seq);
	if (n && admin_out(p, c, p->admin.buf, n * sizeof(struct draco_object)))
		return DRACO_SC_DMA_FAULT;
	c->result = n;
	c->result2 = seq;
	c->id = next;
	return DRACO_SC_OK;
}

/* Always waits, so that several are served in their order. */
unsigned int admin_get_events(struct port *p, struct admin_cmd *c)
{
	(void)p;
	if (!admin_room(c, sizeof(struct draco_event)))
		return DRACO_SC_BAD_FIELD;
	return admin_wait(c, WAIT_EVENTS, NULL);
}

bool admin_take_events(struct port *p, struct admin_cmd *c)
{
	size_t room = admin_room(c, sizeof(struct draco_event));
	uint64_t lost;
	size_t n;

	n = event_queue_take(&p->fabric->events, &p->events, p->admin.buf,
			     room, &lost);
	if (!n && !lost)
		return false;
	c->result = n;
	c->result2 = lost;
	c->status = n ? admin_out(p, c, p->admin.buf,
				  n * sizeof(struct draco_event)) :
			DRACO_SC_OK;
	return true;
}

unsigned int admin_get_peers(struct port *p, struct admin_cmd *c)
{
	size_t room = admin_room(c, sizeof(struct draco_peer));
	uint64_t seq;
	uint32_t next;
	size_t n;

	if (!room || c->cmd.arg[0] >= DRACO_MAX_PEERS)
		return DRACO_SC_BAD_FIELD;
	n = fabric_peers(p->fabric, p, c->cmd.arg[0], p->admin.buf, room, &next,
			 &seq);
	if (n && admin_out(p, c, p->admin.buf, n * sizeof(struct draco_peer)))
		return DRACO_SC_DMA_FAULT;
	c->result = n;
	c->result2 = seq;
	c->id = next;
	return DRACO_SC_OK;
}

unsigned int admin_get_requests(struct port *p, struct admin_cmd *c)
{
	size_t room = admin_room(c, sizeof(struct draco_event));
	size_t n;

	if (!room)
		return DRACO_SC_BAD_FIELD;
	n = event_requests(p, p->admin.buf, room);
	if (n && admin_out(p, c, p->admin.buf, n * sizeof(struct draco_event)))
		return DRACO_SC_DMA_FAULT;
	c->result = n;
	return DRACO_SC_OK;
}

unsigned int admin_get_log(struct port *p, struct admin_cmd *c)
{
	size_t room = admin_room(c, sizeof(struct draco_event));
	size_t n;

	if (!room)
		return DRACO_SC_BAD_FIELD;
	n = event_log_read(&p->fabric->events, c->cmd.arg[0], p->admin.buf,
			   room);
	if (n && admin_out(p, c, p->admin.buf, n * sizeof(struct draco_event)))
		return DRACO_SC_DMA_FAULT;
	c->result = n;
	return DRACO_SC_OK;
}

static struct counters *object_counters(struct port *p, uint32_t id)
{
	struct fabric *f = p->fabric;
	struct port *port = id ? fabric_port_by_id(f, id) : p;
	struct link *link = fabric_link_by_id(f, id);
	unsigned int ep = fabric_ep_by_id(f, id);

	if (port)
		return &port->counters;
	if (link)
		return &link->counters;
	return ep != TOPO_NONE ? &f->eps[ep].counters : NULL;
}

unsigned int admin_get_counters(struct port *p, struct admin_cmd *c)
{
	struct draco_counters out;
	struct counters *in;

	if (!admin_room(c, 1))
		return DRACO_SC_BAD_FIELD;
	if (c->cmd.arg[0] > DRACO_COUNTERS_QUEUE)
		return DRACO_SC_BAD_FIELD;
	if (c->cmd.arg[0] == DRACO_COUNTERS_QUEUE) {
		struct queue_slot *s = queue_find(&p->queues, c->cmd.id);

		in = s ? &s->q->counters : NULL;
	} else {
		in = object_counters(p, c->cmd.id);
	}
	if (!in)
		return DRACO_SC_BAD_ID;
	counters_read(in, &out);
	return admin_out(p, c, &out, sizeof(out));
}

unsigned int admin_get_links(struct port *p, struct admin_cmd *c)
{
	size_t room = admin_room(c, sizeof(struct draco_link));
	uint64_t first = c->cmd.arg[0];
	uint32_t next;
	size_t n;

	if (!room)
		return DRACO_SC_BAD_FIELD;
	if (first > UINT32_MAX)
		first = UINT32_MAX;
	n = traffic_links(p->fabric, first, c->cmd.flags & DRACO_LINKSF_MESH,
			  p->admin.buf, room, &next);
	if (n && admin_out(p, c, p->admin.buf, n * sizeof(struct draco_link)))
		return DRACO_SC_DMA_FAULT;
	c->result = n;
	c->id = next;
	return DRACO_SC_OK;
}

static unsigned int reset_link(struct port *p, struct admin_cmd *c,
			       struct link *l)
{
	struct port *target = fabric_port_by_id(p->fabric, l->id);

	if (!atomic_load(&l->up))
		return DRACO_SC_LINK_DOWN;
	if (target) {
		port_request_reset(target, admin_ref(p, c));
		return admin_wait(c, WAIT_FINISH, NULL);
	}
	fabric_link_control(p->fabric, l, DRACO_PORTC_DISABLE);
	fabric_link_control(p->fabric, l, DRACO_PORTC_ENABLE);
	return DRACO_SC_OK;
}

unsigned int admin_port_control(struct port *p, struct admin_cmd *c)
{
	struct link *l = fabric_link_by_id(p->fabric, c->cmd.id);

	if (!l)
		return DRACO_SC_BAD_ID;
	if (l->kind == DRACO_PORT_UNUSED)
		return DRACO_SC_BAD_FIELD;
	switch (c->cmd.arg[0]) {
	case DRACO_PORTC_ENABLE:
	case DRACO_PORTC_DISABLE:
		fabric_link_control(p->fabric, l, c->cmd.arg[0]);
		return DRACO_SC_OK;
	case DRACO_PORTC_RESET:
		return reset_link(p, c, l);
	default:
		return DRACO_SC_BAD_FIELD;
	}
}

/* Ask the loop's thread to withdraw a bind or unbind. */
static void abort_binding(struct port *p, struct admin_cmd *target)
{
	struct binding_request r = {
		.fabric = p->fabric, .from = p, .ref = admin_ref(p, target),
		.cmd = { .opcode = DRACO_ADM_ABORT, .id = target->cmd.id },
	};

	binding_request(&r);
}

unsigned int admin_abort(struct port *p, struct admin_cmd *c)
{
	struct admin_cmd *target;

	if (c->cmd.id > UINT16_MAX)
		return DRACO_SC_BAD_FIELD;
	target = admin_by_cid(p, c->cmd.id);
	if (!target || target == c)
		return DRACO_SC_OK;
	c->result = 1;
	if (target->status != ADMIN_PENDING)
		return DRACO_SC_OK;
	if (target->wait == WAIT_EVENTS || target->wait == WAIT_ABORT)
		admin_withdraw(p, target, DRACO_SC_ABORTED);
	else if (target->wait == WAIT_FINISH &&
		 (target->cmd.opcode == DRACO_ADM_BIND ||
		  target->cmd.opcode == DRACO_ADM_UNBIND))
		abort_binding(p, target);
	return DRACO_SC_OK;
}
