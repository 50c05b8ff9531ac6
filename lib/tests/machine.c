// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A machine made of files: the parts of sysfs and proc that lib/p2p/ reads.
 * For tests; a file that cannot be made ends them.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine.h"

#define CONFIG_SIZE	4096
#define MIB		(1ull << 20)

static void die(const char *what)
{
	printf("# test machine: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

static const char *below(struct machine *m, const char *path)
{
	static char full[2048];

	snprintf(full, sizeof(full), "%s/%s", m->root, path);
	return full;
}

static void make_dirs(char *path)
{
	char *slash = path;

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			die(path);
		*slash = '/';
	}
}

void machine_file(struct machine *m, const char *path, const void *data,
		  size_t size)
{
	char full[2048];
	int fd;

	snprintf(full, sizeof(full), "%s", below(m, path));
	make_dirs(full);
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		die(full);
	close(fd);
}

void machine_text(struct machine *m, const char *path, const char *text)
{
	machine_file(m, path, text, strlen(text));
}

void machine_link(struct machine *m, const char *path, const char *to)
{
	char full[2048], target[2048];

	snprintf(full, sizeof(full), "%s", below(m, path));
	snprintf(target, sizeof(target), "%s", *to == '/' ? below(m, to + 1) :
		 to);
	make_dirs(full);
	unlink(full);
	if (symlink(target, full))
		die(full);
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void machine_remove(struct machine *m, const char *path)
{
	nftw(below(m, path), remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- configuration space ------------------------------------------------ */

static void put(uint8_t *config, unsigned int at, uint32_t value, int bytes)
{
	for (; bytes > 0; bytes--, value >>= 8)
		config[at++] = value;
}

static void make_config(uint8_t *config, uint32_t id, int type)
{
	bool bridge = type != EXPRESS_ENDPOINT;

	put(config, 0x00, id >> 16 | id << 16, 4);
	put(config, 0x04, 0x0006, 2);
	put(config, 0x06, 0x0010, 2);
	config[0x0e] = bridge;
	config[0x34] = AT_PM;
	put(config, AT_PM, AT_EXPRESS << 8 | 0x01, 2);
	put(config, AT_EXPRESS, 0x10, 2);
	/* With a slot; its link is reported and up. */
	put(config, AT_EXPRESS + 0x02, (bridge ? 0x0102 : 2) | type << 4, 2);
	put(config, AT_EXPRESS + 0x0c, 1u << 20, 4);
	put(config, AT_EXPRESS + 0x12, 0x2000, 2);
	if (type != EXPRESS_ROOT_PORT && type != EXPRESS_DOWNSTREAM)
		return;
	put(config, AT_ACS, 0x0001000d, 4);
	put(config, AT_ACS + 4, 0x007f, 2);
}

const char *machine_at(struct machine *m, const char *name, const char *file)
{
	static char path[512];

	(void)m;
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/%s", name, file);
	return path;
}

void machine_device(struct machine *m, const char *above, const char *name,
		    uint32_t id, int type)
{
	uint8_t config[CONFIG_SIZE] = { 0 };
	char path[2048], link[128];

	make_config(config, id, type);
	snprintf(path, sizeof(path), "sys/devices/%s/%s/config", above, name);
	machine_file(m, path, config, sizeof(config));
	snprintf(path, sizeof(path), "../../../devices/%s/%s", above, name);
	snprintf(link, sizeof(link), "sys/bus/pci/devices/%s", name);
	machine_link(m, link, path);
	machine_text(m, machine_at(m, name, "power_state"), "D0\n");
}

static void poke_bytes(struct machine *m, const char *name, unsigned int at,
		       uint64_t value, int bytes)
{
	int fd = open(below(m, machine_at(m, name, "config")), O_WRONLY);

	if (fd < 0 || pwrite(fd, &value, bytes, at) != bytes)
		die(name);
	close(fd);
}

void machine_poke(struct machine *m, const char *name, unsigned int at,
		  uint16_t value)
{
	poke_bytes(m, name, at, value, 2);
}

void machine_config(struct machine *m, const char *name, uint8_t fill,
		    size_t size)
{
	uint8_t config[CONFIG_SIZE];

	memset(config, fill, sizeof(config));
	machine_file(m, machine_at(m, name, "config"), config, size);
}

void machine_cut(struct machine *m, const char *name, size_t size)
{
	if (truncate(below(m, machine_at(m, name, "config")), size))
		die(name);
}

static const char *const all_devices[] = {
	"0000:00:00.0", "0000:00:05.0", "0000:01:00.0", "0000:02:00.0",
	"0000:02:01.0", "0000:02:02.0", "0000:02:03.0", "0000:03:00.0",
	"0000:04:00.0", "0000:05:00.0", "0000:00:06.0", "0000:10:00.0",
	"0000:11:00.0", "0000:12:00.0", "0001:00:00.0", "0001:00:01.0",
	"0001:01:00.0", NULL
};

void machine_cut_all(struct machine *m, size_t size)
{
	int i;

	for (i = 0; all_devices[i]; i++)
		machine_cut(m, all_devices[i], size);
}

void machine_acs(struct machine *m, const char *name, uint16_t control)
{
	machine_poke(m, name, AT_ACS + 6, control);
}

/* ---- resources and the rest --------------------------------------------- */

void machine_memory(struct machine *m, const char *name, uint64_t base,
		    uint64_t size)
{
	char text[2048];
	uint8_t header = 0;
	int i, n = 0, line, fd;

	fd = open(below(m, machine_at(m, name, "config")), O_RDONLY);
	if (fd < 0 || pread(fd, &header, 1, 0x0e) != 1)
		die(name);
	close(fd);
	line = header ? 15 : 2;
	for (i = 0; i < 17; i++) {
		bool here = i == line && size;

		n += snprintf(text + n, sizeof(text) - n,
			      "0x%016llx 0x%016llx 0x%016llx\n",
			      here ? (unsigned long long)base : 0ull,
			      here ? (unsigned long long)(base + size - 1) :
			      0ull, here ? header ? 0x102201ull : 0x14220cull :
			      0ull);
	}
	machine_text(m, machine_at(m, name, "resource"), text);
	if (!header)
		poke_bytes(m, name, 0x18, size ? base | 0xc : 0, 8);
}

void machine_iommu(struct machine *m, const char *name, const char *type)
{
	char path[64];

	snprintf(path, sizeof(path), "sys/kernel/iommu_groups/%.8s/type", type);
	machine_text(m, path, type);
	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%.8s", type);
	machine_link(m, machine_at(m, name, "iommu_group"), path);
}

void machine_cpu(struct machine *m, const char *vendor, unsigned int family)
{
	char text[128];

	snprintf(text, sizeof(text), "processor\t: 0\nvendor_id\t: %s\n"
		 "cpu family\t: %u\nmodel\t\t: 1\n", vendor, family);
	machine_text(m, "proc/cpuinfo", text);
}

static void first_switch(struct machine *m)
{
#define UP "pci0000:00/0000:00:05.0/0000:01:00.0"
	char name[16];
	unsigned int i;

	machine_device(m, "pci0000:00", "0000:00:05.0", 0x1b36000c,
		       EXPRESS_ROOT_PORT);
	machine_device(m, "pci0000:00/0000:00:05.0", "0000:01:00.0",
		       0x104c8232, EXPRESS_UPSTREAM);
	machine_memory(m, "0000:01:00.0", 0x100000000, 4096 * MIB);
	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "0000:02:%02x.0", i);
		machine_device(m, UP, name, 0x104c8233, EXPRESS_DOWNSTREAM);
		machine_memory(m, name, 0x100000000 + i * 1024 * MIB,
			       1024 * MIB);
		machine_poke(m, name, 0x18, 2 | (3 + i) << 8);
		machine_poke(m, name, 0x1a, 3 + i);
		/* Physical slot number in bits 31 to 19. */
		machine_poke(m, name, AT_EXPRESS + 0x16, (i + 1) << 3);
	}
	machine_device(m, UP "/0000:02:00.0", "0000:03:00.0", 0x1234da00, 0);
	machine_device(m, UP "/0000:02:01.0", "0000:04:00.0", 0x1234da10, 0);
	machine_device(m, UP "/0000:02:02.0", "0000:05:00.0", 0x1234da10, 0);
	machine_memory(m, "0000:03:00.0", 0x100000000, 64 * MIB);
	machine_memory(m, "0000:04:00.0", 0x140000000, 64 * MIB);
	machine_memory(m, "0000:05:00.0", 0x180000000, 64 * MIB);
#undef UP
}

static void others(struct machine *m)
{
#define UP "pci0000:00/0000:00:06.0/0000:10:00.0"
	machine_device(m, "pci0000:00", "0000:00:06.0", 0x1b36000c,
		       EXPRESS_ROOT_PORT);
	machine_device(m, "pci0000:00/0000:00:06.0", "0000:10:00.0",
		       0x104c8232, EXPRESS_UPSTREAM);
	machine_device(m, UP, "0000:11:00.0", 0x104c8233, EXPRESS_DOWNSTREAM);
	machine_device(m, UP "/0000:11:00.0", "0000:12:00.0", 0x1234da10, 0);
	machine_memory(m, "0000:12:00.0", 0x400000000, 64 * MIB);
	machine_device(m, "pci0001:00", "0001:00:00.0", 0x80863c00, 0);
	machine_device(m, "pci0001:00", "0001:00:01.0", 0x80863c02,
		       EXPRESS_ROOT_PORT);
	machine_device(m, "pci0001:00/0001:00:01.0", "0001:01:00.0",
		       0x1234da10, 0);
	machine_memory(m, "0001:01:00.0", 0x800000000, 64 * MIB);
#undef UP
}

void machine_new(struct machine *m)
{
	snprintf(m->root, sizeof(m->root), "/tmp/fabrex-machine-XXXXXX");
	if (!mkdtemp(m->root))
		die(m->root);
	machine_device(m, "pci0000:00", "0000:00:00.0", 0x808629c0, 0);
	first_switch(m);
	others(m);
	machine_cpu(m, "GenuineIntel", 6);
	machine_text(m, "proc/sys/kernel/osrelease", "7.2-test\n");
	machine_text(m, "boot/config-7.2-test",
		     "CONFIG_PCI=y\nCONFIG_PCI_P2PDMA=y\n");
	machine_text(m, "sys/class/fabrex/fabrex0/name", "a.0\n");
	machine_link(m, "sys/class/fabrex/fabrex0/device",
		     "../../../bus/pci/devices/0000:03:00.0");
}

void machine_free(struct machine *m)
{
	machine_remove(m, "");
}
