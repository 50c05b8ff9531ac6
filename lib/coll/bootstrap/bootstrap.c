// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How the ranks of a new communicator find each other: takes address, rank,
 * size and secret from attributes, unique id, environment and launcher, and
 * chooses the exchange, or calls that of the application. Called by comm.c;
 * public half: fabrex_comm_create(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/debug.h"
#include "coll/bootstrap/methods.h"
#include "coll/bootstrap/unique.h"

static int alone_exchange(struct rendezvous *rendezvous, const void *mine,
			  void *all, size_t bytes)
{
	(void)rendezvous;
	memcpy(all, mine, bytes);
	return 0;
}

/* ---- the application's exchange ---------------------------------------- */

static bool is_zero(const uint8_t *bytes, size_t n)
{
	while (n && !*bytes) {
		bytes++;
		n--;
	}
	return !n;
}

/* Is there a part of each rank, and this one's where it belongs? */
static int check_exchange(const struct bootstrap *b, const void *mine,
			  const uint8_t *all, size_t bytes)
{
	uint32_t rank;

	if (memcmp(all + b->rendezvous.rank * bytes, mine, bytes))
		return fxi_error(EPROTO, "port %s: communicator: the application's exchange has not stored the %zu bytes of rank %u at byte %zu; parts have to be in the order of ranks",
				 b->port->attr.name, bytes, b->rendezvous.rank,
				 b->rendezvous.rank * bytes);
	for (rank = 0; rank < b->rendezvous.size; rank++)
		if (is_zero(all + rank * bytes, bytes))
			return fxi_error(EPROTO, "port %s: communicator: the application's exchange has not stored the %zu bytes of rank %u; it has to wait for all ranks",
					 b->port->attr.name, bytes, rank);
	return 0;
}

/* *wrong: the application's function has succeeded, but what it gave is not. */
static int call_exchange(const struct bootstrap *b, const void *mine,
			 void *all, size_t bytes, bool *wrong)
{
	int ret;

	memset(all, 0, b->rendezvous.size * bytes);
	ret = b->exchange(b->context, mine, all, bytes);
	*wrong = !ret;
	if (!ret)
		return check_exchange(b, mine, all, bytes);
	ret = ret < 0 && ret > -4096 ? -ret : EIO;
	return fxi_error(ret, "port %s: communicator: the application's exchange has failed: %s; see its own error",
			 b->port->attr.name, fxi_errno_str(ret));
}

/* What a rank tells the others about what it was given. */
struct confirmation {
	uint64_t rank;		/* plus 1 */
	uint64_t hash;		/* of all parts; 0: they were wrong */
};

static int compare_hashes(const struct bootstrap *b,
			  const struct confirmation *all, uint64_t hash)
{
	uint32_t rank;

	for (rank = 0; rank < b->rendezvous.size; rank++)
		if (all[rank].hash != hash || all[rank].rank != rank + 1)
			return fxi_error(EPROTO, "port %s: communicator: the application's exchange has given rank %u other bytes than this rank %u; each call needs keys of its own, and has to wait for all ranks",
					 b->port->attr.name, rank,
					 b->rendezvous.rank);
	return 0;
}

/*
 * Ranks that were given bytes of an earlier call would connect to a
 * communicator that is in use.
 */
static int confirm(const struct bootstrap *b, const void *parts, size_t bytes,
		   int ret)
{
	size_t size = b->rendezvous.size;
	struct confirmation mine = { .rank = b->rendezvous.rank + 1 };
	struct confirmation *all = calloc(size, sizeof(*all));
	char *text = ret ? strdup(fabrex_strerror_last()) : NULL;
	bool wrong;
	int again;

	if (!all) {
		free(text);
		return fxi_error(ENOMEM, "port %s: communicator: out of memory",
				 b->port->attr.name);
	}
	if (!ret)
		mine.hash = fxi_hash(parts, size * bytes, 0) | 1;
	again = call_exchange(b, &mine, all, sizeof(mine), &wrong);
	if (!again && !ret)
		again = compare_hashes(b, all, mine.hash);
	if (ret && text)
		fxi_error(-ret, "%s", text);
	free(text);
	free(all);
	return ret ? ret : again;
}

static int application_exchange(struct rendezvous *rendezvous,
				const void *mine, void *all, size_t bytes)
{
	const struct bootstrap *b = bootstrap_of(rendezvous);
	bool wrong;
	int ret = call_exchange(b, mine, all, bytes, &wrong);

	/* The others call it again whatever this rank was given. */
	return ret && !wrong ? ret : confirm(b, all, bytes, ret);
}

/* ---- what was given ---------------------------------------------------- */

static int parse_address(struct bootstrap *b)
{
	if (!strncmp(b->address, "fabric:", 7)) {
		b->rendezvous.exchange = fxi_fabric_exchange;
		return fxi_fabric_check(b);
	}
	if (!strncmp(b->address, "tcp:", 4)) {
		b->rendezvous.exchange = fxi_tcp_exchange;
		return fxi_tcp_check(b->port, b->address);
	}
	return fxi_error(EINVAL, "port %s: bootstrap \"%s\": use fabric:SERVICE, tcp:HOST:PORT or launcher",
			 b->port->attr.name, b->address);
}

/* Takes from the launcher what the attributes leave open. */
static int ask_launcher(struct bootstrap *b, struct fabrex_comm_attr *a,
			bool address)
{
	struct launch launch;
	int ret = fxi_launch(b->port, &launch, address);

	if (ret)
		return ret;
	if (a->rank != FABREX_RANK_AUTO &&
	    (a->rank != launch.rank || a->size != launch.size))
		return fxi_error(EINVAL, "port %s: communicator: rank %u of %u, but the launcher says %u of %u; give FABREX_RANK_AUTO, or another bootstrap",
				 b->port->attr.name, a->rank, a->size,
				 launch.rank, launch.size);
	if (launch.size > COMM_RANKS)
		return fxi_error(EINVAL, "port %s: communicator of %u ranks; it may have %u at most",
				 b->port->attr.name, launch.size, COMM_RANKS);
	a->rank = launch.rank;
	a->size = launch.size;
	if (address)
		memcpy(b->address, launch.address, sizeof(b->address));
	return 0;
}

static int take_secret(struct bootstrap *b, const char *text)
{
	if (!text)
		text = getenv("FABREX_SECRET");
	if (!text || fxi_secret_parse(text, &b->secret))
		return 0;
	return fxi_error(EINVAL, "port %s: communicator: the secret (FABREX_SECRET) has %zu characters, or some that are not hexadecimal digits; give %u random digits, for example from openssl rand -hex 16",
			 b->port->attr.name, strlen(text), SECRET_DIGITS);
}

static int check_one(const struct fabrex_port *port,
		     const struct fabrex_comm_attr *a)
{
	bool own = a->unique_id || a->exchange;

	if (!!a->bootstrap + !!a->unique_id + !!a->exchange > 1)
		return fxi_error(EINVAL, "port %s: communicator: more than one of bootstrap, unique_id and exchange; give one of them",
				 port->attr.name);
	if (own && a->secret)
		return fxi_error(EINVAL, "port %s: communicator: a secret with %s; give one without the other",
				 port->attr.name, a->unique_id ?
				 "a unique_id, which has its own" :
				 "an exchange, which is the application's");
	return 0;
}

static void fill_rendezvous(struct bootstrap *b,
			    const struct fabrex_comm_attr *a)
{
	b->rendezvous.rank = a->rank;
	b->rendezvous.size = a->size;
	b->rendezvous.deadline = fxi_deadline(a->timeout_ms);
	b->rendezvous.exchange = alone_exchange;
}

/* By a unique id, or by a function of the application. */
static int begin_given(struct fabrex_comm_attr *a, struct bootstrap *b)
{
	int ret = 0;

	if (a->unique_id)
		ret = fxi_unique_id_read(a->unique_id, b);
	if (!ret && a->rank == FABREX_RANK_AUTO)
		ret = ask_launcher(b, a, false);
	if (ret)
		return ret;
	fill_rendezvous(b, a);
	if (a->unique_id) {
		b->unique = true;
		b->listener = fxi_unique_id_claim(a->unique_id, a->rank);
	}
	if (a->size < 2)
		return 0;
	b->rendezvous.exchange = a->exchange ? application_exchange :
					       fxi_tcp_exchange;
	b->exchange = a->exchange;
	b->context = a->context;
	fxi_debug(FXI_DEBUG_BOOTSTRAP, a->rank,
		  "%u ranks over port %s meet %s%s", a->size,
		  b->port->attr.name, a->exchange ?
		  "by the exchange of the application" :
		  "by a unique id, at ", b->address);
	return 0;
}

void fxi_bootstrap_end(struct bootstrap *b)
{
	if (b->listener >= 0)
		close(b->listener);
	b->listener = -1;
}

int fxi_bootstrap_begin(struct fabrex_port *const *ports, uint32_t nports,
			struct fabrex_comm_attr *a, struct bootstrap *b)
{
	struct fabrex_port *port = ports[0];
	const char *text = a->bootstrap;
	bool launcher;
	int ret = check_one(port, a);

	if (ret)
		return ret;
	memset(b, 0, sizeof(*b));
	b->port = port;
	b->ports = ports;
	b->nports = nports;
	b->listener = -1;
	if (a->unique_id || a->exchange)
		return begin_given(a, b);
	if (!text)
		text = getenv("FABREX_BOOTSTRAP");
	launcher = !text || !*text || !strcmp(text, "launcher");
	if (!launcher && strlen(text) >= sizeof(b->address))
		return fxi_error(EINVAL, "port %s: bootstrap of %zu characters; it may have %zu",
				 port->attr.name, strlen(text),
				 sizeof(b->address) - 1);
	if (!launcher)
		memcpy(b->address, text, strlen(text) + 1);
	ret = take_secret(b, a->secret);
	if (!ret &&
	    (a->rank == FABREX_RANK_AUTO || (launcher && a->size > 1)))
		ret = ask_launcher(b, a, launcher);
	if (ret)
		return ret;
	fill_rendezvous(b, a);
	if (a->size < 2)
		return 0;
	fxi_debug(FXI_DEBUG_BOOTSTRAP, a->rank,
		  "%u ranks over port %s meet at \"%s\"%s, which was given %s",
		  a->size, port->attr.name, b->address,
		  b->secret.set ? " with a secret" : "",
		  launcher ? "by the launcher" : a->bootstrap ?
		  "in the attributes" : "in FABREX_BOOTSTRAP");
	return parse_address(b);
}
