// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of the registration cache on the fake fabric: reuse, staleness,
 * limits, threads, fork, and that a hit makes no system call.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/capability.h>
#include <linux/seccomp.h>

#include "fakedev.h"
#include "core/core.h"
#include "base/interval.h"
#include "test.h"

#define SIZE	65536u

static char memory[SIZE] __attribute__((aligned(4096)));

static struct fabrex_mr *get(struct fabrex_port *port, size_t from,
			     size_t length, uint32_t access)
{
	struct fabrex_mr *mr;
	uint64_t offset;

	CHECK_EQ(fabrex_mr_cache_get(port, memory + from, length, access, &mr,
				     &offset), 0);
	CHECK((char *)fabrex_mr_addr(mr) + offset == memory + from);
	CHECK(offset + length <= fabrex_mr_length(mr));
	return mr;
}

static struct fabrex_mr_cache_stats stats_of(struct fabrex_port *port)
{
	struct fabrex_mr_cache_stats s;

	CHECK_EQ(fabrex_mr_cache_stats(port, &s, sizeof(s)), 0);
	return s;
}

TEST(cache_reuses)
{
	struct fabrex_mr *a, *b, *c;
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	a = get(port, 0, 8192, FABREX_MR_REMOTE_READ);
	b = get(port, 100, 50, 0);
	CHECK(a == b);
	c = get(port, 100, 50, FABREX_MR_REMOTE_WRITE);
	CHECK(c != a);
	fabrex_mr_cache_put(a);
	fabrex_mr_cache_put(b);
	fabrex_mr_cache_put(c);
	CHECK(get(port, 0, 8192, FABREX_MR_REMOTE_READ) == a);
	CHECK(get(port, 8191, 2, FABREX_MR_REMOTE_READ) != a);
	CHECK_EQ(fake_registrations(), 3);
	CHECK_EQ(stats_of(port).hits, 2);
	CHECK_EQ(stats_of(port).misses, 3);
	CHECK_EQ(stats_of(port).regions, 3);
	CHECK_EQ(stats_of(port).bytes, 8192 + 50 + 2);
	CHECK_EQ(fabrex_mr_deregister(a), -EBUSY);
	CHECK_SAYS("fabrex_mr_cache_put");
	fabrex_close(port);
}

/* What peers can use is exact; the rest is whole pages. */
TEST(cache_widens)
{
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	size_t i;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	mr = get(port, 5000, 100, FABREX_MR_LOCAL_WRITE);
	CHECK(fabrex_mr_addr(mr) == memory + 4096);
	CHECK_EQ(fabrex_mr_length(mr), 4096);
	for (i = 4096; i < 8192; i++)
		CHECK(get(port, i, 8192 - i, 0) == mr);
	mr = get(port, 5000, 4096, 0);
	CHECK_EQ(fabrex_mr_length(mr), 8192);
	mr = get(port, 5000, 100, FABREX_MR_REMOTE_READ);
	CHECK(fabrex_mr_addr(mr) == memory + 5000);
	CHECK_EQ(fabrex_mr_length(mr), 100);
	fabrex_close(port);
}

/* Who hands out a key hands out no byte, and no right, that was not asked for. */
TEST(cache_is_exact_for_peers)
{
	struct fabrex_port *port;
	struct fabrex_mr *mr, *part;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	mr = get(port, 0, 8192, FABREX_MR_REMOTE_READ);
	part = get(port, 0, 4096, FABREX_MR_REMOTE_READ);
	CHECK(part != mr && fabrex_mr_length(part) == 4096);
	part = get(port, 4096, 4096, FABREX_MR_REMOTE_READ);
	CHECK(part != mr && fabrex_mr_addr(part) == memory + 4096);
	CHECK(get(port, 0, 8192, FABREX_MR_REMOTE_READ) == mr);
	part = get(port, 0, 8192, FABREX_MR_ALL);
	CHECK(part != mr);
	CHECK(get(port, 0, 8192, FABREX_MR_REMOTE_READ) == mr);
	CHECK(get(port, 0, 8192, FABREX_MR_ALL & ~FABREX_MR_LOCAL_WRITE) ==
	      part);
	CHECK(get(port, 0, 8192, FABREX_MR_ALL) == part);
	/* Nobody is given a key of a region for the process itself. */
	CHECK_EQ(fake_registrations(), 4);
	get(port, 100, 4000, FABREX_MR_LOCAL_WRITE);
	CHECK_EQ(fake_registrations(), 4);
	fabrex_close(port);
}

TEST(cache_refuses)
{
	struct fabrex_mr_cache_stats s;
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	uint64_t offset;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_mr_cache_get(port, NULL, 1, 0, &mr, &offset), -EINVAL);
	CHECK_EQ(fabrex_mr_cache_get(port, memory, 0, 0, &mr, &offset),
		 -EINVAL);
	CHECK_EQ(fabrex_mr_cache_get(port, memory, 1, 0x40, &mr, &offset),
		 -EINVAL);
	fake_mr_errors(1, EFAULT);
	CHECK_EQ(fabrex_mr_cache_get(port, memory, 1, 0, &mr, &offset),
		 -EFAULT);
	CHECK_EQ(stats_of(port).regions, 0);
	CHECK_EQ(stats_of(port).bytes, 0);
	fabrex_mr_cache_put(NULL);
	CHECK_EQ(fabrex_mr_cache_stats(port, &s, 8), 0);
	CHECK_EQ(s.hits, 0);
	fabrex_close(port);
}

/* What was unmapped and mapped again is registered again; at once if unused. */
TEST(cache_stale)
{
	struct fabrex_mr *a, *b, *c;
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	a = get(port, 0, 4096, 0);
	b = get(port, 8192, 4096, 0);
	fabrex_mr_cache_put(a);
	fake_changed(memory, 1);
	a = get(port, 0, 4096, 0);
	CHECK_EQ(fake_registrations(), 3);
	CHECK_EQ(stats_of(port).stale, 1);
	/* In use: it stays what it was for its users, and is no hit. */
	fake_changed(memory + 8192, 4096);
	c = get(port, 8192, 4096, 0);
	CHECK(c != b);
	CHECK_EQ(fake_registrations(), 4);
	CHECK_EQ(fake_objects(), 3);
	fabrex_mr_cache_put(b);
	CHECK_EQ(fake_objects(), 2);
	CHECK(get(port, 8192, 4096, 0) == c);
	/* Swept with the next miss, though nobody asks for it. */
	fabrex_mr_cache_put(a);
	fake_changed(memory, 1);
	CHECK_EQ(fake_objects(), 2);
	get(port, 16384, 10, 0);
	CHECK_EQ(fake_objects(), 2);
	CHECK_EQ(stats_of(port).stale, 3);
	fabrex_close(port);
}

TEST(cache_limits)
{
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	size_t i;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_mr_cache_limit(port, 4, 1 << 20), 0);
	for (i = 0; i < 8; i++)
		fabrex_mr_cache_put(get(port, i * 4096, 4096, 0));
	CHECK_EQ(stats_of(port).regions, 4);
	CHECK_EQ(stats_of(port).evicted, 4);
	/* The oldest went; using one makes it the newest. */
	fabrex_mr_cache_put(get(port, 4 * 4096, 4096, 0));
	CHECK_EQ(stats_of(port).hits, 1);
	fabrex_mr_cache_put(get(port, 0, 4096, 0));
	fabrex_mr_cache_put(get(port, 4 * 4096, 4096, 0));
	CHECK_EQ(stats_of(port).hits, 2);
	CHECK_EQ(fabrex_mr_cache_limit(port, 4, 8192), 0);
	CHECK_EQ(stats_of(port).bytes, 8192);
	/* Those in use do not count. */
	mr = get(port, 4 * 4096, 4096, 0);
	CHECK_EQ(fabrex_mr_cache_limit(port, 0, 0), 0);
	CHECK_EQ(stats_of(port).regions, 1);
	CHECK_EQ(fake_objects(), 1);
	fabrex_mr_cache_put(mr);
	CHECK_EQ(fake_objects(), 0);
	fabrex_close(port);
}

/* What one may pin is not to be used up by what is kept. */
TEST(cache_limit_of_those_who_may_pin_little)
{
	const struct rlimit limit = { .rlim_cur = 16384, .rlim_max = 16384 };
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[2] = { 0 };
	struct fabrex_port *port;
	size_t i;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	CHECK_EQ(syscall(SYS_capset, &head, none), 0);
	for (i = 0; i < 4; i++)
		fabrex_mr_cache_put(get(port, i * 4096, 4096, 0));
	CHECK_EQ(stats_of(port).bytes, 8192);
	fabrex_close(port);
}

/* Whoever sets the limit has what is stale ended, if nobody asks for it. */
TEST(cache_limit_sweeps)
{
	struct fabrex_port *port;
	size_t i;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	for (i = 0; i < 4; i++)
		fabrex_mr_cache_put(get(port, i * 4096, 4096, 0));
	fake_changed(memory, 8192);
	CHECK_EQ(fake_objects(), 4);
	CHECK_EQ(fabrex_mr_cache_limit(port, 100, 1 << 20), 0);
	CHECK_EQ(fake_objects(), 2);
	CHECK_EQ(stats_of(port).stale, 2);
	fabrex_close(port);
}

/* The port is out of regions, or the process of memory it may pin. */
TEST(cache_makes_room)
{
	struct fabrex_mr *mr, *plain;
	struct fabrex_port *port;
	uint64_t offset;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	fabrex_mr_cache_put(get(port, 0, 4096, 0));
	fake_mr_errors(1, ENOSPC);
	mr = get(port, 8192, 4096, 0);
	CHECK_EQ(fake_objects(), 1);
	CHECK_EQ(stats_of(port).evicted, 1);
	fabrex_mr_cache_put(mr);
	fake_mr_errors(1, ENOMEM);
	CHECK_EQ(fabrex_mr_register(port, memory, 10, 0, &plain), 0);
	CHECK_EQ(fake_objects(), 1);
	/* Nothing to give up: the error stands. */
	fake_mr_errors(1, EDQUOT);
	CHECK_EQ(fabrex_mr_cache_get(port, memory, 10, 0, &mr, &offset),
		 -EDQUOT);
	fabrex_close(port);
}

/* Half of it, the oldest, may be enough. */
TEST(cache_makes_some_room)
{
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	uint64_t offset;
	size_t i;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	for (i = 0; i < 8; i++)
		fabrex_mr_cache_put(get(port, i * 4096, 4096, 0));
	fake_mr_errors(1, ENOSPC);
	fabrex_mr_cache_put(get(port, 8 * 4096, 4096, 0));
	CHECK_EQ(stats_of(port).evicted, 4);
	CHECK_EQ(stats_of(port).regions, 5);
	fabrex_mr_cache_put(get(port, 4 * 4096, 4096, 0));
	CHECK_EQ(stats_of(port).hits, 1);
	fake_mr_errors(1000, ENOMEM);
	CHECK_EQ(fabrex_mr_cache_get(port, memory, 1, 0, &mr, &offset),
		 -ENOMEM);
	CHECK_EQ(fake_objects(), 0);
	fabrex_close(port);
}

/* Without a watch page nothing is kept, and what is in use is shared. */
TEST(cache_unwatched)
{
	struct fabrex_port *port;
	struct fabrex_mr *a;

	fake_unwatched(true);
	CHECK_EQ(fabrex_open("a.0", &port), 0);
	a = get(port, 0, 4096, 0);
	CHECK(get(port, 8, 8, 0) == a);
	fabrex_mr_cache_put(a);
	CHECK_EQ(fake_objects(), 1);
	fabrex_mr_cache_put(a);
	CHECK_EQ(fake_objects(), 0);
	CHECK_EQ(stats_of(port).regions, 0);
	fabrex_close(port);
}

/* The same where only memory of the host cannot be watched. */
TEST(cache_host_unwatched)
{
	struct fabrex_port *port;
	struct fabrex_mr *a;

	fake_host_unwatched(true);
	CHECK_EQ(fabrex_open("a.0", &port), 0);
	a = get(port, 0, 4096, 0);
	CHECK(get(port, 8, 8, 0) == a);
	fabrex_mr_cache_put(a);
	CHECK_EQ(fake_objects(), 1);
	fabrex_mr_cache_put(a);
	CHECK_EQ(fake_objects(), 0);
	/* The counter that was of no use is another's. */
	fake_host_unwatched(false);
	a = get(port, 0, 4096, 0);
	fabrex_mr_cache_put(a);
	CHECK(get(port, 0, 4096, 0) == a);
	CHECK_EQ(stats_of(port).regions, 1);
	fabrex_close(port);
}

/* More regions than counters: the rest is correct, but not kept. */
TEST(cache_ten_thousands)
{
	static struct fabrex_mr *mrs[20000];
	struct fabrex_port *port;
	size_t i;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_mr_cache_limit(port, UINT64_MAX, UINT64_MAX), 0);
	for (i = 0; i < 20000; i++)
		mrs[i] = get(port, i * 3, 3, FABREX_MR_REMOTE_READ);
	CHECK_EQ(stats_of(port).regions, 20000);
	for (i = 0; i < 20000; i++)
		CHECK(get(port, i * 3 + 1, 1, 0) == mrs[i]);
	for (i = 0; i < 20000; i++) {
		fabrex_mr_cache_put(mrs[i]);
		fabrex_mr_cache_put(mrs[i]);
	}
	CHECK_EQ(stats_of(port).regions, 16384);
	CHECK_EQ(stats_of(port).hits, 20000);
	fabrex_close(port);
}

/* ---- threads ----------------------------------------------------------- */

static struct fabrex_port *shared_port;
static pthread_barrier_t start;

static void *same_range(void *unused)
{
	(void)unused;
	pthread_barrier_wait(&start);
	return get(shared_port, 4096, 4096, 0);
}

/* One registers, the others wait for it. */
TEST(cache_waits_for_the_same)
{
	pthread_t threads[8];
	void *mr, *first = NULL;
	int i;

	CHECK_EQ(fabrex_open("a.0", &shared_port), 0);
	pthread_barrier_init(&start, NULL, 8);
	fake_mr_delay(50000);
	for (i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, same_range, NULL),
			 0);
	for (i = 0; i < 8; i++) {
		CHECK_EQ(pthread_join(threads[i], &mr), 0);
		first = first ? first : mr;
		CHECK(mr == first);
	}
	CHECK_EQ(fake_registrations(), 1);
	fabrex_close(shared_port);
}

static void *one_of_eight(void *arg)
{
	size_t i = (uintptr_t)arg;

	pthread_barrier_wait(&start);
	return get(shared_port, i * 4096, 4096, 0);
}

/* Room is being made by somebody else: it is worth the wait. */
TEST(cache_waits_for_room)
{
	pthread_t threads[8];
	void *mr;
	size_t i;

	CHECK_EQ(fabrex_open("a.0", &shared_port), 0);
	for (i = 8; i < 16; i++)
		fabrex_mr_cache_put(get(shared_port, i * 4096, 4096, 0));
	fake_mr_quota(8, 10000);
	pthread_barrier_init(&start, NULL, 8);
	for (i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, one_of_eight,
					(void *)i), 0);
	for (i = 0; i < 8; i++)
		CHECK_EQ(pthread_join(threads[i], &mr), 0);
	CHECK(fake_objects() >= 8);
	CHECK(stats_of(shared_port).evicted > 4);
	fake_mr_quota(0, 0);
	fabrex_close(shared_port);
}

static void *whole(void *unused)
{
	(void)unused;
	return get(shared_port, 0, 3 * 4096, 0);
}

static void *part_of_whole(void *unused)
{
	(void)unused;
	return get(shared_port, 5000, 10, 0);
}

static void await_stale(struct fabrex_port *port, uint64_t n)
{
	while (stats_of(port).stale < n)
		sched_yield();
}

/*
 * One has found a region stale, and then another one that is being registered,
 * for which there is no room as long as the stale one has not ended.
 */
TEST(cache_ends_the_stale_before_it_waits)
{
	pthread_t registers, waits;
	void *all, *part;

	CHECK_EQ(fabrex_open("a.0", &shared_port), 0);
	fabrex_mr_cache_put(get(shared_port, 4096, 4096, 0));
	fake_mr_gate(true);
	CHECK_EQ(pthread_create(&registers, NULL, whole, NULL), 0);
	fake_mr_await(1);
	fake_changed(memory + 4096, 1);
	CHECK_EQ(pthread_create(&waits, NULL, part_of_whole, NULL), 0);
	await_stale(shared_port, 1);
	fake_mr_quota(1, 0);
	fake_mr_gate(false);
	CHECK_EQ(pthread_join(registers, &all), 0);
	CHECK_EQ(pthread_join(waits, &part), 0);
	CHECK(all == part);
	CHECK_EQ(fake_objects(), 1);
	fake_mr_quota(0, 0);
	fabrex_close(shared_port);
}

/* Whoever is cancelled does so before or after: others go on. */
TEST(cache_cancelled)
{
	pthread_t waits, makes;
	void *mr;

	CHECK_EQ(fabrex_open("a.0", &shared_port), 0);
	pthread_barrier_init(&start, NULL, 1);
	fake_mr_delay(200000);
	CHECK_EQ(pthread_create(&makes, NULL, same_range, NULL), 0);
	usleep(50000);
	CHECK_EQ(pthread_create(&waits, NULL, same_range, NULL), 0);
	usleep(50000);
	CHECK_EQ(pthread_cancel(waits), 0);
	CHECK_EQ(pthread_cancel(makes), 0);
	CHECK_EQ(pthread_join(waits, &mr), 0);
	CHECK_EQ(pthread_join(makes, &mr), 0);
	get(shared_port, 4096, 4096, 0);
	CHECK_EQ(fake_registrations(), 1);
	CHECK_EQ(stats_of(shared_port).regions, 1);
	fabrex_close(shared_port);
}

static void *many_ranges(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	struct fabrex_mr *mr[4];
	size_t from;
	int i, j;

	for (i = 0; i < 2000; i++) {
		for (j = 0; j < 4; j++) {
			from = (size_t)rand_r(&seed) % (SIZE - 5000);
			mr[j] = get(shared_port, from,
				    1 + (size_t)rand_r(&seed) % 5000, 0);
		}
		if (!(i % 16))
			fake_changed(memory + from, 1);
		for (j = 0; j < 4; j++)
			fabrex_mr_cache_put(mr[j]);
	}
	return NULL;
}

TEST(cache_threads)
{
	pthread_t threads[4];
	uintptr_t i;

	CHECK_EQ(fabrex_open("a.0", &shared_port), 0);
	CHECK_EQ(fabrex_mr_cache_limit(shared_port, 20, 1 << 20), 0);
	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, many_ranges,
					(void *)(i + 1)), 0);
	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK(stats_of(shared_port).regions <= 20);
	CHECK_EQ(stats_of(shared_port).regions, fake_objects());
	CHECK_EQ(fabrex_mr_cache_limit(shared_port, 0, 0), 0);
	CHECK_EQ(fake_objects(), 0);
	CHECK_EQ(stats_of(shared_port).bytes, 0);
	fabrex_close(shared_port);
}

/* ---- fork and system calls --------------------------------------------- */

static int in_child(void (*run)(struct fabrex_port *port),
		    struct fabrex_port *port)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		run(port);
		syscall(SYS_exit, 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	return status;
}

static void refused(struct fabrex_port *port)
{
	struct fabrex_mr *mr;
	uint64_t offset;

	CHECK_EQ(fabrex_mr_cache_get(port, memory, 1, 0, &mr, &offset),
		 -ENODEV);
	CHECK_SAYS("after fork()");
	fabrex_close(port);
}

/* The child has none of it; the parent's is as before. */
TEST(cache_fork)
{
	struct fabrex_port *port;
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	mr = get(port, 0, 4096, 0);
	CHECK_EQ(in_child(refused, port), 0);
	CHECK(get(port, 0, 4096, 0) == mr);
	CHECK_EQ(fake_registrations(), 1);
	fabrex_close(port);
}

/* Another thread of the parent was in the middle of something. */
static void closes(struct fabrex_port *port)
{
	alarm(HANG_S);
	fabrex_close(port);
}

TEST(close_in_child_of_a_busy_parent)
{
	struct fabrex_port *port;
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	get(port, 0, 4096, 0);
	CHECK_EQ(fabrex_mr_register(port, memory, 10, 0, &mr), 0);
	pthread_mutex_lock(&port->lock);
	CHECK_EQ(in_child(closes, port), 0);
	pthread_mutex_unlock(&port->lock);
	fabrex_close(port);
}

/* The kernel kills for anything but read, write, exit and sigreturn. */
static void hit_often(struct fabrex_port *port)
{
	int i;

	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), 0);
	for (i = 0; i < 1000; i++)
		fabrex_mr_cache_put(get(port, (size_t)i, 64, 0));
}

/* The way out ends one thread: there must be no other, so no device. */
static void open_and_hit(struct fabrex_port *unused)
{
	struct fabrex_port *port;

	(void)unused;
	fab.started = true;
	CHECK_EQ(fabrex_open("a.0", &port), 0);
	get(port, 0, 8192, 0);
	hit_often(port);
}

static void open_and_miss(struct fabrex_port *unused)
{
	struct fabrex_port *port;

	(void)unused;
	fab.started = true;
	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), 0);
	getppid();
}

TEST(cache_hit_makes_no_system_call)
{
	CHECK_EQ(in_child(open_and_hit, NULL), 0);
	/* And the kernel does look. */
	CHECK(WIFSIGNALED(in_child(open_and_miss, NULL)));
}

/* ---- the tree ---------------------------------------------------------- */

#define NODES	400

static bool is_there(const struct interval *nodes, const bool *in,
		     uintptr_t start_, uintptr_t end, uint32_t access)
{
	int i;

	for (i = 0; i < NODES; i++)
		if (in[i] && nodes[i].start == start_ && nodes[i].end == end &&
		    (nodes[i].access | 1) == (access | 1) &&
		    (nodes[i].access & access) == access)
			return true;
	return false;
}

static bool covered(const struct interval *nodes, const bool *in,
		    uintptr_t start_, uintptr_t end, uint32_t access)
{
	int i;

	for (i = 0; i < NODES; i++)
		if (in[i] && nodes[i].start <= start_ && nodes[i].end >= end &&
		    (nodes[i].access & access) == access)
			return true;
	return false;
}

TEST(interval_against_a_plain_list)
{
	static struct interval nodes[NODES];
	bool in[NODES] = { false };
	struct interval *root = NULL, *found;
	unsigned int seed = 7;
	int i, round;

	for (round = 0; round < 40000; round++) {
		uintptr_t from = (uintptr_t)rand_r(&seed) % 1000;
		uintptr_t to = from + 1 + (uintptr_t)rand_r(&seed) % 60;
		uint32_t access = (uint32_t)rand_r(&seed) % 4;

		i = rand_r(&seed) % NODES;
		if (in[i]) {
			fxi_interval_remove(&root, &nodes[i]);
		} else {
			nodes[i].start = from;
			nodes[i].end = to;
			nodes[i].access = access;
			fxi_interval_add(&root, &nodes[i]);
		}
		in[i] = !in[i];
		from = (uintptr_t)rand_r(&seed) % 1000;
		to = from + (uintptr_t)rand_r(&seed) % 30;
		found = fxi_interval_cover(root, from, to, access);
		CHECK_EQ(!!found, covered(nodes, in, from, to, access));
		CHECK(!found || (found->start <= from && found->end >= to &&
				 (found->access & access) == access));
		from = (uintptr_t)rand_r(&seed) % 1000;
		to = from + 1 + (uintptr_t)rand_r(&seed) % 60;
		if (nodes[i].end) {
			from = nodes[i].start;
			to = nodes[i].end;
		}
		found = fxi_interval_exact(root, from, to, access, 1);
		CHECK_EQ(!!found, is_there(nodes, in, from, to, access));
		CHECK(!found || (found->start == from && found->end == to &&
				 (found->access & access) == access));
	}
}
