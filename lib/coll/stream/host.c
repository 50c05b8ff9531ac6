// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams of the host: a thread that takes one item after the other. It may
 * outlive fabrex_stream_destroy(), until it has none left.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/error.h"
#include "coll/stream/stream.h"
#include "coll/stream/waker.h"

struct stream_item {
	struct stream_item *next;
	void (*function)(void *arg);	/* NULL: a mark or a hold */
	void *arg;
	bool hold;
	uint64_t number;
};

/* With the lock, which is given up meanwhile. */
static void perform(struct fabrex_stream *s, const struct stream_item *item)
{
	if (item->hold) {
		while (*s->finished < item->number)
			pthread_cond_wait(&s->changed, &s->lock);
		return;
	}
	pthread_mutex_unlock(&s->lock);
	if (item->function) {
		item->function(item->arg);
	} else {
		__atomic_store_n(s->started, item->number, __ATOMIC_RELEASE);
		fxi_waker_wake();
	}
	pthread_mutex_lock(&s->lock);
}

static void *host_main(void *arg)
{
	struct fabrex_stream *s = arg;
	struct stream_item *item;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (!s->items && !s->ending)
			pthread_cond_wait(&s->changed, &s->lock);
		item = s->items;
		if (!item)
			break;
		s->items = item->next;
		if (!s->items)
			s->items_end = &s->items;
		s->busy = true;
		perform(s, item);
		s->busy = false;
		pthread_cond_broadcast(&s->changed);
		free(item);
	}
	pthread_mutex_unlock(&s->lock);
	fxi_stream_put(s);
	return NULL;
}

static int add(struct fabrex_stream *s, const struct stream_item *what)
{
	struct stream_item *item = malloc(sizeof(*item));

	if (!item)
		return fxi_error_static(ENOMEM, "stream: out of memory");
	*item = *what;
	pthread_mutex_lock(&s->lock);
	*s->items_end = item;
	s->items_end = &item->next;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int host_mark(struct fabrex_stream *s, uint64_t number)
{
	const struct stream_item item = { .number = number };

	return add(s, &item);
}

static int host_hold(struct fabrex_stream *s, uint64_t number)
{
	const struct stream_item item = { .number = number, .hold = true };

	return add(s, &item);
}

static int host_ready(struct fabrex_stream *s)
{
	(void)s;
	return 0;
}

static int host_call(struct fabrex_stream *s, void (*function)(void *arg),
		     void *arg)
{
	const struct stream_item item = { .function = function, .arg = arg };

	return add(s, &item);
}

static void host_destroy(struct fabrex_stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->ending = true;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void host_close(struct fabrex_stream *s)
{
	(void)s;
}

static const struct stream_kind host_kind = {
	.mark = host_mark,
	.hold = host_hold,
	.ready = host_ready,
	.call = host_call,
	.destroy = host_destroy,
	.close = host_close,
};

/* Signals of the application are not for this thread. */
static int start_thread(struct fabrex_stream *s)
{
	sigset_t all, old;
	pthread_t thread;
	int ret;

	fxi_stream_get(s);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, host_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret) {
		pthread_detach(thread);
		return 0;
	}
	fxi_stream_put(s);
	return fxi_error(ret, "stream: its thread cannot be started; is the limit of threads (ulimit -u) reached?");
}

int fxi_stream_open_host(struct fabrex_stream **out)
{
	struct fabrex_stream *s;
	int ret = fxi_stream_new(&host_kind, &s);

	if (ret)
		return ret;
	ret = start_thread(s);
	if (ret)
		fxi_stream_put(s);
	else
		*out = s;
	return ret;
}
