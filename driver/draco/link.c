// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters of links. Called by the core through the table of operations.
 */
#include "command.h"
#include "decode.h"
#include "draco.h"
#include "exec.h"
#include "ops.h"

/* The device may change what it has written: @buf is read once. */
static int draco_links_decode(const struct draco_buf *buf, u32 from,
			      struct fabrex_link *links, u32 n)
{
	const struct draco_link *at = buf->va;
	struct draco_link raw;
	u32 i;

	for (i = 0; i < n; i++) {
		memcpy(&raw, &at[i], sizeof(raw));
		if (draco_decode_link(&raw, &links[i]) || links[i].id < from)
			return -EPROTO;
		/* In order, so that nobody reads the same ones for ever. No
		 * link comes after the highest id that there can be.
		 */
		from = links[i].id + 1;
		if (!from && i + 1 < n)
			return -EPROTO;
	}
	return 0;
}

static int draco_links_read(struct draco_dev *dd, struct draco_buf *buf,
			    u32 from, struct fabrex_link *links, u32 max,
			    u32 *count, u32 *next)
{
	struct draco_cmd cmd;
	u64 n;
	u32 id;
	int ret;

	draco_cmd_init(&cmd, DRACO_ADM_GET_LINKS, 0);
	cmd.sqe.flags = dd->ident.mesh ? DRACO_LINKSF_MESH : 0;
	draco_cmd_data(&cmd, buf, max * sizeof(struct draco_link));
	cmd.sqe.arg[0] = cpu_to_le64(from);
	cmd.flags = DRACO_CMD_KILLABLE | DRACO_CMD_QUERY;
	ret = draco_exec(dd, &cmd);
	if (ret)
		return ret;
	n = le64_to_cpu(cmd.cpl.result);
	id = le32_to_cpu(cmd.cpl.id);
	if (n > max || (id && !n))
		return -EPROTO;
	ret = draco_links_decode(buf, from, links, n);
	if (ret)
		return ret;
	if (id && id <= links[n - 1].id)
		return -EPROTO;
	*count = n;
	*next = id;
	return 0;
}

/**
 * draco_links() - read the counters of links
 * @port:  port
 * @from:  id to begin with
 * @links: result, in order of their ids
 * @max:   room in @links
 * @count: number of links read
 * @next:  id to continue with, or 0
 *
 * Context: Process; sleeps, killable.
 * Return: 0; -EOPNOTSUPP if the device has no such counters; -EPROTO if its
 * answer makes no sense; another negative errno
 */
int draco_links(struct fabrex_port *port, u32 from, struct fabrex_link *links,
		u32 max, u32 *count, u32 *next)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	struct draco_buf buf;
	int ret;

	if (!dd->ident.links)
		return -EOPNOTSUPP;
	max = min_t(u32, max, DRACO_ADM_DATA_MAX / sizeof(struct draco_link));
	ret = draco_buf_alloc(dd, &buf, max * sizeof(struct draco_link));
	if (ret)
		return ret;
	ret = draco_links_read(dd, &buf, from, links, max, count, next);
	draco_buf_free(dd, &buf);
	return ret;
}
