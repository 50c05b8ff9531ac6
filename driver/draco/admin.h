/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Admin queue pair (admin.c). The state is for everyone to read; to submit a
 * command without waiting for it is for exec.c and event.c, the other calls are
 * for those who start and stop the controller and for its interrupt handler.
 */
#ifndef DRACO_ADMIN_H
#define DRACO_ADMIN_H

#include <linux/bitmap.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "command.h"

/*
 * DRACO_ADMIN_DOWN:    the controller is off: no access to memory
 * DRACO_ADMIN_SETUP:   on, but only for whoever has started it
 * DRACO_ADMIN_LIVE:    commands of everyone are accepted
 * DRACO_ADMIN_FAILING: being stopped; memory may still be accessed
 */
enum draco_admin_state {
	DRACO_ADMIN_DOWN,
	DRACO_ADMIN_SETUP,
	DRACO_ADMIN_LIVE,
	DRACO_ADMIN_FAILING,
};

/**
 * struct draco_admin - the queue pair
 * @lock:     protects all below up to @spurious, and the commands in @slot
 *            until they are completed; taken in hard interrupts
 * @state:    changed under @lock
 * @tail:     next submission entry
 * @cq_pos:   next completion entry
 * @round:    counts commands, for their cids
 * @inflight: bits set in @busy
 * @count:    of them, by priority
 * @busy:     slots that hold a command
 * @slot:     commands in flight by the index in their cid
 * @spurious: completions that match no command
 * @wait:     by priority, for a free slot and for changes of @state. As many are
 *            woken as slots are free for them, except of those who abort a
 *            command of theirs: they have a slot each
 * @entries:  of each ring; constant, as is the rest
 * @sq:       submission ring
 * @cq:       completion ring
 */
struct draco_admin {
	spinlock_t lock;
	enum draco_admin_state state;
	u32 tail;
	struct draco_cq_pos cq_pos;
	u32 round;
	u32 inflight;
	u32 count[DRACO_PRIOS];
	DECLARE_BITMAP(busy, DRACO_ADMIN_ENTRIES);
	struct draco_cmd *slot[DRACO_ADMIN_ENTRIES];
	u32 spurious;
	wait_queue_head_t wait[DRACO_PRIOS];
	u32 entries;
	struct draco_buf sq;
	struct draco_buf cq;
};

int draco_admin_init(struct draco_dev *dd);
void draco_admin_free(struct draco_dev *dd);
void draco_admin_set(struct draco_dev *dd, enum draco_admin_state to);
bool draco_admin_fail(struct draco_dev *dd, u32 epoch);
void draco_admin_close(struct draco_dev *dd);
void draco_admin_stopped(struct draco_dev *dd);

bool draco_admin_reap(struct draco_dev *dd);
void draco_admin_poll(struct draco_dev *dd);
int draco_admin_submit(struct draco_dev *dd, struct draco_cmd *cmd,
		       enum draco_prio prio);
bool draco_admin_has_room(struct draco_dev *dd, enum draco_prio prio);

#endif
