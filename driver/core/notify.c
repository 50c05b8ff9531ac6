// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink events, and the release of endpoints on request of the switch.
 * Called by port.c and model.c, and by backends.
 */
#include <linux/delay.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "genl.h"
#include "fabrex_nl.h"
#include "core.h"
#include "trace.h"

static struct workqueue_struct *fabrex_release_wq;

/**
 * struct fabrex_release - a request that the core decides
 * @work:  does
 * @port:  with a reference
 * @ep:    endpoint
 * @token: of the request
 * @slot:  of the endpoint
 */
struct fabrex_release {
	struct work_struct work;
	struct fabrex_port *port;
	u32 ep;
	u64 token;
	u16 slot;
};

static int put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, FABREX_A_EVENT_PAD);
}

static int put_event_object(struct sk_buff *skb, struct fabrex_port *port,
			    const struct fabrex_object *object)
{
	struct pci_dev *pdev;
	int ret;

	ret = put_u64(skb, FABREX_A_EVENT_SEQ,
		      atomic64_inc_return(&port->event_seq));
	if (ret || !object)
		return ret;
	ret = nla_put_u32(skb, FABREX_A_EVENT_OBJECT_TYPE, object->type) ?:
	      nla_put_u32(skb, FABREX_A_EVENT_OBJECT, object->id) ?:
	      nla_put_string(skb, FABREX_A_EVENT_NAME, object->name);
	if (ret)
		return ret;
	pdev = fabrex_endpoint_pdev(port, object);
	if (pdev)
		ret = nla_put_string(skb, FABREX_A_EVENT_PCI_NAME,
				     pci_name(pdev));
	pci_dev_put(pdev);
	return ret;
}

static int put_event_port(struct sk_buff *skb, struct fabrex_port *port, u32 id)
{
	char name[FABREX_NAME_LEN];

	if (!id)
		return 0;
	fabrex_model_name(port, id, name);
	return nla_put_u32(skb, FABREX_A_EVENT_PORT, id) ?:
	       nla_put_string(skb, FABREX_A_EVENT_PORT_NAME, name);
}

static int put_event_request(struct sk_buff *skb,
			     const struct fabrex_notice_msg *msg)
{
	if (msg->type != FABREX_EVENT_TYPE_RELEASE_REQUEST)
		return 0;
	return put_u64(skb, FABREX_A_EVENT_TOKEN, msg->token) ?:
	       nla_put_u32(skb, FABREX_A_EVENT_TIMEOUT_MS, msg->timeout_ms);
}

static int put_event(struct sk_buff *skb, struct fabrex_port *port,
		     const struct fabrex_notice_msg *msg)
{
	int ret;

	ret = nla_put_u32(skb, FABREX_A_EVENT_FPORT, port->index) ?:
	      nla_put_u32(skb, FABREX_A_EVENT_TYPE, msg->type) ?:
	      put_u64(skb, FABREX_A_EVENT_TIME_NS, ktime_get_real_ns()) ?:
	      put_event_object(skb, port, msg->object) ?:
	      put_event_port(skb, port, msg->port) ?:
	      put_event_request(skb, msg);
	if (!ret && msg->has_state)
		ret = nla_put_u32(skb, FABREX_A_EVENT_STATE, msg->state);
	if (!ret && msg->slot)
		ret = nla_put_u32(skb, FABREX_A_EVENT_SLOT, msg->slot);
	if (!ret && msg->surprise)
		ret = nla_put_flag(skb, FABREX_A_EVENT_SURPRISE);
	if (!ret && msg->generation)
		ret = nla_put_u32(skb, FABREX_A_EVENT_GENERATION,
				  msg->generation);
	return ret;
}

static void fabrex_multicast(struct sk_buff *skb, unsigned int group)
{
	/* Nobody listening is no error. */
	genlmsg_multicast(fabrex_genl_family(&fabrex_nl_family), skb, 0, group,
			  GFP_KERNEL);
}

/**
 * fabrex_notify() - send a netlink event
 * @port: that saw it; nothing is sent before it is registered
 * @msg:  event
 */
void fabrex_notify(struct fabrex_port *port,
		   const struct fabrex_notice_msg *msg)
{
	struct sk_buff *skb, *copy;
	void *hdr;

	trace_fabrex_notify(port, msg);
	if (!READ_ONCE(port->listed))
		return;
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return;
	hdr = genlmsg_put(skb, 0, 0, fabrex_genl_family(&fabrex_nl_family), 0,
			  FABREX_CMD_EVENT);
	if (!hdr || put_event(skb, port, msg)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, hdr);
	if (msg->agent) {
		copy = skb_copy(skb, GFP_KERNEL);
		if (copy)
			fabrex_multicast(copy, FABREX_NLGRP_AGENT);
	}
	fabrex_multicast(skb, FABREX_NLGRP_EVENTS);
}

/**
 * fabrex_port_notice() - something happened that changes no element's state
 * @port: port
 * @what: FABREX_NOTICE_*
 * @id:   object id of the switch or element
 * @code: of a fault
 */
void fabrex_port_notice(struct fabrex_port *port, enum fabrex_notice what,
			u32 id, u64 code)
{
	struct fabrex_object object = {};
	struct fabrex_notice_msg msg = {
		.type = what == FABREX_NOTICE_RESET ? FABREX_EVENT_TYPE_RESET :
			what == FABREX_NOTICE_LOST ? FABREX_EVENT_TYPE_LOST :
						     FABREX_EVENT_TYPE_FAULT,
		.state = code,
		.has_state = what == FABREX_NOTICE_FAULT,
	};

	if (!fabrex_model_get(port, id, &object))
		msg.object = &object;
	if (what == FABREX_NOTICE_LOST)
		fabrex_port_lost(port);
	fabrex_notify(port, &msg);
}
FABREX_EXPORT(fabrex_port_notice);

/* A look takes a moment only; who binds or unbinds a driver needs longer. */
#define HOLDER_TRIES	20
#define HOLDER_MS	50

/* Bridges below the slot always have their driver, which holds nothing. */
static int fabrex_release_match(struct pci_dev *pdev, void *data)
{
	char *driver = data;

	return !pci_is_bridge(pdev) &&
	       fabrex_pdev_driver(pdev, driver, FABREX_NAME_LEN);
}

/* The driver of any function in the slot. "?" is one that nobody could look at
 * for a second.
 */
static bool fabrex_release_driver(struct pci_bus *bus, char *driver)
{
	int i;

	for (i = 0; i < HOLDER_TRIES; i++) {
		driver[0] = 0;
		pci_walk_bus(bus, fabrex_release_match, driver);
		if (strcmp(driver, "?"))
			break;
		msleep(HOLDER_MS);
	}
	return driver[0];
}

/* Who holds the endpoint here? Returns false if nobody does. */
static bool fabrex_release_holder(struct fabrex_release *release,
				  const struct fabrex_fabric_ops *fabric,
				  struct fabrex_holder *holder)
{
	struct fabrex_port *port = release->port;
	struct pci_dev *pdev = NULL;
	char driver[FABREX_NAME_LEN];
	bool held;

	if (fabric->endpoint_pdev)
		pdev = fabric->endpoint_pdev(port, release->ep, release->slot);
	if (!pdev)
		return false;
	held = fabrex_release_driver(pdev->bus, driver);
	pci_dev_put(pdev);
	if (!held)
		return false;
	holder->port = port->info.object_id;
	strscpy(holder->comm, "kernel", sizeof(holder->comm));
	snprintf(holder->reason, sizeof(holder->reason),
		 "driver %s is bound; unbind it, run fabrexctl agent, or use --force",
		 driver);
	return true;
}

static void fabrex_release_decide(struct fabrex_release *release)
{
	struct fabrex_port *port = release->port;
	const struct fabrex_fabric_ops *fabric;
	struct fabrex_holder holder = {};
	bool held;
	int ret;

	guard(rwsem_read)(&port->registration_lock);
	if (fabrex_port_usable(port) || !(port->can & FABREX_CAN_REPLY))
		return;
	fabric = port->ops->fabric;
	held = fabrex_release_holder(release, fabric, &holder);
	ret = fabric->release_reply(port, release->ep, release->token,
				    held ? &holder : NULL);
	trace_fabrex_release(port, release->ep, held, ret);
}

static void fabrex_release_work(struct work_struct *work)
{
	struct fabrex_release *release = container_of(work,
						      struct fabrex_release,
						      work);

	fabrex_release_decide(release);
	put_device(&release->port->dev);
	kfree(release);
}

static void fabrex_release_queue(struct fabrex_port *port, u32 ep, u64 token,
				 u16 slot)
{
	struct fabrex_release *release;

	release = kzalloc(sizeof(*release), GFP_KERNEL);
	if (!release)
		return;	/* the switch waits for its time-out */
	INIT_WORK(&release->work, fabrex_release_work);
	get_device(&port->dev);
	release->port = port;
	release->ep = ep;
	release->token = token;
	release->slot = slot;
	queue_work(fabrex_release_wq, &release->work);
}

/**
 * fabrex_port_release_request() - the switch wants an endpoint back
 * @port:       port that it is bound to
 * @ep:         endpoint
 * @token:      for the answer
 * @slot:       where it is
 * @timeout_ms: that the switch waits
 *
 * The answer comes through fabric->release_reply(), from the agent if one listens
 * to the netlink group, else from the core: the endpoint may go if no driver
 * is bound to it here.
 */
void fabrex_port_release_request(struct fabrex_port *port, u32 ep, u64 token,
				 u16 slot, u32 timeout_ms)
{
	struct fabrex_object object = {};
	struct fabrex_notice_msg msg = {
		.type = FABREX_EVENT_TYPE_RELEASE_REQUEST,
		.object = &object,
		.port = port->info.object_id,
		.slot = slot,
		.token = token,
		.timeout_ms = timeout_ms,
		.agent = true,
	};

	if (fabrex_model_get(port, ep, &object)) {
		object.type = FABREX_OBJECT_TYPE_ENDPOINT;
		object.id = ep;
		snprintf(object.name, sizeof(object.name), "#%u", ep);
	}
	object.bound = port->info.object_id;
	object.slot = slot;
	fabrex_notify(port, &msg);
	if (!genl_has_listeners(fabrex_genl_family(&fabrex_nl_family),
				&init_net, FABREX_NLGRP_AGENT))
		fabrex_release_queue(port, ep, token, slot);
}
FABREX_EXPORT(fabrex_port_release_request);

/**
 * fabrex_release_init() - for the module
 *
 * Return: 0 or -ENOMEM
 */
int __init fabrex_release_init(void)
{
	fabrex_release_wq = alloc_workqueue("fabrex-release", WQ_UNBOUND, 0);
	return fabrex_release_wq ? 0 : -ENOMEM;
}

/**
 * fabrex_release_exit() - for the module
 */
void fabrex_release_exit(void)
{
	destroy_workqueue(fabrex_release_wq);
}
