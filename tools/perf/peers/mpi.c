// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrex-perf-mpi: the MPI that mpicc belongs to, for fabrex-perf compare,
 * which starts it under mpirun. FLOAT32 and SUM, out of place; measures back
 * to back iterations after a barrier, as osu-micro-benchmarks and ours do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "protocol.h"

#define PAGE	4096u

struct rank {
	int rank, ranks;
	int fd;
	float *send, *recv;
	uint64_t room;		/* bytes of each */
	uint64_t bytes;		/* of the request */
	int count;		/* the same in elements */
};

struct operation {
	const char *what;
	bool divided;		/* count is for each rank */
	int (*run)(struct rank *r);
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- operations -------------------------------------------------------- */

static int all_reduce(struct rank *r)
{
	return MPI_Allreduce(r->send, r->recv, r->count, MPI_FLOAT, MPI_SUM,
			     MPI_COMM_WORLD);
}

static int all_gather(struct rank *r)
{
	return MPI_Allgather(r->send, r->count, MPI_FLOAT, r->recv, r->count,
			     MPI_FLOAT, MPI_COMM_WORLD);
}

static int reduce_scatter(struct rank *r)
{
	return MPI_Reduce_scatter_block(r->send, r->recv, r->count, MPI_FLOAT,
					MPI_SUM, MPI_COMM_WORLD);
}

static int broadcast(struct rank *r)
{
	return MPI_Bcast(r->send, r->count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

static int reduce(struct rank *r)
{
	return MPI_Reduce(r->send, r->recv, r->count, MPI_FLOAT, MPI_SUM, 0,
			  MPI_COMM_WORLD);
}

static int all_to_all(struct rank *r)
{
	return MPI_Alltoall(r->send, r->count, MPI_FLOAT, r->recv, r->count,
			    MPI_FLOAT, MPI_COMM_WORLD);
}

static int barrier(struct rank *r)
{
	(void)r;
	return MPI_Barrier(MPI_COMM_WORLD);
}

/* Every rank sends to the next and receives from the one before it. */
static int sendrecv(struct rank *r)
{
	int next = (r->rank + 1) % r->ranks;
	int before = (r->rank + r->ranks - 1) % r->ranks;

	return MPI_Sendrecv(r->send, r->count, MPI_FLOAT, next, 1, r->recv,
			    r->count, MPI_FLOAT, before, 1, MPI_COMM_WORLD,
			    MPI_STATUS_IGNORE);
}

/* There and back again between ranks 0 and 1. */
static int send_lat(struct rank *r)
{
	int bytes = (int)r->bytes, ret;

	if (r->rank > 1)
		return MPI_SUCCESS;
	if (!r->rank) {
		ret = MPI_Send(r->send, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		return ret ? ret : MPI_Recv(r->recv, bytes, MPI_BYTE, 1, 1,
					    MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	ret = MPI_Recv(r->recv, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
		       MPI_STATUS_IGNORE);
	return ret ? ret : MPI_Send(r->send, bytes, MPI_BYTE, 0, 1,
				    MPI_COMM_WORLD);
}

static const struct operation operations[] = {
	{ "all_reduce", false, all_reduce },
	{ "all_gather", true, all_gather },
	{ "reduce_scatter", true, reduce_scatter },
	{ "broadcast", false, broadcast },
	{ "reduce", false, reduce },
	{ "all_to_all", true, all_to_all },
	{ "barrier", false, barrier },
	{ "sendrecv", false, sendrecv },
	{ "send_lat", false, send_lat },
};

static const struct operation *find(const char *what)
{
	size_t i;

	for (i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		if (!strcmp(operations[i].what, what))
			return &operations[i];
	return NULL;
}

/* ---- requests ---------------------------------------------------------- */

static int make_room(struct rank *r, uint64_t bytes)
{
	if (bytes <= r->room)
		return 0;
	free(r->send);
	free(r->recv);
	r->room = 0;
	if (posix_memalign((void **)&r->send, PAGE, bytes) ||
	    posix_memalign((void **)&r->recv, PAGE, bytes))
		return ENOMEM;
	memset(r->send, 0, bytes);
	memset(r->recv, 0, bytes);
	r->room = bytes;
	return 0;
}

static int repeat(struct rank *r, const struct operation *op, uint64_t n)
{
	int ret = MPI_SUCCESS;

	while (n-- && !ret)
		ret = op->run(r);
	return ret;
}

static int measure(struct rank *r, const struct peer_request *q,
		   struct peer_reply *reply)
{
	const struct operation *op = find(q->what);
	int ret;

	if (!op || q->bytes > 1ull << 30)
		return EOPNOTSUPP;
	if (make_room(r, q->bytes))
		return ENOMEM;
	r->bytes = q->bytes;
	r->count = (int)(q->bytes / sizeof(float) /
			 (op->divided ? (unsigned int)r->ranks : 1));
	ret = repeat(r, op, q->warmup);
	if (!ret)
		ret = MPI_Barrier(MPI_COMM_WORLD);
	reply->begin_ns = now_ns();
	if (!ret)
		ret = repeat(r, op, q->iterations);
	reply->end_ns = now_ns();
	return ret ? EIO : 0;
}

static void serve(struct rank *r)
{
	struct peer_request q;
	struct peer_reply reply;

	while (recv(r->fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q) &&
	       q.what[0]) {
		memset(&reply, 0, sizeof(reply));
		q.what[sizeof(q.what) - 1] = 0;
		reply.error = measure(r, &q, &reply);
		if (reply.error)
			snprintf(reply.text, sizeof(reply.text), "%s: %s",
				 q.what, strerror(reply.error));
		if (send(r->fd, &reply, sizeof(reply), MSG_NOSIGNAL) < 0)
			break;
	}
}

/* ---- start ------------------------------------------------------------- */

static int control(void)
{
	const char *name = getenv(PEER_CONTROL);
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	if (!name || strlen(name) + 1 >= sizeof(a.sun_path) || fd < 0)
		return -1;
	memcpy(a.sun_path + 1, name, strlen(name));
	if (connect(fd, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				strlen(name))))
		return -1;
	return fd;
}

/* The rank's processor out of "0,1,5". */
static void pin(int rank)
{
	const char *text = getenv(PEER_CPUS);
	int cpu[256], n = 0;
	cpu_set_t set;
	char *end;

	while (text && *text && n < 256) {
		cpu[n++] = (int)strtol(text, &end, 10);
		text = *end == ',' ? end + 1 : NULL;
	}
	if (!n)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu[rank % n], &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void hello(struct rank *r)
{
	struct peer_hello h = { .rank = (uint32_t)r->rank };
	char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length;

	MPI_Get_library_version(version, &length);
	version[strcspn(version, ",\n")] = 0;
	snprintf(h.text, sizeof(h.text), "%.200s", version);
	send(r->fd, &h, sizeof(h), MSG_NOSIGNAL);
}

int main(int argc, char **argv)
{
	struct rank r = { 0 };

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
	pin(r.rank);
	r.fd = control();
	if (r.fd < 0) {
		fprintf(stderr, "fabrex-perf-mpi: is started by fabrex-perf compare, under mpirun\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	hello(&r);
	serve(&r);
	MPI_Finalize();
	return 0;
}
