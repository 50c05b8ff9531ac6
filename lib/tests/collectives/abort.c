// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fabrex_comm_abort() from other threads and from handlers of signals, whatever
 * the rank is doing: all ranks return, the others shrink and go on, and nobody
 * writes to buffers that were given back. Over windows, and through queues.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "world.h"

#define COUNT	(1u << 19)	/* floats */
#define RIGHTS	(FABREX_MR_LOCAL_WRITE | FABREX_MR_REMOTE_READ | \
		 FABREX_MR_REMOTE_WRITE)
#define LONG_MS	600000		/* what only a hang takes */
#define THREADS	4

/* What ranks tell each other beside the fabric. */
struct shared {
	atomic_uint step, done;
	atomic_bool noticed;
};

static const struct shared *shared_make(void)
{
	void *s = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(s != MAP_FAILED);
	return s;
}

static struct shared *shared(const struct world *w)
{
	return (struct shared *)(uintptr_t)w->arg;
}

static void await(atomic_uint *count, unsigned int n)
{
	while (atomic_load(count) < n)
		usleep(1000);
}

/* Near, and far. */
static void run(uint32_t size, void (*work)(struct world *w))
{
	world_run(size, work, shared_make());
	world_run_far(size, work, shared_make());
}

/* ---- threads ----------------------------------------------------------- */

struct aborter {
	pthread_t thread;
	struct fabrex_comm *comm;
	uint32_t us;
};

static void *aborter_main(void *arg)
{
	struct aborter *a = arg;

	usleep(a->us);
	CHECK_EQ(fabrex_comm_abort(a->comm), 0);
	CHECK_EQ(fabrex_comm_abort(a->comm), 0);
	return NULL;
}

static void abort_later(struct aborter *a, struct fabrex_comm *comm,
			uint32_t us)
{
	a->comm = comm;
	a->us = us;
	CHECK(!pthread_create(&a->thread, NULL, aborter_main, a));
}

static void join(struct aborter *a)
{
	CHECK(!pthread_join(a->thread, NULL));
}

/* ---- what ranks do ----------------------------------------------------- */

static int sum(struct fabrex_comm *comm)
{
	int32_t mine = 1, all = 0;
	int ret;

	ret = fabrex_all_reduce(comm, &mine, &all, 1, FABREX_INT32,
				FABREX_SUM);
	if (!ret)
		CHECK_EQ(all, fabrex_comm_size(comm));
	return ret;
}

/* The rank that has aborted: everything is refused, and says why. */
static void is_over(struct fabrex_comm *comm, int ret)
{
	struct fabrex_comm *other;
	struct fabrex_coll *coll;
	const struct fabrex_collective what = { .kind = FABREX_BARRIER };
	uint32_t mine = fabrex_comm_rank(comm), failed[RANKS];
	uint64_t word = 0;
	int i, n;

	CHECK_EQ(ret, -ECANCELED);
	CHECK_SAYS("this rank");
	CHECK_SAYS("has aborted");
	CHECK_EQ(fabrex_barrier(comm), -ECANCELED);
	CHECK_EQ(fabrex_send(comm, &word, 1, FABREX_UINT64, !mine), -ECANCELED);
	CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll),
		 -ECANCELED);
	CHECK_EQ(fabrex_group_begin(comm), -ECANCELED);
	CHECK_EQ(fabrex_comm_split(comm, 0, 0, &other), -ECANCELED);
	CHECK_EQ(fabrex_comm_shrink(comm, LONG_MS, &other), -ECANCELED);
	CHECK_SAYS("has aborted");
	CHECK(!other);
	CHECK_EQ(fabrex_comm_abort(comm), 0);
	n = fabrex_comm_failed(comm, failed, RANKS);
	for (i = 0; i < n && failed[i] != mine; i++)
		;
	CHECK(i < n);
}

/* The others: they shrink, and go on. */
static void goes_on(struct fabrex_comm *comm, int ret, uint32_t aborted)
{
	uint32_t failed[RANKS], size = fabrex_comm_size(comm);
	struct fabrex_comm *rest;

	CHECK_EQ(ret, -ECONNRESET);
	CHECK_SAYS("has aborted");
	CHECK_EQ(fabrex_barrier(comm), -ECONNRESET);
	CHECK_EQ(fabrex_comm_failed(comm, failed, RANKS), 1);
	CHECK_EQ(failed[0], aborted);
	CHECK_EQ(fabrex_comm_shrink(comm, LONG_MS, &rest), 0);
	CHECK_EQ(fabrex_comm_size(rest), size - 1);
	CHECK_EQ(sum(rest), 0);
	fabrex_comm_destroy(rest);
}

/* ---- in the middle of one ---------------------------------------------- */

static void recv_work(struct world *w)
{
	struct aborter aborter;
	uint64_t word = 7;
	int ret;

	CHECK_EQ(sum(w->comm), 0);
	if (w->rank != 1) {
		goes_on(w->comm, fabrex_barrier(w->comm), 1);
		return;
	}
	abort_later(&aborter, w->comm, 20000);
	ret = fabrex_recv(w->comm, &word, 1, FABREX_UINT64, 0);
	is_over(w->comm, ret);
	CHECK_EQ(word, 7);
	join(&aborter);
}

TEST(abort_blocked_recv)
{
	run(3, recv_work);
}

static void never_work(struct world *w)
{
	struct shared *s = shared(w);
	struct aborter aborter;
	int ret;

	if (w->rank == 2)
		await(&s->done, 2);
	if (w->rank == 1)
		abort_later(&aborter, w->comm, 20000);
	if (w->rank == 1)
		is_over(w->comm, sum(w->comm));
	else if (w->rank == 0)
		CHECK_EQ(sum(w->comm), -ECONNRESET);
	atomic_fetch_add(&s->done, 1);
	/* For rank 2 all that it needs may be there: it has the right sum. */
	if (w->rank == 1) {
		join(&aborter);
		return;
	}
	while (!(ret = sum(w->comm)))
		;
	goes_on(w->comm, ret, 1);
}

/* An all-reduce to which one rank does not come until both others are back. */
TEST(abort_while_a_rank_is_missing)
{
	run(3, never_work);
}

static void handle_work(struct world *w)
{
	const struct fabrex_collective what = {
		.kind = FABREX_BARRIER,
	};
	struct aborter aborter;
	struct fabrex_coll *coll;
	int ret;

	if (w->rank == 1) {
		CHECK_EQ(fabrex_coll_start(w->comm, &what, sizeof(what),
					   &coll), 0);
		abort_later(&aborter, w->comm, 5000);
		while (!(ret = fabrex_coll_test(coll)))
			;
		is_over(w->comm, ret);
		join(&aborter);
		return;
	}
	while (!fabrex_comm_failed(w->comm, NULL, 0))
		usleep(1000);
	CHECK_EQ(fabrex_coll_start(w->comm, &what, sizeof(what), &coll),
		 -ECONNRESET);
	goes_on(w->comm, fabrex_barrier(w->comm), 1);
}

TEST(abort_of_a_handle)
{
	run(3, handle_work);
}

/* ---- often ------------------------------------------------------------- */

static struct fabrex_comm *signal_comm;

static void on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	fabrex_comm_abort(signal_comm);
	errno = saved;
}

static timer_t timer_make(void)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1,
	};
	timer_t timer;

	signal(SIGUSR1, on_signal);
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	return timer;
}

/* @every_us: it comes again and again. */
static void timer_set(timer_t timer, uint32_t us, uint32_t every_us)
{
	const struct itimerspec at = {
		.it_value.tv_nsec = us * 1000l,
		.it_interval.tv_nsec = every_us * 1000l,
	};

	CHECK(!timer_settime(timer, 0, &at, NULL));
}

/* Of all sorts, until it fails. */
static int traffic(struct fabrex_comm *comm, float *x)
{
	uint32_t n = fabrex_comm_size(comm), me = fabrex_comm_rank(comm);
	struct fabrex_comm *part;
	int ret;

	for (;;) {
		ret = sum(comm);
		if (!ret)
			ret = fabrex_all_reduce(comm, x, x + COUNT, COUNT,
						FABREX_FLOAT32, FABREX_SUM);
		if (!ret)
			ret = fabrex_group_begin(comm);
		if (ret)
			return ret;
		fabrex_send(comm, x, 20000, FABREX_FLOAT32, (me + 1) % n);
		fabrex_recv(comm, x + COUNT, 20000, FABREX_FLOAT32,
			    (me + n - 1) % n);
		ret = fabrex_group_end(comm);
		if (!ret)
			ret = fabrex_comm_split(comm, 0, 0, &part);
		if (ret)
			return ret;
		ret = fabrex_barrier(part);
		fabrex_comm_destroy(part);
		/* What ended the part has ended the whole, or is about to. */
		while (ret && !fabrex_comm_failed(comm, NULL, 0))
			usleep(1000);
		if (ret)
			return fabrex_barrier(comm);
	}
}

static float *buffers(struct world *w)
{
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_mr_alloc(w->port, 2 * COUNT * sizeof(float), RIGHTS,
				 &mr), 0);
	memset(fabrex_mr_addr(mr), 0, 2 * COUNT * sizeof(float));
	return fabrex_mr_addr(mr);
}

/* Each time another rank, at another moment; destroyed at once every other. */
static void signal_work(struct world *w)
{
	timer_t timer = timer_make();
	float *x = buffers(w);
	uint32_t i, who;
	int ret;

	for (i = 0; i < 40; i++) {
		struct fabrex_comm *comm = world_comm(w, NULL);

		who = i % w->size;
		signal_comm = comm;
		if (w->rank == who)
			timer_set(timer, 1 + i * 7919 % 9000, i % 4 ? 0 : 50);
		ret = traffic(comm, x);
		if (i % 2)
			CHECK_EQ(ret, w->rank == who ? -ECANCELED :
						       -ECONNRESET);
		else if (w->rank == who)
			is_over(comm, ret);
		else
			goes_on(comm, ret, who);
		timer_set(timer, 0, 0);
		fabrex_comm_destroy(comm);
		CHECK_EQ(sum(w->comm), 0);
	}
}

TEST(abort_in_a_signal_handler)
{
	run(3, signal_work);
}

static void threads_work(struct world *w)
{
	struct aborter aborters[THREADS];
	float *x = buffers(w);
	uint32_t i, j;
	int ret;

	for (i = 0; i < 20; i++) {
		struct fabrex_comm *comm = world_comm(w, NULL);

		for (j = 0; j < THREADS && w->rank; j++)
			abort_later(&aborters[j], comm, i * 104729 % 6000);
		ret = traffic(comm, x);
		CHECK(ret == -ECONNRESET || (w->rank && ret == -ECANCELED));
		CHECK_SAYS("has aborted");
		for (j = 0; j < THREADS && w->rank; j++)
			join(&aborters[j]);
		/* Also where another rank's abort was seen first. */
		CHECK_EQ(fabrex_barrier(comm), w->rank ? -ECANCELED :
							 -ECONNRESET);
		fabrex_comm_destroy(comm);
		CHECK_EQ(sum(w->comm), 0);
	}
}

/* By several threads at once, at all ranks but one. */
TEST(abort_by_many)
{
	run(3, threads_work);
}

static void shrink_work(struct world *w)
{
	struct fabrex_comm *comm, *rest;
	struct aborter aborter;
	uint32_t i;
	int ret;

	for (i = 0; i < 12; i++) {
		comm = world_comm(w, NULL);
		if (w->rank == 3)
			CHECK_EQ(fabrex_comm_abort(comm), 0);
		CHECK_EQ(fabrex_barrier(comm), w->rank == 3 ? -ECANCELED :
							      -ECONNRESET);
		if (w->rank == 1)
			abort_later(&aborter, comm, i * i * 40);
		ret = w->rank == 3 ? -1 :
				     fabrex_comm_shrink(comm, LONG_MS, &rest);
		if (w->rank == 1) {
			CHECK(!ret || ret == -ECANCELED);
			join(&aborter);
		}
		/* Rank 1 leaves, if it came to the end of it. */
		while (w->rank % 2 == 0 && sum(rest)) {
			fabrex_comm_destroy(comm);
			comm = rest;
			CHECK_EQ(fabrex_comm_shrink(comm, LONG_MS, &rest), 0);
		}
		if (!ret && w->rank % 2 == 0)
			CHECK_EQ(fabrex_comm_size(rest), 2);
		if (!ret)
			fabrex_comm_destroy(rest);
		fabrex_comm_destroy(comm);
		CHECK_EQ(sum(w->comm), 0);
	}
}

TEST(abort_while_shrinking)
{
	run(4, shrink_work);
}

/* ---- buffers ----------------------------------------------------------- */

static void fill(float *x, float value)
{
	uint32_t i;

	for (i = 0; i < COUNT; i++)
		x[i] = value;
}

static void reuse_work(struct world *w)
{
	struct shared *s = shared(w);
	float *x = buffers(w);
	struct aborter aborter;
	uint32_t i, j;

	for (i = 1; i <= 20; i++) {
		struct fabrex_comm *comm = world_comm(w, NULL);
		struct fabrex_comm *rest = NULL;

		fill(x, 1);
		if (w->rank == 1)
			abort_later(&aborter, comm, i * 15485863 % 5000);
		while (!fabrex_all_reduce(comm, x, x + COUNT, COUNT,
					  FABREX_FLOAT32, FABREX_SUM))
			;
		if (w->rank == 1)
			join(&aborter);
		else if (i % 2)
			CHECK_EQ(fabrex_comm_shrink(comm, LONG_MS, &rest), 0);
		if (w->rank == 1 || !(i % 2))
			fabrex_comm_destroy(comm);
		fill(x + COUNT, -2);
		atomic_fetch_add(&s->done, 1);
		await(&s->done, i * w->size);
		for (j = 0; j < COUNT; j++)
			CHECK_EQ(x[COUNT + j], -2);
		if (w->rank != 1 && i % 2)
			fabrex_comm_destroy(comm);
		fabrex_comm_destroy(rest);
		CHECK_EQ(sum(w->comm), 0);
	}
}

/* Once shrink or destroy has returned, they are the program's again. */
TEST(abort_and_reuse)
{
	run(3, reuse_work);
}

/* Of a rank whose thread is not inside, until somebody has to know. */
static struct fabrex_comm *patient_comm(struct world *w)
{
	const struct fabrex_comm_attr attr = {
		.rank = w->rank, .size = w->size, .bootstrap = "fabric:4243",
		.timeout_ms = LONG_MS, .death_ms = LONG_MS,
	};
	struct fabrex_comm *comm;

	CHECK_EQ(fabrex_comm_create(w->port, &attr, sizeof(attr), &comm), 0);
	return comm;
}

static void inside_work(struct world *w)
{
	struct fabrex_comm *comm = patient_comm(w), *rest = NULL;
	struct shared *s = shared(w);

	if (w->rank == 1) {
		CHECK_EQ(fabrex_comm_abort(comm), 0);
		await(&s->step, 2);
		usleep(20000);
		atomic_store(&s->noticed, true);
		CHECK_EQ(fabrex_barrier(comm), -ECANCELED);
	} else {
		CHECK_EQ(fabrex_barrier(comm), -ECONNRESET);
		atomic_fetch_add(&s->step, 1);
		CHECK_EQ(fabrex_comm_shrink(comm, LONG_MS, &rest), 0);
		CHECK(atomic_load(&s->noticed));
	}
	fabrex_comm_destroy(rest);
	fabrex_comm_destroy(comm);
}

/*
 * The thread that makes calls may be copying to the others' buffers when
 * another one aborts: they do not get those back before it has noticed.
 */
TEST(abort_waits_for_the_thread_inside)
{
	world_run(3, inside_work, shared_make());
}

/* ---- arguments --------------------------------------------------------- */

static void alone_work(struct world *w)
{
	int32_t x = 1;

	CHECK_EQ(fabrex_comm_abort(NULL), -EINVAL);
	CHECK_EQ(fabrex_comm_abort(w->comm), 0);
	CHECK_EQ(fabrex_all_reduce(w->comm, &x, &x, 1, FABREX_INT32,
				   FABREX_SUM), -ECANCELED);
	CHECK_SAYS("has aborted");
}

TEST(abort_alone)
{
	run(1, alone_work);
}

/* A child cannot abort what its parent has; nor does it know the memory. */
static void child_work(struct world *w)
{
	pid_t pid = w->rank ? 0 : fork();
	int status;

	if (!w->rank && !pid)
		_exit(fabrex_comm_abort(w->comm) != 0);
	if (!w->rank)
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK_EQ(sum(w->comm), 0);
}

TEST(abort_in_a_child)
{
	run(2, child_work);
}
