// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Execution of entries by the thread that submits them, with the checks,
 * statuses and order of docs/draco.md, section 12. Called by post.c.
 */
#include <string.h>

#include "base/crc32c.h"
#include "engine.h"
#include "operation.h"

/* What the checks of one entry have found. */
struct access {
	struct loop_queue *q;
	const struct fabrex_sqe *sqe;
	uint64_t length;		/* 8 for atomics */
	void *local;			/* NULL: memory of a device */
	uint32_t number;		/* of the peer */
	const struct loop_peer *peer;
	struct segment_mr mr;		/* a copy */
	char *remote;			/* NULL: not addressable here */
};

/* Flags that an opcode knows; index is the opcode. */
static const uint8_t known_flags[] = {
	[FABREX_OP_NOP] = FABREX_SQE_FENCE | FABREX_SQE_QUIET,
	[FABREX_OP_WRITE] = FABREX_SQE_FENCE | FABREX_SQE_QUIET |
			    FABREX_SQE_CHECK,
	[FABREX_OP_READ] = FABREX_SQE_FENCE | FABREX_SQE_QUIET |
			   FABREX_SQE_CHECK,
	[FABREX_OP_WRITE_IMM] = FABREX_SQE_FENCE | FABREX_SQE_QUIET |
				FABREX_SQE_CHECK,
	[FABREX_OP_FETCH_ADD] = FABREX_SQE_FENCE | FABREX_SQE_QUIET,
	[FABREX_OP_CMP_SWAP] = FABREX_SQE_FENCE | FABREX_SQE_QUIET,
	[FABREX_OP_SEND] = FABREX_SQE_FENCE | FABREX_SQE_QUIET |
			   FABREX_SQE_INLINE,
};

/* ---- checks ------------------------------------------------------------ */

static bool nop_clean(const struct fabrex_sqe *s)
{
	return !(s->peer | s->imm | s->lkey | s->loffset | s->rkey |
		 s->roffset | s->length | s->compare);
}

static bool send_clean(const struct fabrex_sqe *s)
{
	if (s->flags & FABREX_SQE_INLINE)
		return !s->roffset && s->length <= FABREX_INLINE_MAX;
	return !(s->rkey | s->roffset) && s->length <= LOOP_MAX_TRANSFER;
}

/* Fields that must be 0, lengths, alignment. */
static bool fields_clean(const struct fabrex_sqe *s)
{
	switch (s->opcode) {
	case FABREX_OP_NOP:
		return nop_clean(s);
	case FABREX_OP_WRITE:
	case FABREX_OP_READ:
		return !(s->imm | s->compare) && s->length <= LOOP_MAX_TRANSFER;
	case FABREX_OP_WRITE_IMM:
		return s->length <= LOOP_MAX_TRANSFER;
	case FABREX_OP_FETCH_ADD:
		return !(s->imm | s->compare | (s->roffset & 7));
	case FABREX_OP_CMP_SWAP:
		return !(s->imm | (s->roffset & 7));
	default:
		return send_clean(s);
	}
}

static uint8_t check_desc(const struct fabrex_sqe *s)
{
	if (s->opcode >= sizeof(known_flags))
		return FABREX_WC_BAD_OPCODE;
	if (s->flags & ~known_flags[s->opcode] || !fields_clean(s))
		return FABREX_WC_BAD_DESC;
	return FABREX_WC_OK;
}

static uint8_t check_local(struct access *a)
{
	const struct fabrex_sqe *sqe = a->sqe;
	struct transport *t = a->q->transport;
	bool written = sqe->opcode == FABREX_OP_READ ||
		       loop_is_atomic(sqe->opcode);
	struct segment_mr mr;
	char *base;

	if (!loop_key(t->segment, sqe->lkey) ||
	    !fxi_loop_region_entry(t, sqe->lkey, &mr))
		return FABREX_WC_LKEY;
	if (!loop_inside(sqe->loffset, a->length, mr.length))
		return FABREX_WC_LBOUNDS;
	if (written && !(mr.access & FABREX_MR_LOCAL_WRITE))
		return FABREX_WC_LACCESS;
	base = t->locals[sqe->lkey & 0xffff];
	a->local = base ? base + sqe->loffset : NULL;
	return FABREX_WC_OK;
}

static uint8_t check_peer(struct access *a)
{
	struct transport *t = a->q->transport;

	a->number = a->sqe->peer;
	if (a->number >= SEGMENT_PEERS)
		return FABREX_WC_UNREACHABLE;
	a->peer = &t->peers[a->number];
	if (!__atomic_load_n(&a->peer->up, __ATOMIC_ACQUIRE))
		return FABREX_WC_UNREACHABLE;
	if (a->peer->fence)
		barrier_full();
	return FABREX_WC_OK;
}

/*
 * Where the region is in this process, if it is mapped. The peer's table is not
 * trusted: the place is checked against what is mapped.
 */
static uint8_t locate(struct access *a)
{
	struct transport *t = a->q->transport;
	const struct segment_mr *mr = &a->mr;
	char *base = NULL;

	if (a->number == t->number)
		base = t->locals[mr->key & 0xffff];
	else if (mr->kind == SEGMENT_MR_HEAP &&
		 !loop_inside(mr->place, mr->length, a->peer->size))
		return FABREX_WC_RFAULT;
	else if (mr->kind == SEGMENT_MR_HEAP)
		base = (char *)a->peer->segment + mr->place;
	a->remote = base ? base + a->sqe->roffset : NULL;
	return FABREX_WC_OK;
}

static uint8_t check_remote(struct access *a)
{
	const struct fabrex_sqe *sqe = a->sqe;
	uint32_t self = a->q->transport->number;
	const struct segment_mr *mr;

	mr = loop_key(a->peer->segment, sqe->rkey);
	if (!mr)
		return FABREX_WC_RKEY;
	a->mr = *(const volatile struct segment_mr *)mr;
	if (a->number == self &&
	    !fxi_loop_region_entry(a->q->transport, sqe->rkey, &a->mr))
		return FABREX_WC_RKEY;
	a->mr.key = sqe->rkey;
	if (!loop_inside(sqe->roffset, a->length, a->mr.length))
		return FABREX_WC_RBOUNDS;
	if (!(a->mr.access & loop_right_needed(sqe->opcode)))
		return FABREX_WC_RACCESS;
	if (!(a->mr.peers[self / 64] >> self % 64 & 1))
		return FABREX_WC_RPEER;
	return locate(a);
}

static uint8_t check_region(struct access *a)
{
	uint8_t status = check_local(a);

	if (!status)
		status = check_peer(a);
	return status ? status : check_remote(a);
}

/* ---- moving ------------------------------------------------------------ */

static uint8_t move_elsewhere(struct access *a)
{
	const struct fabrex_sqe *sqe = a->sqe;
	const struct loop_move move = {
		.number = a->number, .peer = a->peer, .mr = &a->mr,
		.local = a->local, .lindex = sqe->lkey & 0xffff,
		.loffset = sqe->loffset, .offset = sqe->roffset,
		.length = a->length, .read = sqe->opcode == FABREX_OP_READ,
		.opcode = sqe->opcode, .operand = sqe->operand,
		.compare = sqe->opcode == FABREX_OP_CMP_SWAP ? sqe->compare : 0,
	};

	return fxi_loop_move(a->q, &move);
}

static uint8_t move(struct access *a)
{
	if (!a->length)
		return FABREX_WC_OK;
	/* Earlier entries first; on x86 for the compiler only. */
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
	if (!a->local || !a->remote)
		return move_elsewhere(a);
	if (a->sqe->opcode == FABREX_OP_READ)
		loop_copy(a->q, a->local, a->remote, a->length);
	else
		loop_copy(a->q, a->remote, a->local, a->length);
	return FABREX_WC_OK;
}

/*
 * Between a buffer and any region; for a local one this port is its own peer.
 * For rare and small transfers: sums of, results into, messages from device
 * memory.
 */
static uint8_t transfer(struct loop_queue *q, uint32_t number,
			const struct segment_mr *mr, uint64_t offset,
			void *buffer, uint64_t n, bool read)
{
	const struct loop_move piece = {
		.number = number, .peer = &q->transport->peers[number],
		.mr = mr, .local = buffer, .offset = offset, .length = n,
		.read = read,
		.opcode = read ? FABREX_OP_READ : FABREX_OP_WRITE,
	};

	return fxi_loop_move(q, &piece);
}

/* The same with the entry's local region. */
static uint8_t transfer_local(struct access *a, void *buffer, uint64_t n,
			      bool read)
{
	struct transport *t = a->q->transport;
	struct segment_mr mr;

	if (!fxi_loop_region_entry(t, a->sqe->lkey, &mr))
		return FABREX_WC_LFAULT;
	return transfer(a->q, t->number, &mr, a->sqe->loffset, buffer, n, read);
}

/* ---- end-to-end check -------------------------------------------------- */

static uint8_t sum_region(struct loop_queue *q, uint32_t number,
			  const struct segment_mr *mr, uint64_t offset,
			  uint64_t length, uint32_t *crc)
{
	char buffer[4096];
	uint8_t status = FABREX_WC_OK;
	uint64_t n;

	*crc = 0;
	while (length && !status) {
		n = length < sizeof(buffer) ? length : sizeof(buffer);
		status = transfer(q, number, mr, offset, buffer, n, true);
		*crc = fxi_crc32c(*crc, buffer, n);
		offset += n;
		length -= n;
	}
	return status;
}

static uint8_t sum_local(struct access *a, uint32_t *crc)
{
	struct transport *t = a->q->transport;
	struct segment_mr mr;

	if (a->local) {
		*crc = fxi_crc32c(0, a->local, a->length);
		return FABREX_WC_OK;
	}
	/* As this port knows it: peers can write to the table. */
	if (!fxi_loop_region_entry(t, a->sqe->lkey, &mr))
		return FABREX_WC_LFAULT;
	return sum_region(a->q, t->number, &mr, a->sqe->loffset, a->length,
			  crc);
}

static uint8_t sum_remote(struct access *a, uint32_t *crc)
{
	if (a->remote) {
		*crc = fxi_crc32c(0, a->remote, a->length);
		return FABREX_WC_OK;
	}
	return sum_region(a->q, a->number, &a->mr, a->sqe->roffset, a->length,
			  crc);
}

static uint8_t move_checked(struct access *a, uint32_t *crc)
{
	bool read = a->sqe->opcode == FABREX_OP_READ;
	uint32_t target = 0;
	uint8_t status;

	status = read ? sum_remote(a, crc) : sum_local(a, crc);
	if (!status)
		status = move(a);
	if (!status)
		status = read ? sum_local(a, &target) : sum_remote(a, &target);
	if (!status && target != *crc)
		status = FABREX_WC_DATA;
	return status;
}

static uint8_t open_ring(struct access *a, uint64_t length,
			 struct loop_ring *ring)
{
	return fxi_loop_ring_open(a->q, a->number, a->sqe->dest_key, length,
				  ring);
}

/* ---- operations -------------------------------------------------------- */

static uint8_t run_move(struct access *a, uint32_t *crc)
{
	uint8_t status = check_region(a);

	if (status)
		return status;
	if (a->sqe->flags & FABREX_SQE_CHECK)
		return move_checked(a, crc);
	return move(a);
}

/*
 * The cell is locked before the bytes move: a write without room for its
 * immediate moves nothing.
 */
static uint8_t run_write_imm(struct access *a, uint32_t *crc)
{
	struct loop_datagram datagram = {
		.opcode = FABREX_OP_RECV_IMM, .length = a->length,
		.imm = a->sqe->imm,
	};
	struct loop_ring ring;
	uint8_t status = check_region(a);

	if (!status)
		status = open_ring(a, 0, &ring);
	if (status)
		return status;
	status = a->sqe->flags & FABREX_SQE_CHECK ? move_checked(a, crc) :
						    move(a);
	datagram.crc = *crc;
	if (!status)
		fxi_loop_ring_fill(a->q, &ring, &datagram);
	else
		fxi_loop_ring_close(&ring);
	return status;
}

static uint8_t run_atomic(struct access *a)
{
	uint8_t status = check_region(a);
	uint64_t old;

	if (status)
		return status;
	if ((a->remote ? (uintptr_t)a->remote : a->mr.place) & 7)
		return FABREX_WC_BAD_DESC;
	if (!a->remote)
		return move_elsewhere(a);
	old = loop_atomic(a->sqe->opcode, (uint64_t *)(void *)a->remote,
			  a->sqe->operand, a->sqe->compare);
	if (!a->local)
		return transfer_local(a, &old, sizeof(old), false);
	loop_copy(a->q, a->local, &old, sizeof(old));
	return FABREX_WC_OK;
}

/* The bytes have to be in this process before the cell is locked. */
static uint8_t run_send(struct access *a)
{
	char buffer[FABREX_CELL_MAX];
	struct loop_datagram datagram = {
		.opcode = FABREX_OP_RECV, .length = a->length,
		.imm = a->sqe->imm, .data = a->sqe->inline_data,
	};
	bool data = !(a->sqe->flags & FABREX_SQE_INLINE);
	struct loop_ring ring;
	uint8_t status;

	status = data ? check_local(a) : FABREX_WC_OK;
	if (!status)
		status = check_peer(a);
	if (!status && data)
		datagram.data = a->local;
	if (!status && data && !a->local) {
		datagram.data = buffer;
		if (a->length <= sizeof(buffer))
			status = transfer_local(a, buffer, a->length, true);
	}
	if (!status)
		status = open_ring(a, a->length, &ring);
	if (!status)
		fxi_loop_ring_fill(a->q, &ring, &datagram);
	return status;
}

static uint8_t run(struct access *a, uint32_t *crc)
{
	uint8_t status = check_desc(a->sqe);

	if (status)
		return status;
	switch (a->sqe->opcode) {
	case FABREX_OP_WRITE:
	case FABREX_OP_READ:
		return run_move(a, crc);
	case FABREX_OP_WRITE_IMM:
		return run_write_imm(a, crc);
	case FABREX_OP_FETCH_ADD:
	case FABREX_OP_CMP_SWAP:
		return run_atomic(a);
	case FABREX_OP_SEND:
		return run_send(a);
	}
	return FABREX_WC_OK;
}

static void count(struct loop_queue *q, const struct access *a,
		  uint8_t status)
{
	struct fabrex_stats *stats = &q->stats;

	stats->tx_ops++;
	if (likely(!status)) {
		if (a->sqe->opcode == FABREX_OP_READ)
			stats->rx_bytes += a->length;
		else
			stats->tx_bytes += a->length;
		return;
	}
	stats->errors++;
	stats->crc_errors += status == FABREX_WC_DATA;
}

uint8_t fxi_loop_execute(struct loop_queue *q, const struct fabrex_sqe *sqe,
			 uint32_t *length, uint32_t *crc)
{
	struct access a = { .q = q, .sqe = sqe };
	const struct transport *t = q->transport;
	uint8_t status;

	*length = *crc = 0;
	a.length = loop_is_atomic(sqe->opcode) ? 8 : sqe->length;
	if (sqe->flags & FABREX_SQE_FENCE && q->failed) {
		q->failed = false;
		status = FABREX_WC_FENCED;
	} else {
		loop_enter(q);
		if (unlikely(t->peers[t->number].fence))
			barrier_full();
		status = run(&a, crc);
		loop_leave(q);
		q->failed |= status != FABREX_WC_OK;
	}
	count(q, &a, status);
	if (!status)
		*length = (uint32_t)a.length;
	else if (status != FABREX_WC_DATA)
		*crc = 0;
	return status;
}
