// SPDX-License-Identifier: GPL-2.0-only
/*
 * A user who takes queues, regions and windows until none is left for him, gives
 * some back, takes them again, closes, and begins anew; until its input ends.
 * Prints what it took, and ends with 1 if something was refused for a reason
 * that neither a quota nor a port that is reset can be. Started by actors.py.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "raw.h"

#define MOST	4096
#define PINNED	(2u << 20)	/* so that regions end soon */

static uint32_t ids[MOST];
static unsigned long queues, regions, windows, refused, rounds;
static int strange;

static bool go_on(int ms)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	return !poll(&in, 1, ms);
}

static bool quota(int err)
{
	return err == -EDQUOT || err == -ENOMEM || err == -ENOSPC;
}

/* What a port says that is reset, or was when the file was opened. */
static bool gone(int err)
{
	return err == -ENODEV || err == -EIO || err == -ENOENT ||
	       err == -ENXIO || err == -EACCES || err == -ETIMEDOUT ||
	       err == -ECANCELED || err == -EAGAIN || err == -ENETDOWN ||
	       err == -EHOSTUNREACH;
}

static int take_queue(int fd, const struct raw_mr *mr, uint32_t *id)
{
	struct fabrex_queue_create arg = {
		.size = sizeof(arg), .sq_entries = 8, .cq_entries = 8,
		.eventfd = -1,
	};
	int err = raw_ioctl(fd, FABREX_IOCTL_QUEUE_CREATE, &arg);

	(void)mr;
	*id = arg.out_id;
	queues += !err;
	return err;
}

static int take_region(int fd, const struct raw_mr *mr, uint32_t *id)
{
	struct raw_mr more;
	int err = raw_mr_at(fd, mr->addr, RAW_PAGE, RAW_ALL, &more);

	*id = more.id;
	regions += !err;
	return err;
}

/* Onto its own memory. */
static int take_window(int fd, const struct raw_mr *mr, uint32_t *id)
{
	struct fabrex_window_create arg = {
		.size = sizeof(arg), .rkey = mr->key, .length = mr->length,
		.access = FABREX_ACCESS_REMOTE_READ,
	};
	struct fabrex_port_query port;
	int err = raw_query(fd, &port);

	arg.peer = port.out_peer;
	err = err ? err : raw_ioctl(fd, FABREX_IOCTL_WINDOW_CREATE, &arg);
	*id = arg.out_id;
	windows += !err;
	return err;
}

typedef int (*take_fn)(int fd, const struct raw_mr *mr, uint32_t *id);

static int judge(const char *what, int err, unsigned int n)
{
	if (quota(err) && n)
		refused++;
	else if (err && !gone(err)) {
		printf("%s: %s after %u\n", what, strerror(-err), n);
		strange = 1;
	}
	return err;
}

/* All of one kind, half of them back, all again; close() does the rest. */
static int fill(int fd, const struct raw_mr *mr, const char *what, take_fn take)
{
	unsigned int n = 0, all;
	int err = 0;

	while (n < MOST && !(err = take(fd, mr, &ids[n])))
		n++;
	if (gone(judge(what, err, n)))
		return err;
	all = n;
	while (n > all / 2) {
		err = raw_destroy(fd, ids[--n]);
		if (err)
			return judge("destroy", err, 1);
	}
	while (n < all && !(err = take(fd, mr, &ids[n])))
		n++;
	/* It is a user's own, and nobody else can have taken it. */
	if (quota(err)) {
		printf("%s: %u of %u are left\n", what, n, all);
		strange = 1;
	}
	return judge(what, err, n);
}

static int hoard(int fd)
{
	struct raw_mr mr = { .addr = NULL };
	int err = raw_mr(fd, 1 << 20, RAW_ALL, &mr);

	err = judge("first region", err, 0);
	if (!err)
		err = fill(fd, &mr, "window", take_window);
	if (!gone(err))
		err = fill(fd, &mr, "queue", take_queue);
	if (!gone(err))
		err = fill(fd, &mr, "region", take_region);
	if (mr.addr)
		munmap(mr.addr, mr.length);
	return err;
}

int main(void)
{
	const struct rlimit limit = { PINNED, PINNED };

	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return 1;
	do {
		int fd = raw_open();

		if (fd < 0)
			continue;
		rounds += !gone(hoard(fd));
		close(fd);
	} while (!strange && go_on(100));
	printf("rounds %lu\nqueues %lu\nregions %lu\nwindows %lu\nrefused %lu\n",
	       rounds, queues, regions, windows, refused);
	return strange;
}
