/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Points in the library where a test gets in between: functions of the C
 * library that it calls, replaced in the test program. Only tests call it.
 */
#ifndef LIB_TESTS_HOOKS_H
#define LIB_TESTS_HOOKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Before this thread locks the mutex for the n-th time from now on, run that. */
void hook_lock(pthread_mutex_t *mutex, unsigned int n, void (*run)(void *arg),
	       void *arg);
/* Forget it; true: it has run. */
bool hook_lock_end(void);
/* The next n messages that this process sends, and which are so, fail. */
void hook_send(unsigned int n, int error,
	       bool (*which)(const void *message, size_t length));
unsigned int hook_send_left(void);

#endif
