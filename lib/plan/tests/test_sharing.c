// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Max-min fair sharing: by its definition, and over time against a reference
 * that shares out everything anew whenever anything changes.
 */
#include <math.h>
#include <stdlib.h>

#include "plan/simulate/sharing.h"
#include "tests/tap.h"

#define FLOWS	40
#define LINKS	12

/*
 * Max-min fairness by its definition, on random links and flows: each flow has
 * a link that is full and on which nobody has more than it.
 */
static bool is_fair(const double *capacity, uint32_t nlinks,
		    uint32_t (*ways)[3], const double *rate, uint32_t n)
{
	uint32_t i, k, j, m;

	for (i = 0; i < n; i++) {
		bool good = false;

		for (k = 0; k < 3 && !good; k++) {
			double sum = 0, most = 0;

			for (j = 0; j < n; j++)
				for (m = 0; m < 3; m++)
					if (ways[j][m] == ways[i][k]) {
						sum += rate[j];
						most = fmax(most, rate[j]);
					}
			if (sum > capacity[ways[i][k]] * (1 + 1e-9))
				return false;
			good = sum > capacity[ways[i][k]] * (1 - 1e-9) &&
			       rate[i] >= most * (1 - 1e-9);
		}
		if (!good)
			return false;
	}
	return nlinks > 0;
}

/* Rates are told by when flows end that all have begun at once. */
static bool try_fairness(unsigned int *seed)
{
	double capacity[LINKS], rate[FLOWS];
	uint32_t ways[FLOWS][3], i, k, n = 1 + (uint32_t)rand_r(seed) % FLOWS;

	for (i = 0; i < LINKS; i++)
		capacity[i] = 1 + rand_r(seed) % 9;
	for (i = 0; i < n; i++)
		for (k = 0; k < 3; k++)
			ways[i][k] = 4 * k + (uint32_t)rand_r(seed) % 4;
	for (i = 0; i < n; i++) {
		struct sharing *f = sharing_new(capacity, LINKS);

		/* Flow i is short, so that it ends first at its first rate. */
		for (k = 0; k < n; k++)
			sharing_class(f, ways[k], 3, 1);
		sharing_ready(f);
		for (k = 0; k < n; k++)
			sharing_start(f, (uint32_t)
				      sharing_class(f, ways[k], 3, 1),
				      k == i ? 1e-6 : 1, k);
		sharing_update(f, 0);
		rate[i] = 1e-6 / sharing_next(f);
		if (sharing_pop(f) != i)
			rate[i] = 0;
		sharing_free(f);
	}
	return is_fair(capacity, LINKS, ways, rate, n);
}

static void fairness(void)
{
	unsigned int seed = 5, i, good = 0;

	for (i = 0; i < 200; i++)
		good += try_fairness(&seed);
	ok(good == 200, "rates are max-min fair: %u of 200 random cases", good);
}

/* ---- over time ----------------------------------------------------------- */

#define CLASSES	15

struct history {
	double capacity[LINKS];
	uint32_t ways[CLASSES][3];
	double weight[CLASSES];
	uint32_t class[FLOWS];
	double begin[FLOWS], bytes[FLOWS], end[FLOWS];
	double left[FLOWS], rate[FLOWS];
};

static void invent(struct history *h, unsigned int *seed)
{
	uint32_t i, k;

	for (i = 0; i < LINKS; i++)
		h->capacity[i] = 1 + rand_r(seed) % 9;
	for (i = 0; i < CLASSES; i++) {
		h->weight[i] = 1.0 / (1 + rand_r(seed) % 3);
		for (k = 0; k < 3; k++)
			h->ways[i][k] = 4 * k + (uint32_t)rand_r(seed) % 4;
	}
	for (i = 0; i < FLOWS; i++) {
		h->class[i] = (uint32_t)rand_r(seed) % CLASSES;
		h->begin[i] = rand_r(seed) % 100 / 10.0;
		h->bytes[i] = 0.1 + rand_r(seed) % 50 / 10.0;
		h->left[i] = h->bytes[i];
		h->end[i] = INFINITY;
	}
}

/* All that have begun, the slow way: link by link, the narrowest first. */
static void share_plainly(struct history *h, double now)
{
	double left[LINKS], n[LINKS], least;
	uint32_t i, k, at;

	memcpy(left, h->capacity, sizeof(left));
	for (i = 0; i < FLOWS; i++)
		h->rate[i] = h->begin[i] <= now && h->left[i] > 1e-9 ? -1 : 0;
	for (;;) {
		memset(n, 0, sizeof(n));
		for (i = 0; i < FLOWS; i++)
			for (k = 0; k < 3; k++)
				n[h->ways[h->class[i]][k]] += h->rate[i] < 0 ?
					h->weight[h->class[i]] : 0;
		for (at = LINKS, least = INFINITY, i = 0; i < LINKS; i++)
			if (n[i] > 0 && left[i] / n[i] < least) {
				least = left[i] / n[i];
				at = i;
			}
		if (at == LINKS)
			return;
		for (i = 0; i < FLOWS; i++) {
			const uint32_t *w = h->ways[h->class[i]];

			if (h->rate[i] >= 0 ||
			    (w[0] != at && w[1] != at && w[2] != at))
				continue;
			h->rate[i] = least * h->weight[h->class[i]];
			for (k = 0; k < 3; k++)
				left[w[k]] -= h->rate[i];
		}
	}
}

/* When each flow ends. */
static void run_plainly(struct history *h)
{
	double now = 0, next;
	uint32_t i;

	for (;;) {
		share_plainly(h, now);
		next = INFINITY;
		for (i = 0; i < FLOWS; i++) {
			if (h->begin[i] > now)
				next = fmin(next, h->begin[i]);
			if (h->rate[i] > 0)
				next = fmin(next, now + h->left[i] /
						  h->rate[i]);
		}
		if (next == INFINITY)
			return;
		for (i = 0; i < FLOWS; i++) {
			bool moved = h->rate[i] > 0;

			h->left[i] -= h->rate[i] * (next - now);
			if (moved && h->left[i] <= 1e-9)
				h->end[i] = next;
		}
		now = next;
	}
}

static bool run_flows(const struct history *h, uint64_t *work)
{
	struct sharing *f = sharing_new(h->capacity, LINKS);
	double now = 0, next, end[FLOWS];
	bool begun[FLOWS] = { false }, good = true;
	int64_t class[CLASSES];
	uint32_t i, ended = 0;

	for (i = 0; i < CLASSES; i++)
		class[i] = sharing_class(f, h->ways[i], 3, h->weight[i]);
	sharing_ready(f);
	while (ended < FLOWS) {
		for (i = 0; i < FLOWS; i++)
			if (!begun[i] && h->begin[i] <= now) {
				begun[i] = true;
				sharing_start(f, (uint32_t)class[h->class[i]],
					      h->bytes[i], i);
			}
		sharing_update(f, now);
		for (next = INFINITY, i = 0; i < FLOWS; i++)
			if (!begun[i])
				next = fmin(next, h->begin[i]);
		if (sharing_next(f) <= next) {
			now = sharing_next(f);
			end[sharing_pop(f)] = now;
			ended++;
		} else {
			now = next;
		}
	}
	*work += sharing_work(f);
	sharing_free(f);
	for (i = 0; i < FLOWS; i++)
		good &= fabs(end[i] - h->end[i]) <= 1e-6;
	return good;
}

static void histories(void)
{
	static struct history h;
	unsigned int seed = 7, i, good = 0;
	uint64_t work = 0;

	for (i = 0; i < 300; i++) {
		invent(&h, &seed);
		run_plainly(&h);
		good += run_flows(&h, &work);
	}
	ok(good == 300, "flows that come and go end when they should: %u of 300",
	   good);
	ok(work > 300, "work is counted");
}

/* Equal ways are one class, whatever else there is. */
static void classes(void)
{
	static const double rate[3] = { 1, 2, 3 };
	struct sharing *f = sharing_new(rate, 3);
	uint32_t a[2] = { 0, 1 }, b[2] = { 1, 0 }, c[1] = { 0 };

	ok(sharing_class(f, a, 2, 1) == 0 && sharing_class(f, b, 2, 1) == 1 &&
	   sharing_class(f, c, 1, 1) == 2 && sharing_class(f, c, 1, 0.25) == 3 &&
	   sharing_class(f, a, 2, 1) == 0,
	   "classes are known by their links and weights");
	sharing_ready(f);
	ok(sharing_next(f) == INFINITY, "no flow, no end");
	sharing_start(f, 0, 6, 42);
	sharing_start(f, 0, 2, 43);
	sharing_update(f, 5);
	ok(sharing_next(f) == 9 && sharing_pop(f) == 43,
	   "two on a link of 1: 2 bytes take 4 s");
	sharing_update(f, 9);
	ok(sharing_next(f) == 13 && sharing_pop(f) == 42,
	   "the other one then has it all");
	sharing_update(f, 13);
	ok(sharing_next(f) == INFINITY, "and that was it");
	sharing_start(f, 3, 2, 44);
	sharing_start(f, 2, 2, 45);
	sharing_update(f, 20);
	ok(sharing_next(f) == 22.5 && sharing_pop(f) == 45,
	   "a weight of 1 beside one of 1/4: 4/5 of the link");
	sharing_update(f, 22.5);
	ok(fabs(sharing_next(f) - 24) < 1e-9 && sharing_pop(f) == 44,
	   "and the other one 1/5 until then");
	sharing_free(f);
}

int main(void)
{
	classes();
	fairness();
	histories();
	return tap_done();
}
