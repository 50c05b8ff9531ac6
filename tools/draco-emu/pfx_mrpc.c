// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: commands that a host sends to the switch's firmware, one at a
 * time for each partition.
 */
#include <string.h>

#include <switchtec/mrpc.h>

#include "pfx.h"

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

static const struct command {
	uint16_t id;
	uint32_t (*fn)(struct pfx_part *p);
} commands[] = {
	{ MRPC_ECHO, cmd_echo },
	{ MRPC_PING, cmd_ping },
};

static void run(struct pfx_part *p)
{
	struct pfx_mrpc *m = &p->mrpc;

	memset(m->output, 0, sizeof(m->output));
	m->ret = MRPC_RET_BAD_COMMAND;
	/* The upper half names a switch of a fabric; here is only this one. */
	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].id == (m->cmd & 0xffff))
			m->ret = commands[i].fn(p);
	}
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
