// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin commands about bindings: BIND, UNBIND, RELEASE_REPLY. They are carried
 * out in the loop's thread (binding.c). Called by admin.c.
 */
#include <string.h>

#include "binding.h"
#include "port.h"

static unsigned int hand_over(struct port *p, struct admin_cmd *c,
			      struct binding_request *r)
{
	r->fabric = p->fabric;
	r->from = p;
	r->ref = admin_ref(p, c);
	r->cmd = c->cmd;
	if (binding_request(r))
		return DRACO_SC_INTERNAL;
	return admin_wait(c, WAIT_FINISH, NULL);
}

unsigned int admin_bind(struct port *p, struct admin_cmd *c)
{
	struct binding_request r = { 0 };

	return hand_over(p, c, &r);
}

unsigned int admin_unbind(struct port *p, struct admin_cmd *c)
{
	struct binding_request r = { 0 };

	return hand_over(p, c, &r);
}

unsigned int admin_release_reply(struct port *p, struct admin_cmd *c)
{
	struct binding_request r = { 0 };
	unsigned int status;

	if (c->cmd.arg[1] > DRACO_RELEASE_BUSY)
		return DRACO_SC_BAD_FIELD;
	if (c->cmd.arg[1] == DRACO_RELEASE_BUSY) {
		status = admin_in(p, c, &r.holder, sizeof(r.holder));
		if (status)
			return status;
		r.holder.comm[sizeof(r.holder.comm) - 1] = 0;
		r.holder.reason[sizeof(r.holder.reason) - 1] = 0;
	}
	return hand_over(p, c, &r);
}
