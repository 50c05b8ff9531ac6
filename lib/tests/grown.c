// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Structures that grow: programs whose structures are shorter or longer than
 * the library's, on rings and on a loopback fabric. Run by main.c. The shorter
 * ones are those of the first version; the longer ones are ours with a field
 * behind them.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "core/core.h"
#include "loop.h"
#include "test.h"

#define NEWER	0x6e65776572u

struct old_wc { unsigned char bytes[offsetof(struct fabrex_wc, reserved)]; };
struct new_wc { struct fabrex_wc now; uint64_t newer[3]; };
struct old_op { unsigned char bytes[offsetof(struct fabrex_op, reserved)]; };
struct new_op { struct fabrex_op now; uint64_t newer; };
struct old_remote {
	unsigned char bytes[offsetof(struct fabrex_remote, reserved)];
};
struct new_remote { struct fabrex_remote now; uint64_t newer; };
struct new_request { struct fabrex_request now; uint64_t newer; };
struct new_event { struct fabrex_port_event now; uint64_t newer; };
struct new_peer { struct fabrex_peer now; uint64_t newer; };

static struct fabrex_op small_write(const struct pair *p, uint64_t user_data)
{
	return (struct fabrex_op){
		.opcode = FABREX_OP_WRITE, .peer = (uint16_t)p->rb.peer,
		.user_data = user_data, .mr = p->ma, .length = 8,
		.rkey = p->rb.rkey,
	};
}

static int poll_some(struct fabrex_queue *q, void *wc, int n, size_t size)
{
	int ret;

	while (!(ret = fabrex_poll_sized(q, wc, n, size)))
		sched_yield();
	return ret;
}

static void poll_all(struct fabrex_queue *q, void *wc, int n, size_t size)
{
	int got = 0, ret;

	while (got < n) {
		ret = poll_some(q, (char *)wc + (size_t)got * size, n - got,
				size);
		CHECK(ret > 0);
		got += ret;
	}
}

static void completions_shorter(struct pair *p)
{
	struct fabrex_wc first, second;
	struct old_wc wc[3];

	memset(wc, 0xee, sizeof(wc));
	CHECK_EQ(post_small(p, 0, 1), 0);
	CHECK_EQ(post_small(p, 0, 2), 0);
	poll_all(p->qa, wc, 2, sizeof(*wc));
	memcpy(&first, &wc[0], sizeof(*wc));
	memcpy(&second, &wc[1], sizeof(*wc));
	CHECK(first.user_data == 1 && first.opcode == FABREX_OP_WRITE &&
	      first.length == 8 && first.status == FABREX_WC_OK);
	CHECK(second.user_data == 2 && second.length == 8);
	CHECK_EQ(wc[2].bytes[0], 0xee);
	CHECK_EQ(fabrex_poll_sized(p->qa, (void *)wc, 3, sizeof(*wc)), 0);
}

static void completions_longer(struct pair *p)
{
	struct new_wc wc[3];
	int i;

	memset(wc, 0xee, sizeof(wc));
	CHECK_EQ(post_small(p, 0, 3), 0);
	CHECK_EQ(post_small(p, 0, 4), 0);
	poll_all(p->qa, wc, 2, sizeof(*wc));
	for (i = 0; i < 2; i++) {
		CHECK_EQ(wc[i].now.user_data, 3 + i);
		CHECK(!wc[i].newer[0] && !wc[i].newer[2]);
	}
	CHECK(wc[2].newer[2] == 0xeeeeeeeeeeeeeeeeu);
}

static void completions(struct pair *p)
{
	struct fabrex_wc wc;

	completions_shorter(p);
	completions_longer(p);
	CHECK_EQ(fabrex_poll_sized(p->qa, &wc, 1, 8), -EINVAL);
	CHECK_SAYS("completions of 8 bytes");
}

static void operations_shorter(struct pair *p)
{
	struct fabrex_op a = small_write(p, 5), b = small_write(p, 6);
	struct old_op ops[2];
	struct fabrex_wc wc[2];

	memcpy(&ops[0], &a, sizeof(*ops));
	memcpy(&ops[1], &b, sizeof(*ops));
	CHECK_EQ(fabrex_post_sized(p->qa, (void *)ops, 2, sizeof(*ops)), 2);
	poll_all(p->qa, wc, 2, sizeof(*wc));
	CHECK(wc[0].user_data == 5 && wc[1].user_data == 6);
	CHECK_EQ(fabrex_prep_sized(p->qa, (void *)ops, sizeof(*ops)), 0);
	CHECK_EQ(fabrex_submit(p->qa), 1);
	poll_all(p->qa, wc, 1, sizeof(*wc));
	CHECK_EQ(wc[0].user_data, 5);
	CHECK_EQ(fabrex_post_sized(p->qa, &a, 1, 16), -EINVAL);
	CHECK_SAYS("too short");
}

/* What this library does not know is refused, and nothing is posted of it. */
static void operations_longer(struct pair *p)
{
	struct new_op ops[2] = {
		{ .now = small_write(p, 7) }, { .now = small_write(p, 8) },
	};
	struct fabrex_wc wc[2];

	CHECK_EQ(fabrex_post_sized(p->qa, &ops[0].now, 2, sizeof(*ops)), 2);
	poll_all(p->qa, wc, 2, sizeof(*wc));
	CHECK(wc[0].user_data == 7 && wc[1].user_data == 8);
	ops[1].newer = NEWER;
	CHECK_EQ(fabrex_post_sized(p->qa, &ops[0].now, 2, sizeof(*ops)), 1);
	poll_all(p->qa, wc, 1, sizeof(*wc));
	CHECK_EQ(wc[0].user_data, 7);
	CHECK_EQ(fabrex_post_sized(p->qa, &ops[1].now, 1, sizeof(*ops)),
		 -E2BIG);
	CHECK_SAYS("newer than this library");
	CHECK_EQ(fabrex_prep_sized(p->qa, &ops[1].now, sizeof(*ops)), -E2BIG);
	CHECK_EQ(fabrex_submit(p->qa), 0);
}

static int write_to(struct pair *p, const void *remote, size_t size)
{
	struct fabrex_wc wc;
	int ret;

	ret = fabrex_post_write_sized(p->qa, p->ma, 0, remote, 0, 8, 0, 9,
				      size);
	if (ret)
		return ret;
	poll_all(p->qa, &wc, 1, sizeof(wc));
	CHECK(wc.user_data == 9 && wc.status == FABREX_WC_OK);
	ret = fabrex_post_read_sized(p->qa, p->ma, 0, remote, 0, 8, 0, 10,
				     size);
	CHECK_EQ(ret, 0);
	poll_all(p->qa, &wc, 1, sizeof(wc));
	CHECK(wc.user_data == 10 && wc.status == FABREX_WC_OK);
	return 0;
}

static int map(struct pair *p, const void *remote, size_t size)
{
	struct fabrex_window *window;
	int ret;

	ret = fabrex_window_map_sized(p->a, remote, 0, 8,
				      FABREX_MR_REMOTE_READ, &window, size);
	if (!ret)
		CHECK_EQ(fabrex_window_unmap(window), 0);
	return ret;
}

/* By post and by window alike. */
static void remote_refused(struct pair *p, const void *remote, size_t size,
			   int error, const char *says)
{
	CHECK_EQ(write_to(p, remote, size), error);
	CHECK(strstr(fabrex_strerror_last(), says));
	CHECK_EQ(map(p, remote, size), error);
	CHECK(strstr(fabrex_strerror_last(), says));
}

static void remotes(struct pair *p)
{
	struct new_remote longer = { .newer = NEWER };
	struct old_remote shorter;
	struct fabrex_remote bad;

	memset(&shorter, 0xee, sizeof(shorter));
	fabrex_mr_remote_sized(p->mb, (void *)&shorter, sizeof(shorter));
	CHECK(!memcmp(&shorter, &p->rb, sizeof(shorter)));
	CHECK_EQ(write_to(p, &shorter, sizeof(shorter)), 0);
	CHECK_EQ(map(p, &shorter, sizeof(shorter)), 0);
	fabrex_mr_remote_sized(p->mb, &longer.now, sizeof(longer));
	CHECK(!memcmp(&longer.now, &p->rb, sizeof(p->rb)) && !longer.newer);
	CHECK_EQ(write_to(p, &longer, sizeof(longer)), 0);
	CHECK_EQ(map(p, &longer, sizeof(longer)), 0);
	longer.newer = NEWER;
	remote_refused(p, &longer, sizeof(longer), -E2BIG,
		       "newer than this library");
	remote_refused(p, &p->rb, 8, -EINVAL, "of 8 bytes");
	bad = p->rb;
	bad.flags = 1u << 31;
	remote_refused(p, &bad, sizeof(bad), -EINVAL, "unknown flags");
	bad = p->rb;
	bad.reserved = 1;
	remote_refused(p, &bad, sizeof(bad), -EINVAL, "reserved");
}

static void peers(struct pair *p)
{
	struct new_peer longer = { .newer = NEWER };
	struct fabrex_peer same;
	uint32_t number = 0;

	CHECK_EQ(fabrex_peer_next(p->a, p->rb.peer, &same), 0);
	CHECK_EQ(fabrex_peer_next_sized(p->a, p->rb.peer, (void *)&number,
					sizeof(number)), 0);
	CHECK_EQ(number, p->rb.peer);
	CHECK_EQ(fabrex_peer_find_sized(p->a, same.name, &longer.now,
					sizeof(longer)), 0);
	CHECK(!memcmp(&longer.now, &same, sizeof(same)) && !longer.newer);
	/* What failed has stored nothing. */
	longer.newer = NEWER;
	CHECK_EQ(fabrex_peer_find_sized(p->a, "nobody", &longer.now,
					sizeof(longer)), -ENOENT);
	CHECK(!memcmp(&longer.now, &same, sizeof(same)) &&
	      longer.newer == NEWER);
}

static void all_of(struct pair *p)
{
	completions(p);
	operations_shorter(p);
	operations_longer(p);
	remotes(p);
	peers(p);
}

TEST(grown_on_rings)
{
	struct pair p;

	pair_open(&p, NULL);
	all_of(&p);
	pair_close(&p);
}

TEST(grown_on_loopback)
{
	struct pair p;

	loop_open(&p, NULL);
	all_of(&p);
	loop_close(&p);
}

/* The port of the other side goes: an event for both structures. */
TEST(grown_events)
{
	struct new_event longer = { .newer = NEWER };
	uint32_t type = 0;
	struct pair p;

	loop_open(&p, NULL);
	fabrex_close(p.b);
	CHECK_EQ(fabrex_event_read_sized(p.a, (void *)&type, 25000,
					 sizeof(type)), 0);
	CHECK_EQ(type, FABREX_EV_PEER_UP);
	CHECK_EQ(fabrex_event_read_sized(p.a, &longer.now, 25000,
					 sizeof(longer)), 0);
	CHECK_EQ(longer.now.type, FABREX_EV_PEER_DOWN);
	CHECK(!longer.newer);
	longer.newer = NEWER;
	CHECK_EQ(fabrex_event_read_sized(p.a, &longer.now, 0, sizeof(longer)),
		 -EAGAIN);
	CHECK_EQ(longer.newer, NEWER);
	fabrex_close(p.a);
}

struct caller {
	pthread_t thread;
	struct fabrex_port *port;
	uint32_t peer;
	int ret;
};

static void *call(void *arg)
{
	struct caller *c = arg;
	char theirs[8];
	size_t length = sizeof(theirs);

	c->ret = fabrex_connect(c->port, c->peer, 5000, "mine", 5, theirs,
				&length, -1);
	return NULL;
}

TEST(grown_requests)
{
	struct new_request longer = { .newer = NEWER };
	struct fabrex_listener *listener;
	struct caller c;
	struct pair p;
	char theirs[8];
	size_t length = sizeof(theirs);

	loop_open(&p, NULL);
	c.port = p.a;
	c.peer = p.rb.peer;
	CHECK_EQ(fabrex_listen(p.b, 5000, &listener), 0);
	CHECK(!pthread_create(&c.thread, NULL, call, &c));
	CHECK_EQ(fabrex_request_next_sized(listener, &longer.now, theirs,
					   &length, -1, sizeof(longer)), 0);
	CHECK(!longer.newer && longer.now.nonce && length == 5);
	CHECK_EQ(fabrex_request_answer_sized(listener, &longer.now, "", 0, -1,
					     8), -EINVAL);
	longer.now.reserved = 1;
	CHECK_EQ(fabrex_request_answer(listener, &longer.now, "", 0, -1),
		 -EINVAL);
	longer.now.reserved = 0;
	longer.newer = NEWER;
	CHECK_EQ(fabrex_request_answer_sized(listener, &longer.now, "", 0, -1,
					     sizeof(longer)), -E2BIG);
	CHECK_SAYS("newer than this library");
	longer.newer = 0;
	CHECK_EQ(fabrex_request_answer_sized(listener, &longer.now, "", 0, -1,
					     sizeof(longer)), 0);
	CHECK(!pthread_join(c.thread, NULL));
	CHECK_EQ(c.ret, 0);
	fabrex_listener_close(listener);
	loop_close(&p);
}
