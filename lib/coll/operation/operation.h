/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Operations: one as an object, what an algorithm is, and what all algorithms
 * need. Stands on failure/, reduce/ and device/; for algorithm/ and the public
 * functions above it.
 *
 *   kind.c         names of kinds
 *   arguments.c    are they right; how many bytes they are about
 *   blocks.c       blocks of different lengths: blocks.h
 *   agreement.c    do all ranks call the same
 *   handle.c       how an operation ends
 *   gpu.c          buffers in the memory of GPUs: gpu.h
 *   peer_buffer.c  buffers of other ranks: peer_buffer.h
 *   peer_copy.c    copies to GPUs of other ranks: peer_copy.h
 *   said.c         what FABREX_DEBUG reports of them
 */
#ifndef LIB_COLL_OPERATION_H
#define LIB_COLL_OPERATION_H

#include "coll/failure/failure.h"
#include "coll/reduce/reduce.h"
#include "coll/stream/stream.h"

/*
 * While an operation is prepared, others may advance its communicator: runtimes
 * make nothing as long as a thread of the application waits in a copy to memory
 * that is not pinned, and that may be behind an earlier operation.
 */
struct door {
	void (*leave)(struct fabrex_comm *comm);
	void (*enter)(struct fabrex_comm *comm);
};

/* One operation, from start to the end. See fxi_coll_init(). */
struct fabrex_coll {
	struct fabrex_comm *comm;
	struct fabrex_collective what;
	struct fabrex_coll *next;	/* in the communicator's queue */
	struct fabrex_coll *group_next;	/* in the group's list */
	struct fabrex_coll **ended;	/* what points to it in comm->ended */
	const struct algorithm *algorithm;
	/* fxi_scheduled: to follow; direct: if all have their buffers on GPUs */
	const struct fabrex_schedule *schedule;
	void *state;			/* the algorithm's */
	uint64_t done;			/* SEND, RECV: bytes so far */
	uint32_t sequence;		/* of the communicator's collectives */
	uint32_t waiting;		/* rank that step() waits for */
	int result;			/* 1: going on */
	bool kept;			/* the caller has a handle */
	bool begun;			/* start() was called */
	char *error_text;		/* of a failure, or NULL */
	struct fabrex_stream *stream;	/* enqueued there, or NULL */
	struct gate *gate;		/* its place there, once it has one */

	/* gpu.c: 0, or FABREX_MEMORY_HIP, FABREX_MEMORY_CUDA */
	uint8_t send_kind, recv_kind;
	bool one_gpu;			/* all of its buffers are on @gpu, */
	bool all_gpus;			/* and at all other ranks likewise */
	struct gpu *gpu;
	const struct door *door;	/* NULL: the communicator is not left */
	struct host_copy *host_copy;	/* of buffers on a GPU */
};

/*
 * How to perform a collective. progress.c calls @start once it is the
 * operation's turn, then @step until it does not return 0, then @end.
 *
 * @make, @free: what it keeps for a communicator; NULL: nothing
 * @usable: it can do @what here; the answer is the same at every rank
 * @scratch: bytes that it will ask of fxi_coll_scratch_gpu(); NULL: none
 * @start:  0 or a negative errno; sets coll->state
 * @step:   as far as it goes without waiting. 1: ended; 0: waits for a message
 *          from rank coll->waiting, or for room there; negative errno
 * @end:    frees coll->state, after success and failure alike
 */
struct algorithm {
	const char *name;
	uint32_t kinds;			/* bits 1 << enum fabrex_coll_kind */
	bool host_only;			/* buffers have to be the host's */
	bool one_memory;		/* all buffers have to be on one GPU, or
					 * all in the host's memory
					 */
	int (*make)(struct fabrex_comm *comm);
	void (*free)(struct fabrex_comm *comm);
	bool (*usable)(const struct fabrex_comm *comm,
		       const struct fabrex_collective *what);
	uint64_t (*scratch)(struct fabrex_coll *coll);
	int (*start)(struct fabrex_coll *coll);
	int (*step)(struct fabrex_coll *coll);
	void (*end)(struct fabrex_coll *coll);
};

#define GOING	1	/* result of an operation that has not ended */

/* ---- kind.c ------------------------------------------------------------ */

/* For error messages, of any number. */
const char *fxi_kind_name(uint32_t kind);

/* ---- arguments.c ------------------------------------------------------- */

/* 0, or -EINVAL and the error message. */
int fxi_coll_arguments(const struct fabrex_comm *comm,
		       const struct fabrex_collective *what);

/* Are there blocks of different lengths? */
static inline bool fxi_kind_varies(uint32_t kind)
{
	return kind >= FABREX_ALL_GATHERV;
}

static inline bool fxi_kind_reduces(uint32_t kind)
{
	return kind == FABREX_ALL_REDUCE || kind == FABREX_REDUCE_SCATTER ||
	       kind == FABREX_REDUCE || kind == FABREX_REDUCE_SCATTERV;
}

/* Of @count elements. */
static inline uint64_t fxi_count_bytes(const struct fabrex_collective *what)
{
	return what->count * fxi_type_size(what->type);
}

/*
 * Of send or recv, whichever is larger, at whichever rank; at this one if
 * blocks have different lengths.
 */
uint64_t fxi_coll_bytes(const struct fabrex_comm *comm,
			const struct fabrex_collective *what);
/* Sizes of send and recv of @what at this rank, to the end of the last block. */
uint64_t fxi_send_bytes(const struct fabrex_comm *comm,
			const struct fabrex_collective *what);
uint64_t fxi_recv_bytes(const struct fabrex_comm *comm,
			const struct fabrex_collective *what);

/* ---- agreement.c ------------------------------------------------------- */

/*
 * Tag and word for an algorithm's messages on LINK_COLL: they say what is
 * performed, so that ranks notice when they do not call the same. @phase: 0 to
 * 15, the algorithm's.
 */
uint32_t fxi_coll_tag(const struct fabrex_coll *coll, uint32_t phase);
uint64_t fxi_coll_word(const struct fabrex_coll *coll);
/* The same about a block of @count elements. */
uint64_t fxi_coll_block_word(const struct fabrex_coll *coll, uint64_t count);
/*
 * Is it the message of @rank that the operation expects? 0, or -EPROTO, which
 * step() returns: the communicator cannot be used any more.
 */
int fxi_coll_check(struct fabrex_coll *coll, uint32_t rank, uint32_t phase,
		   const struct link_message *message);

/* As fxi_coll_expect(), the next piece of a block of @count elements. */
int fxi_coll_expect_block(struct fabrex_coll *coll, uint32_t rank,
			  uint64_t count, uint32_t length);

int fxi_coll_wrong_length(const struct fabrex_coll *coll, uint32_t rank,
			  uint32_t length, uint32_t expected)
	__attribute__((cold));

/*
 * Is the operation's message of @rank here, with @length bytes? 1; 0: not yet,
 * and coll->waiting is set; or a negative errno.
 */
static inline int fxi_coll_expect(struct fabrex_coll *coll, uint32_t rank,
				  uint32_t phase, uint32_t length)
{
	const struct link_message *message;
	int ret;

	message = fxi_link_peek(coll->comm, rank, LINK_COLL);
	if (!message) {
		coll->waiting = rank;
		return 0;
	}
	ret = fxi_coll_check(coll, rank, phase, message);
	if (unlikely(!ret && message->length != length))
		ret = fxi_coll_wrong_length(coll, rank, message->length,
					    length);
	return ret ? ret : 1;
}

/*
 * Has it to be found out once more where the buffers are? In a stream of the
 * host, functions may have copied to a GPU since it was enqueued.
 */
static inline bool fxi_coll_may_have_changed(const struct fabrex_coll *coll)
{
	return unlikely(coll->stream && coll->gpu && !coll->stream->gpu);
}

/*
 * Is it its turn in the stream that it was enqueued in, if it was? Others of
 * the communicator wait until then, too.
 */
static inline bool fxi_coll_is_due(const struct fabrex_coll *coll)
{
	return likely(!coll->gate) || fxi_gate_is_open(coll->gate);
}

/* ---- said.c ------------------------------------------------------------ */

/*
 * A line of $FABREX_DEBUG about an operation: "all-reduce of 512 bytes (...):
 * @answer", and why; not again for the same answer and a similar size. To be
 * called if fxi_debugs(@word).
 */
void fxi_coll_say(const struct fabrex_coll *coll, uint32_t word,
		  const char *answer, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));
void fxi_said_free(struct fabrex_comm *comm);

/* ---- handle.c ---------------------------------------------------------- */

/*
 * All but @what. Field by field: compilers store pairs of them at once, where
 * for memset() they would choose an instruction that takes longer to start.
 */
static inline void fxi_coll_init(struct fabrex_coll *coll,
				 struct fabrex_comm *comm)
{
	coll->comm = comm;
	coll->next = NULL;
	coll->group_next = NULL;
	coll->ended = NULL;
	coll->algorithm = NULL;
	coll->schedule = NULL;
	coll->state = NULL;
	coll->done = 0;
	coll->sequence = 0;
	coll->waiting = 0;
	coll->result = 0;
	coll->kept = false;
	coll->begun = false;
	coll->error_text = NULL;
	coll->stream = NULL;
	coll->gate = NULL;
	coll->send_kind = 0;
	coll->recv_kind = 0;
	coll->one_gpu = false;
	coll->all_gpus = false;
	coll->gpu = NULL;
	coll->door = NULL;
	coll->host_copy = NULL;
}

/* With its own copy of the arrays. NULL: no memory. */
struct fabrex_coll *fxi_coll_new(struct fabrex_comm *comm,
				 const struct fabrex_collective *what);
void fxi_coll_free(struct fabrex_coll *coll);
/* It begins when the group ends. */
void fxi_group_add(struct fabrex_coll *coll);
/* It is freed with its communicator; a stream that waits for it goes on. */
void fxi_coll_abandon(struct fabrex_coll *coll);
/* It has ended. If it was enqueued without a handle, it is gone. */
void fxi_coll_ended(struct fabrex_coll *coll, int result);
/* The result of one that has ended: sets the error message if it failed. */
int fxi_coll_result(struct fabrex_coll *coll);

#endif
