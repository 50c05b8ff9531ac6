// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The HSA runtime as a library: its symbols. It is used in amd.c.
 */
#include "memory/hsa.h"

struct hsa_table fxi_hsa;

static const char *const sonames[] = { "libhsa-runtime64.so.1", NULL };

static const struct library_symbol symbols[] = {
	{ "hsa_amd_pointer_info", offsetof(struct hsa_table, pointer_info) },
	{ "hsa_agent_get_info", offsetof(struct hsa_table, agent_info) },
	{ "hsa_memory_copy", offsetof(struct hsa_table, copy) },
	{ "hsa_amd_portable_export_dmabuf",
	  offsetof(struct hsa_table, export_dmabuf) },
	{ "hsa_amd_portable_export_dmabuf_v2",
	  offsetof(struct hsa_table, export_dmabuf_v2) },
	{ NULL, 0 },
};

struct library fxi_library_hsa = {
	.prefix = "libhsa-runtime64.so",
	.sonames = sonames,
	.symbols = symbols,
	.table = &fxi_hsa,
};

_Static_assert(sizeof(symbols) / sizeof(*symbols) - 1 ==
	       sizeof(fxi_hsa) / sizeof(void *), "a name for each function");
