// SPDX-License-Identifier: GPL-2.0-only
/*
 * Capture of streams into graphs, as far as it is in the way of others, as
 * cuda_capture.c has it. One at a time.
 */
#include <pthread.h>

#include "gpu.h"
#include "hip.h"
#include "hip_state.h"

enum { NONE, ACTIVE, INVALIDATED };	/* hipStreamCaptureStatus */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *captured;			/* NULL: none is */
static int mode;
static bool broken;
static __thread int own_mode;

static bool is_mode(int value)
{
	return value >= HIP_CAPTURE_GLOBAL && value <= HIP_CAPTURE_RELAXED;
}

API int hipThreadExchangeStreamCaptureMode(int *value)
{
	int old = own_mode;

	ENTER();
	if (!is_mode(*value))
		return hip_set(HIP_INVALID_VALUE);
	own_mode = *value;
	*value = old;
	return HIP_OK;
}

API int hipStreamBeginCapture(void *stream, int wanted)
{
	int ret = HIP_OK;

	ENTER();
	if (!is_mode(wanted))
		return hip_set(HIP_INVALID_VALUE);
	pthread_mutex_lock(&lock);
	if (!stream || captured) {
		ret = HIP_CAPTURE_UNSUPPORTED;
	} else {
		captured = stream;
		mode = wanted;
		broken = false;
	}
	pthread_mutex_unlock(&lock);
	return hip_set(ret);
}

API int hipStreamIsCapturing(void *stream, int *status)
{
	ENTER();
	pthread_mutex_lock(&lock);
	*status = !captured || captured != stream ? NONE :
		  broken ? INVALIDATED : ACTIVE;
	pthread_mutex_unlock(&lock);
	return HIP_OK;
}

API int hipStreamEndCapture(void *stream, void **graph)
{
	int ret = HIP_CAPTURE_INVALIDATED;

	ENTER();
	*graph = NULL;
	pthread_mutex_lock(&lock);
	if (captured == stream && !broken)
		ret = HIP_OK;
	if (captured == stream)
		captured = NULL;
	pthread_mutex_unlock(&lock);
	return hip_set(ret);
}

int hip_uncaptured(void)
{
	int ret = HIP_OK;

	pthread_mutex_lock(&lock);
	if (captured && mode == HIP_CAPTURE_GLOBAL &&
	    own_mode == HIP_CAPTURE_GLOBAL) {
		broken = true;
		ret = HIP_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}
