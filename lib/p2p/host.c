// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What this machine lets pass through its root complex, and what its kernel
 * was built with. The list of host bridges says the same as Linux 7.2 in
 * drivers/pci/p2pdma.c; where a port can be asked, the kernel has the last word.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "p2p/host.h"
#include "p2p/sysfs.h"

#define VENDOR_INTEL	0x8086
#define VENDOR_GOOGLE	0x1ae0
#define ANY_DEVICE	0x10000
#define AMD_ZEN		0x17	/* families from this on */

/* Known to pass requests on between their root ports. */
static const struct {
	uint16_t vendor;
	uint32_t device;
	bool within;		/* but not from one host bridge to another */
} allowed[] = {
	{ VENDOR_INTEL, 0x3c00, true },		/* Xeon E5 */
	{ VENDOR_INTEL, 0x3c01, true },
	{ VENDOR_INTEL, 0x2f00, true },		/* Xeon E5 v3, E7 v3 */
	{ VENDOR_INTEL, 0x2f01, true },
	{ VENDOR_INTEL, 0x2030, false },	/* Xeon Scalable and later */
	{ VENDOR_INTEL, 0x2031, false },
	{ VENDOR_INTEL, 0x2032, false },
	{ VENDOR_INTEL, 0x2033, false },
	{ VENDOR_INTEL, 0x2020, false },
	{ VENDOR_INTEL, 0x09a2, false },
	{ VENDOR_INTEL, 0x0b25, false },	/* accelerators in the CPU */
	{ VENDOR_INTEL, 0x0cfe, false },
	{ VENDOR_INTEL, 0x11fb, false },
	{ VENDOR_INTEL, 0x1212, false },
	{ VENDOR_INTEL, 0x1216, false },
	{ VENDOR_INTEL, 0x4940, false },
	{ VENDOR_INTEL, 0x4942, false },
	{ VENDOR_INTEL, 0x4944, false },
	{ VENDOR_INTEL, 0x4946, false },
	{ VENDOR_INTEL, 0x4948, false },
	{ VENDOR_GOOGLE, ANY_DEVICE, false },
};

/* ---- the processor ------------------------------------------------------ */

/* Value of "key : value" in text like /proc/cpuinfo; NULL if not there. */
static const char *cpu_field(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	at = at ? strchr(at, ':') : NULL;
	return at ? at + 1 + strspn(at + 1, " \t") : NULL;
}

static void note(int *unreadable, int err)
{
	if (fxi_sysfs_refused(err))
		*unreadable = -err;
}

/* Family of the first processor if it is from AMD, else 0. */
static unsigned int amd_family(const char *root, int *unreadable)
{
	static const char amd[] = "AuthenticAMD";
	char path[SYSFS_PATH], text[1024];
	const char *vendor, *family;
	long n;

	if (fxi_sysfs_path(path, root, "/proc/cpuinfo"))
		return 0;
	n = fxi_sysfs_read(path, text, sizeof(text));
	if (n < 0)
		note(unreadable, n);
	if (n <= 0)
		return 0;
	vendor = cpu_field(text, "vendor_id");
	family = cpu_field(text, "cpu family");
	if (!vendor || !family || strncmp(vendor, amd, sizeof(amd) - 1))
		return 0;
	return strtoul(family, NULL, 10);
}

/* ---- host bridges ------------------------------------------------------- */

/* Users see 64 bytes of it; a bridge on the root bus is one then. */
static bool root_port(const struct pci_dev *dev)
{
	if (dev->config_len <= 64)
		return fxi_pci_bridge(dev);
	return fxi_pci_type(dev) == PCI_TYPE_ROOT_PORT;
}

/*
 * The device by which Linux knows a host bridge: the first on its root bus, if
 * that is device 0 function 0 or a root port.
 */
static struct pci_dev *host_device(const char *root,
				   const struct pci_chain *chain,
				   int *unreadable)
{
	unsigned int devfn, lowest = 0x100;
	char best[PCI_NAME_LEN] = "";
	DIR *dir = opendir(chain->host_path);
	struct pci_addr addr;
	struct pci_dev *dev;
	const char *entry;

	if (!dir)
		note(unreadable, -errno);
	while (dir && (entry = fxi_sysfs_next(dir))) {
		if (!fxi_pci_parse(entry, &addr))
			continue;
		devfn = addr.device * 8 + addr.function;
		if (devfn < lowest)
			fxi_pci_name(&addr, best);
		lowest = devfn < lowest ? devfn : lowest;
	}
	if (dir)
		closedir(dir);
	dev = *best ? fxi_pci_read(root, best) : NULL;
	if (dev && dev->unreadable && dev->config_len < 4)
		*unreadable = dev->unreadable;
	else if (!dev || !lowest || root_port(dev))
		return dev;
	free(dev);
	return NULL;
}

/* -1: not on the list; 0: within itself only; 1: to other bridges too. */
static int listed(const struct pci_dev *dev)
{
	uint32_t id = fxi_pci_dword(dev, 0);
	size_t i;

	for (i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (allowed[i].vendor == (id & 0xffff) &&
		    (allowed[i].device == ANY_DEVICE ||
		     allowed[i].device == id >> 16))
			return !allowed[i].within;
	return -1;
}

/* True if the bridge above @chain passes requests on; fills in the text. */
static bool bridge_allows(const char *root, const struct pci_chain *chain,
			  bool same, struct host_verdict *v)
{
	struct pci_dev *dev = host_device(root, chain, &v->unreadable);
	uint32_t id = dev ? fxi_pci_dword(dev, 0) : 0;
	int how = dev ? listed(dev) : -1;
	bool yes = how > 0 || (!how && same);

	free(dev);
	if (!dev && v->unreadable)
		snprintf(v->text, sizeof(v->text), "what sysfs has about the host bridge of %s cannot be read",
			 chain->host);
	else if (!id)
		snprintf(v->text, sizeof(v->text), "%s has no host bridge that Linux could know",
			 chain->host);
	else if (yes)
		snprintf(v->text, sizeof(v->text), "host bridge %04x:%04x",
			 id & 0xffff, id >> 16);
	else if (!how)
		snprintf(v->text, sizeof(v->text), "host bridge %04x:%04x passes requests on only within itself, and these are two",
			 id & 0xffff, id >> 16);
	else
		snprintf(v->text, sizeof(v->text), "host bridge %04x:%04x is not on Linux's list to turn it round",
			 id & 0xffff, id >> 16);
	return yes;
}

void fxi_host_allows(const char *root, const struct pci_chain *a,
		     const struct pci_chain *b, struct host_verdict *v)
{
	bool same = !strcmp(a->host_path, b->host_path);
	unsigned int family;
	int no_cpu = 0;

	v->unreadable = 0;
	family = amd_family(root, &no_cpu);
	v->allowed = family >= AMD_ZEN;
	if (v->allowed) {
		snprintf(v->text, sizeof(v->text), "AMD processor of family 0x%x",
			 family);
		return;
	}
	v->allowed = bridge_allows(root, a, same, v) &&
		     (same || bridge_allows(root, b, same, v));
	if (v->allowed || !no_cpu)
		return;
	v->unreadable = no_cpu;
	snprintf(v->text, sizeof(v->text), "/proc/cpuinfo, which names the processor, cannot be read");
}

/* ---- the kernel --------------------------------------------------------- */

/* One line of a kernel's configuration. */
static enum kernel_option config_option(const char *path)
{
	enum kernel_option found = OPTION_UNKNOWN;
	FILE *f = fopen(path, "re");
	char line[256];

	while (f && found == OPTION_UNKNOWN && fgets(line, sizeof(line), f)) {
		if (!strcmp(line, "CONFIG_PCI_P2PDMA=y\n"))
			found = OPTION_YES;
		else if (!strcmp(line, "# CONFIG_PCI_P2PDMA is not set\n"))
			found = OPTION_NO;
	}
	if (f)
		fclose(f);
	return found;
}

/* Names of the kernel's functions are no secret, only their addresses are. */
static enum kernel_option symbol_option(const char *path)
{
	enum kernel_option found = OPTION_UNKNOWN;
	FILE *f = fopen(path, "re");
	char line[512];

	while (f && found != OPTION_YES && fgets(line, sizeof(line), f)) {
		if (strstr(line, " pci_p2pdma_distance_many"))
			found = OPTION_YES;
		else if (strstr(line, " pci_enable_device"))
			found = OPTION_NO;
	}
	if (f)
		fclose(f);
	return found;
}

/* The kernel that runs first: a file of its release may be of another build. */
enum kernel_option fxi_host_p2pdma(const char *root)
{
	enum kernel_option found = OPTION_UNKNOWN;
	char path[SYSFS_PATH], release[80];

	if (!fxi_sysfs_path(path, root, "/proc/kallsyms"))
		found = symbol_option(path);
	if (found != OPTION_UNKNOWN ||
	    fxi_sysfs_path(path, root, "/proc/sys/kernel/osrelease") ||
	    !fxi_sysfs_line(path, release, sizeof(release)) ||
	    strchr(release, '/'))
		return found;
	if (!fxi_sysfs_path(path, root, "/boot/config-%s", release))
		found = config_option(path);
	if (found == OPTION_UNKNOWN &&
	    !fxi_sysfs_path(path, root, "/lib/modules/%s/config", release))
		found = config_option(path);
	return found;
}

/* ---- IOMMU -------------------------------------------------------------- */

void fxi_host_iommu(const char *root, const char *device, char *type,
		    size_t size)
{
	char path[SYSFS_PATH];

	if (fxi_sysfs_path(path, root, "/sys/bus/pci/devices/%s/iommu_group/type",
			   device) ||
	    !fxi_sysfs_line(path, type, size))
		*type = '\0';
}

bool fxi_host_translates(const char *type)
{
	return !strncmp(type, "DMA", 3) || !strcmp(type, "unmanaged");
}
