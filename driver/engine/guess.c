// SPDX-License-Identifier: GPL-2.0-only
/*
 * The budget of wrong keys that a port's queues share: &fabrex_engine.guesses is
 * when it is full again. And that of a peer, whose engine may have none. Called by
 * op.c and agent.c.
 */
#include <linux/ktime.h>

#include "guess.h"

#define GUESS_NS	(NSEC_PER_SEC / 100)
#define GUESS_BURST	16384ull
#define GUESS_WINDOW	(GUESS_BURST * GUESS_NS)
#define PEER_WINDOW	((u64)ENGINE_MAX_QUEUES * ENGINE_DEPTH * GUESS_NS)

/* Takes one miss; when it may be used. */
static u64 engine_guess_take(atomic64_t *budget, u64 now)
{
	s64 full = atomic64_read(budget), next;

	do {
		next = max_t(s64, full, now) + GUESS_NS;
	} while (!atomic64_try_cmpxchg(budget, &full, next));
	return next - now > GUESS_WINDOW ? next - GUESS_WINDOW : now;
}

/**
 * engine_guess_peer() - a peer has presented a wrong key
 * @wire: to it
 *
 * A peer with an engine of its own keeps to the budget; besides, each of its queues
 * may have its operations under way when a key that was right is taken back.
 *
 * Context: Any.
 * Return: false if it does not
 */
bool engine_guess_peer(struct fabrex_wire *wire)
{
	u64 now = ktime_get_ns();

	return engine_guess_take(&wire->guesses, now) <= now + PEER_WINDOW;
}

/**
 * engine_guess_may() - may a key be looked up at a peer?
 * @guesser: of the queue
 * @engine:  engine
 *
 * Context: Any; one at a time for a queue.
 * Return: false: not before @guesser->due_ns
 */
bool engine_guess_may(struct engine_guesser *guesser,
		      struct fabrex_engine *engine)
{
	u64 now = ktime_get_ns();

	if (guesser->trusted)
		return true;
	if (!guesser->due_ns)
		guesser->due_ns = engine_guess_take(&engine->guesses, now);
	return guesser->due_ns <= now;
}

/**
 * engine_guess_end() - give back what a queue has reserved
 * @guesser: of the queue
 * @engine:  engine
 *
 * Context: Any; one at a time for a queue.
 */
void engine_guess_end(struct engine_guesser *guesser,
		      struct fabrex_engine *engine)
{
	if (guesser->due_ns)
		atomic64_sub(GUESS_NS, &engine->guesses);
	guesser->due_ns = 0;
}

/**
 * engine_guess_hit() - a key was right
 * @guesser: of the queue
 * @engine:  engine
 *
 * Context: Any; one at a time for a queue.
 */
void engine_guess_hit(struct engine_guesser *guesser,
		      struct fabrex_engine *engine)
{
	engine_guess_end(guesser, engine);
	guesser->trusted = true;
}

/**
 * engine_guess_miss() - a key was wrong
 * @guesser: of the queue
 * @engine:  engine
 *
 * Context: Any; one at a time for a queue.
 */
void engine_guess_miss(struct engine_guesser *guesser,
		       struct fabrex_engine *engine)
{
	if (!guesser->due_ns)
		engine_guess_take(&engine->guesses, ktime_get_ns());
	guesser->due_ns = 0;
	guesser->trusted = false;
}
