/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Server side of the vfio-user protocol (version 0.1) on one connected socket.
 * function.c runs it in the function's thread; the fuzzer runs it alone.
 */
#ifndef EMU_VFIO_USER_H
#define EMU_VFIO_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VU_REGIONS		9	/* BARs, ROM, config, VGA */
#define VU_REGION_CONFIG	7
#define VU_IRQS			5	/* INTx, MSI, MSI-X, error, request */
#define VU_IRQ_MSIX		2
#define VU_MAX_FDS		16	/* in one message */
#define VU_MAX_DATA		65536u	/* bytes of one region access */
#define VU_MAX_DMA_MAPS		65535u	/* the most that QEMU takes */

/*
 * struct vu_region - @size 0: there is none. @fd >= 0: [@mmap_offset,
 * +@mmap_size) of the region may be mapped, at the same offset of @fd.
 */
struct vu_region {
	uint64_t size;
	int fd;
	uint64_t mmap_offset, mmap_size;
};

/**
 * struct vu_backend - what the server serves
 * @attach: version is negotiated
 * @region: describe region @index (< VU_REGIONS)
 * @read, @write: @count bytes at @offset, which lie within the region
 * @irqs:   vectors of interrupt type @index (< VU_IRQS)
 * @set_irq: eventfd of MSI-X @vector, now the callee's; -1: take it away.
 *          0 or -errno (then @fd stays the caller's)
 * @trigger: raise @vector, by the client's wish
 * @map, @unmap: as dma_map_add_fd(), dma_map_del_range(); @fd stays the caller's
 * @unmap_all: every mapping
 * @reset:  the device
 * All in the thread of vu_serve(); none may be NULL.
 */
struct vu_backend {
	void (*attach)(void *arg);
	void (*region)(void *arg, unsigned int index, struct vu_region *r);
	void (*read)(void *arg, unsigned int region, uint64_t offset,
		     void *buf, size_t count);
	void (*write)(void *arg, unsigned int region, uint64_t offset,
		      const void *buf, size_t count);
	unsigned int (*irqs)(void *arg, unsigned int index);
	int (*set_irq)(void *arg, unsigned int vector, int fd);
	void (*trigger)(void *arg, unsigned int vector);
	int (*map)(void *arg, uint64_t addr, uint64_t len, unsigned int prot,
		   int fd, uint64_t offset);
	int (*unmap)(void *arg, uint64_t addr, uint64_t len);
	void (*unmap_all)(void *arg);
	void (*reset)(void *arg);
};

/*
 * Requests in the other direction: for client memory that came without a file
 * descriptor. One channel for each function, whoever is connected.
 */
struct vu_channel;
struct vu_channel *vu_channel_create(void);
void vu_channel_destroy(struct vu_channel *c);

/*
 * Have the client read into @buf or write from it, VU_MAX_DMA bytes at most.
 * Any thread but that of vu_serve(), and none that has a dma_hold: it waits for
 * the client. 0, -ENOTCONN nobody there or cut short, -EFAULT refused. A client
 * that does not answer within @ms is thrown out (-ETIMEDOUT).
 */
#define VU_MAX_DMA	32768u
int vu_channel_dma(struct vu_channel *c, bool write, uint64_t addr, void *buf,
		   size_t len, unsigned int ms);

/*
 * Thread of vu_serve(): before it waits for others. Those who wait for the
 * client give up, and nobody begins, until it is resumed.
 */
void vu_channel_pause(struct vu_channel *c, bool on);

/*
 * Serve @sock until the client leaves (0), breaks the protocol (-EPROTO, the
 * reason is logged with @name) or the socket fails or is shut down (-errno).
 * Closes every file descriptor it was sent and did not hand over.
 */
int vu_serve(int sock, const char *name, const struct vu_backend *backend,
	     void *arg, struct vu_channel *channel);

#endif
