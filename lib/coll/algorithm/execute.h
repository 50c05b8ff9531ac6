/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A schedule that is being executed at one rank. lane.c says what is next,
 * pass.c and region.c move the bytes, execute.c drives them; for these only.
 */
#ifndef LIB_COLL_EXECUTE_H
#define LIB_COLL_EXECUTE_H

#include "coll/algorithm/algorithm.h"
#include "coll/algorithm/pace.h"
#include "schedule/program.h"

/* Where a part is: at @own until something has come for it, at @home then. */
struct part_memory {
	const uint8_t *own;	/* in the caller's send; NULL: not there */
	uint8_t *home;		/* in the caller's recv; NULL: in scratch */
	uint64_t count;		/* elements */
	uint64_t scratch;	/* offset of room for @nscratch pieces */
	uint32_t nscratch, stride;
};

/*
 * How far a lane is: its next act, and the message that is next in it: as much
 * of a piece as a slot of a mailbox takes, or all of it to a slot on a GPU.
 */
struct cursor {
	uint32_t act;		/* FINISHED: none */
	uint32_t round;
	uint32_t turn, next;	/* in lane_acts */
	uint64_t start, end;	/* of the piece: elements of the part */
	uint64_t at;		/* of the message: element of the part */
	uint32_t count;		/* elements */
};

#define FINISHED	UINT32_MAX

/* A receive that the GPU is taking, and the lane in whose turn or beside it. */
struct begun {
	uint32_t lane;
	bool aside;
	struct cursor cursor;
};

/* One of the caller's buffers, or scratch memory on a GPU. */
enum { SENT_SEND, SENT_RECV, SENT_SCRATCH, SENT_REGIONS };
struct sent_region {
	const uint8_t *base;
	uint64_t bytes;
	struct {		/* at each port */
		struct fabrex_mr *mr; /* NULL: it is none, or not yet */
		uint64_t offset; /* of the buffer */
		bool tried;	/* to register it */
	} at[COMM_PORTS];
};

struct execution {
	struct fabrex_coll *coll;
	struct fabrex_comm *comm;
	struct fabrex_schedule *schedule;
	const struct program *p;
	uint32_t size;		/* of an element */
	uint32_t rounds;
	bool rounding;		/* after each reduction: one operand a pass */
	uint32_t tag;
	uint64_t word;
	uint32_t running;	/* lanes that have not finished */
	uint32_t unmoved;	/* steps in a row without a move */
	uint32_t copying;	/* part: those that need no transfer are */
	uint64_t copied;	/* copied here; elements of it so far */
	struct part_memory *memory; /* by part */
	uint64_t *done;		/* by act: elements of its part */
	struct cursor *cursors;	/* by lane */
	uint8_t *scratch;
	uint64_t scratch_size;
	/* region.c; not used where others' memory is written directly */
	struct sent_region regions[SENT_REGIONS];
	bool *flying;		/* by act: may still be read */
	bool gpu;		/* all memory is the GPU's */
	struct pace *paces;	/* by lane */
	uint64_t taken;		/* messages */
	uint64_t *vain;		/* by lane: so many had been taken, plus 1, when
				 * nothing could go ahead
				 */
	struct begun *begun;	/* by the GPU */
	uint32_t nbegun;
	bool aside;		/* the lane's cursor is not the one in turn */
};

#define POSITIONS	40u	/* bits of a message's word; then its transfer */

static inline uint64_t fxi_execution_word(const struct execution *e,
					  const struct cursor *c)
{
	return e->word ^ ((uint64_t)e->p->acts[c->act].transfer << POSITIONS ^
			  c->at);
}

/* ---- lane.c ------------------------------------------------------------ */

/* Pieces begin at multiples of so many bytes, if they are much larger. */
#define PIECE_CUT	64u

/* How many rounds there have to be, and do their pieces fit into slots? */
uint32_t fxi_pieces_rounds(const struct execution *e);
int fxi_pieces_check(const struct execution *e);
/* Where the piece of a round begins in a part with @count elements. */
uint64_t fxi_piece_start(const struct execution *e, uint64_t count,
			 uint64_t round);
/* All lanes to their first act. */
void fxi_execution_begin(struct execution *e);
/*
 * The lane's message has been sent or taken: to the next. Aside: only that is
 * remembered, so that it is skipped when it would be its turn.
 */
void fxi_execution_advance(struct execution *e, uint32_t lane);
/* Its message is all of the piece, from its first one on. */
static inline void fxi_execution_widen(struct cursor *c)
{
	if (c->at == c->start)
		c->count = (uint32_t)(c->end - c->start);
}
/* What has been tried ahead of its turn. Begins with a turn of -1. */
struct ahead {
	double turn;		/* of the last one that was found, */
	uint32_t next;		/* and the place in the lane behind it */
};

/*
 * Messages that can be taken at any time may overtake others of their lane, if
 * those cannot be sent yet. Of all acts of which something is here that has not
 * been sent, and that come after *@tried, which is moved, *c is about the one that
 * is least ahead. However far that is: a link that several lanes cross is idle as
 * soon as all of them wait for what comes by a longer way, and no time makes up for
 * that.
 */
bool fxi_execution_find_ahead(const struct execution *e, uint32_t lane,
			      struct ahead *tried, struct cursor *c);
/* Is it such a message, and the next of its act? Then *c is about it. */
bool fxi_execution_find(const struct execution *e, uint32_t lane,
			const struct link_message *message, struct cursor *c);
/*
 * Is it the message that the lane's act expects? Widens what is expected if all
 * of the piece has come to a GPU at once. 0 or -EPROTO.
 */
int fxi_execution_check(struct execution *e, uint32_t lane,
			const struct link_message *message);

/* ---- region.c ---------------------------------------------------------- */

void fxi_regions_get(struct execution *e);
void fxi_region_get_scratch(struct execution *e);
void fxi_regions_put(struct execution *e);
/* Is it memory of a GPU that can be sent to that rank without a copy? */
bool fxi_region_has(struct execution *e, uint32_t peer, const uint8_t *from,
		    uint64_t bytes);
/* The lane's message, without a copy. 1; 0: it cannot; negative errno. */
int fxi_region_send(struct execution *e, uint32_t lane, const uint8_t *from);
/* May what acts [first, first + n) have sent be overwritten? */
bool fxi_region_left(struct execution *e, uint32_t first, uint32_t n);

/* ---- pass.c ------------------------------------------------------------ */

/*
 * A receive whose message is here, and a send whose part is there. 1: done, or
 * begun by the GPU; 0: there is no room, or it is better to wait; negative errno.
 */
int fxi_pass_receive(struct execution *e, uint32_t lane);
/* Before a send from a GPU: widens its message if it goes to one at once. */
void fxi_pass_widen(struct execution *e, uint32_t lane);
int fxi_pass_send(struct execution *e, uint32_t lane);
/*
 * Waits for all receives that the GPU has begun, one in a lane at most, and
 * advances their lanes, unless something has @failed. Their memory is in use
 * until then.
 */
int fxi_pass_settle(struct execution *e, bool failed);
/*
 * Copies a little more of what no other rank takes part in, from where the
 * caller has it to where it belongs. 0: all of it is there; 1: not yet.
 */
int fxi_pass_copy(struct execution *e);
/* Does a send wait until its peer has said whether it has slots on a GPU? */
static inline bool fxi_pass_unknown(const struct execution *e, uint32_t peer)
{
	return e->gpu && !fxi_link_device_known(e->comm, peer) &&
	       e->comm->slots_gpu;
}

#endif
