// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls of endpoints that are not offered: connections, collectives and parts of
 * scalable endpoints. libfabric's inline functions would call through NULL.
 * Installed by endpoint.c.
 */
#include <rdma/fi_collective.h>

#include "none.h"

/* ---- scalable endpoints ------------------------------------------------ */

int no_tx_ctx(struct fid_ep *fid, int index, struct fi_tx_attr *attr,
	      struct fid_ep **ep, void *context)
{
	(void)fid;
	(void)index;
	(void)attr;
	(void)ep;
	(void)context;
	return -FI_ENOSYS;
}

int no_rx_ctx(struct fid_ep *fid, int index, struct fi_rx_attr *attr,
	      struct fid_ep **ep, void *context)
{
	(void)fid;
	(void)index;
	(void)attr;
	(void)ep;
	(void)context;
	return -FI_ENOSYS;
}

/* ---- connections ------------------------------------------------------- */

int no_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	(void)fid;
	(void)addr;
	(void)addrlen;
	return -FI_ENOSYS;
}

int no_connect(struct fid_ep *fid, const void *addr, const void *param,
	       size_t paramlen)
{
	(void)fid;
	(void)addr;
	(void)param;
	(void)paramlen;
	return -FI_ENOSYS;
}

int no_listen(struct fid_pep *fid)
{
	(void)fid;
	return -FI_ENOSYS;
}

int no_accept(struct fid_ep *fid, const void *param, size_t paramlen)
{
	(void)fid;
	(void)param;
	(void)paramlen;
	return -FI_ENOSYS;
}

int no_reject(struct fid_pep *fid, fid_t handle, const void *param,
	      size_t paramlen)
{
	(void)fid;
	(void)handle;
	(void)param;
	(void)paramlen;
	return -FI_ENOSYS;
}

int no_shutdown(struct fid_ep *fid, uint64_t flags)
{
	(void)fid;
	(void)flags;
	return -FI_ENOSYS;
}

int no_join(struct fid_ep *fid, const void *addr, uint64_t flags,
	    struct fid_mc **mc, void *context)
{
	(void)fid;
	(void)addr;
	(void)flags;
	(void)mc;
	(void)context;
	return -FI_ENOSYS;
}

/* ---- collectives ------------------------------------------------------- */

static ssize_t no_barrier(struct fid_ep *fid, fi_addr_t group, void *context)
{
	(void)fid;
	(void)group;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t no_broadcast(struct fid_ep *fid, void *buf, size_t count,
			    void *desc, fi_addr_t group, fi_addr_t root,
			    enum fi_datatype datatype, uint64_t flags,
			    void *context)
{
	(void)fid;
	(void)buf;
	(void)count;
	(void)desc;
	(void)group;
	(void)root;
	(void)datatype;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

/* alltoall, allgather */
static ssize_t no_exchange(struct fid_ep *fid, const void *buf, size_t count,
			   void *desc, void *result, void *result_desc,
			   fi_addr_t group, enum fi_datatype datatype,
			   uint64_t flags, void *context)
{
	(void)result;
	(void)result_desc;
	(void)buf;
	return no_broadcast(fid, NULL, count, desc, group, 0, datatype, flags,
			    context);
}

/* allreduce, reduce_scatter */
static ssize_t no_allreduce(struct fid_ep *fid, const void *buf, size_t count,
			    void *desc, void *result, void *result_desc,
			    fi_addr_t group, enum fi_datatype datatype,
			    enum fi_op op, uint64_t flags, void *context)
{
	(void)op;
	return no_exchange(fid, buf, count, desc, result, result_desc, group,
			   datatype, flags, context);
}

static ssize_t no_reduce(struct fid_ep *fid, const void *buf, size_t count,
			 void *desc, void *result, void *result_desc,
			 fi_addr_t group, fi_addr_t root,
			 enum fi_datatype datatype, enum fi_op op,
			 uint64_t flags, void *context)
{
	(void)op;
	(void)root;
	return no_exchange(fid, buf, count, desc, result, result_desc, group,
			   datatype, flags, context);
}

/* scatter, gather */
static ssize_t no_scatter(struct fid_ep *fid, const void *buf, size_t count,
			  void *desc, void *result, void *result_desc,
			  fi_addr_t group, fi_addr_t root,
			  enum fi_datatype datatype, uint64_t flags,
			  void *context)
{
	(void)root;
	return no_exchange(fid, buf, count, desc, result, result_desc, group,
			   datatype, flags, context);
}

static ssize_t no_msg(struct fid_ep *fid, const struct fi_msg_collective *msg,
		      struct fi_ioc *resultv, void **result_desc,
		      size_t result_count, uint64_t flags)
{
	(void)fid;
	(void)msg;
	(void)resultv;
	(void)result_desc;
	(void)result_count;
	(void)flags;
	return -FI_ENOSYS;
}

static ssize_t no_barrier2(struct fid_ep *fid, fi_addr_t group, uint64_t flags,
			   void *context)
{
	(void)flags;
	return no_barrier(fid, group, context);
}

struct fi_ops_collective no_collective_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = no_barrier,
	.broadcast = no_broadcast,
	.alltoall = no_exchange,
	.allreduce = no_allreduce,
	.allgather = no_exchange,
	.reduce_scatter = no_allreduce,
	.reduce = no_reduce,
	.scatter = no_scatter,
	.gather = no_scatter,
	.msg = no_msg,
	.barrier2 = no_barrier2,
};
