/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PCI devices as sysfs shows them: configuration space, resources, and the
 * bridges above. Called by the other files of lib/p2p/.
 */
#ifndef LIB_P2P_PCI_H
#define LIB_P2P_PCI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCI_NAME_LEN	16	/* "0000:03:00.0", domains of up to 5 digits */
#define PCI_DEPTH	40	/* more bridges in a row than that are garbage */
#define PCI_CONFIG_SIZE	4096
#define PCI_BARS	6

/* The few registers that matter here; PCI Express Base Specification, 7.5. */
#define PCI_COMMAND		0x04
#define PCI_COMMAND_MEMORY	0x0002
#define PCI_COMMAND_MASTER	0x0004
#define PCI_HEADER_TYPE		0x0e
#define PCI_BAR0		0x10
#define PCI_SECONDARY_BUS	0x19
#define PCI_SUBORDINATE_BUS	0x1a
#define PCI_CAPABILITIES	0x34
#define PCI_BRIDGE_CONTROL	0x3e
#define PCI_BRIDGE_CTL_RESET	0x0040
#define PCI_CAP_PM		0x01
#define PCI_CAP_EXPRESS		0x10
#define PCI_EXT_CAP_ACS		0x000d
#define PCI_ACS_RR		0x0004	/* P2P Request Redirect */
#define PCI_ACS_CR		0x0008	/* P2P Completion Redirect */
#define PCI_ACS_EC		0x0020	/* P2P Egress Control */
#define PCI_ACS_REDIR		(PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC)
#define PCI_TYPE_ROOT_PORT	0x4
#define PCI_TYPE_UPSTREAM	0x5
#define PCI_TYPE_DOWNSTREAM	0x6

struct pci_addr {
	uint32_t domain;
	uint8_t bus, device, function;
};

/* A line of the file "resource". */
struct pci_range {
	uint64_t start, end, flags;
};

#define PCI_RANGE_EA		0x00000020u	/* Enhanced Allocation, no BAR */
#define PCI_RANGE_MEM		0x00000200u
#define PCI_RANGE_PREFETCH	0x00002000u
#define PCI_RANGE_UNSET		0x20000000u
#define PCI_RANGES		17

struct pci_dev {
	char name[PCI_NAME_LEN];
	struct pci_addr addr;
	bool absent;		/* a slot's device that is yet to come */
	int unreadable;		/* errno: we may not, or cannot, look at it */
	size_t config_len;	/* what could be read, as far as wanted */
	size_t config_size;	/* what there is */
	uint8_t config[PCI_CONFIG_SIZE];	/* 0 where nobody has looked */
	unsigned int ranges;
	struct pci_range range[PCI_RANGES];
	char power[8];		/* "D3hot", "D3cold", or "": awake */
	bool driver;		/* one is bound */
	bool virtual;		/* an SR-IOV Virtual Function */
};

/* A device, then the bridges above it up to the root bus. */
struct pci_chain {
	unsigned int n;
	char host[PCI_NAME_LEN];	/* "pci0000:00" */
	char host_path[1024];		/* its directory */
	struct pci_dev *dev[PCI_DEPTH];
};

/* "0000:03:00.0", "03:00.0", all of @text. False: it is none. */
bool fxi_pci_parse(const char *text, struct pci_addr *addr);
void fxi_pci_name(const struct pci_addr *addr, char name[PCI_NAME_LEN]);

/*
 * What is at @addr and above. 0, or a negative errno: -ENODEV if there is no
 * such device, -EUCLEAN if sysfs makes no sense, -ENOMEM, else why it cannot be
 * looked at. @chain can be freed
 * in any case.
 */
int fxi_pci_chain(const char *root, const struct pci_addr *addr,
		  struct pci_chain *chain);
void fxi_pci_chain_free(struct pci_chain *chain);
/* One device alone; NULL if it cannot be read. For free(). */
struct pci_dev *fxi_pci_read(const char *root, const char *name);

/* Registers; 0 beyond what could be read. */
uint16_t fxi_pci_word(const struct pci_dev *dev, size_t at);
uint32_t fxi_pci_dword(const struct pci_dev *dev, size_t at);
bool fxi_pci_gone(const struct pci_dev *dev);
bool fxi_pci_bridge(const struct pci_dev *dev);
/* Offsets of capabilities, 0 if there is none. */
size_t fxi_pci_cap(const struct pci_dev *dev, uint8_t id);
size_t fxi_pci_ext_cap(const struct pci_dev *dev, uint16_t id);
/* Whether all extended capabilities there are could be seen. */
bool fxi_pci_ext_known(const struct pci_dev *dev);
/* Port type of its Express capability, or -1. */
int fxi_pci_type(const struct pci_dev *dev);
/* Bits of its ACS Control register that redirect. */
uint16_t fxi_pci_acs_redirect(const struct pci_dev *dev);
uint64_t fxi_pci_range_size(const struct pci_range *range);

#endif
