// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink commands that change the fabric: bind, unbind, port-set, what becomes of
 * them, and the agent's release-reply. Handlers are named by the generated
 * fabrex_nl.c.
 *
 * The switch decides. What is checked here only makes better messages. Changes
 * are accepted here and made in ticket.c: no command waits for the switch.
 */
#include "genl.h"
#include "fabrex_nl.h"
#include "core.h"
#include "trace.h"

/* The first port that can do any of @can; the first of all if none can. */
static struct fabrex_port *change_default_port(u32 can)
{
	struct fabrex_port *port;
	unsigned long index = 0;

	while ((port = fabrex_port_next(&index))) {
		if (port->can & can)
			return port;
		put_device(&port->dev);
		index++;
	}
	index = 0;
	return fabrex_port_next(&index);
}

/*
 * The port that a request names, or the first that can do any of @can, which is
 * to do @what.
 */
static struct fabrex_port *change_port(struct sk_buff *skb,
				       struct genl_info *info, u32 can,
				       const char *what)
{
	struct nlattr *attr = info->attrs[FABREX_A_CHANGE_FPORT];
	struct fabrex_port *port;
	int ret;

	ret = fabrex_nl_may_change(skb, info);
	if (ret)
		return ERR_PTR(ret);
	port = attr ? fabrex_port_find(nla_get_u32(attr)) :
		      change_default_port(can);
	if (!port) {
		NL_SET_ERR_MSG(info->extack,
			       "no such fabric port here; see /sys/class/fabrex");
		return ERR_PTR(-ENODEV);
	}
	if (port->can & can)
		return port;
	NL_SET_ERR_MSG_FMT(info->extack,
			   "fabrex%d: driver %.20s cannot %s; name another port",
			   port->index, port->info.driver, what);
	put_device(&port->dev);
	return ERR_PTR(-EOPNOTSUPP);
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
		return "a change is pending; wait for it";
	case -ECANCELED:
		return "cancelled, nothing was changed";
	case -EAGAIN:
		return "too many changes are pending; wait for one";
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

/**
 * fabrex_change_explain() - say what to do about an error
 * @port:   that was asked
 * @extack: receives it, unless the backend has said something
 * @name:   of the element that was to be changed
 * @ret:    errno
 */
void fabrex_change_explain(struct fabrex_port *port,
			   struct netlink_ext_ack *extack, const char *name,
			   int ret)
{
	if (extack->_msg)
		return;
	if (ret == -EPERM)
		change_not_manager(port, extack);
	else
		NL_SET_ERR_MSG_FMT(extack, "%s: %s", name, change_cause(ret));
}

static int put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, FABREX_A_CHANGE_PAD);
}

static int put_nonzero(struct sk_buff *skb, int attr, u32 value)
{
	return value ? nla_put_u32(skb, attr, value) : 0;
}

static int put_change_names(struct sk_buff *skb, struct fabrex_port *port,
			    const struct fabrex_change_info *change)
{
	return nla_put_u32(skb, FABREX_A_CHANGE_FPORT, port->index) ?:
	       put_u64(skb, FABREX_A_CHANGE_TICKET, change->ticket) ?:
	       nla_put_u32(skb, FABREX_A_CHANGE_OP, change->op) ?:
	       nla_put_u32(skb, FABREX_A_CHANGE_ID, change->id);
}

static int put_holder(struct sk_buff *skb, const struct fabrex_holder *holder)
{
	return nla_put_u32(skb, FABREX_A_CHANGE_HOLDER_PID, holder->pid) ?:
	       nla_put_string(skb, FABREX_A_CHANGE_HOLDER_COMM,
			      holder->comm) ?:
	       nla_put_string(skb, FABREX_A_CHANGE_HOLDER_REASON,
			      holder->reason) ?:
	       nla_put_u32(skb, FABREX_A_CHANGE_HOLDER_PORT, holder->port);
}

static int put_change(struct sk_buff *skb, struct fabrex_port *port,
		      const struct fabrex_change_info *change)
{
	int ret;

	ret = put_change_names(skb, port, change) ?:
	      put_nonzero(skb, FABREX_A_CHANGE_TARGET, change->target) ?:
	      put_nonzero(skb, FABREX_A_CHANGE_SLOT, change->slot);
	if (ret)
		return ret;
	if (change->pending)
		return nla_put_flag(skb, FABREX_A_CHANGE_PENDING);
	ret = nla_put_u32(skb, FABREX_A_CHANGE_ERROR, change->error);
	if (!ret && change->error)
		ret = nla_put_string(skb, FABREX_A_CHANGE_MESSAGE,
				     change->message);
	if (!ret && change->error == EBUSY)
		ret = put_holder(skb, &change->holder);
	return ret;
}

/**
 * fabrex_change_notify() - tell that a change is over
 * @port:   through which it was made
 * @change: it
 */
void fabrex_change_notify(struct fabrex_port *port,
			  const struct fabrex_change_info *change)
{
	struct sk_buff *skb;
	void *hdr;

	/* Who is not told asks. */
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return;
	hdr = genlmsg_put(skb, 0, 0, fabrex_genl_family(&fabrex_nl_family), 0,
			  FABREX_CMD_CHANGE_DONE);
	if (!hdr || put_change(skb, port, change)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, hdr);
	genlmsg_multicast(fabrex_genl_family(&fabrex_nl_family), skb, 0,
			  FABREX_NLGRP_CHANGES, GFP_KERNEL);
}

static int change_reply(struct fabrex_port *port, struct genl_info *info,
			u8 cmd, const struct fabrex_change_info *change,
			int (*put)(struct sk_buff *skb,
				   struct fabrex_port *port,
				   const struct fabrex_change_info *change))
{
	struct sk_buff *msg;
	void *hdr;

	msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return -ENOMEM;
	hdr = genlmsg_put_reply(msg, info,
				fabrex_genl_family(&fabrex_nl_family), 0, cmd);
	if (!hdr || put(msg, port, change)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

/* Have it made; the answer is its ticket. A reply that cannot be sent does not
 * stop it: whoever asked has to look at what is.
 */
static int change_accept(struct fabrex_port *port, struct genl_info *info,
			 const struct fabrex_object *object,
			 struct fabrex_change_info *change)
{
	int ret;

	change->id = object->id;
	strscpy(change->name, object->name, sizeof(change->name));
	ret = fabrex_change_start(port, change);
	if (ret) {
		fabrex_change_explain(port, info->extack, object->name, ret);
		return ret;
	}
	return change_reply(port, info, info->genlhdr->cmd, change,
			    put_change_names);
}

static int bind_target(struct fabrex_port *port, struct genl_info *info,
		       struct fabrex_change_info *change)
{
	struct fabrex_object target;
	int ret;

	ret = change_object(port, info, FABREX_A_CHANGE_TARGET,
			    FABREX_OBJECT_TYPE_PORT, "host port", &target);
	if (ret)
		return ret;
	if (target.kind != FABREX_PORT_KIND_HOST) {
		NL_SET_ERR_MSG_FMT(info->extack,
				   "%s leads to no host; name a host's port",
				   target.name);
		return -EINVAL;
	}
	change->target = target.id;
	return 0;
}

int fabrex_nl_bind_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct fabrex_change_info change = {
		.op = FABREX_CHANGE_OP_BIND,
		.dry_run = info->attrs[FABREX_A_CHANGE_DRY_RUN],
	};
	struct fabrex_port *port;
	struct fabrex_object ep;
	int ret;

	port = change_port(skb, info, FABREX_CAN_BIND, "bind");
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = change_object(port, info, FABREX_A_CHANGE_ID,
			    FABREX_OBJECT_TYPE_ENDPOINT, "endpoint", &ep) ?:
	      bind_target(port, info, &change) ?:
	      change_accept(port, info, &ep, &change);
	put_device(&port->dev);
	return ret;
}

int fabrex_nl_unbind_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *timeout = info->attrs[FABREX_A_CHANGE_TIMEOUT_MS];
	struct fabrex_change_info change = {
		.op = FABREX_CHANGE_OP_UNBIND,
		.force = info->attrs[FABREX_A_CHANGE_FORCE],
		.dry_run = info->attrs[FABREX_A_CHANGE_DRY_RUN],
		.timeout_ms = timeout ? nla_get_u32(timeout) : 0,
	};
	struct fabrex_port *port;
	struct fabrex_object ep;
	int ret;

	port = change_port(skb, info, FABREX_CAN_UNBIND, "unbind");
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = change_object(port, info, FABREX_A_CHANGE_ID,
			    FABREX_OBJECT_TYPE_ENDPOINT, "endpoint", &ep) ?:
	      change_accept(port, info, &ep, &change);
	put_device(&port->dev);
	return ret;
}

static int port_action(struct genl_info *info,
		       struct fabrex_change_info *change)
{
	if (GENL_REQ_ATTR_CHECK(info, FABREX_A_CHANGE_ACTION)) {
		NL_SET_ERR_MSG(info->extack,
			       "say what to do: enable, disable or reset");
		return -EINVAL;
	}
	change->action = nla_get_u32(info->attrs[FABREX_A_CHANGE_ACTION]);
	return 0;
}

int fabrex_nl_port_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct fabrex_change_info change = { .op = FABREX_CHANGE_OP_PORT_SET };
	struct fabrex_object object;
	struct fabrex_port *port;
	int ret;

	port = change_port(skb, info, FABREX_CAN_PORT_SET, "control ports");
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = port_action(info, &change) ?:
	      change_object(port, info, FABREX_A_CHANGE_ID,
			    FABREX_OBJECT_TYPE_PORT, "port", &object) ?:
	      change_accept(port, info, &object, &change);
	put_device(&port->dev);
	return ret;
}

static int change_ticket(struct genl_info *info, u64 *ticket)
{
	if (GENL_REQ_ATTR_CHECK(info, FABREX_A_CHANGE_TICKET)) {
		NL_SET_ERR_MSG(info->extack,
			       "say which change: its ticket is missing");
		return -EINVAL;
	}
	*ticket = nla_get_u64(info->attrs[FABREX_A_CHANGE_TICKET]);
	return 0;
}

static void ticket_explain(struct genl_info *info, u64 ticket, int ret)
{
	const char *cause = ret == -ENOENT ?
		"not known through this port; it may be too long ago" :
		ret == -EALREADY ? "is over already; ask how it went" :
		"cannot be cancelled; it is a short one";

	NL_SET_ERR_MSG_FMT(info->extack, "change %llu: %s", ticket, cause);
}

int fabrex_nl_change_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct fabrex_change_info change;
	struct fabrex_port *port;
	u64 ticket;
	int ret;

	port = change_port(skb, info, FABREX_CAN_CHANGE, "make changes");
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = change_ticket(info, &ticket);
	if (ret)
		goto put;
	ret = fabrex_change_get(port, ticket, &change);
	if (ret)
		ticket_explain(info, ticket, ret);
	else
		ret = change_reply(port, info, FABREX_CMD_CHANGE_GET, &change,
				   put_change);
put:
	put_device(&port->dev);
	return ret;
}

int fabrex_nl_change_cancel_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct fabrex_port *port;
	u64 ticket;
	int ret;

	port = change_port(skb, info, FABREX_CAN_CHANGE, "make changes");
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = change_ticket(info, &ticket);
	if (ret)
		goto put;
	ret = fabrex_change_cancel(port, ticket);
	if (ret)
		ticket_explain(info, ticket, ret);
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

static int release_reply_run(struct fabrex_query *query)
{
	struct fabrex_port *port = query->port;

	return port->ops->fabric->release_reply(port, query->id, query->token,
						query->busy ? &query->holder :
							      NULL);
}

static int change_release_reply(struct fabrex_port *port,
				struct genl_info *info, u32 ep)
{
	struct fabrex_query *query = fabrex_query_new(port, release_reply_run);
	int ret;

	if (!query)
		return -ENOMEM;
	query->id = ep;
	query->token = nla_get_u64(info->attrs[FABREX_A_CHANGE_TOKEN]);
	query->busy = info->attrs[FABREX_A_CHANGE_BUSY];
	release_reply_holder(port, info, &query->holder);
	ret = fabrex_query_wait(query);
	trace_fabrex_release(port, ep, info->attrs[FABREX_A_CHANGE_BUSY], ret);
	fabrex_query_put(query);
	return ret;
}

int fabrex_nl_release_reply_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct fabrex_object ep;
	struct fabrex_port *port;
	int ret;

	port = change_port(skb, info, FABREX_CAN_REPLY, "answer that");
	if (IS_ERR(port))
		return PTR_ERR(port);
	if (GENL_REQ_ATTR_CHECK(info, FABREX_A_CHANGE_TOKEN)) {
		NL_SET_ERR_MSG(info->extack,
			       "the token of the request is missing");
		ret = -EINVAL;
		goto put;
	}
	ret = change_object(port, info, FABREX_A_CHANGE_ID,
			    FABREX_OBJECT_TYPE_ENDPOINT, "endpoint", &ep);
	if (ret)
		goto put;
	ret = change_release_reply(port, info, ep.id);
	if (ret == -ENOENT)
		NL_SET_ERR_MSG_FMT(info->extack,
				   "%s: no such request; it may have expired",
				   ep.name);
	else if (ret)
		fabrex_change_explain(port, info->extack, ep.name, ret);
put:
	put_device(&port->dev);
	return ret;
}
