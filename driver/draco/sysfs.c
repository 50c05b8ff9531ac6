// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of the PCI function for administrators, documented in
 * docs/abi/sysfs-driver-fabrex_draco. Called by the driver core only, which
 * adds them after probe and removes them before remove.
 */
#include <linux/sysfs.h>

#include "admin.h"
#include "draco.h"

static const char * const draco_state_names[] = {
	[DRACO_ADMIN_DOWN] = "down",
	[DRACO_ADMIN_SETUP] = "starting",
	[DRACO_ADMIN_LIVE] = "live",
	[DRACO_ADMIN_FAILING] = "failing",
};

#define DRACO_ATTR(_name, _fmt, _expr)					\
static ssize_t _name##_show(struct device *dev,				\
			    struct device_attribute *attr, char *buf)	\
{									\
	struct draco_dev *dd = dev_get_drvdata(dev);			\
									\
	return sysfs_emit(buf, _fmt "\n", _expr);			\
}									\
static DEVICE_ATTR_RO(_name)

DRACO_ATTR(firmware, "%s", dd->ident.firmware);
DRACO_ATTR(state, "%s", draco_state_names[READ_ONCE(dd->admin.state)]);
DRACO_ATTR(stops, "%u", READ_ONCE(dd->epoch));
DRACO_ATTR(commands, "%u", READ_ONCE(dd->admin.inflight));
DRACO_ATTR(lost_interrupts, "%d", atomic_read(&dd->lost_irqs));
DRACO_ATTR(spurious_completions, "%u", READ_ONCE(dd->admin.spurious));

static struct attribute *draco_attrs[] = {
	&dev_attr_firmware.attr,
	&dev_attr_state.attr,
	&dev_attr_stops.attr,
	&dev_attr_commands.attr,
	&dev_attr_lost_interrupts.attr,
	&dev_attr_spurious_completions.attr,
	NULL
};

static const struct attribute_group draco_group = {
	.name = "draco",
	.attrs = draco_attrs,
};

const struct attribute_group *draco_groups[] = { &draco_group, NULL };
