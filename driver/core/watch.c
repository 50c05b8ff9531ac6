// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watch page of an open file: counters that tell a registration cache,
 * without a system call, that a region no longer describes the memory at its
 * address. Called by file.c, mr.c and dmabuf.c.
 *
 * Memory of a process is watched by a notifier that is installed before the
 * memory is pinned. Whatever happens during pinning, including our own breaking
 * of copy-on-write, shows in the notifier's sequence count: the memory is
 * pinned again until nothing has happened meanwhile, and only then the region
 * begins to count. So if a cache reads the counter before it registers memory,
 * it misses nothing that happens afterwards.
 *
 * A notifier leaves pins and mappings alone: they are the cache's business.
 */
#include <linux/mmu_notifier.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "memory.h"

#define WATCH_ENTRIES_MAX	65536u
/* If the memory keeps changing, give up, and count once. */
#define WATCH_TRIES		4

/**
 * fabrex_watch_count() - report that a region may be stale
 * @watch: of the region; it may not be watched
 *
 * Context: Any.
 */
void fabrex_watch_count(struct fabrex_watcher *watch)
{
	atomic_t *counters;

	if (!watch->map)
		return;
	counters = watch->map->ring[0];
	atomic_inc(&counters[watch->entry]);
	/* The change itself comes afterwards. */
	smp_mb__after_atomic();
}

#if IS_ENABLED(CONFIG_MMU_NOTIFIER)
/* The pages stay the same, at the same place, and only their write protection
 * changes; for instance by fork(), which gives the child copies of pinned
 * pages.
 */
static bool fabrex_watch_harmless(const struct mmu_notifier_range *range)
{
	return range->event == MMU_NOTIFY_PROTECTION_PAGE ||
	       range->event == MMU_NOTIFY_SOFT_DIRTY;
}

/* Called before page tables change: neither sleeps nor allocates. */
static bool fabrex_watch_invalidate(struct mmu_interval_notifier *notifier,
				    const struct mmu_notifier_range *range,
				    unsigned long seq)
{
	struct fabrex_watcher *watch = container_of(notifier,
						    struct fabrex_watcher,
						    notifier);

	spin_lock(&watch->lock);
	mmu_interval_set_seq(notifier, seq);
	if (watch->armed && !fabrex_watch_harmless(range))
		fabrex_watch_count(watch);
	spin_unlock(&watch->lock);
	return true;
}

static const struct mmu_interval_notifier_ops fabrex_watch_ops = {
	.invalidate = fabrex_watch_invalidate,
};

static int fabrex_watch_insert(struct fabrex_watcher *watch, u64 addr,
			       u64 length)
{
	unsigned long start;
	u64 end;
	int ret;

	if (check_add_overflow(addr, length, &end) ||
	    end > ULONG_MAX - PAGE_SIZE)
		return -EINVAL;
	start = untagged_addr((unsigned long)addr) & PAGE_MASK;
	end = PAGE_ALIGN(untagged_addr((unsigned long)addr) + length);
	spin_lock_init(&watch->lock);
	ret = mmu_interval_notifier_insert(&watch->notifier, current->mm, start,
					   end - start, &fabrex_watch_ops);
	watch->inserted = !ret;
	return ret;
}

static unsigned long fabrex_watch_begin(struct fabrex_watcher *watch)
{
	return mmu_interval_read_begin(&watch->notifier);
}

/* Begin to count, unless something has happened since fabrex_watch_begin(). */
static bool fabrex_watch_arm(struct fabrex_watcher *watch, unsigned long seq)
{
	spin_lock(&watch->lock);
	watch->armed = !mmu_interval_read_retry(&watch->notifier, seq);
	spin_unlock(&watch->lock);
	return watch->armed;
}

static void fabrex_watch_force(struct fabrex_watcher *watch)
{
	spin_lock(&watch->lock);
	watch->armed = true;
	fabrex_watch_count(watch);
	spin_unlock(&watch->lock);
}

static void fabrex_watch_remove(struct fabrex_watcher *watch)
{
	mmu_interval_notifier_remove(&watch->notifier);
}
#else
static int fabrex_watch_insert(struct fabrex_watcher *watch, u64 addr,
			       u64 length)
{
	return -EOPNOTSUPP;
}

static unsigned long fabrex_watch_begin(struct fabrex_watcher *watch)
{
	return 0;
}

static bool fabrex_watch_arm(struct fabrex_watcher *watch, unsigned long seq)
{
	return true;
}

static void fabrex_watch_force(struct fabrex_watcher *watch)
{
}

static void fabrex_watch_remove(struct fabrex_watcher *watch)
{
}
#endif

/**
 * fabrex_watch_init() - prepare to watch a region, if requested
 * @watch: of the region, zeroed
 * @file:  of the caller
 * @cmd:   request
 *
 * fabrex_watch_exit() undoes this, whatever is returned.
 *
 * Context: Process; sleeps. Without locks.
 * Return: 0; -EINVAL if the file has no such entry; -EOPNOTSUPP if the kernel
 * cannot watch memory of processes; -ENOMEM
 */
int fabrex_watch_init(struct fabrex_watcher *watch, struct fabrex_file *file,
		      const struct fabrex_mr_register *cmd)
{
	struct fabrex_map *map;

	if (!(cmd->flags & FABREX_MR_WATCH))
		return 0;
	/* Remains until the file is closed. */
	map = smp_load_acquire(&file->watch);
	if (!map || cmd->watch >= map->geo.total / sizeof(u32))
		return -EINVAL;
	kref_get(&map->ref);
	watch->map = map;
	watch->entry = cmd->watch;
	if (cmd->flags & FABREX_MR_DMABUF)
		return 0;
	return fabrex_watch_insert(watch, cmd->addr, cmd->length);
}

/**
 * fabrex_watch_pin() - pin memory of the calling process and watch it
 * @watch:    from fabrex_watch_init(); it may not be requested
 * @pin:      zeroed
 * @port:     as for fabrex_pin(), like the following
 * @addr:     user address
 * @length:   in bytes
 * @writable: for the device
 *
 * Context: As fabrex_pin().
 * Return: as fabrex_pin()
 */
int fabrex_watch_pin(struct fabrex_watcher *watch, struct fabrex_pin *pin,
		     struct fabrex_port *port, u64 addr, u64 length,
		     bool writable)
{
	unsigned long seq;
	int ret, i;

	if (!watch->inserted)
		return fabrex_pin(pin, port, addr, length, writable);
	for (i = 0; ; i++) {
		seq = fabrex_watch_begin(watch);
		ret = fabrex_pin(pin, port, addr, length, writable);
		if (ret || fabrex_watch_arm(watch, seq))
			return ret;
		if (i == WATCH_TRIES)
			break;
		fabrex_unpin(pin);
		*pin = (struct fabrex_pin) {};
	}
	fabrex_watch_force(watch);
	return 0;
}

/**
 * fabrex_watch_exit() - stop watching a region
 * @watch: from fabrex_watch_init(), or zeroed
 *
 * Context: Process; sleeps, waits for a notification in progress. Without
 * locks.
 */
void fabrex_watch_exit(struct fabrex_watcher *watch)
{
	if (watch->inserted)
		fabrex_watch_remove(watch);
	if (watch->map)
		fabrex_map_put(watch->map);
}

/**
 * fabrex_cmd_watch() - FABREX_IOCTL_WATCH
 * @ucmd: ioctl
 *
 * Context: Process; sleeps.
 * Return: as documented in the uapi header
 */
int fabrex_cmd_watch(struct fabrex_ucmd *ucmd)
{
	struct fabrex_watch *cmd = ucmd->cmd;
	struct fabrex_file *file = ucmd->file;
	struct fabrex_map *map;
	int ret;

	if (cmd->flags || cmd->__reserved || !cmd->entries ||
	    cmd->entries > WATCH_ENTRIES_MAX)
		return -EINVAL;
	if (READ_ONCE(file->watch))
		return -EEXIST;
	map = fabrex_map_watch(file, cmd->entries * sizeof(u32));
	if (IS_ERR(map))
		return PTR_ERR(map);
	ret = fabrex_map_insert(map);
	if (ret)
		goto remove;
	cmd->out_mmap = fabrex_map_offset(map);
	cmd->out_length = (u64)map->npages << PAGE_SHIFT;
	ret = fabrex_respond(ucmd);
	if (ret)
		goto remove;
	/* Another thread may have been faster. */
	ret = cmpxchg(&file->watch, NULL, map) ? -EEXIST : 0;
	if (!ret)
		return 0;
remove:
	fabrex_map_remove(map);
	return ret;
}
