// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpu-rank RANK RANKS BOOTSTRAP BYTES [SCHEDULE]: one rank of an all-reduce of
 * FLOAT32 in the memory of the first visible GPU, whose own engine checks the
 * result. It says "ready DEVICE ALGORITHM" and goes on at the next line of
 * standard input, says "seconds S", "crc32c X" and "checked", and ends at another
 * line: so that nothing but the all-reduce is between what is counted before and
 * after.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <fabrex/coll.h>

#include "../runtime/gpu.h"
#include "../runtime/hip.h"
#include "contribution.h"

#define BLOCK		CONTRIBUTION_BLOCK
#define WARM_UP		(64u << 10)	/* elements */
#define TO_DEVICE	1

struct rank {
	uint32_t rank, ranks;
	uint64_t count;
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	void *send, *recv;
};

static void need(bool good, const struct rank *r, const char *what,
		 const char *why)
{
	if (good)
		return;
	fprintf(stderr, "gpu-rank %u: %s: %s\n", r->rank, what, why);
	exit(1);
}

static void need_hip(int error, const struct rank *r, const char *what)
{
	need(!error, r, what, hipGetErrorString(error));
}

static void need_fabrex(int ret, const struct rank *r, const char *what)
{
	need(!ret, r, what, ret ? fabrex_strerror_last() : "");
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void wait_for_line(const struct rank *r)
{
	char line[16];

	need(fgets(line, sizeof(line), stdin), r, "standard input", "ended");
}

/* ---- memory ------------------------------------------------------------ */

static void fill(struct rank *r)
{
	float *table = malloc(CONTRIBUTION_TABLE * sizeof(*table));
	uint64_t at, n;
	uint32_t i;

	need(table, r, "contribution", "out of memory");
	for (i = 0; i < CONTRIBUTION_TABLE; i++)
		table[i] = (float)contribution_entry(r->rank, i) *
			   CONTRIBUTION_STEP;
	for (at = 0; at < r->count; at += n) {
		n = r->count - at < BLOCK ? r->count - at : BLOCK;
		need_hip(hipMemcpy((float *)r->send + at,
				   table + contribution_begin(r->rank,
							      at / BLOCK),
				   n * sizeof(*table), TO_DEVICE), r,
			 "contribution");
	}
	free(table);
}

static void open_gpu(struct rank *r)
{
	need_hip(hipInit(0), r, "HIP");
	need_hip(hipMalloc(&r->send, r->count * sizeof(float)), r, "memory");
	need_hip(hipMalloc(&r->recv, r->count * sizeof(float)), r, "memory");
	need_hip(hipMemset(r->recv, 0x5a, r->count * sizeof(float)), r,
		 "memory");
	fill(r);
}

/* ---- the all-reduce ---------------------------------------------------- */

static void meet(struct rank *r, const char *bootstrap, const char *file)
{
	const struct fabrex_comm_attr attr = {
		.rank = r->rank, .size = r->ranks, .bootstrap = bootstrap,
		.timeout_ms = 120000,
	};
	struct fabrex_schedule *schedule;

	need_fabrex(fabrex_open(NULL, &r->port), r, "port");
	need_fabrex(fabrex_comm_create(r->port, &attr, sizeof(attr), &r->comm),
		    r, "communicator");
	if (!file)
		return;
	need_fabrex(fabrex_schedule_read(file, &schedule), r, file);
	need_fabrex(fabrex_comm_schedule(r->comm, FABREX_ALL_REDUCE, schedule),
		    r, file);
	fabrex_schedule_free(schedule);
}

static void reduce(struct rank *r, uint64_t count)
{
	need_fabrex(fabrex_all_reduce(r->comm, r->send, r->recv, count,
				      FABREX_FLOAT32, FABREX_SUM), r,
		    "all-reduce");
}

static void say_ready(struct rank *r)
{
	char device[24], algorithm[48];

	need_hip(hipDeviceGetPCIBusId(device, sizeof(device), 0), r, "device");
	need_fabrex(fabrex_comm_algorithm(r->comm, FABREX_ALL_REDUCE,
					  r->count * sizeof(float), algorithm,
					  sizeof(algorithm)), r, "algorithm");
	printf("ready %s %s\n", device, algorithm);
	fflush(stdout);
}

static void measure(struct rank *r)
{
	uint32_t crc;
	double begin;

	need_fabrex(fabrex_barrier(r->comm), r, "barrier");
	begin = now();
	reduce(r, r->count);
	printf("seconds %.6f\n", now() - begin);
	need(gpu_checksum(GPU_AMD, r->recv, r->count * sizeof(float), &crc), r,
	     "checksum", "the GPU has no engine that computes it");
	printf("crc32c %08x\nchecked\n", crc);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rank r = { 0 };

	if (argc < 5 || argc > 6) {
		fprintf(stderr, "usage: gpu-rank RANK RANKS BOOTSTRAP BYTES [SCHEDULE]\n");
		return 1;
	}
	r.rank = (uint32_t)strtoul(argv[1], NULL, 0);
	r.ranks = (uint32_t)strtoul(argv[2], NULL, 0);
	r.count = strtoull(argv[4], NULL, 0) / sizeof(float);
	need(r.ranks <= CONTRIBUTION_MOST && r.count >= WARM_UP, &r,
	     "arguments", "too many ranks, or too few bytes");
	open_gpu(&r);
	meet(&r, argv[3], argc > 5 ? argv[5] : NULL);
	/* Memory is registered, and slots are offered. */
	reduce(&r, WARM_UP);
	say_ready(&r);
	wait_for_line(&r);
	measure(&r);
	wait_for_line(&r);
	fabrex_comm_destroy(r.comm);
	fabrex_close(r.port);
	hipFree(r.recv);
	hipFree(r.send);
	return 0;
}
