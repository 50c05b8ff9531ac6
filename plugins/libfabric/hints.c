// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Whether what a program asks for can be given: each field of its hints against
 * the offer, and a line for the first that cannot. Called by info.c, and for the
 * attributes that domains and endpoints are opened with.
 */
#include <inttypes.h>
#include <string.h>

#include "mode.h"
#include "provider.h"

/* Completion levels and the like that an endpoint can have by default. */
#define TX_FLAGS	(FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)
#define RX_FLAGS	(FI_COMPLETION | FI_MULTI_RECV)

static int refuse(const char *field, uint64_t wanted, uint64_t offered)
{
	INFO(FI_LOG_CORE,
	     "%s: 0x%" PRIx64 " is asked for, 0x%" PRIx64 " can be given\n",
	     field, wanted, offered);
	return -FI_ENODATA;
}

static int refuse_text(const char *field, const char *wanted,
		       const char *offered)
{
	INFO(FI_LOG_CORE, "%s: \"%.80s\" is asked for, \"%s\" can be given\n",
	     field, wanted, offered);
	return -FI_ENODATA;
}

/* A size or a number: at most what is offered. */
static int at_most(const char *field, uint64_t wanted, uint64_t offered)
{
	return wanted <= offered ? 0 : refuse(field, wanted, offered);
}

static int within(const char *field, uint64_t wanted, uint64_t offered)
{
	return wanted & ~offered ? refuse(field, wanted, offered) : 0;
}

/* 0 is no wish. */
static int equal(const char *field, uint64_t wanted, uint64_t offered)
{
	return !wanted || wanted == offered ? 0 :
	       refuse(field, wanted, offered);
}

/* An enumeration: one of those up to last. */
static int one_of(const char *field, uint64_t wanted, uint64_t last)
{
	return wanted <= last ? 0 : refuse(field, wanted, last);
}

#define MUST(check) \
	do { \
		int must_ = (check); \
		if (must_) \
			return must_; \
	} while (0)
#define AT_MOST(attr, field) \
	MUST(at_most(#attr "_attr->" #field, attr->field, offer->field))
#define WITHIN(attr, field, set) \
	MUST(within(#attr "_attr->" #field, attr->field, set))
#define EQUAL(attr, field) \
	MUST(equal(#attr "_attr->" #field, attr->field, offer->field))

static int check_tx(const struct fi_tx_attr *tx, const struct fi_tx_attr *offer)
{
	WITHIN(tx, caps, offer->caps | FI_LOCAL_COMM | FI_REMOTE_COMM);
	WITHIN(tx, op_flags, TX_FLAGS);
	WITHIN(tx, msg_order, offer->msg_order);
	WITHIN(tx, comp_order, 0);
	AT_MOST(tx, inject_size);
	MUST(at_most("tx_attr->size", tx->size, TX_SIZE_MAX));
	AT_MOST(tx, iov_limit);
	AT_MOST(tx, rma_iov_limit);
	return 0;
}

static int check_rx(const struct fi_rx_attr *rx, const struct fi_rx_attr *offer)
{
	WITHIN(rx, caps, offer->caps | FI_LOCAL_COMM | FI_REMOTE_COMM);
	WITHIN(rx, op_flags, RX_FLAGS);
	WITHIN(rx, msg_order, offer->msg_order);
	WITHIN(rx, comp_order, 0);
	AT_MOST(rx, total_buffered_recv);
	MUST(at_most("rx_attr->size", rx->size, RX_SIZE_MAX));
	AT_MOST(rx, iov_limit);
	return 0;
}

static int check_ep(const struct fi_ep_attr *ep, const struct fi_ep_attr *offer)
{
	EQUAL(ep, type);
	EQUAL(ep, protocol);
	EQUAL(ep, protocol_version);
	AT_MOST(ep, max_msg_size);
	AT_MOST(ep, msg_prefix_size);
	AT_MOST(ep, max_order_raw_size);
	AT_MOST(ep, max_order_war_size);
	AT_MOST(ep, max_order_waw_size);
	/* FI_SHARED_CONTEXT is larger than any number. */
	AT_MOST(ep, tx_ctx_cnt);
	AT_MOST(ep, rx_ctx_cnt);
	AT_MOST(ep, auth_key_size);
	return 0;
}

static int check_progress(const struct fi_domain_attr *domain)
{
	MUST(equal("domain_attr->data_progress", domain->data_progress,
		   FI_PROGRESS_MANUAL));
	/*
	 * Addresses and regions are done with when the call returns, so that
	 * any model of control progress is true.
	 */
#if FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) >= FI_VERSION(2, 0)
	return one_of("domain_attr->control_progress",
		      domain->control_progress, FI_PROGRESS_CONTROL_UNIFIED);
#else
	return one_of("domain_attr->control_progress",
		      domain->control_progress, FI_PROGRESS_MANUAL);
#endif
}

static int check_counts(const struct fi_domain_attr *domain,
			const struct fi_domain_attr *offer)
{
	AT_MOST(domain, mr_key_size);
	AT_MOST(domain, cq_data_size);
	AT_MOST(domain, cq_cnt);
	AT_MOST(domain, ep_cnt);
	AT_MOST(domain, tx_ctx_cnt);
	AT_MOST(domain, rx_ctx_cnt);
	AT_MOST(domain, max_ep_tx_ctx);
	AT_MOST(domain, max_ep_rx_ctx);
	AT_MOST(domain, max_ep_stx_ctx);
	AT_MOST(domain, max_ep_srx_ctx);
	AT_MOST(domain, cntr_cnt);
	AT_MOST(domain, mr_iov_limit);
	AT_MOST(domain, auth_key_size);
	AT_MOST(domain, max_err_data);
	AT_MOST(domain, mr_cnt);
	return 0;
}

/* Also the name of a kernel's device. */
static int check_name(const struct fi_domain_attr *domain,
		      const struct fi_info *offer)
{
	const char *name = offer->domain_attr->name;

	if (!domain->name || !strcmp(domain->name, name) ||
	    (offer->nic && !strcmp(domain->name, offer->nic->device_attr->name)))
		return 0;
	return refuse_text("domain_attr->name", domain->name, name);
}

static int check_domain(const struct fi_domain_attr *domain,
			const struct fi_info *info)
{
	const struct fi_domain_attr *offer = info->domain_attr;
	const struct domain *open;

	if (domain->domain) {
		if (!object_mine(&domain->domain->fid, FI_CLASS_DOMAIN))
			return refuse_text("domain_attr->domain", "not one of this provider",
					   offer->name);
		open = container(domain->domain, struct domain, fid);
		if (strcmp(open->offer->domain_attr->name, offer->name))
			return refuse_text("domain_attr->domain",
					   open->offer->domain_attr->name,
					   offer->name);
	}
	MUST(check_name(domain, info));
	MUST(one_of("domain_attr->threading", domain->threading,
		    FI_THREAD_ENDPOINT));
	MUST(check_progress(domain));
	MUST(one_of("domain_attr->resource_mgmt", domain->resource_mgmt,
		    FI_RM_ENABLED));
	MUST(one_of("domain_attr->av_type", domain->av_type, FI_AV_TABLE));
	WITHIN(domain, caps, offer->caps);
	return check_counts(domain, offer);
}

static int check_mr_mode(uint32_t version, const struct fi_info *hints)
{
	int mode = hints->domain_attr->mr_mode;

	if (mode & MR_BASIC && mode != MR_BASIC)
		return refuse("domain_attr->mr_mode", (uint64_t)mode, MR_BASIC);
	if (!is_target(hints->caps) || mr_mode_suits(version, mode))
		return 0;
	return refuse("domain_attr->mr_mode, for FI_RMA and FI_ATOMIC",
		      (uint64_t)mode, MR_NEEDED);
}

static int check_fabric(const struct fi_fabric_attr *fabric,
			const struct fi_fabric_attr *offer)
{
	const struct fabric *open;
	const char *name = fabric->name;

	if (name && strcmp(name, offer->name))
		return refuse_text("fabric_attr->name", name, offer->name);
	if (!fabric->fabric)
		return 0;
	if (!object_mine(&fabric->fabric->fid, FI_CLASS_FABRIC))
		return refuse_text("fabric_attr->fabric", "not one of this provider",
				   offer->name);
	open = container(fabric->fabric, struct fabric, fid);
	return strcmp(open->name, offer->name) ?
	       refuse_text("fabric_attr->fabric", open->name, offer->name) : 0;
}

int info_check(uint32_t version, const struct fi_info *hints,
	       const struct fi_info *offer)
{
	MUST(within("caps", hints->caps, offer->caps));
	MUST(equal("addr_format", hints->addr_format, FI_ADDR_STR));
	if (hints->tx_attr)
		MUST(check_tx(hints->tx_attr, offer->tx_attr));
	if (hints->rx_attr)
		MUST(check_rx(hints->rx_attr, offer->rx_attr));
	if (hints->ep_attr)
		MUST(check_ep(hints->ep_attr, offer->ep_attr));
	if (hints->domain_attr) {
		MUST(check_domain(hints->domain_attr, offer));
		MUST(check_mr_mode(version, hints));
	}
	if (hints->fabric_attr)
		MUST(check_fabric(hints->fabric_attr, offer->fabric_attr));
	return 0;
}
