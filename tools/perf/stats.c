// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time, and the distribution of latencies from a bounded number of samples.
 * Each thread of a test has samples of its own; they are merged at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf.h"

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int samples_init(struct samples *s, size_t max)
{
	memset(s, 0, sizeof(*s));
	s->ns = malloc(max * sizeof(*s->ns));
	s->max = max;
	s->state = 1;
	return s->ns ? 0 : -ENOMEM;
}

void samples_free(struct samples *s)
{
	free(s->ns);
	s->ns = NULL;
}

static uint32_t next_random(struct samples *s)
{
	s->state ^= s->state << 13;
	s->state ^= s->state >> 17;
	s->state ^= s->state << 5;
	return s->state;
}

/* Reservoir: with more than max, each seen one is kept equally likely. */
void samples_add(struct samples *s, uint64_t ns)
{
	uint32_t value = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
	uint64_t place;

	s->seen++;
	if (s->n < s->max) {
		s->ns[s->n++] = value;
		return;
	}
	place = next_random(s) % s->seen;
	if (place < s->max)
		s->ns[place] = value;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double at(const uint32_t *sorted, size_t n, double part)
{
	size_t i = (size_t)(part * (double)(n - 1) + 0.5);

	return sorted[i] / 1e3;
}

void result_latency(struct result *r, struct samples *all, size_t threads)
{
	size_t i, n = 0, total = 0;
	uint32_t *merged;

	for (i = 0; i < threads; i++)
		total += all[i].n;
	merged = malloc((total + 1) * sizeof(*merged));
	if (!merged || !total) {
		free(merged);
		return;
	}
	for (i = 0; i < threads; i++) {
		memcpy(merged + n, all[i].ns, all[i].n * sizeof(*merged));
		n += all[i].n;
	}
	qsort(merged, n, sizeof(*merged), compare);
	r->min_us = merged[0] / 1e3;
	r->median_us = at(merged, n, 0.5);
	r->p99_us = at(merged, n, 0.99);
	r->max_us = merged[n - 1] / 1e3;
	free(merged);
}
