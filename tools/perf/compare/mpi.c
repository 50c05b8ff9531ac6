// SPDX-License-Identifier: GPL-2.0-only
/*
 * OpenMPI (or another MPI with an mpirun): our fabrex-perf-mpi under its
 * launcher, with its default settings, on the processors that ours are on.
 * Where there are more ranks than processors they yield while they wait, as
 * OpenMPI's documents advise for that.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"

#define PROGRAM	"fabrex-perf-mpi"

/* Those of OpenMPI 4 and of 5; what one does not know it ignores. */
static void set_environment(bool crowded)
{
	if (!geteuid()) {
		setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
		setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
		setenv("PRTE_ALLOW_RUN_AS_ROOT", "1", 1);
		setenv("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	}
	if (crowded)
		setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
	else
		unsetenv("OMPI_MCA_mpi_yield_when_idle");
}

static bool find_both(char *program, size_t n, char *why, size_t whyn)
{
	char launcher[512];

	if (!external_find("mpirun", launcher, sizeof(launcher))) {
		snprintf(why, whyn, "no mpirun; install openmpi-bin");
		return false;
	}
	if (external_find(PROGRAM, program, n))
		return true;
	snprintf(why, whyn, "no %s; install libopenmpi-dev and build fabrex-perf again",
		 PROGRAM);
	return false;
}

/* First line of what the launcher said, after our sentence. */
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

static void *open_group(const struct comparison *c, uint32_t ranks,
			char *version, char *why, size_t n)
{
	char program[512], number[16], output[] = "/tmp/fabrex-perf-XXXXXX";
	const char *argv[] = {
		"mpirun", "-n", number, "--oversubscribe", "--bind-to", "none",
		program, NULL,
	};
	bool crowded = ranks > c->cpus.n;
	struct group *g = NULL;
	int fd;

	if (!find_both(program, sizeof(program), why, n))
		return NULL;
	fd = mkstemp(output);
	if (fd >= 0)
		g = malloc(sizeof(*g));
	snprintf(number, sizeof(number), "%u", ranks);
	set_environment(crowded);
	if (!g) {
		snprintf(why, n, "cannot write to /tmp: %m");
	} else if (group_launch(g, "mpirun", argv, ranks,
				c->o.pin ? &c->cpus : NULL,
				output)) {
		snprintf(why, n, "%s", g->text);
		add_output(output, why, n);
		free(g);
		g = NULL;
	} else {
		snprintf(version, n, "%s", g->text);
	}
	if (fd >= 0) {
		close(fd);
		unlink(output);
	}
	return g;
}

const struct contender cmp_mpi = {
	.id = C_MPI, .name = "OpenMPI", .word = "openmpi", .open = open_group,
	.measure = cmp_group_measure, .close = cmp_group_close, .first = 1,
};
