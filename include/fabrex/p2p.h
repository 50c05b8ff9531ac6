/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libfabrex: can one PCI device reach another's memory directly, by which way,
 * and if not, what is in the way. fabrex_p2p_query(3).
 */
#ifndef FABREX_P2P_H
#define FABREX_P2P_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fabrex_p2p_verdict {
	FABREX_P2P_UNKNOWN = 0,	/* not allowed to look: reason says at what */
	FABREX_P2P_NO,
	FABREX_P2P_YES,
};

enum fabrex_p2p_path {
	FABREX_P2P_PATH_NONE = 0,
	FABREX_P2P_PATH_SAME,	/* one device */
	FABREX_P2P_PATH_SWITCH,	/* a common PCIe switch turns it round */
	FABREX_P2P_PATH_ROOT,	/* up to the root complex and down again */
};

enum fabrex_p2p_reason {
	FABREX_P2P_OK = 0,
	FABREX_P2P_NO_DEVICE,	/* not there, or all ones */
	FABREX_P2P_NO_KERNEL,	/* kernel without PCI_P2PDMA */
	FABREX_P2P_ACS,		/* ACS redirect, root complex not allowed */
	FABREX_P2P_ROOT,	/* only the root complex in common, likewise */
	FABREX_P2P_MEMORY_OFF,	/* device's memory decoding is off */
	FABREX_P2P_POWER,	/* device sleeps (D3) */
	FABREX_P2P_RESET,	/* link down or secondary bus in reset */
	FABREX_P2P_NO_BAR,	/* it has no memory to offer */
	FABREX_P2P_BAR_SPACE,	/* its BAR got no address */
	FABREX_P2P_IOMMU,	/* the IOMMU stands in the way */
	FABREX_P2P_NO_MASTER,	/* the initiator may not be bus master */
	FABREX_P2P_REFUSED,	/* the kernel says no; cause not found */
	FABREX_P2P_UNREADABLE,	/* sysfs does not let this process look */
};

struct fabrex_p2p {
	uint32_t verdict;	/* enum fabrex_p2p_verdict */
	uint32_t path;		/* enum fabrex_p2p_path */
	uint32_t reason;	/* enum fabrex_p2p_reason */
	uint32_t distance;	/* bridges on the way, as Linux counts */
	uint32_t iommu;		/* 1: the initiator's addresses are translated */
	uint32_t bits;		/* of the register that blocks, e.g. ACS */
	char initiator[16];	/* "0000:03:00.0" */
	char target[16];
	char common[16];	/* lowest bridge in common, or "" */
	char blocker[16];	/* device that blocks, or "" */
	char text[256];		/* sentence: verdict, path, culprit */
	char remedy[256];	/* sentence, or "" */
	uint64_t reserved[4];
};

/*
 * Can initiator read and write target's memory? Each is a PCI address
 * ("0000:04:00.0", "04:00.0") or a local port ("fabrex0", "a.0"). Looks at
 * sysfs and asks the kernel; sees ACS bits only with CAP_SYS_ADMIN, and without
 * them relies on the kernel's answer. size: sizeof(struct fabrex_p2p) of the
 * caller. 0 whatever the verdict is; -EINVAL a name that makes no sense.
 * Thread-safe, keeps no state.
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
