/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two enabled ports with a queue and a region each, and a third without: what
 * tests of operations start from.
 */
#ifndef EMU_PAIR_H
#define EMU_PAIR_H

#include "function.h"
#include "rig.h"

#define A	(&rig_guest[0])
#define B	(&rig_guest[1])
#define C	(&rig_guest[2])
#define LEN	65536u			/* of both regions */
#define SRC	RIG_FREE		/* a's */
#define DST	(RIG_FREE + 0x100000u)	/* b's */
#define PD	7u

extern struct rig_queue qa, qb;
extern uint64_t lkey, rkey;
extern uint32_t lmr, rmr;		/* their numbers */

bool pair_start(void);
#define BEGIN()	CHECK(pair_start())
#define END()	rig_stop()

void fill(struct rig_guest *g, uint64_t addr, size_t len, unsigned int seed);
/* A good entry of that kind from a to b; tests change what they want. */
struct fabrex_sqe entry(unsigned int opcode);
uint64_t word(struct rig_guest *g, uint64_t addr);

/* Memory of all three, from RIG_FREE on. */
void remember(void);
bool unchanged(void);
/* Status of an operation, or -2 if it changed any memory. */
int refused(const struct fabrex_sqe *s);

#define REFUSE(op, change, status) do {					\
	s = entry(op);							\
	change;								\
	CHECK_EQ(refused(&s), status);					\
} while (0)

/* Control page and doorbell. */
uint32_t ctrl(struct rig_queue *q, size_t offset);
bool in_error(struct rig_queue *q, uint32_t error);
void ring_with(struct rig_queue *q, uint32_t tail);

#endif
