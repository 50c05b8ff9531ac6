// SPDX-License-Identifier: GPL-2.0-only
/*
 * The live fabric as a graph: the small fabric, on a machine made of files
 * where slot 2 of a.0 is 0000:04:00.0 and slot 3 0000:05:00.0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../lib/tests/machine.h"
#include "fake.h"
#include "graph.h"
#include "hardware.h"
#include "live.h"
#include "run_line.h"
#include "topology/topology.h"

#define MESH "fabric = \"f\"; link_gbps = 20.0;\n" \
	"switches = ( { name = \"draco1\"; } );\n" \
	"hosts = ( { name = \"a\"; ports = ( \"draco1:1\" ); p2p_root = false; } );\n" \
	"appliances = ( { name = \"columba1\"; kind = \"cascade\";\n" \
	"  uplinks = ( \"draco1:4\", \"draco1:5\" );\n" \
	"  endpoints = ( { class = \"gpu\"; count = 8; } );\n" \
	"  mesh = { kind = \"xgmi\"; gbps = 48.0; }; } );\n"

static struct machine machine;

/* One device with what the kernel says of its link and of itself. */
static void device(const char *name, const char *speed, const char *width)
{
	static const char *const ids[][2] = {
		{ "class", "0x120000\n" }, { "vendor", "0x1002\n" },
		{ "device", "0x74a1\n" }, { "subsystem_vendor", "0x1002\n" },
		{ "subsystem_device", "0x74a2\n" }, { "numa_node", "-1\n" },
	};
	size_t i;

	for (i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		machine_text(&machine, machine_at(&machine, name, ids[i][0]),
			     ids[i][1]);
	machine_text(&machine, machine_at(&machine, name, "max_link_speed"),
		     speed);
	machine_text(&machine, machine_at(&machine, name, "current_link_speed"),
		     speed);
	machine_text(&machine, machine_at(&machine, name, "max_link_width"),
		     width);
	machine_text(&machine, machine_at(&machine, name, "current_link_width"),
		     width);
}

static void bridge(const char *name)
{
	device(name, "16.0 GT/s PCIe\n", "16\n");
	machine_text(&machine, machine_at(&machine, name, "class"),
		     "0x060400\n");
}

static struct fake *start(void)
{
	struct fake *f = fabric_small();
	size_t i;

	for (i = 0; i < f->m->n; i++)
		if (f->m->objects[i]->type == T_ENDPOINT)
			f->m->objects[i]->pci_vendor = 0x1002;
	machine_new(&machine);
	setenv("FABREX_ROOT", machine.root, 1);
	f->pci_domain = 0;
	f->pci_bus = 2;
	device("0000:04:00.0", "32.0 GT/s PCIe\n", "16\n");
	device("0000:05:00.0", "16.0 GT/s PCIe\n", "16\n");
	bridge("0000:02:01.0");
	bridge("0000:02:02.0");
	bridge("0000:01:00.0");
	machine_text(&machine, "sys/devices/system/node/node0/cpumap",
		     "ffffffff,ffffffff\n");
	return f;
}

static void finish(struct fake *f)
{
	machine_free(&machine);
	fake_free(f);
}

static struct object *object(struct fake *f, const char *name)
{
	return model_find(f->m, name, T_ANY);
}

/* A graph, or what was said instead. */
struct live_run {
	struct fabrex_plan_graph *g;
	int r;
	struct err err;
};

static struct live_run run(struct fake *f, const char *host,
			   const char *devices, const char *file)
{
	const struct fabrex_plan_select select = { host, devices, { 0 } };
	struct ctl c = { .be = &f->b };
	struct live_run out = { .g = NULL };

	out.r = live_graph(&c, &select, file, &out.g);
	out.err = c.err;
	model_free(c.model);
	return out;
}

static void end(struct live_run *r)
{
	fabrex_plan_graph_free(r->g);
	*r = (struct live_run){ .g = NULL };
}

static bool is(const struct fabrex_plan_graph *g, const char *node, const char *key,
	       const char *value)
{
	uint32_t n = g ? fabrex_plan_node_find(g, node) : FABREX_PLAN_NONE;
	const char *got = n == FABREX_PLAN_NONE ? NULL : fabrex_plan_node_get(g, n, key);

	if (!got || strcmp(got, value))
		printf("# %s %s: %s\n", node, key, got ? got : "nothing");
	return got && !strcmp(got, value);
}

static bool warns(const struct fabrex_plan_graph *g, const char *part)
{
	uint32_t i;

	for (i = 0; g && i < graph_attr(g).warnings; i++)
		if (strstr(fabrex_plan_graph_warning(g, i), part))
			return true;
	for (i = 0; g && i < graph_attr(g).warnings; i++)
		printf("# warning: %s\n", fabrex_plan_graph_warning(g, i));
	return false;
}

static uint64_t capacity(const struct fabrex_plan_graph *g, const char *from,
			 const char *to)
{
	uint32_t a = fabrex_plan_node_find(g, from), b = fabrex_plan_node_find(g, to), i;

	for (i = 0; i < graph_attr(g).edges; i++) {
		const struct fabrex_plan_edge e = graph_edge(g, i);

		if (e.from == a && e.to == b)
			return e.capacity;
	}
	return 0;
}

static void composed(void)
{
	struct fake *f = start();
	struct live_run r;

	fake_bind(f, "columba1.gpu4", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	r = run(f, "a", NULL, NULL);
	ok(!r.r && r.g && graph_attr(r.g).ranks == 2, "two GPUs are two ranks %s",
	   r.err.message);
	ok(is(r.g, "columba1.gpu4", "pci.busid", "0000:04:00.0") &&
	   is(r.g, "columba1.gpu1", "pci.busid", "0000:05:00.0"),
	   "with their addresses");
	ok(graph_rank(r.g, 0).name[12] == '4',
	   "ranks are in the order of addresses");
	ok(is(r.g, "columba1.gpu1", "pci.class", "0x120000") &&
	   is(r.g, "columba1.gpu1", "pci.vendor", "0x1002") &&
	   is(r.g, "columba1.gpu1", "pci.device", "0x74a1") &&
	   is(r.g, "columba1.gpu1", "pci.subsystem_vendor", "0x1002") &&
	   is(r.g, "columba1.gpu1", "pci.subsystem_device", "0x74a2"),
	   "with their identities");
	ok(is(r.g, "columba1.gpu4", "pci.link_speed", "16.0 GT/s PCIe") &&
	   is(r.g, "columba1.gpu4", "pci.link_width", "16"),
	   "a Gen5 GPU in a Gen4 slot has a Gen4 link");
	ok(is(r.g, "columba1.gpu4", "sysfs.max_link_speed", "32.0 GT/s PCIe"),
	   "what the file says is kept");
	ok(is(r.g, "draco1:1", "pci.busid", "0000:01:00.0"),
	   "the partition is the switch that the kernel sees");
	ok(!fabrex_plan_node_get(r.g, fabrex_plan_node_find(r.g, "columba1:up0"),
			  "pci.busid"), "the box's switch it does not see");
	ok(is(r.g, "a", "cpu.numaid", "0") &&
	   is(r.g, "a", "cpu.affinity", "ffffffff,ffffffff") &&
	   is(r.g, "a", "cpu.vendor", "GenuineIntel") &&
	   is(r.g, "a", "cpu.familyid", "6") &&
	   is(r.g, "a", "cpu.modelid", "1"), "and there is the CPU");
	ok(warns(r.g, "nothing here says which links join the GPUs inside columba1"),
	   "a mesh that is not known is told");
	ok(!fabrex_plan_graph_check(r.g), "it can be planned for");
	end(&r);
	r = run(f, "a", "1", NULL);
	ok(r.g && graph_attr(r.g).ranks == 1 &&
	   !strcmp(graph_rank(r.g, 0).name, "columba1.gpu1"),
	   "devices count in the order of addresses");
	end(&r);
	object(f, "columba1.gpu4")->bound = 0;
	r = run(f, NULL, NULL, NULL);
	ok(r.g && graph_attr(r.g).ranks == 1, "released, it is gone");
	end(&r);
	finish(f);
}

static void slots_that_lie(void)
{
	struct fake *f = start();
	struct live_run r;

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	device("0000:02:01.0", "5.0 GT/s PCIe\n", "16\n");
	device("0000:05:00.0", "8.0 GT/s PCIe\n", "4\n");
	r = run(f, "a", NULL, NULL);
	ok(is(r.g, "columba1.gpu0", "pci.link_speed", "16.0 GT/s PCIe"),
	   "the fabric knows its links");
	ok(warns(r.g, "columba1.gpu0 (0000:04:00.0): its slot reports a link of 5.0 GT/s PCIe x16, the fabric runs it at 16.0 GT/s PCIe x16"),
	   "and what the slot says is told");
	ok(is(r.g, "columba1.gpu1", "pci.link_speed", "8.0 GT/s PCIe") &&
	   is(r.g, "columba1.gpu1", "pci.link_width", "4"),
	   "what the device itself says holds");
	end(&r);
	device("0000:02:01.0", "Unknown\n", "255\n");
	device("0000:04:00.0", "Unknown\n", "255\n");
	r = run(f, "a", NULL, NULL);
	ok(is(r.g, "columba1.gpu0", "pci.link_speed", "16.0 GT/s PCIe") &&
	   is(r.g, "columba1.gpu0", "pci.link_width", "16"),
	   "so it does where the kernel knows nothing");
	ok(warns(r.g, "reports a link of no speed x0"), "which is told");
	end(&r);
	device("0000:01:00.0", "2.5 GT/s PCIe\n", "1\n");
	r = run(f, "a", NULL, NULL);
	ok(is(r.g, "draco1:1", "pci.link_speed", "16.0 GT/s PCIe") &&
	   is(r.g, "draco1:1", "pci.link_width", "16") &&
	   is(r.g, "draco1:1", "sysfs.max_link_speed", "2.5 GT/s PCIe"),
	   "a switch's port lies as well");
	ok(warns(r.g, "draco1:1 (0000:01:00.0): its port reports a link of 2.5 GT/s PCIe x1, the fabric runs it at 16.0 GT/s PCIe x16"),
	   "it is told, too");
	end(&r);
	finish(f);
}

static void nothing(void)
{
	struct fake *f = start();
	struct live_run r = run(f, "a", NULL, NULL);

	ok(r.r == -ENODEV && r.err.code == ENODEV, "nothing is composed");
	has(r.err.message, "no GPU is composed to host a");
	has(r.err.message, "fabrexctl compose gpu:2 --to a");
	r = run(f, NULL, NULL, NULL);
	ok(r.r == -ENODEV, "to nobody");
	has(r.err.message, "to any host");
	fake_bind(f, "columba1.gpu0", "a.0");
	r = run(f, "b", NULL, NULL);
	has(r.err.message, "no GPU is composed to host b");
	r = run(f, "x", NULL, NULL);
	ok(r.r == -ENOENT, "there is no such host");
	f->no_device = true;
	r = run(f, "a", NULL, NULL);
	has(r.err.message, "kernel has no PCI device for it; left out, see dmesg about pciehp and slot 2");
	f->no_device = false;
	f->no_module = 1;
	r = run(f, "a", NULL, NULL);
	ok(r.r == -ENOENT && !r.g, "no module, no hosts");
	has(r.err.message, "there is only this machine");
	finish(f);
}

/* Not in sysfs, another host's, or behind something that is down. */
static void left_out(void)
{
	struct fake *f = start();
	struct live_run r;

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	fake_bind(f, "columba1.gpu2", "a.0");	/* 06:00.0 is not there */
	fake_bind(f, "columba1.gpu3", "b.0");
	fake_bind(f, "columba1.gpu4", "b.0");
	r = run(f, "a", NULL, NULL);
	ok(r.g && graph_attr(r.g).ranks == 2 &&
	   warns(r.g, "columba1.gpu2 is bound to a.0, but this host's kernel has no PCI device"),
	   "without a device, no rank");
	end(&r);
	r = run(f, NULL, NULL, NULL);
	ok(r.g && graph_attr(r.g).ranks == 4, "all hosts' GPUs");
	ok(!fabrex_plan_node_get(r.g, fabrex_plan_node_find(r.g, "columba1.gpu3"),
			  "pci.busid"), "of others no address is known");
	end(&r);
	object(f, "columba1.gpu3")->state = FABREX_ENDPOINT_STATE_ATTACHING;
	object(f, "draco1:5")->state = FABREX_LINK_STATE_DOWN;
	r = run(f, NULL, NULL, NULL);
	ok(r.g && graph_attr(r.g).ranks == 2 &&
	   warns(r.g, "columba1.gpu3 is attaching; left out") &&
	   warns(r.g, "columba1.gpu4 sits behind draco1:5, which is down"),
	   "what cannot be reached is left out");
	end(&r);
	object(f, "a.0")->state = FABREX_LINK_STATE_DISABLED;
	r = run(f, "a", NULL, NULL);
	ok(r.r == -ENODEV, "a host port that is disabled");
	has(r.err.message, "bound to a.0, which is disabled");
	finish(f);
}

static void links(void)
{
	struct fake *f = start();
	struct live_run r;

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu4", "a.0");
	object(f, "draco1:5")->speed = 8000;
	object(f, "a.0")->width = 4;
	object(f, "a.0")->speed = 2500;
	r = run(f, "a", NULL, NULL);
	ok(r.g && capacity(r.g, "columba1:up0", "draco1:1") == 27000 &&
	   capacity(r.g, "columba1:up1", "draco1:1") == 13500,
	   "an uplink that runs at half its speed carries half");
	ok(r.g && capacity(r.g, "draco1:1", "a.0") == 857,
	   "Gen1 x4 to the host");
	end(&r);
	/* Over the link between the switches, and without it. */
	fake_bind(f, "columba2.gpu0", "a.0");
	machine_device(&machine, "pci0000:00/0000:00:05.0/0000:01:00.0/0000:02:03.0",
		       "0000:06:00.0", 0x1234da10, 0);
	r = run(f, "a", NULL, NULL);
	ok(r.g && graph_attr(r.g).ranks == 3 &&
	   capacity(r.g, "draco1:1:draco2", "draco1:1") == 27000,
	   "over a link between switches");
	end(&r);
	object(f, "draco2:6")->state = FABREX_LINK_STATE_DOWN;
	r = run(f, "a", NULL, NULL);
	ok(r.g && graph_attr(r.g).ranks == 2 &&
	   warns(r.g, "the link draco1:6 - draco2:6 is down") &&
	   warns(r.g, "no link that is up leads from columba2.gpu0 to a.0"),
	   "not over one that is down");
	end(&r);
	finish(f);
}

static void mesh_of_file(void)
{
	struct fake *f = start();
	struct live_run r;
	char path[128];

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	machine_text(&machine, "mesh.topo", MESH);
	snprintf(path, sizeof(path), "%s/mesh.topo", machine.root);
	r = run(f, "a", NULL, path);
	ok(r.g && capacity(r.g, "columba1.gpu0", "columba1.gpu1") == 48000,
	   "the file's mesh");
	ok(r.g && capacity(r.g, "columba1:up0", "draco1:1") == 20000,
	   "and its capacities");
	ok(warns(r.g, "appliance \"columba2\" is not in the topology file"),
	   "what it does not have is told");
	ok(r.g && graph_attr(r.g).ranks == 2, "nothing else changes");
	end(&r);
	machine_text(&machine, "mesh.topo", "fabric = 5;");
	r = run(f, "a", NULL, path);
	ok(r.r == -EINVAL, "a file that is not right");
	has(r.err.message, "mesh.topo:1: \"fabric\" is not a string");
	finish(f);
}

#define NODES "sys/class/kfd/kfd/topology/nodes/"

static void kfd_link(unsigned int from, unsigned int nth, unsigned int to,
		     unsigned int type, unsigned int mbps)
{
	char path[128], text[128];

	snprintf(path, sizeof(path), NODES "%u/io_links/%u/properties", from,
		 nth);
	snprintf(text, sizeof(text), "type %u\nversion_major 0\nnode_from %u\n"
		 "node_to %u\nweight 15\nmin_bandwidth 64000\n"
		 "max_bandwidth %u\n", type, from, to, mbps);
	machine_text(&machine, path, text);
}

static void mesh_of_driver(void)
{
	struct fake *f = start();
	struct live_run r;
	uint32_t i, n = 0;

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	machine_text(&machine, NODES "0/properties", "cpu_cores_count 8\n");
	machine_text(&machine, NODES "1/properties",
		     "gfx_target_version 90402\nlocation_id 1024\ndomain 0\n");
	machine_text(&machine, NODES "2/properties",
		     "gfx_target_version 90010\nlocation_id 1280\ndomain 0\n");
	kfd_link(1, 0, 0, 2, 32000);
	kfd_link(1, 1, 2, 11, 64000);
	kfd_link(2, 0, 1, 11, 64000);
	r = run(f, "a", NULL, NULL);
	ok(r.g && capacity(r.g, "columba1.gpu0", "columba1.gpu1") == 48000 &&
	   capacity(r.g, "columba1.gpu1", "columba1.gpu0") == 48000,
	   "XGMI as the driver publishes it");
	for (i = 0; r.g && i < graph_attr(r.g).edges; i++)
		n += graph_edge(r.g, i).kind == FABREX_PLAN_XGMI;
	ok(n == 2, "links are there once");
	ok(is(r.g, "columba1.gpu0", "gpu.gcn", "gfx942") &&
	   is(r.g, "columba1.gpu1", "gpu.gcn", "gfx90a"), "and which GPU it is");
	end(&r);
	kfd_link(1, 1, 2, 11, 0);
	kfd_link(2, 0, 1, 11, 0);
	r = run(f, "a", NULL, NULL);
	ok(r.g && !capacity(r.g, "columba1.gpu0", "columba1.gpu1") &&
	   warns(r.g, "2 XGMI links without a bandwidth"),
	   "no bandwidth is invented");
	end(&r);
	machine_text(&machine, NODES "1/io_links/1/properties",
		     "type 11\nnode_from 1\nnode_to 99999\nmax_bandwidth x\n");
	machine_text(&machine, NODES "2/io_links/0/properties", "");
	r = run(f, "a", NULL, NULL);
	ok(r.g && !capacity(r.g, "columba1.gpu0", "columba1.gpu1"),
	   "nor from what makes no sense");
	end(&r);
	finish(f);
}

static char *exported(const struct fabrex_plan_graph *g)
{
	size_t length = 0;
	int r;
	char *text = graph_text(g, FABREX_PLAN_RCCL, &length, &r);

	ok(!r, "is exported %s", fabrex_plan_strerror_last());
	ok(!fabrex_plan_nccl_check(text, length, "live"), "and valid %s",
	   fabrex_plan_strerror_last());
	return text;
}

/* A NIC that no switch of ours may be mistaken for is not in the graph. */
static void bus_ids(void)
{
	struct fake *f = start();
	struct live_run r;
	char *text;

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	r = run(f, "a", NULL, NULL);
	text = exported(r.g);
	has(text, "<pci busid=\"0000:01:00.0\"");
	has(text, "<pci busid=\"0000:04:00.0\"");
	has(text, "<pci busid=\"0000:05:00.0\"");
	ok(!strstr(strstr(strstr(strstr(text, "<pci ") + 1, "<pci ") + 1,
			  "<pci ") + 1, "<pci "),
	   "no element has a bus id that the kernel has not");
	free(text);
	end(&r);
	finish(f);
}

/* A GPU of the host's own counts, a display controller does not. */
static void indices(void)
{
	struct fake *f = start();
	struct live_run r;
	char *text;

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	r = run(f, "a", NULL, NULL);
	ok(is(r.g, "columba1.gpu0", "gpu.dev", "0") &&
	   is(r.g, "columba1.gpu1", "gpu.dev", "1"), "the driver's indices");
	end(&r);
	device("0000:03:00.0", "16.0 GT/s PCIe\n", "16\n");
	device("0000:02:00.0", "16.0 GT/s PCIe\n", "16\n");
	machine_text(&machine, machine_at(&machine, "0000:02:00.0", "vendor"),
		     "0x1a03\n");
	device("0000:12:00.0", "16.0 GT/s PCIe\n", "16\n");
	r = run(f, "a", "1", NULL);
	ok(is(r.g, "columba1.gpu1", "gpu.dev", "2") && graph_attr(r.g).ranks == 1,
	   "count all GPUs of the vendor");
	text = exported(r.g);
	has(text, "dev=\"2\"");
	has(text, "rank=\"0\"");
	free(text);
	end(&r);
	finish(f);
}

static void kfd_gpu(unsigned int node, unsigned int bus)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), NODES "%u/properties", node);
	snprintf(text, sizeof(text), "location_id %u\ndomain 0\n", bus << 8);
	machine_text(&machine, path, text);
}

/* The one that was added last has the lower address. */
static void order_of_kfd(void)
{
	struct fake *f = start();
	struct live_run r;

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	kfd_gpu(1, 5);
	kfd_gpu(2, 4);
	r = run(f, "a", NULL, NULL);
	ok(r.g && graph_attr(r.g).ranks == 2 &&
	   !strcmp(graph_rank(r.g, 0).name, "columba1.gpu1") &&
	   is(r.g, "columba1.gpu1", "gpu.dev", "1") &&
	   is(r.g, "columba1.gpu0", "gpu.dev", "0"),
	   "ranks are in KFD's order, indices in that of addresses");
	end(&r);
	finish(f);
}

static void processors(void)
{
	struct fake *f = start();
	struct live_run r;
	char mask[300];
	size_t i;

	for (i = 0; i < 252; i++)
		mask[i] = i % 9 == 8 ? ',' : 'f';
	strcpy(mask + 252, "f\n");
	fake_bind(f, "columba1.gpu0", "a.0");
	machine_cpu(&machine, "AuthenticAMD", 25);
	machine_text(&machine, "sys/devices/system/node/node0/cpumap", mask);
	r = run(f, "a", NULL, NULL);
	ok(is(r.g, "a", "cpu.vendor", "AuthenticAMD") &&
	   is(r.g, "a", "cpu.familyid", "175"), "Linux's 25 is the library's 175");
	ok(strlen(fabrex_plan_node_get(r.g, fabrex_plan_node_find(r.g, "a"),
				"cpu.affinity")) == 253, "253 bytes of affinity");
	end(&r);
	strcpy(mask + 252, "ff\n");
	machine_text(&machine, "sys/devices/system/node/node0/cpumap", mask);
	r = run(f, "a", NULL, NULL);
	ok(r.g && !fabrex_plan_node_get(r.g, fabrex_plan_node_find(r.g, "a"),
				 "cpu.affinity"), "no longer one");
	end(&r);
	ok(!strcmp(hardware_arch("aarch64"), "arm64") &&
	   !strcmp(hardware_arch("ppc64le"), "ppc64") &&
	   !strcmp(hardware_arch("x86_64"), "x86_64"), "arm64, ppc64");
	finish(f);
}

/* Gone since the fabric was asked, or another device is there now. */
static void stale(void)
{
	struct fake *f = start();
	struct gpu gpus[2] = { { "columba1.gpu0", "0000:04:00.0", 0, 0 },
			       { "columba1.gpu1", "0000:77:00.0", 0, 0 } };
	struct live_run r;

	fake_bind(f, "columba1.gpu0", "b.0");
	fake_bind(f, "columba1.gpu1", "b.0");
	r = run(f, "b", NULL, NULL);
	ok(warns(r.g, "bus ids of host b's devices are not known here"),
	   "another host's file is for looking at");
	hardware_add(r.g, gpus, 2);
	ok(graph_attr(r.g).ranks == 1 &&
	   is(r.g, "columba1.gpu0", "gpu.dev", "0") &&
	   warns(r.g, "columba1.gpu1 is bound, but this host's kernel has no PCI device"),
	   "gone, it is no rank");
	end(&r);
	object(f, "columba1.gpu0")->bound = 0;
	object(f, "columba1.gpu1")->bound = 0;
	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	machine_text(&machine, machine_at(&machine, "0000:04:00.0", "class"),
		     "0x010802\n");
	r = run(f, "a", NULL, NULL);
	ok(r.g && graph_attr(r.g).ranks == 1 &&
	   warns(r.g, "columba1.gpu0 is bound to a.0, but this host's kernel has no PCI device"),
	   "a disk is no GPU");
	end(&r);
	object(f, "columba1.gpu1")->pci_vendor = 0x10de;
	r = run(f, "a", NULL, NULL);
	ok(r.r == -ENODEV && !r.g, "nor is another vendor's this one");
	object(f, "columba1.gpu1")->pci_vendor = 0x1002;
	r = run(f, "a", NULL, NULL);
	ok(r.g && graph_attr(r.g).ranks == 1, "its own is");
	end(&r);
	finish(f);
}

static void topologies(void)
{
	struct fake *f = fabric_large();
	struct ctl c = { .be = &f->b };
	struct topology *t = NULL, *back;
	char why[400] = "", *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	fake_bind(f, "box0.gpu0", "h0.0");
	fake_bind(f, "box3.gpu7", "h2.0");
	ok(!live_topology(&c, NULL, &t), "the large fabric %s", c.err.message);
	ok(t && t->nswitches == 16 && t->nhosts == 64 &&
	   t->nappliances == 128 && t->nendpoints == 1024 &&
	   t->nisls == 15 && t->nbindings == 2, "all of it");
	ok(t && !topology_write(t, out, why, sizeof(why)), "is written %s",
	   why);
	fclose(out);
	back = topology_parse(text, "t", why, sizeof(why));
	ok(back && back->nendpoints == 1024 && back->nbindings == 2 &&
	   !memcmp(back->bindings, t->bindings, 2 * sizeof(*t->bindings)) &&
	   !memcmp(back->endpoints, t->endpoints,
		   1024 * sizeof(*t->endpoints)), "and read %s", why);
	topology_free(back);
	topology_free(t);
	model_free(c.model);
	free(text);
	fake_free(f);
}

/* Objects that contradict each other are refused, by name. */
static void hostile(void)
{
	static const struct {
		const char *object, *says;
		uint32_t number, parent;
	} odd[] = {
		{ "draco1:4", "another port has its number", 5, 0 },
		{ "draco1:4", "its number is out of range", 65, 0 },
		{ "draco1:4", "its number is out of range", 0, 0 },
		{ "draco1:4", "a port of no switch", 4, 9999 },
		{ "columba1.gpu0", "an endpoint of no appliance", 0, 9999 },
	};
	struct fake *f = start();
	struct live_run r;
	size_t i;

	for (i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		struct object *o = object(f, odd[i].object), was = *o;

		o->number = odd[i].number;
		if (odd[i].parent)
			o->parent = odd[i].parent;
		r = run(f, NULL, NULL, NULL);
		ok(r.r == -EPROTO, "%s, %s", odd[i].object, odd[i].says);
		has(r.err.message, odd[i].says);
		o->number = was.number;
		o->parent = was.parent;
	}
	object(f, "columba1.gpu0")->link = object(f, "draco2:4")->id;
	r = run(f, NULL, NULL, NULL);
	has(r.err.message, "behind no uplink of its appliance");
	object(f, "columba1.gpu0")->link = object(f, "draco1:4")->id;
	object(f, "columba1.gpu0")->bound = object(f, "draco1:5")->id;
	r = run(f, NULL, NULL, NULL);
	has(r.err.message, "bound to a port of no host");
	finish(f);
}

int main(void)
{
	composed();
	slots_that_lie();
	nothing();
	left_out();
	links();
	mesh_of_file();
	mesh_of_driver();
	bus_ids();
	indices();
	order_of_kfd();
	processors();
	stale();
	topologies();
	hostile();
	return tap_done();
}
