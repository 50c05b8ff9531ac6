// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes and their tickets: accepted, asked about, given up, told when they are
 * over. Dry runs only. The test "pending" is for a switch that answers no bind:
 * what happens while changes are under way can then be looked at (-t pending).
 * The others are for one that does (-T pending).
 */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "nl.h"

#define MOST	32	/* changes under way */
#define KEPT	64	/* results */
#define PATIENCE_MS	120000

FIXTURE(ticket) {
	struct nl nl, other;
	uint32_t port, endpoint;
};

static void find(const struct nlattr *attr[], void *arg)
{
	FIXTURE_DATA(ticket) *self = arg;
	uint32_t id = nl_u32(attr[FABREX_A_OBJECT_ID]);

	if (nl_u32(attr[FABREX_A_OBJECT_TYPE]) == FABREX_OBJECT_TYPE_PORT &&
	    nl_u32(attr[FABREX_A_OBJECT_KIND]) == FABREX_PORT_KIND_HOST)
		self->port = id;
	if (nl_u32(attr[FABREX_A_OBJECT_TYPE]) == FABREX_OBJECT_TYPE_ENDPOINT)
		self->endpoint = id;
}

FIXTURE_SETUP(ticket)
{
	struct nl_msg msg;

	if (geteuid())
		SKIP(return, "needs CAP_SYS_ADMIN");
	ASSERT_EQ(nl_open(&self->nl), 0);
	ASSERT_EQ(nl_open(&self->other), 0);
	nl_begin(&self->nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	ASSERT_GT(nl_dump(&self->nl, &msg, 65536, find, self, NULL, NULL), 0);
	ASSERT_NE(self->port, 0);
	ASSERT_NE(self->endpoint, 0);
}

FIXTURE_TEARDOWN(ticket)
{
	nl_close(&self->other);
	nl_close(&self->nl);
}

static uint64_t u64_of(const struct nlattr *attr)
{
	uint64_t v = 0;

	if (attr)
		memcpy(&v, attr + 1, sizeof(v));
	return v;
}

static int start(FIXTURE_DATA(ticket) *self, uint64_t *ticket)
{
	const struct nlattr *attr[NL_MAX_ATTR];
	struct nl_msg msg, reply;
	int ret;

	nl_begin(&self->nl, &msg, FABREX_CMD_BIND, 0);
	nl_put_u32(&msg, FABREX_A_CHANGE_ID, self->endpoint);
	nl_put_u32(&msg, FABREX_A_CHANGE_TARGET, self->port);
	nl_put(&msg, FABREX_A_CHANGE_DRY_RUN, NULL, 0);
	*ticket = 0;
	ret = nl_do(&self->nl, &msg, &reply);
	if (!ret && nl_parse((void *)reply.buf, attr))
		*ticket = u64_of(attr[FABREX_A_CHANGE_TICKET]);
	return ret;
}

static int about(struct nl *nl, int cmd, uint64_t ticket, struct nl_msg *reply)
{
	struct nl_msg msg;

	nl_begin(nl, &msg, cmd, 0);
	nl_put(&msg, FABREX_A_CHANGE_TICKET, &ticket, sizeof(ticket));
	return nl_do(nl, &msg, reply);
}

/* 1: under way, 0: over with *error, or a negative errno */
static int look(struct nl *nl, uint64_t ticket, uint32_t *error)
{
	const struct nlattr *attr[NL_MAX_ATTR];
	struct nl_msg reply;
	int ret = about(nl, FABREX_CMD_CHANGE_GET, ticket, &reply);

	if (ret)
		return ret;
	if (!nl_parse((void *)reply.buf, attr) ||
	    u64_of(attr[FABREX_A_CHANGE_TICKET]) != ticket ||
	    nl_u32(attr[FABREX_A_CHANGE_OP]) != FABREX_CHANGE_OP_BIND)
		return -EBADMSG;
	if (attr[FABREX_A_CHANGE_PENDING])
		return attr[FABREX_A_CHANGE_ERROR] ? -EBADMSG : 1;
	if (!attr[FABREX_A_CHANGE_ERROR])
		return -EBADMSG;
	*error = nl_u32(attr[FABREX_A_CHANGE_ERROR]);
	if (*error && !*nl_str(attr[FABREX_A_CHANGE_MESSAGE]))
		return -EBADMSG;
	return 0;
}

static int wait_over(struct nl *nl, uint64_t ticket, uint32_t *error)
{
	int ret, ms;

	for (ms = 0; ms < PATIENCE_MS; ms += 10) {
		ret = look(nl, ticket, error);
		if (ret != 1)
			return ret;
		poll(NULL, 0, 10);
	}
	return -ETIMEDOUT;
}

TEST_F(ticket, result_for_everybody)
{
	uint64_t first, second;
	uint32_t error = 77;

	ASSERT_EQ(start(self, &first), 0) TH_LOG("%s", self->nl.extack);
	ASSERT_NE(first, 0);
	EXPECT_EQ(wait_over(&self->other, first, &error), 0);
	EXPECT_TRUE(error == 0 || error == EADDRINUSE) TH_LOG("%u", error);
	ASSERT_EQ(start(self, &second), 0);
	EXPECT_NE(first, second);
	EXPECT_EQ(wait_over(&self->nl, second, &error), 0);
	EXPECT_EQ(about(&self->other, FABREX_CMD_CHANGE_CANCEL, first, NULL),
		  -EALREADY);
	EXPECT_NE(strstr(self->other.extack, "already finished"), NULL)
		TH_LOG("%s", self->other.extack);
}

TEST_F(ticket, event)
{
	const struct nlattr *attr[NL_MAX_ATTR];
	_Alignas(8) uint8_t buf[NL_SMALL];
	uint64_t ticket, told = 0;

	ASSERT_NE(self->other.changes, 0);
	ASSERT_EQ(setsockopt(self->other.fd, 270, NETLINK_ADD_MEMBERSHIP,
			     &self->other.changes,
			     sizeof(self->other.changes)), 0);
	ASSERT_EQ(start(self, &ticket), 0);
	while (told != ticket) {
		struct nlmsghdr *nlh = (void *)buf;

		ASSERT_GT(nl_recv(&self->other, buf, sizeof(buf), PATIENCE_MS),
			  0);
		ASSERT_EQ(((struct genlmsghdr *)NLMSG_DATA(nlh))->cmd,
			  FABREX_CMD_CHANGE_DONE);
		ASSERT_TRUE(nl_parse(nlh, attr));
		told = u64_of(attr[FABREX_A_CHANGE_TICKET]);
		EXPECT_NE(attr[FABREX_A_CHANGE_ERROR], NULL);
		EXPECT_EQ(attr[FABREX_A_CHANGE_PENDING], NULL);
	}
	EXPECT_EQ(nl_u32(attr[FABREX_A_CHANGE_ID]), self->endpoint);
}

TEST_F(ticket, garbage)
{
	static const uint8_t cmds[] = { FABREX_CMD_CHANGE_GET,
					FABREX_CMD_CHANGE_CANCEL };
	static const uint64_t wrong[] = { 0, 1, 1ull << 63, ~0ull };
	struct nl_msg msg;

	for (size_t c = 0; c < sizeof(cmds); c++) {
		for (size_t i = 0; i < 4; i++) {
			EXPECT_EQ(about(&self->nl, cmds[c], wrong[i], NULL),
				  -ENOENT);
			EXPECT_NE(self->nl.extack[0], 0);
		}
		nl_begin(&self->nl, &msg, cmds[c], 0);
		EXPECT_EQ(nl_do(&self->nl, &msg, NULL), -EINVAL);
		EXPECT_NE(strstr(self->nl.extack, "ticket is missing"), NULL);
		nl_begin(&self->nl, &msg, cmds[c], 0);
		nl_put_u32(&msg, FABREX_A_CHANGE_TICKET, 1);
		EXPECT_TRUE(nl_do(&self->nl, &msg, NULL) < 0);
	}
	nl_begin(&self->nl, &msg, FABREX_CMD_CHANGE_DONE, 0);
	EXPECT_EQ(nl_do(&self->nl, &msg, NULL), -EOPNOTSUPP);
}

TEST_F(ticket, old_results_are_forgotten)
{
	uint64_t first, ticket;
	uint32_t error;

	ASSERT_EQ(start(self, &first), 0);
	ASSERT_EQ(wait_over(&self->nl, first, &error), 0);
	for (int i = 0; i < KEPT; i++) {
		EXPECT_EQ(look(&self->nl, first, &error), 0);
		ASSERT_EQ(start(self, &ticket), 0);
		ASSERT_EQ(wait_over(&self->nl, ticket, &error), 0);
	}
	EXPECT_EQ(look(&self->nl, first, &error), -ENOENT);
	EXPECT_NE(strstr(self->nl.extack, "too old"), NULL);
}

/* As many as there may be, one more, and all given up by another socket. */
TEST_F(ticket, pending)
{
	uint64_t ticket[MOST], extra;
	uint32_t error;

	for (int i = 0; i < MOST; i++) {
		ASSERT_EQ(start(self, &ticket[i]), 0)
			TH_LOG("%d: %s", i, self->nl.extack);
		EXPECT_EQ(look(&self->other, ticket[i], &error), 1);
	}
	EXPECT_EQ(start(self, &extra), -EAGAIN);
	EXPECT_NE(strstr(self->nl.extack, "too many changes"), NULL)
		TH_LOG("%s", self->nl.extack);
	for (int i = 0; i < MOST; i++)
		EXPECT_EQ(about(&self->other, FABREX_CMD_CHANGE_CANCEL,
				ticket[i], NULL), 0);
	for (int i = 0; i < MOST; i++) {
		EXPECT_EQ(wait_over(&self->nl, ticket[i], &error), 0);
		EXPECT_EQ(error, ECANCELED) TH_LOG("%d: %u", i, error);
	}
}

TEST_HARNESS_MAIN
