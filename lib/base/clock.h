/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timeouts as absolute times, so that a wait made of several sleeps ends when
 * the caller asked. For all of lib/.
 */
#ifndef LIB_CLOCK_H
#define LIB_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC. */
uint64_t fxi_now_ns(void);
/* The time @timeout_ms from now; UINT64_MAX, which never comes, if negative. */
uint64_t fxi_deadline(int timeout_ms);
/* What is left until then, for poll(2): rounded up; -1: no limit. */
int fxi_remaining_ms(uint64_t deadline);

#endif
