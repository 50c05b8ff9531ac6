/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small random changes to the text of a schedule, for tests that look what
 * becomes of it.
 */
#ifndef LIB_TESTS_MUTATE_H
#define LIB_TESTS_MUTATE_H

#include <stdint.h>

#define MUTATE_ROOM	65536u	/* of the text, for changes to fit */

/* $FABREX_FUZZ_SEED, else the time; and printed. */
uint64_t mutate_time(void);
void mutate_seed(uint64_t seed);
/* 0 .. n - 1 */
uint32_t mutate_draw(uint32_t n);
/* Of the text as the library writes it: something behind its head. */
void mutate(char *text, uint32_t ranks);

#endif
