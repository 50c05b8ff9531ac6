// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two threads that count in one variable without a lock. That KCSAN reports
 * them shows that modules are instrumented, and that it would report ours.
 */
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>

static struct task_struct *threads[2];
static unsigned int counter;

static int count(void *unused)
{
	while (!kthread_should_stop()) {
		counter++;
		cond_resched();
	}
	return 0;
}

static int __init race_init(void)
{
	threads[0] = kthread_run(count, NULL, "fabrex_race/0");
	if (IS_ERR(threads[0]))
		return PTR_ERR(threads[0]);
	threads[1] = kthread_run(count, NULL, "fabrex_race/1");
	if (IS_ERR(threads[1])) {
		kthread_stop(threads[0]);
		return PTR_ERR(threads[1]);
	}
	return 0;
}

static void __exit race_exit(void)
{
	kthread_stop(threads[0]);
	kthread_stop(threads[1]);
}

module_init(race_init);
module_exit(race_exit);
MODULE_DESCRIPTION("fabrex: a data race, for tests of KCSAN");
MODULE_LICENSE("GPL");
