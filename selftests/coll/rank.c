// SPDX-License-Identifier: GPL-2.0-only
/*
 * One rank, on one host: coll-rank verify|stay RANK SIZE BOOTSTRAP. Every
 * collective with contents that are checked; "stay" goes on until a rank fails,
 * shrinks, and checks again. Started by test_coll.py.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <fabrex/coll.h>

#define MOST	(1u << 18)

static struct fabrex_comm *comm;
static uint32_t rank, size;
static int32_t *in, *out;

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
	ret = fabrex_all_reduce(comm, in, out, count, FABREX_INT32,
				FABREX_SUM);
	for (i = 0; !ret && i < count; i++)
		same(out[i], total(i, n), "all-reduce", i);
	return ret;
}

static int broadcast(uint32_t count, uint32_t n)
{
	uint32_t root = n % size, i;
	int ret;

	fill(count, n);
	ret = fabrex_broadcast(comm, in, out, count, FABREX_INT32, root);
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
		ret = fabrex_send(comm, in, count, FABREX_INT32,
				  (rank + 1) % size);
	if (!ret)
		ret = fabrex_recv(comm, out, count, FABREX_INT32, from);
	end = fabrex_group_end(comm);
	ret = ret ? ret : end;
	for (i = 0; !ret && i < count; i++)
		same(out[i], value(from, i, n), "send and receive", i);
	return ret;
}

static int all_gather(uint32_t count, uint32_t n)
{
	uint32_t each = count / size, i, r;
	int ret;

	fill(count, n);
	ret = fabrex_all_gather(comm, in, out, each, FABREX_INT32);
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
	ret = fabrex_reduce_scatter(comm, in, out, each, FABREX_INT32,
				    FABREX_SUM);
	for (i = 0; !ret && i < each; i++)
		same(out[i], total(rank * each + i, n), "reduce-scatter", i);
	return ret;
}

static int all_to_all(uint32_t count, uint32_t n)
{
	uint32_t each = count / size, i, r;
	int ret;

	fill(count, n);
	ret = fabrex_all_to_all(comm, in, out, each, FABREX_INT32);
	for (r = 0; !ret && r < size; r++)
		for (i = 0; i < each; i++)
			same(out[r * each + i], value(r, rank * each + i, n),
			     "all-to-all", i);
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
	all_to_all, barrier,
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

int main(int argc, char **argv)
{
	struct fabrex_comm_attr attr = {
		.timeout_ms = 60000, .death_ms = 2000,
	};
	struct fabrex_port *port;

	if (argc != 5) {
		fprintf(stderr, "usage: coll-rank verify|stay RANK SIZE BOOTSTRAP\n");
		return 2;
	}
	rank = attr.rank = (uint32_t)atoi(argv[2]);
	size = attr.size = (uint32_t)atoi(argv[3]);
	attr.bootstrap = argv[4];
	in = malloc(MOST * sizeof(*in));
	out = malloc(MOST * sizeof(*out));
	need(!in || !out, "memory");
	need(fabrex_open(NULL, &port), "open");
	need(fabrex_comm_create(port, &attr, sizeof(attr), &comm), "create");
	if (!strcmp(argv[1], "verify"))
		verify();
	else
		stay();
	fabrex_comm_destroy(comm);
	fabrex_close(port);
	say("done");
	return 0;
}
