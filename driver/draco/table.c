// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables of what exists in the device: queues and the interrupt vectors they
 * use; numbers of regions and windows. Stopping the controller ends all of it.
 * Called by queue.c, controller.c, the interrupt handler, probe and removal.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "draco.h"
#include "table.h"

/**
 * draco_queues_init() - allocate the table of queues
 * @dd: device; identified
 *
 * Context: Probe.
 * Return: 0 or -ENOMEM
 */
int draco_queues_init(struct draco_dev *dd)
{
	dd->queues = kvcalloc(dd->ident.info.max_queues, sizeof(*dd->queues),
			      GFP_KERNEL);
	return dd->queues ? 0 : -ENOMEM;
}

/**
 * draco_queues_free() - free the table of queues
 * @dd: device; its controller is stopped
 *
 * Context: Process.
 */
void draco_queues_free(struct draco_dev *dd)
{
	kvfree(dd->queues);
}

/**
 * draco_queue_alloc() - allocate a queue that is in no table yet
 * @dd:         device
 * @interrupts: choose a vector for it
 *
 * Context: Process; sleeps.
 * Return: the queue, or NULL if there is no memory
 */
struct draco_queue *draco_queue_alloc(struct draco_dev *dd, bool interrupts)
{
	struct draco_queue *q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	struct draco_vector *best;
	unsigned long flags;
	unsigned int i;

	if (!q || !interrupts)
		return q;
	/* The one with the fewest queues; the admin queue's if it is alone. */
	best = &dd->vectors[dd->nvec > 1];
	spin_lock_irqsave(&dd->queue_lock, flags);
	for (i = 2; i < dd->nvec; i++)
		if (dd->vectors[i].users < best->users)
			best = &dd->vectors[i];
	best->users++;
	spin_unlock_irqrestore(&dd->queue_lock, flags);
	q->vector = best;
	return q;
}

/**
 * draco_queue_free() - free a queue that is in no table
 * @dd: device
 * @q:  queue
 *
 * Context: Process.
 */
void draco_queue_free(struct draco_dev *dd, struct draco_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&dd->queue_lock, flags);
	if (q->vector)
		q->vector->users--;
	spin_unlock_irqrestore(&dd->queue_lock, flags);
	kfree(q);
}

/**
 * draco_queue_link() - enter a new queue into the tables
 * @dd:    device
 * @q:     queue; its number is set
 * @epoch: READ_ONCE(dd->epoch) from before the device was asked to create it
 *
 * Context: Process.
 * Return: 0; -ENODEV if the controller was stopped, and the queue no longer
 * exists; -EPROTO if its doorbell page does not exist or belongs to another
 * queue
 */
int draco_queue_link(struct draco_dev *dd, struct draco_queue *q, u32 epoch)
{
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&dd->queue_lock, flags);
	if (dd->epoch != epoch) {
		ret = -ENODEV;
	} else if (q->number >= dd->ident.info.max_queues ||
		   dd->queues[q->number]) {
		ret = -EPROTO;
	} else {
		dd->queues[q->number] = q;
		if (q->vector)
			list_add_tail(&q->node, &q->vector->queues);
	}
	spin_unlock_irqrestore(&dd->queue_lock, flags);
	return ret;
}

/* Remove a queue from the tables; NULL if it is not there. */
static struct draco_queue *draco_queue_detach(struct draco_dev *dd, u32 number)
{
	struct draco_queue *q = dd->queues[number];

	lockdep_assert_held(&dd->queue_lock);
	if (q && q->vector) {
		list_del(&q->node);
		q->vector->users--;
	}
	dd->queues[number] = NULL;
	return q;
}

/**
 * draco_queue_unlink() - remove a queue from the tables and free it
 * @dd:     device
 * @number: of the queue; nothing happens if it is not there
 *
 * Context: Process.
 */
void draco_queue_unlink(struct draco_dev *dd, u32 number)
{
	struct draco_queue *q;
	unsigned long flags;

	spin_lock_irqsave(&dd->queue_lock, flags);
	q = draco_queue_detach(dd, number);
	spin_unlock_irqrestore(&dd->queue_lock, flags);
	kfree(q);
}

/**
 * draco_tables_clear() - empty all tables, because the controller was stopped
 * @dd: device
 *
 * Context: Process; does not allocate memory.
 */
void draco_tables_clear(struct draco_dev *dd)
{
	struct draco_queue *q;
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&dd->queue_lock, flags);
	dd->epoch++;
	spin_unlock_irqrestore(&dd->queue_lock, flags);
	for (i = 0; dd->queues && i < dd->ident.info.max_queues; i++) {
		spin_lock_irqsave(&dd->queue_lock, flags);
		q = draco_queue_detach(dd, i);
		spin_unlock_irqrestore(&dd->queue_lock, flags);
		kfree(q);
	}
	xa_destroy(&dd->mrs);
	xa_destroy(&dd->windows);
}

/**
 * draco_queues_irq() - report an interrupt to the core
 * @vector: that was raised; several queues may share it
 *
 * Context: Hard interrupt.
 */
void draco_queues_irq(struct draco_vector *vector)
{
	struct draco_dev *dd = vector->dd;
	struct draco_queue *q;
	unsigned long flags;

	spin_lock_irqsave(&dd->queue_lock, flags);
	list_for_each_entry(q, &vector->queues, node)
		fabrex_port_queue_irq(dd->port, q->number);
	spin_unlock_irqrestore(&dd->queue_lock, flags);
}
