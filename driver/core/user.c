// SPDX-License-Identifier: GPL-2.0-only
/*
 * Quotas: how many queues, window slots and regions, how many bytes and how
 * much locked memory one user may have of one port. Called by file.c, res.c,
 * window.c and port.c.
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
 * fabrex_quota_bytes_default() - what one user may register
 *
 * A page that is registered takes up to some 50 bytes of the kernel's: entries
 * of a scatterlist, of the IOMMU's tables, and of the device's page list if that
 * is in the host. So four times the memory of the host is about five per cent
 * of it at most. Less would be too little where GPUs are composed, which have
 * more memory than the host.
 *
 * Return: bytes
 */
u64 fabrex_quota_bytes_default(void)
{
	return (u64)totalram_pages() * 4 << PAGE_SHIFT;
}

/**
 * fabrex_quotas_init() - begin of the module
 *
 * From now on the parameter says what is the case.
 */
void fabrex_quotas_init(void)
{
	if (quota_bytes == QUOTA_BYTES_UNSET)
		quota_bytes = fabrex_quota_bytes_default();
}

/**
 * fabrex_quota_init() - take over the module's parameters
 * @port: new
 */
void fabrex_quota_init(struct fabrex_port *port)
{
	port->quota[FABREX_RES_QUEUE] = READ_ONCE(quota_queues);
	port->quota[FABREX_RES_WINDOW] = READ_ONCE(quota_windows);
	port->quota[FABREX_RES_MR] = READ_ONCE(quota_mrs);
	port->quota_bytes = READ_ONCE(quota_bytes);
}

/*
 * Containers whose processes have the same uid, root's above all, do not share
 * an account. What tells them apart is the innermost PID namespace that belongs
 * to the initial user namespace: making one of these takes CAP_SYS_ADMIN, so
 * that nobody gets an account, and a quota, by unshare(). User namespaces would
 * not do, as everybody may make them, and as most containers of root have none.
 */
static struct pid_namespace *fabrex_container(void)
{
	struct pid_namespace *ns = task_active_pid_ns(current);

	while (ns->user_ns != &init_user_ns)
		ns = ns->parent;
	return ns;
}

/*
 * Uids that a user has by way of a user namespace of his own (/etc/subuid gives
 * everybody 65,536 of them) are no users of their own.
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

/*
 * With users_lock: forget accounts that nobody has open and that owe nothing.
 * One that does would otherwise be as good as new for who closes its files.
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
 * fabrex_users_free() - forget all accounts of a port that nobody uses
 * @port: port
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
 * fabrex_user_get() - the account of the caller
 * @port: port
 * @cred: that it opens the port with
 *
 * Return: it, with a reference; NULL if there is no memory
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
 */
void fabrex_user_put(struct fabrex_port *port, struct fabrex_user *user)
{
	if (!refcount_dec_and_mutex_lock(&user->ref, &port->users_lock))
		return;
	fabrex_users_prune(port, false);
	mutex_unlock(&port->users_lock);
}

/* What a wrong key costs the user who had the kernel try it: this much time,
 * so that one user does not use up what the port may try (docs/draco.md,
 * section 10).
 */
#define WRONG_KEY_NS	(10 * NSEC_PER_MSEC)

/*
 * Not freezable: a task that has the turn must not be frozen with it, and the
 * wait is short.
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

/* Holds up neither death nor the sleep of the machine. */
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
	/* All: one that is frozen would be woken for nothing, and alone. */
	wake_up_all(&user->turn);
}

/**
 * fabrex_user_try_begin() - before a key is tried for a user
 * @user: account
 *
 * One at a time, and not before the last wrong one has been paid for: otherwise
 * as many as the user has threads would be tried at once. So what is owed is
 * never more than for one key.
 *
 * Return: 0, fabrex_user_try_end() has to follow; -EINTR for a process that is
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
 */
void fabrex_user_try_end(struct fabrex_user *user, bool wrong)
{
	if (wrong)
		user->paid = ktime_get_ns() + WRONG_KEY_NS;
	fabrex_user_next(user);
}

/* @limit: at most S64_MAX. False if there would be more than that. */
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
 * fabrex_charge() - about to make an object
 * @port: port
 * @user: whose
 * @type: FABREX_RES_*
 * @n:    how much of the quota it takes
 *
 * Return: 0, or -EDQUOT
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
 * fabrex_uncharge() - an object is gone
 * @port: port
 * @user: whose it was
 * @type: FABREX_RES_*
 * @n:    as charged
 */
void fabrex_uncharge(struct fabrex_port *port, struct fabrex_user *user,
		     enum fabrex_res_type type, u32 n)
{
	atomic64_sub(n, &user->used[type]);
	atomic_dec(&port->count[type]);
}

/**
 * fabrex_charge_bytes() - about to give a device access to memory
 * @port:  port
 * @user:  whose
 * @bytes: that it takes
 *
 * Return: 0, or -EDQUOT
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
 * fabrex_uncharge_bytes() - it has none any more
 * @port:  port
 * @user:  whose it was
 * @bytes: as charged
 */
void fabrex_uncharge_bytes(struct fabrex_port *port, struct fabrex_user *user,
			   u64 bytes)
{
	atomic64_sub(bytes, &port->charged);
	atomic64_sub(bytes, &user->bytes);
}

/**
 * fabrex_charge_locked() - about to lock memory
 * @user:   whose
 * @npages: number; on return, what to give to fabrex_uncharge_locked()
 *
 * What a user has locked in all is compared with the RLIMIT_MEMLOCK of who
 * locks more, as io_uring does. The process alone would not do: memory stays
 * locked when a process that has passed its descriptor on ends. Whom the limit
 * does not apply to is not charged, so that he leaves to others of the same
 * user what they have.
 *
 * Return: 0, or -ENOMEM
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
 * fabrex_uncharge_locked() - it is not locked any more
 * @user:   whose it was
 * @npages: of fabrex_charge_locked()
 */
void fabrex_uncharge_locked(struct fabrex_user *user, u64 npages)
{
	atomic64_sub(npages, &user->locked);
}
