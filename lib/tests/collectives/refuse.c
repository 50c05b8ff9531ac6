// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What is refused, with which sentence: arguments, tables, and ranks that do
 * not call the same.
 */
#include <errno.h>

#include "world.h"

static int try(struct world *w, struct fabrex_collective what)
{
	struct fabrex_coll *coll;

	return fabrex_coll_start(w->comm, &what, sizeof(what), &coll);
}

#define REFUSED(text, ...) \
	do { \
		CHECK_EQ(try(w, (struct fabrex_collective){ __VA_ARGS__ }), \
			 -EINVAL); \
		CHECK_SAYS(text); \
	} while (0)

static void numbers_work(struct world *w)
{
	char x[64];

	REFUSED("no such collective: 0", .kind = 0);
	REFUSED("no such collective: 13", .kind = FABREX_ALL_TO_ALLV + 1);
	REFUSED("no such type: 13", .kind = FABREX_SEND, .type = 13);
	REFUSED("no such type: 0", .kind = FABREX_ALL_GATHER);
	REFUSED("no such type: 1", .kind = FABREX_BARRIER, .type = 1);
	REFUSED("no such operation: 0", .kind = FABREX_ALL_REDUCE, .type = 1);
	REFUSED("no such operation: 6", .kind = FABREX_REDUCE, .type = 1,
		.op = FABREX_AVG + 1);
	REFUSED("no such operation: 1", .kind = FABREX_BROADCAST, .type = 1,
		.op = FABREX_SUM);
	REFUSED("rank 2: ranks are below 2", .kind = FABREX_BROADCAST,
		.type = 1, .root = 2);
	REFUSED("rank 7: ranks are below 2", .kind = FABREX_RECV, .type = 1,
		.root = 7);
	REFUSED("rank 1", .kind = FABREX_ALL_GATHER, .type = 1, .root = 1);
	REFUSED("reserved is not 0", .kind = FABREX_BARRIER,
		.reserved = { 0, 0, 1 });
	REFUSED("do not fit the address space", .kind = FABREX_ALL_TO_ALL,
		.type = FABREX_FLOAT64, .count = UINT64_MAX / 16, .send = x,
		.recv = x);
	REFUSED("a count of 1", .kind = FABREX_BARRIER, .count = 1);
	REFUSED("no send buffer for 8 bytes", .kind = FABREX_ALL_REDUCE,
		.type = FABREX_INT64, .op = FABREX_SUM, .count = 1, .recv = x);
	REFUSED("no recv buffer for 16 bytes", .kind = FABREX_ALL_GATHER,
		.type = FABREX_INT64, .count = 1, .send = x);
	REFUSED("wraps around", .kind = FABREX_SEND, .type = FABREX_INT8,
		.count = 100, .send = (void *)(UINTPTR_MAX - 50),
		.root = 1 - w->rank);
}

static void overlap_work(struct world *w)
{
	char x[256];

	REFUSED("overlap", .kind = FABREX_ALL_REDUCE, .type = FABREX_INT8,
		.op = FABREX_SUM, .count = 8, .send = x, .recv = x + 7);
	REFUSED("overlap", .kind = FABREX_ALL_GATHER, .type = FABREX_INT8,
		.count = 8, .send = x + 8 * (1 - w->rank), .recv = x);
	REFUSED("overlap", .kind = FABREX_REDUCE_SCATTER, .type = FABREX_INT8,
		.op = FABREX_SUM, .count = 8, .send = x,
		.recv = x + 8 * (1 - w->rank));
	REFUSED("cannot be done in place", .kind = FABREX_ALL_TO_ALL,
		.type = FABREX_INT8, .count = 8, .send = x, .recv = x);
	CHECK_EQ(fabrex_all_to_all(w->comm, x, x + 16, 8, FABREX_INT8), 0);
	CHECK_EQ(fabrex_all_reduce(w->comm, NULL, NULL, 0, FABREX_INT8,
				   FABREX_SUM), 0);
}

static void other_work(struct world *w)
{
	struct fabrex_collective what[2] = { { .kind = FABREX_BARRIER } };
	struct fabrex_coll *coll;
	char name[32];

	memset(&what[1], 1, sizeof(what[1]));
	CHECK_EQ(fabrex_coll_start(w->comm, what, sizeof(what), &coll),
		 -E2BIG);
	CHECK_EQ(fabrex_coll_start(w->comm, what, sizeof(*what), NULL),
		 -EINVAL);
	CHECK_SAYS("no place for the handle");
	CHECK_EQ(fabrex_group_end(w->comm), -EINVAL);
	CHECK_EQ(fabrex_group_begin(w->comm), 0);
	CHECK_EQ(fabrex_group_begin(w->comm), -EINVAL);
	CHECK_EQ(fabrex_coll_start(w->comm, what, sizeof(*what), &coll), 0);
	CHECK_EQ(fabrex_coll_test(coll), 0);
	CHECK_EQ(fabrex_coll_wait(coll, 0), -EINVAL);
	CHECK_SAYS("its group ends");
	CHECK_EQ(fabrex_group_end(w->comm), 0);
	CHECK_EQ(fabrex_coll_test(coll), 1);
	CHECK_EQ(fabrex_comm_algorithm(w->comm, FABREX_SEND, 1, name, 32),
		 -EINVAL);
	CHECK_EQ(fabrex_comm_algorithm(w->comm, FABREX_ALL_REDUCE, 1, name, 2),
		 -ENOSPC);
	CHECK_EQ(fabrex_datatype_size(0) + fabrex_datatype_size(13), 0);
}

TEST(wrong_arguments_are_told)
{
	world_run(2, numbers_work, NULL);
	world_run(2, overlap_work, NULL);
	world_run(2, other_work, NULL);
}

/* ---- tables ------------------------------------------------------------ */

static void refuse_table(struct world *w, const char *text, const char *says)
{
	const struct fabrex_comm_attr attr = {
		.rank = 0, .size = 1, .bootstrap = "fabric:7",
		.algorithms = text,
	};
	struct fabrex_comm *comm;

	test_note("table \"%s\"", text);
	CHECK_EQ(fabrex_comm_create(w->port, &attr, sizeof(attr), &comm),
		 -EINVAL);
	if (!strstr(fabrex_strerror_last(), says))
		test_fail(__FILE__, __LINE__, says, 0, 0);
}

static void tables_work(struct world *w)
{
	refuse_table(w, "nonsense", "character 1, at \"nonsense\"");
	refuse_table(w, "all_reduce", "character 11");
	refuse_table(w, "all_reduce:", "character 12");
	refuse_table(w, "all_reduce:fast", "no such algorithm");
	refuse_table(w, "all_reduce:flat,", "character 17");
	refuse_table(w, "all_reduce:flat;;", "character 17");
	refuse_table(w, "all_reduce:flat x", "character 16");
	refuse_table(w, "all_reduce:4K=flat", "'-' has to be");
	refuse_table(w, "all_reduce:4K-1K=flat", "ends before it begins");
	refuse_table(w, "all_reduce:4K-8Kflat", "'=' has to be");
	refuse_table(w, "all_reduce:99999999999999999999-=flat", "too large");
	refuse_table(w, "all_reduce:99999999999G-=flat", "too large");
	refuse_table(w, "barrier:direct", "no such algorithm");
	refuse_table(w, "broadcast:staged", "no such algorithm");
	refuse_table(w, "all_to_all:tree", "no such algorithm");
	refuse_table(w, "all_reduce:ring*0", "no such algorithm");
	refuse_table(w, "all_reduce:ring*999999", "no such algorithm");
}

TEST(wrong_tables_are_refused)
{
	world_run(1, tables_work, NULL);
}

static void chosen(struct fabrex_comm *comm, enum fabrex_coll_kind kind,
		   uint64_t bytes, const char *expected)
{
	char name[32];

	CHECK_EQ(fabrex_comm_algorithm(comm, kind, bytes, name, sizeof(name)),
		 0);
	test_note("%s, not %s, for kind %u of %llu", name, expected, kind,
		  (unsigned long long)bytes);
	CHECK(!strcmp(name, expected));
}

static void choice_work(struct world *w)
{
	struct fabrex_comm *comm = world_comm(w,
		"all_reduce:-4K=flat,4K-1M=ring*2,direct;broadcast:64K-=tree*2;barrier:flat");

	chosen(comm, FABREX_ALL_REDUCE, 4096, "flat");
	chosen(comm, FABREX_ALL_REDUCE, 4097, "ring*2");
	chosen(comm, FABREX_ALL_REDUCE, 1 << 20, "ring*2");
	chosen(comm, FABREX_ALL_REDUCE, (1 << 20) + 1, "direct");
	chosen(comm, FABREX_BROADCAST, 64 << 10, "tree*2");
	chosen(comm, FABREX_BROADCAST, 8, "flat");
	chosen(comm, FABREX_BARRIER, 0, "flat");
	chosen(comm, FABREX_ALL_GATHER, 64 << 20, "direct");
	fabrex_comm_destroy(comm);
}

TEST(tables_choose)
{
	world_run(2, choice_work, NULL);
}

/* ---- ranks that do not agree ------------------------------------------- */

static int call(struct world *w, uint32_t which)
{
	static char x[4096], y[4096];

	switch (which) {
	case 0:
		return fabrex_barrier(w->comm);
	case 1:
		return fabrex_all_reduce(w->comm, x, y, 8, FABREX_INT32,
					 FABREX_SUM);
	case 2:
		return fabrex_all_reduce(w->comm, x, y, 9, FABREX_INT32,
					 FABREX_SUM);
	case 3:
		return fabrex_all_reduce(w->comm, x, y, 8, FABREX_INT32,
					 FABREX_MAX);
	case 4:
		return fabrex_all_reduce(w->comm, x, y, 8, FABREX_FLOAT32,
					 FABREX_SUM);
	case 5:
		return fabrex_reduce_scatter(w->comm, x, y, 8, FABREX_INT32,
					     FABREX_SUM);
	default:
		return fabrex_all_to_all(w->comm, x, y, 8, FABREX_INT32);
	}
}

/* The last rank calls something else: all get an error, nobody waits on. */
static void disagree_work(struct world *w)
{
	const uint32_t *pair = w->arg;
	bool other = w->rank == w->size - 1;
	int ret = call(w, pair[other]);

	test_note("%u and %u", pair[0], pair[1]);
	CHECK(ret == -EPROTO || ret == -ECONNRESET);
	if (ret == -EPROTO)
		CHECK_SAYS("do not call the same");
	CHECK_EQ(fabrex_barrier(w->comm), ret);
	CHECK_EQ(fabrex_comm_failed(w->comm, NULL, 0), 0);
}

TEST(disagreement_is_noticed)
{
	static const uint32_t pairs[][2] = {
		{ 0, 1 }, { 1, 2 }, { 1, 3 }, { 1, 4 }, { 1, 5 }, { 5, 6 },
		{ 6, 0 },
	};
	uint32_t i;

	for (i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		world_run(2, disagree_work, pairs[i]);
		world_run(3, disagree_work, pairs[i]);
	}
}
