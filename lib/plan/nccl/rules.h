/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the libraries know: bus ids, PCI classes, bandwidths. As of NCCL 2.30
 * and RCCL 2.27, in our words. Inside lib/plan only: nccl_*.c.
 */
#ifndef LIB_PLAN_NCCL_RULES_H
#define LIB_PLAN_NCCL_RULES_H

#include "plan/nccl.h"

#define NCCL_NO_BUSID	UINT64_MAX
#define NCCL_LOC_BW	5000000u	/* MB/s: "no limit" inside a chip */
#define NCCL_LINK_COUNT	1000u		/* links of one <nvlink>, at most */

/* What the library takes a pci element of this class for. */
enum nccl_class {
	NCCL_CLASS_UNKNOWN,	/* a bridge to the library */
	NCCL_CLASS_BRIDGE,
	NCCL_CLASS_NVSWITCH,
	NCCL_CLASS_CPU,		/* NVLink to a Power CPU */
	NCCL_CLASS_GPU,
	NCCL_CLASS_NIC,
};

enum nccl_class nccl_class(enum plan_dialect d, const char *text);
/*
 * domain:bus:device.function, as a number that is as large as the library's.
 * NCCL_NO_BUSID: no bus id. Upper case and domains of eight digits are fine
 * here; nccl_busid_strict() wants what the library compares with, byte by byte.
 */
uint64_t nccl_busid(const char *text);
bool nccl_busid_strict(const char *text);
void nccl_busid_print(uint64_t id, char *text, size_t size);

/* A number as strtol() with base 0 takes it, all of the text; else false. */
bool nccl_int(const char *text, int64_t *out);
bool nccl_float(const char *text, double *out);

/* MB/s of one NVLink by compute capability ("sm"), one XGMI link by "gcn". */
uint32_t nccl_nvlink_bw(int64_t sm);
uint32_t nccl_xgmi_bw(const char *gcn);
/* MB/s between two CPUs of a host; NULLs and 0 where there is no attribute. */
uint32_t nccl_cpu_bw(const char *arch, const char *vendor, int64_t family,
		     int64_t model);
/* "NVL", "PIX" ... of a graph: does the library know it? */
bool nccl_path_type(const char *text);
/* Does the library know this link_speed, or takes it for Gen3? */
bool nccl_speed_known(const char *text);

struct nccl_limits {
	unsigned int version;		/* of <system> */
	unsigned int elements;		/* of a topology */
	unsigned int children;
	unsigned int gpus;
	unsigned int channels;
	unsigned int graph_elements;
	const char *link;		/* "nvlink", "xgmi" */
};

const struct nccl_limits *nccl_limits(enum plan_dialect d);

#endif
