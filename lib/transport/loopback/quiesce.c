// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The end of accesses: when nobody looks any more at what was taken away, and
 * what becomes of memory that somebody may look at for ever. Called by
 * region.c, queue.c, join.c and service.c. Rules: docs/loopback.md.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

#define SPINS		64
#define NAP_NS		50000
#define STOPPED_NS	100000000u /* then it is looked whether it is stopped */

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
 * All threads of processes that have registered have a full barrier now. Those
 * of processes that have not have one of their own in every operation.
 */
void fxi_loop_membarrier(struct transport *t)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (t->state->barrier)
		membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

/* ---- waiting ----------------------------------------------------------- */

static uint32_t active_of(const struct segment_queue *q)
{
	return __atomic_load_n(&q->active, __ATOMIC_ACQUIRE);
}

/* One queue of a peer that was odd. */
struct looker {
	uint32_t number, generation;
	uint32_t queue, active;
};

/* Lock held. */
static bool still_looks(struct transport *t, const struct looker *l)
{
	struct loop_peer *p = &t->peers[l->number];

	return t->state->slots[l->number].state == SLOT_KNOWN &&
	       p->generation == l->generation &&
	       active_of(&p->segment->queues[l->queue]) == l->active;
}

/* Stopped by a signal or a debugger: it will not get on by itself. */
static bool is_stopped(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;

	if (pid <= 0 || pid == getpid())
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'T' || state == 't';
}

static void rest(uint32_t round)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (round < SPINS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

/* Lock held, and given up meanwhile. */
static bool wait_for(struct transport *t, const struct looker *l,
		     uint64_t start)
{
	uint64_t limit = t->state->settings.quiesce_ms * 1000000ull, spent;
	bool looked = false;
	uint32_t round = 0;

	while (still_looks(t, l)) {
		spent = fxi_now_ns() - start;
		if (spent > limit)
			return false;
		if (!looked && spent > STOPPED_NS) {
			looked = true;
			if (is_stopped(t->peers[l->number].pid))
				return false;
		}
		pthread_mutex_unlock(&t->lock);
		rest(round++);
		pthread_mutex_lock(&t->lock);
	}
	return true;
}

/* Lock held. A queue seen even, or changed, has been waited for. */
static bool wait_for_peer(struct transport *t, uint32_t number, uint64_t start)
{
	struct loop_peer *p = &t->peers[number];
	struct looker l = {
		.number = number, .generation = p->generation,
	};

	for (l.queue = 0; l.queue < SEGMENT_QUEUES; l.queue++) {
		if (t->state->slots[number].state != SLOT_KNOWN ||
		    p->generation != l.generation ||
		    l.queue >= __atomic_load_n(&p->segment->queues_used,
					       __ATOMIC_ACQUIRE))
			return true;
		l.active = active_of(&p->segment->queues[l.queue]);
		if (l.active & 1 && !wait_for(t, &l, start))
			return false;
	}
	return true;
}

int fxi_loop_quiesce(struct transport *t, uint32_t *who)
{
	uint64_t start = fxi_now_ns();
	int ret = 0, old;
	uint32_t i;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	fxi_loop_membarrier(t);
	pthread_mutex_lock(&t->lock);
	for (i = 0; i < SEGMENT_PEERS && !ret; i++) {
		if (t->state->slots[i].state != SLOT_KNOWN ||
		    wait_for_peer(t, i, start))
			continue;
		*who = i;
		ret = -ETIMEDOUT;
	}
	pthread_mutex_unlock(&t->lock);
	pthread_setcancelstate(old, NULL);
	return ret;
}

/* ---- threads of this process ------------------------------------------- */

void fxi_loop_grace_begin(struct transport *t, struct loop_grace *g)
{
	uint32_t i;

	fxi_loop_membarrier(t);
	g->n = t->state->nqueues;
	g->actives = malloc((g->n + 1) * sizeof(*g->actives));
	for (i = 0; g->actives && i < g->n; i++)
		g->actives[i] = active_of(&t->segment->queues[i]);
}

/* Without memory for what was: a moment when all are even will do. */
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

/* ---- quarantine -------------------------------------------------------- */

/* Without memory for an entry the range is lost, and nothing else. */
void fxi_loop_quarantine(struct transport *t, uint64_t key, bool quiet,
			 const struct loop_set *windows, uint64_t offset,
			 uint64_t length)
{
	struct loop_quarantine *q = malloc(sizeof(*q));

	if (!q)
		return;
	*q = (struct loop_quarantine){
		.quiet = quiet, .key = key, .windows = *windows,
		.offset = offset, .length = length,
	};
	pthread_mutex_lock(&t->lock);
	q->next = t->state->quarantine;
	t->state->quarantine = q;
	pthread_mutex_unlock(&t->lock);
}

void fxi_loop_quarantine_given(struct transport *t, uint32_t number,
			       uint64_t key)
{
	struct loop_quarantine *q;

	for (q = t->state->quarantine; q; q = q->next)
		if (!key || q->key == key)
			q->windows.bits[number / 64] &= ~(1ull << number % 64);
}

/* Lock held: a moment when nobody looks at anything. */
static bool all_even(struct transport *t)
{
	const struct segment *s;
	uint32_t i, k, n;

	for (i = 0; i < SEGMENT_PEERS; i++) {
		if (t->state->slots[i].state != SLOT_KNOWN)
			continue;
		s = t->peers[i].segment;
		n = __atomic_load_n(&s->queues_used, __ATOMIC_ACQUIRE);
		for (k = 0; k < n && k < SEGMENT_QUEUES; k++)
			if (active_of(&s->queues[k]) & 1)
				return false;
	}
	return true;
}

/* What was put there before this quiet moment. */
static void all_quiet(struct loop_quarantine *q)
{
	for (; q; q = q->next)
		q->quiet = true;
}

static struct loop_quarantine *take_clean(struct transport *t)
{
	struct loop_quarantine **link = &t->state->quarantine, *q;

	for (; (q = *link); link = &q->next) {
		if (!q->quiet || !loop_set_empty(&q->windows))
			continue;
		*link = q->next;
		return q;
	}
	return NULL;
}

void fxi_loop_quarantine_sweep(struct transport *t)
{
	struct loop_quarantine *q;

	for (;;) {
		pthread_mutex_lock(&t->lock);
		if (t->state->quarantine) {
			fxi_loop_membarrier(t);
			if (all_even(t))
				all_quiet(t->state->quarantine);
		}
		q = take_clean(t);
		pthread_mutex_unlock(&t->lock);
		if (!q)
			return;
		fxi_loop_heap_free(t, q->offset, q->length);
		free(q);
	}
}

void fxi_loop_quarantine_end(struct transport *t)
{
	struct loop_quarantine *q;

	while ((q = t->state->quarantine)) {
		t->state->quarantine = q->next;
		free(q);
	}
}
