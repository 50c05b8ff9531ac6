// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bench_reduce [SET...]: GB/s that reductions read and write, by instructions
 * (all, or those named), type and place of the buffers, and the ratio to what
 * memcpy() does there at the same time. Medians of interleaved repetitions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "coll/reduce/reduce.h"

#define REPEAT	9
#define LARGEST	(64u << 20)
#define BUFFERS	4

static const char *const sets[] = {
	"generic", "avx2", "avx512", NULL,
};

static const struct place {
	const char *name;
	size_t bytes;		/* of each buffer */
	bool stream;
} places[] = {
	{ "small", 256, false },
	{ "L1", 8 << 10, false },
	{ "L2", 256 << 10, false },
	{ "memory", LARGEST, false },
	{ "memory, streaming", LARGEST, true },
};

static const struct shape {
	const char *name;
	uint32_t type, size, nsrc, ndst;
} shapes[] = {
	{ "fp32 2>1", FABREX_FLOAT32, 4, 2, 1 },
	{ "fp32 2>2", FABREX_FLOAT32, 4, 2, 2 },
	{ "fp32 3>1", FABREX_FLOAT32, 4, 3, 1 },
	{ "bf16 2>1", FABREX_BFLOAT16, 2, 2, 1 },
	{ "bf16 3>1", FABREX_BFLOAT16, 2, 3, 1 },
	{ "fp16 2>1", FABREX_FLOAT16, 2, 2, 1 },
	{ "fp16 3>1", FABREX_FLOAT16, 2, 3, 1 },
	{ "fp64 2>1", FABREX_FLOAT64, 8, 2, 1 },
	{ "int8 2>1", FABREX_INT8, 1, 2, 1 },
};
#define SHAPES	(sizeof(shapes) / sizeof(shapes[0]))

static char *buffers[BUFFERS];

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, REPEAT, sizeof(double), by_value);
	return values[REPEAT / 2];
}

/* shape NULL: memcpy(), with it or with our own. GB/s. */
static double rate(const struct shape *s, const struct place *place)
{
	const size_t times = 1 + (16 << 20) / place->bytes;
	void *dst[] = { buffers[0], buffers[3] };
	const void *src[] = { buffers[1], buffers[2], buffers[3] };
	struct reduce r = { .dst = dst, .src = src, .op = FABREX_SUM,
			    .stream = place->stream };
	uint64_t start = fxi_now_ns();
	size_t i;

	if (s) {
		r.type = s->type;
		r.nsrc = s->nsrc;
		r.ndst = s->ndst;
		r.count = place->bytes / s->size;
	}
	for (i = 0; i < times; i++) {
		if (s)
			fxi_reduce(&r);
		else if (place->stream)
			fxi_copy(dst[0], src[0], place->bytes, true);
		else
			memcpy(dst[0], src[0], place->bytes);
		/* What was copied is looked at. */
		__asm__ volatile("" : : "r"(dst[0]) : "memory");
	}
	return (double)place->bytes * (double)times *
	       (s ? s->nsrc + s->ndst : 2) /
	       (double)(fxi_now_ns() - start);
}

static void bench(const struct place *place)
{
	double copy[REPEAT], sum[SHAPES][REPEAT], copied, summed;
	size_t i, k;

	for (i = 0; i < REPEAT; i++) {
		copy[i] = rate(NULL, place);
		for (k = 0; k < SHAPES; k++)
			sum[k][i] = rate(&shapes[k], place);
	}
	copied = median(copy);
	printf("%-8s %-18s copy %6.1f\n", fxi_reduce_name(), place->name,
	       copied);
	for (k = 0; k < SHAPES; k++) {
		summed = median(sum[k]);
		printf("    %s %6.1f (%.2f)%s", shapes[k].name, summed,
		       summed / copied, k % 3 == 2 ? "\n" : "");
	}
}

static void fill(void)
{
	size_t i, k;

	for (k = 0; k < BUFFERS; k++) {
		buffers[k] = aligned_alloc(4096, LARGEST);
		if (!buffers[k])
			exit(1);
		/* 1.0 in all floating point types, or nearly. */
		for (i = 0; i < LARGEST / 4; i++)
			((uint32_t *)(void *)buffers[k])[i] = 0x3f803f80;
	}
}

int main(int argc, char **argv)
{
	size_t set, place;
	int i;

	fill();
	for (set = 0; set < sizeof(sets) / sizeof(sets[0]); set++) {
		bool wanted = argc < 2;

		for (i = 1; i < argc; i++)
			wanted |= sets[set] ? !strcmp(argv[i], sets[set]) :
					      !strcmp(argv[i], "best");
		if (!wanted || fxi_reduce_select(sets[set]))
			continue;
		printf("# %s\n", sets[set] ? sets[set] : "best");
		for (place = 0; place < sizeof(places) / sizeof(places[0]);
		     place++)
			bench(&places[place]);
	}
	return 0;
}
