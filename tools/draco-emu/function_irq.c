// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts of a function: eventfds that the client has given us. Called from
 * the function's thread and, to raise them, from any other.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "function_state.h"
#include "log.h"

/*
 * O_NONBLOCK belongs to the open file, which the client has too: it may have
 * cleared it, and filled the counter so that we would wait. Hence again before
 * each write; who is quick enough to do it in between meets function_unstick().
 */
static bool write_eventfd(struct function *f, int fd)
{
	uint64_t one = 1;
	bool ok;

	atomic_fetch_add(&f->signals, 1);
	atomic_store(&f->signalling, fd);
	ok = fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) == 0 &&
	     write(fd, &one, sizeof(one)) == sizeof(one);
	atomic_store(&f->signalling, -1);
	return ok;
}

static void signal_vector(struct function *f, unsigned int v)
{
	if (f->irq_fd[v] < 0) {
		f->pending |= 1ull << v;
		return;
	}
	f->pending &= ~(1ull << v);
	if (write_eventfd(f, f->irq_fd[v]))
		atomic_fetch_add_explicit(&f->interrupts, 1,
					  memory_order_relaxed);
}

/*
 * Whoever writes holds irq_lock, so the descriptor stays what it is. A writer
 * may just not have got a processor; it waits only if the counter is full.
 */
bool function_unstick(struct function *f)
{
	uint64_t n = atomic_load(&f->signals), count;
	int fd = atomic_load(&f->signalling);
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	bool stuck = fd >= 0 && n == f->signals_seen &&
		     poll(&room, 1, 0) == 0;

	f->signals_seen = n;
	if (!stuck)
		return false;
	log_error("%s: client makes its interrupts block us; closing it",
		  f->name);
	if (read(fd, &count, sizeof(count)) < 0)
		log_debug("%s: it came free by itself", f->name);
	pthread_mutex_lock(&f->client_lock);
	if (f->client_fd >= 0)
		shutdown(f->client_fd, SHUT_RDWR);
	pthread_mutex_unlock(&f->client_lock);
	return true;
}

void function_raise(struct function *f, unsigned int vector)
{
	if (vector >= f->desc.msix_vectors || atomic_load(&f->dead))
		return;
	pthread_mutex_lock(&f->irq_lock);
	signal_vector(f, vector);
	pthread_mutex_unlock(&f->irq_lock);
}

uint64_t function_interrupts(struct function *f)
{
	return atomic_load_explicit(&f->interrupts, memory_order_relaxed);
}

/* A pipe or a file could block us for good. */
static int check_eventfd(int fd)
{
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (strcmp(target, "anon_inode:[eventfd]"))
		return -EBADF;
	if (fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int function_set_irq(void *arg, unsigned int vector, int fd)
{
	struct function *f = arg;
	int old, ret = fd >= 0 ? check_eventfd(fd) : 0;

	if (ret)
		return ret;
	pthread_mutex_lock(&f->irq_lock);
	old = f->irq_fd[vector];
	f->irq_fd[vector] = fd;
	if (fd >= 0 && (f->pending & 1ull << vector))
		signal_vector(f, vector);
	pthread_mutex_unlock(&f->irq_lock);
	if (old >= 0)
		close(old);
	return 0;
}

void function_drop_irqs(struct function *f)
{
	unsigned int i;

	for (i = 0; i < FUNCTION_MSIX_MAX; i++)
		function_set_irq(f, i, -1);
	pthread_mutex_lock(&f->irq_lock);
	f->pending = 0;
	pthread_mutex_unlock(&f->irq_lock);
}
