// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How much the prediction of the measured wirings depends on its figures:
 * docs/prediction.md, "How sure". test_measured.c has the figures themselves.
 */
#include <math.h>

#include "plan/optimum.h"
#include "plan/read.h"
#include "plan/simulate.h"
#include "tests/tap.h"

#define NWIRINGS	4
#define NCOLLECTIVES	3

static const enum plan_collective collectives[NCOLLECTIVES] = {
	PLAN_ALL_GATHER, PLAN_ALL_REDUCE, PLAN_BROADCAST };
static const double within[NCOLLECTIVES] = { 0.15, 0.10, 0.10 };

/* In descending order of all-reduce, GB/s. */
static const struct {
	const char *name;
	double measured[NCOLLECTIVES];
} wirings[NWIRINGS] = {
	{ "2s-2rp-split-flat", { 92, 100, 107 } },
	{ "1s-2rp-split-cascade", { 56, 54, 54 } },
	{ "2s-2rp-std-flat", { 27, 27, 27 } },
	{ "1s-2rp-std-cascade", { 25, 25, 25 } },
};

static struct plan_graph *graphs[NWIRINGS];
static struct plan_rings rings[NWIRINGS][NCOLLECTIVES];

static bool setup(void)
{
	struct plan_error e = { 0 };
	char path[256];
	uint32_t i, c;

	for (i = 0; i < NWIRINGS; i++) {
		snprintf(path, sizeof(path), "topologies/%s.topo",
			 wirings[i].name);
		graphs[i] = plan_graph_read(path, NULL, &e);
		for (c = 0; graphs[i] && c < NCOLLECTIVES; c++)
			if (plan_rings(graphs[i], collectives[c], 0, NULL,
				       &rings[i][c], &e))
				return false;
		if (!graphs[i])
			return false;
	}
	return true;
}

static double busbw(uint32_t wiring, uint32_t c, double piece, uint64_t bytes)
{
	struct plan_timing t = plan_timing_default();
	struct plan_job job = { rings[wiring][c].schedule, PLAN_SIZE_DEFAULT,
				0 };
	struct plan_played out;

	t.piece = piece;
	if (bytes)
		t.piece_bytes = bytes;
	return plan_simulate(graphs[wiring], &job, 1, &t, &out, NULL, NULL) ?
	       NAN : out.busbw;
}

static void limits(double piece)
{
	uint32_t i, c, good = 0;

	for (i = 0; i < NWIRINGS; i++)
		for (c = 0; c < NCOLLECTIVES; c++) {
			double got = busbw(i, c, piece, 0);
			double off = got / wirings[i].measured[c] - 1;

			good += fabs(off) <= within[c];
			if (!(fabs(off) <= within[c]))
				printf("# %s, %s: %.1f\n", wirings[i].name,
				       plan_collective_name(collectives[c]),
				       got);
		}
	ok(good == NWIRINGS * NCOLLECTIVES,
	   "%.2f us a piece: %u of %u figures within their limits",
	   piece * 1e6, good, NWIRINGS * NCOLLECTIVES);
}

static void order(double piece, uint64_t bytes)
{
	double last = INFINITY, next;
	bool good = true;
	uint32_t i;

	for (i = 0; i < NWIRINGS; i++, last = next) {
		next = busbw(i, 1, piece, bytes);
		good &= next < last;
	}
	ok(good, "%.2f us, pieces of %u KiB: all-reduces in the order measured",
	   piece * 1e6, (uint32_t)(bytes >> 10));
}

int main(void)
{
	double usual = plan_timing_default().piece;
	uint32_t i, c;

	if (!setup()) {
		ok(false, "the wirings have rings");
		return tap_done();
	}
	limits(0.4e-6);
	limits(1.9e-6);
	order(0.35e-6, 512 << 10);
	order(2.8e-6, 512 << 10);
	order(usual, 128 << 10);
	order(usual, 1024 << 10);
	for (i = 0; i < NWIRINGS; i++) {
		for (c = 0; c < NCOLLECTIVES; c++)
			plan_rings_free(&rings[i][c]);
		plan_graph_free(graphs[i]);
	}
	return tap_done();
}
