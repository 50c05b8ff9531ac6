// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fabrics, of which domains and event queues are opened, and fi_trywait(). Called
 * through provider.c.
 */
#include <string.h>

#include "provider.h"

static bool is_open(const struct fid_fabric *fid)
{
	return object_is(&fid->fid, FI_CLASS_FABRIC);
}

static int trywait_one(struct fid *fid)
{
	if (object_is(fid, FI_CLASS_CQ))
		return cq_trywait(container(fid, struct cq, fid.fid));
	if (object_is(fid, FI_CLASS_CNTR))
		return cntr_trywait(container(fid, struct cntr, fid.fid));
	if (object_is(fid, FI_CLASS_EQ))
		return eq_trywait(container(fid, struct fid_eq, fid));
	INFO(FI_LOG_FABRIC,
	     "fi_trywait(): only queues and counters can be waited for\n");
	return -FI_EINVAL;
}

static int fabric_trywait(struct fid_fabric *fid, struct fid **fids, int count)
{
	int i, ret;

	if (!is_open(fid))
		return -FI_EBADF;
	if (count < 0 || (!fids && count))
		return -FI_EINVAL;
	for (i = 0; i < count; i++) {
		ret = trywait_one(fids[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static int fabric_close(struct fid *fid)
{
	struct fabric *fabric = container(fid, struct fabric, fid.fid);
	int users;

	if (!object_is(fid, FI_CLASS_FABRIC))
		return -FI_EBADF;
	pthread_mutex_lock(&fabric->lock);
	users = fabric->users;
	pthread_mutex_unlock(&fabric->lock);
	if (users) {
		INFO(FI_LOG_FABRIC,
		     "fabric %s still has %d domains and event queues: close them first\n",
		     fabric->name, users);
		return -FI_EBUSY;
	}
	pthread_mutex_destroy(&fabric->lock);
	object_free(fabric);
	return 0;
}

static int fabric_domain(struct fid_fabric *fid, struct fi_info *info,
			 struct fid_domain **domain, void *context)
{
	return is_open(fid) ? domain_open(fid, info, domain, context) :
	       -FI_EBADF;
}

static int fabric_domain2(struct fid_fabric *fid, struct fi_info *info,
			  struct fid_domain **domain, uint64_t flags,
			  void *context)
{
	return flags ? -FI_ENOSYS : fabric_domain(fid, info, domain, context);
}

static int no_passive_ep(struct fid_fabric *fid, struct fi_info *info,
			 struct fid_pep **pep, void *context)
{
	(void)info;
	(void)pep;
	(void)context;
	return is_open(fid) ? -FI_ENOSYS : -FI_EBADF;
}

static int no_wait_open(struct fid_fabric *fid, struct fi_wait_attr *attr,
			struct fid_wait **waitset)
{
	(void)attr;
	(void)waitset;
	return is_open(fid) ? -FI_ENOSYS : -FI_EBADF;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = fabric_domain,
	.passive_ep = no_passive_ep,
	.eq_open = eq_open,
	.wait_open = no_wait_open,
	.trywait = fabric_trywait,
	.domain2 = fabric_domain2,
};

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out,
		void *context)
{
	struct fabric *fabric;

	if (!attr || !out)
		return -FI_EINVAL;
	if (!attr->name || !*attr->name ||
	    strlen(attr->name) >= sizeof(fabric->name)) {
		INFO(FI_LOG_FABRIC,
		     "fabric_attr->name \"%.60s\": take one that fi_getinfo() has given\n",
		     attr->name ? attr->name : "");
		return -FI_EINVAL;
	}
	fabric = object_new(sizeof(*fabric), FI_CLASS_FABRIC, context,
			    &fid_ops);
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr->api_version;
	fabric->version = attr->api_version;
	strcpy(fabric->name, attr->name);
	pthread_mutex_init(&fabric->lock, NULL);
	*out = &fabric->fid;
	return 0;
}
