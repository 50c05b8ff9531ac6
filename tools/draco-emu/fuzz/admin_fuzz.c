// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzer: registers and admin commands as two hostile hosts write them, with
 * events that get lost. Each command has to be answered, or be one that may wait,
 * and what it answers has to be whole; the ports have to stop and start whatever
 * happened.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/rig/pair.h"

#define MAX_COMMANDS	24
#define DATA_MAX	512u
#define LOSE		0x3e	/* no opcode: the next events are lost */

static void start(void)
{
	static bool started;

	if (started)
		return;
	started = true;
	if (!pair_start())
		abort();
	rig_host_up(B, true);
}

static bool may_wait(unsigned int opcode)
{
	return opcode == DRACO_ADM_GET_EVENTS || opcode == DRACO_ADM_UNBIND ||
	       opcode == DRACO_ADM_BIND;
}

static void help(struct draco_acmd *c, unsigned char how)
{
	if (how & 1) {
		c->flags = 0;
		c->__rsvd = 0;
	}
	if (how & 2)
		c->opcode &= 0x3f;
	if (how & 4) {
		c->data = RIG_DATA + (c->data & 0x1fff8);
		c->data_len &= 0x1ff;
	}
	if (how & 8)
		c->id %= rig_fabric.nobjects + 2;
	if (how & 16)
		c->arg[0] %= 32;
	if (how & 32)
		c->arg[1] %= 4;
	if (how & 64)
		c->id %= 4;
	/* Otherwise each of these takes its time. */
	if (c->opcode == DRACO_ADM_UNBIND)
		c->arg[0] = 1 + c->arg[0] % 3;
}

static bool still_alive(struct rig_guest *g)
{
	return (rig_read(g, DRACO_REG_STATUS) & DRACO_STATUS_READY) != 0;
}

/* As many as it says, all in the buffer, and of the kind that was asked for. */
static bool whole(struct rig_guest *g, const struct draco_acmd *c,
		  const struct draco_acpl *cpl)
{
	bool requests = c->opcode == DRACO_ADM_GET_REQUESTS;
	bool links = c->opcode == DRACO_ADM_GET_LINKS;
	size_t each = c->opcode == DRACO_ADM_GET_PEERS ?
		      sizeof(struct draco_peer) :
		      links ? sizeof(struct draco_link) :
			      sizeof(struct draco_event);
	const struct draco_event *ev;
	uint64_t n = cpl->result;

	if (cpl->status || (!requests && !links &&
			    c->opcode != DRACO_ADM_GET_PEERS &&
			    c->opcode != DRACO_ADM_GET_EVENTS))
		return true;
	if (n > c->data_len / each)
		return false;
	if (c->data < RIG_DATA || c->data - RIG_DATA > 0x10000)
		return true;	/* not where we could look */
	ev = (void *)((char *)rig_data(g) + (c->data - RIG_DATA));
	for (uint64_t i = 0; requests && i < n; i++)
		if (ev[i].type != DRACO_EV_RELEASE_REQUEST || !ev[i].arg[0])
			return false;
	return true;
}

static void one_command(const unsigned char *data, uint16_t cid)
{
	struct rig_guest *g = *data & 128 ? B : A;
	struct draco_acmd c;
	struct draco_acpl cpl;

	memcpy(&c, data + 1, 64);
	help(&c, *data);
	if (c.opcode == LOSE) {
		fault_arm(&g->port->faults, DRACO_FAULT_LOST_EVENT,
			  c.id % 2 ? FAULT_ANY_QUEUE : c.arg[0] % 10,
			  c.arg[1] % 8);
		return;
	}
	if (!still_alive(g))
		return;
	c.cid = cid;
	rig_post(g, &c);
	if (rig_wait(g, cid, &cpl, may_wait(c.opcode) ? 2 : RIG_HUNG)) {
		if (!whole(g, &c, &cpl))
			abort();
		return;
	}
	if (!may_wait(c.opcode) && still_alive(g))
		abort();
}

static void scribble(const unsigned char *data, size_t size)
{
	for (; size >= 8; data += 8, size -= 8) {
		uint32_t offset, v;

		memcpy(&offset, data, 4);
		memcpy(&v, data + 4, 4);
		offset &= 0x3ffc;
		/* Rings anywhere, but not enabled there for long. */
		rig_write(A, offset & 0x2000 ? DRACO_REG_ADMIN_SQ_TAIL :
			     offset & 0x3c, v);
	}
}

static void restore(void)
{
	for (unsigned int i = 0; i < rig_fabric.nlinks; i++) {
		if (rig_fabric.links[i].disabled)
			fabric_link_control(&rig_fabric, &rig_fabric.links[i],
					    DRACO_PORTC_ENABLE);
	}
	for (unsigned int i = 0; i < 2; i++) {
		fault_arm(&rig_guest[i].port->faults, DRACO_FAULT_LOST_EVENT,
			  FAULT_ANY_QUEUE, 0);
		if (!rig_disable(&rig_guest[i]) || !rig_enable(&rig_guest[i]))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size < DATA_MAX ? size : DATA_MAX;
	uint16_t cid = 1;

	start();
	if (n)
		memcpy(rig_data(A), data + size - n, n);
	while (size >= 65 && cid <= MAX_COMMANDS && still_alive(A)) {
		one_command(data, cid++);
		data += 65;
		size -= 65;
	}
	scribble(data, size);
	restore();
	return 0;
}
