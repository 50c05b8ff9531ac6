/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues, windows and memory regions, and the ioctls on them. For file.c, which
 * dispatches ioctls, and report.c, which reports errors to owners.
 */
#ifndef _FABREX_DATA_H
#define _FABREX_DATA_H

#include <linux/eventfd.h>

#include "dmabuf.h"
#include "memory.h"
#include "object.h"

/**
 * struct fabrex_queue - queue of a file
 * @res:     common to all objects
 * @rcu:     freed after those that found it through port->queues
 * @serial:  distinguishes it from earlier queues with the same number
 * @eventfd: to signal, or NULL
 * @rings:   memory
 * @doorbell: doorbell page
 * @dma:     DMA addresses of the parts
 * @mapped:  bit mask of the parts that have a DMA address
 */
struct fabrex_queue {
	struct fabrex_res res;
	struct rcu_head rcu;
	u64 serial;
	struct eventfd_ctx *eventfd;
	struct fabrex_map *rings;
	struct fabrex_map *doorbell;
	dma_addr_t dma[FABREX_PARTS];
	unsigned int mapped;
};

/**
 * struct fabrex_window - window of a file
 * @res:    common to all objects
 * @rcu:    freed after those that found it through port->windows
 * @serial: distinguishes it from earlier windows with the same number
 * @map:    its mapping
 * @slot:   first slot of the aperture
 * @nslots: number of slots; 0 if it has none
 */
struct fabrex_window {
	struct fabrex_res res;
	struct rcu_head rcu;
	u64 serial;
	struct fabrex_map *map;
	u32 slot;
	u32 nslots;
};

/**
 * struct fabrex_mr - memory region
 * @res:    common to all objects
 * @pin:    memory of the process, or
 * @dmabuf: memory of an exporter
 * @watch:  for either
 */
struct fabrex_mr {
	struct fabrex_res res;
	struct fabrex_pin pin;
	struct fabrex_dmabuf *dmabuf;
	struct fabrex_watcher watch;
};

/* queue.c */
int fabrex_cmd_queue_create(struct fabrex_ucmd *ucmd);
int fabrex_cmd_counters(struct fabrex_ucmd *ucmd);
int fabrex_cmd_resolve(struct fabrex_ucmd *ucmd);

/* window.c */
int fabrex_cmd_window_create(struct fabrex_ucmd *ucmd);

/* mr.c */
int fabrex_cmd_mr_register(struct fabrex_ucmd *ucmd);

/* p2p.c */
int fabrex_cmd_p2p_query(struct fabrex_ucmd *ucmd);

#endif
