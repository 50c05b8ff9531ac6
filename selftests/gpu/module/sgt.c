// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers as importers see them: tables of DMA addresses. Called by export.c,
 * reservation held.
 */
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "drv.h"

/* Of one entry: a multiple of all page sizes that fits its 32 bits. */
#define SG_MOST		((u64)1 << 30)
#define DGPU_DMA_ATTRS	DMA_ATTR_SKIP_CPU_SYNC

static u64 dgpu_step(struct dgpu_export_buf *exp, u64 done, u64 *at)
{
	u64 left;

	*at = dgpu_store_at(exp->bo->store, exp->offset + done, &left);
	return min(left, exp->length - done);
}

static unsigned long dgpu_pieces(struct dgpu_export_buf *exp, u64 most)
{
	unsigned long n = 0;
	u64 done, at, step;

	for (done = 0; done < exp->length; done += step) {
		step = min(dgpu_step(exp, done, &at), most);
		n++;
	}
	return n;
}

static struct sg_table *dgpu_system_map(struct dgpu_export_buf *exp,
					struct dma_buf_attachment *attach,
					enum dma_data_direction dir)
{
	struct page **pages = exp->bo->store->pages +
			      (exp->offset >> PAGE_SHIFT);
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	int ret;

	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table_from_pages(sgt, pages, exp->length >> PAGE_SHIFT,
					0, exp->length, GFP_KERNEL);
	if (ret)
		goto free;
	ret = dma_map_sgtable(attach->dev, sgt, dir, DGPU_DMA_ATTRS);
	if (ret)
		goto free_table;
	return sgt;

free_table:
	sg_free_table(sgt);
free:
	kfree(sgt);
	return ERR_PTR(ret);
}

static void dgpu_resource_undo(struct device *dev, struct sg_table *sgt,
			       int count, enum dma_data_direction dir)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_sg(sgt, sg, i) {
		if (i == count)
			break;
		dma_unmap_resource(dev, sg_dma_address(sg), sg_dma_len(sg),
				   dir, DGPU_DMA_ATTRS);
	}
	sg_free_table(sgt);
	kfree(sgt);
}

/* As vendors' drivers do, which ask nobody for the way. */
static struct sg_table *dgpu_resource_map(struct dgpu_export_buf *exp,
					  struct dma_buf_attachment *attach,
					  enum dma_data_direction dir)
{
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	struct device *dev = attach->dev;
	u64 done = 0, at, step;
	struct scatterlist *sg;
	int i, ret;

	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table(sgt, dgpu_pieces(exp, SG_MOST), GFP_KERNEL);
	if (ret) {
		kfree(sgt);
		return ERR_PTR(ret);
	}
	for_each_sgtable_sg(sgt, sg, i) {
		step = min(dgpu_step(exp, done, &at), SG_MOST);
		sg_set_page(sg, NULL, step, 0);
		sg_dma_address(sg) = dma_map_resource(dev,
						      exp->bo->dg->vram + at,
						      step, dir,
						      DGPU_DMA_ATTRS);
		sg_dma_len(sg) = step;
		if (dma_mapping_error(dev, sg_dma_address(sg))) {
			dgpu_resource_undo(dev, sgt, i, dir);
			return ERR_PTR(-EIO);
		}
		done += step;
	}
	return sgt;
}

#if FABREX_HAVE_PROVIDER
static struct sg_table *dgpu_provider_map(struct dgpu_export_buf *exp,
					  struct dma_buf_attachment *attach,
					  enum dma_data_direction dir)
{
	unsigned long i, n = dgpu_pieces(exp, U64_MAX);
	struct dgpu *dg = exp->bo->dg;
	struct phys_vec *vec = kvcalloc(n, sizeof(*vec), GFP_KERNEL);
	u64 done = 0, at;
	struct sg_table *sgt;

	if (!vec)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < n; i++) {
		vec[i].len = dgpu_step(exp, done, &at);
		vec[i].paddr = dg->vram + at;
		done += vec[i].len;
	}
	sgt = dma_buf_phys_vec_to_sgt(attach,
				      pcim_p2pdma_provider(dg->pdev,
							   DRACO_GPU_BAR_VRAM),
				      vec, n, exp->length, dir);
	kvfree(vec);
	return sgt;
}

static void dgpu_provider_unmap(struct dma_buf_attachment *attach,
				struct sg_table *sgt,
				enum dma_data_direction dir)
{
	/* 7.2 hides the CPU's list by a count of 0, and so forgets to free it. */
	sgt->orig_nents = sgt->nents;
	dma_buf_free_sgt(attach, sgt, dir);
}

int dgpu_p2p_init(struct dgpu *dg)
{
	return pcim_p2pdma_init(dg->pdev);
}
#else
/* Without it nobody gets as far as this: attaching is refused. */
#define dgpu_provider_map	dgpu_resource_map

static void dgpu_provider_unmap(struct dma_buf_attachment *attach,
				struct sg_table *sgt,
				enum dma_data_direction dir)
{
	dgpu_resource_undo(attach->dev, sgt, -1, dir);
}

int dgpu_p2p_init(struct dgpu *dg)
{
	return 0;
}
#endif

/**
 * dgpu_sgt_map() - map for a device
 * @exp:    dma-buf, not revoked
 * @attach: importer
 * @dir:    direction
 *
 * Return: table for dgpu_sgt_unmap(), or an ERR_PTR()
 */
struct sg_table *dgpu_sgt_map(struct dgpu_export_buf *exp,
			      struct dma_buf_attachment *attach,
			      enum dma_data_direction dir)
{
	if (exp->bo->store->pages)
		return dgpu_system_map(exp, attach, dir);
	if (dgpu_without_p2pdma)
		return dgpu_resource_map(exp, attach, dir);
	return dgpu_provider_map(exp, attach, dir);
}

/**
 * dgpu_sgt_unmap() - undo dgpu_sgt_map()
 * @exp:    dma-buf, revoked or not
 * @attach: importer
 * @sgt:    table
 * @dir:    as it was mapped
 *
 * While anything is mapped, the memory stays at its place.
 */
void dgpu_sgt_unmap(struct dgpu_export_buf *exp,
		    struct dma_buf_attachment *attach, struct sg_table *sgt,
		    enum dma_data_direction dir)
{
	if (exp->bo->store->pages) {
		dma_unmap_sgtable(attach->dev, sgt, dir, DGPU_DMA_ATTRS);
		sg_free_table(sgt);
		kfree(sgt);
	} else if (dgpu_without_p2pdma) {
		dgpu_resource_undo(attach->dev, sgt, -1, dir);
	} else {
		dgpu_provider_unmap(attach, sgt, dir);
	}
}
