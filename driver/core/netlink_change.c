// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink commands that change the fabric: bind, unbind, port-set, the query of
 * their results, and the agent's release-reply. Called through the generated
 * fabrex_nl.c.
 *
 * The switch decides; what is checked here only makes messages better. Changes
 * are accepted here and carried out in change.c: no command waits for the
 * switch.
 */
#include "genl.h"
#include "fabrex_nl.h"
#include "report.h"
#include "trace.h"

/* The first port that supports any of @can; the first of all if none does. */
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

/* The port that a request names, or the first one that supports any of @can.
 * @what is what it has to do.
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

/* Look up the object that attribute @attr names; it must be of type @type. */
static int change_object(struct fabrex_port *port, struct genl_info *info,
			 int attr, u8 type, const char *what,
			 struct fabrex_object *object)
{
	u32 id;

	if (GENL_REQ_ATTR_CHECK(info, attr)) {
		NL_SET_ERR_MSG_FMT(info->extack, "the %s is missing", what);
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
		NL_SET_ERR_MSG_FMT(info->extack, "%s: not of type %s; name one",
				   object->name, what);
		return -EINVAL;
	}
	return 0;
}

static int change_reply(struct fabrex_port *port, struct genl_info *info,
			u8 cmd, const struct fabrex_change_info *change,
			int (*put)(struct sk_buff *skb,
				   struct fabrex_port *port,
				   const struct fabrex_change_info *change))
{
	struct sk_buff *msg;
	void *hdr;

	msg = fabrex_nl_new(info, cmd, &hdr);
	if (!msg)
		return -ENOMEM;
	return fabrex_nl_reply(msg, info, hdr, put(msg, port, change));
}

/* Start the change and reply with its ticket. It goes on even if the reply
 * cannot be sent: the requester then has to look at the state of the fabric.
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
			    fabrex_change_put_names);
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
				   "%s is not connected to a host; name a host port",
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
			       "the action is missing: enable, disable or reset");
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
			       "the ticket is missing");
		return -EINVAL;
	}
	*ticket = nla_get_u64(info->attrs[FABREX_A_CHANGE_TICKET]);
	return 0;
}

static void ticket_explain(struct genl_info *info, u64 ticket, int ret)
{
	const char *cause = ret == -ENOENT ?
		"unknown to this port, or too old" :
		ret == -EALREADY ? "has already finished; query its result" :
		"cannot be cancelled, as it is short";

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
				   fabrex_change_put);
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

	port = change_port(skb, info, FABREX_CAN_REPLY, "send replies");
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
