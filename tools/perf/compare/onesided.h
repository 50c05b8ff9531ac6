/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One-sided writes between ranks 0 and 1 of ours, without any communicator;
 * used by ours.c.
 */
#ifndef COMPARE_ONESIDED_H
#define COMPARE_ONESIDED_H

#include "compare.h"

struct onesided {
	struct fabrex_port *port;
	uint32_t rank;
	struct fabrex_mr *send, *recv;
	uint64_t room;
	struct fabrex_queue *queue;
	struct fabrex_remote remote;	/* the other's recv */
	struct fabrex_window *window;	/* on it */
	uint64_t turn;
};

/* Ranks 0 and 1 meet at @service. 0 or a negative errno and the library's
 * sentence.
 */
int onesided_open(struct onesided *s, const char *other, uint64_t service);
void onesided_close(struct onesided *s);
/*
 * "write_lat", "write_bw", "memcpy". False: an operation failed; *known: it is
 * one of these. Rank 0 writes; rank 1 answers write_lat.
 */
bool onesided_turns(struct onesided *s, const char *what, uint64_t bytes,
		    uint64_t n, bool *known);

#endif
