// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What may not be, and what may happen: a sentence in NCCL's log, an error, and
 * nothing is lost for others.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net_wire.h"
#include "plugin.h"

static const struct plugin *newest(void)
{
	return &plugins[PLUGINS - 1];
}

/* ---- handles ----------------------------------------------------------- */

TEST(bad_handles)
{
	char good[NCCL_HANDLE_MAX], bad[NCCL_HANDLE_MAX];
	const struct plugin *p = newest();
	void *ctx, *listener, *comm;
	unsigned int i;

	plugin_load();
	CHECK_EQ(p->init(&ctx), NCCL_SUCCESS);
	CHECK_EQ(p->listen(ctx, 0, good, &listener), NCCL_SUCCESS);
	memset(bad, 0, sizeof(bad));
	CHECK_EQ(p->connect(ctx, 0, bad, &comm), NCCL_INVALID_ARGUMENT);
	CHECK(plugin_said("not one of fabrex"));
	/* One bit of it, anywhere: it is damaged. */
	for (i = 0; i < sizeof(struct net_handle) * 8; i++) {
		memcpy(bad, good, sizeof(bad));
		bad[i / 8] ^= (char)(1 << i % 8);
		CHECK(p->connect(ctx, 0, bad, &comm));
		CHECK(!comm);
	}
	memcpy(bad, good, sizeof(bad));
	memset(bad + 40, 0, sizeof(bad) - 40);
	CHECK_EQ(p->connect(ctx, 0, bad, &comm), NCCL_INVALID_ARGUMENT);
	CHECK_EQ(p->connect(ctx, 3, good, &comm), NCCL_INVALID_ARGUMENT);
	CHECK_EQ(p->accept(listener, &comm), NCCL_SUCCESS);
	CHECK(!comm);
	CHECK_EQ(p->close_listen(listener), NCCL_SUCCESS);
	CHECK_EQ(p->finalize(ctx), NCCL_SUCCESS);
	plugin_unload();
}

/* Whoever listened is gone, or has given up: nobody tries for ever. */
TEST(nobody_listens)
{
	char handle[NCCL_HANDLE_MAX];
	enum nccl_result result = NCCL_SUCCESS;
	const struct plugin *p = newest();
	char unused[NCCL_HANDLE_MAX];
	void *ctx, *listener, *other, *comm;

	plugin_load();
	CHECK_EQ(p->init(&ctx), NCCL_SUCCESS);
	CHECK_EQ(p->listen(ctx, 0, handle, &listener), NCCL_SUCCESS);
	/* The port is still used, by another one. */
	CHECK_EQ(p->listen(ctx, 0, unused, &other), NCCL_SUCCESS);
	CHECK_EQ(p->close_listen(listener), NCCL_SUCCESS);
	while (!result) {
		result = p->connect(ctx, 0, handle, &comm);
		CHECK(!comm);
		usleep(1000);
	}
	CHECK_EQ(result, NCCL_REMOTE_ERROR);
	CHECK(plugin_said("nobody listens there"));
	CHECK_EQ(p->close_listen(other), NCCL_SUCCESS);
	CHECK_EQ(p->finalize(ctx), NCCL_SUCCESS);
	plugin_unload();
}

/* An attempt is not waited for when the object is unloaded. */
TEST(unloaded_while_connecting)
{
	char handle[NCCL_HANDLE_MAX];
	const struct plugin *p = newest();
	void *ctx, *listener, *comm;

	plugin_load();
	CHECK_EQ(p->init(&ctx), NCCL_SUCCESS);
	CHECK_EQ(p->listen(ctx, 0, handle, &listener), NCCL_SUCCESS);
	CHECK_EQ(p->connect(ctx, 0, handle, &comm), NCCL_SUCCESS);
	CHECK(!comm);
	CHECK_EQ(p->close_listen(listener), NCCL_SUCCESS);
	CHECK_EQ(p->finalize(ctx), NCCL_SUCCESS);
	plugin_unload();
}

/* ---- misuse ------------------------------------------------------------ */

static void send_too_much(int fd, const void *arg)
{
	static char data[8192], other[64];
	struct side side;
	void *mhandle, *request;
	int done;

	side_send(&side, arg, fd);
	CHECK_EQ(side.p->reg(side.comm, data, sizeof(data), NCCL_PTR_HOST,
			     &mhandle), NCCL_SUCCESS);
	pattern(data, sizeof(data), 1);
	hear(fd, &done, 1);
	/* Not where it is said to be. */
	request = NULL;
	CHECK_EQ(side.p->isend(side.comm, other, 8, 1, mhandle, &request),
		 NCCL_INVALID_ARGUMENT);
	CHECK(plugin_said("not in the memory"));
	CHECK_EQ(side.p->isend(side.comm, data + 8190, 8, 1, mhandle, &request),
		 NCCL_INVALID_ARGUMENT);
	/* More than there is room for. */
	CHECK_EQ(side.p->isend(side.comm, data, 4097, 1, mhandle, &request),
		 NCCL_INVALID_USAGE);
	CHECK(plugin_said("room for 4096"));
	CHECK(!request);
	CHECK_EQ(side.p->irecv(side.comm, 1, (void *[]){ data },
			       (size_t[]){ 8 }, (int[]){ 0 },
			       (void *[]){ mhandle }, &request),
		 NCCL_INVALID_USAGE);
	CHECK_EQ(side.p->test(NULL, &done, NULL), NCCL_INVALID_USAGE);
	CHECK_EQ(side.p->reg(side.comm, data, 8, 77, &request),
		 NCCL_INVALID_ARGUMENT);
	CHECK_EQ(side.p->reg(side.comm, NULL, 8, NCCL_PTR_HOST, &request),
		 NCCL_INVALID_ARGUMENT);
	/* And it goes on. */
	CHECK_EQ(send_all(&side, data, 4096, 1, mhandle), NCCL_SUCCESS);
	hear(fd, &done, 1);
	CHECK_EQ(side.p->dereg(side.comm, mhandle), NCCL_SUCCESS);
	side_close(&side, true);
}

TEST(misuse)
{
	static char data[4096];
	struct other other;
	struct side side;
	void *mhandle, *request = NULL;
	int i, size;

	plugin_load();
	for (i = 0; i < PLUGINS; i++) {
		other_start(&other, send_too_much, &plugins[i]);
		side_receive(&side, &plugins[i], other.fd);
		CHECK_EQ(side.p->reg(side.comm, data, sizeof(data),
				     NCCL_PTR_HOST, &mhandle), NCCL_SUCCESS);
		CHECK_EQ(side.p->irecv(side.comm, 0, (void *[]){ data },
				       (size_t[]){ 8 }, (int[]){ 0 },
				       (void *[]){ mhandle }, &request),
			 NCCL_INVALID_USAGE);
		CHECK_EQ(side.p->irecv(side.comm, 1, (void *[]){ data },
				       (size_t[]){ 4097 }, (int[]){ 0 },
				       (void *[]){ mhandle }, &request),
			 NCCL_INVALID_ARGUMENT);
		CHECK_EQ(side.p->irecv(side.comm, 1, (void *[]){ data },
				       (size_t[]){ 4096 }, (int[]){ 1 },
				       (void *[]){ mhandle }, &request),
			 NCCL_SUCCESS);
		say(other.fd, "", 1);
		CHECK_EQ(finish(side.p, request, &size), NCCL_SUCCESS);
		CHECK(size == 4096 && is_pattern(data, 4096, 1));
		/* It is over. */
		CHECK_EQ(side.p->test(request, &size, NULL),
			 NCCL_INVALID_USAGE);
		say(other.fd, "", 1);
		CHECK_EQ(side.p->dereg(side.comm, mhandle), NCCL_SUCCESS);
		side_close(&side, false);
		other_end(&other);
	}
	plugin_unload();
}

/* ---- ends -------------------------------------------------------------- */

/* What the other side does before it ends, in one way or another. */
struct ending {
	bool sends;		/* this process, which goes on */
	bool kills;
	bool busy;		/* something is in flight */
};

static void end_early(int fd, const void *arg)
{
	static char data[1 << 20];
	const struct ending *e = arg;
	void *mhandle, *request = NULL, *at = data;
	size_t n = sizeof(data);
	struct side side;
	int tag = 1;
	char go;

	if (e->sends)
		side_receive(&side, newest(), fd);
	else
		side_send(&side, newest(), fd);
	CHECK_EQ(side.p->reg(side.comm, data, n, NCCL_PTR_HOST, &mhandle),
		 NCCL_SUCCESS);
	if (e->busy && e->sends)
		CHECK_EQ(side.p->irecv(side.comm, 1, &at, &n, &tag, &mhandle,
				       &request), NCCL_SUCCESS);
	say(fd, "", 1);
	hear(fd, &go, 1);
	if (e->kills)
		pause();
	CHECK_EQ(side.p->dereg(side.comm, mhandle), NCCL_SUCCESS);
	side_close(&side, !e->sends);
}

static void ends(const struct ending *e)
{
	static char data[1 << 20];
	void *mhandle, *request = NULL, *at = data;
	enum nccl_result result = NCCL_SUCCESS;
	size_t n = sizeof(data);
	int tag = 2, done = 0;
	struct other other;
	struct side side;
	char go;

	plugin_load();
	other_start(&other, end_early, e);
	if (e->sends)
		side_send(&side, newest(), other.fd);
	else
		side_receive(&side, newest(), other.fd);
	CHECK_EQ(side.p->reg(side.comm, data, n, NCCL_PTR_HOST, &mhandle),
		 NCCL_SUCCESS);
	if (!e->sends)
		CHECK_EQ(side.p->irecv(side.comm, 1, &at, &n, &tag, &mhandle,
				       &request), NCCL_SUCCESS);
	hear(other.fd, &go, 1);
	say(other.fd, "", 1);
	if (e->kills)
		other_kill(&other);
	while (!result) {
		if (e->sends)
			result = side.p->isend(side.comm, data, n, tag, mhandle,
					       &request);
		else
			result = side.p->test(request, &done, NULL);
		CHECK(!done);
		sched_yield();
	}
	CHECK_EQ(result, NCCL_REMOTE_ERROR);
	/* Whatever is tried then. */
	CHECK_EQ(e->sends ? side.p->isend(side.comm, data, n, tag, mhandle,
					  &request) :
			    side.p->test(request, &done, NULL),
		 NCCL_REMOTE_ERROR);
	CHECK(plugin_said(e->kills ? "port" : "closed"));
	CHECK_EQ(side.p->dereg(side.comm, mhandle), NCCL_SUCCESS);
	side_close(&side, e->sends);
	if (!e->kills)
		other_end(&other);
	plugin_unload();
}

TEST(receiver_closes)
{
	ends(&(struct ending){ .sends = true });
}

TEST(receiver_closes_busy)
{
	ends(&(struct ending){ .sends = true, .busy = true });
}

TEST(sender_closes)
{
	ends(&(struct ending){ .sends = false });
}

TEST(receiver_killed)
{
	ends(&(struct ending){ .sends = true, .kills = true });
}

TEST(receiver_killed_busy)
{
	ends(&(struct ending){ .sends = true, .kills = true, .busy = true });
}

TEST(sender_killed)
{
	ends(&(struct ending){ .kills = true });
}
