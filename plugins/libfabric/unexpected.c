// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages that nobody has asked for yet: copies of the short ones, and where
 * the long ones are. How much of a peer's there may be is the business of its
 * credits (credit.c). Used by what arrives, and by receives that look here first.
 */
#include <stdlib.h>
#include <string.h>

#include "match.h"

#define SMALL		64u	/* bytes of a message whose memory is kept */
#define UNUSED_MAX	1024u	/* of them */

static inline unsigned int bucket(uint64_t tag)
{
	return (unsigned int)(tag * UINT64_C(0x9e3779b97f4a7c15) >> 56) &
	       (MATCH_BUCKETS - 1);
}

static struct unexpected *take(struct receives *r, size_t length)
{
	struct unexpected *message = r->unused;

	if (length > SMALL)
		return malloc(sizeof(*message) + length);
	if (!message)
		return malloc(sizeof(*message) + SMALL);
	r->unused = message->next;
	r->nunused--;
	return message;
}

bool unexpected_add(struct peer *peer, const struct arrival *arrival)
{
	struct receives *r = peer->ep->receives;
	size_t length = arrival->rts ? 0 : (size_t)arrival->length;
	struct unexpected *message = take(r, length);

	if (!message)
		return false;
	message->peer = peer;
	message->claim = NULL;
	message->small = length <= SMALL;
	message->charged = sizeof(*message) + length;
	message->arrival = *arrival;
	message->arrival.payload = message->data;
	if (length)
		memcpy(message->data, arrival->payload, length);
	list_init(&message->same);
	if (arrival->tagged) {
		list_add(&r->tagged, &message->node);
		list_add(&r->by_tag[bucket(arrival->tag)], &message->same);
	} else {
		list_add(&r->messages, &message->node);
	}
	peer->users++;
	peer->unexpected += message->charged;
	return true;
}

static inline bool fits(const struct unexpected *message,
			const struct wanted *wanted)
{
	return !((message->arrival.tag ^ wanted->tag) & ~wanted->ignore) &&
	       (wanted->addr == FI_ADDR_UNSPEC ||
		wanted->addr == peer_source(message->peer));
}

static struct unexpected *search_same(struct list *list,
				      const struct wanted *wanted)
{
	struct unexpected *message;
	struct list *node;

	for (node = list->next; node != list; node = node->next) {
		message = container(node, struct unexpected, same);
		if (fits(message, wanted))
			return message;
	}
	return NULL;
}

static struct unexpected *search_all(struct list *list,
				     const struct wanted *wanted)
{
	struct unexpected *message;
	struct list *node;

	for (node = list->next; node != list; node = node->next) {
		message = container(node, struct unexpected, node);
		if (fits(message, wanted))
			return message;
	}
	return NULL;
}

struct unexpected *unexpected_find(struct endpoint *ep,
				   const struct wanted *wanted)
{
	struct receives *r = ep->receives;

	if (!wanted->tagged)
		return list_empty(&r->messages) ? NULL :
		       search_all(&r->messages, wanted);
	if (list_empty(&r->tagged))
		return NULL;
	return wanted->ignore ? search_all(&r->tagged, wanted) :
	       search_same(&r->by_tag[bucket(wanted->tag)], wanted);
}

void unexpected_claim(struct endpoint *ep, struct unexpected *message,
		      void *context)
{
	list_remove(&message->node);
	list_remove(&message->same);
	message->claim = context;
	list_add(&ep->receives->claimed, &message->node);
}

struct unexpected *unexpected_claimed(struct endpoint *ep, void *context)
{
	struct list *list = &ep->receives->claimed, *node;
	struct unexpected *message;

	for (node = list->next; node != list; node = node->next) {
		message = container(node, struct unexpected, node);
		if (message->claim == context)
			return message;
	}
	return NULL;
}

static struct unexpected *search_rts(struct list *list,
				     const struct peer *peer, uint64_t token)
{
	struct unexpected *message;
	struct list *node;

	for (node = list->next; node != list; node = node->next) {
		message = container(node, struct unexpected, node);
		if (message->peer == peer && message->arrival.rts &&
		    message->arrival.token == token)
			return message;
	}
	return NULL;
}

struct unexpected *unexpected_rts(struct peer *peer, uint64_t token)
{
	struct receives *r = peer->ep->receives;
	struct unexpected *message = search_rts(&r->messages, peer, token);

	return message ? message : search_rts(&r->tagged, peer, token);
}

void unexpected_free(struct unexpected *message)
{
	struct peer *peer = message->peer;
	struct receives *r = peer->ep->receives;

	list_remove(&message->node);
	list_remove(&message->same);
	peer->users--;
	peer->unexpected -= message->charged;
	credit_release(peer);
	if (message->small && r->nunused < UNUSED_MAX) {
		message->next = r->unused;
		r->unused = message;
		r->nunused++;
	} else {
		free(message);
	}
}

static void free_list(struct list *list)
{
	struct list *node, *after;

	list_each(node, after, list)
		unexpected_free(container(node, struct unexpected, node));
}

void receives_close(struct endpoint *ep)
{
	struct receives *r = ep->receives;
	struct unexpected *message;

	if (!r)
		return;
	free_list(&r->messages);
	free_list(&r->tagged);
	free_list(&r->claimed);
	while (r->unused) {
		message = r->unused;
		r->unused = message->next;
		free(message);
	}
	free(r);
	ep->receives = NULL;
}
