// SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause)
/* Do not edit directly, auto-generated from: */
/*	docs/netlink/fabrex.yaml */
/* YNL-GEN kernel source */
/* To regenerate run: tools/ynl/nl-regen */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "fabrex_nl.h"

#include <uapi/linux/fabrex_netlink.h>

/* FABREX_CMD_FPORT_GET - do */
static const struct nla_policy fabrex_fport_get_nl_policy[FABREX_A_FPORT_INDEX + 1] = {
	[FABREX_A_FPORT_INDEX] = { .type = NLA_U32, },
};

/* FABREX_CMD_OBJECT_GET - do */
static const struct nla_policy fabrex_object_get_do_nl_policy[FABREX_A_OBJECT_NAME + 1] = {
	[FABREX_A_OBJECT_FPORT] = { .type = NLA_U32, },
	[FABREX_A_OBJECT_TYPE] = NLA_POLICY_RANGE(NLA_U32, 1, 5),
	[FABREX_A_OBJECT_ID] = { .type = NLA_U32, },
	[FABREX_A_OBJECT_NAME] = { .type = NLA_NUL_STRING, .len = 31, },
};

/* FABREX_CMD_OBJECT_GET - dump */
static const struct nla_policy fabrex_object_get_dump_nl_policy[FABREX_A_OBJECT_HOST_ID + 1] = {
	[FABREX_A_OBJECT_FPORT] = { .type = NLA_U32, },
	[FABREX_A_OBJECT_TYPE] = NLA_POLICY_RANGE(NLA_U32, 1, 5),
	[FABREX_A_OBJECT_PARENT] = { .type = NLA_U32, },
	[FABREX_A_OBJECT_BOUND] = { .type = NLA_U32, },
	[FABREX_A_OBJECT_HOST_ID] = { .type = NLA_U32, },
};

/* FABREX_CMD_BIND - do */
static const struct nla_policy fabrex_bind_nl_policy[FABREX_A_CHANGE_DRY_RUN + 1] = {
	[FABREX_A_CHANGE_FPORT] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_ID] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_TARGET] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_DRY_RUN] = { .type = NLA_FLAG, },
};

/* FABREX_CMD_UNBIND - do */
static const struct nla_policy fabrex_unbind_nl_policy[FABREX_A_CHANGE_TIMEOUT_MS + 1] = {
	[FABREX_A_CHANGE_FPORT] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_ID] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_FORCE] = { .type = NLA_FLAG, },
	[FABREX_A_CHANGE_DRY_RUN] = { .type = NLA_FLAG, },
	[FABREX_A_CHANGE_TIMEOUT_MS] = NLA_POLICY_MAX(NLA_U32, 30000),
};

/* FABREX_CMD_PORT_SET - do */
static const struct nla_policy fabrex_port_set_nl_policy[FABREX_A_CHANGE_ACTION + 1] = {
	[FABREX_A_CHANGE_FPORT] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_ID] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_ACTION] = NLA_POLICY_RANGE(NLA_U32, 1, 3),
};

/* FABREX_CMD_RELEASE_REPLY - do */
static const struct nla_policy fabrex_release_reply_nl_policy[FABREX_A_CHANGE_BUSY + 1] = {
	[FABREX_A_CHANGE_FPORT] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_ID] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_TOKEN] = { .type = NLA_U64, },
	[FABREX_A_CHANGE_BUSY] = { .type = NLA_FLAG, },
	[FABREX_A_CHANGE_HOLDER_PID] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_HOLDER_COMM] = { .type = NLA_NUL_STRING, .len = 15, },
	[FABREX_A_CHANGE_HOLDER_REASON] = { .type = NLA_NUL_STRING, .len = 103, },
};

/* FABREX_CMD_CHANGE_GET - do */
static const struct nla_policy fabrex_change_get_nl_policy[FABREX_A_CHANGE_TICKET + 1] = {
	[FABREX_A_CHANGE_FPORT] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_TICKET] = { .type = NLA_U64, },
};

/* FABREX_CMD_CHANGE_CANCEL - do */
static const struct nla_policy fabrex_change_cancel_nl_policy[FABREX_A_CHANGE_TICKET + 1] = {
	[FABREX_A_CHANGE_FPORT] = { .type = NLA_U32, },
	[FABREX_A_CHANGE_TICKET] = { .type = NLA_U64, },
};

/* FABREX_CMD_COUNTERS_GET - do */
static const struct nla_policy fabrex_counters_get_nl_policy[FABREX_A_COUNTERS_ID + 1] = {
	[FABREX_A_COUNTERS_FPORT] = { .type = NLA_U32, },
	[FABREX_A_COUNTERS_ID] = { .type = NLA_U32, },
};

/* FABREX_CMD_LINK_GET - dump */
static const struct nla_policy fabrex_link_get_nl_policy[FABREX_A_LINK_FPORT + 1] = {
	[FABREX_A_LINK_FPORT] = { .type = NLA_U32, },
};

/* Ops table for fabrex */
static const struct genl_split_ops fabrex_nl_ops[] = {
	{
		.cmd		= FABREX_CMD_FPORT_GET,
		.doit		= fabrex_nl_fport_get_doit,
		.policy		= fabrex_fport_get_nl_policy,
		.maxattr	= FABREX_A_FPORT_INDEX,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd	= FABREX_CMD_FPORT_GET,
		.dumpit	= fabrex_nl_fport_get_dumpit,
		.flags	= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= FABREX_CMD_OBJECT_GET,
		.doit		= fabrex_nl_object_get_doit,
		.policy		= fabrex_object_get_do_nl_policy,
		.maxattr	= FABREX_A_OBJECT_NAME,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= FABREX_CMD_OBJECT_GET,
		.dumpit		= fabrex_nl_object_get_dumpit,
		.policy		= fabrex_object_get_dump_nl_policy,
		.maxattr	= FABREX_A_OBJECT_HOST_ID,
		.flags		= GENL_CMD_CAP_DUMP,
	},
	{
		.cmd		= FABREX_CMD_BIND,
		.doit		= fabrex_nl_bind_doit,
		.policy		= fabrex_bind_nl_policy,
		.maxattr	= FABREX_A_CHANGE_DRY_RUN,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= FABREX_CMD_UNBIND,
		.doit		= fabrex_nl_unbind_doit,
		.policy		= fabrex_unbind_nl_policy,
		.maxattr	= FABREX_A_CHANGE_TIMEOUT_MS,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= FABREX_CMD_PORT_SET,
		.doit		= fabrex_nl_port_set_doit,
		.policy		= fabrex_port_set_nl_policy,
		.maxattr	= FABREX_A_CHANGE_ACTION,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= FABREX_CMD_RELEASE_REPLY,
		.doit		= fabrex_nl_release_reply_doit,
		.policy		= fabrex_release_reply_nl_policy,
		.maxattr	= FABREX_A_CHANGE_BUSY,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= FABREX_CMD_CHANGE_GET,
		.doit		= fabrex_nl_change_get_doit,
		.policy		= fabrex_change_get_nl_policy,
		.maxattr	= FABREX_A_CHANGE_TICKET,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= FABREX_CMD_CHANGE_CANCEL,
		.doit		= fabrex_nl_change_cancel_doit,
		.policy		= fabrex_change_cancel_nl_policy,
		.maxattr	= FABREX_A_CHANGE_TICKET,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= FABREX_CMD_COUNTERS_GET,
		.doit		= fabrex_nl_counters_get_doit,
		.policy		= fabrex_counters_get_nl_policy,
		.maxattr	= FABREX_A_COUNTERS_ID,
		.flags		= GENL_CMD_CAP_DO,
	},
	{
		.cmd		= FABREX_CMD_LINK_GET,
		.dumpit		= fabrex_nl_link_get_dumpit,
		.policy		= fabrex_link_get_nl_policy,
		.maxattr	= FABREX_A_LINK_FPORT,
		.flags		= GENL_CMD_CAP_DUMP,
	},
};

static const struct genl_multicast_group fabrex_nl_mcgrps[] = {
	[FABREX_NLGRP_EVENTS] = { "events", },
	[FABREX_NLGRP_AGENT] = { "agent", },
	[FABREX_NLGRP_CHANGES] = { "changes", },
};

struct genl_family fabrex_nl_family __ro_after_init = {
	.name		= FABREX_FAMILY_NAME,
	.version	= FABREX_FAMILY_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.split_ops	= fabrex_nl_ops,
	.n_split_ops	= ARRAY_SIZE(fabrex_nl_ops),
	.mcgrps		= fabrex_nl_mcgrps,
	.n_mcgrps	= ARRAY_SIZE(fabrex_nl_mcgrps),
};
