/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that are cancelled: a cancelled thread may end inside a system call
 * and leave its locks held. The rule for public functions is in fabrex(7). For
 * files in lib/ only.
 */
#ifndef LIB_CANCEL_H
#define LIB_CANCEL_H

#include <pthread.h>

/* Cheap, but not for what is executed most, which makes no system calls. */
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

/* A declaration: from here to the end of the block nothing is a cancellation
 * point.
 */
#define NO_CANCEL() \
	__attribute__((cleanup(cancel_leave), unused)) \
	const int no_cancel_ = cancel_off()

#endif
