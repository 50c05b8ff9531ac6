// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Joins trees over boxes and trees inside boxes. Called by boxes.c.
 *
 * All that is to be joined has weights: trees of the trunk, paths by which they
 * leave and enter boxes, trees inside. A piece of a trunk's tree takes the next
 * of each that it needs, and is as heavy as the lightest of them allows; so
 * there are no more pieces than things to be joined, whatever they weigh.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/solve/boxes.h"
#include "plan/util.h"

/* ---- shares of the paths into boxes and out of them ----------------------- */

/* Paths of one box that begin (or end) with one arc from (or to) the world. */
struct gate {
	uint32_t box, arc, path;	/* arc: of the whole network */
};

struct gates {
	uint32_t n;
	struct gate *gates;	/* by arc, then path */
};

static int by_arc(const void *a, const void *b)
{
	const struct gate *x = a, *y = b;

	if (x->arc != y->arc)
		return x->arc < y->arc ? -1 : 1;
	return x->path < y->path ? -1 : x->path > y->path;
}

static int find_gates(const struct plan_boxed *b, bool into, struct gates *out)
{
	uint32_t i, k, room = 1;

	for (i = 0; i < b->nboxes; i++)
		room += b->boxes[i].links->npaths;
	out->n = 0;
	out->gates = malloc(room * sizeof(*out->gates));
	if (!out->gates)
		return -ENOMEM;
	for (i = 0; i < b->nboxes; i++) {
		const struct plan_box *x = &b->boxes[i];

		for (k = 0; k < x->links->npaths; k++) {
			const struct plan_path *p = &x->links->paths[k];
			uint32_t at = p->first + (into ? 0 : p->narcs - 1);

			if ((into ? p->from : p->to) == x->world)
				out->gates[out->n++] = (struct gate){
					i, x->arcs[x->links->path_arcs[at]], k,
				};
		}
	}
	qsort(out->gates, out->n, sizeof(*out->gates), by_arc);
	return 0;
}

/*
 * @want over @n paths of one arc: each in proportion to what it carries, and
 * what the division leaves to the GPUs that have least so far.
 */
static void share_arc(struct plan_box *x, const struct gate *g, uint32_t n,
		      uint64_t want, bool into, uint64_t *load)
{
	const struct plan_path *p = x->links->paths;
	uint64_t all = 0, left = want;
	uint32_t i, best, end;

	for (i = 0; i < n; i++)
		all += p[g[i].path].weight;
	for (i = 0; all && i < n; i++) {
		uint64_t part = (uint64_t)((unsigned __int128)want *
					   p[g[i].path].weight / all);

		end = into ? p[g[i].path].to : p[g[i].path].from;
		x->share[g[i].path] = part;
		load[end] += part;
		left -= part;
	}
	while (left) {
		for (best = PLAN_NONE, i = 0; i < n; i++) {
			end = into ? p[g[i].path].to : p[g[i].path].from;
			if (x->share[g[i].path] < p[g[i].path].weight &&
			    (best == PLAN_NONE || load[end] <
			     load[into ? p[g[best].path].to :
				  p[g[best].path].from]))
				best = i;
		}
		if (best == PLAN_NONE)
			return;	/* boxes.c asks for no more than there is */
		x->share[g[best].path]++;
		load[into ? p[g[best].path].to : p[g[best].path].from]++;
		left--;
	}
}

static int share_all(struct plan_boxed *b, bool into)
{
	struct gates gates;
	uint32_t i, end;
	int err = find_gates(b, into, &gates);

	for (i = 0; !err && i < gates.n; i = end) {
		struct gate *g = &gates.gates[i];
		struct plan_box *x = &b->boxes[g->box];

		for (end = i; end < gates.n; end++)
			if (gates.gates[end].arc != g->arc)
				break;
		share_arc(x, g, end - i, b->used[g->arc], into,
			  into ? x->inflow : x->outflow);
	}
	free(gates.gates);
	return err;
}

int plan_boxed_share(struct plan_boxed *b)
{
	uint32_t i;
	int err;

	for (i = 0; i < b->nboxes; i++) {
		struct plan_box *x = &b->boxes[i];

		x->share = calloc(x->links->npaths + 1, sizeof(*x->share));
		if (!x->share)
			return -ENOMEM;
	}
	err = share_all(b, true);
	return err ? err : share_all(b, false);
}

/* ---- what trees take from ----------------------------------------------- */

struct item {
	uint32_t what;
	uint64_t left;
};

/*
 * Pools of items, one after the other in one array: paths in and paths out of
 * each arc, trees of each root inside a box, each box's own roots.
 */
struct pools {
	uint64_t *at;		/* of each pool; ends where the next begins */
	struct item *items;
	uint32_t narcs, nnodes, npools;
	bool filling;		/* or still counting */
};

static uint32_t way_in(uint32_t arc)
{
	return arc;
}

static uint32_t way_out(const struct pools *p, uint32_t arc)
{
	return p->narcs + arc;
}

static uint32_t trees_of(const struct pools *p, uint32_t node)
{
	return 2 * p->narcs + node;
}

static uint32_t roots_of(const struct pools *p, uint32_t box)
{
	return 2 * p->narcs + p->nnodes + box;
}

/* Twice: the first time it counts, the second time it fills in. */
static void put(struct pools *p, uint32_t pool, uint32_t what, uint64_t weight)
{
	if (!weight)
		return;
	if (p->filling)
		p->items[p->at[pool]] = (struct item){ what, weight };
	p->at[pool]++;
}

static void put_box(struct pools *p, const struct plan_boxed *b, uint32_t box)
{
	const struct plan_box *x = &b->boxes[box];
	const struct plan_links *l = x->links;
	uint32_t i;
	uint64_t t;

	for (i = 0; i < l->npaths; i++) {
		const struct plan_path *w = &l->paths[i];
		const uint32_t *arcs = l->path_arcs + w->first;

		if (w->from == x->world)
			put(p, way_in(x->arcs[arcs[0]]), i, x->share[i]);
		else if (w->to == x->world)
			put(p, way_out(p, x->arcs[arcs[w->narcs - 1]]), i,
			    x->share[i]);
	}
	for (t = 0; x->forest && t < x->forest->ntrees; t++)
		put(p, trees_of(p, x->nodes[x->forest->trees[t].root]),
		    (uint32_t)t, x->forest->trees[t].weight);
	for (i = 0; i < x->nnodes; i++)
		put(p, roots_of(p, box), i, b->k * x->net->weight[i]);
}

static void put_all(struct pools *p, const struct plan_boxed *b)
{
	uint32_t i;

	for (i = 0; i < b->nboxes; i++)
		put_box(p, b, i);
}

static int pools_make(struct pools *p, const struct plan_boxed *b)
{
	uint64_t sum = 0, n;
	uint32_t i;

	p->narcs = b->net->narcs;
	p->nnodes = b->net->nnodes;
	p->npools = 2 * p->narcs + p->nnodes + b->nboxes;
	p->at = calloc(p->npools + 1, sizeof(*p->at));
	if (!p->at)
		return -ENOMEM;
	put_all(p, b);
	for (i = 0; i < p->npools; i++) {
		n = p->at[i];
		p->at[i] = sum;
		sum += n;
	}
	p->items = calloc(sum + 1, sizeof(*p->items));
	if (!p->items)
		return -ENOMEM;
	p->filling = true;
	put_all(p, b);
	/* Each pool is now at its end, where the next one began. */
	memmove(p->at + 1, p->at, p->npools * sizeof(*p->at));
	p->at[0] = 0;
	return 0;
}

static struct item *first(const struct pools *p, uint32_t pool)
{
	return &p->items[p->at[pool]];
}

/* Take of the first item. Return: what it is. */
static uint32_t take(struct pools *p, uint32_t pool, uint64_t weight)
{
	struct item *i = first(p, pool);

	i->left -= weight;
	p->at[pool] += !i->left;
	return i->what;
}

/* ---- paths of the whole ------------------------------------------------- */

/* Where a path of the whole network comes from. */
struct key {
	uint32_t box, path;	/* inside; or PLAN_NONE and one of the trunk */
	uint32_t out, in;	/* and the paths out of and into its boxes */
};

struct made {
	const struct plan_boxed *b;
	struct pools pools;
	struct plan_links *links;	/* paths only, until the end */
	struct key *keys;	/* of each path */
	uint32_t *slots;	/* path + 1; 0: empty. At most half full */
	uint32_t nslots;
	uint32_t *times;	/* of each arc: how often the tree leaves by it */
	uint64_t path_room, arc_room, tree_room, hop_room, nhops;
	struct plan_forest *forest;
};

static uint32_t *slot_of(const struct made *m, struct key k)
{
	uint32_t h = 2166136261u, mask = m->nslots - 1;

	h = (h ^ k.box) * 16777619u;
	h = (h ^ k.path) * 16777619u;
	h = (h ^ k.out) * 16777619u;
	h = (h ^ k.in) * 16777619u;
	for (h ^= h >> 15; m->slots[h & mask]; h++)
		if (!memcmp(&m->keys[m->slots[h & mask] - 1], &k, sizeof(k)))
			break;
	return &m->slots[h & mask];
}

static int rehash(struct made *m)
{
	uint32_t n = m->nslots ? 2 * m->nslots : 1024, i;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(m->slots);
	m->slots = slots;
	m->nslots = n;
	for (i = 0; i < m->links->npaths; i++)
		*slot_of(m, m->keys[i]) = i + 1;
	return 0;
}

/* Put arcs @from to the end of a path behind those that the new one has. */
static int append(struct made *m, const struct plan_links *l, uint32_t path,
		  uint32_t from, uint32_t to, const uint32_t *names)
{
	struct plan_links *all = m->links;
	const uint32_t *arcs = l->path_arcs + l->paths[path].first;
	uint32_t i;

	if (to <= from)
		return 0;
	if (plan_grow(&all->path_arcs, all->npath_arcs, to - from, &m->arc_room,
		 sizeof(*all->path_arcs)))
		return -ENOMEM;
	for (i = from; i < to; i++)
		all->path_arcs[all->npath_arcs++] = names[arcs[i]];
	return 0;
}

static int append_inner(struct made *m, struct key k)
{
	const struct plan_box *x = &m->b->boxes[k.box];

	return append(m, x->links, k.path, 0, x->links->paths[k.path].narcs,
		      x->arcs);
}

/* Path out up to the arc that leaves, the trunk's path, the path in. */
static int append_outer(struct made *m, struct key k)
{
	const struct plan_path *p = &m->b->links->paths[k.path];
	const struct plan_box *a = &m->b->boxes[p->from];
	const struct plan_box *z = &m->b->boxes[p->to];
	int err;

	err = append(m, a->links, k.out, 0, a->links->paths[k.out].narcs,
		     a->arcs);
	if (!err)
		err = append(m, m->b->links, k.path, 1, p->narcs,
			     m->b->trunk_arcs);
	if (!err)
		err = append(m, z->links, k.in, 1,
			     z->links->paths[k.in].narcs, z->arcs);
	return err;
}

static int new_path(struct made *m, struct key k)
{
	struct plan_links *all = m->links;
	struct plan_path p = { .first = all->npath_arcs };
	uint64_t room = m->path_room;
	int err;

	if (plan_grow(&all->paths, all->npaths, 1, &room, sizeof(p)) ||
	    plan_grow(&m->keys, all->npaths, 1, &m->path_room, sizeof(k)))
		return -ENOMEM;
	err = k.box == PLAN_NONE ? append_outer(m, k) : append_inner(m, k);
	if (err)
		return err;
	p.narcs = all->npath_arcs - p.first;
	p.from = m->b->net->arcs[all->path_arcs[p.first]].from;
	p.to = m->b->net->arcs[all->path_arcs[p.first + p.narcs - 1]].to;
	m->keys[all->npaths] = k;
	all->paths[all->npaths++] = p;
	return 0;
}

/* One more hop of the newest tree. */
static int hop(struct made *m, struct key k, uint64_t weight)
{
	uint32_t *slot;
	int err;

	if (2 * (m->links->npaths + 1) > m->nslots && rehash(m))
		return -ENOMEM;
	slot = slot_of(m, k);
	if (!*slot) {
		err = new_path(m, k);
		if (err)
			return err;
		*slot = m->links->npaths;
	}
	if (plan_grow(&m->forest->hops, m->nhops, 1, &m->hop_room,
		 sizeof(*m->forest->hops)))
		return -ENOMEM;
	m->links->paths[*slot - 1].weight += weight;
	m->forest->hops[m->nhops++] = *slot - 1;
	return 0;
}

/* ---- pieces of trees ---------------------------------------------------- */

static const struct plan_path *trunk_hop(const struct made *m,
					 const struct plan_tree *t, uint32_t i,
					 uint32_t *path)
{
	*path = m->b->forest->hops[t->first + i];
	return &m->b->links->paths[*path];
}

/* The arcs by which a path of the trunk leaves a box and enters one. */
static uint32_t leaves_by(const struct made *m, const struct plan_path *p)
{
	return m->b->trunk_arcs[m->b->links->path_arcs[p->first]];
}

static uint32_t enters_by(const struct made *m, const struct plan_path *p)
{
	return m->b->trunk_arcs[m->b->links->path_arcs[p->first + p->narcs -
						      1]];
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What the first tree of @root inside its box still has. */
static uint64_t tree_left(const struct made *m, const struct plan_box *x,
			  uint32_t root)
{
	return x->forest ? first(&m->pools,
				 trees_of(&m->pools, x->nodes[root]))->left :
	       UINT64_MAX;
}

/* As much as can leave @times over by the first of the paths, or all the same 1. */
static uint64_t out_left(const struct made *m, uint32_t arc)
{
	uint64_t each = first(&m->pools, way_out(&m->pools, arc))->left /
			m->times[arc];

	return each ? each : 1;
}

/* How heavy the next piece of a trunk's tree may be. */
static uint64_t next_piece(const struct made *m, const struct plan_tree *t,
			   uint64_t left)
{
	const struct plan_boxed *b = m->b;
	const struct item *i = first(&m->pools, roots_of(&m->pools, t->root));
	uint64_t w = less(left, i->left);
	uint32_t n, path;

	w = less(w, tree_left(m, &b->boxes[t->root], i->what));
	for (n = 0; n < b->forest->nhops; n++) {
		const struct plan_path *p = trunk_hop(m, t, n, &path);
		const struct plan_box *x = &b->boxes[p->to];

		w = less(w, out_left(m, leaves_by(m, p)));
		i = first(&m->pools, way_in(enters_by(m, p)));
		w = less(w, i->left);
		w = less(w, tree_left(m, x, x->links->paths[i->what].to));
	}
	return w;
}

/* From @root, where the piece is, to all others of the box. */
static int inside(struct made *m, uint32_t box, uint32_t root, uint64_t w)
{
	const struct plan_box *x = &m->b->boxes[box];
	const struct plan_tree *t;
	uint32_t i;
	int err = 0;

	if (!x->forest)
		return 0;
	t = &x->forest->trees[take(&m->pools, trees_of(&m->pools,
						       x->nodes[root]), w)];
	for (i = 0; !err && i < x->forest->nhops; i++)
		err = hop(m, (struct key){
			box, x->forest->hops[t->first + i], 0, 0,
		}, w);
	return err;
}

static int new_tree(struct made *m, uint32_t root, uint32_t group, uint64_t w)
{
	struct plan_forest *f = m->forest;

	if (plan_grow(&f->trees, f->ntrees, 1, &m->tree_room, sizeof(*f->trees)))
		return -ENOMEM;
	f->trees[f->ntrees++] = (struct plan_tree){
		.root = root, .group = group, .weight = w, .first = m->nhops,
	};
	return 0;
}

static int piece(struct made *m, const struct plan_tree *t, uint64_t w)
{
	const struct plan_boxed *b = m->b;
	uint32_t root = take(&m->pools, roots_of(&m->pools, t->root), w);
	uint32_t i, path, in, out;
	int err;

	err = new_tree(m, b->boxes[t->root].nodes[root],
		       (uint32_t)m->forest->ntrees, w);
	if (!err)
		err = inside(m, t->root, root, w);
	for (i = 0; !err && i < b->forest->nhops; i++) {
		const struct plan_path *p = trunk_hop(m, t, i, &path);

		out = take(&m->pools, way_out(&m->pools, leaves_by(m, p)), w);
		in = take(&m->pools, way_in(enters_by(m, p)), w);
		err = hop(m, (struct key){ PLAN_NONE, path, out, in }, w);
		if (!err)
			err = inside(m, p->to,
				     b->boxes[p->to].links->paths[in].to, w);
	}
	return err;
}

static void count_exits(struct made *m, const struct plan_tree *t, bool on)
{
	uint32_t i, path;

	for (i = 0; i < m->b->forest->nhops; i++) {
		uint32_t arc = leaves_by(m, trunk_hop(m, t, i, &path));

		m->times[arc] = on ? m->times[arc] + 1 : 0;
	}
}

static int pieces(struct made *m)
{
	const struct plan_forest *f = m->b->forest;
	uint64_t i, left, w;
	int err = 0;

	for (i = 0; !err && i < f->ntrees; i++) {
		count_exits(m, &f->trees[i], true);
		for (left = f->trees[i].weight; !err && left; left -= w) {
			w = next_piece(m, &f->trees[i], left);
			err = w ? piece(m, &f->trees[i], w) : -EINVAL;
		}
		count_exits(m, &f->trees[i], false);
	}
	return err;
}

/* ---- in order ----------------------------------------------------------- */

struct place {
	uint32_t from, to, path;
};

static int by_ends(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->path < y->path ? -1 : x->path > y->path;
}

static int by_root(const void *a, const void *b)
{
	const struct plan_tree *x = a, *y = b;

	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	return x->group < y->group ? -1 : x->group > y->group;
}

/* Paths by their ends, a link for each pair of ends; hops follow. */
static int sort_paths(struct made *m)
{
	struct plan_links *l = m->links;
	struct place *order = malloc((l->npaths + 1) * sizeof(*order));
	struct plan_path *paths = malloc((l->npaths + 1) * sizeof(*paths));
	uint32_t *now = malloc((l->npaths + 1) * sizeof(*now)), i;
	struct plan_link *link = NULL;
	uint64_t n;

	l->links = calloc(l->npaths + 1, sizeof(*l->links));
	if (!order || !paths || !now || !l->links) {
		free(order);
		free(paths);
		free(now);
		return -ENOMEM;
	}
	for (i = 0; i < l->npaths; i++)
		order[i] = (struct place){ l->paths[i].from, l->paths[i].to,
					   i };
	qsort(order, l->npaths, sizeof(*order), by_ends);
	for (i = 0; i < l->npaths; i++) {
		paths[i] = l->paths[order[i].path];
		now[order[i].path] = i;
		if (!link || link->from != paths[i].from ||
		    link->to != paths[i].to) {
			link = &l->links[l->nlinks++];
			link->from = paths[i].from;
			link->to = paths[i].to;
			link->first_path = i;
		}
		link->capacity += paths[i].weight;
		link->npaths++;
	}
	for (n = 0; n < m->nhops; n++)
		m->forest->hops[n] = now[m->forest->hops[n]];
	free(l->paths);
	l->paths = paths;
	free(order);
	free(now);
	return 0;
}

/* Groups count from 0 for each root. */
static void sort_trees(struct plan_forest *f)
{
	uint64_t i;

	if (!f->ntrees)
		return;
	qsort(f->trees, f->ntrees, sizeof(*f->trees), by_root);
	for (i = 0; i < f->ntrees; i++)
		f->trees[i].group = i && f->trees[i].root ==
					 f->trees[i - 1].root ?
				    f->trees[i - 1].group + 1 : 0;
}

static uint32_t count_terminals(const struct plan_net *net)
{
	uint32_t i, n = 0;

	for (i = 0; i < net->nnodes; i++)
		n += net->terminal[i];
	return n;
}

int plan_boxed_compose(struct plan_boxed *b, struct plan_links **links,
		       struct plan_forest **forest)
{
	struct made m = { .b = b };
	int err = -ENOMEM;

	m.links = calloc(1, sizeof(*m.links));
	m.forest = calloc(1, sizeof(*m.forest));
	m.times = calloc(b->net->narcs + 1, sizeof(*m.times));
	if (m.links && m.forest && m.times)
		err = pools_make(&m.pools, b);
	if (!err) {
		m.forest->nhops = count_terminals(b->net) - 1;
		err = pieces(&m);
	}
	if (!err)
		err = sort_paths(&m);
	if (!err) {
		sort_trees(m.forest);
		*links = m.links;
		*forest = m.forest;
	} else {
		plan_links_free(m.links);
		plan_forest_free(m.forest);
	}
	free(m.pools.at);
	free(m.pools.items);
	free(m.times);
	free(m.keys);
	free(m.slots);
	return err;
}
