// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin commands about queues: QUEUE_CREATE, QUEUE_DESTROY, RESOLVE. Called by
 * admin.c.
 */
#include "fabric.h"
#include "port.h"

_Static_assert(sizeof(struct draco_queue_create) == 72, "docs/draco.md");

unsigned int admin_queue_create(struct port *p, struct admin_cmd *c)
{
	struct draco_queue_create in;
	unsigned int status = admin_in(p, c, &in, sizeof(in));

	if (status == DRACO_SC_OK)
		status = queue_create(p, &in, &c->id, &c->result);
	return status;
}

unsigned int admin_queue_destroy(struct port *p, struct admin_cmd *c)
{
	struct queue_slot *s = queue_find(&p->queues, c->cmd.id);

	if (!s)
		return DRACO_SC_BAD_ID;
	s->dying = true;
	if (!gate_close(&s->gate))
		return admin_wait(c, WAIT_QUEUE, s);
	queue_destroy(s);
	return DRACO_SC_OK;
}

unsigned int admin_resolve(struct port *p, struct admin_cmd *c)
{
	struct port *peer = fabric_port_by_peer(p->fabric, c->cmd.id);
	uint32_t number;
	uint64_t key;

	if (!peer || !c->cmd.arg[0])
		return DRACO_SC_BAD_ID;
	if (!port_is_ready(peer))
		return DRACO_SC_HOST_DOWN;
	if (!fabric_reachable(p->fabric, p, peer))
		return DRACO_SC_LINK_DOWN;
	if (!port_enter(peer))
		return DRACO_SC_HOST_DOWN;
	number = queue_by_service(peer, c->cmd.arg[0], &key);
	port_leave(peer);
	if (number == UINT32_MAX)
		return DRACO_SC_BAD_ID;
	c->id = number;
	c->result = key;
	return DRACO_SC_OK;
}
