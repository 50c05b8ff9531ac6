/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What this machine lets pass through its root complex, and what its kernel
 * was built with. Called by the other files of lib/p2p/.
 */
#ifndef LIB_P2P_HOST_H
#define LIB_P2P_HOST_H

#include "p2p/pci.h"

enum kernel_option { OPTION_UNKNOWN, OPTION_NO, OPTION_YES };

/* Whether Linux sends requests through the root complex, and why (not). */
struct host_verdict {
	bool allowed;
	int unreadable;		/* errno: it could not be looked at */
	char text[112];		/* "host bridge 8086:29c0 is not on ..." */
};

void fxi_host_allows(const char *root, const struct pci_chain *a,
		     const struct pci_chain *b, struct host_verdict *v);
/* Whether the kernel has CONFIG_PCI_P2PDMA, from its files. */
enum kernel_option fxi_host_p2pdma(const char *root);
/* Type of the device's IOMMU group: "DMA-FQ", "identity"; "" without. */
void fxi_host_iommu(const char *root, const char *device, char *type,
		    size_t size);
/* Whether devices of such a group have their addresses translated. */
bool fxi_host_translates(const char *type);

#endif
