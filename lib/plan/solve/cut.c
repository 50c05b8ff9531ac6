// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cut with the least ratio of capacity to the data of the roots inside it.
 * Called by net.c, bound.c and boxes.c.
 *
 * A super source s has an arc of capacity x * weight to each root. Terminal v
 * gets its share of everything at x if the flow from s to v is x * W, W the sum
 * of all weights: a cut {s} + S leaves capacity(S) + x * (W - weight(S)).
 * x = p / q: capacities times q, weights times p, so all is integer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/solve/flow.h"
#include "plan/solve/solve.h"

struct search {
	const struct plan_net *net;
	struct flow flow;
	uint32_t source;	/* node of the flow */
	uint64_t unit;		/* greatest common divisor of capacities */
	uint64_t total;		/* W */
	struct plan_ratio x;	/* in units */
	int64_t *capacity;	/* of halves, in units; 0 at the source's */
	int64_t *base, *left;	/* at x; and what the newest flow leaves */
	int64_t demand;		/* W x */
	uint32_t at;		/* terminal that the flow goes to, PLAN_NONE */
	bool *seen;		/* of the flow's nodes */
	bool *inside;		/* the best set so far */
};

static void search_clear(struct search *s)
{
	flow_clear(&s->flow);
	free(s->capacity);
	free(s->base);
	free(s->left);
	free(s->seen);
	free(s->inside);
}

static int too_large(struct plan_error *e)
{
	return plan_fail(e, EOVERFLOW, "capacities are too large, or too unlike each other, for 64 bits; round them");
}

static int search_pairs(struct search *s)
{
	const struct plan_net *net = s->net;
	uint32_t i;

	for (i = 0; i < net->narcs; i++)
		if (net->arcs[i].capacity &&
		    flow_pair(&s->flow, net->arcs[i].from,
			      net->arcs[i].to) < 0)
			return -ENOMEM;
	for (i = 0; i < net->nnodes; i++)
		if (net->weight[i] && flow_pair(&s->flow, s->source, i) < 0)
			return -ENOMEM;
	return 0;
}

static int search_sums(struct search *s)
{
	const struct plan_net *net = s->net;
	unsigned __int128 sum = 0;
	uint32_t i;

	for (i = 0; i < net->narcs; i++)
		s->unit = plan_gcd(s->unit, net->arcs[i].capacity);
	for (i = 0; i < net->narcs; i++)
		sum += net->arcs[i].capacity / (s->unit ? s->unit : 1);
	if (sum > FLOW_MOST)
		return -EOVERFLOW;
	for (sum = 0, i = 0; i < net->nnodes; i++)
		sum += net->weight[i];
	if (sum > FLOW_MOST)
		return -EOVERFLOW;
	s->total = (uint64_t)sum;
	return 0;
}

static int search_init(struct search *s, const struct plan_net *net,
		       struct plan_error *e)
{
	uint32_t i;

	*s = (struct search){ .net = net, .source = net->nnodes };
	s->at = PLAN_NONE;
	if (search_sums(s))
		return too_large(e);
	s->inside = calloc(net->nnodes + 1, sizeof(*s->inside));
	s->seen = calloc(net->nnodes + 1, sizeof(*s->seen));
	if (flow_init(&s->flow, net->nnodes + 1) || search_pairs(s))
		goto fail;
	s->capacity = calloc(s->flow.nhalves + 1, sizeof(*s->capacity));
	s->base = calloc(s->flow.nhalves + 1, sizeof(*s->base));
	s->left = calloc(s->flow.nhalves + 1, sizeof(*s->left));
	if (!s->capacity || !s->base || !s->left || !s->inside || !s->seen)
		goto fail;
	for (i = 0; i < net->narcs; i++)
		if (net->arcs[i].capacity)
			s->capacity[flow_find(&s->flow, net->arcs[i].from,
					      net->arcs[i].to)] +=
				(int64_t)(net->arcs[i].capacity / s->unit);
	return 0;
fail:
	search_clear(s);
	return plan_fail(e, ENOMEM, "out of memory");
}

/* Everything at this x from here on. */
static int search_at(struct search *s, struct plan_ratio x,
		     struct plan_error *e)
{
	const struct plan_net *net = s->net;
	unsigned __int128 sum = 0;
	uint32_t i, h;

	for (i = 0; i < s->flow.nhalves; i++)
		sum += (unsigned __int128)s->capacity[i] * x.den;
	if (sum > FLOW_MOST ||
	    (unsigned __int128)s->total * x.num > FLOW_MOST)
		return too_large(e);
	for (i = 0; i < s->flow.nhalves; i++)
		s->base[i] = s->capacity[i] * (int64_t)x.den;
	for (i = 0; i < net->nnodes; i++) {
		if (!net->weight[i])
			continue;
		h = flow_find(&s->flow, i, s->source) ^ 1;
		s->base[h] = (int64_t)(net->weight[i] * x.num);
	}
	s->x = x;
	s->demand = (int64_t)(s->total * x.num);
	s->at = PLAN_NONE;
	return 0;
}

/*
 * Does terminal @v get all? A flow that went to another one is sent on from
 * there; if not all of it comes through, what can be reached from there is
 * inside a least cut just as well. @seen is such a set then.
 */
static bool search_flow(struct search *s, uint32_t v)
{
	uint32_t from = s->at;

	if (from == PLAN_NONE) {
		memcpy(s->left, s->base, s->flow.nhalves * sizeof(*s->left));
		from = s->source;
	}
	if (flow_push(&s->flow, s->left, from, v, s->demand) == s->demand) {
		s->at = v;
		return true;
	}
	flow_reach(&s->flow, s->left, from, false, s->seen);
	s->at = PLAN_NONE;
	return false;
}

/* capacity / weight of the set @seen, in units. */
static struct plan_ratio ratio_of(const struct search *s)
{
	uint64_t capacity = 0, weight = 0;
	uint32_t i;

	for (i = 0; i < s->flow.nhalves; i++)
		if (s->seen[s->flow.head[i ^ 1]] && !s->seen[s->flow.head[i]])
			capacity += (uint64_t)s->capacity[i];
	for (i = 0; i < s->net->nnodes; i++)
		if (s->seen[i])
			weight += s->net->weight[i];
	return plan_ratio(capacity, weight);
}

static int search_step(struct search *s, struct plan_ratio x,
		       struct plan_error *e)
{
	memcpy(s->inside, s->seen, s->net->nnodes * sizeof(*s->inside));
	s->x = x;
	return x.num ? search_at(s, x, e) : 0;
}

/* The best of the sets of one terminal, and of all but one. */
static int search_first(struct search *s, struct plan_error *e)
{
	const struct plan_net *net = s->net;
	uint64_t *in = calloc(net->nnodes + 1, sizeof(*in));
	uint64_t *out = calloc(net->nnodes + 1, sizeof(*out));
	struct plan_ratio best = { 0, 0 }, r;
	uint32_t i, way, at = PLAN_NONE;
	bool all_but = false;
	int err = -ENOMEM;

	if (!in || !out)
		goto out;
	for (i = 0; i < s->flow.nhalves; i++) {
		out[s->flow.head[i ^ 1]] += (uint64_t)s->capacity[i];
		in[s->flow.head[i]] += (uint64_t)s->capacity[i];
	}
	for (i = 0; i < net->nnodes; i++)
		for (way = 0; net->terminal[i] && way < 2; way++) {
			uint64_t w = way ? s->total - net->weight[i] :
				net->weight[i];

			if (!w)
				continue;
			r = plan_ratio(way ? in[i] : out[i], w);
			if (at != PLAN_NONE && plan_ratio_compare(r, best) >= 0)
				continue;
			best = r;
			at = i;
			all_but = way;
		}
	err = -EINVAL;
	if (at == PLAN_NONE)
		goto out;
	for (i = 0; i < net->nnodes; i++)
		s->seen[i] = (i == at) != all_but;
	err = search_step(s, best, e);
out:
	free(in);
	free(out);
	if (err == -ENOMEM)
		plan_fail(e, ENOMEM, "out of memory");
	else if (err == -EINVAL)
		plan_fail(e, EINVAL, "no root has anybody to tell something to");
	return err;
}

static int search_run(struct search *s, struct plan_error *e)
{
	const struct plan_net *net = s->net;
	uint32_t v;
	int err = search_first(s, e);

	for (v = 0; !err && s->x.num && v < net->nnodes; v++)
		while (!err && s->x.num && net->terminal[v] &&
		       net->weight[v] < s->total && !search_flow(s, v))
			err = search_step(s, ratio_of(s), e);
	return err;
}

static uint32_t terminals(const struct plan_net *net)
{
	uint32_t i, n = 0;

	for (i = 0; i < net->nnodes; i++)
		n += net->terminal[i];
	return n;
}

int plan_net_cut(const struct plan_net *net, struct plan_ratio *x,
		 bool *inside, struct plan_error *e)
{
	struct plan_ratio found;
	struct search s;
	int err;

	if (terminals(net) < 2)
		return plan_fail(e, EINVAL, "a network of fewer than 2 terminals");
	err = search_init(&s, net, e);
	if (err)
		return err;
	err = search_run(&s, e);
	if (!err && plan_ratio_multiply(s.x, plan_ratio(s.unit, 1), &found))
		err = too_large(e);
	if (!err && inside)
		memcpy(inside, s.inside, net->nnodes * sizeof(*inside));
	if (!err)
		*x = found;
	search_clear(&s);
	return err;
}

/*
 * The greatest tight set that leaves s->at outside: in @seen. Without a root
 * inside it is none.
 */
static bool tight_set(struct search *s)
{
	uint32_t i, roots = 0;

	flow_reach(&s->flow, s->left, s->at, true, s->seen);
	for (i = 0; i < s->net->nnodes; i++) {
		s->seen[i] = !s->seen[i];
		roots += s->seen[i] && s->net->weight[i];
	}
	return roots > 0;
}

int plan_net_tight(const struct plan_net *net, struct plan_ratio x,
		   void (*take)(void *arg, uint32_t out, const bool *inside),
		   void *arg, struct plan_error *e)
{
	struct plan_ratio in_units;
	struct search s;
	uint32_t v;
	int err = search_init(&s, net, e);

	if (err)
		return err;
	if (!s.unit || plan_ratio_multiply(x, plan_ratio(1, s.unit), &in_units))
		err = too_large(e);
	else
		err = search_at(&s, in_units, e);
	for (v = 0; !err && v < net->nnodes; v++) {
		if (!net->terminal[v] || net->weight[v] == s.total)
			continue;
		if (!search_flow(&s, v))
			err = plan_fail(e, EINVAL, "more is asked of a network than it can do");
		else if (tight_set(&s))
			take(arg, v, s.seen);
	}
	search_clear(&s);
	return err;
}
