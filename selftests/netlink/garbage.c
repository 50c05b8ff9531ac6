// SPDX-License-Identifier: GPL-2.0-only
/*
 * Malformed requests of the generic netlink family: every one is refused, and
 * the family answers good ones afterwards.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "kselftest_harness.h"
#include "nl.h"

FIXTURE(garbage) {
	struct nl nl;
};

FIXTURE_SETUP(garbage)
{
	ASSERT_EQ(nl_open(&self->nl), 0);
}

FIXTURE_TEARDOWN(garbage)
{
	struct nl_msg msg, reply;

	nl_begin(&self->nl, &msg, FABREX_CMD_FPORT_GET, 0);
	nl_put_u32(&msg, FABREX_A_FPORT_INDEX, 0);
	EXPECT_EQ(nl_do(&self->nl, &msg, &reply), 0);
	nl_close(&self->nl);
}

TEST_F(garbage, unknown_commands)
{
	for (int cmd = FABREX_CMD_MAX + 1; cmd < 256; cmd += 7) {
		struct nl_msg msg;

		nl_begin(&self->nl, &msg, cmd, 0);
		EXPECT_EQ(nl_do(&self->nl, &msg, NULL), -EOPNOTSUPP);
	}
}

/* The event message is not a request. */
TEST_F(garbage, event_is_no_request)
{
	struct nl_msg msg;

	nl_begin(&self->nl, &msg, FABREX_CMD_EVENT, 0);
	EXPECT_EQ(nl_do(&self->nl, &msg, NULL), -EOPNOTSUPP);
}

/* Links are only dumped; and by nothing but a port's index. */
TEST_F(garbage, links)
{
	struct nl_msg msg;

	nl_begin(&self->nl, &msg, FABREX_CMD_LINK_GET, 0);
	EXPECT_EQ(nl_do(&self->nl, &msg, NULL), -EOPNOTSUPP);
	nl_begin(&self->nl, &msg, FABREX_CMD_LINK_GET, 0);
	nl_put_u32(&msg, FABREX_A_LINK_A, 1);
	EXPECT_EQ(nl_dump(&self->nl, &msg, 65536, NULL, NULL, NULL, NULL),
		  -EINVAL);
	nl_begin(&self->nl, &msg, FABREX_CMD_LINK_GET, 0);
	nl_put(&msg, FABREX_A_LINK_FPORT, "x", 1);
	EXPECT_TRUE(nl_dump(&self->nl, &msg, 65536, NULL, NULL, NULL,
			    NULL) < 0);
}

TEST_F(garbage, unknown_attributes)
{
	static const uint8_t cmds[] = { FABREX_CMD_FPORT_GET,
		FABREX_CMD_OBJECT_GET, FABREX_CMD_COUNTERS_GET };

	for (size_t i = 0; i < sizeof(cmds); i++) {
		struct nl_msg msg;

		nl_begin(&self->nl, &msg, cmds[i], 0);
		nl_put_u32(&msg, 60, 1);
		EXPECT_EQ(nl_do(&self->nl, &msg, NULL), -EINVAL);
		nl_begin(&self->nl, &msg, cmds[i], 0);
		nl_put_u32(&msg, 0, 1);
		EXPECT_EQ(nl_do(&self->nl, &msg, NULL), -EINVAL);
	}
}

/* Right attribute, wrong size: too short, too long, empty. */
TEST_F(garbage, wrong_lengths)
{
	uint8_t bytes[64] = { 1 };

	for (size_t len = 0; len < 12; len++) {
		struct nl_msg msg;

		if (len == 4)
			continue;
		nl_begin(&self->nl, &msg, FABREX_CMD_OBJECT_GET, 0);
		nl_put(&msg, FABREX_A_OBJECT_ID, bytes, len);
		EXPECT_TRUE(nl_do(&self->nl, &msg, NULL) < 0)
			TH_LOG("length %zu", len);
	}
}

TEST_F(garbage, strings)
{
	struct nl_msg msg;
	char name[200];

	/* Longer than a name can be. */
	memset(name, 'x', sizeof(name));
	name[199] = 0;
	nl_begin(&self->nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	nl_put_u32(&msg, FABREX_A_OBJECT_TYPE, FABREX_OBJECT_TYPE_HOST);
	nl_put_str(&msg, FABREX_A_OBJECT_NAME, name);
	EXPECT_TRUE(nl_do(&self->nl, &msg, NULL) < 0);
	/* Not terminated. */
	nl_begin(&self->nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	nl_put_u32(&msg, FABREX_A_OBJECT_TYPE, FABREX_OBJECT_TYPE_HOST);
	nl_put(&msg, FABREX_A_OBJECT_NAME, name, 31);
	EXPECT_TRUE(nl_do(&self->nl, &msg, NULL) < 0);
}

/* An attribute that claims to be longer than the message. */
TEST_F(garbage, truncated)
{
	for (int claim = 1; claim < 70; claim += 3) {
		struct nl_msg msg;
		struct nlattr *attr;

		nl_begin(&self->nl, &msg, FABREX_CMD_OBJECT_GET, 0);
		attr = (void *)(msg.buf + msg.len);
		nl_put_u32(&msg, FABREX_A_OBJECT_ID, 1);
		attr->nla_len = claim;
		if (claim == 8)
			continue;
		EXPECT_TRUE(nl_do(&self->nl, &msg, NULL) < 0)
			TH_LOG("claims %d", claim);
	}
}

TEST_F(garbage, unknown_enum_values)
{
	struct nl_msg msg;

	nl_begin(&self->nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	nl_put_u32(&msg, FABREX_A_OBJECT_TYPE, 200);
	EXPECT_TRUE(nl_dump(&self->nl, &msg, 65536, NULL, NULL, NULL, NULL) <
		    0);
}

TEST_HARNESS_MAIN
