// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams on GPUs: memory, copies, reductions. Called by gpu.c of
 * lib/coll/operation.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coll/device/device.h"
#include "coll/device/vendor.h"
#include "coll/reduce/reduce.h"
#include "base/cancel.h"
#include "base/error.h"

#define THREADS	256u		/* of a block */
#define LINE	64u		/* DEVICE_ROOM is a multiple */
#define BLOCKS	2048u		/* at most: several for each processor */

static const struct gpu_vendor *const vendors[] = {
	&fxi_gpu_cuda, &fxi_gpu_hip,
};

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- errors ------------------------------------------------------------ */

static int failed(const struct device *d, const char *what, int result)
{
	return fxi_gpu_error(d->vendor, d->number, what, result);
}

/* ---- entering ---------------------------------------------------------- */

int fxi_device_enter(struct device *d, struct gpu_visit *visit)
{
	int ret = d->vendor->enter(visit, d->number, d->context);

	return ret ? failed(d, "making it current", ret) : 0;
}

int fxi_device_leave(struct device *d, struct gpu_visit *visit,
		     const char *what, int result)
{
	d->vendor->leave(visit);
	return result ? failed(d, what, result) : 0;
}

int fxi_device_stream(const struct device *d, void **stream)
{
	if (d->vendor->stream)
		return d->vendor->stream(stream);
	return d->vendor->table->stream_create(stream, GPU_STREAM_NON_BLOCKING);
}

/* ---- open and close ---------------------------------------------------- */

static const struct gpu_vendor *find_vendor(uint32_t kind)
{
	size_t i;

	for (i = 0; i < sizeof(vendors) / sizeof(*vendors); i++)
		if ((uint32_t)vendors[i]->kind == kind)
			return vendors[i];
	return NULL;
}

static void end_stream(struct device *d, void *stream)
{
	if (!stream)
		return;
	d->vendor->table->stream_wait(stream);
	d->vendor->table->stream_destroy(stream);
}

static void destroy(struct device *d)
{
	uint32_t i;

	end_stream(d, d->stream);
	if (d->room)
		d->vendor->unpin(d->room);
	for (i = 0; i < DEVICE_PUSHES; i++)
		end_stream(d, d->pushes[i]);
	while (d->nevents)
		d->vendor->share->event_destroy(d->events[--d->nevents]);
}

static int make(struct device *d)
{
	struct gpu_visit visit;
	int ret;

	ret = d->vendor->up(d->number, &d->context);
	if (ret)
		return failed(d, "its context", ret);
	ret = fxi_device_enter(d, &visit);
	if (ret)
		return ret;
	ret = fxi_device_stream(d, &d->stream);
	if (!ret && d->vendor->pin &&
	    d->vendor->pin((void **)&d->room, DEVICE_ROOM))
		d->room = NULL;
	return fxi_device_leave(d, &visit, "a stream", ret);
}

void fxi_devices_forked(void)
{
	pthread_mutex_init(&load_lock, NULL);
	fxi_kernels_forked();
}

int fxi_gpu_vendor(uint32_t kind, const struct gpu_vendor **out)
{
	const struct gpu_vendor *vendor = find_vendor(kind);
	int ret;

	if (!vendor)
		return fxi_error(EINVAL, "memory of kind %u is not a GPU's",
				 kind);
	pthread_mutex_lock(&load_lock);
	ret = vendor->load();
	pthread_mutex_unlock(&load_lock);
	*out = vendor;
	return ret;
}

int fxi_device_open(const struct fabrex_memory *memory, struct device **out)
{
	NO_CANCEL();
	const struct gpu_vendor *vendor;
	struct device *d;
	int ret;

	if (memory->device < 0)
		return fxi_error(EINVAL, "memory of kind %u, device %d is not a GPU's",
				 memory->kind, memory->device);
	ret = fxi_gpu_vendor(memory->kind, &vendor);
	if (ret)
		return ret;
	d = calloc(1, sizeof(*d));
	if (!d)
		return fxi_error_static(ENOMEM, "memory for a device");
	d->vendor = vendor;
	d->number = memory->device;
	ret = make(d);
	if (ret)
		free(d);
	else
		*out = d;
	return ret;
}

void fxi_device_close(struct device *d)
{
	struct gpu_visit visit;

	if (!d)
		return;
	/* Perhaps in a function that the runtime has called. */
	if (d->adopted) {
		free(d);
		return;
	}
	if (!d->vendor->enter(&visit, d->number, d->context)) {
		destroy(d);
		d->vendor->leave(&visit);
	}
	free(d);
}

/* ---- memory ------------------------------------------------------------ */

int fxi_device_alloc(struct device *d, size_t bytes, void **ptr)
{
	struct gpu_visit visit;
	int ret = fxi_device_enter(d, &visit);

	if (ret)
		return ret;
	ret = d->vendor->table->alloc(ptr, bytes);
	return fxi_device_leave(d, &visit, "memory", ret);
}

int fxi_device_free(struct device *d, void *ptr)
{
	struct gpu_visit visit;
	int ret;

	if (!ptr)
		return 0;
	ret = fxi_device_enter(d, &visit);
	if (ret)
		return ret;
	ret = d->vendor->table->free(ptr);
	return fxi_device_leave(d, &visit, "freeing memory", ret);
}

int fxi_device_copy(struct device *d, void *dst, const void *src,
		    size_t bytes)
{
	struct gpu_visit visit;
	int ret;

	if (!bytes || dst == src)
		return 0;
	ret = fxi_device_enter(d, &visit);
	if (ret)
		return ret;
	ret = d->vendor->copy(dst, src, bytes, d->stream);
	return fxi_device_leave(d, &visit, "a copy", ret);
}

/* The device has written what it was to write into the room, or has failed. */
static void empty_room(struct device *d, bool good)
{
	uint32_t i;

	for (i = 0; i < d->nlate && good; i++)
		memcpy(d->late[i].to, d->room + d->late[i].at,
		       d->late[i].bytes);
	d->nlate = 0;
	d->filled = 0;
}

/* How much of so many bytes there is room for; waits if there is none. */
static int find_room(struct device *d, size_t bytes, uint32_t *n)
{
	int ret = 0;

	if (d->filled == DEVICE_ROOM || d->nlate == DEVICE_LATE) {
		ret = d->vendor->table->stream_wait(d->stream);
		empty_room(d, !ret);
	}
	*n = DEVICE_ROOM - d->filled;
	if (*n > bytes)
		*n = (uint32_t)bytes;
	return ret;
}

/* What comes next begins at a line. */
static void fill(struct device *d, uint32_t n)
{
	d->filled += (n + LINE - 1) & ~(LINE - 1);
}

static int fetch_some(struct device *d, uint8_t *to, const uint8_t *from,
		      size_t bytes, uint32_t *n)
{
	struct late *late;
	int ret = find_room(d, bytes, n);

	if (!ret)
		ret = d->vendor->copy(d->room + d->filled, from, *n, d->stream);
	if (ret)
		return ret;
	late = &d->late[d->nlate++];
	late->to = to;
	late->at = d->filled;
	late->bytes = *n;
	fill(d, *n);
	return 0;
}

static int give_some(struct device *d, uint8_t *to, const uint8_t *from,
		     size_t bytes, uint32_t *n)
{
	int ret = find_room(d, bytes, n);

	if (ret)
		return ret;
	memcpy(d->room + d->filled, from, *n);
	ret = d->vendor->copy(to, d->room + d->filled, *n, d->stream);
	fill(d, *n);
	return ret;
}

/* In parts, by one of the functions above. */
static int through_room(struct device *d, uint8_t *to, const uint8_t *from,
			size_t bytes,
			int (*some)(struct device *d, uint8_t *to,
				    const uint8_t *from, size_t bytes,
				    uint32_t *n))
{
	struct gpu_visit visit;
	uint32_t n;
	size_t at;
	int ret;

	if (!d->room)
		return fxi_device_copy(d, to, from, bytes);
	ret = fxi_device_enter(d, &visit);
	if (ret)
		return ret;
	for (at = 0; at < bytes && !ret; at += n)
		ret = some(d, to + at, from + at, bytes - at, &n);
	/* Nobody waits for what was begun. */
	if (ret) {
		d->vendor->table->stream_wait(d->stream);
		empty_room(d, false);
	}
	return fxi_device_leave(d, &visit, "a copy from or to the host", ret);
}

int fxi_device_fetch(struct device *d, void *dst, const void *src,
		     size_t bytes)
{
	return through_room(d, dst, src, bytes, fetch_some);
}

int fxi_device_give(struct device *d, void *dst, const void *src, size_t bytes)
{
	return through_room(d, dst, src, bytes, give_some);
}

/* ---- reductions -------------------------------------------------------- */

static int check(const struct device *d, uintptr_t addresses, uint32_t type,
		 uint32_t op)
{
	size_t size = fxi_type_size(type);

	if (!size || op < FABREX_SUM || op > FABREX_AVG)
		return fxi_error(EINVAL, "%s device %d: type %u, operation %u: no such reduction",
				 d->vendor->name, d->number, type, op);
	if (addresses % size)
		return fxi_error(EINVAL, "%s device %d: a buffer is not aligned to its elements of %zu bytes; a GPU takes no others",
				 d->vendor->name, d->number, size);
	return 0;
}

static unsigned int blocks_for(uint64_t count, size_t size)
{
	uint64_t n = count * size / 16 / THREADS + 1;

	return n < BLOCKS ? (unsigned int)n : BLOCKS;
}

static int launch(struct device *d, void *dst, const void *src0,
		  const void *src1, uint64_t count, uint32_t type,
		  uint32_t op, uint32_t divisor, uint32_t wide)
{
	unsigned int blocks = blocks_for(count, fxi_type_size(type));
	unsigned long long n = count;
	unsigned int kernel_op = op == FABREX_AVG ? FABREX_SUM : op;
	void *parameters[] = { &dst, &src0, &src1, &n, &kernel_op, &divisor,
			       &wide };

	return d->vendor->table->launch(d->functions[type], blocks, 1, 1,
					THREADS, 1, 1, 0, d->stream,
					parameters, NULL);
}

int fxi_device_reduce(struct device *d, void *dst, const void *src0,
		      const void *src1, uint64_t count, uint32_t type,
		      uint32_t op, uint32_t divisor)
{
	return fxi_device_reduce_wide(d, dst, src0, src1, count, type, op,
				      divisor, 0);
}

int fxi_device_prepare(struct device *d, uint32_t type)
{
	struct gpu_visit visit;
	int ret;

	if (d->functions[type])
		return 0;
	ret = fxi_device_enter(d, &visit);
	if (ret)
		return ret;
	ret = fxi_kernel_get(d->vendor, d->number, type, &d->functions[type]);
	d->vendor->leave(&visit);
	return ret;
}

int fxi_device_reduce_wide(struct device *d, void *dst, const void *src0,
			   const void *src1, uint64_t count, uint32_t type,
			   uint32_t op, uint32_t divisor, uint32_t wide)
{
	struct gpu_visit visit;
	int ret;

	ret = check(d, (uintptr_t)dst | (uintptr_t)src0 | (uintptr_t)src1,
		    type, op);
	if (ret || !count)
		return ret;
	if (!src1 && divisor <= 1)
		return fxi_device_copy(d, dst, src0, count *
				       fxi_type_size(type));
	ret = fxi_device_prepare(d, type);
	if (!ret)
		ret = fxi_device_enter(d, &visit);
	if (ret)
		return ret;
	ret = launch(d, dst, src0, src1, count, type, op, divisor, wide);
	return fxi_device_leave(d, &visit, "a reduction", ret);
}

int fxi_device_wait(struct device *d)
{
	struct gpu_visit visit;
	int ret = fxi_device_enter(d, &visit);

	if (ret) {
		empty_room(d, false);
		return ret;
	}
	ret = d->vendor->table->stream_wait(d->stream);
	empty_room(d, !ret);
	return fxi_device_leave(d, &visit, "work begun earlier", ret);
}
