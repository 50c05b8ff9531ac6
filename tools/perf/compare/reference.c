// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the machine itself can do, measured in the same run: the time that a
 * cache line takes from one processor to another, and the bound of memory
 * traffic. memcpy is measured by ours.c, on the buffers that it writes to.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "compare.h"

#define TRIES	4
#define TRY_S	0.005

/* Between the ranks, made before they are. */
struct meeting {
	_Alignas(128) atomic_ulong line;
	_Alignas(128) atomic_uint here;
};

struct arg {
	struct meeting *meeting;
	uint64_t bytes;
};

struct state {
	struct meeting *meeting;
	struct bound *bound;
	uint32_t rank, ranks;
	uint32_t met;
	uint64_t turn;
};

static void *open_rank(const void *arg, uint32_t rank, uint32_t ranks,
		       struct peer_hello *hello)
{
	const struct arg *a = arg;
	struct state *s = calloc(1, sizeof(*s));

	if (s)
		s->bound = bound_open(a->bytes, ranks);
	if (!s || !s->bound) {
		snprintf(hello->text, sizeof(hello->text), "out of memory");
		free(s);
		return NULL;
	}
	s->meeting = a->meeting;
	s->rank = rank;
	s->ranks = ranks;
	return s;
}

static void close_rank(void *state)
{
	struct state *s = state;

	bound_close(s->bound);
	free(s);
}

/* Yields, because there may be more ranks than processors. */
static void meet(struct state *s)
{
	s->met += s->ranks;
	atomic_fetch_add(&s->meeting->here, 1);
	while ((int32_t)(atomic_load(&s->meeting->here) - s->met) < 0)
		sched_yield();
}

/* Rank 0 writes odd numbers, rank 1 answers with the next even one. */
static void lines(struct state *s, uint64_t n)
{
	atomic_ulong *line = &s->meeting->line;
	uint64_t mine;

	for (; n; n--) {
		mine = s->turn += 2;
		if (!s->rank) {
			atomic_store_explicit(line, mine - 1,
					      memory_order_release);
			while (atomic_load_explicit(line, memory_order_acquire)
			       != mine)
				;
		} else {
			while (atomic_load_explicit(line, memory_order_acquire)
			       != mine - 1)
				;
			atomic_store_explicit(line, mine,
					      memory_order_release);
		}
	}
}

/* "all_reduce/3": which of the BOUND_WAYS. */
static bool bounds(struct state *s, const struct peer_request *q, uint64_t n)
{
	char what[sizeof(q->what)];
	const char *slash = strchr(q->what, '/');

	if (!slash)
		return false;
	snprintf(what, sizeof(what), "%.*s", (int)(slash - q->what), q->what);
	while (n--)
		if (!bound_turn(s->bound, what, q->bytes,
				(uint32_t)(slash[1] - '0')))
			return false;
	return true;
}

static bool turns(struct state *s, const struct peer_request *q, uint64_t n)
{
	if (strcmp(q->what, "line"))
		return bounds(s, q, n);
	if (s->rank < 2)
		lines(s, n);
	return true;
}

static void measure_rank(void *state, const struct peer_request *q,
			 struct peer_reply *reply)
{
	struct state *s = state;
	bool ok = turns(s, q, q->warmup);

	meet(s);
	reply->begin_ns = now_ns();
	ok &= turns(s, q, q->iterations);
	reply->end_ns = now_ns();
	if (!ok) {
		reply->error = EOPNOTSUPP;
		snprintf(reply->text, sizeof(reply->text), "no bound for %s",
			 q->what);
	}
}

static const struct worker_kind worker = {
	.name = "reference", .open = open_rank, .measure = measure_rank,
	.close = close_rank,
};

static void *open_group(const struct comparison *c, uint32_t ranks,
			char *version, char *why, size_t n)
{
	struct arg arg = { .bytes = cmp_largest(c, ranks) };
	struct group *g;

	arg.meeting = mmap(NULL, sizeof(*arg.meeting), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (arg.meeting == MAP_FAILED) {
		snprintf(why, n, "out of memory");
		return NULL;
	}
	g = cmp_fork(c, &worker, &arg, ranks, version, why, n);
	munmap(arg.meeting, sizeof(*arg.meeting));
	return g;
}

static int measure_line(void *state, const struct row *row, uint64_t warmup,
			uint64_t iterations, double *seconds, char *why,
			size_t n)
{
	(void)row;
	return cmp_ask(state, "line", 0, warmup, iterations, seconds, why, n);
}

static int ask_way(void *state, const struct row *row, unsigned int way,
		   uint64_t warmup, uint64_t iterations, double *seconds,
		   char *why, size_t n)
{
	char what[24];

	snprintf(what, sizeof(what), "%.20s/%u", row->what, way % BOUND_WAYS);
	return cmp_ask(state, what, row->bytes, warmup, iterations, seconds,
		       why, n);
}

/* Best of several tries of a way, each of some milliseconds. */
static int try_way(void *state, const struct row *row, unsigned int way,
		   double *best, char *why, size_t n)
{
	double seconds;
	uint64_t turns;
	int i, ret;

	ret = ask_way(state, row, way, 2, 2, best, why, n);
	turns = *best > 0 ? 1 + (uint64_t)(TRY_S / *best) : 1;
	for (i = 0; i < TRIES && !ret; i++) {
		ret = ask_way(state, row, way, 1, turns, &seconds, why, n);
		if (!ret && seconds < *best)
			*best = seconds;
	}
	return ret;
}

/* The fastest of them is what is measured from then on. */
static int prepare_bound(void *state, const struct row *row,
			 struct against *who)
{
	double seconds, best = 0;
	unsigned int i;
	int ret;

	for (i = 0; i < BOUND_WAYS; i++) {
		ret = try_way(state, row, i, &seconds, who->why,
			      sizeof(who->why));
		if (ret)
			return ret;
		if (i && seconds >= best)
			continue;
		best = seconds;
		who->way = i;
	}
	snprintf(who->how, sizeof(who->how), "%s stores, %s pages%s",
		 who->way & BOUND_STREAM ? "streaming" : "ordinary",
		 who->way & BOUND_SMALL ? "small" : "huge",
		 who->way & BOUND_AHEAD ? ", prefetching" : "");
	return 0;
}

static uint32_t way_of(const struct row *row)
{
	uint32_t i;

	for (i = 0; i + 1 < row->nwho; i++)
		if (row->who[i].id == C_BOUND)
			break;
	return row->who[i].way;
}

static int measure_bound(void *state, const struct row *row, uint64_t warmup,
			 uint64_t iterations, double *seconds, char *why,
			 size_t n)
{
	return ask_way(state, row, way_of(row), warmup, iterations, seconds,
		       why, n);
}

const struct contender cmp_line = {
	.id = C_LINE, .name = "2 x cache line", .word = "line",
	.open = open_group, .measure = measure_line, .close = cmp_group_close,
	.first = 1000,
};

const struct contender cmp_bound = {
	.id = C_BOUND, .name = "memory bound", .word = "bound",
	.prepare = prepare_bound, .measure = measure_bound, .shares = C_LINE,
	.first = 1,
};
