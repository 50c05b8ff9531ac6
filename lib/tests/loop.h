/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pairs of ports on a loopback fabric of the test's own. Only tests call it.
 */
#ifndef LIB_TESTS_LOOP_H
#define LIB_TESTS_LOOP_H

#include "test.h"

/* Like pair_open(); with pair_close() of their own. */
void loop_open(struct pair *p, const struct fabrex_queue_attr *attr);
void loop_close(struct pair *p);
/* An operation from a to b with all that its opcode needs. */
struct fabrex_op loop_op(const struct pair *p, uint8_t opcode, uint64_t length);

#endif
