// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of clients in our address space. A SIGBUS (the client shrank its file)
 * puts zero pages under the whole mapping and marks it bad.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "backing.h"

/* Address space that one client may take, against exhausting ours. */
#define MAP_BYTES_MAX	(4ull << 40)

struct backing {
	struct backing *next;
	dev_t dev;
	ino_t ino;
	char *ptr;
	uint64_t len;
	bool writable;
	unsigned int refs;
	atomic_bool bad;		/* memory vanished */
	atomic_bool told;
	struct guard *guard;
};

/*
 * Where the SIGBUS handler finds the mapping of an address. Entries are reused,
 * never freed, so the handler needs no lock; the one it looks for cannot go
 * away because the thread that was hit has a hold on a region of it.
 */
struct guard {
	atomic_uintptr_t start, end;	/* end 0: free */
	_Atomic(struct backing *) backing;
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
		atomic_store(&atomic_load(&g->backing)->bad, true);
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
		if (!atomic_load(&g->backing))
			return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	atomic_store(&g->next, atomic_load(&guards));
	atomic_store(&guards, g);
	return g;
}

static int guard_add(struct backing *b)
{
	struct guard *g;

	pthread_once(&guard_once, guard_install);
	pthread_mutex_lock(&guard_lock);
	g = guard_get();
	if (g) {
		atomic_store(&g->backing, b);
		atomic_store(&g->start, (uintptr_t)b->ptr);
		atomic_store(&g->end, (uintptr_t)b->ptr + b->len);
		b->guard = g;
	}
	pthread_mutex_unlock(&guard_lock);
	return g ? 0 : -ENOMEM;
}

static void guard_del(struct backing *b)
{
	pthread_mutex_lock(&guard_lock);
	atomic_store(&b->guard->end, 0);
	atomic_store(&b->guard->start, 0);
	atomic_store(&b->guard->backing, NULL);
	pthread_mutex_unlock(&guard_lock);
}

/* ---- Files ---- */

/* Only what cannot make a page fault wait for another process. */
static int check_memory(int fd, uint64_t offset, uint64_t len, struct stat *st)
{
	struct statfs fs;

	if (fstat(fd, st) || fstatfs(fd, &fs) || !S_ISREG(st->st_mode) ||
	    (fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC))
		return -EBADF;
	if ((offset | len) & ((uint64_t)fs.f_bsize - 1))
		return -EINVAL;		/* huge pages: whole ones */
	if (offset > (uint64_t)st->st_size ||
	    len > (uint64_t)st->st_size - offset)
		return -EOVERFLOW;
	return 0;
}

static int map_whole(struct backing *b, int fd, bool write)
{
	void *p = mmap(NULL, b->len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_NORESERVE, fd, 0);

	b->writable = p != MAP_FAILED;
	if (p == MAP_FAILED && !write)
		p = mmap(NULL, b->len, PROT_READ, MAP_SHARED | MAP_NORESERVE,
			 fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	madvise(p, b->len, MADV_DONTDUMP);
	b->ptr = p;
	return guard_add(b);
}

static void destroy(struct backing *b)
{
	if (b->guard)
		guard_del(b);
	if (b->ptr)
		munmap(b->ptr, b->len);
	free(b);
}

static int create(struct backings *l, int fd, const struct stat *st,
		  bool write, struct backing **out)
{
	struct backing *b;
	int err;

	if ((uint64_t)st->st_size > MAP_BYTES_MAX - l->bytes)
		return -ENOSPC;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->dev = st->st_dev;
	b->ino = st->st_ino;
	b->len = (uint64_t)st->st_size;
	err = map_whole(b, fd, write);
	if (err) {
		destroy(b);
		return err;
	}
	b->next = l->first;
	l->first = b;
	l->bytes += b->len;
	*out = b;
	return 0;
}

int backing_get(struct backings *l, int fd, uint64_t offset, uint64_t len,
		bool write, struct backing **out)
{
	struct stat st;
	struct backing *b;
	int err = check_memory(fd, offset, len, &st);

	if (err)
		return err;
	for (b = l->first; b; b = b->next)
		if (b->dev == st.st_dev && b->ino == st.st_ino &&
		    offset + len <= b->len && (b->writable || !write) &&
		    !atomic_load(&b->bad))
			break;
	if (!b)
		err = create(l, fd, &st, write, &b);
	if (err)
		return err;
	b->refs++;
	*out = b;
	return 0;
}

void backing_put(struct backings *l, struct backing *b)
{
	struct backing **p = &l->first;

	if (--b->refs)
		return;
	while (*p != b)
		p = &(*p)->next;
	*p = b->next;
	l->bytes -= b->len;
	destroy(b);
}

void *backing_at(struct backing *b, uint64_t offset)
{
	return b->ptr + offset;
}

bool backing_bad(struct backing *b)
{
	return atomic_load_explicit(&b->bad, memory_order_relaxed);
}

bool backing_tell(struct backing *b)
{
	return atomic_load(&b->bad) && !atomic_exchange(&b->told, true);
}
