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
	.load = cuda_load,
	.up = cuda_up,
	.enter = cuda_enter,
	.leave = cuda_leave,
	.copy = cuda_copy,
	.arch = cuda_arch,
	.text = cuda_text,
	.rtc_names = rtc_names,
	.rtc_symbols = rtc_symbols,
	.rtc_more = rtc_more,
	.rtc_options = rtc_options,
};
