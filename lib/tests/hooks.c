// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of the C library as the library finds them in the test program.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks.h"
#include "test.h"

/* ---- mutexes ----------------------------------------------------------- */

static __thread struct {
	pthread_mutex_t *mutex;
	unsigned int n;
	void (*run)(void *arg);
	void *arg;
} at_lock;

static int (*real_lock)(pthread_mutex_t *mutex);

static void find_lock(void)
{
	int (*found)(pthread_mutex_t *mutex);

	*(void **)&found = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	__atomic_store_n(&real_lock, found, __ATOMIC_RELEASE);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int (*lock)(pthread_mutex_t *) = __atomic_load_n(&real_lock,
							 __ATOMIC_ACQUIRE);

	if (!lock) {
		find_lock();
		lock = real_lock;
	}
	if (mutex == at_lock.mutex && !--at_lock.n) {
		at_lock.mutex = NULL;
		at_lock.run(at_lock.arg);
	}
	return lock(mutex);
}

void hook_lock(pthread_mutex_t *mutex, unsigned int n, void (*run)(void *arg),
	       void *arg)
{
	at_lock.mutex = mutex;
	at_lock.n = n;
	at_lock.run = run;
	at_lock.arg = arg;
}

bool hook_lock_end(void)
{
	bool ran = !at_lock.mutex;

	at_lock.mutex = NULL;
	return ran;
}

/* ---- messages ---------------------------------------------------------- */

static struct {
	unsigned int n;
	int error;
	bool (*which)(const void *message, size_t length);
} at_send;

static bool refused(const struct msghdr *m)
{
	unsigned int left = __atomic_load_n(&at_send.n, __ATOMIC_ACQUIRE);

	if (!left || m->msg_iovlen != 1 ||
	    !at_send.which(m->msg_iov->iov_base, m->msg_iov->iov_len))
		return false;
	while (left && !__atomic_compare_exchange_n(&at_send.n, &left,
						    left - 1, false,
						    __ATOMIC_ACQ_REL,
						    __ATOMIC_ACQUIRE))
		;
	return left;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (refused(m)) {
		errno = at_send.error;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, m, flags);
}

void hook_send(unsigned int n, int error,
	       bool (*which)(const void *message, size_t length))
{
	at_send.error = error;
	at_send.which = which;
	__atomic_store_n(&at_send.n, n, __ATOMIC_RELEASE);
}

unsigned int hook_send_left(void)
{
	return __atomic_load_n(&at_send.n, __ATOMIC_ACQUIRE);
}
