/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generic netlink families with split operations (6.2) on older kernels.
 * Included by the netlink files of the core, before generated code.
 */
#ifndef _FABREX_COMPAT_GENL_H
#define _FABREX_COMPAT_GENL_H

#include <linux/version.h>
#include <net/genetlink.h>

/* The family that fabrex_genl_register() has registered, for senders. */
extern struct genl_family *fabrex_genl;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)

int fabrex_genl_register(struct genl_family *family);
void fabrex_genl_unregister(struct genl_family *family);

#else

struct genl_split_ops {
	int (*doit)(struct sk_buff *skb, struct genl_info *info);
	int (*dumpit)(struct sk_buff *skb, struct netlink_callback *cb);
	const struct nla_policy *policy;
	unsigned int maxattr;
	u8 cmd;
	u8 flags;
};

/* Description of the family in the generated code. */
struct fabrex_genl_spec {
	char name[GENL_NAMSIZ];
	unsigned int version;
	bool netnsok;
	bool parallel_ops;
	struct module *module;
	const struct genl_split_ops *split_ops;
	u8 n_split_ops;
	const struct genl_multicast_group *mcgrps;
	u8 n_mcgrps;
};

int fabrex_genl_register(const struct fabrex_genl_spec *spec);
void fabrex_genl_unregister(const struct fabrex_genl_spec *spec);

/* From here on, the name that the generated files use. */
#ifndef FABREX_COMPAT_GENL_IMPL
#define genl_family fabrex_genl_spec
#endif

#endif

/* Attributes of the request that a dump answers. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define fabrex_dump_attrs(cb)	(genl_info_dump(cb)->attrs)
#else
#define fabrex_dump_attrs(cb)	(genl_dumpit_info(cb)->attrs)
#endif

#endif
