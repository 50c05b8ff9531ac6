/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues, windows and memory regions, and the ioctls that make and use them.
 * For file.c, which dispatches, and report.c, which tells owners of errors.
 */
#ifndef _FABREX_DATA_H
#define _FABREX_DATA_H

#include <linux/eventfd.h>

#include "dmabuf.h"
#include "memory.h"
#include "object.h"

/**
 * struct fabrex_queue - a queue of a file
 * @res:     what all objects have
 * @rcu:     freed after those that found it through port->queues
 * @serial:  tells it from those that had its number before
 * @eventfd: to signal, or NULL
 * @rings:   memory
 * @doorbell: its page
 * @dma:     addresses of the parts, for the device
 * @mapped:  bit mask of parts that have one
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
 * struct fabrex_window - a window of a file
 * @res:    what all objects have
 * @rcu:    freed after those that found it through port->windows
 * @serial: tells it from those that had its number before
 * @map:    its mapping
 * @slot:   first slot of the aperture
 * @nslots: how many; 0 if it has none
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
 * struct fabrex_mr - a memory region
 * @res:    what all objects have
 * @pin:    memory of the process, or
 * @dmabuf: of an exporter
 * @watch:  of either
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
