/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What dma/puppet.c shares with programs that are puppets with more commands:
 * they define puppet_more and are linked with it.
 */
#ifndef SELFTEST_PUPPET_H
#define SELFTEST_PUPPET_H

#include "raw.h"

#define PUPPET_MOST	64

struct puppet_command {
	const char *name;	/* NULL at the end */
	int words;
	void (*run)(char **w);
};

extern const struct puppet_command puppet_more[];

extern int port;
extern struct raw_mr mrs[PUPPET_MOST];
extern struct raw_queue queues[PUPPET_MOST];

/* One answer line for each command. */
void ok(const char *format, ...) __attribute__((format(printf, 1, 2)));
void answer(int err);

uint64_t num(const char *word);
unsigned int at(const char *word);
/* w: verb queue opcode flags peer mr loffset rkey roffset length imm dest key */
struct fabrex_sqe sqe_of(char **w);

#endif
