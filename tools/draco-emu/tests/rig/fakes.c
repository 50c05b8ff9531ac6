// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stand-ins for function.c, slot.c and log.c. Defines their public functions, so it
 * is linked before the archive that has the real ones.
 */
#include "fakes.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binding.h"
#include "function.h"
#include "log.h"
#include "port.h"
#include "rig.h"
#include "vfio_user.h"

/* ---- Messages: thousands of ports come and go ---- */

void log_set_verbose(bool on)
{
	(void)on;
}

void log_info(const char *fmt, ...)
{
	(void)fmt;
}

void log_error(const char *fmt, ...)
{
	(void)fmt;
}

void log_debug(const char *fmt, ...)
{
	(void)fmt;
}

/* ---- Functions ---- */

struct function {
	struct dma_map *dma;
	_Atomic uint64_t raised[FUNCTION_MSIX_MAX];
	uint64_t bar_addr[FUNCTION_BARS], bar_size[FUNCTION_BARS];
};

struct function *fake_function_create(void *mem, uint64_t size)
{
	struct function *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->dma = dma_map_create(16, true, NULL, NULL);
	if (!f->dma || dma_map_add_ptr(f->dma, 0, size,
				       DMA_PROT_READ | DMA_PROT_WRITE, mem,
				       NULL))
		abort();
	return f;
}

void fake_function_destroy(struct function *f)
{
	dma_map_destroy(f->dma);
	free(f);
}

void fake_function_bar(struct function *f, unsigned int bar, uint64_t addr,
		       uint64_t size)
{
	f->bar_addr[bar] = addr;
	f->bar_size[bar] = size;
}

bool function_bar_addr(struct function *f, unsigned int bar, uint64_t *addr,
		       uint64_t *size)
{
	*addr = f->bar_addr[bar];
	*size = f->bar_size[bar];
	return *addr != 0;
}

uint64_t fake_function_raised(struct function *f, unsigned int vector)
{
	return atomic_load(&f->raised[vector]);
}

void function_raise(struct function *f, unsigned int vector)
{
	atomic_fetch_add(&f->raised[vector], 1);
}

struct dma_map *function_dma(struct function *f)
{
	return f->dma;
}

/* A client's memory that is no memory of ours. */
unsigned char rig_beyond[RIG_BEYOND_SIZE];

int function_message(struct function *f, bool write, uint64_t addr, void *buf,
		     size_t len)
{
	unsigned char *at = rig_beyond + (addr - RIG_BEYOND);

	(void)f;
	if (addr < RIG_BEYOND || len > VU_MAX_DMA ||
	    addr - RIG_BEYOND > RIG_BEYOND_SIZE - len)
		return -EFAULT;
	if (write)
		memcpy(at, buf, len);
	else
		memcpy(buf, at, len);
	return 0;
}

/* ---- Slots. All in the loop's thread but the rig_ calls ---- */

struct fake_function {
	struct slots_function is; /* that was plugged last */
	bool linked, dead;
};

struct fake_slot {
	struct fake_function fn[SLOT_FUNCTIONS];
	unsigned int n;		/* 0: empty */
	unsigned int filled;	/* how often it has been */
	bool present;
};

struct slots {
	struct port *port;
	unsigned int first, count;
	bool up;
	struct dma_map *peers;	/* memory of what is in the slots */
	struct fake_slot slot[TOPO_MAX_SLOTS + TOPO_FIRST_SLOT];
};

static _Atomic bool hold_presence, refuse;

struct slots *fake_slots_create(struct port *p, unsigned int first,
				unsigned int count)
{
	struct slots *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->port = p;
	s->first = first;
	s->count = count;
	s->peers = dma_map_create(16, true, NULL, NULL);
	if (!s->peers)
		abort();
	return s;
}

void fake_slots_destroy(struct slots *s)
{
	dma_map_destroy(s->peers);
	free(s);
}

bool slots_host_up(struct slots *s)
{
	return s->up;
}

int slots_pick(struct slots *s, uint64_t taken)
{
	for (unsigned int i = s->first; i < s->first + s->count; i++) {
		if (!s->slot[i].n && !(taken >> i & 1))
			return i;
	}
	return -ENOSPC;
}

struct note {
	struct slots *s;
	unsigned int slot, filled;
};

static void empty(struct slots *s, unsigned int slot)
{
	struct fake_slot *sl = &s->slot[slot];
	bool present = sl->present;
	unsigned int n = sl->n;

	sl->n = 0;
	sl->present = false;
	for (unsigned int k = 0; k < n; k++) {
		void *cookie = sl->fn[k].is.cookie;

		if (present)
			binding_slots_ops.emptied(s->port, slot, cookie);
		else
			binding_slots_ops.plugged(s->port, slot, cookie, -EIO);
	}
}

static void show(struct slots *s, unsigned int slot)
{
	struct fake_slot *sl = &s->slot[slot];

	sl->present = true;
	for (unsigned int k = 0; k < sl->n; k++)
		binding_slots_ops.plugged(s->port, slot, sl->fn[k].is.cookie,
					  0);
}

static void report_plugged(void *arg)
{
	struct note *n = arg;
	struct fake_slot *sl = &n->s->slot[n->slot];

	if (atomic_load(&hold_presence)) {
		loop_defer(report_plugged, n);
		usleep(1000);
		return;
	}
	if (sl->n && sl->filled == n->filled) {
		if (atomic_exchange(&refuse, false))
			empty(n->s, n->slot);
		else
			show(n->s, n->slot);
	}
	free(n);
}

int slots_plug(struct slots *s, unsigned int slot,
	       const struct slots_function *list, unsigned int count)
{
	struct fake_slot *sl = &s->slot[slot];
	struct note *n = malloc(sizeof(*n));

	if (!n || !count || count > SLOT_FUNCTIONS || !list->ep.name)
		abort();
	if (sl->n) {
		free(n);
		return -EBUSY;
	}
	for (unsigned int k = 0; k < count; k++)
		sl->fn[k] = (struct fake_function){ list[k], true, false };
	sl->n = count;
	sl->present = false;
	*n = (struct note){ s, slot, ++sl->filled };
	loop_defer(report_plugged, n);
	return 0;
}

static struct fake_function *by_cookie(struct slots *s, unsigned int slot,
				       void *cookie)
{
	struct fake_slot *sl = &s->slot[slot];

	for (unsigned int k = 0; k < sl->n; k++) {
		if (sl->fn[k].is.cookie == cookie)
			return &sl->fn[k];
	}
	abort();
}

void slots_kill(struct slots *s, unsigned int slot, void *cookie)
{
	by_cookie(s, slot, cookie)->dead = true;
}

void slots_link(struct slots *s, unsigned int slot, void *cookie, bool up)
{
	by_cookie(s, slot, cookie)->linked = up;
}

int slots_eject(struct slots *s, unsigned int slot)
{
	return s->slot[slot].n ? 0 : -ENOENT;
}

int slots_peer(struct slots *s, uint64_t addr, size_t len, unsigned int prot,
	       struct dma_hold *h)
{
	return dma_get(s->peers, addr, len, prot, h);
}

/* ---- What guests and QEMU do; waits for the loop's thread ---- */

struct call {
	struct slots *s;
	unsigned int slot;
	bool up, result;
	uint64_t addr, size;
	void *mem;
	_Atomic bool done;
};

static void do_host(void *arg)
{
	struct call *c = arg;

	for (unsigned int i = 0; !c->up && i < c->s->count; i++) {
		if (c->s->slot[c->s->first + i].n)
			empty(c->s, c->s->first + i);
	}
	c->s->up = c->up;
	binding_slots_ops.host(c->s->port, c->up);
	atomic_store(&c->done, true);
}

static void do_power_off(void *arg)
{
	struct call *c = arg;

	c->result = c->s->slot[c->slot].n;
	if (c->result)
		empty(c->s, c->slot);
	atomic_store(&c->done, true);
}

static void do_look(void *arg)
{
	struct call *c = arg;

	c->result = c->slot && c->s->slot[c->slot].n;
	atomic_store(&c->done, true);
}

static void do_map(void *arg)
{
	struct call *c = arg;
	void *cookie = c->s->slot[c->slot].fn[0].is.cookie;

	c->result = c->s->slot[c->slot].n &&
		    !dma_map_add_ptr(c->s->peers, c->addr, c->size,
				     DMA_PROT_READ | DMA_PROT_WRITE, c->mem,
				     cookie);
	atomic_store(&c->done, true);
}

bool rig_map_bar(struct rig_guest *g, unsigned int slot, uint64_t addr,
		 void *mem, uint64_t size)
{
	struct call c = { .s = g->port->slots, .slot = slot, .addr = addr,
			  .mem = mem, .size = size };

	loop_defer(do_map, &c);
	while (!atomic_load(&c.done))
		usleep(50);
	return c.result;
}

static bool in_loop(void (*fn)(void *arg), struct slots *s, unsigned int slot,
		    bool up)
{
	struct call c = { .s = s, .slot = slot, .up = up };

	loop_defer(fn, &c);
	while (!atomic_load(&c.done))
		usleep(50);
	return c.result;
}

void rig_host_up(struct rig_guest *g, bool up)
{
	in_loop(do_host, g->port->slots, 0, up);
}

bool rig_power_off(struct rig_guest *g, unsigned int slot)
{
	return in_loop(do_power_off, g->port->slots, slot, false);
}

bool rig_slot_full(struct rig_guest *g, unsigned int slot)
{
	return in_loop(do_look, g->port->slots, slot, false);
}

const atomic_bool *rig_slot_link(struct rig_guest *g, unsigned int slot)
{
	return g->port->slots->slot[slot].fn[0].is.ep.link;
}

const struct endpoint_desc *rig_slot_endpoint(struct rig_guest *g,
					      unsigned int slot)
{
	return &g->port->slots->slot[slot].fn[0].is.ep;
}

bool rig_slot_linked(struct rig_guest *g, unsigned int slot)
{
	rig_settle();
	return g->port->slots->slot[slot].fn[0].linked;
}

void rig_slot_names(struct rig_guest *g, unsigned int slot, char *buf,
		    size_t len)
{
	const struct fake_slot *sl = &g->port->slots->slot[slot];
	size_t at = 0;

	rig_settle();
	*buf = 0;
	for (unsigned int k = 0; k < sl->n && at < len; k++)
		at += (size_t)snprintf(buf + at, len - at, "%s%s%s%s",
				       at ? " " : "", sl->fn[k].is.ep.name,
				       sl->fn[k].dead ? " dead" : "",
				       sl->fn[k].linked ? "" : " cut");
}

void rig_refuse_plug(void)
{
	atomic_store(&refuse, true);
}

void rig_hold_presence(bool on)
{
	atomic_store(&hold_presence, on);
}

void rig_settle(void)
{
	/* What is deferred by deferred work comes after it: twice is enough. */
	for (int i = 0; i < 3; i++)
		in_loop(do_look, rig_guest[0].port->slots, 0, false);
}
