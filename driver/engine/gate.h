/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A gate: those who use something enter and leave; whoever closes it waits until
 * all have left, and none can enter. What it protects is found under RCU and
 * freed after a grace period.
 */
#ifndef _ENGINE_GATE_H
#define _ENGINE_GATE_H

#include <linux/completion.h>
#include <linux/refcount.h>

/**
 * struct engine_gate - a gate
 * @users: who is inside, and 1 while it is open
 * @empty: closed, and everybody has left
 */
struct engine_gate {
	refcount_t users;
	struct completion empty;
};

/* To begin with, or after engine_gate_close() has returned. */
static inline void engine_gate_open(struct engine_gate *gate)
{
	init_completion(&gate->empty);
	/* Whoever enters sees what was set up before. */
	smp_wmb();
	refcount_set(&gate->users, 1);
}

static inline bool engine_gate_enter(struct engine_gate *gate)
{
	if (!refcount_inc_not_zero(&gate->users))
		return false;
	smp_mb__after_atomic();
	return true;
}

static inline void engine_gate_leave(struct engine_gate *gate)
{
	if (refcount_dec_and_test(&gate->users))
		complete(&gate->empty);
}

/* By one at a time, if it is open. */
static inline void engine_gate_close(struct engine_gate *gate)
{
	engine_gate_leave(gate);
	wait_for_completion(&gate->empty);
}

#endif
