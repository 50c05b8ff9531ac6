/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A loopback port with regions and a queue that anything may be done to, for
 * tests where a peer dies or misbehaves (loop_death.c, loop_hostile.c).
 */
#ifndef TEST_SITE_H
#define TEST_SITE_H

#include "party.h"

#define LENGTH	(1u << 20)	/* of each region */

/* What two processes tell each other before one writes to the other. */
struct card {
	struct fabrex_remote heap, plain;
	uint32_t queue;
	uint64_t key;
};

/* A port with everything that can be written to. */
struct site {
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_mr *heap, *plain;
	char *memory;
};

uint32_t site_random(uint32_t below);
void site_open(struct site *s, const char *name, struct card *card);
struct fabrex_op site_any_op(const struct site *s, const struct card *to);
int site_do(struct site *s, const struct fabrex_op *op);
void site_drain(struct site *s);
void site_check_alive(struct site *a, struct site *b, const struct card *to);

#endif
