// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of listen, accept and connect: blobs both ways, clients at once,
 * servers that come late or go, and datagrams made to do harm.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"
#include "test.h"

#define SERVICE	5000

struct caller {
	pthread_t thread;
	const char *port;
	uint64_t service;
	const char *mine;
	char theirs[64];
	size_t theirs_len;
	int timeout_ms;
	int ret;
};

static void *call(void *arg)
{
	struct caller *c = arg;
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open(c->port, &port), 0);
	c->theirs_len = sizeof(c->theirs);
	c->ret = fabrex_connect(port, 1, c->service, c->mine,
				strlen(c->mine) + 1, c->theirs,
				&c->theirs_len, c->timeout_ms);
	fabrex_close(port);
	return NULL;
}

static void start(struct caller *c, const char *mine, int timeout_ms)
{
	c->port = "a.0";
	c->service = SERVICE;
	c->mine = mine;
	c->timeout_ms = timeout_ms;
	CHECK(!pthread_create(&c->thread, NULL, call, c));
}

static void end(struct caller *c)
{
	CHECK(!pthread_join(c->thread, NULL));
}

static void pause_ms(long ms)
{
	const struct timespec nap = { .tv_nsec = ms * 1000000 };

	nanosleep(&nap, NULL);
}

/* Its queue and memory are the port's. */
TEST(close_with_listener)
{
	struct fabrex_listener *one, *two;
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_listen(port, 5000, &one), 0);
	CHECK_EQ(fabrex_listen(port, 5001, &two), 0);
	CHECK_EQ(fabrex_close(port), -EBUSY);
	CHECK_SAYS("port a.0");
	CHECK_SAYS("2 listeners");
	CHECK_SAYS("fabrex_listener_close");
	fabrex_listener_close(one);
	CHECK_EQ(fabrex_close(port), -EBUSY);
	/* All is as before. */
	CHECK_EQ(fabrex_listen(port, 5000, &one), 0);
	fabrex_listener_close(one);
	fabrex_listener_close(two);
	CHECK_EQ(fabrex_close(port), 0);
	CHECK_EQ(fake_objects(), 0);
	CHECK_EQ(fabrex_close(NULL), 0);
}

struct busy_client {
	struct fabrex_port *port;
	int ret;
};

static void *connects(void *arg)
{
	struct busy_client *c = arg;

	c->ret = fabrex_connect(c->port, 1, 7777, NULL, 0, NULL, NULL, -1);
	return NULL;
}

TEST(close_while_a_thread_connects)
{
	struct fabrex_listener *listener;
	struct fabrex_port *port, *other;
	struct busy_client c;
	pthread_t thread;
	uint32_t peer;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_open("b.0", &other), 0);
	c.port = port;
	CHECK_EQ(pthread_create(&thread, NULL, connects, &c), 0);
	while (!__atomic_load_n(&port->users[USER_CONNECT], __ATOMIC_RELAXED))
		sched_yield();
	CHECK_EQ(fabrex_close(port), -EBUSY);
	CHECK_SAYS("1 threads in fabrex_connect");
	CHECK_EQ(fabrex_listen(other, 7777, &listener), 0);
	CHECK_EQ(fabrex_accept(listener, NULL, 0, NULL, NULL, &peer, -1), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(c.ret, 0);
	fabrex_listener_close(listener);
	CHECK_EQ(fabrex_close(other), 0);
	CHECK_EQ(fabrex_close(port), 0);
}

/* Whose they are has not died: the child only forgets them, in any order. */
TEST(close_in_child_with_listener)
{
	struct fabrex_listener *listener;
	struct fabrex_port *port;
	int status;
	pid_t pid;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_listen(port, 5000, &listener), 0);
	pid = fork();
	if (!pid) {
		CHECK_EQ(fabrex_close(port), 0);
		fabrex_listener_close(listener);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(fabrex_close(port), -EBUSY);
	fabrex_listener_close(listener);
	CHECK_EQ(fabrex_close(port), 0);
}

TEST(meet)
{
	struct fabrex_listener *l;
	struct fabrex_port *port;
	struct caller c;
	char got[FABREX_BLOB_MAX];
	size_t len = sizeof(got);
	uint32_t peer = 99;

	CHECK_EQ(fabrex_open("b.0", &port), 0);
	CHECK_EQ(fabrex_listen(port, SERVICE, &l), 0);
	CHECK_EQ(fabrex_accept(l, NULL, 0, got, &len, NULL, 10), -ETIMEDOUT);
	start(&c, "from client", 3000);
	len = sizeof(got);
	CHECK_EQ(fabrex_accept(l, "from server", 12, got, &len, &peer, HANG_MS),
		 0);
	end(&c);
	CHECK_EQ(c.ret, 0);
	CHECK(len == 12 && !strcmp(got, "from client"));
	CHECK(c.theirs_len == 12 && !strcmp(c.theirs, "from server"));
	CHECK_EQ(peer, 0);
	fabrex_listener_close(l);
	fabrex_close(port);
}

TEST(meet_server_comes_late)
{
	struct fabrex_listener *l;
	struct fabrex_port *port;
	struct caller c;

	start(&c, "early", HANG_MS);
	pause_ms(60);
	CHECK_EQ(fabrex_open("b.0", &port), 0);
	CHECK_EQ(fabrex_listen(port, SERVICE, &l), 0);
	CHECK_EQ(fabrex_accept(l, "x", 2, NULL, NULL, NULL, HANG_MS), 0);
	end(&c);
	CHECK_EQ(c.ret, 0);
	fabrex_listener_close(l);
	fabrex_close(port);
	fabrex_listener_close(NULL);
	fabrex_close(NULL);
}

/* The first server takes the greeting to its grave; the second answers. */
TEST(meet_server_is_replaced)
{
	struct fabrex_listener *l;
	struct fabrex_port *port;
	struct caller c;

	CHECK_EQ(fabrex_open("b.0", &port), 0);
	CHECK_EQ(fabrex_listen(port, SERVICE, &l), 0);
	start(&c, "again", 8000);
	pause_ms(100);
	fabrex_listener_close(l);
	CHECK_EQ(fabrex_listen(port, SERVICE, &l), 0);
	CHECK_EQ(fabrex_accept(l, "second", 7, NULL, NULL, NULL, HANG_MS), 0);
	end(&c);
	CHECK_EQ(c.ret, 0);
	CHECK(!strcmp(c.theirs, "second"));
	fabrex_listener_close(l);
	fabrex_close(port);
}

TEST(meet_nobody)
{
	struct fabrex_listener *l;
	struct fabrex_port *port, *other;
	size_t len = 0;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_connect(port, 1, SERVICE, NULL, 0, NULL, NULL, 50),
		 -ENOENT);
	fake_link(1, false);
	CHECK_EQ(fabrex_connect(port, 1, SERVICE, NULL, 0, NULL, NULL, 0),
		 -EHOSTUNREACH);
	fake_link(1, true);
	CHECK_EQ(fabrex_open("b.0", &other), 0);
	CHECK_EQ(fabrex_listen(other, SERVICE, &l), 0);
	CHECK_EQ(fabrex_connect(port, 1, SERVICE, "x", 1, NULL, &len, 100),
		 -ETIMEDOUT);
	CHECK_SAYS("5000");
	CHECK_EQ(fabrex_listen(other, SERVICE, &l), -EADDRINUSE);
	CHECK_EQ(fabrex_listen(other, 0, &l), -EINVAL);
	CHECK_EQ(fabrex_connect(port, 1, SERVICE, "x", FABREX_BLOB_MAX + 1,
				NULL, &len, 100), -EINVAL);
	fabrex_listener_close(l);
	fabrex_close(other);
	fabrex_close(port);
}

#define MANY	80	/* more than the listener has cells */

TEST(meet_many)
{
	static struct caller c[MANY];
	static char mine[MANY][16];
	struct fabrex_listener *l;
	struct fabrex_port *port;
	int i;

	CHECK_EQ(fabrex_open("b.0", &port), 0);
	CHECK_EQ(fabrex_listen(port, SERVICE, &l), 0);
	for (i = 0; i < MANY; i++) {
		snprintf(mine[i], sizeof(mine[i]), "client %d", i);
		start(&c[i], mine[i], HANG_MS);
	}
	pause_ms(300);
	for (i = 0; i < MANY; i++) {
		struct fabrex_request request;
		char got[64];
		size_t len = sizeof(got);

		CHECK_EQ(fabrex_request_next(l, &request, got, &len, HANG_MS),
			 0);
		CHECK_EQ(fabrex_request_answer(l, &request, got, len,
					       HANG_MS),
			 0);
	}
	for (i = 0; i < MANY; i++) {
		end(&c[i]);
		CHECK_EQ(c[i].ret, 0);
		CHECK(!strcmp(c[i].theirs, mine[i]));
	}
	fabrex_listener_close(l);
	fabrex_close(port);
}

/* Requests answered out of order, one of whose clients has given up. */
TEST(meet_two_steps)
{
	struct fabrex_request r[3];
	struct fabrex_listener *l;
	struct fabrex_port *port;
	struct caller c[3];
	int i;

	CHECK_EQ(fabrex_open("b.0", &port), 0);
	CHECK_EQ(fabrex_listen(port, SERVICE, &l), 0);
	for (i = 0; i < 3; i++) {
		start(&c[i], "hi", i == 1 ? 50 : HANG_MS);
		CHECK_EQ(fabrex_request_next(l, &r[i], NULL, NULL, HANG_MS), 0);
	}
	end(&c[1]);
	CHECK_EQ(c[1].ret, -ETIMEDOUT);
	CHECK_EQ(fabrex_request_answer(l, &r[2], "two", 4, HANG_MS), 0);
	CHECK_EQ(fabrex_request_answer(l, &r[1], "one", 4, HANG_MS),
		 -ECONNRESET);
	CHECK_SAYS("has gone");
	CHECK_EQ(fabrex_request_answer(l, &r[0], "zero", 5, HANG_MS), 0);
	end(&c[0]);
	end(&c[2]);
	CHECK(!c[0].ret && !strcmp(c[0].theirs, "zero"));
	CHECK(!c[2].ret && !strcmp(c[2].theirs, "two"));
	fabrex_listener_close(l);
	fabrex_close(port);
}

TEST(meet_blob_too_big)
{
	struct fabrex_listener *l;
	struct fabrex_port *port;
	struct caller c, d;
	char small[4];
	size_t len = sizeof(small);

	CHECK_EQ(fabrex_open("b.0", &port), 0);
	CHECK_EQ(fabrex_listen(port, SERVICE, &l), 0);
	start(&c, "longer than four", 400);
	CHECK_EQ(fabrex_accept(l, NULL, 0, small, &len, NULL, HANG_MS),
		 -EMSGSIZE);
	CHECK_EQ(len, 17);
	end(&c);
	CHECK_EQ(c.ret, -ETIMEDOUT);
	start(&d, "abc", 3000);
	len = sizeof(small);
	CHECK_EQ(fabrex_accept(l, NULL, 0, small, &len, NULL, HANG_MS), 0);
	end(&d);
	CHECK(!d.ret && d.theirs_len == 0 && !strcmp(small, "abc"));
	fabrex_listener_close(l);
	fabrex_close(port);
}

/* Datagrams of the shape in connect.c, each spoiled in one place. */
static void spoil(uint8_t *d, int how, uint64_t *length)
{
	uint32_t magic = 0x32544d58;
	uint16_t kind = 1, blob = 8;
	uint64_t service = SERVICE;

	memset(d, 0x41, 1024);
	memcpy(d, &magic, 4);
	memcpy(d + 4, &kind, 2);
	memcpy(d + 6, &blob, 2);
	memcpy(d + 16, &service, 8);
	*length = 64 + 8;
	switch (how) {
	case 0:
		d[0] ^= 1;
		break;
	case 1:
		*length = 63;
		break;
	case 2:
		*length = 0;
		break;
	case 3:
		d[6] = 9;
		break;
	case 4:
		d[6] = 0xff;
		d[7] = 0xff;
		break;
	case 5:
		d[4] = 2;
		break;
	case 6:
		d[16] ^= 1;
		break;
	case 7:
		break;	/* names a queue that is not the sender */
	}
}

TEST(meet_hostile)
{
	uint32_t number;
	uint64_t key;
	struct fabrex_listener *l;
	struct fabrex_wc wc;
	struct caller c;
	struct pair p;
	char got[64];
	size_t len = sizeof(got);
	int i, round;

	pair_open(&p, NULL);
	CHECK_EQ(fabrex_listen(p.b, SERVICE, &l), 0);
	CHECK_EQ(fabrex_resolve(p.a, 1, SERVICE, &number, &key), 0);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 8; i++) {
			uint64_t length;

			spoil(p.pa, i, &length);
			CHECK_EQ(fabrex_post_send(p.qa, 1, key, p.ma, 0,
						  length, 0, 1), 0);
			poll_n(p.qa, &wc, 1);
			CHECK_EQ(wc.status, 0);
		}
		len = sizeof(got);
		CHECK_EQ(fabrex_accept(l, NULL, 0, got, &len, NULL, 50),
			 -ETIMEDOUT);
	}
	start(&c, "honest", 3000);
	len = sizeof(got);
	CHECK_EQ(fabrex_accept(l, "ok", 3, got, &len, NULL, HANG_MS), 0);
	end(&c);
	CHECK(!c.ret && !strcmp(got, "honest"));
	fabrex_listener_close(l);
	pair_close(&p);
}

/* An answer with another nonce is not taken for one's own. */
TEST(meet_stale_answer)
{
	struct fabrex_request request, forged;
	struct fabrex_listener *l;
	struct fabrex_port *port;
	struct caller c;
	int i;

	CHECK_EQ(fabrex_open("b.0", &port), 0);
	CHECK_EQ(fabrex_listen(port, SERVICE, &l), 0);
	start(&c, "q", 4000);
	CHECK_EQ(fabrex_request_next(l, &request, NULL, NULL, HANG_MS), 0);
	forged = request;
	forged.nonce ^= 1;
	for (i = 0; i < 20; i++)
		CHECK_EQ(fabrex_request_answer(l, &forged, "bad", 4, HANG_MS), 0);
	CHECK_EQ(fabrex_request_answer(l, &request, "good", 5, HANG_MS), 0);
	end(&c);
	CHECK(!c.ret && !strcmp(c.theirs, "good"));
	fabrex_listener_close(l);
	fabrex_close(port);
}

/* ---- wrong keys --------------------------------------------------------- */

static int greet_with(struct pair *p, uint64_t listener, uint64_t key)
{
	struct fabrex_wc wc;
	uint64_t length;

	spoil(p->pa, 7, &length);
	memcpy(p->pa + 24, &key, sizeof(key));
	CHECK_EQ(fabrex_post_send(p->qa, 1, listener, p->ma, 0, length, 0, 1),
		 0);
	poll_n(p->qa, &wc, 1);
	return wc.status;
}

/* As soon as there is a request. */
static int answer_one(struct fabrex_listener *l)
{
	struct fabrex_request request;

	CHECK_EQ(fabrex_request_next(l, &request, NULL, NULL, HANG_MS), 0);
	return fabrex_request_answer(l, &request, "x", 1, HANG_MS);
}

static void *connects_at_home(void *port)
{
	CHECK_EQ(fabrex_connect(port, 1, SERVICE, "me", 3, NULL, NULL,
				HANG_MS), 0);
	return NULL;
}

/*
 * A peer that names wrong keys has few of them tried, as each costs our port.
 * Others are answered meanwhile, and that peer again after a while.
 */
TEST(meet_wrong_keys)
{
	struct fabrex_listener *l;
	uint64_t key, begun;
	uint32_t number, i, tried = 0;
	struct fabrex_wc wc;
	pthread_t thread;
	struct pair p;

	pair_open(&p, NULL);
	CHECK_EQ(fabrex_listen(p.b, SERVICE, &l), 0);
	CHECK_EQ(fabrex_resolve(p.a, 1, SERVICE, &number, &key), 0);
	begun = fxi_now_ns();
	for (i = 0; i < 2000; i++) {
		CHECK_EQ(greet_with(&p, key, fabrex_queue_key(p.qa) + i + 1),
			 FABREX_WC_OK);
		CHECK_EQ(answer_one(l), -ECONNRESET);
		tried += !strstr(fabrex_strerror_last(), "too many wrong keys");
	}
	printf("# %u of %u tried\n", tried, i);
	CHECK(tried <= 257 + (fxi_now_ns() - begun) / 100000000);
	CHECK(!pthread_create(&thread, NULL, connects_at_home, p.b));
	CHECK_EQ(answer_one(l), 0);
	CHECK(!pthread_join(thread, NULL));
	do {
		pause_ms(20);
		CHECK_EQ(greet_with(&p, key, fabrex_queue_key(p.qa)), 0);
	} while (answer_one(l));
	poll_n(p.qa, &wc, 1);
	CHECK_EQ(wc.opcode, FABREX_OP_RECV);
	fabrex_recv_done(p.qa, 1);
	fabrex_listener_close(l);
	pair_close(&p);
}
