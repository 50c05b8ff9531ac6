// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Buffers on GPUs, with the test run times: a rank has CUDA, the next HIP, the
 * next none, and all agree. Memory of a test GPU is not the processor's.
 */
#include <dlfcn.h>

#include "cuda.h"
#include "hip.h"
#include "world.h"

#define ROOM	(2u << 20)
#define TO_DEVICE	1	/* hipMemcpyKind */
#define TO_HOST		2
#define STRING_(x)	#x
#define STRING(x)	STRING_(x)
#define CALL(lib, name, ...) \
	(((__typeof__(&name))(uintptr_t)symbol(lib, STRING(name))) \
	 (__VA_ARGS__))

/* A GPU, or the host if there is no library. */
struct gpu {
	void *cuda, *hip;
	char *send, *recv;	/* ROOM each */
	char *host;		/* what comes and goes */
};

static void *symbol(void *lib, const char *name)
{
	void *found = dlsym(lib, name);

	test_note("%s", name);
	CHECK(found);
	return found;
}

static void *load(const char *file)
{
	const char *dir = getenv("FABREX_TEST_RUNTIME");
	char path[512];
	void *lib;

	CHECK(dir);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	test_note("%s", path);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	CHECK(lib);
	return lib;
}

static void open_cuda(struct gpu *g)
{
	CUdeviceptr ptr = 0;
	CUcontext context;

	g->cuda = load("libcuda.so.1");
	CHECK_EQ(CALL(g->cuda, cuInit, 0), 0);
	CHECK_EQ(CALL(g->cuda, cuDevicePrimaryCtxRetain, &context, 0), 0);
	CHECK_EQ(CALL(g->cuda, cuCtxSetCurrent, context), 0);
	CHECK_EQ(CALL(g->cuda, cuMemAlloc, &ptr, 2 * ROOM), 0);
	g->send = (char *)(uintptr_t)ptr;
}

static void open_hip(struct gpu *g)
{
	void *ptr = NULL;

	g->hip = load("libamdhip64.so.5");
	CHECK_EQ(CALL(g->hip, hipSetDevice, 1), 0);
	CHECK_EQ(CALL(g->hip, hipMalloc, &ptr, 2 * ROOM), 0);
	g->send = ptr;
}

static void open_gpu(const struct world *w, struct gpu *g)
{
	setenv("FABREX_TEST_GPUS", "2", 0);
	memset(g, 0, sizeof(*g));
	if (w->rank % 3 == 0)
		open_cuda(g);
	else if (w->rank % 3 == 1)
		open_hip(g);
	else
		g->send = malloc(2 * ROOM);
	g->recv = g->send + ROOM;
	g->host = malloc(ROOM);
	CHECK(g->send && g->host);
}

static void put(const struct gpu *g, char *to, uint64_t n)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuMemcpyHtoD, (CUdeviceptr)(uintptr_t)to,
			      g->host, n), 0);
	else if (g->hip)
		CHECK_EQ(CALL(g->hip, hipMemcpy, to, g->host, n,
			      TO_DEVICE), 0);
	else
		memcpy(to, g->host, n);
}

static void get(const struct gpu *g, const char *from, uint64_t n)
{
	if (g->cuda)
		CHECK_EQ(CALL(g->cuda, cuMemcpyDtoH, g->host,
			      (CUdeviceptr)(uintptr_t)from, n), 0);
	else if (g->hip)
		CHECK_EQ(CALL(g->hip, hipMemcpy, g->host, from, n,
			      TO_HOST), 0);
	else
		memcpy(g->host, from, n);
}

/* ---- collectives ------------------------------------------------------- */

static void one(const struct world *w, struct fabrex_comm *comm,
		const struct gpu *g, struct fabrex_collective what,
		uint32_t skip)
{
	uint64_t size = fabrex_datatype_size(what.type);
	uint64_t sends = what.count * send_parts(w, what.kind);
	uint64_t bytes = what.count * recv_parts(w, what.kind) * size;
	struct values v = {
		.type = what.type, .op = what.op, .seed = what.kind,
		.whole = true,
	};
	char *expected = malloc(bytes);

	CHECK(expected && sends * size + skip <= ROOM && bytes <= ROOM);
	what.send = g->send + skip;
	what.recv = g->recv + skip;
	values_fill(&v, w->rank, 0, sends, g->host);
	put(g, g->send + skip, sends * size);
	CHECK_EQ(world_call(comm, &what), 0);
	if (what.kind != FABREX_REDUCE || what.root == w->rank) {
		values_expect(w, &what, &v, expected);
		get(g, g->recv + skip, bytes);
		CHECK(!memcmp(g->host, expected, bytes));
	}
	free(expected);
}

static void all_kinds(const struct world *w, const char *table,
		      const struct gpu *g, struct fabrex_comm *comm)
{
	static const uint32_t types[] = {
		FABREX_FLOAT32, FABREX_BFLOAT16, FABREX_INT64, FABREX_UINT8,
	};
	static const uint64_t counts[] = { 1, 5, 1000, 30001 };
	struct fabrex_collective what = { .count = 0 };
	uint32_t i;

	for (what.kind = FABREX_ALL_REDUCE; what.kind < FABREX_BARRIER;
	     what.kind++)
		for (i = 0; i < 16; i++) {
			what.type = types[i % 4];
			what.count = counts[i / 4];
			what.op = reduces(what.kind) ? FABREX_SUM + i % 5 : 0;
			what.root = what.kind == FABREX_BROADCAST ||
				    what.kind == FABREX_REDUCE ?
				    i % w->size : 0;
			test_note("%s: kind %u, type %u, count %llu", table,
				  what.kind, what.type,
				  (unsigned long long)what.count);
			one(w, comm, g, what, i % 3 == 2 ? 1 : 0);
		}
}

static void collectives_work(struct world *w)
{
	static const char *const tables[] = {
		"all:flat", "all:direct", "all:staged", "all:ring",
	};
	struct fabrex_comm *comm;
	struct gpu g;
	size_t i;

	open_gpu(w, &g);
	for (i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		comm = world_comm(w, tables[i]);
		all_kinds(w, tables[i], &g, comm);
		fabrex_comm_destroy(comm);
	}
}

TEST(gpus_take_part)
{
	world_run(1, collectives_work, NULL);
	world_run(2, collectives_work, NULL);
	world_run(3, collectives_work, NULL);
}

/* ---- messages ---------------------------------------------------------- */

/* Around, everybody to itself as well, of all lengths. */
static void messages_work(struct world *w)
{
	static const uint64_t lengths[] = { 1, 40, 41, 5000, 40000, 900001 };
	uint32_t next = (w->rank + 1) % w->size, i;
	uint32_t before = (w->rank + w->size - 1) % w->size;
	struct gpu g;
	char *own = malloc(ROOM);
	uint64_t n;

	CHECK(own);
	open_gpu(w, &g);
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		n = lengths[i];
		memset(g.host, (int)(w->rank + i), n);
		put(&g, g.send, n);
		test_note("length %llu", (unsigned long long)n);
		CHECK_EQ(fabrex_group_begin(w->comm), 0);
		CHECK_EQ(fabrex_send(w->comm, g.send, n, FABREX_INT8, next),
			 0);
		CHECK_EQ(fabrex_recv(w->comm, g.recv, n, FABREX_INT8, before),
			 0);
		CHECK_EQ(fabrex_send(w->comm, g.send, n, FABREX_INT8,
				     w->rank), 0);
		CHECK_EQ(fabrex_recv(w->comm, own, n, FABREX_INT8, w->rank),
			 0);
		CHECK_EQ(fabrex_group_end(w->comm), 0);
		get(&g, g.recv, n);
		CHECK_EQ(g.host[0], (char)(before + i));
		CHECK_EQ(g.host[n - 1], (char)(before + i));
		CHECK_EQ(own[n - 1], (char)(w->rank + i));
	}
}

TEST(gpus_send_and_receive)
{
	world_run(3, messages_work, NULL);
}
