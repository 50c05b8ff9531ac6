// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What has ended and cannot be used again yet, because a stopped peer may still
 * access it: ranges of the heap, and places in the tables of regions and
 * queues. Called by region.c, queue.c and service.c. Rules: docs/loopback.md.
 */
#include <stdlib.h>

#include "state.h"

void fxi_loop_quarantine(struct transport *t, const struct loop_quarantine *new)
{
	struct loop_quarantine *q = malloc(sizeof(*q));

	if (!q) {
		free(new->lookers.list);
		free(new->debts);
		return;
	}
	*q = *new;
	q->next = t->state->quarantine;
	t->state->quarantine = q;
	if (!q->next)
		fxi_loop_service_kick(t);
}

bool fxi_loop_quarantine_owes(struct loop_quarantine *q, uint64_t key,
			      const struct loop_set *windows)
{
	struct loop_debt *debts = realloc(q->debts, (q->ndebts + 1) *
					  sizeof(*debts));

	if (!debts) {
		q->lookers.unknown = true;
		return false;
	}
	q->debts = debts;
	debts[q->ndebts++] = (struct loop_debt){
		.key = key, .windows = *windows,
	};
	return true;
}

static void pay(struct loop_quarantine *q, uint32_t number, uint64_t key)
{
	uint32_t i, n = 0;

	for (i = 0; i < q->ndebts; i++) {
		if (!key || q->debts[i].key == key)
			q->debts[i].windows.bits[number / 64] &=
				~(1ull << number % 64);
		if (!loop_set_empty(&q->debts[i].windows))
			q->debts[n++] = q->debts[i];
	}
	q->ndebts = n;
}

void fxi_loop_quarantine_given(struct transport *t, uint32_t number,
			       uint64_t key)
{
	struct loop_quarantine *q;

	for (q = t->state->quarantine; q; q = q->next)
		pay(q, number, key);
}

static struct loop_quarantine *take_clean(struct transport *t)
{
	struct loop_quarantine **link = &t->state->quarantine, *q;

	for (; (q = *link); link = &q->next) {
		if (!fxi_loop_lookers_gone(t, &q->lookers) || q->ndebts)
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
		q = take_clean(t);
		if (q && q->region)
			fxi_loop_mr_index_free(t, q->region - 1);
		if (q && q->queue)
			t->state->queue_kept[q->queue - 1] = false;
		pthread_mutex_unlock(&t->lock);
		if (!q)
			return;
		if (q->length)
			fxi_loop_heap_free(t, q->offset, q->length);
		free(q->debts);
		free(q);
	}
}

void fxi_loop_quarantine_end(struct transport *t)
{
	struct loop_quarantine *q;

	while ((q = t->state->quarantine)) {
		t->state->quarantine = q->next;
		free(q->lookers.list);
		free(q->debts);
		free(q);
	}
	fxi_loop_stuck_end(t);
}
