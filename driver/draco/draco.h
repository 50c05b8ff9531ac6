/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One Draco host port as this driver knows it. For every file of the driver,
 * each of which has a header of its own for what it offers the others.
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

/* Vector 0 is the admin ring's, the others are shared out among the queues. */
#define DRACO_MAX_VECTORS	32

/* draco_dev.flags */
enum {
	DRACO_F_REMOVING,	/* remove() has begun: nothing long any more */
	DRACO_F_EVENTS,		/* completed GET_EVENTS are handled */
	DRACO_F_EVENTS_DONE,	/* GET_EVENTS has completed */
	DRACO_F_POLLED,		/* a completion came without interrupt so far */
	DRACO_F_HALTING,	/* the works are to leave the controller alone */
	DRACO_F_RESCAN,		/* the mirror of the fabric is not to be trusted */
	DRACO_F_REQUESTS,	/* release requests may have been missed */
};

/**
 * struct draco_dev - a host port function
 * @pdev:         the function
 * @upstream:     upstream port of the partition's virtual switch, or NULL
 * @regs:         BAR 0
 * @cap:          DRACO_REG_CAP
 * @ready_ms:     how long enabling and disabling may take
 * @port:         in the core; valid while probed
 * @ident:        what was registered with the core
 * @generation:   of the port as of the last enabling
 * @flags:        DRACO_F_*, atomic
 * @wq:           for @events.work, @reset_work and @watchdog; they wait for
 *                one another, so it must run them concurrently
 * @admin:        admin queue pair
 * @events:       events
 * @changed:      woken when the model has followed events
 * @followed:     counts that
 * @request_lock: protects @requests and @nrequests
 * @requests:     requests, oldest first
 * @nrequests:    how many
 * @queue_lock:   protects @queues and what it points to, the lists of @vectors
 *                and @epoch; taken in interrupts
 * @queues:       by number, ident.info.max_queues of them
 * @epoch:        counts how often the controller was stopped; changes before it
 *                is DOWN
 * @mrs:          numbers of regions in use
 * @windows:      numbers of windows in use
 * @vectors:      interrupt vectors
 * @nvec:         how many; the admin vector included
 * @reset_lock:   protects @reset_allowed and queueing of the three works; taken
 *                in interrupts, before admin.lock
 * @reset_allowed: they may be queued
 * @stop_wq:      for @stop_work, see the top of reset.c
 * @stop_work:    stops the controller
 * @reset_work:   starts it again. While they are not allowed, their work is up
 *                to whoever disallowed them
 * @watchdog:     looks for a dead device and lost interrupts
 * @backoff_ms:   until the next try; @reset_work only
 * @failed:       the core was told that the port failed; by whoever may stop
 *                the controller: @reset_work or who disallowed it
 * @stuck:        the device did not stop when told; likewise
 * @foreign:      the port that came back is another one; likewise
 * @irqs:         counts admin interrupts
 * @polled_irqs:  @irqs when polling found a completion
 * @lost_irqs:    completions that were found by polling
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
	wait_queue_head_t changed;
	u32 followed;

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
	bool reset_allowed;
	struct workqueue_struct *stop_wq;
	struct work_struct stop_work;
	struct delayed_work reset_work;
	struct delayed_work watchdog;
	unsigned int backoff_ms;
	bool failed;
	bool stuck;
	bool foreign;
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
