// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Interpreter of schedules for tests: numbers instead of buffers, one for each
 * rank and chunk, added modulo 2^64. Takes what is well formed only.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpret.h"

struct cell {
	uint64_t value;
	bool there;
};

struct machine {
	char collective[24];
	unsigned int ranks, root, parts, chunks;
	unsigned int *shard_end;	/* chunks up to it; NULL: all alike */
	struct cell *cells, *before;	/* before: as a bracket began */
	bool wrong;
};

static bool is(const struct machine *m, const char *collective)
{
	return !strcmp(m->collective, collective);
}

static bool reduces(const struct machine *m)
{
	return is(m, "all-reduce") || is(m, "reduce") ||
	       is(m, "reduce-scatter");
}

static unsigned int shards(const struct machine *m)
{
	if (is(m, "all-to-all"))
		return m->ranks * m->ranks;
	if (is(m, "all-gather") || is(m, "reduce-scatter"))
		return m->ranks;
	return 1;
}

static unsigned int shard_of(const struct machine *m, unsigned int chunk)
{
	unsigned int shard = 0;

	if (!m->shard_end)
		return chunk / m->parts;
	while (chunk >= m->shard_end[shard])
		shard++;
	return shard;
}

/* What a rank puts into a chunk. */
static uint64_t number(unsigned int rank, unsigned int chunk)
{
	uint64_t x = ((uint64_t)rank << 32 | chunk) + 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static unsigned int source(const struct machine *m, unsigned int chunk)
{
	unsigned int shard = shard_of(m, chunk);

	if (is(m, "broadcast"))
		return m->root;
	return is(m, "all-to-all") ? shard / m->ranks : shard;
}

static bool needed(const struct machine *m, unsigned int chunk,
		   unsigned int rank)
{
	unsigned int shard = shard_of(m, chunk);

	if (is(m, "reduce"))
		return rank == m->root;
	if (is(m, "reduce-scatter"))
		return rank == shard;
	if (is(m, "all-to-all"))
		return rank == shard % m->ranks;
	return true;
}

static struct cell *cell(struct cell *cells, const struct machine *m,
			 unsigned int rank, unsigned int chunk)
{
	return &cells[(size_t)rank * m->chunks + chunk];
}

static void begin(struct machine *m)
{
	unsigned int rank, chunk;
	struct cell *c;

	if (m->cells)
		return;
	if (!m->shard_end)
		m->chunks = shards(m) * m->parts;
	m->cells = calloc((size_t)m->ranks * m->chunks, sizeof(*m->cells));
	m->before = calloc((size_t)m->ranks * m->chunks, sizeof(*m->cells));
	if (!m->cells || !m->before)
		abort();
	for (rank = 0; rank < m->ranks; rank++) {
		for (chunk = 0; chunk < m->chunks; chunk++) {
			c = cell(m->cells, m, rank, chunk);
			c->there = reduces(m) || source(m, chunk) == rank;
			c->value = c->there ? number(rank, chunk) : 0;
		}
	}
}

static bool right(const struct machine *m)
{
	unsigned int rank, chunk, i;
	uint64_t expected;

	for (chunk = 0; chunk < m->chunks; chunk++) {
		expected = 0;
		for (i = 0; reduces(m) && i < m->ranks; i++)
			expected += number(i, chunk);
		if (!reduces(m))
			expected = number(source(m, chunk), chunk);
		for (rank = 0; rank < m->ranks; rank++) {
			const struct cell *c = cell(m->cells, m, rank, chunk);

			if (needed(m, chunk, rank) &&
			    (!c->there || c->value != expected))
				return false;
		}
	}
	return true;
}

static void hop(struct machine *m, bool reduce, unsigned int chunk,
		const struct cell *from, unsigned int to)
{
	struct cell *c = cell(m->cells, m, to, chunk);

	if (!from->there || (reduce && !c->there)) {
		m->wrong = true;
		return;
	}
	c->value = reduce ? c->value + from->value : from->value;
	c->there = true;
}

/* "0>1>2", perhaps with brackets at its ends. */
static void path(struct machine *m, bool reduce, unsigned int chunk,
		 const char *word, bool *open)
{
	unsigned int from, to;
	char *at;

	if (*word == '[') {
		*open = true;
		memcpy(m->before, m->cells, (size_t)m->ranks * m->chunks *
		       sizeof(*m->cells));
		word++;
	}
	from = (unsigned int)strtoul(word, &at, 10);
	while (*at == '>') {
		to = (unsigned int)strtoul(at + 1, &at, 10);
		hop(m, reduce, chunk, cell(*open ? m->before : m->cells, m,
					   from, chunk), to);
		from = to;
	}
	if (*at == ']')
		*open = false;
}

static void weights(struct machine *m, unsigned int *n)
{
	const char *word, *times;

	while ((word = strtok(NULL, " "))) {
		times = strchr(word, 'x');
		*n += times ? (unsigned int)strtoul(times + 1, NULL, 10) : 1;
	}
	m->chunks = *n;
}

static void statement(struct machine *m, char *line)
{
	static unsigned int chunk, shard;
	static bool reduce;
	bool open = false;
	char *word = strtok(line, " ");

	if (!word)
		return;
	if (!strcmp(word, "collective")) {
		snprintf(m->collective, sizeof(m->collective), "%s",
			 strtok(NULL, " "));
	} else if (!strcmp(word, "ranks")) {
		m->ranks = (unsigned int)atoi(strtok(NULL, " "));
		m->parts = 1;
	} else if (!strcmp(word, "root")) {
		m->root = (unsigned int)atoi(strtok(NULL, " "));
	} else if (!strcmp(word, "split")) {
		m->parts = 0;
		weights(m, &m->parts);
	} else if (!strcmp(word, "shard")) {
		if (!m->shard_end)
			m->shard_end = calloc(m->ranks, sizeof(unsigned int));
		shard = (unsigned int)atoi(strtok(NULL, " "));
		m->shard_end[shard] = shard ? m->shard_end[shard - 1] : 0;
		weights(m, &m->shard_end[shard]);
	} else if (strcmp(word, "fabrex-schedule")) {
		begin(m);
		if (!strcmp(word, "copy") || !strcmp(word, "reduce")) {
			reduce = *word == 'r';
			chunk = (unsigned int)atoi(strtok(NULL, " "));
			word = strtok(NULL, " ");
		}
		for (; word; word = strtok(NULL, " "))
			path(m, reduce, chunk, word, &open);
	}
}

bool interpret(const char *text)
{
	struct machine m = { .parts = 1 };
	char *copy = strdup(text), *line = copy, *end;
	bool ok;

	for (; line && *line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		line[strcspn(line, "#")] = '\0';
		statement(&m, line);
	}
	begin(&m);
	ok = !m.wrong && right(&m);
	free(m.cells);
	free(m.before);
	free(m.shard_end);
	free(copy);
	return ok;
}
