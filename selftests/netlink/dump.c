// SPDX-License-Identifier: GPL-2.0-only
/* Reading the fabric: dumps that resume, filters, single objects, events. */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "nl.h"

#define MOST	2048
#define ANY	0xffffffffu

struct seen {
	uint32_t id[MOST];
	uint32_t type[MOST];
	int n;
	uint32_t want_type;	/* ANY or what all must be */
	uint32_t want_bound;
	uint32_t want_parent;
	bool wrong;
};

FIXTURE(dump) {
	struct nl nl;
};

FIXTURE_SETUP(dump)
{
	ASSERT_EQ(nl_open(&self->nl), 0);
}

FIXTURE_TEARDOWN(dump)
{
	nl_close(&self->nl);
}

static void see(const struct nlattr *attr[], void *arg)
{
	struct seen *s = arg;

	if (!attr[FABREX_A_OBJECT_ID] || !attr[FABREX_A_OBJECT_TYPE] ||
	    !attr[FABREX_A_OBJECT_NAME] || s->n == MOST) {
		s->wrong = true;
		return;
	}
	s->id[s->n] = nl_u32(attr[FABREX_A_OBJECT_ID]);
	s->type[s->n] = nl_u32(attr[FABREX_A_OBJECT_TYPE]);
	if (s->n && s->id[s->n] <= s->id[s->n - 1])
		s->wrong = true;	/* in order of id, each once */
	if (s->want_type != ANY && s->type[s->n] != s->want_type)
		s->wrong = true;
	if (s->want_bound != ANY &&
	    nl_u32(attr[FABREX_A_OBJECT_BOUND]) != s->want_bound)
		s->wrong = true;
	if (s->want_parent != ANY &&
	    nl_u32(attr[FABREX_A_OBJECT_PARENT]) != s->want_parent)
		s->wrong = true;
	s->n++;
}

static void see_nothing(struct seen *s)
{
	memset(s, 0, sizeof(*s));
	s->want_type = s->want_bound = s->want_parent = ANY;
}

static int objects(struct nl *nl, struct seen *s, uint16_t attr,
		   uint32_t value, size_t bufsize, int *calls)
{
	struct nl_msg msg;

	nl_begin(nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	if (attr)
		nl_put_u32(&msg, attr, value);
	return nl_dump(nl, &msg, bufsize, see, s, calls, NULL);
}

TEST_F(dump, everything)
{
	static struct seen s;
	int types[6] = { 0 };

	see_nothing(&s);
	ASSERT_GT(objects(&self->nl, &s, 0, 0, 65536, NULL), 0);
	EXPECT_FALSE(s.wrong);
	for (int i = 0; i < s.n; i++) {
		ASSERT_LT(s.type[i], 6);
		types[s.type[i]]++;
	}
	for (int type = 1; type < 6; type++)
		EXPECT_GT(types[type], 0);
}

/* The smaller the buffer the more calls, and the same objects. */
TEST_F(dump, resumes)
{
	static struct seen whole, parts;
	int many = 0, few = 0;

	see_nothing(&whole);
	see_nothing(&parts);
	/* Small first: the kernel remembers the largest buffer of a socket. */
	ASSERT_GT(objects(&self->nl, &parts, 0, 0, NL_SMALL, &many), 0);
	ASSERT_GT(objects(&self->nl, &whole, 0, 0, 65536, &few), 0);
	EXPECT_GE(many, few);
	if (parts.n > 200)
		EXPECT_GT(many, few);
	EXPECT_FALSE(parts.wrong);
	ASSERT_EQ(whole.n, parts.n);
	EXPECT_EQ(memcmp(whole.id, parts.id, sizeof(whole.id)), 0);
}

/* Two dumps at once on two sockets do not share a place. */
TEST_F(dump, two_at_once)
{
	static struct seen s;
	struct nl other;
	struct nl_msg msg;
	uint8_t buf[NL_SMALL];

	ASSERT_EQ(nl_open(&other), 0);
	nl_begin(&other, &msg, FABREX_CMD_OBJECT_GET, NLM_F_DUMP);
	ASSERT_EQ(nl_send(&other, &msg), 0);
	ASSERT_GT(nl_recv(&other, buf, sizeof(buf), 60000), 0);
	see_nothing(&s);
	ASSERT_GT(objects(&self->nl, &s, 0, 0, NL_SMALL, NULL), 0);
	EXPECT_FALSE(s.wrong);
	nl_close(&other);	/* in the middle: nothing leaks (kmemleak) */
}

TEST_F(dump, by_type)
{
	static struct seen all, s;
	int sum = 0;

	see_nothing(&all);
	ASSERT_GT(objects(&self->nl, &all, 0, 0, 65536, NULL), 0);
	for (uint32_t type = 1; type < 6; type++) {
		see_nothing(&s);
		s.want_type = type;
		ASSERT_GE(objects(&self->nl, &s, FABREX_A_OBJECT_TYPE, type,
				  65536, NULL), 0);
		EXPECT_FALSE(s.wrong);
		sum += s.n;
	}
	EXPECT_EQ(sum, all.n);
}

TEST_F(dump, by_parent)
{
	static struct seen switches, s;

	see_nothing(&switches);
	ASSERT_GT(objects(&self->nl, &switches, FABREX_A_OBJECT_TYPE,
			  FABREX_OBJECT_TYPE_SWITCH, 65536, NULL), 0);
	see_nothing(&s);
	s.want_type = FABREX_OBJECT_TYPE_PORT;
	s.want_parent = switches.id[0];
	ASSERT_GT(objects(&self->nl, &s, FABREX_A_OBJECT_PARENT,
			  switches.id[0], 65536, NULL), 0);
	EXPECT_FALSE(s.wrong);
	EXPECT_GE(s.n, 2);
}

TEST_F(dump, by_bound)
{
	static struct seen ports, s;

	see_nothing(&ports);
	ASSERT_GT(objects(&self->nl, &ports, FABREX_A_OBJECT_TYPE,
			  FABREX_OBJECT_TYPE_PORT, 65536, NULL), 0);
	for (int i = 0; i < ports.n; i++) {
		see_nothing(&s);
		s.want_type = FABREX_OBJECT_TYPE_ENDPOINT;
		s.want_bound = ports.id[i];
		ASSERT_GE(objects(&self->nl, &s, FABREX_A_OBJECT_BOUND,
				  ports.id[i], 65536, NULL), 0);
		EXPECT_FALSE(s.wrong);
	}
}

static int get(struct nl *nl, struct nl_msg *reply, uint32_t id,
	       uint32_t type, const char *name)
{
	struct nl_msg msg;

	nl_begin(nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	if (id)
		nl_put_u32(&msg, FABREX_A_OBJECT_ID, id);
	if (type)
		nl_put_u32(&msg, FABREX_A_OBJECT_TYPE, type);
	if (name)
		nl_put_str(&msg, FABREX_A_OBJECT_NAME, name);
	return nl_do(nl, &msg, reply);
}

TEST_F(dump, single_objects)
{
	const struct nlattr *attr[NL_MAX_ATTR];
	static struct seen s;
	struct nl_msg reply;

	see_nothing(&s);
	ASSERT_GT(objects(&self->nl, &s, 0, 0, 65536, NULL), 0);
	for (int i = 0; i < s.n; i++) {
		char name[64];

		ASSERT_EQ(get(&self->nl, &reply, s.id[i], 0, NULL), 0);
		ASSERT_TRUE(nl_parse((void *)reply.buf, attr));
		ASSERT_EQ(nl_u32(attr[FABREX_A_OBJECT_ID]), s.id[i]);
		ASSERT_EQ(nl_u32(attr[FABREX_A_OBJECT_TYPE]), s.type[i]);
		strcpy(name, nl_str(attr[FABREX_A_OBJECT_NAME]));
		ASSERT_EQ(get(&self->nl, &reply, 0, s.type[i], name), 0);
		ASSERT_TRUE(nl_parse((void *)reply.buf, attr));
		ASSERT_EQ(nl_u32(attr[FABREX_A_OBJECT_ID]), s.id[i]);
	}
	EXPECT_EQ(get(&self->nl, &reply, 0x7fffffff, 0, NULL), -ENOENT);
	EXPECT_NE(self->nl.extack[0], 0);
	EXPECT_EQ(get(&self->nl, &reply, 0, FABREX_OBJECT_TYPE_HOST, "nobody"),
		  -ENOENT);
	EXPECT_NE(strstr(self->nl.extack, "nobody"), NULL)
		TH_LOG("%s", self->nl.extack);
}

static void count_port(const struct nlattr *attr[], void *arg)
{
	int *good = arg;

	*good += attr[FABREX_A_FPORT_NAME] && attr[FABREX_A_FPORT_HOST] &&
		 attr[FABREX_A_FPORT_DRIVER] && attr[FABREX_A_FPORT_ALIVE] &&
		 attr[FABREX_A_FPORT_OBJECT_ID] && attr[FABREX_A_FPORT_PARENT];
}

TEST_F(dump, local_ports)
{
	struct nl_msg msg, reply;
	int good = 0, n;

	nl_begin(&self->nl, &msg, FABREX_CMD_FPORT_GET, 0);
	n = nl_dump(&self->nl, &msg, 65536, count_port, &good, NULL, NULL);
	ASSERT_GE(n, 1);
	EXPECT_EQ(n, good);
	nl_begin(&self->nl, &msg, FABREX_CMD_FPORT_GET, 0);
	nl_put_u32(&msg, FABREX_A_FPORT_INDEX, 0);
	EXPECT_EQ(nl_do(&self->nl, &msg, &reply), 0);
	nl_begin(&self->nl, &msg, FABREX_CMD_FPORT_GET, 0);
	nl_put_u32(&msg, FABREX_A_FPORT_INDEX, 9999);
	EXPECT_TRUE(nl_do(&self->nl, &msg, &reply) < 0);
	EXPECT_NE(self->nl.extack[0], 0);
}

TEST_F(dump, counters)
{
	const struct nlattr *attr[NL_MAX_ATTR];
	struct nl_msg msg, reply;

	nl_begin(&self->nl, &msg, FABREX_CMD_COUNTERS_GET, 0);
	ASSERT_EQ(nl_do(&self->nl, &msg, &reply), 0);
	ASSERT_TRUE(nl_parse((void *)reply.buf, attr));
	EXPECT_NE(attr[FABREX_A_COUNTERS_TX_BYTES], NULL);
	EXPECT_NE(attr[FABREX_A_COUNTERS_INTERRUPTS], NULL);
	nl_begin(&self->nl, &msg, FABREX_CMD_COUNTERS_GET, 0);
	nl_put_u32(&msg, FABREX_A_COUNTERS_ID, 0x7fffffff);
	/* Not even whether there is such an object is said to everybody. */
	EXPECT_EQ(nl_do(&self->nl, &msg, &reply),
		  geteuid() ? -EPERM : -ENOENT);
}

struct links_seen {
	uint64_t last, sum;		/* both ends of one, and of all */
	int n;
	bool wrong;
};

/* Each once, with bytes in two nests; in a mesh several have one first end. */
static void see_link(const struct nlattr *attr[], void *arg)
{
	const struct nlattr *there = attr[FABREX_A_LINK_A_TO_B];
	const struct nlattr *back = attr[FABREX_A_LINK_B_TO_A];
	uint32_t a = nl_u32(attr[FABREX_A_LINK_A]);
	uint32_t b = nl_u32(attr[FABREX_A_LINK_B]);
	uint64_t ends = (uint64_t)a << 32 | b;
	struct links_seen *s = arg;

	if (ends == s->last || !a || !b || a == b || !there || !back ||
	    there->nla_len < 2 * NLA_HDRLEN + 8 ||
	    back->nla_len < 2 * NLA_HDRLEN + 8)
		s->wrong = true;
	s->last = ends;
	s->sum += ends * ends;
	s->n++;
}

TEST_F(dump, links)
{
	struct links_seen parts = {}, whole = {};
	struct nl_msg msg;
	int ret;

	nl_begin(&self->nl, &msg, FABREX_CMD_LINK_GET, 0);
	ret = nl_dump(&self->nl, &msg, NL_SMALL, see_link, &parts, NULL, NULL);
	if (geteuid()) {
		EXPECT_EQ(ret, -EPERM);
		EXPECT_NE(self->nl.extack[0], 0);
		return;
	}
	ASSERT_GT(ret, 0);
	nl_begin(&self->nl, &msg, FABREX_CMD_LINK_GET, 0);
	nl_put_u32(&msg, FABREX_A_LINK_FPORT, 0);
	ASSERT_EQ(nl_dump(&self->nl, &msg, 65536, see_link, &whole, NULL,
			  NULL), ret);
	EXPECT_EQ(parts.n, whole.n);
	EXPECT_EQ(parts.sum, whole.sum);
	EXPECT_FALSE(parts.wrong || whole.wrong);
	nl_begin(&self->nl, &msg, FABREX_CMD_LINK_GET, 0);
	nl_put_u32(&msg, FABREX_A_LINK_FPORT, 9999);
	EXPECT_EQ(nl_dump(&self->nl, &msg, 65536, NULL, NULL, NULL, NULL),
		  -ENODEV);
	EXPECT_NE(self->nl.extack[0], 0);
}

/* Anybody may listen to events; the agent group is for administrators. */
TEST_F(dump, groups)
{
	int agent = setsockopt(self->nl.fd, 270, NETLINK_ADD_MEMBERSHIP,
			       &self->nl.agent, sizeof(self->nl.agent));

	ASSERT_NE(self->nl.events, 0);
	ASSERT_NE(self->nl.agent, 0);
	EXPECT_EQ(setsockopt(self->nl.fd, 270, NETLINK_ADD_MEMBERSHIP,
			     &self->nl.events, sizeof(self->nl.events)), 0);
	EXPECT_EQ(agent, geteuid() ? -1 : 0);
}

TEST_HARNESS_MAIN
