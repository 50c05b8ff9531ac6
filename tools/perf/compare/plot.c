// SPDX-License-Identifier: GPL-2.0-only
/*
 * A picture of a comparison: of each contender a line over the sizes, time if
 * everything is a time, else bytes in a second.
 */
#include <string.h>

#include "compare.h"
#include "../plot.h"

/* Rows without a size (barriers, counts) are left out. */
static bool drawable(const struct row *row)
{
	return row->bytes && row->unit != UNIT_COUNT;
}

static uint32_t kinds(const struct comparison *c)
{
	uint32_t i, n = 0;
	const char *last = "";

	for (i = 0; i < c->nrows; i++) {
		if (!drawable(&c->rows[i]))
			continue;
		n += strcmp(c->rows[i].what, last) != 0;
		last = c->rows[i].what;
	}
	return n;
}

static void name_series(const struct comparison *c, const struct row *row,
			enum contender_id id, bool several, char *name,
			size_t n)
{
	char ranks[24] = "";

	if (c->o.nranks > 1)
		snprintf(ranks, sizeof(ranks), ", %u ranks", row->ranks);
	if (several)
		snprintf(name, n, "%s, %s%s", row->what, cmp_name(id), ranks);
	else
		snprintf(name, n, "%s%s", cmp_name(id), ranks);
}

static bool add_row(const struct comparison *c, const struct row *row,
		    bool rates, bool several, struct plot *p)
{
	char name[64];
	struct spread s;
	uint32_t who;

	for (who = 0; who < row->nwho; who++) {
		if (!cmp_seconds(&row->who[who], &s))
			continue;
		name_series(c, row, row->who[who].id, several, name,
			    sizeof(name));
		if (!plot_add(p, name, (double)row->bytes, rates ?
			      (double)row->bytes / s.median / 1e9 :
			      s.median * 1e6))
			return false;
	}
	return true;
}

int cmp_plot(const struct comparison *c)
{
	struct plot p = { .x = "bytes", .log_y = true };
	bool several = kinds(c) > 1, rates = true, ok = true;
	const char *what = c->o.what;
	uint32_t i;
	int ret;

	for (i = 0; i < c->nrows; i++)
		if (drawable(&c->rows[i])) {
			rates &= c->rows[i].unit == UNIT_RATE;
			what = several ? what : c->rows[i].what;
		}
	for (i = 0; i < c->nrows && ok; i++)
		if (drawable(&c->rows[i]))
			ok = add_row(c, &c->rows[i], rates, several, &p);
	snprintf(p.title, sizeof(p.title), "%s: medians of %u interleaved repetitions, %u processors",
		 what, c->o.repetitions, c->cpus.n);
	snprintf(p.y, sizeof(p.y), rates ? "GB/s" : "us");
	if (!ok)
		fprintf(stderr, "fabrex-perf: --plot: more than %u lines; choose with --only, --peers or --ranks\n",
			PLOT_SERIES);
	ret = !ok ? EXIT_USAGE : plot_draw(&p, c->o.plot);
	plot_free(&p);
	return ret;
}
