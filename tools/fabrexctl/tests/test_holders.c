// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holders: on trees made up like /proc and /sys, and on a real process that
 * has a file of a real tree open or mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "holders.h"
#include "run_line.h"
#include "util.h"

#define BDF "0000:05:00.0"

static char root[] = "/tmp/fabrexctl-holders-XXXXXX";
static char proc[64], sys[64];
static struct holder_roots roots = { proc, sys };

/* Directories on the way to a file. */
static void make_dirs(char *path)
{
	char *p;

	for (p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

static void put(const char *text, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(const char *text, const char *fmt, ...)
{
	char path[512];
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	make_dirs(path);
	f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

static void put_link(const char *target, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put_link(const char *target, const char *fmt, ...)
{
	char path[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	make_dirs(path);
	unlink(path);
	if (symlink(target, path))
		perror(path);
}

#define DEV "devices/pci0000:00/0000:00:01.0/" BDF

/* A device with a character node (/dev/null's number), a disk, a NIC. */
static void make_sys(void)
{
	put("0x120000\n", "%s/" DEV "/class", sys);
	put("", "%s/" DEV "/resource0", sys);
	put("", "%s/" DEV "/config", sys);
	put("1:3\n", "%s/" DEV "/misc/gpu0/dev", sys);
	put("MAJOR=1\nMINOR=3\nDEVNAME=gpu0\n", "%s/" DEV "/misc/gpu0/uevent",
	    sys);
	put("259:7\n", "%s/" DEV "/nvme/nvme9/nvme9n1/dev", sys);
	put("DEVNAME=nvme9n1\n", "%s/" DEV "/nvme/nvme9/nvme9n1/uevent", sys);
	put_link("../../../../../../../class/block",
		 "%s/" DEV "/nvme/nvme9/nvme9n1/subsystem", sys);
	put("0x1002\n", "%s/" DEV "/net/eth9/flags", sys);
	put("1:5\n", "%s/class/vfio/17/dev", sys);
	put("DEVNAME=vfio/17\n", "%s/class/vfio/17/uevent", sys);
	put_link("../../../../kernel/iommu_groups/17", "%s/" DEV "/iommu_group",
		 sys);
	put_link("../../../" DEV, "%s/bus/pci/devices/" BDF, sys);
	/* A link out of the device must not be followed. */
	put("1:9\n", "%s/devices/other/dev", sys);
	put_link("../../../other", "%s/" DEV "/supplier", sys);
}

static void make_process(const char *pid, const char *comm)
{
	char text[64];

	snprintf(text, sizeof(text), "%s\n", comm);
	put(text, "%s/%s/comm", proc, pid);
	put("", "%s/%s/maps", proc, pid);
	put("", "%s/%s/mountinfo", proc, pid);
	put_link("mnt:[1]", "%s/%s/ns/mnt", proc, pid);
	put_link("/dev/urandom", "%s/%s/fd/0", proc, pid);
}

static struct holders find(int expect)
{
	struct holders h = { 0 };
	struct err e = { 0 };
	int r = holders_find(&roots, BDF, &h, &e);

	ok(!r && h.n == (size_t)expect, "%d found of %d%s%s", (int)h.n, expect,
	   h.n ? ", first: " : "", h.n ? h.v[0].reason : "");
	return h;
}

static void expect_one(unsigned int pid, const char *comm, const char *reason)
{
	struct holders h = find(1);

	if (h.n) {
		ok(h.v[0].pid == pid && !strcmp(h.v[0].comm, comm),
		   "pid %u (%s)", h.v[0].pid, h.v[0].comm);
		has(h.v[0].reason, reason);
	}
	holders_free(&h);
}

static void expect_none(const char *what)
{
	struct holders h = find(0);

	ok(!h.n, "nobody: %s", what);
	holders_free(&h);
}

static void made_up_trees(void)
{
	char path[512], real[PATH_MAX];

	snprintf(path, sizeof(path), "%s/bus/pci/devices/" BDF, sys);
	ok(realpath(path, real), "the device is there");
	make_process("100", "idle");
	expect_none("an idle process");
	put_link("/dev/null", "%s/100/fd/5", proc);
	expect_one(100, "idle", "has /dev/gpu0 open");
	put_link("/dev/zero", "%s/100/fd/5", proc);
	expect_one(100, "idle", "has /dev/vfio/17 open");
	put_link("/dev/urandom", "%s/100/fd/5", proc);
	expect_none("devices of others");
	snprintf(path, sizeof(path), "%s/resource0", real);
	put_link(path, "%s/100/fd/5", proc);
	expect_one(100, "idle", "has resource0 of the device open");
	snprintf(path, sizeof(path), "%s/class", real);
	put_link(path, "%s/100/fd/5", proc);
	expect_none("attributes may be read");
	snprintf(path, sizeof(path), "%sx/resource0", real);
	put_link(path, "%s/100/fd/5", proc);
	expect_none("a device whose name begins alike");
	snprintf(path, sizeof(path),
		 "7f00-7f01 rw-s 0 00:15 99    %s/resource0\n", real);
	put(path, "%s/100/maps", proc);
	expect_one(100, "idle", "has resource0 of the device mapped");
	put("7f00-7f01 rw-s 0 00:05 7    /dev/gpu0\n", "%s/100/maps", proc);
	expect_one(100, "idle", "has /dev/gpu0 mapped");
	put("", "%s/100/maps", proc);
	put_link("anon_inode:[vfio-device]", "%s/100/fd/5", proc);
	put("pos:\t0\nvfio-device-syspath: /sys/devices/x/" BDF "\n",
	    "%s/100/fdinfo/5", proc);
	expect_one(100, "idle", "through vfio");
	put("vfio-device-syspath: /sys/devices/x/0000:06:00.0\n",
	    "%s/100/fdinfo/5", proc);
	expect_none("another device's vfio descriptor");
}

static void kernel_users(void)
{
	put("25 1 259:7 / /data rw - ext4 /dev/nvme9n1 rw\n",
	    "%s/100/mountinfo", proc);
	expect_one(0, "kernel", "/dev/nvme9n1 is mounted on /data");
	make_process("101", "other");
	put("25 1 259:7 / /data rw - ext4 /dev/nvme9n1 rw\n",
	    "%s/101/mountinfo", proc);
	expect_one(0, "kernel", "mounted");
	put("25 1 0:44 / /pool rw - btrfs /dev/nvme9n1 rw\n",
	    "%s/100/mountinfo", proc);
	put("25 1 0:44 / /pool rw - btrfs /dev/nvme9n1 rw\n",
	    "%s/101/mountinfo", proc);
	expect_one(0, "kernel", "mounted on /pool");
	put("25 1 259:77 / /data rw - ext4 /dev/nvme9n11 rw\n",
	    "%s/100/mountinfo", proc);
	put("", "%s/101/mountinfo", proc);
	expect_none("another disk");
	put("Filename Type\n/dev/nvme9n1   partition 1 0 -2\n", "%s/swaps",
	    proc);
	expect_one(0, "kernel", "used for swapping");
	put("Filename Type\n", "%s/swaps", proc);
	put("0x1003\n", "%s/" DEV "/net/eth9/flags", sys);
	expect_one(0, "kernel", "network interface eth9 is up");
	put("0x1002\n", "%s/" DEV "/net/eth9/flags", sys);
	put_link("../../x", "%s/" DEV "/nvme/nvme9/nvme9n1/holders/dm-0", sys);
	expect_one(0, "kernel", "nvme9n1 is part of dm-0");
}

static void unknown_devices(void)
{
	struct holders h = { 0 };
	struct err e = { 0 };

	ok(holders_find(&roots, "0000:99:00.0", &h, &e) == -ENODEV,
	   "no such device");
	has(e.message, "no PCI device 0000:99:00.0");
	ok(holders_find(&roots, "../../../..", &h, &e) == -ENODEV,
	   "a path is no device");
	holders_free(&h);
}

/* A child that has a file of the made-up device open, or mapped only. */
static pid_t start_holder(const char *file, bool map)
{
	int p[2], fd;
	pid_t pid;
	char c;

	if (pipe(p))
		return -1;
	pid = fork();
	if (!pid) {
		fd = open(file, O_RDWR);
		if (map) {
			if (ftruncate(fd, 4096) ||
			    mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) ==
			    MAP_FAILED)
				_exit(1);
			close(fd);
		}
		if (write(p[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(p[1]);
	if (read(p[0], &c, 1) != 1)
		pid = -1;
	close(p[0]);
	return pid;
}

/* The real /proc, the made-up /sys. */
static void real_process(bool map)
{
	struct holder_roots real = { "/proc", sys };
	struct holders h = { 0 };
	struct err e = { 0 };
	char file[PATH_MAX];
	pid_t pid;
	int r;

	snprintf(file, sizeof(file), "%s/" DEV "/resource0", sys);
	pid = start_holder(file, map);
	put("0x1002\n", "%s/" DEV "/net/eth9/flags", sys);
	r = holders_find(&real, BDF, &h, &e);
	/* Some process has /dev/null open, whose number our gpu0 has. */
	while (h.n && h.v[0].pid != (uint32_t)pid) {
		memmove(h.v, h.v + 1, --h.n * sizeof(*h.v));
	}
	ok(!r && h.n, "the process is found: %s",
	   h.n ? h.v[0].reason : "no");
	if (h.n)
		has(h.v[0].reason, map ? "mapped" : "open");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	holders_free(&h);
}

int main(void)
{
	char cmd[128];

	if (!mkdtemp(root))
		return 1;
	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(sys, sizeof(sys), "%s/sys", root);
	make_sys();
	made_up_trees();
	kernel_users();
	unknown_devices();
	put("9:9\n", "%s/" DEV "/misc/gpu0/dev", sys);
	real_process(false);
	real_process(true);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	return system(cmd) ? 1 : tap_done();
}
