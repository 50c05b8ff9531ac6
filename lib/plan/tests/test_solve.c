// SPDX-License-Identifier: LGPL-2.1-or-later
/* The solver's steps one by one, on networks with any weights. */
#include <errno.h>
#include <stdlib.h>

#include "plan/solve/solve.h"
#include "random.h"
#include "tests/tap.h"

#define NETWORKS	600u
#define MOST_NODES	24u

enum weights { ALL_ONE, ONE_ROOT, ANY, WEIGHTS };

static uint64_t weight_of(enum weights w, uint32_t i, uint64_t *random)
{
	switch (w) {
	case ALL_ONE:
		return 1;
	case ONE_ROOT:
		return i == 0;
	default:
		return random_below(random, 4) + (i == 0);
	}
}

/* Closed ways keep switches balanced; between terminals there is anything. */
static struct plan_net *network(uint64_t seed, enum weights w)
{
	uint64_t random = seed, capacity;
	uint32_t terminals = 2 + random_below(&random, 12), i, k;
	uint32_t n = terminals + random_below(&random, 6), first, at, to;
	struct plan_net *net = plan_net_new(n);

	for (i = 0; i < terminals; i++)
		plan_net_terminal(net, i, weight_of(w, i, &random));
	for (i = 0; i < 2 * n; i++) {
		first = at = random_below(&random, n);
		capacity = 1 + random_below(&random, 20);
		for (k = 0; k < 4; k++) {
			to = k == 3 ? first : random_below(&random, n);
			if (to != at)
				plan_net_arc(net, at, to, capacity);
			at = to;
		}
	}
	for (i = 0; i < terminals; i++)	/* all are reached */
		plan_net_arc(net, i, (i + 1) % terminals,
			     1 + random_below(&random, 9));
	return net;
}

/* A way from its one end to its other, over no terminal, no node twice. */
static bool good_path(const struct plan_net *net, const struct plan_links *l,
		      const struct plan_path *p)
{
	bool seen[MOST_NODES] = { false };
	uint32_t at = p->from, i;

	for (i = 0; i < p->narcs; i++) {
		const struct plan_arc *a =
			&net->arcs[l->path_arcs[p->first + i]];

		if (a->from != at || seen[at] || (i && net->terminal[at]))
			return false;
		seen[at] = true;
		at = a->to;
	}
	return p->narcs && p->weight && at == p->to && !seen[at] &&
		net->terminal[p->from] && net->terminal[at];
}

/* Paths are good, fit into the arcs, and add up to links. */
static bool good_links(const struct plan_net *net, const struct plan_links *l)
{
	uint64_t *used = calloc(net->narcs, sizeof(*used)), sum;
	uint32_t i, k, n = 0;
	bool good = true;

	for (i = 0; i < l->nlinks; i++) {
		const struct plan_link *d = &l->links[i];

		for (sum = 0, k = d->first_path; k < d->first_path + d->npaths;
		     k++, n++) {
			sum += l->paths[k].weight;
			good &= l->paths[k].from == d->from &&
				l->paths[k].to == d->to;
		}
		good &= sum == d->capacity;
	}
	for (i = 0; i < l->npaths; i++) {
		good &= good_path(net, l, &l->paths[i]);
		for (k = 0; k < l->paths[i].narcs; k++)
			used[l->path_arcs[l->paths[i].first + k]] +=
				l->paths[i].weight;
	}
	for (i = 0; i < net->narcs; i++)
		good &= used[i] <= net->arcs[i].capacity;
	free(used);
	return good && n == l->npaths;
}

/* Without switches still every cut has k for each unit of weight. */
static bool same_cut(const struct plan_net *net, const struct plan_links *l,
		     uint64_t k)
{
	struct plan_net *flat = plan_net_new(net->nnodes);
	struct plan_ratio x = { 0, 1 };
	uint32_t i;

	for (i = 0; i < net->nnodes; i++)
		if (net->terminal[i])
			plan_net_terminal(flat, i, net->weight[i]);
	for (i = 0; i < l->nlinks; i++)
		plan_net_arc(flat, l->links[i].from, l->links[i].to,
			     l->links[i].capacity);
	plan_net_cut(flat, &x, NULL, NULL);
	plan_net_free(flat);
	return !plan_ratio_compare(x, plan_ratio(k, 1));
}

static bool good_forest(const struct plan_net *net, const struct plan_links *l,
			const struct plan_forest *f, uint64_t k)
{
	uint64_t *used = calloc(l->npaths + 1, sizeof(*used)), t;
	uint64_t begun[MOST_NODES] = { 0 };
	uint32_t i, terminals = 0;
	bool good = true;

	for (t = 0; t < f->ntrees; t++) {
		bool has[MOST_NODES] = { false };

		has[f->trees[t].root] = true;
		begun[f->trees[t].root] += f->trees[t].weight;
		for (i = 0; i < f->nhops; i++) {
			uint32_t hop = f->hops[f->trees[t].first + i];

			good &= has[l->paths[hop].from] &&
				!has[l->paths[hop].to];
			has[l->paths[hop].to] = true;
			used[hop] += f->trees[t].weight;
		}
	}
	for (i = 0; i < l->npaths; i++)
		good &= used[i] <= l->paths[i].weight;
	for (i = 0; i < net->nnodes; i++) {
		terminals += net->terminal[i];
		good &= begun[i] == k * net->weight[i];
	}
	free(used);
	return good && f->nhops == terminals - 1;
}

/* The set that plan_net_cut() tells has the ratio that it tells. */
static bool witnessed(const struct plan_net *net)
{
	bool inside[MOST_NODES] = { false };
	uint64_t capacity = 0, weight = 0;
	struct plan_ratio x;
	uint32_t i;

	if (plan_net_cut(net, &x, inside, NULL))
		return false;
	for (i = 0; i < net->narcs; i++)
		if (inside[net->arcs[i].from] && !inside[net->arcs[i].to])
			capacity += net->arcs[i].capacity;
	for (i = 0; i < net->nnodes; i++)
		weight += inside[i] ? net->weight[i] : 0;
	return weight && !plan_ratio_compare(x, plan_ratio(capacity, weight));
}

static bool solved(uint64_t seed, enum weights w)
{
	struct plan_net *net = network(seed, w);
	struct plan_solution s = { 0 };
	struct plan_error e = { .text = "" };
	bool cut = witnessed(net), links = false, trees = false;

	if (!plan_net_forest(net, &s, &e)) {
		links = good_links(net, s.links) &&
			same_cut(net, s.links, s.k);
		trees = good_forest(net, s.links, s.forest, s.k);
	}
	if (!cut || !links || !trees)
		printf("# seed %llu: cut %d links %d trees %d %s\n",
		       (unsigned long long)seed, cut, links, trees, e.text);
	plan_solution_clear(&s);
	plan_net_free(net);
	return cut && links && trees;
}

static void refusals(void)
{
	struct plan_net *net = plan_net_new(3);
	struct plan_error e = { .text = "" };
	struct plan_links *l = NULL;
	struct plan_forest *f = NULL;

	ok(plan_net_arc(net, 1, 1, 5) == -EINVAL &&
	   plan_net_arc(net, 0, 3, 5) == -EINVAL, "arcs of nodes there are");
	plan_net_terminal(net, 0, 1);
	plan_net_terminal(net, 1, 1);
	plan_net_arc(net, 0, 2, 5);
	plan_net_arc(net, 2, 1, 5);
	plan_net_arc(net, 1, 0, 5);
	ok(plan_net_split(net, 6, &l, &e) == -EINVAL && !l,
	   "no more than the cut allows");
	has(e.text, "more is asked of a network than it can do");
	ok(!plan_net_split(net, 5, &l, &e) && l->nlinks == 2 &&
	   l->npaths == 2, "a switch of one way is a longer link");
	ok(plan_net_pack(net, l, 6, &f, &e) == -EINVAL && !f,
	   "no more trees than fit");
	plan_links_free(l);
	plan_net_arc(net, 0, 2, 1);
	ok(plan_net_split(net, 5, &l, &e) == -EINVAL, "switches make no copies");
	has(e.text, "switch 2 receives 6 and sends 5");
	plan_net_arc(net, 1, 0, UINT64_MAX / 2);
	ok(plan_net_split(net, 5, &l, &e) == -EOVERFLOW,
	   "capacities beyond 64 bits");
	plan_net_free(net);
}

int main(void)
{
	static const char *const what[WEIGHTS] = {
		"all alike", "one root", "any weights",
	};
	enum weights w;
	uint32_t i, good;

	for (w = ALL_ONE; w < WEIGHTS; w++) {
		for (good = 0, i = 0; i < NETWORKS; i++)
			good += solved(1000 * (w + 1) + i, w);
		ok(good == NETWORKS, "%s: %u of %u networks solved exactly",
		   what[w], good, NETWORKS);
	}
	refusals();
	return tap_done();
}
