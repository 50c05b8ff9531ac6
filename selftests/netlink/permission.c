// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may change the fabric and who may watch others' traffic: processes with
 * one capability too few, in namespaces, and with somebody else's socket. Run
 * it as root. Nothing here changes a binding, whoever is let through.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "nl.h"

#define ALL	(~0ull)
#define CAP(c)	(1ull << (c))

/* Keep these of the capabilities there are. */
static int keep(uint64_t caps)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];
	int i;

	if (syscall(SYS_capget, &head, data))
		return -1;
	for (i = 0; i < 2; i++) {
		data[i].effective &= caps >> 32 * i;
		data[i].permitted &= caps >> 32 * i;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data);
}

struct who {
	int unshare;		/* CLONE_* */
	uint64_t caps;		/* that are kept */
	bool lent;		/* root sends on an unprivileged user's socket */
	const char *change;	/* in the refusal of a change, NULL: permitted */
	const char *watch;	/* likewise of others' counters */
};

FIXTURE(permission) {
	uint32_t own, host, endpoint;
};

static void find(const struct nlattr *attr[], void *arg)
{
	FIXTURE_DATA(permission) *self = arg;
	uint32_t id = nl_u32(attr[FABREX_A_OBJECT_ID]);

	if (nl_u32(attr[FABREX_A_OBJECT_TYPE]) == FABREX_OBJECT_TYPE_PORT &&
	    nl_u32(attr[FABREX_A_OBJECT_KIND]) == FABREX_PORT_KIND_HOST &&
	    id != self->own)
		self->host = id;
	if (nl_u32(attr[FABREX_A_OBJECT_TYPE]) == FABREX_OBJECT_TYPE_ENDPOINT)
		self->endpoint = id;
}

static void find_own(const struct nlattr *attr[], void *arg)
{
	*(uint32_t *)arg = nl_u32(attr[FABREX_A_FPORT_OBJECT_ID]);
}

FIXTURE_SETUP(permission)
{
	struct nl_msg msg;
	struct nl nl;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_EQ(nl_open(&nl), 0);
	nl_begin(&nl, &msg, FABREX_CMD_FPORT_GET, 0);
	ASSERT_GT(nl_dump(&nl, &msg, 65536, find_own, &self->own, NULL, NULL),
		  0);
	nl_begin(&nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	ASSERT_GT(nl_dump(&nl, &msg, 65536, find, self, NULL, NULL), 0);
	ASSERT_NE(self->own, 0);
	ASSERT_NE(self->host, 0);
	ASSERT_NE(self->endpoint, 0);
	nl_close(&nl);
}

FIXTURE_TEARDOWN(permission)
{
}

/* A refusal with the right text, or something else than EPERM. */
static bool as_wanted(struct nl *nl, struct nl_msg *msg, const char *text,
		      const char *what)
{
	int ret = nl_do(nl, msg, NULL);

	if (text ? ret == -EPERM && strstr(nl->extack, text) : ret != -EPERM)
		return true;
	printf("# %s: %d \"%s\", wanted %s\n", what, ret, nl->extack,
	       text ? text : "no refusal");
	return false;
}

static bool change_as_wanted(FIXTURE_DATA(permission) *self, struct nl *nl,
			     const char *text)
{
	uint64_t token = 1;
	struct nl_msg msg;
	bool good;

	nl_begin(nl, &msg, FABREX_CMD_BIND, 0);
	nl_put_u32(&msg, FABREX_A_CHANGE_ID, self->endpoint);
	nl_put_u32(&msg, FABREX_A_CHANGE_TARGET, self->host);
	nl_put(&msg, FABREX_A_CHANGE_DRY_RUN, NULL, 0);
	good = as_wanted(nl, &msg, text, "bind");
	nl_begin(nl, &msg, FABREX_CMD_UNBIND, 0);
	nl_put_u32(&msg, FABREX_A_CHANGE_ID, self->endpoint);
	nl_put(&msg, FABREX_A_CHANGE_FORCE, NULL, 0);
	nl_put(&msg, FABREX_A_CHANGE_DRY_RUN, NULL, 0);
	good &= as_wanted(nl, &msg, text, "unbind");
	nl_begin(nl, &msg, FABREX_CMD_PORT_SET, 0);
	nl_put_u32(&msg, FABREX_A_CHANGE_ID, self->host);
	nl_put_u32(&msg, FABREX_A_CHANGE_ACTION, FABREX_PORT_ACTION_ENABLE);
	good &= as_wanted(nl, &msg, text, "port-set");
	nl_begin(nl, &msg, FABREX_CMD_RELEASE_REPLY, 0);
	nl_put_u32(&msg, FABREX_A_CHANGE_ID, self->endpoint);
	nl_put(&msg, FABREX_A_CHANGE_TOKEN, &token, sizeof(token));
	return good & as_wanted(nl, &msg, text, "release-reply");
}

static bool counters_as_wanted(struct nl *nl, uint32_t id, const char *text)
{
	struct nl_msg msg;

	nl_begin(nl, &msg, FABREX_CMD_COUNTERS_GET, 0);
	if (id)
		nl_put_u32(&msg, FABREX_A_COUNTERS_ID, id);
	return as_wanted(nl, &msg, text, "counters-get");
}

static bool links_as_wanted(struct nl *nl, const char *text)
{
	struct nl_msg msg;
	int ret;

	nl_begin(nl, &msg, FABREX_CMD_LINK_GET, 0);
	ret = nl_dump(nl, &msg, 65536, NULL, NULL, NULL, NULL);
	if (text ? ret == -EPERM && strstr(nl->extack, text) : ret > 0)
		return true;
	printf("# link-get: %d \"%s\", wanted %s\n", ret, nl->extack,
	       text ? text : "links");
	return false;
}

/* A release request that is answered elsewhere is not for containers. */
static bool group_as_wanted(struct nl *nl, const struct who *who)
{
	int ret = setsockopt(nl->fd, 270, NETLINK_ADD_MEMBERSHIP, &nl->agent,
			     sizeof(nl->agent));

	return who->unshare || who->lent || (ret == 0) == !who->change;
}

static bool reads(struct nl *nl)
{
	struct nl_msg msg;

	nl_begin(nl, &msg, FABREX_CMD_OBJECT_GET, 0);
	return nl_dump(nl, &msg, 65536, NULL, NULL, NULL, NULL) > 0;
}

static bool child(FIXTURE_DATA(permission) *self, const struct who *who)
{
	struct nl nl;

	if (who->unshare && unshare(who->unshare))
		return false;
	if (who->lent && seteuid(65534))
		return false;
	if (keep(who->caps) || nl_open(&nl))
		return false;
	if (who->lent && seteuid(0))
		return false;
	return reads(&nl) & change_as_wanted(self, &nl, who->change) &
	       counters_as_wanted(&nl, 0, NULL) &
	       counters_as_wanted(&nl, self->own, NULL) &
	       counters_as_wanted(&nl, self->host, who->watch) &
	       counters_as_wanted(&nl, self->endpoint, who->watch) &
	       links_as_wanted(&nl, who->watch) &
	       group_as_wanted(&nl, who);
}

static bool tried(FIXTURE_DATA(permission) *self, const struct who *who)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(!child(self, who));
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

#define NEEDS_ADMIN	"needs CAP_SYS_ADMIN"
#define NEEDS_PERFMON	"need CAP_PERFMON or CAP_SYS_ADMIN"
#define NAMESPACE	"only from the initial network namespace"

TEST_F(permission, root)
{
	struct who who = { .caps = ALL };

	EXPECT_TRUE(tried(self, &who));
}

TEST_F(permission, only_sys_admin)
{
	struct who who = { .caps = CAP(CAP_SYS_ADMIN) };

	EXPECT_TRUE(tried(self, &who));
}

TEST_F(permission, without_sys_admin)
{
	struct who who = { .caps = ~(CAP(CAP_SYS_ADMIN) | CAP(CAP_PERFMON)),
			   .change = NEEDS_ADMIN, .watch = NEEDS_PERFMON };

	EXPECT_TRUE(tried(self, &who));
}

TEST_F(permission, only_net_admin)
{
	struct who who = { .caps = CAP(CAP_NET_ADMIN),
			   .change = NEEDS_ADMIN, .watch = NEEDS_PERFMON };

	EXPECT_TRUE(tried(self, &who));
}

TEST_F(permission, only_perfmon)
{
	struct who who = { .caps = CAP(CAP_PERFMON), .change = NEEDS_ADMIN };

	EXPECT_TRUE(tried(self, &who));
}

/* A container as root, without a user namespace. */
TEST_F(permission, network_namespace)
{
	struct who who = { .unshare = CLONE_NEWNET, .caps = ALL,
			   .change = NAMESPACE, .watch = NAMESPACE };

	EXPECT_TRUE(tried(self, &who));
}

TEST_F(permission, net_admin_in_network_namespace)
{
	struct who who = { .unshare = CLONE_NEWNET,
			   .caps = CAP(CAP_NET_ADMIN),
			   .change = NAMESPACE, .watch = NAMESPACE };

	EXPECT_TRUE(tried(self, &who));
}

TEST_F(permission, user_namespace)
{
	struct who who = { .unshare = CLONE_NEWUSER, .caps = ALL,
			   .change = NEEDS_ADMIN, .watch = NEEDS_PERFMON };

	EXPECT_TRUE(tried(self, &who));
}

TEST_F(permission, user_and_network_namespace)
{
	struct who who = { .unshare = CLONE_NEWUSER | CLONE_NEWNET,
			   .caps = ALL, .change = NAMESPACE,
			   .watch = NAMESPACE };

	EXPECT_TRUE(tried(self, &who));
}

/* A set-uid program that is made to write to the socket it was started with. */
TEST_F(permission, socket_of_another)
{
	struct who who = { .caps = ALL, .lent = true, .change = NEEDS_ADMIN,
			   .watch = NEEDS_PERFMON };

	EXPECT_TRUE(tried(self, &who));
}

TEST_HARNESS_MAIN
