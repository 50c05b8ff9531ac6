// SPDX-License-Identifier: GPL-2.0-only
/*
 * See pcitree.h. Registers are read by lib/p2p, except of what sleeps in D3cold:
 * reading those would wake it up, which takes a second for a laptop's GPU.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "p2p/near.h"
#include "p2p/sysfs.h"
#include "pciname.h"
#include "pcitree.h"
#include "topology/pcie.h"
#include "topology/visible.h"
#include "util.h"

#define DEVICES		"/sys/bus/pci/devices"
#define MOST		65536u	/* functions; more are garbage */

/* ---- attributes ---------------------------------------------------------- */

void function_link_word(const struct p2p_env *env, const char *name,
			const char *file, char *to, size_t size)
{
	char path[SYSFS_PATH], target[SYSFS_PATH];
	const char *word;
	ssize_t n;

	*to = '\0';
	if (fxi_sysfs_path(path, env->root, DEVICES "/%s/%s", name, file))
		return;
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	word = strrchr(target, '/');
	snprintf(to, size, "%s", word ? word + 1 : target);
	visible(to);
}

/* A speed that no link has is garbage. */
static void read_link(const struct p2p_env *env, const char *name,
		      const char *which, struct pci_link *l)
{
	l->speed = fxi_device_speed(env, name, which);
	l->width = fxi_device_width(env, name, which);
	if (!pcie_rate(l->speed / 1000.0, l->width))
		*l = (struct pci_link){ 0, 0 };
}

static bool has_file(const struct p2p_env *env, const char *name,
		     const char *file)
{
	char path[SYSFS_PATH];

	return !fxi_sysfs_path(path, env->root, DEVICES "/%s/%s", name, file) &&
	       !access(path, F_OK);
}

static void read_power(const struct p2p_env *env, struct pci_function *f)
{
	char text[16];

	if (fxi_device_line(env, f->name, "power_state", text, sizeof(text)) &&
	    (!strcmp(text, "D3hot") || !strcmp(text, "D3cold")))
		memcpy(f->power, text, strlen(text) + 1);
}

static void read_group(const struct p2p_env *env, struct pci_function *f)
{
	function_link_word(env, f->name, "iommu_group", f->group, sizeof(f->group));
	fxi_host_iommu(env->root, f->name, f->group_type,
		       sizeof(f->group_type));
	visible(f->group_type);
}

static void read_attributes(const struct p2p_env *env, struct pci_function *f)
{
	const char *name = f->name;

	f->vendor = fxi_device_hex(env, name, "vendor", 0xffff);
	f->device = fxi_device_hex(env, name, "device", 0xffff);
	f->subvendor = fxi_device_hex(env, name, "subsystem_vendor", 0xffff);
	f->subdevice = fxi_device_hex(env, name, "subsystem_device", 0xffff);
	f->class_code = fxi_device_hex(env, name, "class", 0xffffff);
	f->express = has_file(env, name, "current_link_speed") ||
		     has_file(env, name, "max_link_speed");
	read_link(env, name, "current", &f->link);
	read_link(env, name, "max", &f->most);
	f->numa_node = fxi_device_numa(env, name);
	function_link_word(env, name, "driver", f->driver, sizeof(f->driver));
	function_link_word(env, name, "physfn", f->physfn, sizeof(f->physfn));
	read_power(env, f);
	read_group(env, f);
}

/* ---- the tree ------------------------------------------------------------ */

/* What was found, before it is in the order of the tree. */
struct found {
	struct pci_function f;
	char above[PCI_NAME_LEN];
	bool done;
};

struct search {
	const struct p2p_env *env;
	struct found *v;
	size_t n, room;
};

/* Where sysfs has it: below another function, or below a host bridge. */
static bool find_above(const struct p2p_env *env, const char *name,
		       char above[PCI_NAME_LEN])
{
	char link[SYSFS_PATH], top[SYSFS_PATH], path[SYSFS_PATH], *end, *word;

	if (fxi_sysfs_path(link, env->root, DEVICES "/%s", name) ||
	    fxi_sysfs_path(top, env->root, "/sys/devices") ||
	    !fxi_sysfs_resolve(link, top, path))
		return false;
	end = strrchr(path, '/');
	if (strcmp(end + 1, name))
		return false;
	*end = '\0';
	word = strrchr(path, '/');
	if (!word || strlen(word + 1) >= PCI_NAME_LEN)
		return false;
	memcpy(above, word + 1, strlen(word));
	visible(above);
	return true;
}

static bool take(struct search *s, const char *entry)
{
	struct found new = { .done = false };

	if (!fxi_pci_parse(entry, &new.f.addr))
		return false;
	fxi_pci_name(&new.f.addr, new.f.name);
	if (strcmp(new.f.name, entry) || s->n == MOST ||
	    !find_above(s->env, entry, new.above))
		return false;
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->v = xrealloc(s->v, s->room * sizeof(*s->v));
	}
	s->v[s->n++] = new;
	return true;
}

static uint64_t address_value(const struct pci_addr *a)
{
	return (uint64_t)a->domain << 16 | a->bus << 8 | a->device << 3 |
	       a->function;
}

static int by_address(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	uint64_t one = address_value(&x->f.addr);
	uint64_t other = address_value(&y->f.addr);

	return (one > other) - (one < other);
}

static bool is_found(const struct search *s, const char *name)
{
	struct found key = { .done = false };

	return fxi_pci_parse(name, &key.f.addr) &&
	       bsearch(&key, s->v, s->n, sizeof(*s->v), by_address);
}

static bool is_root_bus(const struct search *s, const struct found *f)
{
	return !strncmp(f->above, "pci", 3) || !is_found(s, f->above);
}

/* @f and what is below it; a directory is above what is in it, so no circle. */
static void place(struct search *s, struct pci_tree *t, struct found *f,
		  struct pci_function *up)
{
	const size_t at = t->n++;
	struct pci_function *own = &t->v[at];
	size_t i;

	f->done = true;
	*own = f->f;
	own->up = up;
	own->depth = up ? up->depth + 1 : 0;
	snprintf(own->host, sizeof(own->host), "%s", up ? up->host :
		 strncmp(f->above, "pci", 3) ? "" : f->above);
	for (i = 0; i < s->n && own->depth < PCI_DEPTH; i++)
		if (!s->v[i].done && !strcmp(s->v[i].above, own->name))
			place(s, t, &s->v[i], own);
	own->below = t->n - at - 1;
}

static void arrange(struct search *s, struct pci_tree *t)
{
	size_t i;

	t->v = xcalloc(s->n + 1, sizeof(*t->v));
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_address);
	for (i = 0; i < s->n; i++)
		if (!s->v[i].done && is_root_bus(s, &s->v[i]))
			place(s, t, &s->v[i], NULL);
	t->odd += s->n - t->n;
}

/* ---- registers ----------------------------------------------------------- */

bool function_is_cold(const struct pci_function *f)
{
	for (; f; f = f->up)
		if (!strcmp(f->power, "D3cold"))
			return true;
	return false;
}

static void read_acs(const struct pci_dev *dev, struct pci_function *f)
{
	size_t at = fxi_pci_ext_cap(dev, PCI_EXT_CAP_ACS);

	if (at) {
		f->acs_control = fxi_pci_word(dev, at + 6);
		f->acs = fxi_pci_acs_redirect(dev) ? ACS_REDIRECT : ACS_OFF;
	} else if (fxi_pci_ext_known(dev)) {
		f->acs = ACS_NONE;
	}
}

/* Below another bridge, as slots of emulated switches are, it is no root port. */
static enum function_kind kind_of_type(const struct pci_function *f, int type)
{
	switch (type) {
	case PCI_TYPE_ROOT_PORT:
		return f->up ? FUNCTION_DOWNSTREAM : FUNCTION_ROOT_PORT;
	case PCI_TYPE_UPSTREAM:
		return FUNCTION_UPSTREAM;
	case PCI_TYPE_DOWNSTREAM:
		return FUNCTION_DOWNSTREAM;
	}
	return FUNCTION_BRIDGE;
}

static void read_registers(const struct p2p_env *env, struct pci_function *f)
{
	struct pci_dev *dev = fxi_pci_read(env->root, f->name);
	int type;

	if (!dev)
		return;
	f->gone = dev->config_len >= 4 ? fxi_pci_gone(dev) :
		  dev->config_size > 0 && !dev->unreadable;
	f->unreadable = dev->config_len ? 0 : dev->unreadable;
	type = f->gone ? -1 : fxi_pci_type(dev);
	if (!f->gone)
		read_acs(dev, f);
	if (!f->gone && fxi_pci_bridge(dev))
		f->secondary = dev->config[PCI_SECONDARY_BUS];
	if (f->kind == FUNCTION_BRIDGE && type >= 0) {
		f->kind = kind_of_type(f, type);
		f->supposed = false;
	}
	free(dev);
}

/* ---- kinds --------------------------------------------------------------- */

/* Of the devices below it none is PCI Express: conventional PCI. */
static bool leads_to_pci(const struct pci_function *f)
{
	size_t i;

	for (i = 1; i <= f->below; i++)
		if (f[i].up == f && !f[i].express)
			return true;
	return false;
}

/*
 * Without privilege registers do not tell the type of a port. On a root bus
 * there are root ports; a link leads from one port down to a device, which is a
 * switch if it is a bridge, and the bridges inside are its downstream ports.
 */
static void suppose_kind(struct pci_function *f)
{
	const struct pci_function *up = f->up;

	if (f->kind != FUNCTION_BRIDGE || !f->express)
		return;
	if (!up)
		f->kind = FUNCTION_ROOT_PORT;
	else if (up->kind == FUNCTION_UPSTREAM)
		f->kind = FUNCTION_DOWNSTREAM;
	else if ((up->kind == FUNCTION_ROOT_PORT ||
		  up->kind == FUNCTION_DOWNSTREAM) && !leads_to_pci(f))
		f->kind = FUNCTION_UPSTREAM;
	f->supposed = f->kind != FUNCTION_BRIDGE;
}

static enum function_kind kind_of(const struct pci_function *f)
{
	enum function_kind known = pci_name_kind(f);

	if (known != FUNCTION_OTHER)
		return known;
	switch (fxi_device_kind(f->class_code, f->vendor, f->device)) {
	case FABREX_DEVICE_GPU:
		return FUNCTION_GPU;
	case FABREX_DEVICE_NVME:
		return FUNCTION_NVME;
	case FABREX_DEVICE_NIC:
		return FUNCTION_NIC;
	case FABREX_DEVICE_FPGA:
		return FUNCTION_FPGA;
	}
	switch (f->class_code >> 8) {
	case 0x0600:
		return FUNCTION_HOST_BRIDGE;
	case 0x0604:
		return FUNCTION_BRIDGE;
	}
	return FUNCTION_OTHER;
}

static void find_kind(const struct p2p_env *env, struct pci_function *f)
{
	f->kind = kind_of(f);
	if (f->kind == FUNCTION_OTHER && has_file(env, f->name, "dma"))
		f->kind = FUNCTION_DMA;
	if (!function_is_cold(f))
		read_registers(env, f);
	suppose_kind(f);
}

/* ---- slots and Virtual Functions ----------------------------------------- */

/* "0000:05:00": the bus below the slot's bridge. */
static bool slot_bus(const struct p2p_env *env, const char *slot,
		     struct pci_addr *bus)
{
	char path[SYSFS_PATH], text[32], full[40];

	if (fxi_sysfs_path(path, env->root, "/sys/bus/pci/slots/%s/address",
			   slot) || !fxi_sysfs_line(path, text, sizeof(text)))
		return false;
	snprintf(full, sizeof(full), "%s.0", text);
	return fxi_pci_parse(full, bus);
}

static void name_slot(struct pci_tree *t, const struct pci_addr *bus,
		      const char *slot)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->v[i].secondary && t->v[i].secondary == bus->bus &&
		    t->v[i].addr.domain == bus->domain) {
			snprintf(t->v[i].slot, sizeof(t->v[i].slot), "%s",
				 slot);
			visible(t->v[i].slot);
		}
}

static void read_slots(const struct p2p_env *env, struct pci_tree *t)
{
	char path[SYSFS_PATH];
	struct pci_addr bus;
	const char *entry;
	DIR *dir = NULL;

	if (!fxi_sysfs_path(path, env->root, "/sys/bus/pci/slots"))
		dir = opendir(path);
	while (dir && (entry = fxi_sysfs_next(dir)))
		if (slot_bus(env, entry, &bus))
			name_slot(t, &bus, entry);
	if (dir)
		closedir(dir);
}

static void count_vfs(struct pci_tree *t)
{
	size_t i, k;

	for (i = 0; i < t->n; i++)
		for (k = 0; *t->v[i].physfn && k < t->n; k++)
			t->v[k].vfs += !strcmp(t->v[k].name, t->v[i].physfn);
}

/* ---- all of it ----------------------------------------------------------- */

static void search(struct search *s, struct pci_tree *t)
{
	char path[SYSFS_PATH];
	const char *entry;
	DIR *dir = NULL;

	errno = ENAMETOOLONG;
	if (!fxi_sysfs_path(path, s->env->root, DEVICES))
		dir = opendir(path);
	if (!dir)
		t->unreadable = errno;
	while (dir && (entry = fxi_sysfs_next(dir)))
		t->odd += !take(s, entry);
	if (dir)
		closedir(dir);
}

void pci_tree_read(const struct p2p_env *env, struct pci_tree *t)
{
	struct search s = { .env = env };
	size_t i;

	memset(t, 0, sizeof(*t));
	search(&s, t);
	for (i = 0; i < s.n; i++)
		read_attributes(env, &s.v[i].f);
	arrange(&s, t);
	for (i = 0; i < t->n; i++)
		find_kind(env, &t->v[i]);
	read_slots(env, t);
	count_vfs(t);
	free(s.v);
}

void pci_tree_free(struct pci_tree *t)
{
	free(t->v);
	memset(t, 0, sizeof(*t));
}

const struct pci_function *pci_tree_find(const struct pci_tree *t,
					 const char *name)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (!strcmp(t->v[i].name, name))
			return &t->v[i];
	return NULL;
}

bool function_is_bridge(const struct pci_function *f)
{
	return f->kind == FUNCTION_ROOT_PORT || f->kind == FUNCTION_UPSTREAM ||
	       f->kind == FUNCTION_DOWNSTREAM || f->kind == FUNCTION_BRIDGE;
}

/* The link of a port that leads down is told by what is below. */
struct pci_link function_attainable(const struct pci_function *f)
{
	const struct pci_function *up = f->up;
	struct pci_link l = f->most;

	if (!l.speed || !up || !up->most.speed || f->kind == FUNCTION_DOWNSTREAM)
		return (struct pci_link){ 0, 0 };
	if (up->most.speed < l.speed)
		l.speed = up->most.speed;
	if (up->most.width < l.width)
		l.width = up->most.width;
	return l;
}

bool function_is_slow(const struct pci_function *f)
{
	const struct pci_link can = function_attainable(f);

	return f->link.speed && can.speed &&
	       (f->link.speed < can.speed || f->link.width < can.width);
}

bool function_hides_acs(const struct pci_function *f)
{
	return f->acs == ACS_UNKNOWN && f->express && !f->gone &&
	       !function_is_cold(f) && (f->kind == FUNCTION_ROOT_PORT ||
					f->kind == FUNCTION_DOWNSTREAM);
}

static const char *const kind_words_table[FUNCTION_KINDS + 1] = {
	[FUNCTION_OTHER] = "other",
	[FUNCTION_GPU] = "gpu",
	[FUNCTION_NVME] = "nvme",
	[FUNCTION_NIC] = "nic",
	[FUNCTION_FPGA] = "fpga",
	[FUNCTION_ROOT_PORT] = "root-port",
	[FUNCTION_UPSTREAM] = "upstream-port",
	[FUNCTION_DOWNSTREAM] = "downstream-port",
	[FUNCTION_BRIDGE] = "bridge",
	[FUNCTION_HOST_BRIDGE] = "host-bridge",
	[FUNCTION_NTB] = "ntb",
	[FUNCTION_DMA] = "dma",
	[FUNCTION_MANAGEMENT] = "management",
	[FUNCTION_FPORT] = "fport",
};

const char *function_kind_name(enum function_kind kind)
{
	return kind < FUNCTION_KINDS ? kind_words_table[kind] : "other";
}

const char *const *function_kind_words(void)
{
	return kind_words_table;
}

const char *acs_name(enum acs_state acs)
{
	switch (acs) {
	case ACS_NONE:
		return "none";
	case ACS_OFF:
		return "off";
	case ACS_REDIRECT:
		return "redirect";
	default:
		return NULL;
	}
}
