// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streams, events and kernels of the test libcuda. Streams and what is made of
 * a module are used in the context that they were made in, as in the real one.
 */
#include <stdint.h>
#include <stdlib.h>

#include "cuda.h"
#include "cuda_state.h"
#include "gpu.h"

struct CUstream_st {
	struct gpu_stream *stream;
	CUcontext context;
	bool blocking;
};

struct CUevent_st {
	struct gpu_event *event;
	CUcontext context;
};

struct CUmod_st {
	struct gpu_module *module;
	CUcontext context;
};

struct CUfunc_st {
	const struct gpu_kernel *kernel;
	CUcontext context;
};

#define NEED_SAME_CONTEXT(thing) \
	do { \
		NEED_CONTEXT(); \
		if ((thing) && (thing)->context != cuda_current()) \
			return CUDA_ERROR_INVALID_CONTEXT; \
	} while (0)

static CUresult ended(bool good)
{
	return cuda_ended(cuda_current(), good);
}

static CUstream own_stream(CUstream stream)
{
	return stream == CU_STREAM_LEGACY ? NULL : stream;
}

/* NULL: the legacy stream of the current context. */
static struct gpu_stream *stream_of(CUstream stream)
{
	return own_stream(stream) ? stream->stream :
				    gpu_legacy(GPU_NVIDIA, cuda_current());
}

static void *make(size_t size)
{
	void *thing = calloc(1, size);

	if (!thing)
		abort();
	return thing;
}

API CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	ENTER();
	NEED_CONTEXT();
	if (flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	CHANGES();
	*stream = make(sizeof(**stream));
	(*stream)->stream = gpu_stream_new(GPU_NVIDIA, cuda_current(),
					   flags ? GPU_NON_BLOCKING :
						   GPU_BLOCKING);
	(*stream)->context = cuda_current();
	(*stream)->blocking = !flags;
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	ENTER();
	NEED_CONTEXT();
	*least = 0;
	*greatest = -5;
	return CUDA_SUCCESS;
}

/* What is not in the range is not refused. */
API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags,
					int priority)
{
	(void)priority;
	return cuStreamCreate(stream, flags);
}

bool cuda_is_blocking(CUstream stream)
{
	return stream->blocking;
}

API CUresult cuStreamDestroy(CUstream stream)
{
	ENTER();
	NEED_SAME_CONTEXT(own_stream(stream));
	gpu_stream_free(stream->stream);
	free(stream);
	return CUDA_SUCCESS;
}

API CUresult cuStreamSynchronize(CUstream stream)
{
	CUresult ret;

	ENTER();
	NEED_SAME_CONTEXT(own_stream(stream));
	ret = cuda_uncaptured();
	if (!ret && !own_stream(stream))
		ret = cuda_legacy_uncaptured();
	if (ret)
		return ret;
	return ended(gpu_stream_wait(stream_of(stream)));
}

API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size,
			   CUstream stream)
{
	ENTER();
	NEED_SAME_CONTEXT(own_stream(stream));
	/* To the host's memory that is not pinned: as that function does. */
	if (!gpu_find(GPU_NVIDIA, (void *)(uintptr_t)to))
		return cuMemcpyDtoHAsync((void *)(uintptr_t)to, from, size,
					 stream);
	return gpu_stream_copy(stream_of(stream), (void *)(uintptr_t)to,
			       (void *)(uintptr_t)from, size) ?
	       CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What the run time has not pinned it takes a copy of ... */
API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size,
			       CUstream stream)
{
	void *target = (void *)(uintptr_t)to;

	ENTER();
	NEED_SAME_CONTEXT(own_stream(stream));
	return (gpu_find(GPU_NVIDIA, from) ? gpu_stream_copy :
					     gpu_stream_copy_staged)
	       (stream_of(stream), target, from, size) ?
	       CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ... and waits until it is there. */
API CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size,
			       CUstream stream)
{
	struct gpu_stream *s;
	bool good;

	ENTER();
	NEED_SAME_CONTEXT(own_stream(stream));
	s = stream_of(stream);
	if (gpu_find(GPU_NVIDIA, to))
		return gpu_stream_copy(s, to, (void *)(uintptr_t)from, size) ?
		       CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	cuda_copy_begin(cuda_current(), size);
	good = gpu_stream_copy(s, to, (void *)(uintptr_t)from, size) &&
	       gpu_stream_wait(s);
	cuda_copy_end(cuda_current(), size);
	return ended(good);
}

/* Called by the run time, as a rule by a thread of its own. */
API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *arg)
{
	ENTER();
	NEED_SAME_CONTEXT(own_stream(stream));
	CHANGES();
	return gpu_stream_call(stream_of(stream), function, arg) ?
	       CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

#ifndef OLD
/* The host's memory that is mapped has one address. */
static uint64_t *word_of(CUdeviceptr address)
{
	return address % 8 ? NULL :
			     gpu_view(GPU_NVIDIA, (void *)(uintptr_t)address);
}

API CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address,
				  uint64_t value, unsigned int flags)
{
	uint64_t *word = word_of(address);

	ENTER();
	NEED_SAME_CONTEXT(own_stream(stream));
	if (!word || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return gpu_stream_write(stream_of(stream), word, value) ?
	       CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* As GPUs do that cannot flush, it refuses to, and has only one comparison. */
API CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address,
				 uint64_t value, unsigned int flags)
{
	uint64_t *word = word_of(address);

	ENTER();
	NEED_SAME_CONTEXT(own_stream(stream));
	if (flags & CU_STREAM_WAIT_VALUE_FLUSH)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!word || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return gpu_stream_hold(stream_of(stream), word, value) ?
	       CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
#endif

/* ---- events ------------------------------------------------------------ */

/* Without a clock. */
API CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	ENTER();
	NEED_CONTEXT();
	if (flags != CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_VALUE;
	CHANGES();
	*event = make(sizeof(**event));
	(*event)->event = gpu_event_new();
	(*event)->context = cuda_current();
	return (*event)->event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuEventDestroy(CUevent event)
{
	ENTER();
	cuda_await_copies(event->context);
	gpu_event_free(event->event);
	free(event);
	return CUDA_SUCCESS;
}

API CUresult cuEventRecord(CUevent event, CUstream stream)
{
	ENTER();
	NEED_SAME_CONTEXT(event);
	NEED_SAME_CONTEXT(own_stream(stream));
	return gpu_event_record(event->event, stream_of(stream)) ?
	       CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuEventQuery(CUevent event)
{
	enum gpu_reached reached;
	CUresult ret;

	ENTER();
	ret = cuda_uncaptured();
	if (ret)
		return ret;
	reached = gpu_event_query(event->event);
	if (reached == GPU_NOT_YET)
		return CUDA_ERROR_NOT_READY;
	return cuda_ended(event->context, reached == GPU_REACHED);
}

/* The event may be of another context. */
API CUresult cuStreamWaitEvent(CUstream stream, CUevent event,
			       unsigned int flags)
{
	ENTER();
	NEED_SAME_CONTEXT(own_stream(stream));
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return gpu_event_hold(event->event, stream_of(stream)) ?
	       CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- kernels ----------------------------------------------------------- */

/* Only code for what the device says it is, or from which that is made. */
API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	static const char *const options[] = {
		"--gpu-architecture=sm_90", "--gpu-architecture=compute_80",
		NULL,
	};
	struct gpu_module *loaded;

	CUresult ret;

	ENTER();
	NEED_CONTEXT();
	ret = cuda_drain(cuda_current());
	if (ret)
		return ret;
	loaded = gpu_module_load(image, options);
	if (!loaded)
		return CUDA_ERROR_INVALID_IMAGE;
	*module = make(sizeof(**module));
	(*module)->module = loaded;
	(*module)->context = cuda_current();
	return CUDA_SUCCESS;
}

API CUresult cuModuleUnload(CUmodule module)
{
	ENTER();
	NEED_SAME_CONTEXT(module);
	gpu_module_unload(module->module);
	free(module);
	return CUDA_SUCCESS;
}

API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
				 const char *name)
{
	const struct gpu_kernel *kernel;

	ENTER();
	NEED_SAME_CONTEXT(module);
	CHANGES();
	kernel = gpu_module_kernel(module->module, name);
	if (!kernel)
		return CUDA_ERROR_NOT_FOUND;
	*function = make(sizeof(**function));
	(*function)->kernel = kernel;
	(*function)->context = module->context;
	return CUDA_SUCCESS;
}

API CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x,
			    unsigned int grid_y, unsigned int grid_z,
			    unsigned int block_x, unsigned int block_y,
			    unsigned int block_z, unsigned int shared,
			    CUstream stream, void **parameters, void **extra)
{
	const unsigned int grid[3] = { grid_x, grid_y, grid_z };
	const unsigned int block[3] = { block_x, block_y, block_z };

	ENTER();
	NEED_SAME_CONTEXT(function);
	NEED_SAME_CONTEXT(own_stream(stream));
	if (!grid_x || !block_x || block_x * block_y * block_z > 1024 ||
	    shared || extra)
		return CUDA_ERROR_INVALID_VALUE;
	return gpu_stream_launch(stream_of(stream), function->kernel, grid,
				 block, parameters) ?
	       CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
