// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Regions of a loopback port: entries of the segment's table, memory of the
 * heap, and their end. Called through the transport's operations.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "memory/memory.h"
#include "state.h"

#define WRITTEN	(FABREX_MR_LOCAL_WRITE | FABREX_MR_REMOTE_WRITE | \
		 FABREX_MR_REMOTE_ATOMIC)
#define REMOTE	(FABREX_MR_REMOTE_READ | FABREX_MR_REMOTE_WRITE | \
		 FABREX_MR_REMOTE_ATOMIC)

/* ---- entries ----------------------------------------------------------- */

static int random_key(struct transport *t, uint32_t index, uint64_t *key)
{
	do {
		if (getrandom(key, sizeof(*key), 0) != sizeof(*key))
			return fxi_error(EIO, "loopback:%s: no random numbers from the kernel",
					 t->fabric);
		*key = *key << 16 | index;
	} while (!(*key >> 16));
	return 0;
}

/* Lock held. Freed ones first, then the next that was never used. */
static int take_index(struct transport *t, uint32_t *index)
{
	struct loop_state *s = t->state;
	uint32_t used = s->nmrs;
	int ret;

	if (s->free_region) {
		*index = s->free_region - 1;
		s->free_region = s->regions[*index].next_free;
		return 0;
	}
	if (used == SEGMENT_MRS)
		return fxi_error(ENOSPC, "loopback:%s: memory region: the port has none left of %u; deregister some",
				 t->fabric, SEGMENT_MRS);
	ret = fxi_loop_heap_back(t, &t->segment->mrs[used],
				 sizeof(struct segment_mr));
	if (ret)
		return ret;
	*index = used;
	s->nmrs = used + 1;
	__atomic_store_n(&t->segment->mrs_used, used + 1, __ATOMIC_RELEASE);
	return 0;
}

static void give_index(struct loop_state *s, uint32_t index)
{
	struct loop_region *r = &s->regions[index];

	memset(r, 0, sizeof(*r));
	r->next_free = s->free_region;
	s->free_region = index + 1;
}

/* What a peer may do with it, and where it is. */
struct reach {
	uint32_t kind;
	uint64_t place;
	void *local;
	bool allocated;
	uint32_t memory;	/* DEVICE: enum fabrex_memory_kind */
	struct loop_file *file;	/* FD */
};

static void fill_peers(struct segment_mr *mr, const struct transport_mr *p)
{
	size_t i;

	memset(mr->peers, p->peers ? 0 : 0xff, sizeof(mr->peers));
	memset(mr->windows, 0, sizeof(mr->windows));
	for (i = 0; i < p->npeers; i++)
		mr->peers[p->peers[i] / 64 % (SEGMENT_PEERS / 64)] |=
			1ull << p->peers[i] % 64;
}

/* Lock held. */
static void publish(struct transport *t, uint32_t index,
		    const struct transport_mr *p, const struct reach *reach,
		    uint64_t key)
{
	struct loop_region *r = &t->state->regions[index];
	struct segment_mr *mr = &t->segment->mrs[index];

	mr->length = p->length;
	mr->place = reach->place;
	mr->access = p->access;
	mr->kind = reach->kind;
	fill_peers(mr, p);
	t->locals[index] = reach->local;
	*r = (struct loop_region){
		.id = loop_id(LOOP_MR, ++t->state->serial, index),
		.allocated = reach->allocated, .watched = p->watched,
		.watch = p->watch, .key = key, .kind = reach->kind,
		.place = reach->place, .length = p->length,
		.memory = reach->memory, .addr = p->addr, .file = reach->file,
		.access = p->access, .born = ++t->state->born,
	};
	if (p->access & REMOTE)
		memcpy(&r->peers, mr->peers, sizeof(r->peers));
	__atomic_store_n(&mr->key, key, __ATOMIC_RELEASE);
}

bool fxi_loop_region_entry(const struct transport *t, uint64_t key,
			   struct segment_mr *mr)
{
	const struct loop_region *r = &t->state->regions[key &
							 (SEGMENT_MRS - 1)];

	if (!key || r->key != key)
		return false;
	mr->key = key;
	mr->length = r->length;
	mr->place = r->place;
	mr->access = r->access;
	mr->kind = r->kind;
	memcpy(mr->peers, &r->peers, sizeof(mr->peers));
	return true;
}

/* ---- registration ------------------------------------------------------ */

static bool in_segment(struct transport *t, const void *addr)
{
	return (const char *)addr >= (const char *)t->segment &&
	       (const char *)addr < (const char *)t->segment + t->size;
}

static bool covers(const struct loop_region *r, uint64_t place,
		   uint64_t length)
{
	return r->id && r->allocated && !r->ending && place >= r->place &&
	       place - r->place < r->length &&
	       length <= r->length - (place - r->place);
}

/* Lock held: an allocation that covers the range; NULL: there is none. */
static struct loop_region *find_allocated(struct transport *t, uint64_t place,
					  uint64_t length)
{
	struct loop_state *s = t->state;
	struct loop_region *r = &s->regions[s->found];
	uint32_t i;

	if (covers(r, place, length))
		return r;
	for (i = 0, r = s->regions; i < s->nmrs; i++, r++) {
		if (!covers(r, place, length))
			continue;
		s->found = i;
		return r;
	}
	return NULL;
}

static uint64_t place_of(struct transport *t, const void *addr)
{
	return (uint64_t)((const char *)addr - (const char *)t->segment);
}

uint64_t fxi_loop_mr_find(struct transport *t, const void *addr,
			  uint64_t length)
{
	struct loop_region *r;
	uint64_t id;

	if (!in_segment(t, addr))
		return 0;
	pthread_mutex_lock(&t->lock);
	r = find_allocated(t, place_of(t, addr), length);
	id = r ? r->id : 0;
	pthread_mutex_unlock(&t->lock);
	return id;
}

static int not_mapped(struct transport *t, const struct transport_mr *p)
{
	return fxi_error(EFAULT, "loopback:%s: region of %llu bytes at %p: not mapped, already freed, or must not be %s; request only rights that the memory has",
			 t->fabric, (unsigned long long)p->length, p->addr,
			 p->access & WRITTEN ? "written" : "read");
}

/*
 * The allocation that a part belongs to is looked up under the same lock: it
 * may end at any moment before.
 */
static int enter(struct transport *t, const struct transport_mr *p,
		 const struct reach *reach, uint64_t *key, uint64_t *id)
{
	uint32_t index = 0;
	int ret;

	pthread_mutex_lock(&t->lock);
	if (reach->kind == SEGMENT_MR_HEAP && !reach->allocated &&
	    !find_allocated(t, reach->place, p->length))
		ret = not_mapped(t, p);
	else
		ret = take_index(t, &index);
	if (!ret) {
		ret = random_key(t, index, key);
		if (ret)
			give_index(t->state, index);
	}
	if (!ret) {
		publish(t, index, p, reach, *key);
		*id = t->state->regions[index].id;
	}
	pthread_mutex_unlock(&t->lock);
	return ret;
}

/* ---- files and devices ------------------------------------------------- */

static int file_error(struct transport *t, const struct transport_mr *p,
		      int err)
{
	if (err == EINVAL)
		return fxi_error(err, "loopback:%s: region of %llu bytes at %llu of a file: the file is shorter, or has no length",
				 t->fabric, (unsigned long long)p->length,
				 (unsigned long long)p->offset);
	return fxi_error(err, "loopback:%s: region of %llu bytes of a file: cannot be mapped: %s; was it exported for the CPU, for reading and writing?",
			 t->fabric, (unsigned long long)p->length,
			 fxi_errno_str(err));
}

/* The caller may close its descriptor: a duplicate is kept. */
static int file_open(struct transport *t, const struct transport_mr *p,
		     struct loop_file **out)
{
	struct loop_file *f = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return fxi_error(ENOMEM, "loopback:%s: memory region: out of memory",
				 t->fabric);
	f->offset = p->offset;
	f->length = p->length;
	f->fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
	ret = f->fd < 0 ? -errno :
	      fxi_loop_file_map(f, p->access & ~FABREX_MR_REMOTE_READ);
	if (!ret) {
		*out = f;
		return 0;
	}
	ret = file_error(t, p, -ret);
	fxi_loop_file_end(f, true);
	return ret;
}

/* A dma-buf gets no address: accesses have to be announced to its exporter. */
static int register_file(struct transport *t, const struct transport_mr *p,
			 uint64_t *key, uint64_t *id)
{
	struct reach reach = { .kind = SEGMENT_MR_FD, .place = p->offset };
	int ret = file_open(t, p, &reach.file);

	if (ret)
		return ret;
	if (!reach.file->sync)
		reach.local = reach.file->base;
	ret = reach.local ? 0 : fxi_loop_copier_start(t);
	if (!ret)
		ret = enter(t, p, &reach, key, id);
	if (ret)
		fxi_loop_file_end(reach.file, true);
	return ret;
}

static int not_inside(struct transport *t, const struct transport_mr *p)
{
	return fxi_error(EINVAL, "loopback:%s: region of %llu bytes at %p of a device: the range is not inside one allocation; register each by itself",
			 t->fabric, (unsigned long long)p->length, p->addr);
}

/* If the allocation is unknown, both ends must be memory of the device. */
static bool is_inside(const struct transport_mr *p)
{
	const struct fabrex_memory *device = p->device;
	uint64_t offset = (uint64_t)((char *)p->addr - (char *)device->base);
	const char *last = (char *)p->addr + p->length - 1;
	struct fabrex_memory end;

	if (device->length)
		return offset <= device->length &&
		       p->length <= device->length - offset;
	return !fxi_memory_find(last, FABREX_MEMORY_AUTO, &end) &&
	       end.kind == device->kind && end.device == device->device;
}

/* Copied by its runtime, or else mapped through its dma-buf. */
static int register_device(struct transport *t, const struct transport_mr *p,
			   uint64_t *key, uint64_t *id)
{
	struct reach reach = {
		.kind = SEGMENT_MR_DEVICE, .memory = p->device->kind,
	};
	struct transport_mr file = *p;
	int ret;

	if (!is_inside(p))
		return not_inside(t, p);
	if (fxi_memory_copies(p->device->kind)) {
		fxi_memory_registered(p->device->kind, p->addr);
		ret = fxi_loop_copier_start(t);
		return ret ? ret : enter(t, p, &reach, key, id);
	}
	ret = fxi_memory_export(p->device, p->addr, p->length, &file.fd,
				&file.offset);
	if (ret)
		return ret;
	ret = register_file(t, &file, key, id);
	close(file.fd);
	return ret;
}

static int register_process(struct transport *t, const struct transport_mr *p,
			    uint64_t *key, uint64_t *id)
{
	struct reach reach = {
		.kind = SEGMENT_MR_PROCESS, .place = (uintptr_t)p->addr,
		.local = p->addr,
	};

	if (in_segment(t, p->addr)) {
		reach.kind = SEGMENT_MR_HEAP;
		reach.place = place_of(t, p->addr);
	} else if (!fxi_loop_mapped(p->addr, p->length, p->access & WRITTEN)) {
		return not_mapped(t, p);
	}
	return enter(t, p, &reach, key, id);
}

int fxi_loop_mr_register(struct transport *t, const struct transport_mr *p,
			 uint64_t *key, uint64_t *id)
{
	if (p->dmabuf)
		return register_file(t, p, key, id);
	if (p->device)
		return register_device(t, p, key, id);
	return register_process(t, p, key, id);
}

int fxi_loop_mr_alloc(struct transport *t, struct transport_mr *p,
		      uint64_t *key, uint64_t *id)
{
	struct reach reach = { .kind = SEGMENT_MR_HEAP, .allocated = true };
	int ret;

	ret = fxi_loop_heap_alloc(t, p->length, &reach.place);
	if (ret)
		return ret;
	p->addr = reach.local = (char *)t->segment + reach.place;
	ret = enter(t, p, &reach, key, id);
	if (ret)
		fxi_loop_heap_free(t, reach.place, p->length);
	return ret;
}

/*
 * Memory is not pinned: an access reaches whatever the process has mapped
 * there. So only ranges of the heap can go stale, which unhook() counts, and what
 * has become a device's, for which the cache looks.
 */
int fxi_loop_watch(struct transport *t, uint32_t entries,
		   const uint32_t **counters)
{
	struct loop_state *s = t->state;
	uint32_t *watch = calloc(entries, sizeof(*watch));

	if (!watch)
		return fxi_error(ENOMEM, "loopback:%s: counters of regions: out of memory",
				 t->fabric);
	pthread_mutex_lock(&t->lock);
	s->watch = watch;
	s->nwatch = entries;
	pthread_mutex_unlock(&t->lock);
	*counters = watch;
	return 0;
}

/* ---- end --------------------------------------------------------------- */

/* Lock held: it is not found any more. Its windows are called back later. */
static void unhook(struct transport *t, uint32_t index)
{
	struct loop_region *r = &t->state->regions[index];
	struct segment_mr *mr = &t->segment->mrs[index];

	__atomic_store_n(&mr->key, 0, __ATOMIC_SEQ_CST);
	if (r->watched && r->watch < t->state->nwatch)
		__atomic_add_fetch(&t->state->watch[r->watch], 1,
				   __ATOMIC_RELEASE);
}

static bool inside(const struct loop_region *r, const struct loop_region *all)
{
	return r->id && r != all && r->kind == SEGMENT_MR_HEAP &&
	       r->place >= all->place && r->place - all->place < all->length;
}

/*
 * Lock held: regions that were registered inside an allocation that ends. Until
 * it has ended, the records of their windows stay.
 */
static void unhook_inside(struct transport *t, const struct loop_region *all)
{
	struct loop_state *s = t->state;
	uint32_t i;

	for (i = 0; i < t->state->nmrs; i++) {
		if (!inside(&s->regions[i], all))
			continue;
		s->regions[i].orphan = true;
		s->regions[i].held = true;
		if (!t->segment->mrs[i].key)
			continue;
		unhook(t, i);
		fxi_loop_event(t, FABREX_EV_MR_REVOKED, t->number,
			       s->regions[i].id);
	}
}

/* Lock held: tell all peers that have windows to give them back. */
static void call_back(struct transport *t, uint32_t index)
{
	struct loop_region *r = &t->state->regions[index];
	uint64_t *windows = t->segment->mrs[index].windows;
	uint32_t i;

	memset(&r->revoking, 0, sizeof(r->revoking));
	for (i = 0; i < SEGMENT_PEERS; i++) {
		if (!(__atomic_load_n(&windows[i / 64], __ATOMIC_SEQ_CST) >>
		      i % 64 & 1) || t->state->slots[i].state != SLOT_KNOWN)
			continue;
		if (i == t->number) {
			fxi_loop_windows_revoke(t, i, r->key);
			continue;
		}
		r->revoking.bits[i / 64] |= 1ull << i % 64;
		fxi_loop_tell(t, i, LOOP_REVOKE, r->key);
	}
}

void fxi_loop_mr_given(struct transport *t, uint32_t number, uint64_t key)
{
	struct loop_region *r;
	uint32_t i;

	for (i = 0; i < t->state->nmrs; i++) {
		r = &t->state->regions[i];
		if (r->id && (!key || r->key == key))
			r->revoking.bits[number / 64] &= ~(1ull << number % 64);
	}
	t->state->mute.bits[number / 64] &= ~(1ull << number % 64);
	fxi_loop_quarantine_given(t, number, key);
	pthread_cond_broadcast(&t->state->changed);
}

static struct timespec deadline_in(uint32_t ms)
{
	uint64_t end = fxi_now_ns() + ms * 1000000ull;

	return (struct timespec){
		.tv_sec = (time_t)(end / 1000000000u),
		.tv_nsec = (long)(end % 1000000000u),
	};
}

static uint32_t first_of(const struct loop_set *set)
{
	uint32_t i;

	for (i = 0; i < SEGMENT_PEERS; i++)
		if (loop_set_has(set, i))
			break;
	return i;
}

/* A peer that did not answer before is not waited for again. */
static bool worth_waiting(const struct transport *t,
			  const struct loop_region *r)
{
	uint32_t i;

	for (i = 0; i < SEGMENT_PEERS / 64; i++)
		if (r->revoking.bits[i] & ~t->state->mute.bits[i])
			return true;
	return false;
}

/* Lock held, and dropped meanwhile. */
static bool wait_given(struct transport *t, const struct loop_region *r,
		       const struct timespec *ts, uint32_t *who)
{
	int ret = 0, old;
	uint32_t i;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	while (worth_waiting(t, r) && !ret)
		ret = pthread_cond_timedwait(&t->state->changed, &t->lock, ts);
	pthread_setcancelstate(old, NULL);
	if (loop_set_empty(&r->revoking))
		return true;
	*who = first_of(&r->revoking);
	for (i = 0; i < SEGMENT_PEERS / 64; i++)
		t->state->mute.bits[i] |= r->revoking.bits[i];
	return false;
}

/* The region itself or, if it is an allocation, one that is inside. */
static bool part_of(const struct loop_region *part,
		    const struct loop_region *r)
{
	return part == r || (r->allocated && inside(part, r));
}

/*
 * Call back all its windows. False: some are left. Those of an orphan are
 * called back by the thread that ends its allocation.
 */
static bool revoke_windows(struct transport *t, struct loop_region *r,
			   uint32_t *who)
{
	struct timespec ts = deadline_in(t->state->settings.quiesce_ms);
	struct loop_region *regions = t->state->regions;
	bool done = true;
	uint32_t i;

	pthread_mutex_lock(&t->lock);
	for (i = 0; !r->orphan && i < t->state->nmrs; i++)
		if (part_of(&regions[i], r))
			call_back(t, i);
	for (i = 0; !r->orphan && i < t->state->nmrs; i++)
		if (part_of(&regions[i], r))
			done &= wait_given(t, &regions[i], &ts, who);
	pthread_mutex_unlock(&t->lock);
	return done;
}

static int not_ordered(struct transport *t, struct loop_region *r)
{
	pthread_mutex_lock(&t->lock);
	r->ending = false;
	pthread_mutex_unlock(&t->lock);
	return fxi_error(ETIMEDOUT, "loopback:%s: region of %llu bytes: the system refuses membarrier(2), so whether a peer uses the region cannot be determined; allow it in the process's system call filter, then deregister again",
			 t->fabric, (unsigned long long)r->length);
}

static int not_quiet(struct transport *t, struct loop_region *r, uint32_t who)
{
	char name[sizeof(t->peers[who].name)];
	uint64_t length = r->length;
	int pid;

	pthread_mutex_lock(&t->lock);
	r->ending = false;
	pid = t->peers[who].pid;
	memcpy(name, t->peers[who].name, sizeof(name));
	pthread_mutex_unlock(&t->lock);
	return fxi_error(ETIMEDOUT, "loopback:%s: region of %llu bytes: peer %u (\"%s\", process %d) has not ended its access in %u ms, or is stopped in it; continue or end it, then deregister again",
			 t->fabric, (unsigned long long)length, who, name,
			 pid, t->state->settings.quiesce_ms);
}

/* Lock held. */
static struct loop_region *find(struct transport *t, uint64_t id)
{
	uint32_t index = loop_id_index(id);

	if (loop_id_type(id) != LOOP_MR || index >= SEGMENT_MRS ||
	    t->state->regions[index].id != id ||
	    t->state->regions[index].ending)
		return NULL;
	return &t->state->regions[index];
}

/* Lock held: the peers that may access any of it. */
static void add_peers(struct transport *t, const struct loop_region *r,
		      struct loop_set *peers)
{
	const struct loop_region *part = t->state->regions;
	uint32_t i, k;

	*peers = r->peers;
	for (i = 0; r->allocated && i < t->state->nmrs; i++, part++)
		for (k = 0; part_of(part, r) && k < SEGMENT_PEERS / 64; k++)
			peers->bits[k] |= part->peers.bits[k];
}

static struct loop_region *withdraw(struct transport *t, uint64_t id,
				    struct loop_set *peers)
{
	struct loop_region *r;

	pthread_mutex_lock(&t->lock);
	r = find(t, id);
	if (r) {
		r->ending = true;
		unhook(t, loop_id_index(id));
		fxi_loop_copier_cancel(t, loop_id_index(id));
		add_peers(t, r, peers);
		if (r->allocated)
			unhook_inside(t, r);
	}
	pthread_mutex_unlock(&t->lock);
	return r;
}

void fxi_loop_mr_index_free(struct transport *t, uint32_t index)
{
	t->locals[index] = NULL;
	give_index(t->state, index);
}

/* Lock held: quarantine what cannot be used again yet. */
static void keep(struct transport *t, struct loop_region *r, bool busy,
		 const struct loop_lookers *lookers)
{
	uint32_t i, index = (uint32_t)(r - t->state->regions);
	struct loop_region *part = t->state->regions;
	struct loop_quarantine q = {
		.lookers = *lookers, .region = index + 1,
	};

	for (i = 0; r->allocated && i < t->state->nmrs; i++, part++)
		if (part_of(part, r) && !loop_set_empty(&part->revoking))
			fxi_loop_quarantine_owes(&q, part->key,
						 &part->revoking);
	if (r->allocated && busy) {
		q.offset = r->place;
		q.length = r->length;
	}
	memset(r, 0, sizeof(*r));
	fxi_loop_quarantine(t, &q);
}

/* Lock held, and dropped meanwhile: until no thread uses the part. */
static void await_release(struct transport *t, const struct loop_region *part)
{
	while (part->held)
		pthread_cond_wait(&t->state->changed, &t->lock);
}

/* Lock held. */
static void release_parts(struct transport *t, const struct loop_region *all)
{
	uint32_t i;

	for (i = 0; i < t->state->nmrs; i++)
		if (inside(&t->state->regions[i], all))
			t->state->regions[i].held = false;
	pthread_cond_broadcast(&t->state->changed);
}

/* Its memory is freed, at once or later. */
static void release(struct transport *t, struct loop_region *r, bool busy,
		    const struct loop_lookers *lookers)
{
	struct loop_region was = *r;

	pthread_mutex_lock(&t->lock);
	await_release(t, r);
	if (busy || lookers->n)
		keep(t, r, busy, lookers);
	else
		fxi_loop_mr_index_free(t, (uint32_t)(r - t->state->regions));
	if (was.allocated)
		release_parts(t, &was);
	pthread_mutex_unlock(&t->lock);
	if (was.file)
		fxi_loop_file_end(was.file, true);
	if (!busy && was.allocated)
		fxi_loop_heap_free(t, was.place, was.length);
}

static bool is_orphan(struct transport *t, const struct loop_region *r)
{
	bool orphan;

	pthread_mutex_lock(&t->lock);
	orphan = r->orphan;
	pthread_mutex_unlock(&t->lock);
	return orphan;
}

/* By this port's copier. A device may take long, or not answer at all. */
static bool copies_end(struct transport *t, const struct loop_region *r)
{
	struct timespec ts = deadline_in(t->state->settings.quiesce_ms);
	bool over;

	pthread_mutex_lock(&t->lock);
	over = fxi_loop_copier_await(t, (uint32_t)(r - t->state->regions),
				     &ts);
	pthread_mutex_unlock(&t->lock);
	return over;
}

static int not_copied(struct transport *t, struct loop_region *r)
{
	uint64_t length = r->length;

	pthread_mutex_lock(&t->lock);
	r->ending = false;
	pthread_mutex_unlock(&t->lock);
	return fxi_error(ETIMEDOUT, "loopback:%s: region of %llu bytes: a copy of it for a peer has not completed in %u ms, because the device or file is slow or hangs; deregister again",
			 t->fabric, (unsigned long long)length,
			 t->state->settings.quiesce_ms);
}

/*
 * Heap memory that may still be accessed is quarantined. Memory of the
 * application is reused by the application, so it has to be told with an error;
 * likewise while the allocation exists that the region is a part of.
 */
int fxi_loop_mr_destroy(struct transport *t, uint64_t id)
{
	struct loop_set peers;
	struct loop_region *r = withdraw(t, id, &peers);
	struct loop_lookers lookers;
	uint32_t who = 0;
	bool busy;

	if (!r)
		return fxi_error(ENOENT, "loopback:%s: object %llu does not exist",
				 t->fabric, (unsigned long long)id);
	busy = fxi_loop_quiesce(t, &peers, r->born, &lookers, &who);
	if (!revoke_windows(t, r, &who))
		busy = true;
	if (busy && !r->allocated && !is_orphan(t, r)) {
		free(lookers.list);
		return who < SEGMENT_PEERS ? not_quiet(t, r, who) :
					     not_ordered(t, r);
	}
	if (!copies_end(t, r)) {
		free(lookers.list);
		return not_copied(t, r);
	}
	release(t, r, busy, &lookers);
	fxi_loop_quarantine_sweep(t);
	return 0;
}
