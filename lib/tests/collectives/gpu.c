// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Buffers on GPUs, with the test run times: a rank has CUDA, the next HIP, the
 * next none, and all agree. Memory of a test GPU is not the processor's.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "device.h"
#include "world.h"

#define ROOM	(2u << 20)

/* What a rank has. */
struct buffers {
	struct gpu gpu;
	char *send, *recv;	/* ROOM each */
	char *host;		/* what comes and goes */
};

static void split(struct buffers *g)
{
	g->send = g->gpu.memory;
	g->recv = g->send + ROOM;
	g->host = malloc(ROOM);
	CHECK(g->host);
}

static void open_gpu(const struct world *w, struct buffers *g)
{
	if (w->rank % 3 == 0)
		gpu_cuda(&g->gpu, 2 * ROOM);
	else if (w->rank % 3 == 1)
		gpu_hip(&g->gpu, 2 * ROOM);
	else
		gpu_none(&g->gpu, 2 * ROOM);
	split(g);
}

static void put(const struct buffers *g, char *to, uint64_t n)
{
	gpu_put(&g->gpu, to, g->host, n);
}

static void get(const struct buffers *g, const char *from, uint64_t n)
{
	gpu_get(&g->gpu, g->host, from, n);
}

/* ---- collectives ------------------------------------------------------- */

/* Any numbers where the order is the reference's: it shows in the last bits. */
static void one(const struct world *w, struct fabrex_comm *comm,
		const struct buffers *g, struct fabrex_collective what,
		uint32_t skip, bool in_order)
{
	uint64_t size = fabrex_datatype_size(what.type);
	uint64_t sends = what.count * send_parts(w, what.kind);
	uint64_t bytes = what.count * recv_parts(w, what.kind) * size;
	struct values v = {
		.type = what.type, .op = what.op, .seed = what.kind,
		.whole = !in_order,
	};
	char *expected = malloc(bytes);

	CHECK(expected && sends * size + skip <= ROOM && bytes <= ROOM);
	what.send = g->send + skip;
	what.recv = g->recv + skip;
	values_fill(&v, w->rank, 0, sends, g->host);
	put(g, g->send + skip, sends * size);
	CHECK_EQ(world_call(comm, &what), 0);
	if (what.kind != FABREX_REDUCE || what.root == w->rank) {
		values_expect(w, &what, &v, expected);
		get(g, g->recv + skip, bytes);
		CHECK(!memcmp(g->host, expected, bytes));
	}
	free(expected);
}

static void all_kinds(const struct world *w, const char *table,
		      const struct buffers *g, struct fabrex_comm *comm)
{
	static const uint32_t types[] = {
		FABREX_FLOAT32, FABREX_BFLOAT16, FABREX_INT64, FABREX_UINT8,
	};
	static const uint64_t counts[] = { 1, 5, 1000, 30001 };
	struct fabrex_collective what = { .count = 0 };
	uint32_t i;

	for (what.kind = FABREX_ALL_REDUCE; what.kind < FABREX_BARRIER;
	     what.kind++)
		for (i = 0; i < 16; i++) {
			what.type = types[i % 4];
			what.count = counts[i / 4];
			what.op = reduces(what.kind) ? FABREX_SUM + i % 5 : 0;
			what.root = what.kind == FABREX_BROADCAST ||
				    what.kind == FABREX_REDUCE ?
				    i % w->size : 0;
			test_note("%s: kind %u, type %u, count %llu", table,
				  what.kind, what.type,
				  (unsigned long long)what.count);
			one(w, comm, g, what, i % 3 == 2 ? 1 : 0,
			    *table && !strstr(table, "ring"));
		}
}

static void collectives_work(struct world *w)
{
	static const char *const tables[] = {
		"all:flat", "all:direct", "all:staged", "all:ring", "",
	};
	struct fabrex_comm *comm;
	struct buffers g;
	size_t i;

	open_gpu(w, &g);
	for (i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		comm = world_comm(w, tables[i]);
		all_kinds(w, tables[i], &g, comm);
		fabrex_comm_destroy(comm);
	}
}

TEST(gpus_take_part)
{
	world_run(1, collectives_work, NULL);
	world_run(2, collectives_work, NULL);
	world_run(3, collectives_work, NULL);
}

/* ---- from GPU to GPU --------------------------------------------------- */

static uint64_t written(const struct world *w)
{
	struct fabrex_stats stats;

	CHECK_EQ(fabrex_stats(w->port, NULL, &stats, sizeof(stats)), 0);
	return stats.tx_bytes;
}

static uint64_t sent(const struct world *w, struct fabrex_comm *comm)
{
	struct fabrex_traffic traffic;
	uint64_t bytes = 0;
	uint32_t rank;

	for (rank = 0; rank < w->size; rank++) {
		CHECK_EQ(fabrex_comm_traffic(comm, rank, &traffic,
					     sizeof(traffic)), 0);
		bytes += traffic.bytes;
	}
	return bytes;
}

static const struct fabrex_collective large = {
	.kind = FABREX_ALL_REDUCE, .type = FABREX_INT32, .op = FABREX_SUM,
	.count = 120000,
};

/*
 * All bytes of a schedule leave a GPU by WRITEs of its memory: none is copied
 * by a processor into a slot of the next rank, which no counter would show.
 */
static void all_by_writes(const struct world *w, struct fabrex_comm *comm,
			  const struct buffers *g)
{
	uint64_t before = written(w), bytes = sent(w, comm);
	uint64_t copied, after;

	CHECK(gpu_to_others(&g->gpu, &copied));
	one(w, comm, g, large, 0, false);
	bytes = sent(w, comm) - bytes;
	CHECK(w->size == 1 || bytes);
	CHECK(written(w) - before >= bytes);
	CHECK(gpu_to_others(&g->gpu, &after));
	CHECK_EQ(after, copied);
}

static void schedules_work(struct world *w)
{
	static const char *const tables[] = {
		"all:ring", "all:tree", "all:halving;all:ring",
	};
	struct fabrex_comm *comm;
	struct buffers g;
	size_t i;

	/* Otherwise the run time copies. */
	setenv("FABREX_TEST_FAIL", "cuIpcGetMemHandle=801", 1);
	gpu_cuda(&g.gpu, 2 * ROOM);
	split(&g);
	for (i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		comm = world_comm(w, tables[i]);
		all_by_writes(w, comm, &g);
		all_kinds(w, "ring", &g, comm);
		fabrex_comm_destroy(comm);
	}
}

TEST(gpus_follow_schedules)
{
	world_run(2, schedules_work, NULL);
	world_run(5, schedules_work, NULL);
}

/* ---- by copies of the run time ----------------------------------------- */

/* Two vendors, two GPUs that a mesh joins; ranks have one GPU, or share one. */
static void open_peer(const struct world *w, bool hip, struct buffers *g)
{
	if (hip)
		gpu_hip_on(&g->gpu, (int)w->rank % 2, 2 * ROOM);
	else
		gpu_cuda_on(&g->gpu, (int)w->rank % 2, 2 * ROOM);
	split(g);
}

/* To the byte, and none of them by the fabric: that has only headers. */
static void all_by_copies(const struct world *w, struct fabrex_comm *comm,
			  const struct buffers *g)
{
	uint64_t before = written(w), bytes = sent(w, comm);
	uint64_t copied, after;
	bool counts = gpu_to_others(&g->gpu, &copied);

	one(w, comm, g, large, 0, false);
	bytes = sent(w, comm) - bytes;
	CHECK(bytes);
	gpu_to_others(&g->gpu, &after);
	CHECK(!counts || after - copied == bytes);
	CHECK(written(w) - before < bytes / 10);
}

static void copies_work(struct world *w)
{
	/* By default, too, where all are on GPUs. */
	static const char *const tables[] = {
		"all:ring", "all:tree", "all:halving;all:ring", "",
	};
	bool hip = *(const bool *)w->arg;
	struct fabrex_comm *comm;
	struct buffers g;
	size_t i;

	open_peer(w, hip, &g);
	for (i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		comm = world_comm(w, tables[i]);
		all_by_copies(w, comm, &g);
		all_kinds(w, "ring", &g, comm);
		fabrex_comm_destroy(comm);
	}
}

TEST(gpus_copy_to_peers)
{
	static const bool hip[] = { false, true };

	world_run(2, copies_work, &hip[0]);
	world_run(5, copies_work, &hip[1]);
	/* Headers go through queues. */
	world_run_far(3, copies_work, &hip[0]);
}

/* Why the run time does not copy; then the fabric does. */
static void fallback_work(struct world *w)
{
	static const struct {
		const char *name, *value;
	} ways[] = {
		{ "FABREX_TEST_NO_MESH", "1" },
		{ "FABREX_TEST_FAIL", "cuIpcOpenMemHandle_v2=1" },
		{ "FABREX_TEST_FAIL", "cuIpcGetMemHandle=801" },
	};
	struct fabrex_comm *comm;
	struct buffers g;
	size_t i;

	open_peer(w, false, &g);
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		test_note("%s=%s", ways[i].name, ways[i].value);
		setenv(ways[i].name, ways[i].value, 1);
		comm = world_comm(w, "all:ring");
		all_by_writes(w, comm, &g);
		fabrex_comm_destroy(comm);
		unsetenv(ways[i].name);
	}
	comm = world_comm(w, "all:ring");
	all_by_copies(w, comm, &g);
	fabrex_comm_destroy(comm);
}

TEST(gpus_copy_or_write)
{
	world_run(2, fallback_work, NULL);
	world_run_far(2, fallback_work, NULL);
}

/*
 * The copies of rank 1 stand still, and its thread does not: it takes part in
 * another operation meanwhile.
 */
static void standing_work(struct world *w)
{
	struct fabrex_collective what = {
		.kind = FABREX_BROADCAST, .type = FABREX_INT32, .root = 1,
		.count = 200000,
	};
	int one_more = 1, sum = 0, ret, i;
	struct fabrex_comm *comm;
	struct fabrex_coll *coll;
	struct buffers g;
	char *at;

	open_peer(w, false, &g);
	comm = world_comm_alone(w, "all:ring");
	one(w, comm, &g, large, 0, false);
	memset(g.host, (int)w->rank + 3, 4 * what.count);
	put(&g, g.send, 4 * what.count);
	what.send = what.recv = g.send;
	if (w->rank == 1)
		gpu_stop(&g.gpu, true);
	CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll), 0);
	for (i = 0; i < 200; i++)
		CHECK_EQ(fabrex_coll_test(coll), 0);
	CHECK_EQ(fabrex_all_reduce(w->comm, &one_more, &sum, 1, FABREX_INT32,
				   FABREX_SUM), 0);
	CHECK_EQ(sum, (int)w->size);
	CHECK_EQ(fabrex_coll_test(coll), 0);
	/* Both have seen that before the copies go on. */
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	gpu_stop(&g.gpu, false);
	while (!(ret = fabrex_coll_test(coll)))
		;
	CHECK_EQ(ret, 1);
	get(&g, g.send, 4 * what.count);
	for (at = g.host; at < g.host + 4 * what.count; at++)
		CHECK_EQ(*at, 4);
	fabrex_comm_destroy(comm);
}

TEST(gpus_copies_hold_up_nobody)
{
	world_run(2, standing_work, NULL);
}

/* A rank dies in the middle; the others go on without it. */
static void peer_dies_work(struct world *w)
{
	struct fabrex_comm *comm = world_comm_alone(w, "all:ring"), *fewer;
	struct world less = *w;
	struct buffers g;
	int ret = 0;

	open_peer(w, *(const bool *)w->arg, &g);
	one(w, comm, &g, large, 0, false);
	if (w->rank == 1) {
		struct fabrex_collective what = large;
		struct fabrex_coll *coll;

		what.send = g.send;
		what.recv = g.recv;
		CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll),
			 0);
		fabrex_coll_test(coll);
		_exit(0);
	}
	while (!ret)
		ret = fabrex_all_reduce(comm, g.send, g.recv, large.count,
					large.type, large.op);
	CHECK_EQ(ret, -ECONNRESET);
	CHECK_EQ(fabrex_comm_shrink(comm, 60000, &fewer), 0);
	less.rank = fabrex_comm_rank(fewer);
	less.size = fabrex_comm_size(fewer);
	CHECK_EQ(less.size, w->size - 1);
	all_by_copies(&less, fewer, &g);
	fabrex_comm_destroy(comm);
	all_by_copies(&less, fewer, &g);
	fabrex_comm_destroy(fewer);
	_exit(0);
}

TEST(gpus_copies_to_the_dead)
{
	static const bool hip[] = { false, true };

	world_run(3, peer_dies_work, &hip[0]);
	world_run_far(3, peer_dies_work, &hip[1]);
}

/*
 * One rank destroys its communicator, and the others do later, in the order of
 * their ranks or in the opposite one: nobody frees what another has open, which
 * would end its process, and all memory is there for the next one.
 */
static void order_work(struct world *w)
{
	atomic_uint *left = (atomic_uint *)(uintptr_t)w->arg;
	struct fabrex_comm *comm = world_comm(w, "all:ring");
	uint32_t turn = *left >= 100 ? w->size - 1 - w->rank : w->rank;
	uint32_t begun = *left;
	struct buffers g;

	open_peer(w, false, &g);
	all_by_copies(w, comm, &g);
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	while (atomic_load(left) < begun + turn)
		usleep(1000);
	fabrex_comm_destroy(comm);
	atomic_fetch_add(left, 1);
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	comm = world_comm(w, "all:ring");
	all_by_copies(w, comm, &g);
	if (w->rank == 0)
		fabrex_comm_abort(comm);
	fabrex_comm_destroy(comm);
}

TEST(gpus_copies_end_in_any_order)
{
	atomic_uint *left = mmap(NULL, sizeof(*left), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(left != MAP_FAILED);
	world_run(3, order_work, left);
	atomic_store(left, 100);
	world_run(3, order_work, left);
}

/* ------------------------------------------------------------------------ */

/*
 * Buffers are on a GPU in one operation and in the host's memory in the next,
 * differently at each rank, and at last in place: payloads arrive where the
 * receiver has once offered slots, and are needed elsewhere.
 */
static void changes_work(struct world *w)
{
	struct fabrex_collective what = {
		.kind = FABREX_ALL_REDUCE, .type = FABREX_INT32,
		.op = FABREX_SUM, .count = 120000,
	};
	struct fabrex_comm *comm = world_comm(w, "all:ring");
	struct buffers gpu, host;
	uint32_t i;

	open_gpu(w, &gpu);
	gpu_none(&host.gpu, 2 * ROOM);
	host.send = host.gpu.memory;
	host.recv = host.send + ROOM;
	host.host = gpu.host;
	for (i = 0; i < 8; i++) {
		test_note("operation %u", i);
		what.count = i & 4 ? 120000 : 7;
		one(w, comm, (w->rank + i) % 2 ? &gpu : &host, what, 0, false);
	}
	gpu.recv = gpu.send;
	one(w, comm, &gpu, what, 0, false);
	fabrex_comm_destroy(comm);
}

TEST(gpus_come_and_go)
{
	world_run(2, changes_work, NULL);
	world_run(4, changes_work, NULL);
}

/*
 * By default a schedule from GPU to GPU takes the place of direct. Where one GPU
 * has no memory for that all do without, and the communicator goes on.
 */
static void full_work(struct world *w)
{
	struct fabrex_collective what = {
		.kind = FABREX_REDUCE_SCATTER, .type = FABREX_INT32,
		.op = FABREX_SUM, .count = 60001,
	};
	struct fabrex_comm *comm = world_comm(w, "");
	struct buffers g;
	uint32_t i;

	open_peer(w, false, &g);
	for (i = 0; i < 3; i++) {
		/* The first makes what is needed for copies to the host. */
		what.count = i ? 60001 : 3;
		if (i && w->rank == 1)
			setenv("FABREX_TEST_FAIL", "cuMemAlloc_v2=2", 1);
		one(w, comm, &g, what, 0, false);
	}
	unsetenv("FABREX_TEST_FAIL");
	fabrex_comm_destroy(comm);
}

TEST(gpus_may_be_full)
{
	world_run(2, full_work, NULL);
	world_run(4, full_work, NULL);
}

/* ---- messages ---------------------------------------------------------- */

/* Around, everybody to itself as well, of all lengths. */
static void messages_work(struct world *w)
{
	static const uint64_t lengths[] = { 1, 40, 41, 5000, 40000, 900001 };
	uint32_t next = (w->rank + 1) % w->size, i;
	uint32_t before = (w->rank + w->size - 1) % w->size;
	struct buffers g;
	char *own = malloc(ROOM);
	uint64_t n;

	CHECK(own);
	open_gpu(w, &g);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		n = lengths[i];
		memset(g.host, (int)(w->rank + i), n);
		put(&g, g.send, n);
		test_note("length %llu", (unsigned long long)n);
		CHECK_EQ(fabrex_group_begin(w->comm), 0);
		CHECK_EQ(fabrex_send(w->comm, g.send, n, FABREX_INT8, next),
			 0);
		CHECK_EQ(fabrex_recv(w->comm, g.recv, n, FABREX_INT8, before),
			 0);
		CHECK_EQ(fabrex_send(w->comm, g.send, n, FABREX_INT8,
				     w->rank), 0);
		CHECK_EQ(fabrex_recv(w->comm, own, n, FABREX_INT8, w->rank),
			 0);
		CHECK_EQ(fabrex_group_end(w->comm), 0);
		get(&g, g.recv, n);
		CHECK_EQ(g.host[0], (char)(before + i));
		CHECK_EQ(g.host[n - 1], (char)(before + i));
		CHECK_EQ(own[n - 1], (char)(w->rank + i));
	}
}

TEST(gpus_send_and_receive)
{
	world_run(3, messages_work, NULL);
}
