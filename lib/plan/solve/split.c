// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Removing switches. Two arcs (u, w), (w, t) of a switch w become one of (u, t)
 * that remembers where it leads along, as far as no cut gets too small. Called
 * by optimum.c and boxes.c.
 *
 * For each terminal a flow of k * W from the super source is kept; they prove
 * that all cuts are large enough. What a pair of arcs can give up is found by
 * taking it away and mending the flows: if one cannot be mended by d, there is a
 * cut that misses d. (All cuts that a pair concerns lose the same, so giving
 * d back is enough.) A pair that has given all it can never can give more, as
 * no cut ever grows; so each is tried once, and in the end a balanced
 * switch has no arcs left (Bang-Jensen, Frank, Jackson, 1995).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/solve/flow.h"
#include "plan/solve/solve.h"
#include "plan/util.h"

#define NO_PIECE	UINT32_MAX
/* Bytes of all flows; beyond that a fabric has to be solved box by box. */
#define MOST_BYTES	(1ull << 31)

/* Part of an arc's capacity, and the path that it takes. */
struct piece {
	uint64_t weight;
	uint32_t first, narcs;	/* in split.routes */
	uint32_t next;		/* of the same half */
};

struct split {
	const struct plan_net *net;
	struct flow flow;	/* nodes of the network and the source */
	uint32_t source;
	int64_t demand;		/* k W */
	uint32_t room;		/* halves that arrays have room for */
	int64_t *capacity;	/* of halves */
	uint32_t *pieces_of;	/* of halves: the first piece */
	uint32_t nsinks, *sinks;	/* in the order to look at them */
	uint32_t *row_of;	/* of each sink in that order: its flow */
	int64_t *left;		/* rows of @room */
	uint32_t npieces, nroutes;
	uint64_t piece_room, route_room;
	struct piece *pieces;
	uint32_t *routes;
	uint32_t *mark;		/* of nodes, for cutting loops off */
	uint32_t hub;		/* the switch that goes */
	uint32_t *spoke;	/* of each node: half from the hub, PLAN_NONE */
	bool *done;		/* switches that are gone */
	bool *detour;		/* switches that no shortest path passes */
};

static void split_clear(struct split *s)
{
	flow_clear(&s->flow);
	free(s->capacity);
	free(s->pieces_of);
	free(s->sinks);
	free(s->row_of);
	free(s->left);
	free(s->pieces);
	free(s->routes);
	free(s->mark);
	free(s->spoke);
	free(s->done);
	free(s->detour);
}

/* ---- pieces -------------------------------------------------------------- */

/* As plan_grow(), for what 32 bits count. */
static int more_room(void *array, uint32_t n, uint32_t more, uint64_t *room,
		     size_t size)
{
	if ((uint64_t)n + more > UINT32_MAX / 2)
		return -ENOMEM;
	return plan_grow(array, n, more, room, size);
}

/* A piece of half @h, over @n arcs that are the last in @routes. */
static int new_piece(struct split *s, uint32_t h, uint64_t weight, uint32_t n)
{
	if (more_room(&s->pieces, s->npieces, 1, &s->piece_room,
		      sizeof(*s->pieces)))
		return -ENOMEM;
	s->pieces[s->npieces] = (struct piece){
		.weight = weight, .first = s->nroutes - n, .narcs = n,
		.next = s->pieces_of[h],
	};
	s->pieces_of[h] = s->npieces++;
	return 0;
}

static int add_ways(struct split *s, const struct piece *p)
{
	if (more_room(&s->routes, s->nroutes, p->narcs, &s->route_room,
		      sizeof(*s->routes)))
		return -ENOMEM;
	memcpy(s->routes + s->nroutes, s->routes + p->first,
	       p->narcs * sizeof(*s->routes));
	s->nroutes += p->narcs;
	return 0;
}

/*
 * Take loops off the path that begins at @first: @mark of a node is where in
 * the path it was left last.
 */
static void cut_loops(struct split *s, uint32_t first)
{
	const struct plan_arc *arcs = s->net->arcs;
	uint32_t i, k, to = first;

	for (i = first; i < s->nroutes; i++)
		s->mark[arcs[s->routes[i]].from] = PLAN_NONE;
	for (i = first; i < s->nroutes; i++) {
		uint32_t x = arcs[s->routes[i]].from;

		if (s->mark[x] != PLAN_NONE) {
			uint32_t back = s->mark[x];

			for (k = back; k < to; k++)
				s->mark[arcs[s->routes[k]].from] = PLAN_NONE;
			to = back;
		}
		s->mark[x] = to;
		s->routes[to++] = s->routes[i];
	}
	s->nroutes = to;
}

/* @amount of what @a carries goes on over what @b carries, as @c. */
static int join_pieces(struct split *s, uint32_t a, uint32_t b, uint32_t c,
		       uint64_t amount)
{
	while (amount) {
		struct piece *p = &s->pieces[s->pieces_of[a]];
		struct piece *q = &s->pieces[s->pieces_of[b]];
		uint64_t w = p->weight < q->weight ? p->weight : q->weight;
		uint32_t first = s->nroutes;

		if (w > amount)
			w = amount;
		amount -= w;
		p->weight -= w;
		q->weight -= w;
		if (!p->weight)
			s->pieces_of[a] = p->next;
		if (!q->weight)
			s->pieces_of[b] = q->next;
		if (c == PLAN_NONE)
			continue;
		if (add_ways(s, p) || add_ways(s, q))
			return -ENOMEM;
		cut_loops(s, first);
		if (new_piece(s, c, w, s->nroutes - first))
			return -ENOMEM;
	}
	return 0;
}

/* ---- flows --------------------------------------------------------------- */

/* Arrays of halves, and rows, with room for twice as many halves. */
static int widen(struct split *s, uint32_t room)
{
	uint32_t old = s->room, i;
	uint32_t *p;
	int64_t *c;

	if ((uint64_t)s->nsinks * room * sizeof(*c) > MOST_BYTES)
		return -E2BIG;
	c = realloc(s->capacity, room * sizeof(*c));
	if (!c)
		return -ENOMEM;
	s->capacity = c;
	p = realloc(s->pieces_of, room * sizeof(*p));
	if (!p)
		return -ENOMEM;
	s->pieces_of = p;
	c = realloc(s->left, ((size_t)s->nsinks * room + 1) * sizeof(*c));
	if (!c)
		return -ENOMEM;
	s->left = c;
	for (i = s->nsinks; i-- > 0; ) {
		memmove(c + (size_t)i * room, c + (size_t)i * old,
			old * sizeof(*c));
		memset(c + (size_t)i * room + old, 0,
		       (room - old) * sizeof(*c));
	}
	for (i = old; i < room; i++) {
		s->capacity[i] = 0;
		s->pieces_of[i] = NO_PIECE;
	}
	s->room = room;
	return 0;
}

/* The half from @a to @b, which may be new. */
static int64_t half(struct split *s, uint32_t a, uint32_t b)
{
	int64_t h = flow_pair(&s->flow, a, b);
	int err = 0;

	if (h >= 0 && s->flow.nhalves > s->room)
		err = widen(s, 2 * s->flow.nhalves);
	return err ? err : h;
}

/* Up to three nodes that get more than they give, or (< 0) less. */
struct uneven {
	uint32_t node[3];
	int64_t over[3];
};

static void take_back(struct split *s, int64_t *left, uint32_t h,
		      struct uneven *u)
{
	int64_t much = -left[h];
	int i;

	if (much <= 0)
		return;
	left[h] = 0;
	left[h ^ 1] -= much;
	for (i = 0; i < 3; i++) {
		if (u->node[i] == s->flow.head[h ^ 1])
			u->over[i] += much;
		if (u->node[i] == s->flow.head[h])
			u->over[i] -= much;
	}
}

/*
 * Ways of two steps to or from the switch that goes, which is where most of
 * what is taken back finds room. Return: how much.
 */
static int64_t two_steps(const struct split *s, int64_t *left, uint32_t from,
			 uint32_t to, int64_t limit)
{
	bool out = from == s->hub;
	const struct flow_near *near = &s->flow.near[out ? to : from];
	int64_t sum = 0, amount;
	uint32_t i, a, b;

	if (!out && to != s->hub)
		return 0;
	for (i = 0; i < near->n && sum < limit; i++) {
		b = s->spoke[s->flow.head[near->halves[i]]];
		if (b == PLAN_NONE)
			continue;
		a = near->halves[i] ^ out;
		b ^= !out;
		amount = left[a] < left[b] ? left[a] : left[b];
		if (amount > limit - sum)
			amount = limit - sum;
		if (amount <= 0)
			continue;
		left[a] -= amount;
		left[a ^ 1] += amount;
		left[b] -= amount;
		left[b ^ 1] += amount;
		sum += amount;
	}
	return sum;
}

static int64_t reroute(struct split *s, int64_t *left, uint32_t from,
		       uint32_t to, int64_t limit)
{
	int64_t sum = two_steps(s, left, from, to, limit);

	return sum + flow_push(&s->flow, left, from, to, limit - sum);
}

/*
 * Make a flow that one again after the capacities of halves changed; what is too
 * much on them finds other paths. Return: what does not.
 */
static int64_t mend(struct split *s, int64_t *left, const uint32_t *halves,
		    uint32_t n, struct uneven *u)
{
	int64_t rest = 0, sent;
	uint32_t i, k;

	for (i = 0; i < n; i++)
		take_back(s, left, halves[i], u);
	for (i = 0; i < 3; i++)
		for (k = 0; k < 3 && u->over[i] > 0; k++) {
			if (u->over[k] >= 0)
				continue;
			sent = reroute(s, left, u->node[i], u->node[k],
				       u->over[i] < -u->over[k] ?
				       u->over[i] : -u->over[k]);
			u->over[i] -= sent;
			u->over[k] += sent;
		}
	for (i = 0; i < 3; i++)
		rest += u->over[i] > 0 ? u->over[i] : 0;
	return rest;
}

/* Two arcs that become one, or (@c PLAN_NONE: u is t) none. */
struct pair {
	uint32_t u, w, t;
	uint32_t a, b, c;	/* halves */
};

/* Capacity that a pair gives up (or gets back: < 0), in one flow. */
static int64_t apply(struct split *s, uint32_t row, const struct pair *p,
		     int64_t d, struct uneven *u)
{
	uint32_t halves[3] = { p->a, p->b, p->c };
	int64_t *left = s->left + (size_t)row * s->room;

	left[p->a] -= d;
	left[p->b] -= d;
	if (p->c != PLAN_NONE)
		left[p->c] += d;
	return mend(s, left, halves, p->c == PLAN_NONE ? 2 : 3, u);
}

static struct uneven even(const struct pair *p)
{
	return (struct uneven){
		.node = { p->u, p->w, p->c == PLAN_NONE ? PLAN_NONE : p->t },
	};
}

/* The sink that objected will be asked first. */
static void to_front(struct split *s, uint32_t i)
{
	uint32_t row = s->row_of[i];

	memmove(s->row_of + 1, s->row_of, i * sizeof(*s->row_of));
	s->row_of[0] = row;
}

/*
 * How much of @d the pair can give up without any cut getting too small. The
 * flows are as if that had been done. -EIO: a flow is broken for good, which
 * cannot be.
 */
static int64_t give_up(struct split *s, const struct pair *p, int64_t d)
{
	uint32_t i, k, worst = PLAN_NONE;

	for (i = 0; d && i < s->nsinks; i++) {
		struct uneven u = even(p), v;
		int64_t rest = apply(s, s->row_of[i], p, d, &u);

		if (!rest)
			continue;
		worst = i;
		d -= rest;
		if (apply(s, s->row_of[i], p, -rest, &u))
			return -EIO;
		for (k = 0; k < i; k++) {
			v = even(p);
			if (apply(s, s->row_of[k], p, -rest, &v))
				return -EIO;
		}
	}
	if (worst != PLAN_NONE)
		to_front(s, worst);
	return d;
}

/* ---- switches ------------------------------------------------------------ */

/* The halves that lead into a switch, those out of it, and what is tried. */
struct around {
	uint32_t n;
	uint32_t *out;		/* halves; the others are their twins */
	int64_t sum;		/* of capacities out */
	bool *tried;		/* n times n: gave all it can */
};

static int split_pair(struct split *s, uint32_t in, uint32_t out, int64_t most,
		      bool *tried)
{
	struct pair p = {
		.u = s->flow.head[in ^ 1], .w = s->flow.head[in],
		.t = s->flow.head[out], .a = in, .b = out, .c = PLAN_NONE,
	};
	int64_t d = s->capacity[in], got, c;

	if (d > s->capacity[out])
		d = s->capacity[out];
	if (d > most)
		d = most;
	if (!d)
		return 0;
	if (p.u != p.t) {
		c = half(s, p.u, p.t);
		if (c < 0)
			return (int)c;
		p.c = (uint32_t)c;
	}
	got = give_up(s, &p, d);
	if (got < 0)
		return (int)got;
	*tried = got < d;
	s->capacity[p.a] -= got;
	s->capacity[p.b] -= got;
	if (p.c != PLAN_NONE)
		s->capacity[p.c] += got;
	return join_pieces(s, p.a, p.b, p.c, (uint64_t)got);
}

enum pass {
	DETOUR,		/* USELESS, of switches that are out of the way */
	SHARES,		/* everybody's part of everybody's: short trees */
	REST,
	USELESS,	/* back to where it comes from */
	PASSES
};

static int64_t most(const struct split *s, const struct around *w,
		    enum pass pass, uint32_t in, uint32_t out)
{
	unsigned __int128 share;
	int64_t others = w->sum - s->capacity[in];

	if (pass != SHARES || others <= 0)
		return INT64_MAX;
	share = (unsigned __int128)s->capacity[in ^ 1] *
		(uint64_t)s->capacity[out] / (uint64_t)others;
	return share ? (int64_t)share : 1;
}

static int split_pass(struct split *s, struct around *w, enum pass pass)
{
	bool back = pass == USELESS || pass == DETOUR;
	uint32_t i, k;
	int err = 0;

	for (i = 0; !err && i < w->n; i++)
		for (k = 0; !err && k < w->n; k++) {
			uint32_t in = w->out[k] ^ 1, out = w->out[i];
			bool *tried = &w->tried[(size_t)i * w->n + k];

			if (*tried || back != (i == k))
				continue;
			err = split_pair(s, in, out,
					 most(s, w, pass, w->out[k], out),
					 tried);
		}
	return err;
}

static int split_switch(struct split *s, uint32_t w)
{
	const struct flow_near *near = &s->flow.near[w];
	struct around a = { 0 };
	enum pass pass;
	uint32_t i;
	int err = -ENOMEM;

	a.out = calloc(near->n + 1, sizeof(*a.out));
	a.tried = calloc((size_t)near->n * near->n + 1, sizeof(*a.tried));
	if (!a.out || !a.tried)
		goto out;
	for (i = 0; i < near->n; i++) {
		uint32_t h = near->halves[i];

		if (!s->capacity[h] && !s->capacity[h ^ 1])
			continue;
		a.out[a.n++] = h;
		a.sum += s->capacity[h];
		s->spoke[s->flow.head[h]] = h;
	}
	s->hub = w;
	err = 0;
	pass = s->detour[w] ? DETOUR : SHARES;
	for (; !err && pass < PASSES; pass++)
		err = split_pass(s, &a, pass);
	for (i = 0; i < a.n; i++) {
		if (s->capacity[a.out[i]] || s->capacity[a.out[i] ^ 1])
			err = err ? err : -EIO;
		s->spoke[s->flow.head[a.out[i]]] = PLAN_NONE;
	}
	s->done[w] = true;
out:
	free(a.out);
	free(a.tried);
	return err;
}

/*
 * The switch that has fewest pairs of arcs, or PLAN_NONE. Those that are out of
 * the way come first, so that they are not used where they need not be.
 */
static uint32_t next_switch(const struct split *s)
{
	uint64_t best = UINT64_MAX, in, out;
	uint32_t w, i, at = PLAN_NONE;

	for (w = 0; w < s->net->nnodes; w++) {
		const struct flow_near *near = &s->flow.near[w];

		if (s->net->terminal[w] || s->done[w])
			continue;
		for (in = out = 0, i = 0; i < near->n; i++) {
			out += s->capacity[near->halves[i]] > 0;
			in += s->capacity[near->halves[i] ^ 1] > 0;
		}
		out *= in;
		if (!s->detour[w])
			out += UINT64_MAX / 2;
		if (out >= best)
			continue;
		best = out;
		at = w;
	}
	return at;
}

/* ---- the beginning and the end ------------------------------------------- */

static int check(const struct plan_net *net, uint64_t k, int64_t *demand,
		 struct plan_error *e)
{
	uint64_t *in = calloc(net->nnodes + 1, sizeof(*in));
	uint64_t *out = calloc(net->nnodes + 1, sizeof(*out));
	unsigned __int128 sum = 0, total = 0;
	uint32_t i;
	int err = 0;

	if (!in || !out)
		err = plan_fail(e, ENOMEM, "out of memory");
	for (i = 0; !err && i < net->narcs; i++) {
		sum += net->arcs[i].capacity;
		if (sum > FLOW_MOST)
			break;
		out[net->arcs[i].from] += net->arcs[i].capacity;
		in[net->arcs[i].to] += net->arcs[i].capacity;
	}
	for (i = 0; !err && i < net->nnodes; i++) {
		total += (unsigned __int128)net->weight[i] * k;
		if (sum > FLOW_MOST || total > FLOW_MOST)
			err = plan_fail(e, EOVERFLOW, "capacities are too large, or too unlike each other, for 64 bits; round them");
		else if (!net->terminal[i] && in[i] != out[i])
			err = plan_fail(e, EINVAL, "switch %u receives %llu and sends %llu; a switch makes no copies",
					i, (unsigned long long)in[i],
					(unsigned long long)out[i]);
	}
	*demand = (int64_t)total;
	free(in);
	free(out);
	return err;
}

static int first_pieces(struct split *s)
{
	const struct plan_net *net = s->net;
	uint32_t i;
	int64_t h;

	for (i = 0; i < net->narcs; i++) {
		if (!net->arcs[i].capacity)
			continue;
		h = half(s, net->arcs[i].from, net->arcs[i].to);
		if (h < 0 || more_room(&s->routes, s->nroutes, 1, &s->route_room,
				       sizeof(*s->routes)))
			return -ENOMEM;
		s->capacity[h] += (int64_t)net->arcs[i].capacity;
		s->routes[s->nroutes++] = i;
		if (new_piece(s, (uint32_t)h, net->arcs[i].capacity, 1))
			return -ENOMEM;
	}
	return 0;
}

static int split_init(struct split *s, const struct plan_net *net)
{
	uint32_t i;

	s->net = net;
	s->source = net->nnodes;
	s->sinks = calloc(net->nnodes + 1, sizeof(*s->sinks));
	s->row_of = calloc(net->nnodes + 1, sizeof(*s->row_of));
	s->mark = calloc(net->nnodes + 1, sizeof(*s->mark));
	s->spoke = malloc((net->nnodes + 1) * sizeof(*s->spoke));
	s->done = calloc(net->nnodes + 1, sizeof(*s->done));
	s->detour = calloc(net->nnodes + 1, sizeof(*s->detour));
	if (s->spoke)
		memset(s->spoke, 0xff,
		       (net->nnodes + 1) * sizeof(*s->spoke));
	if (!s->sinks || !s->row_of || !s->mark || !s->spoke || !s->done ||
	    !s->detour || flow_init(&s->flow, net->nnodes + 1) || widen(s, 64) ||
	    first_pieces(s) || plan_net_detours(net, s->detour))
		return -ENOMEM;
	for (i = 0; i < net->nnodes; i++)
		if (net->weight[i] && half(s, s->source, i) < 0)
			return -ENOMEM;
	return 0;
}

/* A flow to each terminal, each made from the one before. */
static int first_flows(struct split *s, uint64_t k)
{
	const struct plan_net *net = s->net;
	uint32_t i, from = s->source, n = 0;
	int64_t *row;
	int err;

	for (i = 0; i < net->nnodes; i++)
		if (net->terminal[i] &&
		    net->weight[i] * k < (uint64_t)s->demand)
			s->sinks[n++] = i;
	s->nsinks = n;
	err = widen(s, s->room);
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		row = s->left + (size_t)i * s->room;
		s->row_of[i] = i;
		if (i)
			memcpy(row, row - s->room, s->room * sizeof(*row));
		else
			memcpy(row, s->capacity, s->room * sizeof(*row));
		if (flow_push(&s->flow, row, from, s->sinks[i], s->demand) !=
		    s->demand)
			return -EINVAL;
		from = s->sinks[i];
	}
	return 0;
}

static int by_ends(const void *a, const void *b)
{
	const struct plan_path *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	if (x->narcs != y->narcs)
		return x->narcs < y->narcs ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static void collect_paths(const struct split *s, struct plan_links *l)
{
	uint32_t h, i;

	for (h = 0; h < s->flow.nhalves; h++)
		for (i = s->pieces_of[h]; i != NO_PIECE; i = s->pieces[i].next)
			l->paths[l->npaths++] = (struct plan_path){
				.from = s->flow.head[h ^ 1],
				.to = s->flow.head[h],
				.weight = s->pieces[i].weight,
				.first = s->pieces[i].first,
				.narcs = s->pieces[i].narcs,
			};
	qsort(l->paths, l->npaths, sizeof(*l->paths), by_ends);
}

/* The paths' arcs one after the other, and links of those of equal ends. */
static void collect_links(const struct split *s, struct plan_links *l)
{
	struct plan_link *d = NULL;
	uint32_t i;

	for (i = 0; i < l->npaths; i++) {
		struct plan_path *p = &l->paths[i];

		memcpy(l->path_arcs + l->npath_arcs, s->routes + p->first,
		       p->narcs * sizeof(*s->routes));
		p->first = l->npath_arcs;
		l->npath_arcs += p->narcs;
		if (!d || d->from != p->from || d->to != p->to) {
			d = &l->links[l->nlinks++];
			*d = (struct plan_link){
				.from = p->from, .to = p->to, .first_path = i,
			};
		}
		d->capacity += p->weight;
		d->npaths++;
	}
}

static int collect(const struct split *s, struct plan_links **out)
{
	struct plan_links *l = calloc(1, sizeof(*l));
	uint32_t h, i, n = 0, arcs = 0;

	if (!l)
		return -ENOMEM;
	for (h = 0; h < s->flow.nhalves; h++)
		for (i = s->pieces_of[h]; i != NO_PIECE; i = s->pieces[i].next) {
			n++;
			arcs += s->pieces[i].narcs;
		}
	l->links = calloc(n + 1, sizeof(*l->links));
	l->paths = calloc(n + 1, sizeof(*l->paths));
	l->path_arcs = calloc(arcs + 1, sizeof(*l->path_arcs));
	if (!l->links || !l->paths || !l->path_arcs) {
		plan_links_free(l);
		return -ENOMEM;
	}
	collect_paths(s, l);
	collect_links(s, l);
	*out = l;
	return 0;
}

static int split_run(struct split *s, uint64_t k, struct plan_links **out)
{
	uint32_t w, i;
	int err;

	for (i = 0; i < s->net->nnodes; i++)
		if (s->net->weight[i])
			s->capacity[flow_find(&s->flow, s->source, i)] =
				(int64_t)(s->net->weight[i] * k);
	err = first_flows(s, k);
	while (!err && (w = next_switch(s)) != PLAN_NONE)
		err = split_switch(s, w);
	return err ? err : collect(s, out);
}

static int split_fail(uint32_t nsinks, int err, struct plan_error *e)
{
	switch (err) {
	case -EINVAL:
		return plan_fail(e, EINVAL, "more is asked of a network than it can do");
	case -E2BIG:
		return plan_fail(e, E2BIG, "%u GPUs with about %llu paths between them or more, once switches are split off, are too many to be planned as a whole; choose fewer GPUs or join parallel links into one",
				 nsinks, MOST_BYTES / 2 / sizeof(int64_t) /
				 (nsinks ? nsinks : 1));
	case -EIO:
		return plan_fail(e, EIO, "a switch keeps arcs that cannot be split off; this is a mistake of the planner");
	default:
		return plan_fail(e, ENOMEM, "out of memory");
	}
}

int plan_net_split(const struct plan_net *net, uint64_t k,
		   struct plan_links **out, struct plan_error *e)
{
	struct split s = { 0 };
	uint32_t nsinks;
	int64_t demand;
	int err = check(net, k, &demand, e);

	if (err)
		return err;
	s.demand = demand;
	err = split_init(&s, net);
	if (!err)
		err = split_run(&s, k, out);
	nsinks = s.nsinks;
	split_clear(&s);
	return err ? split_fail(nsinks, err, e) : 0;
}
