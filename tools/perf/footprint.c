// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrex-perf footprint: what a port and a communicator cost each rank, in
 * memory and in the time that making them takes, for growing numbers of ranks. Local
 * processes over loopback, whose fabrics have up to 256 ports; of more ranks
 * several share a process and its port.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fabrex/coll.h>

#include "perf.h"
#include "commands.h"
#include "environment.h"
#include "group.h"

#define SERVICE		"fabric:7703"
#define MAX_NUMBERS	16u
#define MAX_SHARED	4u		/* ranks in a process */
#define PORTS		256u
#define USE_BYTES	(64u << 10)
#define MEET_MS		20000u
#define MEET_RANK_MS	1000u		/* and for each rank */

struct footprint_options {
	uint32_t ranks[MAX_NUMBERS];
	uint32_t nranks;
	bool json, pin;
};

/* Of a process; kilobytes, as the system says them. */
struct usage {
	double rss, pss, anonymous, tables;
	double mappings, descriptors;
};

/* With the port opened, the communicator made, and used. */
enum moment { BEFORE, OPENED, MADE, USED, MOMENTS };

/* A process's, in memory that all have mapped. */
struct share {
	struct usage usage[MOMENTS];
};

struct arg {
	int parent;
	uint32_t ranks, processes;
	struct share *shares;
};

struct state {
	const struct arg *arg;
	uint32_t process;
	struct fabrex_port *port;
	struct job *jobs;
	uint32_t njobs;
};

/* One rank. */
struct job {
	struct state *state;
	uint32_t rank;
	struct fabrex_comm *comm;
	float *send, *recv;
	int ret;
	char why[200];
};

/* ---- what the system says ---------------------------------------------- */

/* "Pss:     1234 kB", the first of them; 0: not found. */
static double kilobytes(const char *path, const char *key)
{
	FILE *f = fopen(path, "r");
	size_t n = strlen(key);
	double value = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, n) && line[n] == ':') {
			value = strtod(line + n + 1, NULL);
			break;
		}
	if (f)
		fclose(f);
	return value;
}

static double count_lines(const char *path)
{
	FILE *f = fopen(path, "r");
	double n = 0;
	int c;

	while (f && (c = getc(f)) != EOF)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

static double count_entries(const char *path)
{
	DIR *d = opendir(path);
	double n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void read_usage(struct usage *u)
{
	u->rss = kilobytes("/proc/self/smaps_rollup", "Rss");
	u->pss = kilobytes("/proc/self/smaps_rollup", "Pss");
	u->anonymous = kilobytes("/proc/self/smaps_rollup", "Pss_Anon");
	u->tables = kilobytes("/proc/self/status", "VmPTE");
	u->mappings = count_lines("/proc/self/maps");
	u->descriptors = count_entries("/proc/self/fd");
}

/* ---- a process --------------------------------------------------------- */

static void *create(void *job)
{
	struct job *j = job;
	uint32_t ranks = j->state->arg->ranks;
	const struct fabrex_comm_attr attr = {
		.rank = j->rank, .size = ranks, .bootstrap = SERVICE,
		.timeout_ms = (int)(MEET_MS + MEET_RANK_MS * ranks),
	};

	j->ret = fabrex_comm_create(j->state->port, &attr, sizeof(attr),
				    &j->comm);
	if (j->ret)
		snprintf(j->why, sizeof(j->why), "%s",
			 fabrex_strerror_last());
	return NULL;
}

/* Messages of all kinds, so that what is made at first use is there. */
static void *use(void *job)
{
	struct job *j = job;
	size_t n = USE_BYTES / sizeof(float);

	j->ret = fabrex_barrier(j->comm);
	if (!j->ret)
		j->ret = fabrex_all_reduce(j->comm, j->send, j->recv, n,
					   FABREX_FLOAT32, FABREX_SUM);
	if (!j->ret)
		j->ret = fabrex_all_gather(j->comm, j->send, j->recv,
					   n / j->state->arg->ranks,
					   FABREX_FLOAT32);
	if (!j->ret)
		j->ret = fabrex_barrier(j->comm);
	if (j->ret)
		snprintf(j->why, sizeof(j->why), "%s",
			 fabrex_strerror_last());
	return NULL;
}

/* All ranks of the process at once. */
static void each(struct state *s, void *(*run)(void *job),
		 struct peer_reply *reply)
{
	pthread_t thread[MAX_SHARED];
	bool started[MAX_SHARED] = { false };
	uint32_t i;

	for (i = 1; i < s->njobs; i++) {
		started[i] = !pthread_create(&thread[i], NULL, run,
					     &s->jobs[i]);
		if (!started[i])
			s->jobs[i].ret = -EAGAIN;
	}
	run(&s->jobs[0]);
	for (i = 1; i < s->njobs; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
	for (i = 0; i < s->njobs && !reply->error; i++) {
		if (!s->jobs[i].ret)
			continue;
		reply->error = -s->jobs[i].ret;
		snprintf(reply->text, sizeof(reply->text), "rank %u: %s",
			 s->jobs[i].rank, s->jobs[i].why);
	}
}

static void open_port(struct state *s, struct peer_reply *reply)
{
	char name[64];
	int ret;

	snprintf(name, sizeof(name), "loopback:perf-%d/r%u", s->arg->parent,
		 s->process);
	ret = fabrex_open(name, &s->port);
	if (!ret)
		return;
	reply->error = -ret;
	snprintf(reply->text, sizeof(reply->text), "%s",
		 fabrex_strerror_last());
}

static void measure(void *state, const struct peer_request *q,
		    struct peer_reply *reply)
{
	struct state *s = state;
	struct usage *usage = s->arg->shares[s->process].usage;

	reply->begin_ns = now_ns();
	if (!strcmp(q->what, "open"))
		open_port(s, reply);
	else if (!strcmp(q->what, "create"))
		each(s, create, reply);
	else if (!strcmp(q->what, "use"))
		each(s, use, reply);
	else
		read_usage(&usage[q->bytes]);
	reply->end_ns = now_ns();
}

static void close_process(void *state)
{
	struct state *s = state;
	uint32_t i;

	for (i = 0; s->jobs && i < s->njobs; i++) {
		fabrex_comm_destroy(s->jobs[i].comm);
		free(s->jobs[i].send);
		free(s->jobs[i].recv);
	}
	free(s->jobs);
	fabrex_close(s->port);
	free(s);
}

static int make_jobs(struct state *s)
{
	const struct arg *a = s->arg;
	uint32_t i, rank;

	s->jobs = calloc(MAX_SHARED, sizeof(*s->jobs));
	for (rank = s->process; s->jobs && rank < a->ranks;
	     rank += a->processes) {
		i = s->njobs++;
		s->jobs[i].state = s;
		s->jobs[i].rank = rank;
		s->jobs[i].send = calloc(1, USE_BYTES);
		s->jobs[i].recv = calloc(1, USE_BYTES);
		if (!s->jobs[i].send || !s->jobs[i].recv)
			return -ENOMEM;
		memset(s->jobs[i].send, 1, USE_BYTES);
		memset(s->jobs[i].recv, 1, USE_BYTES);
	}
	return s->jobs ? 0 : -ENOMEM;
}

static void *open_process(const void *arg, uint32_t rank, uint32_t ranks,
			  struct peer_hello *hello)
{
	struct state *s = calloc(1, sizeof(*s));

	(void)ranks;
	if (!s)
		return NULL;
	s->arg = arg;
	s->process = rank;
	if (!make_jobs(s))
		return s;
	hello->error = ENOMEM;
	snprintf(hello->text, sizeof(hello->text), "out of memory");
	close_process(s);
	return NULL;
}

static const struct worker_kind worker = {
	.name = "fabrex", .open = open_process, .measure = measure,
	.close = close_process,
};

/* ---- all of them ------------------------------------------------------- */

struct footprint {
	uint32_t ranks, processes;
	double open, create, use; /* seconds, first begin to last end */
	struct usage of[MOMENTS]; /* for each rank, above what it was before */
};

static int ask(struct group *g, const char *what, enum moment moment,
	       double *seconds)
{
	struct peer_request q = { .bytes = moment, .iterations = 1 };

	snprintf(q.what, sizeof(q.what), "%s", what);
	return group_measure(g, &q, seconds);
}

/* Adds times @n how much more there is at a moment than before. */
static void add(const struct share *s, enum moment moment, double n,
		struct usage *u)
{
	const struct usage *b = &s->usage[BEFORE], *a = &s->usage[moment];

	u->rss += n * (a->rss - b->rss);
	u->pss += n * (a->pss - b->pss);
	u->anonymous += n * (a->anonymous - b->anonymous);
	u->tables += n * (a->tables - b->tables);
	u->mappings += n * (a->mappings - b->mappings);
	u->descriptors += n * (a->descriptors - b->descriptors);
}

static int measure_group(struct group *g, const struct arg *a,
			 struct footprint *r)
{
	const struct {
		const char *what;
		double *seconds;
	} steps[MOMENTS] = {
		{ NULL, NULL }, { "open", &r->open },
		{ "create", &r->create }, { "use", &r->use },
	};
	enum moment m;
	double looking;
	uint32_t i;
	int ret = 0;

	for (m = BEFORE; m < MOMENTS && !ret; m++) {
		if (steps[m].what)
			ret = ask(g, steps[m].what, m, steps[m].seconds);
		if (!ret)
			ret = ask(g, "look", m, &looking);
		for (i = 0; i < a->processes && !ret; i++)
			add(&a->shares[i], m, 1. / a->ranks, &r->of[m]);
	}
	return ret;
}

static int run(const struct footprint_options *o, uint32_t ranks,
	       struct footprint *r)
{
	uint32_t processes = ranks < PORTS ? ranks : PORTS;
	size_t bytes = processes * sizeof(struct share);
	struct arg a = {
		.parent = getpid(), .ranks = ranks, .processes = processes,
	};
	struct group *g = malloc(sizeof(*g));
	struct cpus cpus;
	int ret = -ENOMEM;

	memset(r, 0, sizeof(*r));
	r->ranks = ranks;
	r->processes = processes;
	a.shares = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cpus_allowed(&cpus);
	group_patience(processes);
	if (g && a.shares != MAP_FAILED)
		ret = group_fork(g, &worker, &a, processes,
				 o->pin ? &cpus : NULL);
	if (!ret) {
		ret = measure_group(g, &a, r);
		if (ret)
			fprintf(stderr, "fabrex-perf: %u ranks: %s\n", ranks,
				g->text);
		group_end(g);
	} else {
		fprintf(stderr, "fabrex-perf: %u ranks: %s\n", ranks,
			ret == -ENOMEM ? "out of memory" : g->text);
	}
	if (a.shares != MAP_FAILED)
		munmap(a.shares, bytes);
	free(g);
	return interrupted ? EXIT_INTERRUPTED : ret ? EXIT_SETUP : 0;
}

/* ---- results ----------------------------------------------------------- */

static void print_head(void)
{
	struct environment e;

	environment_read(&e);
	printf("# %s, processors %s, %s; %s; %s\n", e.processor, e.cpus,
	       e.kernel, e.library, e.date);
	printf("# open, set-up: of ports, of the communicator, from the first rank's call to the last one's return\n"
	       "# KiB for each rank: own: its part of the physical memory, where what is shared is divided by who shares it;\n"
	       "# seen: resident set; tables: page tables. Of the port, with the communicator, after its use.\n");
	printf("%5s %9s %8s %9s | %7s | %7s %7s %7s %8s %5s | %7s %7s %7s\n",
	       "ranks", "processes", "open ms", "set-up ms", "port", "own",
	       "seen", "tables", "mappings", "files", "own", "seen",
	       "tables");
}

static void print_row(const struct footprint *r)
{
	const struct usage *made = &r->of[MADE], *used = &r->of[USED];

	printf("%5u %9u %8.1f %9.1f | %7.0f | %7.0f %7.0f %7.0f %8.0f %5.0f | %7.0f %7.0f %7.0f\n",
	       r->ranks, r->processes, r->open * 1e3, r->create * 1e3,
	       r->of[OPENED].pss, made->pss, made->rss, made->tables,
	       made->mappings, made->descriptors, used->pss, used->rss,
	       used->tables);
	fflush(stdout);
}

static void json_usage(const char *name, const struct usage *u)
{
	printf(", \"%s\": {\"own_kib\": %.1f, \"anonymous_kib\": %.1f, \"resident_kib\": %.1f, \"page_tables_kib\": %.1f, \"mappings\": %.2f, \"descriptors\": %.2f}",
	       name, u->pss, u->anonymous, u->rss, u->tables, u->mappings,
	       u->descriptors);
}

static void json_row(const struct footprint *r, bool first)
{
	printf("%s\n  {\"ranks\": %u, \"processes\": %u, \"open_ms\": %.3f, \"setup_ms\": %.3f, \"use_ms\": %.3f",
	       first ? "" : ",", r->ranks, r->processes, r->open * 1e3,
	       r->create * 1e3, r->use * 1e3);
	json_usage("port", &r->of[OPENED]);
	json_usage("made", &r->of[MADE]);
	json_usage("used", &r->of[USED]);
	printf("}");
}

static int run_all(const struct footprint_options *o)
{
	struct environment e;
	struct footprint r;
	uint32_t i;
	int ret = 0;

	if (o->json) {
		environment_read(&e);
		printf("{");
		environment_json(&e, stdout);
		printf(", \"rows\": [");
	} else {
		print_head();
	}
	for (i = 0; i < o->nranks && !ret; i++) {
		ret = run(o, o->ranks[i], &r);
		if (!ret && o->json)
			json_row(&r, !i);
		else if (!ret)
			print_row(&r);
	}
	if (o->json)
		printf("\n]}\n");
	return ret;
}

/* ---- options ----------------------------------------------------------- */

static const struct option longs[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "json", no_argument, NULL, 'j' },
	{ "no-pin", no_argument, NULL, 'N' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void usage(FILE *f)
{
	fprintf(f, "usage: fabrex-perf footprint [OPTIONS]\n\n"
		"  -n, --ranks N[,N...]     ranks of the communicator (2 to %u)\n"
		"  -j, --json   --no-pin\n", GROUP_MAX);
}

static int parse(int argc, char **argv, struct footprint_options *o)
{
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "n:jh", longs, NULL)) >= 0) {
		if (c == '?')
			return EXIT_USAGE;
		if (c == 'h') {
			usage(stdout);
			return -1;
		}
		if (c == 'n' && !parse_ranks(optarg, GROUP_MAX, o->ranks,
					     MAX_NUMBERS, &o->nranks))
			return bad_value(longs, c, optarg);
		o->json |= c == 'j';
		o->pin &= c != 'N';
	}
	if (argc > optind) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!o->nranks)
		parse_ranks("2,4,8,16,32,64,128,256,512", GROUP_MAX, o->ranks,
			    MAX_NUMBERS, &o->nranks);
	return 0;
}

int footprint_main(int argc, char **argv)
{
	struct footprint_options o = { .pin = true };
	int ret = parse(argc, argv, &o);

	if (!ret)
		ret = run_all(&o);
	return ret < 0 ? 0 : ret;
}
