// SPDX-License-Identifier: GPL-2.0-only
/*
 * What must not happen while the machine falls asleep. Called by the PM core and
 * by dmabuf.c.
 *
 * Before the machine sleeps, drivers of GPUs empty their memory: some when the
 * PM notifiers are called, with processes still running, and all in .prepare(),
 * when processes and freezable workqueues do not run any more. Mapping their
 * buffers would bring them straight back. So nothing is mapped, neither again
 * nor for a new region, from the first notifier that is called before the sleep
 * to the last one that is called after it, when those drivers are done too.
 */
#include <linux/rwsem.h>
#include <linux/suspend.h>
#include <linux/wait.h>

#include "dmabuf.h"

/* Held for writing to change it, for reading while something is mapped. */
static DECLARE_RWSEM(fabrex_sleep_lock);
static bool fabrex_asleep;
static DECLARE_WAIT_QUEUE_HEAD(fabrex_awake);
/* Nobody has refused to sleep: the last notifier was called. The PM core calls
 * both of ours in turn, so that this needs no lock.
 */
static bool fabrex_sleep_agreed;

/**
 * fabrex_stay_awake() - the machine is not to fall asleep just now
 *
 * Below a dma_resv, or with none to be waited for until fabrex_may_sleep().
 *
 * Return: false if it is about to; else fabrex_may_sleep() has to follow
 */
bool fabrex_stay_awake(void)
{
	down_read(&fabrex_sleep_lock);
	if (!fabrex_asleep)
		return true;
	up_read(&fabrex_sleep_lock);
	return false;
}

/**
 * fabrex_may_sleep() - end of what fabrex_stay_awake() has begun
 */
void fabrex_may_sleep(void)
{
	up_read(&fabrex_sleep_lock);
}

/**
 * fabrex_wait_awake() - wait until the machine has slept
 * @end: jiffies until when
 *
 * Processes are frozen and thawed meanwhile: a signal ends the wait.
 *
 * Return: 0; -ERESTARTSYS; -ETIMEDOUT
 */
int fabrex_wait_awake(unsigned long end)
{
	long left = max((long)(end - jiffies), 1L);

	left = wait_event_interruptible_timeout(fabrex_awake,
						!READ_ONCE(fabrex_asleep),
						left);
	return left > 0 ? 0 : left ?: -ETIMEDOUT;
}

static void fabrex_set_asleep(bool asleep)
{
	down_write(&fabrex_sleep_lock);
	WRITE_ONCE(fabrex_asleep, asleep);
	up_write(&fabrex_sleep_lock);
	if (!asleep)
		wake_up_interruptible_all(&fabrex_awake);
}

/* The first that is called before the sleep. */
static int fabrex_sleep_begins(struct notifier_block *nb, unsigned long action,
			       void *data)
{
	switch (action) {
	case PM_HIBERNATION_PREPARE:
	case PM_SUSPEND_PREPARE:
	case PM_RESTORE_PREPARE:
		fabrex_set_asleep(true);
		break;
	case PM_POST_HIBERNATION:
	case PM_POST_SUSPEND:
	case PM_POST_RESTORE:
		/* Who would come after the one that refused is not called. */
		if (!fabrex_sleep_agreed)
			fabrex_set_asleep(false);
		break;
	}
	return NOTIFY_OK;
}

/* The last one that is called after it. */
static int fabrex_sleep_ends(struct notifier_block *nb, unsigned long action,
			     void *data)
{
	switch (action) {
	case PM_HIBERNATION_PREPARE:
	case PM_SUSPEND_PREPARE:
	case PM_RESTORE_PREPARE:
		fabrex_sleep_agreed = true;
		break;
	case PM_POST_HIBERNATION:
	case PM_POST_SUSPEND:
	case PM_POST_RESTORE:
		fabrex_sleep_agreed = false;
		fabrex_set_asleep(false);
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block fabrex_sleep_first = {
	.notifier_call = fabrex_sleep_begins,
	.priority = INT_MAX,
};

static struct notifier_block fabrex_sleep_last = {
	.notifier_call = fabrex_sleep_ends,
	.priority = INT_MIN,
};

/**
 * fabrex_sleep_init() - begin of the module
 *
 * Return: 0 or a negative errno
 */
int fabrex_sleep_init(void)
{
	int ret;

	ret = register_pm_notifier(&fabrex_sleep_first);
	if (ret)
		return ret;
	ret = register_pm_notifier(&fabrex_sleep_last);
	if (ret)
		unregister_pm_notifier(&fabrex_sleep_first);
	return ret;
}

/**
 * fabrex_sleep_exit() - end of the module; no port is left
 */
void fabrex_sleep_exit(void)
{
	unregister_pm_notifier(&fabrex_sleep_last);
	unregister_pm_notifier(&fabrex_sleep_first);
}
