// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: the DMA engine. Channels fetch descriptors from rings in host
 * memory, copy, and write completions. Run as works on the emulator's engine.
 */
#include "pfx_dma.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "pfx.h"
#include "port.h"
#include "slot.h"
#include "vfio_user.h"

#define BAR_SIZE		0x200000u
#define MSIX_TABLE		0x1f0000u
#define MSIX_PBA		0x1f8000u

/* ---- Registers ---- */

#define REG_CHANNELS		0x84u
#define REG_TAGS		0x90u
#define REG_STATUS_VECTOR	0x94u
#define REG_BUFFERS		0x98u		/* count, base: 16 bits each */

#define CHANNEL			0x1000u
#define CHANNEL_SIZE		0x1000u
#define CH_CQ_HEAD		0x0u
#define CH_SQ_TAIL		0x4u
#define CH_CTRL			0x8u
#define CH_STATUS		0xcu

#define CTRL_PAUSE		(1u << 0)
#define CTRL_HALT		(1u << 1)
#define CTRL_RESET		(1u << 2)
#define CTRL_STOP_AT_ERROR	(1u << 3)
#define STATUS_PAUSED		(1u << 9)
#define STATUS_HALTED		(1u << 10)
#define STATUS_TIMEOUT		(1u << 20)
#define STATUS_UNSUPPORTED	(1u << 21)
#define STATUS_BAD_FABRIC	(1u << 26)
#define STATUS_BAD_OPCODE	(1u << 28)

#define SETUP			0x160000u
#define SETUP_SIZE		0x80u
#define SETUP_ENABLE		0u		/* word numbers */
#define SETUP_CQ		1u
#define SETUP_CQ_SIZE		3u
#define SETUP_SQ		4u
#define SETUP_SQ_SIZE		6u
#define SETUP_VECTOR		7u
#define SETUP_BYTES		13u
#define ENABLE_VALID		(1u << 0)
#define ENABLE_ON		(1u << 1)
#define ENABLE_BUFFERS_SHIFT	12
#define BUFFERS			64u

#define STATUS_VECTOR		0u
#define FIRST_VECTOR		1u

/* ---- Descriptors and completions ---- */

#define OP_COPY			0u
#define OP_NOTHING		7u
#define DESC_INTERRUPT		(1u << 6)
#define DESC_MAX		0x100000u
#define THIS_HOST		0xffffu

#define CPL_LENGTH		(1u << 0)
#define CPL_UNSUPPORTED		(1u << 1)
#define CPL_BAD_FABRIC		(1u << 14)
#define CPL_BAD_OPCODE		(1u << 16)

struct completion {
	uint32_t immediate[2], reserved1;
	uint32_t bytes;
	uint16_t sq_head, reserved2;
	uint32_t reserved3;
	uint32_t status;
	uint16_t id, phase;
};

_Static_assert(sizeof(struct pfx_dma_desc) == 32, "docs/switchtec.md");
_Static_assert(sizeof(struct completion) == 32, "docs/switchtec.md");

/* ---- The host's address space ---- */

static int get(struct pfx_dma *d, uint64_t addr, size_t len, unsigned int prot,
	       struct dma_hold *h)
{
	struct slots *s = d->part->port->slots;
	int err = s ? slots_peer(s, addr, len, prot, h) : -ENXIO;

	return err == -ENXIO ? dma_get(function_dma(d->fn), addr, len, prot, h) :
			       err;
}

/* A window of the partition, which the switch forwards without the host. */
static bool find_window(struct pfx_dma *d, uint64_t addr, size_t len,
			unsigned int *bar, uint64_t *offset)
{
	struct pfx_part *p = d->part;
	uint64_t base, size;

	for (*bar = 2; p->attached && *bar <= 4; *bar += 2) {
		if (!function_bar_addr(p->port->fn, *bar, &base, &size) ||
		    addr < base || addr - base >= size ||
		    len > size - (addr - base))
			continue;
		*offset = addr - base;
		return true;
	}
	return false;
}

/* Behind an IOMMU the host's BARs, windows too, have addresses that only its client
 * knows. It answers to the function's thread, which may be waiting for the lock.
 */
static bool copy_message(struct pfx_dma *d, uint64_t addr, void *in,
			 const void *out, size_t *n)
{
	int err;

	if (*n > VU_MAX_DMA)
		*n = VU_MAX_DMA;
	pthread_mutex_unlock(&d->lock);
	err = function_message(d->fn, !in, addr, in ? in : (void *)out, *n);
	pthread_mutex_lock(&d->lock);
	return !err;
}

static bool copy_some(struct pfx_dma *d, uint64_t addr, void *in,
		      const void *out, size_t *n)
{
	struct dma_hold h;
	int err = get(d, addr, *n, in ? DMA_PROT_READ : DMA_PROT_WRITE, &h);

	if (err == -ENODATA)
		return copy_message(d, addr, in, out, n);
	if (err)
		return false;
	*n = h.len < *n ? h.len : *n;
	if (in)
		memcpy(in, h.ptr, *n);
	else
		memcpy(h.ptr, out, *n);
	return !dma_put(&h);
}

static bool copy_memory(struct pfx_dma *d, uint64_t addr, void *in,
			const void *out, size_t len)
{
	size_t done, n;

	for (done = 0; done < len; done += n) {
		n = len - done;
		if (!copy_some(d, addr + done, in ? (char *)in + done : NULL,
			       out ? (const char *)out + done : NULL, &n))
			return false;
	}
	return true;
}

/* @in or @out is NULL. False: nothing is there. The lock may be released meanwhile. */
static bool transfer(struct pfx_dma *d, uint64_t addr, void *in,
		     const void *out, size_t len)
{
	struct pfx *x = d->part->pfx;
	unsigned int bar;
	uint64_t offset;
	bool window, good = false;

	pthread_mutex_lock(&x->lock);
	window = find_window(d, addr, len, &bar, &offset);
	if (window)
		good = pfx_window_access(d->part, PFX_SELF, bar, offset, in,
					 out, len);
	pthread_mutex_unlock(&x->lock);
	return window ? good : copy_memory(d, addr, in, out, len);
}

/* ---- A channel ---- */

static bool halted(const struct pfx_channel *c)
{
	return c->ctrl & (CTRL_PAUSE | CTRL_HALT | CTRL_RESET) || c->errors ||
	       !(c->setup[SETUP_ENABLE] & ENABLE_ON);
}

static uint16_t next(uint16_t index, uint32_t size)
{
	return index + 1u < (size & 0xffff) ? index + 1 : 0;
}

static void reset_channel(struct pfx_channel *c)
{
	c->cq_head = c->sq_tail = c->sq_head = c->cq_tail = 0;
	c->phase = true;
	c->active = false;
	c->errors = 0;
}

/* It stops, and says so by a vector of its own. */
static void stop(struct pfx_channel *c, uint32_t reason)
{
	c->errors = reason;
	function_raise(c->dma->fn, STATUS_VECTOR);
}

/* What makes the completion valid is stored last. */
static bool store_completion(struct pfx_channel *c, const struct completion *e)
{
	uint64_t at = pfx_join(&c->setup[SETUP_CQ]) + c->cq_tail * sizeof(*e);
	const size_t rest = offsetof(struct completion, id);
	struct dma_hold h;
	uint32_t last;

	if (get(c->dma, at, sizeof(*e), DMA_PROT_WRITE, &h))
		return false;
	if (h.len < sizeof(*e) || (uintptr_t)h.ptr % 4) {
		dma_put(&h);
		return false;
	}
	memcpy(&last, &e->id, sizeof(last));
	memcpy(h.ptr, e, rest);
	__atomic_store_n((uint32_t *)((char *)h.ptr + rest), last,
			 __ATOMIC_RELEASE);
	return !dma_put(&h);
}

static void complete(struct pfx_channel *c, uint32_t status, uint32_t reason)
{
	struct completion e = {
		.bytes = c->done, .sq_head = next(c->sq_head,
						  c->setup[SETUP_SQ_SIZE]),
		.status = status, .id = c->desc.id, .phase = c->phase,
	};

	c->active = false;
	c->sq_head = e.sq_head;
	if (!store_completion(c, &e)) {
		stop(c, STATUS_TIMEOUT);
		return;
	}
	c->cq_tail = next(c->cq_tail, c->setup[SETUP_CQ_SIZE]);
	if (!c->cq_tail)
		c->phase = !c->phase;
	if (c->desc.control & DESC_INTERRUPT || status)
		function_raise(c->dma->fn, FIRST_VECTOR + c->number);
	if (status && c->ctrl & CTRL_STOP_AT_ERROR)
		stop(c, reason);
}

/* A requester that is not in the table gets nothing through a window. */
static bool is_lost(struct pfx_dma *d, uint64_t addr, size_t len)
{
	struct pfx *x = d->part->pfx;
	unsigned int bar;
	uint64_t offset;
	bool window;

	pthread_mutex_lock(&x->lock);
	window = find_window(d, addr, len, &bar, &offset);
	pthread_mutex_unlock(&x->lock);
	return window && pfx_fault_dma(d->part, PFX_FAULT_LOST);
}

/* Stores are posted: one that reaches nothing is no error. */
static void copy_piece(struct pfx_channel *c)
{
	const struct pfx_dma_desc *e = &c->desc;
	size_t n = e->bytes - c->done;
	bool good;

	if (n > PFX_DMA_PIECE)
		n = PFX_DMA_PIECE;
	good = !pfx_fault_dma(c->dma->part, PFX_FAULT_ERROR) &&
	       transfer(c->dma, pfx_join(e->src) + c->done, c->piece, NULL, n);
	if (good && c->active && !is_lost(c->dma, pfx_join(e->dst) + c->done, n))
		transfer(c->dma, pfx_join(e->dst) + c->done, NULL, c->piece, n);
	/* It may have been reset. */
	if (!c->active)
		return;
	if (!good) {
		complete(c, CPL_UNSUPPORTED, STATUS_UNSUPPORTED);
		return;
	}
	c->done += n;
	c->setup[SETUP_BYTES] += n;
	if (c->done == e->bytes)
		complete(c, 0, 0);
}

static void execute(struct pfx_channel *c)
{
	const struct pfx_dma_desc *e = &c->desc;

	if (e->opcode == OP_NOTHING || (e->opcode == OP_COPY && !e->bytes))
		complete(c, 0, 0);
	else if (e->opcode != OP_COPY)
		complete(c, CPL_BAD_OPCODE, STATUS_BAD_OPCODE);
	else if (e->src_fabric != THIS_HOST || e->dst_fabric != THIS_HOST)
		complete(c, CPL_BAD_FABRIC, STATUS_BAD_FABRIC);
	else if (e->bytes > DESC_MAX)
		complete(c, CPL_LENGTH, STATUS_UNSUPPORTED);
	else
		copy_piece(c);
}

static bool fetch(struct pfx_channel *c)
{
	uint64_t at = pfx_join(&c->setup[SETUP_SQ]) +
		      c->sq_head * sizeof(c->desc);

	if (!copy_memory(c->dma, at, &c->desc, NULL, sizeof(c->desc))) {
		stop(c, STATUS_TIMEOUT);
		return false;
	}
	c->active = true;
	c->done = 0;
	return true;
}

static bool room(const struct pfx_channel *c)
{
	return next(c->cq_tail, c->setup[SETUP_CQ_SIZE]) != c->cq_head;
}

/* One piece of work at most. False: there is none now. */
static bool step(struct pfx_channel *c)
{
	if (!c->dma->attached || halted(c) || !room(c))
		return false;
	if (!c->active && (c->sq_head == c->sq_tail || !fetch(c)))
		return false;
	execute(c);
	return true;
}

static enum run_result channel_run(struct work *w, bool light)
{
	struct pfx_channel *c = (struct pfx_channel *)w;
	bool more;

	(void)light;
	pthread_mutex_lock(&c->dma->lock);
	more = step(c);
	pthread_mutex_unlock(&c->dma->lock);
	return more ? RUN_MORE : RUN_IDLE;
}

static void kick(struct pfx_channel *c)
{
	engine_kick(&c->dma->part->pfx->fabric->engine, &c->work);
}

/* ---- Registers ---- */

static struct pfx_channel *channel_at(struct pfx_dma *d, uint32_t offset,
				      uint32_t first, uint32_t size)
{
	if (offset < first || (offset - first) / size >= PFX_DMA_CHANNELS)
		return NULL;
	return &d->channel[(offset - first) / size];
}

static uint32_t read_channel(const struct pfx_channel *c, uint32_t offset)
{
	switch (offset) {
	case CH_CQ_HEAD:
		return c->cq_head;
	case CH_SQ_TAIL:
		return c->sq_tail;
	case CH_CTRL:
		return c->ctrl;
	case CH_STATUS:
		return (c->ctrl & CTRL_PAUSE || c->errors ? STATUS_PAUSED : 0) |
		       (c->ctrl & CTRL_HALT ? STATUS_HALTED : 0) | c->errors;
	default:
		return 0;
	}
}

static uint32_t read_word(struct pfx_dma *d, uint32_t offset)
{
	struct pfx_channel *c;

	switch (offset) {
	case REG_CHANNELS:
		return PFX_DMA_CHANNELS;
	case REG_TAGS:
		return BUFFERS;
	case REG_STATUS_VECTOR:
		return STATUS_VECTOR;
	case REG_BUFFERS:
		return BUFFERS * PFX_DMA_CHANNELS;
	}
	c = channel_at(d, offset, CHANNEL, CHANNEL_SIZE);
	if (c)
		return read_channel(c, (offset - CHANNEL) % CHANNEL_SIZE);
	c = channel_at(d, offset, SETUP, SETUP_SIZE);
	return c ? c->setup[(offset - SETUP) % SETUP_SIZE / 4] : 0;
}

static void write_channel(struct pfx_channel *c, uint32_t offset, uint32_t v,
			  uint32_t mask)
{
	switch (offset) {
	case CH_CQ_HEAD:
		c->cq_head = pfx_merge(c->cq_head, v, mask);
		break;
	case CH_SQ_TAIL:
		c->sq_tail = pfx_merge(c->sq_tail, v, mask);
		break;
	case CH_CTRL:
		c->ctrl = pfx_merge(c->ctrl, v, mask) & 0xff;
		/* Whoever has seen why it stopped lets it go on. */
		c->errors = 0;
		if (c->ctrl & CTRL_RESET)
			reset_channel(c);
		break;
	}
	kick(c);
}

static void write_word(struct pfx_dma *d, uint32_t offset, uint32_t v,
		       uint32_t mask)
{
	struct pfx_channel *c = channel_at(d, offset, CHANNEL, CHANNEL_SIZE);
	unsigned int word = (offset - SETUP) % SETUP_SIZE / 4;

	if (c) {
		write_channel(c, (offset - CHANNEL) % CHANNEL_SIZE, v, mask);
		return;
	}
	c = channel_at(d, offset, SETUP, SETUP_SIZE);
	if (!c || word == SETUP_VECTOR)
		return;
	c->setup[word] = pfx_merge(c->setup[word], v, mask);
	kick(c);
}

static void on_read(void *arg, unsigned int bar, uint64_t offset, void *buf,
		    size_t count)
{
	struct pfx_dma *d = arg;
	uint8_t *to = buf;
	size_t n;

	(void)bar;
	pthread_mutex_lock(&d->lock);
	for (; count; offset += n, to += n, count -= n) {
		uint32_t v = read_word(d, (uint32_t)offset & ~3u);

		n = pfx_in_word(offset, count);
		memcpy(to, (uint8_t *)&v + (offset & 3), n);
	}
	pthread_mutex_unlock(&d->lock);
}

static void on_write(void *arg, unsigned int bar, uint64_t offset,
		     const void *buf, size_t count)
{
	struct pfx_dma *d = arg;
	const uint8_t *from = buf;
	size_t n;

	(void)bar;
	pthread_mutex_lock(&d->lock);
	for (; count; offset += n, from += n, count -= n) {
		uint32_t v = 0, mask = 0;

		n = pfx_in_word(offset, count);
		memcpy((uint8_t *)&v + (offset & 3), from, n);
		memset((uint8_t *)&mask + (offset & 3), 0xff, n);
		write_word(d, (uint32_t)offset & ~3u, v, mask);
	}
	pthread_mutex_unlock(&d->lock);
}

/* ---- The function ---- */

static void power_on(struct pfx_dma *d)
{
	for (unsigned int i = 0; i < PFX_DMA_CHANNELS; i++) {
		struct pfx_channel *c = &d->channel[i];

		reset_channel(c);
		c->ctrl = CTRL_HALT;
		memset(c->setup, 0, sizeof(c->setup));
		c->setup[SETUP_ENABLE] = ENABLE_VALID | i * BUFFERS << 2 |
					 BUFFERS << ENABLE_BUFFERS_SHIFT;
		c->setup[SETUP_VECTOR] = FIRST_VECTOR + i;
	}
}

static void on_reset(void *arg, enum function_reset why)
{
	struct pfx_dma *d = arg;

	(void)why;
	pthread_mutex_lock(&d->lock);
	power_on(d);
	pthread_mutex_unlock(&d->lock);
}

static void set_attached(struct pfx_dma *d, bool on)
{
	pthread_mutex_lock(&d->lock);
	d->attached = on;
	pthread_mutex_unlock(&d->lock);
}

static void on_attach(void *arg)
{
	set_attached(arg, true);
}

static void on_detach(void *arg)
{
	set_attached(arg, false);
}

const struct function_ops pfx_dma_function_ops = {
	.bar_read = on_read,
	.bar_write = on_write,
	.attach = on_attach,
	.detach = on_detach,
	.reset = on_reset,
};

void pfx_dma_describe(struct pfx_dma *d, struct function_desc *desc)
{
	pfx_describe(d->part, desc);
	memset(desc->bar, 0, sizeof(desc->bar));
	desc->name = d->name;
	desc->class_code = 0x088000;
	desc->bar[0].size = BAR_SIZE;
	desc->bar[0].flags = FUNCTION_BAR_64 | FUNCTION_BAR_PREFETCH;
	desc->msix_vectors = FIRST_VECTOR + PFX_DMA_CHANNELS;
	desc->msix_table = MSIX_TABLE;
	desc->msix_pba = MSIX_PBA;
}

struct pfx_dma *pfx_dma_new(struct pfx_part *p)
{
	struct pfx_dma *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	pthread_mutex_init(&d->lock, NULL);
	d->part = p;
	snprintf(d->name, sizeof(d->name), "%s.dma", p->port->name);
	for (unsigned int i = 0; i < PFX_DMA_CHANNELS; i++) {
		d->channel[i].work.run = channel_run;
		d->channel[i].dma = d;
		d->channel[i].number = i;
	}
	power_on(d);
	return d;
}

void pfx_dma_free(struct pfx_dma *d)
{
	if (!d)
		return;
	pthread_mutex_destroy(&d->lock);
	free(d);
}
