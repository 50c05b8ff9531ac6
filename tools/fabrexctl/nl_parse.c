// SPDX-License-Identifier: GPL-2.0-only
/* From netlink attributes to structures, one function for each kind. */
#include <stdio.h>
#include <string.h>

#include "nl_parse.h"

uint32_t attr_u32(const struct nlattr *a)
{
	return a && nla_len(a) >= (int)sizeof(uint32_t) ? nla_get_u32(a) : 0;
}

uint64_t attr_u64(const struct nlattr *a)
{
	return a && nla_len(a) >= (int)sizeof(uint64_t) ? nla_get_u64(a) : 0;
}

void attr_text(char *buf, size_t len, const struct nlattr *a)
{
	buf[0] = '\0';
	if (a)
		nla_strlcpy(buf, a, len);
}

/* What shares it has an attribute each, all of the same type. */
static void parse_group(struct nlattr *a, struct fport *p)
{
	struct nlattr *other;
	uint32_t n = 0;
	int left;

	if (!a)
		return;
	nla_for_each_nested(other, a, left) {
		if (nla_type(other) == FABREX_A_IOMMU_GROUP_ID)
			snprintf(p->group, sizeof(p->group), "%u",
				 attr_u32(other));
		else if (nla_type(other) == FABREX_A_IOMMU_GROUP_OTHERS)
			p->group_others = attr_u32(other);
		else if (nla_type(other) == FABREX_A_IOMMU_GROUP_OTHER &&
			 n < GROUP_NAMES)
			attr_text(p->group_names[n++],
				  sizeof(p->group_names[0]), other);
	}
}

void parse_fport(struct nlattr **tb, struct fport *p)
{
	memset(p, 0, sizeof(*p));
	p->index = attr_u32(tb[FABREX_A_FPORT_INDEX]);
	snprintf(p->device, sizeof(p->device), "/dev/fabrex%u", p->index);
	p->object_id = attr_u32(tb[FABREX_A_FPORT_OBJECT_ID]);
	p->peer = attr_u32(tb[FABREX_A_FPORT_PEER]);
	p->generation = attr_u32(tb[FABREX_A_FPORT_GENERATION]);
	p->manager = tb[FABREX_A_FPORT_MANAGER];
	p->emulated = tb[FABREX_A_FPORT_EMULATED];
	p->alive = tb[FABREX_A_FPORT_ALIVE];
	p->queues = attr_u32(tb[FABREX_A_FPORT_QUEUES]);
	p->mrs = attr_u32(tb[FABREX_A_FPORT_MRS]);
	p->windows = attr_u32(tb[FABREX_A_FPORT_WINDOWS]);
	p->open_files = attr_u32(tb[FABREX_A_FPORT_OPEN_FILES]);
	p->objects = attr_u32(tb[FABREX_A_FPORT_OBJECTS]);
	p->pinned_bytes = attr_u64(tb[FABREX_A_FPORT_PINNED_BYTES]);
	attr_text(p->name, sizeof(p->name), tb[FABREX_A_FPORT_NAME]);
	attr_text(p->host, sizeof(p->host), tb[FABREX_A_FPORT_HOST]);
	attr_text(p->fabric, sizeof(p->fabric), tb[FABREX_A_FPORT_FABRIC]);
	attr_text(p->driver, sizeof(p->driver), tb[FABREX_A_FPORT_DRIVER]);
	attr_text(p->parent, sizeof(p->parent), tb[FABREX_A_FPORT_PARENT]);
	attr_text(p->bridge, sizeof(p->bridge),
		  tb[FABREX_A_FPORT_BRIDGE_DRIVER]);
	attr_text(p->mode, sizeof(p->mode), tb[FABREX_A_FPORT_MODE]);
	attr_text(p->engine, sizeof(p->engine), tb[FABREX_A_FPORT_ENGINE]);
	p->protection = attr_u32(tb[FABREX_A_FPORT_PROTECTION]);
	parse_group(tb[FABREX_A_FPORT_IOMMU_GROUP], p);
}

/* The fabric says what an appliance has, not what its maker calls it. */
static void parse_appliance(struct nlattr **tb, struct object *o)
{
	o->number = attr_u32(tb[FABREX_A_OBJECT_UPLINKS]);
	o->width = attr_u32(tb[FABREX_A_OBJECT_UPLINK_ENDPOINTS]);
	o->kind = o->number == 2 ? APPLIANCE_CASCADE :
		  o->number == 4 ? APPLIANCE_FLAT : 0;
}

void parse_object(struct nlattr **tb, struct object *o)
{
	memset(o, 0, sizeof(*o));
	o->type = attr_u32(tb[FABREX_A_OBJECT_TYPE]);
	if (o->type >= T_MAX)
		o->type = 0;
	o->id = attr_u32(tb[FABREX_A_OBJECT_ID]);
	o->kind = attr_u32(tb[FABREX_A_OBJECT_KIND]);
	o->state = attr_u32(tb[FABREX_A_OBJECT_STATE]);
	o->parent = attr_u32(tb[FABREX_A_OBJECT_PARENT]);
	o->link = attr_u32(tb[FABREX_A_OBJECT_LINK]);
	o->bound = attr_u32(tb[FABREX_A_OBJECT_BOUND]);
	o->slot = attr_u32(tb[FABREX_A_OBJECT_SLOT]);
	o->peer = attr_u32(tb[FABREX_A_OBJECT_PEER]);
	o->number = attr_u32(tb[FABREX_A_OBJECT_NUMBER]);
	o->generation = attr_u32(tb[FABREX_A_OBJECT_GENERATION]);
	o->speed = attr_u32(tb[FABREX_A_OBJECT_SPEED]);
	o->max_speed = attr_u32(tb[FABREX_A_OBJECT_MAX_SPEED]);
	o->width = attr_u32(tb[FABREX_A_OBJECT_WIDTH]);
	o->max_width = attr_u32(tb[FABREX_A_OBJECT_MAX_WIDTH]);
	o->pci_vendor = attr_u32(tb[FABREX_A_OBJECT_PCI_VENDOR]);
	o->pci_device = attr_u32(tb[FABREX_A_OBJECT_PCI_DEVICE]);
	o->size = attr_u64(tb[FABREX_A_OBJECT_SIZE]);
	o->manager = tb[FABREX_A_OBJECT_MANAGER];
	if (o->type == T_APPLIANCE)
		parse_appliance(tb, o);
	attr_text(o->name, sizeof(o->name), tb[FABREX_A_OBJECT_NAME]);
	attr_text(o->pci_name, sizeof(o->pci_name),
		  tb[FABREX_A_OBJECT_PCI_NAME]);
	attr_text(o->pci_driver, sizeof(o->pci_driver),
		  tb[FABREX_A_OBJECT_PCI_DRIVER]);
}

void parse_counters(struct nlattr **tb, struct counters *c)
{
	static const int attrs[NCOUNTERS] = {
		FABREX_A_COUNTERS_TX_BYTES, FABREX_A_COUNTERS_RX_BYTES,
		FABREX_A_COUNTERS_TX_OPS, FABREX_A_COUNTERS_RX_OPS,
		FABREX_A_COUNTERS_ERRORS, FABREX_A_COUNTERS_P2P_BYTES,
		FABREX_A_COUNTERS_HOST_BYTES, FABREX_A_COUNTERS_WINDOW_READS,
		FABREX_A_COUNTERS_WINDOW_WRITES, FABREX_A_COUNTERS_DOORBELLS,
		FABREX_A_COUNTERS_LINK_DOWNS, FABREX_A_COUNTERS_CRC_ERRORS,
		FABREX_A_COUNTERS_INTERRUPTS,
	};
	int i;

	c->id = attr_u32(tb[FABREX_A_COUNTERS_ID]);
	for (i = 0; i < NCOUNTERS; i++)
		c->v[i] = attr_u64(tb[attrs[i]]);
}

static uint64_t traffic_bytes(struct nlattr *a)
{
	struct nlattr *tb[FABREX_A_LINK_TRAFFIC_MAX + 1];

	if (!a || nla_parse_nested(tb, FABREX_A_LINK_TRAFFIC_MAX, a, NULL))
		return 0;
	return attr_u64(tb[FABREX_A_LINK_TRAFFIC_BYTES]);
}

void parse_link(struct nlattr **tb, struct link_bytes *l)
{
	l->a = attr_u32(tb[FABREX_A_LINK_A]);
	l->b = attr_u32(tb[FABREX_A_LINK_B]);
	l->a_to_b = traffic_bytes(tb[FABREX_A_LINK_A_TO_B]);
	l->b_to_a = traffic_bytes(tb[FABREX_A_LINK_B_TO_A]);
}

void parse_event(struct nlattr **tb, struct event *ev)
{
	memset(ev, 0, sizeof(*ev));
	ev->fport = attr_u32(tb[FABREX_A_EVENT_FPORT]);
	ev->type = attr_u32(tb[FABREX_A_EVENT_TYPE]);
	ev->time_ns = attr_u64(tb[FABREX_A_EVENT_TIME_NS]);
	ev->seq = attr_u64(tb[FABREX_A_EVENT_SEQ]);
	ev->object_type = attr_u32(tb[FABREX_A_EVENT_OBJECT_TYPE]);
	if (ev->object_type >= T_MAX)
		ev->object_type = 0;
	ev->object = attr_u32(tb[FABREX_A_EVENT_OBJECT]);
	ev->has_state = tb[FABREX_A_EVENT_STATE];
	ev->state = attr_u32(tb[FABREX_A_EVENT_STATE]);
	ev->port = attr_u32(tb[FABREX_A_EVENT_PORT]);
	ev->slot = attr_u32(tb[FABREX_A_EVENT_SLOT]);
	ev->surprise = tb[FABREX_A_EVENT_SURPRISE];
	ev->generation = attr_u32(tb[FABREX_A_EVENT_GENERATION]);
	ev->token = attr_u64(tb[FABREX_A_EVENT_TOKEN]);
	ev->timeout_ms = attr_u32(tb[FABREX_A_EVENT_TIMEOUT_MS]);
	attr_text(ev->name, sizeof(ev->name), tb[FABREX_A_EVENT_NAME]);
	attr_text(ev->port_name, sizeof(ev->port_name),
		  tb[FABREX_A_EVENT_PORT_NAME]);
	attr_text(ev->pci_name, sizeof(ev->pci_name),
		  tb[FABREX_A_EVENT_PCI_NAME]);
}
