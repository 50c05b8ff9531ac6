// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: partitions, and the function of each: which register is whose,
 * hosts that come and go. Made by fabric.c; functions are served here in
 * their own threads.
 */
#include "pfx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "log.h"
#include "pfx_dma.h"
#include "port.h"
#include "slot.h"

#define DEVICE_VERSION		0x0b0u
#define FIRMWARE_VERSION	0x04700b29u

/* ---- Registers ---- */

/* The @n characters at @at, padded with blanks, of which @offset is one. */
static uint32_t text_word(const char *text, uint32_t at, uint32_t n,
			  uint32_t offset)
{
	uint32_t v = 0;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t k = offset + i - at;
		uint32_t c = k < strlen(text) ? (uint8_t)text[k] : ' ';

		if (k < n)
			v |= c << 8 * i;
	}
	return v;
}

static uint32_t read_sys(struct pfx_part *p, uint32_t offset)
{
	switch (offset) {
	case SYS_DEVICE_ID:
		return PFX_DEVICE;
	case SYS_DEVICE_VERSION:
		return DEVICE_VERSION;
	case SYS_FIRMWARE_VERSION:
		return FIRMWARE_VERSION;
	case SYS_PARTITION:
		return p->id;
	default:
		break;
	}
	if (offset < SYS_VENDOR)
		return 0;
	return text_word("MICROCHP", SYS_VENDOR, 8, offset) |
	       text_word("PFX 100xG4, emulated", SYS_PRODUCT, 24, offset) |
	       text_word("B0", SYS_REVISION, 2, offset);
}

static uint32_t read_part(struct pfx_part *p, uint32_t offset)
{
	unsigned int id = (offset - GAS_PART) / GAS_PART_SIZE;
	uint32_t at = (offset - GAS_PART) % GAS_PART_SIZE;
	struct pfx_part *q = id < p->pfx->nparts ? p->pfx->parts[id] : NULL;
	unsigned int slot = (at - PART_DSP) / 4;

	if (!q)
		return 0;
	if (at == PART_USP)
		return q->first_pff;
	if (at == PART_VEP)
		return q->first_pff + 1;
	if (at == PART_VECTORS)
		return PFX_EVENT_VECTOR | PFX_EVENT_VECTOR << 16;
	if (at < PART_DSP || slot >= PART_DSPS)
		return 0;
	return slot < q->slots ? q->first_pff + 2 + slot : PART_NONE;
}

/* The partition that a port function belongs to. */
static struct pfx_part *part_of(struct pfx *x, unsigned int pff)
{
	struct pfx_part *q = NULL;

	for (unsigned int i = 0; i < x->nparts; i++) {
		if (x->parts[i]->first_pff <= pff)
			q = x->parts[i];
	}
	return q;
}

static uint32_t link_word(struct pfx_part *q)
{
	const struct topo_switch *s = &q->pfx->fabric->topo->switches[q->pfx->sw];

	return (uint32_t)port_link_speed(s) << 16 | s->width << 20;
}

static uint32_t read_pff(struct pfx_part *p, uint32_t offset)
{
	unsigned int pff = (offset - GAS_PFF) / GAS_PFF_SIZE;
	uint32_t at = (offset - GAS_PFF) % GAS_PFF_SIZE;

	/* A vendor that is not ours ends the list. */
	if (pff >= p->pfx->npffs)
		return ~0u;
	if (at == PFF_ID)
		return PFX_VENDOR | PFX_DEVICE << 16;
	return at == PFF_LINK ? link_word(part_of(p->pfx, pff)) : 0;
}

/* @offset is that of an aligned word. */
static uint32_t read_word(struct pfx_part *p, uint32_t offset)
{
	uint32_t v;

	if (offset < GAS_MRPC_END)
		return pfx_mrpc_read(p, offset);
	if (pfx_event_read(p, offset, &v))
		return v;
	if (offset >= GAS_SYS && offset < GAS_SYS_END)
		return read_sys(p, offset - GAS_SYS);
	if (offset >= GAS_PART && offset < GAS_NTB_INFO)
		return read_part(p, offset);
	if (offset >= GAS_NTB_INFO && offset < GAS_NTB_INFO_END)
		return pfx_info_read(p, offset - GAS_NTB_INFO);
	if (offset >= GAS_NTB_CTRL && offset < GAS_NTB_DBMSG)
		return pfx_ctrl_read(p, offset - GAS_NTB_CTRL);
	if (offset >= GAS_NTB_DBMSG && offset < GAS_PFF)
		return pfx_dbmsg_read(p, offset - GAS_NTB_DBMSG);
	return offset >= GAS_PFF ? read_pff(p, offset) : 0;
}

/* Bytes of @v that @mask has ones for. */
static void write_word(struct pfx_part *p, uint32_t offset, uint32_t v,
		       uint32_t mask)
{
	if (offset < GAS_MRPC_END)
		pfx_mrpc_write(p, offset, v, mask);
	else if (pfx_event_write(p, offset, v, mask))
		return;
	else if (offset >= GAS_NTB_CTRL && offset < GAS_NTB_DBMSG)
		pfx_ctrl_write(p, offset - GAS_NTB_CTRL, v, mask);
	else if (offset >= GAS_NTB_DBMSG && offset < GAS_PFF)
		pfx_dbmsg_write(p, offset - GAS_NTB_DBMSG, v, mask);
}

static void gas_read(struct pfx_part *p, uint64_t offset, uint8_t *buf,
		     size_t count)
{
	size_t n;

	for (; count; offset += n, buf += n, count -= n) {
		uint32_t v = read_word(p, (uint32_t)offset & ~3u);

		n = pfx_in_word(offset, count);
		memcpy(buf, (uint8_t *)&v + (offset & 3), n);
	}
}

static void gas_write(struct pfx_part *p, uint64_t offset, const uint8_t *buf,
		      size_t count)
{
	size_t n;

	for (; count; offset += n, buf += n, count -= n) {
		uint32_t v = 0, mask = 0;

		n = pfx_in_word(offset, count);
		memcpy((uint8_t *)&v + (offset & 3), buf, n);
		memset((uint8_t *)&mask + (offset & 3), 0xff, n);
		write_word(p, (uint32_t)offset & ~3u, v, mask);
	}
}

static void on_read(void *arg, unsigned int bar, uint64_t offset, void *buf,
		    size_t count)
{
	struct pfx_part *p = arg;

	pthread_mutex_lock(&p->pfx->lock);
	if (!bar)
		gas_read(p, offset, buf, count);
	else if (!pfx_window_access(p, PFX_CPU, bar, offset, buf, NULL, count))
		memset(buf, 0xff, count);
	pthread_mutex_unlock(&p->pfx->lock);
}

static void on_write(void *arg, unsigned int bar, uint64_t offset,
		     const void *buf, size_t count)
{
	struct pfx_part *p = arg;

	pthread_mutex_lock(&p->pfx->lock);
	if (!bar)
		gas_write(p, offset, buf, count);
	else
		pfx_window_access(p, PFX_CPU, bar, offset, NULL, buf, count);
	pthread_mutex_unlock(&p->pfx->lock);
}

/* ---- Hosts ---- */

void pfx_raise(struct pfx_part *p, unsigned int vector)
{
	if (p->attached)
		function_raise(p->port->fn, vector);
}

static void on_attach(void *arg)
{
	struct pfx_part *p = arg;

	pthread_mutex_lock(&p->pfx->lock);
	p->attached = true;
	pfx_event_link(p);
	pthread_mutex_unlock(&p->pfx->lock);
}

static void on_detach(void *arg)
{
	struct pfx_part *p = arg;

	pthread_mutex_lock(&p->pfx->lock);
	p->attached = false;
	pfx_event_link(p);
	pthread_mutex_unlock(&p->pfx->lock);
}

/* What its peer had set up in its tables is forgotten with the rest. */
static void on_reset(void *arg, enum function_reset why)
{
	struct pfx_part *p = arg;

	(void)why;
	pthread_mutex_lock(&p->pfx->lock);
	pfx_mrpc_reset(p);
	pfx_ctrl_reset(p);
	pfx_dbmsg_reset(p);
	pfx_events_reset(p);
	pfx_event_link(p);
	pthread_mutex_unlock(&p->pfx->lock);
}

const struct function_ops pfx_function_ops = {
	.bar_read = on_read,
	.bar_write = on_write,
	.attach = on_attach,
	.detach = on_detach,
	.reset = on_reset,
};

void pfx_link_changed(struct pfx_part *p)
{
	pthread_mutex_lock(&p->pfx->lock);
	pfx_event_link(p);
	pthread_mutex_unlock(&p->pfx->lock);
}

void pfx_describe(struct pfx_part *p, struct function_desc *d)
{
	const uint32_t dbmsg = GAS_NTB_DBMSG + p->id * GAS_NTB_DBMSG_SIZE;
	const struct topo_switch *s = &p->pfx->fabric->topo->switches[p->pfx->sw];

	memset(d, 0, sizeof(*d));
	d->name = p->port->name;
	d->vendor = PFX_VENDOR;
	d->device = PFX_DEVICE;
	d->subvendor = PFX_SUBVENDOR;
	d->subdevice = PFX_SUBDEVICE;
	d->class_code = pfx_has_ntb(p) ? 0x068000 : 0x058000;
	d->link_speed = port_link_speed(s);
	d->link_width = s->width;
	for (unsigned int i = 0; i < CTRL_NBARS; i += 2) {
		d->bar[i].size = !i ? GAS_SIZE : p->window;
		d->bar[i].flags = FUNCTION_BAR_64 | FUNCTION_BAR_PREFETCH;
	}
	d->msix_vectors = PFX_VECTORS;
	d->msix_table = dbmsg + DB_MSIX_TABLE;
	d->msix_pba = dbmsg + DB_MSIX_PBA;
	d->dma = true;
	d->isolated = true;
	d->link = &p->port->link->up;
}

/* ---- Construction ---- */

static struct pfx_part *make_part(struct pfx *x, struct port *port)
{
	struct pfx_part *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pfx = x;
	p->port = port;
	p->dma = pfx_dma_new(p);
	p->id = x->nparts;
	p->slots = x->fabric->topo->hosts[port->host].slots;
	p->first_pff = x->npffs;
	x->npffs += 2 + p->slots;
	x->parts[x->nparts++] = p;
	port->part = p;
	return p->dma ? p : NULL;
}

static void join(struct pfx_part *p)
{
	const struct topology *t = p->pfx->fabric->topo;
	struct topo_host_port other;
	const struct topo_ntb *n = topology_find_ntb(t, p->port->host,
						     p->port->index, &other);

	if (!n)
		return;
	p->peer = fabric_port_of(p->pfx->fabric, other.host,
				 other.port)->part;
	p->window = n->window;
}

static int too_many(const struct pfx *x, const char *what, unsigned int most,
		    const char *remedy)
{
	log_error("switch %s: more than %u %s; %s",
		  x->fabric->topo->switches[x->sw].name, most, what, remedy);
	return -EINVAL;
}

/* All that is behind a port is one device of that many functions. */
static int check_behind(struct pfx *x)
{
	for (unsigned int i = 1; i <= x->nports; i++) {
		unsigned int n = 0, ep = pfx_behind(x, i, 0);

		x->phys[i].trained = ep != TOPO_NONE;
		for (; ep != TOPO_NONE; ep = pfx_behind(x, i, ep + 1))
			n++;
		if (n > SLOT_FUNCTIONS)
			return too_many(x, "endpoints behind a port",
					SLOT_FUNCTIONS,
					"give the appliance more uplinks or fewer endpoints");
	}
	return 0;
}

/* Events need to know how many port functions there are. */
static int finish(struct pfx *x)
{
	int err = check_behind(x);

	if (x->npffs > GAS_PFF_MAX)
		return too_many(x, "port functions", GAS_PFF_MAX,
				"give its hosts fewer ports or slots");
	for (unsigned int i = 0; !err && i < x->nparts; i++) {
		struct pfx_part *p = x->parts[i];

		join(p);
		err = pfx_events_init(p);
		if (err)
			break;
		pfx_ctrl_reset(p);
		pfx_dbmsg_reset(p);
	}
	return err;
}

static int make_switch(struct fabric *f, unsigned int sw)
{
	struct pfx *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	pthread_mutex_init(&x->lock, NULL);
	x->fabric = f;
	x->sw = sw;
	x->nports = f->topo->switches[sw].nports;
	x->next = f->pfxs;
	f->pfxs = x;
	for (unsigned int i = 0; i < f->nports; i++) {
		if (f->ports[i]->link->sw != sw)
			continue;
		if (x->nparts == PFX_PARTITIONS)
			return too_many(x, "host ports", PFX_PARTITIONS,
					"give its hosts fewer ports");
		if (!make_part(x, f->ports[i]))
			return -ENOMEM;
	}
	return finish(x);
}

int pfx_init(struct fabric *f)
{
	int err = 0;

	for (unsigned int s = 0; !err && s < f->topo->nswitches; s++) {
		if (f->topo->switches[s].model == TOPO_PFX)
			err = make_switch(f, s);
	}
	return err;
}

void pfx_free(struct fabric *f)
{
	while (f->pfxs) {
		struct pfx *x = f->pfxs;

		f->pfxs = x->next;
		for (unsigned int i = 0; i < x->nparts; i++) {
			pfx_events_free(x->parts[i]);
			pfx_dma_free(x->parts[i]->dma);
			free(x->parts[i]);
		}
		pthread_mutex_destroy(&x->lock);
		free(x);
	}
}
