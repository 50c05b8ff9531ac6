// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocations of the test run times: addresses, ids, copies. Where the bytes
 * are is in store.c.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"
#include "store.h"

#define MAX_SPARE	32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_memory *all;
static uint64_t last_id;
/* Addresses given up, so that the next allocation gets them. */
static struct {
	char *base;
	size_t size;
} spare[MAX_SPARE];

int gpu_fail(const char *function)
{
	const char *list = getenv("FABREX_TEST_FAIL");
	size_t n = strlen(function);

	while (list && *list) {
		if (!strncmp(list, function, n) && list[n] == '=')
			return (int)strtol(list + n + 1, NULL, 0);
		list = strchr(list, ',');
		list += !!list;
	}
	return 0;
}

static size_t round_up(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

/* ---- addresses --------------------------------------------------------- */

static char *take_spare(size_t size)
{
	char *base = NULL;
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX_SPARE && !base; i++) {
		if (!spare[i].base || spare[i].size != size)
			continue;
		base = spare[i].base;
		spare[i].base = NULL;
	}
	pthread_mutex_unlock(&lock);
	return base;
}

char *gpu_reserve(size_t size)
{
	char *base = take_spare(round_up(size));

	if (base)
		return base;
	base = mmap(NULL, round_up(size), PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return base == MAP_FAILED ? NULL : base;
}

void gpu_unreserve(char *base, size_t size)
{
	int i;

	if (!base)
		return;
	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX_SPARE && spare[i].base; i++)
		;
	if (i < MAX_SPARE) {
		spare[i].base = base;
		spare[i].size = round_up(size);
		base = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (base)
		munmap(base, round_up(size));
}

/* ---- allocations ------------------------------------------------------- */

/* Device memory has addresses of its own; the others those of the view. */
static bool give_address(struct gpu_memory *m)
{
	switch (m->kind) {
	case GPU_VIRTUAL:
		return true;
	case GPU_DEVICE:
		m->base = gpu_reserve(m->size);
		if (!m->base)
			return false;
		m->base += m->skip;
		return true;
	default:
		m->base = m->view;
		return true;
	}
}

static void enlist(struct gpu_memory *m)
{
	pthread_mutex_lock(&lock);
	m->id = ++last_id;
	m->next = all;
	all = m;
	pthread_mutex_unlock(&lock);
}

struct gpu_memory *gpu_alloc(enum gpu_vendor vendor, enum gpu_kind kind,
			     int gpu, size_t length, size_t skip)
{
	struct gpu_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->vendor = vendor;
	m->kind = kind;
	m->device = gpu;
	m->length = length;
	m->skip = skip;
	m->size = round_up(length + skip);
	m->refs = 1;
	m->fd = -1;
	m->node = -1;
	m->place = gpu_place(gpu);
	if (!store_open(m)) {
		free(m);
		return NULL;
	}
	if (!give_address(m)) {
		store_close(m);
		free(m);
		errno = ENOMEM;
		return NULL;
	}
	enlist(m);
	return m;
}

struct gpu_memory *gpu_enter(const struct gpu_memory *opened)
{
	struct gpu_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	*m = *opened;
	m->refs = 1;
	if (!give_address(m)) {
		free(m);
		return NULL;
	}
	enlist(m);
	return m;
}

struct gpu_memory *gpu_find_foreign(enum gpu_vendor vendor, uint64_t key)
{
	struct gpu_memory *m;

	pthread_mutex_lock(&lock);
	for (m = all; m; m = m->next)
		if (m->foreign && m->vendor == vendor && m->key == key)
			break;
	if (m)
		m->refs++;
	pthread_mutex_unlock(&lock);
	return m;
}

static void unlink_memory(struct gpu_memory *m)
{
	struct gpu_memory **link;

	for (link = &all; *link != m; link = &(*link)->next)
		;
	*link = m->next;
}

void gpu_put(struct gpu_memory *m)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = !--m->refs;
	if (last)
		unlink_memory(m);
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	if (m->kind == GPU_DEVICE)
		gpu_unreserve(m->base - m->skip, m->size);
	store_close(m);
	free(m);
}

struct gpu_memory *gpu_find(enum gpu_vendor vendor, const void *addr)
{
	const char *p = addr;
	struct gpu_memory *m;

	pthread_mutex_lock(&lock);
	for (m = all; m; m = m->next)
		if (m->vendor == vendor && m->base && p >= m->base &&
		    p < m->base + m->length)
			break;
	pthread_mutex_unlock(&lock);
	return m;
}

void gpu_map(struct gpu_memory *m, char *base)
{
	pthread_mutex_lock(&lock);
	m->base = base;
	pthread_mutex_unlock(&lock);
}

/* ---- bytes ------------------------------------------------------------- */

/* Where the processor finds @length bytes at an address; NULL: not all there. */
static char *view_of(enum gpu_vendor vendor, const void *addr, size_t length)
{
	struct gpu_memory *m = gpu_find(vendor, addr);
	size_t offset;

	if (!m)
		return (char *)(uintptr_t)addr;
	offset = (size_t)((const char *)addr - m->base);
	if (length > m->length - offset)
		return NULL;
	return m->view + m->skip + offset;
}

void *gpu_view(enum gpu_vendor vendor, const void *addr)
{
	return gpu_find(vendor, addr) ? view_of(vendor, addr, 1) : NULL;
}

static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hold_changed = PTHREAD_COND_INITIALIZER;
static bool held;
static unsigned int waiting;

void gpu_hold(bool on)
{
	pthread_mutex_lock(&hold_lock);
	held = on;
	pthread_cond_broadcast(&hold_changed);
	pthread_mutex_unlock(&hold_lock);
}

void gpu_held(bool one)
{
	pthread_mutex_lock(&hold_lock);
	while (!!waiting != one)
		pthread_cond_wait(&hold_changed, &hold_lock);
	pthread_mutex_unlock(&hold_lock);
}

static void wait_if_held(void)
{
	pthread_mutex_lock(&hold_lock);
	waiting++;
	pthread_cond_broadcast(&hold_changed);
	while (held)
		pthread_cond_wait(&hold_changed, &hold_lock);
	waiting--;
	pthread_mutex_unlock(&hold_lock);
}

/*
 * The processor reads a device that is not there any more as all ones, until its
 * driver knows. The engine of a GPU would have copied nothing.
 */
static bool was_there(enum gpu_vendor vendor, const void *from,
		      const char *copy, size_t length)
{
	static const char ones[4] = { -1, -1, -1, -1 };
	struct gpu_memory *m = gpu_find(vendor, from);

	if (!m || !m->handle || m->foreign || length < sizeof(ones) ||
	    (memcmp(copy, ones, sizeof(ones)) &&
	     memcmp(copy + length - sizeof(ones), ones, sizeof(ones))))
		return true;
	return store_answers(m);
}

bool gpu_copy(enum gpu_vendor vendor, void *to, const void *from,
	      size_t length)
{
	char *source = view_of(vendor, from, length);
	char *target = view_of(vendor, to, length);

	if (!source || !target)
		return false;
	wait_if_held();
	memmove(target, source, length);
	return was_there(vendor, from, target, length);
}

bool gpu_set(enum gpu_vendor vendor, void *to, int byte, size_t length)
{
	char *target = view_of(vendor, to, length);

	if (target)
		memset(target, byte, length);
	return target;
}

/* Where @length bytes at an address are in the pages of @m. */
static bool offset_in(const struct gpu_memory *m, const void *addr,
		      size_t length, size_t *offset)
{
	*offset = (size_t)((const char *)addr - m->base);
	if (length > m->length - *offset)
		return false;
	*offset += m->skip;
	return true;
}

bool gpu_checksum(enum gpu_vendor vendor, const void *addr, size_t length,
		  uint32_t *crc)
{
	struct gpu_memory *m = gpu_find(vendor, addr);
	size_t offset;

	return m && m->handle && offset_in(m, addr, length, &offset) &&
	       store_checksum(m, offset, length, crc);
}

bool gpu_move(enum gpu_vendor vendor, const void *addr, bool to_host)
{
	struct gpu_memory *m = gpu_find(vendor, addr);

	return m && m->handle && store_move(m, to_host);
}

/* ---- peers ------------------------------------------------------------- */

static bool allowed[GPU_MAX][GPU_MAX];	/* lock */

bool gpu_joined(int gpu, int peer)
{
	return store_joined(gpu, peer);
}

bool gpu_allow(int gpu, int peer)
{
	bool before;

	pthread_mutex_lock(&lock);
	before = allowed[gpu][peer];
	allowed[gpu][peer] = true;
	pthread_mutex_unlock(&lock);
	return !before;
}

static bool is_allowed(int gpu, int peer)
{
	bool yes;

	pthread_mutex_lock(&lock);
	yes = allowed[gpu][peer];
	pthread_mutex_unlock(&lock);
	return yes;
}

/* Does the GPU of @m, which is this process's own, reach memory @other? */
static bool reaches(const struct gpu_memory *m, const struct gpu_memory *other)
{
	if (m->foreign || m->place == other->place)
		return false;
	return other->foreign || is_allowed(m->device, other->device);
}

static uint64_t bytes_to_others;

uint64_t gpu_bytes_to_others(void)
{
	return __atomic_load_n(&bytes_to_others, __ATOMIC_RELAXED);
}

static bool copy_between(struct gpu_memory *target, void *to,
			 struct gpu_memory *source, const void *from,
			 size_t length, bool write)
{
	size_t at, start;

	if (!offset_in(target, to, length, &at) ||
	    !offset_in(source, from, length, &start))
		return false;
	wait_if_held();
	return store_copy_peer(target, at, source, start, length, write);
}

bool gpu_copy_any(enum gpu_vendor vendor, void *to, const void *from,
		  size_t length)
{
	struct gpu_memory *target = gpu_find(vendor, to);
	struct gpu_memory *source = gpu_find(vendor, from);
	bool write, good;

	if (!target || !source || !length)
		return gpu_copy(vendor, to, from, length);
	write = reaches(source, target);
	if (target->handle && source->handle &&
	    (write || reaches(target, source)))
		good = copy_between(target, to, source, from, length, write);
	else
		good = gpu_copy(vendor, to, from, length);
	if (good && target->foreign)
		__atomic_fetch_add(&bytes_to_others, length,
				   __ATOMIC_RELAXED);
	return good;
}
