// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The file of rules: what is a rule and what is refused with which words, which
 * rule is found, files of anything, and large ones.
 */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>

#include "../table.h"
#include "../tuner_abi.h"
#include "mutate.h"
#include "scratch.h"

#define ANY	TUNER_ANY
#define MAX	UINT64_MAX

/* ---- what was complained about -------------------------------------------- */

static char said[1 << 16];
static unsigned int complaints;

static void complain(void *arg, const char *sentence)
{
	CHECK_EQ((uintptr_t)arg, (uintptr_t)said);
	CHECK(!strpbrk(sentence, "\n\r\t\033"));
	complaints++;
	CHECK(strlen(said) + strlen(sentence) + 2 < sizeof(said));
	strcat(strcat(said, sentence), "\n");
}

static struct tuner_table *table_of(const void *bytes, size_t n)
{
	struct tuner_table *table;

	said[0] = 0;
	complaints = 0;
	table = table_read(scratch_write(bytes, n), complain, said);
	CHECK(table);
	return table;
}

static struct tuner_table *text_table(const char *text)
{
	return table_of(text, strlen(text));
}

/* All of it are rules. */
static struct tuner_table *good_table(const char *text, size_t n)
{
	struct tuner_table *table = text_table(text);

	test_note("%.200s", said);
	CHECK_EQ(complaints, 0);
	CHECK_EQ(table_count(table), n);
	return table;
}

static const struct tuner_rule *find(const struct tuner_table *table,
				     int collective, uint64_t bytes, int nodes,
				     int ranks, int pipe_ops, int registered)
{
	const struct tuner_call call = {
		.bytes = bytes, .collective = collective, .nodes = nodes,
		.ranks = ranks, .pipe_ops = pipe_ops, .registered = registered,
	};

	return table_find(table, &call);
}

/* The channels of what is found, which tell the rules of a test apart. */
static int found(const struct tuner_table *table, int collective, uint64_t bytes,
		 int nodes, int ranks)
{
	const struct tuner_rule *rule = find(table, collective, bytes, nodes,
					     ranks, 1, 0);

	return rule ? rule->channels : 0;
}

/* The second line is no rule, which is said with @why; those around it are. */
static void refused(const char *line, const char *why)
{
	char text[4096], begin[160];
	struct tuner_table *table;

	snprintf(text, sizeof(text), "broadcast,0,9,ring,ll,1,-1,-1\n%s\n"
				     "broadcast,10,19,ring,ll,2,-1,-1\n", line);
	table = text_table(text);
	test_note("\"%.60s\": %.150s", line, said);
	CHECK_EQ(complaints, 1);
	snprintf(begin, sizeof(begin), "%s:2: ", scratch_path);
	CHECK(!strncmp(said, begin, strlen(begin)));
	CHECK(strstr(said, why));
	CHECK(strstr(said, "; the line is passed over\n"));
	CHECK_EQ(table_count(table), 2);
	CHECK_EQ(found(table, NCCL_BROADCAST, 5, 1, 1), 1);
	CHECK_EQ(found(table, NCCL_BROADCAST, 15, 1, 1), 2);
	table_free(table);
}

/* ---- rules ---------------------------------------------------------------- */

TEST(rule_is_read)
{
	struct tuner_table *table = good_table(
		"allreduce,1024,4096,nvls_tree,ll128,12,4,32,3,1\n", 1);
	const struct tuner_rule *rule;

	rule = find(table, NCCL_ALL_REDUCE, 2000, 4, 32, 3, 1);
	CHECK(rule);
	CHECK_EQ(rule->min_bytes, 1024);
	CHECK_EQ(rule->max_bytes, 4096);
	CHECK_EQ(rule->collective, NCCL_ALL_REDUCE);
	CHECK_EQ(rule->algorithm, NCCL_NVLS_TREE);
	CHECK_EQ(rule->protocol, NCCL_LL128);
	CHECK_EQ(rule->channels, 12);
	CHECK_EQ(rule->nodes, 4);
	CHECK_EQ(rule->ranks, 32);
	CHECK_EQ(rule->pipe_ops, 3);
	CHECK_EQ(rule->registered, 1);
	CHECK(!find(table, NCCL_REDUCE, 2000, 4, 32, 3, 1));
	CHECK(!find(table, NCCL_ALL_REDUCE, 2000, 3, 32, 3, 1));
	CHECK(!find(table, NCCL_ALL_REDUCE, 2000, 4, 31, 3, 1));
	CHECK(!find(table, NCCL_ALL_REDUCE, 2000, 4, 32, 2, 1));
	CHECK(!find(table, NCCL_ALL_REDUCE, 2000, 4, 32, 3, 0));
	CHECK(find(table, NCCL_ALL_REDUCE, 2000, 4, 32, 3, 7));
	table_free(table);
}

TEST(all_names)
{
	static const char *const collectives[] = {
		"broadcast", "reduce", "allgather", "reducescatter", "allreduce",
	};
	static const char *const algorithms[] = {
		"tree", "ring", "collnet_direct", "collnet_chain", "nvls",
		"nvls_tree", "pat",
	};
	static const char *const protocols[] = { "ll", "ll128", "simple" };
	int c, a, p;

	for (c = 0; c < 5; c++)
		for (a = 0; a < 7; a++)
			for (p = 0; p < 3; p++) {
				struct tuner_table *table;
				const struct tuner_rule *rule;
				char text[128];

				snprintf(text, sizeof(text),
					 "%s,0,1,%s,%s,-1,-1,-1\n",
					 collectives[c], algorithms[a],
					 protocols[p]);
				table = good_table(text, 1);
				rule = find(table, c, 1, 1, 2, 1, 0);
				CHECK(rule);
				CHECK_EQ(rule->algorithm, a);
				CHECK_EQ(rule->protocol, p);
				CHECK_EQ(rule->channels, ANY);
				table_free(table);
			}
}

TEST(sizes_at_both_ends)
{
	struct tuner_table *table = good_table(
		"reduce,100,200,ring,ll,1,-1,-1\n"
		"reduce,201,201,ring,ll,2,-1,-1\n"
		"reduce,300,18446744073709551615,ring,ll,3,-1,-1\n"
		"reduce,0,0,ring,ll,4,-1,-1\n", 4);

	CHECK_EQ(found(table, NCCL_REDUCE, 0, 1, 1), 4);
	CHECK_EQ(found(table, NCCL_REDUCE, 1, 1, 1), 0);
	CHECK_EQ(found(table, NCCL_REDUCE, 99, 1, 1), 0);
	CHECK_EQ(found(table, NCCL_REDUCE, 100, 1, 1), 1);
	CHECK_EQ(found(table, NCCL_REDUCE, 200, 1, 1), 1);
	CHECK_EQ(found(table, NCCL_REDUCE, 201, 1, 1), 2);
	CHECK_EQ(found(table, NCCL_REDUCE, 202, 1, 1), 0);
	CHECK_EQ(found(table, NCCL_REDUCE, 300, 1, 1), 3);
	CHECK_EQ(found(table, NCCL_REDUCE, MAX, 1, 1), 3);
	table_free(table);
}

/* Comments, blank lines, spaces, ends of lines as others write them. */
TEST(what_says_nothing)
{
	struct tuner_table *table = good_table(
		"# a comment, with, commas\n"
		"   # and one further in\n"
		"\n  \t \n,,,,,,,,,\n\r\n"
		"\t allgather , 0,\t10 ,ring ,  ll, 1,-1 , -1 \r\n"
		"allgather,11,20,ring,ll,2,-1,-1,\n"
		"allgather,21,30,ring,ll,3,-1,-1,,\n"
		"allgather,31,40,ring,ll,4,-1,-1,-1,-1\n"
		"allgather,41,50,ring,ll,5,-1,-1", 5);
	uint64_t i;

	for (i = 1; i <= 5; i++)
		CHECK_EQ(found(table, NCCL_ALL_GATHER, 10 * i, 7, 9), (int)i);
	table_free(table);
	table = good_table("", 0);
	CHECK_EQ(found(table, NCCL_ALL_GATHER, 0, 1, 1), 0);
	table_free(table);
	table_free(NULL);
}

/* The most specific one, wherever it stands. */
TEST(exact_before_any)
{
	static const char lines[] =
		"allreduce,0,99,ring,ll,1,-1,-1\n"
		"allreduce,0,99,ring,ll,2,2,-1\n"
		"allreduce,0,99,ring,ll,3,-1,16\n"
		"allreduce,0,99,ring,ll,4,2,16\n"
		"allreduce,0,99,ring,ll,5,2,16,4\n"
		"allreduce,0,99,ring,ll,6,2,16,-1,1\n"
		"allreduce,0,99,ring,ll,7,2,16,4,1\n";
	struct tuner_table *table = good_table(lines, 7);

	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 9, 3, 24), 1);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 9, 2, 24), 2);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 9, 3, 16), 3);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 9, 2, 16), 4);
	CHECK_EQ(find(table, NCCL_ALL_REDUCE, 9, 2, 16, 4, 0)->channels, 5);
	CHECK_EQ(find(table, NCCL_ALL_REDUCE, 9, 2, 16, 3, 1)->channels, 6);
	CHECK_EQ(find(table, NCCL_ALL_REDUCE, 9, 2, 16, 4, 1)->channels, 7);
	table_free(table);
	/* A size that the specific one lacks is looked for in the others. */
	table = good_table("allreduce,10,19,ring,ll,1,2,16\n"
			   "allreduce,0,29,ring,ll,2,-1,16\n"
			   "allreduce,0,39,ring,ll,3,-1,-1\n", 3);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 15, 2, 16), 1);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 5, 2, 16), 2);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 25, 2, 16), 2);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 35, 2, 16), 3);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 40, 2, 16), 0);
	table_free(table);
}

TEST(collectives_without_choice)
{
	struct tuner_table *table = good_table(
		"allreduce,0,99,ring,ll,1,-1,-1\n", 1);
	int c;

	for (c = -3; c < 20; c++)
		CHECK_EQ(found(table, c, 9, 2, 16), c == NCCL_ALL_REDUCE);
	CHECK_EQ(found(table, INT32_MAX, 9, 2, 16), 0);
	CHECK_EQ(found(table, INT32_MIN, 9, 2, 16), 0);
	table_free(table);
}

TEST(only_one_communicator)
{
	struct tuner_table *table = good_table(
		"allreduce,0,9,ring,ll,1,2,16\n"
		"allreduce,10,19,ring,ll,2,-1,16\n"
		"allreduce,20,29,ring,ll,3,2,-1\n"
		"allreduce,30,39,ring,ll,4,-1,-1\n"
		"allreduce,0,99,ring,ll,5,3,16\n"
		"allreduce,0,99,ring,ll,6,2,24\n"
		"allreduce,0,99,ring,ll,7,3,-1\n"
		"reduce,0,99,ring,ll,8,3,24\n", 8);

	table = table_keep(table, 2, 16);
	CHECK_EQ(table_count(table), 4);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 5, 2, 16), 1);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 15, 2, 16), 2);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 25, 2, 16), 3);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 35, 2, 16), 4);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 45, 2, 16), 0);
	CHECK_EQ(found(table, NCCL_REDUCE, 45, 2, 16), 0);
	table = table_keep(table, 5, 5);
	CHECK_EQ(table_count(table), 1);
	CHECK_EQ(found(table, NCCL_ALL_REDUCE, 35, 5, 5), 4);
	table_free(table);
	table = table_keep(good_table("reduce,0,99,ring,ll,8,3,24\n", 1), 1, 1);
	CHECK_EQ(table_count(table), 0);
	CHECK_EQ(found(table, NCCL_REDUCE, 45, 3, 24), 0);
	table_free(table);
}

/* ---- refusals -------------------------------------------------------------- */

TEST(unknown_names)
{
	refused("alltoall,0,1,ring,ll,-1,-1,-1",
		"collective_type is \"alltoall\": give broadcast, reduce, "
		"allgather, reducescatter or allreduce;");
	refused("Broadcast,20,30,ring,ll,-1,-1,-1", "collective_type is");
	refused("broadcast,20,30,rings,ll,-1,-1,-1",
		"algorithm is \"rings\": give tree, ring, collnet_direct, "
		"collnet_chain, nvls, nvls_tree or pat;");
	refused("broadcast,20,30,ring,LL,-1,-1,-1",
		"protocol is \"LL\": give ll, ll128 or simple;");
	refused("broadcast,20,30,,ll,-1,-1,-1", "algorithm is \"\"");
	refused("broadcast,20,30,ring,ring\033[2J\tx,-1,-1,-1",
		"protocol is \"ring?[2J?x\"");
	refused("broadcast,20,30,ring,ll"
		"0123456789012345678901234567890123456789,-1,-1,-1",
		"is \"ll0123456789012345678901234567890123...\"");
}

TEST(wrong_numbers)
{
	refused("broadcast,-5,9,ring,ll,-1,-1,-1",
		"min_bytes is \"-5\": give a number of bytes");
	refused("broadcast,0,-1,ring,ll,-1,-1,-1", "max_bytes is \"-1\"");
	refused("broadcast,0,1k,ring,ll,-1,-1,-1", "max_bytes is \"1k\"");
	refused("broadcast,+20,30,ring,ll,-1,-1,-1", "min_bytes is");
	refused("broadcast,0x20,30,ring,ll,-1,-1,-1", "min_bytes is");
	refused("broadcast,20,3e9,ring,ll,-1,-1,-1", "max_bytes is");
	refused("broadcast,,30,ring,ll,-1,-1,-1", "min_bytes is \"\"");
	refused("broadcast,2 0,30,ring,ll,-1,-1,-1", "min_bytes is \"2 0\"");
	refused("broadcast,20,18446744073709551616,ring,ll,-1,-1,-1",
		"max_bytes is");
	refused("broadcast,20,99999999999999999999999,ring,ll,-1,-1,-1",
		"max_bytes is");
	refused("broadcast,31,30,ring,ll,-1,-1,-1",
		"min_bytes is more than max_bytes");
	refused("broadcast,20,30,ring,ll,0,-1,-1",
		"channels is \"0\": give a number from 1 to 127, or -1");
	refused("broadcast,20,30,ring,ll,128,-1,-1", "channels is");
	refused("broadcast,20,30,ring,ll,-2,-1,-1", "channels is \"-2\"");
	refused("broadcast,20,30,ring,ll,,-1,-1", "channels is \"\"");
	refused("broadcast,20,30,ring,ll,1,0,-1", "nNodes is \"0\"");
	refused("broadcast,20,30,ring,ll,1,all,-1", "nNodes is \"all\"");
	refused("broadcast,20,30,ring,ll,1,-1,2147483648", "nRanks is");
	refused("broadcast,20,30,ring,ll,1,-1,", "nRanks is \"\"");
	refused("broadcast,20,30,ring,ll,1,-1,-1,0", "numPipeOps is \"0\"");
	refused("broadcast,20,30,ring,ll,1,-1,-1,-1,2",
		"regBuff is \"2\": give a number from 0 to 1, or -1");
}

TEST(wrong_lines)
{
	char line[TABLE_LINE + 2];

	refused("broadcast", "the line has 1 columns: give 8 to 10");
	refused("broadcast,20,30,ring,ll,1,-1", "the line has 7 columns");
	refused("broadcast,20,30,ring,ll,1,-1,-1,-1,-1,-1",
		"the line has 11 columns");
	refused("broadcast;20;30;ring;ll;1;-1;-1", "the line has 1 columns");
	memset(line, ' ', sizeof(line) - 1);
	line[sizeof(line) - 1] = 0;
	memcpy(line, "broadcast,20,30,ring,ll,1,-1,-1", 31);
	refused(line, "the line is longer than 1024 characters");
	memset(line, ',', sizeof(line) - 1);
	refused(line, "the line is longer than 1024 characters");
	line[TABLE_LINE] = 0;
	line[0] = 'x';
	refused(line, "the line has 1024 columns");
}

TEST(longest_line)
{
	char text[3 * TABLE_LINE];
	struct tuner_table *table;

	memset(text, ' ', sizeof(text));
	memcpy(text, "broadcast,20,30,ring,ll,1,-1,-1", 31);
	strcpy(text + TABLE_LINE, "\n#");
	memset(text + TABLE_LINE + 2, 'x', TABLE_LINE + 9);
	strcpy(text + 2 * TABLE_LINE + 11, "\nreduce,20,30,ring,ll,2,-1,-1");
	table = good_table(text, 2);
	CHECK_EQ(found(table, NCCL_BROADCAST, 25, 1, 1), 1);
	CHECK_EQ(found(table, NCCL_REDUCE, 25, 1, 1), 2);
	table_free(table);
}

TEST(nul_in_a_line)
{
	static const char text[] = "broadcast,0,9,ring,ll,1,-1,-1\0\n"
				   "broadcast,0,9,ring,ll,2,-1,-1\n"
				   "# \0 here it may be\n"
				   "\0broadcast,10,19,ring,ll,3,-1,-1\n"
				   "\0";
	struct tuner_table *table = table_of(text, sizeof(text) - 1);

	CHECK_EQ(complaints, 3);
	CHECK(strstr(said, ":1: there is a NUL in the line;"));
	CHECK(strstr(said, ":4: there is a NUL in the line;"));
	CHECK(strstr(said, ":5: there is a NUL in the line;"));
	CHECK_EQ(table_count(table), 1);
	CHECK_EQ(found(table, NCCL_BROADCAST, 5, 1, 1), 2);
	table_free(table);
}

TEST(overlaps)
{
	refused("broadcast,9,9,ring,ll,3,-1,-1",
		"its sizes overlap with those of line 1;");
	refused("broadcast,0,0,tree,simple,3,-1,-1", "of line 1;");
	refused("broadcast,5,100,ring,ll,3,-1,-1,-1,-1", "of line 1;");
	refused("broadcast,0,18446744073709551615,ring,ll,3,-1,-1", "of line 1;");
	refused("broadcast,0,9,ring,ll,1,-1,-1", "of line 1;");
}

/* A line that was passed over is in nobody's way; other keys are not either. */
TEST(overlaps_with_what_is_kept)
{
	struct tuner_table *table = text_table(
		"reduce,10,20,ring,ll,1,-1,-1\n"
		"reduce,15,40,ring,ll,2,-1,-1\n"
		"reduce,30,35,ring,ll,3,-1,-1\n"
		"reduce,10,20,ring,ll,4,2,-1\n"
		"reduce,10,20,ring,ll,5,-1,2\n"
		"reduce,10,20,ring,ll,6,-1,-1,2\n"
		"reduce,10,20,ring,ll,7,-1,-1,-1,1\n"
		"allreduce,10,20,ring,ll,8,-1,-1\n");

	CHECK_EQ(complaints, 1);
	CHECK(strstr(said, ":2: its sizes overlap with those of line 1;"));
	CHECK_EQ(table_count(table), 7);
	CHECK_EQ(found(table, NCCL_REDUCE, 20, 1, 1), 1);
	CHECK_EQ(found(table, NCCL_REDUCE, 25, 1, 1), 0);
	CHECK_EQ(found(table, NCCL_REDUCE, 30, 1, 1), 3);
	table_free(table);
}

TEST(twenty_complaints)
{
	char text[4096] = "";
	struct tuner_table *table;
	int i;

	for (i = 0; i < 20; i++)
		strcat(text, "nonsense\n");
	table = text_table(text);
	CHECK_EQ(complaints, 20);
	CHECK(!strstr(said, " more lines"));
	table_free(table);
	strcat(text, "nonsense\n\nreduce,10,20,ring,ll,1,-1,-1\n"
		     "reduce,10,20,ring,ll,1,-1,-1\n");
	table = text_table(text);
	CHECK_EQ(complaints, 21);
	CHECK(strstr(said, ": and 2 more lines are passed over\n"));
	CHECK_EQ(found(table, NCCL_REDUCE, 15, 1, 1), 1);
	table_free(table);
}

TEST(no_file)
{
	char path[256];
	FILE *file;

	said[0] = 0;
	complaints = 0;
	CHECK(!table_read("/nonexistent/rules", complain, said));
	CHECK_EQ(errno, ENOENT);
	CHECK(!table_read("/", complain, said));
	CHECK_EQ(errno, EISDIR);
	CHECK(!table_read("/dev/zero", complain, said));
	CHECK_EQ(errno, ESPIPE);
	CHECK(!table_read("", complain, said));
	CHECK_EQ(errno, ENOENT);
	/* Nobody writes to it. */
	snprintf(path, sizeof(path), "%s.fifo", scratch_text(""));
	CHECK_EQ(mkfifo(path, 0600), 0);
	CHECK(!table_read(path, complain, said));
	CHECK_EQ(errno, ESPIPE);
	CHECK_EQ(unlink(path), 0);
	if (geteuid()) {
		CHECK_EQ(chmod(scratch_text("x"), 0), 0);
		CHECK(!table_read(scratch_path, complain, said));
		CHECK_EQ(errno, EACCES);
		CHECK_EQ(chmod(scratch_path, 0600), 0);
	}
	file = fopen(scratch_text("x"), "r+");
	CHECK(file);
	CHECK_EQ(ftruncate(fileno(file), TABLE_SIZE + 1), 0);
	fclose(file);
	CHECK(!table_read(scratch_path, complain, said));
	CHECK_EQ(errno, EFBIG);
	CHECK_EQ(complaints, 0);
}

/* ---- anything --------------------------------------------------------------- */

/* Whatever is kept is what a line can say, and found again. */
static void check_all(struct tuner_table *table)
{
	int c;

	CHECK(complaints <= TABLE_COMPLAINTS + 1);
	for (c = 0; c < NCCL_COLLECTIVES; c++) {
		uint64_t bytes = mutate_draw(5000);
		int nodes = 1 + (int)mutate_draw(4);
		int ranks = 1 + (int)mutate_draw(8);
		const struct tuner_rule *rule = find(table, c, bytes, nodes,
						     ranks, 1, 0);

		if (!rule)
			continue;
		CHECK_EQ(rule->collective, c);
		CHECK(rule->min_bytes <= bytes && bytes <= rule->max_bytes);
		CHECK(rule->nodes == ANY || rule->nodes == nodes);
		CHECK(rule->ranks == ANY || rule->ranks == ranks);
		CHECK(rule->pipe_ops == ANY || rule->pipe_ops == 1);
		CHECK(rule->registered == ANY || rule->registered == 0);
		CHECK(rule->algorithm >= 0 && rule->algorithm < NCCL_ALGORITHMS);
		CHECK(rule->protocol >= 0 && rule->protocol < NCCL_PROTOCOLS);
		CHECK(rule->channels == ANY || (rule->channels > 0 &&
						rule->channels < 128));
	}
	table_free(table_keep(table, 1 + (int)mutate_draw(4),
			      1 + (int)mutate_draw(8)));
}

TEST(mutations)
{
	static const char good[] =
		"# collective_type,min_bytes,max_bytes,algorithm,protocol,channels\n"
		"allreduce,0,1023,tree,ll,2,1,8,-1,1\n"
		"allreduce,1024,4095,ring,ll128,-1,-1,-1\n"
		"\n"
		"allgather,0,4294967295,pat,simple,4,2,-1,1\r\n"
		" reducescatter , 0 , 131072 , collnet_direct , simple,1,-1,8,,\n"
		"broadcast,0,99,ring,simple,1,-1,-1,,0\n"
		"reduce,0,18446744073709551615,nvls_tree,simple,127,-1,-1\n";
	static const char signs[] = "0123456789,-\n\r\t #.aelrx\0\377";
	int i, k;

	mutate_seed(mutate_time());
	for (i = 0; i < 3000; i++) {
		char text[2 * sizeof(good)];
		size_t n = sizeof(good) - 1;

		memcpy(text, good, n);
		for (k = 1 + (int)mutate_draw(12); k; k--) {
			size_t at = mutate_draw((uint32_t)n);
			size_t length = mutate_draw(20);

			switch (mutate_draw(4)) {
			case 0:
				text[at] = (char)mutate_draw(256);
				break;
			case 1:
				text[at] = signs[mutate_draw(sizeof(signs) - 1)];
				break;
			case 2:		/* left out */
				length = length < n - at ? length : n - at - 1;
				memmove(text + at, text + at + length,
					n - at - length);
				n -= length;
				break;
			case 3:		/* twice */
				length = length < n - at ? length : n - at;
				if (n + length > sizeof(text))
					break;
				memmove(text + at + length, text + at, n - at);
				n += length;
				break;
			}
		}
		check_all(table_of(text, n));
	}
}

TEST(noise)
{
	int i;

	mutate_seed(mutate_time());
	for (i = 0; i < 300; i++) {
		char text[8192];
		size_t n = mutate_draw(sizeof(text)), k;

		for (k = 0; k < n; k++)
			text[k] = (char)mutate_draw(i & 1 ? 256 : 64);
		check_all(table_of(text, n));
	}
}

/* What is found is what one would find by looking at all lines. */
TEST(found_as_by_hand)
{
	enum { RULES = 300 };
	static struct tuner_rule rules[RULES];
	static char text[RULES * 80];
	int i, k, n = 0, round;

	mutate_seed(mutate_time());
	for (round = 0; round < 20; round++) {
		struct tuner_table *table;
		size_t at = 0;

		n = 0;
		for (i = 0; i < RULES; i++) {
			uint64_t min = mutate_draw(1000);
			struct tuner_rule r = {
				.min_bytes = min,
				.max_bytes = min + mutate_draw(60),
				.collective = NCCL_ALL_REDUCE,
				.ranks = mutate_draw(2) ? ANY : 2,
				.nodes = mutate_draw(2) ? ANY : 1,
				.pipe_ops = mutate_draw(2) ? ANY : 1,
				.registered = (int)mutate_draw(3) - 1,
				.channels = 1 + i % 127,
			};
			bool clash = false;

			at += (size_t)sprintf(text + at, "allreduce,%llu,%llu,"
				"ring,ll,%d,%d,%d,%d,%d\n",
				(unsigned long long)r.min_bytes,
				(unsigned long long)r.max_bytes, r.channels,
				r.nodes, r.ranks, r.pipe_ops, r.registered);
			for (k = 0; k < n; k++)
				clash |= rules[k].ranks == r.ranks &&
					 rules[k].nodes == r.nodes &&
					 rules[k].pipe_ops == r.pipe_ops &&
					 rules[k].registered == r.registered &&
					 rules[k].min_bytes <= r.max_bytes &&
					 rules[k].max_bytes >= r.min_bytes;
			if (!clash)
				rules[n++] = r;
		}
		table = text_table(text);
		CHECK_EQ(table_count(table), n);
		for (i = 0; i < 4000; i++) {
			uint64_t bytes = mutate_draw(1100);
			int nodes = 1 + (int)mutate_draw(2);
			int ranks = 1 + (int)mutate_draw(2);
			int ops = 1 + (int)mutate_draw(2);
			int registered = (int)mutate_draw(2);
			const struct tuner_rule *rule, *best = NULL;
			int best_rank = -1;

			for (k = 0; k < n; k++) {
				const struct tuner_rule *r = &rules[k];
				int rank = (r->ranks != ANY) * 8 +
					   (r->nodes != ANY) * 4 +
					   (r->pipe_ops != ANY) * 2 +
					   (r->registered != ANY);

				if ((r->ranks == ANY || r->ranks == ranks) &&
				    (r->nodes == ANY || r->nodes == nodes) &&
				    (r->pipe_ops == ANY || r->pipe_ops == ops) &&
				    (r->registered == ANY ||
				     r->registered == registered) &&
				    r->min_bytes <= bytes &&
				    r->max_bytes >= bytes && rank > best_rank) {
					best = r;
					best_rank = rank;
				}
			}
			rule = find(table, NCCL_ALL_REDUCE, bytes, nodes, ranks,
				    ops, registered);
			CHECK_EQ(!rule, !best);
			if (!rule)
				continue;
			CHECK_EQ(rule->min_bytes, best->min_bytes);
			CHECK_EQ(rule->max_bytes, best->max_bytes);
			CHECK_EQ(rule->channels, best->channels);
			CHECK_EQ(rule->ranks, best->ranks);
			CHECK_EQ(rule->nodes, best->nodes);
		}
		table_free(table);
	}
}

/* ---- large ones -------------------------------------------------------------- */

/* Of this process: what else the machine does is not the table's. */
static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* @keys: among how many numbers of ranks and of operations they are spread. */
static void many(unsigned int n, unsigned int keys, const char *what)
{
	enum { FINDS = 200000 };
	char *text = malloc((size_t)n * 80), *at = text;
	struct tuner_table *table;
	unsigned int i, hits = 0;
	double start, read;

	CHECK(text);
	for (i = 0; i < n; i++) {
		unsigned int key = i % keys, size = i / keys * 1000;

		at += sprintf(at, "allreduce,%u,%u,ring,simple,%u,%d,%d,%d,%d\n",
			      size, size + 999, 1 + i % 100,
			      key & 1 ? 2 : -1, key & 2 ? 16 : -1,
			      key & 4 ? 1 + (int)(key / 16) : -1,
			      key & 8 ? 1 : -1);
	}
	scratch_write(text, (size_t)(at - text));
	free(text);
	said[0] = 0;
	complaints = 0;
	start = now_s();
	table = table_read(scratch_path, complain, said);
	read = now_s() - start;
	CHECK(table);
	CHECK_EQ(table_count(table), n - complaints);
	start = now_s();
	for (i = 0; i < FINDS; i++)
		hits += !!find(table, NCCL_ALL_REDUCE,
			       (uint64_t)i * 7919 % (n / keys * 1000 + 1), 2, 16,
			       1 + (int)(i % (1 + keys / 16)), (int)(i & 1));
	printf("# %s: %u lines read in %.0f ms, found in %.0f ns, of %u finds %u\n",
	       what, n, 1e3 * read, 1e9 * (now_s() - start) / FINDS,
	       (unsigned int)FINDS, hits);
	CHECK(hits > 0);
	table_free(table);
}

TEST(hundred_thousand_lines)
{
	many(100000, 1, "one kind");
	many(100000, 16, "all kinds");
}

/* In an order that an unbalanced tree would not like, and all the same line. */
TEST(hundred_thousand_overlaps)
{
	static const char line[] = "allreduce,0,99,ring,simple,1,-1,-1\n";
	char *text = malloc(100000 * sizeof(line)), *at = text;
	struct tuner_table *table;
	double start;
	int i;

	CHECK(text);
	for (i = 0; i < 100000; i++)
		at = stpcpy(at, line);
	start = now_s();
	table = table_of(text, (size_t)(at - text));
	printf("# in %.0f ms, with the writing\n", 1e3 * (now_s() - start));
	CHECK_EQ(table_count(table), 1);
	CHECK_EQ(complaints, 21);
	CHECK(strstr(said, ": and 99979 more lines are passed over\n"));
	table_free(table);
	for (at = text, i = 100000; i--;)
		at += sprintf(at, "reduce,%d,%d,pat,ll,3,-1,-1\n", i, i);
	table = table_of(text, (size_t)(at - text));
	CHECK_EQ(table_count(table), 100000);
	CHECK_EQ(complaints, 0);
	CHECK_EQ(found(table, NCCL_REDUCE, 99999, 1, 1), 3);
	CHECK_EQ(found(table, NCCL_REDUCE, 100000, 1, 1), 0);
	table_free(table);
	free(text);
}
