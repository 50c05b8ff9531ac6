// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Bounce buffers: registered memory that datagrams and injected data are sent
 * from, in two sizes. The one used last is taken first, as it is in the
 * processor's caches. Used by endpoint.c; taking and returning is in peer.h.
 */
#include <stdlib.h>

#include "peer.h"

static void prepare(struct bounces *b, size_t nsmall, size_t nlarge)
{
	char *base = fabrex_mr_addr(b->mr);
	struct bounce *bounce;
	size_t i, at = 0;

	/* The first of each is taken first. */
	for (i = nsmall + nlarge; i-- > 0;) {
		bounce = &b->all[i];
		bounce->small = i < nsmall;
		at = i < nsmall ? i * BOUNCE_SMALL :
		     nsmall * BOUNCE_SMALL + (i - nsmall) * b->large_size;
		bounce->data = base + at;
		bounce->offset = at;
		list_init(&bounce->node);
		if (bounce->small) {
			bounce->next = b->small;
			b->small = bounce;
		} else {
			bounce->next = b->large;
			b->large = bounce;
		}
	}
	b->nsmall = nsmall;
	b->nlarge = nlarge;
}

int bounces_open(struct endpoint *ep, size_t nsmall, size_t nlarge)
{
	struct bounces *b = &ep->bounces;
	uint32_t access = FABREX_MR_LOCAL_WRITE;
	int ret;

	/* What has arrived for a device goes there from a bounce buffer. */
	if (ep->hmem)
		access |= FABREX_MR_REMOTE_READ;
	b->large_size = ep->cell_size;
	b->small = b->large = NULL;
	b->all = aligned_alloc(64, ((nsmall + nlarge) * sizeof(*b->all) + 63) &
				   ~(size_t)63);
	if (!b->all)
		return -FI_ENOMEM;
	ret = fabrex_mr_alloc(ep->domain->port, nsmall * BOUNCE_SMALL +
			      nlarge * b->large_size, access, &b->mr);
	if (ret) {
		WARN(FI_LOG_EP_CTRL, "no bounce buffers: %s\n",
		     fabrex_strerror_last());
		free(b->all);
		b->all = NULL;
		return fi_of_errno(ret);
	}
	prepare(b, nsmall, nlarge);
	return 0;
}

void bounces_close(struct endpoint *ep)
{
	struct bounces *b = &ep->bounces;

	if (b->mr)
		fabrex_mr_deregister(b->mr);
	free(b->all);
	b->mr = NULL;
	b->all = NULL;
	b->small = b->large = NULL;
	b->nsmall = b->nlarge = 0;
}
