// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of the loopback transport when a process dies or stops: the
 * others go on, and nothing is left.
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
#include "site.h"
#include "transport/loopback/state.h"

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
		op = site_any_op(&s, &theirs);
		site_do(&s, &op);
	}
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
	end = fxi_now_ns() + site_random(8000) * 1000u;
	while (fxi_now_ns() < end) {
		op = site_any_op(a, &theirs);
		status = site_do(a, &op);
		CHECK(death_status(status));
	}
	kill(p.pid, SIGKILL);
	end = fxi_now_ns() + 5000000000u;
	do {
		op = site_any_op(a, &theirs);
		status = site_do(a, &op);
		CHECK(death_status(status));
		CHECK(fxi_now_ns() < end);
	} while (status != FABREX_WC_UNREACHABLE);
	party_kill(&p);
	peer_await_down(b->port, *number);
	site_check_alive(a, b, mine);
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
	/* Those of other tests come and go. */
	for (i = 0; i < 10000 && (count_files("/dev/shm") > shm ||
				  count_files("/tmp") > tmp); i++)
		nap_ms(1);
	CHECK(count_files("/dev/shm") <= shm);
	CHECK(count_files("/tmp") <= tmp);
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
	CHECK_EQ(site_do(s, &op), FABREX_WC_RNR);
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
	CHECK_EQ(site_do(&s, &op), FABREX_WC_RFAULT);
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
		op.length = site_random(8) ? 4096 : LENGTH / 2;
		if (round & 1 || !op.rkey)
			continue;
		if (site_do(&s, &op))
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
		usleep(50 + site_random(50));
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
