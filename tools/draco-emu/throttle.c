// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transfers at the rates of links. Called by copy.c, op.c, queue.c, gpu.c and
 * commands.c.
 */
#include "throttle.h"

#include "engine.h"
#include "fabric.h"
#include "mesh.h"
#include "port.h"

/* ---- Rates: GB/s are bytes per nanosecond ---- */

static void set_rate(struct traffic *t, double gbps)
{
	t->out.rate = gbps;
	t->in.rate = gbps;
}

static void rate_link(struct fabric *f, struct link *l)
{
	double own = topology_link_gbps(f->topo, l->sw), other;

	if (l->kind == DRACO_PORT_ISL) {
		other = topology_link_gbps(f->topo, f->links[l->other].sw);
		own = other < own ? other : own;
	}
	set_rate(&l->traffic, own);
	set_rate(&l->inner, l->kind == DRACO_PORT_HOST ?
		 f->topo->root_complex_gbps : f->topo->link_gbps);
}

void throttle_init(struct fabric *f)
{
	pthread_mutex_init(&f->throttle.lock, NULL);
	f->throttle.clock = engine_now_ns;
	for (uint32_t i = 0; i < f->nlinks; i++)
		rate_link(f, &f->links[i]);
	for (unsigned int i = 0; i < f->topo->nendpoints; i++)
		set_rate(&f->eps[i].traffic, f->topo->link_gbps);
}

void throttle_free(struct fabric *f)
{
	pthread_mutex_destroy(&f->throttle.lock);
}

static void forget(struct traffic *t)
{
	t->out.free_ns = 0;
	t->in.free_ns = 0;
}

void throttle_set(struct fabric *f, double factor)
{
	pthread_mutex_lock(&f->throttle.lock);
	f->throttle.factor = factor;
	for (uint32_t i = 0; i < f->nlinks; i++) {
		forget(&f->links[i].traffic);
		forget(&f->links[i].inner);
	}
	for (unsigned int i = 0; i < f->topo->nendpoints; i++)
		forget(&f->eps[i].traffic);
	mesh_forget(f);
	atomic_fetch_add(&f->throttle.sets, 1);
	atomic_store(&f->throttle.on, factor > 0);
	pthread_mutex_unlock(&f->throttle.lock);
}

double throttle_factor(struct fabric *f)
{
	double factor;

	pthread_mutex_lock(&f->throttle.lock);
	factor = f->throttle.factor;
	pthread_mutex_unlock(&f->throttle.lock);
	return factor;
}

/* ---- Links of a route. lock held ---- */

struct crossing {
	double factor, now, due;
	double rate;			/* of the slowest link; 0: any */
	uint64_t bytes;
};

static double cost(const struct crossing *c, const struct oneway *way)
{
	return (double)c->bytes / (way->rate * c->factor);
}

static void find_slowest(struct fabric *f, struct oneway *way,
			 struct link *isl, void *arg)
{
	struct crossing *c = arg;

	(void)f;
	(void)isl;
	if (way->rate > 0 && (c->rate <= 0 || way->rate < c->rate))
		c->rate = way->rate;
}

/* All links at the same time: a switch forwards before it has everything. */
static void cross(struct fabric *f, struct oneway *way, struct link *isl,
		  void *arg)
{
	struct crossing *c = arg;

	(void)f;
	(void)isl;
	if (way->rate <= 0)
		return;
	if (way->free_ns < c->now)
		way->free_ns = c->now;
	way->free_ns += cost(c, way);
	if (way->free_ns > c->due)
		c->due = way->free_ns;
}

/* Those who have reserved since keep their times; who comes next gains. */
static void give_back(struct fabric *f, struct oneway *way, struct link *isl,
		      void *arg)
{
	const struct crossing *c = arg;
	double ahead = way->free_ns - c->now;

	(void)f;
	(void)isl;
	if (way->rate > 0 && ahead > 0)
		way->free_ns -= cost(c, way) < ahead ? cost(c, way) : ahead;
}

static void route(struct fabric *f, const struct flow *w, traffic_visit visit,
		  struct crossing *c)
{
	if (w->way)
		visit(f, w->way, NULL, c);
	else
		traffic_route(f, &w->from, &w->to, visit, c);
}

static uint64_t piece(const struct crossing *c, uint64_t bytes)
{
	double max = c->rate * c->factor * THROTTLE_PIECE_NS;

	if (c->rate <= 0)
		return bytes;
	if (max < THROTTLE_PIECE_MIN)
		max = THROTTLE_PIECE_MIN;
	return (double)bytes > max ? (uint64_t)max : bytes;
}

/* ---- Flows ---- */

static double now_ns(const struct throttle *t)
{
	return (double)t->clock();
}

/*
 * When @w was ready to transfer. A flow that was not looked after as soon as its
 * last bytes had crossed would have gone on at once.
 */
static double ready_ns(const struct flow *w, double now)
{
	double late = now - THROTTLE_LATE_NS;

	if (w->due_ns <= 0 || w->due_ns > now)
		return now;
	return w->due_ns > late ? w->due_ns : late;
}

static void reserve(struct fabric *f, struct flow *w, uint64_t bytes)
{
	struct throttle *t = &f->throttle;
	struct crossing c = { .now = ready_ns(w, now_ns(t)) };

	pthread_mutex_lock(&t->lock);
	c.factor = t->factor;
	if (c.factor > 0) {
		route(f, w, find_slowest, &c);
		c.bytes = piece(&c, bytes);
		c.due = c.now;
		route(f, w, cross, &c);
		w->bytes = c.bytes;
		w->due_ns = c.due;
		w->set = atomic_load(&t->sets);
	}
	pthread_mutex_unlock(&t->lock);
}

void throttle_reserve(struct fabric *f, struct flow *w,
		      const struct place *from, const struct place *to,
		      uint64_t bytes)
{
	w->from = *from;
	w->to = *to;
	w->way = NULL;
	reserve(f, w, bytes);
}

void throttle_reserve_way(struct fabric *f, struct flow *w, struct oneway *way,
			  uint64_t bytes)
{
	w->way = way;
	reserve(f, w, bytes);
}

uint64_t throttle_wait(struct fabric *f, const struct flow *w)
{
	double left;

	if (!w->bytes || !throttle_is_on(&f->throttle) ||
	    w->set != atomic_load(&f->throttle.sets))
		return 0;
	left = w->due_ns - now_ns(&f->throttle);
	if (left >= THROTTLE_MOST_NS)
		return THROTTLE_MOST_NS;
	return left > THROTTLE_SLACK_NS ? (uint64_t)left : 0;
}

void throttle_take(struct flow *w, uint64_t *bytes)
{
	if (!w->bytes)
		return;
	if (*bytes > w->bytes)
		*bytes = w->bytes;
	w->bytes -= *bytes;
}

void throttle_release(struct fabric *f, struct flow *w)
{
	struct throttle *t = &f->throttle;
	struct crossing c = { .bytes = w->bytes };

	if (!w->bytes)
		return;
	c.now = now_ns(t);
	pthread_mutex_lock(&t->lock);
	c.factor = t->factor;
	if (c.factor > 0 && w->set == atomic_load(&t->sets))
		route(f, w, give_back, &c);
	pthread_mutex_unlock(&t->lock);
	w->bytes = 0;
	w->due_ns = 0;
}
