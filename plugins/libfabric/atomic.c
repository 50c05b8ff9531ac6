// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The program asks for atomic operations: all calls of struct fi_ops_atomic, and
 * which of them are offered. A call makes a request, which is begun at once if
 * the peer is known, and else waits. Installed by endpoint.c and domain.c.
 */
#include <stdlib.h>
#include <string.h>

#include "atomic.h"

#define FLAGS		(FI_COMPLETION | FI_MORE | FI_INJECT | FI_FENCE | \
			 FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
			 FI_DELIVERY_COMPLETE)

/* Buffers of one sort, as the program describes them. */
struct buffers {
	const struct fi_ioc *iov;
	void **descs;
	size_t count;
};

/* One operation. */
struct wish {
	enum fi_datatype datatype;
	enum fi_op op;
	enum atomic_call call;
	struct buffers operand, compare, result;
	const struct fi_rma_ioc *target;
	size_t targets;
	fi_addr_t addr;
	uint64_t flags;
	void *context;
	bool silent;
};

/* ---- refusals ---------------------------------------------------------- */

static __attribute__((noinline, cold)) ssize_t
refuse(ssize_t error, const char *why)
{
	INFO(FI_LOG_EP_DATA, "atomic operation: %s\n", why);
	return error;
}

static bool has_operand(const struct wish *wish)
{
	return wish->op != FI_ATOMIC_READ;
}

/* Elements; more than there may be: SIZE_MAX. */
static size_t elements(const struct buffers *buffers)
{
	size_t i, n = 0;

	if (buffers->count > IOV_LIMIT || (buffers->count && !buffers->iov))
		return SIZE_MAX;
	for (i = 0; i < buffers->count; i++) {
		if (buffers->iov[i].count > ATOMIC_MAX ||
		    (buffers->iov[i].count && !buffers->iov[i].addr))
			return SIZE_MAX;
		n += buffers->iov[i].count;
	}
	return n;
}

/* As many of each, at least one. */
static ssize_t check_counts(const struct wish *wish)
{
	size_t i, n = 0;

	if (!wish->target || !wish->targets || wish->targets > IOV_LIMIT ||
	    wish->operand.count > IOV_LIMIT)
		return refuse(-FI_EINVAL,
			      "give 1 to 4 targets, and 4 buffers at most");
	for (i = 0; i < wish->targets; i++) {
		if (wish->target[i].count > ATOMIC_MAX)
			return -FI_EMSGSIZE;
		n += wish->target[i].count;
	}
	if (n * atomic_size(wish->datatype) > ATOMIC_MAX)
		return -FI_EMSGSIZE;
	if (!n || (has_operand(wish) && elements(&wish->operand) != n) ||
	    (wish->call == ATOMIC_COMPARE && elements(&wish->compare) != n) ||
	    (wish->call != ATOMIC_BASE && elements(&wish->result) != n))
		return refuse(-FI_EINVAL,
			      "give as many operands and results as targets, and their addresses");
	return 0;
}

static bool any_device(const struct endpoint *ep,
		       const struct buffers *buffers)
{
	size_t i;

	for (i = 0; i < buffers->count; i++)
		if (memory_is_device(ep->domain, buffers->iov[i].addr,
				     buffers->descs ? buffers->descs[i] :
						      NULL))
			return true;
	return false;
}

/* The processor computes. Targets may be anywhere. */
static ssize_t check_devices(const struct endpoint *ep,
			     const struct wish *wish)
{
	if (!ep->hmem)
		return 0;
	if ((has_operand(wish) && any_device(ep, &wish->operand)) ||
	    (wish->call == ATOMIC_COMPARE && any_device(ep, &wish->compare)) ||
	    (wish->call != ATOMIC_BASE && any_device(ep, &wish->result)))
		return refuse(-FI_EOPNOTSUPP,
			      "operands and results cannot be memory of a device: copy them");
	return 0;
}

static ssize_t check(const struct endpoint *ep, const struct wish *wish)
{
	ssize_t ret;

	if (!atomic_offered(wish->datatype, wish->op, wish->call))
		return refuse(-FI_EOPNOTSUPP,
			      "not for this type: see fi_query_atomic()");
	ret = check_counts(wish);
	return ret ? ret : check_devices(ep, wish);
}

/* ---- requests ---------------------------------------------------------- */

static uint64_t bytes_of(const struct wish *wish)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < wish->targets; i++)
		n += wish->target[i].count;
	return n * atomic_size(wish->datatype);
}

/* So many words at a time as could ever be of use. */
static uint32_t lanes_for(uint64_t bytes, size_t targets)
{
	uint64_t words = bytes / 8 + 2 * targets;

	if (bytes <= 8 && targets == 1)
		words = bytes == 8 ? 2 : 1;
	return words < ATOMIC_LANES ? (uint32_t)words : ATOMIC_LANES;
}

static void refer(struct atomic_memory *memory, const struct buffers *buffers,
		  size_t size)
{
	size_t i;

	memory->count = (uint32_t)buffers->count;
	for (i = 0; i < buffers->count; i++) {
		memory->part[i].base = buffers->iov[i].addr;
		memory->part[i].bytes = buffers->iov[i].count * size;
	}
}

/* What was injected, behind the lanes. */
static char *copy(struct atomic_memory *memory, const struct buffers *buffers,
		  size_t size, char *to)
{
	char *begin = to;
	size_t i, n;

	for (i = 0; i < buffers->count; i++) {
		n = buffers->iov[i].count * size;
		if (n)
			memcpy(to, buffers->iov[i].addr, n);
		to += n;
	}
	memory->count = 1;
	memory->part[0].base = begin;
	memory->part[0].bytes = (uint64_t)(to - begin);
	return to;
}

static void take_memory(struct atomic *a, const struct wish *wish, char *room)
{
	size_t size = atomic_size(wish->datatype);

	a->operand.count = a->compare.count = a->result.count = 0;
	if (wish->call != ATOMIC_BASE)
		refer(&a->result, &wish->result, size);
	if (wish->flags & FI_INJECT) {
		if (has_operand(wish))
			room = copy(&a->operand, &wish->operand, size, room);
		if (wish->call == ATOMIC_COMPARE)
			copy(&a->compare, &wish->compare, size, room);
		return;
	}
	if (has_operand(wish))
		refer(&a->operand, &wish->operand, size);
	if (wish->call == ATOMIC_COMPARE)
		refer(&a->compare, &wish->compare, size);
}

static struct atomic *atomic_new(const struct wish *wish)
{
	uint64_t bytes = bytes_of(wish);
	uint32_t lanes = lanes_for(bytes, wish->targets), i;
	size_t fixed = sizeof(struct atomic) +
		       lanes * sizeof(struct atomic_lane);
	struct atomic *a;

	a = malloc(fixed + (wish->flags & FI_INJECT ? 2 * (size_t)bytes : 0));
	if (!a)
		return NULL;
	a->datatype = wish->datatype;
	a->op = wish->op;
	a->targets = (uint32_t)wish->targets;
	for (i = 0; i < wish->targets; i++) {
		a->target[i].addr = wish->target[i].addr;
		a->target[i].key = wish->target[i].key;
		a->target[i].bytes = wish->target[i].count *
				     atomic_size(wish->datatype);
	}
	a->resolved = a->which = a->head = a->tail = 0;
	a->within = a->at = 0;
	a->bytes = bytes;
	a->lanes = lanes;
	for (i = 0; i < lanes; i++) {
		a->lane[i].step = STEP_IDLE;
		a->lane[i].flying = a->lane[i].entered = false;
	}
	take_memory(a, wish, (char *)a + fixed);
	return a;
}

static int fill(struct request *request, const struct wish *wish)
{
	struct atomic *a = atomic_new(wish);
	uint32_t i;

	if (!a)
		return -FI_ENOMEM;
	request->copy = (char *)a;
	for (i = 0; i < a->lanes; i++)
		a->lane[i].request = request;
	request->resume = atomic_start;
	request->completed = atomic_completed;
	request->context = wish->context;
	request->flags = wish->flags;
	request->cq_flags = FI_ATOMIC | (wish->call == ATOMIC_BASE ? FI_WRITE :
								     FI_READ);
	request->buf = wish->call == ATOMIC_BASE ?
		       wish->operand.iov[0].addr : wish->result.iov[0].addr;
	request->length = a->bytes;
	request->tag = request->data = 0;
	request->addr = wish->addr;
	request->cntr = wish->call == ATOMIC_BASE ? CNTR_WRITE : CNTR_READ;
	request->silent = wish->silent;
	request->aside = true;
	return 0;
}

static ssize_t submit_locked(struct endpoint *ep, const struct wish *wish)
{
	struct request *request;
	struct peer *peer;
	int ret;

	/* Those that had to wait for room have theirs first. */
	if (ep->posted >= ep->posted_max || ep->todo & TODO_RETRY)
		return endpoint_is_full(ep);
	request = request_new(ep);
	if (!request)
		return endpoint_is_full(ep);
	peer = peer_get(ep, wish->addr, &ret);
	if (peer)
		ret = fill(request, wish);
	if (!peer || ret) {
		request_free(request);
		return ret;
	}
	request_bind(request, peer);
	request->bounce = bounce_take(ep, BOUNCE_SMALL);
	if (!request->bounce) {
		request_free(request);
		return endpoint_is_full(ep);
	}
	if (!peer_reachable(peer) || atomic_start(request))
		peer_wait(request, ep->domain->virt_addr);
	return 0;
}

static ssize_t submit(struct endpoint *ep, const struct wish *wish)
{
	const uint64_t caps = FI_ATOMIC | (wish->call == ATOMIC_BASE ?
					   FI_WRITE : FI_READ);
	ssize_t ret;

	if (!ep->enabled || ~ep->info->caps & caps)
		return endpoint_refusal(ep);
	ret = check(ep, wish);
	if (ret)
		return ret;
	if (wish->flags & FI_INJECT && bytes_of(wish) > ep->inject_size)
		return refuse(-FI_EINVAL, "more than inject_size is injected");
	domain_lock(ep->domain);
	ret = submit_locked(ep, wish);
	domain_unlock(ep->domain);
	return ret;
}

/* ---- calls ------------------------------------------------------------- */

/* One target, with as many elements as there are operands, or results. */
static ssize_t submit_plain(struct fid_ep *fid, struct wish *wish,
			    uint64_t raddr, uint64_t key)
{
	const struct buffers *counted = has_operand(wish) ? &wish->operand :
							    &wish->result;
	struct endpoint *ep = endpoint_of(fid);
	struct fi_rma_ioc target = { .addr = raddr, .key = key };

	target.count = elements(counted);
	wish->target = &target;
	wish->targets = 1;
	if (!(wish->flags & FI_INJECT)) {
		wish->flags = ep->tx_flags & FLAGS;
		wish->silent = ep->tx_selective &&
			       !(wish->flags & FI_COMPLETION);
	}
	return submit(ep, wish);
}

static ssize_t submit_msg(struct fid_ep *fid, struct wish *wish,
			  const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct endpoint *ep = endpoint_of(fid);

	if (flags & ~FLAGS)
		return refuse(-FI_EBADFLAGS, "a flag that is not offered");
	if (!msg)
		return -FI_EINVAL;
	wish->datatype = msg->datatype;
	wish->op = msg->op;
	wish->operand = (struct buffers){ msg->msg_iov, msg->desc,
					  msg->iov_count };
	wish->target = msg->rma_iov;
	wish->targets = msg->rma_iov_count;
	wish->addr = msg->addr;
	wish->context = msg->context;
	wish->flags = flags;
	wish->silent = ep->tx_selective && !(flags & FI_COMPLETION);
	return submit(ep, wish);
}

#define IOC(buf, n)	((struct fi_ioc){ (void *)(uintptr_t)(buf), n })

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov,
			     void **desc, size_t count, fi_addr_t addr,
			     uint64_t raddr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op,
			     void *context)
{
	struct wish wish = {
		.datatype = datatype,
		.op = op,
		.call = ATOMIC_BASE,
		.operand = { iov, desc, count },
		.addr = addr,
		.context = context,
	};

	return submit_plain(fid, &wish, raddr, key);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count,
			    void *desc, fi_addr_t addr, uint64_t raddr,
			    uint64_t key, enum fi_datatype datatype,
			    enum fi_op op, void *context)
{
	const struct fi_ioc ioc = IOC(buf, count);

	return atomic_writev(fid, &ioc, &desc, 1, addr, raddr, key, datatype,
			     op, context);
}

static ssize_t atomic_writemsg(struct fid_ep *fid,
			       const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct wish wish = { .call = ATOMIC_BASE };

	return submit_msg(fid, &wish, msg, flags);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count,
			     fi_addr_t addr, uint64_t raddr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op)
{
	const struct fi_ioc ioc = IOC(buf, count);
	struct wish wish = {
		.datatype = datatype,
		.op = op,
		.call = ATOMIC_BASE,
		.operand = { &ioc, NULL, 1 },
		.addr = addr,
		.flags = FI_INJECT,
		.silent = true,
	};

	return submit_plain(fid, &wish, raddr, key);
}

static ssize_t atomic_fetchv(struct fid_ep *fid, const struct fi_ioc *iov,
			     void **desc, size_t count, struct fi_ioc *resultv,
			     void **result_desc, size_t result_count,
			     fi_addr_t addr, uint64_t raddr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op,
			     void *context)
{
	struct wish wish = {
		.datatype = datatype,
		.op = op,
		.call = ATOMIC_FETCH,
		.operand = { iov, desc, count },
		.result = { resultv, result_desc, result_count },
		.addr = addr,
		.context = context,
	};

	return submit_plain(fid, &wish, raddr, key);
}

static ssize_t atomic_fetch(struct fid_ep *fid, const void *buf, size_t count,
			    void *desc, void *result, void *result_desc,
			    fi_addr_t addr, uint64_t raddr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op,
			    void *context)
{
	const struct fi_ioc ioc = IOC(buf, count);
	struct fi_ioc result_ioc = IOC(result, count);

	return atomic_fetchv(fid, &ioc, &desc, 1, &result_ioc, &result_desc, 1,
			     addr, raddr, key, datatype, op, context);
}

static ssize_t atomic_fetchmsg(struct fid_ep *fid,
			       const struct fi_msg_atomic *msg,
			       struct fi_ioc *resultv, void **result_desc,
			       size_t result_count, uint64_t flags)
{
	struct wish wish = {
		.call = ATOMIC_FETCH,
		.result = { resultv, result_desc, result_count },
	};

	return submit_msg(fid, &wish, msg, flags);
}

static ssize_t atomic_comparev(struct fid_ep *fid, const struct fi_ioc *iov,
			       void **desc, size_t count,
			       const struct fi_ioc *comparev,
			       void **compare_desc, size_t compare_count,
			       struct fi_ioc *resultv, void **result_desc,
			       size_t result_count, fi_addr_t addr,
			       uint64_t raddr, uint64_t key,
			       enum fi_datatype datatype, enum fi_op op,
			       void *context)
{
	struct wish wish = {
		.datatype = datatype,
		.op = op,
		.call = ATOMIC_COMPARE,
		.operand = { iov, desc, count },
		.compare = { comparev, compare_desc, compare_count },
		.result = { resultv, result_desc, result_count },
		.addr = addr,
		.context = context,
	};

	return submit_plain(fid, &wish, raddr, key);
}

static ssize_t atomic_compare(struct fid_ep *fid, const void *buf,
			      size_t count, void *desc, const void *compare,
			      void *compare_desc, void *result,
			      void *result_desc, fi_addr_t addr,
			      uint64_t raddr, uint64_t key,
			      enum fi_datatype datatype, enum fi_op op,
			      void *context)
{
	const struct fi_ioc ioc = IOC(buf, count);
	const struct fi_ioc compare_ioc = IOC(compare, count);
	struct fi_ioc result_ioc = IOC(result, count);

	return atomic_comparev(fid, &ioc, &desc, 1, &compare_ioc,
			       &compare_desc, 1, &result_ioc, &result_desc, 1,
			       addr, raddr, key, datatype, op, context);
}

static ssize_t atomic_comparemsg(struct fid_ep *fid,
				 const struct fi_msg_atomic *msg,
				 const struct fi_ioc *comparev,
				 void **compare_desc, size_t compare_count,
				 struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, uint64_t flags)
{
	struct wish wish = {
		.call = ATOMIC_COMPARE,
		.compare = { comparev, compare_desc, compare_count },
		.result = { resultv, result_desc, result_count },
	};

	return submit_msg(fid, &wish, msg, flags);
}

/* ---- what is offered --------------------------------------------------- */

static int answer(enum fi_datatype datatype, enum fi_op op,
		  enum atomic_call call, size_t *count)
{
	if (!atomic_offered(datatype, op, call))
		return -FI_EOPNOTSUPP;
	if (count)
		*count = ATOMIC_MAX / atomic_size(datatype);
	return 0;
}

static int answer_endpoint(struct fid_ep *fid, enum fi_datatype datatype,
			   enum fi_op op, enum atomic_call call, size_t *count)
{
	if (!object_is(&fid->fid, FI_CLASS_EP))
		return -FI_EBADF;
	if (!(endpoint_of(fid)->info->caps & FI_ATOMIC))
		return -FI_EOPNOTSUPP;
	return answer(datatype, op, call, count);
}

static int write_valid(struct fid_ep *fid, enum fi_datatype datatype,
		       enum fi_op op, size_t *count)
{
	return answer_endpoint(fid, datatype, op, ATOMIC_BASE, count);
}

static int fetch_valid(struct fid_ep *fid, enum fi_datatype datatype,
		       enum fi_op op, size_t *count)
{
	return answer_endpoint(fid, datatype, op, ATOMIC_FETCH, count);
}

static int compare_valid(struct fid_ep *fid, enum fi_datatype datatype,
			 enum fi_op op, size_t *count)
{
	return answer_endpoint(fid, datatype, op, ATOMIC_COMPARE, count);
}

/* FI_TAGGED, buffers that a tagged receive has posted, is not offered. */
int atomic_query(struct fid_domain *domain, enum fi_datatype datatype,
		 enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
	enum atomic_call call;
	int ret;

	if (!object_is(&domain->fid, FI_CLASS_DOMAIN))
		return -FI_EBADF;
	switch (flags) {
	case 0:
		call = ATOMIC_BASE;
		break;
	case FI_FETCH_ATOMIC:
		call = ATOMIC_FETCH;
		break;
	case FI_COMPARE_ATOMIC:
		call = ATOMIC_COMPARE;
		break;
	default:
		return flags & FI_TAGGED ? -FI_EOPNOTSUPP : -FI_EBADFLAGS;
	}
	ret = answer(datatype, op, call, attr ? &attr->count : NULL);
	if (!ret && attr)
		attr->size = atomic_size(datatype);
	return ret;
}

struct fi_ops_atomic atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_fetch,
	.readwritev = atomic_fetchv,
	.readwritemsg = atomic_fetchmsg,
	.compwrite = atomic_compare,
	.compwritev = atomic_comparev,
	.compwritemsg = atomic_comparemsg,
	.writevalid = write_valid,
	.readwritevalid = fetch_valid,
	.compwritevalid = compare_valid,
};
