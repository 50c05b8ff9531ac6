// SPDX-License-Identifier: LGPL-2.1-or-later
/* Maximum flows, by Dinic's method. Called by cut.c, split.c and pack.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "plan/solve/flow.h"

int flow_init(struct flow *f, uint32_t nnodes)
{
	*f = (struct flow){ .nnodes = nnodes };
	f->near = calloc(nnodes, sizeof(*f->near));
	f->level = calloc(nnodes, sizeof(*f->level));
	f->cursor = calloc(nnodes, sizeof(*f->cursor));
	f->queue = calloc(nnodes, sizeof(*f->queue));
	f->path = calloc(nnodes, sizeof(*f->path));
	if (f->near && f->level && f->cursor && f->queue && f->path)
		return 0;
	flow_clear(f);
	return -ENOMEM;
}

void flow_clear(struct flow *f)
{
	uint32_t i;

	for (i = 0; f->near && i < f->nnodes; i++)
		free(f->near[i].halves);
	free(f->near);
	free(f->head);
	free(f->level);
	free(f->cursor);
	free(f->queue);
	free(f->path);
	*f = (struct flow){ 0 };
}

uint32_t flow_find(const struct flow *f, uint32_t a, uint32_t b)
{
	bool other = f->near[b].n < f->near[a].n;
	const struct flow_near *near = &f->near[other ? b : a];
	uint32_t i, to = other ? a : b;

	for (i = 0; i < near->n; i++)
		if (f->head[near->halves[i]] == to)
			return near->halves[i] ^ other;
	return PLAN_NONE;
}

static int reserve(struct flow_near *near)
{
	uint32_t more = near->room ? 2 * near->room : 4, *p;

	if (near->n < near->room)
		return 0;
	p = realloc(near->halves, more * sizeof(*p));
	if (!p)
		return -ENOMEM;
	near->halves = p;
	near->room = more;
	return 0;
}

int64_t flow_pair(struct flow *f, uint32_t a, uint32_t b)
{
	uint32_t h = flow_find(f, a, b), more, *p;

	if (h != PLAN_NONE)
		return h;
	h = f->nhalves;
	if (h == f->room) {
		more = h ? 2 * h : 64;
		p = realloc(f->head, more * sizeof(*p));
		if (!p)
			return -ENOMEM;
		f->head = p;
		f->room = more;
	}
	if (reserve(&f->near[a]) || reserve(&f->near[b]))
		return -ENOMEM;
	f->head[h] = b;
	f->head[h + 1] = a;
	f->near[a].halves[f->near[a].n++] = h;
	f->near[b].halves[f->near[b].n++] = h + 1;
	f->nhalves += 2;
	return h;
}

/*
 * Distances to @to, 1 there, as far as @from: whoever has one leads there, so
 * the search from @from has few dead ends. Return: is there a path?
 */
static bool levels(struct flow *f, const int64_t *left, uint32_t from,
		   uint32_t to)
{
	uint32_t first = 0, last = 0, i;

	memset(f->level, 0, f->nnodes * sizeof(*f->level));
	f->level[to] = 1;
	f->queue[last++] = to;
	while (first < last) {
		uint32_t x = f->queue[first++];
		const struct flow_near *near = &f->near[x];

		f->work += near->n;
		for (i = 0; i < near->n; i++) {
			uint32_t h = near->halves[i], y = f->head[h];

			if (f->level[y] || left[h ^ 1] <= 0)
				continue;
			f->level[y] = f->level[x] + 1;
			if (y == from)
				return true;
			f->queue[last++] = y;
		}
	}
	return false;
}

/* One step on from @x on a shortest path, or PLAN_NONE. */
static uint32_t step(struct flow *f, const int64_t *left, uint32_t x)
{
	const struct flow_near *near = &f->near[x];
	uint32_t next = f->level[x] - 1, h;

	for (; f->cursor[x] < near->n; f->cursor[x]++) {
		h = near->halves[f->cursor[x]];
		if (f->level[f->head[h]] == next && left[h] > 0)
			return h;
	}
	return PLAN_NONE;
}

/* Send @amount along the path; return at which step to go on. */
static uint32_t send(struct flow *f, int64_t *left, uint32_t n, int64_t amount)
{
	uint32_t i, full = n;

	for (i = n; i-- > 0; ) {
		uint32_t h = f->path[i];

		left[h] -= amount;
		left[h ^ 1] += amount;
		if (!left[h])
			full = i;
	}
	return full;
}

/* All shortest paths at once. */
static int64_t blocking(struct flow *f, int64_t *left, uint32_t from,
			uint32_t to, int64_t limit)
{
	uint32_t x = from, n = 0, h, i;
	int64_t sum = 0, amount;

	memset(f->cursor, 0, f->nnodes * sizeof(*f->cursor));
	while (sum < limit) {
		h = x == to ? PLAN_NONE : step(f, left, x);
		if (h != PLAN_NONE) {
			f->path[n++] = h;
			x = f->head[h];
			continue;
		}
		if (x == to) {
			amount = limit - sum;
			for (i = 0; i < n; i++)
				if (left[f->path[i]] < amount)
					amount = left[f->path[i]];
			sum += amount;
			n = send(f, left, n, amount);
		} else if (n--) {
			f->cursor[f->head[f->path[n] ^ 1]]++;
		} else {
			break;
		}
		x = n ? f->head[f->path[n - 1]] : from;
	}
	return sum;
}

int64_t flow_push(struct flow *f, int64_t *left, uint32_t from, uint32_t to,
		  int64_t limit)
{
	int64_t sum = 0;

	while (sum < limit && levels(f, left, from, to))
		sum += blocking(f, left, from, to, limit - sum);
	return sum;
}

void flow_reach(struct flow *f, const int64_t *left, uint32_t from, bool back,
		bool *seen)
{
	uint32_t first = 0, last = 0, i;

	memset(seen, 0, f->nnodes * sizeof(*seen));
	seen[from] = true;
	f->queue[last++] = from;
	while (first < last) {
		const struct flow_near *near = &f->near[f->queue[first++]];

		for (i = 0; i < near->n; i++) {
			uint32_t h = near->halves[i], y = f->head[h];

			if (seen[y] || left[back ? h ^ 1 : h] <= 0)
				continue;
			seen[y] = true;
			f->queue[last++] = y;
		}
	}
}
