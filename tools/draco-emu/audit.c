// SPDX-License-Identifier: GPL-2.0-only
/*
 * The audit log. For each port there is the set of address ranges that were
 * reachable by key and are no longer, with the time since when; ranges that are
 * granted again move to a ring with both times. An access is late if a range
 * that it touches was unreachable at any moment before the access ended.
 *
 * Why nothing is missed: a revocation takes its time inside the lock, an access
 * takes its end before the lock. If the access asks before the revocation is in
 * the set, it had ended before; if after, the times are compared. Nothing here
 * looks at a gate: what is valid is what the admin commands have made so.
 */
#include "audit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "port.h"

struct range {
	uint64_t start, end;		/* end: the first byte behind */
	uint64_t since;			/* unreachable */
};

struct list {
	struct range *r;
	size_t n, room;
};

struct audit_port {
	struct list gone;		/* by start, without overlap */
};

struct audit_closed {
	struct port *port;
	struct range range;
	uint64_t until;
};

/* ---- Lists of ranges ---- */

static bool list_add(struct list *l, uint64_t start, uint64_t end,
		     uint64_t since)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		struct range *r = realloc(l->r, room * sizeof(*r));

		if (!r)
			return false;
		l->r = r;
		l->room = room;
	}
	l->r[l->n++] = (struct range){ start, end, since };
	return true;
}

static void list_free(struct list *l)
{
	free(l->r);
	memset(l, 0, sizeof(*l));
}

/* The last one may grow instead. */
static bool list_append(struct list *l, uint64_t start, uint64_t end)
{
	if (l->n && l->r[l->n - 1].end == start) {
		l->r[l->n - 1].end = end;
		return true;
	}
	return list_add(l, start, end, 0);
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void list_sort(struct list *l)
{
	size_t n = 0;

	if (!l->n)
		return;
	qsort(l->r, l->n, sizeof(*l->r), by_start);
	for (size_t i = 1; i < l->n; i++) {
		if (l->r[i].start > l->r[n].end)
			l->r[++n] = l->r[i];
		else if (l->r[i].end > l->r[n].end)
			l->r[n].end = l->r[i].end;
	}
	l->n = n + 1;
}

/* First one that ends behind @addr. */
static size_t list_find(const struct list *l, uint64_t addr)
{
	size_t lo = 0, hi = l->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (l->r[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* @out := @a without @b, both sorted and free of overlap. */
static bool list_subtract(struct list *out, const struct list *a,
			  const struct list *b)
{
	bool ok = true;

	for (size_t i = 0; i < a->n && ok; i++) {
		struct range left = a->r[i];
		size_t k = list_find(b, left.start);

		for (; ok && k < b->n && b->r[k].start < left.end; k++) {
			if (b->r[k].start > left.start)
				ok = list_add(out, left.start, b->r[k].start,
					      left.since);
			left.start = b->r[k].end;
			if (left.start >= left.end)
				break;
		}
		if (ok && left.start < left.end)
			ok = list_add(out, left.start, left.end, left.since);
	}
	return ok;
}

/* The bytes of a region that lie between @low and @high. */
static bool list_region(struct list *out, const struct mr *mr, uint64_t low,
			uint64_t high)
{
	uint64_t size = 1ull << mr->page_shift;
	bool ok = true;

	for (uint64_t i = 0; i < mr->npages && ok; i++) {
		uint64_t from = i ? 0 : mr->first;
		uint64_t left = mr->first + mr->length - (i << mr->page_shift);
		uint64_t start = mr->pages[i] + from;
		uint64_t end = mr->pages[i] + (left < size ? left : size);

		if (start < high && end > low)
			ok = list_append(out, start, end);
	}
	return ok;
}

/* ---- What the admin commands have made valid ---- */

static bool complete(const struct mr *mr)
{
	return mr->used && mr->given == mr->npages;
}

/* Bytes that this region alone made reachable. */
static bool list_alone(struct list *out, struct port *p, const struct mr *mr)
{
	struct list own = { 0 }, others = { 0 };
	bool ok = list_region(&own, mr, 0, UINT64_MAX);

	list_sort(&own);
	for (uint32_t i = 0; ok && i < p->mrs.max; i++) {
		const struct mr *o = &p->mrs.mrs[i];

		if (o != mr && complete(o))
			ok = list_region(&others, o, own.r[0].start,
					 own.r[own.n - 1].end);
	}
	list_sort(&others);
	ok = ok && list_subtract(out, &own, &others);
	list_free(&own);
	list_free(&others);
	return ok;
}

static bool list_all(struct list *out, struct port *p)
{
	bool ok = true;

	for (uint32_t i = 0; ok && i < p->mrs.max; i++) {
		if (complete(&p->mrs.mrs[i]))
			ok = list_region(out, &p->mrs.mrs[i], 0, UINT64_MAX);
	}
	list_sort(out);
	return ok;
}

/* ---- Sets of the ports; lock held ---- */

static struct list *gone_of(struct audit *a, struct port *p)
{
	return a->ports && p->peer < a->nports ? &a->ports[p->peer].gone :
						 NULL;
}

static uint64_t oldest_start(const struct audit *a)
{
	uint64_t oldest = UINT64_MAX;

	for (const struct audit_access *x = a->active; x; x = x->next)
		oldest = x->start_ns < oldest ? x->start_ns : oldest;
	return oldest;
}

/* @gone := @gone and @more, which share nothing. */
static bool merge(struct list *gone, const struct list *more, uint64_t since)
{
	struct list both = { 0 };
	size_t i = 0, k = 0;
	bool ok = true;

	while (ok && (i < gone->n || k < more->n)) {
		bool old = k == more->n || (i < gone->n && gone->r[i].start <
					    more->r[k].start);
		const struct range *r = old ? &gone->r[i++] : &more->r[k++];

		ok = list_add(&both, r->start, r->end, old ? r->since : since);
	}
	if (!ok) {
		list_free(&both);
		return false;
	}
	list_free(gone);
	*gone = both;
	return true;
}

static void add_gone(struct audit *a, struct port *p, const struct list *l)
{
	struct list *gone = gone_of(a, p), fresh = { 0 };

	if (!gone)
		return;
	a->report.revocations++;
	a->report.ranges += l->n;
	if (!list_subtract(&fresh, l, gone) ||
	    gone->n + fresh.n > AUDIT_RANGES ||
	    !merge(gone, &fresh, engine_now_ns()))
		a->report.dropped++;
	list_free(&fresh);
}

static void close_range(struct audit *a, struct port *p,
			const struct range *r, uint64_t now)
{
	struct audit_closed *c = &a->closed[a->nclosed % AUDIT_CLOSED];

	/* Would an access that is under way still ask for it? */
	if (a->nclosed >= AUDIT_CLOSED && c->until > oldest_start(a))
		a->report.dropped++;
	*c = (struct audit_closed){ .port = p, .range = *r, .until = now };
	a->nclosed++;
}

static void remove_gone(struct audit *a, struct port *p, const struct list *l)
{
	struct list *gone = gone_of(a, p), rest = { 0 };
	uint64_t now = engine_now_ns();

	if (!gone || !gone->n)
		return;
	for (size_t i = 0; i < l->n; i++) {
		size_t k = list_find(gone, l->r[i].start);

		for (; k < gone->n && gone->r[k].start < l->r[i].end; k++) {
			struct range r = gone->r[k];

			if (r.start < l->r[i].start)
				r.start = l->r[i].start;
			if (r.end > l->r[i].end)
				r.end = l->r[i].end;
			close_range(a, p, &r, now);
		}
	}
	if (!list_subtract(&rest, gone, l)) {
		a->report.dropped++;
		list_free(&rest);
		return;
	}
	list_free(gone);
	*gone = rest;
}

/* ---- Regions ---- */

static void failed(struct audit *a)
{
	pthread_mutex_lock(&a->lock);
	a->report.dropped++;
	pthread_mutex_unlock(&a->lock);
}

void audit_granted(struct port *p, const struct mr *mr)
{
	struct audit *a = &p->fabric->audit;
	struct list l = { 0 };

	if (!audit_is_on(a))
		return;
	if (list_region(&l, mr, 0, UINT64_MAX)) {
		list_sort(&l);
		pthread_mutex_lock(&a->lock);
		remove_gone(a, p, &l);
		pthread_mutex_unlock(&a->lock);
	} else {
		failed(a);
	}
	list_free(&l);
}

static void revoke(struct audit *a, struct port *p, struct list *l, bool ok)
{
	if (ok) {
		pthread_mutex_lock(&a->lock);
		add_gone(a, p, l);
		pthread_mutex_unlock(&a->lock);
	} else {
		failed(a);
	}
	list_free(l);
}

void audit_revoked(struct port *p, const struct mr *mr)
{
	struct audit *a = &p->fabric->audit;
	struct list l = { 0 };

	if (!audit_is_on(a) || !complete(mr))
		return;
	revoke(a, p, &l, list_alone(&l, p, mr));
}

void audit_port_stopped(struct port *p)
{
	struct audit *a = &p->fabric->audit;
	struct list l = { 0 };

	if (!audit_is_on(a))
		return;
	revoke(a, p, &l, list_all(&l, p));
}

/* ---- Accesses ---- */

void audit_begin(struct audit_access *x, struct port *p, uint64_t addr,
		 uint64_t len, bool write)
{
	struct audit *a = &p->fabric->audit;

	x->on = audit_is_on(a);
	if (!x->on)
		return;
	x->port = p;
	x->addr = addr;
	x->len = len;
	x->write = write;
	pthread_mutex_lock(&a->lock);
	x->start_ns = engine_now_ns();
	x->next = a->active;
	x->link = &a->active;
	if (x->next)
		x->next->link = &x->next;
	a->active = x;
	pthread_mutex_unlock(&a->lock);
}

static bool hit(const struct range *r, const struct audit_access *x,
		uint64_t end_ns)
{
	return r->start < x->addr + x->len && r->end > x->addr &&
	       r->since < end_ns;
}

static const struct range *find_gone(struct audit *a,
				     const struct audit_access *x,
				     uint64_t end_ns)
{
	const struct list *gone = gone_of(a, x->port);
	size_t k = gone ? list_find(gone, x->addr) : 0;

	for (; gone && k < gone->n && gone->r[k].start < x->addr + x->len; k++)
		if (hit(&gone->r[k], x, end_ns))
			return &gone->r[k];
	return NULL;
}

static const struct range *find_closed(struct audit *a,
				       const struct audit_access *x,
				       uint64_t end_ns)
{
	uint64_t n = a->nclosed, kept = n < AUDIT_CLOSED ? n : AUDIT_CLOSED;

	for (; kept; kept--) {
		const struct audit_closed *c = &a->closed[--n % AUDIT_CLOSED];

		if (c->until <= x->start_ns)
			break;
		if (c->port == x->port && hit(&c->range, x, end_ns))
			return &c->range;
	}
	return NULL;
}

static void note_late(struct audit *a, const struct audit_access *x,
		      uint64_t end_ns, const struct range *r)
{
	struct audit_report *rep = &a->report;

	rep->late++;
	if (rep->ndetails == AUDIT_DETAILS)
		return;
	rep->details[rep->ndetails++] = (struct audit_late){
		.port = x->port->name, .write = x->write, .addr = x->addr,
		.len = x->len, .start_ns = x->start_ns, .end_ns = end_ns,
		.revoked_ns = r->since, .range_start = r->start,
		.range_end = r->end,
	};
}

void audit_end(struct audit_access *x)
{
	const struct range *r = NULL;
	uint64_t end_ns;
	struct audit *a;

	if (!x->on)
		return;
	a = &x->port->fabric->audit;
	end_ns = engine_now_ns();
	pthread_mutex_lock(&a->lock);
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	a->report.accesses++;
	a->report.bytes += x->len;
	r = find_gone(a, x, end_ns);
	if (!r)
		r = find_closed(a, x, end_ns);
	if (r)
		note_late(a, x, end_ns, r);
	pthread_mutex_unlock(&a->lock);
}

/* ---- On and off ---- */

void audit_init(struct audit *a)
{
	memset(a, 0, sizeof(*a));
	pthread_mutex_init(&a->lock, NULL);
}

/* lock held, or nobody else */
static void forget(struct audit *a)
{
	for (unsigned int i = 0; a->ports && i < a->nports; i++)
		list_free(&a->ports[i].gone);
	free(a->ports);
	free(a->closed);
	a->ports = NULL;
	a->closed = NULL;
	a->nclosed = 0;
	a->nports = 0;
}

void audit_free(struct audit *a)
{
	forget(a);
	pthread_mutex_destroy(&a->lock);
}

int audit_switch(struct fabric *f, bool on)
{
	struct audit *a = &f->audit;
	int err = 0;

	pthread_mutex_lock(&a->lock);
	atomic_store(&a->on, false);
	forget(a);
	if (on) {
		memset(&a->report, 0, sizeof(a->report));
		a->ports = calloc(f->nports, sizeof(*a->ports));
		a->closed = calloc(AUDIT_CLOSED, sizeof(*a->closed));
		if (a->ports && a->closed)
			a->nports = f->nports;
		else
			err = -ENOMEM;
	}
	if (err)
		forget(a);
	atomic_store(&a->on, on && !err);
	pthread_mutex_unlock(&a->lock);
	return err;
}

void audit_read(struct audit *a, struct audit_report *out)
{
	pthread_mutex_lock(&a->lock);
	*out = a->report;
	out->on = audit_is_on(a);
	pthread_mutex_unlock(&a->lock);
}
