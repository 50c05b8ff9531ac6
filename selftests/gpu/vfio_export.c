// SPDX-License-Identifier: GPL-2.0-only
/*
 * vfio-pci as an exporter of device memory: group, container, device, dma-buf,
 * and the ways to revoke. Linked by vfio_tool.c and by test programs.
 */
#define _GNU_SOURCE
#include "vfio_export.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* As in linux/vfio.h from 6.19 on; older headers lack them. */
#define FEATURE_DMA_BUF		11

struct dma_buf_range {
	__u64 offset;
	__u64 length;
};

struct dma_buf_request {
	__u32 argsz;			/* struct vfio_device_feature */
	__u32 feature;
	__u32 region_index;		/* its payload */
	__u32 open_flags;
	__u32 flags;
	__u32 nr_ranges;
	struct dma_buf_range range;
};

struct vfio_export {
	int container, group, device, request;
};

/* ---- sysfs ---- */

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int write_attr(const char *bdf, const char *attr, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", bdf, attr);
	return write_file(path, text);
}

#define NAME_SIZE	256

/* Name of what a symbolic link of the device leads to. */
static int link_name(const char *bdf, const char *attr, char name[NAME_SIZE])
{
	char path[128];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", bdf, attr);
	n = readlink(path, name, NAME_SIZE - 1);
	if (n < 0)
		return -errno;
	name[n] = 0;
	base = strrchr(name, '/');
	if (base)
		memmove(name, base + 1, strlen(base));
	return 0;
}

int vfio_export_bind(const char *bdf)
{
	char driver[NAME_SIZE];
	int err;

	err = write_attr(bdf, "driver_override", "vfio-pci");
	if (err)
		return err;
	err = write_attr(bdf, "driver/unbind", bdf);
	if (err && err != -ENOENT)	/* has no driver */
		return err;
	err = write_file("/sys/bus/pci/drivers_probe", bdf);
	if (err)
		return err;
	/* drivers_probe succeeds without a driver. */
	err = link_name(bdf, "driver", driver);
	if (err)
		return err == -ENOENT ? -ENXIO : err;
	return strcmp(driver, "vfio-pci") ? -EBUSY : 0;
}

/* ---- Group, container, device ---- */

/* Without an IOMMU the group, if there is one, is called noiommu-<N>. */
static int open_group(const char *bdf, bool *noiommu)
{
	char path[NAME_SIZE + 64], number[NAME_SIZE], name[32] = "";
	int fd, err = link_name(bdf, "iommu_group", number);

	if (err)
		return err == -ENOENT ? -ENXIO : err;
	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/%s/name", number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (read(fd, name, sizeof(name) - 1) < 0)
			name[0] = 0;
		close(fd);
	}
	*noiommu = !strncmp(name, "vfio-noiommu", 12);
	snprintf(path, sizeof(path), "/dev/vfio/%s%s",
		 *noiommu ? "noiommu-" : "", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int join(struct vfio_export *v, bool noiommu)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };
	int type = noiommu ? VFIO_NOIOMMU_IOMMU : VFIO_TYPE1v2_IOMMU;

	if (ioctl(v->group, VFIO_GROUP_GET_STATUS, &status))
		return -errno;
	if (!(status.flags & VFIO_GROUP_FLAGS_VIABLE))
		return -EPERM;		/* others of it have other drivers */
	if (ioctl(v->group, VFIO_GROUP_SET_CONTAINER, &v->container) ||
	    ioctl(v->container, VFIO_SET_IOMMU, type))
		return -errno;
	return 0;
}

static int watch_requests(struct vfio_export *v)
{
	struct {
		struct vfio_irq_set set;
		__s32 fd;
	} rq = { .set = {
		.argsz = sizeof(rq), .index = VFIO_PCI_REQ_IRQ_INDEX, .count = 1,
		.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
	} };

	v->request = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (v->request < 0)
		return -errno;
	rq.fd = v->request;
	return ioctl(v->device, VFIO_DEVICE_SET_IRQS, &rq) ? -errno : 0;
}

int vfio_export_request_fd(struct vfio_export *v)
{
	return v->request;
}

static int open_all(struct vfio_export *v, const char *bdf)
{
	bool noiommu = false;
	int err;

	v->container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	if (v->container < 0)
		return -errno;
	v->group = open_group(bdf, &noiommu);
	if (v->group < 0)
		return v->group;
	err = join(v, noiommu);
	if (err)
		return err;
	v->device = ioctl(v->group, VFIO_GROUP_GET_DEVICE_FD, bdf);
	return v->device < 0 ? -errno : watch_requests(v);
}

int vfio_export_open(const char *bdf, struct vfio_export **out)
{
	struct vfio_export *v = malloc(sizeof(*v));
	int err;

	if (!v)
		return -ENOMEM;
	*v = (struct vfio_export){ -1, -1, -1, -1 };
	err = open_all(v, bdf);
	if (!err)
		err = vfio_export_memory(v, true);
	if (err)
		vfio_export_close(v);
	else
		*out = v;
	return err;
}

void vfio_export_close(struct vfio_export *v)
{
	const int fd[] = { v->device, v->group, v->container, v->request };

	for (int i = 0; i < 4; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	free(v);
}

/* ---- Regions ---- */

static int region(struct vfio_export *v, unsigned int index,
		  struct vfio_region_info *info)
{
	*info = (struct vfio_region_info){
		.argsz = sizeof(*info), .index = index,
	};
	return ioctl(v->device, VFIO_DEVICE_GET_REGION_INFO, info) ? -errno : 0;
}

uint64_t vfio_export_bar(struct vfio_export *v, unsigned int bar)
{
	struct vfio_region_info info;

	return bar > VFIO_PCI_BAR5_REGION_INDEX || region(v, bar, &info) ?
	       0 : info.size;
}

int vfio_export_dmabuf(struct vfio_export *v, unsigned int bar, uint64_t offset,
		       uint64_t length)
{
	uint64_t size = vfio_export_bar(v, bar);
	struct dma_buf_request rq = {
		.argsz = sizeof(rq),
		.feature = VFIO_DEVICE_FEATURE_GET | FEATURE_DMA_BUF,
		.region_index = bar,
		.open_flags = O_RDWR | O_CLOEXEC,
		.nr_ranges = 1,
		.range = { offset, length ? length : size - offset },
	};
	int fd;

	if (!size || offset >= size)
		return -EINVAL;
	fd = ioctl(v->device, VFIO_DEVICE_FEATURE, &rq);
	return fd < 0 ? -errno : fd;
}

int vfio_export_map(struct vfio_export *v, unsigned int bar, uint64_t offset,
		    size_t length, void **out)
{
	struct vfio_region_info info;
	int err = region(v, bar, &info);

	if (err)
		return err;
	if (!(info.flags & VFIO_REGION_INFO_FLAG_MMAP))
		return -EOPNOTSUPP;
	*out = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, v->device,
		    (off_t)(info.offset + offset));
	return *out == MAP_FAILED ? -errno : 0;
}

/* ---- Revoking ---- */

int vfio_export_reset(struct vfio_export *v)
{
	return ioctl(v->device, VFIO_DEVICE_RESET) ? -errno : 0;
}

/* Change bits of a 16-bit register of configuration space. */
static int config_change(struct vfio_export *v, off_t at, uint16_t clear,
			 uint16_t set)
{
	struct vfio_region_info info;
	uint16_t value;
	int err = region(v, VFIO_PCI_CONFIG_REGION_INDEX, &info);

	if (err)
		return err;
	at += (off_t)info.offset;
	if (pread(v->device, &value, 2, at) != 2)
		return -EIO;
	value = (uint16_t)((value & ~clear) | set);
	return pwrite(v->device, &value, 2, at) == 2 ? 0 : -EIO;
}

int vfio_export_memory(struct vfio_export *v, bool on)
{
	return config_change(v, PCI_COMMAND, on ? 0 : PCI_COMMAND_MEMORY,
			     on ? PCI_COMMAND_MEMORY : 0);
}

/* Where capability `id` is in configuration space; 0: nowhere. */
static uint8_t capability(struct vfio_export *v, uint8_t id)
{
	struct vfio_region_info info;
	uint8_t at = PCI_CAPABILITY_LIST, cap[2];

	if (region(v, VFIO_PCI_CONFIG_REGION_INDEX, &info) ||
	    pread(v->device, &at, 1, (off_t)info.offset + at) != 1)
		return 0;
	for (int tries = 48; at && tries; tries--) {
		if (pread(v->device, cap, 2, (off_t)info.offset + at) != 2)
			return 0;
		if (cap[0] == id)
			return at;
		at = cap[1];
	}
	return 0;
}

int vfio_export_sleep(struct vfio_export *v, bool on)
{
	uint8_t pm = capability(v, PCI_CAP_ID_PM);

	if (!pm)
		return -EOPNOTSUPP;
	return config_change(v, pm + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK,
			     on ? 3 : 0);
}
