// SPDX-License-Identifier: GPL-2.0-only
/*
 * Start another kernel with this one's command line, as kexec -f does: drivers
 * are shut down, processes and file systems are not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail(const char *what)
{
	fprintf(stderr, "unplug-kexec: %s: %s\n", what, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	char line[4096];
	int kernel, initrd, fd;
	ssize_t n;

	if (argc != 3) {
		fprintf(stderr, "usage: unplug-kexec KERNEL INITRD\n");
		return 2;
	}
	fd = open("/proc/cmdline", O_RDONLY);
	n = read(fd, line, sizeof(line) - 1);
	if (n <= 0)
		return fail("/proc/cmdline");
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	kernel = open(argv[1], O_RDONLY);
	if (kernel < 0)
		return fail(argv[1]);
	initrd = open(argv[2], O_RDONLY);
	if (initrd < 0)
		return fail(argv[2]);
	if (syscall(SYS_kexec_file_load, kernel, initrd, strlen(line) + 1, line,
		    0UL))
		return fail("kexec_file_load");
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
		LINUX_REBOOT_CMD_KEXEC, NULL);
	return fail("reboot");
}
