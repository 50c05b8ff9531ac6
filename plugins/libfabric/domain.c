// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Domains: a port each, and all that is opened of it. Called through fabric.c.
 */
#include <stdlib.h>
#include <string.h>

#include "mode.h"
#include "provider.h"

static bool is_open(const struct fid_domain *fid)
{
	return object_is(&fid->fid, FI_CLASS_DOMAIN);
}

/* ---- what is not offered ----------------------------------------------- */

static int not_offered(const struct fid_domain *fid)
{
	return is_open(fid) ? -FI_ENOSYS : -FI_EBADF;
}

static int no_scalable_ep(struct fid_domain *fid, struct fi_info *info,
			  struct fid_ep **ep, void *context)
{
	(void)info;
	(void)ep;
	(void)context;
	return not_offered(fid);
}

static int no_stx_ctx(struct fid_domain *fid, struct fi_tx_attr *attr,
		      struct fid_stx **stx, void *context)
{
	(void)attr;
	(void)stx;
	(void)context;
	return not_offered(fid);
}

static int no_srx_ctx(struct fid_domain *fid, struct fi_rx_attr *attr,
		      struct fid_ep **ep, void *context)
{
	(void)attr;
	(void)ep;
	(void)context;
	return not_offered(fid);
}

static int no_collective(struct fid_domain *fid, enum fi_collective_op op,
			 struct fi_collective_attr *attr, uint64_t flags)
{
	(void)op;
	(void)attr;
	(void)flags;
	return not_offered(fid);
}

/* ---- operations -------------------------------------------------------- */

static int domain_endpoint(struct fid_domain *fid, struct fi_info *info,
			   struct fid_ep **ep, void *context)
{
	return is_open(fid) ? endpoint_open(fid, info, ep, context) : -FI_EBADF;
}

static int domain_endpoint2(struct fid_domain *fid, struct fi_info *info,
			    struct fid_ep **ep, uint64_t flags, void *context)
{
	return flags ? not_offered(fid) :
	       domain_endpoint(fid, info, ep, context);
}

static int domain_query_atomic(struct fid_domain *fid,
			       enum fi_datatype datatype, enum fi_op op,
			       struct fi_atomic_attr *attr, uint64_t flags)
{
	return is_open(fid) ? atomic_query(fid, datatype, op, attr, flags) :
	       -FI_EBADF;
}

/* Keys are taken as they are, for programs that use the same calls everywhere. */
static int map_raw(const struct fi_mr_map_raw *map)
{
	if (!map || !map->raw_key || !map->key || map->key_size != KEY_SIZE ||
	    map->flags)
		return -FI_EINVAL;
	memcpy(map->key, map->raw_key, KEY_SIZE);
	return 0;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	if (!object_is(fid, FI_CLASS_DOMAIN))
		return -FI_EBADF;
	switch (command) {
	case FI_MAP_RAW_MR:
		return map_raw(arg);
	case FI_UNMAP_KEY:
		return arg ? 0 : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

static int domain_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct domain *domain = container(fid, struct domain, fid.fid);
	struct eq *eq;

	if (!object_is(fid, FI_CLASS_DOMAIN))
		return -FI_EBADF;
	if (flags & ~BIND_REG_MR)
		return -FI_EBADFLAGS;
	if (domain->eq) {
		INFO(FI_LOG_DOMAIN, "a domain is bound to one event queue only\n");
		return -FI_EINVAL;
	}
	eq = eq_hold(other);
	if (!eq)
		return -FI_EINVAL;
	domain_lock(domain);
	domain->eq = eq;
	domain->mr_events = flags & BIND_REG_MR;
	domain_unlock(domain);
	return 0;
}

/* ---- closing ----------------------------------------------------------- */

/* Whatever of it is there. */
static int release(struct domain *domain)
{
	int ret;

	board_close(domain);
	ret = fabrex_close(domain->port);
	if (ret) {
		WARN(FI_LOG_DOMAIN, "%s\n", fabrex_strerror_last());
		return fi_of_errno(ret);
	}
	eq_drop(domain->eq);
	fi_freeinfo(domain->offer);
	free(domain->regions);
	pthread_mutex_destroy(&domain->lock);
	object_free(domain);
	return 0;
}

static int domain_close(struct fid *fid)
{
	struct domain *domain = container(fid, struct domain, fid.fid);
	struct fabric *fabric = domain->fabric;
	int users, ret;

	if (!object_is(fid, FI_CLASS_DOMAIN))
		return -FI_EBADF;
	domain_lock(domain);
	users = domain->users;
	domain_unlock(domain);
	if (users) {
		INFO(FI_LOG_DOMAIN,
		     "domain %s still has %d objects: close them first\n",
		     domain->offer->domain_attr->name, users);
		return -FI_EBUSY;
	}
	ret = release(domain);
	if (!ret)
		fabric_drop(fabric);
	return ret;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = domain_control,
	.ops_open = no_ops_open,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = av_open,
	.cq_open = cq_open,
	.endpoint = domain_endpoint,
	.scalable_ep = no_scalable_ep,
	.cntr_open = cntr_open,
	.poll_open = poll_open,
	.stx_ctx = no_stx_ctx,
	.srx_ctx = no_srx_ctx,
	.query_atomic = domain_query_atomic,
	.query_collective = no_collective,
	.endpoint2 = domain_endpoint2,
};

static struct fi_ops_mr mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = region_reg,
	.regv = region_regv,
	.regattr = region_regattr,
};

/* ---- opening ----------------------------------------------------------- */

/* The offer for the port that the info names; NULL: it is not there (now). */
static struct fi_info *offer_for(const struct fi_info *info, uint32_t version)
{
	const char *name = info->domain_attr->name;
	struct fi_info *offer = NULL;
	struct local_port *ports;
	int i, n = ports_list(name, &ports);

	for (i = 0; i < n && !offer; i++)
		if (!strcmp(ports[i].name, name) ||
		    !strcmp(ports[i].is.device, name))
			offer = offer_make(version, &ports[i]);
	free(ports);
	if (!offer)
		INFO(FI_LOG_DOMAIN,
		     "domain_attr->name %.80s: there is no such port, or it cannot be used\n",
		     name);
	return offer;
}

static int check_info(const struct fabric *fabric, const struct fi_info *info,
		      struct fi_info **offer)
{
	int ret;

	if (!info || !info->domain_attr || !info->domain_attr->name) {
		INFO(FI_LOG_DOMAIN,
		     "fi_domain(): domain_attr->name: take one that fi_getinfo() has given\n");
		return -FI_EINVAL;
	}
	*offer = offer_for(info, fabric->version);
	if (!*offer)
		return -FI_ENODATA;
	ret = info_check(fabric->version, info, *offer);
	if (!ret && strcmp((*offer)->fabric_attr->name, fabric->name)) {
		INFO(FI_LOG_DOMAIN, "port %s is in fabric %s, not in %s\n",
		     info->domain_attr->name, (*offer)->fabric_attr->name,
		     fabric->name);
		ret = -FI_EINVAL;
	}
	if (ret)
		fi_freeinfo(*offer);
	return ret;
}

static void take_modes(struct domain *domain, const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	/* FI_THREAD_COMPLETION: other queues of it may be used meanwhile. */
	domain->serial = attr->threading == FI_THREAD_DOMAIN;
	domain->virt_addr = attr->mr_mode & (MR_BASIC | FI_MR_VIRT_ADDR);
	domain->hmem = info->caps & FI_HMEM;
	domain->mr_hmem = attr->mr_mode & FI_MR_HMEM;
}

static int open_port(struct domain *domain)
{
	const char *name = domain->offer->domain_attr->name;
	int ret = fabrex_open(name, &domain->port);

	if (!ret)
		ret = fabrex_query(domain->port, &domain->attr,
				   sizeof(domain->attr));
	if (ret) {
		WARN(FI_LOG_DOMAIN, "%s: %s\n", name, fabrex_strerror_last());
		return fi_of_errno(ret);
	}
	return board_open(domain);
}

int domain_open(struct fid_fabric *fid, struct fi_info *info,
		struct fid_domain **out, void *context)
{
	struct fabric *fabric = container(fid, struct fabric, fid);
	struct fi_info *offer;
	struct domain *domain;
	int ret;

	if (!out)
		return -FI_EINVAL;
	ret = check_info(fabric, info, &offer);
	if (ret)
		return ret;
	domain = object_new(sizeof(*domain), FI_CLASS_DOMAIN, context,
			    &fid_ops);
	if (!domain) {
		fi_freeinfo(offer);
		return -FI_ENOMEM;
	}
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &mr_ops;
	domain->fabric = fabric;
	domain->offer = offer;
	pthread_mutex_init(&domain->lock, NULL);
	list_init(&domain->endpoints);
	take_modes(domain, info);
	ret = open_port(domain);
	if (ret) {
		release(domain);
		return ret;
	}
	fabric_hold(fabric);
	*out = &domain->fid;
	return 0;
}
