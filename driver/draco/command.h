/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Admin commands and the memory for their data (command.c). For every file that
 * issues commands; exec.h executes them, admin.h submits them without waiting.
 */
#ifndef DRACO_COMMAND_H
#define DRACO_COMMAND_H

#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/types.h>

#include "ring.h"

struct draco_dev;

/* draco_cmd.flags: how to wait */
#define DRACO_CMD_KILLABLE	BIT(0) /* a fatal signal withdraws it */
#define DRACO_CMD_LONG		BIT(1) /* may take seconds; ends on removal */
#define DRACO_CMD_EXCLUSIVE	BIT(2) /* for the controller's owner only */
#define DRACO_CMD_DRIVER	BIT(3) /* must not wait for users */
#define DRACO_CMD_CHANGE	BIT(4) /* changes the fabric */
#define DRACO_CMD_QUERY		BIT(5) /* only reads, and is in no hurry */

/**
 * struct draco_cmd - an admin command
 * @sqe:        what to do; @sqe.cid is filled in on submission
 * @cpl:        copy of the completion; valid if @error is 0
 * @done:       completed by the device, or because the controller was stopped
 * @complete:   NULL, or called instead of completing @done; in any context,
 *              with the lock of the admin queue held
 * @timeout_ms: 0 for the default
 * @flags:      DRACO_CMD_*
 * @cancel:     NULL, or becomes true when the issuer wants it withdrawn
 * @prio:       priority; set on submission
 * @error:      0, or -ENODEV if the controller was stopped before it completed
 *
 * A command and its buffer belong to the device from draco_admin_submit() until
 * @done or @complete. draco_exec() never returns before that.
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
 * @va:   virtual address; the device may change the contents at any time
 * @dma:  DMA address
 * @size: in bytes
 */
struct draco_buf {
	void *va;
	dma_addr_t dma;
	size_t size;
};

static inline u16 draco_cmd_status(const struct draco_cmd *cmd)
{
	return le16_to_cpu(cmd->cpl.status);
}

void draco_cmd_init(struct draco_cmd *cmd, u8 opcode, u32 id);
void draco_cmd_data(struct draco_cmd *cmd, const struct draco_buf *buf,
		    size_t len);

int draco_buf_alloc(struct draco_dev *dd, struct draco_buf *buf, size_t size);
int draco_buf_alloc_upto(struct draco_dev *dd, struct draco_buf *buf,
			 size_t size);
void draco_buf_free(struct draco_dev *dd, struct draco_buf *buf);

#endif
