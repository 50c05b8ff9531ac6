// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrex-perf-openmpi, fabrex-perf-mpich: an MPI for fabrex-perf compare, which
 * starts it under that MPI's mpirun. The source is the same for all of them.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "peer.h"

/* Of MPI, for the protocol. */
static int error(int ret)
{
	return ret == MPI_SUCCESS ? 0 : EIO;
}

static int count(const struct peer_rank *r)
{
	return (int)r->count;
}

/* ---- operations -------------------------------------------------------- */

static int all_reduce(struct peer_rank *r)
{
	return error(MPI_Allreduce(r->send, r->recv, count(r), MPI_FLOAT,
				   MPI_SUM, MPI_COMM_WORLD));
}

static int all_gather(struct peer_rank *r)
{
	return error(MPI_Allgather(r->send, count(r), MPI_FLOAT, r->recv,
				   count(r), MPI_FLOAT, MPI_COMM_WORLD));
}

static int reduce_scatter(struct peer_rank *r)
{
	return error(MPI_Reduce_scatter_block(r->send, r->recv, count(r),
					      MPI_FLOAT, MPI_SUM,
					      MPI_COMM_WORLD));
}

static int broadcast(struct peer_rank *r)
{
	return error(MPI_Bcast(r->send, count(r), MPI_FLOAT, 0,
			       MPI_COMM_WORLD));
}

static int reduce(struct peer_rank *r)
{
	return error(MPI_Reduce(r->send, r->recv, count(r), MPI_FLOAT, MPI_SUM,
				0, MPI_COMM_WORLD));
}

static int all_to_all(struct peer_rank *r)
{
	return error(MPI_Alltoall(r->send, count(r), MPI_FLOAT, r->recv,
				  count(r), MPI_FLOAT, MPI_COMM_WORLD));
}

static int barrier(struct peer_rank *r)
{
	(void)r;
	return error(MPI_Barrier(MPI_COMM_WORLD));
}

/* Every rank sends to the next and receives from the one before it. */
static int sendrecv(struct peer_rank *r)
{
	int next = (int)((r->rank + 1) % r->ranks);
	int before = (int)((r->rank + r->ranks - 1) % r->ranks);

	return error(MPI_Sendrecv(r->send, count(r), MPI_FLOAT, next, 1,
				  r->recv, count(r), MPI_FLOAT, before, 1,
				  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static int send_to(struct peer_rank *r, int other)
{
	return error(MPI_Send(r->send, (int)r->bytes, MPI_BYTE, other, 1,
			      MPI_COMM_WORLD));
}

static int recv_from(struct peer_rank *r, int other)
{
	return error(MPI_Recv(r->recv, (int)r->bytes, MPI_BYTE, other, 1,
			      MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* There and back again between ranks 0 and 1. */
static int send_lat(struct peer_rank *r)
{
	int ret;

	if (r->rank > 1)
		return 0;
	ret = r->rank ? recv_from(r, 0) : send_to(r, 1);
	if (ret)
		return ret;
	return r->rank ? send_to(r, 0) : recv_from(r, 1);
}

static const struct peer_operation operations[] = {
	{ "all_reduce", false, all_reduce, NULL },
	{ "all_gather", true, all_gather, NULL },
	{ "reduce_scatter", true, reduce_scatter, NULL },
	{ "broadcast", false, broadcast, NULL },
	{ "reduce", false, reduce, NULL },
	{ "all_to_all", true, all_to_all, NULL },
	{ "barrier", false, barrier, NULL },
	{ "sendrecv", false, sendrecv, NULL },
	{ "send_lat", false, send_lat, NULL },
};

static const struct peer_library library = {
	.program = "fabrex-perf-" PEER_NAME,
	.operations = operations,
	.count = sizeof(operations) / sizeof(*operations),
	.barrier = barrier,
};

/* "Open MPI v5.0.7", "MPICH Version: 4.2.1" */
static void hello(struct peer_rank *r)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int length;

	MPI_Get_library_version(version, &length);
	version[strcspn(version, ",\n")] = 0;
	while (strchr(version, '\t'))
		*strchr(version, '\t') = ' ';
	peer_hello(r, version, 0);
}

int main(int argc, char **argv)
{
	struct peer_rank r = { 0 };
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	r.rank = (uint32_t)rank;
	r.ranks = (uint32_t)ranks;
	peer_pin(&r);
	if (!peer_connect(&r, &library))
		MPI_Abort(MPI_COMM_WORLD, 1);
	hello(&r);
	peer_serve(&r, &library);
	MPI_Finalize();
	return 0;
}
