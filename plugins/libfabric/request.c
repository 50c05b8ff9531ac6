// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Requests: their memory, which is kept once it was needed, and their end. Used
 * by whatever the program can ask an endpoint for.
 */
#include <stdlib.h>
#include <string.h>

#include "peer.h"

#define BLOCK		64u	/* requests allocated at once */
/* In tokens: whether the request is one of the receiving side. */
#define RX_INDEX	0x80000000u

int requests_init(struct requests *requests, size_t limit)
{
	requests->blocks = NULL;
	requests->nblocks = 0;
	requests->free = NULL;
	requests->used = 0;
	requests->limit = limit;
	return 0;
}

void requests_free(struct requests *requests)
{
	size_t i;

	for (i = 0; i < requests->nblocks; i++)
		free(requests->blocks[i]);
	free(requests->blocks);
	requests_init(requests, 0);
}

/* What was used last, and is in the processor's caches, is taken first. */
static inline void push(struct requests *requests, struct request *request)
{
	request->node.next = requests->free;
	requests->free = &request->node;
}

static inline struct request *pop(struct requests *requests)
{
	struct list *node = requests->free;

	requests->free = node->next;
	list_init(node);
	return container(node, struct request, node);
}

static void init_block(struct endpoint *ep, bool rx, struct request *block,
		       size_t first)
{
	struct requests *requests = rx ? &ep->rx : &ep->tx;
	struct request *request;
	size_t i;

	for (i = BLOCK; i-- > 0;) {
		request = &block[i];
		request->ep = ep;
		request->rx = rx;
		request->index = (uint32_t)(first + i) | (rx ? RX_INDEX : 0);
		request->generation = 1;
		request->addr = FI_ADDR_UNSPEC;
		push(requests, request);
	}
}

static bool grow(struct endpoint *ep, bool rx)
{
	struct requests *requests = rx ? &ep->rx : &ep->tx;
	size_t n = requests->nblocks;
	struct request **blocks, *block;

	/* A new table only at powers of two. */
	if (!(n & (n - 1))) {
		blocks = realloc(requests->blocks,
				 (n ? 2 * n : 1) * sizeof(*blocks));
		if (!blocks)
			return false;
		requests->blocks = blocks;
	}
	block = aligned_alloc(64, (BLOCK * sizeof(*block) + 63) & ~(size_t)63);
	if (!block)
		return false;
	memset(block, 0, BLOCK * sizeof(*block));
	requests->blocks[requests->nblocks++] = block;
	init_block(ep, rx, block, n * BLOCK);
	return true;
}

struct request *request_new_slowly(struct endpoint *ep, bool rx, bool extra)
{
	struct requests *requests = rx ? &ep->rx : &ep->tx;
	struct request *request;

	if (!extra && requests->used >= requests->limit)
		return NULL;
	if (!requests->free && !grow(ep, rx))
		return NULL;
	request = pop(requests);
	requests->used++;
	request->used = true;
	return request;
}

static void free_vector(struct request *request)
{
	struct vector *vector = request->vector;
	size_t i;

	for (i = 0; i < vector->count; i++)
		local_put(&vector->local[i]);
	free(vector);
	request->vector = NULL;
}

static void free_memory(struct request *request)
{
	free(request->remote);
	free(request->copy);
	request->remote = NULL;
	request->copy = NULL;
}

static void leave_peer(struct request *request)
{
	struct peer *peer = request->peer;

	peer->users--;
	if (request->begun && !--peer->active && peer->fences)
		peer_stir(peer);
	request->peer = NULL;
}

static __attribute__((noinline)) void give_back(struct request *request)
{
	if (request->bounce) {
		bounce_return(request->ep, request->bounce);
		request->bounce = NULL;
	}
	if (request->local.mr || request->local.region)
		local_put(&request->local);
	if (request->vector)
		free_vector(request);
	if (request->remote || request->copy)
		free_memory(request);
	if (request->slabs)
		request->peer->copies.used &= ~request->slabs;
	request->slabs = 0;
}

/* There is something to be given back; in one test, as mostly there is not. */
static inline bool has_any(const struct request *request)
{
	return (uintptr_t)request->bounce | (uintptr_t)request->local.mr |
	       (uintptr_t)request->local.region | (uintptr_t)request->vector |
	       (uintptr_t)request->remote | (uintptr_t)request->copy;
}

__attribute__((noinline, cold)) ssize_t
endpoint_refusal(const struct endpoint *ep)
{
	if (!object_is(&ep->fid.fid, FI_CLASS_EP))
		return -FI_EBADF;
	if (ep->failed)
		return -FI_ENETDOWN;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	return -FI_EOPNOTSUPP;
}

int request_vector(struct request *request, const struct iovec *iov,
		   void **desc, size_t count)
{
	struct vector *vector = calloc(1, sizeof(*vector));
	size_t i;

	if (!vector)
		return -FI_ENOMEM;
	request->vector = vector;
	vector->count = count;
	for (i = 0; i < count; i++) {
		vector->iov[i] = iov[i];
		vector->desc[i] = desc ? desc[i] : NULL;
	}
	request->buf = iov[0].iov_base;
	return 0;
}

void request_free(struct request *request)
{
	struct endpoint *ep = request->ep;
	struct requests *requests = request->rx ? &ep->rx : &ep->tx;

	if (__builtin_expect(has_any(request), 0))
		give_back(request);
	if (request->peer)
		leave_peer(request);
	request->generation++;
	request->used = false;
	request->error = 0;
	request->status = 0;
	request->posted = 0;
	request->phase = 0;
	request->begun = false;
	request->aside = false;
	request->own = false;
	request->done = 0;
	requests->used--;
	push(requests, request);
}

uint64_t request_token(const struct request *request)
{
	return (uint64_t)request->generation << 32 | request->index;
}

struct request *request_find(struct endpoint *ep, uint64_t token)
{
	uint32_t index = (uint32_t)token & ~RX_INDEX;
	struct requests *requests = (uint32_t)token & RX_INDEX ? &ep->rx :
				    &ep->tx;
	struct request *request;

	if (index / BLOCK >= requests->nblocks)
		return NULL;
	request = &requests->blocks[index / BLOCK][index % BLOCK];
	return request->used && request->generation == token >> 32 ?
	       request : NULL;
}

struct request *request_next(struct requests *requests, size_t *at)
{
	struct request *request;

	while (*at < requests->nblocks * BLOCK) {
		request = &requests->blocks[*at / BLOCK][*at % BLOCK];
		++*at;
		if (request->used)
			return request;
	}
	return NULL;
}

void request_fail(struct request *request, int cause)
{
	if (request->error)
		return;
	request->status = cause;
	request->error = fi_of_cause(cause);
}

static void report_error(struct request *request, struct cq *cq,
			 uint64_t length)
{
	const bool truncated = request->status == CAUSE_TRUNCATED;
	struct fi_cq_err_entry entry = {
		.op_context = request->context,
		.flags = request->cq_flags,
		.len = truncated ? request->length : 0,
		.buf = request->buf,
		.data = request->data,
		.tag = request->tag,
		.olen = truncated ? length - request->length : 0,
		.err = request->error,
		.prov_errno = request->status,
	};

	cq_error(cq, &entry);
}

static inline void report(const struct request *request, struct cq *cq,
			  uint64_t length, fi_addr_t source)
{
	struct cq_entry *to = cq_place(cq), other;
	bool direct = to != NULL;

	if (__builtin_expect(!direct, 0))
		to = &other;
	to->entry.op_context = request->context;
	to->entry.flags = request->cq_flags;
	to->entry.len = (size_t)length;
	to->entry.buf = request->buf;
	to->entry.data = request->data;
	to->entry.tag = request->tag;
	to->source = source;
	if (__builtin_expect(!direct, 0)) {
		cq_write(cq, &to->entry, source);
	} else {
		cq->tail++;
		wait_signal(&cq->wait);
	}
}

void request_end(struct request *request, uint64_t length, fi_addr_t source)
{
	struct endpoint *ep = request->ep;
	struct cq *cq = request->rx ? ep->rx_cq : ep->tx_cq;
	struct cntr *cntr;

	if (__builtin_expect(request->own, 0)) {
		request_free(request);
		return;
	}
	cntr = ep->cntrs[request->cntr];
	if (__builtin_expect(request->error, 0)) {
		if (cq)
			report_error(request, cq, length);
	} else if (cq && !request->silent) {
		report(request, cq, length, source);
	}
	if (cntr)
		cntr_add(cntr, !request->error);
	request_free(request);
}
