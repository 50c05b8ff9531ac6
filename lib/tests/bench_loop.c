// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bench_loop [ROUNDS]: latency and bandwidth between two processes on a
 * loopback fabric, each on a processor of its own, beside what the hardware
 * does without us: a cache line to and fro, memcpy. Medians of ROUNDS (101),
 * interleaved. Latencies are half round trips.
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <fabrex/fabrex.h>

#define TRIPS	1000u
#define SIZE	(4u << 20)
#define COPIES	4u
#define SERVICE	7

enum { LINE, PUT, PUT64, SEND, SEND64, WRITE, READ, OTHER, MEMCPY, TESTS };

static const struct {
	const char *name;
	bool latency;
} tests[] = {
	[LINE] = { "cache line", true },
	[PUT] = { "write, 8 bytes", true },
	[PUT64] = { "write, 64 bytes", true },
	[SEND] = { "send, 8 bytes", true },
	[SEND64] = { "send, 64 bytes", true },
	[WRITE] = { "write, 4 MiB", false },
	[READ] = { "read, 4 MiB", false },
	[OTHER] = { "write to other memory, 4 MiB", false },
	[MEMCPY] = { "memcpy, 4 MiB", false },
};

struct side {
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr, *other;
	char *mine;
	struct hello {
		struct fabrex_remote remote, other;
		uint64_t key;
		uint32_t peer;
	} theirs;
	uint64_t *line;		/* of both */
	unsigned int me;
	uint64_t count;		/* of round trips, for both the same */
};

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void fail(void)
{
	fprintf(stderr, "bench_loop: %s\n", fabrex_strerror_last());
	exit(1);
}

static void pin(unsigned int number)
{
	cpu_set_t set, one;
	unsigned int i, n = 0;

	sched_getaffinity(0, sizeof(set), &set);
	number %= (unsigned int)CPU_COUNT(&set);
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set) && n++ == number)
			break;
	CPU_ZERO(&one);
	CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void swap(struct side *s, const struct hello *mine)
{
	size_t n = sizeof(s->theirs);
	struct fabrex_listener *listener;
	uint32_t peer;
	int ret;

	if (s->me) {
		ret = fabrex_listen(s->port, SERVICE, &listener);
		if (!ret)
			ret = fabrex_accept(listener, mine, sizeof(*mine),
					    &s->theirs, &n, &peer, 10000);
		if (!ret)
			fabrex_listener_close(listener);
	} else {
		struct fabrex_peer b;
		int tries = 10000;

		while ((ret = fabrex_peer_find(s->port, "b.0", &b)) && tries--)
			usleep(1000);
		if (!ret)
			ret = fabrex_connect(s->port, b.peer, SERVICE, mine,
					     sizeof(*mine), &s->theirs, &n,
					     10000);
	}
	if (ret)
		fail();
}

static void start(struct side *s, unsigned int me, const char *fabric)
{
	struct fabrex_queue_attr attr = { .rq_entries = 64, .cell_size = 256 };
	void *memory = aligned_alloc(4096, SIZE);
	struct fabrex_port_attr port;
	struct hello mine;
	char name[64];

	s->me = me;
	pin(me);
	snprintf(name, sizeof(name), "loopback:%s/%c.0", fabric, 'a' + me);
	memset(memory, 1, SIZE);
	if (fabrex_open(name, &s->port) ||
	    fabrex_queue_create(s->port, &attr, sizeof(attr), &s->queue) ||
	    fabrex_mr_alloc(s->port, 2 * SIZE, FABREX_MR_ALL, &s->mr) ||
	    fabrex_mr_register(s->port, memory, SIZE, FABREX_MR_ALL,
			       &s->other) ||
	    fabrex_query(s->port, &port, sizeof(port)))
		fail();
	s->mine = fabrex_mr_addr(s->mr);
	memset(s->mine, 1, 2 * SIZE);
	memset(s->mine, 0, 4096);
	fabrex_mr_remote(s->mr, &mine.remote);
	fabrex_mr_remote(s->other, &mine.other);
	mine.key = fabrex_queue_key(s->queue);
	mine.peer = port.peer;
	swap(s, &mine);
}

/* ---- latency ----------------------------------------------------------- */

static inline uint64_t look(const void *at)
{
	return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}

static void line_say(struct side *s)
{
	__atomic_store_n(&s->line[s->me * 16], s->count, __ATOMIC_RELEASE);
}

static void line_hear(struct side *s)
{
	while (look(&s->line[!s->me * 16]) != s->count)
		;
}

static void take_own(struct side *s)
{
	struct fabrex_wc wc;

	if (fabrex_poll(s->queue, &wc, 1) != 1 || wc.status)
		fail();
}

/* The last 8 bytes are the flag; it is written from where it stays. */
static void put_say(struct side *s, uint64_t size)
{
	memcpy(s->mine + 1024 + size - 8, &s->count, 8);
	if (fabrex_post_write(s->queue, s->mr, 1024, &s->theirs.remote, 0,
			      size, 0, 0))
		fail();
	take_own(s);
}

static void put_hear(struct side *s, uint64_t size)
{
	while (look(s->mine + size - 8) != s->count)
		;
}

static void send_say(struct side *s, uint64_t size)
{
	if (fabrex_post_send(s->queue, s->theirs.peer, s->theirs.key, s->mr,
			     1024, size, 0, 0))
		fail();
}

/* Polls take both kinds of completion, as programs do. */
static void send_hear(struct side *s, unsigned int own)
{
	unsigned int got = 0;
	struct fabrex_wc wc;
	int n;

	while (got < 1 || own) {
		n = fabrex_poll(s->queue, &wc, 1);
		if (n < 0 || (n && wc.status))
			fail();
		if (!n)
			continue;
		if (wc.opcode == FABREX_OP_RECV) {
			fabrex_recv_done(s->queue, 1);
			got++;
		} else {
			own--;
		}
	}
}

static void say(struct side *s, int test)
{
	if (test == LINE)
		line_say(s);
	else if (test == PUT || test == PUT64)
		put_say(s, test == PUT ? 8 : 64);
	else
		send_say(s, test == SEND ? 8 : 64);
}

static void hear(struct side *s, int test, unsigned int own)
{
	if (test == LINE)
		line_hear(s);
	else if (test == PUT || test == PUT64)
		put_hear(s, test == PUT ? 8 : 64);
	else
		send_hear(s, own);
}

static double trips(struct side *s, int test)
{
	double begin = seconds();
	unsigned int i;

	for (i = 0; i < TRIPS; i++) {
		s->count++;
		if (!s->me)
			say(s, test);
		hear(s, test, s->me ? i > 0 : 1);
		if (s->me)
			say(s, test);
	}
	if (s->me && (test == SEND || test == SEND64))
		take_own(s);
	return (seconds() - begin) / TRIPS / 2 * 1e9;
}

/* ---- bandwidth --------------------------------------------------------- */

static void copy_once(struct side *s, int test)
{
	const struct fabrex_remote *to = test == OTHER ? &s->theirs.other :
							 &s->theirs.remote;
	int ret;

	if (test == MEMCPY) {
		memcpy(s->mine, s->mine + SIZE, SIZE);
		__asm__ volatile("" ::: "memory");
		return;
	}
	if (test == READ)
		ret = fabrex_post_read(s->queue, s->mr, SIZE, to, 0, SIZE, 0,
				       0);
	else
		ret = fabrex_post_write(s->queue, s->mr, SIZE, to, 0, SIZE, 0,
					0);
	if (ret)
		fail();
	take_own(s);
}

/* The other side rests: what is measured is one processor and memory. */
static double copies(struct side *s, int test)
{
	double begin = seconds();
	unsigned int i;

	for (i = 0; !s->me && i < COPIES; i++)
		copy_once(s, test);
	begin = seconds() - begin;
	s->count++;
	line_say(s);
	while (look(&s->line[!s->me * 16]) < s->count)
		usleep(100);
	return (double)SIZE * COPIES / begin / 1e9;
}

/* ---- all --------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return d < 0 ? -1 : d > 0;
}

static void run(struct side *s, unsigned int rounds)
{
	double *results = calloc((size_t)TESTS * rounds, sizeof(*results));
	unsigned int r;
	int t;

	for (r = 0; r < rounds; r++)
		for (t = 0; t < TESTS; t++)
			results[(unsigned int)t * rounds + r] =
				tests[t].latency ? trips(s, t) : copies(s, t);
	for (t = 0; !s->me && t < TESTS; t++) {
		double *of = &results[(unsigned int)t * rounds];

		qsort(of, rounds, sizeof(*of), compare);
		printf("%-30s %7.1f %s (%.1f to %.1f)\n", tests[t].name,
		       of[rounds / 2], tests[t].latency ? "ns" : "GB/s", of[0],
		       of[rounds - 1]);
	}
	free(results);
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : 101;
	struct side side = { 0 };
	char fabric[32];
	pid_t child;

	side.line = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	snprintf(fabric, sizeof(fabric), "bench-%d", getpid());
	child = fork();
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	start(&side, !child, fabric);
	run(&side, rounds ? rounds : 1);
	fabrex_close(side.port);
	return 0;
}
