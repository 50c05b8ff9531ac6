// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * NVIDIA's driver as device.c uses it: names and numbers are those of the "CUDA
 * Driver API" and NVRTC manuals. Memory belongs to the primary context, like
 * that of the CUDA runtime. Called through fxi_gpu_cuda.
 */
#include <errno.h>
#include <stdio.h>

#include "coll/device/vendor.h"
#include "base/error.h"
#include "memory/cuda.h"

#define CAPABILITY_MAJOR	75	/* attributes of a device */
#define CAPABILITY_MINOR	76

static struct gpu_table table;

static const struct library_symbol symbols[] = {
	{ "cuMemAlloc_v2", offsetof(struct gpu_table, alloc) },
	{ "cuMemFree_v2", offsetof(struct gpu_table, free) },
	{ "cuStreamCreate", offsetof(struct gpu_table, stream_create) },
	{ "cuStreamDestroy_v2", offsetof(struct gpu_table, stream_destroy) },
	{ "cuStreamSynchronize", offsetof(struct gpu_table, stream_wait) },
	{ "cuModuleLoadData", offsetof(struct gpu_table, module_load) },
	{ "cuModuleUnload", offsetof(struct gpu_table, module_unload) },
	{ "cuModuleGetFunction",
	  offsetof(struct gpu_table, module_function) },
	{ "cuLaunchKernel", offsetof(struct gpu_table, launch) },
	{ NULL, 0 },
};

/* Addresses of devices and of the host are unified: one function for all. */
static struct {
	int (*copy)(cuda_ptr dst, cuda_ptr src, size_t bytes, void *stream);
} more;

static const struct library_symbol more_symbols[] = {
	{ "cuMemcpyAsync", 0 },
	{ NULL, 0 },
};

#define HOST_PORTABLE		1	/* CU_MEMHOSTALLOC_* */
#define HOST_MAPPED		2
#define WAIT_AT_LEAST		0	/* CUstreamWaitValue_flags: GEQ, FLUSH */
#define WAIT_FLUSH		(1u << 30)

/* Of newer drivers. */
static struct {
	int (*write)(void *stream, cuda_ptr word, uint64_t value,
		     unsigned int flags);
	int (*hold)(void *stream, cuda_ptr word, uint64_t value,
		    unsigned int flags);
	int (*call)(void *stream, void (*function)(void *arg), void *arg);
	int (*host_alloc)(void **ptr, size_t bytes, unsigned int flags);
	int (*context_device)(int *device);
	int (*host_free)(void *ptr);
} streams;

static const struct library_symbol stream_symbols[] = {
	{ "cuStreamWriteValue64_v2", 0 },
	{ "cuStreamWaitValue64_v2", sizeof(void *) },
	{ "cuLaunchHostFunc", 2 * sizeof(void *) },
	{ "cuMemHostAlloc", 3 * sizeof(void *) },
	{ "cuCtxGetDevice", 4 * sizeof(void *) },
	{ "cuMemFreeHost", 5 * sizeof(void *) },
	{ NULL, 0 },
};

static struct gpu_share_table share;

static const struct library_symbol share_symbols[] = {
	{ "cuIpcGetMemHandle", offsetof(struct gpu_share_table, handle) },
	{ "cuIpcOpenMemHandle_v2", offsetof(struct gpu_share_table, open) },
	{ "cuIpcCloseMemHandle", offsetof(struct gpu_share_table, close) },
	{ "cuDeviceCanAccessPeer",
	  offsetof(struct gpu_share_table, can_access) },
	{ "cuDeviceGetByPCIBusId",
	  offsetof(struct gpu_share_table, by_address) },
	{ "cuEventCreate",
	  offsetof(struct gpu_share_table, event_create) },
	{ "cuEventDestroy_v2",
	  offsetof(struct gpu_share_table, event_destroy) },
	{ "cuEventRecord", offsetof(struct gpu_share_table, event_record) },
	{ "cuEventQuery", offsetof(struct gpu_share_table, event_query) },
	{ NULL, 0 },
};

static const char *cuda_text(int error)
{
	const char *text = NULL;

	if (fxi_cuda.error_text)
		fxi_cuda.error_text(error, &text);
	return text ? text : "unknown error";
}

/* Functions that memory/cuda.c can do without. */
static int need_contexts(void)
{
	if (fxi_cuda.device && fxi_cuda.push && fxi_cuda.pop &&
	    fxi_cuda.primary_retain && fxi_cuda.device_attribute)
		return 0;
	return fxi_error(ENOTSUP, "libcuda.so.1 lacks functions for primary contexts; update the NVIDIA driver");
}

static int cuda_load(void)
{
	int ret;

	fxi_library_notice();
	ret = fxi_library_load(&fxi_library_cuda);
	if (!ret)
		ret = need_contexts();
	if (!ret)
		ret = fxi_gpu_resolve(fxi_library_cuda.handle, "libcuda.so.1",
				      symbols, &table);
	if (!ret)
		ret = fxi_gpu_resolve(fxi_library_cuda.handle, "libcuda.so.1",
				      more_symbols, &more);
	if (!ret)
		fxi_gpu_resolve_some(fxi_library_cuda.handle, stream_symbols,
				     &streams);
	if (!ret)
		fxi_gpu_resolve_some(fxi_library_cuda.handle, share_symbols,
				     &share);
	return ret;
}

/* Never released: our modules live in it, and what others made. */
static int cuda_up(int number, void **context)
{
	int device, ret = fxi_cuda.device(&device, number);

	return ret ? ret : fxi_cuda.primary_retain(context, device);
}

/* What we do is not to be captured into a graph of the application. */
static int cuda_enter(struct gpu_visit *visit, int number, void *context)
{
	int ret = fxi_cuda.push(context);

	(void)number;
	visit->mode = CUDA_CAPTURE_RELAXED;
	visit->relaxed = !ret && fxi_cuda.capture_mode &&
			 !fxi_cuda.capture_mode(&visit->mode);
	return ret;
}

static void cuda_leave(struct gpu_visit *visit)
{
	if (visit->relaxed)
		fxi_cuda.capture_mode(&visit->mode);
	fxi_cuda.pop(&visit->context);
}

static int cuda_copy(void *dst, const void *src, size_t bytes, void *stream)
{
	return more.copy((cuda_ptr)dst, (cuda_ptr)src, bytes, stream);
}

static int cuda_ordinal(int number, int *device)
{
	return fxi_cuda.device(device, number);
}

static int cuda_current(int *number, void **context, uint64_t *id)
{
	unsigned long long name = 0;
	int ret;

	*number = -1;
	*id = 0;
	if (!fxi_cuda.context || !streams.context_device)
		return GPU_NOT_SUPPORTED;
	ret = fxi_cuda.context(context);
	if (!ret && fxi_cuda.context_id && !fxi_cuda.context_id(*context, &name))
		*id = name;
	return ret ? ret : streams.context_device(number);
}

/* Unified addressing: a context has it where the processor has it. */
static int cuda_word(uint64_t **word)
{
	void *ptr = NULL;
	int ret;

	if (!streams.host_alloc)
		return GPU_NOT_SUPPORTED;
	ret = streams.host_alloc(&ptr, sizeof(**word),
				 HOST_PORTABLE | HOST_MAPPED);
	*word = ptr;
	if (!ret)
		**word = 0;
	return ret;
}

static int cuda_pin(void **memory, size_t bytes)
{
	return streams.host_alloc && streams.host_free ?
	       streams.host_alloc(memory, bytes, 0) : GPU_NOT_SUPPORTED;
}

static int cuda_unpin(void *memory)
{
	return streams.host_free(memory);
}

static int cuda_write(void *stream, uint64_t *word, uint64_t value)
{
	return streams.write ?
	       streams.write(stream, (cuda_ptr)word, value, 0) :
	       GPU_NOT_SUPPORTED;
}

/* Not every GPU that waits can flush; those that cannot need not. */
static int cuda_hold(void *stream, uint64_t *word, uint64_t value)
{
	int ret;

	if (!streams.hold)
		return GPU_NOT_SUPPORTED;
	ret = streams.hold(stream, (cuda_ptr)word, value,
			   WAIT_AT_LEAST | WAIT_FLUSH);
	if (ret != GPU_NOT_SUPPORTED && ret != GPU_INVALID_VALUE)
		return ret;
	return streams.hold(stream, (cuda_ptr)word, value, WAIT_AT_LEAST);
}

static int cuda_call(void *stream, void (*function)(void *arg), void *arg)
{
	return streams.call ? streams.call(stream, function, arg) :
			      GPU_NOT_SUPPORTED;
}

static int cuda_capturing(void *stream, int *status)
{
	return fxi_cuda.stream_capturing ?
	       fxi_cuda.stream_capturing(stream, status) : GPU_OK;
}

static int cuda_arch(int number, char *option, size_t n)
{
	int device, major, minor, ret = fxi_cuda.device(&device, number);

	if (!ret)
		ret = fxi_cuda.device_attribute(&major, CAPABILITY_MAJOR,
						device);
	if (!ret)
		ret = fxi_cuda.device_attribute(&minor, CAPABILITY_MINOR,
						device);
	if (!ret)
		snprintf(option, n, "--gpu-architecture=sm_%d%d", major,
			 minor);
	return ret;
}

static const char *const rtc_names[] = {
	"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so",
	NULL,
};

static const struct library_symbol rtc_symbols[] = {
	{ "nvrtcCreateProgram", offsetof(struct rtc_table, create) },
	{ "nvrtcDestroyProgram", offsetof(struct rtc_table, destroy) },
	{ "nvrtcCompileProgram", offsetof(struct rtc_table, compile) },
	{ "nvrtcGetProgramLogSize", offsetof(struct rtc_table, log_size) },
	{ "nvrtcGetProgramLog", offsetof(struct rtc_table, log) },
	{ "nvrtcGetCUBINSize", offsetof(struct rtc_table, code_size) },
	{ "nvrtcGetCUBIN", offsetof(struct rtc_table, code) },
	{ "nvrtcGetErrorString", offsetof(struct rtc_table, text) },
	{ NULL, 0 },
};

static const struct library_symbol rtc_more[] = {
	{ "nvrtcGetNumSupportedArchs", offsetof(struct rtc_more, count) },
	{ "nvrtcGetSupportedArchs", offsetof(struct rtc_more, archs) },
	{ "nvrtcGetPTXSize", offsetof(struct rtc_more, code_size) },
	{ "nvrtcGetPTX", offsetof(struct rtc_more, code) },
	{ NULL, 0 },
};

/* The same bits as on the host: nothing fused, nothing approximated. */
static const char *const rtc_options[] = {
	"--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", NULL,
};

const struct gpu_vendor fxi_gpu_cuda = {
	.kind = FABREX_MEMORY_CUDA,
	.name = "CUDA",
	.table = &table,
	.share = &share,
	.load = cuda_load,
	.up = cuda_up,
	.enter = cuda_enter,
	.leave = cuda_leave,
	.copy = cuda_copy,
	.ordinal = cuda_ordinal,
	.current = cuda_current,
	.word = cuda_word,
	.stream = fxi_cuda_stream,
	.pin = cuda_pin,
	.unpin = cuda_unpin,
	.write = cuda_write,
	.hold = cuda_hold,
	.call = cuda_call,
	.capturing = cuda_capturing,
	.arch = cuda_arch,
	.text = cuda_text,
	.rtc_names = rtc_names,
	.rtc_symbols = rtc_symbols,
	.rtc_more = rtc_more,
	.rtc_options = rtc_options,
};
