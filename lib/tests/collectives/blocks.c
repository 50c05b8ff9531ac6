// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Blocks of different lengths, none of them included: random counts and
 * displacements, in and out of place, in host memory and on GPUs, against the
 * reference; all of both buffers is compared, gaps too. Then what is refused,
 * and ranks that do not agree.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "device.h"
#include "world.h"

#define BYTE	0x5a
#define APART	(1u << 24)	/* elements of a sender's blocks */
#define MANY	66u		/* ranks: more than one reduction takes */

enum layout { PACKED, GAPS, BACKWARDS, LAYOUTS };
enum call { BLOCKING, STARTED, GROUPED, ENQUEUED, CALLS };

/* By rank. */
struct array {
	uint64_t counts[MANY], displs[MANY];
	bool packed;		/* give NULL for the displacements */
};

struct job {
	struct world *w;
	struct fabrex_collective what;
	struct values values;
	struct array send, recv;
	bool in_place;
	uint32_t number;
	uint64_t most;		/* elements of a block */
};

/* A rank's two buffers, and what they look like from the host. */
struct buffers {
	struct gpu gpu;
	uint64_t room;		/* bytes of one of them */
	char *memory;		/* both */
	char *image, *expected;	/* of both */
};

static uint64_t random_of(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = a * 0x9e3779b97f4a7c15ull + b * 0xc4ceb9fe1a85ec53ull +
		     c + 1;

	x ^= x >> 31;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
	return x ^ x >> 32;
}

/* ---- counts and displacements ------------------------------------------ */

/* Of the block from one rank to another; a third of them are empty. */
static uint64_t count_of(const struct job *job, uint32_t from, uint32_t to)
{
	uint64_t bits;

	if (job->in_place && job->what.kind == FABREX_ALL_TO_ALLV && from > to)
		return count_of(job, to, from);
	if (job->what.kind == FABREX_ALL_GATHERV)
		to = 0;
	if (job->what.kind == FABREX_REDUCE_SCATTERV)
		from = 0;
	bits = random_of(job->number, from, to);
	switch (bits % 6) {
	case 0:
	case 1:
		return 0;
	case 2:
		return (bits >> 8) % 12 + 1;
	case 3:
		return (bits >> 8) % job->most + 1;
	default:
		return (bits >> 8) % 100 + 1;
	}
}

static void lay_out(const struct job *job, struct array *a, enum layout layout,
		    uint64_t seed)
{
	uint32_t size = job->w->size, i, rank;
	uint64_t at = 0;

	a->packed = layout == PACKED;
	for (i = 0; i < size; i++) {
		rank = layout == BACKWARDS ? size - 1 - i : i;
		if (layout != PACKED)
			at += random_of(seed, job->number, rank) % 5;
		a->displs[rank] = at;
		at += a->counts[rank];
	}
}

static void make_arrays(struct job *job)
{
	uint32_t kind = job->what.kind, me = job->w->rank, i;
	enum layout layout = (job->number + me) % LAYOUTS;

	for (i = 0; i < job->w->size; i++) {
		job->send.counts[i] = count_of(job, me, i);
		job->recv.counts[i] = kind == FABREX_REDUCE_SCATTERV ?
				      job->send.counts[i] :
				      count_of(job, i, me);
	}
	if (kind == FABREX_REDUCE_SCATTERV)
		layout = PACKED;
	lay_out(job, &job->recv, layout, me);
	layout = (job->number / 3 + me) % LAYOUTS;
	lay_out(job, &job->send, kind == FABREX_ALL_TO_ALLV ? layout : PACKED,
		me + 1000);
	if (kind == FABREX_ALL_TO_ALLV && job->in_place)
		job->send = job->recv;
	job->what.recv_counts = job->recv.counts;
	if (!job->recv.packed)
		job->what.recv_displs = job->recv.displs;
	if (kind == FABREX_ALL_GATHERV)
		job->what.count = job->recv.counts[me];
	if (kind != FABREX_ALL_TO_ALLV)
		return;
	job->what.send_counts = job->send.counts;
	if (!job->send.packed)
		job->what.send_displs = job->send.displs;
}

/* ---- buffers ----------------------------------------------------------- */

static uint64_t size_of(const struct job *job)
{
	return fabrex_datatype_size(job->what.type);
}

/* Offsets of both from the start of all memory. */
static void place(const struct job *job, uint64_t room, uint64_t *send,
		  uint64_t *recv)
{
	uint64_t own = job->recv.displs[job->w->rank] * size_of(job);

	*send = 64 + job->number % 3;
	*recv = room + 64 + job->number % 2;
	if (job->in_place && job->what.kind == FABREX_ALL_GATHERV)
		*send = *recv + own;
	else if (job->in_place && job->what.kind == FABREX_REDUCE_SCATTERV)
		*recv = *send + own;
	else if (job->in_place)
		*send = *recv;
}

/* The stream of what a rank sends, from which its blocks are. */
static uint64_t first_of(const struct job *job, uint32_t to)
{
	return job->what.kind == FABREX_ALL_TO_ALLV ? (uint64_t)to * APART :
						      0;
}

static void fill(const struct job *job, char *send)
{
	const struct array *a = &job->send;
	uint32_t me = job->w->rank, i;

	if (job->what.kind == FABREX_ALL_GATHERV) {
		values_fill(&job->values, me, 0, job->what.count, send);
		return;
	}
	for (i = 0; i < job->w->size; i++)
		values_fill(&job->values, me,
			    job->what.kind == FABREX_ALL_TO_ALLV ?
			    first_of(job, i) : a->displs[i], a->counts[i],
			    send + a->displs[i] * size_of(job));
}

static void expect(const struct job *job, char *recv)
{
	const struct array *a = &job->recv;
	uint32_t me = job->w->rank, i;

	if (job->what.kind == FABREX_REDUCE_SCATTERV) {
		values_reduce(&job->values, job->w->size, a->displs[me],
			      a->counts[me], recv);
		return;
	}
	for (i = 0; i < job->w->size; i++)
		values_fill(&job->values, i, first_of(job, me), a->counts[i],
			    recv + a->displs[i] * size_of(job));
}

/* ---- one operation ----------------------------------------------------- */

/* By its own function. */
static int call(struct fabrex_comm *comm, const struct fabrex_collective *c)
{
	if (c->kind == FABREX_ALL_GATHERV)
		return fabrex_all_gatherv(comm, c->send, c->count, c->recv,
					  c->recv_counts, c->recv_displs,
					  c->type);
	if (c->kind == FABREX_REDUCE_SCATTERV)
		return fabrex_reduce_scatterv(comm, c->send, c->recv,
					      c->recv_counts, c->type, c->op);
	return fabrex_all_to_allv(comm, c->send, c->send_counts,
				  c->send_displs, c->recv, c->recv_counts,
				  c->recv_displs, c->type);
}

/*
 * In a stream that the copies around it, which are in the default stream, wait
 * for, and it for them.
 */
static struct fabrex_stream *open_stream(const struct gpu *gpu, void **native)
{
	*native = gpu->cuda || gpu->hip ? gpu_stream_blocking(gpu) : NULL;
	return gpu_stream_known(gpu, *native);
}

static void close_stream(const struct gpu *gpu, struct fabrex_stream *stream,
			 void *native)
{
	CHECK_EQ(fabrex_stream_wait(stream, -1), 0);
	fabrex_stream_destroy(stream);
	if (native)
		gpu_stream_end(gpu, native);
}

/* In the background, in a group and in a stream, arrays may be reused at once. */
static void perform(struct job *job, struct fabrex_comm *comm,
		    const struct gpu *gpu)
{
	struct fabrex_stream *stream = NULL;
	void *native = NULL;
	enum call how = job->number / 2 % CALLS;
	struct fabrex_collective what = job->what;
	struct job arrays = *job;
	struct fabrex_coll *coll;

	if (how == BLOCKING) {
		CHECK_EQ(call(comm, &what), 0);
		return;
	}
	what.recv_counts = arrays.recv.counts;
	if (what.recv_displs)
		what.recv_displs = arrays.recv.displs;
	if (what.send_counts)
		what.send_counts = arrays.send.counts;
	if (what.send_displs)
		what.send_displs = arrays.send.displs;
	if (how == ENQUEUED) {
		stream = open_stream(gpu, &native);
		CHECK_EQ(fabrex_coll_enqueue(comm, &what, sizeof(what), stream,
					     &coll), 0);
	} else if (how == GROUPED) {
		CHECK_EQ(fabrex_group_begin(comm), 0);
		CHECK_EQ(call(comm, &what), 0);
	} else {
		CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll),
			 0);
	}
	memset(&arrays, 0xff, sizeof(arrays));
	CHECK_EQ(how == GROUPED ? fabrex_group_end(comm) :
				  fabrex_coll_wait(coll, -1), 0);
	if (how == ENQUEUED)
		close_stream(gpu, stream, native);
}

static void compare(const struct buffers *b)
{
	uint64_t i;

	for (i = 0; memcmp(b->image, b->expected, 2 * b->room); i++)
		CHECK_EQ(b->image[i] == b->expected[i] ? -1 : (long long)i,
			 -1);
}

static void one(struct job *job, struct fabrex_comm *comm,
		const struct buffers *b)
{
	uint64_t send, recv;

	job->values = (struct values){
		.type = job->what.type, .op = job->what.op,
		.seed = job->number,
	};
	make_arrays(job);
	place(job, b->room, &send, &recv);
	test_note("kind %u type %u op %u number %u, in place %d, rank %u of %u",
		  job->what.kind, job->what.type, job->what.op, job->number,
		  job->in_place, job->w->rank, job->w->size);
	memset(b->image, BYTE, 2 * b->room);
	fill(job, b->image + send);
	gpu_put(&b->gpu, b->memory, b->image, 2 * b->room);
	memcpy(b->expected, b->image, 2 * b->room);
	expect(job, b->expected + recv);
	job->what.send = b->memory + send;
	job->what.recv = b->memory + recv;
	perform(job, comm, &b->gpu);
	gpu_get(&b->gpu, b->image, b->memory, 2 * b->room);
	compare(b);
}

/* ---- all of them ------------------------------------------------------- */

static void open_buffers(const struct world *w, struct buffers *b,
			 uint64_t most)
{
	bool full = w->arg && !strcmp(w->arg, "full gpu");
	uint64_t bytes;

	setenv("FABREX_TEST_FAIL", "", 1);
	b->room = w->size * (most + 5) * 8 + 256;
	bytes = 2 * b->room;
	if (w->arg && w->rank % 3 == 0)
		gpu_cuda(&b->gpu, bytes);
	else if (w->arg && w->rank % 3 == 1)
		gpu_hip(&b->gpu, bytes);
	else
		gpu_none(&b->gpu, bytes);
	b->memory = b->gpu.memory;
	b->image = malloc(bytes);
	b->expected = malloc(bytes);
	CHECK(b->image && b->expected);
	if (full)
		setenv("FABREX_TEST_FAIL", "cuMemAlloc_v2=2,hipMalloc=2", 1);
}

static void kinds(struct world *w, uint32_t times, uint64_t most)
{
	struct buffers b;
	uint32_t i, kind;

	open_buffers(w, &b, most);
	for (i = 0; i < times; i++)
		for (kind = FABREX_ALL_GATHERV; kind <= FABREX_ALL_TO_ALLV;
		     kind++) {
			struct job job = {
				.w = w, .number = 3 * i + kind,
				.in_place = (i / 6 + i) & 1, .most = most,
				.what = {
					.kind = kind,
					.type = i % FABREX_FLOAT64 + 1,
				},
			};

			if (kind == FABREX_REDUCE_SCATTERV)
				job.what.op = (i / 2 + w->size) % FABREX_AVG +
					      1;
			one(&job, w->comm, &b);
		}
	CHECK_EQ(fabrex_barrier(w->comm), 0);
}

static void small_work(struct world *w)
{
	kinds(w, 36, 700);
}

/* More than the slots of a pair hold. */
static void large_work(struct world *w)
{
	kinds(w, 12, 80000);
}

TEST(blocks_of_different_lengths)
{
	uint32_t n;

	for (n = 1; n <= RANKS; n++)
		world_run(n, small_work, NULL);
	world_run(3, large_work, NULL);
	world_run(5, large_work, NULL);
}

TEST(blocks_of_different_lengths_far)
{
	world_run_far(2, small_work, NULL);
	world_run_far(5, small_work, NULL);
	world_run_far(3, large_work, NULL);
	world_run_bridged(3, large_work, NULL);
}

static void gpu_work(struct world *w)
{
	kinds(w, 36, 300);
	if (w->size > 1)
		kinds(w, 2, 20000);
}

TEST(blocks_on_gpus)
{
	uint32_t n;

	for (n = 1; n <= RANKS; n++)
		world_run(n, gpu_work, "gpu");
	world_run_far(3, gpu_work, "gpu");
}

/* On copies in the host's memory: what is between blocks is left alone. */
static void host_work(struct world *w)
{
	kinds(w, 13, 300);
	kinds(w, 1, 20000);
}

TEST(blocks_on_gpus_that_are_full)
{
	world_run(2, host_work, "full gpu");
	world_run(3, host_work, "full gpu");
}

/* More ranks than a reduction takes at once; 32 bits are rounded each time. */
static void many_work(struct world *w)
{
	struct job job = {
		.w = w, .most = 3000,
		.what = { .kind = FABREX_REDUCE_SCATTERV },
	};
	struct buffers b;
	uint32_t i;

	open_buffers(w, &b, job.most);
	for (i = 0; i < 4; i++) {
		job.number = i;
		job.in_place = i & 1;
		job.what.type = i & 1 ? FABREX_INT32 : FABREX_FLOAT32;
		job.what.op = i & 2 ? FABREX_AVG : FABREX_SUM;
		one(&job, w->comm, &b);
	}
}

TEST(blocks_of_many_ranks)
{
	world_run(MANY, many_work, NULL);
}

/* The same bits as without arrays, of numbers that are rounded. */
static void same_work(struct world *w)
{
	static const uint32_t types[] = {
		FABREX_FLOAT32, FABREX_FLOAT16, FABREX_BFLOAT16,
	};
	struct fabrex_comm *comm = world_comm(w, "all:flat");
	uint64_t counts[RANKS], n = 20001;
	char *x = malloc(8 * n * w->size), *a = malloc(8 * n),
	     *b = malloc(8 * n);
	uint32_t i;

	CHECK(x && a && b);
	for (i = 0; i < w->size; i++)
		counts[i] = n;
	for (i = 0; i < 3; i++) {
		const struct values v = {
			.type = types[i], .op = FABREX_SUM, .seed = i,
		};

		values_fill(&v, w->rank, 0, n * w->size, x);
		CHECK_EQ(fabrex_reduce_scatter(comm, x, a, n, types[i],
					       FABREX_SUM), 0);
		CHECK_EQ(fabrex_reduce_scatterv(comm, x, b, counts, types[i],
						FABREX_SUM), 0);
		CHECK(!memcmp(a, b, n * fabrex_datatype_size(types[i])));
	}
	fabrex_comm_destroy(comm);
}

TEST(blocks_have_the_same_bits)
{
	world_run(5, same_work, NULL);
}

/* ---- what is refused --------------------------------------------------- */

static const uint64_t ones[] = { 1, 1 }, packed[] = { 0, 1 };

#define REFUSED(text, ...) \
	do { \
		struct fabrex_coll *coll_; \
		const struct fabrex_collective what_ = { __VA_ARGS__ }; \
		CHECK_EQ(fabrex_coll_start(w->comm, &what_, sizeof(what_), \
					   &coll_), -EINVAL); \
		CHECK_SAYS(text); \
	} while (0)
#define GATHER	.kind = FABREX_ALL_GATHERV, .type = FABREX_INT64, .send = x, \
		.recv = x + 8
#define ALL	.kind = FABREX_ALL_TO_ALLV, .type = FABREX_INT64, .send = x, \
		.recv = x + 8
#define SCATTER	.kind = FABREX_REDUCE_SCATTERV, .type = FABREX_INT64, \
		.op = FABREX_SUM, .send = x, .recv = x + 8

static void refuse_arrays_work(struct world *w)
{
	static const uint64_t huge[] = { UINT64_MAX / 4, UINT64_MAX / 4 };
	static const uint64_t far_off[] = { 0, UINT64_MAX };
	const uint64_t others[] = { 2 - w->rank, 1 + w->rank };
	uint64_t x[16];

	REFUSED("recv_counts is NULL", GATHER, .count = 1);
	REFUSED("send_counts is NULL", ALL, .recv_counts = ones);
	REFUSED("recv_counts is NULL", SCATTER);
	REFUSED("it has no send_counts", GATHER, .count = 1,
		.recv_counts = ones, .send_counts = ones);
	REFUSED("it has no recv_displs", SCATTER, .recv_counts = ones,
		.recv_displs = packed);
	REFUSED("it has no counts", .kind = FABREX_ALL_REDUCE,
		.type = FABREX_INT8, .op = FABREX_SUM, .recv_counts = ones);
	REFUSED("it has no counts", .kind = FABREX_BARRIER,
		.send_displs = ones);
	REFUSED("has a block of 2 elements for itself and expects one of 1",
		GATHER, .count = 2, .recv_counts = ones);
	REFUSED("has a block of 1 elements for itself and expects one of 2",
		ALL, .send_counts = ones, .recv_counts = others);
	REFUSED("give 0", SCATTER, .recv_counts = ones, .count = 1);
	REFUSED("block of rank 0 in send: ", SCATTER, .recv_counts = huge);
	REFUSED("do not fit the address space", ALL, .send_counts = ones,
		.send_displs = far_off, .recv_counts = ones);
	REFUSED("block of rank 1 in recv", GATHER, .count = 1,
		.recv_counts = ones, .recv_displs = far_off);
}

static void refuse_overlap_work(struct world *w)
{
	static const uint64_t same[] = { 3, 3 }, backwards[] = { 1, 0 };
	static const uint64_t twos[] = { 2, 2 }, even[] = { 0, 4 };
	static const uint64_t odd[] = { 2, 6 }, close[] = { 1, 5 };
	uint64_t x[32] = { 0 };
	uint32_t kind;
	char name[16];

	REFUSED("blocks of ranks 0 and 1 in recv overlap", GATHER, .count = 1,
		.recv_counts = ones, .recv_displs = same);
	REFUSED("no recv buffer", .kind = FABREX_ALL_GATHERV, .send = x,
		.type = FABREX_INT8, .count = 1, .recv_counts = ones);
	REFUSED("overlap with the block of rank", .kind = FABREX_ALL_TO_ALLV,
		.type = FABREX_INT64, .send = x, .recv = x,
		.send_counts = ones, .recv_counts = ones,
		.recv_displs = backwards);
	REFUSED("overlap with the block of rank", .kind = FABREX_ALL_TO_ALLV,
		.type = FABREX_INT64, .send = x, .recv = x,
		.send_counts = twos, .send_displs = even, .recv_counts = twos,
		.recv_displs = close);
	REFUSED("overlap with the block of rank", .kind = FABREX_ALL_GATHERV,
		.type = FABREX_INT64, .send = x + 1 - w->rank, .recv = x,
		.count = 1, .recv_counts = ones);
	REFUSED("overlap with the block of rank", .type = FABREX_INT64,
		.kind = FABREX_REDUCE_SCATTERV, .op = FABREX_SUM, .send = x,
		.recv = x + 1 - w->rank, .recv_counts = ones);
	/* In the gaps of each other. */
	x[0] = x[1] = w->rank + 1;
	x[4] = x[5] = w->rank + 11;
	CHECK_EQ(fabrex_all_to_allv(w->comm, x, twos, even, x, twos, odd,
				    FABREX_INT64), 0);
	CHECK_EQ(x[2], w->rank ? 11 : 1);
	CHECK_EQ(x[7], w->rank ? 12 : 2);
	for (kind = FABREX_ALL_GATHERV; kind <= FABREX_ALL_TO_ALLV; kind++) {
		CHECK_EQ(fabrex_comm_algorithm(w->comm, kind, 8, name,
					       sizeof(name)), 0);
		CHECK(!strcmp(name, "flat"));
		CHECK_EQ(fabrex_comm_schedule(w->comm, kind, NULL), -EINVAL);
	}
}

TEST(wrong_blocks_are_told)
{
	world_run(2, refuse_arrays_work, NULL);
	world_run(2, refuse_overlap_work, NULL);
}

/* ---- ranks that do not agree ------------------------------------------- */

/* The last rank has another idea of the first one's blocks. */
static void disagree_work(struct world *w)
{
	uint32_t kind = *(const uint32_t *)w->arg, last = w->size - 1;
	uint64_t sends[RANKS], recvs[RANKS];
	char x[8 * RANKS], y[8 * RANKS];
	struct fabrex_collective what = {
		.kind = kind, .type = FABREX_INT8, .send = x, .recv = y,
		.recv_counts = recvs,
	};
	uint32_t i;
	bool notices;
	int ret;

	for (i = 0; i < w->size; i++)
		sends[i] = recvs[i] = 3;
	if (w->rank == last)
		recvs[0] = kind == FABREX_REDUCE_SCATTERV ? 5 : 0;
	if (kind == FABREX_ALL_TO_ALLV)
		what.send_counts = sends;
	what.count = kind == FABREX_ALL_GATHERV ? 3 : 0;
	what.op = kind == FABREX_REDUCE_SCATTERV ? FABREX_SUM : 0;
	notices = w->rank == (kind == FABREX_REDUCE_SCATTERV ? 0 : last);
	ret = call(w->comm, &what);
	test_note("kind %u, rank %u: %d", kind, w->rank, ret);
	CHECK(notices ? ret == -EPROTO : !ret || ret == -ECONNRESET);
	if (notices && kind == FABREX_REDUCE_SCATTERV)
		CHECK_SAYS("expects a block of 3 elements");
	else if (notices)
		CHECK_SAYS("expects a block of 0 elements from rank 0, which sends one of 3");
	CHECK_EQ(fabrex_barrier(w->comm), notices ? -EPROTO : -ECONNRESET);
	CHECK_EQ(fabrex_comm_failed(w->comm, NULL, 0), 0);
}

TEST(disagreement_about_blocks_is_noticed)
{
	uint32_t kind;

	for (kind = FABREX_ALL_GATHERV; kind <= FABREX_ALL_TO_ALLV; kind++) {
		world_run(2, disagree_work, &kind);
		world_run(4, disagree_work, &kind);
		world_run_far(2, disagree_work, &kind);
	}
}

/*
 * A rank that dies once all are connected, and would have sent nothing but that
 * its block is empty: the others do not wait for it.
 */
static void dies_work(struct world *w)
{
	atomic_uint *connected = (atomic_uint *)(uintptr_t)w->arg;
	uint64_t counts[RANKS];
	char x[64], y[64];
	uint32_t i;

	for (i = 0; i < w->size; i++)
		counts[i] = i ? 1 : 0;
	atomic_fetch_add(connected, 1);
	while (!w->rank && atomic_load(connected) < w->size)
		usleep(1000);
	if (!w->rank)
		_exit(0);
	CHECK_EQ(fabrex_all_gatherv(w->comm, x, 1, y, counts, NULL,
				    FABREX_INT8), -ECONNRESET);
	CHECK_EQ(fabrex_comm_failed(w->comm, &i, 1), 1);
	CHECK_EQ(i, 0);
}

TEST(death_with_empty_blocks)
{
	void *connected = mmap(NULL, sizeof(atomic_uint),
			       PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(connected != MAP_FAILED);
	world_run(3, dies_work, connected);
}
