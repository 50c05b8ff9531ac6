// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI devices of this host, by libudev. Without udevd the kernel's own
 * uevents and sysfs are enough; class texts then come from the table here.
 */
#include <libudev.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "util.h"

struct device_watch {
	struct udev *udev;
	struct udev_monitor *monitor;
};

static const struct {
	unsigned int class;	/* base class and subclass */
	const char *text;
} classes[] = {
	{ 0x0108, "Non-Volatile memory controller" },
	{ 0x0180, "Mass storage controller" },
	{ 0x0200, "Ethernet controller" },
	{ 0x0207, "Infiniband controller" },
	{ 0x0280, "Network controller" },
	{ 0x0300, "VGA compatible controller" },
	{ 0x0302, "3D controller" },
	{ 0x0380, "Display controller" },
	{ 0x0680, "Bridge" },
	{ 0x1200, "Processing accelerators" },
};

static struct udev *the_udev(void)
{
	static struct udev *udev;

	if (!udev)
		udev = udev_new();
	return udev;
}

static void copy(char *to, size_t len, const char *from)
{
	snprintf(to, len, "%s", from ? from : "");
}

static const char *class_text(struct udev_device *dev)
{
	const char *s;
	unsigned long class;
	size_t i;

	s = udev_device_get_property_value(dev, "ID_PCI_SUBCLASS_FROM_DATABASE");
	if (!s)
		s = udev_device_get_property_value(dev,
					"ID_PCI_CLASS_FROM_DATABASE");
	if (s)
		return s;
	s = udev_device_get_sysattr_value(dev, "class");
	class = s ? strtoul(s, NULL, 16) >> 8 : 0;
	for (i = 0; i < ARRAY_SIZE(classes); i++)
		if (classes[i].class == class)
			return classes[i].text;
	return s;
}

void device_describe(const char *pci_name, struct device_text *d)
{
	struct udev_device *dev;

	memset(d, 0, sizeof(*d));
	if (!*pci_name || !the_udev())
		return;
	dev = udev_device_new_from_subsystem_sysname(the_udev(), "pci",
						     pci_name);
	if (!dev)
		return;
	copy(d->driver, sizeof(d->driver), udev_device_get_driver(dev));
	copy(d->class, sizeof(d->class), class_text(dev));
	copy(d->sysfs, sizeof(d->sysfs), udev_device_get_syspath(dev));
	udev_device_unref(dev);
}

struct device_watch *device_watch_new(void)
{
	struct device_watch *w = xcalloc(1, sizeof(*w));

	w->udev = the_udev();
	if (w->udev)
		w->monitor = udev_monitor_new_from_netlink(w->udev, "kernel");
	if (w->monitor) {
		udev_monitor_filter_add_match_subsystem_devtype(w->monitor,
								"pci", NULL);
		udev_monitor_enable_receiving(w->monitor);
	}
	return w;
}

void device_watch_wait(struct device_watch *w, double seconds)
{
	struct pollfd p = { .fd = -1, .events = POLLIN };
	struct udev_device *dev;

	if (w->monitor)
		p.fd = udev_monitor_get_fd(w->monitor);
	if (poll(&p, 1, seconds * 1000) <= 0 || !w->monitor)
		return;
	dev = udev_monitor_receive_device(w->monitor);
	if (dev)
		udev_device_unref(dev);
}

void device_watch_free(struct device_watch *w)
{
	if (w->monitor)
		udev_monitor_unref(w->monitor);
	free(w);
}
