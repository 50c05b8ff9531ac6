// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The end of accesses: waiting until no thread of any process can still access
 * what was taken away. Called by region.c, queue.c, quarantine.c, file.c and
 * join.c. Rules: docs/loopback.md.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

#define SPINS		64
#define TRIES		8	/* of membarrier() */
#define UNORDERED_NS	1000000
#define NAP_NS		50000
#define STOPPED_NS	100000000u /* then check whether it is stopped */

/* ---- barriers ---------------------------------------------------------- */

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

bool fxi_loop_membarrier_register(void)
{
	return !membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

/*
 * A full barrier in all threads of processes that have registered. Those of
 * other processes have one of their own in every operation. The system may lack
 * memory for it, or forbid it after the port was opened.
 */
bool fxi_loop_membarrier(struct transport *t)
{
	int i;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (i = 0; t->state->barrier && i < TRIES; i++) {
		if (!membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
			return true;
		if (errno != ENOMEM)
			return false;
		sched_yield();
	}
	return !t->state->barrier;
}

/* ---- waiting ----------------------------------------------------------- */

static uint32_t active_of(const struct segment_queue *q)
{
	return __atomic_load_n(&q->active, __ATOMIC_ACQUIRE);
}

/* Lock held. */
static bool still_looks(struct transport *t, const struct loop_looker *l)
{
	struct loop_peer *p = &t->peers[l->number];

	return t->state->slots[l->number].state == SLOT_KNOWN &&
	       p->generation == l->generation &&
	       active_of(&p->segment->queues[l->queue]) == l->active;
}

bool fxi_loop_lookers_gone(struct transport *t, struct loop_lookers *all)
{
	uint32_t i, n = 0;

	for (i = 0; i < all->n; i++)
		if (still_looks(t, &all->list[i]))
			all->list[n++] = all->list[i];
	all->n = n;
	if (!n) {
		free(all->list);
		all->list = NULL;
	}
	return !n && !all->unknown;
}

/* Without memory for the list it counts as never empty. */
static void add_looker(struct loop_lookers *all, const struct loop_looker *l)
{
	struct loop_looker *list = all->list;

	if (!(all->n & (all->n - 1)) || !list)
		list = realloc(list, (all->n ? 2 * all->n : 1) * sizeof(*list));
	if (!list) {
		all->unknown = true;
		return;
	}
	all->list = list;
	list[all->n++] = *l;
}

/* ---- those that were waited for in vain --------------------------------- */

/*
 * While it is in the same operation it has not begun another, and cannot access
 * what was created after the last wait for it.
 */
struct loop_stuck {
	struct loop_stuck *next;
	struct loop_looker looker;
	uint64_t since;
};

static void forget_moved(struct transport *t)
{
	struct loop_stuck **link = &t->state->stuck, *s;

	while ((s = *link)) {
		if (still_looks(t, &s->looker)) {
			link = &s->next;
			continue;
		}
		*link = s->next;
		free(s);
	}
}

static const struct loop_stuck *find_stuck(const struct transport *t,
					   const struct loop_looker *l)
{
	const struct loop_stuck *s = t->state->stuck;

	while (s && (s->looker.number != l->number ||
		     s->looker.queue != l->queue ||
		     s->looker.active != l->active))
		s = s->next;
	return s;
}

static void remember_stuck(struct transport *t, const struct loop_lookers *all)
{
	struct loop_stuck *s;
	uint32_t i;

	for (i = 0; i < all->n; i++) {
		if (!all->list[i].waited || find_stuck(t, &all->list[i]))
			continue;
		s = malloc(sizeof(*s));
		if (!s)
			return;
		s->looker = all->list[i];
		s->since = ++t->state->born;
		s->next = t->state->stuck;
		t->state->stuck = s;
	}
}

void fxi_loop_stuck_end(struct transport *t)
{
	struct loop_stuck *s;

	while ((s = t->state->stuck)) {
		t->state->stuck = s->next;
		free(s);
	}
}

/* ---- who looks --------------------------------------------------------- */

/* Lock held. False: waiting is useless, it is stuck. */
static bool collect_peer(struct transport *t, uint32_t number, bool waited,
			 uint64_t born, struct loop_lookers *all)
{
	struct loop_peer *p = &t->peers[number];
	struct loop_looker l = {
		.number = number, .generation = p->generation, .waited = waited,
	};
	uint32_t n = __atomic_load_n(&p->segment->queues_used,
				     __ATOMIC_ACQUIRE);
	const struct loop_stuck *s;
	bool hope = true;

	for (; l.queue < n && l.queue < SEGMENT_QUEUES; l.queue++) {
		l.active = active_of(&p->segment->queues[l.queue]);
		if (!(l.active & 1))
			continue;
		s = find_stuck(t, &l);
		if (s && s->since < born)
			continue;
		hope &= !s || !waited;
		add_looker(all, &l);
	}
	return hope;
}

/* Lock held. */
static bool collect(struct transport *t, const struct loop_set *set,
		    uint64_t born, struct loop_lookers *all)
{
	bool hope = true;
	uint32_t i;

	*all = (struct loop_lookers){ .n = 0 };
	forget_moved(t);
	for (i = 0; i < SEGMENT_PEERS; i++)
		if (t->state->slots[i].state == SLOT_KNOWN)
			hope &= collect_peer(t, i, i == t->number || !set ||
					     loop_set_has(set, i), born, all);
	return hope && !all->unknown;
}

/* Of those that are waited for. */
static const struct loop_looker *first_waited(const struct loop_lookers *all)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		if (all->list[i].waited)
			return &all->list[i];
	return NULL;
}

/*
 * Letter of its state; '?': unknown. Its name, in parentheses before the state,
 * may have any characters. A process whose first thread has ended shows as a
 * zombie, although others of its @threads may go on.
 */
static char state_of(pid_t pid, long *threads)
{
	char path[64], text[512], state = '?';
	const char *name_end;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return '?';
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = 0;
	name_end = strrchr(text, ')');
	if (!name_end ||
	    sscanf(name_end, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
		   &state, threads) != 2)
		return '?';
	return state;
}

/* By a signal or a debugger: it will not continue by itself. */
static bool is_stopped(pid_t pid)
{
	long threads;
	char state;

	if (pid <= 0 || pid == getpid())
		return false;
	state = state_of(pid, &threads);
	return state == 'T' || state == 't';
}

bool fxi_loop_is_dead(pid_t pid)
{
	long threads;
	char state;

	if (pid <= 0)
		return false;
	if (kill(pid, 0) && errno == ESRCH)
		return true;
	state = state_of(pid, &threads);
	return (state == 'Z' || state == 'X') && threads <= 1;
}

static void rest(uint32_t round)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (round < SPINS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

static bool any_stopped(struct transport *t, const struct loop_lookers *all)
{
	uint32_t i;

	for (i = 0; i < all->n; i++)
		if (all->list[i].waited &&
		    is_stopped(t->peers[all->list[i].number].pid))
			return true;
	return false;
}

/* Lock held, and dropped meanwhile. */
static bool wait_all(struct transport *t, struct loop_lookers *all)
{
	uint64_t limit = t->state->settings.quiesce_ms * 1000000ull, spent;
	uint64_t start = fxi_now_ns();
	bool looked = false;
	uint32_t round = 0;

	while (!fxi_loop_lookers_gone(t, all) && first_waited(all)) {
		spent = fxi_now_ns() - start;
		if (spent > limit)
			return false;
		if (!looked && spent > STOPPED_NS) {
			looked = true;
			if (any_stopped(t, all))
				return false;
		}
		pthread_mutex_unlock(&t->lock);
		rest(round++);
		pthread_mutex_lock(&t->lock);
	}
	return true;
}

int fxi_loop_quiesce(struct transport *t, const struct loop_set *set,
		     uint64_t born, struct loop_lookers *left, uint32_t *who)
{
	const struct loop_looker *l;
	int ret = 0, old;
	bool ordered;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	ordered = fxi_loop_membarrier(t);
	pthread_mutex_lock(&t->lock);
	if (!ordered) {
		*left = (struct loop_lookers){ .unknown = true };
		*who = SEGMENT_PEERS;
		ret = -ETIMEDOUT;
	} else if (!collect(t, set, born, left) || !wait_all(t, left)) {
		ret = -ETIMEDOUT;
		remember_stuck(t, left);
		l = first_waited(left);
		*who = l ? l->number : t->number;
	}
	pthread_mutex_unlock(&t->lock);
	pthread_setcancelstate(old, NULL);
	return ret;
}

/* ---- threads of this process ------------------------------------------- */

void fxi_loop_grace_begin(struct transport *t, struct loop_grace *g)
{
	const struct timespec nap = { .tv_nsec = UNORDERED_NS };
	uint32_t i;

	/* By then stores are visible without a barrier, too. */
	if (!fxi_loop_membarrier(t))
		nanosleep(&nap, NULL);
	g->n = t->state->nqueues;
	g->actives = malloc((g->n + 1) * sizeof(*g->actives));
	for (i = 0; g->actives && i < g->n; i++)
		g->actives[i] = active_of(&t->segment->queues[i]);
}

/* Without memory for the old values: a moment when all are even will do. */
static bool is_over(struct transport *t, const struct loop_grace *g)
{
	uint32_t i, now;

	for (i = 0; i < g->n; i++) {
		now = active_of(&t->segment->queues[i]);
		if (now & 1 && (!g->actives || g->actives[i] == now))
			return false;
	}
	return true;
}

bool fxi_loop_grace_over(struct transport *t, struct loop_grace *g)
{
	if (!is_over(t, g))
		return false;
	free(g->actives);
	g->actives = NULL;
	return true;
}
