// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounts and quotas: how many queues, window slots and regions, how many
 * bytes and how much locked memory a user may have of a port. Called by file.c,
 * res.c, window.c and port.c.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/pid_namespace.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <linux/wait.h>

#include "context.h"

static unsigned int quota_queues = 256;
module_param(quota_queues, uint, 0644);
MODULE_PARM_DESC(quota_queues,
		 "Queues of one user for each new port, 0: no limit (256)");

static unsigned int quota_windows = 32;
module_param(quota_windows, uint, 0644);
MODULE_PARM_DESC(quota_windows,
		 "Window slots of one user for each new port, 0: no limit (32)");

static unsigned int quota_mrs = 8192;
module_param(quota_mrs, uint, 0644);
MODULE_PARM_DESC(quota_mrs,
		 "Memory regions of one user for each new port, 0: no limit (8192)");

#define QUOTA_BYTES_UNSET	ULLONG_MAX

static unsigned long long quota_bytes = QUOTA_BYTES_UNSET;
module_param(quota_bytes, ullong, 0644);
MODULE_PARM_DESC(quota_bytes,
		 "Bytes of memory regions of one user for each new port, 0: no limit (4 times the memory of the host)");

/**
 * fabrex_quota_bytes_default() - get the default of what a user may register
 *
 * A registered page takes up to about 50 bytes in the kernel: entries of
 * scatterlists, of the IOMMU's tables, and of the device's page list if that is
 * in host memory. So four times the host's memory costs at most about five per
 * cent of it. Less would not do, because composed GPUs have more memory than
 * the host.
 *
 * Context: Any.
 * Return: number of bytes
 */
u64 fabrex_quota_bytes_default(void)
{
	return (u64)totalram_pages() * 4 << PAGE_SHIFT;
}

/**
 * fabrex_quotas_init() - make the module parameter show the actual default
 *
 * Context: Module init.
 */
void fabrex_quotas_init(void)
{
	if (quota_bytes == QUOTA_BYTES_UNSET)
		quota_bytes = fabrex_quota_bytes_default();
}

/**
 * fabrex_quota_init() - set the quotas of a port from the module parameters
 * @port: new port
 *
 * Context: Process.
 */
void fabrex_quota_init(struct fabrex_port *port)
{
	port->quota[FABREX_RES_QUEUE] = READ_ONCE(quota_queues);
	port->quota[FABREX_RES_WINDOW] = READ_ONCE(quota_windows);
	port->quota[FABREX_RES_MR] = READ_ONCE(quota_mrs);
	port->quota_bytes = READ_ONCE(quota_bytes);
}

/* Containers whose processes have the same uid, root's above all, do not share
 * an account. They are told apart by the innermost PID namespace that belongs
 * to the initial user namespace: to create one takes CAP_SYS_ADMIN, so nobody
 * gets another account, and quota, by unshare(). User namespaces would not do:
 * everybody may create them, and most containers of root have none.
 */
static struct pid_namespace *fabrex_container(void)
{
	struct pid_namespace *ns = task_active_pid_ns(current);

	while (ns->user_ns != &init_user_ns)
		ns = ns->parent;
	return ns;
}

/* The uids of a user's own user namespaces (/etc/subuid gives everybody 65,536
 * of them) are charged to that user.
 */
static kuid_t fabrex_account_uid(const struct cred *cred)
{
	struct user_namespace *ns = cred->user_ns;

	if (ns == &init_user_ns)
		return cred->uid;
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return uid_eq(ns->owner, GLOBAL_ROOT_UID) ? cred->uid : ns->owner;
}

static struct fabrex_user *fabrex_user_find(struct fabrex_port *port,
					    kuid_t uid,
					    struct pid_namespace *container)
{
	struct fabrex_user *user;

	list_for_each_entry(user, &port->users, list)
		if (uid_eq(user->uid, uid) && user->container == container)
			return user;
	return NULL;
}

/* With users_lock held: free accounts that nobody has open and that owe
 * nothing. Otherwise closing a file would cancel a user's debt.
 */
static void fabrex_users_prune(struct fabrex_port *port, bool all)
{
	struct fabrex_user *user, *next;
	s64 now = ktime_get_ns();

	list_for_each_entry_safe(user, next, &port->users, list) {
		if (refcount_read(&user->ref) || (!all && user->paid > now))
			continue;
		list_del(&user->list);
		put_pid_ns(user->container);
		kfree(user);
	}
}

/**
 * fabrex_users_free() - free all accounts of a port
 * @port: no longer open
 *
 * Context: Process.
 */
void fabrex_users_free(struct fabrex_port *port)
{
	mutex_lock(&port->users_lock);
	fabrex_users_prune(port, true);
	mutex_unlock(&port->users_lock);
}

static struct fabrex_user *fabrex_user_new(kuid_t uid,
					   struct pid_namespace *container)
{
	struct fabrex_user *user;

	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return NULL;
	user->uid = uid;
	user->container = get_pid_ns(container);
	refcount_set(&user->ref, 1);
	init_waitqueue_head(&user->turn);
	return user;
}

/**
 * fabrex_user_get() - get the caller's account
 * @port: port
 * @cred: credentials with which the port is opened
 *
 * Context: Process; sleeps.
 * Return: the account, with a reference; NULL if there is no memory
 */
struct fabrex_user *fabrex_user_get(struct fabrex_port *port,
				    const struct cred *cred)
{
	struct pid_namespace *container = fabrex_container();
	kuid_t uid = fabrex_account_uid(cred);
	struct fabrex_user *user;

	guard(mutex)(&port->users_lock);
	fabrex_users_prune(port, false);
	user = fabrex_user_find(port, uid, container);
	if (user) {
		if (!refcount_inc_not_zero(&user->ref))
			refcount_set(&user->ref, 1);
		return user;
	}
	user = fabrex_user_new(uid, container);
	if (user)
		list_add(&user->list, &port->users);
	return user;
}

/**
 * fabrex_user_put() - drop a reference
 * @port: port
 * @user: account
 *
 * Context: Process.
 */
void fabrex_user_put(struct fabrex_port *port, struct fabrex_user *user)
{
	if (!refcount_dec_and_mutex_lock(&user->ref, &port->users_lock))
		return;
	fabrex_users_prune(port, false);
	mutex_unlock(&port->users_lock);
}

/* What a wrong key costs the user for whom the kernel has tried it: this much
 * time. So one user cannot use up the budget of the port (docs/draco.md,
 * section 10).
 */
#define WRONG_KEY_NS	(10 * NSEC_PER_MSEC)

/* Not freezable: a task must not be frozen during its turn, and the wait is
 * short.
 */
static int fabrex_user_pay(struct fabrex_user *user)
{
	s64 left;

	while ((left = user->paid - (s64)ktime_get_ns()) > 0) {
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_killable(nsecs_to_jiffies(left) + 1);
	}
	return 0;
}

static bool fabrex_user_take_turn(struct fabrex_user *user)
{
	return !atomic_xchg_acquire(&user->trying, 1);
}

/* Delays neither a kill nor suspend. */
static int fabrex_user_wait_turn(struct fabrex_user *user)
{
	if (fabrex_user_take_turn(user))
		return 0;
	return ___wait_event(user->turn, fabrex_user_take_turn(user),
			     (TASK_KILLABLE | TASK_FREEZABLE), 0, 0,
			     schedule());
}

static void fabrex_user_next(struct fabrex_user *user)
{
	atomic_set_release(&user->trying, 0);
	/* All, because a frozen waiter would be woken in vain, and be the only
	 * one.
	 */
	wake_up_all(&user->turn);
}

/**
 * fabrex_user_try_begin() - wait until a key may be tried for a user
 * @user: account
 *
 * One at a time, and not before the last wrong key has been paid for: otherwise
 * one for each thread of the user would be tried at once. So the debt is never
 * more than that of one key.
 *
 * Context: Process; sleeps, killable.
 * Return: 0, and fabrex_user_try_end() must follow; -EINTR if the process is
 * being killed
 */
int fabrex_user_try_begin(struct fabrex_user *user)
{
	int ret;

	ret = fabrex_user_wait_turn(user);
	if (ret)
		return -EINTR;
	ret = fabrex_user_pay(user);
	if (ret)
		fabrex_user_next(user);
	return ret;
}

/**
 * fabrex_user_try_end() - a key has been tried
 * @user:  account
 * @wrong: it was refused
 *
 * Context: Process.
 */
void fabrex_user_try_end(struct fabrex_user *user, bool wrong)
{
	if (wrong)
		user->paid = ktime_get_ns() + WRONG_KEY_NS;
	fabrex_user_next(user);
}

/* @limit is at most S64_MAX. False if the sum would exceed it. */
static bool fabrex_add_below(atomic64_t *used, u64 n, u64 limit)
{
	s64 old = atomic64_read(used);

	do {
		if (n > limit || old > limit - n)
			return false;
	} while (!atomic64_try_cmpxchg(used, &old, old + n));
	return true;
}

/**
 * fabrex_charge() - charge an object to a user's quota
 * @port: port
 * @user: account
 * @type: FABREX_RES_*
 * @n:    amount
 *
 * Context: Any.
 * Return: 0 or -EDQUOT
 */
int fabrex_charge(struct fabrex_port *port, struct fabrex_user *user,
		  enum fabrex_res_type type, u32 n)
{
	u32 quota = READ_ONCE(port->quota[type]);

	if (!fabrex_add_below(&user->used[type], n, quota ?: S64_MAX))
		return -EDQUOT;
	atomic_inc(&port->count[type]);
	return 0;
}

/**
 * fabrex_uncharge() - release the charge of an object
 * @port: port
 * @user: account
 * @type: FABREX_RES_*
 * @n:    amount, as charged
 *
 * Context: Any.
 */
void fabrex_uncharge(struct fabrex_port *port, struct fabrex_user *user,
		     enum fabrex_res_type type, u32 n)
{
	atomic64_sub(n, &user->used[type]);
	atomic_dec(&port->count[type]);
}

/**
 * fabrex_charge_bytes() - charge memory that a device gets access to
 * @port:  port
 * @user:  account
 * @bytes: number of bytes
 *
 * Context: Any.
 * Return: 0 or -EDQUOT
 */
int fabrex_charge_bytes(struct fabrex_port *port, struct fabrex_user *user,
			u64 bytes)
{
	u64 quota = READ_ONCE(port->quota_bytes);

	if (!fabrex_add_below(&user->bytes, bytes,
			      quota ? min_t(u64, quota, S64_MAX) : S64_MAX))
		return -EDQUOT;
	atomic64_add(bytes, &port->charged);
	return 0;
}

/**
 * fabrex_uncharge_bytes() - release the charge of memory
 * @port:  port
 * @user:  account
 * @bytes: number of bytes, as charged
 *
 * Context: Any.
 */
void fabrex_uncharge_bytes(struct fabrex_port *port, struct fabrex_user *user,
			   u64 bytes)
{
	atomic64_sub(bytes, &port->charged);
	atomic64_sub(bytes, &user->bytes);
}

/**
 * fabrex_charge_locked() - charge memory that is about to be locked
 * @user:   account
 * @npages: number of pages; on return, the argument of fabrex_uncharge_locked()
 *
 * All memory that a user has locked is compared with the RLIMIT_MEMLOCK of
 * whoever locks more, as in io_uring. A limit by process would not do: if a
 * process passes its descriptor on and exits, the memory stays locked. A
 * process that the limit does not apply to is not charged, so that it takes
 * nothing from other processes of the same user.
 *
 * Context: Process.
 * Return: 0 or -ENOMEM
 */
int fabrex_charge_locked(struct fabrex_user *user, u64 *npages)
{
	u64 limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK)) {
		*npages = 0;
		return 0;
	}
	return fabrex_add_below(&user->locked, *npages, limit) ? 0 : -ENOMEM;
}

/**
 * fabrex_uncharge_locked() - release the charge of locked memory
 * @user:   account
 * @npages: from fabrex_charge_locked()
 *
 * Context: Any.
 */
void fabrex_uncharge_locked(struct fabrex_user *user, u64 npages)
{
	atomic64_sub(npages, &user->locked);
}
