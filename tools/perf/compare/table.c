// SPDX-License-Identifier: GPL-2.0-only
/*
 * Results for people: a table on a terminal, and the same as Markdown.
 */
#include <stdlib.h>
#include <string.h>

#include "compare.h"

#define CELL	96

const char *cmp_value(const struct row *row, double seconds, char *text,
		      size_t n)
{
	if (row->unit == UNIT_COUNT)
		snprintf(text, n, "%.1f", seconds);
	else if (row->unit == UNIT_RATE)
		snprintf(text, n, "%.2f GB/s",
			 (double)row->bytes / seconds / 1e9);
	else if (seconds < 10e-6)
		snprintf(text, n, "%.3f us", seconds * 1e6);
	else if (seconds < 10e-3)
		snprintf(text, n, "%.1f us", seconds * 1e6);
	else
		snprintf(text, n, "%.2f ms", seconds * 1e3);
	return text;
}

/* One line of either table: cells as text. */
struct line {
	char what[CELL], size[CELL], ranks[CELL], ours[CELL], peer[CELL];
	char theirs[300], ratio[CELL], aim[CELL], met[CELL];
	char growth[CELL];
};

/* Counts have to be below their limit. */
static bool met(const struct row *row, const struct against *a, double ratio)
{
	return row->unit == UNIT_COUNT ? ratio > a->aim : ratio >= a->aim;
}

static void fill_ratio(const struct row *row, const struct against *a,
		       struct line *l)
{
	struct spread s;

	if (a->aim > 0)
		snprintf(l->aim, CELL, "%.3g", a->aim);
	if (!cmp_ratio(row, a, &s))
		return;
	snprintf(l->ratio, CELL, "%.2f (%.2f-%.2f)", s.median, s.q1, s.q3);
	if (a->aim > 0)
		snprintf(l->met, CELL, "%s", met(row, a, s.median) ? "yes" :
								     "NO");
}

static void fill_theirs(const struct row *row, const struct against *a,
			struct line *l)
{
	struct spread s;

	if (cmp_seconds(a, &s))
		cmp_value(row, s.median, l->theirs, sizeof(l->theirs));
	else
		snprintf(l->theirs, sizeof(l->theirs), "missing: %s", a->why);
}

static void fill(const struct row *row, const struct against *a,
		 struct line *l)
{
	struct spread s;

	snprintf(l->what, CELL, "%s%s", row->label,
		 row->unit == UNIT_RATE ? " (rate)" :
		 row->section[0] == 'l' ? " (latency)" : "");
	if (row->bytes)
		size_str(row->bytes, l->size);
	else
		snprintf(l->size, CELL, "-");
	if (row->ranks)
		snprintf(l->ranks, CELL, "%u", row->ranks);
	else
		snprintf(l->ranks, CELL, "-");
	if (cmp_seconds(&row->who[0], &s))
		cmp_value(row, s.median, l->ours, CELL);
	else
		snprintf(l->ours, CELL, "failed");
	snprintf(l->ratio, CELL, "-");
	snprintf(l->aim, CELL, "-");
	snprintf(l->met, CELL, "-");
	snprintf(l->peer, CELL, "-");
	snprintf(l->theirs, sizeof(l->theirs), "-");
	if (a == &row->who[0])
		return;
	snprintf(l->peer, CELL, "%s", cmp_name(a->id));
	fill_theirs(row, a, l);
	fill_ratio(row, a, l);
}

bool cmp_by_ranks(const struct comparison *c)
{
	return !strcmp(c->o.what, "ranks");
}

/* "1.9, 2.3": ours, theirs. */
static void fill_growth(const struct comparison *c, const struct row *row,
			uint32_t who, struct line *l)
{
	double ours, theirs;

	snprintf(l->growth, CELL, "-");
	if (!cmp_growth(c, row, 0, &ours, NULL))
		return;
	snprintf(l->growth, CELL, "%.1f", ours);
	if (who && cmp_growth(c, row, who, &theirs, NULL))
		snprintf(l->growth, CELL, "%.1f, %.1f", ours, theirs);
}

/* Calls @print for each row and peer, or once for a row without peers. */
static void each(const struct comparison *c, FILE *f,
		 void (*print)(const struct comparison *c, FILE *f,
			       const struct line *l))
{
	uint32_t i, who;
	struct line l;

	for (i = 0; i < c->nrows; i++)
		for (who = c->rows[i].nwho > 1; who < c->rows[i].nwho; who++) {
			fill(&c->rows[i], &c->rows[i].who[who], &l);
			fill_growth(c, &c->rows[i], who, &l);
			print(c, f, &l);
		}
}

/* Of the first column. */
static int width(const struct comparison *c)
{
	struct line l;
	int most = 4;
	uint32_t i;

	for (i = 0; i < c->nrows; i++) {
		fill(&c->rows[i], &c->rows[i].who[0], &l);
		if ((int)strlen(l.what) > most)
			most = (int)strlen(l.what);
	}
	return most;
}

static void print_line(const struct comparison *c, FILE *f,
		       const struct line *l)
{
	fprintf(f, "%-*s %6s %5s %11s  %-14s %11s %18s", width(c), l->what,
		l->size, l->ranks, l->ours, l->peer,
		strncmp(l->theirs, "missing", 7) ? l->theirs : "missing",
		l->ratio);
	if (c->o.aims)
		fprintf(f, " %5s %4s", l->aim, l->met);
	if (cmp_by_ranks(c))
		fprintf(f, " %11s", l->growth);
	fprintf(f, "\n");
}

static void print_markdown(const struct comparison *c, FILE *f,
			   const struct line *l)
{
	fprintf(f, "| %s | %s | %s | %s | %s | %s | %s |", l->what, l->size,
		l->ranks, l->ours, l->peer,
		strncmp(l->theirs, "missing", 7) ? l->theirs : "missing",
		l->ratio);
	if (c->o.aims)
		fprintf(f, " %s | %s |", l->aim, l->met);
	if (cmp_by_ranks(c))
		fprintf(f, " %s |", l->growth);
	fprintf(f, "\n");
}

/* Who took part in which version, who is missing and why. */
static void print_versions(const struct comparison *c, FILE *f,
			   const char *bullet)
{
	enum contender_id id;

	for (id = C_OURS; id < C_MEMCPY; id++)
		if (c->version[id][0])
			fprintf(f, "%s%s: %s%s\n", bullet, cmp_name(id),
				c->missing[id] ? "missing: " : "",
				c->version[id]);
}

/* Has an earlier row failed for the same reason? */
static bool said(const struct comparison *c, uint32_t row,
		 const struct against *a)
{
	uint32_t i, who;

	for (i = 0; i < row; i++)
		for (who = 0; who < c->rows[i].nwho; who++)
			if (c->rows[i].who[who].id == a->id &&
			    !strcmp(c->rows[i].who[who].why, a->why))
				return true;
	return false;
}

/* What failed though the peer is there. */
static void print_failures(const struct comparison *c, FILE *f,
			   const char *bullet)
{
	uint32_t i, who;

	for (i = 0; i < c->nrows; i++)
		for (who = 0; who < c->rows[i].nwho; who++) {
			const struct against *a = &c->rows[i].who[who];

			if (!a->n && !c->missing[a->id] && a->why[0] &&
			    !said(c, i, a))
				fprintf(f, "%s%s, %s, %u ranks: %s\n", bullet,
					cmp_name(a->id), c->rows[i].what,
					c->rows[i].ranks, a->why);
		}
}

/* Which way of the bound was the fastest, where. */
static void print_ways(const struct comparison *c, FILE *f, const char *bullet)
{
	const char *comma = "";
	char size[SIZE_STR];
	uint32_t i, who;

	for (i = 0; i < c->nrows; i++)
		for (who = 0; who < c->rows[i].nwho; who++) {
			const struct against *a = &c->rows[i].who[who];

			if (!a->how[0] || !a->n)
				continue;
			fprintf(f, "%s%s %s, %u ranks: %s", *comma ? comma :
				bullet, c->rows[i].what,
				size_str(c->rows[i].bytes, size),
				c->rows[i].ranks, a->how);
			comma = "; ";
		}
	if (*comma)
		fprintf(f, "\n");
}

static void print_notes(const struct comparison *c, FILE *f,
			const char *bullet)
{
	uint32_t i;

	for (i = 0; i < c->nnotes; i++)
		fprintf(f, "%s%s\n", bullet, c->notes[i]);
}

void cmp_table(const struct comparison *c, FILE *f)
{
	struct environment e;

	environment_read(&e);
	fprintf(f, "%s, processors %s, %s; %s\n", e.processor, e.cpus,
		e.kernel, e.date);
	fprintf(f, "medians of %u interleaved repetitions; ratio: times that ours is faster, median (quartiles)\n",
		c->o.repetitions);
	if (cmp_by_ranks(c))
		fprintf(f, "growth: times that it takes longer than with the next fewer ranks, ours and theirs\n");
	fprintf(f, "%-*s %6s %5s %11s  %-14s %11s %18s%s%s\n", width(c),
		"what", "size", "ranks", "ours", "peer", "theirs", "ratio",
		c->o.aims ? "   aim  met" : "",
		cmp_by_ranks(c) ? "      growth" : "");
	each(c, f, print_line);
	print_versions(c, f, "  ");
	print_failures(c, f, "  ");
	cmp_best_print(c, f, "  ");
	cmp_jumps_print(c, f, "  ");
	print_ways(c, f, "  memory bound with: ");
	print_notes(c, f, "  ");
}

void cmp_markdown(const struct comparison *c, FILE *f)
{
	struct environment e;

	environment_read(&e);
	fprintf(f, "%s; %s, processors %s, %s; %s; %s, %s. Medians of %u interleaved repetitions; ratio: times that ours is faster, median (quartiles).\n\n",
		e.date, e.processor, e.cpus, e.memory, e.kernel, e.library,
		e.compiler, c->o.repetitions);
	fprintf(f, "| what | size | ranks | ours | peer | theirs | ratio |%s%s\n",
		c->o.aims ? " aim | met |" : "",
		cmp_by_ranks(c) ? " growth: ours, theirs |" : "");
	fprintf(f, "|---|---:|---:|---:|---|---:|---:|%s%s\n",
		c->o.aims ? "---:|---|" : "", cmp_by_ranks(c) ? "---:|" : "");
	each(c, f, print_markdown);
	fprintf(f, "\n");
	print_versions(c, f, "* ");
	print_failures(c, f, "* ");
	cmp_best_print(c, f, "* ");
	cmp_jumps_print(c, f, "* ");
	print_ways(c, f, "* memory bound with: ");
	print_notes(c, f, "* ");
}
