/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bus address -> memory of this process. One map per function (the client's
 * memory) and one per partition (memory BARs of endpoints). Any thread.
 */
#ifndef EMU_DMA_MAP_H
#define EMU_DMA_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DMA_PROT_READ		1u	/* the device may read it */
#define DMA_PROT_WRITE		2u	/* the device may write it */

struct dma_map;
struct dma_region;

/**
 * struct dma_hold - memory of a bus address, valid until dma_put()
 * @ptr:    local pointer to the first byte
 * @len:    bytes that can be used from there on, 1 to what was asked for: a
 *          range that crosses regions takes several holds
 * @cookie: of the region: NULL for a client's memory; for a partition's map
 *          what the endpoint was plugged with
 *
 * A hold costs two uncontended atomic operations. Whoever has one must not
 * sleep or wait for another thread, and should move at most about 1 MiB per
 * hold: an unmap (guest memory hot-unplug, reset, disconnect, dead endpoint)
 * waits for it. Any number of holds, on any maps, may be had at once.
 */
struct dma_hold {
	void *ptr;
	size_t len;
	void *cookie;
	struct dma_map *map;
	struct dma_region *region;
	uint32_t token;
};

/*
 * dma_get: 0; -ENXIO: no region there; -EFAULT: not permitted, or map
 * disabled; -ENODATA: a region with no memory behind it.
 * dma_put: 0, or -EFAULT: the memory vanished during the hold (its client
 * shrank it): what was read is zeros and what was written is lost.
 */
int dma_get(struct dma_map *m, uint64_t addr, size_t len, unsigned int prot,
	    struct dma_hold *h);
int dma_put(struct dma_hold *h);

/* ---- For those who fill a map: function.c, slot.c. ---- */

/*
 * @max: regions at most. @on_fault (may be NULL) is told, in the thread that
 * was hit and outside signal context, that a region's memory vanished; the
 * hold still counts, so it must not wait for anything.
 */
struct dma_map *dma_map_create(unsigned int max, bool enabled,
			       void (*on_fault)(void *arg), void *arg);
void dma_map_destroy(struct dma_map *m);

/*
 * dma_map_add_fd: map @len bytes at @offset of @fd at @addr; @fd stays the
 * caller's. @fd < 0: an address range with no memory behind it (accesses
 * fail). -EINVAL range or alignment, -EEXIST overlaps, -ENOSPC too many,
 * -EBADF not memory (tmpfs, memfd, hugetlbfs), -EOVERFLOW fd is shorter than
 * that, or from mmap().
 * dma_map_add_ptr: the same for memory that is mapped already.
 */
int dma_map_add_fd(struct dma_map *m, uint64_t addr, uint64_t len,
		   unsigned int prot, int fd, uint64_t offset);
int dma_map_add_ptr(struct dma_map *m, uint64_t addr, uint64_t len,
		    unsigned int prot, void *ptr, void *cookie);

/*
 * Take regions away and wait until no hold can reach them. dma_map_del: the
 * one region that is exactly [addr, addr+len), else -ENOENT. dma_map_del_range:
 * all that lie in the range, none is no error; -EINVAL and nothing is done if
 * the range cuts one.
 */
int dma_map_del(struct dma_map *m, uint64_t addr, uint64_t len);
int dma_map_del_range(struct dma_map *m, uint64_t addr, uint64_t len);
void dma_map_clear(struct dma_map *m);

/* Off: every dma_get() fails; returns when no hold is left. */
void dma_map_enable(struct dma_map *m, bool on);
bool dma_map_enabled(struct dma_map *m);
unsigned int dma_map_count(struct dma_map *m);

#endif
