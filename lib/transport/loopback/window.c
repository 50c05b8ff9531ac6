// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Windows: ranges of a peer's segment mapped once more, with the rights asked
 * for, until its owner calls them back. Called through the transport's
 * operations, and by service.c and region.c.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "state.h"

static int refused(struct transport *t, const struct fabrex_remote *remote)
{
	return fxi_error(EACCES, "loopback:%s: window to peer %u: the peer refuses key, rights or range; ask its owner for a current key",
			 t->fabric, remote->peer);
}

/* A copy of the owner's entry, made while its key was right. */
static bool entry_copy(struct loop_peer *p, uint64_t key,
		       struct segment_mr *mr)
{
	const struct segment_mr *entry = &p->segment->mrs[key & 0xffff];

	if (!key || (key & 0xffff) >= SEGMENT_MRS ||
	    __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) != key)
		return false;
	memcpy(mr, entry, sizeof(*mr));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&entry->key, __ATOMIC_RELAXED) == key;
}

static bool allowed(struct transport *t, const struct segment_mr *mr,
		    uint64_t offset, uint64_t length, uint32_t access)
{
	return (mr->access & access) == access &&
	       mr->peers[t->number / 64] >> t->number % 64 & 1 &&
	       offset <= mr->length && length <= mr->length - offset;
}

/* Inside the segment, as this process has it mapped. */
static bool in_segment(const struct loop_peer *p, const struct segment_mr *mr)
{
	return mr->place >= sizeof(struct segment) && mr->place <= p->size &&
	       mr->length <= p->size - mr->place;
}

static int check(struct transport *t, const struct fabrex_remote *remote,
		 uint64_t offset, uint64_t length, uint32_t access,
		 struct segment_mr *mr)
{
	struct loop_peer *p = &t->peers[remote->peer % SEGMENT_PEERS];

	if (remote->peer >= SEGMENT_PEERS || !p->up ||
	    (remote->generation && remote->generation != p->generation))
		return fxi_error(EHOSTUNREACH, "loopback:%s: window to peer %u: the peer is down, or its number has been reused; connect to it again",
				 t->fabric, remote->peer);
	if (!entry_copy(p, remote->rkey, mr) ||
	    !allowed(t, mr, offset, length, access))
		return refused(t, remote);
	if (mr->kind == SEGMENT_MR_FD)
		return 0;
	if (mr->kind != SEGMENT_MR_HEAP)
		return fxi_error(EOPNOTSUPP, "loopback:%s: window to peer %u: the region is not shareable memory; its owner has to allocate it with fabrex_mr_alloc()",
				 t->fabric, remote->peer);
	return in_segment(p, mr) ? 0 : refused(t, remote);
}

/* ---- mapping ----------------------------------------------------------- */

static int protection(uint32_t access)
{
	return (access & FABREX_MR_REMOTE_READ ? PROT_READ : 0) |
	       (access & FABREX_MR_REMOTE_WRITE ? PROT_WRITE : 0);
}

/* A second mapping of the same pages: old size 0. */
static void *map_again(const struct loop_peer *p, uint64_t offset,
		       size_t length, uint32_t access)
{
	void *m = mremap((char *)p->segment + offset, 0, length,
			 MREMAP_MAYMOVE);

	if (m == MAP_FAILED)
		return NULL;
	if (!mprotect(m, length, protection(access)))
		return m;
	munmap(m, length);
	return NULL;
}

static void *map_file(const struct loop_file *f, uint64_t offset,
		      size_t length, uint32_t access)
{
	void *m = mmap(NULL, length, protection(access), MAP_SHARED, f->fd,
		       (off_t)offset);

	if (m == MAP_FAILED)
		return NULL;
	madvise(m, length, MADV_DONTFORK);
	return m;
}

static struct loop_window *take_window(struct loop_state *s)
{
	uint32_t i;

	for (i = 0; i < LOOP_WINDOWS; i++)
		if (!s->windows[i].id)
			return &s->windows[i];
	return NULL;
}

static int no_room(struct transport *t, const struct fabrex_remote *remote)
{
	return fxi_error(ENOSPC, "loopback:%s: window to peer %u: no room for another mapping; unmap some windows or map less",
			 t->fabric, remote->peer);
}

/* Does this process have another window with that key? */
static bool has_other(const struct loop_state *s, uint32_t number,
		      uint64_t key)
{
	const struct loop_file *f;
	uint32_t i;

	for (i = 0; i < LOOP_WINDOWS; i++)
		if (s->windows[i].id && !s->windows[i].revoked &&
		    s->windows[i].number == number && s->windows[i].key == key)
			return true;
	for (f = s->files; f; f = f->next)
		if (f->number == number && f->key == key)
			return true;
	return false;
}

static uint64_t *mark_of(struct transport *t, uint32_t number, uint64_t key)
{
	return &t->peers[number].segment->mrs[key & 0xffff].windows[
		t->number / 64];
}

/*
 * The owner clears the key and then reads who has windows; this is the opposite
 * order. False: the key is cleared.
 */
bool fxi_loop_window_mark(struct transport *t, uint32_t number, uint64_t key)
{
	struct segment_mr *mr = &t->peers[number].segment->mrs[key & 0xffff];

	__atomic_fetch_or(mark_of(t, number, key), 1ull << t->number % 64,
			  __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&mr->key, __ATOMIC_SEQ_CST) == key;
}

static void unmark(struct transport *t, uint32_t number, uint64_t key)
{
	struct loop_peer *p = &t->peers[number];

	if (t->state->slots[number].state == SLOT_KNOWN &&
	    p->segment->mrs[key & 0xffff].key == key &&
	    !has_other(t->state, number, key))
		__atomic_fetch_and(mark_of(t, number, key),
				   ~(1ull << t->number % 64),
				   __ATOMIC_SEQ_CST);
}

/* What is to be mapped: part of a file, or of the peer's segment. */
struct view {
	const struct loop_file *file; /* or NULL */
	uint64_t place;
	uint64_t length;
	uint32_t access;
};

/* Lock held. */
static int map(struct transport *t, const struct fabrex_remote *remote,
	       const struct view *v, struct loop_window *w)
{
	uint64_t start = v->place & ~(uint64_t)(LOOP_PAGE - 1);
	uint64_t end = (v->place + v->length + LOOP_PAGE - 1) &
		       ~(uint64_t)(LOOP_PAGE - 1);

	w->length = (size_t)(end - start);
	w->base = v->file ?
		  map_file(v->file, start, w->length, v->access) :
		  map_again(&t->peers[remote->peer], start, w->length,
			    v->access);
	if (!w->base)
		return no_room(t, remote);
	if (fxi_loop_window_mark(t, remote->peer, remote->rkey))
		return 0;
	munmap(w->base, w->length);
	return refused(t, remote);
}

/* Lock held. */
static int enter(struct transport *t, const struct fabrex_remote *remote,
		 const struct view *v, struct transport_window *out)
{
	struct loop_window *w = take_window(t->state);
	int ret;

	if (!w)
		return no_room(t, remote);
	ret = map(t, remote, v, w);
	if (ret)
		return ret;
	w->number = remote->peer;
	w->key = remote->rkey;
	w->revoked = false;
	w->id = loop_id(LOOP_WINDOW, ++t->state->serial,
			(uint32_t)(w - t->state->windows));
	out->id = w->id;
	out->addr = (char *)w->base + v->place % LOOP_PAGE;
	out->length = v->length;
	return 0;
}

/* Lock held. NULL: it was not handed out yet, or cannot be mapped. */
static const struct loop_file *file_of(struct transport *t,
				       const struct fabrex_remote *remote)
{
	const struct loop_file *f;

	if (remote->peer == t->number)
		f = t->state->regions[remote->rkey & (SEGMENT_MRS - 1)].file;
	else
		f = fxi_loop_file_find(t, remote->peer, remote->rkey);
	return f && f->base ? f : NULL;
}

/* -EAGAIN: the file is not here yet. */
static int create(struct transport *t, const struct fabrex_remote *remote,
		  uint64_t offset, struct view *v,
		  struct transport_window *out)
{
	struct segment_mr mr;
	int ret;

	pthread_mutex_lock(&t->lock);
	ret = check(t, remote, offset, v->length, v->access, &mr);
	if (!ret && mr.kind == SEGMENT_MR_FD) {
		v->file = file_of(t, remote);
		ret = v->file ? 0 : -EAGAIN;
	}
	/* What the owner does meanwhile is noticed when it is marked. */
	if (!ret) {
		v->place = offset + (v->file ? v->file->offset : mr.place);
		ret = enter(t, remote, v, out);
	}
	pthread_mutex_unlock(&t->lock);
	return ret;
}

static int not_mappable(struct transport *t,
			const struct fabrex_remote *remote)
{
	return fxi_error(EOPNOTSUPP, "loopback:%s: window to peer %u: the file may shrink, which would cause a signal here; its owner has to seal it with F_SEAL_SHRINK, or use fabrex_mr_alloc()",
			 t->fabric, remote->peer);
}

int fxi_loop_window_create(struct transport *t,
			   const struct fabrex_remote *remote, uint64_t offset,
			   uint64_t length, uint32_t access,
			   struct transport_window *out)
{
	struct view v = { .length = length, .access = access };
	int ret = create(t, remote, offset, &v, out);
	struct loop_file *f;

	if (ret != -EAGAIN)
		return ret;
	if (remote->peer == t->number)
		return not_mappable(t, remote);
	ret = fxi_loop_file_get(t, remote->peer, remote->rkey, &f);
	if (ret)
		return fxi_error(-ret, "loopback:%s: window to peer %u: its owner did not pass the file: %s",
				 t->fabric, remote->peer, fxi_errno_str(-ret));
	ret = create(t, remote, offset, &v, out);
	return ret == -EAGAIN ? not_mappable(t, remote) : ret;
}

/* ---- end --------------------------------------------------------------- */

/* The mapping ends with the id, before another window can get its place. */
int fxi_loop_window_destroy(struct transport *t, uint64_t id)
{
	struct loop_window *w = &t->state->windows[loop_id_index(id) %
						   LOOP_WINDOWS];
	bool found;

	pthread_mutex_lock(&t->lock);
	found = w->id == id;
	if (found) {
		munmap(w->base, w->length);
		w->id = 0;
		if (!w->revoked)
			unmark(t, w->number, w->key);
	}
	pthread_mutex_unlock(&t->lock);
	if (found)
		return 0;
	return fxi_error(ENOENT, "loopback:%s: object %llu does not exist",
			 t->fabric, (unsigned long long)id);
}

/* Nothing is left to do, and the child of a fork never had the mapping. */
void fxi_loop_window_unmap(struct transport *t,
			   struct transport_window *window)
{
	(void)t;
	(void)window;
}

/* Anonymous pages, in one step: loads and stores continue. */
static void blank(struct transport *t, struct loop_window *w)
{
	void *p = mmap(w->base, w->length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
		       MAP_NORESERVE, -1, 0);

	/* Without memory: better a SIGSEGV than another's memory. */
	if (p == MAP_FAILED)
		mprotect(w->base, w->length, PROT_NONE);
	w->revoked = true;
	fxi_loop_event(t, FABREX_EV_WINDOW_FAULT, w->number, w->id);
}

void fxi_loop_windows_revoke(struct transport *t, uint32_t number,
			     uint64_t key)
{
	struct loop_window *w = t->state->windows;
	uint32_t i;

	for (i = 0; i < LOOP_WINDOWS; i++, w++)
		if (w->id && !w->revoked && w->number == number &&
		    w->key == key)
			blank(t, w);
}

void fxi_loop_windows_orphan(struct transport *t, uint32_t number)
{
	struct loop_window *w = t->state->windows;
	uint32_t i;

	for (i = 0; i < LOOP_WINDOWS; i++, w++)
		if (w->id && !w->revoked && w->number == number)
			blank(t, w);
	fxi_loop_outbox_clear(t, number);
	fxi_loop_mr_given(t, number, 0);
}
