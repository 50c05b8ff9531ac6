/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collectives over fabrex queues and windows: communicators, operations,
 * schedules. fabrex_coll(7) is the overview; each group has a man page.
 *
 * The conventions of fabrex.h hold: functions return 0 or a count, or a
 * negative errno with a message in fabrex_strerror_last(). A communicator must
 * be used by one thread at a time, but for fabrex_comm_abort(); different
 * threads may use different communicators. All ranks of a communicator call the
 * same collectives in the same order with matching arguments. Buffers are host
 * memory, or device memory of a runtime that the process has loaded; those from
 * fabrex_mr_alloc() are the fastest.
 *
 * If a rank dies or becomes unreachable, the pending operations of all other
 * ranks fail with -ECONNRESET within death_ms (1.5 times that if the fabric has
 * to be queried to find out whose link is down). If a rank is alive but does
 * not take part for silence_ms, they fail with -ETIMEDOUT. The error message
 * names the rank, and fabrex_comm_failed() lists it. After that, only
 * fabrex_comm_shrink() and fabrex_comm_destroy() can be called on the
 * communicator. The send and receive buffers of failed operations belong to the
 * communicator until one of these has returned, because ranks that have not yet
 * noticed the failure may still access them; the contents of receive buffers
 * are undefined. If an operation returns 0, its result is correct, even if a
 * rank has failed in the meantime.
 */
#ifndef FABREX_COLL_H
#define FABREX_COLL_H

#include <fabrex/fabrex.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fabrex_comm;
struct fabrex_coll;
struct fabrex_stream;
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
 * rounded to nearest even once in each step of the algorithm. AVG is SUM
 * divided by the number of ranks at the end; integers truncate toward zero. MIN
 * and MAX of a NaN and a number are a NaN; every computed NaN is quiet, with
 * sign and payload 0. For the same number of ranks, algorithm, count, type and
 * kind of memory, the result is bit-identical in every run and at every rank.
 */
enum fabrex_redop {
	FABREX_SUM = 1,
	FABREX_PROD,
	FABREX_MIN,
	FABREX_MAX,
	FABREX_AVG,
};

/* Size of an element in bytes; 0: no such type. */
size_t fabrex_datatype_size(enum fabrex_datatype type);

/* ---- communicators: fabrex_comm_create(3) ------------------------------ */

#define FABREX_RANK_AUTO	UINT32_MAX	/* from the launcher */

/*
 * A thread of the library, one for the process, makes progress with operations
 * that were started or enqueued. With this flag it does not: they make progress
 * only while threads of the application are inside functions of this header.
 */
#define FABREX_COMM_NO_THREAD	1u

/*
 * Where the ranks of one communicator meet, and the secret that they share, as
 * bytes that any channel can carry: fabrex_unique_id_create(3). Will not grow.
 */
struct fabrex_unique_id {
	uint8_t bytes[128];
};

struct fabrex_comm_attr {
	uint32_t rank;
	uint32_t size;		/* number of ranks */
	uint32_t flags;		/* FABREX_COMM_* */
	int32_t timeout_ms;	/* of the set-up; 0: 30 s; negative: none */
	uint32_t death_ms;	/* time to detect a dead rank; 0: 1000 */
	uint32_t silence_ms;	/* maximum time without response; 0: none */
	const char *bootstrap;	/* NULL: $FABREX_BOOTSTRAP, else the launcher */
	const char *algorithms;	/* NULL: $FABREX_ALGORITHMS, else built-in */
	uint64_t reserved[4];	/* 0 */
	const char *secret;	/* for tcp. NULL: $FABREX_SECRET, else none */
	/* Instead of bootstrap: one of these two, and no secret. */
	const struct fabrex_unique_id *unique_id;
	int (*exchange)(void *context, const void *mine, void *all,
			size_t bytes);
	void *context;		/* for exchange */
	/* Besides port; NULL and 0: none. The array is only read by the call. */
	struct fabrex_port *const *ports;
	uint32_t nports;	/* 7 at most */
	uint32_t reserved_ports; /* 0 */
};

/*
 * Collective. Returns when all ranks are connected, or -ETIMEDOUT.
 *
 * bootstrap: how the ranks find each other. "fabric:SERVICE": over the fabric
 * itself, rank 0 offers the service; "tcp:HOST:PORT": rank 0 listens there;
 * "launcher": rank, size and address come from mpirun, srun, or FABREX_RANK,
 * FABREX_SIZE and FABREX_BOOTSTRAP.
 *
 * secret: 32 random hexadecimal digits, the same at all ranks. A process that
 * does not know them can neither join over TCP nor pretend to be rank 0
 * (-EACCES). The secret is never sent; the ranks' messages are not encrypted.
 * With a secret, all ranks must give exactly the same address string.
 *
 * unique_id: from fabrex_unique_id_create() in the process of one rank, the same
 * bytes at all ranks.
 *
 * exchange: a function of the application by which all ranks hand each other
 * bytes of theirs: mine of each rank is to be stored in all, in the order of
 * ranks, before it returns 0. Called twice, by the thread that called, with the
 * same number of bytes at all ranks; it waits as long as it likes. A negative
 * errno ends the call with that error.
 *
 * ports: where no port of a host reaches all the others, as where a bridge joins
 * each two hosts, a rank gives further ports of its own, in any order. Each two
 * ranks use the ports that see each other; ranks of one host any that both have.
 * A link that is not up yet is waited for. -ENETUNREACH: two ranks have no ports
 * that see each other, and the message names both. None of the ports can be
 * closed before the communicator, and those that come from it, are destroyed.
 */
int fabrex_comm_create(struct fabrex_port *port,
		       const struct fabrex_comm_attr *attr, size_t size,
		       struct fabrex_comm **comm);
/*
 * Makes an id for one communicator: from now on this process listens there, and
 * one of its ranks (or rank 0 in a child) has to pass the id to
 * fabrex_comm_create(). host: an address, name or interface of this host that
 * the other ranks reach; NULL: $FABREX_INTERFACE, else the first interface, or
 * with loopback 127.0.0.1. A process that does not know the id cannot take part.
 * Thread-safe.
 */
int fabrex_unique_id_create(struct fabrex_port *port, const char *host,
			    struct fabrex_unique_id *id);
/* Stops listening, if the id was not used. id may be NULL. */
void fabrex_unique_id_destroy(const struct fabrex_unique_id *id);
/* Not collective. Abandons pending operations. comm may be NULL. */
void fabrex_comm_destroy(struct fabrex_comm *comm);
uint32_t fabrex_comm_rank(const struct fabrex_comm *comm);
uint32_t fabrex_comm_size(const struct fabrex_comm *comm);
/* Collective. Creates a communicator of the ranks with the same color, ordered
 * by key and then by rank. A rank with a negative color takes part in the call
 * and gets NULL.
 */
int fabrex_comm_split(struct fabrex_comm *comm, int color, int key,
		      struct fabrex_comm **out);
/*
 * Returns the number of ranks that are known to have failed, and stores the
 * first n of them in ascending order.
 */
int fabrex_comm_failed(struct fabrex_comm *comm, uint32_t *ranks, size_t n);
/*
 * Collective among the surviving ranks: they agree on which ranks have failed,
 * and get a communicator of the others, in the same order. The caller need not
 * have noticed the failure, and more ranks may fail during the call.
 */
int fabrex_comm_shrink(struct fabrex_comm *comm, int timeout_ms,
		       struct fabrex_comm **out);
/*
 * Ends what is under way on the communicator at this rank, in whatever call and
 * thread, and makes the other ranks' operations fail as if this rank had died.
 * From then on calls here return -ECANCELED, and only fabrex_comm_destroy()
 * is left. May be called by any thread at any time between the return of
 * fabrex_comm_create() (or split, shrink) and the call of
 * fabrex_comm_destroy(), also while other threads are inside calls of the
 * communicator, and from a signal handler: it takes no lock, allocates nothing,
 * makes no system calls but getpid() and write(), and does not wait. Once is
 * enough; more often has no effect. -EINVAL if comm is NULL, without an error
 * message.
 */
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
	FABREX_ALL_GATHERV,	/* send: count; recv: a block of each rank */
	FABREX_REDUCE_SCATTERV,	/* send: a block for each rank; recv: own */
	FABREX_ALL_TO_ALLV,	/* both: a block for, or of, each rank */
};

/*
 * In place: send == recv; ALL_GATHER: send == recv + rank * count elements;
 * REDUCE_SCATTER: recv == send + rank * count elements. Any other overlap is
 * refused with -EINVAL, as is ALL_TO_ALL in place. The kinds with blocks
 * accordingly: fabrex_all_gatherv(3).
 */
struct fabrex_collective {
	uint32_t kind;		/* enum fabrex_coll_kind */
	uint32_t type;		/* enum fabrex_datatype; 0 for BARRIER */
	uint32_t op;		/* enum fabrex_redop if the kind reduces */
	uint32_t root;		/* BROADCAST, REDUCE; SEND, RECV: the peer */
	const void *send;
	void *recv;
	uint64_t count;		/* elements, see enum above; 0 is allowed */
	uint64_t reserved[3];	/* 0 */
	/* Of the kinds with blocks; by rank, in elements. Otherwise NULL. */
	const uint64_t *send_counts;	/* ALL_TO_ALLV */
	const uint64_t *send_displs;	/* ALL_TO_ALLV; NULL: no gaps */
	const uint64_t *recv_counts;	/* all three */
	const uint64_t *recv_displs;	/* but for REDUCE_SCATTERV; NULL: the
					 * same
					 */
};

/*
 * Starts an operation and returns; its buffers must not be touched until it has
 * completed. The arrays of counts and displacements are copied. Operations of a
 * communicator are executed in the order in which they were started, except
 * that a SEND or RECV is ordered only with those of the same peer and
 * direction. A thread of the library makes progress with them unless the
 * communicator was created with FABREX_COMM_NO_THREAD.
 */
int fabrex_coll_start(struct fabrex_comm *comm,
		      const struct fabrex_collective *what, size_t size,
		      struct fabrex_coll **coll);
/* 1: completed; 0: not yet; negative: failed. Unless 0, coll is freed. */
int fabrex_coll_test(struct fabrex_coll *coll);
/* 0: completed, coll is freed. -ETIMEDOUT because of timeout_ms (negative: no
 * timeout): still pending. Any other error: failed, coll is freed. */
int fabrex_coll_wait(struct fabrex_coll *coll, int timeout_ms);

/*
 * Operations that are called between these two are started together by
 * fabrex_group_end(), so that SENDs and RECVs cannot deadlock.
 * fabrex_group_end() waits for all of them; the calls themselves return 0, or
 * an error if their arguments are invalid.
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

/* ---- blocks of different lengths: fabrex_all_gatherv(3) ----------------- */

/*
 * As MPI_Allgatherv(), MPI_Reduce_scatter() and MPI_Alltoallv(): the block of
 * or for a rank has counts[rank] elements, from element displs[rank] of the
 * buffer on. displs may be NULL: each block then begins where the one before it
 * ends. Counts may be 0. Blocks of recv that overlap are refused with -EINVAL.
 * Ranks that disagree about the length of a block get -EPROTO, and the
 * communicator has failed. Arrays are only read until the function returns, in
 * groups too.
 *
 * all_gatherv: count is counts[] of this rank, in the array of every rank.
 * reduce_scatterv: the blocks of send have no gaps; counts are the same at all
 * ranks. all_to_allv: send_counts[r] here is recv_counts[this rank] at rank r.
 *
 * In place: all_gatherv: send is this rank's block of recv. reduce_scatterv:
 * recv is this rank's block of send. all_to_allv: send == recv, with the same
 * counts and displacements for both.
 */
int fabrex_all_gatherv(struct fabrex_comm *comm, const void *send,
		       uint64_t count, void *recv, const uint64_t *counts,
		       const uint64_t *displs, enum fabrex_datatype type);
int fabrex_reduce_scatterv(struct fabrex_comm *comm, const void *send,
			   void *recv, const uint64_t *counts,
			   enum fabrex_datatype type, enum fabrex_redop op);
int fabrex_all_to_allv(struct fabrex_comm *comm, const void *send,
		       const uint64_t *send_counts,
		       const uint64_t *send_displs, void *recv,
		       const uint64_t *recv_counts,
		       const uint64_t *recv_displs, enum fabrex_datatype type);

/* ---- streams: fabrex_stream_create(3), fabrex_all_reduce_enqueue(3) ---- */

/*
 * native is a hipStream_t of the current device (kind FABREX_MEMORY_HIP) or a
 * CUstream or cudaStream_t of the current context (FABREX_MEMORY_CUDA), and NULL
 * means the default stream. With FABREX_MEMORY_HOST and NULL, the library makes
 * a stream of the host: a thread that performs what is put into it.
 */
struct fabrex_stream_attr {
	uint32_t kind;		/* enum fabrex_memory_kind */
	uint32_t flags;		/* 0 */
	void *native;
	uint64_t reserved[4];	/* 0 */
};

/*
 * A stream that operations can be enqueued in. Several threads may enqueue in
 * one stream; what they put into a GPU's stream by its runtime must not come
 * between, so they have to take turns. The first stream of a GPU compiles its
 * reductions for all types. -ENOTSUP: the runtime is not loaded, or lacks a
 * function, which the error message names.
 */
int fabrex_stream_create(const struct fabrex_stream_attr *attr, size_t size,
			 struct fabrex_stream **stream);
/*
 * Returns at once; what was enqueued is performed nevertheless. The native
 * stream is the application's, and must not be destroyed before what was
 * enqueued in it has ended. NULL is allowed.
 */
void fabrex_stream_destroy(struct fabrex_stream *stream);
/*
 * Only for streams of the host: the stream's thread calls the function when
 * what was put into the stream before has ended, and goes on when it returns.
 * The function may call the library, but must not wait for this stream.
 */
int fabrex_stream_call(struct fabrex_stream *stream,
		       void (*function)(void *arg), void *arg);
/*
 * Returns when all operations that were enqueued have ended, and all functions
 * of a stream of the host have returned; what else a GPU's stream contains is
 * not waited for. 0, or what fabrex_stream_error() would return; -ETIMEDOUT
 * because of timeout_ms (negative: no timeout).
 */
int fabrex_stream_wait(struct fabrex_stream *stream, int timeout_ms);
/*
 * 0, or the error of the first operation that failed in the stream since the
 * last call of this function, with its message. The stream goes on after a
 * failure; receive buffers are undefined then.
 */
int fabrex_stream_error(struct fabrex_stream *stream);

/*
 * Enqueues an operation and returns without waiting for it. It begins when what
 * is in the stream before it has ended, and what is put into the stream
 * afterwards begins when it has ended, successfully or not; until then its
 * buffers must not be touched by others. Operations of a communicator are
 * performed in the order of the calls, whatever streams they are in, with the
 * exception that fabrex_coll_start() names. Those that are enqueued in a group
 * have one place in each stream, and are performed together.
 *
 * coll may be NULL; otherwise it has to be passed to fabrex_coll_test() or
 * fabrex_coll_wait() as one that was started.
 *
 * -EOPNOTSUPP: the stream is being captured into a graph. -EDEADLK: a SEND to
 * or RECV from this rank itself outside of a group. -EINVAL: among others, a
 * stream of a GPU and a communicator with FABREX_COMM_NO_THREAD.
 */
int fabrex_coll_enqueue(struct fabrex_comm *comm,
			const struct fabrex_collective *what, size_t size,
			struct fabrex_stream *stream, struct fabrex_coll **coll);
int fabrex_all_reduce_enqueue(struct fabrex_comm *comm, const void *send,
			      void *recv, uint64_t count,
			      enum fabrex_datatype type, enum fabrex_redop op,
			      struct fabrex_stream *stream);
int fabrex_all_gather_enqueue(struct fabrex_comm *comm, const void *send,
			      void *recv, uint64_t count,
			      enum fabrex_datatype type,
			      struct fabrex_stream *stream);
int fabrex_reduce_scatter_enqueue(struct fabrex_comm *comm, const void *send,
				  void *recv, uint64_t count,
				  enum fabrex_datatype type,
				  enum fabrex_redop op,
				  struct fabrex_stream *stream);
int fabrex_broadcast_enqueue(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type, uint32_t root,
			     struct fabrex_stream *stream);
int fabrex_reduce_enqueue(struct fabrex_comm *comm, const void *send,
			  void *recv, uint64_t count,
			  enum fabrex_datatype type, enum fabrex_redop op,
			  uint32_t root, struct fabrex_stream *stream);
int fabrex_all_to_all_enqueue(struct fabrex_comm *comm, const void *send,
			      void *recv, uint64_t count,
			      enum fabrex_datatype type,
			      struct fabrex_stream *stream);
int fabrex_barrier_enqueue(struct fabrex_comm *comm,
			   struct fabrex_stream *stream);
int fabrex_send_enqueue(struct fabrex_comm *comm, const void *buffer,
			uint64_t count, enum fabrex_datatype type,
			uint32_t rank, struct fabrex_stream *stream);
int fabrex_recv_enqueue(struct fabrex_comm *comm, void *buffer, uint64_t count,
			enum fabrex_datatype type, uint32_t rank,
			struct fabrex_stream *stream);

/*
 * Stores the name of the algorithm that an operation would use. bytes: size of
 * send or recv, whichever is larger. -ENOSPC: name is too small.
 */
int fabrex_comm_algorithm(struct fabrex_comm *comm, enum fabrex_coll_kind kind,
			  uint64_t bytes, char *name, size_t n);

/* ---- schedules: fabrex_schedule_parse(3), docs/schedule.md ------------- */

/*
 * A schedule states explicitly which rank sends which part of the buffer to
 * which other rank. It is proved correct when it is read. If it is not correct
 * (a chunk is missing or reduced twice, ranks would deadlock), -EINVAL; the
 * error message has name, line and reason.
 */
int fabrex_schedule_parse(const char *text, size_t length, const char *name,
			  struct fabrex_schedule **schedule);
int fabrex_schedule_read(const char *path, struct fabrex_schedule **schedule);
/*
 * Makes a built-in schedule: "ring", "tree", "halving", "direct", and so on,
 * with "*N" for N channels, for example "ring*2".
 */
int fabrex_schedule_make(enum fabrex_coll_kind kind, const char *algorithm,
			 uint32_t ranks, uint32_t root,
			 struct fabrex_schedule **schedule);
/* Writes text for fabrex_schedule_parse(); returns what snprintf() would. */
int fabrex_schedule_format(const struct fabrex_schedule *schedule, char *text,
			   size_t n);
void fabrex_schedule_free(struct fabrex_schedule *schedule);
enum fabrex_coll_kind
fabrex_schedule_kind(const struct fabrex_schedule *schedule);
uint32_t fabrex_schedule_ranks(const struct fabrex_schedule *schedule);
/*
 * Makes this communicator's collectives of that kind (and root) follow the
 * schedule from now on; NULL: choose the algorithm automatically again. All
 * ranks call it. The schedule can be freed afterwards.
 */
int fabrex_comm_schedule(struct fabrex_comm *comm, enum fabrex_coll_kind kind,
			 const struct fabrex_schedule *schedule);

/*
 * What this rank has sent to another rank since the communicator was created,
 * in collectives that followed a schedule; compare it with the plan.
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
