// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Progress: completions of the endpoint's queue go to whom they concern, and
 * what had to wait goes on. Made by whoever reads a completion queue or a
 * counter, or finds no room for something; the domain's lock is held. Used by
 * message.c, recv.c, rma.c and endpoint.c.
 */
#include "message.h"

#define BATCH		16
/* Rounds without anything until events are looked for. */
#define IDLE_ROUNDS	1024u
/* Rounds until the clock is read, if something is due at some time. */
#define CLOCK_ROUNDS	64u

/* ---- completions ------------------------------------------------------- */

static void datagram(const struct fabrex_wc *wc)
{
	uintptr_t at = (uintptr_t)wc->user_data & ~(uintptr_t)POSTED_DATAGRAM;
	struct bounce *bounce = (struct bounce *)at;
	struct peer *peer = bounce->peer;
	bool hello = bounce->kind == WIRE_HELLO, ack = bounce->seq;
	int status = datagram_completed(bounce, wc);

	if (__builtin_expect(hello, 0))
		peer_hello_completed(peer, ack, status);
	else if (__builtin_expect(status, 0))
		peer_lose(peer, status);
}

static void operation(struct endpoint *ep, const struct fabrex_wc *wc)
{
	struct request *request = (struct request *)(uintptr_t)wc->user_data;

	ep->posted--;
	request->posted--;
	request->completed(request, wc);
}

/* Returns how many receive cells are free again. */
static inline unsigned int take(struct endpoint *ep, const struct fabrex_wc *wc,
				int n)
{
	unsigned int cells = 0;
	int i;

	for (i = 0; i < n; i++) {
		if (wc[i].opcode == FABREX_OP_RECV) {
			receive_datagram(ep, &wc[i]);
			cells++;
		} else if (wc[i].opcode == FABREX_OP_RECV_IMM) {
			receive_immediate(ep, &wc[i]);
			cells++;
		} else if (wc[i].user_data & POSTED_DATAGRAM) {
			datagram(&wc[i]);
		} else {
			operation(ep, &wc[i]);
		}
	}
	return cells;
}

/* ---- the queue is dead ------------------------------------------------- */

/* All that is left of the program's, since nothing completes any more. */
static void end_all(struct endpoint *ep, int cause)
{
	struct request *request;
	size_t at = 0;

	while ((request = request_next(&ep->tx, &at))) {
		list_remove(&request->node);
		request_fail(request, cause);
		request_end(request, 0, FI_ADDR_NOTAVAIL);
	}
	at = 0;
	/* First what is posted, then what has a message. */
	while ((request = request_next(&ep->rx, &at)))
		if (!request->peer && request->phase == PHASE_NONE)
			receive_abort(request, cause);
	at = 0;
	while ((request = request_next(&ep->rx, &at))) {
		if (request->phase == PHASE_CLOSED)
			continue;
		list_remove(&request->node);
		request_fail(request, cause);
		receive_end(request, request->message.total,
			    FI_ADDR_NOTAVAIL);
	}
}

static void fail(struct endpoint *ep, int cause)
{
	struct list *node, *after;

	ep->todo = 0;
	ep->due_ns = 0;
	if (!ep->enabled)
		return;
	ep->enabled = ep->sends = ep->takes = false;
	ep->failed = true;
	WARN(FI_LOG_EP_CTRL, "an endpoint of port %s ends: %s\n",
	     ep->domain->attr.name, fabrex_strerror_last());
	list_each(node, after, &ep->peers.all)
		peer_fail(container(node, struct peer, node), cause);
	end_all(ep, cause);
	if (ep->eq)
		eq_error(ep->eq, &ep->fid.fid, ep->fid.fid.context, 0,
			 fi_of_cause(cause), cause);
}

/* ---- what had to wait -------------------------------------------------- */

static void retry(struct endpoint *ep)
{
	struct request *request;
	int ret;

	while (!list_empty(&ep->retries)) {
		request = container(ep->retries.next, struct request, node);
		list_remove(&request->node);
		ret = request->resume(request);
		if (ret == -FI_EAGAIN) {
			list_add(ep->retries.next, &request->node);
			return;
		}
		if (ret) {
			request_fail(request, ret);
			request->completed(request, NULL);
		}
	}
	ep->todo &= ~TODO_RETRY;
}

static __attribute__((noinline)) void do_rest(struct endpoint *ep)
{
	/* Poll tells of a dead queue when all has come back. */
	if (ep->todo & TODO_FAIL && ep->cause != -ENETDOWN) {
		fail(ep, ep->cause);
		return;
	}
	if (ep->todo & TODO_RETRY)
		retry(ep);
	if (ep->todo & TODO_PENDING)
		peers_flush(ep);
	if (ep->todo & TODO_OWING)
		credits_flush(ep);
	if (ep->todo & TODO_CLOCK ||
	    (ep->todo & TODO_TIMED && !(++ep->rounds % CLOCK_ROUNDS)))
		watch_timed(ep);
}

static inline int take_some(struct endpoint *ep)
{
	struct fabrex_wc wc[BATCH];
	unsigned int cells;
	int n = fabrex_poll(ep->queue, wc, BATCH);

	if (n <= 0)
		return n;
	cells = take(ep, wc, n);
	if (cells)
		fabrex_recv_done(ep->queue, cells);
	return n;
}

/*
 * What peers had sent before they went is there, and counts: maybe also that they
 * were to go. Others may send all the time.
 */
#define SETTLE_MAX	4096u

__attribute__((noinline)) void endpoint_settle(struct endpoint *ep)
{
	struct list *node, *after;
	struct peer *peer;
	unsigned int i;

	for (i = 0; ep->enabled && i < SETTLE_MAX; i++)
		if (take_some(ep) != BATCH)
			break;
	ep->todo &= ~TODO_LOST;
	list_each(node, after, &ep->peers.all) {
		peer = container(node, struct peer, node);
		if (peer->lost)
			peer_fail(peer, peer->lost);
	}
}

void endpoint_progress(struct endpoint *ep)
{
	int n;

	if (__builtin_expect(!ep->enabled, 0))
		return;
	n = take_some(ep);
	/* Over loopback what was begun just now is complete. */
	if (n > 0 && ep->posted)
		n = take_some(ep);
	else if (!n && !(++ep->idle % IDLE_ROUNDS))
		watch_idle(ep);
	if (__builtin_expect(n < 0, 0))
		fail(ep, n);
	if (__builtin_expect(ep->todo, 0))
		do_rest(ep);
	if (__builtin_expect(ep->todo & TODO_LOST, 0))
		endpoint_settle(ep);
}

__attribute__((noinline)) ssize_t endpoint_is_full(struct endpoint *ep)
{
	endpoint_progress(ep);
	return ep->failed ? -FI_ENETDOWN : -FI_EAGAIN;
}
