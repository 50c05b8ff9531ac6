// SPDX-License-Identifier: GPL-2.0-only
/*
 * What this host's PCI tree says about steps, before anything moves: bus
 * numbers and windows of the slots, and whether the port will reach what comes
 * into them. Called by steps.c.
 */
#include <stdlib.h>
#include <string.h>

#include "preflight.h"
#include "table.h"

#include "p2p/p2p.h"

/* ---- which slots -------------------------------------------------------- */

/* Slots of one local port, as the PCI tree has them. */
struct view {
	uint32_t port;
	int n;			/* 0 or less: nothing is known */
	struct p2p_slot slots[P2P_MAX_SLOTS];
	struct view *next;
};

static struct view *view_of(const struct ctl *c, struct view **views,
			    const struct p2p_env *env, const struct fport *fp)
{
	struct view *v;

	for (v = *views; v; v = v->next)
		if (v->port == fp->object_id)
			return v;
	v = xcalloc(1, sizeof(*v));
	v->port = fp->object_id;
	v->n = c->be->managing ?
	       fxi_p2p_switch_slots(env, fp->parent, v->slots) :
	       fxi_p2p_slots(env, fp->parent, v->slots);
	v->next = *views;
	*views = v;
	return v;
}

/* Bound there and not released by an earlier step. */
static bool slot_bound(const struct ctl *c, const struct steps *s, size_t step,
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

		if (st->port == port && st->op == STEP_UNBIND && ep &&
		    ep->slot == slot)
			taken = false;
	}
	return taken;
}

/* Bound, or promised to an earlier step. */
static bool slot_taken(const struct ctl *c, const struct steps *s, size_t step,
		       unsigned int slot)
{
	size_t i;

	for (i = 0; i < step; i++)
		if (s->v[i].port == s->v[step].port && s->v[i].with == i &&
		    s->v[i].op == STEP_BIND && s->v[i].slot == slot)
			return true;
	return slot_bound(c, s, step, slot);
}

/* What a step may come to. */
struct candidates {
	const struct p2p_slot *v[P2P_MAX_SLOTS];
	size_t n;
};

/*
 * The switch may name the slot beforehand, but it names the same one for each
 * of several endpoints. Otherwise it can be any free one.
 */
static void find_candidates(const struct ctl *c, const struct view *v,
			    struct steps *s, size_t i, struct candidates *k)
{
	unsigned int named = s->v[i].slot;
	int j;

	k->n = 0;
	if (named && slot_taken(c, s, i, named))
		named = s->v[i].slot = 0;
	for (j = 0; j < v->n; j++) {
		const struct p2p_slot *slot = &v->slots[j];

		if (named ? slot->number == named :
			    !slot_taken(c, s, i, slot->number))
			k->v[k->n++] = slot;
	}
}

/* ---- what is said about them -------------------------------------------- */

static uint64_t power_of_two(uint64_t size)
{
	uint64_t p = 1;

	while (p < size && p << 1)
		p <<= 1;
	return p;
}

/* Of the window above what comes with a step: one endpoint, or several. */
static uint64_t need_of(const struct ctl *c, const struct steps *s, size_t step)
{
	uint64_t sum = 0;
	size_t i;

	for (i = step; i < s->n; i++) {
		const struct object *ep = model_get(c->model, s->v[i].ep);

		if (s->v[i].with == step && ep && ep->size)
			sum += power_of_two(ep->size);
	}
	return sum ? power_of_two(sum) : 0;
}

static bool has_buses(const struct p2p_slot *slot)
{
	return slot->first_bus && slot->last_bus >= slot->first_bus;
}

static bool fits(const struct p2p_slot *slot, uint64_t need)
{
	return has_buses(slot) && slot->room >= need;
}

static bool better(const struct p2p_slot *x, const struct p2p_slot *y,
		   uint64_t need)
{
	if (fits(x, need) != fits(y, need))
		return fits(x, need);
	if (has_buses(x) != has_buses(y))
		return has_buses(x);
	return x->room > y->room;
}

static int refuse(struct ctl *c, const struct object *ep, const char *port,
		  const struct p2p_slot *slot, uint64_t need)
{
	char want[32], window[32], room[32];

	if (!has_buses(slot))
		return err_set(&c->err, ENOSPC, ep->name, "slot %u of %s "
			       "(bridge %s) has no bus number, so %s could not "
			       "appear there; boot this host with "
			       "pci=hpbussize=1 or pci=assign-busses, or see "
			       "--no-preflight", slot->number, port,
			       slot->bridge, ep->name);
	format_size(want, sizeof(want), need);
	format_size(window, sizeof(window), slot->window);
	format_size(room, sizeof(room), slot->room);
	return err_set(&c->err, ENOSPC, ep->name, "%s does not fit: its memory "
		       "needs a window of %s, slot %u of %s (bridge %s) has %s "
		       "and can have %s at most; boot this host with "
		       "pci=hpmmioprefsize=%s or pci=realloc, or see "
		       "--no-preflight", ep->name, want, slot->number, port,
		       slot->bridge, window, room, want);
}

/* Refused is what fits into none of them; of several, the best is named. */
static int check_room(struct ctl *c, struct steps *s, size_t step,
		      const struct object *ep, const char *port,
		      const struct candidates *k)
{
	uint64_t need = need_of(c, s, step);
	const struct p2p_slot *best = k->v[0], *small = NULL, *tight = NULL;
	char want[32], window[32];
	size_t i;

	for (i = 0; i < k->n; i++) {
		if (!fits(k->v[i], need))
			small = k->v[i];
		else if (k->v[i]->window < need)
			tight = k->v[i];
		if (better(k->v[i], best, need))
			best = k->v[i];
	}
	if (!fits(best, need))
		return refuse(c, ep, port, best, need);
	format_size(want, sizeof(want), need);
	if (small)
		steps_warn(s, "%s fits into some of the free slots of %s only, not "
		     "into slot %u (bridge %s)", ep->name, port,
		     small->number, small->bridge);
	if (!tight)
		return 0;
	format_size(window, sizeof(window), tight->window);
	steps_warn(s, "%s needs a window of %s, slot %u of %s (bridge %s) has %s; "
	     "Linux has to enlarge it, for which there is room", ep->name,
	     want, tight->number, port, tight->bridge, window);
	return 0;
}

/* What steps up to one bring to its port, and what there is for them. */
struct demand {
	uint64_t bytes, pool;	/* windows: in all, and possible at most */
	size_t steps, slots;	/* as large as that one, and large enough */
};

static void add_up(const struct ctl *c, const struct steps *s, size_t i,
		   const struct view *v, struct demand *d)
{
	uint64_t need = need_of(c, s, i), other;
	size_t j;
	int k;

	memset(d, 0, sizeof(*d));
	for (j = 0; j <= i; j++) {
		if (s->v[j].op != STEP_BIND || s->v[j].with != j ||
		    s->v[j].port != s->v[i].port)
			continue;
		other = need_of(c, s, j);
		d->bytes += other;
		d->steps += other >= need;
	}
	d->pool = v->n > 0 ? v->slots[0].spare : 0;
	for (k = 0; k < v->n; k++) {
		if (slot_bound(c, s, i, v->slots[k].number))
			continue;
		d->pool += v->slots[k].window;
		d->slots += fits(&v->slots[k], need);
	}
}

/* Each may fit by itself, but not all of them. */
static int check_together(struct ctl *c, const struct steps *s, size_t i,
			  const struct object *ep, const char *port,
			  const struct view *v)
{
	char want[32], have[32];
	struct demand d;

	add_up(c, s, i, v, &d);
	format_size(want, sizeof(want), need_of(c, s, i));
	if (d.steps > d.slots)
		return err_set(&c->err, ENOSPC, ep->name, "%s does not fit "
			       "besides the others: %zu need a window of %s or "
			       "more, which %zu free slots of %s can have; "
			       "boot this host with pci=hpmmioprefsize=%s or "
			       "pci=realloc, or see --no-preflight", ep->name,
			       d.steps, want, d.slots, port, want);
	if (d.bytes <= d.pool)
		return 0;
	format_size(want, sizeof(want), d.bytes);
	format_size(have, sizeof(have), d.pool);
	return err_set(&c->err, ENOSPC, ep->name, "%s does not fit besides the "
		       "others: together they need windows of %s, the free "
		       "slots of %s can have %s at most; boot this host with a "
		       "larger pci=hpmmioprefsize= or pci=realloc, or see "
		       "--no-preflight", ep->name, want, port, have);
}

/* What the sentence says behind "A to B: no: ". */
static const char *cause(const struct fabrex_p2p *p)
{
	const char *at = strstr(p->text, ": ");

	at = at ? strstr(at + 2, ": ") : NULL;
	return at ? at + 2 : p->text;
}

static int check_ways(struct ctl *c, struct steps *s, const struct object *ep,
		      const char *port, const struct candidates *k)
{
	const struct p2p_slot *bad = NULL;
	size_t i, n = 0;

	for (i = 0; i < k->n; i++) {
		if (k->v[i]->p2p.verdict == FABREX_P2P_YES)
			continue;
		if (!n++)
			bad = k->v[i];
	}
	if (!bad)
		return 0;
	if (IS_SET(c, REQUIRE_P2P))
		return err_set(&c->err, EXDEV, ep->name, "%s could not reach "
			       "%s in slot %u: %s%s%s", port, ep->name,
			       bad->number, cause(&bad->p2p),
			       *bad->p2p.remedy ? "; " : "", bad->p2p.remedy);
	steps_warn(s, "%s %s reach %s through host memory only: %s%s%s", port,
	     n == k->n && bad->p2p.verdict == FABREX_P2P_NO ? "will" : "may",
	     ep->name, cause(&bad->p2p), *bad->p2p.remedy ? "; " : "",
	     bad->p2p.remedy);
	return 0;
}

static int not_known(struct ctl *c, const struct object *ep, const char *port,
		     const struct object *host, int why)
{
	if (!IS_SET(c, REQUIRE_P2P))
		return 0;
	if (host)
		return err_set(&c->err, EXDEV, ep->name, "whether %s will "
			       "reach %s is known on host %s only; compose it "
			       "there, or leave out --require-p2p", port,
			       ep->name, host->name);
	if (why == -EPERM)
		return err_set(&c->err, EXDEV, ep->name, "the slots of %s are "
			       "visible to root only, so whether it will reach "
			       "%s is not known; run as root, or leave out "
			       "--require-p2p", port, ep->name);
	return err_set(&c->err, EXDEV, ep->name, "no free slot of %s is visible "
		       "in this host's PCI tree, so whether it will reach %s "
		       "is not known; leave out --require-p2p", port,
		       ep->name);
}

static int check_step(struct ctl *c, const struct p2p_env *env,
		      struct steps *s, size_t i, struct view **views)
{
	const struct object *ep = model_get(c->model, s->v[i].ep);
	const struct fport *fp = model_local(c->model, s->v[i].port);
	const char *port = model_name(c->model, s->v[i].port);
	const struct view *v;
	struct candidates k;
	int r;

	if (!ep || !port || s->v[i].op != STEP_BIND || s->v[i].with != i)
		return 0;
	if (c->be->managing && IS_SET(c, REQUIRE_P2P))
		return err_set(&c->err, EXDEV, ep->name, "whether GPUs will "
			       "reach %s is not known beforehand with this "
			       "switch; leave out --require-p2p, and see "
			       "\"fabrexctl p2p\" afterwards", ep->name);
	if (!fp)
		return not_known(c, ep, port,
				 model_port_host(c->model, s->v[i].port), 0);
	v = view_of(c, views, env, fp);
	find_candidates(c, v, s, i, &k);
	if (!k.n)
		return not_known(c, ep, port, NULL, v->n);
	r = check_room(c, s, i, ep, port, &k);
	if (!r)
		r = check_together(c, s, i, ep, port, v);
	return r || c->be->managing ? r : check_ways(c, s, ep, port, &k);
}

int preflight(struct ctl *c, struct steps *s)
{
	struct view *views = NULL, *next;
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
		r = check_step(c, &env, s, i, &views);
	for (; views; views = next) {
		next = views->next;
		free(views);
	}
	return r;
}
