// SPDX-License-Identifier: GPL-2.0-only
/*
 * Initialisation and exit of fabrex.ko, and the netlink family that its files
 * implement.
 */
#include <linux/module.h>

#include "genl.h"
#include "fabrex_nl.h"
#include "dmabuf.h"
#include "port.h"
#include "report.h"

/* The generated table does not say who may join. */
static const struct genl_multicast_group fabrex_groups[] = {
	[FABREX_NLGRP_EVENTS] = { .name = FABREX_MCGRP_EVENTS },
	[FABREX_NLGRP_AGENT] = {
		.name = FABREX_MCGRP_AGENT,
		.flags = GENL_MCAST_CAP_SYS_ADMIN,
	},
	[FABREX_NLGRP_CHANGES] = {
		.name = FABREX_MCGRP_CHANGES,
		.flags = GENL_MCAST_CAP_SYS_ADMIN,
	},
};

static int __init fabrex_family_init(void)
{
	fabrex_nl_family.mcgrps = fabrex_groups;
	fabrex_nl_family.n_mcgrps = ARRAY_SIZE(fabrex_groups);
	return fabrex_genl_register(&fabrex_nl_family);
}

static int __init fabrex_init(void)
{
	int ret;

	fabrex_tickets_init();
	fabrex_quotas_init();
	ret = fabrex_ports_init();
	if (ret)
		return ret;
	ret = fabrex_files_init();
	if (ret)
		goto exit_ports;
	ret = fabrex_release_init();
	if (ret)
		goto exit_files;
	ret = fabrex_dmabufs_init();
	if (ret)
		goto exit_release;
	ret = fabrex_family_init();
	if (ret)
		goto exit_dmabufs;
	return 0;

exit_dmabufs:
	fabrex_dmabufs_exit();
exit_release:
	fabrex_release_exit();
exit_files:
	fabrex_files_exit();
exit_ports:
	fabrex_ports_exit();
	return ret;
}

static void __exit fabrex_exit(void)
{
	/* Waits for commands in progress. */
	fabrex_genl_unregister(&fabrex_nl_family);
	fabrex_dmabufs_exit();
	fabrex_release_exit();
	fabrex_files_exit();
	fabrex_ports_exit();
}

module_init(fabrex_init);
module_exit(fabrex_exit);
MODULE_DESCRIPTION("Composable PCIe fabrics: ports, memory, queues, model");
MODULE_LICENSE("GPL");
