// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes killed by SIGKILL with operations in flight, many times.
 *   dma-killed initiator N PEER RKEY LENGTH   the initiating side dies
 *   dma-killed target N PEER BOARDKEY         the side written to dies; its
 *       survivor is dma-survivor on PEER, which owns the board
 *   dma-killed forked N PEER BOARDKEY         the same, and each has a child of
 *       its own, by fork() or vfork(), that lives on with all its descriptors
 * The driver's own object counts must return to where they were.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "board.h"

#define SIZE	(256u * 1024)

enum side { INITIATOR, TARGET, FORKED };

static int tests;
static int hold[2];		/* at its end of file the forked ones go */

static void tap(bool good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++tests, what);
	fflush(stdout);
}

/* Keep the queue full of everything until the end comes. */
static void flood(struct bench *b, uint16_t peer, uint64_t rkey,
		  uint64_t length)
{
	struct fabrex_sqe op[4];
	struct fabrex_cqe cqe;
	uint32_t done = 0;

	for (int i = 0; i < 4; i++)
		op[i] = raw_rw(i & 1 ? FABREX_OP_READ : FABREX_OP_WRITE, peer,
			       &b->src, 0, rkey, 0,
			       length < BENCH_SIZE ? length : BENCH_SIZE);
	op[3].opcode = FABREX_OP_NOP;
	op[2].flags = FABREX_SQE_CHECK;
	for (;;) {
		while (b->q.sq_tail - done < 48)
			raw_put(&b->q, &op[b->q.sq_tail % 3]);
		raw_submit(&b->q);
		while (raw_poll(&b->q, &cqe, 0))
			done++;
	}
}

static void initiator_child(int ready, uint16_t peer, uint64_t rkey,
			    uint64_t length)
{
	struct bench b;
	char c = 'r';

	if (bench_open(&b) || write(ready, &c, 1) != 1)
		_exit(1);
	flood(&b, peer, rkey, length);
}

/*
 * Says that all is ready, and lives until the test is over. With vfork() the
 * parent does not return from it before.
 */
static void have_child(int ready, bool by_vfork)
{
	char c = 'r';
	pid_t pid;

	close(hold[1]);
	pid = by_vfork ? vfork() : fork();
	if (!pid) {
		if (write(ready, &c, 1) != 1)
			_exit(1);
		_exit(read(hold[0], &c, 1) != 0);
	}
	if (pid < 0)
		_exit(5);
}

/* Tell the survivor where to write, then wait for death. */
static void target_child(enum side side, int ready, uint16_t peer,
			 uint64_t board, uint64_t number)
{
	struct fabrex_sqe sqe;
	struct board *mine;
	struct bench b;
	struct raw_mr mr;
	char c = 'r';

	if (bench_open(&b) || raw_mr(b.fd, SIZE, RAW_ALL, &mr))
		_exit(1);
	mine = (struct board *)b.src.addr;
	mine->rkey = mr.key;
	mine->length = SIZE;
	mine->peer = b.self;
	mine->number = number;
	/* Operations to one peer take effect in order: the number comes last. */
	sqe = raw_rw(FABREX_OP_WRITE, peer, &b.src, 8, board, 8,
		     sizeof(*mine) - 8);
	if (raw_do(&b.q, &sqe, NULL))
		_exit(2);
	sqe = raw_rw(FABREX_OP_WRITE, peer, &b.src, 0, board, 0, 8);
	if (raw_do(&b.q, &sqe, NULL))
		_exit(3);
	if (side == FORKED)
		have_child(ready, number % 2);
	else if (write(ready, &c, 1) != 1)
		_exit(4);
	for (;;)
		pause();
}

static bool counts_return(const struct bench_count *before)
{
	struct bench_count now = { 0 };

	for (int i = 0; i < RAW_WAIT_MS / 100; i++) {
		if (!bench_count(&now) && !memcmp(&now, before, sizeof(now)))
			return true;
		usleep(100000);
	}
	printf("# before: %ld queues %ld mrs %ld windows %ld bytes\n"
	       "# after:  %ld queues %ld mrs %ld windows %ld bytes\n",
	       before->queues, before->mrs, before->windows, before->pinned,
	       now.queues, now.mrs, now.windows, now.pinned);
	return false;
}

/* The number of children that worked until they were killed. */
static int slaughter(int n, char **argv, enum side side)
{
	uint32_t seed = 4;
	int good = 0;

	for (int i = 1; i <= n; i++) {
		int ready[2], status;
		char c;
		pid_t pid;

		if (pipe(ready))
			return good;
		pid = fork();
		if (!pid && side == INITIATOR)
			initiator_child(ready[1], atoi(argv[0]),
					strtoull(argv[1], NULL, 0),
					strtoull(argv[2], NULL, 0));
		if (!pid)
			target_child(side, ready[1], atoi(argv[0]),
				     strtoull(argv[1], NULL, 0), i);
		close(ready[1]);
		if (read(ready[0], &c, 1) == 1)
			usleep(raw_random(&seed) % 20000);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		close(ready[0]);
		if (WIFSIGNALED(status))
			good++;
		else
			printf("# child %d exited with %d\n", i,
			       WEXITSTATUS(status));
	}
	return good;
}

/* The survivor may go home. */
static bool say_stop(char **argv)
{
	struct fabrex_sqe sqe;
	struct bench b;
	bool good;

	if (bench_open(&b))
		return false;
	*(uint64_t *)b.src.addr = BOARD_STOP;
	sqe = raw_rw(FABREX_OP_WRITE, atoi(argv[0]), &b.src, 0,
		     strtoull(argv[1], NULL, 0), 0, 8);
	good = raw_do(&b.q, &sqe, NULL) == FABREX_WC_OK;
	bench_close(&b);
	return good;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "initiator", "target", "forked" };
	struct bench_count before;
	enum side side = INITIATOR;
	int n;

	while (argc > 1 && side <= FORKED && strcmp(argv[1], names[side]))
		side++;
	if (argc != (side == INITIATOR ? 6 : 5) || side > FORKED) {
		fprintf(stderr, "usage: see the source\n");
		return 2;
	}
	n = atoi(argv[2]);
	printf("TAP version 13\n1..%d\n", side == INITIATOR ? 2 : 3);
	if (bench_count(&before) || pipe(hold))
		return 1;
	tap(slaughter(n, argv + 3, side) == n, "all worked until killed");
	if (side != INITIATOR)
		tap(say_stop(argv + 3), "the fabric works afterwards");
	tap(counts_return(&before), "counted objects return to the start");
	return 0;
}
