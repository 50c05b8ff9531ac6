// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ranks that meet by TCP with a secret: who has another one or none, and who
 * says again what he has heard.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/bootstrap/secret.h"
#include "coll/link/link.h"
#include "crowd.h"

#define SECRET	"000102030405060708090a0b0c0d0e0f"
#define OTHER	"000102030405060708090a0b0c0d0e1f"
#define MAGIC	0x3350435458424246ull

/* Of the paper: key and message are 0, 1, 2, ... */
TEST(secret_proofs)
{
	static const struct { size_t n; uint64_t proof; } known[] = {
		{ 0, 0x726fdb47dd0e0e31 }, { 1, 0x74f839c593dc67fd },
		{ 7, 0xab0200f58b01d137 }, { 8, 0x93f5f5799a932462 },
		{ 15, 0xa129ca6149be45e5 },
	};
	uint8_t message[16];
	struct secret s;
	struct proof p;
	size_t i, at;

	CHECK(fxi_secret_parse(SECRET, &s));
	for (i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)i;
	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		for (at = 0; at <= known[i].n; at++) {
			fxi_proof_begin(&p, &s);
			fxi_proof_add(&p, message, at);
			fxi_proof_add(&p, message + at, known[i].n - at);
			CHECK_EQ(fxi_proof_end(&p), known[i].proof);
		}
	}
	CHECK(!fxi_secret_parse("", &s));
	CHECK(!fxi_secret_parse(SECRET "0", &s));
	CHECK(!fxi_secret_parse("00010203040506070809 a0b0c0d0e0f", &s));
}

struct meeting_place {
	char address[64];
	uint16_t port;
	int refused[2];		/* pipe: a byte for each who was */
};

static void place_find(struct meeting_place *place)
{
	place->port = crowd_tcp_port();
	snprintf(place->address, sizeof(place->address), "tcp:127.0.0.1:%u",
		 place->port);
	CHECK(!pipe(place->refused));
}

/* 3 has another secret and 4 none; 5 has it from the environment. */
static int secret_work(struct member *m)
{
	const struct meeting_place *place = m->arg;
	struct fabrex_comm *comm;
	char byte;
	int i, ret;

	m->attr.bootstrap = place->address;
	m->attr.timeout_ms = -1;
	m->attr.size = 4;
	m->attr.secret = m->rank == 3 ? OTHER : m->rank == 4 ? NULL : SECRET;
	if (m->rank > 2)
		m->attr.rank = 1;
	if (m->rank == 5) {
		m->attr.rank = 3;
		m->attr.secret = NULL;
		setenv("FABREX_SECRET", SECRET, 1);
	}
	if (m->rank == 4) {
		/* What a script makes of a file that is missing is no secret. */
		setenv("FABREX_SECRET", "", 1);
		CHECK_EQ(fabrex_comm_create(m->port, &m->attr, sizeof(m->attr),
					    &comm), -EINVAL);
		CHECK_SAYS("0 characters");
		unsetenv("FABREX_SECRET");
	}
	for (i = 0; m->rank == 2 && i < 2; i++)
		CHECK_EQ(read(place->refused[0], &byte, 1), 1);
	ret = fabrex_comm_create(m->port, &m->attr, sizeof(m->attr), &comm);
	if (m->rank == 3 || m->rank == 4) {
		CHECK_EQ(ret, -EACCES);
		CHECK_SAYS("FABREX_SECRET");
		CHECK_EQ(write(place->refused[1], "x", 1), 1);
		return 0;
	}
	CHECK_EQ(ret, 0);
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(secret_is_asked_for)
{
	struct meeting_place place;

	place_find(&place);
	crowd_run(6, secret_work, &place);
}

/* Rank 0 has none: it may be anybody, and learns nothing. */
static int impostor_work(struct member *m)
{
	const struct meeting_place *place = m->arg;
	struct fabrex_comm *comm;
	char byte;
	int ret;

	m->attr.bootstrap = place->address;
	m->attr.timeout_ms = -1;
	if (m->rank == 1) {
		m->attr.secret = SECRET;
		ret = fabrex_comm_create(m->port, &m->attr, sizeof(m->attr),
					 &comm);
		CHECK_EQ(ret, -EACCES);
		CHECK_SAYS("may be anybody");
		CHECK_EQ(write(place->refused[1], "x", 1), 1);
		return 0;
	}
	if (m->rank == 2) {
		CHECK_EQ(read(place->refused[0], &byte, 1), 1);
		m->attr.rank = 1;
	}
	m->attr.size = 2;
	comm = crowd_create(m);
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(secret_of_rank_0_is_proved)
{
	struct meeting_place place;

	place_find(&place);
	crowd_run(3, impostor_work, &place);
}

/* ---- said again -------------------------------------------------------- */

/* As on the wire. */
struct challenge {
	uint64_t magic, secret, nonce[2];
};

struct hello {
	uint64_t magic;
	uint32_t size, rank, bytes, reserved;
	uint64_t nonce[2], proof;
	uint8_t part[sizeof(struct link_card)];
} __attribute__((packed));

static int dial(uint16_t port, struct challenge *challenge)
{
	int fd = crowd_tcp_dial(port);

	CHECK_EQ(recv(fd, challenge, sizeof(*challenge), MSG_WAITALL),
		 sizeof(*challenge));
	CHECK(challenge->magic == MAGIC && challenge->secret == 1);
	return fd;
}

/* By one who knows the secret. */
static struct hello greeting(const struct meeting_place *place,
			     const struct challenge *challenge, uint32_t size)
{
	struct hello h = {
		.magic = MAGIC, .size = size, .rank = 1,
		.bytes = sizeof(h.part),
	};
	struct secret s;
	struct proof p;

	CHECK(fxi_secret_parse(SECRET, &s));
	fxi_proof_begin(&p, &s);
	fxi_proof_add(&p, "HELLO", 6);
	fxi_proof_add(&p, place->address, strlen(place->address) + 1);
	fxi_proof_add(&p, challenge->nonce, sizeof(challenge->nonce));
	fxi_proof_add(&p, &h, sizeof(h));
	h.proof = fxi_proof_end(&p);
	return h;
}

/* Error in the answer to @h. */
static uint32_t say(int fd, const struct hello *h)
{
	uint32_t answer[3];

	CHECK_EQ(send(fd, h, sizeof(*h), MSG_NOSIGNAL), sizeof(*h));
	CHECK_EQ(recv(fd, answer, sizeof(answer), MSG_WAITALL),
		 sizeof(answer));
	close(fd);
	return answer[2];
}

static int replay_work(struct member *m)
{
	const struct meeting_place *place = m->arg;
	struct challenge first, second;
	struct fabrex_comm *comm;
	struct hello heard;
	int fd;

	m->attr.bootstrap = place->address;
	m->attr.timeout_ms = -1;
	m->attr.secret = SECRET;
	if (m->rank) {
		/* Understood, but not of this meeting: the proof was right. */
		fd = dial(place->port, &first);
		heard = greeting(place, &first, 9);
		CHECK_EQ(say(fd, &heard), EINVAL);
		fd = dial(place->port, &first);
		heard = greeting(place, &first, 2);
		close(fd);
		fd = dial(place->port, &second);
		CHECK(memcmp(first.nonce, second.nonce, sizeof(first.nonce)));
		CHECK_EQ(say(fd, &heard), EACCES);
	}
	comm = crowd_create(m);
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(secret_proofs_are_good_once)
{
	struct meeting_place place;

	place_find(&place);
	crowd_run(2, replay_work, &place);
}

/* ---- passed on ---------------------------------------------------------- */

static int answer_at(uint16_t port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	const int on = 1;

	CHECK(fd >= 0);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	CHECK(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
	CHECK(!listen(fd, 4));
	return fd;
}

struct relay {
	int listener;
	uint16_t to;
	pthread_t thread;
};

/* False: that side says no more. */
static bool pass(int from, int to)
{
	char bytes[4096];
	ssize_t n = recv(from, bytes, sizeof(bytes), 0);

	if (n > 0)
		CHECK_EQ(send(to, bytes, (size_t)n, MSG_NOSIGNAL), n);
	return n > 0;
}

/* One connection, word by word. */
static void *relay_run(void *arg)
{
	struct relay *r = arg;
	struct challenge challenge;
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	bool more = true;

	p[0].fd = accept(r->listener, NULL, NULL);
	CHECK(p[0].fd >= 0);
	p[1].fd = dial(r->to, &challenge);
	CHECK_EQ(send(p[0].fd, &challenge, sizeof(challenge), MSG_NOSIGNAL),
		 sizeof(challenge));
	while (more) {
		CHECK(poll(p, 2, HANG_MS) > 0);
		if (p[0].revents)
			more = pass(p[0].fd, p[1].fd);
		if (more && p[1].revents)
			more = pass(p[1].fd, p[0].fd);
	}
	close(p[0].fd);
	close(p[1].fd);
	return NULL;
}

/* Rank 1 goes to another meeting with the same secret, and is taken to this. */
static int relay_work(struct member *m)
{
	const struct meeting_place *place = m->arg;
	struct meeting_place other;
	struct fabrex_comm *comm;
	struct relay relay;
	char byte;

	m->attr.bootstrap = place->address;
	m->attr.timeout_ms = -1;
	m->attr.secret = SECRET;
	m->attr.size = 2;
	if (m->rank == 1) {
		place_find(&other);
		relay.listener = answer_at(other.port);
		relay.to = place->port;
		CHECK(!pthread_create(&relay.thread, NULL, relay_run, &relay));
		m->attr.bootstrap = other.address;
		CHECK_EQ(fabrex_comm_create(m->port, &m->attr, sizeof(m->attr),
					    &comm), -EACCES);
		CHECK_SAYS("the same bootstrap");
		CHECK(!pthread_join(relay.thread, NULL));
		CHECK_EQ(write(place->refused[1], "x", 1), 1);
		return 0;
	}
	if (m->rank == 2) {
		CHECK_EQ(read(place->refused[0], &byte, 1), 1);
		m->attr.rank = 1;
	}
	comm = crowd_create(m);
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(secret_proofs_name_the_meeting)
{
	struct meeting_place place;

	place_find(&place);
	crowd_run(3, relay_work, &place);
}

/* ---- what strangers write ----------------------------------------------- */

struct stranger {
	int listener;
	uint64_t secret;
	uint32_t error;
};

/* As on the wire. */
struct refusal {
	uint64_t magic;
	uint32_t error, reserved;
	uint64_t proof;
	char text[120];
};

static void *stranger_run(void *arg)
{
	const struct stranger *s = arg;
	const struct challenge challenge = {
		.magic = MAGIC, .secret = s->secret,
	};
	struct refusal refusal = { .magic = MAGIC, .error = s->error };
	struct hello hello;
	int fd = accept(s->listener, NULL, NULL);

	CHECK(fd >= 0);
	memset(refusal.text, 0x9b, sizeof(refusal.text));
	memcpy(refusal.text, "\033[2J\nport x: all is well\r", 26);
	CHECK_EQ(send(fd, &challenge, sizeof(challenge), MSG_NOSIGNAL),
		 sizeof(challenge));
	CHECK_EQ(recv(fd, &hello, sizeof(hello), MSG_WAITALL), sizeof(hello));
	CHECK_EQ(send(fd, &refusal, sizeof(refusal), MSG_NOSIGNAL),
		 sizeof(refusal));
	close(fd);
	return NULL;
}

static void hear_stranger(uint64_t secret, uint32_t error, const char *says)
{
	struct stranger s = { .secret = secret, .error = error };
	struct fabrex_comm_attr attr = {
		.rank = 1, .size = 2, .timeout_ms = -1,
		.secret = secret ? SECRET : NULL,
	};
	struct meeting_place place;
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	pthread_t thread;
	const char *c;

	place_find(&place);
	attr.bootstrap = place.address;
	s.listener = answer_at(place.port);
	CHECK(!pthread_create(&thread, NULL, stranger_run, &s));
	CHECK_EQ(fabrex_open("loopback:stranger", &port), 0);
	CHECK_EQ(fabrex_comm_create(port, &attr, sizeof(attr), &comm),
		 -(int)error);
	CHECK_SAYS(says);
	for (c = fabrex_strerror_last(); *c; c++)
		CHECK(*c >= ' ' && *c <= '~');
	if (error == EACCES)
		CHECK(!strstr(fabrex_strerror_last(), "well"));
	CHECK(!pthread_join(thread, NULL));
	close(s.listener);
	fabrex_close(port);
}

TEST(secret_strangers_text)
{
	hear_stranger(1, EACCES, "FABREX_SECRET");
	hear_stranger(0, EACCES, "FABREX_SECRET");
	hear_stranger(0, EINVAL, "?[2J?port x: all is well");
}
