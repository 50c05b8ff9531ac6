// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages that must not be lost because a connection is full at the moment:
 * kept for each peer, in order, until the service thread has sent them.
 * Wake-ups go before all others, and once for each queue. Called by region.c,
 * file.c, window.c, socket.c and service.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "state.h"

/* More than there are regions: the peer asks and never reads the answers. */
#define LIMIT	(4 * SEGMENT_MRS)

struct loop_letter {
	struct loop_letter *next;
	enum loop_message_type type;
	uint64_t key;
};

static int deliver(struct transport *t, uint32_t number,
		   enum loop_message_type type, uint64_t key)
{
	struct loop_message m = { .type = type, .value = { key } };
	int pass = -1;

	if (type == LOOP_FILE_IS)
		pass = fxi_loop_file_is(t, number, key, &m);
	return fxi_loop_socket_send(t->peers[number].sock, &m, pass);
}

/* Temporary errors; after others the end of the connection will be read. */
static bool try_later(int ret)
{
	return ret == -EAGAIN || ret == -ENOBUFS || ret == -ENOMEM ||
	       ret == -ETOOMANYREFS;
}

/* Without memory the message is lost, as if it had come too late. */
static void keep(struct transport *t, uint32_t number,
		 enum loop_message_type type, uint64_t key)
{
	struct loop_outbox *box = &t->state->outboxes[number];
	struct loop_letter *l = malloc(sizeof(*l));

	if (!l)
		return;
	*l = (struct loop_letter){ .type = type, .key = key };
	if (loop_outbox_empty(box))
		fxi_loop_service_kick(t);
	if (box->first)
		box->last->next = l;
	else
		box->first = l;
	box->last = l;
	if (++box->count > LIMIT)
		shutdown(t->peers[number].sock, SHUT_RDWR);
}

void fxi_loop_tell(struct transport *t, uint32_t number,
		   enum loop_message_type type, uint64_t key)
{
	struct loop_outbox *box = &t->state->outboxes[number];
	int ret = -EAGAIN;

	if (t->state->slots[number].state != SLOT_KNOWN)
		return;
	if (!box->first) {
		ret = deliver(t, number, type, key);
		box->full = ret == -EAGAIN;
	}
	if (try_later(ret))
		keep(t, number, type, key);
}

/* The peer checks the number: that queue may have ended, or never existed. */
void fxi_loop_tell_wake(struct transport *t, uint32_t number, uint32_t queue)
{
	struct loop_outbox *box = &t->state->outboxes[number];

	if (t->state->slots[number].state != SLOT_KNOWN ||
	    queue - 1 >= SEGMENT_QUEUES)
		return;
	if (loop_outbox_empty(box))
		fxi_loop_service_kick(t);
	box->wakes[(queue - 1) / 64] |= 1ull << (queue - 1) % 64;
	box->wake = true;
}

/* False: there was no room for all. */
static bool send_wakes(struct transport *t, uint32_t number)
{
	struct loop_outbox *box = &t->state->outboxes[number];
	struct loop_message m = { .type = LOOP_WAKE };
	uint32_t i;
	int ret;

	for (i = 0; box->wake && i < SEGMENT_QUEUES; i++) {
		if (!(box->wakes[i / 64] >> i % 64 & 1))
			continue;
		m.value[0] = i + 1;
		ret = fxi_loop_socket_send(t->peers[number].sock, &m, -1);
		box->full = ret == -EAGAIN;
		if (try_later(ret))
			return false;
		box->wakes[i / 64] &= ~(1ull << i % 64);
	}
	box->wake = false;
	return true;
}

static void remove_first(struct loop_outbox *box)
{
	struct loop_letter *l = box->first;

	box->first = l->next;
	box->count--;
	free(l);
}

void fxi_loop_outbox_flush(struct transport *t, uint32_t number)
{
	struct loop_outbox *box = &t->state->outboxes[number];
	int ret;

	if (!send_wakes(t, number))
		return;
	while (box->first) {
		ret = deliver(t, number, box->first->type, box->first->key);
		box->full = ret == -EAGAIN;
		if (try_later(ret))
			return;
		remove_first(box);
	}
}

void fxi_loop_outbox_clear(struct transport *t, uint32_t number)
{
	struct loop_outbox *box = &t->state->outboxes[number];

	while (box->first)
		remove_first(box);
	memset(box->wakes, 0, sizeof(box->wakes));
	box->wake = false;
}
