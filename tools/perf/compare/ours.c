// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ours: ranks over the loopback transport, with memory of fabrex_mr_alloc().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../coll/coll.h"
#include "onesided.h"

#define SERVICE		7701	/* of one-sided tests */
#define COMM_SERVICE	"fabric:7702"
#define MEET_MS		20000
#define MEET_RANK_MS	500		/* and for each rank */

struct arg {
	int parent;
	uint64_t bytes;
};

struct state {
	struct onesided one;
	struct fabrex_comm *comm;
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

static int open_comm(struct state *s)
{
	const struct fabrex_comm_attr attr = {
		.rank = s->one.rank, .size = s->ranks,
		.timeout_ms = MEET_MS + MEET_RANK_MS * (int)s->ranks,
		.bootstrap = COMM_SERVICE,
	};

	return fabrex_comm_create(s->one.port, &attr, sizeof(attr), &s->comm);
}

static void close_rank(void *state)
{
	struct state *s = state;

	fabrex_comm_destroy(s->comm);
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
	if (!ret)
		ret = open_comm(s);
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

/* There and back again between ranks 0 and 1. */
static int ping_pong(struct state *s, uint64_t bytes)
{
	void *send = fabrex_mr_addr(s->one.send);
	void *recv = fabrex_mr_addr(s->one.recv);
	uint32_t rank = s->one.rank;
	int ret;

	if (rank > 1)
		return 0;
	if (!rank) {
		ret = fabrex_send(s->comm, send, bytes, FABREX_UINT8, 1);
		return ret ? ret : fabrex_recv(s->comm, recv, bytes,
					       FABREX_UINT8, 1);
	}
	ret = fabrex_recv(s->comm, recv, bytes, FABREX_UINT8, 0);
	return ret ? ret : fabrex_send(s->comm, send, bytes, FABREX_UINT8, 0);
}

static bool ping_pongs(struct state *s, uint64_t bytes, uint64_t n)
{
	int ret = 0;

	while (n-- && !ret)
		ret = ping_pong(s, bytes);
	return !ret;
}

static bool collectives(struct state *s, const struct coll_kind *kind,
			uint64_t bytes, uint64_t n)
{
	const struct coll_call call = {
		.send = fabrex_mr_addr(s->one.send),
		.recv = fabrex_mr_addr(s->one.recv),
		.count = coll_kind_count(kind, bytes, sizeof(float), s->ranks),
		.type = FABREX_FLOAT32, .op = FABREX_SUM,
	};
	int ret = 0;

	while (n-- && !ret)
		ret = coll_kind_run(kind, s->comm, &call);
	return !ret;
}

/* False: not known, or failed. */
static bool turns(struct state *s, const struct peer_request *q, uint64_t n,
		  bool *known)
{
	const struct coll_kind *kind = coll_kind_find(q->what);

	*known = true;
	if (kind)
		return collectives(s, kind, q->bytes, n);
	if (!strcmp(q->what, "send_lat"))
		return ping_pongs(s, q->bytes, n);
	return onesided_turns(&s->one, q->what, q->bytes, n, known);
}

/* Of writes only rank 0 knows when they are done; rank 1 has nothing to say. */
static bool timed_here(const struct state *s, const struct peer_request *q)
{
	return !s->one.rank || coll_kind_find(q->what) ||
	       !strcmp(q->what, "send_lat");
}

static void measure_rank(void *state, const struct peer_request *q,
			 struct peer_reply *reply)
{
	struct state *s = state;
	bool known, ok = turns(s, q, q->warmup, &known);

	ok = ok && !fabrex_barrier(s->comm);
	reply->begin_ns = timed_here(s, q) ? now_ns() : UINT64_MAX;
	ok = ok && turns(s, q, q->iterations, &known);
	reply->end_ns = timed_here(s, q) ? now_ns() : 0;
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

	group_patience(ranks);
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
