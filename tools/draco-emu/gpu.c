// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine of a modelled GPU. The ring and all operands lie in memory that
 * its host and its peers write at any time: each entry is copied out once, and
 * only the copy is believed. Commands run in pieces, and between two pieces
 * the engine looks whether it has to stop.
 */
#define _GNU_SOURCE
#include "gpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <draco/gpu.h>

#include "base/crc32c.h"
#include "fabric.h"
#include "gpu_math.h"
#include "log.h"
#include "mesh.h"

#define PIECE		(256u << 10)
#define AHEAD		64u	/* commands that are performed at a time */
#define STACK_SIZE	(256 * 1024)
#define RING_MIN	8u
#define RING_MAX	4096u
#define ABANDONED	MESH_OWN_DOWN	/* not a status */
#define NAP_MAX_NS	100000000u	/* then it is looked whether to go on */

_Static_assert(sizeof(struct draco_gpu_cmd) == 64, "docs/gpu.md");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rings and registers are little-endian and used as they are"
#endif

/* A command that has been read. */
struct task {
	struct draco_gpu_cmd cmd;
	unsigned int status;		/* DRACO_GPU_PENDING: it has not ended */
	bool begun;			/* checked */
	bool waited;			/* for one before it */
	bool told;			/* its entry has the status */
	uint64_t done;			/* bytes */
	struct mesh_access access;	/* of a peer's memory */
	struct flow *flow;		/* to or from it */
};

struct gpu {
	struct gpu_desc desc;

	/* The function's thread; they do not change while the engine runs. */
	uint32_t ctrl, ring_size;
	uint64_t ring_base;

	pthread_mutex_t life;		/* running, killed */
	bool running, killed;
	pthread_t thread;

	_Atomic uint32_t head, tail, status;
	atomic_bool stop;
	pthread_mutex_t lock;		/* for the engine's sleep */
	pthread_cond_t wake;

	/* The thread's: the commands behind HEAD, and over the mesh. */
	struct task tasks[AHEAD];
	unsigned int ntasks;
	struct flow *flows;		/* to each GPU of it, then from each */
	unsigned int nflows;
};

/* ---- Pieces of a command ---- */

static bool reachable(const struct gpu *g)
{
	return !g->desc.link ||
	       atomic_load_explicit(g->desc.link, memory_order_relaxed);
}

static bool go_on(struct gpu *g)
{
	return !atomic_load_explicit(&g->stop, memory_order_relaxed) &&
	       reachable(g);
}

static char *at(struct gpu *g, uint64_t offset)
{
	return (char *)g->desc.vram + offset;
}

/* Was it never touched? Reading it there would cost memory for zeroes. */
static bool untouched(struct gpu *g, uint64_t offset, uint64_t n)
{
	off_t data;

	if (g->desc.fd < 0)
		return false;
	data = lseek(g->desc.fd, (off_t)offset, SEEK_DATA);
	return data < 0 ? errno == ENXIO : (uint64_t)data >= offset + n;
}

static void fill_piece(struct gpu *g, const struct draco_gpu_cmd *c,
		       uint64_t done, uint64_t n)
{
	char *to = at(g, c->dst + done);

	if (!c->src1 && untouched(g, c->dst + done, n))
		return;
	for (uint64_t i = 0; i < n; i += 8)
		memcpy(to + i, &c->src1, 8);
}

/* As memmove(): from the end if the source would be overwritten. */
static void copy_piece(struct gpu *g, const struct draco_gpu_cmd *c,
		       uint64_t done, uint64_t n)
{
	uint64_t from = done;

	if (c->dst > c->src0 && c->dst - c->src0 < c->length)
		from = c->length - done - n;
	memmove(at(g, c->dst + from), at(g, c->src0 + from), n);
}

static void crc_piece(struct gpu *g, struct draco_gpu_cmd *c, uint64_t done,
		      uint64_t n)
{
	static const char zeroes[PIECE];
	const void *from = untouched(g, c->src0 + done, n) ? zeroes :
			   at(g, c->src0 + done);

	c->result = fxi_crc32c((uint32_t)c->result, from, n);
}

static void do_piece(struct gpu *g, struct draco_gpu_cmd *c, uint64_t done,
		     uint64_t n)
{
	switch (c->op) {
	case DRACO_GPU_FILL:
		fill_piece(g, c, done, n);
		break;
	case DRACO_GPU_COPY:
		copy_piece(g, c, done, n);
		break;
	case DRACO_GPU_REDUCE:
		gpu_reduce(c->type, c->function, at(g, c->dst + done),
			   at(g, c->src0 + done), at(g, c->src1 + done), n);
		break;
	case DRACO_GPU_CRC32C:
		crc_piece(g, c, done, n);
		break;
	}
}

/* ---- Peers ---- */

static bool is_peer(const struct draco_gpu_cmd *c)
{
	return c->op == DRACO_GPU_PEER_READ || c->op == DRACO_GPU_PEER_WRITE;
}

static struct mesh_access access_of(const struct gpu *g,
				    const struct draco_gpu_cmd *c)
{
	bool read = c->op == DRACO_GPU_PEER_READ;

	return (struct mesh_access){
		.own = g->desc.seat, .host = g->desc.host, .peer = c->peer,
		.instance = c->instance, .read = read,
		.there = read ? c->src0 : c->dst,
	};
}

static void nap(struct gpu *g, uint64_t ns)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns = (ns < NAP_MAX_NS ? ns : NAP_MAX_NS) + (uint64_t)ts.tv_nsec;
	ts.tv_sec += (time_t)(ns / 1000000000);
	ts.tv_nsec = (long)(ns % 1000000000);
	pthread_mutex_lock(&g->lock);
	if (!atomic_load(&g->stop))
		pthread_cond_timedwait(&g->wake, &g->lock, &ts);
	pthread_mutex_unlock(&g->lock);
}

static bool throttled(const struct gpu *g)
{
	return g->flows &&
	       throttle_is_on(&g->desc.seat->mesh->fabric->throttle);
}

/*
 * Nanoseconds until the link has carried them; 0: now, and *n is as much as is
 * to be moved at once.
 */
static uint64_t cross_mesh(struct gpu *g, struct task *t, uint64_t *n)
{
	struct fabric *f = g->desc.seat->mesh->fabric;
	uint64_t wait;

	if (!t->flow->bytes && throttle_is_on(&f->throttle))
		throttle_reserve_way(f, t->flow, mesh_way(&t->access), *n);
	wait = throttle_wait(f, t->flow);
	if (!wait)
		throttle_take(t->flow, n);
	return wait;
}

/* A piece, unless the link is to be waited for: nanoseconds. */
static uint64_t peer_piece(struct gpu *g, struct task *t, uint64_t *n)
{
	struct mesh_access a = t->access;
	uint64_t here = a.read ? t->cmd.dst : t->cmd.src0, wait;

	a.there += t->done;
	wait = cross_mesh(g, t, n);
	if (!wait)
		t->status = mesh_move(&a, at(g, here + t->done), *n);
	return wait;
}

static void leave_mesh(struct gpu *g)
{
	for (unsigned int i = 0; i < g->nflows; i++)
		throttle_release(g->desc.seat->mesh->fabric, &g->flows[i]);
}

/* What comes next has not been waiting till now, but for what is under way. */
static void idle_mesh(struct gpu *g)
{
	for (unsigned int i = 0; i < g->nflows; i++)
		if (!g->flows[i].bytes)
			throttle_idle(&g->flows[i]);
}

/* ---- Checks, in the order of docs/gpu.md section 6 ---- */

static bool known(const struct draco_gpu_cmd *c)
{
	bool reduce = c->op == DRACO_GPU_REDUCE;

	if (c->op > DRACO_GPU_PEER_WRITE || c->__rsvd ||
	    (!is_peer(c) && (c->peer || c->instance)))
		return false;
	if (!reduce)
		return !c->type && !c->function;
	return gpu_element(c->type) && c->function <= DRACO_GPU_MAX;
}

static bool aligned(const struct draco_gpu_cmd *c)
{
	if (c->op == DRACO_GPU_FILL)
		return !((c->dst | c->length) & 7);
	if (c->op == DRACO_GPU_REDUCE)
		return !((c->dst | c->src0 | c->src1 | c->length) &
			 (gpu_element(c->type) - 1));
	return true;
}

static uint64_t ring_bytes(const struct gpu *g)
{
	return g->ring_size * sizeof(struct draco_gpu_cmd);
}

static bool inside(const struct gpu *g, uint64_t offset, uint64_t length)
{
	return offset <= g->desc.size && length <= g->desc.size - offset;
}

/* Within VRAM and clear of the ring. */
static bool usable(const struct gpu *g, uint64_t offset, uint64_t length)
{
	if (!inside(g, offset, length))
		return false;
	return !length || offset + length <= g->ring_base ||
	       offset >= g->ring_base + ring_bytes(g);
}

static bool in_range(const struct gpu *g, const struct draco_gpu_cmd *c)
{
	bool dst = c->op == DRACO_GPU_FILL || c->op == DRACO_GPU_COPY ||
		   c->op == DRACO_GPU_REDUCE || c->op == DRACO_GPU_PEER_READ;
	bool src0 = c->op == DRACO_GPU_COPY || c->op == DRACO_GPU_REDUCE ||
		    c->op == DRACO_GPU_CRC32C || c->op == DRACO_GPU_PEER_WRITE;
	bool src1 = c->op == DRACO_GPU_REDUCE;

	return (!dst || usable(g, c->dst, c->length)) &&
	       (!src0 || usable(g, c->src0, c->length)) &&
	       (!src1 || usable(g, c->src1, c->length));
}

static unsigned int check(struct gpu *g, struct task *t)
{
	const struct draco_gpu_cmd *c = &t->cmd;
	unsigned int status;

	if (!known(c))
		return DRACO_GPU_BAD_COMMAND;
	if (!aligned(c))
		return DRACO_GPU_BAD_ALIGN;
	if (!in_range(g, c))
		return DRACO_GPU_BAD_RANGE;
	if (!is_peer(c))
		return DRACO_GPU_DONE;
	t->access = access_of(g, c);
	status = mesh_check(&t->access, c->length);
	if (status == DRACO_GPU_DONE)
		t->flow = &g->flows[c->peer - 1 +
				    (t->access.read ? g->nflows / 2 : 0)];
	return status;
}

/* ---- Tasks ---- */

static void begin(struct gpu *g, struct task *t)
{
	unsigned int status = check(g, t);

	t->begun = true;
	t->cmd.result = 0;
	if (status != DRACO_GPU_DONE || t->cmd.op == DRACO_GPU_NOP ||
	    !t->cmd.length)
		t->status = status;
}

/*
 * As far as it goes: nanoseconds until it goes on, 0 if it has ended. What is
 * computed here is not to keep links waiting.
 */
static uint64_t advance(struct gpu *g, struct task *t)
{
	uint64_t n, wait;

	if (!t->begun)
		begin(g, t);
	while (t->status == DRACO_GPU_PENDING) {
		n = t->cmd.length - t->done;
		n = n < PIECE ? n : PIECE;
		if (!go_on(g)) {
			t->status = ABANDONED;
			break;
		}
		if (!is_peer(&t->cmd)) {
			do_piece(g, &t->cmd, t->done, n);
			t->status = DRACO_GPU_DONE;
		} else {
			wait = peer_piece(g, t, &n);
			if (wait)
				return wait;
		}
		t->done += n;
		if (t->status == DRACO_GPU_DONE && t->done < t->cmd.length)
			t->status = DRACO_GPU_PENDING;
		if (t->status == DRACO_GPU_PENDING && !is_peer(&t->cmd) &&
		    g->ntasks > 1)
			return 1;
	}
	if (t->flow && t->status != DRACO_GPU_DONE)
		throttle_release(g->desc.seat->mesh->fabric, t->flow);
	t->flow = NULL;
	return 0;
}

static struct draco_gpu_cmd *entry(struct gpu *g, uint32_t index)
{
	uint64_t slot = index & (g->ring_size - 1);

	return (void *)at(g, g->ring_base +
			  slot * sizeof(struct draco_gpu_cmd));
}

/* Word by word and once, whatever the host does to it meanwhile. */
static void fetch(struct gpu *g, uint32_t index, struct draco_gpu_cmd *c)
{
	uint64_t words[sizeof(*c) / 8], *from = (void *)entry(g, index);

	for (unsigned int i = 0; i < sizeof(*c) / 8; i++)
		words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	memcpy(c, words, sizeof(*c));
}

/* The entry of a command that has ended; HEAD comes to it in its turn. */
static void tell(struct gpu *g, uint32_t index, struct task *t)
{
	struct draco_gpu_cmd *e = entry(g, index);

	if (t->told || t->status == DRACO_GPU_PENDING || t->status == ABANDONED)
		return;
	__atomic_store_n(&e->result, t->cmd.result, __ATOMIC_RELAXED);
	__atomic_store_n(&e->status, (uint8_t)t->status, __ATOMIC_RELEASE);
	t->told = true;
}

/*
 * May others be performed beside it? Not while it waits for a peer's memory, as
 * these may need what it brings.
 */
static bool overlaps(const struct task *t)
{
	return t->cmd.op != DRACO_GPU_PEER_READ;
}

static bool writes_here(const struct draco_gpu_cmd *c)
{
	return c->op == DRACO_GPU_FILL || c->op == DRACO_GPU_COPY ||
	       c->op == DRACO_GPU_REDUCE;
}

/* Does @c store into what @peer, which writes to a peer, still reads? */
static bool overwrites(const struct draco_gpu_cmd *c,
		       const struct draco_gpu_cmd *peer)
{
	if (!writes_here(c) || !c->length || !peer->length)
		return false;
	return c->dst >= peer->src0 ? c->dst - peer->src0 < peer->length :
				      peer->src0 - c->dst < c->length;
}

/* Has @c, which may be performed beside writes to peers, to wait for this one? */
static bool waits_for(const struct draco_gpu_cmd *c,
		      const struct draco_gpu_cmd *write)
{
	if (c->op == DRACO_GPU_PEER_WRITE)
		return c->peer == write->peer;
	return c->op == DRACO_GPU_NOP || overwrites(c, write);
}

/* Those to one peer keep their order; what is stored here waits for its readers. */
static bool is_behind(const struct gpu *g, unsigned int i)
{
	for (unsigned int k = 0; k < i; k++) {
		const struct task *t = &g->tasks[k];

		/* The engine comes to its end with it. */
		if (t->status == ABANDONED)
			return true;
		if (t->status != DRACO_GPU_PENDING)
			continue;
		if (t->cmd.op != DRACO_GPU_PEER_WRITE ||
		    waits_for(&g->tasks[i].cmd, &t->cmd))
			return true;
	}
	return false;
}

/* Without a throttle a command ends at once: none is read before its turn. */
static void read_ahead(struct gpu *g, uint32_t head, uint32_t tail)
{
	unsigned int most = throttled(g) ? AHEAD : 1;

	while (g->ntasks < most && head + g->ntasks != tail &&
	       (!g->ntasks || overlaps(&g->tasks[g->ntasks - 1]))) {
		struct task *t = &g->tasks[g->ntasks];

		memset(t, 0, sizeof(*t));
		fetch(g, head + g->ntasks++, &t->cmd);
	}
}

/* Nanoseconds until one of them goes on; 0: the first has ended. */
static uint64_t advance_all(struct gpu *g, uint32_t head)
{
	uint64_t wait, least = UINT64_MAX;

	for (unsigned int i = 0; i < g->ntasks; i++) {
		struct task *t = &g->tasks[i];

		if (i && (!overlaps(t) || is_behind(g, i))) {
			t->waited = true;
			continue;
		}
		if (!t->begun && !is_peer(&t->cmd) && (!i || t->waited))
			idle_mesh(g);
		wait = advance(g, t);
		if (wait && wait < least)
			least = wait;
		tell(g, head + i, t);
	}
	return g->tasks[0].status == DRACO_GPU_PENDING ? least : 0;
}

/* Until the first command has ended; false: the engine has come to its end. */
static bool execute(struct gpu *g, uint32_t head)
{
	uint32_t tail;
	uint64_t wait;

	do {
		tail = atomic_load_explicit(&g->tail, memory_order_acquire);
		if (tail - head > g->ring_size || !go_on(g))
			return false;
		read_ahead(g, head, tail);
		wait = advance_all(g, head);
		if (wait)
			nap(g, wait);
	} while (wait);
	if (g->tasks[0].status == ABANDONED)
		return false;
	atomic_store_explicit(&g->head, head + 1, memory_order_release);
	memmove(g->tasks, g->tasks + 1, --g->ntasks * sizeof(g->tasks[0]));
	return true;
}

/* Sleeps until TAIL is not @head; false: stop. */
static bool wait_for_work(struct gpu *g, uint32_t head)
{
	bool work;

	if (atomic_load_explicit(&g->tail, memory_order_acquire) != head)
		return !atomic_load(&g->stop);
	idle_mesh(g);
	pthread_mutex_lock(&g->lock);
	while (!atomic_load(&g->stop) && atomic_load(&g->tail) == head)
		pthread_cond_wait(&g->wake, &g->lock);
	work = !atomic_load(&g->stop);
	pthread_mutex_unlock(&g->lock);
	return work;
}

static void *engine(void *arg)
{
	struct gpu *g = arg;
	uint32_t head = 0;

	while (wait_for_work(g, head) && execute(g, head))
		head++;
	leave_mesh(g);
	if (atomic_load(&g->stop))
		return NULL;
	log_debug("%s: engine stopped by itself at command %u", g->desc.name,
		  head);
	atomic_store(&g->status, DRACO_GPU_STATUS_FATAL);
	return NULL;
}

/* ---- Start and end ---- */

static bool ring_good(const struct gpu *g)
{
	uint32_t n = g->ring_size;

	return n >= RING_MIN && n <= RING_MAX && !(n & (n - 1)) &&
	       !(g->ring_base & 63) && inside(g, g->ring_base, ring_bytes(g));
}

/* life held */
static bool launch(struct gpu *g)
{
	pthread_attr_t attr;

	atomic_store(&g->stop, false);
	atomic_store(&g->head, 0);
	atomic_store(&g->tail, 0);
	atomic_store(&g->status, DRACO_GPU_STATUS_READY);
	g->ntasks = 0;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	g->running = !pthread_create(&g->thread, &attr, engine, g);
	pthread_attr_destroy(&attr);
	if (g->running)
		pthread_setname_np(g->thread, "gpu");
	else
		log_error("%s: no thread for its engine; raise the limit of threads",
			  g->desc.name);
	return g->running;
}

static void start(struct gpu *g)
{
	pthread_mutex_lock(&g->life);
	if (!g->killed && (!ring_good(g) || !launch(g))) {
		atomic_store(&g->head, 0);
		atomic_store(&g->status, DRACO_GPU_STATUS_FATAL);
	}
	pthread_mutex_unlock(&g->life);
}

/* life held */
static void end(struct gpu *g)
{
	if (!g->running)
		return;
	atomic_store(&g->stop, true);
	pthread_mutex_lock(&g->lock);
	pthread_cond_signal(&g->wake);
	pthread_mutex_unlock(&g->lock);
	pthread_join(g->thread, NULL);
	g->running = false;
}

static void stop(struct gpu *g)
{
	pthread_mutex_lock(&g->life);
	end(g);
	atomic_store(&g->status, 0);
	pthread_mutex_unlock(&g->life);
}

void gpu_kill(struct gpu *g)
{
	pthread_mutex_lock(&g->life);
	g->killed = true;
	end(g);
	atomic_store(&g->status, 0);
	pthread_mutex_unlock(&g->life);
	if (g->desc.seat)
		mesh_leave(g->desc.seat, g->desc.instance);
}

void gpu_reset(struct gpu *g)
{
	stop(g);
	g->ctrl = 0;
	g->ring_base = 0;
	g->ring_size = 0;
	atomic_store(&g->head, 0);
}

/* ---- Registers ---- */

static uint32_t read_mesh(const struct gpu *g, uint64_t offset)
{
	const struct seat *s = g->desc.seat;

	if (!s)
		return 0;
	switch (offset) {
	case DRACO_GPU_MESH_ID:
		return s->mesh->id;
	case DRACO_GPU_MESH_NUMBER:
		return s->number;
	default:
		return s->mesh->n;
	}
}

static uint32_t read_status(struct gpu *g)
{
	uint32_t status = atomic_load(&g->status);

	if (status == DRACO_GPU_STATUS_READY &&
	    atomic_load(&g->head) != atomic_load(&g->tail))
		status |= DRACO_GPU_STATUS_BUSY;
	return status;
}

uint32_t gpu_read(struct gpu *g, uint64_t offset)
{
	switch (offset) {
	case DRACO_GPU_CTRL:
		return g->ctrl;
	case DRACO_GPU_STATUS:
		return read_status(g);
	case DRACO_GPU_RING_BASE:
		return (uint32_t)g->ring_base;
	case DRACO_GPU_RING_BASE + 4:
		return g->ring_base >> 32;
	case DRACO_GPU_RING_SIZE:
		return g->ring_size;
	case DRACO_GPU_HEAD:
		return atomic_load_explicit(&g->head, memory_order_acquire);
	case DRACO_GPU_MESH_ID:
	case DRACO_GPU_MESH_NUMBER:
	case DRACO_GPU_MESH_SIZE:
		return read_mesh(g, offset);
	default:
		return 0;
	}
}

static void write_ctrl(struct gpu *g, uint32_t v)
{
	uint32_t old = g->ctrl;

	g->ctrl = v & DRACO_GPU_CTRL_ENABLE;
	if (g->ctrl == old)
		return;
	if (g->ctrl)
		start(g);
	else
		stop(g);
}

static void write_tail(struct gpu *g, uint32_t v)
{
	if (!(atomic_load(&g->status) & DRACO_GPU_STATUS_READY))
		return;
	pthread_mutex_lock(&g->lock);
	atomic_store_explicit(&g->tail, v, memory_order_release);
	pthread_cond_signal(&g->wake);
	pthread_mutex_unlock(&g->lock);
}

static void write_ring(struct gpu *g, uint64_t offset, uint32_t v)
{
	if (g->ctrl & DRACO_GPU_CTRL_ENABLE)
		return;
	if (offset == DRACO_GPU_RING_BASE)
		g->ring_base = (g->ring_base & ~(uint64_t)UINT32_MAX) | v;
	else if (offset == DRACO_GPU_RING_BASE + 4)
		g->ring_base = (uint32_t)g->ring_base | (uint64_t)v << 32;
	else if (offset == DRACO_GPU_RING_SIZE)
		g->ring_size = v;
}

void gpu_write(struct gpu *g, uint64_t offset, uint32_t v)
{
	if (offset == DRACO_GPU_CTRL)
		write_ctrl(g, v);
	else if (offset == DRACO_GPU_TAIL)
		write_tail(g, v);
	else
		write_ring(g, offset, v);
}

struct gpu *gpu_create(const struct gpu_desc *d)
{
	struct gpu *g = calloc(1, sizeof(*g));
	pthread_condattr_t attr;

	if (!g)
		return NULL;
	if (d->seat && d->seat->mesh) {
		g->nflows = 2 * d->seat->mesh->n;
		g->flows = calloc(g->nflows, sizeof(*g->flows));
		if (!g->flows) {
			free(g);
			return NULL;
		}
	}
	g->desc = *d;
	pthread_mutex_init(&g->life, NULL);
	pthread_mutex_init(&g->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&g->wake, &attr);
	pthread_condattr_destroy(&attr);
	return g;
}

void gpu_join(struct gpu *g)
{
	const struct gpu_desc *d = &g->desc;
	const struct mesh_gpu self = {
		.vram = d->vram, .size = d->size, .instance = d->instance,
		.host = d->host,
	};

	pthread_mutex_lock(&g->life);
	if (d->seat && !g->killed)
		mesh_join(d->seat, &self);
	pthread_mutex_unlock(&g->life);
}

void gpu_destroy(struct gpu *g)
{
	if (!g)
		return;
	gpu_kill(g);
	pthread_cond_destroy(&g->wake);
	pthread_mutex_destroy(&g->lock);
	pthread_mutex_destroy(&g->life);
	free(g->flows);
	free(g);
}
