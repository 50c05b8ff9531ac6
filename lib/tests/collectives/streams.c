// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations in the order of streams: random programs against a model that
 * performs one thing after the other. Programs have collectives, kernels and
 * copies in up to four streams, which wait for each other where one needs what
 * is in another. Streams are the host's, or those of the test runtimes.
 */
#include <stdatomic.h>
#include <time.h>

#include "device.h"
#include "world.h"

#define STREAMS	4u
#define AREAS	3u		/* of each stream */
#define WORDS	3000u		/* of an area */
#define STEPS	14u		/* of a program */

enum memory { HOST, CUDA, HIP };
enum local { COPY = 100, KERNEL };	/* beside enum fabrex_coll_kind */

/* ---- programs ---------------------------------------------------------- */

/* The same at all ranks. */
struct step {
	uint32_t stream, kind;
	uint32_t source;	/* the stream that has area @from */
	uint32_t from, to;	/* areas */
	uint32_t first, count;	/* of what is local; count of the collective */
	uint32_t root, comm;
	uint32_t pause_us;	/* before it, in the stream; 0: none */
};

struct program {
	struct step steps[STEPS];
	uint32_t streams, most;	/* most: that it may have */
};

static uint64_t seed;

static uint32_t number(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static uint32_t make_kind(void)
{
	static const uint32_t kinds[] = {
		FABREX_ALL_REDUCE, FABREX_ALL_GATHER, FABREX_REDUCE_SCATTER,
		FABREX_BROADCAST, FABREX_REDUCE, FABREX_ALL_TO_ALL,
		FABREX_BARRIER, FABREX_SEND, FABREX_ALL_GATHERV,
		FABREX_REDUCE_SCATTERV, FABREX_ALL_TO_ALLV,
	};

	switch (number(6)) {
	case 0:
		return COPY;
	case 1:
		return KERNEL;
	default:
		return kinds[number(sizeof(kinds) / sizeof(*kinds))];
	}
}

static bool is_local(const struct step *s)
{
	return s->kind >= COPY;
}

static bool may_be_in_place(const struct step *s)
{
	return s->kind == FABREX_ALL_REDUCE || s->kind == FABREX_BROADCAST;
}

static void make_program(struct program *p, uint32_t ranks)
{
	struct step *s;

	p->streams = 1 + number(p->most);
	for (s = p->steps; s < p->steps + STEPS; s++) {
		s->stream = number(p->streams);
		s->source = number(4) ? s->stream : number(p->streams);
		s->kind = make_kind();
		s->from = number(AREAS);
		s->to = (s->from + 1 + number(AREAS - 1)) % AREAS;
		s->first = number(WORDS / 2);
		s->count = 1 + number(WORDS / 2 - 1);
		if (!is_local(s))
			s->count = number(4) ? 1 + number(WORDS / ranks - 1) :
					       1 + number(9);
		if (may_be_in_place(s) && !number(3)) {
			s->to = s->from;
			s->source = s->stream;
		}
		s->root = number(ranks);
		s->comm = number(2);
		s->pause_us = number(8) ? 0 : 1 + number(3000);
	}
}

/* Elements of the block from a rank to another. */
static uint64_t block(const struct step *s, uint32_t ranks, uint32_t from,
		      uint32_t to)
{
	uint32_t which = s->kind == FABREX_ALL_GATHERV ? from :
			 s->kind == FABREX_REDUCE_SCATTERV ? to :
							     from * ranks + to;

	return (s->count + which * 37) % (WORDS / ranks);
}

/* ---- the model --------------------------------------------------------- */

/* Of all ranks; each rank has one. */
struct model {
	uint32_t ranks;
	uint32_t *words;	/* [rank][stream][area][WORDS] */
	uint32_t *next;		/* [rank][WORDS]: what a step writes */
};

static uint32_t *area(const struct model *m, uint32_t rank, uint32_t stream,
		      uint32_t which)
{
	return m->words +
	       (((size_t)rank * STREAMS + stream) * AREAS + which) * WORDS;
}

static const uint32_t *sent(const struct model *m, const struct step *s,
			    uint32_t rank)
{
	return area(m, rank, s->source, s->from);
}

static size_t rank_bytes(void)
{
	return sizeof(uint32_t) * STREAMS * AREAS * WORDS;
}

static void copy_words(uint32_t *to, const uint32_t *from, uint64_t n)
{
	memcpy(to, from, n * sizeof(*to));
}

static void sum_up(const struct model *m, const struct step *s, uint64_t first,
		   uint64_t count, uint32_t *sum)
{
	uint32_t rank;
	uint64_t i;

	memset(sum, 0, count * sizeof(*sum));
	for (rank = 0; rank < m->ranks; rank++)
		for (i = 0; i < count; i++)
			sum[i] += sent(m, s, rank)[first + i];
}

/* Of the kinds with blocks, where those of @rank begin in a sender's. */
static uint64_t block_start(const struct model *m, const struct step *s,
			    uint32_t from, uint32_t rank)
{
	uint64_t at = 0;
	uint32_t i;

	for (i = 0; i < rank && s->kind != FABREX_ALL_GATHERV; i++)
		at += block(s, m->ranks, from, i);
	return at;
}

static void model_blocks(const struct model *m, const struct step *s,
			 uint32_t rank, uint32_t *to)
{
	uint64_t n;
	uint32_t i;

	if (s->kind == FABREX_REDUCE_SCATTERV) {
		sum_up(m, s, block_start(m, s, 0, rank),
		       block(s, m->ranks, 0, rank), to);
		return;
	}
	for (i = 0; i < m->ranks; i++, to += n) {
		n = block(s, m->ranks, i, rank);
		copy_words(to, sent(m, s, i) + block_start(m, s, i, rank), n);
	}
}

static void model_rank(const struct model *m, const struct step *s,
		       uint32_t rank, uint32_t *to)
{
	uint32_t i;

	switch (s->kind) {
	case FABREX_ALL_REDUCE:
		sum_up(m, s, 0, s->count, to);
		break;
	case FABREX_REDUCE_SCATTER:
		sum_up(m, s, rank * s->count, s->count, to);
		break;
	case FABREX_REDUCE:
		if (rank == s->root)
			sum_up(m, s, 0, s->count, to);
		break;
	case FABREX_BROADCAST:
		copy_words(to, sent(m, s, s->root), s->count);
		break;
	case FABREX_ALL_GATHER:
	case FABREX_ALL_TO_ALL:
		for (i = 0; i < m->ranks; i++)
			copy_words(to + i * s->count, sent(m, s, i) +
				   (s->kind == FABREX_ALL_TO_ALL ?
				    rank * s->count : 0), s->count);
		break;
	case FABREX_SEND:	/* around */
		copy_words(to, sent(m, s, (rank + m->ranks - 1) % m->ranks),
			   s->count);
		break;
	case FABREX_BARRIER:
		break;
	case COPY:
		copy_words(to + s->first, sent(m, s, rank), s->count);
		break;
	case KERNEL:
		mix(to + s->first, sent(m, s, rank), s->count, s->root + 1);
		break;
	default:
		model_blocks(m, s, rank, to);
	}
}

/* All read before any writes. */
static void model_step(const struct model *m, const struct step *s)
{
	uint32_t rank;

	for (rank = 0; rank < m->ranks; rank++) {
		copy_words(m->next + rank * WORDS,
			   area(m, rank, s->stream, s->to), WORDS);
		model_rank(m, s, rank, m->next + rank * WORDS);
	}
	for (rank = 0; rank < m->ranks; rank++)
		copy_words(area(m, rank, s->stream, s->to),
			   m->next + rank * WORDS, WORDS);
}

/* ---- the real thing ---------------------------------------------------- */

struct real {
	struct world *w;
	struct fabrex_comm *comms[2];
	enum memory memory;
	struct gpu gpu;
	struct fabrex_stream *streams[STREAMS];
	void *native[STREAMS];		/* of the GPU */
	bool of_host[STREAMS];
	void *aside;			/* a stream for what functions do */
	uint64_t *words[2 * STEPS];	/* that streams wait for */
	uint64_t round;			/* values of the words */
	bool plain;			/* streams of the GPU, non-blocking */
	char *host;
};

/* What a stream of the host does for a step; freed by what does it. */
struct errand {
	const struct real *r;
	const struct step *s;
	uint64_t *word, value;
};

static char *place(const struct real *r, uint32_t stream, uint32_t which)
{
	return r->gpu.memory + ((size_t)stream * AREAS + which) * WORDS *
			       sizeof(uint32_t);
}

static void call(const struct real *r, uint32_t stream,
		 void (*function)(void *arg), void *arg)
{
	if (r->of_host[stream])
		CHECK_EQ(fabrex_stream_call(r->streams[stream], function, arg),
			 0);
	else
		gpu_stream_call(&r->gpu, r->native[stream], function, arg);
}

static void pause_for(void *arg)
{
	const struct step *s = arg;
	const struct timespec time = { .tv_nsec = s->pause_us * 1000l };

	nanosleep(&time, NULL);
}

static struct errand *errand(const struct real *r, const struct step *s)
{
	struct errand *e = calloc(1, sizeof(*e));

	CHECK(e);
	e->r = r;
	e->s = s;
	return e;
}

/* ---- what is local ----------------------------------------------------- */

static void put_on_gpu(const struct real *r, const struct step *s, void *native)
{
	char *to = place(r, s->stream, s->to) + s->first * sizeof(uint32_t);
	const char *from = place(r, s->source, s->from);

	if (s->kind == KERNEL)
		gpu_stream_mix(&r->gpu, native, to, from, s->count,
			       s->root + 1);
	else
		gpu_stream_copy(&r->gpu, native, to, from,
				s->count * sizeof(uint32_t));
}

static void local_now(void *arg)
{
	struct errand *e = arg;
	const struct real *r = e->r;
	const struct step *s = e->s;
	void *to = place(r, s->stream, s->to) + s->first * sizeof(uint32_t);
	const void *from = place(r, s->source, s->from);

	if (r->memory != HOST) {
		gpu_make_current(&r->gpu);
		put_on_gpu(r, s, r->aside);
		gpu_stream_sync(&r->gpu, r->aside);
	} else if (s->kind == KERNEL) {
		mix(to, from, s->count, s->root + 1);
	} else {
		memcpy(to, from, s->count * sizeof(uint32_t));
	}
	free(e);
}

static void put_local(const struct real *r, const struct step *s)
{
	if (r->of_host[s->stream])
		call(r, s->stream, local_now, errand(r, s));
	else
		put_on_gpu(r, s, r->native[s->stream]);
}

/* ---- streams that wait for each other ---------------------------------- */

static void write_word(void *arg)
{
	struct errand *e = arg;

	__atomic_store_n(e->word, e->value, __ATOMIC_RELEASE);
	free(e);
}

static void await_word(void *arg)
{
	struct errand *e = arg;

	while (__atomic_load_n(e->word, __ATOMIC_ACQUIRE) < e->value)
		usleep(50);
	free(e);
}

static void call_for_word(const struct real *r, uint32_t stream,
			  uint64_t *word, void (*function)(void *arg))
{
	struct errand *e = errand(r, NULL);

	e->word = word;
	e->value = r->round;
	call(r, stream, function, e);
}

/* By an event, or, if one of them is the host's, by a word. */
static void join(const struct real *r, uint32_t earlier, uint32_t later,
		 uint64_t *word)
{
	if (!r->of_host[earlier] && !r->of_host[later]) {
		gpu_stream_join(&r->gpu, r->native[earlier], r->native[later]);
		return;
	}
	if (r->of_host[earlier])
		call_for_word(r, earlier, word, write_word);
	else
		gpu_stream_write(&r->gpu, r->native[earlier], word, r->round);
	if (r->of_host[later])
		call_for_word(r, later, word, await_word);
	else
		gpu_stream_hold(&r->gpu, r->native[later], word, r->round);
}

/* ---- collectives ------------------------------------------------------- */

static void put_around(const struct real *r, const struct step *s,
		       const void *from, void *to)
{
	struct fabrex_comm *comm = r->comms[s->comm];
	struct fabrex_stream *stream = r->streams[s->stream];
	uint32_t size = r->w->size, rank = r->w->rank;

	CHECK_EQ(fabrex_group_begin(comm), 0);
	CHECK_EQ(fabrex_send_enqueue(comm, from, s->count, FABREX_UINT32,
				     (rank + 1) % size, stream), 0);
	CHECK_EQ(fabrex_recv_enqueue(comm, to, s->count, FABREX_UINT32,
				     (rank + size - 1) % size, stream), 0);
	CHECK_EQ(fabrex_group_end(comm), 0);
}

static void put_blocks(const struct real *r, const struct step *s,
		       struct fabrex_collective *what)
{
	uint64_t sends[RANKS], recvs[RANKS];
	uint32_t i, me = r->w->rank, size = r->w->size;

	for (i = 0; i < size; i++) {
		sends[i] = block(s, size, me, i);
		recvs[i] = block(s, size, i,
				 s->kind == FABREX_REDUCE_SCATTERV ? i : me);
	}
	what->recv_counts = recvs;
	if (s->kind == FABREX_ALL_TO_ALLV)
		what->send_counts = sends;
	what->count = s->kind == FABREX_ALL_GATHERV ? sends[0] : 0;
	CHECK_EQ(fabrex_coll_enqueue(r->comms[s->comm], what, sizeof(*what),
				     r->streams[s->stream], NULL), 0);
}

static void put_collective(const struct real *r, const struct step *s)
{
	const void *from = place(r, s->source, s->from);
	struct fabrex_collective what = {
		.kind = s->kind, .type = FABREX_UINT32, .send = from,
		.recv = place(r, s->stream, s->to), .count = s->count,
	};

	if (s->kind == FABREX_SEND) {
		put_around(r, s, from, what.recv);
		return;
	}
	if (s->kind == FABREX_BARRIER) {
		CHECK_EQ(fabrex_barrier_enqueue(r->comms[s->comm],
						r->streams[s->stream]), 0);
		return;
	}
	if (reduces(s->kind) || s->kind == FABREX_REDUCE_SCATTERV)
		what.op = FABREX_SUM;
	if (s->kind == FABREX_BROADCAST || s->kind == FABREX_REDUCE)
		what.root = s->root;
	if (s->kind >= FABREX_ALL_GATHERV)
		put_blocks(r, s, &what);
	else
		CHECK_EQ(fabrex_coll_enqueue(r->comms[s->comm], &what,
					     sizeof(what),
					     r->streams[s->stream], NULL), 0);
}

static void put_step(const struct real *r, const struct step *s, uint32_t i)
{
	if (s->pause_us && s->root == r->w->rank)
		call(r, s->stream, pause_for, (void *)(uintptr_t)s);
	if (s->source != s->stream)
		join(r, s->source, s->stream, r->words[2 * i]);
	if (is_local(s))
		put_local(r, s);
	else
		put_collective(r, s);
	if (s->source != s->stream)
		join(r, s->stream, s->source, r->words[2 * i + 1]);
}

/* ---- a program --------------------------------------------------------- */

/*
 * The host's even if the memory is a GPU's, or the GPU's: one that the default
 * stream waits for, the default stream itself, or neither.
 */
static void open_stream(struct real *r, uint32_t i, uint32_t choice)
{
	r->native[i] = NULL;
	r->of_host[i] = r->memory == HOST || choice == 0;
	if (r->of_host[i]) {
		r->streams[i] = stream_of(FABREX_MEMORY_HOST, NULL);
		return;
	}
	if (choice != 1)
		r->native[i] = choice < 4 ? gpu_stream_blocking(&r->gpu) :
					    gpu_stream(&r->gpu);
	r->streams[i] = gpu_stream_known(&r->gpu, r->native[i]);
}

/* At each rank others; the default stream once at most. */
static void open_streams(struct real *r, uint32_t n, uint64_t random)
{
	uint32_t i, choice;
	bool taken = false;

	for (i = 0; i < n; i++) {
		choice = r->plain ? 7 : random >> 3 * i & 7;
		if (choice == 1 && taken)
			choice = 2;
		taken |= choice == 1;
		open_stream(r, i, choice);
	}
}

/* By the runtime, or by the library. */
static void close_streams(struct real *r, uint32_t n, bool ask)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (!r->of_host[i] && ask)
			gpu_stream_sync(&r->gpu, r->native[i]);
		CHECK_EQ(fabrex_stream_wait(r->streams[i], -1), 0);
		CHECK_EQ(fabrex_stream_error(r->streams[i]), 0);
	}
	for (i = 0; i < n; i++) {
		fabrex_stream_destroy(r->streams[i]);
		if (r->of_host[i])
			continue;
		gpu_stream_sync(&r->gpu, r->native[i]);
		if (r->native[i])
			gpu_stream_end(&r->gpu, r->native[i]);
	}
}

static void run_program(struct real *r, const struct program *p,
			const struct model *m, bool ask)
{
	uint32_t i;

	r->round++;
	for (i = 0; i < STEPS; i++)
		put_step(r, &p->steps[i], i);
	for (i = 0; i < STEPS; i++)
		model_step(m, &p->steps[i]);
	close_streams(r, p->streams, ask);
}

static void fill(const struct model *m)
{
	size_t i, n = m->ranks * rank_bytes() / sizeof(uint32_t);

	for (i = 0; i < n; i++)
		m->words[i] = number(1u << 30);
}

static void open_memory(struct real *r)
{
	uint32_t i;

	if (r->memory == CUDA)
		gpu_cuda(&r->gpu, rank_bytes());
	else if (r->memory == HIP)
		gpu_hip(&r->gpu, rank_bytes());
	else
		gpu_none(&r->gpu, rank_bytes());
	gpu_kernels(&r->gpu);
	if (r->memory != HOST)
		r->aside = gpu_stream(&r->gpu);
	for (i = 0; i < 2 * STEPS; i++)
		r->words[i] = gpu_word(&r->gpu);
	r->host = malloc(rank_bytes());
	CHECK(r->host);
}

struct setting {
	uint64_t seed;
	uint32_t programs, streams;	/* streams: at most */
	enum memory memories[3];	/* of ranks, in turn */
	const char *algorithms;
	bool plain;
};

/* The next program, whose memory is as the last one left it, or new. */
static void one(struct real *r, const struct model *m, struct program *p,
		uint32_t i)
{
	uint32_t rank = r->w->rank;
	uint64_t random;

	test_note("program %u", i);
	if (!(i % 8)) {
		fill(m);
		gpu_put(&r->gpu, r->gpu.memory, area(m, rank, 0, 0),
			rank_bytes());
	}
	make_program(p, r->w->size);
	random = seed * 0x9e3779b97f4a7c15ull * (2 * rank + 1);
	open_streams(r, p->streams, random >> 40);
	run_program(r, p, m, i % 2);
	gpu_get(&r->gpu, r->host, r->gpu.memory, rank_bytes());
	CHECK(!memcmp(r->host, area(m, rank, 0, 0), rank_bytes()));
}

static void programs_work(struct world *w)
{
	const struct setting *setting = w->arg;
	struct real r = {
		.w = w, .memory = setting->memories[w->rank % 3],
		.plain = setting->plain,
	};
	struct model m = { .ranks = w->size };
	struct program p = { .most = setting->streams };
	uint32_t i;

	r.comms[0] = world_comm(w, setting->algorithms);
	r.comms[1] = world_comm(w, NULL);
	m.words = malloc(w->size * rank_bytes());
	m.next = malloc(w->size * sizeof(uint32_t) * WORDS);
	CHECK(m.words && m.next);
	open_memory(&r);
	seed = setting->seed;
	for (i = 0; i < setting->programs; i++)
		one(&r, &m, &p, i);
	fabrex_comm_destroy(r.comms[1]);
	fabrex_comm_destroy(r.comms[0]);
}

/* ---- tests: 1,000 programs, and 100 without memory operations ---------- */

static void programs(uint32_t ranks, struct setting setting)
{
	setting.seed = world_seed();
	if (!setting.streams)
		setting.streams = STREAMS;
	world_run(ranks, programs_work, &setting);
}

TEST(streams_of_the_host)
{
	programs(3, (struct setting){
		.programs = 200, .memories = { HOST, HOST, HOST },
	});
}

TEST(streams_of_cuda)
{
	programs(2, (struct setting){
		.programs = 300, .memories = { CUDA, CUDA, CUDA },
		.algorithms = "all:ring",
	});
}

TEST(streams_of_hip)
{
	programs(3, (struct setting){
		.programs = 250, .memories = { HIP, HIP, HIP },
	});
}

TEST(streams_of_all_kinds)
{
	programs(4, (struct setting){
		.programs = 250, .memories = { HOST, CUDA, HIP },
		.algorithms = "all:ring",
	});
}

/*
 * Without stream memory operations, functions of the host take their place.
 * They are called one after the other: one stream, as documented.
 */
TEST(streams_by_host_functions)
{
	setenv("FABREX_TEST_FAIL",
	       "cuStreamWaitValue64_v2=801,hipStreamWaitValue64=801", 1);
	programs(3, (struct setting){
		.programs = 100, .memories = { CUDA, HIP, CUDA },
		.streams = 1, .plain = true,
	});
	unsetenv("FABREX_TEST_FAIL");
}
