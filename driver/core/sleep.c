// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps buffers from being mapped while the machine suspends. Called by the PM
 * core and by dmabuf.c.
 *
 * Before the machine suspends, GPU drivers evacuate their memory: some in PM
 * notifiers, while processes still run, and all of them in .prepare(), when
 * processes and freezable workqueues are frozen. To map a buffer would bring it
 * straight back. So nothing is mapped, neither again nor for new regions, from
 * the first notifier that is called before suspend to the last one after it,
 * when those drivers have finished too.
 */
#include <linux/rwsem.h>
#include <linux/suspend.h>
#include <linux/wait.h>

#include "dmabuf.h"

/* Held for writing to change it, for reading while a buffer is mapped. */
static DECLARE_RWSEM(fabrex_sleep_lock);
static bool fabrex_asleep;
static DECLARE_WAIT_QUEUE_HEAD(fabrex_awake);
/* The last notifier was called, so nobody has refused to suspend. The PM core
 * calls our two notifiers one after the other, so this needs no lock.
 */
static bool fabrex_sleep_agreed;

/**
 * fabrex_stay_awake() - keep the machine from suspending for a moment
 *
 * Context: Process; sleeps. Under a dma_resv, or without waiting for one before
 * fabrex_may_sleep().
 * Return: false if suspend has begun; otherwise fabrex_may_sleep() must follow
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
 * fabrex_may_sleep() - allow suspend again after fabrex_stay_awake()
 *
 * Context: Process.
 */
void fabrex_may_sleep(void)
{
	up_read(&fabrex_sleep_lock);
}

/**
 * fabrex_wait_awake() - wait until the machine has resumed
 * @end: when to give up, in jiffies
 *
 * Processes are frozen and thawed meanwhile: a signal ends the wait.
 *
 * Context: Process; sleeps.
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

/* The first notifier that is called before suspend. */
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
		/* Notifiers after the one that refused are not called. */
		if (!fabrex_sleep_agreed)
			fabrex_set_asleep(false);
		break;
	}
	return NOTIFY_OK;
}

/* The last notifier that is called after resume. */
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
 * fabrex_sleep_init() - register the notifiers
 *
 * Context: Module init.
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
 * fabrex_sleep_exit() - unregister the notifiers; no port exists any more
 *
 * Context: Module exit.
 */
void fabrex_sleep_exit(void)
{
	unregister_pm_notifier(&fabrex_sleep_last);
	unregister_pm_notifier(&fabrex_sleep_first);
}
