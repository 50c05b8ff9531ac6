/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The control side's event loop: file descriptors, timers, deferred work. One
 * thread (the main one) runs it; only loop_defer() and loop_quit() may be
 * called from others.
 */
#ifndef EMU_LOOP_H
#define EMU_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* Milliseconds and nanoseconds of CLOCK_MONOTONIC. */
uint64_t loop_now_ms(void);
uint64_t loop_now_ns(void);

int loop_init(void);
/* Runs until loop_quit(). May be run again. */
void loop_run(void);
void loop_quit(void);
void loop_free(void);

/* @events: EPOLLIN | EPOLLOUT ... The handle may be removed in a callback. */
struct loop_fd;
typedef void (*loop_fd_fn)(void *arg, uint32_t events);
struct loop_fd *loop_fd_add(int fd, uint32_t events, loop_fd_fn fn, void *arg);
void loop_fd_events(struct loop_fd *h, uint32_t events);
void loop_fd_del(struct loop_fd *h);		/* does not close fd */

/* One-shot. Embedded by the user, zeroed before first use. */
struct loop_timer {
	void (*fn)(void *arg);
	void *arg;
	uint64_t due_ms;
	bool active;
	struct loop_timer *next;
};
void loop_timer_start(struct loop_timer *t, uint64_t ms,
		      void (*fn)(void *arg), void *arg);
void loop_timer_stop(struct loop_timer *t);

/*
 * Run fn(arg) in the loop's thread soon, in the order of the calls. Any
 * thread. Not run while loop_run() is not.
 */
void loop_defer(void (*fn)(void *arg), void *arg);

#endif
