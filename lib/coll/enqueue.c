// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams, and operations that are performed in their order. Public half:
 * fabrex_stream_create(3), fabrex_all_reduce_enqueue(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "coll/algorithm/algorithm.h"
#include "coll/coll.h"
#include "coll/stream/stream.h"

#define POLLS		64u		/* rounds in vain before it sleeps, */
#define NAP_NS		50000		/* so long if nothing changes */

/* ---- streams ----------------------------------------------------------- */

static int check_attr(const struct fabrex_stream_attr *a)
{
	size_t i;

	if (a->flags)
		return fxi_error(EINVAL, "fabrex_stream_create: unknown flags 0x%x; use 0",
				 a->flags);
	for (i = 0; i < sizeof(a->reserved) / sizeof(*a->reserved); i++)
		if (a->reserved[i])
			return fxi_error(EINVAL, "fabrex_stream_create: reserved[%zu] is not 0; clear the structure first",
					 i);
	if (a->kind != FABREX_MEMORY_HOST && a->kind != FABREX_MEMORY_HIP &&
	    a->kind != FABREX_MEMORY_CUDA)
		return fxi_error(EINVAL, "fabrex_stream_create: no streams of kind %u; use FABREX_MEMORY_HOST, HIP or CUDA",
				 a->kind);
	if (a->kind == FABREX_MEMORY_HOST && a->native)
		return fxi_error_static(EINVAL, "fabrex_stream_create: streams of the host are made by it; native has to be NULL");
	return 0;
}

EXPORT int fabrex_stream_create(const struct fabrex_stream_attr *attr,
				size_t size, struct fabrex_stream **stream)
{
	NO_CANCEL();
	struct fabrex_stream_attr a = { 0 };
	int ret;

	if (!attr || !stream)
		return fxi_error_static(EINVAL, "fabrex_stream_create: attr or stream is NULL; give both");
	ret = fxi_copy_in(NULL, "stream", &a, sizeof(a), attr, size);
	if (!ret)
		ret = check_attr(&a);
	if (ret)
		return ret;
	fxi_forks_handle();
	if (a.kind == FABREX_MEMORY_HOST)
		return fxi_stream_open_host(stream);
	ret = fxi_stream_open_gpu(a.kind, a.native, stream);
	if (!ret)
		fxi_background_uses_runtime(a.kind);
	return ret;
}

EXPORT void fabrex_stream_destroy(struct fabrex_stream *stream)
{
	if (!stream || stream->pid != getpid())
		return;
	fxi_stream_leave(stream);
}

EXPORT int fabrex_stream_call(struct fabrex_stream *stream,
			      void (*function)(void *arg), void *arg)
{
	NO_CANCEL();
	int ret;

	if (!function)
		return fxi_error_static(EINVAL, "fabrex_stream_call: no function to call");
	ret = fxi_stream_check(stream);
	if (ret)
		return ret;
	if (!stream->kind->call)
		return fxi_error_static(EOPNOTSUPP, "fabrex_stream_call: the stream is a GPU's; use hipLaunchHostFunc() or cuLaunchHostFunc()");
	pthread_mutex_lock(&stream->enqueuing);
	ret = stream->kind->call(stream, function, arg);
	pthread_mutex_unlock(&stream->enqueuing);
	return ret;
}

/* Until something changes, or it is time to look at the operations again. */
static void nap(struct fabrex_stream *s)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += NAP_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&s->lock);
	if (s->first || s->items || s->busy)
		pthread_cond_timedwait(&s->changed, &s->lock, &until);
	pthread_mutex_unlock(&s->lock);
}

/*
 * Communicators that do without the progress thread are advanced here, as they
 * are in any other wait.
 */
EXPORT int fabrex_stream_wait(struct fabrex_stream *stream, int timeout_ms)
{
	NO_CANCEL();
	uint64_t deadline = fxi_deadline(timeout_ms);
	uint32_t patience = 0;
	int ret = fxi_stream_check(stream);

	if (ret)
		return ret;
	while (!fxi_stream_is_idle(stream)) {
		if (fxi_busy_advance_others(NULL, fxi_comm_progress_unwaited))
			patience = 0;
		else if (patience++ > POLLS)
			nap(stream);
		if (deadline != UINT64_MAX && fxi_now_ns() >= deadline)
			return fxi_error_static(ETIMEDOUT, "stream: what was enqueued has not ended within the time given; wait again");
	}
	return fxi_stream_error(stream, false);
}

EXPORT int fabrex_stream_error(struct fabrex_stream *stream)
{
	int ret = fxi_stream_check(stream);

	return ret ? ret : fxi_stream_error(stream, true);
}

/* ---- operations -------------------------------------------------------- */

/* What its partner is enqueued behind never ends. */
static int check_own(const struct fabrex_coll *coll)
{
	const struct fabrex_comm *comm = coll->comm;

	if (comm->grouping || !fxi_is_sendrecv(coll) ||
	    coll->what.root != comm->rank)
		return 0;
	return fxi_error(EDEADLK, "%s: rank %u waits for itself in the stream; put both ends into a group",
			 fxi_kind_name(coll->what.kind), comm->rank);
}

/*
 * A GPU's stream that is full, or that somebody waits for by the runtime, goes
 * on only if a thread of ours performs the operations.
 */
static int check_progress(const struct fabrex_coll *coll)
{
	if (!coll->comm->no_thread)
		return fxi_background_need();
	if (!coll->stream->gpu)
		return 0;
	return fxi_error(EINVAL, "%s: a stream of a GPU needs the progress thread; create the communicator without FABREX_COMM_NO_THREAD",
			 fxi_kind_name(coll->what.kind));
}

/* With the communicator: all that has to be done before it has its place. */
static int prepare(struct fabrex_coll *coll, struct fabrex_coll **out)
{
	struct fabrex_comm *comm = coll->comm;
	int ret;

	if (unlikely(fxi_comm_over(comm)))
		return fxi_comm_error(comm);
	ret = check_progress(coll);
	if (!ret)
		ret = check_own(coll);
	if (!ret)
		ret = coll->stream->kind->ready(coll->stream);
	if (!ret)
		ret = fxi_coll_prepare(coll);
	if (ret || !comm->grouping)
		return ret;
	if (out)
		*out = coll;
	/* The caller may destroy it before the group ends. */
	fxi_stream_join(coll->stream);
	fxi_group_add(coll);
	return 0;
}

/* In its place. From now on whoever looks performs it, and may end it. */
static void begin(struct fabrex_coll *coll, struct fabrex_coll **out)
{
	struct fabrex_comm *comm = coll->comm;

	fxi_comm_enter_busy(comm);
	if (out)
		*out = coll;
	if (unlikely(fxi_comm_over(comm)))
		fxi_coll_ended(coll, comm->error);
	else
		fxi_coll_begin(coll);
	fxi_comm_leave(comm);
	fxi_background_notice(comm, true);
}

/*
 * A stream of a GPU takes a limited number of operations that cannot begin yet;
 * then a call that adds one waits. What lets the stream go on is done
 * meanwhile, so the communicator is left before.
 */
static int enqueue(struct fabrex_comm *comm,
		   const struct fabrex_collective *what,
		   struct fabrex_stream *stream, struct fabrex_coll **out)
{
	NO_CANCEL();
	struct fabrex_coll *coll = fxi_coll_new(comm, what);
	bool grouping = comm->grouping;
	int ret;

	if (!coll)
		return -ENOMEM;
	coll->kept = out != NULL;
	coll->stream = stream;
	coll->result = GOING;
	fxi_comm_enter(comm);
	ret = prepare(coll, out);
	fxi_comm_leave(comm);
	if (!ret && !grouping)
		ret = fxi_gate_make(stream, 1, &coll->gate);
	if (ret)
		free(coll);
	else if (!grouping)
		begin(coll, out);
	return ret;
}

EXPORT int fabrex_coll_enqueue(struct fabrex_comm *comm,
			       const struct fabrex_collective *what,
			       size_t size, struct fabrex_stream *stream,
			       struct fabrex_coll **coll)
{
	struct fabrex_collective w = { 0 };
	int ret;

	ret = fxi_copy_in(comm->port, "collective", &w, sizeof(w), what, size);
	if (!ret)
		ret = fxi_coll_arguments(comm, &w);
	if (!ret)
		ret = fxi_stream_check(stream);
	return ret ? ret : enqueue(comm, &w, stream, coll);
}

static int run(struct fabrex_comm *comm, uint32_t kind, const void *send,
	       void *recv, uint64_t count, uint32_t type, uint32_t op,
	       uint32_t root, struct fabrex_stream *stream)
{
	const struct fabrex_collective what = {
		.kind = kind, .type = type, .op = op, .root = root,
		.send = send, .recv = recv, .count = count,
	};

	return fabrex_coll_enqueue(comm, &what, sizeof(what), stream, NULL);
}

EXPORT int fabrex_all_reduce_enqueue(struct fabrex_comm *comm,
				     const void *send, void *recv,
				     uint64_t count, enum fabrex_datatype type,
				     enum fabrex_redop op,
				     struct fabrex_stream *stream)
{
	return run(comm, FABREX_ALL_REDUCE, send, recv, count, type, op, 0,
		   stream);
}

EXPORT int fabrex_all_gather_enqueue(struct fabrex_comm *comm,
				     const void *send, void *recv,
				     uint64_t count, enum fabrex_datatype type,
				     struct fabrex_stream *stream)
{
	return run(comm, FABREX_ALL_GATHER, send, recv, count, type, 0, 0,
		   stream);
}

EXPORT int fabrex_reduce_scatter_enqueue(struct fabrex_comm *comm,
					 const void *send, void *recv,
					 uint64_t count,
					 enum fabrex_datatype type,
					 enum fabrex_redop op,
					 struct fabrex_stream *stream)
{
	return run(comm, FABREX_REDUCE_SCATTER, send, recv, count, type, op, 0,
		   stream);
}

EXPORT int fabrex_broadcast_enqueue(struct fabrex_comm *comm, const void *send,
				    void *recv, uint64_t count,
				    enum fabrex_datatype type, uint32_t root,
				    struct fabrex_stream *stream)
{
	return run(comm, FABREX_BROADCAST, send, recv, count, type, 0, root,
		   stream);
}

EXPORT int fabrex_reduce_enqueue(struct fabrex_comm *comm, const void *send,
				 void *recv, uint64_t count,
				 enum fabrex_datatype type,
				 enum fabrex_redop op, uint32_t root,
				 struct fabrex_stream *stream)
{
	return run(comm, FABREX_REDUCE, send, recv, count, type, op, root,
		   stream);
}

EXPORT int fabrex_all_to_all_enqueue(struct fabrex_comm *comm,
				     const void *send, void *recv,
				     uint64_t count, enum fabrex_datatype type,
				     struct fabrex_stream *stream)
{
	return run(comm, FABREX_ALL_TO_ALL, send, recv, count, type, 0, 0,
		   stream);
}

EXPORT int fabrex_barrier_enqueue(struct fabrex_comm *comm,
				  struct fabrex_stream *stream)
{
	return run(comm, FABREX_BARRIER, NULL, NULL, 0, 0, 0, 0, stream);
}

EXPORT int fabrex_send_enqueue(struct fabrex_comm *comm, const void *buffer,
			       uint64_t count, enum fabrex_datatype type,
			       uint32_t rank, struct fabrex_stream *stream)
{
	return run(comm, FABREX_SEND, buffer, NULL, count, type, 0, rank,
		   stream);
}

EXPORT int fabrex_recv_enqueue(struct fabrex_comm *comm, void *buffer,
			       uint64_t count, enum fabrex_datatype type,
			       uint32_t rank, struct fabrex_stream *stream)
{
	return run(comm, FABREX_RECV, NULL, buffer, count, type, 0, rank,
		   stream);
}
