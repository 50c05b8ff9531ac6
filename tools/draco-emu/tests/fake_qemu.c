// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fake QEMU: enough of QMP for qmp.c and slot.c. One lock; the QMP thread and
 * the test's calls take turns.
 */
#define _GNU_SOURCE
#include <json-c/json.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"
#include "fake_qemu.h"

struct device {
	bool used;
	char id[64], bus[32];
	unsigned int fn;
	struct client c;
};

struct fake_qemu {
	pthread_t thread;
	pthread_mutex_t lock;
	int listen_fd, fd;
	unsigned int refuse;		/* the how manieth device_add */
	unsigned int dels;
	struct client port;
	struct device dev[FAKE_DEVICES];
};

static void say(struct fake_qemu *q, const char *line)
{
	if (q->fd >= 0)
		send(q->fd, line, strlen(line), MSG_NOSIGNAL);
}

static const char *string(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) ?
	       json_object_get_string(v) : "";
}

/* "slot2", or "slot2:1" for another function than 0; NULL: there is none. */
static struct device *on_bus(struct fake_qemu *q, const char *bus)
{
	const char *colon = strchr(bus, ':');
	size_t len = colon ? (size_t)(colon - bus) : strlen(bus);
	unsigned int fn = colon ? (unsigned int)atoi(colon + 1) : 0;
	struct device *d;

	for (d = q->dev; d < q->dev + FAKE_DEVICES; d++)
		if (d->used && d->fn == fn && strlen(d->bus) == len &&
		    !strncmp(d->bus, bus, len))
			return d;
	return NULL;
}

/* Function 0 is the last, and has to say that there are others. */
static bool may_add(struct fake_qemu *q, struct json_object *args,
		    unsigned int fn)
{
	struct json_object *many = NULL;

	json_object_object_get_ex(args, "multifunction", &many);
	if (on_bus(q, string(args, "bus")))
		return false;
	for (struct device *d = q->dev; d < q->dev + FAKE_DEVICES; d++) {
		if (!d->used || strcmp(d->bus, string(args, "bus")))
			continue;
		if (d->fn == fn || !json_object_get_boolean(many))
			return false;
	}
	return true;
}

static bool add(struct fake_qemu *q, struct json_object *args)
{
	struct json_object *sock;
	struct device *d;
	unsigned int fn = 0;

	sscanf(string(args, "addr"), "0.%u", &fn);
	if ((q->refuse && !--q->refuse) || !may_add(q, args, fn))
		return false;
	for (d = q->dev; d < q->dev + FAKE_DEVICES && d->used; d++)
		;
	if (!json_object_object_get_ex(args, "socket", &sock) ||
	    client_connect(&d->c, string(sock, "path")) ||
	    client_version(&d->c) < 0)
		return false;
	d->used = true;
	d->fn = fn;
	snprintf(d->id, sizeof(d->id), "%s", string(args, "id"));
	snprintf(d->bus, sizeof(d->bus), "%s", string(args, "bus"));
	return true;
}

static void drop(struct fake_qemu *q, struct device *d)
{
	char line[256];

	client_close(&d->c);
	d->used = false;
	snprintf(line, sizeof(line), "{\"event\":\"DEVICE_DELETED\","
		 "\"data\":{\"device\":\"%s\",\"path\":\"/x\"}}\r\n", d->id);
	say(q, line);
}

/* The guest is asked, unless it knows of nothing there yet. */
static bool del(struct fake_qemu *q, const char *id)
{
	for (struct device *d = q->dev; d < q->dev + FAKE_DEVICES; d++) {
		if (!d->used || strcmp(d->id, id))
			continue;
		if (on_bus(q, d->bus))
			q->dels++;
		else
			drop(q, d);
		return true;
	}
	return false;
}

static void command(struct fake_qemu *q, const char *line)
{
	struct json_object *o = json_tokener_parse(line), *args = NULL;
	const char *name = string(o, "execute");
	char reply[256];
	bool ok = true;

	json_object_object_get_ex(o, "arguments", &args);
	if (!strcmp(name, "device_add"))
		ok = add(q, args);
	else if (!strcmp(name, "device_del"))
		ok = del(q, string(args, "id"));
	snprintf(reply, sizeof(reply), ok ? "{\"return\":{},\"id\":%s}\r\n" :
		 "{\"error\":{\"class\":\"GenericError\",\"desc\":\"no\"},\"id\":%s}\r\n",
		 string(o, "id"));
	say(q, reply);
	json_object_put(o);
}

static void *qmp_thread(void *arg)
{
	struct fake_qemu *q = arg;
	int fd = accept(q->listen_fd, NULL, NULL);
	char line[4096];
	FILE *in;

	pthread_mutex_lock(&q->lock);
	q->fd = fd;
	say(q, "{\"QMP\":{\"version\":{},\"capabilities\":[]}}\r\n");
	pthread_mutex_unlock(&q->lock);
	in = fd >= 0 ? fdopen(dup(fd), "r") : NULL;
	while (in && fgets(line, sizeof(line), in)) {
		pthread_mutex_lock(&q->lock);
		command(q, line);
		pthread_mutex_unlock(&q->lock);
	}
	if (in)
		fclose(in);
	return NULL;
}

struct fake_qemu *fake_qemu_start(const char *qmp_path, const char *port,
				  int mem_fd, uint64_t mem_size)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct fake_qemu *q = calloc(1, sizeof(*q));

	pthread_mutex_init(&q->lock, NULL);
	q->fd = -1;
	if (client_connect(&q->port, port) || client_version(&q->port) < 0 ||
	    client_map(&q->port, 0, mem_size, mem_fd, 0) ||
	    client_set_config(&q->port, 4, 6, 2))
		abort();
	strncpy(a.sun_path, qmp_path, sizeof(a.sun_path) - 1);
	unlink(qmp_path);
	q->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(q->listen_fd, (struct sockaddr *)&a, sizeof(a)) ||
	    listen(q->listen_fd, 1))
		abort();
	pthread_create(&q->thread, NULL, qmp_thread, q);
	return q;
}

void fake_qemu_kill(struct fake_qemu *q)
{
	struct device *d;

	shutdown(q->listen_fd, SHUT_RDWR);
	pthread_mutex_lock(&q->lock);
	if (q->fd >= 0)
		shutdown(q->fd, SHUT_RDWR);
	client_close(&q->port);
	for (d = q->dev; d < q->dev + FAKE_DEVICES; d++)
		if (d->used)
			client_close(&d->c);
	pthread_mutex_unlock(&q->lock);
	pthread_join(q->thread, NULL);
	close(q->listen_fd);
	if (q->fd >= 0)
		close(q->fd);
	free(q);
}

bool fake_qemu_power_off(struct fake_qemu *q, const char *bus)
{
	bool full = false;
	struct device *d;

	pthread_mutex_lock(&q->lock);
	for (d = q->dev; d < q->dev + FAKE_DEVICES; d++) {
		if (!d->used || strcmp(d->bus, bus))
			continue;
		drop(q, d);
		full = true;
	}
	pthread_mutex_unlock(&q->lock);
	return full;
}

bool fake_qemu_set_bar(struct fake_qemu *q, const char *bus, unsigned int bar,
		       uint64_t addr)
{
	struct device *d;
	bool ok;

	pthread_mutex_lock(&q->lock);
	d = on_bus(q, bus);
	ok = d && !client_set_config(&d->c, 0x10 + 4 * bar, (uint32_t)addr, 4) &&
	     !client_set_config(&d->c, 0x14 + 4 * bar,
				(uint32_t)(addr >> 32), 4) &&
	     !client_set_config(&d->c, 4, 2, 2);
	pthread_mutex_unlock(&q->lock);
	return ok;
}

bool fake_qemu_config(struct fake_qemu *q, const char *bus, uint64_t offset,
		      uint8_t v)
{
	struct device *d;
	bool ok;

	pthread_mutex_lock(&q->lock);
	d = on_bus(q, bus);
	ok = d && !client_set_config(&d->c, offset, v, 1);
	pthread_mutex_unlock(&q->lock);
	return ok;
}

bool fake_qemu_command(struct fake_qemu *q, const char *bus, uint8_t v)
{
	return fake_qemu_config(q, bus, 4, v);
}

bool fake_qemu_write(struct fake_qemu *q, const char *bus, uint64_t offset,
		     uint32_t v)
{
	struct device *d;
	bool ok;

	pthread_mutex_lock(&q->lock);
	d = on_bus(q, bus);
	ok = d && !client_write(&d->c, 0, offset, &v, 4);
	pthread_mutex_unlock(&q->lock);
	return ok;
}

uint32_t fake_qemu_vendor(struct fake_qemu *q, const char *bus)
{
	struct device *d;
	uint32_t v = 0;

	pthread_mutex_lock(&q->lock);
	d = on_bus(q, bus);
	if (d)
		v = client_config(&d->c, 0, 2);
	pthread_mutex_unlock(&q->lock);
	return v;
}

void fake_qemu_refuse(struct fake_qemu *q, unsigned int nth)
{
	pthread_mutex_lock(&q->lock);
	q->refuse = nth;
	pthread_mutex_unlock(&q->lock);
}

unsigned int fake_qemu_device_dels(struct fake_qemu *q)
{
	unsigned int n;

	pthread_mutex_lock(&q->lock);
	n = q->dels;
	pthread_mutex_unlock(&q->lock);
	return n;
}
