// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every ioctl and netlink command on the two ports of fabrex_partial.ko
 * (driver/tests/backend): one that changes a fabric and moves no data, one that
 * moves data and has no fabric. Each succeeds, or says EOPNOTSUPP and over
 * netlink also why. Run it as root with the module loaded.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "nl.h"
#include "raw.h"

/* As in driver/tests/backend. */
#define PORT		2
#define ENDPOINT	4
#define QUEUES		4
#define DB_NUMBER	2

struct port {
	int fd;
	uint32_t index;
	struct nl nl;
};

static bool open_port(struct port *port, const char *name)
{
	char path[64], found[64];
	FILE *f;
	int n;

	for (n = 0; n < 256; n++) {
		snprintf(path, sizeof(path),
			 "/sys/class/fabrex/fabrex%d/name", n);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (!fgets(found, sizeof(found), f))
			found[0] = 0;
		fclose(f);
		found[strcspn(found, "\n")] = 0;
		if (strcmp(found, name))
			continue;
		snprintf(path, sizeof(path), "/dev/fabrex%d", n);
		port->index = n;
		port->fd = open(path, O_RDWR | O_CLOEXEC);
		return port->fd >= 0 && !nl_open(&port->nl);
	}
	return false;
}

static void close_port(struct port *port)
{
	nl_close(&port->nl);
	close(port->fd);
}

/* A call with a structure that is zero but for its size. */
#define CALL(port, _cmd, _arg) ({					\
	(_arg)->size = sizeof(*(_arg));					\
	raw_ioctl((port)->fd, _cmd, _arg);				\
})

static int destroy(struct port *port, uint32_t id)
{
	struct fabrex_destroy cmd = { .id = id };

	return CALL(port, FABREX_IOCTL_DESTROY, &cmd);
}

static int counters(struct port *port, uint32_t id,
		    struct fabrex_counters *cmd)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->id = id;
	return CALL(port, FABREX_IOCTL_COUNTERS, cmd);
}

static int mr_register(struct port *port, void *addr, uint32_t flags,
		       struct fabrex_mr_register *cmd)
{
	*cmd = (struct fabrex_mr_register) {
		.flags = flags,
		.addr = flags & FABREX_MR_DMABUF ? 0 : (uintptr_t)addr + 8,
		.length = 3 * RAW_PAGE,
		.access = RAW_ALL,
		.fd = flags & FABREX_MR_DMABUF ? 1 : 0,
	};
	return CALL(port, FABREX_IOCTL_MR_REGISTER, cmd);
}

static int queue_create(struct port *port, uint64_t service,
			struct fabrex_queue_create *cmd)
{
	*cmd = (struct fabrex_queue_create) {
		.sq_entries = 8,
		.cq_entries = 16,
		.rq_entries = 8,
		.cell_size = FABREX_CELL_MIN,
		.eventfd = -1,
		.service = service,
	};
	return CALL(port, FABREX_IOCTL_QUEUE_CREATE, cmd);
}

static int window_create(struct port *port)
{
	struct fabrex_window_create cmd = {
		.access = FABREX_ACCESS_REMOTE_READ,
		.rkey = 1,
		.length = RAW_PAGE,
	};

	return CALL(port, FABREX_IOCTL_WINDOW_CREATE, &cmd);
}

static int resolve(struct port *port)
{
	struct fabrex_resolve cmd = { .service = 4711 };

	return CALL(port, FABREX_IOCTL_RESOLVE, &cmd);
}

static int watch(struct port *port)
{
	struct fabrex_watch cmd = { .entries = 16 };

	return CALL(port, FABREX_IOCTL_WATCH, &cmd);
}

/* The host bridge is everywhere. */
static int p2p_query(struct port *port)
{
	struct fabrex_p2p_query cmd = {};

	return CALL(port, FABREX_IOCTL_P2P_QUERY, &cmd);
}

static void change_begin(struct port *port, struct nl_msg *msg, uint8_t cmd)
{
	nl_begin(&port->nl, msg, cmd, 0);
	nl_put_u32(msg, FABREX_A_CHANGE_FPORT, port->index);
}

static void bind_msg(struct port *port, struct nl_msg *msg, uint8_t cmd)
{
	change_begin(port, msg, cmd);
	nl_put_u32(msg, FABREX_A_CHANGE_ID, ENDPOINT);
	if (cmd == FABREX_CMD_BIND)
		nl_put_u32(msg, FABREX_A_CHANGE_TARGET, PORT);
}

static void port_set_msg(struct port *port, struct nl_msg *msg, uint32_t action)
{
	change_begin(port, msg, FABREX_CMD_PORT_SET);
	nl_put_u32(msg, FABREX_A_CHANGE_ID, PORT);
	nl_put_u32(msg, FABREX_A_CHANGE_ACTION, action);
}

static void ticket_msg(struct port *port, struct nl_msg *msg, uint8_t cmd)
{
	uint64_t ticket = 1;

	change_begin(port, msg, cmd);
	nl_put(msg, FABREX_A_CHANGE_TICKET, &ticket, sizeof(ticket));
}

static void release_reply_msg(struct port *port, struct nl_msg *msg)
{
	uint64_t token = 1;

	change_begin(port, msg, FABREX_CMD_RELEASE_REPLY);
	nl_put_u32(msg, FABREX_A_CHANGE_ID, ENDPOINT);
	nl_put(msg, FABREX_A_CHANGE_TOKEN, &token, sizeof(token));
}

static void counters_msg(struct port *port, struct nl_msg *msg, uint32_t id)
{
	nl_begin(&port->nl, msg, FABREX_CMD_COUNTERS_GET, 0);
	nl_put_u32(msg, FABREX_A_COUNTERS_FPORT, port->index);
	if (id)
		nl_put_u32(msg, FABREX_A_COUNTERS_ID, id);
}

static void fport_msg(struct port *port, struct nl_msg *msg)
{
	nl_begin(&port->nl, msg, FABREX_CMD_FPORT_GET, 0);
	nl_put_u32(msg, FABREX_A_FPORT_INDEX, port->index);
}

static int objects(struct port *port)
{
	struct nl_msg msg;

	nl_begin(&port->nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	nl_put_u32(&msg, FABREX_A_OBJECT_FPORT, port->index);
	return nl_dump(&port->nl, &msg, 65536, NULL, NULL, NULL, NULL);
}

/* Refused, and the text says so of the driver. */
static bool unsupported(struct port *port, struct nl_msg *msg,
			const char *text)
{
	int ret = nl_do(&port->nl, msg, NULL);

	if (ret == -EOPNOTSUPP && strstr(port->nl.extack, text))
		return true;
	printf("# %d \"%s\", wanted EOPNOTSUPP with \"%s\"\n", ret,
	       port->nl.extack, text);
	return false;
}

static bool links_unsupported(struct port *port)
{
	struct nl_msg msg;
	int ret;

	nl_begin(&port->nl, &msg, FABREX_CMD_LINK_GET, 0);
	nl_put_u32(&msg, FABREX_A_LINK_FPORT, port->index);
	ret = nl_dump(&port->nl, &msg, 65536, NULL, NULL, NULL, NULL);
	if (ret == -EOPNOTSUPP &&
	    strstr(port->nl.extack, "does not count what links carry"))
		return true;
	printf("# %d \"%s\", wanted EOPNOTSUPP\n", ret, port->nl.extack);
	return false;
}

FIXTURE(fabric) {
	struct port port;
};

FIXTURE_SETUP(fabric)
{
	ASSERT_TRUE(open_port(&self->port, "partial.fabric"));
}

FIXTURE_TEARDOWN(fabric)
{
	close_port(&self->port);
}

TEST_F(fabric, ioctls)
{
	struct fabrex_queue_create queue;
	struct fabrex_port_query query;
	struct fabrex_peer_query peer = {};
	struct fabrex_counters count;
	struct port *port = &self->port;
	struct fabrex_mr_register mr;
	void *pages = raw_pages(4 * RAW_PAGE);

	ASSERT_EQ(raw_query(port->fd, &query), 0);
	EXPECT_EQ(query.out_caps, 0);
	EXPECT_EQ(query.out_max_queues, 0);
	EXPECT_EQ(query.out_max_mrs, 0);
	EXPECT_EQ(query.out_max_windows, 0);
	EXPECT_EQ(CALL(port, FABREX_IOCTL_PEER_QUERY, &peer), 0);
	EXPECT_EQ(peer.out_state, FABREX_PEER_UP);
	EXPECT_EQ(counters(port, 0, &count), 0);
	EXPECT_EQ(count.out_link_downs, PORT);
	EXPECT_EQ(counters(port, 1, &count), -ENOENT);

	EXPECT_EQ(mr_register(port, pages, 0, &mr), -EOPNOTSUPP);
	EXPECT_EQ(mr_register(port, NULL, FABREX_MR_DMABUF, &mr), -EOPNOTSUPP);
	EXPECT_EQ(queue_create(port, 0, &queue), -EOPNOTSUPP);
	EXPECT_EQ(window_create(port), -EOPNOTSUPP);
	EXPECT_EQ(destroy(port, 1), -EOPNOTSUPP);
	EXPECT_EQ(resolve(port), -EOPNOTSUPP);
	EXPECT_EQ(watch(port), -EOPNOTSUPP);
	EXPECT_EQ(p2p_query(port), -EOPNOTSUPP);
}

TEST_F(fabric, netlink)
{
	struct port *port = &self->port;
	struct nl *nl = &port->nl;
	struct nl_msg msg;

	fport_msg(port, &msg);
	EXPECT_EQ(nl_do(nl, &msg, NULL), 0);
	EXPECT_EQ(objects(port), 4);
	counters_msg(port, &msg, 0);
	EXPECT_EQ(nl_do(nl, &msg, NULL), 0);
	counters_msg(port, &msg, ENDPOINT);
	EXPECT_EQ(nl_do(nl, &msg, NULL), 0);

	bind_msg(port, &msg, FABREX_CMD_BIND);
	EXPECT_EQ(nl_change(nl, &msg), 0);
	bind_msg(port, &msg, FABREX_CMD_BIND);
	EXPECT_EQ(nl_change(nl, &msg), -EADDRINUSE);
	bind_msg(port, &msg, FABREX_CMD_UNBIND);
	EXPECT_EQ(nl_change(nl, &msg), 0);
	port_set_msg(port, &msg, FABREX_PORT_ACTION_DISABLE);
	EXPECT_EQ(nl_change(nl, &msg), 0);
	port_set_msg(port, &msg, FABREX_PORT_ACTION_ENABLE);
	EXPECT_EQ(nl_change(nl, &msg), 0);

	ticket_msg(port, &msg, FABREX_CMD_CHANGE_GET);
	EXPECT_EQ(nl_do(nl, &msg, NULL), -ENOENT);
	ticket_msg(port, &msg, FABREX_CMD_CHANGE_CANCEL);
	EXPECT_EQ(nl_do(nl, &msg, NULL), -ENOENT);
	release_reply_msg(port, &msg);
	EXPECT_EQ(nl_do(nl, &msg, NULL), -ENOENT);
	EXPECT_NE(strstr(nl->extack, "no such request"), NULL);
	EXPECT_TRUE(links_unsupported(port));
}

FIXTURE(data) {
	struct port port;
};

FIXTURE_SETUP(data)
{
	ASSERT_TRUE(open_port(&self->port, "partial.data"));
}

FIXTURE_TEARDOWN(data)
{
	close_port(&self->port);
}

TEST_F(data, ioctls)
{
	struct fabrex_queue_create queue, more[QUEUES];
	struct fabrex_port_query query;
	struct fabrex_peer_query peer = {};
	struct fabrex_counters count;
	struct port *port = &self->port;
	struct fabrex_mr_register mr;
	void *pages = raw_pages(4 * RAW_PAGE);
	int i;

	ASSERT_EQ(raw_query(port->fd, &query), 0);
	EXPECT_EQ(query.out_caps & ~FABREX_CAP_WATCH,
		  FABREX_CAP_OP(FABREX_OP_NOP));
	EXPECT_EQ(query.out_max_queues, QUEUES);
	EXPECT_EQ(CALL(port, FABREX_IOCTL_PEER_QUERY, &peer), -ENOENT);

	ASSERT_EQ(mr_register(port, pages, 0, &mr), 0);
	EXPECT_EQ(destroy(port, mr.out_id), 0);
	EXPECT_EQ(destroy(port, mr.out_id), -ENOENT);
	EXPECT_EQ(mr_register(port, NULL, FABREX_MR_DMABUF, &mr), -EOPNOTSUPP);
	EXPECT_EQ(watch(port), 0);

	ASSERT_EQ(queue_create(port, 0, &queue), 0);
	EXPECT_EQ(counters(port, queue.out_id, &count), -EOPNOTSUPP);
	EXPECT_EQ(counters(port, 0, &count), -EOPNOTSUPP);
	EXPECT_EQ(queue_create(port, 4711, &more[0]), -EOPNOTSUPP);
	for (i = 1; i < QUEUES; i++)
		EXPECT_EQ(queue_create(port, 0, &more[i]), 0);
	EXPECT_EQ(queue_create(port, 0, &more[0]), -ENOSPC);
	EXPECT_EQ(destroy(port, queue.out_id), 0);
	/* The rest of them goes with the file. */

	EXPECT_EQ(window_create(port), -EOPNOTSUPP);
	EXPECT_EQ(resolve(port), -EOPNOTSUPP);
	EXPECT_EQ(p2p_query(port), 0);
}

/* The backend reaches rings and doorbell by their kernel addresses. */
TEST_F(data, doorbell_in_memory)
{
	struct fabrex_queue_create queue;
	struct port *port = &self->port;
	volatile struct fabrex_qctrl *ctrl;
	volatile uint32_t *db;
	uint8_t *rings;

	ASSERT_EQ(queue_create(port, 0, &queue), 0);
	rings = mmap(NULL, queue.out_ring_size, PROT_READ | PROT_WRITE,
		     MAP_SHARED, port->fd, queue.out_ring_mmap);
	ASSERT_NE(rings, MAP_FAILED);
	db = mmap(NULL, RAW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, port->fd,
		  queue.out_db_mmap);
	ASSERT_NE(db, MAP_FAILED);
	ctrl = (void *)(rings + queue.out_ctrl_offset);

	EXPECT_EQ(db[DB_NUMBER], ~queue.out_queue);
	EXPECT_EQ(ctrl->state, FABREX_QUEUE_OK);
	db[FABREX_DB_SQ / 4] = 0x12345678;
	EXPECT_EQ(destroy(port, queue.out_id), 0);
	EXPECT_EQ(ctrl->sq_head, 0x12345678);
	EXPECT_EQ(ctrl->state, FABREX_QUEUE_DEAD);
	EXPECT_EQ(db[DB_NUMBER], 0);
	munmap((void *)db, RAW_PAGE);
	munmap(rings, queue.out_ring_size);
}

TEST_F(data, netlink)
{
	struct port *port = &self->port;
	struct nl_msg msg;

	fport_msg(port, &msg);
	EXPECT_EQ(nl_do(&port->nl, &msg, NULL), 0);
	EXPECT_EQ(objects(port), 0);

	bind_msg(port, &msg, FABREX_CMD_BIND);
	EXPECT_TRUE(unsupported(port, &msg, "fabrex_partial cannot"));
	bind_msg(port, &msg, FABREX_CMD_UNBIND);
	EXPECT_TRUE(unsupported(port, &msg, "fabrex_partial cannot"));
	port_set_msg(port, &msg, FABREX_PORT_ACTION_RESET);
	EXPECT_TRUE(unsupported(port, &msg, "fabrex_partial cannot"));
	ticket_msg(port, &msg, FABREX_CMD_CHANGE_GET);
	EXPECT_TRUE(unsupported(port, &msg, "fabrex_partial cannot"));
	ticket_msg(port, &msg, FABREX_CMD_CHANGE_CANCEL);
	EXPECT_TRUE(unsupported(port, &msg, "fabrex_partial cannot"));
	release_reply_msg(port, &msg);
	EXPECT_TRUE(unsupported(port, &msg, "fabrex_partial cannot"));
	counters_msg(port, &msg, 0);
	EXPECT_TRUE(unsupported(port, &msg, "no counters"));
	EXPECT_TRUE(links_unsupported(port));
}

TEST_HARNESS_MAIN
