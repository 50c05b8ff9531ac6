// SPDX-License-Identifier: GPL-2.0-only
/*
 * One-sided writes of ours, as ucx_perftest does them: in the latency test both
 * sides poll the memory that the other writes to, in the bandwidth test one
 * buffer is written to another again and again.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "onesided.h"

#define MEET_MS		20000
#define DEPTH		16u

static int find_peer(struct onesided *s, const char *name,
		     struct fabrex_peer *peer)
{
	int ret, ms;

	for (ms = 0; ms < MEET_MS; ms += 5) {
		ret = fabrex_peer_find(s->port, name, peer);
		if (!ret)
			return 0;
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	return ret;
}

static int meet(struct onesided *s, const char *other, uint64_t service,
		const struct fabrex_remote *mine)
{
	size_t length = sizeof(s->remote);
	struct fabrex_listener *listener;
	struct fabrex_peer peer;
	int ret;

	if (!s->rank) {
		ret = fabrex_listen(s->port, service, &listener);
		if (ret)
			return ret;
		ret = fabrex_accept(listener, mine, sizeof(*mine), &s->remote,
				    &length, &peer.peer, MEET_MS);
		fabrex_listener_close(listener);
		return ret;
	}
	ret = find_peer(s, other, &peer);
	return ret ? ret : fabrex_connect(s->port, peer.peer, service, mine,
					  sizeof(*mine), &s->remote, &length,
					  MEET_MS);
}

int onesided_open(struct onesided *s, const char *other, uint64_t service)
{
	const struct fabrex_queue_attr attr = { .sq_entries = DEPTH * 4 };
	struct fabrex_remote mine;
	int ret;

	ret = fabrex_queue_create(s->port, &attr, sizeof(attr), &s->queue);
	if (ret)
		return ret;
	fabrex_mr_remote(s->recv, &mine);
	ret = meet(s, other, service, &mine);
	if (!ret)
		ret = fabrex_window_map(s->port, &s->remote, 0, s->room,
					FABREX_MR_REMOTE_READ |
					FABREX_MR_REMOTE_WRITE, &s->window);
	return ret;
}

void onesided_close(struct onesided *s)
{
	if (s->window)
		fabrex_window_unmap(s->window);
	if (s->queue)
		fabrex_queue_destroy(s->queue);
}

/* Number of completions, or negative. */
static int drain(struct onesided *s)
{
	struct fabrex_wc wc[DEPTH];
	int i, n = fabrex_poll(s->queue, wc, DEPTH);

	for (i = 0; i < n; i++)
		if (wc[i].status)
			return -EIO;
	return n;
}

/* One operation, counted by polling it. */
static bool write_one(struct onesided *s, uint64_t bytes)
{
	struct fabrex_wc wc;
	int ret;

	ret = fabrex_post_write(s->queue, s->send, 0, &s->remote, 0, bytes, 0,
				0);
	if (ret < 0)
		return false;
	do
		ret = fabrex_poll(s->queue, &wc, 1);
	while (!ret);
	return ret > 0 && !wc.status;
}

/* The last eight bytes are the turn's number, which the other waits for. */
static bool latency(struct onesided *s, uint64_t bytes, uint64_t n)
{
	uint64_t at = bytes / 8 * 8 - 8;
	volatile uint64_t *in = (volatile uint64_t *)(void *)
				((char *)fabrex_mr_addr(s->recv) + at);
	volatile uint64_t *out = (volatile uint64_t *)(void *)
				 ((char *)fabrex_mr_addr(s->send) + at);
	bool ok = true;

	if (bytes < 8)
		return false;
	for (; n && ok; n--) {
		s->turn++;
		*out = s->turn;
		if (!s->rank)
			ok = write_one(s, bytes);
		while (*in != s->turn)
			;
		if (s->rank)
			ok = write_one(s, bytes);
	}
	return ok;
}

static bool bandwidth(struct onesided *s, uint64_t bytes, uint64_t n)
{
	uint64_t posted = 0, done = 0;
	int ret;

	while (!s->rank && done < n) {
		if (posted < n && posted - done < DEPTH) {
			ret = fabrex_post_write(s->queue, s->send, 0,
						&s->remote, 0, bytes, 0,
						posted);
			if (ret < 0)
				return false;
			posted++;
		}
		ret = drain(s);
		if (ret < 0)
			return false;
		done += (uint64_t)ret;
	}
	return true;
}

/* On the same buffers, by the processor. */
static bool copy(struct onesided *s, uint64_t bytes, uint64_t n)
{
	void *to = (void *)(uintptr_t)fabrex_window_addr(s->window);

	for (; n && !s->rank; n--) {
		memcpy(to, fabrex_mr_addr(s->send), bytes);
		__asm__ volatile("" :: "r"(to) : "memory");
	}
	return true;
}

bool onesided_turns(struct onesided *s, const char *what, uint64_t bytes,
		    uint64_t n, bool *known)
{
	bool (*turns)(struct onesided *s, uint64_t bytes, uint64_t n) =
		!strcmp(what, "write_lat") ? latency :
		!strcmp(what, "write_bw") ? bandwidth :
		!strcmp(what, "memcpy") ? copy : NULL;

	*known = turns;
	return turns && s->rank < 2 && turns(s, bytes, n);
}
