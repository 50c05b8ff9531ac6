// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does one thing wrong as it is loaded, named by its parameter: uses memory
 * that is free, loses memory, takes two locks in both orders, shifts too far.
 * That the debug kernel reports each shows that it checks modules, and would
 * report ours. On another kernel the bugs do no harm that lasts, but for the
 * memory that is lost.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#define BYTES	192
#define LOST	1024	/* objects */

static char *bug = "";
module_param(bug, charp, 0);
MODULE_PARM_DESC(bug, "use-after-free, leak, deadlock or shift");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static unsigned int width = 32;

/* These remain after loading, so that reports can name them. */
static noinline int use_after_free(void)
{
	u8 *bytes = kzalloc(BYTES, GFP_KERNEL);

	if (!bytes)
		return -ENOMEM;
	/* The compiler does not get to see that it is the same. */
	OPTIMIZER_HIDE_VAR(bytes);
	kfree(bytes);
	return READ_ONCE(bytes[BYTES / 2]) & 0;
}

/*
 * Many, as kmemleak takes whatever looks like a pointer for one, and so misses
 * some of what is lost; with 32 objects it missed all of them once.
 */
static noinline int leak(void)
{
	int i;

	for (i = 0; i < LOST; i++)
		if (!kzalloc(BYTES, GFP_KERNEL))
			return -ENOMEM;
	return 0;
}

static void take(struct mutex *outer, struct mutex *inner)
{
	mutex_lock(outer);
	mutex_lock(inner);
	mutex_unlock(inner);
	mutex_unlock(outer);
}

static noinline int deadlock(void)
{
	take(&first, &second);
	take(&second, &first);
	return 0;
}

static noinline int shift(void)
{
	return (1u << READ_ONCE(width)) == 0 ? 0 : 0;
}

static int __init bug_init(void)
{
	if (!strcmp(bug, "use-after-free"))
		return use_after_free();
	if (!strcmp(bug, "leak"))
		return leak();
	if (!strcmp(bug, "deadlock"))
		return deadlock();
	if (!strcmp(bug, "shift"))
		return shift();
	return -EINVAL;
}

static void __exit bug_exit(void)
{
}

module_init(bug_init);
module_exit(bug_exit);
MODULE_DESCRIPTION("fabrex: a bug of one's choice, for tests of the debug kernel");
MODULE_LICENSE("GPL");
