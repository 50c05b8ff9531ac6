/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Streams in which operations are enqueued, and gates, the places of operations
 * in them. For operation/ and for the public functions in enqueue.c.
 *
 *   gate.c     streams as objects; in what order operations leave
 *   host.c     streams of the host: a thread each
 *   gpu.c      streams of HIP and CUDA
 *   waker.c    what the progress thread sleeps on: waker.h
 *
 * A stream has two counts. What is before a gate in the stream has ended once
 * @started reaches the gate's number; what is behind it goes on once @finished
 * does. The GPU writes the first and waits for the second by itself if its
 * runtime has stream memory operations, otherwise a function of the host does.
 */
#ifndef LIB_COLL_STREAM_H
#define LIB_COLL_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <fabrex/coll.h>

struct device;
struct gate;
struct stream_words;

/*
 * What a kind of stream does.
 *
 * @mark:  @started becomes @number when it is the mark's turn
 * @hold:  the stream goes on once @finished has reached @number
 * @ready: 0, or why nothing can be enqueued now
 * @call:  a function of the caller's in its turn; NULL: it has none
 * @destroy: nobody will enqueue anything any more
 * @close: the last user is gone
 */
struct stream_kind {
	int (*mark)(struct fabrex_stream *stream, uint64_t number);
	int (*hold)(struct fabrex_stream *stream, uint64_t number);
	int (*ready)(struct fabrex_stream *stream);
	int (*call)(struct fabrex_stream *stream, void (*function)(void *arg),
		    void *arg);
	void (*destroy)(struct fabrex_stream *stream);
	void (*close)(struct fabrex_stream *stream);
};

struct stream_item;

struct fabrex_stream {
	const struct stream_kind *kind;
	bool gpu;
	pid_t pid;			/* whose it is: not a child's */
	uint32_t users;			/* atomic: writers, gates, threads */
	uint32_t writers;		/* atomic: who may enqueue: the caller, and
					 * operations of groups that are open
					 */
	pthread_mutex_t enqueuing;	/* a mark and its hold are neighbours;
					 * taken before lock
					 */
	pthread_mutex_t lock;		/* of all that follows */
	pthread_cond_t changed;
	uint64_t *started, *finished;	/* atomic */
	uint64_t newest;		/* number of the newest gate */
	struct gate *first, *last;	/* not released, by number */
	int error;			/* of the first operation that failed */
	char *error_text;

	struct device *device;		/* gpu.c */
	struct stream_words *words;

	uint64_t own[2];		/* host.c: the two counts */
	struct stream_item *items, **items_end;
	bool busy, ending;
};

/* ---- gate.c ------------------------------------------------------------ */

/* 0 or a negative errno; for the two below. The caller is its writer. */
int fxi_stream_new(const struct stream_kind *kind, struct fabrex_stream **out);
void fxi_stream_get(struct fabrex_stream *stream);
void fxi_stream_put(struct fabrex_stream *stream);
/* One more who may enqueue, and so a user, and one less. */
void fxi_stream_join(struct fabrex_stream *stream);
void fxi_stream_leave(struct fabrex_stream *stream);

/*
 * A place for @n operations that are performed together, from now on in the
 * stream. Each of them has to leave it.
 */
int fxi_gate_make(struct fabrex_stream *stream, uint32_t n, struct gate **gate);
/* Has what is before it in the stream ended? */
bool fxi_gate_is_open(const struct gate *gate);
/*
 * For somebody who is about to wait for streams of GPUs as a whole while it
 * keeps operations from ending: true if no gate is in any of them, and none
 * gets into one until fxi_streams_release() is called.
 */
bool fxi_streams_freeze(void);
void fxi_streams_release(void);
/*
 * An operation has ended with @result, whose message is set. With the last one
 * the gate is gone, and the stream goes on when those before have left, too.
 */
void fxi_gate_leave(struct gate *gate, int result);

/* Have all operations ended, and all calls? For fabrex_stream_wait(). */
bool fxi_stream_is_idle(struct fabrex_stream *stream);
/* The first failure, with its message, or 0. @forget: from now on, the next. */
int fxi_stream_error(struct fabrex_stream *stream, bool forget);
/* 0, or -EINVAL: there is none, or it is the parent's. */
int fxi_stream_check(const struct fabrex_stream *stream);

/* ---- host.c, gpu.c ----------------------------------------------------- */

int fxi_stream_open_host(struct fabrex_stream **stream);
int fxi_stream_open_gpu(uint32_t kind, void *native,
			struct fabrex_stream **stream);
/* In the child of a fork; the second is for gpu.c. */
void fxi_streams_forked(void);
void fxi_gates_forked(void);

#endif
