// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Small files below a root directory, read without trusting what is in them.
 * Called by the other files of lib/p2p/.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "p2p/sysfs.h"

int fxi_sysfs_path(char path[SYSFS_PATH], const char *root, const char *fmt, ...)
{
	va_list ap;
	int n, m;

	n = snprintf(path, SYSFS_PATH, "%s", root);
	if (n < 0 || n >= SYSFS_PATH)
		return -ENAMETOOLONG;
	va_start(ap, fmt);
	m = vsnprintf(path + n, SYSFS_PATH - n, fmt, ap);
	va_end(ap);
	return m < 0 || m >= SYSFS_PATH - n ? -ENAMETOOLONG : 0;
}

static long read_all(int fd, char *buf, size_t size)
{
	size_t got = 0;
	ssize_t n;

	while (got < size - 1) {
		n = read(fd, buf + got, size - 1 - got);
		if (n < 0 && errno == EINTR)
			continue;
		/* A register that cannot be read ends what there is. */
		if (n < 0 && !got)
			return -errno;
		if (n <= 0)
			break;
		got += n;
	}
	buf[got] = '\0';
	return got;
}

int fxi_sysfs_open(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st = { 0 };

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		*size = st.st_size;
		return fd;
	}
	close(fd);
	/* Containers mask what is not to be read with /dev/null. */
	return S_ISCHR(st.st_mode) ? -EACCES : -EUCLEAN;
}

bool fxi_sysfs_refused(int err)
{
	return err == -EACCES || err == -EPERM || err == -EMFILE ||
	       err == -ENFILE || err == -ENOMEM;
}

bool fxi_sysfs_pread(int fd, void *buf, size_t size, size_t at)
{
	ssize_t n;

	errno = 0;
	do {
		n = pread(fd, buf, size, at);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

long fxi_sysfs_read(const char *path, void *buf, size_t size)
{
	size_t file_size;
	int fd = fxi_sysfs_open(path, &file_size);
	long n;

	if (fd < 0)
		return fd;
	n = read_all(fd, buf, size);
	close(fd);
	return n;
}

bool fxi_sysfs_line(const char *path, char *buf, size_t size)
{
	if (fxi_sysfs_read(path, buf, size) <= 0)
		return false;
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

bool fxi_sysfs_resolve(const char *path, const char *below,
		       char out[SYSFS_PATH])
{
	char *full = realpath(path, NULL), *top = realpath(below, NULL);
	size_t n = top ? strlen(top) : 0;
	bool good = full && top && !strncmp(full, top, n) && full[n] == '/' &&
		    strlen(full) < SYSFS_PATH;

	if (good)
		memcpy(out, full, strlen(full) + 1);
	free(full);
	free(top);
	return good;
}

const char *fxi_sysfs_next(DIR *dir)
{
	struct dirent *entry;

	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			return entry->d_name;
	return NULL;
}
