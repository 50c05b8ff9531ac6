// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ports: opening, limits, peers, and the list of the objects of a port. Public
 * half: fabrex_open(3); fxi_object_* is for regions, queues and windows.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/internal.h"
#include "memory/memory.h"
#include "base/debug.h"
#include "base/path.h"

bool fxi_port_mine(const struct fabrex_port *port)
{
	return port->pid == getpid();
}

void fxi_port_hold(struct fabrex_port *port, enum port_user user)
{
	pthread_mutex_lock(&port->lock);
	port->users[user]++;
	pthread_mutex_unlock(&port->lock);
}

void fxi_port_drop(struct fabrex_port *port, enum port_user user)
{
	pthread_mutex_lock(&port->lock);
	port->users[user]--;
	pthread_mutex_unlock(&port->lock);
}

int fxi_copy_in(struct fabrex_port *port, const char *what, void *to,
		size_t known, const void *from, size_t size)
{
	const unsigned char *bytes = from;
	size_t i;

	for (i = known; i < size; i++)
		if (bytes[i])
			return fxi_error(E2BIG, "%s%s%s%s: byte %zu of the structure is newer than this library; set it to 0 or update libfabrex",
					 port ? "port " : "",
					 port ? port->attr.name : "",
					 port ? ": " : "", what, i);
	memcpy(to, from, size < known ? size : known);
	return 0;
}

void fxi_birth_begin(struct fabrex_port *port, struct birth *birth)
{
	pthread_mutex_lock(&port->lock);
	birth->number = port->nbirths++;
	birth->next = port->births ? port->births : birth;
	birth->prev = port->births ? port->births->prev : birth;
	birth->next->prev = birth;
	birth->prev->next = birth;
	if (!port->births)
		port->births = birth;
	pthread_mutex_unlock(&port->lock);
}

void fxi_birth_end(struct fabrex_port *port, struct birth *birth)
{
	pthread_mutex_lock(&port->lock);
	if (port->births == birth)
		port->births = birth->next == birth ? NULL : birth->next;
	birth->next->prev = birth->prev;
	birth->prev->next = birth->next;
	pthread_cond_broadcast(&port->born);
	pthread_mutex_unlock(&port->lock);
}

/* In the child of a fork the parent's threads do not exist. */
void fxi_births_wait(struct fabrex_port *port)
{
	uint64_t until = port->nbirths;
	int old;

	if (!port->births || !fxi_port_mine(port))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	while (port->births && port->births->number < until)
		pthread_cond_wait(&port->born, &port->lock);
	pthread_setcancelstate(old, NULL);
}

void fxi_object_add(struct fabrex_port *port, struct object *object,
		    enum object_type type, uint64_t id)
{
	object->port = port;
	object->type = type;
	object->id = id;
	object->prev = NULL;
	pthread_mutex_lock(&port->lock);
	object->next = port->objects;
	if (object->next)
		object->next->prev = object;
	port->objects = object;
	pthread_mutex_unlock(&port->lock);
}

/*
 * The child of a fork has one thread, and the lock may be held by one that
 * exists only in the parent.
 */
static void object_remove(struct object *object, bool mine)
{
	struct fabrex_port *port = object->port;

	if (mine)
		pthread_mutex_lock(&port->lock);
	if (object->next)
		object->next->prev = object->prev;
	if (object->prev)
		object->prev->next = object->next;
	else
		port->objects = object->next;
	if (mine)
		pthread_mutex_unlock(&port->lock);
}

/* An object that is gone already (-ENODEV, -ENOENT) is freed all the same. */
int fxi_object_end(struct object *object)
{
	struct fabrex_port *port = object->port;
	bool mine = fxi_port_mine(port);
	int ret = 0;

	if (mine)
		ret = port->ops->destroy(port->transport, object->id);
	if (ret && ret != -ENODEV && ret != -ENOENT && !port->closing)
		return ret;
	object_remove(object, mine);
	return !mine;
}

struct object *fxi_object_find(struct fabrex_port *port, uint64_t id)
{
	struct object *object = port->objects;

	while (object && object->id != id)
		object = object->next;
	return object;
}

/* "name:rest" chooses a transport; *name is then the rest, NULL if empty. */
static const struct transport_ops *transport_of(const char **name)
{
	const struct transport_ops *const *ops;
	size_t n;

	for (ops = fxi_transports; *name && *ops; ops++) {
		n = strlen((*ops)->name);
		if (strncmp(*name, (*ops)->name, n) || (*name)[n] != ':')
			continue;
		*name = (*name)[n + 1] ? *name + n + 1 : NULL;
		return *ops;
	}
	return fxi_transports[0];
}

static void locks_destroy(struct fabrex_port *port)
{
	pthread_cond_destroy(&port->born);
	pthread_mutex_destroy(&port->lock);
}

/*
 * The first that is here. Processes that were to meet over a fabric must not
 * end up among themselves on each machine, or on the one whose port is just
 * being reset: for that they have to ask, by name.
 */
static int open_first(struct fabrex_port *port)
{
	const struct transport_ops *const *ops;
	int ret = -ENOENT;

	for (ops = fxi_transports; *ops && ret == -ENOENT; ops++) {
		if ((*ops)->by_name)
			continue;
		port->ops = *ops;
		ret = port->ops->open(NULL, &port->transport);
		if (ret)
			fxi_debug(FXI_DEBUG_PORT, FXI_DEBUG_NO_RANK,
				  "transport %s: not here: %s",
				  port->ops->name, fabrex_strerror_last());
	}
	if (ret != -ENOENT)
		return ret;
	return fxi_error(ENOENT, "this machine has no fabric port: there is no /dev/fabrex0; is the module fabrex_draco loaded and the card present? To connect processes of this machine without a fabric, ask for that: fabrex_open(\"loopback:NAME\"), or FABREX_PORT=loopback:NAME");
}

static int open_transport(struct fabrex_port *port, const char *name)
{
	if (!name)
		return open_first(port);
	port->ops = transport_of(&name);
	return port->ops->open(name, &port->transport);
}

static void say_opened(const struct fabrex_port *port, const char *name,
		       bool from_environment)
{
	const char *given = from_environment ? "FABREX_PORT" : "fabrex_open()";

	if (!name)
		fxi_debug_line(FXI_DEBUG_PORT, FXI_DEBUG_NO_RANK,
			       "port %s: transport %s, the first one that is here: no name was given",
			       port->attr.name, port->ops->name);
	else
		fxi_debug_line(FXI_DEBUG_PORT, FXI_DEBUG_NO_RANK,
			       "port %s: transport %s, because of the name \"%s\" in %s",
			       port->attr.name, port->ops->name, name, given);
	fxi_debug_line(FXI_DEBUG_PATH, FXI_DEBUG_NO_RANK,
		       "port %s: memory of peers is %s", port->attr.name,
		       port->ops->coherent ?
		       "mapped by windows, and copied by this process" :
		       "reached by the device's DMA, or by stores through windows");
}

/* Of this process. What is kept for devices' memory is given back with the last. */
static atomic_uint open_ports;

EXPORT int fabrex_open(const char *name, struct fabrex_port **out)
{
	NO_CANCEL();
	bool from_environment = !name;
	struct fabrex_port *port;
	int ret;

	if (!out)
		return fxi_error(EINVAL, "fabrex_open: the pointer for the port is NULL");
	ret = fxi_debug_open();
	if (!ret)
		ret = fxi_path_open();
	if (ret)
		return ret;
	if (!name)
		name = getenv("FABREX_PORT");
	if (name && !*name)
		name = NULL;
	port = calloc(1, sizeof(*port));
	if (!port)
		return fxi_error(ENOMEM, "fabrex_open: out of memory");
	port->pid = getpid();
	pthread_mutex_init(&port->lock, NULL);
	pthread_cond_init(&port->born, NULL);
	ret = open_transport(port, name);
	if (ret)
		goto free_port;
	ret = port->ops->query(port->transport, &port->attr);
	if (ret)
		goto close_transport;
	if (fxi_debugs(FXI_DEBUG_PORT | FXI_DEBUG_PATH))
		say_opened(port, name, from_environment);
	atomic_fetch_add(&open_ports, 1);
	*out = port;
	return 0;

close_transport:
	port->ops->close(port->transport);
free_port:
	locks_destroy(port);
	free(port);
	return ret;
}

static void object_destroy(struct object *object)
{
	switch (object->type) {
	case OBJECT_MR:
		fabrex_mr_deregister(container_of(object, struct fabrex_mr,
						  object));
		break;
	case OBJECT_QUEUE:
		fabrex_queue_destroy(container_of(object, struct fabrex_queue,
						  object));
		break;
	case OBJECT_WINDOW:
		fabrex_window_unmap(container_of(object, struct fabrex_window,
						 object));
		break;
	}
}

/* Queues go before the regions that their operations use. */
static void destroy_all(struct fabrex_port *port, enum object_type type)
{
	struct object *object, *next;

	for (object = port->objects; object; object = next) {
		next = object->next;
		if (object->type == type)
			object_destroy(object);
	}
}

/*
 * Listeners and communicators have handles of their own, and would use the port
 * at their next call.
 */
static int check_unused(struct fabrex_port *port)
{
	uint32_t users[PORT_USERS];

	pthread_mutex_lock(&port->lock);
	memcpy(users, port->users, sizeof(users));
	pthread_mutex_unlock(&port->lock);
	if (!users[USER_LISTENER] && !users[USER_CONNECT] && !users[USER_COMM])
		return 0;
	return fxi_error(EBUSY, "port %s: cannot be closed: it has %u listeners, %u communicators, and %u threads in fabrex_connect(); close or destroy these first (fabrex_listener_close(), fabrex_comm_destroy())",
			 port->attr.name, users[USER_LISTENER],
			 users[USER_COMM], users[USER_CONNECT]);
}

EXPORT int fabrex_close(struct fabrex_port *port)
{
	NO_CANCEL();
	int ret;

	if (!port)
		return 0;
	ret = fxi_port_mine(port) ? check_unused(port) : 0;
	if (ret)
		return ret;
	port->closing = true;
	destroy_all(port, OBJECT_QUEUE);
	destroy_all(port, OBJECT_WINDOW);
	destroy_all(port, OBJECT_MR);
	fxi_cache_free(port);
	if (fxi_port_mine(port)) {
		port->ops->close(port->transport);
		if (atomic_fetch_sub(&open_ports, 1) == 1)
			fxi_memory_rest();
		locks_destroy(port);
	} else {
		port->ops->release(port->transport);
	}
	free(port);
	return 0;
}

EXPORT int fabrex_query(struct fabrex_port *port,
			struct fabrex_port_attr *attr, size_t size)
{
	struct fabrex_port_attr now;
	int ret;

	memset(&now, 0, sizeof(now));
	ret = port->ops->query(port->transport, &now);
	if (ret)
		return ret;
	fxi_copy_out(attr, size, &now, sizeof(now));
	return 0;
}

/* A decimal number without sign, whole string, below 2^32. */
static bool parse_number(const char *text, uint32_t *number)
{
	char *end;
	unsigned long value;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value > UINT32_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}

static int peer_query(struct fabrex_port *port, const char *name,
		      uint32_t number, bool next, struct fabrex_peer *peer,
		      size_t size)
{
	struct fabrex_peer found = { 0 };
	int ret;

	ret = port->ops->peer(port->transport, name, number, next, &found);
	if (!ret)
		fxi_copy_out(peer, size, &found, sizeof(found));
	return ret;
}

EXPORT int fabrex_peer_find_sized(struct fabrex_port *port, const char *name,
				  struct fabrex_peer *peer, size_t size)
{
	uint32_t number;
	int ret;

	if (!name || !*name || strlen(name) >= sizeof(peer->name))
		return fxi_error(EINVAL, "port %s: the name of a peer must have 1 to %zu characters",
				 port->attr.name, sizeof(peer->name) - 1);
	ret = peer_query(port, name, 0, false, peer, size);
	if (ret == -ENOENT && parse_number(name, &number))
		ret = peer_query(port, NULL, number, false, peer, size);
	return ret;
}

EXPORT int fabrex_peer_next_sized(struct fabrex_port *port, uint32_t from,
				  struct fabrex_peer *peer, size_t size)
{
	return peer_query(port, NULL, from, true, peer, size);
}
