/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages of the vfio-user protocol as they are on the wire (host order).
 * Included by the server, its tests and its fuzzer.
 */
#ifndef EMU_VFIO_USER_PROTO_H
#define EMU_VFIO_USER_PROTO_H

#include <stdint.h>

enum vu_command {
	VU_VERSION = 1,
	VU_DMA_MAP = 2,
	VU_DMA_UNMAP = 3,
	VU_DEVICE_GET_INFO = 4,
	VU_DEVICE_GET_REGION_INFO = 5,
	VU_DEVICE_GET_REGION_IO_FDS = 6,
	VU_DEVICE_GET_IRQ_INFO = 7,
	VU_DEVICE_SET_IRQS = 8,
	VU_REGION_READ = 9,
	VU_REGION_WRITE = 10,
	VU_DMA_READ = 11,
	VU_DMA_WRITE = 12,
	VU_DEVICE_RESET = 13,
	VU_DIRTY_PAGES = 14,
	VU_REGION_WRITE_MULTI = 15,
	VU_COMMANDS,
};

#define VU_FLAG_TYPE		0x0fu	/* 0 command, 1 reply */
#define VU_FLAG_REPLY		0x01u
#define VU_FLAG_NO_REPLY	0x10u
#define VU_FLAG_ERROR		0x20u

struct vu_header {
	uint16_t id;
	uint16_t command;
	uint32_t size;			/* with this header */
	uint32_t flags;
	uint32_t error;
};

struct vu_version {
	uint16_t major, minor;
	/* JSON, NUL terminated */
};

struct vu_dma_map {
	uint32_t argsz, flags;		/* 1 read, 2 write */
	uint64_t offset, addr, size;
};

struct vu_dma_unmap {
	uint32_t argsz, flags;		/* 2: all */
	uint64_t addr, size;
};

struct vu_device_info {
	uint32_t argsz, flags;		/* 1 reset, 2 PCI */
	uint32_t num_regions, num_irqs;
};

struct vu_region_info {
	uint32_t argsz, flags;		/* 1 read, 2 write, 4 mmap, 8 caps */
	uint32_t index, cap_offset;
	uint64_t size, offset;
};

struct vu_sparse_cap {			/* one area */
	uint16_t id, version;
	uint32_t next;
	uint32_t nr_areas, reserved;
	uint64_t offset, size;
};

struct vu_irq_info {
	uint32_t argsz, flags;		/* 1 eventfd, 2 maskable, ... */
	uint32_t index, count;
};

struct vu_irq_set {
	uint32_t argsz, flags;
	uint32_t index, start, count;
	/* bools */
};

#define VU_IRQ_DATA_NONE	0x01u
#define VU_IRQ_DATA_BOOL	0x02u
#define VU_IRQ_DATA_EVENTFD	0x04u
#define VU_IRQ_DATA_MASK	0x07u
#define VU_IRQ_MASK		0x08u
#define VU_IRQ_UNMASK		0x10u
#define VU_IRQ_TRIGGER		0x20u
#define VU_IRQ_ACTION_MASK	0x38u

struct vu_access {
	uint64_t offset;
	uint32_t region, count;
	/* data */
};

/*
 * DMA_READ, DMA_WRITE, from the server to the client. A DMA_WRITE is answered
 * by this without data, or by nothing.
 */
struct vu_dma_access {
	uint64_t addr, count;
	/* data */
};

struct vu_multi {
	uint64_t count;
	/* struct vu_multi_write */
};

struct vu_multi_write {
	uint64_t offset;
	uint32_t region, count;
	uint8_t data[8];
};

#endif
