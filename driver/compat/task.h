/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A kernel thread that works for the calling process: in its cgroups, and gone
 * with it. Where the kernel has no such thing, it is nobody's. Included by the
 * engine.
 */
#ifndef _FABREX_COMPAT_TASK_H
#define _FABREX_COMPAT_TASK_H

#include <linux/types.h>

struct fabrex_task;

/*
 * @fn is called with the state TASK_INTERRUPTIBLE, again and again; it returns
 * false, in that state, to sleep until it is woken. @killed: the process is being
 * killed, and @fn is not called any more.
 */
struct fabrex_task *fabrex_task_start(bool (*fn)(void *arg),
				      void (*killed)(void *arg), void *arg,
				      const char *name);
void fabrex_task_wake(struct fabrex_task *task);
/* Between two rounds of work, without locks: others may run, and limits of the
 * thread's cgroups take effect.
 */
void fabrex_task_breathe(void);
/* When this returns, neither function runs. It takes as long as the process is
 * stopped or frozen.
 */
void fabrex_task_stop(struct fabrex_task *task);

#endif
