// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies between a buffer and a region of this port that has no address in the
 * process: memory of a device, by its runtime, and dma-bufs, whose exporter
 * wants to be told when the processor uses them. Called by remote.c and
 * copier.c, with no lock held while bytes move.
 */
#include "memory/memory.h"
#include "state.h"

static uint8_t copy_device(const struct loop_region *r, uint64_t offset,
			   void *buffer, uint64_t length, bool read)
{
	return fxi_memory_copy(r->memory, (char *)r->addr + offset, buffer,
			       length, read) ? FABREX_WC_OK : FABREX_WC_RFAULT;
}

uint8_t fxi_loop_device_copy(struct transport *t, uint32_t index,
			     uint64_t offset, void *buffer, uint64_t length,
			     bool read)
{
	const struct loop_region *r = &t->state->regions[index];

	if (r->kind == SEGMENT_MR_DEVICE)
		return copy_device(r, offset, buffer, length, read);
	if (r->file)
		return fxi_loop_file_copy(r->file, offset, buffer, length,
					  read);
	return FABREX_WC_RFAULT;
}
