// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin commands about windows: WINDOW_CREATE, WINDOW_DESTROY. Called by
 * admin.c.
 */
#include "port.h"

_Static_assert(sizeof(struct draco_window_create) == 48, "docs/draco.md");

unsigned int admin_window_create(struct port *p, struct admin_cmd *c)
{
	struct draco_window_create in;
	unsigned int status = admin_in(p, c, &in, sizeof(in));

	if (status == DRACO_SC_OK)
		status = window_create(p, &in, &c->id);
	return status;
}

unsigned int admin_window_destroy(struct port *p, struct admin_cmd *c)
{
	struct window *w = window_find(&p->windows, c->cmd.id);

	if (!w)
		return DRACO_SC_BAD_ID;
	w->dying = true;
	if (!gate_close(&w->gate))
		return admin_wait(c, WAIT_WINDOW, w);
	window_destroy(p, w);
	return DRACO_SC_OK;
}
