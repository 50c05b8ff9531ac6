/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workers: who serves the queues of one process. For port.c, and for op.c, which
 * wakes them.
 */
#ifndef _ENGINE_WORKER_H
#define _ENGINE_WORKER_H

#include <linux/timer.h>
#include <linux/workqueue.h>

#include "queue.h"

struct fabrex_task;

/**
 * struct engine_worker - a worker
 * @node:   in &fabrex_engine.workers, under its workers_lock
 * @engine: engine; NULL when it has no queues any more, under @lock
 * @pd:     protection domain, that is, open file
 * @owner:  process
 * @users:  queues, under &fabrex_engine.workers_lock
 * @task:   a thread of the process, or of the kernel
 * @kicked: there may be something to do
 * @awake:  it will look at @kicked before it sleeps
 * @killed: its process is: it serves nothing any more
 * @ending: stops the thread, which may take as long as its process is frozen
 * @alarm:  kicks it
 * @lock:   protects what follows; queues are served with it held
 * @queues: struct engine_queue
 * @busy_ns: when there was something to do
 * @buffer: of %ENGINE_BUFFER bytes
 */
struct engine_worker {
	struct list_head node;
	struct fabrex_engine *engine;
	u32 pd;
	struct pid *owner;
	u32 users;
	struct fabrex_task *task;
	int kicked;
	bool awake;
	bool killed;
	struct work_struct ending;
	struct timer_list alarm;
	struct mutex lock;
	struct list_head queues;
	u64 busy_ns;
	void *buffer;
};

/* worker.c */
int engine_workers_init(void);
void engine_workers_exit(void);
struct engine_worker *engine_worker_get(struct fabrex_engine *engine, u32 pd);
void engine_worker_put(struct engine_worker *worker);
void engine_worker_add(struct engine_worker *worker,
		       struct engine_queue *queue);
void engine_worker_remove(struct engine_worker *worker,
			  struct engine_queue *queue);

/* wake.c */
void engine_worker_wake_init(struct engine_worker *worker);
void engine_worker_kick(struct engine_worker *worker);
void engine_worker_kick_at(struct engine_worker *worker, u64 ns);

#endif
