// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: physical ports and the partitions that they are bound to. A
 * port carries what is behind that uplink of an appliance. The commands come in
 * a function's thread; what they ask for is done in the loop's, by binding.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <switchtec/mrpc.h>

#include "binding.h"
#include "fabric.h"
#include "log.h"
#include "loop.h"
#include "pfx.h"
#include "port.h"

/* For the loop's thread. */
struct job {
	struct pfx *pfx;
	unsigned int phys;
};

static const char *port_name(const struct pfx *x, unsigned int phys)
{
	return x->fabric->objects[x->fabric->links[
		x->fabric->first_link[x->sw] + phys - 1].id - 1].name;
}

struct link *pfx_link(struct pfx *x, unsigned int phys)
{
	return &x->fabric->links[x->fabric->first_link[x->sw] + phys - 1];
}

unsigned int pfx_behind(struct pfx *x, unsigned int phys, unsigned int from)
{
	for (; from < x->fabric->topo->nendpoints; from++) {
		if (x->fabric->eps[from].uplink == pfx_link(x, phys))
			return from;
	}
	return TOPO_NONE;
}

/* ---- In the loop's thread ---- */

static void finish(struct pfx *x, struct pfx_phys *ph, unsigned int result)
{
	ph->result = result;
	for (unsigned int i = 0; i < x->nparts; i++)
		pfx_event_part(x->parts[i], ph->asked, PFX_EV_BINDING);
}

static void failed(struct pfx *x, unsigned int phys, int err)
{
	log_error("port %s: not %s: %s", port_name(x, phys),
		  x->phys[phys].wanted ? "bound" : "unbound", strerror(-err));
	pthread_mutex_lock(&x->lock);
	finish(x, &x->phys[phys], MRPC_BIND_FAILED);
	pthread_mutex_unlock(&x->lock);
}

/* Done at once, if there is nothing behind the port. */
static void bind_nothing(struct pfx *x, struct pfx_phys *ph)
{
	pthread_mutex_lock(&x->lock);
	ph->part = ph->wanted ? x->parts[ph->asked] : NULL;
	ph->logical = ph->asked_logical;
	finish(x, ph, MRPC_BIND_OK);
	pthread_mutex_unlock(&x->lock);
}

static void run_job(void *arg)
{
	struct job *j = arg;
	struct pfx *x = j->pfx;
	struct pfx_phys *ph = &x->phys[j->phys];
	unsigned int ep = pfx_behind(x, j->phys, 0);
	int err = 0;

	if (ep == TOPO_NONE)
		bind_nothing(x, ph);
	else if (!ph->wanted)
		err = binding_take(x->fabric, ep);
	else
		err = binding_place(x->fabric, ep, x->parts[ph->asked]->port,
				    TOPO_FIRST_SLOT + ph->asked_logical - 1);
	if (err)
		failed(x, j->phys, err);
	free(j);
}

/* What the bindings behind a port say together; they come and go as one. */
struct summary {
	const struct binding *bound;	/* one that is, or NULL */
	bool busy;
	bool there;			/* in the appliance */
	bool used;			/* in a slot that has power, and alive */
};

static void sum_up(struct pfx *x, unsigned int phys, struct summary *sum)
{
	unsigned int ep = pfx_behind(x, phys, 0);

	for (; ep != TOPO_NONE; ep = pfx_behind(x, phys, ep + 1)) {
		const struct binding *b = &x->fabric->bindings->list[ep];

		if (b->port)
			sum->bound = b;
		sum->busy |= b->state == DRACO_EP_BINDING ||
			     b->state == DRACO_EP_RELEASING;
		sum->there |= b->state != DRACO_EP_GONE;
		sum->used |= b->state == DRACO_EP_BOUND;
	}
}

static void port_changed(struct pfx *x, unsigned int phys)
{
	struct pfx_phys *ph = &x->phys[phys];
	bool asked = ph->result == MRPC_BIND_IN_PROGRESS;
	struct summary sum = { 0 };
	const struct binding *b;

	sum_up(x, phys, &sum);
	/* Not bound before all of it is there. */
	b = asked && ph->wanted && sum.busy ? NULL : sum.bound;
	ph->part = b ? b->port->part : NULL;
	ph->logical = b ? b->slot - TOPO_FIRST_SLOT + 1 : 0;
	ph->trained = sum.bound ? sum.used : sum.there;
	ph->attaching = sum.busy && !asked;
	/* The first that is free of several is not the end. */
	if (asked && !sum.busy && (ph->wanted || !b))
		finish(x, ph, ph->wanted == (b != NULL) ? MRPC_BIND_OK :
							  MRPC_BIND_FAILED);
}

void pfx_endpoint_changed(struct fabric *f, unsigned int ep)
{
	const struct link *l = f->eps[ep].uplink;
	struct pfx *x = f->pfxs;

	while (x && x->sw != l->sw)
		x = x->next;
	if (!x)
		return;
	pthread_mutex_lock(&x->lock);
	port_changed(x, l - pfx_link(x, 1) + 1);
	pthread_mutex_unlock(&x->lock);
}

/* ---- Commands; pfx.lock held ---- */

static uint32_t start(struct pfx *x, unsigned int phys, unsigned int part,
		      unsigned int logical, bool bind)
{
	struct pfx_phys *ph = &x->phys[phys];
	struct job *j = malloc(sizeof(*j));

	if (!j)
		return MRPC_BIND_RET_CHECK;
	*j = (struct job){ x, phys };
	ph->result = MRPC_BIND_IN_PROGRESS;
	ph->asked = part;
	ph->asked_logical = logical;
	ph->wanted = bind;
	loop_defer(run_job, j);
	return 0;
}

/* The port that is bound there, or on its way; 0: none. */
static unsigned int bound_there(struct pfx *x, unsigned int part,
				unsigned int logical)
{
	for (unsigned int i = 1; i <= x->nports; i++) {
		const struct pfx_phys *ph = &x->phys[i];

		if (ph->part && ph->part->id == part && ph->logical == logical)
			return i;
		if (ph->result == MRPC_BIND_IN_PROGRESS && ph->asked == part &&
		    ph->asked_logical == logical)
			return i;
	}
	return 0;
}

static uint32_t check_place(struct pfx *x, unsigned int part,
			    unsigned int logical)
{
	if (part >= x->nparts)
		return MRPC_BIND_RET_NO_PARTITION;
	return !logical || logical > x->parts[part]->slots ?
	       MRPC_BIND_RET_NO_LOGICAL : 0;
}

static uint32_t check_port(struct pfx *x, unsigned int phys)
{
	const struct link *l;

	if (!phys || phys > x->nports)
		return MRPC_BIND_RET_NO_PORT;
	l = pfx_link(x, phys);
	if (l->kind == DRACO_PORT_HOST)
		return MRPC_BIND_RET_UPSTREAM;
	if (l->kind != DRACO_PORT_UPLINK)
		return MRPC_BIND_RET_NO_PORT;
	if (l->disabled)
		return MRPC_BIND_RET_DISABLED;
	if (x->phys[phys].result == MRPC_BIND_IN_PROGRESS)
		return MRPC_BIND_RET_IN_PROGRESS;
	return x->phys[phys].part ? MRPC_BIND_RET_PORT_BOUND : 0;
}

static uint32_t bind(struct pfx *x, const uint8_t *in)
{
	uint32_t ret = check_place(x, in[1], in[2]);

	if (!ret)
		ret = check_port(x, in[3]);
	if (!ret && bound_there(x, in[1], in[2]))
		ret = MRPC_BIND_RET_LOGICAL_BOUND;
	return ret ? ret : start(x, in[3], in[1], in[2], true);
}

static uint32_t unbind(struct pfx *x, const uint8_t *in)
{
	uint32_t ret = check_place(x, in[1], in[2]);
	unsigned int phys = ret ? 0 : bound_there(x, in[1], in[2]);

	if (ret)
		return ret;
	if (!phys)
		return MRPC_BIND_RET_NOT_BOUND;
	if (in[3] != MRPC_BIND_OPTION)
		return MRPC_BIND_RET_OPTION;
	if (x->phys[phys].result == MRPC_BIND_IN_PROGRESS ||
	    x->phys[phys].attaching)
		return MRPC_BIND_RET_IN_PROGRESS;
	return start(x, phys, in[1], in[2], false);
}

static uint32_t info(struct pfx *x, const uint8_t *in, uint8_t *out)
{
	bool all = in[1] == MRPC_BIND_ALL;
	unsigned int n = 0;

	if (!all && (!in[1] || in[1] > x->nports))
		return MRPC_BIND_RET_NO_PORT;
	for (unsigned int i = all ? 1 : in[1];
	     i <= (all ? x->nports : in[1]) && n < MRPC_BIND_PORTS; i++) {
		const struct pfx_phys *ph = &x->phys[i];
		uint8_t *e = out + 4 + 4 * n++;

		e[0] = i;
		e[1] = ph->part ? ph->part->id : MRPC_BIND_NONE;
		e[2] = ph->part ? ph->logical : MRPC_BIND_NONE;
		e[3] = ph->result | (ph->part ? MRPC_BIND_BOUND : 0);
	}
	out[0] = n;
	return 0;
}

uint32_t pfx_bind_command(struct pfx_part *p)
{
	const uint8_t *in = p->mrpc.input;

	switch (in[0]) {
	case MRPC_BIND_BIND:
		return bind(p->pfx, in);
	case MRPC_BIND_UNBIND:
		return unbind(p->pfx, in);
	case MRPC_BIND_INFO:
		return info(p->pfx, in, p->mrpc.output);
	default:
		return MRPC_BIND_RET_SUB;
	}
}
