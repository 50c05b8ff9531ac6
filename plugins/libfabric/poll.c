// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Poll sets: completion queues and counters whose progress is made together.
 * Deprecated since libfabric 2.0. Called through domain.c.
 */
#include <stdlib.h>

#include "provider.h"

struct place {
	struct list node;
	struct fid *fid;
};

struct poll_set {
	struct fid_poll fid;
	struct domain *domain;
	struct list places;
};

static struct poll_set *set_of(struct fid_poll *fid)
{
	return container(fid, struct poll_set, fid);
}

static bool is_open(const struct fid_poll *fid)
{
	return object_is(&fid->fid, FI_CLASS_POLL);
}

static struct place *find(struct poll_set *set, const struct fid *fid)
{
	struct list *node, *after;

	list_each(node, after, &set->places)
		if (container(node, struct place, node)->fid == fid)
			return container(node, struct place, node);
	return NULL;
}

/* A queue or counter of the same domain, and how many use it; or NULL. */
static int *users_of(const struct poll_set *set, struct fid *fid)
{
	struct cq *cq = container(fid, struct cq, fid.fid);
	struct cntr *cntr = container(fid, struct cntr, fid.fid);

	if (object_mine(fid, FI_CLASS_CQ) && cq->domain == set->domain)
		return &cq->users;
	if (object_mine(fid, FI_CLASS_CNTR) && cntr->domain == set->domain)
		return &cntr->users;
	return NULL;
}

static int poll_add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct poll_set *set = set_of(fid);
	struct place *place;
	int *users;

	if (!is_open(fid))
		return -FI_EBADF;
	if (flags)
		return -FI_EBADFLAGS;
	users = users_of(set, event_fid);
	if (!users)
		return -FI_EINVAL;
	place = calloc(1, sizeof(*place));
	if (!place)
		return -FI_ENOMEM;
	place->fid = event_fid;
	domain_lock(set->domain);
	if (find(set, event_fid)) {
		free(place);
	} else {
		list_add(&set->places, &place->node);
		++*users;
	}
	domain_unlock(set->domain);
	return 0;
}

static void drop(struct poll_set *set, struct place *place)
{
	list_remove(&place->node);
	--*users_of(set, place->fid);
	free(place);
}

static int poll_del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct poll_set *set = set_of(fid);
	struct place *place;

	if (!is_open(fid))
		return -FI_EBADF;
	if (flags)
		return -FI_EBADFLAGS;
	domain_lock(set->domain);
	place = find(set, event_fid);
	if (place)
		drop(set, place);
	domain_unlock(set->domain);
	return place ? 0 : -FI_EINVAL;
}

static bool ready(struct fid *fid)
{
	return fid->fclass == FI_CLASS_CQ ?
	       cq_ready(container(fid, struct cq, fid.fid)) :
	       cntr_ready(container(fid, struct cntr, fid.fid));
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct poll_set *set = set_of(fid);
	struct list *node, *after;
	struct place *place;
	int n = 0;

	if (!is_open(fid))
		return -FI_EBADF;
	if (count < 0 || (!context && count))
		return -FI_EINVAL;
	domain_lock(set->domain);
	list_each(node, after, &set->places) {
		place = container(node, struct place, node);
		if (n < count && ready(place->fid))
			context[n++] = place->fid->context;
	}
	domain_unlock(set->domain);
	return n;
}

static int poll_close(struct fid *fid)
{
	struct poll_set *set = container(fid, struct poll_set, fid.fid);
	struct list *node, *after;

	if (!object_is(fid, FI_CLASS_POLL))
		return -FI_EBADF;
	domain_lock(set->domain);
	list_each(node, after, &set->places)
		drop(set, container(node, struct place, node));
	set->domain->users--;
	domain_unlock(set->domain);
	object_free(set);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = no_bind,
	.control = no_control,
	.ops_open = no_ops_open,
};

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int poll_open(struct fid_domain *fid, struct fi_poll_attr *attr,
	      struct fid_poll **out)
{
	struct poll_set *set;

	if (!object_is(&fid->fid, FI_CLASS_DOMAIN))
		return -FI_EBADF;
	if (!out || (attr && attr->flags))
		return -FI_EINVAL;
	set = object_new(sizeof(*set), FI_CLASS_POLL, NULL, &fid_ops);
	if (!set)
		return -FI_ENOMEM;
	set->fid.ops = &poll_ops;
	set->domain = container(fid, struct domain, fid);
	list_init(&set->places);
	domain_hold(set->domain);
	*out = &set->fid;
	return 0;
}
