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

#define MAX_SIBLINGS	256
#define FIRST_WINDOW	7	/* BARs and the ROM come before */
#define MIN_BLOCK	20	/* windows are made of 1 MiB */

struct siblings {
	unsigned int n;
	struct pci_range window[MAX_SIBLINGS];
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

static bool is_slot(const struct pci_dev *dev, unsigned int number)
{
	size_t at = fxi_pci_cap(dev, PCI_CAP_EXPRESS);

	return at && fxi_pci_bridge(dev) &&
	       fxi_pci_word(dev, at + 2) & 0x0100 &&
	       fxi_pci_dword(dev, at + 0x14) >> 19 == number;
}

/*
 * The bridges below @upstream: the one of the slot is returned, windows of the
 * others are collected.
 */
static struct pci_dev *find_slot(const struct p2p_env *env,
				 const struct pci_dev *upstream,
				 unsigned int number, struct siblings *others)
{
	struct pci_dev *dev, *found = NULL;
	const struct pci_range *window;
	char path[SYSFS_PATH];
	struct pci_addr addr;
	const char *entry;
	DIR *dir;

	dir = fxi_sysfs_path(path, env->root, "/sys/bus/pci/devices/%s",
			     upstream->name) ? NULL : opendir(path);
	while (dir && (entry = fxi_sysfs_next(dir))) {
		dev = fxi_pci_parse(entry, &addr) ?
		      fxi_pci_read(env->root, entry) : NULL;
		if (dev && !found && is_slot(dev, number)) {
			found = dev;
			continue;
		}
		window = dev ? memory_window(dev) : NULL;
		if (window && others->n < MAX_SIBLINGS)
			others->window[others->n++] = *window;
		free(dev);
	}
	if (dir)
		closedir(dir);
	return found;
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

/* The gap that begins at @start ends where the next sibling does not. */
static uint64_t gap_at(const struct siblings *s, uint64_t start, uint64_t end)
{
	unsigned int i;

	for (i = 0; i < s->n; i++) {
		const struct pci_range *w = &s->window[i];

		if (w->start <= start && w->end >= start)
			return 0;
		if (w->start > start && w->start <= end)
			end = w->start - 1;
	}
	return start <= end ? block_in(start, end) : 0;
}

/* What Linux could give a slot if it may move the slot's own window. */
static uint64_t largest_gap(const struct pci_range *window,
			    const struct siblings *s)
{
	uint64_t best = gap_at(s, window->start, window->end), size;
	unsigned int i;

	for (i = 0; i < s->n; i++) {
		if (s->window[i].end >= window->end)
			continue;
		size = gap_at(s, s->window[i].end + 1, window->end);
		if (size > best)
			best = size;
	}
	return best;
}

static void fill(struct p2p_slot *slot, const struct pci_dev *bridge,
		 const struct pci_dev *upstream, const struct siblings *others)
{
	const struct pci_range *window = memory_window(bridge);
	const struct pci_range *above = memory_window(upstream);

	snprintf(slot->bridge, sizeof(slot->bridge), "%s", bridge->name);
	slot->first_bus = bridge->config[PCI_SECONDARY_BUS];
	slot->last_bus = bridge->config[PCI_SUBORDINATE_BUS];
	if (window) {
		slot->window = fxi_pci_range_size(window);
		slot->wide = window->flags & PCI_RANGE_MEM64;
	}
	if (above)
		slot->room = largest_gap(above, others);
	if (slot->room < slot->window)
		slot->room = slot->window;
}

/* The way to a device that is not there yet: the kernel knows its bridge. */
static int find_way(const struct p2p_env *env, struct p2p_query *q,
		    const struct pci_dev *bridge, unsigned int number)
{
	struct fabrex_p2p *p = q->out;
	int ret;

	snprintf(p->target, sizeof(p->target), "slot %u", number);
	ret = fxi_pci_chain(env->root, &bridge->addr, &q->way.b);
	if (!ret)
		ret = fxi_pci_chain_extend(&q->way.b, p->target);
	if (ret)
		return ret;
	fxi_way_find(env, &q->way);
	fxi_host_iommu(env->root, p->initiator, q->iommu, sizeof(q->iommu));
	p->iommu = fxi_host_translates(q->iommu);
	fxi_p2p_ask(env, &q->way.a.dev[0]->addr, &bridge->addr, &q->answer);
	q->answer.distance += q->answer.reachable;
	q->kernel = q->answer.asked ?
		    (q->answer.kernel ? OPTION_YES : OPTION_NO) :
		    fxi_host_p2pdma(env->root);
	fxi_check_way(q);
	return 0;
}

int fxi_p2p_slot(const struct p2p_env *env, const char *port,
		 unsigned int number, struct p2p_slot *slot)
{
	struct p2p_query q = { .env = env, .out = &slot->p2p };
	struct siblings *others = calloc(1, sizeof(*others));
	struct pci_dev *bridge = NULL;
	struct pci_addr addr = { 0 };
	int ret = -ENODEV;

	memset(slot, 0, sizeof(*slot));
	if (!others)
		return -ENOMEM;
	if (fxi_pci_parse(port, &addr) || fxi_p2p_port(env, port, &addr))
		ret = fxi_pci_chain(env->root, &addr, &q.way.a);
	fxi_pci_name(&addr, slot->p2p.initiator);
	/* The port, the bridge it is in, the switch that has the slots. */
	if (!ret && q.way.a.n >= 3)
		bridge = find_slot(env, q.way.a.dev[2], number, others);
	if (!ret && !bridge)
		ret = -ENOENT;
	if (!ret) {
		fill(slot, bridge, q.way.a.dev[2], others);
		slot->own = !strcmp(bridge->name, q.way.a.dev[1]->name);
		ret = find_way(env, &q, bridge, number);
	}
	fxi_pci_chain_free(&q.way.a);
	fxi_pci_chain_free(&q.way.b);
	free(bridge);
	free(others);
	return ret;
}
