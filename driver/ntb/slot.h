/* SPDX-License-Identifier: GPL-2.0-only */
/* Slots of an inbox. For inbox.c and wire.c. */
#ifndef FABREX_NTB_SLOT_H
#define FABREX_NTB_SLOT_H

#include "message.h"

#define FNTB_INLINE_MAX	48u

/* fabrex_request.opcode, beside those of the engine: nobody is to store to the
 * region with this key any more. RNR: somebody still may.
 */
#define FNTB_OP_FORGET	0x80

/**
 * struct fntb_request_slot - a request
 * @req:   the request
 * @data:  its payload, with %ENGINE_REQ_INLINE
 * @stamp: fntb_stamp(), stored last
 */
struct fntb_request_slot {
	struct fabrex_request req;
	u8 data[FNTB_INLINE_MAX];
	__le64 stamp;
};

/**
 * struct fntb_answer_slot - an answer
 * @answer: to the request of the same number
 * @stamp:  fntb_stamp(), stored last
 */
struct fntb_answer_slot {
	struct fabrex_answer answer;
	__le64 stamp;
};

_Static_assert(sizeof(struct fntb_request_slot) == 128, "two lines");
_Static_assert(sizeof(struct fntb_answer_slot) == 32, "half a line");

#endif
