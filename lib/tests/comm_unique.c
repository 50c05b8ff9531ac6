// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ranks that meet by a unique id, or by a function of the application: whoever
 * made the id, however it travels; strangers, damaged ids, exchanges that fail.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crowd.h"
#include "party.h"

/* What the ranks share besides: any channel. */
struct board {
	atomic_uint written;
	struct fabrex_unique_id id;
	atomic_uint refused;
	uint32_t maker;
	atomic_uint come[4];	/* of exchanges */
	uint8_t parts[CROWD * 4096];
};

static struct board *board_new(void)
{
	struct board *board = mmap(NULL, sizeof(*board),
				   PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(board != MAP_FAILED);
	return board;
}

static struct board *board_of(const struct member *m)
{
	return (struct board *)(uintptr_t)m->arg;
}

static void await(atomic_uint *count, unsigned int n)
{
	while (atomic_load(count) < n)
		nap_ms(1);
}

/* Made by one rank, and read by the others. */
static void pass_id(struct member *m, const char *host)
{
	struct board *board = board_of(m);

	if (m->rank == board->maker) {
		CHECK_EQ(fabrex_unique_id_create(m->port, host, &board->id),
			 0);
		atomic_store(&board->written, 1);
	}
	await(&board->written, 1);
	m->attr.bootstrap = NULL;
	m->attr.unique_id = &board->id;
}

/* ---- all well ---------------------------------------------------------- */

static void take_part(struct member *m)
{
	struct fabrex_comm *comm = crowd_create(m);

	CHECK_EQ(fabrex_comm_rank(comm), m->rank);
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
}

/* What is for other communicators is not looked at. */
static int meet_work(struct member *m)
{
	setenv("FABREX_BOOTSTRAP", "carrier:pigeon", 1);
	setenv("FABREX_SECRET", "none", 1);
	pass_id(m, m->rank ? "127.0.0.1" : NULL);
	take_part(m);
	return 0;
}

TEST(unique_id_of_any_rank)
{
	struct board *board;
	uint32_t maker;

	for (maker = 0; maker < 4; maker++) {
		board = board_new();
		board->maker = maker;
		crowd_run(4, meet_work, board);
	}
	crowd_run(1, meet_work, board_new());
	crowd_run(2, meet_work, board_new());
}

/* By what a host is known: names, addresses and interfaces. */
static int hosts_work(struct member *m)
{
	static const char *const hosts[] = {
		"lo", "localhost", "127.0.0.2", "::1",
	};
	static const char *const nowhere[] = {
		"0.0.0.0", "::", "169.254.7.7", "fe80::1",
	};
	struct fabrex_unique_id id, other;
	uint32_t i;

	for (i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		test_note("%s", hosts[i]);
		CHECK_EQ(fabrex_unique_id_create(m->port, hosts[i], &id), 0);
		m->attr.bootstrap = NULL;
		m->attr.unique_id = &id;
		m->attr.size = 1;
		take_part(m);
	}
	CHECK_EQ(fabrex_unique_id_create(m->port, NULL, &id), 0);
	CHECK_EQ(fabrex_unique_id_create(m->port, NULL, &other), 0);
	CHECK(memcmp(&id, &other, sizeof(id)));
	fabrex_unique_id_destroy(&id);
	fabrex_unique_id_destroy(&id);
	fabrex_unique_id_destroy(&other);
	fabrex_unique_id_destroy(NULL);
	for (i = 0; i < sizeof(nowhere) / sizeof(*nowhere); i++) {
		test_note("%s", nowhere[i]);
		CHECK_EQ(fabrex_unique_id_create(m->port, nowhere[i], &id),
			 -EINVAL);
		CHECK_SAYS("wildcard or link-local");
	}
	CHECK_EQ(fabrex_unique_id_create(m->port, "192.0.2.1", &id),
		 -EADDRNOTAVAIL);
	CHECK_SAYS("address or interface of this host");
	CHECK_EQ(fabrex_unique_id_create(m->port, "no.such.host.invalid",
					 &id), -EINVAL);
	CHECK_SAYS("no.such.host.invalid");
	CHECK_EQ(fabrex_unique_id_create(m->port, NULL, NULL), -EINVAL);
	CHECK_EQ(fabrex_unique_id_create(NULL, NULL, &id), -EINVAL);
	return 0;
}

TEST(unique_id_hosts)
{
	crowd_run(1, hosts_work, NULL);
}

/* The parent has made it, and is no rank: rank 0 of its children serves. */
static int inherited_work(struct member *m)
{
	m->attr.bootstrap = NULL;
	m->attr.unique_id = &board_of(m)->id;
	take_part(m);
	return 0;
}

TEST(unique_id_is_inherited)
{
	struct board *board = board_new();
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open("loopback:unique-parent", &port), 0);
	CHECK_EQ(fabrex_unique_id_create(port, NULL, &board->id), 0);
	fabrex_close(port);
	crowd_run(3, inherited_work, board);
	fabrex_unique_id_destroy(&board->id);
}

/* Two ranks of one process, in threads: the first that asks serves. */
struct thread {
	struct fabrex_unique_id *id;
	pthread_t thread;
	uint32_t rank;
};

static void *thread_run(void *arg)
{
	struct thread *t = arg;
	const struct fabrex_comm_attr attr = {
		.rank = t->rank, .size = 3, .unique_id = t->id,
		.timeout_ms = -1,
	};
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	char name[64];

	snprintf(name, sizeof(name), "loopback:threads-%d/r%u", (int)getpid(),
		 t->rank);
	CHECK_EQ(fabrex_open(name, &port), 0);
	CHECK_EQ(fabrex_comm_create(port, &attr, sizeof(attr), &comm), 0);
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
	fabrex_close(port);
	return NULL;
}

TEST(unique_id_of_threads)
{
	struct thread t[3];
	struct fabrex_unique_id id;
	struct fabrex_port *port;
	uint32_t i;

	CHECK_EQ(fabrex_open("loopback:unique-threads", &port), 0);
	CHECK_EQ(fabrex_unique_id_create(port, NULL, &id), 0);
	for (i = 0; i < 3; i++) {
		t[i].id = &id;
		t[i].rank = i;
		CHECK(!pthread_create(&t[i].thread, NULL, thread_run, &t[i]));
	}
	for (i = 0; i < 3; i++)
		CHECK(!pthread_join(t[i].thread, NULL));
	fabrex_close(port);
}

/* ---- who has no right -------------------------------------------------- */

/* Where it says; the layout is this library's own affair. */
static void address_of(const struct fabrex_unique_id *id, char *text, size_t n)
{
	char host[INET_ADDRSTRLEN];
	uint16_t port;

	CHECK_EQ(id->bytes[8], 4);
	memcpy(&port, id->bytes + 10, 2);
	inet_ntop(AF_INET, id->bytes + 16, host, sizeof(host));
	snprintf(text, n, "tcp:%s:%u", host, ntohs(port));
}

/* 2 knows the address and 3 another secret as well; 1 comes after both. */
static int stranger_work(struct member *m)
{
	struct board *board = board_of(m);
	struct fabrex_comm *comm;
	char address[64];

	pass_id(m, NULL);
	m->attr.size = 2;
	m->attr.timeout_ms = -1;
	if (m->rank >= 2) {
		address_of(&board->id, address, sizeof(address));
		m->attr.rank = 1;
		m->attr.unique_id = NULL;
		m->attr.bootstrap = address;
		m->attr.secret = m->rank == 3 ?
				 "000102030405060708090a0b0c0d0e0f" : NULL;
		CHECK_EQ(fabrex_comm_create(m->port, &m->attr, sizeof(m->attr),
					    &comm), -EACCES);
		atomic_fetch_add(&board->refused, 1);
		return 0;
	}
	if (m->rank)
		await(&board->refused, 2);
	take_part(m);
	return 0;
}

TEST(unique_id_keeps_strangers_out)
{
	crowd_run(4, stranger_work, board_new());
}

#define REFUSED(change, error, text) \
	do { \
		struct fabrex_comm_attr a = good; \
		struct fabrex_comm *comm; \
		change; \
		CHECK_EQ(fabrex_comm_create(m->port, &a, sizeof(a), &comm), \
			 -(error)); \
		CHECK_SAYS(text); \
	} while (0)

static int no_exchange(void *context, const void *mine, void *all,
		       size_t bytes)
{
	(void)context;
	(void)mine;
	(void)all;
	(void)bytes;
	return 0;
}

/* Any byte that is not as it was is noticed, and an id is good once. */
static int refusals_work(struct member *m)
{
	struct fabrex_unique_id id, bad;
	struct fabrex_comm_attr good = m->attr;
	size_t i;

	CHECK_EQ(sizeof(id), 128);
	CHECK_EQ(fabrex_unique_id_create(m->port, NULL, &id), 0);
	good.bootstrap = NULL;
	good.size = 2;
	good.unique_id = &bad;
	for (i = 0; i < sizeof(id); i++) {
		bad = id;
		bad.bytes[i] ^= 0x10;
		REFUSED((void)a, EINVAL, "unique_id is not what");
	}
	good.unique_id = &id;
	REFUSED(a.bootstrap = "fabric:1", EINVAL, "more than one of");
	REFUSED(a.secret = "", EINVAL, "has its own");
	REFUSED(a.exchange = no_exchange, EINVAL, "more than one of");
	REFUSED((a.unique_id = NULL, a.exchange = no_exchange, a.secret = ""),
		EINVAL, "the application's");
	REFUSED(a.timeout_ms = 50, ETIMEDOUT, "1 of 2 ranks have not come");
	REFUSED((a.timeout_ms = 50, a.rank = 1), ETIMEDOUT,
		"does not listen (any more");
	return 0;
}

TEST(unique_id_refusals)
{
	crowd_run(1, refusals_work, NULL);
}

/* ---- exchanges of the application -------------------------------------- */

struct context {
	struct member *m;
	struct board *board;
	pthread_t thread;
	uint32_t calls;
	int result;		/* of rank 1 */
	bool lazy;		/* rank 1 does not wait for the others */
	bool stale;		/* rank 1 gets other bytes than rank 0 gave */
};

/* An allgather through memory, with errors. */
static int exchange(void *context, const void *mine, void *all, size_t bytes)
{
	struct context *c = context;
	struct board *board = c->board;
	uint32_t size = c->m->size, rank = c->m->rank;

	CHECK(pthread_equal(pthread_self(), c->thread));
	CHECK(size * bytes <= sizeof(board->parts));
	c->calls++;
	if (rank == 1 && c->result)
		return c->result;
	if (rank == 1 && c->lazy)
		return 0;
	memcpy(board->parts + rank * bytes, mine, bytes);
	atomic_fetch_add(&board->come[c->calls - 1], 1);
	if (c->result || c->lazy)
		return -ECANCELED;
	await(&board->come[c->calls - 1], size);
	memcpy(all, board->parts, size * bytes);
	if (rank == 1 && c->stale && c->calls == 1)
		((char *)all)[8] ^= 1;
	atomic_fetch_add(&board->come[c->calls + 1], 1);
	await(&board->come[c->calls + 1], size);
	return 0;
}

static void by_exchange(struct member *m, struct context *c)
{
	memset(c, 0, sizeof(*c));
	c->m = m;
	c->board = board_of(m);
	c->thread = pthread_self();
	m->attr.bootstrap = NULL;
	m->attr.exchange = exchange;
	m->attr.context = c;
}

static int exchange_work(struct member *m)
{
	struct fabrex_comm *comm, *half;
	struct context c;

	by_exchange(m, &c);
	comm = crowd_create(m);
	CHECK_EQ(c.calls, m->size > 1 ? 2 : 0);
	CHECK_EQ(crowd_sum(comm), 0);
	/* Those that come of it need none. */
	CHECK_EQ(fabrex_comm_split(comm, (int)m->rank % 2, 0, &half), 0);
	CHECK_EQ(crowd_sum(half), 0);
	fabrex_comm_destroy(half);
	fabrex_comm_destroy(comm);
	CHECK_EQ(c.calls, m->size > 1 ? 2 : 0);
	return 0;
}

TEST(exchange_of_the_application)
{
	crowd_run(1, exchange_work, board_new());
	crowd_run(2, exchange_work, board_new());
	crowd_run(5, exchange_work, board_new());
}

static int broken_work(struct member *m)
{
	struct fabrex_comm_attr good;
	struct context c;

	by_exchange(m, &c);
	good = m->attr;
	c.result = -EXDEV;
	REFUSED((void)a, m->rank == 1 ? EXDEV : ECANCELED,
		"the application's exchange has failed");
	c.result = 7;
	REFUSED((void)a, m->rank == 1 ? EIO : ECANCELED, "see its own error");
	c.result = 0;
	c.lazy = true;
	if (m->rank == 1)
		REFUSED((void)a, EPROTO, "has not stored");
	return 0;
}

/* All of them learn that some were given bytes of an earlier call. */
static int stale_work(struct member *m)
{
	struct fabrex_comm_attr good;
	struct context c;

	by_exchange(m, &c);
	good = m->attr;
	c.stale = true;
	REFUSED((void)a, EPROTO, "other bytes than this rank");
	return 0;
}

/* Stores only its own part. */
static int selfish(void *context, const void *mine, void *all, size_t bytes)
{
	const struct member *m = context;

	memcpy((char *)all + m->rank * bytes, mine, bytes);
	return 0;
}

static int selfish_work(struct member *m)
{
	struct fabrex_comm_attr good = m->attr;

	good.bootstrap = NULL;
	good.exchange = selfish;
	good.context = m;
	REFUSED((void)a, EPROTO, m->rank ? "bytes of rank 0" :
					   "bytes of rank 1");
	return 0;
}

TEST(exchange_that_fails)
{
	crowd_run(3, broken_work, board_new());
	crowd_run(2, selfish_work, NULL);
	crowd_run(3, stale_work, board_new());
}
