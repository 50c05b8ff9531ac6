/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One Draco host port as this driver sees it, for all files of the driver. What
 * a file offers to the others is in the header of the same name.
 */
#ifndef DRACO_H
#define DRACO_H

#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <draco/regs.h>

#include "admin.h"
#include "backend.h"
#include "decode.h"
#include "event.h"
#include "request.h"
#include "table.h"

/* Vector 0 belongs to the admin queue, the others are shared by the queues. */
#define DRACO_MAX_VECTORS	32

/* draco_dev.flags */
enum {
	DRACO_F_REMOVING,	/* remove() has begun: no more long commands */
	DRACO_F_EVENTS,		/* the results of GET_EVENTS are handled */
	DRACO_F_EVENTS_DONE,	/* GET_EVENTS has completed */
	DRACO_F_POLLED,		/* polling has found a completion */
	DRACO_F_HALTING,	/* works leave the controller alone */
	DRACO_F_RESCAN,		/* the core's model may be out of date */
	DRACO_F_QUERY_REQUESTS,	/* release requests may have been missed */
};

/**
 * struct draco_dev - a host port function
 * @pdev:         the function
 * @upstream:     upstream port of the partition's virtual switch, or NULL
 * @regs:         BAR 0
 * @cap:          DRACO_REG_CAP
 * @ready_ms:     limit for enabling and disabling the controller
 * @port:         the core's port; valid while probed
 * @ident:        what was registered with the core
 * @generation:   of the port when it was last enabled
 * @flags:        DRACO_F_*, atomic
 * @wq:           for @events.work, @reset_work and @watchdog; as they wait for
 *                one another, it must run them concurrently
 * @admin:        admin queue pair
 * @events:       reception of events
 * @model_wait:   woken after each pass of the event work
 * @model_passes: number of these passes
 * @request_lock: protects @requests and @nrequests
 * @requests:     release requests, oldest first
 * @nrequests:    number of @requests
 * @queue_lock:   protects @queues and their contents, the lists of @vectors,
 *                and @epoch; taken in interrupts
 * @queues:       by number; ident.info.max_queues entries
 * @epoch:        number of times the controller was stopped; changes before the
 *                state becomes DOWN
 * @mrs:          numbers of regions in use
 * @windows:      numbers of windows in use
 * @vectors:      interrupt vectors
 * @nvec:         number of @vectors, including the admin queue's
 * @reset_lock:   protects @recovery_enabled and queueing of the three works;
 *                taken in interrupts, before admin.lock
 * @recovery_enabled: the three works may be queued
 * @stop_wq:      for @stop_work, see recovery.c
 * @stop_work:    stops the controller
 * @reset_work:   starts it again. While recovery is disabled, both are up to
 *                whoever disabled it
 * @watchdog:     looks for a dead device and for lost interrupts
 * @backoff_ms:   delay before the next attempt; @reset_work only
 * @failed:       the core was told that the port has failed. Only for the owner
 *                of the controller, like the following two
 * @stuck:        the device did not stop when told to
 * @other_port:   what came back after a reset is another port
 * @irqs:         number of admin interrupts
 * @polled_irqs:  value of @irqs when polling found a completion
 * @lost_irqs:    number of times an interrupt was lost
 */
struct draco_dev {
	struct pci_dev *pdev;
	struct pci_dev *upstream;
	void __iomem *regs;
	u64 cap;
	unsigned int ready_ms;
	struct fabrex_port *port;
	struct draco_ident ident;
	u32 generation;
	unsigned long flags;
	struct workqueue_struct *wq;
	struct draco_admin admin;
	struct draco_events events;
	wait_queue_head_t model_wait;
	u32 model_passes;

	spinlock_t request_lock;
	struct draco_request requests[DRACO_MAX_REQUESTS];
	u32 nrequests;

	spinlock_t queue_lock;
	struct draco_queue **queues;
	u32 epoch;
	struct xarray mrs;
	struct xarray windows;
	struct draco_vector vectors[DRACO_MAX_VECTORS];
	unsigned int nvec;

	spinlock_t reset_lock;
	bool recovery_enabled;
	struct workqueue_struct *stop_wq;
	struct work_struct stop_work;
	struct delayed_work reset_work;
	struct delayed_work watchdog;
	unsigned int backoff_ms;
	bool failed;
	bool stuck;
	bool other_port;
	u32 irqs;
	u32 polled_irqs;
	atomic_t lost_irqs;
};

static inline bool draco_removing(struct draco_dev *dd)
{
	return test_bit(DRACO_F_REMOVING, &dd->flags);
}

static inline u32 draco_read(struct draco_dev *dd, u32 reg)
{
	return readl(dd->regs + reg);
}

/* sysfs.c */
extern const struct attribute_group *draco_groups[];

#endif
