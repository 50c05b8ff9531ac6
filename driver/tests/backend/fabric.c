// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fabric of one switch, host, port and endpoint, which changes as it is told.
 * Called by the core, and by module.c.
 */
#include <linux/mutex.h>
#include <linux/string.h>

#include <uapi/linux/fabrex_netlink.h>

#include "partial.h"

/* Changes run in parallel; the model is fed by one at a time. */
static DEFINE_MUTEX(changes);

static const struct fabrex_object objects[] = {
	{
		.type = FABREX_OBJECT_TYPE_SWITCH,
		.id = PARTIAL_SWITCH,
		.peer = FABREX_PEER_NONE,
		.name = "partial.switch",
	}, {
		.type = FABREX_OBJECT_TYPE_PORT,
		.kind = FABREX_PORT_KIND_HOST,
		.state = FABREX_LINK_STATE_UP,
		.id = PARTIAL_PORT,
		.parent = PARTIAL_SWITCH,
		.link = PARTIAL_HOST,
		.generation = 1,
		.manager = true,
		.name = "partial.fabric",
	}, {
		.type = FABREX_OBJECT_TYPE_HOST,
		.state = FABREX_HOST_STATE_UP,
		.id = PARTIAL_HOST,
		.peer = FABREX_PEER_NONE,
		.name = "partial",
	}, {
		.type = FABREX_OBJECT_TYPE_ENDPOINT,
		.kind = FABREX_ENDPOINT_KIND_GPU,
		.state = FABREX_ENDPOINT_STATE_FREE,
		.id = PARTIAL_ENDPOINT,
		.parent = PARTIAL_SWITCH,
		.peer = FABREX_PEER_NONE,
		.name = "partial.gpu",
	},
};

/**
 * partial_fabric_fill() - tell the core what there is
 * @port: about to be registered
 *
 * Return: 0 or a negative errno
 */
int partial_fabric_fill(struct fabrex_port *port)
{
	size_t i;
	int ret = 0;

	fabrex_model_begin(port);
	for (i = 0; i < ARRAY_SIZE(objects) && !ret; i++)
		ret = fabrex_model_update(port, &objects[i]);
	if (!ret)
		fabrex_model_end(port);
	return ret;
}

static int partial_bind(struct fabrex_port *port, u32 ep, u32 host_port,
			bool dry_run, const bool *cancel,
			struct netlink_ext_ack *extack)
{
	struct fabrex_object object;
	int ret;

	guard(mutex)(&changes);
	ret = fabrex_model_get(port, ep, &object);
	if (ret)
		return ret;
	if (object.bound)
		return -EADDRINUSE;
	if (dry_run)
		return 0;
	object.bound = host_port;
	object.slot = 1;
	object.state = FABREX_ENDPOINT_STATE_BOUND;
	return fabrex_model_update(port, &object);
}

static int partial_unbind(struct fabrex_port *port, u32 ep, bool force,
			  bool dry_run, u32 timeout_ms, const bool *cancel,
			  struct fabrex_holder *holder,
			  struct netlink_ext_ack *extack)
{
	struct fabrex_object object;
	int ret;

	guard(mutex)(&changes);
	ret = fabrex_model_get(port, ep, &object);
	if (ret)
		return ret;
	if (!object.bound)
		return -ENOTCONN;
	if (dry_run)
		return 0;
	object.bound = 0;
	object.slot = 0;
	object.state = FABREX_ENDPOINT_STATE_FREE;
	return fabrex_model_update(port, &object);
}

static int partial_port_control(struct fabrex_port *port, u32 id, u32 action,
				struct netlink_ext_ack *extack)
{
	struct fabrex_object object;
	int ret;

	guard(mutex)(&changes);
	ret = fabrex_model_get(port, id, &object);
	if (ret)
		return ret;
	object.state = action == FABREX_PORT_ACTION_DISABLE ?
		       FABREX_LINK_STATE_DISABLED : FABREX_LINK_STATE_UP;
	return fabrex_model_update(port, &object);
}

static int partial_counters(struct fabrex_port *port, u32 id,
			    struct fabrex_counters *counters)
{
	counters->out_link_downs = id ?: PARTIAL_PORT;
	return 0;
}

/* It has requested nothing. */
static int partial_release_reply(struct fabrex_port *port, u32 ep, u64 token,
				 const struct fabrex_holder *holder)
{
	return -ENOENT;
}

/* Without endpoint_pdev: nothing is plugged into this machine. */
const struct fabrex_fabric_ops partial_fabric_ops = {
	.bind = partial_bind,
	.unbind = partial_unbind,
	.port_control = partial_port_control,
	.counters = partial_counters,
	.release_reply = partial_release_reply,
};
