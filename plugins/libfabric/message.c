// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The program sends messages: all calls of struct fi_ops_msg and fi_ops_tagged
 * that do. A call makes a request, which is sent at once if the peer is ready,
 * and else waits, in order. Installed by endpoint.c.
 */
#include <string.h>

#include "message.h"

#define TX_FLAGS	(FI_COMPLETION | FI_MORE | FI_INJECT | FI_FENCE | \
			 FI_REMOTE_CQ_DATA | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_MATCH_COMPLETE)
#define CONFIRMED	(FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)

/* Several buffers. */
struct parts {
	const struct iovec *iov;
	void **desc;
	size_t count, len;
};

/* ---- refusals ---------------------------------------------------------- */

static __attribute__((noinline, cold)) ssize_t
bad_inject(const struct request *request)
{
	INFO(FI_LOG_EP_DATA,
	     "%zu bytes cannot be injected: inject_size is %zu, and not for memory of devices\n",
	     (size_t)request->length, request->ep->inject_size);
	return -FI_EINVAL;
}

/* ---- what is not sent at once ------------------------------------------ */

/* The program may use its buffer again when this returns 0. */
static int keep_injected(struct request *request)
{
	size_t size = send_size(request);
	struct bounce *bounce = bounce_take(request->ep, size);

	if (!bounce)
		return -FI_EAGAIN;
	send_compose(request, bounce->data);
	request->bounce = bounce;
	request->message.size = (uint16_t)size;
	return 0;
}

static ssize_t wait_for(struct request *request)
{
	int ret = 0;

	if (request->flags & FI_INJECT && request->length &&
	    !request->bounce && !request->copy)
		ret = keep_injected(request);
	if (ret)
		request_free(request);
	else
		peer_wait(request, true);
	return ret;
}

/* Anything but a short message to a peer that is ready. */
static __attribute__((noinline)) ssize_t send_slowly(struct request *request,
						     const struct parts *parts)
{
	struct endpoint *ep = request->ep;
	ssize_t ret = parts ? request_vector(request, parts->iov, parts->desc,
					     parts->count) : 0;

	if (ep->hmem && request->length)
		request->message.direct = message_is_device(request);
	if (!ret && request->flags & FI_INJECT &&
	    (request->length > ep->inject_size || request->message.direct))
		ret = bad_inject(request);
	if (request->flags & CONFIRMED && !request->silent)
		request->message.kind |= WIRE_DELIVERY;
	if (!ret)
		ret = peer_ready(request->peer) ? send_start(request) :
		      -FI_EAGAIN;
	if (ret == -FI_EAGAIN)
		return wait_for(request);
	if (ret)
		request_free(request);
	return ret;
}

/* As many as it may have are outstanding. */
static __attribute__((noinline)) ssize_t no_request(struct endpoint *ep)
{
	endpoint_progress(ep);
	return ep->failed ? -FI_ENETDOWN : -FI_EAGAIN;
}

static __attribute__((noinline)) ssize_t no_peer(struct request *request,
						 int error)
{
	request_free(request);
	return error;
}

/* ---- sending ----------------------------------------------------------- */

#define UNUSUAL		(FI_FENCE | CONFIRMED)

/* A short one to a peer that is ready: there is all that it needs. */
static __attribute__((always_inline)) inline bool
send_quickly(struct request *request, struct peer *peer, size_t head)
{
	struct endpoint *ep = request->ep;
	size_t size = head + (size_t)request->length;
	struct bounce *bounce;

	if (__builtin_expect(!peer_ready(peer) || !peer->data ||
			     size > BOUNCE_SMALL ||
			     ep->bounces.nsmall <= BOUNCE_RESERVED, 0))
		return false;
	bounce = bounce_pop(&ep->bounces.small, &ep->bounces.nsmall);
	send_compose(request, bounce->data);
	peer->data--;
	request_begin(request);
	datagram_send(peer, (enum wire_kind)request->message.kind, bounce,
		      size, request);
	return true;
}

/* Inlined with a constant kind, and so cq_flags. */
static __attribute__((always_inline)) inline ssize_t
send_locked(struct endpoint *ep, const void *buf, size_t len, void *desc,
	    fi_addr_t addr, uint64_t tag, uint64_t data, unsigned int kind,
	    uint64_t flags, bool silent, void *context,
	    const struct parts *parts)
{
	struct request *request = request_new(ep);
	struct peer *peer;
	int error;

	if (__builtin_expect(!request, 0))
		return no_request(ep);
	peer = peer_get(ep, addr, &error);
	if (__builtin_expect(!peer, 0))
		return no_peer(request, error);
	request->completed = send_completed;
	request->resume = send_start;
	request->context = context;
	request->flags = flags;
	request->cq_flags = kind & WIRE_TAGGED ? FI_SEND | FI_TAGGED :
						 FI_SEND | FI_MSG;
	request->buf = (char *)(uintptr_t)buf;
	request->length = len;
	request->desc = desc;
	request->tag = tag;
	request->data = data;
	request->addr = addr;
	request->cntr = CNTR_SEND;
	request->silent = silent;
	request->message.kind = (uint8_t)kind;
	request->message.direct = false;
	request_bind(request, peer);
	if (__builtin_expect(!parts && !ep->hmem && !(flags & UNUSUAL), 1) &&
	    send_quickly(request, peer, wire_eager_head(kind)))
		return 0;
	return send_slowly(request, parts);
}

static __attribute__((always_inline)) inline ssize_t
send_any(struct endpoint *ep, const void *buf, size_t len, void *desc,
	 fi_addr_t addr, uint64_t tag, uint64_t data, unsigned int kind,
	 uint64_t flags, bool silent, void *context, const struct parts *parts)
{
	ssize_t ret;

	if (__builtin_expect(!ep->sends || len > MAX_MESSAGE, 0))
		return ep->sends ? -FI_EMSGSIZE : endpoint_refusal(ep);
	domain_lock(ep->domain);
	/* Another thread may have closed it, or seen it fail. */
	if (__builtin_expect(!ep->sends, 0))
		ret = endpoint_refusal(ep);
	else
		ret = send_locked(ep, buf, len, desc, addr, tag, data, kind,
				  flags, silent, context, parts);
	domain_unlock(ep->domain);
	return ret;
}

/* ---- calls with one buffer --------------------------------------------- */

static __attribute__((always_inline)) inline ssize_t
send_one(struct fid_ep *fid, const void *buf, size_t len, void *desc,
	 fi_addr_t addr, uint64_t tag, uint64_t data, unsigned int kind,
	 void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const uint64_t flags = ep->tx_flags |
			       (kind & WIRE_DATA ? FI_REMOTE_CQ_DATA : 0);

	return send_any(ep, buf, len, desc, addr, tag, data, kind, flags,
			ep->tx_selective && !(flags & FI_COMPLETION), context,
			NULL);
}

static __attribute__((always_inline)) inline ssize_t
inject_one(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr,
	   uint64_t tag, uint64_t data, unsigned int kind)
{
	const uint64_t flags = FI_INJECT |
			       (kind & WIRE_DATA ? FI_REMOTE_CQ_DATA : 0);

	return send_any(endpoint_of(fid), buf, len, NULL, addr, tag, data, kind,
			flags, true, NULL, NULL);
}

ssize_t message_send(struct fid_ep *fid, const void *buf, size_t len,
		     void *desc, fi_addr_t addr, void *context)
{
	return send_one(fid, buf, len, desc, addr, 0, 0, 0, context);
}

ssize_t message_senddata(struct fid_ep *fid, const void *buf, size_t len,
			 void *desc, uint64_t data, fi_addr_t addr,
			 void *context)
{
	return send_one(fid, buf, len, desc, addr, 0, data, WIRE_DATA, context);
}

ssize_t message_inject(struct fid_ep *fid, const void *buf, size_t len,
		       fi_addr_t addr)
{
	return inject_one(fid, buf, len, addr, 0, 0, 0);
}

ssize_t message_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			   uint64_t data, fi_addr_t addr)
{
	return inject_one(fid, buf, len, addr, 0, data, WIRE_DATA);
}

ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
		    fi_addr_t addr, uint64_t tag, void *context)
{
	return send_one(fid, buf, len, desc, addr, tag, 0, WIRE_TAGGED,
			context);
}

ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len,
			void *desc, uint64_t data, fi_addr_t addr,
			uint64_t tag, void *context)
{
	return send_one(fid, buf, len, desc, addr, tag, data,
			WIRE_TAGGED | WIRE_DATA, context);
}

ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len,
		      fi_addr_t addr, uint64_t tag)
{
	return inject_one(fid, buf, len, addr, tag, 0, WIRE_TAGGED);
}

ssize_t tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			  uint64_t data, fi_addr_t addr, uint64_t tag)
{
	return inject_one(fid, buf, len, addr, tag, data,
			  WIRE_TAGGED | WIRE_DATA);
}

/* ---- calls with several ------------------------------------------------ */

static ssize_t check_parts(struct parts *parts, uint64_t flags)
{
	size_t i;

	if (flags & ~TX_FLAGS) {
		INFO(FI_LOG_EP_DATA, "flags 0x%llx of a send are not offered\n",
		     (unsigned long long)(flags & ~TX_FLAGS));
		return -FI_EBADFLAGS;
	}
	if (parts->count > IOV_LIMIT || (parts->count && !parts->iov))
		return -FI_EINVAL;
	for (i = 0; i < parts->count; i++) {
		if (parts->iov[i].iov_len > MAX_MESSAGE)
			return -FI_EMSGSIZE;
		parts->len += parts->iov[i].iov_len;
	}
	return 0;
}

static ssize_t send_parts(struct fid_ep *fid, struct parts *parts,
			  fi_addr_t addr, uint64_t tag, uint64_t data,
			  unsigned int kind, uint64_t flags, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const void *buf = NULL;
	void *desc = NULL;
	ssize_t ret = check_parts(parts, flags);

	if (ret)
		return ret;
	if (parts->count) {
		buf = parts->iov[0].iov_base;
		desc = parts->desc ? parts->desc[0] : NULL;
	}
	if (flags & FI_REMOTE_CQ_DATA)
		kind |= WIRE_DATA;
	return send_any(ep, buf, parts->len, desc, addr, tag, data, kind, flags,
			ep->tx_selective && !(flags & FI_COMPLETION), context,
			parts->count > 1 ? parts : NULL);
}

ssize_t message_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
		      size_t count, fi_addr_t addr, void *context)
{
	struct parts parts = { .iov = iov, .desc = desc, .count = count };

	return send_parts(fid, &parts, addr, 0, 0, 0,
			  endpoint_of(fid)->tx_flags, context);
}

ssize_t message_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			uint64_t flags)
{
	struct parts parts;

	if (!msg)
		return -FI_EINVAL;
	parts = (struct parts){
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.count = msg->iov_count,
	};
	return send_parts(fid, &parts, msg->addr, 0, msg->data, 0, flags,
			  msg->context);
}

ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
		     size_t count, fi_addr_t addr, uint64_t tag, void *context)
{
	struct parts parts = { .iov = iov, .desc = desc, .count = count };

	return send_parts(fid, &parts, addr, tag, 0, WIRE_TAGGED,
			  endpoint_of(fid)->tx_flags, context);
}

ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		       uint64_t flags)
{
	struct parts parts;

	if (!msg)
		return -FI_EINVAL;
	parts = (struct parts){
		.iov = msg->msg_iov,
		.desc = msg->desc,
		.count = msg->iov_count,
	};
	return send_parts(fid, &parts, msg->addr, msg->tag, msg->data,
			  WIRE_TAGGED, flags, msg->context);
}
