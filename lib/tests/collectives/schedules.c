// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collectives that follow schedules given by their user: from files and made,
 * up to 16 ranks; what is counted; ranks that do not follow the same.
 */
#include <errno.h>

#include "world.h"

#define COUNT	20160u	/* for each rank; what the examples' weights divide */

/* What @rank puts at @i. */
static uint32_t value(uint32_t rank, uint64_t i)
{
	return (rank + 1) * 2654435761u ^ (uint32_t)i * 40503u;
}

static uint32_t expected(const struct world *w,
			 const struct fabrex_collective *what, uint64_t i)
{
	uint32_t sum = 0, rank;

	switch (what->kind) {
	case FABREX_BROADCAST:
		return value(what->root, i);
	case FABREX_ALL_GATHER:
		return value((uint32_t)(i / what->count), i % what->count);
	case FABREX_ALL_TO_ALL:
		return value((uint32_t)(i / what->count),
			     w->rank * what->count + i % what->count);
	case FABREX_REDUCE_SCATTER:
		i += w->rank * what->count;
		break;
	}
	for (rank = 0; rank < w->size; rank++)
		sum += value(rank, i);
	return sum;
}

static bool gathers(uint32_t kind)
{
	return kind == FABREX_ALL_GATHER || kind == FABREX_ALL_TO_ALL;
}

/* One collective of the schedule's kind, with its root. */
static void perform(struct world *w, uint32_t kind, uint32_t root)
{
	static uint32_t send[COUNT * 16], recv[COUNT * 16];
	const struct fabrex_collective what = {
		.kind = kind, .type = FABREX_UINT32, .root = root,
		.op = reduces(kind) ? FABREX_SUM : 0,
		.send = send, .recv = recv, .count = COUNT,
	};
	struct fabrex_coll *coll;
	uint64_t i, n;

	for (i = 0; i < (uint64_t)COUNT * w->size; i++)
		send[i] = value(w->rank, i);
	memset(recv, 0, sizeof(recv));
	CHECK_EQ(fabrex_coll_start(w->comm, &what, sizeof(what), &coll), 0);
	CHECK_EQ(fabrex_coll_wait(coll, 300000), 0);
	n = gathers(kind) ? (uint64_t)COUNT * w->size : COUNT;
	if (kind == FABREX_REDUCE && w->rank != root)
		n = 0;
	for (i = 0; i < n; i++)
		CHECK_EQ(recv[i], expected(w, &what, i));
}

static void follow(struct world *w, struct fabrex_schedule *s, uint32_t root)
{
	enum fabrex_coll_kind kind = fabrex_schedule_kind(s);

	CHECK_EQ(fabrex_comm_schedule(w->comm, kind, s), 0);
	fabrex_schedule_free(s);
	perform(w, kind, root);
	perform(w, kind, root);
	CHECK_EQ(fabrex_comm_schedule(w->comm, kind, NULL), 0);
	perform(w, kind, root);
}

/* ---- files ------------------------------------------------------------- */

static void follow_file(struct world *w)
{
	struct fabrex_schedule *s;
	const char *path = w->arg;

	test_note("%s", path);
	CHECK_EQ(fabrex_schedule_read(path, &s), 0);
	follow(w, s, strstr(path, "tree-8") ? 3 : 0);
}

TEST(schedules_from_files)
{
	static const struct {
		const char *path;
		uint32_t ranks;
	} files[] = {
		{ "topologies/schedules/ring-4.sched", 4 },
		{ "topologies/schedules/exchange-4.sched", 4 },
		{ "topologies/schedules/tree-8.sched", 8 },
		{ "topologies/schedules/packing-4.sched", 4 },
		{ "topologies/schedules/packing-4-reduce.sched", 4 },
		{ "topologies/schedules/relay-3.sched", 3 },
		{ "topologies/schedules/halving-6.sched", 6 },
	};
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		world_run(files[i].ranks, follow_file, files[i].path);
}

/* ---- counters ---------------------------------------------------------- */

static uint64_t sent_to(struct world *w, uint32_t rank)
{
	struct fabrex_traffic t;

	CHECK_EQ(fabrex_comm_traffic(w->comm, rank, &t, sizeof(t)), 0);
	CHECK(!t.bytes == !t.messages);
	return t.bytes;
}

/* topologies/schedules/packing-4.sched: thirds of shards, on each link. */
static void count_packing(struct world *w)
{
	static const uint32_t thirds[4][4] = {
		{ 0, 6, 3, 0 }, { 6, 0, 0, 3 }, { 3, 0, 0, 6 }, { 0, 3, 6, 0 },
	};
	struct fabrex_schedule *s;
	uint32_t rank, times = 3, i;

	CHECK_EQ(fabrex_schedule_read("topologies/schedules/packing-4.sched",
				      &s), 0);
	CHECK_EQ(fabrex_comm_schedule(w->comm, FABREX_ALL_GATHER, s), 0);
	fabrex_schedule_free(s);
	for (rank = 0; rank < 4; rank++)
		CHECK_EQ(sent_to(w, rank), 0);
	for (i = 0; i < times; i++)
		perform(w, FABREX_ALL_GATHER, 0);
	for (rank = 0; rank < 4; rank++)
		CHECK_EQ(sent_to(w, rank), (uint64_t)thirds[w->rank][rank] *
			 times * COUNT * 4 / 3);
}

TEST(schedules_are_counted)
{
	world_run(4, count_packing, NULL);
}

/* ---- what is refused --------------------------------------------------- */

static void refuse(struct world *w)
{
	struct fabrex_schedule *s;
	struct fabrex_traffic t;

	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, "ring", 3, 0, &s), 0);
	CHECK_EQ(fabrex_comm_schedule(w->comm, FABREX_ALL_REDUCE, s), -EINVAL);
	CHECK_SAYS("\"ring\" is for 3 ranks, the communicator has 2");
	CHECK_EQ(fabrex_comm_schedule(w->comm, FABREX_ALL_GATHER, s), -EINVAL);
	CHECK_SAYS("is for all-reduce, not for all-gather");
	CHECK_EQ(fabrex_comm_schedule(w->comm, FABREX_BARRIER, NULL), -EINVAL);
	CHECK_EQ(fabrex_comm_traffic(w->comm, 2, &t, sizeof(t)), -EINVAL);
	CHECK_EQ(fabrex_comm_traffic(w->comm, 1, &t, 0), -EINVAL);
	fabrex_schedule_free(s);
	perform(w, FABREX_ALL_REDUCE, 0);
}

/* Rank 1 takes the rings the other way round. */
static void disagree(struct world *w)
{
	static uint32_t buffer[4000];
	struct fabrex_schedule *s;
	int ret;

	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE,
				      w->rank == 1 ? "direct" : "ring", 3, 0,
				      &s), 0);
	CHECK_EQ(fabrex_comm_schedule(w->comm, FABREX_ALL_REDUCE, s), 0);
	fabrex_schedule_free(s);
	ret = fabrex_all_reduce(w->comm, buffer, buffer, 4000, FABREX_UINT32,
				FABREX_SUM);
	CHECK(ret == -EPROTO || ret == -ECONNRESET);
	if (ret == -EPROTO)
		CHECK_SAYS("do not follow the same schedule");
}

TEST(schedules_that_do_not_fit)
{
	world_run(2, refuse, NULL);
	world_run(3, disagree, NULL);
}

/* ---- 16 ranks ---------------------------------------------------------- */

static void sixteen(struct world *w)
{
	static const char *const algorithms[] = {
		"ring", "tree", "halving*2", "doubling", "direct", "chain",
	};
	struct fabrex_schedule *s;
	uint32_t kind, i;

	for (i = 0; i < 6; i++) {
		kind = FABREX_ALL_REDUCE + i % 3;
		test_note("%s, kind %u", algorithms[i], kind);
		CHECK_EQ(fabrex_schedule_make(kind, algorithms[i], w->size, 0,
					      &s), 0);
		CHECK_EQ(fabrex_comm_schedule(w->comm, kind, s), 0);
		fabrex_schedule_free(s);
		perform(w, kind, 0);
	}
}

TEST(schedules_of_sixteen_ranks)
{
	world_run(16, sixteen, NULL);
}
