/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An operation of the caller's as an entry of 64 bytes (struct fabrex_sqe). For
 * the queues of transports, which all execute entries.
 */
#ifndef LIB_TRANSPORT_ENTRY_H
#define LIB_TRANSPORT_ENTRY_H

#include <endian.h>
#include <linux/fabrex_ring.h>
#include "core/core.h"

/*
 * Operations of the calls that describe one by their arguments. Only what the
 * opcode uses is set: most of the cost of such a call would be the rest. Peer
 * numbers above 65535 have been refused before, by fxi_entry_no_peer().
 */
static inline void entry_op_move(struct fabrex_op *op, uint8_t opcode,
				 const struct fabrex_mr *mr, uint64_t offset,
				 const struct fabrex_remote *remote,
				 uint64_t roffset, uint64_t length,
				 uint8_t flags, uint64_t user_data)
{
	op->opcode = opcode;
	op->flags = flags;
	op->peer = (uint16_t)remote->peer;
	op->user_data = user_data;
	op->mr = mr;
	op->offset = offset;
	op->length = length;
	op->rkey = remote->rkey;
	op->roffset = roffset;
}

static inline void entry_op_send(struct fabrex_op *op, uint32_t peer,
				 uint64_t dest_key, const struct fabrex_mr *mr,
				 uint64_t offset, uint64_t length, uint32_t imm,
				 uint64_t user_data)
{
	op->opcode = FABREX_OP_SEND;
	op->flags = 0;
	op->peer = (uint16_t)peer;
	op->imm = imm;
	op->user_data = user_data;
	op->mr = mr;
	op->offset = offset;
	op->length = length;
	op->dest_key = dest_key;
	op->inline_data = NULL;
}

/* Entries have 16 bits for the number of a peer. -EINVAL. */
int fxi_entry_no_peer(const struct fabrex_queue *queue)
	__attribute__((cold));

#define ENTRY_FLAGS	(FABREX_SQE_FENCE | FABREX_SQE_QUIET | FABREX_SQE_CHECK)

/*
 * An entry as eight words, in the order of struct fabrex_sqe. Each is stored
 * once, and nothing is read back: a device may be looking.
 */
enum entry_word {
	ENTRY_HEAD, ENTRY_USER_DATA, ENTRY_LKEY, ENTRY_LOFFSET, ENTRY_RKEY,
	ENTRY_ROFFSET, ENTRY_LENGTH, ENTRY_TARGET,
};

typedef uint64_t __attribute__((may_alias)) entry_word_t;

static inline void entry_put(struct fabrex_sqe *entry, enum entry_word word,
			     uint64_t value)
{
	((entry_word_t *)(void *)entry)[word] = htole64(value);
}

/* Opcode, flags and peer have the same order in struct fabrex_op. */
static inline void entry_put_head(struct fabrex_sqe *entry,
				  const struct fabrex_op *op, uint8_t flags,
				  uint32_t imm)
{
	uint32_t low = op->opcode | (uint32_t)(op->flags | flags) << 8 |
		       (uint32_t)op->peer << 16;

	entry_put(entry, ENTRY_HEAD, low | (uint64_t)imm << 32);
	entry_put(entry, ENTRY_USER_DATA, op->user_data);
}

/* WRITE and READ, which need nothing beyond entry_put_move(). */
static inline bool entry_is_move(const struct fabrex_op *op)
{
	return (op->opcode == FABREX_OP_WRITE ||
		op->opcode == FABREX_OP_READ) &&
	       !(op->flags & ~ENTRY_FLAGS) && op->mr;
}

static inline void entry_put_move(struct fabrex_sqe *entry,
				  const struct fabrex_op *op)
{
	entry_put_head(entry, op, 0, 0);
	entry_put(entry, ENTRY_LKEY, op->mr->key);
	entry_put(entry, ENTRY_LOFFSET, op->offset);
	entry_put(entry, ENTRY_RKEY, op->rkey);
	entry_put(entry, ENTRY_ROFFSET, op->roffset);
	entry_put(entry, ENTRY_LENGTH, op->length);
	entry_put(entry, ENTRY_TARGET, 0);
}

/* entry.c: all the others, and what is wrong with them. */
int fxi_entry_put_other(const struct fabrex_queue *queue,
			struct fabrex_sqe *entry, const struct fabrex_op *op);

/* 0, or a negative errno with the message set; then *entry is undefined. */
static inline int fxi_entry_put(const struct fabrex_queue *queue,
				struct fabrex_sqe *entry,
				const struct fabrex_op *op)
{
	if (unlikely(!entry_is_move(op)))
		return fxi_entry_put_other(queue, entry, op);
	entry_put_move(entry, op);
	return 0;
}

#endif
