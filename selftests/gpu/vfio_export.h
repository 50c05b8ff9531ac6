/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of a PCI device as a dma-buf, exported by vfio-pci (kernel 7.2). For
 * test programs; all functions return 0 or more, or -errno.
 */
#ifndef SELFTESTS_VFIO_EXPORT_H
#define SELFTESTS_VFIO_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vfio_export;

/* Take the device from its driver and give it to vfio-pci. */
int vfio_export_bind(const char *bdf);

/*
 * Open device "0000:04:00.0", which is bound to vfio-pci, with its group and a
 * container of its own. Closing takes all its dma-bufs away from importers.
 */
int vfio_export_open(const char *bdf, struct vfio_export **out);
void vfio_export_close(struct vfio_export *v);

/*
 * An eventfd that the kernel signals when it wants the device back: removal
 * waits, importers keep their mappings, until vfio_export_close().
 */
int vfio_export_request_fd(struct vfio_export *v);

/* Bytes of a BAR; 0: there is none. */
uint64_t vfio_export_bar(struct vfio_export *v, unsigned int bar);

/* A new dma-buf of [offset, offset + length) of a BAR, length 0: to its end. */
int vfio_export_dmabuf(struct vfio_export *v, unsigned int bar, uint64_t offset,
		       uint64_t length);

/* Map part of a BAR for loads and stores; munmap() ends it. */
int vfio_export_map(struct vfio_export *v, unsigned int bar, uint64_t offset,
		    size_t length, void **out);

/*
 * Three ways to revoke; a reset through sysfs is none. A reset lets importers map again when it returns;
 * with memory decoding off, or in D3, they cannot until it is undone.
 */
int vfio_export_reset(struct vfio_export *v);
int vfio_export_memory(struct vfio_export *v, bool on);
int vfio_export_sleep(struct vfio_export *v, bool on);

#endif
