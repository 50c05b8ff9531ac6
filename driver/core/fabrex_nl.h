/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/* Do not edit directly, auto-generated from: */
/*	docs/netlink/fabrex.yaml */
/* YNL-GEN kernel header */
/* To regenerate run: tools/ynl/nl-regen */

#ifndef _LINUX_FABREX_GEN_H
#define _LINUX_FABREX_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <uapi/linux/fabrex_netlink.h>

int fabrex_nl_fport_get_doit(struct sk_buff *skb, struct genl_info *info);
int fabrex_nl_fport_get_dumpit(struct sk_buff *skb,
			       struct netlink_callback *cb);
int fabrex_nl_object_get_doit(struct sk_buff *skb, struct genl_info *info);
int fabrex_nl_object_get_dumpit(struct sk_buff *skb,
				struct netlink_callback *cb);
int fabrex_nl_bind_doit(struct sk_buff *skb, struct genl_info *info);
int fabrex_nl_unbind_doit(struct sk_buff *skb, struct genl_info *info);
int fabrex_nl_port_set_doit(struct sk_buff *skb, struct genl_info *info);
int fabrex_nl_release_reply_doit(struct sk_buff *skb, struct genl_info *info);
int fabrex_nl_change_get_doit(struct sk_buff *skb, struct genl_info *info);
int fabrex_nl_change_cancel_doit(struct sk_buff *skb, struct genl_info *info);
int fabrex_nl_counters_get_doit(struct sk_buff *skb, struct genl_info *info);
int fabrex_nl_link_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

enum {
	FABREX_NLGRP_EVENTS,
	FABREX_NLGRP_AGENT,
	FABREX_NLGRP_CHANGES,
};

extern struct genl_family fabrex_nl_family;

#endif /* _LINUX_FABREX_GEN_H */
