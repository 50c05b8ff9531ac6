// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host port: the state machine that starts, stops, fails and resets it. Run as
 * the port's work on the engine; registers are in regs.c.
 */
#include "port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "binding.h"
#include "fabric.h"
#include "function.h"
#include "log.h"

static enum run_result port_run(struct work *w, bool light);

static void mr_drained(void *arg)
{
	port_kick(arg);
}

static void mr_granted(void *arg, const struct mr *mr)
{
	audit_granted(arg, mr);
}

static uint32_t link_of(struct fabric *f, unsigned int host,
			unsigned int index)
{
	const struct topo_end *e = &f->topo->hosts[host].ports[index];

	return f->first_link[e->sw] + e->port - 1;
}

int port_init(struct port *p, struct fabric *f, unsigned int peer,
	      unsigned int host, unsigned int index)
{
	const struct topo_limits *l = &f->topo->limits;
	int err;

	p->work.run = port_run;
	p->work.urgent = true;
	p->fabric = f;
	p->link = &f->links[link_of(f, host, index)];
	p->peer = peer;
	p->host = host;
	p->index = index;
	p->sibling = p;
	p->manager = f->topo->hosts[host].manager;
	p->doorbell_shift = __builtin_ctzll(l->doorbell_stride);
	memcpy(p->name, f->objects[p->link->id - 1].name, sizeof(p->name));
	pthread_mutex_init(&p->req_lock, NULL);
	pthread_cond_init(&p->stopped, NULL);
	err = admin_init(p);
	if (!err)
		err = mr_table_init(&p->mrs, l->mrs, mr_drained, p);
	p->mrs.granted = mr_granted;
	if (!err)
		err = queue_table_init(&p->queues, l->queues);
	if (!err)
		err = window_table_init(&p->windows, l->window_slots,
					l->window_slot_size);
	if (!err)
		err = event_queue_init(&p->events, l->queues + l->window_slots);
	if (err)
		port_free(p);
	return err;
}

void port_free(struct port *p)
{
	if (p->queues.slots)
		queue_destroy_all(p);
	queue_table_free(&p->queues);
	mr_table_free(&p->mrs);
	window_table_free(&p->windows);
	event_queue_free(&p->events);
	admin_free(p);
	pthread_cond_destroy(&p->stopped);
	pthread_mutex_destroy(&p->req_lock);
}

/* ---- Requests from others ---- */

void port_kick(struct port *p)
{
	engine_kick(&p->fabric->engine, &p->work);
}

void port_fail(struct port *p, uint32_t fatal)
{
	pthread_mutex_lock(&p->req_lock);
	if (!p->req.fatal)
		p->req.fatal = fatal;
	pthread_mutex_unlock(&p->req_lock);
	port_kick(p);
}

void port_request_reset(struct port *p, struct admin_ref who)
{
	pthread_mutex_lock(&p->req_lock);
	p->req.reset = true;
	if (p->req.nresets < PORT_RESET_WAITERS)
		p->req.resets[p->req.nresets++] = who;
	pthread_mutex_unlock(&p->req_lock);
	port_kick(p);
}

void port_raise(struct port *p, unsigned int vector)
{
	count(&p->counters, CNT_INTERRUPTS);
	function_raise(p->fn, vector);
}

/* ---- Transitions ---- */

static struct port_request take_request(struct port *p)
{
	struct port_request r;

	pthread_mutex_lock(&p->req_lock);
	r = p->req;
	p->req.fatal = 0;
	p->req.reset = false;
	p->req.nresets = 0;
	pthread_mutex_unlock(&p->req_lock);
	return r;
}

static void finish_resets(struct port *p)
{
	struct admin_result ok = { .status = DRACO_SC_OK };

	for (unsigned int i = 0; i < p->nresets; i++)
		admin_finish(&p->resets[i], &ok);
	p->nresets = 0;
}

static void keep_waiters(struct port *p, const struct port_request *r)
{
	for (unsigned int i = 0; i < r->nresets; i++) {
		if (p->nresets < PORT_RESET_WAITERS)
			p->resets[p->nresets++] = r->resets[i];
	}
}

static void set_fatal(struct port *p, uint32_t error)
{
	p->state = PORT_FATAL;
	atomic_store(&p->error, error);
	atomic_store(&p->status, DRACO_STATUS_FATAL);
	log_info("port %s: stopped by itself, DRACO_FATAL %u", p->name, error);
	/* The last interrupt: whoever comes to look finds FATAL. */
	port_raise(p, 0);
}

static void start(struct port *p, const struct port_request *r)
{
	if (!admin_start(p, r->size, r->sq, r->cq)) {
		set_fatal(p, DRACO_FATAL_ADMIN_RING);
		return;
	}
	event_queue_enable(&p->fabric->events, &p->events, true);
	atomic_fetch_add(&p->generation, 1);
	p->state = PORT_READY;
	atomic_store(&p->error, 0);
	atomic_store(&p->status, DRACO_STATUS_READY);
	gate_open(&p->gate);
	fabric_port_changed(p->fabric, p);
	binding_save_soon(p->fabric);
	log_info("port %s: enabled, generation %u", p->name,
		 atomic_load(&p->generation));
}

/* Nobody is inside: take everything down, then say so. */
static void finish_stop(struct port *p)
{
	uint32_t error = p->stop_error;

	if (error == DRACO_FATAL_RESET)
		queue_reset_all(p);
	event_queue_enable(&p->fabric->events, &p->events, false);
	admin_stop(p);
	queue_destroy_all(p);
	audit_port_stopped(p);
	mr_table_clear(&p->mrs);
	window_table_clear(p);
	finish_resets(p);
	if (error) {
		set_fatal(p, error);
	} else {
		p->state = PORT_STOPPED;
		atomic_store(&p->status, 0);
		log_info("port %s: disabled", p->name);
	}
	fabric_port_changed(p->fabric, p);
	binding_port_stopped(p);
}

static void finish_reset(struct port *p)
{
	fabric_port_hide(p->fabric, p);
	fabric_tell_itself(p->fabric, p, false);
	atomic_fetch_add(&p->generation, 1);
	queue_reset_all(p);
	audit_port_stopped(p);
	for (uint32_t i = 0; i < p->mrs.max; i++) {
		struct mr *mr = mr_find(&p->mrs, i);

		if (mr && !gate_is_drained(&mr->gate) && gate_close(&mr->gate))
			mr_forget_pages(mr);
	}
	p->state = PORT_READY;
	gate_open(&p->gate);
	fabric_port_changed(p->fabric, p);
	fabric_tell_itself(p->fabric, p, true);
	finish_resets(p);
	binding_save_soon(p->fabric);
}

static void begin(struct port *p, enum port_state state, uint32_t error)
{
	p->state = state;
	p->stop_error = error;
	gate_close(&p->gate);
}

/* What to do next with a port at rest or running. */
static void decide(struct port *p, const struct port_request *r)
{
	bool changed = r->epoch != p->epoch;

	switch (p->state) {
	case PORT_READY:
		if (changed)
			begin(p, PORT_STOPPING, 0);
		else if (r->fatal)
			begin(p, PORT_STOPPING, r->fatal);
		else if (r->reset)
			begin(p, PORT_RESETTING, 0);
		break;
	case PORT_FATAL:
		if (!changed)
			break;
		p->state = PORT_STOPPED;
		atomic_store(&p->error, 0);
		atomic_store(&p->status, 0);
		/* fall through */
	case PORT_STOPPED:
		p->epoch = r->epoch;
		if (changed && r->enable)
			start(p, r);
		break;
	default:
		break;
	}
	if (p->state != PORT_RESETTING && p->state != PORT_STOPPING)
		finish_resets(p);
}

/* A stop or reset under way, if everybody is out. */
static void proceed(struct port *p)
{
	if (!gate_is_drained(&p->gate))
		return;
	if (p->state == PORT_RESETTING)
		finish_reset(p);
	else
		finish_stop(p);
}

/* For those who wait in regs.c until all is quiet. */
static void report_stopped(struct port *p)
{
	pthread_mutex_lock(&p->req_lock);
	if (p->state == PORT_STOPPED && p->epoch != p->stopped_epoch) {
		p->stopped_epoch = p->epoch;
		pthread_cond_broadcast(&p->stopped);
	}
	pthread_mutex_unlock(&p->req_lock);
}

/* Until there is nothing more to do before others leave the port. */
static void step(struct port *p)
{
	struct port_request r = take_request(p);
	enum port_state before;

	keep_waiters(p, &r);
	do {
		before = p->state;
		if (before == PORT_STOPPING || before == PORT_RESETTING)
			proceed(p);
		else
			decide(p, &r);
		if (p->state == PORT_STOPPED)
			report_stopped(p);
		if (p->state == before)
			break;
		/* One stop or reset is enough for what was asked. */
		r.reset = false;
		if (before == PORT_STOPPING)
			r.fatal = 0;
	} while (true);
	if (p->state == PORT_RESETTING && r.fatal)
		port_fail(p, r.fatal);
}

static enum run_result port_run(struct work *w, bool light)
{
	struct port *p = (struct port *)w;
	bool more = false;

	(void)light;
	step(p);
	if (p->state == PORT_READY && !admin_run(p, &more)) {
		begin(p, PORT_STOPPING, DRACO_FATAL_ADMIN_RING);
		step(p);
	}
	return more ? RUN_MORE : RUN_IDLE;
}
