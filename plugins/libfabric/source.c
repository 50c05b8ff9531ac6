// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the program calls a peer. Used by match.c and by whoever reports messages.
 */
#include "peer.h"

fi_addr_t peer_source_slowly(struct peer *peer)
{
	struct peers *peers = &peer->ep->peers;
	fi_addr_t addr;

	for (addr = 0; addr < peers->nby_addr; addr++)
		if (peers->by_addr[addr] == peer)
			break;
	if (addr == peers->nby_addr)
		addr = av_find(peer->ep->av, &peer->address);
	peer->addr = addr;
	peer->addr_known = true;
	return addr;
}
