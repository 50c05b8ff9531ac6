// SPDX-License-Identifier: GPL-2.0-only
/*
 * What matters to somebody who has to choose: ours beside the best of the
 * peers, and a list of the rows where one of them is faster.
 */
#include <string.h>

#include "compare.h"

bool cmp_best(const struct row *row, struct best *best)
{
	struct spread s;
	uint32_t who;

	best->who = NULL;
	for (who = 1; who < row->nwho; who++) {
		if (row->who[who].id >= C_MEMCPY ||
		    !cmp_ratio(row, &row->who[who], &s))
			continue;
		if (best->who && best->ratio.median <= s.median)
			continue;
		best->who = &row->who[who];
		best->ratio = s;
	}
	return best->who;
}

bool cmp_missed(const struct row *row, struct best *best)
{
	return cmp_best(row, best) && best->ratio.median < 1;
}

static void print_miss(const struct row *row, const struct best *best, FILE *f,
		       const char *bullet)
{
	char size[SIZE_STR], ours[32], theirs[32];
	struct spread s;

	size_str(row->bytes, size);
	cmp_seconds(&row->who[0], &s);
	cmp_value(row, s.median, ours, sizeof(ours));
	cmp_seconds(best->who, &s);
	cmp_value(row, s.median, theirs, sizeof(theirs));
	fprintf(f, "%smiss: %s%s%s, %u ranks: %s, %s %s: %.2f (%.2f-%.2f)%s\n",
		bullet, row->label, row->bytes ? " " : "",
		row->bytes ? size : "", row->ranks, ours, cmp_name(best->who->id), theirs,
		best->ratio.median, best->ratio.q1, best->ratio.q3,
		best->ratio.q3 >= 1 ? "; within the spread" : "");
}

/* Sentences below a table: how often the best peer is met, and where not. */
void cmp_best_print(const struct comparison *c, FILE *f, const char *bullet)
{
	uint32_t i, rows = 0, missed = 0;
	struct best best;

	for (i = 0; i < c->nrows; i++) {
		rows += cmp_best(&c->rows[i], &best);
		missed += cmp_missed(&c->rows[i], &best);
	}
	if (!rows)
		return;
	fprintf(f, "%sat least as fast as the best of the peers in %u of %u rows\n",
		bullet, rows - missed, rows);
	for (i = 0; i < c->nrows; i++)
		if (cmp_missed(&c->rows[i], &best))
			print_miss(&c->rows[i], &best, f, bullet);
}
