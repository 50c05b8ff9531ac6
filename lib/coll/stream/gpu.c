// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams of HIP and CUDA. With stream memory operations the GPU itself writes
 * one word and waits for another, and no thread of the runtime takes part;
 * without, functions of the host do. The runtime may call these one after the
 * other, whatever stream they are in: fabrex_stream_create(3) says what follows
 * from that.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "coll/device/device.h"
#include "coll/stream/stream.h"
#include "coll/stream/waker.h"

/*
 * Two words that the GPU and the processor reach. A GPU may still be about to
 * find out that it need not wait any more when its stream is destroyed: the
 * words are never freed, but used again if that is possible.
 */
struct stream_words {
	struct stream_words *next;
	uint64_t id;			/* of the context that has them */
	uint64_t *started, *finished;
};

static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream_words *unused;

/* What a function of the host is told. */
struct turn {
	struct fabrex_stream *stream;
	uint64_t number;
};

void fxi_streams_forked(void)
{
	pthread_mutex_init(&words_lock, NULL);
	unused = NULL;
	fxi_gates_forked();
	fxi_waker_forked();
}

/* ---- with stream memory operations ------------------------------------- */

static int words_mark(struct fabrex_stream *s, uint64_t number)
{
	return fxi_device_write(s->device, s->started, number);
}

static int words_hold(struct fabrex_stream *s, uint64_t number)
{
	return fxi_device_hold(s->device, s->finished, number);
}

/* The counts go on: a stream may still be about to wait for an earlier one. */
static struct stream_words *reuse(uint64_t id)
{
	struct stream_words **at = &unused, *words;

	pthread_mutex_lock(&words_lock);
	while (*at && (*at)->id != id)
		at = &(*at)->next;
	words = *at;
	if (words)
		*at = words->next;
	pthread_mutex_unlock(&words_lock);
	return words;
}

static struct stream_words *words_new(struct device *device, uint64_t id)
{
	struct stream_words *words = calloc(1, sizeof(*words));

	if (!words)
		return NULL;
	words->id = id;
	if (!fxi_device_word(device, &words->started) &&
	    !fxi_device_word(device, &words->finished))
		return words;
	free(words);
	return NULL;
}

/*
 * Not if a mark is still to come, of an operation that was abandoned: it would
 * set back the count of the next stream that has the word.
 */
static void words_put(struct stream_words *words, uint64_t newest)
{
	if (!words->id ||
	    __atomic_load_n(words->started, __ATOMIC_ACQUIRE) != newest) {
		free(words);
		return;
	}
	pthread_mutex_lock(&words_lock);
	words->next = unused;
	unused = words;
	pthread_mutex_unlock(&words_lock);
}

/* False: the runtime, or the device, does without. */
static bool words_get(struct fabrex_stream *s, uint32_t kind)
{
	uint64_t id = fxi_device_id(s->device);
	struct stream_words *words;

	id = id ? id << 1 | (kind == FABREX_MEMORY_HIP) : 0;
	words = id ? reuse(id) : NULL;
	if (!words)
		words = words_new(s->device, id);
	if (!words)
		return false;
	if (!fxi_device_holds(s->device, words->started)) {
		words_put(words, *words->started);
		return false;
	}
	s->words = words;
	s->started = words->started;
	s->finished = words->finished;
	s->newest = *words->finished;
	return true;
}

/* ---- with functions of the host ---------------------------------------- */

static void call_mark(void *arg)
{
	struct turn *turn = arg;

	__atomic_store_n(turn->stream->started, turn->number,
			 __ATOMIC_RELEASE);
	fxi_waker_wake();
	fxi_stream_put(turn->stream);
	free(turn);
}

static void call_hold(void *arg)
{
	struct turn *turn = arg;
	struct fabrex_stream *s = turn->stream;

	pthread_mutex_lock(&s->lock);
	while (*s->finished < turn->number)
		pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
	fxi_stream_put(s);
	free(turn);
}

static int call(struct fabrex_stream *s, void (*function)(void *arg),
		uint64_t number)
{
	struct turn *turn = malloc(sizeof(*turn));
	int ret;

	if (!turn)
		return fxi_error_static(ENOMEM, "stream: out of memory");
	turn->stream = s;
	turn->number = number;
	fxi_stream_get(s);
	ret = fxi_device_call(s->device, function, turn);
	if (!ret)
		return 0;
	fxi_stream_put(s);
	free(turn);
	return ret;
}

static int calls_mark(struct fabrex_stream *s, uint64_t number)
{
	return call(s, call_mark, number);
}

static int calls_hold(struct fabrex_stream *s, uint64_t number)
{
	return call(s, call_hold, number);
}

/* ---- both -------------------------------------------------------------- */

static int gpu_ready(struct fabrex_stream *s)
{
	int ret = fxi_device_capturing(s->device);

	if (ret > 0)
		return fxi_error_static(EOPNOTSUPP, "stream: it is being captured into a graph, and collectives cannot be part of one; enqueue them outside of the capture");
	return ret;
}

static void gpu_destroy(struct fabrex_stream *s)
{
	(void)s;
}

static void gpu_close(struct fabrex_stream *s)
{
	fxi_device_close(s->device);
	if (s->words)
		words_put(s->words, s->newest);
}

static const struct stream_kind words_kind = {
	.mark = words_mark,
	.hold = words_hold,
	.ready = gpu_ready,
	.destroy = gpu_destroy,
	.close = gpu_close,
};

static const struct stream_kind calls_kind = {
	.mark = calls_mark,
	.hold = calls_hold,
	.ready = gpu_ready,
	.destroy = gpu_destroy,
	.close = gpu_close,
};

int fxi_stream_open_gpu(uint32_t kind, void *native,
			struct fabrex_stream **out)
{
	struct fabrex_stream *s;
	struct device *device;
	int ret = fxi_device_adopt(kind, native, &device);

	if (ret)
		return ret;
	ret = fxi_stream_new(&words_kind, &s);
	if (ret) {
		fxi_device_close(device);
		return ret;
	}
	s->gpu = true;
	s->device = device;
	fxi_device_load(device);
	if (!words_get(s, kind))
		s->kind = &calls_kind;
	*out = s;
	return 0;
}
