/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Endpoints for tests: opened in one line, with their completions kept until
 * they are asked for. Several may be in one process, each with a port of its own
 * or on that of another; whoever waits makes progress for all. Or in processes of
 * their own, which are started and killed here.
 */
#ifndef FABREX_FI_ENDS_H
#define FABREX_FI_ENDS_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <sys/types.h>

#include "support.h"

#define NAME_SIZE	64
#define DONE_MAX	65536

struct done {
	void *context;
	uint64_t flags, data, tag;
	size_t len, olen;
	void *buf;
	fi_addr_t source;
	int err, prov_errno;	/* 0: success */
};

struct end {
	struct opened opened;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_cntr *cntr;	/* of what was wished */
	char name[NAME_SIZE];
	struct done *done;	/* not yet asked for */
	size_t ndone;
	struct end *next;
	struct end *of;		/* whose domain it shares */
};

/* What differs from the usual; all may be 0. */
struct end_wish {
	uint64_t caps;		/* otherwise messages, tagged, directed */
	uint64_t tx_flags, rx_flags;	/* op_flags */
	uint64_t bind;		/* FI_SELECTIVE_COMPLETION */
	size_t tx_size, rx_size;
	enum fi_threading threading;
	enum fi_wait_obj wait;
	uint64_t service;
	int mr_mode;		/* the only one */
	uint64_t counts;	/* FI_WRITE ...: what a counter is for */
	struct end *of;		/* on the port of this one */
};

void end_open(struct end *end, const struct end_wish *wish);
void end_close(struct end *end);
fi_addr_t end_know(struct end *end, const char *name);
/* What the address vector has there. */
int av_name(struct end *end, fi_addr_t addr, char name[NAME_SIZE]);
/* Two ends that know each other: each is number 0 in the other's table. */
void pair_open(struct end *a, struct end *b, const struct end_wish *wish);
void pair_close(struct end *a, struct end *b);

/* All that are open here: completions are taken. */
void ends_progress(void);
/* Takes the completion with this context; waits for it. */
struct done end_wait(struct end *end, void *context);
/* The same for any context. */
struct done end_next(struct end *end);
/* It must be a success. */
struct done end_ok(struct end *end, void *context);
bool end_has(const struct end *end, void *context);
/* Says why, as fi_cq_strerror() does. */
const char *end_why(struct end *end, const struct done *done);

/* Waits for room: progress is made until it is not -FI_EAGAIN. */
#define UNTIL_ROOM(call) \
	({ \
		ssize_t room_; \
		while ((room_ = (call)) == -FI_EAGAIN) \
			ends_progress(); \
		room_; \
	})

/* Bytes that depend on seed and place. */
void fill(void *to, size_t len, unsigned int seed);
bool is_filled(const void *at, size_t len, unsigned int seed);
uint64_t chance(uint64_t below);
/* Until this is so, whoever makes it so. */
#define UNTIL(condition) \
	do { \
		while (!(condition)) \
			ends_progress(); \
	} while (0)

/* ---- other processes --------------------------------------------------- */

struct actor {
	pid_t pid;
	int fd;			/* a socket to the other side */
};

/* play(fd, arg) in a child, before anything of libfabric is called here. */
void actor_start(struct actor *actor, void (*play)(int fd, void *arg),
		 void *arg);
void actor_end(struct actor *actor);	/* by itself, with 0 */
void actor_kill(struct actor *actor);
void say(int fd, const void *data, size_t len);
void hear(int fd, void *data, size_t len);
/* Without waiting; false: nothing yet. */
bool hear_now(int fd, void *data, size_t len);
/* The fabric of the test, which its actors have, too; before they start. */
const char *shared_fabric(void);

#endif
