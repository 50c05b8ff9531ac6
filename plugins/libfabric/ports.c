// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The ports that domains can be opened of. Every program that uses libfabric
 * passes here, most of them on machines without a fabric: nothing is opened,
 * and without a reason nothing is said. Used by info.c and domain.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provider.h"

#define LOOPBACK	"loopback:"
#define USUAL_PORTS	8

/* Of 1 to 31 characters that libfabrex takes, up to end. */
static bool good_name(const char *name, size_t len)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return len && len < 32 && strspn(name, chars) >= len;
}

static bool asks_for_loopback(const char *name)
{
	return name && !strncmp(name, LOOPBACK, sizeof(LOOPBACK) - 1);
}

/*
 * Joining takes time, and others would see it: what is not known before is left
 * away. The name of a port, if it has one, follows a slash.
 */
static int loopback(const char *name, struct local_port *port)
{
	const char *fabric = name + sizeof(LOOPBACK) - 1, *slash, *own;
	size_t len;

	if (!*fabric) {
		fabric = getenv("FABREX_FABRIC");
		if (!fabric || !*fabric)
			fabric = "default";
	}
	slash = strchrnul(fabric, '/');
	own = *slash ? slash + 1 : "a";
	len = (size_t)(slash - fabric);
	if (!good_name(fabric, len) || !good_name(own, strlen(own)) ||
	    !own[strspn(own, "0123456789")]) {
		WARN(FI_LOG_CORE,
		     "%.80s: neither a fabric nor its port can have this name: see fabrex_loopback(7)\n",
		     name);
		return 0;
	}
	snprintf(port->name, sizeof(port->name), LOOPBACK "%s", fabric);
	memcpy(port->is.fabric, fabric, len);
	if (*slash)
		strcpy(port->is.name, own);
	strcpy(port->is.driver, "loopback");
	if (gethostname(port->is.host, sizeof(port->is.host) - 1))
		port->is.host[0] = '\0';
	port->is.numa_node = -1;
	port->is.link_up = port->is.alive = port->is.may_open = 1;
	return 1;
}

/* Empty, or why a program cannot use it now. */
static const char *unusable(const struct fabrex_local_port *port)
{
	if (!port->may_open)
		return "this process may not open it: join the group fabrex";
	if (!port->alive)
		return "it does not work, and is being reset";
	if (!port->link_up)
		return "its link into the fabric is down";
	return "";
}

static bool is_called(const struct fabrex_local_port *port, const char *name)
{
	if (!strncmp(name, "/dev/", 5))
		name += 5;
	return !strcmp(port->name, name) || !strcmp(port->device, name) ||
	       !strcmp(port->host, name);
}

/* Those that a program can use; others are said to be there. */
static int keep_usable(const struct fabrex_local_port *all, int n,
		       const char *only, struct local_port *list)
{
	const char *why;
	int i, kept = 0;

	for (i = 0; i < n; i++) {
		if (only && !is_called(&all[i], only))
			continue;
		why = unusable(&all[i]);
		if (*why) {
			INFO(FI_LOG_CORE, "port %s is not offered: %s\n",
			     all[i].name, why);
			continue;
		}
		memcpy(list[kept].name, all[i].name, sizeof(all[i].name));
		list[kept++].is = all[i];
	}
	return kept;
}

/* Nothing of the machine is looked at for ports that it cannot have. */
static bool have_class(void)
{
	const char *root = secure_getenv("FABREX_ROOT");	/* fabrex_p2p_query(3) */
	char path[4096];

	snprintf(path, sizeof(path), "%s/sys/class/fabrex", root ? root : "");
	return !access(path, F_OK);
}

/* Returns how many; free(*all). */
static int list_all(struct fabrex_local_port **all)
{
	struct fabrex_local_port *ports = NULL;
	int room, n = USUAL_PORTS;

	do {
		room = n;
		free(ports);
		ports = calloc((size_t)room, sizeof(*ports));
		if (!ports)
			return -FI_ENOMEM;
		n = fabrex_port_list(NULL, ports, (size_t)room, sizeof(*ports));
	} while (n > room);
	*all = ports;
	return n < 0 ? 0 : n;
}

static int devices(const char *only, struct local_port **list)
{
	struct fabrex_local_port *all;
	int n;

	if (!have_class())
		return 0;
	n = list_all(&all);
	if (n < 0)
		return n;
	*list = calloc((size_t)n + 1, sizeof(**list));
	n = *list ? keep_usable(all, n, only, *list) : -FI_ENOMEM;
	free(all);
	return n;
}

int ports_list(const char *wanted, struct local_port **list)
{
	const char *only = getenv("FABREX_PORT");
	int n;

	*list = NULL;
	if (only && !*only)
		only = NULL;
	if (asks_for_loopback(wanted))
		only = wanted;
	if (asks_for_loopback(only)) {
		*list = calloc(1, sizeof(**list));
		if (!*list)
			return -FI_ENOMEM;
		return loopback(only, *list);
	}
	n = devices(only, list);
	if (!n && only)
		INFO(FI_LOG_CORE,
		     "FABREX_PORT=%s: there is no such port, or it cannot be used\n",
		     only);
	return n;
}
