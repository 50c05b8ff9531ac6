// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: memory of a process or of an exporter that the device may
 * access. Called by file.c for the ioctl, and by res.c.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "data.h"
#include "trace.h"

#define MR_ACCESS_WRITE	(FABREX_ACCESS_LOCAL_WRITE |	\
			 FABREX_ACCESS_REMOTE_WRITE |	\
			 FABREX_ACCESS_REMOTE_ATOMIC)
#define MR_ACCESS_ALL	(MR_ACCESS_WRITE | FABREX_ACCESS_REMOTE_READ)
#define MR_FLAGS_ALL	(FABREX_MR_PEERS | FABREX_MR_DMABUF |		\
			 FABREX_MR_PIN | FABREX_MR_WATCH)

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

	/* Port and file may soon work again, but not this key. */
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

static const struct fabrex_res_ops fabrex_mr_ops = {
	.type = FABREX_RES_MR,
	.detach = fabrex_mr_detach,
	.destroy = fabrex_mr_destroy,
	.settle = fabrex_mr_settle,
	.fail = fabrex_mr_fail,
	.free = fabrex_mr_free,
};

/* Everything that needs the device. A dma-buf is mapped, with its dma_resv
 * held.
 */
static int fabrex_mr_create(struct fabrex_mr *mr,
			    struct fabrex_mr_params *params, u64 *key)
{
	struct fabrex_res *res = &mr->res;
	struct fabrex_port *port = res->port;
	const struct fabrex_data_ops *data;
	int ret;

	down_read(&port->registration_lock);
	ret = fabrex_port_usable(port);
	if (!ret && !mr->dmabuf)
		ret = fabrex_pin_map(&mr->pin);
	if (ret)
		goto made;
	if (mr->dmabuf)
		fabrex_dmabuf_memory(mr->dmabuf, &params->memory);
	else
		fabrex_pin_memory(&mr->pin, &params->memory);
	ret = -EINVAL;
	if (!fabrex_memory_complete(&params->memory))
		goto made;
	data = port->ops->data;
	ret = data->mr_create(port, params, &res->number, key);
	if (ret)
		goto made;
	res->created = true;
	/* From here on its exporter can have the device invalidate it. */
	if (mr->dmabuf)
		fabrex_dmabuf_known(mr->dmabuf, true);
	ret = data->mr_pages(port, res->number, &params->memory);
	if (!ret)
		ret = fabrex_res_insert(res);
made:
	ret = fabrex_res_made(res, ret);
	up_read(&port->registration_lock);
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

/* The bits of word @word that stand for existing peers. */
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

	ret = fabrex_dmabuf_open(&mr->res, &mr->watch, cmd,
				 cmd->access & MR_ACCESS_WRITE, &mr->dmabuf);
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
 * Context: Process; sleeps.
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
	ret = fabrex_res_init(&mr->res, file, &fabrex_mr_ops, 1);
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
