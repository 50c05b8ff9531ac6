// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers and admin commands: enable, disable, fatal errors, every command
 * and refusal, commands in flight, garbage.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig/pair.h"
#include "tap.h"

static unsigned int adm(struct rig_guest *g, unsigned int op, uint32_t id,
			uint64_t arg0)
{
	struct draco_acmd c = rig_cmd(op, id, 0);

	c.arg[0] = arg0;
	return rig_admin(g, c, NULL);
}

static void test_registers(void)
{
	uint64_t v;

	rig_start(NULL, 2, NULL);
	CHECK_EQ(rig_read(A, DRACO_REG_MAGIC), DRACO_MAGIC);
	CHECK_EQ(rig_read(A, DRACO_REG_VERSION), DRACO_VERSION);
	CHECK_EQ(rig_read(A, DRACO_REG_STATUS), DRACO_STATUS_LINK);
	CHECK(rig_read(A, DRACO_REG_CAP) != 0);
	CHECK_EQ(rig_read(A, DRACO_REG_PORT_ID), A->port->link->id);
	CHECK_EQ(rig_read(A, 0x2000), 0);
	port_function_ops.bar_read(A->port, 0, 0, &v, 8);
	CHECK_EQ(v, (uint64_t)DRACO_VERSION << 32 | DRACO_MAGIC);
	v = 0;
	port_function_ops.bar_read(A->port, 0, 0, &v, 2);
	CHECK_EQ(v, 0xffff);
	v = 0;
	port_function_ops.bar_read(A->port, 0, 2, &v, 4);
	CHECK_EQ(v, 0xffffffff);
	rig_write(A, DRACO_REG_MAGIC, 5);
	CHECK_EQ(rig_read(A, DRACO_REG_MAGIC), DRACO_MAGIC);
	rig_write(A, DRACO_REG_ADMIN_SQ, 0x5000);
	CHECK_EQ(rig_read(A, DRACO_REG_ADMIN_SQ), 0);
	rig_write(A, DRACO_REG_ADMIN_SQ + 4, 1);
	CHECK_EQ(rig_read(A, DRACO_REG_ADMIN_SQ), 0x5000);
	/* Doorbells before READY do nothing. */
	rig_write(A, DRACO_REG_ADMIN_SQ_TAIL, 1000);
	CHECK_EQ(rig_read(A, DRACO_REG_ERROR), 0);
	END();
}

static void test_enable_and_disable(void)
{
	rig_start(NULL, 2, NULL);
	for (unsigned int i = 1; i < 20; i++) {
		CHECK(rig_enable(A));
		CHECK_EQ(rig_read(A, DRACO_REG_GENERATION), i);
		rig_write(A, DRACO_REG_ADMIN_SIZE, 4);
		CHECK_EQ(rig_read(A, DRACO_REG_ADMIN_SIZE), RIG_ADMIN_SIZE);
		CHECK_EQ(adm(A, 0x7f, 0, 0), DRACO_SC_BAD_OPCODE);
		CHECK(rig_disable(A));
	}
	/* Faster than the device follows: the last word counts. */
	for (unsigned int i = 0; i < 50; i++) {
		rig_write(A, DRACO_REG_CTRL, 1);
		rig_write(A, DRACO_REG_CTRL, 0);
	}
	CHECK(rig_wait_status(A, DRACO_STATUS_READY, 0));
	CHECK(rig_enable(A));
	port_function_ops.reset(A->port, FUNCTION_RESET_FLR);
	CHECK_EQ(rig_read(A, DRACO_REG_STATUS), DRACO_STATUS_LINK);
	CHECK_EQ(rig_read(A, DRACO_REG_CTRL), 0);
	CHECK_EQ(rig_read(A, DRACO_REG_ADMIN_SIZE), 0);
	END();
}

static bool fatal(uint32_t size, uint64_t sq, uint64_t cq, uint32_t error)
{
	rig_write(A, DRACO_REG_CTRL, 0);
	if (!rig_wait_status(A, DRACO_STATUS_READY | DRACO_STATUS_FATAL, 0))
		return false;
	rig_write(A, DRACO_REG_ADMIN_SIZE, size);
	rig_write(A, DRACO_REG_ADMIN_SQ, (uint32_t)sq);
	rig_write(A, DRACO_REG_ADMIN_SQ + 4, sq >> 32);
	rig_write(A, DRACO_REG_ADMIN_CQ, (uint32_t)cq);
	rig_write(A, DRACO_REG_ADMIN_CQ + 4, cq >> 32);
	rig_write(A, DRACO_REG_CTRL, 1);
	return rig_wait_status(A, DRACO_STATUS_READY | DRACO_STATUS_FATAL,
			       DRACO_STATUS_FATAL) &&
	       rig_read(A, DRACO_REG_ERROR) == error;
}

static void test_fatal_errors(void)
{
	rig_start(NULL, 2, NULL);
	CHECK(fatal(0, 0x1000, 0x3000, DRACO_FATAL_ADMIN_RING));
	CHECK(fatal(2, 0x1000, 0x3000, DRACO_FATAL_ADMIN_RING));
	CHECK(fatal(63, 0x1000, 0x3000, DRACO_FATAL_ADMIN_RING));
	CHECK(fatal(1 << 20, 0x1000, 0x3000, DRACO_FATAL_ADMIN_RING));
	CHECK(fatal(64, 0x1008, 0x3000, DRACO_FATAL_ADMIN_RING));
	CHECK(fatal(64, RIG_MEM, 0x3000, DRACO_FATAL_ADMIN_RING));
	CHECK(fatal(64, 0x1000, ~0xfffull, DRACO_FATAL_ADMIN_RING));
	CHECK(rig_disable(A));
	CHECK_EQ(rig_read(A, DRACO_REG_ERROR), 0);
	CHECK(rig_enable(A));
	rig_write(A, DRACO_REG_ADMIN_CQ_HEAD, RIG_ADMIN_SIZE);
	CHECK(rig_wait_status(A, DRACO_STATUS_READY | DRACO_STATUS_FATAL,
			      DRACO_STATUS_FATAL));
	CHECK_EQ(rig_read(A, DRACO_REG_ERROR), DRACO_FATAL_ADMIN_INDEX);
	CHECK(rig_disable(A));
	CHECK(rig_enable(A));
	END();
}

static void test_identify(void)
{
	struct draco_identify *id;

	BEGIN();
	id = rig_data(A);
	memset(id, 0xee, sizeof(*id) + 8);
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_IDENTIFY, 0, 4096), NULL), 0);
	CHECK(!strcmp(id->name, "a.0"));
	CHECK(!strcmp(id->host, "a"));
	CHECK(!strcmp(id->fabric, "rig"));
	CHECK_EQ(id->port_id, A->port->link->id);
	CHECK_EQ(id->peer, 0);
	CHECK_EQ(id->max_queues, 32);
	CHECK_EQ(id->max_mrs, 64);
	CHECK_EQ(id->max_windows, 8);
	CHECK_EQ(id->generation, 1);
	CHECK_EQ(id->flags, DRACO_IDF_MANAGER | DRACO_IDF_EMULATED |
			    DRACO_IDF_LINKS | DRACO_IDF_MESH);
	CHECK_EQ(id->objects[0], rig_fabric.nobjects);
	CHECK_EQ(id->objects[DRACO_OBJ_ENDPOINT], 6);
	CHECK_EQ(((unsigned char *)(id + 1))[0], 0xee);
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_IDENTIFY, 0, 0), NULL),
		 DRACO_SC_BAD_FIELD);
	END();
}

static void test_objects(void)
{
	struct draco_object *o;
	struct draco_acmd c;
	struct draco_acpl cpl;
	unsigned int n = 0;

	BEGIN();
	o = rig_data(A);
	c = rig_cmd(DRACO_ADM_GET_OBJECTS, 0, 3 * 128 + 5);
	do {
		CHECK_EQ(rig_admin(A, c, &cpl), 0);
		CHECK(cpl.result <= 3);
		for (unsigned int i = 0; i < cpl.result; i++)
			CHECK_EQ(o[i].id, ++n);
		c.arg[1] = cpl.id;
		c.cid = 0;
	} while (cpl.id);
	CHECK_EQ(n, rig_fabric.nobjects);
	c.arg[0] = DRACO_OBJ_ENDPOINT;
	c.arg[1] = 0;
	CHECK_EQ(rig_admin(A, c, &cpl), 0);
	CHECK_EQ(o[0].type, DRACO_OBJ_ENDPOINT);
	CHECK(!strcmp(o[0].name, "box.gpu0"));
	CHECK_EQ(o[0].pci_device, DRACO_PCI_DEVICE_GPU);
	c.arg[1] = ~0ull;
	CHECK_EQ(rig_admin(A, c, &cpl), 0);
	CHECK_EQ(cpl.result, 0);
	CHECK_EQ(cpl.id, 0);
	c.arg[0] = 6;
	CHECK_EQ(rig_admin(A, c, &cpl), DRACO_SC_BAD_FIELD);
	c = rig_cmd(DRACO_ADM_GET_OBJECTS, 0, 127);
	CHECK_EQ(rig_admin(A, c, &cpl), DRACO_SC_BAD_FIELD);
	END();
}

static void test_bad_headers(void)
{
	struct draco_acmd c;

	BEGIN();
	for (unsigned int op = 0x32; op < 256; op++)
		CHECK_EQ(adm(A, op, 0, 0), DRACO_SC_BAD_OPCODE);
	CHECK_EQ(adm(A, 0, 0, 0), DRACO_SC_BAD_OPCODE);
	c = rig_cmd(DRACO_ADM_IDENTIFY, 0, 512);
	c.flags = 1;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_BAD_FIELD);
	c.flags = 0;
	c.__rsvd = 1;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_BAD_FIELD);
	c.__rsvd = 0;
	c.data += 4;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_BAD_FIELD);
	c.data = RIG_DATA;
	c.data_len = DRACO_ADM_DATA_MAX + 1;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_BAD_FIELD);
	c.data_len = 4096;
	c.data = ~7ull;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_BAD_FIELD);
	c.data = RIG_MEM;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_DMA_FAULT);
	c.data = RIG_MEM - 8;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_DMA_FAULT);
	END();
}

static void test_denied(void)
{
	struct rig_guest *d = &rig_guest[3];

	BEGIN();
	CHECK(rig_enable(d));
	CHECK_EQ(adm(d, DRACO_ADM_BIND, 1, 1), DRACO_SC_DENIED);
	CHECK_EQ(adm(d, DRACO_ADM_UNBIND, 1, 1), DRACO_SC_DENIED);
	CHECK_EQ(adm(d, DRACO_ADM_PORT_CONTROL, d->port->link->id,
		     DRACO_PORTC_DISABLE), DRACO_SC_DENIED);
	CHECK_EQ(adm(d, DRACO_ADM_RELEASE_REPLY, 1, 1), DRACO_SC_BAD_ID);
	END();
}

/* ---- In flight ---- */

static void test_events_and_abort(void)
{
	struct draco_acmd e, c;
	struct draco_acpl cpl;
	uint16_t cid, second;

	BEGIN();
	e = rig_cmd(DRACO_ADM_GET_EVENTS, 0, 64 * 100);
	rig_admin(A, e, NULL);
	e.cid = 0;
	cid = rig_post(A, &e);
	e.cid = 0;
	second = rig_post(A, &e);
	CHECK(!rig_wait(A, cid, &cpl, 30));
	/* Others go on meanwhile. */
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_IDENTIFY, 0, 512), NULL), 0);
	/* The same cid twice. */
	c = rig_cmd(DRACO_ADM_IDENTIFY, 0, 512);
	c.cid = cid;
	rig_post(A, &c);
	CHECK(rig_wait(A, cid, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, DRACO_SC_BAD_FIELD);
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_ABORT, cid, 0), &cpl), 0);
	CHECK_EQ(cpl.result, 1);
	CHECK(rig_wait(A, cid, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, DRACO_SC_ABORTED);
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_ABORT, cid, 0), &cpl), 0);
	CHECK_EQ(cpl.result, 0);
	CHECK(rig_disable(C));
	CHECK(rig_wait(A, second, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, 0);
	CHECK(cpl.result >= 1);
	CHECK_EQ(((struct draco_event *)rig_data(A))->type,
		 DRACO_EV_PEER_DOWN);
	END();
}

static void test_lost_events(void)
{
	struct draco_acpl cpl;

	BEGIN();
	for (unsigned int i = 0; i < 300; i++)
		fabric_link_break(&rig_fabric, C->port->link, i % 2 == 0);
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_GET_EVENTS, 0, 64 * 1024),
			   &cpl), 0);
	CHECK_EQ(cpl.result, EVENT_QUEUE_LEN);
	CHECK(cpl.result2 > 300);
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_GET_LOG, 0, 64 * 2048), &cpl),
		 0);
	CHECK(cpl.result > 600 && cpl.result <= EVENT_LOG_LEN);
	END();
}

static void test_full_completion_ring(void)
{
	unsigned int seen = 0;
	struct draco_acpl cpl;
	struct draco_acmd c;

	BEGIN();
	/* Nobody takes completions while more than fit are asked for. */
	for (unsigned int i = 0; i < 60; i++) {
		c = rig_cmd(DRACO_ADM_IDENTIFY, 0, 512);
		c.cid = 0x100 + i;
		rig_post(A, &c);
	}
	usleep(50000);
	for (unsigned int i = 0; i < 3; i++) {
		c = rig_cmd(DRACO_ADM_IDENTIFY, 0, 512);
		c.cid = 0x200 + i;
		rig_post(A, &c);
		usleep(10000);
	}
	for (unsigned int i = 0; i < 60; i++)
		seen += rig_wait(A, 0x100 + i, &cpl, RIG_HUNG);
	for (unsigned int i = 0; i < 3; i++)
		seen += rig_wait(A, 0x200 + i, &cpl, RIG_HUNG);
	CHECK_EQ(seen, 63);
	END();
}

static void test_hung_command(void)
{
	struct draco_acpl cpl;
	struct draco_acmd c;
	uint16_t cid;

	BEGIN();
	fault_arm(&A->port->faults, DRACO_FAULT_ADMIN_HANG, FAULT_ANY_QUEUE, 1);
	c = rig_cmd(DRACO_ADM_IDENTIFY, 0, 512);
	cid = rig_post(A, &c);
	CHECK(!rig_wait(A, cid, &cpl, 50));
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_ABORT, cid, 0), &cpl), 0);
	CHECK(rig_wait(A, cid, &cpl, RIG_HUNG));
	CHECK_EQ(cpl.status, DRACO_SC_ABORTED);
	END();
}

/* Deaf to its driver: what helps is a function level reset. */
static void test_stuck_stop(void)
{
	BEGIN();
	fault_arm(&A->port->faults, DRACO_FAULT_STUCK_STOP, FAULT_ANY_QUEUE, 2);
	for (unsigned int i = 0; i < 2; i++) {
		rig_write(A, DRACO_REG_CTRL, 0);
		CHECK_EQ(rig_read(A, DRACO_REG_CTRL), DRACO_CTRL_ENABLE);
		CHECK_EQ(adm(A, 0x7f, 0, 0), DRACO_SC_BAD_OPCODE);
	}
	CHECK(rig_disable(A));
	CHECK(rig_enable(A));
	fault_arm(&A->port->faults, DRACO_FAULT_STUCK_STOP, FAULT_ANY_QUEUE, 9);
	rig_write(A, DRACO_REG_CTRL, 0);
	CHECK_EQ(adm(A, 0x7f, 0, 0), DRACO_SC_BAD_OPCODE);
	port_function_ops.reset(A->port, FUNCTION_RESET_FLR);
	CHECK_EQ(rig_read(A, DRACO_REG_STATUS), DRACO_STATUS_LINK);
	CHECK(rig_enable(A));
	CHECK(rig_disable(A));
	END();
}

/* ---- Regions, queues, counters ---- */

static unsigned int create_mr(struct draco_mr_create m)
{
	memcpy(rig_data(A), &m, sizeof(m));
	return rig_admin(A, rig_cmd(DRACO_ADM_MR_CREATE, 0, sizeof(m)), NULL);
}

#define MR_BAD(field, value) do {					\
	struct draco_mr_create m = good;				\
									\
	m.field = value;						\
	CHECK_EQ(create_mr(m), DRACO_SC_BAD_FIELD);			\
} while (0)

static void test_mr_fields(void)
{
	const struct draco_mr_create good = {
		.pd = 1, .access = RIG_ALL, .length = 8192, .first = 100,
		.page_shift = 12, .npages = 3,
	};

	BEGIN();
	CHECK_EQ(create_mr(good), 0);
	MR_BAD(access, 0x10);
	MR_BAD(access, ~0u);
	MR_BAD(length, 0);
	MR_BAD(length, ~0ull);
	MR_BAD(length, 3 * 4096);
	MR_BAD(first, 4096);
	MR_BAD(first, ~0ull);
	MR_BAD(page_shift, 11);
	MR_BAD(page_shift, 31);
	MR_BAD(page_shift, 64);
	MR_BAD(page_shift, ~0u);
	MR_BAD(__rsvd, 1);
	MR_BAD(npages, 0);
	MR_BAD(npages, 2);
	MR_BAD(npages, 4);
	MR_BAD(npages, ~0ull);
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_MR_CREATE, 0, 71), NULL),
		 DRACO_SC_BAD_FIELD);
	END();
}

static unsigned int pages(uint32_t id, uint64_t first, uint64_t page,
			  unsigned int n)
{
	struct draco_acmd c = rig_cmd(DRACO_ADM_MR_PAGES, id, n * 8);
	uint64_t *p = rig_data(A);

	for (unsigned int i = 0; i < n; i++)
		p[i] = page + i * 4096;
	c.arg[0] = first;
	return rig_admin(A, c, NULL);
}

static void test_mr_pages(void)
{
	struct draco_mr_create m = {
		.access = RIG_ALL, .length = 4 * 4096, .page_shift = 12,
		.npages = 4,
	};
	struct draco_acpl cpl;
	uint32_t id;

	BEGIN();
	memcpy(rig_data(A), &m, sizeof(m));
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_MR_CREATE, 0, sizeof(m)),
			   &cpl), 0);
	id = cpl.id;
	CHECK_EQ(cpl.result & key_index_mask(A->port->mrs.max), id);
	CHECK_EQ(pages(63, 0, SRC, 1), DRACO_SC_BAD_ID);
	CHECK_EQ(pages(~0u, 0, SRC, 1), DRACO_SC_BAD_ID);
	CHECK_EQ(pages(id, 4, SRC, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(pages(id, 0, SRC, 5), DRACO_SC_BAD_FIELD);
	CHECK_EQ(pages(id, ~0ull, SRC, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(pages(id, 0, SRC + 8, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(pages(id, 2, SRC, 2), DRACO_SC_OK);
	/* Given already; nothing of it counts. */
	CHECK_EQ(pages(id, 1, SRC, 2), DRACO_SC_BAD_FIELD);
	CHECK_EQ(pages(id, 1, SRC, 1), DRACO_SC_OK);
	CHECK_EQ(pages(id, 0, SRC, 1), DRACO_SC_OK);
	CHECK_EQ(pages(id, 0, SRC, 1), DRACO_SC_BUSY);
	CHECK_EQ(adm(A, DRACO_ADM_MR_INVALIDATE, id, 0), DRACO_SC_OK);
	CHECK_EQ(pages(id, 0, SRC, 4), DRACO_SC_OK);
	CHECK_EQ(adm(A, DRACO_ADM_MR_DESTROY, id, 0), DRACO_SC_OK);
	CHECK_EQ(adm(A, DRACO_ADM_MR_DESTROY, id, 0), DRACO_SC_BAD_ID);
	CHECK_EQ(adm(A, DRACO_ADM_MR_INVALIDATE, id, 0), DRACO_SC_BAD_ID);
	END();
}

static unsigned int big_pages(uint32_t id, uint64_t first, uint64_t page,
			      uint64_t shift)
{
	struct draco_acmd c = rig_cmd(DRACO_ADM_MR_PAGES, id, 8);

	*(uint64_t *)rig_data(A) = page;
	c.arg[0] = first;
	c.arg[1] = shift;
	return rig_admin(A, c, NULL);
}

/* What has moved may be cut into pages of another size. */
static void test_mr_page_size(void)
{
	struct draco_mr_create m = {
		.access = RIG_ALL, .length = 4 * 4096 - 200, .first = 100,
		.page_shift = 14, .npages = 1,
	};
	struct draco_acpl cpl;
	uint32_t id;

	BEGIN();
	memcpy(rig_data(A), &m, sizeof(m));
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_MR_CREATE, 0, sizeof(m)),
			   &cpl), 0);
	id = cpl.id;
	CHECK_EQ(big_pages(id, 0, 1 << 14, 14), DRACO_SC_OK);
	CHECK_EQ(big_pages(id, 0, 1 << 14, 12), DRACO_SC_BUSY);
	CHECK_EQ(adm(A, DRACO_ADM_MR_INVALIDATE, id, 0), DRACO_SC_OK);
	CHECK_EQ(big_pages(id, 0, SRC, 11), DRACO_SC_BAD_FIELD);
	CHECK_EQ(big_pages(id, 0, SRC, 31), DRACO_SC_BAD_FIELD);
	CHECK_EQ(big_pages(id, 0, SRC, ~0ull), DRACO_SC_BAD_FIELD);
	CHECK_EQ(big_pages(id, 0, SRC, 12), DRACO_SC_OK);
	CHECK_EQ(big_pages(id, 1, 1 << 13, 13), DRACO_SC_BAD_FIELD);
	CHECK_EQ(big_pages(id, 4, SRC, 12), DRACO_SC_BAD_FIELD);
	CHECK_EQ(pages(id, 1, SRC, 3), DRACO_SC_OK);
	CHECK_EQ(pages(id, 0, SRC, 1), DRACO_SC_BUSY);
	CHECK_EQ(adm(A, DRACO_ADM_MR_INVALIDATE, id, 0), DRACO_SC_OK);
	CHECK_EQ(big_pages(id, 0, 1 << 30, 30), DRACO_SC_OK);
	CHECK_EQ(adm(A, DRACO_ADM_MR_DESTROY, id, 0), DRACO_SC_OK);
	END();
}

/* The pages that it takes then are limited as those of a new one. */
static void test_mr_page_budget(void)
{
	struct draco_mr_create m = {
		.access = RIG_ALL, .length = 1ull << 31, .page_shift = 30,
		.npages = 2,
	};
	struct draco_acpl cpl;

	BEGIN();
	CHECK(rig_disable(A));
	CHECK(rig_enable(A));
	memcpy(rig_data(A), &m, sizeof(m));
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_MR_CREATE, 0, sizeof(m)),
			   &cpl), 0);
	m.length = (uint64_t)MR_MAX_PAGES << 12;
	m.npages = MR_MAX_PAGES;
	m.page_shift = 12;
	for (unsigned int i = 0; i < MR_ALL_PAGES / MR_MAX_PAGES - 1; i++)
		CHECK_EQ(create_mr(m), 0);
	m.length = (uint64_t)MR_MAX_PAGES << 11;
	m.npages = MR_MAX_PAGES / 2;
	CHECK_EQ(create_mr(m), 0);
	/* Half a million is what is left, less the two that it has. */
	CHECK_EQ(big_pages(cpl.id, 0, SRC, 12), DRACO_SC_OK);
	m.length = 1 << 12;
	m.npages = 1;
	CHECK_EQ(create_mr(m), DRACO_SC_NO_RESOURCE);
	CHECK_EQ(adm(A, DRACO_ADM_MR_INVALIDATE, cpl.id, 0), DRACO_SC_OK);
	CHECK_EQ(big_pages(cpl.id, 0, 1 << 30, 30), DRACO_SC_OK);
	CHECK_EQ(create_mr(m), 0);
	CHECK_EQ(adm(A, DRACO_ADM_MR_INVALIDATE, cpl.id, 0), DRACO_SC_OK);
	CHECK_EQ(big_pages(cpl.id, 0, SRC, 12), DRACO_SC_NO_RESOURCE);
	END();
}

static void test_mr_limits(void)
{
	struct draco_mr_create m = {
		.access = RIG_ALL, .length = 4096, .page_shift = 12,
		.npages = 1,
	};

	BEGIN();
	for (unsigned int i = 1; i < 64; i++)
		CHECK_EQ(create_mr(m), 0);
	CHECK_EQ(create_mr(m), DRACO_SC_NO_RESOURCE);
	CHECK_EQ(adm(A, DRACO_ADM_MR_DESTROY, 5, 0), DRACO_SC_OK);
	CHECK_EQ(create_mr(m), 0);
	CHECK(rig_disable(A));
	CHECK(rig_enable(A));
	/* Pages of all regions together are limited, too. */
	m.length = (uint64_t)MR_MAX_PAGES << 12;
	m.npages = MR_MAX_PAGES;
	for (unsigned int i = 0; i < MR_ALL_PAGES / MR_MAX_PAGES; i++)
		CHECK_EQ(create_mr(m), 0);
	CHECK_EQ(create_mr(m), DRACO_SC_NO_RESOURCE);
	END();
}

static unsigned int make_queue(uint32_t sq, uint32_t cq, uint32_t rq,
			       uint32_t cell, uint16_t vector)
{
	struct rig_queue q;

	rig_queue_init(&q, A, PD);
	q.sq_entries = sq;
	q.cq_entries = cq;
	q.rq_entries = rq;
	q.cell = cell;
	q.vector = vector;
	return rig_queue_create(&q);
}

static void test_queue_fields(void)
{
	BEGIN();
	CHECK_EQ(make_queue(8, 8, 0, 0, 0xffff), 0);
	CHECK_EQ(make_queue(7, 8, 0, 0, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(4, 8, 0, 0, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(1 << 15, 1 << 16, 0, 0, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(8, 4, 0, 0, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(8, 8, 8, 64, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(8, 1 << 17, 0, 0, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(8, 16, 8, 32, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(8, 16, 8, 8192, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(8, 16, 8, 0, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(8, 16, 0, 64, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(8, 16, 3, 64, 1), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(8, 8, 0, 0, 32), DRACO_SC_BAD_FIELD);
	CHECK_EQ(make_queue(1u << 31, 1u << 31, 1u << 31, 64, 1),
		 DRACO_SC_BAD_FIELD);
	END();
}

static void test_queue_limits_and_services(void)
{
	struct draco_acpl cpl;
	struct rig_queue q;
	struct draco_acmd c;
	uint64_t key;

	BEGIN();
	rig_queue_init(&q, B, PD);
	q.service = 99;
	CHECK_EQ(rig_queue_create(&q), 0);
	key = q.key;
	CHECK_EQ(rig_queue_create(&q), DRACO_SC_BOUND);
	q.service = 0;
	q.sq = RIG_MEM;
	CHECK_EQ(rig_queue_create(&q), DRACO_SC_DMA_FAULT);
	c = rig_cmd(DRACO_ADM_RESOLVE, 1, 0);
	c.arg[0] = 99;
	CHECK_EQ(rig_admin(A, c, &cpl), 0);
	CHECK_EQ(cpl.id, 1);
	CHECK(cpl.result == key && key >> 32);
	c.arg[0] = 98;
	CHECK_EQ(rig_admin(A, c, &cpl), DRACO_SC_BAD_ID);
	c.arg[0] = 0;
	CHECK_EQ(rig_admin(A, c, &cpl), DRACO_SC_BAD_ID);
	CHECK_EQ(adm(A, DRACO_ADM_RESOLVE, 3, 99), DRACO_SC_HOST_DOWN);
	CHECK_EQ(adm(A, DRACO_ADM_RESOLVE, 300, 99), DRACO_SC_BAD_ID);
	fabric_link_break(&rig_fabric, B->port->link, true);
	CHECK_EQ(adm(A, DRACO_ADM_RESOLVE, 1, 99), DRACO_SC_LINK_DOWN);
	for (unsigned int i = 1; i < 32; i++)
		CHECK_EQ(make_queue(8, 8, 0, 0, 1), 0);
	CHECK_EQ(make_queue(8, 8, 0, 0, 1), DRACO_SC_NO_RESOURCE);
	CHECK_EQ(adm(A, DRACO_ADM_QUEUE_DESTROY, 32, 0), DRACO_SC_BAD_ID);
	CHECK_EQ(adm(A, DRACO_ADM_QUEUE_DESTROY, 31, 0), DRACO_SC_OK);
	CHECK_EQ(adm(A, DRACO_ADM_QUEUE_DESTROY, 31, 0), DRACO_SC_BAD_ID);
	END();
}

/* Doorbells as far apart as the largest pages of hosts. */
static void test_doorbell_stride(void)
{
	static char text[8192];
	struct fabrex_sqe s = { .opcode = FABREX_OP_NOP };
	struct function_desc d;
	struct fabrex_cqe c;
	uint32_t one = 1;

	/* The limits come last. */
	snprintf(text, sizeof(text), "%.*s limits = { queues = 32; doorbell_stride = \"64K\"; };\n",
		 (int)(strstr(rig_topology, "limits") - rig_topology),
		 rig_topology);
	rig_start(text, 2, NULL);
	CHECK(rig_enable(A));
	CHECK_EQ(DRACO_CAP_DB_SHIFT((uint64_t)rig_read(A, DRACO_REG_CAP + 4)
				    << 32), 16);
	port_describe(A->port, &d);
	CHECK_EQ(d.bar[DRACO_BAR_DOORBELL].size, 32 * 65536);
	rig_queue_init(&qa, A, PD);
	CHECK_EQ(rig_queue_create(&qa), 0);
	rig_queue_init(&qa, A, PD);
	CHECK_EQ(rig_queue_create(&qa), 0);
	CHECK_EQ(qa.number, 1);
	rig_push(&qa, &s);
	atomic_store(rig_ctrl(&qa, 0), 1);
	port_function_ops.bar_write(A->port, DRACO_BAR_DOORBELL, 4096, &one,
				    4);
	CHECK(!rig_poll(&qa, &c, 50));
	port_function_ops.bar_write(A->port, DRACO_BAR_DOORBELL, 65536, &one,
				    4);
	CHECK(rig_poll(&qa, &c, 20000));
	END();
}

static void test_counters(void)
{
	struct draco_counters *out;
	struct fabrex_sqe s;
	struct draco_acmd c;

	BEGIN();
	out = rig_data(A);
	s = entry(FABREX_OP_WRITE);
	CHECK_EQ(rig_do(&qa, &s, NULL), 0);
	s.rkey = 0;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RKEY);
	c = rig_cmd(DRACO_ADM_GET_COUNTERS, qa.number, 128);
	c.arg[0] = DRACO_COUNTERS_QUEUE;
	CHECK_EQ(rig_admin(A, c, NULL), 0);
	CHECK_EQ(out->tx_ops, 2);
	CHECK_EQ(out->tx_bytes, 4096);
	CHECK_EQ(out->errors, 1);
	c = rig_cmd(DRACO_ADM_GET_COUNTERS, 0, 128);
	CHECK_EQ(rig_admin(A, c, NULL), 0);
	CHECK_EQ(out->tx_ops, 2);
	CHECK(out->interrupts > 0);
	c.id = B->port->link->id;
	CHECK_EQ(rig_admin(A, c, NULL), 0);
	CHECK_EQ(out->rx_bytes, 4096);
	CHECK_EQ(out->rx_ops, 2);
	c.id = fabric_ep_id(&rig_fabric, 0);
	CHECK_EQ(rig_admin(A, c, NULL), 0);
	c.id = 1;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_BAD_ID);
	c.id = ~0u;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_BAD_ID);
	c.arg[0] = 2;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_BAD_FIELD);
	END();
}

static void test_port_reset(void)
{
	struct fabrex_sqe s;

	BEGIN();
	CHECK_EQ(adm(A, DRACO_ADM_PORT_CONTROL, B->port->link->id,
		     DRACO_PORTC_RESET), 0);
	CHECK_EQ(rig_read(B, DRACO_REG_GENERATION), 2);
	CHECK(in_error(&qb, FABREX_QERR_RESET));
	s = entry(FABREX_OP_WRITE);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RKEY);
	CHECK_EQ(adm(B, 0x7f, 0, 0), DRACO_SC_BAD_OPCODE);
	/* A port may reset itself. */
	CHECK_EQ(adm(A, DRACO_ADM_PORT_CONTROL, A->port->link->id,
		     DRACO_PORTC_RESET), 0);
	CHECK(in_error(&qa, FABREX_QERR_RESET));
	CHECK_EQ(adm(A, DRACO_ADM_PORT_CONTROL, B->port->link->id,
		     DRACO_PORTC_DISABLE), 0);
	CHECK_EQ(adm(A, DRACO_ADM_PORT_CONTROL, B->port->link->id,
		     DRACO_PORTC_RESET), DRACO_SC_LINK_DOWN);
	CHECK_EQ(adm(A, DRACO_ADM_PORT_CONTROL, B->port->link->id, 4),
		 DRACO_SC_BAD_FIELD);
	CHECK_EQ(adm(A, DRACO_ADM_PORT_CONTROL, 1, 1), DRACO_SC_BAD_ID);
	END();
}

static void test_garbage(void)
{
	struct draco_acpl cpl;
	unsigned int seed = 1;

	BEGIN();
	for (unsigned int i = 0; i < 3000; i++) {
		unsigned char raw[64];
		struct draco_acmd c;

		for (unsigned int k = 0; k < 64; k++)
			raw[k] = (unsigned char)(rand_r(&seed) >> 5);
		memcpy(&c, raw, 64);
		c.opcode &= 0x3f;
		if (c.opcode == DRACO_ADM_PORT_CONTROL)
			continue;
		if (i % 2) {
			c.flags = 0;
			c.__rsvd = 0;
			c.data = RIG_DATA;
			c.data_len %= DRACO_ADM_DATA_MAX;
			c.id %= 70;
		}
		c.cid = 0x8000 + i;
		rig_post(A, &c);
		if (!rig_wait(A, c.cid, &cpl, c.opcode == DRACO_ADM_GET_EVENTS ?
			      200 : RIG_HUNG)) {
			CHECK_EQ(c.opcode, DRACO_ADM_GET_EVENTS);
			rig_admin(A, rig_cmd(DRACO_ADM_ABORT, c.cid, 0), NULL);
		}
	}
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_IDENTIFY, 0, 512), NULL), 0);
	END();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(registers), T(enable_and_disable), T(fatal_errors), T(identify),
	T(objects), T(bad_headers), T(denied), T(events_and_abort),
	T(lost_events), T(full_completion_ring), T(hung_command),
	T(stuck_stop),
	T(mr_fields), T(mr_pages), T(mr_page_size), T(mr_page_budget),
	T(mr_limits), T(queue_fields),
	T(queue_limits_and_services), T(doorbell_stride), T(counters), T(port_reset), T(garbage),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
