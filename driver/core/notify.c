// SPDX-License-Identifier: GPL-2.0-only
/* Netlink events of the fabric. Called by report.c and port.c. */
#include <linux/pci.h>
#include <linux/timekeeping.h>

#include "genl.h"
#include "fabrex_nl.h"
#include "report.h"
#include "trace.h"

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

/**
 * fabrex_notify() - send a netlink event
 * @port: port that it concerns; nothing is sent before the port is registered
 * @msg:  event
 *
 * Context: Process; sleeps.
 */
void fabrex_notify(struct fabrex_port *port,
		   const struct fabrex_notice_msg *msg)
{
	struct sk_buff *skb, *copy;
	void *hdr;

	trace_fabrex_notify(port, msg);
	if (!READ_ONCE(port->listed))
		return;
	skb = fabrex_nl_new_event(FABREX_CMD_EVENT, &hdr);
	if (!skb)
		return;
	if (put_event(skb, port, msg)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, hdr);
	if (msg->agent) {
		copy = skb_copy(skb, GFP_KERNEL);
		if (copy)
			fabrex_nl_multicast(copy, FABREX_NLGRP_AGENT);
	}
	fabrex_nl_multicast(skb, FABREX_NLGRP_EVENTS);
}
