/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libfabrex: determines whether one PCI device can access another's memory
 * directly, by which path, and if not, what blocks it: fabrex_p2p_query(3). And
 * which local ports there are, and which devices are near them:
 * fabrex_port_list(3), fabrex_device_list(3).
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

/* ---- local ports: fabrex_port_list(3) ----------------------------------- */

/* A port of this machine, and the GPUs that are nearest to it. */
struct fabrex_local_port {
	char device[16];	/* "fabrex0", for fabrex_open() */
	char name[32];		/* in the fabric, "a.0" */
	char host[32];		/* this host in the fabric, "a" */
	char fabric[32];
	char driver[32];	/* backend of the kernel, "fabrex_draco" */
	char pci[16];		/* "0000:03:00.0", "": unknown */
	uint64_t guid;		/* the same on every machine and boot */
	uint64_t max_transfer;	/* bytes */
	int32_t numa_node;	/* -1: unknown, or the machine has none */
	uint32_t link_up;	/* 0 or 1: into the fabric */
	uint32_t alive;		/* 0: it does not work, and is being reset */
	uint32_t may_open;	/* 0 or 1: this process has access to it */
	uint32_t emulated;	/* 0 or 1: the switch is a software model */
	uint32_t peer;		/* its peer number */
	uint32_t max_peers;
	uint32_t generation;
	uint32_t max_queues;
	uint32_t max_mrs;
	uint32_t pcie_speed;	/* of its PCIe link now, MT/s; 0: unknown */
	uint32_t pcie_width;	/* lanes; 0: unknown */
	uint32_t rate;		/* of the slowest PCIe link between it and the
				 * processor, Mbit/s; 0: unknown */
	uint32_t path;		/* enum fabrex_p2p_path, to near */
	uint32_t distance;	/* bridges between it and near */
	uint32_t gpu_path;	/* to those in gpu[] */
	uint32_t gpu_distance;
	uint32_t gpus;		/* how many are nearest */
	char gpu[8][16];	/* their addresses; of more than 8, some */
	uint64_t reserved[4];	/* 0 */
};

/*
 * Stores the first n local ports, and returns how many there are, 0 if this
 * machine is in no fabric. near: a PCI address or a local port: the nearest
 * port comes first; NULL: in the order of devices. Distances follow the PCI
 * topology; whether the kernel lets data pass, fabrex_p2p_query() says. size:
 * sizeof(struct fabrex_local_port) as the caller was compiled. -EINVAL: there is
 * no such device. Ports that disappear meanwhile are left out. Thread-safe and
 * stateless; needs no privilege, opens no port.
 */
int fabrex_port_list(const char *near, struct fabrex_local_port *ports,
		     size_t n, size_t size);

/* ---- what is near them: fabrex_device_list(3) --------------------------- */

enum fabrex_device_kind {
	FABREX_DEVICE_GPU = 1,
	FABREX_DEVICE_NVME = 2,
	FABREX_DEVICE_NIC = 4,
	FABREX_DEVICE_FPGA = 8,
};

/* A PCI device of this machine, of a kind that can be composed. */
struct fabrex_local_device {
	char pci[16];		/* "0000:04:00.0" */
	uint32_t kind;		/* enum fabrex_device_kind */
	uint32_t class_code;	/* of PCI, 24 bits */
	uint32_t vendor;	/* PCI IDs */
	uint32_t device;
	int32_t numa_node;	/* -1: unknown, or the machine has none */
	uint32_t pcie_speed;	/* as in struct fabrex_local_port */
	uint32_t pcie_width;
	uint32_t rate;
	uint32_t path;		/* enum fabrex_p2p_path, to near */
	uint32_t distance;	/* bridges between it and near */
	uint64_t reserved[4];	/* 0 */
};

/*
 * Stores the first n devices of these kinds, and returns how many there are.
 * near: a PCI address or a local port: the nearest device comes first; NULL: in
 * the order of addresses. kinds: FABREX_DEVICE_* or'ed, 0: all. size, errors and
 * guarantees as for fabrex_port_list(); also -EINVAL: unknown kinds.
 */
int fabrex_device_list(const char *near, uint32_t kinds,
		       struct fabrex_local_device *devices, size_t n,
		       size_t size);
/* "gpu", "nvme", "nic", "fpga"; never NULL. */
const char *fabrex_device_kind_str(int kind);

#ifdef __cplusplus
}
#endif

#endif
