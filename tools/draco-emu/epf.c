// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bridge of two endpoint functions: registers and commands of each end, and
 * what crosses. Made by fabric.c; functions are served in their own threads.
 */
#include "epf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "port.h"

#define BAR_CONFIG		0u
#define BAR_WINDOW		2u
#define BAR_DOORBELL		4u
#define CONFIG_SIZE		0x10000u
#define DOORBELL_SIZE		0x1000u

#define REG_COMMAND		0x00u
#define REG_ARGUMENT		0x04u
#define REG_STATUS		0x08u	/* of the command; upper half: link */
#define REG_ADDR		0x10u
#define REG_SIZE		0x18u
#define REG_WINDOWS		0x20u
#define REG_WINDOW_OFFSET	0x24u
#define REG_SPAD_OFFSET		0x28u
#define REG_SPADS		0x2cu
#define REG_DB_STRIDE		0x30u
#define REG_DB_DATA		0x34u	/* a word for each vector */
#define REG_DB_OFFSET		0xb4u
#define REG_END			(REG_DB_OFFSET + 4 * EPF_VECTORS)
#define SPAD_OFFSET		0x1000u
#define MSIX_TABLE		0x8000u
#define MSIX_PBA		0xc000u

#define CMD_DOORBELLS_ON	1u
#define CMD_DOORBELLS_OFF	2u
#define CMD_WINDOW_ON		3u
#define CMD_WINDOW_OFF		4u
#define CMD_LINK_UP		5u
#define CMD_LINK_DOWN		6u
#define ARGUMENT_COUNT		0xffffu
#define STATUS_OK		1u
#define STATUS_ERROR		2u

#define VECTOR_LINK		0u
#define DB_STRIDE		4u
#define DB_DATA(n)		(0x100u + (n))

/* ---- The link ---- */

static bool reachable(const struct epf_end *e)
{
	return e->attached && e->other->attached &&
	       atomic_load(&e->port->link->up) &&
	       atomic_load(&e->other->port->link->up);
}

static bool link_up(const struct epf_end *e)
{
	return e->up && e->other->up && reachable(e);
}

static void raise(struct epf_end *e, unsigned int vector)
{
	if (e->attached && vector < e->vectors)
		function_raise(e->port->fn, vector);
}

/* Both ends hear of it, whoever has changed it. */
static void tell(struct epf_end *e)
{
	bool up = link_up(e);

	for (struct epf_end *o = e->epf->end; o < e->epf->end + 2; o++) {
		if (o->was_up != up)
			raise(o, VECTOR_LINK);
		o->was_up = up;
	}
}

/* ---- Commands ---- */

static bool window_on(struct epf_end *e)
{
	uint64_t size = e->size[0] | (uint64_t)e->size[1] << 32;

	if (e->argument || !size || size > e->epf->window)
		return false;
	e->window = e->addr[0] | (uint64_t)e->addr[1] << 32;
	e->room = size;
	return true;
}

static bool doorbells_on(struct epf_end *e)
{
	uint32_t n = e->argument & ARGUMENT_COUNT;

	if (!n || n > EPF_VECTORS)
		return false;
	e->vectors = n;
	return true;
}

static bool execute(struct epf_end *e, uint32_t command)
{
	switch (command) {
	case CMD_DOORBELLS_ON:
		return doorbells_on(e);
	case CMD_DOORBELLS_OFF:
		e->vectors = 0;
		return true;
	case CMD_WINDOW_ON:
		return window_on(e);
	case CMD_WINDOW_OFF:
		e->room = 0;
		return !e->argument;
	case CMD_LINK_UP:
	case CMD_LINK_DOWN:
		e->up = command == CMD_LINK_UP;
		tell(e);
		return true;
	default:
		return false;
	}
}

/* ---- Registers ---- */

/* Scratchpads of this end, then of the other. */
static uint32_t *spad(struct epf_end *e, uint32_t offset)
{
	uint32_t n = (offset - SPAD_OFFSET) / 4;

	if (offset < SPAD_OFFSET || n >= 2 * EPF_SPADS)
		return NULL;
	return n < EPF_SPADS ? &e->spads[n] : &e->other->spads[n - EPF_SPADS];
}

static uint32_t read_config(struct epf_end *e, uint32_t offset)
{
	const uint32_t *s = spad(e, offset);

	if (s)
		return *s;
	switch (offset) {
	case REG_STATUS:
		return e->status | (uint32_t)link_up(e) << 16;
	case REG_WINDOWS:
		return 1;
	case REG_SPAD_OFFSET:
		return SPAD_OFFSET;
	case REG_SPADS:
		return EPF_SPADS;
	case REG_DB_STRIDE:
		return DB_STRIDE;
	}
	if (offset >= REG_DB_DATA && offset < REG_DB_OFFSET)
		return DB_DATA((offset - REG_DB_DATA) / 4);
	return 0;
}

static void write_config(struct epf_end *e, uint32_t offset, uint32_t v)
{
	uint32_t *s = spad(e, offset);

	if (s)
		*s = v;
	else if (offset == REG_ARGUMENT)
		e->argument = v;
	else if (offset == REG_STATUS)
		e->status = v;
	else if (offset == REG_ADDR || offset == REG_ADDR + 4)
		e->addr[(offset - REG_ADDR) / 4] = v;
	else if (offset == REG_SIZE || offset == REG_SIZE + 4)
		e->size[(offset - REG_SIZE) / 4] = v;
	else if (offset == REG_COMMAND)
		e->status = execute(e, v) ? STATUS_OK : STATUS_ERROR;
}

/* Words, halves for the status; others are ignored. */
static bool good(uint64_t offset, size_t count)
{
	return (count == 4 && !(offset & 3)) ||
	       (count == 2 && !(offset & 1));
}

static void read_bar0(struct epf_end *e, uint64_t offset, void *buf,
		      size_t count)
{
	uint32_t v;

	memset(buf, 0xff, count);
	if (!good(offset, count))
		return;
	v = read_config(e, offset & ~3u) >> 8 * (offset & 3);
	memcpy(buf, &v, count);
}

static void write_bar0(struct epf_end *e, uint64_t offset, const void *buf,
		       size_t count)
{
	uint32_t v = 0;

	if (!good(offset, count) || offset & 3)
		return;
	memcpy(&v, buf, count);
	write_config(e, offset, v);
}

/* ---- What crosses ---- */

static void ring(struct epf_end *e, uint64_t offset, const void *buf,
		 size_t count)
{
	unsigned int n = offset / DB_STRIDE;
	uint32_t v;

	if (count != 4 || offset % DB_STRIDE || n >= EPF_VECTORS)
		return;
	memcpy(&v, buf, 4);
	if (n > VECTOR_LINK && v == DB_DATA(n) && reachable(e))
		raise(e->other, n);
}

/* The other end has said which memory it is. */
static bool cross(struct epf_end *e, uint64_t offset, void *in,
		  const void *out, size_t count)
{
	const struct epf_end *o = e->other;

	if (!reachable(e) || offset >= o->room || count > o->room - offset)
		return false;
	return !(in ? mem_read(o->port, o->window + offset, in, count) :
		      mem_write(o->port, o->window + offset, out, count));
}

static void on_read(void *arg, unsigned int bar, uint64_t offset, void *buf,
		    size_t count)
{
	struct epf_end *e = arg;

	pthread_mutex_lock(&e->epf->lock);
	if (bar == BAR_CONFIG)
		read_bar0(e, offset, buf, count);
	else if (bar != BAR_WINDOW || !cross(e, offset, buf, NULL, count))
		memset(buf, 0xff, count);
	pthread_mutex_unlock(&e->epf->lock);
}

static void on_write(void *arg, unsigned int bar, uint64_t offset,
		     const void *buf, size_t count)
{
	struct epf_end *e = arg;

	pthread_mutex_lock(&e->epf->lock);
	if (bar == BAR_CONFIG)
		write_bar0(e, offset, buf, count);
	else if (bar == BAR_DOORBELL)
		ring(e, offset, buf, count);
	else
		cross(e, offset, NULL, buf, count);
	pthread_mutex_unlock(&e->epf->lock);
}

/* ---- Hosts ---- */

static void set_attached(struct epf_end *e, bool on)
{
	pthread_mutex_lock(&e->epf->lock);
	e->attached = on;
	tell(e);
	pthread_mutex_unlock(&e->epf->lock);
}

static void on_attach(void *arg)
{
	set_attached(arg, true);
}

static void on_detach(void *arg)
{
	set_attached(arg, false);
}

static void on_reset(void *arg, enum function_reset why)
{
	struct epf_end *e = arg;

	(void)why;
	pthread_mutex_lock(&e->epf->lock);
	e->up = false;
	e->room = 0;
	e->vectors = 0;
	e->status = 0;
	memset(e->spads, 0, sizeof(e->spads));
	tell(e);
	pthread_mutex_unlock(&e->epf->lock);
}

const struct function_ops epf_function_ops = {
	.bar_read = on_read,
	.bar_write = on_write,
	.attach = on_attach,
	.detach = on_detach,
	.reset = on_reset,
};

void epf_link_changed(struct epf_end *e)
{
	pthread_mutex_lock(&e->epf->lock);
	tell(e);
	pthread_mutex_unlock(&e->epf->lock);
}

void epf_describe(struct epf_end *e, struct function_desc *d)
{
	const struct topo_switch *s =
		&e->epf->fabric->topo->switches[e->port->link->sw];

	memset(d, 0, sizeof(*d));
	d->name = e->port->name;
	d->vendor = d->subvendor = EPF_VENDOR;
	d->device = d->subdevice = EPF_DEVICE;
	d->class_code = 0x050000;
	d->link_speed = port_link_speed(s);
	d->link_width = s->width;
	d->bar[BAR_CONFIG].size = CONFIG_SIZE;
	d->bar[BAR_WINDOW].size = e->epf->window;
	d->bar[BAR_DOORBELL].size = DOORBELL_SIZE;
	for (unsigned int i = 0; i <= BAR_DOORBELL; i += 2)
		d->bar[i].flags = FUNCTION_BAR_64 | FUNCTION_BAR_PREFETCH;
	d->msix_vectors = EPF_VECTORS;
	d->msix_table = MSIX_TABLE;
	d->msix_pba = MSIX_PBA;
	d->dma = true;
	d->link = &e->port->link->up;
}

/* ---- Construction ---- */

static int make_bridge(struct fabric *f, const struct topo_ntb *n)
{
	const struct topo_host_port *ports[2] = { &n->a, &n->b };
	struct epf *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	pthread_mutex_init(&x->lock, NULL);
	x->fabric = f;
	x->window = n->window;
	x->next = f->epfs;
	f->epfs = x;
	for (unsigned int i = 0; i < 2; i++) {
		struct epf_end *e = &x->end[i];

		e->epf = x;
		e->other = &x->end[!i];
		e->port = fabric_port_of(f, ports[i]->host, ports[i]->port);
		e->port->end = e;
	}
	return 0;
}

int epf_init(struct fabric *f)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < f->topo->nntbs; i++) {
		const struct topo_ntb *n = &f->topo->ntbs[i];
		unsigned int sw = f->topo->hosts[n->a.host].ports[n->a.port].sw;

		if (f->topo->switches[sw].model == TOPO_EPF)
			err = make_bridge(f, n);
	}
	return err;
}

void epf_free(struct fabric *f)
{
	while (f->epfs) {
		struct epf *x = f->epfs;

		f->epfs = x->next;
		pthread_mutex_destroy(&x->lock);
		free(x);
	}
}
