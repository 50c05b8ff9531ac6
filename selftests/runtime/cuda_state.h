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

/*
 * A thread that copies to memory of the host that is not pinned waits in the
 * call. Until it returns, functions that make or destroy something in the context
 * wait for it: so does the real one (lib/tests/vendor/blocked.c), and does not
 * hold up others because of those. Copies of more than a little wait for each other.
 */
void cuda_copy_begin(CUcontext context, size_t size);
void cuda_copy_end(CUcontext context, size_t size);
void cuda_await_copies(CUcontext context);

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

/* Of those functions. */
#define CHANGES() cuda_await_copies(cuda_current())

#endif
