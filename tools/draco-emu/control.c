// SPDX-License-Identifier: GPL-2.0-only
/*
 * The control socket: connections and lines. The commands are in commands.c.
 * Created by emu.c; loop thread only.
 */
#define _GNU_SOURCE
#include "control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "loop.h"

#define LINE_MAX_BYTES	65536
#define MAX_CLIENTS	64

struct client {
	struct control *control;
	struct loop_fd *handle;
	int fd;
	size_t used;
	char *out;		/* not sent yet */
	size_t out_len;
	struct client *next;
	char line[LINE_MAX_BYTES];
};

struct control {
	struct fabric *fabric;
	struct loop_fd *handle;
	int fd;
	char *path;
	unsigned int nclients;
	struct client *clients;
};

static void drop(struct client *cl)
{
	struct client **p = &cl->control->clients;

	while (*p != cl)
		p = &(*p)->next;
	*p = cl->next;
	cl->control->nclients--;
	loop_fd_del(cl->handle);
	close(cl->fd);
	free(cl->out);
	free(cl);
}

/* False: the client is gone. */
static bool flush(struct client *cl)
{
	ssize_t n = 0;

	while (cl->out_len) {
		n = send(cl->fd, cl->out, cl->out_len,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n <= 0)
			break;
		cl->out_len -= n;
		memmove(cl->out, cl->out + n, cl->out_len);
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return false;
	loop_fd_events(cl->handle, cl->out_len ? EPOLLIN | EPOLLOUT : EPOLLIN);
	return true;
}

static bool reply(struct client *cl, const char *line)
{
	struct json_object *r = control_execute(cl->control->fabric, line);
	const char *text = json_object_to_json_string_ext(r,
							  JSON_C_TO_STRING_PLAIN);
	size_t len = strlen(text);
	char *out = realloc(cl->out, cl->out_len + len + 1);

	if (out) {
		memcpy(out + cl->out_len, text, len);
		out[cl->out_len + len] = '\n';
		cl->out = out;
		cl->out_len += len + 1;
	}
	json_object_put(r);
	return out && flush(cl);
}

/* All whole lines that have come. False: the client is to be dropped. */
static bool take_lines(struct client *cl)
{
	char *end;

	while ((end = memchr(cl->line, '\n', cl->used))) {
		size_t len = end - cl->line + 1;

		*end = 0;
		if (!reply(cl, cl->line))
			return false;
		cl->used -= len;
		memmove(cl->line, cl->line + len, cl->used);
	}
	return cl->used < sizeof(cl->line);
}

static void on_client(void *arg, uint32_t events)
{
	struct client *cl = arg;
	ssize_t n;

	if (events & EPOLLOUT && !flush(cl)) {
		drop(cl);
		return;
	}
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	n = recv(cl->fd, cl->line + cl->used, sizeof(cl->line) - cl->used,
		 MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(cl);
		return;
	}
	cl->used += n;
	if (!take_lines(cl))
		drop(cl);
}

static void on_connect(void *arg, uint32_t events)
{
	struct control *c = arg;
	int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC);
	struct client *cl;

	(void)events;
	if (fd < 0)
		return;
	cl = c->nclients < MAX_CLIENTS ? calloc(1, sizeof(*cl)) : NULL;
	if (!cl) {
		log_error("control socket: too many clients; one is refused");
		close(fd);
		return;
	}
	cl->control = c;
	cl->fd = fd;
	cl->handle = loop_fd_add(fd, EPOLLIN, on_client, cl);
	if (!cl->handle) {
		close(fd);
		free(cl);
		return;
	}
	cl->next = c->clients;
	c->clients = cl;
	c->nclients++;
}

static int listen_at(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(sa.sun_path))
		return -ENAMETOOLONG;
	memcpy(sa.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	unlink(path);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, 8)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int control_create(struct fabric *f, const char *path, struct control **out)
{
	struct control *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->fabric = f;
	c->path = strdup(path);
	c->fd = listen_at(path);
	err = c->fd < 0 ? c->fd : !c->path ? -ENOMEM : 0;
	if (!err) {
		c->handle = loop_fd_add(c->fd, EPOLLIN, on_connect, c);
		err = c->handle ? 0 : -ENOMEM;
	}
	if (err) {
		log_error("control socket %s: %s; choose another --run-dir",
			  path, strerror(-err));
		if (c->fd >= 0)
			close(c->fd);
		free(c->path);
		free(c);
		return err;
	}
	*out = c;
	return 0;
}

void control_destroy(struct control *c)
{
	if (!c)
		return;
	while (c->clients)
		drop(c->clients);
	loop_fd_del(c->handle);
	close(c->fd);
	unlink(c->path);
	free(c->path);
	free(c);
}
