// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Devices and bridges that are not in a state to take part: gone, in reset,
 * asleep, with decoding or mastering off, without addresses, blocked by the
 * IOMMU. Linux does not look at these before it says yes. Called by query.c.
 */
#include <stdio.h>
#include <string.h>

#include "p2p/say.h"

#define LNKCAP_ACTIVE	(1u << 20)	/* link state is reported */
#define LNKCTL_DISABLE	0x0010
#define LNKSTA_ACTIVE	0x2000
#define PM_STATE	0x0003

/* ---- gone, in reset ----------------------------------------------------- */

static bool in_reset(struct p2p_query *q, const struct pci_dev *dev)
{
	uint16_t ctl = fxi_pci_word(dev, PCI_BRIDGE_CONTROL);

	if (!fxi_pci_bridge(dev) || !(ctl & PCI_BRIDGE_CTL_RESET))
		return false;
	fxi_say_no(q, FABREX_P2P_RESET, dev, PCI_BRIDGE_CTL_RESET,
		   "%s %s holds the bus below it in reset (Bridge Control, Secondary Bus Reset, 0x0040)",
		   fxi_say_kind(dev), dev->name);
	fxi_say_remedy(q, "end it with setpci -s %s BRIDGE_CONTROL=0:40, then have the device set up anew: echo 1 > /sys/bus/pci/devices/DEVICE/remove; echo 1 > /sys/bus/pci/rescan",
		       dev->name);
	return true;
}

static bool link_down(struct p2p_query *q, const struct pci_dev *dev)
{
	size_t at = fxi_pci_cap(dev, PCI_CAP_EXPRESS);
	int type = at ? fxi_pci_type(dev) : -1;

	if (type != PCI_TYPE_ROOT_PORT && type != PCI_TYPE_DOWNSTREAM)
		return false;
	if (fxi_pci_word(dev, at + 0x10) & LNKCTL_DISABLE) {
		fxi_say_no(q, FABREX_P2P_RESET, dev, LNKCTL_DISABLE,
			   "%s %s has its link disabled (Link Control, Link Disable, 0x0010)",
			   fxi_say_kind(dev), dev->name);
		fxi_say_remedy(q, "enable it with setpci -s %s CAP_EXP+10.w=0:10, then rescan",
			       dev->name);
		return true;
	}
	if (at + 0x14 > dev->config_len ||
	    !(fxi_pci_dword(dev, at + 0x0c) & LNKCAP_ACTIVE) ||
	    fxi_pci_word(dev, at + 0x12) & LNKSTA_ACTIVE)
		return false;
	fxi_say_no(q, FABREX_P2P_RESET, dev, LNKSTA_ACTIVE,
		   "the link below %s %s is down (Link Status, Data Link Layer Link Active, 0x2000, is clear)",
		   fxi_say_kind(dev), dev->name);
	fxi_say_remedy(q, "look at cable and power of what is there; \"fabrexctl list ports\" shows the fabric's links");
	return true;
}

/* Any bridge above: what is below it is cut off whatever the way is. */
static bool cut_off(struct p2p_query *q, const struct pci_chain *chain)
{
	unsigned int i;

	for (i = chain->n; i-- > 1;)
		if (in_reset(q, chain->dev[i]) || link_down(q, chain->dev[i]))
			return true;
	return false;
}

static bool gone(struct p2p_query *q, const struct pci_chain *chain)
{
	unsigned int i;

	for (i = chain->n; i-- > 0;) {
		if (!fxi_pci_gone(chain->dev[i]))
			continue;
		fxi_say_no(q, FABREX_P2P_NO_DEVICE, chain->dev[i], 0,
			   "%s does not answer: its configuration space %s",
			   chain->dev[i]->name, chain->dev[i]->config_len ?
			   "reads as all ones" : "cannot be read");
		fxi_say_remedy(q, "it was pulled or has no power; put it back, or remove it: echo 1 > /sys/bus/pci/devices/%s/remove",
			       chain->dev[i]->name);
		return true;
	}
	return false;
}

bool fxi_check_there(struct p2p_query *q)
{
	return !cut_off(q, &q->way.a) && !cut_off(q, &q->way.b) &&
	       !gone(q, &q->way.a) && !gone(q, &q->way.b);
}

/* ---- the way of the request --------------------------------------------- */

/* How far up requests go: below the bridge that turns them, or to the top. */
static unsigned int way_up(const struct p2p_query *q,
			   const struct pci_chain *chain, unsigned int common)
{
	return q->out->path == FABREX_P2P_PATH_ROOT ? chain->n : common;
}

static bool asleep(struct p2p_query *q, const struct pci_chain *chain,
		   unsigned int n)
{
	const struct pci_dev *dev;
	unsigned int i, state;
	size_t at;

	for (i = n; i-- > 0;) {
		dev = chain->dev[i];
		at = fxi_pci_cap(dev, PCI_CAP_PM);
		state = at ? fxi_pci_word(dev, at + 4) & PM_STATE : 0;
		if (state != 3 && !*dev->power)
			continue;
		if (state == 3)
			fxi_say_no(q, FABREX_P2P_POWER, dev, state,
				   "%s sleeps in D3hot (PM Control and Status, PowerState, 0x0003)",
				   dev->name);
		else
			fxi_say_no(q, FABREX_P2P_POWER, dev, 0,
				   "%s sleeps in %s", dev->name, dev->power);
		fxi_say_remedy(q, "wake it: echo on > /sys/bus/pci/devices/%s/power/control, or have its driver or program use it",
			       dev->name);
		return true;
	}
	return false;
}

static void say_enable(struct p2p_query *q, const struct pci_dev *dev,
		       uint32_t bit)
{
	if (dev->driver || fxi_pci_bridge(dev))
		fxi_say_remedy(q, "its driver has left it off: bind it anew, or setpci -s %s COMMAND=%x:%x",
			       dev->name, bit, bit);
	else
		fxi_say_remedy(q, "no driver has enabled it: bind one%s%s%s",
			       bit == PCI_COMMAND_MEMORY ?
			       ", or echo 1 > /sys/bus/pci/devices/" : "",
			       bit == PCI_COMMAND_MEMORY ? dev->name : "",
			       bit == PCI_COMMAND_MEMORY ? "/enable" : "");
}

/*
 * The target, and the bridges that lead down to it. A Virtual Function has no
 * such bit: Linux sets that of all of them before it makes the first.
 */
static bool memory_off(struct p2p_query *q, const struct pci_chain *chain,
		       unsigned int n)
{
	const struct pci_dev *dev;
	unsigned int i;

	for (i = 0; i < n; i++) {
		dev = chain->dev[i];
		if (dev->absent || dev->virtual || !dev->config_len ||
		    fxi_pci_word(dev, PCI_COMMAND) & PCI_COMMAND_MEMORY)
			continue;
		fxi_say_no(q, FABREX_P2P_MEMORY_OFF, dev, PCI_COMMAND_MEMORY,
			   "memory decoding of %s %s is off (Command, Memory Space Enable, 0x0002)",
			   fxi_say_kind(dev), dev->name);
		say_enable(q, dev, PCI_COMMAND_MEMORY);
		return true;
	}
	return false;
}

/* The initiator, and the bridges that lead up from it. */
static bool no_master(struct p2p_query *q, const struct pci_chain *chain,
		      unsigned int n)
{
	const struct pci_dev *dev;
	unsigned int i;

	for (i = 0; i < n; i++) {
		dev = chain->dev[i];
		if (dev->absent || !dev->config_len ||
		    fxi_pci_word(dev, PCI_COMMAND) & PCI_COMMAND_MASTER)
			continue;
		fxi_say_no(q, FABREX_P2P_NO_MASTER, dev, PCI_COMMAND_MASTER,
			   "%s %s may not send requests (Command, Bus Master Enable, 0x0004, is clear)",
			   fxi_say_kind(dev), dev->name);
		say_enable(q, dev, PCI_COMMAND_MASTER);
		return true;
	}
	return false;
}

/* ---- memory to offer ---------------------------------------------------- */

/* The next register is the upper half of this 64-bit BAR. */
static bool wide_bar(const struct pci_dev *dev, unsigned int bar)
{
	return (fxi_pci_dword(dev, PCI_BAR0 + 4 * bar) & 7) == 4;
}

/* A BAR register shows a type that the kernel has no range for. */
static bool bar_lost(const struct pci_dev *dev, unsigned int bar)
{
	uint32_t value = fxi_pci_dword(dev, PCI_BAR0 + 4 * bar);
	const struct pci_range *r = &dev->range[bar];

	if (r->start || r->end)
		return r->flags & PCI_RANGE_MEM &&
		       (r->flags & PCI_RANGE_UNSET || !r->start);
	return !(value & 1) && value & 0xe && !(value & ~0xfu);
}

/*
 * The register lost the address that Linux gave it. Those of a Virtual Function
 * are always 0, as are those that Enhanced Allocation stands in for.
 */
static bool bar_cleared(const struct pci_dev *dev, unsigned int bar)
{
	uint32_t low = fxi_pci_dword(dev, PCI_BAR0 + 4 * bar);
	uint32_t high = wide_bar(dev, bar) && bar + 1 < PCI_BARS ?
			fxi_pci_dword(dev, PCI_BAR0 + 4 * (bar + 1)) : 0;
	const struct pci_range *r = &dev->range[bar];

	return dev->config_len >= 64 && r->flags & PCI_RANGE_MEM && r->start &&
	       !dev->virtual && !(r->flags & PCI_RANGE_EA) &&
	       !(low & ~0xfu) && !high;
}

static void was_reset(struct p2p_query *q, const struct pci_dev *dev,
		      unsigned int bar)
{
	fxi_say_no(q, FABREX_P2P_RESET, dev, PCI_BAR0 + 4 * bar,
		   "%s has been reset since Linux set it up: BAR %u has lost its address",
		   dev->name, bar);
	fxi_say_remedy(q, "have it set up anew: echo 1 > /sys/bus/pci/devices/%s/remove; echo 1 > /sys/bus/pci/rescan",
		       dev->name);
}

static void no_space(struct p2p_query *q, const struct pci_dev *dev,
		     unsigned int bar)
{
	uint64_t size = fxi_pci_range_size(&dev->range[bar]);
	char how_much[32] = "";

	if (size)
		snprintf(how_much, sizeof(how_much), " (%llu MiB)",
			 (unsigned long long)(size + 0xfffff) >> 20);
	fxi_say_no(q, FABREX_P2P_BAR_SPACE, dev, PCI_BAR0 + 4 * bar,
		   "BAR %u%s of %s has no address: there was no room in the windows above it",
		   bar, how_much, dev->name);
	fxi_say_remedy(q, "boot with pci=realloc, or for hot-plug with a larger pci=hpmmioprefsize=; firmware must place BARs above 4 GiB");
}

/* What became of a device's BARs; indices, NO_BAR if there is none such. */
#define NO_BAR	PCI_BARS

struct bars {
	unsigned int good, lost, cleared;	/* good: the largest */
};

static void look_at_bars(const struct pci_dev *dev, struct bars *b)
{
	unsigned int i, bars = fxi_pci_bridge(dev) ? 2 : PCI_BARS;
	const struct pci_range *r = dev->range;
	bool wide = false;

	*b = (struct bars){ NO_BAR, NO_BAR, NO_BAR };
	for (i = 0; i < bars; i++) {
		/* The upper half of a 64-bit BAR is no BAR. */
		wide = !wide && i && wide_bar(dev, i - 1);
		if (wide)
			continue;
		if (bar_lost(dev, i))
			b->lost = b->lost == NO_BAR ? i : b->lost;
		else if (bar_cleared(dev, i))
			b->cleared = b->cleared == NO_BAR ? i : b->cleared;
		else if (r[i].flags & PCI_RANGE_MEM &&
			 fxi_pci_range_size(&r[i]) &&
			 (b->good == NO_BAR || fxi_pci_range_size(&r[i]) >
			  fxi_pci_range_size(&r[b->good])))
			b->good = i;
	}
}

/*
 * Registers have a BAR too: of a device that has an address for its registers
 * only, the memory is what one would reach for. Without a size in its range
 * the one that may be prefetched is.
 */
static bool memory_lost(const struct pci_dev *dev, const struct bars *b)
{
	const struct pci_range *good = &dev->range[b->good];
	uint64_t size = fxi_pci_range_size(&dev->range[b->lost]);

	if (size)
		return size > fxi_pci_range_size(good);
	return fxi_pci_dword(dev, PCI_BAR0 + 4 * b->lost) & 8 &&
	       !(good->flags & PCI_RANGE_PREFETCH);
}

static bool no_memory(struct p2p_query *q, const struct pci_dev *dev)
{
	struct bars b;

	if (dev->absent)
		return false;
	look_at_bars(dev, &b);
	if (b.cleared != NO_BAR && b.good == NO_BAR) {
		was_reset(q, dev, b.cleared);
		return true;
	}
	if (b.lost != NO_BAR && (b.good == NO_BAR || memory_lost(dev, &b))) {
		no_space(q, dev, b.lost);
		return true;
	}
	if (b.good != NO_BAR) {
		if (b.lost != NO_BAR || b.cleared != NO_BAR)
			fxi_say_more(q, "; its BAR %u has no address",
				     b.lost != NO_BAR ? b.lost : b.cleared);
		return false;
	}
	if (dev->unreadable)
		return false;
	fxi_say_no(q, FABREX_P2P_NO_BAR, dev, 0,
		   "%s has no memory BAR, so nothing to offer", dev->name);
	fxi_say_remedy(q, "name a device that has memory of its own");
	return true;
}

static bool blocked(struct p2p_query *q)
{
	if (strcmp(q->iommu, "blocked"))
		return false;
	fxi_say_no(q, FABREX_P2P_IOMMU, q->way.a.dev[0], 0,
		   "the IOMMU blocks all that %s sends (type of its group: blocked)",
		   q->way.a.dev[0]->name);
	fxi_say_remedy(q, "bind a driver to it, or write DMA into /sys/bus/pci/devices/%s/iommu_group/type",
		       q->way.a.dev[0]->name);
	return true;
}

/* Nothing was found, but not all could be looked at. */
static void unreadable(struct p2p_query *q, const struct pci_chain *chain,
		       unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && i < chain->n; i++)
		if (chain->dev[i]->unreadable &&
		    q->out->reason != FABREX_P2P_UNREADABLE)
			fxi_say_unreadable(q, chain->dev[i]->name,
					   chain->dev[i]->unreadable);
}

void fxi_check_state(struct p2p_query *q)
{
	const struct p2p_way *way = &q->way;
	unsigned int na, nb;

	if (q->out->verdict == FABREX_P2P_NO)
		return;
	na = way_up(q, &way->a, way->ia);
	nb = way_up(q, &way->b, way->ib);
	/* One device reaches itself if it is awake at all. */
	if (!way->distance)
		na = nb = 1;
	if (asleep(q, &way->a, na) || asleep(q, &way->b, nb) ||
	    no_memory(q, way->b.dev[0]) || memory_off(q, &way->b, nb) ||
	    no_master(q, &way->a, na) || blocked(q))
		return;
	/* With the bridge that turns it round. */
	unreadable(q, &way->a, na);
	unreadable(q, &way->b, nb + (way->common && way->distance));
}
