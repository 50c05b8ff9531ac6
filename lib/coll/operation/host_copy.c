// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations that are performed on copies of the caller's buffers in the host's
 * memory, where the GPU that has them, or the algorithm, does not do without.
 * Called by progress.c.
 */
#include <stdlib.h>

#include "coll/operation/blocks.h"
#include "coll/operation/gpu.h"

struct host_copy {
	struct fabrex_collective what;	/* the caller's */
	uint8_t recv_kind;
	const struct algorithm *inner;
	void *send, *recv;
};

static int take_send(struct fabrex_coll *coll, struct host_copy *h)
{
	uint64_t sends = fxi_send_bytes(coll->comm, &coll->what);
	uint64_t recvs = fxi_recv_bytes(coll->comm, &coll->what);

	h->send = malloc(sends + 1);
	h->recv = malloc(recvs + 1);
	if (!h->send || !h->recv)
		return fxi_error(ENOMEM, "%s: no host memory for the copy of %llu bytes on a GPU",
				 fxi_kind_name(coll->what.kind),
				 (unsigned long long)(sends + recvs));
	return fxi_coll_copy_in(coll, h->send, coll->what.send, sends);
}

static void give_back(struct fabrex_coll *coll)
{
	struct host_copy *h = coll->host_copy;

	if (h) {
		free(h->send);
		free(h->recv);
	}
	free(h);
	coll->host_copy = NULL;
}

static int hosted_start(struct fabrex_coll *coll)
{
	struct host_copy *h = coll->host_copy;
	int ret = take_send(coll, h);

	if (!ret) {
		h->what = coll->what;
		h->recv_kind = coll->recv_kind;
		coll->what.send = h->send;
		coll->what.recv = h->recv;
		coll->send_kind = coll->recv_kind = 0;
		ret = h->inner->start(coll);
	}
	if (ret)
		give_back(coll);
	return ret;
}

/* What is between blocks stays as it is in the caller's buffer. */
static int give_blocks(const struct fabrex_coll *coll,
		       const struct host_copy *h)
{
	const struct fabrex_comm *comm = coll->comm;
	struct blocks blocks;
	struct block block;
	uint32_t i;
	int ret = 0;

	fxi_recv_blocks(comm, &h->what, &blocks);
	for (i = 0; i < (blocks.counts ? comm->size : 1) && !ret; i++) {
		block = fxi_blocks_next(&blocks);
		if (block.bytes)
			ret = fxi_coll_copy_out(coll, (char *)h->what.recv +
						block.at,
						(char *)h->recv + block.at,
						block.bytes);
	}
	return ret;
}

static int hosted_step(struct fabrex_coll *coll)
{
	struct host_copy *h = coll->host_copy;
	int ret = h->inner->step(coll);

	if (ret != 1)
		return ret;
	coll->recv_kind = h->recv_kind;
	if (fxi_kind_varies(h->what.kind))
		ret = give_blocks(coll, h);
	else
		ret = fxi_coll_copy_out(coll, h->what.recv, h->recv,
					fxi_recv_bytes(coll->comm, &h->what));
	return ret ? ret : 1;
}

static void hosted_end(struct fabrex_coll *coll)
{
	coll->host_copy->inner->end(coll);
	give_back(coll);
}

static const struct algorithm hosted = {
	.name = "hosted",
	.start = hosted_start,
	.step = hosted_step,
	.end = hosted_end,
};

int fxi_coll_use_host(struct fabrex_coll *coll)
{
	coll->host_copy = calloc(1, sizeof(*coll->host_copy));
	if (!coll->host_copy)
		return fxi_error(ENOMEM, "%s: out of memory",
				 fxi_kind_name(coll->what.kind));
	coll->host_copy->inner = coll->algorithm;
	coll->algorithm = &hosted;
	return 0;
}
