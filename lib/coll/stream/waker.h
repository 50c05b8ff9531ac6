/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the progress thread sleeps on. For background.c, which sleeps, and for
 * whoever has something for it to do: streams whose turn has come, operations
 * that begin.
 */
#ifndef LIB_COLL_STREAM_WAKER_H
#define LIB_COLL_STREAM_WAKER_H

#include <stdint.h>

/*
 * To be asked before looking for work: what is woken afterwards is not missed
 * by a sleep that is given the answer.
 */
uint32_t fxi_waker_seen(void);
/* Until the next wake, or for @ns at most; 0: without a limit. */
void fxi_waker_sleep(uint32_t seen, uint64_t ns);
/* From any thread, also one of a GPU's runtime. Does not wait. */
void fxi_waker_wake(void);
/* The same where it is early enough when a limited sleep ends by itself. */
void fxi_waker_note(void);
/* In the child of a fork. */
void fxi_waker_forked(void);

#endif
