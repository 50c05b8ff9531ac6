/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Endpoint functions (GPU, drive, NIC, FPGA classes): what slot.c plugs into a
 * partition. A new instance, with fresh memory, for each binding.
 */
#ifndef EMU_ENDPOINT_H
#define EMU_ENDPOINT_H

#include <stdint.h>

#include "function.h"

/*
 * BAR 0: 64 KiB registers, read-only but scratch:
 *   0x00 magic "DREP", 0x04 kind (DRACO_EP_*), 0x08 instance number,
 *   0x0c scratch, 0x10 VRAM bytes (64 bits), 0x20 name (32 bytes).
 * BAR 2: the endpoint's memory, 64-bit prefetchable, mmap-able (size > 0).
 */
#define ENDPOINT_MAGIC		0x50455244u
#define ENDPOINT_BAR_REGS	0
#define ENDPOINT_BAR_MEMORY	2

struct endpoint_desc {
	const char *name;		/* as in the topology */
	unsigned int kind;		/* DRACO_EP_* */
	uint16_t vendor, device;
	uint64_t size;			/* of its memory BAR, power of two or 0 */
	uint8_t link_width;
};

struct endpoint;
int endpoint_create(const struct endpoint_desc *desc, const char *socket,
		    unsigned int instance, void (*bars)(void *arg), void *arg,
		    struct endpoint **out);
void endpoint_destroy(struct endpoint *e);
struct function *endpoint_function(struct endpoint *e);

#endif
