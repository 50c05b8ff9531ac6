// SPDX-License-Identifier: GPL-2.0-only
/*
 * A driver in miniature for tests of the device model. The functions and slots
 * below it are in fakes.c.
 */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "binding.h"
#include "fakes.h"
#include "function.h"
#include "loop.h"

struct fabric rig_fabric;
struct rig_guest rig_guest[RIG_HOSTS];
static struct topology *topo;
static pthread_t loop_thread;

const char rig_topology[] =
	"fabric = \"rig\";\n"
	"switches = ( { name = \"s1\"; ports = 8; },"
	"             { name = \"s2\"; ports = 6; } );\n"
	"isls = ( { a = \"s1:7\"; b = \"s2:5\"; },"
	"         { a = \"s1:8\"; b = \"s2:6\"; } );\n"
	"hosts = ( { name = \"a\"; manager = true; ports = ( \"s1:1\" ); slots = 3; },\n"
	"          { name = \"b\"; manager = true; ports = ( \"s1:2\" ); },\n"
	"          { name = \"c\"; manager = true; ports = ( \"s2:1\" ); },\n"
	"          { name = \"d\"; ports = ( \"s2:2\" ); } );\n"
	"appliances = ( { name = \"box\"; kind = \"cascade\";"
	"  uplinks = ( \"s1:5\", \"s1:6\" );"
	"  endpoints = ( { class = \"gpu\"; count = 6; } ); } );\n"
	"limits = { queues = 32; mrs = 64; window_slots = 8;"
	" window_slot_size = \"64K\"; };\n";

static void die(const char *what)
{
	fprintf(stderr, "rig: %s\n", what);
	abort();
}

static void *run_loop(void *arg)
{
	loop_run();
	return arg;
}

static void make_guest(struct rig_guest *g, struct port *p)
{
	memset(g, 0, sizeof(*g));
	g->port = p;
	g->mem = aligned_alloc(1 << 16, RIG_MEM);
	if (!g->mem)
		die("no memory");
	memset(g->mem, 0, RIG_MEM);
	p->fn = fake_function_create(g->mem, RIG_MEM);
	p->slots = fake_slots_create(p, TOPO_FIRST_SLOT,
				     topo->hosts[p->host].slots);
}

void rig_start(const char *text, unsigned int threads, const char *state)
{
	char err[512];

	if (loop_init())
		die("no loop");
	topo = topology_parse(text ? text : rig_topology, "rig.topo", err,
			      sizeof(err));
	if (!topo)
		die(err);
	if (fabric_init(&rig_fabric, topo) ||
	    binding_init(&rig_fabric, state) || binding_load(&rig_fabric))
		die("no fabric");
	for (unsigned int i = 0; i < rig_fabric.nports && i < RIG_HOSTS; i++)
		make_guest(&rig_guest[i], rig_fabric.ports[i]);
	if (engine_start(&rig_fabric.engine, threads))
		die("no engine");
	pthread_create(&loop_thread, NULL, run_loop, NULL);
}

static void quit_loop(void *arg)
{
	(void)arg;
	loop_quit();
}

void rig_stop(void)
{
	for (unsigned int i = 0; i < RIG_HOSTS && rig_guest[i].port; i++)
		port_function_ops.reset(rig_guest[i].port, FUNCTION_RESET_LOST);
	rig_settle();
	engine_stop(&rig_fabric.engine);
	loop_defer(quit_loop, NULL);
	pthread_join(loop_thread, NULL);
	binding_exit(&rig_fabric);
	for (unsigned int i = 0; i < RIG_HOSTS && rig_guest[i].port; i++) {
		fake_slots_destroy(rig_guest[i].port->slots);
		fake_function_destroy(rig_guest[i].port->fn);
		free(rig_guest[i].mem);
		rig_guest[i].port = NULL;
	}
	fabric_free(&rig_fabric);
	topology_free(topo);
	loop_free();
}

uint64_t rig_raised(struct rig_guest *g, unsigned int vector)
{
	return fake_function_raised(g->port->fn, vector);
}

static uint64_t now_ms(void)
{
	return engine_now_ns() / 1000000;
}

static void nap(void)
{
	struct timespec ts = { 0, 20000 };

	nanosleep(&ts, NULL);
}

/* ---- Registers ---- */

uint32_t rig_read(struct rig_guest *g, uint64_t offset)
{
	uint32_t v;

	port_function_ops.bar_read(g->port, 0, offset, &v, 4);
	return v;
}

void rig_write(struct rig_guest *g, uint64_t offset, uint32_t v)
{
	port_function_ops.bar_write(g->port, 0, offset, &v, 4);
}

bool rig_wait_status(struct rig_guest *g, uint32_t mask, uint32_t value)
{
	uint64_t end = now_ms() + RIG_HUNG;

	while ((rig_read(g, DRACO_REG_STATUS) & mask) != value) {
		if (now_ms() > end)
			return false;
		nap();
	}
	return true;
}

bool rig_enable(struct rig_guest *g)
{
	memset(g->mem + RIG_ADMIN_SQ, 0, RIG_ADMIN_SIZE * 64);
	memset(g->mem + RIG_ADMIN_CQ, 0, RIG_ADMIN_SIZE * 32);
	g->sq_tail = g->cq_head = 0;
	g->phase = true;
	g->nearly = 0;
	rig_write(g, DRACO_REG_ADMIN_SIZE, RIG_ADMIN_SIZE);
	rig_write(g, DRACO_REG_ADMIN_SQ, RIG_ADMIN_SQ);
	rig_write(g, DRACO_REG_ADMIN_SQ + 4, 0);
	rig_write(g, DRACO_REG_ADMIN_CQ, RIG_ADMIN_CQ);
	rig_write(g, DRACO_REG_ADMIN_CQ + 4, 0);
	rig_write(g, DRACO_REG_CTRL, DRACO_CTRL_ENABLE);
	return rig_wait_status(g, DRACO_STATUS_READY | DRACO_STATUS_FATAL,
			       DRACO_STATUS_READY);
}

bool rig_disable(struct rig_guest *g)
{
	rig_write(g, DRACO_REG_CTRL, 0);
	return rig_wait_status(g, DRACO_STATUS_READY | DRACO_STATUS_FATAL, 0);
}

/* ---- Admin queue ---- */

void *rig_data(struct rig_guest *g)
{
	return g->mem + RIG_DATA;
}

struct draco_acmd rig_cmd(unsigned int opcode, uint32_t id, uint32_t len)
{
	struct draco_acmd c = {
		.opcode = opcode, .id = id, .data = len ? RIG_DATA : 0,
		.data_len = len,
	};

	return c;
}

uint16_t rig_post(struct rig_guest *g, struct draco_acmd *cmd)
{
	if (!cmd->cid)
		cmd->cid = ++g->next_cid | 0x4000;
	memcpy(g->mem + RIG_ADMIN_SQ + g->sq_tail * sizeof(*cmd), cmd,
	       sizeof(*cmd));
	g->sq_tail = (g->sq_tail + 1) % RIG_ADMIN_SIZE;
	rig_write(g, DRACO_REG_ADMIN_SQ_TAIL, g->sq_tail);
	return cmd->cid;
}

static bool next_completion(struct rig_guest *g, struct draco_acpl *out)
{
	unsigned char *at = g->mem + RIG_ADMIN_CQ + g->cq_head * 32;
	uint64_t last = atomic_load((_Atomic uint64_t *)(at + 24));

	if ((last >> 48 & 1) != g->phase)
		return false;
	memcpy(out, at, 24);
	memcpy((char *)out + 24, &last, 8);
	g->cq_head = (g->cq_head + 1) % RIG_ADMIN_SIZE;
	if (!g->cq_head)
		g->phase = !g->phase;
	rig_write(g, DRACO_REG_ADMIN_CQ_HEAD, g->cq_head);
	return true;
}

static bool take_early(struct rig_guest *g, uint16_t cid,
		       struct draco_acpl *out)
{
	for (unsigned int i = 0; i < g->nearly; i++) {
		if (g->early[i].cid != cid)
			continue;
		*out = g->early[i];
		g->early[i] = g->early[--g->nearly];
		return true;
	}
	return false;
}

bool rig_wait(struct rig_guest *g, uint16_t cid, struct draco_acpl *out,
	      unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	struct draco_acpl c;

	if (take_early(g, cid, out))
		return true;
	for (;;) {
		while (next_completion(g, &c)) {
			if (c.cid == cid) {
				*out = c;
				return true;
			}
			if (g->nearly < 64)
				g->early[g->nearly++] = c;
		}
		if (now_ms() > end)
			return false;
		nap();
	}
}

unsigned int rig_admin(struct rig_guest *g, struct draco_acmd cmd,
		       struct draco_acpl *out)
{
	struct draco_acpl c;
	uint16_t cid = rig_post(g, &cmd);

	if (!rig_wait(g, cid, &c, RIG_HUNG))
		return 0xffff;
	if (out)
		*out = c;
	return c.status;
}

uint16_t rig_begin(struct rig_guest *g, struct draco_acmd *cmd)
{
	uint16_t cid = rig_post(g, cmd);

	/* Fetched in order: what answers at once comes after it. */
	rig_admin(g, rig_cmd(DRACO_ADM_GET_REQUESTS, 0, 64 * 64), NULL);
	rig_settle();
	return cid;
}

/* ---- Regions and queues ---- */

uint64_t rig_mr(struct rig_guest *g, uint64_t addr, uint64_t len,
		uint32_t access, uint32_t pd, uint32_t *index)
{
	struct draco_mr_create *c = rig_data(g);
	struct draco_acpl cpl;
	struct draco_acmd cmd;
	uint64_t *pages, key;
	uint32_t npages = (addr % 4096 + len + 4095) / 4096;

	memset(c, 0, sizeof(*c));
	c->pd = pd;
	c->access = access;
	c->length = len;
	c->first = addr % 4096;
	c->page_shift = 12;
	c->npages = npages;
	memset(c->peers, 0xff, sizeof(c->peers));
	if (rig_admin(g, rig_cmd(DRACO_ADM_MR_CREATE, 0, sizeof(*c)), &cpl))
		die("MR_CREATE refused");
	key = cpl.result;
	if (index)
		*index = cpl.id;
	pages = rig_data(g);
	for (uint32_t i = 0; i < npages; i++)
		pages[i] = addr / 4096 * 4096 + i * 4096ull;
	cmd = rig_cmd(DRACO_ADM_MR_PAGES, cpl.id, npages * 8);
	if (rig_admin(g, cmd, NULL))
		die("MR_PAGES refused");
	return key;
}

void rig_queue_init(struct rig_queue *q, struct rig_guest *g, uint32_t pd)
{
	memset(q, 0, sizeof(*q));
	q->g = g;
	q->pd = pd;
	q->sq_entries = 64;
	q->rq_entries = 16;
	q->cq_entries = 128;
	q->cell = 256;
	q->vector = 1 + g->nqueues;
	q->base = RIG_QUEUES + (g->nqueues++ % 7) * 0x100000ull;
	q->sq = q->base + 0x10000;
	q->cq = q->base + 0x40000;
	q->rq = q->base + 0x80000;
}

unsigned int rig_queue_create(struct rig_queue *q)
{
	struct draco_queue_create *c = rig_data(q->g);
	struct draco_acpl cpl;
	unsigned int status;

	memset(q->g->mem + q->base, 0, 0x100000);
	atomic_store(rig_ctrl(q, offsetof(struct fabrex_qctrl, db_needed)), 1);
	memset(c, 0, sizeof(*c));
	c->pd = q->pd;
	c->sq_entries = q->sq_entries;
	c->cq_entries = q->cq_entries;
	c->rq_entries = q->rq_entries;
	c->cell_size = q->cell;
	c->vector = q->vector;
	c->service = q->service;
	c->serial = q->serial;
	c->ctrl = q->base;
	c->sq = q->sq;
	c->cq = q->cq;
	c->rq = q->rq_entries ? q->rq : 0;
	status = rig_admin(q->g,
			   rig_cmd(DRACO_ADM_QUEUE_CREATE, 0, sizeof(*c)),
			   &cpl);
	q->number = cpl.id;
	q->key = cpl.result;
	q->sq_tail = q->cq_head = q->rq_head = 0;
	return status;
}

unsigned int rig_queue_destroy(struct rig_queue *q)
{
	return rig_admin(q->g, rig_cmd(DRACO_ADM_QUEUE_DESTROY, q->number, 0),
			 NULL);
}

_Atomic uint32_t *rig_ctrl(struct rig_queue *q, size_t offset)
{
	return (_Atomic uint32_t *)(q->g->mem + q->base + offset);
}

void rig_push(struct rig_queue *q, const struct fabrex_sqe *sqe)
{
	memcpy(q->g->mem + q->sq + (q->sq_tail % q->sq_entries) * 64, sqe, 64);
	q->sq_tail++;
}

void rig_ring(struct rig_queue *q)
{
	uint32_t v = q->sq_tail;

	atomic_store(rig_ctrl(q, offsetof(struct fabrex_qctrl, sq_tail)), v);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(rig_ctrl(q, offsetof(struct fabrex_qctrl, db_needed))))
		port_function_ops.bar_write(q->g->port, DRACO_BAR_DOORBELL,
					    q->number * 4096ull, &v, 4);
}

static bool next_cqe(struct rig_queue *q, struct fabrex_cqe *cqe)
{
	unsigned char *at = q->g->mem + q->cq +
			    (q->cq_head % q->cq_entries) * 32;
	uint64_t last = atomic_load((_Atomic uint64_t *)(at + 24));
	bool phase = !(q->cq_head & q->cq_entries);

	if ((last >> 48 & 1) != phase)
		return false;
	memcpy(cqe, at, 24);
	memcpy((char *)cqe + 24, &last, 8);
	q->cq_head++;
	atomic_store(rig_ctrl(q, offsetof(struct fabrex_qctrl, cq_head)),
		     q->cq_head);
	return true;
}

bool rig_poll(struct rig_queue *q, struct fabrex_cqe *cqe, unsigned int ms)
{
	uint64_t end = now_ms() + ms;

	while (!next_cqe(q, cqe)) {
		if (now_ms() > end)
			return false;
		nap();
	}
	return true;
}

int rig_do(struct rig_queue *q, const struct fabrex_sqe *sqe,
	   struct fabrex_cqe *cqe)
{
	struct fabrex_cqe local;

	rig_push(q, sqe);
	rig_ring(q);
	if (!rig_poll(q, cqe ? cqe : &local, RIG_HUNG))
		return -1;
	return cqe ? cqe->status : local.status;
}
