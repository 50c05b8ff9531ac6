// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random ioctls, mmaps and reads for a bounded time. Nothing may crash, hang
 * or leak; the port must work afterwards and own what it owned before.
 *   fuzz-ioctl [SECONDS [SEED]]
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define FILES	4
#define MAPS	32

struct state {
	uint32_t seed;
	int fd[FILES];
	uint64_t values[64];	/* ids, keys, cookies seen */
	void *map[MAPS];
	size_t map_len[MAPS];
	uint8_t *memory;	/* something to register */
	unsigned long calls, accepted;
};

static const size_t sizes[] = {
	sizeof(struct fabrex_port_query), sizeof(struct fabrex_peer_query),
	sizeof(struct fabrex_mr_register), sizeof(struct fabrex_queue_create),
	sizeof(struct fabrex_window_create), sizeof(struct fabrex_destroy),
	sizeof(struct fabrex_counters), sizeof(struct fabrex_resolve),
	sizeof(struct fabrex_watch), sizeof(struct fabrex_p2p_query),
};

#define CMDS	(int)(sizeof(sizes) / sizeof(sizes[0]))

static uint32_t rnd(struct state *s, uint32_t n)
{
	return raw_random(&s->seed) % n;
}

static uint64_t word(struct state *s)
{
	switch (rnd(s, 8)) {
	case 0:
		return 0;
	case 1:
		return 1ull << rnd(s, 64);
	case 2:
		return -1ull - rnd(s, 3);
	case 3:
		return (uintptr_t)s->memory + rnd(s, 65536);
	case 4:
		return (uint64_t)raw_random(&s->seed) << 32 |
		       raw_random(&s->seed);
	case 5:
		return rnd(s, 16);
	default:
		return s->values[rnd(s, 64)];
	}
}

static void remember(struct state *s, const uint64_t *arg, size_t size)
{
	for (size_t i = 0; i < size / 8; i++)
		if (arg[i])
			s->values[rnd(s, 64)] = arg[i];
	s->values[rnd(s, 64)] = (uint32_t)arg[rnd(s, size / 8)];
}

/* Mostly plausible, so that some calls get through. */
static void plausible(struct state *s, int cmd, void *arg)
{
	struct fabrex_mr_register *mr = arg;
	struct fabrex_queue_create *q = arg;

	if (cmd == FABREX_CMD_MR_REGISTER) {
		mr->addr = (uintptr_t)s->memory + rnd(s, 60000);
		mr->length = 1 + rnd(s, 4096);
		mr->access = rnd(s, 16);
	} else if (cmd == FABREX_CMD_QUEUE_CREATE) {
		q->sq_entries = 8u << rnd(s, 4);
		q->rq_entries = rnd(s, 2) ? 8 : 0;
		q->cell_size = q->rq_entries ? 64u << rnd(s, 5) : 0;
		q->cq_entries = q->sq_entries * 2;
		q->eventfd = -1;
	}
}

static void call(struct state *s)
{
	uint64_t arg[64] = { 0 };
	int cmd = rnd(s, CMDS + 1), fd = s->fd[rnd(s, FILES)];
	size_t size = cmd < CMDS ? sizes[cmd] : 64;

	plausible(s, cmd, arg);
	for (uint32_t n = rnd(s, 4); n; n--) {
		if (rnd(s, 2))
			((uint32_t *)arg)[rnd(s, size / 4)] = word(s);
		else
			arg[rnd(s, size / 8)] = word(s);
	}
	if (rnd(s, 16))
		memcpy(arg, &(uint32_t){ size }, 4);
	s->calls++;
	if (ioctl(fd, _IO(FABREX_TYPE, cmd), rnd(s, 64) ? (void *)arg :
		  (void *)(uintptr_t)word(s)))
		return;
	s->accepted++;
	remember(s, arg, size);
}

static void map(struct state *s)
{
	int i = rnd(s, MAPS);

	if (s->map[i])
		munmap(s->map[i], s->map_len[i]);
	s->map_len[i] = RAW_PAGE * (1 + rnd(s, 8));
	s->map[i] = mmap64(NULL, s->map_len[i], 1 + rnd(s, 7),
			   rnd(s, 8) ? MAP_SHARED : MAP_PRIVATE,
			   s->fd[rnd(s, FILES)], word(s) & ~4095ull);
	if (s->map[i] == MAP_FAILED)
		s->map[i] = NULL;
}

static void reopen(struct state *s)
{
	int i = rnd(s, FILES);

	close(s->fd[i]);
	s->fd[i] = open(raw_path(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

static void step(struct state *s)
{
	uint8_t buf[256];

	switch (rnd(s, 32)) {
	case 0:
		reopen(s);
		break;
	case 1:
	case 2:
	case 3:
		map(s);
		break;
	case 4:
		(void)!read(s->fd[rnd(s, FILES)], buf, rnd(s, sizeof(buf)));
		break;
	default:
		call(s);
	}
}

static int fuzz(uint32_t seed, int seconds)
{
	uint64_t end = raw_now_ns() + seconds * 1000000000ull;
	struct state s = { .seed = seed };

	s.memory = raw_pages(65536);
	for (int i = 0; i < FILES; i++)
		s.fd[i] = open(raw_path(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
	while (raw_now_ns() < end)
		for (int i = 0; i < 50; i++)
			step(&s);
	printf("# seed %u: %lu calls, %lu accepted\n", seed, s.calls,
	       s.accepted);
	fflush(stdout);
	return s.accepted ? 0 : 1;
}

static void tap(int n, bool good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", n, what);
}

static bool works(void)
{
	struct fabrex_sqe sqe;
	struct bench b;
	bool good;

	if (bench_open(&b))
		return false;
	sqe = bench_write(&b, 0, 0, 4096);
	good = raw_do(&b.q, &sqe, NULL) == FABREX_WC_OK &&
	       !memcmp(b.src.addr, b.dst.addr, 4096);
	bench_close(&b);
	return good;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 5;
	uint32_t seed = argc > 2 ? strtoul(argv[2], NULL, 0) : time(NULL);
	struct bench_count before, after = { 0 };
	int status[2], bad = 0;
	pid_t pid[2];

	seed = seed ?: 1;
	printf("TAP version 13\n1..3\n# seed %u, %d s\n", seed, seconds);
	fflush(stdout);
	if (bench_count(&before))
		return 1;
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(fuzz(seed + i, seconds));
	}
	for (int i = 0; i < 2; i++) {
		waitpid(pid[i], &status[i], 0);
		bad += status[i] != 0;
	}
	tap(1, !bad, "both fuzzers got something through and ended well");
	tap(2, works(), "the port works afterwards");
	for (int i = 0; i < RAW_WAIT_MS / 100; i++) {
		if (!bench_count(&after) &&
		    !memcmp(&before, &after, sizeof(after)))
			break;
		usleep(100000);
	}
	tap(3, !memcmp(&before, &after, sizeof(after)),
	    "counted objects return to the start");
	return 0;
}
