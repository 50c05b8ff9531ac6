/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ports as the driver core sees them, and module initialisation. For port.c and
 * module.c, the highest layer.
 */
#ifndef _FABREX_PORT_H
#define _FABREX_PORT_H

#include <linux/fs.h>
#include <linux/sysfs.h>

/* file.c */
extern const struct file_operations fabrex_fops;

int fabrex_files_init(void);
void fabrex_files_exit(void);

/* sysfs.c */
extern const struct attribute_group *fabrex_port_groups[];

/* port.c */
int fabrex_ports_init(void);
void fabrex_ports_exit(void);

#endif
