/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small files below a root directory, read without trusting what is in them.
 * Called by the other files of lib/p2p/.
 */
#ifndef LIB_P2P_SYSFS_H
#define LIB_P2P_SYSFS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSFS_PATH	1024

/* @root and the formatted rest; -ENAMETOOLONG. */
int fxi_sysfs_path(char path[SYSFS_PATH], const char *root, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Up to @size - 1 bytes of a file and a NUL. Returns how many, or a negative
 * errno. Whatever is no regular file is refused.
 */
long fxi_sysfs_read(const char *path, void *buf, size_t size);
/* For pread(); a negative errno if it is no regular file. */
int fxi_sysfs_open(const char *path, size_t *size);
/* @err is about this process, such as -EACCES or -EMFILE, not the device. */
bool fxi_sysfs_refused(int err);
/* All of @size bytes at @at, or false: errno says why, 0 is the end of it. */
bool fxi_sysfs_pread(int fd, void *buf, size_t size, size_t at);
/* First line, without its end; false if there is none. */
bool fxi_sysfs_line(const char *path, char *buf, size_t size);
/* Target of the link, resolved; false if it is outside of @below. */
bool fxi_sysfs_resolve(const char *path, const char *below,
		       char out[SYSFS_PATH]);
/* Entries but "." and ".."; NULL at the end. */
const char *fxi_sysfs_next(DIR *dir);

#endif
