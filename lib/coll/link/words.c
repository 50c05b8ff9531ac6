// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where the words are that another rank stores in this rank's mailbox. Called by
 * all of link/, and through link.h.
 */
#include "coll/link/mailbox.h"

const uint64_t *fxi_link_board(const struct fabrex_comm *comm, uint32_t rank,
			       uint32_t offset)
{
	struct mailbox *box = comm->links->mailbox;

	return (const void *)(box->base + mailbox_board(&box->layout, rank) +
			      offset);
}
