/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The PCI functions of this machine as its kernel shows them in sysfs, as a tree.
 * Nothing is written, no privilege is needed, and what cannot be read without
 * one is marked as unknown. Called by machine.c, pcigraph.c, doctor.c and p2p.c.
 */
#ifndef CTL_PCITREE_H
#define CTL_PCITREE_H

#include "p2p/p2p.h"

enum function_kind {
	FUNCTION_OTHER, FUNCTION_GPU, FUNCTION_NVME, FUNCTION_NIC,
	FUNCTION_FPGA, FUNCTION_ROOT_PORT, FUNCTION_UPSTREAM,
	FUNCTION_DOWNSTREAM, FUNCTION_BRIDGE, FUNCTION_HOST_BRIDGE,
	FUNCTION_NTB, FUNCTION_DMA, FUNCTION_MANAGEMENT, FUNCTION_FPORT,
	FUNCTION_KINDS
};

enum acs_state {
	ACS_UNKNOWN,		/* it may not be read */
	ACS_NONE,		/* there is no such capability */
	ACS_OFF,		/* nothing is redirected */
	ACS_REDIRECT
};

struct pci_link {
	uint32_t speed;		/* MT/s; 0: unknown, or no link */
	uint32_t width;
};

struct pci_function {
	struct pci_addr addr;
	char name[PCI_NAME_LEN];
	char host[PCI_NAME_LEN];	/* "pci0000:00"; "": makes no sense */
	struct pci_function *up;	/* the bridge above; NULL: a root bus */
	unsigned int depth;
	size_t below;		/* functions below it, which follow it */
	uint32_t vendor, device, subvendor, subdevice, class_code;
	enum function_kind kind;
	bool supposed;		/* kind of a bridge: from its place alone */
	bool express;
	struct pci_link link, most;	/* now, and what it is capable of */
	int numa_node;		/* -1: none */
	char driver[32];
	char physfn[PCI_NAME_LEN];	/* it is a Virtual Function of this */
	unsigned int vfs;	/* of this one */
	char power[8];		/* "D3hot", "D3cold"; "": awake */
	bool gone;		/* it does not answer */
	int unreadable;		/* errno of its configuration space */
	enum acs_state acs;
	uint16_t acs_control;	/* if it has one */
	uint8_t secondary;	/* bus below a bridge; 0: unknown */
	char slot[16];		/* of a bridge: the hot-plug slot below it */
	char group[16], group_type[24];	/* of its IOMMU group; "": none */
};

struct pci_tree {
	struct pci_function *v;	/* each before what is below it */
	size_t n;
	size_t odd;		/* entries that make no sense, left out */
	int unreadable;		/* errno: the list itself cannot be read */
};

/* Of the machine that @env names. To be freed in any case. */
void pci_tree_read(const struct p2p_env *env, struct pci_tree *tree);
void pci_tree_free(struct pci_tree *tree);
const struct pci_function *pci_tree_find(const struct pci_tree *tree,
					 const char *name);
/* Last component of where a link of a function leads; "" if there is none. */
void function_link_word(const struct p2p_env *env, const char *name,
			const char *file, char *to, size_t size);
bool function_is_bridge(const struct pci_function *f);
/* What both ends of the link above it are capable of; speed 0: not known. */
struct pci_link function_attainable(const struct pci_function *f);
/* Its link runs below that. */
bool function_is_slow(const struct pci_function *f);
/* It or a bridge above it is in D3cold: reading registers would wake it up. */
bool function_is_cold(const struct pci_function *f);
/* A port whose ACS only root may read. */
bool function_hides_acs(const struct pci_function *f);
/* "upstream-port"; never NULL. */
const char *function_kind_name(enum function_kind kind);
/* All of them; ends with NULL. */
const char *const *function_kind_words(void);
/* "redirect"; NULL: unknown. */
const char *acs_name(enum acs_state acs);

#endif
