// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations enqueued in a stream, of the GPU that has the buffers, or else of
 * the host. Called by run.c.
 */
#include "coll.h"

int coll_stream_open(struct coll_stream *s, struct memory *memory)
{
	struct fabrex_stream_attr attr = { .kind = FABREX_MEMORY_HOST };
	int ret = 0;

	s->memory = memory;
	if (memory->kind == MEMORY_HIP)
		attr.kind = FABREX_MEMORY_HIP;
	else if (memory->kind == MEMORY_CUDA)
		attr.kind = FABREX_MEMORY_CUDA;
	if (attr.kind != FABREX_MEMORY_HOST)
		ret = memory_stream_open(memory, &s->native);
	if (ret)
		return fail_memory("cannot create a stream");
	attr.native = s->native;
	ret = fabrex_stream_create(&attr, sizeof(attr), &s->stream);
	if (!ret)
		return 0;
	fprintf(stderr, "fabrex-perf: --stream: %s\n",
		fabrex_strerror_last());
	return EXIT_SETUP;
}

void coll_stream_close(struct coll_stream *s)
{
	fabrex_stream_destroy(s->stream);
	if (s->native)
		memory_stream_close(s->memory, s->native);
}

/* To the next rank and from the one before it. */
static int put_pair(struct fabrex_comm *comm, const struct coll_call *c,
		    struct fabrex_stream *stream)
{
	uint32_t rank = fabrex_comm_rank(comm), n = fabrex_comm_size(comm);
	int ret = fabrex_group_begin(comm), end;

	if (ret)
		return ret;
	ret = fabrex_send_enqueue(comm, c->send, c->count, c->type,
				  (rank + 1) % n, stream);
	if (!ret)
		ret = fabrex_recv_enqueue(comm, c->recv, c->count, c->type,
					  (rank + n - 1) % n, stream);
	end = fabrex_group_end(comm);
	return ret ? ret : end;
}

int coll_stream_put(const struct coll_stream *s, const struct coll_kind *k,
		    struct fabrex_comm *comm, const struct coll_call *c)
{
	struct fabrex_collective what = { .kind = k->id };

	if (!k->id)
		return put_pair(comm, c, s->stream);
	if (k->id != FABREX_BARRIER) {
		what.type = c->type;
		what.op = k->reduces ? c->op : 0;
		what.root = k->rooted ? c->root : 0;
		what.send = c->send;
		what.recv = c->recv;
		what.count = c->count;
	}
	return fabrex_coll_enqueue(comm, &what, sizeof(what), s->stream, NULL);
}

int coll_stream_wait(const struct coll_stream *s)
{
	int ret = fabrex_stream_wait(s->stream, -1);

	if (!ret && s->native && memory_stream_wait(s->memory, s->native))
		return fail_memory("waiting for a stream");
	return ret;
}
