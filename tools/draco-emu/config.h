/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PCI Express configuration space of one function. Only function.c uses it,
 * in the function's thread.
 */
#ifndef EMU_CONFIG_H
#define EMU_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "function.h"

#define CONFIG_SIZE	4096u

/* What a write did. */
#define CONFIG_COMMAND	(1u << 0)	/* bus master, memory enable or power */
#define CONFIG_BARS	(1u << 1)
#define CONFIG_FLR	(1u << 2)

struct config {
	uint8_t data[CONFIG_SIZE];
	uint8_t writable[CONFIG_SIZE];	/* bit by bit */
	struct function_bar bar[FUNCTION_BARS];	/* present sizes */
	uint64_t full_size;		/* of the resizable BAR */
	unsigned int resizable;		/* its number, FUNCTION_BARS: none */
};

void pci_config_init(struct config *c, const struct function_desc *d);

/* Within CONFIG_SIZE. */
void pci_config_read(const struct config *c, uint32_t offset, void *buf,
		 size_t len);
unsigned int pci_config_write(struct config *c, uint32_t offset, const void *buf,
			  size_t len);

/*
 * Back to power-on. @keep_bars: after an FLR, where the client restores what
 * it shows to the guest as BARs without writing them again. Sizes are kept
 * likewise.
 */
void pci_config_reset(struct config *c, bool keep_bars);

/* Enabled, and not asleep. */
bool pci_config_bus_master(const struct config *c);
bool pci_config_memory(const struct config *c);
/* As programmed, whether decoded or not. */
uint64_t pci_config_bar(const struct config *c, unsigned int bar);

#endif
