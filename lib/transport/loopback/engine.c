// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Execution of entries by the thread that submits them: checks, statuses and
 * order of docs/draco.md section 12. Called by lib/direct.c.
 */
#include <string.h>

#include "crc.h"
#include "loopback.h"
#include "ring.h"

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

static bool is_atomic(const struct fabrex_sqe *sqe)
{
	return sqe->opcode == FABREX_OP_FETCH_ADD ||
	       sqe->opcode == FABREX_OP_CMP_SWAP;
}

/*
 * Odd until leave(): regions and queues whose keys are found right in between
 * stay where they are. A compiler barrier is enough where those who take them
 * away order us by membarrier().
 */
static inline void enter(struct loop_queue *q)
{
	uint32_t *active = &q->shared->active;

	__atomic_store_n(active, *active + 1, __ATOMIC_RELAXED);
	__asm__ volatile("" ::: "memory");
	if (unlikely(q->transport->peers[q->transport->number].fence))
		ring_barrier();
}

static inline void leave(struct loop_queue *q)
{
	uint32_t *active = &q->shared->active;

	__atomic_store_n(active, *active + 1, __ATOMIC_RELEASE);
}

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

/* The entry of a key in its owner's table if the key is right, else NULL. */
static inline const struct segment_mr *find_key(const struct segment *segment,
						uint64_t key)
{
	uint64_t index = key & 0xffff;
	const struct segment_mr *mr;

	if (unlikely(index >= SEGMENT_MRS || !key))
		return NULL;
	mr = &segment->mrs[index];
	if (unlikely(__atomic_load_n(&mr->key, __ATOMIC_ACQUIRE) != key))
		return NULL;
	return mr;
}

static inline bool in_bounds(uint64_t offset, uint64_t length, uint64_t space)
{
	return offset <= space && length <= space - offset;
}

static uint8_t check_local(struct access *a)
{
	const struct fabrex_sqe *sqe = a->sqe;
	struct transport *t = a->q->transport;
	const struct segment_mr *mr = find_key(t->segment, sqe->lkey);
	bool written = sqe->opcode == FABREX_OP_READ || is_atomic(sqe);
	char *base;

	if (!mr)
		return FABREX_WC_LKEY;
	if (!in_bounds(sqe->loffset, a->length, mr->length))
		return FABREX_WC_LBOUNDS;
	if (written && !(mr->access & FABREX_MR_LOCAL_WRITE))
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
		ring_barrier();
	return FABREX_WC_OK;
}

static uint32_t right_needed(uint8_t opcode)
{
	switch (opcode) {
	case FABREX_OP_WRITE:
	case FABREX_OP_WRITE_IMM:
		return FABREX_MR_REMOTE_WRITE;
	case FABREX_OP_READ:
		return FABREX_MR_REMOTE_READ;
	}
	return FABREX_MR_REMOTE_ATOMIC;
}

/*
 * Where the region is in this process, if it is. What the other side has
 * written is checked against what we have mapped.
 */
static uint8_t locate(struct access *a)
{
	struct transport *t = a->q->transport;
	const struct segment_mr *mr = &a->mr;
	char *base = NULL;

	if (a->number == t->number)
		base = t->locals[mr->key & 0xffff];
	else if (mr->kind == SEGMENT_MR_HEAP &&
		 !in_bounds(mr->place, mr->length, a->peer->size))
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

	mr = find_key(a->peer->segment, sqe->rkey);
	if (!mr)
		return FABREX_WC_RKEY;
	a->mr = *(const volatile struct segment_mr *)mr;
	a->mr.key = sqe->rkey;
	if (!in_bounds(sqe->roffset, a->length, a->mr.length))
		return FABREX_WC_RBOUNDS;
	if (!(a->mr.access & right_needed(sqe->opcode)))
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

/* 8 aligned bytes are never seen in parts. */
static inline void copy(void *to, const void *from, uint64_t n)
{
	if (n == 8 && !(((uintptr_t)to | (uintptr_t)from) & 7)) {
		uint64_t word = __atomic_load_n((const uint64_t *)from,
						__ATOMIC_RELAXED);

		__atomic_store_n((uint64_t *)to, word, __ATOMIC_RELAXED);
		return;
	}
	memmove(to, from, n);
}

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
		copy(a->local, a->remote, a->length);
	else
		copy(a->remote, a->local, a->length);
	return FABREX_WC_OK;
}

/*
 * Between a buffer and any region, our own by way of ourselves as a peer. Small
 * pieces on rare ways: sums of, results into, messages from memory of devices.
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

/* The same with the entry's own region. */
static uint8_t transfer_local(struct access *a, void *buffer, uint64_t n,
			      bool read)
{
	struct transport *t = a->q->transport;
	struct segment_mr mr = t->segment->mrs[a->sqe->lkey & 0xffff];

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
	mr = t->segment->mrs[a->sqe->lkey & 0xffff];
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
 * The cell is held while the bytes move, so that a write which would find no
 * room for its completion moves nothing.
 */
static uint8_t run_write_imm(struct access *a, uint32_t *crc)
{
	struct loop_datagram datagram = {
		.opcode = FABREX_OP_RECV_IMM, .length = (uint32_t)a->length,
		.imm = a->sqe->imm,
	};
	struct loop_ring ring;
	uint8_t status = check_region(a);

	if (!status)
		status = fxi_loop_ring_open(a->q, a->peer, a->sqe, &ring);
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

static uint64_t perform(const struct fabrex_sqe *sqe, uint64_t *word)
{
	uint64_t old = sqe->compare;

	if (sqe->opcode == FABREX_OP_FETCH_ADD)
		return __atomic_fetch_add(word, sqe->operand, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(word, &old, sqe->operand, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
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
	old = perform(a->sqe, (uint64_t *)(void *)a->remote);
	if (!a->local)
		return transfer_local(a, &old, sizeof(old), false);
	copy(a->local, &old, sizeof(old));
	return FABREX_WC_OK;
}

/* Its bytes have to be in this process before the cell is taken. */
static uint8_t run_send(struct access *a)
{
	char buffer[FABREX_CELL_MAX];
	struct loop_datagram datagram = {
		.opcode = FABREX_OP_RECV, .length = (uint32_t)a->length,
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
		status = fxi_loop_ring_open(a->q, a->peer, a->sqe, &ring);
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
		stats->host_bytes += a->length;
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
	uint8_t status;

	*length = *crc = 0;
	a.length = is_atomic(sqe) ? 8 : sqe->length;
	if (sqe->flags & FABREX_SQE_FENCE && q->failed) {
		q->failed = false;
		status = FABREX_WC_FENCED;
	} else {
		enter(q);
		status = run(&a, crc);
		leave(q);
		q->failed |= status != FABREX_WC_OK;
	}
	count(q, &a, status);
	if (!status)
		*length = (uint32_t)a.length;
	else if (status != FABREX_WC_DATA)
		*crc = 0;
	return status;
}

/* ---- the usual --------------------------------------------------------- */

/* Prefetched for writing: its owner has it in its cache, watching. */
static inline char *target_of(const struct loop_queue *q,
			      const struct fabrex_op *op, uint32_t right)
{
	const struct transport *t = q->transport;
	const struct loop_peer *peer;
	const struct segment_mr *mr;
	uint64_t place, length;
	char *remote;

	if (unlikely(op->peer >= SEGMENT_PEERS))
		return NULL;
	peer = &t->peers[op->peer];
	if (unlikely(!__atomic_load_n(&peer->up, __ATOMIC_ACQUIRE) ||
		     peer->fence))
		return NULL;
	mr = find_key(peer->segment, op->rkey);
	if (unlikely(!mr))
		return NULL;
	place = __atomic_load_n(&mr->place, __ATOMIC_RELAXED);
	length = __atomic_load_n(&mr->length, __ATOMIC_RELAXED);
	remote = (char *)peer->segment + place + op->roffset;
	__builtin_prefetch(remote, 1);
	if (unlikely(mr->kind != SEGMENT_MR_HEAP || !(mr->access & right) ||
		     !(mr->peers[t->number / 64] >> t->number % 64 & 1) ||
		     !in_bounds(place, length, peer->size) ||
		     !in_bounds(op->roffset, op->length, length)))
		return NULL;
	return remote;
}

static inline char *source_of(const struct loop_queue *q,
			      const struct fabrex_op *op, uint32_t right)
{
	const struct fabrex_mr *mr = op->mr;

	if (unlikely(!mr || mr->kind != FABREX_MEMORY_HOST || !mr->addr ||
		     mr->object.port->transport != q->transport ||
		     (mr->access & right) != right ||
		     !in_bounds(op->offset, op->length, mr->length)))
		return NULL;
	return (char *)mr->addr + op->offset;
}

bool fxi_loop_execute_plain(struct loop_queue *q, const struct fabrex_op *op)
{
	bool read = op->opcode == FABREX_OP_READ;
	char *remote, *local;

	if (unlikely((op->opcode != FABREX_OP_WRITE && !read) ||
		     op->flags & ~FABREX_SQE_QUIET || !op->length ||
		     op->length > LOOP_MAX_TRANSFER))
		return false;
	enter(q);
	remote = target_of(q, op, read ? FABREX_MR_REMOTE_READ :
					 FABREX_MR_REMOTE_WRITE);
	local = source_of(q, op, read ? FABREX_MR_LOCAL_WRITE : 0);
	if (unlikely(!remote || !local)) {
		leave(q);
		return false;
	}
	__atomic_thread_fence(__ATOMIC_ACQ_REL);
	if (read)
		copy(local, remote, op->length);
	else
		copy(remote, local, op->length);
	leave(q);
	q->stats.tx_ops++;
	q->stats.host_bytes += op->length;
	*(read ? &q->stats.rx_bytes : &q->stats.tx_bytes) += op->length;
	return true;
}
