/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Admin queue pair of a port: fetches commands, runs them, completes them in
 * any order.
 *
 * Locks: everything belongs to the port's work except the two doorbell values
 * (atomics) and, under admin.lock, what admin_finish() leaves for a command
 * that waits for others. admin.lock is a leaf but for engine.lock.
 */
#ifndef EMU_ADMIN_H
#define EMU_ADMIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <draco/regs.h>

struct port;
struct mr;

/* Not a DRACO_SC_*: the command stays in flight. */
#define ADMIN_PENDING	0xffffu

/* What a pending command waits for. */
enum admin_wait {
	WAIT_EVENTS,
	WAIT_MR_INVALIDATE,	/* object: struct mr */
	WAIT_MR_DESTROY,
	WAIT_QUEUE,		/* object: struct queue_slot */
	WAIT_WINDOW,		/* object: struct window */
	WAIT_FINISH,		/* admin_finish() */
	WAIT_ABORT,		/* hung */
};

/* Names a command in flight; stale ones are harmless. */
struct admin_ref {
	struct port *port;
	uint32_t index;
	uint64_t serial;	/* 0: no command */
};

struct admin_result {
	uint16_t status;
	uint64_t result;
	bool has_holder;
	struct draco_holder holder;
};

struct admin_cmd {
	struct draco_acmd cmd;	/* private copy */
	bool used;
	enum admin_wait wait;
	void *object;
	uint64_t serial;	/* admin.lock to write; 0: not in flight */
	bool finished;		/* admin.lock */
	struct admin_result late; /* admin.lock */
	uint16_t status;
	uint64_t result, result2;
	uint32_t id;
	struct admin_cmd *next;	/* free, pending or done */
};

struct admin_list {
	struct admin_cmd *head, **tail;
};

struct admin {
	uint32_t size;
	uint64_t sq, cq;
	_Atomic uint32_t sq_tail, cq_head;	/* doorbells */
	uint32_t sq_head, cq_tail;
	bool phase;
	struct admin_cmd *cmds;
	struct admin_list free, pending, done;
	uint64_t serials;
	void *buf;				/* DRACO_ADM_DATA_MAX */
	pthread_mutex_t lock;
};

int admin_init(struct port *p);
void admin_free(struct port *p);

/* The port's work: rings begin and end. False: no memory. */
bool admin_start(struct port *p, uint32_t size, uint64_t sq, uint64_t cq);
void admin_stop(struct port *p);
/* One look at everything, *more to come. False: ring memory did not answer. */
bool admin_run(struct port *p, bool *more);

/* Complete a command that waits for it. Any thread. */
void admin_finish(const struct admin_ref *ref, const struct admin_result *r);

/* For the commands' files. */
typedef unsigned int (*admin_fn)(struct port *p, struct admin_cmd *c);
unsigned int admin_wait(struct admin_cmd *c, enum admin_wait wait,
			void *object);
struct admin_ref admin_ref(struct port *p, struct admin_cmd *c);
/* Structure of the command's data; DRACO_SC_*. */
unsigned int admin_in(struct port *p, struct admin_cmd *c, void *buf,
		      size_t size);
unsigned int admin_out(struct port *p, struct admin_cmd *c, const void *buf,
		       size_t size);
/* How many elements of @size fit into the data; 0: refuse. */
size_t admin_room(const struct admin_cmd *c, size_t size);
/* The command in flight with this cid, or NULL. */
struct admin_cmd *admin_by_cid(struct port *p, uint16_t cid);
/* Take a pending one out and complete it. */
void admin_withdraw(struct port *p, struct admin_cmd *c, uint16_t status);

unsigned int admin_identify(struct port *p, struct admin_cmd *c);
unsigned int admin_get_objects(struct port *p, struct admin_cmd *c);
unsigned int admin_get_events(struct port *p, struct admin_cmd *c);
/* For a pending GET_EVENTS: complete it if there is one. */
bool admin_take_events(struct port *p, struct admin_cmd *c);
unsigned int admin_abort(struct port *p, struct admin_cmd *c);
unsigned int admin_get_counters(struct port *p, struct admin_cmd *c);
unsigned int admin_get_log(struct port *p, struct admin_cmd *c);
unsigned int admin_get_peers(struct port *p, struct admin_cmd *c);
unsigned int admin_get_requests(struct port *p, struct admin_cmd *c);
unsigned int admin_get_links(struct port *p, struct admin_cmd *c);
unsigned int admin_bind(struct port *p, struct admin_cmd *c);
unsigned int admin_unbind(struct port *p, struct admin_cmd *c);
unsigned int admin_release_reply(struct port *p, struct admin_cmd *c);
unsigned int admin_port_control(struct port *p, struct admin_cmd *c);
unsigned int admin_queue_create(struct port *p, struct admin_cmd *c);
unsigned int admin_queue_destroy(struct port *p, struct admin_cmd *c);
unsigned int admin_resolve(struct port *p, struct admin_cmd *c);
/* A region without accesses: its invalidation or destruction is complete. */
void admin_mr_ended(struct port *p, struct mr *mr, bool destroy);
unsigned int admin_mr_create(struct port *p, struct admin_cmd *c);
unsigned int admin_mr_pages(struct port *p, struct admin_cmd *c);
unsigned int admin_mr_destroy(struct port *p, struct admin_cmd *c);
unsigned int admin_mr_invalidate(struct port *p, struct admin_cmd *c);
unsigned int admin_window_create(struct port *p, struct admin_cmd *c);
unsigned int admin_window_destroy(struct port *p, struct admin_cmd *c);

#endif
