/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the loopback transport share beside loopback.h. Functions
 * return 0 or a negative errno with the error message set, unless their comment
 * states something else.
 */
#ifndef LIB_LOOPBACK_STATE_H
#define LIB_LOOPBACK_STATE_H

#include <poll.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <time.h>
#include "base/cancel.h"
#include "loopback.h"

/* The largest possible page: what is shared is mapped by pages. */
#if defined(__x86_64__) || defined(__i386__)
#define LOOP_PAGE	4096u
#else
#define LOOP_PAGE	65536u
#endif
#define LOOP_HUGE	(2u << 20)
#define LOOP_WINDOWS	4096u
#define LOOP_HALVES	512u
#define LOOP_EVENTS	1024u

/* ---- settings.c: environment, read once for each port ------------------ */

struct loop_settings {
	uint64_t size;		/* FABREX_LOOPBACK_SIZE: of the segment */
	uint32_t join_ms;	/* FABREX_LOOPBACK_JOIN_MS: for all answers */
	uint32_t quiesce_ms;	/* FABREX_LOOPBACK_QUIESCE_MS */
	bool cma;		/* FABREX_LOOPBACK_CMA */
	bool huge;		/* FABREX_LOOPBACK_HUGE */
};

int fxi_loop_settings(struct loop_settings *settings);

/* ---- socket.c: sockets and messages -------------------------------------- */

enum loop_message_type {
	LOOP_HELLO = 1,		/* both ways; passes the segment's descriptor */
	LOOP_READY,		/* the joiner has mapped us */
	LOOP_UP,		/* and we have marked it up */
	LOOP_REFUSE,		/* value[0]: errno */
	LOOP_WAKE,		/* value[0]: number of a queue */
	LOOP_REVOKE,		/* value[0]: key whose windows must end */
	LOOP_REVOKED,		/* value[0]: that key */
	LOOP_MOVE,		/* struct loop_request */
	LOOP_FILE,		/* value[0]: key whose file is wanted */
	LOOP_FILE_IS,		/* the key, errno, offset, length; passed */
};

struct loop_message {
	uint32_t type;
	uint32_t number;	/* HELLO: of the sender's port */
	uint32_t generation;
	uint32_t version;
	uint64_t size;		/* HELLO: of the segment */
	uint64_t value[8];	/* HELLO: address to read by cma */
	char name[32], host[32];
};

/* LOOP_MOVE, as values. */
enum loop_request {
	REQUEST_KEY,
	REQUEST_OFFSET,		/* into the region */
	REQUEST_LENGTH,
	REQUEST_PIECE,		/* where, in the asking port's segment */
	REQUEST_SERIAL,
	REQUEST_OPCODE,		/* FABREX_OP_* */
	REQUEST_OPERAND,
	REQUEST_COMPARE,
};

/* Can other users be distinguished from this one at all? */
int fxi_loop_check_user(const struct transport *t);
/* Descriptor of a listening socket at a free address. */
int fxi_loop_listen(struct transport *t, uint32_t number, int *fd);
/* One that reserves a name; see loopback.md. */
int fxi_loop_hold_name(struct transport *t, int *fd);
/*
 * Without a message: -ENOENT, no process of this user listens there; -EAGAIN,
 * too many wait there already.
 */
int fxi_loop_connect(struct transport *t, uint32_t number, int *fd);
/* True: another user listens there. */
bool fxi_loop_is_foreign(struct transport *t, uint32_t number, uint32_t *uid);
/* -EAGAIN: none waits; others: errno without a message. */
int fxi_loop_accept(int listener, int *fd);
/* -errno without a message. pass: descriptor or -1. Never waits. */
int fxi_loop_socket_send(int sock, const struct loop_message *message,
			 int pass);
/* 1, 0: ended, -errno; *passed: descriptor or -1. Never waits. */
int fxi_loop_socket_receive(int sock, struct loop_message *message,
			    int *passed);
pid_t fxi_loop_pid_of(int sock);

/* ---- outbox.c: messages that wait for room ------------------------------ */

struct loop_outbox {
	struct loop_letter *first, *last;
	uint32_t count;
	bool full;		/* poll for room; otherwise: retry by time */
	uint64_t wakes[SEGMENT_QUEUES / 64]; /* queues to be signalled */
	bool wake;		/* there are some */
};

static inline bool loop_outbox_empty(const struct loop_outbox *box)
{
	return !box->first && !box->wake;
}

/*
 * Lock held: REVOKE, REVOKED, FILE or FILE_IS with that key, now or when the
 * connection has room; in order. Never waits.
 */
void fxi_loop_tell(struct transport *t, uint32_t number,
		   enum loop_message_type type, uint64_t key);
/*
 * Lock held: WAKE for a queue, number as in the peer's table, once the
 * connection, which is full, has room. Takes no memory.
 */
void fxi_loop_tell_wake(struct transport *t, uint32_t number, uint32_t queue);
/* Lock held. By the service thread: there may be room. */
void fxi_loop_outbox_flush(struct transport *t, uint32_t number);
/* Lock held: the peer is gone. */
void fxi_loop_outbox_clear(struct transport *t, uint32_t number);

/* ---- heap.c: ranges of the own segment --------------------------------- */

struct loop_extent {
	struct loop_extent *next;
	uint64_t start, length;
};

/* Segment made and mapped; tables are empty. */
int fxi_loop_heap_create(struct transport *t);
void fxi_loop_heap_destroy(struct transport *t, bool unmap);
/* Takes the lock itself. Zeroed, whole pages, memory behind it. */
int fxi_loop_heap_alloc(struct transport *t, uint64_t length,
			uint64_t *offset);
void fxi_loop_heap_free(struct transport *t, uint64_t offset,
			uint64_t length);
/* Memory behind a part of the tables; lock held. */
int fxi_loop_heap_back(struct transport *t, const void *start, size_t length);
/* Maps another's segment at a huge page boundary; NULL: errno. */
void *fxi_loop_map(int fd, uint64_t size);

/* ---- quiesce.c: processes of peers -------------------------------------- */

/* It has ended. With an unknown number (0) it may live. */
bool fxi_loop_is_dead(pid_t pid);

/* ---- quiesce.c: threads of this process --------------------------------- */

/*
 * Threads of this process that may still access what was just taken away. Lock
 * held. Over when none of them can any more.
 */
struct loop_grace {
	uint32_t *actives;	/* of our queues, as they were; NULL: as now */
	uint32_t n;
};

void fxi_loop_grace_begin(struct transport *t, struct loop_grace *grace);
/* True once; grace is then as new. */
bool fxi_loop_grace_over(struct transport *t, struct loop_grace *grace);

/* ---- remote.c, bounce.c, assist.c, device.c, file.c -------------------- */

#define LOOP_PIECE	(256u << 10)	/* bytes in one piece, at most */

/* Asks the owner. FABREX_WC_*. */
uint8_t fxi_loop_bounce(struct loop_queue *q, const struct loop_move *move);
void fxi_loop_bounce_free(struct loop_queue *q);
/* When no thread bounces any more: free what queues have left. */
void fxi_loop_bounce_end(struct transport *t);
/* By the service thread: a peer asks us. Lock held. False: malformed. */
bool fxi_loop_assist(struct transport *t, uint32_t number,
		     const struct loop_message *m);

/* Report FABREX_WC_* to the one that asked. */
void fxi_loop_piece_done(struct segment_piece *piece, uint8_t status);

/* ---- copier.c: pieces of what takes its time --------------------------- */

/* A piece of a region of ours that a peer wants to have copied. */
struct loop_copy {
	struct loop_copy *next;
	uint32_t number;	/* who asks */
	uint32_t index;		/* of the region */
	uint32_t serial;	/* of the request */
	bool read;
	uint64_t offset, length;
	struct segment_piece *piece;
};

struct loop_copier {
	bool running, stopping;
	pthread_t thread;
	pthread_cond_t wake;	/* with the port's lock */
	struct loop_copy *first, **last;
	uint32_t count;
	const struct loop_copy *now; /* in progress, without the lock */
};

/* For regions that have no address. Takes the lock. */
int fxi_loop_copier_start(struct transport *t);
void fxi_loop_copier_stop(struct transport *t);
/* Free the requests; in the child of a fork, where there is no thread. */
void fxi_loop_copier_free(struct transport *t);
/* The others: lock held. False: there is no room for it. */
bool fxi_loop_copier_add(struct transport *t, const struct loop_copy *what);
/* The region ends: waiting requests for it are refused ... */
void fxi_loop_copier_cancel(struct transport *t, uint32_t index);
/* ... and the current one is waited for. False: it did not end in time. */
bool fxi_loop_copier_await(struct transport *t, uint32_t index,
			   const struct timespec *until);
/* The peer is gone; its segment stays until the current copy is over. */
void fxi_loop_copier_forget(struct transport *t, uint32_t number);
bool fxi_loop_copier_serves(const struct transport *t, uint32_t number);

/*
 * device.c: between a buffer and a region of this port that has no address
 * (locals is NULL). FABREX_WC_OK or _RFAULT.
 */
uint8_t fxi_loop_device_copy(struct transport *t, uint32_t index,
			     uint64_t offset, void *buffer, uint64_t length,
			     bool read);

/* The file of a region of kind FD, of a peer or of our own. */
struct loop_file {
	struct loop_file *next;
	uint32_t number;
	uint64_t key;
	bool asked;		/* the answer is still to come */
	bool sync;		/* a dma-buf: CPU accesses are announced */
	int error;		/* errno that the owner answered */
	int fd;
	uint64_t offset, length; /* of the region in the file */
	char *base;		/* of the region; NULL: by pread(), pwrite() */
	void *mapping;
	size_t mapped;
	struct loop_grace grace; /* dropped */
};

/* Found, or asked for. Errno without a message. Valid while active is odd. */
int fxi_loop_file_get(struct transport *t, uint32_t number, uint64_t key,
		      struct loop_file **file);
uint8_t fxi_loop_file_copy(const struct loop_file *file, uint64_t offset,
			   void *buffer, uint64_t length, bool read);
/* Lock held. */
struct loop_file *fxi_loop_file_find(struct transport *t, uint32_t number,
				     uint64_t key);
void fxi_loop_file_answer(struct transport *t, uint32_t number,
			  const struct loop_message *m, int *passed);
/* Fill in the answer to a peer; returns the descriptor to pass, or -1. */
int fxi_loop_file_is(struct transport *t, uint32_t number, uint64_t key,
		     struct loop_message *m);
/* Key 0: all of the peer. They end when no thread of ours uses them. */
void fxi_loop_files_drop(struct transport *t, uint32_t number, uint64_t key);
/* True: some could not end yet. */
bool fxi_loop_files_reap(struct transport *t);
/* All that is left when the port ends, of peers and our own. */
void fxi_loop_files_free(struct transport *t, bool unmap);
/* Map it if that is safe; offset, length, fd are set. */
int fxi_loop_file_map(struct loop_file *file, bool writable);
/* Unmap, close and free it. */
void fxi_loop_file_end(struct loop_file *file, bool unmap);
void fxi_loop_file_sync(const struct loop_file *file, bool start, bool read);

/* ---- events.c ---------------------------------------------------------- */

struct loop_events {
	int fd;
	uint32_t first, count;
	bool lost;
	struct transport_event ring[LOOP_EVENTS];
};

int fxi_loop_events_create(struct transport *t);
void fxi_loop_events_destroy(struct transport *t);
/* Lock held. */
void fxi_loop_event(struct transport *t, uint32_t type, uint32_t peer,
		    uint64_t id);
void fxi_loop_events_clear(struct transport *t);
int fxi_loop_event_fd(struct transport *t);
int fxi_loop_event_read(struct transport *t, struct transport_event *event);

/* ---- join.c: peers that come and go ------------------------------------ */

enum loop_slot_state {
	SLOT_EMPTY,
	SLOT_KNOWN,		/* mapped; up or about to be */
	SLOT_RETIRING,		/* gone, but threads of ours may access it */
};

struct loop_slot {
	enum loop_slot_state state;
	bool seen;		/* there ever was one */
	struct loop_grace grace; /* RETIRING */
};

/* A half-open connection: the other side is unknown, or has not answered. */
struct loop_half {
	int fd;
	bool outgoing;
	bool mapped;		/* HELLO was answered; READY or UP is missing */
	bool waiting;		/* for the end of its number's last owner */
	uint32_t number;	/* outgoing or mapped */
	uint64_t deadline;
};

/* Connect to all ports; before the service thread runs. */
int fxi_loop_join_start(struct transport *t);
/* Wait until all have answered, or time is up. */
int fxi_loop_join_wait(struct transport *t);
/* By the service thread: READY or UP. False: unexpected. Lock held. */
bool fxi_loop_greeted(struct transport *t, uint32_t number, uint32_t type);
/* By the service thread: input from one that is not mapped. */
void fxi_loop_half_input(struct transport *t, uint32_t index);
void fxi_loop_half_add(struct transport *t, int fd, bool outgoing,
		       uint32_t number);
void fxi_loop_half_drop(struct transport *t, uint32_t index);
/* Lock held. */
void fxi_loop_peer_down(struct transport *t, uint32_t number);
/* Lock held. True: some cannot be unmapped yet. */
bool fxi_loop_reap(struct transport *t);
void fxi_loop_peers_unmap(struct transport *t, bool unmap);

/* ---- service.c --------------------------------------------------------- */

/* A thread of the port, with all signals blocked. Errno. */
int fxi_loop_thread(pthread_t *thread, void *(*run)(void *arg),
		    struct transport *t, const char *name);
int fxi_loop_service_start(struct transport *t);
void fxi_loop_service_stop(struct transport *t);
/* Have it collect its descriptors again. */
void fxi_loop_service_kick(struct transport *t);

/* ---- room.c ------------------------------------------------------------ */

/* Bytes that the machine and our control groups still allow. */
uint64_t fxi_loop_room(void);
/* What the group and those that contain it, below root, allow. */
uint64_t fxi_loop_group_room(const char *root, const char *group);

/* ---- mapped.c ---------------------------------------------------------- */

/* All of it is mapped, and readable or (write) writable. */
bool fxi_loop_mapped(const void *addr, uint64_t length, bool write);

/* ---- region.c, window.c, queue.c, quiesce.c: operations ---------------- */

/* Ids of objects: type, serial, index. The serial's 48 bits do not run out. */
enum loop_object { LOOP_MR = 1, LOOP_QUEUE, LOOP_WINDOW };

static inline uint64_t loop_id(enum loop_object type, uint64_t serial,
			       uint32_t index)
{
	return (uint64_t)type << 62 | serial << 14 | index;
}

static inline enum loop_object loop_id_type(uint64_t id)
{
	return (enum loop_object)(id >> 62);
}

static inline uint32_t loop_id_index(uint64_t id)
{
	return (uint32_t)id & 0x3fff;
}

/* Set of peers. */
struct loop_set {
	uint64_t bits[SEGMENT_PEERS / 64];
};

static inline bool loop_set_has(const struct loop_set *set, uint32_t n)
{
	return set->bits[n / 64] >> n % 64 & 1;
}

static inline bool loop_set_empty(const struct loop_set *set)
{
	size_t i;

	for (i = 0; i < SEGMENT_PEERS / 64; i++)
		if (set->bits[i])
			return false;
	return true;
}

/* What only the owner knows of a region. */
struct loop_region {
	uint64_t id;		/* 0: free */
	bool allocated;		/* the heap's, to be freed */
	bool ending;		/* a thread ends it now */
	bool watched;
	bool orphan;		/* inside an allocation that has ended */
	bool held;		/* or inside one that a thread is ending */
	uint32_t kind;		/* SEGMENT_MR_* */
	uint32_t watch;
	uint32_t next_free;
	uint32_t memory;	/* DEVICE: enum fabrex_memory_kind */
	void *addr;		/* DEVICE */
	struct loop_file *file;	/* FD */
	struct loop_set revoking; /* who has to give back windows */
	struct loop_set peers;	/* who may access it */
	uint32_t access;
	uint64_t key;		/* as long as the region lives */
	uint64_t born;
	uint64_t place, length;	/* of the heap, if allocated */
};

struct loop_window {
	uint64_t id;		/* 0: free */
	bool revoked;
	uint32_t number;	/* of the peer */
	uint64_t key;
	void *base;		/* whole pages */
	size_t length;
};

int fxi_loop_mr_register(struct transport *t, const struct transport_mr *params,
			 uint64_t *key, uint64_t *id);
int fxi_loop_mr_alloc(struct transport *t, struct transport_mr *params,
		      uint64_t *key, uint64_t *id);
uint64_t fxi_loop_mr_find(struct transport *t, const void *addr,
			  uint64_t length);
int fxi_loop_mr_destroy(struct transport *t, uint64_t id);
int fxi_loop_watch(struct transport *t, uint32_t entries,
		   const uint32_t **counters);

int fxi_loop_window_create(struct transport *t,
			   const struct fabrex_remote *remote, uint64_t offset,
			   uint64_t length, uint32_t access,
			   struct transport_window *window);
int fxi_loop_window_destroy(struct transport *t, uint64_t id);
void fxi_loop_window_unmap(struct transport *t,
			   struct transport_window *window);
/*
 * Lock held: have the owner call back what we have of a region. False: it has
 * ended already.
 */
bool fxi_loop_window_mark(struct transport *t, uint32_t number, uint64_t key);
/* Lock held: pages of zeroes for all windows with a key of a peer. */
void fxi_loop_windows_revoke(struct transport *t, uint32_t number,
			     uint64_t key);
/* Lock held: of a peer that has gone. */
void fxi_loop_windows_orphan(struct transport *t, uint32_t number);

int fxi_loop_queue_create(struct transport *t,
			  const struct fabrex_queue_attr *attr,
			  struct fabrex_queue *queue, uint64_t *id);
int fxi_loop_queue_destroy(struct transport *t, uint64_t id);
void fxi_loop_queue_free(struct transport *t, struct fabrex_queue *queue,
			 bool unmap);
int fxi_loop_resolve(struct transport *t, uint32_t peer, uint64_t service,
		     uint32_t *number, uint64_t *key);
int fxi_loop_counters(struct transport *t, uint64_t id,
		      struct fabrex_stats *stats);
/* Wake the threads that sleep on its descriptor. */
void fxi_loop_queue_signal(const struct loop_queue *q);
/* By the service thread: signal a queue, or all (number 0). */
void fxi_loop_signal(struct transport *t, uint32_t number);

/* A queue that was odd: of a peer, or of ours. */
struct loop_looker {
	uint32_t number, generation;
	uint32_t queue, active;
	bool waited;		/* it may access what was taken away */
};

struct loop_lookers {
	struct loop_looker *list;
	uint32_t n;
	bool unknown;		/* there was no memory for all of them */
};

/*
 * Wait until every thread of the peers in the set (NULL: all) and of this
 * process that may have seen what was true before this call has finished its
 * access. Otherwise -ETIMEDOUT without a message: *who is the first peer that
 * did not within the time set, or that has made no progress since the last wait
 * for it; SEGMENT_PEERS: the system did not allow us to find out. Threads that
 * have made no progress since before the object was created (born) do not
 * count. *left, with both results: queues that may still read the tables, to be
 * freed by the caller. Takes the lock.
 */
int fxi_loop_quiesce(struct transport *t, const struct loop_set *set,
		     uint64_t born, struct loop_lookers *left, uint32_t *who);
/* Lock held: removes those that have finished. True: all have. */
bool fxi_loop_lookers_gone(struct transport *t, struct loop_lookers *all);
void fxi_loop_stuck_end(struct transport *t);
/* True if membarrier() can provide all memory ordering. */
bool fxi_loop_membarrier_register(void);
/* False: the system refused. */
bool fxi_loop_membarrier(struct transport *t);

/* ---- quarantine.c ------------------------------------------------------- */

/* Peers that have windows which were called back. */
struct loop_debt {
	uint64_t key;
	struct loop_set windows;
};

/*
 * What a peer may still access: it did not finish an access in time, or did not
 * give back its windows.
 */
struct loop_quarantine {
	struct loop_quarantine *next;
	struct loop_lookers lookers;
	struct loop_debt *debts;
	uint32_t ndebts;
	uint32_t region, queue;	/* index in the table, + 1; 0: none */
	uint64_t offset, length; /* of the heap */
};
/*
 * Lock held. Keeps a copy, and owns the lists. Without memory for the copy the
 * range and the places are lost, and nothing else.
 */
void fxi_loop_quarantine(struct transport *t,
			 const struct loop_quarantine *quarantine);
/* Before that: windows are still mapped. False: no memory, it never ends. */
bool fxi_loop_quarantine_owes(struct loop_quarantine *q, uint64_t key,
			      const struct loop_set *windows);
/* Lock held: a peer gave back its windows with that key; 0: it is gone. */
void fxi_loop_quarantine_given(struct transport *t, uint32_t number,
			       uint64_t key);
/* Free what cannot be accessed any more. Takes the lock. */
void fxi_loop_quarantine_sweep(struct transport *t);
void fxi_loop_quarantine_end(struct transport *t);
/* Lock held, region.c: the peer has given back windows of a region. */
void fxi_loop_mr_given(struct transport *t, uint32_t number, uint64_t key);
/* Lock held, region.c: the place in the table may be used again. */
void fxi_loop_mr_index_free(struct transport *t, uint32_t index);

/* ---- all of it --------------------------------------------------------- */

struct loop_state {
	struct transport *next;	/* of this process */
	struct loop_settings settings;
	uint32_t uid;
	bool named;		/* port name was chosen by the application */
	bool barrier;		/* membarrier() works */
	char host[32];
	int listener, name_holder;
	int kick;		/* eventfd: fxi_loop_service_kick() */
	bool running, stopping;
	uint64_t untold;	/* wake-ups of the service thread after a
				 * timeout
				 */
	pthread_t thread;
	struct robust_list_head robust; /* segment's living; the kernel reads
					 * these when that thread ends
					 */
	struct robust_list robust_entry;
	pthread_cond_t changed;	/* halves, windows: broadcast */
	uint64_t serial;	/* of ids */
	uint32_t nqueues, nmrs;	/* as published: others may write there */
	struct loop_extent *free;
	struct loop_events events;
	struct loop_slot slots[SEGMENT_PEERS];
	struct loop_outbox outboxes[SEGMENT_PEERS];
	struct loop_half halves[LOOP_HALVES];
	uint32_t nhalves;
	int refused;		/* errno of a peer that refused us */
	uint32_t refused_by;
	struct loop_region regions[SEGMENT_MRS];
	uint32_t free_region;	/* index + 1 */
	uint32_t found;		/* by the last fxi_loop_mr_find() */
	uint32_t *watch;
	uint32_t nwatch;
	struct loop_queue *queues[SEGMENT_QUEUES];
	uint64_t queue_ids[SEGMENT_QUEUES];
	uint64_t queue_born[SEGMENT_QUEUES];
	bool queue_kept[SEGMENT_QUEUES]; /* in quarantine */
	struct fabrex_stats ended; /* of queues that are gone */
	struct loop_window windows[LOOP_WINDOWS];
	struct loop_quarantine *quarantine;
	struct loop_copier copier;
	struct loop_bounce *spare; /* buffers of queues that have ended */
	struct loop_stuck *stuck; /* quiesce.c */
	struct loop_set mute;	/* did not give back windows in time */
	uint64_t born;		/* regions and queues, counted */
	struct loop_file *files; /* of peers */
	struct loop_file *dropped; /* that threads of ours may use */
};

#endif
