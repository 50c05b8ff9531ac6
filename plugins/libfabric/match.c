// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Receives that wait for a message. Those with a whole tag are in a table by
 * tag, the others in a list, and the older one of both is taken. Used by the
 * program's calls and by what arrives.
 */
#include <stdlib.h>

#include "match.h"

static inline unsigned int bucket(uint64_t tag)
{
	return (unsigned int)(tag * UINT64_C(0x9e3779b97f4a7c15) >> 56) &
	       (MATCH_BUCKETS - 1);
}

int receives_open(struct endpoint *ep)
{
	struct receives *r = calloc(1, sizeof(*r));
	size_t i;

	if (!r)
		return -FI_ENOMEM;
	list_init(&r->plain);
	list_init(&r->wild);
	list_init(&r->messages);
	list_init(&r->tagged);
	list_init(&r->claimed);
	for (i = 0; i < MATCH_BUCKETS; i++) {
		list_init(&r->exact[i]);
		list_init(&r->by_tag[i]);
	}
	ep->receives = r;
	return 0;
}

static inline bool is_tagged(const struct request *request)
{
	return request->cq_flags & FI_TAGGED;
}

void receive_post(struct request *request)
{
	struct receives *r = request->ep->receives;
	struct list *list;

	if (!is_tagged(request))
		list = &r->plain;
	else if (request->ignore)
		list = &r->wild;
	else
		list = &r->exact[bucket(request->tag)];
	request->sequence = r->sequence++;
	if (request->addr != FI_ADDR_UNSPEC)
		r->directed++;
	list_add(list, &request->node);
}

void receive_withdraw(struct request *request)
{
	if (request->addr != FI_ADDR_UNSPEC)
		request->ep->receives->directed--;
	list_remove(&request->node);
}

static inline bool is_from(const struct request *request, struct peer *peer)
{
	return request->addr == FI_ADDR_UNSPEC ||
	       request->addr == peer_source(peer);
}

static inline struct request *search(const struct list *list, struct peer *peer,
				     uint64_t tag)
{
	struct request *request;
	struct list *node;

	for (node = list->next; node != list; node = node->next) {
		request = container(node, struct request, node);
		if (!((request->tag ^ tag) & ~request->ignore) &&
		    is_from(request, peer))
			return request;
	}
	return NULL;
}

static inline struct request *earlier(struct request *a, struct request *b)
{
	if (!a || (b && b->sequence < a->sequence))
		return b;
	return a;
}

struct request *receive_match(struct peer *peer, bool tagged, uint64_t tag)
{
	struct receives *r = peer->ep->receives;
	struct request *request;

	if (tagged)
		request = earlier(search(&r->exact[bucket(tag)], peer, tag),
				  search(&r->wild, peer, tag));
	else
		request = search(&r->plain, peer, 0);
	if (request && !(request->flags & FI_MULTI_RECV))
		receive_withdraw(request);
	return request;
}

/* The last message of several: the program has its buffer back. */
static struct request *closed_parent(struct request *request)
{
	struct request *parent = request->message.parent;

	if (!parent || --parent->message.users ||
	    parent->phase != PHASE_CLOSED)
		return NULL;
	request->cq_flags |= FI_MULTI_RECV;
	/* Or it would never know, whatever it wants to be told of messages. */
	request->silent = false;
	return parent;
}

void receive_end(struct request *request, uint64_t length, fi_addr_t source)
{
	struct request *parent = closed_parent(request);

	request->message.parent = NULL;
	request_end(request, length, source);
	if (parent)
		request_free(parent);
}

void receive_abort(struct request *request, int cause)
{
	receive_withdraw(request);
	if (request->flags & FI_MULTI_RECV) {
		if (request->message.users) {
			request->phase = PHASE_CLOSED;
			return;
		}
		request->cq_flags |= FI_MULTI_RECV;
	}
	request_fail(request, cause);
	request_end(request, 0, FI_ADDR_NOTAVAIL);
}

static bool has_from(struct list *list, fi_addr_t addr)
{
	struct list *node;

	for (node = list->next; node != list; node = node->next)
		if (container(node, struct request, node)->addr == addr)
			return true;
	return false;
}

bool receives_await(struct peer *peer)
{
	struct receives *r = peer->ep->receives;
	fi_addr_t addr;
	size_t i;

	if (!r->directed)
		return false;
	addr = peer_source(peer);
	if (addr == FI_ADDR_NOTAVAIL)
		return false;
	for (i = 0; i < MATCH_BUCKETS; i++)
		if (has_from(&r->exact[i], addr))
			return true;
	return has_from(&r->plain, addr) || has_from(&r->wild, addr);
}

static void search_all(struct list *list, fi_addr_t addr,
		       void (*found)(struct request *request))
{
	struct list *node, *after;
	struct request *request;

	list_each(node, after, list) {
		request = container(node, struct request, node);
		if (request->addr == addr)
			found(request);
	}
}

/* What found() ends is no longer in the list, and nothing else is either. */
void receives_of_peer(struct peer *peer, void (*found)(struct request *request))
{
	struct receives *r = peer->ep->receives;
	fi_addr_t addr = peer_source(peer);
	size_t i;

	if (!r->directed || addr == FI_ADDR_NOTAVAIL)
		return;
	search_all(&r->plain, addr, found);
	search_all(&r->wild, addr, found);
	for (i = 0; i < MATCH_BUCKETS; i++)
		search_all(&r->exact[i], addr, found);
}
