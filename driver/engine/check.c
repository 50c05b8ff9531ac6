// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks 1 and 2 of docs/draco.md, section 12: those of an entry by itself.
 * Called by op.c; without kernel services, so that driver/tests can run it in
 * user space.
 */
#include <linux/kernel.h>
#include <linux/string.h>
#include <asm/byteorder.h>

#include <linux/fabrex.h>

#include "check.h"

/* Fields that an operation has; the others must be 0. */
#define F_PEER		0x01
#define F_IMM		0x02
#define F_LOCAL		0x04	/* lkey, loffset */
#define F_REMOTE	0x08	/* rkey, roffset */
#define F_LENGTH	0x10
#define F_DEST		0x20
#define F_OPERAND	0x40	/* any 64 bits in the place of length */
#define F_COMPARE	0x80

#define F_MOVE		(F_PEER | F_LOCAL | F_REMOTE | F_LENGTH)
#define F_ATOMIC	(F_PEER | F_LOCAL | F_REMOTE | F_OPERAND)
#define FQ		(FABREX_SQE_FENCE | FABREX_SQE_QUIET)

struct engine_rule {
	u8 flags;
	u8 fields;
	u8 local;
};

static const struct engine_rule rules[] = {
	[FABREX_OP_NOP] = { FQ, 0, 0 },
	[FABREX_OP_WRITE] = { FQ | FABREX_SQE_CHECK, F_MOVE, 0 },
	[FABREX_OP_READ] = { FQ | FABREX_SQE_CHECK, F_MOVE,
			     FABREX_ACCESS_LOCAL_WRITE },
	[FABREX_OP_WRITE_IMM] = { FQ | FABREX_SQE_CHECK,
				  F_MOVE | F_IMM | F_DEST, 0 },
	[FABREX_OP_FETCH_ADD] = { FQ, F_ATOMIC, FABREX_ACCESS_LOCAL_WRITE },
	[FABREX_OP_CMP_SWAP] = { FQ, F_ATOMIC | F_COMPARE,
				 FABREX_ACCESS_LOCAL_WRITE },
	[FABREX_OP_SEND] = { FQ | FABREX_SQE_INLINE,
			     F_PEER | F_IMM | F_LOCAL | F_LENGTH | F_DEST, 0 },
};

static bool zero_where_due(const struct engine_entry *e, u8 fields)
{
	if (e->flags & FABREX_SQE_INLINE)
		return !e->roffset;
	return (fields & F_PEER || !e->peer) &&
	       (fields & F_IMM || !e->imm) &&
	       (fields & F_LOCAL || !(e->lkey | e->loffset)) &&
	       (fields & F_REMOTE || !(e->rkey | e->roffset)) &&
	       (fields & (F_LENGTH | F_OPERAND) || !e->operand) &&
	       (fields & (F_DEST | F_COMPARE) || !e->dest);
}

static void decode(const struct fabrex_sqe *sqe, struct engine_entry *e)
{
	e->opcode = sqe->opcode;
	e->flags = sqe->flags;
	e->peer = le16_to_cpu(sqe->peer);
	e->imm = le32_to_cpu(sqe->imm);
	e->user_data = le64_to_cpu(sqe->user_data);
	e->lkey = le64_to_cpu(sqe->lkey);
	e->loffset = le64_to_cpu(sqe->loffset);
	e->rkey = le64_to_cpu(sqe->rkey);
	e->roffset = le64_to_cpu(sqe->roffset);
	e->operand = le64_to_cpu(sqe->length);
	e->dest = le64_to_cpu(sqe->dest_key);
	memcpy(e->inline_data, sqe->inline_data, sizeof(e->inline_data));
	e->length = 0;
	e->local = 0;
}

/**
 * engine_entry_check() - decode an entry and check it by itself
 * @sqe:   copy of an entry of a submission ring
 * @entry: result, whatever is returned
 *
 * Context: Any.
 * Return: %FABREX_WC_OK, %FABREX_WC_BAD_OPCODE or %FABREX_WC_BAD_DESC
 */
u8 engine_entry_check(const struct fabrex_sqe *sqe, struct engine_entry *entry)
{
	const struct engine_rule *rule;

	decode(sqe, entry);
	if (entry->opcode >= ARRAY_SIZE(rules))
		return FABREX_WC_BAD_OPCODE;
	rule = &rules[entry->opcode];
	if (entry->flags & ~rule->flags || !zero_where_due(entry, rule->fields))
		return FABREX_WC_BAD_DESC;
	entry->length = rule->fields & F_LENGTH ? entry->operand : 0;
	if (entry->length > ENGINE_MAX_TRANSFER)
		return FABREX_WC_BAD_DESC;
	if (entry->flags & FABREX_SQE_INLINE &&
	    entry->length > FABREX_INLINE_MAX)
		return FABREX_WC_BAD_DESC;
	if (rule->fields & F_OPERAND) {
		entry->length = 8;
		if (entry->roffset & 7)
			return FABREX_WC_BAD_DESC;
	}
	entry->local = rule->local;
	return FABREX_WC_OK;
}
