// SPDX-License-Identifier: GPL-2.0-only
/*
 * Direct mode, the side of the owner: regions are linked into a range of bus
 * addresses to which the peer's second window is translated, once, when the link
 * comes up. What is not linked there, the IOMMU keeps from the peer. Called by the
 * engine through fabrex_wire_ops, by wire.c, link.c and client.c.
 *
 * A region's pages are unlinked when it is destroyed, and from then on a store of the
 * peer ends in the IOMMU. But a store that is under way must not meet another
 * region: so their part of the range is used again only when the peer has said that
 * it stores there no more, or has begun a new epoch.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "ntb.h"

#define RANGE_MIN	SZ_64K
#define RANGE_MAX	(16ull * SZ_1G)
/* Regions that the peer has not forgotten yet, before no more are linked. */
#define GONE_MAX	1024u
/* Pieces of memory of a region: the thread has other things to do. */
#define RUNS_MAX	65536u

static bool direct;
module_param(direct, bool, 0444);
MODULE_PARM_DESC(direct, "let the peer store to registered memory by itself, through a second memory window, where an IOMMU confines it to that; root on the peer host can then read and write the pages of regions that the peer has written to (default: N)");

/* ---- may it be used? --------------------------------------------------- */

/* Nothing but the bridge may be in its group: what others have mapped would be
 * within reach. They are named in the log, see client.c.
 */
static bool fntb_direct_alone(struct fntb_port *np)
{
	struct fabrex_iommu_group group;

	return fabrex_iommu_group_read(np->dma_dev, &group) && !group.others;
}

/* Why not, or NULL. */
static const char *fntb_direct_obstacle(struct fntb_port *np)
{
	if (!FABREX_IOVA)
		return "it takes Linux 6.16 or later";
	if (!fabrex_dma_by_iommu(np->dma_dev))
		return "no IOMMU translates DMA from this NTB; boot with iommu.passthrough=0 (on Intel also intel_iommu=on)";
	if (!fabrex_isolated_msi(np->dma_dev))
		return "the IOMMU does not remap interrupts, so the peer could raise any of this host's; enable interrupt remapping in the firmware";
	if (fabrex_dma_need_sync(np->dma_dev, 0))
		return "DMA from this NTB is not coherent with the processors' caches";
	if (!fntb_direct_alone(np))
		return "other devices are in its IOMMU group; enable ACS on the switch above them";
	if (ntb_mw_count(np->ntb, NTB_DEF_PEER_IDX) < 2)
		return "the bridge has a single memory window";
	return NULL;
}

/**
 * fntb_direct_open() - find out whether direct mode can be offered to the peer
 * @np: port
 *
 * Context: Process; sleeps.
 * Return: 0, also if it cannot be, which is said in the log; -ENOMEM
 */
int fntb_direct_open(struct fntb_port *np)
{
	const char *why;

	if (!direct)
		return 0;
	why = fntb_direct_obstacle(np);
	if (why) {
		dev_warn(&np->ntb->dev, "direct mode cannot be used, payload is bounced: %s\n",
			 why);
		return 0;
	}
	np->direct = kzalloc(sizeof(*np->direct), GFP_KERNEL);
	if (!np->direct)
		return -ENOMEM;
	spin_lock_init(&np->direct->lock);
	INIT_LIST_HEAD(&np->direct->gone);
	INIT_LIST_HEAD(&np->direct->asked);
	return 0;
}

/* ---- the range --------------------------------------------------------- */

/* The only page that is linked without a region. */
static int fntb_direct_mark(struct fntb_port *np)
{
	struct fntb_direct *d = np->direct;
	int ret;

	d->marks = (void *)get_zeroed_page(GFP_KERNEL);
	if (!d->marks)
		return -ENOMEM;
	ret = dma_iova_link(np->dma_dev, &d->range, virt_to_phys(d->marks), 0,
			    PAGE_SIZE, DMA_BIDIRECTIONAL, 0);
	if (ret)
		goto free;
	ret = dma_iova_sync(np->dma_dev, &d->range, 0, PAGE_SIZE);
	if (!ret)
		return 0;
	dma_iova_unlink(np->dma_dev, &d->range, 0, PAGE_SIZE, DMA_BIDIRECTIONAL,
			0);
free:
	free_page((unsigned long)d->marks);
	d->marks = NULL;
	return ret;
}

static int fntb_direct_alloc(struct fntb_port *np, u64 bytes)
{
	struct fntb_direct *d = np->direct;
	int ret = -ENOMEM;

	d->used = kvcalloc(BITS_TO_LONGS(bytes >> PAGE_SHIFT), sizeof(long),
			   GFP_KERNEL);
	if (!d->used)
		return -ENOMEM;
	if (!dma_iova_try_alloc(np->dma_dev, &d->range, 0, bytes))
		goto free;
	ret = -EINVAL;
	if (!IS_ALIGNED(d->range.addr, bytes))
		goto free_range;
	ret = fntb_direct_mark(np);
	if (ret)
		goto free_range;
	__set_bit(0, d->used);
	d->bytes = bytes;
	return 0;

free_range:
	dma_iova_free(np->dma_dev, &d->range);
free:
	kvfree(d->used);
	d->used = NULL;
	return ret;
}

static int fntb_direct_range(struct fntb_port *np)
{
	resource_size_t align, multiple, most;
	int ret;

	ret = ntb_mw_get_align(np->ntb, NTB_DEF_PEER_IDX, 1, &align, &multiple,
			       &most);
	if (ret)
		return ret;
	most = rounddown_pow_of_two(min_t(u64, most, RANGE_MAX));
	if (most < RANGE_MIN || align > most)
		return -EINVAL;
	/* What was smaller before is not aimed with more. */
	if (!np->direct->bytes)
		ret = fntb_direct_alloc(np, most);
	else if (most < np->direct->bytes)
		ret = -EINVAL;
	return ret ?: ntb_mw_set_trans(np->ntb, NTB_DEF_PEER_IDX, 1,
				       np->direct->range.addr,
				       np->direct->bytes);
}

/**
 * fntb_direct_aim() - let the peer reach the range
 * @np: port, whose NTB has a link
 *
 * If that is impossible, payload is bounced.
 *
 * Context: The thread; sleeps.
 */
void fntb_direct_aim(struct fntb_port *np)
{
	int ret;

	np->offered = 0;
	if (!np->direct)
		return;
	ret = fntb_direct_range(np);
	if (!ret)
		np->offered = np->direct->bytes;
	else
		dev_warn_ratelimited(&np->ntb->dev,
				     "cannot set up the second memory window, payload is bounced: %pe\n",
				     ERR_PTR(ret));
}

/* Nobody stores there any more; @link is in no list. */
static void fntb_direct_reuse(struct fntb_direct *d, struct fntb_link *link)
{
	spin_lock(&d->lock);
	bitmap_clear(d->used, link->first, link->npages);
	spin_unlock(&d->lock);
	kfree(link);
}

/**
 * fntb_direct_up() - the peer has begun a new epoch, and knows no region
 * @np: port, whose wire is down
 *
 * Context: The thread.
 */
void fntb_direct_up(struct fntb_port *np)
{
	struct fntb_direct *d = np->direct;
	struct fntb_link *link, *next;
	LIST_HEAD(gone);

	if (!d)
		return;
	spin_lock(&d->lock);
	list_splice_init(&d->gone, &gone);
	list_splice_init(&d->asked, &gone);
	d->ngone = 0;
	spin_unlock(&d->lock);
	list_for_each_entry_safe(link, next, &gone, list)
		fntb_direct_reuse(d, link);
}

static void fntb_direct_release(struct fntb_port *np)
{
	struct fntb_direct *d = np->direct;

	if (ntb_mw_clear_trans(np->ntb, NTB_DEF_PEER_IDX, 1)) {
		dev_err(&np->ntb->dev,
			"cannot clear the translation of the second memory window: leaking its bus addresses and a page\n");
		return;
	}
	dma_iova_unlink(np->dma_dev, &d->range, 0, PAGE_SIZE, DMA_BIDIRECTIONAL,
			0);
	/* What is on its way must not meet whoever gets these addresses next. */
	msleep(300);
	dma_iova_free(np->dma_dev, &d->range);
	free_page((unsigned long)d->marks);
}

/**
 * fntb_direct_free() - take the range away from the peer
 * @np: port; there are no regions and no calls any more
 *
 * Context: Process; sleeps.
 */
void fntb_direct_free(struct fntb_port *np)
{
	struct fntb_direct *d = np->direct;

	if (!d)
		return;
	fntb_direct_up(np);
	if (d->bytes)
		fntb_direct_release(np);
	kvfree(d->used);
	kfree(d);
	np->direct = NULL;
}

/* ---- regions ----------------------------------------------------------- */

static bool fntb_direct_place(struct fntb_direct *d, struct fntb_link *link)
{
	unsigned long pages = d->bytes >> PAGE_SHIFT, first;

	spin_lock(&d->lock);
	first = pages;
	if (d->ngone < GONE_MAX)
		first = bitmap_find_next_zero_area(d->used, pages, 1,
						   link->npages, 0);
	if (first < pages)
		bitmap_set(d->used, first, link->npages);
	spin_unlock(&d->lock);
	link->first = first;
	return first < pages;
}

static void fntb_direct_undo(struct fntb_port *np, u64 first, u64 n)
{
	if (n)
		dma_iova_unlink(np->dma_dev, &np->direct->range,
				first << PAGE_SHIFT, n << PAGE_SHIFT,
				DMA_FROM_DEVICE, 0);
}

static u64 fntb_run(struct page **pages, u64 n)
{
	u64 run = 1;

	while (run < n && page_to_pfn(pages[run]) == page_to_pfn(*pages) + run)
		run++;
	return run;
}

static bool fntb_direct_fits(const struct fntb_direct *d, struct page **pages,
			     u64 n)
{
	u64 i, runs = 0;

	if (n >= d->bytes >> PAGE_SHIFT)
		return false;
	for (i = 0; i < n && runs <= RUNS_MAX; runs++)
		i += fntb_run(pages + i, n - i);
	return runs <= RUNS_MAX;
}

/* The peer may store to them; there is no need for it to read. */
static int fntb_direct_map(struct fntb_port *np, u64 first, struct page **pages,
			   u64 n)
{
	struct dma_iova_state *range = &np->direct->range;
	u64 i, run;
	int ret;

	for (i = 0; i < n; i += run) {
		run = fntb_run(pages + i, n - i);
		ret = dma_iova_link(np->dma_dev, range, page_to_phys(pages[i]),
				    (first + i) << PAGE_SHIFT,
				    run << PAGE_SHIFT, DMA_FROM_DEVICE, 0);
		if (ret)
			goto undo;
		cond_resched();
	}
	ret = dma_iova_sync(np->dma_dev, range, first << PAGE_SHIFT,
			    n << PAGE_SHIFT);
	if (!ret)
		return 0;
undo:
	fntb_direct_undo(np, first, i);
	return ret;
}

/**
 * fntb_direct_link() - &fabrex_wire_ops.link
 * @wire:  wire
 * @key:   of the region
 * @pages: of it
 * @n:     their number
 * @where: result: offset in the range
 *
 * Context: The thread; sleeps.
 * Return: &struct fntb_link; NULL if there is no room now; ERR_PTR() if there never is
 */
void *fntb_direct_link(struct fabrex_wire *wire, u64 key, struct page **pages,
		       u64 n, u64 *where)
{
	struct fntb_port *np = fntb_port_of(wire);
	struct fntb_direct *d = np->direct;
	struct fntb_link *link;

	if (!np->offered)
		return NULL;
	if (!fntb_direct_fits(d, pages, n))
		return ERR_PTR(-EFBIG);
	link = kzalloc(sizeof(*link), GFP_KERNEL);
	if (!link)
		return NULL;
	link->key = key;
	link->npages = n;
	if (!fntb_direct_place(d, link))
		goto free;
	if (fntb_direct_map(np, link->first, pages, n))
		goto give_back;
	*where = link->first << PAGE_SHIFT;
	return link;

give_back:
	spin_lock(&d->lock);
	bitmap_clear(d->used, link->first, link->npages);
	spin_unlock(&d->lock);
free:
	kfree(link);
	return NULL;
}

/**
 * fntb_direct_unlink() - &fabrex_wire_ops.unlink
 * @wire: wire
 * @link: from fntb_direct_link()
 *
 * When this returns, the IOMMU has forgotten the pages.
 *
 * Context: Process; sleeps.
 */
void fntb_direct_unlink(struct fabrex_wire *wire, void *link)
{
	struct fntb_port *np = fntb_port_of(wire);
	struct fntb_link *gone = link;

	fntb_direct_undo(np, gone->first, gone->npages);
	gone->retry_at = jiffies;
	spin_lock(&np->direct->lock);
	list_add(&gone->list, &np->direct->gone);
	np->direct->ngone++;
	spin_unlock(&np->direct->lock);
	fntb_link_wake(np);
}

/**
 * fntb_direct_gone() - a region that the peer has to be asked to forget
 * @np: port
 *
 * One at a time.
 *
 * Context: The thread.
 * Return: it, until fntb_direct_forgotten() is called; NULL if there is none now
 */
struct fntb_link *fntb_direct_gone(struct fntb_port *np)
{
	struct fntb_direct *d = np->direct;
	struct fntb_link *link;

	if (!d || list_empty(&d->gone))
		return NULL;
	spin_lock(&d->lock);
	link = list_first_entry_or_null(&d->gone, struct fntb_link, list);
	if (link && (!list_empty(&d->asked) ||
		     time_before(jiffies, link->retry_at)))
		link = NULL;
	if (link)
		list_move(&link->list, &d->asked);
	spin_unlock(&d->lock);
	return link;
}

/**
 * fntb_direct_forgotten() - the peer has answered
 * @np:        port
 * @link:      from fntb_direct_gone()
 * @forgotten: it does not store there any more; else it is asked again
 *
 * Context: Process.
 */
void fntb_direct_forgotten(struct fntb_port *np, struct fntb_link *link,
			   bool forgotten)
{
	struct fntb_direct *d = np->direct;

	spin_lock(&d->lock);
	list_del(&link->list);
	if (forgotten) {
		d->ngone--;
	} else {
		link->retry_at = jiffies + FNTB_TICK;
		list_add_tail(&link->list, &d->gone);
	}
	spin_unlock(&d->lock);
	if (forgotten)
		fntb_direct_reuse(d, link);
}
