/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A machine made of files: the parts of sysfs and proc that lib/p2p/ reads.
 * For p2p.c, slot.c and fabrexctl's tests.
 */
#ifndef LIB_TESTS_MACHINE_H
#define LIB_TESTS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where capabilities are in its configuration spaces. */
#define AT_PM		0x40
#define AT_EXPRESS	0x50
#define AT_ACS		0x100

#define EXPRESS_ENDPOINT	0x0
#define EXPRESS_ROOT_PORT	0x4
#define EXPRESS_UPSTREAM	0x5
#define EXPRESS_DOWNSTREAM	0x6

struct machine {
	char root[64];
};

/*
 * 0000:00 has the host bridge 8086:29c0 and two root ports with a switch below
 * each: 00:05.0 - 01:00.0 - 02:00.0 ... 02:03.0 with port a.0 in 03:00.0, GPUs
 * in 04:00.0 and 05:00.0 and nothing in slot 4; 00:06.0 - 10:00.0 - 11:00.0 ...
 * with a GPU in 12:00.0. 0001:00 has one with a GPU in 0001:01:00.0.
 */
void machine_new(struct machine *m);
void machine_free(struct machine *m);

/* A file below the root, with directories as needed. */
void machine_file(struct machine *m, const char *path, const void *data,
		  size_t size);
void machine_text(struct machine *m, const char *path, const char *text);
void machine_link(struct machine *m, const char *path, const char *to);
void machine_remove(struct machine *m, const char *path);
/* A function @name below directory @above of sys/devices. */
void machine_device(struct machine *m, const char *above, const char *name,
		    uint32_t id, int type);
/* Path of a device's file, below the root. */
const char *machine_at(struct machine *m, const char *name, const char *file);
/* Change its configuration space; to cut it short, what the file has. */
void machine_poke(struct machine *m, const char *name, unsigned int at,
		  uint16_t value);
void machine_config(struct machine *m, const char *name, uint8_t fill,
		    size_t size);
void machine_cut(struct machine *m, const char *name, size_t size);
/* As a user without CAP_SYS_ADMIN sees it. */
void machine_cut_all(struct machine *m, size_t size);
/* Its BAR 2: @base 0 with a size has no address. Bridges: the window. */
void machine_memory(struct machine *m, const char *name, uint64_t base,
		    uint64_t size);
void machine_iommu(struct machine *m, const char *name, const char *type);
void machine_acs(struct machine *m, const char *name, uint16_t control);
void machine_cpu(struct machine *m, const char *vendor, unsigned int family);

#endif
