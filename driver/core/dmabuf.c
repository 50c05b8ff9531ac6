// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs of exporters: attached, mapped, unmapped when the exporter
 * invalidates them, mapped again after a move. Called by mr.c, port.c and
 * exporters.
 *
 * An exporter calls fabrex_dmabuf_invalidate() with dma_resv held, and may give
 * the memory to somebody else when that has returned. Everything that maps or
 * unmaps holds dma_resv, so this call never finds a mapping half done. It is
 * kept apart from the end of the region by dmabuf->lock: the device is asked to
 * invalidate the region, by its number, only while it knows the region; and
 * whoever makes the device forget the region (destroy, fail, unregister) notes
 * that under the same lock. So there is no need for registration_lock, which a
 * caller in the midst of memory reclaim may already hold.
 *
 * If the device does not respond, draco_exec_destroy() waits for MR_INVALIDATE
 * for admin_timeout_ms (10 s), withdraws it (up to 15 s), and then has the
 * controller disabled, which turns bus mastering off if nothing else helps
 * (ready_ms). Each of these runs in stop_work or in whoever has taken its place
 * (removal, AER, function reset), down to the point where the admin queue is
 * DOWN and the wait ends, without any lock of this file, registration_lock or
 * dma_resv. Only after that is fabrex_port_fail() called, which waits for
 * dmabuf->lock. So an exporter is delayed by half a minute at worst but never
 * blocked, and the device no longer accesses its memory when this returns.
 *
 * Nobody waits for fences with dma_resv held: others need it to submit work, or
 * to evict the memory. A registration that has to wait keeps its mapping, which
 * the exporter may invalidate meanwhile, and checks again.
 *
 * A region is in one of these states: valid; invalid, with @remap queued;
 * revoked, because the exporter refused to map it again: nothing is attached
 * any more, the owner has been told, and it can only be destroyed; dead,
 * because the device has lost it: its mapping stays until it is destroyed or
 * revoked.
 */
#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "dmabuf.h"
#include "trace.h"

/* How long a registration waits for fences. */
#define FENCE_OPEN_MS	30000u
#define FENCE_SLICE_MS	100u
/* A remap that has to wait (for fences, or the exporter's lock) is queued
 * again, so that no user's buffer keeps the workers from others'. If there is
 * no memory, or the exporter is busy, it is tried at growing intervals, for
 * about ten minutes.
 */
#define REMAP_MS	100u
#define REMAP_MAX_MS	10000u
#define REMAP_TRIES	120u

static struct workqueue_struct *fabrex_remap_wq;

/* Some error codes must not leave the kernel. An interrupted exporter has done
 * nothing: the call is restarted unless the process has a handler for the
 * signal.
 */
static int fabrex_dmabuf_errno(int error)
{
	switch (error) {
	case -EINTR:
		return -ERESTARTSYS;
	case -ENOTSUPP:
		return -EOPNOTSUPP;
	case -EPROBE_DEFER:
		return -EAGAIN;
	}
	return error;
}

static void fabrex_dmabuf_unmap(struct fabrex_dmabuf *buf)
{
	if (buf->sgt)
		dma_buf_unmap_attachment(buf->attach, buf->sgt, buf->dir);
	buf->sgt = NULL;
	if (buf->pinned)
		dma_buf_unpin(buf->attach);
	buf->pinned = false;
}

/* Called by the exporter, in process context with dma_resv held, to end all
 * accesses to the memory; see the top of this file. May be called before the
 * region is created, and until dma_buf_detach() has removed it from the list,
 * in whatever state the region is.
 */
static void fabrex_dmabuf_invalidate(struct dma_buf_attachment *attach)
{
	struct fabrex_dmabuf *buf = attach->importer_priv;
	struct fabrex_port *port = buf->port;
	int ret = 0;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (!buf->sgt)
		return;
	fabrex_watch_count(buf->watch);
	mutex_lock(&buf->lock);
	if (buf->known && !WARN_ON_ONCE(!port->ops))
		ret = port->ops->data->mr_invalidate(port,
						     buf->res->number);
	if (buf->known && !buf->dying)
		queue_delayed_work(fabrex_remap_wq, &buf->remap, 0);
	mutex_unlock(&buf->lock);
	trace_fabrex_mr_move(buf->res, "invalidate", ret);
	if (ret && ret != -ENODEV)
		dev_err(&port->dev, "the device has not released region %u: %d\n",
			buf->res->number, ret);
	fabrex_dmabuf_unmap(buf);
}

static const struct dma_buf_attach_ops fabrex_attach_ops = {
	.allow_peer2peer = true,
	.fabrex_invalidate_mappings = fabrex_dmabuf_invalidate,
};

/* Whatever the exporter or a GPU was told to do with the memory must have
 * finished before the device may access it; a dynamic importer has to ensure
 * that. For a new region this means all writes submitted so far. What is
 * submitted later is up to its users: otherwise a busy GPU could keep regions
 * from being created or becoming valid again. Moves and the clearing of new
 * memory are always waited for (USAGE_KERNEL).
 *
 * Any signal ends the wait, and the ioctl is restarted: that is also how
 * processes are frozen, stopped and traced, which must not take as long as
 * somebody's GPU. In slices, because the removal of the port ends the wait too.
 * Without locks.
 */
static int fabrex_dmabuf_wait(struct fabrex_dmabuf *buf,
			      struct dma_fence *fence, unsigned long end)
{
	long ret;

	for (;;) {
		ret = dma_fence_wait_timeout(fence, true,
					     msecs_to_jiffies(FENCE_SLICE_MS));
		if (ret)
			return min(ret, 0L);
		if (READ_ONCE(buf->dying) || !READ_ONCE(buf->port->ops))
			return -ENODEV;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
	}
}

/* With dma_resv held. *@fence: to be waited for, or NULL. */
static int fabrex_dmabuf_fence(struct fabrex_dmabuf *buf,
			       enum dma_resv_usage usage,
			       struct dma_fence **fence)
{
	struct dma_resv *resv = buf->dmabuf->resv;

	*fence = NULL;
	if (dma_resv_test_signaled(resv, usage))
		return 0;
	return dma_resv_get_singleton(resv, usage, fence);
}

/* The device counts in pages of 4 KiB, and nobody bounces for it. */
static int fabrex_dmabuf_suits(const struct fabrex_dmabuf *buf)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(buf->sgt, sg, i)
		if ((sg_dma_address(sg) | sg_dma_len(sg)) &
		    (FABREX_PAGE_SIZE - 1))
			return -EINVAL;
	return fabrex_coherent(buf->dev, buf->sgt) ? 0 : -EOPNOTSUPP;
}

/* With dma_resv held. After an error nothing is mapped; @tell: log it. */
static int fabrex_dmabuf_map(struct fabrex_dmabuf *buf, bool tell)
{
	const char *what = "be mapped";
	struct sg_table *sgt;
	int ret;

	sgt = dma_buf_map_attachment(buf->attach, buf->dir);
	ret = PTR_ERR_OR_ZERO(sgt);
	if (!ret) {
		buf->sgt = sgt;
		what = "be used as it is";
		ret = fabrex_dmabuf_suits(buf);
	}
	if (!ret)
		return 0;
	if (tell)
		fabrex_dmabuf_explain(buf, what, ret);
	fabrex_dmabuf_unmap(buf);
	return ret;
}

static int fabrex_dmabuf_pin(struct fabrex_dmabuf *buf)
{
	int ret;

	if (!buf->pin || buf->pinned)
		return 0;
	ret = dma_buf_pin(buf->attach);
	buf->pinned = !ret;
	if (ret)
		fabrex_dmabuf_explain(buf, "be pinned", ret);
	return ret;
}

/* From here on nobody queues @remap, but it may be running. */
static void fabrex_dmabuf_detach(struct fabrex_dmabuf *buf)
{
	struct dma_buf *dmabuf = buf->dmabuf;

	if (buf->attach) {
		dma_resv_lock(dmabuf->resv, NULL);
		fabrex_dmabuf_unmap(buf);
		dma_resv_unlock(dmabuf->resv);
		/* The exporter may call until this has taken dma_resv. */
		dma_buf_detach(dmabuf, buf->attach);
	}
	buf->attach = NULL;
	buf->dmabuf = NULL;
	if (dmabuf)
		dma_buf_put(dmabuf);
}

static void fabrex_dmabuf_later(struct fabrex_dmabuf *buf, unsigned int ms)
{
	guard(mutex)(&buf->lock);
	if (buf->known && !buf->dying)
		queue_delayed_work(fabrex_remap_wq, &buf->remap,
				   msecs_to_jiffies(ms));
}

/* May it succeed later? */
static bool fabrex_dmabuf_again(struct fabrex_dmabuf *buf, int error)
{
	unsigned int ms = REMAP_MS;

	switch (error) {
	case -ENOMEM:
	case -EAGAIN:
	case -EBUSY:
		if (buf->tries >= REMAP_TRIES)
			return false;
		ms = min(REMAP_MS << min(buf->tries / 10, 7u), REMAP_MAX_MS);
		buf->tries++;
		break;
	case -EINTR:
	case -ERESTARTSYS:
	case -ETIMEDOUT:
		break;
	default:
		return false;
	}
	fabrex_dmabuf_later(buf, ms);
	return true;
}

/* The memory will not come back: tell the owner and
 * detach from the exporter.
 */
static void fabrex_dmabuf_revoked(struct fabrex_dmabuf *buf, int error)
{
	struct fabrex_res *res = buf->res;
	struct fabrex_event event = {
		.type = FABREX_EVENT_MR_REVOKED,
		.id = res->id,
		.error = -error,
	};

	fabrex_dmabuf_explain(buf, "be mapped again", error);
	fabrex_watch_count(buf->watch);
	trace_fabrex_event(res->port, &event);
	fabrex_events_push(&res->file->events, &event);
	fabrex_dmabuf_detach(buf);
}

/**
 * fabrex_dmabuf_memory() - get the memory of a region
 * @buf:    mapped
 * @memory: result
 *
 * Context: Process. With dma_resv held.
 */
void fabrex_dmabuf_memory(const struct fabrex_dmabuf *buf,
			  struct fabrex_mr_memory *memory)
{
	*memory = (struct fabrex_mr_memory) {
		.dev = buf->dev,
		.sgt = buf->sgt,
		.from = round_down(buf->offset, FABREX_PAGE_SIZE),
		.to = round_up(buf->offset + buf->length, FABREX_PAGE_SIZE),
		.offset = buf->offset & (FABREX_PAGE_SIZE - 1),
	};
}

/* Supply the memory to the device again. It is mapped, and dma_resv is held.
 * -ESTALE: the device has forgotten the region, or is about to. After another
 * error the region is invalid and has no memory.
 */
static int fabrex_dmabuf_restore(struct fabrex_dmabuf *buf)
{
	struct fabrex_port *port = buf->port;
	u32 number = buf->res->number;
	struct fabrex_mr_memory memory;
	int ret;

	guard(rwsem_read)(&port->registration_lock);
	guard(mutex)(&buf->supply_lock);
	if (!buf->known || fabrex_port_usable(port))
		return -ESTALE;
	fabrex_dmabuf_memory(buf, &memory);
	ret = fabrex_memory_complete(&memory) ?
	      port->ops->data->mr_pages(port, number, &memory) : -EINVAL;
	/* Part of it may have been supplied. */
	if (ret && port->ops->data->mr_invalidate(port, number))
		return -ESTALE;
	return ret;
}

/* With dma_resv held: is the memory still where it is mapped? */
static bool fabrex_dmabuf_settled(struct fabrex_dmabuf *buf)
{
	return dma_resv_test_signaled(buf->dmabuf->resv, DMA_RESV_USAGE_KERNEL);
}

/* With dma_resv held: map the memory at its new place. */
static int fabrex_dmabuf_revive(struct fabrex_dmabuf *buf)
{
	int ret;

	if (buf->sgt || READ_ONCE(buf->dying))
		return -ESTALE;
	/* The exporter promised not to move it; or only the old mapping is
	 * available.
	 */
	if (buf->pin || fabrex_attach_cached(buf->attach))
		return -ENODEV;
	if (!fabrex_dmabuf_settled(buf))
		return -ETIMEDOUT;
	ret = fabrex_dmabuf_map(buf, false);
	if (ret)
		return fabrex_dmabuf_errno(ret);
	/* Mapping may have moved it. */
	ret = fabrex_dmabuf_settled(buf) ? fabrex_dmabuf_restore(buf) :
					   -ETIMEDOUT;
	if (ret)
		fabrex_dmabuf_unmap(buf);
	return ret;
}

/* -ESTALE: there is nothing to be done, or it was queued for later. */
static int fabrex_dmabuf_try_revive(struct fabrex_dmabuf *buf)
{
	int ret;

	if (!dma_resv_trylock(buf->dmabuf->resv)) {
		fabrex_dmabuf_later(buf, 1);
		return -ESTALE;
	}
	ret = fabrex_dmabuf_revive(buf);
	dma_resv_unlock(buf->dmabuf->resv);
	trace_fabrex_mr_move(buf->res, "remap", ret);
	return ret;
}

static void fabrex_dmabuf_remap(struct work_struct *work)
{
	struct fabrex_dmabuf *buf = container_of(to_delayed_work(work),
						 struct fabrex_dmabuf, remap);
	int ret;

	if (!buf->attach)
		return;
	if (!fabrex_stay_awake()) {
		fabrex_dmabuf_later(buf, REMAP_MS);
		return;
	}
	ret = fabrex_dmabuf_try_revive(buf);
	fabrex_may_sleep();
	if (!ret)
		buf->tries = 0;
	else if (ret != -ESTALE && !READ_ONCE(buf->dying) &&
		 !fabrex_dmabuf_again(buf, ret))
		fabrex_dmabuf_revoked(buf, ret);
}

/* From here on unregister waits for it. */
static int fabrex_dmabuf_enlist(struct fabrex_dmabuf *buf)
{
	struct fabrex_port *port = buf->port;
	struct device *dev;

	guard(rwsem_read)(&port->registration_lock);
	if (!port->ops)
		return -ENODEV;
	dev = fabrex_port_importer(port);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	buf->dev = dev;
	spin_lock(&port->dmabufs_lock);
	list_add_tail(&buf->list, &port->dmabufs);
	spin_unlock(&port->dmabufs_lock);
	atomic64_add(buf->length, &port->dmabuf_bytes);
	return 0;
}

static struct fabrex_dmabuf *
fabrex_dmabuf_alloc(struct fabrex_res *res, struct dma_buf *dmabuf,
		    const struct fabrex_mr_register *cmd, bool writable)
{
	struct fabrex_dmabuf *buf;

	buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);
	if (!buf)
		return NULL;
	buf->res = res;
	buf->port = res->port;
	buf->dmabuf = dmabuf;
	buf->dir = writable ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
	buf->pin = cmd->flags & FABREX_MR_PIN;
	buf->offset = cmd->addr;
	buf->length = cmd->length;
	INIT_LIST_HEAD(&buf->list);
	init_completion(&buf->released);
	mutex_init(&buf->supply_lock);
	mutex_init(&buf->lock);
	/* Let lockdep know that exporters take it when memory is short. */
	fs_reclaim_acquire(GFP_KERNEL);
	might_lock(&buf->lock);
	fs_reclaim_release(GFP_KERNEL);
	INIT_DELAYED_WORK(&buf->remap, fabrex_dmabuf_remap);
	return buf;
}

static int fabrex_dmabuf_check(const struct dma_buf *dmabuf,
			       const struct fabrex_mr_register *cmd,
			       bool writable)
{
	u64 end;

	if (writable && !(dmabuf->file->f_mode & FMODE_WRITE))
		return -EACCES;
	if (check_add_overflow(cmd->addr, cmd->length, &end) ||
	    end > dmabuf->size)
		return -EINVAL;
	return 0;
}

/* A buffer is mapped as a whole for each region, and pinned as a whole. Pinned
 * memory counts towards RLIMIT_MEMLOCK, because its exporter can no longer
 * evict it, whoever else needs the place.
 */
static int fabrex_dmabuf_charge(const struct fabrex_dmabuf *buf)
{
	u64 npages = PAGE_ALIGN((u64)buf->dmabuf->size) >> PAGE_SHIFT;
	struct fabrex_res *res = buf->res;
	int ret;

	ret = fabrex_res_charge_bytes(res, npages << PAGE_SHIFT);
	if (!ret && buf->pin)
		ret = fabrex_res_charge_locked(res, npages);
	return ret;
}

/**
 * fabrex_dmabuf_open() - attach a dma-buf for a region
 * @res:      region that is being created
 * @watch:    of the region
 * @cmd:      request
 * @writable: for the device
 * @result:   set if there is something to be freed
 *
 * Whatever is returned, fabrex_dmabuf_free() undoes this if @result is set.
 *
 * Context: Process; sleeps. Without locks.
 * Return: 0; an error as documented in the uapi header
 */
int fabrex_dmabuf_open(struct fabrex_res *res, struct fabrex_watcher *watch,
		       const struct fabrex_mr_register *cmd, bool writable,
		       struct fabrex_dmabuf **result)
{
	struct dma_buf_attachment *attach;
	struct fabrex_dmabuf *buf = NULL;
	struct dma_buf *dmabuf;
	int ret;

	dmabuf = dma_buf_get(cmd->fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	ret = fabrex_dmabuf_check(dmabuf, cmd, writable);
	if (ret)
		goto put;
	ret = -ENOMEM;
	buf = fabrex_dmabuf_alloc(res, dmabuf, cmd, writable);
	if (!buf)
		goto put;
	buf->watch = watch;
	ret = fabrex_dmabuf_charge(buf) ?: fabrex_dmabuf_enlist(buf);
	if (ret)
		goto free;
	*result = buf;
	attach = dma_buf_dynamic_attach(dmabuf, buf->dev, &fabrex_attach_ops,
					buf);
	if (!IS_ERR(attach)) {
		buf->attach = attach;
		return 0;
	}
	ret = PTR_ERR(attach);
	fabrex_dmabuf_explain(buf, "be attached", ret);
	return fabrex_dmabuf_errno(ret);

free:
	kfree(buf);
put:
	dma_buf_put(dmabuf);
	return ret;
}

/* With dma_resv held before and after. *@fence: wait for it and come back. */
static int fabrex_dmabuf_try(struct fabrex_dmabuf *buf,
			     enum dma_resv_usage usage,
			     struct dma_fence **fence)
{
	int ret = 0;

	*fence = NULL;
	if (!buf->sgt)
		ret = fabrex_dmabuf_pin(buf) ?: fabrex_dmabuf_map(buf, true);
	return ret ?: fabrex_dmabuf_fence(buf, usage, fence);
}

/**
 * fabrex_dmabuf_enter() - map a dma-buf and hold off the exporter
 * @buf: open
 *
 * Context: Process; sleeps. Without locks.
 * Return: 0, with dma_resv held until fabrex_dmabuf_leave(); or the exporter's
 * error, with dma_resv not held
 */
int fabrex_dmabuf_enter(struct fabrex_dmabuf *buf)
{
	unsigned long end = jiffies + msecs_to_jiffies(FENCE_OPEN_MS);
	enum dma_resv_usage usage = DMA_RESV_USAGE_WRITE;
	struct dma_fence *fence;
	bool awake;
	int ret;

	do {
		ret = dma_resv_lock_interruptible(buf->dmabuf->resv, NULL);
		if (ret)
			return ret == -EINTR ? -ERESTARTSYS : ret;
		awake = fabrex_stay_awake();
		if (awake) {
			ret = fabrex_dmabuf_try(buf, usage, &fence);
			fabrex_may_sleep();
		}
		if (!ret && awake && !fence)
			return 0;
		dma_resv_unlock(buf->dmabuf->resv);
		if (!awake) {
			ret = fabrex_wait_awake(end);
		} else if (!ret) {
			ret = fabrex_dmabuf_wait(buf, fence, end);
			dma_fence_put(fence);
			if (ret)
				fabrex_dmabuf_explain(buf, "be waited for",
						      ret);
			usage = DMA_RESV_USAGE_KERNEL;
		}
	} while (!ret);
	return fabrex_dmabuf_errno(ret);
}

/**
 * fabrex_dmabuf_leave() - allow the exporter to invalidate the mapping again
 * @buf:   after fabrex_dmabuf_enter()
 * @ready: the region has been created
 *
 * Context: Process. Releases dma_resv.
 */
void fabrex_dmabuf_leave(struct fabrex_dmabuf *buf, bool ready)
{
	struct fabrex_port *port = buf->port;

	dma_resv_unlock(buf->dmabuf->resv);
	if (!ready)
		return;
	spin_lock(&port->dmabufs_lock);
	buf->state = FABREX_DMABUF_READY;
	spin_unlock(&port->dmabufs_lock);
	wake_up(&port->dmabufs_wait);
}

/**
 * fabrex_dmabuf_known() - note whether the device knows the region
 * @buf:   of the region
 * @known: it does
 *
 * When this returns, no call of the exporter will name the region to a device
 * that has forgotten it.
 *
 * Context: Process; sleeps. With registration_lock held.
 */
void fabrex_dmabuf_known(struct fabrex_dmabuf *buf, bool known)
{
	guard(mutex)(&buf->lock);
	buf->known = known;
}

/**
 * fabrex_dmabuf_destroy() - have the device destroy the region
 * @buf: of the region
 *
 * Context: Process; sleeps. With registration_lock held.
 * Return: as ->mr_destroy()
 */
int fabrex_dmabuf_destroy(struct fabrex_dmabuf *buf)
{
	struct fabrex_port *port = buf->port;
	int ret;

	guard(mutex)(&buf->supply_lock);
	guard(mutex)(&buf->lock);
	ret = port->ops->data->mr_destroy(port, buf->res->number);
	if (!ret || ret == -ENODEV)
		buf->known = false;
	return ret;
}

/* The caller has set the state to GOING. */
static void fabrex_dmabuf_release(struct fabrex_dmabuf *buf)
{
	struct fabrex_port *port = buf->port;

	mutex_lock(&buf->lock);
	buf->dying = true;
	mutex_unlock(&buf->lock);
	cancel_delayed_work_sync(&buf->remap);
	fabrex_dmabuf_detach(buf);

	atomic64_sub(buf->length, &port->dmabuf_bytes);
	spin_lock(&port->dmabufs_lock);
	list_del_init(&buf->list);
	spin_unlock(&port->dmabufs_lock);
	/* From here on its owner may free it; whoever waits for the port has a
	 * reference.
	 */
	complete_all(&buf->released);
	wake_up(&port->dmabufs_wait);
}

/**
 * fabrex_dmabuf_free() - unmap, detach and free
 * @buf: from fabrex_dmabuf_open(); the device no longer knows the region
 *
 * Context: Process; sleeps. Without locks.
 */
void fabrex_dmabuf_free(struct fabrex_dmabuf *buf)
{
	struct fabrex_port *port = buf->port;
	bool mine;

	spin_lock(&port->dmabufs_lock);
	mine = buf->state != FABREX_DMABUF_GOING;
	buf->state = FABREX_DMABUF_GOING;
	spin_unlock(&port->dmabufs_lock);
	if (mine)
		fabrex_dmabuf_release(buf);
	else
		wait_for_completion(&buf->released);
	put_device(buf->dev);
	kfree(buf);
}

/* The next one that nobody else releases. @end: there are no others left. */
static struct fabrex_dmabuf *fabrex_dmabufs_take(struct fabrex_port *port,
						 bool *end)
{
	struct fabrex_dmabuf *buf, *found = NULL;

	spin_lock(&port->dmabufs_lock);
	*end = list_empty(&port->dmabufs);
	list_for_each_entry(buf, &port->dmabufs, list) {
		if (buf->state != FABREX_DMABUF_READY)
			continue;
		buf->state = FABREX_DMABUF_GOING;
		found = buf;
		break;
	}
	spin_unlock(&port->dmabufs_lock);
	return found;
}

/**
 * fabrex_dmabufs_unregister() - return all memory to the exporters
 * @port: being unregistered; no operation of the backend can be called
 *
 * Also waits for those that others are releasing or still creating.
 *
 * Context: Process; sleeps. Without locks.
 */
void fabrex_dmabufs_unregister(struct fabrex_port *port)
{
	struct fabrex_dmabuf *buf;
	bool end = false;

	while (!end) {
		wait_event(port->dmabufs_wait,
			   (buf = fabrex_dmabufs_take(port, &end)) || end);
		if (buf)
			fabrex_dmabuf_release(buf);
	}
}

/**
 * fabrex_dmabufs_init() - initialise when the module is loaded
 *
 * Context: Module init.
 * Return: 0 or a negative errno
 */
int fabrex_dmabufs_init(void)
{
	int ret;

	/* There are ways to suspend that sleep.c is not told of (Xen). */
	fabrex_remap_wq = alloc_workqueue("fabrex_remap",
					  WQ_UNBOUND | WQ_FREEZABLE, 64);
	if (!fabrex_remap_wq)
		return -ENOMEM;
	ret = fabrex_sleep_init();
	if (ret)
		destroy_workqueue(fabrex_remap_wq);
	return ret;
}

/**
 * fabrex_dmabufs_exit() - clean up when the module is unloaded; no port exists
 *
 * Context: Module exit.
 */
void fabrex_dmabufs_exit(void)
{
	fabrex_sleep_exit();
	destroy_workqueue(fabrex_remap_wq);
}

FABREX_DMA_BUF_IMPORT_NS;
