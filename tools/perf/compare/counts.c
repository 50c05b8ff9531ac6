// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows that were counted by others, such as instructions by callgrind: each a
 * line "NAME: COUNT LIMIT" of a file.
 */
#include <errno.h>
#include <string.h>

#include "compare.h"

static int add(struct comparison *c, const char *name, double count,
	       double limit)
{
	struct row *row = cmp_row_add(c);
	int ret;

	if (!row)
		return EXIT_USAGE;
	row->section = "counts";
	snprintf(row->label, sizeof(row->label), "%.60s", name);
	row->what = "count";
	row->unit = UNIT_COUNT;
	ret = cmp_who_add(c, row, C_OURS, 0);
	if (!ret)
		ret = cmp_who_add(c, row, C_LIMIT, 1);
	if (ret)
		return ret;
	row->who[0].seconds[row->who[0].n++] = count;
	row->who[1].seconds[row->who[1].n++] = limit;
	return 0;
}

static int take_line(struct comparison *c, char *line)
{
	char *colon = strrchr(line, ':');
	double count, limit;

	if (colon && sscanf(colon + 1, "%lf %lf", &count, &limit) == 2 &&
	    count > 0 && limit > 0) {
		*colon = 0;
		return add(c, line, count, limit);
	}
	line[strcspn(line, "\n")] = 0;
	fprintf(stderr, "fabrex-perf: --counts: \"%s\" is not \"NAME: COUNT LIMIT\"\n",
		line);
	return EXIT_USAGE;
}

int cmp_counts(struct comparison *c)
{
	FILE *f = fopen(c->o.counts, "r");
	char line[200];
	int ret = 0;

	if (!f) {
		fprintf(stderr, "fabrex-perf: cannot read %s: %s\n",
			c->o.counts, strerror(errno));
		return EXIT_USAGE;
	}
	while (!ret && fgets(line, sizeof(line), f))
		ret = take_line(c, line);
	fclose(f);
	return ret;
}
