/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A Switchtec PFX in this process, and a machine of files that is its host a:
 * answers as the switch would, unless it is told to answer otherwise.
 */
#ifndef TESTS_PFX_H
#define TESTS_PFX_H

#include "../../../lib/tests/machine.h"
#include "switchtec/answer.h"
#include "switchtec/switchtec.h"

#define PFX_PORTS	11	/* physical ports from 1 to 10 */
#define PFX_SWITCHES	3

/* Ports 1 to 3 are hosts a, b, c in the partitions 4, 5, 6. */
struct pfx_fake {
	struct {
		uint8_t partition, logical, result;
		bool bound, down;
	} port[PFX_PORTS];
	unsigned int commands, changes, binds, unbinds;
	uint32_t refuse;	/* what bind and unbind return, if not 0 */
	unsigned int refuse_at;	/* only the nth change; 0: all */
	unsigned int taken;	/* so many times another manager is faster */
	unsigned int slow;	/* questions until a change is over */
	bool silent;
	unsigned int lose_at;	/* the answer to the nth change is lost */
	int lose_kind;		/* with that error; 0: ETIMEDOUT */
	unsigned int busy;	/* so many commands are not taken */
	bool switched;		/* another port is where port 7 was, meanwhile */
	/* Changes an answer; NULL: none is changed. */
	void (*spoil)(uint32_t command, uint8_t *out, size_t len);
};

extern struct pfx_fake pfx_fake;
extern struct machine pfx_machine;
/* The file that the machine has. */
extern const char pfx_topology[];

/* A machine and a switch as after power-on. Sets FABREX_ROOT. */
struct backend *pfx_start(void);
void pfx_finish(struct backend *b);
/* A GPU below the bridge of a's logical port; function 0 to 7. */
void pfx_plug(unsigned int logical, unsigned int function);
/* "1" or "0": power of the slot there. */
char pfx_power(unsigned int logical);
mrpc_fn pfx_command;

#endif
