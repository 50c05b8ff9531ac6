// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Credits: how many datagrams each peer may send before it is told that their
 * cells are free again. The first peers are promised many cells, later ones
 * fewer, and when all are promised still a few: datagrams that then find none
 * are sent again (post.c). Used by peer.c and progress.c; what every datagram
 * needs is in peer.h.
 */
#include "peer.h"

#define DATA_MAX	96u	/* in all, less than half of what numbers tell */
#define CONTROL_MAX	31u
#define SHARE_MAX	(DATA_MAX + CONTROL_MAX)
#define SHARE_MIN	6u
#define CONTROL_MIN	4u	/* with fewer, CREDITs would never end */

void credits_grant(struct peer *peer)
{
	struct peers *peers = &peer->ep->peers;
	size_t share = peers->cells / 8;
	size_t control;

	if (share > SHARE_MAX)
		share = SHARE_MAX;
	if (share < SHARE_MIN)
		share = SHARE_MIN;
	control = share / 4;
	if (control < CONTROL_MIN)
		control = CONTROL_MIN;
	if (control > CONTROL_MAX)
		control = CONTROL_MAX;
	peer->window_control = (uint16_t)control;
	peer->window_data = (uint16_t)(share - control);
	peer->rx_control = peer->window_control;
	peer->rx_data = peer->window_data;
	peer->cells = (uint16_t)(share < peers->cells ? share : peers->cells);
	peers->cells -= peer->cells;
}

void credits_end(struct peer *peer)
{
	peer->ep->peers.cells += peer->cells;
	peer->cells = 0;
	peer->data = peer->control = 0;
}

static bool is_due(const struct peer *peer)
{
	return peer->state == PEER_CONNECTED &&
	       (peer->owed_data * 2 >= peer->window_data ||
		peer->owed_control * 2 >= peer->window_control);
}

/* True: it is not owed much any more. */
static bool flush(struct peer *peer)
{
	struct bounce *bounce;

	if (!is_due(peer))
		return true;
	if (peer->rewinding || !peer->control)
		return false;
	bounce = bounce_take_reserved(peer->ep);
	if (!bounce)
		return false;
	peer->control--;
	/* A datagram of nothing would not be faster. */
	wire_put64(bounce->data, 0);
	datagram_send(peer, WIRE_CREDIT, bounce, 8, NULL);
	return true;
}

void credits_flush(struct endpoint *ep)
{
	struct list *node, *after;
	struct peer *peer;

	list_each(node, after, &ep->peers.owing) {
		peer = container(node, struct peer, owing_node);
		if (!flush(peer))
			continue;
		list_remove(&peer->owing_node);
		peer->is_owing = false;
	}
	if (list_empty(&ep->peers.owing))
		ep->todo &= ~TODO_OWING;
}
