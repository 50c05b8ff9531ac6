/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Speeds of PCI Express links: how Linux writes them, and the rate that the
 * line code leaves. For the planner and for programs that read sysfs.
 */
#ifndef LIB_TOPOLOGY_PCIE_H
#define LIB_TOPOLOGY_PCIE_H

/* MB/s (10^6 bytes) in one direction; 0: no such speed or width. */
double pcie_rate(double gt_per_s, unsigned int width);
/* "16.0 GT/s PCIe", as in sysfs; NULL: no such speed. */
const char *pcie_speed_name(double gt_per_s);
/* GT/s of such a string, " PCIe" being optional; 0: it is none. */
double pcie_speed_parse(const char *text);

#endif
