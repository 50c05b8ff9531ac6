// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-tcp serves others, one after another; bench-tcp HOST SECONDS SIZE... sends
 * messages of each size to one, for so long, each after the answer to the one
 * before: a byte, which says that all of the message has arrived. Prints how long
 * that takes, as JSON. Used by bridge_bench.py.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT		"7791"
#define MOST		(1u << 24)
#define WARMUP		3
#define MAX_SAMPLES	(1u << 20)

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

static bool all(int fd, char *buf, size_t len, bool out)
{
	ssize_t n;

	for (; len; buf += n, len -= n) {
		n = out ? send(fd, buf, len, MSG_NOSIGNAL) :
			  recv(fd, buf, len, 0);
		if (n <= 0)
			return false;
	}
	return true;
}

/* Of each size: its number, messages, and one that begins with 0. */
static void serve(int fd, char *buf)
{
	uint32_t size;
	char byte = 1;

	while (all(fd, (char *)&size, sizeof(size), false) &&
	       ntohl(size) <= MOST) {
		do {
			if (!all(fd, buf, ntohl(size), false) ||
			    !all(fd, &byte, 1, true))
				return;
		} while (*buf);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool measure(int fd, char *buf, uint32_t size, double seconds,
		    double *samples, size_t *n)
{
	uint32_t number = htonl(size);
	double begin, start = now_us();
	size_t i;
	char byte;

	if (!all(fd, (char *)&number, sizeof(number), true))
		return false;
	*buf = 1;
	for (i = *n = 0; i < WARMUP + 2 ||
	     (*n < MAX_SAMPLES && now_us() - start < seconds * 1e6); i++) {
		begin = now_us();
		if (!all(fd, buf, size, true) || !all(fd, &byte, 1, false))
			return false;
		if (i >= WARMUP)
			samples[(*n)++] = now_us() - begin;
		else
			start = now_us();
	}
	*buf = 0;
	return all(fd, buf, size, true) && all(fd, &byte, 1, false);
}

static int client(const char *host, double seconds, char **sizes, char *buf)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	double *samples = malloc(MAX_SAMPLES * sizeof(*samples));
	struct addrinfo *to;
	int fd, i, one = 1;
	size_t n;

	if (!samples || getaddrinfo(host, PORT, &hints, &to))
		return 2;
	fd = socket(to->ai_family, to->ai_socktype, 0);
	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen)) {
		perror(host);
		return 2;
	}
	freeaddrinfo(to);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (i = 0; sizes[i]; i++) {
		uint32_t size = strtoul(sizes[i], NULL, 0);

		if (!size || size > MOST ||
		    !measure(fd, buf, size, seconds, samples, &n)) {
			fprintf(stderr, "bench-tcp: %s bytes to %s: the connection has ended, or that size cannot be sent\n",
				sizes[i], host);
			return 1;
		}
		qsort(samples, n, sizeof(*samples), by_value);
		printf("%s{\"size\":%u,\"count\":%zu,\"median_us\":%.2f}",
		       i ? "," : "[", size, n, samples[n / 2]);
	}
	printf("]\n");
	free(samples);
	close(fd);
	return 0;
}

static int server(char *buf)
{
	const struct addrinfo hints = { .ai_family = AF_INET,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_PASSIVE };
	struct addrinfo *own;
	int fd, peer, one = 1;

	if (getaddrinfo(NULL, PORT, &hints, &own))
		return 2;
	fd = socket(own->ai_family, own->ai_socktype, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, own->ai_addr, own->ai_addrlen) ||
	    listen(fd, 8)) {
		perror("bench-tcp: cannot listen");
		return 2;
	}
	freeaddrinfo(own);
	while ((peer = accept(fd, NULL, NULL)) >= 0) {
		setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		serve(peer, buf);
		close(peer);
	}
	return 2;
}

int main(int argc, char **argv)
{
	char *buf = calloc(1, MOST);

	if (!buf || argc == 2 || argc == 3) {
		fputs("usage: bench-tcp [HOST SECONDS SIZE...]\n", stderr);
		return 2;
	}
	if (argc == 1)
		return server(buf);
	return client(argv[1], atof(argv[2]), argv + 3, buf);
}
