// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies whose stores bypass the caches, so that their contents stay there and
 * memory is not read before it is overwritten. Called by path.c.
 */
#include <string.h>
#include <sys/types.h>

#include "base/path.h"

#ifdef __x86_64__
#include <immintrin.h>

#define LINE	64u
#define PAGE	4096u
#define STRANDS	4u	/* pages at a time, which memory serves in parallel */
#define AHEAD	512u	/* bytes of each that are prefetched */
#define BLOCK	(STRANDS * PAGE)

/*
 * Two lines of each page in turn. A prefetch beyond the end of a page hits the
 * next one, which another strand has read: it costs nothing and cannot fault.
 */
#define DEFINE_BLOCKS(name, isa, vector, load, store)			\
__attribute__((target(isa)))						\
static void name(char *to, const char *from, size_t n)			\
{									\
	size_t at, line, strand, part;					\
									\
	for (; n; n -= BLOCK, to += BLOCK, from += BLOCK)		\
		for (at = 0; at < BLOCK; at += 2 * LINE) {		\
			strand = at / (2 * LINE) % STRANDS;		\
			line = at / BLOCK_LINE * (2 * LINE) +		\
			       strand * PAGE;				\
			_mm_prefetch(from + line + AHEAD, _MM_HINT_T0);	\
			_mm_prefetch(from + line + AHEAD + LINE,	\
				     _MM_HINT_T0);			\
			for (part = 0; part < 2 * LINE;			\
			     part += sizeof(vector))			\
				store((vector *)(void *)(to + line +	\
							 part),		\
				      load((const vector *)(const void *) \
					   (from + line + part)));	\
		}							\
}

#define BLOCK_LINE	(STRANDS * 2 * LINE)

DEFINE_BLOCKS(blocks_sse2, "sse2", __m128i, _mm_loadu_si128, _mm_stream_si128)
DEFINE_BLOCKS(blocks_avx, "avx", __m256i, _mm256_loadu_si256,
	      _mm256_stream_si256)
DEFINE_BLOCKS(blocks_avx512, "avx512f", __m512i, _mm512_loadu_si512,
	      _mm512_stream_si512)

static void blocks(char *to, const char *from, size_t n)
{
	if (__builtin_cpu_supports("avx512f"))
		blocks_avx512(to, from, n);
	else if (__builtin_cpu_supports("avx"))
		blocks_avx(to, from, n);
	else
		blocks_sse2(to, from, n);
	_mm_sfence();
}

void fxi_path_stream(void *to, const void *from, uint64_t n)
{
	size_t head = -(uintptr_t)to & (LINE - 1), most;

	if (n < BLOCK + LINE) {
		memcpy(to, from, n);
		return;
	}
	memcpy(to, from, head);
	most = (n - head) / BLOCK * BLOCK;
	blocks((char *)to + head, (const char *)from + head, most);
	head += most;
	memcpy((char *)to + head, (const char *)from + head, n - head);
}
#else
/* Elsewhere memcpy() is best. */
void fxi_path_stream(void *to, const void *from, uint64_t n)
{
	memcpy(to, from, n);
}
#endif
