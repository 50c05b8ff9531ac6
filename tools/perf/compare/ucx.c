// SPDX-License-Identifier: GPL-2.0-only
/*
 * UCX: ucx_perftest between two processes, over shared memory and cross
 * memory attach alone, whatever network cards there are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

static const struct {
	const char *what, *test;
} tests[] = {
	{ "write_lat", "ucp_put_lat" },
	{ "send_lat", "tag_lat" },
	{ "write_bw", "ucp_put_bw" },
};

struct ucx {
	const struct cpus *cpus;
	bool mpi;		/* built to be started by mpirun, unless told */
};

static void *open_ucx(const struct comparison *c, uint32_t ranks,
		      char *version, char *why, size_t n)
{
	const char *info[] = { "ucx_info", "-v", NULL };
	const char *help[] = { "ucx_perftest", "-h", NULL };
	struct ucx *u;
	char path[512];

	(void)ranks;
	if (!external_find("ucx_perftest", path, sizeof(path))) {
		snprintf(why, n, "no ucx_perftest; install ucx-utils");
		return NULL;
	}
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->mpi = external_says(help, "-P <0|1>", path, sizeof(path));
	u->cpus = c->o.pin ? &c->cpus : NULL;
	snprintf(version, n, "UCX");
	if (external_says(info, "ersion", path, sizeof(path)))
		snprintf(version, n, "UCX, %.100s", path);
	return u;
}

/* Iterations, then typical, average and overall microseconds of an operation,
 * of which the last is ours to take; for latencies that is half of the way
 * there and back.
 */
static int parse(char *out, double *seconds, char *why, size_t n)
{
	char *line, *last = NULL, *rest;
	double us;

	for (line = strtok_r(out, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		if (line[strspn(line, " ")] >= '0' &&
		    line[strspn(line, " ")] <= '9')
			last = line;
	if (!last || sscanf(last, "%*u,%*f,%*f,%lf", &us) != 1) {
		snprintf(why, n, "ucx_perftest: no result in its output");
		return -EPROTO;
	}
	*seconds = us / 1e6;
	return 0;
}

static int measure_ucx(void *state, const struct row *row, uint64_t warmup,
		       uint64_t iterations, double *seconds, char *why,
		       size_t n)
{
	char port[8], size[24], count[24], warm[24], out[4096];
	const char *env[] = { "UCX_TLS=self,sm,cma", NULL };
	const struct ucx *u = state;
	const char *alone = u->mpi ? "-P" : NULL;
	const char *server[] = { "ucx_perftest", "-p", port, alone, "0", NULL };
	const char *client[] = {
		"ucx_perftest", "-p", port, "-v", "-f", "-t", NULL, "-s",
		size, "-n", count, "-w", warm, "127.0.0.1", alone, "0", NULL,
	};
	uint16_t number = external_port();
	unsigned int i;
	int ret;

	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		if (!strcmp(tests[i].what, row->what))
			client[6] = tests[i].test;
	snprintf(port, sizeof(port), "%u", number);
	snprintf(size, sizeof(size), "%llu", (unsigned long long)row->bytes);
	snprintf(count, sizeof(count), "%llu",
		 (unsigned long long)iterations);
	snprintf(warm, sizeof(warm), "%llu", (unsigned long long)warmup);
	ret = external_pair(u->cpus, server, client, env, number, out,
			    sizeof(out), why, n);
	return ret ? ret : parse(out, seconds, why, n);
}

const struct contender cmp_ucx = {
	.id = C_UCX, .name = "UCX", .word = "ucx", .open = open_ucx,
	.measure = measure_ucx, .close = free, .first = 100,
};
