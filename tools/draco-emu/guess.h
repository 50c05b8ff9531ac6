/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The price of wrong keys (docs/draco.md, section 10): a budget of misses for
 * each port, and what it makes of those who miss. Whoever has missed, and
 * whoever is new, is on trial: the next key is looked up only when the budget
 * has a miss left for it, which a hit gives back. Others never wait.
 *
 * Locks: none. A budget is one word that anybody takes from; a guesser belongs
 * to one thread at a time.
 */
#ifndef EMU_GUESS_H
#define EMU_GUESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GUESS_BURST	16384u		/* misses of a port at once */
#define GUESS_NS	10000000u	/* and then one in that time */

struct guess_budget {
	_Atomic uint64_t full_ns;	/* when all of it will be there again */
};

struct guesser {
	bool trusted;			/* the last key was right */
	uint64_t due_ns;		/* 0, or from when on a miss is ours */
};

/* May a key be looked up at @now? Otherwise *@due_ns is when to ask again. */
bool guess_may(struct guesser *g, struct guess_budget *b, uint64_t now,
	       uint64_t *due_ns);
/* What came of it. */
void guess_hit(struct guesser *g, struct guess_budget *b);
void guess_miss(struct guesser *g, struct guess_budget *b, uint64_t now);
/* It asks no more; what it waited for is the others'. */
void guess_end(struct guesser *g, struct guess_budget *b);

#endif
