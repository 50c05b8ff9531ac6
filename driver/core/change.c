// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink commands that change the fabric: bind, unbind, port-set, and the
 * agent's release-reply. Handlers are named by the generated fabrex_nl.c.
 *
 * The switch decides. What is checked here only makes better messages. A
 * command holds registration_lock for reading as long as the switch takes:
 * others go on meanwhile, unregister and fail wait until the backend has made
 * it return.
 */
#include "genl.h"
#include "fabrex_nl.h"
#include "core.h"
#include "trace.h"

static struct fabrex_port *change_port(struct sk_buff *skb,
				       struct genl_info *info)
{
	struct nlattr *attr = info->attrs[FABREX_A_CHANGE_FPORT];
	struct fabrex_port *port;
	unsigned long index = 0;
	int ret;

	ret = fabrex_nl_may_change(skb, info);
	if (ret)
		return ERR_PTR(ret);
	port = attr ? fabrex_port_find(nla_get_u32(attr)) :
		      fabrex_port_next(&index);
	if (port)
		return port;
	NL_SET_ERR_MSG(info->extack,
		       "no such fabric port here; see /sys/class/fabrex");
	return ERR_PTR(-ENODEV);
}

/* The element that attribute @attr names, which has to be of @type. */
static int change_object(struct fabrex_port *port, struct genl_info *info,
			 int attr, u8 type, const char *what,
			 struct fabrex_object *object)
{
	u32 id;

	if (GENL_REQ_ATTR_CHECK(info, attr)) {
		NL_SET_ERR_MSG_FMT(info->extack, "say which %s", what);
		return -EINVAL;
	}
	id = nla_get_u32(info->attrs[attr]);
	if (fabrex_model_get(port, id, object)) {
		NL_SET_ERR_MSG_FMT(info->extack,
				   "no %s has id %u in %s; list them", what,
				   id, port->info.fabric);
		return -ENOENT;
	}
	if (object->type != type) {
		NL_SET_ERR_MSG_FMT(info->extack, "%s is no %s; name one",
				   object->name, what);
		return -EINVAL;
	}
	return 0;
}

/* What to say if the backend did not. */
static const char *change_cause(int ret)
{
	switch (ret) {
	case -EOPNOTSUPP:
		return "this port cannot do that";
	case -EIO:
		return "the local port is being reset; try again";
	case -ENODEV:
		return "the local port or the endpoint is gone";
	case -EBUSY:
		return "in use; stop its users or use --force";
	case -EADDRINUSE:
		return "bound to another port; release it there first";
	case -ENOTCONN:
		return "not bound";
	case -ENOSPC:
		return "no free slot; release another endpoint there";
	case -ETIMEDOUT:
		return "its host did not answer; try again or use --force";
	case -EALREADY:
		return "a change is under way; wait for it";
	case -EINTR:
		return "interrupted; the switch may still do it";
	default:
		return "refused by the switch";
	}
}

static bool manager_match(const struct fabrex_object *object, const void *arg)
{
	return object->type == FABREX_OBJECT_TYPE_PORT && object->manager;
}

/* The switch refuses what comes from others, and says of each host port whether
 * it is one.
 */
static void change_not_manager(struct fabrex_port *port,
			       struct netlink_ext_ack *extack)
{
	char host[FABREX_NAME_LEN] = "that is";
	struct fabrex_object manager;

	if (!fabrex_model_next(port, 0, manager_match, NULL, &manager))
		fabrex_model_name(port, manager.link, host);
	NL_SET_ERR_MSG_FMT(extack, "%s is no manager; ask on host %s",
			   port->info.name, host);
}

static void change_explain(struct fabrex_port *port,
			   struct netlink_ext_ack *extack, const char *name,
			   int ret)
{
	if (!extack || extack->_msg)
		return;
	if (ret == -EPERM)
		change_not_manager(port, extack);
	else
		NL_SET_ERR_MSG_FMT(extack, "%s: %s", name, change_cause(ret));
}

static int bind_reply(struct fabrex_port *port, struct genl_info *info,
		      const struct fabrex_object *ep, u32 target)
{
	struct fabrex_object now;
	struct sk_buff *msg;
	void *hdr;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	hdr = genlmsg_put_reply(msg, info,
				fabrex_genl_family(&fabrex_nl_family), 0,
				FABREX_CMD_BIND);
	if (!hdr || nla_put_u32(msg, FABREX_A_CHANGE_ID, ep->id) ||
	    nla_put_u32(msg, FABREX_A_CHANGE_TARGET, target))
		goto free;
	if (!fabrex_model_get(port, ep->id, &now) && now.bound == target &&
	    now.slot && nla_put_u32(msg, FABREX_A_CHANGE_SLOT, now.slot))
		goto free;
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);

free:
	nlmsg_free(msg);
	return -EMSGSIZE;
}

static int change_bind(struct fabrex_port *port, u32 ep, u32 target,
		       bool dry_run, struct netlink_ext_ack *extack)
{
	int ret;

	guard(rwsem_read)(&port->registration_lock);
	ret = fabrex_port_usable(port);
	if (ret)
		return ret;
	if (!port->ops->bind)
		return -EOPNOTSUPP;
	return port->ops->bind(port, ep, target, dry_run, extack);
}

int fabrex_nl_bind_doit(struct sk_buff *skb, struct genl_info *info)
{
	bool dry_run = info->attrs[FABREX_A_CHANGE_DRY_RUN];
	struct fabrex_object ep, target;
	struct fabrex_port *port;
	int ret;

	port = change_port(skb, info);
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = change_object(port, info, FABREX_A_CHANGE_ID,
			    FABREX_OBJECT_TYPE_ENDPOINT, "endpoint", &ep) ?:
	      change_object(port, info, FABREX_A_CHANGE_TARGET,
			    FABREX_OBJECT_TYPE_PORT, "host port", &target);
	if (ret)
		goto put;
	if (target.kind != FABREX_PORT_KIND_HOST) {
		NL_SET_ERR_MSG_FMT(info->extack,
				   "%s leads to no host; name a host's port",
				   target.name);
		ret = -EINVAL;
		goto put;
	}
	ret = change_bind(port, ep.id, target.id, dry_run, info->extack);
	trace_fabrex_change(port, "bind", ep.id, target.id, ret);
	if (ret)
		change_explain(port, info->extack, ep.name, ret);
	else
		ret = bind_reply(port, info, &ep, target.id);
put:
	put_device(&port->dev);
	return ret;
}

/* The refusal in machine-readable form; the error follows. */
static void unbind_holder(struct genl_info *info, u32 ep,
			  const struct fabrex_holder *holder)
{
	struct sk_buff *msg;
	void *hdr;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return;
	hdr = genlmsg_put_reply(msg, info,
				fabrex_genl_family(&fabrex_nl_family), 0,
				FABREX_CMD_UNBIND);
	if (!hdr || nla_put_u32(msg, FABREX_A_CHANGE_ID, ep) ||
	    nla_put_u32(msg, FABREX_A_CHANGE_HOLDER_PID, holder->pid) ||
	    nla_put_string(msg, FABREX_A_CHANGE_HOLDER_COMM, holder->comm) ||
	    nla_put_string(msg, FABREX_A_CHANGE_HOLDER_REASON,
			   holder->reason) ||
	    nla_put_u32(msg, FABREX_A_CHANGE_HOLDER_PORT, holder->port)) {
		nlmsg_free(msg);
		return;
	}
	genlmsg_end(msg, hdr);
	genlmsg_reply(msg, info);
}

static int change_unbind(struct fabrex_port *port, u32 ep,
			 struct genl_info *info, struct fabrex_holder *holder)
{
	struct nlattr *timeout = info->attrs[FABREX_A_CHANGE_TIMEOUT_MS];
	int ret;

	guard(rwsem_read)(&port->registration_lock);
	ret = fabrex_port_usable(port);
	if (ret)
		return ret;
	if (!port->ops->unbind)
		return -EOPNOTSUPP;
	return port->ops->unbind(port, ep, info->attrs[FABREX_A_CHANGE_FORCE],
				 info->attrs[FABREX_A_CHANGE_DRY_RUN],
				 timeout ? nla_get_u32(timeout) : 0, holder,
				 info->extack);
}

int fabrex_nl_unbind_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct fabrex_holder holder = {};
	struct fabrex_object ep;
	struct fabrex_port *port;
	int ret;

	port = change_port(skb, info);
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = change_object(port, info, FABREX_A_CHANGE_ID,
			    FABREX_OBJECT_TYPE_ENDPOINT, "endpoint", &ep);
	if (ret)
		goto put;
	ret = change_unbind(port, ep.id, info, &holder);
	trace_fabrex_change(port, "unbind", ep.id, ep.bound, ret);
	if (ret == -EBUSY) {
		holder.comm[sizeof(holder.comm) - 1] = 0;
		holder.reason[sizeof(holder.reason) - 1] = 0;
		unbind_holder(info, ep.id, &holder);
	}
	if (ret)
		change_explain(port, info->extack, ep.name, ret);
put:
	put_device(&port->dev);
	return ret;
}

static int change_port_set(struct fabrex_port *port, u32 id, u32 action,
			   struct netlink_ext_ack *extack)
{
	int ret;

	guard(rwsem_read)(&port->registration_lock);
	ret = fabrex_port_usable(port);
	if (ret)
		return ret;
	if (!port->ops->port_control)
		return -EOPNOTSUPP;
	return port->ops->port_control(port, id, action, extack);
}

int fabrex_nl_port_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct fabrex_object object;
	struct fabrex_port *port;
	u32 action;
	int ret;

	if (GENL_REQ_ATTR_CHECK(info, FABREX_A_CHANGE_ACTION)) {
		NL_SET_ERR_MSG(info->extack,
			       "say what to do: enable, disable or reset");
		return -EINVAL;
	}
	action = nla_get_u32(info->attrs[FABREX_A_CHANGE_ACTION]);
	port = change_port(skb, info);
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = change_object(port, info, FABREX_A_CHANGE_ID,
			    FABREX_OBJECT_TYPE_PORT, "port", &object);
	if (ret)
		goto put;
	ret = change_port_set(port, object.id, action, info->extack);
	trace_fabrex_change(port, "port-set", object.id, action, ret);
	if (ret)
		change_explain(port, info->extack, object.name, ret);
put:
	put_device(&port->dev);
	return ret;
}

static void release_reply_holder(struct fabrex_port *port,
				 struct genl_info *info,
				 struct fabrex_holder *holder)
{
	struct nlattr *pid = info->attrs[FABREX_A_CHANGE_HOLDER_PID];
	struct nlattr *comm = info->attrs[FABREX_A_CHANGE_HOLDER_COMM];
	struct nlattr *reason = info->attrs[FABREX_A_CHANGE_HOLDER_REASON];

	holder->port = port->info.object_id;
	if (pid)
		holder->pid = nla_get_u32(pid);
	if (comm)
		nla_strscpy(holder->comm, comm, sizeof(holder->comm));
	if (reason)
		nla_strscpy(holder->reason, reason, sizeof(holder->reason));
}

static int change_release_reply(struct fabrex_port *port, u32 ep, u64 token,
				const struct fabrex_holder *holder)
{
	int ret;

	guard(rwsem_read)(&port->registration_lock);
	ret = fabrex_port_usable(port);
	if (ret)
		return ret;
	if (!port->ops->release_reply)
		return -EOPNOTSUPP;
	return port->ops->release_reply(port, ep, token, holder);
}

int fabrex_nl_release_reply_doit(struct sk_buff *skb, struct genl_info *info)
{
	bool busy = info->attrs[FABREX_A_CHANGE_BUSY];
	struct fabrex_holder holder = {};
	struct fabrex_object ep;
	struct fabrex_port *port;
	int ret;

	if (GENL_REQ_ATTR_CHECK(info, FABREX_A_CHANGE_TOKEN)) {
		NL_SET_ERR_MSG(info->extack,
			       "the token of the request is missing");
		return -EINVAL;
	}
	port = change_port(skb, info);
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = change_object(port, info, FABREX_A_CHANGE_ID,
			    FABREX_OBJECT_TYPE_ENDPOINT, "endpoint", &ep);
	if (ret)
		goto put;
	release_reply_holder(port, info, &holder);
	ret = change_release_reply(port, ep.id,
				   nla_get_u64(info->attrs[FABREX_A_CHANGE_TOKEN]),
				   busy ? &holder : NULL);
	trace_fabrex_release(port, ep.id, busy, ret);
	if (ret == -ENOENT)
		NL_SET_ERR_MSG_FMT(info->extack,
				   "%s: no such request; it may have expired",
				   ep.name);
	else if (ret)
		change_explain(port, info->extack, ep.name, ret);
put:
	put_device(&port->dev);
	return ret;
}
