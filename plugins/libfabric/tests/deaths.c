// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Processes that are killed, and endpoints that are closed, in every phase of a
 * message: what was to be done with them ends with an error that says so, and
 * others go on.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"

#define LONG	(1u << 20)

static char out[LONG], in[LONG];

/* ---- actors ------------------------------------------------------------ */

enum role {
	STRANGE,		/* never looks at its endpoint */
	DEAF,			/* answers, and receives nothing */
	GREEDY,			/* receives for ever what comes, of any length */
	TALKER,			/* sends for ever */
	ONCE,			/* receives one message, then says so */
	HEIR,			/* GREEDY, but opens only when it is told to */
	LEAVING,		/* is greeted, sends a few messages, and closes */
	QUITTING,		/* the same, and ends without closing */
};

#define LAST_WORDS	40

static void hear_name(int fd, struct end *end)
{
	char name[NAME_SIZE];

	say(fd, end->name, sizeof(end->name));
	hear(fd, name, sizeof(name));
	CHECK_EQ(end_know(end, name), 0);
}

static void receive_for_ever(struct end *end, bool once, int fd)
{
	for (;;) {
		CHECK_EQ(fi_recv(end->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC,
				 in), 0);
		end_wait(end, in);
		if (once) {
			say(fd, "", 1);
			once = false;
		}
	}
}

static void send_for_ever(struct end *end)
{
	for (;;) {
		size_t len = chance(3) ? chance(4000) : chance(sizeof(out));

		CHECK_EQ(UNTIL_ROOM(fi_send(end->ep, out, len, NULL, 0, NULL)),
			 0);
		ends_progress();
		end->ndone = 0;
	}
}

static void send_and_go(struct end *end, bool closes)
{
	int i;

	CHECK_EQ(fi_recv(end->ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	end_ok(end, in);
	for (i = 0; i < LAST_WORDS; i++) {
		fill(out, 64, (unsigned int)i);
		CHECK_EQ(fi_send(end->ep, out, 64, NULL, 0, out), 0);
		end_ok(end, out);
	}
	if (closes)
		end_close(end);
	_exit(0);
}

static void play(int fd, void *arg)
{
	const struct end_wish wish = { .service = 4711 };
	const enum role *role = arg;
	struct end end;
	char byte;

	if (*role == HEIR)
		hear(fd, &byte, 1);
	end_open(&end, &wish);
	hear_name(fd, &end);
	switch (*role) {
	case STRANGE:
		hear(fd, &byte, 1);
		break;
	case DEAF:
		for (;;)
			ends_progress();
	case GREEDY:
	case HEIR:
		receive_for_ever(&end, false, fd);
		break;
	case TALKER:
		send_for_ever(&end);
		break;
	case ONCE:
		receive_for_ever(&end, true, fd);
		break;
	case LEAVING:
	case QUITTING:
		send_and_go(&end, *role == LEAVING);
	}
}

/* An actor, and an end here that knows it as number 0. */
static void meet(struct actor *actor, enum role role, struct end *end)
{
	char name[NAME_SIZE];

	shared_fabric();
	actor_start(actor, play, &role);
	hear(actor->fd, name, sizeof(name));
	end_open(end, NULL);
	CHECK_EQ(end_know(end, name), 0);
	say(actor->fd, end->name, sizeof(end->name));
}

/* Another one, which has nothing to do with it. */
static void bystander(struct end *end, struct end *other)
{
	end_open(other, NULL);
	CHECK_EQ(end_know(other, end->name), 0);
	CHECK_EQ(end_know(end, other->name), 1);
}

static void goes_on(struct end *end, struct end *other, size_t len)
{
	fill(out, len, 1);
	CHECK_EQ(fi_recv(other->ep, in, len, NULL, 0, in), 0);
	CHECK_EQ(fi_send(end->ep, out, len, NULL, 1, out), 0);
	end_ok(other, in);
	end_ok(end, out);
	CHECK(is_filled(in, len, 1));
	CHECK_EQ(fi_recv(end->ep, in, len, NULL, 1, in), 0);
	CHECK_EQ(fi_send(other->ep, out, len, NULL, 0, out), 0);
	end_ok(end, in);
	end_ok(other, out);
}

static bool is_death(int err)
{
	return err == FI_ECONNRESET || err == FI_EHOSTUNREACH ||
	       err == FI_EKEYREJECTED || err == FI_EREMOTEIO ||
	       err == FI_ECONNREFUSED || err == FI_ECONNABORTED;
}

/* All that was begun with it ends, some of it well; then nothing is left. */
static void all_end(struct end *end, int n)
{
	struct done done;

	while (n-- > 0) {
		done = end_next(end);
		CHECK(!done.err || is_death(done.err));
		CHECK(!done.err || *end_why(end, &done));
	}
	CHECK_EQ(end->ndone, 0);
}

/* As soon as the fabric knows. */
static void fails(struct end *end)
{
	struct done done;

	do {
		CHECK_EQ(fi_send(end->ep, out, 8, NULL, 0, &done), 0);
		done = end_wait(end, &done);
	} while (!done.err);
	test_note("%d: %s", done.err, end_why(end, &done));
	CHECK(is_death(done.err));
}

/* ---- before it is connected -------------------------------------------- */

TEST(killed_before)
{
	struct end end, other;
	struct actor actor;
	struct done done;

	setenv("FI_FABREX_RESOLVE_MS", "300", 1);
	meet(&actor, STRANGE, &end);
	actor_kill(&actor);
	CHECK_EQ(fi_send(end.ep, out, 8, NULL, 0, &end), 0);
	CHECK_EQ(fi_inject(end.ep, out, 8, 0), 0);
	bystander(&end, &other);
	goes_on(&end, &other, 100);
	done = end_wait(&end, &end);
	CHECK(is_death(done.err));
	CHECK(is_death(end_wait(&end, NULL).err));
	fails(&end);
	goes_on(&end, &other, 100000);
	end_close(&other);
	end_close(&end);
}

/* It has been found, and does not answer. */
TEST(killed_unanswered)
{
	struct end end, other;
	struct actor actor;
	int i;

	setenv("FI_FABREX_RESOLVE_MS", "300", 1);
	meet(&actor, STRANGE, &end);
	for (i = 0; i < 10; i++)
		CHECK_EQ(fi_send(end.ep, out, 8, NULL, 0, &end), 0);
	for (i = 0; i < 1000; i++)
		ends_progress();
	CHECK_EQ(end.ndone, 0);
	actor_kill(&actor);
	all_end(&end, 10);
	fails(&end);
	bystander(&end, &other);
	goes_on(&end, &other, 8);
	end_close(&other);
	end_close(&end);
}

/* ---- messages under way ------------------------------------------------ */

/* More than it has credits for, and nobody takes them. */
static void killed_deaf(size_t len, int n)
{
	struct end end, other;
	struct actor actor;
	int i;

	setenv("FI_FABREX_UNEXPECTED", "65536", 1);
	meet(&actor, DEAF, &end);
	for (i = 0; i < n; i++) {
		CHECK_EQ(UNTIL_ROOM(fi_send(end.ep, out, len, NULL, 0, &i)),
			 0);
		/* Never all: the actor holds it back. */
		if (i % 16 == 0)
			ends_progress();
	}
	for (i = 0; i < 1000; i++)
		ends_progress();
	CHECK(end.ndone < (size_t)n);
	actor_kill(&actor);
	all_end(&end, n);
	fails(&end);
	bystander(&end, &other);
	goes_on(&end, &other, len);
	end_close(&other);
	end_close(&end);
}

TEST(killed_eager)
{
	killed_deaf(4000, 500);
}

/* They wait for a receive. */
TEST(killed_rts)
{
	killed_deaf(100000, 50);
}

TEST(killed_rts_write)
{
	setenv("FI_FABREX_RENDEZVOUS", "write", 1);
	killed_deaf(100000, 50);
}

/* Whatever it was doing. */
static void killed_any_time(enum role role, int times)
{
	struct end end, other;
	struct actor actor;
	int i, sent, ended;

	/* Over a device that is emulated it takes a hundred times as long. */
	if (getenv("FABREX_TEST_PORT"))
		times = 2;
	while (times--) {
		meet(&actor, role, &end);
		sent = ended = 0;
		for (i = 0; i < 2000 + (int)chance(20000); i++) {
			if (sent - ended < 30 && role != TALKER &&
			    !fi_send(end.ep, out, chance(sizeof(out)), NULL, 0,
				     out))
				sent++;
			if (role == TALKER && sent - ended < 30 &&
			    !fi_recv(end.ep, in, sizeof(in), NULL, 0, in))
				sent++;
			ends_progress();
			ended += (int)end.ndone;
			end.ndone = 0;
			/* In the middle of whatever is going on. */
			if (i == 1000)
				kill(actor.pid, chance(2) ? SIGSTOP : SIGCONT);
		}
		actor_kill(&actor);
		all_end(&end, sent - ended);
		bystander(&end, &other);
		goes_on(&end, &other, 8);
		goes_on(&end, &other, 100000);
		end_close(&other);
		end_close(&end);
	}
}

TEST(killed_receiving)
{
	killed_any_time(GREEDY, 6);
}

TEST(killed_receiving_write)
{
	setenv("FI_FABREX_RENDEZVOUS", "write", 1);
	killed_any_time(GREEDY, 6);
}

TEST(killed_sending)
{
	killed_any_time(TALKER, 6);
}

TEST(killed_sending_write)
{
	setenv("FI_FABREX_RENDEZVOUS", "write", 1);
	killed_any_time(TALKER, 6);
}

/* A receive for this one alone can never be; one for anybody can. */
TEST(killed_directed)
{
	struct end end, other;
	struct actor actor;
	struct done done;
	char byte, x[8], y[8];

	meet(&actor, ONCE, &end);
	CHECK_EQ(fi_send(end.ep, out, 8, NULL, 0, &end), 0);
	end_ok(&end, &end);
	hear(actor.fd, &byte, 1);
	CHECK_EQ(fi_recv(end.ep, x, 8, NULL, 0, x), 0);
	CHECK_EQ(fi_recv(end.ep, y, 8, NULL, FI_ADDR_UNSPEC, y), 0);
	actor_kill(&actor);
	done = end_wait(&end, x);
	CHECK(is_death(done.err));
	bystander(&end, &other);
	CHECK_EQ(fi_send(other.ep, out, 8, NULL, 0, &other), 0);
	end_ok(&end, y);
	end_close(&other);
	end_close(&end);
}

/* The same for one that has never been heard of. */
TEST(killed_unmet)
{
	struct end end, other;
	struct actor actor;
	struct done done;

	meet(&actor, STRANGE, &end);
	CHECK_EQ(fi_recv(end.ep, in, 8, NULL, 0, in), 0);
	CHECK_EQ(fi_trecv(end.ep, in, 8, NULL, 0, 1, 0, out), 0);
	ends_progress();
	actor_kill(&actor);
	done = end_wait(&end, in);
	CHECK(is_death(done.err));
	done = end_wait(&end, out);
	CHECK(is_death(done.err));
	bystander(&end, &other);
	goes_on(&end, &other, 8);
	end_close(&other);
	end_close(&end);
}

/* What was sent by one who has gone is received, even if it is noticed before. */
static void last_words(enum role role)
{
	struct end end, other;
	struct actor actor;
	int i, err;

	meet(&actor, role, &end);
	CHECK_EQ(fi_send(end.ep, out, 8, NULL, 0, &end), 0);
	end_ok(&end, &end);
	actor_end(&actor);
	/* Nobody is there for it. */
	CHECK_EQ(fi_send(end.ep, out, 8, NULL, 0, &actor), 0);
	for (i = 0; i < LAST_WORDS; i++)
		CHECK_EQ(fi_recv(end.ep, in + 64 * i, 64, NULL, 0, in + i), 0);
	for (i = 0; i < LAST_WORDS; i++) {
		end_ok(&end, in + i);
		CHECK(is_filled(in + 64 * i, 64, (unsigned int)i));
	}
	/* Over loopback it may have got there before anybody knew. */
	err = end_wait(&end, &actor).err;
	CHECK(is_death(err) || (!err && role == QUITTING));
	fails(&end);
	bystander(&end, &other);
	goes_on(&end, &other, 8);
	end_close(&other);
	end_close(&end);
}

TEST(last_words_of_who_closes)
{
	last_words(LEAVING);
}

TEST(last_words_of_who_quits)
{
	last_words(QUITTING);
}

/* Who waits for one that has closed its endpoint sleeps all the same. */
TEST(closed_and_awaited)
{
	const struct end_wish wish = { .wait = FI_WAIT_FD };
	struct fi_cq_tagged_entry entry;
	struct end a, b;
	clock_t used;
	char x[8];

	own_fabric();
	pair_open(&a, &b, &wish);
	CHECK_EQ(fi_recv(b.ep, x, 8, NULL, 0, x), 0);
	CHECK_EQ(fi_send(a.ep, out, 8, NULL, 0, &a), 0);
	end_ok(&b, x);
	end_ok(&a, &a);
	CHECK_EQ(fi_recv(b.ep, x, 8, NULL, 0, x), 0);
	end_close(&a);
	used = clock();
	CHECK_EQ(fi_cq_sread(b.cq, &entry, 1, NULL, 3000), -FI_EAGAIN);
	CHECK(clock() - used < CLOCKS_PER_SEC);
	end_close(&b);
}

/* ---- the next one ------------------------------------------------------ */

/* Whoever has the same port and service now is not who was meant. */
TEST(successor)
{
	enum role role = HEIR;
	char name[NAME_SIZE], plain[NAME_SIZE];
	struct actor actor, next;
	struct end end;
	struct done done;
	fi_addr_t anyone, new;

	/* A child of a process with an open port could not open one. */
	shared_fabric();
	actor_start(&next, play, &role);
	meet(&actor, GREEDY, &end);
	CHECK_EQ(av_name(&end, 0, name), 0);
	strcpy(plain, name);
	*strrchr(plain, ':') = '\0';
	CHECK_EQ(fi_send(end.ep, out, 8, NULL, 0, &end), 0);
	end_ok(&end, &end);
	actor_kill(&actor);
	fails(&end);
	say(next.fd, "", 1);
	hear(next.fd, name, sizeof(name));
	say(next.fd, end.name, sizeof(end.name));
	CHECK(!strncmp(name, plain, strlen(plain)));
	CHECK_EQ(fi_send(end.ep, out, 8, NULL, 0, &end), 0);
	done = end_wait(&end, &end);
	CHECK_EQ(done.err, FI_ECONNREFUSED);
	CHECK(strstr(end_why(&end, &done), "earlier"));
	anyone = end_know(&end, plain);
	CHECK_EQ(fi_send(end.ep, out, 8, NULL, anyone, &end), 0);
	end_ok(&end, &end);
	CHECK_EQ(fi_send(end.ep, out, 8, NULL, 0, &end), 0);
	CHECK_EQ(end_wait(&end, &end).err, FI_ECONNREFUSED);
	new = end_know(&end, name);
	CHECK_EQ(fi_send(end.ep, out, LONG, NULL, new, &end), 0);
	end_ok(&end, &end);
	actor_kill(&next);
	end_close(&end);
}

/* ---- closed ------------------------------------------------------------ */

TEST(closed)
{
	struct end a, b, other;
	struct done done;
	int i;

	setenv("FI_FABREX_UNEXPECTED", "65536", 1);
	own_fabric();
	pair_open(&a, &b, NULL);
	bystander(&a, &other);
	fill(out, 8, 3);
	/* Something has arrived before, and is not lost. */
	CHECK_EQ(fi_send(b.ep, out, 8, NULL, 0, &b), 0);
	end_ok(&b, &b);
	CHECK_EQ(fi_tsend(a.ep, out, LONG, NULL, 0, 1, &a), 0);
	CHECK_EQ(fi_tsend(b.ep, out, LONG, NULL, 0, 1, &b), 0);
	for (i = 0; i < 400; i++)
		CHECK_EQ(fi_send(a.ep, out, 4000, NULL, 0, &i), 0);
	for (i = 0; i < 1000; i++)
		ends_progress();
	end_close(&b);
	done = end_wait(&a, &a);
	CHECK_EQ(done.err, FI_ECONNRESET);
	CHECK(strstr(end_why(&a, &done), "closed"));
	for (i = 0; i < 400; i++) {
		done = end_next(&a);
		CHECK(!done.err || done.err == FI_ECONNRESET);
	}
	CHECK_EQ(fi_recv(a.ep, in, 8, NULL, 0, &a), 0);
	end_ok(&a, &a);
	CHECK(is_filled(in, 8, 3));
	/* The long one cannot be fetched any more. */
	CHECK_EQ(fi_trecv(a.ep, in, LONG, NULL, 0, 1, 0, &a), 0);
	CHECK_EQ(end_wait(&a, &a).err, FI_ECONNRESET);
	fails(&a);
	goes_on(&a, &other, 8);
	end_close(&other);
	end_close(&a);
}

/* Whatever is under way here is forgotten. */
TEST(close_with_everything)
{
	struct end a, b;
	unsigned int before;
	int i, round;

	setenv("FI_FABREX_UNEXPECTED", "65536", 1);
	own_fabric();
	pair_open(&a, &b, NULL);
	end_close(&a);
	end_close(&b);
	before = open_descriptors();
	for (round = 0; round < 5; round++) {
		pair_open(&a, &b, NULL);
		for (i = 0; i < 200; i++) {
			fi_send(a.ep, out, chance(9000), NULL, 0, &i);
			fi_tsend(b.ep, out, chance(9000), NULL, 0, 5, &i);
			fi_trecv(b.ep, in, 100, NULL, 0, 7, 0, &i);
			fi_recv(a.ep, in, 100, NULL, FI_ADDR_UNSPEC, &i);
			if (i % 10 == 0)
				ends_progress();
		}
		end_close(round % 2 ? &a : &b);
		end_close(round % 2 ? &b : &a);
		CHECK_EQ(open_descriptors(), before);
	}
}
