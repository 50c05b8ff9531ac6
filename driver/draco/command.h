/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Admin commands and the memory for their data (command.c). For every file that
 * issues commands; they are executed by exec.h or, without waiting, admin.h.
 */
#ifndef DRACO_COMMAND_H
#define DRACO_COMMAND_H

#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/types.h>

#include "ring.h"

struct draco_dev;

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
 * @va:   address here; the device may change the contents at any time
 * @dma:  address there
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
