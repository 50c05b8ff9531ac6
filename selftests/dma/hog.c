// SPDX-License-Identifier: GPL-2.0-only
/*
 * A user, or a container, that takes all it can get of a port: says what stopped
 * it ("queues 16 EDQUOT", then "full"), and goes on trying until its standard
 * input ends, when it says how often it got something after all. The scenario
 * has lowered the quotas.
 *
 *	hog		as the caller
 *	hog mapped UID	a queue, as user UID who has made a user namespace with
 *			more uids and is one of those; says the error only
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw.h"

#define FILES	100
#define MOST	100000	/* nobody gets that many of anything */
#define SUBUID	200000

static int files[FILES];
static uint32_t self;

static uint64_t quota(const char *name)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/class/fabrex/%s/quota/%s",
		 basename(raw_path()), name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0) {
		printf("no %s\n", path);
		exit(1);
	}
	close(fd);
	return strtoull(text, NULL, 10);
}

static const char *name(int err)
{
	return err ? strerrorname_np(-err) : "0";
}

static int try_queue(int fd)
{
	struct fabrex_queue_create arg = {
		.size = sizeof(arg), .sq_entries = 8, .cq_entries = 8,
		.eventfd = -1,
	};

	return raw_ioctl(fd, FABREX_IOCTL_QUEUE_CREATE, &arg);
}

static int try_window(int fd, uint64_t key)
{
	struct fabrex_window_create arg = {
		.size = sizeof(arg), .peer = self, .rkey = key,
		.access = FABREX_ACCESS_REMOTE_READ, .length = RAW_PAGE,
	};

	return raw_ioctl(fd, FABREX_IOCTL_WINDOW_CREATE, &arg);
}

static void open_files(void)
{
	struct fabrex_port_query port;

	for (int i = 0; i < FILES; i++) {
		files[i] = raw_open();
		if (files[i] < 0) {
			printf("files %d %s\n", i, name(-errno));
			exit(1);
		}
	}
	if (raw_query(files[0], &port))
		exit(1);
	self = port.out_peer;
	printf("files %d 0\n", FILES);
}

static void fill_queues(void)
{
	int n, err = 0;

	for (n = 0; n < MOST && !err; n++)
		err = try_queue(files[n % FILES]);
	printf("queues %d %s\n", n - 1, name(err));
}

static void fill_windows(uint64_t key)
{
	int n, err = 0;

	for (n = 0; n < MOST && !err; n++)
		err = try_window(files[n % FILES], key);
	printf("windows %d %s\n", n - 1, name(err));
}

/* Small regions, and a last one of all bytes that are left. Returns a key. */
static uint64_t fill_regions(void)
{
	uint64_t mrs = quota("mrs"), bytes = quota("bytes"), key = 0;
	struct raw_mr mr;
	uint64_t n;
	int err;

	err = raw_mr(files[0], bytes + RAW_PAGE, RAW_ALL, &mr);
	printf("bytes %llu %s\n", (unsigned long long)bytes + RAW_PAGE,
	       name(err));
	for (n = 0; n + 1 < mrs; n++) {
		err = raw_mr(files[n % FILES], RAW_PAGE, RAW_ALL, &mr);
		if (err)
			break;
		key = mr.key;
	}
	err = err ?: raw_mr(files[0], bytes - n * RAW_PAGE, RAW_ALL, &mr);
	printf("last %llu %s\n", (unsigned long long)(bytes - n * RAW_PAGE),
	       name(err));
	n += !err;
	err = raw_mr(files[0], RAW_PAGE, RAW_ALL, &mr);
	printf("mrs %llu %s\n", (unsigned long long)n, name(err));
	return key;
}

/* More of each, again and again. */
static unsigned int go_on(uint64_t key)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	unsigned int got = 0;
	struct raw_mr mr;
	void *page = raw_pages(RAW_PAGE);
	char c;

	while (!poll(&in, 1, 0) || read(0, &c, 1) > 0) {
		got += !try_queue(files[1]);
		got += !try_window(files[2], key);
		got += !raw_mr_at(files[3], page, RAW_PAGE, RAW_ALL, &mr);
	}
	return got;
}

static int hog(void)
{
	struct rlimit limit = { quota("bytes"), quota("bytes") };
	uint64_t key;

	setrlimit(RLIMIT_MEMLOCK, &limit);
	open_files();
	fill_queues();
	key = fill_regions();
	fill_windows(key);
	printf("full\n");
	printf("got %u\n", go_on(key));
	return 0;
}

static int put(pid_t pid, const char *file, const char *format, ...)
{
	char path[64];
	va_list args;
	int fd, n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_WRONLY);
	va_start(args, format);
	n = vdprintf(fd, format, args);
	va_end(args);
	close(fd);
	return n > 0 ? 0 : -1;
}

/* The group of the device stays among those that the process has. */
static int as_mapped(uid_t uid, int ready, int mapped)
{
	char c = 0;
	int fd;

	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
	    unshare(CLONE_NEWUSER) || write(ready, &c, 1) != 1 ||
	    read(mapped, &c, 1) != 1 || setresuid(1, 1, 1))
		return 1;
	fd = raw_open();
	printf("mapped %s\n", name(fd < 0 ? -errno : try_queue(fd)));
	fflush(stdout);
	return 0;
}

static int map(uid_t uid)
{
	int ready[2], mapped[2], status;
	gid_t group = 990;	/* fabrex, in the image */
	char c = 0;
	pid_t pid;

	if (setgroups(1, &group) || pipe(ready) || pipe(mapped))
		return 1;
	pid = fork();
	if (!pid)
		_exit(as_mapped(uid, ready[1], mapped[0]));
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1 ||
	    put(pid, "uid_map", "0 %u 1\n1 %u 10\n", uid, SUBUID) ||
	    write(mapped[1], &c, 1) != 1)
		return 1;
	return waitpid(pid, &status, 0) != pid || status;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && !strcmp(argv[1], "mapped"))
		return map(atoi(argv[2]));
	return hog();
}
