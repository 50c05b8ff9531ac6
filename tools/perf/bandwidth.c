// SPDX-License-Identifier: GPL-2.0-only
/*
 * write-bw, read-bw and msg-rate: each queue has a thread that keeps `depth'
 * operations outstanding, posted in batches, until time or count is up.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define SPAN		(16ull << 20)	/* memory cycled through, each queue */
#define MAX_SAMPLES	(1u << 17)
#define SMALL		4096u		/* below: time one batch in 32 */
#define POLL_BATCH	32
#define WAIT_MS		100

struct worker {
	struct fabrex_queue *queue;
	struct fabrex_op *ops;
	uint64_t *posted_at;	/* by user_data % depth; 0: not timed */
	struct samples samples;
	uint64_t base;		/* of its part of the regions */
	uint64_t slots;
	pthread_t thread;
	/* of the run in progress */
	uint64_t posted, done, limit, batches;
	uint64_t begin, end;
	struct fabrex_wc bad;	/* first that failed */
	int error;		/* negative errno of post or poll */
	char sentence[320];	/* and its reason, which is the thread's */
	struct load *load;
};

struct load {
	const struct options *o;
	const struct test *test;
	struct session *s;
	struct report *report;
	uint64_t size;
	uint64_t deadline;	/* or UINT64_MAX */
	struct worker *worker;
	pthread_barrier_t start;
	atomic_bool stop;
};

static uint64_t stride(uint64_t size)
{
	return (size + 63) & ~63ull;
}

static uint64_t slots_of(const struct options *o, uint64_t size)
{
	uint64_t n = SPAN / stride(size);

	if (n > o->depth)
		n = o->depth;
	return n ? n : 1;
}

/* Bytes of one queue's part, enough for every size. */
static uint64_t part_of(const struct options *o)
{
	uint64_t size, most = 0, bytes;

	for (size = o->size_from; size <= o->size_to; size *= o->size_factor) {
		bytes = stride(size) * slots_of(o, size);
		if (bytes > most)
			most = bytes;
	}
	return (most + 4095) & ~4095ull;
}

static void fill_op(const struct worker *w, struct fabrex_op *op, uint64_t i)
{
	const struct load *l = w->load;

	op->user_data = i;
	op->offset = w->base + i % w->slots * stride(l->size);
	op->roffset = op->offset;
}

static bool timed(const struct worker *w)
{
	return w->load->size >= SMALL || !(w->batches % 32);
}

/* As many as fit; 0 or a negative errno. */
static int post_some(struct worker *w)
{
	const struct options *o = w->load->o;
	uint64_t n = o->depth - (w->posted - w->done), i, now;
	int ret;

	if (n > o->batch)
		n = o->batch;
	if (n > w->limit - w->posted)
		n = w->limit - w->posted;
	now = timed(w) ? now_ns() : 0;
	for (i = 0; i < n; i++) {
		fill_op(w, &w->ops[i], w->posted + i);
		w->posted_at[(w->posted + i) % o->depth] = now;
	}
	ret = fabrex_post(w->queue, w->ops, (unsigned int)n);
	if (ret < 0)
		return ret == -EAGAIN ? 0 : ret;
	w->posted += (uint64_t)ret;
	w->batches++;
	return 0;
}

static int poll_some(struct worker *w)
{
	struct fabrex_wc wc[POLL_BATCH];
	uint64_t now = 0, at;
	int i, n;

	n = fabrex_poll(w->queue, wc, POLL_BATCH);
	for (i = 0; i < n; i++) {
		if (wc[i].status && !w->bad.status)
			w->bad = wc[i];
		at = w->posted_at[wc[i].user_data % w->load->o->depth];
		if (!at)
			continue;
		if (!now)
			now = now_ns();
		samples_add(&w->samples, now - at);
	}
	if (n > 0)
		w->done += (uint64_t)n;
	return n < 0 ? n : 0;
}

/* Nothing can be posted until something completes. */
static int wait_some(struct worker *w)
{
	int ret;

	if (!w->load->o->events || w->done == w->posted ||
	    (w->posted < w->limit &&
	     w->posted - w->done + w->load->o->batch <= w->load->o->depth))
		return 0;
	ret = fabrex_wait(w->queue, WAIT_MS);
	return ret < 0 && ret != -EINTR ? ret : 0;
}

static void check_time(struct worker *w, uint64_t turn)
{
	struct load *l = w->load;

	if (turn % 64 && !l->o->events)
		return;
	if (interrupted || l->stop || now_ns() >= l->deadline)
		w->limit = w->posted;
	if (w == l->worker && turn % 4096 == 0)
		report_progress(l->report, l->size, l->o->iterations ?
				(double)w->done / (double)w->limit :
				1 - ((double)l->deadline - (double)now_ns()) /
				    1e9 / l->o->seconds);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t turn;

	pthread_barrier_wait(&w->load->start);
	w->begin = now_ns();
	for (turn = 1; w->done < w->limit && !w->error; turn++) {
		if (w->posted < w->limit &&
		    w->posted - w->done + w->load->o->batch <=
		    w->load->o->depth)
			w->error = post_some(w);
		if (!w->error)
			w->error = wait_some(w);
		if (!w->error)
			w->error = poll_some(w);
		if (w->bad.status)
			w->limit = w->posted;
		check_time(w, turn);
	}
	w->end = now_ns();
	if (w->error)
		snprintf(w->sentence, sizeof(w->sentence), "%s",
			 fabrex_strerror_last());
	if (w->error || w->bad.status)
		w->load->stop = true;
	return NULL;
}

static void set_ops(struct worker *w)
{
	const struct load *l = w->load;
	uint32_t i;

	memset(w->ops, 0, l->o->batch * sizeof(*w->ops));
	for (i = 0; i < l->o->batch; i++) {
		w->ops[i].opcode = l->test->id == T_READ_BW ? FABREX_OP_READ :
							      FABREX_OP_WRITE;
		w->ops[i].flags = l->o->check ? FABREX_SQE_CHECK : 0;
		w->ops[i].peer = (uint16_t)l->s->peer.peer;
		w->ops[i].mr = l->s->memory.mr;
		w->ops[i].length = l->size;
		w->ops[i].rkey = l->s->remote.rkey;
	}
}

static int run_threads(struct load *l, uint64_t iterations, double seconds)
{
	uint32_t i, n = l->o->queues;

	l->deadline = iterations ? UINT64_MAX :
		      now_ns() + (uint64_t)(seconds * 1e9);
	pthread_barrier_init(&l->start, NULL, n);
	for (i = 0; i < n; i++) {
		struct worker *w = &l->worker[i];

		w->slots = slots_of(l->o, l->size);
		w->posted = w->done = w->batches = 0;
		w->limit = iterations ? iterations : UINT64_MAX;
		w->samples.n = w->samples.seen = 0;
		memset(&w->bad, 0, sizeof(w->bad));
		set_ops(w);
	}
	for (i = 1; i < n; i++)
		if (pthread_create(&l->worker[i].thread, NULL, work,
				   &l->worker[i])) {
			fprintf(stderr, "fabrex-perf: cannot start thread %u; use fewer queues\n",
				i);
			exit(EXIT_SETUP);
		}
	work(&l->worker[0]);
	for (i = 1; i < n; i++)
		pthread_join(l->worker[i].thread, NULL);
	pthread_barrier_destroy(&l->start);
	for (i = 0; i < n; i++) {
		if (l->worker[i].bad.status)
			return fail_wc(&l->worker[i].bad, l->test->name);
		if (l->worker[i].error) {
			fprintf(stderr, "fabrex-perf: %s: %s\n",
				l->test->name, l->worker[i].sentence);
			return EXIT_SETUP;
		}
	}
	return interrupted ? EXIT_INTERRUPTED : 0;
}

static void collect(struct load *l, struct result *r)
{
	uint64_t begin = UINT64_MAX, end = 0;
	struct samples all[MAX_QUEUES];
	uint32_t i;

	memset(r, 0, sizeof(*r));
	r->size = l->size;
	for (i = 0; i < l->o->queues; i++) {
		const struct worker *w = &l->worker[i];

		r->iterations += w->done;
		begin = w->begin < begin ? w->begin : begin;
		end = w->end > end ? w->end : end;
		all[i] = w->samples;
	}
	r->bytes = r->iterations * l->size;
	r->seconds = (double)(end - begin) / 1e9;
	result_latency(r, all, l->o->queues);
}

/* Source of a queue's run gets a pattern of its own. */
static int verify_begin(struct load *l, struct worker *w, uint64_t seed)
{
	uint64_t used = stride(l->size) * w->slots;

	if (l->test->id == T_READ_BW)
		return session_ask(l->s, MSG_FILL, w->base, used, &seed);
	return memory_fill(&l->s->memory, w->base, used, seed) ?
	       fail_memory("filling memory") : 0;
}

/* Bytes from the base on that were all written: gaps between slots are not. */
static uint64_t comparable(const struct load *l, const struct worker *w)
{
	if (l->size % 64)
		return l->size;
	return l->size * (w->done < w->slots ? w->done : w->slots);
}

static int verify_end(struct load *l, struct worker *w)
{
	uint64_t used = comparable(l, w), theirs = 0;
	uint32_t mine;
	int ret = session_ask(l->s, MSG_SUM, w->base, used, &theirs);

	if (ret)
		return ret;
	if (memory_crc(&l->s->memory, w->base, used, &mine))
		return fail_memory("checksum");
	if (theirs == mine)
		return 0;
	fprintf(stderr, "fabrex-perf: %s: contents differ: crc32c %08x here, %08x at the peer\n",
		l->test->name, mine, (uint32_t)theirs);
	return EXIT_MISMATCH;
}

static int verify(struct load *l, bool after)
{
	int ret = 0;
	uint32_t i;

	for (i = 0; !ret && i < l->o->queues; i++) {
		struct worker *w = &l->worker[i];

		w->slots = slots_of(l->o, l->size);
		ret = after ? verify_end(l, w) :
			      verify_begin(l, w, l->size + i);
	}
	return ret;
}

static int run_size(struct load *l, struct report *report)
{
	uint64_t warm = l->o->iterations / 10 + 1;
	struct result r;
	int ret = 0;

	if (l->o->verify)
		ret = verify(l, false);
	if (!ret && l->o->warmup > 0)
		ret = run_threads(l, l->o->iterations ? warm : 0,
				  l->o->warmup);
	if (!ret)
		ret = run_threads(l, l->o->iterations, l->o->seconds);
	if (ret)
		return ret;
	collect(l, &r);
	if (l->o->verify) {
		ret = verify(l, true);
		r.verified = !ret;
	}
	if (!ret)
		report_row(report, &r);
	return ret;
}

static uint32_t ring_size(uint32_t depth)
{
	uint32_t n = FABREX_SQ_MIN;

	while (n < depth)
		n <<= 1;
	return n;
}

static int open_workers(struct load *l, uint64_t part)
{
	const struct options *o = l->o;
	const struct fabrex_queue_attr attr = {
		.sq_entries = ring_size(o->depth),
		.flags = o->events ? FABREX_QUEUE_EVENTFD : 0,
	};
	uint32_t i;

	for (i = 0; i < o->queues; i++) {
		struct worker *w = &l->worker[i];

		w->load = l;
		w->base = i * part;
		w->ops = calloc(o->batch, sizeof(*w->ops));
		w->posted_at = calloc(o->depth, sizeof(*w->posted_at));
		if (!w->ops || !w->posted_at ||
		    samples_init(&w->samples, MAX_SAMPLES)) {
			fprintf(stderr, "fabrex-perf: out of memory\n");
			return EXIT_SETUP;
		}
		if (fabrex_queue_create(l->s->port, &attr, sizeof(attr),
					&w->queue))
			return fail_setup("cannot create a queue");
	}
	return 0;
}

static void free_workers(struct load *l)
{
	uint32_t i;

	for (i = 0; i < l->o->queues; i++) {
		free(l->worker[i].ops);
		free(l->worker[i].posted_at);
		samples_free(&l->worker[i].samples);
	}
	free(l->worker);
}

int run_bandwidth(const struct options *o, const struct test *test)
{
	struct session s;
	struct report report;
	struct load l = { .o = o, .test = test, .s = &s, .report = &report };
	uint64_t part = part_of(o);
	int ret;

	ret = session_open(&s, o, test, part * o->queues);
	if (ret)
		return ret;
	l.worker = calloc(o->queues, sizeof(*l.worker));
	ret = l.worker ? open_workers(&l, part) : EXIT_SETUP;
	if (!ret) {
		report_begin(&report, o, test, &s);
		for (l.size = o->size_from; !ret && l.size <= o->size_to;
		     l.size *= o->size_factor)
			ret = run_size(&l, &report);
		ret = report_end(&report, ret);
	}
	session_close(&s);
	if (l.worker)
		free_workers(&l);
	return ret;
}
