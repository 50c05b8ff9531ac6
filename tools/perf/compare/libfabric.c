// SPDX-License-Identifier: GPL-2.0-only
/*
 * libfabric's provider for shared memory: fi_pingpong, and of its fabtests,
 * which many systems lack, fi_rma_bw.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

struct libfabric {
	const struct cpus *cpus;
	bool pingpong, rma;
};

static void *open_libfabric(const struct comparison *c, uint32_t ranks,
			    char *version, char *why, size_t n)
{
	const char *info[] = { "fi_info", "--version", NULL };
	struct libfabric *l = calloc(1, sizeof(*l));
	char path[512];

	(void)ranks;
	if (!l)
		return NULL;
	l->cpus = c->o.pin ? &c->cpus : NULL;
	l->pingpong = external_find("fi_pingpong", path, sizeof(path));
	l->rma = external_find("fi_rma_bw", path, sizeof(path));
	if (!l->pingpong && !l->rma) {
		snprintf(why, n, "no fi_pingpong; install libfabric-bin");
		free(l);
		return NULL;
	}
	snprintf(version, n, "libfabric");
	external_says(info, "libfabric", version, n);
	return l;
}

/* The last line: bytes, sent, acknowledged, total, time, MB/s, us, M/s. */
static int parse(const char *program, char *out, bool rma, double *seconds,
		 char *why, size_t n)
{
	char *line, *last = NULL, *rest;
	double us;

	for (line = strtok_r(out, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		if (*line >= '0' && *line <= '9')
			last = line;
	if (!last || sscanf(last, rma ? "%*s %*s %*s %*s %*s %lf" :
			    "%*s %*s %*s %*s %*s %*s %lf", &us) != 1) {
		snprintf(why, n, "%s: no result", program);
		return -EPROTO;
	}
	*seconds = us / 1e6;
	return 0;
}

static int ping_pong(const struct libfabric *l, char *size, char *count,
		     double *seconds, char *why, size_t n)
{
	char port[8], out[4096];
	const char *server[] = {
		"fi_pingpong", "-p", "shm", "-e", "rdm", "-B", port, "-I",
		count, "-S", size, NULL,
	};
	const char *client[] = {
		"fi_pingpong", "-p", "shm", "-e", "rdm", "-P", port, "-I",
		count, "-S", size, "127.0.0.1", NULL,
	};
	uint16_t number = external_port();
	int ret;

	snprintf(port, sizeof(port), "%u", number);
	ret = external_pair(l->cpus, server, client, NULL, number, out,
			    sizeof(out), why, n);
	return ret ? ret : parse("fi_pingpong", out, false, seconds, why, n);
}

static int rma(const struct libfabric *l, char *size, char *count, char *warm,
	       double *seconds, char *why, size_t n)
{
	char port[8], out[4096];
	const char *server[] = {
		"fi_rma_bw", "-p", "shm", "-e", "rdm", "-o", "write", "-B",
		port, "-I", count, "-w", warm, "-S", size, NULL,
	};
	const char *client[] = {
		"fi_rma_bw", "-p", "shm", "-e", "rdm", "-o", "write", "-P",
		port, "-I", count, "-w", warm, "-S", size, "127.0.0.1", NULL,
	};
	uint16_t number = external_port();
	int ret;

	snprintf(port, sizeof(port), "%u", number);
	ret = external_pair(l->cpus, server, client, NULL, number, out,
			    sizeof(out), why, n);
	return ret ? ret : parse("fi_rma_bw", out, true, seconds, why, n);
}

static int measure_libfabric(void *state, const struct row *row,
			     uint64_t warmup, uint64_t iterations,
			     double *seconds, char *why, size_t n)
{
	const struct libfabric *l = state;
	char size[24], count[24], warm[24];
	bool write = !strcmp(row->what, "write_bw");

	snprintf(size, sizeof(size), "%llu", (unsigned long long)row->bytes);
	snprintf(count, sizeof(count), "%llu", (unsigned long long)iterations);
	snprintf(warm, sizeof(warm), "%llu", (unsigned long long)warmup);
	if (write && l->rma)
		return rma(l, size, count, warm, seconds, why, n);
	if (!write && l->pingpong)
		return ping_pong(l, size, count, seconds, why, n);
	snprintf(why, n, write ? "no fi_rma_bw; it is in libfabric's fabtests" :
		 "no fi_pingpong; install libfabric-bin");
	return -ENOENT;
}

const struct contender cmp_libfabric = {
	.id = C_LIBFABRIC, .name = "libfabric shm", .word = "libfabric",
	.open = open_libfabric, .measure = measure_libfabric, .close = free,
	.first = 1000,
};
