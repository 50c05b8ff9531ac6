// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of receive rings of the loopback transport between processes: many
 * senders at once, senders that are killed at random, and one that is killed
 * at each instruction of sending. Nothing is lost or doubled, order stays, and
 * nobody waits for the dead. Run by main.c.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"
#include "party.h"
#include "transport/loopback/loopback.h"

#define SENDERS		8u
#define MESSAGES	2000u
#define KILLS		100u
#define IDS		(SENDERS + KILLS)
#define LONGEST		200u

/* In memory that all share. A sender is known by its id. */
struct board {
	uint32_t peer, queue;	/* of the receiver */
	uint64_t key;
	uint32_t started[IDS], done[IDS];
	bool stop;
};

struct note {
	uint32_t id, count;
	uint8_t fill[LONGEST];
};

struct receiver {
	struct board *board;
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	uint32_t got[IDS];
	uint32_t held;
};

static struct board *board_make(void)
{
	struct board *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(b != MAP_FAILED);
	return b;
}

static uint32_t length_of(uint32_t count)
{
	return 8 + count * 7 % LONGEST;
}

/* ---- sending ----------------------------------------------------------- */

struct sender {
	struct board *board;
	uint32_t id;
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_mr *mr;
};

/*
 * A receiver that cannot map our memory says so. It was seen once in a hundred
 * runs of ring_senders_killed, for a reason that is not known: say which errno it
 * was, and try again, as what is tested here is something else.
 */
static void sender_open(struct sender *s)
{
	char name[16];
	int ret, i;

	snprintf(name, sizeof(name), "s%u", s->id);
	for (i = 0; i < 20; i++) {
		ret = fabrex_open(loop_name(name), &s->port);
		if (!ret)
			break;
		fprintf(stderr, "# refused: %s\n", fabrex_strerror_last());
		usleep(50000);
	}
	CHECK_EQ(ret, 0);
	CHECK_EQ(fabrex_queue_create(s->port, NULL, 0, &s->queue), 0);
	CHECK_EQ(fabrex_mr_alloc(s->port, 4096, 0, &s->mr), 0);
}

static void note_write(struct sender *s, uint32_t count)
{
	struct note *n = fabrex_mr_addr(s->mr);

	n->id = s->id;
	n->count = count;
	memset(n->fill, (int)(s->id + count), LONGEST);
}

/* Until there is a cell. */
static void send_one(struct sender *s, uint32_t count)
{
	const struct board *b = s->board;
	struct fabrex_wc wc;

	note_write(s, count);
	do {
		CHECK_EQ(fabrex_post_send(s->queue, b->peer, b->key, s->mr, 0,
					  length_of(count), count, 0), 0);
		CHECK_EQ(fabrex_poll(s->queue, &wc, 1), 1);
		if (wc.status == FABREX_WC_RNR)
			sched_yield();
	} while (wc.status == FABREX_WC_RNR);
	CHECK_EQ(wc.status, FABREX_WC_OK);
}

/* started is counted before, done after: what is between may be either. */
static void sender_run(int fd, void *arg)
{
	struct sender *s = arg;
	uint32_t count = 0;

	(void)fd;
	sender_open(s);
	while (!__atomic_load_n(&s->board->stop, __ATOMIC_RELAXED) &&
	       (s->id >= IDS || count < MESSAGES)) {
		__atomic_store_n(&s->board->started[s->id % IDS], count + 1,
				 __ATOMIC_RELEASE);
		send_one(s, count++);
		__atomic_store_n(&s->board->done[s->id % IDS], count,
				 __ATOMIC_RELEASE);
	}
	fabrex_close(s->port);
}

/* ---- receiving --------------------------------------------------------- */

static void receiver_open(struct receiver *r, uint32_t cells)
{
	const struct fabrex_queue_attr attr = {
		.rq_entries = cells, .cell_size = 256,
		.flags = FABREX_QUEUE_EVENTFD,
	};
	struct fabrex_port_attr port;

	memset(r, 0, sizeof(*r));
	r->board = board_make();
	CHECK_EQ(fabrex_open(loop_name("receiver"), &r->port), 0);
	CHECK_EQ(fabrex_query(r->port, &port, sizeof(port)), 0);
	CHECK_EQ(fabrex_queue_create(r->port, &attr, sizeof(attr), &r->queue),
		 0);
	r->board->peer = port.peer;
	r->board->queue = fabrex_queue_number(r->queue);
	r->board->key = fabrex_queue_key(r->queue);
}

/* The next one of its sender, whole. */
static void note_check(struct receiver *r, const struct fabrex_wc *wc)
{
	const struct note *n = wc->data;
	uint32_t i, id;

	CHECK_EQ(wc->opcode, FABREX_OP_RECV);
	id = n->id % IDS;
	CHECK_EQ(n->count, r->got[id]);
	CHECK_EQ(wc->imm, n->count);
	CHECK_EQ(wc->length, length_of(n->count));
	for (i = 8; i < wc->length; i++)
		CHECK_EQ(n->fill[i - 8], (uint8_t)(n->id + n->count));
	r->got[id]++;
}

/* Cells are given back late now and then, so that senders find none. */
static uint32_t receive_some(struct receiver *r)
{
	struct fabrex_wc wc[8];
	int i, n = fabrex_poll(r->queue, wc, 8);

	CHECK(n >= 0);
	for (i = 0; i < n; i++)
		note_check(r, &wc[i]);
	r->held += (uint32_t)n;
	if (r->held > 5 || !n) {
		fabrex_recv_done(r->queue, r->held);
		r->held = 0;
	}
	return (uint32_t)n;
}

/* One that has failed has said why: nobody waits for it. */
static uint32_t receive_from(struct receiver *r, const struct party *party)
{
	uint32_t n = receive_some(r);
	siginfo_t end = { 0 };

	if (n)
		return n;
	CHECK(!waitid(P_PID, (id_t)party->pid, &end,
		      WEXITED | WNOHANG | WNOWAIT));
	CHECK(!end.si_pid || (end.si_code == CLD_EXITED && !end.si_status));
	return 0;
}

TEST(ring_many_senders)
{
	struct sender s[SENDERS] = { 0 };
	struct party party[SENDERS];
	struct receiver r;
	uint32_t i, total = 0, turn = 0;

	loop_name_set();
	receiver_open(&r, 16);
	for (i = 0; i < SENDERS; i++) {
		s[i].board = r.board;
		s[i].id = i;
		party_start(&party[i], sender_run, &s[i]);
	}
	while (total < SENDERS * MESSAGES)
		total += receive_from(&r, &party[turn++ % SENDERS]);
	for (i = 0; i < SENDERS; i++) {
		party_end(&party[i]);
		CHECK_EQ(r.got[i], MESSAGES);
	}
	CHECK_EQ(receive_some(&r), 0);
	fabrex_close(r.port);
}

/* ---- threads ------------------------------------------------------------ */

static void *thread_run(void *arg)
{
	struct sender *s = arg;
	uint32_t count;

	for (count = 0; count < MESSAGES; count++)
		send_one(s, count);
	return NULL;
}

/* Of one port, to itself: all see the same addresses, as tools for races need. */
TEST(ring_threads)
{
	struct sender s[4] = { 0 };
	pthread_t thread[4];
	struct receiver r;
	uint32_t i, total = 0;

	receiver_open(&r, 16);
	for (i = 0; i < 4; i++) {
		s[i].board = r.board;
		s[i].id = i;
		CHECK_EQ(fabrex_queue_create(r.port, NULL, 0, &s[i].queue), 0);
		CHECK_EQ(fabrex_mr_alloc(r.port, 4096, 0, &s[i].mr), 0);
		CHECK(!pthread_create(&thread[i], NULL, thread_run, &s[i]));
	}
	while (total < 4 * MESSAGES) {
		if (total % 64 == 0)
			CHECK_EQ(fabrex_wait(r.queue, HANG_MS), 1);
		total += receive_some(&r);
	}
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	fabrex_close(r.port);
}

/* ---- killed at random -------------------------------------------------- */

static void start_endless(struct receiver *r, struct party *party, uint32_t id)
{
	struct sender s = { .board = r->board, .id = IDS + id };

	party_start(party, sender_run, &s);
}

static void receive_for(struct receiver *r, uint64_t ns)
{
	uint64_t end = fxi_now_ns() + ns;

	do {
		if (!receive_some(r))
			sched_yield();
	} while (fxi_now_ns() < end);
}

/* Some while after it has begun. */
static void kill_one(struct receiver *r, struct party *party, uint32_t id)
{
	while (!__atomic_load_n(&r->board->done[id], __ATOMIC_ACQUIRE))
		receive_from(r, party);
	receive_for(r, (uint64_t)(rand() % 1500) * 1000);
	party_kill(party);
	close(party->fd);
}

TEST(ring_senders_killed)
{
	struct party party[SENDERS];
	uint32_t id[SENDERS], i, k;
	struct receiver r;

	srand((unsigned int)getpid());
	loop_name_set();
	receiver_open(&r, 16);
	for (i = 0; i < SENDERS; i++)
		start_endless(&r, &party[i], id[i] = i);
	for (k = 0; k < KILLS; k++) {
		i = (uint32_t)rand() % SENDERS;
		kill_one(&r, &party[i], id[i]);
		start_endless(&r, &party[i], id[i] = SENDERS + k);
	}
	/* All that live go on. */
	for (i = 0; i < SENDERS; i++) {
		uint32_t seen = r.got[id[i]];

		while (r.got[id[i]] < seen + 100)
			receive_from(&r, &party[i]);
	}
	for (i = 0; i < SENDERS; i++) {
		party_kill(&party[i]);
		close(party[i].fd);
	}
	receive_for(&r, 50000000);
	while (receive_some(&r))
		;
	for (i = 0; i < IDS; i++) {
		CHECK(r.got[i] >= r.board->done[i]);
		CHECK(r.got[i] <= r.board->started[i]);
	}
	fabrex_close(r.port);
}

/* ---- killed at each instruction ---------------------------------------- */

/* Sends the second message between two stops; the first by the long way. */
static void victim_run(int fd, void *arg)
{
	struct sender *s = arg;

	(void)fd;
	sender_open(s);
	send_one(s, 0);
	note_write(s, 1);
	CHECK(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	raise(SIGSTOP);
	CHECK_EQ(fabrex_post_send(s->queue, s->board->peer, s->board->key, s->mr,
				  0, length_of(1), 1, 0), 0);
	raise(SIGSTOP);
}

static void await_stop(pid_t pid)
{
	int status;

	do {
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSTOPPED(status));
	} while (WSTOPSIG(status) != SIGSTOP);
}

/* False: it has come to the second stop before. */
static bool step(pid_t pid, unsigned int n)
{
	int status;

	while (n--) {
		CHECK(!ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL));
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGSTOP)
			return false;
	}
	return true;
}

static bool readable(const struct fabrex_queue *q, int ms)
{
	struct pollfd pfd = { .fd = fabrex_queue_fd(q), .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

/* The messages of both; whoever was first has woken us. */
static void check_both(struct receiver *r, uint32_t victim, uint32_t after)
{
	uint32_t until = r->got[after] + 1;

	CHECK(readable(r->queue, HANG_MS));
	while (r->got[after] < until)
		receive_some(r);
	CHECK(r->got[victim] == 1 || r->got[victim] == 2);
}

static bool kill_after(struct receiver *r, struct sender *after,
		       unsigned int steps)
{
	struct sender s = { .board = r->board, .id = steps % (IDS - 1) };
	struct party party;
	bool more;

	r->got[s.id] = 0;
	party_start(&party, victim_run, &s);
	await_stop(party.pid);
	while (!r->got[s.id])
		receive_some(r);
	CHECK_EQ(fabrex_arm(r->queue), 0);
	more = step(party.pid, steps);
	party_kill(&party);
	close(party.fd);
	/* Others are not kept waiting, and find the ring whole. */
	send_one(after, r->got[after->id]);
	check_both(r, s.id, after->id);
	CHECK(more || r->got[s.id] == 2);
	return more;
}

TEST(ring_killed_at_each_instruction)
{
	struct sender after = { .id = IDS - 1 };
	struct receiver r;
	unsigned int n = 0;

	loop_name_set();
	receiver_open(&r, 8);
	after.board = r.board;
	sender_open(&after);
	while (kill_after(&r, &after, n))
		n++;
	CHECK(n > 50);
	printf("# %u instructions\n", n);
	fabrex_close(after.port);
	fabrex_close(r.port);
}
