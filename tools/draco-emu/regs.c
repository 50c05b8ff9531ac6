// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host port: what the server's accesses do. Everything here is called by
 * function.c in the function's own thread.
 */
#include <string.h>

#include "fabric.h"
#include "function.h"
#include "log.h"
#include "port.h"

#define CAP_LOW		(PORT_ADMIN_MAX | PORT_TIMEOUT_100MS << 16)
#define CAP_HIGH	((uint32_t)(DRACO_CAP_SHADOW_DB >> 32))

/* ---- Registers ---- */

static uint32_t read_status(struct port *p)
{
	uint32_t s = atomic_load(&p->status);

	if (atomic_load(&p->link->up))
		s |= DRACO_STATUS_LINK;
	return s;
}

static uint32_t read_reg(struct port *p, uint64_t offset)
{
	switch (offset) {
	case DRACO_REG_MAGIC:
		return DRACO_MAGIC;
	case DRACO_REG_VERSION:
		return DRACO_VERSION;
	case DRACO_REG_CAP:
		return CAP_LOW;
	case DRACO_REG_CAP + 4:
		return CAP_HIGH | (p->doorbell_shift - 12) << 4;
	case DRACO_REG_CTRL:
		return p->reg.ctrl;
	case DRACO_REG_STATUS:
		return read_status(p);
	case DRACO_REG_ADMIN_SIZE:
		return p->reg.admin_size;
	case DRACO_REG_ERROR:
		return atomic_load(&p->error);
	case DRACO_REG_ADMIN_SQ:
		return (uint32_t)p->reg.admin_sq;
	case DRACO_REG_ADMIN_SQ + 4:
		return p->reg.admin_sq >> 32;
	case DRACO_REG_ADMIN_CQ:
		return (uint32_t)p->reg.admin_cq;
	case DRACO_REG_ADMIN_CQ + 4:
		return p->reg.admin_cq >> 32;
	case DRACO_REG_PORT_ID:
		return p->link->id;
	case DRACO_REG_GENERATION:
		return atomic_load(&p->generation);
	default:
		return 0;
	}
}

/* ENABLE has changed, or everything is reset: returns the new epoch. */
static uint64_t request(struct port *p)
{
	uint64_t epoch;

	pthread_mutex_lock(&p->req_lock);
	epoch = ++p->req.epoch;
	p->req.enable = p->reg.ctrl & DRACO_CTRL_ENABLE;
	p->req.size = p->reg.admin_size;
	p->req.sq = p->reg.admin_sq;
	p->req.cq = p->reg.admin_cq;
	p->req.fatal = 0;
	pthread_mutex_unlock(&p->req_lock);
	port_kick(p);
	return epoch;
}

static void write_ctrl(struct port *p, uint32_t v)
{
	uint32_t old = p->reg.ctrl;

	/* A controller that is deaf to its driver, until the function is reset. */
	if (old && !(v & DRACO_CTRL_ENABLE) &&
	    fault_hit(&p->faults, DRACO_FAULT_STUCK_STOP, FAULT_ANY_QUEUE))
		return;
	p->reg.ctrl = v & DRACO_CTRL_ENABLE;
	if (p->reg.ctrl != old)
		request(p);
}

static void ring_doorbell(struct port *p, _Atomic uint32_t *which, uint32_t v)
{
	if (!port_is_ready(p))
		return;
	if (v >= p->reg.admin_size) {
		port_fail(p, DRACO_FATAL_ADMIN_INDEX);
		return;
	}
	atomic_store(which, v);
	port_kick(p);
}

static void write_setup(struct port *p, uint64_t offset, uint32_t v)
{
	struct port_regs *r = &p->reg;

	/* They belong to the device while it is enabled. */
	if (r->ctrl & DRACO_CTRL_ENABLE)
		return;
	switch (offset) {
	case DRACO_REG_ADMIN_SIZE:
		r->admin_size = v;
		break;
	case DRACO_REG_ADMIN_SQ:
		r->sq_low = v;
		break;
	case DRACO_REG_ADMIN_SQ + 4:
		r->admin_sq = (uint64_t)v << 32 | r->sq_low;
		break;
	case DRACO_REG_ADMIN_CQ:
		r->cq_low = v;
		break;
	case DRACO_REG_ADMIN_CQ + 4:
		r->admin_cq = (uint64_t)v << 32 | r->cq_low;
		break;
	}
}

static void write_reg(struct port *p, uint64_t offset, uint32_t v)
{
	switch (offset) {
	case DRACO_REG_CTRL:
		write_ctrl(p, v);
		break;
	case DRACO_REG_ADMIN_SQ_TAIL:
		ring_doorbell(p, &p->admin.sq_tail, v);
		break;
	case DRACO_REG_ADMIN_CQ_HEAD:
		ring_doorbell(p, &p->admin.cq_head, v);
		break;
	default:
		write_setup(p, offset, v);
	}
}

/* Aligned accesses of 4, or of 8 as two of 4. */
static bool reg_access(uint64_t offset, size_t count)
{
	return (count == 4 || count == 8) && !(offset & (count - 1));
}

static void regs_read(struct port *p, uint64_t offset, void *buf, size_t count)
{
	if (!reg_access(offset, count)) {
		memset(buf, 0xff, count);
		return;
	}
	for (size_t i = 0; i < count; i += 4) {
		uint32_t v = read_reg(p, offset + i);

		memcpy((char *)buf + i, &v, 4);
	}
}

static void regs_write(struct port *p, uint64_t offset, const void *buf,
		       size_t count)
{
	if (!reg_access(offset, count))
		return;
	for (size_t i = 0; i < count; i += 4) {
		uint32_t v;

		memcpy(&v, (const char *)buf + i, 4);
		write_reg(p, offset + i, v);
	}
}

/* ---- Doorbell pages ---- */

static void queue_doorbell(struct queue *q, uint32_t offset, uint32_t v)
{
	if (offset == FABREX_DB_ARM) {
		queue_arm(q, v);
		return;
	}
	count(&q->counters, CNT_DOORBELLS);
	count(&q->port->counters, CNT_DOORBELLS);
	if (!fault_hit(&q->port->faults, DRACO_FAULT_DROP_DOORBELL, q->number))
		queue_kick(q);
}

static void doorbell_write(struct port *p, uint64_t offset, const void *buf,
			   size_t count)
{
	uint32_t reg = offset & ((1u << p->doorbell_shift) - 1), v;
	struct queue *q;

	if (count != 4 || (reg != FABREX_DB_SQ && reg != FABREX_DB_ARM) ||
	    !port_enter(p))
		return;
	memcpy(&v, buf, 4);
	q = queue_get(p, (uint32_t)(offset >> p->doorbell_shift));
	if (q) {
		queue_doorbell(q, reg, v);
		queue_put(q);
	}
	port_leave(p);
}

/* ---- Function operations ---- */

static void bar_read(void *arg, unsigned int bar, uint64_t offset, void *buf,
		     size_t count)
{
	if (bar == DRACO_BAR_REGS)
		regs_read(arg, offset, buf, count);
	else if (bar == DRACO_BAR_WINDOW)
		window_read(arg, offset, buf, count);
	else
		memset(buf, 0, count);
}

static void bar_write(void *arg, unsigned int bar, uint64_t offset,
		      const void *buf, size_t count)
{
	if (bar == DRACO_BAR_REGS)
		regs_write(arg, offset, buf, count);
	else if (bar == DRACO_BAR_DOORBELL)
		doorbell_write(arg, offset, buf, count);
	else if (bar == DRACO_BAR_WINDOW)
		window_write(arg, offset, buf, count);
}

/* Waits for the engine to be done with this port; it never waits for us. */
static void reset(void *arg, enum function_reset why)
{
	struct port *p = arg;
	uint64_t epoch;

	memset(&p->reg, 0, sizeof(p->reg));
	fault_arm(&p->faults, DRACO_FAULT_STUCK_STOP, FAULT_ANY_QUEUE, 0);
	epoch = request(p);
	pthread_mutex_lock(&p->req_lock);
	while (p->stopped_epoch < epoch)
		pthread_cond_wait(&p->stopped, &p->req_lock);
	pthread_mutex_unlock(&p->req_lock);
	log_debug("port %s: reset (%s)", p->name,
		  why == FUNCTION_RESET_FLR ? "function level" :
		  why == FUNCTION_RESET_DEVICE ? "device" : "client gone");
}

const struct function_ops port_function_ops = {
	.bar_read = bar_read,
	.bar_write = bar_write,
	.reset = reset,
};

static uint64_t round_up_pow2(uint64_t v)
{
	uint64_t size = 4096;

	while (size < v)
		size <<= 1;
	return size;
}

uint8_t port_link_speed(const struct topo_switch *s)
{
	return s->speed >= 64 ? 6 : s->speed >= 32 ? 5 :
	       s->speed >= 16 ? 4 : s->speed >= 8 ? 3 : 2;
}

void port_describe(struct port *p, struct function_desc *d)
{
	const struct topo_limits *l = &p->fabric->topo->limits;
	const struct topo_switch *s = &p->fabric->topo->switches[p->link->sw];

	memset(d, 0, sizeof(*d));
	d->name = p->name;
	d->vendor = d->subvendor = DRACO_PCI_VENDOR;
	d->device = d->subdevice = DRACO_PCI_DEVICE_PORT;
	d->class_code = 0x068000;
	d->revision = 1;
	d->link_speed = port_link_speed(s);
	d->link_width = s->width;
	d->bar[DRACO_BAR_REGS].size = DRACO_BAR_REGS_SIZE;
	d->bar[DRACO_BAR_REGS].flags = FUNCTION_BAR_64;
	d->bar[DRACO_BAR_DOORBELL].size =
		round_up_pow2((uint64_t)l->queues << p->doorbell_shift);
	d->bar[DRACO_BAR_DOORBELL].flags = FUNCTION_BAR_64;
	d->bar[DRACO_BAR_WINDOW].size =
		round_up_pow2(l->window_slots * l->window_slot_size);
	d->bar[DRACO_BAR_WINDOW].flags =
		FUNCTION_BAR_64 | FUNCTION_BAR_PREFETCH;
	d->msix_vectors = PORT_MSIX_VECTORS;
	d->msix_bar = DRACO_BAR_REGS;
	d->msix_table = DRACO_MSIX_TABLE_OFFSET;
	d->msix_pba = DRACO_MSIX_PBA_OFFSET;
	d->dma = true;
}
