/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fabrex-perf compare: rows (what is measured), contenders (who is measured),
 * samples taken in turn, ratios and their spread. For compare/ only.
 *
 *   main.c          options
 *   plan.c          which rows, with whom, and what ratios are aimed at
 *   counts.c        rows that come from a file
 *   groups.c        what contenders that are forked have in common
 *   run.c           interleaved repetitions
 *   ratio.c         medians and quartiles, growth
 *   best.c jumps.c  what follows: who is faster, and where it grows too much
 *   quiet.c         what else the machine did
 *   table.c json.c plot.c  results
 *   ours.c onesided.c tcp.c reference.c bound.c    contenders that are forked
 *   launched.c ucx.c libfabric.c external.c        programs of others
 */
#ifndef COMPARE_H
#define COMPARE_H

#include "../environment.h"
#include "../perf.h"
#include "../group.h"

#define MAX_ROWS	240u
#define MAX_NUMBERS	16u	/* of ranks */
#define MAX_REPETITIONS	99u
#define MAX_PEERS	8u

enum contender_id {
	C_OURS, C_MPI, C_MPICH, C_UCC, C_GLOO, C_UCX, C_LIBFABRIC, C_TCP,
	C_MEMCPY,		/* on the same buffers */
	C_LINE,			/* twice the time of a cache line */
	C_BOUND,		/* of memory traffic */
	C_LIMIT,		/* of instructions: a number, not measured */
	C_IDS,
};

struct compare_options {
	const char *what;	/* latency, bandwidth, collectives, ranks, all */
	const char *markdown, *json_file, *plot;
	const char *counts;	/* what has been counted elsewhere */
	const char *peers;	/* names, comma separated; NULL: all */
	const char *only;	/* of the rows, comma separated; NULL: all */
	uint64_t size_from, size_to, size_factor; /* 0: the plan's */
	uint32_t ranks[MAX_NUMBERS];
	uint32_t nranks;
	uint32_t repetitions;
	double seconds;		/* for each sample */
	bool json, quiet, pin, aims;
};

/* Who a row is compared with, and what is to be shown. */
struct against {
	enum contender_id id;
	double aim;		/* of the ratio; 0: none */
	double *seconds;	/* [repetitions], for each iteration */
	uint32_t n;		/* of them */
	char why[232];		/* if there are none */
	uint32_t way;		/* prepare()'s, and what it is: */
	char how[64];
};

enum unit { UNIT_TIME, UNIT_RATE, UNIT_COUNT };

struct row {
	const char *section;
	char label[64];		/* for people */
	const char *what;	/* for contenders */
	uint64_t nominal;	/* bytes that were asked for */
	uint64_t bytes;		/* that all ranks can divide */
	uint32_t ranks;
	enum unit unit;
	struct against who[MAX_PEERS];	/* [0] is C_OURS */
	uint32_t nwho;
};

struct comparison {
	struct compare_options o;
	struct cpus cpus;
	struct row *rows;
	uint32_t nrows;
	char version[C_IDS][232]; /* or why it is missing */
	bool missing[C_IDS];
	char notes[8][400];
	uint32_t nnotes;
};

/*
 * @open makes it ready for rows of that many ranks, or says why it is missing:
 * 0 or a negative errno with a sentence in @why. @measure: as
 * group_measure(), with a sentence in @why on failure.
 */
struct contender {
	enum contender_id id;
	const char *name;	/* for people: "OpenMPI" */
	const char *word;	/* for options and JSON: "openmpi" */
	void *(*open)(const struct comparison *c, uint32_t ranks,
		      char *version, char *why, size_t n);
	/* May be NULL: chooses a way for this row. */
	int (*prepare)(void *state, const struct row *row, struct against *who);
	int (*measure)(void *state, const struct row *row, uint64_t warmup,
		       uint64_t iterations, double *seconds, char *why,
		       size_t n);
	void (*close)(void *state);
	uint64_t first;		/* iterations of the first try */
	enum contender_id shares; /* whose state it uses, without open() */
};

extern const struct contender cmp_ours, cmp_mpi, cmp_mpich, cmp_ucc, cmp_gloo,
	cmp_ucx, cmp_libfabric, cmp_tcp, cmp_memcpy, cmp_line, cmp_bound;
/* NULL: it is a number only. */
const struct contender *cmp_contender(enum contender_id id);
const char *cmp_name(enum contender_id id);
const char *cmp_word(enum contender_id id);
/* By word; NULL: nobody is called so. */
const struct contender *cmp_find(const char *word);

/* ---- plan.c ------------------------------------------------------------ */

/* 0 or an exit code, after saying why. */
int cmp_plan(struct comparison *c);
void cmp_plan_free(struct comparison *c);
/* counts.c: adds rows that are not measured. The same. */
int cmp_counts(struct comparison *c);
struct row *cmp_row_add(struct comparison *c);
int cmp_who_add(struct comparison *c, struct row *row, enum contender_id id,
		double aim);

/* ---- run.c ------------------------------------------------------------- */

int cmp_run(struct comparison *c);

/* ---- quiet.c ----------------------------------------------------------- */

struct quiet {
	uint64_t began_ns;
	double others;		/* seconds of processors */
};

void cmp_quiet_begin(struct quiet *q);
/* Adds a note. All processes of ours have ended. */
void cmp_quiet_end(const struct quiet *q, struct comparison *c);

/* ---- ratio.c ----------------------------------------------------------- */

struct spread {
	double q1, median, q3;
};

/* Of n values, which are sorted by it. */
struct spread cmp_spread(double *values, uint32_t n);
/* Of seconds; of theirs to ours, repetition by repetition: above 1, we are
 * faster. False: one of them has no samples.
 */
bool cmp_seconds(const struct against *a, struct spread *s);
bool cmp_ratio(const struct row *row, const struct against *a,
	       struct spread *s);

/* ---- best.c, jumps.c ------------------------------------------------------------ */

struct best {
	const struct against *who;
	struct spread ratio;
};

/* Of other software, not of bounds. False: nobody was measured. */
bool cmp_best(const struct row *row, struct best *best);
/* It is faster than ours. */
bool cmp_missed(const struct row *row, struct best *best);
void cmp_best_print(const struct comparison *c, FILE *f, const char *bullet);
/* jumps.c: compare ranks: where time grows by more than twice what the ranks do
 * from one number to the next.
 */
#define JUMP	2.0
bool cmp_jump(const struct comparison *c, const struct row *row, uint32_t who);
void cmp_jumps_print(const struct comparison *c, FILE *f, const char *bullet);

/* ---- table.c, json.c, plot.c -------------------------------------------- */

void cmp_table(const struct comparison *c, FILE *f);
void cmp_markdown(const struct comparison *c, FILE *f);
void cmp_json(const struct comparison *c, FILE *f);
int cmp_plot(const struct comparison *c);
/*
 * compare ranks: what the same took with fewer ranks, times how much longer.
 * @ranks: how many times the ranks are, may be NULL. False: it was not measured
 * with fewer.
 */
bool cmp_growth(const struct comparison *c, const struct row *row,
		uint32_t who, double *growth, double *ranks);
/* Are numbers of ranks compared with each other? */
bool cmp_by_ranks(const struct comparison *c);
/* "0.147 us", "13.6 GB/s" */
const char *cmp_value(const struct row *row, double seconds, char *text,
		      size_t n);

/* ---- external.c: programs of others ------------------------------------ */

/* In $PATH, or beside this program. */
bool external_find(const char *name, char *path, size_t n);
/* First line with @word of what it prints, whatever its exit status. */
bool external_says(const char *const argv[], const char *word, char *text,
		      size_t n);
/*
 * Runs a server, waits until it listens at the TCP port, runs the client and
 * takes what it prints. 0 or a negative errno with a sentence in @why.
 */
int external_pair(const struct cpus *cpus, const char *const server[],
		  const char *const client[], const char *const env[], uint16_t port,
		  char *out, size_t outn, char *why, size_t n);
uint16_t external_port(void);

/* ---- groups.c: contenders that are a group of processes ---------------- */

struct group *cmp_fork(const struct comparison *c,
		       const struct worker_kind *kind, const void *arg,
		       uint32_t ranks, char *version, char *why, size_t n);
int cmp_ask(struct group *group, const char *what, uint64_t bytes,
	    uint64_t warmup, uint64_t iterations, double *seconds, char *why,
	    size_t n);
/* A contender's measure() and close() when row->what says it all. A _lat is
 * half of the way there and back.
 */
int cmp_group_measure(void *state, const struct row *row, uint64_t warmup,
		      uint64_t iterations, double *seconds, char *why,
		      size_t n);
void cmp_group_close(void *state);
/* Largest of the rows of that many ranks. */
uint64_t cmp_largest(const struct comparison *c, uint32_t ranks);

/* ---- bound.c ----------------------------------------------------------- */

struct bound;

/* Private memory for one rank's part of collectives of up to @bytes. */
struct bound *bound_open(uint64_t bytes, uint32_t ranks);
void bound_close(struct bound *b);
/*
 * Reads and writes once what the best possible algorithm for @what would.
 * False: there is no such collective.
 */
bool bound_turn(struct bound *b, const char *what, uint64_t bytes,
		uint32_t how);
#define BOUND_STREAM	1u	/* stores past the caches */
#define BOUND_SMALL	2u	/* 4 KiB pages, not huge ones */
#define BOUND_AHEAD	4u	/* inputs are fetched ahead */
#define BOUND_WAYS	8u

#endif
