// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sending a message whose request is complete: short ones are copied into a
 * bounce buffer and sent, of long ones the peer is told. Used by message.c, now
 * or when the peer is ready.
 */
#include <stdlib.h>
#include <string.h>

#include "message.h"

size_t send_size(const struct request *request)
{
	return (size_t)request->length +
	       wire_eager_head(request->message.kind);
}

void send_completed(struct request *request, const struct fabrex_wc *wc)
{
	if (__builtin_expect(wc && wc->status, 0))
		request_fail(request, wc->status);
	if (__builtin_expect(request->error && request->phase, 0)) {
		list_remove(&request->node);
		request->phase = PHASE_NONE;
	}
	if (!request->posted && !request->phase)
		request_end(request, request->length, FI_ADDR_NOTAVAIL);
}

static inline void send_eager(struct request *request, struct bounce *bounce,
			      size_t size)
{
	struct peer *peer = request->peer;

	peer->data--;
	request_begin(request);
	if (__builtin_expect(request->message.kind & WIRE_DELIVERY, 0)) {
		request->phase = PHASE_DELIVERY;
		peer_await(request);
	}
	datagram_send(peer, (enum wire_kind)request->message.kind, bounce,
		      size, request);
}

/*
 * What was injected does not fit into the peer's cells, which are smaller than
 * ours. The program may use its buffers again, and of a bounce buffer the peer
 * could read the neighbours, so it is fetched from memory of its own.
 */
static int send_long_copy(struct request *request)
{
	struct bounce *bounce = request->bounce;
	size_t head = wire_eager_head(request->message.kind);
	char *copy = malloc((size_t)request->length);

	if (!copy)
		return -FI_ENOMEM;
	if (bounce)
		memcpy(copy, bounce->data + head, (size_t)request->length);
	else if (request->vector)
		message_gather(request, copy);
	else
		memcpy(copy, request->buf, (size_t)request->length);
	/* Nothing of it has been registered yet. */
	free(request->vector);
	request->vector = NULL;
	request->desc = NULL;
	request->buf = request->copy = copy;
	request->bounce = NULL;
	if (bounce)
		bounce_return(request->ep, bounce);
	return rendezvous_send(request);
}

static int send_prepared(struct request *request)
{
	struct bounce *bounce = request->bounce;

	if (request->message.size > request->peer->eager)
		return send_long_copy(request);
	request->bounce = NULL;
	send_eager(request, bounce, request->message.size);
	return 0;
}

int send_start(struct request *request)
{
	struct peer *peer = request->peer;
	struct bounce *bounce;
	size_t size;

	if (__builtin_expect(peer->state != PEER_CONNECTED ||
			     peer->rewinding || !peer->data, 0))
		return -FI_EAGAIN;
	if (__builtin_expect(request->flags & FI_FENCE && peer->active, 0))
		return -FI_EAGAIN;
	if (__builtin_expect(request->bounce != NULL, 0))
		return send_prepared(request);
	size = send_size(request);
	if (__builtin_expect(size > peer->eager && !request->copy &&
			     request->flags & FI_INJECT, 0))
		return send_long_copy(request);
	if (size > peer->eager || (request->message.direct && request->length))
		return rendezvous_send(request);
	bounce = bounce_take(peer->ep, size);
	if (__builtin_expect(!bounce, 0))
		return -FI_EAGAIN;
	send_compose(request, bounce->data);
	send_eager(request, bounce, size);
	return 0;
}
