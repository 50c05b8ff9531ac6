/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranks as processes on a loopback fabric of the test's own, which may be
 * killed. Only tests call it.
 */
#ifndef LIB_TESTS_CROWD_H
#define LIB_TESTS_CROWD_H

#include <fabrex/coll.h>
#include <sys/types.h>

#include "test.h"

#define CROWD	8u

struct crowd {
	uint32_t size;
	pid_t pid[CROWD];	/* 0: waited for */
	int status[CROWD];
	int ready;		/* pipe: ranks write when they are */
	int ready_write;
	char bootstrap[64];
	const void *arg;
};

/* One rank; @work returns what the process exits with. */
struct member {
	struct crowd *crowd;
	struct fabrex_port *port;
	struct fabrex_comm_attr attr;	/* for fabrex_comm_create() */
	uint32_t rank, size;
	const void *arg;
};

/* A meeting place that nobody else has. */
void crowd_start(struct crowd *c, uint32_t size,
		 int (*work)(struct member *m), const void *arg);
/* By a rank: as far as it has to be; by the test: until all have said so. */
void crowd_ready(struct member *m);
void crowd_await(struct crowd *c);
void crowd_kill(struct crowd *c, uint32_t rank, int sig);
/* Wait for a rank; its exit status, or -signal. */
int crowd_end(struct crowd *c, uint32_t rank);
/* All of them; @except bits have been killed. Others must have exited with 0. */
void crowd_finish(struct crowd *c, uint32_t except);
/* Starts the ranks and waits for all of them; none may fail. */
void crowd_run(uint32_t size, int (*work)(struct member *m), const void *arg);
/* Nothing of the fabric is left: no socket, no file. */
void crowd_gone(void);
struct fabrex_comm *crowd_create(struct member *m);
/* A TCP port that was free a moment ago; a connection to one, once it listens. */
uint16_t crowd_tcp_port(void);
int crowd_tcp_dial(uint16_t port);
/* A sum over all that is right, or the error. */
int crowd_sum(struct fabrex_comm *comm);

#endif
