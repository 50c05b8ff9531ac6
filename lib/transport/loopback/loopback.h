/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loopback transport's own state in this process. Files: port.c (open,
 * close, service thread), link.c (sockets to peers), heap.c (allocation in the
 * segment), region.c (regions, windows), remote.c (bounce, device), queue.c
 * (queues), engine.c (execution of entries), receive.c (messages).
 */
#ifndef LIB_LOOPBACK_H
#define LIB_LOOPBACK_H

#include <pthread.h>
#include <stdbool.h>
#include "internal.h"
#include "segment.h"

/* How another process is seen. Lives as long as the transport; reused. */
struct loop_peer {
	struct segment *segment; /* mapped, or NULL */
	uint64_t size;		/* of it, as this process has checked */
	bool up;		/* read without lock; segment stays mapped
				 * while any queue of ours is active
				 */
	bool cma;		/* process_vm_*() works with it */
	bool fence;		/* full barriers are needed towards it */
	uint32_t generation;
	pid_t pid;
	int link;		/* socket, -1: none */
	char name[32], host[32];
};

struct transport {
	struct segment *segment; /* our own */
	uint64_t size;
	int fd;			/* of it */
	uint32_t number;
	struct loop_peer peers[SEGMENT_PEERS]; /* ourselves too */
	pthread_mutex_t lock;	/* tables, heap, links; never while posting */
	void *service;		/* service thread's state: port.c */
	char name[32], fabric[32];
};

/*
 * Queue as its thread uses it. Made and ended by queue.c, used by engine.c and
 * receive.c without a lock.
 */
struct loop_queue {
	struct transport *transport;
	struct segment_queue *shared; /* ours, in our segment */
	struct segment_cell *cells;
	uint8_t *payload;
	uint32_t rq_mask;
	int efd;
	bool failed;		/* since the last fenced entry */
	struct fabrex_stats stats;
	void *bounce;		/* buffers for remote.c, made when needed */
};

/* engine.c: FABREX_WC_*; *length bytes moved, *crc if asked for. */
uint8_t fxi_loop_execute(struct loop_queue *q, const struct fabrex_sqe *sqe,
			 uint32_t *length, uint32_t *crc);

/*
 * remote.c: move between own memory and a region that is not in a mapped
 * segment; called by engine.c after all checks. FABREX_WC_*.
 */
struct loop_move {
	struct loop_peer *peer;
	const struct segment_mr *mr; /* a copy, checked */
	void *local;		/* in this process */
	uint64_t offset;	/* into the region */
	uint64_t length;
	bool read;		/* remote to local */
	uint8_t opcode;		/* FABREX_OP_*: atomics are moves of 8 bytes */
	uint64_t operand, compare;
};
uint8_t fxi_loop_move(struct loop_queue *q, const struct loop_move *move);

#endif
