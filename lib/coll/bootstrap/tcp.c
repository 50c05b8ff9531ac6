// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The exchange over TCP: rank 0 listens, or with a unique id the rank that has
 * its socket; the others connect, send their part and get the table of all.
 * Called by bootstrap.c.
 *
 * Anybody who can reach the address may connect, so nothing received is
 * trusted, nobody can keep the server busy, and nonsense ends the connection.
 *
 * Rank 0: CHALLENGE {nonce}; the other: HELLO {its nonce, its part}; rank 0:
 * ANSWER {the table}. If there is a secret, HELLO and ANSWER carry a proof of
 * knowing it, over all of their bytes, the nonces and the address, so that
 * nothing can be replayed: not later, not in the other direction, not in
 * another rendezvous with the same secret.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/bootstrap/methods.h"

#define MAGIC		0x3350435458424246ull	/* "FBBXTCP3" */
#define HELLO_MS	5000	/* for a connection to send its HELLO */
#define RETRY_MS	20
#define STRANGERS	32u	/* connections beside those of ranks */
#define TEXT		120u

/* In host byte order; the magic shows if that differs. */
struct nonce {
	uint64_t words[2];
};

struct challenge {
	uint64_t magic;
	uint32_t secret;	/* 1: proofs are asked for */
	uint32_t reserved;
	struct nonce nonce;
};

struct hello {
	uint64_t magic;
	uint32_t size, rank;
	uint32_t bytes;		/* of its part, which follows */
	uint32_t reserved;
	struct nonce nonce;
	uint64_t proof;
};

struct answer {
	uint64_t magic;
	uint32_t error;		/* errno, 0: the table follows */
	uint32_t reserved;
	uint64_t proof;
	char text[TEXT];
};

static int new_nonce(const struct bootstrap *b, struct nonce *nonce)
{
	if (getrandom(nonce, sizeof(*nonce), 0) == sizeof(*nonce))
		return 0;
	return fxi_error(EIO, "port %s: no random numbers from the kernel",
			 b->port->attr.name);
}

/* ---- proofs ------------------------------------------------------------ */

/* Binds the proof to the kind of message and to the address. */
static void proof_begin(struct proof *p, const struct bootstrap *b,
			const char *what)
{
	fxi_proof_begin(p, &b->secret);
	fxi_proof_add(p, what, strlen(what) + 1);
	fxi_proof_add(p, b->address, strlen(b->address) + 1);
}

static uint64_t hello_proof(const struct bootstrap *b,
			    const struct nonce *asked, struct hello hello,
			    const void *part, size_t bytes)
{
	struct proof p;

	hello.proof = 0;
	proof_begin(&p, b, "HELLO");
	fxi_proof_add(&p, asked, sizeof(*asked));
	fxi_proof_add(&p, &hello, sizeof(hello));
	fxi_proof_add(&p, part, bytes);
	return fxi_proof_end(&p);
}

static uint64_t answer_proof(const struct bootstrap *b,
			     const struct nonce *asked,
			     const struct nonce *theirs, struct answer answer,
			     const void *table, size_t bytes)
{
	struct proof p;

	answer.proof = 0;
	proof_begin(&p, b, "ANSWER");
	fxi_proof_add(&p, asked, sizeof(*asked));
	fxi_proof_add(&p, theirs, sizeof(*theirs));
	fxi_proof_add(&p, &answer, sizeof(answer));
	fxi_proof_add(&p, table, answer.error ? 0 : bytes);
	return fxi_proof_end(&p);
}

/* ---- addresses --------------------------------------------------------- */

/* "tcp:HOST:PORT", HOST in brackets if it has colons. */
static bool split(const char *address, char *host, size_t n, char *port,
		  size_t m)
{
	const char *text = address + strlen("tcp:");
	const char *colon = strrchr(text, ':');
	size_t length;

	if (!colon || colon == text || !colon[1] || strlen(colon + 1) >= m)
		return false;
	length = (size_t)(colon - text);
	if (*text == '[' && colon[-1] == ']') {
		text++;
		length -= 2;
	}
	if (!length || length >= n)
		return false;
	memcpy(host, text, length);
	host[length] = 0;
	strcpy(port, colon + 1);
	return true;
}

static bool is_port(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && value &&
	       value < 65536;
}

int fxi_tcp_check(struct fabrex_port *port, const char *address)
{
	char host[256], number[16];

	if (split(address, host, sizeof(host), number, sizeof(number)) &&
	    is_port(number))
		return 0;
	return fxi_error(EINVAL, "port %s: bootstrap \"%s\": use tcp:HOST:PORT, for example tcp:10.0.0.1:5000 or tcp:[fe80::1]:5000",
			 port->attr.name, address);
}

static int resolve(const struct bootstrap *b, bool passive,
		   struct addrinfo **info)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = passive ? AI_PASSIVE : 0,
	};
	char host[256], port[16];
	int ret;

	split(b->address, host, sizeof(host), port, sizeof(port));
	ret = getaddrinfo(host, port, &hints, info);
	if (!ret)
		return 0;
	return fxi_error(EINVAL, "port %s: bootstrap %s: %s; give a name or address that this host knows",
			 b->port->attr.name, b->address, gai_strerror(ret));
}

static int sys_failed(const struct bootstrap *b, const char *what, int err)
{
	return fxi_error(err, "port %s: bootstrap %s: %s: %s; use an address of rank 0's host, and a port that is free",
			 b->port->attr.name, b->address, what,
			 fxi_errno_str(err));
}

/* ---- connections ------------------------------------------------------- */

enum conn_state { CONN_FREE, CONN_READING, CONN_WAITING, CONN_WRITING };

struct conn {
	enum conn_state state;
	int fd;
	uint32_t rank;
	uint64_t deadline;	/* READING, and WRITING a refusal */
	size_t done;		/* bytes of what it reads or writes */
	bool refused;
	uint8_t *buffer;	/* hello and part */
	struct nonce asked, theirs;
	struct answer answer;
};

struct server {
	struct bootstrap *b;
	int fd;
	size_t bytes;
	uint32_t nconns;
	struct conn *conns;
	struct pollfd *fds;
	uint8_t *table;
	bool *came;
	uint32_t missing;
	uint32_t served;	/* ranks that have the table */
};

static void conn_close(struct server *s, struct conn *c)
{
	if (c->state == CONN_WAITING) {
		s->came[c->rank] = false;
		s->missing++;
	}
	close(c->fd);
	c->fd = -1;
	c->state = CONN_FREE;
}

static void conn_answer(const struct server *s, struct conn *c, int err,
			const char *text)
{
	memset(&c->answer, 0, sizeof(c->answer));
	c->answer.magic = MAGIC;
	c->answer.error = (uint32_t)err;
	snprintf(c->answer.text, sizeof(c->answer.text), "%s", text);
	/* No proof for a peer that has not proved itself. */
	if (s->b->secret.set && err != EACCES)
		c->answer.proof = answer_proof(s->b, &c->asked, &c->theirs,
					       c->answer, s->table,
					       s->b->rendezvous.size *
					       s->bytes);
	c->refused = err;
	c->state = CONN_WRITING;
	c->done = 0;
	c->deadline = fxi_deadline(HELLO_MS);
}

/* A whole HELLO has arrived. */
static void conn_judge(struct server *s, struct conn *c)
{
	uint32_t size = s->b->rendezvous.size;
	struct hello hello;
	char text[TEXT];

	memcpy(&hello, c->buffer, sizeof(hello));
	c->theirs = hello.nonce;
	if (s->b->secret.set &&
	    hello.proof != hello_proof(s->b, &c->asked, hello,
				       c->buffer + sizeof(hello), s->bytes)) {
		conn_answer(s, c, EACCES, "");
	} else if (hello.size != size) {
		snprintf(text, sizeof(text), "it waits for %u ranks, not for %u",
			 size, hello.size);
		conn_answer(s, c, EINVAL, text);
	} else if (hello.rank >= size) {
		conn_answer(s, c, EPROTO, "no such rank");
	} else if (s->came[hello.rank]) {
		snprintf(text, sizeof(text), "rank %u is there already",
			 hello.rank);
		conn_answer(s, c, EEXIST, text);
	} else {
		c->rank = hello.rank;
		c->state = CONN_WAITING;
		s->came[c->rank] = true;
		s->missing--;
		memcpy(s->table + c->rank * s->bytes,
		       c->buffer + sizeof(hello), s->bytes);
	}
}

/* The first bytes show a stranger, which is dropped at once. */
static bool conn_strange(const struct server *s, const struct conn *c)
{
	struct hello hello = { 0 };

	memcpy(&hello, c->buffer,
	       c->done < sizeof(hello) ? c->done : sizeof(hello));
	if (c->done >= sizeof(hello.magic) && hello.magic != MAGIC)
		return true;
	return c->done >= sizeof(hello) && hello.bytes != s->bytes;
}

static void conn_read(struct server *s, struct conn *c)
{
	size_t all = sizeof(struct hello) + s->bytes;
	ssize_t n;

	n = recv(c->fd, c->buffer + c->done, all - c->done, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		c->done += (size_t)n;
	if (n <= 0 || conn_strange(s, c))
		conn_close(s, c);
	else if (c->done == all)
		conn_judge(s, c);
}

/* A rank that waits sends nothing more, unless it goes away. */
static void conn_waits(struct server *s, struct conn *c)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_DONTWAIT);

	if (n >= 0 || (errno != EAGAIN && errno != EINTR))
		conn_close(s, c);
}

static void conn_write(struct server *s, struct conn *c)
{
	size_t table = c->refused ? 0 : s->b->rendezvous.size * s->bytes;
	size_t head = sizeof(c->answer);
	const uint8_t *from = c->done < head ?
			      (const uint8_t *)&c->answer + c->done :
			      s->table + (c->done - head);
	size_t left = c->done < head ? head - c->done : head + table - c->done;
	ssize_t n = send(c->fd, from, left, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		c->done += (size_t)n;
	if (n > 0 && c->done < head + table)
		return;
	s->served += !c->refused && n > 0;
	if (n > 0)
		shutdown(c->fd, SHUT_WR);
	conn_close(s, c);
}

/* A free entry, or that of the stranger that came first. */
static struct conn *conn_place(struct server *s)
{
	struct conn *oldest = NULL;
	uint32_t i;

	for (i = 0; i < s->nconns; i++) {
		struct conn *c = &s->conns[i];

		if (c->state == CONN_FREE)
			return c;
		if ((c->state == CONN_READING || c->refused) &&
		    (!oldest || c->deadline < oldest->deadline))
			oldest = c;
	}
	if (oldest)
		conn_close(s, oldest);
	return oldest;
}

/* Small enough for the empty buffer of any socket. */
static bool conn_ask(const struct server *s, struct conn *c)
{
	struct challenge challenge = {
		.magic = MAGIC, .secret = s->b->secret.set,
	};

	if (new_nonce(s->b, &c->asked))
		return false;
	challenge.nonce = c->asked;
	return send(c->fd, &challenge, sizeof(challenge),
		    MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(challenge);
}

static void server_accept(struct server *s)
{
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct conn *c;

	if (fd < 0)
		return;
	c = conn_place(s);
	if (!c) {
		close(fd);
		return;
	}
	c->fd = fd;
	c->state = CONN_READING;
	c->done = 0;
	c->refused = false;
	c->deadline = fxi_deadline(HELLO_MS);
	if (!conn_ask(s, c))
		conn_close(s, c);
}

/* ---- rank 0 ------------------------------------------------------------ */

static int server_listen(struct server *s)
{
	const int on = 1;
	struct addrinfo *info, *a;
	int ret, err = EADDRNOTAVAIL;

	if (s->b->listener >= 0) {
		s->fd = s->b->listener;
		s->b->listener = -1;
		return 0;
	}
	ret = resolve(s->b, true, &info);
	if (ret)
		return ret;
	for (a = info; a; a = a->ai_next) {
		s->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC |
			       SOCK_NONBLOCK, 0);
		if (s->fd < 0)
			continue;
		setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (!bind(s->fd, a->ai_addr, a->ai_addrlen) &&
		    !listen(s->fd, SOMAXCONN))
			break;
		err = errno;
		close(s->fd);
		s->fd = -1;
	}
	freeaddrinfo(info);
	return s->fd < 0 ? sys_failed(s->b, "listen", err) : 0;
}

static int server_open(struct server *s)
{
	uint32_t i, size = s->b->rendezvous.size;

	s->fd = -1;
	s->nconns = size + STRANGERS;
	s->missing = size - 1;
	s->conns = calloc(s->nconns, sizeof(*s->conns));
	s->fds = calloc(s->nconns + 1, sizeof(*s->fds));
	s->table = calloc(size, s->bytes);
	s->came = calloc(size, sizeof(*s->came));
	if (!s->conns || !s->fds || !s->table || !s->came)
		goto no_memory;
	for (i = 0; i < s->nconns; i++) {
		s->conns[i].fd = -1;
		s->conns[i].buffer = malloc(sizeof(struct hello) + s->bytes);
		if (!s->conns[i].buffer)
			goto no_memory;
	}
	s->came[s->b->rendezvous.rank] = true;
	return server_listen(s);

no_memory:
	return fxi_error(ENOMEM, "port %s: communicator of %u ranks: out of memory",
			 s->b->port->attr.name, size);
}

static void server_close(struct server *s)
{
	uint32_t i;

	for (i = 0; s->conns && i < s->nconns; i++) {
		if (s->conns[i].fd >= 0)
			close(s->conns[i].fd);
		free(s->conns[i].buffer);
	}
	if (s->fd >= 0)
		close(s->fd);
	free(s->conns);
	free(s->fds);
	free(s->table);
	free(s->came);
}

static void server_step(struct server *s, struct conn *c, short events)
{
	bool late = c->state != CONN_WAITING && !fxi_remaining_ms(c->deadline);

	if (late)
		conn_close(s, c);
	else if (!events)
		return;
	else if (c->state == CONN_READING)
		conn_read(s, c);
	else if (c->state == CONN_WAITING)
		conn_waits(s, c);
	else
		conn_write(s, c);
}

static int server_round(struct server *s, bool accepting)
{
	int ms = fxi_remaining_ms(s->b->rendezvous.deadline);
	uint32_t i;

	s->fds[s->nconns].fd = accepting ? s->fd : -1;
	s->fds[s->nconns].events = POLLIN;
	for (i = 0; i < s->nconns; i++) {
		s->fds[i].fd = s->conns[i].fd;
		s->fds[i].revents = 0;
		s->fds[i].events = s->conns[i].state == CONN_WRITING ?
				   POLLOUT : POLLIN;
	}
	if (poll(s->fds, s->nconns + 1, ms < 0 || ms > 100 ? 100 : ms) < 0 &&
	    errno != EINTR)
		return sys_failed(s->b, "poll", errno);
	for (i = 0; i < s->nconns; i++)
		if (s->conns[i].state != CONN_FREE)
			server_step(s, &s->conns[i], s->fds[i].revents);
	if (accepting && s->fds[s->nconns].revents)
		server_accept(s);
	return 0;
}

/* All ranks have come: no more connections are accepted. */
static int server_finish(struct server *s)
{
	uint32_t i, n = 0, busy;
	int ret = 0;

	for (i = 0; i < s->nconns; i++) {
		struct conn *c = &s->conns[i];

		if (c->state != CONN_WAITING) {
			if (c->state != CONN_FREE)
				conn_close(s, c);
			continue;
		}
		conn_answer(s, c, 0, "");
		c->deadline = s->b->rendezvous.deadline;
		n++;
	}
	do {
		busy = 0;
		for (i = 0; i < s->nconns; i++)
			busy += s->conns[i].state == CONN_WRITING;
		if (busy)
			ret = server_round(s, false);
	} while (busy && !ret);
	if (!ret && s->served != n)
		return fxi_error(ECONNRESET, "port %s: communicator: %u of %u ranks have gone during the rendezvous at %s; start again",
				 s->b->port->attr.name, n - s->served, n + 1,
				 s->b->address);
	return ret;
}

static int serve(struct bootstrap *b, const void *mine, void *all,
		 size_t bytes)
{
	struct server s = { .b = b, .bytes = bytes };
	int ret = server_open(&s);

	if (!ret)
		memcpy(s.table + b->rendezvous.rank * bytes, mine, bytes);
	while (!ret && s.missing) {
		ret = server_round(&s, true);
		if (!ret && s.missing &&
		    !fxi_remaining_ms(b->rendezvous.deadline))
			ret = fxi_rendezvous_missing(b, s.came);
	}
	if (!ret)
		ret = server_finish(&s);
	if (!ret)
		memcpy(all, s.table, b->rendezvous.size * bytes);
	server_close(&s);
	return ret;
}

/* ---- the others -------------------------------------------------------- */

static int client_late(const struct bootstrap *b, const char *what)
{
	return fxi_error(ETIMEDOUT, "port %s: communicator: %s at %s within the time given; start all ranks, or give more timeout_ms",
			 b->port->attr.name, what, b->address);
}

/* 0: connected; -EAGAIN: not yet, without an error message. */
static int try_connect(const struct bootstrap *b, const struct addrinfo *a,
		       int *out)
{
	struct pollfd p = { .events = POLLOUT };
	int ms = fxi_remaining_ms(b->rendezvous.deadline), err = 0;
	socklen_t n = sizeof(err);

	p.fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		      0);
	if (p.fd < 0)
		return -EAGAIN;
	if (ms < 0 || ms > HELLO_MS)
		ms = HELLO_MS;
	if (connect(p.fd, a->ai_addr, a->ai_addrlen) &&
	    (errno != EINPROGRESS || poll(&p, 1, ms) <= 0 ||
	     getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &err, &n) || err)) {
		close(p.fd);
		return -EAGAIN;
	}
	*out = p.fd;
	return 0;
}

static int client_connect(const struct bootstrap *b, int *fd)
{
	struct addrinfo *info, *a;
	int ret = resolve(b, false, &info);

	if (ret)
		return ret;
	for (;;) {
		for (a = info; a; a = a->ai_next) {
			ret = try_connect(b, a, fd);
			if (!ret)
				goto out;
		}
		if (!fxi_remaining_ms(b->rendezvous.deadline)) {
			ret = client_late(b, b->unique ?
					  "the process that made the unique id does not listen (any more: an id is for one communicator)" :
					  "rank 0 does not listen");
			goto out;
		}
		poll(NULL, 0, RETRY_MS);
	}
out:
	freeaddrinfo(info);
	return ret;
}

/* Transfers all bytes. -ECONNRESET, -ETIMEDOUT. */
static int transfer(const struct bootstrap *b, int fd, void *bytes, size_t n,
		    bool reading)
{
	struct pollfd p = { .fd = fd, .events = reading ? POLLIN : POLLOUT };
	char *at = bytes;
	ssize_t got;

	while (n) {
		got = reading ? recv(fd, at, n, MSG_DONTWAIT) :
				send(fd, at, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (got > 0) {
			at += got;
			n -= (size_t)got;
			continue;
		}
		if (!got || (errno != EAGAIN && errno != EINTR))
			return -ECONNRESET;
		if (!fxi_remaining_ms(b->rendezvous.deadline))
			return client_late(b, "not all ranks have come");
		poll(&p, 1, fxi_remaining_ms(b->rendezvous.deadline));
	}
	return 0;
}

static int client_strange(const struct bootstrap *b)
{
	return fxi_error(EPROTO, "port %s: communicator: what listens at %s is not rank 0 of this version; use another port",
			 b->port->attr.name, b->address);
}

/*
 * A server that refuses our proof has not proved itself, so its text is not
 * shown.
 */
static int client_refused(const struct bootstrap *b,
			  const struct answer *answer)
{
	char text[TEXT];

	if (answer->error == EACCES)
		return fxi_error(EACCES, "port %s: communicator: what listens at %s refuses the proof; give all ranks the same secret (FABREX_SECRET) and the same bootstrap, letter for letter",
				 b->port->attr.name, b->address);
	fxi_printable(text, answer->text, sizeof(text));
	return fxi_error(answer->error == EINVAL ? EINVAL : EPROTO,
			 "port %s: communicator: rank 0 at %s refuses: %s",
			 b->port->attr.name, b->address, text);
}

/*
 * Rank 0 sends the first message. Does it ask for a secret as this rank does?
 */
static int client_asked(const struct bootstrap *b, int fd,
			struct challenge *challenge)
{
	int ret = transfer(b, fd, challenge, sizeof(*challenge), true);

	if (ret)
		return ret;
	if (challenge->magic != MAGIC)
		return client_strange(b);
	if (challenge->secret == b->secret.set)
		return 0;
	return fxi_error(EACCES, "port %s: communicator: rank 0 at %s %s; set FABREX_SECRET to the same for all ranks",
			 b->port->attr.name, b->address, b->secret.set ?
			 "has no secret, so it may be anybody" :
			 "asks for a secret");
}

/* The table, or why there is none; @asked and @ours are the nonces. */
static int client_hear(const struct bootstrap *b, int fd,
		       const struct nonce *asked, const struct nonce *ours,
		       void *all, size_t bytes)
{
	size_t table = b->rendezvous.size * bytes;
	struct answer answer;
	int ret;

	ret = transfer(b, fd, &answer, sizeof(answer), true);
	if (ret)
		return ret;
	if (answer.magic != MAGIC)
		return client_strange(b);
	if (!answer.error)
		ret = transfer(b, fd, all, table, true);
	if (ret)
		return ret;
	if (b->secret.set && answer.error != EACCES &&
	    answer.proof != answer_proof(b, asked, ours, answer, all, table))
		return fxi_error(EACCES, "port %s: communicator: what listens at %s does not know the secret; it is not rank 0",
				 b->port->attr.name, b->address);
	return answer.error ? client_refused(b, &answer) : 0;
}

static int client_talk(const struct bootstrap *b, int fd, uint8_t *greeting,
		       void *all, size_t bytes)
{
	struct challenge challenge;
	struct hello hello;
	int ret;

	ret = client_asked(b, fd, &challenge);
	memcpy(&hello, greeting, sizeof(hello));
	if (!ret)
		ret = new_nonce(b, &hello.nonce);
	if (ret)
		return ret;
	if (b->secret.set)
		hello.proof = hello_proof(b, &challenge.nonce, hello,
					  greeting + sizeof(hello), bytes);
	memcpy(greeting, &hello, sizeof(hello));
	ret = transfer(b, fd, greeting, sizeof(hello) + bytes, false);
	return ret ? ret : client_hear(b, fd, &challenge.nonce, &hello.nonce,
				       all, bytes);
}

/*
 * If rank 0 closes the connection it has died, or it belongs to the
 * communicator before this one and has all its ranks: only time will tell.
 */
static int join(struct bootstrap *b, const void *mine, void *all,
		size_t bytes)
{
	const struct hello hello = {
		.magic = MAGIC, .size = b->rendezvous.size,
		.rank = b->rendezvous.rank, .bytes = (uint32_t)bytes,
	};
	uint8_t *greeting = malloc(sizeof(hello) + bytes);
	int fd = -1, ret;

	if (!greeting)
		return fxi_error(ENOMEM, "port %s: communicator: out of memory",
				 b->port->attr.name);
	memcpy(greeting, &hello, sizeof(hello));
	memcpy(greeting + sizeof(hello), mine, bytes);
	do {
		ret = client_connect(b, &fd);
		if (ret)
			break;
		ret = client_talk(b, fd, greeting, all, bytes);
		close(fd);
		if (ret == -ECONNRESET)
			poll(NULL, 0, RETRY_MS);
	} while (ret == -ECONNRESET);
	free(greeting);
	return ret;
}

int fxi_tcp_exchange(struct rendezvous *rendezvous, const void *mine, void *all,
		     size_t bytes)
{
	struct bootstrap *b = bootstrap_of(rendezvous);
	bool serves = b->unique ? b->listener >= 0 : !rendezvous->rank;

	return serves ? serve(b, mine, all, bytes) : join(b, mine, all, bytes);
}
