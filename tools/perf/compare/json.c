// SPDX-License-Identifier: GPL-2.0-only
/*
 * Results for programs: one object with the environment, who took part, and
 * every sample.
 */
#include "compare.h"

static void json_pair(FILE *f, const char *key, const char *text, bool last)
{
	json_string(f, key);
	fprintf(f, ": ");
	json_string(f, text);
	fputs(last ? "" : ", ", f);
}

static void json_environment(const struct comparison *c, FILE *f)
{
	struct environment e;

	environment_read(&e);
	environment_json(&e, f);
	fprintf(f, ", \"pinned\": %s, \"repetitions\": %u",
		c->o.pin ? "true" : "false", c->o.repetitions);
}

static void json_contenders(const struct comparison *c, FILE *f)
{
	enum contender_id id;
	bool first = true;

	fprintf(f, ", \"contenders\": [");
	for (id = C_OURS; id < C_MEMCPY; id++) {
		if (!c->version[id][0])
			continue;
		fprintf(f, "%s\n  {", first ? "" : ",");
		json_pair(f, "name", cmp_word(id), false);
		json_pair(f, c->missing[id] ? "missing" : "version",
			  c->version[id], true);
		fprintf(f, "}");
		first = false;
	}
	fprintf(f, "\n]");
}

static void json_samples(const struct row *row, const struct against *a,
			 FILE *f)
{
	bool count = row->unit == UNIT_COUNT;
	uint32_t i;

	fprintf(f, "\"%s\": [", count ? "count" : "us");
	for (i = 0; i < a->n; i++)
		fprintf(f, "%s%.4f", i ? ", " : "",
			a->seconds[i] * (count ? 1 : 1e6));
	fprintf(f, "]");
}

static void json_against(const struct row *row, const struct against *a,
			 FILE *f)
{
	struct spread s;

	fprintf(f, "    {");
	json_pair(f, "name", cmp_word(a->id), false);
	if (a->how[0])
		json_pair(f, "how", a->how, false);
	if (a->aim > 0)
		fprintf(f, "\"aim\": %.3f, ", a->aim);
	if (!a->n)
		json_pair(f, "missing", a->why, false);
	if (a != &row->who[0] && cmp_ratio(row, a, &s))
		fprintf(f, "\"ratio\": {\"q1\": %.4f, \"median\": %.4f, \"q3\": %.4f}, ",
			s.q1, s.median, s.q3);
	if (cmp_seconds(a, &s))
		fprintf(f, "\"median_%s\": %.4f, ",
			row->unit == UNIT_COUNT ? "count" : "us",
			s.median * (row->unit == UNIT_COUNT ? 1 : 1e6));
	json_samples(row, a, f);
	fprintf(f, "}");
}

static void json_row(const struct comparison *c, const struct row *row,
		     FILE *f)
{
	double growth, ranks;
	struct best best;
	uint32_t who;

	fprintf(f, "  {");
	json_pair(f, "section", row->section, false);
	json_pair(f, "what", row->what, false);
	fprintf(f, "\"size\": %llu, \"ranks\": %u, ",
		(unsigned long long)row->bytes, row->ranks);
	if (cmp_best(row, &best)) {
		fprintf(f, "\"best\": {");
		json_pair(f, "name", cmp_word(best.who->id), false);
		fprintf(f, "\"ratio\": %.4f, \"missed\": %s}, ",
			best.ratio.median,
			cmp_missed(row, &best) ? "true" : "false");
	}
	if (cmp_by_ranks(c) && cmp_growth(c, row, 0, &growth, &ranks))
		fprintf(f, "\"growth\": %.4f, \"more_ranks\": %.4f, \"jump\": %s, ",
			growth, ranks, cmp_jump(c, row, 0) ? "true" :
							     "false");
	fprintf(f, "\"results\": [\n");
	for (who = 0; who < row->nwho; who++) {
		json_against(row, &row->who[who], f);
		fprintf(f, "%s\n", who + 1 < row->nwho ? "," : "");
	}
	fprintf(f, "  ]}");
}

void cmp_json(const struct comparison *c, FILE *f)
{
	uint32_t i;

	fprintf(f, "{");
	json_environment(c, f);
	json_contenders(c, f);
	fprintf(f, ", \"notes\": [");
	for (i = 0; i < c->nnotes; i++) {
		fputs(i ? ", " : "", f);
		json_string(f, c->notes[i]);
	}
	fprintf(f, "], \"rows\": [\n");
	for (i = 0; i < c->nrows; i++) {
		json_row(c, &c->rows[i], f);
		fprintf(f, "%s\n", i + 1 < c->nrows ? "," : "");
	}
	fprintf(f, "]}\n");
}
