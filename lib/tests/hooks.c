// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of the C library as the library finds them in the test program.
 */
#include <dlfcn.h>

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
