/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How ranks find each other for the first time: bootstrap.c (over the fabric),
 * tcp.c, launcher.c. Called by comm.c.
 */
#ifndef LIB_COLL_BOOTSTRAP_H
#define LIB_COLL_BOOTSTRAP_H

#include "coll/coll.h"
#include "coll/secret.h"

struct bootstrap {
	struct meeting meeting;
	struct fabrex_port *port;
	char address[256];	/* "fabric:SERVICE", "tcp:HOST:PORT", or "" */
	uint64_t service;	/* fabric */
	struct secret secret;	/* tcp, if there is one */
};

/* Fills in what attr leaves open, and finds the way to meet. */
int fxi_bootstrap_begin(struct fabrex_port *port, struct fabrex_comm_attr *a,
			struct bootstrap *b);

/* bootstrap.c: "ranks 1, 2 and 5 have not come"; for both ways. -ETIMEDOUT. */
int fxi_bootstrap_missing(const struct bootstrap *b, const bool *came);

/* bootstrap.c: what somebody else has written, of n bytes, fit to be printed. */
void fxi_bootstrap_text(char *to, const char *from, size_t n);

/* tcp.c: a meeting's exchange, at b->address. */
int fxi_tcp_check(struct fabrex_port *port, const char *address);
int fxi_tcp_exchange(struct meeting *meeting, const void *mine, void *all,
		     size_t bytes);

/* launcher.c */
struct launch {
	uint32_t rank, size;
	char address[256];
};
/* What the environment says; -EINVAL: nothing, or nonsense. */
int fxi_launch(struct fabrex_port *port, struct launch *launch);

#endif
