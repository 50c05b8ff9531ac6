// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collectives of others: our drivers for them (peers/), under the launcher of
 * an MPI or by themselves, with default settings, on the processors that ours
 * are on. Where there are more ranks than processors, ranks that wait give
 * their processor away, as the documents of the two MPIs advise for that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"

struct driver {
	const char *program;
	const char *launchers[3];	/* in this order; none: needs none */
	const char *options[5];		/* of the launcher, after -n N */
	const char *version;		/* begins so */
	const char *run, *build;	/* what to install */
	void (*set_environment)(bool crowded);
};

static void set_if(bool yes, const char *name, const char *value)
{
	if (yes)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* Those of OpenMPI 4 and of 5; what one does not know it ignores. */
static void set_openmpi(bool crowded)
{
	if (!geteuid()) {
		setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
		setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
		setenv("PRTE_ALLOW_RUN_AS_ROOT", "1", 1);
		setenv("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	}
	set_if(crowded, "OMPI_MCA_mpi_yield_when_idle", "1");
}

static void set_mpich(bool crowded)
{
	set_if(crowded, "MPIR_CVAR_POLLS_BEFORE_YIELD", "1");
	set_if(crowded, "MPIR_CVAR_ENABLE_HEAVY_YIELD", "1");
}

static const struct driver openmpi = {
	.program = "fabrex-perf-openmpi",
	.launchers = { "mpirun.openmpi", "mpirun" },
	.options = { "--oversubscribe", "--bind-to", "none" },
	.version = "Open MPI",
	.run = "openmpi-bin", .build = "libopenmpi-dev",
	.set_environment = set_openmpi,
};

static const struct driver mpich = {
	.program = "fabrex-perf-mpich",
	.launchers = { "mpirun.mpich", "mpiexec.hydra" },
	.options = { "-bind-to", "none" },
	.version = "MPICH",
	.run = "mpich", .build = "libmpich-dev",
	.set_environment = set_mpich,
};

static const struct driver ucc = {
	.program = "fabrex-perf-ucc", .version = "UCC",
	.build = "UCC with its header files (Debian 13 has no package of it)",
};

static const struct driver gloo = {
	.program = "fabrex-perf-gloo", .version = "gloo",
	.build = "libgloo-dev, g++",
};

/* ---- start ------------------------------------------------------------- */

/* Those of the launcher, or none; false: there should be one. */
static bool find_launcher(const struct driver *d, char *path, size_t n,
			  char *why, size_t whyn)
{
	size_t i;

	path[0] = 0;
	for (i = 0; d->launchers[i]; i++)
		if (external_find(d->launchers[i], path, n))
			return true;
	if (i)
		snprintf(why, whyn, "no %s; install %s", d->launchers[0],
			 d->run);
	return !i;
}

static bool find_program(const struct driver *d, char *path, size_t n,
			 char *why, size_t whyn)
{
	if (external_find(d->program, path, n))
		return true;
	snprintf(why, whyn, "no %s; install %s and build fabrex-perf again",
		 d->program, d->build);
	return false;
}

/* First line of what was printed, after our sentence. */
static void add_output(const char *output, char *why, size_t n)
{
	FILE *f = fopen(output, "r");
	char line[160];
	size_t at;

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strlen(line) < 8 || line[0] == '-')
			continue;
		at = strlen(why);
		snprintf(why + at, n - at, ": %s", line);
		break;
	}
	if (f)
		fclose(f);
}

/* "mpirun -n 4 OPTIONS PROGRAM" or "PROGRAM 4". */
static void make_command(const struct driver *d, const char *launcher,
			 const char *program, const char *number,
			 const char *argv[12])
{
	size_t i, n = 0;

	if (launcher[0]) {
		argv[n++] = launcher;
		argv[n++] = "-n";
		argv[n++] = number;
		for (i = 0; d->options[i]; i++)
			argv[n++] = d->options[i];
	}
	argv[n++] = program;
	if (!launcher[0])
		argv[n++] = number;
	argv[n] = NULL;
}

/* NULL, or the group, if it is of the library that it is said to be. */
static struct group *start(const struct driver *d, const struct comparison *c,
			   uint32_t ranks, const char *const argv[],
			   const char *output, char *version, char *why,
			   size_t n)
{
	struct group *g = malloc(sizeof(*g));
	int ret;

	if (!g) {
		snprintf(why, n, "out of memory");
		return NULL;
	}
	ret = group_launch(g, argv[0], argv, ranks,
			   c->o.pin ? &c->cpus : NULL, output);
	if (!ret && !strncmp(g->text, d->version, strlen(d->version))) {
		snprintf(version, n, "%s", g->text);
		return g;
	}
	if (ret) {
		snprintf(why, n, "%s", g->text);
		add_output(output, why, n);
	} else {
		snprintf(why, n, "%s was built with another library: %.100s",
			 d->program, g->text);
		group_end(g);
	}
	free(g);
	return NULL;
}

static void *open_driver(const struct driver *d, const struct comparison *c,
			 uint32_t ranks, char *version, char *why, size_t n)
{
	char launcher[512], program[512], number[16];
	char output[] = "/tmp/fabrex-perf-XXXXXX";
	const char *argv[12];
	struct group *g;
	int fd;

	if (!find_launcher(d, launcher, sizeof(launcher), why, n) ||
	    !find_program(d, program, sizeof(program), why, n))
		return NULL;
	fd = mkstemp(output);
	if (fd < 0) {
		snprintf(why, n, "cannot write to /tmp: %s", strerror(errno));
		return NULL;
	}
	snprintf(number, sizeof(number), "%u", ranks);
	make_command(d, launcher, program, number, argv);
	if (d->set_environment)
		d->set_environment(ranks > c->cpus.n);
	g = start(d, c, ranks, argv, output, version, why, n);
	close(fd);
	unlink(output);
	return g;
}

/* ---- contenders -------------------------------------------------------- */

static void *open_openmpi(const struct comparison *c, uint32_t ranks,
			  char *version, char *why, size_t n)
{
	return open_driver(&openmpi, c, ranks, version, why, n);
}

static void *open_mpich(const struct comparison *c, uint32_t ranks,
			char *version, char *why, size_t n)
{
	return open_driver(&mpich, c, ranks, version, why, n);
}

static void *open_ucc(const struct comparison *c, uint32_t ranks,
		      char *version, char *why, size_t n)
{
	return open_driver(&ucc, c, ranks, version, why, n);
}

static void *open_gloo(const struct comparison *c, uint32_t ranks,
		       char *version, char *why, size_t n)
{
	return open_driver(&gloo, c, ranks, version, why, n);
}

const struct contender cmp_mpi = {
	.id = C_MPI, .name = "OpenMPI", .word = "openmpi",
	.open = open_openmpi, .measure = cmp_group_measure,
	.close = cmp_group_close, .first = 1,
};

const struct contender cmp_mpich = {
	.id = C_MPICH, .name = "MPICH", .word = "mpich", .open = open_mpich,
	.measure = cmp_group_measure, .close = cmp_group_close, .first = 1,
};

const struct contender cmp_ucc = {
	.id = C_UCC, .name = "UCC", .word = "ucc", .open = open_ucc,
	.measure = cmp_group_measure, .close = cmp_group_close, .first = 1,
};

const struct contender cmp_gloo = {
	.id = C_GLOO, .name = "gloo", .word = "gloo", .open = open_gloo,
	.measure = cmp_group_measure, .close = cmp_group_close, .first = 1,
};
