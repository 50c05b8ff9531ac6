// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls that are not possible, in every state of an endpoint: an error code, and
 * nothing else happens. Names, options, bindings.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>

#include "ends.h"

static char bytes[64];

/* Every call that moves messages. */
static void all_fail(struct fid_ep *ep, fi_addr_t addr, ssize_t error)
{
	struct iovec iov = { bytes, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = addr };
	struct fi_msg_tagged tagged = {
		.msg_iov = &iov, .iov_count = 1, .addr = addr,
	};

	CHECK_EQ(fi_send(ep, bytes, 8, NULL, addr, NULL), error);
	CHECK_EQ(fi_sendv(ep, &iov, NULL, 1, addr, NULL), error);
	CHECK_EQ(fi_sendmsg(ep, &msg, 0), error);
	CHECK_EQ(fi_inject(ep, bytes, 8, addr), error);
	CHECK_EQ(fi_senddata(ep, bytes, 8, NULL, 1, addr, NULL), error);
	CHECK_EQ(fi_injectdata(ep, bytes, 8, 1, addr), error);
	CHECK_EQ(fi_tsend(ep, bytes, 8, NULL, addr, 1, NULL), error);
	CHECK_EQ(fi_tsendv(ep, &iov, NULL, 1, addr, 1, NULL), error);
	CHECK_EQ(fi_tsendmsg(ep, &tagged, 0), error);
	CHECK_EQ(fi_tinject(ep, bytes, 8, addr, 1), error);
	CHECK_EQ(fi_tsenddata(ep, bytes, 8, NULL, 1, addr, 1, NULL), error);
	CHECK_EQ(fi_tinjectdata(ep, bytes, 8, 1, addr, 1), error);
	CHECK_EQ(fi_recv(ep, bytes, 8, NULL, addr, NULL), error);
	CHECK_EQ(fi_recvv(ep, &iov, NULL, 1, addr, NULL), error);
	CHECK_EQ(fi_recvmsg(ep, &msg, 0), error);
	CHECK_EQ(fi_trecv(ep, bytes, 8, NULL, addr, 1, 0, NULL), error);
	CHECK_EQ(fi_trecvv(ep, &iov, NULL, 1, addr, 1, 0, NULL), error);
	CHECK_EQ(fi_trecvmsg(ep, &tagged, 0), error);
	CHECK_EQ(fi_trecvmsg(ep, &tagged, FI_PEEK), error);
}

/* Opened, and neither bound nor enabled. */
static struct fid_ep *bare(struct opened *opened)
{
	struct fid_ep *ep;

	open_domain(opened, FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, 0);
	CHECK_EQ(fi_endpoint(opened->domain, opened->info, &ep, NULL), 0);
	return ep;
}

TEST(disabled)
{
	struct opened opened;
	struct fid_ep *ep;

	own_fabric();
	ep = bare(&opened);
	all_fail(ep, 0, -FI_EOPBADSTATE);
	CHECK_EQ(fi_cancel(&ep->fid, NULL), -FI_EOPBADSTATE);
	CHECK_EQ(ep->ops->tx_size_left(ep), -FI_EOPBADSTATE);
	CHECK_EQ(ep->ops->rx_size_left(ep), -FI_EOPBADSTATE);
	CHECK_EQ(fi_close(&ep->fid), 0);
	close_domain(&opened);
}

TEST(closed)
{
	struct opened opened;
	struct fid_ep *ep;
	size_t len = sizeof(bytes);

	own_fabric();
	ep = bare(&opened);
	CHECK_EQ(fi_close(&ep->fid), 0);
	all_fail(ep, 0, -FI_EBADF);
	CHECK_EQ(fi_cancel(&ep->fid, NULL), -FI_EBADF);
	CHECK_EQ(fi_enable(ep), -FI_EBADF);
	CHECK_EQ(fi_close(&ep->fid), -FI_EBADF);
	CHECK_EQ(fi_getname(&ep->fid, bytes, &len), -FI_EBADF);
	CHECK_EQ(fi_setname(&ep->fid, bytes, len), -FI_EBADF);
	CHECK_EQ(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   bytes, &len), -FI_EBADF);
	CHECK_EQ(fi_ep_bind(ep, &ep->fid, 0), -FI_EBADF);
	CHECK_EQ(ep->ops->tx_size_left(ep), -FI_EBADF);
	close_domain(&opened);
}

TEST(addresses)
{
	struct end a;

	own_fabric();
	end_open(&a, NULL);
	all_fail(a.ep, 0, -FI_EINVAL);
	all_fail(a.ep, 1ull << 40, -FI_EINVAL);
	CHECK_EQ(fi_send(a.ep, bytes, 8, NULL, FI_ADDR_UNSPEC, NULL),
		 -FI_EINVAL);
	end_close(&a);
}

/* What an endpoint was not opened for. */
TEST(directions)
{
	const struct end_wish sender = { .caps = FI_MSG | FI_SEND };
	const struct end_wish receiver = { .caps = FI_TAGGED | FI_RECV };
	struct end a, b;

	own_fabric();
	end_open(&a, &sender);
	end_open(&b, &receiver);
	end_know(&a, b.name);
	end_know(&b, a.name);
	CHECK_EQ(fi_recv(a.ep, bytes, 8, NULL, 0, NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_send(b.ep, bytes, 8, NULL, 0, NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_trecv(b.ep, bytes, 8, NULL, 0, 1, 0, &b), 0);
	CHECK_EQ(fi_tsend(a.ep, bytes, 8, NULL, 0, 1, &a), 0);
	end_ok(&b, &b);
	end_ok(&a, &a);
	pair_close(&a, &b);
}

TEST(arguments)
{
	struct iovec iov[5] = { { bytes, 8 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 5 };
	struct end a, b;

	own_fabric();
	pair_open(&a, &b, NULL);
	CHECK_EQ(fi_sendv(a.ep, iov, NULL, 5, 0, NULL), -FI_EINVAL);
	CHECK_EQ(fi_sendv(a.ep, NULL, NULL, 1, 0, NULL), -FI_EINVAL);
	CHECK_EQ(fi_sendmsg(a.ep, &msg, 0), -FI_EINVAL);
	CHECK_EQ(fi_sendmsg(a.ep, NULL, 0), -FI_EINVAL);
	CHECK_EQ(fi_recvv(a.ep, iov, NULL, 5, 0, NULL), -FI_EINVAL);
	CHECK_EQ(fi_recvmsg(a.ep, NULL, 0), -FI_EINVAL);
	CHECK_EQ(fi_trecvmsg(a.ep, NULL, FI_PEEK), -FI_EINVAL);
	msg.iov_count = 1;
	CHECK_EQ(fi_sendmsg(a.ep, &msg, FI_MULTI_RECV), -FI_EBADFLAGS);
	CHECK_EQ(fi_sendmsg(a.ep, &msg, FI_COMMIT_COMPLETE), -FI_EBADFLAGS);
	CHECK_EQ(fi_recvmsg(a.ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	CHECK_EQ(fi_send(a.ep, bytes, (size_t)1 << 50, NULL, 0, NULL),
		 -FI_EMSGSIZE);
	iov[0].iov_len = SIZE_MAX;
	CHECK_EQ(fi_sendv(a.ep, iov, NULL, 1, 0, NULL), -FI_EMSGSIZE);
	CHECK(!a.ndone && !b.ndone);
	pair_close(&a, &b);
}

/* ---- nothing is bound -------------------------------------------------- */

TEST(unbound)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_MAP };
	struct opened opened, other;
	struct fid_ep *ep;
	struct fid_av *av, *foreign;
	struct fid_cq *cq;

	own_fabric();
	ep = bare(&opened);
	CHECK_EQ(fi_enable(ep), -FI_ENOAV);
	CHECK_EQ(fi_av_open(opened.domain, &av_attr, &av, NULL), 0);
	CHECK_EQ(fi_cq_open(opened.domain, &cq_attr, &cq, NULL), 0);
	CHECK_EQ(fi_ep_bind(ep, &av->fid, FI_SEND), -FI_EBADFLAGS);
	CHECK_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
	CHECK_EQ(fi_ep_bind(ep, &av->fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_enable(ep), -FI_ENOCQ);
	CHECK_EQ(fi_ep_bind(ep, &cq->fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_ep_bind(ep, &cq->fid, FI_READ), -FI_EBADFLAGS);
	CHECK_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), 0);
	CHECK_EQ(fi_enable(ep), -FI_ENOCQ);
	CHECK_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), -FI_EINVAL);
	CHECK_EQ(fi_ep_bind(ep, &cq->fid, FI_RECV), 0);
	CHECK_EQ(fi_ep_bind(ep, &opened.domain->fid, 0), -FI_EINVAL);
	/* Of another domain. */
	open_domain(&other, 0, 0);
	CHECK_EQ(fi_av_open(other.domain, &av_attr, &foreign, NULL), 0);
	CHECK_EQ(fi_ep_bind(ep, &foreign->fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_close(&foreign->fid), 0);
	close_domain(&other);
	CHECK_EQ(fi_enable(ep), 0);
	CHECK_EQ(fi_enable(ep), -FI_EOPBADSTATE);
	CHECK_EQ(fi_ep_bind(ep, &cq->fid, FI_RECV), -FI_EOPBADSTATE);
	CHECK_EQ(fi_close(&cq->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&av->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&ep->fid), 0);
	CHECK_EQ(fi_close(&cq->fid), 0);
	CHECK_EQ(fi_close(&av->fid), 0);
	close_domain(&opened);
}

/* ---- names ------------------------------------------------------------- */

TEST(names)
{
	struct opened opened;
	struct fid_ep *ep, *again;
	char name[NAME_SIZE] = "", other[NAME_SIZE];
	size_t len = 0;

	own_fabric();
	ep = bare(&opened);
	CHECK_EQ(fi_getname(&ep->fid, NULL, &len), -FI_ETOOSMALL);
	CHECK(len > 0 && len <= NAME_SIZE);
	len = 5;
	CHECK_EQ(fi_getname(&ep->fid, name, &len), -FI_ETOOSMALL);
	CHECK(!strcmp(name, "fi_fa"));
	CHECK_EQ(fi_getname(&ep->fid, name, &len), 0);
	CHECK_EQ(fi_endpoint(opened.domain, opened.info, &again, NULL), 0);
	CHECK_EQ(fi_getname(&again->fid, other, &len), 0);
	CHECK(strcmp(name, other));
	CHECK_EQ(fi_setname(&ep->fid, other, 0), -FI_EINVAL);
	CHECK_EQ(fi_setname(&ep->fid, bytes, sizeof(bytes)), -FI_EINVAL);
	strcpy(other, "fi_fabrex://:5000");
	CHECK_EQ(fi_setname(&ep->fid, other, strlen(other)), 0);
	CHECK_EQ(fi_getname(&ep->fid, name, &len), 0);
	CHECK(strstr(name, ":5000:"));
	CHECK_EQ(fi_close(&ep->fid), 0);
	CHECK_EQ(fi_close(&again->fid), 0);
	close_domain(&opened);
}

/* ---- what is not offered ----------------------------------------------- */

TEST(not_offered)
{
	struct end a;
	struct fid_ep *ep = NULL;
	struct fid_mc *mc;
	uint64_t flags = FI_TRANSMIT;
	size_t len = sizeof(bytes);
	bool no = false;

	own_fabric();
	end_open(&a, NULL);
	CHECK_EQ(fi_connect(a.ep, bytes, NULL, 0), -FI_ENOSYS);
	CHECK_EQ(fi_accept(a.ep, NULL, 0), -FI_ENOSYS);
	CHECK_EQ(fi_shutdown(a.ep, 0), -FI_ENOSYS);
	CHECK_EQ(fi_getpeer(a.ep, bytes, &len), -FI_ENOSYS);
	CHECK_EQ(fi_join(a.ep, bytes, 0, &mc, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_barrier(a.ep, 0, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_allreduce(a.ep, bytes, 1, NULL, bytes, NULL, 0, FI_INT32,
			      FI_SUM, 0, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_broadcast(a.ep, bytes, 1, NULL, 0, 0, FI_INT32, 0, NULL),
		 -FI_ENOSYS);
	CHECK_EQ(fi_tx_context(a.ep, 0, NULL, &ep, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_rx_context(a.ep, 0, NULL, &ep, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_ep_alias(a.ep, &ep, 0), -FI_ENOSYS);
	CHECK_EQ(fi_control(&a.ep->fid, FI_BACKLOG, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_control(&a.ep->fid, FI_GETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT | FI_RECV;
	CHECK_EQ(fi_control(&a.ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	CHECK_EQ(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT;
	CHECK_EQ(fi_control(&a.ep->fid, FI_GETOPSFLAG, &flags), 0);
	CHECK_EQ(flags, FI_DELIVERY_COMPLETE);
	CHECK_EQ(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_MIN,
			   &len, sizeof(len)), -FI_ENOPROTOOPT);
	CHECK_EQ(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT,
			   &len, &len), -FI_ENOPROTOOPT);
	CHECK_EQ(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   &no, sizeof(no)), -FI_EINVAL);
	len = 1;
	CHECK_EQ(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   bytes, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, sizeof(len));
	CHECK_EQ(fi_getopt(&a.ep->fid, 99, 0, bytes, &len), -FI_ENOPROTOOPT);
	end_close(&a);
}

/* As many as it may have; then later. */
TEST(limits)
{
	const struct end_wish wish = { .tx_size = 8, .rx_size = 8 };
	struct end a, b;
	int i;

	own_fabric();
	pair_open(&a, &b, &wish);
	CHECK_EQ(a.ep->ops->tx_size_left(a.ep), 8);
	CHECK_EQ(a.ep->ops->rx_size_left(a.ep), 8);
	for (i = 0; i < 8; i++) {
		CHECK_EQ(fi_recv(b.ep, bytes, 8, NULL, 0, &b), 0);
		CHECK_EQ(fi_send(a.ep, bytes, 8, NULL, 0, &a), 0);
	}
	CHECK_EQ(a.ep->ops->tx_size_left(a.ep), 0);
	CHECK_EQ(b.ep->ops->rx_size_left(b.ep), 0);
	CHECK_EQ(fi_recv(b.ep, bytes, 8, NULL, 0, &b), -FI_EAGAIN);
	CHECK_EQ(fi_send(a.ep, bytes, 8, NULL, 0, &a), -FI_EAGAIN);
	for (i = 0; i < 8; i++) {
		end_ok(&a, &a);
		end_ok(&b, &b);
	}
	CHECK_EQ(a.ep->ops->tx_size_left(a.ep), 8);
	pair_close(&a, &b);
}

/* ---- counters instead of completions ----------------------------------- */

TEST(counters)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_cntr *out_cntr, *in_cntr;
	struct opened opened;
	struct fid_ep *ep;
	struct fid_av *av;
	fi_addr_t self;
	size_t len = sizeof(bytes);
	int i;

	own_fabric();
	ep = bare(&opened);
	CHECK_EQ(fi_av_open(opened.domain, &av_attr, &av, NULL), 0);
	CHECK_EQ(fi_cntr_open(opened.domain, &attr, &out_cntr, NULL), 0);
	CHECK_EQ(fi_cntr_open(opened.domain, &attr, &in_cntr, NULL), 0);
	CHECK_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
	CHECK_EQ(fi_ep_bind(ep, &out_cntr->fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_ep_bind(ep, &out_cntr->fid, FI_MSG), -FI_EBADFLAGS);
	CHECK_EQ(fi_ep_bind(ep, &out_cntr->fid, FI_SEND), 0);
	CHECK_EQ(fi_ep_bind(ep, &in_cntr->fid, FI_RECV), 0);
	CHECK_EQ(fi_enable(ep), 0);
	CHECK_EQ(fi_getname(&ep->fid, bytes, &len), 0);
	CHECK_EQ(fi_av_insert(av, bytes, 1, &self, 0, NULL), 1);
	for (i = 1; i < 20; i++) {
		CHECK_EQ(fi_recv(ep, bytes, 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
		if (i % 2)
			CHECK_EQ(fi_inject(ep, bytes, 8, self), 0);
		else
			CHECK_EQ(fi_send(ep, bytes, 8, NULL, self, NULL), 0);
		while (fi_cntr_read(in_cntr) < (uint64_t)i ||
		       fi_cntr_read(out_cntr) < (uint64_t)i)
			;
	}
	CHECK_EQ(fi_recv(ep, bytes, 8, NULL, FI_ADDR_UNSPEC, &ep), 0);
	CHECK_EQ(fi_cancel(&ep->fid, &ep), 0);
	CHECK_EQ(fi_cntr_readerr(in_cntr), 1);
	CHECK_EQ(fi_close(&in_cntr->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&ep->fid), 0);
	CHECK_EQ(fi_close(&in_cntr->fid), 0);
	CHECK_EQ(fi_close(&out_cntr->fid), 0);
	CHECK_EQ(fi_close(&av->fid), 0);
	close_domain(&opened);
}
