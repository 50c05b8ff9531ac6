// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Windows: a peer's memory under loads and stores, mapped write-combining.
 * Public half: fabrex_window_map(3), which states the ordering.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/barrier.h"
#include "core/internal.h"

#define RIGHTS	(FABREX_MR_REMOTE_READ | FABREX_MR_REMOTE_WRITE)

static int check_window(struct fabrex_port *port,
			const struct fabrex_remote *remote, uint64_t offset,
			size_t length, uint32_t access)
{
	const char *name = port->attr.name;

	if (!(access & RIGHTS) || access & ~RIGHTS)
		return fxi_error(EINVAL, "port %s: window with access 0x%x: use FABREX_MR_REMOTE_READ, FABREX_MR_REMOTE_WRITE or both",
				 name, access);
	if (!length || offset > remote->length ||
	    length > remote->length - offset)
		return fxi_error(EINVAL, "port %s: window of %zu bytes at %llu: the region at peer %u has %llu bytes",
				 name, length, (unsigned long long)offset,
				 remote->peer,
				 (unsigned long long)remote->length);
	return 0;
}

static int create(struct fabrex_port *port, struct fabrex_window *w,
		  const struct fabrex_remote *remote, uint64_t offset,
		  size_t length)
{
	uint64_t skew = offset % port->attr.page_size;
	struct birth birth;
	int ret;

	fxi_birth_begin(port, &birth);
	ret = port->ops->window_create(port->transport, remote, offset - skew,
				       length + skew, w->access, &w->shared);
	if (!ret) {
		w->addr = (char *)w->shared.addr + skew;
		fxi_object_add(port, &w->object, OBJECT_WINDOW, w->shared.id);
	}
	fxi_birth_end(port, &birth);
	return ret;
}

EXPORT int fabrex_window_map_sized(struct fabrex_port *port,
				   const struct fabrex_remote *theirs,
				   uint64_t offset, size_t length,
				   uint32_t access, struct fabrex_window **out,
				   size_t size)
{
	struct fabrex_remote remote;
	struct fabrex_window *w;
	int ret;

	ret = fxi_remote_read(port, &remote, theirs, size);
	if (!ret)
		ret = check_window(port, &remote, offset, length, access);
	if (ret)
		return ret;
	w = calloc(1, sizeof(*w));
	if (!w)
		return fxi_error(ENOMEM, "port %s: window: out of memory",
				 port->attr.name);
	w->access = access;
	ret = create(port, w, &remote, offset, length);
	if (ret) {
		free(w);
		return ret;
	}
	*out = w;
	return 0;
}

EXPORT int fabrex_window_unmap(struct fabrex_window *w)
{
	struct fabrex_port *port;
	int ret;

	if (!w)
		return 0;
	port = w->object.port;
	ret = fxi_object_end(&w->object);
	if (ret < 0)
		return ret;
	if (!ret)
		port->ops->window_unmap(port->transport, &w->shared);
	free(w);
	return 0;
}

EXPORT volatile void *fabrex_window_addr(const struct fabrex_window *w)
{
	return w->addr;
}

/*
 * The fence empties the write-combining buffers; the load cannot overtake the
 * posted stores, so its result comes back only after they have arrived.
 */
EXPORT int fabrex_window_flush(struct fabrex_window *w)
{
	/* Regions begin anywhere; the word is in the first page either way. */
	uintptr_t word = (uintptr_t)w->shared.addr & ~(uintptr_t)3;

	barrier_wc();
	if (!(w->access & FABREX_MR_REMOTE_READ))
		return fxi_error_static(EOPNOTSUPP, "window: stores were flushed, but it cannot be read to confirm their arrival; map it with FABREX_MR_REMOTE_READ too");
	(void)*(volatile uint32_t *)word;
	barrier_device_load();
	return 0;
}
