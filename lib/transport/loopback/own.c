// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Own regions that have no address for everybody: memory of devices, and
 * dma-bufs, which want to be told when the processor uses them. Called by
 * engine.c, remote.c, assist.c and copier.c; nobody that does holds a lock while
 * bytes move.
 */
#include <errno.h>
#include <string.h>

#include "memory/memory.h"
#include "state.h"

static uint8_t copy_device(const struct loop_region *r, uint64_t offset,
			   void *buffer, uint64_t length, bool read)
{
	return fxi_memory_copy(r->memory, (char *)r->addr + offset, buffer,
			       length, read) ? FABREX_WC_OK : FABREX_WC_RFAULT;
}

bool fxi_loop_own_entry(const struct transport *t, uint64_t key,
			struct segment_mr *mr)
{
	const struct loop_region *r = &t->state->regions[key &
							 (SEGMENT_MRS - 1)];

	if (!key || r->key != key)
		return false;
	mr->key = key;
	mr->length = r->length;
	mr->place = r->place;
	mr->access = r->access;
	mr->kind = r->kind;
	memcpy(mr->peers, &r->peers, sizeof(mr->peers));
	return true;
}

uint8_t fxi_loop_own_copy(struct transport *t, uint32_t index, uint64_t offset,
			  void *buffer, uint64_t length, bool read)
{
	const struct loop_region *r = &t->state->regions[index];

	if (r->kind == SEGMENT_MR_DEVICE)
		return copy_device(r, offset, buffer, length, read);
	if (r->file)
		return fxi_loop_file_copy(r->file, offset, buffer, length,
					  read);
	return FABREX_WC_RFAULT;
}
