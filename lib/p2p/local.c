// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The local ports with what a rank chooses by: link, NUMA node, and what is
 * near. Public half: fabrex_port_list(3).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/export.h"
#include "p2p/near.h"
#include "p2p/sysfs.h"

#define MOST_PORTS	256u	/* as many as the kernel has numbers */
#define ROOM(array)	(sizeof(array) / sizeof((array)[0]))

struct search {
	const struct p2p_env *env;
	struct place near;
	struct local_device *gpus;
	size_t ngpus;
};

/* ---- attributes -------------------------------------------------------- */

static bool port_line(const struct p2p_env *env, unsigned int index,
		      const char *file, char *text, size_t n)
{
	char path[SYSFS_PATH];

	*text = '\0';
	return !fxi_sysfs_path(path, env->root,
			       "/sys/class/fabrex/fabrex%u/%s", index, file) &&
	       fxi_sysfs_line(path, text, n);
}

static bool port_is(const struct p2p_env *env, unsigned int index,
		    const char *file, const char *text)
{
	char line[64];

	return port_line(env, index, file, line, sizeof(line)) &&
	       !strcmp(line, text);
}

/* Decimal; 0 if there is none. */
static uint64_t port_number(const struct p2p_env *env, unsigned int index,
			    const char *file)
{
	unsigned long long value;
	char line[64];

	return port_line(env, index, file, line, sizeof(line)) &&
	       sscanf(line, "%19llu", &value) == 1 ? value : 0;
}

/* A container may have the port in its sysfs, but not in its /dev. */
static bool may_open(const struct p2p_env *env, unsigned int index)
{
	char path[SYSFS_PATH];

	return !fxi_sysfs_path(path, env->root, "/dev/fabrex%u", index) &&
	       !faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS);
}

/* FNV-1a of both names with their ends. */
static uint64_t guid_of(const char *fabric, const char *name)
{
	const char *const part[] = { fabric, name };
	uint64_t hash = 0xcbf29ce484222325;
	const char *p;
	size_t i;

	for (i = 0; i < ROOM(part); i++) {
		p = part[i];
		do {
			hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
		} while (*p++);
	}
	return hash;
}

static void read_port(const struct p2p_env *env, unsigned int index,
		      struct fabrex_local_port *port)
{
	memset(port, 0, sizeof(*port));
	snprintf(port->device, sizeof(port->device), "fabrex%u", index);
	port_line(env, index, "name", port->name, sizeof(port->name));
	port_line(env, index, "host", port->host, sizeof(port->host));
	port_line(env, index, "fabric", port->fabric, sizeof(port->fabric));
	port_line(env, index, "driver_name", port->driver,
		  sizeof(port->driver));
	port->guid = guid_of(port->fabric, port->name);
	port->max_transfer = port_number(env, index, "limits/max_transfer");
	port->link_up = port_is(env, index, "link", "up");
	port->alive = port_is(env, index, "alive", "1");
	port->may_open = may_open(env, index);
	port->emulated = port_is(env, index, "emulated", "1");
	port->peer = (uint32_t)port_number(env, index, "peer");
	port->max_peers = (uint32_t)port_number(env, index,
						"limits/max_peers");
	port->generation = (uint32_t)port_number(env, index, "generation");
	port->max_queues = (uint32_t)port_number(env, index,
						 "limits/max_queues");
	port->max_mrs = (uint32_t)port_number(env, index, "limits/max_mrs");
	port->numa_node = -1;
}

static void read_function(const struct p2p_env *env,
			  const struct pci_addr *addr,
			  const struct place *place,
			  struct fabrex_local_port *port)
{
	fxi_pci_name(addr, port->pci);
	port->numa_node = place->numa_node;
	port->pcie_speed = fxi_device_speed(env, port->pci, "current");
	port->pcie_width = fxi_device_width(env, port->pci, "current");
	port->rate = fxi_place_rate(env, place);
}

/* ---- GPUs -------------------------------------------------------------- */

/* Those that are as near as the nearest. */
static void choose_gpus(const struct search *s, const struct place *place,
			struct fabrex_local_port *port)
{
	struct nearness best = { .path = FABREX_P2P_PATH_NONE }, near;
	size_t i;
	int order;

	for (i = 0; i < s->ngpus; i++) {
		near = fxi_near(s->env, place, &s->gpus[i].place);
		order = fxi_near_compare(&near, &best);
		if (near.path == FABREX_P2P_PATH_NONE || order > 0)
			continue;
		if (order < 0) {
			memset(port->gpu, 0, sizeof(port->gpu));
			port->gpus = 0;
			best = near;
		}
		if (port->gpus < ROOM(port->gpu))
			memcpy(port->gpu[port->gpus], s->gpus[i].out.pci,
			       sizeof(port->gpu[0]));
		port->gpus++;
	}
	port->gpu_path = best.path;
	port->gpu_distance = best.distance;
}

/* ---- all of them ------------------------------------------------------- */

struct found {
	struct fabrex_local_port port;
	struct nearness near;
	unsigned int index;
};

static int by_nearness(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int order = fxi_near_compare(&x->near, &y->near);

	return order ? order : x->index < y->index ? -1 : 1;
}

static void look(const struct search *s, unsigned int index, struct found *f)
{
	struct pci_addr addr;
	struct place place;
	char name[16];
	bool there;

	snprintf(name, sizeof(name), "fabrex%u", index);
	there = fxi_p2p_port(s->env, name, &addr);
	read_port(s->env, index, &f->port);
	fxi_place_find(s->env, there ? &addr : NULL, &place);
	if (there)
		read_function(s->env, &addr, &place, &f->port);
	f->index = index;
	f->near = fxi_near(s->env, &place, &s->near);
	f->port.path = f->near.path;
	f->port.distance = f->near.distance;
	choose_gpus(s, &place, &f->port);
	fxi_place_leave(&place);
}

/* What tells a port from the one that had its number before. */
struct identity {
	char name[32], fabric[32], generation[16];
};

static bool identify(const struct p2p_env *env, unsigned int index,
		     struct identity *id)
{
	memset(id, 0, sizeof(*id));
	port_line(env, index, "fabric", id->fabric, sizeof(id->fabric));
	port_line(env, index, "generation", id->generation,
		  sizeof(id->generation));
	return port_line(env, index, "name", id->name, sizeof(id->name));
}

/*
 * Attributes are read one by one, while ports may go and others come with their
 * numbers: what is said of a port is of one port, or it is not listed.
 */
static bool look_whole(const struct search *s, unsigned int index,
		       struct found *f)
{
	struct identity before, after;
	int tries;

	for (tries = 0; tries < 8; tries++) {
		if (!identify(s->env, index, &before))
			return false;
		look(s, index, f);
		if (!identify(s->env, index, &after))
			return false;
		if (!memcmp(&before, &after, sizeof(before)))
			return true;
	}
	return false;
}

static void copy_out(struct fabrex_local_port *ports, size_t i, size_t size,
		     const struct fabrex_local_port *port)
{
	char *to = (char *)ports + i * size;

	memset(to, 0, size);
	memcpy(to, port, size < sizeof(*port) ? size : sizeof(*port));
}

static int list(struct search *s, struct fabrex_local_port *ports, size_t n,
		size_t size)
{
	struct found *found = calloc(MOST_PORTS, sizeof(*found));
	unsigned int index[MOST_PORTS];
	uint32_t i, all, count = 0;

	if (!found)
		return fxi_error(ENOMEM, "fabrex_port_list: out of memory");
	all = fxi_p2p_ports(s->env, index, MOST_PORTS);
	for (i = 0; i < all; i++)
		count += look_whole(s, index[i], &found[count]);
	qsort(found, count, sizeof(*found), by_nearness);
	for (i = 0; i < count && i < n; i++)
		copy_out(ports, i, size, &found[i].port);
	free(found);
	return (int)count;
}

int fxi_p2p_list(const struct p2p_env *env, const char *near,
		 struct fabrex_local_port *ports, size_t n, size_t size)
{
	struct search s = { .env = env };
	int ret;

	ret = fxi_place_named(env, near, &s.near);
	if (!ret)
		ret = fxi_devices_find(env, FABREX_DEVICE_GPU, &s.gpus,
				       &s.ngpus);
	if (!ret)
		ret = list(&s, ports, n, size);
	fxi_devices_free(s.gpus, s.ngpus);
	fxi_place_leave(&s.near);
	return ret;
}

EXPORT int fabrex_port_list(const char *near, struct fabrex_local_port *ports,
			    size_t n, size_t size)
{
	NO_CANCEL();
	struct p2p_env env;

	if (n && (!ports || !size))
		return fxi_error(EINVAL, "fabrex_port_list: no place for %zu ports; give it, or 0",
				 n);
	fxi_p2p_env(&env);
	return fxi_p2p_list(&env, near, ports, n, size);
}
