// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How peers find and greet each other: when the first operation needs it, the
 * peer's port and queue are looked up, and a HELLO tells it what it has to know.
 * It answers with a HELLO of its own. Used by what sends, by receive.c and by
 * watch.c.
 *
 * Each side names what is between them (session). It may send as soon as it
 * knows that the other has that name: by an answer to it, or because its own
 * answer to the other's HELLO has been delivered. What is between them is over
 * if one of them comes with another name.
 */
#include <string.h>

#include "match.h"

#define MS		UINT64_C(1000000)
#define SEEK_MIN	(1 * MS)
#define SEEK_MAX	(50 * MS)
#define HELLO_PAUSE	(500 * MS)	/* then it is greeted once more */
#define HELLO_PAUSE_MAX	(8000 * MS)
#define RNR_MIN		(MS / 10)
#define RNR_MAX		(100 * MS)
/* No more is of use to anybody: numbers have 8 bits. */
#define WINDOW_MAX	120u

/* ---- HELLO ------------------------------------------------------------- */

static void begin(struct peer *peer)
{
	static uint32_t sessions;
	uint32_t session;

	if (peer->session)
		return;
	do
		session = __atomic_add_fetch(&sessions, 1, __ATOMIC_RELAXED) +
			  peer->ep->address.nonce;
	while (!session);
	peer->session = session;
	credits_grant(peer);
}

static void say(struct peer *peer, uint16_t flags)
{
	struct endpoint *ep = peer->ep;
	struct bounce *bounce = bounce_take_reserved(ep);
	struct hello hello = {
		.version = HELLO_VERSION,
		.flags = flags,
		.key = fabrex_queue_key(ep->queue),
		.nonce = ep->address.nonce,
		.session = peer->session,
		.answers = peer->their_session,
		.data = peer->window_data,
		.control = peer->window_control,
		.cell_size = (uint32_t)ep->cell_size,
		.service = ep->address.service,
	};

	if (!bounce) {
		peer_due(peer, now_ns() + RNR_MIN);
		return;
	}
	peer->ack_due = false;
	memcpy(hello.port, ep->address.port, sizeof(hello.port));
	board_remote(ep->domain, &hello.board);
	datagram_send_hello(peer, bounce, wire_write_hello(bounce->data,
							   &hello),
			    flags & HELLO_ACK && peer->their_session);
}

static void greet(struct peer *peer)
{
	if (peer->state == PEER_SEEKING)
		peer->greet = true;
	if (peer->state != PEER_LOCATED)
		return;
	peer->state = PEER_GREETING;
	begin(peer);
	peer->pause_ns = HELLO_PAUSE;
	say(peer, 0);
	peer_due(peer, now_ns() + peer->pause_ns);
}

static void connected(struct peer *peer)
{
	if (peer->state == PEER_CONNECTED)
		return;
	peer->state = PEER_CONNECTED;
	peer->pause_ns = 0;
	peer_stir(peer);
	/* It may have used up what it has before we could return anything. */
	credit_owing(peer);
	/* Receives that only it can match may have been posted before. */
	peer_watch(peer);
}

static void answer(struct peer *peer)
{
	peer->ack_due = true;
	say(peer, HELLO_ACK);
}

/* A stranger that we cannot talk to, or with another version. */
static void refuse(struct endpoint *ep, const struct hello *hello,
		   const struct fabrex_wc *wc)
{
	const struct address nobody = { .service = hello->service };
	struct peer *peer = peer_new(ep, &nobody);

	if (!peer)
		return;
	/* It only lives until the datagram is sent. */
	peer->number = wc->peer;
	peer->queue = wc->src_queue;
	peer->key = hello->key;
	peer->their_session = hello->session;
	say(peer, HELLO_ACK | HELLO_REFUSED);
	peer_fail(peer, CAUSE_REFUSED);
}

/* ---- who it is --------------------------------------------------------- */

static uint32_t generation_of(struct endpoint *ep, uint32_t number)
{
	struct fabrex_peer port;

	if (fabrex_peer_next(ep->domain->port, number, &port) ||
	    port.peer != number)
		return 0;
	return port.generation;
}

static int locate(struct peer *peer)
{
	struct endpoint *ep = peer->ep;
	uint32_t number, queue;
	uint64_t key;
	int ret;

	ret = address_locate(ep->domain->port, &peer->address, &number, &queue,
			     &key);
	if (ret)
		return ret;
	peer->number = number;
	peer->queue = queue;
	peer->key = key;
	peer->generation = generation_of(ep, number);
	return 0;
}

bool peer_is_there(struct peer *peer)
{
	uint32_t queue;
	uint64_t key;

	return !fabrex_resolve(peer->ep->domain->port, peer->number,
			       peer->address.service, &queue, &key) &&
	       queue == peer->queue && key == peer->key;
}

/* A stranger must be who it says. */
static bool is_honest(struct endpoint *ep, const struct hello *hello,
		      const struct fabrex_wc *wc)
{
	struct fabrex_port *port = ep->domain->port;
	struct fabrex_peer peer;
	uint32_t queue;
	uint64_t key;

	return !fabrex_peer_find(port, hello->port, &peer) &&
	       peer.peer == wc->peer &&
	       !fabrex_resolve(port, wc->peer, hello->service, &queue, &key) &&
	       queue == wc->src_queue && key == hello->key;
}

/* Quietly: nobody needs it any more. */
static void discard(struct peer *peer)
{
	list_remove(&peer->timed_node);
	peer->state = PEER_DEAD;
	peer->cause = CAUSE_ABSENT;
	peer->ep->peers.ndead++;
}

/* The one that has this port and queue already; the queue may be a new one. */
static struct peer *same_as(struct peer *peer)
{
	struct peer *same = peer_lookup(peer->ep, peer->number, peer->queue);

	if (same && same->key != peer->key) {
		peer_fail(same, CAUSE_DEAD);
		same = NULL;
	}
	return same;
}

/* ---- addresses of earlier endpoints ------------------------------------ */

static bool is_earlier(const struct peer *peer, fi_addr_t addr)
{
	const struct address *address = addr == FI_ADDR_UNSPEC ? NULL :
					av_address(peer->ep->av, addr);

	return address && address->nonce && peer->nonce &&
	       address->nonce != peer->nonce;
}

/* In its place there is from now on one that has ended. */
static struct peer *retire(struct endpoint *ep, fi_addr_t addr)
{
	const struct address *address = av_address(ep->av, addr);
	struct peer *peer = address ? peer_new(ep, address) : NULL;

	if (!peer)
		return NULL;
	peer_fail(peer, CAUSE_GENERATION);
	return peer_link(ep, addr, peer) ? peer : NULL;
}

/* The nonce is known now: who was meant to be somebody else? */
static void sort_out(struct peer *peer)
{
	struct endpoint *ep = peer->ep;
	struct request *request;
	struct list *node, *after;
	fi_addr_t addr;

	list_each(node, after, &peer->pending) {
		request = container(node, struct request, node);
		if (!is_earlier(peer, request->addr))
			continue;
		list_remove(node);
		peer->fences -= !!(request->flags & FI_FENCE);
		request_fail(request, CAUSE_GENERATION);
		request_end(request, 0, FI_ADDR_NOTAVAIL);
	}
	for (addr = 0; addr < ep->peers.nby_addr; addr++)
		if (ep->peers.by_addr[addr] == peer && is_earlier(peer, addr))
			retire(ep, addr);
}

/* ---- a HELLO has arrived ----------------------------------------------- */

static void accept_hello(struct peer *peer, const struct hello *hello)
{
	begin(peer);
	if (peer->state == PEER_LOCATED)
		peer->state = PEER_GREETING;
	peer->nonce = hello->nonce;
	peer->their_session = hello->session;
	memcpy(peer->address.port, hello->port, sizeof(hello->port));
	peer->address.service = hello->service;
	peer->address.nonce = hello->nonce;
	peer->addr_known = false;
	peer->eager = (uint16_t)(hello->cell_size < peer->ep->cell_size ?
				 hello->cell_size : peer->ep->cell_size);
	peer->tx_window_data = hello->data < WINDOW_MAX ? hello->data :
			       WINDOW_MAX;
	peer->tx_window_control = hello->control < WINDOW_MAX -
				  peer->tx_window_data / 2 ? hello->control :
				  (uint16_t)(WINDOW_MAX -
					     peer->tx_window_data / 2);
	peer->data = peer->tx_window_data;
	peer->control = peer->tx_window_control;
	peer->board = hello->board;
	peer->board.peer = peer->number;
	if (hello->board.flags)
		peer->board.rkey = 0;
	sort_out(peer);
}

static struct peer *stranger(struct endpoint *ep, const struct hello *hello,
			     const struct fabrex_wc *wc)
{
	struct address address = { .service = hello->service,
				   .nonce = hello->nonce };
	struct peer *peer;

	if (!is_honest(ep, hello, wc))
		return NULL;
	memcpy(address.port, hello->port, sizeof(address.port));
	peer = peer_new(ep, &address);
	if (!peer)
		return NULL;
	peer->number = wc->peer;
	peer->queue = wc->src_queue;
	peer->key = hello->key;
	peer->generation = generation_of(ep, peer->number);
	peer_enter(peer);
	return peer;
}

/* Another endpoint has the queue's number now, or it has begun anew. */
static bool is_over(const struct peer *peer, const struct hello *hello)
{
	return peer->key != hello->key ||
	       (peer->nonce && peer->nonce != hello->nonce) ||
	       (peer->their_session && peer->their_session != hello->session);
}

static void take(struct endpoint *ep, struct peer *peer,
		 const struct hello *hello, const struct fabrex_wc *wc)
{
	bool ack = hello->flags & HELLO_ACK;

	/* An answer to what is over. */
	if (ack && (!peer || hello->answers != peer->session))
		return;
	if (peer && is_over(peer, hello)) {
		if (!is_honest(ep, hello, wc))
			return;
		peer_fail(peer, CAUSE_DEAD);
		peer = NULL;
	}
	/* Who says this first gives it the name by which it is known. */
	if (peer && !peer->their_session && !is_honest(ep, hello, wc)) {
		ep->dropped++;
		return;
	}
	if (!peer)
		peer = ack ? NULL : stranger(ep, hello, wc);
	if (!peer) {
		ep->dropped++;
		return;
	}
	if (!peer->their_session)
		accept_hello(peer, hello);
	if (ack)
		connected(peer);
	else
		answer(peer);
}

void peer_hello(struct endpoint *ep, struct peer *peer,
		const struct fabrex_wc *wc)
{
	struct hello hello;

	if (!wire_read_hello(wc->data, wc->length, &hello)) {
		ep->dropped++;
		return;
	}
	if (hello.flags & HELLO_REFUSED) {
		if (peer && peer->state == PEER_GREETING &&
		    hello.answers == peer->session)
			peer_fail(peer, CAUSE_REFUSED);
	} else if (hello.version != HELLO_VERSION) {
		if (!(hello.flags & HELLO_ACK))
			refuse(ep, &hello, wc);
	} else {
		take(ep, peer, &hello, wc);
	}
}

/* ---- what becomes of ours ---------------------------------------------- */

/* Whoever had the address is gone; perhaps somebody else comes. */
static void seek_again(struct peer *peer)
{
	peer_leave(peer);
	credits_end(peer);
	peer->state = PEER_SEEKING;
	peer->greet = true;
	peer->session = 0;
	peer->pause_ns = SEEK_MIN;
	if (!peer->since_ns)
		peer->since_ns = now_ns();
	peer_due(peer, now_ns() + SEEK_MIN);
}

void peer_hello_completed(struct peer *peer, bool ack, int status)
{
	if (peer->state == PEER_DEAD)
		return;
	if (!status) {
		if (ack && peer->their_session)
			connected(peer);
		return;
	}
	if (status != FABREX_WC_RNR) {
		if (peer->state == PEER_GREETING && !peer->their_session)
			seek_again(peer);
		else
			peer_lose(peer, status);
		return;
	}
	peer->ack_due |= ack;
	if (peer->pause_ns < RNR_MIN || peer->pause_ns > RNR_MAX)
		peer->pause_ns = RNR_MIN;
	else if (peer->pause_ns < RNR_MAX)
		peer->pause_ns *= 2;
	peer_due(peer, now_ns() + peer->pause_ns);
}

/* ---- looking for it ---------------------------------------------------- */

/* The same endpoint by two addresses: what waits, waits for the other one. */
static void merge(struct peer *peer, struct peer *same)
{
	struct endpoint *ep = peer->ep;
	struct request *request;
	fi_addr_t addr;

	while (!list_empty(&peer->pending)) {
		request = container(peer->pending.next, struct request, node);
		list_remove(&request->node);
		request->peer = same;
		peer->users--;
		same->users++;
		if (request->flags & FI_FENCE) {
			peer->fences--;
			same->fences++;
		}
		same->has_aside |= request->aside;
		list_add(&same->pending, &request->node);
	}
	for (addr = 0; addr < ep->peers.nby_addr; addr++)
		if (ep->peers.by_addr[addr] == peer)
			peer_link(ep, addr, same);
	if (peer->greet)
		greet(same);
	if (same->nonce)
		sort_out(same);
	peer_stir(same);
	discard(peer);
}

/* 0: located; or what is wrong. */
static int seek(struct peer *peer)
{
	struct peer *same;
	int ret = locate(peer);

	if (ret)
		return ret;
	same = same_as(peer);
	if (same) {
		merge(peer, same);
		return 0;
	}
	list_remove(&peer->timed_node);
	peer->since_ns = 0;
	peer_enter(peer);
	if (peer->greet)
		greet(peer);
	if (receives_await(peer))
		peer_watch(peer);
	peer_stir(peer);
	return 0;
}

static void seek_later(struct peer *peer, uint64_t now)
{
	if (!peer->since_ns)
		peer->since_ns = now;
	if (now - peer->since_ns >= settings.resolve_ms * MS) {
		peer_fail(peer, CAUSE_ABSENT);
		return;
	}
	peer->pause_ns = peer->pause_ns < SEEK_MIN ? SEEK_MIN :
			 peer->pause_ns * 2;
	if (peer->pause_ns > SEEK_MAX)
		peer->pause_ns = SEEK_MAX;
	peer_due(peer, now + peer->pause_ns);
}

struct peer *peer_find(struct endpoint *ep, fi_addr_t addr, int *error)
{
	const struct address *address = addr == FI_ADDR_UNSPEC ? NULL :
					av_address(ep->av, addr);
	struct peer *old = addr < ep->peers.nby_addr ?
			   ep->peers.by_addr[addr] : NULL;
	struct peer *peer;

	*error = -FI_EINVAL;
	if (!address)
		return NULL;
	if (old && old->cause == CAUSE_GENERATION)
		return old;
	*error = -FI_ENOMEM;
	peer = peer_new(ep, address);
	if (!peer)
		return NULL;
	/* One that has ended is not waited for. */
	if (old)
		old->users++;
	if (!peer_link(ep, addr, peer))
		discard(peer);
	else if (seek(peer) && old)
		peer_fail(peer, old->cause);
	else if (peer->state == PEER_SEEKING)
		seek_later(peer, now_ns());
	if (old)
		old->users--;
	/* Two addresses may be of one peer. */
	peer = addr < ep->peers.nby_addr ? ep->peers.by_addr[addr] : NULL;
	if (peer && is_earlier(peer, addr))
		peer = retire(ep, addr);
	return peer;
}

void peer_greet_again(struct peer *peer, uint64_t now)
{
	switch (peer->state) {
	case PEER_SEEKING:
		if (seek(peer))
			seek_later(peer, now);
		break;
	case PEER_GREETING:
		if (!peer_is_there(peer)) {
			seek_again(peer);
			break;
		}
		say(peer, peer->their_session ? HELLO_ACK : 0);
		peer->pause_ns = peer->pause_ns < HELLO_PAUSE ? HELLO_PAUSE :
				 peer->pause_ns * 2;
		if (peer->pause_ns > HELLO_PAUSE_MAX)
			peer->pause_ns = HELLO_PAUSE_MAX;
		peer_due(peer, now + peer->pause_ns);
		break;
	case PEER_CONNECTED:
		if (peer->ack_due)
			answer(peer);
		break;
	case PEER_LOCATED:
	case PEER_DEAD:
		break;
	}
}

/* ---- waiting, leaving -------------------------------------------------- */

void peer_wait(struct request *request, bool hello)
{
	struct peer *peer = request->peer;

	if (peer->state == PEER_DEAD) {
		request_fail(request, peer->cause);
		request_end(request, 0, FI_ADDR_NOTAVAIL);
		return;
	}
	peer->fences += !!(request->flags & FI_FENCE);
	peer->has_aside |= request->aside;
	list_add(&peer->pending, &request->node);
	if (hello)
		greet(peer);
	if (peer->state != PEER_CONNECTED)
		return;
	peer_watch(peer);
	/* It lacks a buffer, of whose return nobody will tell. */
	if (peer->data && !peer->rewinding)
		peer_stir(peer);
}

void peer_bye(struct peer *peer)
{
	struct bounce *bounce;

	if (peer->state != PEER_CONNECTED || peer->rewinding)
		return;
	bounce = bounce_take_reserved(peer->ep);
	if (!bounce)
		return;
	wire_put64(bounce->data, 0);
	datagram_send(peer, WIRE_BYE, bounce, 8, NULL);
}
