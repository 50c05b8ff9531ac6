// SPDX-License-Identifier: GPL-2.0-only
/* See pfx.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pfx.h"

#define DEVICES		"sys/bus/pci/devices"
#define UPSTREAM	"0000:60:00.0"
#define MANAGEMENT	"0000:60:00.1"
#define LOGICAL		4u	/* logical ports of each partition */
#define FIRST		4u	/* partition of host a */

struct pfx_fake pfx_fake;
struct machine pfx_machine;

/* box has two GPUs behind each of its uplinks, flat has one. */
const char pfx_topology[] =
	"fabric = \"lab\";\n"
	"switches = ( { name = \"pfx1\"; model = \"pfx\"; ports = 10; } );\n"
	"hosts = (\n"
	"  { name = \"a\"; manager = true; ports = ( \"pfx1:1\" ); slots = 4; },\n"
	"  { name = \"b\"; ports = ( \"pfx1:2\" ); slots = 4; },\n"
	"  { name = \"c\"; manager = true; ports = ( \"pfx1:3\" ); slots = 4; } );\n"
	"appliances = (\n"
	"  { name = \"box\"; kind = \"cascade\"; uplinks = ( \"pfx1:5\", \"pfx1:6\" );\n"
	"    endpoints = ( { class = \"gpu\"; count = 4; } ); },\n"
	"  { name = \"flat\"; kind = \"flat\";\n"
	"    uplinks = ( \"pfx1:7\", \"pfx1:8\", \"pfx1:9\", \"pfx1:10\" );\n"
	"    endpoints = ( { class = \"gpu\"; count = 4; } ); } );\n";

/* ---- commands ------------------------------------------------------------ */

static unsigned int at_place(uint8_t partition, uint8_t logical)
{
	unsigned int i;

	for (i = 5; i < PFX_PORTS; i++)
		if (pfx_fake.port[i].bound &&
		    pfx_fake.port[i].partition == partition &&
		    pfx_fake.port[i].logical == logical)
			return i;
	return 0;
}

static uint32_t bind(const uint8_t *in)
{
	if (in[3] < 5 || in[3] >= PFX_PORTS)
		return MRPC_BIND_RET_NO_PORT;
	if (in[1] < FIRST || in[1] > FIRST + 2)
		return MRPC_BIND_RET_NO_PARTITION;
	if (!in[2] || in[2] > LOGICAL)
		return MRPC_BIND_RET_NO_LOGICAL;
	if (pfx_fake.port[in[3]].bound)
		return MRPC_BIND_RET_PORT_BOUND;
	/* Another manager has put another port there, just now. */
	if (pfx_fake.taken) {
		unsigned int other = 11 - pfx_fake.taken--;

		pfx_fake.port[other].bound = true;
		pfx_fake.port[other].partition = in[1];
		pfx_fake.port[other].logical = in[2];
	}
	if (at_place(in[1], in[2]))
		return MRPC_BIND_RET_LOGICAL_BOUND;
	pfx_fake.binds++;
	pfx_fake.port[in[3]].bound = true;
	pfx_fake.port[in[3]].partition = in[1];
	pfx_fake.port[in[3]].logical = in[2];
	pfx_fake.port[in[3]].result = pfx_fake.slow ? MRPC_BIND_IN_PROGRESS : 0;
	return 0;
}

static uint32_t unbind(const uint8_t *in)
{
	unsigned int port = at_place(in[1], in[2]);

	if (!port)
		return MRPC_BIND_RET_NOT_BOUND;
	if (in[3] != MRPC_BIND_OPTION)
		return MRPC_BIND_RET_OPTION;
	pfx_fake.unbinds++;
	pfx_fake.port[port].bound = false;
	return 0;
}

static uint32_t info(const uint8_t *in, uint8_t *out)
{
	unsigned int i, n = 0;

	for (i = 5; i < PFX_PORTS; i++) {
		uint8_t *e = out + 4 + 4 * n;

		if (in[1] != MRPC_BIND_ALL && in[1] != i)
			continue;
		if (in[1] == 7 && pfx_fake.switched)
			pfx_fake.port[7].bound = false;
		if (pfx_fake.slow && !--pfx_fake.slow)
			pfx_fake.port[i].result = 0;
		e[0] = (uint8_t)i;
		e[1] = pfx_fake.port[i].bound ? pfx_fake.port[i].partition :
						MRPC_BIND_NONE;
		e[2] = pfx_fake.port[i].bound ? pfx_fake.port[i].logical :
						MRPC_BIND_NONE;
		e[3] = pfx_fake.port[i].result |
		       (pfx_fake.port[i].bound ? MRPC_BIND_BOUND : 0);
		n++;
	}
	out[0] = (uint8_t)n;
	return n ? 0 : MRPC_BIND_RET_NO_PORT;
}

static void links(uint8_t *out)
{
	unsigned int i;

	for (i = 0; i < MRPC_LINKS_PORTS; i++) {
		uint8_t *e = out + MRPC_LINKS_SIZE * i;
		bool host = i >= 1 && i <= 3;

		e[3] = MRPC_LINKS_NOBODY;
		if (i < 1 || i >= PFX_PORTS || i == 4)
			continue;
		e[0] = (uint8_t)i;
		e[1] = host ? (uint8_t)(FIRST + i - 1) : MRPC_BIND_NONE;
		e[2] = host ? 0 : MRPC_BIND_NONE;
		if (pfx_fake.port[i].bound) {
			e[1] = pfx_fake.port[i].partition;
			e[2] = pfx_fake.port[i].logical;
		}
		e[3] = (uint8_t)(i - 1);
		e[4] = e[5] = 16;
		e[6] = host;
		e[7] = 4 | (pfx_fake.port[i].down ? 0 : MRPC_LINKS_UP);
	}
}

static uint32_t change(const uint8_t *in)
{
	pfx_fake.changes++;
	if (pfx_fake.refuse && (!pfx_fake.refuse_at ||
				pfx_fake.refuse_at == pfx_fake.changes))
		return pfx_fake.refuse;
	return in[0] == MRPC_BIND_BIND ? bind(in) : unbind(in);
}

int pfx_command(struct switchtec *d, uint32_t command, const void *in,
		size_t in_len, void *out, size_t out_len, uint32_t *ret,
		struct err *e)
{
	const uint8_t *b = in;

	(void)in_len;
	if (pfx_fake.silent)
		return err_set(e, ETIMEDOUT, d->node, "no answer");
	pfx_fake.commands++;
	if (pfx_fake.busy) {
		pfx_fake.busy--;
		*ret = MRPC_RET_BUSY_FIRST;
		return 0;
	}
	memset(out, 0, out_len);
	*ret = MRPC_RET_BAD_COMMAND;
	if (command == MRPC_LINKS) {
		links(out);
		*ret = 0;
	} else if (command == MRPC_BIND) {
		*ret = b[0] == MRPC_BIND_INFO ? info(b, out) : change(b);
	}
	if (pfx_fake.spoil)
		pfx_fake.spoil(command, out, out_len);
	if (command == MRPC_BIND && b[0] != MRPC_BIND_INFO &&
	    pfx_fake.lose_at && pfx_fake.lose_at == pfx_fake.changes)
		return err_set(e, pfx_fake.lose_kind ? pfx_fake.lose_kind :
			       ETIMEDOUT, d->node, "no answer");
	return 0;
}

/* ---- the host ------------------------------------------------------------ */

static void text(const char *path, const char *what)
{
	machine_text(&pfx_machine, path, what);
}

static void bridge_name(unsigned int logical, char name[16])
{
	snprintf(name, 16, "0000:61:%02x.0", logical - 1);
}

static void add_bridge(unsigned int logical)
{
	char name[16], path[256], value[32];

	bridge_name(logical, name);
	snprintf(path, sizeof(path), DEVICES "/" UPSTREAM "/%s/class", name);
	text(path, "0x060400\n");
	snprintf(path, sizeof(path), DEVICES "/%s/class", name);
	text(path, "0x060400\n");
	snprintf(path, sizeof(path), DEVICES "/%s/secondary_bus_number", name);
	snprintf(value, sizeof(value), "%u\n", 0x62 + logical - 1);
	text(path, value);
	snprintf(path, sizeof(path), "sys/bus/pci/slots/%u/address", logical);
	snprintf(value, sizeof(value), "0000:%02x:00\n", 0x62 + logical - 1);
	text(path, value);
	snprintf(path, sizeof(path), "sys/bus/pci/slots/%u/power", logical);
	text(path, "1\n");
}

void pfx_plug(unsigned int logical, unsigned int function)
{
	char bridge[16], name[16], path[256];

	bridge_name(logical, bridge);
	snprintf(name, sizeof(name), "0000:%02x:00.%u", 0x62 + logical - 1,
		 function);
	snprintf(path, sizeof(path), DEVICES "/%s/%s/class", bridge, name);
	text(path, "0x030200\n");
	snprintf(path, sizeof(path), DEVICES "/%s/class", name);
	text(path, "0x030200\n");
	snprintf(path, sizeof(path), DEVICES "/%s/vendor", name);
	text(path, "0x1234\n");
	snprintf(path, sizeof(path), DEVICES "/%s/device", name);
	text(path, "0xda10\n");
}

char pfx_power(unsigned int logical)
{
	char path[256];
	FILE *f;
	int c;

	snprintf(path, sizeof(path), "%s/sys/bus/pci/slots/%u/power",
		 pfx_machine.root, logical);
	f = fopen(path, "r");
	c = f ? fgetc(f) : '?';
	if (f)
		fclose(f);
	return (char)c;
}

struct backend *pfx_start(void)
{
	static const char top[] = "sys/class/switchtec/switchtec0";
	char path[256];
	unsigned int i;

	memset(&pfx_fake, 0, sizeof(pfx_fake));
	machine_new(&pfx_machine);
	setenv("FABREX_ROOT", pfx_machine.root, 1);
	text("sys/devices/pci0000:60/" MANAGEMENT "/class", "0x068000\n");
	text(DEVICES "/" MANAGEMENT "/device", "0x4000\n");
	machine_link(&pfx_machine, "sys/class/switchtec/switchtec0/device",
		     "../../../devices/pci0000:60/" MANAGEMENT);
	snprintf(path, sizeof(path), "%s/partition", top);
	text(path, "4\n");
	snprintf(path, sizeof(path), "%s/product_id", top);
	text(path, "PFX 100xG4, emulated\n");
	text("dev/switchtec0", "");
	for (i = 1; i <= LOGICAL; i++)
		add_bridge(i);
	text("etc/fabrex/fabric.topo", pfx_topology);
	return switchtec_backend(NULL, pfx_command);
}

void pfx_finish(struct backend *b)
{
	switchtec_free(b);
	machine_free(&pfx_machine);
	unsetenv("FABREX_ROOT");
}
