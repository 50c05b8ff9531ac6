/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an operation is, wherever it is executed: by the thread that posts
 * (engine.c, remote.c) or by its target's service thread (assist.c).
 */
#ifndef LIB_LOOPBACK_OPERATION_H
#define LIB_LOOPBACK_OPERATION_H

#include <stdbool.h>
#include <fabrex/fabrex.h>

static inline bool loop_is_atomic(uint8_t opcode)
{
	return opcode == FABREX_OP_FETCH_ADD || opcode == FABREX_OP_CMP_SWAP;
}

/* The right to the remote region; 0: the opcode has none. */
static inline uint32_t loop_right_needed(uint8_t opcode)
{
	switch (opcode) {
	case FABREX_OP_WRITE:
	case FABREX_OP_WRITE_IMM:
		return FABREX_MR_REMOTE_WRITE;
	case FABREX_OP_READ:
		return FABREX_MR_REMOTE_READ;
	case FABREX_OP_FETCH_ADD:
	case FABREX_OP_CMP_SWAP:
		return FABREX_MR_REMOTE_ATOMIC;
	}
	return 0;
}

/* Returns what was there before. */
static inline uint64_t loop_atomic(uint8_t opcode, uint64_t *word,
				   uint64_t operand, uint64_t compare)
{
	uint64_t old = compare;

	if (opcode == FABREX_OP_FETCH_ADD)
		return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(word, &old, operand, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}

#endif
