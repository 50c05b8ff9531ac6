// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pairs of ports with queues and regions, on the fake fabric or a loopback fabric
 * of the test's own. For the tests of lib/tests.
 */
#include <dirent.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

const unsigned int test_limit_s = HANG_S;

unsigned int test_objects(void)
{
	return fake_objects();
}

static void open_as(struct pair *p, const char *a, const char *b,
		    const struct fabrex_queue_attr *attr)
{
	static const struct fabrex_queue_attr plain = {
		.sq_entries = 16, .rq_entries = 8, .cell_size = 256,
		.flags = FABREX_QUEUE_EVENTFD,
	};

	if (!attr)
		attr = &plain;
	CHECK_EQ(fabrex_open(a, &p->a), 0);
	CHECK_EQ(fabrex_open(b, &p->b), 0);
	CHECK_EQ(fabrex_mr_alloc(p->a, PAIR_SIZE, FABREX_MR_ALL, &p->ma), 0);
	CHECK_EQ(fabrex_mr_alloc(p->b, PAIR_SIZE, FABREX_MR_ALL, &p->mb), 0);
	CHECK_EQ(fabrex_queue_create(p->a, attr, sizeof(*attr), &p->qa), 0);
	CHECK_EQ(fabrex_queue_create(p->b, attr, sizeof(*attr), &p->qb), 0);
	fabrex_mr_remote(p->mb, &p->rb);
	p->pa = fabrex_mr_addr(p->ma);
	p->pb = fabrex_mr_addr(p->mb);
}

void pair_open(struct pair *p, const struct fabrex_queue_attr *attr)
{
	open_as(p, "a.0", "b.0", attr);
}

void loop_open(struct pair *p, const struct fabrex_queue_attr *attr)
{
	char a[64], b[64];

	snprintf(a, sizeof(a), "loopback:test-%d/a.0", getpid());
	snprintf(b, sizeof(b), "loopback:test-%d/b.0", getpid());
	open_as(p, a, b, attr);
}

void pair_close(struct pair *p)
{
	fake_run();
	fabrex_close(p->a);
	fabrex_close(p->b);
}

void loop_close(struct pair *p)
{
	fabrex_close(p->a);
	fabrex_close(p->b);
}

void poll_n(struct fabrex_queue *queue, struct fabrex_wc *wc, int n)
{
	const struct timespec nap = { .tv_nsec = 20000 };
	int got = 0, ret;

	while (got < n) {
		ret = fabrex_poll(queue, wc + got, n - got);
		CHECK(ret >= 0);
		got += ret;
		nanosleep(&nap, NULL);
	}
}

int post_small(struct pair *p, uint8_t flags, uint64_t user_data)
{
	return fabrex_post_write(p->qa, p->ma, 0, &p->rb, 0, 8, flags,
				 user_data);
}

int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}
