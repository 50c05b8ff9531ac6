// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bus address -> memory of this process. Readers count themselves into one of
 * two phases of a shard and see one immutable table; whoever changes the table
 * publishes a new one and waits for the readers of both phases before anything
 * goes away. Clients' memory is in backing.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backing.h"
#include "dma_map.h"

#define SHARDS		16
#define CACHE_LINE	64
#define PAGE		4096u
/* Tables that wait for their readers, at most. */
#define OLD_MAX		16

struct dma_region {
	uint64_t addr, len;
	unsigned int prot;
	void *ptr;			/* NULL: no memory behind it */
	void *cookie;
	struct backing *backing;	/* NULL: not ours to unmap */
};

struct table {
	unsigned int count;
	struct dma_region *region[];	/* by addr */
};

struct shard {
	_Alignas(CACHE_LINE) atomic_int readers[2];
};

struct dma_map {
	struct shard shard[SHARDS];
	_Atomic(struct table *) table;
	atomic_bool enabled;
	atomic_bool empty;		/* spares readers the rest */
	atomic_uint phase;
	pthread_mutex_t update;
	struct backings backings;
	struct table *old[OLD_MAX];
	unsigned int nold, max;
	void (*on_fault)(void *arg);
	void *arg;
};

/* ---- Readers ---- */

static unsigned int my_shard(void)
{
	static atomic_uint next;
	static _Thread_local unsigned int mine;	/* 0: none yet */

	if (!mine)
		mine = 1 + atomic_fetch_add(&next, 1) % SHARDS;
	return mine - 1;
}

static uint32_t enter(struct dma_map *m)
{
	unsigned int s = my_shard();
	unsigned int p = atomic_load(&m->phase) & 1;

	atomic_fetch_add(&m->shard[s].readers[p], 1);
	return s << 1 | p;
}

static void leave(struct dma_map *m, uint32_t token)
{
	atomic_fetch_sub(&m->shard[token >> 1].readers[token & 1], 1);
}

static struct dma_region *find(const struct table *t, uint64_t addr)
{
	unsigned int lo = 0, hi = t->count;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;
		struct dma_region *r = t->region[mid];

		if (addr < r->addr)
			hi = mid;
		else if (addr - r->addr >= r->len)
			lo = mid + 1;
		else
			return r;
	}
	return NULL;
}

int dma_get(struct dma_map *m, uint64_t addr, size_t len, unsigned int prot,
	    struct dma_hold *h)
{
	struct dma_region *r;
	uint64_t left;
	uint32_t token;

	if (atomic_load_explicit(&m->empty, memory_order_acquire))
		return -ENXIO;
	token = enter(m);
	r = find(atomic_load(&m->table), addr);
	if (!r || !len) {
		leave(m, token);
		return r ? -EFAULT : -ENXIO;
	}
	if (!atomic_load(&m->enabled) || !r->ptr || (prot & ~r->prot) ||
	    (r->backing && backing_bad(r->backing))) {
		bool beyond = atomic_load(&m->enabled) && !r->ptr &&
			      !(prot & ~r->prot);

		leave(m, token);
		return beyond ? -ENODATA : -EFAULT;
	}
	left = r->len - (addr - r->addr);
	h->ptr = (char *)r->ptr + (addr - r->addr);
	h->len = len < left ? len : (size_t)left;
	h->cookie = r->cookie;
	h->map = m;
	h->region = r;
	h->token = token;
	return 0;
}

int dma_put(struct dma_hold *h)
{
	struct dma_region *r = h->region;
	bool bad = r->backing && backing_bad(r->backing);

	if (bad && backing_tell(r->backing) && h->map->on_fault)
		h->map->on_fault(h->map->arg);
	leave(h->map, h->token);
	return bad ? -EFAULT : 0;
}

/* ---- Changes ---- */

static void wait_readers(struct dma_map *m, unsigned int phase)
{
	const struct timespec pause = { .tv_nsec = 20000 };
	unsigned int s;

	for (s = 0; s < SHARDS; s++)
		while (atomic_load(&m->shard[s].readers[phase]))
			nanosleep(&pause, NULL);
}

/*
 * Both phases: a reader may have picked its phase just before an earlier flip
 * and counted itself only after it.
 */
static void synchronize(struct dma_map *m)
{
	int i;

	for (i = 0; i < 2; i++)
		wait_readers(m, atomic_fetch_add(&m->phase, 1) & 1);
}

static struct table *table_new(unsigned int count)
{
	struct table *t = malloc(sizeof(*t) + count * sizeof(t->region[0]));

	if (t)
		t->count = count;
	return t;
}

/* Readers may go on with the table that was; nothing in it goes away. */
static void replace(struct dma_map *m, struct table *t)
{
	m->old[m->nold++] = atomic_exchange(&m->table, t);
	atomic_store(&m->empty, !t->count);
}

/* When it returns, no reader knows any table but the present one. */
static void settle(struct dma_map *m)
{
	synchronize(m);
	while (m->nold)
		free(m->old[--m->nold]);
}

static void region_free(struct dma_map *m, struct dma_region *r)
{
	if (r->backing)
		backing_put(&m->backings, r->backing);
	free(r);
}

struct dma_map *dma_map_create(unsigned int max, bool enabled,
			       void (*on_fault)(void *arg), void *arg)
{
	struct dma_map *m = aligned_alloc(CACHE_LINE, sizeof(*m));
	struct table *t = table_new(0);

	if (!m || !t) {
		free(m);
		free(t);
		return NULL;
	}
	memset(m, 0, sizeof(*m));
	atomic_init(&m->table, t);
	atomic_init(&m->enabled, enabled);
	atomic_init(&m->empty, true);
	pthread_mutex_init(&m->update, NULL);
	m->max = max;
	m->on_fault = on_fault;
	m->arg = arg;
	return m;
}

void dma_map_destroy(struct dma_map *m)
{
	if (!m)
		return;
	dma_map_clear(m);
	free(atomic_load(&m->table));
	pthread_mutex_destroy(&m->update);
	free(m);
}

/* First region that ends above addr. */
static unsigned int position(const struct table *t, uint64_t addr)
{
	unsigned int lo = 0, hi = t->count;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (t->region[mid]->addr + (t->region[mid]->len - 1) < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int check_range(const struct dma_map *m, uint64_t addr, uint64_t len)
{
	const struct table *t = atomic_load(&m->table);
	unsigned int at;

	if (!len || addr + len - 1 < addr || (addr | len) & (PAGE - 1))
		return -EINVAL;
	if (t->count >= m->max)
		return -ENOSPC;
	at = position(t, addr);
	return at < t->count && t->region[at]->addr <= addr + (len - 1) ?
	       -EEXIST : 0;
}

/* Takes r over. */
static int insert(struct dma_map *m, struct dma_region *r)
{
	struct table *old = atomic_load(&m->table);
	struct table *t = table_new(old->count + 1);
	unsigned int at = position(old, r->addr);

	if (!t) {
		region_free(m, r);
		return -ENOMEM;
	}
	memcpy(t->region, old->region, at * sizeof(r));
	t->region[at] = r;
	memcpy(t->region + at + 1, old->region + at,
	       (old->count - at) * sizeof(r));
	replace(m, t);
	if (m->nold == OLD_MAX)
		settle(m);
	return 0;
}

static struct dma_region *region_new(uint64_t addr, uint64_t len,
				     unsigned int prot)
{
	struct dma_region *r = calloc(1, sizeof(*r));

	if (r) {
		r->addr = addr;
		r->len = len;
		r->prot = prot;
	}
	return r;
}

static int back_region(struct dma_map *m, struct dma_region *r, int fd,
		       uint64_t offset)
{
	int ret = backing_get(&m->backings, fd, offset, r->len,
			      r->prot & DMA_PROT_WRITE, &r->backing);

	if (!ret)
		r->ptr = backing_at(r->backing, offset);
	return ret;
}

int dma_map_add_fd(struct dma_map *m, uint64_t addr, uint64_t len,
		   unsigned int prot, int fd, uint64_t offset)
{
	struct dma_region *r;
	int ret;

	pthread_mutex_lock(&m->update);
	ret = check_range(m, addr, len);
	if (ret)
		goto out;
	r = region_new(addr, len, prot);
	if (!r) {
		ret = -ENOMEM;
		goto out;
	}
	if (fd >= 0)
		ret = back_region(m, r, fd, offset);
	if (ret)
		region_free(m, r);
	else
		ret = insert(m, r);
out:
	pthread_mutex_unlock(&m->update);
	return ret;
}

int dma_map_add_ptr(struct dma_map *m, uint64_t addr, uint64_t len,
		    unsigned int prot, void *ptr, void *cookie)
{
	struct dma_region *r;
	int ret;

	pthread_mutex_lock(&m->update);
	ret = check_range(m, addr, len);
	if (!ret) {
		r = region_new(addr, len, prot);
		if (r) {
			r->ptr = ptr;
			r->cookie = cookie;
			ret = insert(m, r);
		} else {
			ret = -ENOMEM;
		}
	}
	pthread_mutex_unlock(&m->update);
	return ret;
}

/* Take out regions [at, at + n) of the table and wait for their readers. */
static int take_out(struct dma_map *m, unsigned int at, unsigned int n)
{
	struct table *old = atomic_load(&m->table);
	struct table *t = table_new(old->count - n);
	struct dma_region **gone = malloc(n * sizeof(*gone));
	unsigned int i;

	if (!t || !gone) {
		free(t);
		free(gone);
		return -ENOMEM;
	}
	memcpy(gone, old->region + at, n * sizeof(*gone));
	memcpy(t->region, old->region, at * sizeof(*gone));
	memcpy(t->region + at, old->region + at + n,
	       (old->count - at - n) * sizeof(*gone));
	replace(m, t);
	settle(m);
	for (i = 0; i < n; i++)
		region_free(m, gone[i]);
	free(gone);
	return 0;
}

int dma_map_del(struct dma_map *m, uint64_t addr, uint64_t len)
{
	const struct table *t;
	unsigned int at;
	int ret = -ENOENT;

	pthread_mutex_lock(&m->update);
	t = atomic_load(&m->table);
	at = position(t, addr);
	if (at < t->count && t->region[at]->addr == addr &&
	    t->region[at]->len == len)
		ret = take_out(m, at, 1);
	pthread_mutex_unlock(&m->update);
	return ret;
}

static bool cut(const struct dma_region *r, uint64_t addr, uint64_t last)
{
	return r->addr < addr || r->addr + (r->len - 1) > last;
}

int dma_map_del_range(struct dma_map *m, uint64_t addr, uint64_t len)
{
	uint64_t last = addr + len - 1;
	const struct table *t;
	unsigned int at, end;
	int ret = 0;

	if (!len || last < addr)
		return -EINVAL;
	pthread_mutex_lock(&m->update);
	t = atomic_load(&m->table);
	at = position(t, addr);
	for (end = at; end < t->count && t->region[end]->addr <= last; end++)
		if (cut(t->region[end], addr, last))
			ret = -EINVAL;
	if (!ret && end > at)
		ret = take_out(m, at, end - at);
	pthread_mutex_unlock(&m->update);
	return ret;
}

void dma_map_clear(struct dma_map *m)
{
	struct table *old, *t = table_new(0);
	unsigned int i;

	if (!t)
		abort();
	pthread_mutex_lock(&m->update);
	old = atomic_exchange(&m->table, t);
	atomic_store(&m->empty, true);
	settle(m);
	for (i = 0; i < old->count; i++)
		region_free(m, old->region[i]);
	free(old);
	pthread_mutex_unlock(&m->update);
}

void dma_map_enable(struct dma_map *m, bool on)
{
	pthread_mutex_lock(&m->update);
	atomic_store(&m->enabled, on);
	if (!on)
		synchronize(m);
	pthread_mutex_unlock(&m->update);
}

bool dma_map_enabled(struct dma_map *m)
{
	return atomic_load(&m->enabled);
}

unsigned int dma_map_count(struct dma_map *m)
{
	unsigned int n;

	pthread_mutex_lock(&m->update);
	n = atomic_load(&m->table)->count;
	pthread_mutex_unlock(&m->update);
	return n;
}
