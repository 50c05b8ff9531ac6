/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What can be said of an entry of a submission ring by looking at it. Pure
 * functions: used by op.c and, in user space, by driver/tests.
 */
#ifndef _ENGINE_CHECK_H
#define _ENGINE_CHECK_H

#include <linux/fabrex_ring.h>
#include <linux/types.h>

#define ENGINE_MAX_TRANSFER	(1u << 30)

/**
 * struct engine_entry - an entry as the engine works with it
 * @opcode:  FABREX_OP_*
 * @flags:   FABREX_SQE_*
 * @peer:    number
 * @imm:     immediate
 * @user_data: for the completion
 * @lkey:    of the local region
 * @loffset: into it
 * @rkey:    of the remote region
 * @roffset: into it
 * @operand: length, addend or new value
 * @dest:    key of a queue, or the expected value
 * @length:  bytes that are accessed at either end
 * @local:   right that the local region has to give, FABREX_ACCESS_* or 0
 * @inline_data: with FABREX_SQE_INLINE
 */
struct engine_entry {
	u8 opcode;
	u8 flags;
	u16 peer;
	u32 imm;
	u64 user_data;
	u64 lkey;
	u64 loffset;
	u64 rkey;
	u64 roffset;
	u64 operand;
	u64 dest;
	u64 length;
	u32 local;
	u8 inline_data[FABREX_INLINE_MAX];
};

static inline bool engine_is_atomic(u8 opcode)
{
	return opcode == FABREX_OP_FETCH_ADD || opcode == FABREX_OP_CMP_SWAP;
}

/* Right that the remote region has to give. */
static inline u32 engine_remote_right(u8 opcode)
{
	if (opcode == FABREX_OP_READ)
		return 1u << 1;
	return engine_is_atomic(opcode) ? 1u << 3 : 1u << 2;
}

/* Are bytes from @offset on inside @size, without wrap-around? */
static inline bool engine_covers(u64 size, u64 offset, u64 length)
{
	return offset <= size && length <= size - offset;
}

u8 engine_entry_check(const struct fabrex_sqe *sqe, struct engine_entry *entry);

#endif
