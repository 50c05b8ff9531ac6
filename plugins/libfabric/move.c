// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Moving long messages: a read or write between the buffers of a request and
 * memory of a peer, in as many pieces as buffers, segments and the port's
 * max_transfer require. Also the processor's way to and from several buffers.
 * Used by rendezvous.c, send.c and deliver.c.
 */
#include <stdlib.h>
#include <string.h>

#include "message.h"

/* ---- buffers ----------------------------------------------------------- */

static size_t buffers_of(const struct request *request)
{
	return request->vector ? request->vector->count : 1;
}

static struct iovec buffer_of(const struct request *request, size_t i)
{
	const struct iovec one = {
		.iov_base = request->buf,
		.iov_len = (size_t)request->length,
	};

	return request->vector ? request->vector->iov[i] : one;
}

static struct local *local_of(struct request *request, size_t i)
{
	return request->vector ? &request->vector->local[i] : &request->local;
}

static void *desc_of(const struct request *request, size_t i)
{
	return request->vector ? request->vector->desc[i] : request->desc;
}

bool message_is_device(const struct request *request)
{
	size_t i;

	for (i = 0; i < buffers_of(request); i++)
		if (memory_is_device(request->ep->domain,
				     buffer_of(request, i).iov_base,
				     desc_of(request, i)))
			return true;
	return false;
}

void message_scatter(const struct request *request, const char *from,
		     uint64_t n)
{
	struct iovec buffer;
	size_t i, len;

	for (i = 0; n && i < buffers_of(request); i++) {
		buffer = buffer_of(request, i);
		len = n < buffer.iov_len ? (size_t)n : buffer.iov_len;
		if (len)
			memcpy(buffer.iov_base, from, len);
		from += len;
		n -= len;
	}
}

void message_gather(const struct request *request, char *to)
{
	struct iovec buffer;
	size_t i;

	for (i = 0; i < buffers_of(request); i++) {
		buffer = buffer_of(request, i);
		if (buffer.iov_len)
			memcpy(to, buffer.iov_base, buffer.iov_len);
		to += buffer.iov_len;
	}
}

/* ---- registering ------------------------------------------------------- */

bool move_register(struct request *request, uint32_t access, uint64_t bytes)
{
	struct domain *domain = request->ep->domain;
	struct iovec buffer;
	size_t i, len;
	int ret;

	for (i = 0; bytes && i < buffers_of(request); i++) {
		buffer = buffer_of(request, i);
		len = bytes < buffer.iov_len ? (size_t)bytes : buffer.iov_len;
		ret = local_get(domain, buffer.iov_base, len,
				desc_of(request, i), access,
				local_of(request, i));
		if (ret) {
			request_fail(request, ret);
			return false;
		}
		bytes -= len;
	}
	return true;
}

void move_describe(const struct request *request, struct segments *segments)
{
	const struct local *local;
	struct segment *segment;
	uint64_t length;
	size_t i;

	segments->count = 0;
	for (i = 0; i < buffers_of(request); i++) {
		local = request->vector ? &request->vector->local[i] :
					  &request->local;
		length = buffer_of(request, i).iov_len;
		if (!length || !local_mr(local))
			continue;
		segment = &segments->segment[segments->count++];
		segment->rkey = fabrex_mr_key(local_mr(local));
		segment->offset = local->offset;
		segment->length = length;
	}
}

/* ---- moving ------------------------------------------------------------ */

/* The buffer with the byte *at, which is made relative to it. */
static struct local *local_at(struct request *request, uint64_t *at,
			      uint64_t *rest)
{
	size_t i, n = buffers_of(request);
	uint64_t length;

	for (i = 0; i < n; i++) {
		length = buffer_of(request, i).iov_len;
		if (*at < length) {
			*rest = length - *at;
			return local_of(request, i);
		}
		*at -= length;
	}
	return NULL;
}

/* The segment with that byte: what of it begins there. */
static bool remote_at(const struct request *request, uint64_t at,
		      struct segment *rest)
{
	const struct segments *segments = request->remote;
	uint32_t i;

	if (!segments) {
		rest->rkey = request->message.rkey;
		rest->offset = request->message.roffset + at;
		rest->length = request->message.bytes - at;
		return true;
	}
	for (i = 0; i < segments->count; i++) {
		*rest = segments->segment[i];
		if (at < rest->length) {
			rest->offset += at;
			rest->length -= at;
			return true;
		}
		at -= rest->length;
	}
	return false;
}

bool move_with(struct request *request, const struct segments *segments)
{
	if (segments->count == 1) {
		request->message.rkey = segments->segment[0].rkey;
		request->message.roffset = segments->segment[0].offset;
		return true;
	}
	request->remote = malloc(sizeof(*request->remote));
	if (!request->remote) {
		request_fail(request, -ENOMEM);
		return false;
	}
	*request->remote = *segments;
	return true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The piece that begins with byte done. 0, or a cause. */
static int next_piece(struct request *request, struct fabrex_op *op)
{
	const struct domain *domain = request->ep->domain;
	const struct local *local;
	uint64_t from = request->done, rest;
	bool own = request->phase == PHASE_READ_OWN;
	struct segment to;

	local = local_at(request, &from, &rest);
	if (!local || !remote_at(request, request->done, &to))
		return CAUSE_PROTOCOL;
	if (!local_mr(local))
		return CAUSE_REGION;
	*op = (struct fabrex_op){
		.opcode = request->phase == PHASE_WRITE ? FABREX_OP_WRITE :
			  FABREX_OP_READ,
		.peer = (uint16_t)(own ? domain->attr.peer :
				   request->peer->number),
		.user_data = (uintptr_t)request,
		.mr = local_mr(local),
		.offset = local->offset + from,
		.length = least(least(rest, to.length),
				least(request->message.bytes - request->done,
				      domain->attr.max_transfer)),
		.rkey = to.rkey,
		.roffset = to.offset,
	};
	return 0;
}

static int resume(struct request *request)
{
	struct fabrex_op op;
	int ret;

	while (request->done < request->message.bytes && !request->error) {
		ret = next_piece(request, &op);
		if (!ret)
			ret = post_operation(request, &op);
		if (ret == -FI_EAGAIN)
			return ret;
		if (ret)
			request_fail(request, ret);
		else
			request->done += op.length;
	}
	/* Else the last completion ends it. */
	if (!request->posted)
		request->message.finished(request);
	return 0;
}

static void completed(struct request *request, const struct fabrex_wc *wc)
{
	if (wc && wc->status)
		request_fail(request, wc->status);
	if (request->posted ||
	    (request->done < request->message.bytes && !request->error))
		return;
	/* It may wait for room. */
	list_remove(&request->node);
	request->message.finished(request);
}

void move_begin(struct request *request,
		void (*finished)(struct request *request))
{
	request->completed = completed;
	request->resume = resume;
	request->message.finished = finished;
	if (resume(request) == -FI_EAGAIN)
		request_retry(request);
}
