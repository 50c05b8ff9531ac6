// SPDX-License-Identifier: LGPL-2.1-or-later
/* Explains why one wiring is better than another. Called by design.c. */
#include <stdlib.h>
#include <string.h>

#include "plan/design/cabling.h"

#define NAMES 3u	/* of boxes, in a sentence */

static double gbps(struct plan_ratio mbps)
{
	return plan_ratio_value(mbps) / 1000;
}

static const char *plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- the cut -------------------------------------------------------------- */

static const char *edge_name(const struct plan_graph *g, uint32_t edge)
{
	const struct plan_edge *d = &g->edges[edge];

	switch (d->kind) {
	case PLAN_CABLE:
		return g->nodes[d->from].kind == PLAN_ROOT_PORT ||
		       g->nodes[d->to].kind == PLAN_ROOT_PORT ?
		       "host port" : "uplink";
	case PLAN_ISL:
		return "share of cables between switches";
	case PLAN_ROOT:
		return "way through the root complex";
	case PLAN_XGMI:
		return "mesh link";
	default:
		return "PCIe link inside a box";
	}
}

static bool edges_alike(const struct plan_graph *g, uint32_t a, uint32_t b)
{
	return g->edges[a].capacity == g->edges[b].capacity &&
	       !strcmp(edge_name(g, a), edge_name(g, b));
}

/* Edges of one kind and capacity are counted together. */
static void tell_edges(FILE *f, const struct plan_graph *g,
		       const struct plan_cut *cut)
{
	uint32_t i, k, n, kinds = 0;

	for (i = 0; i < cut->nedges; i++) {
		for (k = 0; k < i; k++)
			if (edges_alike(g, cut->edges[i], cut->edges[k]))
				break;
		if (k < i)
			continue;
		for (n = 0, k = i; k < cut->nedges; k++)
			n += edges_alike(g, cut->edges[i], cut->edges[k]);
		fprintf(f, "%s%u %s%s of %g GB/s", kinds++ ? " and " : "", n,
			edge_name(g, cut->edges[i]), plural(n),
			(double)g->edges[cut->edges[i]].capacity / 1000);
	}
}

/* A box as its GPUs' names have it: columba1 of columba1.gpu0. */
static void tell_box(FILE *f, const struct plan_graph *g, uint32_t rank)
{
	const char *name = g->nodes[g->gpus[rank]].name;
	const char *dot = strchr(name, '.');

	fprintf(f, "%.*s", (int)(dot ? dot - name : (long)strlen(name)), name);
}

/* Of the box that begins with @rank: GPUs, and those inside the cut. */
static uint32_t count_box(const struct plan_graph *g, const struct plan_cut *c,
			  uint32_t rank, uint32_t *inside)
{
	uint32_t box = g->nodes[g->gpus[rank]].box, i = rank;

	for (*inside = 0; i < g->nranks && g->nodes[g->gpus[i]].box == box; i++)
		*inside += c->inside[g->gpus[i]];
	return i - rank;
}

/* Boxes that are wholly inside, or wholly outside; at most so many names. */
static uint32_t tell_boxes(FILE *f, const struct plan_graph *g,
			   const struct plan_cut *cut, bool within)
{
	uint32_t i, all, in, told = 0;

	for (i = 0; i < g->nranks; i += all) {
		all = count_box(g, cut, i, &in);
		if (in != (within ? all : 0))
			continue;
		if (told++ < NAMES && f) {
			fprintf(f, "%s", told > 1 ? " and " : "");
			tell_box(f, g, i);
		}
	}
	return told;
}

/* GPUs of boxes that the cut goes through are only counted. */
static void tell_inside(FILE *f, const struct plan_graph *g,
			const struct plan_cut *cut)
{
	uint32_t within = tell_boxes(NULL, g, cut, true);
	uint32_t without = tell_boxes(NULL, g, cut, false), i, all, in;
	uint32_t single = 0;

	for (i = 0; i < g->nranks; i += all) {
		all = count_box(g, cut, i, &in);
		single += in < all ? in : 0;
	}
	if (within <= NAMES) {
		tell_boxes(f, g, cut, true);
	} else if (without <= NAMES && !single) {
		fprintf(f, "all boxes but ");
		tell_boxes(f, g, cut, false);
	} else {
		fprintf(f, "%u boxes", within);
	}
	if (single)
		fprintf(f, "%s%u single GPU%s", within ? " and " : "", single,
			plural(single));
	fprintf(f, " (%u of the %u GPUs)", cut->ninside, g->nranks);
}

static void tell_parts(FILE *f, const struct plan_graph *g,
		       const struct plan_bound *b)
{
	uint64_t capacity = 0;
	uint32_t i;

	for (i = 0; i < b->nparts; i++)
		capacity += b->parts[i].capacity;
	fprintf(f, "the GPUs are in %u parts, and links of together %g GB/s lead into these; into ",
		b->nparts, (double)capacity / 1000);
	tell_inside(f, g, &b->parts[0]);
	fprintf(f, ", ");
	tell_edges(f, g, &b->parts[0]);
}

char *reasons_limit(const struct plan_graph *g, const struct plan_bound *b)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	if (b->kind == PLAN_BOUND_PARTITION) {
		tell_parts(f, g, b);
	} else {
		fprintf(f, "the way between ");
		tell_inside(f, g, &b->cut);
		fprintf(f, " and the others is ");
		tell_edges(f, g, &b->cut);
		fprintf(f, ", together %g GB/s",
			(double)b->cut.capacity / 1000);
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- the wiring ---------------------------------------------------------- */

static void tell_uplinks(FILE *f, const struct plan_parts *p,
			 const struct cabling *c, uint32_t port)
{
	uint32_t b, sw, n, away, told = 0;

	for (b = 0; b < p->boxes; b++) {
		for (n = away = 0, sw = 0; sw < p->switches; sw++) {
			n += c->uplinks[b][cabling_place(sw, port)];
			if (sw != c->home[port])
				away += c->uplinks[b][cabling_place(sw, port)];
		}
		if (!n)
			continue;
		fprintf(f, "%s%u of columba%u", told++ ? ", " : "", n, b + 1);
		if (away)
			fprintf(f, " (%u over another switch)", away);
	}
}

/* "server.0 at draco1 has uplinks 2 of columba1, 2 of columba2; ..." */
static void tell_cabling(FILE *f, const struct plan_parts *p,
			 const struct cabling *c)
{
	uint32_t i;

	for (i = 0; i < c->nports; i++) {
		fprintf(f, "%sserver.%u at draco%u with uplinks ", i ? "; " : "",
			i, c->home[i] + 1u);
		tell_uplinks(f, p, c, i);
	}
	if (c->nisls)
		fprintf(f, "; %u cable%s between switches", c->nisls,
			plural(c->nisls));
}

static void tell_free(FILE *f, const struct plan_parts *p,
		      const struct cabling *c)
{
	uint32_t sw, i, isls, first, last, told = 0, n = 0;

	for (sw = 0; sw < p->switches; sw++) {
		for (isls = 0, i = 0; i < p->switches; i++)
			isls += c->isls[i < sw ? i : sw][i < sw ? sw : i];
		first = cabling_taken(p, c, sw) - isls + 1;
		last = p->switch_ports - isls;
		if (first > last)
			continue;
		n += last - first + 1;
		fprintf(f, "%sdraco%u:%u", told++ ? ", " : "", sw + 1, first);
		if (last > first)
			fprintf(f, "-%u", last);
	}
	fprintf(f, !n ? "No port stays free.\n" :
		n == 1 ? " stays free.\n" : " stay free.\n");
}

/* ---- all of it ----------------------------------------------------------- */

static void tell_figures(FILE *f, const struct candidate *x)
{
	if (x->optimal.num)
		fprintf(f, "%s %g GB/s",
			x->optimal_proved ? "trees reach it:" :
			"the best trees found have", gbps(x->optimal));
	if (x->ring.num)
		fprintf(f, "%s %u ring%s %s %g GB/s%s",
			x->optimal.num ? ";" : "", x->nrings, plural(x->nrings),
			x->nrings == 1 ? "has" : "have", gbps(x->ring),
			x->ring_proved ? ", and no set of rings more" :
			", which is not proved to be the most");
	fprintf(f, ".\n");
}

static int compare(const struct candidate *a, const struct candidate *b)
{
	int way = plan_ratio_compare(a->bound, b->bound);

	return way ? way : plan_ratio_compare(a->cut, b->cut);
}

/* What decides between two that are as fast, as by_rank() of design.c does. */
static const char *advantage(const struct candidate *best,
			     const struct candidate *x)
{
	if (plan_ratio_compare(best->apart, x->apart) > 0)
		return "this one loses less if the server's root complex forwards nothing between its ports";
	if (best->cabling->nports > x->cabling->nports)
		return "this one has more bandwidth to the server";
	if (best->cabling->nisls < x->cabling->nisls)
		return "this one takes fewer cables between switches";
	if (best->uneven < x->uneven)
		return "this one spreads the uplinks more evenly, and loses less with a switch or a host port";
	return "which of the two is taken makes no difference to the collectives";
}

static void tell_other(FILE *f, const struct plan_parts *p, const char *which,
		       const struct candidate *best,
		       const struct candidate *x)
{
	fprintf(f, "%s (", which);
	tell_cabling(f, p, x->cabling);
	if (!compare(best, x))
		fprintf(f, ") is as fast; %s.\n", advantage(best, x));
	else
		fprintf(f, ") is bound to %g GB/s, rings to %g: %s.\n",
			gbps(x->bound), gbps(x->cut),
			x->limit ? x->limit : "its cut is narrower");
}

char *reasons(const struct plan_parts *p, enum plan_collective c,
	      enum cabling_level level, const struct candidate *best, const struct candidate *next,
	      const struct candidate *worst)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	tell_cabling(f, p, best->cabling);
	fprintf(f, ".\nWhat limits it: %s. So no %s has more bus bandwidth than %g GB/s, and no rings more than %g; ",
		best->limit ? best->limit : "", plan_collective_name(c),
		gbps(best->bound), gbps(best->cut));
	tell_figures(f, best);
	if (best->apart.num && !plan_ratio_compare(best->apart, best->cut))
		fprintf(f, "The root complex is not needed for that.\n");
	if (next)
		tell_other(f, p, "The next one", best, next);
	if (worst && worst != next)
		tell_other(f, p, "The worst one", best, worst);
	tell_free(f, p, best->cabling);
	if (level > CABLING_ALL)
		fprintf(f, "There are more wirings than can be compared: only those were in which uplinks belong to a host port of their own switch if it has one%s%s.\n",
			level < CABLING_EVEN ? "" :
			", and host ports and the uplinks of each box are spread evenly",
			level < CABLING_TWO ? "" :
			", and boxes are cabled in two ways at most");
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
