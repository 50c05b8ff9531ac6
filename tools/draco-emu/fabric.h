/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model of the fabric: objects and their states, links, and which host
 * ports can reach each other. One for the process.
 *
 * Lock order: fabric.lock, then event_log.lock, then engine.lock. Port
 * requests (port.req_lock) and admin.lock are taken inside fabric.lock and
 * take only engine.lock inside. A queue's cq_lock may take event_log.lock.
 * The data path takes none of these but cq_lock, and throttle.lock, a leaf, if
 * rates are kept: link states and routes are atomics.
 */
#ifndef EMU_FABRIC_H
#define EMU_FABRIC_H

#include <pthread.h>
#include <stdatomic.h>

#include <draco/regs.h>

#include "audit.h"
#include "counters.h"
#include "engine.h"
#include "event.h"
#include "fault.h"
#include "throttle.h"
#include "topology/topology.h"
#include "traffic.h"

struct epf;
struct pfx;
struct port;
struct bindings;
struct mesh;

#define FABRIC_NO_LINK	UINT32_MAX

/* A switch port: one end of a cable. */
struct link {
	uint32_t id;			/* object id */
	unsigned int sw;
	unsigned int kind;		/* DRACO_PORT_* */
	unsigned int peer;		/* host port: peer number */
	uint32_t other;			/* ISL: index of the other end */
	bool disabled;			/* fabric.lock; by PORT_CONTROL */
	bool broken;			/* fabric.lock; injected */
	_Atomic bool up;
	struct counters counters;
	struct traffic traffic;		/* ISL: only out */
	struct traffic inner;		/* host port: its root port to the root
					 * complex; uplink: to the second
					 * switch of a cascade */
	struct pace pace;
};

/* What the data path knows about an endpoint. */
struct fabric_ep {
	uint32_t id;
	struct link *uplink;
	bool second;			/* behind a cascade's second switch */
	/*
	 * False from the moment its uplink goes down until its memory is
	 * again what it was (binding.c), counted in @downs after that: an
	 * access during which it changes has met ones.
	 */
	atomic_bool answers;
	_Atomic uint32_t downs;
	struct counters counters;
	struct traffic traffic;		/* its link to the appliance */
};

struct fabric {
	pthread_mutex_t lock;
	const struct topology *topo;
	struct draco_object *objects;	/* lock; [id - 1] */
	uint32_t nobjects;
	uint64_t topology_seq;		/* lock */

	struct link *links;		/* all switch ports, by switch */
	uint32_t nlinks;
	uint32_t *first_link;		/* of each switch */
	_Atomic uint32_t *route;	/* [from * nswitches + to]: first link */
	_Atomic uint32_t nslow;		/* links with a speed limit */

	struct port **ports;		/* host ports by peer number */
	unsigned int nports;
	uint64_t *visible;		/* lock; [peer * 4]: PEER_UP was sent */
	struct fabric_ep *eps;		/* by index in the topology */
	struct bindings *bindings;
	struct mesh *meshes;		/* by appliance; no GPUs: none */
	struct pfx *pfxs;		/* switches of that model */
	struct epf *epfs;		/* bridges on switches of that model */

	struct event_log events;
	struct engine engine;
	struct audit audit;
	struct throttle throttle;
};

int fabric_init(struct fabric *f, const struct topology *topo);
void fabric_free(struct fabric *f);

/* Object ids. */
uint32_t fabric_switch_id(struct fabric *f, unsigned int sw);
uint32_t fabric_host_id(struct fabric *f, unsigned int host);
uint32_t fabric_appliance_id(struct fabric *f, unsigned int appliance);
uint32_t fabric_ep_id(struct fabric *f, unsigned int ep);
/* The object called so; 0 if there is none. */
uint32_t fabric_find(struct fabric *f, const char *name);
/* NULL if @id is of another type. */
struct port *fabric_port_by_id(struct fabric *f, uint32_t id);
struct port *fabric_port_by_peer(struct fabric *f, unsigned int peer);
/* A host's nth, as in the topology. */
struct port *fabric_port_of(struct fabric *f, unsigned int host,
			    unsigned int index);
struct link *fabric_link_by_id(struct fabric *f, uint32_t id);
/* Index of the endpoint, or TOPO_NONE. */
unsigned int fabric_ep_by_id(struct fabric *f, uint32_t id);

/* Copy up to @max objects from id @first on; *next is where to go on or 0. */
size_t fabric_objects(struct fabric *f, unsigned int type, uint32_t first,
		      struct draco_object *out, size_t max, uint32_t *next,
		      uint64_t *seq);
/*
 * What @who knows of host ports from peer number @first on; *next as above,
 * *seq the last event that went before.
 */
size_t fabric_peers(struct fabric *f, const struct port *who,
		    unsigned int first, struct draco_peer *out, size_t max,
		    uint32_t *next, uint64_t *seq);
void fabric_object_counts(struct fabric *f, uint32_t *counts, uint64_t *seq);
void fabric_object(struct fabric *f, uint32_t id, struct draco_object *out);

/* Endpoint state; posts EP_STATE. @flags: DRACO_EVF_*. */
void fabric_ep_state(struct fabric *f, unsigned int ep, unsigned int state,
		     uint32_t bound, unsigned int slot, unsigned int flags);

/*
 * Link control. @action: DRACO_PORTC_ENABLE or DISABLE. Break: injected loss
 * of the link, or its repair.
 */
void fabric_link_control(struct fabric *f, struct link *l, unsigned int action);
void fabric_link_break(struct fabric *f, struct link *l, bool broken);
void fabric_link_slow(struct fabric *f, struct link *l, uint64_t rate);

/* A host port became READY, stopped being it, or counts a new generation. */
void fabric_port_changed(struct fabric *f, struct port *p);
/* Its peers are to see PEER_DOWN now and PEER_UP at the next change. */
void fabric_port_hide(struct fabric *f, struct port *p);

/* Are both up, and is there a path between their switches? */
bool fabric_links_joined(struct fabric *f, const struct link *a,
			 const struct link *b);
/* PEER_UP or PEER_DOWN of @p to itself: it was reset. */
void fabric_tell_itself(struct fabric *f, struct port *p, bool up);

/* Data path. Is there a path, both ends included? */
bool fabric_reachable(struct fabric *f, const struct port *a,
		      const struct port *b);
/* Slow links: nanoseconds to wait, else charges and gives *bytes to move. */
uint64_t fabric_pace(struct fabric *f, struct port *from, struct port *to,
		     uint64_t *bytes);

#endif
