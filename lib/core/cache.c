// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Registration cache of a port. Public half: fabrex_mr_cache_get(3). A counter
 * of the watch page is read before its region is registered, and again on every
 * hit; the driver increments it before the memory can become anything else. So
 * a hit costs a search and a load. The lock is never held while a region is
 * registered or deregistered.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/internal.h"
#include "base/interval.h"
#include "memory/memory.h"

#define WATCHED_MAX	16384u	/* counters, so regions that are kept */
#define KEPT_MAX	1024u	/* regions kept unused, unless told */

enum cached_state {
	PENDING,			/* being registered by a thread */
	FRESH,				/* good when last looked at */
	STALE,				/* not found again; ends once unused */
};

struct cached {
	struct interval range;
	enum cached_state state;
	uint32_t refs;			/* gets without put */
	uint32_t watch;			/* counter, or WATCHED_MAX: none */
	uint32_t seen;			/* its value before registration */
	struct fabrex_mr *mr;
	struct cached *older, *newer;	/* unused ones */
};

struct cache {
	pthread_mutex_t lock;
	pthread_cond_t settled;		/* PENDING no more, or ended */
	uint32_t ending;		/* regions: room is being made */
	uint64_t ended;			/* of them, so far */
	struct interval *ranges;	/* PENDING and FRESH */
	struct cached *oldest, *newest;	/* unused, by last use */
	const uint32_t *counters;	/* NULL: changes are not counted */
	uint16_t *spare;		/* stack of counters */
	uint32_t nspare;
	uint64_t max_regions, max_bytes;
	uint64_t kept_regions, kept_bytes;	/* bytes of the host */
	struct fabrex_mr_cache_stats stats;
	const uint32_t *alive;		/* 0 in the child of a fork */
};

/* ---- creation ---------------------------------------------------------- */

/* A page that is all zeroes in children: cheaper than any system call. */
static const uint32_t *make_alive(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint32_t *p = mmap(NULL, page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, page, MADV_WIPEONFORK)) {
		munmap(p, page);
		return NULL;
	}
	*p = 1;
	return p;
}

static void cache_destroy(struct cache *c)
{
	if (c->alive)
		munmap((void *)(uintptr_t)c->alive,
		       (size_t)sysconf(_SC_PAGESIZE));
	free(c->spare);
	free(c);
}

/* A port that counts no changes has a cache that keeps nothing. */
static void watch(struct fabrex_port *port, struct cache *c)
{
	uint32_t i;

	if (!port->ops->watch || !c->spare ||
	    port->ops->watch(port->transport, WATCHED_MAX, &c->counters))
		return;
	for (i = 0; i < WATCHED_MAX; i++)
		c->spare[i] = (uint16_t)(WATCHED_MAX - 1 - i);
	c->nspare = WATCHED_MAX;
}

static bool may_pin_all(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = { 0 };

	return !syscall(SYS_capget, &head, data) &&
	       data[0].effective & 1u << CAP_IPC_LOCK;
}

/*
 * Pinned memory is lost for everything else, and other processes have caches,
 * too: a part of the machine's memory, and of what the process may pin.
 */
static uint64_t kept_bytes_default(void)
{
	uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			 (uint64_t)sysconf(_SC_PAGESIZE) / 16;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur / 2 < bytes &&
	    !may_pin_all())
		bytes = limit.rlim_cur / 2;
	return bytes;
}

static struct cache *cache_create(struct fabrex_port *port)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->alive = make_alive();
	c->spare = malloc(WATCHED_MAX * sizeof(*c->spare));
	c->max_regions = KEPT_MAX;
	c->max_bytes = kept_bytes_default();
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->settled, NULL);
	watch(port, c);
	return c;
}

/* In the child of a fork nothing may be touched, not even the lock. */
static bool inherited(const struct fabrex_port *port, const struct cache *c)
{
	return c->alive ? !__atomic_load_n(c->alive, __ATOMIC_RELAXED) :
			  port->pid != getpid();
}

static int bad_child(struct fabrex_port *port)
{
	return fxi_error(ENODEV, "port %s: it belongs to the parent process; open it anew after fork()",
			 port->attr.name);
}

/* The port's cache, created by the first caller. */
static int cache_of(struct fabrex_port *port, struct cache **out)
{
	struct cache *c = __atomic_load_n(&port->cache, __ATOMIC_ACQUIRE);

	if (unlikely(!c)) {
		if (port->pid != getpid())
			return bad_child(port);
		pthread_mutex_lock(&port->lock);
		if (!port->cache)
			__atomic_store_n(&port->cache, cache_create(port),
					 __ATOMIC_RELEASE);
		c = port->cache;
		pthread_mutex_unlock(&port->lock);
	}
	if (unlikely(!c))
		return fxi_error(ENOMEM, "port %s: registration cache: out of memory",
				 port->attr.name);
	if (unlikely(inherited(port, c)))
		return bad_child(port);
	*out = c;
	return 0;
}

/* In a child the lock may be held by a thread that does not exist there. */
void fxi_cache_free(struct fabrex_port *port)
{
	struct cache *c = port->cache;

	port->cache = NULL;
	if (!c)
		return;
	if (!inherited(port, c)) {
		pthread_cond_destroy(&c->settled);
		pthread_mutex_destroy(&c->lock);
	}
	cache_destroy(c);
}

/* ---- unused ones ------------------------------------------------------- */

static size_t bytes_of(const struct cached *e)
{
	return e->range.end - e->range.start;
}

/* What keeping it costs the host: device memory stays where it is. */
static size_t host_bytes(const struct cached *e)
{
	return fxi_memory_is_device(e->mr->kind) ? 0 : bytes_of(e);
}

static void unused_add(struct cache *c, struct cached *e)
{
	e->newer = NULL;
	e->older = c->newest;
	if (e->older)
		e->older->newer = e;
	else
		c->oldest = e;
	c->newest = e;
	c->kept_regions++;
	c->kept_bytes += host_bytes(e);
}

static void unused_remove(struct cache *c, struct cached *e)
{
	if (e->older)
		e->older->newer = e->newer;
	else
		c->oldest = e->newer;
	if (e->newer)
		e->newer->older = e->older;
	else
		c->newest = e->older;
	c->kept_regions--;
	c->kept_bytes -= host_bytes(e);
}

/* ---- endings ----------------------------------------------------------- */

/*
 * Forget it. Another region gets its counter: what this one still counts there
 * makes that one stale too early, never too late.
 */
static void forget(struct cache *c, const struct cached *e)
{
	if (e->watch != WATCHED_MAX)
		c->spare[c->nspare++] = (uint16_t)e->watch;
	c->stats.regions--;
	c->stats.bytes -= bytes_of(e);
}

/* And put it on the list of those to be ended once the lock is dropped. */
static void doom(struct cache *c, struct cached *e, struct cached **doomed)
{
	forget(c, e);
	c->ending++;
	e->older = *doomed;
	*doomed = e;
}

/* Not found any more; in use it lives on until it is put back. */
static void expire(struct cache *c, struct cached *e, struct cached **doomed)
{
	fxi_interval_remove(&c->ranges, &e->range);
	e->state = STALE;
	if (e->refs)
		return;
	unused_remove(c, e);
	doom(c, e, doomed);
}

/* What cannot be ended now ends with the port. */
static void end_doomed(struct cache *c, struct cached *doomed)
{
	uint32_t n = 0;
	struct cached *e;

	if (!doomed)
		return;
	while ((e = doomed)) {
		doomed = e->older;
		e->mr->cached = NULL;
		fabrex_mr_deregister(e->mr);
		free(e);
		n++;
	}
	pthread_mutex_lock(&c->lock);
	c->ending -= n;
	c->ended += n;
	pthread_cond_broadcast(&c->settled);
	pthread_mutex_unlock(&c->lock);
}

/* No thread may be cancelled here: it would keep the lock. */
static void wait_settled(struct cache *c)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_cond_wait(&c->settled, &c->lock);
	pthread_setcancelstate(old, NULL);
}

/* The oldest whose end helps; NULL: there is room. */
static struct cached *victim(struct cache *c, uint64_t regions, uint64_t bytes)
{
	struct cached *e = c->oldest;

	if (c->kept_regions > regions)
		return e;
	if (c->kept_bytes <= bytes)
		return NULL;
	while (e && !host_bytes(e))
		e = e->newer;
	return e;
}

static void evict_to(struct cache *c, uint64_t regions, uint64_t bytes,
		     struct cached **doomed)
{
	struct cached *e;

	while ((e = victim(c, regions, bytes))) {
		c->stats.evicted++;
		expire(c, e, doomed);
	}
}

/* Wait until another thread has ended some of those that are to end. */
static void wait_ended(struct cache *c)
{
	uint64_t ended = c->ended;

	while (c->ended == ended)
		wait_settled(c);
}

/*
 * Called while a region is being registered, for which others may wait. Threads
 * counted in ending do not wait for anything, so they make progress.
 */
bool fxi_cache_make_room(struct fabrex_port *port)
{
	struct cache *c = __atomic_load_n(&port->cache, __ATOMIC_ACQUIRE);
	struct cached *doomed = NULL;
	uint32_t ending;

	if (!c || inherited(port, c))
		return false;
	pthread_mutex_lock(&c->lock);
	ending = c->ending;
	if (c->kept_regions)
		evict_to(c, c->kept_regions / 2, UINT64_MAX, &doomed);
	else if (ending)
		wait_ended(c);
	pthread_mutex_unlock(&c->lock);
	end_doomed(c, doomed);
	return doomed || ending;
}

/* ---- lookup ------------------------------------------------------------ */

static bool counted(const struct cache *c, const struct cached *e)
{
	return e->watch != WATCHED_MAX &&
	       __atomic_load_n(&c->counters[e->watch], __ATOMIC_ACQUIRE) !=
	       e->seen;
}

/*
 * A key that peers may use covers exactly what was asked for, because the
 * caller hands it out.
 */
static struct interval *match(const struct cache *c,
			      const struct interval *want)
{
	if (want->access & ~FABREX_MR_LOCAL_WRITE)
		return fxi_interval_exact(c->ranges, want->start, want->end,
					  want->access, FABREX_MR_LOCAL_WRITE);
	return fxi_interval_cover(c->ranges, want->start, want->end,
				  want->access);
}

/*
 * Wait for one that is being registered. That thread may need the room that the
 * doomed regions have: they end first, and the search starts again.
 */
static void wait_pending(struct cache *c, struct cached **doomed)
{
	struct cached *all = *doomed;

	if (!all) {
		wait_settled(c);
		return;
	}
	*doomed = NULL;
	pthread_mutex_unlock(&c->lock);
	end_doomed(c, all);
	pthread_mutex_lock(&c->lock);
}

/*
 * One that fits and is not stale, with a reference; NULL if there is none.
 * Waits for one that is being registered; the lock is dropped meanwhile.
 */
static struct cached *lookup(struct cache *c, const struct interval *want,
			     struct cached **doomed)
{
	struct interval *found;
	struct cached *e;

	while ((found = match(c, want))) {
		e = container_of(found, struct cached, range);
		if (unlikely(e->state == PENDING)) {
			wait_pending(c, doomed);
			continue;
		}
		if (likely(!counted(c, e))) {
			if (!e->refs++)
				unused_remove(c, e);
			return e;
		}
		c->stats.stale++;
		expire(c, e, doomed);
	}
	return NULL;
}

/* Nobody would ask for them again, and they hold pinned pages. */
static void sweep(struct cache *c, struct cached **doomed)
{
	struct cached *e, *newer;

	for (e = c->oldest; e; e = newer) {
		newer = e->newer;
		if (!counted(c, e))
			continue;
		c->stats.stale++;
		expire(c, e, doomed);
	}
}

/* ---- registration ------------------------------------------------------ */

/*
 * A region that peers cannot use may be larger than what was asked for, so that
 * it is found more often: pages are pinned whole anyway, and device memory is
 * exported by allocation. Memory without an id has no allocation: a reserved
 * address range may contain several or none, and change in parts. A key that
 * peers may use covers not one byte more.
 */
static struct interval widen(const struct interval *want,
			     const struct fabrex_memory *memory)
{
	struct interval all = *want;

	if (want->access & ~FABREX_MR_LOCAL_WRITE)
		return all;
	if (!fxi_memory_is_device(memory->kind)) {
		all.start = page_down(want->start);
		all.end = page_up(want->end);
	} else if (memory->id && (uintptr_t)memory->base <= want->start &&
		   memory->length >= want->end - (uintptr_t)memory->base) {
		all.start = (uintptr_t)memory->base;
		all.end = all.start + (uintptr_t)memory->length;
	}
	return all;
}

/* A placeholder, so that others that want the same wait for it. */
static struct cached *reserve(struct cache *c, const struct interval *range)
{
	struct cached *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->range = *range;
	e->refs = 1;
	e->watch = c->nspare ? c->spare[--c->nspare] : WATCHED_MAX;
	if (e->watch != WATCHED_MAX)
		e->seen = __atomic_load_n(&c->counters[e->watch],
					  __ATOMIC_ACQUIRE);
	fxi_interval_add(&c->ranges, &e->range);
	c->stats.regions++;
	c->stats.bytes += bytes_of(e);
	return e;
}

/* Registered, or it failed: those that wait search again. */
static int settle(struct cache *c, struct cached *e, int ret)
{
	pthread_mutex_lock(&c->lock);
	if (ret) {
		fxi_interval_remove(&c->ranges, &e->range);
		forget(c, e);
	} else {
		e->mr->cached = e;
		e->state = FRESH;
	}
	pthread_cond_broadcast(&c->settled);
	pthread_mutex_unlock(&c->lock);
	if (ret)
		free(e);
	return ret;
}

static int attempt(struct fabrex_port *port, struct cached *e,
		   const struct fabrex_memory *memory)
{
	struct transport_mr params = {
		.addr = (void *)e->range.start, .length = bytes_of(e),
		.access = e->range.access, .pin = true,
		.watched = e->watch != WATCHED_MAX,
		.watch = e->watch != WATCHED_MAX ? e->watch : 0,
	};

	return fxi_mr_register(port, &params, memory, &e->mr);
}

/* Those that wait for more of it than it is now register it themselves. */
static void shrink(struct cache *c, struct cached *e,
		   const struct interval *want)
{
	pthread_mutex_lock(&c->lock);
	fxi_interval_remove(&c->ranges, &e->range);
	c->stats.bytes -= bytes_of(e);
	e->range = *want;
	c->stats.bytes += bytes_of(e);
	fxi_interval_add(&c->ranges, &e->range);
	pthread_cond_broadcast(&c->settled);
	pthread_mutex_unlock(&c->lock);
}

static void unwatch(struct cache *c, struct cached *e)
{
	pthread_mutex_lock(&c->lock);
	c->spare[c->nspare++] = (uint16_t)e->watch;
	e->watch = WATCHED_MAX;
	pthread_mutex_unlock(&c->lock);
}

/*
 * The whole of a device allocation may be too much for the port or the exporter
 * where a part is not. A kernel without MMU notifiers has the counters, but
 * cannot count changes of host memory.
 */
static int enroll(struct fabrex_port *port, struct cache *c, struct cached *e,
		  const struct interval *want,
		  const struct fabrex_memory *memory)
{
	bool device = fxi_memory_is_device(memory->kind);
	int ret = attempt(port, e, memory);

	if (ret && device && bytes_of(e) > want->end - want->start) {
		shrink(c, e, want);
		ret = attempt(port, e, memory);
	}
	if (ret == -EOPNOTSUPP && !device && e->watch != WATCHED_MAX) {
		unwatch(c, e);
		ret = attempt(port, e, memory);
	}
	return settle(c, e, ret);
}

/* ---- public ------------------------------------------------------------ */

static bool is_host(const void *addr)
{
	struct fabrex_memory memory;

	return !fxi_memory_find(addr, FABREX_MEMORY_AUTO, &memory) &&
	       !fxi_memory_is_device(memory.kind);
}

/*
 * Device memory: freed and allocated again it has the same address, and its
 * dma-buf, which is still ours, has not been revoked. Where host memory was that
 * nothing counts, there may be a device's now.
 */
static bool same_allocation(const struct fabrex_mr *mr, const void *addr)
{
	if (likely(!fxi_memory_is_device(mr->kind)))
		return !mr->object.port->ops->unpinned || is_host(addr);
	return !mr->allocation ||
	       fxi_memory_id(mr->kind, addr) == mr->allocation;
}

/* Could it be kept unused? Only what cannot change unnoticed. */
static bool keepable(const struct cached *e)
{
	return e->watch != WATCHED_MAX &&
	       (!fxi_memory_is_device(e->mr->kind) || e->mr->allocation);
}

/* It was not a hit after all. */
static void disown(struct cache *c, struct cached *e, struct cached **doomed)
{
	c->stats.hits--;
	if (e->state != FRESH)
		return;
	c->stats.stale++;
	expire(c, e, doomed);
}

/* It has no user any more: keep it for the next one, if it may be kept. */
static void retire(struct cache *c, struct cached *e, struct cached **doomed)
{
	if (e->state == STALE) {
		doom(c, e, doomed);
		return;
	}
	unused_add(c, e);
	if (!keepable(e))
		expire(c, e, doomed);
	else
		evict_to(c, c->max_regions, c->max_bytes, doomed);
}

static void release(struct cache *c, struct cached *e, bool stale)
{
	struct cached *doomed = NULL;

	pthread_mutex_lock(&c->lock);
	if (stale)
		disown(c, e, &doomed);
	if (!--e->refs)
		retire(c, e, &doomed);
	pthread_mutex_unlock(&c->lock);
	if (unlikely(doomed))
		end_doomed(c, doomed);
}

/* The cache's, with a reference, or NULL. */
static struct cached *find(struct cache *c, const struct interval *want)
{
	struct cached *e, *doomed = NULL;

	pthread_mutex_lock(&c->lock);
	e = lookup(c, want, &doomed);
	if (likely(e))
		c->stats.hits++;
	pthread_mutex_unlock(&c->lock);
	if (unlikely(doomed))
		end_doomed(c, doomed);
	return e;
}

/* Room for a region, unless another thread has registered one meanwhile. */
static struct cached *find_or_reserve(struct cache *c,
				      const struct interval *want,
				      const struct interval *range, bool *hit)
{
	struct cached *e, *doomed = NULL;

	pthread_mutex_lock(&c->lock);
	e = lookup(c, want, &doomed);
	*hit = e;
	if (e) {
		c->stats.hits++;
	} else {
		c->stats.misses++;
		sweep(c, &doomed);
		e = reserve(c, range);
	}
	pthread_mutex_unlock(&c->lock);
	end_doomed(c, doomed);
	return e;
}

static int make(struct fabrex_port *port, struct cache *c,
		const struct interval *want, struct cached **out, bool *hit)
{
	struct fabrex_memory memory;
	struct interval range;
	int ret;

	ret = fxi_memory_find_for_region((void *)want->start,
					 FABREX_MEMORY_AUTO, &memory);
	if (ret)
		return ret;
	range = widen(want, &memory);
	*out = find_or_reserve(c, want, &range, hit);
	if (!*out)
		return fxi_error(ENOMEM, "port %s: registration cache: out of memory",
				 port->attr.name);
	return *hit ? 0 : enroll(port, c, *out, want, &memory);
}

/* If the thread were cancelled meanwhile, the region would stay PENDING. */
static int find_or_make(struct fabrex_port *port, struct cache *c,
			const struct interval *want, struct cached **out,
			bool *hit)
{
	int ret, old;

	*out = find(c, want);
	*hit = *out;
	if (likely(*hit))
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	ret = make(port, c, want, out, hit);
	pthread_setcancelstate(old, NULL);
	return ret;
}

EXPORT int fabrex_mr_cache_get(struct fabrex_port *port, void *addr,
			       size_t length, uint32_t access,
			       struct fabrex_mr **mr, uint64_t *offset)
{
	const struct interval want = {
		.start = (uintptr_t)addr, .end = (uintptr_t)addr + length,
		.access = access,
	};
	struct cached *e;
	struct cache *c;
	bool hit;
	int ret;

	ret = fxi_mr_check(port, addr, length, access);
	if (!ret)
		ret = cache_of(port, &c);
	if (unlikely(ret))
		return ret;
	for (;;) {
		ret = find_or_make(port, c, &want, &e, &hit);
		if (unlikely(ret))
			return ret;
		if (!hit || likely(same_allocation(e->mr, addr)))
			break;
		release(c, e, true);
	}
	*mr = e->mr;
	*offset = want.start - e->range.start;
	return 0;
}

EXPORT void fabrex_mr_cache_put(struct fabrex_mr *mr)
{
	struct fabrex_port *port;

	if (!mr || !mr->cached)
		return;
	port = mr->object.port;
	if (inherited(port, port->cache))
		return;
	release(port->cache, mr->cached, false);
}

EXPORT int fabrex_mr_cache_limit(struct fabrex_port *port, uint64_t regions,
				 uint64_t bytes)
{
	struct cached *doomed = NULL;
	struct cache *c;
	int ret = cache_of(port, &c);

	if (ret)
		return ret;
	pthread_mutex_lock(&c->lock);
	c->max_regions = regions;
	c->max_bytes = bytes;
	sweep(c, &doomed);
	evict_to(c, regions, bytes, &doomed);
	pthread_mutex_unlock(&c->lock);
	end_doomed(c, doomed);
	return 0;
}

EXPORT int fabrex_mr_cache_stats(struct fabrex_port *port,
				 struct fabrex_mr_cache_stats *stats,
				 size_t size)
{
	struct fabrex_mr_cache_stats now;
	struct cache *c;
	int ret = cache_of(port, &c);

	if (ret)
		return ret;
	pthread_mutex_lock(&c->lock);
	now = c->stats;
	pthread_mutex_unlock(&c->lock);
	fxi_copy_out(stats, size, &now, sizeof(now));
	return 0;
}
