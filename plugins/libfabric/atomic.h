/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Atomic operations, and how they are done. What they compute: atomic_op.h.
 *
 * The fabric itself adds to 64-bit words, and compares and swaps them. Whatever
 * is no more than that is one operation of it for each word, and everything else
 * is computed here: the aligned word with the element is fetched, and replaced
 * if nobody has changed it meanwhile, else the same again. So all operations are
 * atomic with respect to each other, whoever does which.
 */
#ifndef FABREX_ATOMIC_H
#define FABREX_ATOMIC_H

#include "atomic_op.h"
#include "peer.h"

/* ---- atomic_run.c ------------------------------------------------------ */

/* The elements of one operation, at most: bytes. */
#define ATOMIC_MAX	(64u << 10)
/* Words of one request that are under way at a time. */
#define ATOMIC_LANES	(BOUNCE_SMALL / 8)

/* Local memory, in order. Without operand or result: none. */
struct atomic_memory {
	uint32_t count;
	struct {
		char *base;
		uint64_t bytes;
	} part[IOV_LIMIT];
};

struct atomic_target {
	uint64_t addr, key;	/* offset, once it is resolved */
	uint64_t bytes;
};

enum atomic_step {
	STEP_IDLE,
	STEP_ONLY,		/* the fabric does it all */
	STEP_WAIT,		/* another lane is changing the word */
	STEP_FETCH,		/* the word is read, to be changed */
	STEP_LOAD,		/* the same without the right to read */
	STEP_SWAP,		/* it is replaced */
	STEP_READ,		/* only elements: no right to more */
};

/* One word of the target. */
struct atomic_lane {
	struct request *request;
	struct atomic_lane *prev, *next;	/* in struct endpoint.words */
	uint64_t at;		/* its first byte, of all */
	uint64_t offset, key;	/* of the word */
	uint64_t old, new;	/* what it was, and is to be */
	uint8_t first, bytes;	/* of it that are elements */
	uint8_t step;		/* enum atomic_step */
	bool flying, entered;
};

/* In the memory of struct request.copy. */
struct atomic {
	enum fi_datatype datatype;
	enum fi_op op;
	struct atomic_memory operand, compare, result;
	struct atomic_target target[IOV_LIMIT];
	uint32_t targets, resolved;
	uint32_t which;		/* the target of the next word, */
	uint64_t within;	/* where it is in there, */
	uint64_t at, bytes;	/* and its place in all; how many there are */
	uint32_t lanes;
	/* Lanes in the order of posting, which is that of completions. */
	uint32_t head, tail;
	uint8_t order[ATOMIC_LANES];
	struct atomic_lane lane[];
};

/* A struct request.resume: peer, copy and, better, bounce are there. */
int atomic_start(struct request *request);
/* A struct request.completed. */
void atomic_completed(struct request *request, const struct fabrex_wc *wc);

#endif
