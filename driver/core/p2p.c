// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel decides about peer-to-peer transfers between a PCI device and
 * a port. Called by file.c.
 */
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>

#include "data.h"

/* The port's device exists as long as registration_lock is held. */
static int fabrex_p2p_distance(struct fabrex_port *port, struct pci_dev *pdev)
{
	struct device *dev;
	int distance;

	guard(rwsem_read)(&port->registration_lock);
	if (!port->ops)
		return -ENODEV;
	dev = fabrex_port_importer(port);
	if (IS_ERR(dev))
		return -1;
	distance = pci_p2pdma_distance(pdev, dev, false);
	put_device(dev);
	return max(distance, -1);
}

/**
 * fabrex_cmd_p2p_query() - FABREX_IOCTL_P2P_QUERY
 * @ucmd: ioctl
 *
 * Context: Process; sleeps.
 * Return: as documented in the uapi header
 */
int fabrex_cmd_p2p_query(struct fabrex_ucmd *ucmd)
{
	struct fabrex_p2p_query *cmd = ucmd->cmd;
	struct pci_dev *pdev;
	int distance;

	if (cmd->flags || cmd->devfn > U16_MAX)
		return -EINVAL;
	if (cmd->domain > INT_MAX)
		return -ENOENT;
	pdev = pci_get_domain_bus_and_slot(cmd->domain, cmd->devfn >> 8,
					   cmd->devfn & 0xff);
	if (!pdev)
		return -ENOENT;
	distance = fabrex_p2p_distance(ucmd->file->port, pdev);
	pci_dev_put(pdev);
	if (distance == -ENODEV)
		return distance;
	cmd->out_flags = IS_ENABLED(CONFIG_PCI_P2PDMA) ? FABREX_P2P_KERNEL : 0;
	if (distance >= 0)
		cmd->out_flags |= FABREX_P2P_REACHABLE;
	cmd->out_distance = max(distance, 0);
	return fabrex_respond(ucmd);
}
