/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A Switchtec PFX switch: a partition for each host port, whose management
 * function Linux's switchtec driver binds to, with commands, events and a
 * non-transparent bridge to another partition (docs/switchtec.md).
 *
 * Locks: pfx.lock protects all of a switch's registers. It is taken inside
 * fabric.lock; inside it there are only holds of memory and interrupts. So what
 * goes through a window does not overtake a change of that window.
 */
#ifndef EMU_PFX_H
#define EMU_PFX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "function.h"
#include "pfx_gas.h"
#include "topology/topology.h"

#define PFX_VENDOR		0x11f8u
#define PFX_DEVICE		0x4000u
#define PFX_SUBVENDOR		0x1ce5u
#define PFX_SUBDEVICE		0xff83u
#define PFX_PARTITIONS		48u
#define PFX_VECTORS		32u
#define PFX_EVENT_VECTOR	0u
#define PFX_LUT_ENTRIES		32u
#define PFX_REQUESTERS		16u
#define PFX_FAULTS		8u	/* armed at a time for a partition */
/*
 * Who accesses a window: a host's processors, whose root complex is 0:0.0, or
 * the switch's own DMA engine, which no table lets in or keeps out.
 */
#define PFX_CPU			0u
#define PFX_SELF		0x10000u

struct fabric;
struct link;
struct pfx;
struct pfx_dma;
struct port;

/* What one partition knows of an event of the switch. */
struct pfx_event {
	uint8_t enables;
	uint8_t count;
	bool occurred;
};

enum pfx_part_event {
	PFX_EV_RESET, PFX_EV_MRPC, PFX_EV_ASYNC, PFX_EV_BINDING,
	PFX_EV_INTERCOMM,
	PFX_EV_PART_MAX
};

/* A partition's own copies, so that one does not clear another's. */
struct pfx_events {
	struct pfx_event (*part)[PFX_EV_PART_MAX];	/* by partition */
	struct pfx_event *link, *hotplug;		/* by port function */
};

enum pfx_fault_kind {
	PFX_FAULT_HANG = 1,		/* no answer before a reset */
	PFX_FAULT_ONES,			/* an answer of ones */
	PFX_FAULT_SHORT,		/* zeros from byte @at on */
	PFX_FAULT_BYTE,			/* byte @at is @value */
	PFX_FAULT_RETURN,		/* returns @value and does nothing */
	PFX_FAULT_LOST,			/* of the DMA engine: a store through a
					 * window goes nowhere
					 */
	PFX_FAULT_ERROR,		/* a copy ends with an error */
	PFX_FAULT_KINDS
};

#define PFX_FAULT_ANY		UINT32_MAX

struct pfx_fault {
	unsigned int kind;
	uint32_t left;			/* so many more commands; 0: none */
	uint32_t opcode;		/* or PFX_FAULT_ANY */
	uint32_t sub;			/* first byte of input, or likewise */
	uint32_t at, value;
};

struct pfx_mrpc {
	uint8_t input[MRPC_PAYLOAD], output[MRPC_PAYLOAD];
	uint32_t cmd, status, ret;
	struct pfx_fault fault[PFX_FAULTS];
};

/* Where stores into windows go: what is written, and what it is in force. */
struct pfx_tables {
	struct {
		uint32_t ctl, size, size_high;
		uint32_t addr[2];		/* low half first */
	} bar[CTRL_NBARS];
	uint32_t lut[PFX_LUT_ENTRIES][2];
	uint32_t req[PFX_REQUESTERS];
};

struct pfx_ctrl {
	struct pfx_tables written, active;
	uint32_t bar_error, lut_error, req_error;
	unsigned int owner;		/* partition that has locked it */
	uint64_t waiting;		/* partitions that want to */
};

struct pfx_message {
	uint32_t value;
	bool full;
	uint8_t mask, source;
};

struct pfx_dbmsg {
	uint64_t out_mask, in_mask;
	uint8_t vector[64];
	uint32_t map;
	struct pfx_message in[MESSAGES], out[MESSAGES];
};

struct pfx_part {
	struct pfx *pfx;
	struct port *port;
	struct pfx_dma *dma;
	unsigned int id;
	struct pfx_part *peer;		/* behind the bridge, or NULL */
	uint64_t window;		/* bytes of its BARs for windows */
	unsigned int first_pff;		/* USP, VEP, then the slots */
	unsigned int slots;
	bool attached;			/* a host is there: port->fn is valid */
	struct pfx_mrpc mrpc;
	uint32_t faults_taken[PFX_FAULT_KINDS]; /* since the beginning */
	struct pfx_events events;
	struct pfx_ctrl ctrl;
	struct pfx_dbmsg dbmsg;
};

/* A port of the switch, bound to a partition or not. */
struct pfx_phys {
	struct pfx_part *part;		/* NULL: not bound */
	unsigned int logical;		/* port of the partition, from 1 on */
	unsigned int result;		/* MRPC_BIND_OK, ... of the last change */
	unsigned int asked, asked_logical; /* where that was to be, */
	bool wanted;			/* and whether it was to be bound */
	bool trained;			/* there is another end to its link */
	bool attaching;			/* its host finds it just now */
};

struct pfx {
	pthread_mutex_t lock;
	struct fabric *fabric;
	unsigned int sw;		/* index in the topology */
	unsigned int nparts, npffs;
	struct pfx_part *parts[PFX_PARTITIONS];
	unsigned int nports;
	struct pfx_phys phys[TOPO_MAX_SWITCH_PORTS + 1];	/* from 1 on */
	uint64_t doorbells;		/* pending; of all partitions */
	struct pfx *next;
};

/*
 * All that the topology has; ports then have their partition. -errno with the
 * reason logged. Free: when no function is left.
 */
int pfx_init(struct fabric *f);
void pfx_free(struct fabric *f);

/* What the function of a partition looks like; the model behind it. */
void pfx_describe(struct pfx_part *p, struct function_desc *d);
extern const struct function_ops pfx_function_ops;

/* The link of a host port went down or came up. fabric.lock held. */
void pfx_link_changed(struct pfx_part *p);

/* The binding of an endpoint has changed: so has the port before it. Loop. */
void pfx_endpoint_changed(struct fabric *f, unsigned int ep);

/*
 * pfx_fault.c, for commands.c. Kind: 0 if @name is none. Arm: one more for the
 * next @left commands, 0 disarms all of that kind; *taken is how many there have
 * been. -ENOSPC: PFX_FAULTS are armed.
 */
unsigned int pfx_fault_kind(const char *name);
int pfx_fault_arm(struct pfx_part *p, const struct pfx_fault *f,
		  uint32_t *taken);

/* ---- Between the files of the model; pfx.lock held ---- */

static inline bool pfx_has_ntb(const struct pfx_part *p)
{
	return p->peer != NULL;
}

/* Merge the bytes of @mask that a store of @v has into a register. */
static inline uint32_t pfx_merge(uint32_t old, uint32_t v, uint32_t mask)
{
	return (old & ~mask) | (v & mask);
}

/* How many of @count bytes from @offset on are in its word. */
static inline size_t pfx_in_word(uint64_t offset, size_t count)
{
	size_t n = 4 - (offset & 3);

	return n < count ? n : count;
}

static inline uint64_t pfx_join(const uint32_t half[2])
{
	return half[0] | (uint64_t)half[1] << 32;
}

void pfx_raise(struct pfx_part *p, unsigned int vector);

/* pfx_event.c: registers of events, and what raises them. */
int pfx_events_init(struct pfx_part *p);
void pfx_events_free(struct pfx_part *p);
void pfx_events_reset(struct pfx_part *p);
/* False: no header of an event is there. */
bool pfx_event_read(struct pfx_part *p, uint32_t offset, uint32_t *v);
bool pfx_event_write(struct pfx_part *p, uint32_t offset, uint32_t v,
		     uint32_t mask);
/* Of partition @of, to @p. */
void pfx_event_part(struct pfx_part *p, unsigned int of,
		    enum pfx_part_event what);
/* To all partitions that the host link of @p, or its bridge, has changed. */
void pfx_event_link(struct pfx_part *p);

/*
 * pfx_fault.c: before a command is carried out, NULL or what keeps it from that;
 * afterwards, what is wrong with its answer.
 */
const struct pfx_fault *pfx_fault_before(struct pfx_part *p, uint32_t cmd);
void pfx_fault_answer(struct pfx_part *p, uint32_t cmd);
/* Does a copy of the DMA engine meet that fault? The lock of the PFX is not held. */
bool pfx_fault_dma(struct pfx_part *p, enum pfx_fault_kind kind);

/* pfx_mrpc.c */
uint32_t pfx_mrpc_read(struct pfx_part *p, uint32_t offset);
void pfx_mrpc_write(struct pfx_part *p, uint32_t offset, uint32_t v,
		    uint32_t mask);
void pfx_mrpc_reset(struct pfx_part *p);

/*
 * pfx_bind.c: MRPC_BIND; the link of a port; the endpoint behind it, from @from
 * on, TOPO_NONE: there is no more.
 */
uint32_t pfx_bind_command(struct pfx_part *p);
struct link *pfx_link(struct pfx *x, unsigned int phys);
unsigned int pfx_behind(struct pfx *x, unsigned int phys, unsigned int from);

/* pfx_ntb.c: information, control, doorbells and messages. */
uint32_t pfx_info_read(struct pfx_part *p, uint32_t offset);
uint32_t pfx_ctrl_read(struct pfx_part *p, uint32_t offset);
void pfx_ctrl_write(struct pfx_part *p, uint32_t offset, uint32_t v,
		    uint32_t mask);
void pfx_ctrl_reset(struct pfx_part *p);
uint32_t pfx_dbmsg_read(struct pfx_part *p, uint32_t offset);
void pfx_dbmsg_write(struct pfx_part *p, uint32_t offset, uint32_t v,
		     uint32_t mask);
void pfx_dbmsg_reset(struct pfx_part *p);

/*
 * pfx_window.c: an access of @requester to a BAR with windows. False if it
 * reaches nothing: reads then give ones.
 */
bool pfx_window_access(struct pfx_part *p, uint32_t requester, unsigned int bar,
		       uint64_t offset, void *in, const void *out, size_t len);
/* Is what is written what a window can be? Fills in the errors. */
bool pfx_window_check(struct pfx_part *p);

#endif
