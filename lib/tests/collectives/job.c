// SPDX-License-Identifier: LGPL-2.1-or-later
/* Buffers of collectives: filled, copied, and checked, guards included. */
#include "job.h"

#define GUARD	64u
#define BYTE	0xa5

bool rooted(uint32_t kind)
{
	return kind == FABREX_BROADCAST || kind == FABREX_REDUCE;
}

/* Buffers with what is asked for; send is inside recv, or the other way. */
static void place(const struct world *w, struct job *job)
{
	struct fabrex_collective *what = &job->what;
	uint64_t size = fabrex_datatype_size(what->type);
	char *send = job->memory->send.at + GUARD + job->offset;
	char *recv = job->memory->recv.at + GUARD + job->offset;

	if (job->in_place && what->kind == FABREX_REDUCE_SCATTER)
		recv = send + w->rank * what->count * size;
	else if (job->in_place && what->kind == FABREX_ALL_GATHER)
		send = recv + w->rank * what->count * size;
	else if (job->in_place)
		send = recv;
	what->send = send;
	what->recv = recv;
}

uint64_t job_recv_bytes(const struct world *w, const struct job *job)
{
	return job->what.count * fabrex_datatype_size(job->what.type) *
	       recv_parts(w, job->what.kind);
}

static bool gets_result(const struct world *w, const struct job *job)
{
	return job->what.kind != FABREX_REDUCE || job->what.root == w->rank;
}

/* In place, both buffers are on one side. */
static const struct side *side_of(const struct job *job, const void *at)
{
	const struct side *send = &job->memory->send;
	const char *p = at;

	return p >= send->at && p < send->at + send->room ?
	       send : &job->memory->recv;
}

char *job_seen(const struct job *job, const void *at)
{
	const struct side *side = side_of(job, at);

	return side->mirror ? side->mirror + ((const char *)at - side->at) :
			      (char *)(uintptr_t)at;
}

static uint64_t sent_bytes(const struct world *w, const struct job *job)
{
	return job->what.count * send_parts(w, job->what.kind) *
	       fabrex_datatype_size(job->what.type);
}

/* ---- to and from a GPU ------------------------------------------------- */

static void put_one(const struct job *job, const void *at, uint64_t bytes)
{
	const struct side *side = side_of(job, at);
	char *to = (char *)(uintptr_t)at;

	CHECK(to >= side->at && to + bytes <= side->at + side->room);
	if (!side->mirror)
		return;
	gpu_make_current(job->in_stream ? job->gpu : &side->gpu);
	if (job->in_stream)
		gpu_stream_put(&side->gpu, job->native, to, job_seen(job, at),
			       bytes);
	else
		gpu_put(&side->gpu, to, job_seen(job, at), bytes);
}

static void get_one(const struct job *job, const void *at, uint64_t bytes)
{
	const struct side *side = side_of(job, at);

	if (!side->mirror)
		return;
	gpu_make_current(job->in_stream ? job->gpu : &side->gpu);
	if (job->in_stream)
		gpu_stream_get(&side->gpu, job->native, job_seen(job, at), at,
			       bytes);
	else
		gpu_get(&side->gpu, job_seen(job, at), at, bytes);
}

static void put(const struct world *w, const struct job *job)
{
	put_one(job, (char *)job->what.recv - GUARD,
		job_recv_bytes(w, job) + 2 * GUARD);
	put_one(job, job->what.send, sent_bytes(w, job));
}

void job_get(const struct world *w, const struct job *job)
{
	get_one(job, job->what.send, sent_bytes(w, job));
	get_one(job, (char *)job->what.recv - GUARD,
		job_recv_bytes(w, job) + 2 * GUARD);
}

/* ---- values ------------------------------------------------------------ */

void job_prepare(const struct world *w, struct job *job)
{
	struct fabrex_collective *what = &job->what;
	uint64_t bytes = job_recv_bytes(w, job);

	place(w, job);
	memset(job_seen(job, (char *)what->recv - GUARD), BYTE,
	       bytes + 2 * GUARD);
	values_fill(&job->values, w->rank, 0,
		    what->count * send_parts(w, what->kind),
		    job_seen(job, what->send));
	put(w, job);
}

/* Bytes outside of the result are as they were. */
static void check_guards(const struct world *w, const struct job *job)
{
	const unsigned char *recv = (unsigned char *)job_seen(job,
							      job->what.recv);
	uint64_t bytes = job_recv_bytes(w, job), i;

	if (job->in_place && job->what.kind == FABREX_REDUCE_SCATTER)
		return;
	for (i = 1; i <= GUARD; i++) {
		CHECK_EQ(recv[-(int64_t)i], BYTE);
		CHECK_EQ(recv[bytes + i - 1], BYTE);
	}
}

void job_check(const struct world *w, const struct job *job)
{
	const struct fabrex_collective *what = &job->what;
	char *expected = job->memory->expected;
	uint64_t bytes = job_recv_bytes(w, job), i;
	const char *recv = job_seen(job, what->recv);

	check_guards(w, job);
	if (gets_result(w, job)) {
		values_expect(w, what, &job->values, expected);
		for (i = 0; i < bytes && memcmp(recv, expected, bytes); i++)
			CHECK_EQ(recv[i] == expected[i] ? -1 : (long long)i,
				 -1);
	}
	if (job->in_place)
		return;
	bytes = what->count * send_parts(w, what->kind);
	values_fill(&job->values, w->rank, 0, bytes, expected);
	bytes *= fabrex_datatype_size(what->type);
	CHECK(!memcmp(job_seen(job, what->send), expected, bytes));
}
