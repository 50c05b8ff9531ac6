/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the test HIP run time share.
 */
#ifndef RUNTIME_HIP_STATE_H
#define RUNTIME_HIP_STATE_H

/* Error that a function is to return at once, or 0; brings the run time up. */
int hip_enter(const char *function);
/* Remembers the thread's last error; returns it. */
int hip_set(int error);
/* The thread's current device, as the owner of streams. */
const void *hip_owner(void);
/*
 * hip_capture.c: while a stream is captured, functions that might wait are not
 * for threads that have not asked for it. HIP_OK if there is none.
 */
int hip_uncaptured(void);

#define ENTER() \
	do { \
		int enter_ = hip_enter(__func__); \
		if (enter_) \
			return hip_set(enter_); \
	} while (0)
#define NEED_NO_CAPTURE() \
	do { \
		int captured_ = hip_uncaptured(); \
		if (captured_) \
			return hip_set(captured_); \
	} while (0)

#endif
