/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables of what exists in the device (table.c). queue.c fills them, the
 * interrupt handler looks queues up, controller.c clears them.
 */
#ifndef DRACO_TABLE_H
#define DRACO_TABLE_H

#include <linux/list.h>
#include <linux/types.h>

struct draco_dev;

/**
 * struct draco_vector - interrupt vector
 * @dd:     device
 * @queues: queues that use it; protected by draco_dev.queue_lock, like @users
 * @users:  number of queues, including those that are in no table yet
 */
struct draco_vector {
	struct draco_dev *dd;
	struct list_head queues;
	u32 users;
};

/**
 * struct draco_queue - queue of the device
 * @node:   in draco_vector.queues
 * @vector: interrupt vector, or NULL
 * @number: number of the queue
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

void draco_tables_clear(struct draco_dev *dd);

#endif
