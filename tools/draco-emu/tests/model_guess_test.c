// SPDX-License-Identifier: GPL-2.0-only
/*
 * The price of wrong keys: budgets by an invented clock, and through rings,
 * that those pay who guess and nobody else. A budget that is spent for hours
 * stands for a slow one, so that no test depends on how fast it runs.
 */
#include <string.h>

#include "guess.h"
#include "rig/pair.h"
#include "tap.h"

#define HOURS	(3600ull * 1000000000ull)
#define T0	(1000ull * 1000000000ull)

/* ---- Arithmetic ---- */

/* A guesser that always misses, until the clock shows @end. */
static unsigned int misses_until(struct guesser *g, struct guess_budget *b,
				 uint64_t end)
{
	uint64_t now = T0, due;
	unsigned int n = 0;

	while (now < end) {
		if (!guess_may(g, b, now, &due)) {
			now = due;
			continue;
		}
		guess_miss(g, b, now);
		n++;
	}
	return n;
}

static void test_burst_then_rate(void)
{
	struct guess_budget b = { 0 };
	struct guesser g = { 0 };

	CHECK_EQ(misses_until(&g, &b, T0 + 1), GUESS_BURST);
	CHECK_EQ(misses_until(&g, &b, T0 + 10000000001ull), 1000);
	/* Left alone, all of it comes back. */
	CHECK_EQ(misses_until(&g, &b, T0 + 1), 0);
	b.full_ns = T0;
	g.due_ns = 0;
	CHECK_EQ(misses_until(&g, &b, T0 + 1), GUESS_BURST);
}

/* A right key before each wrong one buys nothing. */
static void test_hits_between(void)
{
	struct guess_budget b = { 0 };
	struct guesser g = { 0 };
	uint64_t now = T0, due;
	unsigned int n = 0;

	while (now < T0 + 10000000000ull) {
		if (!guess_may(&g, &b, now, &due)) {
			now = due;
			continue;
		}
		guess_hit(&g, &b);
		CHECK(guess_may(&g, &b, now, &due));
		guess_miss(&g, &b, now);
		n++;
	}
	CHECK(n >= GUESS_BURST + 999 && n <= GUESS_BURST + 1002);
}

/* Nor do many guessers, or new ones in the place of those that wait. */
static void test_many_guessers(void)
{
	struct guess_budget b = { 0 };
	struct guesser g[100];
	unsigned int n = 0;
	uint64_t due;

	memset(g, 0, sizeof(g));
	for (uint64_t now = T0; now < T0 + 10000000000ull; now += 1000000) {
		for (unsigned int i = 0; i < 100; i++) {
			while (guess_may(&g[i], &b, now, &due)) {
				guess_miss(&g[i], &b, now);
				n++;
			}
			if (i & 1)
				guess_end(&g[i], &b);
		}
	}
	CHECK(n >= GUESS_BURST + 990 && n <= GUESS_BURST + 1000 + 2 * 100);
	/* What was given up is no debt. */
	CHECK(b.full_ns < T0 + 10000000000ull +
	      (uint64_t)(GUESS_BURST + 201) * GUESS_NS);
}

static void test_hits_are_free(void)
{
	struct guess_budget b = { 0 };
	struct guesser g = { 0 };
	uint64_t due, now = T0;

	for (unsigned int i = 0; i < 3 * GUESS_BURST; i++) {
		CHECK(guess_may(&g, &b, now, &due));
		guess_hit(&g, &b);
	}
	CHECK(b.full_ns <= T0);
}

/* ---- Through rings ---- */

static void spend(struct guess_budget *b)
{
	b->full_ns = engine_now_ns() + (uint64_t)GUESS_BURST * GUESS_NS + HOURS;
}

static uint64_t spent(struct rig_guest *g)
{
	return g->port->queue_guesses.full_ns;
}

static struct fabrex_sqe wrong(void)
{
	struct fabrex_sqe s = entry(FABREX_OP_WRITE);

	s.rkey ^= 1ull << 50;
	return s;
}

/* What is no guess: the key was right, or the answer tells nothing. */
static void test_what_counts(void)
{
	uint64_t ro, before, spared;
	struct fabrex_sqe s;

	BEGIN();
	s = entry(FABREX_OP_WRITE);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	before = spent(A);
	ro = rig_mr(B, DST, 8192, DRACO_ACCESS_REMOTE_READ, PD, NULL);
	REFUSE(FABREX_OP_WRITE, s.lkey ^= 1ull << 50, FABREX_WC_LKEY);
	REFUSE(FABREX_OP_WRITE, s.rkey = ro, FABREX_WC_RACCESS);
	REFUSE(FABREX_OP_WRITE, s.roffset = LEN, FABREX_WC_RBOUNDS);
	REFUSE(FABREX_OP_WRITE, s.peer = 3, FABREX_WC_UNREACHABLE);
	REFUSE(FABREX_OP_SEND, s.length = 257, FABREX_WC_TOO_LONG);
	CHECK_EQ(rig_admin(B, rig_cmd(DRACO_ADM_MR_INVALIDATE, rmr, 0), NULL),
		 0);
	REFUSE(FABREX_OP_WRITE, , FABREX_WC_RKEY);
	CHECK_EQ(spent(A), before);
	REFUSE(FABREX_OP_WRITE, s = wrong(), FABREX_WC_RKEY);
	spared = spent(A);
	CHECK(spared > before);
	REFUSE(FABREX_OP_SEND, s.dest_key ^= 1ull << 50, FABREX_WC_BAD_QUEUE);
	CHECK(spent(A) > spared);
	CHECK_EQ(spent(B), 0);
	END();
}

/* a guesses with two queues, everybody else works. */
static void test_others_go_on(void)
{
	struct rig_queue qc, qw, qg;
	struct fabrex_sqe s, none;
	struct fabrex_cqe c;

	BEGIN();
	rig_queue_init(&qw, A, PD);
	rig_queue_init(&qg, A, PD);
	rig_queue_init(&qc, C, PD);
	CHECK(!rig_queue_create(&qw) && !rig_queue_create(&qg) &&
	      !rig_queue_create(&qc));
	s = entry(FABREX_OP_WRITE);
	CHECK_EQ(rig_do(&qw, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	spend(&A->port->queue_guesses);
	none = wrong();
	/* The first is answered, as it was trusted; others wait unseen. */
	for (unsigned int i = 0; i < 32; i++) {
		rig_push(&qa, &none);
		rig_push(&qg, &none);
	}
	rig_ring(&qa);
	rig_ring(&qg);
	CHECK(rig_poll(&qa, &c, 20000));
	CHECK_EQ(c.status, FABREX_WC_RKEY);
	for (unsigned int i = 0; i < 2000; i++)
		CHECK_EQ(rig_do(&qw, &s, NULL), FABREX_WC_OK);
	s = entry(FABREX_OP_SEND);
	s.lkey = rig_mr(C, SRC, LEN, RIG_ALL, PD, NULL);
	CHECK_EQ(rig_do(&qc, &s, NULL), FABREX_WC_OK);
	s = entry(FABREX_OP_WRITE);
	s.lkey = rig_mr(C, SRC, LEN, RIG_ALL, PD, NULL);
	for (unsigned int i = 0; i < 2000; i++)
		CHECK_EQ(rig_do(&qc, &s, NULL), FABREX_WC_OK);
	/* The other host may even miss. */
	s.rkey ^= 1ull << 50;
	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(rig_do(&qc, &s, NULL), FABREX_WC_RKEY);
	CHECK(!rig_poll(&qa, &c, 0) && !rig_poll(&qg, &c, 0));
	CHECK_EQ(ctrl(&qa, 0x80), 2);
	CHECK_EQ(ctrl(&qg, 0x80), 0);
	/* Who waits can be destroyed, and its place is as good as any. */
	CHECK_EQ(rig_queue_destroy(&qa), 0);
	CHECK_EQ(rig_queue_destroy(&qg), 0);
	CHECK(rig_disable(A));
	END();
}

/* What a stopped function had spent is not given back to it. */
static void test_survives_disable(void)
{
	struct fabrex_cqe c;
	struct fabrex_sqe s;

	BEGIN();
	spend(&A->port->queue_guesses);
	CHECK(rig_disable(A));
	CHECK(rig_enable(A));
	rig_queue_init(&qa, A, PD);
	CHECK_EQ(rig_queue_create(&qa), 0);
	lkey = rig_mr(A, SRC, LEN, RIG_ALL, PD, NULL);
	s = wrong();
	rig_push(&qa, &s);
	rig_ring(&qa);
	CHECK(!rig_poll(&qa, &c, 200));
	/* It was not even looked up: nothing of it is known. */
	CHECK(!qa.g->port->queues.slots[qa.number].q->guesser.trusted);
	CHECK_EQ(rig_queue_destroy(&qa), 0);
	END();
}

/* ---- Windows ---- */

static unsigned int window_with(uint64_t key)
{
	struct draco_window_create *w = rig_data(A);
	struct draco_acpl cpl;
	unsigned int sc;

	*w = (struct draco_window_create){
		.slot = 2, .nslots = 1, .peer = 1, .rkey = key,
		.access = DRACO_ACCESS_REMOTE_READ, .length = 4096,
	};
	sc = rig_admin(A, rig_cmd(DRACO_ADM_WINDOW_CREATE, 0, sizeof(*w)),
		       &cpl);
	if (!sc)
		rig_admin(A, rig_cmd(DRACO_ADM_WINDOW_DESTROY, cpl.id, 0),
			  NULL);
	return sc;
}

static void test_windows(void)
{
	struct fabrex_sqe s;

	BEGIN();
	CHECK_EQ(window_with(rkey), DRACO_SC_OK);
	spend(&A->port->window_guesses);
	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(window_with(rkey), DRACO_SC_OK);
	CHECK_EQ(window_with(rkey ^ 1ull << 50), DRACO_SC_BAD_KEY);
	CHECK_EQ(window_with(rkey ^ 1ull << 50), DRACO_SC_RETRY);
	CHECK_EQ(window_with(rkey), DRACO_SC_RETRY);
	/* Queues have a budget of their own. */
	s = wrong();
	for (unsigned int i = 0; i < 100; i++)
		CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RKEY);
	A->port->window_guesses.full_ns = 0;
	A->port->guesser.due_ns = 0;
	CHECK_EQ(window_with(rkey), DRACO_SC_OK);
	END();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(burst_then_rate), T(hits_between), T(many_guessers),
	T(hits_are_free), T(what_counts), T(others_go_on),
	T(survives_disable), T(windows),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
