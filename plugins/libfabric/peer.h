/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Peers: what an endpoint knows of another one, and the datagrams between them.
 * What operations with a peer need is here, too, from looking it up to posting.
 *
 * An operation takes these steps: peer_get() for the fi_addr_t; request_bind();
 * if it cannot go on yet (the peer is not located, or not connected; no credit;
 * something fenced is before it) peer_wait(), after which its resume() is called
 * when it may be worthwhile; request_begin() once it has begun; then it posts.
 * If it ends with an error before, request_fail() and request_end().
 *
 * Order: datagrams to a peer have consecutive numbers. One that the device has
 * not delivered (RNR), and all after it, are sent again with the same numbers;
 * the receiver drops what is not next. So nothing overtakes, and cells may be
 * promised to more peers than there are cells.
 */
#ifndef FABREX_PEER_H
#define FABREX_PEER_H

#include "provider.h"
#include "wire.h"

enum peer_state {
	PEER_SEEKING,		/* number and key are not known */
	PEER_LOCATED,		/* they are: one-sided operations may begin */
	PEER_GREETING,		/* a HELLO is due, or under way */
	PEER_CONNECTED,
	PEER_DEAD,		/* cause */
};

/* Memory that long messages to a peer are copied into. */
struct copies {
	struct fabrex_mr *mr;	/* NULL: not yet */
	uint32_t used;		/* a bit for each slab */
};

struct peer {
	struct endpoint *ep;
	struct peer *next;	/* in a chain of peers.table */
	uint32_t number;	/* of its port */
	uint32_t queue;		/* number of its queue */
	uint64_t key;		/* of its queue */
	enum peer_state state;
	bool rewinding;		/* datagrams are to be sent again, after which
				 * others may be sent
				 */
	/* Sending. */
	uint8_t tx_seq;
	uint8_t rx_seq;
	uint16_t data, control;	/* credits */
	uint16_t eager;		/* bytes of a datagram to it */
	uint32_t flying;	/* datagrams whose completions are to come */
	struct list pending;	/* requests, in order */
	/* Receiving: datagrams of either class that it may still send, and
	 * cells that it has been promised, has used and is not yet told of.
	 */
	uint16_t rx_data, rx_control;
	uint16_t owed_data, owed_control;
	uint16_t withheld;	/* data credits, until it is owed less */
	uint16_t window_data, window_control;
	fi_addr_t addr;		/* if addr_known; peer_source() */
	bool addr_known;
	bool is_pending, is_owing;	/* in lists of the endpoint */
	uint32_t fences;	/* of pending requests */
	bool has_aside;		/* some of them may be one-sided */
	uint32_t active;	/* requests that have begun and not ended */
	uint64_t unexpected;	/* bytes of its messages that are kept */

	struct list node;	/* in peers.all */
	struct list pending_node, owing_node, timed_node;
	struct list waiting;	/* requests that it has to answer */
	struct list answers;	/* that could not be sent yet: answer.c */
	size_t nanswers;
	bool broken;		/* there was no memory for one */
	struct list resend;	/* struct bounce.node: see rewinding */
	uint32_t users;		/* requests, datagrams, messages kept */
	int cause;		/* PEER_DEAD */
	struct address address;	/* as the peer says, or as we look for it */
	uint32_t nonce;		/* of it; 0: not known yet */
	uint32_t session;	/* our name for this connection; 0: none yet */
	uint32_t their_session;	/* theirs; 0: they have not said HELLO */
	bool greet;		/* it is to be connected once it is located */
	bool ack_due;		/* a HELLO of theirs is to be answered */
	uint32_t generation;	/* of its port; 0: not known */
	struct fabrex_remote board;	/* rkey 0: not known */
	struct copies copies;	/* copy.c */
	struct keys *keys;	/* where its regions begin: vaddr.c */
	uint16_t tx_window_data, tx_window_control;
	uint16_t cells;		/* promised to it */
	bool slow;		/* due_ns is late, as only receives wait for it */
	/* Times: CLOCK_MONOTONIC in ns. */
	uint64_t due_ns;	/* when to look at it again; 0: soon */
	uint64_t pause_ns;	/* until then, the last time */
	uint64_t since_ns;	/* it is being looked for; 0: it is not */
	uint64_t located_ns;	/* older events are of who was there before */
	uint32_t probes;	/* that it has been looked at in vain */
	bool probing;		/* a read of its board is under way */
	int lost;		/* cause, until it fails for it; 0: no */
};

/* It is looked at when progress is made: what waits may go on. */
static inline void peer_stir(struct peer *peer)
{
	if (peer->is_pending)
		return;
	peer->is_pending = true;
	list_add(&peer->ep->peers.pending, &peer->pending_node);
	peer->ep->todo |= TODO_PENDING;
}

/* ---- bounce.c ---------------------------------------------------------- */

/* Memory of an operation, or a datagram with the memory that it is sent from. */
struct bounce {
	struct bounce *next;	/* of the free ones */
	char *data;
	uint64_t offset;	/* in bounces.mr */
	struct peer *peer;
	struct request *request; /* to be told; NULL */
	uint16_t length;
	uint8_t kind;		/* enum wire_kind */
	uint8_t seq;
	uint8_t data_credits, control_credits;	/* that it returns */
	bool small;
	bool failed;		/* not delivered, and not to be sent again */
	struct list node;	/* in struct peer.resend */
};

#define BOUNCE_SMALL	128	/* bytes */
#define BOUNCE_RESERVED	32	/* small ones kept for answers */

int bounces_open(struct endpoint *ep, size_t nsmall, size_t nlarge);
void bounces_close(struct endpoint *ep);

static inline struct bounce *bounce_pop(struct bounce **list, size_t *n)
{
	struct bounce *bounce = *list;

	*list = bounce->next;
	--*n;
	return bounce;
}

/* For at most large_size bytes; NULL: none is free (-FI_EAGAIN). */
static inline struct bounce *bounce_take(struct endpoint *ep, size_t size)
{
	struct bounces *b = &ep->bounces;

	if (__builtin_expect(size <= BOUNCE_SMALL &&
			     b->nsmall > BOUNCE_RESERVED, 1))
		return bounce_pop(&b->small, &b->nsmall);
	return b->nlarge ? bounce_pop(&b->large, &b->nlarge) : NULL;
}

/* A small one for what keeps others going. */
static inline struct bounce *bounce_take_reserved(struct endpoint *ep)
{
	struct bounces *b = &ep->bounces;

	return b->nsmall ? bounce_pop(&b->small, &b->nsmall) : NULL;
}

static inline void bounce_return(struct endpoint *ep, struct bounce *bounce)
{
	struct bounces *b = &ep->bounces;

	if (bounce->small) {
		bounce->next = b->small;
		b->small = bounce;
		b->nsmall++;
	} else {
		bounce->next = b->large;
		b->large = bounce;
		b->nlarge++;
	}
}

/* ---- post.c ------------------------------------------------------------ */

/*
 * An operation that is no datagram, with a request in op->user_data, whose
 * posted it counts up. -FI_EAGAIN: no room; see request_retry(). Completions
 * come by way of request->completed().
 */
int post_operation(struct request *request, const struct fabrex_op *op);
/* resume() will be called when there is room. */
void request_retry(struct request *request);
/* In user_data, beside the address of a bounce: not that of a request. */
#define POSTED_DATAGRAM	1u

/*
 * A datagram to a connected peer, whose credit has been taken; @request is told
 * of its completion, and may be NULL. Never fails: whatever happens is known by
 * its completion.
 */
void datagram_send(struct peer *peer, enum wire_kind kind,
		   struct bounce *bounce, size_t length,
		   struct request *request);
/* HELLO: outside of numbers and credits. */
void datagram_send_hello(struct peer *peer, struct bounce *bounce,
			 size_t length, bool ack);
/* Its completion; a status that means that the peer is lost, or 0. */
int datagram_completed(struct bounce *bounce, const struct fabrex_wc *wc);
/* All have come back: they are sent again. */
void datagrams_resend(struct peer *peer);
/* The peer has ended: those that would have been sent again are not. */
void datagrams_drop(struct peer *peer);

/* ---- peer.c ------------------------------------------------------------ */

int peers_open(struct endpoint *ep, size_t cells);
void peers_close(struct endpoint *ep);
/* NULL: no memory. It is in no table yet. */
struct peer *peer_new(struct endpoint *ep, const struct address *address);
/* number, queue and key are known: it is found by them, once it is LOCATED. */
void peer_enter(struct peer *peer);
/* No longer. */
void peer_leave(struct peer *peer);
/* What this address means from now on; NULL: nothing. False: no memory. */
bool peer_link(struct endpoint *ep, fi_addr_t addr, struct peer *peer);

struct peer *peer_lookup(struct endpoint *ep, uint32_t number, uint32_t queue);

/* Who a datagram is from; NULL: somebody unknown. */
static inline struct peer *peer_of_source(struct endpoint *ep, uint32_t number,
					  uint32_t queue)
{
	struct peer *peer = ep->peers.last;

	if (__builtin_expect(peer && peer->queue == queue &&
			     peer->number == number, 1))
		return peer;
	return peer_lookup(ep, number, queue);
}

fi_addr_t peer_source_slowly(struct peer *peer);

/* Its place in the address vector, or FI_ADDR_NOTAVAIL. */
static inline fi_addr_t peer_source(struct peer *peer)
{
	return __builtin_expect(peer->addr_known, 1) ?
	       peer->addr : peer_source_slowly(peer);
}

static inline bool peer_located(const struct peer *peer)
{
	return peer->state >= PEER_LOCATED && peer->state != PEER_DEAD;
}

/* One-sided operations: its port is known, and nothing fenced is before. */
static inline bool peer_reachable(const struct peer *peer)
{
	return peer_located(peer) && !peer->fences;
}

/* Messages: nothing has to be sent first. */
static inline bool peer_ready(const struct peer *peer)
{
	return peer->state == PEER_CONNECTED && !peer->rewinding &&
	       list_empty(&peer->pending);
}

/* What it waits for takes time: whether it lives is to be looked at. */
static inline void peer_watch(struct peer *peer)
{
	if (list_empty(&peer->timed_node))
		list_add(&peer->ep->peers.timed, &peer->timed_node);
	else if (!peer->slow)
		return;
	peer->slow = false;
	peer->due_ns = 0;
	peer->ep->todo |= TODO_TIMED | TODO_CLOCK;
}

/* At this time. */
static inline void peer_due(struct peer *peer, uint64_t due_ns)
{
	struct endpoint *ep = peer->ep;

	peer->due_ns = due_ns;
	peer->slow = false;
	if (list_empty(&peer->timed_node))
		list_add(&ep->peers.timed, &peer->timed_node);
	ep->todo |= TODO_TIMED;
	if (!ep->due_ns || due_ns < ep->due_ns)
		ep->due_ns = due_ns;
}

/* It answers this request, some time. */
static inline void peer_await(struct request *request)
{
	list_add(&request->peer->waiting, &request->node);
	peer_watch(request->peer);
}

/* Nobody with its address can ever send again. */
bool peer_is_gone(struct peer *peer);
/* One that has been given up still sends: it may not know. */
void peer_remind(struct endpoint *ep, uint32_t number, uint32_t queue);
/* It has ended, or does not do what it must. */
void peer_fail(struct peer *peer, int cause);
/* It cannot be reached any more: it fails when what it had sent has been taken. */
void peer_lose(struct peer *peer, int cause);
/*
 * A port has gone, if that was its generation (same), or has come with another
 * one (!same). Whoever was located since then is not meant.
 */
void peers_of_port_fail(struct endpoint *ep,
			const struct fabrex_port_event *event, bool same);
/* What was waiting, and may go on. */
void peers_flush(struct endpoint *ep);
/* The address's meaning has changed. */
void peers_addr_changed(struct endpoint *ep, fi_addr_t addr);
/* Memory of those that have ended, and that nobody refers to any more. */
void peers_reap(struct endpoint *ep);

/* ---- greet.c ----------------------------------------------------------- */

/* Slow path of peer_get(). */
struct peer *peer_find(struct endpoint *ep, fi_addr_t addr, int *error);

/* NULL: *error is -FI_EINVAL (not in the address vector) or -FI_ENOMEM. It may
 * be PEER_DEAD, and the cause of that is known.
 */
static inline struct peer *peer_get(struct endpoint *ep, fi_addr_t addr,
				    int *error)
{
	struct peer *peer;

	if (__builtin_expect(addr < ep->peers.nby_addr, 1)) {
		peer = ep->peers.by_addr[addr];
		if (__builtin_expect(peer && peer->state != PEER_DEAD, 1))
			return peer;
	}
	return peer_find(ep, addr, error);
}

/*
 * resume() is called when the peer is located, connected, has a credit more, or
 * when what was fenced is over; in order. It has to look whether it can go on.
 * @greet: the peer is to be connected.
 */
void peer_wait(struct request *request, bool greet);
/* A HELLO has arrived, and peer may be NULL. */
void peer_hello(struct endpoint *ep, struct peer *peer,
		const struct fabrex_wc *wc);
/* One of ours was delivered, or not. */
void peer_hello_completed(struct peer *peer, bool ack, int status);
/* It is time to look for it, or to greet it, once more. */
void peer_greet_again(struct peer *peer, uint64_t now);
/* Its queue still offers its service. */
bool peer_is_there(struct peer *peer);
/* We end: it is told, if that is possible at once. */
void peer_bye(struct peer *peer);

static inline void request_bind(struct request *request, struct peer *peer)
{
	request->peer = peer;
	peer->users++;
}

static inline void request_begin(struct request *request)
{
	if (!request->begun) {
		request->begun = true;
		request->peer->active++;
	}
}

/* ---- credit.c ---------------------------------------------------------- */

/*
 * A control credit, as a WRITE_IMM needs one. One is left for CREDIT, without
 * which none would ever come back.
 */
static inline bool credit_take_control(struct peer *peer)
{
	if (peer->control < 2)
		return false;
	peer->control--;
	return true;
}

/* What a new peer is promised, and what is promised no more. */
void credits_grant(struct peer *peer);
void credits_end(struct peer *peer);
/* Returns what others wait for, where it has become much. */
void credits_flush(struct endpoint *ep);

static inline void credit_owing(struct peer *peer)
{
	if (peer->is_owing)
		return;
	peer->is_owing = true;
	list_add(&peer->ep->peers.owing, &peer->owing_node);
	peer->ep->todo |= TODO_OWING;
}

/* So many answers wait for a peer that it is not to ask for more. */
#define ANSWERS_MAX	256u

static inline bool credit_is_withheld(const struct peer *peer)
{
	return peer->unexpected > settings.unexpected ||
	       peer->nanswers > ANSWERS_MAX;
}

/* A cell that a data or control credit was for is free again. */
static inline void credit_owe_data(struct peer *peer)
{
	if (__builtin_expect(credit_is_withheld(peer), 0))
		peer->withheld++;
	else if (++peer->owed_data * 2 >= peer->window_data)
		credit_owing(peer);
}

static inline void credit_owe_control(struct peer *peer)
{
	if (++peer->owed_control * 2 >= peer->window_control)
		credit_owing(peer);
}

/* Some of what was kept is gone: half of it, and the peer may send again. */
static inline void credit_release(struct peer *peer)
{
	if (__builtin_expect(!peer->withheld, 1) ||
	    peer->unexpected > settings.unexpected / 2 ||
	    peer->nanswers > ANSWERS_MAX / 2)
		return;
	peer->owed_data = (uint16_t)(peer->owed_data + peer->withheld);
	peer->withheld = 0;
	credit_owing(peer);
}

/* Those that came with a datagram, or that a HELLO promises. */
static inline void credit_take(struct peer *peer, unsigned int data,
			       unsigned int control)
{
	data += peer->data;
	control += peer->control;
	/* Nobody gets more by lying. */
	peer->data = (uint16_t)(data < peer->tx_window_data ? data :
				peer->tx_window_data);
	peer->control = (uint16_t)(control < peer->tx_window_control ?
				   control : peer->tx_window_control);
	if (!list_empty(&peer->pending) || !list_empty(&peer->answers))
		peer_stir(peer);
}

/* ---- answer.c ---------------------------------------------------------- */

/* FIN, CANCEL: now, or as soon as there is a credit. */
void answer_send(struct peer *peer, enum wire_kind kind, uint64_t token,
		 enum fin_status status);
/* request->resume() sends it. */
void answer_request(struct peer *peer, struct request *request);
void answers_flush(struct peer *peer);
/* The peer has ended: the requests among them fail. */
void answers_drop(struct peer *peer);
/* Only their memory: the requests have ended already. */
void answers_free(struct peer *peer);

#endif
