// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Communicators over several ports: a fabric of its own joins each two ranks, as
 * where there is a bridge between each two hosts. Contents of all collectives are
 * with the others, in matrix.c, blocks.c and pairs.c.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "core/core.h"
#include "world.h"

#define COUNT	40001u

static void sum(struct fabrex_comm *comm)
{
	uint32_t i, n = fabrex_comm_size(comm);
	static int32_t x[COUNT], y[COUNT];

	for (i = 0; i < COUNT; i++)
		x[i] = (int32_t)(fabrex_comm_rank(comm) + i);
	CHECK_EQ(fabrex_all_reduce(comm, x, y, COUNT, FABREX_INT32,
				   FABREX_SUM), 0);
	for (i = 0; i < COUNT; i++)
		CHECK_EQ(y[i], n * (n - 1) / 2 + n * i);
}

static void split_work(struct world *w)
{
	struct fabrex_comm *half;

	CHECK_EQ(fabrex_comm_split(w->comm, (int)w->rank % 2, 0, &half), 0);
	CHECK_EQ(fabrex_comm_size(half), (w->size + 1 - w->rank % 2) / 2);
	sum(half);
	sum(w->comm);
	fabrex_comm_destroy(half);
}

TEST(several_ports_split)
{
	world_run_bridged(5, split_work, NULL);
}

/* ---- as many as can be ------------------------------------------------- */

static void most_work(struct world *w)
{
	CHECK_EQ(w->nmore, WORLD_PORTS);
	sum(w->comm);
}

TEST(eight_ports)
{
	world_run_bridged(9, most_work, NULL);
}

/* ---- other ways to meet ------------------------------------------------- */

struct table {
	atomic_uint came[2];
	struct fabrex_unique_id id;
	uint8_t parts[2][RANKS][1024];
};

static struct table *table_make(void)
{
	struct table *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(t != MAP_FAILED);
	return t;
}

static void await(atomic_uint *count, unsigned int n)
{
	while (atomic_load(count) < n)
		usleep(1000);
}

struct exchange {
	struct table *table;
	uint32_t rank, size, calls;
};

static int exchange(void *context, const void *mine, void *all, size_t bytes)
{
	struct exchange *e = context;
	uint32_t i, call = e->calls++;

	CHECK(call < 2 && bytes <= sizeof(e->table->parts[0][0]));
	memcpy(e->table->parts[call][e->rank], mine, bytes);
	atomic_fetch_add(&e->table->came[call], 1);
	await(&e->table->came[call], e->size);
	for (i = 0; i < e->size; i++)
		memcpy((char *)all + i * bytes, e->table->parts[call][i],
		       bytes);
	return 0;
}

static void exchange_work(struct world *w)
{
	struct exchange e = {
		.table = (struct table *)(uintptr_t)w->arg, .rank = w->rank,
		.size = w->size,
	};
	struct fabrex_comm_attr attr = world_attr(w);
	struct fabrex_comm *comm;

	attr.bootstrap = NULL;
	attr.exchange = exchange;
	attr.context = &e;
	CHECK_EQ(fabrex_comm_create(w->port, &attr, sizeof(attr), &comm), 0);
	CHECK_EQ(e.calls, 2);
	sum(comm);
	fabrex_comm_destroy(comm);
}

TEST(several_ports_by_the_application)
{
	world_run_bridged(3, exchange_work, table_make());
}

static void unique_work(struct world *w)
{
	struct table *t = (struct table *)(uintptr_t)w->arg;
	struct fabrex_comm_attr attr = world_attr(w);
	struct fabrex_comm *comm;

	if (!w->rank) {
		CHECK_EQ(fabrex_unique_id_create(w->port, "127.0.0.1", &t->id),
			 0);
		atomic_fetch_add(&t->came[0], 1);
	}
	await(&t->came[0], 1);
	attr.bootstrap = NULL;
	attr.unique_id = &t->id;
	CHECK_EQ(fabrex_comm_create(w->port, &attr, sizeof(attr), &comm), 0);
	sum(comm);
	fabrex_comm_destroy(comm);
}

TEST(several_ports_by_a_unique_id)
{
	world_run_bridged(3, unique_work, table_make());
}

/* ---- a rank dies -------------------------------------------------------- */

#define VICTIM	1u

static void dies_work(struct world *w)
{
	struct fabrex_comm *rest;
	uint32_t failed = w->size;
	int ret = 0, i;

	sum(w->comm);
	if (w->rank == VICTIM)
		_exit(0);
	for (i = 0; i < 1000 && !ret; i++)
		ret = fabrex_barrier(w->comm);
	CHECK_EQ(ret, -ECONNRESET);
	CHECK_SAYS("rank 1 (");
	CHECK_EQ(fabrex_comm_failed(w->comm, &failed, 1), 1);
	CHECK_EQ(failed, VICTIM);
	CHECK_EQ(fabrex_comm_shrink(w->comm, 60000, &rest), 0);
	CHECK_EQ(fabrex_comm_size(rest), w->size - 1);
	sum(rest);
	fabrex_comm_destroy(rest);
}

TEST(several_ports_shrink)
{
	world_run_bridged(3, dies_work, NULL);
	world_run_bridged(4, dies_work, NULL);
}

/* ---- no way ------------------------------------------------------------- */

/* Ranks 0 and 1 have no port in common; the others learn of it. */
static void apart_work(struct world *w)
{
	struct exchange e = {
		.table = (struct table *)(uintptr_t)w->arg, .rank = w->rank,
		.size = w->size,
	};
	struct fabrex_comm_attr attr = world_attr(w);
	struct fabrex_comm *comm;
	int ret;

	attr.bootstrap = NULL;
	attr.exchange = exchange;
	attr.context = &e;
	ret = fabrex_comm_create(w->port, &attr, sizeof(attr), &comm);
	if (w->rank < 2) {
		CHECK_EQ(ret, -ENETUNREACH);
		CHECK_SAYS(w->rank ? "rank 1 (it has 2) reaches rank 0 (" :
				     "rank 0 (it has 2) reaches rank 1 (");
		return;
	}
	CHECK_EQ(ret, 0);
	CHECK_EQ(fabrex_barrier(comm), -ECONNRESET);
	CHECK_SAYS("has no port that reaches some other rank");
	fabrex_comm_destroy(comm);
}

TEST(ranks_without_a_common_port)
{
	world_run_apart(4, apart_work, table_make());
}

/*
 * One port each, of different fabrics, where the number that is meant is that of
 * another port.
 */
static void other_work(struct world *w)
{
	struct exchange e = {
		.table = (struct table *)(uintptr_t)w->arg, .rank = w->rank,
		.size = w->size,
	};
	struct fabrex_comm_attr attr = world_attr(w);
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	char name[64];

	snprintf(name, sizeof(name), "loopback:test-%d-of-%u", (int)getppid(),
		 w->rank);
	CHECK_EQ(fabrex_open(name, &port), 0);
	port->ops = w->port->ops;
	attr.bootstrap = NULL;
	attr.exchange = exchange;
	attr.context = &e;
	CHECK_EQ(fabrex_comm_create(port, &attr, sizeof(attr), &comm),
		 -ENETUNREACH);
	CHECK_SAYS("(it has 1) reaches rank ");
	CHECK_EQ(fabrex_close(port), 0);
}

TEST(one_port_each_of_other_fabrics)
{
	world_run_far(2, other_work, table_make());
}

/* ---- arguments ---------------------------------------------------------- */

static void wrong(struct world *w, const struct fabrex_comm_attr *attr,
		  const char *text)
{
	struct fabrex_comm *comm;

	CHECK_EQ(fabrex_comm_create(w->port, attr, sizeof(*attr), &comm),
		 -EINVAL);
	test_note("%s: %s", text, fabrex_strerror_last());
	CHECK(strstr(fabrex_strerror_last(), text));
}

/* Rank 0 would map memory, and choose other algorithms. */
static void mixed_work(struct world *w)
{
	struct fabrex_comm_attr attr = world_attr(w);
	struct fabrex_port *port = NULL;
	char name[64];

	snprintf(name, sizeof(name), "loopback:test-%d-all", (int)getppid());
	CHECK_EQ(fabrex_open(name, &port), 0);
	if (!w->rank)
		attr.nports = 0;
	attr.bootstrap = "fabric:4243";
	wrong(&(struct world){ .port = port }, &attr, "over loopback");
	CHECK_EQ(fabrex_close(port), 0);
}

TEST(loopback_with_one_port_and_with_several)
{
	world_run_bridged(3, mixed_work, NULL);
}

static void arguments_work(struct world *w)
{
	struct fabrex_comm_attr attr = world_attr(w);
	struct fabrex_port *ports[WORLD_PORTS + 1] = { w->more[0], w->port };

	attr.ports = NULL;
	wrong(w, &attr, "nports is 2 and ports NULL");
	attr.ports = ports;
	wrong(w, &attr, "ports[1] is port ");
	ports[1] = NULL;
	wrong(w, &attr, "ports[1] is NULL");
	attr.nports = WORLD_PORTS + 1;
	wrong(w, &attr, "may have 8 in all");
	attr = world_attr(w);
	attr.reserved_ports = 1;
	wrong(w, &attr, "reserved_ports is not 0");
	CHECK_EQ(fabrex_close(w->more[1]), -EBUSY);
	CHECK_SAYS("1 communicators");
	sum(w->comm);
}

TEST(wrong_ports_are_refused)
{
	world_run_bridged(4, arguments_work, NULL);
}
