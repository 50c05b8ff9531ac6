/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The operations of the backend. Only the core calls them, through the table in
 * pci.c.
 */
#ifndef DRACO_OPS_H
#define DRACO_OPS_H

#include "backend.h"

struct netlink_ext_ack;
struct pci_dev;

/* queue.c */
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

/* link.c */
int draco_links(struct fabrex_port *port, u32 from, struct fabrex_link *links,
		u32 max, u32 *count, u32 *next);

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
int draco_release_reply(struct fabrex_port *port, u32 ep, u64 token,
			const struct fabrex_holder *holder);

/* hotplug.c */
struct pci_dev *draco_endpoint_pdev(struct fabrex_port *port, u32 ep, u16 slot);

#endif
