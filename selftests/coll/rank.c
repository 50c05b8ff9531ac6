// SPDX-License-Identifier: GPL-2.0-only
/*
 * One rank, on one host: coll-rank MODE RANK SIZE BOOTSTRAP [PORT...]. Every
 * collective with contents that are checked, through the first port of the host,
 * or through those that are named. Modes:
 *
 *   verify  once
 *   stay    until a rank fails; then shrinks, and checks again
 *   move    for a while in which the buffers are moved, if they can be
 *   watch   until a watchdog aborts that has seen nothing go on; what is received
 *           into must not change afterwards
 *
 * Started by test_coll.py and ../ntb/test_mesh.py; as coll-rank-gpu, with buffers on a GPU, by
 * ../gpu/test_coll_faults.py.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <fabrex/coll.h>
#include <fabrex/p2p.h>

#include "memory.h"

#define MOST		(1u << 18)
#define PORTS		8u
#define BRIDGE_MS	20000
#define MOVE_SECONDS	5.0	/* of moves, at least */
#define MOVES		20	/* as many during collectives, */
#define ROUNDS		1000	/* in no more rounds of them */
#define NAP_US		1000
#define WATCH_SECONDS	10.0	/* until the watchdog thinks that it hangs */
#define LATE_SECONDS	2	/* in which late bytes would arrive */

static struct fabrex_comm *comm;
static uint32_t rank, size;
static int32_t *in, *out;	/* what is in these */
static void *send, *recv;
static atomic_bool under_way;	/* a collective, in these */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

static void need(int ret, const char *what)
{
	if (!ret)
		return;
	say("rank %u: %s: %d: %s", rank, what, ret, fabrex_strerror_last());
	exit(1);
}

/* Element i of what rank r has for operation number n. */
static int32_t value(uint32_t r, uint32_t i, uint32_t n)
{
	return (int32_t)(r * 1000003u + i * 7u + n * 13u);
}

static void fill(uint32_t count, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		in[i] = value(rank, i, n);
		out[i] = -1;
	}
	need(!memory_put(send, in, count * sizeof(*in)) ||
	     !memory_put(recv, out, count * sizeof(*out)), "buffers");
	under_way = true;
}

/* What has been received, if it was. */
static int fetched(int ret, uint32_t count)
{
	under_way = false;
	if (!ret)
		need(!memory_get(out, recv, count * sizeof(*out)), "result");
	return ret;
}

static void same(int32_t got, int32_t wanted, const char *what, uint32_t i)
{
	if (got == wanted)
		return;
	say("rank %u: %s: element %u is %d, not %d", rank, what, i, got,
	    wanted);
	exit(1);
}

/* Over ranks, modulo 2^32. */
static int32_t total(uint32_t i, uint32_t n)
{
	uint32_t sum = 0, r;

	for (r = 0; r < size; r++)
		sum += (uint32_t)value(r, i, n);
	return (int32_t)sum;
}

static int all_reduce(uint32_t count, uint32_t n)
{
	uint32_t i;
	int ret;

	fill(count, n);
	ret = fabrex_all_reduce(comm, send, recv, count, FABREX_INT32,
				FABREX_SUM);
	ret = fetched(ret, count);
	for (i = 0; !ret && i < count; i++)
		same(out[i], total(i, n), "all-reduce", i);
	return ret;
}

static int broadcast(uint32_t count, uint32_t n)
{
	uint32_t root = n % size, i;
	int ret;

	fill(count, n);
	ret = fabrex_broadcast(comm, send, recv, count, FABREX_INT32, root);
	ret = fetched(ret, count);
	for (i = 0; !ret && i < count; i++)
		same(out[i], value(root, i, n), "broadcast", i);
	return ret;
}

static int send_and_receive(uint32_t count, uint32_t n)
{
	uint32_t from = (rank + size - 1) % size, i;
	int ret, end;

	fill(count, n);
	ret = fabrex_group_begin(comm);
	if (!ret)
		ret = fabrex_send(comm, send, count, FABREX_INT32,
				  (rank + 1) % size);
	if (!ret)
		ret = fabrex_recv(comm, recv, count, FABREX_INT32, from);
	end = fabrex_group_end(comm);
	ret = ret ? ret : end;
	ret = fetched(ret, count);
	for (i = 0; !ret && i < count; i++)
		same(out[i], value(from, i, n), "send and receive", i);
	return ret;
}

static int all_gather(uint32_t count, uint32_t n)
{
	uint32_t each = count / size, i, r;
	int ret;

	fill(count, n);
	ret = fabrex_all_gather(comm, send, recv, each, FABREX_INT32);
	ret = fetched(ret, count);
	for (r = 0; !ret && r < size; r++)
		for (i = 0; i < each; i++)
			same(out[r * each + i], value(r, i, n), "all-gather",
			     i);
	return ret;
}

static int reduce_scatter(uint32_t count, uint32_t n)
{
	uint32_t each = count / size, i;
	int ret;

	fill(count, n);
	ret = fabrex_reduce_scatter(comm, send, recv, each, FABREX_INT32,
				    FABREX_SUM);
	ret = fetched(ret, count);
	for (i = 0; !ret && i < each; i++)
		same(out[i], total(rank * each + i, n), "reduce-scatter", i);
	return ret;
}

static int all_to_all(uint32_t count, uint32_t n)
{
	uint32_t each = count / size, i, r;
	int ret;

	fill(count, n);
	ret = fabrex_all_to_all(comm, send, recv, each, FABREX_INT32);
	ret = fetched(ret, count);
	for (r = 0; !ret && r < size; r++)
		for (i = 0; i < each; i++)
			same(out[r * each + i], value(r, rank * each + i, n),
			     "all-to-all", i);
	return ret;
}

/* Blocks of different lengths, every other one empty: all fit into count. */
static uint64_t share(uint32_t count, uint32_t r)
{
	return r % size % 2 ? count / size * 2 : 0;
}

static uint64_t share_before(uint32_t count, uint32_t from, uint32_t r)
{
	uint64_t before = 0;

	while (r)
		before += share(count, from + --r);
	return before;
}

static int all_gatherv(uint32_t count, uint32_t n)
{
	uint64_t counts[64], at;
	uint32_t i, r;
	int ret;

	fill(count, n);
	for (r = 0; r < size; r++)
		counts[r] = share(count, r);
	ret = fabrex_all_gatherv(comm, send, counts[rank], recv, counts, NULL,
				 FABREX_INT32);
	ret = fetched(ret, count);
	for (r = 0; !ret && r < size; r++) {
		at = share_before(count, 0, r);
		for (i = 0; i < counts[r]; i++)
			same(out[at + i], value(r, i, n), "all-gatherv", i);
	}
	return ret;
}

static int reduce_scatterv(uint32_t count, uint32_t n)
{
	uint64_t counts[64];
	uint32_t i, r, at = (uint32_t)share_before(count, 0, rank);
	int ret;

	fill(count, n);
	for (r = 0; r < size; r++)
		counts[r] = share(count, r);
	ret = fabrex_reduce_scatterv(comm, send, recv, counts, FABREX_INT32,
				     FABREX_SUM);
	ret = fetched(ret, count);
	for (i = 0; !ret && i < counts[rank]; i++)
		same(out[i], total(at + i, n), "reduce-scatterv", i);
	return ret;
}

/* From r to s as many as from s to r, so that one array does for both. */
static int all_to_allv(uint32_t count, uint32_t n)
{
	uint64_t counts[64], at, theirs;
	uint32_t i, r;
	int ret;

	fill(count, n);
	for (r = 0; r < size; r++)
		counts[r] = share(count, rank + r);
	ret = fabrex_all_to_allv(comm, send, counts, NULL, recv, counts, NULL,
				 FABREX_INT32);
	ret = fetched(ret, count);
	for (r = 0; !ret && r < size; r++) {
		at = share_before(count, rank, r);
		theirs = share_before(count, r, rank);
		for (i = 0; i < counts[r]; i++)
			same(out[at + i], value(r, (uint32_t)theirs + i, n),
			     "all-to-allv", i);
	}
	return ret;
}

static int barrier(uint32_t count, uint32_t n)
{
	(void)count;
	(void)n;
	return fabrex_barrier(comm);
}

static int (*const collectives[])(uint32_t count, uint32_t n) = {
	all_reduce, broadcast, send_and_receive, all_gather, reduce_scatter,
	all_to_all, all_gatherv, reduce_scatterv, all_to_allv, barrier,
};
#define COLLECTIVES	(sizeof(collectives) / sizeof(*collectives))

static int round_of(uint32_t count)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < COLLECTIVES && !ret; i++)
		ret = collectives[i](count, count + i);
	return ret;
}

static void verify(void)
{
	static const uint32_t counts[] = { 0, 1, 2, 9, 11, 1000, 40001, MOST };
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		need(round_of(counts[i]), "collectives");
	say("verified");
}

static void stay(void)
{
	struct fabrex_comm *rest;
	double last = now();
	uint32_t i;
	int ret;

	say("ready");
	for (i = 0; !(ret = round_of(i % 5 ? 100 : 30000)); i++)
		last = now();
	say("failed %d after %.2f s: %s", ret, now() - last,
	    fabrex_strerror_last());
	say("end of failure");
	ret = fabrex_comm_shrink(comm, 20000, &rest);
	if (ret) {
		say("alone %d: %s", ret, fabrex_strerror_last());
		return;
	}
	fabrex_comm_destroy(comm);
	comm = rest;
	rank = fabrex_comm_rank(comm);
	size = fabrex_comm_size(comm);
	say("shrunk to %u", size);
	verify();
}

/* ---- buffers that are moved ---------------------------------------------- */

static atomic_bool enough;
static atomic_uint moves, idle_moves, refusals;

static uint32_t moved(void *p, bool away)
{
	bool before = under_way;

	if (!memory_move(p, away)) {
		refusals++;
		return 0;
	}
	if (before && under_way)
		moves++;
	else
		idle_moves++;
	return 1;
}

static void *mover(void *arg)
{
	bool away = true;

	(void)arg;
	for (; !enough; away = !away)
		if (!(moved(send, away) + moved(recv, away)))
			usleep(NAP_US);
	return NULL;
}

/*
 * Whether somebody has not had enough yet. What the fabric has pinned is not moved;
 * without a cache nothing is pinned when a collective begins.
 */
static bool goes_on(double end, uint32_t rounds)
{
	int32_t own = now() < end || moves < MOVES, any;

	need(fabrex_all_reduce(comm, &own, &any, 1, FABREX_INT32, FABREX_MAX),
	     "the end");
	if (any && rounds == ROUNDS) {
		say("moved only %u times during collectives, %u times between them, refused %u times",
		    moves, idle_moves, refusals);
		exit(1);
	}
	return any;
}

static void move(struct fabrex_port *port)
{
	double end = now() + MOVE_SECONDS;
	pthread_t thread;
	uint32_t i;

	need(fabrex_mr_cache_limit(port, 0, 0), "cache");
	need(pthread_create(&thread, NULL, mover, NULL), "thread");
	for (i = 0; goes_on(end, i); i++)
		need(round_of(i % 5 ? 1000 : 40000), "while buffers move");
	enough = true;
	pthread_join(thread, NULL);
	say("moved %u times during collectives of %u rounds, %u times between them, refused %u times",
	    moves, i, idle_moves, refusals);
	verify();
}

/* ---- a watchdog ---------------------------------------------------------- */

static _Atomic double alive;

static void *watchdog(void *arg)
{
	const struct timespec nap = { .tv_nsec = 20000000 };

	(void)arg;
	while (now() - alive < WATCH_SECONDS)
		nanosleep(&nap, NULL);
	fabrex_comm_abort(comm);
	return NULL;
}

/* Nobody may write what the application has back. */
static void check_late(void)
{
	const struct timespec wait = { .tv_sec = LATE_SECONDS };
	uint32_t i;

	for (i = 0; i < MOST; i++)
		out[i] = value(rank, i, 99);
	need(!memory_put(recv, out, MOST * sizeof(*out)), "buffers");
	nanosleep(&wait, NULL);
	need(!memory_get(out, recv, MOST * sizeof(*out)), "result");
	for (i = 0; i < MOST; i++)
		same(out[i], value(rank, i, 99), "after the abort", i);
	say("nothing late");
}

static void watch(void)
{
	pthread_t thread;
	double begun;
	uint32_t i;
	int ret;

	alive = now();
	need(pthread_create(&thread, NULL, watchdog, NULL), "thread");
	say("ready");
	for (i = 0; !(ret = round_of(i % 5 ? 100 : 30000)); i++)
		alive = now();
	begun = alive;
	say("failed %d after %.2f s: %s", ret, now() - begun,
	    fabrex_strerror_last());
	say("end of failure");
	pthread_join(thread, NULL);
	check_late();
}

/*
 * What sysfs says of the port is what it says of itself. Only while nothing
 * happens to it: the two are read one after the other.
 */
static void look_at_port(struct fabrex_port *port)
{
	struct fabrex_local_port found;
	struct fabrex_port_attr attr;

	need(fabrex_query(port, &attr, sizeof(attr)), "query");
	need(fabrex_port_list(NULL, &found, 1, sizeof(found)) != 1,
	     "one port");
	say("port %s at %s, fabric %s, link %u, %u MT/s on %u lanes, %u GPUs",
	    found.name, found.pci, found.fabric, found.link_up,
	    found.pcie_speed, found.pcie_width, found.gpus);
	need(strcmp(found.name, attr.name) ||
	     strcmp(found.fabric, attr.fabric) ||
	     found.link_up != attr.link_up || !found.alive || !*found.pci,
	     "the same port");
}

/* The first, or those that are named. How many. */
static uint32_t open_ports(int n, char **names, struct fabrex_port **ports)
{
	int i;

	if (!n)
		need(fabrex_open(NULL, &ports[0]), "open");
	for (i = 0; i < n; i++)
		need(fabrex_open(names[i], &ports[i]), names[i]);
	return n ? (uint32_t)n : 1;
}

int main(int argc, char **argv)
{
	struct fabrex_comm_attr attr = {
		.timeout_ms = 60000, .death_ms = 2000,
	};
	struct fabrex_port *ports[PORTS], *port;
	uint32_t n;

	if (argc < 5 || argc > 5 + (int)PORTS) {
		fprintf(stderr, "usage: coll-rank MODE RANK SIZE BOOTSTRAP [PORT...]\n");
		return 2;
	}
	rank = attr.rank = (uint32_t)atoi(argv[2]);
	size = attr.size = (uint32_t)atoi(argv[3]);
	attr.bootstrap = argv[4];
	in = malloc(MOST * sizeof(*in));
	out = malloc(MOST * sizeof(*out));
	send = memory_new(MOST * sizeof(*in));
	recv = memory_new(MOST * sizeof(*out));
	need(!in || !out || !send || !recv, "memory");
	n = open_ports(argc - 5, argv + 5, ports);
	port = ports[0];
	attr.ports = ports + 1;
	attr.nports = n - 1;
	/* There the processors of slow hosts move what is sent. */
	if (n > 1)
		attr.death_ms = BRIDGE_MS;
	if (!strcmp(argv[1], "verify") && argc == 5)
		look_at_port(port);
	need(fabrex_comm_create(port, &attr, sizeof(attr), &comm), "create");
	if (!strcmp(argv[1], "verify"))
		verify();
	else if (!strcmp(argv[1], "move"))
		move(port);
	else if (!strcmp(argv[1], "watch"))
		watch();
	else
		stay();
	fabrex_comm_destroy(comm);
	while (n)
		need(fabrex_close(ports[--n]), "close");
	say("done");
	return 0;
}
