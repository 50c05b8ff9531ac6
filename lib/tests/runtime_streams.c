// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams of the test run times are as independent, and as dependent, as those
 * of the real ones: tests of collectives in streams rely on it. Nothing here
 * calls the library.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "runtime.h"

enum { LEGACY, BLOCKING, OTHER, STREAMS };	/* OTHER: non-blocking */
enum { GO, FIRST, SECOND, THIRD, WORDS };

/* One of the two run times. */
struct rig {
	void *cuda, *hip;
	void *streams[STREAMS];		/* the legacy one is NULL */
	uint64_t *words[WORDS];
};

static void make_streams(struct rig *r)
{
	CUstream stream = NULL;
	uint32_t i;

	for (i = BLOCKING; i < STREAMS; i++) {
		if (r->cuda) {
			CHECK_EQ(CALL(r->cuda, cuStreamCreate, &stream,
				      i == OTHER), 0);
			r->streams[i] = stream;
		} else {
			CHECK_EQ(CALL(r->hip, hipStreamCreateWithFlags,
				      &r->streams[i], i == OTHER), 0);
		}
	}
}

static void rig_open(struct rig *r, bool hip)
{
	void *word = NULL;
	uint32_t i;

	memset(r, 0, sizeof(*r));
	if (hip)
		r->hip = runtime_load("libamdhip64.so.5");
	else
		r->cuda = cuda_up("libcuda.so.1");
	make_streams(r);
	for (i = 0; i < WORDS; i++) {
		if (hip)
			CHECK_EQ(CALL(r->hip, hipExtMallocWithFlags, &word, 8,
				      2), 0);
		else
			CHECK_EQ(CALL(r->cuda, cuMemHostAlloc, &word, 8, 0),
				 0);
		r->words[i] = word;
		*r->words[i] = 0;
	}
}

static void put(const struct rig *r, uint32_t stream, uint32_t word,
		uint64_t value)
{
	if (r->cuda)
		CHECK_EQ(CALL(r->cuda, cuStreamWriteValue64,
			      r->streams[stream],
			      (CUdeviceptr)(uintptr_t)r->words[word], value,
			      0), 0);
	else
		CHECK_EQ(CALL(r->hip, hipStreamWriteValue64,
			      r->streams[stream], r->words[word], value, 0),
			 0);
}

/* Until GO has the value. */
static void hold(const struct rig *r, uint32_t stream, uint64_t value)
{
	if (r->cuda)
		CHECK_EQ(CALL(r->cuda, cuStreamWaitValue64, r->streams[stream],
			      (CUdeviceptr)(uintptr_t)r->words[GO], value, 0),
			 0);
	else
		CHECK_EQ(CALL(r->hip, hipStreamWaitValue64, r->streams[stream],
			      r->words[GO], value, 0, UINT64_MAX), 0);
}

static void finish(const struct rig *r, uint32_t stream)
{
	if (r->cuda)
		CHECK_EQ(CALL(r->cuda, cuStreamSynchronize,
			      r->streams[stream]), 0);
	else
		CHECK_EQ(CALL(r->hip, hipStreamSynchronize,
			      r->streams[stream]), 0);
}

static uint64_t word(const struct rig *r, uint32_t which)
{
	return __atomic_load_n(r->words[which], __ATOMIC_SEQ_CST);
}

static void set_go(const struct rig *r, uint64_t value)
{
	__atomic_store_n(r->words[GO], value, __ATOMIC_SEQ_CST);
}

static void await(const struct rig *r, uint32_t which, uint64_t value)
{
	while (word(r, which) != value)
		usleep(100);
}

/* ---- the legacy stream ------------------------------------------------- */

static void legacy(bool hip)
{
	struct rig r;

	rig_open(&r, hip);
	/* What is behind a held legacy stream: blocking ones, no others. */
	hold(&r, LEGACY, 1);
	put(&r, LEGACY, FIRST, 1);
	put(&r, BLOCKING, SECOND, 1);
	put(&r, OTHER, THIRD, 1);
	await(&r, THIRD, 1);
	CHECK_EQ(word(&r, FIRST), 0);
	CHECK_EQ(word(&r, SECOND), 0);
	set_go(&r, 1);
	finish(&r, BLOCKING);
	CHECK_EQ(word(&r, FIRST), 1);
	CHECK_EQ(word(&r, SECOND), 1);
	/* And the other way round. */
	hold(&r, BLOCKING, 2);
	put(&r, BLOCKING, SECOND, 2);
	put(&r, LEGACY, FIRST, 2);
	put(&r, OTHER, THIRD, 2);
	await(&r, THIRD, 2);
	CHECK_EQ(word(&r, FIRST), 1);
	CHECK_EQ(word(&r, SECOND), 1);
	set_go(&r, 2);
	finish(&r, LEGACY);
	CHECK_EQ(word(&r, FIRST), 2);
	CHECK_EQ(word(&r, SECOND), 2);
	/* Only for what was begun before. */
	put(&r, BLOCKING, SECOND, 3);
	hold(&r, LEGACY, 3);
	finish(&r, BLOCKING);
	CHECK_EQ(word(&r, SECOND), 3);
	set_go(&r, 3);
	finish(&r, LEGACY);
}

TEST(runtime_legacy_stream_cuda)
{
	legacy(false);
}

TEST(runtime_legacy_stream_hip)
{
	legacy(true);
}

/* ---- events ------------------------------------------------------------ */

static void record(const struct rig *r, void *event, uint32_t stream)
{
	if (r->cuda)
		CHECK_EQ(CALL(r->cuda, cuEventRecord, event,
			      r->streams[stream]), 0);
	else
		CHECK_EQ(CALL(r->hip, hipEventRecord, event,
			      r->streams[stream]), 0);
}

static void wait_for(const struct rig *r, void *event, uint32_t stream)
{
	if (r->cuda)
		CHECK_EQ(CALL(r->cuda, cuStreamWaitEvent, r->streams[stream],
			      event, 0), 0);
	else
		CHECK_EQ(CALL(r->hip, hipStreamWaitEvent, r->streams[stream],
			      event, 0), 0);
}

static void *event_make(const struct rig *r)
{
	CUevent cuda = NULL;
	void *hip = NULL;

	if (r->cuda) {
		CHECK_EQ(CALL(r->cuda, cuEventCreate, &cuda, 2), 0);
		return cuda;
	}
	CHECK_EQ(CALL(r->hip, hipEventCreateWithFlags, &hip, 2), 0);
	return hip;
}

/* A stream waits for the last record before the wait, and for none after it. */
static void events(bool hip)
{
	struct rig r;
	void *event;

	rig_open(&r, hip);
	event = event_make(&r);
	wait_for(&r, event, BLOCKING);
	hold(&r, OTHER, 1);
	put(&r, OTHER, FIRST, 1);
	record(&r, event, OTHER);
	wait_for(&r, event, BLOCKING);
	put(&r, BLOCKING, SECOND, 1);
	hold(&r, OTHER, 2);
	record(&r, event, OTHER);
	if (r.cuda)
		CHECK_EQ(CALL(r.cuda, cuEventDestroy, event), 0);
	else
		CHECK_EQ(CALL(r.hip, hipEventDestroy, event), 0);
	usleep(2000);
	CHECK_EQ(word(&r, SECOND), 0);
	set_go(&r, 1);
	finish(&r, BLOCKING);
	CHECK_EQ(word(&r, FIRST), 1);
	CHECK_EQ(word(&r, SECOND), 1);
	set_go(&r, 2);
	finish(&r, OTHER);
}

TEST(runtime_events_cuda)
{
	events(false);
}

TEST(runtime_events_hip)
{
	events(true);
}

/* ---- functions of the host --------------------------------------------- */

struct both {
	atomic_bool reached[2], go;
};

static void until(void *arg)
{
	struct both *both = arg;

	atomic_store(&both->reached[0], true);
	while (!atomic_load(&both->go))
		usleep(100);
}

static void set(void *arg)
{
	struct both *both = arg;

	atomic_store(&both->reached[1], true);
}

static void call(const struct rig *r, uint32_t stream,
		 void (*function)(void *arg), void *arg)
{
	if (r->cuda)
		CHECK_EQ(CALL(r->cuda, cuLaunchHostFunc, r->streams[stream],
			      function, arg), 0);
	else
		CHECK_EQ(CALL(r->hip, hipLaunchHostFunc, r->streams[stream],
			      function, arg), 0);
}

/* One after the other, as the manuals allow; what needs no function goes on. */
static void functions(bool hip)
{
	struct both both = { .go = false };
	struct rig r;

	rig_open(&r, hip);
	call(&r, BLOCKING, until, &both);
	while (!atomic_load(&both.reached[0]))
		usleep(100);
	put(&r, OTHER, FIRST, 1);
	call(&r, OTHER, set, &both);
	await(&r, FIRST, 1);
	usleep(2000);
	CHECK(!atomic_load(&both.reached[1]));
	atomic_store(&both.go, true);
	finish(&r, OTHER);
	CHECK(atomic_load(&both.reached[1]));
	finish(&r, BLOCKING);
}

TEST(runtime_functions_cuda)
{
	functions(false);
}

TEST(runtime_functions_hip)
{
	functions(true);
}
