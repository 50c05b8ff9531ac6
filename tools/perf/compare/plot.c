// SPDX-License-Identifier: GPL-2.0-only
/*
 * A picture of a comparison: of each contender a line over the sizes, time if
 * everything is a time, else bytes in a second. Of "compare ranks" one picture
 * for each collective, with a line over the ranks for each size and contender.
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

#define MAX_PICTURES	8u

/* The picture of a row's collective; NULL: too many. */
static struct plot *picture_of(struct plot *p, uint32_t *n,
			       const struct row *row)
{
	uint32_t i;

	for (i = 0; i < *n; i++)
		if (!strcmp(p[i].title, row->label))
			return &p[i];
	if (*n == MAX_PICTURES)
		return NULL;
	p = &p[(*n)++];
	snprintf(p->title, sizeof(p->title), "%s", row->label);
	snprintf(p->x, sizeof(p->x), "ranks");
	snprintf(p->y, sizeof(p->y), "us");
	p->log_y = true;
	return p;
}

static bool add_ranks(const struct row *row, struct plot *p)
{
	char name[64], size[SIZE_STR] = "";
	struct spread s;
	uint32_t who;

	p->pairs = row->nwho == 2;
	if (row->nominal)
		size_str(row->nominal, size);
	for (who = 0; who < row->nwho; who++) {
		if (!cmp_seconds(&row->who[who], &s))
			continue;
		snprintf(name, sizeof(name), "%s%s%s",
			 cmp_name(row->who[who].id), size[0] ? ", " : "",
			 size);
		if (!plot_add(p, name, row->ranks, s.median * 1e6))
			return false;
	}
	return true;
}

static int plot_ranks(const struct comparison *c)
{
	struct plot pictures[MAX_PICTURES] = { 0 }, *p;
	char title[160];
	uint32_t i, n = 0;
	bool ok = true;
	int ret;

	for (i = 0; i < c->nrows && ok; i++) {
		p = picture_of(pictures, &n, &c->rows[i]);
		ok = p && add_ranks(&c->rows[i], p);
	}
	snprintf(title, sizeof(title), "%u processors, medians of %u interleaved repetitions",
		 c->cpus.n, c->o.repetitions);
	if (!ok)
		fprintf(stderr, "fabrex-perf: --plot: more than %u lines or %u collectives; choose with --only\n",
			PLOT_SERIES, MAX_PICTURES);
	ret = ok ? plot_draw_beside(pictures, n, title, c->o.plot) :
		   EXIT_USAGE;
	for (i = 0; i < n; i++)
		plot_free(&pictures[i]);
	return ret;
}

static int plot_sizes(const struct comparison *c)
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

int cmp_plot(const struct comparison *c)
{
	return cmp_by_ranks(c) ? plot_ranks(c) : plot_sizes(c);
}
