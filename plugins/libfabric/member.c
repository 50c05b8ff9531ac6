// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The endpoints whose progress somebody makes who reads a completion queue or a
 * counter, and what they have to be waited for with. Used by endpoint.c, cq.c
 * and cntr.c, with the domain's lock.
 */
#include <stdlib.h>

#include "provider.h"

struct member {
	struct list node;
	struct endpoint *ep;
	progress_fn *progress;
	int fd;			/* of its queue, -1 */
};

static struct member *find(struct members *members, const struct endpoint *ep)
{
	struct list *node, *after;
	struct member *member;

	list_each(node, after, &members->list) {
		member = container(node, struct member, node);
		if (member->ep == ep)
			return member;
	}
	return NULL;
}

int members_add(struct members *members, struct endpoint *ep,
		progress_fn *progress)
{
	struct member *member;
	int ret = 0;

	if (find(members, ep))
		return 0;
	member = calloc(1, sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	member->ep = ep;
	member->progress = progress;
	member->fd = wait_sleeps(members->wait) ?
		     fabrex_queue_fd(ep->queue) : -1;
	if (member->fd >= 0)
		ret = wait_add(members->wait, member->fd);
	if (ret) {
		free(member);
		return ret;
	}
	list_add(&members->list, &member->node);
	return 0;
}

void members_remove(struct members *members, struct endpoint *ep)
{
	struct member *member = find(members, ep);

	if (!member)
		return;
	if (member->fd >= 0)
		wait_remove(members->wait, member->fd);
	list_remove(&member->node);
	free(member);
}

void members_progress(struct members *members)
{
	struct list *node, *after;
	struct member *member;

	list_each(node, after, &members->list) {
		member = container(node, struct member, node);
		member->progress(member->ep);
	}
}

void members_arm(struct members *members)
{
	struct list *node, *after;
	struct member *member;
	uint64_t due = 0;

	wait_clear(members->wait);
	members->wait->watched = true;
	list_each(node, after, &members->list) {
		member = container(node, struct member, node);
		/* A dead queue says no more: progress finds out. */
		if (member->fd >= 0)
			fabrex_arm(member->ep->queue);
		if (member->ep->due_ns && (!due || member->ep->due_ns < due))
			due = member->ep->due_ns;
	}
	wait_until(members->wait, due);
}
