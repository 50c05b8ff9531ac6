// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switchtec PFX: windows. A BAR with windows begins with pages that a table
 * aims one by one, followed by a direct window.
 */
#include <string.h>

#include "counters.h"
#include "fabric.h"
#include "pfx.h"
#include "port.h"

/* Where an access goes, and how many bytes of it go on there. */
struct aim {
	unsigned int target;
	uint64_t addr, room;
};

static uint64_t lut_bytes(uint32_t ctl)
{
	return ctl & BAR_LUT ? (uint64_t)BAR_LUT_PAGES(ctl) <<
				       BAR_LUT_SHIFT(ctl) : 0;
}

static uint64_t direct_bytes(const struct pfx_tables *t, unsigned int bar)
{
	return (t->bar[bar].size & BAR_SIZE_LOW) |
	       (uint64_t)t->bar[bar].size_high << 32;
}

/* ---- Checking what is to be configured ---- */

/* Bits of the address below the window's size would be lost. */
static bool direct_good(const struct pfx_part *p, unsigned int bar)
{
	const struct pfx_tables *t = &p->ctrl.written;
	uint64_t size = direct_bytes(t, bar), addr = pfx_join(t->bar[bar].addr);
	uint64_t lut = lut_bytes(t->bar[bar].ctl);

	if (!(t->bar[bar].ctl & BAR_DIRECT))
		return true;
	if (!size || lut >= p->window || size > p->window - lut)
		return false;
	return (addr & BAR_TARGET) == p->peer->id &&
	       !(addr & BAR_ADDRESS & ((1ull << (63 - __builtin_clzll(size))) - 1));
}

static bool lut_good(const struct pfx_part *p, unsigned int bar)
{
	uint32_t ctl = p->ctrl.written.bar[bar].ctl;

	if (!(ctl & BAR_LUT))
		return true;
	return BAR_LUT_SHIFT(ctl) >= 12 && BAR_LUT_SHIFT(ctl) < 32 &&
	       BAR_LUT_PAGES(ctl) <= PFX_LUT_ENTRIES &&
	       lut_bytes(ctl) <= p->window;
}

bool pfx_window_check(struct pfx_part *p)
{
	struct pfx_ctrl *c = &p->ctrl;

	c->bar_error = c->lut_error = 0;
	for (unsigned int i = 0; i < CTRL_NBARS; i++) {
		uint32_t ctl = c->written.bar[i].ctl;
		bool on = ctl & (BAR_DIRECT | BAR_LUT);

		if (on && (!(ctl & BAR_VALID) || !direct_good(p, i) ||
			   !lut_good(p, i)))
			c->bar_error |= 1u << i;
	}
	/* The number of the first entry that is wrong, from 1 on. */
	for (unsigned int i = PFX_LUT_ENTRIES; i--;) {
		uint64_t entry = pfx_join(c->written.lut[i]);

		if (entry & LUT_ON && LUT_TARGET(entry) != p->peer->id)
			c->lut_error = i + 1;
	}
	return !c->bar_error && !c->lut_error;
}

/* ---- Accesses ---- */

static bool known(const struct pfx_part *p, uint32_t requester)
{
	if (requester == PFX_SELF)
		return true;
	for (unsigned int i = 0; i < PFX_REQUESTERS; i++) {
		uint32_t v = p->ctrl.active.req[i];

		if (v & REQ_ON && v >> REQ_ID_SHIFT == requester)
			return true;
	}
	return false;
}

static bool aim_lut(const struct pfx_tables *t, uint32_t ctl, uint64_t offset,
		    struct aim *a)
{
	uint64_t page = 1ull << BAR_LUT_SHIFT(ctl);
	uint64_t entry = pfx_join(t->lut[offset / page]);

	if (!(entry & LUT_ON))
		return false;
	a->target = LUT_TARGET(entry);
	a->addr = (entry & ~(page - 1)) + offset % page;
	a->room = page - offset % page;
	return true;
}

static bool aim_direct(const struct pfx_tables *t, unsigned int bar,
		       uint64_t offset, struct aim *a)
{
	uint64_t size = direct_bytes(t, bar), addr = pfx_join(t->bar[bar].addr);

	if (!(t->bar[bar].ctl & BAR_DIRECT) || offset >= size)
		return false;
	a->target = addr & BAR_TARGET;
	a->addr = (addr & BAR_ADDRESS) + offset;
	a->room = size - offset;
	return true;
}

static bool aim_at(const struct pfx_part *p, unsigned int bar, uint64_t offset,
		   struct aim *a)
{
	const struct pfx_tables *t = &p->ctrl.active;
	uint64_t lut = lut_bytes(t->bar[bar].ctl);

	if (offset < lut)
		return aim_lut(t, t->bar[bar].ctl, offset, a);
	return aim_direct(t, bar, offset - lut, a);
}

/* The host behind the bridge is there, and both links are up. */
static bool reachable(const struct pfx_part *p, unsigned int target)
{
	return target == p->peer->id && p->peer->attached &&
	       atomic_load(&p->peer->port->link->up) &&
	       atomic_load(&p->port->link->up);
}

/* The host may have no memory there, or an IOMMU that does not translate this. */
static bool move(struct port *to, uint64_t addr, void *in, const void *out,
		 size_t len)
{
	if (!(in ? mem_read(to, addr, in, len) : mem_write(to, addr, out, len)))
		return true;
	count(&to->counters, CNT_ERRORS);
	return false;
}

bool pfx_window_access(struct pfx_part *p, uint32_t requester, unsigned int bar,
		       uint64_t offset, void *in, const void *out, size_t len)
{
	if (!p->peer || !known(p, requester))
		return false;
	while (len) {
		struct aim a;
		size_t n;

		if (!aim_at(p, bar, offset, &a) || !reachable(p, a.target))
			return false;
		n = a.room < len ? a.room : len;
		if (!move(p->peer->port, a.addr, in, out, n))
			return false;
		if (in)
			in = (char *)in + n;
		else
			out = (const char *)out + n;
		offset += n;
		len -= n;
	}
	return true;
}
