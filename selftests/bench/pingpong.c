// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-pingpong poll|sleep, and the same with PEER SECONDS on another host:
 * 8 bytes there and back. poll: written into each other's memory, which both
 * look at, as perftest's ib_write_lat; sleep: datagrams, both wait for events,
 * as ib_send_lat -e. Prints half of a round trip as JSON. Used by peers.py.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <fabrex/fabrex.h>

#define SERVICE		7790
#define WAIT_MS		120000	/* on the slowest machine */
#define WARMUP		100
#define MAX_SAMPLES	(1u << 20)
#define LOOKS		(1u << 16)	/* at memory between two at the clock */
#define LAST		UINT64_MAX	/* what the client says at the end */
#define CELLS		64u

/* At the start of a region: what the peer writes, and what goes to it. */
struct cells {
	volatile uint64_t in;
	char apart[4088];
	volatile uint64_t out;
};

/* What the sides tell each other first. */
struct hello {
	struct fabrex_remote region;
	uint64_t key;		/* of the queue */
};

struct side {
	struct fabrex_port *port;
	struct fabrex_port_attr attr;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;
	struct cells *cells;
	struct hello own, peer;
	bool sleeps;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int fail(const char *what)
{
	fprintf(stderr, "bench-pingpong: %s: %s\n", what,
		fabrex_strerror_last());
	return 2;
}

static int open_side(struct side *s)
{
	const struct fabrex_queue_attr attr = {
		.sq_entries = CELLS, .rq_entries = CELLS, .cell_size = 64,
		.flags = s->sleeps ? FABREX_QUEUE_EVENTFD : 0,
	};

	if (fabrex_open(NULL, &s->port) ||
	    fabrex_query(s->port, &s->attr, sizeof(s->attr)))
		return fail("cannot open a port");
	if (fabrex_mr_alloc(s->port, sizeof(*s->cells), FABREX_MR_LOCAL_WRITE |
			    FABREX_MR_REMOTE_WRITE, &s->mr))
		return fail("cannot register memory");
	if (fabrex_queue_create(s->port, &attr, sizeof(attr), &s->queue))
		return fail("cannot create a queue");
	s->cells = fabrex_mr_addr(s->mr);
	fabrex_mr_remote(s->mr, &s->own.region);
	s->own.key = fabrex_queue_key(s->queue);
	return 0;
}

static int fail_wc(const struct fabrex_wc *wc)
{
	fprintf(stderr, "bench-pingpong: operation %u failed: %s\n",
		wc->opcode, fabrex_wc_str(wc->status));
	return 3;
}

static int nothing_came(void)
{
	fprintf(stderr, "bench-pingpong: nothing came from the peer for %d s\n",
		WAIT_MS / 1000);
	return 3;
}

/* ---- poll: writes ------------------------------------------------------ */

/* Completions of earlier writes are taken before the next. */
static int put_write(struct side *s, uint64_t value)
{
	struct fabrex_wc wc;

	while (fabrex_poll(s->queue, &wc, 1) > 0)
		if (wc.status != FABREX_WC_OK)
			return fail_wc(&wc);
	s->cells->out = value;
	if (fabrex_post_write(s->queue, s->mr, offsetof(struct cells, out),
			      &s->peer.region, offsetof(struct cells, in),
			      sizeof(value), 0, value))
		return fail("cannot post a write");
	return 0;
}

/* Until the peer has written something else than @old. */
static int get_write(struct side *s, uint64_t old, uint64_t *value)
{
	uint64_t deadline = 0;
	uint32_t looks = 0;

	while ((*value = s->cells->in) == old) {
#ifdef __x86_64__
		__builtin_ia32_pause();
#endif
		if (++looks % LOOKS)
			continue;
		if (!deadline)
			deadline = now_ns() + WAIT_MS * 1000000ull;
		if (now_ns() > deadline)
			return nothing_came();
	}
	return 0;
}

/* ---- sleep: datagrams -------------------------------------------------- */

static int put_datagram(struct side *s, uint64_t value)
{
	const struct fabrex_op op = {
		.opcode = FABREX_OP_SEND, .flags = FABREX_SQE_QUIET,
		.peer = (uint16_t)s->peer.region.peer,
		.inline_data = &value, .length = sizeof(value),
		.dest_key = s->peer.key,
	};

	return fabrex_post(s->queue, &op, 1) == 1 ? 0 :
	       fail("cannot post a datagram");
}

static int get_datagram(struct side *s, uint64_t *value)
{
	struct fabrex_wc wc;
	int n;

	while (!(n = fabrex_poll(s->queue, &wc, 1)))
		if (!fabrex_wait(s->queue, WAIT_MS))
			return nothing_came();
	if (n < 0)
		return fail("cannot poll");
	if (wc.opcode != FABREX_OP_RECV || wc.length != sizeof(*value))
		return fail_wc(&wc);
	memcpy(value, wc.data, sizeof(*value));
	fabrex_recv_done(s->queue, 1);
	return 0;
}

/* ---- both -------------------------------------------------------------- */

static int put(struct side *s, uint64_t value)
{
	return s->sleeps ? put_datagram(s, value) : put_write(s, value);
}

static int get(struct side *s, uint64_t old, uint64_t *value)
{
	return s->sleeps ? get_datagram(s, value) : get_write(s, old, value);
}

/* Whatever comes goes back. */
static int serve(struct side *s)
{
	size_t length = sizeof(s->peer);
	struct fabrex_listener *l;
	uint64_t value = 0;
	uint32_t peer;
	int ret;

	if (fabrex_listen(s->port, SERVICE, &l))
		return fail("cannot listen");
	if (fabrex_accept(l, &s->own, sizeof(s->own), &s->peer, &length, &peer,
			  WAIT_MS))
		return fail("no client");
	do {
		ret = get(s, value, &value);
		if (!ret && value != LAST)
			ret = put(s, value);
	} while (!ret && value != LAST);
	fabrex_listener_close(l);
	return ret;
}

static int once(struct side *s, uint64_t number)
{
	uint64_t value;
	int ret = put(s, number);

	if (!ret)
		ret = get(s, number - 1, &value);
	if (ret || value == number)
		return ret;
	fprintf(stderr, "bench-pingpong: %llu came back instead of %llu\n",
		(unsigned long long)value, (unsigned long long)number);
	return 4;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report(const struct side *s, uint32_t *ns, size_t n)
{
	qsort(ns, n, sizeof(*ns), compare);
	printf("{\"bytes\": 8, \"round_trips\": %zu, \"emulated\": %s, "
	       "\"min_us\": %.3f, \"median_us\": %.3f, \"p99_us\": %.3f}\n", n,
	       s->attr.emulated ? "true" : "false", ns[0] / 2e3,
	       ns[n / 2] / 2e3, ns[(n * 99) / 100] / 2e3);
}

static int measure(struct side *s, double seconds)
{
	uint64_t number = 0, begin, end = 0, t;
	uint32_t *ns = malloc(MAX_SAMPLES * sizeof(*ns));
	size_t n = 0;
	int ret = ns ? 0 : 2;

	while (!ret && number < WARMUP)
		ret = once(s, ++number);
	begin = now_ns();
	while (!ret && n < MAX_SAMPLES && end < begin + seconds * 1e9) {
		t = now_ns();
		ret = once(s, ++number);
		end = now_ns();
		ns[n++] = end - t < UINT32_MAX ? (uint32_t)(end - t) :
						 UINT32_MAX;
	}
	if (!ret)
		ret = put(s, LAST);
	if (!ret)
		report(s, ns, n);
	free(ns);
	return ret;
}

/* What was sent last has to leave before its queue goes. */
static int drain(struct side *s)
{
	const struct fabrex_op nop = { .opcode = FABREX_OP_NOP };
	uint64_t end = now_ns() + WAIT_MS * 1000000ull;
	struct fabrex_wc wc;

	if (fabrex_post(s->queue, &nop, 1) != 1)
		return fail("cannot post the last operation");
	while (fabrex_poll(s->queue, &wc, 1) <= 0 ||
	       wc.opcode != FABREX_OP_NOP)
		if (now_ns() > end)
			return fail("the last operation does not end");
	return 0;
}

static int call(struct side *s, const char *name, double seconds)
{
	size_t length = sizeof(s->peer);
	struct fabrex_peer peer;
	int ret;

	if (fabrex_peer_find(s->port, name, &peer) ||
	    fabrex_connect(s->port, peer.peer, SERVICE, &s->own,
			   sizeof(s->own), &s->peer, &length, WAIT_MS))
		return fail("cannot reach the server");
	ret = measure(s, seconds);
	return ret ? ret : drain(s);
}

int main(int argc, char **argv)
{
	double seconds = argc == 4 ? atof(argv[3]) : 0;
	struct side s = { 0 };
	int ret;

	s.sleeps = argc > 1 && !strcmp(argv[1], "sleep");
	if ((argc != 2 && (argc != 4 || seconds <= 0)) ||
	    (!s.sleeps && strcmp(argv[1], "poll"))) {
		fprintf(stderr, "usage: bench-pingpong poll|sleep [PEER SECONDS]\n");
		return 1;
	}
	ret = open_side(&s);
	if (!ret)
		ret = argc == 2 ? serve(&s) : call(&s, argv[2], seconds);
	fabrex_close(s.port);
	return ret;
}
