// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine's ring: jobs in order, one batch at a time, but for those that
 * overlap; polled. Called by job.c, file.c and pci.c. The worker is what signals fences: it allocates
 * nothing and takes no reservation.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>

#include "drv.h"

#define STATE_TIMEOUT	(2 * HZ)
#define HANG_TIMEOUT	(60 * USEC_PER_SEC)
#define NAP_LEAST	20		/* microseconds */
#define NAP_MOST	4000
#define SELDOM		100000		/* microseconds */
#define MOST_JOBS	64
#define LINGER		16	/* naps */
#define ALL_ONES	(~0u)	/* what a device reads as that is not there */

static bool dgpu_engine_dead(struct dgpu_engine *engine)
{
	return READ_ONCE(engine->dead);
}

static int dgpu_engine_state(struct dgpu_engine *engine, bool ready)
{
	unsigned long end = jiffies + STATE_TIMEOUT;
	u32 status;

	for (;;) {
		status = readl(engine->regs + DRACO_GPU_STATUS);
		if (status == ALL_ONES)
			return -ENODEV;
		if (!!(status & DRACO_GPU_STATUS_READY) == ready)
			return 0;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(100, 500);
	}
}

static int dgpu_engine_start(struct dgpu_engine *engine)
{
	int ret;

	writel(0, engine->regs + DRACO_GPU_CTRL);
	ret = dgpu_engine_state(engine, false);
	if (ret)
		return ret;
	lo_hi_writeq(0, engine->regs + DRACO_GPU_RING_BASE);
	writel(DGPU_RING_SIZE, engine->regs + DRACO_GPU_RING_SIZE);
	writel(DRACO_GPU_CTRL_ENABLE, engine->regs + DRACO_GPU_CTRL);
	ret = dgpu_engine_state(engine, true);
	engine->tail = readl(engine->regs + DRACO_GPU_HEAD);
	return ret;
}

/* Has it executed everything up to the tail? -EAGAIN if not yet. */
static int dgpu_engine_look(struct dgpu_engine *engine, u32 *head)
{
	u32 status;

	*head = readl(engine->regs + DRACO_GPU_HEAD);
	if (!dgpu_engine_dead(engine) && *head == engine->tail)
		return 0;
	status = readl(engine->regs + DRACO_GPU_STATUS);
	if (dgpu_engine_dead(engine) || status == ALL_ONES)
		return -ENODEV;
	return status & DRACO_GPU_STATUS_FATAL ? -ENOTRECOVERABLE : -EAGAIN;
}

/**
 * struct dgpu_watch - how long HEAD has been what it is
 * @head:   it
 * @since:  then
 * @looked: when it was read last
 * @seldom: what it says is seen elsewhere, too
 */
struct dgpu_watch {
	u32 head;
	ktime_t since;
	ktime_t looked;
	bool seldom;
};

static bool dgpu_fits(const struct dgpu_job *job, u32 room)
{
	return job->overlaps && job->nhw <= room;
}

static bool dgpu_has_overlap(struct dgpu_engine *engine)
{
	struct dgpu_job *job;
	bool has;

	spin_lock(&engine->lock);
	job = list_first_entry_or_null(&engine->jobs, struct dgpu_job, list);
	has = job && dgpu_fits(job, engine->room);
	spin_unlock(&engine->lock);
	return has;
}

/*
 * Not for longer than a part of the time that this has taken anyway, and a long one
 * not when there is a job that need not wait.
 */
static void dgpu_nap(struct dgpu_engine *engine, s64 us)
{
	us = clamp(us / 8, NAP_LEAST, NAP_MOST);
	if (us < NAP_MOST)
		usleep_range(us, 2 * us);
	else
		wait_event_timeout(engine->wait, dgpu_has_overlap(engine),
				   usecs_to_jiffies(us));
}

/*
 * Look again after a moment. 0 or
 * -EAGAIN: so far; or the error. Then the engine is disabled: what fences are
 * going to say must be true, that nothing touches the buffers any more.
 */
static int dgpu_engine_poll(struct dgpu_engine *engine,
			    struct dgpu_watch *watch)
{
	ktime_t now = ktime_get();
	u32 head;
	s64 us;
	int ret;

	if (watch->seldom && !dgpu_engine_dead(engine) &&
	    ktime_us_delta(now, watch->looked) < SELDOM) {
		dgpu_nap(engine, ktime_us_delta(now, watch->since));
		return -EAGAIN;
	}
	watch->looked = now;
	ret = dgpu_engine_look(engine, &head);
	if (!ret || (ret == -EAGAIN && head != watch->head)) {
		watch->head = head;
		watch->since = ktime_get();
		return ret;
	}
	us = ktime_us_delta(ktime_get(), watch->since);
	if (ret == -EAGAIN && us < HANG_TIMEOUT) {
		dgpu_nap(engine, us);
		return ret;
	}
	writel(0, engine->regs + DRACO_GPU_CTRL);
	readl(engine->regs + DRACO_GPU_STATUS);
	return ret == -EAGAIN ? -ETIMEDOUT : ret;
}

/* Until the engine has executed everything up to the tail. */
static int dgpu_engine_drain(struct dgpu_engine *engine)
{
	struct dgpu_watch watch = {
		.head = engine->tail - 1, .since = ktime_get(),
	};
	int ret;

	engine->room = 0;
	do {
		ret = dgpu_engine_poll(engine, &watch);
	} while (ret == -EAGAIN);
	return ret;
}

static void __iomem *dgpu_entry(struct dgpu_engine *engine, u32 at)
{
	return engine->ring + (at & (DGPU_RING_SIZE - 1)) *
	       sizeof(struct draco_gpu_cmd);
}

/* Entries of the ring from @at on are those of the job from @first on. */
static int dgpu_collect(struct dgpu_engine *engine, struct dgpu_job *job,
			u32 at, unsigned int first, unsigned int n)
{
	struct draco_gpu_cmd entry;
	struct dgpu_cmd *cmd;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < n; i++) {
		memcpy_fromio(&entry, dgpu_entry(engine, at + i),
			      sizeof(entry));
		if (entry.status != DRACO_GPU_DONE)
			ret = -EIO;
		if (!job->count)
			continue;
		cmd = &job->cmds[job->of[first + i]];
		if (cmd->status == DRACO_GPU_PENDING ||
		    cmd->status == DRACO_GPU_DONE)
			cmd->status = entry.status;
		cmd->result = le64_to_cpu(entry.result);
	}
	return ret;
}

static void dgpu_post(struct dgpu_engine *engine, struct dgpu_job *job,
		      unsigned int first, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		memcpy_toio(dgpu_entry(engine, engine->tail + i),
			    &job->hw[first + i], sizeof(job->hw[0]));
	/* The entries before the tail: their mapping is write-combining. */
	wmb();
	engine->tail += n;
	writel(engine->tail, engine->regs + DRACO_GPU_TAIL);
}

static int dgpu_batch(struct dgpu_engine *engine, struct dgpu_job *job,
		      unsigned int first, unsigned int n)
{
	int ret;

	dgpu_post(engine, job, first, n);
	ret = dgpu_engine_drain(engine);
	if (ret)
		return ret;
	return dgpu_collect(engine, job, engine->tail - n, first, n);
}

static int dgpu_run(struct dgpu *dg, struct dgpu_job *job)
{
	struct dgpu_engine *engine = &dg->engine;
	unsigned int at, n;
	int ret, failed = 0;

	if (job->delay)
		wait_event_timeout(engine->wait, dgpu_engine_dead(engine),
				   msecs_to_jiffies(job->delay));
	for (at = 0; at < job->nhw; at += n) {
		n = min(job->nhw - at, DGPU_RING_SIZE);
		if (dgpu_engine_dead(engine))
			return -ENODEV;
		ret = dgpu_batch(engine, job, at, n);
		if (ret == -EIO)
			failed = ret;
		else if (ret)
			return ret;
	}
	return failed;
}

/* A ring that stopped, because of a link that went down for example, is made
 * anew by the job that finds it so.
 */
static int dgpu_engine_ready(struct dgpu_engine *engine)
{
	u32 status = readl(engine->regs + DRACO_GPU_STATUS);

	if (!(status & DRACO_GPU_STATUS_READY) ||
	    status & DRACO_GPU_STATUS_BUSY)
		return dgpu_engine_start(engine);
	return 0;
}

/* ---- Jobs ---- */

static void dgpu_finish(struct dgpu_engine *engine, struct dgpu_job *job,
			int error)
{
	job->error = error;
	if (error)
		dma_fence_set_error(job->fence, error);
	dma_fence_signal(job->fence);
}

/* All jobs up to @seq have ended. */
static void dgpu_done(struct dgpu_engine *engine, u64 seq)
{
	WRITE_ONCE(engine->done, seq);
	wake_up_all(&engine->wait);
}

static struct dgpu_job *dgpu_next_job(struct dgpu_engine *engine)
{
	struct dgpu_job *job;

	spin_lock(&engine->lock);
	job = list_first_entry_or_null(&engine->jobs, struct dgpu_job, list);
	if (job)
		list_del_init(&job->list);
	spin_unlock(&engine->lock);
	return job;
}

/* If it overlaps with those before it, and there is room for it. */
static struct dgpu_job *dgpu_next_overlap(struct dgpu_engine *engine, u32 room)
{
	struct dgpu_job *job;

	spin_lock(&engine->lock);
	job = list_first_entry_or_null(&engine->jobs, struct dgpu_job, list);
	if (job && dgpu_fits(job, room))
		list_del_init(&job->list);
	else
		job = NULL;
	spin_unlock(&engine->lock);
	return job;
}

/* The engine reads entries until HEAD counts them, and we until their job has
 * ended.
 */
static u32 dgpu_room(const struct dgpu_engine *engine, struct list_head *posted,
		     u32 head)
{
	struct dgpu_job *first = list_first_entry_or_null(posted, struct dgpu_job,
							  list);
	u32 used = engine->tail - head;

	if (first)
		used = max(used, engine->tail - (first->end - first->nhw));
	return DGPU_RING_SIZE - used;
}

static void dgpu_post_job(struct dgpu_engine *engine, struct dgpu_job *job,
			  struct list_head *posted)
{
	dgpu_post(engine, job, 0, job->nhw);
	engine->posted = job->seq;
	job->end = engine->tail;
	list_add_tail(&job->list, posted);
}

/* Commands beside writes to peers end before these, and those to different peers
 * in any order.
 */
static bool dgpu_executed(struct dgpu_engine *engine, const struct dgpu_job *job,
			  u32 head)
{
	unsigned int i;
	u8 status;

	if ((s32)(head - job->end) >= 0)
		return true;
	for (i = job->nhw; i; i--) {
		status = readb(dgpu_entry(engine, job->end - i) +
			       offsetof(struct draco_gpu_cmd, status));
		/* All ones: the device does not answer, as HEAD will tell. */
		if (status == DRACO_GPU_PENDING || status == (u8)ALL_ONES)
			return false;
	}
	/* Results after the statuses. */
	rmb();
	return true;
}

/*
 * What a GPU does at home ends soon. Its status is in memory, while each look at
 * HEAD is a message to the emulator.
 */
static bool dgpu_linger(struct dgpu_engine *engine, const struct dgpu_job *job,
			u32 head)
{
	unsigned int i;

	if (job->context)
		return false;
	for (i = 0; i < LINGER; i++) {
		if (dgpu_executed(engine, job, head))
			return true;
		usleep_range(NAP_LEAST, 2 * NAP_LEAST);
	}
	return false;
}

/* Is there one before it whose fence is to be signalled first? */
static bool dgpu_is_behind(const struct dgpu_job *job, struct list_head *posted)
{
	struct dgpu_job *other;

	list_for_each_entry(other, posted, list) {
		if (other == job)
			return false;
		if (other->context == job->context)
			return true;
	}
	return false;
}

/* Those that are executed, or with @error all. True: there were some. */
static bool dgpu_end_jobs(struct dgpu_engine *engine, u32 head, int error,
			  struct list_head *posted, struct list_head *ended)
{
	struct dgpu_job *job, *next;
	bool some = false;

	list_for_each_entry_safe(job, next, posted, list) {
		bool executed = !dgpu_is_behind(job, posted) &&
				dgpu_executed(engine, job, head);

		if (!executed && !error)
			continue;
		dgpu_finish(engine, job, !executed ? error :
			    dgpu_collect(engine, job, job->end - job->nhw, 0,
					 job->nhw));
		some = true;
		list_move_tail(&job->list, ended);
	}
	if (!some)
		return false;
	job = list_first_entry_or_null(posted, struct dgpu_job, list);
	dgpu_done(engine, job ? job->seq - 1 : engine->posted);
	return true;
}

static void dgpu_put_jobs(struct list_head *ended)
{
	struct dgpu_job *job, *next;

	list_for_each_entry_safe(job, next, ended, list) {
		list_del_init(&job->list);
		dgpu_job_put(job);
	}
}

/*
 * @job and those that come meanwhile and overlap with it, until HEAD counts all.
 * What makes the engine stop fails all of them.
 */
static void dgpu_run_overlapping(struct dgpu_engine *engine,
				 struct dgpu_job *job)
{
	struct dgpu_watch watch = { .since = ktime_get() };
	LIST_HEAD(posted);
	LIST_HEAD(ended);
	bool cookie, at_once = false;
	int ret;

	cookie = dma_fence_begin_signalling();
	ret = dgpu_engine_dead(engine) ? -ENODEV : dgpu_engine_ready(engine);
	watch.head = engine->tail;
	if (ret) {
		dgpu_finish(engine, job, ret);
		dgpu_done(engine, job->seq);
		list_add_tail(&job->list, &ended);
	} else {
		dgpu_post_job(engine, job, &posted);
		at_once = dgpu_linger(engine, job, watch.head);
	}
	while (!list_empty(&posted) || (!ret && watch.head != engine->tail)) {
		engine->room = dgpu_room(engine, &posted, watch.head);
		watch.seldom = !list_empty(&posted) &&
			       engine->room > DGPU_RING_SIZE / 2;
		if (!ret && !at_once)
			ret = dgpu_engine_poll(engine, &watch);
		at_once = false;
		if (ret == -EAGAIN)
			ret = 0;
		if (dgpu_end_jobs(engine, watch.head, ret, &posted, &ended))
			watch.since = ktime_get();
		dma_fence_end_signalling(cookie);
		dgpu_put_jobs(&ended);
		cookie = dma_fence_begin_signalling();
		while (!ret &&
		       (job = dgpu_next_overlap(engine,
						dgpu_room(engine, &posted,
							  watch.head)))) {
			dgpu_post_job(engine, job, &posted);
			at_once |= dgpu_linger(engine, job, watch.head);
		}
	}
	dma_fence_end_signalling(cookie);
	dgpu_put_jobs(&ended);
}

static void dgpu_run_alone(struct dgpu *dg, struct dgpu_job *job)
{
	bool cookie = dma_fence_begin_signalling();

	dgpu_finish(&dg->engine, job, dgpu_engine_ready(&dg->engine) ?:
				      dgpu_run(dg, job));
	dgpu_done(&dg->engine, job->seq);
	dma_fence_end_signalling(cookie);
	dgpu_job_put(job);
}

static void dgpu_engine_work(struct work_struct *work)
{
	struct dgpu *dg = container_of(work, struct dgpu, engine.work);
	struct dgpu_job *job;

	while ((job = dgpu_next_job(&dg->engine))) {
		if (dgpu_fits(job, DGPU_RING_SIZE))
			dgpu_run_overlapping(&dg->engine, job);
		else
			dgpu_run_alone(dg, job);
	}
}

/**
 * dgpu_engine_queue() - hand a job over
 * @dg:  GPU
 * @job: with an initialised fence on return; the engine takes a reference
 *
 * Does not fail: the job of a GPU that goes away ends with -ENODEV.
 */
void dgpu_engine_queue(struct dgpu *dg, struct dgpu_job *job)
{
	struct dgpu_engine *engine = &dg->engine;
	bool dead;

	spin_lock(&engine->lock);
	job->seq = ++engine->seq;
	dgpu_fence_init(job->fence, engine->context + job->context, job->seq);
	dead = engine->dead;
	if (!dead) {
		kref_get(&job->ref);
		list_add_tail(&job->list, &engine->jobs);
		queue_work(engine->wq, &engine->work);
	}
	spin_unlock(&engine->lock);
	if (dead)
		dgpu_finish(engine, job, -ENODEV);
	wake_up_all(&engine->wait);
}

static bool dgpu_engine_room(struct dgpu_engine *engine)
{
	bool room;

	spin_lock(&engine->lock);
	room = engine->dead || engine->seq - engine->done < MOST_JOBS;
	spin_unlock(&engine->lock);
	return room;
}

/**
 * dgpu_engine_throttle() - wait until there are not too many jobs
 * @dg: GPU
 *
 * Without any lock. Several that wait at the same time may all go on.
 *
 * Return: 0 or -ERESTARTSYS
 */
int dgpu_engine_throttle(struct dgpu *dg)
{
	struct dgpu_engine *engine = &dg->engine;

	return wait_event_interruptible(engine->wait,
					dgpu_engine_room(engine));
}

/**
 * dgpu_engine_wait() - wait for jobs
 * @dg:         GPU
 * @seq:        up to this one
 * @timeout_ms: at most
 *
 * Return: 0; -EINVAL if there is no such job; -ETIMEDOUT; -ERESTARTSYS;
 * -ENODEV if the GPU goes away
 */
int dgpu_engine_wait(struct dgpu *dg, u64 seq, unsigned int timeout_ms)
{
	struct dgpu_engine *engine = &dg->engine;
	long ret;
	u64 last;

	spin_lock(&engine->lock);
	last = engine->seq;
	spin_unlock(&engine->lock);
	if (seq > last)
		return -EINVAL;
	ret = wait_event_interruptible_timeout(engine->wait,
					       READ_ONCE(engine->done) >= seq ||
					       dgpu_engine_dead(engine),
					       msecs_to_jiffies(timeout_ms));
	if (ret < 0)
		return ret;
	if (READ_ONCE(engine->done) >= seq)
		return 0;
	return ret ? -ENODEV : -ETIMEDOUT;
}

/**
 * dgpu_engine_init() - find the engine and start it
 * @dg: GPU with its registers mapped
 *
 * Return: 0, even without an engine; -ENOMEM
 */
int dgpu_engine_init(struct dgpu *dg)
{
	struct dgpu_engine *engine = &dg->engine;
	int ret;

	spin_lock_init(&engine->lock);
	INIT_LIST_HEAD(&engine->jobs);
	init_waitqueue_head(&engine->wait);
	INIT_WORK(&engine->work, dgpu_engine_work);
	engine->context = dma_fence_context_alloc(DGPU_CONTEXTS);
	engine->ring = ioremap_wc(dg->vram, PAGE_SIZE);
	if (!engine->ring)
		return -ENOMEM;
	engine->wq = alloc_ordered_workqueue("dgpu%d", 0, dg->index);
	if (!engine->wq) {
		iounmap(engine->ring);
		return -ENOMEM;
	}
	ret = dgpu_engine_start(engine);
	engine->present = !ret;
	if (ret)
		dev_warn(&dg->pdev->dev, "the engine does not start: error %d\n",
			 ret);
	return 0;
}

/**
 * dgpu_engine_stop() - nothing touches the device any more
 * @dg: GPU
 *
 * All jobs are finished on return, and so will those be that come later.
 */
void dgpu_engine_stop(struct dgpu *dg)
{
	struct dgpu_engine *engine = &dg->engine;

	spin_lock(&engine->lock);
	engine->dead = true;
	spin_unlock(&engine->lock);
	wake_up_all(&engine->wait);
	destroy_workqueue(engine->wq);
	writel(0, engine->regs + DRACO_GPU_CTRL);
	dgpu_engine_state(engine, false);
	iounmap(engine->ring);
}
