/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What engines say to each other: a request for each part of an operation, and
 * an answer to each. Included by the engine and by the wires that carry them.
 * Little-endian; everything in it is the peer's word and must be checked.
 */
#ifndef _FABREX_MESSAGE_H
#define _FABREX_MESSAGE_H

#include <linux/types.h>

/* Opcodes beside FABREX_OP_*. */
#define ENGINE_OP_RESOLVE	0x40	/* operand: service; value: key */

/* fabrex_request.flags */
#define ENGINE_REQ_CHECK	(1u << 0) /* compare the CRC after storing */
#define ENGINE_REQ_INLINE	(1u << 1) /* the payload follows the request */
#define ENGINE_REQ_FIRST	(1u << 2) /* first part; heeded for WRITE_IMM */
#define ENGINE_REQ_LAST		(1u << 3) /* last part; heeded for WRITE_IMM */
#define ENGINE_REQ_CANCEL	(1u << 4) /* no more parts will come */
#define ENGINE_REQ_MARKED	(1u << 5) /* the payload ends with @marker */
#define ENGINE_REQ_LINK		(1u << 6) /* WRITE: link the region, if it can be */
#define ENGINE_REQ_DIRECT	(1u << 7) /* the payload is in the region already */

/**
 * struct fabrex_request - part of an operation, for the peer to perform
 * @opcode:    FABREX_OP_* or ENGINE_OP_*
 * @flags:     ENGINE_REQ_*
 * @__pad:     0
 * @ticket:    of the operation: equal in all parts of a WRITE_IMM
 * @key:       of the region; 0 for SEND and RESOLVE
 * @offset:    of the operation's first byte in the region
 * @length:    of the whole operation; operand of atomics and RESOLVE
 * @dest:      key of the queue; for CMP_SWAP, the expected value
 * @at:        first byte of this part, counted from the operation's
 * @bytes:     of this part
 * @place:     where its payload is, or for READ goes to; defined by the wire
 * @src_queue: number of the sender's queue
 * @imm:       immediate
 * @crc:       state of the CRC32C of the operation after this part
 * @crc_from:  before it
 * @marker:    with %ENGINE_REQ_MARKED, of the wire
 */
struct fabrex_request {
	u8 opcode;
	u8 flags;
	__le16 __pad;
	__le32 ticket;
	__le64 key;
	__le64 offset;
	__le64 length;
	__le64 dest;
	__le32 at;
	__le32 bytes;
	__le32 place;
	__le32 src_queue;
	__le32 imm;
	__le32 crc;
	__le32 crc_from;
	__le32 marker;
};

/* fabrex_answer.flags */
#define ENGINE_ANS_MISS		(1u << 0) /* there is nothing with that key */
#define ENGINE_ANS_MARKED	(1u << 1) /* the payload ends with @marker */
#define ENGINE_ANS_LINKED	(1u << 2) /* the region is linked: @value, @number */
#define ENGINE_ANS_LOST		(1u << 3) /* the payload has not arrived */

/**
 * struct fabrex_answer - what has become of a request
 * @status: FABREX_WC_*
 * @flags:  ENGINE_ANS_*
 * @__pad:  0
 * @number: RESOLVE: number of the queue; with %ENGINE_ANS_LINKED: bytes of the
 *          region
 * @value:  atomics: the old value; RESOLVE: the key; with %ENGINE_ANS_LINKED:
 *          where its first byte is, defined by the wire
 * @crc:    READ with CHECK: state of the CRC32C after this part
 * @marker: with %ENGINE_ANS_MARKED, of the wire
 *
 * Whatever the request has stored is visible before the answer is.
 */
struct fabrex_answer {
	u8 status;
	u8 flags;
	__le16 __pad;
	__le32 number;
	__le64 value;
	__le32 crc;
	__le32 marker;
};

#define ENGINE_CRC_BEGIN	(~0u)

#endif
