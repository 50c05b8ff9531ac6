// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The fake device: one thread that fetches entries, checks them, moves bytes
 * within the process and writes completions, as docs/draco.md says.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fakedev.h"
#include "core/core.h"

#define IDLE_PASSES	20	/* until it stops watching sq_tail */

struct fake_object *fakedev_mr(uint32_t peer, uint64_t key)
{
	struct fake_object *o;

	for (o = fab.objects; o; o = o->next)
		if (o->type == FAKE_MR && o->key == key &&
		    o->file->port == peer && !fab.port[peer].gone)
			return o;
	return NULL;
}

static void wake(struct fake_object *q)
{
	uint64_t one = 1;

	if (q->efd >= 0 && write(q->efd, &one, sizeof(one)) < 0)
		abort();
}

static void interrupt_if_armed(struct fake_object *q)
{
	uint32_t *reg = (uint32_t *)((char *)q->shared.doorbell +
				     FABREX_DB_ARM);
	uint32_t value = __atomic_exchange_n(reg, FAKE_NOT_ARMED,
					     __ATOMIC_SEQ_CST);

	if (value != FAKE_NOT_ARMED)
		q->armed = value;
	if (q->armed == FAKE_NOT_ARMED || q->cq_tail == q->armed)
		return;
	q->armed = FAKE_NOT_ARMED;
	wake(q);
}

void fakedev_end(struct fake_object *q, uint32_t state, uint32_t error)
{
	q->ctrl->error = htole32(error);
	ring_release(&q->ctrl->state, state);
	wake(q);
}

static bool cq_room(const struct fake_object *q)
{
	return q->cq_tail - ring_acquire(&q->ctrl->cq_head) <
	       q->attr.cq_entries;
}

static void spoil(struct fabrex_cqe *cqe)
{
	enum fake_fault fault = fab.fault;
	bool recv = cqe->opcode & FABREX_OP_RECV;

	if (recv != (fault == FAKE_BAD_CELL || fault == FAKE_BAD_LENGTH))
		return;
	fab.fault = FAKE_NONE;
	if (fault == FAKE_BAD_INDEX || fault == FAKE_BAD_CELL)
		cqe->index += 7;
	if (fault == FAKE_BAD_OPCODE)
		cqe->opcode = cqe->opcode == FABREX_OP_READ ?
			      FABREX_OP_WRITE : FABREX_OP_READ;
	if (fault == FAKE_BAD_USER_DATA)
		cqe->user_data = 0x6666;
	if (fault == FAKE_BAD_LENGTH)
		cqe->length = htole32(1 << 20);
}

static void put_cqe(struct fake_object *q, struct fabrex_cqe *cqe)
{
	struct fabrex_cqe *slot = (struct fabrex_cqe *)
		((char *)q->shared.ring + q->shared.cq_offset);
	uint16_t phase = !(q->cq_tail & q->attr.cq_entries);

	if (!cq_room(q)) {
		fakedev_end(q, FABREX_QUEUE_ERROR, FABREX_QERR_CQ_OVERRUN);
		return;
	}
	if (fab.fault == FAKE_LOSE_COMPLETION &&
	    !(cqe->opcode & FABREX_OP_RECV)) {
		fab.fault = FAKE_NONE;
		return;
	}
	spoil(cqe);
	slot += q->cq_tail & (q->attr.cq_entries - 1);
	memcpy(slot, cqe, offsetof(struct fabrex_cqe, flags));
	__atomic_store_n(&slot->flags, htole16(phase), __ATOMIC_RELEASE);
	q->cq_tail++;
}

static struct fake_object *find_queue(uint32_t peer, uint64_t key)
{
	struct fake_object *o;

	for (o = fab.objects; o; o = o->next)
		if (o->type == FAKE_QUEUE && o->file->port == peer &&
		    o->key == key && o->ctrl->state == FABREX_QUEUE_OK)
			return o;
	return NULL;
}

/* A message or immediate arrives at its queue. */
static int deliver(struct fake_object *q, const struct fabrex_sqe *sqe,
		   const void *data, uint64_t length)
{
	struct fake_object *to = find_queue(sqe->peer, sqe->dest_key);
	struct fabrex_cqe cqe = {
		.opcode = data ? FABREX_OP_RECV : FABREX_OP_RECV_IMM,
		.length = (uint32_t)length, .imm = sqe->imm,
		.src_queue = q->id + 100, .peer = (uint16_t)q->file->port,
	};
	uint32_t cell;

	if (!to)
		return FABREX_WC_BAD_QUEUE;
	if (to->rq_tail - ring_acquire(&to->ctrl->rq_head) >=
	    to->attr.rq_entries || !cq_room(to))
		return FABREX_WC_RNR;
	if (data && length > to->attr.cell_size)
		return FABREX_WC_TOO_LONG;
	cell = to->rq_tail & (to->attr.rq_entries - 1);
	if (data)
		memcpy((char *)to->shared.ring + to->shared.rq_offset +
		       cell * to->attr.cell_size, data, length);
	cqe.index = (uint16_t)to->rq_tail++;
	put_cqe(to, &cqe);
	interrupt_if_armed(to);
	return FABREX_WC_OK;
}

static int local_of(struct fake_object *q, const struct fabrex_sqe *sqe,
		    uint64_t length, bool write, char **addr)
{
	struct fake_object *mr = fakedev_mr(q->file->port, sqe->lkey);

	if (!mr || mr->file != q->file)
		return FABREX_WC_LKEY;
	if (sqe->loffset > mr->length || length > mr->length - sqe->loffset)
		return FABREX_WC_LBOUNDS;
	if (write && !(mr->access & FABREX_MR_LOCAL_WRITE))
		return FABREX_WC_LACCESS;
	*addr = (char *)mr->addr + sqe->loffset;
	return FABREX_WC_OK;
}

static int remote_of(struct fake_object *q, const struct fabrex_sqe *sqe,
		     uint64_t length, uint32_t right, char **addr)
{
	struct fake_object *mr;

	if (sqe->peer >= FAKE_PORTS || !fab.port[sqe->peer].up)
		return FABREX_WC_UNREACHABLE;
	mr = fakedev_mr(sqe->peer, sqe->rkey);
	if (!mr)
		return FABREX_WC_RKEY;
	if (sqe->roffset > mr->length || length > mr->length - sqe->roffset)
		return FABREX_WC_RBOUNDS;
	if (!(mr->access & right))
		return FABREX_WC_RACCESS;
	if (!(mr->peers >> q->file->port & 1))
		return FABREX_WC_RPEER;
	*addr = (char *)mr->addr + sqe->roffset;
	return FABREX_WC_OK;
}

static int execute_send(struct fake_object *q, const struct fabrex_sqe *sqe)
{
	char *local = NULL;
	int ret = 0;

	if (sqe->flags & FABREX_SQE_INLINE)
		return deliver(q, sqe, sqe->inline_data, sqe->length);
	if (sqe->rkey || sqe->roffset)
		return FABREX_WC_BAD_DESC;
	ret = local_of(q, sqe, sqe->length, false, &local);
	if (!ret && (sqe->peer >= FAKE_PORTS || !fab.port[sqe->peer].up))
		ret = FABREX_WC_UNREACHABLE;
	return ret ? ret : deliver(q, sqe, local, sqe->length);
}

static int execute_move(struct fake_object *q, const struct fabrex_sqe *sqe)
{
	bool read = sqe->opcode == FABREX_OP_READ;
	char *local, *remote;
	int ret;

	if (sqe->length > FAKE_MAX_TRANSFER)
		return FABREX_WC_BAD_DESC;
	ret = local_of(q, sqe, sqe->length, read, &local);
	if (!ret)
		ret = remote_of(q, sqe, sqe->length,
				read ? FABREX_MR_REMOTE_READ :
				       FABREX_MR_REMOTE_WRITE, &remote);
	if (ret)
		return ret;
	if (read)
		memcpy(local, remote, sqe->length);
	else
		memcpy(remote, local, sqe->length);
	if (sqe->opcode == FABREX_OP_WRITE_IMM)
		return deliver(q, sqe, NULL, sqe->length);
	return FABREX_WC_OK;
}

static int execute_atomic(struct fake_object *q, const struct fabrex_sqe *sqe)
{
	char *local, *remote;
	uint64_t old, now;
	int ret;

	if ((sqe->roffset | sqe->loffset) & 7)
		return FABREX_WC_BAD_DESC;
	ret = local_of(q, sqe, 8, true, &local);
	if (!ret)
		ret = remote_of(q, sqe, 8, FABREX_MR_REMOTE_ATOMIC, &remote);
	if (ret)
		return ret;
	/* Only this thread performs atomics. */
	memcpy(&old, remote, 8);
	now = old;
	if (sqe->opcode == FABREX_OP_FETCH_ADD)
		now = old + sqe->operand;
	else if (old == sqe->compare)
		now = sqe->operand;
	memcpy(remote, &now, 8);
	memcpy(local, &old, 8);
	return FABREX_WC_OK;
}

static int execute(struct fake_object *q, const struct fabrex_sqe *sqe)
{
	if (sqe->flags & FABREX_SQE_FENCE && q->failed) {
		q->failed = false;
		return FABREX_WC_FENCED;
	}
	switch (sqe->opcode) {
	case FABREX_OP_NOP:
		return FABREX_WC_OK;
	case FABREX_OP_SEND:
		return execute_send(q, sqe);
	case FABREX_OP_FETCH_ADD:
	case FABREX_OP_CMP_SWAP:
		return execute_atomic(q, sqe);
	case FABREX_OP_WRITE:
	case FABREX_OP_READ:
	case FABREX_OP_WRITE_IMM:
		return execute_move(q, sqe);
	}
	return FABREX_WC_BAD_OPCODE;
}

static void complete(struct fake_object *q, const struct fabrex_sqe *sqe,
		     int status)
{
	struct fabrex_cqe cqe = {
		.user_data = sqe->user_data, .peer = sqe->peer,
		.index = (uint16_t)q->sq_head, .opcode = sqe->opcode,
		.status = (uint8_t)status,
	};
	bool atomic = sqe->opcode == FABREX_OP_FETCH_ADD ||
		      sqe->opcode == FABREX_OP_CMP_SWAP;

	if (!status)
		cqe.length = atomic ? 8 : (uint32_t)sqe->length;
	if (status && status != FABREX_WC_FENCED)
		q->failed = true;
	if (status || !(sqe->flags & FABREX_SQE_QUIET))
		put_cqe(q, &cqe);
	ring_release(&q->ctrl->sq_head, ++q->sq_head);
	fab.executed++;
}

/* Execute what the queue holds; true if there was something. */
static bool serve_entries(struct fake_object *q, uint32_t tail)
{
	struct fabrex_sqe *ring = (struct fabrex_sqe *)
		((char *)q->shared.ring + q->shared.sq_offset);
	bool any = false;

	if (tail - q->sq_head > q->attr.sq_entries)
		fakedev_end(q, FABREX_QUEUE_ERROR, FABREX_QERR_SQ_INDEX);
	while (q->sq_head != tail && q->ctrl->state == FABREX_QUEUE_OK &&
	       fab.budget) {
		struct fabrex_sqe sqe = ring[q->sq_head &
					     (q->attr.sq_entries - 1)];

		complete(q, &sqe, execute(q, &sqe));
		fab.budget -= fab.budget > 0;
		any = true;
	}
	return any;
}

/*
 * While db_needed is 0 sq_tail is watched, otherwise only the doorbell is
 * looked at: a library that does not ring it gets no answer.
 */
static void serve_queue(struct fake_object *q)
{
	uint32_t db = ring_acquire((__le32 *)q->shared.doorbell);
	bool watching = !q->ctrl->db_needed;

	if (q->ctrl->state != FABREX_QUEUE_OK)
		return;
	if (db != q->last_doorbell)
		fab.doorbells++;
	if (watching || db != q->last_doorbell || fab.budget > 0) {
		bool any = serve_entries(q, ring_acquire(&q->ctrl->sq_tail));

		q->last_doorbell = db;
		q->idle = any ? 0 : q->idle + 1;
		if (any) {
			ring_release(&q->ctrl->db_needed, 0);
		} else if (watching && q->idle > IDLE_PASSES) {
			ring_release(&q->ctrl->db_needed, 1);
			barrier_full();
			serve_entries(q, ring_acquire(&q->ctrl->sq_tail));
		}
	}
	interrupt_if_armed(q);
}

static void *device(void *unused)
{
	const struct timespec nap = { .tv_nsec = 20000 };
	struct fake_object *o;

	(void)unused;
	for (;;) {
		pthread_mutex_lock(&fab.lock);
		for (o = fab.objects; o; o = o->next)
			if (o->type == FAKE_QUEUE && fab.budget)
				serve_queue(o);
		pthread_mutex_unlock(&fab.lock);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

void fakedev_start(void)
{
	pthread_t thread;

	pthread_mutex_lock(&fab.lock);
	if (!fab.started) {
		fab.started = true;
		if (pthread_create(&thread, NULL, device, NULL))
			abort();
		pthread_detach(thread);
	}
	pthread_mutex_unlock(&fab.lock);
}

/* ---- control ----------------------------------------------------------- */

static void set_budget(int budget)
{
	pthread_mutex_lock(&fab.lock);
	fab.budget = budget;
	pthread_mutex_unlock(&fab.lock);
}

void fake_hold(void)
{
	set_budget(0);
}

void fake_run(void)
{
	set_budget(-1);
}

void fake_step(unsigned int n)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	int tries, left = 1;

	set_budget((int)n);
	for (tries = 0; left && tries < 20000; tries++) {
		nanosleep(&nap, NULL);
		pthread_mutex_lock(&fab.lock);
		left = fab.budget;
		pthread_mutex_unlock(&fab.lock);
	}
	set_budget(0);
}

void fake_fault(enum fake_fault fault)
{
	pthread_mutex_lock(&fab.lock);
	fab.fault = fault;
	pthread_mutex_unlock(&fab.lock);
}

void fake_kill(uint32_t queue, uint32_t state, uint32_t error)
{
	struct fake_object *o;

	pthread_mutex_lock(&fab.lock);
	for (o = fab.objects; o; o = o->next)
		if (o->type == FAKE_QUEUE && o->id + 100 == queue)
			fakedev_end(o, state, error);
	pthread_mutex_unlock(&fab.lock);
}

void fake_link(unsigned int peer, bool up)
{
	pthread_mutex_lock(&fab.lock);
	fab.port[peer].up = up;
	pthread_mutex_unlock(&fab.lock);
}
