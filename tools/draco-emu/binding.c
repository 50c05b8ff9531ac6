// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bindings: commands, hot-plug slots and owners' answers drive one small state
 * machine for each endpoint. Everything here runs in the loop's thread but
 * binding_request(), binding_port_stopped() and binding_uplink_changed().
 */
#include "binding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "pfx.h"
#include "port.h"

#define PRESENCE_MS	20000	/* for a slot to show presence */
#define ANSWER_MS	5000	/* for the owner, if the command does not say */
#define LIMIT_MAX_MS	600000
#define EMPTY_MS	10000	/* from its OK to an empty slot, likewise */
#define EJECT_MS	2000	/* then press the slot's button */

static const char *name_of(struct binding *b)
{
	return b->fabric->topo->endpoints[b->ep].name;
}

/* ---- Small steps ---- */

void binding_set_state(struct binding *b, unsigned int state,
		       unsigned int flags)
{
	bool bound = b->port != NULL;

	b->state = state;
	fabric_ep_state(b->fabric, b->ep, state, bound ? b->port->link->id : 0,
			bound ? b->slot : 0, flags);
	log_debug("endpoint %s: state %u, port %s, slot %u", name_of(b), state,
		  bound ? b->port->name : "-", bound ? b->slot : 0);
	pfx_endpoint_changed(b->fabric, b->ep);
	binding_save_soon(b->fabric);
}

static void finish(struct admin_ref *ref, unsigned int status,
		   uint64_t result, const struct draco_holder *holder)
{
	struct admin_result r = { .status = status, .result = result };

	if (!ref->serial)
		return;
	if (holder) {
		r.has_holder = true;
		r.holder = *holder;
	}
	admin_finish(ref, &r);
	memset(ref, 0, sizeof(*ref));
}

static void answer(struct binding_request *r, unsigned int status,
		   uint64_t result)
{
	finish(&r->ref, status, result, NULL);
}

/* The owner need not answer any more, or has. */
static void forget_request(struct binding *b)
{
	if (b->port)
		event_met(b->port, b->token);
	b->token = 0;
}

/* Nobody's any more; whatever is in the slot has been dealt with. */
static void become_free(struct binding *b, unsigned int state,
			unsigned int flags)
{
	loop_timer_stop(&b->timer);
	forget_request(b);
	b->port = NULL;
	b->slot = 0;
	b->released = b->placed = false;
	binding_set_state(b, state, flags);
}

/* The instance stops answering now; its slot is emptied on its own time. */
static void drop_plug(struct binding *b)
{
	struct plug *plug = b->plug;

	if (!plug)
		return;
	b->plug = NULL;
	plug->binding = NULL;
	slots_kill(plug->port->slots, plug->slot, plug);
}

static void back_to_bound(struct binding *b)
{
	loop_timer_stop(&b->timer);
	forget_request(b);
	b->released = false;
	binding_set_state(b, b->plug ? DRACO_EP_BOUND : DRACO_EP_ATTACHING, 0);
}

static bool answers(const struct binding *b)
{
	return atomic_load(&b->fabric->eps[b->ep].answers);
}

static bool host_up(struct port *p)
{
	return p->slots && slots_host_up(p->slots);
}

/* ---- What owners are told ---- */

/* @plug: what is in the slot. Without, a FORCE request is only news. */
static void ask_owner(struct binding *b, const struct plug *plug, uint64_t ms,
		      unsigned int flags)
{
	struct draco_event ev = {
		.type = DRACO_EV_RELEASE_REQUEST,
		.obj_type = DRACO_OBJ_ENDPOINT,
		.flags = flags,
		.object = fabric_ep_id(b->fabric, b->ep),
		.port = b->port->link->id,
		.state = b->state,
		.arg = { b->token, b->slot, ms },
	};

	if (flags & DRACO_EVF_FORCE && !plug)
		event_post_one(b->fabric, &ev, b->port->peer);
	else
		event_request(b->port, &ev);
}

/* That it has been taken away; known until the slot is empty. */
static void tell_owner(struct binding *b, struct plug *plug,
		       unsigned int flags)
{
	b->token = ++b->fabric->bindings->last_token;
	ask_owner(b, plug, 0, flags | DRACO_EVF_FORCE);
	if (plug)
		plug->token = b->token;
	b->token = 0;
}

/* ---- Plugging in ---- */

/* What is in the slot by now is dead: its owner has to power it off. */
static void give_up_bind(struct binding *b, unsigned int status)
{
	struct plug *plug = b->plug;

	drop_plug(b);
	b->state = DRACO_EP_FREE;
	if (plug)
		tell_owner(b, plug, 0);
	become_free(b, DRACO_EP_FREE, 0);
	finish(&b->bind, status, 0, NULL);
}

static void on_presence_timeout(void *arg)
{
	struct binding *b = arg;

	log_error("endpoint %s: slot %u of port %s shows no presence after %u s; given up",
		  name_of(b), b->slot, b->port->name, PRESENCE_MS / 1000);
	give_up_bind(b, DRACO_SC_TIMEOUT);
}

bool binding_can_plug(const struct binding *b, struct port *p)
{
	return host_up(p) && answers(b);
}

int binding_plug_in(struct binding *b, struct port *p, unsigned int slot,
		    bool placed)
{
	struct binding *set[SLOT_FUNCTIONS];
	unsigned int n = binding_companions(b, set);
	int err = plug_insert(set, n, p, slot);

	if (err)
		return err;
	for (unsigned int i = 0; i < n; i++) {
		set[i]->port = p;
		set[i]->slot = slot;
		set[i]->placed = placed;
		binding_set_state(set[i], DRACO_EP_BINDING, 0);
		loop_timer_start(&set[i]->timer, PRESENCE_MS,
				 on_presence_timeout, set[i]);
	}
	return 0;
}

/* Slots that bindings of this port have, wherever they are. */
uint64_t binding_taken_slots(struct fabric *f, struct port *p)
{
	uint64_t mask = 0;

	for (unsigned int i = 0; i < f->bindings->n; i++) {
		if (f->bindings->list[i].port == p)
			mask |= 1ull << f->bindings->list[i].slot;
	}
	return mask;
}

int binding_pick_slot(struct fabric *f, struct port *p)
{
	uint64_t taken = binding_taken_slots(f, p);
	unsigned int n = f->topo->hosts[p->host].slots;

	if (p->slots)
		return slots_pick(p->slots, taken);
	for (unsigned int s = TOPO_FIRST_SLOT; s < TOPO_FIRST_SLOT + n; s++) {
		if (!(taken >> s & 1))
			return s;
	}
	return -ENOSPC;
}

static unsigned int check_bind(struct binding *b, struct port *p)
{
	switch (b->state) {
	case DRACO_EP_GONE:
		return DRACO_SC_GONE;
	case DRACO_EP_BINDING:
	case DRACO_EP_RELEASING:
		return DRACO_SC_IN_PROGRESS;
	case DRACO_EP_BOUND:
	case DRACO_EP_ATTACHING:
		return DRACO_SC_BOUND;
	default:
		break;
	}
	return fabric_links_joined(b->fabric, b->fabric->eps[b->ep].uplink,
				   p->link) ? DRACO_SC_OK : DRACO_SC_LINK_DOWN;
}

static void bind_now(struct binding *b, struct binding_request *r,
		     struct port *p, unsigned int slot)
{
	if (!host_up(p)) {
		b->port = p;
		b->slot = slot;
		binding_set_state(b, DRACO_EP_ATTACHING, 0);
		answer(r, DRACO_SC_OK, slot);
	} else if (binding_plug_in(b, p, slot, false)) {
		answer(r, DRACO_SC_INTERNAL, 0);
	} else {
		b->bind = r->ref;
	}
}

static void do_bind(struct binding_request *r)
{
	struct fabric *f = r->fabric;
	unsigned int ep = fabric_ep_by_id(f, r->cmd.id);
	uint64_t id = r->cmd.arg[0];
	struct port *p = id <= UINT32_MAX ? fabric_port_by_id(f, id) : NULL;
	unsigned int status = DRACO_SC_BAD_ID;
	int slot = 0;

	if (ep != TOPO_NONE && p)
		status = check_bind(&f->bindings->list[ep], p);
	if (!status) {
		slot = binding_pick_slot(f, p);
		status = slot < 0 ? DRACO_SC_NO_SLOT : DRACO_SC_OK;
	}
	if (status)
		answer(r, status, 0);
	else if (r->cmd.flags & DRACO_BINDF_DRY_RUN)
		answer(r, DRACO_SC_OK, slot);
	else
		bind_now(&f->bindings->list[ep], r, p, slot);
}

/* ---- Letting go ---- */

static void on_release_timeout(void *arg)
{
	struct binding *b = arg;

	log_info("endpoint %s: its owner did not answer; still bound to %s",
		 name_of(b), b->port->name);
	back_to_bound(b);
	finish(&b->unbind, DRACO_SC_TIMEOUT, 0, NULL);
}

/* Its host takes it away, sooner or later: only the command is over. */
static void on_empty_timeout(void *arg)
{
	struct binding *b = arg;

	log_info("endpoint %s: slot %u of port %s is not empty yet",
		 name_of(b), b->slot, b->port->name);
	finish(&b->unbind, DRACO_SC_TIMEOUT, 1, NULL);
}

static void on_not_empty(void *arg)
{
	struct binding *b = arg;

	if (b->plug)
		slots_eject(b->port->slots, b->plug->slot);
	loop_timer_start(&b->timer, b->empty_ms - EJECT_MS, on_empty_timeout,
			 b);
}

static void wait_until_empty(struct binding *b)
{
	if (b->empty_ms > EJECT_MS)
		loop_timer_start(&b->timer, EJECT_MS, on_not_empty, b);
	else
		loop_timer_start(&b->timer, b->empty_ms, on_empty_timeout, b);
}

/* As if pulled out, whatever is under way. */
static void force(struct binding *b, unsigned int state, unsigned int flags)
{
	struct plug *plug = b->plug;

	drop_plug(b);
	forget_request(b);
	if (b->port) {
		b->state = state;
		tell_owner(b, plug, flags);
	}
	become_free(b, state, flags);
	finish(&b->bind, DRACO_SC_ABORTED, 0, NULL);
	finish(&b->unbind, DRACO_SC_OK, 0, NULL);
}

static void release_at_once(struct binding *b)
{
	struct plug *plug = b->plug;

	drop_plug(b);
	forget_request(b);
	/* Nobody is there to hear it now: it is asked for later. */
	if (plug)
		tell_owner(b, plug, 0);
	become_free(b, DRACO_EP_FREE, 0);
	finish(&b->unbind, DRACO_SC_OK, 0, NULL);
}

/* A time limit of a command; 0: it names none. */
static unsigned int limit_ms(uint64_t ms, unsigned int usual)
{
	if (!ms)
		return usual;
	return ms < LIMIT_MAX_MS ? ms : LIMIT_MAX_MS;
}

static void start_release(struct binding *b, unsigned int ms)
{
	b->token = ++b->fabric->bindings->last_token;
	b->released = false;
	binding_set_state(b, DRACO_EP_RELEASING, 0);
	ask_owner(b, b->plug, ms, 0);
	loop_timer_start(&b->timer, ms, on_release_timeout, b);
}

/* By its owner, and nobody waits for its slot any more. */
static bool let_go(const struct binding *b)
{
	return b->state == DRACO_EP_RELEASING && b->released &&
	       !b->unbind.serial;
}

static unsigned int check_unbind(struct binding *b, bool forced)
{
	if (b->state == DRACO_EP_GONE)
		return DRACO_SC_GONE;
	if (b->state == DRACO_EP_FREE)
		return DRACO_SC_NOT_BOUND;
	if (forced || let_go(b))
		return DRACO_SC_OK;
	return b->state == DRACO_EP_BINDING || b->state == DRACO_EP_RELEASING ?
	       DRACO_SC_IN_PROGRESS : DRACO_SC_OK;
}

static void unbind_now(struct binding *b, struct binding_request *r,
		       bool forced)
{
	bool again;

	if (forced) {
		force(b, DRACO_EP_FREE, 0);
		answer(r, DRACO_SC_OK, 0);
		return;
	}
	again = let_go(b);
	b->unbind = r->ref;
	b->empty_ms = limit_ms(r->cmd.arg[1], EMPTY_MS);
	if (b->state == DRACO_EP_ATTACHING || !port_is_ready(b->port))
		release_at_once(b);
	else if (again)
		wait_until_empty(b);
	else
		start_release(b, limit_ms(r->cmd.arg[0], ANSWER_MS));
}

static void do_unbind(struct binding_request *r)
{
	struct fabric *f = r->fabric;
	unsigned int ep = fabric_ep_by_id(f, r->cmd.id);
	bool forced = r->cmd.flags & DRACO_BINDF_FORCE;
	unsigned int status = DRACO_SC_BAD_ID;

	if (ep != TOPO_NONE)
		status = check_unbind(&f->bindings->list[ep], forced);
	if (status || r->cmd.flags & DRACO_BINDF_DRY_RUN)
		answer(r, status, 0);
	else
		unbind_now(&f->bindings->list[ep], r, forced);
}

static void owner_agrees(struct binding *b)
{
	b->released = true;
	forget_request(b);
	if (b->plug) {
		wait_until_empty(b);
		return;
	}
	become_free(b, DRACO_EP_FREE, 0);
	finish(&b->unbind, DRACO_SC_OK, 0, NULL);
}

static void owner_refuses(struct binding *b, struct draco_holder *h)
{
	h->port = b->port->link->id;
	back_to_bound(b);
	finish(&b->unbind, DRACO_SC_BUSY, 0, h);
}

static void do_reply(struct binding_request *r)
{
	struct fabric *f = r->fabric;
	unsigned int ep = fabric_ep_by_id(f, r->cmd.id);
	struct binding *b = ep != TOPO_NONE ? &f->bindings->list[ep] : NULL;

	if (!b) {
		answer(r, DRACO_SC_BAD_ID, 0);
	} else if (b->port != r->from) {
		answer(r, DRACO_SC_NOT_BOUND, 0);
	} else if (b->state != DRACO_EP_RELEASING || b->released ||
		   b->token != r->cmd.arg[0]) {
		answer(r, DRACO_SC_TIMEOUT, 0);
	} else {
		answer(r, DRACO_SC_OK, 0);
		if (r->cmd.arg[1] == DRACO_RELEASE_BUSY)
			owner_refuses(b, &r->holder);
		else
			owner_agrees(b);
	}
}

/* ---- Withdrawing ---- */

static bool same(const struct admin_ref *a, const struct admin_ref *b)
{
	return a->serial && a->port == b->port && a->serial == b->serial;
}

static void do_abort(struct binding_request *r)
{
	struct bindings *all = r->fabric->bindings;

	for (unsigned int i = 0; i < all->n; i++) {
		struct binding *b = &all->list[i];

		if (same(&b->bind, &r->ref)) {
			give_up_bind(b, DRACO_SC_ABORTED);
		} else if (same(&b->unbind, &r->ref) && !b->released) {
			back_to_bound(b);
			finish(&b->unbind, DRACO_SC_ABORTED, 0, NULL);
		}
	}
}

static void run_request(void *arg)
{
	struct binding_request *r = arg;

	switch (r->cmd.opcode) {
	case DRACO_ADM_BIND:
		do_bind(r);
		break;
	case DRACO_ADM_UNBIND:
		do_unbind(r);
		break;
	case DRACO_ADM_RELEASE_REPLY:
		do_reply(r);
		break;
	case DRACO_ADM_ABORT:
		do_abort(r);
		break;
	}
	free(r);
}

int binding_request(const struct binding_request *r)
{
	struct binding_request *copy = malloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *r;
	loop_defer(run_request, copy);
	return 0;
}

/* ---- What slots report ---- */

/* The plug failed: refused by QEMU, or QEMU went away with it? */
static void after_failed_plug(void *arg)
{
	struct binding *b = arg;

	if (b->state != DRACO_EP_BINDING || b->plug)
		return;
	loop_timer_stop(&b->timer);
	if (host_up(b->port) && (b->bind.serial || b->placed)) {
		become_free(b, DRACO_EP_FREE, 0);
		finish(&b->bind, DRACO_SC_INTERNAL, 0, NULL);
		return;
	}
	b->placed = false;
	binding_set_state(b, DRACO_EP_ATTACHING, 0);
	finish(&b->bind, DRACO_SC_OK, b->slot, NULL);
}

static void on_plugged(void *arg, unsigned int slot, void *cookie, int err)
{
	struct plug *plug = cookie;
	struct binding *b = plug->binding;

	(void)arg;
	plug->present = !err;
	if (err) {
		plug_free(plug);
		if (b) {
			b->plug = NULL;
			loop_defer(after_failed_plug, b);
		}
		return;
	}
	if (!b)
		return;
	if (b->bind.serial && !answers(b)) {
		give_up_bind(b, DRACO_SC_LINK_DOWN);
		return;
	}
	loop_timer_stop(&b->timer);
	b->placed = false;
	binding_set_state(b, DRACO_EP_BOUND, 0);
	finish(&b->bind, DRACO_SC_OK, slot, NULL);
}

static void on_emptied(void *arg, unsigned int slot, void *cookie)
{
	struct plug *plug = cookie;
	struct binding *b = plug->binding;

	(void)arg;
	(void)slot;
	plug_free(plug);
	if (!b)
		return;
	b->plug = NULL;
	if (b->state == DRACO_EP_RELEASING && b->released) {
		become_free(b, DRACO_EP_FREE, 0);
		finish(&b->unbind, DRACO_SC_OK, 0, NULL);
	} else if (b->state == DRACO_EP_BOUND) {
		binding_set_state(b, DRACO_EP_ATTACHING, 0);
	}
}

/* A host that finds a slot full and nobody who answers does not look again. */
static void attach(struct binding *b)
{
	int err = answers(b) ? binding_plug_in(b, b->port, b->slot, false) : 0;

	if (err)
		log_error("endpoint %s: not plugged into slot %u of port %s: %s; tried again when its host comes up",
			  name_of(b), b->slot, b->port->name, strerror(-err));
}

static void on_host(void *arg, bool up)
{
	struct port *p = arg;
	struct bindings *all = p->fabric->bindings;

	for (unsigned int i = 0; up && i < all->n; i++) {
		struct binding *b = &all->list[i];

		if (b->port == p && b->state == DRACO_EP_ATTACHING)
			attach(b);
	}
}

/* What is behind the uplink answers ones, or again, before anyone may use it. */
static void follow_uplink(struct fabric *f, struct fabric_ep *ep)
{
	bool up = atomic_load(&ep->uplink->up);
	uint32_t downs = atomic_load(&ep->downs);

	for (struct plug *p = f->bindings->plugs; p; p = p->next) {
		if (p->ep != ep || p->linked == up)
			continue;
		p->linked = up;
		slots_link(p->port->slots, p->slot, p, up);
	}
	/* Down again meanwhile: there is another call to come. */
	pthread_mutex_lock(&f->lock);
	if (atomic_load(&ep->uplink->up) && atomic_load(&ep->downs) == downs &&
	    up)
		atomic_store(&ep->answers, true);
	pthread_mutex_unlock(&f->lock);
}

static void uplinks_changed(void *arg)
{
	struct fabric *f = arg;

	for (unsigned int i = 0; f->bindings && i < f->bindings->n; i++) {
		struct binding *b = &f->bindings->list[i];

		follow_uplink(f, &f->eps[i]);
		if (b->state == DRACO_EP_ATTACHING && b->port &&
		    host_up(b->port))
			attach(b);
	}
}

void binding_uplink_changed(struct fabric *f)
{
	if (f->bindings)
		loop_defer(uplinks_changed, f);
}

const struct slots_ops binding_slots_ops = {
	.plugged = on_plugged,
	.emptied = on_emptied,
	.host = on_host,
};

static void port_stopped(void *arg)
{
	struct port *p = arg;
	struct bindings *all = p->fabric->bindings;

	for (unsigned int i = 0; all && i < all->n; i++) {
		struct binding *b = &all->list[i];

		if (b->port == p && b->state == DRACO_EP_RELEASING)
			release_at_once(b);
	}
}

void binding_port_stopped(struct port *p)
{
	loop_defer(port_stopped, p);
}

/* Its host is not asked; over when the slot is empty. */
void binding_take_out(struct binding *b)
{
	if (!b->plug) {
		become_free(b, DRACO_EP_FREE, 0);
		return;
	}
	b->released = true;
	binding_set_state(b, DRACO_EP_RELEASING, 0);
	slots_kill(b->port->slots, b->slot, b->plug);
}

/* ---- The appliance ---- */

int binding_remove(struct fabric *f, unsigned int ep)
{
	struct binding *b = &f->bindings->list[ep];

	if (b->state == DRACO_EP_GONE)
		return -ENODEV;
	force(b, DRACO_EP_GONE, DRACO_EVF_SURPRISE);
	return 0;
}

int binding_insert(struct fabric *f, unsigned int ep)
{
	struct binding *b = &f->bindings->list[ep];

	if (b->state != DRACO_EP_GONE)
		return -EEXIST;
	binding_set_state(b, DRACO_EP_FREE, 0);
	return 0;
}

/* ---- Start and end ---- */

int binding_init(struct fabric *f, const char *state_file)
{
	struct bindings *all = calloc(1, sizeof(*all));
	unsigned int n = f->topo->nendpoints;

	if (!all)
		return -ENOMEM;
	all->list = calloc(n + 1, sizeof(*all->list));
	if (!all->list) {
		free(all);
		return -ENOMEM;
	}
	all->n = n;
	all->state_file = state_file;
	for (unsigned int i = 0; i < n; i++) {
		all->list[i].fabric = f;
		all->list[i].ep = i;
	}
	f->bindings = all;
	return 0;
}

void binding_exit(struct fabric *f)
{
	if (!f->bindings)
		return;
	if (f->bindings->state_file)
		state_save(f, f->bindings->state_file);
	for (unsigned int i = 0; i < f->bindings->n; i++)
		loop_timer_stop(&f->bindings->list[i].timer);
	while (f->bindings->plugs)
		plug_free(f->bindings->plugs);
	free(f->bindings->list);
	free(f->bindings);
	f->bindings = NULL;
}
