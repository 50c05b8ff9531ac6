// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bound that memory traffic sets: what each of n ranks has to read and to
 * write in the best possible algorithm on one machine, and nothing else: no
 * message, no waiting, no memory of another rank. A rank does a 1/n of the
 * work: of an all-reduce it reads its 1/n of all n inputs and writes its 1/n
 * of all n outputs.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "compare.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define MAX_ARRAYS	GROUP_MAX

struct bound {
	uint32_t ranks;
	uint64_t room;			/* bytes of each array */
	char *huge, *small;		/* 2 * ranks arrays each */
};

struct work {
	uint32_t ins, outs;
	const float *in[MAX_ARRAYS];
	float *out[MAX_ARRAYS];
	uint64_t floats;		/* of each; whole blocks */
	bool ahead;			/* fetch inputs before they are due */
};

/* ---- arithmetic -------------------------------------------------------- */

#define BLOCK	128u		/* floats; arrays are whole blocks */
#define AHEAD	512u		/* floats that are fetched ahead */
#define LINE	16u		/* floats */

#ifdef __x86_64__
/* Every loop over VECTORS has to be unrolled, so that sums stay in registers. */
#define VECTORS	8u
#define EACH(i)	_Pragma("GCC unroll 8") for ((i) = 0; (i) < VECTORS; (i)++)

/* Sums the inputs and puts the sum into every output, block by block. */
#define DEFINE_WORK(name, isa, vector, lanes, load, add, store)		\
__attribute__((target(isa)))						\
static void name(const struct work *w)					\
{									\
	const uint32_t ins = w->ins, outs = w->outs;			\
	const uint64_t floats = w->floats;				\
	const bool ahead = w->ahead;					\
	vector sum[VECTORS];						\
	uint64_t at;							\
	uint32_t i, k;							\
									\
	for (at = 0; at < floats; at += VECTORS * (lanes)) {		\
		const float *in = w->in[0] + at;			\
									\
		for (k = 0; ahead && k < ins; k++)			\
			for (i = 0; i < VECTORS * (lanes); i += LINE)	\
				_mm_prefetch((const char *)(w->in[k] +	\
					at + AHEAD + i), _MM_HINT_T0);	\
		EACH(i)							\
			sum[i] = load(in + i * (lanes));		\
		for (k = 1; k < ins; k++) {				\
			in = w->in[k] + at;				\
			EACH(i)						\
				sum[i] = add(sum[i], load(in +		\
							  i * (lanes))); \
		}							\
		for (k = 0; k < outs; k++) {				\
			float *out = w->out[k] + at;			\
									\
			EACH(i)						\
				store(out + i * (lanes), sum[i]);	\
		}							\
	}								\
	_mm_sfence();							\
}

DEFINE_WORK(work_sse, "sse2", __m128, 4, _mm_load_ps, _mm_add_ps,
	    _mm_store_ps)
DEFINE_WORK(stream_sse, "sse2", __m128, 4, _mm_load_ps, _mm_add_ps,
	    _mm_stream_ps)
DEFINE_WORK(work_avx, "avx", __m256, 8, _mm256_load_ps, _mm256_add_ps,
	    _mm256_store_ps)
DEFINE_WORK(stream_avx, "avx", __m256, 8, _mm256_load_ps, _mm256_add_ps,
	    _mm256_stream_ps)
DEFINE_WORK(work_avx512, "avx512f", __m512, 16, _mm512_load_ps, _mm512_add_ps,
	    _mm512_store_ps)
DEFINE_WORK(stream_avx512, "avx512f", __m512, 16, _mm512_load_ps,
	    _mm512_add_ps, _mm512_stream_ps)

static void do_work(const struct work *w, bool stream)
{
	if (__builtin_cpu_supports("avx512f"))
		(stream ? stream_avx512 : work_avx512)(w);
	else if (__builtin_cpu_supports("avx"))
		(stream ? stream_avx : work_avx)(w);
	else
		(stream ? stream_sse : work_sse)(w);
}
#else
/* As the compiler sees fit; it has no streaming stores then. */
static void do_work(const struct work *w, bool stream)
{
	uint64_t at;
	uint32_t k;
	float sum;

	(void)stream;
	for (at = 0; at < w->floats; at++) {
		sum = w->in[0][at];
		for (k = 1; k < w->ins; k++)
			sum += w->in[k][at];
		for (k = 0; k < w->outs; k++)
			w->out[k][at] = sum;
	}
}
#endif

/* ---- memory ------------------------------------------------------------ */

/* The same 4 KiB pages of shared memory that processes meet in. */
static char *small_pages(uint64_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	memset(p, 0, bytes);
	return p;
}

static char *huge_pages(uint64_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

/* An odd number of lines between arrays keeps them out of each other's sets. */
static uint64_t array_bytes(uint64_t bytes, uint32_t ranks)
{
	uint64_t block = BLOCK * sizeof(float);

	return (bytes / ranks + block - 1) / block * block + 17 * 64;
}

static uint64_t total(const struct bound *b)
{
	return 2 * b->ranks * b->room;
}

struct bound *bound_open(uint64_t bytes, uint32_t ranks)
{
	struct bound *b = calloc(1, sizeof(*b));

	if (!b || ranks > MAX_ARRAYS) {
		free(b);
		return NULL;
	}
	b->ranks = ranks;
	b->room = array_bytes(bytes, ranks);
	b->huge = huge_pages(total(b));
	b->small = small_pages(total(b));
	if (b->huge && b->small)
		return b;
	bound_close(b);
	return NULL;
}

void bound_close(struct bound *b)
{
	if (b->huge)
		munmap(b->huge, total(b));
	if (b->small)
		munmap(b->small, total(b));
	free(b);
}

/* ---- collectives ------------------------------------------------------- */

static const struct {
	const char *what;
	bool ins, outs;		/* as many as ranks, or 1 */
} kinds[] = {
	{ "all_reduce", true, true },
	{ "reduce_scatter", true, false },
	{ "all_gather", false, true },
	{ "broadcast", false, true },
	{ "reduce", true, false },
};

bool bound_turn(struct bound *b, const char *what, uint64_t bytes,
		uint32_t how)
{
	uint64_t room = array_bytes(bytes, b->ranks);
	char *memory = how & BOUND_SMALL ? b->small : b->huge;
	struct work w = {
		.floats = (room - 17 * 64) / sizeof(float),
		.ahead = how & BOUND_AHEAD,
	};
	uint32_t i, k;

	for (k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
		if (!strcmp(kinds[k].what, what))
			break;
	if (k == sizeof(kinds) / sizeof(*kinds))
		return false;
	w.ins = kinds[k].ins ? b->ranks : 1;
	w.outs = kinds[k].outs ? b->ranks : 1;
	for (i = 0; i < w.ins; i++)
		w.in[i] = (const float *)(const void *)(memory + i * room);
	for (i = 0; i < w.outs; i++)
		w.out[i] = (float *)(void *)(memory + (b->ranks + i) * room);
	do_work(&w, how & BOUND_STREAM);
	return true;
}
