// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What somebody waits on who reads a queue or a counter: one descriptor, an
 * epoll(7) set, that is readable when there may be something. Used by eq.c,
 * member.c, cq.c and cntr.c; struct wait is protected by their lock, apart from
 * the sleep itself.
 */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "provider.h"

static int add(struct wait *wait, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };

	return epoll_ctl(wait->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_all(struct wait *wait)
{
	int ret;

	wait->epoll = epoll_create1(EPOLL_CLOEXEC);
	wait->own = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	wait->timer = timerfd_create(CLOCK_MONOTONIC,
				     TFD_CLOEXEC | TFD_NONBLOCK);
	if (wait->epoll < 0 || wait->own < 0 || wait->timer < 0)
		ret = -errno;
	else
		ret = add(wait, wait->own);
	if (!ret)
		ret = add(wait, wait->timer);
	if (!ret)
		return 0;
	INFO(FI_LOG_CORE, "no descriptors to wait on: %s (ulimit -n)\n",
	     fi_strerror(-ret));
	wait_close(wait);
	return ret;
}

int wait_open(struct wait *wait, enum fi_wait_obj object)
{
	wait->object = object;
	wait->epoll = wait->own = wait->timer = -1;
	wait->watched = wait->signaled = false;
	switch (object) {
	case FI_WAIT_NONE:
	case FI_WAIT_YIELD:
		return 0;
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
	case FI_WAIT_POLLFD:
		return open_all(wait);
	case FI_WAIT_SET:
	case FI_WAIT_MUTEX_COND:
		INFO(FI_LOG_CORE,
		     "wait_obj %d is not offered: use FI_WAIT_FD, FI_WAIT_UNSPEC or FI_WAIT_YIELD\n",
		     (int)object);
		return -FI_ENOSYS;
	}
	INFO(FI_LOG_CORE, "wait_obj %d does not exist\n", (int)object);
	return -FI_EINVAL;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void wait_close(struct wait *wait)
{
	close_one(&wait->epoll);
	close_one(&wait->own);
	close_one(&wait->timer);
}

int wait_add(struct wait *wait, int fd)
{
	return wait_sleeps(wait) ? add(wait, fd) : 0;
}

void wait_remove(struct wait *wait, int fd)
{
	if (wait_sleeps(wait))
		epoll_ctl(wait->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void wait_wake(struct wait *wait)
{
	const uint64_t one = 1;

	wait->watched = false;
	if (wait->signaled || wait->own < 0)
		return;
	wait->signaled = write(wait->own, &one, sizeof(one)) == sizeof(one);
}

void wait_clear(struct wait *wait)
{
	uint64_t n;

	if (wait->signaled)
		wait->signaled = read(wait->own, &n, sizeof(n)) != sizeof(n);
}

void wait_until(struct wait *wait, uint64_t due_ns)
{
	struct itimerspec spec = {
		.it_value = {
			.tv_sec = (time_t)(due_ns / 1000000000),
			.tv_nsec = (long)(due_ns % 1000000000),
		},
	};

	if (!wait_sleeps(wait) || wait->due_ns == due_ns)
		return;
	wait->due_ns = due_ns;
	timerfd_settime(wait->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t wait_deadline(int timeout_ms)
{
	if (timeout_ms < 0)
		return UINT64_MAX;
	return now_ns() + (uint64_t)timeout_ms * 1000000;
}

int wait_left(uint64_t deadline)
{
	uint64_t now;

	if (deadline == UINT64_MAX)
		return -1;
	now = now_ns();
	return now >= deadline ? 0 : (int)((deadline - now + 999999) / 1000000);
}

int wait_sleep(struct wait *wait, int timeout_ms)
{
	struct epoll_event event;

	if (wait->object == FI_WAIT_YIELD) {
		sched_yield();
		return 0;
	}
	return epoll_wait(wait->epoll, &event, 1, timeout_ms) < 0 ? -errno : 0;
}

static int get_pollfd(const struct wait *wait, struct fi_wait_pollfd *out)
{
	size_t room = out->nfds;

	out->nfds = 1;
	out->change_index = 1;
	if (!room || !out->fd)
		return -FI_ETOOSMALL;
	out->fd[0].fd = wait->epoll;
	out->fd[0].events = POLLIN;
	return 0;
}

int wait_control(struct wait *wait, int command, void *arg)
{
	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = wait->object;
		return 0;
	}
	if (wait->object == FI_WAIT_POLLFD)
		return get_pollfd(wait, arg);
	if (!wait_sleeps(wait))
		return -FI_ENODATA;
	*(int *)arg = wait->epoll;
	return 0;
}
