// SPDX-License-Identifier: GPL-2.0-only
/*
 * write-lat, read-lat, atomic-lat: one operation at a time, from before the
 * post until its completion is polled. send-lat: half of a datagram's way to
 * the server's echo and back.
 */
#include <errno.h>
#include <string.h>

#include "perf.h"

#define MAX_SAMPLES	(1u << 18)
#define WAIT_MS		100

struct run {
	const struct options *o;
	const struct test *test;
	struct session *s;
	struct report *report;
	struct samples samples;
	struct fabrex_op op;
	struct fabrex_queue *queue;
	uint64_t size;
	/* One operation, start to end; 0 or an exit code. */
	int (*once)(struct run *r);
};

static int wait_own(struct run *r)
{
	struct fabrex_wc wc;
	int n;

	do {
		if (r->o->events)
			fabrex_wait(r->queue, WAIT_MS);
		n = fabrex_poll(r->queue, &wc, 1);
	} while (!n && !interrupted);
	if (n < 0)
		return fail_setup(r->test->name);
	if (!n)
		return EXIT_INTERRUPTED;
	return wc.status ? fail_wc(&wc, r->test->name) : 0;
}

static int once_own(struct run *r)
{
	if (fabrex_post(r->queue, &r->op, 1) != 1)
		return fail_setup(r->test->name);
	return wait_own(r);
}

/* Out and back; the send's own completion is quiet. */
static int once_echo(struct run *r)
{
	struct fabrex_wc wc;
	bool mine;
	int n;

	if (fabrex_post(r->queue, &r->op, 1) != 1)
		return fail_setup(r->test->name);
	for (;;) {
		if (r->o->events)
			fabrex_wait(r->queue, WAIT_MS);
		n = fabrex_poll(r->queue, &wc, 1);
		if (n < 0)
			return fail_setup(r->test->name);
		if (interrupted)
			return EXIT_INTERRUPTED;
		if (!n)
			continue;
		if (wc.opcode != FABREX_OP_RECV)
			return fail_wc(&wc, r->test->name);
		mine = wc.imm == MSG_ECHO && wc.length == r->size;
		fabrex_recv_done(r->queue, 1);
		if (mine)
			return 0;
	}
}

static int repeat(struct run *r, uint64_t iterations, double seconds,
		  struct result *res)
{
	uint64_t begin = now_ns(), deadline, t, now = begin;
	int ret;

	deadline = begin + (uint64_t)(seconds * 1e9);
	memset(res, 0, sizeof(*res));
	r->samples.n = r->samples.seen = 0;
	while (iterations ? res->iterations < iterations : now < deadline) {
		t = now_ns();
		ret = r->once(r);
		now = now_ns();
		if (ret)
			return ret;
		samples_add(&r->samples, r->test->id == T_SEND_LAT ?
					 (now - t) / 2 : now - t);
		res->iterations++;
		if (!(res->iterations % 1024))
			report_progress(r->report, r->size, iterations ?
				(double)res->iterations / (double)iterations :
				(double)(now - begin) / 1e9 / seconds);
	}
	res->size = r->size;
	res->bytes = res->iterations * r->size;
	res->seconds = (double)(now - begin) / 1e9;
	result_latency(res, &r->samples, 1);
	return 0;
}

static int run_size(struct run *r)
{
	struct result res;
	int ret = 0;

	r->op.length = r->size;
	if (r->o->warmup > 0)
		ret = repeat(r, r->o->iterations ? r->o->iterations / 10 + 1 :
						   0, r->o->warmup, &res);
	if (!ret)
		ret = repeat(r, r->o->iterations, r->o->seconds, &res);
	if (!ret)
		report_row(r->report, &res);
	return ret;
}

static int run_sizes(struct run *r)
{
	const struct options *o = r->o;
	int ret = 0;

	if (samples_init(&r->samples, MAX_SAMPLES)) {
		fprintf(stderr, "fabrex-perf: out of memory\n");
		return EXIT_SETUP;
	}
	report_begin(r->report, o, r->test, r->s);
	for (r->size = o->size_from; !ret && r->size <= o->size_to;
	     r->size *= o->size_factor)
		ret = run_size(r);
	ret = report_end(r->report, ret);
	samples_free(&r->samples);
	return ret;
}

static uint8_t opcode_of(enum test_id id)
{
	switch (id) {
	case T_READ_LAT:
		return FABREX_OP_READ;
	case T_ATOMIC_LAT:
		return FABREX_OP_FETCH_ADD;
	default:
		return FABREX_OP_WRITE;
	}
}

/* Every addition has left its trace, no more and no less. */
static int verify_atomics(struct run *r, uint64_t added)
{
	struct fabrex_op op = r->op;
	uint64_t value;

	r->op.operand = 0;
	if (once_own(r))
		return EXIT_FAILED;
	r->op = op;
	if (memory_read(&r->s->memory, 0, &value, sizeof(value)))
		return fail_memory("reading the counter");
	if (value == added)
		return 0;
	fprintf(stderr, "fabrex-perf: atomic-lat: counter is %llu after %llu additions\n",
		(unsigned long long)value, (unsigned long long)added);
	return EXIT_MISMATCH;
}

static uint64_t additions;

static int once_add(struct run *r)
{
	additions++;
	return once_own(r);
}

int run_latency(const struct options *o, const struct test *test)
{
	const struct fabrex_queue_attr attr = {
		.sq_entries = FABREX_SQ_MIN,
		.flags = o->events ? FABREX_QUEUE_EVENTFD : 0,
	};
	struct session s;
	struct report report;
	struct run r = { .o = o, .test = test, .s = &s, .report = &report,
			 .once = test->id == T_ATOMIC_LAT ? once_add :
							    once_own };
	int ret;

	ret = session_open(&s, o, test, o->size_to < 4096 ? 4096 :
							    o->size_to);
	if (ret)
		return ret;
	r.op.opcode = opcode_of(test->id);
	r.op.peer = (uint16_t)s.peer.peer;
	r.op.mr = s.memory.mr;
	r.op.rkey = s.remote.rkey;
	r.op.operand = 1;
	additions = 0;
	if (o->check && test->id != T_ATOMIC_LAT)
		r.op.flags = FABREX_SQE_CHECK;
	if (fabrex_queue_create(s.port, &attr, sizeof(attr), &r.queue))
		ret = fail_setup("cannot create a queue");
	else
		ret = run_sizes(&r);
	if (!ret && test->id == T_ATOMIC_LAT && o->verify)
		ret = verify_atomics(&r, additions);
	session_close(&s);
	return ret;
}

int run_send_latency(const struct options *o, const struct test *test)
{
	struct session s;
	struct report report;
	struct run r = { .o = o, .test = test, .s = &s, .report = &report,
			 .once = once_echo };
	int ret;

	if (o->size_to > PERF_CELL) {
		fprintf(stderr, "fabrex-perf: send-lat: datagrams have at most %u bytes; use --sizes up to that\n",
			PERF_CELL);
		return EXIT_USAGE;
	}
	ret = session_open(&s, o, test, PERF_CELL);
	if (ret)
		return ret;
	r.queue = s.control.queue;
	r.op.opcode = FABREX_OP_SEND;
	r.op.flags = FABREX_SQE_QUIET;
	r.op.peer = (uint16_t)s.peer.peer;
	r.op.imm = MSG_ECHO;
	r.op.mr = s.memory.mr;
	r.op.dest_key = s.control.dest_key;
	ret = run_sizes(&r);
	session_close(&s);
	return ret;
}
