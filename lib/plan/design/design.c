// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The best wirings of given parts: compares all by their cuts and computes
 * schedules for the best few. Called by api/design.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/design/cabling.h"
#include "plan/read.h"
#include "plan/solve/partition.h"

#define MESH_MOST	100000.0	/* GB/s in a file */
#define LOOKED_AT	8u		/* at full size, at least */

struct design {
	const struct plan_parts *p;
	enum plan_collective c;
	struct plan_error *e;
	struct cabling *cablings;
	struct candidate *all;
	uint32_t n;
	enum cabling_level level;
};

void plan_wirings_free(struct plan_wiring *w, uint32_t n)
{
	uint32_t i;

	for (i = 0; w && i < n; i++) {
		free(w[i].topology);
		free(w[i].why);
	}
	free(w);
}

static struct plan_graph *graph_of(struct design *d, const struct cabling *c,
				   uint32_t gpus, double mesh_gbps)
{
	char *text = cabling_text(d->p, c, gpus, mesh_gbps);
	struct plan_graph *g;

	if (!text) {
		plan_fail(d->e, ENOMEM, "out of memory");
		return NULL;
	}
	g = plan_graph_parse(text, strlen(text), "design", NULL, d->e);
	free(text);
	return g;
}

/* A wiring that leaves GPUs apart is no candidate: its bound is 0. */
static int bound_one(struct design *d, struct candidate *x,
		     const struct plan_graph *g, bool tell)
{
	struct plan_bound b, rings = { 0 };
	int err;

	x->bound = x->cut = plan_ratio(0, 1);
	if (plan_graph_check(g, NULL))
		return 0;
	err = plan_bound(g, d->c, 0, &b, d->e);
	if (err)
		return err;
	x->bound = b.busbw;
	if (tell) {
		free(x->limit);
		x->limit = reasons_limit(g, &b);
	}
	plan_bound_free(&b);
	err = plan_least_cut(g, &rings, d->e);
	if (err)
		return err;
	x->cut = rings.algbw;
	plan_bound_free(&rings);
	return 0;
}

/*
 * With one GPU at each uplink and a mesh that is no limit, a graph is small and
 * its cuts are those between boxes.
 */
static int bound_small(struct design *d, struct candidate *x)
{
	double mesh = d->p->mesh_gbps > 0 ? MESH_MOST : 0;
	struct plan_graph *g = graph_of(d, x->cabling, d->p->uplinks, mesh);
	int err;

	if (!g)
		return -d->e->code;
	err = bound_one(d, x, g, false);
	plan_graph_free(g);
	return err;
}

/* The same with a root complex that forwards nothing between its ports. */
static int bound_apart(struct design *d, struct candidate *x)
{
	struct plan_parts without = *d->p;
	const struct plan_parts *p = d->p;
	struct candidate y = { .cabling = x->cabling };
	int err;

	without.root_complex_gbps = 0;
	d->p = &without;
	err = bound_small(d, &y);
	d->p = p;
	x->apart = y.cut;
	x->uneven = cabling_uneven(p, x->cabling);
	return err;
}

static int bound_full(struct design *d, struct candidate *x)
{
	struct plan_graph *g = graph_of(d, x->cabling, d->p->gpus,
					d->p->mesh_gbps);
	int err;

	if (!g)
		return -d->e->code;
	err = bound_one(d, x, g, true);
	plan_graph_free(g);
	return err;
}

/* Schedules of one that is kept. */
static int solve(struct design *d, struct candidate *x)
{
	struct plan_graph *g = graph_of(d, x->cabling, d->p->gpus,
					d->p->mesh_gbps);
	struct plan_optimum o;
	struct plan_rings r;
	int err;

	if (!g)
		return -d->e->code;
	err = plan_optimum(g, d->c, 0, &o, d->e);
	if (!err) {
		x->optimal = o.busbw;
		x->optimal_proved = o.proved;
		plan_optimum_free(&o);
		/* without a mesh there may be no ring; that is no failure */
		if (!plan_rings(g, d->c, 0, NULL, &r, NULL)) {
			x->ring = r.busbw;
			x->ring_proved = r.proved;
			x->nrings = r.nrings;
			plan_rings_free(&r);
		}
	}
	plan_graph_free(g);
	return err;
}

/*
 * Best first: what schedules reach, or else their bounds; then what does
 * without the root complex, has more ports to the server, fewer cables, is more
 * even.
 */
static int by_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int way = plan_ratio_compare(y->optimal, x->optimal);

	if (!way)
		way = plan_ratio_compare(y->bound, x->bound);
	if (!way)
		way = plan_ratio_compare(y->ring, x->ring);
	if (!way)
		way = plan_ratio_compare(y->cut, x->cut);
	if (!way)
		way = plan_ratio_compare(y->apart, x->apart);
	if (!way)
		way = y->cabling->nports - x->cabling->nports;
	if (!way)
		way = x->cabling->nisls - y->cabling->nisls;
	if (!way && x->uneven != y->uneven)
		way = x->uneven < y->uneven ? -1 : 1;
	if (!way)
		way = x->cabling < y->cabling ? -1 : 1;
	return way;
}

static int compare_all(struct design *d)
{
	uint32_t i;
	int err = 0;

	d->all = calloc(d->n, sizeof(*d->all));
	if (!d->all)
		return plan_fail(d->e, ENOMEM, "out of memory");
	for (i = 0; i < d->n && !err; i++) {
		d->all[i].cabling = &d->cablings[i];
		err = bound_small(d, &d->all[i]);
	}
	if (err)
		return err;
	qsort(d->all, d->n, sizeof(*d->all), by_rank);
	while (d->n && !d->all[d->n - 1].bound.num)
		d->n--;
	if (!d->n)
		return plan_fail(d->e, EINVAL, "no wiring joins all GPUs: the server's ports do not reach one another; give it a root complex that forwards, or boxes a mesh");
	return 0;
}

/*
 * What decides among those that are as fast: for all that may come to be
 * among the first @n.
 */
static int break_ties(struct design *d, uint32_t n)
{
	const struct candidate *last = &d->all[n - 1];
	uint32_t i;
	int err = 0;

	for (i = 0; i < d->n && !err; i++) {
		if (i >= n && (plan_ratio_compare(d->all[i].bound, last->bound)
			       || plan_ratio_compare(d->all[i].cut, last->cut)))
			break;
		err = bound_apart(d, &d->all[i]);
	}
	if (!err)
		qsort(d->all, i, sizeof(*d->all), by_rank);
	return err;
}

/* The best @limit, and the worst, at full size. */
static int look_closer(struct design *d, uint32_t limit)
{
	uint32_t closer = limit > LOOKED_AT / 2 ? 2 * limit : LOOKED_AT, i;
	int err;

	if (closer > d->n)
		closer = d->n;
	err = break_ties(d, closer);
	for (i = 0; i < closer && !err; i++)
		err = bound_full(d, &d->all[i]);
	if (!err && closer < d->n)
		err = bound_full(d, &d->all[d->n - 1]);
	if (err)
		return err;
	qsort(d->all, closer, sizeof(*d->all), by_rank);
	for (i = 0; i < limit && i < closer && !err; i++)
		err = solve(d, &d->all[i]);
	if (!err)
		qsort(d->all, limit < closer ? limit : closer, sizeof(*d->all),
		      by_rank);
	return err;
}

static int report(struct design *d, uint32_t i, struct plan_wiring *w)
{
	const struct candidate *x = &d->all[i];

	*w = (struct plan_wiring){
		.bound = plan_ratio_value(x->bound) / 1000,
		.optimal = plan_ratio_value(x->optimal) / 1000,
		.ring = plan_ratio_value(x->ring) / 1000,
	};
	w->topology = cabling_text(d->p, x->cabling, d->p->gpus,
				   d->p->mesh_gbps);
	w->why = reasons(d->p, d->c, d->level, x,
			 i + 1 < d->n ? x + 1 : NULL,
			 i + 1 < d->n ? &d->all[d->n - 1] : NULL);
	return w->topology && w->why ? 0 :
	       plan_fail(d->e, ENOMEM, "out of memory");
}

static int report_all(struct design *d, uint32_t limit,
		      struct plan_wiring **out, uint32_t *n)
{
	uint32_t count = limit < d->n ? limit : d->n, i;
	struct plan_wiring *w = calloc(count, sizeof(*w));
	int err = w ? 0 : plan_fail(d->e, ENOMEM, "out of memory");

	for (i = 0; i < count && !err; i++)
		err = report(d, i, &w[i]);
	if (err) {
		plan_wirings_free(w, count);
		return err;
	}
	*out = w;
	*n = count;
	return 0;
}

int plan_design(const struct plan_parts *parts, enum plan_collective c,
		uint32_t limit, struct plan_wiring **out, uint32_t *n,
		uint64_t *considered, struct plan_error *e)
{
	struct plan_error own = { 0 };
	struct design d = { .p = parts, .c = c, .e = e ? e : &own };
	uint32_t i, listed = 0;
	int err = cabling_check(parts, d.e);

	if (!err && (!limit || limit > CABLING_MOST))
		err = plan_fail(d.e, EINVAL, "the best %u wirings: ask for 1 to %u",
				limit, CABLING_MOST);
	if (!err)
		err = cabling_list(parts, &d.cablings, &d.n, &d.level, d.e);
	listed = d.n;
	if (!err)
		err = compare_all(&d);
	if (!err)
		err = look_closer(&d, limit);
	if (!err)
		err = report_all(&d, limit, out, n);
	if (!err && considered)
		*considered = listed;
	for (i = 0; d.all && i < listed; i++)
		free(d.all[i].limit);
	free(d.all);
	free(d.cablings);
	return err;
}
