// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Payloads in device memory. A rank whose buffers are on a GPU offers slots
 * there, one for each slot of its mailbox on LINK_COLL: payloads that leave a
 * device then arrive on one, and only headers pass through the host's memory.
 * Called by operation/gpu.c, which owns the memory, and before something is sent
 * from a device; link.c finds what is known in links->offers.
 *
 * An offer is three words on each rank's board. They may arrive in any order,
 * so the last is a hash of the others. A rank that sends from a device waits
 * until it knows the receiver's offer; one that makes none declines as soon as
 * it finds the sender's. Ranks without devices tell each other nothing.
 */
#include <string.h>

#include "coll/link/mailbox.h"

#define DECLINED	1u	/* offer.check; 0: nothing was said yet */
#define SEED		0x64657669636521ull

static uint64_t check_of(const struct device_offer *offer)
{
	return fxi_hash(offer, offsetof(struct device_offer, check), SEED) |
	       DECLINED << 1;
}

bool fxi_link_device_known(const struct fabrex_comm *comm, uint32_t rank)
{
	struct device_offer *known = &comm->links->offers[rank], offer;

	if (likely(known->rkey))
		return true;
	fxi_link_board_copy(comm, rank, BOARD_AT_DEVICE, &offer,
			    sizeof(offer));
	if (offer.rkey && offer.check == check_of(&offer))
		*known = offer;
	return known->rkey || offer.check == DECLINED ||
	       fxi_failed(comm, rank);
}

uint64_t fxi_link_device_bytes(const struct fabrex_comm *comm)
{
	return (uint64_t)comm->size * LINK_SLOTS * comm->links->size;
}

int fxi_link_decline(struct fabrex_comm *comm, uint32_t rank)
{
	const struct device_offer none = { .check = DECLINED };
	struct link *link = fxi_link(comm, rank, LINK_COLL);

	if (likely(link->declined || comm->links->device_base))
		return 0;
	fxi_link_device_known(comm, rank);
	if (!comm->links->offers[rank].rkey || fxi_failed(comm, rank))
		return 0;
	link->declined = true;
	return fxi_link_post(comm, rank, BOARD_AT_DEVICE, &none, sizeof(none));
}

int fxi_link_offer(struct fabrex_comm *comm, const struct fabrex_mr *mr,
		   uint64_t offset, void *base)
{
	struct device_offer offer = {
		.rkey = fabrex_mr_key(mr), .offset = offset,
	};
	uint32_t rank;
	int ret = 0;

	offer.check = check_of(&offer);
	comm->links->device_base = base;
	for (rank = 0; rank < comm->size && !ret; rank++)
		if (rank != comm->rank && !fxi_failed(comm, rank) &&
		    !fxi_link_has_left(comm, rank))
			ret = fxi_link_post(comm, rank, BOARD_AT_DEVICE, &offer,
					    sizeof(offer));
	return ret;
}

void *fxi_link_device_slot(const struct fabrex_comm *comm, uint32_t rank)
{
	const struct link *link = fxi_link(comm, rank, LINK_COLL);

	return comm->links->device_base +
	       fxi_link_device_at(comm, rank, link->popped % LINK_SLOTS);
}

void *fxi_link_host_slot(const struct fabrex_comm *comm, uint32_t rank)
{
	const struct link *link = fxi_link(comm, rank, LINK_COLL);
	struct mailbox *box = comm->links->mailbox;

	return box->base + mailbox_payload(&box->layout, link->number,
					   link->popped % LINK_SLOTS);
}
