// SPDX-License-Identifier: GPL-2.0-only
/*
 * The side that lives on while dma-killed's children die: writes to each of
 * them until it is refused. Prints "board KEY", then TAP when told to stop.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "board.h"

#define IDLE_S	1200

struct tally {
	int refused;		/* ended with the right error */
	int other;		/* ended with another one */
	int hung;		/* no completion in time */
	unsigned long writes;
};

/* Write to one child until it does not work any more. */
static void pursue(struct bench *b, const struct board *target,
		   struct tally *tally)
{
	uint64_t end = raw_now_ns() + RAW_WAIT_MS * 1000000ull;

	while (raw_now_ns() < end) {
		struct fabrex_sqe sqe = raw_rw(FABREX_OP_WRITE, target->peer,
			&b->src, 0, target->rkey, 0,
			target->length < BENCH_SIZE ? target->length :
			BENCH_SIZE);
		int got = raw_do(&b->q, &sqe, NULL);

		if (got == FABREX_WC_OK) {
			tally->writes++;
			continue;
		}
		if (got < 0)
			tally->hung++;
		else if (got == FABREX_WC_RKEY || got == FABREX_WC_ABORTED)
			tally->refused++;
		else
			tally->other++;
		return;
	}
	tally->other++;		/* it lives for ever */
}

/* The next child's number, 0 when nobody came. */
static uint64_t wait_board(const struct board *board, uint64_t last)
{
	uint64_t end = raw_now_ns() + IDLE_S * 1000000000ull;

	while (raw_now_ns() < end) {
		uint64_t n = __atomic_load_n(&board->number, __ATOMIC_ACQUIRE);

		if (n != last)
			return n;
		usleep(200);
	}
	return 0;
}

static void tap(int n, bool good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", n, what);
}

int main(void)
{
	struct tally tally = { 0 };
	struct board *board;
	struct raw_mr mr;
	uint64_t n = 0;
	struct bench b;

	if (bench_open(&b) || raw_mr(b.fd, 4096, RAW_ALL, &mr))
		return 1;
	board = (struct board *)mr.addr;
	printf("board %llu\n", (unsigned long long)mr.key);
	fflush(stdout);
	while ((n = wait_board(board, n)) && n != BOARD_STOP) {
		struct board copy = *board;

		pursue(&b, &copy, &tally);
	}
	printf("TAP version 13\n1..4\n# %d refused, %lu writes before\n",
	       tally.refused, tally.writes);
	tap(1, n == BOARD_STOP, "told to stop");
	tap(2, !tally.hung, "nothing hung");
	tap(3, !tally.other, "each death is seen as a refused key");
	tap(4, tally.refused > 0 && tally.writes > 0, "there was something");
	return 0;
}
