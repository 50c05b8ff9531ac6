// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin commands about memory regions: MR_CREATE, MR_PAGES, MR_INVALIDATE,
 * MR_DESTROY. Called by admin.c.
 */
#include "audit.h"
#include "port.h"

_Static_assert(sizeof(struct draco_mr_create) == 72, "docs/draco.md");

void admin_mr_ended(struct port *p, struct mr *mr, bool destroy)
{
	audit_revoked(p, mr);
	if (destroy)
		mr_destroy(&p->mrs, mr);
	else
		mr_forget_pages(mr);
}

unsigned int admin_mr_create(struct port *p, struct admin_cmd *c)
{
	struct draco_mr_create in;
	unsigned int status = admin_in(p, c, &in, sizeof(in));

	if (status == DRACO_SC_OK)
		status = mr_create(&p->mrs, &in, &c->id, &c->result);
	return status;
}

unsigned int admin_mr_pages(struct port *p, struct admin_cmd *c)
{
	uint64_t *pages = p->admin.buf;
	size_t n = admin_room(c, sizeof(*pages));
	unsigned int status;

	if (!n || c->cmd.data_len % sizeof(*pages))
		return DRACO_SC_BAD_FIELD;
	if (!mr_find(&p->mrs, c->cmd.id))
		return DRACO_SC_BAD_ID;
	status = admin_in(p, c, pages, n * sizeof(*pages));
	if (status)
		return status;
	return mr_add_pages(&p->mrs, c->cmd.id, c->cmd.arg[0], c->cmd.arg[1],
			    pages, n);
}

unsigned int admin_mr_invalidate(struct port *p, struct admin_cmd *c)
{
	struct mr *mr = mr_find(&p->mrs, c->cmd.id);

	if (!mr)
		return DRACO_SC_BAD_ID;
	if (!gate_close(&mr->gate))
		return admin_wait(c, WAIT_MR_INVALIDATE, mr);
	admin_mr_ended(p, mr, false);
	return DRACO_SC_OK;
}

unsigned int admin_mr_destroy(struct port *p, struct admin_cmd *c)
{
	struct mr *mr = mr_find(&p->mrs, c->cmd.id);

	if (!mr)
		return DRACO_SC_BAD_ID;
	mr->dying = true;
	if (!gate_close(&mr->gate))
		return admin_wait(c, WAIT_MR_DESTROY, mr);
	admin_mr_ended(p, mr, true);
	return DRACO_SC_OK;
}
