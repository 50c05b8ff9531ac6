// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Posting: operations, and datagrams with their numbers, credits, and what has
 * to be sent again because the device could not deliver it. Used by whatever
 * sends; completions are passed on by progress.c.
 */
#include "peer.h"

/* Until the same is tried again: the receiver has to read first. */
#define RNR_MIN		UINT64_C(10000)
#define RNR_MAX		UINT64_C(5000000)

/* The ring has room for all datagrams beside these operations. */
int post_operation(struct request *request, const struct fabrex_op *op)
{
	struct endpoint *ep = request->ep;
	int ret;

	if (ep->failed)
		return -FI_ENETDOWN;
	if (ep->posted >= ep->posted_max)
		return -FI_EAGAIN;
	ret = fabrex_post(ep->queue, op, 1);
	if (ret == 1) {
		ep->posted++;
		request->posted++;
		return 0;
	}
	if (ret == -ENETDOWN)
		ep->failed = true;
	return ret;
}

void request_retry(struct request *request)
{
	struct endpoint *ep = request->ep;

	list_add(&ep->retries, &request->node);
	ep->todo |= TODO_RETRY;
}

/* ---- datagrams --------------------------------------------------------- */

static int post_inline(struct endpoint *ep, const struct peer *peer,
		       const struct bounce *bounce, uint32_t imm)
{
	const struct fabrex_op op = {
		.opcode = FABREX_OP_SEND,
		.peer = (uint16_t)peer->number,
		.imm = imm,
		.user_data = (uintptr_t)bounce | POSTED_DATAGRAM,
		.length = bounce->length,
		.dest_key = peer->key,
		.inline_data = bounce->data,
	};
	int ret = fabrex_post(ep->queue, &op, 1);

	return ret < 0 ? ret : 0;
}

/*
 * There is room. If the queue is dead, which poll will tell, too, it is as if
 * the datagram were on its way: the endpoint's end is soon enough.
 */
static inline void post(struct peer *peer, const struct bounce *bounce,
			uint32_t imm)
{
	struct endpoint *ep = peer->ep;
	int ret;

	if (bounce->length <= ep->inline_max)
		ret = post_inline(ep, peer, bounce, imm);
	else
		ret = fabrex_post_send(ep->queue, peer->number, peer->key,
				       ep->bounces.mr, bounce->offset,
				       bounce->length, imm,
				       (uintptr_t)bounce | POSTED_DATAGRAM);
	if (__builtin_expect(ret, 0)) {
		ep->failed = true;
		ep->cause = ret;
		ep->todo |= TODO_FAIL;
	}
}

/* With what the peer is owed. */
static inline void take_owed(struct peer *peer, struct bounce *bounce)
{
	unsigned int data = peer->owed_data, control = peer->owed_control;

	if (__builtin_expect(data > WIRE_DATA_CREDITS, 0))
		data = WIRE_DATA_CREDITS;
	if (__builtin_expect(control > WIRE_CONTROL_CREDITS, 0))
		control = WIRE_CONTROL_CREDITS;
	peer->owed_data = (uint16_t)(peer->owed_data - data);
	peer->owed_control = (uint16_t)(peer->owed_control - control);
	peer->rx_data = (uint16_t)(peer->rx_data + data);
	peer->rx_control = (uint16_t)(peer->rx_control + control);
	bounce->data_credits = (uint8_t)data;
	bounce->control_credits = (uint8_t)control;
}

static inline void send_numbered(struct peer *peer, struct bounce *bounce)
{
	bounce->seq = peer->tx_seq++;
	peer->flying++;
	post(peer, bounce, wire_imm(bounce->kind, bounce->seq,
				    bounce->data_credits,
				    bounce->control_credits));
}

void datagram_send(struct peer *peer, enum wire_kind kind,
		   struct bounce *bounce, size_t length,
		   struct request *request)
{
	bounce->peer = peer;
	bounce->request = request;
	bounce->kind = (uint8_t)kind;
	bounce->length = (uint16_t)length;
	bounce->failed = false;
	peer->users++;
	if (request)
		request->posted++;
	take_owed(peer, bounce);
	send_numbered(peer, bounce);
}

void datagram_send_hello(struct peer *peer, struct bounce *bounce,
			 size_t length, bool ack)
{
	bounce->peer = peer;
	bounce->request = NULL;
	bounce->kind = WIRE_HELLO;
	bounce->seq = ack;
	bounce->length = (uint16_t)length;
	bounce->data_credits = bounce->control_credits = 0;
	peer->users++;
	post(peer, bounce, wire_imm(WIRE_HELLO, 0, 0, 0));
}

static void finish(struct bounce *bounce, const struct fabrex_wc *wc)
{
	struct request *request = bounce->request;
	struct peer *peer = bounce->peer;

	peer->users--;
	bounce_return(peer->ep, bounce);
	if (request) {
		request->posted--;
		request->completed(request, wc);
	}
}

/* The peer is as it was; it is our memory, or what we have asked for. */
static bool is_local(int status)
{
	switch (status) {
	case FABREX_WC_BAD_OPCODE:
	case FABREX_WC_BAD_DESC:
	case FABREX_WC_LKEY:
	case FABREX_WC_LBOUNDS:
	case FABREX_WC_LACCESS:
	case FABREX_WC_TOO_LONG:
	case FABREX_WC_LFAULT:
	case FABREX_WC_FENCED:
		return true;
	}
	return false;
}

/*
 * The receiver drops all that follow one which it has not got, so they all come
 * back, whatever their status.
 */
static void keep(struct peer *peer, struct bounce *bounce,
		 const struct fabrex_wc *wc)
{
	if (!peer->rewinding) {
		INFO(FI_LOG_EP_DATA,
		     "datagram %u to port %u was not delivered: %s\n",
		     bounce->seq, peer->number, fabrex_wc_str(wc->status));
		peer->rewinding = true;
		peer->tx_seq = bounce->seq;
	}
	if (wc->status && wc->status != FABREX_WC_RNR)
		bounce->failed = true;
	list_add(&peer->resend, &bounce->node);
	if (peer->flying)
		return;
	peer->pause_ns = peer->pause_ns < RNR_MIN ? RNR_MIN :
			 peer->pause_ns * 2;
	if (peer->pause_ns > RNR_MAX)
		peer->pause_ns = RNR_MAX;
	peer_due(peer, now_ns() + peer->pause_ns);
}

static int lost(struct bounce *bounce, const struct fabrex_wc *wc)
{
	finish(bounce, wc);
	return wc->status;
}

int datagram_completed(struct bounce *bounce, const struct fabrex_wc *wc)
{
	struct peer *peer = bounce->peer;
	struct endpoint *ep = peer->ep;

	if (bounce->kind == WIRE_HELLO) {
		peer->users--;
		bounce_return(ep, bounce);
		return wc->status;
	}
	peer->flying--;
	if (peer->state == PEER_DEAD)
		return lost(bounce, wc);
	if (__builtin_expect(!wc->status && !peer->rewinding, 1)) {
		peer->pause_ns = 0;
		finish(bounce, wc);
		return 0;
	}
	if (wc->status && wc->status != FABREX_WC_RNR &&
	    !is_local(wc->status))
		return lost(bounce, wc);
	keep(peer, bounce, wc);
	return 0;
}

/* As if it had never been sent. */
static void drop(struct peer *peer, struct bounce *bounce)
{
	const struct fabrex_wc wc = {
		.opcode = FABREX_OP_SEND,
		.status = FABREX_WC_LFAULT,
	};

	peer->owed_data = (uint16_t)(peer->owed_data + bounce->data_credits);
	peer->owed_control = (uint16_t)(peer->owed_control +
					bounce->control_credits);
	peer->rx_data = (uint16_t)(peer->rx_data - bounce->data_credits);
	peer->rx_control = (uint16_t)(peer->rx_control -
				      bounce->control_credits);
	if (bounce->kind <= WIRE_RTS)
		peer->data++;
	else
		peer->control++;
	finish(bounce, &wc);
}

void datagrams_drop(struct peer *peer)
{
	const struct fabrex_wc wc = {
		.opcode = FABREX_OP_SEND,
		.status = FABREX_WC_UNREACHABLE,
	};
	struct bounce *bounce;

	while (!list_empty(&peer->resend)) {
		bounce = container(peer->resend.next, struct bounce, node);
		list_remove(&bounce->node);
		finish(bounce, &wc);
	}
}

void datagrams_resend(struct peer *peer)
{
	struct bounce *bounce;

	peer->rewinding = false;
	while (!list_empty(&peer->resend)) {
		bounce = container(peer->resend.next, struct bounce, node);
		list_remove(&bounce->node);
		if (bounce->failed)
			drop(peer, bounce);
		else
			send_numbered(peer, bounce);
	}
	peer_stir(peer);
}
