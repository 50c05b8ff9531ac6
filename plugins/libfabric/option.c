// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Options of endpoints: fi_getopt(), fi_setopt(). Installed by endpoint.c.
 */
#include <string.h>

#include "option.h"

/* The numbers of libfabric's interface; older headers lack the later ones. */
enum {
	OPTION_MIN_MULTI_RECV = FI_OPT_MIN_MULTI_RECV,
	OPTION_CM_DATA_SIZE = FI_OPT_CM_DATA_SIZE,
	OPTION_TX_SIZE = FI_OPT_TX_SIZE,
	OPTION_RX_SIZE = FI_OPT_RX_SIZE,
	OPTION_HMEM_P2P = FI_OPT_FI_HMEM_P2P,
	OPTION_XPU_TRIGGER,
	OPTION_CUDA_API_PERMITTED,
	OPTION_SHARED_MEMORY_PERMITTED,
	OPTION_MAX_MSG_SIZE,
	OPTION_MAX_TAGGED_SIZE,
	OPTION_MAX_RMA_SIZE,
	OPTION_MAX_ATOMIC_SIZE,
	OPTION_INJECT_MSG_SIZE,
	OPTION_INJECT_TAGGED_SIZE,
	OPTION_INJECT_RMA_SIZE,
	OPTION_INJECT_ATOMIC_SIZE,
};

static struct endpoint *endpoint_of_fid(fid_t fid)
{
	return container(fid, struct endpoint, fid.fid);
}

/* Processes share memory, and copy that of devices by their runtimes. */
static bool is_loopback(const struct endpoint *ep)
{
	return !strcmp(ep->domain->attr.driver, "loopback");
}

static int unknown(int level, int option)
{
	INFO(FI_LOG_EP_CTRL, "option %d of level %d is not offered\n", option,
	     level);
	return -FI_ENOPROTOOPT;
}

/* ---- reading ----------------------------------------------------------- */

static int give(const void *value, size_t size, void *to, size_t *len)
{
	size_t room = *len;

	*len = size;
	if (room < size)
		return -FI_ETOOSMALL;
	memcpy(to, value, size);
	return 0;
}

static int give_size(size_t value, void *to, size_t *len)
{
	return give(&value, sizeof(value), to, len);
}

static int give_bool(bool value, void *to, size_t *len)
{
	return give(&value, sizeof(value), to, len);
}

int option_get(fid_t fid, int level, int option, void *value, size_t *len)
{
	const struct endpoint *ep = endpoint_of_fid(fid);
	const int p2p = ep->p2p;

	if (!object_is(fid, FI_CLASS_EP))
		return -FI_EBADF;
	if (!value || !len)
		return -FI_EINVAL;
	if (level != FI_OPT_ENDPOINT)
		return unknown(level, option);
	switch (option) {
	case OPTION_MIN_MULTI_RECV:
		return give_size(ep->min_multi_recv, value, len);
	case OPTION_CM_DATA_SIZE:
		return give_size(0, value, len);
	case OPTION_TX_SIZE:
		return give_size(ep->tx.limit, value, len);
	case OPTION_RX_SIZE:
		return give_size(ep->rx.limit, value, len);
	case OPTION_HMEM_P2P:
		return give(&p2p, sizeof(p2p), value, len);
	case OPTION_CUDA_API_PERMITTED:
		return give_bool(ep->cuda_permitted, value, len);
	case OPTION_SHARED_MEMORY_PERMITTED:
		return give_bool(true, value, len);
	case OPTION_MAX_MSG_SIZE:
	case OPTION_MAX_TAGGED_SIZE:
	case OPTION_MAX_RMA_SIZE:
		return give_size(MAX_MESSAGE, value, len);
	case OPTION_INJECT_MSG_SIZE:
	case OPTION_INJECT_TAGGED_SIZE:
	case OPTION_INJECT_RMA_SIZE:
	case OPTION_INJECT_ATOMIC_SIZE:
		return give_size(ep->inject_size, value, len);
	}
	return unknown(level, option);
}

/* ---- writing ----------------------------------------------------------- */

static int set_min_multi_recv(struct endpoint *ep, const void *value,
			      size_t len)
{
	if (len != sizeof(ep->min_multi_recv))
		return -FI_EINVAL;
	memcpy(&ep->min_multi_recv, value, len);
	return 0;
}

/* Data of devices never goes through the processor's hands, but on loopback. */
static int set_p2p(struct endpoint *ep, const void *value, size_t len)
{
	int p2p;

	if (len != sizeof(p2p))
		return -FI_EINVAL;
	memcpy(&p2p, value, len);
	if (p2p < FI_HMEM_P2P_ENABLED || p2p > FI_HMEM_P2P_DISABLED)
		return -FI_EINVAL;
	if (p2p == FI_HMEM_P2P_DISABLED ||
	    (p2p == FI_HMEM_P2P_REQUIRED && is_loopback(ep)))
		return -FI_EOPNOTSUPP;
	ep->p2p = p2p;
	return 0;
}

/* Loopback copies by the runtime, which is its interface. */
static int set_cuda(struct endpoint *ep, const void *value, size_t len)
{
	bool permitted;

	if (len != sizeof(permitted))
		return -FI_EINVAL;
	memcpy(&permitted, value, len);
	if (!permitted && ep->hmem && is_loopback(ep))
		return -FI_EOPNOTSUPP;
	ep->cuda_permitted = permitted;
	return 0;
}

static int set_shared_memory(const struct endpoint *ep, const void *value,
			     size_t len)
{
	bool permitted;

	if (len != sizeof(permitted))
		return -FI_EINVAL;
	memcpy(&permitted, value, len);
	return !permitted && is_loopback(ep) ? -FI_EOPNOTSUPP : 0;
}

int option_set(fid_t fid, int level, int option, const void *value, size_t len)
{
	struct endpoint *ep = endpoint_of_fid(fid);

	if (!object_is(fid, FI_CLASS_EP))
		return -FI_EBADF;
	if (!value)
		return -FI_EINVAL;
	if (level != FI_OPT_ENDPOINT)
		return unknown(level, option);
	switch (option) {
	case OPTION_MIN_MULTI_RECV:
		return set_min_multi_recv(ep, value, len);
	case OPTION_HMEM_P2P:
		return set_p2p(ep, value, len);
	case OPTION_CUDA_API_PERMITTED:
		return set_cuda(ep, value, len);
	case OPTION_SHARED_MEMORY_PERMITTED:
		return set_shared_memory(ep, value, len);
	}
	return unknown(level, option);
}
