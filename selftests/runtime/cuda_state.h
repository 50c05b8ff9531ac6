/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What cuda.c and cuda_stream.c of the test run time share.
 */
#ifndef RUNTIME_CUDA_STATE_H
#define RUNTIME_CUDA_STATE_H

#include "cuda.h"

/* Error that a function is to return at once, or 0. */
CUresult cuda_enter(const char *function);
/* The thread's context, or NULL. */
CUcontext cuda_current(void);

#define ENTER() \
	do { \
		CUresult enter_ = cuda_enter(__func__); \
		if (enter_) \
			return enter_; \
	} while (0)
#define NEED_CONTEXT() \
	do { \
		if (!cuda_current()) \
			return CUDA_ERROR_INVALID_CONTEXT; \
	} while (0)

#endif
