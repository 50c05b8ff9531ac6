// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory as a host port sees it: an endpoint's in the same partition, or in
 * another one of the same host, or the host's own. Called by everything that
 * follows bus addresses.
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
	return atomic_load_explicit(&ep->answers, memory_order_acquire);
}

/* The TLP goes up to the host's root complex and down at another of its ports. */
static int other_partition(struct port *p, uint64_t addr, size_t len,
			   unsigned int prot, struct dma_hold *h)
{
	for (struct port *q = p->sibling; q != p; q = q->sibling) {
		int err = q->slots ? slots_peer(q->slots, addr, len, prot, h) :
				     -ENXIO;

		if (err == -ENXIO)
			continue;
		if (err || atomic_load(&q->link->up))
			return err;
		dma_put(h);
		return -EFAULT;
	}
	return -ENXIO;
}

static int route(struct port *p, uint64_t addr, size_t len, unsigned int prot,
		 struct dma_hold *h)
{
	struct dma_map *host = function_dma(p->fn);
	int err = -ENXIO;

	if (!dma_map_enabled(host))
		return -EFAULT;
	if (p->slots)
		err = slots_peer(p->slots, addr, len, prot, h);
	if (err == -ENXIO)
		err = other_partition(p, addr, len, prot, h);
	if (err == -ENXIO)
		return dma_get(host, addr, len, prot, h);
	return err ? -EFAULT : 0;
}

int mem_get(struct port *p, uint64_t addr, size_t len, unsigned int prot,
	    struct mem *m)
{
	const struct plug *plug;
	int err = route(p, addr, len, prot, &m->hold);

	if (err)
		return err;
	plug = m->hold.cookie;
	m->ep = plug ? plug->ep : NULL;
	m->at = plug ? plug->port : NULL;
	if (m->ep)
		m->downs = atomic_load_explicit(&m->ep->downs,
						memory_order_acquire);
	if (m->ep && !ep_answers(m->ep)) {
		count(&m->ep->counters, CNT_ERRORS);
		dma_put(&m->hold);
		return -EFAULT;
	}
	return 0;
}

/* If its uplink was down for a moment, the bytes were not its. */
int mem_put(struct mem *m)
{
	bool lost = m->ep && atomic_load_explicit(&m->ep->downs,
						  memory_order_acquire) !=
			     m->downs;
	int err = dma_put(&m->hold);

	if (!lost)
		return err;
	count(&m->ep->counters, CNT_ERRORS);
	return -EFAULT;
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
