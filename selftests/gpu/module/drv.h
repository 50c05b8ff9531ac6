/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of draco_gpu.ko share. Lock order, outermost first:
 *   mmap_lock, dma_resv of buffers, dgpu.lock or engine.lock (leaves).
 * User memory is never touched below dma_resv.
 */
#ifndef DGPU_DRV_H
#define DGPU_DRV_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/genalloc.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "exporter.h"
#include "dgpu.h"

/* mmap() offsets: handle << DGPU_COOKIE_SHIFT, plus the offset wanted. */
#define DGPU_COOKIE_SHIFT	40
#define DGPU_MAX_HANDLE		((1u << 22) - 1)
#define DGPU_PIECE		(64u << 10)	/* of scattered buffers */
#define DGPU_RING_SIZE		64u		/* entries: one page */
#define DGPU_MAX_DELAY_MS	10000u
#define DGPU_CONTEXTS		32u	/* of fences */

struct dgpu;

/**
 * struct dgpu_engine - command ring and what waits for it
 * @regs:    BAR 0
 * @ring:    in VRAM
 * @tail:    next entry; of the worker
 * @posted:  last of the jobs that overlap; of the worker
 * @room:    entries that a job may have to be begun beside others; of the worker
 * @present: the device has an engine
 * @lock:    @dead, @jobs, @seq
 * @dead:    nothing touches the device any more
 * @jobs:    not yet begun
 * @seq:     of the last job accepted
 * @done:    of the last job that has ended as well as all before it
 * @wait:    for @done and @dead; the worker's, for @jobs
 * @context: of fences, the first of DGPU_CONTEXTS: jobs of each end in order
 * @wq:      ordered
 * @work:    executes @jobs
 */
struct dgpu_engine {
	void __iomem *regs;
	void __iomem *ring;
	u32 tail;
	u64 posted;
	u32 room;
	bool present;
	spinlock_t lock;
	bool dead;
	struct list_head jobs;
	u64 seq;
	u64 done;
	wait_queue_head_t wait;
	u64 context;
	struct workqueue_struct *wq;
	struct work_struct work;
};

/**
 * struct dgpu - a GPU; lives until the last file and dma-buf are gone
 * @dev:     in class dgpu, parent of nothing
 * @cdev:    /dev/dgpu<N>
 * @pdev:    valid as a pointer always, as a device until @gone
 * @index:   the N
 * @vram:    physical address
 * @size:    bytes of it
 * @pool:    free ranges
 * @lock:    @gone, @buffers, @revoked, @round, and that of buffers
 * @gone:    being removed
 * @asleep:  between .prepare() and .complete(): nobody may bring buffers back
 * @round:   counts evictions of everything
 * @buffers: all that have a handle or a dma-buf
 * @revoked: those that the removal has taken the memory from
 * @nbuffers: of them
 * @nexports: dma-bufs
 * @nmaps:   mappings by importers
 * @engine:  engine
 * @instance: of the binding
 * @name:    of the endpoint
 * @mesh:    of those with the same, not 0, each two have a link
 * @number:  in the mesh
 */
struct dgpu {
	struct device dev;
	struct cdev cdev;
	struct pci_dev *pdev;
	int index;
	phys_addr_t vram;
	u64 size;
	struct gen_pool *pool;
	struct mutex lock;
	bool gone;
	bool asleep;
	u32 round;
	struct list_head buffers;
	struct list_head revoked;
	atomic_t nbuffers;
	atomic_t nexports;
	atomic_t nmaps;
	struct dgpu_engine engine;
	u32 instance;
	u8 name[DGPU_NAME_LEN];
	u32 mesh;
	u32 number;
};

/* One open file. */
struct dgpu_file {
	struct dgpu *dg;
	struct inode *inode;
	struct xarray handles;
};

/**
 * struct dgpu_store - memory behind a buffer
 * @place:  DGPU_PLACE_VRAM or _SYSTEM
 * @piece:  bytes of each piece but the last; of one page if in system memory
 * @count:  pieces
 * @start:  VRAM: their offsets
 * @pages:  system memory
 */
struct dgpu_store {
	u32 place;
	u64 piece;
	unsigned long count;
	u64 *start;
	struct page **pages;
};

/**
 * struct dgpu_bo - a buffer
 * @ref:     of each handle, of each dma-buf, of each mapping of a process
 * @dg:      owner; referenced
 * @list:    in dgpu.buffers
 * @resv:    protects what follows, and is that of all its dma-bufs
 * @length:  bytes, whole pages; constant
 * @align:   as asked for; constant
 * @flags:   DGPU_ALLOC_*; constant
 * @cookie:  mmap() offset by the first handle; constant once @inode is set
 * @inode:   of the files with the handles; NULL without one
 * @name:    by which other files open it; 0: none yet; dgpu.lock
 * @users:   handles; dgpu.lock
 * @store:   memory; NULL once it has been given back
 * @round:   in which everything was evicted last; dgpu.lock
 * @evicted: in system memory until the next importer maps it
 * @revoked: for good: nobody gets a new mapping
 * @exports: struct dgpu_export_buf
 * @nexports: of them
 * @pins:    by importers
 * @mapped:  mappings by importers
 * @maps:    of them, ever made
 * @moves:   moves
 * @idle:    for !@mapped
 */
struct dgpu_bo {
	struct kref ref;
	struct dgpu *dg;
	struct list_head list;
	struct dma_resv resv;
	u64 length;
	u64 align;
	u32 flags;
	u64 cookie;
	struct inode *inode;
	u64 name;
	u32 users;
	struct dgpu_store *store;
	u32 round;
	bool evicted;
	bool revoked;
	struct list_head exports;
	unsigned int nexports;
	unsigned int pins;
	unsigned int mapped;
	u64 maps;
	u64 moves;
	wait_queue_head_t idle;
};

/**
 * struct dgpu_export_buf - a dma-buf of a buffer
 * @list:   in dgpu_bo.exports
 * @bo:     buffer; referenced
 * @dmabuf: not referenced; valid while on the list
 * @inode:  of its file; referenced
 * @offset: into the buffer
 * @length: bytes
 */
struct dgpu_export_buf {
	struct list_head list;
	struct dgpu_bo *bo;
	struct dma_buf *dmabuf;
	struct inode *inode;
	u64 offset;
	u64 length;
};

/* pci.c */
extern bool dgpu_without_p2pdma;
struct dgpu *dgpu_get_next(int index);

/* file.c */
extern const struct file_operations dgpu_fops;

/* store.c: memory */
struct dgpu_store *dgpu_store_vram(struct dgpu *dg, u64 length, u64 align,
				   bool scatter);
struct dgpu_store *dgpu_store_system(u64 length);
void dgpu_store_free(struct dgpu *dg, struct dgpu_store *store, u64 length);
u64 dgpu_store_at(const struct dgpu_store *store, u64 offset, u64 *left);
int dgpu_store_copy(struct dgpu *dg, const struct dgpu_store *to,
		    const struct dgpu_store *from, u64 length);

/* buffer.c: lifetime, mappings of processes */
struct dgpu_bo *dgpu_bo_new(struct dgpu *dg, u64 length, u64 align, u32 flags);
static inline void dgpu_bo_get(struct dgpu_bo *bo)
{
	kref_get(&bo->ref);
}
void dgpu_bo_put(struct dgpu_bo *bo);
void dgpu_bo_zap(struct dgpu_bo *bo);
void dgpu_bo_notify(struct dgpu_bo *bo);
void dgpu_bo_revoke(struct dgpu_bo *bo);
void dgpu_bo_orphan(struct dgpu_bo *bo);
void dgpu_revoke_all(struct dgpu *dg);
int dgpu_bo_mmap(struct dgpu_bo *bo, struct vm_area_struct *vma);
vm_fault_t dgpu_bo_fault(struct vm_fault *vmf, struct dgpu_bo *bo, u64 first);

/* share.c: handles of several files */
u64 dgpu_bo_name(struct dgpu_bo *bo, u32 *users);
struct dgpu_bo *dgpu_bo_open(struct dgpu *dg, u64 name);
void dgpu_bo_leave(struct dgpu_bo *bo);

/* move.c: other places */
int dgpu_bo_move(struct dgpu_bo *bo, u32 place);
int dgpu_bo_move_locked(struct dgpu_bo *bo, u32 place);

/* sleep.c: before and after the machine sleeps */
extern const struct dev_pm_ops dgpu_pm_ops;
int dgpu_bo_bring_back(struct dgpu_bo *bo);
int dgpu_sleep_init(void);
void dgpu_sleep_exit(void);

/* export.c, sgt.c: dma-bufs */
struct dma_buf *dgpu_export(struct dgpu_bo *bo, u64 offset, u64 length,
			    int flags);
struct sg_table *dgpu_sgt_map(struct dgpu_export_buf *exp,
			      struct dma_buf_attachment *attach,
			      enum dma_data_direction dir);
void dgpu_sgt_unmap(struct dgpu_export_buf *exp,
		    struct dma_buf_attachment *attach, struct sg_table *sgt,
		    enum dma_data_direction dir);
int dgpu_p2p_init(struct dgpu *dg);

/**
 * struct dgpu_job - engine commands that are executed together
 * @ref:     of the submitter and of the queue
 * @list:    in dgpu_engine.jobs
 * @fence:   signals when it is finished
 * @delay:   milliseconds before it begins
 * @error:   of the job
 * @seq:     number
 * @count:   commands of the user
 * @cmds:    they, with status and result
 * @nhw:     commands of the engine
 * @hw:      they
 * @of:      number of the user's command that each belongs to
 * @overlaps: it does not wait for jobs that write to peers, unless the engine finds
 *           that it has to
 * @context: of its fence: 0, and others if it writes to a peer, one for each
 * @end:     entries of the ring that there were with its last one
 */
struct dgpu_job {
	struct kref ref;
	struct list_head list;
	struct dma_fence *fence;
	unsigned int delay;
	int error;
	u64 seq;
	unsigned int count;
	struct dgpu_cmd *cmds;
	unsigned int nhw;
	struct draco_gpu_cmd *hw;
	u16 *of;
	bool overlaps;
	unsigned int context;
	u32 end;
};

/* job.c: submission */
int dgpu_submit(struct dgpu_file *file, struct dgpu_submit *cmd);
int dgpu_peer_copy(struct dgpu_file *file, struct dgpu_file *other,
		   const struct dgpu_peer *cmd);
struct dgpu_bo *dgpu_bo_find(struct dgpu_file *file, u32 handle);
int dgpu_bo_clear(struct dgpu_bo *bo);
void dgpu_job_put(struct dgpu_job *job);

/* engine.c: the ring */
int dgpu_engine_init(struct dgpu *dg);
void dgpu_engine_stop(struct dgpu *dg);
void dgpu_engine_queue(struct dgpu *dg, struct dgpu_job *job);
int dgpu_engine_throttle(struct dgpu *dg);
int dgpu_engine_wait(struct dgpu *dg, u64 seq, unsigned int timeout_ms);

/* fence.c */
struct dma_fence *dgpu_fence_alloc(void);
void dgpu_fence_init(struct dma_fence *fence, u64 context, u64 seq);
void dgpu_fence_discard(struct dma_fence *fence);

#endif
