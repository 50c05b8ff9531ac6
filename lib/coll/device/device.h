/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory and arithmetic of a GPU, for collectives whose buffers are there.
 * Called by lib/coll/operation; a handle belongs to one thread at a time. No
 * runtime is linked: the error message names what is missing, and the caller
 * can still copy to the host and reduce there.
 */
#ifndef LIB_COLL_DEVICE_H
#define LIB_COLL_DEVICE_H

#include <stdbool.h>
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
 * Begun in the order of the calls. Within the device's memory, neither side of
 * which may change until the copy has ended.
 */
int fxi_device_copy(struct device *device, void *dst, const void *src,
		    size_t bytes);
/*
 * From the device's memory to the host's, where it is after fxi_device_wait(); and
 * from the host's, which must not change before. By way of pinned memory if the
 * runtime has that: CUDA lets one copy at a time go to other memory, and may be in
 * one that waits for us (lib/tests/vendor/blocked.c).
 */
int fxi_device_fetch(struct device *device, void *dst, const void *src,
		     size_t bytes);
int fxi_device_give(struct device *device, void *dst, const void *src,
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

/*
 * Compiles what reductions of the type need, so that later ones do nothing that
 * waits for other streams of the device.
 */
int fxi_device_prepare(struct device *device, uint32_t type);

/* Until everything that was begun has ended. Negative: the device failed. */
int fxi_device_wait(struct device *device);

/* ---- memory of other processes: share.c -------------------------------- */

#define DEVICE_HANDLE	64u	/* bytes */

/*
 * What other processes of this host need to open an allocation that begins at
 * @ptr. -ENOTSUP: the runtime has nothing of the kind.
 */
int fxi_device_share(struct device *device, void *ptr, void *handle);
/*
 * Opens memory of another process, on the GPU with that PCI address, which this
 * process need not see. -ENOTSUP: the runtime has no path to that GPU, or cannot
 * open it; the message says why. Its owner must not free it before it is closed,
 * which waits for what was pushed there.
 */
int fxi_device_attach(struct device *device, const char *pci,
		      const void *handle, void **ptr);
void fxi_device_detach(struct device *device, void *ptr);

/*
 * All that copies to so many peers need. Runtimes make nothing while a thread of
 * the application waits in a copy to memory that is not pinned, and it may wait
 * for a copy of ours (lib/tests/vendor/blocked.c): so the functions that follow
 * make nothing.
 */
int fxi_device_prepare_pushes(struct device *device, uint32_t peers);
/*
 * Begins a copy from the device's memory to memory that was opened. Those to one
 * @peer, a number that the caller chooses, end in the order of the calls; those
 * to different ones may cross different links at the same time: up to
 * DEVICE_PUSHES streams. -EAGAIN: DEVICE_EVENTS are under way. What is copied was
 * written before, and waited for.
 */
#define DEVICE_PUSHES	8u
#define DEVICE_EVENTS	64u
int fxi_device_push(struct device *device, uint32_t peer, void *dst,
		    const void *src, size_t bytes, void **event);
/* Has it ended? 1: the event is gone; 0; or a negative errno. */
int fxi_device_pushed(struct device *device, void *event);
/* Until all have ended. */
int fxi_device_pushes_wait(struct device *device);
/* Nobody asks for it any more. */
void fxi_device_event_put(struct device *device, void *event);

/* ---- streams of the application: stream.c ------------------------------ */

/*
 * @native: hipStream_t, CUstream, of the device (HIP) or context (CUDA) that is
 * current; NULL: the default stream. Until fxi_device_close(), which leaves it
 * as it is. Only the functions that follow take it.
 */
int fxi_device_adopt(uint32_t kind, void *native, struct device **out);
/* 1: it is being captured into a graph; 0: not; or a negative errno. */
int fxi_device_capturing(struct device *device);
/* Of the context: no other has it, ever. 0: it is not known. */
uint64_t fxi_device_id(const struct device *device);
/* A word for the functions that follow, 0; it is never freed. */
int fxi_device_word(struct device *device, uint64_t **word);
/* Does the runtime have write() and hold()? Leaves the word as it is. */
int fxi_device_holds(struct device *device, uint64_t *word);
/*
 * Loads the kernels of all types on the device: that waits for what is in its
 * streams, and must not happen when some of it waits for us.
 */
void fxi_device_load(struct device *device);
/* The word becomes @value when it is its turn in the stream. */
int fxi_device_write(struct device *device, uint64_t *word, uint64_t value);
/*
 * What follows in the stream waits until the word is @value or more, and sees
 * all that the fabric had written into the device until then.
 */
int fxi_device_hold(struct device *device, uint64_t *word, uint64_t value);
/*
 * The runtime calls the function when it is its turn, in a thread of its own,
 * where functions of the runtime must not be called.
 */
int fxi_device_call(struct device *device, void (*function)(void *arg),
		    void *arg);

#endif
