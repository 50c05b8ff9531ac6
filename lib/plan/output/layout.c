// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Places everything in a picture: units, then layers, then coordinates. Called by
 * svg.c only.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/output/layout.h"

#define GAP		10.0	/* between items of a row */
#define PAD		14.0	/* inside frames */
#define UNIT_GAP	26.0	/* between frames */
#define ROW		74.0	/* from layer to layer inside of boxes */
#define ITEM_HEIGHT	26.0
#define MAX_LAYERS	64u

static bool is_leaf(const struct plan_node *n)
{
	return n->kind == PLAN_GPU || n->kind == PLAN_NIC ||
	       n->kind == PLAN_NET;
}

static bool is_single(const struct plan_graph *g)
{
	uint32_t i, n = 0;

	for (i = 0; i < g->nnodes; i++)
		n += g->nodes[i].kind == PLAN_GPU;
	return n <= LAYOUT_SINGLE;
}

/* ---- units -------------------------------------------------------------- */

/* Of each GPU without a box: the first node that it is joined with. */
static void find_parents(const struct plan_graph *g, uint32_t *parent)
{
	uint32_t i;

	for (i = 0; i < g->nnodes; i++)
		parent[i] = PLAN_NONE;
	for (i = 0; i < g->nedges; i++) {
		uint32_t a = g->edges[i].from, b = g->edges[i].to;

		if (g->nodes[a].kind == PLAN_GPU && !is_leaf(&g->nodes[b]) &&
		    b < parent[a])
			parent[a] = b;
	}
}

/*
 * Keys of units: boxes with GPUs, then first neighbours of GPUs without a
 * box; @ids maps them to units, in this order.
 */
static void number_units(const struct plan_graph *g, struct layout *l,
			 const uint32_t *parent, uint32_t *ids)
{
	uint32_t nkeys = g->nboxes + g->nnodes + 1, i;

	for (i = 0; i < nkeys; i++)
		ids[i] = PLAN_NONE;
	for (i = 0; i < g->nnodes; i++) {
		const struct plan_node *n = &g->nodes[i];
		uint32_t orphan = parent[i] == PLAN_NONE ? g->nnodes :
				  parent[i];

		if (n->kind == PLAN_GPU)
			ids[n->box < g->nboxes ? n->box :
			    g->nboxes + orphan] = 0;
	}
	for (i = 0; i < nkeys; i++)
		if (ids[i] != PLAN_NONE)
			ids[i] = l->nunits++;
	for (i = 0; i < g->nnodes; i++) {
		const struct plan_node *n = &g->nodes[i];

		if (n->box < g->nboxes)
			l->unit[i] = ids[n->box];
		else if (n->kind == PLAN_GPU)
			l->unit[i] = ids[g->nboxes + (parent[i] == PLAN_NONE ?
						      g->nnodes : parent[i])];
		else
			l->unit[i] = PLAN_NONE;
	}
}

static int list_gpus(const struct plan_graph *g, struct layout *l)
{
	uint32_t i, *n;

	l->units = calloc(l->nunits + 1, sizeof(*l->units));
	if (!l->units)
		return -ENOMEM;
	for (i = 0; i < g->nnodes; i++)
		if (g->nodes[i].kind == PLAN_GPU)
			l->units[l->unit[i]].ngpus++;
	for (i = 0; i < l->nunits; i++) {
		l->units[i].box = PLAN_NONE;
		l->units[i].gpus = calloc(l->units[i].ngpus,
					  sizeof(*l->units[i].gpus));
		if (!l->units[i].gpus)
			return -ENOMEM;
		l->units[i].ngpus = 0;
	}
	for (i = 0; i < g->nnodes; i++) {
		if (g->nodes[i].kind != PLAN_GPU)
			continue;
		n = &l->units[l->unit[i]].ngpus;
		l->units[l->unit[i]].gpus[(*n)++] = i;
		if (g->nodes[i].box < g->nboxes)
			l->units[l->unit[i]].box = g->nodes[i].box;
	}
	for (i = 0; i < g->nedges; i++) {
		uint32_t a = g->edges[i].from, b = g->edges[i].to;

		if (g->nodes[a].kind == PLAN_GPU &&
		    g->nodes[b].kind == PLAN_GPU && l->unit[a] == l->unit[b])
			l->units[l->unit[a]].mesh = true;
	}
	return 0;
}

static int find_units(const struct plan_graph *g, struct layout *l)
{
	uint32_t *parent = malloc((g->nnodes + 1) * sizeof(*parent));
	uint32_t *ids = malloc(((size_t)g->nboxes + g->nnodes + 1) *
			       sizeof(*ids));
	int err = -ENOMEM;

	if (parent && ids) {
		find_parents(g, parent);
		number_units(g, l, parent, ids);
		err = list_gpus(g, l);
	}
	free(parent);
	free(ids);
	return err;
}

/* ---- layers ------------------------------------------------------------- */

struct layers {
	const struct plan_graph *g;
	const struct layout *l;
	uint32_t *of;		/* of each node, PLAN_NONE: not yet */
	uint32_t inner;		/* highest of a node in a unit */
};

/*
 * One step further than what is known, again and again: first inside of
 * units, then outside. Layers are few, so rounds are.
 */
static void spread(struct layers *y, bool outside)
{
	const struct plan_graph *g = y->g;
	const uint32_t *unit = y->l->unit;
	uint32_t now, top = y->inner, i;

	for (now = 0; now <= top && now < MAX_LAYERS; now++)
		for (i = 0; i < g->nedges; i++) {
			uint32_t a = g->edges[i].from, b = g->edges[i].to;

			if (y->of[a] > now || y->of[b] != PLAN_NONE ||
			    (outside ? unit[b] != PLAN_NONE :
			     unit[b] != unit[a] || unit[a] == PLAN_NONE))
				continue;
			y->of[b] = outside && unit[a] != PLAN_NONE ?
				   y->inner + 1 : now + 1;
			if (y->of[b] > top)
				top = y->of[b];
		}
}

/* Who is above somebody in the PCI tree stands above it. */
static void raise_parents(struct layers *y, bool outside)
{
	const struct plan_graph *g = y->g;
	const uint32_t *unit = y->l->unit;
	uint32_t round, i;
	bool more = true;

	for (round = 0; more && round < MAX_LAYERS; round++) {
		more = false;
		for (i = 0; i < g->nnodes; i++) {
			uint32_t up = g->nodes[i].up;

			if (up >= g->nnodes || is_leaf(&g->nodes[up]) ||
			    (unit[up] == PLAN_NONE) != outside ||
			    (!outside && unit[up] != unit[i]) ||
			    y->of[i] == PLAN_NONE || y->of[i] >= MAX_LAYERS ||
			    (y->of[up] != PLAN_NONE && y->of[up] > y->of[i]))
				continue;
			y->of[up] = y->of[i] + 1;
			more = true;
		}
	}
}

/* Root complexes on top of all others of the same side. */
static uint32_t pin_roots(struct layers *y, bool outside)
{
	const struct plan_graph *g = y->g;
	uint32_t i, top = outside ? y->inner : 0;
	uint32_t least = outside ? y->inner + 1 : 1;

	for (i = 0; i < g->nnodes; i++) {
		if ((y->l->unit[i] == PLAN_NONE) != outside)
			continue;
		if (y->of[i] == PLAN_NONE || y->of[i] < least)
			y->of[i] = is_leaf(&g->nodes[i]) && !outside ? 0 :
				   least;
		if (y->of[i] > top)
			top = y->of[i];
	}
	for (i = 0; i < g->nnodes; i++)
		if (g->nodes[i].kind == PLAN_ROOT_COMPLEX &&
		    (y->l->unit[i] == PLAN_NONE) == outside)
			y->of[i] = top;
	return top;
}

static uint32_t find_layers(const struct plan_graph *g, struct layout *l,
			    uint32_t *of)
{
	struct layers y = { g, l, of, 0 };
	uint32_t i;

	for (i = 0; i < g->nnodes; i++)
		of[i] = is_leaf(&g->nodes[i]) && l->unit[i] != PLAN_NONE ? 0 :
			PLAN_NONE;
	spread(&y, false);
	raise_parents(&y, false);
	y.inner = pin_roots(&y, false);
	if (l->together)
		for (i = 0; i < g->nnodes; i++)
			if (l->unit[i] != PLAN_NONE)
				of[i] = 0;
	if (l->together)
		y.inner = 0;
	spread(&y, true);
	raise_parents(&y, true);
	l->nlayers = pin_roots(&y, true) + 1;
	return y.inner;
}

/* ---- labels ------------------------------------------------------------- */

/* How much of the names of a unit's GPUs is the same, up to a separator. */
static size_t common_prefix(const struct plan_graph *g,
			    const struct layout_unit *u)
{
	const char *first = g->nodes[u->gpus[0]].name;
	size_t n = strlen(first), k;
	uint32_t i;

	for (i = 1; i < u->ngpus; i++) {
		const char *name = g->nodes[u->gpus[i]].name;

		for (k = 0; k < n && name[k] == first[k]; k++)
			;
		n = k;
	}
	while (n && !strchr(".:-_", first[n - 1]))
		n--;
	return n;
}

const char *layout_box_name(const struct plan_graph *g, const struct layout *l,
			    const struct layout_unit *u, char *buf,
			    size_t size)
{
	size_t n = common_prefix(g, u);

	(void)l;
	if (n > 1 && u->box != PLAN_NONE)
		snprintf(buf, size, "%.*s", (int)(n - 1),
			 g->nodes[u->gpus[0]].name);
	else if (u->box != PLAN_NONE)
		snprintf(buf, size, "box %u", u->box);
	else
		snprintf(buf, size, "%u GPU%s", u->ngpus,
			 u->ngpus == 1 ? "" : "s");
	return buf;
}

const char *layout_label(const struct plan_graph *g, const struct layout *l,
			 const struct layout_item *item, char *buf, size_t size)
{
	const struct plan_node *n;
	const struct layout_unit *u;
	size_t skip = 0;

	if (item->node == PLAN_NONE)
		return layout_box_name(g, l, &l->units[item->unit], buf, size);
	n = &g->nodes[item->node];
	if (item->unit != PLAN_NONE && !l->circle) {
		u = &l->units[item->unit];
		skip = common_prefix(g, u);
		/* Switches may have another separator: columba1:up0. */
		if (u->box == PLAN_NONE || skip < 2 ||
		    strlen(n->name) <= skip ||
		    strncmp(n->name, g->nodes[u->gpus[0]].name, skip - 1) ||
		    !strchr(".:-_", n->name[skip - 1]))
			skip = 0;
	}
	if (strlen(n->name + skip) > 22)
		snprintf(buf, size, "%.19s...", n->name + skip);
	else
		snprintf(buf, size, "%s", n->name + skip);
	return buf;
}

/* ---- places ------------------------------------------------------------- */

static int make_items(const struct plan_graph *g, struct layout *l,
		      const uint32_t *layer)
{
	uint32_t i, u;
	char text[PLAN_NAME];

	l->items = calloc((size_t)g->nnodes + l->nunits + 1,
			  sizeof(*l->items));
	if (!l->items)
		return -ENOMEM;
	if (l->together)
		for (u = 0; u < l->nunits; u++)
			l->items[l->nitems++] = (struct layout_item){
				.node = PLAN_NONE, .unit = u,
			};
	for (i = 0; i < g->nnodes; i++) {
		if (l->together && l->unit[i] != PLAN_NONE) {
			l->item[i] = l->unit[i];
			continue;
		}
		l->item[i] = l->nitems;
		l->items[l->nitems++] = (struct layout_item){
			.node = i, .unit = l->unit[i], .layer = layer[i],
		};
	}
	for (i = 0; i < l->nitems; i++) {
		struct layout_item *it = &l->items[i];

		it->w = 7.0 * strlen(layout_label(g, l, it, text,
						  sizeof(text))) + 14;
		if (it->w < 44)
			it->w = 44;
		it->h = it->node == PLAN_NONE ? 40 : ITEM_HEIGHT;
	}
	return 0;
}

/* What is sorted to make a row. */
struct place {
	double want;		/* x that it would like to have */
	uint32_t item;
};

static int by_want(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->want != y->want)
		return x->want < y->want ? -1 : 1;
	return x->item < y->item ? -1 : x->item > y->item;
}

/* Items that have been pushed together, as one. */
struct block {
	double sum;		/* of where its items want its left end */
	double width;
	uint32_t first, n;
};

/*
 * Each as near to where it wants to be as the others let it, least squares:
 * pool adjacent violators. @blocks has room for @n.
 */
static void settle(struct layout *l, struct place *row, uint32_t n,
		   struct block *blocks, double gap)
{
	uint32_t nblocks = 0, i, k;

	qsort(row, n, sizeof(*row), by_want);
	for (i = 0; i < n; i++) {
		double w = l->items[row[i].item].w + gap;
		struct block *b = &blocks[nblocks++];

		*b = (struct block){ row[i].want - w / 2, w, i, 1 };
		while (nblocks > 1 && b[-1].sum / b[-1].n + b[-1].width >
		       b->sum / b->n) {
			b[-1].sum += b->sum - b->n * b[-1].width;
			b[-1].width += b->width;
			b[-1].n += b->n;
			b--;
			nblocks--;
		}
	}
	for (i = 0; i < nblocks; i++) {
		double x = blocks[i].sum / blocks[i].n;

		for (k = 0; k < blocks[i].n; k++) {
			struct layout_item *it =
				&l->items[row[blocks[i].first + k].item];

			it->x = x + (it->w + gap) / 2;
			x += it->w + gap;
		}
	}
}

struct rows {
	const struct plan_graph *g;
	struct layout *l;
	double *sum;		/* of each item: x of those below */
	uint32_t *count;
	struct place *row;
	struct block *blocks;
	double *unit_room;	/* of each unit: widest row */
};

/* Where the neighbours in lower layers are, on average. */
static void weigh(struct rows *r)
{
	const struct plan_graph *g = r->g;
	struct layout *l = r->l;
	uint32_t i;

	memset(r->sum, 0, l->nitems * sizeof(*r->sum));
	memset(r->count, 0, l->nitems * sizeof(*r->count));
	for (i = 0; i < g->nedges; i++) {
		uint32_t a = l->item[g->edges[i].from];
		uint32_t b = l->item[g->edges[i].to];

		if (l->items[a].layer >= l->items[b].layer)
			continue;
		r->sum[b] += l->items[a].x;
		r->count[b]++;
	}
}

static void place_layer(struct rows *r, uint32_t layer, uint32_t unit)
{
	struct layout *l = r->l;
	double gap = GAP, room, width = 0;
	uint32_t i, n = 0;

	for (i = 0; i < l->nitems; i++)
		if (l->items[i].layer == layer && l->items[i].unit == unit) {
			r->row[n++] = (struct place){
				r->count[i] ? r->sum[i] / r->count[i] : 0, i
			};
			width += l->items[i].w;
		}
	/* Spines of a wide tree that all want to be in its middle. */
	room = l->nunits ? l->units[l->nunits - 1].x +
			   l->units[l->nunits - 1].w : 0;
	if (unit == PLAN_NONE && n > 1)
		gap = fmin(fmax((0.5 * room - width) / n, GAP), 160);
	settle(l, r->row, n, r->blocks, gap);
}

/* How much room the rows of each unit take. */
static int measure_units(struct rows *r)
{
	struct layout *l = r->l;
	double *w = calloc((size_t)l->nunits * l->nlayers + 1, sizeof(*w));
	uint32_t i, k;

	if (!w)
		return -ENOMEM;
	for (i = 0; i < l->nitems; i++)
		if (l->items[i].unit != PLAN_NONE)
			w[(size_t)l->items[i].unit * l->nlayers +
			  l->items[i].layer] += l->items[i].w + GAP;
	for (i = 0; i < l->nunits; i++) {
		r->unit_room[i] = l->units[i].mesh && !l->together ? 230 : 0;
		for (k = 0; k < l->nlayers; k++)
			if (w[(size_t)i * l->nlayers + k] > r->unit_room[i])
				r->unit_room[i] =
					w[(size_t)i * l->nlayers + k];
	}
	free(w);
	return 0;
}

/* GPUs that hang below the same switch of the box stand together. */
static void want_of_gpus(struct rows *r)
{
	const struct plan_graph *g = r->g;
	uint32_t i;

	for (i = 0; i < r->l->nitems; i++)
		r->row[i].want = PLAN_NONE;
	for (i = 0; i < g->nedges; i++) {
		uint32_t a = r->l->item[g->edges[i].from];
		uint32_t b = g->edges[i].to;

		if (!is_leaf(&g->nodes[b]) && b < r->row[a].want)
			r->row[a].want = b;
	}
	for (i = 0; i < r->l->nitems; i++)
		r->sum[i] = r->row[i].want;
}

/* The bottom rows: unit beside unit. */
static void place_bottom(struct rows *r)
{
	struct layout *l = r->l;
	double left = 0;
	uint32_t u, i, n;

	want_of_gpus(r);
	for (u = 0; u < l->nunits; u++) {
		double pad = l->together ? 0 : PAD, at = left + pad, width = 0;

		for (i = n = 0; i < l->nitems; i++)
			if (l->items[i].unit == u && !l->items[i].layer) {
				r->row[n++] = (struct place){ r->sum[i], i };
				width += l->items[i].w + GAP;
			}
		qsort(r->row, n, sizeof(*r->row), by_want);
		at += (r->unit_room[u] - width) / 2;
		for (i = 0; i < n; i++) {
			struct layout_item *it = &l->items[r->row[i].item];

			it->x = at + (it->w + GAP) / 2;
			at += it->w + GAP;
		}
		l->units[u].x = left;
		l->units[u].w = r->unit_room[u] + 2 * pad;
		left += l->units[u].w + (l->together ? 8 : UNIT_GAP);
	}
}

/* Rows of switches of a box stay inside its frame. */
static void place_inner(struct rows *r, uint32_t inner)
{
	struct layout *l = r->l;
	uint32_t layer, u, i;

	for (layer = 1; layer <= inner; layer++) {
		weigh(r);
		for (u = 0; u < l->nunits; u++) {
			double low = INFINITY, high = -INFINITY, push = 0;
			const struct layout_unit *unit = &l->units[u];

			place_layer(r, layer, u);
			for (i = 0; i < l->nitems; i++) {
				const struct layout_item *it = &l->items[i];

				if (it->layer != layer || it->unit != u)
					continue;
				low = fmin(low, it->x - it->w / 2);
				high = fmax(high, it->x + it->w / 2);
			}
			if (low < unit->x + PAD)
				push = unit->x + PAD - low;
			else if (high > unit->x + unit->w - PAD)
				push = unit->x + unit->w - PAD - high;
			for (i = 0; i < l->nitems; i++)
				if (l->items[i].layer == layer &&
				    l->items[i].unit == u)
					l->items[i].x += push;
		}
	}
}

/* Lines between items of the highest row bow over it. */
static double headroom(const struct rows *r)
{
	const struct layout *l = r->l;
	uint32_t i;

	for (i = 0; i < r->g->nedges; i++) {
		uint32_t a = l->item[r->g->edges[i].from];
		uint32_t b = l->item[r->g->edges[i].to];

		if (a != b && l->items[a].layer == l->nlayers - 1 &&
		    l->items[b].layer == l->nlayers - 1)
			return LAYOUT_BOW;
	}
	return 0;
}

/* Heights of rows: more lines need more room to be told apart. */
static void set_heights(struct rows *r, uint32_t inner)
{
	struct layout *l = r->l;
	double outer, bottom = 0, top, width = 0;
	bool mesh = false;
	uint32_t i;

	for (i = 0; i < l->nunits; i++)
		width = fmax(width, l->units[i].x + l->units[i].w);
	outer = fmin(70 + 0.03 * width + 0.05 * r->g->nedges, 300);
	for (i = 0; i < l->nunits; i++)
		mesh |= l->units[i].mesh;
	for (i = 0; i < l->nitems; i++) {
		struct layout_item *it = &l->items[i];
		uint32_t up = it->layer > inner ? it->layer - inner : 0;

		it->y = -ROW * (it->layer < inner ? it->layer : inner) -
			(up ? outer + 30 + outer * (up - 1) : 0);
		bottom = fmin(bottom, it->y);
	}
	top = -bottom + 20 + headroom(r) + (l->nlayers == inner + 1 ? 16 : 0);
	for (i = 0; i < l->nitems; i++)
		l->items[i].y += top;
	for (i = 0; i < l->nunits; i++) {
		struct layout_unit *u = &l->units[i];
		bool chord = u->mesh && !l->together &&
			     u->ngpus <= LAYOUT_CHORD;

		u->y = top - ROW * inner - 30 -
		       (l->nlayers == inner + 1 ? headroom(r) : 0);
		u->chord_r = chord ? 26 + 1.6 * u->ngpus : 0;
		u->chord_x = u->x + u->w / 2;
		u->chord_y = top + 36 + u->chord_r;
		u->label_y = top + 36 + (chord ? 2 * u->chord_r + 22 : 0);
		u->h = u->label_y + (mesh ? 22 : 10) - u->y;
	}
}

/* Move all so that it begins at 0, and see how large it is. */
static void fit(struct layout *l)
{
	double low = INFINITY, high = 0, bottom = 0;
	uint32_t i;

	for (i = 0; i < l->nitems; i++) {
		low = fmin(low, l->items[i].x - l->items[i].w / 2);
		high = fmax(high, l->items[i].x + l->items[i].w / 2);
		bottom = fmax(bottom, l->items[i].y + l->items[i].h);
	}
	for (i = 0; i < l->nunits; i++) {
		low = fmin(low, l->units[i].x);
		high = fmax(high, l->units[i].x + l->units[i].w);
		bottom = fmax(bottom, l->units[i].y + l->units[i].h);
	}
	if (!l->nitems)
		low = 0;
	for (i = 0; i < l->nitems; i++)
		l->items[i].x -= low;
	for (i = 0; i < l->nunits; i++) {
		l->units[i].x -= low;
		l->units[i].chord_x -= low;
	}
	l->width = high - low;
	l->height = bottom;
}

static int place_rows(const struct plan_graph *g, struct layout *l,
		      uint32_t inner)
{
	struct rows r = { .g = g, .l = l };
	uint32_t layer;
	int err = -ENOMEM;

	r.sum = calloc(l->nitems + 1, sizeof(*r.sum));
	r.count = calloc(l->nitems + 1, sizeof(*r.count));
	r.row = calloc(l->nitems + 1, sizeof(*r.row));
	r.blocks = calloc(l->nitems + 1, sizeof(*r.blocks));
	r.unit_room = calloc(l->nunits + 1, sizeof(*r.unit_room));
	if (r.sum && r.count && r.row && r.blocks && r.unit_room)
		err = measure_units(&r);
	if (!err) {
		place_bottom(&r);
		place_inner(&r, inner);
		for (layer = inner + 1; layer < l->nlayers; layer++) {
			weigh(&r);
			place_layer(&r, layer, PLAN_NONE);
		}
		set_heights(&r, inner);
		fit(l);
	}
	free(r.sum);
	free(r.count);
	free(r.row);
	free(r.blocks);
	free(r.unit_room);
	return err;
}

/* Nothing but GPUs, and boxes that say nothing about them. */
static bool is_circle(const struct plan_graph *g, const struct layout *l)
{
	uint32_t i;

	for (i = 0; i < g->nnodes; i++)
		if (g->nodes[i].kind != PLAN_GPU)
			return false;
	return l->nunits <= 1 || l->nunits == g->nnodes;
}

static void place_circle(struct layout *l)
{
	double wide = 44, radius, angle;
	uint32_t i;

	for (i = 0; i < l->nitems; i++) {
		if (l->nitems > LAYOUT_SINGLE)
			l->items[i].w = l->items[i].h = 10;
		wide = fmax(i ? wide : 0, l->items[i].w);
	}
	radius = fmax(110, (wide + (wide > 10 ? 24 : 4)) * l->nitems /
			   (2 * M_PI));
	for (i = 0; i < l->nitems; i++) {
		angle = 2 * M_PI * i / l->nitems - M_PI / 2;
		l->items[i].x = radius + wide / 2 + radius * cos(angle);
		l->items[i].y = radius + 20 + radius * sin(angle);
	}
	l->width = 2 * radius + wide;
	l->height = 2 * radius + 40;
}

int layout_make(const struct plan_graph *g, struct layout *l)
{
	uint32_t *layer = calloc(g->nnodes + 1, sizeof(*layer)), inner;
	int err = -ENOMEM;

	*l = (struct layout){ .together = !is_single(g), .nlayers = 1 };
	l->unit = calloc(g->nnodes + 1, sizeof(*l->unit));
	l->item = calloc(g->nnodes + 1, sizeof(*l->item));
	if (layer && l->unit && l->item)
		err = find_units(g, l);
	if (!err && is_circle(g, l)) {
		l->circle = true;
		l->together = false;
	}
	if (!err) {
		inner = l->circle ? 0 : find_layers(g, l, layer);
		err = make_items(g, l, layer);
	}
	if (!err && l->circle)
		place_circle(l);
	else if (!err)
		err = place_rows(g, l, inner);
	free(layer);
	return err;
}

void layout_free(struct layout *l)
{
	uint32_t i;

	for (i = 0; l->units && i < l->nunits; i++)
		free(l->units[i].gpus);
	free(l->units);
	free(l->items);
	free(l->item);
	free(l->unit);
}
