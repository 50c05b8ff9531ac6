// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is measured by default, who takes part in it, and the ratios that the
 * project aims at: for two ranks, and for more than there are processors.
 */
#include <stdlib.h>
#include <string.h>

#include "compare.h"

#define K	1024u
#define M	(1024u * 1024u)

struct rival {
	enum contender_id id;
	double two, more;	/* aims; 0: none */
};

struct line {
	const char *section, *label, *what;
	enum unit unit;
	bool pair;		/* of two ranks only */
	bool extra;		/* only if asked for by name */
	uint64_t sizes[12];
	struct rival rivals[MAX_PEERS];
};

/* Collectives of others, first those that are aimed at. */
#define MPIS(two, more)							\
	{ C_MPI, two, more }, { C_MPICH, two, more }
#define GROUPS(two, more)						\
	MPIS(two, more), { C_UCC, two, more }, { C_GLOO, two, more }

static const struct line lines[] = {
	{ "latency", "one-sided write", "write_lat", UNIT_TIME, true, false,
	  { 8 }, { { C_UCX, 1, 0 } } },
	{ "latency", "send/recv", "send_lat", UNIT_TIME, true, false, { 8 },
	  { MPIS(1, 0), { C_UCX, 1, 0 }, { C_LINE, 1, 0 },
	    { C_LIBFABRIC, 0, 0 }, { C_TCP, 0, 0 } } },
	{ "bandwidth", "one-sided write", "write_bw", UNIT_RATE, true, false,
	  { 4 * M }, { { C_UCX, 1.3, 0 }, { C_MEMCPY, 0.9, 0 },
		       { C_LIBFABRIC, 0, 0 }, { C_TCP, 0, 0 } } },
	{ "collectives", "barrier", "barrier", UNIT_TIME, false, false,
	  { 0 }, { GROUPS(1, 1) } },
	{ "collectives", "all-reduce", "all_reduce", UNIT_TIME, false, false,
	  { 8, 64, 512, 4 * K, 32 * K, 256 * K }, { GROUPS(1, 1) } },
	{ "collectives", "all-reduce", "all_reduce", UNIT_TIME, false, false,
	  { M, 4 * M, 16 * M, 64 * M },
	  { { C_MPI, 3, 1 }, { C_MPICH, 1, 1 }, { C_UCC, 1, 1 },
	    { C_GLOO, 1, 1 }, { C_BOUND, 0.8, 0 } } },
	{ "collectives", "all-gather", "all_gather", UNIT_TIME, false, false,
	  { 64, 32 * K }, { GROUPS(0, 0) } },
	{ "collectives", "all-gather", "all_gather", UNIT_TIME, false, false,
	  { M, 16 * M, 64 * M },
	  { { C_MPI, 2, 1 }, { C_MPICH, 0, 0 }, { C_UCC, 0, 0 },
	    { C_GLOO, 0, 0 }, { C_BOUND, 0, 0 } } },
	{ "collectives", "reduce-scatter", "reduce_scatter", UNIT_TIME, false,
	  false, { 64, 32 * K }, { GROUPS(0, 0) } },
	{ "collectives", "reduce-scatter", "reduce_scatter", UNIT_TIME, false,
	  false, { M, 16 * M, 64 * M },
	  { { C_MPI, 2, 1 }, { C_MPICH, 0, 0 }, { C_UCC, 0, 0 },
	    { C_GLOO, 0, 0 }, { C_BOUND, 0, 0 } } },
	{ "collectives", "broadcast", "broadcast", UNIT_TIME, false, false,
	  { 8, 32 * K, M, 16 * M }, { GROUPS(0, 0) } },
	{ "collectives", "reduce", "reduce", UNIT_TIME, false, false,
	  { 8, 32 * K, M, 16 * M }, { GROUPS(0, 0) } },
	{ "collectives", "all-to-all", "all_to_all", UNIT_TIME, false, false,
	  { 64, 32 * K, M, 16 * M }, { GROUPS(0, 0) } },
	{ "collectives", "send and receive in a ring", "sendrecv", UNIT_TIME,
	  false, true, { 8, M, 16 * M }, { MPIS(0, 0) } },
	{ "ranks", "barrier", "barrier", UNIT_TIME, false, false,
	  { 0 }, { { C_MPI, 1.5, 1.5 } } },
	{ "ranks", "all-reduce", "all_reduce", UNIT_TIME, false, false,
	  { 8, 8 * K, 64 * K, M }, { { C_MPI, 1.5, 1.5 } } },
	{ "ranks", "all-gather", "all_gather", UNIT_TIME, false, false,
	  { 8, 8 * K, 64 * K, M }, { { C_MPI, 1.5, 1.5 } } },
};
#define NLINES	(sizeof(lines) / sizeof(*lines))

/* Is @word in the comma separated @list? */
static bool listed(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (; list && *list; list += strcspn(list, ","), list += *list == ',')
		if (!strncmp(list, word, n) && (!list[n] || list[n] == ','))
			return true;
	return false;
}

static bool wanted(const struct compare_options *o, const struct line *l)
{
	if (strcmp(o->what, l->section) &&
	    (strcmp(o->what, "all") || !strcmp(l->section, "ranks")))
		return false;
	return o->only ? listed(o->only, l->what) : !l->extra;
}

static bool wanted_peer(const struct comparison *c, enum contender_id id)
{
	return !c->o.peers || listed(c->o.peers, cmp_contender(id)->word);
}

static int oom(void)
{
	fprintf(stderr, "fabrex-perf: out of memory\n");
	return EXIT_SETUP;
}

int cmp_who_add(struct comparison *c, struct row *row, enum contender_id id,
		double aim)
{
	struct against *a = &row->who[row->nwho++];

	a->id = id;
	a->aim = aim;
	a->seconds = calloc(c->o.repetitions, sizeof(double));
	return a->seconds ? 0 : oom();
}

struct row *cmp_row_add(struct comparison *c)
{
	if (c->nrows < MAX_ROWS)
		return &c->rows[c->nrows++];
	fprintf(stderr, "fabrex-perf: compare: more than %u rows; use a larger factor in --sizes\n",
		MAX_ROWS);
	return NULL;
}

/* What collectives divide has whole elements for each rank. */
static uint64_t round_size(const struct line *l, uint64_t bytes,
			   uint32_t ranks)
{
	uint64_t unit = sizeof(float) * ranks;

	if (!bytes || l->pair)
		return bytes;
	return bytes < unit ? unit : bytes / unit * unit;
}

static int add_row(struct comparison *c, const struct line *l, uint64_t bytes,
		   uint32_t ranks)
{
	struct row *row = cmp_row_add(c);
	const struct rival *r;
	int ret;

	if (!row)
		return EXIT_USAGE;
	row->section = l->section;
	snprintf(row->label, sizeof(row->label), "%s", l->label);
	row->what = l->what;
	row->unit = l->unit;
	row->nominal = bytes;
	row->bytes = c->o.size_from || !strcmp(l->what, "all_gather") ?
		     round_size(l, bytes, ranks) : bytes;
	row->ranks = ranks;
	ret = cmp_who_add(c, row, C_OURS, 0);
	for (r = l->rivals; !ret && r->id != C_OURS; r++)
		if (wanted_peer(c, r->id))
			ret = cmp_who_add(c, row, r->id, c->o.size_from ? 0 :
					  ranks == 2 ? r->two : r->more);
	return ret;
}

/* A line with several default sizes stands for a kind when sizes are given. */
static bool stands_for(const struct line *l)
{
	const struct line *other;

	for (other = lines; other < l; other++)
		if (!strcmp(other->what, l->what) &&
		    !strcmp(other->section, l->section))
			return false;
	return true;
}

static int add_sizes(struct comparison *c, const struct line *l,
		     uint32_t ranks)
{
	const struct compare_options *o = &c->o;
	uint64_t bytes;
	unsigned int i;
	int ret = 0;

	if (!o->size_from || !strcmp(l->what, "barrier")) {
		for (i = 0; !ret && (!i || l->sizes[i]); i++)
			ret = add_row(c, l, l->sizes[i], ranks);
		return ret;
	}
	if (!stands_for(l))
		return 0;
	for (bytes = o->size_from; !ret && bytes <= o->size_to;
	     bytes *= o->size_factor)
		ret = add_row(c, l, bytes, ranks);
	return ret;
}

static bool known(const char *word, size_t n)
{
	size_t i;

	for (i = 0; i < NLINES; i++)
		if (strlen(lines[i].what) == n &&
		    !strncmp(lines[i].what, word, n))
			return true;
	return false;
}

static int check_only(const char *list)
{
	size_t n;

	for (; list && *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (known(list, n))
			continue;
		fprintf(stderr, "fabrex-perf: compare --only: nothing is called \"%.*s\"; there are write_lat, send_lat, write_bw and the collectives\n",
			(int)n, list);
		return EXIT_USAGE;
	}
	return 0;
}

static int check_peers(const char *list)
{
	char word[32];
	size_t n;

	for (; list && *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		snprintf(word, sizeof(word), "%.*s", (int)n, list);
		if (cmp_find(word))
			continue;
		fprintf(stderr, "fabrex-perf: compare --peers: no peer \"%s\"; there are openmpi, mpich, ucc, gloo, ucx, libfabric, tcp, memcpy, line and bound\n",
			word);
		return EXIT_USAGE;
	}
	return 0;
}

/* Numbers of ranks one below the other. */
static int by_what(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->what, y->what);

	if (!order)
		order = (x->nominal > y->nominal) - (x->nominal < y->nominal);
	return order ? order : (x->ranks > y->ranks) - (x->ranks < y->ranks);
}

int cmp_plan(struct comparison *c)
{
	int ret = check_only(c->o.only);
	uint32_t i, r;

	if (!ret)
		ret = check_peers(c->o.peers);
	c->rows = calloc(MAX_ROWS, sizeof(*c->rows));
	if (!c->rows)
		return oom();
	for (r = 0; r < c->o.nranks && !ret; r++)
		for (i = 0; i < NLINES && !ret; i++)
			if (wanted(&c->o, &lines[i]) &&
			    (!lines[i].pair || c->o.ranks[r] == 2))
				ret = add_sizes(c, &lines[i], c->o.ranks[r]);
	if (!strcmp(c->o.what, "ranks"))
		qsort(c->rows, c->nrows, sizeof(*c->rows), by_what);
	if (!ret && c->o.counts)
		ret = cmp_counts(c);
	if (!ret && !c->nrows) {
		fprintf(stderr, "fabrex-perf: compare: nothing to measure; latency and bandwidth are measured with --ranks 2\n");
		ret = EXIT_USAGE;
	}
	return ret;
}

void cmp_plan_free(struct comparison *c)
{
	uint32_t i, k;

	for (i = 0; i < c->nrows; i++)
		for (k = 0; k < c->rows[i].nwho; k++)
			free(c->rows[i].who[k].seconds);
	free(c->rows);
}
