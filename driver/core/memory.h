/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that processes map, and memory of processes that the device accesses:
 * mappings, DMA pages, pins, the watch page. For object.h and the layers above.
 */
#ifndef _FABREX_MEMORY_H
#define _FABREX_MEMORY_H

#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/scatterlist.h>

#include "context.h"
#include "layout.h"

enum fabrex_map_kind {
	FABREX_MAP_RING,
	FABREX_MAP_DOORBELL,
	FABREX_MAP_WINDOW,
};

/**
 * struct fabrex_map - something that can be mapped, named by a cookie
 * @ref:    owner and mappings
 * @file:   file that the cookie is valid for
 * @kind:   FABREX_MAP_*
 * @page:   cookie: first page offset
 * @npages: size
 * @may:    VM_READ and/or VM_WRITE
 * @live:   there is something behind it; under file->map_lock
 * @pfn:    first page frame of a doorbell or window
 * @dummy:  page that takes the place of what is gone; set once
 * @ring:   memory of the parts of a queue's rings; [0] of the watch page or of a
 *          doorbell that is memory
 * @geo:    where those parts are in the mapping
 * @parked: the next fault of a doorbell that is memory calls @rung with @arg,
 *          under file->map_lock, for reading
 * @rung:   of the backend
 * @arg:    its argument
 */
struct fabrex_map {
	struct kref ref;
	struct fabrex_file *file;
	enum fabrex_map_kind kind;
	unsigned long page;
	unsigned long npages;
	vm_flags_t may;
	bool live;
	unsigned long pfn;
	struct page *dummy;
	void *ring[FABREX_PARTS];
	struct fabrex_geometry geo;
	int parked;
	void (*rung)(void *arg);
	void *arg;
};

/* map.c */
struct inode *fabrex_inode_new(void);
void fabrex_inode_free(struct inode *inode);
struct fabrex_map *fabrex_map_rings(struct fabrex_file *file,
				    const struct fabrex_geometry *geo);
struct fabrex_map *fabrex_map_watch(struct fabrex_file *file, u32 size);
struct fabrex_map *fabrex_map_doorbell(struct fabrex_file *file, bool memory);
struct fabrex_map *fabrex_map_window(struct fabrex_file *file, vm_flags_t may,
				     u64 length);
void fabrex_map_aim(struct fabrex_map *map, phys_addr_t base);
int fabrex_map_insert(struct fabrex_map *map);
void fabrex_map_remove(struct fabrex_map *map);
void fabrex_map_kill(struct fabrex_map *map);
void fabrex_map_put(struct fabrex_map *map);
u64 fabrex_map_offset(const struct fabrex_map *map);
int fabrex_mmap(struct file *filp, struct vm_area_struct *vma);

/* pages.c; what it has for backends is in backend.h */
bool fabrex_coherent(struct device *dev, const struct sg_table *sgt);
bool fabrex_memory_complete(const struct fabrex_mr_memory *memory);

/**
 * struct fabrex_pin - pinned memory of a process
 * @mm:       mm whose pinned_vm is charged; grabbed
 * @port:     port whose count of pinned bytes includes it
 * @npages:   charged and pinned
 * @offset:   of the first byte in the first page
 * @length:   in bytes
 * @writable: the device may write it
 * @mapped:   for DMA
 * @sgt:      pages
 */
struct fabrex_pin {
	struct mm_struct *mm;
	struct fabrex_port *port;
	unsigned long npages;
	unsigned long offset;
	u64 length;
	bool writable;
	bool mapped;
	struct sg_append_table sgt;
};

/* pin.c */
int fabrex_pin_size(u64 addr, u64 length, u64 *npages);
int fabrex_pin(struct fabrex_pin *pin, struct fabrex_port *port, u64 addr,
	       u64 length, bool writable);
int fabrex_pin_map(struct fabrex_pin *pin);
void fabrex_pin_memory(const struct fabrex_pin *pin,
		       struct fabrex_mr_memory *memory);
void fabrex_unpin(struct fabrex_pin *pin);

/**
 * struct fabrex_watcher - tells a cache that a region has become stale
 * @map:      watch page, with a reference; NULL if the region is not watched
 * @entry:    counter in it
 * @inserted: @notifier is registered
 * @lock:     innermost spinlock; protects @armed and the sequence of @notifier
 * @armed:    changes are counted
 * @notifier: for the addresses in the process
 */
struct fabrex_watcher {
	struct fabrex_map *map;
	u32 entry;
	bool inserted;
#if IS_ENABLED(CONFIG_MMU_NOTIFIER)
	spinlock_t lock;
	bool armed;
	struct mmu_interval_notifier notifier;
#endif
};

/* watch.c */
void fabrex_watch_count(struct fabrex_watcher *watch);
int fabrex_watch_init(struct fabrex_watcher *watch, struct fabrex_file *file,
		      const struct fabrex_mr_register *cmd);
int fabrex_watch_pin(struct fabrex_watcher *watch, struct fabrex_pin *pin,
		     struct fabrex_port *port, u64 addr, u64 length,
		     bool writable);
void fabrex_watch_exit(struct fabrex_watcher *watch);
int fabrex_cmd_watch(struct fabrex_ucmd *ucmd);

#endif
