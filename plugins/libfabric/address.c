// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Addresses of endpoints: their text, what fi_getinfo() calls node and service,
 * and which queue of which port that is. Used by info.c, av.c and by whoever
 * connects.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provider.h"

/* Names up to this length fit with any ID, and with any service and nonce. */
#define PORT_MAX	8
#define ID_DIGITS	10
#define ID_MASK		((UINT64_C(1) << 4 * ID_DIGITS) - 1)
#define SERVICE_OF_ID	(UINT64_C(1) << 62)	/* above all that people use */

_Static_assert(sizeof(ADDRESS_PREFIX) - 1 + PORT_MAX + sizeof("/") + ID_DIGITS
	       <= ADDRESS_USUAL, "an address with ID fits");
_Static_assert(sizeof(ADDRESS_PREFIX) - 1 + PORT_MAX +
	       sizeof(":0xffffffffffffffff:ffffffff") <= ADDRESS_MAX,
	       "an address of ours fits");

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

static bool digits_only(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* Decimal, or hexadecimal after 0x; the whole of text[0..len). */
static bool number(const char *text, size_t len, int base, uint64_t *value)
{
	char copy[24], *end;

	if (len >= 2 && base == 10 && text[0] == '0' && text[1] == 'x') {
		text += 2;
		len -= 2;
		base = 16;
	}
	if (!len || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (copy[strspn(copy, base == 10 ? "0123456789" :
			"0123456789abcdefABCDEF")])
		return false;
	errno = 0;
	*value = strtoull(copy, &end, base);
	return !errno && !*end;
}

static bool take_port(const char **text, char port[32])
{
	size_t n = 0;

	while (name_char((*text)[n]))
		n++;
	if (n > 31)
		return false;
	memcpy(port, *text, n);
	port[n] = '\0';
	*text += n;
	return true;
}

/* ":NUMBER", or nothing. */
static bool take_number(const char **text, int base, uint64_t *value)
{
	const char *from = *text + 1;
	size_t n;

	*value = 0;
	if (**text != ':')
		return true;
	n = strcspn(from, ":");
	*text = from + n;
	return number(from, n, base, value);
}

void address_of_chance(uint64_t chance, struct address *address)
{
	uint64_t id = chance & ID_MASK;

	address->service = SERVICE_OF_ID | id;
	address->nonce = (uint32_t)id ? (uint32_t)id : 1;
}

static bool has_id(const struct address *address)
{
	struct address same;

	address_of_chance(address->service, &same);
	return same.service == address->service &&
	       same.nonce == address->nonce;
}

/* "/ID" */
static bool take_id(const char **text, struct address *address)
{
	uint64_t id;

	if (strlen(*text) != 1 + ID_DIGITS ||
	    !number(*text + 1, ID_DIGITS, 16, &id))
		return false;
	address_of_chance(id, address);
	*text += 1 + ID_DIGITS;
	return true;
}

/* ":SERVICE:NONCE", or less. */
static bool take_service(const char **text, struct address *address)
{
	uint64_t nonce;

	if (!take_number(text, 10, &address->service) ||
	    !take_number(text, 16, &nonce) || nonce > UINT32_MAX)
		return false;
	address->nonce = (uint32_t)nonce;
	return true;
}

static int write_out(const struct address *address, char *text, size_t size)
{
	const char *service = address->service >> 32 ? "0x%llx" : "%llu";
	char number_text[24], nonce[12] = "";

	if (has_id(address))
		return snprintf(text, size, ADDRESS_PREFIX "%s/%0*llx",
				address->port, ID_DIGITS,
				(unsigned long long)address->service & ID_MASK);
	snprintf(number_text, sizeof(number_text), service,
		 (unsigned long long)address->service);
	if (address->nonce)
		snprintf(nonce, sizeof(nonce), ":%08x", address->nonce);
	return snprintf(text, size, ADDRESS_PREFIX "%s:%s%s", address->port,
			number_text, nonce);
}

int address_parse(const char *text, struct address *address)
{
	size_t prefix = sizeof(ADDRESS_PREFIX) - 1;
	const char *rest;

	memset(address, 0, sizeof(*address));
	if (!text || strncmp(text, ADDRESS_PREFIX, prefix))
		goto bad;
	rest = text + prefix;
	if (!take_port(&rest, address->port) ||
	    !(*rest == '/' ? take_id : take_service)(&rest, address) || *rest)
		goto bad;
	if (write_out(address, NULL, 0) < ADDRESS_MAX)
		return 0;
bad:
	INFO(FI_LOG_AV,
	     "\"%.60s\" is no address of this provider: " ADDRESS_PREFIX
	     "PORT:SERVICE or PORT/ID, of at most %d characters\n",
	     text ? text : "", ADDRESS_MAX - 1);
	return -FI_EINVAL;
}

size_t address_format(const struct address *address, char text[ADDRESS_MAX])
{
	memset(text, 0, ADDRESS_MAX);
	return write_out(address, text, ADDRESS_MAX) < ADDRESS_USUAL ?
	       ADDRESS_USUAL : ADDRESS_MAX;
}

void address_of_port(const struct fabrex_port_attr *attr,
		     struct address *address)
{
	if (strlen(attr->name) <= PORT_MAX)
		memcpy(address->port, attr->name, sizeof(address->port));
	else
		snprintf(address->port, sizeof(address->port), "%u",
			 attr->peer);
}

bool address_same(const struct address *a, const struct address *b)
{
	return a->service == b->service &&
	       (!a->nonce || !b->nonce || a->nonce == b->nonce) &&
	       !strcmp(a->port, b->port);
}

bool address_is_here(const char *name)
{
	return !strcmp(name, "localhost") || !strcmp(name, "127.0.0.1");
}

int address_resolve(struct fabrex_port *port, const char *node,
		    const char *service, struct address *address)
{
	size_t prefix = sizeof(ADDRESS_PREFIX) - 1;
	const char *rest = node ? node : "";
	struct fabrex_peer peer;

	if (node && !strncmp(node, ADDRESS_PREFIX, prefix)) {
		if (!service)
			return address_parse(node, address);
		INFO(FI_LOG_CORE,
		     "service %s beside the whole address %s: give one of them\n",
		     service, node);
		return -FI_EINVAL;
	}
	memset(address, 0, sizeof(*address));
	if (!take_port(&rest, address->port) || *rest) {
		INFO(FI_LOG_CORE,
		     "node \"%.60s\" is not the name of a port or host\n", node);
		return -FI_EINVAL;
	}
	if (service && !number(service, strlen(service), 10,
			       &address->service)) {
		INFO(FI_LOG_CORE,
		     "service \"%.30s\" is not a number; names of services are not known here\n",
		     service);
		return -FI_EINVAL;
	}
	if (!port || !node || address_is_here(node) ||
	    !fabrex_peer_find(port, node, &peer))
		return 0;
	INFO(FI_LOG_CORE, "node %s is in no fabric of this port: %s\n", node,
	     fabrex_strerror_last());
	return -FI_ENODATA;
}

/* Every port of a host; there are at most a few. */
static int locate_on_host(struct fabrex_port *port, const char *host,
			  uint64_t service, uint32_t *peer, uint32_t *number,
			  uint64_t *key)
{
	struct fabrex_peer next;
	int ret = -ENOENT;
	uint32_t from;

	for (from = 0; !fabrex_peer_next(port, from, &next);
	     from = next.peer + 1) {
		if (strcmp(next.host, host) || !next.up)
			continue;
		ret = fabrex_resolve(port, next.peer, service, number, key);
		if (!ret) {
			*peer = next.peer;
			return 0;
		}
	}
	return ret;
}

int address_locate(struct fabrex_port *port, const struct address *address,
		   uint32_t *peer, uint32_t *number, uint64_t *key)
{
	const char *name = address->port;
	struct fabrex_port_attr attr;
	struct fabrex_peer found;
	int ret = 0;

	if (!*name || address_is_here(name))
		ret = fabrex_query(port, &attr, sizeof(attr));
	else
		ret = fabrex_peer_find(port, name, &found);
	if (ret)
		return ret;
	if (address_is_here(name))
		return locate_on_host(port, attr.host, address->service, peer,
				      number, key);
	if (*name && !digits_only(name) && strcmp(name, found.name))
		return locate_on_host(port, name, address->service, peer,
				      number, key);
	*peer = *name ? found.peer : attr.peer;
	return fabrex_resolve(port, *peer, address->service, number, key);
}
