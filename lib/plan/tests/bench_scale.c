// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How plans take time as fabrics grow.
 *
 *	bench_scale		a table of all-gather's optimum by size
 *	bench_scale COLLECTIVE	of another one's
 *	bench_scale graph PATTERN BOXES GPUS SWITCHES
 *				such a fabric as a graph file, to stdout
 *
 * Each line is a process of its own, so that its memory is its own. "s" is
 * processor time of plan_optimum(), which has one thread; "growth" is the
 * time over that of the line above, GPUs growing by "x".
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "fabrics.h"
#include "plan/optimum.h"
#include "plan/read.h"

/* More kinds than there are patterns. */
#define DGX FABRIC_PATTERNS
#define HOSTS (FABRIC_PATTERNS + 1)	/* switches: how many hosts */
#define HOSTS_MESH (FABRIC_PATTERNS + 2)

static const struct size {
	uint32_t pattern, boxes, gpus, switches;
} sizes[] = {
	{ FABRIC_STRIPED, 2, 8, 4 },
	{ FABRIC_STRIPED, 2, 16, 4 },
	{ FABRIC_STRIPED, 4, 16, 4 },
	{ FABRIC_STRIPED, 8, 16, 8 },
	{ FABRIC_STRIPED, 16, 16, 8 },
	{ FABRIC_STRIPED, 32, 16, 16 },
	{ FABRIC_STRIPED, 64, 16, 32 },
	{ FABRIC_RAIL, 8, 16, 8 },
	{ FABRIC_RAIL, 64, 16, 32 },
	{ FABRIC_FAT_TREE, 8, 16, 8 },
	{ FABRIC_FAT_TREE, 64, 16, 32 },
	{ DGX, 2, 8, 10 },
	{ DGX, 16, 8, 12 },
	{ DGX, 128, 8, 16 },
	{ HOSTS, 32, 4, 4 },
	{ HOSTS, 256, 4, 32 },
	{ HOSTS, 128, 8, 16 },
	{ HOSTS_MESH, 32, 4, 4 },
	{ HOSTS_MESH, 256, 4, 32 },
};

#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

struct answer {
	double seconds;
	uint32_t nodes, edges;
	uint64_t k, chunks, transfers;
	double bound, rate;	/* GB/s of algbw */
	bool proved, checked;
	char why[CHECK_WHY];
};

static struct plan_graph *fabric(const struct size *s)
{
	struct fabric_shape shape;

	if (s->pattern == DGX)
		return fabric_dgx(s->boxes, s->switches - 8, 300000, 25000);
	if (s->pattern > DGX)
		return fabric_hosts(s->switches, s->boxes / s->switches,
				    s->gpus, s->pattern == HOSTS ? 0 : 48000);
	shape = fabric_shape(s->boxes, s->gpus, s->switches, s->pattern);
	return fabric_columbas(&shape);
}

static const char *kind_name(uint32_t pattern)
{
	return pattern == DGX ? "dgx" : pattern == HOSTS ? "hosts" :
	       pattern == HOSTS_MESH ? "hosts+mesh" :
	       fabric_pattern_name(pattern);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct answer measure(const struct size *s, enum plan_collective c)
{
	struct answer a = { 0 };
	struct plan_optimum o = { 0 };
	struct plan_error e = { 0 };
	struct plan_graph *g = fabric(s);
	int err;

	a.nodes = g->nnodes;
	a.edges = g->nedges;
	a.seconds = now();
	err = plan_optimum(g, c, 0, &o, &e);
	a.seconds = now() - a.seconds;
	if (err) {
		snprintf(a.why, sizeof(a.why), "%.200s", e.text);
	} else {
		a.k = o.k;
		a.chunks = o.schedule->nchunks;
		a.transfers = o.schedule->ntransfers;
		a.bound = plan_ratio_value(o.bound.algbw) / 1000;
		a.rate = plan_ratio_value(o.algbw) / 1000;
		a.proved = o.proved;
		a.checked = check_optimum(g, c, 0, &o, a.why);
		plan_optimum_free(&o);
	}
	plan_graph_free(g);
	return a;
}

/* In a process of its own; *mib: its largest size. */
static bool apart(const struct size *s, enum plan_collective c,
		  struct answer *a, double *mib)
{
	struct rusage usage;
	int ends[2], status;
	bool good;
	pid_t pid;

	if (pipe(ends))
		return false;
	pid = fork();
	if (!pid) {
		*a = measure(s, c);
		_exit(write(ends[1], a, sizeof(*a)) != sizeof(*a));
	}
	close(ends[1]);
	good = pid > 0 && read(ends[0], a, sizeof(*a)) == sizeof(*a);
	close(ends[0]);
	if (pid > 0 && wait4(pid, &status, 0, &usage) == pid)
		*mib = (double)usage.ru_maxrss / 1024;
	return good;
}

static void line(const struct size *s, const struct answer *a, double mib,
		 const struct size *last, double before)
{
	char growth[48] = "";

	if (last && last->pattern == s->pattern && before > 0)
		snprintf(growth, sizeof(growth), "%.1f (x %u)",
			 a->seconds / before, s->boxes * s->gpus /
			 (last->boxes * last->gpus));
	printf("%-10s %5u %4u x %-2u %3u  %6u  %8.3f %12s %6.0f %4llu %9.3f %9.3f %-6s %7llu %9llu\n",
	       kind_name(s->pattern),
	       s->boxes * s->gpus, s->boxes, s->gpus, s->switches, a->edges,
	       a->seconds, growth, mib, (unsigned long long)a->k, a->bound,
	       a->rate, !a->checked ? "WRONG" : a->proved ? "proved" : "-",
	       (unsigned long long)a->chunks,
	       (unsigned long long)a->transfers);
	if (*a->why)
		printf("# %s\n", a->why);
	fflush(stdout);
}

static int table(enum plan_collective c)
{
	struct answer a;
	double mib = 0, before = 0;
	bool good = true;
	size_t i;

	printf("%s: optima, GB/s are algbw\n", plan_collective_name(c));
	printf("fabric      GPUs  boxes  switches edges        s       growth    MiB    k     bound      rate        chunks  transfers\n");
	fflush(stdout);
	for (i = 0; i < NSIZES; i++) {
		if (!apart(&sizes[i], c, &a, &mib)) {
			printf("# %u GPUs: ended early\n",
			       sizes[i].boxes * sizes[i].gpus);
			good = false;
			continue;
		}
		line(&sizes[i], &a, mib, i ? &sizes[i - 1] : NULL, before);
		before = a.seconds;
		good = good && a.checked;
	}
	return !good;
}

static int graph(char **arg)
{
	struct size s = { 0, (uint32_t)atoi(arg[1]), (uint32_t)atoi(arg[2]),
			  (uint32_t)atoi(arg[3]) };
	struct plan_error e = { 0 };
	struct plan_graph *g;
	int err;

	while (s.pattern < FABRIC_PATTERNS &&
	       strcmp(arg[0], fabric_pattern_name(s.pattern)))
		s.pattern++;
	if (!s.boxes || !s.gpus || !s.switches ||
	    (uint64_t)s.boxes * s.gpus > PLAN_GPUS ||
	    s.switches > PLAN_NODES / 2)
		return 2;
	g = fabric(&s);
	err = plan_graphfile_write(g, stdout, &e);
	if (err)
		fprintf(stderr, "bench_scale: %s\n", e.text);
	plan_graph_free(g);
	return err != 0;
}

int main(int argc, char **argv)
{
	enum plan_collective c = PLAN_ALL_GATHER;

	if (argc == 6 && !strcmp(argv[1], "graph"))
		return graph(argv + 2);
	if (argc == 2)
		c = plan_collective_parse(argv[1]);
	if (argc > 2 || !c) {
		fprintf(stderr, "usage: bench_scale [COLLECTIVE | graph PATTERN BOXES GPUS SWITCHES]\n");
		return 2;
	}
	return table(c);
}
