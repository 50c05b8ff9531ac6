// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streams and events of the test run times: what is begun is done late, in
 * order, by the thread that waits for it. Called by cuda.c, cuda_stream.c,
 * hip.c and hip_stream.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

struct work {
	struct work *next;
	void *to;
	const void *from;
	size_t length;
	void *staged;				/* or NULL: from is read late */
	const struct gpu_kernel *kernel;	/* or a copy */
	unsigned int grid[3], block[3];
	void *packed;
	void (*function)(void *arg);		/* of the host, instead */
	void *arg;
};

struct gpu_stream {
	struct gpu_stream *next;
	enum gpu_vendor vendor;
	const void *owner;
	enum gpu_stream_kind kind;
	unsigned int users;
	struct work *first, **last;
	uint64_t begun, ended;
	bool faulted;
	pthread_mutex_t turn;		/* of who does its work */
};

/* Of the list and of what is in it; held for moments, never while working. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpu_stream *streams;

/* ---- doing it ---------------------------------------------------------- */

static bool perform(struct gpu_stream *s, struct work *w)
{
	if (w->function) {
		w->function(w->arg);
		return true;
	}
	if (w->kernel)
		return gpu_kernel_run(w->kernel, s->vendor, w->grid, w->block,
				      w->packed);
	return gpu_copy(s->vendor, w->to, w->staged ? w->staged : w->from,
			w->length);
}

/* With the stream's turn and the lock, which is given up meanwhile. */
static void do_first(struct gpu_stream *s)
{
	struct work *w = s->first;
	bool good;

	s->first = w->next;
	if (!s->first)
		s->last = &s->first;
	pthread_mutex_unlock(&lock);
	good = perform(s, w);
	free(w->staged);
	free(w);
	pthread_mutex_lock(&lock);
	s->faulted |= !good;
	s->ended++;
}

static bool do_until(struct gpu_stream *s, uint64_t at)
{
	bool good;

	/* What was begun in the legacy stream comes before a blocking one's. */
	if (s->kind == GPU_BLOCKING)
		gpu_legacy_wait(s->vendor, s->owner, GPU_LEGACY);
	pthread_mutex_lock(&s->turn);
	pthread_mutex_lock(&lock);
	while (s->ended < at)
		do_first(s);
	good = !s->faulted;
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&s->turn);
	return good;
}

/* ---- all of an owner ---------------------------------------------------- */

static void put_locked(struct gpu_stream *s)
{
	struct gpu_stream **link = &streams;

	if (--s->users)
		return;
	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	pthread_mutex_destroy(&s->turn);
	free(s);
}

static bool is_one_of(const struct gpu_stream *s, enum gpu_vendor vendor,
		      const void *owner, enum gpu_stream_kind most)
{
	return s->vendor == vendor && s->owner == owner && s->kind <= most;
}

/* One with work; a user of it more. NULL: none is left. */
static struct gpu_stream *busy_one(enum gpu_vendor vendor, const void *owner,
				   enum gpu_stream_kind most, uint64_t *at)
{
	struct gpu_stream *s;

	pthread_mutex_lock(&lock);
	for (s = streams; s; s = s->next)
		if (is_one_of(s, vendor, owner, most) && s->ended < s->begun)
			break;
	if (s) {
		s->users++;
		*at = s->begun;
	}
	pthread_mutex_unlock(&lock);
	return s;
}

bool gpu_legacy_wait(enum gpu_vendor vendor, const void *owner,
		     enum gpu_stream_kind most)
{
	struct gpu_stream *s;
	bool good = true;
	uint64_t at;

	while ((s = busy_one(vendor, owner, most, &at))) {
		good &= do_until(s, at);
		pthread_mutex_lock(&lock);
		put_locked(s);
		pthread_mutex_unlock(&lock);
	}
	return good;
}

/* ---- streams ------------------------------------------------------------ */

static void add(struct gpu_stream *s, struct work *w)
{
	pthread_mutex_lock(&lock);
	*s->last = w;
	s->last = &w->next;
	s->begun++;
	pthread_mutex_unlock(&lock);
}

struct gpu_stream *gpu_stream_new(enum gpu_vendor vendor, const void *owner,
				  enum gpu_stream_kind kind)
{
	struct gpu_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->vendor = vendor;
	s->owner = owner;
	s->kind = kind;
	s->users = 1;
	s->last = &s->first;
	pthread_mutex_init(&s->turn, NULL);
	pthread_mutex_lock(&lock);
	s->next = streams;
	streams = s;
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
	pthread_mutex_unlock(&lock);
	return s ? s : gpu_stream_new(vendor, owner, GPU_LEGACY);
}

void gpu_stream_free(struct gpu_stream *s)
{
	gpu_stream_wait(s);
	pthread_mutex_lock(&lock);
	put_locked(s);
	pthread_mutex_unlock(&lock);
}

unsigned int gpu_streams(enum gpu_vendor vendor, enum gpu_stream_kind kind)
{
	struct gpu_stream *s;
	unsigned int n = 0;

	pthread_mutex_lock(&lock);
	for (s = streams; s; s = s->next)
		n += s->vendor == vendor && s->kind == kind;
	pthread_mutex_unlock(&lock);
	return n;
}

bool gpu_stream_wait(struct gpu_stream *s)
{
	uint64_t at;

	pthread_mutex_lock(&lock);
	at = s->begun;
	pthread_mutex_unlock(&lock);
	return do_until(s, at);
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
	return true;
}
