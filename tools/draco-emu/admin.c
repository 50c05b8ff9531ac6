// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin queue pair: rings, commands in flight, dispatch. Run by the port's
 * work; the commands are in admin_*.c.
 */
#include "admin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "port.h"

#define TURN_CMDS	64	/* before others have their turn */

struct admin_op {
	admin_fn fn;
	uint8_t flags;		/* that are known */
	bool manager;
};

static const struct admin_op ops[] = {
	[DRACO_ADM_IDENTIFY] = { admin_identify, 0, false },
	[DRACO_ADM_GET_OBJECTS] = { admin_get_objects, 0, false },
	[DRACO_ADM_GET_EVENTS] = { admin_get_events, 0, false },
	[DRACO_ADM_ABORT] = { admin_abort, 0, false },
	[DRACO_ADM_GET_COUNTERS] = { admin_get_counters, 0, false },
	[DRACO_ADM_GET_LOG] = { admin_get_log, 0, false },
	[DRACO_ADM_GET_PEERS] = { admin_get_peers, 0, false },
	[DRACO_ADM_GET_REQUESTS] = { admin_get_requests, 0, false },
	[DRACO_ADM_GET_LINKS] = { admin_get_links, DRACO_LINKSF_MESH, false },
	[DRACO_ADM_BIND] = { admin_bind, DRACO_BINDF_DRY_RUN, true },
	[DRACO_ADM_UNBIND] = { admin_unbind,
			       DRACO_BINDF_DRY_RUN | DRACO_BINDF_FORCE, true },
	[DRACO_ADM_RELEASE_REPLY] = { admin_release_reply, 0, false },
	[DRACO_ADM_PORT_CONTROL] = { admin_port_control, 0, true },
	[DRACO_ADM_QUEUE_CREATE] = { admin_queue_create, 0, false },
	[DRACO_ADM_QUEUE_DESTROY] = { admin_queue_destroy, 0, false },
	[DRACO_ADM_RESOLVE] = { admin_resolve, 0, false },
	[DRACO_ADM_MR_CREATE] = { admin_mr_create, 0, false },
	[DRACO_ADM_MR_PAGES] = { admin_mr_pages, 0, false },
	[DRACO_ADM_MR_DESTROY] = { admin_mr_destroy, 0, false },
	[DRACO_ADM_MR_INVALIDATE] = { admin_mr_invalidate, 0, false },
	[DRACO_ADM_WINDOW_CREATE] = { admin_window_create, 0, false },
	[DRACO_ADM_WINDOW_DESTROY] = { admin_window_destroy, 0, false },
};

/* ---- Lists ---- */

static void list_init(struct admin_list *l)
{
	l->head = NULL;
	l->tail = &l->head;
}

static void list_push(struct admin_list *l, struct admin_cmd *c)
{
	c->next = NULL;
	*l->tail = c;
	l->tail = &c->next;
}

static struct admin_cmd *list_pop(struct admin_list *l)
{
	struct admin_cmd *c = l->head;

	if (c) {
		l->head = c->next;
		if (!l->head)
			l->tail = &l->head;
	}
	return c;
}

static void list_remove(struct admin_list *l, struct admin_cmd *c)
{
	struct admin_cmd **p = &l->head;

	while (*p && *p != c)
		p = &(*p)->next;
	if (!*p)
		return;
	*p = c->next;
	if (!*p)
		l->tail = p;
}

/* ---- Life cycle ---- */

int admin_init(struct port *p)
{
	struct admin *a = &p->admin;

	pthread_mutex_init(&a->lock, NULL);
	a->cmds = calloc(PORT_ADMIN_MAX, sizeof(*a->cmds));
	a->buf = malloc(DRACO_ADM_DATA_MAX);
	if (a->cmds && a->buf)
		return 0;
	admin_free(p);
	return -ENOMEM;
}

void admin_free(struct port *p)
{
	free(p->admin.cmds);
	free(p->admin.buf);
	p->admin.cmds = NULL;
	p->admin.buf = NULL;
	pthread_mutex_destroy(&p->admin.lock);
}

static void set_serial(struct admin *a, struct admin_cmd *c, uint64_t serial)
{
	pthread_mutex_lock(&a->lock);
	c->serial = serial;
	c->finished = false;
	pthread_mutex_unlock(&a->lock);
}

bool admin_start(struct port *p, uint32_t size, uint64_t sq, uint64_t cq)
{
	struct admin *a = &p->admin;
	uint64_t probe;

	if (size < DRACO_ADMIN_MIN || size > PORT_ADMIN_MAX ||
	    size & (size - 1) || (sq | cq) & (FABREX_PAGE_SIZE - 1))
		return false;
	if (mem_read(p, sq, &probe, 8) || mem_read(p, cq, &probe, 8))
		return false;
	a->size = size;
	a->sq = sq;
	a->cq = cq;
	a->sq_head = a->cq_tail = 0;
	a->phase = true;
	atomic_store(&a->sq_tail, 0);
	atomic_store(&a->cq_head, 0);
	list_init(&a->free);
	list_init(&a->pending);
	list_init(&a->done);
	for (uint32_t i = 0; i < size; i++)
		list_push(&a->free, &a->cmds[i]);
	return true;
}

void admin_stop(struct port *p)
{
	struct admin *a = &p->admin;

	for (uint32_t i = 0; i < a->size; i++) {
		set_serial(a, &a->cmds[i], 0);
		a->cmds[i].used = false;
	}
	a->size = 0;
}

/* ---- For the commands ---- */

unsigned int admin_wait(struct admin_cmd *c, enum admin_wait wait,
			void *object)
{
	c->wait = wait;
	c->object = object;
	return ADMIN_PENDING;
}

struct admin_ref admin_ref(struct port *p, struct admin_cmd *c)
{
	struct admin_ref ref = {
		.port = p, .index = c - p->admin.cmds, .serial = c->serial,
	};

	return ref;
}

unsigned int admin_in(struct port *p, struct admin_cmd *c, void *buf,
		      size_t size)
{
	if (!c->cmd.data || c->cmd.data_len < size)
		return DRACO_SC_BAD_FIELD;
	return mem_read(p, c->cmd.data, buf, size) ? DRACO_SC_DMA_FAULT :
						     DRACO_SC_OK;
}

unsigned int admin_out(struct port *p, struct admin_cmd *c, const void *buf,
		       size_t size)
{
	if (!c->cmd.data || !c->cmd.data_len)
		return DRACO_SC_BAD_FIELD;
	if (size > c->cmd.data_len)
		size = c->cmd.data_len;
	return mem_write(p, c->cmd.data, buf, size) ? DRACO_SC_DMA_FAULT :
						      DRACO_SC_OK;
}

size_t admin_room(const struct admin_cmd *c, size_t size)
{
	return c->cmd.data ? c->cmd.data_len / size : 0;
}

struct admin_cmd *admin_by_cid(struct port *p, uint16_t cid)
{
	struct admin *a = &p->admin;

	for (uint32_t i = 0; i < a->size; i++) {
		if (a->cmds[i].used && a->cmds[i].cmd.cid == cid)
			return &a->cmds[i];
	}
	return NULL;
}

void admin_withdraw(struct port *p, struct admin_cmd *c, uint16_t status)
{
	c->status = status;
	list_remove(&p->admin.pending, c);
	list_push(&p->admin.done, c);
}

void admin_finish(const struct admin_ref *ref, const struct admin_result *r)
{
	struct admin *a = &ref->port->admin;
	struct admin_cmd *c = &a->cmds[ref->index];
	bool hit;

	pthread_mutex_lock(&a->lock);
	hit = ref->serial && c->serial == ref->serial && !c->finished;
	if (hit) {
		c->late = *r;
		c->finished = true;
	}
	pthread_mutex_unlock(&a->lock);
	if (hit)
		port_kick(ref->port);
}

/* ---- Pending commands ---- */

static bool take_late(struct port *p, struct admin_cmd *c)
{
	struct admin_result late;
	bool finished;

	pthread_mutex_lock(&p->admin.lock);
	finished = c->finished;
	if (finished)
		late = c->late;
	pthread_mutex_unlock(&p->admin.lock);
	if (!finished)
		return false;
	c->status = late.status;
	c->result = late.result;
	if (late.has_holder && c->cmd.data && c->cmd.data_len)
		admin_out(p, c, &late.holder, sizeof(late.holder));
	return true;
}

static bool mr_ended(struct port *p, struct admin_cmd *c)
{
	struct mr *mr = c->object;

	if (!gate_is_drained(&mr->gate))
		return false;
	if (c->wait == WAIT_MR_DESTROY || mr->used)
		admin_mr_ended(p, mr, c->wait == WAIT_MR_DESTROY);
	return true;
}

static bool queue_ended(struct admin_cmd *c)
{
	struct queue_slot *slot = c->object;

	if (!gate_is_drained(&slot->gate))
		return false;
	queue_destroy(slot);
	return true;
}

static bool window_ended(struct port *p, struct admin_cmd *c)
{
	struct window *w = c->object;

	if (!gate_is_drained(&w->gate))
		return false;
	window_destroy(p, w);
	return true;
}

/* Has what it waits for come? Then its result is filled in. */
static bool came(struct port *p, struct admin_cmd *c)
{
	bool ended = false;

	switch (c->wait) {
	case WAIT_EVENTS:
		return admin_take_events(p, c);
	case WAIT_FINISH:
		return take_late(p, c);
	case WAIT_MR_INVALIDATE:
	case WAIT_MR_DESTROY:
		ended = mr_ended(p, c);
		break;
	case WAIT_QUEUE:
		ended = queue_ended(c);
		break;
	case WAIT_WINDOW:
		ended = window_ended(p, c);
		break;
	case WAIT_ABORT:
		break;
	}
	if (ended)
		c->status = DRACO_SC_OK;
	return ended;
}

static void look_at_pending(struct port *p)
{
	struct admin_cmd **link = &p->admin.pending.head;

	while (*link) {
		struct admin_cmd *c = *link;

		if (!came(p, c)) {
			link = &c->next;
			continue;
		}
		*link = c->next;
		if (!*link)
			p->admin.pending.tail = link;
		list_push(&p->admin.done, c);
	}
}

/* ---- Submissions ---- */

static unsigned int check(struct port *p, const struct admin_cmd *c)
{
	const struct draco_acmd *cmd = &c->cmd;
	const struct admin_op *op;

	if (cmd->opcode >= sizeof(ops) / sizeof(ops[0]) ||
	    !ops[cmd->opcode].fn)
		return DRACO_SC_BAD_OPCODE;
	op = &ops[cmd->opcode];
	if (cmd->flags & ~op->flags || cmd->__rsvd || cmd->data & 7 ||
	    cmd->data_len > DRACO_ADM_DATA_MAX ||
	    cmd->data > UINT64_MAX - cmd->data_len)
		return DRACO_SC_BAD_FIELD;
	if (admin_by_cid(p, cmd->cid))
		return DRACO_SC_BAD_FIELD;
	if (op->manager && !p->manager)
		return DRACO_SC_DENIED;
	return DRACO_SC_OK;
}

static bool hangs(struct port *p, struct admin_cmd *c)
{
	return c->cmd.opcode != DRACO_ADM_ABORT &&
	       fault_hit(&p->faults, DRACO_FAULT_ADMIN_HANG, c->cmd.opcode);
}

static void execute(struct port *p, struct admin_cmd *c)
{
	struct admin *a = &p->admin;
	unsigned int status;

	c->result = c->result2 = 0;
	c->id = 0;
	set_serial(a, c, ++a->serials);
	status = check(p, c);
	c->used = true;
	if (hangs(p, c))
		status = admin_wait(c, WAIT_ABORT, NULL);
	else if (status == DRACO_SC_OK)
		status = ops[c->cmd.opcode].fn(p, c);
	c->status = status;
	list_push(status == ADMIN_PENDING ? &a->pending : &a->done, c);
}

static bool submissions(struct admin *a)
{
	return a->free.head && a->sq_head != atomic_load(&a->sq_tail);
}

/* Fetch and execute some, as long as commands are free. */
static bool take_submissions(struct port *p)
{
	struct admin *a = &p->admin;

	for (unsigned int n = 0; n < TURN_CMDS && submissions(a); n++) {
		struct admin_cmd *c = a->free.head;

		if (mem_read(p, a->sq + a->sq_head * sizeof(c->cmd), &c->cmd,
			     sizeof(c->cmd)))
			return false;
		list_pop(&a->free);
		a->sq_head = (a->sq_head + 1) & (a->size - 1);
		execute(p, c);
	}
	return true;
}

/* ---- Completions ---- */

static bool post(struct port *p, struct admin_cmd *c)
{
	struct admin *a = &p->admin;
	struct draco_acpl cpl = {
		.result = c->result, .result2 = c->result2, .id = c->id,
		.sq_head = a->sq_head, .cid = c->cmd.cid, .status = c->status,
		.flags = a->phase,
	};
	struct mem m;
	uint64_t last;

	if (mem_get(p, a->cq + a->cq_tail * sizeof(cpl), sizeof(cpl),
		    DMA_PROT_WRITE, &m))
		return false;
	if (m.hold.len < sizeof(cpl)) {
		mem_put(&m);
		return false;
	}
	memcpy(m.hold.ptr, &cpl, 24);
	memcpy(&last, (char *)&cpl + 24, 8);
	atomic_store_explicit((_Atomic uint64_t *)((char *)m.hold.ptr + 24),
			      last, memory_order_release);
	if (mem_put(&m))
		return false;
	a->cq_tail = (a->cq_tail + 1) & (a->size - 1);
	if (!a->cq_tail)
		a->phase = !a->phase;
	return true;
}

static bool cq_full(struct admin *a)
{
	return ((a->cq_tail + 1) & (a->size - 1)) == atomic_load(&a->cq_head);
}

static bool post_done(struct port *p, bool *posted)
{
	struct admin *a = &p->admin;

	while (a->done.head && !cq_full(a)) {
		struct admin_cmd *c = a->done.head;

		if (!post(p, c))
			return false;
		list_pop(&a->done);
		set_serial(a, c, 0);
		c->used = false;
		list_push(&a->free, c);
		*posted = true;
	}
	return true;
}

bool admin_run(struct port *p, bool *more)
{
	bool posted = false, alive;

	look_at_pending(p);
	alive = take_submissions(p);
	/* Some may be complete by now: new GET_EVENTS, ended by others. */
	if (alive)
		look_at_pending(p);
	alive = alive && post_done(p, &posted);
	*more = alive && submissions(&p->admin);
	if (posted && alive)
		port_raise(p, 0);
	return alive;
}
