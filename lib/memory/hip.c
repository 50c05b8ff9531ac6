// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The HIP runtime as a library: its symbols. It is used in amd.c.
 */
#include "memory/hip.h"

struct hip_table fxi_hip;

static const char *const sonames[] = {
	"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
	"libamdhip64.so", NULL,
};

static const struct library_symbol symbols[] = {
	{ "hipPointerGetAttribute", offsetof(struct hip_table, attribute) },
	{ "hipRuntimeGetVersion", offsetof(struct hip_table, version) },
	{ "hipMemGetHandleForAddressRange",
	  offsetof(struct hip_table, address_handle) },
	{ "hipMemRetainAllocationHandle",
	  offsetof(struct hip_table, retain_handle) },
	{ "hipMemExportToShareableHandle",
	  offsetof(struct hip_table, export_handle) },
	{ "hipMemRelease", offsetof(struct hip_table, release_handle) },
	{ "hipMemcpyAsync", offsetof(struct hip_table, copy) },
	{ "hipStreamCreateWithFlags",
	  offsetof(struct hip_table, stream_create) },
	{ "hipStreamDestroy", offsetof(struct hip_table, stream_destroy) },
	{ "hipStreamSynchronize", offsetof(struct hip_table, stream_wait) },
	{ "hipGetDevice", offsetof(struct hip_table, get_device) },
	{ "hipSetDevice", offsetof(struct hip_table, set_device) },
	{ "hipThreadExchangeStreamCaptureMode",
	  offsetof(struct hip_table, capture_mode) },
	{ "hipDeviceGetPCIBusId", offsetof(struct hip_table, pci_id) },
	{ "hipPeekAtLastError", offsetof(struct hip_table, peek_error) },
	{ "hipGetLastError", offsetof(struct hip_table, take_error) },
	{ "hipGetErrorString", offsetof(struct hip_table, error_text) },
	{ NULL, 0 },
};

struct library fxi_library_hip = {
	.prefix = "libamdhip64.so",
	.sonames = sonames,
	.symbols = symbols,
	.table = &fxi_hip,
};

_Static_assert(sizeof(symbols) / sizeof(*symbols) - 1 ==
	       sizeof(fxi_hip) / sizeof(void *), "a name for each function");
