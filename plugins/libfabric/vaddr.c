// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where peers' regions begin: read from the owner's board, a line at a time, and
 * kept for each key. Nothing that is read is believed: a wrong base only leads to
 * an offset that the region does not have. Used by rma.c and atomic.c.
 */
#include <stdlib.h>
#include <string.h>

#include "vaddr.h"

#define PLACES_FIRST	64u
/* Then all is forgotten: keys of regions that were closed are never asked for
 * again, and nobody says which they are.
 */
#define PLACES_MAX	(1u << 16)
#define LINE		sizeof(struct board_line)
#define LINE_PLACES	(LINE / sizeof(((struct board_line *)0)->place[0]))

/* Freed with the peer. */
struct keys {
	uint32_t size, used;	/* a power of two; at most half of it */
	bool reading;		/* one at a time */
	int cause;		/* the last one was not found: */
	uint64_t missing;
	struct {
		uint64_t key, base;	/* key 0: free */
	} place[];
};

/* ---- what is known ----------------------------------------------------- */

static inline uint32_t place_of(const struct keys *keys, uint64_t key)
{
	uint32_t i = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
		     (keys->size - 1);

	while (keys->place[i].key && keys->place[i].key != key)
		i = (i + 1) & (keys->size - 1);
	return i;
}

static struct keys *keys_new(uint32_t size)
{
	struct keys *keys = calloc(1, sizeof(*keys) +
				      size * sizeof(keys->place[0]));

	if (keys)
		keys->size = size;
	return keys;
}

static void put(struct keys *keys, uint64_t key, uint64_t base)
{
	uint32_t i = place_of(keys, key);

	keys->used += !keys->place[i].key;
	keys->place[i].key = key;
	keys->place[i].base = base;
}

/* For one more. Without memory what is known is forgotten, and read again. */
static struct keys *make_room(struct keys *keys)
{
	struct keys *more = NULL;
	uint32_t i;

	if (keys->used < keys->size / 2)
		return keys;
	if (keys->size < PLACES_MAX)
		more = keys_new(2 * keys->size);
	if (!more) {
		memset(keys->place, 0, keys->size * sizeof(keys->place[0]));
		keys->used = 0;
		return keys;
	}
	for (i = 0; i < keys->size; i++)
		if (keys->place[i].key)
			put(more, keys->place[i].key, keys->place[i].base);
	free(keys);
	return more;
}

/* ---- the board --------------------------------------------------------- */

/* Of its table; 0: it has none. */
static uint64_t lines_of(const struct peer *peer)
{
	uint64_t lines = peer->board.length / LINE;

	return lines ? lines - 1 : 0;
}

enum found { FOUND, ABSENT, FURTHER };

static enum found look(const char *data, uint64_t key, uint64_t *base)
{
	struct board_line line;
	size_t i;

	memcpy(&line, data, LINE);
	for (i = 0; i < LINE_PLACES; i++) {
		if (line.place[i].key == key) {
			*base = line.place[i].base;
			return FOUND;
		}
		if (!line.place[i].key)
			return ABSENT;
	}
	return FURTHER;
}

/* The line of a request for a key (tag) that has read so many (done). */
static int read_line(struct request *request)
{
	const struct peer *peer = request->peer;
	uint64_t lines = lines_of(peer);
	uint64_t line = (BOARD_LINE(request->tag, lines) + request->done) &
			(lines - 1);
	const struct fabrex_op op = {
		.opcode = FABREX_OP_READ,
		.peer = (uint16_t)peer->number,
		.user_data = (uintptr_t)request,
		.mr = request->ep->bounces.mr,
		.offset = request->bounce->offset,
		.length = LINE,
		.rkey = peer->board.rkey,
		.roffset = (line + 1) * LINE,
	};

	return post_operation(request, &op);
}

/* A cause, or 0. Whoever waits asks once more. */
static void end(struct request *request, int cause)
{
	struct peer *peer = request->peer;
	struct keys *keys = peer->keys;

	keys->reading = false;
	keys->cause = cause;
	keys->missing = request->tag;
	peer_stir(peer);
	request_free(request);
}

static int go_on(struct request *request)
{
	int ret = read_line(request);

	if (ret == -FI_EAGAIN)
		return ret;
	if (ret)
		end(request, ret);
	return 0;
}

static void has_read(struct request *request)
{
	struct peer *peer = request->peer;
	uint64_t base;

	switch (look(request->bounce->data, request->tag, &base)) {
	case FOUND:
		peer->keys = make_room(peer->keys);
		put(peer->keys, request->tag, base);
		end(request, 0);
		return;
	case FURTHER:
		if (++request->done < lines_of(peer)) {
			if (go_on(request))
				request_retry(request);
			return;
		}
		/* Fall through. */
	case ABSENT:
		end(request, FABREX_WC_RKEY);
	}
}

/* The board's key ends with the process. */
static void completed(struct request *request, const struct fabrex_wc *wc)
{
	struct peer *peer = request->peer;

	if (wc && !wc->status) {
		has_read(request);
		return;
	}
	end(request, CAUSE_DEAD);
	peer_fail(peer, CAUSE_DEAD);
}

/* False: there is no room now. */
static bool begin(struct peer *peer, uint64_t key)
{
	struct endpoint *ep = peer->ep;
	struct request *request = request_new_slowly(ep, false, true);

	if (!request)
		return false;
	request->bounce = bounce_take(ep, LINE);
	if (!request->bounce) {
		request_free(request);
		return false;
	}
	request_bind(request, peer);
	request->completed = completed;
	request->resume = go_on;
	request->context = NULL;
	request->own = true;
	request->flags = 0;
	request->tag = key;
	if (read_line(request)) {
		request_free(request);
		return false;
	}
	peer->keys->reading = true;
	return true;
}

static int find_out(struct peer *peer, uint64_t key)
{
	struct keys *keys = peer->keys;

	if (keys->reading)
		return -FI_EAGAIN;
	if (keys->cause && keys->missing == key) {
		int cause = keys->cause;

		/* Only this time: there may be such a key later. */
		keys->cause = 0;
		return cause;
	}
	if (!begin(peer, key))
		peer_stir(peer);
	return -FI_EAGAIN;
}

int vaddr_base(struct peer *peer, uint64_t key, uint64_t *base)
{
	struct keys *keys = peer->keys;
	uint64_t lines;
	uint32_t i;

	if (__builtin_expect(!key || key == BOARD_DELETED, 0))
		return FABREX_WC_RKEY;
	if (__builtin_expect(keys != NULL, 1)) {
		i = place_of(keys, key);
		*base = keys->place[i].base;
		return keys->place[i].key ? 0 : find_out(peer, key);
	}
	if (peer->state != PEER_CONNECTED)
		return -FI_EAGAIN;
	lines = lines_of(peer);
	*base = 0;
	if (!lines)
		return 0;
	if (!peer->board.rkey || lines & (lines - 1) || lines > UINT32_MAX)
		return CAUSE_PROTOCOL;
	peer->keys = keys_new(PLACES_FIRST);
	return peer->keys ? find_out(peer, key) : -ENOMEM;
}
