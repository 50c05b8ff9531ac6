// SPDX-License-Identifier: GPL-2.0-only
/*
 * Budgets of wrong keys. Called by op.c and window.c.
 */
#include "guess.h"

#define WINDOW_NS	((uint64_t)GUESS_BURST * GUESS_NS)

/* Takes one miss; when it may be used. */
static uint64_t take(struct guess_budget *b, uint64_t now)
{
	uint64_t full = atomic_load(&b->full_ns), next;

	do {
		next = (full > now ? full : now) + GUESS_NS;
	} while (!atomic_compare_exchange_weak(&b->full_ns, &full, next));
	return next - now > WINDOW_NS ? next - WINDOW_NS : now;
}

static void give_back(struct guess_budget *b)
{
	atomic_fetch_sub(&b->full_ns, GUESS_NS);
}

bool guess_may(struct guesser *g, struct guess_budget *b, uint64_t now,
	       uint64_t *due_ns)
{
	if (g->trusted)
		return true;
	if (!g->due_ns)
		g->due_ns = take(b, now);
	*due_ns = g->due_ns;
	return g->due_ns <= now;
}

void guess_end(struct guesser *g, struct guess_budget *b)
{
	if (g->due_ns)
		give_back(b);
	g->due_ns = 0;
}

void guess_hit(struct guesser *g, struct guess_budget *b)
{
	guess_end(g, b);
	g->trusted = true;
}

void guess_miss(struct guesser *g, struct guess_budget *b, uint64_t now)
{
	if (!g->due_ns)
		take(b, now);
	g->due_ns = 0;
	g->trusted = false;
}
