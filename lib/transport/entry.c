// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Entries of operations other than plain WRITE and READ, and the refusal of
 * operations that are wrong whatever the device.
 */
#include <string.h>

#include "transport/entry.h"

int fxi_entry_no_peer(const struct fabrex_queue *q)
{
	return fxi_queue_invalid(q, "peer numbers end at 65535; use one that fabrex_peer_find() or fabrex_mr_remote() has given");
}

static int no_region(const struct fabrex_queue *q)
{
	return fxi_queue_invalid(q, "operation without a local region; set mr");
}

/* All with a local and a remote region. */
static int put_remote(const struct fabrex_queue *q, struct fabrex_sqe *entry,
		      const struct fabrex_op *op, uint32_t imm,
		      uint64_t length, uint64_t last)
{
	if (!op->mr)
		return no_region(q);
	entry_put_head(entry, op, 0, imm);
	entry_put(entry, ENTRY_LKEY, op->mr->key);
	entry_put(entry, ENTRY_LOFFSET, op->offset);
	entry_put(entry, ENTRY_RKEY, op->rkey);
	entry_put(entry, ENTRY_ROFFSET, op->roffset);
	entry_put(entry, ENTRY_LENGTH, length);
	entry_put(entry, ENTRY_TARGET, last);
	return 0;
}

static int put_inline(const struct fabrex_queue *q, struct fabrex_sqe *entry,
		      const struct fabrex_op *op)
{
	uint64_t data[FABREX_INLINE_MAX / 8] = { 0 };
	entry_word_t *words = (entry_word_t *)(void *)entry;

	if (op->length > sizeof(data))
		return fxi_queue_invalid(q, "inline datagram of more than 24 bytes; send it from a region");
	if (op->length)
		memcpy(data, op->inline_data, op->length);
	entry_put_head(entry, op, FABREX_SQE_INLINE, op->imm);
	/* Bytes, not numbers: the same in any byte order. */
	words[ENTRY_LKEY] = data[0];
	words[ENTRY_LOFFSET] = data[1];
	words[ENTRY_RKEY] = data[2];
	return 0;
}

static int put_send(const struct fabrex_queue *q, struct fabrex_sqe *entry,
		    const struct fabrex_op *op)
{
	int ret = 0;

	if (op->inline_data || !op->length) {
		ret = put_inline(q, entry, op);
	} else if (!op->mr) {
		ret = no_region(q);
	} else {
		entry_put_head(entry, op, 0, op->imm);
		entry_put(entry, ENTRY_LKEY, op->mr->key);
		entry_put(entry, ENTRY_LOFFSET, op->offset);
		entry_put(entry, ENTRY_RKEY, 0);
	}
	entry_put(entry, ENTRY_ROFFSET, 0);
	entry_put(entry, ENTRY_LENGTH, op->length);
	entry_put(entry, ENTRY_TARGET, op->dest_key);
	return ret;
}

static int put_nop(struct fabrex_sqe *entry, const struct fabrex_op *op)
{
	int i;

	entry_put(entry, ENTRY_HEAD, (uint64_t)op->flags << 8);
	entry_put(entry, ENTRY_USER_DATA, op->user_data);
	for (i = ENTRY_LKEY; i <= ENTRY_TARGET; i++)
		entry_put(entry, i, 0);
	return 0;
}

int fxi_entry_put_other(const struct fabrex_queue *q, struct fabrex_sqe *entry,
			const struct fabrex_op *op)
{
	if (unlikely(op->flags & ~ENTRY_FLAGS))
		return fxi_queue_invalid(q, "unknown flags; use FABREX_SQE_FENCE, _QUIET and _CHECK");
	switch (op->opcode) {
	case FABREX_OP_WRITE:
	case FABREX_OP_READ:
		return no_region(q);
	case FABREX_OP_WRITE_IMM:
		return put_remote(q, entry, op, op->imm, op->length,
				  op->dest_key);
	case FABREX_OP_CMP_SWAP:
		return put_remote(q, entry, op, 0, op->operand, op->compare);
	case FABREX_OP_FETCH_ADD:
		return put_remote(q, entry, op, 0, op->operand, 0);
	case FABREX_OP_SEND:
		return put_send(q, entry, op);
	case FABREX_OP_NOP:
		return put_nop(entry, op);
	}
	return fxi_queue_invalid(q, "unknown opcode; use FABREX_OP_*");
}
