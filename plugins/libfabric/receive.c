// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What has arrived in a receive cell: whether it may be there at all, and what
 * it is. Nothing in it is trusted; a peer that does not keep to the protocol is
 * given up, and a stranger's datagrams are counted and dropped. Used by
 * progress.c.
 */
#include "message.h"

/* ---- messages ---------------------------------------------------------- */

static inline void take_message(struct peer *peer,
				const struct arrival *arrival)
{
	struct request *request = receive_match(peer, arrival->tagged,
						arrival->tag);
	int ret;

	if (__builtin_expect(request != NULL, 1))
		ret = deliver(request, peer, arrival);
	else
		ret = unexpected_add(peer, arrival) ? 0 : -FI_ENOMEM;
	if (__builtin_expect(ret, 0))
		peer_fail(peer, -ENOMEM);
}

static inline void data_arrived(struct peer *peer, unsigned int kind,
				const struct fabrex_wc *wc)
{
	struct arrival arrival;
	bool ok;

	if (__builtin_expect(kind == WIRE_RTS, 0))
		ok = wire_read_rts(wc->data, wc->length, &arrival);
	else
		ok = wire_read_eager(wc->data, wc->length, kind, &arrival);
	if (__builtin_expect(!ok || !peer->rx_data, 0)) {
		peer_fail(peer, CAUSE_PROTOCOL);
		return;
	}
	peer->rx_data--;
	take_message(peer, &arrival);
	credit_owe_data(peer);
}

/* ---- what keeps them going --------------------------------------------- */

/* False: it makes no sense. */
static bool take_control(struct peer *peer, unsigned int kind,
			 const struct fabrex_wc *wc)
{
	struct cts cts;
	struct fin fin;

	switch (kind) {
	case WIRE_CTS:
		return wire_read_cts(wc->data, wc->length, &cts) &&
		       rendezvous_cts(peer, &cts);
	case WIRE_FIN:
		return wire_read_fin(wc->data, wc->length, &fin) &&
		       rendezvous_fin(peer, &fin);
	case WIRE_CANCEL:
		if (!wire_read_fin(wc->data, wc->length, &fin))
			return false;
		rendezvous_canceled(peer, fin.token);
		return true;
	case WIRE_CREDIT:
		return true;
	}
	return false;
}

static void control_arrived(struct peer *peer, unsigned int kind,
			    const struct fabrex_wc *wc)
{
	if (kind == WIRE_BYE) {
		peer_fail(peer, CAUSE_CLOSED);
		return;
	}
	if (!peer->rx_control) {
		peer_fail(peer, CAUSE_PROTOCOL);
		return;
	}
	peer->rx_control--;
	credit_owe_control(peer);
	if (!take_control(peer, kind, wc))
		peer_fail(peer, CAUSE_PROTOCOL);
}

/* It has given up, and this is what it had with us. */
static bool is_notice(const struct peer *peer, unsigned int kind,
		      const struct fabrex_wc *wc)
{
	return kind == WIRE_BYE && peer && peer->session && wc->length == 8 &&
	       wire_get64(wc->data) == peer->session;
}

/* ---- anything ---------------------------------------------------------- */

void receive_datagram(struct endpoint *ep, const struct fabrex_wc *wc)
{
	struct peer *peer = peer_of_source(ep, wc->peer, wc->src_queue);
	unsigned int kind = wire_kind(wc->imm);

	if (__builtin_expect(kind == WIRE_HELLO, 0)) {
		peer_hello(ep, peer, wc);
		return;
	}
	/* A stranger, or one that is to come again: post.c. */
	if (__builtin_expect(!peer || !peer->their_session ||
			     wire_number(wc->imm) != peer->rx_seq, 0)) {
		if (is_notice(peer, kind, wc)) {
			peer_fail(peer, CAUSE_CLOSED);
			return;
		}
		ep->dropped++;
		if (!peer && kind != WIRE_BYE)
			peer_remind(ep, wc->peer, wc->src_queue);
		return;
	}
	peer->rx_seq++;
	credit_take(peer, wire_data_credits(wc->imm),
		    wire_control_credits(wc->imm));
	if (__builtin_expect(kind <= WIRE_RTS, 1))
		data_arrived(peer, kind, wc);
	else
		control_arrived(peer, kind, wc);
}

/* A one-sided write with data for our completion queue. */
void receive_immediate(struct endpoint *ep, const struct fabrex_wc *wc)
{
	struct peer *peer = peer_of_source(ep, wc->peer, wc->src_queue);
	const struct fi_cq_tagged_entry entry = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = wc->length,
		.data = wc->imm,
	};

	if (!peer || !peer->their_session) {
		ep->dropped++;
		return;
	}
	if (!peer->rx_control) {
		peer_fail(peer, CAUSE_PROTOCOL);
		return;
	}
	peer->rx_control--;
	credit_owe_control(peer);
	if (ep->rx_cq)
		cq_write(ep->rx_cq, &entry, message_source(peer));
	if (ep->cntrs[CNTR_REMOTE_WRITE])
		cntr_add(ep->cntrs[CNTR_REMOTE_WRITE], true);
}
