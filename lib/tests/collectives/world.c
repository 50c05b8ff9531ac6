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

static bool far, deadly;

/* Ranks have limits of their own. */
const unsigned int test_limit_s;

unsigned int test_objects(void)
{
	return 0;
}

static struct fabrex_comm *create(struct world *w, const char *algorithms,
				  uint32_t flags)
{
	const struct fabrex_comm_attr attr = {
		.rank = w->rank, .size = w->size, .bootstrap = SERVICE,
		.algorithms = algorithms, .timeout_ms = 300000,
		.flags = flags,
	};
	struct fabrex_comm *comm;

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

static void rank_main(struct world *w, void (*work)(struct world *world))
{
	char name[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	snprintf(name, sizeof(name), "loopback:test-%d", (int)getppid());
	CHECK_EQ(fabrex_open(name, &w->port), 0);
	if (far)
		go_far(w->port);
	w->comm = world_comm(w, NULL);
	work(w);
	fabrex_comm_destroy(w->comm);
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

void world_run_deadly(uint32_t size, void (*work)(struct world *world),
		      const void *arg)
{
	deadly = true;
	world_run(size, work, arg);
	deadly = false;
}
