// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of the test run times. Recording one puts a mark into a stream; what
 * waits for the event then waits for that mark, even if the event is recorded
 * again meanwhile, or destroyed. Called by cuda_stream.c and hip_stream.c.
 */
#include <stdlib.h>

#include "gpu.h"

struct gpu_mark {
	unsigned int users;	/* atomic: the event, and work of streams */
	uint64_t reached;	/* atomic: MARK_* when it was its turn */
};

struct gpu_event {
	struct gpu_mark *mark;	/* NULL: it was never recorded */
	bool asked;		/* for it, since then */
};

void gpu_mark_put(struct gpu_mark *mark)
{
	if (!__atomic_sub_fetch(&mark->users, 1, __ATOMIC_ACQ_REL))
		free(mark);
}

uint64_t *gpu_mark_word(struct gpu_mark *mark)
{
	return &mark->reached;
}

struct gpu_event *gpu_event_new(void)
{
	return calloc(1, sizeof(struct gpu_event));
}

static void replace(struct gpu_event *event, struct gpu_mark *mark)
{
	if (event->mark)
		gpu_mark_put(event->mark);
	event->mark = mark;
}

void gpu_event_free(struct gpu_event *event)
{
	replace(event, NULL);
	free(event);
}

bool gpu_event_record(struct gpu_event *event, struct gpu_stream *s)
{
	struct gpu_mark *mark = calloc(1, sizeof(*mark));

	if (!mark)
		return false;
	mark->users = 2;
	event->asked = false;
	replace(event, mark);
	return gpu_stream_mark(s, mark, false);
}

bool gpu_event_hold(struct gpu_event *event, struct gpu_stream *s)
{
	if (!event->mark)
		return true;
	__atomic_add_fetch(&event->mark->users, 1, __ATOMIC_RELAXED);
	return gpu_stream_mark(s, event->mark, true);
}

enum gpu_reached gpu_event_query(struct gpu_event *event)
{
	bool first = !event->asked;
	uint64_t reached;

	if (!event->mark)
		return GPU_REACHED;
	event->asked = true;
	reached = __atomic_load_n(&event->mark->reached, __ATOMIC_SEQ_CST);
	if (first || !reached)
		return GPU_NOT_YET;
	return reached == MARK_FAULTED ? GPU_FAULTED : GPU_REACHED;
}
