// SPDX-License-Identifier: GPL-2.0-only
/*
 * Medians and quartiles of samples, and of ratios taken repetition by
 * repetition.
 */
#include <stdlib.h>
#include <string.h>

#include "compare.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Between the two nearest, as most programs do it ("type 7"). */
static double quantile(const double *sorted, uint32_t n, double part)
{
	double at = part * (double)(n - 1);
	uint32_t i = (uint32_t)at;

	if (i + 1 >= n)
		return sorted[n - 1];
	return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

struct spread cmp_spread(double *values, uint32_t n)
{
	struct spread s;

	qsort(values, n, sizeof(*values), by_value);
	s.q1 = quantile(values, n, 0.25);
	s.median = quantile(values, n, 0.5);
	s.q3 = quantile(values, n, 0.75);
	return s;
}

bool cmp_seconds(const struct against *a, struct spread *s)
{
	double copy[MAX_REPETITIONS];
	uint32_t i;

	for (i = 0; i < a->n; i++)
		copy[i] = a->seconds[i];
	if (a->n)
		*s = cmp_spread(copy, a->n);
	return a->n;
}

bool cmp_ratio(const struct row *row, const struct against *a,
	       struct spread *s)
{
	const struct against *ours = &row->who[0];
	uint32_t i, n = a->n < ours->n ? a->n : ours->n;
	double ratio[MAX_REPETITIONS];

	for (i = 0; i < n; i++)
		ratio[i] = a->seconds[i] / ours->seconds[i];
	if (n)
		*s = cmp_spread(ratio, n);
	return n;
}

/* The row of the same with the next smaller number of ranks. */
static const struct row *fewer(const struct comparison *c,
			       const struct row *row)
{
	const struct row *at, *best = NULL;

	for (at = c->rows; at < c->rows + c->nrows; at++)
		if (!strcmp(at->what, row->what) &&
		    at->nominal == row->nominal && at->ranks < row->ranks &&
		    (!best || at->ranks > best->ranks))
			best = at;
	return best;
}

bool cmp_growth(const struct comparison *c, const struct row *row,
		uint32_t who, double *growth, double *ranks)
{
	const struct row *before = fewer(c, row);
	struct spread now, then;

	if (!before || who >= before->nwho ||
	    !cmp_seconds(&row->who[who], &now) ||
	    !cmp_seconds(&before->who[who], &then))
		return false;
	*growth = now.median / then.median;
	if (ranks)
		*ranks = (double)row->ranks / before->ranks;
	return true;
}
