// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Unique ids. Whoever makes one listens from then on, so that the others may
 * come as soon as they have it; who accepts them is the rank of that process.
 * Called by bootstrap.c; public half: fabrex_unique_id_create(3).
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/debug.h"
#include "coll/bootstrap/unique.h"

#define MAGIC	0x3144495558424246ull	/* "FBBXUID1" */

/* What is in an id. Numbers are little-endian, but for port and address. */
struct content {
	uint64_t magic;
	uint8_t family;		/* 4 or 6 */
	uint8_t zero;
	uint16_t port;
	uint32_t zeroes;
	uint8_t address[16];
	uint8_t secret[SECRET_DIGITS / 2];
	uint8_t more[72];	/* 0 */
	uint64_t check;		/* hash of what is before it */
};
_Static_assert(sizeof(struct content) == sizeof(struct fabrex_unique_id),
	       "all of it");

/* One that this process has made, or its parent, until somebody uses it. */
struct made {
	struct made *next;
	struct fabrex_unique_id id;
	pid_t pid;
	int fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct made *made;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* In the child of a fork the lock may be held by a thread that is not there. */
static void fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

static void fork_install(void)
{
	pthread_atfork(NULL, NULL, fork_child);
}

/* ---- bytes ------------------------------------------------------------- */

static uint64_t check_of(const struct content *c)
{
	return htole64(fxi_hash(c, offsetof(struct content, check), 0));
}

/* "tcp:HOST:PORT" as all ranks have it, as they prove that they know it. */
static void write_address(const struct content *c, char *text, size_t n)
{
	char host[INET6_ADDRSTRLEN];

	inet_ntop(c->family == 6 ? AF_INET6 : AF_INET, c->address, host,
		  sizeof(host));
	snprintf(text, n, c->family == 6 ? "tcp:[%s]:%u" : "tcp:%s:%u", host,
		 ntohs(c->port));
}

/* What a later version may have in it is not ignored. */
static bool is_plain(const struct content *c)
{
	struct content known = {
		.magic = c->magic, .family = c->family, .port = c->port,
		.check = c->check,
	};

	memcpy(known.address, c->address, c->family == 4 ? 4 : 16);
	memcpy(known.secret, c->secret, sizeof(known.secret));
	return !memcmp(&known, c, sizeof(known));
}

int fxi_unique_id_read(const struct fabrex_unique_id *id, struct bootstrap *b)
{
	struct content c;

	memcpy(&c, id, sizeof(c));
	if (le64toh(c.magic) != MAGIC || c.check != check_of(&c) ||
	    (c.family != 4 && c.family != 6) || !is_plain(&c))
		return fxi_error(EINVAL, "port %s: communicator: unique_id is not what fabrex_unique_id_create() has stored; give every rank all %zu bytes of it",
				 b->port->attr.name, sizeof(*id));
	write_address(&c, b->address, sizeof(b->address));
	memcpy(b->secret.key, c.secret, sizeof(b->secret.key));
	b->secret.key[0] = le64toh(b->secret.key[0]);
	b->secret.key[1] = le64toh(b->secret.key[1]);
	b->secret.set = true;
	return 0;
}

/* ---- addresses --------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

static socklen_t length_of(const union address *a)
{
	return a->any.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

static void take(union address *to, const struct sockaddr *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, from->sa_family == AF_INET6 ? sizeof(to->v6) :
						       sizeof(to->v4));
}

/* An address that other hosts can use: 4 and 6, or 0 for those that cannot. */
static int family_of(const struct ifaddrs *i, const char *name)
{
	const unsigned int up = IFF_UP | IFF_RUNNING;
	union address a;

	if (!i->ifa_addr || (name && strcmp(i->ifa_name, name)) ||
	    (i->ifa_flags & up) != up ||
	    (!name && i->ifa_flags & IFF_LOOPBACK))
		return 0;
	if (i->ifa_addr->sa_family == AF_INET)
		return 4;
	if (i->ifa_addr->sa_family != AF_INET6)
		return 0;
	take(&a, i->ifa_addr);
	return IN6_IS_ADDR_LINKLOCAL(&a.v6.sin6_addr) ? 0 : 6;
}

/* Of that interface, or of the first one; IPv4 is preferred. */
static bool find_interface(const char *name, union address *out)
{
	struct ifaddrs *all, *i;
	int best = 0, family;

	if (getifaddrs(&all))
		return false;
	for (i = all; i; i = i->ifa_next) {
		family = family_of(i, name);
		if (!family || (best && best <= family))
			continue;
		best = family;
		take(out, i->ifa_addr);
	}
	freeifaddrs(all);
	return best;
}

/* Who can use an address that a name stands for. */
enum reach { NOBODY, THIS_HOST, OTHER_HOSTS };

static enum reach reach_of(const union address *a)
{
	const struct in6_addr *six = &a->v6.sin6_addr;
	uint32_t four = ntohl(a->v4.sin_addr.s_addr);

	if (a->any.sa_family == AF_INET)
		return four == INADDR_ANY || four >> 16 == 0xa9fe ? NOBODY :
		       four >> 24 == IN_LOOPBACKNET ? THIS_HOST : OTHER_HOSTS;
	/* An id has no room for the zone of a link-local address. */
	if (a->any.sa_family != AF_INET6 || IN6_IS_ADDR_UNSPECIFIED(six) ||
	    IN6_IS_ADDR_LINKLOCAL(six))
		return NOBODY;
	return IN6_IS_ADDR_LOOPBACK(six) ? THIS_HOST : OTHER_HOSTS;
}

/*
 * The name of a host often stands for 127.0.1.1 beside its address on the
 * network, or before it.
 */
static int find_host(const struct fabrex_port *port, const char *host,
		     union address *out)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	enum reach best = NOBODY, reach;
	struct addrinfo *info, *i;
	union address a;
	int ret = getaddrinfo(host, NULL, &hints, &info);

	if (ret)
		return fxi_error(EINVAL, "port %s: unique id: \"%s\" is neither an interface that is up nor a host: %s; give one of this host's, or NULL",
				 port->attr.name, host, gai_strerror(ret));
	for (i = info; i; i = i->ai_next) {
		take(&a, i->ai_addr);
		reach = reach_of(&a);
		if (reach <= best)
			continue;
		best = reach;
		*out = a;
	}
	freeaddrinfo(info);
	if (best == NOBODY)
		return fxi_error(EINVAL, "port %s: unique id: \"%s\" is a wildcard or link-local address, by which other ranks cannot reach this host; give an address that they can use, or an interface",
				 port->attr.name, host);
	if (best == THIS_HOST && !port->ops->coherent)
		fxi_debug(FXI_DEBUG_BOOTSTRAP, FXI_DEBUG_NO_RANK,
			  "unique id: \"%s\" is a loopback address: no other host can reach it",
			  host);
	return 0;
}

static int find_address(const struct fabrex_port *port, const char *host,
			union address *out)
{
	/* All ranks are on this machine: nobody else has to reach it. */
	if (!host && port->ops->coherent)
		return find_host(port, "127.0.0.1", out);
	if (!host)
		host = getenv("FABREX_INTERFACE");
	if (host && !*host)
		host = NULL;
	if (find_interface(host, out))
		return 0;
	return find_host(port, host ? host : "127.0.0.1", out);
}

/* ---- making ------------------------------------------------------------ */

/* At a free port, which is stored. The socket, or a negative errno. */
static int listen_at(const struct fabrex_port *port, union address *a)
{
	socklen_t n = length_of(a);
	int fd, err;

	a->v4.sin_port = 0;	/* at the same place in both */
	fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC |
		    SOCK_NONBLOCK, 0);
	if (fd >= 0 && !bind(fd, &a->any, n) && !listen(fd, SOMAXCONN) &&
	    !getsockname(fd, &a->any, &n))
		return fd;
	err = errno;
	if (fd >= 0)
		close(fd);
	return fxi_error(err, "port %s: unique id: cannot listen for the other ranks: %s; give an address or interface of this host",
			 port->attr.name, fxi_errno_str(err));
}

static void fill(struct content *c, const union address *a)
{
	c->magic = htole64(MAGIC);
	c->port = a->v4.sin_port;
	if (a->any.sa_family == AF_INET6) {
		c->family = 6;
		memcpy(c->address, &a->v6.sin6_addr, 16);
	} else {
		c->family = 4;
		memcpy(c->address, &a->v4.sin_addr, 4);
	}
	c->check = check_of(c);
}

static int keep(const struct fabrex_port *port,
		const struct fabrex_unique_id *id, int fd)
{
	struct made *m = calloc(1, sizeof(*m));

	if (!m) {
		close(fd);
		return fxi_error(ENOMEM, "port %s: unique id: out of memory",
				 port->attr.name);
	}
	pthread_once(&once, fork_install);
	m->id = *id;
	m->fd = fd;
	m->pid = getpid();
	pthread_mutex_lock(&lock);
	m->next = made;
	made = m;
	pthread_mutex_unlock(&lock);
	return 0;
}

EXPORT int fabrex_unique_id_create(struct fabrex_port *port, const char *host,
				   struct fabrex_unique_id *id)
{
	NO_CANCEL();
	struct content c = { .magic = 0 };
	struct fabrex_unique_id new;
	union address a;
	char text[80];
	int fd, ret;

	if (!port || !id)
		return fxi_error(EINVAL, "fabrex_unique_id_create: port or id is NULL; give both");
	if (getrandom(c.secret, sizeof(c.secret), 0) != sizeof(c.secret))
		return fxi_error(EIO, "port %s: no random numbers from the kernel",
				 port->attr.name);
	ret = find_address(port, host, &a);
	if (ret)
		return ret;
	fd = listen_at(port, &a);
	if (fd < 0)
		return fd;
	fill(&c, &a);
	memcpy(&new, &c, sizeof(new));
	ret = keep(port, &new, fd);
	if (ret)
		return ret;
	write_address(&c, text, sizeof(text));
	fxi_debug(FXI_DEBUG_BOOTSTRAP, FXI_DEBUG_NO_RANK,
		  "unique id made: this process listens at %s", text);
	*id = new;
	return 0;
}

/* ---- using ------------------------------------------------------------- */

/* Takes it off the list. -1: it is not there, or not for this rank. */
static int take_out(const struct fabrex_unique_id *id, bool inherited)
{
	struct made **at, *m;
	int fd = -1;

	pthread_once(&once, fork_install);
	pthread_mutex_lock(&lock);
	for (at = &made; (m = *at); at = &m->next)
		if (!memcmp(&m->id, id, sizeof(*id)))
			break;
	if (m && (inherited || m->pid == getpid())) {
		*at = m->next;
		fd = m->fd;
		free(m);
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

int fxi_unique_id_claim(const struct fabrex_unique_id *id, uint32_t rank)
{
	return take_out(id, !rank);
}

EXPORT void fabrex_unique_id_destroy(const struct fabrex_unique_id *id)
{
	NO_CANCEL();
	int fd = id ? take_out(id, true) : -1;

	if (fd >= 0)
		close(fd);
}
