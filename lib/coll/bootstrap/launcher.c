// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rank, size and address from the environment that a launcher sets up. Called
 * by bootstrap.c.
 *
 * The address is a service on the fabric that all ranks share, so no host has
 * to be named. Its number is derived from what names the job, and from the
 * user, so that two jobs do not use the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/debug.h"
#include "coll/bootstrap/methods.h"

#define JOB_NAMES	4

struct launcher {
	const char *name;
	const char *rank;
	const char *size[2];		/* the first that is set */
	const char *local_size;
	const char *job[JOB_NAMES];	/* those that are set name the job */
};

/* In this order: a launcher may start another one. */
static const struct launcher launchers[] = {
	{ "FABREX_RANK", "FABREX_RANK", { "FABREX_SIZE" }, NULL, { NULL } },
	{ "mpirun of Open MPI", "OMPI_COMM_WORLD_RANK",
	  { "OMPI_COMM_WORLD_SIZE" }, "OMPI_COMM_WORLD_LOCAL_SIZE",
	  { "PMIX_NAMESPACE", "OMPI_MCA_orte_precondition_transports",
	    "OMPI_MCA_ess_base_jobid" } },
	/* A job of Slurm may run several of these at once: it is no name. */
	{ "mpiexec of MPICH or Intel MPI", "PMI_RANK", { "PMI_SIZE" },
	  "MPI_LOCALNRANKS", { "PMI_JOBID", "PALS_APID" } },
	{ "PMIx", "PMIX_RANK", { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" },
	  "SLURM_STEP_TASKS_PER_NODE",
	  { "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID" } },
	{ "srun of Slurm", "SLURM_PROCID",
	  { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" },
	  "SLURM_STEP_TASKS_PER_NODE", { "SLURM_JOB_ID", "SLURM_STEP_ID" } },
};

static bool number_of(const char *variable, uint32_t *number)
{
	const char *text = variable ? getenv(variable) : NULL;
	unsigned long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value >= UINT32_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}

static const struct launcher *find(void)
{
	size_t i;

	for (i = 0; i < sizeof(launchers) / sizeof(*launchers); i++)
		if (getenv(launchers[i].rank))
			return &launchers[i];
	return NULL;
}

/* ---- a job without a name ---------------------------------------------- */

/* Does the process have this variable? -1: unknown. */
static int has_variable(long pid, const char *variable)
{
	size_t n = strlen(variable), size = 0;
	char path[64], *line = NULL;
	int found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (!found && getdelim(&line, &size, 0, f) > 0)
		found = !strncmp(line, variable, n) && line[n] == '=';
	free(line);
	fclose(f);
	return found;
}

/* Parent, and when it was started in ticks since boot. */
static bool read_stat(long pid, long *parent, unsigned long long *start)
{
	char path[64], text[1024], *p;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	p = strrchr(text, ')');
	return p && sscanf(p + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			   parent, start) == 2;
}

/*
 * The launcher itself, or its proxy on this host: the first ancestor without a
 * rank. Only good for ranks that are all on one host.
 */
static bool hash_launcher(const struct launcher *l, uint64_t *hash)
{
	struct {
		long long pid;
		unsigned long long start;
	} who = { 0 };
	long pid = getppid(), parent;
	int has;

	while (pid > 0) {
		if (!read_stat(pid, &parent, &who.start))
			return false;
		has = has_variable(pid, l->rank);
		if (has <= 0)
			break;
		pid = parent;
	}
	who.pid = pid;
	*hash = fxi_hash(&who, sizeof(who), *hash);
	return pid > 0;
}

/* ---- what it says ------------------------------------------------------ */

/* False: it has no name, and its ranks may be on several hosts. */
static bool hash_job(const struct launcher *l, uint32_t size, uint64_t *hash)
{
	uint32_t local, found = 0;
	int i;

	for (i = 0; i < JOB_NAMES && l->job[i]; i++) {
		const char *text = getenv(l->job[i]);

		if (!text)
			continue;
		*hash = fxi_hash(text, strlen(text), *hash + 1);
		found++;
	}
	if (found)
		return true;
	return number_of(l->local_size, &local) && local == size &&
	       hash_launcher(l, hash);
}

static int make_address(struct fabrex_port *port, const struct launcher *l,
			struct launch *launch)
{
	const char *text = getenv("FABREX_BOOTSTRAP");
	uint64_t hash = getuid();

	if (text && *text && strcmp(text, "launcher")) {
		snprintf(launch->address, sizeof(launch->address), "%s", text);
		return 0;
	}
	if (!hash_job(l, launch->size, &hash))
		return fxi_error(EINVAL, "port %s: communicator: %s does not say which job this is; set FABREX_BOOTSTRAP, for example fabric:5000, the same for all its ranks",
				 port->attr.name, l->name);
	/* Outside of the numbers that people choose. */
	snprintf(launch->address, sizeof(launch->address), "fabric:%llu",
		 (unsigned long long)(hash | 1ull << 63));
	return 0;
}

int fxi_launch(struct fabrex_port *port, struct launch *launch, bool address)
{
	const struct launcher *l = find();

	memset(launch, 0, sizeof(*launch));
	if (!l)
		return fxi_error(EINVAL, "port %s: communicator: no launcher found; start with mpirun or srun, or set FABREX_RANK, FABREX_SIZE and FABREX_BOOTSTRAP, or give rank, size and bootstrap",
				 port->attr.name);
	if (!number_of(l->rank, &launch->rank) ||
	    (!number_of(l->size[0], &launch->size) &&
	     !number_of(l->size[1], &launch->size)) ||
	    launch->rank >= launch->size)
		return fxi_error(EINVAL, "port %s: communicator: %s: %s=%s and %s=%s make no sense; both are numbers, rank below size",
				 port->attr.name, l->name, l->rank,
				 getenv(l->rank), l->size[0],
				 getenv(l->size[0]) ? getenv(l->size[0]) : "");
	fxi_debug(FXI_DEBUG_BOOTSTRAP, launch->rank,
		  "the launcher is %s: %s is set; %u ranks", l->name, l->rank,
		  launch->size);
	if (launch->size == 1 || !address)
		return 0;
	return make_address(port, l, launch);
}
