// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations from begin to end in one call, without a handle and without an
 * allocation. Public half: fabrex_all_reduce(3).
 */
#include "coll/coll.h"

EXPORT int fabrex_all_reduce(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type, enum fabrex_redop op)
{
	const struct fabrex_collective what = {
		.kind = FABREX_ALL_REDUCE, .type = type, .op = op,
		.send = send, .recv = recv, .count = count,
	};

	return fxi_coll_run(comm, &what);
}

EXPORT int fabrex_all_gather(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type)
{
	const struct fabrex_collective what = {
		.kind = FABREX_ALL_GATHER, .type = type,
		.send = send, .recv = recv, .count = count,
	};

	return fxi_coll_run(comm, &what);
}

EXPORT int fabrex_reduce_scatter(struct fabrex_comm *comm, const void *send,
				 void *recv, uint64_t count,
				 enum fabrex_datatype type,
				 enum fabrex_redop op)
{
	const struct fabrex_collective what = {
		.kind = FABREX_REDUCE_SCATTER, .type = type, .op = op,
		.send = send, .recv = recv, .count = count,
	};

	return fxi_coll_run(comm, &what);
}

EXPORT int fabrex_broadcast(struct fabrex_comm *comm, const void *send,
			    void *recv, uint64_t count,
			    enum fabrex_datatype type, uint32_t root)
{
	const struct fabrex_collective what = {
		.kind = FABREX_BROADCAST, .type = type, .root = root,
		.send = send, .recv = recv, .count = count,
	};

	return fxi_coll_run(comm, &what);
}

EXPORT int fabrex_reduce(struct fabrex_comm *comm, const void *send,
			 void *recv, uint64_t count, enum fabrex_datatype type,
			 enum fabrex_redop op, uint32_t root)
{
	const struct fabrex_collective what = {
		.kind = FABREX_REDUCE, .type = type, .op = op, .root = root,
		.send = send, .recv = recv, .count = count,
	};

	return fxi_coll_run(comm, &what);
}

EXPORT int fabrex_all_to_all(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type)
{
	const struct fabrex_collective what = {
		.kind = FABREX_ALL_TO_ALL, .type = type,
		.send = send, .recv = recv, .count = count,
	};

	return fxi_coll_run(comm, &what);
}

EXPORT int fabrex_barrier(struct fabrex_comm *comm)
{
	const struct fabrex_collective what = { .kind = FABREX_BARRIER };

	return fxi_coll_run(comm, &what);
}

EXPORT int fabrex_send(struct fabrex_comm *comm, const void *buffer,
		       uint64_t count, enum fabrex_datatype type,
		       uint32_t rank)
{
	const struct fabrex_collective what = {
		.kind = FABREX_SEND, .type = type, .root = rank,
		.send = buffer, .count = count,
	};

	return fxi_coll_run(comm, &what);
}

EXPORT int fabrex_recv(struct fabrex_comm *comm, void *buffer, uint64_t count,
		       enum fabrex_datatype type, uint32_t rank)
{
	const struct fabrex_collective what = {
		.kind = FABREX_RECV, .type = type, .root = rank,
		.recv = buffer, .count = count,
	};

	return fxi_coll_run(comm, &what);
}
