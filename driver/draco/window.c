// SPDX-License-Identifier: GPL-2.0-only
/* Windows. Called by the core through the table of operations. */
#include <linux/delay.h>

#include "command.h"
#include "draco.h"
#include "exec.h"
#include "number.h"
#include "ops.h"

/* The device answers EAGAIN at once when it has received too many wrong keys:
 * it limits how many it looks up per second.
 */
#define WINDOW_RETRY_MS	10
#define WINDOW_RETRIES	20

static int draco_window_exec(struct draco_dev *dd, struct draco_cmd *cmd,
			     struct draco_buf *buf, u32 len)
{
	int ret, tries = WINDOW_RETRIES;

	for (;;) {
		draco_cmd_init(cmd, DRACO_ADM_WINDOW_CREATE, 0);
		draco_cmd_data(cmd, buf, len);
		cmd->flags = DRACO_CMD_KILLABLE;
		ret = draco_exec(dd, cmd);
		if (ret != -EAGAIN || !tries--)
			return ret;
		if (msleep_interruptible(WINDOW_RETRY_MS))
			return -EINTR;
	}
}

/**
 * draco_window_create() - map window slots to a peer's region
 * @port:   port
 * @params: parameters; the caller chooses the slots
 * @number: number of the window, for draco_window_destroy() and in faults
 *
 * Context: Process; sleeps, killable.
 * Return: 0; -EACCES if the peer refuses key, rights or range; -EHOSTUNREACH if
 * it is down; -EAGAIN if this port has used too many wrong keys; -EINTR;
 * another negative errno
 */
int draco_window_create(struct fabrex_port *port,
			const struct fabrex_window_params *params, u32 *number)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	u32 epoch = READ_ONCE(dd->epoch);
	struct draco_window_create *raw;
	struct draco_buf buf;
	struct draco_cmd cmd;
	int ret;

	ret = draco_buf_alloc(dd, &buf, sizeof(*raw));
	if (ret)
		return ret;
	raw = buf.va;
	raw->slot = cpu_to_le32(params->slot);
	raw->nslots = cpu_to_le32(params->nslots);
	raw->peer = cpu_to_le16(params->peer);
	raw->access = cpu_to_le32(params->access);
	raw->rkey = cpu_to_le64(params->rkey);
	raw->offset = cpu_to_le64(params->offset);
	raw->length = cpu_to_le64(params->length);
	raw->serial = cpu_to_le64(params->serial);

	ret = draco_window_exec(dd, &cmd, &buf, sizeof(*raw));
	draco_buf_free(dd, &buf);
	*number = le32_to_cpu(cmd.cpl.id);
	if (ret == -EHOSTDOWN || ret == -ENETDOWN)
		ret = -EHOSTUNREACH;
	return ret ?: draco_number_claim(dd, &dd->windows, *number, epoch,
					 DRACO_ADM_WINDOW_DESTROY);
}

/**
 * draco_window_destroy() - unmap window slots
 * @port:   port
 * @number: of the window
 *
 * Context: Process; sleeps, but does not allocate memory.
 * Return: 0 or -ENODEV; loads from the slots return all ones
 */
int draco_window_destroy(struct fabrex_port *port, u32 number)
{
	struct draco_dev *dd = fabrex_port_priv(port);

	return draco_number_destroy(dd, &dd->windows, number,
				    DRACO_ADM_WINDOW_DESTROY);
}
