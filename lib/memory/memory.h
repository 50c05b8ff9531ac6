/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an address points to, and dma-bufs of device memory. Called by mr.c,
 * cache.c and the public functions in memory.c; knows no port.
 */
#ifndef LIB_MEMORY_H
#define LIB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <fabrex/fabrex.h>

/*
 * AUTO: cannot fail, HOST if nobody knows the address. HIP, CUDA: loads the
 * run time, and fails with a sentence unless it knows the address.
 */
int fxi_memory_find(const void *addr, uint32_t kind,
		    struct fabrex_memory *memory);
/*
 * The same for a region that is to be made: -ENOTSUP for host memory of AUTO
 * that would not stay where it is.
 */
int fxi_memory_find_for_region(const void *addr, uint32_t kind,
			       struct fabrex_memory *memory);
/* dma-buf of device memory that was found; the caller closes *fd. */
int fxi_memory_export(const struct fabrex_memory *memory, const void *addr,
		      size_t length, int *fd, uint64_t *offset);
/*
 * Between device memory and a buffer of the host, by the run time; done when
 * it returns. Not ordered with what the application's streams do, and so not
 * held up by it, but takes as long as the device does. False: it cannot, or
 * failed.
 */
bool fxi_memory_copy(uint32_t kind, void *addr, void *buffer, size_t length,
		     bool read);
bool fxi_memory_copies(uint32_t kind);
/* Give back what is kept for the next copy, as far as no copy is using it. */
void fxi_memory_rest(void);
/* In the child of a fork: what is kept is the parent's. */
void fxi_memory_forked(void);
/*
 * Copies of the application's that have returned are over, now and from now on:
 * some run times have such that are not otherwise. Waits for no kernel; without
 * effect on memory that has no id.
 */
void fxi_memory_registered(uint32_t kind, const void *addr);
/* Now, of any memory; that without an id may wait for kernels. */
void fxi_memory_settle(uint32_t kind, const void *addr);
/* Of the allocation at addr now; 0 if there is none or it has none. */
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
