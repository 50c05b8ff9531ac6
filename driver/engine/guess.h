/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Budgets of wrong keys, docs/draco.md section 10. For agent.c and op.c; of one
 * queue, only its worker calls these, or who destroys it.
 */
#ifndef _ENGINE_GUESS_H
#define _ENGINE_GUESS_H

#include "engine.h"

/**
 * struct engine_guesser - what is known of a queue's keys
 * @trusted: the last one was right
 * @due_ns:  when the miss that it has reserved may be used; 0: none
 */
struct engine_guesser {
	bool trusted;
	u64 due_ns;
};

bool engine_guess_peer(struct fabrex_wire *wire);
bool engine_guess_may(struct engine_guesser *guesser,
		      struct fabrex_engine *engine);
void engine_guess_hit(struct engine_guesser *guesser,
		      struct fabrex_engine *engine);
void engine_guess_miss(struct engine_guesser *guesser,
		       struct fabrex_engine *engine);
void engine_guess_end(struct engine_guesser *guesser,
		      struct fabrex_engine *engine);

#endif
