// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * AMD's HIP runtime as device.c uses it: names and numbers are those of the HIP
 * API and HIPRTC documentation. Called through fxi_gpu_hip.
 */
#include <errno.h>
#include <stdio.h>

#include "coll/device/vendor.h"
#include "base/error.h"
#include "memory/hip.h"

#define COPY_DEFAULT	4		/* by the addresses */

static struct gpu_table table;

static const struct library_symbol symbols[] = {
	{ "hipMalloc", offsetof(struct gpu_table, alloc) },
	{ "hipFree", offsetof(struct gpu_table, free) },
	{ "hipStreamCreateWithFlags",
	  offsetof(struct gpu_table, stream_create) },
	{ "hipStreamDestroy", offsetof(struct gpu_table, stream_destroy) },
	{ "hipStreamSynchronize", offsetof(struct gpu_table, stream_wait) },
	{ "hipModuleLoadData", offsetof(struct gpu_table, module_load) },
	{ "hipModuleUnload", offsetof(struct gpu_table, module_unload) },
	{ "hipModuleGetFunction",
	  offsetof(struct gpu_table, module_function) },
	{ "hipModuleLaunchKernel", offsetof(struct gpu_table, launch) },
	{ NULL, 0 },
};

static struct {
	int (*copy)(void *dst, const void *src, size_t bytes, int kind,
		    void *stream);
	int (*set_device)(int device);
	int (*get_device)(int *device);
} more;

static const struct library_symbol more_symbols[] = {
	{ "hipMemcpyAsync", 0 },
	{ "hipSetDevice", sizeof(void *) },
	{ "hipGetDevice", 2 * sizeof(void *) },
	{ NULL, 0 },
};

#define SIGNAL_MEMORY		2	/* hipMallocSignalMemory: of 8 bytes */
#define WAIT_AT_LEAST		0	/* hipStreamWaitValueGte */

/* Of newer versions. */
static struct {
	int (*write)(void *stream, void *word, uint64_t value,
		     unsigned int flags);
	int (*hold)(void *stream, void *word, uint64_t value,
		    unsigned int flags, uint64_t mask);
	int (*call)(void *stream, void (*function)(void *arg), void *arg);
	int (*host_alloc)(void **ptr, size_t bytes, unsigned int flags);
	int (*capturing)(void *stream, int *status);
} streams;

static const struct library_symbol stream_symbols[] = {
	{ "hipStreamWriteValue64", 0 },
	{ "hipStreamWaitValue64", sizeof(void *) },
	{ "hipLaunchHostFunc", 2 * sizeof(void *) },
	{ "hipExtMallocWithFlags", 3 * sizeof(void *) },
	{ "hipStreamIsCapturing", 4 * sizeof(void *) },
	{ NULL, 0 },
};

static struct gpu_share_table share;

static const struct library_symbol share_symbols[] = {
	{ "hipIpcGetMemHandle", offsetof(struct gpu_share_table, handle) },
	{ "hipIpcOpenMemHandle", offsetof(struct gpu_share_table, open) },
	{ "hipIpcCloseMemHandle", offsetof(struct gpu_share_table, close) },
	{ "hipDeviceCanAccessPeer",
	  offsetof(struct gpu_share_table, can_access) },
	{ "hipDeviceGetByPCIBusId",
	  offsetof(struct gpu_share_table, by_address) },
	{ "hipEventCreateWithFlags",
	  offsetof(struct gpu_share_table, event_create) },
	{ "hipEventDestroy",
	  offsetof(struct gpu_share_table, event_destroy) },
	{ "hipEventRecord", offsetof(struct gpu_share_table, event_record) },
	{ "hipEventQuery", offsetof(struct gpu_share_table, event_query) },
	{ NULL, 0 },
};

static const char *hip_text(int error)
{
	const char *text = NULL;

	if (fxi_hip.error_text)
		text = fxi_hip.error_text(error);
	return text ? text : "unknown error";
}

/* The library that the process has loaded, if it has. */
static int hip_load(void)
{
	int ret;

	fxi_library_notice();
	ret = fxi_library_load(&fxi_library_hip);
	if (!ret)
		ret = fxi_gpu_resolve(fxi_library_hip.handle, "libamdhip64.so",
				      symbols, &table);
	if (!ret)
		ret = fxi_gpu_resolve(fxi_library_hip.handle, "libamdhip64.so",
				      more_symbols, &more);
	if (!ret)
		fxi_gpu_resolve_some(fxi_library_hip.handle, stream_symbols,
				     &streams);
	if (!ret)
		fxi_gpu_resolve_some(fxi_library_hip.handle, share_symbols,
				     &share);
	return ret;
}

/* HIP shows no contexts: a thread has a current device. */
static int hip_up(int number, void **context)
{
	(void)number;
	*context = NULL;
	return GPU_OK;
}

/* The application must find only its own when it asks for the last error. */
static void forget_ours(const struct gpu_visit *visit)
{
	if (!visit->pending && fxi_hip.take_error)
		fxi_hip.take_error();
}

static int hip_enter(struct gpu_visit *visit, int number, void *context)
{
	int ret;

	(void)context;
	visit->pending = fxi_hip.peek_error ? fxi_hip.peek_error() : GPU_OK;
	if (more.get_device(&visit->device))
		visit->device = number;
	ret = more.set_device(number);
	if (ret)
		forget_ours(visit);
	visit->mode = HIP_CAPTURE_RELAXED;
	visit->relaxed = !ret && fxi_hip.capture_mode &&
			 !fxi_hip.capture_mode(&visit->mode);
	return ret;
}

static void hip_leave(struct gpu_visit *visit)
{
	if (visit->relaxed)
		fxi_hip.capture_mode(&visit->mode);
	more.set_device(visit->device);
	forget_ours(visit);
}

static int hip_copy(void *dst, const void *src, size_t bytes, void *stream)
{
	return more.copy(dst, src, bytes, COPY_DEFAULT, stream);
}

static int hip_ordinal(int number, int *device)
{
	*device = number;
	return GPU_OK;
}

static int hip_current(int *number, void **context, uint64_t *id)
{
	int ret = more.get_device(number);

	*context = NULL;
	*id = ret ? 0 : (uint64_t)*number + 1;
	return ret;
}

/* The only memory that streams are documented to wait for. */
static int hip_word(uint64_t **word)
{
	void *ptr = NULL;
	int ret;

	if (!streams.host_alloc)
		return GPU_NOT_SUPPORTED;
	ret = streams.host_alloc(&ptr, sizeof(**word), SIGNAL_MEMORY);
	*word = ptr;
	if (!ret)
		**word = 0;
	return ret;
}

static int hip_write(void *stream, uint64_t *word, uint64_t value)
{
	return streams.write ? streams.write(stream, word, value, 0) :
			       GPU_NOT_SUPPORTED;
}

static int hip_hold(void *stream, uint64_t *word, uint64_t value)
{
	return streams.hold ? streams.hold(stream, word, value, WAIT_AT_LEAST,
					   UINT64_MAX) :
			      GPU_NOT_SUPPORTED;
}

static int hip_call(void *stream, void (*function)(void *arg), void *arg)
{
	return streams.call ? streams.call(stream, function, arg) :
			      GPU_NOT_SUPPORTED;
}

static int hip_capturing(void *stream, int *status)
{
	return streams.capturing ? streams.capturing(stream, status) : GPU_OK;
}

/* HIPRTC asks the runtime for the current device by itself. */
static int hip_arch(int number, char *option, size_t n)
{
	(void)number;
	snprintf(option, n, "%s", "");
	return GPU_OK;
}

static const char *const rtc_names[] = {
	"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so",
	NULL,
};

static const struct library_symbol rtc_symbols[] = {
	{ "hiprtcCreateProgram", offsetof(struct rtc_table, create) },
	{ "hiprtcDestroyProgram", offsetof(struct rtc_table, destroy) },
	{ "hiprtcCompileProgram", offsetof(struct rtc_table, compile) },
	{ "hiprtcGetProgramLogSize", offsetof(struct rtc_table, log_size) },
	{ "hiprtcGetProgramLog", offsetof(struct rtc_table, log) },
	{ "hiprtcGetCodeSize", offsetof(struct rtc_table, code_size) },
	{ "hiprtcGetCode", offsetof(struct rtc_table, code) },
	{ "hiprtcGetErrorString", offsetof(struct rtc_table, text) },
	{ NULL, 0 },
};

static const char *const rtc_options[] = {
	"-std=c++17", "-O3", "-ffp-contract=off", "-fno-fast-math", NULL,
};

const struct gpu_vendor fxi_gpu_hip = {
	.kind = FABREX_MEMORY_HIP,
	.name = "HIP",
	.table = &table,
	.share = &share,
	.load = hip_load,
	.up = hip_up,
	.enter = hip_enter,
	.leave = hip_leave,
	.copy = hip_copy,
	.ordinal = hip_ordinal,
	.current = hip_current,
	.word = hip_word,
	.write = hip_write,
	.hold = hip_hold,
	.call = hip_call,
	.capturing = hip_capturing,
	.arch = hip_arch,
	.text = hip_text,
	.rtc_names = rtc_names,
	.rtc_symbols = rtc_symbols,
	.rtc_home = &fxi_library_hip,
	.rtc_options = rtc_options,
};
