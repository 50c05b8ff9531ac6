// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of ring entries: for every opcode, every flag and every field, what
 * docs/draco.md, section 12, says. Its table is repeated here by hand. Run by make
 * check.
 */
#include <string.h>

#include <linux/kernel.h>
#include <asm/byteorder.h>

#include "../engine/check.h"
#include "tap.h"

/* A letter for each field that may be other than 0: p peer, m imm, l lkey, o loffset,
 * r rkey, s roffset, n length, d dest_key.
 */
static const struct {
	u8 opcode;
	u8 flags;
	const char *fields;
} table[] = {
	{ FABREX_OP_NOP, 0x3, "" },
	{ FABREX_OP_WRITE, 0x7, "plorsn" },
	{ FABREX_OP_READ, 0x7, "plorsn" },
	{ FABREX_OP_WRITE_IMM, 0x7, "pmlorsnd" },
	{ FABREX_OP_FETCH_ADD, 0x3, "plorsn" },
	{ FABREX_OP_CMP_SWAP, 0x3, "plorsnd" },
	{ FABREX_OP_SEND, 0xb, "pmlond" },
};

static void set(struct fabrex_sqe *sqe, char field)
{
	switch (field) {
	case 'p':
		sqe->peer = cpu_to_le16(8);
		break;
	case 'm':
		sqe->imm = cpu_to_le32(8);
		break;
	case 'l':
		sqe->lkey = cpu_to_le64(8);
		break;
	case 'o':
		sqe->loffset = cpu_to_le64(8);
		break;
	case 'r':
		sqe->rkey = cpu_to_le64(8);
		break;
	case 's':
		sqe->roffset = cpu_to_le64(8);
		break;
	case 'n':
		sqe->length = cpu_to_le64(8);
		break;
	case 'd':
		sqe->dest_key = cpu_to_le64(8);
		break;
	}
}

TEST(fields_that_an_operation_does_not_have_are_zero)
{
	struct engine_entry entry;
	const char *field;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		for (field = "pmlorsnd"; *field; field++) {
			struct fabrex_sqe sqe = { .opcode = table[i].opcode };

			set(&sqe, *field);
			CHECK_EQ(engine_entry_check(&sqe, &entry),
				 strchr(table[i].fields, *field) ?
				 FABREX_WC_OK : FABREX_WC_BAD_DESC);
		}
	}
}

TEST(flags)
{
	struct engine_entry entry;
	unsigned int flags;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		for (flags = 0; flags < 256; flags++) {
			struct fabrex_sqe sqe = {
				.opcode = table[i].opcode, .flags = flags,
			};

			CHECK_EQ(engine_entry_check(&sqe, &entry),
				 flags & ~table[i].flags ?
				 FABREX_WC_BAD_DESC : FABREX_WC_OK);
			CHECK_EQ(entry.flags, flags);
		}
	}
}

TEST(opcodes)
{
	struct engine_entry entry;
	unsigned int op;

	for (op = FABREX_OP_SEND + 1; op < 256; op++) {
		struct fabrex_sqe sqe = { .opcode = op };

		CHECK_EQ(engine_entry_check(&sqe, &entry),
			 FABREX_WC_BAD_OPCODE);
	}
}

TEST(lengths)
{
	static const u8 moves[] = {
		FABREX_OP_WRITE, FABREX_OP_READ, FABREX_OP_WRITE_IMM,
		FABREX_OP_SEND,
	};
	struct engine_entry entry;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(moves); i++) {
		struct fabrex_sqe sqe = { .opcode = moves[i] };

		sqe.length = cpu_to_le64(ENGINE_MAX_TRANSFER);
		CHECK_EQ(engine_entry_check(&sqe, &entry), FABREX_WC_OK);
		CHECK_EQ(entry.length, ENGINE_MAX_TRANSFER);
		sqe.length = cpu_to_le64(ENGINE_MAX_TRANSFER + 1ull);
		CHECK_EQ(engine_entry_check(&sqe, &entry), FABREX_WC_BAD_DESC);
		sqe.length = cpu_to_le64(~0ull);
		CHECK_EQ(engine_entry_check(&sqe, &entry), FABREX_WC_BAD_DESC);
	}
}

/* Where keys would be, there is data. */
TEST(inline_datagrams)
{
	struct fabrex_sqe sqe = {
		.opcode = FABREX_OP_SEND, .flags = FABREX_SQE_INLINE,
		.length = cpu_to_le64(FABREX_INLINE_MAX),
	};
	struct engine_entry entry;

	memset(sqe.inline_data, 0xa5, sizeof(sqe.inline_data));
	CHECK_EQ(engine_entry_check(&sqe, &entry), FABREX_WC_OK);
	CHECK(!memcmp(entry.inline_data, sqe.inline_data,
		      sizeof(sqe.inline_data)));
	sqe.roffset = cpu_to_le64(1);
	CHECK_EQ(engine_entry_check(&sqe, &entry), FABREX_WC_BAD_DESC);
	sqe.roffset = 0;
	sqe.length = cpu_to_le64(FABREX_INLINE_MAX + 1);
	CHECK_EQ(engine_entry_check(&sqe, &entry), FABREX_WC_BAD_DESC);
}

TEST(atomics_are_aligned_and_of_eight_bytes)
{
	struct fabrex_sqe sqe = { .opcode = FABREX_OP_FETCH_ADD };
	struct engine_entry entry;
	unsigned int offset;

	sqe.operand = cpu_to_le64(~0ull);
	for (offset = 0; offset < 32; offset++) {
		sqe.roffset = cpu_to_le64(offset);
		CHECK_EQ(engine_entry_check(&sqe, &entry),
			 offset % 8 ? FABREX_WC_BAD_DESC : FABREX_WC_OK);
		CHECK_EQ(entry.length, 8);
		CHECK_EQ(entry.operand, ~0ull);
	}
}

TEST(ranges_do_not_wrap)
{
	CHECK(engine_covers(100, 0, 100));
	CHECK(engine_covers(100, 100, 0));
	CHECK(!engine_covers(100, 1, 100));
	CHECK(!engine_covers(100, 101, 0));
	CHECK(!engine_covers(100, ~0ull, 2));
	CHECK(!engine_covers(100, 2, ~0ull));
	CHECK(engine_covers(~0ull, ~0ull, 0));
}
