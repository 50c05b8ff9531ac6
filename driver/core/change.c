// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accepted changes of the fabric. Each has a ticket, runs in the port's
 * workqueue for as long as the switch and other hosts take, and leaves a
 * result. Called by netlink_change.c and port.c.
 *
 * No netlink command waits for a change: it holds a lock that all generic
 * netlink families share, and would block the reply that a release waits for.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "genl.h"
#include "fabrex_nl.h"
#include "report.h"
#include "trace.h"

#define CHANGES_PENDING	32
#define CHANGES_KEPT	64

/**
 * struct fabrex_change - accepted change
 * @list:   in changes->pending or changes->done
 * @work:   carries it out
 * @port:   port that it goes through; waits for its workqueue before it is
 *          freed
 * @cancel: set to give the change up
 * @info:   request and result; protected by changes->lock
 */
struct fabrex_change {
	struct list_head list;
	struct work_struct work;
	struct fabrex_port *port;
	bool cancel;
	struct fabrex_change_info info;
};

/* Shared by all ports, so that a ticket means nothing to another port. Starts
 * at a random number, so that tickets of an earlier module instance mean
 * nothing either.
 */
static atomic64_t change_ticket;

static u64 change_next_ticket(void)
{
	return atomic64_inc_return(&change_ticket);
}

static int change_call(struct fabrex_port *port,
		       const struct fabrex_change_info *info,
		       const bool *cancel, struct fabrex_holder *holder,
		       struct netlink_ext_ack *extack)
{
	const struct fabrex_fabric_ops *fabric = port->ops->fabric;

	switch (info->op) {
	case FABREX_CHANGE_OP_BIND:
		return fabric->bind(port, info->id, info->target,
				    info->dry_run, cancel, extack);
	case FABREX_CHANGE_OP_UNBIND:
		return fabric->unbind(port, info->id, info->force,
				      info->dry_run, info->timeout_ms, cancel,
				      holder, extack);
	default:
		return fabric->port_control(port, info->id, info->action,
					    extack);
	}
}

static int change_make(struct fabrex_change *change,
		       struct fabrex_change_info *info,
		       struct netlink_ext_ack *extack)
{
	struct fabrex_port *port = change->port;
	int ret;

	guard(rwsem_read)(&port->registration_lock);
	ret = fabrex_port_usable(port);
	if (ret)
		return ret;
	if (READ_ONCE(change->cancel))
		return -ECANCELED;
	return change_call(port, info, &change->cancel, &info->holder, extack);
}

/* The message for errors that the backend does not explain. */
static const char *change_cause(int ret)
{
	switch (ret) {
	case -EOPNOTSUPP:
		return "not supported by this port";
	case -EIO:
		return "the local port is being reset; try again";
	case -ENODEV:
		return "the local port or the endpoint is gone";
	case -EBUSY:
		return "in use; stop its users or use --force";
	case -EADDRINUSE:
		return "bound to another port; release it there first";
	case -ENOTCONN:
		return "not bound";
	case -ENOSPC:
		return "no free slot; release another endpoint there";
	case -ETIMEDOUT:
		return "its host did not answer; try again or use --force";
	case -EALREADY:
		return "a change is pending; wait for it";
	case -ECANCELED:
		return "cancelled, nothing was changed";
	case -EAGAIN:
		return "too many changes are pending; wait for one";
	case -EINTR:
		return "interrupted; the switch may still do it";
	default:
		return "refused by the switch";
	}
}

static bool manager_match(const struct fabrex_object *object, const void *arg)
{
	return object->type == FABREX_OBJECT_TYPE_PORT && object->manager;
}

/* Name a manager: the switch refuses other ports, and the model knows which
 * host ports are managers.
 */
static void change_not_manager(struct fabrex_port *port,
			       struct netlink_ext_ack *extack)
{
	char host[FABREX_NAME_LEN] = "of a manager";
	struct fabrex_object manager;

	if (!fabrex_model_next(port, 0, manager_match, NULL, &manager))
		fabrex_model_name(port, manager.link, host);
	NL_SET_ERR_MSG_FMT(extack, "%s: not a manager; ask on host %s",
			   port->info.name, host);
}

/**
 * fabrex_change_explain() - explain why a change has failed
 * @port:   port that it was requested from
 * @extack: receives the message, unless the backend has supplied one
 * @name:   name of the object that was to be changed
 * @ret:    error
 *
 * Context: Process; sleeps.
 */
void fabrex_change_explain(struct fabrex_port *port,
			   struct netlink_ext_ack *extack, const char *name,
			   int ret)
{
	if (extack->_msg)
		return;
	if (ret == -EPERM)
		change_not_manager(port, extack);
	else
		NL_SET_ERR_MSG_FMT(extack, "%s: %s", name, change_cause(ret));
}

static int put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, FABREX_A_CHANGE_PAD);
}

static int put_nonzero(struct sk_buff *skb, int attr, u32 value)
{
	return value ? nla_put_u32(skb, attr, value) : 0;
}

/**
 * fabrex_change_put_names() - add ticket, operation and names of a change
 * @skb:    message
 * @port:   port that the change goes through
 * @change: the change
 *
 * Context: Process.
 * Return: 0 or -EMSGSIZE
 */
int fabrex_change_put_names(struct sk_buff *skb, struct fabrex_port *port,
			    const struct fabrex_change_info *change)
{
	return nla_put_u32(skb, FABREX_A_CHANGE_FPORT, port->index) ?:
	       put_u64(skb, FABREX_A_CHANGE_TICKET, change->ticket) ?:
	       nla_put_u32(skb, FABREX_A_CHANGE_OP, change->op) ?:
	       nla_put_u32(skb, FABREX_A_CHANGE_ID, change->id);
}

static int put_holder(struct sk_buff *skb, const struct fabrex_holder *holder)
{
	return nla_put_u32(skb, FABREX_A_CHANGE_HOLDER_PID, holder->pid) ?:
	       nla_put_string(skb, FABREX_A_CHANGE_HOLDER_COMM,
			      holder->comm) ?:
	       nla_put_string(skb, FABREX_A_CHANGE_HOLDER_REASON,
			      holder->reason) ?:
	       nla_put_u32(skb, FABREX_A_CHANGE_HOLDER_PORT, holder->port);
}

/**
 * fabrex_change_put() - add progress or result of a change
 * @skb:    message
 * @port:   port that the change goes through
 * @change: the change
 *
 * Context: Process.
 * Return: 0 or -EMSGSIZE
 */
int fabrex_change_put(struct sk_buff *skb, struct fabrex_port *port,
		      const struct fabrex_change_info *change)
{
	int ret;

	ret = fabrex_change_put_names(skb, port, change) ?:
	      put_nonzero(skb, FABREX_A_CHANGE_TARGET, change->target) ?:
	      put_nonzero(skb, FABREX_A_CHANGE_SLOT, change->slot);
	if (ret)
		return ret;
	if (change->pending)
		return nla_put_flag(skb, FABREX_A_CHANGE_PENDING);
	ret = nla_put_u32(skb, FABREX_A_CHANGE_ERROR, change->error);
	if (!ret && change->error)
		ret = nla_put_string(skb, FABREX_A_CHANGE_MESSAGE,
				     change->message);
	if (!ret && change->error == EBUSY)
		ret = put_holder(skb, &change->holder);
	return ret;
}

/* Send the notification; whoever misses it can query the ticket. */
static void change_notify(struct fabrex_port *port,
			  const struct fabrex_change_info *change)
{
	struct sk_buff *skb;
	void *hdr;

	skb = fabrex_nl_new_event(FABREX_CMD_CHANGE_DONE, &hdr);
	if (!skb)
		return;
	if (fabrex_change_put(skb, port, change)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, hdr);
	fabrex_nl_multicast(skb, FABREX_NLGRP_CHANGES);
}

static void change_result(struct fabrex_port *port,
			  struct fabrex_change_info *info, int ret,
			  struct netlink_ext_ack *extack)
{
	struct fabrex_object now;

	info->pending = false;
	info->error = -ret;
	info->holder.comm[sizeof(info->holder.comm) - 1] = 0;
	info->holder.reason[sizeof(info->holder.reason) - 1] = 0;
	if (ret) {
		fabrex_change_explain(port, extack, info->name, ret);
		strscpy(info->message, extack->_msg, sizeof(info->message));
	} else if (info->op == FABREX_CHANGE_OP_BIND &&
		   !fabrex_model_get(port, info->id, &now) &&
		   now.bound == info->target) {
		info->slot = now.slot;
	}
}

/* Whoever queries the ticket after the event finds the result. */
static void change_keep(struct fabrex_change *change,
			const struct fabrex_change_info *info)
{
	struct fabrex_changes *changes = &change->port->changes;
	struct fabrex_change *oldest = NULL;

	mutex_lock(&changes->lock);
	change->info = *info;
	list_move_tail(&change->list, &changes->done);
	changes->npending--;
	if (changes->ndone == CHANGES_KEPT) {
		oldest = list_first_entry(&changes->done, struct fabrex_change,
					  list);
		list_del(&oldest->list);
	} else {
		changes->ndone++;
	}
	mutex_unlock(&changes->lock);
	kfree(oldest);
}

static void change_work(struct work_struct *work)
{
	struct fabrex_change *change = container_of(work, struct fabrex_change,
						    work);
	struct fabrex_change_info info = change->info;
	struct fabrex_port *port = change->port;
	struct netlink_ext_ack extack = {};
	int ret;

	ret = change_make(change, &info, &extack);
	trace_fabrex_change(port, info.op == FABREX_CHANGE_OP_BIND ? "bind" :
			    info.op == FABREX_CHANGE_OP_UNBIND ? "unbind" :
			    "port-set", info.id, info.op ==
			    FABREX_CHANGE_OP_PORT_SET ? info.action :
			    info.target, ret);
	change_result(port, &info, ret, &extack);
	change_keep(change, &info);
	/* From here on others may free it. */
	change_notify(port, &info);
}

static int change_queue(struct fabrex_changes *changes,
			struct fabrex_change *change)
{
	guard(mutex)(&changes->lock);
	if (!changes->wq)
		return -ENODEV;
	if (changes->npending == CHANGES_PENDING)
		return -EAGAIN;
	list_add_tail(&change->list, &changes->pending);
	changes->npending++;
	queue_work(changes->wq, &change->work);
	return 0;
}

/**
 * fabrex_change_start() - accept a change
 * @port: port that it goes through, and that supports it
 * @info: the change; its ticket is filled in
 *
 * Context: Process; sleeps.
 * Return: 0; -EAGAIN if too many are in progress; -ENODEV if the port is gone;
 * -ENOMEM
 */
int fabrex_change_start(struct fabrex_port *port,
			struct fabrex_change_info *info)
{
	struct fabrex_change *change;
	int ret;

	change = kzalloc(sizeof(*change), GFP_KERNEL);
	if (!change)
		return -ENOMEM;
	INIT_WORK(&change->work, change_work);
	change->port = port;
	info->ticket = change_next_ticket();
	info->pending = true;
	change->info = *info;
	ret = change_queue(&port->changes, change);
	if (ret)
		kfree(change);
	return ret;
}

static struct fabrex_change *change_find(struct fabrex_changes *changes,
					 u64 ticket)
{
	struct fabrex_change *change;

	lockdep_assert_held(&changes->lock);
	list_for_each_entry(change, &changes->pending, list)
		if (change->info.ticket == ticket)
			return change;
	list_for_each_entry(change, &changes->done, list)
		if (change->info.ticket == ticket)
			return change;
	return NULL;
}

/**
 * fabrex_change_get() - get the progress or the result of a change
 * @port:   port that it goes through
 * @ticket: of the change
 * @info:   result
 *
 * Context: Process; sleeps.
 * Return: 0, or -ENOENT if there is no such ticket or it is too old
 */
int fabrex_change_get(struct fabrex_port *port, u64 ticket,
		      struct fabrex_change_info *info)
{
	struct fabrex_change *change;

	guard(mutex)(&port->changes.lock);
	change = change_find(&port->changes, ticket);
	if (!change)
		return -ENOENT;
	*info = change->info;
	return 0;
}

/**
 * fabrex_change_cancel() - give a change up, without waiting for the end
 * @port:   port that it goes through
 * @ticket: of the change
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOENT as for fabrex_change_get(); -EALREADY if it has finished;
 * -EOPNOTSUPP if it cannot be given up
 */
int fabrex_change_cancel(struct fabrex_port *port, u64 ticket)
{
	struct fabrex_change *change;

	guard(mutex)(&port->changes.lock);
	change = change_find(&port->changes, ticket);
	if (!change)
		return -ENOENT;
	if (!change->info.pending)
		return -EALREADY;
	if (change->info.op == FABREX_CHANGE_OP_PORT_SET)
		return -EOPNOTSUPP;
	WRITE_ONCE(change->cancel, true);
	return 0;
}

/**
 * fabrex_changes_init() - initialise the changes of a new port
 * @changes: zeroed
 *
 * Context: Process.
 */
void fabrex_changes_init(struct fabrex_changes *changes)
{
	mutex_init(&changes->lock);
	INIT_LIST_HEAD(&changes->pending);
	INIT_LIST_HEAD(&changes->done);
	sema_init(&changes->queries, FABREX_QUERIES);
}

/**
 * fabrex_changes_open() - begin to accept changes
 * @port: about to be registered
 *
 * Context: Process; sleeps.
 * Return: 0 or -ENOMEM
 */
int fabrex_changes_open(struct fabrex_port *port)
{
	struct workqueue_struct *wq;

	wq = alloc_workqueue("fabrex%d-changes", WQ_UNBOUND, 0, port->index);
	if (!wq)
		return -ENOMEM;
	mutex_lock(&port->changes.lock);
	port->changes.wq = wq;
	mutex_unlock(&port->changes.lock);
	return 0;
}

/**
 * fabrex_changes_close() - end all changes
 * @port: its operations have returned, and none is called any more; may not
 *        have been opened
 *
 * Context: Process; sleeps.
 */
void fabrex_changes_close(struct fabrex_port *port)
{
	struct workqueue_struct *wq;

	mutex_lock(&port->changes.lock);
	wq = port->changes.wq;
	port->changes.wq = NULL;
	mutex_unlock(&port->changes.lock);
	if (wq)
		destroy_workqueue(wq);
}

/**
 * fabrex_changes_destroy() - free the results
 * @changes: closed, and no longer in use
 *
 * Context: Process.
 */
void fabrex_changes_destroy(struct fabrex_changes *changes)
{
	struct fabrex_change *change, *next;

	WARN_ON(!list_empty(&changes->pending));
	list_for_each_entry_safe(change, next, &changes->done, list)
		kfree(change);
	mutex_destroy(&changes->lock);
}

/**
 * fabrex_tickets_init() - choose the first ticket
 *
 * Context: Module init.
 */
void __init fabrex_tickets_init(void)
{
	atomic64_set(&change_ticket, (s64)get_random_u32() << 20);
}
