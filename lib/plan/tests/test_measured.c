// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The prediction against what was measured in the field: two Columbas of eight
 * MI300X in five wirings, RCCL's rings. One set of capacities and timings for
 * all of them. The size of the messages is not known: PLAN_SIZE_DEFAULT, and
 * how the figures move with it. And what trees would reach.
 */
#include <math.h>
#include <stdlib.h>

#include "plan/optimum.h"
#include "plan/read.h"
#include "plan/simulate.h"
#include "tests/tap.h"

#define NCOLLECTIVES	3

static const enum plan_collective collectives[NCOLLECTIVES] = {
	PLAN_ALL_GATHER, PLAN_ALL_REDUCE, PLAN_BROADCAST };
static const double within[NCOLLECTIVES] = { 0.15, 0.10, 0.10 };

/* GB/s of bus bandwidth; 0: not given. In descending order of all-reduce. */
static const struct wiring {
	const char *name;
	double measured[NCOLLECTIVES];
} wirings[] = {
	{ "2s-2rp-split-flat", { 92, 100, 107 } },
	{ "1s-2rp-split-cascade", { 56, 54, 54 } },
	{ "2s-2rp-std-flat", { 27, 27, 27 } },
	{ "1s-2rp-std-cascade", { 25, 25, 25 } },
	{ "1s-1rp-std-cascade", { 0, 0, 0 } },
};

#define NWIRINGS	(sizeof(wirings) / sizeof(wirings[0]))
#define NMEASURED	(NWIRINGS - 1)

static const uint64_t sizes[] = { 64ull << 20, 256ull << 20, 1ull << 30,
				  4ull << 30 };

#define NSIZES		(sizeof(sizes) / sizeof(sizes[0]))

struct row {
	uint32_t nrings;
	double links;		/* what the links allow these rings, GB/s */
	double busbw[NSIZES];
};

static bool play(const struct plan_graph *g, enum plan_collective c,
		 struct row *row)
{
	struct plan_timing t = plan_timing_default();
	struct plan_error e = { 0 };
	struct plan_played out;
	struct plan_rings r;
	bool good = !plan_rings(g, c, 0, NULL, &r, &e);
	uint32_t i;

	if (good) {
		row->nrings = r.nrings;
		row->links = plan_ratio_value(r.busbw) / 1e3;
		for (i = 0; good && i < NSIZES; i++) {
			struct plan_job job = { r.schedule, sizes[i], 0 };

			good = !plan_simulate(g, &job, 1, &t, &out, NULL, &e);
			row->busbw[i] = out.busbw;
		}
		plan_rings_free(&r);
	}
	if (!good)
		printf("# %s\n", e.text);
	return good;
}

/* Trees that meet the bound, which rings cannot. */
static void play_optimum(const struct plan_graph *g, const char *name,
			 enum plan_collective c, const struct row *rings)
{
	struct plan_timing t = plan_timing_default();
	struct plan_error e = { 0 };
	struct plan_played out = { 0 };
	struct plan_optimum o;
	struct plan_job job;
	double most;

	if (plan_optimum(g, c, 0, &o, &e)) {
		ok(false, "%s: %s", name, e.text);
		return;
	}
	job = (struct plan_job){ o.schedule, PLAN_SIZE_DEFAULT, 0 };
	most = plan_ratio_value(o.busbw) / 1e3;
	plan_simulate(g, &job, 1, &t, &out, NULL, &e);
	ok(out.busbw <= most && out.busbw > 0.9 * most &&
	   out.busbw > rings->links,
	   "%s, %s: trees %.1f of %.1f GB/s, more than rings could",
	   name, plan_collective_name(c), out.busbw, most);
	plan_optimum_free(&o);
}

static bool play_all(const struct wiring *w, struct row *rows)
{
	struct plan_error e = { 0 };
	struct plan_graph *g;
	char path[256];
	bool good = true;
	uint32_t c;

	snprintf(path, sizeof(path), "topologies/%s.topo", w->name);
	g = plan_graph_read(path, NULL, &e);
	if (!g) {
		printf("# %s\n", e.text);
		return false;
	}
	for (c = 0; good && c < NCOLLECTIVES; c++)
		good = play(g, collectives[c], &rows[c]);
	for (c = 0; good && c < 2; c++)
		play_optimum(g, w->name, collectives[c], &rows[c]);
	plan_graph_free(g);
	return good;
}

static void print(const struct wiring *w, const struct row *rows)
{
	uint32_t c, k;

	for (c = 0; c < NCOLLECTIVES; c++) {
		printf("# %-20s %-10s %5u", w->name,
		       plan_collective_name(collectives[c]), rows[c].nrings);
		if (w->measured[c] > 0)
			printf(" %8.0f", w->measured[c]);
		else
			printf(" %8s", "-");
		for (k = 0; k < NSIZES; k++)
			printf(" %8.1f", rows[c].busbw[k]);
		printf(" %8.1f\n", rows[c].links);
	}
}

static void judge(const struct wiring *w, const struct row *rows,
		  uint32_t size)
{
	uint32_t c, k;

	for (c = 0; c < NCOLLECTIVES; c++) {
		double got = rows[c].busbw[size], off;
		bool below = true, more = true;

		for (k = 0; k < NSIZES; k++) {
			below &= rows[c].busbw[k] <= rows[c].links;
			more &= !k || rows[c].busbw[k] > rows[c].busbw[k - 1];
		}
		ok(below && more, "%s, %s: more with size, below %.0f GB/s",
		   w->name, plan_collective_name(collectives[c]),
		   rows[c].links);
		if (!(w->measured[c] > 0))
			continue;
		off = got / w->measured[c] - 1;
		ok(fabs(off) <= within[c],
		   "%s, %s: %.1f, measured %.0f: %+.1f %%, at most %.0f %%",
		   w->name, plan_collective_name(collectives[c]), got,
		   w->measured[c], 100 * off, 100 * within[c]);
	}
}

int main(void)
{
	static struct row rows[NWIRINGS][NCOLLECTIVES];
	uint32_t i, k, size = 0;

	while (sizes[size] != PLAN_SIZE_DEFAULT)
		size++;
	printf("# bus bandwidth, GB/s%19s %5s %8s", "", "rings", "measured");
	for (k = 0; k < NSIZES; k++)
		printf(" %4u MiB", (unsigned int)(sizes[k] >> 20));
	printf(" %8s\n", "links");
	for (i = 0; i < NWIRINGS; i++) {
		if (!play_all(&wirings[i], rows[i])) {
			ok(false, "%s is planned and played", wirings[i].name);
			return tap_done();
		}
		print(&wirings[i], rows[i]);
	}
	for (i = 0; i < NWIRINGS; i++)
		judge(&wirings[i], rows[i], size);
	for (k = 0; k < NSIZES; k++)
		for (i = 1; i < NMEASURED; i++)
			ok(rows[i - 1][1].busbw[k] > rows[i][1].busbw[k],
			   "all-reduce of %u MiB: %s before %s",
			   (unsigned int)(sizes[k] >> 20),
			   wirings[i - 1].name, wirings[i].name);
	printf("# not given, predicted: %s: all-gather %.1f, all-reduce %.1f, broadcast %.1f GB/s\n",
	       wirings[NMEASURED].name, rows[NMEASURED][0].busbw[size],
	       rows[NMEASURED][1].busbw[size], rows[NMEASURED][2].busbw[size]);
	return tap_done();
}
