/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libfabrex: public API for reading and writing the memory of any peer on a
 * PCIe fabric, through queues that are mapped into the process. Each group of
 * functions has a man page, such as fabrex_open(3); fabrex(7) is the overview.
 *
 * Functions return 0 or a count on success and a negative errno on failure.
 * After a failure, fabrex_strerror_last() returns a message that names the
 * object, the cause and the remedy.
 *
 * Threads: a port, its regions and its windows may be used by several threads
 * at once. A queue must be used by one thread at a time: lock it, or create one
 * for each thread. fabrex_wait(), fabrex_event_read() and fabrex_connect() are
 * cancellation points; so are fabrex_accept() and fabrex_request_next() until a
 * request has arrived. A thread that is cancelled there leaks nothing. No other
 * function is a cancellation point.
 *
 * Structures grow at their end. The library is told the size that the caller
 * was compiled with, either by an argument or by the inline function that calls
 * the exported one. Members that an older caller lacks are taken as 0 and not
 * stored. Members that an older library does not know are set to 0; if the
 * caller has set one, the call fails with -E2BIG. Bindings for other languages
 * call the fabrex_*_sized functions; size is then the size of their structure,
 * and also the stride of their arrays.
 */
#ifndef FABREX_FABREX_H
#define FABREX_FABREX_H

#include <stddef.h>
#include <stdint.h>
#include <linux/fabrex_ring.h>	/* FABREX_OP_*, FABREX_SQE_*, FABREX_WC_* */

#ifdef __cplusplus
extern "C" {
#endif

struct fabrex_port;
struct fabrex_mr;
struct fabrex_queue;
struct fabrex_window;
struct fabrex_listener;

/* Version of this header; fabrex_version() returns the library's, "1.2". */
#define FABREX_VERSION_MAJOR	1
#define FABREX_VERSION_MINOR	2
const char *fabrex_version(void);

/* ---- errors ------------------------------------------------------------ */

/* Error message of the calling thread's last failure; never NULL. Valid until
 * the thread calls libfabrex again.
 */
const char *fabrex_strerror_last(void);
/* Name of a FABREX_WC_* status, for example "bad remote key"; never NULL. */
const char *fabrex_wc_str(int status);

/* ---- port: fabrex_open(3) ---------------------------------------------- */

struct fabrex_port_attr {
	uint32_t peer;		/* peer number of this port */
	uint32_t max_peers;
	uint32_t generation;
	uint32_t link_up;	/* 0 or 1 */
	uint32_t emulated;	/* 0 or 1: the switch is a software model */
	uint32_t max_queues;
	uint32_t max_mrs;
	uint32_t max_sq;
	uint32_t max_cq;
	uint32_t max_rq;
	uint32_t max_cell;	/* bytes */
	uint32_t page_size;	/* bytes */
	uint64_t window_slot_size; /* bytes */
	uint64_t max_transfer;	/* bytes */
	char name[32];
	char host[32];
	char fabric[32];
	char driver[32];
};

struct fabrex_peer {
	uint32_t peer;
	uint32_t up;		/* 0 or 1 */
	uint32_t generation;
	char name[32];		/* of the port, "b.0" */
	char host[32];		/* of the host, "b" */
	uint32_t reserved[4];	/* 0 */
};

/* name: "fabrex0", "/dev/fabrex0", a port name such as "a.0", or NULL for
 * $FABREX_PORT, or, if that is not set, for the first port of this machine.
 * "loopback:NAME": a fabric of processes of this machine. It is joined only if
 * it is named, here or by $FABREX_PORT. -ENOENT: there is no port.
 */
int fabrex_open(const char *name, struct fabrex_port **port);
/* Destroys the port with its queues, regions and windows. The caller must
 * ensure that no other thread uses them. -EBUSY: there are still listeners or
 * communicators, so nothing was changed; close or destroy them first.
 */
int fabrex_close(struct fabrex_port *port);
/* size: sizeof(struct fabrex_port_attr) as the caller was compiled. */
int fabrex_query(struct fabrex_port *port, struct fabrex_port_attr *attr,
		 size_t size);
int fabrex_peer_find_sized(struct fabrex_port *port, const char *name,
			   struct fabrex_peer *peer, size_t size);
/* name: the name of a port or host, or a decimal peer number. */
static inline int fabrex_peer_find(struct fabrex_port *port, const char *name,
				   struct fabrex_peer *peer)
{
	return fabrex_peer_find_sized(port, name, peer, sizeof(*peer));
}

int fabrex_peer_next_sized(struct fabrex_port *port, uint32_t from,
			   struct fabrex_peer *peer, size_t size);
/* The first peer whose number is >= from; -ENOENT if there is none. */
static inline int fabrex_peer_next(struct fabrex_port *port, uint32_t from,
				   struct fabrex_peer *peer)
{
	return fabrex_peer_next_sized(port, from, peer, sizeof(*peer));
}

/* ---- events: fabrex_event(3) ------------------------------------------- */

enum fabrex_event_type {
	FABREX_EV_LINK_UP = 1,
	FABREX_EV_LINK_DOWN,
	FABREX_EV_PEER_UP,
	FABREX_EV_PEER_DOWN,
	FABREX_EV_QUEUE_ERROR,
	FABREX_EV_WINDOW_FAULT,
	FABREX_EV_GONE,
	FABREX_EV_LOST,
	FABREX_EV_MR_REVOKED,
};

struct fabrex_port_event {
	uint32_t type;		/* enum fabrex_event_type */
	uint32_t peer;
	uint32_t generation;
	uint32_t error;
	struct fabrex_queue *queue;	/* QUEUE_ERROR, else NULL */
	struct fabrex_window *window;	/* WINDOW_FAULT, else NULL */
	uint64_t time_ns;	/* CLOCK_MONOTONIC */
	struct fabrex_mr *mr;	/* MR_REVOKED, else NULL */
	unsigned char reserved[16 - sizeof(void *)]; /* 0 */
};

/* A file descriptor that becomes readable when there is an event. */
int fabrex_event_fd(struct fabrex_port *port);
int fabrex_event_read_sized(struct fabrex_port *port,
			    struct fabrex_port_event *ev, int timeout_ms,
			    size_t size);
/* timeout_ms < 0: no timeout. -EAGAIN: timed out; -ENODEV: the port is gone
 * and all events have been read.
 */
static inline int fabrex_event_read(struct fabrex_port *port,
				    struct fabrex_port_event *ev,
				    int timeout_ms)
{
	return fabrex_event_read_sized(port, ev, timeout_ms, sizeof(*ev));
}

/* ---- memory: fabrex_mr_register(3) ------------------------------------- */

#define FABREX_MR_LOCAL_WRITE	(1u << 0)
#define FABREX_MR_REMOTE_READ	(1u << 1)
#define FABREX_MR_REMOTE_WRITE	(1u << 2)
#define FABREX_MR_REMOTE_ATOMIC	(1u << 3)
#define FABREX_MR_ALL		0xfu

/*
 * What a peer needs in order to access a region. It is plain data: send it as
 * it is. A program that receives fewer bytes than its structure has must clear
 * the rest. One that receives more may drop the excess: if the excess matters,
 * flags has a bit that this program's library refuses.
 */
struct fabrex_remote {
	uint64_t rkey;
	uint64_t length;	/* bytes */
	uint32_t peer;		/* peer number of the owner's port */
	uint32_t generation;	/* of the owner's port */
	uint32_t flags;		/* 0; unknown ones are refused */
	uint32_t reserved;	/* 0 */
};

/*
 * addr: host memory, or device memory of a runtime that the process has loaded
 * (HIP, HSA, CUDA); see fabrex_memory_query(3).
 */
int fabrex_mr_register(struct fabrex_port *port, void *addr, size_t length,
		       uint32_t access, struct fabrex_mr **mr);
/* Only the n listed peers may use the key. */
int fabrex_mr_register_for(struct fabrex_port *port, void *addr,
			   size_t length, uint32_t access,
			   const uint32_t *peers, size_t n,
			   struct fabrex_mr **mr);
/* Allocates page-aligned, zeroed memory (of huge pages where possible) and
 * registers it; fabrex_mr_deregister() frees it.
 */
int fabrex_mr_alloc(struct fabrex_port *port, size_t length, uint32_t access,
		    struct fabrex_mr **mr);
/* On return, no queue or peer accesses the region, and its key is invalid. */
int fabrex_mr_deregister(struct fabrex_mr *mr);
void *fabrex_mr_addr(const struct fabrex_mr *mr);
size_t fabrex_mr_length(const struct fabrex_mr *mr);
uint64_t fabrex_mr_key(const struct fabrex_mr *mr);
void fabrex_mr_remote_sized(const struct fabrex_mr *mr,
			    struct fabrex_remote *out, size_t size);
static inline void fabrex_mr_remote(const struct fabrex_mr *mr,
				    struct fabrex_remote *out)
{
	fabrex_mr_remote_sized(mr, out, sizeof(*out));
}

/* ---- device memory: fabrex_memory_query(3) ----------------------------- */

enum fabrex_memory_kind {
	FABREX_MEMORY_AUTO = 0,	/* detect the kind */
	FABREX_MEMORY_HOST,
	FABREX_MEMORY_DMABUF,	/* a dma-buf that the caller supplies */
	FABREX_MEMORY_HIP,	/* AMD: HIP or HSA */
	FABREX_MEMORY_CUDA,
};

struct fabrex_memory {
	uint32_t kind;		/* FABREX_MEMORY_HOST, _HIP or _CUDA */
	int32_t device;		/* number in the runtime, -1: host */
	void *base;		/* of the allocation, NULL if not known */
	uint64_t length;	/* of the allocation, 0 if not known */
	uint64_t id;		/* of the allocation; a later allocation at the
				 * same address has a different id; 0 if not
				 * known */
	char pci[16];		/* "0000:04:00.0", or "" */
	uint64_t reserved[4];	/* 0 */
};

/*
 * Determines what kind of memory addr points to. Queries only runtimes that the
 * process has already loaded. An address that none of them knows is HOST, and
 * so are HIP and CUDA allocations meant for the CPU (pinned, managed). CUDA
 * managed memory can be registered only with kind FABREX_MEMORY_HOST.
 * size: sizeof(struct fabrex_memory) as the caller was compiled.
 */
int fabrex_memory_query(const void *addr, struct fabrex_memory *memory,
			size_t size);
/*
 * Exports device memory as a dma-buf. *offset is the position of addr in it.
 * The caller closes *fd. kind: FABREX_MEMORY_AUTO, or the runtime to use, which
 * is loaded if necessary. -ENOTSUP: addr is host memory, or a library, symbol
 * or kernel option is missing, which fabrex_strerror_last() names.
 */
int fabrex_memory_export(const void *addr, size_t length,
			 enum fabrex_memory_kind kind, int *fd,
			 uint64_t *offset);

struct fabrex_mr_attr {
	void *addr;		/* of the memory; NULL is allowed for DMABUF */
	uint64_t length;
	uint32_t access;	/* FABREX_MR_* */
	uint32_t flags;		/* FABREX_MR_MAY_MOVE */
	uint32_t kind;		/* enum fabrex_memory_kind */
	int32_t fd;		/* DMABUF: may be closed after the call */
	uint64_t offset;	/* DMABUF: into the dma-buf */
	const uint32_t *peers;	/* NULL: every peer */
	uint64_t npeers;
	uint64_t reserved[4];	/* 0 */
};
/*
 * Normally the exporter of device memory is asked to keep it in place. With
 * this flag it may move the memory (to make room, for example); operations fail
 * with LKEY or RKEY until the move is complete. The memory may be revoked with
 * or without the flag. Host memory never moves: the flag is refused with kind
 * HOST, and ignored if AUTO detects host memory.
 */
#define FABREX_MR_MAY_MOVE	(1u << 0)

int fabrex_mr_register_attr(struct fabrex_port *port,
			    const struct fabrex_mr_attr *attr, size_t size,
			    struct fabrex_mr **mr);
/* The detected enum fabrex_memory_kind. */
int fabrex_mr_kind(const struct fabrex_mr *mr);

/* ---- registration cache: fabrex_mr_cache_get(3) ------------------------ */

/*
 * Returns a region that covers addr .. addr + length with at least the rights
 * in access, either from the port's cache or newly registered. The region may
 * be larger; *offset is the position of addr in it. If access includes rights
 * for peers, the region covers exactly that range with exactly those rights, so
 * that its key can be given to peers. fabrex_mr_cache_put() returns the region
 * to the cache; a region from the cache must not be deregistered.
 *
 * Unused regions stay registered until the cache needs room, or until their
 * memory is unmapped, freed, moved or revoked. The cache detects the latter by
 * itself: it never returns such a region again, and deregisters it when the
 * next region is registered or fabrex_mr_cache_limit() is called.
 */
int fabrex_mr_cache_get(struct fabrex_port *port, void *addr, size_t length,
			uint32_t access, struct fabrex_mr **mr,
			uint64_t *offset);
void fabrex_mr_cache_put(struct fabrex_mr *mr);
/* Sets the maximum number of unused regions that the cache keeps, and of bytes
 * of host memory in them. 0, 0 empties it.
 */
int fabrex_mr_cache_limit(struct fabrex_port *port, uint64_t regions,
			  uint64_t bytes);
struct fabrex_mr_cache_stats {
	uint64_t hits, misses, stale, evicted;
	uint64_t regions, bytes;	/* in the cache now */
	uint64_t reserved[2];		/* 0 */
};
int fabrex_mr_cache_stats(struct fabrex_port *port,
			  struct fabrex_mr_cache_stats *stats, size_t size);

/* ---- queues: fabrex_queue_create(3) ------------------------------------ */

struct fabrex_queue_attr {
	uint32_t sq_entries;	/* power of two; 0: 128 */
	uint32_t cq_entries;	/* power of two; 0: the smallest sufficient */
	uint32_t rq_entries;	/* power of two, or 0: no receiving */
	uint32_t cell_size;	/* power of two; 0: 256 if rq_entries */
	uint32_t flags;		/* FABREX_QUEUE_EVENTFD */
	uint32_t reserved;	/* 0 */
	uint64_t service;	/* 0, or a number that peers can resolve */
};
#define FABREX_QUEUE_EVENTFD	(1u << 0) /* fabrex_wait() may sleep */

int fabrex_queue_create(struct fabrex_port *port,
			const struct fabrex_queue_attr *attr, size_t size,
			struct fabrex_queue **queue);
int fabrex_queue_destroy(struct fabrex_queue *queue);
/* The number that peers see in wc.src_queue; unique within this port. */
uint32_t fabrex_queue_number(const struct fabrex_queue *queue);
/* Unguessable; a peer needs it and the peer number to send to the queue. */
uint64_t fabrex_queue_key(const struct fabrex_queue *queue);
/* Finds the queue that offers a service at a peer. */
int fabrex_resolve(struct fabrex_port *port, uint32_t peer, uint64_t service,
		   uint32_t *number, uint64_t *key);

/* ---- posting: fabrex_post(3) ------------------------------------------- */

/*
 * prep fills the next entry of the submission ring; submit passes all prepared
 * entries to the device with at most one doorbell write; post_* do both.
 * -EAGAIN: the rings are full of outstanding entries, poll first; -ENETDOWN:
 * the queue is dead or in error; -EINVAL: the entry is invalid. A refused
 * operation is not queued; an accepted one is reported by fabrex_poll() exactly
 * once (a QUIET one only if it fails). No system call is made, with the
 * exceptions in fabrex_loopback(7).
 *
 * reserved is ignored until future opcodes and flags define it.
 */
struct fabrex_op {
	uint8_t opcode;		/* FABREX_OP_* */
	uint8_t flags;		/* FABREX_SQE_* except INLINE (chosen here) */
	uint16_t peer;
	uint32_t imm;
	uint64_t user_data;
	const struct fabrex_mr *mr; /* local region */
	uint64_t offset;	/* into mr */
	uint64_t length;
	uint64_t rkey;
	uint64_t roffset;
	uint64_t operand;	/* FETCH_ADD addend, CMP_SWAP new value */
	uint64_t compare;	/* CMP_SWAP */
	uint64_t dest_key;	/* SEND, WRITE_IMM: key of the peer's queue */
	const void *inline_data; /* SEND of up to 24 bytes without a region */
	uint64_t reserved[5];	/* 0 */
};

int fabrex_prep_sized(struct fabrex_queue *queue, const struct fabrex_op *op,
		      size_t size);
static inline int fabrex_prep(struct fabrex_queue *queue,
			      const struct fabrex_op *op)
{
	return fabrex_prep_sized(queue, op, sizeof(*op));
}

/* Returns the number of entries submitted. -ENETDOWN: the queue is dead; poll
 * reports the prepared entries too.
 */
int fabrex_submit(struct fabrex_queue *queue);

int fabrex_post_sized(struct fabrex_queue *queue, const struct fabrex_op *ops,
		      unsigned int n, size_t size);
/* Prepares n operations and submits them. Returns the number accepted, or a
 * negative errno if none was.
 */
static inline int fabrex_post(struct fabrex_queue *queue,
			      const struct fabrex_op *ops, unsigned int n)
{
	return fabrex_post_sized(queue, ops, n, sizeof(*ops));
}

/* size: of *remote. */
int fabrex_post_write_sized(struct fabrex_queue *queue,
			    const struct fabrex_mr *mr, uint64_t offset,
			    const struct fabrex_remote *remote,
			    uint64_t roffset, uint64_t length, uint8_t flags,
			    uint64_t user_data, size_t size);
static inline int fabrex_post_write(struct fabrex_queue *queue,
				    const struct fabrex_mr *mr,
				    uint64_t offset,
				    const struct fabrex_remote *remote,
				    uint64_t roffset, uint64_t length,
				    uint8_t flags, uint64_t user_data)
{
	return fabrex_post_write_sized(queue, mr, offset, remote, roffset,
				       length, flags, user_data,
				       sizeof(*remote));
}

int fabrex_post_read_sized(struct fabrex_queue *queue,
			   const struct fabrex_mr *mr, uint64_t offset,
			   const struct fabrex_remote *remote,
			   uint64_t roffset, uint64_t length, uint8_t flags,
			   uint64_t user_data, size_t size);
static inline int fabrex_post_read(struct fabrex_queue *queue,
				   const struct fabrex_mr *mr, uint64_t offset,
				   const struct fabrex_remote *remote,
				   uint64_t roffset, uint64_t length,
				   uint8_t flags, uint64_t user_data)
{
	return fabrex_post_read_sized(queue, mr, offset, remote, roffset,
				      length, flags, user_data,
				      sizeof(*remote));
}

int fabrex_post_send(struct fabrex_queue *queue, uint32_t peer,
		     uint64_t dest_key, const struct fabrex_mr *mr,
		     uint64_t offset, uint64_t length, uint32_t imm,
		     uint64_t user_data);

/* ---- completions: fabrex_poll(3) --------------------------------------- */

struct fabrex_wc {
	uint64_t user_data;
	uint32_t length;
	uint32_t imm;
	uint32_t crc;
	uint32_t src_queue;
	uint16_t peer;
	uint8_t opcode;		/* FABREX_OP_* */
	uint8_t status;		/* FABREX_WC_* */
	uint32_t cell;		/* RECV: for fabrex_recv_done() */
	void *data;		/* RECV: the datagram, in the receive cell */
	uint64_t reserved;	/* 0 */
};

int fabrex_poll_sized(struct fabrex_queue *queue, struct fabrex_wc *wc, int n,
		      size_t size);
/*
 * Takes up to n completions without waiting and without a system call. The
 * queue's own operations complete in the order of posting. Once the queue is
 * dead, every outstanding entry is reported once: ABORTED if it had been
 * submitted (some bytes may have been moved), FLUSHED if not (none have). After
 * that the result is -ENETDOWN.
 */
static inline int fabrex_poll(struct fabrex_queue *queue, struct fabrex_wc *wc,
			      int n)
{
	return fabrex_poll_sized(queue, wc, n, sizeof(*wc));
}

/* Returns the n oldest receive cells to the device; their wc->data is no longer
 * valid. RECV_IMM completions hold a cell too.
 */
void fabrex_recv_done(struct fabrex_queue *queue, unsigned int n);
/* Sleeps until fabrex_poll() has something to report; needs
 * FABREX_QUEUE_EVENTFD. Returns 1 then, 0 on timeout, -EINTR after a signal.
 * timeout_ms < 0: no timeout.
 */
int fabrex_wait(struct fabrex_queue *queue, int timeout_ms);
/* For use with poll(2): arm, poll the queue once more, then sleep on the fd. */
int fabrex_queue_fd(const struct fabrex_queue *queue);
int fabrex_arm(struct fabrex_queue *queue);

/* ---- windows: fabrex_window_map(3) ------------------------------------- */

/* size: of *remote. */
int fabrex_window_map_sized(struct fabrex_port *port,
			    const struct fabrex_remote *remote,
			    uint64_t offset, size_t length, uint32_t access,
			    struct fabrex_window **window, size_t size);
/* Maps a peer's region: loads and stores at fabrex_window_addr() reach the
 * peer's memory. Stores are posted and write-combined; fabrex_window_flush()
 * orders and flushes them.
 */
static inline int fabrex_window_map(struct fabrex_port *port,
				    const struct fabrex_remote *remote,
				    uint64_t offset, size_t length,
				    uint32_t access,
				    struct fabrex_window **window)
{
	return fabrex_window_map_sized(port, remote, offset, length, access,
				       window, sizeof(*remote));
}

int fabrex_window_unmap(struct fabrex_window *window);
volatile void *fabrex_window_addr(const struct fabrex_window *window);
/*
 * Orders and flushes all earlier stores of the calling thread. 0: they have
 * reached the peer. -EOPNOTSUPP: the window cannot be read (no REMOTE_READ), so
 * they have left the CPU, in order, but their arrival cannot be confirmed.
 */
int fabrex_window_flush(struct fabrex_window *window);

/* ---- connections: fabrex_connect(3) ------------------------------------ */

#define FABREX_BLOB_MAX	960

/*
 * A listener offers a service number. A process that connects to it exchanges
 * one message with it, usually a struct fabrex_remote and queue keys, over the
 * fabric; no other network is needed. *theirs_len: the buffer's size on entry,
 * the message's size on return; -EMSGSIZE if the message does not fit.
 * -ETIMEDOUT: timed out; timeout_ms < 0: no timeout. A listener must be used by
 * one thread at a time.
 */
int fabrex_listen(struct fabrex_port *port, uint64_t service,
		  struct fabrex_listener **listener);
int fabrex_accept(struct fabrex_listener *listener, const void *mine,
		  size_t mine_len, void *theirs, size_t *theirs_len,
		  uint32_t *peer, int timeout_ms);
void fabrex_listener_close(struct fabrex_listener *listener);

/*
 * fabrex_accept() in two steps, for a server whose answer depends on the
 * request. A request is plain data; the listener's thread may answer requests
 * later, in any order, or not at all.
 */
struct fabrex_request {
	uint32_t peer;
	uint32_t reserved;	/* 0 */
	uint64_t key;		/* of the requester's queue */
	uint64_t nonce;
};

/* size: of *request. */
int fabrex_request_next_sized(struct fabrex_listener *listener,
			      struct fabrex_request *request, void *theirs,
			      size_t *theirs_len, int timeout_ms, size_t size);
static inline int fabrex_request_next(struct fabrex_listener *listener,
				      struct fabrex_request *request,
				      void *theirs, size_t *theirs_len,
				      int timeout_ms)
{
	return fabrex_request_next_sized(listener, request, theirs, theirs_len,
					 timeout_ms, sizeof(*request));
}

int fabrex_request_answer_sized(struct fabrex_listener *listener,
				const struct fabrex_request *request,
				const void *mine, size_t mine_len,
				int timeout_ms, size_t size);
static inline int fabrex_request_answer(struct fabrex_listener *listener,
					const struct fabrex_request *request,
					const void *mine, size_t mine_len,
					int timeout_ms)
{
	return fabrex_request_answer_sized(listener, request, mine, mine_len,
					   timeout_ms, sizeof(*request));
}

int fabrex_connect(struct fabrex_port *port, uint32_t peer, uint64_t service,
		   const void *mine, size_t mine_len, void *theirs,
		   size_t *theirs_len, int timeout_ms);

/* ---- counters: fabrex_counters(3) -------------------------------------- */

struct fabrex_stats {
	uint64_t tx_bytes, rx_bytes, tx_ops, rx_ops, errors;
	uint64_t p2p_bytes, host_bytes, window_reads, window_writes;
	uint64_t doorbells, link_downs, crc_errors, interrupts;
};
/* queue NULL: the whole port. size: sizeof(struct fabrex_stats) as the caller
 * was compiled.
 */
int fabrex_stats(struct fabrex_port *port, struct fabrex_queue *queue,
		 struct fabrex_stats *stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif
