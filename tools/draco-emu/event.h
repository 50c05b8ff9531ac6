/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events: the switch's log of the last 1,024 and one queue for each host port.
 *
 * Locks: event_log.lock protects the log and all queues. It is taken by any
 * thread, with any other lock held, and only engine.lock is taken inside.
 */
#ifndef EMU_EVENT_H
#define EMU_EVENT_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include <draco/regs.h>

#define EVENT_LOG_LEN	1024
#define EVENT_QUEUE_LEN	256

struct event_queue {
	struct draco_event ring[EVENT_QUEUE_LEN];
	unsigned int head, count;
	uint64_t lost;
	bool on;
};

struct event_log {
	pthread_mutex_t lock;
	struct draco_event ring[EVENT_LOG_LEN];
	uint64_t next_seq;		/* the first is 1 */
	uint64_t start_ns;
};

/* Host ports by peer number. */
struct event_mask {
	uint64_t bits[4];
};

static inline void event_mask_set(struct event_mask *m, unsigned int peer)
{
	m->bits[peer / 64] |= 1ull << (peer % 64);
}

static inline bool event_mask_has(const struct event_mask *m,
				  unsigned int peer)
{
	return m->bits[peer / 64] >> (peer % 64) & 1;
}

struct fabric;

void event_init(struct event_log *log);
void event_exit(struct event_log *log);

/* Give @ev number and time, log it, queue it for the ports in @to. */
void event_post(struct fabric *f, const struct draco_event *ev,
		const struct event_mask *to);
/* To all enabled ports, to one. */
void event_post_all(struct fabric *f, const struct draco_event *ev);
void event_post_one(struct fabric *f, const struct draco_event *ev,
		    unsigned int peer);

/* READY begins or ends: the queue is emptied. */
void event_queue_enable(struct event_log *log, struct event_queue *q, bool on);
/* Take up to @max events; *lost is what overflowed, counted anew after. */
size_t event_queue_take(struct event_log *log, struct event_queue *q,
			struct draco_event *out, size_t max, uint64_t *lost);
/* Copy up to @max logged events from @seq on. */
size_t event_log_read(struct event_log *log, uint64_t seq,
		      struct draco_event *out, size_t max);

#endif
