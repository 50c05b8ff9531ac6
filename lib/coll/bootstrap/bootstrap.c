// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How the ranks of a new communicator find each other: takes address, rank,
 * size and secret from attributes, environment and launcher, and chooses the
 * exchange. Called by comm.c; public half: fabrex_comm_create(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "coll/bootstrap/methods.h"

static int alone_exchange(struct rendezvous *rendezvous, const void *mine,
			  void *all, size_t bytes)
{
	(void)rendezvous;
	memcpy(all, mine, bytes);
	return 0;
}

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
	int ret = fxi_launch(b->port, &launch);

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

int fxi_bootstrap_begin(struct fabrex_port *port, struct fabrex_comm_attr *a,
			struct bootstrap *b)
{
	const char *text = a->bootstrap;
	bool launcher;
	int ret = 0;

	memset(b, 0, sizeof(*b));
	b->port = port;
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
	b->rendezvous.rank = a->rank;
	b->rendezvous.size = a->size;
	b->rendezvous.deadline = fxi_deadline(a->timeout_ms);
	b->rendezvous.exchange = alone_exchange;
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
