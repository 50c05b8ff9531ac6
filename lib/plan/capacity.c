// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What links carry, and how long a hop takes. The one set of figures for all
 * fabrics; files may say otherwise for their own links.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

/*
 * A Gen4 x16 link is 31.5 GB/s raw, collectives see 27: headers of packets,
 * flow control, read completions that do not fill the link.
 */
#define EFFICIENCY (27.0 / (16.0 * 16 / 8 * 128 / 130))

/* pci_speed_string() of Linux; line codes of the PCI Express Base Spec. */
static const struct {
	double gt;
	double code;		/* payload bits a bit; PAM4's FLITs from 64 on */
	const char *name;
} speeds[] = {
	{ 2.5, 8.0 / 10, "2.5 GT/s PCIe" },
	{ 5.0, 8.0 / 10, "5.0 GT/s PCIe" },
	{ 8.0, 128.0 / 130, "8.0 GT/s PCIe" },
	{ 16.0, 128.0 / 130, "16.0 GT/s PCIe" },
	{ 32.0, 128.0 / 130, "32.0 GT/s PCIe" },
	{ 64.0, 242.0 / 256, "64.0 GT/s PCIe" },
};

#define NSPEEDS (sizeof(speeds) / sizeof(speeds[0]))

uint64_t plan_pcie_capacity(double gt_per_s, uint32_t width)
{
	size_t i;

	if (!width || width > 32)
		return 0;
	for (i = 0; i < NSPEEDS; i++)
		if (speeds[i].gt == gt_per_s)
			return (uint64_t)llround(gt_per_s * width / 8 * 1000 *
						 speeds[i].code * EFFICIENCY);
	return 0;
}

const char *plan_pcie_speed_name(double gt_per_s)
{
	size_t i;

	for (i = 0; i < NSPEEDS; i++)
		if (speeds[i].gt == gt_per_s)
			return speeds[i].name;
	return NULL;
}

double plan_pcie_speed_parse(const char *text)
{
	size_t i, n = strlen(text);

	for (i = 0; i < NSPEEDS; i++)
		if (!strcmp(text, speeds[i].name) ||
		    (n + strlen(" PCIe") == strlen(speeds[i].name) &&
		     !strncmp(text, speeds[i].name, n)))
			return speeds[i].gt;
	return 0;
}

uint32_t plan_link_latency(enum plan_link_kind kind)
{
	switch (kind) {
	case PLAN_PCIE:
		return 150;	/* cut-through of a Gen4 switch: 100 to 150 */
	case PLAN_CABLE:
	case PLAN_ISL:
		return 170;	/* and some metres at 5 ns */
	case PLAN_XGMI:
	case PLAN_NVLINK:
		return 300;
	case PLAN_ROOT:
		return 400;	/* through a server's data fabric */
	case PLAN_SMP:
		return 500;
	default:
		return 500;
	}
}
