// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink messages of the family "fabrex": who may send which, how replies and
 * events begin and end. Called by notify.c, change.c and the files that answer
 * netlink commands.
 */
#include <net/genetlink.h>

#include "genl.h"
#include "report.h"

/* A network namespace is a container's, or at least not where the machine is
 * administered: capabilities there say nothing about the fabric, which is
 * shared by other hosts. Events go to the initial one only, too.
 */
static int fabrex_nl_outside(struct genl_info *info, const char *what)
{
	if (net_eq(genl_info_net(info), &init_net))
		return 0;
	NL_SET_ERR_MSG_FMT(info->extack,
			   "%s: only from the initial network namespace", what);
	return -EPERM;
}

/**
 * fabrex_nl_may_change() - may the sender change the fabric?
 * @skb:  request
 * @info: of it
 *
 * Changes take devices away from other hosts, so this asks for what the kernel
 * asks for elsewhere when it is about somebody else's hardware; the capability
 * of configuring a network is not enough. The one who opened the socket has to
 * have it as well as the one who sends.
 *
 * Return: 0, or -EPERM with the cause in the extended ack
 */
int fabrex_nl_may_change(struct sk_buff *skb, struct genl_info *info)
{
	int ret = fabrex_nl_outside(info, "changing the fabric");

	if (ret || netlink_capable(skb, CAP_SYS_ADMIN))
		return ret;
	NL_SET_ERR_MSG(info->extack,
		       "changing the fabric needs CAP_SYS_ADMIN in the initial user namespace: run it as root");
	return -EPERM;
}

/**
 * fabrex_nl_may_watch() - may the sender read the counters of others?
 * @skb:  request
 * @info: of it
 *
 * Who may watch all of this machine's processes at work (CAP_PERFMON) may watch
 * this as well.
 *
 * Return: 0, or -EPERM with the cause in the extended ack
 */
int fabrex_nl_may_watch(struct sk_buff *skb, struct genl_info *info)
{
	int ret = fabrex_nl_outside(info, "counters of others");

	if (ret || netlink_capable(skb, CAP_PERFMON) ||
	    netlink_capable(skb, CAP_SYS_ADMIN))
		return ret;
	NL_SET_ERR_MSG(info->extack,
		       "counters of others than the local port need CAP_PERFMON or CAP_SYS_ADMIN: run it as root");
	return -EPERM;
}

/**
 * fabrex_nl_new() - begin a reply
 * @info: of the request
 * @cmd:  FABREX_CMD_*
 * @hdr:  result, for fabrex_nl_reply()
 *
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
 * fabrex_nl_reply() - send a reply that is complete, or free it
 * @msg:  of fabrex_nl_new()
 * @info: of the request
 * @hdr:  of fabrex_nl_new()
 * @ret:  not 0 if something did not fit
 *
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
 * fabrex_nl_new_event() - begin a message that answers nobody
 * @cmd: FABREX_CMD_*
 * @hdr: result, for genlmsg_end()
 *
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
 * fabrex_nl_multicast() - send a message to a group
 * @skb:   of fabrex_nl_new_event(), complete
 * @group: FABREX_NLGRP_*; that it has no members is no error
 */
void fabrex_nl_multicast(struct sk_buff *skb, unsigned int group)
{
	genlmsg_multicast(fabrex_genl, skb, 0, group, GFP_KERNEL);
}
