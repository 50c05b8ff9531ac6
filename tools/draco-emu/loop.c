// SPDX-License-Identifier: GPL-2.0-only
/*
 * The control side's event loop on epoll. Handles live until the end of the
 * batch of events they were removed in, so callbacks may remove any of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

struct loop_fd {
	int fd;
	loop_fd_fn fn;
	void *arg;
	bool gone;
	struct loop_fd *next;		/* in the list of removed ones */
};

struct work {
	void (*fn)(void *arg);
	void *arg;
	struct work *next;
};

static struct {
	int epfd, wakefd;
	struct loop_fd *wake;
	pthread_mutex_t lock;		/* head, tail */
	struct work *head, **tail;
	struct loop_timer *timers;	/* by due_ms */
	struct loop_fd *removed;
	_Atomic bool quit;
} loop = {
	.epfd = -1,
	.wakefd = -1,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.tail = &loop.head,
};

uint64_t loop_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t loop_now_ms(void)
{
	return loop_now_ns() / 1000000u;
}

static void wake(void)
{
	uint64_t one = 1;

	if (write(loop.wakefd, &one, sizeof(one)) < 0)
		return;			/* full: it is awake anyway */
}

static void drain(void *arg, uint32_t events)
{
	uint64_t n;

	(void)arg;
	(void)events;
	if (read(loop.wakefd, &n, sizeof(n)) < 0)
		return;
}

int loop_init(void)
{
	loop.epfd = epoll_create1(EPOLL_CLOEXEC);
	if (loop.epfd < 0)
		return -errno;
	loop.wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop.wakefd < 0)
		return -errno;
	loop.quit = false;
	loop.wake = loop_fd_add(loop.wakefd, EPOLLIN, drain, NULL);
	return loop.wake ? 0 : -ENOMEM;
}

struct loop_fd *loop_fd_add(int fd, uint32_t events, loop_fd_fn fn, void *arg)
{
	struct loop_fd *h = calloc(1, sizeof(*h));
	struct epoll_event ev = { .events = events, .data.ptr = h };

	if (!h)
		return NULL;
	h->fd = fd;
	h->fn = fn;
	h->arg = arg;
	if (epoll_ctl(loop.epfd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		free(h);
		return NULL;
	}
	return h;
}

void loop_fd_events(struct loop_fd *h, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = h };

	epoll_ctl(loop.epfd, EPOLL_CTL_MOD, h->fd, &ev);
}

void loop_fd_del(struct loop_fd *h)
{
	if (!h || h->gone)
		return;
	epoll_ctl(loop.epfd, EPOLL_CTL_DEL, h->fd, NULL);
	h->gone = true;
	h->next = loop.removed;
	loop.removed = h;
}

void loop_timer_start(struct loop_timer *t, uint64_t ms,
		      void (*fn)(void *arg), void *arg)
{
	struct loop_timer **p;

	loop_timer_stop(t);
	t->fn = fn;
	t->arg = arg;
	t->due_ms = loop_now_ms() + ms;
	for (p = &loop.timers; *p && (*p)->due_ms <= t->due_ms; p = &(*p)->next)
		;
	t->next = *p;
	t->active = true;
	*p = t;
}

void loop_timer_stop(struct loop_timer *t)
{
	struct loop_timer **p;

	if (!t->active)
		return;
	for (p = &loop.timers; *p; p = &(*p)->next) {
		if (*p != t)
			continue;
		*p = t->next;
		break;
	}
	t->active = false;
}

static int run_timers(void)
{
	while (loop.timers) {
		struct loop_timer *t = loop.timers;
		uint64_t now = loop_now_ms();

		if (t->due_ms > now)
			return t->due_ms - now > 60000 ? 60000 :
			       (int)(t->due_ms - now);
		loop.timers = t->next;
		t->active = false;
		t->fn(t->arg);
	}
	return -1;
}

void loop_defer(void (*fn)(void *arg), void *arg)
{
	struct work *w = malloc(sizeof(*w));

	if (!w)
		abort();
	w->fn = fn;
	w->arg = arg;
	w->next = NULL;
	pthread_mutex_lock(&loop.lock);
	*loop.tail = w;
	loop.tail = &w->next;
	pthread_mutex_unlock(&loop.lock);
	wake();
}

static struct work *take_work(void)
{
	struct work *w;

	pthread_mutex_lock(&loop.lock);
	w = loop.head;
	if (w) {
		loop.head = w->next;
		if (!loop.head)
			loop.tail = &loop.head;
	}
	pthread_mutex_unlock(&loop.lock);
	return w;
}

static void run_work(void)
{
	struct work *w;

	while (!loop.quit && (w = take_work())) {
		w->fn(w->arg);
		free(w);
	}
}

static void free_removed(void)
{
	struct loop_fd *h;

	while ((h = loop.removed)) {
		loop.removed = h->next;
		free(h);
	}
}

void loop_run(void)
{
	struct epoll_event ev[32];
	int i, n, timeout;

	while (!loop.quit) {
		run_work();
		timeout = run_timers();
		if (loop.quit)
			break;
		n = epoll_wait(loop.epfd, ev, 32, timeout);
		for (i = 0; i < n; i++) {
			struct loop_fd *h = ev[i].data.ptr;

			if (!h->gone)
				h->fn(h->arg, ev[i].events);
		}
		free_removed();
	}
	loop.quit = false;
}

void loop_quit(void)
{
	loop.quit = true;
	wake();
}

void loop_free(void)
{
	struct work *w;

	while ((w = take_work()))
		free(w);
	loop_fd_del(loop.wake);
	loop.wake = NULL;
	free_removed();
	if (loop.wakefd >= 0)
		close(loop.wakefd);
	if (loop.epfd >= 0)
		close(loop.epfd);
	loop.wakefd = loop.epfd = -1;
}
