// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which operations a backend must have before its port is registered, and what
 * those it has let the port do. Run by make check.
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
	u32 can;
};

#define DATA(n, can)	{ #n, offsetof(struct fabrex_data_ops, n), can }
#define FABRIC(n, can)	{ #n, offsetof(struct fabrex_fabric_ops, n), can }
#define N(table)	(sizeof(table) / sizeof(*(table)))

static const struct named mandatory[] = {
	DATA(queue_create, 0), DATA(queue_destroy, 0), DATA(mr_create, 0),
	DATA(mr_pages, 0), DATA(mr_destroy, 0),
};

static const struct named with_windows[] = {
	DATA(window_create, 0), DATA(window_destroy, 0),
};

static const struct named optional_data[] = {
	DATA(resolve, FABREX_CAN_RESOLVE),
	DATA(mr_invalidate, FABREX_CAN_DMABUF), DATA(mr_importer, 0),
	DATA(queue_counters, 0),
};

static const struct named optional_fabric[] = {
	FABRIC(bind, FABREX_CAN_BIND), FABRIC(unbind, FABREX_CAN_UNBIND),
	FABRIC(port_control, FABREX_CAN_PORT_SET), FABRIC(counters, 0),
	FABRIC(links, 0),
	FABRIC(release_reply, FABREX_CAN_REPLY), FABRIC(endpoint_pdev, 0),
};

struct backend {
	struct fabrex_fabric_ops fabric;
	struct fabrex_data_ops data;
	struct fabrex_port_ops ops;
};

static void fill(void *table, size_t size)
{
	void (*fn)(void) = nothing;
	size_t i;

	for (i = 0; i + sizeof(fn) <= size; i += sizeof(fn))
		memcpy((char *)table + i, &fn, sizeof(fn));
}

static void clear(void *table, const struct named *op)
{
	memset((char *)table + op->offset, 0, sizeof(void (*)(void)));
}

static void complete(struct backend *b)
{
	memset(b, 0, sizeof(*b));
	fill(&b->fabric, sizeof(b->fabric));
	fill(&b->data, sizeof(b->data));
	b->ops.fabric = &b->fabric;
	b->ops.data = &b->data;
}

static bool misses(const struct backend *b, bool windows, const char *name)
{
	const char *missing = fabrex_ops_missing(&b->ops, windows);

	return missing && !strcmp(missing, name);
}

TEST(each_mandatory_one_is_missed)
{
	struct backend b;
	size_t i;

	for (i = 0; i < N(mandatory); i++) {
		complete(&b);
		clear(&b.data, &mandatory[i]);
		CHECK(misses(&b, false, mandatory[i].name));
		CHECK(misses(&b, true, mandatory[i].name));
	}
}

TEST(windows_only_with_slots)
{
	struct backend b;
	size_t i;

	for (i = 0; i < N(with_windows); i++) {
		complete(&b);
		clear(&b.data, &with_windows[i]);
		CHECK(!fabrex_ops_missing(&b.ops, false));
		CHECK(misses(&b, true, with_windows[i].name));
	}
}

TEST(either_table_may_be_absent)
{
	struct backend b;

	complete(&b);
	CHECK(!fabrex_ops_missing(&b.ops, true));
	b.ops.fabric = NULL;
	CHECK(!fabrex_ops_missing(&b.ops, true));
	CHECK(fabrex_ops_can(&b.ops) ==
	      (FABREX_CAN_DATA | FABREX_CAN_RESOLVE | FABREX_CAN_DMABUF));
	b.ops.data = NULL;
	CHECK(misses(&b, false, "data"));
	b.ops.fabric = &b.fabric;
	CHECK(!fabrex_ops_missing(&b.ops, false));
	CHECK(fabrex_ops_can(&b.ops) == (FABREX_CAN_CHANGE | FABREX_CAN_REPLY));
}

TEST(an_optional_one_takes_away_what_it_does)
{
	struct backend b;
	size_t i;
	u32 all;

	complete(&b);
	all = fabrex_ops_can(&b.ops);
	for (i = 0; i < N(optional_data); i++) {
		complete(&b);
		clear(&b.data, &optional_data[i]);
		CHECK(!fabrex_ops_missing(&b.ops, true));
		CHECK(fabrex_ops_can(&b.ops) == (all & ~optional_data[i].can));
	}
	for (i = 0; i < N(optional_fabric); i++) {
		complete(&b);
		clear(&b.fabric, &optional_fabric[i]);
		CHECK(!fabrex_ops_missing(&b.ops, true));
		CHECK(fabrex_ops_can(&b.ops) == (all & ~optional_fabric[i].can));
	}
}
