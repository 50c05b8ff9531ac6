// SPDX-License-Identifier: LGPL-2.1-or-later
/* The one table of PCI Express link speeds; see pcie.h. */
#include <string.h>

#include "topology/pcie.h"

/* pci_speed_string() of Linux; line codes of the PCI Express Base Spec. */
static const struct {
	double gt;
	double code;		/* payload bits per bit; from 64 on, PAM4 FLITs */
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

double pcie_rate(double gt_per_s, unsigned int width)
{
	size_t i;

	if (!width || width > 32)
		return 0;
	for (i = 0; i < NSPEEDS; i++)
		if (speeds[i].gt == gt_per_s)
			return gt_per_s * width / 8 * 1000 * speeds[i].code;
	return 0;
}

const char *pcie_speed_name(double gt_per_s)
{
	size_t i;

	for (i = 0; i < NSPEEDS; i++)
		if (speeds[i].gt == gt_per_s)
			return speeds[i].name;
	return NULL;
}

double pcie_speed_parse(const char *text)
{
	size_t i, n = strlen(text);

	for (i = 0; i < NSPEEDS; i++)
		if (!strcmp(text, speeds[i].name) ||
		    (n + strlen(" PCIe") == strlen(speeds[i].name) &&
		     !strncmp(text, speeds[i].name, n)))
			return speeds[i].gt;
	return 0;
}
