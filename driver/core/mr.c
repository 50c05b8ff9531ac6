// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: what of a process's memory the device may access. Called by
 * file.c for the ioctl and by res.c.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "core.h"
#include "trace.h"

#define MR_ACCESS_WRITE	(FABREX_ACCESS_LOCAL_WRITE |	\
			 FABREX_ACCESS_REMOTE_WRITE |	\
			 FABREX_ACCESS_REMOTE_ATOMIC)
#define MR_ACCESS_ALL	(MR_ACCESS_WRITE | FABREX_ACCESS_REMOTE_READ)

/* Page addresses handed to the backend at a time: 128 KiB. */
#define MR_BATCH	16384u

static struct fabrex_mr *to_mr(struct fabrex_res *res)
{
	return container_of(res, struct fabrex_mr, res);
}

static void fabrex_mr_detach(struct fabrex_res *res)
{
}

static int fabrex_mr_destroy(struct fabrex_res *res)
{
	return res->port->ops->mr_destroy(res->port, res->number);
}

static void fabrex_mr_settle(struct fabrex_res *res)
{
	fabrex_unpin(&to_mr(res)->pin);
}

static void fabrex_mr_fail(struct fabrex_res *res, u32 qerr)
{
}

static void fabrex_mr_free(struct fabrex_res *res)
{
	kfree(to_mr(res));
}

const struct fabrex_res_ops fabrex_mr_ops = {
	.detach = fabrex_mr_detach,
	.destroy = fabrex_mr_destroy,
	.settle = fabrex_mr_settle,
	.fail = fabrex_mr_fail,
	.free = fabrex_mr_free,
};

static void fabrex_mr_layout(const struct fabrex_mr *mr,
			     struct fabrex_mr_params *params)
{
	struct fabrex_layout layout = {};
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(&mr->pin.sgt.sgt, sg, i)
		fabrex_layout_add(&layout, sg_dma_address(sg), sg_dma_len(sg));
	params->page_shift = fabrex_layout_shift(&layout);
	params->npages = layout.length >> params->page_shift;
	params->first = mr->pin.offset;
}

struct fabrex_mr_batch {
	struct fabrex_mr *mr;
	__le64 *pages;
	u32 room;
	u32 n;
	u64 first;
};

static int fabrex_mr_flush(struct fabrex_mr_batch *batch)
{
	struct fabrex_res *res = &batch->mr->res;
	int ret;

	if (!batch->n)
		return 0;
	ret = res->port->ops->mr_pages(res->port, res->number, batch->first,
				       batch->pages, batch->n);
	batch->first += batch->n;
	batch->n = 0;
	return ret;
}

static int fabrex_mr_batch_add(struct fabrex_mr_batch *batch, u64 page)
{
	batch->pages[batch->n++] = cpu_to_le64(page);
	return batch->n == batch->room ? fabrex_mr_flush(batch) : 0;
}

static int fabrex_mr_pages(struct fabrex_mr_batch *batch, u32 shift)
{
	struct scatterlist *sg;
	u64 off, pos = 0;
	int i, ret;

	for_each_sgtable_dma_sg(&batch->mr->pin.sgt.sgt, sg, i) {
		for (off = 0; fabrex_layout_page(sg_dma_len(sg), pos, shift,
						 &off); off += 1ull << shift) {
			ret = fabrex_mr_batch_add(batch,
						  sg_dma_address(sg) + off);
			if (ret)
				return ret;
		}
		pos += sg_dma_len(sg);
		cond_resched();
	}
	return fabrex_mr_flush(batch);
}

static int fabrex_mr_supply(struct fabrex_mr *mr,
			    const struct fabrex_mr_params *params)
{
	struct fabrex_mr_batch batch = {
		.mr = mr,
		.room = min_t(u64, params->npages, MR_BATCH),
	};
	int ret;

	batch.pages = kvmalloc_array(batch.room, sizeof(*batch.pages),
				     GFP_KERNEL);
	if (!batch.pages)
		return -ENOMEM;
	ret = fabrex_mr_pages(&batch, params->page_shift);
	kvfree(batch.pages);
	return ret;
}

static int fabrex_mr_make(struct fabrex_mr *mr, struct fabrex_mr_params *params,
			  u64 *key)
{
	struct fabrex_res *res = &mr->res;
	struct fabrex_port *port = res->port;
	int ret;

	ret = fabrex_port_usable(port);
	if (ret)
		return ret;
	ret = fabrex_pin_map(&mr->pin);
	if (ret)
		return ret;
	fabrex_mr_layout(mr, params);
	if (params->npages > port->info.max_mr_pages)
		return -EINVAL;
	ret = port->ops->mr_create(port, params, &res->number, key);
	if (ret)
		return ret;
	res->created = true;
	ret = fabrex_mr_supply(mr, params);
	if (ret)
		return ret;
	return fabrex_res_insert(res);
}

/* Everything that needs the device. */
static int fabrex_mr_create(struct fabrex_mr *mr,
			    struct fabrex_mr_params *params, u64 *key)
{
	guard(rwsem_read)(&mr->res.port->registration_lock);
	return fabrex_res_made(&mr->res, fabrex_mr_make(mr, params, key));
}

static bool fabrex_peers_ok(const struct fabrex_port *port,
			    const struct fabrex_mr_register *cmd)
{
	u32 peer;

	if (!(cmd->flags & FABREX_MR_PEERS))
		return !memchr_inv(cmd->peers, 0, sizeof(cmd->peers));
	for (peer = port->info.max_peers; peer < FABREX_MAX_PEERS; peer++)
		if (cmd->peers[peer / 64] & (1ull << (peer % 64)))
			return false;
	return true;
}

static int fabrex_mr_check(const struct fabrex_port *port,
			   const struct fabrex_mr_register *cmd)
{
	if (cmd->flags & ~FABREX_MR_PEERS || cmd->access & ~MR_ACCESS_ALL ||
	    cmd->__reserved || cmd->__reserved2 || !cmd->length)
		return -EINVAL;
	return fabrex_peers_ok(port, cmd) ? 0 : -EINVAL;
}

static void fabrex_mr_peers(struct fabrex_mr_params *params,
			    const struct fabrex_mr_register *cmd)
{
	if (cmd->flags & FABREX_MR_PEERS)
		memcpy(params->peers, cmd->peers, sizeof(params->peers));
	else
		memset(params->peers, 0xff, sizeof(params->peers));
}

/**
 * fabrex_cmd_mr_register() - FABREX_IOCTL_MR_REGISTER
 * @ucmd: ioctl
 *
 * Return: as documented in the uapi header
 */
int fabrex_cmd_mr_register(struct fabrex_ucmd *ucmd)
{
	struct fabrex_mr_register *cmd = ucmd->cmd;
	struct fabrex_file *file = ucmd->file;
	struct fabrex_mr_params params = {
		.pd = file->pd,
		.access = cmd->access,
		.length = cmd->length,
	};
	struct fabrex_mr *mr;
	int ret;

	ret = fabrex_mr_check(file->port, cmd);
	if (ret)
		return ret;
	fabrex_mr_peers(&params, cmd);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return -ENOMEM;
	ret = fabrex_res_init(&mr->res, file, FABREX_RES_MR, 1);
	if (ret) {
		kfree(mr);
		return ret;
	}
	ret = fabrex_pin(&mr->pin, file->port, cmd->addr, cmd->length,
			 cmd->access & MR_ACCESS_WRITE);
	if (!ret)
		ret = fabrex_mr_create(mr, &params, &cmd->out_key);
	trace_fabrex_mr_register(&mr->res, &params, cmd->addr, ret);
	if (ret) {
		fabrex_res_discard(&mr->res);
		return ret;
	}
	cmd->out_id = mr->res.id;
	return fabrex_res_publish(&mr->res, ucmd);
}
