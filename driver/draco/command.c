// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin commands, and the DMA memory for their data and for the rings. Called
 * by admin.c and by every file that issues commands.
 */
#include <linux/dma-mapping.h>

#include "command.h"
#include "draco.h"

/**
 * draco_buf_alloc() - allocate memory for the data of a command
 * @dd:   device
 * @buf:  result, zeroed
 * @size: in bytes; rounded up to whole pages, so that a device that writes
 *        beyond the end overwrites nothing else
 *
 * Context: Process; sleeps.
 * Return: 0 or -ENOMEM
 */
int draco_buf_alloc(struct draco_dev *dd, struct draco_buf *buf, size_t size)
{
	buf->size = PAGE_ALIGN(size);
	buf->va = dma_alloc_coherent(&dd->pdev->dev, buf->size, &buf->dma,
				     GFP_KERNEL);
	return buf->va ? 0 : -ENOMEM;
}

/**
 * draco_buf_alloc_upto() - allocate contiguous memory, as much as is easy
 * @dd:   device
 * @buf:  result
 * @size: upper limit, in bytes; the result has at least a page
 *
 * Context: Process; sleeps.
 * Return: 0 or -ENOMEM
 */
int draco_buf_alloc_upto(struct draco_dev *dd, struct draco_buf *buf,
			 size_t size)
{
	for (size = PAGE_ALIGN(size); size > PAGE_SIZE;
	     size = PAGE_ALIGN(size / 2)) {
		buf->size = size;
		buf->va = dma_alloc_coherent(&dd->pdev->dev, size, &buf->dma,
					     GFP_KERNEL | __GFP_NOWARN |
					     __GFP_NORETRY);
		if (buf->va)
			return 0;
	}
	return draco_buf_alloc(dd, buf, PAGE_SIZE);
}

/**
 * draco_buf_free() - free the memory of a buffer
 * @dd:  device
 * @buf: buffer; no command owns it any more. Nothing happens if it has no
 *       memory
 *
 * Context: Process; sleeps.
 */
void draco_buf_free(struct draco_dev *dd, struct draco_buf *buf)
{
	if (buf->va)
		dma_free_coherent(&dd->pdev->dev, buf->size, buf->va, buf->dma);
	buf->va = NULL;
}

/**
 * draco_cmd_init() - prepare a command without data
 * @cmd:    command
 * @opcode: DRACO_ADM_*
 * @id:     of the object that it is about
 *
 * Context: Any.
 */
void draco_cmd_init(struct draco_cmd *cmd, u8 opcode, u32 id)
{
	memset(cmd, 0, sizeof(*cmd));
	init_completion(&cmd->done);
	cmd->sqe.opcode = opcode;
	cmd->sqe.id = cpu_to_le32(id);
}

/**
 * draco_cmd_data() - set the buffer of a command
 * @cmd: command
 * @buf: buffer
 * @len: number of bytes of it that the device may use
 *
 * Context: Any.
 */
void draco_cmd_data(struct draco_cmd *cmd, const struct draco_buf *buf,
		    size_t len)
{
	cmd->sqe.data = cpu_to_le64(buf->dma);
	cmd->sqe.data_len = cpu_to_le32(len);
}
