/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Admin queue pair: commands to the device, many in flight. admin.c; called by
 * every other file of this driver.
 */
#ifndef DRACO_ADMIN_H
#define DRACO_ADMIN_H

#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "ring.h"

struct draco_dev;
struct draco_cmd;

/* What draco_cmd.flags says about waiting. */
#define DRACO_CMD_KILLABLE	BIT(0) /* a fatal signal withdraws it */
#define DRACO_CMD_LONG		BIT(1) /* may take seconds: driver removal too */
#define DRACO_CMD_EXCLUSIVE	BIT(2) /* issuer may stop the controller itself */
#define DRACO_CMD_DRIVER	BIT(3) /* not held up by what users do */
#define DRACO_CMD_CHANGE	BIT(4) /* of the fabric */
#define DRACO_CMD_QUERY		BIT(5) /* only reads, and has time */

/**
 * struct draco_cmd - one admin command
 * @sqe:        what the device is to do; @sqe.cid is filled in
 * @cpl:        copy of the completion, valid if @error is 0
 * @done:       completed by the device or because the controller was stopped
 * @complete:   NULL, or called instead of completing @done, with the admin
 *              lock held, in any context
 * @timeout_ms: 0 for the default
 * @flags:      DRACO_CMD_*
 * @cancel:     NULL, or becomes true when the issuer wants it withdrawn
 * @prio:       of its slot; set when it is submitted
 * @error:      0, or -ENODEV if the controller was stopped before it answered
 *
 * A command and its buffer belong to the device from draco_admin_submit() until
 * @done or @complete. draco_admin_exec() never returns before that.
 */
struct draco_cmd {
	struct draco_acmd sqe;
	struct draco_acpl cpl;
	struct completion done;
	void (*complete)(struct draco_dev *dd, struct draco_cmd *cmd);
	unsigned int timeout_ms;
	unsigned int flags;
	const bool *cancel;
	enum draco_prio prio;
	int error;
};

/**
 * struct draco_buf - memory that the device reads or writes
 * @va:   address here; the device may change the contents at any time
 * @dma:  address there
 * @size: in bytes
 */
struct draco_buf {
	void *va;
	dma_addr_t dma;
	size_t size;
};

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

void draco_cmd_init(struct draco_cmd *cmd, u8 opcode, u32 id);
void draco_cmd_data(struct draco_cmd *cmd, const struct draco_buf *buf,
		    size_t len);
int draco_admin_submit(struct draco_dev *dd, struct draco_cmd *cmd,
		       enum draco_prio prio);
int draco_admin_exec(struct draco_dev *dd, struct draco_cmd *cmd);

int draco_buf_alloc(struct draco_dev *dd, struct draco_buf *buf, size_t size);
int draco_buf_alloc_upto(struct draco_dev *dd, struct draco_buf *buf,
			 size_t size);
void draco_buf_free(struct draco_dev *dd, struct draco_buf *buf);

static inline u16 draco_cmd_status(const struct draco_cmd *cmd)
{
	return le16_to_cpu(cmd->cpl.status);
}

#endif
