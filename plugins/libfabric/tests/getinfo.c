// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fi_getinfo() of the library that is installed, with the provider that it loads:
 * what is offered, what hints leave of it, and what is refused, by which name.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine.h"
#include "support.h"

#define MR_BASIC	1	/* FI_MR_BASIC, FI_MR_SCALABLE: newer headers warn */
#define MR_SCALABLE	2
#define ORDER_STRICT	0x1ff

static struct fi_info *info;

static int get(uint32_t version, const char *node, const char *service,
	       uint64_t flags, const struct fi_info *hints)
{
	info = NULL;
	return fi_getinfo(version, node, service, flags, hints, &info);
}

/* Just this provider's, whatever else is installed. */
static void only_fabrex(void)
{
	setenv("FI_PROVIDER", "fabrex", 1);
}

TEST(offer_is_whole)
{
	const char *fabric = own_fabric();
	struct fi_info *copy;

	only_fabrex();
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), 0);
	CHECK(!info->next);
	CHECK(!strcmp(info->fabric_attr->name, fabric));
	CHECK(!strcmp(info->domain_attr->name, getenv("FABREX_PORT")));
	CHECK(!strcmp(info->fabric_attr->prov_name, "fabrex"));
	CHECK_EQ(info->fabric_attr->api_version, VERSION);
	CHECK_EQ(info->addr_format, FI_ADDR_STR);
	CHECK(info->src_addr && info->src_addrlen == 32 && !info->dest_addr);
	CHECK_EQ(info->ep_attr->type, FI_EP_RDM);
	CHECK_EQ(info->mode, 0);
	CHECK(!(info->domain_attr->mr_mode & (FI_MR_LOCAL | FI_MR_ENDPOINT |
					      FI_MR_VIRT_ADDR)));
	CHECK_EQ(info->domain_attr->cq_data_size, 4);
	CHECK_EQ(info->domain_attr->mr_key_size, 8);
	CHECK_EQ(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	CHECK(info->tx_attr->inject_size > 2048);
	CHECK_EQ(info->tx_attr->caps & ~info->caps, 0);
	CHECK_EQ(info->rx_attr->caps & ~info->caps, 0);
	copy = fi_dupinfo(info);
	CHECK(copy && !strcmp(copy->src_addr, info->src_addr));
	fi_freeinfo(copy);
	fi_freeinfo(info);
}

/* What was given is taken again, as programs do. */
TEST(offer_can_be_hints)
{
	struct fi_info *first;

	own_fabric();
	only_fabrex();
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), 0);
	first = info;
	CHECK_EQ(get(VERSION, NULL, NULL, 0, first), 0);
	CHECK_EQ(info->caps, first->caps);
	CHECK_EQ(info->domain_attr->mr_mode, first->domain_attr->mr_mode);
	fi_freeinfo(info);
	fi_freeinfo(first);
}

/* Nothing is there, and nobody is told who did not ask. */
TEST(no_fabric_is_quiet)
{
	struct machine machine;

	machine_new(&machine);
	machine_remove(&machine, "sys/class/fabrex/fabrex0/name");
	setenv("FABREX_ROOT", "/nonexistent", 1);
	unsetenv("FABREX_PORT");
	only_fabrex();
	log_catch();
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), -FI_ENODATA);
	CHECK(log_says("<info>", "no fabric port"));
	setenv("FABREX_PORT", "no-such-port", 1);
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), -FI_ENODATA);
	CHECK(log_says("FABREX_PORT=no-such-port", "no such port"));
	setenv("FABREX_PORT", "loopback:not a name", 1);
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), -FI_ENODATA);
	CHECK(log_says("<warn>", "loopback:not a name"));
	machine_free(&machine);
}

/* ---- refusals ---------------------------------------------------------- */

static void multicast(struct fi_info *h) { h->caps = FI_MSG | FI_MULTICAST; }
static void rma_event(struct fi_info *h) { h->caps = FI_RMA | FI_RMA_EVENT; }
static void sockaddr(struct fi_info *h) { h->addr_format = FI_SOCKADDR_IN; }
static void tx_caps(struct fi_info *h) { h->tx_attr->caps = FI_COLLECTIVE; }
static void tx_flags(struct fi_info *h)
{
	h->tx_attr->op_flags = FI_COMMIT_COMPLETE;
}
static void tx_order(struct fi_info *h)
{
	h->tx_attr->msg_order = ORDER_STRICT;
}
static void tx_comp(struct fi_info *h) { h->tx_attr->comp_order = ORDER_STRICT; }
static void tx_inject(struct fi_info *h) { h->tx_attr->inject_size = 1 << 20; }
static void tx_size(struct fi_info *h) { h->tx_attr->size = SIZE_MAX; }
static void tx_iov(struct fi_info *h) { h->tx_attr->iov_limit = 17; }
static void tx_rma_iov(struct fi_info *h) { h->tx_attr->rma_iov_limit = 17; }
static void rx_caps(struct fi_info *h) { h->rx_attr->caps = FI_COLLECTIVE; }
static void rx_flags(struct fi_info *h) { h->rx_attr->op_flags = FI_INJECT; }
static void rx_order(struct fi_info *h)
{
	h->rx_attr->msg_order = ORDER_STRICT;
}
static void rx_size(struct fi_info *h) { h->rx_attr->size = SIZE_MAX; }
static void rx_iov(struct fi_info *h) { h->rx_attr->iov_limit = 17; }
static void ep_msg(struct fi_info *h) { h->ep_attr->type = FI_EP_MSG; }
static void ep_dgram(struct fi_info *h) { h->ep_attr->type = FI_EP_DGRAM; }
static void ep_proto(struct fi_info *h) { h->ep_attr->protocol = FI_PROTO_EFA; }
static void ep_version(struct fi_info *h) { h->ep_attr->protocol_version = 9; }
static void ep_size(struct fi_info *h) { h->ep_attr->max_msg_size = SIZE_MAX; }
static void ep_prefix(struct fi_info *h) { h->ep_attr->msg_prefix_size = 8; }
static void ep_waw(struct fi_info *h) { h->ep_attr->max_order_waw_size = SIZE_MAX; }
static void ep_shared(struct fi_info *h)
{
	h->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
}
static void ep_rx_ctx(struct fi_info *h) { h->ep_attr->rx_ctx_cnt = 2; }
static void ep_auth(struct fi_info *h) { h->ep_attr->auth_key_size = 8; }
static void no_domain(struct fi_info *h)
{
	h->domain_attr->name = strdup("no-such-domain");
}
static void threads(struct fi_info *h)
{
	h->domain_attr->threading = (enum fi_threading)99;
}
static void data_auto(struct fi_info *h)
{
	h->domain_attr->data_progress = FI_PROGRESS_AUTO;
}
static void control(struct fi_info *h)
{
	h->domain_attr->control_progress = (enum fi_progress)99;
}
static void management(struct fi_info *h)
{
	h->domain_attr->resource_mgmt = (enum fi_resource_mgmt)99;
}
static void av_type(struct fi_info *h)
{
	h->domain_attr->av_type = (enum fi_av_type)99;
}
static void mr_none(struct fi_info *h)
{
	h->caps = FI_RMA;
	h->domain_attr->mr_mode = 0;
}
static void mr_scalable(struct fi_info *h)
{
	h->caps = FI_ATOMIC;
	h->domain_attr->mr_mode = MR_SCALABLE;
}
static void mr_mixed(struct fi_info *h)
{
	h->domain_attr->mr_mode = MR_BASIC | FI_MR_PROV_KEY;
}
static void key_size(struct fi_info *h) { h->domain_attr->mr_key_size = 16; }
static void cq_data(struct fi_info *h) { h->domain_attr->cq_data_size = 8; }
static void stx(struct fi_info *h) { h->domain_attr->max_ep_stx_ctx = 1; }
static void srx(struct fi_info *h) { h->domain_attr->max_ep_srx_ctx = 1; }
static void mr_iov(struct fi_info *h) { h->domain_attr->mr_iov_limit = 2; }
static void shared_av(struct fi_info *h) { h->domain_attr->caps = FI_SHARED_AV; }
static void domain_auth(struct fi_info *h) { h->domain_attr->auth_key_size = 8; }
static void fabric(struct fi_info *h)
{
	h->fabric_attr->name = strdup("another");
}

static const struct {
	void (*change)(struct fi_info *hints);
	const char *field;
} refusals[] = {
	{ multicast, "caps" }, { rma_event, "caps" },
	{ sockaddr, "addr_format" },
	{ tx_caps, "tx_attr->caps" }, { tx_flags, "tx_attr->op_flags" },
	{ tx_order, "tx_attr->msg_order" }, { tx_comp, "tx_attr->comp_order" },
	{ tx_inject, "tx_attr->inject_size" }, { tx_size, "tx_attr->size" },
	{ tx_iov, "tx_attr->iov_limit" },
	{ tx_rma_iov, "tx_attr->rma_iov_limit" },
	{ rx_caps, "rx_attr->caps" }, { rx_flags, "rx_attr->op_flags" },
	{ rx_order, "rx_attr->msg_order" }, { rx_size, "rx_attr->size" },
	{ rx_iov, "rx_attr->iov_limit" },
	{ ep_msg, "ep_attr->type" }, { ep_dgram, "ep_attr->type" },
	{ ep_proto, "ep_attr->protocol" },
	{ ep_version, "ep_attr->protocol_version" },
	{ ep_size, "ep_attr->max_msg_size" },
	{ ep_prefix, "ep_attr->msg_prefix_size" },
	{ ep_waw, "ep_attr->max_order_waw_size" },
	{ ep_shared, "ep_attr->tx_ctx_cnt" },
	{ ep_rx_ctx, "ep_attr->rx_ctx_cnt" },
	{ ep_auth, "ep_attr->auth_key_size" },
	{ no_domain, "domain_attr->name" },
	{ threads, "domain_attr->threading" },
	{ data_auto, "domain_attr->data_progress" },
	{ control, "domain_attr->control_progress" },
	{ management, "domain_attr->resource_mgmt" },
	{ av_type, "domain_attr->av_type" },
	{ mr_none, "domain_attr->mr_mode" },
	{ mr_scalable, "domain_attr->mr_mode" },
	{ mr_mixed, "domain_attr->mr_mode" },
	{ key_size, "domain_attr->mr_key_size" },
	{ cq_data, "domain_attr->cq_data_size" },
	{ stx, "domain_attr->max_ep_stx_ctx" },
	{ srx, "domain_attr->max_ep_srx_ctx" },
	{ mr_iov, "domain_attr->mr_iov_limit" },
	{ shared_av, "domain_attr->caps" },
	{ domain_auth, "domain_attr->auth_key_size" },
	{ fabric, "fabric_attr->name" },
};

TEST(refusals_name_the_field)
{
	struct fi_info *hints;
	size_t i;

	own_fabric();
	log_catch();
	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		hints = hints_new();
		CHECK_EQ(get(VERSION, NULL, NULL, 0, hints), 0);
		fi_freeinfo(info);
		log_says("", "");
		refusals[i].change(hints);
		test_note("%s", refusals[i].field);
		CHECK_EQ(get(VERSION, NULL, NULL, 0, hints), -FI_ENODATA);
		CHECK(!info);
		CHECK(log_says(refusals[i].field, "is asked for"));
		/* Keys of this size are nobody's to free. */
		hints->ep_attr->auth_key_size = 0;
		hints->domain_attr->auth_key_size = 0;
		fi_freeinfo(hints);
	}
}

/* ---- what hints leave -------------------------------------------------- */

static uint64_t caps_of(uint64_t caps)
{
	struct fi_info *hints = hints_new();
	uint64_t given;

	hints->caps = caps;
	CHECK_EQ(get(VERSION, NULL, NULL, 0, hints), 0);
	given = info->caps;
	CHECK_EQ(given & caps, caps);
	CHECK_EQ(info->tx_attr->caps & ~given, 0);
	CHECK_EQ(info->rx_attr->caps & ~given, 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return given;
}

TEST(caps_are_as_asked)
{
	const uint64_t main_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC |
				   FI_HMEM | FI_DIRECTED_RECV;
	const uint64_t directions = FI_SEND | FI_RECV | FI_READ | FI_WRITE |
				    FI_REMOTE_READ | FI_REMOTE_WRITE;

	own_fabric();
	CHECK_EQ(caps_of(FI_TAGGED) & main_caps, FI_TAGGED);
	CHECK_EQ(caps_of(FI_TAGGED) & directions, FI_SEND | FI_RECV);
	CHECK_EQ(caps_of(FI_MSG | FI_SEND) & directions, FI_SEND);
	CHECK_EQ(caps_of(FI_RMA) & directions,
		 FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE);
	CHECK_EQ(caps_of(FI_RMA | FI_READ) & directions, FI_READ);
	CHECK_EQ(caps_of(FI_MSG | FI_HMEM) & main_caps, FI_MSG | FI_HMEM);
	CHECK_EQ(caps_of(0) & main_caps, main_caps);
	caps_of(FI_MSG | FI_SOURCE | FI_MULTI_RECV | FI_DIRECTED_RECV |
		FI_LOCAL_COMM);
}

/* What a program of some version with some mr_mode gets; -1: nothing. */
static int mode_of(uint32_t version, uint64_t caps, int mode)
{
	struct fi_info *hints = hints_new();
	int given = -1;

	hints->caps = caps;
	hints->domain_attr->mr_mode = mode;
	if (!get(version, NULL, NULL, 0, hints)) {
		given = info->domain_attr->mr_mode;
		if (!caps && !mode && version >= FI_VERSION(1, 5))
			CHECK_EQ(info->caps & (FI_RMA | FI_ATOMIC), 0);
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
	return given;
}

TEST(mr_modes_of_all_versions)
{
	const int ours = FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	const int all = ours | FI_MR_VIRT_ADDR | FI_MR_LOCAL | FI_MR_RAW |
			FI_MR_ENDPOINT | FI_MR_HMEM | FI_MR_RMA_EVENT;
	const uint32_t v4 = FI_VERSION(1, 4), v5 = FI_VERSION(1, 5);

	own_fabric();
	CHECK_EQ(mode_of(VERSION, FI_RMA, all), ours);
	CHECK_EQ(mode_of(VERSION, FI_RMA | FI_HMEM, all), ours | FI_MR_HMEM);
	CHECK_EQ(mode_of(VERSION, FI_RMA | FI_HMEM, ours), ours);
	CHECK_EQ(mode_of(VERSION, FI_MSG, all), 0);
	CHECK_EQ(mode_of(VERSION, FI_MSG | FI_HMEM, FI_MR_HMEM), FI_MR_HMEM);
	CHECK_EQ(mode_of(VERSION, FI_RMA | FI_WRITE, 0), 0);
	CHECK_EQ(mode_of(VERSION, FI_RMA, FI_MR_PROV_KEY), -1);
	CHECK_EQ(mode_of(VERSION, FI_RMA, 0), -1);
	CHECK_EQ(mode_of(VERSION, 0, 0), 0);
	CHECK_EQ(mode_of(v5, FI_RMA, all), ours);
	CHECK_EQ(mode_of(v5, FI_RMA, MR_BASIC),
		 FI_MR_PROV_KEY | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR);
	CHECK_EQ(mode_of(v4, FI_RMA, MR_BASIC), MR_BASIC);
	CHECK_EQ(mode_of(v4, FI_RMA, 0), MR_BASIC);
	CHECK_EQ(mode_of(v4, FI_RMA, MR_SCALABLE), -1);
	CHECK_EQ(mode_of(v4, FI_MSG, MR_SCALABLE), MR_SCALABLE);
}

TEST(attributes_follow_hints)
{
	struct fi_info *hints;

	own_fabric();
	hints = hints_new();
	hints->tx_attr->size = 64;
	hints->rx_attr->size = 32;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->av_type = FI_AV_MAP;
	hints->domain_attr->resource_mgmt = FI_RM_DISABLED;
	hints->ep_attr->mem_tag_format = 0xff;
	CHECK_EQ(get(VERSION, NULL, NULL, FI_NUMERICHOST, hints), 0);
	CHECK_EQ(info->tx_attr->size, 64);
	CHECK_EQ(info->rx_attr->size, 32);
	CHECK_EQ(info->tx_attr->op_flags, FI_DELIVERY_COMPLETE);
	CHECK_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN);
	CHECK_EQ(info->domain_attr->control_progress, FI_PROGRESS_AUTO);
	CHECK_EQ(info->domain_attr->av_type, FI_AV_MAP);
	CHECK_EQ(info->domain_attr->resource_mgmt, FI_RM_DISABLED);
	CHECK_EQ(info->ep_attr->mem_tag_format, 0xff);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ---- node and service -------------------------------------------------- */

static bool gets(const char *node, const char *service, uint64_t flags,
		 const char *source, const char *target)
{
	bool ok;

	if (get(VERSION, node, service, flags, NULL))
		return false;
	ok = !strcmp(info->src_addr, source) &&
	     !info->dest_addr == !target &&
	     (!target || !strcmp(info->dest_addr, target));
	if (!ok)
		printf("# source %s, target %s\n", (char *)info->src_addr,
		       info->dest_addr ? (char *)info->dest_addr : "-");
	fi_freeinfo(info);
	return ok;
}

TEST(node_and_service)
{
	static char whole[] = "fi_fabrex://b.0:77:0000abcd";
	char host[64] = "", expected[96];
	struct fabrex_port *other, *own;
	struct fi_info *hints;

	own_fabric();
	only_fabrex();
	gethostname(host, sizeof(host) - 1);
	snprintf(expected, sizeof(expected), "fi_fabrex://%s:16", host);
	CHECK(gets(NULL, "5000", FI_SOURCE, "fi_fabrex://:5000", NULL));
	CHECK(gets("localhost", "5000", FI_SOURCE, "fi_fabrex://:5000", NULL));
	CHECK(gets("127.0.0.1", NULL, FI_SOURCE, "fi_fabrex://:0", NULL));
	CHECK(gets("localhost", "5000", 0, "fi_fabrex://:0",
		   "fi_fabrex://localhost:5000"));
	CHECK(gets(host, "0x10", 0, "fi_fabrex://:0", expected));
	CHECK(gets("7", NULL, 0, "fi_fabrex://:0", "fi_fabrex://7:0"));
	CHECK(!gets("b.0", "0x10", 0, "", NULL));
	CHECK(gets(NULL, "18446744073709551615", 0, "fi_fabrex://:0",
		   "fi_fabrex://:0xffffffffffffffff"));
	CHECK(gets(whole, NULL, 0, "fi_fabrex://:0", whole));
	CHECK(gets("fi_fabrex://:77:1", NULL, FI_SOURCE, "fi_fabrex://:77",
		   NULL));
	CHECK(!gets("c.0", NULL, FI_SOURCE, "", NULL));
	CHECK(!gets(whole, "77", 0, "", NULL));
	CHECK(!gets(NULL, NULL, FI_SOURCE, "", NULL));
	CHECK(!gets(NULL, "http", 0, "", NULL));
	CHECK(!gets("fi_shm://x", NULL, 0, "", NULL));
	CHECK(!gets(NULL, "18446744073709551616", 0, "", NULL));
	/* A port that has joined is known by its name. */
	setenv("FABREX_PORT", "loopback:nodes/me", 1);
	CHECK(!gets("x", "1", 0, "", NULL));
	CHECK_EQ(fabrex_open("loopback:nodes/me", &own), 0);
	CHECK_EQ(fabrex_open("loopback:nodes/x", &other), 0);
	CHECK(gets("x", "1", 0, "fi_fabrex://me:0", "fi_fabrex://x:1"));
	CHECK(gets("me", "1", FI_SOURCE, "fi_fabrex://me:1", NULL));
	CHECK(gets(host, "1", FI_SOURCE, "fi_fabrex://me:1", NULL));
	/* Addresses in hints; the arguments come first. */
	hints = hints_new();
	hints->dest_addr = strdup(whole);
	hints->dest_addrlen = strlen(whole) + 1;
	CHECK_EQ(get(VERSION, NULL, NULL, 0, hints), 0);
	CHECK(info->dest_addr && !strcmp(info->dest_addr, whole));
	fi_freeinfo(info);
	CHECK_EQ(get(VERSION, "x", "9", 0, hints), 0);
	CHECK(!strcmp(info->dest_addr, "fi_fabrex://x:9"));
	fi_freeinfo(info);
	fabrex_close(other);
	fabrex_close(own);
	hints->dest_addrlen = 3;
	CHECK_EQ(get(VERSION, NULL, NULL, 0, hints), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* ---- ports of the kernel, on a machine made of files -------------------- */

static void port(struct machine *m, int n, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/class/fabrex/fabrex%d/%s", n, file);
	machine_text(m, path, text);
}

static void machine_with_ports(struct machine *m)
{
	static const char *const attrs[][2] = {
		{ "host", "a\n" }, { "fabric", "rack\n" },
		{ "driver_name", "fabrex_draco\n" }, { "link", "up\n" },
		{ "alive", "1\n" }, { "limits/max_queues", "64\n" },
		{ "limits/max_mrs", "1024\n" },
		{ "limits/max_transfer", "1048576\n" },
	};
	size_t i;
	int n;

	machine_new(m);
	machine_device(m, "pci0000:00/0000:00:06.0/0000:10:00.0/0000:11:00.0",
		       "0000:12:01.0", 0x1234da00, 0);
	machine_link(m, "sys/class/fabrex/fabrex1/device",
		     "../../../bus/pci/devices/0000:12:01.0");
	port(m, 0, "name", "a.0\n");
	port(m, 1, "name", "a.1\n");
	for (n = 0; n < 2; n++)
		for (i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
			port(m, n, attrs[i][0], attrs[i][1]);
	machine_text(m, "dev/fabrex0", "");
	machine_text(m, "dev/fabrex1", "");
	setenv("FABREX_ROOT", m->root, 1);
	unsetenv("FABREX_PORT");
}

TEST(one_info_for_each_port)
{
	struct fi_info *copy, *hints;
	struct fi_pci_attr *pci;
	struct machine m;
	char *text;

	machine_with_ports(&m);
	only_fabrex();
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), 0);
	CHECK(info->next && !info->next->next);
	CHECK(!strcmp(info->domain_attr->name, "a.0"));
	CHECK(!strcmp(info->next->domain_attr->name, "a.1"));
	CHECK(!strcmp(info->fabric_attr->name, "rack"));
	CHECK(!strcmp(info->src_addr, "fi_fabrex://a.0:0"));
	CHECK_EQ(info->domain_attr->ep_cnt, 64);
	copy = fi_dupinfo(info->next);
	fi_freeinfo(info);
	CHECK(copy && copy->nic);
	pci = &copy->nic->bus_attr->attr.pci;
	CHECK_EQ(copy->nic->bus_attr->bus_type, FI_BUS_PCI);
	CHECK(!pci->domain_id && pci->bus_id == 0x12 && pci->device_id == 1 &&
	      !pci->function_id);
	CHECK(!strcmp(copy->nic->device_attr->name, "fabrex1"));
	CHECK(!strcmp(copy->nic->device_attr->driver, "fabrex_draco"));
	CHECK(!strcmp(copy->nic->link_attr->address, "a.1"));
	CHECK_EQ(copy->nic->link_attr->state, FI_LINK_UP);
	CHECK_EQ(copy->nic->link_attr->mtu, 1048576);
	text = fi_tostr(copy, FI_TYPE_INFO);
	CHECK(text && strstr(text, "0000:12:01.0") && strstr(text, "fabrex1"));
	/* By its name, as a device, and as what is to be reached. */
	hints = hints_new();
	hints->domain_attr->name = strdup("fabrex1");
	CHECK_EQ(get(VERSION, NULL, NULL, 0, hints), 0);
	CHECK(!info->next && !strcmp(info->src_addr, "fi_fabrex://a.1:0"));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	CHECK_EQ(get(VERSION, "a.1", "99", FI_SOURCE, NULL), 0);
	CHECK(!info->next && !strcmp(info->src_addr, "fi_fabrex://a.1:99"));
	fi_freeinfo(info);
	fi_freeinfo(copy);
	machine_free(&m);
}

TEST(ports_that_cannot_be_used)
{
	struct machine m;

	machine_with_ports(&m);
	only_fabrex();
	log_catch();
	setenv("FABREX_PORT", "/dev/fabrex1", 1);
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), 0);
	CHECK(!info->next && !strcmp(info->domain_attr->name, "a.1"));
	fi_freeinfo(info);
	unsetenv("FABREX_PORT");
	port(&m, 0, "link", "down\n");
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), 0);
	CHECK(!info->next && !strcmp(info->domain_attr->name, "a.1"));
	fi_freeinfo(info);
	CHECK(log_says("port a.0", "link"));
	port(&m, 1, "alive", "0\n");
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), -FI_ENODATA);
	CHECK(log_says("port a.1", "reset"));
	port(&m, 0, "link", "up\n");
	machine_remove(&m, "dev/fabrex0");
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), -FI_ENODATA);
	CHECK(log_says("port a.0", "may not open"));
	machine_free(&m);
}

TEST(settings_are_checked)
{
	own_fabric();
	only_fabrex();
	log_catch();
	setenv("FI_FABREX_CELL_SIZE", "1K", 1);
	setenv("FI_FABREX_TX_SIZE", "100", 1);
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), 0);
	CHECK_EQ(info->tx_attr->inject_size, 1024 - 32);
	CHECK_EQ(info->tx_attr->size, 100);
	fi_freeinfo(info);
}

TEST(bad_settings_are_named)
{
	own_fabric();
	only_fabrex();
	log_catch();
	setenv("FI_FABREX_CELLS", "1000", 1);
	setenv("FI_FABREX_RENDEZVOUS", "magic", 1);
	CHECK_EQ(get(VERSION, NULL, NULL, 0, NULL), -FI_ENODATA);
	CHECK(log_says("FI_FABREX_CELLS=1000", "a power of two from 64"));
}
