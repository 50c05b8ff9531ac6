// SPDX-License-Identifier: GPL-2.0-only
/* Memory behind buffers: ranges of VRAM, or pages. Called by buffer.c, move.c. */
#include <linux/io.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "drv.h"

#define COPY_STEP	(1u << 20)

static struct dgpu_store *dgpu_store_alloc(u32 place, u64 length, u64 piece)
{
	struct dgpu_store *store = kzalloc(sizeof(*store), GFP_KERNEL_ACCOUNT);

	if (!store)
		return NULL;
	store->place = place;
	store->piece = piece;
	if (place == DGPU_PLACE_VRAM)
		store->start = kvcalloc(DIV64_U64_ROUND_UP(length, piece),
					sizeof(*store->start),
					GFP_KERNEL_ACCOUNT);
	else
		store->pages = kvcalloc(DIV64_U64_ROUND_UP(length, piece),
					sizeof(*store->pages),
					GFP_KERNEL_ACCOUNT);
	if (!store->start && !store->pages) {
		kfree(store);
		return NULL;
	}
	return store;
}

static u64 dgpu_piece_length(const struct dgpu_store *store, unsigned long at,
			     u64 length)
{
	return min(store->piece, length - at * store->piece);
}

/**
 * dgpu_store_free() - give memory back
 * @dg:     GPU
 * @store:  memory that nobody uses, or NULL
 * @length: of it
 */
void dgpu_store_free(struct dgpu *dg, struct dgpu_store *store, u64 length)
{
	unsigned long i;

	if (!store)
		return;
	for (i = 0; i < store->count; i++) {
		if (store->pages)
			__free_page(store->pages[i]);
		else
			gen_pool_free(dg->pool, store->start[i],
				      dgpu_piece_length(store, i, length));
		cond_resched();
	}
	kvfree(store->start);
	kvfree(store->pages);
	kfree(store);
}

/* Pages between pieces keep them apart; they are given back at the end. */
static int dgpu_store_scatter(struct dgpu *dg, struct dgpu_store *store,
			      u64 length)
{
	unsigned long n = DIV64_U64_ROUND_UP(length, store->piece), i, spacers = 0;
	u64 *spacer = kvcalloc(n, sizeof(*spacer), GFP_KERNEL);
	u64 size;

	if (!spacer)
		return -ENOMEM;
	while (store->count < n) {
		size = dgpu_piece_length(store, store->count, length);
		store->start[store->count] = gen_pool_alloc(dg->pool, size);
		if (!store->start[store->count])
			break;
		store->count++;
		spacer[spacers] = gen_pool_alloc(dg->pool, PAGE_SIZE);
		if (spacer[spacers])
			spacers++;
	}
	for (i = 0; i < spacers; i++)
		gen_pool_free(dg->pool, spacer[i], PAGE_SIZE);
	kvfree(spacer);
	return store->count == n ? 0 : -ENOSPC;
}

static int dgpu_store_whole(struct dgpu *dg, struct dgpu_store *store,
			    u64 length, u64 align)
{
	struct genpool_data_align data = { .align = align };

	store->start[0] = gen_pool_alloc_algo(dg->pool, length,
					      gen_pool_first_fit_align, &data);
	if (!store->start[0])
		return -ENOSPC;
	store->count = 1;
	return 0;
}

/**
 * dgpu_store_vram() - a range of VRAM
 * @dg:      GPU
 * @length:  bytes, whole pages
 * @align:   of its offset; at least a page
 * @scatter: in pieces
 *
 * Return: the store, or an ERR_PTR()
 */
struct dgpu_store *dgpu_store_vram(struct dgpu *dg, u64 length, u64 align,
				   bool scatter)
{
	struct dgpu_store *store;
	int ret;

	store = dgpu_store_alloc(DGPU_PLACE_VRAM, length,
				 scatter ? DGPU_PIECE : length);
	if (!store)
		return ERR_PTR(-ENOMEM);
	if (scatter)
		ret = dgpu_store_scatter(dg, store, length);
	else
		ret = dgpu_store_whole(dg, store, length, align);
	if (ret) {
		dgpu_store_free(dg, store, length);
		return ERR_PTR(ret);
	}
	return store;
}

/**
 * dgpu_store_system() - pages
 * @length: bytes, whole pages
 *
 * Return: the store, or an ERR_PTR()
 */
struct dgpu_store *dgpu_store_system(u64 length)
{
	struct dgpu_store *store;

	store = dgpu_store_alloc(DGPU_PLACE_SYSTEM, length, PAGE_SIZE);
	if (!store)
		return ERR_PTR(-ENOMEM);
	while (store->count < length >> PAGE_SHIFT) {
		store->pages[store->count] = alloc_page(GFP_KERNEL_ACCOUNT |
							__GFP_RETRY_MAYFAIL |
							__GFP_NOWARN);
		if (!store->pages[store->count]) {
			dgpu_store_free(NULL, store, length);
			return ERR_PTR(-ENOMEM);
		}
		store->count++;
		cond_resched();
	}
	return store;
}

/**
 * dgpu_store_at() - where a byte is
 * @store:  memory
 * @offset: byte
 * @left:   out: bytes from there to the end of the piece
 *
 * Return: offset into VRAM, or physical address of system memory
 */
u64 dgpu_store_at(const struct dgpu_store *store, u64 offset, u64 *left)
{
	u64 in, at = div64_u64_rem(offset, store->piece, &in);

	*left = store->piece - in;
	if (store->pages)
		return page_to_phys(store->pages[at]) + in;
	return store->start[at] + in;
}

/* One step between VRAM and a buffer of the kernel. */
static int dgpu_vram_io(struct dgpu *dg, u64 at, void *buf, size_t n,
			bool write)
{
	void __iomem *io = ioremap_wc(dg->vram + at, n);

	if (!io)
		return -ENOMEM;
	if (write)
		memcpy_toio(io, buf, n);
	else
		memcpy_fromio(buf, io, n);
	iounmap(io);
	return 0;
}

static int dgpu_store_io(struct dgpu *dg, const struct dgpu_store *store,
			 u64 offset, void *buf, size_t n, bool write)
{
	u64 left, at;
	size_t step;
	int ret = 0;

	for (; n && !ret; n -= step, offset += step, buf += step) {
		at = dgpu_store_at(store, offset, &left);
		step = min_t(u64, n, left);
		if (!store->pages)
			ret = dgpu_vram_io(dg, at, buf, step, write);
		else if (write)
			memcpy(phys_to_virt(at), buf, step);
		else
			memcpy(buf, phys_to_virt(at), step);
	}
	return ret;
}

/**
 * dgpu_store_copy() - bytes from one place to another
 * @dg:     GPU, there
 * @to:     destination
 * @from:   source
 * @length: bytes
 *
 * Return: 0 or -ENOMEM
 */
int dgpu_store_copy(struct dgpu *dg, const struct dgpu_store *to,
		    const struct dgpu_store *from, u64 length)
{
	void *buf = kvmalloc(COPY_STEP, GFP_KERNEL);
	u64 offset;
	size_t n;
	int ret = 0;

	if (!buf)
		return -ENOMEM;
	for (offset = 0; offset < length && !ret; offset += n) {
		n = min_t(u64, length - offset, COPY_STEP);
		ret = dgpu_store_io(dg, from, offset, buf, n, false);
		if (!ret)
			ret = dgpu_store_io(dg, to, offset, buf, n, true);
		cond_resched();
	}
	kvfree(buf);
	return ret;
}
