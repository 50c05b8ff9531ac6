/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mailboxes: what is where in one, and how this rank reaches those of others.
 * For lib/coll/link only.
 */
#ifndef LIB_COLL_MAILBOX_H
#define LIB_COLL_MAILBOX_H

#include "coll/link/link.h"

/*
 * Offsets into a mailbox. It has one alarm; for each sender a board; and for
 * each sender and channel a line of credits, slots, and their payloads. A
 * mirror has the same layout, by receiver instead of sender.
 */
struct mailbox_layout {
	uint64_t board, credit, slot, payload, total;
	uint32_t size;			/* of a payload */
};

#define MAILBOX_LINE	128u

/*
 * Each rank is written to through one of these, of the port that reaches it, in
 * order. A queue transfers one
 * payload after the other, at the rate of the links on its way, and to different
 * ranks different links lead. Headers to GPUs of this host, whose payloads take
 * other ways, do not wait for payloads to other hosts.
 */
#define LINK_QUEUES	9u		/* of a port */

/* What there is at each of the rank's ports. */
struct mailbox_port {
	struct fabrex_mr *mr, *mirror_mr;
	uint32_t first, nqueues;	/* of the mailbox's */
	struct fabrex_queue *bell;	/* the first, if it can ring; or NULL */
};

/* At another port of this host: entrances.c. */
struct mailbox_entrance {
	struct fabrex_port *port;
	struct fabrex_mr *mr;		/* the mailbox */
	struct fabrex_queue *queue;	/* for bells, or NULL */
};

struct mailbox_peer {
	struct link_entrance to;	/* the one that is used */
	const struct fabrex_mr *mirror_mr; /* what it is written from */
	uint32_t queue;			/* which of the mailbox's */
	uint8_t port;			/* of this rank, which reaches it */
	uint8_t entrance;		/* of its card: it is to */
	uint8_t *base;			/* their mailbox; NULL: only by WRITE */
	volatile uint8_t *pio;		/* or, beside that, by stores */
	struct fabrex_window *window;
	uint8_t *nowhere;		/* memory in place of a dead one's */
	uint32_t again;			/* messages being sent again */
	bool asking;			/* a probe is under way */
	bool unreachable;		/* a probe has failed */
};

struct mailbox {
	struct mailbox_layout layout;
	struct mailbox_port ports[COMM_PORTS];
	struct mailbox_entrance others[LINK_OTHERS];
	uint32_t nothers;
	uint8_t *base, *mirror;
	/* Of one port after the other; the first of each hears bells. */
	struct fabrex_queue *queues[COMM_PORTS * LINK_QUEUES];
	uint32_t nqueues;
	uint64_t full_ns[COMM_PORTS * LINK_QUEUES]; /* full since then; 0: not
						     * full
						     */
	bool looking;			/* for dead ranks, while it is full */
	struct link_card *cards;
	struct mailbox_peer *peers;
};

static inline const struct link_card *
mailbox_card(const struct fabrex_comm *comm, uint32_t rank)
{
	return &comm->links->mailbox->cards[rank];
}

static inline bool mailbox_is_near(const struct fabrex_comm *comm,
				   uint32_t rank)
{
	return mailbox_card(comm, rank)->host ==
	       mailbox_card(comm, comm->rank)->host;
}

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

/* ---- entrances.c ------------------------------------------------------- */

/*
 * Those at other ports, for the card: as many as there are and can be had. Where
 * the own port sees all of the others there is none.
 */
void fxi_entrances_open(struct fabrex_comm *comm, struct link_card *card);
void fxi_entrances_close(struct fabrex_comm *comm);
/* One of them on a card; @bell: a queue of its port, or NULL. */
void fxi_entrance_put(const struct fabrex_mr *mr,
		      const struct fabrex_queue *bell,
		      struct link_entrance *to);
/*
 * Through which port, and to which entrance of @rank, whose card is known, what
 * is sent goes from now on. @patience: until then, one that is down may come back;
 * @deadline: and links come up that have not been. -ENETUNREACH: there is none.
 */
int fxi_entrances_choose(struct fabrex_comm *comm, uint32_t rank,
			 uint64_t patience, uint64_t deadline);
/*
 * Which of this rank's own, by its place on the card, @rank uses: as it has said,
 * or until then, as is likely.
 */
uint32_t fxi_entrances_used(const struct fabrex_comm *comm, uint32_t rank);
/* The port of one of this rank's, by its place on the card. */
struct fabrex_port *fxi_entrance_port(const struct fabrex_comm *comm,
				      uint32_t i);
/* For bell.c: arm their queues, having taken what has come. */
void fxi_entrances_arm(struct fabrex_comm *comm);

/* ---- link.c ------------------------------------------------------------ */

/*
 * A WRITE of @length bytes of @mr to @remote of a rank's mailbox, and a
 * bell if it is a word of a board. Waits for room in the queue. The completion
 * returns @what, @number and @detail.
 */
enum mailbox_write {
	WRITE_HEADER,			/* of a message; @detail: its slot */
	WRITE_FROM,			/* the same, of a caller's region */
	WRITE_AGAIN,			/* the same, once more */
	WRITE_PAYLOAD,
	WRITE_BOARD,			/* and credits, alarm */
	WRITE_PROBE,
	WRITE_NOTHING,			/* absorbs an earlier failure */
	WRITE_BELL,			/* a datagram: bell.c */
	WRITE_BLAME,			/* of no bytes: whose memory is gone */
};
struct mailbox_job {
	enum mailbox_write what;
	uint32_t number;		/* of the link; its rank is in it */
	uint32_t detail;
	const struct fabrex_mr *mr;
	uint64_t offset, remote, length;
	uint64_t rkey;			/* another region's; 0: the mailbox's */
	uint8_t flags;
};
int fxi_mailbox_write(struct fabrex_comm *comm, const struct mailbox_job *job);

#endif
