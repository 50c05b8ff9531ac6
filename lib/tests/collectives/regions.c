// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Regions whose memory other ranks map: odd lengths, several buffers in one,
 * and who is to blame when they cannot be mapped.
 */
#include <errno.h>
#include <sys/resource.h>

#include "world.h"

#define LENGTH	((6u << 20) + 3072)	/* ends within a page */
#define COUNT	(1u << 17)
#define RIGHTS	(FABREX_MR_LOCAL_WRITE | FABREX_MR_REMOTE_READ | \
		 FABREX_MR_REMOTE_WRITE)

static char *region(struct world *w)
{
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_mr_alloc(w->port, LENGTH, RIGHTS, &mr), 0);
	return fabrex_mr_addr(mr);
}

static void fill(float *x, float value)
{
	uint32_t i;

	for (i = 0; i < COUNT; i++)
		x[i] = value;
}

/* recv is in front, send reaches into the last page. */
static void odd_work(struct world *w)
{
	struct fabrex_comm *comm = world_comm(w, "all_reduce:0-=direct");
	float *recv = (float *)(void *)region(w), *send;
	uint32_t i;

	send = (float *)(void *)((char *)recv + LENGTH) - COUNT;
	fill(send, (float)w->rank + 1);
	fill(recv, 0);
	CHECK_EQ(fabrex_all_reduce(comm, send, recv, COUNT, FABREX_FLOAT32,
				   FABREX_SUM), 0);
	for (i = 0; i < COUNT; i++)
		CHECK_EQ(recv[i], 3);
	fabrex_comm_destroy(comm);
}

TEST(regions_end_anywhere)
{
	world_run(2, odd_work, NULL);
}

/* No room for any window. */
static void use_up(void)
{
	struct rlimit limit;
	unsigned long pages;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f);
	CHECK_EQ(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) +
			 (2u << 20);
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

static void blame_work(struct world *w)
{
	struct fabrex_comm *comm = world_comm(w, "all_reduce:0-=direct");
	float *x = (float *)(void *)region(w);
	uint32_t failed = RANKS;
	int ret;

	fill(x, 1);
	if (w->rank == 1)
		use_up();
	ret = fabrex_all_reduce(comm, x, x + COUNT, COUNT, FABREX_FLOAT32,
				FABREX_SUM);
	CHECK_EQ(ret, w->rank == 1 ? -ENOSPC : -ECONNRESET);
	if (w->rank == 1)
		CHECK_SAYS("no room for another mapping");
	else
		CHECK_SAYS("rank 1 (");
	CHECK_EQ(fabrex_comm_failed(comm, &failed, 1), 1);
	CHECK_EQ(failed, 1);
	fabrex_comm_destroy(comm);
}

TEST(who_cannot_map_is_to_blame)
{
	world_run(2, blame_work, NULL);
}
