/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that are not offered, for tables of functions of endpoints. */
#ifndef FABREX_NONE_H
#define FABREX_NONE_H

#include "provider.h"

int no_tx_ctx(struct fid_ep *fid, int index, struct fi_tx_attr *attr,
	      struct fid_ep **ep, void *context);
int no_rx_ctx(struct fid_ep *fid, int index, struct fi_rx_attr *attr,
	      struct fid_ep **ep, void *context);
int no_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen);
int no_connect(struct fid_ep *fid, const void *addr, const void *param,
	       size_t paramlen);
int no_listen(struct fid_pep *fid);
int no_accept(struct fid_ep *fid, const void *param, size_t paramlen);
int no_reject(struct fid_pep *fid, fid_t handle, const void *param,
	      size_t paramlen);
int no_shutdown(struct fid_ep *fid, uint64_t flags);
int no_join(struct fid_ep *fid, const void *addr, uint64_t flags,
	    struct fid_mc **mc, void *context);
extern struct fi_ops_collective no_collective_ops;

#endif
