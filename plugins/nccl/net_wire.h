/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What two sides of a connection write into each other's memory. Nobody reads
 * across the fabric, and each polls only memory of its own:
 *
 *   the receiver	writes a struct net_slot into the sender's inbox when
 *			receives are posted: where the data goes; and then its
 *			number, which says that the slot is whole
 *   the sender		writes the data there, and then a word into the receiver's
 *			inbox: the number of the slot and the length
 *
 * Operations of one queue to one peer take effect in order, and aligned words of 8
 * bytes are never seen in halves (docs/draco.md, section 13). What says that others
 * have been done is fenced: it is not, if one of them has failed. Native byte order:
 * all hosts of a fabric have the same.
 */
#ifndef FABREX_NCCL_NET_WIRE_H
#define FABREX_NCCL_NET_WIRE_H

#include <fabrex/fabrex.h>
#include <stdbool.h>
#include <stdint.h>

#include "net_abi.h"

#define NET_SLOTS	NCCL_REQUESTS_MAX

struct net_target {
	uint64_t rkey;
	uint64_t roffset;
	uint64_t size;
	int64_t tag;
};

struct net_slot {
	uint64_t n;		/* targets, 1 to NCCL_RECEIVES_MAX */
	struct net_target target[NCCL_RECEIVES_MAX];
	uint64_t number;	/* of the group, from 1; written last */
	uint64_t reserved[6];
};

/*
 * A word, in one write: the number's low bits, one that is always set, the length.
 * The receiver clears it before it announces the receive.
 */
#define NET_WORD_NUMBER	48	/* bits below the number's */
#define NET_WORD_SET	(UINT64_C(1) << 47)
#define NET_BYTES_MAX	(UINT64_C(1) << 40)

static inline uint64_t net_word(uint64_t number, uint64_t size)
{
	return number << NET_WORD_NUMBER | NET_WORD_SET | size;
}

static inline uint64_t net_word_size(uint64_t word)
{
	return word & (NET_WORD_SET - 1);
}

static inline bool net_word_is(uint64_t word, uint64_t number)
{
	return word & NET_WORD_SET &&
	       word >> NET_WORD_NUMBER == (number & 0xffff);
}

struct net_send_inbox {
	uint64_t closed;	/* 1: the peer has closed its side */
	uint64_t reserved[7];
	struct net_slot slot[NET_SLOTS];
};

struct net_recv_inbox {
	uint64_t closed;
	uint64_t reserved[7];
	uint64_t word[NET_SLOTS][NCCL_RECEIVES_MAX];
};

/* What is written is first put together here, where the port reads it. */
struct net_send_outbox {
	uint64_t one;		/* 1 */
	uint64_t reserved[7];
	uint64_t word[NET_SLOTS][NCCL_RECEIVES_MAX];
};

struct net_recv_outbox {
	uint64_t one;
	uint64_t scratch;	/* of flushes and probes */
	uint64_t reserved[6];
	struct net_slot slot[NET_SLOTS];
};

#define NET_MAGIC	0x6363786e62667866ull	/* fxfbnxcc */
#define NET_VERSION	1u

/* NCCL passes it on to the other side; plain data, believed in nothing. */
struct net_handle {
	uint64_t magic;
	uint32_t version;
	uint32_t generation;	/* of the port */
	uint64_t service;	/* that the listener offers */
	uint64_t cookie;	/* only who has the handle knows it */
	char fabric[32];
	char port[32];
	uint64_t check;		/* of all before: a truncated one is found */
};

/* Exchanged when they connect. */
struct net_hello {
	uint64_t magic;
	uint32_t version;
	uint32_t sends;		/* 1: whoever says this sends */
	uint64_t cookie;
	struct fabrex_remote inbox;
	char port[32];
};

#endif
