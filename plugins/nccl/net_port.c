// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The ports of this machine, which NCCL calls devices: those that this process may
 * open, or the one that FABREX_PORT names. They are looked for once, and opened
 * when a communicator needs one. Used by net_connect.c and the versions.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net.h"

#define LOOPBACK	"loopback:"
/* What processes of one machine have is that of its memory. */
#define LOOPBACK_MBPS	200000
#define LOOPBACK_US	0.5f
#define FABRIC_US	1.5f

static struct net_port ports[PORTS_MAX];
static int nports = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* those */

static bool is_loopback(const struct net_port *port)
{
	return !strncmp(port->open_as, LOOPBACK, sizeof(LOOPBACK) - 1);
}

/* Directory of the function, as NCCL's own plugins give it: without links. */
static void find_path(struct net_port *port)
{
	char link[64], path[PATH_MAX];

	if (!port->is.pci[0])
		return;
	snprintf(link, sizeof(link), "/sys/bus/pci/devices/%s", port->is.pci);
	if (realpath(link, path) && strlen(path) < sizeof(port->path))
		strcpy(port->path, path);
}

static bool is_called(const struct fabrex_local_port *port, const char *name)
{
	if (!strncmp(name, "/dev/", 5))
		name += 5;
	return !strcmp(port->name, name) || !strcmp(port->device, name) ||
	       !strcmp(port->host, name);
}

static bool usable(const struct fabrex_local_port *port)
{
	const char *why = !port->may_open ?
			  "this process may not open it: join the group fabrex" :
			  !port->alive ? "it does not work, and is being reset" :
			  !port->link_up ? "its link into the fabric is down" :
			  NULL;

	if (why)
		INFO("port %s is not used: %s", port->name, why);
	return !why;
}

static void add(const struct fabrex_local_port *is, const char *open_as)
{
	struct net_port *port = &ports[nports];

	if (nports == PORTS_MAX) {
		WARN("port %s is not used: there are more than %d", is->name,
		     PORTS_MAX);
		return;
	}
	port->is = *is;
	snprintf(port->open_as, sizeof(port->open_as), "%s", open_as);
	pthread_mutex_init(&port->lock, NULL);
	find_path(port);
	nports++;
}

static void add_loopback(const char *name)
{
	struct fabrex_local_port is = {
		.link_up = 1, .alive = 1, .may_open = 1, .numa_node = -1,
		.rate = LOOPBACK_MBPS,
	};

	snprintf(is.name, sizeof(is.name), "loopback");
	snprintf(is.fabric, sizeof(is.fabric), "%s",
		 name + sizeof(LOOPBACK) - 1);
	add(&is, name);
}

static int find_devices(const char *only)
{
	struct fabrex_local_port *all;
	int i, n;

	all = calloc(PORTS_MAX, sizeof(*all));
	if (!all)
		return -ENOMEM;
	n = fabrex_port_list(NULL, all, PORTS_MAX, sizeof(*all));
	for (i = 0; i < n && i < PORTS_MAX; i++)
		if ((!only || is_called(&all[i], only)) && usable(&all[i]))
			add(&all[i], all[i].name);
	free(all);
	if (only && !nports)
		WARN("FABREX_PORT=%s: there is no such port, or it cannot be used; see fabrexctl list",
		     only);
	return 0;
}

int net_ports(void)
{
	const char *only = getenv("FABREX_PORT");
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (nports < 0) {
		nports = 0;
		if (only && !strncmp(only, LOOPBACK, sizeof(LOOPBACK) - 1))
			add_loopback(only);
		else
			ret = find_devices(only && *only ? only : NULL);
	}
	if (!ret)
		ret = nports;
	pthread_mutex_unlock(&lock);
	return ret;
}

struct net_port *net_port(int dev)
{
	if (dev >= 0 && dev < net_ports())
		return &ports[dev];
	WARN("there is no device %d", dev);
	return NULL;
}

static int open_port(struct net_port *port)
{
	int ret = fabrex_open(port->open_as, &port->port);

	if (ret) {
		WARN("port %s: %s", port->open_as, fabrex_strerror_last());
		return ret;
	}
	ret = fabrex_query(port->port, &port->attr, sizeof(port->attr));
	/* What is not registered any more must not be written to: NCCL keeps its
	 * registrations itself.
	 */
	if (!ret)
		ret = fabrex_mr_cache_limit(port->port, 0, 0);
	if (ret) {
		WARN("port %s: %s", port->open_as, fabrex_strerror_last());
		fabrex_close(port->port);
		port->port = NULL;
	}
	return ret;
}

int net_port_get(struct net_port *port)
{
	int ret = 0;

	pthread_mutex_lock(&port->lock);
	if (!port->users)
		ret = open_port(port);
	if (!ret)
		port->users++;
	pthread_mutex_unlock(&port->lock);
	return ret;
}

void net_port_put(struct net_port *port)
{
	pthread_mutex_lock(&port->lock);
	if (!--port->users) {
		if (fabrex_close(port->port))
			WARN("port %s stays open: %s", port->open_as,
			     fabrex_strerror_last());
		port->port = NULL;
	}
	pthread_mutex_unlock(&port->lock);
}

/* Of what NCCL asks to be unique: the same port has the same one on all hosts. */
static uint64_t guid_of(const struct net_port *port)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	const char *at;

	if (port->is.guid)
		return port->is.guid;
	for (at = port->open_as; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return hash;
}

enum nccl_result net_properties(int dev, struct nccl_properties_v12 *p)
{
	struct net_port *port = net_port(dev);

	if (!port || !p)
		return NCCL_INVALID_ARGUMENT;
	memset(p, 0, sizeof(*p));
	p->name = port->is.name;
	p->pci_path = port->path[0] ? port->path : NULL;
	p->guid = guid_of(port);
	/* Over loopback the runtime copies; a device needs what it can reach. */
	p->ptr_support = NCCL_PTR_HOST | (is_loopback(port) ? NCCL_PTR_CUDA :
							      NCCL_PTR_DMABUF);
	p->reg_is_global = 1;
	/* Data goes to the GPU and its word to the host, by different ways. */
	p->force_flush = !is_loopback(port);
	p->speed = port->is.rate ? (int)port->is.rate : LOOPBACK_MBPS;
	p->port = 1;
	p->latency = is_loopback(port) ? LOOPBACK_US : FABRIC_US;
	p->max_comms = port->is.max_queues ? (int)port->is.max_queues : 1024;
	p->max_recvs = NCCL_RECEIVES_MAX;
	p->device_type = NCCL_DEVICE_HOST;
	p->device_version = NCCL_DEVICE_INVALID;
	p->vdevice.ndevs = 1;
	p->vdevice.devs[0] = dev;
	p->max_p2p_bytes = NET_BYTES_MAX;
	p->max_coll_bytes = NET_BYTES_MAX;
	p->max_multi_request_size = 1;
	p->rail = p->plane = NCCL_ID_UNDEFINED;
	return NCCL_SUCCESS;
}
