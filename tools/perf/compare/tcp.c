// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plain TCP: two processes and one connection over the loopback interface,
 * blocking calls, no delay.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "compare.h"

struct arg {
	int listener;
	struct sockaddr_in address;
	uint64_t bytes;
};

struct state {
	int fd;
	uint32_t rank;
	uint64_t room;
	char *buffer;
};

static bool put(int fd, const char *from, uint64_t n)
{
	ssize_t done;

	for (; n; n -= (uint64_t)done, from += done) {
		done = send(fd, from, n, MSG_NOSIGNAL);
		if (done <= 0)
			return false;
	}
	return true;
}

static bool get(int fd, char *to, uint64_t n)
{
	ssize_t done;

	for (; n; n -= (uint64_t)done, to += done) {
		done = recv(fd, to, n, 0);
		if (done <= 0)
			return false;
	}
	return true;
}

static bool connect_rank(struct state *s, const struct arg *a)
{
	int one = 1;

	if (!s->rank) {
		s->fd = accept(a->listener, NULL, NULL);
		close(a->listener);
	} else {
		s->fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(s->fd, (const struct sockaddr *)&a->address,
			    sizeof(a->address)))
			return false;
	}
	return s->fd >= 0 && !setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one,
					 sizeof(one));
}

static void *open_rank(const void *arg, uint32_t rank, uint32_t ranks,
		       struct peer_hello *hello)
{
	const struct arg *a = arg;
	struct state *s = calloc(1, sizeof(*s));

	(void)ranks;
	if (!s)
		return NULL;
	s->rank = rank;
	s->room = a->bytes;
	s->buffer = calloc(1, a->bytes);
	if (s->buffer && connect_rank(s, a))
		return s;
	snprintf(hello->text, sizeof(hello->text), "TCP connection: %m");
	free(s->buffer);
	free(s);
	return NULL;
}

static void close_rank(void *state)
{
	struct state *s = state;

	close(s->fd);
	free(s->buffer);
	free(s);
}

static bool ping_pong(struct state *s, uint64_t bytes, uint64_t n)
{
	bool ok = true;

	while (ok && n--)
		ok = s->rank ? get(s->fd, s->buffer, bytes) &&
			       put(s->fd, s->buffer, bytes) :
			       put(s->fd, s->buffer, bytes) &&
			       get(s->fd, s->buffer, bytes);
	return ok;
}

/* All of it, and an answer when it has been read. */
static bool stream(struct state *s, uint64_t bytes, uint64_t n)
{
	bool ok = true;

	while (ok && n--)
		ok = s->rank ? get(s->fd, s->buffer, bytes) :
			       put(s->fd, s->buffer, bytes);
	return ok && (s->rank ? put(s->fd, s->buffer, 1) :
				get(s->fd, s->buffer, 1));
}

static void measure_rank(void *state, const struct peer_request *q,
			 struct peer_reply *reply)
{
	bool (*turn)(struct state *s, uint64_t bytes, uint64_t n) =
		!strcmp(q->what, "send_lat") ? ping_pong : stream;
	struct state *s = state;
	bool ok;

	if (q->bytes > s->room) {
		reply->error = EINVAL;
		return;
	}
	ok = turn(s, q->bytes, q->warmup) && ping_pong(s, 1, 1);
	reply->begin_ns = now_ns();
	ok = ok && turn(s, q->bytes, q->iterations);
	reply->end_ns = now_ns();
	if (!ok) {
		reply->error = errno ? errno : EPIPE;
		snprintf(reply->text, sizeof(reply->text), "TCP: %m");
	}
}

static const struct worker_kind worker = {
	.name = "TCP", .open = open_rank, .measure = measure_rank,
	.close = close_rank,
};

static void *open_group(const struct comparison *c, uint32_t ranks,
			char *version, char *why, size_t n)
{
	struct arg arg = { .bytes = cmp_largest(c, ranks) };
	socklen_t length = sizeof(arg.address);
	struct group *g = NULL;

	arg.address.sin_family = AF_INET;
	arg.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	arg.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (arg.listener < 0 ||
	    bind(arg.listener, (struct sockaddr *)&arg.address, length) ||
	    getsockname(arg.listener, (struct sockaddr *)&arg.address,
			&length) ||
	    listen(arg.listener, 1))
		snprintf(why, n, "no TCP over the loopback interface: %m");
	else
		g = cmp_fork(c, &worker, &arg, ranks, version, why, n);
	if (arg.listener >= 0)
		close(arg.listener);
	return g;
}

const struct contender cmp_tcp = {
	.id = C_TCP, .name = "TCP", .word = "tcp", .open = open_group,
	.measure = cmp_group_measure, .close = cmp_group_close, .first = 10,
};
