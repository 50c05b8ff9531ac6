/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A host port: the Draco function that a server sees. Registers, enable state
 * machine, and the tables of queues, regions and windows.
 *
 * Who may touch what: the function's own thread handles registers (port.reg)
 * and leaves requests under req_lock; the port's work, run by one engine
 * worker at a time, acts on them and is alone in changing state, admin rings
 * and tables. Everybody else goes through gates: port.gate is open while the
 * port is READY, and table entries are entered only inside it. So when
 * port.gate is drained nothing of this port is under way.
 */
#ifndef EMU_PORT_H
#define EMU_PORT_H

#include <pthread.h>
#include <stdatomic.h>

#include <draco/regs.h>

#include "admin.h"
#include "counters.h"
#include "dma_map.h"
#include "engine.h"
#include "event.h"
#include "fault.h"
#include "gate.h"
#include "guess.h"
#include "mr.h"
#include "queue.h"
#include "window.h"

#define PORT_MSIX_VECTORS	32
#define PORT_RESET_WAITERS	8
#define PORT_ADMIN_MAX		1024u
#define PORT_TIMEOUT_100MS	50u
#define PORT_MAX_TRANSFER	(1ull << 30)

struct epf_end;
struct fabric;
struct link;
struct function;
struct function_desc;
struct function_ops;
struct pfx_part;
struct slots;
struct topo_switch;

enum port_state {
	PORT_STOPPED,
	PORT_STOPPING,		/* waits for the gate, then STOPPED or FATAL */
	PORT_FATAL,
	PORT_READY,
	PORT_RESETTING,		/* waits for the gate, then READY */
};

/* Function thread only. */
struct port_regs {
	uint32_t ctrl;
	uint32_t admin_size;
	uint64_t admin_sq, admin_cq;
	uint32_t sq_low, cq_low;	/* written, high half to come */
};

/* From the function's thread and others to the port's work. */
struct port_request {
	uint64_t epoch;			/* changes with ENABLE and resets */
	bool enable;
	uint32_t size;
	uint64_t sq, cq;
	uint32_t fatal;			/* DRACO_FATAL_* asked for, or 0 */
	bool reset;			/* PORT_CONTROL RESET */
	struct admin_ref resets[PORT_RESET_WAITERS]; /* who asked for it */
	unsigned int nresets;
};

struct port {
	struct work work;
	struct gate gate;
	struct fabric *fabric;
	struct link *link;
	struct function *fn;
	struct slots *slots;		/* NULL: no hot-plug slots (tests) */
	struct pfx_part *part;		/* both NULL: the switch is a Draco; */
	struct epf_end *end;		/* else fn is that of one of them, and
					 * the rest of the port stays STOPPED */
	struct port *sibling;		/* next port in the ring of those whose
					 * partitions its TLPs reach */
	unsigned int peer;
	unsigned int host;		/* index in the topology */
	unsigned int index;		/* of the port in its host */
	bool manager;
	unsigned int doorbell_shift;
	char name[DRACO_NAME_LEN];

	_Atomic uint32_t status;	/* READY and FATAL bits */
	_Atomic uint32_t error;
	_Atomic uint32_t generation;

	struct port_regs reg;
	pthread_mutex_t req_lock;
	pthread_cond_t stopped;
	struct port_request req;	/* req_lock */
	uint64_t stopped_epoch;		/* req_lock; up to here it is stopped */

	/* The port's work only. */
	enum port_state state;
	uint64_t epoch;			/* of the request acted on */
	uint32_t stop_error;		/* STOPPING: DRACO_FATAL_* or 0 */
	struct admin_ref resets[PORT_RESET_WAITERS];
	unsigned int nresets;
	struct admin admin;
	struct mr_table mrs;
	struct queue_table queues;
	struct window_table windows;
	struct guesser guesser;		/* WINDOW_CREATE */

	/* For as long as the switch runs, whatever becomes of the function. */
	struct guess_budget queue_guesses, window_guesses;

	struct event_queue events;	/* event_log.lock */
	struct counters counters;
	struct faults faults;
};

int port_init(struct port *p, struct fabric *f, unsigned int peer,
	      unsigned int host, unsigned int index);
void port_free(struct port *p);
/* What its function looks like, and the operations behind it. */
void port_describe(struct port *p, struct function_desc *d);
extern const struct function_ops port_function_ops;
/* Of its links, as PCI Express encodes it: 2 to 6. */
uint8_t port_link_speed(const struct topo_switch *s);

static inline bool port_is_ready(struct port *p)
{
	return atomic_load(&p->status) & DRACO_STATUS_READY;
}

/* Any thread. */
void port_kick(struct port *p);
void port_fail(struct port *p, uint32_t fatal);
/* @who is finished when it is done. */
void port_request_reset(struct port *p, struct admin_ref who);
void port_raise(struct port *p, unsigned int vector);

/* Inside the port: its memory and tables may be used until port_leave(). */
static inline bool port_enter(struct port *p)
{
	return gate_enter(&p->gate);
}

static inline void port_leave(struct port *p)
{
	if (gate_leave(&p->gate))
		port_kick(p);
}

/*
 * Memory at a bus address of this port: of an endpoint (mem.ep) in its
 * partition or another one of its host, or its host's. Rules of struct dma_hold apply.
 */
struct fabric_ep;
struct mem {
	struct dma_hold hold;
	struct fabric_ep *ep;
	struct port *at;	/* that it is bound to */
	uint32_t downs;		/* of it, when the access began */
};

int mem_get(struct port *p, uint64_t addr, size_t len, unsigned int prot,
	    struct mem *m);
int mem_put(struct mem *m);
int mem_read(struct port *p, uint64_t addr, void *buf, size_t len);
int mem_write(struct port *p, uint64_t addr, const void *buf, size_t len);

#endif
