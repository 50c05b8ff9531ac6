/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which endpoint is bound to which host port: the state machine between admin
 * commands, hot-plug slots and owners' answers (docs/draco.md, section 9).
 *
 * Locks: everything runs in the loop's thread, so bindings need no lock of
 * their own; object states change under fabric.lock. Admin commands are
 * handed over with binding_request() and answered with admin_finish().
 */
#ifndef EMU_BINDING_H
#define EMU_BINDING_H

#include <draco/regs.h>

#include "admin.h"
#include "fabric.h"
#include "loop.h"
#include "slot.h"

struct binding;

/* One endpoint instance in a slot, which may have others: its cookie there. */
struct plug {
	struct fabric_ep *ep;
	struct binding *binding;	/* NULL: given up, waits for emptied() */
	struct port *port;
	unsigned int slot;
	bool present;			/* plugged() has come */
	bool linked;			/* as slots_link() was told last */
	uint64_t token;			/* of the FORCE request, or 0 */
	struct plug *next, **link;	/* all there are */
};

/* State of one endpoint beyond its object. */
struct binding {
	struct fabric *fabric;
	unsigned int ep;		/* index in the topology */
	unsigned int state;		/* DRACO_EP_* */
	struct port *port;		/* bound to, or NULL */
	unsigned int slot;
	struct plug *plug;		/* NULL: nothing in a slot */
	struct admin_ref bind, unbind;	/* commands that wait */
	uint64_t token;			/* of the release request, or 0 */
	bool released;			/* the owner has said OK */
	bool placed;			/* BINDING by binding_place(): free
					 * again if it fails */
	unsigned int empty_ms;		/* for its slot to become empty */
	struct loop_timer timer;
};

struct bindings {
	struct binding *list;		/* by endpoint */
	unsigned int n;
	struct plug *plugs;		/* in slots, given up ones too */
	uint64_t last_token;
	const char *state_file;		/* NULL: not kept */
	_Atomic bool save_due;
};

/* A command of the admin queue for the loop's thread. */
struct binding_request {
	struct fabric *fabric;
	struct port *from;
	struct admin_ref ref;
	struct draco_acmd cmd;
	struct draco_holder holder;	/* RELEASE_REPLY, verdict BUSY */
};

/* plug.c: into a slot, as functions of one device. -errno with nothing changed. */
int plug_insert(struct binding *const *set, unsigned int n, struct port *p,
		unsigned int slot);
void plug_free(struct plug *plug);

int binding_init(struct fabric *f, const char *state_file);
void binding_exit(struct fabric *f);

/* Any thread; a copy of @r is taken. */
int binding_request(const struct binding_request *r);
/* Any thread: the port is no longer READY; withdraws what its owner was asked. */
void binding_port_stopped(struct port *p);
/* Any thread: an uplink went down or came up. */
void binding_uplink_changed(struct fabric *f);

/*
 * Loop thread: all that is behind the port of @ep into this slot of @p, or out
 * of the one where it is, whatever its host does with it; for switches whose
 * hosts are not asked. Both end later: pfx_endpoint_changed(). -errno with
 * nothing changed.
 */
int binding_place(struct fabric *f, unsigned int ep, struct port *p,
		  unsigned int slot);
int binding_take(struct fabric *f, unsigned int ep);

/* Loop thread: removal from the appliance and back. -errno. */
int binding_remove(struct fabric *f, unsigned int ep);
int binding_insert(struct fabric *f, unsigned int ep);

extern const struct slots_ops binding_slots_ops;

/* state.c: the state file. */
int state_save(struct fabric *f, const char *path);
/* Read what is bound, from the state file or the topology. Before slots. */
int binding_load(struct fabric *f);
/* Any thread: generations changed, have the state file written. */
void binding_save_soon(struct fabric *f);
/* For these: as if it had been bound before, with all behind its port. */
int binding_restore(struct fabric *f, unsigned int ep, struct port *p,
		    unsigned int slot);

/* ---- Between binding.c, placement.c and plug.c; loop thread ---- */

/*
 * What comes and goes with @b, which is among them unless it is GONE: all that is
 * behind the port of a switch that binds ports. At most SLOT_FUNCTIONS.
 */
unsigned int binding_companions(struct binding *b, struct binding **out);
void binding_set_state(struct binding *b, unsigned int state,
		       unsigned int flags);
/* Slots that bindings of this port have, wherever they are. */
uint64_t binding_taken_slots(struct fabric *f, struct port *p);
int binding_pick_slot(struct fabric *f, struct port *p);
/* Is there a host to look at the slot, and what is to be found in it? */
bool binding_can_plug(const struct binding *b, struct port *p);
/*
 * @b and its companions into a slot: 0 with state BINDING, or -errno with nothing
 * changed.
 */
int binding_plug_in(struct binding *b, struct port *p, unsigned int slot,
		    bool placed);
void binding_take_out(struct binding *b);

#endif
