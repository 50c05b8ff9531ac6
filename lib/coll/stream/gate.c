// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams as objects, and their gates. A gate may be released before it has
 * opened, when its communicator fails or is destroyed, and gates of different
 * communicators in any order: the stream goes on in the order of the numbers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "coll/stream/stream.h"

struct gate {
	struct gate *next;
	struct fabrex_stream *stream;
	uint64_t number;
	uint32_t left;		/* operations that have not ended */
};

/* In all streams of GPUs: atomic; grows under the lock. */
static pthread_mutex_t gpu_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t gpu_gates;

/* ---- streams ----------------------------------------------------------- */

int fxi_stream_new(const struct stream_kind *kind, struct fabrex_stream **out)
{
	struct fabrex_stream *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s)
		return fxi_error_static(ENOMEM, "stream: out of memory");
	s->kind = kind;
	s->pid = getpid();
	s->users = 1;
	s->writers = 1;
	s->started = &s->own[0];
	s->finished = &s->own[1];
	s->items_end = &s->items;
	pthread_mutex_init(&s->enqueuing, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->changed, &attr);
	pthread_condattr_destroy(&attr);
	*out = s;
	return 0;
}

void fxi_stream_get(struct fabrex_stream *s)
{
	__atomic_add_fetch(&s->users, 1, __ATOMIC_RELAXED);
}

void fxi_stream_put(struct fabrex_stream *s)
{
	if (__atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL))
		return;
	s->kind->close(s);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->enqueuing);
	free(s->error_text);
	free(s);
}

void fxi_stream_join(struct fabrex_stream *s)
{
	fxi_stream_get(s);
	__atomic_add_fetch(&s->writers, 1, __ATOMIC_RELAXED);
}

void fxi_stream_leave(struct fabrex_stream *s)
{
	if (!__atomic_sub_fetch(&s->writers, 1, __ATOMIC_ACQ_REL))
		s->kind->destroy(s);
	fxi_stream_put(s);
}

bool fxi_stream_is_idle(struct fabrex_stream *s)
{
	bool idle;

	pthread_mutex_lock(&s->lock);
	idle = !s->first && !s->items && !s->busy;
	pthread_mutex_unlock(&s->lock);
	return idle;
}

int fxi_stream_check(const struct fabrex_stream *s)
{
	if (!s)
		return fxi_error_static(EINVAL, "no stream is given; see fabrex_stream_create(3)");
	if (s->pid != getpid())
		return fxi_error_static(EINVAL, "stream: it was created by the parent process; create one after fork()");
	return 0;
}

int fxi_stream_error(struct fabrex_stream *s, bool forget)
{
	int ret;

	pthread_mutex_lock(&s->lock);
	ret = s->error;
	if (ret)
		fxi_error(-ret, "%s", s->error_text ? s->error_text :
			  "stream: an operation has failed");
	if (forget) {
		free(s->error_text);
		s->error_text = NULL;
		s->error = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return ret;
}

bool fxi_streams_freeze(void)
{
	pthread_mutex_lock(&gpu_lock);
	if (!__atomic_load_n(&gpu_gates, __ATOMIC_ACQUIRE))
		return true;
	pthread_mutex_unlock(&gpu_lock);
	return false;
}

void fxi_streams_release(void)
{
	pthread_mutex_unlock(&gpu_lock);
}

void fxi_gates_forked(void)
{
	pthread_mutex_init(&gpu_lock, NULL);
	gpu_gates = 0;
}

/* ---- gates ------------------------------------------------------------- */

static void add(struct fabrex_stream *s, struct gate *gate)
{
	if (s->last)
		s->last->next = gate;
	else
		s->first = gate;
	s->last = gate;
}

/* Those that no operation is left in, up to the first that has some. */
static struct gate *take_done(struct fabrex_stream *s)
{
	struct gate *done = s->first, **end = &done;

	while (s->first && !s->first->left) {
		end = &s->first->next;
		s->first = s->first->next;
	}
	*end = NULL;
	if (!s->first)
		s->last = NULL;
	__atomic_store_n(s->finished, s->first ? s->first->number - 1 :
						 s->newest, __ATOMIC_RELEASE);
	return done;
}

static void free_all(struct gate *gate)
{
	struct gate *next;

	for (; gate; gate = next) {
		next = gate->next;
		if (gate->stream->gpu)
			__atomic_sub_fetch(&gpu_gates, 1, __ATOMIC_RELEASE);
		fxi_stream_put(gate->stream);
		free(gate);
	}
}

/*
 * The gate is there before the stream can reach it. If only its hold cannot be
 * enqueued, the stream passes the mark, and nothing else has happened.
 */
static int enqueue(struct fabrex_stream *s, struct gate *gate)
{
	struct gate *done;
	int ret;

	pthread_mutex_lock(&s->lock);
	gate->number = ++s->newest;
	add(s, gate);
	pthread_mutex_unlock(&s->lock);
	fxi_stream_get(s);
	ret = s->kind->mark(s, gate->number);
	if (!ret)
		ret = s->kind->hold(s, gate->number);
	if (!ret)
		return 0;
	pthread_mutex_lock(&s->lock);
	gate->left = 0;
	done = take_done(s);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	free_all(done);
	return ret;
}

int fxi_gate_make(struct fabrex_stream *s, uint32_t n, struct gate **out)
{
	struct gate *gate;
	int ret;

	gate = calloc(1, sizeof(*gate));
	if (!gate)
		return fxi_error_static(ENOMEM, "stream: out of memory");
	gate->stream = s;
	gate->left = n;
	if (s->gpu) {
		pthread_mutex_lock(&gpu_lock);
		gpu_gates++;
		pthread_mutex_unlock(&gpu_lock);
	}
	pthread_mutex_lock(&s->enqueuing);
	ret = enqueue(s, gate);
	pthread_mutex_unlock(&s->enqueuing);
	if (!ret)
		*out = gate;
	return ret;
}

bool fxi_gate_is_open(const struct gate *gate)
{
	return __atomic_load_n(gate->stream->started, __ATOMIC_ACQUIRE) >=
	       gate->number;
}

static void keep_error(struct fabrex_stream *s, int result)
{
	if (!result || s->error)
		return;
	s->error = result;
	s->error_text = strdup(fabrex_strerror_last());
}

void fxi_gate_leave(struct gate *gate, int result)
{
	struct fabrex_stream *s = gate->stream;
	struct gate *done = NULL;

	pthread_mutex_lock(&s->lock);
	keep_error(s, result);
	if (!--gate->left) {
		done = take_done(s);
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	free_all(done);
}
