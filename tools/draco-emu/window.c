// SPDX-License-Identifier: GPL-2.0-only
/*
 * Windows: life cycle, and loads and stores that go through them. Called by
 * admin_window.c and port.c.
 */
#include "window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "copy.h"
#include "fabric.h"
#include "port.h"

#define RIGHTS	(DRACO_ACCESS_REMOTE_READ | DRACO_ACCESS_REMOTE_WRITE)

int window_table_init(struct window_table *t, uint32_t max, uint64_t slot_size)
{
	t->windows = calloc(max, sizeof(*t->windows));
	t->slots = calloc(max, sizeof(*t->slots));
	t->max = max;
	t->slot_size = slot_size;
	if (t->windows && t->slots)
		return 0;
	window_table_free(t);
	return -ENOMEM;
}

void window_table_free(struct window_table *t)
{
	free(t->windows);
	free((void *)t->slots);
	t->windows = NULL;
	t->slots = NULL;
	t->max = 0;
}

/* Reports of windows come after those of queues. */
static unsigned int report_of(struct port *p, const struct window *w)
{
	return p->queues.max + (unsigned int)(w - p->windows.windows);
}

void window_destroy(struct port *p, struct window *w)
{
	struct window_table *t = &p->windows;

	event_unreport(p, report_of(p, w));
	for (uint32_t i = 0; i < w->nslots; i++)
		atomic_store(&t->slots[w->slot + i], 0);
	w->used = false;
	w->dying = false;
}

void window_table_clear(struct port *p)
{
	struct window_table *t = &p->windows;

	for (uint32_t i = 0; i < t->max; i++) {
		gate_close(&t->windows[i].gate);
		if (t->windows[i].used)
			window_destroy(p, &t->windows[i]);
	}
}

struct window *window_find(struct window_table *t, uint32_t number)
{
	struct window *w;

	if (!number || number > t->max)
		return NULL;
	w = &t->windows[number - 1];
	return w->used && !w->dying ? w : NULL;
}

/* ---- Creation ---- */

static bool valid_params(const struct window_table *t,
			 const struct draco_window_create *c)
{
	if (c->__rsvd0 || !c->nslots || !c->access || c->access & ~RIGHTS ||
	    c->offset & 4095 || !c->length)
		return false;
	if (c->slot >= t->max || c->nslots > t->max - c->slot)
		return false;
	return c->length <= c->nslots * t->slot_size;
}

static bool slots_free(struct window_table *t,
		       const struct draco_window_create *c)
{
	for (uint32_t i = 0; i < c->nslots; i++) {
		if (atomic_load(&t->slots[c->slot + i]))
			return false;
	}
	return true;
}

/* Inside the peer: the region, held, or NULL with *status. */
static struct mr *look_up(struct port *p, struct port *peer, uint64_t key,
			  unsigned int *status)
{
	uint64_t now = engine_now_ns(), due;
	struct mr *mr;

	*status = DRACO_SC_RETRY;
	if (!guess_may(&p->guesser, &p->window_guesses, now, &due))
		return NULL;
	mr = mr_get(&peer->mrs, key);
	if (mr || mr_exists(&peer->mrs, key))
		guess_hit(&p->guesser, &p->window_guesses);
	else
		guess_miss(&p->guesser, &p->window_guesses, now);
	*status = DRACO_SC_BAD_KEY;
	return mr;
}

/* Inside the peer: does the key give all that the window wants? */
static unsigned int check_key(struct port *p, struct port *peer,
			      const struct draco_window_create *c)
{
	unsigned int status;
	struct mr *mr = look_up(p, peer, c->rkey, &status);
	bool ok;

	if (!mr)
		return status;
	ok = mr_covers(mr, c->offset, c->length) &&
	     (mr->access & c->access) == c->access &&
	     mr_open_to(mr, p->peer);
	mr_put(&peer->mrs, mr);
	return ok ? DRACO_SC_OK : DRACO_SC_BAD_KEY;
}

static unsigned int check_target(struct port *p, struct port *peer,
				 const struct draco_window_create *c)
{
	unsigned int status;

	if (!port_is_ready(peer))
		return DRACO_SC_HOST_DOWN;
	if (!fabric_reachable(p->fabric, p, peer))
		return DRACO_SC_LINK_DOWN;
	if (!port_enter(peer))
		return DRACO_SC_HOST_DOWN;
	status = check_key(p, peer, c);
	port_leave(peer);
	return status;
}

static void open_window(struct window_table *t, struct window *w,
			const struct draco_window_create *c)
{
	w->used = true;
	w->slot = c->slot;
	w->nslots = c->nslots;
	w->peer = c->peer;
	w->access = c->access;
	w->rkey = c->rkey;
	w->offset = c->offset;
	w->length = c->length;
	w->serial = c->serial;
	atomic_store(&w->faulted, false);
	gate_open(&w->gate);
	for (uint32_t i = 0; i < c->nslots; i++)
		atomic_store(&t->slots[c->slot + i],
			     (uint16_t)(w - t->windows + 1));
}

unsigned int window_create(struct port *p, const struct draco_window_create *c,
			   uint32_t *number)
{
	struct port *peer = fabric_port_by_peer(p->fabric, c->peer);
	struct window_table *t = &p->windows;
	unsigned int status;
	uint32_t i;

	if (!peer)
		return DRACO_SC_BAD_ID;
	if (!valid_params(t, c))
		return DRACO_SC_BAD_FIELD;
	if (!slots_free(t, c))
		return DRACO_SC_BUSY;
	status = check_target(p, peer, c);
	if (status)
		return status;
	for (i = 0; i < t->max && t->windows[i].used; i++)
		;
	if (i == t->max)
		return DRACO_SC_NO_RESOURCE;
	open_window(t, &t->windows[i], c);
	*number = i + 1;
	return DRACO_SC_OK;
}

/* ---- Accesses ---- */

struct access {
	struct port *port;
	struct window *w;
	uint64_t offset;	/* in the window */
	void *in;		/* load into, or */
	const void *out;	/* store from */
	size_t len;
};

static void fault(struct access *a, unsigned int wc)
{
	struct draco_event ev = {
		.type = DRACO_EV_WINDOW_FAULT,
		.object = (uint32_t)(a->w - a->port->windows.windows + 1),
		.port = a->port->link->id,
		.arg = { wc, a->w->serial },
	};

	count(&a->port->counters, CNT_ERRORS);
	if (!atomic_exchange(&a->w->faulted, true))
		event_report(a->port, report_of(a->port, a->w), &ev);
}

/* Single and whole up to eight aligned bytes. */
static void move_whole(void *dst, const void *src, size_t n)
{
	uintptr_t both = (uintptr_t)dst | n;

	if (n == 8 && !(both & 7))
		__atomic_store((uint64_t *)dst, (uint64_t *)src,
			       __ATOMIC_RELEASE);
	else if (n == 4 && !(both & 3))
		__atomic_store((uint32_t *)dst, (uint32_t *)src,
			       __ATOMIC_RELEASE);
	else if (n == 2 && !(both & 1))
		__atomic_store((uint16_t *)dst, (uint16_t *)src,
			       __ATOMIC_RELEASE);
	else
		memmove(dst, src, n);
}

static void fetch_whole(void *dst, const void *src, size_t n)
{
	uintptr_t both = (uintptr_t)src | n;

	if (n == 8 && !(both & 7))
		__atomic_load((uint64_t *)src, (uint64_t *)dst,
			      __ATOMIC_ACQUIRE);
	else if (n == 4 && !(both & 3))
		__atomic_load((uint32_t *)src, (uint32_t *)dst,
			      __ATOMIC_ACQUIRE);
	else if (n == 2 && !(both & 1))
		__atomic_load((uint16_t *)src, (uint16_t *)dst,
			      __ATOMIC_ACQUIRE);
	else
		memmove(dst, src, n);
}

static unsigned int move_bytes(struct access *a, struct side *s)
{
	unsigned int prot = a->in ? DMA_PROT_READ : DMA_PROT_WRITE;
	struct reach r = { .held = false };
	struct audit_access audit;
	uint64_t done = 0;
	unsigned int wc;

	while (done < a->len) {
		uint64_t n = a->len - done, local[1];
		void *ptr;

		wc = side_map(s, &r, done, &n, prot, &ptr);
		if (wc)
			return wc;
		if (n > 8)
			n = 8 - ((uintptr_t)ptr & 7);
		if (a->out)
			memcpy(local, (const char *)a->out + done, n);
		audit_begin(&audit, s->port, r.at, n, a->out);
		if (a->in)
			fetch_whole(local, ptr, n);
		else
			move_whole(ptr, local, n);
		audit_end(&audit);
		count_ep(r.mem.ep, a->in, n);
		if (!done)
			count_ep_op(r.mem.ep);
		s->ep = r.mem.ep;
		s->at = r.mem.at;
		if (a->in)
			memcpy((char *)a->in + done, local, n);
		done += n;
	}
	return side_drop(s, &r);
}

/* Between the CPU and what the region is of. */
static void count_travel(struct access *a, const struct side *s)
{
	struct place cpu = { .port = a->port };
	struct place memory = side_place(s);

	traffic_count(a->port->fabric, a->in ? &memory : &cpu,
		      a->in ? &cpu : &memory, a->len);
}

static void count_access(struct access *a, struct port *peer)
{
	struct counters *from = a->in ? &peer->counters : &a->port->counters;
	struct counters *to = a->in ? &a->port->counters : &peer->counters;

	count(&a->port->counters, a->in ? CNT_WINDOW_READS :
					  CNT_WINDOW_WRITES);
	count_add(from, CNT_TX_BYTES, a->len);
	count_add(to, CNT_RX_BYTES, a->len);
}

static unsigned int with_region(struct access *a, struct port *peer)
{
	unsigned int right = a->in ? DRACO_ACCESS_REMOTE_READ :
				     DRACO_ACCESS_REMOTE_WRITE;
	struct side s = { .port = peer, .fault = FABREX_WC_RFAULT,
			  .offset = a->w->offset + a->offset };
	unsigned int wc;

	s.mr = mr_get(&peer->mrs, a->w->rkey);
	if (!s.mr)
		return FABREX_WC_RKEY;
	if (a->offset > a->w->length || a->len > a->w->length - a->offset ||
	    !mr_covers(s.mr, s.offset, a->len))
		wc = FABREX_WC_RBOUNDS;
	else if (!(a->w->access & s.mr->access & right))
		wc = FABREX_WC_RACCESS;
	else if (!mr_open_to(s.mr, a->port->peer))
		wc = FABREX_WC_RPEER;
	else
		wc = move_bytes(a, &s);
	if (!wc)
		count_travel(a, &s);
	mr_put(&peer->mrs, s.mr);
	return wc;
}

static unsigned int with_peer(struct access *a)
{
	struct port *peer = fabric_port_by_peer(a->port->fabric, a->w->peer);
	unsigned int wc;

	if (!peer || !fabric_reachable(a->port->fabric, a->port, peer) ||
	    !port_enter(peer))
		return FABREX_WC_UNREACHABLE;
	wc = with_region(a, peer);
	if (!wc)
		count_access(a, peer);
	port_leave(peer);
	return wc;
}

/* @a->offset is in BAR 4 and does not leave its slot. */
static bool with_window(struct access *a)
{
	struct window_table *t = &a->port->windows;
	unsigned int number = atomic_load(&t->slots[a->offset / t->slot_size]);
	unsigned int wc = FABREX_WC_OK;
	uint64_t start;

	if (!number)
		return false;
	a->w = &t->windows[number - 1];
	if (!gate_enter(&a->w->gate))
		return false;
	start = a->w->slot * t->slot_size;
	/* The slot may belong to another window by now. */
	if (a->offset < start ||
	    a->offset - start >= a->w->nslots * t->slot_size) {
		wc = FABREX_WC_UNREACHABLE;
	} else {
		a->offset -= start;
		wc = with_peer(a);
		if (wc)
			fault(a, wc);
	}
	if (gate_leave(&a->w->gate))
		port_kick(a->port);
	return wc == FABREX_WC_OK;
}

static void access_window(struct port *p, uint64_t offset, void *in,
			  const void *out, size_t len)
{
	uint64_t size = p->windows.slot_size;
	size_t done = 0;

	while (done < len) {
		struct access a = { .port = p, .offset = offset + done };
		uint64_t left = size - a.offset % size;
		bool ok = false;

		a.len = len - done < left ? len - done : left;
		a.in = in ? (char *)in + done : NULL;
		a.out = out ? (const char *)out + done : NULL;
		if (a.offset / size < p->windows.max && port_enter(p)) {
			ok = with_window(&a);
			port_leave(p);
		}
		if (in && !ok)
			memset((char *)in + done, 0xff, a.len);
		done += a.len;
	}
}

void window_read(struct port *p, uint64_t offset, void *buf, size_t len)
{
	access_window(p, offset, buf, NULL, len);
}

void window_write(struct port *p, uint64_t offset, const void *buf, size_t len)
{
	access_window(p, offset, NULL, buf, len);
}
