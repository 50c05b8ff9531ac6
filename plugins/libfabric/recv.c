// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The program receives messages: all calls of struct fi_ops_msg and
 * fi_ops_tagged that do, with peek, claim and discard. A receive takes a message
 * that is there already, or is posted. Installed by endpoint.c.
 */
#include <string.h>

#include "message.h"

#define RX_FLAGS	(FI_COMPLETION | FI_MORE | FI_MULTI_RECV)
#define TAGGED_FLAGS	(FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | \
			 FI_DISCARD)
#define MSG	(FI_RECV | FI_MSG)
#define TAGGED	(FI_RECV | FI_TAGGED)

/* Room for one message, as the program describes it. */
struct incoming {
	void *buf;
	size_t len;
	void *desc;
	const struct iovec *iov;	/* instead of these, if there are more */
	void **descs;
	size_t count;
	fi_addr_t addr;
	uint64_t tag, ignore, flags, cq_flags;
	void *context;
};

/* ---- receives ---------------------------------------------------------- */

static inline void fill(struct request *request, const struct incoming *m)
{
	struct endpoint *ep = request->ep;

	request->context = m->context;
	request->flags = m->flags;
	request->cq_flags = m->cq_flags;
	request->buf = m->buf;
	request->length = m->len;
	request->desc = m->desc;
	request->tag = m->tag;
	request->ignore = m->ignore;
	request->data = 0;
	request->addr = m->addr;
	request->cntr = CNTR_RECV;
	request->silent = ep->rx_selective && !(m->flags & FI_COMPLETION);
	request->message.parent = NULL;
	request->message.users = 0;
	request->message.total = 0;
}

static inline struct unexpected *find(struct endpoint *ep,
				      const struct incoming *m)
{
	const struct wanted wanted = {
		.tagged = m->cq_flags & FI_TAGGED,
		.tag = m->tag,
		.ignore = m->ignore,
		.addr = m->addr,
	};

	return unexpected_find(ep, &wanted);
}

static void give(struct request *request, struct unexpected *message)
{
	struct peer *peer = message->peer;

	if (deliver(request, peer, &message->arrival))
		peer_fail(peer, -ENOMEM);
	unexpected_free(message);
}

/* One for several takes all that is there and fits. */
static void post_several(struct request *request, const struct incoming *m)
{
	struct endpoint *ep = request->ep;
	struct unexpected *message;
	bool last;

	receive_post(request);
	do {
		message = find(ep, m);
		if (!message)
			break;
		last = deliver_is_last(request, message->arrival.length);
		give(request, message);
	} while (!last);
}

static bool is_known(const struct endpoint *ep, fi_addr_t addr)
{
	return addr == FI_ADDR_UNSPEC || av_address(ep->av, addr);
}

/* The only one who might send it, so that we notice if it ends. */
static __attribute__((noinline)) void post_directed(struct request *request)
{
	int error;
	struct peer *peer = peer_get(request->ep, request->addr, &error);

	if (!peer || !peer_is_gone(peer)) {
		receive_post(request);
		if (peer && peer_located(peer))
			peer_watch(peer);
		return;
	}
	request_fail(request, peer->cause);
	request_end(request, 0, FI_ADDR_NOTAVAIL);
}

static ssize_t receive_locked(struct endpoint *ep, const struct incoming *m)
{
	struct request *request = request_take(ep, true);
	struct unexpected *message;

	if (__builtin_expect(!request, 0)) {
		endpoint_progress(ep);
		return ep->failed ? -FI_ENETDOWN : -FI_EAGAIN;
	}
	fill(request, m);
	if (__builtin_expect(m->count > 1, 0) && request_vector(request, m->iov, m->descs, m->count)) {
		request_free(request);
		return -FI_ENOMEM;
	}
	if (__builtin_expect(m->flags & FI_MULTI_RECV, 0)) {
		post_several(request, m);
		return 0;
	}
	message = find(ep, m);
	if (__builtin_expect(message != NULL, 0))
		give(request, message);
	else if (__builtin_expect(m->addr != FI_ADDR_UNSPEC, 0))
		post_directed(request);
	else
		receive_post(request);
	return 0;
}

static inline ssize_t submit(struct endpoint *ep, struct incoming *m)
{
	ssize_t ret = -FI_EINVAL;

	if (__builtin_expect(!ep->takes, 0))
		return endpoint_refusal(ep);
	if (!ep->directed)
		m->addr = FI_ADDR_UNSPEC;
	domain_lock(ep->domain);
	/* Another thread may have closed it, or seen it fail. */
	if (__builtin_expect(!ep->takes, 0))
		ret = endpoint_refusal(ep);
	else if (__builtin_expect(is_known(ep, m->addr), 1))
		ret = receive_locked(ep, m);
	domain_unlock(ep->domain);
	return ret;
}

static ssize_t submit_vector(struct endpoint *ep, struct incoming *m)
{
	size_t i;

	if (m->count > IOV_LIMIT || (m->count && !m->iov))
		return -FI_EINVAL;
	for (i = 0; i < m->count; i++) {
		if (m->iov[i].iov_len > SIZE_MAX - m->len)
			return -FI_EINVAL;
		m->len += m->iov[i].iov_len;
	}
	if (m->count == 1) {
		m->buf = m->iov[0].iov_base;
		m->desc = m->descs ? m->descs[0] : NULL;
	}
	if (m->flags & FI_MULTI_RECV && m->count != 1)
		return -FI_EINVAL;
	return submit(ep, m);
}

ssize_t message_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
		     fi_addr_t addr, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	struct incoming m = {
		.buf = buf,
		.len = len,
		.desc = desc,
		.count = 1,
		.addr = addr,
		.flags = ep->rx_flags,
		.cq_flags = MSG,
		.context = context,
	};

	return submit(ep, &m);
}

ssize_t message_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
		      size_t count, fi_addr_t addr, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	struct incoming m = {
		.iov = iov,
		.descs = desc,
		.count = count,
		.addr = addr,
		.flags = ep->rx_flags,
		.cq_flags = MSG,
		.context = context,
	};

	return submit_vector(ep, &m);
}

static ssize_t bad_flags(uint64_t flags)
{
	INFO(FI_LOG_EP_DATA, "flags 0x%llx of a receive are not offered\n",
	     (unsigned long long)flags);
	return -FI_EBADFLAGS;
}

ssize_t message_recvmsg(struct fid_ep *fid, const struct fi_msg *msg,
			uint64_t flags)
{
	struct incoming m = { .cq_flags = MSG, .flags = flags };

	if (flags & ~RX_FLAGS)
		return bad_flags(flags & ~RX_FLAGS);
	if (!msg)
		return -FI_EINVAL;
	m.iov = msg->msg_iov;
	m.descs = msg->desc;
	m.count = msg->iov_count;
	m.addr = msg->addr;
	m.context = msg->context;
	return submit_vector(endpoint_of(fid), &m);
}

ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
		    fi_addr_t addr, uint64_t tag, uint64_t ignore,
		    void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	struct incoming m = {
		.buf = buf,
		.len = len,
		.desc = desc,
		.count = 1,
		.addr = addr,
		.tag = tag,
		.ignore = ignore,
		.flags = ep->rx_flags & ~FI_MULTI_RECV,
		.cq_flags = TAGGED,
		.context = context,
	};

	return submit(ep, &m);
}

ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
		     size_t count, fi_addr_t addr, uint64_t tag,
		     uint64_t ignore, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	struct incoming m = {
		.iov = iov,
		.descs = desc,
		.count = count,
		.addr = addr,
		.tag = tag,
		.ignore = ignore,
		.flags = ep->rx_flags & ~FI_MULTI_RECV,
		.cq_flags = TAGGED,
		.context = context,
	};

	return submit_vector(ep, &m);
}

/* ---- peek, claim, discard ---------------------------------------------- */

static void report(struct endpoint *ep, const struct unexpected *message,
		   void *context, uint64_t length)
{
	const struct arrival *arrival = &message->arrival;
	const struct fi_cq_tagged_entry entry = {
		.op_context = context,
		.flags = TAGGED | (arrival->has_data ? FI_REMOTE_CQ_DATA : 0),
		.len = (size_t)length,
		.data = arrival->data,
		.tag = arrival->tag,
	};

	if (ep->rx_cq)
		cq_write(ep->rx_cq, &entry, message_source(message->peer));
}

static void report_none(struct endpoint *ep, const struct incoming *m)
{
	const struct fi_cq_err_entry entry = {
		.op_context = m->context,
		.flags = TAGGED,
		.tag = m->tag,
		.err = FI_ENOMSG,
		.prov_errno = -FI_ENOMSG,
	};

	if (ep->rx_cq)
		cq_error(ep->rx_cq, &entry);
}

static void discard(struct unexpected *message)
{
	deliver_nowhere(message->peer, &message->arrival);
	unexpected_free(message);
}

static ssize_t peek(struct endpoint *ep, const struct incoming *m)
{
	struct unexpected *message = find(ep, m);

	if (!message) {
		endpoint_progress(ep);
		message = find(ep, m);
	}
	if (!message) {
		report_none(ep, m);
		return 0;
	}
	report(ep, message, m->context, message->arrival.length);
	if (m->flags & FI_CLAIM)
		unexpected_claim(ep, message, m->context);
	else if (m->flags & FI_DISCARD)
		discard(message);
	return 0;
}

static ssize_t claim(struct endpoint *ep, const struct incoming *m)
{
	struct unexpected *message = unexpected_claimed(ep, m->context);
	struct request *request;

	if (!message)
		return -FI_EINVAL;
	if (m->flags & FI_DISCARD) {
		report(ep, message, m->context, 0);
		discard(message);
		return 0;
	}
	request = request_take(ep, true);
	if (!request)
		return -FI_EAGAIN;
	fill(request, m);
	if (m->count > 1 && request_vector(request, m->iov, m->descs, m->count)) {
		request_free(request);
		return -FI_ENOMEM;
	}
	give(request, message);
	return 0;
}

static ssize_t submit_special(struct endpoint *ep, struct incoming *m)
{
	ssize_t ret;
	size_t i;

	if (!ep->takes)
		return endpoint_refusal(ep);
	if (m->count > IOV_LIMIT || (m->count && !m->iov) ||
	    (m->flags & FI_DISCARD && !(m->flags & (FI_PEEK | FI_CLAIM))) ||
	    (m->flags & FI_PEEK && m->flags & FI_CLAIM &&
	     m->flags & FI_DISCARD))
		return -FI_EINVAL;
	for (i = 0; i < m->count; i++)
		m->len += m->iov[i].iov_len;
	if (m->count == 1) {
		m->buf = m->iov[0].iov_base;
		m->desc = m->descs ? m->descs[0] : NULL;
	}
	if (!ep->directed)
		m->addr = FI_ADDR_UNSPEC;
	domain_lock(ep->domain);
	if (!ep->takes)
		ret = endpoint_refusal(ep);
	else if (!is_known(ep, m->addr))
		ret = -FI_EINVAL;
	else
		ret = m->flags & FI_PEEK ? peek(ep, m) : claim(ep, m);
	domain_unlock(ep->domain);
	return ret;
}

ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		       uint64_t flags)
{
	struct endpoint *ep = endpoint_of(fid);
	struct incoming m = { .cq_flags = TAGGED, .flags = flags };

	if (flags & ~TAGGED_FLAGS)
		return bad_flags(flags & ~TAGGED_FLAGS);
	if (!msg)
		return -FI_EINVAL;
	m.iov = msg->msg_iov;
	m.descs = msg->desc;
	m.count = msg->iov_count;
	m.addr = msg->addr;
	m.tag = msg->tag;
	m.ignore = msg->ignore;
	m.context = msg->context;
	return flags & (FI_PEEK | FI_CLAIM | FI_DISCARD) ?
	       submit_special(ep, &m) : submit_vector(ep, &m);
}
