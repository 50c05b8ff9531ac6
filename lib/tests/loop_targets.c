// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of the loopback transport's targets that do not answer, or are not what
 * they were: what was reported of an operation is what becomes of it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <stddef.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"
#include "party.h"
#include "transport/loopback/state.h"

/* Memory that both see without the fabric. */
static void *shared(size_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* Who operates. */
struct site {
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;
};

static void site_open(struct site *s, const char *name)
{
	CHECK_EQ(fabrex_open(loop_name(name), &s->port), 0);
	CHECK_EQ(fabrex_queue_create(s->port, NULL, 0, &s->queue), 0);
	CHECK_EQ(fabrex_mr_alloc(s->port, 1u << 20, FABREX_MR_ALL, &s->mr), 0);
}

static void stop(const struct party *p)
{
	int status;

	kill(p->pid, SIGSTOP);
	CHECK_EQ(waitpid(p->pid, &status, WUNTRACED), p->pid);
	CHECK(WIFSTOPPED(status));
}

/* ---- stopped ----------------------------------------------------------- */

struct counter {
	uint64_t word;
	struct fabrex_remote remote;
};

static void count_for_others(int fd, void *arg)
{
	struct counter *c = arg;
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	char order;

	CHECK_EQ(fabrex_open(loop_name("counter"), &port), 0);
	CHECK_EQ(fabrex_mr_register(port, &c->word, 8, FABREX_MR_ALL, &mr), 0);
	fabrex_mr_remote(mr, &c->remote);
	tell(fd, "", 1);
	hear_maybe(fd, &order, 1);
}

/* What was reported to have failed does not happen when its target goes on. */
TEST(loop_stopped_counter)
{
	struct counter *c = shared(sizeof(*c));
	struct fabrex_op op = { .opcode = FABREX_OP_FETCH_ADD, .operand = 1 };
	struct party p;
	struct site s;
	char ready;
	int i;

	loop_name_set();
	setenv("FABREX_LOOPBACK_QUIESCE_MS", "100", 1);
	setenv("FABREX_LOOPBACK_CMA", "0", 1);
	party_start(&p, count_for_others, c);
	hear(p.fd, &ready, 1);
	site_open(&s, "asks");
	op.peer = (uint16_t)c->remote.peer;
	op.rkey = c->remote.rkey;
	op.mr = s.mr;
	CHECK_EQ(operate(s.queue, &op), FABREX_WC_OK);
	stop(&p);
	for (i = 0; i < 3; i++)
		CHECK_EQ(operate(s.queue, &op), FABREX_WC_RFAULT);
	CHECK_EQ(c->word, 1);
	kill(p.pid, SIGCONT);
	CHECK_EQ(operate(s.queue, &op), FABREX_WC_OK);
	CHECK_EQ(c->word, 2);
	CHECK_EQ(*(uint64_t *)fabrex_mr_addr(s.mr), 1);
	party_kill(&p);
	fabrex_close(s.port);
}

/* ---- another program --------------------------------------------------- */

static void become_another(int fd, void *arg)
{
	struct fabrex_remote *remote = arg;
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	char order;

	CHECK_EQ(fabrex_open(loop_name("old"), &port), 0);
	CHECK_EQ(fabrex_mr_register(port, malloc(1 << 16), 1 << 16,
				    FABREX_MR_ALL, &mr), 0);
	fabrex_mr_remote(mr, remote);
	tell(fd, "", 1);
	hear(fd, &order, 1);
	execlp("sleep", "sleep", "20", NULL);
	_exit(1);
}

static bool link_ended(const struct loop_peer *peer)
{
	struct pollfd pfd = { .fd = peer->sock, .events = POLLRDHUP };

	return poll(&pfd, 1, 0) > 0;
}

/*
 * Nothing is written to what the program has become, or read from it, not even at
 * first. told: by the word in its segment, not by the connection's end.
 */
static void exec_ends_it(bool told)
{
	struct fabrex_remote *remote = shared(sizeof(*remote));
	struct fabrex_op op = { .opcode = FABREX_OP_WRITE, .length = 4096 };
	struct loop_peer *peer;
	struct transport *t;
	struct party p;
	struct site s;
	char ready;
	int i;

	loop_name_set();
	party_start(&p, become_another, remote);
	hear(p.fd, &ready, 1);
	site_open(&s, "asks");
	t = s.port->transport;
	peer = &t->peers[remote->peer];
	op.peer = (uint16_t)remote->peer;
	op.rkey = remote->rkey;
	op.mr = s.mr;
	CHECK(peer->segment->living);
	CHECK(!(peer->segment->living & FUTEX_OWNER_DIED));
	if (!told)
		peer->segment->living = 0;
	CHECK_EQ(operate(s.queue, &op), FABREX_WC_OK);
	/* The service thread does not get to read the connection's end. */
	pthread_mutex_lock(&t->lock);
	tell(p.fd, "", 1);
	for (i = 0; i < HANG_MS && !link_ended(peer); i++)
		nap_ms(1);
	if (told)
		CHECK(peer->segment->living & FUTEX_OWNER_DIED);
	if (peer->cma) {
		CHECK_EQ(operate(s.queue, &op), FABREX_WC_UNREACHABLE);
		op.opcode = FABREX_OP_READ;
		CHECK_EQ(operate(s.queue, &op), FABREX_WC_UNREACHABLE);
	}
	pthread_mutex_unlock(&t->lock);
	peer_await_down(s.port, op.peer);
	party_kill(&p);
	fabrex_close(s.port);
}

TEST(loop_exec)
{
	exec_ends_it(true);
}

TEST(loop_exec_untold)
{
	exec_ends_it(false);
}

/* ---- who says that it is another one ----------------------------------- */

static int say_hello(uint32_t to, const struct loop_message *m)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), n;

	CHECK(fd >= 0);
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "fabrex/%u/%s/%u",
		     (unsigned int)geteuid(),
		     strchr(loop_name(NULL), ':') + 1, to);
	CHECK(!connect(fd, (struct sockaddr *)&a,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				   (size_t)n)));
	CHECK_EQ(fxi_loop_socket_send(fd, m, -1), 0);
	return fd;
}

/* A living port is not thrown out by somebody who uses its number. */
TEST(loop_impostor)
{
	struct loop_message m = {
		.type = LOOP_HELLO, .number = 1, .generation = 1,
		.version = SEGMENT_VERSION, .size = LOOP_HUGE * 16,
	};
	struct fabrex_port *other;
	struct fabrex_peer peer;
	struct site s;
	int fd;

	loop_name_set();
	site_open(&s, "old");
	CHECK_EQ(fabrex_open(loop_name("living"), &other), 0);
	CHECK_EQ(other->attr.peer, 1);
	fd = say_hello(0, &m);
	nap_ms(100);
	CHECK_EQ(fabrex_peer_find(s.port, "living", &peer), 0);
	CHECK(peer.up);
	close(fd);
	fabrex_close(other);
	peer_await_down(s.port, 1);
	fabrex_close(s.port);
}
