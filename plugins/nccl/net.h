/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The net plugin, below the versions of its interface: one implementation, whose
 * functions return enum nccl_result. A communicator (struct comm) is one way of a
 * connection; one thread at a time uses it. Its layout in memory: wire.h.
 */
#ifndef FABREX_NCCL_NET_H
#define FABREX_NCCL_NET_H

#include <fabrex/fabrex.h>
#include <fabrex/p2p.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "net_abi.h"
#include "net_wire.h"

#define NET_NAME	"fabrex"
#define PORTS_MAX	32

/* ---- net_log.c --------------------------------------------------------- */

/* Of the latest init(); a line before it is lost. */
void net_log_to(nccl_logger *log);
__attribute__((format(printf, 2, 3)))
void net_say(int level, const char *format, ...);
#define WARN(...)	net_say(NCCL_LOG_WARN, __VA_ARGS__)
#define INFO(...)	net_say(NCCL_LOG_INFO, __VA_ARGS__)
/* What libfabrex's error is for NCCL; it has been said. */
enum nccl_result net_result(int error);

/* ---- net_port.c: what NCCL calls a device ------------------------------- */

struct net_port {
	struct fabrex_local_port is;
	char open_as[80];	/* for fabrex_open() */
	char path[256];		/* in sysfs, or "" */
	pthread_mutex_t lock;	/* port, users */
	struct fabrex_port *port;	/* NULL: nobody uses it */
	unsigned int users;
	struct fabrex_port_attr attr;	/* while it is open */
};

/* Looks for them, once; how many, or -errno. */
int net_ports(void);
/* NULL: there is no such device, which has been said. */
struct net_port *net_port(int dev);
/* Opened by the first. 0, or -errno. */
int net_port_get(struct net_port *port);
void net_port_put(struct net_port *port);
/* In the widest form; versions narrow it. */
enum nccl_result net_properties(int dev, struct nccl_properties_v12 *p);

/* ---- net_memory.c ------------------------------------------------------ */

struct net_memory {
	struct fabrex_mr *mr;
	char *base;		/* of what was registered */
	size_t length;
	uint64_t offset;	/* of base in the region */
	bool cached;
	bool device;		/* of a GPU */
};

enum nccl_result net_reg(void *comm, void *data, size_t size, int type,
			 void **mhandle);
enum nccl_result net_reg_dmabuf(void *comm, void *data, size_t size, int type,
				uint64_t offset, int fd, void **mhandle);
enum nccl_result net_dereg(void *comm, void *mhandle);
/* Where data is in its region. False: not there, which has been said. */
bool net_memory_at(const struct net_memory *memory, const void *data,
		   size_t size, uint64_t *offset);

/* ---- communicators ----------------------------------------------------- */

/* Flushes have some of their own: NCCL takes none for "not needed". */
#define FLUSHES		4u

struct net_request {
	struct comm *comm;	/* NULL: it is free */
	enum { NET_SEND, NET_RECV, NET_FLUSH } kind;
	bool done;
	bool late;		/* the ring was full: test() goes on */
	uint32_t n;		/* RECV: in the group; SEND: which of it */
	uint64_t number;	/* of the slot */
	size_t size[NCCL_RECEIVES_MAX];
	/* SEND: */
	const struct fabrex_mr *mr;
	uint64_t offset;
	struct net_target target;
	uint64_t posted;	/* bytes */
};

struct comm {
	struct net_port *port;
	bool sends;
	struct fabrex_queue *queue;
	struct fabrex_mr *inbox, *outbox;
	union {
		struct net_send_inbox *send;
		struct net_recv_inbox *recv;
	} in;			/* which the peer writes to */
	union {
		struct net_send_outbox *send;
		struct net_recv_outbox *recv;
	} out;			/* which we write from */
	struct fabrex_remote peer;	/* its inbox */
	char name[32];		/* of its port */
	uint64_t head;		/* groups posted (RECV), finished (SEND) */
	uint32_t group;		/* SEND: receives in the one at head; 0: not known */
	uint32_t taken;		/* of them, a bit for each */
	bool probing, closing;
	bool gone;		/* it has closed its side: not looked for any more */
	uint32_t waiting;	/* requests that are not announced yet */
	uint32_t busy;		/* RECV: slots whose receives are in flight */
	uint64_t looked_ns;	/* when it was last looked for */
	uint32_t idle;		/* calls since without anything */
	enum nccl_result failed;	/* and nothing more is done */
	struct net_request request[NCCL_REQUESTS_MAX + FLUSHES];
};

static inline bool net_comm_closed(const struct comm *comm)
{
	return __atomic_load_n(&comm->in.send->closed, __ATOMIC_ACQUIRE);
}

/* net_comm.c */
uint64_t now_ns(void);	/* CLOCK_MONOTONIC */
int net_comm_open(struct net_port *port, bool sends, struct comm **out);
void net_comm_close(struct comm *comm);
/* What the peer has to know. */
void net_comm_hello(const struct comm *comm, uint64_t cookie,
		    struct net_hello *hello);
/* And what it has said. False: it is not what it should be. */
bool net_comm_meet(struct comm *comm, uint32_t peer,
		   const struct net_hello *hello);
/* Says why, once; from then on everything fails with this. */
enum nccl_result net_comm_fail(struct comm *comm, enum nccl_result result,
			       const char *why);
/* Completions are taken; idle: nothing else has happened, so does the peer live? */
enum nccl_result net_comm_progress(struct comm *comm, bool idle);
/* The peer is told, if it can be; whatever else was under way ends. */
void net_comm_farewell(struct comm *comm);
/* NULL: all are in flight. */
struct net_request *net_request_take(struct comm *comm, bool flush);
/* From our outbox into the peer's inbox. user_data 0: only a failure is told. */
int net_comm_put(struct comm *comm, const void *from, uint64_t to, size_t n,
		 uint8_t flags, uint64_t user_data);

/* net_connect.c */
enum nccl_result net_listen(int dev, void *handle, void **listener);
enum nccl_result net_connect(int dev, void *handle, void **comm);
enum nccl_result net_accept(void *listener, void **comm);
enum nccl_result net_close_listen(void *listener);

/* net_move.c */
enum nccl_result net_isend(void *comm, void *data, size_t size, int tag,
			   void *mhandle, void **request);
enum nccl_result net_irecv(void *comm, int n, void **data, const size_t *sizes,
			   const int *tags, void **mhandles, void **request);
enum nccl_result net_flush(void *comm, int n, void **data, int *sizes,
			   void **mhandles, void **request);
enum nccl_result net_test(void *request, int *done, int *sizes);
enum nccl_result net_close(void *comm);

#endif
