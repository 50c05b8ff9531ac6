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
	return ended(gpu_stream_wait(stream));
}

API int hipMemcpyAsync(void *to, const void *from, size_t size, int kind,
		       void *stream)
{
	ENTER();
	if (kind < 0 || kind > COPY_DEFAULT)
		return hip_set(HIP_INVALID_VALUE);
	return gpu_stream_copy(stream, to, from, size) ?
	       HIP_OK : hip_set(HIP_OUT_OF_MEMORY);
}

API int hipLaunchHostFunc(void *stream, void (*function)(void *arg), void *arg)
{
	ENTER();
	return gpu_stream_call(stream, function, arg) ?
	       HIP_OK : hip_set(HIP_OUT_OF_MEMORY);
}

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
	return gpu_stream_launch(stream, function, grid, block, parameters) ?
	       HIP_OK : hip_set(HIP_OUT_OF_MEMORY);
}
