/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A gate counts the accesses that are under way and lets its owner close it
 * and learn when the last one is out. Ports, queues, MRs and windows have one.
 *
 * Data is written before gate_open() and read only between gate_enter() and
 * gate_leave(): that is the whole locking of the data path. Nobody waits for a
 * gate; whoever leaves a closing one last tells the owner.
 */
#ifndef EMU_GATE_H
#define EMU_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GATE_OPEN	0x80000000u
#define GATE_CLOSING	0x40000000u

struct gate {
	_Atomic uint32_t v;
};

/* Owner only, on a gate that is drained. */
static inline void gate_open(struct gate *g)
{
	atomic_store_explicit(&g->v, GATE_OPEN, memory_order_release);
}

static inline bool gate_is_open(struct gate *g)
{
	return atomic_load_explicit(&g->v, memory_order_relaxed) & GATE_OPEN;
}

/* Closed, and nobody inside. */
static inline bool gate_is_drained(struct gate *g)
{
	return atomic_load_explicit(&g->v, memory_order_acquire) == 0;
}

static inline bool gate_enter(struct gate *g)
{
	uint32_t v = atomic_load_explicit(&g->v, memory_order_relaxed);

	while (v & GATE_OPEN) {
		if (atomic_compare_exchange_weak_explicit(&g->v, &v, v + 1,
							  memory_order_acquire,
							  memory_order_relaxed))
			return true;
	}
	return false;
}

/* True: the gate was closing and is now drained; tell the owner. */
static inline bool gate_leave(struct gate *g)
{
	uint32_t v = atomic_fetch_sub_explicit(&g->v, 1, memory_order_acq_rel);

	if (v != (GATE_CLOSING | 1))
		return false;
	atomic_store_explicit(&g->v, 0, memory_order_release);
	return true;
}

/* Owner only. True if it is drained at once. */
static inline bool gate_close(struct gate *g)
{
	uint32_t v = atomic_load_explicit(&g->v, memory_order_relaxed);
	uint32_t next;

	do {
		if (!(v & GATE_OPEN))
			return v == 0;
		next = v == GATE_OPEN ? 0 : (v & ~GATE_OPEN) | GATE_CLOSING;
	} while (!atomic_compare_exchange_weak_explicit(&g->v, &v, next,
							memory_order_acq_rel,
							memory_order_relaxed));
	return next == 0;
}

#endif
