// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrex-perf ports: the local ports, and the devices that are near them, as
 * the library shows them to programs. Measures nothing, opens nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <fabrex/p2p.h>

#include "commands.h"
#include "perf.h"

struct ports_options {
	const char *near;
	bool json;
};

static const struct option longs[] = {
	{ "near", required_argument, NULL, 'n' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* ---- lists that may grow between two calls ------------------------------- */

/* How many, and all of them in *ports, for free(); below 0: an error. */
static int all_ports(const char *near, struct fabrex_local_port **ports)
{
	int n = 0, room;

	*ports = NULL;
	do {
		room = n;
		free(*ports);
		*ports = calloc((size_t)room + 1, sizeof(**ports));
		if (!*ports)
			return -1;
		n = fabrex_port_list(near, *ports, (size_t)room,
				     sizeof(**ports));
	} while (n > room);
	return n;
}

static int all_devices(const char *near, struct fabrex_local_device **devices)
{
	int n = 0, room;

	*devices = NULL;
	do {
		room = n;
		free(*devices);
		*devices = calloc((size_t)room + 1, sizeof(**devices));
		if (!*devices)
			return -1;
		n = fabrex_device_list(near, 0, *devices, (size_t)room,
				       sizeof(**devices));
	} while (n > room);
	return n;
}

/* ---- table ---------------------------------------------------------------- */

static const char *state_of(const struct fabrex_local_port *p)
{
	return !p->alive ? "in reset" : !p->may_open ? "no access" :
	       p->emulated ? "emulated" : "ready";
}

/* A number, or "-" for one that is not known. */
static const char *known(char text[16], bool is, const char *fmt, double value)
{
	snprintf(text, 16, is ? fmt : "-", value);
	return text;
}

static void port_row(const struct fabrex_local_port *p, const char *near)
{
	char node[16], rate[16];

	printf("%-9s %-8s %-8s %-10s %-12s %4s %-4s %9s  %s", p->device,
	       p->name, p->host, p->fabric, *p->pci ? p->pci : "-",
	       known(node, p->numa_node >= 0, "%.0f", p->numa_node),
	       p->link_up ? "up" : "down",
	       known(rate, p->rate, "%.1f", p->rate / 1e3), state_of(p));
	if (near)
		printf(", %s, %u bridges",
		       fabrex_p2p_path_str((int)p->path), p->distance);
	printf("\n");
}

static void device_row(const struct fabrex_local_device *d)
{
	printf("  %-4s  %-12s  %-6s  %u bridges\n",
	       fabrex_device_kind_str((int)d->kind), d->pci,
	       fabrex_p2p_path_str((int)d->path), d->distance);
}

/* ---- JSON ----------------------------------------------------------------- */

static void json_text(const char *key, const char *text)
{
	printf(", \"%s\": ", key);
	json_string(stdout, text);
}

/* "rate_mbps": null where it is not known. */
static void json_known(const char *key, bool is, long long value)
{
	if (is)
		printf(", \"%s\": %lld", key, value);
	else
		printf(", \"%s\": null", key);
}

static void json_port(const struct fabrex_local_port *p, const char *near)
{
	printf("{\"device\": ");
	json_string(stdout, p->device);
	json_text("name", p->name);
	json_text("host", p->host);
	json_text("fabric", p->fabric);
	json_text("driver", p->driver);
	json_text("pci", p->pci);
	printf(", \"guid\": \"%016llx\"", (unsigned long long)p->guid);
	json_known("numa_node", p->numa_node >= 0, p->numa_node);
	json_known("pcie_speed_mtps", p->pcie_speed, p->pcie_speed);
	json_known("pcie_width", p->pcie_width, p->pcie_width);
	json_known("rate_mbps", p->rate, p->rate);
	printf(", \"link_up\": %s, \"alive\": %s, \"may_open\": %s, \"emulated\": %s",
	       p->link_up ? "true" : "false", p->alive ? "true" : "false",
	       p->may_open ? "true" : "false", p->emulated ? "true" : "false");
	printf(", \"peer\": %u, \"generation\": %u, \"max_peers\": %u, \"max_queues\": %u, \"max_mrs\": %u, \"max_transfer\": %llu",
	       p->peer, p->generation, p->max_peers, p->max_queues, p->max_mrs,
	       (unsigned long long)p->max_transfer);
	if (near) {
		json_text("path", fabrex_p2p_path_str((int)p->path));
		printf(", \"distance\": %u", p->distance);
	}
	printf(", \"devices\": [");
}

static void json_device(const struct fabrex_local_device *d)
{
	printf("{\"pci\": ");
	json_string(stdout, d->pci);
	json_text("kind", fabrex_device_kind_str((int)d->kind));
	printf(", \"vendor\": \"0x%04x\", \"device\": \"0x%04x\"", d->vendor,
	       d->device);
	json_known("numa_node", d->numa_node >= 0, d->numa_node);
	json_known("rate_mbps", d->rate, d->rate);
	json_text("path", fabrex_p2p_path_str((int)d->path));
	printf(", \"distance\": %u}", d->distance);
}

/* ---- the command ----------------------------------------------------------- */

static int usage(FILE *f, int code)
{
	fprintf(f, "usage: fabrex-perf ports [--near ADDRESS|PORT] [--json]\n\n"
		"The fabric ports of this machine, each with the devices that are nearest to it.\n"
		"  -n, --near X   the port nearest to this PCI device first\n"
		"  -j, --json\n");
	return code;
}

/* A port that has gone since has no devices. */
static void print_devices(const struct ports_options *o,
			  const struct fabrex_local_port *port)
{
	struct fabrex_local_device *devices;
	int i, n = *port->pci ? all_devices(port->pci, &devices) : -1;

	for (i = 0; i < n; i++) {
		if (o->json && i)
			printf(", ");
		if (o->json)
			json_device(&devices[i]);
		else
			device_row(&devices[i]);
	}
	if (*port->pci)
		free(devices);
}

static void print(const struct ports_options *o,
		  const struct fabrex_local_port *ports, int n)
{
	int i;

	if (o->json)
		printf("{\"ports\": [");
	else if (n)
		printf("%-9s %-8s %-8s %-10s %-12s %4s %-4s %9s  %s\n",
		       "device", "port", "host", "fabric", "pci", "node",
		       "link", "Gbit/s", "state");
	else
		printf("this machine has no fabric port\n");
	for (i = 0; i < n; i++) {
		if (o->json && i)
			printf(", ");
		if (o->json)
			json_port(&ports[i], o->near);
		else
			port_row(&ports[i], o->near);
		print_devices(o, &ports[i]);
		if (o->json)
			printf("]}");
	}
	if (o->json)
		printf("]}\n");
}

int ports_main(int argc, char **argv)
{
	struct ports_options o = { .json = false };
	struct fabrex_local_port *ports;
	int c, n;

	while ((c = getopt_long(argc, argv, "n:jh", longs, NULL)) >= 0) {
		if (c == 'n')
			o.near = optarg;
		else if (c == 'j')
			o.json = true;
		else
			return usage(c == 'h' ? stdout : stderr,
				     c == 'h' ? EXIT_OK : EXIT_USAGE);
	}
	if (optind < argc)
		return usage(stderr, EXIT_USAGE);
	n = all_ports(o.near, &ports);
	if (n < 0)
		fprintf(stderr, "fabrex-perf: ports: %s\n",
			fabrex_strerror_last());
	else
		print(&o, ports, n);
	free(ports);
	return n < 0 ? EXIT_SETUP : EXIT_OK;
}
