/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What cuda.c and cuda_stream.c of the test run time share.
 */
#ifndef RUNTIME_CUDA_STATE_H
#define RUNTIME_CUDA_STATE_H

#include <stdbool.h>

#include "cuda.h"

/* Error that a function is to return at once, or 0. */
CUresult cuda_enter(const char *function);
/* The thread's context, or NULL. */
CUcontext cuda_current(void);
/* CUDA_SUCCESS if there is one; once a kernel has faulted in it, that error. */
CUresult cuda_usable(void);
/* What a wait has returned: false is that context's error from now on. */
CUresult cuda_ended(CUcontext context, bool good);
/*
 * Wait for all of the context's streams, as functions do that change its
 * memory or code.
 */
CUresult cuda_drain(CUcontext context);

bool cuda_is_blocking(CUstream stream);
/*
 * cuda_capture.c: while a stream is captured, functions that might wait are
 * not for threads that have not asked for it, and the legacy stream is for
 * nobody if the captured one is blocking.
 */
CUresult cuda_uncaptured(void);
CUresult cuda_legacy_uncaptured(void);

#define ENTER() \
	do { \
		CUresult enter_ = cuda_enter(__func__); \
		if (enter_) \
			return enter_; \
	} while (0)
#define NEED_CONTEXT() \
	do { \
		CUresult usable_ = cuda_usable(); \
		if (usable_) \
			return usable_; \
	} while (0)

#endif
