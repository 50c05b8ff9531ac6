// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of Linux's NTB drivers: a port for each device. What the core and the
 * NTB bus call.
 */
#include <linux/crc32c.h>
#include <linux/dmi.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/switchtec.h>
#include <linux/timekeeping.h>
#include <linux/utsname.h>

#include "ntb.h"

static bool trusted_peer;
module_param(trusted_peer, bool, 0444);
MODULE_PARM_DESC(trusted_peer, "accept an NTB without an IOMMU; root on the peer host can then read and write all memory of this host (default: N)");

static unsigned int poll_us = 50;
module_param(poll_us, uint, 0444);
MODULE_PARM_DESC(poll_us, "time to poll idle rings before they are parked, in microseconds (default: 50)");

static int number = -1;
module_param(number, int, 0444);
MODULE_PARM_DESC(number, "peer number of this host's ports, 0 to 255; must differ between the two hosts (default: -1, chosen by fabrex_ntb)");

static DEFINE_IDA(fntb_numbers);

static int fntb_counters(struct fabrex_port *port, u32 id,
			struct fabrex_counters *counters)
{
	struct fabrex_engine *engine = fabrex_port_priv(port);

	/* Of the peer nothing is known. */
	if (id && id != FNTB_OBJECT_OWN_PORT)
		return -EOPNOTSUPP;
	fabrex_engine_read_counters(&engine->counters, counters);
	return 0;
}

static const struct fabrex_fabric_ops fntb_fabric_ops = {
	.counters = fntb_counters,
};

static const struct fabrex_port_ops fntb_port_ops = {
	.fabric = &fntb_fabric_ops,
	.data = &fabrex_engine_data_ops,
	.data_path = fntb_data_path,
};

static void fntb_link_event(void *ctx)
{
	struct fntb_port *np = ctx;

	WRITE_ONCE(np->moved, 1);
	fntb_link_wake(np);
}

static void fntb_db_event(void *ctx, int vector)
{
	struct fntb_port *np = ctx;

	/* Which bit it was would have to be read from the bridge: that takes longer
	 * than to wake in vain. Masked, however often the peer rings, until the
	 * thread sleeps again.
	 */
	ntb_db_set_mask(np->ntb, np->bell_bit);
	smp_store_release(&np->masked, true);
	fntb_link_wake(np);
}

static const struct ntb_ctx_ops fntb_ctx_ops = {
	.link_event = fntb_link_event,
	.db_event = fntb_db_event,
};

/* The peer's root can aim its window at any bus address of this host, whatever
 * was set up here: that is how NTBs are made.
 */
static int fntb_check_trust(struct fntb_port *np)
{
	if (fabrex_dma_by_iommu(np->dma_dev) || trusted_peer)
		return 0;
	dev_err(&np->ntb->dev,
		"refused: no IOMMU translates DMA from this NTB, so root on the peer host could read and write all memory of this host; boot with iommu.passthrough=0 (on Intel also intel_iommu=on), or load fabrex_ntb with trusted_peer=1\n");
	return -EPERM;
}

/* What an IOMMU lets the NTB reach, it lets all devices of its group reach, and
 * the other way round.
 */
static void fntb_tell_group(struct fntb_port *np)
{
	struct fabrex_iommu_group group;
	char names[FABREX_GROUP_NAMES * 16] = "";
	u32 i, n = 0;

	if (!fabrex_iommu_group_read(np->dma_dev, &group) || !group.others)
		return;
	for (i = 0; i < min(group.others, FABREX_GROUP_NAMES); i++)
		n += scnprintf(names + n, sizeof(names) - n, " %s",
			       group.names[i]);
	dev_warn(&np->ntb->dev,
		 "IOMMU group %d has %u devices beside this NTB, so root on the peer host reaches what they can reach:%s%s\n",
		 group.id, group.others, names,
		 group.others > FABREX_GROUP_NAMES ? " ..." : "");
}

/* Linux's driver does not tell the two ends of a Switchtec apart, but each knows
 * its partition.
 */
static int fntb_partition(struct ntb_dev *ntb)
{
	struct switchtec_dev *stdev;

	if (!ntb->pdev->driver || strcmp(ntb->pdev->driver->name, "switchtec"))
		return -ENODEV;
	stdev = pci_get_drvdata(ntb->pdev);
	return stdev ? stdev->partition : -ENODEV;
}

/* The peer number of this port. Where nobody tells the two ends apart, it depends
 * on the names of host and machine; if both come to the same, one time in 256,
 * neither sees the other, and both say what to do.
 */
static u32 fntb_peer_number(struct ntb_dev *ntb)
{
	const char *name = init_utsname()->nodename;
	int own = ntb_port_number(ntb);
	int other = ntb_peer_port_number(ntb, NTB_DEF_PEER_IDX);
	u32 crc;

	if (number >= 0)
		return number;
	if (own < 0 || own == other)
		own = fntb_partition(ntb);
	if (own >= 0 && own < FABREX_MAX_PEERS)
		return own;
	crc = crc32c(~0u, name, strlen(name));
	name = dmi_get_system_info(DMI_PRODUCT_UUID) ?: "";
	return crc32c(crc, name, strlen(name)) % FABREX_MAX_PEERS;
}

static int fntb_check_device(struct fntb_port *np)
{
	struct ntb_dev *ntb = np->ntb;

	if (number >= FABREX_MAX_PEERS) {
		dev_err(&ntb->dev, "number=%d is out of range: it must be below %d\n",
			number, FABREX_MAX_PEERS);
		return -EINVAL;
	}
	if (ntb_peer_port_count(ntb) != 1) {
		dev_err(&ntb->dev,
			"this NTB has %d peers; only NTBs with exactly one peer are supported\n",
			ntb_peer_port_count(ntb));
		return -EOPNOTSUPP;
	}
	if (ntb_spad_count(ntb) < 1 || !ntb_db_valid_mask(ntb) ||
	    ntb_peer_mw_count(ntb) < 1) {
		dev_err(&ntb->dev,
			"this NTB lacks scratchpads, doorbells or memory windows; all three are required\n");
		return -EOPNOTSUPP;
	}
	return fntb_check_trust(np);
}

static void fntb_info_fill(struct fntb_port *np)
{
	struct fabrex_port_info *info = &np->info;

	fabrex_engine_info(info);
	/* What is too long is no name either. */
	strscpy(info->host, init_utsname()->nodename, sizeof(info->host));
	if (!fntb_name_ok(info->host))
		strscpy(info->host, "host", sizeof(info->host));
	snprintf(info->name, sizeof(info->name), "%.24s.ntb%d", info->host,
		 np->number);
	strscpy(info->fabric, "ntb", sizeof(info->fabric));
	strscpy(info->driver, KBUILD_MODNAME, sizeof(info->driver));
	info->object_id = FNTB_OBJECT_OWN_PORT;
	info->peer = np->engine.peer;
	info->generation = np->generation;
}

static struct fntb_port *fntb_port_new(struct ntb_dev *ntb)
{
	struct fntb_port *np;

	np = kvzalloc(sizeof(*np), GFP_KERNEL);
	if (!np)
		return NULL;
	np->ntb = ntb;
	np->dma_dev = fabrex_ntb_dma_dev(ntb);
	/* Each time that the driver is loaded, also after a reboot, a later one:
	 * to remove it takes longer than that.
	 */
	np->generation = div_u64(ktime_get_real_ns(), NSEC_PER_SEC / 4);
	init_waitqueue_head(&np->wait);
	spin_lock_init(&np->tx.lock);
	mutex_init(&np->answers_lock);
	mutex_init(&np->dma_lock);
	np->wire.ops = &fntb_wire_ops;
	np->engine.poll_us = poll_us;
	np->engine.channel = &fntb_channel_ops;
	return np;
}

static int fntb_port_start(struct fntb_port *np)
{
	struct ntb_dev *ntb = np->ntb;
	int ret;

	np->bell_bit = BIT_ULL(__ffs64(ntb_db_valid_mask(ntb)));
	/* Not &ntb->dev: files that are still open keep the parent, and the driver
	 * of the NTB waits for that.
	 */
	np->port = fabrex_port_alloc(&ntb->pdev->dev, &fntb_port_ops, &np->info,
				     &np->engine);
	if (IS_ERR(np->port))
		return PTR_ERR(np->port);
	np->engine.port = np->port;
	fntb_model_fill(np, NULL);
	ret = fabrex_port_register(np->port);
	if (ret)
		goto put;
	np->thread = kthread_create(fntb_link_run, np, "fabrex-ntb/%d",
				    np->number);
	if (IS_ERR(np->thread)) {
		ret = PTR_ERR(np->thread);
		goto unregister;
	}
	ret = ntb_set_ctx(ntb, np, &fntb_ctx_ops);
	if (ret)
		goto stop;
	fntb_link_begin(np);
	ntb_db_clear(ntb, np->bell_bit);
	ntb_db_clear_mask(ntb, np->bell_bit);
	ret = ntb_link_enable(ntb, NTB_SPEED_AUTO, NTB_WIDTH_AUTO);
	/* The second of two ends may have no say. */
	if (ret && ret != -EINVAL)
		goto clear;
	get_task_struct(np->thread);
	wake_up_process(np->thread);
	return 0;

clear:
	ntb_db_set_mask(ntb, np->bell_bit);
	ntb_clear_ctx(ntb);
stop:
	kthread_stop(np->thread);
unregister:
	fabrex_port_unregister(np->port);
put:
	fabrex_port_put(np->port);
	return ret;
}

static int fntb_client_probe(struct ntb_client *client, struct ntb_dev *ntb)
{
	struct fntb_port *np = fntb_port_new(ntb);
	int ret;

	if (!np)
		return -ENOMEM;
	ret = fntb_check_device(np) ?: fntb_direct_open(np);
	if (ret)
		goto free;
	ret = ida_alloc(&fntb_numbers, GFP_KERNEL);
	if (ret < 0)
		goto free;
	np->number = ret;
	fabrex_engine_init(&np->engine, fntb_peer_number(ntb));
	fabrex_engine_add(&np->engine, &np->wire);
	fntb_info_fill(np);
	fntb_tell_group(np);
	ret = fntb_port_start(np);
	if (!ret)
		return 0;
	fabrex_engine_exit(&np->engine);
	ida_free(&fntb_numbers, np->number);
free:
	fntb_direct_free(np);
	kvfree(np);
	return ret;
}

static void fntb_client_remove(struct ntb_client *client, struct ntb_dev *ntb)
{
	struct fntb_port *np = ntb->ctx;

	/* First: whoever waits for the peer stops waiting. */
	kthread_stop(np->thread);
	put_task_struct(np->thread);
	ntb_db_set_mask(ntb, np->bell_bit);
	ntb_link_disable(ntb);
	ntb_clear_ctx(ntb);
	fabrex_port_unregister(np->port);
	fabrex_port_put(np->port);
	fabrex_engine_exit(&np->engine);
	fntb_dma_exit(np);
	fntb_known_free(np);
	fntb_direct_free(np);
	fntb_inbox_free(np);
	ida_free(&fntb_numbers, np->number);
	kvfree(np);
}

static struct ntb_client fntb_client = {
	.ops = {
		.probe = fntb_client_probe,
		.remove = fntb_client_remove,
	},
};
module_ntb_client(fntb_client);

FABREX_IMPORT_NS;
MODULE_DESCRIPTION("fabrex: ports on non-transparent bridges");
MODULE_LICENSE("GPL");
