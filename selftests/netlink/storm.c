// SPDX-License-Identifier: GPL-2.0-only
/*
 * storm THREADS: that many threads read the local port's counters, again and
 * again, until standard input is closed. Prints "running" when each has asked
 * once, and how many answers of what kind there were.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "nl.h"

static atomic_uint asked, good, bad;
static atomic_bool stop;

static void *ask(void *arg)
{
	bool first = true;
	struct nl_msg msg;
	struct nl nl;

	if (nl_open(&nl)) {
		fprintf(stderr, "no socket\n");
		exit(1);
	}
	while (!stop) {
		if (first)
			asked++;
		first = false;
		nl_begin(&nl, &msg, FABREX_CMD_COUNTERS_GET, 0);
		if (nl_do(&nl, &msg, NULL))
			bad++;
		else
			good++;
	}
	nl_close(&nl);
	return arg;
}

int main(int argc, char **argv)
{
	unsigned int i, n = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t *thread = calloc(n + 1, sizeof(*thread));
	pthread_attr_t attr;
	char c;

	if (!n || !thread)
		return 2;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	for (i = 0; i < n; i++)
		if (pthread_create(&thread[i], &attr, ask, NULL))
			return 1;
	while (asked < n)
		usleep(1000);
	puts("running");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	stop = true;
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	printf("good %u bad %u\n", good, bad);
	return 0;
}
