/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What PCI functions are called, and what they are for, where their identity
 * says it: switches, NTBs, DMA engines, commercial boxes. Called by pcitree.c,
 * machine.c and doctor.c.
 */
#ifndef CTL_PCINAME_H
#define CTL_PCINAME_H

#include <stdbool.h>
#include <stddef.h>

#include "pcitree.h"

/* The maker of a switch's chip, by what can be done with it. */
enum switch_family {
	SWITCH_PLAIN, SWITCH_SWITCHTEC_PFX, SWITCH_SWITCHTEC_PAX,
	SWITCH_SWITCHTEC, SWITCH_BROADCOM,
	SWITCH_ADAPTER		/* of a cable to another switch */
};

enum ntb_family { NTB_OTHER, NTB_SWITCHTEC, NTB_INTEL, NTB_AMD, NTB_IDT,
	NTB_EPF };

/* Of an identity that is in the table here; else FUNCTION_OTHER. */
enum function_kind pci_name_kind(const struct pci_function *f);
/*
 * By the table here, else by udev's database of hardware, if this machine has
 * it. "" if nothing is known.
 */
void pci_name_text(const struct pci_function *f, char *text, size_t size);
enum switch_family pci_name_switch(const struct pci_function *f);
bool pci_name_is_switchtec(const struct pci_function *f);
enum ntb_family pci_name_ntb(const struct pci_function *f);

#endif
