// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What NCCL and RCCL rely on, over every version of the interface.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"

const unsigned int test_limit_s = 600;

unsigned int test_objects(void)
{
	return 0;
}

#define LARGE	((size_t)9 << 20)

static char *buffer(size_t n)
{
	char *p = malloc(n ? n : 1);

	CHECK(p);
	memset(p, 0x55, n);
	return p;
}

static void *reg(struct side *side, void *data, size_t n)
{
	void *mhandle = NULL;

	CHECK_EQ(side->p->reg(side->comm, data, n, NCCL_PTR_HOST, &mhandle),
		 NCCL_SUCCESS);
	return mhandle;
}

static void dereg(struct side *side, void *mhandle)
{
	CHECK_EQ(side->p->dereg(side->comm, mhandle), NCCL_SUCCESS);
}

/* Both sides, for each version; the sender is a child. */
static void both(void (*receive)(struct side *side, int fd),
		 void (*play)(int fd, const void *arg))
{
	struct other other;
	struct side side;
	int i;

	plugin_load();
	for (i = 0; i < PLUGINS; i++) {
		test_note("%s", plugins[i].version);
		other_start(&other, play, &plugins[i]);
		side_receive(&side, &plugins[i], other.fd);
		receive(&side, other.fd);
		side_close(&side, false);
		other_end(&other);
	}
	plugin_unload();
}

/* ---- properties -------------------------------------------------------- */

TEST(properties)
{
	struct nccl_properties_v12 p;
	void *ctx;
	int i, n;

	plugin_load();
	for (i = 0; i < PLUGINS; i++) {
		CHECK(!strcmp(plugins[i].name(), "fabrex"));
		CHECK_EQ(plugins[i].init(&ctx), NCCL_SUCCESS);
		CHECK_EQ(plugins[i].devices(&n), NCCL_SUCCESS);
		CHECK_EQ(n, 1);
		CHECK_EQ(plugins[i].properties(0, &p), NCCL_SUCCESS);
		CHECK(p.name && p.name[0] && p.guid && p.speed > 0);
		CHECK(p.ptr_support & NCCL_PTR_HOST);
		CHECK(p.max_comms > 0 && p.max_recvs == NCCL_RECEIVES_MAX);
		CHECK(!plugins[i].wide || p.max_p2p_bytes >= 1ul << 40);
		CHECK_EQ(plugins[i].properties(1, &p), NCCL_INVALID_ARGUMENT);
		CHECK(plugin_said("no device 1"));
		CHECK_EQ(plugins[i].properties(-1, &p), NCCL_INVALID_ARGUMENT);
		CHECK_EQ(plugins[i].finalize(ctx), NCCL_SUCCESS);
	}
	plugin_unload();
}

/* Loaded again, it has forgotten everything, and kept nothing. */
TEST(loaded_again)
{
	int i;

	for (i = 0; i < 20; i++) {
		void *ctx, *listener;
		char handle[NCCL_HANDLE_MAX];

		plugin_load();
		CHECK_EQ(plugins[i % PLUGINS].init(&ctx), NCCL_SUCCESS);
		CHECK_EQ(plugins[i % PLUGINS].listen(ctx, 0, handle, &listener),
			 NCCL_SUCCESS);
		CHECK_EQ(plugins[i % PLUGINS].close_listen(listener),
			 NCCL_SUCCESS);
		CHECK_EQ(plugins[i % PLUGINS].finalize(ctx), NCCL_SUCCESS);
		plugin_unload();
	}
}

/* ---- sizes ------------------------------------------------------------- */

static const size_t sizes[] = {
	0, 1, 7, 8, 64, 4095, 4096, 100000, 1 << 20, LARGE,
};
#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))

static void send_sizes(int fd, const void *arg)
{
	char *data = buffer(LARGE);
	struct side side;
	void *mhandle;
	size_t i;

	side_send(&side, arg, fd);
	mhandle = reg(&side, data, LARGE);
	for (i = 0; i < SIZES; i++) {
		pattern(data + i, sizes[i] - (sizes[i] == LARGE ? i : 0),
			(unsigned int)i);
		CHECK_EQ(send_all(&side, data + i,
				  sizes[i] - (sizes[i] == LARGE ? i : 0),
				  (int)i, mhandle), NCCL_SUCCESS);
	}
	dereg(&side, mhandle);
	hear(fd, data, 1);
	side_close(&side, true);
	free(data);
}

static void receive_sizes(struct side *side, int fd)
{
	char *data = buffer(LARGE);
	void *mhandle = reg(side, data, LARGE);
	int size;
	size_t i, n;

	for (i = 0; i < SIZES; i++) {
		n = sizes[i] - (sizes[i] == LARGE ? i : 0);
		size = -1;
		/* There may be more room than is used. */
		CHECK_EQ(recv_all(side, data, i % 2 ? LARGE : n, (int)i, mhandle,
				  &size), NCCL_SUCCESS);
		CHECK_EQ(size, n);
		CHECK(is_pattern(data, n, (unsigned int)i));
	}
	dereg(side, mhandle);
	say(fd, "", 1);
	free(data);
}

TEST(sizes_of_all_kinds)
{
	both(receive_sizes, send_sizes);
}

/* ---- groups ------------------------------------------------------------ */

#define PART	3000u

static void send_groups(int fd, const void *arg)
{
	static const int order[NCCL_RECEIVES_MAX] = { 5, 0, 7, 2, 1, 6, 4, 3 };
	char *data = buffer(NCCL_RECEIVES_MAX * PART);
	int round, i, n;
	struct side side;
	void *mhandle;

	side_send(&side, arg, fd);
	mhandle = reg(&side, data, NCCL_RECEIVES_MAX * PART);
	for (round = 0; round < 100; round++) {
		n = 1 + round % NCCL_RECEIVES_MAX;
		for (i = 0; i < NCCL_RECEIVES_MAX; i++) {
			if (order[i] >= n)
				continue;
			pattern(data, PART, (unsigned int)(round + order[i]));
			CHECK_EQ(send_all(&side, data,
					  PART - (size_t)order[i], order[i],
					  mhandle), NCCL_SUCCESS);
		}
	}
	hear(fd, data, 1);
	dereg(&side, mhandle);
	side_close(&side, true);
	free(data);
}

static void receive_groups(struct side *side, int fd)
{
	char *data = buffer(NCCL_RECEIVES_MAX * PART);
	void *mhandle = reg(side, data, NCCL_RECEIVES_MAX * PART);
	void *at[NCCL_RECEIVES_MAX], *mhandles[NCCL_RECEIVES_MAX], *request;
	int round, i, n, tags[NCCL_RECEIVES_MAX], got[NCCL_RECEIVES_MAX];
	size_t room[NCCL_RECEIVES_MAX];

	for (i = 0; i < NCCL_RECEIVES_MAX; i++) {
		at[i] = data + (size_t)i * PART;
		mhandles[i] = mhandle;
		room[i] = PART;
		tags[i] = i;
	}
	for (round = 0; round < 100; round++) {
		n = 1 + round % NCCL_RECEIVES_MAX;
		request = NULL;
		CHECK_EQ(side->p->irecv(side->comm, n, at, room, tags, mhandles,
					&request), NCCL_SUCCESS);
		CHECK(request);
		CHECK_EQ(finish(side->p, request, got), NCCL_SUCCESS);
		for (i = 0; i < n; i++) {
			CHECK_EQ(got[i], PART - (unsigned int)i);
			CHECK(is_pattern(at[i], PART - (size_t)i,
					 (unsigned int)(round + i)));
		}
	}
	say(fd, "", 1);
	dereg(side, mhandle);
	free(data);
}

TEST(groups_in_any_order)
{
	both(receive_groups, send_groups);
}

/* ---- in flight --------------------------------------------------------- */

static void send_many(int fd, const void *arg)
{
	char *data = buffer(NCCL_REQUESTS_MAX * 64);
	void *request[NCCL_REQUESTS_MAX], *more;
	struct side side;
	void *mhandle;
	int i, size, round;

	side_send(&side, arg, fd);
	mhandle = reg(&side, data, NCCL_REQUESTS_MAX * 64);
	/* Nobody has posted a receive. */
	more = data;
	CHECK_EQ(side.p->isend(side.comm, data, 8, 0, mhandle, &more),
		 NCCL_SUCCESS);
	CHECK(!more);
	say(fd, "", 1);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < NCCL_REQUESTS_MAX; i++) {
			pattern(data + i * 64, 64, (unsigned int)(round + i));
			do {
				CHECK_EQ(side.p->isend(side.comm, data + i * 64,
						       64, 9, mhandle,
						       &request[i]),
					 NCCL_SUCCESS);
			} while (!request[i]);
		}
		CHECK_EQ(side.p->isend(side.comm, data, 8, 0, mhandle, &more),
			 NCCL_SUCCESS);
		CHECK(!more);
		for (i = NCCL_REQUESTS_MAX; i-- > 0;) {
			CHECK_EQ(finish(side.p, request[i], &size),
				 NCCL_SUCCESS);
			CHECK_EQ(size, 64);
		}
	}
	hear(fd, data, 1);
	dereg(&side, mhandle);
	side_close(&side, true);
	free(data);
}

static void receive_many(struct side *side, int fd)
{
	char *data = buffer(NCCL_REQUESTS_MAX * 64), go;
	void *mhandle = reg(side, data, NCCL_REQUESTS_MAX * 64);
	void *request[NCCL_REQUESTS_MAX], *at, *more;
	int i, k, size, round, tag = 9;
	size_t n = 64;

	hear(fd, &go, 1);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < NCCL_REQUESTS_MAX; i++) {
			at = data + i * 64;
			CHECK_EQ(side->p->irecv(side->comm, 1, &at, &n, &tag,
						&mhandle, &request[i]),
				 NCCL_SUCCESS);
			CHECK(request[i]);
		}
		more = NULL;
		CHECK_EQ(side->p->irecv(side->comm, 1, &at, &n, &tag, &mhandle,
					&more), NCCL_SUCCESS);
		CHECK(!more);
		for (k = 0; k < NCCL_REQUESTS_MAX; k++) {
			/* In any order. */
			i = k * (round % 2 ? 5 : 1) % NCCL_REQUESTS_MAX;
			CHECK_EQ(finish(side->p, request[i], &size),
				 NCCL_SUCCESS);
			CHECK_EQ(size, 64);
			CHECK(is_pattern(data + i * 64, 64,
					 (unsigned int)(round + i)));
		}
	}
	say(fd, "", 1);
	dereg(side, mhandle);
	free(data);
}

TEST(as_many_as_there_may_be)
{
	both(receive_many, send_many);
}

/* ---- connecting -------------------------------------------------------- */

#define CALLERS	5

static void call_often(int fd, const void *arg)
{
	const struct plugin *p = arg;
	char handle[CALLERS][NCCL_HANDLE_MAX], data[64];
	void *ctx, *comm[CALLERS] = { NULL }, *mhandle, *request;
	struct side side;
	int i, left = CALLERS;

	CHECK_EQ(p->init(&ctx), NCCL_SUCCESS);
	hear(fd, handle[0], NCCL_HANDLE_MAX);
	for (i = 1; i < CALLERS; i++)
		memcpy(handle[i], handle[0], NCCL_HANDLE_MAX);
	/* All at a time, none waits for another. */
	while (left)
		for (i = 0; i < CALLERS; i++) {
			if (comm[i])
				continue;
			CHECK_EQ(p->connect(ctx, 0, handle[i], &comm[i]),
				 NCCL_SUCCESS);
			left -= !!comm[i];
			sched_yield();
		}
	for (i = 0; i < CALLERS; i++) {
		side = (struct side){ .p = p, .ctx = ctx, .comm = comm[i] };
		mhandle = reg(&side, data, sizeof(data));
		data[0] = (char)i;
		CHECK_EQ(send_all(&side, data, 1, 0, mhandle), NCCL_SUCCESS);
		/* It serves all of them. */
		request = NULL;
		CHECK_EQ(p->isend(comm[(i + 1) % CALLERS], data, 1, 7, mhandle,
				  &request), NCCL_SUCCESS);
		CHECK(!request);
		dereg(&side, mhandle);
	}
	hear(fd, data, 1);
	for (i = 0; i < CALLERS; i++)
		CHECK_EQ(p->close_send(comm[i]), NCCL_SUCCESS);
	CHECK_EQ(p->finalize(ctx), NCCL_SUCCESS);
}

TEST(a_listener_serves_many)
{
	char handle[NCCL_HANDLE_MAX], data[CALLERS][64];
	void *ctx, *listener, *comm[CALLERS], *mhandle[CALLERS];
	void *request[CALLERS], *at;
	bool seen[CALLERS];
	int tag = 0;
	size_t n = 64;
	struct other other;
	struct side side;
	int i, k, size;

	plugin_load();
	for (k = 0; k < PLUGINS; k++) {
		const struct plugin *p = &plugins[k];

		other_start(&other, call_often, p);
		CHECK_EQ(p->init(&ctx), NCCL_SUCCESS);
		CHECK_EQ(p->listen(ctx, 0, handle, &listener), NCCL_SUCCESS);
		comm[0] = handle;
		CHECK_EQ(p->accept(listener, &comm[0]), NCCL_SUCCESS);
		CHECK(!comm[0]);
		say(other.fd, handle, sizeof(handle));
		for (i = 0; i < CALLERS; i++) {
			comm[i] = NULL;
			while (!comm[i])
				CHECK_EQ(p->accept(listener, &comm[i]),
					 NCCL_SUCCESS);
		}
		CHECK_EQ(p->close_listen(listener), NCCL_SUCCESS);
		memset(seen, 0, sizeof(seen));
		/* Each was connected with one of them, nobody knows which. */
		for (i = 0; i < CALLERS; i++) {
			side = (struct side){ .p = p, .comm = comm[i] };
			mhandle[i] = reg(&side, data[i], 64);
			at = data[i];
			CHECK_EQ(p->irecv(comm[i], 1, &at, &n, &tag,
					  &mhandle[i], &request[i]),
				 NCCL_SUCCESS);
		}
		for (i = 0; i < CALLERS; i++) {
			CHECK_EQ(finish(p, request[i], &size), NCCL_SUCCESS);
			CHECK(size == 1 && data[i][0] >= 0 &&
			      data[i][0] < CALLERS && !seen[(int)data[i][0]]);
			seen[(int)data[i][0]] = true;
			CHECK_EQ(p->dereg(comm[i], mhandle[i]), NCCL_SUCCESS);
		}
		say(other.fd, "", 1);
		other_end(&other);
		for (i = 0; i < CALLERS; i++)
			CHECK_EQ(p->close_recv(comm[i]), NCCL_SUCCESS);
		CHECK_EQ(p->finalize(ctx), NCCL_SUCCESS);
	}
	plugin_unload();
}
