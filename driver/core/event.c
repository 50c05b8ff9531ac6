// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue of events of an open file. Called by report.c and the types of objects,
 * which add events, and by file.c for read() and poll().
 */
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "context.h"

#define SLOT(n)	((n) & (FABREX_EVENT_SLOTS - 1))

/**
 * fabrex_events_init() - initialise an empty queue
 * @events: queue of a file
 *
 * Context: Process.
 */
void fabrex_events_init(struct fabrex_events *events)
{
	spin_lock_init(&events->lock);
	init_waitqueue_head(&events->wait);
	mutex_init(&events->read);
}

/**
 * fabrex_events_push() - add an event
 * @events: queue of a file
 * @event:  copied; its time is filled in
 *
 * If the queue is full, events are dropped and counted. FABREX_EVENT_LOST
 * reports them at their place in the queue; no more are added until it has been
 * read.
 *
 * Context: Any.
 */
void fabrex_events_push(struct fabrex_events *events,
			const struct fabrex_event *event)
{
	struct fabrex_event *slot;
	unsigned long flags;

	spin_lock_irqsave(&events->lock, flags);
	events->seq++;
	if (!events->lost &&
	    events->tail - events->head < FABREX_EVENT_SLOTS) {
		slot = &events->ring[SLOT(events->tail++)];
		*slot = *event;
		slot->time_ns = ktime_get_ns();
		slot->seq = events->seq;
	} else {
		events->lost++;
	}
	spin_unlock_irqrestore(&events->lock, flags);
	wake_up_interruptible(&events->wait);
}

/**
 * fabrex_events_lose() - report that an unknown number of events was missed
 * @events: queue of a file
 *
 * Context: Any.
 */
void fabrex_events_lose(struct fabrex_events *events)
{
	unsigned long flags;

	spin_lock_irqsave(&events->lock, flags);
	events->seq++;
	events->lost++;
	spin_unlock_irqrestore(&events->lock, flags);
	wake_up_interruptible(&events->wait);
}

/**
 * fabrex_events_gone() - add the last event: the port is gone
 * @events: queue of a file
 *
 * Context: Any.
 */
void fabrex_events_gone(struct fabrex_events *events)
{
	unsigned long flags;

	spin_lock_irqsave(&events->lock, flags);
	events->gone = true;
	spin_unlock_irqrestore(&events->lock, flags);
	wake_up_interruptible_all(&events->wait);
}

/* Also called without the lock: whoever changes this wakes the waiters. */
static bool fabrex_events_ready(struct fabrex_events *events)
{
	return READ_ONCE(events->tail) != READ_ONCE(events->head) ||
	       READ_ONCE(events->lost) ||
	       (READ_ONCE(events->gone) && !READ_ONCE(events->gone_read));
}

/* The oldest event; it stays in the queue until fabrex_events_drop(). */
static bool fabrex_events_peek(struct fabrex_events *events,
			       struct fabrex_event *event)
{
	bool found = true;

	memset(event, 0, sizeof(*event));
	spin_lock_irq(&events->lock);
	if (events->tail != events->head) {
		*event = events->ring[SLOT(events->head)];
	} else if (events->lost) {
		event->type = FABREX_EVENT_LOST;
		event->error = events->lost;
		event->time_ns = ktime_get_ns();
		event->seq = events->seq;
	} else if (events->gone && !events->gone_read) {
		event->type = FABREX_EVENT_GONE;
		event->time_ns = ktime_get_ns();
		event->seq = events->seq + 1;
	} else {
		found = false;
	}
	spin_unlock_irq(&events->lock);
	return found;
}

static void fabrex_events_drop(struct fabrex_events *events,
			       const struct fabrex_event *event)
{
	spin_lock_irq(&events->lock);
	if (event->type == FABREX_EVENT_LOST)
		events->lost -= event->error;
	else if (event->type == FABREX_EVENT_GONE)
		events->gone_read = true;
	else
		events->head++;
	spin_unlock_irq(&events->lock);
}

static int fabrex_events_wait(struct fabrex_events *events, bool nonblock)
{
	if (fabrex_events_ready(events) || READ_ONCE(events->gone))
		return 0;
	if (nonblock)
		return -EAGAIN;
	return wait_event_interruptible(events->wait,
					fabrex_events_ready(events) ||
					READ_ONCE(events->gone));
}

/* Size of the next record after @done bytes of the buffer; 0 if none fits. */
static u32 fabrex_event_room(size_t done, size_t count)
{
	size_t left = count - done;

	if (left >= sizeof(struct fabrex_event))
		return sizeof(struct fabrex_event);
	if (done || left < FABREX_EVENT_SIZE_MIN)
		return 0;
	return round_down(left, sizeof(u64));
}

static ssize_t fabrex_events_copy(struct fabrex_events *events,
				  char __user *buf, size_t count)
{
	struct fabrex_event event;
	size_t done = 0;
	u32 size;

	while ((size = fabrex_event_room(done, count))) {
		if (!fabrex_events_peek(events, &event))
			break;
		event.size = size;
		if (copy_to_user(buf + done, &event, size))
			return done ?: -EFAULT;
		fabrex_events_drop(events, &event);
		done += size;
	}
	return done;
}

/**
 * fabrex_events_read() - read events
 * @events:   queue of a file
 * @buf:      user buffer
 * @count:    its size in bytes
 * @nonblock: do not wait
 *
 * Context: Process; sleeps.
 * Return: number of bytes read; 0 after FABREX_EVENT_GONE has been read;
 * -EINVAL if the buffer is too small for an event; -EAGAIN; -EFAULT;
 * -ERESTARTSYS
 */
ssize_t fabrex_events_read(struct fabrex_events *events, char __user *buf,
			   size_t count, bool nonblock)
{
	ssize_t ret;

	if (count < FABREX_EVENT_SIZE_MIN)
		return -EINVAL;
	do {
		ret = fabrex_events_wait(events, nonblock);
		if (ret)
			return ret;
		if (mutex_lock_interruptible(&events->read))
			return -ERESTARTSYS;
		ret = fabrex_events_copy(events, buf, count);
		mutex_unlock(&events->read);
		/* Another reader was faster: wait again. */
	} while (!ret && !READ_ONCE(events->gone));
	return ret;
}

/**
 * fabrex_events_poll() - poll for events
 * @events: queue of a file
 * @filp:   the file
 * @wait:   poll table
 *
 * Context: Process.
 * Return: EPOLLIN if there is an event, EPOLLHUP once the port is gone
 */
__poll_t fabrex_events_poll(struct fabrex_events *events, struct file *filp,
			    struct poll_table_struct *wait)
{
	__poll_t mask = 0;

	poll_wait(filp, &events->wait, wait);
	spin_lock_irq(&events->lock);
	if (fabrex_events_ready(events))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (events->gone)
		mask |= EPOLLHUP;
	spin_unlock_irq(&events->lock);
	return mask;
}
