/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What hip.c and hip_virtual.c of the test run time share.
 */
#ifndef RUNTIME_HIP_STATE_H
#define RUNTIME_HIP_STATE_H

/* Error that a function is to return at once, or 0; brings the run time up. */
int hip_enter(const char *function);
/* Remembers the thread's last error; returns it. */
int hip_set(int error);
/* The thread's current device, as the owner of streams. */
const void *hip_owner(void);

#define ENTER() \
	do { \
		int enter_ = hip_enter(__func__); \
		if (enter_) \
			return hip_set(enter_); \
	} while (0)

#endif
