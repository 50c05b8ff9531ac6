/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One collective in the memory of a rank, from the values that go in to the
 * check of all that comes out. For matrix.c and device_matrix.c.
 */
#ifndef LIB_TESTS_COLLECTIVES_JOB_H
#define LIB_TESTS_COLLECTIVES_JOB_H

#include "device.h"
#include "world.h"

/* One buffer with what is around it. */
struct side {
	struct gpu gpu;		/* that has it, or none */
	char *at;
	char *mirror;		/* in the host; NULL: it is there anyway */
	uint64_t room;		/* bytes */
};

/* Where a rank's buffers are. */
struct memory {
	struct side send, recv;
	char *expected;		/* room for a result */
};

struct job {
	struct fabrex_collective what;
	struct values values;
	bool in_place;
	uint32_t offset;	/* of both buffers */
	const struct memory *memory;
	bool in_stream;		/* copies to and from a GPU are in @native, */
	void *native;
	const struct gpu *gpu;	/* of this one */
};

bool rooted(uint32_t kind);
uint64_t job_recv_bytes(const struct world *w, const struct job *job);
/* Where the processor sees a buffer, as it was when it was put or got. */
char *job_seen(const struct job *job, const void *at);
/* Fills the buffers of job->what, which it sets. */
void job_prepare(const struct world *w, struct job *job);
/* To the mirrors. In a stream, that has to be waited for before the check. */
void job_get(const struct world *w, const struct job *job);
void job_check(const struct world *w, const struct job *job);

#endif
