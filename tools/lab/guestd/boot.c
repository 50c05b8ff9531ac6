// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens before commands can run: modules, root file system, udev.
 * Called once by main.c, in this order, as process 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guestd.h"

#define NEWROOT "/newroot"

void warn(const char *what, const char *object)
{
	dprintf(2, "guestd: %s %s: %s\n", what, object, strerror(errno));
}

static void mnt(const char *dev, const char *dir, const char *type,
		unsigned long flags, const char *data)
{
	mkdir(dir, 0755);
	if (mount(dev, dir, type, flags, data))
		warn("mount", dir);
}

/* Value of name=value on the kernel command line, or NULL. */
const char *boot_option(const char *name)
{
	static char line[4096], copy[4096];
	char *word, *save;
	size_t len = strlen(name);
	ssize_t n;
	int fd;

	if (!line[0]) {
		fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? 0 : read(fd, line, sizeof(line) - 1);
		line[n > 0 ? n : 0] = '\0';
		close(fd);
	}
	strcpy(copy, line);
	for (word = strtok_r(copy, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save))
		if (!strncmp(word, name, len) && word[len] == '=')
			return word + len + 1;
	return NULL;
}

static void load_module(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		warn("load", path);
	if (fd >= 0)
		close(fd);
}

/* The image builder lists the modules in load order. */
static void load_modules(void)
{
	char path[256];
	FILE *list = fopen("/modules", "r");

	while (list && fgets(path, sizeof(path), list)) {
		path[strcspn(path, "\n")] = '\0';
		load_module(path);
	}
	if (list)
		fclose(list);
}

static void wait_for(const char *path)
{
	struct stat st;
	int i;

	for (i = 0; i < 1000 && stat(path, &st); i++)
		usleep(10000);
}

static void mount_api(void)
{
	mnt("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mnt("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mnt("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755");
}

static void mount_rest(void)
{
	mnt("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
	    "mode=0620,ptmxmode=0666,gid=5");
	mnt("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
	mnt("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755");
	mnt("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	mnt("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mnt("configfs", "/sys/kernel/config", "configfs", 0, NULL);
}

/* Read-only images below, memory above: every boot starts from the same. */
static void mount_overlay(void)
{
	mnt("tmpfs", "/over", "tmpfs", 0, "mode=0755");
	mkdir("/over/up", 0755);
	mkdir("/over/work", 0755);
	wait_for("/dev/vdb");
	mnt("/dev/vda", "/image", "erofs", MS_RDONLY, NULL);
	mnt("/dev/vdb", "/extra", "erofs", MS_RDONLY, NULL);
	mnt("overlay", NEWROOT, "overlay", 0,
	    "lowerdir=/extra:/image,upperdir=/over/up,workdir=/over/work");
}

static void switch_root(void)
{
	static const char *const api[] = { "/proc", "/sys", "/dev" };
	char path[64];
	size_t i;

	for (i = 0; i < sizeof(api) / sizeof(api[0]); i++) {
		snprintf(path, sizeof(path), NEWROOT "%s", api[i]);
		if (mount(api[i], path, NULL, MS_MOVE, NULL))
			warn("move", path);
	}
	if (chdir(NEWROOT) || mount(".", "/", NULL, MS_MOVE, NULL) ||
	    chroot(".") || chdir("/"))
		warn("switch to", NEWROOT);
}

static void mkdir_parents(const char *path)
{
	char part[256];
	size_t i;

	for (i = 1; path[i] && i < sizeof(part) - 1; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		mkdir(part, 0755);
	}
}

static void mount_tree(void)
{
	const char *tree = boot_option("lab.tree");
	char path[256];

	if (!tree)
		return;
	snprintf(path, sizeof(path), "%s", tree);
	mkdir_parents(path);
	mnt("tree", path, "9p", MS_RDONLY,
	    "trans=virtio,version=9p2000.L,cache=mmap,msize=262144");
}

void boot_mount_root(void)
{
	mount_api();
	load_modules();
	mount_overlay();
	switch_root();
	mount_rest();
	mount_tree();
}

/* Host name, loop-back interface and udev, by the image's own tools. */
void boot_start_services(void)
{
	char *argv[] = { "/bin/sh", "/etc/lab-rc", NULL };
	int status;
	pid_t pid;

	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", 1);
	setenv("HOME", "/root", 1);
	setenv("TERM", "linux", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	pid = fork();
	if (!pid) {
		execv(argv[0], argv);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) == pid && status)
		dprintf(2, "guestd: /etc/lab-rc failed, status 0x%x\n", status);
}
