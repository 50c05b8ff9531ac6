// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changing the fabric: permission, what is refused and how it is explained.
 * Nothing here changes a binding: dry runs and refusals only. Run it as root
 * and again as an unprivileged user.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "nl.h"

FIXTURE(change) {
	struct nl nl;
	uint32_t host;		/* a host port */
	uint32_t uplink;	/* a port that is none */
	uint32_t free;		/* an endpoint that is free, or 0 */
	uint32_t endpoint;	/* any */
};

static void find(const struct nlattr *attr[], void *arg)
{
	FIXTURE_DATA(change) *self = arg;
	uint32_t id = nl_u32(attr[FABREX_A_OBJECT_ID]);

	switch (nl_u32(attr[FABREX_A_OBJECT_TYPE])) {
	case FABREX_OBJECT_TYPE_PORT:
		if (nl_u32(attr[FABREX_A_OBJECT_KIND]) == FABREX_PORT_KIND_HOST)
			self->host = id;
		if (nl_u32(attr[FABREX_A_OBJECT_KIND]) ==
		    FABREX_PORT_KIND_UPLINK)
			self->uplink = id;
		break;
	case FABREX_OBJECT_TYPE_ENDPOINT:
		self->endpoint = id;
		if (!nl_u32(attr[FABREX_A_OBJECT_STATE]))
			self->free = id;
		break;
	}
}

FIXTURE_SETUP(change)
{
	struct nl_msg msg;

	ASSERT_EQ(nl_open(&self->nl), 0);
	nl_begin(&self->nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	ASSERT_GT(nl_dump(&self->nl, &msg, 65536, find, self, NULL, NULL), 0);
	ASSERT_NE(self->host, 0);
	ASSERT_NE(self->endpoint, 0);
}

FIXTURE_TEARDOWN(change)
{
	nl_close(&self->nl);
}

static int bind_ep(struct nl *nl, uint32_t ep, uint32_t target, bool dry)
{
	struct nl_msg msg;

	nl_begin(nl, &msg, FABREX_CMD_BIND, 0);
	if (ep)
		nl_put_u32(&msg, FABREX_A_CHANGE_ID, ep);
	if (target)
		nl_put_u32(&msg, FABREX_A_CHANGE_TARGET, target);
	if (dry)
		nl_put(&msg, FABREX_A_CHANGE_DRY_RUN, NULL, 0);
	return nl_change(nl, &msg);
}

static int unbind(struct nl *nl, uint32_t ep)
{
	struct nl_msg msg;

	nl_begin(nl, &msg, FABREX_CMD_UNBIND, 0);
	nl_put_u32(&msg, FABREX_A_CHANGE_ID, ep);
	return nl_change(nl, &msg);
}

static int port_set(struct nl *nl, uint32_t port, uint32_t action)
{
	struct nl_msg msg;

	nl_begin(nl, &msg, FABREX_CMD_PORT_SET, 0);
	nl_put_u32(&msg, FABREX_A_CHANGE_ID, port);
	nl_put_u32(&msg, FABREX_A_CHANGE_ACTION, action);
	return nl_change(nl, &msg);
}

static int reply(struct nl *nl, uint32_t ep, uint64_t token)
{
	struct nl_msg msg;

	nl_begin(nl, &msg, FABREX_CMD_RELEASE_REPLY, 0);
	nl_put_u32(&msg, FABREX_A_CHANGE_ID, ep);
	nl_put(&msg, FABREX_A_CHANGE_TOKEN, &token, sizeof(token));
	return nl_do(nl, &msg, NULL);
}

TEST_F(change, permission)
{
	if (!geteuid())
		SKIP(return, "root may; run as an unprivileged user");
	EXPECT_EQ(bind_ep(&self->nl, self->endpoint, self->host, true), -EPERM);
	EXPECT_EQ(bind_ep(&self->nl, self->endpoint, self->host, false),
		  -EPERM);
	EXPECT_EQ(unbind(&self->nl, self->endpoint), -EPERM);
	EXPECT_EQ(port_set(&self->nl, self->host, FABREX_PORT_ACTION_DISABLE),
		  -EPERM);
	EXPECT_EQ(reply(&self->nl, self->endpoint, 1), -EPERM);
}

#define ROOT_ONLY() do { \
	if (geteuid()) \
		SKIP(return, "needs CAP_SYS_ADMIN"); \
} while (0)

TEST_F(change, dry_run_changes_nothing)
{
	const struct nlattr *attr[NL_MAX_ATTR];
	struct nl_msg msg, answer;

	ROOT_ONLY();
	if (!self->free)
		SKIP(return, "no endpoint is free");
	ASSERT_EQ(bind_ep(&self->nl, self->free, self->host, true), 0)
		TH_LOG("%s", self->nl.extack);
	nl_begin(&self->nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	nl_put_u32(&msg, FABREX_A_OBJECT_ID, self->free);
	ASSERT_EQ(nl_do(&self->nl, &msg, &answer), 0);
	ASSERT_TRUE(nl_parse((void *)answer.buf, attr));
	EXPECT_EQ(nl_u32(attr[FABREX_A_OBJECT_STATE]), 0);
}

TEST_F(change, explained)
{
	ROOT_ONLY();
	EXPECT_EQ(bind_ep(&self->nl, 0x7fffffff, self->host, false), -ENOENT);
	EXPECT_NE(self->nl.extack[0], 0);
	EXPECT_EQ(bind_ep(&self->nl, self->endpoint, 0x7fffffff, false),
		  -ENOENT);
	EXPECT_NE(self->nl.extack[0], 0);
	EXPECT_TRUE(bind_ep(&self->nl, self->endpoint, self->uplink, false) <
		    0);
	EXPECT_NE(self->nl.extack[0], 0);
	EXPECT_TRUE(bind_ep(&self->nl, self->host, self->host, false) < 0);
	EXPECT_NE(self->nl.extack[0], 0);
	EXPECT_EQ(unbind(&self->nl, 0x7fffffff), -ENOENT);
	EXPECT_NE(self->nl.extack[0], 0);
	if (self->free) {
		EXPECT_EQ(unbind(&self->nl, self->free), -ENOTCONN);
		EXPECT_NE(self->nl.extack[0], 0);
	}
	EXPECT_EQ(port_set(&self->nl, 0x7fffffff, FABREX_PORT_ACTION_ENABLE),
		  -ENOENT);
	EXPECT_NE(self->nl.extack[0], 0);
	EXPECT_EQ(port_set(&self->nl, self->host, 77), -ERANGE);
	EXPECT_EQ(port_set(&self->nl, self->host, 0), -ERANGE);
}

TEST_F(change, missing_attributes)
{
	ROOT_ONLY();
	EXPECT_EQ(bind_ep(&self->nl, self->endpoint, 0, false), -EINVAL);
	EXPECT_NE(self->nl.extack[0], 0);
	EXPECT_EQ(bind_ep(&self->nl, 0, self->host, false), -EINVAL);
	EXPECT_NE(self->nl.extack[0], 0);
}

/* Nobody has been asked anything: an answer is refused. */
TEST_F(change, unasked_release_reply)
{
	ROOT_ONLY();
	EXPECT_TRUE(reply(&self->nl, self->endpoint, 0x1234567890ull) < 0);
	EXPECT_TRUE(reply(&self->nl, 0x7fffffff, 1) < 0);
}

TEST_HARNESS_MAIN
