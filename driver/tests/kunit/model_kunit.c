// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mirror of the fabric: elements, scans, peers.
 */
#include "kunit.h"
#include "model.c"

/* Of context.c, for the peer query: the answer stays where it is. */
int fabrex_respond(struct fabrex_ucmd *ucmd)
{
	return 0;
}

/* That asks; too large for the stack. */
static struct fabrex_file model_file;

static int model_begin_test(struct kunit *test)
{
	struct fabrex_port *port;

	port = kunit_kzalloc(test, sizeof(*port), GFP_KERNEL);
	if (!port)
		return -ENOMEM;
	port->info.max_peers = 8;
	test->priv = port;
	model_file.port = port;
	return fabrex_model_init(&port->model);
}

static void model_end_test(struct kunit *test)
{
	struct fabrex_port *port = test->priv;

	if (port)
		fabrex_model_destroy(&port->model);
}

static int model_put(struct fabrex_port *port, u32 id, const char *name,
		     u8 state)
{
	struct fabrex_object object = {
		.type = FABREX_OBJECT_TYPE_ENDPOINT,
		.id = id,
		.state = state,
		.peer = FABREX_PEER_NONE,
	};
	struct fabrex_object before;

	strscpy(object.name, name, sizeof(object.name));
	return fabrex_model_store(port, &object, &before);
}

static void model_put_host(struct fabrex_port *port, u32 host, u32 id, u32 peer,
			   u32 generation)
{
	struct fabrex_object object = {
		.type = FABREX_OBJECT_TYPE_HOST,
		.id = host,
		.state = FABREX_HOST_STATE_UP,
		.peer = FABREX_PEER_NONE,
	};
	struct fabrex_object before;

	snprintf(object.name, sizeof(object.name), "host%u", host);
	fabrex_model_store(port, &object, &before);
	object.type = FABREX_OBJECT_TYPE_PORT;
	object.kind = FABREX_PORT_KIND_HOST;
	object.state = FABREX_LINK_STATE_UP;
	object.id = id;
	object.link = host;
	object.peer = peer;
	object.generation = generation;
	snprintf(object.name, sizeof(object.name), "host%u.0", host);
	fabrex_model_store(port, &object, &before);
}

static void model_elements(struct kunit *test)
{
	struct fabrex_port *port = test->priv;
	struct fabrex_object object;
	char name[FABREX_NAME_LEN];

	KUNIT_EXPECT_EQ(test, model_put(port, 0, "none", 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, model_put(port, 1, "", 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, model_put(port, 5, "five", 1), 0);
	KUNIT_EXPECT_EQ(test, model_put(port, 9, "nine", 2), 0);

	KUNIT_EXPECT_EQ(test, fabrex_model_get(port, 5, &object), 0);
	KUNIT_EXPECT_STREQ(test, object.name, "five");
	KUNIT_EXPECT_EQ(test, fabrex_model_get(port, 6, &object), -ENOENT);
	KUNIT_EXPECT_EQ(test, fabrex_model_find(port, "nine", &object), 0);
	KUNIT_EXPECT_EQ(test, object.id, 9u);
	KUNIT_EXPECT_EQ(test, fabrex_model_next(port, 6, NULL, NULL, &object),
			0);
	KUNIT_EXPECT_EQ(test, object.id, 9u);
	KUNIT_EXPECT_EQ(test, fabrex_model_next(port, 10, NULL, NULL, &object),
			-ENOENT);
	fabrex_model_name(port, 6, name);
	KUNIT_EXPECT_STREQ(test, name, "#6");

	/* Another name: the old one finds nothing. */
	KUNIT_EXPECT_EQ(test, model_put(port, 5, "cinq", 1), 0);
	KUNIT_EXPECT_EQ(test, fabrex_model_find(port, "five", &object),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, fabrex_model_find(port, "cinq", &object), 0);
	KUNIT_EXPECT_EQ(test, port->model.count, 2u);
}

/* Changes are told once a scan has ended, and only if there are any. */
static void model_changes(struct kunit *test)
{
	struct fabrex_port *port = test->priv;
	struct fabrex_object object = {}, before = {};
	u32 generation;

	fabrex_model_begin(port);
	KUNIT_EXPECT_EQ(test, model_put(port, 5, "five", 1), 0);
	KUNIT_EXPECT_EQ(test, model_put(port, 5, "five", 2), 0);
	fabrex_model_end(port);
	generation = fabrex_model_generation(port);
	KUNIT_EXPECT_EQ(test, model_put(port, 5, "five", 2), 0);
	KUNIT_EXPECT_EQ(test, fabrex_model_generation(port), generation);
	KUNIT_EXPECT_EQ(test, model_put(port, 6, "new", 0), 0);

	fabrex_model_get(port, 5, &object);
	object.state = 3;
	KUNIT_EXPECT_EQ(test, fabrex_model_store(port, &object, &before), 1);
	KUNIT_EXPECT_EQ(test, before.state, 2);
	KUNIT_EXPECT_NE(test, fabrex_model_generation(port), generation);
}

static void model_scans(struct kunit *test)
{
	struct fabrex_port *port = test->priv;
	struct fabrex_object object;

	fabrex_model_begin(port);
	model_put(port, 1, "one", 0);
	model_put(port, 2, "two", 0);
	model_put(port, 3, "three", 0);
	fabrex_model_end(port);

	/* Given up: nothing is removed, whatever was seen. */
	fabrex_model_begin(port);
	model_put(port, 1, "one", 1);
	fabrex_model_begin(port);
	KUNIT_EXPECT_EQ(test, port->model.count, 3u);
	/* What has not changed was seen, too. */
	model_put(port, 2, "two", 0);
	model_put(port, 3, "three", 7);
	fabrex_model_end(port);
	KUNIT_EXPECT_EQ(test, fabrex_model_get(port, 1, &object), -ENOENT);
	KUNIT_EXPECT_EQ(test, fabrex_model_get(port, 2, &object), 0);
	KUNIT_EXPECT_EQ(test, fabrex_model_get(port, 3, &object), 0);
	KUNIT_EXPECT_EQ(test, port->model.count, 2u);
	/* An end without a begin ends nothing. */
	fabrex_model_end(port);
	KUNIT_EXPECT_EQ(test, port->model.count, 2u);
}

static void model_is_bounded(struct kunit *test)
{
	struct fabrex_port *port = test->priv;

	KUNIT_ASSERT_EQ(test, model_put(port, 1, "one", 0), 0);
	port->model.count = MODEL_MAX;
	KUNIT_EXPECT_EQ(test, model_put(port, 2, "two", 0), -ENOSPC);
	KUNIT_EXPECT_EQ(test, model_put(port, 1, "one", 1), 0);
	/* A scan replaces all that was there before. */
	fabrex_model_begin(port);
	KUNIT_EXPECT_EQ(test, model_put(port, 2, "two", 0), 0);
	port->model.seen = MODEL_MAX;
	KUNIT_EXPECT_EQ(test, model_put(port, 3, "three", 0), -ENOSPC);
	port->model.count = 2;
}

static void model_generation_is_never_0(struct kunit *test)
{
	struct fabrex_port *port = test->priv;

	port->model.generation = U32_MAX;
	model_put(port, 1, "one", 0);
	KUNIT_EXPECT_EQ(test, fabrex_model_generation(port), 1u);
}

static void model_peers(struct kunit *test)
{
	struct fabrex_port *port = test->priv;
	struct fabrex_peer_query cmd = { .peer = 3 };
	struct fabrex_ucmd ucmd = { .file = &model_file, .cmd = &cmd };
	struct fabrex_object object;
	struct fabrex_peer known;

	model_put_host(port, 10, 11, 3, 5);
	KUNIT_EXPECT_EQ(test, fabrex_cmd_peer_query(&ucmd), 0);
	KUNIT_EXPECT_EQ(test, cmd.out_state, (u32)FABREX_PEER_UP);
	KUNIT_EXPECT_EQ(test, cmd.out_generation, 5u);
	KUNIT_EXPECT_STREQ(test, (char *)cmd.out_host, "host10");

	/* An event knows better than a scan, unless that is newer. */
	KUNIT_EXPECT_TRUE(test, fabrex_model_peer(port, 3, false, 5, &object));
	KUNIT_EXPECT_EQ(test, object.id, 11u);
	KUNIT_EXPECT_EQ(test, fabrex_cmd_peer_query(&ucmd), 0);
	KUNIT_EXPECT_EQ(test, cmd.out_state, (u32)FABREX_PEER_DOWN);
	model_put_host(port, 10, 11, 3, 6);
	KUNIT_EXPECT_EQ(test, fabrex_cmd_peer_query(&ucmd), 0);
	KUNIT_EXPECT_EQ(test, cmd.out_state, (u32)FABREX_PEER_UP);
	KUNIT_EXPECT_EQ(test, cmd.out_generation, 6u);

	fabrex_model_peer_known(port, 3, &known);
	KUNIT_EXPECT_TRUE(test, known.seen && !known.up);
	fabrex_model_forget_peers(port);
	fabrex_model_peer_known(port, 3, &known);
	KUNIT_EXPECT_FALSE(test, known.seen);
	KUNIT_EXPECT_FALSE(test, fabrex_model_peer(port, 4, true, 1, &object));
}

static void model_peer_queries(struct kunit *test)
{
	struct fabrex_port *port = test->priv;
	struct fabrex_peer_query cmd = { .flags = FABREX_PEER_NEXT };
	struct fabrex_ucmd ucmd = { .file = &model_file, .cmd = &cmd };

	model_put_host(port, 10, 11, 6, 1);
	model_put_host(port, 20, 21, 2, 1);
	/* Beyond max_peers. */
	model_put_host(port, 30, 31, 9, 1);
	KUNIT_EXPECT_EQ(test, fabrex_cmd_peer_query(&ucmd), 0);
	KUNIT_EXPECT_EQ(test, cmd.out_peer, 2u);
	cmd = (struct fabrex_peer_query) {
		.flags = FABREX_PEER_NEXT, .peer = 3,
	};
	KUNIT_EXPECT_EQ(test, fabrex_cmd_peer_query(&ucmd), 0);
	KUNIT_EXPECT_EQ(test, cmd.out_peer, 6u);
	cmd = (struct fabrex_peer_query) {
		.flags = FABREX_PEER_NEXT, .peer = 7,
	};
	KUNIT_EXPECT_EQ(test, fabrex_cmd_peer_query(&ucmd), -ENOENT);
	cmd = (struct fabrex_peer_query) {
		.flags = FABREX_PEER_BY_NAME, .name = "host10",
	};
	KUNIT_EXPECT_EQ(test, fabrex_cmd_peer_query(&ucmd), 0);
	KUNIT_EXPECT_EQ(test, cmd.out_peer, 6u);
	cmd = (struct fabrex_peer_query) {
		.flags = FABREX_PEER_BY_NAME, .name = "host20.0",
	};
	KUNIT_EXPECT_EQ(test, fabrex_cmd_peer_query(&ucmd), 0);
	KUNIT_EXPECT_EQ(test, cmd.out_peer, 2u);
	cmd = (struct fabrex_peer_query) { .flags = FABREX_PEER_BY_NAME };
	memset(cmd.name, 'x', sizeof(cmd.name));
	KUNIT_EXPECT_EQ(test, fabrex_cmd_peer_query(&ucmd), -EINVAL);
	cmd = (struct fabrex_peer_query) { .name = "host10" };
	KUNIT_EXPECT_EQ(test, fabrex_cmd_peer_query(&ucmd), -EINVAL);
}

static struct kunit_case model_cases[] = {
	KUNIT_CASE(model_elements),
	KUNIT_CASE(model_changes),
	KUNIT_CASE(model_scans),
	KUNIT_CASE(model_is_bounded),
	KUNIT_CASE(model_generation_is_never_0),
	KUNIT_CASE(model_peers),
	KUNIT_CASE(model_peer_queries),
	{}
};

static struct kunit_suite model_suite = {
	.name = "fabrex_model",
	.init = model_begin_test,
	.exit = model_end_test,
	.test_cases = model_cases,
};

kunit_test_suites(&model_suite);
