// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Endpoints: opening, binding, enabling, closing, their names, and the tables of
 * all that can be asked of them. Called through domain.c.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cancel.h"
#include "message.h"
#include "none.h"
#include "option.h"

#define MS		UINT64_C(1000000)
/* Closing waits at most so long for peers to get what they were promised. */
#define LINGER		(1000 * MS)
#define FAREWELL	(100 * MS)

#define MULTI_RECV_MIN	64			/* bytes */
#define QUEUE_MIN	256u
#define CQ_FLAGS	(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)

static struct endpoint *endpoint_of_fid(struct fid *fid)
{
	return container(fid, struct endpoint, fid.fid);
}

static bool is_open(const struct fid *fid)
{
	return object_is(fid, FI_CLASS_EP);
}

/* ---- names ------------------------------------------------------------- */

static int endpoint_getname(fid_t fid, void *addr, size_t *addrlen)
{
	char text[ADDRESS_MAX];
	size_t len, room;

	if (!is_open(fid))
		return -FI_EBADF;
	if (!addrlen || (*addrlen && !addr))
		return -FI_EINVAL;
	room = *addrlen;
	len = address_format(&endpoint_of_fid(fid)->address, text);
	*addrlen = len;
	if (room)
		memcpy(addr, text, room < len ? room : len);
	return room < len ? -FI_ETOOSMALL : 0;
}

/* The text need not end with a 0. */
static int take_name(struct endpoint *ep, const void *addr, size_t len)
{
	char text[ADDRESS_MAX + 1] = "";
	struct address address;
	int ret;

	memcpy(text, addr, len < ADDRESS_MAX ? len : ADDRESS_MAX);
	ret = address_parse(text, &address);
	if (ret)
		return ret;
	if (address.service)
		ep->address.service = address.service;
	return 0;
}

static int endpoint_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct endpoint *ep = endpoint_of_fid(fid);

	if (!is_open(fid))
		return -FI_EBADF;
	if (!addr || !addrlen)
		return -FI_EINVAL;
	if (ep->queue)
		return -FI_EOPBADSTATE;
	return take_name(ep, addr, addrlen);
}

static int choose_name(struct endpoint *ep)
{
	uint64_t chance;

	if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
		return -FI_EIO;
	address_of_port(&ep->domain->attr, &ep->address);
	address_of_chance(chance, &ep->address);
	if (ep->info->src_addr)
		return take_name(ep, ep->info->src_addr,
				 ep->info->src_addrlen);
	return 0;
}

/* ---- binding ----------------------------------------------------------- */

static int refuse_bind(const char *what, const char *why)
{
	INFO(FI_LOG_EP_CTRL, "fi_ep_bind(): %s: %s\n", what, why);
	return -FI_EINVAL;
}

static int bind_cq(struct endpoint *ep, struct fid *fid, uint64_t flags)
{
	struct cq *cq = container(fid, struct cq, fid.fid);

	if (flags & ~CQ_FLAGS)
		return -FI_EBADFLAGS;
	if (!(flags & (FI_TRANSMIT | FI_RECV)))
		return refuse_bind("completion queue",
				   "give FI_TRANSMIT, FI_RECV or both");
	if (cq->domain != ep->domain)
		return refuse_bind("completion queue", "of another domain");
	if ((flags & FI_TRANSMIT && ep->tx_cq) ||
	    (flags & FI_RECV && ep->rx_cq))
		return refuse_bind("completion queue", "there is one already");
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
		cq->users++;
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
		cq->users++;
	}
	return 0;
}

static const uint64_t counted[CNTR_END] = {
	[CNTR_SEND] = FI_SEND,
	[CNTR_RECV] = FI_RECV,
	[CNTR_READ] = FI_READ,
	[CNTR_WRITE] = FI_WRITE,
	[CNTR_REMOTE_READ] = FI_REMOTE_READ,
	[CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
};

static int bind_cntr(struct endpoint *ep, struct fid *fid, uint64_t flags)
{
	struct cntr *cntr = container(fid, struct cntr, fid.fid);
	uint64_t known = 0;
	int i;

	for (i = 0; i < CNTR_END; i++)
		known |= counted[i];
	if (flags & ~known)
		return -FI_EBADFLAGS;
	if (!flags)
		return refuse_bind("counter", "give what it is to count");
	if (cntr->domain != ep->domain)
		return refuse_bind("counter", "of another domain");
	for (i = 0; i < CNTR_END; i++)
		if (flags & counted[i] && ep->cntrs[i])
			return refuse_bind("counter", "there is one already");
	for (i = 0; i < CNTR_END; i++) {
		if (!(flags & counted[i]))
			continue;
		ep->cntrs[i] = cntr;
		cntr->users++;
	}
	return 0;
}

static int bind_av(struct endpoint *ep, struct fid *fid, uint64_t flags)
{
	struct av *av = container(fid, struct av, fid.fid);

	if (flags)
		return -FI_EBADFLAGS;
	if (av->domain != ep->domain)
		return refuse_bind("address vector", "of another domain");
	if (ep->av)
		return refuse_bind("address vector", "there is one already");
	ep->av = av;
	av->users++;
	list_add(&av->endpoints, &ep->of_av);
	return 0;
}

static int bind_eq(struct endpoint *ep, struct fid *fid, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (ep->eq)
		return refuse_bind("event queue", "there is one already");
	ep->eq = eq_hold(fid);
	return ep->eq ? 0 : -FI_EINVAL;
}

static int endpoint_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct endpoint *ep = endpoint_of_fid(fid);
	int ret;

	if (!is_open(fid))
		return -FI_EBADF;
	if (!other)
		return -FI_EINVAL;
	if (ep->queue)
		return -FI_EOPBADSTATE;
	domain_lock(ep->domain);
	switch (other->fclass) {
	case FI_CLASS_CQ:
		ret = bind_cq(ep, other, flags);
		break;
	case FI_CLASS_CNTR:
		ret = bind_cntr(ep, other, flags);
		break;
	case FI_CLASS_AV:
		ret = bind_av(ep, other, flags);
		break;
	case FI_CLASS_EQ:
		ret = bind_eq(ep, other, flags);
		break;
	default:
		ret = refuse_bind("object", "of this class is not offered");
	}
	domain_unlock(ep->domain);
	return ret;
}

/* ---- enabling ---------------------------------------------------------- */

static bool is_initiator(const struct endpoint *ep)
{
	return ep->info->caps & (FI_SEND | FI_READ | FI_WRITE);
}

static int check_bound(const struct endpoint *ep)
{
	bool tx = ep->tx_cq || ep->cntrs[CNTR_SEND] || ep->cntrs[CNTR_READ] ||
		  ep->cntrs[CNTR_WRITE];
	bool rx = ep->rx_cq || ep->cntrs[CNTR_RECV];

	if (!ep->av) {
		INFO(FI_LOG_EP_CTRL,
		     "fi_enable(): no address vector is bound\n");
		return -FI_ENOAV;
	}
	if ((is_initiator(ep) && !tx) || (ep->info->caps & FI_RECV && !rx)) {
		INFO(FI_LOG_EP_CTRL,
		     "fi_enable(): neither completion queue nor counter is bound for %s\n",
		     tx ? "FI_RECV" : "FI_TRANSMIT");
		return -FI_ENOCQ;
	}
	return 0;
}

static bool sleeps(const struct endpoint *ep)
{
	int i;

	for (i = 0; i < CNTR_END; i++)
		if (ep->cntrs[i] && wait_sleeps(&ep->cntrs[i]->wait))
			return true;
	return (ep->tx_cq && wait_sleeps(&ep->tx_cq->wait)) ||
	       (ep->rx_cq && wait_sleeps(&ep->rx_cq->wait));
}

static uint32_t power(size_t n, uint32_t most)
{
	uint32_t size = QUEUE_MIN;

	while (size < n && size < most)
		size *= 2;
	return size < most ? size : most;
}

/* The ring is shared out between short and long datagrams and the rest. */
static int open_queue(struct endpoint *ep, uint32_t cells)
{
	const struct domain *domain = ep->domain;
	const struct fabrex_queue_attr attr = {
		.sq_entries = power(2 * ep->tx.limit, domain->attr.max_sq),
		.rq_entries = cells,
		.cell_size = (uint32_t)ep->cell_size,
		.flags = sleeps(ep) ? FABREX_QUEUE_EVENTFD : 0,
		.service = ep->address.service,
	};
	size_t nsmall = attr.sq_entries / 8 * 3;
	size_t nlarge = attr.sq_entries / 16 * 3;
	int ret;

	ret = bounces_open(ep, nsmall, nlarge);
	if (ret)
		return ret;
	ep->posted_max = attr.sq_entries - nsmall - nlarge;
	ret = fabrex_queue_create(domain->port, &attr, sizeof(attr),
				  &ep->queue);
	if (!ret)
		return 0;
	WARN(FI_LOG_EP_CTRL, "fi_enable(): %s\n", fabrex_strerror_last());
	return fi_of_errno(ret);
}

static void leave_members(struct endpoint *ep)
{
	int i;

	if (ep->tx_cq)
		members_remove(&ep->tx_cq->members, ep);
	if (ep->rx_cq)
		members_remove(&ep->rx_cq->members, ep);
	for (i = 0; i < CNTR_END; i++)
		if (ep->cntrs[i])
			members_remove(&ep->cntrs[i]->members, ep);
}

static int join_members(struct endpoint *ep)
{
	int i, ret = 0;

	if (ep->tx_cq)
		ret = members_add(&ep->tx_cq->members, ep, endpoint_progress);
	if (!ret && ep->rx_cq)
		ret = members_add(&ep->rx_cq->members, ep, endpoint_progress);
	for (i = 0; i < CNTR_END && !ret; i++)
		if (ep->cntrs[i])
			ret = members_add(&ep->cntrs[i]->members, ep,
					  endpoint_progress);
	return ret;
}

static void end(struct endpoint *ep)
{
	leave_members(ep);
	if (ep->queue)
		fabrex_queue_destroy(ep->queue);
	ep->queue = NULL;
	cancel_all(ep);
	receives_close(ep);
	peers_close(ep);
	bounces_close(ep);
}

static void take_flags(struct endpoint *ep)
{
	uint64_t caps = ep->info->caps;
	bool messages = caps & (FI_MSG | FI_TAGGED);

	ep->enabled = true;
	ep->sends = messages && caps & FI_SEND;
	ep->takes = messages && caps & FI_RECV;
}

static int enable(struct endpoint *ep)
{
	const struct fabrex_port_attr *attr = &ep->domain->attr;
	uint32_t cells = settings.cells < attr->max_rq ?
			 (uint32_t)settings.cells : attr->max_rq;
	int ret;

	if (ep->queue)
		return -FI_EOPBADSTATE;
	ret = check_bound(ep);
	if (ret)
		return ret;
	ret = receives_open(ep);
	if (!ret)
		ret = peers_open(ep, cells);
	if (!ret)
		ret = open_queue(ep, cells);
	if (!ret)
		ret = join_members(ep);
	if (ret) {
		end(ep);
		return ret;
	}
	take_flags(ep);
	list_add(&ep->domain->endpoints, &ep->node);
	return 0;
}

static int opflag(struct endpoint *ep, int command, uint64_t *flags)
{
	uint64_t *own;

	if (!flags || !(*flags & FI_TRANSMIT) == !(*flags & FI_RECV))
		return -FI_EINVAL;
	own = *flags & FI_TRANSMIT ? &ep->tx_flags : &ep->rx_flags;
	if (command == FI_GETOPSFLAG)
		*flags = *own;
	else
		*own = *flags & ~(FI_TRANSMIT | FI_RECV);
	return 0;
}

static int endpoint_control(struct fid *fid, int command, void *arg)
{
	struct endpoint *ep = endpoint_of_fid(fid);
	int ret;

	if (!is_open(fid))
		return -FI_EBADF;
	domain_lock(ep->domain);
	switch (command) {
	case FI_ENABLE:
		ret = enable(ep);
		break;
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		ret = opflag(ep, command, arg);
		break;
	default:
		ret = -FI_ENOSYS;
	}
	domain_unlock(ep->domain);
	return ret;
}

/* ---- closing ----------------------------------------------------------- */

static void wait_until_due(struct endpoint *ep, uint64_t most)
{
	uint64_t end_ns = now_ns() + most;

	while (ep->enabled && !cancel_is_due(ep) && now_ns() < end_ns) {
		endpoint_progress(ep);
		domain_unlock(ep->domain);
		sched_yield();
		domain_lock(ep->domain);
	}
}

/* What was promised is sent; then peers are told. */
static void leave(struct endpoint *ep)
{
	ep->sends = ep->takes = false;
	endpoint_progress(ep);
	wait_until_due(ep, LINGER);
	if (!ep->enabled)
		return;
	cancel_farewell(ep);
	wait_until_due(ep, FAREWELL);
}

static void unbind(struct endpoint *ep)
{
	int i;

	if (ep->tx_cq)
		ep->tx_cq->users--;
	if (ep->rx_cq)
		ep->rx_cq->users--;
	for (i = 0; i < CNTR_END; i++)
		if (ep->cntrs[i])
			ep->cntrs[i]->users--;
	list_remove(&ep->of_av);
	if (ep->av)
		ep->av->users--;
}

static void free_endpoint(struct endpoint *ep)
{
	requests_free(&ep->tx);
	requests_free(&ep->rx);
	fi_freeinfo(ep->info);
	object_free(ep);
}

static int endpoint_close(struct fid *fid)
{
	struct endpoint *ep = endpoint_of_fid(fid);
	struct domain *domain;
	struct eq *eq;

	if (!is_open(fid))
		return -FI_EBADF;
	domain = ep->domain;
	domain_lock(domain);
	if (ep->enabled)
		leave(ep);
	ep->enabled = ep->sends = ep->takes = false;
	end(ep);
	list_remove(&ep->node);
	unbind(ep);
	eq = ep->eq;
	domain->users--;
	domain_unlock(domain);
	eq_drop(eq);
	free_endpoint(ep);
	return 0;
}

/* ---- tables ------------------------------------------------------------ */

static ssize_t size_left(struct fid_ep *fid, bool rx)
{
	struct endpoint *ep = endpoint_of_fid(&fid->fid);
	const struct requests *requests = rx ? &ep->rx : &ep->tx;

	if (!is_open(&fid->fid))
		return -FI_EBADF;
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	return requests->used < requests->limit ?
	       (ssize_t)(requests->limit - requests->used) : 0;
}

static ssize_t tx_size_left(struct fid_ep *fid)
{
	return size_left(fid, false);
}

static ssize_t rx_size_left(struct fid_ep *fid)
{
	return size_left(fid, true);
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = endpoint_close,
	.bind = endpoint_bind,
	.control = endpoint_control,
	.ops_open = no_ops_open,
};

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = cancel_one,
	.getopt = option_get,
	.setopt = option_set,
	.tx_ctx = no_tx_ctx,
	.rx_ctx = no_rx_ctx,
	.rx_size_left = rx_size_left,
	.tx_size_left = tx_size_left,
};

static struct fi_ops_cm cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = endpoint_setname,
	.getname = endpoint_getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};

static struct fi_ops_msg msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = message_recv,
	.recvv = message_recvv,
	.recvmsg = message_recvmsg,
	.send = message_send,
	.sendv = message_sendv,
	.sendmsg = message_sendmsg,
	.inject = message_inject,
	.senddata = message_senddata,
	.injectdata = message_injectdata,
};

static struct fi_ops_tagged tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};

/* ---- opening ----------------------------------------------------------- */

static void take_info(struct endpoint *ep)
{
	const struct fi_info *info = ep->info;
	const struct fi_tx_attr *tx = info->tx_attr;
	const struct fi_rx_attr *rx = info->rx_attr;
	const struct fabrex_port_attr *attr = &ep->domain->attr;

	requests_init(&ep->tx,
		      tx && tx->size ? tx->size : settings.tx_size);
	requests_init(&ep->rx,
		      rx && rx->size ? rx->size : settings.rx_size);
	ep->tx_flags = tx ? tx->op_flags : 0;
	ep->rx_flags = rx ? rx->op_flags : 0;
	ep->hmem = info->caps & FI_HMEM;
	ep->source = info->caps & FI_SOURCE;
	ep->directed = info->caps & (FI_DIRECTED_RECV |
				     TAGGED_DIRECTED_RECV);
	ep->cell_size = settings.cell_size < attr->max_cell ?
			settings.cell_size : attr->max_cell;
	ep->inject_size = ep->cell_size - 32;
	ep->min_multi_recv = MULTI_RECV_MIN;
	ep->cuda_permitted = true;
	/* Loopback is faster from memory, devices from the descriptor. */
	if (strcmp(attr->driver, "loopback"))
		ep->inline_max = FABREX_INLINE_MAX;
	else
		ep->copy_max = settings.copy;
}

static void take_tables(struct endpoint *ep)
{
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.msg = &msg_ops;
	ep->fid.rma = &rma_ops;
	ep->fid.tagged = &tagged_ops;
	ep->fid.atomic = &atomic_ops;
	ep->fid.collective = &no_collective_ops;
	ep->addr_changed = peers_addr_changed;
	ep->settle = endpoint_settle;
}

static void init_lists(struct endpoint *ep)
{
	list_init(&ep->node);
	list_init(&ep->of_av);
	list_init(&ep->retries);
	list_init(&ep->peers.all);
	list_init(&ep->peers.pending);
	list_init(&ep->peers.owing);
	list_init(&ep->peers.timed);
}

int endpoint_open(struct fid_domain *fid, struct fi_info *info,
		  struct fid_ep **out, void *context)
{
	struct domain *domain = container(fid, struct domain, fid);
	struct endpoint *ep;
	int ret;

	if (!info || !info->ep_attr || !out)
		return -FI_EINVAL;
	ret = info_check(domain->fabric->version, info, domain->offer);
	if (ret)
		return ret == -FI_ENODATA ? -FI_EINVAL : ret;
	ep = object_new(sizeof(*ep), FI_CLASS_EP, context, &fid_ops);
	if (!ep)
		return -FI_ENOMEM;
	ep->domain = domain;
	take_tables(ep);
	init_lists(ep);
	ep->info = fi_dupinfo(info);
	ret = ep->info ? choose_name(ep) : -FI_ENOMEM;
	if (ret) {
		fi_freeinfo(ep->info);
		object_free(ep);
		return ret;
	}
	take_info(ep);
	domain_hold(domain);
	*out = &ep->fid;
	return 0;
}
