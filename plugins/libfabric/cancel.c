// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Taking operations back: fi_cancel(), and the end of all when an endpoint is
 * closed. Installed by endpoint.c.
 */
#include "cancel.h"
#include "message.h"

static struct request *posted_receive(struct endpoint *ep, const void *context)
{
	struct request *request;
	size_t at = 0;

	while ((request = request_next(&ep->rx, &at)))
		if (request->context == context && !request->peer &&
		    request->phase == PHASE_NONE &&
		    !list_empty(&request->node))
			return request;
	return NULL;
}

/* One that has not begun, or that only waits for the peer. */
static int cancel_send(struct endpoint *ep, const void *context)
{
	struct request *request;
	size_t at = 0;

	while ((request = request_next(&ep->tx, &at))) {
		if (request->context != context || !request->peer ||
		    request->own)
			continue;
		if (request->begun) {
			if (request->completed == send_completed &&
			    !rendezvous_cancel(request))
				return 0;
			continue;
		}
		if (list_empty(&request->node))
			continue;
		list_remove(&request->node);
		request->peer->fences -= !!(request->flags & FI_FENCE);
		peer_stir(request->peer);
		request_fail(request, CAUSE_CANCELED);
		request_end(request, 0, FI_ADDR_NOTAVAIL);
		return 0;
	}
	return -FI_ENOENT;
}

ssize_t cancel_one(fid_t fid, void *context)
{
	struct endpoint *ep = container(fid, struct endpoint, fid.fid);
	struct request *request;
	int ret = 0;

	if (!object_is(fid, FI_CLASS_EP))
		return -FI_EBADF;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	domain_lock(ep->domain);
	request = posted_receive(ep, context);
	if (request)
		receive_abort(request, CAUSE_CANCELED);
	else
		ret = cancel_send(ep, context);
	domain_unlock(ep->domain);
	return ret;
}

/* ---- closing ----------------------------------------------------------- */

static bool has_injected(struct peer *peer)
{
	struct list *node, *after;
	struct request *request;

	list_each(node, after, &peer->pending) {
		request = container(node, struct request, node);
		if (request->bounce)
			return true;
	}
	return false;
}

bool cancel_is_due(struct endpoint *ep)
{
	struct list *node, *after;
	struct peer *peer;

	/* What was injected one-sidedly is lost with the queue. */
	if (ep->posted || !list_empty(&ep->retries))
		return false;
	list_each(node, after, &ep->peers.all) {
		peer = container(node, struct peer, node);
		if (peer->state == PEER_DEAD)
			continue;
		if (peer->flying || peer->rewinding || peer->ack_due ||
		    !list_empty(&peer->answers) || has_injected(peer))
			return false;
	}
	return true;
}

void cancel_farewell(struct endpoint *ep)
{
	struct list *node, *after;

	list_each(node, after, &ep->peers.all)
		peer_bye(container(node, struct peer, node));
}

void cancel_all(struct endpoint *ep)
{
	struct request *request;
	size_t at = 0;

	while ((request = request_next(&ep->tx, &at)))
		request_free(request);
	at = 0;
	while ((request = request_next(&ep->rx, &at)))
		request_free(request);
}
