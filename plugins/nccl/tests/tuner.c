// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The tuner as a library sees it, in each version: through the tables that it looks
 * up by name, with what it passes and a log that is caught.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "../tuner_abi.h"
#include "scratch.h"

const unsigned int test_limit_s = 600;	/* a hang, on any machine */

unsigned int test_objects(void)
{
	return 0;
}

/* ---- the log ---------------------------------------------------------------- */

static char logged[1 << 16];
static unsigned int warnings, lines;

static void take_line(enum nccl_log_level level, unsigned long about,
		      const char *place, int line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static void take_line(enum nccl_log_level level, unsigned long about,
		      const char *place, int line, const char *fmt, ...)
{
	size_t n = strlen(logged);
	va_list args;

	CHECK(place && *place && line > 0);
	CHECK(level == NCCL_LOG_WARN || level == NCCL_LOG_INFO);
	/* Else it would not be seen unless one asked for it. */
	CHECK(level != NCCL_LOG_WARN || about == NCCL_ABOUT_ALL);
	CHECK(about & NCCL_ABOUT_TUNING);
	warnings += level == NCCL_LOG_WARN;
	lines++;
	va_start(args, fmt);
	vsnprintf(logged + n, sizeof(logged) - n - 1, fmt, args);
	va_end(args);
	CHECK(!strchr(logged + n, '\n'));
	CHECK(!strncmp(logged + n, "fabrex tuner: ", 14));
	strcat(logged, "\n");
}

static void log_clear(void)
{
	logged[0] = 0;
	warnings = lines = 0;
}

/* ---- the versions ------------------------------------------------------------ */

/* As dlsym() would. */
static const void *look_up(const char *name)
{
	static const struct {
		const char *name;
		const void *table;
	} symbols[] = {
		{ "ncclTunerPlugin_v3", &ncclTunerPlugin_v3 },
		{ "ncclTunerPlugin_v4", &ncclTunerPlugin_v4 },
		{ "ncclTunerPlugin_v5", &ncclTunerPlugin_v5 },
		{ "ncclTunerPlugin_v6", &ncclTunerPlugin_v6 },
	};
	size_t i;

	for (i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
		if (!strcmp(symbols[i].name, name))
			return symbols[i].table;
	return NULL;
}

static const void *version(int v)
{
	char name[32];

	snprintf(name, sizeof(name), "ncclTunerPlugin_v%d", v);
	CHECK(look_up(name));
	return look_up(name);
}

static const char *name_of(int v)
{
	return v == 3 ? ((const struct tuner_v3 *)version(v))->name :
	       v == 4 ? ((const struct tuner_v4 *)version(v))->name :
	       v == 5 ? ((const struct tuner_v5 *)version(v))->name :
			((const struct tuner_v6 *)version(v))->name;
}

static void *init(int v, size_t ranks, size_t nodes, nccl_log_t log,
		  struct tuner_constants *constants)
{
	struct tuner_nvl_domains domains = { 1, 1, 1 };
	void *context = &domains;
	enum nccl_result ret;

	switch (v) {
	case 3:
		ret = ((const struct tuner_v3 *)version(v))->init(ranks, nodes,
			log, &context);
		break;
	case 4:
		ret = ((const struct tuner_v4 *)version(v))->init(ranks, nodes,
			log, &context);
		break;
	case 5:
		ret = ((const struct tuner_v5 *)version(v))->init(&context, 77,
			ranks, nodes, log, &domains, constants);
		break;
	default:
		ret = ((const struct tuner_v6 *)version(v))->init(&context, 77,
			ranks, nodes, log, NULL, constants);
		break;
	}
	CHECK_EQ(ret, NCCL_SUCCESS);
	CHECK(context != &domains);
	return context;
}

static void finish(int v, void *context)
{
	CHECK_EQ(v == 3 ? ((const struct tuner_v3 *)version(v))->finalize(context) :
		 v == 4 ? ((const struct tuner_v4 *)version(v))->finalize(context) :
		 v == 5 ? ((const struct tuner_v5 *)version(v))->finalize(context) :
			  ((const struct tuner_v6 *)version(v))->finalize(context),
		 NCCL_SUCCESS);
}

/* What a library has computed, and what it finds afterwards. */
struct choice {
	int algorithms, protocols;
	float costs[NCCL_ALGORITHMS * NCCL_PROTOCOLS + 1];
	int channels;
};

#define CHANNELS	77	/* which none of the rules have */

static void choice_new(struct choice *c, int algorithms, int protocols)
{
	int i;

	c->algorithms = algorithms;
	c->protocols = protocols;
	c->channels = CHANNELS;
	for (i = 0; i <= NCCL_ALGORITHMS * NCCL_PROTOCOLS; i++)
		c->costs[i] = 100.0f + (float)i;
}

static void choose(int v, void *context, struct choice *c, int collective,
		   size_t bytes, int pipe_ops, int registered)
{
	float **costs = (float **)(void *)c->costs;
	enum nccl_result ret;

	switch (v) {
	case 3:
		ret = ((const struct tuner_v3 *)version(v))->choose(context,
			collective, bytes, pipe_ops, costs, c->algorithms,
			c->protocols, &c->channels);
		break;
	case 4:
		ret = ((const struct tuner_v4 *)version(v))->choose(context,
			collective, bytes, pipe_ops, costs, c->algorithms,
			c->protocols, registered, &c->channels);
		break;
	case 5:
		ret = ((const struct tuner_v5 *)version(v))->choose(context,
			collective, bytes, pipe_ops, costs, c->algorithms,
			c->protocols, registered, &c->channels);
		break;
	default:
		ret = ((const struct tuner_v6 *)version(v))->choose(context,
			collective, bytes, pipe_ops, costs, c->algorithms,
			c->protocols, registered, &c->channels);
		break;
	}
	CHECK_EQ(ret, NCCL_SUCCESS);
}

/* The cost of this place is nothing, all others are as they were. */
static void chosen(const struct choice *c, int algorithm, int protocol,
		   int channels)
{
	int at = algorithm < 0 ? -1 : algorithm * c->protocols + protocol, i;

	for (i = 0; i <= NCCL_ALGORITHMS * NCCL_PROTOCOLS; i++)
		CHECK(c->costs[i] == (i == at ? 0.0f : 100.0f + (float)i));
	CHECK_EQ(c->channels, channels);
}

/* One collective of a fresh table of costs. */
static void check_choice(int v, void *context, int collective, size_t bytes,
			 int algorithm, int protocol, int channels)
{
	struct choice c;

	choice_new(&c, NCCL_ALGORITHMS, NCCL_PROTOCOLS);
	choose(v, context, &c, collective, bytes, 1, 0);
	chosen(&c, algorithm, protocol, channels);
}

static void use_rules(const char *text)
{
	setenv("NCCL_TUNER_CONFIG_FILE", scratch_text(text), 1);
	log_clear();
}

#define EACH_VERSION(v)	for (v = 3; v <= 6; v++)

/* ---- rules --------------------------------------------------------------------- */

TEST(names)
{
	int v;

	EACH_VERSION(v)
		CHECK(!strcmp(name_of(v), "fabrex"));
	CHECK(!look_up("ncclTunerPlugin_v2"));
	/* The size of chunks is left to the library. */
	CHECK(!((const struct tuner_v6 *)version(6))->chunk);
}

TEST(rules_are_followed)
{
	int v;

	EACH_VERSION(v) {
		void *context;

		use_rules("allreduce,0,1023,tree,ll,4,2,16\n"
			  "allreduce,1024,4095,ring,ll128,-1,-1,-1\n"
			  "allgather,0,4095,pat,simple,8,-1,16\n"
			  "allgather,0,4095,ring,simple,9,-1,24\n");
		context = init(v, 16, 2, take_line, NULL);
		CHECK_EQ(warnings, 0);
		CHECK_EQ(lines, 1);
		CHECK(strstr(logged, scratch_path));
		CHECK(strstr(logged, ": 4 rules, 3 of them for 16 ranks on 2 nodes"));
		check_choice(v, context, NCCL_ALL_REDUCE, 0, NCCL_TREE, NCCL_LL, 4);
		check_choice(v, context, NCCL_ALL_REDUCE, 1023, NCCL_TREE,
			     NCCL_LL, 4);
		check_choice(v, context, NCCL_ALL_REDUCE, 1024, NCCL_RING,
			     NCCL_LL128, CHANNELS);
		check_choice(v, context, NCCL_ALL_GATHER, 9, NCCL_PAT,
			     NCCL_SIMPLE, 8);
		check_choice(v, context, NCCL_ALL_REDUCE, 4096, -1, 0, CHANNELS);
		check_choice(v, context, NCCL_REDUCE, 9, -1, 0, CHANNELS);
		check_choice(v, context, 8, 9, -1, 0, CHANNELS);
		check_choice(v, context, -1, 9, -1, 0, CHANNELS);
		CHECK_EQ(lines, 1);
		finish(v, context);
	}
}

/* v3 does not say whether buffers are registered. */
TEST(operations_and_buffers)
{
	int v;

	EACH_VERSION(v) {
		struct choice c;
		void *context;

		use_rules("reduce,0,9,ring,ll,1,-1,-1,4\n"
			  "reduce,0,9,ring,ll128,2,-1,-1,-1,1\n"
			  "reduce,0,9,ring,simple,3,-1,-1,-1,0\n");
		context = init(v, 2, 1, take_line, NULL);
		choice_new(&c, NCCL_ALGORITHMS, NCCL_PROTOCOLS);
		choose(v, context, &c, NCCL_REDUCE, 5, 4, 1);
		chosen(&c, NCCL_RING, NCCL_LL, 1);
		choice_new(&c, NCCL_ALGORITHMS, NCCL_PROTOCOLS);
		choose(v, context, &c, NCCL_REDUCE, 5, 3, 1);
		chosen(&c, NCCL_RING, v == 3 ? NCCL_SIMPLE : NCCL_LL128,
		       v == 3 ? 3 : 2);
		choice_new(&c, NCCL_ALGORITHMS, NCCL_PROTOCOLS);
		choose(v, context, &c, NCCL_REDUCE, 5, 3, 0);
		chosen(&c, NCCL_RING, NCCL_SIMPLE, 3);
		finish(v, context);
	}
}

/* What the library does not have, or not here, is not chosen. */
TEST(cannot_be_chosen)
{
	int v;

	EACH_VERSION(v) {
		struct choice c;
		void *context;

		use_rules("reduce,0,9,pat,ll,1,-1,-1\n"
			  "reduce,10,19,tree,simple,2,-1,-1\n"
			  "reduce,20,29,nvls_tree,simple,3,-1,-1\n");
		context = init(v, 2, 1, take_line, NULL);
		/* NCCL 2.22 has no PAT. */
		choice_new(&c, 6, 3);
		choose(v, context, &c, NCCL_REDUCE, 5, 1, 0);
		chosen(&c, -1, 0, CHANNELS);
		choose(v, context, &c, NCCL_REDUCE, 25, 1, 0);
		chosen(&c, NCCL_NVLS_TREE, NCCL_SIMPLE, 3);
		choice_new(&c, 7, 2);
		choose(v, context, &c, NCCL_REDUCE, 15, 1, 0);
		chosen(&c, -1, 0, CHANNELS);
		choose(v, context, &c, NCCL_REDUCE, 5, 1, 0);
		chosen(&c, NCCL_PAT, NCCL_LL, 1);
		choice_new(&c, 7, 3);
		c.costs[NCCL_TREE * 3 + NCCL_SIMPLE] = -1.0f;
		choose(v, context, &c, NCCL_REDUCE, 15, 1, 0);
		CHECK(c.costs[NCCL_TREE * 3 + NCCL_SIMPLE] == -1.0f);
		CHECK_EQ(c.channels, CHANNELS);
		finish(v, context);
	}
}

/* ---- no rules ------------------------------------------------------------------- */

TEST(without_a_file)
{
	int v;

	EACH_VERSION(v) {
		void *context;

		log_clear();
		unsetenv("NCCL_TUNER_CONFIG_FILE");
		context = init(v, 16, 2, take_line, NULL);
		check_choice(v, context, NCCL_ALL_REDUCE, 9, -1, 0, CHANNELS);
		finish(v, context);
		setenv("NCCL_TUNER_CONFIG_FILE", "", 1);
		context = init(v, 16, 2, take_line, NULL);
		check_choice(v, context, NCCL_ALL_REDUCE, 9, -1, 0, CHANNELS);
		finish(v, context);
		check_choice(v, NULL, NCCL_ALL_REDUCE, 9, -1, 0, CHANNELS);
		finish(v, NULL);
		CHECK_EQ(lines, 0);
	}
}

static void unreadable(int v, const char *path, const char *why)
{
	void *context;

	log_clear();
	setenv("NCCL_TUNER_CONFIG_FILE", path, 1);
	context = init(v, 16, 2, take_line, NULL);
	test_note("%.200s", logged);
	CHECK_EQ(warnings, 1);
	CHECK_EQ(lines, 1);
	CHECK(strstr(logged, path));
	CHECK(strstr(logged, why));
	CHECK(strstr(logged, "NCCL_TUNER_CONFIG_FILE"));
	check_choice(v, context, NCCL_ALL_REDUCE, 9, -1, 0, CHANNELS);
	finish(v, context);
}

TEST(unreadable_file)
{
	int v;

	EACH_VERSION(v) {
		unreadable(v, "/nonexistent/rules.csv",
			   "No such file or directory");
		unreadable(v, "/", "Is a directory");
		unreadable(v, "/dev/zero", "Not a regular file");
	}
}

TEST(complaints_in_the_log)
{
	char text[4096] = "reduce,0,9,ring,ll,5,-1,-1\n";
	void *context;
	int v, i;

	for (i = 0; i < 30; i++)
		strcat(text, "reduce,0,9,rung,ll,5,-1,-1\n");
	EACH_VERSION(v) {
		use_rules(text);
		context = init(v, 16, 2, take_line, NULL);
		CHECK_EQ(warnings, 21);
		CHECK_EQ(lines, 22);
		CHECK(strstr(logged, scratch_path));
		CHECK(strstr(logged, ":2: algorithm is \"rung\": give "));
		CHECK(strstr(logged, ":21: algorithm is"));
		CHECK(!strstr(logged, ":22: algorithm is"));
		CHECK(strstr(logged, ": and 10 more lines are passed over"));
		check_choice(v, context, NCCL_REDUCE, 9, NCCL_RING, NCCL_LL, 5);
		finish(v, context);
	}
}

TEST(nobody_listens)
{
	struct tuner_constants constants = { 0 };
	int v;

	setenv("FABREX_TUNER_LATENCY_US", "never", 1);
	EACH_VERSION(v) {
		void *context;

		use_rules("reduce,0,9,ring,ll,5,-1,-1\nnonsense\n");
		context = init(v, 16, 2, NULL, &constants);
		check_choice(v, context, NCCL_REDUCE, 9, NCCL_RING, NCCL_LL, 5);
		finish(v, context);
		setenv("NCCL_TUNER_CONFIG_FILE", "/nonexistent", 1);
		finish(v, init(v, 16, 2, NULL, &constants));
	}
}

/* ---- latencies ------------------------------------------------------------------- */

/* Each figure another one; of the network's, those of a ring as NCCL has them. */
static void constants_new(struct tuner_constants *c)
{
	double *all = (double *)(void *)c, (*net)[NCCL_PROTOCOLS];
	size_t i;

	for (i = 0; i < sizeof(*c) / sizeof(*all); i++)
		all[i] = 10.0 + (double)i;
	net = c->hw_latencies[NCCL_HW_NET];
	memset(net, 0, sizeof(c->hw_latencies[NCCL_HW_NET]));
	net[NCCL_TREE][NCCL_LL] = 5.0;
	net[NCCL_RING][NCCL_LL] = 2.5;
	net[NCCL_RING][NCCL_SIMPLE] = 14.0;
	net[NCCL_PAT][NCCL_SIMPLE] = 1.0;
}

static bool close_to(double a, double b)
{
	return a - b < 1e-9 && b - a < 1e-9;
}

static void latency(int v, const char *text, double us)
{
	struct tuner_constants c, was;
	double (*net)[NCCL_PROTOCOLS] = c.hw_latencies[NCCL_HW_NET];

	constants_new(&c);
	was = c;
	setenv("FABREX_TUNER_LATENCY_US", text, 1);
	log_clear();
	finish(v, init(v, 16, 2, take_line, &c));
	test_note("%s: %.200s", text, logged);
	CHECK_EQ(warnings, 0);
	CHECK_EQ(lines, 1);
	CHECK(strstr(logged, "FABREX_TUNER_LATENCY_US"));
	CHECK(close_to(net[NCCL_RING][NCCL_LL], us));
	CHECK(close_to(net[NCCL_TREE][NCCL_LL], us + 2.5));
	CHECK(close_to(net[NCCL_RING][NCCL_SIMPLE], us + 11.5));
	CHECK(close_to(net[NCCL_PAT][NCCL_SIMPLE], us));
	CHECK(net[NCCL_NVLS][NCCL_LL] == 0);
	memcpy(c.hw_latencies[NCCL_HW_NET], was.hw_latencies[NCCL_HW_NET],
	       sizeof(was.hw_latencies[NCCL_HW_NET]));
	CHECK(!memcmp(&c, &was, sizeof(c)));
}

TEST(latency_is_taken)
{
	int v;

	unsetenv("NCCL_TUNER_CONFIG_FILE");
	for (v = 5; v <= 6; v++) {
		latency(v, "1.8", 1.8);
		latency(v, "3", 3);
		latency(v, "0.75", 0.75);
		latency(v, ".5", 0.5);
		latency(v, "7.", 7);
		latency(v, "0012.250", 12.25);
		latency(v, "1.00000000000000000000000000000000000000000000000", 1);
		latency(v, "1000000", 1e6);
	}
}

TEST(latency_is_refused)
{
	static const char *const garbage[] = {
		"0", "0.0", "-1", "+1", "1,8", "1.8us", " 1.8", "1.8 ", "1e3",
		"0x10", "nan", "inf", ".", "1.2.3", "one", "1000001",
		"99999999999999999999999999999999999999999999999999999999999999"
		"99999999999999999999999999999999999999999999999999999999999999",
		"0.0000000000000000000000000000000000000000000000000000000000000"
		"00000000000000000000000000000000000000000000000000000000000000",
	};
	struct tuner_constants c, was;
	size_t i;
	int v;

	unsetenv("NCCL_TUNER_CONFIG_FILE");
	constants_new(&was);
	for (v = 5; v <= 6; v++) {
		for (i = 0; i < sizeof(garbage) / sizeof(*garbage); i++) {
			c = was;
			log_clear();
			setenv("FABREX_TUNER_LATENCY_US", garbage[i], 1);
			finish(v, init(v, 16, 2, take_line, &c));
			test_note("%s: %.200s", garbage[i], logged);
			CHECK_EQ(warnings, 1);
			CHECK_EQ(lines, 1);
			CHECK(strstr(logged, "FABREX_TUNER_LATENCY_US="));
			CHECK(strstr(logged, "give microseconds such as 1.8"));
			CHECK(!memcmp(&c, &was, sizeof(c)));
		}
	}
}

TEST(latency_is_not_given)
{
	struct tuner_constants c, was;
	int v;

	unsetenv("NCCL_TUNER_CONFIG_FILE");
	constants_new(&was);
	log_clear();
	EACH_VERSION(v) {
		unsetenv("FABREX_TUNER_LATENCY_US");
		c = was;
		finish(v, init(v, 16, 2, take_line, &c));
		setenv("FABREX_TUNER_LATENCY_US", "", 1);
		finish(v, init(v, 16, 2, take_line, &c));
		CHECK(!memcmp(&c, &was, sizeof(c)));
		/* Versions without constants, and none given. */
		setenv("FABREX_TUNER_LATENCY_US", "1.8", 1);
		finish(v, init(v, 16, 2, take_line, NULL));
	}
	CHECK_EQ(lines, 0);
}

/* ---- many at once ------------------------------------------------------------------ */

#define THREADS	8

static void *of_all;

static void no_line(enum nccl_log_level level, unsigned long about,
		    const char *place, int line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static void no_line(enum nccl_log_level level, unsigned long about,
		    const char *place, int line, const char *fmt, ...)
{
	(void)level, (void)about, (void)place, (void)line, (void)fmt;
}

/* One communicator that all use, and one after the other of its own. */
static void *use(void *arg)
{
	int me = (int)(uintptr_t)arg, round, i;

	for (round = 0; round < 20; round++) {
		int v = 3 + round % 4;
		void *own = init(v, (size_t)me, 1, no_line, NULL);

		for (i = 0; i < 200; i++) {
			check_choice(6, of_all, NCCL_ALL_REDUCE, 5, NCCL_RING,
				     NCCL_SIMPLE, 100);
			check_choice(v, own, NCCL_ALL_REDUCE, 5, NCCL_RING,
				     NCCL_SIMPLE, me);
		}
		finish(v, own);
	}
	return NULL;
}

TEST(threads_and_communicators)
{
	char text[1024] = "allreduce,0,9,ring,simple,100,-1,-1\nnonsense\n";
	pthread_t threads[THREADS];
	uintptr_t i;

	for (i = 1; i <= THREADS; i++)
		sprintf(text + strlen(text), "allreduce,0,9,ring,simple,%d,-1,%d\n",
			(int)i, (int)i);
	use_rules(text);
	of_all = init(6, 64, 8, no_line, NULL);
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, use,
					(void *)(i + 1)), 0);
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	finish(6, of_all);
}

TEST(nothing_is_allocated)
{
	enum { CALLS = 100000 };
	struct timespec start, end;
	struct mallinfo2 before, after;
	struct choice c;
	void *context;
	char *text, *at;
	int i;

	at = text = malloc(1 << 20);
	CHECK(text);
	for (i = 0; i < 10000; i++)
		at += sprintf(at, "allreduce,%d,%d,ring,simple,5,%d,%d\n",
			      i * 100, i * 100 + 99, i & 1 ? -1 : 2,
			      i & 2 ? -1 : 16);
	use_rules(text);
	free(text);
	context = init(6, 16, 2, take_line, NULL);
	CHECK_EQ(warnings, 0);
	choice_new(&c, NCCL_ALGORITHMS, NCCL_PROTOCOLS);
	before = mallinfo2();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	for (i = 0; i < CALLS; i++)
		ncclTunerPlugin_v6.choose(context, NCCL_ALL_REDUCE,
			(size_t)i * 7919 % 1000000, 1,
			(float **)(void *)c.costs, c.algorithms, c.protocols,
			0, &c.channels);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	after = mallinfo2();
	CHECK_EQ(after.uordblks, before.uordblks);
	CHECK_EQ(after.hblks, before.hblks);
	chosen(&c, NCCL_RING, NCCL_SIMPLE, 5);
	printf("# %.0f ns for each choice of 10000 rules\n",
	       ((double)(end.tv_sec - start.tv_sec) * 1e9 +
		(double)(end.tv_nsec - start.tv_nsec)) / CALLS);
	finish(6, context);
}
