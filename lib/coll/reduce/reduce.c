// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Element types and their reduction in host memory: chooses the best
 * instructions of this processor, once. Called by the data path of lib/coll.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/error.h"
#include "base/export.h"
#include "coll/reduce/isa.h"

/* Ordered by speed; a base is listed before what builds on it. */
static const struct reduce_isa *const all[] = {
	&fxi_reduce_generic,
#ifdef REDUCE_X86
	&fxi_reduce_avx2,
	&fxi_reduce_avx512,
#endif
#ifdef REDUCE_X86_FP16
	&fxi_reduce_avx512_fp16,
#endif
};

#define N_ALL	(sizeof(all) / sizeof(all[0]))

EXPORT size_t fabrex_datatype_size(enum fabrex_datatype type)
{
	return fxi_type_size(type);
}

static struct reduce_isa chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool usable(const struct reduce_isa *isa)
{
#ifdef REDUCE_X86
	__builtin_cpu_init();
#endif
	return isa->usable();
}

/* Adds what @isa has to what was chosen. */
static void add(const struct reduce_isa *isa)
{
	int type, op;

	for (type = FABREX_INT8; type <= FABREX_FLOAT64; type++)
		for (op = FABREX_SUM; op <= REDUCE_OPS; op++)
			if (isa->kernels[type][op])
				chosen.kernels[type][op] =
					isa->kernels[type][op];
	if (isa->copy)
		chosen.copy = isa->copy;
	if (!isa->base)
		chosen.name = isa->name;
}

static void choose_best(void)
{
	size_t i;

	for (i = 0; i < N_ALL; i++)
		if (usable(all[i]))
			add(all[i]);
}

static void choose(void)
{
	pthread_once(&once, choose_best);
}

int fxi_reduce_select(const char *name)
{
	size_t i;

	choose();
	if (!name) {
		choose_best();
		return 0;
	}
	for (i = 0; i < N_ALL; i++) {
		if (strcmp(all[i]->name, name))
			continue;
		if (!usable(all[i]))
			return fxi_error(ENOTSUP,
					 "%s: this processor lacks it", name);
		if (all[i]->base)
			add(all[i]->base);
		add(all[i]);
		return 0;
	}
	return fxi_error(ENOTSUP, "%s: no such instructions here", name);
}

const char *fxi_reduce_name(void)
{
	choose();
	return chosen.name;
}

/* Streaming stores are not ordered with later ones. */
static void order_streams(void)
{
#ifdef __x86_64__
	_mm_sfence();
#endif
}

static void copy(void *dst, const void *src, size_t bytes, bool stream)
{
	if (dst == src)
		return;
	if (stream)
		chosen.copy(dst, src, bytes);
	else
		memcpy(dst, src, bytes);
}

/* Bits as they are, whatever the type. */
static void copy_all(const struct reduce *r)
{
	const uint64_t bytes = r->count * fxi_type_size(r->type);
	struct reduce plain = *r;

	if (r->ndst == 1)
		return copy(r->dst[0], r->src[0], bytes, r->stream);
	plain.type = FABREX_UINT8;
	plain.count = bytes;
	plain.divisor = 0;
	chosen.kernels[FABREX_UINT8][FABREX_SUM](&plain);
}

void fxi_reduce(const struct reduce *r)
{
	const uint32_t op = r->op == FABREX_AVG ? FABREX_SUM : r->op;

	choose();
	if (!r->count || !r->ndst)
		return;
	if (r->nsrc == 1 && r->divisor <= 1)
		copy_all(r);
	else
		chosen.kernels[r->type][op](r);
	if (r->stream)
		order_streams();
}

void fxi_copy(void *dst, const void *src, size_t bytes, bool stream)
{
	choose();
	copy(dst, src, bytes, stream);
	if (stream)
		order_streams();
}
