// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that is taken back while another host reads and writes it, many times.
 *   dma-revoked target N           prints "board KEY PEER", then TAP: registers
 *       memory, lets the other side at it, deregisters it in the middle, and uses it
 *       for something else at once
 *   dma-revoked initiator PEER KEY reads from the board what there is, and keeps its
 *       queue full until it is refused; TAP
 * Nothing may arrive in the memory once it is deregistered, and nothing of what is
 * in it by then may be read.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "board.h"

#define SIZE	(256u * 1024)
#define PIECE	(SIZE / 2)
#define DEPTH	16u
#define LATER	0xc3		/* what the memory is used for afterwards */

/* What the initiator writes back: the round that is over. */
#define ENDED	sizeof(struct board)

static int tests;

static void tap(bool good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++tests, what);
	fflush(stdout);
}

/* Until that word is @wanted; false: it has not become so. */
static bool wait_word(const uint64_t *word, uint64_t wanted)
{
	uint64_t end = raw_now_ns() + RAW_WAIT_MS * 1000000ull;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != wanted) {
		if (raw_now_ns() > end)
			return false;
		usleep(100);
	}
	return true;
}

/* ---- target ---- */

struct target {
	int fd;
	struct board *board;
	uint64_t *ended;
	uint8_t *memory;
	uint32_t seed;
};

/* One round: 0, bytes that are not what they should be, or -1. */
static long take_back(struct target *t, uint64_t round)
{
	struct raw_mr mr;
	long late = 0;

	memset(t->memory, 0, SIZE);
	if (raw_mr_at(t->fd, t->memory, SIZE, RAW_ALL, &mr))
		return -1;
	t->board->rkey = mr.key;
	__atomic_store_n(&t->board->number, round, __ATOMIC_RELEASE);
	/* There is traffic, as something has arrived. */
	if (!wait_word((uint64_t *)t->memory, ~0ull))
		return -1;
	usleep(raw_random(&t->seed) % 5000);
	if (raw_destroy(t->fd, mr.id))
		return -1;
	memset(t->memory, LATER, SIZE);
	if (!wait_word(t->ended, round))
		return -1;
	for (uint32_t i = 0; i < SIZE; i++)
		late += t->memory[i] != LATER;
	return late;
}

static int target(int n)
{
	struct target t = { .seed = 7 };
	struct fabrex_port_query port;
	long late = 0, got = 0;
	struct raw_mr board;
	int round = 0;

	t.fd = raw_open();
	if (t.fd < 0 || raw_query(t.fd, &port) ||
	    raw_mr(t.fd, 4096, RAW_ALL, &board))
		return 1;
	t.board = (struct board *)board.addr;
	t.ended = (uint64_t *)(board.addr + ENDED);
	t.memory = raw_pages(SIZE);
	printf("board %llu %u\n", (unsigned long long)board.key,
	       port.out_peer);
	printf("TAP version 13\n1..2\n");
	fflush(stdout);
	while (round < n && got >= 0) {
		got = take_back(&t, ++round);
		late += got > 0 ? got : 0;
	}
	t.board->number = BOARD_STOP;
	if (late)
		printf("# %ld bytes came late\n", late);
	tap(got >= 0, "taken back each time");
	tap(!late, "nothing came afterwards");
	/* The other side has read that this is the end. */
	return wait_word(t.ended, BOARD_STOP) ? 0 : 1;
}

/* ---- initiator ---- */

struct initiator {
	struct raw_queue q;
	uint16_t peer;
	uint64_t key;			/* of the board */
	struct raw_mr from, to, board;
	unsigned long done, refused, aborted, wrong, seen;
};

static void post(struct initiator *s, uint64_t rkey)
{
	uint32_t i = s->q.sq_tail;
	uint64_t at = i / 2 % (SIZE / PIECE) * PIECE;
	struct fabrex_sqe sqe;

	if (i % 2)
		sqe = raw_rw(FABREX_OP_READ, s->peer, &s->to, at, rkey, at,
			     PIECE);
	else
		sqe = raw_rw(FABREX_OP_WRITE, s->peer, &s->from, at, rkey, at,
			     PIECE);
	raw_post(&s->q, &sqe);
}

/* Operations end well until one is refused, and from then on none does. */
static void judge(struct initiator *s, uint8_t status, bool *over)
{
	if (status == FABREX_WC_OK && !*over) {
		s->done++;
	} else if (status == FABREX_WC_RKEY) {
		s->refused++;
		*over = true;
	} else if (status == FABREX_WC_ABORTED) {
		s->aborted++;
		*over = true;
	} else {
		s->wrong++;
		printf("# status %u%s\n", status, *over ? " afterwards" : "");
	}
}

/* Until all that was posted has ended; false: it does not. */
static bool pursue(struct initiator *s, uint64_t rkey)
{
	unsigned int flying = 0;
	struct fabrex_cqe cqe;
	bool over = false;

	memset(s->to.addr, 0, SIZE);
	do {
		for (; !over && flying < DEPTH; flying++)
			post(s, rkey);
		if (!raw_poll(&s->q, &cqe, RAW_WAIT_MS))
			return false;
		flying--;
		judge(s, cqe.status, &over);
	} while (flying);
	s->seen += memchr(s->to.addr, LATER, SIZE) != NULL;
	return true;
}

/* The board as it is now; false: it cannot be read. */
static bool look(struct initiator *s, struct board *board)
{
	struct fabrex_sqe sqe = raw_rw(FABREX_OP_READ, s->peer, &s->board, 0,
				       s->key, 0, sizeof(*board));

	if (raw_do(&s->q, &sqe, NULL) != FABREX_WC_OK)
		return false;
	memcpy(board, s->board.addr, sizeof(*board));
	return true;
}

static bool say(struct initiator *s, uint64_t round)
{
	struct fabrex_sqe sqe = raw_rw(FABREX_OP_WRITE, s->peer, &s->board, 0,
				       s->key, ENDED, sizeof(round));

	memcpy(s->board.addr, &round, sizeof(round));
	return raw_do(&s->q, &sqe, NULL) == FABREX_WC_OK;
}

/* Rounds played to their end. */
static uint64_t play(struct initiator *s)
{
	struct board board = { 0 };
	uint64_t round = 0;

	while (look(s, &board)) {
		if (board.number == BOARD_STOP) {
			say(s, BOARD_STOP);
			return round;
		}
		if (board.number == round) {
			usleep(500);
			continue;
		}
		if (!pursue(s, board.rkey) || !say(s, board.number))
			break;
		round = board.number;
	}
	return 0;
}

static int initiator(const char *peer, const char *key)
{
	struct initiator s = { .peer = atoi(peer),
			       .key = strtoull(key, NULL, 0) };
	int fd = raw_open();
	uint64_t rounds;

	if (fd < 0 || raw_queue(fd, 64, 256, 0, &s.q) ||
	    raw_mr(fd, SIZE, RAW_ALL, &s.from) ||
	    raw_mr(fd, SIZE, RAW_ALL, &s.to) ||
	    raw_mr(fd, 4096, RAW_ALL, &s.board))
		return 1;
	memset(s.from.addr, 0xff, SIZE);
	printf("TAP version 13\n1..4\n");
	rounds = play(&s);
	printf("# %llu rounds: %lu operations done, %lu refused, %lu aborted\n",
	       (unsigned long long)rounds, s.done, s.refused, s.aborted);
	tap(rounds, "played to the end");
	tap(!s.wrong, "each operation is done or refused, none after that");
	tap(s.refused >= rounds, "some are refused each time");
	tap(!s.seen, "what is in the memory afterwards is not read");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "target"))
		return target(atoi(argv[2]));
	if (argc == 4 && !strcmp(argv[1], "initiator"))
		return initiator(argv[2], argv[3]);
	fprintf(stderr, "usage: see the source\n");
	return 2;
}
