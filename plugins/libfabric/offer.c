// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a port offers, as a struct fi_info, and what of it the program's hints
 * leave. Used by info.c and domain.c.
 */
#include <stdlib.h>
#include <string.h>

#include "mode.h"
#include "provider.h"

#define PROTOCOL		0x66627801	/* above those of libfabric; fits an int */
#define PROTOCOL_VERSION	1
/* What costs nothing is given without being asked for. */
#define FREE_CAPS	(FI_MULTI_RECV | FI_SOURCE | FI_LOCAL_COMM | \
			 FI_REMOTE_COMM)
#define TABLES		(1 << 16)

static void offer_contexts(struct fi_info *info)
{
	struct fi_tx_attr *tx = info->tx_attr;
	struct fi_rx_attr *rx = info->rx_attr;

	tx->caps = info->caps & TX_CAPS;
	tx->msg_order = MSG_ORDER;
	tx->inject_size = INJECT_SIZE;
	tx->size = settings.tx_size;
	tx->iov_limit = IOV_LIMIT;
	tx->rma_iov_limit = IOV_LIMIT;
	rx->caps = info->caps & RX_CAPS;
	rx->msg_order = MSG_ORDER;
	rx->total_buffered_recv = settings.unexpected;
	rx->size = settings.rx_size;
	rx->iov_limit = IOV_LIMIT;
}

static void offer_endpoint(struct fi_ep_attr *ep)
{
	ep->type = FI_EP_RDM;
	ep->protocol = PROTOCOL;
	ep->protocol_version = PROTOCOL_VERSION;
	ep->max_msg_size = MAX_MESSAGE;
	ep->mem_tag_format = UINT64_C(0xaaaaaaaaaaaaaaaa);
	ep->tx_ctx_cnt = 1;
	ep->rx_ctx_cnt = 1;
}

static void offer_domain(uint32_t version, const struct local_port *port,
			 struct fi_domain_attr *domain)
{
	size_t queues = port->is.max_queues ? port->is.max_queues : TABLES;

	domain->threading = FI_THREAD_SAFE;
	domain->control_progress = FI_PROGRESS_MANUAL;
	domain->data_progress = FI_PROGRESS_MANUAL;
	domain->resource_mgmt = FI_RM_ENABLED;
	/* Both are the same here; some programs read more into FI_AV_TABLE. */
	domain->av_type = FI_AV_UNSPEC;
	domain->mr_mode = version < FI_VERSION(1, 5) ? MR_BASIC :
			  MR_NEEDED | FI_MR_HMEM;
	domain->mr_key_size = KEY_SIZE;
	domain->cq_data_size = CQ_DATA_SIZE;
	domain->cq_cnt = TABLES;
	domain->ep_cnt = queues;
	domain->tx_ctx_cnt = queues;
	domain->rx_ctx_cnt = queues;
	domain->max_ep_tx_ctx = 1;
	domain->max_ep_rx_ctx = 1;
	domain->cntr_cnt = TABLES;
	domain->mr_iov_limit = 1;
	domain->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
	domain->max_err_data = ADDRESS_MAX;
	domain->mr_cnt = port->is.max_mrs ? port->is.max_mrs : TABLES;
}

static int offer_names(const struct local_port *port, struct fi_info *info)
{
	struct address address = { .service = 0 };

	if (strlen(port->is.name) < sizeof(address.port))
		strcpy(address.port, port->is.name);
	info->domain_attr->name = strdup(port->name);
	info->fabric_attr->name = strdup(port->is.fabric);
	info->src_addr = malloc(ADDRESS_MAX);
	if (!info->domain_attr->name || !info->fabric_attr->name ||
	    !info->src_addr)
		return -FI_ENOMEM;
	info->src_addrlen = address_format(&address, info->src_addr);
	if (!*port->is.pci)
		return 0;
	info->nic = nic_of_port(port);
	return info->nic ? 0 : -FI_ENOMEM;
}

struct fi_info *offer_make(uint32_t version, const struct local_port *port)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	info->caps = TX_CAPS | RX_CAPS | FREE_CAPS;
	info->addr_format = FI_ADDR_STR;
	offer_contexts(info);
	offer_endpoint(info->ep_attr);
	offer_domain(version, port, info->domain_attr);
	info->fabric_attr->api_version = version;
	if (!offer_names(port, info))
		return info;
	fi_freeinfo(info);
	return NULL;
}

/* The directions that are meant if none is named. */
static uint64_t directions(uint64_t caps)
{
	if (caps & (FI_MSG | FI_TAGGED) && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	if (caps & (FI_RMA | FI_ATOMIC) &&
	    !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)))
		caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	return caps;
}

static uint64_t narrow_caps(uint32_t version, const struct fi_info *hints,
			    uint64_t offered)
{
	uint64_t caps;

	if (hints && hints->caps) {
		caps = directions(hints->caps) | FI_LOCAL_COMM | FI_REMOTE_COMM;
		if (caps & FI_RECV)
			caps |= FREE_CAPS;
		return caps;
	}
	/* This is a part of another, and new to programs. */
	offered &= ~(uint64_t)TAGGED_DIRECTED_RECV;
	/* Nobody can be a target who takes no keys of ours. */
	if (hints && hints->domain_attr &&
	    !mr_mode_suits(version, hints->domain_attr->mr_mode))
		offered &= ~(FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE |
			     FI_REMOTE_READ | FI_REMOTE_WRITE);
	return offered;
}

static void narrow_contexts(const struct fi_info *hints, struct fi_info *info)
{
	const struct fi_tx_attr *tx = hints->tx_attr;
	const struct fi_rx_attr *rx = hints->rx_attr;

	if (tx) {
		if (tx->caps)
			info->tx_attr->caps = directions(tx->caps) & TX_CAPS;
		if (tx->size)
			info->tx_attr->size = tx->size;
		info->tx_attr->op_flags = tx->op_flags;
		info->tx_attr->tclass = tx->tclass;
	}
	if (rx) {
		if (rx->caps)
			info->rx_attr->caps = directions(rx->caps) & RX_CAPS;
		if (rx->size)
			info->rx_attr->size = rx->size;
		info->rx_attr->op_flags = rx->op_flags;
	}
}

static void narrow_domain(const struct fi_domain_attr *hints,
			  struct fi_domain_attr *domain)
{
	if (hints->threading)
		domain->threading = hints->threading;
	if (hints->control_progress)
		domain->control_progress = hints->control_progress;
	if (hints->resource_mgmt)
		domain->resource_mgmt = hints->resource_mgmt;
	if (hints->av_type)
		domain->av_type = hints->av_type;
	domain->domain = hints->domain;
	domain->tclass = hints->tclass;
}

/* libfabric leaves out what is not called as the program calls it. */
static int rename_domain(const char *name, struct fi_domain_attr *domain)
{
	char *copy = strdup(name);

	if (!copy)
		return -FI_ENOMEM;
	free(domain->name);
	domain->name = copy;
	return 0;
}

int offer_narrow(uint32_t version, const struct fi_info *hints,
		 struct fi_info *info)
{
	struct fi_domain_attr *domain = info->domain_attr;
	const struct fi_domain_attr *wanted = hints ? hints->domain_attr : NULL;

	info->caps = narrow_caps(version, hints, info->caps);
	info->tx_attr->caps &= info->caps;
	info->rx_attr->caps &= info->caps;
	if (hints)
		narrow_contexts(hints, info);
	if (hints && hints->ep_attr && hints->ep_attr->mem_tag_format)
		info->ep_attr->mem_tag_format = hints->ep_attr->mem_tag_format;
	if (wanted)
		narrow_domain(wanted, domain);
	domain->mr_mode = mr_mode_given(version, wanted ? &wanted->mr_mode : NULL,
					info->caps);
	return wanted && wanted->name ? rename_domain(wanted->name, domain) : 0;
}
