// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Long messages, whose data goes from buffer to buffer: the sender tells where
 * they are (RTS), and the receiver fetches them as soon as a receive matches, and
 * says so (FIN). Or, with FI_FABREX_RENDEZVOUS=write at the receiver, it tells
 * where to store them (CTS), and the sender says when it has (FIN). Used by
 * send.c, deliver.c and receive.c.
 */
#include "message.h"

/* ---- the sender -------------------------------------------------------- */

int rendezvous_send(struct request *request)
{
	struct endpoint *ep = request->ep;
	struct peer *peer = request->peer;
	struct arrival rts = {
		.tagged = request->cq_flags & FI_TAGGED,
		.has_data = request->flags & FI_REMOTE_CQ_DATA,
		.data = (uint32_t)request->data,
		.tag = request->tag,
		.token = request_token(request),
		.length = request->length,
	};
	struct bounce *bounce = bounce_take(ep, BOUNCE_SMALL);

	if (!bounce)
		return -FI_EAGAIN;
	if (!copy_message(request) &&
	    !move_register(request, FABREX_MR_REMOTE_READ, request->length)) {
		bounce_return(ep, bounce);
		return request->error == FI_EAGAIN ? -FI_ENOMEM :
		       -request->error;
	}
	move_describe(request, &rts.segments);
	peer->data--;
	request_begin(request);
	request->phase = PHASE_RTS;
	peer_await(request);
	datagram_send(peer, WIRE_RTS, bounce,
		      wire_write_rts(bounce->data, &rts), request);
	return 0;
}

static void answered(struct request *request, enum fin_status status)
{
	list_remove(&request->node);
	request->phase = PHASE_NONE;
	if (status == FIN_CANCELED)
		request_fail(request, CAUSE_CANCELED);
	else if (status != FIN_OK)
		request_fail(request, FABREX_WC_RFAULT);
	request->completed(request, NULL);
}

/* All is written, or some cannot be. */
static void written(struct request *request)
{
	answer_send(request->peer, WIRE_FIN, request->message.token,
		    request->error ? FIN_FAILED : FIN_OK);
	request_end(request, request->length, FI_ADDR_NOTAVAIL);
}

static uint64_t total(const struct segments *segments)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < segments->count; i++)
		bytes += segments->segment[i].length;
	return bytes;
}

bool rendezvous_cts(struct peer *peer, const struct cts *cts)
{
	struct request *request = request_find(peer->ep, cts->token);
	uint64_t room = total(&cts->segments);

	if (!request || request->peer != peer ||
	    (request->phase != PHASE_RTS && request->phase != PHASE_CANCELED))
		return false;
	list_remove(&request->node);
	request->phase = PHASE_WRITE;
	request->message.token = cts->answer;
	request->message.bytes = room < request->length ? room :
				 request->length;
	move_with(request, &cts->segments);
	move_begin(request, written);
	return true;
}

int rendezvous_cancel(struct request *request)
{
	if (request->phase != PHASE_RTS)
		return -FI_ENOENT;
	request->phase = PHASE_CANCELED;
	answer_send(request->peer, WIRE_CANCEL, request_token(request), FIN_OK);
	return 0;
}

/* ---- the receiver ------------------------------------------------------ */

static void end(struct request *request)
{
	uint64_t length = request->message.total;

	if (length > request->length)
		request_fail(request, CAUSE_TRUNCATED);
	receive_end(request, length, message_source(request->peer));
}

/* All is read, or some cannot be. */
static void read_all(struct request *request)
{
	answer_send(request->peer, WIRE_FIN, request->message.token,
		    request->error ? FIN_FAILED : FIN_OK);
	end(request);
}

/* The sender has written, which is known by FIN. */
static void stored(struct request *request, const struct fabrex_wc *wc)
{
	if (wc && wc->status)
		request_fail(request, wc->status);
	if (request->error) {
		list_remove(&request->node);
		request->phase = PHASE_NONE;
	}
	if (!request->posted && request->phase == PHASE_NONE)
		end(request);
}

static int send_cts(struct request *request)
{
	struct peer *peer = request->peer;
	struct cts cts = {
		.token = request->message.token,
		.answer = request_token(request),
	};
	struct bounce *bounce;

	if (peer->state != PEER_CONNECTED || peer->rewinding)
		return -FI_EAGAIN;
	bounce = bounce_take_reserved(peer->ep);
	if (!bounce)
		return -FI_EAGAIN;
	if (!credit_take_control(peer)) {
		bounce_return(peer->ep, bounce);
		return -FI_EAGAIN;
	}
	move_describe(request, &cts.segments);
	request->phase = PHASE_STORED;
	peer_await(request);
	datagram_send(peer, WIRE_CTS, bounce,
		      wire_write_cts(bounce->data, &cts), request);
	return 0;
}

static void be_written(struct request *request)
{
	if (!move_register(request, FABREX_MR_REMOTE_WRITE |
				    FABREX_MR_LOCAL_WRITE,
			   request->message.bytes)) {
		read_all(request);
		return;
	}
	request->phase = PHASE_CTS;
	request->completed = stored;
	request->resume = send_cts;
	answer_request(request->peer, request);
}

static void fetch(struct request *request)
{
	if (request->message.bytes)
		move_register(request, FABREX_MR_LOCAL_WRITE,
			      request->message.bytes);
	request->phase = PHASE_READ;
	move_begin(request, read_all);
}

void rendezvous_receive(struct request *request, struct peer *peer,
			const struct arrival *arrival)
{
	uint64_t length = arrival->length;

	request_bind(request, peer);
	request->done = 0;
	request->message.token = arrival->token;
	request->message.total = length;
	request->message.bytes = length < request->length ? length :
				 request->length;
	move_with(request, &arrival->segments);
	if (peer->state == PEER_DEAD)
		request_fail(request, peer->cause);
	if (request->error)
		read_all(request);
	else if (settings.rendezvous_write && request->message.bytes)
		be_written(request);
	else
		fetch(request);
}

void rendezvous_canceled(struct peer *peer, uint64_t token)
{
	struct unexpected *message = unexpected_rts(peer, token);

	if (!message)
		return;
	unexpected_free(message);
	answer_send(peer, WIRE_FIN, token, FIN_CANCELED);
}

/* ---- both -------------------------------------------------------------- */

bool rendezvous_fin(struct peer *peer, const struct fin *fin)
{
	struct request *request = request_find(peer->ep, fin->token);

	if (!request || request->peer != peer)
		return false;
	switch (request->phase) {
	case PHASE_DELIVERY:
	case PHASE_RTS:
	case PHASE_CANCELED:
	case PHASE_STORED:
		answered(request, (enum fin_status)fin->status);
		return true;
	}
	return false;
}
