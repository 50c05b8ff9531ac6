// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The matrix of collectives, types and operations in the memory of GPUs: two
 * communicators at once, on two streams, with one or two GPUs for each process,
 * at odd sizes and offsets, for 1 to 8 ranks, against the reference of the
 * host's matrix. make check performs every combination of collective, type, operation
 * and place once, with the rest drawn; make check-matrix all of them for each
 * number of ranks and algorithm.
 */
#include "job.h"

#define ROOM	(2u << 20)	/* bytes for each buffer */
#define LANES	2u		/* at once */
#define COMBINATIONS 420u

/* Buffers on two GPUs, or in the host's memory. */
enum { GPU_A, GPU_B, IN_HOST, SIDES };

/* The first is what most programs have. */
static const struct {
	uint32_t send, recv;
} places[] = {
	{ GPU_A, GPU_A }, { GPU_B, GPU_B }, { GPU_A, GPU_B },
	{ GPU_A, IN_HOST }, { IN_HOST, GPU_A }, { IN_HOST, IN_HOST },
};

#define PLACES	(sizeof(places) / sizeof(*places))

/* Those that reduce in the reference's order come first. */
static const char *const algorithms[] = {
	"flat", "direct", "staged", "ring", "ring*2", "tree", "halving",
	"doubling",
};

#define IN_ORDER	3u
#define ALGORITHMS	(sizeof(algorithms) / sizeof(*algorithms))

enum vendor { CUDA, HIP, BOTH };	/* BOTH: by rank */

struct setting {
	uint64_t seed;
	enum vendor vendor;
	bool full;
	uint32_t part, parts;		/* of the combinations, if not full */
};

/* ---- what is drawn ----------------------------------------------------- */

static uint32_t draw(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33) % n;
}

struct combination {
	uint32_t kind, type, op;
	bool in_place;
};

static uint32_t list_all(struct combination *list)
{
	uint32_t n = 0, kind, type, op, in_place;

	for (kind = FABREX_ALL_REDUCE; kind < FABREX_BARRIER; kind++)
		for (type = FABREX_INT8; type <= FABREX_FLOAT64; type++)
			for (op = 1; op <= (reduces(kind) ? FABREX_AVG : 1);
			     op++)
				for (in_place = 0;
				     in_place < (kind == FABREX_ALL_TO_ALL ?
						 1 : 2); in_place++)
					list[n++] = (struct combination){
						.kind = kind, .type = type,
						.op = reduces(kind) ? op : 0,
						.in_place = in_place,
					};
	return n;
}

static void shuffle(struct combination *list, uint32_t n, uint64_t *state)
{
	struct combination last;
	uint32_t other;

	while (n > 1) {
		other = draw(state, n--);
		last = list[n];
		list[n] = list[other];
		list[other] = last;
	}
}

/* ---- a rank ------------------------------------------------------------ */

enum way { CALL, START, ENQUEUE, ENQUEUE_ACROSS, WAYS };

/* What one of the two communicators works with. */
struct lane {
	struct fabrex_comm *comm;
	const char *name;		/* of its algorithm */
	bool in_order;
	struct side sends[SIDES], recvs[SIDES];
	struct memory memories[PLACES];
	struct job job;
	struct fabrex_coll *coll;
	struct fabrex_stream *stream;
};

struct rank {
	struct world *w;
	uint64_t same, own;	/* states: of all ranks, of this one */
	struct gpu gpus[2];
	struct lane lanes[LANES];
};

static void *room(void)
{
	void *memory = malloc(ROOM);

	CHECK(memory);
	return memory;
}

static void open_side(struct rank *r, struct side *side, uint32_t which,
		      char *at)
{
	side->room = ROOM;
	side->at = at;
	if (which == IN_HOST)
		return;
	side->gpu = r->gpus[which];
	side->mirror = room();
}

static void open_lanes(struct rank *r)
{
	char *expected = room();
	struct lane *l;
	uint32_t i, j;

	for (i = 0; i < LANES; i++) {
		l = &r->lanes[i];
		for (j = 0; j < 2; j++) {
			open_side(r, &l->sends[j], j,
				  r->gpus[j].memory + 2 * i * ROOM);
			open_side(r, &l->recvs[j], j,
				  r->gpus[j].memory + (2 * i + 1) * ROOM);
		}
		open_side(r, &l->sends[IN_HOST], IN_HOST, room());
		open_side(r, &l->recvs[IN_HOST], IN_HOST, room());
		for (j = 0; j < PLACES; j++) {
			l->memories[j].send = l->sends[places[j].send];
			l->memories[j].recv = l->recvs[places[j].recv];
			l->memories[j].expected = expected;
		}
	}
}

static void open_gpus(struct rank *r, enum vendor vendor)
{
	size_t bytes = 2 * LANES * (size_t)ROOM;

	if (vendor == BOTH)
		vendor = r->w->rank % 2 ? HIP : CUDA;
	if (vendor == CUDA) {
		gpu_cuda_on(&r->gpus[1], 1, bytes);
		gpu_cuda_on(&r->gpus[0], 0, bytes);
	} else {
		gpu_hip_on(&r->gpus[1], 1, bytes);
		gpu_hip_on(&r->gpus[0], 0, bytes);
	}
}

/* ---- one pair of collectives ------------------------------------------- */

/* Mostly all ranks have the same place, sometimes each its own. */
static const struct memory *draw_memory(struct rank *r, struct lane *l)
{
	uint32_t place = draw(&r->same, 2) ? 0 : draw(&r->same, PLACES);
	uint32_t own = draw(&r->own, PLACES);

	return &l->memories[draw(&r->same, 4) ? place : own];
}

static bool performs(const struct lane *l, uint32_t kind)
{
	char name[32];

	CHECK_EQ(fabrex_comm_algorithm(l->comm, kind, 1000, name,
				       sizeof(name)), 0);
	return !strcmp(name, l->name);
}

static void draw_job(struct rank *r, struct lane *l,
		     const struct combination *c)
{
	static const uint64_t counts[] = {
		1, 3, 129, 1000, 1023, 4097, 2, 20001,
	};
	static const uint32_t offsets[] = { 0, 1, 8, 0, 3, 60 };
	uint32_t number = draw(&r->same, 1u << 20);

	l->job = (struct job){
		.what = {
			.kind = c->kind, .type = c->type, .op = c->op,
			.count = counts[draw(&r->same, 8)],
			.root = rooted(c->kind) ?
				draw(&r->same, r->w->size) : 0,
		},
		.values = {
			.type = c->type, .op = c->op, .seed = number,
			.whole = !l->in_order || !performs(l, c->kind),
		},
		.in_place = c->in_place,
		.offset = offsets[draw(&r->own, 6)],
		.memory = draw_memory(r, l),
	};
}

/*
 * A stream of the GPU, of the default kind sometimes; in two of them that do
 * not wait for each other, ranks may enqueue in any order.
 */
static void open_stream(struct rank *r, struct lane *l, bool alone)
{
	const struct gpu *gpu = &r->gpus[draw(&r->own, 2)];
	uint32_t choice = draw(&r->own, 4);

	l->stream = NULL;
	if (choice == 0) {
		l->stream = stream_of(FABREX_MEMORY_HOST, NULL);
		return;
	}
	gpu_make_current(gpu);
	l->job.in_stream = true;
	if (alone || choice > 2)
		l->job.native = gpu_stream(gpu);
	else if (choice == 2)
		l->job.native = gpu_stream_blocking(gpu);
	else
		l->job.native = NULL;
	l->stream = gpu_stream_known(gpu, l->job.native);
	l->job.gpu = gpu;
}

static void close_stream(struct lane *l)
{
	const struct job *job = &l->job;

	CHECK_EQ(fabrex_stream_wait(l->stream, -1), 0);
	if (job->in_stream) {
		gpu_make_current(job->gpu);
		gpu_stream_sync(job->gpu, job->native);
	}
	CHECK_EQ(fabrex_stream_error(l->stream), 0);
	fabrex_stream_destroy(l->stream);
	if (job->native)
		gpu_stream_end(job->gpu, job->native);
}

static void begin(struct rank *r, struct lane *l, enum way way)
{
	const struct fabrex_collective *what = &l->job.what;

	if (way >= ENQUEUE)
		open_stream(r, l, way == ENQUEUE_ACROSS);
	job_prepare(r->w, &l->job);
	if (way == CALL)
		CHECK_EQ(world_call(l->comm, what), 0);
	else if (way == START)
		CHECK_EQ(fabrex_coll_start(l->comm, what, sizeof(*what),
					   &l->coll), 0);
	else
		CHECK_EQ(fabrex_coll_enqueue(l->comm, what, sizeof(*what),
					     l->stream, NULL), 0);
}

/* What is copied in the stream waits for the collective by itself. */
static void end(struct rank *r, struct lane *l, enum way way)
{
	if (way == START)
		CHECK_EQ(fabrex_coll_wait(l->coll, -1), 0);
	if (way >= ENQUEUE && !l->job.in_stream)
		CHECK_EQ(fabrex_stream_wait(l->stream, -1), 0);
	job_get(r->w, &l->job);
	if (way >= ENQUEUE)
		close_stream(l);
	job_check(r->w, &l->job);
}

static void note(const struct rank *r, enum way way)
{
	const struct job *a = &r->lanes[0].job, *b = &r->lanes[1].job;

	test_note("way %d: kind %u type %u op %u count %llu %s in place %d, and kind %u type %u op %u count %llu %s in place %d; rank %u of %u",
		  way, a->what.kind, a->what.type, a->what.op,
		  (unsigned long long)a->what.count, r->lanes[0].name,
		  a->in_place, b->what.kind, b->what.type, b->what.op,
		  (unsigned long long)b->what.count, r->lanes[1].name,
		  b->in_place, r->w->rank, r->w->size);
}

static void pair(struct rank *r, const struct combination *one,
		 const struct combination *other)
{
	enum way way = draw(&r->same, WAYS);
	uint32_t first = way == ENQUEUE_ACROSS ? r->w->rank % 2 : 0, i;

	draw_job(r, &r->lanes[0], one);
	draw_job(r, &r->lanes[1], other);
	note(r, way);
	for (i = 0; i < LANES; i++)
		begin(r, &r->lanes[(i + first) % LANES], way);
	for (i = 0; i < LANES; i++)
		end(r, &r->lanes[i], way);
}

/* ---- all of them ------------------------------------------------------- */

static void create(struct rank *r, uint32_t lane, uint32_t algorithm)
{
	struct lane *l = &r->lanes[lane];
	char text[64];

	l->name = algorithms[algorithm];
	l->in_order = algorithm < IN_ORDER;
	snprintf(text, sizeof(text), "all:%s", l->name);
	l->comm = world_comm(r->w, text);
}

/* @n combinations with those two algorithms, each in both lanes at times. */
static void with_two(struct rank *r, const struct combination *list,
		     uint32_t n, uint32_t one, uint32_t other)
{
	uint32_t i, far = draw(&r->same, n);

	create(r, 0, one);
	create(r, 1, other);
	for (i = 0; i < n; i++)
		pair(r, &list[i], &list[(i + far) % n]);
	fabrex_comm_destroy(r->lanes[1].comm);
	fabrex_comm_destroy(r->lanes[0].comm);
}

static void matrix_work(struct world *w)
{
	const struct setting *s = w->arg;
	struct combination list[COMBINATIONS];
	uint32_t n = list_all(list), i, first, last, step;
	struct rank r = {
		.w = w, .same = s->seed,
		.own = s->seed + 1 + w->rank * 0x9e3779b97f4a7c15ull,
	};

	CHECK_EQ(n, COMBINATIONS);
	shuffle(list, n, &r.same);
	open_gpus(&r, s->vendor);
	open_lanes(&r);
	first = s->full ? 0 : n * s->part / s->parts;
	last = s->full ? n : n * (s->part + 1) / s->parts;
	step = s->full ? n : (last - first) / ALGORITHMS + 1;
	for (i = 0; i < ALGORITHMS; i++) {
		with_two(&r, list + first,
			 last - first < step ? last - first : step, i,
			 (i + 1 + draw(&r.same, ALGORITHMS - 1)) % ALGORITHMS);
		if (!s->full)
			first += step;
		if (first >= last)
			break;
	}
}

/*
 * Each combination once, shared out to the numbers of ranks; with it, one that
 * was drawn beside it in the other communicator.
 */
TEST(matrix_on_gpus)
{
	struct setting s = { .seed = world_seed(), .parts = RANKS };
	uint32_t n;

	printf("# each of %u combinations of collective, type, operation and in place or not, twice; drawn: ranks (1 to %u), algorithm, count, offset, place, stream\n",
	       COMBINATIONS, RANKS);
	for (n = 1; n <= RANKS; n++) {
		s.part = n - 1;
		s.vendor = (uint32_t)(s.seed / 7 + n) % 3;
		world_run(n, matrix_work, &s);
	}
	s.parts = 2 * RANKS;
	s.part = (uint32_t)(s.seed % s.parts);
	s.vendor = (uint32_t)(s.seed / 5) % 3;
	world_run_far(2, matrix_work, &s);
	world_run_far(5, matrix_work, &s);
}

/* make check-matrix: everything, but for count, offset, place, stream. */
TEST_NAMED(matrix_on_gpus_in_full)
{
	struct setting s = { .seed = world_seed(), .full = true };
	uint32_t n;

	for (n = 1; n <= RANKS; n++) {
		for (s.vendor = CUDA; s.vendor <= BOTH; s.vendor++)
			world_run(n, matrix_work, &s);
		s.vendor = n % 3;
		world_run_far(n, matrix_work, &s);
	}
}
