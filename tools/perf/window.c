// SPDX-License-Identifier: GPL-2.0-only
/*
 * window-lat: a store of `size' bytes through a window and the flush that
 * proves its arrival. window-bw: stores through the window, one flush a turn.
 */
#include <string.h>

#include "base/crc32c.h"
#include "perf.h"

#define MAX_SAMPLES	(1u << 18)
#define TURN		(256u << 10)	/* bytes of window-bw between flushes */

struct view {
	const struct options *o;
	const struct test *test;
	struct session *s;
	struct report *report;
	struct fabrex_window *window;
	volatile uint8_t *addr;
	struct samples samples;
	uint64_t size;
	uint64_t turns;		/* stores of size bytes between flushes */
};

/* Eight bytes a store, as the window takes them. */
static void store(volatile uint8_t *to, const uint8_t *from, uint64_t n)
{
	uint64_t v;

	for (; n >= 8; n -= 8, to += 8, from += 8) {
		memcpy(&v, from, 8);
		*(volatile uint64_t *)to = v;
	}
	for (; n; n--)
		*to++ = *from++;
}

static int repeat(struct view *v, uint64_t iterations, double seconds,
		  struct result *res)
{
	uint64_t begin = now_ns(), now = begin, t, i;
	uint64_t deadline = begin + (uint64_t)(seconds * 1e9);

	memset(res, 0, sizeof(*res));
	v->samples.n = v->samples.seen = 0;
	while (iterations ? res->iterations < iterations : now < deadline) {
		t = now_ns();
		for (i = 0; i < v->turns; i++)
			store(v->addr + i * v->size,
			      v->s->memory.addr + i * v->size, v->size);
		if (fabrex_window_flush(v->window))
			return fail_setup("flush of the window");
		now = now_ns();
		samples_add(&v->samples, now - t);
		res->iterations += v->turns;
		if (interrupted)
			return EXIT_INTERRUPTED;
		report_progress(v->report, v->size, iterations ?
				(double)res->iterations / (double)iterations :
				(double)(now - begin) / 1e9 / seconds);
	}
	res->size = v->size;
	res->bytes = res->iterations * v->size;
	res->seconds = (double)(now - begin) / 1e9;
	result_latency(res, &v->samples, 1);
	return 0;
}

static int verify(struct view *v)
{
	uint64_t n = v->turns * v->size, theirs = 0;
	uint32_t mine = fxi_crc32c(0, v->s->memory.addr, n);
	int ret = session_ask(v->s, MSG_SUM, 0, n, &theirs);

	if (ret || theirs == mine)
		return ret;
	fprintf(stderr, "fabrex-perf: %s: contents differ: crc32c %08x here, %08x at the peer\n",
		v->test->name, mine, (uint32_t)theirs);
	return EXIT_MISMATCH;
}

static int run_size(struct view *v)
{
	struct result res;
	int ret = 0;

	v->turns = v->test->id == T_WINDOW_BW && v->size < TURN ?
		   TURN / v->size : 1;
	fill_pattern(v->s->memory.addr, v->turns * v->size, v->size);
	if (v->o->warmup > 0)
		ret = repeat(v, v->o->iterations ? 1 : 0, v->o->warmup, &res);
	if (!ret)
		ret = repeat(v, v->o->iterations, v->o->seconds, &res);
	if (!ret && v->o->verify) {
		ret = verify(v);
		res.verified = !ret;
	}
	if (!ret)
		report_row(v->report, &res);
	return ret;
}

int run_window(const struct options *o, const struct test *test)
{
	uint64_t region = o->size_to < TURN ? TURN : o->size_to;
	struct session s;
	struct report report;
	struct view v = { .o = o, .test = test, .s = &s, .report = &report };
	int ret;

	if (o->memory != MEMORY_HOST && o->memory != MEMORY_MALLOC) {
		fprintf(stderr, "fabrex-perf: %s: the processor stores from memory of the host; use --memory on the server's side\n",
			test->name);
		return EXIT_USAGE;
	}
	ret = session_open(&s, o, test, region);
	if (ret)
		return ret;
	if (fabrex_window_map(s.port, &s.remote, 0, region,
			      FABREX_MR_REMOTE_READ | FABREX_MR_REMOTE_WRITE,
			      &v.window) ||
	    samples_init(&v.samples, MAX_SAMPLES)) {
		ret = fail_setup("cannot map the window");
		session_close(&s);
		return ret;
	}
	v.addr = fabrex_window_addr(v.window);
	report_begin(&report, o, test, &s);
	for (v.size = o->size_from; !ret && v.size <= o->size_to;
	     v.size *= o->size_factor)
		ret = run_size(&v);
	ret = report_end(&report, ret);
	samples_free(&v.samples);
	session_close(&s);
	return ret;
}
