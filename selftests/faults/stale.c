// SPDX-License-Identifier: GPL-2.0-only
/*
 * A cache of registrations over a reset of the port: registers watched memory,
 * says "watching", and ends well if the watch page tells of the reset and the
 * same open file can register again. Started by test_faults.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "raw.h"

#define PATIENCE	(RAW_WAIT_MS / 10)

static int register_watched(int fd, void *mem)
{
	struct fabrex_mr_register arg = {
		.size = sizeof(arg), .flags = FABREX_MR_WATCH,
		.addr = (uintptr_t)mem, .length = RAW_PAGE, .watch = 1,
	};

	return raw_ioctl(fd, FABREX_IOCTL_MR_REGISTER, &arg);
}

static int fail(const char *what, int err)
{
	printf("%s: %s\n", what, strerror(-err));
	return 1;
}

int main(void)
{
	struct fabrex_watch watch = { .size = sizeof(watch), .entries = 2 };
	volatile uint32_t *page;
	int fd = raw_open();
	void *mem = raw_pages(RAW_PAGE);
	int err, i;

	if (fd < 0 || !mem)
		return fail("open", fd);
	memset(mem, 1, RAW_PAGE);
	err = raw_ioctl(fd, FABREX_IOCTL_WATCH, &watch);
	if (err)
		return fail("watch", err);
	page = mmap(NULL, watch.out_length, PROT_READ, MAP_SHARED, fd,
		    (off_t)watch.out_mmap);
	if (page == MAP_FAILED)
		return fail("mmap", -1);
	err = register_watched(fd, mem);
	if (err)
		return fail("register", err);
	if (page[1])
		return fail("counted too early", 0);
	puts("watching");
	fflush(stdout);
	for (i = 0; !page[1]; i++, usleep(10000))
		if (i == PATIENCE)
			return fail("nothing counted", 0);
	for (i = 0; (err = register_watched(fd, mem)); i++, usleep(10000))
		if (i == PATIENCE)
			return fail("register again", err);
	puts("told, and registered again");
	return 0;
}
