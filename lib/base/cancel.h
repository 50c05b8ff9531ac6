/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cancellation of threads: a cancelled thread may end inside a system call and
 * leave locks held. fabrex(7) states the rule for public functions. For all of
 * lib/.
 */
#ifndef LIB_CANCEL_H
#define LIB_CANCEL_H

#include <pthread.h>

/* Cheap, but not for posting and polling, which make no system calls. */
static inline int cancel_off(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}

static inline void cancel_restore(int old)
{
	pthread_setcancelstate(old, NULL);
}

static inline void cancel_leave(const int *old)
{
	cancel_restore(*old);
}

/* A declaration: no cancellation point from here to the end of the block. */
#define NO_CANCEL() \
	__attribute__((cleanup(cancel_leave), unused)) \
	const int no_cancel_ = cancel_off()

#endif
