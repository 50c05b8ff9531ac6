// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Payloads in device memory. A rank whose buffers are on a GPU offers slots
 * there, one for each slot of its mailbox on LINK_COLL: payloads that leave a
 * device then arrive on one, and only headers pass through the host's memory.
 * Called by operation/gpu.c, which owns the memory, by operation/peer_copy.c,
 * which opens that of others, and before something is sent from a device;
 * link.c finds what is known in links->offers.
 *
 * An offer is some words on each rank's board. They may arrive in any order,
 * so the last is a hash of the others. A rank that sends from a device waits
 * until it knows the receiver's offer; one that makes none declines as soon as
 * it finds the sender's. Ranks without devices tell each other nothing.
 *
 * An offer has a key of the fabric, a handle by which processes of the same host
 * open the memory, or both. Freeing memory that another process has open is
 * undefined with both vendors' runtimes. So a sender tells the owner before it
 * opens it and when it has closed it, in one word of the owner's board, and the
 * owner waits for that when it destroys its communicator.
 */
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/debug.h"
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

	if (likely(known->check))
		return true;
	fxi_link_board_copy(comm, rank, BOARD_AT_DEVICE, &offer,
			    sizeof(offer));
	if (offer.check == check_of(&offer)) {
		offer.pci[sizeof(offer.pci) - 1] = 0;
		/* Its port, or ours, may have been down for a moment. */
		if (offer.entrance !=
		    comm->links->mailbox->peers[rank].entrance)
			offer.rkey = 0;
		*known = offer;
	}
	return known->check || offer.check == DECLINED ||
	       fxi_failed(comm, rank);
}

const struct device_offer *fxi_link_offered(const struct fabrex_comm *comm,
					    uint32_t rank)
{
	const struct device_offer *known = &comm->links->offers[rank];

	return known->check ? known : NULL;
}

uint64_t fxi_link_device_bytes(const struct fabrex_comm *comm)
{
	return (uint64_t)comm->size * LINK_SLOTS * comm->links->device_size;
}

int fxi_link_decline(struct fabrex_comm *comm, uint32_t rank)
{
	const struct device_offer none = { .check = DECLINED };
	struct link *link = fxi_link(comm, rank, LINK_COLL);

	if (likely(link->declined || comm->links->device_base))
		return 0;
	fxi_link_device_known(comm, rank);
	if (!comm->links->offers[rank].check || fxi_failed(comm, rank))
		return 0;
	link->declined = true;
	return fxi_link_post(comm, rank, BOARD_AT_DEVICE, &none, sizeof(none));
}

int fxi_link_device_register(struct fabrex_comm *comm, void *base,
			     uint64_t bytes,
			     struct fabrex_mr *mrs[LINK_ENTRANCES])
{
	const uint32_t rights = FABREX_MR_LOCAL_WRITE | FABREX_MR_REMOTE_WRITE;
	uint32_t i, n = comm->nports + comm->links->mailbox->nothers, some = 0;
	struct fabrex_port *port;
	int ret;

	for (i = 1; i < n; i++) {
		port = fxi_entrance_port(comm, i);
		ret = fabrex_mr_register(port, base, bytes, rights, &mrs[i]);
		some += !ret;
		if (!ret)
			continue;
		mrs[i] = NULL;
		fxi_debug(FXI_DEBUG_PATH, comm->rank,
			  "through port %s payloads arrive in host memory, as it does not reach the GPU's: %s",
			  port->attr.name, fabrex_strerror_last());
	}
	ret = fabrex_mr_register(comm->port, base, bytes, rights, &mrs[0]);
	if (ret)
		mrs[0] = NULL;
	return some ? 0 : ret;
}

static int offer_to(struct fabrex_comm *comm, uint32_t rank,
		    struct device_offer *offer,
		    struct fabrex_mr *const mrs[LINK_ENTRANCES])
{
	uint32_t used = fxi_entrances_used(comm, rank);

	offer->rkey = mrs[used] ? fabrex_mr_key(mrs[used]) : 0;
	offer->entrance = used;
	offer->check = check_of(offer);
	return fxi_link_post(comm, rank, BOARD_AT_DEVICE, offer,
			     sizeof(*offer));
}

int fxi_link_offer(struct fabrex_comm *comm, const struct device_offer *of,
		   struct fabrex_mr *const mrs[LINK_ENTRANCES], void *base)
{
	struct device_offer offer = *of;
	uint32_t rank;
	int ret = 0;

	comm->links->device_base = base;
	for (rank = 0; rank < comm->size && !ret; rank++)
		if (rank != comm->rank && !fxi_failed(comm, rank) &&
		    !fxi_link_has_left(comm, rank))
			ret = offer_to(comm, rank, &offer, mrs);
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

/* ---- opened by others -------------------------------------------------- */

int fxi_link_tell_opened(struct fabrex_comm *comm, uint32_t rank,
			 uint64_t state)
{
	if (fxi_link_has_left(comm, rank))
		return 0;
	return fxi_link_post(comm, rank, BOARD_AT_OPENED, &state,
			     sizeof(state));
}

static bool has_open(const struct fabrex_comm *comm, uint32_t rank)
{
	return __atomic_load_n(fxi_link_board(comm, rank, BOARD_AT_OPENED),
			       __ATOMIC_ACQUIRE) == LINK_OPEN;
}

/*
 * A process that is gone has nothing open. One that was only declared failed
 * may still have: the fabric is asked.
 */
bool fxi_link_may_free(struct fabrex_comm *comm, uint32_t *rank)
{
	uint64_t deadline = fxi_deadline((int)comm->death_ms);
	uint32_t i;

	for (i = 0; i < comm->size; i++) {
		while (i != comm->rank && has_open(comm, i) &&
		       fxi_link_probe(comm, i) != -ECONNRESET) {
			if (!fxi_remaining_ms(deadline)) {
				*rank = i;
				return false;
			}
			sched_yield();
		}
	}
	return true;
}
