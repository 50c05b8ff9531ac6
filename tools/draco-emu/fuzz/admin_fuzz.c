// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzer: registers and admin commands as a hostile host writes them. Each
 * command has to be answered, or be one that may wait; the port has to stop
 * and start whatever happened.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/rig/pair.h"

#define MAX_COMMANDS	24
#define DATA_MAX	512u

static void start(void)
{
	static bool started;

	if (started)
		return;
	started = true;
	if (!pair_start())
		abort();
	rig_host_up(B, true);
}

static bool may_wait(unsigned int opcode)
{
	return opcode == DRACO_ADM_GET_EVENTS || opcode == DRACO_ADM_UNBIND ||
	       opcode == DRACO_ADM_BIND;
}

static void help(struct draco_acmd *c, unsigned char how)
{
	if (how & 1) {
		c->flags = 0;
		c->__rsvd = 0;
	}
	if (how & 2)
		c->opcode &= 0x3f;
	if (how & 4) {
		c->data = RIG_DATA + (c->data & 0x1fff8);
		c->data_len &= 0x1ff;
	}
	if (how & 8)
		c->id %= rig_fabric.nobjects + 2;
	if (how & 16)
		c->arg[0] %= 32;
	if (how & 32)
		c->arg[1] %= 4;
	if (how & 64)
		c->id %= 4;
	/* Otherwise each of these takes its time. */
	if (c->opcode == DRACO_ADM_UNBIND)
		c->arg[0] = 1 + c->arg[0] % 3;
}

static bool still_alive(void)
{
	return (rig_read(A, DRACO_REG_STATUS) & DRACO_STATUS_READY) != 0;
}

static void one_command(const unsigned char *data, uint16_t cid)
{
	struct draco_acmd c;
	struct draco_acpl cpl;

	memcpy(&c, data + 1, 64);
	help(&c, *data);
	c.cid = cid;
	rig_post(A, &c);
	if (rig_wait(A, cid, &cpl, may_wait(c.opcode) ? 2 : RIG_HUNG) ||
	    may_wait(c.opcode) || !still_alive())
		return;
	abort();
}

static void scribble(const unsigned char *data, size_t size)
{
	for (; size >= 8; data += 8, size -= 8) {
		uint32_t offset, v;

		memcpy(&offset, data, 4);
		memcpy(&v, data + 4, 4);
		offset &= 0x3ffc;
		/* Rings anywhere, but not enabled there for long. */
		rig_write(A, offset & 0x2000 ? DRACO_REG_ADMIN_SQ_TAIL :
			     offset & 0x3c, v);
	}
}

static void restore(void)
{
	for (unsigned int i = 0; i < rig_fabric.nlinks; i++) {
		if (rig_fabric.links[i].disabled)
			fabric_link_control(&rig_fabric, &rig_fabric.links[i],
					    DRACO_PORTC_ENABLE);
	}
	if (!rig_disable(A) || !rig_enable(A))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size < DATA_MAX ? size : DATA_MAX;
	uint16_t cid = 1;

	start();
	if (n)
		memcpy(rig_data(A), data + size - n, n);
	while (size >= 65 && cid <= MAX_COMMANDS && still_alive()) {
		one_command(data, cid++);
		data += 65;
		size -= 65;
	}
	scribble(data, size);
	restore();
	return 0;
}
