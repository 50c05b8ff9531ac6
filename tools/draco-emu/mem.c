// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory as a host port sees it: its host's, or an endpoint's in the same
 * partition. Called by everything that follows bus addresses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "binding.h"
#include "function.h"
#include "port.h"
#include "slot.h"

static bool ep_answers(struct fabric_ep *ep)
{
	return atomic_load_explicit(&ep->uplink->up, memory_order_relaxed);
}

int mem_get(struct port *p, uint64_t addr, size_t len, unsigned int prot,
	    struct mem *m)
{
	const struct plug *plug;
	int err;

	if (p->slots)
		err = slots_get(p->slots, addr, len, prot, &m->hold);
	else
		err = dma_get(function_dma(p->fn), addr, len, prot, &m->hold);
	if (err)
		return err;
	plug = m->hold.cookie;
	m->ep = plug ? plug->ep : NULL;
	if (m->ep && !ep_answers(m->ep)) {
		count(&m->ep->counters, CNT_ERRORS);
		dma_put(&m->hold);
		return -EFAULT;
	}
	return 0;
}

int mem_put(struct mem *m)
{
	return dma_put(&m->hold);
}

static int mem_copy(struct port *p, uint64_t addr, void *in, const void *out,
		    size_t len)
{
	while (len) {
		struct mem m;
		size_t n;

		if (mem_get(p, addr, len, in ? DMA_PROT_READ : DMA_PROT_WRITE,
			    &m))
			return -EFAULT;
		n = m.hold.len < len ? m.hold.len : len;
		if (in)
			in = mempcpy(in, m.hold.ptr, n);
		else
			memcpy(m.hold.ptr, out, n);
		if (out)
			out = (const char *)out + n;
		addr += n;
		len -= n;
		if (mem_put(&m))
			return -EFAULT;
	}
	return 0;
}

int mem_read(struct port *p, uint64_t addr, void *buf, size_t len)
{
	return mem_copy(p, addr, buf, NULL, len);
}

int mem_write(struct port *p, uint64_t addr, const void *buf, size_t len)
{
	return mem_copy(p, addr, NULL, buf, len);
}
