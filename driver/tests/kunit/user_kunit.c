// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounts: quotas, their arithmetic, and who has which.
 */
#include "kunit.h"
#include "user.c"

static int user_begin_test(struct kunit *test)
{
	struct fabrex_port *port;

	port = kunit_kzalloc(test, sizeof(*port), GFP_KERNEL);
	if (!port)
		return -ENOMEM;
	mutex_init(&port->users_lock);
	INIT_LIST_HEAD(&port->users);
	test->priv = port;
	return 0;
}

static void user_end_test(struct kunit *test)
{
	struct fabrex_port *port = test->priv;

	if (port)
		fabrex_users_free(port);
}

static void user_limits(struct kunit *test)
{
	atomic64_t used = ATOMIC64_INIT(0);

	KUNIT_EXPECT_TRUE(test, fabrex_add_below(&used, 3, 5));
	KUNIT_EXPECT_FALSE(test, fabrex_add_below(&used, 3, 5));
	KUNIT_EXPECT_EQ(test, atomic64_read(&used), 3ll);
	KUNIT_EXPECT_TRUE(test, fabrex_add_below(&used, 2, 5));
	KUNIT_EXPECT_FALSE(test, fabrex_add_below(&used, 1, 5));
	/* A limit that was lowered below what is in use. */
	KUNIT_EXPECT_FALSE(test, fabrex_add_below(&used, 1, 2));
	/* Sums that would overflow. */
	KUNIT_EXPECT_FALSE(test, fabrex_add_below(&used, U64_MAX, S64_MAX));
	KUNIT_EXPECT_FALSE(test, fabrex_add_below(&used, S64_MAX, S64_MAX));
	KUNIT_EXPECT_EQ(test, atomic64_read(&used), 5ll);
	KUNIT_EXPECT_TRUE(test, fabrex_add_below(&used, S64_MAX - 5, S64_MAX));
}

static void user_charges(struct kunit *test)
{
	struct fabrex_port *port = test->priv;
	struct fabrex_user *user;

	user = fabrex_user_get(port, current_cred());
	KUNIT_ASSERT_NOT_NULL(test, user);
	port->quota[FABREX_RES_WINDOW] = 4;
	KUNIT_EXPECT_EQ(test, fabrex_charge(port, user, FABREX_RES_WINDOW, 3),
			0);
	KUNIT_EXPECT_EQ(test, fabrex_charge(port, user, FABREX_RES_WINDOW, 2),
			-EDQUOT);
	/* Windows count in slots for the user, one by one for the port. */
	KUNIT_EXPECT_EQ(test, atomic_read(&port->count[FABREX_RES_WINDOW]), 1);
	/* 0 is no limit, and types do not count for one another. */
	KUNIT_EXPECT_EQ(test, fabrex_charge(port, user, FABREX_RES_QUEUE,
					    100000), 0);
	fabrex_uncharge(port, user, FABREX_RES_QUEUE, 100000);
	fabrex_uncharge(port, user, FABREX_RES_WINDOW, 3);
	KUNIT_EXPECT_EQ(test, atomic64_read(&user->used[FABREX_RES_WINDOW]),
			0ll);

	port->quota_bytes = PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, fabrex_charge_bytes(port, user, PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, fabrex_charge_bytes(port, user, 1), -EDQUOT);
	port->quota_bytes = U64_MAX;
	KUNIT_EXPECT_EQ(test, fabrex_charge_bytes(port, user, U64_MAX),
			-EDQUOT);
	fabrex_uncharge_bytes(port, user, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, atomic64_read(&port->charged), 0ll);
	fabrex_user_put(port, user);
}

static void user_accounts(struct kunit *test)
{
	struct fabrex_port *port = test->priv;
	struct fabrex_user *user, *again;

	user = fabrex_user_get(port, current_cred());
	KUNIT_ASSERT_NOT_NULL(test, user);
	again = fabrex_user_get(port, current_cred());
	KUNIT_EXPECT_PTR_EQ(test, again, user);
	fabrex_user_put(port, again);
	KUNIT_EXPECT_FALSE(test, list_empty(&port->users));
	fabrex_user_put(port, user);
	KUNIT_EXPECT_TRUE(test, list_empty(&port->users));
}

/* Who owes for a wrong key still does after closing all files. */
static void user_debts(struct kunit *test)
{
	struct fabrex_port *port = test->priv;
	struct fabrex_user *user;
	s64 paid;

	user = fabrex_user_get(port, current_cred());
	KUNIT_ASSERT_NOT_NULL(test, user);
	KUNIT_ASSERT_EQ(test, fabrex_user_try_begin(user), 0);
	KUNIT_EXPECT_FALSE(test, fabrex_user_take_turn(user));
	fabrex_user_try_end(user, true);
	KUNIT_EXPECT_GT(test, user->paid, 0ll);
	/* Far away: this machine may be slow. */
	paid = ktime_get_ns() + 3600ll * NSEC_PER_SEC;
	user->paid = paid;
	fabrex_user_put(port, user);
	KUNIT_ASSERT_FALSE(test, list_empty(&port->users));
	user = fabrex_user_get(port, current_cred());
	KUNIT_ASSERT_NOT_NULL(test, user);
	KUNIT_EXPECT_EQ(test, user->paid, paid);
	user->paid = 0;
	fabrex_user_put(port, user);
	KUNIT_EXPECT_TRUE(test, list_empty(&port->users));
}

static struct kunit_case user_cases[] = {
	KUNIT_CASE(user_limits),
	KUNIT_CASE(user_charges),
	KUNIT_CASE(user_accounts),
	KUNIT_CASE(user_debts),
	{}
};

static struct kunit_suite user_suite = {
	.name = "fabrex_user",
	.init = user_begin_test,
	.exit = user_end_test,
	.test_cases = user_cases,
};

kunit_test_suites(&user_suite);
