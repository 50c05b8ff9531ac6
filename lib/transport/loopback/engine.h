/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What engine.c, fast.h and send.c share; only for them.
 */
#ifndef LIB_LOOPBACK_ENGINE_H
#define LIB_LOOPBACK_ENGINE_H

#include <string.h>

#include "loopback.h"
#include "base/barrier.h"
#include "base/path.h"

/*
 * Only this thread writes it; others read it. One instruction, whose store
 * comes after all earlier loads and stores; in C it would be three.
 */
static inline void loop_step(uint32_t *active)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("addl $1, %0" : "+m"(*active) : : "cc", "memory");
#else
	__atomic_store_n(active, *active + 1, __ATOMIC_RELEASE);
#endif
}

/*
 * Odd until loop_leave(): regions and queues whose keys are found to be right
 * in between stay where they are. A compiler barrier is enough where those that
 * take them away use membarrier().
 */
static inline void loop_enter(struct loop_queue *q)
{
	loop_step(&q->shared->active);
	__asm__ volatile("" ::: "memory");
}

static inline void loop_leave(struct loop_queue *q)
{
	loop_step(&q->shared->active);
}

/* The entry of a key in its owner's table; NULL: the key is wrong. */
static inline const struct segment_mr *loop_key(const struct segment *segment,
						uint64_t key)
{
	const struct segment_mr *mr = &segment->mrs[key & (SEGMENT_MRS - 1)];

	/* An index beyond the table wraps to the entry of another key. */
	if (unlikely(__atomic_load_n(&mr->key, __ATOMIC_ACQUIRE) != key ||
		     !key))
		return NULL;
	return mr;
}

static inline bool loop_inside(uint64_t offset, uint64_t length, uint64_t space)
{
	return offset <= space && length <= space - offset;
}

/* One store, if both are aligned: never seen in part. */
static inline void loop_move_word(void *to, const void *from)
{
	typedef uint64_t __attribute__((may_alias)) word;

	__atomic_store_n((word *)to, __atomic_load_n((const word *)from,
						     __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
}

static inline void loop_copy(struct loop_queue *q, void *to, const void *from,
			     uint64_t n)
{
	if (n == 8 && !(((uintptr_t)to | (uintptr_t)from) & 7))
		loop_move_word(to, from);
	else
		fxi_path_copy(to, from, n, &q->turn);
}

#endif
