// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streams, events and kernels of the test HIP run time.
 */
#include <stdint.h>

#include "gpu.h"
#include "hip.h"
#include "hip_state.h"

#define HIP_INVALID_IMAGE	200
#define HIP_NOT_FOUND		500
#define COPY_DEFAULT		4

static int ended(bool good)
{
	return good ? HIP_OK : hip_set(HIP_ILLEGAL_ADDRESS);
}

/* NULL: the legacy stream of the current device. */
static struct gpu_stream *stream_of(void *stream)
{
	return stream ? stream : gpu_legacy(GPU_AMD, hip_owner());
}

static int begun(bool good)
{
	return good ? HIP_OK : hip_set(HIP_OUT_OF_MEMORY);
}

static int made(void *thing, int error)
{
	return thing ? HIP_OK : hip_set(error);
}

API int hipStreamCreateWithFlags(void **stream, unsigned int flags)
{
	ENTER();
	if (flags > 1)
		return hip_set(HIP_INVALID_VALUE);
	*stream = gpu_stream_new(GPU_AMD, hip_owner(),
				 flags ? GPU_NON_BLOCKING : GPU_BLOCKING);
	return made(*stream, HIP_OUT_OF_MEMORY);
}

API int hipStreamDestroy(void *stream)
{
	ENTER();
	gpu_stream_free(stream);
	return HIP_OK;
}

API int hipStreamSynchronize(void *stream)
{
	ENTER();
	NEED_NO_CAPTURE();
	return ended(gpu_stream_wait(stream_of(stream)));
}

API int hipMemcpyAsync(void *to, const void *from, size_t size, int kind,
		       void *stream)
{
	ENTER();
	if (kind < 0 || kind > COPY_DEFAULT)
		return hip_set(HIP_INVALID_VALUE);
	return begun(gpu_stream_copy(stream_of(stream), to, from, size));
}

static bool is_on(const void *addr, int device)
{
	const struct gpu_memory *m = gpu_find(GPU_AMD, addr);

	return m && m->device == device;
}

API int hipMemcpyPeerAsync(void *to, int to_device, const void *from,
			   int from_device, size_t size, void *stream)
{
	ENTER();
	if (!is_on(to, to_device) || !is_on(from, from_device))
		return hip_set(HIP_INVALID_VALUE);
	return begun(gpu_stream_copy(stream_of(stream), to, from, size));
}

API int hipLaunchHostFunc(void *stream, void (*function)(void *arg), void *arg)
{
	ENTER();
	return begun(gpu_stream_call(stream_of(stream), function, arg));
}

#ifndef OLD
/* It waits only for memory that hipExtMallocWithFlags() has made for that. */
static uint64_t *word_of(void *ptr)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);

	return m && m->kind == GPU_PINNED && m->length == sizeof(uint64_t) ?
	       gpu_view(GPU_AMD, ptr) : NULL;
}

API int hipStreamWriteValue64(void *stream, void *ptr, uint64_t value,
			      unsigned int flags)
{
	uint64_t *word = word_of(ptr);

	ENTER();
	if (!word || flags)
		return hip_set(HIP_INVALID_VALUE);
	return begun(gpu_stream_write(stream_of(stream), word, value));
}

API int hipStreamWaitValue64(void *stream, void *ptr, uint64_t value,
			     unsigned int flags, uint64_t mask)
{
	uint64_t *word = word_of(ptr);

	ENTER();
	if (!word || flags || mask != UINT64_MAX)
		return hip_set(HIP_INVALID_VALUE);
	return begun(gpu_stream_hold(stream_of(stream), word, value));
}
#endif

/* ---- events ------------------------------------------------------------ */

API int hipEventCreateWithFlags(void **event, unsigned int flags)
{
	ENTER();
	if (flags != HIP_EVENT_NO_TIMING)
		return hip_set(HIP_INVALID_VALUE);
	*event = gpu_event_new();
	return made(*event, HIP_OUT_OF_MEMORY);
}

API int hipEventDestroy(void *event)
{
	ENTER();
	gpu_event_free(event);
	return HIP_OK;
}

API int hipEventRecord(void *event, void *stream)
{
	ENTER();
	return begun(gpu_event_record(event, stream_of(stream)));
}

/* Not ready is remembered as the thread's last error, too. */
API int hipEventQuery(void *event)
{
	ENTER();
	NEED_NO_CAPTURE();
	switch (gpu_event_query(event)) {
	case GPU_REACHED:
		return HIP_OK;
	case GPU_NOT_YET:
		return hip_set(HIP_NOT_READY);
	default:
		return hip_set(HIP_ILLEGAL_ADDRESS);
	}
}

API int hipStreamWaitEvent(void *stream, void *event, unsigned int flags)
{
	ENTER();
	if (flags)
		return hip_set(HIP_INVALID_VALUE);
	return begun(gpu_event_hold(event, stream_of(stream)));
}

/* ---- kernels ----------------------------------------------------------- */

API int hipModuleLoadData(void **module, const void *image)
{
	static const char *const options[] = { "", NULL };

	ENTER();
	*module = gpu_module_load(image, options);
	return made(*module, HIP_INVALID_IMAGE);
}

API int hipModuleUnload(void *module)
{
	ENTER();
	gpu_module_unload(module);
	return HIP_OK;
}

API int hipModuleGetFunction(void **function, void *module, const char *name)
{
	ENTER();
	*function = gpu_module_kernel(module, name);
	return made(*function, HIP_NOT_FOUND);
}

API int hipModuleLaunchKernel(void *function, unsigned int grid_x,
			      unsigned int grid_y, unsigned int grid_z,
			      unsigned int block_x, unsigned int block_y,
			      unsigned int block_z, unsigned int shared,
			      void *stream, void **parameters, void **extra)
{
	const unsigned int grid[3] = { grid_x, grid_y, grid_z };
	const unsigned int block[3] = { block_x, block_y, block_z };

	ENTER();
	if (!grid_x || !block_x || block_x * block_y * block_z > 1024 ||
	    shared || extra)
		return hip_set(HIP_INVALID_VALUE);
	return begun(gpu_stream_launch(stream_of(stream), function, grid,
				       block, parameters));
}
