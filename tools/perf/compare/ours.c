// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ours: ranks over the loopback transport, with memory of fabrex_mr_alloc().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onesided.h"

#define SERVICE	7701

struct arg {
	int parent;
	uint64_t bytes;
};

struct state {
	struct onesided one;
	uint32_t ranks;
};

static int open_memory(struct state *s, uint64_t bytes)
{
	int ret = fabrex_mr_alloc(s->one.port, bytes, FABREX_MR_ALL,
				  &s->one.send);

	if (!ret)
		ret = fabrex_mr_alloc(s->one.port, bytes, FABREX_MR_ALL,
				      &s->one.recv);
	if (ret)
		return ret;
	memset(fabrex_mr_addr(s->one.send), 0, bytes);
	memset(fabrex_mr_addr(s->one.recv), 0, bytes);
	s->one.room = bytes;
	return 0;
}

/* A fabric of their own, with a port for each rank. */
static int open_port(struct state *s, const struct arg *a)
{
	char name[64], other[16];
	int ret;

	snprintf(name, sizeof(name), "loopback:perf-%d/r%u", a->parent,
		 s->one.rank);
	snprintf(other, sizeof(other), "r%u", !s->one.rank);
	ret = fabrex_open(name, &s->one.port);
	if (!ret)
		ret = open_memory(s, a->bytes);
	if (!ret && s->one.rank < 2)
		ret = onesided_open(&s->one, other, SERVICE);
	return ret;
}

static void close_rank(void *state)
{
	struct state *s = state;

	onesided_close(&s->one);
	fabrex_close(s->one.port);
	free(s);
}

static void *open_rank(const void *arg, uint32_t rank, uint32_t ranks,
		       struct peer_hello *hello)
{
	struct state *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return NULL;
	s->one.rank = rank;
	s->ranks = ranks;
	ret = open_port(s, arg);
	if (!ret) {
		snprintf(hello->text, sizeof(hello->text), "libfabrex %s",
			 fabrex_version());
		return s;
	}
	hello->error = -ret;
	snprintf(hello->text, sizeof(hello->text), "%s",
		 fabrex_strerror_last());
	close_rank(s);
	return NULL;
}

static void measure_rank(void *state, const struct peer_request *q,
			 struct peer_reply *reply)
{
	struct state *s = state;
	bool known, ok;

	ok = onesided_turns(&s->one, q->what, q->bytes, q->warmup, &known);
	reply->begin_ns = s->one.rank ? UINT64_MAX : now_ns();
	ok = ok && onesided_turns(&s->one, q->what, q->bytes, q->iterations,
				  &known);
	reply->end_ns = s->one.rank ? 0 : now_ns();
	if (ok)
		return;
	reply->error = known ? EIO : EOPNOTSUPP;
	snprintf(reply->text, sizeof(reply->text), "%s: %s", q->what,
		 fabrex_strerror_last());
}

static const struct worker_kind worker = {
	.name = "fabrex", .open = open_rank, .measure = measure_rank,
	.close = close_rank,
};

static void *open_group(const struct comparison *c, uint32_t ranks,
			char *version, char *why, size_t n)
{
	const struct arg arg = {
		.parent = getpid(), .bytes = cmp_largest(c, ranks),
	};

	return cmp_fork(c, &worker, &arg, ranks, version, why, n);
}

static int measure_memcpy(void *state, const struct row *row, uint64_t warmup,
			  uint64_t iterations, double *seconds, char *why,
			  size_t n)
{
	return cmp_ask(state, "memcpy", row->bytes, warmup, iterations,
		       seconds, why, n);
}

const struct contender cmp_ours = {
	.id = C_OURS, .name = "fabrex", .word = "fabrex", .open = open_group,
	.measure = cmp_group_measure, .close = cmp_group_close, .first = 1,
};

const struct contender cmp_memcpy = {
	.id = C_MEMCPY, .name = "memcpy", .word = "memcpy",
	.measure = measure_memcpy, .shares = C_OURS, .first = 1,
};
