// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A message has found its receive: it is copied, or fetched if it is long, or
 * read into a device. Used by receive.c for what has just arrived, and by recv.c
 * for what had arrived before.
 */
#include <stdlib.h>
#include <string.h>

#include "message.h"

static void end(struct request *request, struct peer *peer, uint64_t length)
{
	if (__builtin_expect(length > request->length, 0))
		request_fail(request, CAUSE_TRUNCATED);
	receive_end(request, length, message_source(peer));
}

/* ---- into a device ----------------------------------------------------- */

static void read_own(struct request *request)
{
	if (request->message.token)
		answer_send(request->peer, WIRE_FIN, request->message.token,
			    request->error ? FIN_FAILED : FIN_OK);
	end(request, request->peer, request->message.total);
}

/* The processor does not write there: the port reads from a bounce buffer. */
static int start_own(struct request *request)
{
	struct endpoint *ep = request->ep;
	size_t bytes = (size_t)request->message.bytes;
	struct bounce *bounce = bounce_take(ep, bytes);

	if (!bounce)
		return -FI_EAGAIN;
	memcpy(bounce->data, request->copy, bytes);
	request->bounce = bounce;
	request->message.rkey = fabrex_mr_key(ep->bounces.mr);
	request->message.roffset = bounce->offset;
	move_begin(request, read_own);
	return 0;
}

static void into_device(struct request *request, struct peer *peer,
			const struct arrival *arrival)
{
	uint64_t bytes = arrival->length < request->length ? arrival->length :
			 request->length;

	request_bind(request, peer);
	request->phase = PHASE_READ_OWN;
	request->done = 0;
	request->message.token = arrival->delivery ? arrival->token : 0;
	request->message.total = arrival->length;
	request->message.bytes = bytes;
	request->copy = malloc((size_t)bytes + 1);
	if (!request->copy)
		request_fail(request, -ENOMEM);
	else
		memcpy(request->copy, arrival->payload, (size_t)bytes);
	if (request->error ||
	    !move_register(request, FABREX_MR_LOCAL_WRITE, bytes)) {
		read_own(request);
		return;
	}
	request->resume = start_own;
	if (start_own(request))
		request_retry(request);
}

/* ---- one of several ---------------------------------------------------- */

bool deliver_is_last(const struct request *parent, uint64_t length)
{
	uint64_t room = parent->length - parent->done;

	return length >= room || room - length < parent->ep->min_multi_recv;
}

/* The part of a larger buffer that this message gets. */
static struct request *part_of(struct request *parent, uint64_t length)
{
	struct request *part = request_new_slowly(parent->ep, true, true);
	bool last = deliver_is_last(parent, length);

	if (!part)
		return NULL;
	part->context = parent->context;
	part->flags = parent->flags & ~FI_MULTI_RECV;
	part->cq_flags = parent->cq_flags;
	part->cntr = parent->cntr;
	part->silent = parent->silent;
	part->buf = parent->buf + parent->done;
	part->length = parent->length - parent->done;
	part->desc = parent->desc;
	part->addr = FI_ADDR_UNSPEC;
	part->message.parent = parent;
	parent->message.users++;
	parent->done += length < part->length ? length : part->length;
	if (last) {
		receive_withdraw(parent);
		parent->phase = PHASE_CLOSED;
	}
	return part;
}

/* ---- any --------------------------------------------------------------- */

static inline void copy_out(const struct request *request,
			    const struct arrival *arrival)
{
	uint64_t n = arrival->length;

	if (__builtin_expect(n > request->length, 0))
		n = request->length;
	if (__builtin_expect(request->vector != NULL, 0))
		message_scatter(request, arrival->payload, n);
	else if (__builtin_expect(n == 8, 1))
		memcpy(request->buf, arrival->payload, 8);
	else if (n)
		memcpy(request->buf, arrival->payload, (size_t)n);
}

int deliver(struct request *request, struct peer *peer,
	    const struct arrival *arrival)
{
	if (__builtin_expect(request->flags & FI_MULTI_RECV, 0)) {
		request = part_of(request, arrival->length);
		if (!request)
			return -FI_ENOMEM;
	}
	request->tag = arrival->tag;
	request->data = arrival->data;
	if (arrival->has_data)
		request->cq_flags |= FI_REMOTE_CQ_DATA;
	if (__builtin_expect(arrival->rts, 0)) {
		rendezvous_receive(request, peer, arrival);
		return 0;
	}
	if (__builtin_expect(peer->ep->hmem, 0) && arrival->length &&
	    message_is_device(request)) {
		into_device(request, peer, arrival);
		return 0;
	}
	copy_out(request, arrival);
	if (__builtin_expect(arrival->delivery, 0))
		answer_send(peer, WIRE_FIN, arrival->token, FIN_OK);
	end(request, peer, arrival->length);
	return 0;
}

void deliver_nowhere(struct peer *peer, const struct arrival *arrival)
{
	if (arrival->rts || arrival->delivery)
		answer_send(peer, WIRE_FIN, arrival->token, FIN_OK);
}
