/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loopback: a fabric of the processes of one machine (docs/loopback.md). What
 * post, poll and the execution of operations need; the rest is in state.h.
 *
 *   port.c settings.c         open, close, limits; environment
 *   join.c socket.c outbox.c  peers: handshake, connections, messages
 *   service.c events.c        the thread that answers peers; events
 *   heap.c room.c mapped.c    memory of the segment; whether there is enough
 *   region.c window.c queue.c objects
 *   quiesce.c quarantine.c    the end of accesses to what is taken away
 *   post.c poll.c             what queues do (queue_ops)
 *   fast.h fast.c engine.c    execution: the fast path, the plain cases, all
 *   send.c                    messages into receive rings of peers
 *   remote.c device.c file.c  memory that is not in a mapped segment,
 *   bounce.c assist.c copier.c  and that its owner has to copy
 */
#ifndef LIB_LOOPBACK_H
#define LIB_LOOPBACK_H

#include <pthread.h>
#include <stdbool.h>
#include "core/core.h"
#include "segment.h"

#define LOOP_MAX_TRANSFER	(1ull << 31)	/* attr.max_transfer */

/*
 * A peer as this process sees it. Exists as long as the transport; reused. A
 * thread that executes reads it without lock, each field once, after it has
 * made active of its queue odd: @up (acquire), then the others. They change
 * only while
 * @up is false and after all our queues have been seen even.
 */
struct loop_peer {
	struct segment *segment; /* mapped */
	uint64_t size;		/* of it, checked by this process */
	bool up;
	bool cma;		/* process_vm_*() works with it */
	bool fence;		/* a full barrier is needed after active has
				 * been made odd, before anything of it is read
				 */
	uint32_t generation;
	uint32_t died;		/* generation of the last that has gone:
				 * send.c
				 */
	pid_t pid;
	int sock;		/* connected; -1: ourselves */
	int fd;			/* of the segment */
	char name[32], host[32];
};

struct transport {
	struct segment *segment; /* our own */
	uint64_t size;
	int fd;			/* of it */
	uint32_t number;
	struct loop_peer peers[SEGMENT_PEERS]; /* ourselves too */
	/*
	 * Where our regions are in this process, by index in the segment's
	 * table: read it after the key was found right. NULL: memory of a
	 * device, which fxi_loop_move() reaches.
	 */
	void *locals[SEGMENT_MRS];
	pthread_mutex_t lock;	/* tables, heap, connections; posts take it
				 * on slow paths only
				 */
	struct loop_state *state; /* the rest: state.h */
	char name[32], fabric[32];
};

/*
 * The last targets of a queue, which are mostly the next ones, too. What is
 * remembered of a region holds as long as its key is in its place, and of a
 * ring as long as its queue has that number and key. Both are checked every
 * time, after active has been made odd and if the peer is up and its segment is
 * the same. Before that the addresses are only prefetched.
 */
struct loop_last_region {
	uint64_t rkey;
	char *base;
	uint64_t last_word;	/* offset of; there is one, and it may be
				 * written to
				 */
	uint64_t number;	/* of the peer, + 1; 0: nothing is known */
	const struct loop_peer *peer;
	const struct segment *segment;
	const uint64_t *entry;	/* where the key is */
};

/* A local region; the handle is valid as long as the key is in its place. */
struct loop_last_local {
	const struct fabrex_mr *mr;
	const uint64_t *entry;	/* its place */
	uint64_t key;
	char *base;
	uint64_t length;
	uint64_t last_word;	/* offset of; there is one */
};

struct loop_last_ring {
	uint64_t target;	/* key of the queue */
	struct segment_cell *cell; /* that the next message would be in */
	uint64_t number;	/* of the peer, + 1; 0: nothing is known */
	const struct loop_peer *peer;
	const struct segment *segment;
	struct segment_queue *queue;
	struct segment_cell *cells;
	char *payload;
	uint32_t entries, cell_size;
	uint32_t sent;		/* messages since the last one received */
};

/* An entry that was executed, until it is polled. */
struct loop_record {
	uint64_t user_data;
	uint16_t peer;
	uint8_t opcode;
	uint8_t state;		/* FABREX_WC_*, and these: */
	uint32_t length;
};

#define LOOP_RECORD_STATUS	0x3fu
#define LOOP_RECORD_CRC		0x40u	/* the entry's imm is the CRC */
#define LOOP_RECORD_SILENT	0x80u	/* there is nothing to report */

/*
 * A queue as its thread uses it. Created and destroyed by queue.c; post.c,
 * poll.c and what they call use it without a lock. active (of shared) is odd
 * also while messages are sent: the target's queue ends only after it has been
 * seen even.
 *
 * Indices are free-running. sq_done <= sq_tail <= sq_next <= sq_done + limit:
 * entries from sq_tail on are prepared, those below executed, and those below
 * sq_done reported, or QUIET and successful.
 */
struct loop_queue {
	struct fabrex_queue queue;

	struct fabrex_sqe *sq;	/* entries; private: no device reads them */
	struct loop_record *records; /* as many */
	uint32_t sq_mask;
	uint32_t limit;
	uint32_t sq_next, sq_tail, sq_done;
	bool received_first;	/* what the next poll begins with */
	bool failed;		/* since the last fenced entry */
	uint8_t turn;		/* base/path.h: of large copies */
	bool armed;		/* shared->armed was set and may still be */
	struct transport *transport;
	struct segment_queue *shared; /* its entry in our segment */
	struct segment_cell *cells;
	uint8_t *payload;
	uint32_t rq_entries, rq_mask;
	uint32_t cell_size;
	int efd;		/* of @queue, or -1 once it ends */
	uint32_t rq_next;	/* cell that the next message comes in */
	uint32_t rq_head;	/* cells given back */
	const char *broken;	/* what a sender did wrong, or NULL */
	struct loop_last_region region;
	struct loop_last_local local;
	struct loop_last_ring ring;
	uint64_t lock_word;	/* ours, in rings of others: send.c */
	struct fabrex_stats stats; /* host_bytes: of messages that came */
	void *bounce;		/* buffers for remote.c, made when needed */
};

static inline struct loop_queue *loop_queue_of(struct fabrex_queue *queue)
{
	return container_of(queue, struct loop_queue, queue);
}

/* post.c, poll.c: queue_ops */
int fxi_loop_prep(struct fabrex_queue *queue, const struct fabrex_op *op);
int fxi_loop_submit(struct fabrex_queue *queue);
int fxi_loop_post(struct fabrex_queue *queue, const struct fabrex_op *ops,
		  unsigned int n);
int fxi_loop_post_write(struct fabrex_queue *queue, const struct fabrex_mr *mr,
			uint64_t offset, const struct fabrex_remote *remote,
			uint64_t roffset, uint64_t length, uint8_t flags,
			uint64_t user_data);
int fxi_loop_post_read(struct fabrex_queue *queue, const struct fabrex_mr *mr,
		       uint64_t offset, const struct fabrex_remote *remote,
		       uint64_t roffset, uint64_t length, uint8_t flags,
		       uint64_t user_data);
int fxi_loop_post_send(struct fabrex_queue *queue, uint32_t peer,
		       uint64_t dest_key, const struct fabrex_mr *mr,
		       uint64_t offset, uint64_t length, uint32_t imm,
		       uint64_t user_data);
int fxi_loop_poll(struct fabrex_queue *queue, struct fabrex_wc *wc, int n);
void fxi_loop_recv_done(struct fabrex_queue *queue, unsigned int n);
bool fxi_loop_pending(struct fabrex_queue *queue);
/* A full barrier. */
void fxi_loop_arm(struct fabrex_queue *queue);

/*
 * poll.c, called by post.c: free records that are silent (true: there were
 * some); a record was added to a queue that is armed.
 */
bool fxi_loop_retire(struct loop_queue *q);
void fxi_loop_completed(struct loop_queue *q);

/*
 * engine.c, called by post.c: FABREX_WC_*; *length bytes moved, *crc if asked
 * for.
 */
uint8_t fxi_loop_execute(struct loop_queue *q, const struct fabrex_sqe *sqe,
			 uint32_t *length, uint32_t *crc);
/*
 * fast.c, called by post.c. True: executed, and OK. False: nothing was done;
 * fxi_loop_execute() does it or knows why not.
 */
bool fxi_loop_plain(struct loop_queue *q, const struct fabrex_op *op);

/*
 * send.c, called by engine.c and fast.c while active is odd. A ring that was
 * opened (0, otherwise FABREX_WC_*) is locked and has a free cell, until it is
 * filled or closed.
 */
struct loop_ring {
	struct segment_queue *queue;
	struct segment_cell *cell;
	void *payload;		/* of the cell */
	uint32_t tail;		/* the cell's number */
};
struct loop_datagram {
	uint8_t opcode;		/* FABREX_OP_RECV or _RECV_IMM */
	const void *data;	/* RECV */
	uint64_t length;
	uint32_t imm;
	uint32_t crc;
};
/* target: key of the queue; length: of a datagram, 0 for an immediate. */
uint8_t fxi_loop_ring_open(struct loop_queue *q, uint32_t number,
			   uint64_t target, uint64_t length,
			   struct loop_ring *ring);
void fxi_loop_ring_fill(struct loop_queue *q, const struct loop_ring *ring,
			const struct loop_datagram *datagram);
void fxi_loop_ring_close(const struct loop_ring *ring);

/*
 * The key of a queue: its number and random part, adjacent as in the queue's
 * table entry.
 */
static inline uint64_t loop_target(uint32_t number, uint32_t random)
{
	const uint32_t both[2] = { number, random };
	uint64_t target;

	__builtin_memcpy(&target, both, sizeof(target));
	return target;
}

/*
 * send.c, by the service thread as soon as a connection has ended: the peer of
 * that generation has gone, and none of its threads posts any more. Takes back
 * what it held in our receive rings. Lock held.
 */
void fxi_loop_peer_died(struct transport *transport, uint32_t number,
			uint32_t generation);

/*
 * remote.c: copy between a local region and one of a peer where either is not
 * plain memory of this process or of a mapped segment: regions of the kinds
 * PROCESS, FD and DEVICE of peers (also of this process as its own peer), and
 * all with @local NULL. Called by engine.c after all checks, while active is
 * odd; the peer's fields are passed as they were read. FABREX_WC_*. Chooses
 * among cma, bounce, mapped file and device.
 */
struct loop_move {
	uint32_t number;	/* of the peer */
	const struct loop_peer *peer;
	const struct segment_mr *mr; /* a copy, checked */
	void *local;		/* in this process; NULL: memory of a device */
	uint32_t lindex;	/* of the local region, if local is NULL */
	uint64_t loffset;
	uint64_t offset;	/* into the region of the peer */
	uint64_t length;
	bool read;		/* remote to local */
	uint8_t opcode;		/* FABREX_OP_*: atomics are moves of 8 bytes */
	uint64_t operand, compare;
};
uint8_t fxi_loop_move(struct loop_queue *q, const struct loop_move *move);
/*
 * region.c: a region of this port from its private records, whatever peers have
 * written into the table. False: none has that key.
 */
bool fxi_loop_region_entry(const struct transport *transport, uint64_t key,
			   struct segment_mr *mr);

/*
 * socket.c: have the service thread of a peer (or of this process) signal the
 * eventfd of its queue. Called while active is odd. Never waits.
 */
void fxi_loop_wake(struct transport *transport, uint32_t peer,
		   uint32_t queue);

#endif
