// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submission: handles become places in VRAM, which stay what they are until
 * the job's fence, in the buffers' reservations, has signalled. Called by
 * file.c.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "drv.h"

#define MAX_HW	65536u

enum { DST, SRC0, SRC1, ROLES };

/**
 * struct dgpu_set - the buffers of a job
 * @count:  of them
 * @bo:     each once; referenced
 * @writes: whether it is written
 * @alone:  jobs of other GPUs do not count
 * @role:   by command and role: index into @bo, or -1
 */
struct dgpu_set {
	unsigned int count;
	struct dgpu_bo *bo[DGPU_MAX_CMDS * ROLES];
	bool writes[DGPU_MAX_CMDS * ROLES];
	bool alone;
	s16 role[DGPU_MAX_CMDS][ROLES];
};

static void dgpu_job_release(struct kref *ref)
{
	struct dgpu_job *job = container_of(ref, struct dgpu_job, ref);

	if (job->seq)
		dma_fence_put(job->fence);
	else
		dgpu_fence_discard(job->fence);
	kvfree(job->cmds);
	kvfree(job->hw);
	kvfree(job->of);
	kfree(job);
}

/**
 * dgpu_job_put() - drop a reference
 * @job: job
 */
void dgpu_job_put(struct dgpu_job *job)
{
	kref_put(&job->ref, dgpu_job_release);
}

static struct dgpu_job *dgpu_job_new(void)
{
	struct dgpu_job *job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);

	if (!job)
		return NULL;
	kref_init(&job->ref);
	INIT_LIST_HEAD(&job->list);
	job->fence = dgpu_fence_alloc();
	if (!job->fence) {
		kfree(job);
		return NULL;
	}
	return job;
}

/**
 * dgpu_bo_find() - buffer of a handle
 * @file:   open file
 * @handle: handle
 *
 * Return: the buffer, referenced, or NULL
 */
struct dgpu_bo *dgpu_bo_find(struct dgpu_file *file, u32 handle)
{
	struct dgpu_bo *bo;

	xa_lock(&file->handles);
	bo = xa_load(&file->handles, handle);
	if (bo && bo->cookie)
		dgpu_bo_get(bo);
	else
		bo = NULL;
	xa_unlock(&file->handles);
	return bo;
}

/* Which buffers a command needs; negative for one that there is not. */
static int dgpu_roles(u8 op)
{
	switch (op) {
	case DRACO_GPU_NOP:
		return 0;
	case DRACO_GPU_FILL:
		return BIT(DST);
	case DRACO_GPU_COPY:
		return BIT(DST) | BIT(SRC0);
	case DRACO_GPU_REDUCE:
		return BIT(DST) | BIT(SRC0) | BIT(SRC1);
	case DRACO_GPU_CRC32C:
		return BIT(SRC0);
	}
	return -EINVAL;
}

static int dgpu_set_add(struct dgpu_set *set, struct dgpu_file *file,
			u32 handle, bool write)
{
	struct dgpu_bo *bo = dgpu_bo_find(file, handle);
	unsigned int i;

	if (!bo)
		return -ENOENT;
	for (i = 0; i < set->count; i++)
		if (set->bo[i] == bo)
			break;
	if (i < set->count)
		dgpu_bo_put(bo);
	else
		set->bo[set->count++] = bo;
	set->writes[i] |= write;
	return i;
}

static int dgpu_set_cmd(struct dgpu_set *set, struct dgpu_file *file,
			const struct dgpu_cmd *cmd, s16 *role)
{
	const u32 handle[ROLES] = { cmd->dst, cmd->src0, cmd->src1 };
	int roles = dgpu_roles(cmd->op), i, ret;

	if (roles < 0 || cmd->status || cmd->result)
		return -EINVAL;
	for (i = 0; i < ROLES; i++) {
		role[i] = -1;
		if (!(roles & BIT(i))) {
			if (handle[i])
				return -EINVAL;
			continue;
		}
		ret = dgpu_set_add(set, file, handle[i], i == DST);
		if (ret < 0)
			return ret;
		role[i] = ret;
	}
	return 0;
}

static void dgpu_set_free(struct dgpu_set *set)
{
	unsigned int i;

	for (i = 0; i < set->count; i++)
		dgpu_bo_put(set->bo[i]);
	kvfree(set);
}

static struct dgpu_set *dgpu_set_new(struct dgpu_file *file,
				     const struct dgpu_job *job)
{
	struct dgpu_set *set = kvzalloc(sizeof(*set), GFP_KERNEL);
	unsigned int i;
	int ret;

	if (!set)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < job->count; i++) {
		ret = dgpu_set_cmd(set, file, &job->cmds[i], set->role[i]);
		if (ret) {
			dgpu_set_free(set);
			return ERR_PTR(ret);
		}
	}
	return set;
}

static void dgpu_set_unlock(struct dgpu_set *set, unsigned int n)
{
	while (n--)
		dma_resv_unlock(&set->bo[n]->resv);
}

/* Lock all; whoever is in the way of an older one begins again with the lock
 * that it could not have.
 */
static int dgpu_set_lock(struct dgpu_set *set, struct ww_acquire_ctx *ctx)
{
	struct dgpu_bo *slow = NULL;
	unsigned int i;
	int ret;

	ww_acquire_init(ctx, &reservation_ww_class);
again:
	ret = slow ? dma_resv_lock_slow_interruptible(&slow->resv, ctx) : 0;
	for (i = 0; !ret && i < set->count; i++) {
		if (set->bo[i] == slow) {
			slow = NULL;
			continue;
		}
		ret = dma_resv_lock_interruptible(&set->bo[i]->resv, ctx);
		if (!ret)
			continue;
		dgpu_set_unlock(set, i);
		if (slow)
			dma_resv_unlock(&slow->resv);
		slow = set->bo[i];
		if (ret == -EDEADLK)
			goto again;
		break;
	}
	if (ret)
		ww_acquire_fini(ctx);
	else
		ww_acquire_done(ctx);
	return ret;
}

/* How much of @n bytes is in one piece, and where. */
static u64 dgpu_run_of(const struct dgpu_bo *bo, u64 offset, u64 n,
		       __le64 *where)
{
	u64 left, at;

	if (!bo || !n)
		return n;
	at = dgpu_store_at(bo->store, offset, &left);
	*where = cpu_to_le64(at);
	return min(n, left);
}

/* Translate one command, or without job->hw only count. */
static void dgpu_emit(struct dgpu_job *job, unsigned int at,
		      struct dgpu_bo *const *bo)
{
	const struct dgpu_cmd *cmd = &job->cmds[at];
	u64 done = 0, n;

	do {
		struct draco_gpu_cmd hw = {
			.op = cmd->op,
			.type = cmd->type,
			.function = cmd->function,
			.cookie = cpu_to_le32(at),
		};

		n = dgpu_run_of(bo[DST], cmd->dst_offset + done,
				cmd->length - done, &hw.dst);
		n = dgpu_run_of(bo[SRC0], cmd->src0_offset + done, n, &hw.src0);
		n = dgpu_run_of(bo[SRC1], cmd->src1_offset + done, n, &hw.src1);
		if (cmd->op == DRACO_GPU_FILL)
			hw.src1 = cpu_to_le64(cmd->src1_offset);
		hw.length = cpu_to_le64(n);
		if (job->hw) {
			job->hw[job->nhw] = hw;
			job->of[job->nhw] = at;
		}
		job->nhw++;
		done += n;
	} while (done < cmd->length && job->nhw <= MAX_HW);
}

static int dgpu_inside(const struct dgpu_bo *bo, u64 offset, u64 length)
{
	if (!bo)
		return 0;
	return offset > bo->length || length > bo->length - offset ? -EINVAL : 0;
}

static int dgpu_check_cmd(const struct dgpu_cmd *cmd, struct dgpu_bo *const *bo)
{
	u64 left;
	int ret;

	if (cmd->op == DRACO_GPU_NOP && cmd->length)
		return -EINVAL;
	ret = dgpu_inside(bo[DST], cmd->dst_offset, cmd->length) ?:
	      dgpu_inside(bo[SRC0], cmd->src0_offset, cmd->length) ?:
	      dgpu_inside(bo[SRC1], cmd->src1_offset, cmd->length);
	if (ret || cmd->op != DRACO_GPU_CRC32C || !cmd->length)
		return ret;
	dgpu_store_at(bo[SRC0]->store, cmd->src0_offset, &left);
	return cmd->length > left ? -EINVAL : 0;
}

static int dgpu_translate(struct dgpu_job *job, const struct dgpu_set *set,
			  bool check)
{
	struct dgpu_bo *bo[ROLES];
	unsigned int i, r;
	int ret;

	job->nhw = 0;
	for (i = 0; i < job->count; i++) {
		for (r = 0; r < ROLES; r++)
			bo[r] = set->role[i][r] < 0 ? NULL :
				set->bo[set->role[i][r]];
		ret = check ? dgpu_check_cmd(&job->cmds[i], bo) : 0;
		if (ret)
			return ret;
		dgpu_emit(job, i, bo);
		if (job->nhw > MAX_HW)
			return -E2BIG;
	}
	return 0;
}

static int dgpu_job_alloc_hw(struct dgpu_job *job, unsigned int n)
{
	job->hw = kvcalloc(n, sizeof(*job->hw), GFP_KERNEL_ACCOUNT);
	job->of = kvcalloc(n, sizeof(*job->of), GFP_KERNEL_ACCOUNT);
	return job->hw && job->of ? 0 : -ENOMEM;
}

/* All in VRAM, room for a fence in each. */
static int dgpu_set_validate(struct dgpu_set *set)
{
	struct dgpu_bo *bo;
	unsigned int i;
	int ret;

	for (i = 0; i < set->count; i++) {
		bo = set->bo[i];
		ret = bo->revoked ? -ENODEV : 0;
		if (!ret && bo->store->place != DGPU_PLACE_VRAM)
			ret = dgpu_bo_move_locked(bo, DGPU_PLACE_VRAM);
		if (!ret)
			ret = dma_resv_reserve_fences(&bo->resv, 1);
		if (ret)
			return ret;
	}
	return 0;
}

static enum dma_resv_usage dgpu_usage(const struct dgpu_set *set,
				      unsigned int i)
{
	if (set->alone)
		return DMA_RESV_USAGE_BOOKKEEP;
	return set->writes[i] ? DMA_RESV_USAGE_WRITE : DMA_RESV_USAGE_READ;
}

/*
 * For jobs of other GPUs that still use the buffers. For those of @dg itself the
 * engine waits, where it has to: docs/gpu.md, section 5. Reservations held.
 */
static int dgpu_set_wait(struct dgpu *dg, struct dgpu_set *set)
{
	struct dma_resv_iter cursor;
	struct dma_fence *fence;
	unsigned int i;
	long ret;

	for (i = 0; i < set->count; i++) {
		dma_resv_for_each_fence(&cursor, &set->bo[i]->resv,
					set->alone ? DMA_RESV_USAGE_KERNEL :
					dma_resv_usage_rw(set->writes[i]),
					fence) {
			if (fence->context - dg->engine.context <
			    DGPU_CONTEXTS)
				continue;
			ret = dma_fence_wait(fence, true);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* Nothing fails any more. */
static void dgpu_job_queue(struct dgpu *dg, struct dgpu_job *job,
			   struct dgpu_set *set)
{
	unsigned int i;

	dgpu_engine_queue(dg, job);
	for (i = 0; i < set->count; i++)
		dma_resv_add_fence(&set->bo[i]->resv, job->fence,
				   dgpu_usage(set, i));
}

/* Reservations held. */
static int dgpu_job_start(struct dgpu *dg, struct dgpu_job *job,
			  struct dgpu_set *set)
{
	int ret;

	ret = dgpu_set_validate(set) ?: dgpu_set_wait(dg, set) ?:
	      dgpu_translate(job, set, true) ?:
	      dgpu_job_alloc_hw(job, job->nhw);
	if (ret)
		return ret;
	dgpu_translate(job, set, false);
	dgpu_job_queue(dg, job, set);
	return 0;
}

static int dgpu_job_finish(struct dgpu_job *job, struct dgpu_submit *cmd)
{
	long ret = dma_fence_wait(job->fence, true);

	if (ret < 0)
		return -EINTR;
	if (copy_to_user(u64_to_user_ptr(cmd->cmds), job->cmds,
			 job->count * sizeof(*job->cmds)))
		return -EFAULT;
	return job->error;
}

static int dgpu_job_submit(struct dgpu_file *file, struct dgpu_job *job)
{
	struct ww_acquire_ctx ctx;
	struct dgpu_set *set;
	int ret;

	set = dgpu_set_new(file, job);
	if (IS_ERR(set))
		return PTR_ERR(set);
	ret = dgpu_set_lock(set, &ctx);
	if (!ret) {
		ret = dgpu_job_start(file->dg, job, set);
		dgpu_set_unlock(set, set->count);
		ww_acquire_fini(&ctx);
	}
	dgpu_set_free(set);
	return ret;
}

/**
 * dgpu_submit() - DGPU_IOCTL_SUBMIT
 * @file: open file
 * @cmd:  checked but for count, delay and commands
 *
 * Return: as documented in dgpu.h
 */
int dgpu_submit(struct dgpu_file *file, struct dgpu_submit *cmd)
{
	struct dgpu_job *job;
	int ret;

	if (!cmd->count || cmd->count > DGPU_MAX_CMDS ||
	    cmd->delay_ms > DGPU_MAX_DELAY_MS)
		return -EINVAL;
	if (!file->dg->engine.present)
		return -EOPNOTSUPP;
	ret = dgpu_engine_throttle(file->dg);
	if (ret)
		return ret;
	job = dgpu_job_new();
	if (!job)
		return -ENOMEM;
	job->delay = cmd->delay_ms;
	job->overlaps = !job->delay;
	job->count = cmd->count;
	job->cmds = vmemdup_user(u64_to_user_ptr(cmd->cmds),
				 cmd->count * sizeof(*job->cmds));
	if (IS_ERR(job->cmds)) {
		ret = PTR_ERR(job->cmds);
		job->cmds = NULL;
	} else {
		ret = dgpu_job_submit(file, job);
	}
	cmd->out_seq = job->seq;
	if (!ret && !(cmd->flags & DGPU_SUBMIT_ASYNC))
		ret = dgpu_job_finish(job, cmd);
	dgpu_job_put(job);
	return ret;
}

/* ---- Copies from and to another GPU ---- */

/*
 * Of a command: even over links that are throttled, it takes a small part of the
 * time after which the engine counts as hung.
 */
#define PEER_MOST	(16u << 20)

enum { OWN, PEER };	/* in the set */

/* Called twice, as dgpu_translate(): first to count. */
static void dgpu_emit_peer(struct dgpu_job *job, const struct dgpu_peer *cmd,
			   const struct dgpu_set *set)
{
	const struct dgpu_bo *own = set->bo[OWN], *peer = set->bo[PEER];
	bool write = cmd->flags & DGPU_PEER_WRITE;
	u64 done, n, left, here, there;

	job->nhw = 0;
	for (done = 0; done < cmd->length && job->nhw <= MAX_HW; done += n) {
		n = min_t(u64, cmd->length - done, PEER_MOST);
		here = dgpu_store_at(own->store, cmd->own_offset + done, &left);
		n = min(n, left);
		there = dgpu_store_at(peer->store, cmd->peer_offset + done,
				      &left);
		n = min(n, left);
		if (job->hw)
			job->hw[job->nhw] = (struct draco_gpu_cmd) {
				.op = write ? DRACO_GPU_PEER_WRITE :
					      DRACO_GPU_PEER_READ,
				.dst = cpu_to_le64(write ? there : here),
				.src0 = cpu_to_le64(write ? here : there),
				.length = cpu_to_le64(n),
				.peer = cpu_to_le32(peer->dg->number),
				.instance = cpu_to_le32(peer->dg->instance),
			};
		job->nhw++;
	}
}

static int dgpu_peer_start(struct dgpu *dg, struct dgpu_job *job,
			   struct dgpu_set *set, const struct dgpu_peer *cmd)
{
	int ret = dgpu_set_validate(set) ?: dgpu_set_wait(dg, set);

	if (ret)
		return ret;
	dgpu_emit_peer(job, cmd, set);
	if (job->nhw > MAX_HW)
		return -E2BIG;
	ret = dgpu_job_alloc_hw(job, job->nhw);
	if (ret)
		return ret;
	dgpu_emit_peer(job, cmd, set);
	dgpu_job_queue(dg, job, set);
	return 0;
}

static int dgpu_peer_set(struct dgpu_set *set, struct dgpu_file *file,
			 struct dgpu_file *other, const struct dgpu_peer *cmd)
{
	bool write = cmd->flags & DGPU_PEER_WRITE;
	int ret;

	ret = dgpu_set_add(set, file, cmd->own, !write);
	if (ret >= 0)
		ret = dgpu_set_add(set, other, cmd->handle, write);
	if (ret < 0)
		return ret;
	return dgpu_inside(set->bo[OWN], cmd->own_offset, cmd->length) ?:
	       dgpu_inside(set->bo[PEER], cmd->peer_offset, cmd->length);
}

static int dgpu_peer_submit(struct dgpu_file *file, struct dgpu_file *other,
			    struct dgpu_job *job, const struct dgpu_peer *cmd)
{
	struct dgpu_set *set = kvzalloc(sizeof(*set), GFP_KERNEL);
	struct ww_acquire_ctx ctx;
	int ret;

	if (!set)
		return -ENOMEM;
	set->alone = cmd->flags & DGPU_PEER_UNORDERED;
	job->overlaps = cmd->flags & DGPU_PEER_WRITE;
	if (job->overlaps)
		job->context = 1 + other->dg->number % (DGPU_CONTEXTS - 1);
	ret = dgpu_peer_set(set, file, other, cmd);
	if (!ret)
		ret = dgpu_set_lock(set, &ctx);
	if (!ret) {
		ret = dgpu_peer_start(file->dg, job, set, cmd);
		dgpu_set_unlock(set, set->count);
		ww_acquire_fini(&ctx);
	}
	dgpu_set_free(set);
	return ret;
}

/**
 * dgpu_peer_copy() - DGPU_IOCTL_PEER
 * @file:  open file of the GPU that copies
 * @other: open file of the other one, or of the same
 * @cmd:   checked but for the buffers
 *
 * Return: as documented in dgpu.h
 */
int dgpu_peer_copy(struct dgpu_file *file, struct dgpu_file *other,
		   const struct dgpu_peer *cmd)
{
	struct dgpu *dg = file->dg;
	struct dgpu_job *job;
	int ret;

	if (!dg->mesh || dg->mesh != other->dg->mesh || dg == other->dg)
		return -EXDEV;
	if (READ_ONCE(other->dg->gone))
		return -ENODEV;
	if (!dg->engine.present)
		return -EOPNOTSUPP;
	ret = dgpu_engine_throttle(dg);
	if (ret)
		return ret;
	job = dgpu_job_new();
	if (!job)
		return -ENOMEM;
	ret = dgpu_peer_submit(file, other, job, cmd);
	if (!ret)
		ret = dma_fence_wait(job->fence, true) ? -EINTR : job->error;
	dgpu_job_put(job);
	return ret;
}

/* ---- New buffers ---- */

static int dgpu_clear_hw(struct dgpu_job *job, struct dgpu_bo *bo)
{
	struct dgpu_store *store = bo->store;
	unsigned long i;
	int ret;

	if (store->count > MAX_HW)
		return -E2BIG;
	ret = dgpu_job_alloc_hw(job, store->count);
	if (ret)
		return ret;
	for (i = 0; i < store->count; i++) {
		job->hw[i].op = DRACO_GPU_FILL;
		job->hw[i].dst = cpu_to_le64(store->start[i]);
		job->hw[i].length = cpu_to_le64(min(store->piece, bo->length -
						    i * store->piece));
	}
	job->nhw = store->count;
	return 0;
}

/**
 * dgpu_bo_clear() - have a new buffer zeroed, before anybody sees it
 * @bo: buffer
 *
 * Its fence is one of the kernel's: all importers wait for it.
 *
 * Return: 0; -EOPNOTSUPP without an engine; -E2BIG: too many pieces; -ENOMEM
 */
int dgpu_bo_clear(struct dgpu_bo *bo)
{
	struct dgpu_job *job;
	int ret;

	if (!bo->dg->engine.present)
		return -EOPNOTSUPP;
	job = dgpu_job_new();
	if (!job)
		return -ENOMEM;
	dma_resv_lock(&bo->resv, NULL);
	ret = bo->revoked ? -ENODEV : dma_resv_reserve_fences(&bo->resv, 1);
	if (!ret)
		ret = dgpu_clear_hw(job, bo);
	if (!ret) {
		dgpu_engine_queue(bo->dg, job);
		dma_resv_add_fence(&bo->resv, job->fence,
				   DMA_RESV_USAGE_KERNEL);
	}
	dma_resv_unlock(&bo->resv);
	dgpu_job_put(job);
	return ret;
}
