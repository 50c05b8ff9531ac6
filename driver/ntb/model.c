// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fabric as the port sees it: two hosts with a port each, and the bridge
 * between them; and how it moves payload. Called by client.c and link.c, and by
 * the core.
 */
#include <linux/pci.h>
#include <linux/string.h>

#include <uapi/linux/fabrex_netlink.h>

#include "ntb.h"

static int fntb_model_bridge(struct fntb_port *np)
{
	struct fabrex_object object = {
		.type = FABREX_OBJECT_TYPE_SWITCH,
		.id = FNTB_OBJECT_BRIDGE,
		.peer = FABREX_PEER_NONE,
	};

	strscpy(object.name, dev_name(&np->ntb->dev), sizeof(object.name));
	return fabrex_model_update(np->port, &object);
}

static int fntb_model_host(struct fntb_port *np, u32 id, const char *name)
{
	struct fabrex_object object = {
		.type = FABREX_OBJECT_TYPE_HOST,
		.state = FABREX_HOST_STATE_UP,
		.id = id,
		.peer = FABREX_PEER_NONE,
	};

	strscpy(object.name, name, sizeof(object.name));
	return fabrex_model_update(np->port, &object);
}

static int fntb_model_port(struct fntb_port *np, u32 id, u32 host, u32 peer,
			  u32 generation, const char *name)
{
	struct fabrex_object object = {
		.type = FABREX_OBJECT_TYPE_PORT,
		.kind = FABREX_PORT_KIND_HOST,
		.state = FABREX_LINK_STATE_UP,
		.id = id,
		.parent = FNTB_OBJECT_BRIDGE,
		.link = host,
		.peer = peer,
		.number = peer,
		.generation = generation,
	};

	strscpy(object.name, name, sizeof(object.name));
	return fabrex_model_update(np->port, &object);
}

/**
 * fntb_model_fill() - tell the core what there is
 * @np:   port
 * @peer: what the peer has said, checked; NULL if it is down
 *
 * Context: Process; sleeps.
 */
void fntb_model_fill(struct fntb_port *np, const struct fntb_hello *peer)
{
	int ret;

	fabrex_model_begin(np->port);
	ret = fntb_model_bridge(np) ?:
	      fntb_model_host(np, FNTB_OBJECT_OWN_HOST, np->info.host) ?:
	      fntb_model_port(np, FNTB_OBJECT_OWN_PORT, FNTB_OBJECT_OWN_HOST,
			     np->engine.peer, np->generation, np->info.name);
	if (!ret && peer)
		ret = fntb_model_host(np, FNTB_OBJECT_PEER_HOST, peer->host) ?:
		      fntb_model_port(np, FNTB_OBJECT_PEER_PORT, FNTB_OBJECT_PEER_HOST,
				     np->wire.peer,
				     le32_to_cpu(peer->generation),
				     peer->name);
	if (!ret)
		fabrex_model_end(np->port);
	else
		dev_warn(&np->ntb->dev,
			 "cannot update the model of the fabric: %pe\n",
			 ERR_PTR(ret));
}

/* The driver of a Switchtec's PCI function leaves its NTB to another module. */
static const char *fntb_bridge_driver(struct ntb_dev *ntb)
{
	const char *name = dev_driver_string(&ntb->pdev->dev);

	return strcmp(name, "switchtec") ? name : "ntb_hw_switchtec";
}

/**
 * fntb_data_path() - how payload is moved, of &struct fabrex_port_ops
 * @port: port
 * @path: result
 *
 * Context: Process; sleeps.
 * Return: 0
 */
int fntb_data_path(struct fabrex_port *port, struct fabrex_data_path *path)
{
	struct fntb_port *np = container_of(fabrex_port_priv(port),
					    struct fntb_port, engine);

	strscpy(path->bridge, fntb_bridge_driver(np->ntb),
		sizeof(path->bridge));
	strscpy(path->mode, np->direct ? "direct" : "bounced",
		sizeof(path->mode));
	if (!fntb_dma_name(np, path->engine, sizeof(path->engine)))
		strscpy(path->engine, "processor", sizeof(path->engine));
	path->protection = fabrex_dma_by_iommu(np->dma_dev) ?
			   FABREX_PROTECTION_IOMMU : FABREX_PROTECTION_TRUST;
	path->reached = np->dma_dev;
	return 0;
}
