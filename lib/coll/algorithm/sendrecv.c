// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * SEND and RECV. A small one goes in the line of the message, a larger one in
 * pieces through the slots; a large one stays where it is, and the receiver is
 * told where and reads it. Called by progress.c.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "coll/algorithm/algorithm.h"
#include "coll/operation/gpu.h"
#include "coll/operation/peer_buffer.h"

/*
 * Bytes from which the receiver reads: with windows that are memory, where no
 * other rank has to take part, and without. What cannot be mapped goes through
 * the slots again when it is very long, as both ranks copy then. Measured.
 */
#define LARGE		(4u << 10)
#define LARGE_FAR	(32u << 10)
#define VERY_LARGE	(2u << 20)
#define STEP	(1u << 20)	/* bytes copied between looks at the rest */

enum {
	MSG_DATA = 1,		/* payload is the next piece of word bytes */
	MSG_LARGE,		/* payload: struct peer_buffer, of word bytes */
};

struct fifo {
	struct fabrex_coll *first, *last;
};

/* SENDs to, and RECVs from, one rank. */
struct sendrecv {
	struct fifo sends;	/* not issued yet, or not all of it */
	struct fifo announced;	/* until the receiver has read them */
	struct fifo recvs;
	uint64_t acked;		/* announced ones that were read there */
	uint64_t taken;		/* its announced ones that were read here */
	uint64_t posted;	/* taken, as last told to it */
	uint64_t skip;		/* bytes of a refused SEND that are still to
				 * come: taken without a RECV, or neither that
				 * SEND nor later ones would end
				 */
	const char *mapped;	/* the first recv reads from there */
	bool reading;		/* or with fxi_buffer_read(), */
	void *bounce;		/* into this if it is for a GPU */
	struct peer_buffer buffer;
};

int fxi_sendrecv_make(struct fabrex_comm *comm)
{
	comm->sendrecv = calloc(comm->size, sizeof(*comm->sendrecv));
	if (!comm->sendrecv)
		return fxi_error(ENOMEM, "communicator: out of memory");
	return 0;
}

static void push(struct fifo *fifo, struct fabrex_coll *coll)
{
	coll->next = NULL;
	if (fifo->last)
		fifo->last->next = coll;
	else
		fifo->first = coll;
	fifo->last = coll;
}

static struct fabrex_coll *pop(struct fifo *fifo)
{
	struct fabrex_coll *coll = fifo->first;

	fifo->first = coll->next;
	if (!fifo->first)
		fifo->last = NULL;
	return coll;
}

/* Without memory it is tried again, as its buffers may be a GPU's. */
static bool enter(struct fabrex_coll *coll)
{
	coll->begun = !fxi_coll_may_have_changed(coll) ||
		      !fxi_coll_find_gpu(coll);
	return coll->begun;
}

/* The first, if it is its turn in its stream; NULL: none. */
static struct fabrex_coll *due(const struct fifo *fifo)
{
	struct fabrex_coll *coll = fifo->first;

	if (!coll || !fxi_coll_is_due(coll))
		return NULL;
	if (unlikely(coll->stream && !coll->begun) && !enter(coll))
		return NULL;
	return coll;
}

/* @coll has ended; what it held of the cache is given back. */
static void ended(struct fabrex_coll *coll, int result)
{
	coll->comm->nsendrecv--;
	if (coll->state)
		fabrex_mr_cache_put(coll->state);
	coll->state = NULL;
	fxi_coll_ended(coll, result);
}

static uint64_t length_of(const struct fabrex_coll *coll)
{
	return fxi_count_bytes(&coll->what);
}

/* ---- sending ----------------------------------------------------------- */

/*
 * Announces it to the receiver, who will read it. 1: done; 0: no room;
 * -ENOTSUP: it cannot be read.
 */
static int announce(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct fabrex_port *port = fxi_link_port_for(comm, coll->what.root);
	struct fabrex_mr *held = NULL;
	struct peer_buffer buffer;
	int ret;

	if (!fxi_link_room(comm, coll->what.root, LINK_SENDRECV))
		return 0;
	if (!port)
		return -ENOTSUP;
	fxi_buffer_export(comm, port, coll->what.send, length_of(coll),
			  FABREX_MR_REMOTE_READ,
			  comm->coherent && length_of(coll) >= VERY_LARGE ?
			  NULL : &held, &buffer);
	if (!buffer.rkey)
		return -ENOTSUP;
	coll->state = held;
	ret = fxi_link_send(comm, coll->what.root, LINK_SENDRECV, MSG_LARGE,
			    length_of(coll), &buffer, sizeof(buffer));
	return ret ? ret : 1;
}

/* The next piece. 1: was sent; 0: no room. */
static int send_piece(struct fabrex_coll *coll, uint64_t length)
{
	const char *from = (const char *)coll->what.send + coll->done;
	uint32_t n, size = fxi_link_size(coll->comm);
	uint32_t rank = coll->what.root;
	void *room = NULL;
	int ret;

	n = length - coll->done < size ? (uint32_t)(length - coll->done) : size;
	if (n > LINK_SMALL || unlikely(coll->send_kind && n)) {
		room = fxi_link_room(coll->comm, rank, LINK_SENDRECV);
		if (!room)
			return 0;
		ret = fxi_coll_copy_in(coll, room, from, n);
		if (ret)
			return ret;
		from = NULL;
	}
	ret = fxi_link_send(coll->comm, rank, LINK_SENDRECV, MSG_DATA, length,
			    n ? from : (const void *)"", n);
	if (ret)
		return ret == -EAGAIN ? 0 : ret;
	coll->done += n;
	return 1;
}

/* 1: all of it is sent; 2: it is announced; 0: no room. */
static int issue(struct fabrex_coll *coll)
{
	uint64_t length = length_of(coll);
	int ret;

	if (length >= (coll->comm->coherent ? LARGE : LARGE_FAR) &&
	    !coll->done) {
		ret = announce(coll);
		if (ret != -ENOTSUP)
			return ret > 0 ? 2 : ret;
	}
	do {
		ret = send_piece(coll, length);
	} while (ret > 0 && coll->done < length);
	return ret;
}

static int progress_sends(struct sendrecv *sr)
{
	int ret;

	while (due(&sr->sends)) {
		ret = issue(sr->sends.first);
		if (ret <= 0)
			return ret;
		if (ret == 2)
			push(&sr->announced, pop(&sr->sends));
		else
			ended(pop(&sr->sends), 0);
	}
	return 0;
}

/* The board says how many of the announced were read. */
static void progress_announced(struct fabrex_comm *comm, uint32_t rank,
			       struct sendrecv *sr)
{
	uint64_t count = __atomic_load_n(fxi_link_board(comm, rank,
							BOARD_AT_READ),
					 __ATOMIC_ACQUIRE);

	while (sr->announced.first && sr->acked != count) {
		sr->acked++;
		comm->moved++;
		ended(pop(&sr->announced), 0);
	}
}

/* ---- receiving --------------------------------------------------------- */

static int wrong_length(const struct fabrex_coll *coll, uint64_t sent)
{
	return fxi_error(EMSGSIZE, "recv of %llu bytes at rank %u: rank %u has sent %llu; counts and types of both have to be the same",
			 (unsigned long long)length_of(coll), coll->comm->rank,
			 coll->what.root, (unsigned long long)sent);
}

static void acknowledge(struct fabrex_comm *comm, uint32_t rank,
			struct sendrecv *sr)
{
	atomic_thread_fence(memory_order_release);
	if (!fxi_link_post(comm, rank, BOARD_AT_READ, &sr->taken,
			   sizeof(sr->taken)))
		sr->posted = sr->taken;
}

/*
 * Mapped memory of the sender: a part at a time, as after a failure the sender
 * may have reused its buffer. 1: that was all.
 */
static int read_mapped(struct fabrex_coll *coll, struct sendrecv *sr)
{
	uint64_t rest = length_of(coll) - coll->done;
	uint64_t n = rest < STEP ? rest : STEP;
	int ret;

	ret = fxi_coll_copy_out(coll, (char *)coll->what.recv + coll->done,
				sr->mapped + coll->done, n);
	coll->done += n;
	coll->comm->moved++;
	if (!ret)
		ret = fxi_comm_alarmed(coll->comm);
	return ret ? ret : n == rest;
}

static int read_begin(struct fabrex_coll *coll, struct sendrecv *sr)
{
	uint64_t length = length_of(coll);
	int ret;

	if (coll->recv_kind && !sr->bounce) {
		sr->bounce = malloc(length);
		if (!sr->bounce)
			return fxi_error(ENOMEM, "recv: no memory for %llu bytes on their way to a GPU",
					 (unsigned long long)length);
	}
	ret = fxi_buffer_read(coll->comm, coll->what.root, &sr->buffer, 0,
			      sr->bounce ? sr->bounce : coll->what.recv,
			      length);
	sr->reading = !ret;
	return ret == -EAGAIN ? 0 : ret;
}

/* 1: it has arrived; 0: not yet, or another one is being read. */
static int read_far(struct fabrex_coll *coll, struct sendrecv *sr)
{
	int ret = sr->reading ? 0 : read_begin(coll, sr);

	if (ret || !sr->reading)
		return ret;
	ret = fxi_buffer_read_test(coll->comm);
	if (ret > 0 && fxi_comm_alarmed(coll->comm))
		return coll->comm->error;
	if (ret > 0 && sr->bounce)
		ret = fxi_coll_copy_out(coll, coll->what.recv, sr->bounce,
					length_of(coll)) ? -EIO : 1;
	return ret;
}

/*
 * Advances a large one. Its sender may go on, whatever the result, unless the
 * communicator has failed: then a negative errno.
 */
static int progress_large(struct fabrex_coll *coll, struct sendrecv *sr)
{
	int ret;

	ret = sr->mapped ? read_mapped(coll, sr) : read_far(coll, sr);
	if (!ret)
		return 0;
	if (unlikely(coll->comm->error))
		return coll->comm->error;
	free(sr->bounce);
	sr->bounce = NULL;
	sr->mapped = NULL;
	sr->reading = false;
	sr->buffer.rkey = 0;
	sr->taken++;
	acknowledge(coll->comm, coll->what.root, sr);
	ended(pop(&sr->recvs), ret < 0 ? ret : 0);
	return 1;
}

static void begin_large(struct fabrex_coll *coll, struct sendrecv *sr,
			const struct link_message *message)
{
	struct fabrex_comm *comm = coll->comm;
	uint32_t rank = coll->what.root;
	uint64_t length = message->word;

	memcpy(&sr->buffer, message->small, sizeof(sr->buffer));
	fxi_link_pop(comm, rank, LINK_SENDRECV);
	if (length != length_of(coll)) {
		sr->buffer.rkey = 0;
		sr->taken++;
		acknowledge(comm, rank, sr);
		ended(pop(&sr->recvs), wrong_length(coll, length));
		return;
	}
	sr->mapped = fxi_buffer_map(comm, rank, &sr->buffer);
}

static void skip(struct fabrex_comm *comm, struct sendrecv *sr, uint64_t bytes)
{
	sr->skip = bytes;
	comm->skipping += bytes != 0;
}

static void take_piece(struct fabrex_coll *coll, struct sendrecv *sr,
		       const struct link_message *message)
{
	struct fabrex_comm *comm = coll->comm;
	uint32_t rank = coll->what.root;
	uint64_t length = message->word, n = message->length;
	void *to = (char *)coll->what.recv + coll->done;
	int ret = 0;

	if (unlikely(length != length_of(coll) || n > length - coll->done)) {
		skip(comm, sr, length > n ? length - n : 0);
		fxi_link_pop(comm, rank, LINK_SENDRECV);
		ended(pop(&sr->recvs), wrong_length(coll, length));
		return;
	}
	if (n <= LINK_SMALL && likely(!coll->recv_kind))
		fxi_link_copy(to, message->small, (uint32_t)n);
	else if (n)
		ret = fxi_coll_copy_out(coll, to,
					fxi_link_payload(comm, rank,
							 LINK_SENDRECV), n);
	coll->done += n;
	fxi_link_pop(comm, rank, LINK_SENDRECV);
	if (unlikely(ret))
		skip(comm, sr, length - coll->done);
	if (ret || coll->done == length)
		ended(pop(&sr->recvs), ret);
}

/* Drops the rest of one that was too long or too short. */
static void skip_piece(struct fabrex_comm *comm, uint32_t rank,
		       struct sendrecv *sr, const struct link_message *message)
{
	sr->skip -= message->length < sr->skip ? message->length : sr->skip;
	comm->skipping -= !sr->skip;
	fxi_link_pop(comm, rank, LINK_SENDRECV);
}

static int no_sense(uint32_t rank, const struct link_message *message)
{
	return fxi_error(EPROTO, "recv: invalid message of rank %u (tag %u, %u bytes); do all ranks run the same library?",
			 rank, message->tag, message->length);
}

static int progress_recvs(struct fabrex_comm *comm, uint32_t rank,
			  struct sendrecv *sr)
{
	const struct link_message *message;
	int ret;

	while (due(&sr->recvs) || sr->skip) {
		if (sr->buffer.rkey) {
			ret = progress_large(sr->recvs.first, sr);
			if (ret <= 0)
				return ret;
			continue;
		}
		message = fxi_link_peek(comm, rank, LINK_SENDRECV);
		if (!message)
			return 0;
		if (unlikely(sr->skip))
			skip_piece(comm, rank, sr, message);
		else if (message->tag == MSG_DATA)
			take_piece(sr->recvs.first, sr, message);
		else if (message->tag == MSG_LARGE &&
			 message->length == sizeof(sr->buffer))
			begin_large(sr->recvs.first, sr, message);
		else
			return no_sense(rank, message);
	}
	return 0;
}

/* ---- with oneself ------------------------------------------------------ */

/* Takes the memory kinds of both, and the GPU of either. */
static int copy_to_self(struct fabrex_coll *recv,
			const struct fabrex_coll *send)
{
	recv->send_kind = send->send_kind;
	if (!recv->gpu)
		recv->gpu = send->gpu;
	if (recv->gpu)
		return fxi_coll_copy_own(recv, recv->what.recv,
					 send->what.send, length_of(send));
	memmove(recv->what.recv, send->what.send, length_of(send));
	return 0;
}

static void progress_self(struct sendrecv *sr)
{
	struct fabrex_coll *send, *recv;
	int ret;

	while (due(&sr->sends) && due(&sr->recvs)) {
		send = pop(&sr->sends);
		recv = pop(&sr->recvs);
		ret = 0;
		if (length_of(send) != length_of(recv))
			ret = wrong_length(recv, length_of(send));
		else if (length_of(send))
			ret = copy_to_self(recv, send);
		send->comm->moved++;
		ended(send, 0);
		ended(recv, ret);
	}
}

/* ---- from progress.c --------------------------------------------------- */

static int progress(struct fabrex_comm *comm, uint32_t rank)
{
	struct sendrecv *sr = &comm->sendrecv[rank];
	int ret;

	if (rank == comm->rank) {
		progress_self(sr);
		return 0;
	}
	if (sr->posted != sr->taken)
		acknowledge(comm, rank, sr);
	if (sr->announced.first)
		progress_announced(comm, rank, sr);
	ret = progress_sends(sr);
	return ret ? ret : progress_recvs(comm, rank, sr);
}

uint32_t fxi_sendrecv_waiting(const struct fabrex_comm *comm)
{
	uint32_t rank;

	for (rank = 0; comm->nsendrecv && rank < comm->size; rank++) {
		const struct sendrecv *sr = &comm->sendrecv[rank];

		if (due(&sr->sends) || sr->announced.first || due(&sr->recvs))
			return rank;
	}
	return UINT32_MAX;
}

int fxi_sendrecv_progress(struct fabrex_comm *comm)
{
	uint32_t rank;
	int ret = 0;

	for (rank = 0; rank < comm->size && !ret; rank++)
		ret = progress(comm, rank);
	return ret;
}

int fxi_sendrecv_begin(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	uint32_t rank = coll->what.root;
	struct sendrecv *sr = &comm->sendrecv[rank];

	comm->nsendrecv++;
	push(coll->what.kind == FABREX_SEND ? &sr->sends : &sr->recvs, coll);
	return progress(comm, rank);
}

static void take_out(struct fifo *fifo, const struct fabrex_coll *coll)
{
	struct fabrex_coll **at = &fifo->first;

	fifo->last = NULL;
	while (*at) {
		if (*at == coll) {
			*at = coll->next;
			continue;
		}
		fifo->last = *at;
		at = &(*at)->next;
	}
}

void fxi_sendrecv_alone(struct fabrex_coll *coll)
{
	struct sendrecv *sr = &coll->comm->sendrecv[coll->what.root];

	if (!fxi_is_sendrecv(coll) || coll->what.root != coll->comm->rank ||
	    coll->result != GOING)
		return;
	take_out(&sr->sends, coll);
	take_out(&sr->recvs, coll);
	ended(coll, fxi_error(EDEADLK, "%s: rank %u waits for itself; put both ends into a group, or start the other one first",
			      fxi_kind_name(coll->what.kind),
			      coll->what.root));
}

static void give_up(struct fifo *fifo, int error)
{
	while (fifo->first)
		ended(pop(fifo), error);
}

void fxi_sendrecv_give_up(struct fabrex_comm *comm, int error)
{
	uint32_t rank;

	if (!fxi_sendrecv_busy(comm))
		return;
	comm->skipping = 0;
	for (rank = 0; rank < comm->size; rank++) {
		give_up(&comm->sendrecv[rank].sends, error);
		give_up(&comm->sendrecv[rank].announced, error);
		give_up(&comm->sendrecv[rank].recvs, error);
		comm->sendrecv[rank].skip = 0;
		free(comm->sendrecv[rank].bounce);
		comm->sendrecv[rank].bounce = NULL;
	}
}

static void free_all(struct fifo *fifo)
{
	struct fabrex_coll *coll;

	while (fifo->first) {
		coll = pop(fifo);
		if (coll->state)
			fabrex_mr_cache_put(coll->state);
		fxi_coll_abandon(coll);
	}
}

void fxi_sendrecv_free(struct fabrex_comm *comm)
{
	uint32_t rank;

	for (rank = 0; comm->sendrecv && rank < comm->size; rank++) {
		free_all(&comm->sendrecv[rank].sends);
		free_all(&comm->sendrecv[rank].announced);
		free_all(&comm->sendrecv[rank].recvs);
		free(comm->sendrecv[rank].bounce);
	}
	free(comm->sendrecv);
	comm->sendrecv = NULL;
	comm->nsendrecv = 0;
	/* Otherwise it would stay on the list of busy communicators. */
	comm->skipping = 0;
}
