// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parts of fabrex-perf that compute: bandwidths against values computed by
 * hand, contents that have to arrive, quartiles and ratios, sizes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../coll/coll.h"
#include "../compare/compare.h"
#include "tests/tap.h"

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

/* ---- bandwidths -------------------------------------------------------- */

/* doc/PERFORMANCE.md of nccl-tests, worked out for 1, 2, 3 and 8 ranks. */
static void test_factors(void)
{
	static const struct {
		const char *name;
		double f[4];
	} expected[] = {
		{ "all_reduce", { 0, 1, 4. / 3, 1.75 } },
		{ "all_gather", { 0, 0.5, 2. / 3, 0.875 } },
		{ "reduce_scatter", { 0, 0.5, 2. / 3, 0.875 } },
		{ "all_to_all", { 0, 0.5, 2. / 3, 0.875 } },
		{ "broadcast", { 1, 1, 1, 1 } },
		{ "reduce", { 1, 1, 1, 1 } },
		{ "sendrecv", { 1, 1, 1, 1 } },
	};
	static const uint32_t ranks[] = { 1, 2, 3, 8 };
	size_t i, k;

	for (i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		const struct coll_kind *kind =
			coll_kind_find(expected[i].name);
		bool good = kind;

		for (k = 0; good && k < 4; k++)
			good = near(coll_kind_factor(kind, ranks[k]),
				    expected[i].f[k]);
		ok(good, "%s", expected[i].name);
	}
}

static void test_counts(void)
{
	const struct coll_kind *reduce = coll_kind_find("all-reduce");
	const struct coll_kind *gather = coll_kind_find("all_gather");

	ok(reduce && coll_kind_count(reduce, 4096, 4, 8) == 1024 &&
	   coll_kind_bytes(reduce, 1024, 4, 8) == 4096,
	   "the size of an all-reduce is that of a rank's buffer");
	ok(coll_kind_count(gather, 4096, 4, 8) == 128 &&
	   coll_kind_bytes(gather, 128, 4, 8) == 4096,
	   "the size of an all-gather is that of the whole result");
	ok(coll_kind_count(gather, 100, 8, 3) == 4 &&
	   coll_kind_bytes(gather, 4, 8, 3) == 96,
	   "sizes are rounded down to whole elements for each rank");
	ok(!coll_kind_find("all") && !coll_kind_find("all_reduce_") &&
	   !coll_kind_find(""), "names of collectives are whole");
}

/* ---- contents ---------------------------------------------------------- */

#define RANKS	3u
#define COUNT	6007u

/* What this rank of @kind has to get, put together from what all send. */
static void expect(const struct coll_kind *kind, uint32_t me, char *to)
{
	struct coll_data *d;
	uint32_t from;
	char *sent = malloc(RANKS * COUNT);

	for (from = 0; from < RANKS; from++) {
		d = coll_data_make(kind, FABREX_UINT8, FABREX_SUM, 1, from,
				   RANKS);
		coll_data_fill(d, sent, RANKS * COUNT);
		coll_data_free(d);
		if (kind->id == FABREX_ALL_GATHER)
			memcpy(to + from * COUNT, sent, COUNT);
		else if (kind->id == FABREX_ALL_TO_ALL)
			memcpy(to + from * COUNT, sent + me * COUNT, COUNT);
		else if ((kind->id == FABREX_BROADCAST && from == 1) ||
			 (!kind->id && from == (me + RANKS - 1) % RANKS))
			memcpy(to, sent, COUNT);
	}
	free(sent);
}

static void test_moved(const char *name)
{
	const struct coll_kind *kind = coll_kind_find(name);
	struct coll_data *d = coll_data_make(kind, FABREX_UINT8, FABREX_SUM, 1,
					     2, RANKS);
	char *got = calloc(RANKS, COUNT);
	bool good;

	expect(kind, 2, got);
	good = !coll_data_wrong(d, got, COUNT);
	got[COUNT - 1]++;
	ok(good && coll_data_wrong(d, got, COUNT) == 1, "%s", name);
	coll_data_free(d);
	free(got);
}

static double sum_of(uint32_t i, enum fabrex_redop op)
{
	const struct coll_kind *kind = coll_kind_find("all_reduce");
	double sent[COUNT], all = 0;
	struct coll_data *d;
	uint32_t r;

	for (r = 0; r < RANKS; r++) {
		d = coll_data_make(kind, FABREX_FLOAT64, op, 0, r, RANKS);
		coll_data_fill(d, sent, COUNT);
		coll_data_free(d);
		all = !r ? sent[i] : op == FABREX_PROD ? all * sent[i] :
		      op == FABREX_MIN ? fmin(all, sent[i]) :
		      op == FABREX_MAX ? fmax(all, sent[i]) : all + sent[i];
	}
	return op == FABREX_AVG ? all / RANKS : all;
}

static void test_reduced(enum fabrex_redop op)
{
	const struct coll_kind *kind = coll_kind_find("all_reduce");
	struct coll_data *d = coll_data_make(kind, FABREX_FLOAT64, op, 0, 0,
					     RANKS);
	double got;
	bool good = true;

	/* Of one element at a time, only the first can be looked at. */
	got = sum_of(0, op);
	good = !coll_data_wrong(d, &got, 1);
	got += 1;
	good &= coll_data_wrong(d, &got, 1) == 1;
	ok(good, "%s", coll_op_name(op));
	coll_data_free(d);
}

/* Numbers of the types that C does not have, by their bits. */
static void test_halves(void)
{
	static const uint16_t half[] = { 0, 0x3c00, 0x4000, 0x4200 };
	static const uint16_t brain[] = { 0, 0x3f80, 0x4000, 0x4040 };
	const struct coll_kind *kind = coll_kind_find("broadcast");
	enum fabrex_datatype type;
	uint16_t short_one[64];
	struct coll_data *d;
	bool good = true;
	double v[64];
	int i, k;

	d = coll_data_make(kind, FABREX_FLOAT64, FABREX_SUM, 0, 0, 2);
	coll_data_fill(d, v, 64);
	coll_data_free(d);
	for (k = 0; k < 2; k++) {
		type = k ? FABREX_BFLOAT16 : FABREX_FLOAT16;
		d = coll_data_make(kind, type, FABREX_SUM, 0, 0, 2);
		coll_data_fill(d, short_one, 64);
		coll_data_free(d);
		for (i = 0; i < 64; i++)
			good &= v[i] >= 0 && v[i] <= 3 && short_one[i] ==
				(k ? brain : half)[(int)v[i]];
	}
	ok(good, "fp16 and bf16 are encoded as they should");
}

/* ---- statistics -------------------------------------------------------- */

static void test_spread(void)
{
	double five[] = { 5, 1, 4, 2, 3 }, four[] = { 4, 1, 3, 2 };
	double one[] = { 7 };
	struct spread s = cmp_spread(five, 5);
	bool good = s.q1 == 2 && s.median == 3 && s.q3 == 4;

	s = cmp_spread(four, 4);
	good &= near(s.q1, 1.75) && near(s.median, 2.5) && near(s.q3, 3.25);
	s = cmp_spread(one, 1);
	good &= s.q1 == 7 && s.median == 7 && s.q3 == 7;
	ok(good, "quartiles");
}

/* The median of ratios is not the ratio of medians. */
static void test_ratio(void)
{
	double ours[] = { 1, 2, 4 }, theirs[] = { 3, 2, 8 };
	struct row row = { .nwho = 2 };
	struct spread s;

	row.who[0].seconds = ours;
	row.who[0].n = 3;
	row.who[1].seconds = theirs;
	row.who[1].n = 3;
	ok(cmp_ratio(&row, &row.who[1], &s) && s.median == 2 && s.q1 == 1.5 &&
	   s.q3 == 2.5, "ratios of each repetition");
	row.who[1].n = 0;
	ok(!cmp_ratio(&row, &row.who[1], &s), "no ratio to who is missing");
}

/* Of other software the fastest, missing ones and bounds left aside. */
static void test_best(void)
{
	double ours[] = { 2, 2, 2 }, fast[] = { 1, 3, 1 }, slow[] = { 4, 4, 4 };
	struct row row = { .nwho = 5 };
	struct against *who = row.who;
	struct best best;
	bool good;

	who[0].seconds = ours;
	who[1] = (struct against){ .id = C_MPI, .seconds = slow, .n = 3 };
	who[2] = (struct against){ .id = C_GLOO, .seconds = fast, .n = 3 };
	who[3] = (struct against){ .id = C_UCC, .seconds = fast };
	who[4] = (struct against){ .id = C_BOUND, .seconds = fast, .n = 3 };
	good = !cmp_best(&row, &best) && !cmp_missed(&row, &best);
	who[0].n = 3;
	good &= cmp_missed(&row, &best) && best.who == &who[2] &&
		best.ratio.median == 0.5;
	who[2].n = 0;
	good &= cmp_best(&row, &best) && best.who == &who[1] &&
		best.ratio.median == 2 && !cmp_missed(&row, &best);
	ok(good, "the best of the peers, and misses");
}

/* 4 ranks may take 4 times as long as 2, 12 ranks 6 times as long as 4. */
static void test_jumps(void)
{
	static const struct {
		uint32_t ranks;
		double seconds;
		bool jump;
	} steps[] = {
		{ 2, 1, false }, { 4, 4, false }, { 12, 24.5, true },
		{ 16, 25, false },
	};
	double seconds[4], growth, ranks;
	struct comparison c = { .nrows = 4 };
	struct row rows[4] = { 0 };
	bool good = true;
	uint32_t i;

	c.rows = rows;
	for (i = 0; i < 4; i++) {
		seconds[i] = steps[i].seconds;
		rows[i].what = "barrier";
		rows[i].ranks = steps[i].ranks;
		rows[i].nwho = 1;
		rows[i].who[0].seconds = &seconds[i];
		rows[i].who[0].n = 1;
	}
	for (i = 0; i < 4; i++)
		good &= cmp_jump(&c, &rows[i], 0) == steps[i].jump;
	good &= !cmp_growth(&c, &rows[0], 0, &growth, &ranks) &&
		cmp_growth(&c, &rows[2], 0, &growth, &ranks) &&
		near(growth, 6.125) && near(ranks, 3);
	ok(good, "what grows by more than twice what the ranks grow");
}

static void test_bound(void)
{
	struct bound *b = bound_open(1 << 16, 3);

	ok(b && bound_turn(b, "all_reduce", 1 << 16, 0) &&
	   bound_turn(b, "all_reduce", 1000, BOUND_STREAM | BOUND_SMALL) &&
	   bound_turn(b, "all_gather", 1 << 16, BOUND_AHEAD) &&
	   !bound_turn(b, "barrier", 8, 0),
	   "bounds of what moves memory, of nothing else");
	bound_close(b);
}

static void test_ranks(void)
{
	uint32_t ranks[3], n;

	ok(parse_ranks("2,16,7", 16, ranks, 3, &n) && n == 3 &&
	   ranks[0] == 2 && ranks[1] == 16 && ranks[2] == 7 &&
	   parse_ranks("5", 16, ranks, 3, &n) && n == 1 &&
	   !parse_ranks("1", 16, ranks, 3, &n) &&
	   !parse_ranks("17", 16, ranks, 3, &n) &&
	   !parse_ranks("2,3,4,5", 16, ranks, 3, &n) &&
	   !parse_ranks("", 16, ranks, 3, &n) &&
	   !parse_ranks("2,,3", 16, ranks, 3, &n), "numbers of ranks");
}

static void test_sizes(void)
{
	uint64_t from, to, factor;

	ok(parse_sizes("8:64M:4", &from, &to, &factor) && from == 8 &&
	   to == 64 << 20 && factor == 4 &&
	   parse_sizes("1G", &from, &to, &factor) && from == to &&
	   !parse_sizes("0", &from, &to, &factor) &&
	   !parse_sizes("8:4", &from, &to, &factor) &&
	   !parse_sizes("8:16:1", &from, &to, &factor) &&
	   !parse_sizes("8x", &from, &to, &factor) &&
	   !parse_sizes("-8", &from, &to, &factor), "sizes");
}

int main(void)
{
	enum fabrex_redop op;

	test_factors();
	test_counts();
	test_moved("all_gather");
	test_moved("all_to_all");
	test_moved("broadcast");
	test_moved("sendrecv");
	for (op = FABREX_SUM; op <= FABREX_AVG; op++)
		test_reduced(op);
	test_halves();
	test_spread();
	test_ratio();
	test_best();
	test_jumps();
	test_bound();
	test_sizes();
	test_ranks();
	return tap_done();
}
