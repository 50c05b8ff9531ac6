// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures a collective: for each size, out of place and in place, once with
 * fresh contents that are compared, then warm-up and iterations back to back,
 * after which what is out of place is compared again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"

#define MIN_ITERATIONS	20u	/* by time; fewer if they take this long: */
#define LONG_S		2.0

struct run {
	struct coll_rank *rank;
	const struct coll_kind *kind;
	struct coll_report *report;	/* rank 0 */
	struct coll_data *data;
	struct memory send, recv;
	struct coll_stream stream;	/* with --stream */
	struct coll_traffic traffic;
	void *staging;			/* copy of device memory */
	size_t element;
	struct coll_row row;
};

/* Who is told to stop tells the others, who may have been told, too. */
static int failed(const struct run *r, const char *what)
{
	return interrupted ? EXIT_INTERRUPTED : coll_fail(r->rank, what);
}

/* ---- ranks agree ------------------------------------------------------- */

static int agree(struct run *r, double *value, enum fabrex_redop op)
{
	double mine = *value;

	if (fabrex_all_reduce(r->rank->comm, &mine, value, 1, FABREX_FLOAT64,
			      op))
		return failed(r, "collecting results");
	return 0;
}

/* What one of them has seen, all do. */
static int stopped(struct run *r)
{
	double stop = interrupted;
	int ret = agree(r, &stop, FABREX_MAX);

	return ret ? ret : stop > 0 ? EXIT_INTERRUPTED : 0;
}

/* ---- memory ------------------------------------------------------------ */

static bool on_host(const struct run *r)
{
	return r->rank->o->memory == MEMORY_HOST ||
	       r->rank->o->memory == MEMORY_MALLOC;
}

static int open_memory(struct run *r)
{
	const struct coll_options *o = r->rank->o;
	struct fabrex_port *port = o->memory == MEMORY_HOST ? r->rank->port :
							      NULL;
	uint64_t room = o->size_to < 4096 ? 4096 : o->size_to;

	if (memory_open(&r->send, port, o->memory, room) ||
	    memory_open(&r->recv, port, o->memory, room))
		return fail_memory("cannot allocate memory");
	if (!on_host(r)) {
		r->staging = malloc(room);
		if (!r->staging)
			return coll_fail(r->rank, "out of memory");
	}
	return o->stream ? coll_stream_open(&r->stream, &r->send) : 0;
}

static void close_memory(struct run *r)
{
	if (r->stream.memory)
		coll_stream_close(&r->stream);
	if (r->send.addr)
		memory_close(&r->send);
	if (r->recv.addr)
		memory_close(&r->recv);
	free(r->staging);
}

static uint64_t send_elements(const struct run *r)
{
	return r->row.count * (r->kind->sends_all ? r->rank->ranks : 1);
}

static uint64_t recv_elements(const struct run *r)
{
	return r->row.count * (r->kind->recvs_all ? r->rank->ranks : 1);
}

/* ---- one place --------------------------------------------------------- */

/* Where the contribution is, and where the result. */
struct place {
	struct memory *send, *recv;
	uint64_t send_at, recv_at;
};

static struct place make_place(struct run *r, bool in_place)
{
	uint64_t own = r->rank->rank * r->row.count * r->element;
	struct place p = { .send = &r->send, .recv = &r->recv };

	if (!in_place)
		return p;
	if (r->kind->sends_all) {
		p.recv = &r->send;
		p.recv_at = own;
	} else {
		p.send = &r->recv;
		p.send_at = r->kind->recvs_all ? own : 0;
	}
	return p;
}

static int fill(struct run *r, const struct place *p)
{
	uint64_t bytes = send_elements(r) * r->element;
	uint64_t due = recv_elements(r) * r->element;

	if (on_host(r)) {
		memset(p->recv->addr + p->recv_at, 0x5a, due);
		coll_data_fill(r->data, p->send->addr + p->send_at,
			       send_elements(r));
		return 0;
	}
	memset(r->staging, 0x5a, due);
	if (memory_write(p->recv, p->recv_at, r->staging, due))
		return fail_memory("filling memory");
	coll_data_fill(r->data, r->staging, send_elements(r));
	if (memory_write(p->send, p->send_at, r->staging, bytes))
		return fail_memory("filling memory");
	return 0;
}

static int count_wrong(struct run *r, const struct place *p, uint64_t *wrong)
{
	const void *result = p->recv->addr + p->recv_at;

	if (!on_host(r)) {
		result = r->staging;
		if (memory_read(p->recv, p->recv_at, r->staging,
				recv_elements(r) * r->element))
			return fail_memory("reading results");
	}
	*wrong += coll_data_wrong(r->data, result, r->row.count);
	return 0;
}

/* Operations in a stream that are not waited for, at most. */
#define BACKLOG	4096u

static int repeat(struct run *r, const struct place *p, uint64_t n)
{
	const struct coll_options *o = r->rank->o;
	const struct coll_call call = {
		.send = p->send->addr + p->send_at,
		.recv = p->recv->addr + p->recv_at, .count = r->row.count,
		.type = o->type, .op = o->op, .root = o->root,
	};

	for (; n && !interrupted; n--)
		if (o->stream ? coll_stream_put(&r->stream, r->kind,
						r->rank->comm, &call) :
				coll_kind_run(r->kind, r->rank->comm, &call))
			return failed(r, r->kind->name);
		else if (o->stream && !(n % BACKLOG) &&
			 coll_stream_wait(&r->stream))
			return failed(r, r->kind->name);
	if (!n && o->stream && coll_stream_wait(&r->stream))
		return failed(r, r->kind->name);
	if (!n)
		return 0;
	fabrex_comm_abort(r->rank->comm);
	return EXIT_INTERRUPTED;
}

/* Seconds of one iteration at the slowest rank. */
static int measure(struct run *r, const struct place *p, uint64_t n,
		   double *seconds)
{
	uint64_t begin;
	int ret;

	if (fabrex_barrier(r->rank->comm))
		return failed(r, "barrier");
	begin = now_ns();
	ret = repeat(r, p, n);
	*seconds = (double)(now_ns() - begin) / 1e9 / (double)n;
	return ret ? ret : agree(r, seconds, FABREX_MAX);
}

/* A rank that knows the others' times knows that they have ended. */
static int measure_counted(struct run *r, const struct place *p,
			   struct coll_place *result)
{
	int ret = coll_traffic_begin(&r->traffic, r->rank);

	if (!ret)
		ret = measure(r, p, result->iterations, &result->seconds);
	return ret ? ret : coll_traffic_end(&r->traffic, r->rank,
					    &result->moved);
}

/* The same at every rank, because the time is. */
static uint64_t iterations(const struct run *r, double seconds)
{
	const struct coll_options *o = r->rank->o;
	double n = o->seconds / seconds;

	if (o->iterations)
		return o->iterations;
	if (n < MIN_ITERATIONS && seconds * MIN_ITERATIONS < LONG_S)
		return MIN_ITERATIONS;
	return n < 2 ? 2 : n > 1e9 ? 1000000000u : (uint64_t)n;
}

/* @lasts: seconds that it will take; 0: not known. */
static void progress(struct run *r, bool in_place, const char *what,
		     double lasts)
{
	char text[64];

	if (!r->report)
		return;
	snprintf(text, sizeof(text), "%s, %s",
		 in_place ? "in place" : "out of place", what);
	coll_report_progress(r->report, r->row.bytes, text, lasts);
}

static int check(struct run *r, const struct place *p, bool in_place,
		 double *wrong)
{
	uint64_t mine = 0;
	int ret = 0;

	if (!r->rank->o->check || r->kind->id == FABREX_BARRIER)
		return 0;
	progress(r, in_place, "comparing results", 0);
	ret = count_wrong(r, p, &mine);
	*wrong += (double)mine;
	return ret;
}

static int run_timed(struct run *r, const struct place *p, bool in_place,
		     struct coll_place *result)
{
	const struct coll_options *o = r->rank->o;
	int ret = 0;

	progress(r, in_place, "warm-up", 0);
	if (o->warmup || !o->iterations)
		ret = measure(r, p, o->warmup ? o->warmup : 1,
			      &result->seconds);
	if (ret)
		return ret;
	result->iterations = iterations(r, result->seconds);
	r->row.iterations = result->iterations;
	progress(r, in_place, "measuring", result->seconds *
		 (double)result->iterations);
	return measure_counted(r, p, result);
}

static int run_place(struct run *r, bool in_place, struct coll_place *result)
{
	const struct place p = make_place(r, in_place);
	double wrong = 0;
	int ret = stopped(r);

	if (!ret)
		ret = fill(r, &p);
	if (!ret)
		ret = repeat(r, &p, 1);
	if (!ret)
		ret = check(r, &p, in_place, &wrong);
	if (!ret)
		ret = run_timed(r, &p, in_place, result);
	if (!ret && !in_place)
		ret = check(r, &p, in_place, &wrong);
	if (!ret)
		ret = agree(r, &wrong, FABREX_SUM);
	result->wrong = (uint64_t)wrong;
	result->done = !ret;
	return ret;
}

/* ---- all sizes --------------------------------------------------------- */

static int run_size(struct run *r, uint64_t bytes)
{
	const struct coll_kind *k = r->kind;
	uint32_t ranks = r->rank->ranks;
	int ret;

	memset(&r->row, 0, sizeof(r->row));
	r->row.count = coll_kind_count(k, bytes, r->element, ranks);
	r->row.bytes = coll_kind_bytes(k, r->row.count, r->element, ranks);
	if (!k->id || fabrex_comm_algorithm(r->rank->comm,
					    (enum fabrex_coll_kind)k->id,
					    r->row.bytes, r->row.algorithm,
					    sizeof(r->row.algorithm)))
		snprintf(r->row.algorithm, sizeof(r->row.algorithm), "-");
	ret = run_place(r, false, &r->row.out);
	if (!ret && k->in_place)
		ret = run_place(r, true, &r->row.in);
	if (!ret && r->report)
		coll_report_row(r->report, &r->row);
	if (!ret && r->row.out.wrong + r->row.in.wrong)
		ret = EXIT_MISMATCH;
	return ret;
}

/* Wrong results do not end the test, but are its result. */
static int run_sizes(struct run *r)
{
	const struct coll_options *o = r->rank->o;
	int ret = 0, code = 0;
	uint64_t bytes;

	if (r->kind->id == FABREX_BARRIER)
		return run_size(r, 0);
	for (bytes = o->size_from; bytes <= o->size_to && !ret;
	     bytes *= o->size_factor) {
		ret = run_size(r, bytes);
		if (ret == EXIT_MISMATCH) {
			code = ret;
			ret = 0;
		}
	}
	return ret ? ret : code;
}

static int prepare(struct run *r)
{
	const struct coll_options *o = r->rank->o;

	if (r->kind->rooted && o->root >= r->rank->ranks) {
		fprintf(stderr, "fabrex-perf: --root: there is no rank %u among %u\n",
			o->root, r->rank->ranks);
		return EXIT_USAGE;
	}
	r->data = coll_data_make(r->kind, o->type, o->op, o->root,
				 r->rank->rank, r->rank->ranks);
	if (!r->data) {
		fprintf(stderr, "fabrex-perf: out of memory\n");
		return EXIT_SETUP;
	}
	return open_memory(r);
}

int coll_run(struct coll_rank *rank)
{
	struct run r = {
		.rank = rank, .kind = rank->o->kind,
		.element = fabrex_datatype_size(rank->o->type),
	};
	int ret = prepare(&r);

	if (!ret)
		ret = coll_traffic_open(&r.traffic, rank);
	if (!ret && !rank->rank)
		r.report = coll_report_begin(rank);
	if (!ret)
		ret = run_sizes(&r);
	if (r.report)
		ret = coll_report_end(r.report, ret);
	/* What is under way still accesses the buffers. */
	if (ret) {
		fabrex_comm_destroy(rank->comm);
		rank->comm = NULL;
	}
	close_memory(&r);
	if (r.data)
		coll_data_free(r.data);
	return ret;
}
