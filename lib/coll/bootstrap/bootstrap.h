/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bootstrap: ranks that do not know each other yet exchange a first message.
 * The lowest stratum of lib/coll. Called by comm.c; split.c and shrink.c, whose
 * ranks have a communicator already, use its type for exchanges of their own.
 */
#ifndef LIB_COLL_BOOTSTRAP_H
#define LIB_COLL_BOOTSTRAP_H

#include "coll/bootstrap/secret.h"
#include "coll/comm.h"

/*
 * What it takes to make a communicator: who this rank is, and how it hands
 * @bytes of its own to all others and gets theirs, in the order of ranks.
 */
struct rendezvous {
	uint32_t rank, size;
	uint64_t id;			/* 0: rank 0 draws one */
	int (*exchange)(struct rendezvous *rendezvous, const void *mine,
			void *all, size_t bytes); /* zeroes for a dead one */
	void *state;
	uint64_t deadline;
};

struct bootstrap {
	struct rendezvous rendezvous;
	struct fabrex_port *port;	/* the first of the rank's ports */
	struct fabrex_port *const *ports;
	uint32_t nports;
	char address[256];	/* "fabric:SERVICE", "tcp:HOST:PORT", or "" */
	uint64_t service;	/* fabric */
	struct secret secret;	/* tcp, if there is one */
	bool unique;		/* tcp: from a unique id, */
	int listener;		/* whose socket this rank uses; -1: not this */
	int (*exchange)(void *context, const void *mine, void *all,
			size_t bytes);	/* the application's */
	void *context;
};

/* Fills in what @a leaves open, and chooses the exchange. */
int fxi_bootstrap_begin(struct fabrex_port *const *ports, uint32_t nports,
			struct fabrex_comm_attr *a, struct bootstrap *b);
/* After the exchange, or without it. */
void fxi_bootstrap_end(struct bootstrap *b);

#endif
