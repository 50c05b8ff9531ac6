// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a free slot beside a local port could take: bus numbers, windows, and
 * the way from the port to it. fabrexctl asks before it moves anything.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "p2p/p2p.h"
#include "p2p/sysfs.h"

#define FIRST_WINDOW	7	/* BARs and the ROM come before */
#define EXPRESS_SLOT	0x0100	/* Express Capabilities: Slot Implemented */
#define MIN_BLOCK	20	/* windows are made of 1 MiB */

/* The bridges below the switch's upstream port. */
struct siblings {
	unsigned int n;
	struct pci_dev *dev[P2P_MAX_SLOTS];
};

/* Where prefetchable memory goes; NULL if the bridge passes no memory on. */
static const struct pci_range *memory_window(const struct pci_dev *bridge)
{
	const struct pci_range *plain = NULL;
	unsigned int i;

	for (i = FIRST_WINDOW; i < bridge->ranges; i++) {
		const struct pci_range *r = &bridge->range[i];

		if (!(r->flags & PCI_RANGE_MEM) || !fxi_pci_range_size(r))
			continue;
		if (r->flags & PCI_RANGE_PREFETCH)
			return r;
		plain = r;
	}
	return plain;
}

/* Physical slot number, 0 if it is no slot. */
static unsigned int slot_number(const struct pci_dev *dev)
{
	size_t at = fxi_pci_cap(dev, PCI_CAP_EXPRESS);

	if (!at || !fxi_pci_bridge(dev) ||
	    !(fxi_pci_word(dev, at + 2) & EXPRESS_SLOT))
		return 0;
	return fxi_pci_dword(dev, at + 0x14) >> 19;
}

static void read_siblings(const struct p2p_env *env,
			  const struct pci_dev *upstream, struct siblings *s)
{
	char path[SYSFS_PATH];
	struct pci_addr addr;
	const char *entry;
	DIR *dir;

	dir = fxi_sysfs_path(path, env->root, "/sys/bus/pci/devices/%s",
			     upstream->name) ? NULL : opendir(path);
	while (dir && s->n < P2P_MAX_SLOTS && (entry = fxi_sysfs_next(dir))) {
		if (!fxi_pci_parse(entry, &addr))
			continue;
		s->dev[s->n] = fxi_pci_read(env->root, entry);
		s->n += s->dev[s->n] != NULL;
	}
	if (dir)
		closedir(dir);
}

/* Largest aligned power of two from @start on, below @end. */
static uint64_t block_in(uint64_t start, uint64_t end)
{
	uint64_t at, size;
	int shift;

	for (shift = 62; shift >= MIN_BLOCK; shift--) {
		size = 1ull << shift;
		at = (start + size - 1) & ~(size - 1);
		if (at >= start && at + size > at && at + size - 1 <= end)
			return size;
	}
	return 0;
}

/* From @start to where the next sibling but @self begins. */
static uint64_t gap_at(const struct siblings *s, unsigned int self,
		       uint64_t start, uint64_t end)
{
	const struct pci_range *w;
	unsigned int i;

	for (i = 0; i < s->n; i++) {
		w = i == self ? NULL : memory_window(s->dev[i]);
		if (!w)
			continue;
		if (w->start <= start && w->end >= start)
			return 0;
		if (w->start > start && w->start <= end)
			end = w->start - 1;
	}
	return start <= end ? block_in(start, end) : 0;
}

/* What Linux could give a slot if it may move the slot's own window. */
static uint64_t largest_gap(const struct pci_range *window,
			    const struct siblings *s, unsigned int self)
{
	uint64_t best = gap_at(s, self, window->start, window->end), size;
	const struct pci_range *w;
	unsigned int i;

	for (i = 0; i < s->n; i++) {
		w = i == self ? NULL : memory_window(s->dev[i]);
		if (!w || w->end < window->start || w->end >= window->end)
			continue;
		size = gap_at(s, self, w->end + 1, window->end);
		if (size > best)
			best = size;
	}
	return best;
}

/* What windows of siblings leave of the switch's. */
static uint64_t spare_room(const struct pci_range *window,
			   const struct siblings *s)
{
	uint64_t spare = fxi_pci_range_size(window), size;
	const struct pci_range *w;
	unsigned int i;

	for (i = 0; i < s->n; i++) {
		w = memory_window(s->dev[i]);
		if (!w || w->start < window->start || w->end > window->end)
			continue;
		size = fxi_pci_range_size(w);
		spare -= size < spare ? size : spare;
	}
	return spare;
}

static void fill(struct p2p_slot *slot, const struct pci_dev *upstream,
		 const struct siblings *s, unsigned int self)
{
	const struct pci_dev *bridge = s->dev[self];
	const struct pci_range *window = memory_window(bridge);
	const struct pci_range *above = memory_window(upstream);

	memset(slot, 0, sizeof(*slot));
	slot->number = slot_number(bridge);
	memcpy(slot->bridge, bridge->name, sizeof(slot->bridge));
	slot->first_bus = bridge->config[PCI_SECONDARY_BUS];
	slot->last_bus = bridge->config[PCI_SUBORDINATE_BUS];
	if (window)
		slot->window = fxi_pci_range_size(window);
	if (above) {
		slot->room = largest_gap(above, s, self);
		slot->spare = spare_room(above, s);
	}
	if (slot->room < slot->window)
		slot->room = slot->window;
}

/* The chain of what will be in @bridge, whose switch is that of @port. */
static void slot_chain(const struct pci_chain *port, struct pci_dev *bridge,
		       struct pci_dev *absent, struct pci_chain *chain)
{
	unsigned int i;

	*chain = *port;
	chain->dev[0] = absent;
	chain->dev[1] = bridge;
	for (i = 2; i < chain->n; i++)
		chain->dev[i] = port->dev[i];
}

/* The way to a device that is not there yet: the kernel knows its bridge. */
static void find_way(const struct p2p_env *env, const struct pci_chain *port,
		     struct pci_dev *bridge, struct pci_dev *absent,
		     struct p2p_slot *slot)
{
	struct p2p_query q = { .env = env, .out = &slot->p2p };
	struct fabrex_p2p *p = q.out;

	memcpy(p->initiator, port->dev[0]->name, sizeof(p->initiator));
	snprintf(p->target, sizeof(p->target), "slot %u", slot->number);
	q.way.a = *port;
	slot_chain(port, bridge, absent, &q.way.b);
	fxi_way_find(env, &q.way);
	fxi_host_iommu(env->root, p->initiator, q.iommu, sizeof(q.iommu));
	p->iommu = fxi_host_translates(q.iommu);
	fxi_p2p_ask(env, &port->dev[0]->addr, &bridge->addr, &q.answer);
	q.answer.distance += q.answer.reachable;
	q.kernel = q.answer.asked ?
		   (q.answer.kernel ? OPTION_YES : OPTION_NO) :
		   fxi_host_p2pdma(env->root);
	fxi_check_way(&q);
}

static int by_number(const void *x, const void *y)
{
	const struct p2p_slot *a = x, *b = y;

	return a->number < b->number ? -1 : a->number > b->number;
}

/* One that devices can come into: not where this host's own ports are. */
static bool usable(const struct p2p_env *env, const struct pci_chain *port,
		   const struct pci_dev *bridge)
{
	unsigned int first = bridge->config[PCI_SECONDARY_BUS];

	if (!slot_number(bridge) || !strcmp(bridge->name, port->dev[1]->name))
		return false;
	return !first || !fxi_p2p_port_on(env, bridge->addr.domain, first,
					  bridge->config[PCI_SUBORDINATE_BUS]);
}

/* Capabilities are for root; without them no bridge is a slot. */
static bool hidden(const struct siblings *s)
{
	unsigned int i;

	for (i = 0; i < s->n; i++)
		if (fxi_pci_bridge(s->dev[i]) && s->dev[i]->config_len <= 64)
			return true;
	return false;
}

static int collect(const struct p2p_env *env, const struct pci_chain *port,
		   const struct siblings *s, struct p2p_slot *slots)
{
	struct pci_dev *absent = calloc(1, sizeof(*absent));
	unsigned int i, n = 0;

	if (!absent)
		return -ENOMEM;
	absent->absent = true;
	for (i = 0; i < s->n; i++) {
		if (!usable(env, port, s->dev[i]))
			continue;
		fill(&slots[n], port->dev[2], s, i);
		find_way(env, port, s->dev[i], absent, &slots[n]);
		n++;
	}
	free(absent);
	qsort(slots, n, sizeof(*slots), by_number);
	return (int)n;
}

int fxi_p2p_slots(const struct p2p_env *env, const char *port,
		  struct p2p_slot slots[P2P_MAX_SLOTS])
{
	struct siblings s = { 0 };
	struct pci_chain chain;
	struct pci_addr addr;
	int ret;

	if (!fxi_pci_parse(port, &addr) && !fxi_p2p_port(env, port, &addr))
		return -ENODEV;
	ret = fxi_pci_chain(env->root, &addr, &chain);
	/* The port, the bridge it is in, the switch that has the slots. */
	if (!ret && chain.n >= 3) {
		read_siblings(env, chain.dev[2], &s);
		ret = collect(env, &chain, &s, slots);
		if (!ret && hidden(&s))
			ret = -EPERM;
	}
	while (s.n)
		free(s.dev[--s.n]);
	fxi_pci_chain_free(&chain);
	return ret;
}

bool fxi_p2p_upstream(const char *function, char upstream[PCI_NAME_LEN])
{
	struct pci_addr addr;

	if (!fxi_pci_parse(function, &addr))
		return false;
	addr.function = 0;
	fxi_pci_name(&addr, upstream);
	return true;
}

unsigned int fxi_p2p_logical(const struct pci_addr *downstream)
{
	return downstream->device + 1u;
}

int fxi_p2p_switch_slots(const struct p2p_env *env, const char *function,
			 struct p2p_slot slots[P2P_MAX_SLOTS])
{
	char name[PCI_NAME_LEN];
	struct siblings s = { 0 };
	struct pci_dev *upstream;
	unsigned int i;
	int n = 0;

	if (!fxi_p2p_upstream(function, name))
		return -ENODEV;
	upstream = fxi_pci_read(env->root, name);
	if (!upstream)
		return -ENODEV;
	read_siblings(env, upstream, &s);
	for (i = 0; i < s.n; i++) {
		if (!fxi_pci_bridge(s.dev[i]))
			continue;
		fill(&slots[n], upstream, &s, i);
		slots[n++].number = fxi_p2p_logical(&s.dev[i]->addr);
	}
	qsort(slots, (size_t)n, sizeof(*slots), by_number);
	free(upstream);
	while (s.n)
		free(s.dev[--s.n]);
	return n;
}
