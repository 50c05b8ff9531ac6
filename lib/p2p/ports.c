// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Local fabric ports as PCI devices, and what the kernel says through them.
 * Called by query.c, local.c and slot.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/fabrex.h>

#include "p2p/p2p.h"
#include "p2p/sysfs.h"

#define CLASS	"/sys/class/fabrex"

/* "fabrex12", nothing else. */
static bool port_index(const char *name, unsigned int *index)
{
	char end;

	return !strncmp(name, "fabrex", 6) && name[6] >= '0' &&
	       name[6] <= '9' && strlen(name) < 16 &&
	       sscanf(name + 6, "%u%c", index, &end) == 1;
}

static bool port_addr(const struct p2p_env *env, unsigned int index,
		      struct pci_addr *addr)
{
	char path[SYSFS_PATH], top[SYSFS_PATH], full[SYSFS_PATH];
	const char *name;

	if (fxi_sysfs_path(top, env->root, "/sys/devices") ||
	    fxi_sysfs_path(path, env->root, CLASS "/fabrex%u/device", index) ||
	    !fxi_sysfs_resolve(path, top, full))
		return false;
	name = strrchr(full, '/');
	return name && fxi_pci_parse(name + 1, addr);
}

static bool port_called(const struct p2p_env *env, unsigned int index,
			const char *name)
{
	char path[SYSFS_PATH], text[64];

	return !fxi_sysfs_path(path, env->root, CLASS "/fabrex%u/name",
			       index) &&
	       fxi_sysfs_line(path, text, sizeof(text)) && !strcmp(text, name);
}

static DIR *open_class(const struct p2p_env *env)
{
	char path[SYSFS_PATH];

	return fxi_sysfs_path(path, env->root, CLASS) ? NULL : opendir(path);
}

static int by_number(const void *a, const void *b)
{
	const unsigned int *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

uint32_t fxi_p2p_ports(const struct p2p_env *env, unsigned int *index,
		       uint32_t n)
{
	uint32_t found = 0;
	const char *entry;
	DIR *dir = open_class(env);

	while (dir && found < n && (entry = fxi_sysfs_next(dir)))
		found += port_index(entry, &index[found]);
	if (dir)
		closedir(dir);
	qsort(index, found, sizeof(*index), by_number);
	return found;
}

bool fxi_p2p_port(const struct p2p_env *env, const char *name,
		  struct pci_addr *addr)
{
	bool found = false;
	unsigned int index;
	const char *entry;
	DIR *dir;

	if (port_index(name, &index))
		return port_addr(env, index, addr);
	dir = open_class(env);
	while (dir && !found && (entry = fxi_sysfs_next(dir)))
		found = port_index(entry, &index) &&
			port_called(env, index, name) &&
			port_addr(env, index, addr);
	if (dir)
		closedir(dir);
	return found;
}

bool fxi_p2p_port_on(const struct p2p_env *env, uint32_t domain,
		     unsigned int first_bus, unsigned int last_bus)
{
	struct pci_addr addr;
	unsigned int index;
	const char *entry;
	bool found = false;
	DIR *dir = open_class(env);

	while (dir && !found && (entry = fxi_sysfs_next(dir)))
		found = port_index(entry, &index) &&
			port_addr(env, index, &addr) &&
			addr.domain == domain && addr.bus >= first_bus &&
			addr.bus <= last_bus;
	if (dir)
		closedir(dir);
	return found;
}

static bool same_addr(const struct pci_addr *a, const struct pci_addr *b)
{
	return a->domain == b->domain && a->bus == b->bus &&
	       a->device == b->device && a->function == b->function;
}

/* Ask the ports at @from, or all with @from NULL, until one answers. */
static void ask_ports(const struct p2p_env *env, const struct pci_addr *from,
		      const struct pci_addr *about, struct p2p_answer *answer)
{
	struct pci_addr addr;
	unsigned int index;
	const char *entry;
	DIR *dir = open_class(env);

	while (dir && !answer->asked && (entry = fxi_sysfs_next(dir))) {
		if (!port_index(entry, &index))
			continue;
		if (from && (!port_addr(env, index, &addr) ||
			     !same_addr(from, &addr)))
			continue;
		if (env->ask(env->root, index, about, answer))
			continue;
		answer->asked = true;
		snprintf(answer->port, sizeof(answer->port), "fabrex%u",
			 index);
	}
	if (dir)
		closedir(dir);
}

void fxi_p2p_ask(const struct p2p_env *env, const struct pci_addr *a,
		 const struct pci_addr *b, struct p2p_answer *answer)
{
	memset(answer, 0, sizeof(*answer));
	ask_ports(env, a, b, answer);
	/* The way back is the same. */
	if (!answer->asked)
		ask_ports(env, b, a, answer);
}

enum kernel_option fxi_p2p_kernel(const struct p2p_env *env,
				  const struct pci_addr *addr)
{
	struct p2p_answer answer = { 0 };

	ask_ports(env, NULL, addr, &answer);
	if (answer.asked)
		return answer.kernel ? OPTION_YES : OPTION_NO;
	return fxi_host_p2pdma(env->root);
}

int fxi_p2p_ioctl(const char *root, unsigned int index,
		  const struct pci_addr *addr, struct p2p_answer *answer)
{
	struct fabrex_p2p_query query = {
		.size = sizeof(query), .domain = addr->domain,
		.devfn = (uint32_t)addr->bus << 8 | addr->device << 3 |
			 addr->function,
	};
	char path[SYSFS_PATH];
	int fd, ret;

	if (fxi_sysfs_path(path, root, "/dev/fabrex%u", index))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	ret = ioctl(fd, FABREX_IOCTL_P2P_QUERY, &query) ? -errno : 0;
	close(fd);
	if (ret)
		return ret;
	answer->kernel = query.out_flags & FABREX_P2P_KERNEL;
	answer->reachable = query.out_flags & FABREX_P2P_REACHABLE;
	answer->distance = query.out_distance;
	return 0;
}
