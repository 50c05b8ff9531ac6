// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prepares schedules for the simulator; see pipeline.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/simulate/pipeline.h"

/* Transfers that are played at all, and pieces that they are cut into. */
#define HOPS_MAX	(1ull << 24)
#define PIECES_WANTED	(1ull << 19)
#define ROUTE_MAX	256u	/* edges */
#define BEGIN_MAX	1e5	/* s: clocks stay exact to 0.1 ns */

struct maker {
	struct pipeline *p;
	struct sharing *flows;
	const struct plan_graph *graph;
	const struct plan_job *job;
	uint32_t number;	/* of the job */
	uint32_t nslots;
	uint32_t *slots;	/* channel + 1, by tree and route */
	uint64_t *keys;		/* of channels: tree and route of this job */
	uint32_t first_channel;
	uint64_t heaviest;	/* weight of a chunk of the job */
	uint32_t *now;		/* value that each rank has of the chunk */
	uint32_t *seen;		/* part + 1 for which now[] says so */
	bool *sent;		/* has it been sent, or is it its own */
	uint32_t links[ROUTE_MAX + 1];	/* of a class, while it is made */
	bool reducing;		/* there is a limit to reductions */
	double piece, piece_bytes;	/* as they were asked for */
};

void pipeline_free(struct pipeline *p)
{
	free(p->values);
	free(p->hops);
	free(p->parts);
	free(p->channels);
	free(p->lacks);
	free(p->begin);
	memset(p, 0, sizeof(*p));
}

/* ---- what is asked for -------------------------------------------------- */

static int check_route(const struct plan_graph *g,
		       const struct plan_schedule *s, uint64_t r,
		       uint32_t job, struct plan_error *e)
{
	const struct plan_route *route = &s->routes[r];
	const uint32_t *edges = s->route_edges + route->first;
	uint32_t i;

	if (!route->nedges || route->from >= s->nranks ||
	    route->to >= s->nranks)
		return plan_fail(e, EINVAL, "job %u: route %llu of its schedule joins no two ranks; plan it anew",
				 job, (unsigned long long)r);
	if (route->nedges > ROUTE_MAX)
		return plan_fail(e, E2BIG, "job %u: a route of %u edges; up to %u can be played",
				 job, route->nedges, ROUTE_MAX);
	for (i = 0; i < route->nedges; i++)
		if (edges[i] >= g->nedges ||
		    (i && g->edges[edges[i]].from !=
			  g->edges[edges[i - 1]].to))
			return plan_fail(e, EINVAL, "job %u: route %llu of its schedule is none of graph %s; play it on the graph it was planned for, or one with the same edges",
					 job, (unsigned long long)r, g->name);
	return 0;
}

static int check_job(const struct plan_graph *g, const struct plan_job *job,
		     uint32_t number, struct plan_error *e)
{
	const struct plan_schedule *s = job->schedule;
	uint64_t i, k;
	int err;

	if (!s || !s->nchunks || !s->shard_weight || s->nranks > PLAN_GPUS)
		return plan_fail(e, EINVAL, "job %u: there is no schedule, or it is not finished; give one that has been through plan_schedule_finish()",
				 number);
	if (!(job->begin >= 0 && job->begin <= BEGIN_MAX))
		return plan_fail(e, EINVAL, "job %u: begins at %g s; give 0 to %g",
				 number, job->begin, BEGIN_MAX);
	for (i = 0; i < s->nroutes; i++) {
		err = check_route(g, s, i, number, e);
		if (err)
			return err;
	}
	for (i = 0; i < s->nchunks; i++)
		for (k = 0; k < s->chunks[i].ntransfers; k++)
			if (s->transfers[s->chunks[i].first + k].route >=
			    s->nroutes)
				return plan_fail(e, EINVAL, "job %u: chunk %llu takes a route that is not there; plan it anew",
						 number,
						 (unsigned long long)i);
	return 0;
}

/* ---- pieces ------------------------------------------------------------- */

static double chunk_bytes(const struct plan_job *job, uint64_t chunk)
{
	const struct plan_schedule *s = job->schedule;

	return (double)job->bytes * (double)s->chunks[chunk].weight /
	       (double)s->shard_weight / s->nshards;
}

static uint64_t pieces_of(const struct plan_job *job, uint64_t chunk,
			  uint64_t largest)
{
	double n = ceil(chunk_bytes(job, chunk) / (double)largest);

	return n < 1 ? 1 : n > (double)HOPS_MAX ? HOPS_MAX : (uint64_t)n;
}

static uint64_t count_pieces(const struct plan_job *jobs, uint32_t n,
			     uint64_t largest)
{
	uint64_t sum = 0, i;
	uint32_t j;

	for (j = 0; j < n; j++)
		for (i = 0; i < jobs[j].schedule->nchunks; i++)
			sum += jobs[j].schedule->chunks[i].ntransfers *
			       pieces_of(&jobs[j], i, largest);
	return sum;
}

/*
 * Larger pieces where there would be too many of them, each of which stands for
 * several and costs its sender as much (struct part): rates stay as they are,
 * only long ways fill more slowly. All chunks get larger ones alike.
 */
static int choose_pieces(struct pipeline *p, const struct plan_job *jobs,
			 uint32_t n, uint64_t asked, uint64_t largest,
			 struct plan_error *e)
{
	uint64_t hops = 0, parts = 0;
	uint32_t j;

	for (j = 0; j < n; j++) {
		hops += jobs[j].schedule->ntransfers;
		parts += jobs[j].schedule->nchunks;
	}
	if (hops > HOPS_MAX || parts > HOPS_MAX)
		return plan_fail(e, E2BIG, "schedules of %llu transfers and %llu chunks; up to %llu can be played: plan with fewer rings or trees",
				 (unsigned long long)hops,
				 (unsigned long long)parts, HOPS_MAX);
	while (count_pieces(jobs, n, largest) > PIECES_WANTED &&
	       count_pieces(jobs, n, largest) > hops)
		largest *= 2;
	p->piece_bytes = largest;
	p->npieces = count_pieces(jobs, n, largest);
	p->asked = count_pieces(jobs, n, asked);
	return 0;
}

/* ---- channels ----------------------------------------------------------- */

static uint32_t *channel_slot(const struct maker *m, uint64_t key)
{
	uint32_t mask = m->nslots - 1;
	uint64_t h = key * 0x9e3779b97f4a7c15ull;

	for (h >>= 32; m->slots[h & mask]; h++)
		if (m->keys[m->slots[h & mask] - 1] == key)
			break;
	return &m->slots[h & mask];
}

/* The links of a flow; a limit to reductions is one more, of the receiver. */
static int64_t class_of(struct maker *m, const struct plan_route *r,
			bool reduce, double weight)
{
	const struct plan_graph *g = m->graph;
	const uint32_t *edges = m->job->schedule->route_edges + r->first;
	uint32_t n = 0, i, k;

	for (i = 0; i < r->nedges; i++) {
		for (k = 0; k < n && m->links[k] != edges[i]; k++)
			;
		if (k == n)
			m->links[n++] = edges[i];
	}
	if (reduce)
		m->links[n++] = g->nedges +
				g->edges[edges[r->nedges - 1]].to;
	return sharing_class(m->flows, m->links, n, weight);
}

/*
 * Chunks of one schedule share a link in proportion to their weights, as
 * docs/schedule.md has it ("Channels"), the heaviest ones like a flow of any
 * other job.
 */
static double share_of(const struct maker *m, uint64_t weight)
{
	return fmax(SHARING_WEIGHT_MIN, (double)weight / (double)m->heaviest);
}

static int64_t add_channel(struct maker *m, uint32_t route, double weight)
{
	const struct plan_route *r = &m->job->schedule->routes[route];
	struct channel *c = &m->p->channels[m->p->nchannels];
	int64_t class = class_of(m, r, false, weight);
	uint32_t i;

	if (class < 0)
		return class;
	*c = (struct channel){ .head = PIPELINE_NONE, .tail = PIPELINE_NONE };
	c->classes[0] = c->classes[1] = (uint32_t)class;
	if (m->reducing) {
		class = class_of(m, r, true, weight);
		if (class < 0)
			return class;
		c->classes[1] = (uint32_t)class;
	}
	for (i = 0; i < r->nedges; i++)
		c->latency += 1e-9 * m->graph->edges[m->job->schedule->
					route_edges[r->first + i]].latency;
	return m->p->nchannels++;
}

static int64_t channel_of(struct maker *m, const struct plan_chunk *chunk,
			  uint32_t route)
{
	uint64_t key = (uint64_t)chunk->tree << 32 | route;
	uint32_t *slot = channel_slot(m, key);
	int64_t channel;

	if (*slot)
		return m->first_channel + *slot - 1;
	channel = add_channel(m, route, share_of(m, chunk->weight));
	if (channel < 0)
		return channel;
	m->keys[channel - m->first_channel] = key;
	*slot = (uint32_t)(channel - m->first_channel) + 1;
	return channel;
}

/* ---- values ------------------------------------------------------------- */

static uint32_t add_value(struct maker *m, uint32_t rank)
{
	struct pipeline *p = m->p;
	struct value *v = &p->values[p->nvalues];

	v->chunk = p->nparts - 1;
	v->first_send = v->last_send = v->after = PIPELINE_NONE;
	v->waits = 0;
	v->lacks = p->nlacks;
	p->nlacks += p->parts[v->chunk].pieces;
	m->now[rank] = p->nvalues;
	m->seen[rank] = p->nparts;
	m->sent[rank] = false;
	return p->nvalues++;
}

/* What it has to begin with: its own. */
static uint32_t value_of(struct maker *m, uint32_t rank)
{
	return m->seen[rank] == m->p->nparts ? m->now[rank] :
					       add_value(m, rank);
}

/*
 * The value that a write to @rank goes to: the one it has if nobody was to
 * send that, else a new one. It comes after the one that it has, be it because
 * it is reduced into that, be it because its writes are later.
 */
static uint32_t value_written(struct maker *m, uint32_t rank)
{
	struct pipeline *p = m->p;
	uint32_t old, new;

	if (m->seen[rank] != p->nparts)
		return add_value(m, rank);
	old = m->now[rank];
	if (!m->sent[rank])
		return old;
	new = add_value(m, rank);
	p->values[old].after = new;
	p->values[new].waits = 1;
	return new;
}

static int add_hop(struct maker *m, const struct plan_chunk *chunk,
		   const struct plan_transfer *t)
{
	const struct plan_route *r = &m->job->schedule->routes[t->route];
	int64_t channel = channel_of(m, chunk, t->route);
	struct pipeline *p = m->p;
	struct hop *h = &p->hops[p->nhops];
	uint32_t from;

	if (channel < 0)
		return (int)channel;
	from = value_of(m, r->from);
	m->sent[r->from] = true;
	h->channel = (uint32_t)channel;
	h->reduce = t->reduce;
	h->next_send = PIPELINE_NONE;
	h->makes = value_written(m, r->to);
	p->values[h->makes].waits++;
	if (p->values[from].first_send == PIPELINE_NONE)
		p->values[from].first_send = p->nhops;
	else
		p->hops[p->values[from].last_send].next_send = p->nhops;
	p->values[from].last_send = p->nhops++;
	return 0;
}

static int add_chunk(struct maker *m, uint64_t number)
{
	const struct plan_schedule *s = m->job->schedule;
	const struct plan_chunk *c = &s->chunks[number];
	struct part *part = &m->p->parts[m->p->nparts++];
	uint64_t i;
	int err = 0;

	part->job = m->number;
	part->pieces = (uint32_t)pieces_of(m->job, number, m->p->piece_bytes);
	part->bytes = chunk_bytes(m->job, number) / part->pieces;
	part->cost = m->piece * fmax(1, ceil(part->bytes / m->piece_bytes));
	for (i = 0; !err && i < c->ntransfers; i++)
		err = add_hop(m, c, &s->transfers[c->first + i]);
	return err;
}

/* What the ranks hold and what remains to come, before the first piece. */
void pipeline_again(struct pipeline *p, uint32_t job)
{
	uint32_t i, k;

	for (i = p->begin[job]; i < p->begin[job + 1]; i++)
		for (k = 0; k < p->parts[p->values[i].chunk].pieces; k++)
			p->lacks[p->values[i].lacks + k] = p->values[i].waits;
}

/* ---- jobs --------------------------------------------------------------- */

static int add_job(struct maker *m)
{
	const struct plan_schedule *s = m->job->schedule;
	uint64_t i;
	int err = 0;

	m->nslots = 64;
	while (m->nslots < 2 * s->ntransfers)
		m->nslots *= 2;
	m->first_channel = m->p->nchannels;
	m->slots = calloc(m->nslots, sizeof(*m->slots));
	m->keys = calloc(s->ntransfers + 1, sizeof(*m->keys));
	m->now = calloc(s->nranks + 1, sizeof(*m->now));
	m->seen = calloc(s->nranks + 1, sizeof(*m->seen));
	m->sent = calloc(s->nranks + 1, sizeof(*m->sent));
	if (!m->slots || !m->keys || !m->now || !m->seen || !m->sent)
		err = -ENOMEM;
	for (m->heaviest = 1, i = 0; i < s->nchunks; i++)
		if (s->chunks[i].weight > m->heaviest)
			m->heaviest = s->chunks[i].weight;
	for (i = 0; !err && i < s->nchunks; i++)
		err = add_chunk(m, i);
	free(m->slots);
	free(m->keys);
	free(m->now);
	free(m->seen);
	free(m->sent);
	return err;
}

/* All arrays at their largest: each transfer makes at most two values. */
static int allocate(struct pipeline *p, const struct plan_job *jobs,
		    uint32_t n)
{
	uint64_t hops = 0, parts = 0, lacks = 0, i;
	uint32_t j;

	for (j = 0; j < n; j++) {
		const struct plan_schedule *s = jobs[j].schedule;

		hops += s->ntransfers;
		parts += s->nchunks;
		for (i = 0; i < s->nchunks; i++)
			lacks += 2 * s->chunks[i].ntransfers *
				 pieces_of(&jobs[j], i, p->piece_bytes);
	}
	if (lacks > UINT32_MAX)
		return -E2BIG;
	p->values = calloc(2 * hops + 1, sizeof(*p->values));
	p->hops = calloc(hops + 1, sizeof(*p->hops));
	p->parts = calloc(parts + 1, sizeof(*p->parts));
	p->channels = calloc(hops + 1, sizeof(*p->channels));
	p->lacks = calloc(lacks + 1, sizeof(*p->lacks));
	p->begin = calloc(n + 1, sizeof(*p->begin));
	return p->values && p->hops && p->parts && p->channels && p->lacks &&
	       p->begin ? 0 : -ENOMEM;
}

int pipeline_make(struct pipeline *p, struct sharing *f,
		  const struct plan_graph *g, const struct plan_job *jobs,
		  uint32_t n, const struct plan_timing *timing,
		  uint64_t largest, struct plan_error *e)
{
	struct maker m = { .p = p, .flows = f, .graph = g,
			   .reducing = timing->reduce > 0,
			   .piece = timing->piece,
			   .piece_bytes = (double)timing->piece_bytes };
	int err = 0;

	memset(p, 0, sizeof(*p));
	for (m.number = 0; !err && m.number < n; m.number++)
		err = check_job(g, &jobs[m.number], m.number, e);
	if (!err)
		err = choose_pieces(p, jobs, n, timing->piece_bytes, largest,
				    e);
	if (err)
		return err;
	err = allocate(p, jobs, n);
	for (m.number = 0; !err && m.number < n; m.number++) {
		m.job = &jobs[m.number];
		p->begin[m.number] = p->nvalues;
		err = add_job(&m);
	}
	if (err) {
		pipeline_free(p);
		return plan_fail(e, -err, "no memory for %llu pieces; plan with fewer rings or trees",
				 (unsigned long long)p->npieces);
	}
	p->begin[n] = p->nvalues;
	for (m.number = 0; m.number < n; m.number++)
		pipeline_again(p, m.number);
	return 0;
}
