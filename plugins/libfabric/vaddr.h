/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Virtual addresses of peers' memory. A program that has them gives an address
 * where libfabrex wants an offset; where a region begins is on its owner's board.
 */
#ifndef FABREX_VADDR_H
#define FABREX_VADDR_H

#include "peer.h"

/*
 * What is to be subtracted from addresses in this region of the peer; 0 if its
 * program gives offsets. -FI_EAGAIN: the peer is not yet connected (peer_wait()
 * greets it), or its board is being read: peer_stir() is called when it is worth
 * asking again. Else a cause.
 */
int vaddr_base(struct peer *peer, uint64_t key, uint64_t *base);

#endif
