// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations that a backend has to have before its port is registered. Run by
 * make check.
 */
#include <stddef.h>
#include <string.h>

#include "ops.h"
#include "tap.h"

static void nothing(void)
{
}

struct named {
	const char *name;
	size_t offset;
};

#define OP(n) { #n, offsetof(struct fabrex_port_ops, n) }

static const struct named always[] = {
	OP(queue_create), OP(queue_destroy), OP(mr_create), OP(mr_pages),
	OP(mr_invalidate), OP(mr_destroy),
};

static const struct named with_windows[] = {
	OP(window_create), OP(window_destroy),
};

static const struct named optional[] = {
	OP(resolve), OP(bind), OP(unbind), OP(port_control), OP(counters),
	OP(release_reply), OP(endpoint_pdev),
};

static void set(struct fabrex_port_ops *ops, const struct named *op,
		void (*fn)(void))
{
	memcpy((char *)ops + op->offset, &fn, sizeof(fn));
}

static struct fabrex_port_ops complete(void)
{
	struct fabrex_port_ops ops;
	void (*fn)(void) = nothing;
	size_t i;

	memset(&ops, 0, sizeof(ops));
	for (i = 0; i + sizeof(fn) <= sizeof(ops); i += sizeof(fn))
		memcpy((char *)&ops + i, &fn, sizeof(fn));
	return ops;
}

static bool says(const struct fabrex_port_ops *ops, bool windows,
		 const char *name)
{
	const char *missing = fabrex_ops_missing(ops, windows);

	return missing && !strcmp(missing, name);
}

TEST(each_that_is_needed_is_missed)
{
	struct fabrex_port_ops ops;
	size_t i;

	for (i = 0; i < sizeof(always) / sizeof(*always); i++) {
		ops = complete();
		set(&ops, &always[i], NULL);
		CHECK(says(&ops, false, always[i].name));
		CHECK(says(&ops, true, always[i].name));
	}
}

TEST(windows_only_with_slots)
{
	struct fabrex_port_ops ops;
	size_t i;

	for (i = 0; i < sizeof(with_windows) / sizeof(*with_windows); i++) {
		ops = complete();
		set(&ops, &with_windows[i], NULL);
		CHECK(!fabrex_ops_missing(&ops, false));
		CHECK(says(&ops, true, with_windows[i].name));
	}
}

TEST(the_others_are_not)
{
	struct fabrex_port_ops ops = complete();
	size_t i;

	CHECK(!fabrex_ops_missing(&ops, true));
	for (i = 0; i < sizeof(optional) / sizeof(*optional); i++)
		set(&ops, &optional[i], NULL);
	CHECK(!fabrex_ops_missing(&ops, true));
}
