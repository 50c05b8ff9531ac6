/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libfabrex: determines whether one PCI device can access another's memory
 * directly, by which path, and if not, what blocks it. See fabrex_p2p_query(3).
 */
#ifndef FABREX_P2P_H
#define FABREX_P2P_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fabrex_p2p_verdict {
	FABREX_P2P_UNKNOWN = 0,	/* no permission to check; see reason */
	FABREX_P2P_NO,
	FABREX_P2P_YES,
};

enum fabrex_p2p_path {
	FABREX_P2P_PATH_NONE = 0,
	FABREX_P2P_PATH_SAME,	/* the same device */
	FABREX_P2P_PATH_SWITCH,	/* routed by a common PCIe switch */
	FABREX_P2P_PATH_ROOT,	/* routed by the root complex */
};

enum fabrex_p2p_reason {
	FABREX_P2P_OK = 0,
	FABREX_P2P_NO_DEVICE,	/* absent, or reads as all ones */
	FABREX_P2P_NO_KERNEL,	/* kernel without PCI_P2PDMA */
	FABREX_P2P_ACS,		/* ACS redirects to root complex, not allowed */
	FABREX_P2P_ROOT,	/* common root complex only, not allowed */
	FABREX_P2P_MEMORY_OFF,	/* device's memory decoding is off */
	FABREX_P2P_POWER,	/* device is in a sleep state (D3) */
	FABREX_P2P_RESET,	/* link down or secondary bus in reset */
	FABREX_P2P_NO_BAR,	/* target has no memory BAR */
	FABREX_P2P_BAR_SPACE,	/* target's BAR was assigned no address */
	FABREX_P2P_IOMMU,	/* blocked by the IOMMU */
	FABREX_P2P_NO_MASTER,	/* bus mastering is off in the initiator */
	FABREX_P2P_REFUSED,	/* the kernel refuses; cause not found */
	FABREX_P2P_UNREADABLE,	/* no permission to read sysfs */
};

struct fabrex_p2p {
	uint32_t verdict;	/* enum fabrex_p2p_verdict */
	uint32_t path;		/* enum fabrex_p2p_path */
	uint32_t reason;	/* enum fabrex_p2p_reason */
	uint32_t distance;	/* bridges on the path, as Linux counts them */
	uint32_t iommu;		/* 1: IOMMU translates initiator's addresses */
	uint32_t bits;		/* blocking bits of the register, e.g. of ACS */
	char initiator[16];	/* "0000:03:00.0" */
	char target[16];
	char common[16];	/* lowest common bridge, or "" */
	char blocker[16];	/* device that blocks the path, or "" */
	char text[256];		/* verdict, path and blocker in words */
	char remedy[256];	/* remedy in words, or "" */
	uint64_t reserved[4];
};

/*
 * Determines whether initiator can read and write target's memory. Each is a
 * PCI address ("0000:04:00.0", "04:00.0") or a local port ("fabrex0", "a.0").
 * Reads sysfs and asks the kernel. Reading ACS bits requires CAP_SYS_ADMIN;
 * without it the kernel's answer decides. size: sizeof(struct fabrex_p2p) as
 * the caller was compiled. Returns 0 whatever the verdict is; -EINVAL: invalid
 * name. Thread-safe and stateless.
 */
int fabrex_p2p_query(const char *initiator, const char *target,
		     struct fabrex_p2p *p2p, size_t size);
/* "yes", "no", "unknown"; "switch", ...; "acs", ...; never NULL. */
const char *fabrex_p2p_verdict_str(int verdict);
const char *fabrex_p2p_path_str(int path);
const char *fabrex_p2p_reason_str(int reason);

#ifdef __cplusplus
}
#endif

#endif
