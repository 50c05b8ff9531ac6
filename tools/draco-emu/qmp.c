// SPDX-License-Identifier: GPL-2.0-only
/*
 * QMP client: one JSON object per line each way. Commands are answered in any
 * order by id; events go to every listener.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "loop.h"
#include "qmp.h"

#define RETRY_MS	100
#define LINE_MAX_BYTES	(1u << 20)
#define OUT_MAX_BYTES	(1u << 20)

struct pending {
	int64_t id;
	qmp_reply_fn fn;
	void *arg;
	struct pending *next;
};

struct qmp {
	char *host, *path;
	int fd;
	struct loop_fd *handle;
	struct loop_timer retry;
	bool up;
	int64_t next_id;
	struct pending *pending;
	struct qmp_listener *listeners;
	char *in;
	size_t have, room;
	char *out;
	size_t out_len;
};

static void try_connect(void *arg);

static void tell_state(struct qmp *q, bool up)
{
	struct qmp_listener *l, *next;

	for (l = q->listeners; l; l = next) {
		next = l->next;
		if (l->state)
			l->state(l->arg, up);
	}
}

static void fail_pending(struct qmp *q)
{
	struct pending *p;

	while ((p = q->pending)) {
		q->pending = p->next;
		if (p->fn)
			p->fn(p->arg, NULL, "disconnected");
		free(p);
	}
}

static void disconnect(struct qmp *q)
{
	bool was = q->up;

	if (q->fd < 0)
		return;
	loop_fd_del(q->handle);
	close(q->fd);
	q->fd = -1;
	q->handle = NULL;
	q->up = false;
	q->have = q->out_len = 0;
	fail_pending(q);
	if (was) {
		log_info("host %s: QEMU is gone", q->host);
		tell_state(q, false);
	}
	loop_timer_start(&q->retry, RETRY_MS, try_connect, q);
}

/* ---- Sending ---- */

static void flush_out(struct qmp *q)
{
	while (q->out_len) {
		ssize_t n = send(q->fd, q->out, q->out_len,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			break;		/* EPOLLOUT or EPOLLHUP comes */
		memmove(q->out, q->out + n, q->out_len - (size_t)n);
		q->out_len -= (size_t)n;
	}
	loop_fd_events(q->handle, EPOLLIN | (q->out_len ? EPOLLOUT : 0));
}

static int send_line(struct qmp *q, const char *line)
{
	size_t len = strlen(line);
	char *p;

	if (q->out_len + len + 1 > OUT_MAX_BYTES)
		return -ENOBUFS;
	p = realloc(q->out, q->out_len + len + 1);
	if (!p)
		return -ENOMEM;
	q->out = p;
	memcpy(q->out + q->out_len, line, len);
	q->out[q->out_len + len] = '\n';
	q->out_len += len + 1;
	flush_out(q);
	return 0;
}

static int send_command(struct qmp *q, const char *command,
			struct json_object *arguments, qmp_reply_fn fn,
			void *arg)
{
	struct json_object *o = json_object_new_object();
	struct pending *p = calloc(1, sizeof(*p));
	int ret;

	if (!o || !p) {
		json_object_put(o);
		json_object_put(arguments);
		free(p);
		return -ENOMEM;
	}
	p->id = ++q->next_id;
	p->fn = fn;
	p->arg = arg;
	json_object_object_add(o, "execute", json_object_new_string(command));
	json_object_object_add(o, "id", json_object_new_int64(p->id));
	if (arguments)
		json_object_object_add(o, "arguments", arguments);
	ret = send_line(q, json_object_to_json_string_ext(o,
						JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
	if (ret) {
		free(p);
		return ret;
	}
	p->next = q->pending;
	q->pending = p;
	return 0;
}

int qmp_execute(struct qmp *q, const char *command,
		struct json_object *arguments, qmp_reply_fn fn, void *arg)
{
	if (!q->up) {
		json_object_put(arguments);
		return -ENOTCONN;
	}
	return send_command(q, command, arguments, fn, arg);
}

void qmp_cancel(struct qmp *q, void *arg)
{
	struct pending *p;

	for (p = q->pending; p; p = p->next)
		if (p->arg == arg)
			p->fn = NULL;
}

/* ---- Receiving ---- */

static void negotiated(void *arg, struct json_object *ret, const char *error)
{
	struct qmp *q = arg;

	(void)ret;
	if (error) {
		log_error("host %s: QMP refused: %s", q->host, error);
		return;
	}
	q->up = true;
	log_info("host %s: QEMU is there", q->host);
	tell_state(q, true);
}

static void deliver(struct pending *p, struct json_object *ret,
		    struct json_object *error)
{
	struct json_object *v;
	char text[512];

	if (!p->fn)
		return;
	if (!error) {
		p->fn(p->arg, ret, NULL);
		return;
	}
	snprintf(text, sizeof(text), "%s",
		 json_object_object_get_ex(error, "desc", &v) ?
		 json_object_get_string(v) : "no description");
	p->fn(p->arg, NULL, text);
}

static void on_reply(struct qmp *q, struct json_object *id,
		     struct json_object *ret, struct json_object *error)
{
	struct pending **pp, *p;

	for (pp = &q->pending; (p = *pp); pp = &p->next) {
		if (p->id != json_object_get_int64(id))
			continue;
		*pp = p->next;
		deliver(p, ret, error);
		free(p);
		return;
	}
}

static void on_event(struct qmp *q, const char *name, struct json_object *data)
{
	struct qmp_listener *l, *next;

	for (l = q->listeners; l; l = next) {
		next = l->next;
		if (l->event)
			l->event(l->arg, name, data);
	}
}

static void on_line(struct qmp *q, const char *line)
{
	struct json_object *o = json_tokener_parse(line);
	struct json_object *v, *id, *data = NULL, *error = NULL;

	if (!json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		return;
	}
	if (json_object_object_get_ex(o, "QMP", &v)) {
		send_command(q, "qmp_capabilities", NULL, negotiated, q);
	} else if (json_object_object_get_ex(o, "event", &v) &&
		   json_object_is_type(v, json_type_string)) {
		json_object_object_get_ex(o, "data", &data);
		on_event(q, json_object_get_string(v), data);
	} else if (json_object_object_get_ex(o, "id", &id)) {
		if (json_object_object_get_ex(o, "return", &v))
			on_reply(q, id, v, NULL);
		else if (json_object_object_get_ex(o, "error", &error) &&
			 json_object_is_type(error, json_type_object))
			on_reply(q, id, NULL, error);
	}
	json_object_put(o);
}

static void take_lines(struct qmp *q)
{
	size_t start = 0;
	char *nl;

	while (q->fd >= 0 &&
	       (nl = memchr(q->in + start, '\n', q->have - start))) {
		*nl = '\0';
		on_line(q, q->in + start);
		start = (size_t)(nl - q->in) + 1;
	}
	if (q->fd < 0)
		return;
	memmove(q->in, q->in + start, q->have - start);
	q->have -= start;
}

static bool make_room(struct qmp *q)
{
	char *p;

	if (q->room - q->have >= 4096)
		return true;
	if (q->room >= LINE_MAX_BYTES)
		return false;
	p = realloc(q->in, q->room + 16384);
	if (!p)
		return false;
	q->in = p;
	q->room += 16384;
	return true;
}

static void on_io(void *arg, uint32_t events)
{
	struct qmp *q = arg;
	ssize_t n;

	if (events & EPOLLOUT)
		flush_out(q);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	if (!make_room(q)) {
		disconnect(q);
		return;
	}
	n = recv(q->fd, q->in + q->have, q->room - q->have, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		disconnect(q);
		return;
	}
	q->have += (size_t)n;
	take_lines(q);
}

static void try_connect(void *arg)
{
	struct qmp *q = arg;
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	strncpy(a.sun_path, q->path, sizeof(a.sun_path) - 1);
	q->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (q->fd >= 0 && !connect(q->fd, (struct sockaddr *)&a, sizeof(a)))
		q->handle = loop_fd_add(q->fd, EPOLLIN, on_io, q);
	if (q->handle)
		return;
	if (q->fd >= 0)
		close(q->fd);
	q->fd = -1;
	loop_timer_start(&q->retry, RETRY_MS, try_connect, q);
}

/* ---- Life ---- */

int qmp_create(const char *host, const char *path, struct qmp **out)
{
	struct qmp *q;

	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		log_error("host %s: QMP path %s is too long for a socket",
			  host, path);
		return -ENAMETOOLONG;
	}
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->host = strdup(host);
	q->path = strdup(path);
	q->fd = -1;
	if (!q->host || !q->path) {
		free(q->host);
		free(q->path);
		free(q);
		return -ENOMEM;
	}
	loop_timer_start(&q->retry, 0, try_connect, q);
	*out = q;
	return 0;
}

void qmp_destroy(struct qmp *q)
{
	if (!q)
		return;
	q->listeners = NULL;
	disconnect(q);
	loop_timer_stop(&q->retry);
	free(q->in);
	free(q->out);
	free(q->host);
	free(q->path);
	free(q);
}

bool qmp_up(struct qmp *q)
{
	return q->up;
}

void qmp_listen(struct qmp *q, struct qmp_listener *l)
{
	l->next = q->listeners;
	q->listeners = l;
}

void qmp_unlisten(struct qmp *q, struct qmp_listener *l)
{
	struct qmp_listener **p;

	for (p = &q->listeners; *p; p = &(*p)->next) {
		if (*p != l)
			continue;
		*p = l->next;
		return;
	}
}
