// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The program reads and writes memory of peers: struct fi_ops_rma. What is one
 * piece, here and there, is posted from here; the rest is moved piece by piece
 * (move.c). Data for the peer's completion queue goes with the last piece, or, if
 * there are several, after them, and needs a control credit. Installed by
 * endpoint.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "vaddr.h"

#define COMMON_FLAGS	(FI_COMPLETION | FI_MORE | FI_FENCE | \
			 FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
			 FI_DELIVERY_COMPLETE)
#define READ_FLAGS	COMMON_FLAGS
#define WRITE_FLAGS	(COMMON_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA)

/*
 * struct request.phase before it has begun. While it is moved it has that of a
 * message: none that peers may have tokens of.
 */
enum {
	RMA_READY,
	RMA_VIRTUAL = 64,	/* the addresses are not yet offsets */
};

/* One operation, as the program describes it. */
struct transfer {
	const void *buf;
	size_t len;
	void *desc;
	const struct iovec *iov;	/* instead of these, if there are more */
	void **descs;
	size_t count;
	const struct fi_rma_iov *rma;	/* NULL: all is at */
	size_t nrma;
	uint64_t raddr, rkey;
	fi_addr_t addr;
	uint64_t data, flags;
	void *context;
	bool read, silent;
};

static inline bool is_read(const struct request *request)
{
	return request->cntr == CNTR_READ;
}

static inline bool has_data(const struct request *request)
{
	return request->flags & FI_REMOTE_CQ_DATA;
}

/* ---- the end ----------------------------------------------------------- */

/* The peer has not used the cell, or does not exist any more. */
static void return_credit(struct peer *peer)
{
	if (peer->state == PEER_CONNECTED)
		credit_take(peer, 0, 1);
}

static inline void finish(struct request *request)
{
	if (__builtin_expect(request->error && request->begun &&
			     has_data(request), 0))
		return_credit(request->peer);
	request_end(request, request->length, FI_ADDR_NOTAVAIL);
}

static __attribute__((noinline, cold)) void
fail(struct request *request, int cause)
{
	request_fail(request, cause);
	finish(request);
}

static __attribute__((noinline, cold)) void
piece_failed(struct request *request, int status)
{
	struct peer *peer = request->peer;

	fail(request, status);
	/* Then nothing else gets there, either. */
	if (status == FABREX_WC_UNREACHABLE || status == FABREX_WC_BAD_QUEUE)
		peer_lose(peer, status);
}

/* ---- one piece --------------------------------------------------------- */

static inline int post_piece(struct request *request)
{
	const struct peer *peer = request->peer;
	const bool data = has_data(request);
	const struct fabrex_op op = {
		.opcode = is_read(request) ? FABREX_OP_READ :
			  data ? FABREX_OP_WRITE_IMM : FABREX_OP_WRITE,
		.peer = (uint16_t)peer->number,
		.imm = (uint32_t)request->data,
		.user_data = (uintptr_t)request,
		.mr = local_mr(&request->local),
		.offset = request->local.offset,
		.length = request->rma.length,
		.rkey = request->rma.rkey,
		.roffset = request->rma.roffset,
		.dest_key = data ? peer->key : 0,
	};

	if (__builtin_expect(!op.mr, 0))
		return CAUSE_REGION;
	return post_operation(request, &op);
}

/* A struct request.resume, when there was no room, or no cell. */
static int piece_again(struct request *request)
{
	int ret = request->peer->state == PEER_DEAD ? request->peer->cause :
		  post_piece(request);

	if (ret == -FI_EAGAIN)
		return ret;
	if (ret)
		fail(request, ret);
	return 0;
}

static void piece_completed(struct request *request,
			    const struct fabrex_wc *wc)
{
	if (__builtin_expect(wc && !wc->status, 1)) {
		finish(request);
		return;
	}
	/* More is promised than there are cells: the peer has to read first. */
	if (wc && wc->status == FABREX_WC_RNR && has_data(request)) {
		request_retry(request);
		return;
	}
	piece_failed(request, wc ? wc->status : CAUSE_DEAD);
}

static inline void begin_piece(struct request *request)
{
	int ret;

	request->completed = piece_completed;
	request->resume = piece_again;
	ret = post_piece(request);
	if (__builtin_expect(!ret, 1))
		return;
	if (ret == -FI_EAGAIN)
		request_retry(request);
	else
		fail(request, ret);
}

/* ---- several ----------------------------------------------------------- */

/* The data for the completion queue comes after all else. */
static void moved(struct request *request)
{
	const struct segments *remote = request->remote;
	const struct segment *last = &remote->segment[remote->count - 1];

	if (request->error) {
		piece_failed(request, request->status);
		return;
	}
	if (!has_data(request)) {
		finish(request);
		return;
	}
	local_put(&request->local);
	request->local.mr = request->ep->bounces.mr;
	request->rma.rkey = last->rkey;
	request->rma.roffset = last->offset;
	request->rma.length = 0;
	begin_piece(request);
}

static void begin_move(struct request *request)
{
	request->phase = is_read(request) ? PHASE_READ : PHASE_WRITE;
	request->message.bytes = request->length;
	move_begin(request, moved);
}

/* ---- beginning --------------------------------------------------------- */

static int to_offset(struct peer *peer, uint64_t key, uint64_t length,
		     uint64_t *address)
{
	uint64_t base = 0;
	int ret = vaddr_base(peer, key, &base);

	if (ret)
		return ret;
	if (*address < base || length > UINT64_MAX - (*address - base))
		return FABREX_WC_RBOUNDS;
	*address -= base;
	return 0;
}

/* Each of them once: what is an offset already has length and rest behind it. */
static int to_offsets(struct request *request)
{
	struct segments *remote = request->remote;
	struct peer *peer = request->peer;
	struct segment *segment;
	int ret = 0;

	if (!remote)
		return to_offset(peer, request->rma.rkey, request->rma.length,
				 &request->rma.roffset);
	while (request->done < remote->count) {
		segment = &remote->segment[request->done];
		ret = to_offset(peer, segment->rkey, segment->length,
				&segment->offset);
		if (ret)
			return ret;
		request->done++;
	}
	request->done = 0;
	return 0;
}

/* 0, -FI_EAGAIN, or a cause. */
static __attribute__((noinline)) int prepare_start(struct request *request)
{
	struct peer *peer = request->peer;
	int ret;

	if (request->flags & FI_FENCE && peer->active)
		return -FI_EAGAIN;
	if (request->phase == RMA_VIRTUAL) {
		ret = to_offsets(request);
		if (ret)
			return ret;
		request->phase = RMA_READY;
	}
	if (!has_data(request))
		return 0;
	return peer->state == PEER_CONNECTED && credit_take_control(peer) ?
	       0 : -FI_EAGAIN;
}

/* A struct request.resume. -FI_EAGAIN: it has not begun; else it goes on. */
static int start(struct request *request)
{
	struct peer *peer = request->peer;
	int ret;

	if (__builtin_expect(!peer_located(peer), 0))
		return -FI_EAGAIN;
	if (__builtin_expect(request->phase == RMA_VIRTUAL ||
			     request->flags & (FI_FENCE | FI_REMOTE_CQ_DATA),
			     0)) {
		ret = prepare_start(request);
		if (ret == -FI_EAGAIN)
			return ret;
		if (ret) {
			fail(request, ret);
			return 0;
		}
	}
	request_begin(request);
	if (__builtin_expect(request->remote != NULL, 0))
		begin_move(request);
	else
		begin_piece(request);
	return 0;
}

/* ---- requests ---------------------------------------------------------- */

static inline void fill(struct request *request, const struct transfer *t)
{
	request->resume = start;
	request->context = t->context;
	request->flags = t->flags;
	request->cq_flags = FI_RMA | (t->read ? FI_READ : FI_WRITE);
	request->buf = (char *)(uintptr_t)t->buf;
	request->length = t->len;
	request->desc = t->desc;
	request->tag = 0;
	request->data = t->data;
	request->addr = t->addr;
	request->cntr = t->read ? CNTR_READ : CNTR_WRITE;
	request->silent = t->silent;
	request->aside = true;
	request->phase = request->ep->domain->virt_addr ? RMA_VIRTUAL :
							  RMA_READY;
	request->rma.rkey = t->rkey;
	request->rma.roffset = t->raddr;
	request->rma.length = t->len;
}

static void gather(char *to, const struct transfer *t)
{
	size_t i;

	if (t->count == 1) {
		memcpy(to, t->buf, t->len);
		return;
	}
	for (i = 0; i < t->count; i++) {
		if (t->iov[i].iov_len)
			memcpy(to, t->iov[i].iov_base, t->iov[i].iov_len);
		to += t->iov[i].iov_len;
	}
}

/* Copied now: the program may use its buffers again, and none is registered. */
static inline bool take_bounce(struct request *request,
			       const struct transfer *t)
{
	struct endpoint *ep = request->ep;
	struct bounce *bounce = bounce_take(ep, t->len);

	if (!bounce)
		return false;
	gather(bounce->data, t);
	request->bounce = bounce;
	request->local.mr = ep->bounces.mr;
	request->local.offset = bounce->offset;
	return true;
}

static bool is_device(const struct endpoint *ep, const struct transfer *t)
{
	size_t i;

	if (!ep->hmem || !t->len)
		return false;
	if (t->count == 1)
		return memory_is_device(ep->domain, t->buf, t->desc);
	for (i = 0; i < t->count; i++)
		if (memory_is_device(ep->domain, t->iov[i].iov_base,
				     t->descs ? t->descs[i] : NULL))
			return true;
	return false;
}

static __attribute__((noinline)) int take_injected(struct request *request,
						   const struct transfer *t)
{
	const struct endpoint *ep = request->ep;

	if (t->len > ep->inject_size || is_device(ep, t)) {
		INFO(FI_LOG_EP_DATA,
		     "%zu bytes cannot be injected: inject_size is %zu, and not for memory of devices\n",
		     t->len, ep->inject_size);
		return -FI_EINVAL;
	}
	return take_bounce(request, t) ? 0 : -FI_EAGAIN;
}

/* Its local memory. */
static inline int take_local(struct request *request,
			     const struct transfer *t)
{
	struct endpoint *ep = request->ep;

	if (__builtin_expect(!t->len, 0)) {
		request->local.mr = ep->bounces.mr;
		return 0;
	}
	if (t->flags & FI_INJECT)
		return take_injected(request, t);
	/* Little memory costs less to copy than to look up. */
	if (!t->read && t->len <= BOUNCE_SMALL && !ep->hmem &&
	    (!t->desc || t->count > 1) && take_bounce(request, t))
		return 0;
	if (__builtin_expect(t->count > 1, 0)) {
		int ret = request_vector(request, t->iov, t->descs, t->count);

		if (ret)
			return ret;
	} else {
		return local_get(ep->domain, t->buf, t->len, t->desc,
				 t->read ? FABREX_MR_LOCAL_WRITE : 0,
				 &request->local);
	}
	if (move_register(request, t->read ? FABREX_MR_LOCAL_WRITE : 0,
			  request->length))
		return 0;
	return -request->error;
}

/* Where it goes to, if it cannot be posted as one piece. */
static __attribute__((noinline)) int take_remote(struct request *request,
						 const struct transfer *t)
{
	struct segments *remote = malloc(sizeof(*remote));
	size_t i;

	if (!remote)
		return -FI_ENOMEM;
	request->remote = remote;
	if (!t->rma) {
		remote->count = 1;
		remote->segment[0] = (struct segment){ t->rkey, t->raddr,
						       t->len };
		return 0;
	}
	remote->count = (uint32_t)t->nrma;
	for (i = 0; i < t->nrma; i++)
		remote->segment[i] = (struct segment){
			t->rma[i].key, t->rma[i].addr, t->rma[i].len,
		};
	return 0;
}

static inline int take_memory(struct request *request,
			      const struct transfer *t)
{
	int ret = take_local(request, t);

	if (__builtin_expect(ret, 0))
		return ret;
	if (__builtin_expect(request->vector || t->rma ||
			     t->len > request->ep->domain->attr.max_transfer,
			     0))
		return take_remote(request, t);
	return 0;
}

/* ---- calls ------------------------------------------------------------- */

static __attribute__((noinline)) ssize_t refuse(struct request *request,
						ssize_t error)
{
	struct endpoint *ep = request->ep;

	request_free(request);
	return error == -FI_EAGAIN ? endpoint_is_full(ep) : error;
}

static inline ssize_t transfer_locked(struct endpoint *ep,
				      const struct transfer *t)
{
	struct request *request;
	struct peer *peer;
	int ret;

	/* Those that had to wait for room have theirs first. */
	if (__builtin_expect(ep->posted >= ep->posted_max ||
			     ep->todo & TODO_RETRY, 0))
		return endpoint_is_full(ep);
	request = request_new(ep);
	if (__builtin_expect(!request, 0))
		return endpoint_is_full(ep);
	peer = peer_get(ep, t->addr, &ret);
	if (__builtin_expect(!peer, 0)) {
		request_free(request);
		return ret;
	}
	fill(request, t);
	request_bind(request, peer);
	ret = take_memory(request, t);
	if (__builtin_expect(ret, 0))
		return refuse(request, ret);
	/* What is fenced does not overtake what waits. */
	if (__builtin_expect(peer_reachable(peer) &&
			     (!(t->flags & FI_FENCE) ||
			      list_empty(&peer->pending)) &&
			     !start(request), 1))
		return 0;
	peer_wait(request, has_data(request) || request->phase == RMA_VIRTUAL);
	return 0;
}

static inline ssize_t submit(struct endpoint *ep, const struct transfer *t)
{
	const uint64_t caps = FI_RMA | (t->read ? FI_READ : FI_WRITE);
	ssize_t ret;

	if (__builtin_expect(!ep->enabled || ~ep->info->caps & caps, 0))
		return endpoint_refusal(ep);
	if (__builtin_expect(t->len > MAX_MESSAGE, 0))
		return -FI_EMSGSIZE;
	domain_lock(ep->domain);
	ret = transfer_locked(ep, t);
	domain_unlock(ep->domain);
	return ret;
}

static inline bool is_silent(const struct endpoint *ep, uint64_t flags)
{
	return ep->tx_selective && !(flags & FI_COMPLETION);
}

/* ---- calls with one buffer --------------------------------------------- */

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t addr, uint64_t raddr, uint64_t key,
			void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const uint64_t flags = ep->tx_flags & READ_FLAGS;
	const struct transfer t = {
		.buf = buf,
		.len = len,
		.desc = desc,
		.count = 1,
		.raddr = raddr,
		.rkey = key,
		.addr = addr,
		.flags = flags,
		.context = context,
		.read = true,
		.silent = is_silent(ep, flags),
	};

	return submit(ep, &t);
}

static __attribute__((always_inline)) inline ssize_t
write_one(struct fid_ep *fid, const void *buf, size_t len, void *desc,
	  uint64_t data, fi_addr_t addr, uint64_t raddr, uint64_t key,
	  uint64_t extra, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	const uint64_t flags = ep->tx_flags | extra;
	const struct transfer t = {
		.buf = buf,
		.len = len,
		.desc = desc,
		.count = 1,
		.raddr = raddr,
		.rkey = key,
		.addr = addr,
		.data = data,
		.flags = flags,
		.context = context,
		.silent = is_silent(ep, flags),
	};

	return submit(ep, &t);
}

static __attribute__((always_inline)) inline ssize_t
inject_one(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
	   fi_addr_t addr, uint64_t raddr, uint64_t key, uint64_t extra)
{
	const struct transfer t = {
		.buf = buf,
		.len = len,
		.count = 1,
		.raddr = raddr,
		.rkey = key,
		.addr = addr,
		.data = data,
		.flags = FI_INJECT | extra,
		.silent = true,
	};

	return submit(endpoint_of(fid), &t);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len,
			 void *desc, fi_addr_t addr, uint64_t raddr,
			 uint64_t key, void *context)
{
	return write_one(fid, buf, len, desc, 0, addr, raddr, key, 0, context);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t addr,
			     uint64_t raddr, uint64_t key, void *context)
{
	return write_one(fid, buf, len, desc, data, addr, raddr, key,
			 FI_REMOTE_CQ_DATA, context);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len,
			  fi_addr_t addr, uint64_t raddr, uint64_t key)
{
	return inject_one(fid, buf, len, 0, addr, raddr, key, 0);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t addr, uint64_t raddr,
			      uint64_t key)
{
	return inject_one(fid, buf, len, data, addr, raddr, key,
			  FI_REMOTE_CQ_DATA);
}

/* ---- calls with several ------------------------------------------------ */

static ssize_t add_buffers(struct transfer *t)
{
	size_t i;

	if (!t->count)
		t->count = 1;	/* of nothing */
	else if (!t->iov || t->count > IOV_LIMIT)
		return -FI_EINVAL;
	for (i = 0; t->iov && i < t->count; i++) {
		if (t->iov[i].iov_len > MAX_MESSAGE)
			return -FI_EMSGSIZE;
		t->len += t->iov[i].iov_len;
	}
	if (t->count == 1 && t->iov) {
		t->buf = t->iov[0].iov_base;
		t->desc = t->descs ? t->descs[0] : NULL;
	}
	return 0;
}

/* As many bytes there as here. */
static ssize_t add_places(struct transfer *t)
{
	uint64_t length = 0;
	size_t i;

	if (!t->rma || !t->nrma || t->nrma > IOV_LIMIT)
		return -FI_EINVAL;
	for (i = 0; i < t->nrma; i++) {
		if (t->rma[i].len > MAX_MESSAGE)
			return -FI_EMSGSIZE;
		length += t->rma[i].len;
	}
	if (length != t->len) {
		INFO(FI_LOG_EP_DATA,
		     "%zu bytes here and %llu there: give as many\n", t->len,
		     (unsigned long long)length);
		return -FI_EINVAL;
	}
	if (t->nrma == 1) {
		t->raddr = t->rma[0].addr;
		t->rkey = t->rma[0].key;
		t->rma = NULL;
	}
	return 0;
}

static ssize_t submit_vector(struct fid_ep *fid, const struct iovec *iov,
			     void **descs, size_t count, fi_addr_t addr,
			     uint64_t raddr, uint64_t key, uint64_t flags,
			     bool read, void *context)
{
	struct endpoint *ep = endpoint_of(fid);
	struct transfer t = {
		.iov = count ? iov : NULL,
		.descs = descs,
		.count = count,
		.raddr = raddr,
		.rkey = key,
		.addr = addr,
		.flags = flags,
		.context = context,
		.read = read,
		.silent = is_silent(ep, flags),
	};
	ssize_t ret = add_buffers(&t);

	return ret ? ret : submit(ep, &t);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t addr,
			 uint64_t raddr, uint64_t key, void *context)
{
	return submit_vector(fid, iov, desc, count, addr, raddr, key,
			     endpoint_of(fid)->tx_flags & READ_FLAGS, true,
			     context);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t addr,
			  uint64_t raddr, uint64_t key, void *context)
{
	return submit_vector(fid, iov, desc, count, addr, raddr, key,
			     endpoint_of(fid)->tx_flags, false, context);
}

static ssize_t submit_msg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			  uint64_t flags, bool read)
{
	const uint64_t known = read ? READ_FLAGS : WRITE_FLAGS;
	struct endpoint *ep = endpoint_of(fid);
	struct transfer t = {
		.flags = flags,
		.read = read,
		.silent = is_silent(ep, flags),
	};
	ssize_t ret;

	if (flags & ~known) {
		INFO(FI_LOG_EP_DATA, "flags 0x%llx of a %s are not offered\n",
		     (unsigned long long)(flags & ~known),
		     read ? "read" : "write");
		return -FI_EBADFLAGS;
	}
	if (!msg)
		return -FI_EINVAL;
	t.iov = msg->iov_count ? msg->msg_iov : NULL;
	t.descs = msg->desc;
	t.count = msg->iov_count;
	t.rma = msg->rma_iov;
	t.nrma = msg->rma_iov_count;
	t.addr = msg->addr;
	t.data = msg->data;
	t.context = msg->context;
	ret = add_buffers(&t);
	if (!ret)
		ret = add_places(&t);
	return ret ? ret : submit(ep, &t);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			   uint64_t flags)
{
	return submit_msg(fid, msg, flags, true);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg,
			    uint64_t flags)
{
	return submit_msg(fid, msg, flags, false);
}

struct fi_ops_rma rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
