// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Buffers of other ranks: mapped where that makes them ordinary memory, read
 * through a queue where not. Called by zero_copy.c and sendrecv.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/operation/peer_buffer.h"

#define KNOWN		16u	/* regions of this process remembered */
/* Mappings for each rank, and besides, of which some are given up when idle. */
#define MAPPINGS	4u
#define MAPPINGS_MORE	64u
#define PIECE		(1u << 20)
#define FLYING		4u
#define RIGHTS		(FABREX_MR_REMOTE_READ | FABREX_MR_REMOTE_WRITE)

/*
 * A region of this process, by its id in the transport, which is never reused.
 */
struct known {
	uint64_t id, key, length;
	uint32_t access;
	const char *addr;
};

/* A whole region of another rank; no base: it cannot be mapped. */
struct mapping {
	struct mapping *next;
	struct fabrex_window *window;
	char *base;
	uint64_t rkey, length;
};

struct peer_buffers {
	struct known known[KNOWN];
	struct mapping **mappings;	/* by rank: the newest first */
	uint32_t nmappings;

	struct fabrex_queue *queues[COMM_PORTS];

	/* the read under way, if mr is not NULL */
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;
	struct fabrex_remote remote;
	uint64_t offset, roffset;
	uint64_t length, posted;
	uint32_t flying, rank;
	uint8_t status;
};

int fxi_peer_buffers_make(struct fabrex_comm *comm)
{
	struct peer_buffers *r = calloc(1, sizeof(*r));

	comm->peer_buffers = r;
	if (r)
		r->mappings = calloc(comm->size, sizeof(struct mapping *));
	if (r && r->mappings)
		return 0;
	return fxi_error(ENOMEM, "communicator: out of memory");
}

/* ---- own buffers ------------------------------------------------------- */

/* Remembers the region with that id. NULL: it has just been deregistered. */
static struct known *learn(struct fabrex_comm *comm, uint64_t id)
{
	struct known *known = &comm->peer_buffers->known[id % KNOWN];
	struct object *object;
	struct fabrex_mr *mr;

	pthread_mutex_lock(&comm->port->lock);
	object = fxi_object_find(comm->port, id);
	if (object) {
		mr = container_of(object, struct fabrex_mr, object);
		known->id = id;
		known->access = mr->access;
		known->key = mr->key;
		known->length = mr->length;
		known->addr = mr->addr;
	}
	pthread_mutex_unlock(&comm->port->lock);
	return object ? known : NULL;
}

/* At the first port only, as any of another's heap is rare. */
static const struct known *find_own(struct fabrex_comm *comm,
				    const struct fabrex_port *port,
				    const void *addr, uint64_t length)
{
	const struct transport_ops *ops = comm->port->ops;
	struct known *known;
	uint64_t id = 0;

	if (ops->mr_find && port == comm->port)
		id = ops->mr_find(comm->port->transport, addr, length);
	if (!id)
		return NULL;
	known = &comm->peer_buffers->known[id % KNOWN];
	return known->id == id ? known : learn(comm, id);
}

/*
 * The cast is like that of read(2): the cache takes memory that is only read,
 * too.
 */
static void export_any(struct fabrex_port *port, const void *addr,
		       uint64_t length, uint32_t access,
		       struct fabrex_mr **held, struct peer_buffer *buffer)
{
	if (fabrex_mr_cache_get(port, (void *)(uintptr_t)addr, length,
				access, held, &buffer->offset)) {
		*held = NULL;
		return;
	}
	buffer->rkey = fabrex_mr_key(*held);
	buffer->length = fabrex_mr_length(*held);
	buffer->access = access;
}

void fxi_buffer_export(struct fabrex_comm *comm, struct fabrex_port *port,
		       const void *addr, uint64_t length, uint32_t access,
		       struct fabrex_mr **held, struct peer_buffer *buffer)
{
	const struct known *known = find_own(comm, port, addr, length);

	memset(buffer, 0, sizeof(*buffer));
	buffer->peer = port->attr.peer;
	buffer->generation = port->attr.generation;
	if (held)
		*held = NULL;
	if (known && (known->access & access) == access) {
		buffer->rkey = known->key;
		buffer->offset = (uint64_t)((const char *)addr - known->addr);
		buffer->length = known->length;
		buffer->access = known->access;
		buffer->heap = 1;
	} else if (held) {
		export_any(port, addr, length, access, held, buffer);
	}
}

/* ---- buffers of others, mapped ----------------------------------------- */

static void unmap(struct fabrex_comm *comm, struct mapping **at)
{
	struct mapping *m = *at;

	*at = m->next;
	comm->peer_buffers->nmappings--;
	fabrex_window_unmap(m->window);
	free(m);
}

static struct mapping **find_mapping(struct fabrex_comm *comm, uint32_t rank,
				     uint64_t rkey)
{
	struct mapping **at = &comm->peer_buffers->mappings[rank];

	while (*at && (*at)->rkey != rkey)
		at = &(*at)->next;
	return at;
}

/* Maps all of the region, so that other buffers in it need no mapping. */
static void *map(struct fabrex_comm *comm, uint32_t rank,
		 const struct peer_buffer *buffer)
{
	const struct fabrex_remote remote = {
		.rkey = buffer->rkey, .length = buffer->length,
		.peer = buffer->peer, .generation = buffer->generation,
	};
	struct mapping **at = &comm->peer_buffers->mappings[rank];
	struct mapping *m = calloc(1, sizeof(*m));
	int ret;

	if (!m) {
		errno = -fxi_error(ENOMEM, "communicator: out of memory");
		return NULL;
	}
	ret = fabrex_window_map(comm->port, &remote, 0, buffer->length,
				buffer->access & RIGHTS, &m->window);
	if (ret) {
		free(m);
		errno = -ret;
		return NULL;
	}
	m->base = (char *)(uintptr_t)fabrex_window_addr(m->window);
	m->rkey = buffer->rkey;
	m->length = buffer->length;
	m->next = *at;
	*at = m;
	comm->peer_buffers->nmappings++;
	return m->base + buffer->offset;
}

void *fxi_buffer_map(struct fabrex_comm *comm, uint32_t rank,
		     const struct peer_buffer *buffer)
{
	struct mapping **at;

	errno = EOPNOTSUPP;
	if (!comm->coherent || !buffer->heap)
		return NULL;
	at = find_mapping(comm, rank, buffer->rkey);
	/* A shorter mapping may be in use: it stays, and is found last. */
	if (*at && (*at)->length >= buffer->length)
		return (*at)->base + buffer->offset;
	return map(comm, rank, buffer);
}

void fxi_buffers_tidy(struct fabrex_comm *comm)
{
	struct peer_buffers *reads = comm->peer_buffers;
	uint32_t i, most = MAPPINGS * comm->size + MAPPINGS_MORE;

	for (i = 0; i < comm->size && reads->nmappings > most; i++)
		while (reads->mappings[i])
			unmap(comm, &reads->mappings[i]);
}

/* ---- buffers of others, read ------------------------------------------- */

static int open_queue(struct fabrex_comm *comm, uint32_t port)
{
	const struct fabrex_queue_attr attr = { .sq_entries = 2 * FLYING };
	struct peer_buffers *r = comm->peer_buffers;
	int ret = 0;

	if (!r->queues[port])
		ret = fabrex_queue_create(comm->ports[port], &attr,
					  sizeof(attr), &r->queues[port]);
	if (ret)
		r->queues[port] = NULL;
	r->queue = r->queues[port];
	return ret;
}

int fxi_buffer_read(struct fabrex_comm *comm, uint32_t rank,
		    const struct peer_buffer *buffer, uint64_t offset,
		    void *addr, uint64_t length)
{
	struct peer_buffers *r = comm->peer_buffers;
	uint32_t port = fxi_link_port(comm, rank);
	int ret;

	if (r->mr)
		return -EAGAIN;
	r->rank = rank;
	ret = open_queue(comm, port);
	if (!ret)
		ret = fabrex_mr_cache_get(comm->ports[port], addr, length,
					  FABREX_MR_LOCAL_WRITE, &r->mr,
					  &r->offset);
	if (ret) {
		r->mr = NULL;
		return ret;
	}
	r->remote = (struct fabrex_remote){
		.rkey = buffer->rkey, .length = buffer->length,
		.peer = buffer->peer, .generation = buffer->generation,
	};
	r->roffset = buffer->offset + offset;
	r->length = length;
	r->posted = 0;
	r->flying = 0;
	r->status = FABREX_WC_OK;
	return 0;
}

static int post_pieces(struct peer_buffers *r)
{
	uint64_t n;
	int ret;

	while (r->posted < r->length && r->flying < FLYING &&
	       r->status == FABREX_WC_OK) {
		n = r->length - r->posted;
		n = n < PIECE ? n : PIECE;
		ret = fabrex_post_read(r->queue, r->mr, r->offset + r->posted,
				       &r->remote, r->roffset + r->posted, n,
				       0, 0);
		if (ret < 0)
			return ret == -EAGAIN ? 0 : ret;
		r->posted += n;
		r->flying++;
	}
	return 0;
}

static int take_completions(struct peer_buffers *r)
{
	struct fabrex_wc wc[FLYING];
	int i, n = fabrex_poll(r->queue, wc, FLYING);

	for (i = 0; i < n; i++)
		if (wc[i].status != FABREX_WC_OK)
			r->status = wc[i].status;
	if (n > 0)
		r->flying -= (uint32_t)n;
	return n;
}

static int read_ended(struct fabrex_comm *comm)
{
	struct peer_buffers *r = comm->peer_buffers;

	fabrex_mr_cache_put(r->mr);
	r->mr = NULL;
	if (r->status == FABREX_WC_OK)
		return 1;
	if (r->status == FABREX_WC_UNREACHABLE)
		return fxi_comm_fail(comm, r->rank, -ECONNRESET);
	if (fxi_comm_suspect(comm))
		return comm->error;
	return fxi_error(EIO, "recv: memory of peer %u cannot be read: %s; the sender keeps it as it is until its operation has ended",
			 r->remote.peer, fabrex_wc_str(r->status));
}

bool fxi_buffer_reads(const struct fabrex_comm *comm)
{
	return comm->peer_buffers->mr;
}

int fxi_buffer_read_test(struct fabrex_comm *comm)
{
	struct peer_buffers *r = comm->peer_buffers;
	int ret;

	ret = post_pieces(r);
	if (ret < 0) {
		fxi_peer_buffers_stop(comm);
		return ret;
	}
	ret = take_completions(r);
	if (ret < 0) {
		fxi_peer_buffers_stop(comm);
		return ret;
	}
	comm->moved += (uint32_t)ret;
	if (r->flying || (r->posted < r->length && r->status == FABREX_WC_OK))
		return 0;
	return read_ended(comm);
}

void fxi_peer_buffers_stop(struct fabrex_comm *comm)
{
	struct peer_buffers *r = comm->peer_buffers;

	uint32_t i;

	for (i = 0; i < comm->nports; i++) {
		fabrex_queue_destroy(r->queues[i]);
		r->queues[i] = NULL;
	}
	if (r->mr)
		fabrex_mr_cache_put(r->mr);
	r->mr = NULL;
}

void fxi_peer_buffers_free(struct fabrex_comm *comm)
{
	struct peer_buffers *r = comm->peer_buffers;
	uint32_t i;

	if (!r)
		return;
	fxi_peer_buffers_stop(comm);
	for (i = 0; r->mappings && i < comm->size; i++)
		while (r->mappings[i])
			unmap(comm, &r->mappings[i]);
	free(r->mappings);
	free(r);
	comm->peer_buffers = NULL;
}
