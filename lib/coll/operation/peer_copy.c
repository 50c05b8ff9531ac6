// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Payloads that the runtime copies into slots of a rank whose GPU is in the same
 * host. The slots were offered with a handle (link/device_slots.c), which is
 * opened when something is first sent there. Copies are begun in streams of
 * ours, those to different GPUs in different ones, as each has a link of its own
 * in a mesh, and asked for later; nothing here waits, except at the end.
 *
 * What is opened stays so until the communicator is destroyed: closing it may
 * wait for all streams of the GPU, and so for operations that are enqueued. The
 * drivers keep memory that is open, also when its owner dies: a copy to a rank
 * that is dead writes into memory that nobody else has got.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/debug.h"
#include "coll/device/device.h"
#include "coll/failure/failure.h"
#include "coll/operation/gpu.h"
#include "coll/operation/peer_copy.h"

_Static_assert(LINK_HANDLE == DEVICE_HANDLE, "an offer holds a handle");

/* ---- opening ----------------------------------------------------------- */

static struct peer_copies *peers_of(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;

	if (!comm->peer_copies) {
		comm->peer_copies = calloc(1, sizeof(*comm->peer_copies) +
					      comm->size * sizeof(struct peer));
		if (comm->peer_copies)
			comm->peer_copies->device = fxi_coll_device(coll);
	}
	return comm->peer_copies;
}

/* Why not; NULL: it is open. */
static const char *open_slots(struct fabrex_coll *coll, uint32_t rank,
			      const struct device_offer *offer,
			      struct peer *p)
{
	uint32_t kind = coll->recv_kind ? coll->recv_kind : coll->send_kind;
	struct fabrex_comm *comm = coll->comm;
	void *slots;

	if (!fxi_link_is_near(comm, rank))
		return "it is in another host";
	if (!offer->kind)
		return "its memory cannot be opened by other processes";
	if (offer->kind != kind)
		return "it belongs to another runtime";
	if (fxi_link_tell_opened(comm, rank, LINK_OPEN))
		return "its rank cannot be told";
	if (fxi_device_attach(comm->peer_copies->device, offer->pci,
			      offer->handle, &slots)) {
		fxi_link_tell_opened(comm, rank, LINK_CLOSED);
		return fabrex_strerror_last();
	}
	p->slots = slots;
	p->number = comm->peer_copies->reached++;
	return NULL;
}

static void ask(struct fabrex_coll *coll, uint32_t rank, struct peer *p)
{
	const struct device_offer *offer = fxi_link_offered(coll->comm, rank);
	const char *why = "its rank offers no slots on a GPU";
	uint32_t own = coll->comm->rank;

	p->asked = true;
	if (offer)
		why = open_slots(coll, rank, offer, p);
	if (!why)
		fxi_debug(FXI_DEBUG_PATH, own,
			  "data on GPUs for rank %u: the runtime copies it to the GPU at %s",
			  rank, offer->pci);
	else if (offer && offer->rkey)
		fxi_debug(FXI_DEBUG_PATH, own,
			  "data on GPUs for rank %u: the fabric writes it to the GPU at %s; the runtime does not copy it: %s",
			  rank, offer->pci, why);
	else
		fxi_debug(FXI_DEBUG_PATH, own,
			  "data on GPUs for rank %u: through the host's memory there; the runtime does not copy it: %s",
			  rank, why);
}

bool fxi_peer_reached(struct fabrex_coll *coll, uint32_t rank)
{
	struct peer_copies *copies = peers_of(coll);

	if (!copies || copies->device != fxi_coll_device(coll))
		return false;
	if (unlikely(!copies->peers[rank].asked)) {
		if (!fxi_link_device_known(coll->comm, rank) ||
		    fxi_failed(coll->comm, rank))
			return false;
		ask(coll, rank, &copies->peers[rank]);
	}
	return copies->peers[rank].slots;
}

/* ---- copies ------------------------------------------------------------ */

int fxi_peer_copy(struct fabrex_coll *coll, uint32_t rank, uint32_t tag,
		  uint64_t word, const void *from, uint32_t length)
{
	struct peer_copies *copies = coll->comm->peer_copies;
	struct peer *p = &copies->peers[rank];
	struct peer_flight *f = &p->flights[(p->first + p->n) % LINK_SLOTS];
	/*
	 * Runtimes map streams to few queues of the hardware, of which the
	 * application's stream blocks one until the operation ends.
	 */
	bool blocks = coll->stream && coll->stream->gpu;
	uint64_t at;
	int ret;

	if (!fxi_link_place(coll->comm, rank, p->n, &at))
		return -EAGAIN;
	ret = fxi_device_push(copies->device, blocks ? 0 : p->number,
			      p->slots + at, from, length, &f->event);
	if (ret)
		return ret;
	f->tag = tag;
	f->word = word;
	f->length = length;
	p->n++;
	copies->flying++;
	coll->comm->moved++;
	return 0;
}

/* Because one of the two GPUs is gone, perhaps with the other rank. */
static int copy_failed(struct fabrex_comm *comm, uint32_t rank)
{
	char text[256];
	int ret;

	snprintf(text, sizeof(text), "%s", fabrex_strerror_last());
	ret = fxi_comm_suspect(comm);
	return ret ? ret : fxi_error(EIO, "communicator: rank %u: a copy to the GPU of rank %u failed: %s",
				     comm->rank, rank, text);
}

/* Copies to one rank end in their order. */
static int send_ended(struct fabrex_comm *comm, uint32_t rank)
{
	struct peer_copies *copies = comm->peer_copies;
	struct peer *p = &copies->peers[rank];
	const struct peer_flight *f;
	int ret, moved = 0;

	while (p->n) {
		f = &p->flights[p->first];
		ret = fxi_device_pushed(copies->device, f->event);
		if (ret < 0)
			return copy_failed(comm, rank);
		if (!ret)
			break;
		p->first = (p->first + 1) % LINK_SLOTS;
		p->n--;
		copies->flying--;
		ret = fxi_link_send_placed(comm, rank, f->tag, f->word,
					   f->length);
		if (ret)
			return ret;
		moved = 1;
	}
	return moved;
}

int fxi_peer_copies_progress(struct fabrex_comm *comm)
{
	struct peer_copies *copies = comm->peer_copies;
	uint32_t rank, left = copies ? copies->flying : 0;
	int ret, moved = 0;

	for (rank = 0; left; rank++) {
		if (!copies->peers[rank].n)
			continue;
		left -= copies->peers[rank].n;
		ret = send_ended(comm, rank);
		if (ret < 0)
			return ret;
		moved |= ret;
	}
	return moved;
}

/* ---- ending ------------------------------------------------------------ */

static void forget(struct peer_copies *copies, struct peer *p)
{
	for (; p->n; p->n--, copies->flying--) {
		fxi_device_event_put(copies->device,
				     p->flights[p->first].event);
		p->first = (p->first + 1) % LINK_SLOTS;
	}
}

void fxi_peer_copies_end(struct fabrex_comm *comm)
{
	struct peer_copies *copies = comm->peer_copies;
	uint32_t rank;

	if (!copies || !copies->flying)
		return;
	fxi_device_pushes_wait(copies->device);
	for (rank = 0; rank < comm->size; rank++)
		forget(copies, &copies->peers[rank]);
}

void fxi_peers_close(struct fabrex_comm *comm)
{
	struct peer_copies *copies = comm->peer_copies;
	uint32_t rank;

	if (!copies)
		return;
	fxi_peer_copies_end(comm);
	for (rank = 0; rank < comm->size; rank++) {
		struct peer *p = &copies->peers[rank];

		if (!p->slots)
			continue;
		fxi_device_detach(copies->device, p->slots);
		fxi_link_tell_opened(comm, rank, LINK_CLOSED);
	}
	free(copies);
	comm->peer_copies = NULL;
}
