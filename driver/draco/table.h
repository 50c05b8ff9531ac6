/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables of what the device holds (table.c): for queue.c, which fills them, the
 * interrupt handler, which looks queues up, and controller.c, which empties them.
 */
#ifndef DRACO_TABLE_H
#define DRACO_TABLE_H

#include <linux/list.h>
#include <linux/types.h>

struct draco_dev;

/**
 * struct draco_vector - an interrupt vector
 * @dd:     device
 * @queues: that use it; under draco_dev.queue_lock, as is @users
 * @users:  how many
 */
struct draco_vector {
	struct draco_dev *dd;
	struct list_head queues;
	u32 users;
};

/**
 * struct draco_queue - a queue of the device
 * @node:   in draco_vector.queues
 * @vector: that it uses, NULL if it has no interrupts
 * @number: of the queue
 */
struct draco_queue {
	struct list_head node;
	struct draco_vector *vector;
	u32 number;
};

int draco_queues_init(struct draco_dev *dd);
void draco_queues_free(struct draco_dev *dd);

struct draco_queue *draco_queue_alloc(struct draco_dev *dd, bool interrupts);
void draco_queue_free(struct draco_dev *dd, struct draco_queue *q);
int draco_queue_link(struct draco_dev *dd, struct draco_queue *q, u32 epoch);
void draco_queue_unlink(struct draco_dev *dd, u32 number);
void draco_queues_irq(struct draco_vector *vector);

void draco_tables_forget(struct draco_dev *dd);

#endif
