/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory and arithmetic of a GPU, for collectives whose buffers are there.
 * Called by lib/coll/operation; a handle belongs to one thread at a time. No
 * runtime is linked: the error message names what is missing, and the caller
 * can still copy to the host and reduce there.
 */
#ifndef LIB_COLL_DEVICE_H
#define LIB_COLL_DEVICE_H

#include <stdint.h>
#include <fabrex/coll.h>

struct device;

/*
 * A stream on the GPU that has the memory, as fabrex_memory_query() found it
 * (HIP or CUDA). What the application's own streams do with the buffers has to
 * be over. close() waits for what was begun; NULL is allowed.
 */
int fxi_device_open(const struct fabrex_memory *memory, struct device **out);
void fxi_device_close(struct device *device);
/* In the child of a fork. */
void fxi_devices_forked(void);

/*
 * Memory of the device. The stream does not use it any more when it is freed.
 */
int fxi_device_alloc(struct device *device, size_t bytes, void **ptr);
int fxi_device_free(struct device *device, void *ptr);

/*
 * Begun in the order of the calls. Either side of a copy is memory of the
 * device or of the host, and must not change until the copy has ended.
 */
int fxi_device_copy(struct device *device, void *dst, const void *src,
		    size_t bytes);
/*
 * dst[i] = op(src0[i], src1[i]), divided by divisor unless that is 0 or 1, with
 * the bits that fxi_reduce() gives. All are memory of the device, or of the
 * host if that is pinned, and aligned as the type is; dst may be a source.
 * src1 NULL: only divides.
 */
int fxi_device_reduce(struct device *device, void *dst, const void *src0,
		      const void *src1, uint64_t count, uint32_t type,
		      uint32_t op, uint32_t divisor);

/*
 * The same with two sources, for more of them one after the other: FLOAT16 and
 * BFLOAT16 are added up in FLOAT32 and rounded once, at the end. WIDE_SRC: src0
 * is such a sum so far, WIDE_DST: dst becomes one. Both only if neither differs
 * in width from what it overlaps.
 */
#define DEVICE_WIDE_SRC	1u
#define DEVICE_WIDE_DST	2u
int fxi_device_reduce_wide(struct device *device, void *dst, const void *src0,
			   const void *src1, uint64_t count, uint32_t type,
			   uint32_t op, uint32_t divisor, uint32_t wide);

/* Until everything that was begun has ended. Negative: the device failed. */
int fxi_device_wait(struct device *device);

#endif
