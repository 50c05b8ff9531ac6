// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Explains bounds in words, with everything needed to check them by hand: what is
 * inside, each edge, the sum, and the arithmetic. Called by api/write.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/draw.h"

#define COLUMNS		76
#define FULL_PARTS	4

/* Several words on lines of their own width. */
struct words {
	FILE *f;
	int column;
};

static void put_word(struct words *w, const char *word, bool more)
{
	if (w->column && w->column + (int)strlen(word) > COLUMNS) {
		fputc('\n', w->f);
		w->column = 0;
	}
	w->column += fprintf(w->f, "%s%s%s", w->column ? " " : "  ", word,
			     more ? "," : "");
}

static double gbps(struct plan_ratio mbps)
{
	return plan_ratio_value(mbps) / 1000;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- what is inside ------------------------------------------------------ */

/* Of each box. */
struct box {
	uint32_t nodes, gpus;	/* in it */
	uint32_t inside;	/* nodes of it that are listed */
	uint32_t example;	/* a GPU of it, or any node */
};

static void count_boxes(const struct plan_graph *g, const bool *listed,
			struct box *boxes)
{
	uint32_t i;

	for (i = 0; i < g->nnodes; i++) {
		const struct plan_node *n = &g->nodes[i];
		struct box *b;

		if (n->box == PLAN_NONE)
			continue;
		b = &boxes[n->box];
		if (!b->nodes || (n->kind == PLAN_GPU && !b->gpus))
			b->example = i;
		b->nodes++;
		b->gpus += n->rank != PLAN_NONE;
		b->inside += listed[i];
	}
}

/*
 * A box is called what its GPUs' names begin with: columba1.gpu0 is in
 * columba1.
 */
static void name_box(const struct plan_graph *g, const struct box *b,
		     uint32_t number, char *text, size_t size)
{
	const char *name = g->nodes[b->example].name;
	const char *end = strrchr(name, '.');

	if (g->nodes[b->example].kind == PLAN_GPU && end && end > name)
		snprintf(text, size, "%.*s", (int)(end - name), name);
	else
		snprintf(text, size, "%u", number);
}

/* Whole boxes as one, all else by name. */
static void put_listed(const struct plan_graph *g, const bool *listed,
		       uint32_t left, const struct box *boxes, FILE *f)
{
	struct words w = { .f = f };
	char name[PLAN_NAME], text[2 * PLAN_NAME];
	uint32_t i;

	for (i = 0; i < g->nboxes; i++) {
		if (!boxes[i].inside || boxes[i].inside != boxes[i].nodes ||
		    boxes[i].nodes == 1)
			continue;
		left -= boxes[i].nodes;
		name_box(g, &boxes[i], i, name, sizeof(name));
		snprintf(text, sizeof(text), "box %s (%u GPU%s)", name,
			 boxes[i].gpus, plural(boxes[i].gpus));
		put_word(&w, text, left);
	}
	for (i = 0; i < g->nnodes; i++) {
		uint32_t box = g->nodes[i].box;

		if (listed[i] && (box == PLAN_NONE || boxes[box].nodes == 1 ||
				  boxes[box].inside != boxes[box].nodes))
			put_word(&w, g->nodes[i].name, --left);
	}
	fputc('\n', f);
}

/* The set, or what it is without where that is less. */
static int put_set(const struct plan_graph *g, const struct plan_cut *c,
		   FILE *f)
{
	bool *listed = malloc(g->nnodes * sizeof(*listed));
	struct box *boxes = calloc(g->nboxes + 1, sizeof(*boxes));
	uint32_t i, n = 0;
	bool invert;

	if (!listed || !boxes) {
		free(listed);
		free(boxes);
		return -ENOMEM;
	}
	for (i = 0; i < g->nnodes; i++)
		n += c->inside[i];
	invert = n > g->nnodes - n;
	for (i = 0; i < g->nnodes; i++)
		listed[i] = c->inside[i] != invert;
	count_boxes(g, listed, boxes);
	fprintf(f, ", %u of %u GPU%s%s:\n", c->ninside, g->nranks,
		plural(g->nranks), invert ? ", all but" : "");
	put_listed(g, listed, invert ? g->nnodes - n : n, boxes, f);
	free(listed);
	free(boxes);
	return 0;
}

/* ---- edges --------------------------------------------------------------- */

/* "4 x 27 = 108 GB/s": capacities that are the same are taken together. */
static void put_sum(const struct plan_graph *g, const struct plan_cut *c,
		    FILE *f)
{
	uint64_t sum = 0, capacity;
	uint32_t i, n, k;
	bool first = true;

	for (i = 0; i < c->nedges; i++) {
		capacity = g->edges[c->edges[i]].capacity;
		sum += capacity;
		for (k = 0; k < i; k++)
			if (g->edges[c->edges[k]].capacity == capacity)
				break;
		if (k < i)
			continue;
		for (n = 0; k < c->nedges; k++)
			n += g->edges[c->edges[k]].capacity == capacity;
		fprintf(f, "%s%u x %.10g", first ? "" : " + ", n,
			(double)capacity / 1000);
		first = false;
	}
	fprintf(f, "%s%.10g GB/s\n", first ? "" : " = ", (double)sum / 1000);
}

static void put_edges(const struct plan_graph *g, const struct plan_cut *c,
		      FILE *f)
{
	uint32_t i;

	for (i = 0; i < c->nedges; i++) {
		const struct plan_edge *x = &g->edges[c->edges[i]];

		fprintf(f, "  %s > %s  %.10g GB/s (%s)\n",
			g->nodes[x->from].name, g->nodes[x->to].name,
			(double)x->capacity / 1000,
			plan_link_kind_name(x->kind));
	}
	fprintf(f, "  together ");
	put_sum(g, c, f);
}

/* Do the edges lead out, or in (reduce-scatter, reduce)? */
static bool leads_out(const struct plan_graph *g, const struct plan_cut *c)
{
	return !c->nedges || c->inside[g->edges[c->edges[0]].from];
}

/* ---- arithmetic ---------------------------------------------------------- */

static void put_busbw(const struct plan_graph *g, enum plan_collective c,
		      const struct plan_bound *b, FILE *f)
{
	struct plan_ratio factor = plan_busbw_factor(c, g->nranks);

	if (factor.den == 1)
		fprintf(f, "; busbw is the same.\n");
	else	/* of all ranks, as nccl-tests has it: 30/16, not 15/8 */
		fprintf(f, ", busbw <= %.6g x %llu/%u = %.6g GB/s.\n",
			gbps(b->algbw),
			(unsigned long long)(factor.num *
					     (g->nranks / factor.den)),
			g->nranks, gbps(b->busbw));
}

static void put_cut(const struct plan_graph *g, enum plan_collective c,
		    const struct plan_bound *b, FILE *f)
{
	uint32_t k = b->cut.ninside, n = g->nranks;
	double sum = (double)b->cut.capacity / 1000;

	switch (c) {
	case PLAN_ALL_GATHER:
		fprintf(f, "The shards of the %u GPU%s inside have to leave it: %u of %u shards over %.10g GB/s: algbw <= %.10g x %u/%u = %.6g GB/s",
			k, plural(k), k, n, sum, sum, n, k, gbps(b->algbw));
		break;
	case PLAN_REDUCE_SCATTER:
		fprintf(f, "What the others have for the %u GPU%s inside has to get into it: %u of %u shards over %.10g GB/s: algbw <= %.10g x %u/%u = %.6g GB/s",
			k, plural(k), k, n, sum, sum, n, k, gbps(b->algbw));
		break;
	case PLAN_ALL_REDUCE:
		fprintf(f, "What is inside has its part in the whole result, all of which crosses %.10g GB/s: algbw <= %.6g GB/s",
			sum, gbps(b->algbw));
		break;
	default:
		fprintf(f, "The root is inside, others are not; all bytes cross %.10g GB/s: algbw <= %.6g GB/s",
			sum, gbps(b->algbw));
	}
	put_busbw(g, c, b, f);
}

static int explain_cut(const struct plan_graph *g, enum plan_collective c,
		       const struct plan_bound *b, FILE *f)
{
	int err;

	fprintf(f, "Inside");
	err = put_set(g, &b->cut, f);
	if (err)
		return err;
	fprintf(f, "What leads %s:\n",
		leads_out(g, &b->cut) ? "out of it" : "into it");
	put_edges(g, &b->cut, f);
	put_cut(g, c, b, f);
	return 0;
}

/* The first ones edge by edge, those after FULL_PARTS by their sums. */
static int put_part(const struct plan_graph *g, const struct plan_bound *b,
		    uint32_t i, FILE *f)
{
	int err;

	fprintf(f, "Part %u", i + 1);
	err = put_set(g, &b->parts[i], f);
	if (i && b->nparts > FULL_PARTS) {
		fprintf(f, "  together into it ");
		put_sum(g, &b->parts[i], f);
	} else {
		fprintf(f, "What leads into it:\n");
		put_edges(g, &b->parts[i], f);
	}
	return err;
}

static int explain_partition(const struct plan_graph *g, enum plan_collective c,
			     const struct plan_bound *b, FILE *f)
{
	uint32_t i, r = b->nparts;
	uint64_t sum = 0;
	int err = 0;

	fprintf(f, "All GPUs are in %u parts that have nothing in common.\n", r);
	for (i = 0; !err && i < r; i++) {
		err = put_part(g, b, i, f);
		sum += b->parts[i].capacity;
	}
	if (err)
		return err;
	fprintf(f, "Into all parts together lead %.10g GB/s. An all-reduce of m bytes brings at least 2(%u - 1)m bytes into %u parts: algbw <= %.10g / %u = %.6g GB/s",
		(double)sum / 1000, r, r, (double)sum / 1000, 2 * (r - 1),
		gbps(b->algbw));
	put_busbw(g, c, b, f);
	return 0;
}

int plan_bound_explain(const struct plan_graph *g, enum plan_collective c,
		       const struct plan_bound *b, FILE *f)
{
	int err;

	fprintf(f, "No %s on it is faster than %.6g GB/s algbw, %.6g GB/s busbw.\n",
		plan_collective_name(c), gbps(b->algbw), gbps(b->busbw));
	if (b->kind == PLAN_BOUND_PARTITION)
		err = explain_partition(g, c, b, f);
	else
		err = explain_cut(g, c, b, f);
	if (!err && (fflush(f) || ferror(f)))
		err = -EIO;
	return err;
}
