// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * GPU memory that several processes of a host use: handles by which others open
 * it, and copies to memory that was opened. Called by lib/coll/operation.
 */
#include <errno.h>
#include <string.h>

#include "coll/device/device.h"
#include "coll/device/vendor.h"
#include "base/error.h"

/* Is there all that copies need? Then opening memory has a use. */
static int check_pushes(const struct device *d)
{
	if (d->can_push)
		return 0;
	return fxi_error(ENOTSUP, "%s device %d: the runtime has made no streams and events for copies to other processes",
			 d->vendor->name, d->number);
}

static bool has_all(const struct gpu_share_table *s)
{
	return s->handle && s->open && s->close && s->event_create &&
	       s->event_destroy && s->event_record && s->event_query;
}

static int lacks(const struct device *d)
{
	return fxi_error(ENOTSUP, "%s device %d: the runtime cannot share memory with other processes; update it",
			 d->vendor->name, d->number);
}

int fxi_device_share(struct device *d, void *ptr, void *handle)
{
	struct gpu_visit visit;
	struct gpu_ipc ipc;
	int ret;

	if (!has_all(d->vendor->share))
		return lacks(d);
	ret = fxi_device_enter(d, &visit);
	if (ret)
		return ret;
	ret = d->vendor->share->handle(&ipc, ptr);
	if (!ret)
		memcpy(handle, &ipc, sizeof(ipc));
	return fxi_device_leave(d, &visit, "a handle of memory for other processes",
				ret);
}

/* ---- opening ----------------------------------------------------------- */

/*
 * Does the runtime say that there is no path? It is not asked about a GPU that
 * this process does not see: opening the memory shows.
 */
static bool has_no_path(const struct device *d, const char *pci)
{
	const struct gpu_share_table *s = d->vendor->share;
	int own, other, can = 0;

	if (!s->by_address || !s->can_access ||
	    s->by_address(&other, pci) || d->vendor->ordinal(d->number, &own))
		return false;
	return own != other && !s->can_access(&can, own, other) && !can;
}

/* Versions of HIP differ in the number of the only flag that there is. */
static int open_handle(const struct gpu_share_table *s, void **ptr,
		       struct gpu_ipc handle)
{
	int ret = s->open(ptr, handle, GPU_OPEN_PEER_ACCESS);

	return ret == GPU_INVALID_VALUE ? s->open(ptr, handle, 0) : ret;
}

int fxi_device_attach(struct device *d, const char *pci, const void *handle,
		      void **ptr)
{
	struct gpu_visit visit;
	struct gpu_ipc ipc;
	bool none;
	int ret;

	if (!has_all(d->vendor->share))
		return lacks(d);
	ret = check_pushes(d);
	if (!ret)
		ret = fxi_device_enter(d, &visit);
	if (ret)
		return ret;
	memcpy(&ipc, handle, sizeof(ipc));
	none = has_no_path(d, pci);
	ret = none ? 0 : open_handle(d->vendor->share, ptr, ipc);
	ret = fxi_device_leave(d, &visit, "opening memory of another process",
			       ret);
	if (!none)
		return ret;
	return fxi_error(ENOTSUP, "%s device %d: the runtime has no path to the GPU at %s",
			 d->vendor->name, d->number, pci);
}

void fxi_device_detach(struct device *d, void *ptr)
{
	struct gpu_visit visit;

	fxi_device_pushes_wait(d);
	if (fxi_device_enter(d, &visit))
		return;
	d->vendor->share->close(ptr);
	d->vendor->leave(&visit);
}

/* ---- copies ------------------------------------------------------------ */

static int make_streams(struct device *d, uint32_t n)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < n && i < DEVICE_PUSHES && !ret; i++) {
		ret = fxi_device_stream(d, &d->pushes[i]);
		if (ret)
			d->pushes[i] = NULL;
	}
	return ret;
}

int fxi_device_prepare_pushes(struct device *d, uint32_t peers)
{
	struct gpu_visit visit;
	int ret = 0;

	if (!has_all(d->vendor->share))
		return lacks(d);
	if (d->can_push || !peers)
		return 0;
	ret = fxi_device_enter(d, &visit);
	if (ret)
		return ret;
	ret = make_streams(d, peers);
	if (d->pushes[0])
		ret = 0;
	while (!ret && d->nevents < DEVICE_EVENTS) {
		ret = d->vendor->share->event_create(&d->events[d->nevents],
						     GPU_EVENT_NO_TIMES);
		d->nevents += !ret;
	}
	d->can_push = d->pushes[0] && d->nevents;
	return fxi_device_leave(d, &visit, "streams and events for copies",
				ret);
}

/* Those that could be made share the copies. */
static void *stream_to(const struct device *d, uint32_t peer)
{
	void *stream = d->pushes[peer % DEVICE_PUSHES];

	return stream ? stream : d->pushes[0];
}

int fxi_device_push(struct device *d, uint32_t peer, void *dst,
		    const void *src, size_t bytes, void **event)
{
	void *stream = stream_to(d, peer);
	struct gpu_visit visit;
	int ret = d->nevents ? fxi_device_enter(d, &visit) : -EAGAIN;

	if (ret)
		return ret;
	*event = d->events[--d->nevents];
	ret = d->vendor->copy(dst, src, bytes, stream);
	if (!ret)
		ret = d->vendor->share->event_record(*event, stream);
	if (ret)
		fxi_device_event_put(d, *event);
	return fxi_device_leave(d, &visit, "a copy to memory of another process",
				ret);
}

int fxi_device_pushed(struct device *d, void *event)
{
	struct gpu_visit visit;
	int ret = fxi_device_enter(d, &visit);
	bool wait;

	if (ret)
		return ret;
	ret = d->vendor->share->event_query(event);
	wait = ret == GPU_NOT_READY;
	ret = fxi_device_leave(d, &visit, "a copy to memory of another process",
			       wait ? GPU_OK : ret);
	if (ret || wait)
		return ret;
	fxi_device_event_put(d, event);
	return 1;
}

int fxi_device_pushes_wait(struct device *d)
{
	struct gpu_visit visit;
	uint32_t i;
	int err, ret = fxi_device_enter(d, &visit);

	if (ret)
		return ret;
	/* For all of them, even if one has failed. */
	for (i = 0; i < DEVICE_PUSHES; i++) {
		if (!d->pushes[i])
			continue;
		err = d->vendor->table->stream_wait(d->pushes[i]);
		ret = ret ? ret : err;
	}
	return fxi_device_leave(d, &visit, "copies to memory of another process",
				ret);
}

void fxi_device_event_put(struct device *d, void *event)
{
	d->events[d->nevents++] = event;
}
