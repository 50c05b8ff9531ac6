/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What this host's kernel says of GPUs that are composed to it, as attributes
 * of a graph's nodes: addresses, bridges above, links, identities, CPU, and the
 * links among GPUs that drivers publish. Called by live.c.
 */
#ifndef CTL_HARDWARE_H
#define CTL_HARDWARE_H

#include <stdbool.h>
#include <stddef.h>

#include <fabrex/plan.h>

#include "model.h"

/* A GPU of this host. */
struct gpu {
	char name[CTL_NAME_LEN];	/* of its node, too */
	char pci[32];			/* "0000:04:00.0" */
	double speed;			/* GT/s of its box's link; 0: unknown */
	unsigned int width;
};

/* Is it in sysfs (below FABREX_ROOT if that is set)? */
bool hardware_exists(const char *pci);
/*
 * Likewise, and nothing that is there says that it is no GPU, or not of that
 * vendor (0: any): an address that the fabric gives may be another device's
 * by now.
 */
bool hardware_is_gpu(const char *pci, uint32_t vendor);
/* What the libraries call uname()'s machine. */
const char *hardware_arch(const char *machine);

/*
 * Of each GPU's node: pci.busid, pci.class, pci.vendor, pci.device,
 * pci.subsystem_vendor, pci.subsystem_device, pci.link_speed, pci.link_width,
 * gpu.gcn; gpu.dev: the index that NVML or rocm_smi has, by address among all
 * GPUs of the vendor in this host; sysfs.max_link_speed and the like, as the
 * files have them.
 * Of the switches above it: the same of their upstream ports, from the root port
 * on down, as many as the kernel sees; their links stay what the graph has. Of
 * the root complex: cpu.numaid, cpu.affinity, cpu.arch, cpu.vendor, cpu.modelid,
 * cpu.familyid as the libraries compute it; no affinity too long for them.
 *
 * link_speed is what the library itself would take: the lesser one of the
 * device's and its port's. Slots of composed fabrics tell of a link that is
 * not there, though; where the port tells less than the fabric's own link does,
 * that is taken, with a warning.
 *
 * Links: XGMI as the KFD driver publishes it, between GPUs that have none in
 * @g. There is no file of NVLink's. Ranks of this host are put in the order of
 * KFD's nodes, as HIP counts devices (one that is added later comes last); where
 * it has none, of addresses, as CUDA_DEVICE_ORDER=PCI_BUS_ID has them. A GPU that
 * is not there any more is no rank, with a warning; there may be none left.
 */
void hardware_add(struct fabrex_plan_graph *g, const struct gpu *gpus, size_t n);

#endif
