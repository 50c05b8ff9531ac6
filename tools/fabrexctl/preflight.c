// SPDX-License-Identifier: GPL-2.0-only
/*
 * What this host's PCI tree says about steps, before anything moves: bus
 * numbers and windows of the slots, and whether the port will reach what comes
 * into them. Called by steps.c.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "preflight.h"
#include "table.h"

#include "p2p/p2p.h"

#define MAX_SLOT	64	/* of one port; where the switch named none */

static void warn(struct steps *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void warn(struct steps *s, const char *fmt, ...)
{
	va_list ap;
	char *text;
	size_t i;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = xstrdup("out of memory");
	va_end(ap);
	for (i = 0; i < s->nwarnings; i++)
		if (!strcmp(s->warnings[i], text)) {
			free(text);
			return;
		}
	s->warnings = xrealloc(s->warnings,
			       (s->nwarnings + 1) * sizeof(*s->warnings));
	s->warnings[s->nwarnings++] = text;
}

/* ---- which slot --------------------------------------------------------- */

/* Bound there and not released before, or promised to an earlier step. */
static bool slot_taken(const struct ctl *c, const struct steps *s, size_t step,
		       unsigned int slot)
{
	uint32_t port = s->v[step].port;
	bool taken = false;
	size_t i;

	for (i = 0; i < c->model->n && !taken; i++) {
		const struct object *o = c->model->objects[i];

		taken = o->type == T_ENDPOINT && o->bound == port &&
			o->slot == slot;
	}
	for (i = 0; i < step; i++) {
		const struct step *st = &s->v[i];
		const struct object *ep = model_get(c->model, st->ep);

		if (st->port != port)
			continue;
		if (st->op == STEP_UNBIND && ep && ep->slot == slot)
			taken = false;
		if (st->op == STEP_BIND && st->slot == slot)
			taken = true;
	}
	return taken;
}

/* The slot that the switch named. */
static bool named_slot(struct ctl *c, const struct p2p_env *env,
		       const struct steps *s, size_t i, const struct fport *fp,
		       struct p2p_slot *slot)
{
	unsigned int n = s->v[i].slot;

	return n && !slot_taken(c, s, i, n) &&
	       !fxi_p2p_slot(env, fp->parent, n, slot) && !slot->own;
}

/*
 * Of several endpoints the switch names the same slot for each, and none for
 * one that has yet to be released elsewhere. Then it can be any free one: the
 * best is what counts, and the smallest is worth a warning.
 */
static bool any_slot(struct ctl *c, const struct p2p_env *env,
		     struct steps *s, size_t i, const struct fport *fp,
		     struct p2p_slot *best, uint64_t *smallest)
{
	struct p2p_slot *slot = xcalloc(1, sizeof(*slot));
	bool found = false;
	unsigned int n;
	int r = 0;

	for (n = 1; n < MAX_SLOT && r != -ENODEV; n++) {
		r = slot_taken(c, s, i, n) ? -EBUSY :
		    fxi_p2p_slot(env, fp->parent, n, slot);
		if (r || slot->own)
			continue;
		if (!found || slot->room < *smallest)
			*smallest = slot->room;
		if (!found || slot->room > best->room)
			*best = *slot;
		found = true;
	}
	free(slot);
	return found;
}

/* ---- what is said about it ---------------------------------------------- */

static uint64_t power_of_two(uint64_t size)
{
	uint64_t p = 1;

	while (p < size && p << 1)
		p <<= 1;
	return p;
}

static int check_window(struct ctl *c, struct steps *s,
			const struct object *ep, const struct step *st,
			const struct p2p_slot *slot)
{
	const char *port = model_name(c->model, st->port);
	uint64_t need = power_of_two(ep->size);
	char want[32], window[32], room[32];

	format_size(want, sizeof(want), need);
	format_size(window, sizeof(window), slot->window);
	format_size(room, sizeof(room), slot->room);
	if (!ep->size || need <= slot->window)
		return 0;
	if (need > slot->room)
		return err_set(&c->err, ENOSPC, ep->name, "%s does not fit: "
			       "its memory needs a window of %s, %s of %s "
			       "(bridge %s) has %s and can have %s at most; "
			       "boot this host with pci=hpmmioprefsize=%s or "
			       "pci=realloc, or see --no-preflight", ep->name,
			       want, slot->p2p.target, port, slot->bridge,
			       window, room, want);
	warn(s, "%s needs a window of %s, %s of %s (bridge %s) has %s; "
	     "Linux has to enlarge it, for which there is room", ep->name,
	     want, slot->p2p.target, port, slot->bridge, window);
	return 0;
}

static int check_buses(struct ctl *c, const struct object *ep,
		       const struct step *st, const struct p2p_slot *slot)
{
	if (slot->first_bus && slot->last_bus >= slot->first_bus)
		return 0;
	return err_set(&c->err, ENOSPC, ep->name, "%s of %s (bridge %s) has no "
		       "bus number, so %s could not appear there; boot this "
		       "host with pci=hpbussize=1 or pci=assign-busses, or see "
		       "--no-preflight", slot->p2p.target,
		       model_name(c->model, st->port), slot->bridge, ep->name);
}

/* What the sentence says behind "A to B: no: ". */
static const char *cause(const struct fabrex_p2p *p)
{
	const char *at = strstr(p->text, ": ");

	at = at ? strstr(at + 2, ": ") : NULL;
	return at ? at + 2 : p->text;
}

static int check_way(struct ctl *c, struct steps *s, const struct object *ep,
		     const struct step *st, const struct p2p_slot *slot)
{
	const char *port = model_name(c->model, st->port);
	const struct fabrex_p2p *p = &slot->p2p;

	if (p->verdict == FABREX_P2P_YES)
		return 0;
	if (!IS_SET(c, REQUIRE_P2P)) {
		warn(s, "%s will %sreach %s through host memory only: %s%s%s",
		     port, p->verdict == FABREX_P2P_NO ? "" : "perhaps ",
		     ep->name, cause(p), *p->remedy ? "; " : "", p->remedy);
		return 0;
	}
	return err_set(&c->err, EXDEV, ep->name, "%s could not reach %s in "
		       "%s: %s%s%s", port, ep->name, p->target, cause(p),
		       *p->remedy ? "; " : "", p->remedy);
}

static int not_local(struct ctl *c, const struct object *ep,
		     const struct step *st)
{
	const struct object *host = model_port_host(c->model, st->port);

	if (!IS_SET(c, REQUIRE_P2P))
		return 0;
	return err_set(&c->err, EXDEV, ep->name, "whether %s will reach %s is "
		       "known on host %s only; compose it there, or leave out "
		       "--require-p2p", model_name(c->model, st->port),
		       ep->name, host ? host->name : "?");
}

static int check_slot(struct ctl *c, struct steps *s, const struct object *ep,
		      const struct step *st, const struct p2p_slot *slot)
{
	int r = check_buses(c, ep, st, slot);

	if (!r)
		r = check_window(c, s, ep, st, slot);
	return r ? r : check_way(c, s, ep, st, slot);
}

static int check_any(struct ctl *c, const struct p2p_env *env, struct steps *s,
		     size_t i, const struct object *ep, const struct fport *fp)
{
	struct p2p_slot *slot = xcalloc(1, sizeof(*slot));
	uint64_t smallest = 0;
	int r = 0;

	if (any_slot(c, env, s, i, fp, slot, &smallest)) {
		r = check_slot(c, s, ep, &s->v[i], slot);
		if (!r && power_of_two(ep->size) > smallest)
			warn(s, "%s fits into some of the free slots of %s "
			     "only", ep->name, fp->name);
	} else if (IS_SET(c, REQUIRE_P2P)) {
		r = err_set(&c->err, EXDEV, ep->name, "no free slot of %s is "
			    "visible in this host's PCI tree, so whether it "
			    "will reach %s is not known; leave out "
			    "--require-p2p", fp->name, ep->name);
	}
	free(slot);
	return r;
}

static int check_step(struct ctl *c, const struct p2p_env *env,
		      struct steps *s, size_t i)
{
	const struct object *ep = model_get(c->model, s->v[i].ep);
	const struct fport *fp = model_local(c->model, s->v[i].port);
	struct p2p_slot *slot;
	int r;

	if (!ep || s->v[i].op != STEP_BIND)
		return 0;
	if (!fp)
		return not_local(c, ep, &s->v[i]);
	slot = xcalloc(1, sizeof(*slot));
	if (named_slot(c, env, s, i, fp, slot)) {
		r = check_slot(c, s, ep, &s->v[i], slot);
	} else {
		s->v[i].slot = 0;
		r = check_any(c, env, s, i, ep, fp);
	}
	free(slot);
	return r;
}

int preflight(struct ctl *c, struct steps *s)
{
	struct p2p_env env;
	size_t i;
	int r = 0;

	if (IS_SET(c, NO_PREFLIGHT) || s->force) {
		if (IS_SET(c, REQUIRE_P2P))
			return err_usage(&c->err, "require-p2p",
					 "--require-p2p cannot be had with "
					 "--no-preflight or --force");
		return 0;
	}
	fxi_p2p_env(&env);
	for (i = 0; i < s->n && !r; i++)
		r = check_step(c, &env, s, i);
	return r;
}
