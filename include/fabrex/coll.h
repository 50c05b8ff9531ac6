/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collectives over fabrex queues and windows: communicators, operations,
 * schedules. fabrex_coll(7) is the overview; each group has a man page.
 *
 * Conventions of fabrex.h hold: 0 or a count, or a negative errno with a
 * sentence in fabrex_strerror_last(). A communicator belongs to one thread at
 * a time; different communicators may be used by different threads. All ranks
 * of a communicator call the same collectives in the same order with matching
 * arguments. Buffers are host memory, or device memory of a run time that the
 * process has loaded; those from fabrex_mr_alloc() are the fastest.
 *
 * A rank that dies, or cannot be reached any more, makes every operation of
 * the communicator at every other rank that waits end with -ECONNRESET within
 * death_ms (half as much again if it has to be found out whose link is down); a
 * rank that lives but does not take part for silence_ms makes them end with
 * -ETIMEDOUT. The sentence names the rank, fabrex_comm_failed() lists it. The
 * communicator is then only good for fabrex_comm_shrink() and
 * fabrex_comm_destroy(). The buffers of operations that failed, send and
 * receive, belong to the communicator until either of these has returned, as
 * ranks that have not noticed yet may still read and write them; receive
 * buffers hold anything. An operation that ends with 0 has the right result,
 * whoever has failed meanwhile.
 */
#ifndef FABREX_COLL_H
#define FABREX_COLL_H

#include <fabrex/fabrex.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fabrex_comm;
struct fabrex_coll;
struct fabrex_schedule;

enum fabrex_datatype {
	FABREX_INT8 = 1,
	FABREX_UINT8,
	FABREX_INT16,
	FABREX_UINT16,
	FABREX_INT32,
	FABREX_UINT32,
	FABREX_INT64,
	FABREX_UINT64,
	FABREX_FLOAT16,		/* IEEE 754 binary16 */
	FABREX_BFLOAT16,
	FABREX_FLOAT32,
	FABREX_FLOAT64,
};

/*
 * Integers wrap around. FLOAT16 and BFLOAT16 are computed in FLOAT32 and
 * rounded to nearest even once for each step of the algorithm. AVG is SUM
 * divided by the number of ranks at the end; integers truncate toward zero.
 * MIN and MAX of a NaN and a number are a NaN; every NaN that was computed is
 * the quiet one without sign and payload. For a fixed number of ranks,
 * algorithm, count and type the result is the same in every run and at every
 * rank, bit for bit.
 */
enum fabrex_redop {
	FABREX_SUM = 1,
	FABREX_PROD,
	FABREX_MIN,
	FABREX_MAX,
	FABREX_AVG,
};

/* Bytes of one element; 0: no such type. */
size_t fabrex_datatype_size(enum fabrex_datatype type);

/* ---- communicators: fabrex_comm_create(3) ------------------------------ */

#define FABREX_RANK_AUTO	UINT32_MAX	/* as the launcher says */

struct fabrex_comm_attr {
	uint32_t rank;
	uint32_t size;		/* number of ranks */
	uint32_t flags;		/* 0 */
	int32_t timeout_ms;	/* for all to meet; 0: 30 s; negative: none */
	uint32_t death_ms;	/* a death is noticed within it; 0: 1000 */
	uint32_t silence_ms;	/* a rank may stay away so long; 0: for ever */
	const char *bootstrap;	/* NULL: $FABREX_BOOTSTRAP, else the launcher */
	const char *algorithms;	/* NULL: $FABREX_ALGORITHMS, else the table */
	uint64_t reserved[4];	/* 0 */
	const char *secret;	/* NULL: $FABREX_SECRET, else none; for tcp: */
};

/*
 * Every rank calls it; returns when all have met, or -ETIMEDOUT.
 *
 * bootstrap: "fabric:SERVICE" over the fabric itself, rank 0 offers the
 * service; "tcp:HOST:PORT" where rank 0 listens; "launcher" for rank, size and
 * address from mpirun, srun, or FABREX_RANK, FABREX_SIZE and FABREX_BOOTSTRAP.
 *
 * secret: 32 hexadecimal digits, drawn at random, the same for all ranks. With
 * it who does not know it cannot take part in a meeting by TCP, nor pretend to
 * be rank 0 (-EACCES). It is not sent, and neither is what was said encrypted.
 * All ranks then must give exactly the same address string.
 */
int fabrex_comm_create(struct fabrex_port *port,
		       const struct fabrex_comm_attr *attr, size_t size,
		       struct fabrex_comm **comm);
/* Local. Operations under way are given up. NULL is allowed. */
void fabrex_comm_destroy(struct fabrex_comm *comm);
uint32_t fabrex_comm_rank(const struct fabrex_comm *comm);
uint32_t fabrex_comm_size(const struct fabrex_comm *comm);
/* Collective: ranks of the same color, ordered by key and then by rank. A
 * negative color takes part and gets NULL.
 */
int fabrex_comm_split(struct fabrex_comm *comm, int color, int key,
		      struct fabrex_comm **out);
/*
 * Ranks known to have failed, ascending; their number, of which at most n are
 * stored.
 */
int fabrex_comm_failed(struct fabrex_comm *comm, uint32_t *ranks, size_t n);
/*
 * Collective among the ranks that live: they agree who they are, and get a
 * communicator without the others, ordered as before. Works whether the
 * caller has seen the failure yet or not, and if more ranks fail meanwhile.
 */
int fabrex_comm_shrink(struct fabrex_comm *comm, int timeout_ms,
		       struct fabrex_comm **out);
/* Makes every other rank's operations end as if this rank had died. */
int fabrex_comm_abort(struct fabrex_comm *comm);

/* ---- operations: fabrex_all_reduce(3) ---------------------------------- */

enum fabrex_coll_kind {
	FABREX_ALL_REDUCE = 1,	/* send: count; recv: count */
	FABREX_ALL_GATHER,	/* send: count; recv: count for each rank */
	FABREX_REDUCE_SCATTER,	/* send: count for each rank; recv: count */
	FABREX_BROADCAST,	/* root's send: count; recv: count */
	FABREX_REDUCE,		/* send: count; root's recv: count */
	FABREX_ALL_TO_ALL,	/* both: count for each rank */
	FABREX_BARRIER,
	FABREX_SEND,		/* send: count, to root */
	FABREX_RECV,		/* recv: count, from root */
};

/*
 * In place: send == recv; ALL_GATHER: send == recv + rank * count elements;
 * REDUCE_SCATTER: recv == send + rank * count elements. Any other overlap is
 * refused with -EINVAL, as is ALL_TO_ALL in place.
 */
struct fabrex_collective {
	uint32_t kind;		/* enum fabrex_coll_kind */
	uint32_t type;		/* enum fabrex_datatype; 0 for BARRIER */
	uint32_t op;		/* enum fabrex_redop where something is reduced */
	uint32_t root;		/* BROADCAST, REDUCE; SEND, RECV: the peer */
	const void *send;
	void *recv;
	uint64_t count;		/* elements, as said at the kind; 0 is allowed */
	uint64_t reserved[3];	/* 0 */
};

/*
 * Begins it and returns; buffers belong to it until it has ended. Operations
 * of a communicator are executed in the order in which they were started, but
 * for SEND and RECV, which are ordered among those with the same peer and
 * direction only. They advance while the thread is in this header's functions.
 */
int fabrex_coll_start(struct fabrex_comm *comm,
		      const struct fabrex_collective *what, size_t size,
		      struct fabrex_coll **coll);
/* 1: it has ended; 0: not yet; negative: it failed. Unless 0, *coll is gone. */
int fabrex_coll_test(struct fabrex_coll *coll);
/* 0 when it has ended and is gone; -ETIMEDOUT from timeout_ms (negative: none)
 * leaves it as it is, any other error means that it failed and is gone. */
int fabrex_coll_wait(struct fabrex_coll *coll, int timeout_ms);

/*
 * What is called between the two begins at the end, all of it together: so
 * SENDs and RECVs cannot wait for each other. fabrex_group_end() waits for all
 * of it; calls inside return 0 or what is wrong with their arguments.
 */
int fabrex_group_begin(struct fabrex_comm *comm);
int fabrex_group_end(struct fabrex_comm *comm);

int fabrex_all_reduce(struct fabrex_comm *comm, const void *send, void *recv,
		      uint64_t count, enum fabrex_datatype type,
		      enum fabrex_redop op);
int fabrex_all_gather(struct fabrex_comm *comm, const void *send, void *recv,
		      uint64_t count, enum fabrex_datatype type);
int fabrex_reduce_scatter(struct fabrex_comm *comm, const void *send,
			  void *recv, uint64_t count,
			  enum fabrex_datatype type, enum fabrex_redop op);
int fabrex_broadcast(struct fabrex_comm *comm, const void *send, void *recv,
		     uint64_t count, enum fabrex_datatype type, uint32_t root);
int fabrex_reduce(struct fabrex_comm *comm, const void *send, void *recv,
		  uint64_t count, enum fabrex_datatype type,
		  enum fabrex_redop op, uint32_t root);
int fabrex_all_to_all(struct fabrex_comm *comm, const void *send, void *recv,
		      uint64_t count, enum fabrex_datatype type);
int fabrex_barrier(struct fabrex_comm *comm);
int fabrex_send(struct fabrex_comm *comm, const void *buffer, uint64_t count,
		enum fabrex_datatype type, uint32_t rank);
int fabrex_recv(struct fabrex_comm *comm, void *buffer, uint64_t count,
		enum fabrex_datatype type, uint32_t rank);

/*
 * Name of the algorithm that an operation of bytes (count elements of send or
 * recv, whichever is larger) would use; -ENOSPC if it does not fit.
 */
int fabrex_comm_algorithm(struct fabrex_comm *comm, enum fabrex_coll_kind kind,
			  uint64_t bytes, char *name, size_t n);

/* ---- schedules: fabrex_schedule_parse(3), docs/schedule.md ------------- */

/*
 * An explicit plan of who sends which part of the buffer to whom. It is proved
 * right when it is read: -EINVAL and a sentence with name, line and reason
 * otherwise (a chunk that is lost, reduced twice, or waits in a circle).
 */
int fabrex_schedule_parse(const char *text, size_t length, const char *name,
			  struct fabrex_schedule **schedule);
int fabrex_schedule_read(const char *path, struct fabrex_schedule **schedule);
/*
 * One of the library's own: "ring", "tree", "halving", "direct", and so on
 * with "*N" channels, for example "ring*2".
 */
int fabrex_schedule_make(enum fabrex_coll_kind kind, const char *algorithm,
			 uint32_t ranks, uint32_t root,
			 struct fabrex_schedule **schedule);
/* As text that fabrex_schedule_parse() takes. Bytes needed, as snprintf(). */
int fabrex_schedule_format(const struct fabrex_schedule *schedule, char *text,
			   size_t n);
void fabrex_schedule_free(struct fabrex_schedule *schedule);
enum fabrex_coll_kind
fabrex_schedule_kind(const struct fabrex_schedule *schedule);
uint32_t fabrex_schedule_ranks(const struct fabrex_schedule *schedule);
/*
 * From now on this communicator's collectives of that kind (and root) follow
 * it; NULL: by the table again. Every rank calls it. The schedule can be freed
 * afterwards.
 */
int fabrex_comm_schedule(struct fabrex_comm *comm, enum fabrex_coll_kind kind,
			 const struct fabrex_schedule *schedule);

/*
 * What this rank has sent to another since the communicator was made, in
 * collectives that followed a schedule: to be compared with the plan.
 */
struct fabrex_traffic {
	uint64_t bytes;		/* of payload */
	uint64_t messages;
	uint64_t reserved[2];	/* 0 */
};
int fabrex_comm_traffic(struct fabrex_comm *comm, uint32_t rank,
			struct fabrex_traffic *traffic, size_t size);

#ifdef __cplusplus
}
#endif

#endif
