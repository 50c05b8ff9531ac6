// SPDX-License-Identifier: GPL-2.0-only
/*
 * compare ranks: what grows too fast. A collective may take as much longer as
 * there are more ranks; twice that from one number of ranks to the next says
 * that an algorithm is used beyond where it is good.
 */
#include "compare.h"

bool cmp_jump(const struct comparison *c, const struct row *row, uint32_t who)
{
	double growth, ranks;

	return cmp_growth(c, row, who, &growth, &ranks) &&
	       growth > JUMP * ranks;
}

static void print_jump(const struct comparison *c, const struct row *row,
		       FILE *f, const char *bullet)
{
	double growth, ranks;
	char size[SIZE_STR];

	if (!cmp_growth(c, row, 0, &growth, &ranks))
		return;
	size_str(row->nominal, size);
	fprintf(f, "%sjump: %s%s%s takes %.1f times as long with %u ranks as with %.0f\n",
		bullet, row->label, row->nominal ? " " : "",
		row->nominal ? size : "", growth, row->ranks,
		row->ranks / ranks);
}

void cmp_jumps_print(const struct comparison *c, FILE *f, const char *bullet)
{
	uint32_t i, steps = 0, ours = 0, theirs = 0;
	double growth;

	for (i = 0; i < c->nrows; i++) {
		steps += cmp_growth(c, &c->rows[i], 0, &growth, NULL);
		ours += cmp_jump(c, &c->rows[i], 0);
		theirs += c->rows[i].nwho > 1 && cmp_jump(c, &c->rows[i], 1);
	}
	if (!cmp_by_ranks(c) || !steps)
		return;
	fprintf(f, "%sgrows by more than %.0f times what the ranks grow in %u of %u steps, %s in %u\n",
		bullet, JUMP, ours, steps, cmp_name(C_MPI), theirs);
	for (i = 0; i < c->nrows; i++)
		if (cmp_jump(c, &c->rows[i], 0))
			print_jump(c, &c->rows[i], f, bullet);
}
