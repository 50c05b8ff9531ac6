// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of ports, documented in docs/abi/sysfs-class-fabrex. Called by the
 * driver core only.
 */
#include <linux/kstrtox.h>
#include <linux/sysfs.h>

#include "context.h"
#include "port.h"

#define PORT_ATTR(_name, _fmt, _expr)					\
static ssize_t _name##_show(struct device *dev,				\
			    struct device_attribute *attr, char *buf)	\
{									\
	struct fabrex_port *port = to_fabrex_port(dev);			\
									\
	return sysfs_emit(buf, _fmt "\n", _expr);			\
}									\
static DEVICE_ATTR_RO(_name)

PORT_ATTR(name, "%s", port->info.name);
PORT_ATTR(host, "%s", port->info.host);
PORT_ATTR(fabric, "%s", port->info.fabric);
PORT_ATTR(driver_name, "%s", port->info.driver);
PORT_ATTR(object_id, "%u", port->info.object_id);
PORT_ATTR(peer, "%u", port->info.peer);
PORT_ATTR(generation, "%u", READ_ONCE(port->generation));
PORT_ATTR(manager, "%u", port->info.manager);
PORT_ATTR(emulated, "%u", !!(port->info.flags & FABREX_PORT_EMULATED));
PORT_ATTR(link, "%s", READ_ONCE(port->link_up) ? "up" : "down");
PORT_ATTR(alive, "%u", READ_ONCE(port->alive));

static struct attribute *port_attrs[] = {
	&dev_attr_name.attr,
	&dev_attr_host.attr,
	&dev_attr_fabric.attr,
	&dev_attr_driver_name.attr,
	&dev_attr_object_id.attr,
	&dev_attr_peer.attr,
	&dev_attr_generation.attr,
	&dev_attr_manager.attr,
	&dev_attr_emulated.attr,
	&dev_attr_link.attr,
	&dev_attr_alive.attr,
	NULL
};

static const struct attribute_group port_group = {
	.attrs = port_attrs,
};

PORT_ATTR(max_peers, "%u", port->info.max_peers);
PORT_ATTR(max_queues, "%u", port->info.max_queues);
PORT_ATTR(max_mrs, "%u", port->info.max_mrs);
PORT_ATTR(max_mr_pages, "%llu", port->info.max_mr_pages);
PORT_ATTR(max_windows, "%u", port->info.max_windows);
PORT_ATTR(window_slot_size, "%llu", port->info.window_slot_size);
PORT_ATTR(max_transfer, "%llu", port->info.max_transfer);

static struct attribute *limits_attrs[] = {
	&dev_attr_max_peers.attr,
	&dev_attr_max_queues.attr,
	&dev_attr_max_mrs.attr,
	&dev_attr_max_mr_pages.attr,
	&dev_attr_max_windows.attr,
	&dev_attr_window_slot_size.attr,
	&dev_attr_max_transfer.attr,
	NULL
};

static const struct attribute_group limits_group = {
	.name = "limits",
	.attrs = limits_attrs,
};

PORT_ATTR(queues, "%d", atomic_read(&port->count[FABREX_RES_QUEUE]));
PORT_ATTR(mrs, "%d", atomic_read(&port->count[FABREX_RES_MR]));
PORT_ATTR(windows, "%d", atomic_read(&port->count[FABREX_RES_WINDOW]));
PORT_ATTR(bytes, "%lld", (s64)atomic64_read(&port->charged));
PORT_ATTR(pinned_bytes, "%lld", (s64)atomic64_read(&port->pinned));
PORT_ATTR(dmabuf_bytes, "%lld", (s64)atomic64_read(&port->dmabuf_bytes));
PORT_ATTR(open_files, "%d", atomic_read(&port->open_files));

static struct attribute *usage_attrs[] = {
	&dev_attr_queues.attr,
	&dev_attr_mrs.attr,
	&dev_attr_windows.attr,
	&dev_attr_bytes.attr,
	&dev_attr_pinned_bytes.attr,
	&dev_attr_dmabuf_bytes.attr,
	&dev_attr_open_files.attr,
	NULL
};

static const struct attribute_group usage_group = {
	.name = "usage",
	.attrs = usage_attrs,
};

static ssize_t quota_store(struct device *dev, enum fabrex_res_type type,
			   const char *buf, size_t count)
{
	struct fabrex_port *port = to_fabrex_port(dev);
	u32 value;
	int ret;

	ret = kstrtou32(buf, 0, &value);
	if (ret)
		return ret;
	if (value > INT_MAX)
		return -ERANGE;
	WRITE_ONCE(port->quota[type], value);
	return count;
}

/* Their names are already used above. */
#define QUOTA_ATTR(_name, _type)					\
static ssize_t quota_##_name##_show(struct device *dev,			\
				    struct device_attribute *attr,	\
				    char *buf)				\
{									\
	return sysfs_emit(buf, "%u\n",					\
			  READ_ONCE(to_fabrex_port(dev)->quota[_type]));	\
}									\
static ssize_t quota_##_name##_store(struct device *dev,		\
				     struct device_attribute *attr,	\
				     const char *buf, size_t count)	\
{									\
	return quota_store(dev, _type, buf, count);			\
}									\
static struct device_attribute quota_attr_##_name =			\
	__ATTR(_name, 0644, quota_##_name##_show, quota_##_name##_store)

QUOTA_ATTR(queues, FABREX_RES_QUEUE);
QUOTA_ATTR(mrs, FABREX_RES_MR);
QUOTA_ATTR(windows, FABREX_RES_WINDOW);

static ssize_t quota_bytes_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n",
			  READ_ONCE(to_fabrex_port(dev)->quota_bytes));
}

static ssize_t quota_bytes_store(struct device *dev,
				 struct device_attribute *attr, const char *buf,
				 size_t count)
{
	u64 value;
	int ret;

	ret = kstrtou64(buf, 0, &value);
	if (ret)
		return ret;
	if (value > S64_MAX)
		return -ERANGE;
	WRITE_ONCE(to_fabrex_port(dev)->quota_bytes, value);
	return count;
}

static struct device_attribute quota_attr_bytes =
	__ATTR(bytes, 0644, quota_bytes_show, quota_bytes_store);

static struct attribute *quota_attrs[] = {
	&quota_attr_queues.attr,
	&quota_attr_mrs.attr,
	&quota_attr_windows.attr,
	&quota_attr_bytes.attr,
	NULL
};

static const struct attribute_group quota_group = {
	.name = "quota",
	.attrs = quota_attrs,
};

const struct attribute_group *fabrex_port_groups[] = {
	&port_group,
	&limits_group,
	&usage_group,
	&quota_group,
	NULL
};
