// SPDX-License-Identifier: GPL-2.0-only
/*
 * Windows: slots of the aperture that are mapped to a peer's region. Called by
 * file.c for the ioctl, and by res.c.
 */
#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "data.h"
#include "trace.h"

#define WINDOW_ACCESS_ALL	(FABREX_ACCESS_REMOTE_READ |	\
				 FABREX_ACCESS_REMOTE_WRITE)

static struct fabrex_window *to_window(struct fabrex_res *res)
{
	return container_of(res, struct fabrex_window, res);
}

static int fabrex_slots_get(struct fabrex_window *window)
{
	struct fabrex_port *port = window->res.port;
	unsigned long slot;

	guard(mutex)(&port->slots_lock);
	slot = bitmap_find_next_zero_area(port->slots, port->info.max_windows,
					  0, window->nslots, 0);
	if (slot >= port->info.max_windows)
		return -ENOSPC;
	bitmap_set(port->slots, slot, window->nslots);
	window->slot = slot;
	return 0;
}

static void fabrex_slots_put(struct fabrex_window *window)
{
	struct fabrex_port *port = window->res.port;

	guard(mutex)(&port->slots_lock);
	bitmap_clear(port->slots, window->slot, window->nslots);
	window->nslots = 0;
}

static void fabrex_window_detach(struct fabrex_res *res)
{
	struct fabrex_window *window = to_window(res);

	if (res->created)
		xa_cmpxchg(&res->port->windows, res->number, window, NULL, 0);
	if (window->map)
		fabrex_map_kill(window->map);
}

static int fabrex_window_destroy(struct fabrex_res *res)
{
	return res->port->ops->data->window_destroy(res->port, res->number);
}

static void fabrex_window_settle(struct fabrex_res *res)
{
	struct fabrex_window *window = to_window(res);

	if (window->nslots)
		fabrex_slots_put(window);
}

/* The device has forgotten the mapping of the slots, and no process has them
 * mapped any more: others may use them, although the owner may keep the dead
 * window.
 */
static void fabrex_window_fail(struct fabrex_res *res, u32 qerr)
{
	struct fabrex_event event = {
		.type = FABREX_EVENT_WINDOW_FAULT,
		.id = res->id,
		.error = FABREX_WC_ABORTED,
	};

	fabrex_window_settle(res);
	fabrex_events_push(&res->file->events, &event);
}

static void fabrex_window_free(struct fabrex_res *res)
{
	struct fabrex_window *window = to_window(res);

	if (res->lost)
		return;
	fabrex_map_remove(window->map);
	kfree_rcu(window, rcu);
}

static const struct fabrex_res_ops fabrex_window_ops = {
	.type = FABREX_RES_WINDOW,
	.detach = fabrex_window_detach,
	.destroy = fabrex_window_destroy,
	.settle = fabrex_window_settle,
	.fail = fabrex_window_fail,
	.free = fabrex_window_free,
};

/* Returns the number of slots that it takes. */
static int fabrex_window_check(const struct fabrex_port *port,
			       const struct fabrex_window_create *cmd)
{
	u64 nslots, end;

	if (cmd->flags || cmd->__reserved || !cmd->length || !cmd->access ||
	    cmd->access & ~WINDOW_ACCESS_ALL ||
	    cmd->peer >= port->info.max_peers ||
	    cmd->offset & (FABREX_PAGE_SIZE - 1) ||
	    check_add_overflow(cmd->offset, cmd->length, &end))
		return -EINVAL;
	if (!port->info.max_windows)
		return -EOPNOTSUPP;
	nslots = ((cmd->length - 1) >> ilog2(port->info.window_slot_size)) + 1;
	return nslots > port->info.max_windows ? -ENOSPC : nslots;
}

/* Everything that needs the device: the window itself, and the address of its
 * map.
 */
static int fabrex_window_start(struct fabrex_window *window,
			       const struct fabrex_window_create *cmd)
{
	struct fabrex_window_params params = {
		.slot = window->slot,
		.nslots = window->nslots,
		.peer = cmd->peer,
		.access = cmd->access,
		.rkey = cmd->rkey,
		.offset = cmd->offset,
		.length = cmd->length,
	};
	struct fabrex_res *res = &window->res;
	struct fabrex_port *port = res->port;
	int ret;

	down_read(&port->registration_lock);
	ret = fabrex_port_usable(port);
	if (ret)
		goto made;
	window->serial = atomic64_inc_return(&port->serials);
	params.serial = window->serial;
	ret = port->ops->data->window_create(port, &params, &res->number);
	if (ret)
		goto made;
	res->created = true;
	ret = fabrex_res_insert(res);
	if (!ret)
		ret = xa_insert(&port->windows, res->number, window,
				GFP_KERNEL_ACCOUNT);
	if (!ret)
		fabrex_map_aim(window->map, port->info.window_base +
			       window->slot * port->info.window_slot_size);
made:
	ret = fabrex_res_made(res, ret);
	up_read(&port->registration_lock);
	return ret;
}

static int fabrex_window_create(struct fabrex_window *window, u32 nslots,
				const struct fabrex_window_create *cmd)
{
	vm_flags_t may = (cmd->access & FABREX_ACCESS_REMOTE_READ ?
			  VM_READ : 0) |
			 (cmd->access & FABREX_ACCESS_REMOTE_WRITE ?
			  VM_WRITE : 0);
	struct fabrex_map *map;
	int ret;

	map = fabrex_map_window(window->res.file, may, cmd->length);
	if (IS_ERR(map))
		return PTR_ERR(map);
	window->map = map;
	window->nslots = nslots;
	ret = fabrex_slots_get(window);
	if (ret) {
		window->nslots = 0;
		return ret;
	}
	ret = fabrex_window_start(window, cmd);
	return ret ?: fabrex_map_insert(map);
}

/* Translates the switch's errors to those of the uapi header. */
static int fabrex_window_errno(int ret)
{
	return ret == -EHOSTDOWN || ret == -ENETDOWN ? -EHOSTUNREACH : ret;
}

/**
 * fabrex_cmd_window_create() - FABREX_IOCTL_WINDOW_CREATE
 * @ucmd: ioctl
 *
 * Context: Process; sleeps.
 * Return: as documented in the uapi header
 */
int fabrex_cmd_window_create(struct fabrex_ucmd *ucmd)
{
	struct fabrex_window_create *cmd = ucmd->cmd;
	struct fabrex_file *file = ucmd->file;
	struct fabrex_window *window;
	int nslots, ret;

	nslots = fabrex_window_check(file->port, cmd);
	if (nslots < 0)
		return nslots;
	window = kzalloc(sizeof(*window), GFP_KERNEL_ACCOUNT);
	if (!window)
		return -ENOMEM;
	ret = fabrex_res_init(&window->res, file, &fabrex_window_ops,
			      nslots);
	if (ret) {
		kfree(window);
		return ret;
	}
	/* Whoever has used a wrong key waits first. */
	ret = fabrex_user_try_begin(window->res.user);
	if (!ret) {
		ret = fabrex_window_create(window, nslots, cmd);
		fabrex_user_try_end(window->res.user, ret == -EACCES);
	}
	trace_fabrex_window_create(&window->res, cmd, ret);
	if (ret) {
		fabrex_res_discard(&window->res);
		return fabrex_window_errno(ret);
	}
	cmd->out_mmap = fabrex_map_offset(window->map);
	cmd->out_length = PAGE_ALIGN(cmd->length);
	cmd->out_id = window->res.id;
	return fabrex_res_publish(&window->res, ucmd);
}
