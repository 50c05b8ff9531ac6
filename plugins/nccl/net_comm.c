// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A communicator, which is one way of a connection: a queue, memory that the peer
 * writes to, and memory that we write from. Used by net_connect.c and net_move.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net.h"

#define ENTRIES		256u
#define BATCH		16
/* A peer that nothing comes from is looked for so often. */
#define IDLE_CALLS	1024u
#define LOOK_NS		UINT64_C(100000000)
#define FAREWELL_NS	UINT64_C(1000000000)
/* user_data; others are 0 or requests */
#define PROBE		1u
#define FAREWELL	2u

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- opening ----------------------------------------------------------- */

static int open_memory(struct comm *comm)
{
	size_t in = comm->sends ? sizeof(struct net_send_inbox) :
				  sizeof(struct net_recv_inbox);
	size_t out = comm->sends ? sizeof(struct net_send_outbox) :
				   sizeof(struct net_recv_outbox);
	struct fabrex_port *port = comm->port->port;
	int ret;

	/* Read by probes, of nothing. */
	ret = fabrex_mr_alloc(port, in, FABREX_MR_LOCAL_WRITE |
					FABREX_MR_REMOTE_WRITE |
					FABREX_MR_REMOTE_READ, &comm->inbox);
	if (!ret)
		ret = fabrex_mr_alloc(port, out, FABREX_MR_LOCAL_WRITE,
				      &comm->outbox);
	if (ret)
		return ret;
	comm->in.send = fabrex_mr_addr(comm->inbox);
	comm->out.send = fabrex_mr_addr(comm->outbox);
	if (comm->sends)
		comm->out.send->one = 1;
	else
		comm->out.recv->one = 1;
	return 0;
}

static int open_queue(struct comm *comm)
{
	const struct fabrex_queue_attr attr = { .sq_entries = ENTRIES };

	return fabrex_queue_create(comm->port->port, &attr, sizeof(attr),
				   &comm->queue);
}

int net_comm_open(struct net_port *port, bool sends, struct comm **out)
{
	struct comm *comm = calloc(1, sizeof(*comm));
	int ret;

	if (!comm)
		return -ENOMEM;
	ret = net_port_get(port);
	if (ret) {
		free(comm);
		return ret;
	}
	comm->port = port;
	comm->sends = sends;
	ret = open_memory(comm);
	if (!ret)
		ret = open_queue(comm);
	if (ret) {
		WARN("port %s has no room for another communicator: %s",
		     port->open_as, fabrex_strerror_last());
		net_comm_close(comm);
		return ret;
	}
	*out = comm;
	return 0;
}

void net_comm_close(struct comm *comm)
{
	/* Nothing is under way after that. */
	if (comm->queue && fabrex_queue_destroy(comm->queue))
		WARN("a queue stays: %s", fabrex_strerror_last());
	if (comm->inbox)
		fabrex_mr_deregister(comm->inbox);
	if (comm->outbox)
		fabrex_mr_deregister(comm->outbox);
	net_port_put(comm->port);
	free(comm);
}

/* ---- meeting ----------------------------------------------------------- */

void net_comm_hello(const struct comm *comm, uint64_t cookie,
		    struct net_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->magic = NET_MAGIC;
	hello->version = NET_VERSION;
	hello->sends = comm->sends;
	hello->cookie = cookie;
	fabrex_mr_remote(comm->inbox, &hello->inbox);
	memcpy(hello->port, comm->port->attr.name, sizeof(hello->port));
}

bool net_comm_meet(struct comm *comm, uint32_t peer,
		   const struct net_hello *hello)
{
	size_t need = comm->sends ? sizeof(struct net_recv_inbox) :
				    sizeof(struct net_send_inbox);

	if (hello->magic != NET_MAGIC || hello->version != NET_VERSION ||
	    hello->sends == comm->sends || hello->sends > 1 ||
	    hello->inbox.peer != peer || hello->inbox.length < need ||
	    hello->port[sizeof(hello->port) - 1]) {
		WARN("peer %u is no communicator of this version of fabrex",
		     peer);
		return false;
	}
	comm->peer = hello->inbox;
	memcpy(comm->name, hello->port, sizeof(comm->name));
	return true;
}

/* ---- progress ---------------------------------------------------------- */

enum nccl_result net_comm_fail(struct comm *comm, enum nccl_result result,
			       const char *why)
{
	if (!comm->failed) {
		comm->failed = result;
		WARN("%s port %s: %s", comm->sends ? "sending to" :
		     "receiving from", comm->name, why);
	}
	return comm->failed;
}

int net_comm_put(struct comm *comm, const void *from, uint64_t to, size_t n,
		 uint8_t flags, uint64_t user_data)
{
	char *base = fabrex_mr_addr(comm->outbox);
	const struct fabrex_op op = {
		.opcode = FABREX_OP_WRITE,
		.flags = (uint8_t)(flags | (user_data ? 0 : FABREX_SQE_QUIET)),
		.peer = (uint16_t)comm->peer.peer,
		.user_data = user_data,
		.mr = comm->outbox,
		.offset = (uint64_t)((const char *)from - base),
		.length = n,
		.rkey = comm->peer.rkey,
		.roffset = to,
	};
	int ret = fabrex_post(comm->queue, &op, 1);

	return ret < 0 ? ret : 0;
}

static void probe(struct comm *comm)
{
	const struct fabrex_op op = {
		.opcode = FABREX_OP_READ,
		.peer = (uint16_t)comm->peer.peer,
		.user_data = PROBE,
		.mr = comm->outbox,
		.rkey = comm->peer.rkey,
	};

	comm->probing = fabrex_post(comm->queue, &op, 1) == 1;
}

static __attribute__((noinline)) void look(struct comm *comm)
{
	uint64_t now = now_ns();

	if (comm->probing || comm->gone || now - comm->looked_ns < LOOK_NS)
		return;
	comm->looked_ns = now;
	probe(comm);
}

static enum nccl_result result_of(int status)
{
	switch (status) {
	case FABREX_WC_RKEY:
	case FABREX_WC_RBOUNDS:
	case FABREX_WC_RACCESS:
	case FABREX_WC_RPEER:
	case FABREX_WC_RFAULT:
	case FABREX_WC_UNREACHABLE:
		return NCCL_REMOTE_ERROR;
	}
	return NCCL_SYSTEM_ERROR;
}

static void complete(struct comm *comm, const struct fabrex_wc *wc)
{
	struct net_request *request;

	/* What comes after a failure may be what says that all is well. */
	if (comm->failed)
		return;
	if (wc->status && wc->user_data == PROBE && net_comm_closed(comm)) {
		comm->gone = true;	/* with its memory, as it should */
	} else if (wc->status && wc->user_data != FAREWELL) {
		net_comm_fail(comm, result_of(wc->status),
			      fabrex_wc_str(wc->status));
		return;
	}
	if (wc->user_data == PROBE) {
		comm->probing = false;
	} else if (wc->user_data == FAREWELL) {
		comm->closing = false;
	} else if (wc->user_data) {
		request = (struct net_request *)(uintptr_t)wc->user_data;
		request->done = true;
	}
}

enum nccl_result net_comm_progress(struct comm *comm, bool idle)
{
	struct fabrex_wc wc[BATCH];
	int i, n;

	if (__builtin_expect(comm->failed, 0))
		return comm->failed;
	n = fabrex_poll(comm->queue, wc, BATCH);
	for (i = 0; i < n; i++)
		complete(comm, &wc[i]);
	if (__builtin_expect(n < 0, 0))
		net_comm_fail(comm, NCCL_SYSTEM_ERROR, fabrex_strerror_last());
	if (n > 0 || !idle)
		comm->idle = 0;
	else if (!(++comm->idle % IDLE_CALLS))
		look(comm);
	return comm->failed;
}

/* After all that was posted before, so that the peer misses nothing of it. */
void net_comm_farewell(struct comm *comm)
{
	const uint64_t *one = comm->sends ? &comm->out.send->one :
					    &comm->out.recv->one;
	uint64_t until = now_ns() + FAREWELL_NS;
	int ret;

	/* Its memory is gone, or about to be. */
	if (net_comm_closed(comm))
		return;
	do {
		net_comm_progress(comm, false);
		ret = comm->failed ? -ENETDOWN :
		      net_comm_put(comm, one, 0, sizeof(*one), 0, FAREWELL);
	} while (ret == -EAGAIN && now_ns() < until);
	comm->closing = !ret;
	while (comm->closing && !comm->failed && now_ns() < until)
		net_comm_progress(comm, false);
}

struct net_request *net_request_take(struct comm *comm, bool flush)
{
	unsigned int i = flush ? NCCL_REQUESTS_MAX : 0;
	unsigned int end = NCCL_REQUESTS_MAX + (flush ? FLUSHES : 0);
	struct net_request *request;

	for (; i < end; i++) {
		request = &comm->request[i];
		if (request->comm)
			continue;
		request->comm = comm;
		request->done = request->late = false;
		request->posted = 0;
		return request;
	}
	return NULL;
}
