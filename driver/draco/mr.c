// SPDX-License-Identifier: GPL-2.0-only
/* Memory regions. Called by the core through the table of operations. */
#include "command.h"
#include "draco.h"
#include "exec.h"
#include "number.h"
#include "ops.h"

/* The device takes lists of pages, of limited length. */
static int draco_pages_begin(struct draco_dev *dd, struct fabrex_pages *pages,
			     const struct fabrex_mr_memory *memory)
{
	fabrex_pages_begin(pages, memory);
	return pages->count > dd->ident.info.max_mr_pages ? -EINVAL : 0;
}

/**
 * draco_mr_create() - create a region
 * @port:   port
 * @params: parameters
 * @number: number of the region, for the other calls
 * @key:    key of the region, for descriptors
 *
 * Context: Process; sleeps, killable.
 * Return: 0; -ENOSPC if the device has no more regions; -EINVAL if a region has
 * more pages than the device supports; another negative errno
 */
int draco_mr_create(struct fabrex_port *port,
		    const struct fabrex_mr_params *params, u32 *number,
		    u64 *key)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	u32 epoch = READ_ONCE(dd->epoch);
	struct draco_mr_create *raw;
	struct fabrex_pages pages;
	struct draco_buf buf;
	struct draco_cmd cmd;
	size_t i;
	int ret;

	ret = draco_pages_begin(dd, &pages, &params->memory);
	if (ret)
		return ret;
	ret = draco_buf_alloc(dd, &buf, sizeof(*raw));
	if (ret)
		return ret;
	raw = buf.va;
	raw->pd = cpu_to_le32(params->pd);
	raw->access = cpu_to_le32(params->access);
	raw->length = cpu_to_le64(params->length);
	raw->first = cpu_to_le64(pages.first);
	raw->page_shift = cpu_to_le32(pages.shift);
	raw->npages = cpu_to_le64(pages.count);
	for (i = 0; i < ARRAY_SIZE(raw->peers); i++)
		raw->peers[i] = cpu_to_le64(params->peers[i]);

	draco_cmd_init(&cmd, DRACO_ADM_MR_CREATE, 0);
	draco_cmd_data(&cmd, &buf, sizeof(*raw));
	cmd.flags = DRACO_CMD_KILLABLE;
	ret = draco_exec(dd, &cmd);
	draco_buf_free(dd, &buf);
	*number = le32_to_cpu(cmd.cpl.id);
	*key = le64_to_cpu(cmd.cpl.result);
	return ret ?: draco_number_claim(dd, &dd->mrs, *number, epoch,
					 DRACO_ADM_MR_DESTROY);
}

/**
 * draco_mr_pages() - set the memory of a region
 * @port:   port
 * @number: of the region
 * @memory: memory of the region
 *
 * Context: Process; sleeps, killable.
 * Return: 0; -EINVAL if it has more pages than the device supports; another
 * negative errno; after an error the region is invalid
 */
int draco_mr_pages(struct fabrex_port *port, u32 number,
		   const struct fabrex_mr_memory *memory)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	struct fabrex_pages pages;
	struct draco_buf buf;
	struct draco_cmd cmd;
	u64 addr, first = 0;
	__le64 *list;
	u32 n;
	int ret;

	ret = draco_pages_begin(dd, &pages, memory);
	if (ret)
		return ret;
	ret = draco_buf_alloc_upto(dd, &buf,
				   min_t(u64, pages.count * sizeof(*list),
					 DRACO_ADM_DATA_MAX));
	if (ret)
		return ret;
	list = buf.va;
	for (; first < pages.count && !ret; first += n) {
		for (n = 0; n < buf.size / sizeof(*list) &&
			    fabrex_pages_next(&pages, &addr); n++)
			list[n] = cpu_to_le64(addr);
		/* pages.count is what the core counted: this cannot be. */
		if (WARN_ON_ONCE(!n)) {
			ret = -EINVAL;
			break;
		}
		draco_cmd_init(&cmd, DRACO_ADM_MR_PAGES, number);
		draco_cmd_data(&cmd, &buf, n * sizeof(*list));
		cmd.sqe.arg[0] = cpu_to_le64(first);
		cmd.sqe.arg[1] = cpu_to_le64(pages.shift);
		cmd.flags = DRACO_CMD_KILLABLE;
		ret = draco_exec(dd, &cmd);
	}
	draco_buf_free(dd, &buf);
	return ret;
}

/**
 * draco_mr_invalidate() - end all accesses to a region but keep its key
 * @port:   port
 * @number: of the region
 *
 * Context: Process; sleeps, but does not allocate memory.
 * Return: 0 or -ENODEV; the device no longer accesses the pages
 */
int draco_mr_invalidate(struct fabrex_port *port, u32 number)
{
	return draco_exec_destroy(fabrex_port_priv(port),
				  DRACO_ADM_MR_INVALIDATE, number);
}

/**
 * draco_mr_destroy() - end all accesses to a region and destroy it
 * @port:   port
 * @number: of the region
 *
 * Context: Process; sleeps, but does not allocate memory.
 * Return: 0 or -ENODEV; the device no longer accesses the pages
 */
int draco_mr_destroy(struct fabrex_port *port, u32 number)
{
	struct draco_dev *dd = fabrex_port_priv(port);

	return draco_number_destroy(dd, &dd->mrs, number, DRACO_ADM_MR_DESTROY);
}
