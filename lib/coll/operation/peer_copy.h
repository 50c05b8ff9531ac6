/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Payloads from GPU to GPU of one host, by copies of the runtime: over a link of
 * a mesh where there is one. For algorithms that perform all of it on one GPU.
 */
#ifndef LIB_COLL_PEER_COPY_H
#define LIB_COLL_PEER_COPY_H

#include "coll/link/link.h"
#include "coll/operation/operation.h"

struct peer_flight {
	void *event;			/* of the device */
	uint64_t word;			/* of the message */
	uint32_t tag, length;
};

/* A rank, and the copies to it that have not ended, oldest at @first. */
struct peer {
	uint8_t *slots;			/* its slots here; NULL: not reached */
	bool asked;
	uint32_t number;		/* of those that are reached */
	uint32_t first, n;
	struct peer_flight flights[LINK_SLOTS];
};

struct peer_copies {
	struct device *device;		/* that copies */
	uint32_t flying;		/* copies that have not ended */
	uint32_t reached;		/* peers */
	struct peer peers[];		/* by rank */
};

/*
 * Does a payload to @rank go this way? Finds out when it is first asked about a
 * rank whose offer is known, and reports it.
 */
bool fxi_peer_reached(struct fabrex_coll *coll, uint32_t rank);
/*
 * Begins a copy of @length bytes, more than LINK_SMALL, from the GPU to a rank
 * that is reached; the message follows once the copy has ended. Until then
 * nothing else may be sent to that rank on LINK_COLL, and the memory must not
 * change. 0; -EAGAIN: no room; or a failure.
 */
int fxi_peer_copy(struct fabrex_coll *coll, uint32_t rank, uint32_t tag,
		  uint64_t word, const void *from, uint32_t length);
/* Sends the messages of copies that have ended. 1: some; 0; or a failure. */
int fxi_peer_copies_progress(struct fabrex_comm *comm);
/*
 * Waits for the copies. Their messages are not sent: the operation has failed.
 */
void fxi_peer_copies_end(struct fabrex_comm *comm);
/* Closes what was opened, and tells its owners: not while others wait for us. */
void fxi_peers_close(struct fabrex_comm *comm);

/* Are there copies that have not ended? Nothing wakes a rank when they do. */
static inline bool fxi_peer_copies_fly(const struct fabrex_comm *comm)
{
	return comm->peer_copies && comm->peer_copies->flying;
}

/* Copies to @rank that have not ended. */
static inline uint32_t fxi_peer_copying(const struct fabrex_comm *comm,
					uint32_t rank)
{
	return comm->peer_copies ? comm->peer_copies->peers[rank].n : 0;
}

#endif
