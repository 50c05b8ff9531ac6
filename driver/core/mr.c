// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: what of a process's memory, or of an exporter's, the device
 * may access. Called by file.c for the ioctl, by res.c and by dmabuf.c.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "core.h"
#include "trace.h"

#define MR_ACCESS_WRITE	(FABREX_ACCESS_LOCAL_WRITE |	\
			 FABREX_ACCESS_REMOTE_WRITE |	\
			 FABREX_ACCESS_REMOTE_ATOMIC)
#define MR_ACCESS_ALL	(MR_ACCESS_WRITE | FABREX_ACCESS_REMOTE_READ)
#define MR_FLAGS_ALL	(FABREX_MR_PEERS | FABREX_MR_DMABUF |		\
			 FABREX_MR_PIN | FABREX_MR_WATCH)

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
	struct fabrex_mr *mr = to_mr(res);

	if (mr->dmabuf)
		return fabrex_dmabuf_destroy(mr->dmabuf);
	return res->port->ops->data->mr_destroy(res->port, res->number);
}

static void fabrex_mr_fail(struct fabrex_res *res, u32 qerr)
{
	struct fabrex_mr *mr = to_mr(res);

	/* The port may work again soon, and the file with it: not this key. */
	fabrex_watch_count(&mr->watch);
	if (mr->dmabuf)
		fabrex_dmabuf_known(mr->dmabuf, false);
}

static void fabrex_mr_settle(struct fabrex_res *res)
{
	struct fabrex_mr *mr = to_mr(res);

	if (mr->dmabuf)
		fabrex_dmabuf_known(mr->dmabuf, false);
	else
		fabrex_unpin(&mr->pin);
}

static void fabrex_mr_free(struct fabrex_res *res)
{
	struct fabrex_mr *mr = to_mr(res);

	if (mr->dmabuf)
		fabrex_dmabuf_free(mr->dmabuf);
	fabrex_watch_exit(&mr->watch);
	kfree(mr);
}

const struct fabrex_res_ops fabrex_mr_ops = {
	.detach = fabrex_mr_detach,
	.destroy = fabrex_mr_destroy,
	.settle = fabrex_mr_settle,
	.fail = fabrex_mr_fail,
	.free = fabrex_mr_free,
};

/**
 * struct fabrex_span - the pages of a region
 * @sgt:  mapped for DMA
 * @from: position in it of the first page
 * @to:   and behind the last one
 */
struct fabrex_span {
	const struct sg_table *sgt;
	u64 from;
	u64 to;
};

static struct fabrex_span fabrex_mr_span(const struct fabrex_mr *mr)
{
	const struct fabrex_dmabuf *buf = mr->dmabuf;

	if (!buf)
		return (struct fabrex_span) {
			.sgt = &mr->pin.sgt.sgt,
			.to = (u64)mr->pin.npages << PAGE_SHIFT,
		};
	return (struct fabrex_span) {
		.sgt = buf->sgt,
		.from = round_down(buf->offset, FABREX_PAGE_SIZE),
		.to = round_up(buf->offset + buf->length, FABREX_PAGE_SIZE),
	};
}

/* Choose the size of pages. -EINVAL: there is less than the region needs, or
 * it takes more pages than the device can note.
 */
static int fabrex_mr_layout(const struct fabrex_mr *mr,
			    struct fabrex_mr_params *params)
{
	struct fabrex_span span = fabrex_mr_span(mr);
	struct fabrex_layout layout = {};
	struct scatterlist *sg;
	u64 len, off, pos = 0;
	int i;

	for_each_sgtable_dma_sg(span.sgt, sg, i) {
		len = fabrex_layout_clip(pos, sg_dma_len(sg), span.from,
					 span.to, &off);
		if (len)
			fabrex_layout_add(&layout, sg_dma_address(sg) + off,
					  len);
		pos += sg_dma_len(sg);
	}
	if (layout.length != span.to - span.from)
		return -EINVAL;
	params->page_shift = fabrex_layout_shift(&layout);
	params->npages = layout.length >> params->page_shift;
	params->first = mr->dmabuf ?
			mr->dmabuf->offset & (FABREX_PAGE_SIZE - 1) :
			mr->pin.offset;
	return params->npages > mr->res.port->info.max_mr_pages ? -EINVAL : 0;
}

struct fabrex_mr_batch {
	struct fabrex_mr *mr;
	__le64 *pages;
	u32 shift;
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
	ret = res->port->ops->data->mr_pages(res->port, res->number,
					     batch->shift, batch->first,
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

/* The pages that begin in a piece, which is at @pos of the region. */
static int fabrex_mr_piece(struct fabrex_mr_batch *batch, u64 addr, u64 length,
			   u64 pos)
{
	u64 off;
	int ret;

	for (off = 0; fabrex_layout_page(length, pos, batch->shift, &off);
	     off += 1ull << batch->shift) {
		ret = fabrex_mr_batch_add(batch, addr + off);
		if (ret)
			return ret;
	}
	return 0;
}

static int fabrex_mr_pages(struct fabrex_mr_batch *batch)
{
	struct fabrex_span span = fabrex_mr_span(batch->mr);
	u64 len, off, pos = 0, done = 0;
	struct scatterlist *sg;
	int i, ret;

	for_each_sgtable_dma_sg(span.sgt, sg, i) {
		len = fabrex_layout_clip(pos, sg_dma_len(sg), span.from,
					 span.to, &off);
		ret = fabrex_mr_piece(batch, sg_dma_address(sg) + off, len,
				      done);
		if (ret)
			return ret;
		done += len;
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
		.shift = params->page_shift,
		.room = min_t(u64, params->npages, MR_BATCH),
	};
	int ret;

	batch.pages = kvmalloc_array(batch.room, sizeof(*batch.pages),
				     GFP_KERNEL_ACCOUNT);
	if (!batch.pages)
		return -ENOMEM;
	ret = fabrex_mr_pages(&batch);
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
	if (!ret && !mr->dmabuf)
		ret = fabrex_pin_map(&mr->pin);
	if (!ret)
		ret = fabrex_mr_layout(mr, params);
	if (!ret)
		ret = port->ops->data->mr_create(port, params, &res->number,
						 key);
	if (ret)
		return ret;
	res->created = true;
	if (mr->dmabuf)
		fabrex_dmabuf_known(mr->dmabuf, true);
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

/**
 * fabrex_mr_restore() - supply the pages of a dma-buf again
 * @mr: invalid on the device; its dma-buf is mapped, with dma_resv held
 *
 * Return: 0; -ESTALE if the device has forgotten the region, or is about to;
 * another negative errno, the region is invalid then and has no pages
 */
int fabrex_mr_restore(struct fabrex_mr *mr)
{
	struct fabrex_dmabuf *buf = mr->dmabuf;
	struct fabrex_port *port = buf->port;
	struct fabrex_mr_params params = {};
	int ret;

	guard(rwsem_read)(&port->registration_lock);
	guard(mutex)(&buf->supply_lock);
	if (!buf->known || fabrex_port_usable(port))
		return -ESTALE;
	ret = fabrex_mr_layout(mr, &params);
	if (!ret)
		ret = fabrex_mr_supply(mr, &params);
	/* Perhaps some have been given. */
	if (ret && port->ops->data->mr_invalidate(port, mr->res.number))
		return -ESTALE;
	return ret;
}

static int fabrex_mr_check(const struct fabrex_port *port,
			   const struct fabrex_mr_register *cmd)
{
	if (cmd->flags & ~MR_FLAGS_ALL || cmd->access & ~MR_ACCESS_ALL ||
	    !cmd->length || cmd->__reserved)
		return -EINVAL;
	if (cmd->flags & FABREX_MR_DMABUF && !(port->caps & FABREX_CAP_DMABUF))
		return -EOPNOTSUPP;
	if (!(cmd->flags & FABREX_MR_DMABUF) &&
	    (cmd->fd || cmd->flags & FABREX_MR_PIN))
		return -EINVAL;
	if (!(cmd->flags & FABREX_MR_WATCH) && cmd->watch)
		return -EINVAL;
	if (!(cmd->flags & FABREX_MR_PEERS) && (cmd->peers || cmd->npeers))
		return -EINVAL;
	return cmd->npeers > FABREX_PEER_WORDS_MAX ? -EINVAL : 0;
}

/* Bits of word @word that name peers. */
static u64 fabrex_peers_mask(const struct fabrex_port *port, u32 word)
{
	u32 peers = port->info.max_peers, first = word * 64;

	if (peers <= first)
		return 0;
	return peers - first >= 64 ? U64_MAX : (1ull << (peers - first)) - 1;
}

static int fabrex_mr_peers(const struct fabrex_port *port,
			   struct fabrex_mr_params *params,
			   const struct fabrex_mr_register *cmd)
{
	const u64 __user *from = u64_to_user_ptr(cmd->peers);
	u64 word;
	u32 i;

	if (!(cmd->flags & FABREX_MR_PEERS)) {
		memset(params->peers, 0xff, sizeof(params->peers));
		return 0;
	}
	for (i = 0; i < cmd->npeers; i++) {
		if (copy_from_user(&word, from + i, sizeof(word)))
			return -EFAULT;
		if (word & ~fabrex_peers_mask(port, i))
			return -EINVAL;
		if (word)
			params->peers[i] = word;
	}
	return 0;
}

/* Memory of the process. */
static int fabrex_mr_pin(struct fabrex_mr *mr, struct fabrex_mr_params *params,
			 struct fabrex_mr_register *cmd)
{
	u64 npages;
	int ret;

	ret = fabrex_pin_size(cmd->addr, cmd->length, &npages);
	if (!ret)
		ret = fabrex_res_charge_bytes(&mr->res, npages << PAGE_SHIFT);
	if (!ret)
		ret = fabrex_res_charge_locked(&mr->res, npages);
	if (ret)
		return ret;
	ret = fabrex_watch_pin(&mr->watch, &mr->pin, mr->res.port, cmd->addr,
			       cmd->length, cmd->access & MR_ACCESS_WRITE);
	if (ret)
		return ret;
	return fabrex_mr_create(mr, params, &cmd->out_key);
}

/* Memory of an exporter. */
static int fabrex_mr_import(struct fabrex_mr *mr,
			    struct fabrex_mr_params *params,
			    struct fabrex_mr_register *cmd)
{
	int ret;

	ret = fabrex_dmabuf_open(mr, cmd, cmd->access & MR_ACCESS_WRITE);
	if (!ret)
		ret = fabrex_dmabuf_enter(mr->dmabuf);
	if (ret)
		return ret;
	ret = fabrex_mr_create(mr, params, &cmd->out_key);
	fabrex_dmabuf_leave(mr->dmabuf, !ret);
	return ret;
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
	if (!ret)
		ret = fabrex_mr_peers(file->port, &params, cmd);
	if (ret)
		return ret;
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return -ENOMEM;
	ret = fabrex_res_init(&mr->res, file, FABREX_RES_MR, 1);
	if (ret) {
		kfree(mr);
		return ret;
	}
	ret = fabrex_watch_init(&mr->watch, file, cmd);
	if (!ret && cmd->flags & FABREX_MR_DMABUF)
		ret = fabrex_mr_import(mr, &params, cmd);
	else if (!ret)
		ret = fabrex_mr_pin(mr, &params, cmd);
	trace_fabrex_mr_register(&mr->res, &params, cmd->addr, ret);
	if (ret) {
		fabrex_res_discard(&mr->res);
		return ret;
	}
	cmd->out_id = mr->res.id;
	return fabrex_res_publish(&mr->res, ucmd);
}
