/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an address points to; dma-bufs and copies of device memory. What
 * lib/memory offers to the core, to transports and to collectives; it knows no
 * port.
 */
#ifndef LIB_MEMORY_H
#define LIB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <fabrex/fabrex.h>

/*
 * AUTO: cannot fail; HOST if no runtime knows the address. HIP, CUDA: loads the
 * runtime, and fails unless it knows the address.
 */
int fxi_memory_find(const void *addr, uint32_t kind,
		    struct fabrex_memory *memory);
/*
 * The same for a region that is to be registered: with AUTO, -ENOTSUP for host
 * memory that would not stay where it is.
 */
int fxi_memory_find_for_region(const void *addr, uint32_t kind,
			       struct fabrex_memory *memory);
/* The dma-buf of device memory that was found; the caller closes *fd. */
int fxi_memory_export(const struct fabrex_memory *memory, const void *addr,
		      size_t length, int *fd, uint64_t *offset);
/*
 * Copy between device memory and host memory, by the runtime; complete when it
 * returns. Not ordered with the application's streams, and so not delayed by
 * them, but takes as long as the device does. False: it failed, or there is no
 * way to copy.
 */
bool fxi_memory_copy(uint32_t kind, void *addr, void *buffer, size_t length,
		     bool read);
bool fxi_memory_copies(uint32_t kind);
/* Free what is kept for the next copy, unless a copy is using it. */
void fxi_memory_rest(void);
/* In the child of a fork: forget it; it is the parent's. */
void fxi_memory_forked(void);
/*
 * The application's copies that have returned are complete, now and from now
 * on; with some runtimes they are not otherwise. Waits for no kernel. No effect
 * on memory without an id.
 */
void fxi_memory_registered(uint32_t kind, const void *addr);
/*
 * The same once, for any memory. Of some, streams have to be waited for, kernels
 * in them too: false if it has to, and may not.
 */
bool fxi_memory_settle(uint32_t kind, const void *addr, bool may_wait);
/* The id of the allocation at addr now; 0: there is none. */
uint64_t fxi_memory_id(uint32_t kind, const void *addr);

/* The whole pages that hold a range. */
static inline uintptr_t page_down(uintptr_t addr)
{
	return addr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static inline uintptr_t page_up(uintptr_t addr)
{
	return page_down(addr + (uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static inline bool fxi_memory_is_device(uint32_t kind)
{
	return kind == FABREX_MEMORY_HIP || kind == FABREX_MEMORY_CUDA;
}

#endif
