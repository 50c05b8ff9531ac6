// SPDX-License-Identifier: GPL-2.0-only
/*
 * End this kernel: drivers are shut down, processes and file systems are not.
 * Without arguments the machine starts again, as by reboot -f; with a kernel and
 * an initrd they are started instead, with the same command line, as by kexec -f.
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
	fprintf(stderr, "unplug-restart: %s: %s\n", what, strerror(errno));
	return 1;
}

static int load(const char *image, const char *ramdisk)
{
	char line[4096];
	int kernel, initrd, fd;
	ssize_t n;

	fd = open("/proc/cmdline", O_RDONLY);
	n = read(fd, line, sizeof(line) - 1);
	if (n <= 0)
		return fail("/proc/cmdline");
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	kernel = open(image, O_RDONLY);
	if (kernel < 0)
		return fail(image);
	initrd = open(ramdisk, O_RDONLY);
	if (initrd < 0)
		return fail(ramdisk);
	if (syscall(SYS_kexec_file_load, kernel, initrd, strlen(line) + 1, line,
		    0UL))
		return fail("kexec_file_load");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 1 && argc != 3) {
		fprintf(stderr, "usage: unplug-restart [KERNEL INITRD]\n");
		return 2;
	}
	if (argc == 3 && load(argv[1], argv[2]))
		return 1;
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
		argc == 3 ? LINUX_REBOOT_CMD_KEXEC : LINUX_REBOOT_CMD_RESTART,
		NULL);
	return fail("reboot");
}
