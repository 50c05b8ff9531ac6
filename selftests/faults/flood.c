// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hostile user: as many queues as the quota gives, all broken at once, over
 * and over, and nobody who reads the events. Says "flooding" when the first
 * round is over, and how many there were when its input ends. Started by
 * test_faults.py.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "raw.h"

#define QUEUES	256
#define BAD	1000	/* more than a ring of 8 has */

static struct raw_queue queue[QUEUES];

static int make(int fd)
{
	int n = 0;

	while (n < QUEUES && !raw_queue(fd, 8, 8, 0, &queue[n]))
		n++;
	return n;
}

/* The device stops each of them and reports that. */
static int break_all(int n)
{
	for (int i = 0; i < n; i++) {
		queue[i].ctrl->sq_tail = BAD;
		queue[i].db[FABREX_DB_SQ / 4] = BAD;
	}
	for (int i = 0; i < n; i++)
		while (queue[i].ctrl->state == FABREX_QUEUE_OK)
			usleep(100);
	return n;
}

static void free_all(int n)
{
	while (n)
		raw_queue_free(&queue[--n]);
}

int main(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	unsigned long total = 0;
	int fd = raw_open(), n;

	if (fd < 0)
		return 1;
	do {
		n = make(fd);
		if (!n) {
			puts("no queue to be had");
			return 1;
		}
		if (!total)
			printf("flooding with %d\n", n);
		total += break_all(n);
		fflush(stdout);
		free_all(n);
	} while (!poll(&in, 1, 0));
	printf("broke %lu queues\n", total);
	return 0;
}
