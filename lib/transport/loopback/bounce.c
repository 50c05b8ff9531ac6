// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory that only its owner can access: bounce buffers in this port's heap,
 * several at a time, which the owner's service thread fills or empties. Called
 * by remote.c while active is odd. The other half is assist.c.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/barrier.h"
#include "state.h"

#define PIECES		4u
#define STEP		(sizeof(struct segment_piece) + LOOP_PIECE)
#define PIECE_MIN	(16u << 10)
#define SPINS		200
#define NAP_NS		10000000	/* between checks of the owner */
#define DYING_NS	100000000	/* until it is dead, */
#define DYING_LOOKS	100		/* looked for so often */

struct loop_bounce {
	struct loop_bounce *next; /* spare */
	uint64_t offset;	/* of the pieces in our segment */
	uint32_t serial;
	bool late;		/* requests for it may still be unread */
};

/* A piece that the owner was asked for. */
struct piece {
	struct segment_piece *shared;
	uint64_t offset, length; /* into the move */
};

struct passage {
	struct loop_queue *q;
	const struct loop_move *move;
	struct loop_bounce *bounce;
	struct piece pieces[PIECES];
	uint64_t chunk;
	uint64_t asked, done;	/* bytes */
	uint64_t deadline;
};

/* ---- buffers ----------------------------------------------------------- */

static struct loop_bounce *take_spare(struct transport *t)
{
	struct loop_bounce *b;

	pthread_mutex_lock(&t->lock);
	b = t->state->spare;
	if (b)
		t->state->spare = b->next;
	pthread_mutex_unlock(&t->lock);
	return b;
}

static struct loop_bounce *bounce_of(struct loop_queue *q)
{
	struct loop_bounce *b = q->bounce;

	if (!b)
		b = q->bounce = take_spare(q->transport);
	if (b)
		return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	if (fxi_loop_heap_alloc(q->transport, PIECES * STEP, &b->offset)) {
		free(b);
		return NULL;
	}
	q->bounce = b;
	return b;
}

/*
 * A request that was taken back is still read by the owner at some time: until
 * then its place must not become something that looks like it.
 */
void fxi_loop_bounce_free(struct loop_queue *q)
{
	struct transport *t = q->transport;
	struct loop_bounce *b = q->bounce;

	if (!b)
		return;
	q->bounce = NULL;
	if (!b->late) {
		fxi_loop_heap_free(t, b->offset, PIECES * STEP);
		free(b);
		return;
	}
	pthread_mutex_lock(&t->lock);
	b->next = t->state->spare;
	t->state->spare = b;
	pthread_mutex_unlock(&t->lock);
}

void fxi_loop_bounce_end(struct transport *t)
{
	struct loop_bounce *b;

	while ((b = t->state->spare)) {
		t->state->spare = b->next;
		free(b);
	}
}

/*
 * The owner has begun with a piece, lives, and does not finish: it still may,
 * even if its connection has ended. The pieces stay where they are, unused, for
 * as long as the port is open.
 */
static void abandon(struct loop_queue *q)
{
	free(q->bounce);
	q->bounce = NULL;
}

/* ---- waiting ----------------------------------------------------------- */

static uint32_t state_of(const struct segment_piece *p)
{
	return __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
}

static void sleep_on(struct segment_piece *p)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	uint32_t state = state_of(p);

	if (state != SEGMENT_PIECE_DONE)
		syscall(SYS_futex, &p->state, FUTEX_WAIT, state, &nap, NULL,
			0);
}

/* Give up before those that wait for this thread do. */
static uint64_t patience(const struct loop_queue *q)
{
	return fxi_now_ns() + q->transport->state->settings.quiesce_ms *
			      500000ull;
}

static bool gone(const struct passage *w)
{
	return !__atomic_load_n(&w->move->peer->up, __ATOMIC_ACQUIRE);
}

static uint8_t wait_for(struct passage *w, struct segment_piece *p)
{
	int i;

	for (i = 0; i < SPINS; i++) {
		if (state_of(p) == SEGMENT_PIECE_DONE)
			return FABREX_WC_OK;
		cpu_relax();
	}
	while (state_of(p) != SEGMENT_PIECE_DONE) {
		if (gone(w))
			return FABREX_WC_UNREACHABLE;
		if (fxi_now_ns() > w->deadline)
			return FABREX_WC_RFAULT;
		sleep_on(p);
	}
	return FABREX_WC_OK;
}

/* ---- pieces ------------------------------------------------------------ */

static uint8_t send(struct passage *w, const struct loop_message *m)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	int ret;

	while ((ret = fxi_loop_socket_send(w->move->peer->sock, m, -1)) ==
	       -EAGAIN) {
		if (gone(w))
			return FABREX_WC_UNREACHABLE;
		if (fxi_now_ns() > w->deadline)
			return FABREX_WC_RFAULT;
		nanosleep(&nap, NULL);
	}
	return ret ? FABREX_WC_UNREACHABLE : FABREX_WC_OK;
}

static uint8_t ask(struct passage *w, struct piece *p)
{
	const struct loop_move *v = w->move;
	char *segment = (char *)w->q->transport->segment;
	const struct loop_message m = {
		.type = LOOP_MOVE,
		.value = {
			[REQUEST_KEY] = v->mr->key,
			[REQUEST_OFFSET] = v->offset + p->offset,
			[REQUEST_LENGTH] = p->length,
			[REQUEST_PIECE] = (uint64_t)((char *)p->shared -
						     segment),
			[REQUEST_SERIAL] = ++w->bounce->serial,
			[REQUEST_OPCODE] = v->opcode,
			[REQUEST_OPERAND] = v->operand,
			[REQUEST_COMPARE] = v->compare,
		},
	};

	p->shared->serial = w->bounce->serial;
	__atomic_store_n(&p->shared->state, SEGMENT_PIECE_ASKED,
			 __ATOMIC_RELEASE);
	return send(w, &m);
}

static struct piece *piece_at(struct passage *w, uint64_t offset)
{
	return &w->pieces[offset / w->chunk % PIECES];
}

static uint8_t ask_next(struct passage *w)
{
	const struct loop_move *v = w->move;
	struct piece *p = piece_at(w, w->asked);
	uint64_t rest = v->length - w->asked;

	p->offset = w->asked;
	p->length = rest < w->chunk ? rest : w->chunk;
	if (!v->read)
		memcpy(p->shared + 1, (char *)v->local + p->offset, p->length);
	w->asked += p->length;
	return ask(w, p);
}

static uint8_t take_oldest(struct passage *w)
{
	const struct loop_move *v = w->move;
	struct piece *p = piece_at(w, w->done);
	uint8_t status = wait_for(w, p->shared);

	if (status)
		return status;
	w->done += p->length;
	w->deadline = patience(w->q);
	/* The owner's status is read once; it may be any number. */
	status = (uint8_t)p->shared->status;
	if (!status && v->read)
		memcpy((char *)v->local + p->offset, p->shared + 1, p->length);
	return status;
}

/* False: the owner has begun to copy it. */
static bool take_back(struct passage *w, struct piece *p)
{
	w->bounce->late = true;
	return segment_piece_take(p->shared, p->shared->serial,
				  SEGMENT_PIECE_IDLE) ||
	       state_of(p->shared) != SEGMENT_PIECE_BUSY;
}

/* A process that ends closes its connections some time before it is dead. */
static bool has_died(const struct passage *w)
{
	const struct timespec nap = { .tv_nsec = DYING_NS / DYING_LOOKS };
	uint32_t looks;

	for (looks = 0; gone(w) && looks < DYING_LOOKS; looks++) {
		if (fxi_loop_is_dead(w->move->peer->pid))
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

/*
 * After a failure every piece has to be finished, or never to begin: nothing is
 * copied after the operation was reported to have failed.
 */
static void settle(struct passage *w)
{
	bool begun = false;

	while (w->done < w->asked) {
		struct piece *p = piece_at(w, w->done);

		if (wait_for(w, p->shared))
			begun |= !take_back(w, p);
		w->done += p->length;
	}
	if (begun && !has_died(w))
		abandon(w->q);
}

static uint8_t run(struct passage *w)
{
	const struct loop_move *v = w->move;
	uint8_t status = FABREX_WC_OK;

	while (!status && w->done < v->length) {
		if (w->asked < v->length &&
		    w->asked - w->done < PIECES * w->chunk)
			status = ask_next(w);
		else
			status = take_oldest(w);
	}
	if (status)
		settle(w);
	return status;
}

/* ---- both kinds -------------------------------------------------------- */

static uint8_t run_atomic(struct passage *w)
{
	const struct loop_move *v = w->move;
	struct piece *p = &w->pieces[0];
	uint8_t status;

	p->offset = 0;
	p->length = 8;
	w->asked = 8;
	status = ask(w, p);
	if (!status)
		status = wait_for(w, p->shared);
	if (status) {
		settle(w);
		return status;
	}
	status = (uint8_t)p->shared->status;
	if (!status)
		memcpy(v->local, &p->shared->result, 8);
	return status;
}

static uint64_t chunk_for(uint64_t length)
{
	uint64_t chunk = (length / PIECES + PIECE_MIN - 1) / PIECE_MIN *
			 PIECE_MIN;

	if (chunk < PIECE_MIN)
		return PIECE_MIN;
	return chunk > LOOP_PIECE ? LOOP_PIECE : chunk;
}

uint8_t fxi_loop_bounce(struct loop_queue *q, const struct loop_move *move)
{
	struct passage w = {
		.q = q, .move = move, .bounce = bounce_of(q),
		.chunk = chunk_for(move->length), .deadline = patience(q),
	};
	char *at;
	uint32_t i;

	if (!w.bounce)
		return FABREX_WC_LFAULT;
	at = (char *)q->transport->segment + w.bounce->offset;
	for (i = 0; i < PIECES; i++)
		w.pieces[i].shared = (struct segment_piece *)(at + i * STEP);
	if (move->opcode == FABREX_OP_FETCH_ADD ||
	    move->opcode == FABREX_OP_CMP_SWAP)
		return run_atomic(&w);
	return run(&w);
}
