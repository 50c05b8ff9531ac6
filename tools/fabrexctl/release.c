// SPDX-License-Identifier: GPL-2.0-only
/* "release": from words to steps. Called by run.c and plan.c. */
#include "compose.h"
#include "names.h"

void release_step(const struct object *ep, struct steps *s)
{
	/* If it is being released: the command that did that may have given up. */
	if (ep->bound || ep->state == FABREX_ENDPOINT_STATE_BOUND)
		steps_add(s, STEP_UNBIND, ep->id, ep->bound);
	else
		ids_add(&s->unchanged, ep->id);
}

int cmd_release(struct ctl *c, int argc, char **argv)
{
	struct steps s = { 0 };
	struct ids eps = { 0 };
	size_t i;
	int r;

	if (!argc)
		return err_usage(&c->err, NULL, "release: name the endpoints; "
				 "see \"fabrexctl help release\"");
	r = steps_options(c, &s);
	if (!r)
		r = ctl_load(c);
	if (!r)
		r = select_names(c->model, argc, argv, &eps, &c->err);
	for (i = 0; i < eps.n && !r; i++)
		release_step(model_get(c->model, eps.v[i]), &s);
	if (!r)
		r = steps_execute(c, &s);
	ids_free(&eps);
	steps_free(&s);
	return r;
}
