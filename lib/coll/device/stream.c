// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams of the application on GPUs: what has to happen in them when it is its
 * turn. Called by lib/coll/stream.
 */
#include <errno.h>
#include <stdlib.h>

#include "coll/device/device.h"
#include "coll/device/vendor.h"
#include "base/cancel.h"
#include "base/error.h"

int fxi_device_adopt(uint32_t kind, void *native, struct device **out)
{
	NO_CANCEL();
	const struct gpu_vendor *vendor;
	struct device *d;
	int ret = fxi_gpu_vendor(kind, &vendor);

	if (ret)
		return ret;
	d = calloc(1, sizeof(*d));
	if (!d)
		return fxi_error_static(ENOMEM, "memory for a stream");
	d->vendor = vendor;
	d->stream = native;
	d->adopted = true;
	ret = vendor->current(&d->number, &d->context, &d->id);
	if (ret) {
		ret = fxi_gpu_error(vendor, d->number,
				    "the current device of a stream", ret);
		free(d);
		return ret;
	}
	*out = d;
	return 0;
}

int fxi_device_capturing(struct device *d)
{
	struct gpu_visit visit;
	int status = 0, ret = fxi_device_enter(d, &visit);

	if (ret)
		return ret;
	ret = d->vendor->capturing(d->stream, &status);
	ret = fxi_device_leave(d, &visit, "asking whether a stream is captured",
			       ret);
	return ret ? ret : status != 0;
}

uint64_t fxi_device_id(const struct device *d)
{
	return d->id;
}

/* Some runtimes have the functions, and refuse them for some devices. */
int fxi_device_holds(struct device *d, uint64_t *word)
{
	const struct gpu_table *t = d->vendor->table;
	struct gpu_visit visit;
	void *stream;
	int ret;

	if (fxi_device_enter(d, &visit))
		return 0;
	/* In a stream of its own, which nothing else waits for. */
	ret = t->stream_create(&stream, GPU_STREAM_NON_BLOCKING);
	if (!ret) {
		ret = d->vendor->write(stream, word, *word);
		if (!ret)
			ret = d->vendor->hold(stream, word, *word);
		if (!ret)
			ret = t->stream_wait(stream);
		t->stream_destroy(stream);
	}
	d->vendor->leave(&visit);
	return !ret;
}

/* What fails for one type fails for all; reductions then say why. */
void fxi_device_load(struct device *d)
{
	struct gpu_visit visit;
	void *function;
	uint32_t type;

	if (fxi_device_enter(d, &visit))
		return;
	for (type = FABREX_INT8; type <= FABREX_FLOAT64; type++)
		if (fxi_kernel_get(d->vendor, d->number, type, &function))
			break;
	d->vendor->leave(&visit);
}

int fxi_device_word(struct device *d, uint64_t **word)
{
	struct gpu_visit visit;
	int ret = fxi_device_enter(d, &visit);

	if (ret)
		return ret;
	ret = d->vendor->word(word);
	return fxi_device_leave(d, &visit, "memory for a stream", ret);
}

int fxi_device_write(struct device *d, uint64_t *word, uint64_t value)
{
	struct gpu_visit visit;
	int ret = fxi_device_enter(d, &visit);

	if (ret)
		return ret;
	ret = d->vendor->write(d->stream, word, value);
	return fxi_device_leave(d, &visit, "a write in a stream", ret);
}

int fxi_device_hold(struct device *d, uint64_t *word, uint64_t value)
{
	struct gpu_visit visit;
	int ret = fxi_device_enter(d, &visit);

	if (ret)
		return ret;
	ret = d->vendor->hold(d->stream, word, value);
	return fxi_device_leave(d, &visit, "a wait in a stream", ret);
}

int fxi_device_call(struct device *d, void (*function)(void *arg), void *arg)
{
	struct gpu_visit visit;
	int ret = fxi_device_enter(d, &visit);

	if (ret)
		return ret;
	ret = d->vendor->call(d->stream, function, arg);
	return fxi_device_leave(d, &visit, "a host function in a stream", ret);
}
