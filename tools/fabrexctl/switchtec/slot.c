// SPDX-License-Identifier: GPL-2.0-only
/*
 * Logical ports of this host's partition as Linux sees them: bridges of the
 * switch, the slots below them, and what is in these. Small files of sysfs only:
 * reading all of the PCI tree takes too long while a device is waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric.h"
#include "p2p/near.h"
#include "p2p/sysfs.h"
#include "pcitree.h"
#include "util.h"

#define DEVICES	"/sys/bus/pci/devices"
#define SLOTS	"/sys/bus/pci/slots"
#define DEPTH	8		/* bridges below one another */

bool slot_bridge(const struct p2p_env *env, const char *management,
		 unsigned int logical, char bridge[PCI_NAME_LEN])
{
	char path[SYSFS_PATH], upstream[PCI_NAME_LEN];
	struct pci_addr addr;
	const char *entry;
	bool found = false;
	DIR *dir = NULL;

	if (!fxi_p2p_upstream(management, upstream))
		return false;
	if (!fxi_sysfs_path(path, env->root, DEVICES "/%s", upstream))
		dir = opendir(path);
	while (dir && !found && (entry = fxi_sysfs_next(dir))) {
		found = fxi_pci_parse(entry, &addr) && !addr.function &&
			fxi_p2p_logical(&addr) == logical;
		if (found)
			fxi_pci_name(&addr, bridge);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* ---- what is in it ------------------------------------------------------- */

static uint32_t kind_of(const struct p2p_env *env, const char *name,
			uint32_t class)
{
	uint32_t vendor = fxi_device_hex(env, name, "vendor", 0xffff);
	uint32_t device = fxi_device_hex(env, name, "device", 0xffff);

	switch (fxi_device_kind(class, vendor, device)) {
	case FABREX_DEVICE_GPU:
		return FABREX_ENDPOINT_KIND_GPU;
	case FABREX_DEVICE_NVME:
		return FABREX_ENDPOINT_KIND_NVME;
	case FABREX_DEVICE_NIC:
		return FABREX_ENDPOINT_KIND_NIC;
	case FABREX_DEVICE_FPGA:
		return FABREX_ENDPOINT_KIND_FPGA;
	}
	return 0;
}

/* A Virtual Function comes with its physical one; files do not list it. */
static bool is_virtual(const struct p2p_env *env, const char *name)
{
	char path[SYSFS_PATH];

	return !fxi_sysfs_path(path, env->root, DEVICES "/%s/physfn", name) &&
	       !access(path, F_OK);
}

struct look {
	const struct p2p_env *env;
	struct below *v;
	unsigned int n;
};

static void look_below(struct look *l, const char *bridge, unsigned int depth)
{
	char path[SYSFS_PATH], name[PCI_NAME_LEN];
	struct pci_addr addr;
	const char *entry;
	uint32_t class;
	DIR *dir = NULL;

	if (depth < DEPTH &&
	    !fxi_sysfs_path(path, l->env->root, DEVICES "/%s", bridge))
		dir = opendir(path);
	while (dir && l->n < BELOW_MOST && (entry = fxi_sysfs_next(dir))) {
		if (!fxi_pci_parse(entry, &addr))
			continue;
		fxi_pci_name(&addr, name);
		class = fxi_device_hex(l->env, name, "class", 0xffffff);
		if (class >> 8 == 0x0604) {
			look_below(l, name, depth + 1);
			continue;
		}
		memcpy(l->v[l->n].name, name, sizeof(name));
		l->v[l->n].kind = kind_of(l->env, name, class);
		l->v[l->n].virtual = is_virtual(l->env, name);
		function_link_word(l->env, name, "driver", l->v[l->n].driver,
				   sizeof(l->v[l->n].driver));
		l->n++;
	}
	if (dir)
		closedir(dir);
}

/* Names have a fixed form, so that their order is that of addresses. */
static int by_name(const void *a, const void *b)
{
	const struct below *x = a, *y = b;

	return strcmp(x->name, y->name);
}

unsigned int slot_below(const struct p2p_env *env, const char *bridge,
			struct below v[BELOW_MOST])
{
	struct look l = { .env = env, .v = v };

	look_below(&l, bridge, 0);
	qsort(v, l.n, sizeof(*v), by_name);
	return l.n;
}

/* ---- power --------------------------------------------------------------- */

static bool secondary_bus(const struct p2p_env *env, const char *bridge,
			  char bus[32])
{
	struct pci_addr addr;
	char text[16];
	uint64_t n;

	if (!fxi_device_line(env, bridge, "secondary_bus_number", text,
			     sizeof(text)) ||
	    !parse_u64(text, 1, 255, &n) || !fxi_pci_parse(bridge, &addr))
		return false;
	snprintf(bus, 32, "%04x:%02x:00", addr.domain, (unsigned int)n);
	return true;
}

/* The directory of the slot below; "" if there is none. */
static void find_slot(const struct p2p_env *env, const char *bridge,
		      char slot[SYSFS_PATH])
{
	char path[SYSFS_PATH], text[32], bus[32];
	const char *entry;
	bool found = false;
	DIR *dir = NULL;

	slot[0] = '\0';
	if (secondary_bus(env, bridge, bus) &&
	    !fxi_sysfs_path(path, env->root, SLOTS))
		dir = opendir(path);
	while (dir && !found && (entry = fxi_sysfs_next(dir)))
		found = !fxi_sysfs_path(path, env->root, SLOTS "/%s/address",
					entry) &&
			fxi_sysfs_line(path, text, sizeof(text)) &&
			!strcmp(text, bus) &&
			!fxi_sysfs_path(slot, env->root, SLOTS "/%s", entry);
	if (dir)
		closedir(dir);
	if (!found)
		slot[0] = '\0';
}

bool slot_is_off(const struct p2p_env *env, const char *bridge)
{
	char slot[SYSFS_PATH], path[SYSFS_PATH + 8], text[8];

	find_slot(env, bridge, slot);
	if (!*slot)
		return false;
	snprintf(path, sizeof(path), "%s/power", slot);
	return fxi_sysfs_line(path, text, sizeof(text)) && !strcmp(text, "0");
}

int slot_power(const struct p2p_env *env, const char *bridge, bool on,
	       struct err *e)
{
	char slot[SYSFS_PATH], path[SYSFS_PATH + 8];
	int fd, r = 0;

	find_slot(env, bridge, slot);
	if (!*slot)
		return err_set(e, EOPNOTSUPP, bridge, "the bridge %s has no "
			       "slot below it that Linux's pciehp drives, so "
			       "nothing can be taken out in order; see \"dmesg "
			       "| grep pciehp\"", bridge);
	snprintf(path, sizeof(path), "%s/power", slot);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, on ? "1" : "0", 1) != 1)
		r = err_set(e, errno, bridge, "cannot power %s the slot below "
			    "bridge %s (%s): %s", on ? "on" : "off", bridge,
			    path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return r;
}
