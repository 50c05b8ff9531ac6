/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fabrex provider of libfabric: its objects and what its files share. Which
 * file may use which: strata. The protocol between endpoints is in wire.h.
 *
 * Objects and locks: a domain has one port. Its lock protects everything that
 * belongs to it: endpoints, peers, requests, completion queues, counters,
 * address vectors, regions. Each call of the program takes it once, at its
 * outermost level (domain_lock()), unless the program has promised
 * FI_THREAD_DOMAIN; nothing sleeps with it but for registering memory and
 * opening queues. Waiting (fi_cq_sread) is outside of it.
 *
 * Calls into here come from the program through the tables of functions of each
 * fid, and from progress (progress.c), which whoever reads a completion queue or
 * a counter, or finds no room to send, makes happen. There is no thread.
 */
#ifndef FABREX_PROVIDER_H
#define FABREX_PROVIDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <fabrex/fabrex.h>
#include <fabrex/p2p.h>

#include "list.h"

/* ---- provider.c, settings.c -------------------------------------------- */

extern struct fi_provider provider;

/* FI_FABREX_*, read once: fi_fabrex(7) has what they mean. */
struct settings {
	size_t cells;		/* receive cells of an endpoint, power of two */
	size_t cell_size;	/* bytes, power of two */
	size_t unexpected;	/* bytes kept for a peer before it is held back */
	size_t tx_size, rx_size;	/* operations outstanding, if not asked */
	bool rendezvous_write;	/* large messages are stored, not fetched */
	size_t resolve_ms;	/* until an absent peer is given up */
	size_t copy;		/* over loopback: longest message so sent */
};
extern struct settings settings;
#define TX_SIZE_MAX	(1 << 14)
#define RX_SIZE_MAX	(1 << 20)
int settings_read(void);

/* One line of libfabric's log, at FI_LOG_WARN or FI_LOG_INFO. */
#define WARN(subsystem, ...)	FI_WARN(&provider, subsystem, __VA_ARGS__)
#define INFO(subsystem, ...)	FI_INFO(&provider, subsystem, __VA_ARGS__)

/* ---- object.c ---------------------------------------------------------- */

/*
 * Memory of what programs have fids of, zeroed. After object_free() it can still
 * be read, as an object of no class, until a later one takes its place: whatever
 * is called for something that was closed finds out by object_is(), and returns
 * -FI_EBADF. The fid is the first member.
 */
void *object_new(size_t size, size_t fclass, void *context,
		 struct fi_ops *ops);
void object_free(void *object);
void object_cleanup(void);
/* Also not one of another provider, which programs may pass to fi_getinfo(). */
bool object_mine(const struct fid *fid, size_t fclass);
static inline bool object_is(const struct fid *fid, size_t fclass)
{
	return fid && fid->fclass == fclass;
}

/* For tables of functions: -FI_ENOSYS, or -FI_EBADF. */
int no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int no_control(struct fid *fid, int command, void *arg);
int no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		void *context);

/* ---- error.c ----------------------------------------------------------- */

/* What libfabric calls a negative errno of libfabrex: they are the same numbers,
 * but for ENETDOWN, ENODEV and the like, which programs do not expect.
 */
int fi_of_errno(int error);
/* And a FABREX_WC_* status, as a positive FI_E*. */
int fi_of_status(int status);

/*
 * What is behind an error, the prov_errno of a completion: a FABREX_WC_* (> 0),
 * a negative errno of libfabrex, or one of these.
 */
enum cause {
	CAUSE_GENERATION = 256,	/* the address is of an earlier endpoint */
	CAUSE_ABSENT,		/* nobody offers the service at that port */
	CAUSE_DEAD,		/* the peer's process or port has ended */
	CAUSE_CLOSED,		/* the peer has closed its endpoint */
	CAUSE_REFUSED,		/* the peer does not talk to us */
	CAUSE_CANCELED,		/* fi_cancel(), or our endpoint was closed */
	CAUSE_TRUNCATED,	/* the buffer was too small */
	CAUSE_REGION,		/* our region was closed */
	CAUSE_PROTOCOL,		/* the peer has sent nonsense */
	CAUSE_SOURCE,		/* the sender is not in the address vector */
	CAUSE_END,
};
/* One sentence; never NULL. What fi_cq_strerror() returns. */
const char *cause_text(int cause);
/* Also into buf, if there is one; for fi_cq_strerror(). */
const char *cause_copy(int cause, char *buf, size_t len);
/* As a positive FI_E*. */
int fi_of_cause(int cause);

/* ---- address.c --------------------------------------------------------- */

/*
 * FI_ADDR_STR, "fi_fabrex://PORT:SERVICE", "fi_fabrex://PORT:SERVICE:NONCE" or
 * "fi_fabrex://PORT/ID". The nonce is of one endpoint: an address that has one is
 * refused by the successor of the endpoint it was of. People leave it away. An
 * endpoint whose service nobody chose has an ID, which is both.
 *
 * At most ADDRESS_MAX bytes with the final 0, which is what aws-ofi-nccl has room
 * for. There are programs that have room for ADDRESS_USUAL only (fi_rdm_stress).
 */
#define ADDRESS_MAX	56
#define ADDRESS_USUAL	32
#define ADDRESS_PREFIX	"fi_fabrex://"

struct address {
	char port[32];		/* name of the port, such as a.0 */
	uint64_t service;
	uint32_t nonce;		/* 0: any */
};

/* -FI_EINVAL, with a line in the log, if it is none. */
int address_parse(const char *text, struct address *address);
/*
 * Fills all of text, with zeroes at the end, and returns ADDRESS_USUAL, or
 * ADDRESS_MAX if that is too little: programs put the addresses of peers side by
 * side, and take their own one's length for that of all.
 */
size_t address_format(const struct address *address, char text[ADDRESS_MAX]);
/*
 * Node and service of fi_getinfo(): a port, a host ("localhost" is this one) or
 * a whole address; a number. A host's name means that port of it which offers
 * the service.
 */
int address_resolve(struct fabrex_port *port, const char *node,
		    const char *service, struct address *address);
/*
 * Who that is: the peer's number, and number and key of the queue with the
 * service. port may also be a peer number, the name of a host (then whichever
 * of its ports offers the service), "localhost", or "" for the port itself.
 * -ENOENT, -EHOSTUNREACH: not there (now).
 */
int address_locate(struct fabrex_port *port, const struct address *address,
		   uint32_t *peer, uint32_t *number, uint64_t *key);
/* What getname says of a port: its name, or its number if the name is so long
 * that an address with it and an ID would not fit into ADDRESS_USUAL.
 */
void address_of_port(const struct fabrex_port_attr *attr,
		     struct address *address);
/* The service and nonce of an endpoint from a random number. */
void address_of_chance(uint64_t chance, struct address *address);
bool address_same(const struct address *a, const struct address *b);
/* "localhost", or what it is called where there is an IP network. */
bool address_is_here(const char *name);

/* ---- ports.c, nic.c, offer.c, hints.c, info.c -------------------------- */

/* What is offered for a port; fi_getinfo() narrows it by the program's hints. */
#define TX_CAPS	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_HMEM | \
		 FI_READ | FI_WRITE | FI_SEND)
#define RX_CAPS	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_HMEM | \
		 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RECV | FI_MULTI_RECV | \
		 FI_DIRECTED_RECV | FI_SOURCE | TAGGED_DIRECTED_RECV)
/* Since 2.0: directed receives of tagged messages alone. */
#ifdef FI_TAGGED_DIRECTED_RECV
#define TAGGED_DIRECTED_RECV	FI_TAGGED_DIRECTED_RECV
#else
#define TAGGED_DIRECTED_RECV	0
#endif
#define KEY_SIZE	8
#define CQ_DATA_SIZE	4
#define IOV_LIMIT	4
#define MAX_MESSAGE	(UINT64_C(1) << 40)
#define MSG_ORDER	FI_ORDER_SAS
/* An eager message with token, tag and data. */
#define INJECT_SIZE	(settings.cell_size - 32)

struct local_port {
	char name[80];		/* for fabrex_open() and struct fi_domain_attr */
	struct fabrex_local_port is;
};
/*
 * The ports that can be offered: those of this machine, or the one that
 * FABREX_PORT names, or @wanted if that is a loopback fabric. Returns how many;
 * free(*ports).
 */
int ports_list(const char *wanted, struct local_port **ports);
/* NULL: out of memory. fi_close(), as fi_freeinfo() does. */
struct fid_nic *nic_of_port(const struct local_port *port);

int info_get(uint32_t version, const char *node, const char *service,
	     uint64_t flags, const struct fi_info *hints,
	     struct fi_info **info);
/*
 * 0, or -FI_ENODATA with a line that names the field. For fi_endpoint() too,
 * with the domain's offer.
 */
int info_check(uint32_t version, const struct fi_info *hints,
	       const struct fi_info *offer);
/* All that there is for a port; NULL: out of memory. fi_freeinfo(). */
struct fi_info *offer_make(uint32_t version, const struct local_port *port);
/* What of it the hints leave; NULL hints: all. They have been checked. */
int offer_narrow(uint32_t version, const struct fi_info *hints,
		 struct fi_info *info);

/* ---- fabric.c, domain.c ------------------------------------------------ */

struct fabric {
	struct fid_fabric fid;
	char name[32];
	uint32_t version;	/* of libfabric's API that the program asked for */
	int users;		/* domains, event queues, wait sets */
	pthread_mutex_t lock;	/* users */
};

struct eq;
struct board;

struct domain {
	struct fid_domain fid;
	struct fabric *fabric;
	struct eq *eq;
	struct fabrex_port *port;
	struct fabrex_port_attr attr;
	pthread_mutex_t lock;
	struct fi_info *offer;	/* all that endpoints of it may have */
	bool serial;		/* the program never enters twice at a time */
	bool virt_addr;		/* FI_MR_VIRT_ADDR, or FI_MR_BASIC */
	bool mr_events;		/* registrations are reported to eq */
	bool hmem;		/* FI_HMEM */
	bool mr_hmem;		/* FI_MR_HMEM: device memory has descriptors */
	int users;		/* objects made of it */
	struct region_place *regions;	/* mr.c */
	uint32_t nregions, free_region;
	struct list endpoints;
	struct board *board;	/* board.c */
	uint64_t events_ns;	/* when the port's events were last looked at */
};

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fid,
		void *context);
int domain_open(struct fid_fabric *fid, struct fi_info *info,
		struct fid_domain **domain, void *context);

static inline void domain_lock(struct domain *domain)
{
	if (!domain->serial)
		pthread_mutex_lock(&domain->lock);
}

static inline void domain_unlock(struct domain *domain)
{
	if (!domain->serial)
		pthread_mutex_unlock(&domain->lock);
}

/* Objects that have been made of it: it is closed after them. */
static inline void domain_hold(struct domain *domain)
{
	domain_lock(domain);
	domain->users++;
	domain_unlock(domain);
}

static inline void domain_drop(struct domain *domain)
{
	domain_lock(domain);
	domain->users--;
	domain_unlock(domain);
}

static inline void fabric_hold(struct fabric *fabric)
{
	pthread_mutex_lock(&fabric->lock);
	fabric->users++;
	pthread_mutex_unlock(&fabric->lock);
}

static inline void fabric_drop(struct fabric *fabric)
{
	pthread_mutex_lock(&fabric->lock);
	fabric->users--;
	pthread_mutex_unlock(&fabric->lock);
}

/* ---- eq.c, wait.c, av.c, cq.c, cntr.c ---------------------------------- */

int eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr,
	    struct fid_eq **eq, void *context);
int eq_event(struct eq *eq, uint32_t event, const void *entry, size_t len);
int eq_trywait(struct fid_eq *fid);

/* NULL with a line in the log if it is none. eq_drop() when no longer bound. */
struct eq *eq_hold(struct fid *fid);
void eq_drop(struct eq *eq);
/* An error event: FI_E*, and what it concerns. */
int eq_error(struct eq *eq, struct fid *fid, void *context, uint64_t data,
	     int err, int cause);

/* What a completion queue or counter waits on: descriptors of its endpoints'
 * queues, and two of its own: for what happens without a device, and for what
 * endpoints want to do at some time.
 */
struct wait {
	enum fi_wait_obj object;
	int epoll;		/* -1: FI_WAIT_NONE, FI_WAIT_YIELD */
	int own;		/* eventfd in it */
	int timer;		/* timerfd in it */
	bool watched;		/* somebody sleeps, or is about to */
	bool signaled;		/* own is readable */
	uint64_t due_ns;	/* what timer is set to */
};
int wait_open(struct wait *wait, enum fi_wait_obj object);
void wait_close(struct wait *wait);
/* True: fi_enable() needs a queue with FABREX_QUEUE_EVENTFD. */
static inline bool wait_sleeps(const struct wait *wait)
{
	return wait->epoll >= 0;
}

int wait_add(struct wait *wait, int fd);
void wait_remove(struct wait *wait, int fd);
void wait_wake(struct wait *wait);
/* There is something to read: whoever sleeps is to know. */
static inline void wait_signal(struct wait *wait)
{
	if (wait->watched)
		wait_wake(wait);
}

/* Until a descriptor is readable, at most timeout_ms (-1: for ever). */
int wait_sleep(struct wait *wait, int timeout_ms);
/* CLOCK_MONOTONIC; UINT64_MAX: never. */
uint64_t now_ns(void);
uint64_t wait_deadline(int timeout_ms);
/* Milliseconds, rounded up; -1: for ever. */
int wait_left(uint64_t deadline);
/* Nothing is left to read. */
void wait_clear(struct wait *wait);
/* Readable at a time of CLOCK_MONOTONIC; 0: not by itself. */
void wait_until(struct wait *wait, uint64_t due_ns);
/* FI_GETWAIT, FI_GETWAITOBJ. */
int wait_control(struct wait *wait, int command, void *arg);

/*
 * member.c: the endpoints whose progress a completion queue or counter makes.
 * fi_enable() adds an endpoint to all it is bound to, once its queue is there,
 * and fi_close() removes it; each may be told twice.
 */
struct endpoint;
typedef void progress_fn(struct endpoint *ep);

struct members {
	struct list list;
	struct wait *wait;
};
int members_add(struct members *members, struct endpoint *ep,
		progress_fn *progress);
void members_remove(struct members *members, struct endpoint *ep);
void members_progress(struct members *members);
/*
 * Asks for a notification of the next completion, and sets the timer to the
 * earliest struct endpoint.due_ns. Make progress once more before sleeping.
 */
void members_arm(struct members *members);

/* An address that the program has inserted. fi_addr_t is its index, in maps and
 * tables alike.
 */
struct av_entry {
	struct address address;
	uint32_t used;		/* insertions without removal; 0: free */
};

struct av {
	struct fid_av fid;
	struct domain *domain;
	struct eq *eq;
	enum fi_av_type type;
	bool async;		/* FI_EVENT */
	struct av_entry *entries;
	size_t size;
	size_t lowest;		/* none below is free */
	int users;		/* endpoints bound to it */
	struct list endpoints;	/* struct endpoint.of_av */
};

int av_open(struct fid_domain *fid, struct fi_av_attr *attr,
	    struct fid_av **av, void *context);
/* NULL: none. */
const struct address *av_address(const struct av *av, fi_addr_t addr);
/* FI_ADDR_NOTAVAIL: it is not there. An entry without nonce matches any, and so
 * does an address without.
 */
fi_addr_t av_find(const struct av *av, const struct address *address);

/* Which completion queues an endpoint is bound to, and what for. */
struct cq {
	struct fid_cq fid;
	struct domain *domain;
	enum fi_cq_format format;
	enum fi_cq_wait_cond condition;
	struct wait wait;
	struct members members;
	struct cq_entry *entries;	/* ring; grows if the program overruns it */
	size_t size, head, tail;	/* size: power of two */
	struct list failures;
	struct cq_failure *last;	/* whose err_data the program may have */
	bool overrun;		/* it could not grow */
	bool signaled;		/* fi_cq_signal() */
	int users;
};

struct cq_entry {
	struct fi_cq_tagged_entry entry;
	fi_addr_t source;
};

int cq_open(struct fid_domain *fid, struct fi_cq_attr *attr,
	    struct fid_cq **cq, void *context);
/* 0: the program may sleep until its descriptor is readable; -FI_EAGAIN. */
int cq_trywait(struct cq *cq);
/* For poll sets, with the lock: makes progress; true: there is something new. */
bool cq_ready(struct cq *cq);
/* For the next completion, which is written by tail++. NULL: cq_write(). */
static inline struct cq_entry *cq_place(struct cq *cq)
{
	return cq->tail - cq->head == cq->size ? NULL :
	       &cq->entries[cq->tail & (cq->size - 1)];
}

void cq_write(struct cq *cq, const struct fi_cq_tagged_entry *entry,
	      fi_addr_t source);
/* prov_errno of @entry is a cause (error.c); err_data is copied. */
void cq_error(struct cq *cq, const struct fi_cq_err_entry *entry);

struct cntr {
	struct fid_cntr fid;
	struct domain *domain;
	struct wait wait;
	struct members members;
	uint64_t value, errors;
	uint64_t seen;		/* value + errors, as a poll set last saw it */
	int users;
};

int cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr,
	      struct fid_cntr **cntr, void *context);
int cntr_trywait(struct cntr *cntr);
bool cntr_ready(struct cntr *cntr);
void cntr_add(struct cntr *cntr, bool ok);

int poll_open(struct fid_domain *fid, struct fi_poll_attr *attr,
	      struct fid_poll **poll);

/* ---- mr.c, board.c ----------------------------------------------------- */

struct region {
	struct fid_mr fid;
	struct domain *domain;
	struct fabrex_mr *mr;	/* NULL: fi_close() was called */
	uint64_t base;		/* address of offset 0, as local code has it */
	size_t length;
	uint64_t access;	/* FI_* */
	bool device;		/* memory of a device */
	uint32_t users;		/* struct local, and the program */
	uint32_t place;		/* in domain.regions: its descriptor */
};

int region_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
	       uint64_t offset, uint64_t requested_key, uint64_t flags,
	       struct fid_mr **mr, void *context);
int region_regv(struct fid *fid, const struct iovec *iov, size_t count,
		uint64_t access, uint64_t offset, uint64_t requested_key,
		uint64_t flags, struct fid_mr **mr, void *context);
int region_regattr(struct fid *fid, const struct fi_mr_attr *attr,
		   uint64_t flags, struct fid_mr **mr);

/*
 * Local memory of an operation: the region of the program's descriptor if it
 * has given one that covers the range, else one of libfabrex's cache.
 */
struct local {
	struct fabrex_mr *mr;	/* of the cache; else: */
	struct region *region;	/* of the program */
	uint64_t offset;
	bool cached;		/* to be put back */
};
/* access: FABREX_MR_*. With rights for peers the cache is always asked. 0 bytes
 * need no region: local_mr() is NULL then.
 */
int local_get(struct domain *domain, const void *buf, size_t len, void *desc,
	      uint32_t access, struct local *local);
void local_put(struct local *local);
/*
 * Ask for it each time something is posted: the program may close a region that
 * an operation still waits with. NULL: it has; end the operation with
 * CAUSE_REGION. What is posted already is stopped by fi_close() itself.
 */
static inline struct fabrex_mr *local_mr(const struct local *local)
{
	return local->region ? local->region->mr : local->mr;
}

/*
 * True: memory of a device; the processor must not touch it. To be asked on
 * endpoints with FI_HMEM only.
 */
bool memory_is_device(struct domain *domain, const void *buf, void *desc);

/*
 * A page that peers may read: a read of nothing finds out whether the process
 * still lives (its key ends with it), whatever its port does. In domains with
 * virtual addresses it also holds the base of each region, which an initiator
 * looks up once for each key.
 */
int board_open(struct domain *domain);
void board_close(struct domain *domain);
void board_remote(const struct domain *domain, struct fabrex_remote *remote);
/* -FI_ENOSPC: no room. Both do nothing without virtual addresses. */
int board_insert(struct domain *domain, uint64_t key, uint64_t base);
void board_delete(struct domain *domain, uint64_t key);

/*
 * What the region is made of: a line, of which nothing is read, and a table of
 * lines, as many as a power of two; none (remote.length is one line) without
 * virtual addresses. A key is in the line BOARD_LINE of its table, or, if all
 * places of that are taken (key not 0), in the next one, and so on, around the
 * end. A place is never free again once it was taken: BOARD_DELETED.
 */
struct board_line {
	struct {
		uint64_t key, base;
	} place[4];
};
#define BOARD_DELETED	UINT64_MAX
#define BOARD_LINE(key, lines) \
	(((key) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & ((lines) - 1))

/* ---- endpoint.c -------------------------------------------------------- */

struct request;
struct peer;
struct bounce;
struct receives;

enum cntr_of { CNTR_SEND, CNTR_RECV, CNTR_READ, CNTR_WRITE, CNTR_REMOTE_READ,
	       CNTR_REMOTE_WRITE, CNTR_END };

/* Requests of one kind: as many as may be outstanding, and memory of those that
 * ever were at a time.
 */
struct requests {
	struct request **blocks;
	size_t nblocks;
	struct list *free;	/* struct request.node, by next */
	size_t used, limit;
};

/* Memory that datagrams, and the data of injected operations, are sent from. */
struct bounces {
	struct fabrex_mr *mr;
	struct bounce *all;
	struct bounce *small, *large;	/* free ones */
	size_t nsmall, nlarge;	/* of them */
	size_t reserved;	/* small ones that only answers may take */
	size_t large_size;
};

struct peers {
	struct peer **table;	/* by number of port and queue: chains */
	size_t mask;		/* of the table */
	size_t n;
	struct peer *last;	/* that something has come from */
	struct peer **by_addr;	/* by fi_addr_t; NULL: not yet asked for */
	size_t nby_addr;
	struct list all;	/* struct peer.node */
	struct list pending;	/* with requests that may go on now */
	struct list owing;	/* that credits are to be returned to */
	struct list timed;	/* that something is to be done for at a time */
	size_t cells;		/* that nobody has been promised */
	size_t ndead;		/* whose memory is still there */
};

/* What there may be to do besides completions: bits of todo. */
#define TODO_RETRY	1u	/* requests whose ring was full */
#define TODO_PENDING	2u	/* peers.pending */
#define TODO_OWING	4u	/* peers.owing */
#define TODO_TIMED	8u	/* peers.timed */
#define TODO_CLOCK	16u	/* the same, at once */
#define TODO_FAIL	32u	/* the queue has refused a datagram */
#define TODO_LOST	64u	/* peers that cannot be reached any more */

/* Words of peers that this endpoint is about to change: atomic_run.c. */
#define ATOMIC_WORDS	64u	/* a power of two */
struct atomic_words {
	struct atomic_lane *first, *last;
};

struct endpoint {
	struct fid_ep fid;
	struct domain *domain;
	struct fabrex_queue *queue;	/* NULL: fi_enable() was not called */
	struct cq *tx_cq, *rx_cq;
	bool tx_selective, rx_selective;	/* FI_SELECTIVE_COMPLETION */
	bool enabled;
	bool sends, takes;	/* it may be asked to, now */
	bool failed;		/* its queue is dead, or so it seems: */
	int cause;
	bool hmem;		/* buffers may be device memory */
	bool source, directed;	/* FI_SOURCE, FI_DIRECTED_RECV */
	uint32_t todo;
	uint32_t idle;		/* rounds of progress without anything */
	uint32_t rounds;	/* while something is due at some time */
	uint32_t inline_max;	/* bytes that are better in a descriptor */
	uint64_t tx_flags, rx_flags;	/* op_flags */
	struct cntr *cntrs[CNTR_END];
	struct requests tx, rx;
	struct bounces bounces;
	struct peers peers;
	struct receives *receives;	/* match.c */
	struct atomic_words words[ATOMIC_WORDS];
	struct list retries;
	size_t posted;		/* operations other than datagrams, of: */
	size_t posted_max;

	struct list node;	/* in the domain */
	struct list of_av;
	/* An address was inserted or removed: what is known of it is no more. */
	void (*addr_changed)(struct endpoint *ep, fi_addr_t addr);
	/* endpoint_settle(), for who must not know of it: watch.c. */
	void (*settle)(struct endpoint *ep);
	uint64_t due_ns;	/* CLOCK_MONOTONIC: progress wants to be made then,
				 * whether or not anything arrives; 0: no */
	uint64_t dropped;	/* datagrams that nobody should have sent */
	struct fi_info *info;
	struct address address;
	struct av *av;
	struct eq *eq;
	size_t cell_size;
	size_t inject_size;
	size_t copy_max;	/* longest message that copy.c takes; 0: none */
	size_t min_multi_recv;
	int p2p;		/* FI_OPT_FI_HMEM_P2P */
	bool cuda_permitted;	/* FI_OPT_CUDA_API_PERMITTED */
};

int endpoint_open(struct fid_domain *fid, struct fi_info *info,
		  struct fid_ep **ep, void *context);

static inline struct endpoint *endpoint_of(struct fid_ep *fid)
{
	return container(fid, struct endpoint, fid);
}

/* ---- progress.c -------------------------------------------------------- */

void endpoint_progress(struct endpoint *ep);
/* Peers that are lost fail, after all that they have sent. */
void endpoint_settle(struct endpoint *ep);
/* There is no room: -FI_EAGAIN, after some progress. */
ssize_t endpoint_is_full(struct endpoint *ep);

/* ---- rma.c, atomic.c: what endpoint.c installs -------------------------- */

extern struct fi_ops_rma rma_ops;
extern struct fi_ops_atomic atomic_ops;
int atomic_query(struct fid_domain *domain, enum fi_datatype datatype,
		 enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags);

/* ---- request.c --------------------------------------------------------- */

/*
 * An operation of the program, from its call to its completion. One that posts
 * something on the queue itself (post.h) counts that in posted and gives its
 * address as user_data; completed() is called for each of these completions.
 */
struct request {
	struct list node;	/* of whatever it waits in */
	struct endpoint *ep;
	struct peer *peer;	/* request_bind() */
	/* wc NULL: none, but the request has failed, and may have to end. */
	void (*completed)(struct request *request, const struct fabrex_wc *wc);
	/* To be tried again. 0: it goes on, or has ended; -FI_EAGAIN: not yet;
	 * else it fails with that errno.
	 */
	int (*resume)(struct request *request);
	void *context;
	uint64_t flags;		/* FI_COMPLETION, FI_INJECT, ... of the call */

	char *buf;
	uint64_t length;	/* of the message, or of the room for one */
	uint64_t tag, ignore;
	uint64_t data;
	uint64_t cq_flags;	/* of the completion: FI_SEND | FI_TAGGED ... */
	fi_addr_t addr;
	uint32_t index, generation;	/* in tokens given to peers */

	/* What follows is 0 when the request is taken, up to done. */
	int error;		/* FI_E*, the first */
	int status;		/* what is behind it: fi_of_cause() */
	uint32_t posted;	/* completions that are to come */
	uint8_t phase;		/* of one kind of operation */
	bool begun;		/* request_begin() */
	bool aside;		/* one-sided: it does not wait behind messages */
	bool own;		/* the provider's: nobody is told of its end */
	uint64_t done;
	/* Given back at its end. */
	struct bounce *bounce;
	struct local local;
	struct vector *vector;	/* several buffers instead of one */
	struct segments *remote;	/* freed at its end */
	char *copy;		/* of what was injected; the same */
	uint32_t slabs;		/* of peer->copies; the same */
	void *desc;
	uint64_t sequence;	/* of posted receives: their order */
	uint8_t cntr;		/* enum cntr_of */
	bool rx;		/* of the receiving side */
	bool silent;		/* success is told to nobody but a counter */
	bool used;
	union {
		struct {
			struct request *parent;	/* FI_MULTI_RECV */
			uint32_t users;		/* of such a parent */
			uint8_t kind;		/* enum wire_kind */
			bool direct;		/* only from where it is */
			uint16_t size;		/* of what is in bounce */
			uint64_t token;		/* the peer's */
			uint64_t total;		/* bytes of the message */
			uint64_t bytes;		/* to be moved; done: are */
			uint64_t rkey, roffset;	/* from or to where, if
						 * remote is NULL
						 */
			void (*finished)(struct request *request);
		} message;
		struct {
			uint64_t rkey, roffset, length;	/* the piece */
		} rma;
		void *more;
	};
};

/* Several buffers; buf is the first one's address. */
struct vector {
	size_t count;
	struct iovec iov[IOV_LIMIT];
	void *desc[IOV_LIMIT];
	struct local local[IOV_LIMIT];
};

int requests_init(struct requests *requests, size_t limit);
void requests_free(struct requests *requests);
/* NULL: as many as the endpoint may have are outstanding (-FI_EAGAIN). */
struct request *request_new_slowly(struct endpoint *ep, bool rx, bool extra);

static inline struct request *request_take(struct endpoint *ep, bool rx)
{
	struct requests *requests = rx ? &ep->rx : &ep->tx;
	struct list *node = requests->free;
	struct request *request;

	if (__builtin_expect(!node || requests->used >= requests->limit, 0))
		return request_new_slowly(ep, rx, false);
	requests->free = node->next;
	list_init(node);
	requests->used++;
	request = container(node, struct request, node);
	request->used = true;
	return request;
}

/* Of the sending side, such as RMA. */
static inline struct request *request_new(struct endpoint *ep)
{
	return request_take(ep, false);
}

/* Why an endpoint takes no operation of a kind: closed, failed, not enabled, or not
 * opened for that.
 */
ssize_t endpoint_refusal(const struct endpoint *ep);
/* Several buffers instead of one. -FI_ENOMEM. desc may be NULL. */
int request_vector(struct request *request, const struct iovec *iov,
		   void **desc, size_t count);
void request_free(struct request *request);
/* Token for a peer, and back: NULL if it is of none that is under way. */
uint64_t request_token(const struct request *request);
struct request *request_find(struct endpoint *ep, uint64_t token);
/* All that are under way: at begins with 0; NULL: no more. */
struct request *request_next(struct requests *requests, size_t *at);
/* A cause: the first one counts. */
void request_fail(struct request *request, int cause);
/*
 * The end of an operation: tells completion queue and counter what they are to
 * be told, and frees it. @length: bytes; @source: FI_ADDR_NOTAVAIL if none.
 */
void request_end(struct request *request, uint64_t length, fi_addr_t source);

#endif
