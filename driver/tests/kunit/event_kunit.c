// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of an open file: order, overflow, and the last one.
 */
#include "kunit.h"
#include "event.c"

MODULE_DESCRIPTION("fabrex: KUnit tests of the core");
MODULE_LICENSE("GPL");

static struct fabrex_events *event_queue(struct kunit *test)
{
	struct fabrex_events *events;

	events = kunit_kzalloc(test, sizeof(*events), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, events);
	fabrex_events_init(events);
	return events;
}

static void event_push(struct fabrex_events *events, u32 id)
{
	const struct fabrex_event event = {
		.type = FABREX_EVENT_QUEUE_ERROR,
		.id = id,
	};

	fabrex_events_push(events, &event);
}

/* Take the next one; type 0 if there is none. */
static struct fabrex_event event_take(struct fabrex_events *events)
{
	struct fabrex_event event;

	if (fabrex_events_peek(events, &event))
		fabrex_events_drop(events, &event);
	return event;
}

static void event_order(struct kunit *test)
{
	struct fabrex_events *events = event_queue(test);
	struct fabrex_event event;
	u32 i;

	KUNIT_EXPECT_FALSE(test, fabrex_events_ready(events));
	for (i = 1; i <= 3 * FABREX_EVENT_SLOTS; i++) {
		event_push(events, i);
		KUNIT_EXPECT_TRUE(test, fabrex_events_ready(events));
		event = event_take(events);
		KUNIT_EXPECT_EQ(test, event.id, i);
		KUNIT_EXPECT_EQ(test, event.seq, (u64)i);
	}
	KUNIT_EXPECT_FALSE(test, fabrex_events_ready(events));
	KUNIT_EXPECT_EQ(test, event_take(events).type, 0u);
}

/* What does not fit is told of in its place, then the queue is as new. */
static void event_overflow(struct kunit *test)
{
	struct fabrex_events *events = event_queue(test);
	struct fabrex_event event;
	u32 i;

	for (i = 1; i <= FABREX_EVENT_SLOTS + 5; i++)
		event_push(events, i);
	KUNIT_EXPECT_EQ(test, event_take(events).id, 1u);
	/* There is room again, but it would come ahead of what was dropped. */
	event_push(events, 1000);
	for (i = 2; i <= FABREX_EVENT_SLOTS; i++)
		KUNIT_EXPECT_EQ(test, event_take(events).id, i);
	event = event_take(events);
	KUNIT_EXPECT_EQ(test, event.type, (u32)FABREX_EVENT_LOST);
	KUNIT_EXPECT_EQ(test, event.error, 6u);
	KUNIT_EXPECT_EQ(test, event.seq, (u64)FABREX_EVENT_SLOTS + 6);
	KUNIT_EXPECT_FALSE(test, fabrex_events_ready(events));
	event_push(events, 7);
	KUNIT_EXPECT_EQ(test, event_take(events).id, 7u);
}

/* More is dropped between looking at the count and taking it. */
static void event_overflow_goes_on(struct kunit *test)
{
	struct fabrex_events *events = event_queue(test);
	struct fabrex_event event;

	fabrex_events_lose(events);
	KUNIT_ASSERT_TRUE(test, fabrex_events_peek(events, &event));
	KUNIT_EXPECT_EQ(test, event.error, 1u);
	fabrex_events_lose(events);
	fabrex_events_drop(events, &event);
	event = event_take(events);
	KUNIT_EXPECT_EQ(test, event.type, (u32)FABREX_EVENT_LOST);
	KUNIT_EXPECT_EQ(test, event.error, 1u);
	KUNIT_EXPECT_FALSE(test, fabrex_events_ready(events));
}

static void event_gone_is_last(struct kunit *test)
{
	struct fabrex_events *events = event_queue(test);

	event_push(events, 1);
	fabrex_events_gone(events);
	KUNIT_EXPECT_EQ(test, event_take(events).id, 1u);
	KUNIT_EXPECT_TRUE(test, fabrex_events_ready(events));
	KUNIT_EXPECT_EQ(test, event_take(events).type, (u32)FABREX_EVENT_GONE);
	KUNIT_EXPECT_FALSE(test, fabrex_events_ready(events));
	/* A reader does not wait for more. */
	KUNIT_EXPECT_EQ(test, fabrex_events_wait(events, true), 0);
}

/* Readers that know a shorter record get whole ones of theirs, or one. */
static void event_records(struct kunit *test)
{
	const u32 size = sizeof(struct fabrex_event);

	KUNIT_EXPECT_EQ(test, fabrex_event_room(0, 2 * size), size);
	KUNIT_EXPECT_EQ(test, fabrex_event_room(size, 2 * size), size);
	KUNIT_EXPECT_EQ(test, fabrex_event_room(size, 2 * size - 1), 0u);
	KUNIT_EXPECT_EQ(test, fabrex_event_room(0, FABREX_EVENT_SIZE_MIN),
			FABREX_EVENT_SIZE_MIN);
	KUNIT_EXPECT_EQ(test, fabrex_event_room(0, FABREX_EVENT_SIZE_MIN - 1),
			0u);
}

static struct kunit_case event_cases[] = {
	KUNIT_CASE(event_order),
	KUNIT_CASE(event_overflow),
	KUNIT_CASE(event_overflow_goes_on),
	KUNIT_CASE(event_gone_is_last),
	KUNIT_CASE(event_records),
	{}
};

static struct kunit_suite event_suite = {
	.name = "fabrex_event",
	.test_cases = event_cases,
};

kunit_test_suites(&event_suite);
