// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranks of a collective test: local processes that are started here, on a
 * fabric of their own, or one that a launcher has started.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll.h"

#define SERVICE	7702

int coll_fail(const struct coll_rank *rank, const char *what)
{
	char who[24] = "";

	if (rank->rank != FABREX_RANK_AUTO)
		snprintf(who, sizeof(who), "rank %u: ", rank->rank);
	fprintf(stderr, "fabrex-perf: %s%s: %s\n", who, what,
		fabrex_strerror_last());
	return EXIT_SETUP;
}

/* ---- one rank ---------------------------------------------------------- */

static int follow_schedule(struct coll_rank *rank)
{
	struct fabrex_schedule *schedule;
	int ret;

	if (!rank->o->schedule)
		return 0;
	if (fabrex_schedule_read(rank->o->schedule, &schedule))
		return coll_fail(rank, "--schedule");
	ret = fabrex_comm_schedule(rank->comm,
				   (enum fabrex_coll_kind)rank->o->kind->id,
				   schedule);
	fabrex_schedule_free(schedule);
	return ret ? coll_fail(rank, "--schedule") : 0;
}

static int meet(struct coll_rank *rank, const char *bootstrap)
{
	const struct coll_options *o = rank->o;
	const struct fabrex_comm_attr attr = {
		.rank = rank->rank, .size = rank->ranks,
		.timeout_ms = o->timeout_ms, .bootstrap = bootstrap,
		.death_ms = (uint32_t)o->death_ms,
		.algorithms = o->algorithms,
		.ports = rank->ports + 1, .nports = rank->nports - 1,
	};

	if (fabrex_comm_create(rank->port, &attr, sizeof(attr), &rank->comm))
		return coll_fail(rank, o->start || bootstrap ?
				 "ranks cannot meet" :
				 "ranks cannot connect; -n N starts local ones");
	rank->rank = fabrex_comm_rank(rank->comm);
	rank->ranks = fabrex_comm_size(rank->comm);
	return 0;
}

static int be_rank(struct coll_rank *rank, const char *device,
		   const char *bootstrap, int (*run)(struct coll_rank *rank))
{
	int ret = coll_ports_open(rank, device);

	if (!ret)
		ret = meet(rank, bootstrap);
	if (!ret)
		ret = follow_schedule(rank);
	if (!ret)
		ret = run(rank);
	fabrex_comm_destroy(rank->comm);
	coll_ports_close(rank);
	return ret;
}

/* ---- local processes --------------------------------------------------- */

/*
 * Ranks of one machine have a fabric of their own, unless a port is named. With
 * NULL fabrex_open() takes the one that FABREX_PORT names.
 */
static const char *local_device(const struct coll_options *o,
				const char *own)
{
	const char *named = getenv("FABREX_PORT");

	if (o->device)
		return o->device;
	return named && *named ? NULL : own;
}

__attribute__((noreturn))
static void be_local(const struct coll_options *o, uint32_t i, pid_t parent,
		     const struct cpus *cpus,
		     int (*run)(struct coll_rank *rank))
{
	struct coll_rank rank = { .o = o, .rank = i, .ranks = o->start };
	char device[64], bootstrap[32];
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (o->pin)
		cpus_pin(cpus, i);
	snprintf(device, sizeof(device), "loopback:perf-%d/r%u", parent, i);
	snprintf(bootstrap, sizeof(bootstrap), "fabric:%d", SERVICE);
	ret = be_rank(&rank, local_device(o, device),
		      o->bootstrap ? o->bootstrap : bootstrap, run);
	fflush(NULL);
	_exit(ret);
}

static int code_of(const pid_t *pid, uint32_t n, pid_t who, int status)
{
	uint32_t i;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	for (i = 0; i < n; i++)
		if (pid[i] == who)
			fprintf(stderr, "fabrex-perf: rank %u was killed by signal %d\n",
				i, WTERMSIG(status));
	return EXIT_FAILED;
}

/* What the first of them says that does not succeed. */
static int wait_all(const pid_t *pid, uint32_t n)
{
	uint32_t left = n, i;
	int status, code = 0, ret;
	pid_t who;

	while (left) {
		who = wait(&status);
		for (i = 0; i < n && who < 0 && interrupted; i++)
			kill(pid[i], SIGTERM);
		if (who < 0 && errno == EINTR)
			continue;
		if (who < 0)
			break;
		left--;
		ret = code_of(pid, n, who, status);
		code = code ? code : ret;
	}
	return interrupted ? EXIT_INTERRUPTED : code;
}

static int start_local(const struct coll_options *o,
		       int (*run)(struct coll_rank *rank))
{
	pid_t pid[GROUP_MAX], parent = getpid();
	struct cpus cpus;
	uint32_t i;

	cpus_allowed(&cpus);
	group_patience(o->start);
	fflush(NULL);
	for (i = 0; i < o->start; i++) {
		pid[i] = fork();
		if (!pid[i])
			be_local(o, i, parent, &cpus, run);
		if (pid[i] > 0)
			continue;
		fprintf(stderr, "fabrex-perf: cannot start rank %u: %s\n", i,
			strerror(errno));
		while (i--)
			kill(pid[i], SIGKILL);
		return EXIT_SETUP;
	}
	return wait_all(pid, o->start);
}

int coll_ranks_run(const struct coll_options *o,
		   int (*run)(struct coll_rank *rank))
{
	struct coll_rank rank = { .o = o, .rank = o->rank, .ranks = o->size };

	if (o->start)
		return start_local(o, run);
	return be_rank(&rank, o->device, o->bootstrap, run);
}
