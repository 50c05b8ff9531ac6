// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of the loopback transport when a process dies, stops, or writes
 * nonsense into what it shares: the others go on, and nothing is left.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"
#include "party.h"
#include "transport/loopback/state.h"

#define LENGTH	(1u << 20)

static uint32_t random_below(uint32_t n)
{
	uint32_t value;

	CHECK_EQ(getrandom(&value, sizeof(value), 0), sizeof(value));
	return value % n;
}

/* What two processes tell each other before one writes to the other. */
struct card {
	struct fabrex_remote heap, plain;
	uint32_t queue;
	uint64_t key;
};

/* A port with everything that can be written to. */
struct site {
	struct fabrex_port *port;
	struct fabrex_queue *queue;
	struct fabrex_mr *heap, *plain;
	char *memory;
};

static void site_open(struct site *s, const char *name, struct card *card)
{
	const struct fabrex_queue_attr attr = {
		.sq_entries = 64, .rq_entries = 64, .cell_size = 256,
		.flags = FABREX_QUEUE_EVENTFD,
	};

	CHECK_EQ(fabrex_open(loop_name(name), &s->port), 0);
	CHECK_EQ(fabrex_mr_alloc(s->port, LENGTH, FABREX_MR_ALL, &s->heap), 0);
	s->memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s->memory != MAP_FAILED);
	CHECK_EQ(fabrex_mr_register(s->port, s->memory, LENGTH, FABREX_MR_ALL,
				    &s->plain), 0);
	CHECK_EQ(fabrex_queue_create(s->port, &attr, sizeof(attr), &s->queue),
		 0);
	fabrex_mr_remote(s->heap, &card->heap);
	fabrex_mr_remote(s->plain, &card->plain);
	card->queue = fabrex_queue_number(s->queue);
	card->key = fabrex_queue_key(s->queue);
}

/* Something against the other side: anything, of any size. */
static struct fabrex_op any_op(const struct site *s, const struct card *to)
{
	static const uint8_t opcodes[] = {
		FABREX_OP_WRITE, FABREX_OP_READ, FABREX_OP_WRITE_IMM,
		FABREX_OP_FETCH_ADD, FABREX_OP_CMP_SWAP, FABREX_OP_SEND,
	};
	bool plain = random_below(2);
	struct fabrex_op op = {
		.opcode = opcodes[random_below(sizeof(opcodes))],
		.peer = (uint16_t)to->heap.peer,
		.mr = random_below(2) ? s->heap : s->plain,
		.length = random_below(4) ? random_below(256) :
					    random_below(LENGTH),
	};

	if (op.opcode == FABREX_OP_SEND) {
		op.length %= 256;
	} else {
		op.rkey = plain ? to->plain.rkey : to->heap.rkey;
		if (op.opcode == FABREX_OP_FETCH_ADD ||
		    op.opcode == FABREX_OP_CMP_SWAP)
			op.length = 0;
	}
	if (op.opcode == FABREX_OP_SEND || op.opcode == FABREX_OP_WRITE_IMM)
		op.dest_key = to->key;
	return op;
}

/* Status of it; takes what has come meanwhile. */
static int do_op(struct site *s, const struct fabrex_op *op)
{
	int i, n, status = -1;
	struct fabrex_wc wc[16];

	CHECK_EQ(fabrex_post(s->queue, op, 1), 1);
	while (status < 0) {
		n = fabrex_poll(s->queue, wc, 16);
		CHECK(n >= 0);
		for (i = 0; i < n; i++)
			if (wc[i].opcode & FABREX_OP_RECV)
				fabrex_recv_done(s->queue, 1);
			else
				status = wc[i].status;
	}
	return status;
}

static void drain(struct site *s)
{
	struct fabrex_wc wc;

	while (fabrex_poll(s->queue, &wc, 1) == 1)
		fabrex_recv_done(s->queue, 1);
}

/* A peer that does anything to the test until it is killed. */
static void victim(int fd, void *arg)
{
	struct card mine, theirs;
	struct fabrex_op op;
	struct site s;

	(void)arg;
	hear(fd, &theirs, sizeof(theirs));
	site_open(&s, "victim", &mine);
	tell(fd, &mine, sizeof(mine));
	for (;;) {
		op = any_op(&s, &theirs);
		do_op(&s, &op);
	}
}

/* Writes and messages still come through from elsewhere: no lock is held. */
static void check_alive(struct site *a, struct site *b, const struct card *to)
{
	struct fabrex_op send = {
		.opcode = FABREX_OP_SEND, .peer = (uint16_t)to->heap.peer,
		.mr = b->heap, .length = 100, .dest_key = to->key,
	};
	struct fabrex_wc wc;

	drain(a);
	CHECK_EQ(do_op(b, &send), FABREX_WC_OK);
	CHECK_EQ(fabrex_wait(a->queue, HANG_MS), 1);
	CHECK_EQ(fabrex_poll(a->queue, &wc, 1), 1);
	CHECK_EQ(wc.opcode, FABREX_OP_RECV);
	CHECK_EQ(wc.peer, b->port->attr.peer);
	fabrex_recv_done(a->queue, 1);
}

static bool death_status(int status)
{
	return status == FABREX_WC_OK || status == FABREX_WC_UNREACHABLE ||
	       status == FABREX_WC_RFAULT || status == FABREX_WC_RNR;
}

/* Kills the victim while both sides are at it. */
static void kill_once(struct site *a, struct site *b, const struct card *mine,
		      uint32_t *number, const char *cma)
{
	struct party p;
	struct card theirs;
	struct fabrex_op op;
	uint64_t end;
	int status;

	setenv("FABREX_LOOPBACK_CMA", cma, 1);
	party_start(&p, victim, NULL);
	tell(p.fd, mine, sizeof(*mine));
	hear(p.fd, &theirs, sizeof(theirs));
	CHECK(*number == UINT32_MAX || *number == theirs.heap.peer);
	*number = theirs.heap.peer;
	end = fxi_now_ns() + random_below(8000) * 1000u;
	while (fxi_now_ns() < end) {
		op = any_op(a, &theirs);
		status = do_op(a, &op);
		CHECK(death_status(status));
	}
	kill(p.pid, SIGKILL);
	end = fxi_now_ns() + 5000000000u;
	do {
		op = any_op(a, &theirs);
		status = do_op(a, &op);
		CHECK(death_status(status));
		CHECK(fxi_now_ns() < end);
	} while (status != FABREX_WC_UNREACHABLE);
	party_kill(&p);
	peer_await_down(b->port, *number);
	check_alive(a, b, mine);
}

static void kill_many(int times, const char *cma)
{
	uint32_t number = UINT32_MAX;
	struct card mine, other;
	struct fabrex_mr *extra;
	struct site a, b;
	int i;

	loop_name_set();
	setenv("FABREX_LOOPBACK_CMA", cma, 1);
	site_open(&a, "a", &mine);
	site_open(&b, "b", &other);
	for (i = 0; i < times; i++) {
		CHECK_EQ(fabrex_mr_register(a.port, a.memory, LENGTH,
					    FABREX_MR_ALL, &extra), 0);
		kill_once(&a, &b, &mine, &number, cma);
		CHECK_EQ(fabrex_mr_deregister(extra), 0);
	}
	fabrex_close(a.port);
	fabrex_close(b.port);
}

TEST(loop_killed)
{
	kill_many(120, "1");
}

TEST(loop_killed_bounce)
{
	kill_many(80, "0");
}

/* ---- nothing is left --------------------------------------------------- */

static bool any_address(void)
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[512];
	bool found = false;

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		found |= strstr(line, strchr(loop_name(NULL), ':') + 1) != NULL;
	fclose(file);
	return found;
}

static int count_files(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir)))
		n += strstr(entry->d_name, "fabrex/") ||
		     !strncmp(entry->d_name, "fabrex", 6);
	if (dir)
		closedir(dir);
	return n;
}

static long shared_mib(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	long kib = -1;

	CHECK(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "Shmem: %ld", &kib);
	fclose(file);
	return kib / 1024;
}

#define CROWD	6
#define EACH	(64u << 20)

static void hoard(int fd, void *arg)
{
	struct fabrex_mr *mr;
	struct card mine;
	struct site s;

	(void)arg;
	site_open(&s, NULL, &mine);
	CHECK_EQ(fabrex_mr_alloc(s.port, EACH, FABREX_MR_ALL, &mr), 0);
	memset(fabrex_mr_addr(mr), 1, EACH);
	tell(fd, "", 1);
	pause();
}

TEST(loop_all_killed)
{
	int i, shm = count_files("/dev/shm"), tmp = count_files("/tmp");
	struct party p[CROWD];
	long before;
	char ready;

	loop_name_set();
	for (i = 0; i < CROWD; i++)
		party_start(&p[i], hoard, NULL);
	for (i = 0; i < CROWD; i++)
		hear(p[i].fd, &ready, 1);
	CHECK(any_address());
	CHECK_EQ(count_files("/dev/shm"), shm);
	CHECK_EQ(count_files("/tmp"), tmp);
	before = shared_mib();
	for (i = 0; i < CROWD; i++)
		kill(p[i].pid, SIGKILL);
	for (i = 0; i < CROWD; i++)
		party_kill(&p[i]);
	for (i = 0; i < 2000 && any_address(); i++)
		nap_ms(1);
	CHECK(!any_address());
	CHECK(shared_mib() < before - CROWD * 64 / 2);
}

/* ---- stopped ----------------------------------------------------------- */

static void stop(const struct party *p)
{
	int status;

	kill(p->pid, SIGSTOP);
	CHECK_EQ(waitpid(p->pid, &status, WUNTRACED), p->pid);
	CHECK(WIFSTOPPED(status));
}

/* As if it had been stopped while it fills a cell of ours. */
static void check_held_ring(struct site *s, const struct card *mine,
			    const struct card *theirs)
{
	uint64_t *lock = &s->port->transport->segment->queues[
		mine->queue - 1].lock, none = 0;
	struct fabrex_op op = {
		.opcode = FABREX_OP_SEND, .peer = (uint16_t)mine->heap.peer,
		.mr = s->heap, .length = 8, .dest_key = mine->key,
	};

	if (!__atomic_compare_exchange_n(lock, &none, (theirs->heap.peer + 1) |
					 (uint64_t)theirs->heap.generation <<
					 32, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		printf("# it holds the ring indeed\n");
	CHECK_EQ(do_op(s, &op), FABREX_WC_RNR);
}

/*
 * A stopped peer blocks nobody for ever: not those who end regions, not those
 * who join, not those who ask it for something.
 */
TEST(loop_stopped)
{
	struct card mine, theirs;
	struct fabrex_mr *region;
	struct fabrex_port *late;
	struct fabrex_op op;
	struct party p;
	struct site s;
	int ret;

	loop_name_set();
	setenv("FABREX_LOOPBACK_QUIESCE_MS", "1000", 1);
	setenv("FABREX_LOOPBACK_JOIN_MS", "500", 1);
	setenv("FABREX_LOOPBACK_CMA", "0", 1);
	site_open(&s, "steady", &mine);
	party_start(&p, victim, NULL);
	tell(p.fd, &mine, sizeof(mine));
	hear(p.fd, &theirs, sizeof(theirs));
	nap_ms(20);
	stop(&p);
	CHECK_EQ(fabrex_open(loop_name("late"), &late), 0);
	fabrex_close(late);
	op = (struct fabrex_op){
		.opcode = FABREX_OP_WRITE, .peer = (uint16_t)theirs.heap.peer,
		.mr = s.heap, .length = LENGTH, .rkey = theirs.plain.rkey,
	};
	CHECK_EQ(do_op(&s, &op), FABREX_WC_RFAULT);
	check_held_ring(&s, &mine, &theirs);
	CHECK_EQ(fabrex_mr_deregister(s.heap), 0);
	ret = fabrex_mr_deregister(s.plain);
	CHECK(!ret || ret == -ETIMEDOUT);
	if (ret)
		CHECK_SAYS("victim");
	CHECK_EQ(fabrex_mr_alloc(s.port, LENGTH, FABREX_MR_ALL, &region), 0);
	CHECK_EQ(fabrex_mr_deregister(region), 0);
	kill(p.pid, SIGCONT);
	nap_ms(50);
	if (ret)
		CHECK_EQ(fabrex_mr_deregister(s.plain), 0);
	party_kill(&p);
	fabrex_close(s.port);
}

/* ---- late writes ------------------------------------------------------- */

/* Shared by plain memory of the test's own, not by the fabric. */
struct board {
	struct fabrex_remote remote;
	uint32_t round;		/* odd: remote is being changed */
	uint64_t ok, refused;
};

static void writer(int fd, void *arg)
{
	struct board *board = arg;
	struct fabrex_op op = { .opcode = FABREX_OP_WRITE };
	struct card mine;
	struct site s;
	uint32_t round;

	site_open(&s, NULL, &mine);
	memset(fabrex_mr_addr(s.heap), 0xee, LENGTH);
	op.mr = s.heap;
	tell(fd, "", 1);
	for (;;) {
		round = __atomic_load_n(&board->round, __ATOMIC_ACQUIRE);
		op.peer = (uint16_t)board->remote.peer;
		op.rkey = board->remote.rkey;
		op.length = random_below(8) ? 4096 : LENGTH / 2;
		if (round & 1 || !op.rkey)
			continue;
		if (do_op(&s, &op))
			__atomic_add_fetch(&board->refused, 1,
					   __ATOMIC_RELAXED);
		else
			__atomic_add_fetch(&board->ok, 1, __ATOMIC_RELAXED);
	}
}

static bool all_are(const char *p, size_t n, char value)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (__atomic_load_n(p + i, __ATOMIC_RELAXED) != value)
			return false;
	return true;
}

static void canary_round(struct fabrex_port *port, struct board *board,
			 char *memory, bool heap)
{
	uint64_t ok = __atomic_load_n(&board->ok, __ATOMIC_RELAXED);
	struct fabrex_mr *mr, *again;
	int i;

	CHECK_EQ(heap ? fabrex_mr_alloc(port, LENGTH, FABREX_MR_ALL, &mr) :
			fabrex_mr_register(port, memory, LENGTH,
					   FABREX_MR_ALL, &mr), 0);
	__atomic_add_fetch(&board->round, 1, __ATOMIC_ACQ_REL);
	fabrex_mr_remote(mr, &board->remote);
	__atomic_add_fetch(&board->round, 1, __ATOMIC_ACQ_REL);
	for (i = 0; i < 20000 && __atomic_load_n(&board->ok,
						 __ATOMIC_RELAXED) < ok + 3;
	     i++)
		usleep(50 + random_below(50));
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	if (heap) {
		CHECK_EQ(fabrex_mr_alloc(port, LENGTH, 0, &again), 0);
		memory = fabrex_mr_addr(again);
	}
	memset(memory, 0x5a, LENGTH);
	usleep(500);
	CHECK(all_are(memory, LENGTH, 0x5a));
	if (heap)
		CHECK_EQ(fabrex_mr_deregister(again), 0);
}

#define WRITERS	2

static void canary(int rounds, bool heap, const char *cma)
{
	struct party p[WRITERS];
	struct fabrex_port *port;
	struct board *board;
	char *memory, ready;
	int i;

	loop_name_set();
	setenv("FABREX_LOOPBACK_CMA", cma, 1);
	board = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(board != MAP_FAILED);
	memory = malloc(LENGTH);
	CHECK(memory);
	CHECK_EQ(fabrex_open(loop_name("owner"), &port), 0);
	for (i = 0; i < WRITERS; i++)
		party_start(&p[i], writer, board);
	for (i = 0; i < WRITERS; i++)
		hear(p[i].fd, &ready, 1);
	for (i = 0; i < rounds; i++)
		canary_round(port, board, memory, heap);
	printf("# %llu writes, %llu refused\n",
	       (unsigned long long)board->ok,
	       (unsigned long long)board->refused);
	CHECK(board->refused);
	for (i = 0; i < WRITERS; i++)
		party_kill(&p[i]);
	fabrex_close(port);
	free(memory);
}

TEST(loop_late_writes_heap)
{
	canary(300, true, "1");
}

TEST(loop_late_writes_process)
{
	canary(300, false, "1");
}

TEST(loop_late_writes_bounce)
{
	canary(150, false, "0");
}

/* ---- nonsense ---------------------------------------------------------- */

/* Everything but the futexes of the kernel's own: it is our own segment. */
static void scribble(struct segment *segment, uint64_t size)
{
	static uint64_t noise[8192];
	uint64_t offset, length;

	CHECK_EQ(getrandom(noise, 256, 0), 256);
	memcpy((char *)noise + 256, noise, 256);
	length = 8 * (1 + random_below(8000));
	if (random_below(2))
		getrandom(noise, length < sizeof(noise) ? length :
			  sizeof(noise), 0);
	offset = random_below(4) ?
		 random_below((uint32_t)sizeof(*segment)) / 8 * 8 :
		 random_below(8) * 8;
	if (offset + length > size)
		length = size - offset;
	memcpy((char *)segment + offset, noise, length);
}

/* Its own threads may fall over what it writes; that is its own affair. */
static void lunatic(int fd, void *arg)
{
	struct card mine, theirs;
	struct transport *t;
	struct fabrex_op op;
	struct site s;
	int i;

	(void)arg;
	hear(fd, &theirs, sizeof(theirs));
	site_open(&s, "lunatic", &mine);
	t = s.port->transport;
	tell(fd, &mine, sizeof(mine));
	for (i = 0; i < 50; i++) {
		op = any_op(&s, &theirs);
		if (op.opcode == FABREX_OP_WRITE)
			do_op(&s, &op);
	}
	for (;;) {
		scribble(t->segment, sizeof(struct segment));
		if (!random_below(64))
			t->segment->queues_used = random_below(2000);
	}
}

static void provoke(struct site *s, const struct card *theirs)
{
	struct fabrex_window *window;
	struct fabrex_remote remote = theirs->heap;
	uint32_t number;
	uint64_t key;
	struct fabrex_op op;

	op = any_op(s, theirs);
	CHECK(do_op(s, &op) <= FABREX_WC_ABORTED);
	/* Keys as they are now, whatever they are. */
	op.rkey = __atomic_load_n(
		&((struct transport *)s->port->transport)->peers[
			theirs->heap.peer].segment->mrs[op.rkey & 3].key,
		__ATOMIC_RELAXED);
	if (op.opcode != FABREX_OP_SEND)
		CHECK(do_op(s, &op) <= FABREX_WC_ABORTED);
	fabrex_resolve(s->port, theirs->heap.peer, random_below(3), &number,
		       &key);
	remote.length = 1ull << 40;
	remote.rkey = op.rkey;
	if (!fabrex_window_map(s->port, &remote, 0, 4096,
			       FABREX_MR_REMOTE_READ, &window))
		fabrex_window_unmap(window);
}

TEST(loop_nonsense)
{
	struct card mine, other, theirs;
	struct fabrex_mr *region;
	struct site a, b;
	struct party p;
	int i, round;

	loop_name_set();
	setenv("FABREX_LOOPBACK_SIZE", "64M", 1);
	setenv("FABREX_LOOPBACK_QUIESCE_MS", "200", 1);
	site_open(&a, "a", &mine);
	site_open(&b, "b", &other);
	for (round = 0; round < 10; round++) {
		party_start(&p, lunatic, NULL);
		tell(p.fd, &mine, sizeof(mine));
		hear(p.fd, &theirs, sizeof(theirs));
		for (i = 0; i < 300; i++)
			provoke(&a, &theirs);
		CHECK_EQ(fabrex_mr_alloc(a.port, 4096, FABREX_MR_ALL, &region),
			 0);
		CHECK_EQ(fabrex_mr_deregister(region), 0);
		check_alive(&a, &b, &mine);
		party_kill(&p);
		peer_await_down(a.port, theirs.heap.peer);
		check_alive(&a, &b, &mine);
	}
	CHECK_EQ(fabrex_mr_deregister(a.heap), 0);
	fabrex_close(a.port);
	fabrex_close(b.port);
}

/* ---- garbage over links ------------------------------------------------ */

static int raw_connection(uint32_t number)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), n;

	CHECK(fd >= 0);
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "fabrex/%u/%s/%u",
		     (unsigned int)geteuid(),
		     strchr(loop_name(NULL), ':') + 1, number);
	if (connect(fd, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				(size_t)n))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Right in parts, so that it gets past some of what is checked. */
static void any_message(struct loop_message *m)
{
	CHECK_EQ(getrandom(m, sizeof(*m), 0), sizeof(*m));
	m->type = random_below(12);
	m->number = random_below(8) ? 100 + random_below(100) :
				      random_below(300);
	if (random_below(4))
		m->version = SEGMENT_VERSION;
	if (random_below(4))
		m->size = random_below(64) * LOOP_HUGE;
	if (random_below(2))
		m->value[REQUEST_LENGTH] = random_below(1 << 20);
	if (random_below(2))
		m->value[REQUEST_PIECE] = random_below(1 << 20) * 64ull;
	m->name[31] = m->host[31] = 0;
}

static int any_file(void)
{
	int fd;

	if (random_below(2))
		return -1;
	if (random_below(2))
		return eventfd(0, EFD_CLOEXEC);
	fd = memfd_create("garbage", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	CHECK(!ftruncate(fd, random_below(64) * LOOP_HUGE));
	if (random_below(2))
		CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return fd;
}

/* A greeting that is believed, to get at what comes after it. */
static int greet(uint32_t to, uint32_t number)
{
	struct loop_message m = {
		.type = LOOP_HELLO, .number = number, .generation = 4711,
		.version = SEGMENT_VERSION, .size = 4 * LOOP_HUGE,
		.name = "garbage",
	};
	int fd = raw_connection(to), file, passed;
	struct segment *s;

	if (fd < 0)
		return -1;
	file = memfd_create("garbage", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	CHECK(!ftruncate(file, 4 * LOOP_HUGE));
	CHECK(!fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK));
	s = mmap(NULL, 4 * LOOP_HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, file,
		 0);
	CHECK(s != MAP_FAILED);
	s->magic = SEGMENT_MAGIC;
	s->version = SEGMENT_VERSION;
	s->generation = 4711;
	fxi_loop_socket_send(fd, &m, file);
	nap_ms(2);
	if (fxi_loop_socket_receive(fd, &m, &passed) == 1 && passed >= 0)
		close(passed);
	m.type = LOOP_READY;
	fxi_loop_socket_send(fd, &m, -1);
	munmap(s, 4 * LOOP_HUGE);
	close(file);
	return fd;
}

static void babble(int fd, void *arg)
{
	struct loop_message m;
	struct card to;
	int sock, file, i, n;

	(void)arg;
	hear(fd, &to, sizeof(to));
	for (i = 0; i < 400; i++) {
		sock = random_below(2) ? raw_connection(to.heap.peer) :
		       greet(to.heap.peer, 100 + random_below(100));
		if (sock < 0)
			continue;
		for (n = (int)random_below(20); n; n--) {
			any_message(&m);
			if (random_below(3))
				m.value[REQUEST_KEY] = random_below(2) ?
					to.heap.rkey : to.plain.rkey;
			file = any_file();
			fxi_loop_socket_send(sock, &m, file);
			if (file >= 0)
				close(file);
		}
		if (!random_below(8))
			CHECK(send(sock, &m, random_below(sizeof(m)),
				   MSG_NOSIGNAL) >= -1);
		close(sock);
	}
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

TEST(loop_garbage)
{
	struct card mine, other;
	struct site a, b;
	struct party p;
	int files, i;

	loop_name_set();
	setenv("FABREX_LOOPBACK_SIZE", "64M", 1);
	site_open(&a, "a", &mine);
	site_open(&b, "b", &other);
	party_start(&p, babble, NULL);
	files = open_files();
	tell(p.fd, &mine, sizeof(mine));
	for (i = 0; i < 20; i++) {
		nap_ms(20);
		check_alive(&a, &b, &mine);
	}
	party_end(&p);
	check_alive(&a, &b, &mine);
	for (i = 0; i < 3000 && open_files() > files; i++)
		nap_ms(1);
	CHECK(open_files() <= files);
	fabrex_close(a.port);
	fabrex_close(b.port);
}

/* ---- who is dead -------------------------------------------------------- */

static pthread_t first;
static int told[2];

/* Once the first thread has ended. */
static void *goes_on(void *unused)
{
	(void)unused;
	pthread_join(first, NULL);
	CHECK_EQ(write(told[1], "x", 1), 1);
	for (;;)
		pause();
	return NULL;
}

static void first_thread_ends(void)
{
	pthread_t other;

	alarm(20);
	first = pthread_self();
	CHECK(!pthread_create(&other, NULL, goes_on, NULL));
	pthread_exit(NULL);
}

TEST(loop_first_thread_ended)
{
	siginfo_t info;
	pid_t pid;
	char c;

	CHECK(!pipe(told));
	pid = fork();
	if (!pid)
		first_thread_ends();
	CHECK(pid > 0 && read(told[0], &c, 1) == 1);
	/* Joined a moment before it is a zombie. */
	usleep(50000);
	CHECK(!fxi_loop_is_dead(pid));
	CHECK(!kill(pid, SIGKILL));
	CHECK(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	CHECK(fxi_loop_is_dead(pid));
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK(fxi_loop_is_dead(pid));
}
