// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * struct fid_nic of a port that is a PCI device: where it is, how fast, whether
 * its link is up. fi_freeinfo() closes it, fi_dupinfo() duplicates it, both by
 * its operations. Called by offer.c.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provider.h"

struct nic {
	struct fid_nic fid;
	struct fi_device_attr device;
	struct fi_bus_attr bus;
	struct fi_link_attr link;
	char name[32], id[16], version[16], vendor[16], driver[32];
	char address[32], type[16];
};

static struct fi_ops nic_ops;

static void point(struct nic *nic)
{
	nic->fid.fid.fclass = FI_CLASS_NIC;
	nic->fid.fid.context = NULL;
	nic->fid.fid.ops = &nic_ops;
	nic->fid.device_attr = &nic->device;
	nic->fid.bus_attr = &nic->bus;
	nic->fid.link_attr = &nic->link;
	nic->device.name = nic->name;
	nic->device.device_id = nic->id;
	nic->device.device_version = nic->version;
	nic->device.vendor_id = nic->vendor;
	nic->device.driver = nic->driver;
	nic->link.address = nic->address;
	nic->link.network_type = nic->type;
}

static int nic_close(struct fid *fid)
{
	free(container(fid, struct nic, fid.fid));
	return 0;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	const struct nic *nic = container(fid, struct nic, fid.fid);
	struct fid_nic **out = arg;
	struct nic *copy;

	if (command != FI_DUP)
		return -FI_ENOSYS;
	if (!out)
		return -FI_EINVAL;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -FI_ENOMEM;
	*copy = *nic;
	point(copy);
	*out = &copy->fid;
	return 0;
}

/* Appends, as far as there is room. */
__attribute__((format(printf, 3, 4)))
static void say(char *buf, size_t len, const char *fmt, ...)
{
	size_t used = strnlen(buf, len);
	va_list args;

	va_start(args, fmt);
	if (used < len)
		vsnprintf(buf + used, len - used, fmt, args);
	va_end(args);
}

static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	const struct nic *nic = (const void *)fid;
	const struct fi_pci_attr *pci = &nic->bus.attr.pci;

	say(buf, len, "fid_nic:\n    fi_device_attr:\n");
	say(buf, len, "        name: %s\n", nic->name);
	say(buf, len, "        device_id: %s\n", nic->id);
	say(buf, len, "        device_version: %s\n", nic->version);
	say(buf, len, "        vendor_id: %s\n", nic->vendor);
	say(buf, len, "        driver: %s\n", nic->driver);
	say(buf, len, "        firmware: (null)\n    fi_bus_attr:\n");
	if (nic->bus.bus_type == FI_BUS_PCI)
		say(buf, len, "        bus_type: FI_BUS_PCI\n        pci: %04x:%02x:%02x.%x\n",
		    pci->domain_id, pci->bus_id, pci->device_id,
		    pci->function_id);
	else
		say(buf, len, "        bus_type: FI_BUS_UNKNOWN\n");
	say(buf, len, "    fi_link_attr:\n        address: %s\n",
	    nic->address);
	say(buf, len, "        mtu: %zu\n        speed: %zu\n", nic->link.mtu,
	    nic->link.speed);
	say(buf, len, "        state: %s\n",
	    nic->link.state == FI_LINK_UP ? "FI_LINK_UP" : "FI_LINK_DOWN");
	say(buf, len, "        network_type: %s\n", nic->type);
	return 0;
}

static struct fi_ops nic_ops = {
	.size = sizeof(struct fi_ops),
	.close = nic_close,
	.bind = no_bind,
	.control = nic_control,
	.ops_open = no_ops_open,
	.tostr = nic_tostr,
};

/* A line of the function's directory in sysfs, or "". */
static void pci_line(const char *pci, const char *file, char *text, size_t size)
{
	char path[96];
	ssize_t n;
	int fd;

	text[0] = '\0';
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", pci, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static void place(struct nic *nic, const char *text)
{
	struct fi_pci_attr *pci = &nic->bus.attr.pci;
	unsigned int domain, bus, device, function;

	if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return;
	nic->bus.bus_type = FI_BUS_PCI;
	pci->domain_id = (uint16_t)domain;
	pci->bus_id = (uint8_t)bus;
	pci->device_id = (uint8_t)device;
	pci->function_id = (uint8_t)function;
	pci_line(text, "device", nic->id, sizeof(nic->id));
	pci_line(text, "vendor", nic->vendor, sizeof(nic->vendor));
	pci_line(text, "revision", nic->version, sizeof(nic->version));
}

struct fid_nic *nic_of_port(const struct local_port *port)
{
	struct nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	memcpy(nic->name, port->is.device, sizeof(port->is.device));
	memcpy(nic->driver, port->is.driver, sizeof(nic->driver));
	memcpy(nic->address, port->is.name, sizeof(nic->address));
	strcpy(nic->type, "PCIe fabric");
	place(nic, port->is.pci);
	nic->link.mtu = port->is.max_transfer;
	nic->link.speed = (size_t)port->is.rate * 1000000;
	nic->link.state = port->is.link_up ? FI_LINK_UP : FI_LINK_DOWN;
	point(nic);
	return &nic->fid;
}
