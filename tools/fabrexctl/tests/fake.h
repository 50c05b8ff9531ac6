/* SPDX-License-Identifier: GPL-2.0-only */
/* A fabric in memory that fails when it is told to. */
#ifndef TESTS_FAKE_H
#define TESTS_FAKE_H

#include "backend.h"

#define FAKE_EVENTS 64

struct fake {
	struct backend b;
	struct model *m;
	unsigned int slots;	/* of each host port */
	unsigned int changes;	/* binds, unbinds, port_sets that were tried */
	unsigned int fail_at;	/* this change fails, counted from 1 */
	unsigned int fail_count; /* and the ones after it; 0: one */
	int fail_code;
	bool fail_late;		/* after it has had its effect */
	uint32_t held;		/* endpoint that its owner does not give away */
	int no_module;		/* open() fails */
	unsigned int pci_domain, pci_bus; /* of devices; bus of slot 0 */
	bool names_slot;	/* of a bind that is only asked about */
	bool no_device;		/* the PCI device never appears */
	unsigned int dumps, whole_dumps, gets;
	struct event queue[FAKE_EVENTS];
	unsigned int head, tail;
	bool lost;
	int fd;
	uint32_t last_action;
	bool last_granted, replied;
	unsigned int ticks;
};

struct fake *fake_new(void);
void fake_free(struct fake *f);
uint32_t fake_add(struct fake *f, const struct object *o);
void fake_local(struct fake *f, const char *port);
void fake_push(struct fake *f, const struct event *ev);
void fake_lose(struct fake *f);
/* "columba1.gpu0=a.0 ..." of all that is bound, to compare. */
char *fake_bindings(const struct fake *f);
void fake_bind(struct fake *f, const char *ep, const char *port);

/* fabric.c: 2 switches, 3 hosts, 2 appliances, 14 endpoints; this is a */
struct fake *fabric_small(void);
/* 16 switches, 64 hosts, 128 appliances, 1,024 endpoints */
struct fake *fabric_large(void);

#endif
