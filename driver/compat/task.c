// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads for processes: vhost's since 6.10, whose threads are told that their
 * process is killed; kernel threads before. Called by the engine.
 */
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "task.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0) && \
	IS_ENABLED(CONFIG_VHOST_TASK)
#include <linux/sched/signal.h>
#include <linux/sched/vhost_task.h>
#include <linux/task_work.h>

struct fabrex_task *fabrex_task_start(bool (*fn)(void *arg),
				      void (*killed)(void *arg), void *arg,
				      const char *name)
{
	struct vhost_task *task = vhost_task_create(fn, killed, arg, name);

	/* NULL until 6.14, an error since then. */
	if (IS_ERR_OR_NULL(task))
		return task ? ERR_CAST(task) : ERR_PTR(-ENOMEM);
	vhost_task_start(task);
	return (struct fabrex_task *)task;
}

void fabrex_task_wake(struct fabrex_task *task)
{
	vhost_task_wake((struct vhost_task *)task);
}

void fabrex_task_stop(struct fabrex_task *task)
{
	vhost_task_stop((struct vhost_task *)task);
}

/* Throttling by cpu.max is work for the way back to user mode, which these threads
 * do not take; what looks like a signal has it done.
 */
void fabrex_task_breathe(void)
{
	cond_resched();
	if (task_work_pending(current))
		set_thread_flag(TIF_NOTIFY_SIGNAL);
}

#else

struct fabrex_task {
	struct task_struct *thread;
	bool (*fn)(void *arg);
	void *arg;
};

static int fabrex_task_run(void *data)
{
	struct fabrex_task *task = data;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		if (!task->fn(task->arg))
			schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

struct fabrex_task *fabrex_task_start(bool (*fn)(void *arg),
				      void (*killed)(void *arg), void *arg,
				      const char *name)
{
	struct task_struct *thread;
	struct fabrex_task *task;

	task = kzalloc(sizeof(*task), GFP_KERNEL);
	if (!task)
		return ERR_PTR(-ENOMEM);
	task->fn = fn;
	task->arg = arg;
	thread = kthread_create(fabrex_task_run, task, "%s", name);
	if (IS_ERR(thread)) {
		kfree(task);
		return ERR_CAST(thread);
	}
	task->thread = thread;
	wake_up_process(thread);
	return task;
}

void fabrex_task_wake(struct fabrex_task *task)
{
	wake_up_process(task->thread);
}

void fabrex_task_stop(struct fabrex_task *task)
{
	kthread_stop(task->thread);
	kfree(task);
}

void fabrex_task_breathe(void)
{
	cond_resched();
}

#endif
