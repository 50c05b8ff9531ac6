// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations from begin to end in one call, without a handle and without an
 * allocation. Public half: fabrex_all_reduce(3).
 */
#include "coll/coll.h"

/*
 * Inline, so that each field is stored once and not copied: a short message
 * waits for that.
 */
static inline int run(struct fabrex_comm *comm, uint32_t kind,
		      const void *send, void *recv, uint64_t count,
		      uint32_t type, uint32_t op, uint32_t root)
{
	struct fabrex_coll coll;

	fxi_coll_init(&coll, comm);
	coll.what.kind = kind;
	coll.what.type = type;
	coll.what.op = op;
	coll.what.root = root;
	coll.what.send = send;
	coll.what.recv = recv;
	coll.what.count = count;
	coll.what.reserved[0] = coll.what.reserved[1] = 0;
	coll.what.reserved[2] = 0;
	coll.what.send_counts = coll.what.send_displs = NULL;
	coll.what.recv_counts = coll.what.recv_displs = NULL;
	return fxi_coll_run(&coll);
}

EXPORT int fabrex_all_reduce(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type, enum fabrex_redop op)
{
	return run(comm, FABREX_ALL_REDUCE, send, recv, count, type, op, 0);
}

EXPORT int fabrex_all_gather(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type)
{
	return run(comm, FABREX_ALL_GATHER, send, recv, count, type, 0, 0);
}

EXPORT int fabrex_reduce_scatter(struct fabrex_comm *comm, const void *send,
				 void *recv, uint64_t count,
				 enum fabrex_datatype type,
				 enum fabrex_redop op)
{
	return run(comm, FABREX_REDUCE_SCATTER, send, recv, count, type, op, 0);
}

EXPORT int fabrex_broadcast(struct fabrex_comm *comm, const void *send,
			    void *recv, uint64_t count,
			    enum fabrex_datatype type, uint32_t root)
{
	return run(comm, FABREX_BROADCAST, send, recv, count, type, 0, root);
}

EXPORT int fabrex_reduce(struct fabrex_comm *comm, const void *send,
			 void *recv, uint64_t count, enum fabrex_datatype type,
			 enum fabrex_redop op, uint32_t root)
{
	return run(comm, FABREX_REDUCE, send, recv, count, type, op, root);
}

EXPORT int fabrex_all_to_all(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type)
{
	return run(comm, FABREX_ALL_TO_ALL, send, recv, count, type, 0, 0);
}

EXPORT int fabrex_barrier(struct fabrex_comm *comm)
{
	return run(comm, FABREX_BARRIER, NULL, NULL, 0, 0, 0, 0);
}

EXPORT int fabrex_send(struct fabrex_comm *comm, const void *buffer,
		       uint64_t count, enum fabrex_datatype type,
		       uint32_t rank)
{
	return run(comm, FABREX_SEND, buffer, NULL, count, type, 0, rank);
}

EXPORT int fabrex_recv(struct fabrex_comm *comm, void *buffer, uint64_t count,
		       enum fabrex_datatype type, uint32_t rank)
{
	return run(comm, FABREX_RECV, NULL, buffer, count, type, 0, rank);
}

/* ---- blocks of different lengths --------------------------------------- */

static int run_blocks(struct fabrex_comm *comm,
		      const struct fabrex_collective *what)
{
	struct fabrex_coll coll;

	fxi_coll_init(&coll, comm);
	coll.what = *what;
	return fxi_coll_run(&coll);
}

EXPORT int fabrex_all_gatherv(struct fabrex_comm *comm, const void *send,
			      uint64_t count, void *recv,
			      const uint64_t *counts, const uint64_t *displs,
			      enum fabrex_datatype type)
{
	const struct fabrex_collective what = {
		.kind = FABREX_ALL_GATHERV, .type = type, .send = send,
		.recv = recv, .count = count, .recv_counts = counts,
		.recv_displs = displs,
	};

	return run_blocks(comm, &what);
}

EXPORT int fabrex_reduce_scatterv(struct fabrex_comm *comm, const void *send,
				  void *recv, const uint64_t *counts,
				  enum fabrex_datatype type,
				  enum fabrex_redop op)
{
	const struct fabrex_collective what = {
		.kind = FABREX_REDUCE_SCATTERV, .type = type, .op = op,
		.send = send, .recv = recv, .recv_counts = counts,
	};

	return run_blocks(comm, &what);
}

EXPORT int fabrex_all_to_allv(struct fabrex_comm *comm, const void *send,
			      const uint64_t *send_counts,
			      const uint64_t *send_displs, void *recv,
			      const uint64_t *recv_counts,
			      const uint64_t *recv_displs,
			      enum fabrex_datatype type)
{
	const struct fabrex_collective what = {
		.kind = FABREX_ALL_TO_ALLV, .type = type, .send = send,
		.recv = recv, .send_counts = send_counts,
		.send_displs = send_displs, .recv_counts = recv_counts,
		.recv_displs = recv_displs,
	};

	return run_blocks(comm, &what);
}
