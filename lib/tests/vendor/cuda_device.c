// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compiled only, and only with CUDA_INCLUDE=DIR of a CUDA toolkit: what
 * lib/coll/device declares by itself is what NVIDIA's headers declare.
 */
#include <stddef.h>
#include <cuda.h>
#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
#endif

#include "coll/device/vendor.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(GPU_OK, CUDA_SUCCESS);
SAME(GPU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(GPU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(GPU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(GPU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(GPU_EVENT_NO_TIMES, CU_EVENT_DISABLE_TIMING);
SAME(GPU_OPEN_PEER_ACCESS, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(76, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

_Static_assert(sizeof(CUdeviceptr) == sizeof(void *) &&
	       sizeof(CUstream) == sizeof(void *) &&
	       sizeof(CUmodule) == sizeof(void *) &&
	       sizeof(CUfunction) == sizeof(void *) &&
	       sizeof(CUevent) == sizeof(void *) &&
	       sizeof(struct gpu_ipc) == sizeof(CUipcMemHandle), "sizes");

struct theirs {
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*free)(CUdeviceptr);
	CUresult (*stream_create)(CUstream *, unsigned int);
	CUresult (*stream_destroy)(CUstream);
	CUresult (*stream_wait)(CUstream);
	CUresult (*module_load)(CUmodule *, const void *);
	CUresult (*module_unload)(CUmodule);
	CUresult (*module_function)(CUfunction *, CUmodule, const char *);
	CUresult (*launch)(CUfunction, unsigned int, unsigned int,
			   unsigned int, unsigned int, unsigned int,
			   unsigned int, unsigned int, CUstream, void **,
			   void **);
	CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
};

extern const struct theirs cuda_device_functions;
const struct theirs cuda_device_functions = {
	cuMemAlloc, cuMemFree, cuStreamCreate, cuStreamDestroy,
	cuStreamSynchronize, cuModuleLoadData, cuModuleUnload, cuModuleGetFunction, cuLaunchKernel, cuMemcpyAsync,
};

struct their_share {
	CUresult (*handle)(CUipcMemHandle *, CUdeviceptr);
	CUresult (*open)(CUdeviceptr *, CUipcMemHandle, unsigned int);
	CUresult (*close)(CUdeviceptr);
	CUresult (*can_access)(int *, CUdevice, CUdevice);
	CUresult (*by_address)(CUdevice *, const char *);
	CUresult (*event_create)(CUevent *, unsigned int);
	CUresult (*event_destroy)(CUevent);
	CUresult (*event_record)(CUevent, CUstream);
	CUresult (*event_query)(CUevent);
};
_Static_assert(sizeof(struct their_share) == sizeof(struct gpu_share_table),
	       "a function for each");

extern const struct their_share cuda_share_functions;
const struct their_share cuda_share_functions = {
	cuIpcGetMemHandle, cuIpcOpenMemHandle, cuIpcCloseMemHandle,
	cuDeviceCanAccessPeer, cuDeviceGetByPCIBusId, cuEventCreate,
	cuEventDestroy, cuEventRecord, cuEventQuery,
};

/* The names that are looked up are those that the header's macros make. */
#define STRING_(x)	#x
#define STRING(x)	STRING_(x)
_Static_assert(sizeof(STRING(cuMemAlloc)) == sizeof("cuMemAlloc_v2") &&
	       sizeof(STRING(cuMemFree)) == sizeof("cuMemFree_v2") &&
	       sizeof(STRING(cuStreamDestroy)) ==
	       sizeof("cuStreamDestroy_v2") &&
	       sizeof(STRING(cuMemcpyAsync)) == sizeof("cuMemcpyAsync") &&
	       sizeof(STRING(cuIpcOpenMemHandle)) ==
	       sizeof("cuIpcOpenMemHandle_v2") &&
	       sizeof(STRING(cuIpcGetMemHandle)) ==
	       sizeof("cuIpcGetMemHandle") &&
	       sizeof(STRING(cuEventDestroy)) == sizeof("cuEventDestroy_v2") &&
	       sizeof(STRING(cuLaunchKernel)) == sizeof("cuLaunchKernel"),
	       "names");

#ifdef __NVRTC_H__
struct their_compiler {
	nvrtcResult (*create)(nvrtcProgram *, const char *, const char *, int,
			      const char *const *, const char *const *);
	nvrtcResult (*destroy)(nvrtcProgram *);
	nvrtcResult (*compile)(nvrtcProgram, int, const char *const *);
	nvrtcResult (*log_size)(nvrtcProgram, size_t *);
	nvrtcResult (*log)(nvrtcProgram, char *);
	nvrtcResult (*code_size)(nvrtcProgram, size_t *);
	nvrtcResult (*code)(nvrtcProgram, char *);
	const char *(*text)(nvrtcResult);
	nvrtcResult (*count)(int *);
	nvrtcResult (*archs)(int *);
	nvrtcResult (*text_size)(nvrtcProgram, size_t *);
	nvrtcResult (*ptx)(nvrtcProgram, char *);
};

extern const struct their_compiler nvrtc_functions;
const struct their_compiler nvrtc_functions = {
	nvrtcCreateProgram, nvrtcDestroyProgram, nvrtcCompileProgram,
	nvrtcGetProgramLogSize, nvrtcGetProgramLog, nvrtcGetCUBINSize,
	nvrtcGetCUBIN, nvrtcGetErrorString, nvrtcGetNumSupportedArchs,
	nvrtcGetSupportedArchs, nvrtcGetPTXSize, nvrtcGetPTX,
};
#endif
