// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the device holds for this driver, by number: queues, and the interrupt
 * vectors that they use; regions and windows. All of it ends when the controller
 * is stopped. Called by queue.c, number.c, controller.c and the interrupt handler.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "draco.h"
#include "table.h"

/**
 * draco_queues_init() - prepare for as many queues as the device has
 * @dd: device; identified
 *
 * Return: 0 or -ENOMEM
 */
int draco_queues_init(struct draco_dev *dd)
{
	dd->queues = kvcalloc(dd->ident.info.max_queues, sizeof(*dd->queues),
			      GFP_KERNEL);
	return dd->queues ? 0 : -ENOMEM;
}

/**
 * draco_queues_free() - free
 * @dd: device; its controller is stopped
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
 * Return: the queue; NULL if there is no memory
 */
struct draco_queue *draco_queue_alloc(struct draco_dev *dd, bool interrupts)
{
	struct draco_queue *q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	struct draco_vector *best;
	unsigned long flags;
	unsigned int i;

	if (!q || !interrupts)
		return q;
	/* The one with the fewest queues; the admin vector if it is the only one. */
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
 * @q:     queue; its number has been set
 * @epoch: READ_ONCE(dd->epoch) before the device was asked for it
 *
 * Return: 0; -ENODEV if it is gone already; -EPROTO if its doorbell page does
 * not exist or is that of another queue
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

/* Take a queue out of the tables; NULL if it is not there. */
static struct draco_queue *draco_queue_take(struct draco_dev *dd, u32 number)
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
 * draco_queue_unlink() - take a queue out of the tables
 * @dd:     device
 * @number: of the queue; nothing happens if it is not there
 */
void draco_queue_unlink(struct draco_dev *dd, u32 number)
{
	struct draco_queue *q;
	unsigned long flags;

	spin_lock_irqsave(&dd->queue_lock, flags);
	q = draco_queue_take(dd, number);
	spin_unlock_irqrestore(&dd->queue_lock, flags);
	kfree(q);
}

/**
 * draco_tables_forget() - the controller was stopped: all of them are empty
 * @dd: device
 */
void draco_tables_forget(struct draco_dev *dd)
{
	struct draco_queue *q;
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&dd->queue_lock, flags);
	dd->epoch++;
	spin_unlock_irqrestore(&dd->queue_lock, flags);
	for (i = 0; dd->queues && i < dd->ident.info.max_queues; i++) {
		spin_lock_irqsave(&dd->queue_lock, flags);
		q = draco_queue_take(dd, i);
		spin_unlock_irqrestore(&dd->queue_lock, flags);
		kfree(q);
	}
	xa_destroy(&dd->mrs);
	xa_destroy(&dd->windows);
}

/**
 * draco_queues_irq() - a queue has a completion that somebody waits for
 * @vector: that was raised; it may be that of several queues
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
