// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory regions that programs register, and the local memory of operations:
 * such a region, or one of libfabrex's cache. Used by domain.c, and by whoever
 * posts operations.
 *
 * A descriptor is a place in a table and its generation, not a pointer: programs
 * may pass what they have of a region that they have closed, or nothing that
 * means anything, as long as nobody requires descriptors.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define PLACES_FIRST	64u
#define PLACES_MAX	(1u << 24)

/* Rights in what a region is for. */
#define LOCAL_WRITES	(FI_RECV | FI_READ)

struct region_place {
	struct region *region;
	uint32_t generation;
	uint32_t next;		/* free place + 1; 0: none */
};

/* ---- places ------------------------------------------------------------ */

static int places_grow(struct domain *domain)
{
	uint32_t size = domain->nregions ? 2 * domain->nregions : PLACES_FIRST;
	struct region_place *places;
	uint32_t i;

	if (size > PLACES_MAX)
		return -FI_ENOMEM;
	places = realloc(domain->regions, size * sizeof(*places));
	if (!places)
		return -FI_ENOMEM;
	for (i = domain->nregions; i < size; i++) {
		places[i].region = NULL;
		places[i].generation = 0;
		places[i].next = i + 1 < size ? i + 2 : 0;
	}
	domain->free_region = domain->nregions + 1;
	domain->regions = places;
	domain->nregions = size;
	return 0;
}

static int place_take(struct domain *domain, struct region *region)
{
	struct region_place *place;
	uintptr_t generation;

	if (!domain->free_region && places_grow(domain))
		return -FI_ENOMEM;
	region->place = domain->free_region - 1;
	place = &domain->regions[region->place];
	domain->free_region = place->next;
	place->region = region;
	generation = ++place->generation;
	region->fid.mem_desc = (void *)(generation << 32 | (region->place + 1));
	return 0;
}

static void place_give(struct region *region)
{
	struct domain *domain = region->domain;
	struct region_place *place = &domain->regions[region->place];

	place->region = NULL;
	place->next = domain->free_region;
	domain->free_region = region->place + 1;
}

/* NULL: the descriptor is of no region of this domain. */
static struct region *region_of(const struct domain *domain, const void *desc)
{
	uintptr_t bits = (uintptr_t)desc;
	uint32_t place = (uint32_t)bits - 1;

	if (!desc || place >= domain->nregions ||
	    domain->regions[place].generation != bits >> 32)
		return NULL;
	return domain->regions[place].region;
}

/* ---- local memory ------------------------------------------------------ */

static uint32_t rights_of(uint64_t access)
{
	uint32_t rights = 0;

	if (access & LOCAL_WRITES)
		rights |= FABREX_MR_LOCAL_WRITE;
	if (access & FI_REMOTE_READ)
		rights |= FABREX_MR_REMOTE_READ;
	if (access & FI_REMOTE_WRITE)
		rights |= FABREX_MR_REMOTE_WRITE | FABREX_MR_REMOTE_ATOMIC;
	return rights;
}

static bool covers(const struct region *region, uint64_t from, size_t len,
		   uint32_t access)
{
	return from >= region->base && len <= region->length &&
	       from - region->base <= region->length - len &&
	       !(access & ~(rights_of(region->access) & FABREX_MR_LOCAL_WRITE));
}

int local_get(struct domain *domain, const void *buf, size_t len, void *desc,
	      uint32_t access, struct local *local)
{
	struct region *region = region_of(domain, desc);
	int ret;

	memset(local, 0, sizeof(*local));
	if (!len)
		return 0;
	if (region && covers(region, (uintptr_t)buf, len, access)) {
		region->users++;
		local->region = region;
		local->offset = (uintptr_t)buf - region->base;
		return 0;
	}
	ret = fabrex_mr_cache_get(domain->port, (void *)(uintptr_t)buf, len,
				  access, &local->mr, &local->offset);
	if (ret) {
		INFO(FI_LOG_MR, "%zu bytes at %p: %s\n", len, buf,
		     fabrex_strerror_last());
		return fi_of_errno(ret);
	}
	local->cached = true;
	return 0;
}

static void region_put(struct region *region)
{
	if (!--region->users)
		object_free(region);
}

void local_put(struct local *local)
{
	if (local->cached)
		fabrex_mr_cache_put(local->mr);
	else if (local->region)
		region_put(local->region);
	memset(local, 0, sizeof(*local));
}

bool memory_is_device(struct domain *domain, const void *buf, void *desc)
{
	const struct region *region = region_of(domain, desc);
	struct fabrex_memory memory;

	if (region)
		return region->device;
	/* Then device memory always has a descriptor. */
	if (domain->mr_hmem)
		return false;
	return !fabrex_memory_query(buf, &memory, sizeof(memory)) &&
	       memory.kind != FABREX_MEMORY_HOST;
}

/* ---- closing ----------------------------------------------------------- */

/*
 * From here on nothing new is posted with it; what is posted already, here or by
 * peers, has ended when libfabrex returns. Requests that still wait with it find
 * out when they are to be posted.
 */
static int region_close(struct fid *fid)
{
	struct region *region = container(fid, struct region, fid.fid);
	struct domain *domain = region->domain;
	struct fabrex_mr *mr;
	int ret;

	if (!object_is(fid, FI_CLASS_MR))
		return -FI_EBADF;
	domain_lock(domain);
	mr = region->mr;
	region->mr = NULL;
	domain_unlock(domain);
	if (!mr)
		return -FI_EBADF;
	ret = fabrex_mr_deregister(mr);
	domain_lock(domain);
	if (ret) {
		region->mr = mr;
		WARN(FI_LOG_MR, "region of %zu bytes: %s\n", region->length,
		     fabrex_strerror_last());
		domain_unlock(domain);
		return fi_of_errno(ret);
	}
	board_delete(domain, region->fid.key);
	place_give(region);
	region->fid.fid.fclass = FI_CLASS_UNSPEC;
	region_put(region);
	domain->users--;
	domain_unlock(domain);
	return 0;
}

static int get_raw(const struct region *region, struct fi_mr_raw_attr *attr)
{
	size_t room;

	if (!attr || !attr->key_size)
		return -FI_EINVAL;
	room = *attr->key_size;
	*attr->key_size = KEY_SIZE;
	if (room < KEY_SIZE)
		return -FI_ETOOSMALL;
	if (!attr->raw_key || attr->flags)
		return -FI_EINVAL;
	memcpy(attr->raw_key, &region->fid.key, KEY_SIZE);
	if (attr->base_addr)
		*attr->base_addr = region->domain->virt_addr ? region->base : 0;
	return 0;
}

static int region_control(struct fid *fid, int command, void *arg)
{
	const struct region *region = container(fid, struct region, fid.fid);

	if (!object_is(fid, FI_CLASS_MR))
		return -FI_EBADF;
	switch (command) {
	case FI_ENABLE:		/* it always is */
		return 0;
	case FI_GET_RAW_MR:
		return get_raw(region, arg);
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops region_ops = {
	.size = sizeof(struct fi_ops),
	.close = region_close,
	.bind = no_bind,
	.control = region_control,
	.ops_open = no_ops_open,
};

/* ---- registering ------------------------------------------------------- */

/* What all ways to register end in. */
struct wish {
	struct fabrex_mr_attr attr;
	uint64_t base, access;
	void *context;
};

static int refuse(const char *what, uint64_t value)
{
	INFO(FI_LOG_MR, "registration: %s 0x%" PRIx64 " is not offered\n", what,
	     value);
	return -FI_EINVAL;
}

/* The region is known to the domain, and to peers if they need its base. */
static int publish(struct region *region)
{
	struct domain *domain = region->domain;
	int ret;

	ret = place_take(domain, region);
	if (ret)
		return ret;
	ret = board_insert(domain, region->fid.key, region->base);
	if (ret)
		place_give(region);
	else
		domain->users++;
	return ret;
}

static int tell(struct region *region, void *context)
{
	struct domain *domain = region->domain;
	struct fi_eq_entry entry = {
		.fid = &region->fid.fid,
		.context = context,
	};

	return domain->mr_events ? eq_event(domain->eq, FI_MR_COMPLETE, &entry,
					    sizeof(entry)) : 0;
}

static int make(struct domain *domain, const struct wish *wish,
		struct region *region)
{
	int ret = fabrex_mr_register_attr(domain->port, &wish->attr,
					  sizeof(wish->attr), &region->mr);

	if (ret) {
		INFO(FI_LOG_MR, "registration of %" PRIu64 " bytes: %s\n",
		     wish->attr.length, fabrex_strerror_last());
		return fi_of_errno(ret);
	}
	region->domain = domain;
	region->base = wish->base;
	region->length = wish->attr.length;
	region->access = wish->access;
	region->device = fabrex_mr_kind(region->mr) != FABREX_MEMORY_HOST;
	region->users = 1;
	region->fid.key = fabrex_mr_key(region->mr);
	domain_lock(domain);
	ret = publish(region);
	domain_unlock(domain);
	if (ret)
		fabrex_mr_deregister(region->mr);
	return ret;
}

static int region_new(struct domain *domain, struct wish *wish,
		      struct fid_mr **out)
{
	struct region *region;
	int ret;

	wish->attr.access = rights_of(wish->access);
	region = object_new(sizeof(*region), FI_CLASS_MR, wish->context,
			    &region_ops);
	if (!region)
		return -FI_ENOMEM;
	ret = make(domain, wish, region);
	if (ret) {
		object_free(region);
		return ret;
	}
	*out = &region->fid;
	ret = tell(region, wish->context);
	if (ret)
		region_close(&region->fid.fid);
	return ret;
}

static struct domain *domain_of(struct fid *fid)
{
	return object_is(fid, FI_CLASS_DOMAIN) ?
	       container(fid, struct domain, fid.fid) : NULL;
}

static int check_access(uint64_t access, uint64_t offset)
{
	const uint64_t known = FI_SEND | FI_RECV | FI_READ | FI_WRITE |
			       FI_REMOTE_READ | FI_REMOTE_WRITE;

	if (access & ~known)
		return refuse("access", access & ~known);
	return offset ? refuse("offset", offset) : 0;
}

int region_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
	       uint64_t offset, uint64_t requested_key, uint64_t flags,
	       struct fid_mr **mr, void *context)
{
	struct domain *domain = domain_of(fid);
	struct wish wish = {
		.attr = { .addr = (void *)(uintptr_t)buf, .length = len },
		.base = (uintptr_t)buf,
		.access = access,
		.context = context,
	};
	int ret;

	(void)requested_key;	/* keys are ours: FI_MR_PROV_KEY */
	if (!domain)
		return -FI_EBADF;
	if (!mr)
		return -FI_EINVAL;
	if (flags & ~(FI_HMEM_HOST_ALLOC | FI_HMEM_DEVICE_ONLY)) {
		refuse("flag", flags);
		return -FI_EBADFLAGS;
	}
	ret = check_access(access, offset);
	return ret ? ret : region_new(domain, &wish, mr);
}

int region_regv(struct fid *fid, const struct iovec *iov, size_t count,
		uint64_t access, uint64_t offset, uint64_t requested_key,
		uint64_t flags, struct fid_mr **mr, void *context)
{
	if (!domain_of(fid))
		return -FI_EBADF;
	if (!iov || count != 1)
		return refuse("number of buffers in one region", count);
	return region_reg(fid, iov->iov_base, iov->iov_len, access, offset,
			  requested_key, flags, mr, context);
}

/*
 * Whose memory it is, libfabrex finds out: the runtime is loaded, since the
 * program has its memory.
 */
static int check_attr(const struct domain *domain,
		      const struct fi_mr_attr *attr)
{
	uint32_t version = domain->fabric->version;

	/* Older programs have shorter structures. */
	if (version >= FI_VERSION(1, 5) && attr->auth_key_size)
		return refuse("auth_key_size", attr->auth_key_size);
#if FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) >= FI_VERSION(2, 0)
	if (version >= FI_VERSION(2, 0) && attr->base_mr)
		return refuse("base_mr, a part of a region,", 1);
#endif
	if (domain->hmem && attr->iface > FI_HMEM_ROCR) {
		refuse("iface", attr->iface);
		return -FI_EOPNOTSUPP;
	}
	return 0;
}

#ifdef FI_MR_DMABUF
static int regattr_dmabuf(struct fid *fid, const struct fi_mr_attr *attr,
			  struct fid_mr **mr)
{
	const struct fi_mr_dmabuf *dmabuf = attr->dmabuf;
	struct wish wish = {
		.access = attr->access,
		.context = attr->context,
	};
	int ret;

	if (!dmabuf || attr->iov_count != 1)
		return refuse("number of buffers in one region",
			      attr->iov_count);
	ret = check_access(attr->access, attr->offset);
	if (ret)
		return ret;
	wish.base = (uintptr_t)dmabuf->base_addr + dmabuf->offset;
	wish.attr.kind = FABREX_MEMORY_DMABUF;
	wish.attr.fd = dmabuf->fd;
	wish.attr.offset = dmabuf->offset;
	wish.attr.length = dmabuf->len;
	return region_new(domain_of(fid), &wish, mr);
}
#endif

int region_regattr(struct fid *fid, const struct fi_mr_attr *attr,
		   uint64_t flags, struct fid_mr **mr)
{
	int ret;

	if (!domain_of(fid))
		return -FI_EBADF;
	if (!attr || !mr)
		return -FI_EINVAL;
	ret = check_attr(domain_of(fid), attr);
	if (ret)
		return ret;
#ifdef FI_MR_DMABUF
	if (flags == FI_MR_DMABUF)
		return regattr_dmabuf(fid, attr, mr);
#endif
	return region_regv(fid, attr->mr_iov, attr->iov_count, attr->access,
			   attr->offset, attr->requested_key, flags, mr,
			   attr->context);
}
