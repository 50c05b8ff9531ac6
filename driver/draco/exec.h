/* SPDX-License-Identifier: GPL-2.0-only */
/* Execution of admin commands (exec.c). For every
 * file; these functions sleep.
 */
#ifndef DRACO_EXEC_H
#define DRACO_EXEC_H

#include <linux/types.h>

struct draco_cmd;
struct draco_dev;

int draco_exec(struct draco_dev *dd, struct draco_cmd *cmd);
int draco_exec_destroy(struct draco_dev *dd, u8 opcode, u32 id);

#endif
