/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the processes of a loopback fabric share: one segment of memory for each
 * port, mapped by all its peers. Layout and rules: docs/loopback.md. Only for
 * files in this directory. Native byte order, as all are on one machine.
 */
#ifndef LIB_LOOPBACK_SEGMENT_H
#define LIB_LOOPBACK_SEGMENT_H

#include <stdint.h>
#include <linux/fabrex_ring.h>

#define SEGMENT_MAGIC	0x3142584646424152ull
#define SEGMENT_VERSION	4u
#define SEGMENT_PEERS	256u	/* ports of a fabric */
#define SEGMENT_MRS	16384u
#define SEGMENT_QUEUES	1024u

/* segment_mr.kind: how a peer reaches the bytes */
enum {
	SEGMENT_MR_HEAP = 1,	/* place: offset into this segment */
	SEGMENT_MR_PROCESS,	/* place: address in the owner's process */
	SEGMENT_MR_FD,		/* place: offset into a file that the owner's
				 * service thread hands out (dma-buf, memfd)
				 */
	SEGMENT_MR_DEVICE,	/* the owner's service thread copies */
};

/*
 * One region; the owner writes it, peers read it. @key is stored last and
 * cleared first. The second line is the peers'.
 */
struct segment_mr {
	uint64_t key;		/* random << 16 | index; 0: none */
	uint64_t length;
	uint64_t place;
	uint32_t access;	/* FABREX_MR_* */
	uint32_t kind;
	uint64_t peers[SEGMENT_PEERS / 64];
	uint64_t windows[SEGMENT_PEERS / 64]; /* who has mapped it */
	uint64_t reserved[4];
} __attribute__((aligned(64)));

/*
 * Header of a receive cell. @seq is the free-running cell number + 1, stored
 * last. Up to 32 bytes of payload are in the header's own cache line.
 */
struct segment_cell {
	uint64_t seq;
	uint32_t length;	/* these in the order of struct fabrex_wc */
	uint32_t imm;
	uint32_t crc;
	uint32_t src_queue;
	uint16_t peer;
	uint8_t opcode;		/* FABREX_OP_RECV or _RECV_IMM */
	uint8_t status;
	uint32_t reserved;
	uint8_t small[32];
} __attribute__((aligned(64)));

#define SEGMENT_SMALL	32u

/*
 * A bounce buffer in the peer's heap, for one piece that the owner of a region
 * copies; the bytes follow. The peer sets @serial and @state. The owner takes
 * the piece by making it BUSY, if both are as in the request, copies, and
 * stores @state last. The peer takes it back in the same way: only one of them
 * succeeds, so a piece that was taken back is never copied.
 */
struct segment_piece {
	uint32_t state;		/* SEGMENT_PIECE_*, a futex */
	uint32_t serial;	/* of the request; if different, ignore it */
	uint32_t status;	/* FABREX_WC_* */
	uint32_t reserved;
	uint64_t result;	/* of an atomic */
	uint64_t padding[5];
};

enum {
	SEGMENT_PIECE_IDLE,
	SEGMENT_PIECE_ASKED,
	SEGMENT_PIECE_BUSY,	/* the owner has begun */
	SEGMENT_PIECE_DONE,
};

/* From ASKED to @to; only one can succeed. False: it is not ASKED any more. */
static inline int segment_piece_take(struct segment_piece *piece,
				     uint32_t serial, uint32_t to)
{
	typedef uint64_t __attribute__((may_alias)) both;
	const uint32_t from[2] = { SEGMENT_PIECE_ASKED, serial };
	const uint32_t then[2] = { to, serial };
	uint64_t old, new;

	__builtin_memcpy(&old, from, sizeof(old));
	__builtin_memcpy(&new, then, sizeof(new));
	return __atomic_compare_exchange_n((both *)&piece->state, &old, new, 0,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* One queue. Each group of fields has one writer and its own cache line. */
struct segment_queue {
	/* owner, when it is made; number is stored last */
	uint32_t number;	/* index + 1; 0: none */
	uint32_t random;	/* number and this are the queue's key */
	uint64_t service;
	uint32_t rq_entries;
	uint32_t cell_size;
	uint64_t cells;		/* offset: rq_entries struct segment_cell */
	uint64_t payload;	/* offset: rq_entries * cell_size bytes */

	/*
	 * owner, while it executes: odd from before a peer's key is checked
	 * until after the last access
	 */
	uint32_t active __attribute__((aligned(64)));

	/* senders */
	uint64_t lock __attribute__((aligned(64))); /* peer + 1, its generation
						     * above; 0: free
						     */
	uint32_t rq_tail;	/* cells filled */
	uint32_t rq_seen;	/* rq_head as last seen by a sender */

	/* owner, while it receives */
	uint32_t rq_head __attribute__((aligned(64))); /* cells given back */

	/* owner, before it sleeps; not in a line that changes all the time */
	uint32_t armed __attribute__((aligned(64))); /* 1: the next sender
						      * wakes the owner
						      */
} __attribute__((aligned(64)));

struct segment {
	uint64_t magic;
	uint32_t version;
	uint32_t number;	/* of the port */
	uint32_t generation;	/* random, not 0 */
	uint32_t nofence;	/* 1: owner orders by membarrier() */
	uint64_t size;		/* of the whole segment */
	uint64_t heap;		/* offset of what is allocated */
	uint32_t living;	/* a robust futex that the service thread holds:
				 * the kernel sets FUTEX_OWNER_DIED when the
				 * process ends or executes something else,
				 * before its number or its memory can be
				 * another's; 0: nobody knows
				 */
	uint32_t reserved;
	uint32_t mrs_used;	/* entries below may be in use */
	uint32_t queues_used;
	struct segment_queue queues[SEGMENT_QUEUES];
	struct segment_mr mrs[SEGMENT_MRS];
};

#endif
