/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * fabrex queue rings: the memory that a process, the kernel and a fabric device
 * share. Included by uapi/linux/fabrex.h, by libfabrex and by every device
 * model. All fields are little-endian. Peer numbers have 16 bits here and 32
 * elsewhere; there are never more than 65,536 peers.
 */
#ifndef _UAPI_LINUX_FABREX_RING_H
#define _UAPI_LINUX_FABREX_RING_H

#include <linux/types.h>

/*
 * Operation codes of a submission queue entry.
 *
 * %FABREX_OP_NOP:       completes in order, does nothing
 * %FABREX_OP_WRITE:     local memory -> memory of @peer
 * %FABREX_OP_READ:      memory of @peer -> local memory
 * %FABREX_OP_WRITE_IMM: WRITE, then a completion with @imm in the peer's queue
 *                       @dest_key; consumes one receive cell there
 * %FABREX_OP_FETCH_ADD: 64-bit remote fetch and add; old value -> local memory
 * %FABREX_OP_CMP_SWAP:  64-bit remote compare and swap; old value -> local
 * %FABREX_OP_SEND:      datagram from local memory into one receive cell of the
 *                       peer's queue @dest_key
 */
#define FABREX_OP_NOP		0x00
#define FABREX_OP_WRITE		0x01
#define FABREX_OP_READ		0x02
#define FABREX_OP_WRITE_IMM	0x03
#define FABREX_OP_FETCH_ADD	0x04
#define FABREX_OP_CMP_SWAP	0x05
#define FABREX_OP_SEND		0x06
/* In completions only: a datagram or an immediate has arrived. */
#define FABREX_OP_RECV		0x80
#define FABREX_OP_RECV_IMM	0x81

/*
 * Submission flags. A device refuses unknown ones with %FABREX_WC_BAD_DESC.
 *
 * %FABREX_SQE_FENCE:   start only after every earlier operation of this queue
 *                      has completed; if any operation since the last fenced
 *                      one has failed, do nothing and complete with
 *                      %FABREX_WC_FENCED
 * %FABREX_SQE_QUIET:   no completion entry if the operation succeeds
 * %FABREX_SQE_CHECK:   (WRITE, READ, WRITE_IMM) compute the CRC32C of the
 *                      payload at the source, and again at the target after it
 *                      has been stored; a mismatch is %FABREX_WC_DATA. The
 *                      CRC of the source is in the completion's @crc
 * %FABREX_SQE_INLINE:  (SEND) the payload, at most %FABREX_INLINE_MAX bytes, is
 *                      in @inline_data instead of local memory
 */
#define FABREX_SQE_FENCE	(1u << 0)
#define FABREX_SQE_QUIET	(1u << 1)
#define FABREX_SQE_CHECK	(1u << 2)
#define FABREX_SQE_INLINE	(1u << 3)
#define FABREX_SQE_FLAGS_ALL	0x0fu

#define FABREX_INLINE_MAX	24

/**
 * struct fabrex_sqe - submission queue entry, 64 bytes
 * @opcode:      FABREX_OP_*
 * @flags:       FABREX_SQE_*
 * @peer:        peer number of the target; a port may address itself
 * @imm:         immediate value (SEND, WRITE_IMM), else 0
 * @user_data:   returned in the completion, not interpreted
 * @lkey:        key of the local region
 * @loffset:     byte offset into the local region
 * @inline_data: SEND with %FABREX_SQE_INLINE: the payload, in the place of
 *               @lkey, @loffset and @rkey
 * @rkey:        key of the remote region; 0 for SEND
 * @roffset:     byte offset into the remote region; 0 for SEND
 * @length:      bytes to move, up to the port's max_transfer; WRITE and READ
 *               of 0 bytes check keys and peer and move nothing
 * @operand:     FETCH_ADD: addend; CMP_SWAP: the new value
 * @dest_key:    SEND, WRITE_IMM: key of a queue at @peer, else 0
 * @compare:     CMP_SWAP: expected value; FETCH_ADD: 0
 */
struct fabrex_sqe {
	__u8	opcode;
	__u8	flags;
	__le16	peer;
	__le32	imm;
	__le64	user_data;
	union {
		struct {
			__le64	lkey;
			__le64	loffset;
			__le64	rkey;
		};
		__u8	inline_data[FABREX_INLINE_MAX];
	};
	__le64	roffset;
	union {
		__le64	length;
		__le64	operand;
	};
	union {
		__le64	dest_key;
		__le64	compare;
	};
};

/*
 * Status of a completion (work completion). With any status but OK, the target
 * must not rely on the data. The queue continues with the next entry.
 */
#define FABREX_WC_OK		0	/* the data is visible at the target */
#define FABREX_WC_BAD_OPCODE	1	/* operation unknown to the device */
#define FABREX_WC_BAD_DESC	2	/* reserved bits, length or alignment */
#define FABREX_WC_LKEY		3	/* local key unknown or of another process */
#define FABREX_WC_LBOUNDS	4	/* beyond the end of the local region */
#define FABREX_WC_LACCESS	5	/* local region lacks the right */
#define FABREX_WC_RKEY		6	/* remote key unknown, revoked or stale */
#define FABREX_WC_RBOUNDS	7	/* beyond the end of the remote region */
#define FABREX_WC_RACCESS	8	/* remote region lacks the right */
#define FABREX_WC_RPEER		9	/* remote region not open to this peer */
#define FABREX_WC_UNREACHABLE	10	/* no such peer, or peer or link down */
#define FABREX_WC_RNR		11	/* no free receive cell at the target */
#define FABREX_WC_BAD_QUEUE	12	/* no such target queue, or wrong key */
#define FABREX_WC_TOO_LONG	13	/* datagram exceeds the target's cell */
#define FABREX_WC_DATA		14	/* end-to-end check failed */
#define FABREX_WC_LFAULT	15	/* access to local memory failed */
#define FABREX_WC_RFAULT	16	/* access to remote memory failed */
#define FABREX_WC_FENCED	17	/* not started: earlier operation failed */
#define FABREX_WC_FLUSHED	18	/* not started: the queue is gone */
#define FABREX_WC_ABORTED	19	/* interrupted by reset or link loss */

/**
 * struct fabrex_cqe - completion queue entry, 32 bytes
 * @user_data: of the submission entry; 0 for RECV and RECV_IMM
 * @length:    bytes transferred, or length of the datagram
 * @imm:       RECV, RECV_IMM: the sender's immediate
 * @crc:       CRC32C of the payload if %FABREX_SQE_CHECK was set, else 0
 * @src_queue: RECV, RECV_IMM: queue number of the sender
 * @peer:      peer number of the other side
 * @index:     own operations: low 16 bits of the free-running submission index
 *             of this entry; RECV, RECV_IMM: of the receive cell
 * @opcode:    FABREX_OP_*
 * @status:    FABREX_WC_*
 * @flags:     bit 0: phase, 1 in the first pass over the ring, 0 in the second,
 *             and so on. A device makes the rest of the entry visible before it
 *             writes this field
 */
struct fabrex_cqe {
	__le64	user_data;
	__le32	length;
	__le32	imm;
	__le32	crc;
	__le32	src_queue;
	__le16	peer;
	__le16	index;
	__u8	opcode;
	__u8	status;
	__le16	flags;
};

#define FABREX_CQE_PHASE	(1u << 0)

/* Values of fabrex_qctrl.state. */
#define FABREX_QUEUE_OK		0
#define FABREX_QUEUE_ERROR	1	/* stopped by the device: see error */
#define FABREX_QUEUE_DEAD	2	/* the port is gone; set by the kernel */

/* Values of fabrex_qctrl.error. */
#define FABREX_QERR_NONE	0
#define FABREX_QERR_CQ_OVERRUN	1	/* no room for a completion */
#define FABREX_QERR_SQ_INDEX	2	/* sq_tail - sq_head exceeds the ring */
#define FABREX_QERR_RING_FAULT	3	/* access to ring memory failed */
#define FABREX_QERR_RESET	4	/* switch, port or function was reset */

/**
 * struct fabrex_qctrl - control page of a queue (4096 bytes, first 256 used)
 * @sq_tail:     process: free-running count of entries submitted
 * @cq_head:     process: free-running count of completions consumed
 * @rq_head:     process: free-running count of receive cells returned
 * @sq_head:     device: free-running count of entries fetched and completed
 * @db_needed:   device: 0 while it polls @sq_tail by itself; otherwise the
 *               doorbell must be rung. Initially 1
 * @state:       FABREX_QUEUE_*; written by device or kernel, never decreases
 * @error:       FABREX_QERR_*
 *
 * Fields share a cache line only if they have the same writer and change
 * equally often. A process stores @sq_tail with release order after the
 * entries, issues a full barrier (one for devices, too: mfence or a locked
 * instruction, dmb osh), then reads @db_needed. A device that is about to stop
 * polling stores 1, issues a full barrier, and reads @sq_tail once more. So no
 * submission is missed.
 */
struct fabrex_qctrl {
	__le32	sq_tail;
	__u32	__pad0[15];
	__le32	cq_head;
	__le32	rq_head;
	__u32	__pad1[14];
	__le32	sq_head;
	__le32	db_needed;
	__u32	__pad2[14];
	__le32	state;
	__le32	error;
	__u32	__pad3[14];
};

/*
 * Doorbell page of a queue, as large as a page of the machine. It begins with
 * two 32-bit write-only registers.
 */
#define FABREX_DB_SQ		0x00	/* value written: sq_tail */
#define FABREX_DB_ARM		0x04	/* value written: cq_head; requests one
					 * interrupt as soon as there is a
					 * completion beyond it, or at once if
					 * there already is
					 */

#define FABREX_PAGE_SIZE	4096u	/* device page: control page, rings */
#define FABREX_SQ_MIN		8u
#define FABREX_SQ_MAX		16384u
#define FABREX_CQ_MAX		65536u
#define FABREX_RQ_MAX		16384u
#define FABREX_CELL_MIN		64u
#define FABREX_CELL_MAX		4096u

#endif
