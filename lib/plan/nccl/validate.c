// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Would the library accept this topology and understand it as meant? Called by
 * api/write.c, and by tests for everything that is written.
 *
 * The library is lenient where it hurts: unknown elements and words, links that
 * lead nowhere and bus ids in another spelling are skipped or replaced by a
 * default, with no more than a line in its debug output.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nccl/check.h"

/* A number of an element that nobody else has. */
struct key {
	uint64_t host, value;
	const struct xml_element *x;
};

struct keys {
	uint32_t n;
	struct key *list;
};

struct validator {
	struct nccl_check c;
	const struct xml_element *root;
	uint64_t host;
	uint32_t elements, gpus, switches, nics, nets, cpus;
	struct keys busids, devs, ranks, numas, net_devs;
};

static const struct nccl_attribute attributes[] = {
	{ "system", "version", NCCL_INT, NCCL_NEED },
	{ "cpu", "numaid", NCCL_INT, NCCL_NEED },
	{ "cpu", "affinity", NCCL_CPUS, 0 },
	{ "cpu", "arch", NCCL_ARCH, NCCL_NEED },
	{ "cpu", "vendor", NCCL_VENDOR, 0 },
	{ "cpu", "familyid", NCCL_INT, 0 },
	{ "cpu", "modelid", NCCL_INT, 0 },
	{ "cpu", "host_hash", NCCL_HASH, 0 },
	{ "pci", "busid", NCCL_BUSID, NCCL_NEED },
	{ "pci", "class", NCCL_CLASS, NCCL_NEED },
	{ "pci", "vendor", NCCL_ID, 0 },
	{ "pci", "device", NCCL_ID, 0 },
	{ "pci", "subsystem_vendor", NCCL_ID, 0 },
	{ "pci", "subsystem_device", NCCL_ID, 0 },
	{ "pci", "link_speed", NCCL_SPEED, NCCL_NEED },
	{ "pci", "link_width", NCCL_WIDTH, NCCL_NEED },
	{ "gpu", "dev", NCCL_INDEX, NCCL_NEED },
	{ "gpu", "sm", NCCL_COUNT, NCCL_NEED },
	{ "gpu", "rank", NCCL_INDEX, 0 },
	{ "gpu", "gdr", NCCL_INT, 0 },
	{ "gpu", "gcn", NCCL_TEXT, NCCL_NEED_RCCL },
	{ "gpu", "arch", NCCL_INT, NCCL_NEED_RCCL },
	{ "nvlink", "target", NCCL_TEXT, NCCL_NEED },
	{ "nvlink", "count", NCCL_COUNT, NCCL_NEED },
	{ "nvlink", "tclass", NCCL_CLASS, NCCL_NEED },
	{ "xgmi", "target", NCCL_BUSID, NCCL_NEED },
	{ "xgmi", "count", NCCL_COUNT, NCCL_NEED },
	{ "xgmi", "tclass", NCCL_CLASS, NCCL_NEED },
	{ "c2c", "bw", NCCL_COUNT, NCCL_NEED },
	{ "c2c", "count", NCCL_COUNT, NCCL_NEED },
	{ "pcilink", "target", NCCL_BUSID, NCCL_NEED },
	{ "net", "name", NCCL_TEXT, NCCL_NEED },
	{ "net", "dev", NCCL_INDEX, NCCL_NEED },
	{ "net", "speed", NCCL_INT, 0 },
	{ "net", "port", NCCL_INT, 0 },
	{ "net", "latency", NCCL_REAL, 0 },
	{ "net", "guid", NCCL_HASH, 0 },
	{ "net", "maxconn", NCCL_INT, 0 },
	{ "net", "gdr", NCCL_INT, 0 },
	{ "net", "coll", NCCL_INT, 0 },
	{ NULL, NULL, NCCL_TEXT, 0 }
};

/* ---- where elements belong ----------------------------------------------- */

static const struct {
	const char *element, *in;
	enum plan_dialect only;	/* 0: both */
} places[] = {
	{ "cpu", "system", 0 }, { "pci", "cpu", 0 }, { "pci", "pci", 0 },
	{ "nic", "cpu", 0 }, { "nic", "pci", 0 }, { "net", "nic", 0 },
	{ "gpu", "pci", 0 }, { "nvlink", "gpu", PLAN_NCCL },
	{ "xgmi", "gpu", PLAN_RCCL }, { "c2c", "gpu", PLAN_NCCL },
	{ "pcilink", "pci", 0 },
};

static void check_place(struct validator *v, const struct xml_element *x)
{
	const char *where = NULL;
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (strcmp(places[i].element, x->name))
			continue;
		if (places[i].only && places[i].only != v->c.dialect) {
			nccl_violation(&v->c, x, "version %u has no such element; NCCL (1) has <nvlink>, RCCL (2) <xgmi>",
				       nccl_limits(v->c.dialect)->version);
			return;
		}
		where = places[i].in;
		if (!strcmp(where, x->parent->name))
			return;
	}
	if (where)
		nccl_violation(&v->c, x, "in <%.20s>; it belongs into <%s>",
			       x->parent->name, where);
	else
		nccl_violation(&v->c, x, "the library passes over it and what is in it; take it out");
}

/* ---- elements ------------------------------------------------------------ */

static void add_key(struct validator *v, struct keys *keys, uint64_t value,
		    const struct xml_element *x)
{
	keys->list[keys->n++] = (struct key){ v->host, value, x };
}

/* A number of @x, for a list of those that are unique. */
static void add_number(struct validator *v, struct keys *keys,
		       const struct xml_element *x, const char *attribute)
{
	const char *text = xml_get(x, attribute);
	int64_t n;

	if (text && nccl_int(text, &n))
		add_key(v, keys, (uint64_t)n, x);
}

static void check_cpu(struct validator *v, const struct xml_element *x)
{
	const char *hash = xml_get(x, "host_hash");
	const char *arch = xml_get(x, "arch"), *vendor = xml_get(x, "vendor");
	bool models;

	v->cpus++;
	v->host = hash ? strtoull(hash, NULL, 16) : 0;
	add_number(v, &v->numas, x, "numaid");
	if (!arch || strcmp(arch, "x86_64"))
		return;
	if (!vendor) {
		nccl_violation(&v->c, x, "no vendor; the library needs it of x86_64");
		return;
	}
	models = strcmp(vendor, "AuthenticAMD") || v->c.dialect == PLAN_RCCL;
	if (models && (!xml_get(x, "familyid") || !xml_get(x, "modelid")))
		nccl_violation(&v->c, x, "no familyid or no modelid; the library needs both of %.20s",
			       vendor);
}

static enum nccl_class class_of(const struct validator *v,
				const struct xml_element *x, const char *key)
{
	const char *class = xml_get(x, key);

	return class ? nccl_class(v->c.dialect, class) : NCCL_CLASS_UNKNOWN;
}

static void check_gpu_pci(struct validator *v, const struct xml_element *x,
			  const struct xml_element *gpu)
{
	const char *busid = xml_get(x, "busid");
	uint64_t id = busid ? nccl_busid(busid) : NCCL_NO_BUSID;
	const struct xml_element *c;

	for (c = x->first; c; c = c->next)
		if (c != gpu)
			nccl_violation(&v->c, c, "beside a <gpu>; a pci element is one GPU, one NIC, or a bridge");
	if (xml_get(x, "class") && class_of(v, x, "class") != NCCL_CLASS_GPU)
		nccl_violation(&v->c, x, "class \"%.20s\" of a GPU; %s", xml_get(x, "class"),
			       v->c.dialect == PLAN_NCCL ?
			       "the library wants 0x03..." :
			       "the library wants 0x03... or 0x120000");
	if (v->c.dialect == PLAN_NCCL && id != NCCL_NO_BUSID && id & 3)
		nccl_violation(&v->c, x, "function %u of a GPU; the library numbers partitions there, use 0",
			       (unsigned int)id & 0xf);
}

static void check_pci(struct validator *v, const struct xml_element *x)
{
	const struct xml_element *gpu = xml_child(x, "gpu");
	const char *busid = xml_get(x, "busid");
	enum nccl_class class = class_of(v, x, "class");

	if (busid && nccl_busid(busid) != NCCL_NO_BUSID)
		add_key(v, &v->busids, nccl_busid(busid), x);
	if (gpu) {
		check_gpu_pci(v, x, gpu);
	} else if (xml_child(x, "nic")) {
		v->nics++;
		if (xml_child(x, "pci") || xml_sibling(xml_child(x, "nic"),
						       "nic"))
			nccl_violation(&v->c, x, "more in it than one <nic>; a pci element is one GPU, one NIC, or a bridge");
	} else if (x->first && class != NCCL_CLASS_BRIDGE) {
		nccl_violation(&v->c, x, "class \"%.20s\" of a bridge; the library passes over what is below it, write 0x060400",
			       xml_get(x, "class") ? xml_get(x, "class") : "");
	} else {
		v->switches += class == NCCL_CLASS_BRIDGE;
	}
}

static void check_gpu(struct validator *v, const struct xml_element *x)
{
	v->gpus++;
	add_number(v, &v->devs, x, "dev");
	add_number(v, &v->ranks, x, "rank");
}

static void check_net(struct validator *v, const struct xml_element *x)
{
	v->nets++;
	add_number(v, &v->net_devs, x, "dev");
}

static void check_system(struct validator *v, const struct xml_element *x)
{
	const char *version = xml_get(x, "version");
	int64_t n;

	v->c.dialect = PLAN_NCCL;
	if (version && nccl_int(version, &n) && n == 2)
		v->c.dialect = PLAN_RCCL;
	else if (version && nccl_int(version, &n) && n != 1)
		nccl_violation(&v->c, x, "version %lld; NCCL writes 1, RCCL 2",
			       (long long)n);
	if (!xml_child(x, "cpu"))
		nccl_violation(&v->c, x, "no <cpu> in it; all devices are below a CPU");
}

/* Nested at most XML_DEPTH deep. */
static void check_element(struct validator *v, const struct xml_element *x)
{
	static const struct {
		const char *name;
		void (*check)(struct validator *, const struct xml_element *);
	} checks[] = {
		{ "system", check_system }, { "cpu", check_cpu },
		{ "pci", check_pci }, { "gpu", check_gpu },
		{ "net", check_net },
	};
	const struct xml_element *c;
	uint32_t children = 0;
	size_t i;

	v->elements++;
	if (x->parent)
		check_place(v, x);
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!strcmp(checks[i].name, x->name))
			checks[i].check(v, x);
	nccl_check_attributes(&v->c, x, attributes);
	for (c = x->first; c; c = c->next, children++)
		check_element(v, c);
	if (children > nccl_limits(v->c.dialect)->children)
		nccl_refusal(&v->c, x, "%u elements in it; the library takes %u",
			     children, nccl_limits(v->c.dialect)->children);
}

/* ---- what is there once, what is there at all ---------------------------- */

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	return (x->value > y->value) - (x->value < y->value);
}

static int by_key_and_line(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int order = by_key(a, b);

	return order ? order : (x->x->line > y->x->line) -
			       (x->x->line < y->x->line);
}

static void check_unique(struct validator *v, struct keys *keys,
			 const char *attribute, const char *what)
{
	uint32_t i;

	qsort(keys->list, keys->n, sizeof(*keys->list), by_key_and_line);
	for (i = 1; i < keys->n; i++)
		if (!by_key(&keys->list[i - 1], &keys->list[i]))
			nccl_violation(&v->c, keys->list[i].x, "%s \"%.40s\" is that of line %u, too; %s",
				       attribute,
				       xml_get(keys->list[i].x, attribute),
				       keys->list[i - 1].x->line, what);
}

static const struct xml_element *at_busid(const struct validator *v,
					  const char *busid)
{
	struct key key = { v->host, nccl_busid(busid), NULL }, *found;

	found = bsearch(&key, v->busids.list, v->busids.n, sizeof(key),
			by_key);
	return found ? found->x : NULL;
}

static bool is_gpu(const struct validator *v, const struct xml_element *x)
{
	return xml_child(x, "gpu") ||
	       (!x->first && class_of(v, x, "class") == NCCL_CLASS_GPU);
}

static uint64_t count_of(const struct xml_element *x, const char *text)
{
	int64_t n = 0;

	text = xml_get(x, text);
	return text && nccl_int(text, &n) && n > 0 ? (uint64_t)n : 0;
}

/* Links that @from has to the GPU @to; both <pci>. */
static uint64_t links_to(const struct xml_element *from,
			 const struct xml_element *to, const char *kind)
{
	uint64_t id = nccl_busid(xml_get(to, "busid")), sum = 0;
	const struct xml_element *gpu = xml_child(from, "gpu"), *x;

	for (x = gpu ? xml_child(gpu, kind) : NULL; x;
	     x = xml_sibling(x, kind))
		if (xml_get(x, "target") &&
		    nccl_busid(xml_get(x, "target")) == id)
			sum += count_of(x, "count");
	return sum;
}

static void check_gpu_link(struct validator *v, const struct xml_element *x)
{
	const struct xml_element *pci = x->parent->parent, *to;
	const char *target = xml_get(x, "target");
	enum nccl_class class = class_of(v, x, "tclass");

	if (!target || !xml_get(x, "tclass") || class == NCCL_CLASS_NVSWITCH ||
	    class == NCCL_CLASS_CPU)
		return;
	if (class != NCCL_CLASS_GPU) {
		nccl_violation(&v->c, x, "tclass \"%.20s\"; the library takes it for an NVSwitch, GPUs are %s",
			       xml_get(x, "tclass"),
			       v->c.dialect == PLAN_NCCL ? "0x03..." :
			       "0x03... or 0x120000");
		return;
	}
	to = at_busid(v, target);
	if (!nccl_busid_strict(target) || !to || !is_gpu(v, to))
		nccl_violation(&v->c, x, "target \"%.40s\"; no GPU of this host has this busid, the library drops the link",
			       target);
	else if (to == pci)
		nccl_violation(&v->c, x, "leads back to its own GPU; give another GPU's busid");
	else if (xml_child(to, "gpu") && xml_get(pci, "busid") &&
		 links_to(to, pci, x->name) != links_to(pci, to, x->name))
		nccl_violation(&v->c, x, "%llu links to %.20s, %llu back; write both sides",
			       (unsigned long long)links_to(pci, to, x->name),
			       target,
			       (unsigned long long)links_to(to, pci, x->name));
}

static void check_pcilink(struct validator *v, const struct xml_element *x)
{
	const char *target = xml_get(x, "target");
	const struct xml_element *to = target ? at_busid(v, target) : NULL;

	if (target && (!to || xml_child(to, "gpu") || xml_child(to, "nic")))
		nccl_violation(&v->c, x, "target \"%.40s\"; no switch of this host has this busid, the library drops the link",
			       target);
	else if (to == x->parent)
		nccl_violation(&v->c, x, "leads back to its own switch; give another one's busid");
}

/* Once all bus ids are known. */
static void check_links(struct validator *v, const struct xml_element *x)
{
	const char *hash;

	if (!strcmp(x->name, "cpu")) {
		hash = xml_get(x, "host_hash");
		v->host = hash ? strtoull(hash, NULL, 16) : 0;
	}
	if ((!strcmp(x->name, "nvlink") || !strcmp(x->name, "xgmi")) &&
	    !strcmp(x->parent->name, "gpu") && x->parent->parent)
		check_gpu_link(v, x);
	if (!strcmp(x->name, "pcilink") && x->parent)
		check_pcilink(v, x);
	for (x = x->first; x; x = x->next)
		check_links(v, x);
}

static void check_limit(struct validator *v, uint32_t n, uint32_t most,
			const char *what)
{
	if (n > most)
		nccl_refusal(&v->c, v->root, "%u %s; the library takes %u",
			     n, what, most);
}

static void check_whole(struct validator *v)
{
	const struct nccl_limits *limits = nccl_limits(v->c.dialect);
	uint32_t i;

	check_unique(v, &v->busids, "busid", "bus ids are unique in a host");
	check_unique(v, &v->devs, "dev", "numbers of GPUs are unique in a host");
	check_unique(v, &v->numas, "numaid", "CPUs are numbered");
	check_unique(v, &v->net_devs, "dev", "numbers of ports are unique in a host");
	for (i = 0; i < v->ranks.n; i++)
		v->ranks.list[i].host = 0;
	check_unique(v, &v->ranks, "rank", "ranks are unique");
	if (!v->c.violations)	/* else there may be too many of them */
		check_links(v, v->root);
	/* It looks for room before it sees that there is nothing more. */
	check_limit(v, v->elements, limits->elements - 1, "elements");
	check_limit(v, v->gpus, limits->gpus, "GPUs");
	check_limit(v, v->switches, limits->gpus, "bridges");
	check_limit(v, v->nics, limits->gpus, "NICs");
	check_limit(v, v->nets, limits->gpus, "network ports");
	check_limit(v, v->cpus, limits->gpus, "CPUs");
}

/* ---- all of it ----------------------------------------------------------- */

static void validate(struct validator *v)
{
	struct keys *const all[] = { &v->busids, &v->devs, &v->ranks,
				     &v->numas, &v->net_devs };
	uint32_t n = xml_count(v->root), i;

	for (i = 0; i < 5; i++) {
		all[i]->list = calloc(n, sizeof(struct key));
		v->c.memory |= !all[i]->list;
	}
	if (!v->c.memory && strcmp(v->root->name, "system")) {
		nccl_violation(&v->c, v->root, "the outermost element is not <system>; give a topology, as NCCL_TOPO_DUMP_FILE writes it");
	} else if (!v->c.memory) {
		check_element(v, v->root);
		check_whole(v);
	}
	for (i = 0; i < 5; i++)
		free(all[i]->list);
}

int plan_nccl_validate(const char *text, size_t length, const char *name,
		       struct plan_error *e)
{
	struct xml_element *root = xml_parse(text, length, name, e);
	struct validator v = { .c = { .name = name, .e = e }, .root = root };

	if (!root)
		return -EINVAL;
	nccl_check_bytes(&v.c, text, length);
	validate(&v);
	xml_free(root);
	return nccl_check_done(&v.c);
}
