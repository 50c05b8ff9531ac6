/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Endpoint functions (GPU, drive, NIC, FPGA classes): what slot.c plugs into a
 * partition. A new instance, with fresh memory, for each binding.
 */
#ifndef EMU_ENDPOINT_H
#define EMU_ENDPOINT_H

#include <stdint.h>

#include "function.h"

/* BAR 0: registers (docs/gpu.md). BAR 2: memory, mmap-able (size > 0). */
#define ENDPOINT_BAR_REGS	0
#define ENDPOINT_BAR_MEMORY	2

struct seat;

struct endpoint_desc {
	const char *name;		/* as in the topology */
	unsigned int kind;		/* DRACO_EP_* */
	uint16_t vendor, device;
	uint64_t size;			/* of its memory BAR, power of two or 0 */
	uint8_t link_width;
	const atomic_bool *link;	/* NULL, or whether it can be reached */
	struct seat *seat;		/* NULL, or a GPU's place in a mesh */
	unsigned int host;		/* that it is bound to */
};

struct endpoint;
int endpoint_create(const struct endpoint_desc *desc, const char *socket,
		    unsigned int instance, void (*bars)(void *arg), void *arg,
		    struct endpoint **out);
void endpoint_destroy(struct endpoint *e);
struct function *endpoint_function(struct endpoint *e);

#endif
