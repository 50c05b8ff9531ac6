// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moving bytes between regions: page lists to memory, pieces, checks on the
 * way, check sums. Called by op.c.
 */
#include "copy.h"

#include <errno.h>
#include <string.h>

#include "audit.h"
#include "base/crc32c.h"
#include "fabric.h"
#include "late.h"
#include "remote.h"

#define PIECE		(256u << 10)	/* between two looks at revocation */

/* Lowest and highest address of the pages of the next @len bytes. */
static void look_ahead(const struct mr *mr, uint64_t offset, uint64_t len,
		       uint64_t *low, uint64_t *high)
{
	uint64_t size = 1ull << mr->page_shift;
	uint64_t page = (mr->first + offset) >> mr->page_shift;
	uint64_t last = (mr->first + offset + len - 1) >> mr->page_shift;

	*low = UINT64_MAX;
	*high = 0;
	for (; page <= last; page++) {
		uint64_t addr = mr->pages[page];

		*low = addr < *low ? addr : *low;
		*high = addr + size > *high ? addr + size : *high;
	}
}

static bool take(struct side *s, struct reach *r, uint64_t addr, uint64_t len,
		 unsigned int prot)
{
	int err = mem_get(s->port, addr, len, prot, &r->mem);

	r->beyond = err == -ENODATA;
	if (err)
		return false;
	r->addr = addr;
	r->end = addr + r->mem.hold.len;
	r->held = true;
	return true;
}

unsigned int side_drop(struct side *s, struct reach *r)
{
	if (!r->held)
		return FABREX_WC_OK;
	r->held = false;
	return mem_put(&r->mem) ? s->fault : FABREX_WC_OK;
}

struct place side_place(const struct side *s)
{
	return (struct place){ .port = s->port, .at = s->at, .ep = s->ep };
}

struct place mem_place(const struct side *s, const struct mem *m)
{
	return (struct place){ .port = s->port, .at = m->at, .ep = m->ep };
}

unsigned int side_map(struct side *s, struct reach *r, uint64_t done,
		      uint64_t *len, unsigned int prot, void **ptr)
{
	uint64_t offset = s->offset + done, want = *len;
	uint64_t addr, low, high;
	unsigned int wc;

	*len = mr_run(s->mr, offset, want, &addr);
	if (r->held && (addr < r->addr || addr >= r->end)) {
		wc = side_drop(s, r);
		if (wc)
			return wc;
	}
	if (!r->held && *len < want) {
		look_ahead(s->mr, offset, want, &low, &high);
		take(s, r, low, high - low, prot);
	}
	if (!r->held || addr >= r->end) {
		wc = side_drop(s, r);
		if (wc)
			return wc;
		if (!take(s, r, addr, *len, prot))
			return s->fault;
	}
	if (*len > r->end - addr)
		*len = r->end - addr;
	*ptr = (char *)r->mem.hold.ptr + (addr - r->addr);
	r->at = addr;
	return FABREX_WC_OK;
}

static unsigned int side_copy(struct side *s, void *in, const void *out,
			      uint64_t len)
{
	unsigned int prot = in ? DMA_PROT_READ : DMA_PROT_WRITE;
	struct reach r = { .held = false };
	struct audit_access audit;
	uint64_t done = 0;

	while (done < len) {
		uint64_t n = len - done;
		unsigned int wc;
		void *ptr;

		wc = side_map(s, &r, done, &n, prot, &ptr);
		if (wc && r.beyond)
			return in ? remote_load(s, done, (char *)in + done,
						len - done) :
				    remote_store(s, done, (char *)out + done,
						 len - done);
		if (wc)
			return wc;
		audit_begin(&audit, s->port, r.at, n, !in);
		if (in)
			memcpy((char *)in + done, ptr, n);
		else
			memcpy(ptr, (const char *)out + done, n);
		audit_end(&audit);
		count_ep(r.mem.ep, in, n);
		if (!done)
			count_ep_op(r.mem.ep);
		s->ep = r.mem.ep;
		s->at = r.mem.at;
		done += n;
	}
	return side_drop(s, &r);
}

unsigned int side_read(struct side *s, void *buf, uint64_t len)
{
	return side_copy(s, buf, NULL, len);
}

unsigned int side_write(struct side *s, const void *buf, uint64_t len)
{
	return side_copy(s, NULL, buf, len);
}

/* Should the operation be cut short? */
static unsigned int interrupted(struct queue *q, struct side *from,
				struct side *to)
{
	if (!queue_is_open(q) || !gate_is_open(&q->port->gate))
		return OP_GONE;
	if (!gate_is_open(&from->mr->gate) || !gate_is_open(&to->mr->gate) ||
	    !gate_is_open(&from->port->gate) ||
	    !gate_is_open(&to->port->gate) ||
	    !fabric_reachable(q->port->fabric, from->port, to->port))
		return FABREX_WC_ABORTED;
	return FABREX_WC_OK;
}

static void count_both(struct fabric_ep *ep, enum counter which, uint64_t n)
{
	count_add(&ep->counters, which, n);
	count_add(&ep->uplink->counters, which, n);
}

void count_ep(struct fabric_ep *ep, bool source, uint64_t n)
{
	if (ep)
		count_both(ep, source ? CNT_TX_BYTES : CNT_RX_BYTES, n);
}

void count_ep_op(struct fabric_ep *ep)
{
	if (ep)
		count_both(ep, CNT_RX_OPS, 1);
}

bool count_ep_path(struct fabric_ep *a, struct fabric_ep *b, uint64_t n)
{
	enum counter which = a && b ? CNT_P2P_BYTES : CNT_HOST_BYTES;

	if (a)
		count_both(a, which, n);
	if (b && b != a)
		count_both(b, which, n);
	return a && b;
}

/* ---- Links' rates ---- */

/* Where byte @done of @s is; *r keeps the memory for whoever moves it. */
static unsigned int locate(struct side *s, struct reach *r, uint64_t done,
			   uint64_t n, unsigned int prot, struct place *p)
{
	unsigned int wc;
	void *ptr;

	*p = (struct place){ .port = s->port };
	if (!s->mr)
		return FABREX_WC_OK;
	wc = side_map(s, r, done, &n, prot, &ptr);
	if (!wc)
		*p = mem_place(s, &r->mem);
	return wc && r->beyond ? FABREX_WC_OK : wc;
}

/* From where the first of @n bytes is, to where it goes. */
static unsigned int reserve(struct queue *q, struct side *from,
			    struct reach *src, struct side *to,
			    struct reach *dst, uint64_t n)
{
	struct place a, b;
	unsigned int wc;

	wc = locate(from, src, q->op.done, n, DMA_PROT_READ, &a);
	if (!wc)
		wc = locate(to, dst, q->op.done, n, DMA_PROT_WRITE, &b);
	if (!wc)
		throttle_reserve(q->port->fabric, &q->flow, &a, &b, n);
	return wc;
}

static unsigned int admit(struct queue *q, struct side *from,
			  struct reach *src, struct side *to,
			  struct reach *dst, uint64_t n)
{
	struct fabric *f = q->port->fabric;
	unsigned int wc = FABREX_WC_OK;
	uint64_t wait;

	if (!throttle_is_on(&f->throttle))
		return FABREX_WC_OK;
	if (!q->flow.bytes)
		wc = reserve(q, from, src, to, dst, n);
	if (wc)
		return wc;
	wait = throttle_wait(f, &q->flow);
	if (!wait)
		return FABREX_WC_OK;
	q->op.wait_until = engine_now_ns() + wait;
	return OP_WAIT;
}

unsigned int copy_admit(struct queue *q, struct side *from, struct side *to,
			uint64_t n)
{
	struct reach src = { .held = false }, dst = { .held = false };
	unsigned int wc = n ? admit(q, from, &src, to, &dst, n) : FABREX_WC_OK;
	unsigned int a = side_drop(from, &src), b = side_drop(to, &dst);

	return wc ? wc : a ? a : b;
}

/* ---- Pieces ---- */

struct piece {
	void *src, *dst;
	uint64_t n;
};

static void copy_bytes(const struct piece *p, bool whole)
{
	/* Eight aligned bytes are never seen in parts. */
	if (whole && p->n == 8 &&
	    !(((uintptr_t)p->src | (uintptr_t)p->dst) & 7))
		__atomic_store_n((uint64_t *)p->dst,
				 __atomic_load_n((uint64_t *)p->src,
						 __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
	else
		memmove(p->dst, p->src, p->n);
}

struct mover {
	struct queue *q;
	struct op *op;
	struct side *from, *to;
	struct reach src, dst;
	uint64_t p2p, host;
	struct place src_place, dst_place;	/* of @travelled bytes */
	uint64_t travelled;
};

static void count_travelled(struct mover *m)
{
	traffic_count(m->q->port->fabric, &m->src_place, &m->dst_place,
		      m->travelled);
	m->travelled = 0;
}

/* Most pieces of an operation take the route of the one before. */
static void travel(struct mover *m, const struct place *src,
		   const struct place *dst, uint64_t n)
{
	if (src->ep != m->src_place.ep || src->at != m->src_place.at ||
	    dst->ep != m->dst_place.ep || dst->at != m->dst_place.at)
		count_travelled(m);
	m->src_place = *src;
	m->dst_place = *dst;
	m->travelled += n;
}

/* Hardware that writes once more when it should not (a fault that is injected). */
static void late_piece(struct mover *m, const struct piece *p)
{
	if (!m->op->done &&
	    fault_hit(&m->q->port->faults, DRACO_FAULT_LATE_ACCESS,
		      m->q->number))
		late_access(m->to->port, m->dst.at, p->src, p->n);
}

static void store_piece(struct queue *q, struct op *op, const struct piece *p,
			uint64_t length)
{
	bool check = op->sqe.flags & FABREX_SQE_CHECK;

	if (check)
		op->crc = fxi_crc32c(op->crc, p->src, p->n);
	copy_bytes(p, length == 8);
	if (!op->done &&
	    fault_hit(&q->port->faults, DRACO_FAULT_CORRUPT_PAYLOAD, q->number))
		*(unsigned char *)p->dst ^= 0x20;
	if (check)
		op->crc_target = fxi_crc32c(op->crc_target, p->dst, p->n);
}

static void count_piece(struct mover *m, uint64_t n)
{
	struct fabric_ep *src = m->src.mem.ep, *dst = m->dst.mem.ep;
	struct place from = mem_place(m->from, &m->src.mem);
	struct place to = mem_place(m->to, &m->dst.mem);

	travel(m, &from, &to, n);
	if (!m->op->done) {
		count_ep_op(src);
		if (dst != src)
			count_ep_op(dst);
	}
	count_ep(src, true, n);
	count_ep(dst, false, n);
	if (count_ep_path(src, dst, n))
		m->p2p += n;
	else
		m->host += n;
}

/*
 * One end is out of our reach: by way of a buffer, and with nothing held while
 * the client is asked.
 */
static unsigned int move_beyond(struct mover *m, uint64_t n)
{
	bool check = m->op->sqe.flags & FABREX_SQE_CHECK;
	unsigned char buf[REMOTE_MAX];
	struct place src, dst;
	struct op *op = m->op;
	unsigned int wc;

	wc = side_drop(m->from, &m->src);
	if (!wc)
		wc = side_drop(m->to, &m->dst);
	n = n < sizeof(buf) ? n : sizeof(buf);
	if (!wc)
		wc = remote_load(m->from, op->done, buf, n);
	if (wc)
		return wc;
	if (check)
		op->crc = fxi_crc32c(op->crc, buf, n);
	if (!op->done && fault_hit(&m->q->port->faults,
				   DRACO_FAULT_CORRUPT_PAYLOAD, m->q->number))
		buf[0] ^= 0x20;
	wc = remote_store(m->to, op->done, buf, n);
	if (!wc && check)
		wc = remote_load(m->to, op->done, buf, n);
	if (wc)
		return wc;
	if (check)
		op->crc_target = fxi_crc32c(op->crc_target, buf, n);
	if (!op->done) {
		count_ep_op(m->from->ep);
		count_ep_op(m->to->ep);
	}
	count_ep_path(m->from->ep, m->to->ep, n);
	src = side_place(m->from);
	dst = side_place(m->to);
	travel(m, &src, &dst, n);
	m->host += n;
	op->done += n;
	return FABREX_WC_OK;
}

static unsigned int move_piece(struct mover *m, uint64_t n, uint64_t length)
{
	struct op *op = m->op;
	struct piece p = { .n = n };
	struct audit_access from, to;
	unsigned int wc;

	wc = side_map(m->from, &m->src, op->done, &p.n, DMA_PROT_READ, &p.src);
	if (!wc)
		wc = side_map(m->to, &m->dst, op->done, &p.n, DMA_PROT_WRITE,
			      &p.dst);
	if (wc && (m->src.beyond || m->dst.beyond))
		return move_beyond(m, n);
	if (wc)
		return wc;
	audit_begin(&from, m->from->port, m->src.at, p.n, false);
	audit_begin(&to, m->to->port, m->dst.at, p.n, true);
	store_piece(m->q, op, &p, length);
	audit_end(&to);
	audit_end(&from);
	late_piece(m, &p);
	count_piece(m, p.n);
	op->done += p.n;
	return FABREX_WC_OK;
}

static void count_moved(struct mover *m)
{
	uint64_t n = m->p2p + m->host;
	bool own = m->from->port == m->q->port && m->from->fault ==
		   FABREX_WC_LFAULT;

	if (!n)
		return;
	count_add(&m->from->port->counters, CNT_TX_BYTES, n);
	count_add(&m->to->port->counters, CNT_RX_BYTES, n);
	count_add(&m->q->counters, own ? CNT_TX_BYTES : CNT_RX_BYTES, n);
	count_add(&m->q->counters, CNT_P2P_BYTES, m->p2p);
	count_add(&m->q->counters, CNT_HOST_BYTES, m->host);
	count_add(&m->q->port->counters, CNT_P2P_BYTES, m->p2p);
	count_add(&m->q->port->counters, CNT_HOST_BYTES, m->host);
	count_travelled(m);
}

static unsigned int drop_both(struct mover *m, unsigned int wc)
{
	unsigned int a = side_drop(m->from, &m->src);
	unsigned int b = side_drop(m->to, &m->dst);

	if (wc != FABREX_WC_OK && wc < OP_YIELD)
		return wc;
	return a ? a : b ? b : wc;
}

/* Up to PIECE bytes between two looks around. */
static unsigned int move_some(struct mover *m, uint64_t length,
			      uint64_t *budget)
{
	struct op *op = m->op;
	uint64_t n = length - op->done;
	unsigned int wc = interrupted(m->q, m->from, m->to);
	uint64_t wait, end;

	if (wc)
		return wc;
	n = n < PIECE ? n : PIECE;
	n = n < *budget ? n : *budget;
	wc = admit(m->q, m->from, &m->src, m->to, &m->dst, n);
	if (wc)
		return wc;
	wait = fabric_pace(m->q->port->fabric, m->from->port, m->to->port, &n);
	if (wait) {
		op->wait_until = engine_now_ns() + wait;
		return OP_WAIT;
	}
	throttle_take(&m->q->flow, &n);
	*budget -= n;
	for (end = op->done + n; op->done < end && !wc;)
		wc = move_piece(m, end - op->done, length);
	return wc;
}

unsigned int copy_move(struct queue *q, struct op *op, struct side *from,
		       struct side *to, uint64_t length, uint64_t budget)
{
	struct mover m = { .q = q, .op = op, .from = from, .to = to };
	unsigned int wc = FABREX_WC_OK;

	while (op->done < length && !wc)
		wc = budget ? move_some(&m, length, &budget) : OP_YIELD;
	wc = drop_both(&m, wc);
	count_moved(&m);
	if (!wc && op->crc != op->crc_target)
		wc = FABREX_WC_DATA;
	return wc;
}
