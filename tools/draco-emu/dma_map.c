// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bus address -> memory of this process. Readers count themselves into one of
 * two phases of a shard and see one immutable table; whoever changes the table
 * publishes a new one and waits for the readers of both phases. A SIGBUS (the
 * client shrank its file) puts zero pages under the region and marks it bad.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "dma_map.h"

#define SHARDS		16
#define CACHE_LINE	64
/* Address space that one client may take, against exhausting ours. */
#define MAP_BYTES_MAX	(4ull << 40)
#define PAGE		4096u

struct dma_region {
	uint64_t addr, len;
	unsigned int prot;
	void *ptr;			/* NULL: no memory behind it */
	void *cookie;
	bool mapped;			/* by us */
	atomic_bool bad;		/* memory vanished */
	atomic_bool told;
	struct guard *guard;
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
	unsigned int max;
	uint64_t bytes;
	void (*on_fault)(void *arg);
	void *arg;
};

/*
 * Where the SIGBUS handler finds the region of an address. Entries are reused,
 * never freed, so the handler needs no lock; the one it looks for cannot go
 * away because the thread that was hit has a hold on its region.
 */
struct guard {
	atomic_uintptr_t start, end;	/* end 0: free */
	_Atomic(struct dma_region *) region;
	_Atomic(struct guard *) next;
};

static _Atomic(struct guard *) guards;
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t guard_once = PTHREAD_ONCE_INIT;

static struct guard *guard_find(uintptr_t a)
{
	struct guard *g;

	for (g = atomic_load(&guards); g; g = atomic_load(&g->next))
		if (a >= atomic_load(&g->start) && a < atomic_load(&g->end))
			return g;
	return NULL;
}

static void on_sigbus(int sig, siginfo_t *si, void *ctx)
{
	int saved = errno;
	struct guard *g = guard_find((uintptr_t)si->si_addr);
	uintptr_t start;

	(void)ctx;
	if (g) {
		start = atomic_load(&g->start);
		atomic_store(&atomic_load(&g->region)->bad, true);
		if (mmap((void *)start, atomic_load(&g->end) - start,
			 PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
			 MAP_NORESERVE, -1, 0) != MAP_FAILED) {
			errno = saved;
			return;
		}
	}
	signal(sig, SIG_DFL);		/* not ours: die as usual on return */
}

static void guard_install(void)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO | SA_RESTART };

	sa.sa_sigaction = on_sigbus;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, NULL);
}

static struct guard *guard_get(void)
{
	struct guard *g;

	for (g = atomic_load(&guards); g; g = atomic_load(&g->next))
		if (!atomic_load(&g->region))
			return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	atomic_store(&g->next, atomic_load(&guards));
	atomic_store(&guards, g);
	return g;
}

static int guard_add(struct dma_region *r)
{
	struct guard *g;

	pthread_once(&guard_once, guard_install);
	pthread_mutex_lock(&guard_lock);
	g = guard_get();
	if (g) {
		atomic_store(&g->region, r);
		atomic_store(&g->start, (uintptr_t)r->ptr);
		atomic_store(&g->end, (uintptr_t)r->ptr + r->len);
		r->guard = g;
	}
	pthread_mutex_unlock(&guard_lock);
	return g ? 0 : -ENOMEM;
}

static void guard_del(struct dma_region *r)
{
	pthread_mutex_lock(&guard_lock);
	atomic_store(&r->guard->end, 0);
	atomic_store(&r->guard->start, 0);
	atomic_store(&r->guard->region, NULL);
	pthread_mutex_unlock(&guard_lock);
}

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
	    atomic_load_explicit(&r->bad, memory_order_relaxed)) {
		leave(m, token);
		return -EFAULT;
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
	bool bad = atomic_load(&r->bad);

	if (bad && !atomic_exchange(&r->told, true) && h->map->on_fault)
		h->map->on_fault(h->map->arg);
	leave(h->map, h->token);
	return bad ? -EFAULT : 0;
}

int dma_read(struct dma_map *m, uint64_t addr, void *buf, size_t len)
{
	struct dma_hold h;

	while (len) {
		if (dma_get(m, addr, len, DMA_PROT_READ, &h))
			return -EFAULT;
		memcpy(buf, h.ptr, h.len);
		if (dma_put(&h))
			return -EFAULT;
		buf = (char *)buf + h.len;
		addr += h.len;
		len -= h.len;
	}
	return 0;
}

int dma_write(struct dma_map *m, uint64_t addr, const void *buf, size_t len)
{
	struct dma_hold h;

	while (len) {
		if (dma_get(m, addr, len, DMA_PROT_WRITE, &h))
			return -EFAULT;
		memcpy(h.ptr, buf, h.len);
		if (dma_put(&h))
			return -EFAULT;
		buf = (const char *)buf + h.len;
		addr += h.len;
		len -= h.len;
	}
	return 0;
}

static int get_word(struct dma_map *m, uint64_t addr, struct dma_hold *h)
{
	if (addr & 7)
		return -EINVAL;
	if (dma_get(m, addr, 8, DMA_PROT_READ | DMA_PROT_WRITE, h))
		return -EFAULT;
	if (h->len == 8)
		return 0;
	dma_put(h);
	return -EFAULT;
}

int dma_fetch_add(struct dma_map *m, uint64_t addr, uint64_t add, uint64_t *old)
{
	struct dma_hold h;
	int ret = get_word(m, addr, &h);

	if (ret)
		return ret;
	*old = __atomic_fetch_add((uint64_t *)h.ptr, add, __ATOMIC_SEQ_CST);
	return dma_put(&h);
}

int dma_cmp_swap(struct dma_map *m, uint64_t addr, uint64_t compare,
		 uint64_t swap, uint64_t *old)
{
	struct dma_hold h;
	int ret = get_word(m, addr, &h);

	if (ret)
		return ret;
	__atomic_compare_exchange_n((uint64_t *)h.ptr, &compare, swap, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	*old = compare;
	return dma_put(&h);
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

static void publish(struct dma_map *m, struct table *t)
{
	struct table *old = atomic_exchange(&m->table, t);

	atomic_store(&m->empty, !t->count);
	synchronize(m);
	free(old);
}

static void region_free(struct dma_region *r)
{
	if (r->guard)
		guard_del(r);
	if (r->mapped)
		munmap(r->ptr, r->len);
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

static int check_range(const struct dma_map *m, uint64_t addr, uint64_t len)
{
	const struct table *t = atomic_load(&m->table);
	unsigned int i;

	if (!len || addr + len - 1 < addr || (addr | len) & (PAGE - 1))
		return -EINVAL;
	if (t->count >= m->max)
		return -ENOSPC;
	for (i = 0; i < t->count; i++)
		if (addr <= t->region[i]->addr + (t->region[i]->len - 1) &&
		    t->region[i]->addr <= addr + (len - 1))
			return -EEXIST;
	return 0;
}

/* Takes r over. */
static int insert(struct dma_map *m, struct dma_region *r)
{
	struct table *old = atomic_load(&m->table);
	struct table *t = table_new(old->count + 1);
	unsigned int i, n = 0;

	if (!t) {
		region_free(r);
		return -ENOMEM;
	}
	for (i = 0; i < old->count && old->region[i]->addr < r->addr; i++)
		t->region[n++] = old->region[i];
	t->region[n++] = r;
	for (; i < old->count; i++)
		t->region[n++] = old->region[i];
	if (r->mapped)
		m->bytes += r->len;
	publish(m, t);
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

/* Only what cannot make a page fault wait for another process. */
static int check_memory(int fd, uint64_t offset, uint64_t len)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs) || !S_ISREG(st.st_mode) ||
	    (fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC))
		return -EBADF;
	if ((offset | len) & ((uint64_t)fs.f_bsize - 1))
		return -EINVAL;		/* huge pages: whole ones */
	if (offset > (uint64_t)st.st_size || len > (uint64_t)st.st_size - offset)
		return -EOVERFLOW;
	return 0;
}

static int map_region(struct dma_map *m, struct dma_region *r, int fd,
		      uint64_t offset)
{
	int prot = PROT_READ | (r->prot & DMA_PROT_WRITE ? PROT_WRITE : 0);
	int ret = check_memory(fd, offset, r->len);
	void *p;

	if (ret)
		return ret;
	if (r->len > MAP_BYTES_MAX - m->bytes)
		return -ENOSPC;
	p = mmap(NULL, r->len, prot, MAP_SHARED | MAP_NORESERVE, fd,
		 (off_t)offset);
	if (p == MAP_FAILED)
		return -errno;
	madvise(p, r->len, MADV_DONTDUMP);
	r->ptr = p;
	r->mapped = true;
	return guard_add(r);
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
		ret = map_region(m, r, fd, offset);
	if (ret)
		region_free(r);
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

static int remove_region(struct dma_map *m, uint64_t addr, uint64_t len)
{
	struct table *old = atomic_load(&m->table), *t;
	struct dma_region *r = find(old, addr);
	unsigned int i, n = 0;

	if (!r || r->addr != addr || r->len != len)
		return -ENOENT;
	t = table_new(old->count - 1);
	if (!t)
		return -ENOMEM;
	for (i = 0; i < old->count; i++)
		if (old->region[i] != r)
			t->region[n++] = old->region[i];
	if (r->mapped)
		m->bytes -= r->len;
	publish(m, t);
	region_free(r);
	return 0;
}

int dma_map_del(struct dma_map *m, uint64_t addr, uint64_t len)
{
	int ret;

	pthread_mutex_lock(&m->update);
	ret = remove_region(m, addr, len);
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
	synchronize(m);
	for (i = 0; i < old->count; i++)
		region_free(old->region[i]);
	free(old);
	m->bytes = 0;
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
