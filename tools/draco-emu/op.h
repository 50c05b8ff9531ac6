/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One operation of a queue: checks in their order, movement in pieces. The
 * entry is a private copy; guests cannot change it under way.
 */
#ifndef EMU_OP_H
#define EMU_OP_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/fabrex_ring.h>

struct queue;
struct port;

/* What an operation came to, apart from FABREX_WC_*. */
#define OP_YIELD	0x100	/* more to move, turn is over */
#define OP_WAIT		0x101	/* a slow link, or the price of a wrong key:
				 * not before op.wait_until
				 */
#define OP_GONE		0x102	/* the queue or its port is going: no trace */

struct op {
	struct fabrex_sqe sqe;
	bool active;		/* begun, not completed */
	uint64_t done;		/* bytes moved so far */
	uint32_t crc, crc_target;
	uint64_t wait_until;
	struct queue *target;	/* WRITE_IMM: where a cell is reserved */
};

void op_begin(struct op *op, const struct fabrex_sqe *sqe);
/* Go on for about @budget bytes. FABREX_WC_* or OP_*. */
unsigned int op_run(struct queue *q, struct op *op, uint64_t budget);
/* Give up what the operation of @q holds. */
void op_end(struct queue *q);

#endif
