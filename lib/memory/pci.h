/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PCI addresses as Linux writes them, "0000:04:00.0". For lib/memory/ only.
 */
#ifndef LIB_MEMORY_PCI_H
#define LIB_MEMORY_PCI_H

#include <stddef.h>
#include <stdio.h>

static inline void pci_write(char *out, size_t size, unsigned int domain,
			     unsigned int bus, unsigned int device,
			     unsigned int function)
{
	snprintf(out, size, "%04x:%02x:%02x.%x", domain, bus & 0xff,
		 device & 0x1f, function & 7);
}

/* From how runtimes write it: upper case, domain of 4 or 8 digits. */
static inline void pci_rewrite(char *out, size_t size, const char *text)
{
	unsigned int domain, bus, device, function;

	if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device,
		   &function) == 4)
		pci_write(out, size, domain, bus, device, function);
}

#endif
