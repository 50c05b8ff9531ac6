/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fault injection: what control.c arms and the data path trips over, and the
 * pacing of slow links.
 *
 * Locks: none; counts are atomics. fault_hit() costs one relaxed load while
 * nothing is armed.
 */
#ifndef EMU_FAULT_H
#define EMU_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <draco/regs.h>

#define FAULT_KINDS	(DRACO_FAULT_LOST_EVENT + 1)
#define FAULT_ANY_QUEUE	UINT32_MAX

struct fault_point {
	_Atomic uint32_t left;		/* hits to come */
	_Atomic uint32_t queue;		/* or FAULT_ANY_QUEUE; LOST_EVENT:
					 * type of the event */
	_Atomic uint32_t taken;		/* hits so far */
};

struct faults {
	_Atomic uint32_t armed;		/* bit: DRACO_FAULT_* */
	struct fault_point point[FAULT_KINDS];
};

void fault_arm(struct faults *f, unsigned int kind, uint32_t queue,
	       uint32_t count);
bool fault_take(struct faults *f, unsigned int kind, uint32_t queue);

/* Is this the one to go wrong? Counts it if so. */
static inline bool fault_hit(struct faults *f, unsigned int kind,
			     uint32_t queue)
{
	uint32_t armed = atomic_load_explicit(&f->armed, memory_order_relaxed);

	return (armed >> kind & 1) && fault_take(f, kind, queue);
}

/* A queue ends: what was armed for it is not for the next of its number. */
void fault_forget_queue(struct faults *f, uint32_t queue);
/* How many have happened since the beginning. */
uint32_t fault_taken(struct faults *f, unsigned int kind);

/* "stuck-completion", ...; 0 if @name is none. */
unsigned int fault_kind(const char *name);

/* A link's speed limit. */
struct pace {
	_Atomic uint64_t rate;		/* bytes per second, 0: none */
	_Atomic uint64_t next_ns;	/* when it is free again */
};

void pace_set(struct pace *p, uint64_t rate);
static inline bool pace_on(struct pace *p)
{
	return atomic_load_explicit(&p->rate, memory_order_relaxed) != 0;
}
/* Nanoseconds until the link is free; 0: now. */
uint64_t pace_wait(struct pace *p, uint64_t now);
void pace_charge(struct pace *p, uint64_t now, uint64_t bytes);
/* At most so many bytes at a time, so that limits are kept smoothly. */
uint64_t pace_chunk(struct pace *p, uint64_t bytes);

#endif
