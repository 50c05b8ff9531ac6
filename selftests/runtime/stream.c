// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streams of the test run times: what is begun is done late, in order, by the
 * thread that waits for it. Called by cuda.c, cuda_stream.c, hip.c and
 * hip_stream.c; events are in event.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu.h"

#define WAITING	1000u	/* that a stream takes before it has begun them */

struct work {
	struct work *next;
	uint64_t order;				/* among all work there is */
	void *to;
	const void *from;
	size_t length;
	void *staged;				/* or NULL: from is read late */
	const struct gpu_kernel *kernel;	/* or a copy */
	unsigned int grid[3], block[3];
	void *packed;
	void (*function)(void *arg);		/* of the host, instead */
	void *arg;
	uint64_t *word;				/* instead: to be written, or */
	bool until;				/* waited for */
	uint64_t value;
	struct gpu_mark *mark;			/* that has the word, or NULL */
};

struct gpu_stream {
	struct gpu_stream *next;
	enum gpu_vendor vendor;
	const void *owner;
	enum gpu_stream_kind kind;
	unsigned int users;
	struct work *first, **last;
	uint64_t begun, ended;
	uint64_t returned;		/* up to there, for gpu_stream_settle() */
	bool faulted;
	bool eager;			/* a thread does its work at once, */
	bool closed;			/* until then */
	pthread_cond_t changed;
	uint64_t working;		/* order of what is being done, or 0 */
};

/* Of the list and of what is in it; held for moments, never while working. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_stream *streams;
static uint64_t last_order;

/* Run times may call functions of the host one after the other: these do. */
static pthread_mutex_t calling[2] = {
	PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
};

/* ---- doing it ---------------------------------------------------------- */

static bool perform_word(struct work *w)
{
	const struct timespec pause = { .tv_nsec = 20000 };

	if (!w->until)
		__atomic_store_n(w->word, w->value, __ATOMIC_SEQ_CST);
	while (w->until &&
	       __atomic_load_n(w->word, __ATOMIC_SEQ_CST) < w->value)
		nanosleep(&pause, NULL);
	return true;
}

static bool perform(struct gpu_stream *s, struct work *w)
{
	if (w->mark && !w->until && s->faulted)
		w->value = MARK_FAULTED;
	if (w->word)
		return perform_word(w);
	if (w->function) {
		pthread_mutex_lock(&calling[s->vendor]);
		w->function(w->arg);
		pthread_mutex_unlock(&calling[s->vendor]);
		return true;
	}
	if (w->kernel)
		return gpu_kernel_run(w->kernel, s->vendor, w->grid, w->block,
				      w->packed);
	return gpu_copy_any(s->vendor, w->to,
			    w->staged ? w->staged : w->from, w->length);
}

static void put_locked(struct gpu_stream *s)
{
	struct gpu_stream **link = &streams;

	if (--s->users)
		return;
	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	pthread_cond_destroy(&s->changed);
	free(s);
}

static void wait_locked(struct gpu_stream *s)
{
	s->users++;
	pthread_cond_wait(&s->changed, &lock);
	put_locked(s);
}

/* With the lock, which is given up meanwhile. */
static void do_first(struct gpu_stream *s)
{
	struct work *w = s->first;
	bool good;

	s->first = w->next;
	if (!s->first)
		s->last = &s->first;
	s->working = w->order;
	s->users++;
	pthread_mutex_unlock(&lock);
	good = perform(s, w);
	if (w->mark)
		gpu_mark_put(w->mark);
	free(w->staged);
	free(w);
	pthread_mutex_lock(&lock);
	s->faulted |= !good;
	s->working = 0;
	s->ended++;
	pthread_cond_broadcast(&s->changed);
	put_locked(s);
}

/* Has it work that was begun before @order? */
static bool is_behind(const struct gpu_stream *s, uint64_t order)
{
	return (s->working && s->working < order) ||
	       (s->first && s->first->order < order);
}

/* The legacy stream waits for the blocking ones, and they for it. */
static bool is_between(const struct gpu_stream *a, const struct gpu_stream *b)
{
	return a->vendor == b->vendor && a->owner == b->owner &&
	       a->kind != b->kind && a->kind != GPU_NON_BLOCKING &&
	       b->kind != GPU_NON_BLOCKING;
}

/*
 * The stream whose work has to be done first for that of @s, perhaps itself.
 * Each step leads to work that was begun earlier, so that there is an end.
 */
static struct gpu_stream *first_for(struct gpu_stream *s)
{
	struct gpu_stream *other = s;

	while (other && !s->working) {
		for (other = streams; other; other = other->next)
			if (is_between(s, other) &&
			    is_behind(other, s->first->order))
				break;
		if (other)
			s = other;
	}
	return s;
}

/* With the lock. */
static bool do_until(struct gpu_stream *s, uint64_t at)
{
	struct gpu_stream *now;

	while (s->ended < at) {
		now = first_for(s);
		if (now->working)
			wait_locked(now);
		else
			do_first(now);
	}
	return !s->faulted;
}

/* ---- all of an owner ---------------------------------------------------- */

static bool is_one_of(const struct gpu_stream *s, enum gpu_vendor vendor,
		      const void *owner, enum gpu_stream_kind most)
{
	return s->vendor == vendor && s->owner == owner && s->kind <= most;
}

/* One with work that was begun up to @order. NULL: none is left. */
static struct gpu_stream *busy_one(enum gpu_vendor vendor, const void *owner,
				   enum gpu_stream_kind most, uint64_t order)
{
	struct gpu_stream *s = streams;

	while (s && !(is_one_of(s, vendor, owner, most) &&
		      is_behind(s, order + 1)))
		s = s->next;
	return s;
}

bool gpu_legacy_wait(enum gpu_vendor vendor, const void *owner,
		     enum gpu_stream_kind most)
{
	struct gpu_stream *s;
	uint64_t order;
	bool good = true;

	pthread_mutex_lock(&lock);
	order = last_order;
	while ((s = busy_one(vendor, owner, most, order))) {
		s->users++;
		good &= do_until(s, s->ended + 1);
		put_locked(s);
	}
	pthread_mutex_unlock(&lock);
	return good;
}

/* ---- streams ------------------------------------------------------------ */

/* Does the work of an eager stream until that is freed. */
static void *eager_main(void *arg)
{
	struct gpu_stream *s = arg;

	pthread_mutex_lock(&lock);
	while (!s->closed) {
		if (s->ended == s->begun)
			pthread_cond_wait(&s->changed, &lock);
		else
			do_until(s, s->begun);
	}
	put_locked(s);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void add(struct gpu_stream *s, struct work *w)
{
	pthread_mutex_lock(&lock);
	while (s->eager && s->begun - s->ended >= WAITING)
		wait_locked(s);
	w->order = ++last_order;
	*s->last = w;
	s->last = &w->next;
	s->begun++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&lock);
}

/* What others wait for has to happen without them. */
static void make_eager(struct gpu_stream *s)
{
	pthread_t thread;
	bool start;

	pthread_mutex_lock(&lock);
	start = !s->eager;
	s->eager = true;
	if (start && !pthread_create(&thread, NULL, eager_main, s)) {
		pthread_detach(thread);
		s->users++;
	}
	pthread_mutex_unlock(&lock);
}

static struct gpu_stream *new_locked(enum gpu_vendor vendor,
				     const void *owner,
				     enum gpu_stream_kind kind)
{
	struct gpu_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->vendor = vendor;
	s->owner = owner;
	s->kind = kind;
	s->users = 1;
	pthread_cond_init(&s->changed, NULL);
	s->last = &s->first;
	s->next = streams;
	streams = s;
	return s;
}

struct gpu_stream *gpu_stream_new(enum gpu_vendor vendor, const void *owner,
				  enum gpu_stream_kind kind)
{
	struct gpu_stream *s;

	pthread_mutex_lock(&lock);
	s = new_locked(vendor, owner, kind);
	pthread_mutex_unlock(&lock);
	return s;
}

struct gpu_stream *gpu_legacy(enum gpu_vendor vendor, const void *owner)
{
	struct gpu_stream *s;

	pthread_mutex_lock(&lock);
	for (s = streams; s; s = s->next)
		if (is_one_of(s, vendor, owner, GPU_LEGACY))
			break;
	if (!s)
		s = new_locked(vendor, owner, GPU_LEGACY);
	pthread_mutex_unlock(&lock);
	return s;
}

void gpu_stream_free(struct gpu_stream *s)
{
	gpu_stream_wait(s);
	pthread_mutex_lock(&lock);
	s->closed = true;
	pthread_cond_broadcast(&s->changed);
	put_locked(s);
	pthread_mutex_unlock(&lock);
}

unsigned int gpu_streams(enum gpu_vendor vendor, enum gpu_stream_kind kind)
{
	struct gpu_stream *s;
	unsigned int n = 0;

	pthread_mutex_lock(&lock);
	for (s = streams; s; s = s->next)
		n += s->vendor == vendor && s->kind == kind && !s->closed;
	pthread_mutex_unlock(&lock);
	return n;
}

bool gpu_stream_wait(struct gpu_stream *s)
{
	bool good;

	pthread_mutex_lock(&lock);
	good = do_until(s, s->begun);
	pthread_mutex_unlock(&lock);
	return good;
}

bool gpu_stream_copy(struct gpu_stream *s, void *to, const void *from,
		     size_t length)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	w->to = to;
	w->from = from;
	w->length = length;
	add(s, w);
	return true;
}

/* Nothing that was begun before is left, so that this ends soon. */
bool gpu_stream_copy_returned(struct gpu_stream *s, void *to, const void *from,
			      size_t length)
{
	if (!gpu_stream_copy_staged(s, to, from, length))
		return false;
	pthread_mutex_lock(&lock);
	s->returned = s->begun;
	pthread_mutex_unlock(&lock);
	return true;
}

void gpu_stream_settle(struct gpu_stream *s)
{
	pthread_mutex_lock(&lock);
	do_until(s, s->returned);
	pthread_mutex_unlock(&lock);
}

bool gpu_stream_copy_staged(struct gpu_stream *s, void *to, const void *from,
			    size_t length)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	w->to = to;
	w->staged = malloc(length + 1);
	w->length = length;
	if (!w->staged) {
		free(w);
		return false;
	}
	memcpy(w->staged, from, length);
	add(s, w);
	return true;
}

bool gpu_stream_launch(struct gpu_stream *s, const struct gpu_kernel *kernel,
		       const unsigned int grid[3],
		       const unsigned int block[3], void **parameters)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	w->kernel = kernel;
	w->packed = gpu_kernel_pack(kernel, parameters);
	memcpy(w->grid, grid, sizeof(w->grid));
	memcpy(w->block, block, sizeof(w->block));
	add(s, w);
	return true;
}

bool gpu_stream_call(struct gpu_stream *s, void (*function)(void *arg),
		     void *arg)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	w->function = function;
	w->arg = arg;
	add(s, w);
	make_eager(s);
	return true;
}

static bool add_word(struct gpu_stream *s, uint64_t *word, uint64_t value,
		     bool until, struct gpu_mark *mark)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	w->word = word;
	w->value = value;
	w->until = until;
	w->mark = mark;
	add(s, w);
	make_eager(s);
	return true;
}

bool gpu_stream_write(struct gpu_stream *s, uint64_t *word, uint64_t value)
{
	return add_word(s, word, value, false, NULL);
}

bool gpu_stream_hold(struct gpu_stream *s, uint64_t *word, uint64_t value)
{
	return add_word(s, word, value, true, NULL);
}

bool gpu_stream_mark(struct gpu_stream *s, struct gpu_mark *mark, bool until)
{
	return add_word(s, gpu_mark_word(mark), MARK_REACHED, until, mark);
}
