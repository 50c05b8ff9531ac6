// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink messages of the family "fabrex": permissions, the port that a request
 * is about, and how replies and events begin and end. Called by notify.c,
 * change.c and the files that implement netlink commands.
 */
#include <net/genetlink.h>
#include <net/sock.h>

#include "genl.h"
#include "report.h"

/* A network namespace other than the initial one belongs to a container, or at
 * least not to the administrator of the machine: capabilities there mean
 * nothing for the fabric, which is shared with other hosts. Events go only to
 * the initial one, too.
 */
static int fabrex_nl_outside(struct sk_buff *skb,
			     struct netlink_ext_ack *extack, const char *what)
{
	if (net_eq(sock_net(skb->sk), &init_net))
		return 0;
	NL_SET_ERR_MSG_FMT(extack,
			   "%s: only from the initial network namespace", what);
	return -EPERM;
}

/**
 * fabrex_nl_may_change() - check that the sender may change the fabric
 * @skb:  request
 * @info: of the request
 *
 * Changes take devices away from other hosts. So this requires what the kernel
 * requires elsewhere for access to somebody else's hardware; permission to
 * configure a network is not enough. Both the process that opened the socket
 * and the one that sends must have it.
 *
 * Context: Process.
 * Return: 0, or -EPERM with the cause in the extended ack
 */
int fabrex_nl_may_change(struct sk_buff *skb, struct genl_info *info)
{
	int ret = fabrex_nl_outside(skb, info->extack, "changing the fabric");

	if (ret || netlink_capable(skb, CAP_SYS_ADMIN))
		return ret;
	NL_SET_ERR_MSG(info->extack,
		       "changing the fabric needs CAP_SYS_ADMIN in the initial user namespace: run it as root");
	return -EPERM;
}

/**
 * fabrex_nl_may_watch() - check that the sender may read counters of others
 * @skb:    request
 * @extack: gets the cause of a refusal
 *
 * Whoever may observe all processes of this machine (CAP_PERFMON) may observe
 * this as well.
 *
 * Context: Process.
 * Return: 0, or -EPERM with the cause in the extended ack
 */
int fabrex_nl_may_watch(struct sk_buff *skb, struct netlink_ext_ack *extack)
{
	int ret = fabrex_nl_outside(skb, extack, "counters of others");

	if (ret || netlink_capable(skb, CAP_PERFMON) ||
	    netlink_capable(skb, CAP_SYS_ADMIN))
		return ret;
	NL_SET_ERR_MSG(extack,
		       "counters of others than the local port need CAP_PERFMON or CAP_SYS_ADMIN: run it as root");
	return -EPERM;
}

/**
 * fabrex_nl_new() - begin a reply
 * @info: of the request
 * @cmd:  FABREX_CMD_*
 * @hdr:  result, for fabrex_nl_reply()
 *
 * Context: Process; sleeps.
 * Return: the message, or NULL
 */
struct sk_buff *fabrex_nl_new(struct genl_info *info, u8 cmd, void **hdr)
{
	struct sk_buff *msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (!msg)
		return NULL;
	*hdr = genlmsg_put(msg, info->snd_portid, info->snd_seq, fabrex_genl,
			   0, cmd);
	if (*hdr)
		return msg;
	nlmsg_free(msg);
	return NULL;
}

/**
 * fabrex_nl_reply() - send a complete reply, or free it
 * @msg:  from fabrex_nl_new()
 * @info: of the request
 * @hdr:  from fabrex_nl_new()
 * @ret:  not 0 if something did not fit
 *
 * Context: Process; sleeps.
 * Return: @ret, or an error of sending it
 */
int fabrex_nl_reply(struct sk_buff *msg, struct genl_info *info, void *hdr,
		    int ret)
{
	if (ret) {
		nlmsg_free(msg);
		return ret;
	}
	genlmsg_end(msg, hdr);
	return genlmsg_reply(msg, info);
}

/**
 * fabrex_nl_new_event() - begin an event
 * @cmd: FABREX_CMD_*
 * @hdr: result, for genlmsg_end()
 *
 * Context: Process; sleeps.
 * Return: the message, or NULL
 */
struct sk_buff *fabrex_nl_new_event(u8 cmd, void **hdr)
{
	struct sk_buff *msg = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (!msg)
		return NULL;
	*hdr = genlmsg_put(msg, 0, 0, fabrex_genl, 0, cmd);
	if (*hdr)
		return msg;
	nlmsg_free(msg);
	return NULL;
}

/**
 * fabrex_nl_multicast() - send an event to a group
 * @skb:   from fabrex_nl_new_event(), complete
 * @group: FABREX_NLGRP_*; it may have no members
 *
 * Context: Process; sleeps.
 */
void fabrex_nl_multicast(struct sk_buff *skb, unsigned int group)
{
	genlmsg_multicast(fabrex_genl, skb, 0, group, GFP_KERNEL);
}

/**
 * fabrex_nl_port() - get the port that a request to read names
 * @attr:   attribute with its index, or NULL for the first port
 * @extack: gets the cause of an error
 *
 * Context: Process.
 * Return: the port, with a reference for put_device(), or ERR_PTR(-ENODEV)
 */
struct fabrex_port *fabrex_nl_port(struct nlattr *attr,
				   struct netlink_ext_ack *extack)
{
	struct fabrex_port *port;
	unsigned long index = 0;

	port = attr ? fabrex_port_find(nla_get_u32(attr)) :
		      fabrex_port_next(&index);
	if (port)
		return port;
	if (attr)
		NL_SET_ERR_MSG_FMT(extack,
				   "no fabric port %u; see /sys/class/fabrex",
				   nla_get_u32(attr));
	else
		NL_SET_ERR_MSG(extack,
			       "no fabric port here; is the backend's driver loaded?");
	return ERR_PTR(-ENODEV);
}
