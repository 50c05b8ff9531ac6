// SPDX-License-Identifier: GPL-2.0-only
/*
 * The netlink command that reads what links of the fabric have carried. Called
 * through the generated fabrex_nl.c.
 */
#include "genl.h"
#include "fabrex_nl.h"
#include "report.h"

/**
 * struct link_dump - position of a dump
 * @next: id to continue with
 * @port: index + 1 of the port to read; 0 at the start
 * @done: nothing is left
 */
struct link_dump {
	u32 next;
	u32 port;
	bool done;
};

static int links_run(struct fabrex_query *query)
{
	return fabrex_port_links(query->port, query->id, query->links,
				 ARRAY_SIZE(query->links), &query->nlinks,
				 &query->next);
}

static int put_traffic(struct sk_buff *skb, int attr, u64 bytes)
{
	struct nlattr *nest = nla_nest_start(skb, attr);

	if (!nest || nla_put_u64_64bit(skb, FABREX_A_LINK_TRAFFIC_BYTES, bytes,
				       FABREX_A_LINK_TRAFFIC_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_link(struct sk_buff *skb, struct netlink_callback *cb,
		    struct fabrex_port *port, const struct fabrex_link *link)
{
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  fabrex_genl, NLM_F_MULTI, FABREX_CMD_LINK_GET);
	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_u32(skb, FABREX_A_LINK_FPORT, port->index) ||
	    nla_put_u32(skb, FABREX_A_LINK_A, link->a) ||
	    nla_put_u32(skb, FABREX_A_LINK_B, link->b) ||
	    put_traffic(skb, FABREX_A_LINK_A_TO_B, link->a_to_b) ||
	    put_traffic(skb, FABREX_A_LINK_B_TO_A, link->b_to_a)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* As many links as fit. What does not fit is read again, with newer values. */
static int put_links(struct sk_buff *skb, struct netlink_callback *cb,
		     const struct fabrex_query *query)
{
	struct link_dump *dump = (struct link_dump *)cb->ctx;
	u32 i;

	for (i = 0; i < query->nlinks; i++) {
		if (!put_link(skb, cb, query->port, &query->links[i]))
			continue;
		dump->next = query->links[i].id;
		return i ? 0 : -EMSGSIZE;
	}
	dump->next = query->next;
	dump->done = !query->next;
	return 0;
}

static int dump_links(struct sk_buff *skb, struct netlink_callback *cb,
		      struct fabrex_port *port)
{
	struct link_dump *dump = (struct link_dump *)cb->ctx;
	struct fabrex_query *query = fabrex_query_new(port, links_run);
	int ret;

	if (!query)
		return -ENOMEM;
	query->id = dump->next;
	query->shared = true;
	ret = fabrex_query_wait(query);
	if (ret == -EOPNOTSUPP)
		NL_SET_ERR_MSG_FMT(cb->extack,
				   "%s: its switch does not count what links carry; see the counters of ports",
				   port->info.name);
	else if (ret)
		NL_SET_ERR_MSG_FMT(cb->extack,
				   "%s: counters of links not read (%d); see dmesg",
				   port->info.name, ret);
	else
		ret = put_links(skb, cb, query);
	fabrex_query_put(query);
	return ret;
}

/* The port must not change in the middle of a dump. */
static struct fabrex_port *link_port(struct netlink_callback *cb)
{
	struct link_dump *dump = (struct link_dump *)cb->ctx;
	struct fabrex_port *port;

	if (dump->port) {
		port = fabrex_port_find(dump->port - 1);
		return port ?: ERR_PTR(-ENODEV);
	}
	port = fabrex_nl_port(fabrex_dump_attrs(cb)[FABREX_A_LINK_FPORT],
			      cb->extack);
	if (!IS_ERR(port))
		dump->port = port->index + 1;
	return port;
}

int fabrex_nl_link_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct link_dump *dump = (struct link_dump *)cb->ctx;
	struct fabrex_port *port;
	int ret;

	BUILD_BUG_ON(sizeof(struct link_dump) > sizeof(cb->ctx));
	if (dump->done)
		return 0;
	/* Each part is for whoever receives it. */
	ret = fabrex_nl_may_watch(cb->skb, cb->extack);
	if (ret)
		return ret;
	port = link_port(cb);
	if (IS_ERR(port))
		return PTR_ERR(port);
	ret = dump_links(skb, cb, port);
	put_device(&port->dev);
	return ret ?: skb->len;
}
