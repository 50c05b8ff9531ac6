/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The methods that bootstrap.c chooses from: launcher.c for rank and size,
 * fabric.c and tcp.c for the exchange. For lib/coll/bootstrap only.
 */
#ifndef LIB_COLL_BOOTSTRAP_METHODS_H
#define LIB_COLL_BOOTSTRAP_METHODS_H

#include "coll/bootstrap/bootstrap.h"

/* ---- launcher.c -------------------------------------------------------- */

struct launch {
	uint32_t rank, size;
	char address[256];
};
/*
 * From the environment; the address only if it is asked for. -EINVAL: nothing
 * there, or nonsense.
 */
int fxi_launch(struct fabrex_port *port, struct launch *launch, bool address);

/* ---- fabric.c, tcp.c: is the address right? and the exchange there ------ */

int fxi_fabric_check(struct bootstrap *b);
int fxi_fabric_exchange(struct rendezvous *rendezvous, const void *mine,
			void *all, size_t bytes);
int fxi_tcp_check(struct fabrex_port *port, const char *address);
int fxi_tcp_exchange(struct rendezvous *rendezvous, const void *mine,
		     void *all, size_t bytes);

/* ---- rendezvous.c ------------------------------------------------------ */

/* Reports which ranks have not come. -ETIMEDOUT. */
int fxi_rendezvous_missing(const struct bootstrap *b, const bool *came);
/* Copies text of another rank, of n bytes, without what is not printable. */
void fxi_printable(char *to, const char *from, size_t n);

static inline struct bootstrap *bootstrap_of(struct rendezvous *rendezvous)
{
	return container_of(rendezvous, struct bootstrap, rendezvous);
}

#endif
