// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * PCI devices as sysfs shows them: addresses, configuration space, resources,
 * the bridges above. Every offset found in a device is checked: what is read
 * may be all ones, cut short, or nonsense.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "p2p/pci.h"
#include "p2p/sysfs.h"

/* ---- addresses ---------------------------------------------------------- */

/* 1 to @digits hexadecimal digits and the character @end. */
static const char *parse_hex(const char *s, int digits, char end, uint32_t *out)
{
	static const char hex[] = "0123456789abcdef";
	uint32_t value = 0;
	int n = 0;

	for (; n < digits && *s; s++, n++) {
		char c = *s >= 'A' && *s <= 'F' ? *s - 'A' + 'a' : *s;
		const char *at = strchr(hex, c);

		if (!at)
			break;
		value = value << 4 | (uint32_t)(at - hex);
	}
	*out = value;
	return n && *s == end ? s + 1 : NULL;
}

bool fxi_pci_parse(const char *text, struct pci_addr *addr)
{
	uint32_t domain = 0, bus = 0, device = 0, function = 0;
	const char *s = text, *first = strchr(text, ':');

	if (first && strchr(first + 1, ':'))
		s = parse_hex(s, 5, ':', &domain);
	if (s)
		s = parse_hex(s, 2, ':', &bus);
	if (s)
		s = parse_hex(s, 2, '.', &device);
	if (s)
		s = parse_hex(s, 1, '\0', &function);
	if (!s || device > 0x1f || function > 7)
		return false;
	*addr = (struct pci_addr){ domain, bus, device, function };
	return true;
}

void fxi_pci_name(const struct pci_addr *addr, char name[PCI_NAME_LEN])
{
	snprintf(name, PCI_NAME_LEN, "%04x:%02x:%02x.%x",
		 addr->domain & 0xfffff, addr->bus, addr->device & 0x1f,
		 addr->function & 7);
}

/* ---- registers ---------------------------------------------------------- */

uint16_t fxi_pci_word(const struct pci_dev *dev, size_t at)
{
	if (at + 2 > dev->config_len)
		return 0;
	return dev->config[at] | dev->config[at + 1] << 8;
}

uint32_t fxi_pci_dword(const struct pci_dev *dev, size_t at)
{
	if (at + 4 > dev->config_len)
		return 0;
	return fxi_pci_word(dev, at) | (uint32_t)fxi_pci_word(dev, at + 2) << 16;
}

/* Vendor and Device ID of a Virtual Function are all ones while it is there. */
bool fxi_pci_gone(const struct pci_dev *dev)
{
	if (dev->absent || (dev->unreadable && dev->config_len < 4))
		return false;
	return dev->config_len < 4 ||
	       fxi_pci_dword(dev, dev->virtual ? PCI_COMMAND : 0) == 0xffffffff;
}

bool fxi_pci_bridge(const struct pci_dev *dev)
{
	return dev->config_len > PCI_HEADER_TYPE &&
	       (dev->config[PCI_HEADER_TYPE] & 0x7f) == 1;
}

size_t fxi_pci_cap(const struct pci_dev *dev, uint8_t id)
{
	size_t at;
	int i;

	if (dev->config_len <= PCI_CAPABILITIES || fxi_pci_gone(dev))
		return 0;
	at = dev->config[PCI_CAPABILITIES] & ~3u;
	for (i = 0; i < 48 && at >= 0x40 && at + 2 <= dev->config_len; i++) {
		if (dev->config[at] == id)
			return at;
		at = dev->config[at + 1] & ~3u;
	}
	return 0;
}

size_t fxi_pci_ext_cap(const struct pci_dev *dev, uint16_t id)
{
	size_t at = 0x100;
	uint32_t head;
	int i;

	for (i = 0; i < 480 && at >= 0x100 && at + 4 <= dev->config_len; i++) {
		head = fxi_pci_dword(dev, at);
		if (!head || head == 0xffffffff)
			return 0;
		if ((head & 0xffff) == id)
			return at;
		at = head >> 20 & 0xffc;
	}
	return 0;
}

bool fxi_pci_ext_known(const struct pci_dev *dev)
{
	return dev->absent || (dev->config_len >= 0x100 &&
			       dev->config_len == dev->config_size);
}

int fxi_pci_type(const struct pci_dev *dev)
{
	size_t at = fxi_pci_cap(dev, PCI_CAP_EXPRESS);

	return at ? fxi_pci_word(dev, at + 2) >> 4 & 0xf : -1;
}

uint16_t fxi_pci_acs_redirect(const struct pci_dev *dev)
{
	size_t at = fxi_pci_ext_cap(dev, PCI_EXT_CAP_ACS);

	return at ? fxi_pci_word(dev, at + 6) & PCI_ACS_REDIR : 0;
}

uint64_t fxi_pci_range_size(const struct pci_range *range)
{
	if (range->end < range->start || (!range->start && !range->end))
		return 0;
	return range->end - range->start + 1;
}

/* ---- devices ------------------------------------------------------------ */

static void refused(struct pci_dev *dev, int err)
{
	if (!dev->unreadable && fxi_sysfs_refused(err))
		dev->unreadable = -err;
}

static void read_ranges(struct pci_dev *dev, const char *path)
{
	char text[4096], *line = text, *next;
	long n = fxi_sysfs_read(path, text, sizeof(text));

	if (n < 0)
		refused(dev, n);
	if (n <= 0)
		return;
	while (dev->ranges < PCI_RANGES && *line) {
		struct pci_range *r = &dev->range[dev->ranges];
		unsigned long long start, end, flags;

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (sscanf(line, "0x%16llx 0x%16llx 0x%16llx", &start, &end,
			   &flags) != 3)
			return;
		*r = (struct pci_range){ start, end, flags };
		dev->ranges++;
		line = next;
	}
}

/* Some more of it; false if that is not to be had. */
static bool look_at(struct pci_dev *dev, int fd, size_t at, size_t size)
{
	return at + size <= dev->config_size &&
	       fxi_sysfs_pread(fd, dev->config + at, size, at);
}

/* Headers of capabilities, and the registers that matter of three of them. */
static bool look_at_caps(struct pci_dev *dev, int fd)
{
	size_t at, size;
	int i;

	at = dev->config[PCI_CAPABILITIES] & ~3u;
	for (i = 0; i < 48 && at >= 0x40; i++) {
		if (!look_at(dev, fd, at, 2))
			return false;
		size = dev->config[at] == PCI_CAP_PM ? 8 :
		       dev->config[at] == PCI_CAP_EXPRESS ? 0x18 : 2;
		if (at + size <= 0x100 && !look_at(dev, fd, at, size))
			return false;
		at = dev->config[at + 1] & ~3u;
	}
	return true;
}

static bool look_at_ext_caps(struct pci_dev *dev, int fd)
{
	size_t at = 0x100, next;
	uint32_t head;
	int i;

	for (i = 0; i < 480 && at >= 0x100; i++) {
		if (!look_at(dev, fd, at, 4))
			return false;
		head = dev->config[at] | dev->config[at + 1] << 8;
		next = (dev->config[at + 2] >> 4 | dev->config[at + 3] << 4) &
		       0xffc;
		if (head == PCI_EXT_CAP_ACS)
			return look_at(dev, fd, at, 8);
		if (!head || head == 0xffff)
			return true;
		at = next;
	}
	return true;
}

/*
 * Not more than needed: each register is an access to the device, and some do
 * not like all of theirs to be read.
 */
static void read_config(struct pci_dev *dev, const char *path)
{
	int fd = fxi_sysfs_open(path, &dev->config_size);
	size_t at;

	if (fd < 0) {
		refused(dev, fd);
		return;
	}
	if (dev->config_size > PCI_CONFIG_SIZE)
		dev->config_size = PCI_CONFIG_SIZE;
	for (at = 0; at < 0x40 && look_at(dev, fd, at, 4); at += 4)
		;
	dev->config_len = at;
	if (!at && dev->config_size >= 4)
		refused(dev, -errno);
	if (at == 0x40 && !fxi_pci_gone(dev) && look_at_caps(dev, fd) &&
	    (dev->config_size <= 0x100 || look_at_ext_caps(dev, fd)))
		dev->config_len = dev->config_size;
	close(fd);
}

/* Of the kernel's words only those that say that it sleeps. */
static void read_power(struct pci_dev *dev, const char *path)
{
	char text[16];

	if (fxi_sysfs_line(path, text, sizeof(text)) &&
	    (!strcmp(text, "D3hot") || !strcmp(text, "D3cold")))
		memcpy(dev->power, text, strlen(text) + 1);
}

static void read_files(struct pci_dev *dev, const char *dir)
{
	char path[SYSFS_PATH];

	if (!fxi_sysfs_path(path, dir, "/physfn"))
		dev->virtual = !access(path, F_OK);
	if (!fxi_sysfs_path(path, dir, "/config"))
		read_config(dev, path);
	if (!fxi_sysfs_path(path, dir, "/resource"))
		read_ranges(dev, path);
	if (!fxi_sysfs_path(path, dir, "/power_state"))
		read_power(dev, path);
	if (!fxi_sysfs_path(path, dir, "/driver"))
		dev->driver = !access(path, F_OK);
}

static struct pci_dev *device_new(const struct pci_addr *addr, const char *dir)
{
	struct pci_dev *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return NULL;
	dev->addr = *addr;
	fxi_pci_name(addr, dev->name);
	read_files(dev, dir);
	return dev;
}

struct pci_dev *fxi_pci_read(const char *root, const char *name)
{
	char dir[SYSFS_PATH];
	struct pci_addr addr;

	if (!fxi_pci_parse(name, &addr) ||
	    fxi_sysfs_path(dir, root, "/sys/bus/pci/devices/%s", name) ||
	    access(dir, F_OK))
		return NULL;
	return device_new(&addr, dir);
}

/* ---- chains ------------------------------------------------------------- */

static bool is_host(const char *name)
{
	uint32_t bus, domain;
	const char *s;

	if (strncmp(name, "pci", 3) || strlen(name) >= PCI_NAME_LEN)
		return false;
	s = parse_hex(name + 3, 5, ':', &domain);
	return s && parse_hex(s, 2, '\0', &bus);
}

static int set_host(struct pci_chain *chain, char *path, char *name)
{
	snprintf(chain->host, sizeof(chain->host), "%s", name);
	if (strlen(path) >= sizeof(chain->host_path))
		return -EUCLEAN;
	memcpy(chain->host_path, path, strlen(path) + 1);
	return chain->n ? 0 : -EUCLEAN;
}

/* @path ends with the device; go up one directory after the other. */
static int climb(struct pci_chain *chain, char *path)
{
	struct pci_addr addr;
	char *name;

	while ((name = strrchr(path, '/'))) {
		name++;
		if (is_host(name))
			return set_host(chain, path, name);
		if (chain->n == PCI_DEPTH || !fxi_pci_parse(name, &addr))
			return -EUCLEAN;
		chain->dev[chain->n] = device_new(&addr, path);
		if (!chain->dev[chain->n])
			return -ENOMEM;
		chain->n++;
		name[-1] = '\0';
	}
	return -EUCLEAN;
}

int fxi_pci_chain(const char *root, const struct pci_addr *addr,
		  struct pci_chain *chain)
{
	char path[SYSFS_PATH], top[SYSFS_PATH], full[SYSFS_PATH];
	char name[PCI_NAME_LEN];
	int ret;

	memset(chain, 0, sizeof(*chain));
	fxi_pci_name(addr, name);
	if (fxi_sysfs_path(top, root, "/sys/devices") ||
	    fxi_sysfs_path(path, root, "/sys/bus/pci/devices/%s", name))
		return -ENAMETOOLONG;
	if (!fxi_sysfs_resolve(path, top, full)) {
		if (!access(path, F_OK))
			return -EUCLEAN;
		return fxi_sysfs_refused(-errno) ? -errno : -ENODEV;
	}
	ret = climb(chain, full);
	if (!ret && strcmp(chain->dev[0]->name, name))
		ret = -EUCLEAN;
	return ret;
}

void fxi_pci_chain_free(struct pci_chain *chain)
{
	while (chain->n)
		free(chain->dev[--chain->n]);
}
