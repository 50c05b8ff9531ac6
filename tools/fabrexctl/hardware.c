// SPDX-License-Identifier: GPL-2.0-only
/*
 * GPUs of this host as sysfs and KFD show them. Where a device is, libudev
 * says; the rest are small files below that. FABREX_ROOT replaces / for tests.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "device.h"
#include "graph.h"
#include "hardware.h"
#include "p2p/sysfs.h"
#include "topology/pcie.h"
#include "util.h"

#define DEPTH		40	/* more bridges in a row than that are garbage */
#define KFD_NODES	4096u
#define KFD		"/sys/class/kfd/kfd/topology/nodes"
#define AFFINITY	253u	/* bytes that the libraries take */
#define KFD_XGMI	11	/* io_links: type */

static const char *root(void)
{
	const char *r = secure_getenv("FABREX_ROOT");

	return r ? r : "";
}

/* ---- where devices are --------------------------------------------------- */

/* A device's directory of sysfs/devices, and the addresses on the way. */
struct place {
	char path[SYSFS_PATH];
	unsigned int n;
	struct {
		char name[16];
		size_t end;	/* of its directory in path */
	} at[DEPTH];
};

struct address {
	unsigned int domain, bus, device, function;
};

static bool parse_address(const char *s, struct address *a)
{
	int n = 0;

	return sscanf(s, "%8x:%2x:%2x.%1x%n", &a->domain, &a->bus, &a->device,
		      &a->function, &n) == 4 && !s[n] && strlen(s) < 16;
}

static bool find_path(const char *pci, char path[SYSFS_PATH])
{
	char link[SYSFS_PATH], below[SYSFS_PATH];
	struct device_text d = { "", "", "" };
	struct address a;

	if (!parse_address(pci, &a))
		return false;
	if (!*root())
		device_describe(pci, &d);
	/* Cut off, it would be another device's. */
	if (*d.sysfs && strlen(d.sysfs) < sizeof(d.sysfs) - 1) {
		snprintf(path, SYSFS_PATH, "%s", d.sysfs);
		return true;
	}
	return !fxi_sysfs_path(link, root(), "/sys/bus/pci/devices/%s", pci) &&
	       !fxi_sysfs_path(below, root(), "/sys/devices") &&
	       fxi_sysfs_resolve(link, below, path);
}

bool hardware_exists(const char *pci)
{
	char path[SYSFS_PATH];

	return find_path(pci, path);
}

/* Bridges from the root port down to the device itself. */
static bool find_place(const char *pci, struct place *p)
{
	char *copy, *word, *save;
	struct address a;

	p->n = 0;
	if (!find_path(pci, p->path))
		return false;
	copy = xstrdup(p->path);
	for (word = strtok_r(copy, "/", &save); word;
	     word = strtok_r(NULL, "/", &save)) {
		if (!parse_address(word, &a))
			continue;
		if (p->n == DEPTH)
			break;
		snprintf(p->at[p->n].name, sizeof(p->at[0].name), "%s", word);
		p->at[p->n++].end = (size_t)(word - copy) + strlen(word);
	}
	free(copy);
	return p->n && !word;
}

/* First line of a file of the @i-th device on the way. */
static bool read_at(const struct place *p, unsigned int i, const char *file,
		    char *buf, size_t size)
{
	char path[SYSFS_PATH];
	int n = snprintf(path, sizeof(path), "%.*s/%s", (int)p->at[i].end,
			 p->path, file);

	return n > 0 && n < (int)sizeof(path) &&
	       fxi_sysfs_line(path, buf, size) && *buf;
}

/* ---- links --------------------------------------------------------------- */

struct link {
	double speed;		/* GT/s; 0: unknown */
	unsigned int width;
};

static void read_link(const struct place *p, unsigned int i, struct link *l)
{
	char text[64];
	uint64_t width;

	*l = (struct link){ 0, 0 };
	if (read_at(p, i, "max_link_speed", text, sizeof(text)))
		l->speed = pcie_speed_parse(text);
	/* A link that there is not has 255 lanes. */
	if (read_at(p, i, "max_link_width", text, sizeof(text)) &&
	    parse_u64(text, 1, 32, &width))
		l->width = (unsigned int)width;
}

static void set_link(struct fabrex_plan_graph *g, uint32_t node,
		     const struct link *l)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", l->width);
	if (l->speed)
		fabrex_plan_node_set(g, node, "pci.link_speed",
			      pcie_speed_name(l->speed));
	if (l->width)
		fabrex_plan_node_set(g, node, "pci.link_width", text);
}

static const char *speed_word(const struct link *l)
{
	return l->speed ? pcie_speed_name(l->speed) : "no speed";
}

static struct link lesser(struct link a, struct link b)
{
	if (!a.speed || (b.speed && b.speed < a.speed))
		a.speed = b.speed;
	if (!a.width || (b.width && b.width < a.width))
		a.width = b.width;
	return a;
}

/* The port's word is not taken where the fabric knows better. */
static void gpu_link(struct fabrex_plan_graph *g, uint32_t node,
		     const struct place *p, const struct gpu *gpu)
{
	struct link device, port = { 0, 0 }, said, known;
	const struct link fabric = { gpu->speed, gpu->width };

	read_link(p, p->n - 1, &device);
	if (p->n > 1)
		read_link(p, p->n - 2, &port);
	said = lesser(device, port);
	if (port.speed < fabric.speed)
		port.speed = fabric.speed;
	if (port.width < fabric.width)
		port.width = fabric.width;
	known = lesser(device, port);
	set_link(g, node, &known);
	if (known.speed != said.speed || known.width != said.width)
		graph_warn(g, "%s (%s): its slot reports a link of %s x%u, the fabric runs it at %s x%u; that is taken",
				gpu->name, gpu->pci, speed_word(&said),
				said.width, speed_word(&known), known.width);
}

/* ---- devices and the switches above -------------------------------------- */

static void set_file(struct fabrex_plan_graph *g, uint32_t node,
		     const struct place *p, unsigned int i, const char *file,
		     const char *key)
{
	char text[128];

	if (read_at(p, i, file, text, sizeof(text)))
		fabrex_plan_node_set(g, node, key, text);
}

static void set_identity(struct fabrex_plan_graph *g, uint32_t node,
			 const struct place *p, unsigned int i)
{
	static const char *const files[][2] = {
		{ "class", "pci.class" }, { "vendor", "pci.vendor" },
		{ "device", "pci.device" },
		{ "subsystem_vendor", "pci.subsystem_vendor" },
		{ "subsystem_device", "pci.subsystem_device" },
		{ "current_link_speed", "sysfs.current_link_speed" },
		{ "max_link_speed", "sysfs.max_link_speed" },
		{ "current_link_width", "sysfs.current_link_width" },
		{ "max_link_width", "sysfs.max_link_width" },
	};
	size_t k;

	fabrex_plan_node_set(g, node, "pci.busid", p->at[i].name);
	for (k = 0; k < ARRAY_SIZE(files); k++)
		set_file(g, node, p, i, files[k][0], files[k][1]);
}

/* Nodes above a GPU, highest first, without root port and root complex. */
static unsigned int switches_above(const struct fabrex_plan_graph *g,
				   uint32_t node, uint32_t above[DEPTH])
{
	struct fabrex_plan_node v;
	unsigned int n = 0, i;
	uint32_t up, t;

	for (up = graph_node(g, node).up; up != FABREX_PLAN_NONE && n < DEPTH;
	     up = v.up) {
		v = graph_node(g, up);
		if (v.kind == FABREX_PLAN_PCI_SWITCH ||
		    v.kind == FABREX_PLAN_PARTITION)
			above[n++] = up;
	}
	for (i = 0; i < n / 2; i++) {
		t = above[i];
		above[i] = above[n - 1 - i];
		above[n - 1 - i] = t;
	}
	return n;
}

/* The graph has the fabric's own word on a switch's link; that stays. */
static void check_link(struct fabrex_plan_graph *g, uint32_t node,
		       const struct place *p, unsigned int i)
{
	const char *speed = fabrex_plan_node_get(g, node, "pci.link_speed");
	const char *width = fabrex_plan_node_get(g, node, "pci.link_width");
	uint64_t lanes = 0;
	struct link said;

	read_link(p, i, &said);
	if (!speed || !width || !parse_u64(width, 1, 32, &lanes)) {
		set_link(g, node, &said);
		return;
	}
	if (said.speed < pcie_speed_parse(speed) || said.width < lanes)
		graph_warn(g, "%s (%s): its port reports a link of %s x%u, the fabric runs it at %s x%s; that is taken",
				graph_node(g, node).name, p->at[i].name,
				speed_word(&said), said.width, speed, width);
}

/*
 * A switch shows its upstream port, and a port for each device below: behind
 * the root port, every second device on the way is a switch's upstream port.
 * The kernel may see fewer switches than there are (or are modelled): the ones
 * at the top are the ones that it sees.
 */
static void add_switches(struct fabrex_plan_graph *g, uint32_t node,
			 const struct place *p)
{
	uint32_t above[DEPTH];
	unsigned int n = switches_above(g, node, above), i;
	const char *known;

	for (i = 0; i < n && 2 * i + 3 < p->n; i++) {
		const unsigned int up = 2 * i + 1;

		known = fabrex_plan_node_get(g, above[i], "pci.busid");
		if (known && strcmp(known, p->at[up].name))
			graph_warn(g, "%s: %s and %s are both on the way to it; the first one is taken",
					graph_node(g, above[i]).name, known,
					p->at[up].name);
		if (known)
			continue;
		set_identity(g, above[i], p, up);
		check_link(g, above[i], p, up);
	}
}

/* ---- the CPU ------------------------------------------------------------- */

static bool cpu_line(const char *line, const char *key, char *value,
		     size_t size)
{
	size_t n = strlen(key);
	const char *colon = strchr(line, ':');

	if (strncmp(line, key, n) || !colon ||
	    strspn(line + n, " \t") != (size_t)(colon - line) - n)
		return false;
	snprintf(value, size, "%s", colon + 1 + strspn(colon + 1, " \t"));
	value[strcspn(value, "\n")] = '\0';
	return true;
}

/*
 * The libraries add cpuid's family and extended family with the latter shifted,
 * as if it were a model: 175 is what Linux calls 25, EPYC 7003.
 */
static void set_family(struct fabrex_plan_graph *g, uint32_t node,
		       const char *family_text)
{
	uint64_t family;
	char text[24];

	if (!parse_u64(family_text, 0, 15 + 255, &family))
		return;
	if (family > 15)
		family = 15 + ((family - 15) << 4);
	snprintf(text, sizeof(text), "%u", (unsigned int)family);
	fabrex_plan_node_set(g, node, "cpu.familyid", text);
}

const char *hardware_arch(const char *machine)
{
	if (!strcmp(machine, "aarch64"))
		return "arm64";
	return !strncmp(machine, "ppc64", 5) ? "ppc64" : machine;
}

/* Of the first processor: they are all alike. */
static void set_processor(struct fabrex_plan_graph *g, uint32_t node)
{
	static const char *const keys[][2] = {
		{ "vendor_id", "cpu.vendor" }, { "model", "cpu.modelid" },
	};
	char path[SYSFS_PATH], text[256], value[128];
	struct utsname name;
	size_t k;
	FILE *f;

	if (!uname(&name))
		fabrex_plan_node_set(g, node, "cpu.arch", hardware_arch(name.machine));
	if (fxi_sysfs_path(path, root(), "/proc/cpuinfo"))
		return;
	f = fopen(path, "re");
	while (f && fgets(text, sizeof(text), f) && *text != '\n') {
		if (cpu_line(text, "cpu family", value, sizeof(value)))
			set_family(g, node, value);
		for (k = 0; k < ARRAY_SIZE(keys); k++)
			if (cpu_line(text, keys[k][0], value, sizeof(value)))
				fabrex_plan_node_set(g, node, keys[k][1], value);
	}
	if (f)
		fclose(f);
}

/* Firmware without NUMA says -1: there is one node, and it is node 0. */
static void set_cpu(struct fabrex_plan_graph *g, uint32_t gpu,
		    const struct place *p,
		    const char *name)
{
	char path[SYSFS_PATH], numa[32] = "0", text[2048];
	const char *known;
	uint32_t node = gpu;

	while (node != FABREX_PLAN_NONE &&
	       graph_node(g, node).kind != FABREX_PLAN_ROOT_COMPLEX)
		node = graph_node(g, node).up;
	if (node == FABREX_PLAN_NONE)
		return;
	if (!read_at(p, p->n - 1, "numa_node", numa, sizeof(numa)) ||
	    *numa == '-')
		snprintf(numa, sizeof(numa), "0");
	known = fabrex_plan_node_get(g, node, "cpu.numaid");
	if (known && strcmp(known, numa))
		graph_warn(g, "%s is near NUMA node %s, others of %s are near %s; all are planned as if near %s",
				name, numa, graph_node(g, node).name, known, known);
	if (known)
		return;
	fabrex_plan_node_set(g, node, "cpu.numaid", numa);
	/* The library cuts a longer one off, and pins to other CPUs then. */
	if (((!fxi_sysfs_path(path, root(), "/sys/devices/system/node/node%s/cpumap",
			      numa) &&
	      fxi_sysfs_line(path, text, sizeof(text))) ||
	     read_at(p, p->n - 1, "local_cpus", text, sizeof(text))) &&
	    strlen(text) <= AFFINITY)
		fabrex_plan_node_set(g, node, "cpu.affinity", text);
	set_processor(g, node);
}

/* ---- KFD ----------------------------------------------------------------- */

/* "key value" lines, decimal. */
static bool kfd_number(const char *text, const char *key, uint64_t *out)
{
	size_t n = strlen(key);
	const char *line;
	char *end;

	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) || line[n] != ' ')
			continue;
		*out = strtoull(line + n + 1, &end, 10);
		return end != line + n + 1 && (*end == '\n' || !*end);
	}
	return false;
}

static bool kfd_file(char text[8192], const char *fmt, unsigned int node,
		     const char *link)
{
	char path[SYSFS_PATH], rest[128];

	snprintf(rest, sizeof(rest), fmt, node, link);
	return !fxi_sysfs_path(path, root(), KFD "/%s", rest) &&
	       fxi_sysfs_read(path, text, 8192) > 0;
}

struct kfd {
	struct fabrex_plan_graph *g;
	uint32_t of[KFD_NODES];	/* graph's node of each of KFD's */
	unsigned int *number;	/* KFD's node of each GPU; KFD_NODES: none */
	unsigned int unknown;	/* links without a bandwidth */
};

/* "gfx942": 90402 is major 9, minor 4, stepping 2, the last two as digits. */
static void set_gcn(struct fabrex_plan_graph *g, uint32_t node,
		    uint64_t version)
{
	char text[32];

	snprintf(text, sizeof(text), "gfx%u%x%x",
		 (unsigned int)(version / 10000),
		 (unsigned int)(version / 100 % 100),
		 (unsigned int)(version % 100));
	if (version)
		fabrex_plan_node_set(g, node, "gpu.gcn", text);
}

/* Which of our GPUs a node of KFD's is. */
static void kfd_node(struct kfd *k, unsigned int node, const struct gpu *gpus,
		     size_t n)
{
	uint64_t location = 0, domain = 0, version = 0;
	struct address a;
	char text[8192];
	size_t i;

	if (!kfd_file(text, "%u/properties%s", node, "") ||
	    !kfd_number(text, "location_id", &location))
		return;
	kfd_number(text, "domain", &domain);
	kfd_number(text, "gfx_target_version", &version);
	for (i = 0; i < n; i++) {
		if (!parse_address(gpus[i].pci, &a) || a.domain != domain ||
		    (a.bus << 8 | a.device << 3 | a.function) != location)
			continue;
		k->of[node] = fabrex_plan_node_find(k->g, gpus[i].name);
		if (k->of[node] == FABREX_PLAN_NONE)
			continue;
		set_gcn(k->g, k->of[node], version);
		k->number[i] = node;
	}
}

static bool is_joined(const struct fabrex_plan_graph *g, uint32_t a, uint32_t b)
{
	const uint32_t n = graph_attr(g).edges;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct fabrex_plan_edge e = graph_edge(g, i);

		if (e.from == a && e.to == b &&
		    (e.kind == FABREX_PLAN_XGMI ||
		     e.kind == FABREX_PLAN_NVLINK))
			return true;
	}
	return false;
}

/*
 * Collectives see three quarters of what KFD says a link has: 48 GB/s of 64
 * on MI300X.
 */
static void kfd_link(struct kfd *k, unsigned int node, const char *link)
{
	uint64_t type = 0, from = 0, to = 0, mbps = 0;
	uint32_t a, b;
	char text[8192];

	if (!kfd_file(text, "%u/io_links/%.40s/properties", node, link) ||
	    !kfd_number(text, "type", &type) || type != KFD_XGMI ||
	    !kfd_number(text, "node_from", &from) || from != node ||
	    !kfd_number(text, "node_to", &to) || to >= KFD_NODES)
		return;
	a = k->of[node];
	b = k->of[to];
	if (a == FABREX_PLAN_NONE || b == FABREX_PLAN_NONE || a == b ||
	    is_joined(k->g, a, b))
		return;
	if (!kfd_number(text, "max_bandwidth", &mbps) ||
	    mbps > UINT32_MAX ||
	    fabrex_plan_link_add(k->g, a, b, mbps * 3 / 4, 0,
				 FABREX_PLAN_XGMI) < 0)
		k->unknown++;
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	return atoi((*a)->d_name) - atoi((*b)->d_name);
}

static int is_number(const struct dirent *d)
{
	uint64_t n;

	return parse_u64(d->d_name, 0, KFD_NODES - 1, &n);
}

/* Numbered entries of a directory below KFD's, in order. */
static int kfd_list(struct dirent ***names, const char *below)
{
	char path[SYSFS_PATH];
	int n = fxi_sysfs_path(path, root(), KFD "%s", below) ? -1 :
		scandir(path, names, is_number, by_number);

	return n < 0 ? 0 : n;
}

static void kfd_links(struct kfd *k, unsigned int node)
{
	struct dirent **names = NULL;
	char below[64];
	int i, n;

	snprintf(below, sizeof(below), "/%u/io_links", node);
	n = kfd_list(&names, below);
	for (i = 0; i < n; i++) {
		kfd_link(k, node, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

static void add_kfd(struct fabrex_plan_graph *g, const struct gpu *gpus,
		    size_t n,
		    unsigned int *number)
{
	struct kfd *k = xcalloc(1, sizeof(*k));
	struct dirent **names = NULL;
	int i, nodes = kfd_list(&names, "");

	k->g = g;
	k->number = number;
	memset(k->of, 0xff, sizeof(k->of));
	for (i = 0; i < nodes; i++)
		kfd_node(k, (unsigned int)atoi(names[i]->d_name), gpus, n);
	for (i = 0; i < nodes; i++) {
		if (k->of[atoi(names[i]->d_name)] != FABREX_PLAN_NONE)
			kfd_links(k, (unsigned int)atoi(names[i]->d_name));
		free(names[i]);
	}
	if (k->unknown)
		graph_warn(g, "the driver publishes %u XGMI links without a bandwidth; left out, --topology FILE can say it",
				k->unknown);
	free(names);
	free(k);
}

/* ---- order and indices --------------------------------------------------- */

struct ranked {
	struct address at;
	uint32_t node;
	unsigned int kfd;	/* KFD_NODES: it has none */
};

static int compare_addresses(const struct address *a, const struct address *b)
{
	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	if (a->bus != b->bus)
		return a->bus < b->bus ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->function > b->function) - (a->function < b->function);
}

/* KFD's nodes first, in their order, as HIP counts; others by address. */
static int by_runtime(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	if (a->kfd != b->kfd)
		return a->kfd < b->kfd ? -1 : 1;
	return compare_addresses(&a->at, &b->at);
}

static bool file_is(const char *pci, const char *file, char text[32])
{
	char path[SYSFS_PATH];

	return !fxi_sysfs_path(path, root(), "/sys/bus/pci/devices/%s/%s", pci,
			       file) &&
	       fxi_sysfs_line(path, text, 32);
}

/* Display controllers and accelerators: 0x03, 0x12. */
static bool is_gpu_class(const char *class)
{
	return !strncmp(class, "0x03", 4) || !strncmp(class, "0x12", 4);
}

bool hardware_is_gpu(const char *pci, uint32_t vendor)
{
	char text[32];

	if (!hardware_exists(pci) ||
	    (file_is(pci, "class", text) && !is_gpu_class(text)))
		return false;
	return !vendor || !file_is(pci, "vendor", text) ||
	       strtoul(text, NULL, 16) == vendor;
}

static int is_address(const struct dirent *d)
{
	struct address a;

	return parse_address(d->d_name, &a);
}

/*
 * What the libraries take for dev: the place by address among all GPUs of its
 * vendor that the host has, planned for or not, as NVML and rocm_smi count.
 */
static void set_index(struct fabrex_plan_graph *g, uint32_t node,
		      const char *pci,
		      struct dirent **all, int n)
{
	const char *vendor = fabrex_plan_node_get(g, node, "pci.vendor");
	unsigned int index = 0;
	struct address own, a;
	char text[32];
	int i;

	if (!parse_address(pci, &own))
		return;
	for (i = 0; i < n; i++)
		index += parse_address(all[i]->d_name, &a) &&
			 compare_addresses(&a, &own) < 0 &&
			 file_is(all[i]->d_name, "class", text) &&
			 is_gpu_class(text) &&
			 file_is(all[i]->d_name, "vendor", text) &&
			 (!vendor || !strcmp(text, vendor));
	snprintf(text, sizeof(text), "%u", index);
	fabrex_plan_node_set(g, node, "gpu.dev", text);
}

static void set_indices(struct fabrex_plan_graph *g, const struct gpu *gpus,
			size_t n)
{
	struct dirent **all = NULL;
	char path[SYSFS_PATH];
	int count = fxi_sysfs_path(path, root(), "/sys/bus/pci/devices") ? 0 :
		    scandir(path, &all, is_address, alphasort);
	uint32_t node;
	size_t i;

	for (i = 0; count > 0 && i < n; i++) {
		node = fabrex_plan_node_find(g, gpus[i].name);
		if (node != FABREX_PLAN_NONE && fabrex_plan_node_get(g, node, "pci.busid"))
			set_index(g, node, gpus[i].pci, all, count);
	}
	while (count > 0)
		free(all[--count]);
	free(all);
}

/* Is it a GPU of this host's that is not there any more? */
static bool has_gone(const struct fabrex_plan_graph *g, uint32_t node,
		     const struct gpu *gpus, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(graph_node(g, node).name, gpus[i].name))
			return !fabrex_plan_node_get(g, node, "pci.busid");
	return false;
}

/* Among themselves; GPUs of other hosts keep their ranks. */
static void order_ranks(struct fabrex_plan_graph *g, const struct gpu *gpus,
			size_t n, const unsigned int *number)
{
	struct ranked *v = xcalloc(n + 1, sizeof(*v));
	const uint32_t ranks = graph_attr(g).ranks;
	uint32_t *nodes = xcalloc(ranks + 1, sizeof(*nodes)), node;
	uint32_t i, m = 0, k = 0, left = 0;
	size_t at;

	for (at = 0; at < n; at++) {
		v[m].node = fabrex_plan_node_find(g, gpus[at].name);
		v[m].kfd = number[at];
		if (v[m].node != FABREX_PLAN_NONE &&
		    fabrex_plan_node_get(g, v[m].node, "pci.busid") &&
		    parse_address(gpus[at].pci, &v[m].at))
			m++;
	}
	qsort(v, m, sizeof(*v), by_runtime);
	for (i = 0; i < ranks; i++) {
		node = fabrex_plan_rank_node(g, i);
		if (has_gone(g, node, gpus, n)) {
			graph_warn(g, "%s is bound, but this host's kernel has no PCI device for it; left out",
					graph_node(g, node).name);
			continue;
		}
		nodes[left] = node;
		if (k < m && fabrex_plan_node_get(g, node, "pci.busid"))
			nodes[left] = v[k++].node;
		left++;
	}
	fabrex_plan_graph_ranks(g, nodes, left);
	free(nodes);
	free(v);
}

void hardware_add(struct fabrex_plan_graph *g, const struct gpu *gpus, size_t n)
{
	unsigned int *number = xcalloc(n + 1, sizeof(*number));
	struct place p;
	uint32_t node;
	size_t i;

	for (i = 0; i < n; i++) {
		number[i] = KFD_NODES;
		node = fabrex_plan_node_find(g, gpus[i].name);
		if (node == FABREX_PLAN_NONE || !find_place(gpus[i].pci, &p))
			continue;
		set_identity(g, node, &p, p.n - 1);
		gpu_link(g, node, &p, &gpus[i]);
		add_switches(g, node, &p);
		set_cpu(g, node, &p, gpus[i].name);
	}
	set_indices(g, gpus, n);
	add_kfd(g, gpus, n, number);
	order_ranks(g, gpus, n, number);
	free(number);
}
