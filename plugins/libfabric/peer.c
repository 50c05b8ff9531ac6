// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Peers: their tables, what waits for them, and their end. How they are found
 * and greeted: greet.c. Used by greet.c, by what sends and by what arrives.
 */
#include <stdlib.h>
#include <string.h>

#include "match.h"

/* ---- tables ------------------------------------------------------------ */

#define TABLE_FIRST	64u
#define REMIND_PAUSE	UINT64_C(100000000)	/* ns */

static inline size_t place(const struct peers *peers, uint32_t number,
			   uint32_t queue)
{
	uint64_t name = (uint64_t)number << 32 | queue;

	return (size_t)(name * UINT64_C(0x9e3779b97f4a7c15) >> 40) &
	       peers->mask;
}

int peers_open(struct endpoint *ep, size_t cells)
{
	struct peers *peers = &ep->peers;

	peers->table = calloc(TABLE_FIRST, sizeof(struct peer *));
	if (!peers->table)
		return -FI_ENOMEM;
	peers->mask = TABLE_FIRST - 1;
	peers->cells = cells;
	return 0;
}

struct peer *peer_lookup(struct endpoint *ep, uint32_t number, uint32_t queue)
{
	struct peers *peers = &ep->peers;
	struct peer *peer;

	for (peer = peers->table[place(peers, number, queue)]; peer;
	     peer = peer->next) {
		if (peer->number == number && peer->queue == queue) {
			peers->last = peer;
			return peer;
		}
	}
	return NULL;
}

static void put(struct peers *peers, struct peer *peer)
{
	struct peer **chain = &peers->table[place(peers, peer->number,
						  peer->queue)];

	peer->next = *chain;
	*chain = peer;
}

/* Long chains are slower, not wrong: without memory they stay. */
static void grow(struct peers *peers)
{
	struct peer **old = peers->table, *peer, *next;
	size_t n = peers->mask + 1, i;

	peers->table = calloc(2 * n, sizeof(*old));
	if (!peers->table) {
		peers->table = old;
		return;
	}
	peers->mask = 2 * n - 1;
	for (i = 0; i < n; i++) {
		for (peer = old[i]; peer; peer = next) {
			next = peer->next;
			put(peers, peer);
		}
	}
	free(old);
}

void peer_enter(struct peer *peer)
{
	struct peers *peers = &peer->ep->peers;

	if (peers->n > peers->mask)
		grow(peers);
	peers->n++;
	put(peers, peer);
	peer->state = PEER_LOCATED;
	peer->located_ns = now_ns();
}

void peer_leave(struct peer *peer)
{
	struct peers *peers = &peer->ep->peers;
	struct peer **at = &peers->table[place(peers, peer->number,
					       peer->queue)];

	while (*at && *at != peer)
		at = &(*at)->next;
	if (*at) {
		*at = peer->next;
		peers->n--;
	}
	if (peers->last == peer)
		peers->last = NULL;
}

struct peer *peer_new(struct endpoint *ep, const struct address *address)
{
	struct peer *peer = aligned_alloc(64, (sizeof(*peer) + 63) &
					      ~(size_t)63);

	if (!peer)
		return NULL;
	memset(peer, 0, sizeof(*peer));
	peer->ep = ep;
	peer->state = PEER_SEEKING;
	peer->address = *address;
	list_init(&peer->pending);
	list_init(&peer->pending_node);
	list_init(&peer->owing_node);
	list_init(&peer->timed_node);
	list_init(&peer->waiting);
	list_init(&peer->answers);
	list_init(&peer->resend);
	list_add(&ep->peers.all, &peer->node);
	return peer;
}

/* ---- addresses --------------------------------------------------------- */

static bool grow_addrs(struct peers *peers, fi_addr_t addr)
{
	size_t n = peers->nby_addr ? peers->nby_addr : 64;
	struct peer **by_addr;

	while (n <= addr)
		n *= 2;
	by_addr = realloc(peers->by_addr, n * sizeof(*by_addr));
	if (!by_addr)
		return false;
	memset(by_addr + peers->nby_addr, 0,
	       (n - peers->nby_addr) * sizeof(*by_addr));
	peers->by_addr = by_addr;
	peers->nby_addr = n;
	return true;
}

bool peer_link(struct endpoint *ep, fi_addr_t addr, struct peer *peer)
{
	struct peers *peers = &ep->peers;

	if (addr >= peers->nby_addr && (!peer || !grow_addrs(peers, addr)))
		return !peer;
	if (peers->by_addr[addr])
		peers->by_addr[addr]->users--;
	peers->by_addr[addr] = peer;
	if (peer) {
		peer->users++;
		peer->addr_known = false;
	}
	return true;
}

void peers_addr_changed(struct endpoint *ep, fi_addr_t addr)
{
	struct list *node, *after;

	peer_link(ep, addr, NULL);
	list_each(node, after, &ep->peers.all)
		container(node, struct peer, node)->addr_known = false;
}

/* ---- waiting ----------------------------------------------------------- */

static void fail_pending(struct peer *peer)
{
	struct request *request;

	peer->fences = 0;
	while (!list_empty(&peer->pending)) {
		request = container(peer->pending.next, struct request, node);
		list_remove(&request->node);
		request_fail(request, peer->cause);
		request_end(request, 0, FI_ADDR_NOTAVAIL);
	}
}

/* False: not yet. Otherwise it is out of the list. */
static bool resume(struct peer *peer, struct request *request)
{
	int ret;

	list_remove(&request->node);
	peer->fences -= !!(request->flags & FI_FENCE);
	ret = request->resume(request);
	if (ret == -FI_EAGAIN) {
		peer->fences += !!(request->flags & FI_FENCE);
		return false;
	}
	if (ret) {
		request_fail(request, ret);
		request_end(request, 0, FI_ADDR_NOTAVAIL);
	}
	return true;
}

/*
 * In order. But what is one-sided passes messages that the peer holds back: its
 * program may wait for that before it takes them. Nothing passes what is fenced.
 */
static void resume_all(struct peer *peer)
{
	bool messages = true, aside = false, fenced = false;
	struct request *request;
	struct list still;

	list_init(&still);
	while (!list_empty(&peer->pending) && !fenced &&
	       (messages || peer->has_aside)) {
		request = container(peer->pending.next, struct request, node);
		if (!messages && !request->aside)
			list_remove(&request->node);
		else if (resume(peer, request))
			continue;
		list_add(&still, &request->node);
		fenced = request->flags & FI_FENCE;
		messages &= request->aside;
		aside |= request->aside;
	}
	if (list_empty(&peer->pending))
		peer->has_aside = aside;
	while (!list_empty(&still)) {
		request = container(still.prev, struct request, node);
		list_remove(&request->node);
		list_add(peer->pending.next, &request->node);
	}
	if (peer->state == PEER_DEAD)
		fail_pending(peer);
}

/* Nothing that the peer does is awaited: only buffers or room in the ring. */
static bool is_ours(const struct peer *peer)
{
	if (peer->state != PEER_CONNECTED || peer->rewinding)
		return false;
	return (!list_empty(&peer->pending) && peer->data && !peer->fences) ||
	       (!list_empty(&peer->answers) && peer->control > 1);
}

void peers_flush(struct endpoint *ep)
{
	struct list todo, *node;
	struct peer *peer;

	/* What is stirred now has its turn the next time. */
	list_init(&todo);
	while (!list_empty(&ep->peers.pending)) {
		node = ep->peers.pending.next;
		list_remove(node);
		list_add(&todo, node);
	}
	ep->todo &= ~TODO_PENDING;
	while (!list_empty(&todo)) {
		peer = container(todo.next, struct peer, pending_node);
		list_remove(&peer->pending_node);
		peer->is_pending = false;
		if (peer->broken)
			peer_fail(peer, -ENOMEM);
		if (!peer_located(peer))
			continue;
		answers_flush(peer);
		resume_all(peer);
		if (is_ours(peer))
			peer_stir(peer);
	}
}

/* ---- the end ----------------------------------------------------------- */

static void fail_waiting(struct peer *peer)
{
	struct request *request;

	while (!list_empty(&peer->waiting)) {
		request = container(peer->waiting.next, struct request, node);
		list_remove(&request->node);
		request_fail(request, peer->cause);
		request->completed(request, NULL);
	}
}

/* One who has closed its endpoint has said all that it wanted to, and programs
 * close with receives posted.
 */
bool peer_is_gone(struct peer *peer)
{
	const struct address *address;
	fi_addr_t addr;

	if (peer->state != PEER_DEAD || peer->cause == CAUSE_CLOSED ||
	    peer->cause == CAUSE_REFUSED)
		return false;
	addr = peer_source(peer);
	address = addr == FI_ADDR_NOTAVAIL ? NULL :
		  av_address(peer->ep->av, addr);
	return address && address->nonce &&
	       (!peer->nonce || address->nonce == peer->nonce);
}

static void fail_receive(struct request *request)
{
	receive_abort(request, CAUSE_DEAD);
}

/*
 * To it all is well, and it would wait for ever. Its name of what is over makes
 * it believe this, whatever number it expects: others may not have arrived.
 */
static void give_notice(struct peer *peer)
{
	struct endpoint *ep = peer->ep;
	struct bounce *bounce;

	if (!peer->their_session || ep->failed || !ep->enabled)
		return;
	bounce = bounce_take_reserved(ep);
	if (!bounce)
		return;
	wire_put64(bounce->data, peer->their_session);
	datagram_send(peer, WIRE_BYE, bounce, 8, NULL);
}

void peer_remind(struct endpoint *ep, uint32_t number, uint32_t queue)
{
	uint64_t now = now_ns();
	struct list *node, *after;
	struct peer *peer;

	if (!ep->peers.ndead)
		return;
	list_each(node, after, &ep->peers.all) {
		peer = container(node, struct peer, node);
		if (peer->state != PEER_DEAD || peer->number != number ||
		    peer->queue != queue || peer->cause == CAUSE_CLOSED ||
		    peer->due_ns > now)
			continue;
		/* It is looked at for nothing else any more. */
		peer->due_ns = now + REMIND_PAUSE;
		give_notice(peer);
	}
}

void peer_lose(struct peer *peer, int cause)
{
	if (peer->state == PEER_DEAD || peer->lost)
		return;
	peer->lost = cause;
	peer->ep->todo |= TODO_LOST;
}

void peer_fail(struct peer *peer, int cause)
{
	char text[ADDRESS_MAX];

	if (peer->state == PEER_DEAD)
		return;
	if (peer->state == PEER_CONNECTED && cause != CAUSE_DEAD &&
	    cause != CAUSE_CLOSED)
		give_notice(peer);
	address_format(&peer->address, text);
	INFO(FI_LOG_EP_CTRL, "peer %s is lost: %s\n", text, cause_text(cause));
	if (peer_located(peer))
		peer_leave(peer);
	peer->state = PEER_DEAD;
	peer->cause = cause;
	credits_end(peer);
	list_remove(&peer->owing_node);
	list_remove(&peer->timed_node);
	peer->is_owing = false;
	peer->due_ns = 0;
	/* Nobody frees it meanwhile. */
	peer->users++;
	datagrams_drop(peer);
	fail_pending(peer);
	fail_waiting(peer);
	answers_drop(peer);
	if (peer_is_gone(peer))
		receives_of_peer(peer, fail_receive);
	peer->users--;
	peer->ep->peers.ndead++;
}

void peers_of_port_fail(struct endpoint *ep,
			const struct fabrex_port_event *event, bool same)
{
	struct list *node, *after;
	struct peer *peer;

	list_each(node, after, &ep->peers.all) {
		peer = container(node, struct peer, node);
		if (peer_located(peer) && peer->number == event->peer &&
		    event->time_ns > peer->located_ns && peer->generation &&
		    (peer->generation == event->generation) == same)
			peer_lose(peer, CAUSE_DEAD);
	}
}

static void forget(struct peer *peer)
{
	list_remove(&peer->node);
	list_remove(&peer->timed_node);
	list_remove(&peer->owing_node);
	list_remove(&peer->pending_node);
	answers_free(peer);
	if (peer->copies.mr && fabrex_mr_deregister(peer->copies.mr))
		INFO(FI_LOG_EP_CTRL, "memory for a peer stays until the port is closed: %s\n",
		     fabrex_strerror_last());
	free(peer->keys);
	free(peer);
}

void peers_reap(struct endpoint *ep)
{
	struct list *node, *after;
	struct peer *peer;

	list_each(node, after, &ep->peers.all) {
		peer = container(node, struct peer, node);
		if (peer->state != PEER_DEAD || peer->users ||
		    peer->is_pending)
			continue;
		forget(peer);
		ep->peers.ndead--;
	}
}

void peers_close(struct endpoint *ep)
{
	struct peers *peers = &ep->peers;

	while (!list_empty(&peers->all))
		forget(container(peers->all.next, struct peer, node));
	free(peers->table);
	free(peers->by_addr);
	memset(peers, 0, sizeof(*peers));
	list_init(&peers->all);
	list_init(&peers->pending);
	list_init(&peers->owing);
	list_init(&peers->timed);
}
