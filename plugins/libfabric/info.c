// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fi_getinfo(): one info for each port that can be used and has what the program
 * asks for. Called through provider.c.
 */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

/* The addresses that the program has given, apart from the port's own. */
struct wishes {
	bool has_source, has_target;
	bool by_name;		/* the target: of a node, not a whole address */
	struct address source, target;
};

/*
 * A text of hints need not have a final 0: its length says how far it goes, and
 * programs leave that away, too.
 */
static int parse_bounded(const void *text, size_t len, struct address *address)
{
	char copy[ADDRESS_MAX + 1] = "";

	memcpy(copy, text, len < ADDRESS_MAX ? len : ADDRESS_MAX);
	return address_parse(copy, address);
}

static int take_hints(uint64_t flags, bool named, const struct fi_info *hints,
		      struct wishes *wishes)
{
	int ret = 0;

	if (!(flags & FI_SOURCE) && hints->src_addr && hints->src_addrlen) {
		ret = parse_bounded(hints->src_addr, hints->src_addrlen,
				    &wishes->source);
		wishes->has_source = true;
	}
	if (!ret && (flags & FI_SOURCE || !named) && hints->dest_addr &&
	    hints->dest_addrlen) {
		ret = parse_bounded(hints->dest_addr, hints->dest_addrlen,
				    &wishes->target);
		wishes->has_target = true;
	}
	return ret;
}

static int take_wishes(const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct wishes *wishes)
{
	bool named = node || service;
	int ret;

	memset(wishes, 0, sizeof(*wishes));
	if (flags & FI_SOURCE && !named) {
		INFO(FI_LOG_CORE,
		     "FI_SOURCE without node and service: give one of them\n");
		return -FI_EINVAL;
	}
	if (flags & FI_SOURCE) {
		ret = address_resolve(NULL, node, service, &wishes->source);
		wishes->has_source = true;
	} else if (named) {
		ret = address_resolve(NULL, node, service, &wishes->target);
		wishes->has_target = true;
		wishes->by_name = node && strncmp(node, ADDRESS_PREFIX,
						  sizeof(ADDRESS_PREFIX) - 1);
	} else {
		ret = 0;
	}
	if (!ret && hints)
		ret = take_hints(flags, named, hints, wishes);
	/* Where an endpoint is opened, its nonce is yet to come. */
	wishes->source.nonce = 0;
	return ret;
}

/* Is this the port that the program wants to be reached at? */
static bool is_source(const struct local_port *port, const char *name)
{
	return !*name || address_is_here(name) ||
	       !strcmp(name, port->is.name) || !strcmp(name, port->is.host) ||
	       !strcmp(name, port->is.device);
}

/*
 * A machine's other providers may know a host that is in no fabric. A loopback
 * fabric is asked for names only: to ask is to join, and its numbers and addresses
 * come and go.
 */
static bool has_target(const struct local_port *local, const char *name,
		       bool by_name)
{
	bool loopback = !strcmp(local->is.driver, "loopback");
	char fabric[sizeof(local->name)];
	struct fabrex_port *port;
	struct address address;
	int ret;

	if (!*name || address_is_here(name))
		return true;
	if (loopback && (!by_name || !name[strspn(name, "0123456789")] ||
			 !strcmp(name, local->is.host)))
		return true;
	/* With a name of our own we could not join twice. */
	memcpy(fabric, local->name, sizeof(fabric));
	if (loopback)
		fabric[strcspn(fabric, "/")] = '\0';
	if (fabrex_open(fabric, &port)) {
		INFO(FI_LOG_CORE, "port %s: %s\n", local->name,
		     fabrex_strerror_last());
		return false;
	}
	ret = address_resolve(port, name, NULL, &address);
	fabrex_close(port);
	return !ret;
}

static int set_address(const struct address *address, void **text, size_t *len)
{
	if (!*text)
		*text = malloc(ADDRESS_MAX);
	if (!*text)
		return -FI_ENOMEM;
	*len = address_format(address, *text);
	return 0;
}

static int fill(uint32_t version, const struct local_port *port,
		const struct fi_info *hints, const struct wishes *wishes,
		struct fi_info *info)
{
	struct address source = wishes->source;
	int ret = 0;

	if (wishes->has_source) {
		strcpy(source.port, port->is.name);
		ret = set_address(&source, &info->src_addr, &info->src_addrlen);
	}
	if (!ret && wishes->has_target)
		ret = set_address(&wishes->target, &info->dest_addr,
				  &info->dest_addrlen);
	if (!ret)
		ret = offer_narrow(version, hints, info);
	return ret;
}

/* *info NULL: this port has not what is wanted. */
static int get_one(uint32_t version, const struct local_port *port,
		   const struct fi_info *hints, const struct wishes *wishes,
		   struct fi_info **info)
{
	int ret;

	*info = NULL;
	if (wishes->has_source && !is_source(port, wishes->source.port))
		return 0;
	*info = offer_make(version, port);
	if (!*info)
		return -FI_ENOMEM;
	ret = hints ? info_check(version, hints, *info) : 0;
	if (!ret && wishes->has_target &&
	    !has_target(port, wishes->target.port, wishes->by_name))
		ret = -FI_ENODATA;
	if (!ret)
		ret = fill(version, port, hints, wishes, *info);
	if (ret) {
		fi_freeinfo(*info);
		*info = NULL;
	}
	return ret == -FI_ENODATA ? 0 : ret;
}

static int get_all(uint32_t version, const struct local_port *ports, int n,
		   const struct fi_info *hints, const struct wishes *wishes,
		   struct fi_info **info)
{
	struct fi_info **last = info;
	int i, ret;

	*info = NULL;
	for (i = 0; i < n; i++) {
		ret = get_one(version, &ports[i], hints, wishes, last);
		if (ret) {
			fi_freeinfo(*info);
			*info = NULL;
			return ret;
		}
		if (*last)
			last = &(*last)->next;
	}
	return *info ? 0 : -FI_ENODATA;
}

int info_get(uint32_t version, const char *node, const char *service,
	     uint64_t flags, const struct fi_info *hints, struct fi_info **info)
{
	const char *wanted = NULL;
	struct local_port *ports;
	struct wishes wishes;
	int n, ret;

	*info = NULL;
	if (hints && hints->domain_attr)
		wanted = hints->domain_attr->name;
	n = ports_list(wanted, &ports);
	if (!n)
		INFO(FI_LOG_CORE, "this machine has no fabric port to offer\n");
	ret = n > 0 ? take_wishes(node, service, flags, hints, &wishes) : n;
	if (n > 0 && !ret)
		ret = get_all(version, ports, n, hints, &wishes, info);
	free(ports);
	return !n || ret == -FI_EINVAL ? -FI_ENODATA : ret;
}
