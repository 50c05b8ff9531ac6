// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices that an IOMMU does not tell apart. Called by netlink.c and by backends.
 */
#include <linux/iommu.h>
#include <linux/string.h>

#include "backend.h"

/**
 * struct group_reader - while a group is being read
 * @dev:   the device whose group it is
 * @group: result
 */
struct group_reader {
	struct device *dev;
	struct fabrex_iommu_group *group;
};

static int group_add(struct device *dev, void *arg)
{
	struct group_reader *reader = arg;
	struct fabrex_iommu_group *group = reader->group;

	if (dev == reader->dev)
		return 0;
	if (group->others < FABREX_GROUP_NAMES)
		strscpy(group->names[group->others], dev_name(dev),
			sizeof(group->names[0]));
	group->others++;
	return 0;
}

/**
 * fabrex_iommu_group_read() - look which devices share an IOMMU group
 * @dev:   one of them
 * @group: result
 *
 * Context: Process; sleeps.
 * Return: false if @dev is in no group
 */
bool fabrex_iommu_group_read(struct device *dev,
			     struct fabrex_iommu_group *group)
{
	struct group_reader reader = { .dev = dev, .group = group };
	struct iommu_group *found = iommu_group_get(dev);

	if (!found)
		return false;
	group->id = iommu_group_id(found);
	group->others = 0;
	iommu_group_for_each_dev(found, &reader, group_add);
	iommu_group_put(found);
	return true;
}
FABREX_EXPORT(fabrex_iommu_group_read);
