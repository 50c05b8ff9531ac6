// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queries: short commands to the device that a netlink command waits for. They
 * run in the port's workqueue, so that the wait ends even if the device does
 * not respond. Called by the files that implement netlink commands, and by
 * queue.c.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "context.h"

/* Limit for waiting for a place and for the answer together, as netlink
 * commands of others wait meanwhile. A working device answers in microseconds.
 */
#define QUERY_MS	5000u
#define QUERY_SLICE_MS	100u

static void query_free(struct kref *ref)
{
	kfree(container_of(ref, struct fabrex_query, ref));
}

/**
 * fabrex_query_put() - drop the caller's reference
 * @query: from fabrex_query_new(), or NULL
 *
 * Context: Process.
 */
void fabrex_query_put(struct fabrex_query *query)
{
	if (query)
		kref_put(&query->ref, query_free);
}

/**
 * fabrex_query_new() - create a query
 * @port: port to query
 * @run:  executes it; called in the port's workqueue with registration_lock
 *        held for reading and a usable port
 *
 * Context: Process; sleeps.
 * Return: the query, or NULL if there is no memory
 */
struct fabrex_query *fabrex_query_new(struct fabrex_port *port,
				      int (*run)(struct fabrex_query *query))
{
	struct fabrex_query *query = kzalloc(sizeof(*query), GFP_KERNEL);

	if (!query)
		return NULL;
	kref_init(&query->ref);
	init_completion(&query->done);
	query->port = port;
	query->run = run;
	return query;
}

static int query_run(struct fabrex_query *query)
{
	struct fabrex_port *port = query->port;
	int ret;

	guard(rwsem_read)(&port->registration_lock);
	ret = fabrex_port_usable(port);
	return ret ?: query->run(query);
}

static void query_work(struct work_struct *work)
{
	struct fabrex_query *query = container_of(work, struct fabrex_query,
						  work);

	query->ret = query_run(query);
	if (query->shared)
		up(&query->port->changes.queries);
	complete(&query->done);
	fabrex_query_put(query);
}

static int query_queue(struct fabrex_query *query)
{
	struct fabrex_changes *changes = &query->port->changes;

	INIT_WORK(&query->work, query_work);
	guard(mutex)(&changes->lock);
	if (!changes->wq)
		return -ENODEV;
	kref_get(&query->ref);
	queue_work(changes->wq, &query->work);
	return 0;
}

/* Wait for a place. A semaphore cannot be waited for both killably and with a
 * timeout: so wait in slices.
 */
static int query_place(struct semaphore *places, unsigned long end)
{
	while (down_timeout(places, msecs_to_jiffies(QUERY_SLICE_MS))) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
	}
	return 0;
}

/**
 * fabrex_query_wait() - execute a query and wait for the answer
 * @query: from fabrex_query_new(), filled in
 *
 * At most FABREX_QUERIES queries with @shared set run at a time; others wait.
 *
 * Context: Process; sleeps, killable.
 * Return: what @run returned; -ENODEV; -ETIMEDOUT or -EINTR: then the query may
 * still be running, and its contents must not be accessed
 */
int fabrex_query_wait(struct fabrex_query *query)
{
	struct semaphore *places = &query->port->changes.queries;
	unsigned long end = jiffies + msecs_to_jiffies(QUERY_MS);
	long left;
	int ret;

	ret = query->shared ? query_place(places, end) : 0;
	if (ret)
		return ret;
	ret = query_queue(query);
	if (ret) {
		if (query->shared)
			up(places);
		return ret;
	}
	left = max((long)(end - jiffies), 1L);
	left = wait_for_completion_killable_timeout(&query->done, left);
	if (left <= 0)
		return left ? -EINTR : -ETIMEDOUT;
	return query->ret;
}

/**
 * fabrex_port_counters() - read the counters of an object from the backend
 * @port:     usable
 * @id:       object, or 0 for this port
 * @counters: result, in its out_ members
 *
 * Context: Process; sleeps. With registration_lock held.
 * Return: 0; -EOPNOTSUPP if the port has no counters; an error of the backend
 */
int fabrex_port_counters(struct fabrex_port *port, u32 id,
			 struct fabrex_counters *counters)
{
	const struct fabrex_fabric_ops *fabric = port->ops->fabric;

	if (!fabric || !fabric->counters)
		return -EOPNOTSUPP;
	return fabric->counters(port, id, counters);
}

/**
 * fabrex_port_links() - read counters of links from the backend
 * @port:  usable
 * @from:  id to begin with, see struct fabrex_fabric_ops
 * @links: result
 * @max:   room in @links, not 0
 * @count: number of links read
 * @next:  id to continue with, or 0
 *
 * Context: Process; sleeps. With registration_lock held.
 * Return: 0; -EOPNOTSUPP if the port does not count what links carry; an error
 * of the backend
 */
int fabrex_port_links(struct fabrex_port *port, u32 from,
		      struct fabrex_link *links, u32 max, u32 *count,
		      u32 *next)
{
	const struct fabrex_fabric_ops *fabric = port->ops->fabric;

	*count = 0;
	*next = 0;
	if (!fabric || !fabric->links)
		return -EOPNOTSUPP;
	return fabric->links(port, from, links, max, count, next);
}
