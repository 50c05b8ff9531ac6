/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations of queues, for worker.c and port.c. */
#ifndef _ENGINE_OP_H
#define _ENGINE_OP_H

#include "queue.h"

bool engine_op_serve(struct engine_queue *queue);
bool engine_op_pending(const struct engine_queue *queue);
void engine_op_abandon(struct engine_queue *queue);

#endif
