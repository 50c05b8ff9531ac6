// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Every collective, type and operation, in and out of place, at odd sizes and
 * offsets, with every algorithm, for 1 to 9 ranks, and for more with those that
 * are made for many, against the reference.
 */
#include "job.h"

#define ROOM	(8u << 20)	/* bytes for each buffer */

/*
 * Those whose order of reduction is the reference's come first, then those for
 * many ranks.
 */
static const char *const algorithms[] = {
	"flat", "bruck", "direct", "staged", "halving", "doubling", "ring",
	"ring*2", "tree", "chain", "direct*1",
};

#define IN_ORDER	4u
#define FOR_MANY	6u
#define ALGORITHMS	(sizeof(algorithms) / sizeof(*algorithms))

static void run_job(const struct world *w, struct fabrex_comm *comm,
		    struct job *job)
{
	job_prepare(w, job);
	CHECK_EQ(world_call(comm, &job->what), 0);
	job_get(w, job);
	job_check(w, job);
}

/* ---- loops ------------------------------------------------------------- */

struct run {
	struct world *w;
	struct fabrex_comm *comm;
	const char *name;
	bool in_order;
	const struct memory *memories;	/* two: reached by others, or not */
	uint32_t number;		/* of the job */
};

/* Mostly all ranks have the same kind of memory, sometimes one differs. */
static const struct memory *choose_memory(const struct run *r)
{
	if (r->number % 5 == 4)
		return &r->memories[r->number % r->w->size == r->w->rank];
	return &r->memories[r->number % 2];
}

static void one(struct run *r, uint32_t kind, uint32_t type, uint32_t op,
		uint64_t count, bool in_place)
{
	static const uint32_t offsets[] = { 0, 1, 8, 0, 3, 60, 0 };
	struct job job = {
		.what = {
			.kind = kind, .type = type, .op = op, .count = count,
			.root = rooted(kind) ? r->number % r->w->size : 0,
		},
		.values = {
			.type = type, .op = op, .seed = r->number,
			.whole = !r->in_order,
		},
		.in_place = in_place,
		.offset = offsets[(r->number + r->w->rank) % 7],
		.memory = choose_memory(r),
	};

	test_note("%s: kind %u type %u op %u count %llu offset %u root %u, in place %d, rank %u of %u",
		  r->name, kind, type, op, (unsigned long long)count,
		  job.offset, job.what.root, in_place, r->w->rank,
		  r->w->size);
	run_job(r->w, r->comm, &job);
	r->number++;
}

/* Of @bytes that it is about. */
static bool performs(struct run *r, uint32_t kind, uint64_t bytes)
{
	char name[32];

	CHECK_EQ(fabrex_comm_algorithm(r->comm, kind, bytes, name,
				       sizeof(name)), 0);
	return !strcmp(name, r->name);
}

static void all_types(struct run *r, uint32_t kind, uint64_t count)
{
	uint32_t type, op, ops = reduces(kind) ? FABREX_AVG : 1;

	for (type = FABREX_INT8; type <= FABREX_FLOAT64; type++)
		for (op = 1; op <= ops; op++) {
			one(r, kind, type, reduces(kind) ? op : 0, count,
			    false);
			if (kind != FABREX_ALL_TO_ALL)
				one(r, kind, type, reduces(kind) ? op : 0,
				    count, true);
		}
}

static void all_kinds(struct run *r, const uint64_t *counts, size_t n)
{
	uint32_t kind;
	size_t i;

	for (kind = FABREX_ALL_REDUCE; kind < FABREX_BARRIER; kind++)
		for (i = 0; i < n && performs(r, kind, 1000); i++)
			all_types(r, kind, counts[i]);
	CHECK_EQ(fabrex_barrier(r->comm), 0);
}

static void *room(void)
{
	void *memory = malloc(ROOM);

	CHECK(memory);
	return memory;
}

static void get_memories(struct world *w, struct memory *m)
{
	struct fabrex_mr *mr;
	uint32_t i;

	for (i = 0; i < 2; i++)
		m[i].send.room = m[i].recv.room = ROOM;
	m[0].expected = m[1].expected = room();
	m[1].send.at = room();
	m[1].recv.at = room();
	if (w->arg) {
		/* Of a GPU, and of the host beside it. */
		gpu_cuda(&m[0].send.gpu, 2 * (size_t)ROOM);
		m[0].recv.gpu = m[0].send.gpu;
		m[0].send.at = m[0].send.gpu.memory;
		m[0].send.mirror = room();
		m[0].recv.mirror = room();
	} else {
		CHECK_EQ(fabrex_mr_alloc(w->port, 2 * (size_t)ROOM,
					 FABREX_MR_ALL, &mr), 0);
		m[0].send.at = fabrex_mr_addr(mr);
	}
	m[0].recv.at = m[0].send.at + ROOM;
}

/* The first @n of the algorithms. */
static void with_first(struct world *w, void (*work)(struct run *r), size_t n)
{
	struct memory memories[2] = { 0 };
	struct run r = { .w = w, .memories = memories };
	char text[64];
	size_t i;

	get_memories(w, memories);
	for (i = 0; i < n; i++) {
		r.name = algorithms[i];
		r.in_order = i < IN_ORDER;
		snprintf(text, sizeof(text), "all:%s", r.name);
		r.comm = world_comm(w, text);
		work(&r);
		fabrex_comm_destroy(r.comm);
	}
}

static void with_each(struct world *w, void (*work)(struct run *r))
{
	with_first(w, work, ALGORITHMS);
}

/* ---- tests ------------------------------------------------------------- */

static void small_sizes(struct run *r)
{
	static const uint64_t few[] = { 129, 3, 1000, 1 };
	uint32_t n = r->w->size > 4 ? 1 : 2;

	all_kinds(r, few, r->in_order ? 2 * n : n);
}

static void small_work(struct world *w)
{
	with_each(w, small_sizes);
}

TEST(every_type_and_size)
{
	uint32_t n;

	for (n = 1; n <= RANKS + 1; n++)
		world_run(n, small_work, NULL);
}

/* Each operation with another type, and few elements: slots are small. */
static void few_types(struct run *r)
{
	uint32_t kind, op, ops, type = 0;

	for (kind = FABREX_ALL_REDUCE; kind < FABREX_BARRIER; kind++) {
		ops = reduces(kind) ? FABREX_AVG : 1;
		for (op = 1; op <= ops && performs(r, kind, 1000); op++) {
			type = type % FABREX_FLOAT64 + 1;
			one(r, kind, type, reduces(kind) ? op : 0, 127, false);
			if (kind != FABREX_ALL_TO_ALL)
				one(r, kind, type, reduces(kind) ? op : 0, 1,
				    true);
		}
	}
	CHECK_EQ(fabrex_barrier(r->comm), 0);
}

static void many_work(struct world *w)
{
	with_first(w, few_types, FOR_MANY);
}

TEST(many_ranks)
{
	world_run(16, many_work, NULL);
	world_run(33, many_work, NULL);
	world_run_far(16, many_work, NULL);
}

/* On one GPU, and in the host's memory: any rank may have either. */
#define ON_GPU(n) \
TEST_NAMED(every_type_and_size_cuda_##n) \
{ \
	world_run(n, small_work, "cuda"); \
}
ON_GPU(1)
ON_GPU(2)
ON_GPU(3)
ON_GPU(4)
ON_GPU(5)
ON_GPU(6)
ON_GPU(7)
ON_GPU(8)

TEST(every_type_and_size_far)
{
	world_run_far(2, small_work, NULL);
	world_run_far(5, small_work, NULL);
}

TEST(every_type_and_size_by_several_ports)
{
	world_run_bridged(3, small_work, NULL);
	world_run_bridged(4, small_work, NULL);
}

#define LARGE	(512u << 10)

/* More than a slot holds; more than one round, or chunk. */
static void large_sizes(struct run *r)
{
	static const struct {
		uint32_t type, op;
		uint64_t count;
	} of[] = {
		{ FABREX_FLOAT32, FABREX_SUM, 40001 },
		{ FABREX_BFLOAT16, FABREX_AVG, 100003 },
		{ FABREX_INT8, FABREX_PROD, 614401 },
	};
	uint32_t kind, i, n = r->w->size > 3 ? 1 : r->in_order ? 3 : 2;

	for (kind = FABREX_ALL_REDUCE; kind < FABREX_BARRIER; kind++)
		for (i = 0; i < n && performs(r, kind, LARGE); i++) {
			one(r, kind, of[i].type, reduces(kind) ? of[i].op : 0,
			    of[i].count, false);
			if (kind != FABREX_ALL_TO_ALL)
				one(r, kind, of[i].type,
				    reduces(kind) ? of[i].op : 0, of[i].count,
				    true);
		}
}

static void large_work(struct world *w)
{
	with_each(w, large_sizes);
}

TEST_NAMED(more_than_slots_hold_cuda)
{
	world_run(2, large_work, "cuda");
	world_run(3, large_work, "cuda");
}

TEST(more_than_slots_hold)
{
	static const uint32_t sizes[] = { 2, 3, 8 };
	uint32_t i;

	for (i = 0; i < 3; i++)
		world_run(sizes[i], large_work, NULL);
	world_run_far(3, large_work, NULL);
	world_run_bridged(3, large_work, NULL);
}

/* ---- the same everywhere, and again ------------------------------------ */

static uint64_t digest(const void *from, uint64_t bytes)
{
	const unsigned char *p = from;
	uint64_t h = 14695981039346656037ull;

	while (bytes--)
		h = (h ^ *p++) * 1099511628211ull;
	return h;
}

/* Any numbers: their order shows in the last bits. */
static void repeat_one(struct run *r, uint32_t type, uint64_t count)
{
	struct job job = {
		.what = { .kind = FABREX_ALL_REDUCE, .type = type,
			  .op = FABREX_SUM, .count = count },
		.values = { .type = type, .op = FABREX_SUM, .seed = 7 },
		.memory = &r->memories[0],
	};
	uint64_t sums[2], all[2 * RANKS_MOST];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		job_prepare(r->w, &job);
		CHECK_EQ(world_call(r->comm, &job.what), 0);
		job_get(r->w, &job);
		sums[i] = digest(job_seen(&job, job.what.recv),
				 job_recv_bytes(r->w, &job));
	}
	CHECK_EQ(fabrex_all_gather(r->comm, sums, all, 2, FABREX_UINT64), 0);
	test_note("%s, type %u, count %llu", r->name, type,
		  (unsigned long long)count);
	for (i = 1; i < 2 * r->w->size; i++)
		CHECK_EQ(all[i], all[0]);
}

static void repeat_all(struct run *r)
{
	if (!performs(r, FABREX_ALL_REDUCE, 1000))
		return;
	repeat_one(r, FABREX_FLOAT32, 101);
	repeat_one(r, FABREX_FLOAT32, 1001);
	repeat_one(r, FABREX_BFLOAT16, 4099);
	repeat_one(r, FABREX_FLOAT16, 70001);
	repeat_one(r, FABREX_FLOAT64, 20011);
}

static void repeat_work(struct world *w)
{
	with_each(w, repeat_all);
}

static void repeat_many_work(struct world *w)
{
	with_first(w, repeat_all, FOR_MANY);
}

TEST_NAMED(bits_are_the_same_everywhere_cuda)
{
	world_run(2, repeat_work, "cuda");
	world_run(5, repeat_work, "cuda");
}

TEST(bits_are_the_same_everywhere)
{
	uint32_t n;

	for (n = 2; n <= RANKS; n += 3)
		world_run(n, repeat_work, NULL);
	world_run(33, repeat_many_work, NULL);
}
