// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compiled only: what lib/coll/device declares by itself is what the headers
 * of HIP and HIPRTC declare.
 */
#include <stddef.h>
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include "coll/device/vendor.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(GPU_OK, hipSuccess);
SAME(GPU_OUT_OF_MEMORY, hipErrorOutOfMemory);
SAME(GPU_NOT_SUPPORTED, hipErrorNotSupported);
SAME(GPU_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME(4, hipMemcpyDefault);
SAME(GPU_NOT_READY, hipErrorNotReady);
SAME(GPU_EVENT_NO_TIMES, hipEventDisableTiming);
#if HIP_VERSION_MAJOR < 6
SAME(0, hipIpcMemLazyEnablePeerAccess);
#else
SAME(GPU_OPEN_PEER_ACCESS, hipIpcMemLazyEnablePeerAccess);
#endif
_Static_assert(sizeof(struct gpu_ipc) == sizeof(hipIpcMemHandle_t),
	       "size of a handle");

struct theirs {
	hipError_t (*alloc)(void **, size_t);
	hipError_t (*free)(void *);
	hipError_t (*stream_create)(hipStream_t *, unsigned int);
	hipError_t (*stream_destroy)(hipStream_t);
	hipError_t (*stream_wait)(hipStream_t);
	hipError_t (*module_load)(hipModule_t *, const void *);
	hipError_t (*module_unload)(hipModule_t);
	hipError_t (*module_function)(hipFunction_t *, hipModule_t,
				      const char *);
	hipError_t (*launch)(hipFunction_t, unsigned int, unsigned int,
			     unsigned int, unsigned int, unsigned int,
			     unsigned int, unsigned int, hipStream_t, void **,
			     void **);
	hipError_t (*copy)(void *, const void *, size_t, hipMemcpyKind,
			   hipStream_t);
	hipError_t (*set_device)(int);
	hipError_t (*get_device)(int *);
};

extern const struct theirs hip_device_functions;
const struct theirs hip_device_functions = {
	hipMalloc, hipFree, hipStreamCreateWithFlags, hipStreamDestroy,
	hipStreamSynchronize, hipModuleLoadData,
	hipModuleUnload, hipModuleGetFunction, hipModuleLaunchKernel, hipMemcpyAsync,
	hipSetDevice, hipGetDevice,
};

struct their_share {
	hipError_t (*handle)(hipIpcMemHandle_t *, void *);
	hipError_t (*open)(void **, hipIpcMemHandle_t, unsigned int);
	hipError_t (*close)(void *);
	hipError_t (*can_access)(int *, int, int);
	hipError_t (*by_address)(int *, const char *);
	hipError_t (*event_create)(hipEvent_t *, unsigned int);
	hipError_t (*event_destroy)(hipEvent_t);
	hipError_t (*event_record)(hipEvent_t, hipStream_t);
	hipError_t (*event_query)(hipEvent_t);
};
_Static_assert(sizeof(struct their_share) == sizeof(struct gpu_share_table),
	       "a function for each");

extern const struct their_share hip_share_functions;
const struct their_share hip_share_functions = {
	hipIpcGetMemHandle, hipIpcOpenMemHandle, hipIpcCloseMemHandle,
	hipDeviceCanAccessPeer, hipDeviceGetByPCIBusId,
	hipEventCreateWithFlags, hipEventDestroy, hipEventRecord,
	hipEventQuery,
};

/* Before HIP 6 without const where it could be. */
struct their_compiler {
	hiprtcResult (*destroy)(hiprtcProgram *);
	hiprtcResult (*log_size)(hiprtcProgram, size_t *);
	hiprtcResult (*log)(hiprtcProgram, char *);
	hiprtcResult (*code_size)(hiprtcProgram, size_t *);
	hiprtcResult (*code)(hiprtcProgram, char *);
	const char *(*text)(hiprtcResult);
};

extern const struct their_compiler hiprtc_functions;
const struct their_compiler hiprtc_functions = {
	hiprtcDestroyProgram, hiprtcGetProgramLogSize, hiprtcGetProgramLog,
	hiprtcGetCodeSize, hiprtcGetCode, hiprtcGetErrorString,
};
#if HIP_VERSION_MAJOR < 6
#define LIST	const char **
#else
#define LIST	const char *const *
#endif
extern hiprtcResult (*const hiprtc_create)(hiprtcProgram *, const char *,
					   const char *, int, LIST, LIST);
hiprtcResult (*const hiprtc_create)(hiprtcProgram *, const char *,
				    const char *, int, LIST, LIST) =
	hiprtcCreateProgram;
extern hiprtcResult (*const hiprtc_compile)(hiprtcProgram, int, LIST);
hiprtcResult (*const hiprtc_compile)(hiprtcProgram, int, LIST) =
	hiprtcCompileProgram;
