// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages over loopback that do not fit into a cell, up to FI_FABREX_COPY bytes: the
 * sender copies them into memory that the peer has mapped, and the receiver copies
 * them from there. For so few bytes that takes less time than a system call that
 * reads another process's memory. What is longer, or finds no room, is fetched
 * from where it is. Each peer has memory of its own, so that none can read
 * what is for another. Used by rendezvous.c; requests give the room back at their
 * end (request.c), and it is closed with the peer (peer.c).
 */
#include <stdlib.h>

#include "message.h"

#define SLABS		8u	/* bits of struct copies.used */
#define SLAB		16384u

/* It is opened when it is first needed. */
static bool open_room(struct peer *peer)
{
	struct endpoint *ep = peer->ep;

	if (peer->copies.mr)
		return true;
	if (fabrex_mr_alloc(ep->domain->port, SLABS * SLAB,
			    FABREX_MR_REMOTE_READ, &peer->copies.mr)) {
		INFO(FI_LOG_EP_CTRL, "long messages are not copied: %s\n",
		     fabrex_strerror_last());
		ep->copy_max = 0;
		return false;
	}
	return true;
}

/* As many as follow each other; 0: there are not. */
static uint32_t take(struct copies *copies, unsigned int n, unsigned int *first)
{
	const uint32_t all = (UINT32_C(1) << n) - 1;
	unsigned int i;

	for (i = 0; i + n <= SLABS; i++) {
		if (copies->used & all << i)
			continue;
		copies->used |= all << i;
		*first = i;
		return all << i;
	}
	return 0;
}

bool copy_message(struct request *request)
{
	struct copies *copies = &request->peer->copies;
	unsigned int n, first;

	if (request->length > request->ep->copy_max ||
	    request->message.direct || !open_room(request->peer))
		return false;
	n = (unsigned int)((request->length + SLAB - 1) / SLAB);
	request->slabs = take(copies, n, &first);
	if (!request->slabs)
		return false;
	request->local.mr = copies->mr;
	request->local.offset = (uint64_t)first * SLAB;
	message_gather(request, (char *)fabrex_mr_addr(copies->mr) +
				request->local.offset);
	/* From now on there is one buffer, and nothing else of it is used. */
	free(request->vector);
	request->vector = NULL;
	return true;
}
