/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One Draco host port as this driver knows it, and what its files offer one
 * another. Not for others: the core sees struct fabrex_port_ops only.
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

#include "backend.h"
#include "admin.h"
#include "decode.h"

/* Vector 0 is the admin ring's, the others are shared out among the queues. */
#define DRACO_MAX_VECTORS	32
/* Release requests that are remembered: more than a partition has slots. */
#define DRACO_MAX_RELEASES	64

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
 * struct draco_vector - an interrupt vector
 * @dd:     device
 * @queues: that use it; under draco_dev.queue_lock, as is @users
 * @users:  how many
 */
struct draco_vector {
	struct draco_dev *dd;
	struct list_head queues;
	u32 users;
};

/**
 * struct draco_queue - a queue of the device
 * @node:   in draco_vector.queues
 * @vector: that it uses, NULL if it has no interrupts
 * @number: of the queue
 */
struct draco_queue {
	struct list_head node;
	struct draco_vector *vector;
	u32 number;
};

/**
 * struct draco_release - a request to let an endpoint go
 * @ep:       endpoint
 * @slot:     where it is
 * @answered: or it was one that needs no answer: only remembered, so that it is
 *            not taken for a new one when the device tells of it again
 * @again:    it is to be handled anew then, even so
 * @token:    names the request, never used again
 */
struct draco_release {
	u32 ep;
	u16 slot;
	bool answered;
	bool again;
	u64 token;
};

/**
 * struct draco_events - reception of events
 * @cmd:   GET_EVENTS; pending nearly always
 * @buf:   where the device writes them
 * @copy:  those being handled, where it does not
 * @work:  handles them, in order; also every rescan, so that the model is fed
 *         by one thread only
 * @armed: @cmd is under way or its result has not been taken; work only, as
 *         are the following
 * @withdrawn: @cmd has been aborted
 * @lost: the device has dropped events, and nobody has been told
 * @horizon: number of the last event that is contained in what was read of the
 *           fabric: what events up to there say is history. Probe, then work
 * @since: jiffies when it was issued or aborted
 */
struct draco_events {
	struct draco_cmd cmd;
	struct draco_buf buf;
	struct draco_event *copy;
	struct delayed_work work;
	bool armed;
	bool withdrawn;
	bool lost;
	u64 horizon;
	unsigned long since;
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
 * @release_lock: protects @releases and @nreleases
 * @releases:     requests, oldest first
 * @nreleases:    how many
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

	spinlock_t release_lock;
	struct draco_release releases[DRACO_MAX_RELEASES];
	u32 nreleases;

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

/* identify.c */
int draco_identify(struct draco_dev *dd, struct draco_ident *ident);
bool draco_same_port(const struct draco_ident *a, const struct draco_ident *b);

/* reset.c */
int draco_start(struct draco_dev *dd);
void draco_stop(struct draco_dev *dd);
int draco_health(struct draco_dev *dd);
void draco_check(struct draco_dev *dd);
void draco_polled(struct draco_dev *dd);
void draco_reset(struct draco_dev *dd, u32 epoch, const char *why);
void draco_enabled_anew(struct draco_dev *dd, u32 generation);
int draco_kill(struct draco_dev *dd, u32 epoch, const char *why);
int draco_exec_destroy(struct draco_dev *dd, u8 opcode, u32 id);
void draco_reset_init(struct draco_dev *dd);
void draco_reset_allow(struct draco_dev *dd);
void draco_reset_disallow(struct draco_dev *dd);
void draco_halt(struct draco_dev *dd);

/* topology.c */
int draco_topology_scan(struct draco_dev *dd, unsigned int flags);
int draco_topology_read(struct draco_dev *dd, u32 id,
			struct fabrex_object *object);
void draco_object_name(struct draco_dev *dd, u32 id, char *name);

/* event.c */
int draco_events_init(struct draco_dev *dd);
void draco_events_free(struct draco_dev *dd);
void draco_events_arm(struct draco_dev *dd);
void draco_events_kick(struct draco_dev *dd, bool rescan);
void draco_events_requests(struct draco_dev *dd);
void draco_events_stop(struct draco_dev *dd);

/* queue.c */
int draco_queues_init(struct draco_dev *dd);
void draco_queues_free(struct draco_dev *dd);
void draco_queues_forget(struct draco_dev *dd);
void draco_queues_irq(struct draco_vector *vector);
int draco_queue_create(struct fabrex_port *port,
		       const struct fabrex_queue_params *params, u32 *number,
		       u64 *key);
int draco_queue_destroy(struct fabrex_port *port, u32 number);
int draco_resolve(struct fabrex_port *port, u32 peer, u64 service, u32 *queue,
		  u64 *key);
int draco_queue_counters(struct fabrex_port *port, u32 number,
			 struct fabrex_counters *counters);
int draco_counters(struct fabrex_port *port, u32 id,
		   struct fabrex_counters *counters);

/* number.c */
int draco_number_take(struct draco_dev *dd, struct xarray *used, u32 number,
		      u32 epoch, u8 destroy);
int draco_number_destroy(struct draco_dev *dd, struct xarray *used, u32 number,
			 u8 destroy);
void draco_numbers_forget(struct draco_dev *dd);

/* mr.c */
int draco_mr_create(struct fabrex_port *port,
		    const struct fabrex_mr_params *params, u32 *number,
		    u64 *key);
int draco_mr_pages(struct fabrex_port *port, u32 number,
		   const struct fabrex_mr_memory *memory);
int draco_mr_invalidate(struct fabrex_port *port, u32 number);
int draco_mr_destroy(struct fabrex_port *port, u32 number);

/* window.c */
int draco_window_create(struct fabrex_port *port,
			const struct fabrex_window_params *params, u32 *number);
int draco_window_destroy(struct fabrex_port *port, u32 number);

/* bind.c */
int draco_bind(struct fabrex_port *port, u32 ep, u32 host_port, bool dry_run,
	       const bool *cancel, struct netlink_ext_ack *extack);
int draco_unbind(struct fabrex_port *port, u32 ep, bool force, bool dry_run,
		 u32 timeout_ms, const bool *cancel,
		 struct fabrex_holder *holder, struct netlink_ext_ack *extack);
int draco_port_control(struct fabrex_port *port, u32 id, u32 action,
		       struct netlink_ext_ack *extack);

/* release.c */
void draco_release_request(struct draco_dev *dd, const struct draco_ev *ev);
int draco_release_ask(struct draco_dev *dd);
int draco_release_reply(struct fabrex_port *port, u32 ep, u64 token,
			const struct fabrex_holder *holder);
void draco_release_forget(struct draco_dev *dd);
void draco_release_repeat(struct draco_dev *dd);

/* sysfs.c */
extern const struct attribute_group *draco_groups[];

/* hotplug.c */
struct draco_off;

int draco_hotplug_init(void);
void draco_hotplug_exit(void);
struct pci_dev *draco_upstream_port(struct pci_dev *pdev);
struct pci_dev *draco_endpoint_pdev(struct fabrex_port *port, u32 ep, u16 slot);
struct draco_off *draco_off_prepare(struct draco_dev *dd, u32 ep, u16 slot,
				    bool forced, const char **why);
void draco_off_queue(struct draco_off *off);
void draco_off_drop(struct draco_off *off);

#endif
