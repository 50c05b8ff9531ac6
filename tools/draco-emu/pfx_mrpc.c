// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: commands that a host sends to the switch's firmware, one at a
 * time for each partition.
 */
#include <string.h>

#include <switchtec/mrpc.h>

#include "fabric.h"
#include "pfx.h"
#include "port.h"

#define LTSSM_L0	3u

/* ---- Commands. They return MRPC_RET_*, with the output filled in ---- */

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static uint32_t cmd_echo(struct pfx_part *p)
{
	put32(p->mrpc.output, ~get32(p->mrpc.input));
	return 0;
}

static uint32_t cmd_ping(struct pfx_part *p)
{
	put32(p->mrpc.output, MRPC_PING_MAIN | MRPC_PING_GEN4 << 12);
	put32(p->mrpc.output + 4, ~get32(p->mrpc.input));
	return 0;
}

static uint32_t cmd_counters(struct pfx_part *p)
{
	/* Nothing counts here; all are 0. */
	return p->mrpc.input[0] == 1 ? 0 : MRPC_RET_BAD_SUB;
}

/* The partition that a port leads to or is bound to. */
static void put_place(struct pfx_part *p, unsigned int phys, uint8_t *e)
{
	const struct pfx_phys *ph = &p->pfx->phys[phys];
	const struct link *l = pfx_link(p->pfx, phys);

	e[1] = e[2] = MRPC_BIND_NONE;
	if (l->kind == DRACO_PORT_HOST) {
		e[1] = p->pfx->fabric->ports[l->peer]->part->id;
		e[2] = 0;
	} else if (ph->part) {
		e[1] = ph->part->id;
		e[2] = ph->logical;
	}
}

/* A cable alone is no link: it takes a host, or what a host may use. */
static bool link_up(const struct pfx *x, unsigned int phys,
		    const struct link *l)
{
	const struct pfx_part *host = l->kind == DRACO_PORT_HOST ?
				      x->fabric->ports[l->peer]->part : NULL;

	return atomic_load(&l->up) &&
	       (host ? host->attached : x->phys[phys].trained);
}

static void put_link(struct pfx_part *p, unsigned int phys, uint8_t *e)
{
	const struct topo_switch *s =
		&p->pfx->fabric->topo->switches[p->pfx->sw];
	const struct link *l = pfx_link(p->pfx, phys);
	bool up = link_up(p->pfx, phys, l);

	e[0] = phys;
	put_place(p, phys, e);
	e[3] = phys - 1;		/* all in the first stack */
	e[4] = s->width;
	e[5] = up ? s->width : 0;
	e[6] = l->kind == DRACO_PORT_HOST;
	e[7] = port_link_speed(s) | (up ? MRPC_LINKS_UP : 0);
	e[8] = up ? LTSSM_L0 : 0;
}

static uint32_t cmd_links(struct pfx_part *p)
{
	uint64_t wanted = get32(p->mrpc.input) |
			  (uint64_t)get32(p->mrpc.input + 4) << 32;
	unsigned int n = 0;

	for (unsigned int i = 1; i <= p->pfx->nports &&
	     n < MRPC_LINKS_PORTS; i++) {
		if (!wanted || wanted >> (i & 63) & 1)
			put_link(p, i, p->mrpc.output + MRPC_LINKS_SIZE * n++);
	}
	for (; n < MRPC_LINKS_PORTS; n++)
		p->mrpc.output[MRPC_LINKS_SIZE * n + 3] = MRPC_LINKS_NOBODY;
	return 0;
}

static bool may(const struct pfx_part *p, uint32_t cmd)
{
	return p->port->manager || cmd != MRPC_BIND;
}

/* Of the command that is named: a bit for each partition. */
static uint32_t cmd_permission(struct pfx_part *p)
{
	uint64_t who = 0;

	for (unsigned int i = 0; i < p->pfx->nparts; i++) {
		if (may(p->pfx->parts[i], get32(p->mrpc.input) & 0xffff))
			who |= 1ull << i;
	}
	put32(p->mrpc.output, (uint32_t)who);
	put32(p->mrpc.output + 4, (uint32_t)(who >> 32));
	return 0;
}

static const struct command {
	uint16_t id;
	uint32_t (*fn)(struct pfx_part *p);
} commands[] = {
	{ MRPC_COUNTERS, cmd_counters },
	{ MRPC_BIND, pfx_bind_command },
	{ MRPC_LINKS, cmd_links },
	{ MRPC_PERMISSION, cmd_permission },
	{ MRPC_ECHO, cmd_echo },
	{ MRPC_PING, cmd_ping },
};

static uint32_t execute(struct pfx_part *p, uint32_t cmd)
{
	/* Whoever may not bind may look. */
	if (!may(p, cmd) && p->mrpc.input[0] != MRPC_BIND_INFO)
		return MRPC_RET_DENIED;
	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].id == cmd)
			return commands[i].fn(p);
	}
	return MRPC_RET_BAD_COMMAND;
}

static void run(struct pfx_part *p)
{
	struct pfx_mrpc *m = &p->mrpc;
	/* The upper half names a switch of a fabric; here is only this one. */
	uint32_t cmd = m->cmd & 0xffff;
	const struct pfx_fault *f = pfx_fault_before(p, cmd);

	memset(m->output, 0, sizeof(m->output));
	m->status = MRPC_IN_PROGRESS;
	if (f && f->kind == PFX_FAULT_HANG)
		return;
	m->ret = f ? f->value : execute(p, cmd);
	pfx_fault_answer(p, cmd);
	m->status = m->ret ? MRPC_ERROR : MRPC_DONE;
	pfx_event_part(p, p->id, PFX_EV_MRPC);
}

/* ---- Registers ---- */

uint32_t pfx_mrpc_read(struct pfx_part *p, uint32_t offset)
{
	const struct pfx_mrpc *m = &p->mrpc;

	if (offset < MRPC_OUTPUT)
		return get32(m->input + offset);
	if (offset < MRPC_CMD)
		return get32(m->output + offset - MRPC_OUTPUT);
	switch (offset) {
	case MRPC_CMD:
		return m->cmd;
	case MRPC_STATUS:
		return m->status;
	case MRPC_RETURN:
		return m->ret;
	default:
		return 0;	/* no DMA of answers */
	}
}

void pfx_mrpc_write(struct pfx_part *p, uint32_t offset, uint32_t v,
		    uint32_t mask)
{
	struct pfx_mrpc *m = &p->mrpc;

	if (m->status == MRPC_IN_PROGRESS)
		return;
	if (offset < MRPC_OUTPUT) {
		put32(m->input + offset,
		      pfx_merge(get32(m->input + offset), v, mask));
	} else if (offset == MRPC_CMD) {
		m->cmd = v & mask;
		run(p);
	}
}

void pfx_mrpc_reset(struct pfx_part *p)
{
	memset(&p->mrpc, 0, sizeof(p->mrpc));
}
