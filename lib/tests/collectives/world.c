// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ranks as processes, for the tests of this folder; main.c runs them. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "core/core.h"
#include "world.h"

#define LIMIT_S	900	/* of what hangs */
#define SERVICE	"fabric:4242"

static bool far, deadly, bridged, apart;

/* Ranks have limits of their own. */
const unsigned int test_limit_s;

unsigned int test_objects(void)
{
	return 0;
}

struct fabrex_comm_attr world_attr(const struct world *w)
{
	return (struct fabrex_comm_attr){
		.rank = w->rank, .size = w->size, .bootstrap = SERVICE,
		.timeout_ms = 300000, .ports = w->more, .nports = w->nmore,
	};
}

static struct fabrex_comm *create(struct world *w, const char *algorithms,
				  uint32_t flags)
{
	struct fabrex_comm_attr attr = world_attr(w);
	struct fabrex_comm *comm;

	attr.algorithms = algorithms;
	attr.flags = flags;
	CHECK_EQ(fabrex_comm_create(w->port, &attr, sizeof(attr), &comm), 0);
	return comm;
}

struct fabrex_comm *world_comm(struct world *w, const char *algorithms)
{
	return create(w, algorithms, 0);
}

struct fabrex_comm *world_comm_alone(struct world *w, const char *algorithms)
{
	return create(w, algorithms, FABREX_COMM_NO_THREAD);
}

uint64_t world_seed(void)
{
	const char *text = getenv("FABREX_FUZZ_SEED");
	uint64_t seed = text && *text ? strtoull(text, NULL, 0) :
			(uint64_t)time(NULL) * 0x9e3779b97f4a7c15u | 1;

	printf("# FABREX_FUZZ_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

int world_call(struct fabrex_comm *comm, const struct fabrex_collective *c)
{
	switch (c->kind) {
	case FABREX_ALL_REDUCE:
		return fabrex_all_reduce(comm, c->send, c->recv, c->count,
					 c->type, c->op);
	case FABREX_ALL_GATHER:
		return fabrex_all_gather(comm, c->send, c->recv, c->count,
					 c->type);
	case FABREX_REDUCE_SCATTER:
		return fabrex_reduce_scatter(comm, c->send, c->recv, c->count,
					     c->type, c->op);
	case FABREX_BROADCAST:
		return fabrex_broadcast(comm, c->send, c->recv, c->count,
					c->type, c->root);
	case FABREX_REDUCE:
		return fabrex_reduce(comm, c->send, c->recv, c->count,
				     c->type, c->op, c->root);
	default:
		return fabrex_all_to_all(comm, c->send, c->recv, c->count,
					 c->type);
	}
}

/* The same fabric, as one whose windows are not ordinary memory. */
static void go_far(struct fabrex_port *port)
{
	static struct transport_ops ops;

	ops = *port->ops;
	ops.coherent = false;
	port->ops = &ops;
}

static struct fabrex_port *join(const char *format, uint32_t a, uint32_t b)
{
	struct fabrex_port *port;
	char name[64];

	snprintf(name, sizeof(name), format, (int)getppid(), a, b);
	CHECK_EQ(fabrex_open(name, &port), 0);
	return port;
}

/* In an order that differs from rank to rank; numbers of peers are 0 and 1. */
static void join_pairs(struct world *w)
{
	uint32_t i, other;

	w->port = NULL;
	for (i = 1; i < w->size; i++) {
		struct fabrex_port *port;

		other = (w->rank * 2 + i) % w->size;
		if (other == w->rank)
			other = w->rank * 2 % w->size;
		if (apart && w->rank + other == 1)
			continue;
		port = w->rank < other ?
		       join("loopback:test-%d-%u-%u", w->rank, other) :
		       join("loopback:test-%d-%u-%u", other, w->rank);
		if (w->port)
			w->more[w->nmore++] = port;
		else
			w->port = port;
	}
}

static void rank_main(struct world *w, void (*work)(struct world *world))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	if (bridged || apart)
		join_pairs(w);
	else
		w->port = join("loopback:test-%d", 0, 0);
	if (far)
		go_far(w->port);
	if (!apart)
		w->comm = world_comm(w, NULL);
	work(w);
	fabrex_comm_destroy(w->comm);
	while (w->nmore)
		CHECK_EQ(fabrex_close(w->more[--w->nmore]), 0);
	fabrex_close(w->port);
	exit(0);
}

static void end_all(pid_t *pids, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
}

void world_run(uint32_t size, void (*work)(struct world *world),
	       const void *arg)
{
	pid_t pids[RANKS_MOST], pid;
	struct world w = { .size = size, .arg = arg };
	uint32_t i, left = size;
	bool bad = false;
	int status;

	fflush(stdout);
	for (i = 0; i < size; i++) {
		w.rank = i;
		pids[i] = fork();
		if (!pids[i])
			rank_main(&w, work);
		CHECK(pids[i] > 0);
	}
	while (left && (pid = wait(&status)) > 0) {
		bool first = pid == pids[0];

		for (i = 0; i < size; i++)
			if (pids[i] == pid)
				pids[i] = 0;
		left--;
		if (deadly && first && WIFSIGNALED(status) &&
		    WTERMSIG(status) == SIGKILL)
			continue;
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			if (WIFSIGNALED(status) &&
			    !(bad && WTERMSIG(status) == SIGKILL))
				printf("# signal %d\n", WTERMSIG(status));
			bad = true;
			end_all(pids, size);
		}
	}
	if (bad) {
		fflush(stdout);
		_exit(1);
	}
}

void world_run_far(uint32_t size, void (*work)(struct world *world),
		   const void *arg)
{
	far = true;
	world_run(size, work, arg);
	far = false;
}

void world_run_bridged(uint32_t size, void (*work)(struct world *world),
		       const void *arg)
{
	CHECK(size > 2 && size <= WORLD_PORTS + 2);
	bridged = true;
	world_run(size, work, arg);
	bridged = false;
}

void world_run_apart(uint32_t size, void (*work)(struct world *world),
		     const void *arg)
{
	apart = true;
	world_run(size, work, arg);
	apart = false;
}

void world_run_deadly(uint32_t size, void (*work)(struct world *world),
		      const void *arg)
{
	deadly = true;
	world_run(size, work, arg);
	deadly = false;
}
