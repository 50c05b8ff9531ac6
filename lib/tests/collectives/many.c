// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the number of ranks changes: the choice of algorithms. And what many
 * ranks must not do in vain: look for the dead, and map the same windows again.
 * No algorithm ends at a number of ranks.
 */
#include <stdio.h>
#include <string.h>

#include "coll/algorithm/algorithm.h"
#include "coll/link/mailbox.h"
#include "core/core.h"
#include "world.h"

#define MANY	33u
#define NAME	24u
#define PAUSE_US 300000

static unsigned int posts, maps;

/* ---- looks ------------------------------------------------------------- */

static const struct queue_ops *real;

static int count_prep(struct fabrex_queue *queue, const struct fabrex_op *op)
{
	posts++;
	return real->prep(queue, op);
}

/* A look is every 10 ms, at the rank that is waited for and a few others. */
static void looks_work(struct world *w)
{
	static struct queue_ops counting;
	struct fabrex_queue *queue = w->comm->links->mailbox->queues[0];
	uint64_t begin;

	real = queue->ops;
	counting = *real;
	counting.prep = count_prep;
	queue->ops = &counting;
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	posts = 0;
	begin = fxi_now_ns();
	if (!w->rank)
		usleep(PAUSE_US);
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	CHECK(posts <= ((fxi_now_ns() - begin) / 10000000 + 2) * 4);
	CHECK(posts || !w->rank);
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	queue->ops = real;
}

TEST(looks_at_few_of_many)
{
	world_run(MANY, looks_work, NULL);
}

/* ---- windows ----------------------------------------------------------- */

static const struct transport_ops *near;

static int count_map(struct transport *transport,
		     const struct fabrex_remote *remote, uint64_t offset,
		     uint64_t length, uint32_t access,
		     struct transport_window *window)
{
	maps++;
	return near->window_create(transport, remote, offset, length, access,
				   window);
}

/* Two pairs of buffers of each rank, in turn. */
static void windows_work(struct world *w)
{
	static struct transport_ops counting;
	struct fabrex_comm *comm = world_comm(w, "all:direct");
	struct fabrex_mr *mr[4];
	unsigned int i;

	near = w->port->ops;
	counting = *near;
	counting.window_create = count_map;
	w->port->ops = &counting;
	for (i = 0; i < 4; i++)
		CHECK_EQ(fabrex_mr_alloc(w->port, 4096, FABREX_MR_ALL, &mr[i]),
			 0);
	for (i = 0; i < 6; i++) {
		if (i == 2)
			maps = 0;
		CHECK_EQ(fabrex_all_reduce(comm, fabrex_mr_addr(mr[i % 2 * 2]),
					   fabrex_mr_addr(mr[i % 2 * 2 + 1]),
					   100, FABREX_INT32, FABREX_SUM), 0);
	}
	CHECK_EQ(maps, 0);
	CHECK_EQ(fabrex_barrier(comm), 0);
	fabrex_comm_destroy(comm);
	w->port->ops = near;
}

TEST(windows_of_many_stay)
{
	world_run(MANY, windows_work, NULL);
}

/* ---- choice ------------------------------------------------------------ */

static const char *expected(const struct world *w, const char *few,
			    const char *many, const char *most)
{
	if (w->size <= 8)
		return few;
	return w->size < SHARE_MANY ? many : most;
}

static void check_choice(const struct world *w, uint32_t kind, uint64_t bytes,
			 const char *few, const char *many, const char *most)
{
	char name[NAME];

	CHECK_EQ(fabrex_comm_algorithm(w->comm, kind, bytes, name, NAME), 0);
	test_note("%u ranks, kind %u, %llu bytes: %s", w->size, kind,
		  (unsigned long long)bytes, name);
	CHECK(!strcmp(name, expected(w, few, many, most)));
}

static void choice_work(struct world *w)
{
	static const uint32_t kinds[] = {
		FABREX_ALL_REDUCE, FABREX_ALL_GATHER, FABREX_BROADCAST,
		FABREX_REDUCE,
	};
	uint32_t i;

	check_choice(w, FABREX_ALL_REDUCE, 200, "flat", "bruck", "staged");
	check_choice(w, FABREX_ALL_REDUCE, 4096, "flat", "doubling", "staged");
	check_choice(w, FABREX_ALL_GATHER, 7920, "flat", "bruck", "bruck");
	check_choice(w, FABREX_ALL_GATHER, 15840, "direct", "bruck", "bruck");
	check_choice(w, FABREX_BROADCAST, 20000, "direct", "flat", "flat");
	check_choice(w, FABREX_REDUCE, 4096, "flat", "halving", "halving");
	check_choice(w, FABREX_REDUCE_SCATTER, 7920, "flat", "flat", "flat");
	for (i = 0; i < 4; i++)
		check_choice(w, kinds[i], 1 << 20, "direct", "direct",
			     "direct");
}

TEST(choice_by_ranks)
{
	world_run(8, choice_work, NULL);
	world_run(9, choice_work, NULL);
	world_run(MANY, choice_work, NULL);
	world_run(RANKS_MOST, choice_work, NULL);
}

/* ---- results ----------------------------------------------------------- */

#define COUNT	9000u		/* shares of several pages, and of none */

static void check_sum(const struct world *w, struct fabrex_comm *comm,
		      int32_t *send, int32_t *recv, uint64_t count)
{
	int32_t others = (int32_t)(w->size * (w->size - 1) / 2);
	uint64_t i;

	for (i = 0; i < count; i++)
		send[i] = (int32_t)(w->rank + i);
	memset(recv, 0, count * sizeof(*recv));
	CHECK_EQ(fabrex_all_reduce(comm, send, recv, count, FABREX_INT32,
				   FABREX_SUM), 0);
	for (i = 0; i < count; i++)
		if (recv[i] != others + (int32_t)(w->size * i))
			break;
	CHECK_EQ(i, count);
}

static void check_algorithm(struct world *w, const char *name,
			    struct fabrex_mr *send, struct fabrex_mr *recv)
{
	static const uint64_t counts[] = { 1, 25, 1500, COUNT };
	struct fabrex_comm *comm;
	char found[NAME], text[64];
	uint64_t bytes;
	uint32_t i;

	snprintf(text, sizeof(text), "all_reduce:%s", name);
	comm = world_comm(w, text);
	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		bytes = counts[i] * sizeof(int32_t);
		CHECK_EQ(fabrex_comm_algorithm(comm, FABREX_ALL_REDUCE, bytes,
					       found, NAME), 0);
		CHECK(!strcmp(found, name) || !strcmp(name, "bruck"));
		check_sum(w, comm, fabrex_mr_addr(send), fabrex_mr_addr(recv),
			  counts[i]);
	}
	fabrex_comm_destroy(comm);
}

static void sums_work(struct world *w)
{
	static const char *const names[] = {
		"flat", "bruck", "staged", "direct",
	};
	struct fabrex_mr *send, *recv;
	uint32_t i;

	CHECK_EQ(fabrex_mr_alloc(w->port, COUNT * sizeof(int32_t),
				 FABREX_MR_ALL, &send), 0);
	CHECK_EQ(fabrex_mr_alloc(w->port, COUNT * sizeof(int32_t),
				 FABREX_MR_ALL, &recv), 0);
	for (i = 0; i < 4; i++)
		check_algorithm(w, names[i], send, recv);
}

TEST(sums_of_many)
{
	world_run(RANKS_MOST, sums_work, NULL);
}
