// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Schedules: those that the library makes, that read from files, what is
 * refused and with which words, and random mutations against an interpreter.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <fabrex/coll.h>

#include "base/clock.h"
#include "schedule/schedule.h"
#include "interpret.h"
#include "mutate.h"
#include "test.h"

static const char *const algorithms[] = {
	"ring", "tree", "halving", "doubling", "direct", "chain", "ring*2",
	"ring*3", "tree*3", "halving*2", "chain*4", "direct*2",
};

#define ALGORITHMS	(sizeof(algorithms) / sizeof(algorithms[0]))

static char *text_of(const struct fabrex_schedule *s)
{
	int n = fabrex_schedule_format(s, NULL, 0);
	char *text = malloc((size_t)n + 1);

	CHECK(n > 0 && text);
	CHECK_EQ(fabrex_schedule_format(s, text, (size_t)n + 1), n);
	CHECK_EQ(strlen(text), n);
	return text;
}

static struct fabrex_schedule *parsed(const char *text, size_t n)
{
	struct fabrex_schedule *s;

	CHECK_EQ(fabrex_schedule_parse(text, n, "t", &s), 0);
	return s;
}

/* What was read back is what was written. */
static void check_same(const struct fabrex_schedule *a,
		       const struct fabrex_schedule *b)
{
	uint32_t i;

	CHECK(a->kind == b->kind && a->ranks == b->ranks && a->root == b->root);
	CHECK_EQ(a->nchunks, b->nchunks);
	CHECK_EQ(a->ntransfers, b->ntransfers);
	CHECK(a->depth == b->depth && a->busiest == b->busiest);
	for (i = 0; i < a->ntransfers; i++) {
		const struct transfer *x = &a->transfers[i];
		const struct transfer *y = &b->transfers[i];

		CHECK(x->chunk == y->chunk && x->from == y->from &&
		      x->to == y->to && x->level == y->level &&
		      x->flags == y->flags);
	}
}

static void check_made(enum fabrex_coll_kind kind, const char *algorithm,
		       uint32_t ranks, uint32_t root)
{
	struct fabrex_schedule *s, *again;
	char *text;

	CHECK_EQ(fabrex_schedule_make(kind, algorithm, ranks, root, &s), 0);
	CHECK_EQ(fabrex_schedule_kind(s), kind);
	CHECK_EQ(fabrex_schedule_ranks(s), ranks);
	text = text_of(s);
	CHECK(interpret(text));
	again = parsed(text, strlen(text));
	check_same(s, again);
	fabrex_schedule_free(again);
	fabrex_schedule_free(s);
	free(text);
}

static bool possible(enum fabrex_coll_kind kind, const char *algorithm)
{
	return kind != FABREX_ALL_TO_ALL || strncmp(algorithm, "tree", 4);
}

TEST(schedule_all_made_ones_are_right)
{
	uint32_t ranks, kind, root, i;

	for (kind = FABREX_ALL_REDUCE; kind <= FABREX_ALL_TO_ALL; kind++) {
		bool rooted = kind == FABREX_BROADCAST || kind == FABREX_REDUCE;

		for (i = 0; i < ALGORITHMS; i++) {
			if (!possible(kind, algorithms[i]))
				continue;
			for (ranks = 1; ranks <= 16; ranks++)
				for (root = 0; root < (rooted ? ranks : 1);
				     root++)
					check_made(kind, algorithms[i], ranks,
						   root);
		}
	}
}

/* Made, written, read, proved: seconds of this thread's processor time. */
static double work_of_ranks(uint32_t ranks)
{
	static const char *const large[] = { "ring", "halving", "tree" };
	struct fabrex_schedule *s, *again;
	clock_t begun = clock();
	double used;
	char *text;
	size_t i;

	for (i = 0; i < 3; i++) {
		CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, large[i],
					      ranks, 0, &s), 0);
		text = text_of(s);
		again = parsed(text, strlen(text));
		check_same(s, again);
		printf("# %s of %u ranks: %u transfers, %zu bytes\n",
		       large[i], ranks, s->ntransfers, strlen(text));
		fabrex_schedule_free(again);
		fabrex_schedule_free(s);
		free(text);
	}
	used = (double)(clock() - begun) / CLOCKS_PER_SEC;
	printf("# all three in %.2f s\n", used);
	return used;
}

/* 2 million transfers; a quarter of the ranks has a sixteenth of them. */
TEST(schedule_of_1024_ranks_is_work_by_transfers)
{
	double quarter = work_of_ranks(256);

	CHECK(work_of_ranks(1024) < 16 * 5 * quarter);
}

TEST(schedule_made_depths)
{
	static const struct {
		uint32_t kind;
		const char *algorithm;
		uint32_t ranks, depth;
	} known[] = {
		{ FABREX_ALL_REDUCE, "ring", 8, 14 },
		{ FABREX_ALL_REDUCE, "halving", 8, 6 },
		{ FABREX_ALL_REDUCE, "halving", 11, 7 },
		{ FABREX_ALL_REDUCE, "doubling", 8, 3 },
		{ FABREX_ALL_GATHER, "ring", 8, 7 },
		{ FABREX_ALL_GATHER, "halving", 8, 3 },
		{ FABREX_ALL_GATHER, "direct", 8, 1 },
		{ FABREX_BROADCAST, "chain", 8, 7 },
		{ FABREX_BROADCAST, "halving", 8, 3 },
		{ FABREX_BROADCAST, "tree", 8, 3 },
	};
	struct fabrex_schedule *s;
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		CHECK_EQ(fabrex_schedule_make(known[i].kind,
					      known[i].algorithm,
					      known[i].ranks, 0, &s), 0);
		CHECK_EQ(s->depth, known[i].depth);
		fabrex_schedule_free(s);
	}
}

TEST(schedule_make_refuses)
{
	struct fabrex_schedule *s;

	CHECK_EQ(fabrex_schedule_make(FABREX_BARRIER, "ring", 4, 0, &s),
		 -EINVAL);
	CHECK_SAYS("no schedules");
	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, "rings", 4, 0, &s),
		 -EINVAL);
	CHECK_SAYS("no algorithm \"rings\"");
	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, "ring*65", 4, 0, &s),
		 -EINVAL);
	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, "ring*", 4, 0, &s),
		 -EINVAL);
	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, "ring*0", 4, 0, &s),
		 -EINVAL);
	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, "ring", 0, 0, &s),
		 -EINVAL);
	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_REDUCE, "ring", 5000, 0, &s),
		 -EINVAL);
	CHECK_EQ(fabrex_schedule_make(FABREX_BROADCAST, "ring", 4, 4, &s),
		 -EINVAL);
	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_TO_ALL, "tree", 4, 0, &s),
		 -EOPNOTSUPP);
	CHECK_EQ(fabrex_schedule_make(FABREX_ALL_TO_ALL, "ring", 1024, 0, &s),
		 -E2BIG);
}

/* ---- files ------------------------------------------------------------- */

/* The file's first line is "# says: " and what the sentence contains. */
static void check_refused(const char *path)
{
	struct fabrex_schedule *s;
	char line[256];
	FILE *file = fopen(path, "r");

	CHECK(file && fgets(line, sizeof(line), file));
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	CHECK(!strncmp(line, "# says: ", 8));
	CHECK_EQ(fabrex_schedule_read(path, &s), -EINVAL);
	CHECK_SAYS(path);
	CHECK_SAYS(line + 8);
}

static void check_accepted(const char *path)
{
	static char text[1 << 20];
	struct fabrex_schedule *s, *again;
	FILE *file = fopen(path, "r");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	char *canonical;

	CHECK(n);
	fclose(file);
	CHECK_EQ(fabrex_schedule_read(path, &s), 0);
	canonical = text_of(s);
	CHECK(interpret(canonical));
	again = parsed(canonical, strlen(canonical));
	check_same(s, again);
	fabrex_schedule_free(again);
	fabrex_schedule_free(s);
	free(canonical);
}

static int for_each(const char *directory, void (*check)(const char *path))
{
	DIR *dir = opendir(directory);
	const struct dirent *entry;
	char path[512];
	int n = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		if (!strstr(entry->d_name, ".sched"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory,
			 entry->d_name);
		check(path);
		n++;
	}
	closedir(dir);
	return n;
}

TEST(schedule_wrong_files_are_refused_with_the_reason)
{
	CHECK(for_each("lib/tests/data/schedules", check_refused) >= 20);
}

TEST(schedule_examples_are_right)
{
	CHECK(for_each("topologies/schedules", check_accepted) >= 5);
}

TEST(schedule_read_refuses)
{
	struct fabrex_schedule *s;

	CHECK_EQ(fabrex_schedule_read("/nonexistent.sched", &s), -ENOENT);
	CHECK_SAYS("/nonexistent.sched");
	CHECK_EQ(fabrex_schedule_read("lib/tests", &s), -EINVAL);
	CHECK_EQ(fabrex_schedule_read("/dev/null", &s), -EINVAL);
}

/* ---- parts of the buffer ----------------------------------------------- */

/* Chunks of a shard follow one another without a gap, whatever the count. */
TEST(schedule_chunks_tile_the_shard)
{
	static const char text[] =
		"fabrex-schedule 1\ncollective all-gather\nranks 2\n"
		"shard 0 1 2x3 4294967295 7\nshard 1 5\n"
		"copy 0-5 0>1\ncopy 6 1>0\n";
	struct fabrex_schedule *s = parsed(text, strlen(text));
	static const uint64_t counts[] = {
		0, 1, 2, 3, 7, 64, 1000, 4097, 1 << 20, (1ull << 33) + 5,
	};
	uint64_t start, end, at;
	uint32_t size, chunk;
	size_t i;

	CHECK_EQ(s->nchunks, 7);
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (size = 1; size <= 8; size *= 2) {
			at = 0;
			for (chunk = 0; chunk < 6; chunk++) {
				fxi_schedule_range(s, chunk, counts[i], size,
						   &start, &end);
				CHECK_EQ(start, at);
				CHECK(end >= start);
				at = end;
			}
			CHECK_EQ(at, counts[i]);
			fxi_schedule_range(s, 6, counts[i], size, &start, &end);
			CHECK(!start && end == counts[i]);
		}
	}
	fabrex_schedule_free(s);
}

/* ---- mutations --------------------------------------------------------- */

static bool accepted(const char *text)
{
	struct fabrex_schedule *s;
	char *canonical;
	bool ok = !fabrex_schedule_parse(text, strlen(text), "m", &s);

	if (!ok) {
		CHECK_SAYS("m:");
		return false;
	}
	canonical = text_of(s);
	if (!interpret(canonical) || !interpret(text)) {
		printf("# accepted, but wrong:\n%s\n", text);
		CHECK(false);
	}
	free(canonical);
	fabrex_schedule_free(s);
	return true;
}

/* A few mutations of one of the schedules; was that still accepted? */
static bool mutant(uint32_t ranks, uint32_t kind, const char *algorithm)
{
	static char text[MUTATE_ROOM];
	struct fabrex_schedule *s;
	uint32_t n = 1 + mutate_draw(3);

	CHECK_EQ(fabrex_schedule_make(kind, algorithm, ranks, 0, &s), 0);
	CHECK(fabrex_schedule_format(s, text, MUTATE_ROOM) <
	      (int)MUTATE_ROOM);
	fabrex_schedule_free(s);
	while (n--)
		mutate(text, ranks);
	return accepted(text);
}

TEST(schedule_mutations_are_right_or_refused)
{
	uint32_t good = 0, bad = 0;
	uint64_t begun = fxi_now_ns();

	mutate_seed(mutate_time());
	while (fxi_now_ns() - begun < 4000000000u) {
		uint32_t kind = 1 + mutate_draw(6);
		const char *algorithm = algorithms[mutate_draw(ALGORITHMS)];

		if (!possible(kind, algorithm))
			continue;
		if (mutant(2 + mutate_draw(5), kind, algorithm))
			good++;
		else
			bad++;
	}
	printf("# %u mutants accepted and right, %u refused\n", good, bad);
	CHECK(good > 20 && bad > 100);
}
