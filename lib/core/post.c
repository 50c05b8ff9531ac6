// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Posting, the public half: fabrex_post(3). Structures of callers that were
 * compiled with another version are brought to this library's size; all the
 * rest is the transport's (queue_ops).
 */
#include <errno.h>
#include <string.h>

#include "core/internal.h"

#define BATCH	16u	/* operations that are converted at once */

/* An operation in the caller's size as one in ours. */
static int read_op(const struct fabrex_queue *q, struct fabrex_op *to,
		   const void *from, size_t size)
{
	if (size < OP_FIRST)
		return fxi_queue_invalid(q, "the structure of an operation is too short; give the size of struct fabrex_op");
	memset(to, 0, sizeof(*to));
	return fxi_copy_in(q->object.port, "operation", to, sizeof(*to), from,
			   size);
}

EXPORT int fabrex_prep_sized(struct fabrex_queue *q,
			     const struct fabrex_op *op, size_t size)
{
	struct fabrex_op same;
	int ret;

	if (likely(size == sizeof(*op)))
		return q->ops->prep(q, op);
	ret = read_op(q, &same, op, size);
	return ret ? ret : q->ops->prep(q, &same);
}

EXPORT int fabrex_submit(struct fabrex_queue *q)
{
	return q->ops->submit(q);
}

static __attribute__((noinline)) int
post_other_size(struct fabrex_queue *q, const char *ops, unsigned int n,
		size_t size)
{
	struct fabrex_op batch[BATCH];
	unsigned int k, done = 0;
	int posted, ret = 0;

	do {
		for (k = 0; k < BATCH && done + k < n; k++) {
			ret = read_op(q, &batch[k], ops + (done + k) * size,
				      size);
			if (ret)
				break;
		}
		if (ret && !k)
			break;
		posted = q->ops->post(q, batch, k);
		if (posted < 0)
			ret = posted;
		else
			done += (unsigned int)posted;
		if (posted < (int)k)
			break;
	} while (!ret && done < n);
	return done ? (int)done : ret;
}

EXPORT int fabrex_post_sized(struct fabrex_queue *q,
			     const struct fabrex_op *ops, unsigned int n,
			     size_t size)
{
	if (unlikely(size != sizeof(*ops)))
		return post_other_size(q, (const char *)ops, n, size);
	return q->ops->post(q, ops, n);
}

/*
 * The caller's remote region is of another size, or not as it should be. The
 * arguments are those of the public function, so that it jumps here.
 */
static __attribute__((cold, noinline)) int
post_write_other(struct fabrex_queue *q, const struct fabrex_mr *mr,
		 uint64_t offset, const struct fabrex_remote *remote,
		 uint64_t roffset, uint64_t length, uint8_t flags,
		 uint64_t user_data, size_t size)
{
	struct fabrex_remote same;
	int ret;

	ret = fxi_remote_read(q->object.port, &same, remote, size);
	return ret ? ret : q->ops->post_write(q, mr, offset, &same, roffset,
					      length, flags, user_data);
}

static __attribute__((cold, noinline)) int
post_read_other(struct fabrex_queue *q, const struct fabrex_mr *mr,
		uint64_t offset, const struct fabrex_remote *remote,
		uint64_t roffset, uint64_t length, uint8_t flags,
		uint64_t user_data, size_t size)
{
	struct fabrex_remote same;
	int ret;

	ret = fxi_remote_read(q->object.port, &same, remote, size);
	return ret ? ret : q->ops->post_read(q, mr, offset, &same, roffset,
					     length, flags, user_data);
}

EXPORT int fabrex_post_write_sized(struct fabrex_queue *q,
				   const struct fabrex_mr *mr, uint64_t offset,
				   const struct fabrex_remote *remote,
				   uint64_t roffset, uint64_t length,
				   uint8_t flags, uint64_t user_data,
				   size_t size)
{
	if (unlikely(!remote_plain(remote, size)))
		return post_write_other(q, mr, offset, remote, roffset, length,
					flags, user_data, size);
	return q->ops->post_write(q, mr, offset, remote, roffset, length,
				  flags, user_data);
}

EXPORT int fabrex_post_read_sized(struct fabrex_queue *q,
				  const struct fabrex_mr *mr, uint64_t offset,
				  const struct fabrex_remote *remote,
				  uint64_t roffset, uint64_t length,
				  uint8_t flags, uint64_t user_data,
				  size_t size)
{
	if (unlikely(!remote_plain(remote, size)))
		return post_read_other(q, mr, offset, remote, roffset, length,
				       flags, user_data, size);
	return q->ops->post_read(q, mr, offset, remote, roffset, length, flags,
				 user_data);
}

EXPORT int fabrex_post_send(struct fabrex_queue *q, uint32_t peer,
			    uint64_t dest_key, const struct fabrex_mr *mr,
			    uint64_t offset, uint64_t length, uint32_t imm,
			    uint64_t user_data)
{
	return q->ops->post_send(q, peer, dest_key, mr, offset, length, imm,
				 user_data);
}
