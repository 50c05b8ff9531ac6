/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Admin queue pair (admin.c). Any file may read the state; exec.c and event.c
 * submit commands; the rest is for the owner of the controller, its watchdog
 * and its interrupt handler.
 */
#ifndef DRACO_ADMIN_H
#define DRACO_ADMIN_H

#include <linux/bitmap.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "command.h"

/*
 * DRACO_ADMIN_DOWN:    the controller is disabled and accesses no memory
 * DRACO_ADMIN_SETUP:   enabled; only its owner may submit commands
 * DRACO_ADMIN_LIVE:    everyone may submit commands
 * DRACO_ADMIN_FAILING: about to be stopped; it may still access memory
 */
enum draco_admin_state {
	DRACO_ADMIN_DOWN,
	DRACO_ADMIN_SETUP,
	DRACO_ADMIN_LIVE,
	DRACO_ADMIN_FAILING,
};

/**
 * struct draco_admin - admin queue pair
 * @lock:     protects everything down to @spurious, and the commands in @slot
 *            until they have completed; taken in hard interrupts
 * @state:    changed under @lock
 * @tail:     next submission entry
 * @cq_pos:   next completion entry
 * @round:    number of commands so far, for their cids
 * @inflight: number of bits set in @busy
 * @count:    number of commands in flight, by priority
 * @busy:     slots that hold a command
 * @slot:     commands in flight, by the index in their cid
 * @spurious: number of completions that match no command
 * @wait:     by priority, for a free slot and for changes of @state. As many
 *            waiters are woken as slots have become free; but of those who
 *            abort a command of their own all, since each of them already has a
 *            slot
 * @entries:  size of each ring; constant, like the rest
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
