// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streams and events of the test run times: what is begun is done late, in
 * order. Called by cuda_stream.c and hip_stream.c.
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
	const struct gpu_kernel *kernel;	/* or a copy */
	unsigned int grid[3], block[3];
	void *packed;
};

struct gpu_stream {
	enum gpu_vendor vendor;
	struct work *first, **last;
	uint64_t begun, ended;
	bool faulted;
};

struct gpu_event {
	struct gpu_stream *stream;	/* NULL: not recorded */
	uint64_t at;
	bool asked;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void do_first(struct gpu_stream *s)
{
	struct work *w = s->first;
	bool good;

	s->first = w->next;
	if (!s->first)
		s->last = &s->first;
	if (w->kernel)
		good = gpu_kernel_run(w->kernel, s->vendor, w->grid, w->block,
				      w->packed);
	else
		good = gpu_copy(s->vendor, w->to, w->from, w->length);
	s->faulted |= !good;
	s->ended++;
	free(w);
}

static bool do_until(struct gpu_stream *s, uint64_t at)
{
	pthread_mutex_lock(&lock);
	while (s->ended < at)
		do_first(s);
	pthread_mutex_unlock(&lock);
	return !s->faulted;
}

static void add(struct gpu_stream *s, struct work *w)
{
	pthread_mutex_lock(&lock);
	*s->last = w;
	s->last = &w->next;
	s->begun++;
	pthread_mutex_unlock(&lock);
}

struct gpu_stream *gpu_stream_new(enum gpu_vendor vendor)
{
	struct gpu_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->vendor = vendor;
	s->last = &s->first;
	return s;
}

void gpu_stream_free(struct gpu_stream *s)
{
	gpu_stream_wait(s);
	free(s);
}

bool gpu_stream_wait(struct gpu_stream *s)
{
	return do_until(s, s->begun);
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

struct gpu_event *gpu_event_new(void)
{
	return calloc(1, sizeof(struct gpu_event));
}

void gpu_event_free(struct gpu_event *e)
{
	free(e);
}

void gpu_event_record(struct gpu_event *e, struct gpu_stream *s)
{
	e->stream = s;
	e->at = s->begun;
	e->asked = false;
}

int gpu_event_query(struct gpu_event *e)
{
	bool again = e->asked;

	if (!e->stream)
		return 1;
	e->asked = true;
	if (e->stream->ended < e->at && !again)
		return 0;
	return do_until(e->stream, e->at) ? 1 : -1;
}

bool gpu_event_wait(struct gpu_event *e)
{
	return !e->stream || do_until(e->stream, e->at);
}
