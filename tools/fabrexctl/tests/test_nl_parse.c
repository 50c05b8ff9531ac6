// SPDX-License-Identifier: GPL-2.0-only
/* Attributes from a kernel that is newer, older or broken. */
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <stdlib.h>

#include "nl_parse.h"
#include "run_line.h"

static void objects(void)
{
	struct nlattr *tb[FABREX_A_OBJECT_MAX + 1];
	struct nl_msg *msg = nlmsg_alloc();
	struct object o;
	char name[100];

	memset(name, 'n', sizeof(name));
	name[99] = '\0';
	genlmsg_put(msg, 0, 0, 99, 0, 0, FABREX_CMD_OBJECT_GET, 1);
	nla_put_u32(msg, FABREX_A_OBJECT_TYPE, T_ENDPOINT);
	nla_put_u32(msg, FABREX_A_OBJECT_ID, 77);
	nla_put_u64(msg, FABREX_A_OBJECT_SIZE, 1ull << 40);
	nla_put_u8(msg, FABREX_A_OBJECT_SLOT, 3);
	nla_put(msg, FABREX_A_OBJECT_KIND, 0, NULL);
	nla_put_string(msg, FABREX_A_OBJECT_NAME, name);
	nla_put_u32(msg, FABREX_A_OBJECT_MAX + 5, 1);
	ok(!genlmsg_parse(nlmsg_hdr(msg), 0, tb, FABREX_A_OBJECT_MAX, NULL),
	   "an unknown attribute is skipped");
	parse_object(tb, &o);
	ok(o.type == T_ENDPOINT && o.id == 77 && o.size == 1ull << 40,
	   "numbers");
	ok(!o.slot && !o.kind, "short attributes are not read");
	ok(strlen(o.name) == CTL_NAME_LEN - 1, "a long name is cut");
	ok(!*o.pci_name && !o.bound, "what is missing is nothing");
	nlmsg_free(msg);
}

static void links(void)
{
	struct nlattr *tb[FABREX_A_LINK_MAX + 1], *nest;
	struct nl_msg *msg = nlmsg_alloc();
	struct link_bytes l;

	genlmsg_put(msg, 0, 0, 99, 0, 0, FABREX_CMD_LINK_GET, 1);
	nla_put_u32(msg, FABREX_A_LINK_A, 7);
	nla_put_u32(msg, FABREX_A_LINK_B, 8);
	nest = nla_nest_start(msg, FABREX_A_LINK_A_TO_B);
	nla_put_u64(msg, FABREX_A_LINK_TRAFFIC_BYTES, 1ull << 50);
	nla_put_u32(msg, FABREX_A_LINK_TRAFFIC_MAX + 3, 1);
	nla_nest_end(msg, nest);
	nla_put_u8(msg, FABREX_A_LINK_B_TO_A, 1);
	genlmsg_parse(nlmsg_hdr(msg), 0, tb, FABREX_A_LINK_MAX, NULL);
	parse_link(tb, &l);
	ok(l.a == 7 && l.b == 8 && l.a_to_b == 1ull << 50 && !l.b_to_a,
	   "a link, with a nest that is broken");
	nlmsg_free(msg);
}

static void fports(void)
{
	struct nlattr *tb[FABREX_A_FPORT_MAX + 1], *nest;
	struct nl_msg *msg = nlmsg_alloc();
	struct fport p;
	int i;

	genlmsg_put(msg, 0, 0, 99, 0, 0, FABREX_CMD_FPORT_GET, 1);
	nla_put_string(msg, FABREX_A_FPORT_BRIDGE_DRIVER, "ntb_hw_epf");
	nla_put_string(msg, FABREX_A_FPORT_MODE, "bounced");
	nla_put_string(msg, FABREX_A_FPORT_ENGINE, "processor");
	nla_put_u32(msg, FABREX_A_FPORT_PROTECTION, FABREX_PROTECTION_IOMMU);
	nest = nla_nest_start(msg, FABREX_A_FPORT_IOMMU_GROUP);
	nla_put_u32(msg, FABREX_A_IOMMU_GROUP_ID, 0);
	nla_put_u32(msg, FABREX_A_IOMMU_GROUP_OTHERS, 99);
	nla_put_u32(msg, FABREX_A_IOMMU_GROUP_MAX + 3, 1);
	for (i = 0; i < GROUP_NAMES + 2; i++)
		nla_put_string(msg, FABREX_A_IOMMU_GROUP_OTHER, "0000:01:00.2");
	nla_nest_end(msg, nest);
	genlmsg_parse(nlmsg_hdr(msg), 0, tb, FABREX_A_FPORT_MAX, NULL);
	parse_fport(tb, &p);
	ok(!strcmp(p.bridge, "ntb_hw_epf") && !strcmp(p.mode, "bounced") &&
	   !strcmp(p.engine, "processor") &&
	   p.protection == FABREX_PROTECTION_IOMMU, "a port on a bridge");
	ok(!strcmp(p.group, "0") && p.group_others == 99 &&
	   !strcmp(p.group_names[GROUP_NAMES - 1], "0000:01:00.2"),
	   "what shares its group, of more than are named");
	nlmsg_free(msg);
}

static void types(void)
{
	struct nlattr *tb[FABREX_A_OBJECT_MAX + 1];
	struct nl_msg *msg = nlmsg_alloc();
	struct object o;

	genlmsg_put(msg, 0, 0, 99, 0, 0, FABREX_CMD_OBJECT_GET, 1);
	nla_put_u32(msg, FABREX_A_OBJECT_TYPE, 4000000000u);
	genlmsg_parse(nlmsg_hdr(msg), 0, tb, FABREX_A_OBJECT_MAX, NULL);
	parse_object(tb, &o);
	ok(o.type == 0, "a type of the future is none of ours");
	nlmsg_free(msg);
}

/* Called by what they have: two uplinks, four, and any other number. */
static void appliances(void)
{
	static const uint32_t want[] = { 0, 0, APPLIANCE_CASCADE, 0,
					 APPLIANCE_FLAT };
	struct nlattr *tb[FABREX_A_OBJECT_MAX + 1];
	struct object o;
	uint32_t n;

	for (n = 1; n < 5; n++) {
		struct nl_msg *msg = nlmsg_alloc();

		genlmsg_put(msg, 0, 0, 99, 0, 0, FABREX_CMD_OBJECT_GET, 1);
		nla_put_u32(msg, FABREX_A_OBJECT_TYPE, T_APPLIANCE);
		nla_put_u32(msg, FABREX_A_OBJECT_UPLINKS, n);
		nla_put_u32(msg, FABREX_A_OBJECT_UPLINK_ENDPOINTS, 8 / n);
		genlmsg_parse(nlmsg_hdr(msg), 0, tb, FABREX_A_OBJECT_MAX, NULL);
		parse_object(tb, &o);
		ok(o.kind == want[n] && o.number == n && o.width == 8 / n,
		   "an appliance of %u uplinks", n);
		nlmsg_free(msg);
	}
}

static void counters(void)
{
	struct nlattr *tb[FABREX_A_COUNTERS_MAX + 1];
	struct nl_msg *msg = nlmsg_alloc();
	struct counters c = { 0 };
	int i, good = 0;

	genlmsg_put(msg, 0, 0, 99, 0, 0, FABREX_CMD_COUNTERS_GET, 1);
	nla_put_u32(msg, FABREX_A_COUNTERS_ID, 5);
	for (i = 0; i < NCOUNTERS; i++)
		nla_put_u64(msg, FABREX_A_COUNTERS_TX_BYTES + i, 100 + i);
	genlmsg_parse(nlmsg_hdr(msg), 0, tb, FABREX_A_COUNTERS_MAX, NULL);
	parse_counters(tb, &c);
	for (i = 0; i < NCOUNTERS; i++)
		good += c.v[i] == 100ull + i;
	ok(c.id == 5 && good == NCOUNTERS, "all counters in order");
	ok(FABREX_A_COUNTERS_PAD == FABREX_A_COUNTERS_TX_BYTES + NCOUNTERS &&
	   FABREX_A_COUNTERS_MAX == FABREX_A_COUNTERS_PAD,
	   "and the family has no more");
	nlmsg_free(msg);
}

static void events(void)
{
	struct nlattr *tb[FABREX_A_EVENT_MAX + 1];
	struct nl_msg *msg = nlmsg_alloc();
	struct event ev;

	genlmsg_put(msg, 0, 0, 99, 0, 0, FABREX_CMD_EVENT, 1);
	nla_put_u32(msg, FABREX_A_EVENT_TYPE, FABREX_EVENT_TYPE_ENDPOINT);
	nla_put_u32(msg, FABREX_A_EVENT_STATE, 0);
	nla_put_flag(msg, FABREX_A_EVENT_SURPRISE);
	nla_put_string(msg, FABREX_A_EVENT_PORT_NAME, "a.0");
	genlmsg_parse(nlmsg_hdr(msg), 0, tb, FABREX_A_EVENT_MAX, NULL);
	parse_event(tb, &ev);
	ok(ev.has_state && !ev.state && ev.surprise &&
	   !strcmp(ev.port_name, "a.0"), "an event");
	nlmsg_free(msg);
}

int main(void)
{
	objects();
	types();
	appliances();
	counters();
	links();
	fports();
	events();
	return tap_done();
}
