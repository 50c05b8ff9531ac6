// SPDX-License-Identifier: LGPL-2.1-or-later
/* Forests as schedules. Called by tests. */
#include <stdlib.h>

#include "forest.h"

uint32_t *boxes_of(const struct plan_graph *g)
{
	uint32_t *box = malloc((g->nnodes + 1) * sizeof(*box)), i;

	for (i = 0; box && i < g->nnodes; i++)
		box[i] = g->nodes[i].box;
	return box;
}

/* Of each path, the schedule's route. */
static int64_t *routes_of(const struct plan_graph *g, struct plan_schedule *s,
			  const struct plan_links *l)
{
	int64_t *routes = malloc((l->npaths + 1) * sizeof(*routes));
	uint32_t i;

	for (i = 0; routes && i < l->npaths; i++) {
		routes[i] = plan_schedule_route(s, g, l->path_arcs +
						l->paths[i].first,
						l->paths[i].narcs);
		if (routes[i] < 0) {
			free(routes);
			return NULL;
		}
	}
	return routes;
}

static int add_tree(const struct plan_graph *g, struct plan_schedule *s,
		    const struct plan_forest *f, const struct plan_tree *t,
		    const int64_t *routes)
{
	uint32_t i, shard = s->nshards > 1 ? g->nodes[t->root].rank : 0;
	int err = plan_schedule_chunk(s, shard, t->group, t->weight);

	for (i = 0; !err && i < f->nhops; i++)
		err = plan_schedule_transfer(s, (uint32_t)
					     routes[f->hops[t->first + i]],
					     false);
	return err;
}

struct plan_schedule *forest_schedule(const struct plan_graph *g,
				      enum plan_collective c, uint32_t root,
				      const struct plan_solution *s)
{
	struct plan_schedule *out = plan_schedule_new(c, g->nranks, root);
	int64_t *routes = out ? routes_of(g, out, s->links) : NULL;
	int err = routes ? 0 : -1;
	uint64_t i;

	for (i = 0; !err && i < s->forest->ntrees; i++)
		err = add_tree(g, out, s->forest, &s->forest->trees[i],
			       routes);
	if (!err)
		err = plan_schedule_finish(out);
	free(routes);
	if (err) {
		plan_schedule_free(out);
		return NULL;
	}
	return out;
}
