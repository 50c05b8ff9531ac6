// SPDX-License-Identifier: GPL-2.0-only
/*
 * Capture of streams into graphs, as far as it is in the way of others: what
 * threads may not do meanwhile fails, and the capture with it. One at a time.
 */
#include <pthread.h>

#include "cuda.h"
#include "cuda_state.h"
#include "gpu.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUstream captured;		/* NULL: none is */
static CUcontext context;
static CUstreamCaptureMode mode;
static bool blocking, broken;
static __thread CUstreamCaptureMode own_mode;

API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *value)
{
	CUstreamCaptureMode old = own_mode;

	ENTER();
	if ((unsigned int)*value > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	own_mode = *value;
	*value = old;
	return CUDA_SUCCESS;
}

API CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode wanted)
{
	CUresult ret = CUDA_SUCCESS;

	ENTER();
	NEED_CONTEXT();
	pthread_mutex_lock(&lock);
	if (!stream || captured) {
		ret = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	} else {
		captured = stream;
		context = cuda_current();
		mode = wanted;
		blocking = cuda_is_blocking(stream);
		broken = false;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

/* Asking for the legacy stream breaks nothing. */
API CUresult cuStreamIsCapturing(CUstream stream,
				 CUstreamCaptureStatus *status)
{
	CUresult ret = CUDA_SUCCESS;
	bool legacy = !stream || stream == CU_STREAM_LEGACY;

	ENTER();
	pthread_mutex_lock(&lock);
	*status = captured != stream || !captured ?
			CU_STREAM_CAPTURE_STATUS_NONE :
		  broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED :
			   CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (legacy && captured && blocking && context == cuda_current())
		ret = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	pthread_mutex_unlock(&lock);
	return ret;
}

API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	CUresult ret = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

	ENTER();
	*graph = NULL;
	pthread_mutex_lock(&lock);
	if (captured == stream && !broken)
		ret = CUDA_SUCCESS;
	if (captured == stream)
		captured = NULL;
	pthread_mutex_unlock(&lock);
	return ret;
}

CUresult cuda_uncaptured(void)
{
	CUresult ret = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (captured && mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	    own_mode == CU_STREAM_CAPTURE_MODE_GLOBAL) {
		broken = true;
		ret = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

CUresult cuda_legacy_uncaptured(void)
{
	CUresult ret = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (captured && blocking && context == cuda_current()) {
		broken = true;
		ret = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}
