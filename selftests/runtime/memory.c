// SPDX-License-Identifier: GPL-2.0-only
/*
 * runtime-memory PART...: libfabrex on a real port, with itself as the peer.
 * Parts: cache (host memory that is unmapped, moved, shared), scale (times,
 * 10,000 regions, 32 threads), cuda and hip (device memory by the test run
 * times), peers (copies from GPU to GPU over a mesh). Prints TAP.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"

static int points, failures;

void ok(bool good, const char *what)
{
	printf("%sok %d %s\n", good ? "" : "not ", ++points, what);
	if (!good)
		printf("# last error: %s\n", fabrex_strerror_last());
	failures += !good;
	fflush(stdout);
}

void need(bool good, const char *what)
{
	if (good)
		return;
	ok(false, what);
	printf("1..%d\n", points);
	exit(1);
}

double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void rig_open(struct rig *rig)
{
	struct fabrex_port_attr attr;

	need(!fabrex_open(NULL, &rig->port) &&
	     !fabrex_query(rig->port, &attr, sizeof(attr)), "port");
	rig->peer = attr.peer;
	need(!fabrex_queue_create(rig->port, NULL, 0, &rig->queue) &&
	     !fabrex_mr_alloc(rig->port, RIG_SIZE, FABREX_MR_ALL, &rig->mr),
	     "queue and region");
	rig->memory = fabrex_mr_addr(rig->mr);
}

int rig_move(struct rig *rig, uint8_t opcode, const struct fabrex_mr *mr,
	     uint64_t offset, uint64_t length)
{
	const struct fabrex_op op = {
		.opcode = opcode, .peer = (uint16_t)rig->peer, .mr = rig->mr,
		.rkey = fabrex_mr_key(mr), .roffset = offset,
		.length = length,
	};
	double end = seconds() + 20;
	struct fabrex_wc wc;
	int n = 0;

	if (fabrex_post(rig->queue, &op, 1) != 1)
		return -1;
	while (!n && seconds() < end)
		n = fabrex_poll(rig->queue, &wc, 1);
	return n == 1 ? wc.status : -1;
}

struct fabrex_mr *rig_get(struct rig *rig, void *addr, size_t length)
{
	struct fabrex_mr *mr;
	uint64_t offset;

	if (fabrex_mr_cache_get(rig->port, addr, length, FABREX_MR_ALL, &mr,
				&offset))
		return NULL;
	return mr;
}

struct fabrex_mr_cache_stats rig_stats(struct rig *rig)
{
	struct fabrex_mr_cache_stats s = { 0 };

	fabrex_mr_cache_stats(rig->port, &s, sizeof(s));
	return s;
}

/* ---- host memory in the cache ------------------------------------------ */

#define SIZE	(64u << 10)

static char *map_at(void *where)
{
	char *p = mmap(where, SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0),
		       -1, 0);

	need(p != MAP_FAILED, "mmap");
	memset(p, 1, SIZE);
	return p;
}

/* What the fabric writes by a cached region is where the process looks. */
static bool reaches(struct rig *rig, char *p, char byte)
{
	struct fabrex_mr *mr = rig_get(rig, p, SIZE);
	int status;

	if (!mr)
		return false;
	memset(rig->memory, byte, SIZE);
	status = rig_move(rig, FABREX_OP_WRITE, mr, 0, SIZE);
	fabrex_mr_cache_put(mr);
	return status == FABREX_WC_OK && p[0] == byte && p[SIZE - 1] == byte;
}

static char *remap(char *p)
{
	munmap(p, SIZE);
	return map_at(p);
}

static char *forget(char *p)
{
	madvise(p, SIZE, MADV_DONTNEED);
	return p;
}

/* The addresses get the pages of another mapping. */
static char *move_over(char *p)
{
	char *other = map_at(NULL);

	need(mremap(other, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p,
	     "mremap");
	return p;
}

static char *map_over(char *p)
{
	return map_at(p);
}

static void staleness(struct rig *rig)
{
	static const struct {
		char *(*change)(char *p);
		const char *what;
	} ways[] = {
		{ remap, "munmap() and mmap() at the same address" },
		{ forget, "madvise(MADV_DONTNEED)" },
		{ move_over, "mremap() of another mapping to it" },
		{ map_over, "mmap(MAP_FIXED) over it" },
	};
	struct fabrex_mr_cache_stats before, after;
	size_t i;
	char *p;

	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		p = map_at(NULL);
		need(reaches(rig, p, 2) && reaches(rig, p, 3),
		     "first registration");
		before = rig_stats(rig);
		p = ways[i].change(p);
		ok(reaches(rig, p, 4), ways[i].what);
		after = rig_stats(rig);
		ok(after.stale == before.stale + 1 &&
		   after.misses == before.misses + 1,
		   "  is a miss, and one region less");
		munmap(p, SIZE);
	}
}

static void hits(struct rig *rig)
{
	struct fabrex_mr_cache_stats before, after;
	char *p = map_at(NULL);
	int i;

	need(reaches(rig, p, 5), "first registration");
	before = rig_stats(rig);
	for (i = 0; i < 100; i++)
		need(reaches(rig, p, (char)i), "hit");
	after = rig_stats(rig);
	ok(after.hits == before.hits + 100 && after.misses == before.misses &&
	   after.stale == before.stale, "memory left alone: only hits");
	munmap(p, SIZE);
	need(rig_get(rig, rig->memory, 1) != NULL, "another region");
	ok(rig_stats(rig).stale == before.stale + 1,
	   "unmapped memory is given back with the next miss");
}

static void part_cache(struct rig *rig)
{
	staleness(rig);
	hits(rig);
}

/* ---- times and numbers ------------------------------------------------- */

static void *map_big(size_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static double time_mlock(void *p, size_t length)
{
	double start = seconds();

	need(!mlock(p, length), "mlock");
	start = seconds() - start;
	munlock(p, length);
	return start;
}

#define HITS	1000

/* First and cached registration of host memory, beside mlock() of the same. */
static void times(struct rig *rig)
{
	struct fabrex_mr *mr;
	double lock, first, hit;
	uint64_t misses;
	size_t mib;
	void *p;
	int i;

	/* By default a sixteenth of the host's memory, which is less here. */
	need(!fabrex_mr_cache_limit(rig->port, 1024, 1u << 30), "limit");
	/* The cache is made when it is first used. */
	fabrex_mr_cache_put(rig_get(rig, rig->memory, 1));

	for (mib = 1; mib <= 256; mib *= 4) {
		p = map_big(mib << 20);
		need(p != NULL, "memory");
		lock = time_mlock(p, mib << 20);
		first = seconds();
		mr = rig_get(rig, p, mib << 20);
		need(mr != NULL, "registration");
		first = seconds() - first;
		fabrex_mr_cache_put(mr);
		hit = seconds();
		misses = rig_stats(rig).misses;
		for (i = 0; i < HITS; i++) {
			mr = rig_get(rig, p, mib << 20);
			need(mr != NULL, "hit");
			fabrex_mr_cache_put(mr);
		}
		hit = (seconds() - hit) / HITS;
		printf("# %3zu MiB: first %.3f ms (%.1f ms/GiB), cached %.2f us, mlock %.3f ms (%.1f ms/GiB)\n",
		       mib, first * 1e3, first * 1e3 * 1024 / (double)mib,
		       hit * 1e6, lock * 1e3,
		       lock * 1e3 * 1024 / (double)mib);
		need(rig_stats(rig).misses == misses, "all of them hits");
		munmap(p, mib << 20);
	}
	ok(true, "registration, cached registration and mlock() timed");
}

#define LIVE	10000u

static void ten_thousand(struct rig *rig)
{
	static struct fabrex_mr *mrs[LIVE];
	char *p = map_big((LIVE + 1) * 4096ul);
	double start = seconds();
	size_t i;

	need(p != NULL, "memory");
	need(!fabrex_mr_cache_limit(rig->port, LIVE, UINT64_MAX), "limit");
	for (i = 0; i < LIVE; i++) {
		/* Unaligned, each overlapping the next. */
		mrs[i] = rig_get(rig, p + i * 4096 + 7, 5000);
		if (!mrs[i])
			break;
	}
	ok(i == LIVE, "10,000 live regions, unaligned and overlapping");
	printf("# %zu regions in %.2f s\n", i, seconds() - start);
	while (i)
		fabrex_mr_cache_put(mrs[--i]);
	start = seconds();
	for (i = 0; i < LIVE; i++)
		fabrex_mr_cache_put(rig_get(rig, p + i * 4096 + 7, 5000));
	printf("# found again: %.2f us each\n",
	       (seconds() - start) * 1e6 / LIVE);
	start = seconds();
	ok(!fabrex_mr_cache_limit(rig->port, 0, 0) &&
	   !rig_stats(rig).regions, "and all ended");
	printf("# ended in %.2f s\n", seconds() - start);
	fabrex_mr_cache_limit(rig->port, 1024, 1u << 30);
	munmap(p, (LIVE + 1) * 4096ul);
}

static struct rig *thread_rig;
static char *thread_memory;
static bool thread_cached;

static void *register_often(void *unused)
{
	struct fabrex_mr *mr;
	int i;

	for (i = 0; i < 50; i++) {
		if (thread_cached)
			mr = rig_get(thread_rig, thread_memory, SIZE);
		else if (fabrex_mr_register(thread_rig->port, thread_memory,
					    SIZE, FABREX_MR_ALL, &mr))
			mr = NULL;
		if (!mr)
			return (void *)1;
		if (thread_cached)
			fabrex_mr_cache_put(mr);
		else if (fabrex_mr_deregister(mr))
			return (void *)1;
	}
	return unused;
}

static void threads(struct rig *rig, bool cached, const char *what)
{
	pthread_t thread[32];
	double start = seconds();
	bool good = true;
	void *ret;
	int i;

	thread_rig = rig;
	thread_memory = map_at(NULL);
	thread_cached = cached;
	for (i = 0; i < 32; i++)
		need(!pthread_create(&thread[i], NULL, register_often, NULL),
		     "thread");
	for (i = 0; i < 32; i++)
		good &= !pthread_join(thread[i], &ret) && !ret;
	ok(good, what);
	printf("# %.1f us each\n", (seconds() - start) * 1e6 / (32 * 50));
	munmap(thread_memory, SIZE);
}

static void part_scale(struct rig *rig)
{
	times(rig);
	ten_thousand(rig);
	threads(rig, false, "32 threads register and deregister one range");
	threads(rig, true, "32 threads get and put one range");
}

int main(int argc, char **argv)
{
	struct rig rig;
	int i;

	rig_open(&rig);
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "cache"))
			part_cache(&rig);
		else if (!strcmp(argv[i], "scale"))
			part_scale(&rig);
		else if (!strcmp(argv[i], "cuda"))
			part_cuda(&rig);
		else if (!strcmp(argv[i], "hip"))
			part_hip(&rig);
		else if (!strcmp(argv[i], "peers"))
			part_peers(&rig);
	}
	fabrex_close(rig.port);
	printf("1..%d\n", points);
	return failures != 0;
}
