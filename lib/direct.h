/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Queues with shared.direct: the thread that submits executes, and completions
 * wait in its own memory. The halves of post.c and poll.c for them; nobody
 * else calls.
 */
#ifndef LIB_DIRECT_H
#define LIB_DIRECT_H

#include <stdbool.h>
#include "internal.h"

/*
 * Executes the operation without making an entry of it, if that can be done
 * now. False: nothing was done; prepare and submit it, which tells why.
 */
bool fxi_direct_post(struct fabrex_queue *q, const struct fabrex_op *op);
/* Executes what was prepared; their number. */
int fxi_direct_submit(struct fabrex_queue *q);
int fxi_direct_poll(struct fabrex_queue *q, struct fabrex_wc *wc, int n);
/* Take entries that succeeded quietly off the books. True if there were. */
bool fxi_direct_retire(struct fabrex_queue *q);
void fxi_direct_recv_done(struct fabrex_queue *q, unsigned int n);
/* A poll would take something. */
bool fxi_direct_something(struct fabrex_queue *q);
void fxi_direct_arm(struct fabrex_queue *q);

#endif
