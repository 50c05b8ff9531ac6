/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Windows of a port: slots of BAR 4 aimed at a peer's region.
 *
 * Locks: none. Created and destroyed by the port's work; accessed by the
 * function's thread inside port.gate and the window's own gate.
 */
#ifndef EMU_WINDOW_H
#define EMU_WINDOW_H

#include <stddef.h>

#include <draco/regs.h>

#include "gate.h"

struct port;

struct window {
	struct gate gate;
	_Atomic bool faulted;		/* WINDOW_FAULT was sent */
	bool used, dying;
	uint32_t slot, nslots;
	uint16_t peer;
	uint32_t access;
	uint64_t rkey, offset, length, serial;
};

struct window_table {
	struct window *windows;		/* [number - 1] */
	_Atomic uint16_t *slots;	/* window number, 0: none */
	uint32_t max;			/* both windows and slots */
	uint64_t slot_size;
};

int window_table_init(struct window_table *t, uint32_t max, uint64_t slot_size);
void window_table_free(struct window_table *t);
void window_table_clear(struct port *p);

/* The port's work. Status DRACO_SC_*. */
unsigned int window_create(struct port *p, const struct draco_window_create *c,
			   uint32_t *number);
struct window *window_find(struct window_table *t, uint32_t number);
/* After its gate has drained. */
void window_destroy(struct port *p, struct window *w);

/* The function's thread: an access to BAR 4. */
void window_read(struct port *p, uint64_t offset, void *buf, size_t len);
void window_write(struct port *p, uint64_t offset, const void *buf, size_t len);

#endif
