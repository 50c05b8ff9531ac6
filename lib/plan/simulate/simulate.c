// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Simulates schedules on a graph: slices ("pieces") wait for their inputs, for
 * their channel and for their sender, then cross the links at the rate that
 * sharing.c gives them, and arrive. See simulate.h and docs/prediction.md.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/simulate/pipeline.h"
#include "plan/util.h"

/*
 * What happens within that time happens at once, as far as the sharing of
 * links goes: nobody gets more than there is, some wait by so much longer. A
 * thousandth of what a piece costs its sender.
 */
#define TOGETHER	1e-9
/*
 * Steps of sharing after which pieces are made larger, about a quarter of a
 * second, and after which, over all plays, it is given up: about a minute.
 */
#define WORK_WANTED	(1ull << 26)
#define WORK_MAX	(1ull << 34)

enum event_kind {
	BEGIN,			/* of a job: which */
	SENT,			/* the sender's part: of which channel */
	ARRIVED,		/* a piece: of which transfer */
};

struct event {
	double time;
	uint64_t order;		/* among equal times */
	uint32_t kind, which, piece;
};

struct play {
	const struct plan_job *jobs;
	const struct plan_timing *timing;
	struct pipeline line;
	struct sharing *flows;
	uint64_t nevents, event_room, order;
	struct event *events;	/* a heap */
	uint32_t nqueued, free_queued;
	uint64_t queued_room;
	struct queued *queued;
	double now;
	double *ends;		/* of jobs */
	double *begun;		/* last time */
	uint64_t *total, *left;	/* pieces; those that have not arrived */
	uint32_t once;		/* jobs from this one on are repeated, .. */
	uint32_t running;	/* .. as long as one of those before runs */
	uint64_t narrived;	/* pieces */
	uint64_t wanted, most;	/* work; see WORK_WANTED */
	int err;		/* -ENOMEM, once */
};

/* ---- events -------------------------------------------------------------- */

static bool before(const struct event *a, const struct event *b)
{
	return a->time < b->time ||
	       (a->time == b->time && a->order < b->order);
}

static void at(struct play *p, double time, enum event_kind kind,
	       uint32_t which, uint32_t piece)
{
	struct event new = { time, p->order++, kind, which, piece };
	uint64_t i, up;

	if (plan_grow(&p->events, p->nevents, 1, &p->event_room,
		      sizeof(*p->events))) {
		p->err = -ENOMEM;
		return;
	}
	for (i = p->nevents++; i; i = up) {
		up = (i - 1) / 2;
		if (!before(&new, &p->events[up]))
			break;
		p->events[i] = p->events[up];
	}
	p->events[i] = new;
}

static struct event next_event(struct play *p)
{
	struct event first = p->events[0], last = p->events[--p->nevents];
	uint64_t i = 0, down;

	for (; (down = 2 * i + 1) < p->nevents; i = down) {
		if (down + 1 < p->nevents &&
		    before(&p->events[down + 1], &p->events[down]))
			down++;
		if (!before(&p->events[down], &last))
			break;
		p->events[i] = p->events[down];
	}
	p->events[i] = last;
	return first;
}

/* ---- channels ------------------------------------------------------------ */

static const struct part *part_of(const struct play *p, uint32_t hop)
{
	const struct pipeline *l = &p->line;

	return &l->parts[l->values[l->hops[hop].makes].chunk];
}

static uint32_t new_queued(struct play *p)
{
	uint32_t q = p->free_queued;

	if (q != PIPELINE_NONE) {
		p->free_queued = p->queued[q].next;
		return q;
	}
	if (plan_grow(&p->queued, p->nqueued, 1, &p->queued_room,
		      sizeof(*p->queued))) {
		p->err = -ENOMEM;
		return PIPELINE_NONE;
	}
	return p->nqueued++;
}

/* Its next piece, if it is free and not too many are on their way. */
static void go_on(struct play *p, uint32_t channel)
{
	struct channel *c = &p->line.channels[channel];
	uint32_t q = c->head;

	if (c->busy || q == PIPELINE_NONE || c->flying >= p->timing->window)
		return;
	c->head = p->queued[q].next;
	if (c->head == PIPELINE_NONE)
		c->tail = PIPELINE_NONE;
	c->hop = p->queued[q].hop;
	c->piece = p->queued[q].piece;
	p->queued[q].next = p->free_queued;
	p->free_queued = q;
	c->busy = true;
	c->flying++;
	at(p, p->now + part_of(p, c->hop)->cost, SENT, channel, c->piece);
}

static void enqueue(struct play *p, uint32_t hop, uint32_t piece)
{
	uint32_t channel = p->line.hops[hop].channel, q = new_queued(p);
	struct channel *c = &p->line.channels[channel];

	if (q == PIPELINE_NONE)
		return;
	p->queued[q] = (struct queued){ hop, piece, PIPELINE_NONE };
	if (c->tail == PIPELINE_NONE)
		c->head = q;
	else
		p->queued[c->tail].next = q;
	c->tail = q;
	go_on(p, channel);
}

/* A piece of a value is whole: it is sent, and counts for the next value. */
static void whole(struct play *p, uint32_t value, uint32_t piece)
{
	const struct pipeline *l = &p->line;
	uint32_t h, v;

	for (v = value; v != PIPELINE_NONE; v = l->values[v].after) {
		for (h = l->values[v].first_send; h != PIPELINE_NONE;
		     h = l->hops[h].next_send)
			enqueue(p, h, piece);
		if (l->values[v].after == PIPELINE_NONE ||
		    --l->lacks[l->values[l->values[v].after].lacks + piece])
			break;
	}
}

/* The last byte has left: the channel is free, the piece on its way. */
static void left(struct play *p, uint32_t channel)
{
	struct channel *c = &p->line.channels[channel];

	at(p, p->now + c->latency + p->timing->notice, ARRIVED, c->hop,
	   c->piece);
	c->busy = false;
	go_on(p, channel);
}

/* ---- what happens -------------------------------------------------------- */

/* What takes no time would begin again for ever, and is no load. */
static void ended(struct play *p, uint32_t job)
{
	if (job < p->once) {
		p->running--;
	} else if (p->running && p->now > p->begun[job] + TOGETHER) {
		pipeline_again(&p->line, job);
		at(p, p->now + p->timing->start, BEGIN, job, 0);
	}
}

static void begin(struct play *p, uint32_t job)
{
	const struct pipeline *l = &p->line;
	uint32_t v, piece;

	p->ends[job] = p->begun[job] = p->now;
	p->left[job] = p->total[job];
	if (!p->left[job])
		ended(p, job);
	for (v = l->begin[job]; v < l->begin[job + 1]; v++)
		for (piece = 0; !l->values[v].waits &&
		     piece < l->parts[l->values[v].chunk].pieces; piece++)
			whole(p, v, piece);
}

static void sent(struct play *p, uint32_t channel)
{
	const struct channel *c = &p->line.channels[channel];
	const struct hop *h = &p->line.hops[c->hop];
	double bytes = part_of(p, c->hop)->bytes;

	if (bytes <= 0)
		left(p, channel);
	else if (sharing_start(p->flows, c->classes[h->reduce], bytes, channel))
		p->err = -ENOMEM;
}

static void arrived(struct play *p, uint32_t hop, uint32_t piece)
{
	const struct pipeline *l = &p->line;
	const struct hop *h = &l->hops[hop];
	const struct value *v = &l->values[h->makes];

	uint32_t job = part_of(p, hop)->job;

	p->ends[job] = p->now;
	p->narrived++;
	l->channels[h->channel].flying--;
	if (!--l->lacks[v->lacks + piece])
		whole(p, h->makes, piece);
	go_on(p, h->channel);
	if (!--p->left[job])
		ended(p, job);
}

/* One thing that happens up to @until. Return: was there one */
static bool step(struct play *p, double until)
{
	double flow = sharing_next(p->flows);
	double event = p->nevents ? p->events[0].time : INFINITY;
	struct event e;

	if (fmin(flow, event) > until)
		return false;
	p->now = fmax(p->now, fmin(flow, event));
	if (flow <= event) {
		left(p, sharing_pop(p->flows));
		return true;
	}
	e = next_event(p);
	if (e.kind == BEGIN)
		begin(p, e.which);
	else if (e.kind == SENT)
		sent(p, e.which);
	else
		arrived(p, e.which, e.piece);
	return true;
}

/* Events are work, too: pieces of no bytes share nothing. */
static uint64_t work(const struct play *p)
{
	return sharing_work(p->flows) + p->order;
}

/* -EAGAIN: with larger pieces, which there can be, it would be faster. */
static int run(struct play *p, struct plan_error *e)
{
	double next;

	while (!p->err) {
		if (!p->running)
			return 0;
		next = fmin(sharing_next(p->flows),
			    p->nevents ? p->events[0].time : INFINITY);
		if (next == INFINITY)
			return 0;
		while (!p->err && step(p, next + TOGETHER))
			;
		if (!p->err)
			p->err = sharing_update(p->flows, p->now);
		if (work(p) > p->wanted && p->line.npieces > p->line.nhops)
			return -EAGAIN;
		if (work(p) > p->most)
			return plan_fail(e, E2BIG, "%llu pieces over routes that share links take too long to play; play larger pieces, or plan with fewer trees or rings",
					 (unsigned long long)p->line.npieces);
	}
	return plan_fail(e, ENOMEM, "no memory to play %llu pieces; play larger ones",
			 (unsigned long long)p->line.npieces);
}

/* ---- the whole ----------------------------------------------------------- */

static int check_timing(const struct plan_timing *t, struct plan_error *e)
{
	const double s[] = { t->start, t->piece, t->notice, t->reduce };
	static const char *const what[] = { "start", "piece", "notice",
					    "reduce" };
	static const double most[] = { 1e3, 1e3, 1e3, 1e18 };
	uint32_t i;

	for (i = 0; i < 4; i++)
		if (!(s[i] >= 0 && s[i] <= most[i]))
			return plan_fail(e, EINVAL, "timing: %s is %g; give 0 to %g",
					 what[i], s[i], most[i]);
	if (t->reduce > 0 && t->reduce < 1)
		return plan_fail(e, EINVAL, "timing: reduce is %g; give 0, or 1 and more",
				 t->reduce);
	if (!t->piece_bytes || !t->window)
		return plan_fail(e, EINVAL, "timing: %s is 0; give 1 or more",
				 t->window ? "piece_bytes" : "window");
	return 0;
}

/* Links, and behind them nodes that reduce. */
static struct sharing *links_of(const struct plan_graph *g, double reduce)
{
	uint32_t n = g->nedges + (reduce > 0 ? g->nnodes : 0), i;
	double *rates = calloc(n + 1, sizeof(*rates));
	struct sharing *f;

	if (!rates)
		return NULL;
	for (i = 0; i < n; i++)
		rates[i] = i < g->nedges ? 1e6 * (double)g->edges[i].capacity :
					   reduce;
	f = sharing_new(rates, n);
	free(rates);
	return f;
}

/* How long each edge needs for the job's bytes, s, if it does nothing else. */
static void add_load(const struct plan_job *job, const struct plan_graph *g,
		     double *load)
{
	const struct plan_schedule *s = job->schedule;
	uint64_t i, k, r;
	double bytes;

	for (i = 0; i < s->nchunks; i++) {
		bytes = (double)job->bytes * (double)s->chunks[i].weight /
			(double)s->shard_weight / s->nshards;
		for (k = 0; k < s->chunks[i].ntransfers; k++) {
			const struct plan_route *way = &s->routes[
				s->transfers[s->chunks[i].first + k].route];

			for (r = 0; r < way->nedges; r++) {
				uint32_t d = s->route_edges[way->first + r];

				load[d] += bytes /
					   (1e6 * (double)g->edges[d].capacity);
			}
		}
	}
}

/* What all of them did, with pieces of one size. */
struct outcome {
	double *ends;
	uint64_t npieces, asked, piece_bytes;
	uint64_t narrived;	/* until it was over or given up */
	uint32_t once;		/* jobs that are not repeated: the first ones */
	uint64_t work;		/* of all plays */
};

static int play_all(struct play *p, const struct plan_graph *g, uint32_t n,
		    uint64_t largest, struct plan_error *e)
{
	uint32_t i;
	int err;

	p->flows = links_of(g, p->timing->reduce);
	if (!p->flows)
		return plan_fail(e, ENOMEM, "no memory to play schedules");
	err = pipeline_make(&p->line, p->flows, g, p->jobs, n, p->timing,
			    largest, e);
	if (err)
		return err;
	p->begun = calloc(n, sizeof(*p->begun));
	p->total = calloc(n, sizeof(*p->total));
	p->left = calloc(n, sizeof(*p->left));
	if (sharing_ready(p->flows) || !p->begun || !p->total || !p->left)
		return plan_fail(e, ENOMEM, "no memory to play schedules");
	for (i = 0; i < p->line.nhops; i++)
		p->total[part_of(p, i)->job] += part_of(p, i)->pieces;
	for (i = 0; i < n; i++)
		at(p, p->jobs[i].begin + p->timing->start, BEGIN, i, 0);
	return run(p, e);
}

static int play(const struct plan_graph *g, const struct plan_job *jobs,
		uint32_t n, const struct plan_timing *timing, uint64_t largest,
		uint64_t wanted, struct outcome *o, struct plan_error *e)
{
	struct play p = { .jobs = jobs, .timing = timing, .ends = o->ends,
			  .once = o->once, .running = o->once, .wanted = wanted, .most = WORK_MAX - o->work,
			  .free_queued = PIPELINE_NONE };
	int err = play_all(&p, g, n, largest, e);

	o->narrived = p.narrived;
	if (p.flows)
		o->work += work(&p);

	o->npieces = p.line.npieces;
	o->asked = p.line.asked;
	o->piece_bytes = p.line.piece_bytes;
	pipeline_free(&p.line);
	sharing_free(p.flows);
	free(p.events);
	free(p.queued);
	free(p.begun);
	free(p.total);
	free(p.left);
	return err;
}

/* With larger pieces where there is too much to do: twice, 4, 8 times, .. */
static int play_in_time(const struct plan_graph *g,
			const struct plan_job *jobs, uint32_t n,
			const struct plan_timing *timing, struct outcome *o,
			struct plan_error *e)
{
	uint64_t largest = timing->piece_bytes, times;
	int err;

	while ((err = play(g, jobs, n, timing, largest, WORK_WANTED, o, e)) ==
	       -EAGAIN) {
		for (times = 2; times * o->narrived < o->npieces &&
		     times < 64; times *= 2)
			;
		largest = o->piece_bytes > UINT64_MAX / times ? UINT64_MAX :
			  o->piece_bytes * times;
	}
	return err;
}

/* Jobs in the order of their ends. */
struct ended {
	uint32_t job;
	double end;		/* as played */
};

static int by_end(const void *va, const void *vb)
{
	const struct ended *a = va, *b = vb;

	return a->end != b->end ? (a->end < b->end ? -1 : 1) :
	       a->job < b->job ? -1 : a->job > b->job;
}

/*
 * What the links allow, whatever else there is: by the end of a job, each edge
 * that it needs has carried all of it, and of all jobs that have ended before.
 */
static void bound(const struct plan_graph *g, const struct plan_job *jobs,
		  const struct ended *order, uint32_t n, double start,
		  double *own, double *all, double *least)
{
	double first = INFINITY, begin, end;
	uint32_t i, d;

	for (i = 0; i < n; i++) {
		begin = jobs[order[i].job].begin + start;
		first = fmin(first, begin);
		end = begin;
		memset(own, 0, g->nedges * sizeof(*own));
		add_load(&jobs[order[i].job], g, own);
		for (d = 0; d < g->nedges; d++) {
			if (!own[d])
				continue;
			all[d] += own[d];
			end = fmax(end, fmax(begin + own[d], first + all[d]));
		}
		least[order[i].job] = end;
	}
}

/* Of each job, when it can end at the soonest. */
static int soonest(const struct plan_graph *g, const struct plan_job *jobs,
		   uint32_t n, double start, const double *ends, double *least)
{
	struct ended *order = calloc(n, sizeof(*order));
	double *own = calloc(g->nedges + 1, sizeof(*own));
	double *all = calloc(g->nedges + 1, sizeof(*all));
	bool good = order && own && all;
	uint32_t i;

	for (i = 0; good && i < n; i++)
		order[i] = (struct ended){ i, ends[i] };
	if (good) {
		qsort(order, n, sizeof(*order), by_end);
		bound(g, jobs, order, n, start, own, all, least);
	}
	free(order);
	free(own);
	free(all);
	return good ? 0 : -ENOMEM;
}

/*
 * Pieces had to be larger than asked for. The time to fill long ways is that of
 * one piece a hop, so it is linear in their size, and nothing else depends on
 * it: played once more, with pieces twice as large, it can be taken back.
 */
static int refine(const struct plan_graph *g, const struct plan_job *jobs,
		  uint32_t n, const struct plan_timing *timing,
		  struct outcome *o, struct plan_error *e)
{
	struct outcome coarse = { .ends = calloc(n, sizeof(double)),
				  .work = o->work, .once = o->once };
	double *least = calloc(n, sizeof(*least)), back;
	uint32_t i;
	int err = -ENOMEM;

	if (!coarse.ends || !least ||
	    soonest(g, jobs, o->once, timing->start, o->ends, least))
		plan_fail(e, ENOMEM, "no memory to play %u jobs", n);
	else
		err = play(g, jobs, n, timing, 2 * o->piece_bytes, UINT64_MAX,
			   &coarse, e);
	for (i = 0; !err && i < o->once && coarse.npieces < o->npieces; i++) {
		back = (1.0 / (double)o->npieces - 1.0 / (double)o->asked) /
		       (1.0 / (double)coarse.npieces -
			1.0 / (double)o->npieces);
		least[i] = fmin(least[i], o->ends[i]);
		o->ends[i] -= back * fmax(0, coarse.ends[i] - o->ends[i]);
		o->ends[i] = fmax(o->ends[i], least[i]);
	}
	free(coarse.ends);
	free(least);
	return err;
}

static void report(const struct plan_graph *g, const struct plan_job *jobs,
		   uint32_t n, const struct outcome *o,
		   struct plan_played *out, double *busy)
{
	double last = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct plan_job *job = &jobs[i];
		const struct plan_schedule *s = job->schedule;

		out[i].seconds = o->ends[i] - job->begin;
		out[i].algbw = out[i].seconds > 0 ? (double)job->bytes /
			       out[i].seconds / 1e9 : 0;
		out[i].busbw = out[i].algbw * plan_ratio_value(
			plan_busbw_factor(s->collective, s->nranks));
		out[i].piece_bytes = o->piece_bytes;
		last = fmax(last, o->ends[i]);
	}
	if (!busy)
		return;
	memset(busy, 0, g->nedges * sizeof(*busy));
	for (i = 0; i < n && last > 0; i++)
		add_load(&jobs[i], g, busy);
	for (i = 0; i < g->nedges && last > 0; i++)
		busy[i] /= last;
}

static int simulate(const struct plan_graph *g, const struct plan_job *jobs,
		    uint32_t n, uint32_t once, const struct plan_timing *timing,
		    struct plan_played *out, double *busy,
		    struct plan_error *e)
{
	struct outcome o = { .once = once };
	int err;

	if (!n)
		return plan_fail(e, EINVAL, "there are no jobs to play; give one or more");
	err = check_timing(timing, e);
	if (err)
		return err;
	o.ends = calloc(n, sizeof(*o.ends));
	if (!o.ends)
		return plan_fail(e, ENOMEM, "no memory to play %u jobs", n);
	err = play_in_time(g, jobs, n, timing, &o, e);
	if (!err && o.npieces < o.asked)
		err = refine(g, jobs, n, timing, &o, e);
	if (!err)
		report(g, jobs, once, &o, out, busy);
	free(o.ends);
	return err;
}

int plan_simulate(const struct plan_graph *g, const struct plan_job *jobs,
		  uint32_t n, const struct plan_timing *timing,
		  struct plan_played *out, double *busy,
		  struct plan_error *e)
{
	return simulate(g, jobs, n, n, timing, out, busy, e);
}

int plan_simulate_beside(const struct plan_graph *g,
			 const struct plan_job *jobs, uint32_t n,
			 const struct plan_timing *timing,
			 struct plan_played *out, struct plan_error *e)
{
	return simulate(g, jobs, n, n ? 1 : 0, timing, out, NULL, e);
}

/*
 * One set for all fabrics and collectives, from NCCL's tables of a ring's
 * latency with protocol Simple (src/graph/tuning.cc): 8.4 us to begin, 3.4 us
 * for each step over NVLink. Protocol LL, which neither fences nor flags, takes
 * 0.6 us. So Simple's synchronization is 2.8 us (2.8 us in RCCL's table for
 * XGMI, too: 3.6 and 0.8), half of it, 1.4 us, at the sender; what else there
 * is of the 3.4 us is 0.3 us for the link, and 1.7 us until the receiver goes
 * on. Pieces are Simple's slots: a buffer of 4 MiB in 8 steps.
 *
 * No limit to reductions: an MI300X's 5.3 TB/s of memory reduce, two reads and
 * a write, at 1.8 TB/s, several times what all of its links bring in.
 */
struct plan_timing plan_timing_default(void)
{
	return (struct plan_timing){
		.start = 8.4e-6,
		.piece = 1.4e-6,
		.notice = 1.7e-6,
		.reduce = 0,
		.piece_bytes = 512 << 10,
		.window = 8,
	};
}
