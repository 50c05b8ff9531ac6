// SPDX-License-Identifier: GPL-2.0-only
/*
 * One operation of a queue: all checks, in the order of docs/draco.md section
 * 12, then the work. Called by run.c.
 */
#include "op.h"

#include <string.h>

#include "audit.h"
#include "copy.h"
#include "fabric.h"
#include "port.h"
#include "queue.h"

_Static_assert(sizeof(struct fabrex_sqe) == 64, "as the rings have it");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rings and registers are little-endian and used as they are"
#endif

/* Which fields an operation has; the others must be 0. */
#define F_PEER		0x01
#define F_IMM		0x02
#define F_LOCAL		0x04	/* lkey, loffset */
#define F_REMOTE	0x08	/* rkey, roffset */
#define F_LENGTH	0x10
#define F_DEST		0x20
#define F_ADDEND	0x40	/* any 64 bits in the place of length */
#define F_COMPARE	0x80

#define FQ	(FABREX_SQE_FENCE | FABREX_SQE_QUIET)

struct op_rule {
	unsigned int flags;
	unsigned int fields;
	unsigned int local_right;	/* DRACO_ACCESS_* or 0 */
	unsigned int remote_right;
};

static const struct op_rule rules[] = {
	[FABREX_OP_NOP] = { FQ, 0, 0, 0 },
	[FABREX_OP_WRITE] = {
		FQ | FABREX_SQE_CHECK, F_PEER | F_LOCAL | F_REMOTE | F_LENGTH,
		0, DRACO_ACCESS_REMOTE_WRITE },
	[FABREX_OP_READ] = {
		FQ | FABREX_SQE_CHECK, F_PEER | F_LOCAL | F_REMOTE | F_LENGTH,
		DRACO_ACCESS_LOCAL_WRITE, DRACO_ACCESS_REMOTE_READ },
	[FABREX_OP_WRITE_IMM] = {
		FQ | FABREX_SQE_CHECK, F_PEER | F_IMM | F_LOCAL | F_REMOTE |
		F_LENGTH | F_DEST, 0, DRACO_ACCESS_REMOTE_WRITE },
	[FABREX_OP_FETCH_ADD] = {
		FQ, F_PEER | F_LOCAL | F_REMOTE | F_ADDEND,
		DRACO_ACCESS_LOCAL_WRITE, DRACO_ACCESS_REMOTE_ATOMIC },
	[FABREX_OP_CMP_SWAP] = {
		FQ, F_PEER | F_LOCAL | F_REMOTE | F_ADDEND | F_COMPARE,
		DRACO_ACCESS_LOCAL_WRITE, DRACO_ACCESS_REMOTE_ATOMIC },
	[FABREX_OP_SEND] = {
		FQ | FABREX_SQE_INLINE, F_PEER | F_IMM | F_LOCAL | F_LENGTH |
		F_DEST, 0, 0 },
};

/* An operation on its way through the checks. */
struct run {
	struct queue *q;
	struct op *op;
	const struct op_rule *rule;
	uint64_t length;	/* of what is accessed at each end */
	uint64_t budget;
	struct port *peer;
	struct side local, remote;
};

void op_begin(struct op *op, const struct fabrex_sqe *sqe)
{
	memset(op, 0, sizeof(*op));
	op->sqe = *sqe;
	op->active = true;
}

void op_end(struct queue *q)
{
	struct op *op = &q->op;

	throttle_release(q->port->fabric, &q->flow);
	if (op->target) {
		queue_unreserve(op->target);
		queue_unref(op->target);
	}
	op->target = NULL;
	op->active = false;
}

static bool is_inline(const struct fabrex_sqe *s)
{
	return s->flags & FABREX_SQE_INLINE;
}

static bool zero_where_due(const struct fabrex_sqe *s, unsigned int fields)
{
	if (is_inline(s))
		return !s->roffset;
	return ((fields & F_PEER) || !s->peer) &&
	       ((fields & F_IMM) || !s->imm) &&
	       ((fields & F_LOCAL) || !(s->lkey | s->loffset)) &&
	       ((fields & F_REMOTE) || !(s->rkey | s->roffset)) &&
	       ((fields & (F_LENGTH | F_ADDEND)) || !s->length) &&
	       ((fields & (F_DEST | F_COMPARE)) || !s->compare);
}

/* Checks 1 and 2. */
static unsigned int check_entry(const struct fabrex_sqe *s)
{
	const struct op_rule *r;

	if (s->opcode >= sizeof(rules) / sizeof(rules[0]))
		return FABREX_WC_BAD_OPCODE;
	r = &rules[s->opcode];
	if (s->flags & ~r->flags || !zero_where_due(s, r->fields))
		return FABREX_WC_BAD_DESC;
	if ((r->fields & F_LENGTH) && s->length > PORT_MAX_TRANSFER)
		return FABREX_WC_BAD_DESC;
	if (is_inline(s) && s->length > FABREX_INLINE_MAX)
		return FABREX_WC_BAD_DESC;
	if ((r->fields & F_ADDEND) && s->roffset & 7)
		return FABREX_WC_BAD_DESC;
	return FABREX_WC_OK;
}

/* May a key be looked up at the peer? */
static unsigned int may_guess(struct run *r)
{
	uint64_t now;

	if (r->q->guesser.trusted)
		return FABREX_WC_OK;
	now = engine_now_ns();
	if (guess_may(&r->q->guesser, &r->q->port->queue_guesses, now,
		      &r->op->wait_until))
		return FABREX_WC_OK;
	return OP_WAIT;
}

static void guessed(struct run *r, bool right)
{
	struct guess_budget *budget = &r->q->port->queue_guesses;

	if (!right)
		guess_miss(&r->q->guesser, budget, engine_now_ns());
	else if (!r->q->guesser.trusted)
		guess_hit(&r->q->guesser, budget);
}

/* Check 12, first part: the queue, held, or NULL with *wc. */
static struct queue *find_target(struct run *r, unsigned int *wc)
{
	struct queue *target;

	*wc = may_guess(r);
	if (*wc)
		return NULL;
	target = queue_get_by_key(r->peer, r->op->sqe.dest_key);
	guessed(r, target);
	if (!target)
		*wc = FABREX_WC_BAD_QUEUE;
	return target;
}

static void count_message(struct run *r)
{
	uint64_t n = r->op->sqe.length;
	struct counters *own = &r->q->port->counters;
	struct place from = { .port = r->q->port, .at = r->local.at,
			      .ep = r->local.ep };
	struct place to = { .port = r->peer };	/* cells are the host's */

	count_add(own, CNT_TX_BYTES, n);
	count_add(own, CNT_HOST_BYTES, n);
	count_add(&r->q->counters, CNT_TX_BYTES, n);
	count_add(&r->q->counters, CNT_HOST_BYTES, n);
	count_add(&r->peer->counters, CNT_RX_BYTES, n);
	traffic_count(r->q->port->fabric, &from, &to, n);
}

/* May a message, or the result of an atomic, go now as a whole? */
static unsigned int may_go(struct run *r, struct side from, struct side to,
			   uint64_t n)
{
	unsigned int wc = copy_admit(r->q, &from, &to, n);
	uint64_t wait;

	if (wc)
		return wc;
	wait = fabric_pace(r->q->port->fabric, r->q->port, r->peer, &n);
	if (wait) {
		r->op->wait_until = engine_now_ns() + wait;
		return OP_WAIT;
	}
	throttle_take(&r->q->flow, &n);
	return FABREX_WC_OK;
}

/*
 * Checks 12 to 14: a cell and a completion, kept while the operation waits for
 * links and bytes move.
 */
static unsigned int reserve_target(struct run *r, bool datagram)
{
	const struct fabrex_sqe *s = &r->op->sqe;
	struct queue *target;
	unsigned int wc;

	if (r->op->target)
		return FABREX_WC_OK;
	target = find_target(r, &wc);
	if (!target)
		return wc;
	wc = queue_reserve(target, datagram, s->length);
	if (!wc) {
		queue_ref(target);
		r->op->target = target;
	}
	queue_put(target);
	return wc;
}

/* Tell the target: with the @payload, or that the bytes are there. */
static unsigned int notify_target(struct run *r, const void *payload)
{
	const struct fabrex_sqe *s = &r->op->sqe;
	struct fabrex_cqe cqe = {
		.imm = s->imm, .src_queue = r->q->number,
		.peer = r->q->port->peer,
		.opcode = payload ? FABREX_OP_RECV : FABREX_OP_RECV_IMM,
	};
	struct queue *now = queue_get_by_key(r->peer, s->dest_key);
	unsigned int wc = FABREX_WC_BAD_QUEUE;

	if (now && now == r->op->target &&
	    atomic_load(&now->state) == FABREX_QUEUE_OK) {
		wc = queue_deliver(now, payload, s->length, &cqe);
		queue_unref(r->op->target);
		r->op->target = NULL;
	}
	if (now)
		queue_put(now);
	return wc;
}

static unsigned int send(struct run *r)
{
	const struct fabrex_sqe *s = &r->op->sqe;
	unsigned char payload[FABREX_CELL_MAX];
	unsigned int wc = FABREX_WC_OK;

	if (is_inline(s))
		memcpy(payload, s->inline_data, s->length);
	else
		wc = side_read(&r->local, payload, s->length);
	return wc ? wc : notify_target(r, payload);
}

static unsigned int datagram(struct run *r)
{
	struct side to = { .port = r->peer };
	unsigned int wc = reserve_target(r, true);

	r->local.port = r->q->port;	/* inline payload has no region */
	if (!wc)
		wc = may_go(r, r->local, to, r->op->sqe.length);
	if (!wc)
		wc = send(r);
	if (!wc)
		count_message(r);
	return wc;
}

static unsigned int write_imm(struct run *r)
{
	unsigned int wc = reserve_target(r, false);

	if (!wc)
		wc = copy_move(r->q, r->op, &r->local, &r->remote, r->length,
			       r->budget);
	if (!wc)
		wc = notify_target(r, NULL);
	return wc;
}

static uint64_t act(const struct fabrex_sqe *s, uint64_t *word)
{
	uint64_t old = s->compare;

	if (s->opcode == FABREX_OP_FETCH_ADD)
		return __atomic_fetch_add(word, s->operand, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(word, &old, s->operand, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}

static unsigned int do_atomic(struct run *r, uint64_t *old)
{
	struct reach reach = { .held = false };
	struct audit_access audit;
	unsigned int wc;
	uint64_t n = 8;
	void *word;

	wc = side_map(&r->remote, &reach, 0, &n,
		      DMA_PROT_READ | DMA_PROT_WRITE, &word);
	if (!wc && n < 8)
		wc = FABREX_WC_RFAULT;
	if (!wc) {
		audit_begin(&audit, r->peer, reach.at, 8, true);
		*old = act(&r->op->sqe, word);
		audit_end(&audit);
		count_ep_op(reach.mem.ep);
		count_ep(reach.mem.ep, false, 8);
		r->remote.ep = reach.mem.ep;
		r->remote.at = reach.mem.at;
	}
	n = side_drop(&r->remote, &reach);
	return wc ? wc : n;
}

/* The operand one way, the old value the other. */
static void count_atomic(struct run *r)
{
	struct place local = side_place(&r->local);
	struct place remote = side_place(&r->remote);

	traffic_count(r->q->port->fabric, &local, &remote, 8);
	traffic_count(r->q->port->fabric, &remote, &local, 8);
}

static unsigned int atomic_op(struct run *r)
{
	enum counter which;
	unsigned int wc;
	uint64_t old;

	if ((r->remote.mr->first + r->remote.offset) & 7)
		return FABREX_WC_BAD_DESC;
	wc = may_go(r, r->remote, r->local, 8);
	if (!wc)
		wc = do_atomic(r, &old);
	if (wc)
		return wc;
	count_add(&r->peer->counters, CNT_RX_BYTES, 8);
	wc = side_write(&r->local, &old, 8);
	count_atomic(r);
	which = count_ep_path(r->remote.ep, r->local.ep, 8) ? CNT_P2P_BYTES :
							      CNT_HOST_BYTES;
	count_add(&r->q->port->counters, which, 8);
	count_add(&r->q->counters, which, 8);
	return wc;
}

static unsigned int perform(struct run *r)
{
	switch (r->op->sqe.opcode) {
	case FABREX_OP_WRITE:
		return copy_move(r->q, r->op, &r->local, &r->remote, r->length,
				 r->budget);
	case FABREX_OP_READ:
		return copy_move(r->q, r->op, &r->remote, &r->local, r->length,
				 r->budget);
	case FABREX_OP_WRITE_IMM:
		return write_imm(r);
	default:
		return atomic_op(r);
	}
}

/* Checks 8 to 10. */
static unsigned int check_remote(struct run *r)
{
	if (!mr_covers(r->remote.mr, r->remote.offset, r->length))
		return FABREX_WC_RBOUNDS;
	if ((r->remote.mr->access & r->rule->remote_right) !=
	    r->rule->remote_right)
		return FABREX_WC_RACCESS;
	if (!mr_open_to(r->remote.mr, r->q->port->peer))
		return FABREX_WC_RPEER;
	return FABREX_WC_OK;
}

static unsigned int with_remote(struct run *r)
{
	struct mr_table *t = &r->peer->mrs;
	unsigned int wc = may_guess(r);

	if (wc)
		return wc;
	r->remote = (struct side){
		.port = r->peer, .offset = r->op->sqe.roffset,
		.fault = FABREX_WC_RFAULT, .mr = mr_get(t, r->op->sqe.rkey),
	};
	guessed(r, r->remote.mr || r->op->done ||
		   mr_exists(t, r->op->sqe.rkey));
	if (!r->remote.mr)
		return FABREX_WC_RKEY;
	wc = check_remote(r);
	if (!wc)
		wc = perform(r);
	mr_put(t, r->remote.mr);
	return wc;
}

/* Check 6 and on. */
static unsigned int with_peer(struct run *r)
{
	struct fabric *f = r->q->port->fabric;
	unsigned int wc;

	r->peer = fabric_port_by_peer(f, r->op->sqe.peer);
	if (!r->peer || !fabric_reachable(f, r->q->port, r->peer) ||
	    !port_enter(r->peer))
		return FABREX_WC_UNREACHABLE;
	wc = r->op->sqe.opcode == FABREX_OP_SEND ? datagram(r) : with_remote(r);
	if (wc < OP_YIELD)
		count(&r->peer->counters, CNT_RX_OPS);
	port_leave(r->peer);
	return wc;
}

/* Checks 3 to 5. */
static unsigned int check_local(struct run *r)
{
	const struct mr *mr = r->local.mr;

	if (mr->pd != r->q->pd)
		return FABREX_WC_LKEY;
	if (!mr_covers(mr, r->local.offset, r->length))
		return FABREX_WC_LBOUNDS;
	if ((mr->access & r->rule->local_right) != r->rule->local_right)
		return FABREX_WC_LACCESS;
	return FABREX_WC_OK;
}

static unsigned int with_local(struct run *r)
{
	struct mr_table *t = &r->q->port->mrs;
	unsigned int wc;

	if (is_inline(&r->op->sqe))
		return with_peer(r);
	r->local = (struct side){
		.port = r->q->port, .offset = r->op->sqe.loffset,
		.fault = FABREX_WC_LFAULT,
		.mr = mr_get(t, r->op->sqe.lkey),
	};
	if (!r->local.mr)
		return FABREX_WC_LKEY;
	wc = check_local(r);
	if (!wc)
		wc = with_peer(r);
	mr_put(t, r->local.mr);
	return wc;
}

/* Lost in the middle: what would refuse a new operation cuts this one short. */
static unsigned int in_the_middle(unsigned int wc)
{
	if (wc >= FABREX_WC_LKEY && wc <= FABREX_WC_BAD_QUEUE)
		return FABREX_WC_ABORTED;
	return wc;
}

unsigned int op_run(struct queue *q, struct op *op, uint64_t budget)
{
	struct run r = { .q = q, .op = op, .budget = budget };
	bool begun = op->done;
	unsigned int wc = check_entry(&op->sqe);

	if (wc || op->sqe.opcode == FABREX_OP_NOP)
		return wc;
	r.rule = &rules[op->sqe.opcode];
	r.length = r.rule->fields & F_ADDEND ? 8 : op->sqe.length;
	wc = with_local(&r);
	return begun ? in_the_middle(wc) : wc;
}
