// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Whether peers still live, where nothing that is posted would tell: those that
 * something is awaited from are looked at every now and then, and the port's
 * events are read. Used by progress.c, when there is time or it is time.
 */
#include "message.h"

#define MS		UINT64_C(1000000)
#define PROBE_PAUSE	(100 * MS)
#define EVENTS_PAUSE	(10 * MS)
/* Each so many of those probes also looks for the queue, which takes longer. */
#define PROBES_SHORT	10u
/* A sleeper that waits for one peer looks up from time to time. */
#define SLEEP_MAX	(1000 * MS)

/* ---- events ------------------------------------------------------------ */

/* Events were lost: is everybody as it was? */
static void check_all(struct endpoint *ep)
{
	struct fabrex_peer is;
	struct list *node, *after;
	struct peer *peer;

	list_each(node, after, &ep->peers.all) {
		peer = container(node, struct peer, node);
		if (!peer_located(peer))
			continue;
		if (fabrex_peer_next(ep->domain->port, peer->number, &is) ||
		    is.peer != peer->number || !is.up ||
		    (peer->generation && is.generation != peer->generation))
			peer_lose(peer, CAUSE_DEAD);
	}
}

static void tell(struct endpoint *ep, const struct fabrex_port_event *event)
{
	switch (event->type) {
	case FABREX_EV_PEER_DOWN:
		peers_of_port_fail(ep, event, true);
		break;
	case FABREX_EV_PEER_UP:
		peers_of_port_fail(ep, event, false);
		break;
	case FABREX_EV_LOST:
		check_all(ep);
		break;
	}
}

static void read_events(struct domain *domain)
{
	struct fabrex_port_event event;
	struct list *node, *after;
	struct endpoint *ep;

	while (!fabrex_event_read(domain->port, &event, 0))
		list_each(node, after, &domain->endpoints) {
			ep = container(node, struct endpoint, node);
			tell(ep, &event);
			/* Somebody may sleep who waits for another one. */
			if (ep->todo & TODO_LOST)
				ep->settle(ep);
		}
}

void watch_idle(struct endpoint *ep)
{
	struct domain *domain = ep->domain;
	uint64_t now = now_ns();

	if (now - domain->events_ns < EVENTS_PAUSE)
		return;
	domain->events_ns = now;
	read_events(domain);
	if (ep->peers.ndead)
		peers_reap(ep);
}

/* ---- probes ------------------------------------------------------------ */

static void probed(struct request *request, const struct fabrex_wc *wc)
{
	struct peer *peer = request->peer;
	bool dead = wc && wc->status;

	peer->probing = false;
	request_free(request);
	if (dead)
		peer_lose(peer, CAUSE_DEAD);
}

/* A read of nothing from its board, whose key ends with its process. */
static void probe_board(struct peer *peer)
{
	struct endpoint *ep = peer->ep;
	struct request *request = request_new_slowly(ep, false, true);
	const struct fabrex_op op = {
		.opcode = FABREX_OP_READ,
		.peer = (uint16_t)peer->number,
		.user_data = (uintptr_t)request,
		.mr = ep->bounces.mr,
		.rkey = peer->board.rkey,
	};

	if (!request)
		return;
	request_bind(request, peer);
	request->own = true;
	request->completed = probed;
	if (post_operation(request, &op))
		request_free(request);
	else
		peer->probing = true;
}

static bool is_awaited(const struct peer *peer)
{
	return !list_empty(&peer->waiting) || !list_empty(&peer->pending) ||
	       !list_empty(&peer->answers) || peer->flying;
}

static void probe(struct peer *peer, uint64_t now)
{
	bool awaited = is_awaited(peer);

	if (!awaited && !receives_await(peer))
		return;
	if (++peer->probes % PROBES_SHORT == 0 && !peer_is_there(peer)) {
		peer_lose(peer, CAUSE_DEAD);
		return;
	}
	if (peer->board.rkey && !peer->probing)
		probe_board(peer);
	/* A receive may be posted for long; who has posted one may sleep longer. */
	peer_due(peer, now + (awaited ? PROBE_PAUSE : SLEEP_MAX));
	peer->slow = !awaited;
}

/*
 * One that something is to be received from, and that has never been heard of: is
 * its queue still there?
 */
static void probe_unmet(struct peer *peer, uint64_t now)
{
	if (!receives_await(peer))
		return;
	if (!peer_is_there(peer)) {
		peer_lose(peer, CAUSE_DEAD);
		return;
	}
	peer_due(peer, now + SLEEP_MAX);
	peer->slow = true;
}

/* ---- what is due ------------------------------------------------------- */

static void look(struct peer *peer, uint64_t now)
{
	list_remove(&peer->timed_node);
	if (peer->state != PEER_CONNECTED || peer->ack_due)
		peer_greet_again(peer, now);
	if (peer->state == PEER_LOCATED)
		probe_unmet(peer, now);
	if (peer->state != PEER_CONNECTED)
		return;
	if (peer->rewinding && !peer->flying)
		datagrams_resend(peer);
	if (list_empty(&peer->timed_node))
		probe(peer, now);
}

void watch_timed(struct endpoint *ep)
{
	uint64_t now = now_ns(), next = 0;
	struct list *node, *after;
	struct list todo;
	struct peer *peer;

	/* Mostly nothing is due, and peers are many. */
	if (!(ep->todo & TODO_CLOCK) && ep->due_ns > now) {
		watch_idle(ep);
		return;
	}
	ep->todo &= ~TODO_CLOCK;
	list_init(&todo);
	list_each(node, after, &ep->peers.timed) {
		peer = container(node, struct peer, timed_node);
		if (!peer->due_ns)
			peer->due_ns = now + PROBE_PAUSE;
		if (peer->due_ns > now)
			continue;
		list_remove(node);
		list_add(&todo, node);
	}
	while (!list_empty(&todo))
		look(container(todo.next, struct peer, timed_node), now);
	list_each(node, after, &ep->peers.timed) {
		peer = container(node, struct peer, timed_node);
		if (!next || peer->due_ns < next)
			next = peer->due_ns;
	}
	/* Else due_ns would be reached, and nobody would set another. */
	if (list_empty(&ep->peers.timed) && !ep->receives->directed)
		ep->todo &= ~TODO_TIMED;
	if (ep->receives->directed && (!next || next > now + SLEEP_MAX))
		next = now + SLEEP_MAX;
	ep->due_ns = next;
	watch_idle(ep);
}
