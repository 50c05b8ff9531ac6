/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events: the switch's log of the last 1,024 and one queue for each host port.
 * What users of a port can cause by themselves (errors of their queues and
 * windows) is in neither: there is a place for each queue and each window, so
 * that it can push nothing out.
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
#define EVENT_REQUESTS	64	/* more than slots of a partition */

/* The error of one queue or window. */
struct event_report {
	struct draco_event ev;
	bool pending;
	struct event_report *next, *prev;	/* in the order they came */
};

/* A RELEASE_REQUEST that has not been met; token 0: none. */
struct event_request {
	struct draco_event ev;
	uint64_t until_ns;		/* 0: no time limit */
};

struct event_queue {
	struct draco_event ring[EVENT_QUEUE_LEN];
	unsigned int head, count;
	uint64_t lost;
	bool on;
	struct event_report *reports;	/* queues first, then windows */
	struct event_report pending;	/* head of the list */
	struct event_request requests[EVENT_REQUESTS];
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
struct port;

void event_init(struct event_log *log);
void event_exit(struct event_log *log);

int event_queue_init(struct event_queue *q, unsigned int nreports);
void event_queue_free(struct event_queue *q);

/* Give @ev number and time, log it, queue it for the ports in @to. */
void event_post(struct fabric *f, const struct draco_event *ev,
		const struct event_mask *to);
/* To all enabled ports, to one. */
void event_post_all(struct fabric *f, const struct draco_event *ev);
void event_post_one(struct fabric *f, const struct draco_event *ev,
		    unsigned int peer);
/* The last number given. */
uint64_t event_last(struct event_log *log);

/*
 * The error of a queue or window of @p, and that there is no such thing any
 * more: then it is not reported. @index is that of the table, windows after
 * queues.
 */
void event_report(struct port *p, unsigned int index,
		  const struct draco_event *ev);
void event_unreport(struct port *p, unsigned int index);

/* RELEASE_REQUEST to @p, remembered until event_met() of its token. */
void event_request(struct port *p, const struct draco_event *ev);
void event_met(struct port *p, uint64_t token);
/* Those that have not been met; returns how many. */
size_t event_requests(struct port *p, struct draco_event *out, size_t max);

/* READY begins or ends: the queue is emptied. */
void event_queue_enable(struct event_log *log, struct event_queue *q, bool on);
/* Take up to @max events; *lost is what overflowed, counted anew after. */
size_t event_queue_take(struct event_log *log, struct event_queue *q,
			struct draco_event *out, size_t max, uint64_t *lost);
/* Copy up to @max logged events from @seq on. */
size_t event_log_read(struct event_log *log, uint64_t seq,
		      struct draco_event *out, size_t max);

#endif
