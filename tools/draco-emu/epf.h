/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A non-transparent bridge made of two functions of an endpoint controller, as
 * Linux's ntb_hw_epf knows it (docs/switchtec.md): a window, scratchpads and
 * doorbells to one other host.
 *
 * Locks: epf.lock protects both ends; inside it there are only holds of memory
 * and interrupts. It is taken inside fabric.lock.
 */
#ifndef EMU_EPF_H
#define EMU_EPF_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "function.h"

#define EPF_VENDOR	0x1912u
#define EPF_DEVICE	0x0030u		/* which BAR is what depends on it */
#define EPF_SPADS	64u
#define EPF_VECTORS	32u		/* link, none, doorbells */

struct epf;
struct fabric;
struct port;

struct epf_end {
	struct epf *epf;
	struct epf_end *other;
	struct port *port;
	bool attached;			/* a host is there: port->fn is valid */
	bool up;			/* its half of the link */
	bool was_up;			/* the link, when it was told last */
	uint32_t argument;
	uint16_t status;		/* of the last command */
	uint32_t addr[2], size[2];	/* for the next command */
	uint64_t window, room;		/* what the other end's window shows */
	uint32_t vectors;		/* that it wants to hear */
	uint32_t spads[EPF_SPADS];
};

struct epf {
	pthread_mutex_t lock;
	struct fabric *fabric;
	uint64_t window;		/* bytes of the BAR */
	struct epf_end end[2];
	struct epf *next;
};

/* All that the topology has; ports then have their end. */
int epf_init(struct fabric *f);
void epf_free(struct fabric *f);

void epf_describe(struct epf_end *e, struct function_desc *d);
extern const struct function_ops epf_function_ops;

/* The link of a host port went down or came up. fabric.lock held. */
void epf_link_changed(struct epf_end *e);

#endif
