// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Devices of this machine that could be endpoints of a fabric, by kind and in
 * the order of how near they are. Public half: fabrex_device_list(3).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/export.h"
#include "p2p/near.h"
#include "p2p/sysfs.h"

#define ALL_KINDS (FABREX_DEVICE_GPU | FABREX_DEVICE_NVME | \
		   FABREX_DEVICE_NIC | FABREX_DEVICE_FPGA)

#define VENDOR_AMD	0x1002
#define VENDOR_NVIDIA	0x10de
#define VENDOR_INTEL	0x8086
#define VENDOR_XILINX	0x10ee
#define VENDOR_ALTERA	0x1172
#define VENDOR_QEMU	0x1234

/* ---- kinds -------------------------------------------------------------- */

/* They have the class of accelerators too. */
static bool is_fpga(uint32_t vendor, uint32_t device)
{
	return vendor == VENDOR_XILINX || vendor == VENDOR_ALTERA ||
	       (vendor == VENDOR_QEMU && device == 0xda13);
}

/* A VGA controller may be what shows the console of a server. */
static bool is_gpu_vendor(uint32_t vendor)
{
	return vendor == VENDOR_AMD || vendor == VENDOR_NVIDIA ||
	       vendor == VENDOR_INTEL;
}

uint32_t fxi_device_kind(uint32_t class_code, uint32_t vendor, uint32_t device)
{
	switch (class_code >> 8) {
	case 0x0108:
	case 0x0180:
		return FABREX_DEVICE_NVME;
	case 0x0300:
		return is_gpu_vendor(vendor) ? FABREX_DEVICE_GPU : 0;
	case 0x0302:
	case 0x0380:
		return FABREX_DEVICE_GPU;
	}
	switch (class_code >> 16) {
	case 0x02:
		return FABREX_DEVICE_NIC;
	case 0x12:
		return is_fpga(vendor, device) ? FABREX_DEVICE_FPGA :
						 FABREX_DEVICE_GPU;
	}
	return 0;
}

uint32_t fxi_device_hex(const struct p2p_env *env, const char *name,
			const char *file, uint32_t most)
{
	unsigned int value;
	char text[64];

	return fxi_device_line(env, name, file, text, sizeof(text)) &&
	       sscanf(text, "0x%8x", &value) == 1 && value <= most ? value : 0;
}

static void identify(const struct p2p_env *env, const char *name,
		     struct fabrex_local_device *d)
{
	memset(d, 0, sizeof(*d));
	d->class_code = fxi_device_hex(env, name, "class", 0xffffff);
	d->vendor = fxi_device_hex(env, name, "vendor", 0xffff);
	d->device = fxi_device_hex(env, name, "device", 0xffff);
	d->kind = fxi_device_kind(d->class_code, d->vendor, d->device);
}

/* ---- looking for them --------------------------------------------------- */

/*
 * False: it has gone, or is a Virtual Function; those of one device would hide
 * the others.
 */
static bool look(const struct p2p_env *env, const struct pci_addr *addr,
		 struct local_device *d)
{
	struct fabrex_local_device *out = &d->out;

	fxi_place_find(env, addr, &d->place);
	if (!d->place.known || d->place.chain.dev[0]->virtual) {
		fxi_place_leave(&d->place);
		return false;
	}
	fxi_pci_name(addr, out->pci);
	out->numa_node = d->place.numa_node;
	out->pcie_speed = fxi_device_speed(env, out->pci, "current");
	out->pcie_width = fxi_device_width(env, out->pci, "current");
	out->rate = fxi_place_rate(env, &d->place);
	return true;
}

/* Whether there is room for one more, of @n in use. */
static bool grow(struct local_device **devices, size_t n, size_t *room)
{
	size_t more = *room ? 2 * *room : 16;
	struct local_device *bigger;

	if (n < *room)
		return true;
	bigger = realloc(*devices, more * sizeof(*bigger));
	if (!bigger)
		return false;
	*devices = bigger;
	*room = more;
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct local_device *x = a, *y = b;
	const struct pci_addr *p = &x->place.chain.dev[0]->addr;
	const struct pci_addr *q = &y->place.chain.dev[0]->addr;
	uint64_t one = (uint64_t)p->domain << 24 | p->bus << 16 |
		       p->device << 8 | p->function;
	uint64_t other = (uint64_t)q->domain << 24 | q->bus << 16 |
			 q->device << 8 | q->function;

	return one < other ? -1 : one > other;
}

int fxi_devices_find(const struct p2p_env *env, uint32_t kinds,
		     struct local_device **devices, size_t *n)
{
	char path[SYSFS_PATH];
	struct pci_addr addr;
	const char *entry;
	DIR *dir = NULL;
	size_t room = 0;
	int ret = 0;

	*devices = NULL;
	*n = 0;
	if (!fxi_sysfs_path(path, env->root, "/sys/bus/pci/devices"))
		dir = opendir(path);
	while (!ret && dir && (entry = fxi_sysfs_next(dir))) {
		if (!fxi_pci_parse(entry, &addr))
			continue;
		if (!grow(devices, *n, &room)) {
			ret = fxi_error(ENOMEM, "list of devices: out of memory");
			continue;
		}
		identify(env, entry, &(*devices)[*n].out);
		if ((*devices)[*n].out.kind & kinds &&
		    look(env, &addr, &(*devices)[*n]))
			(*n)++;
	}
	if (dir)
		closedir(dir);
	if (*n)
		qsort(*devices, *n, sizeof(**devices), by_address);
	return ret;
}

void fxi_devices_free(struct local_device *devices, size_t n)
{
	while (n)
		fxi_place_leave(&devices[--n].place);
	free(devices);
}

/* ---- the public half ---------------------------------------------------- */

struct found {
	struct fabrex_local_device device;
	struct nearness near;
	size_t number;
};

static int by_nearness(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int order = fxi_near_compare(&x->near, &y->near);

	return order ? order : x->number < y->number ? -1 : 1;
}

static void copy_out(struct fabrex_local_device *devices, size_t i, size_t size,
		     const struct fabrex_local_device *device)
{
	char *to = (char *)devices + i * size;

	memset(to, 0, size);
	memcpy(to, device, size < sizeof(*device) ? size : sizeof(*device));
}

/* @all are sorted by how near they are to @near. */
static int sort_out(const struct p2p_env *env, const struct place *near,
		    const struct local_device *all, size_t count,
		    struct fabrex_local_device *devices, size_t n, size_t size)
{
	struct found *found = calloc(count ? count : 1, sizeof(*found));
	size_t i;

	if (!found)
		return fxi_error(ENOMEM, "fabrex_device_list: out of memory");
	for (i = 0; i < count; i++) {
		found[i].device = all[i].out;
		found[i].number = i;
		found[i].near = fxi_near(env, near, &all[i].place);
		found[i].device.path = found[i].near.path;
		found[i].device.distance = found[i].near.distance;
	}
	qsort(found, count, sizeof(*found), by_nearness);
	for (i = 0; i < count && i < n; i++)
		copy_out(devices, i, size, &found[i].device);
	free(found);
	return (int)count;
}

int fxi_p2p_devices(const struct p2p_env *env, const char *near, uint32_t kinds,
		    struct fabrex_local_device *devices, size_t n, size_t size)
{
	struct local_device *all = NULL;
	struct place place;
	size_t count = 0;
	int ret;

	if (kinds & ~ALL_KINDS)
		return fxi_error(EINVAL, "fabrex_device_list: unknown kinds 0x%x; use FABREX_DEVICE_*, or 0 for all",
				 kinds & ~ALL_KINDS);
	ret = fxi_place_named(env, near, &place);
	if (!ret)
		ret = fxi_devices_find(env, kinds ? kinds : ALL_KINDS, &all,
				       &count);
	if (!ret)
		ret = sort_out(env, &place, all, count, devices, n, size);
	fxi_devices_free(all, count);
	fxi_place_leave(&place);
	return ret;
}

EXPORT int fabrex_device_list(const char *near, uint32_t kinds,
			      struct fabrex_local_device *devices, size_t n,
			      size_t size)
{
	NO_CANCEL();
	struct p2p_env env;

	if (n && (!devices || !size))
		return fxi_error(EINVAL, "fabrex_device_list: no place for %zu devices; give it, or 0",
				 n);
	fxi_p2p_env(&env);
	return fxi_p2p_devices(&env, near, kinds, devices, n, size);
}

EXPORT const char *fabrex_device_kind_str(int kind)
{
	switch (kind) {
	case FABREX_DEVICE_GPU:
		return "gpu";
	case FABREX_DEVICE_NVME:
		return "nvme";
	case FABREX_DEVICE_NIC:
		return "nic";
	case FABREX_DEVICE_FPGA:
		return "fpga";
	}
	return "unknown";
}
