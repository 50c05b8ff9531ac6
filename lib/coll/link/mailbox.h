/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mailboxes: what is where in one, and how this rank reaches those of others.
 * For lib/coll/link only.
 */
#ifndef LIB_COLL_MAILBOX_H
#define LIB_COLL_MAILBOX_H

#include "coll/link/link.h"

/*
 * Offsets into a mailbox. There is one alarm for all, and for each sender a
 * board, and for each sender and channel a line for credits, slots, and their
 * payloads. A mirror has the same layout, its parts being those for a receiver.
 */
struct mailbox_layout {
	uint64_t board, credit, slot, payload, total;
	uint32_t size;			/* of a payload */
};

#define MAILBOX_LINE	128u

struct mailbox_peer {
	uint8_t *base;			/* their mailbox; NULL: only by WRITE */
	volatile uint8_t *pio;		/* or by stores, from offset 0 on */
	struct fabrex_window *window;
	uint8_t *nowhere;		/* memory instead of it */
	uint32_t again;			/* messages that are sent once more */
	uint64_t again_moved;		/* comm->moved at the last look */
	bool asking;			/* a probe is under way */
	bool unreachable;		/* a probe has failed */
};

struct mailbox {
	struct mailbox_layout layout;
	struct fabrex_mr *mr, *mirror_mr;
	uint8_t *base, *mirror;
	struct fabrex_queue *queue;
	uint64_t full_ns;		/* since when it is full; 0: it is not */
	bool looking;			/* at who lives, while it is full */
	struct link_card *cards;
	struct mailbox_peer *peers;
};

/* @number: rank * LINK_CHANNELS + channel */
static inline uint64_t mailbox_board(const struct mailbox_layout *l,
				     uint32_t rank)
{
	return l->board + (uint64_t)rank * BOARD_BYTES;
}

static inline uint64_t mailbox_credit(const struct mailbox_layout *l,
				      uint32_t number)
{
	return l->credit + (uint64_t)number * MAILBOX_LINE;
}

static inline uint64_t mailbox_slot(const struct mailbox_layout *l,
				    uint32_t number, uint32_t slot)
{
	return l->slot + ((uint64_t)number * LINK_SLOTS + slot) *
			 sizeof(struct link_slot);
}

static inline uint64_t mailbox_payload(const struct mailbox_layout *l,
				       uint32_t number, uint32_t slot)
{
	return l->payload + ((uint64_t)number * LINK_SLOTS + slot) * l->size;
}

/*
 * link.c: a WRITE of @length bytes of @mr to @remote of a rank's mailbox. Waits
 * for room in the queue. What it was comes back with the completion.
 */
enum mailbox_write {
	WRITE_HEADER,			/* of a message; @detail: its slot */
	WRITE_FROM,			/* the same, of a caller's region */
	WRITE_AGAIN,			/* the same, once more */
	WRITE_PAYLOAD,
	WRITE_BOARD,			/* and credits, alarm */
	WRITE_PROBE,
	WRITE_NOTHING,			/* takes what failed before on itself */
};
struct mailbox_job {
	enum mailbox_write what;
	uint32_t number;		/* of the link; its rank is in it */
	uint32_t detail;
	const struct fabrex_mr *mr;
	uint64_t offset, remote, length;
	uint8_t flags;
};
int fxi_mailbox_write(struct fabrex_comm *comm, const struct mailbox_job *job);

#endif
