// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Generates schedules by the name of an algorithm: fabrex_schedule_make(), for
 * applications and for the library's own choice of algorithms.
 *
 * ring      P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for
 *           clusters of workstations. J. Parallel Distrib. Comput. 69 (2009).
 * tree      P. Sanders, J. Speck, J. L. Traeff: Two-tree algorithms for full
 *           bandwidth broadcast, reduction and scan. Parallel Comput. 35 (2009).
 * halving   R. Rabenseifner: Optimization of collective reduction operations.
 *           ICCS 2004. For numbers of ranks that are no power of two, along
 *           the circulant graph: J. Bruck et al.: Efficient algorithms for
 *           all-to-all communications in multiport message-passing systems.
 *           IEEE TPDS 8 (1997), and J. L. Traeff: Optimal, non-pipelined
 *           reduce-scatter and allreduce algorithms. arXiv:2410.14234 (2024).
 * doubling  R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective
 *           communication operations in MPICH. IJHPCA 19 (2005), section 4.
 * direct    every rank sends to every other.
 * chain     along a line, from neighbour to neighbour.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/export.h"
#include "schedule/schedule.h"

#define CHANNELS	64u

struct maker {
	struct fabrex_schedule *s;
	uint32_t n;		/* ranks */
	uint32_t parts;		/* of a shard, for each channel */
	uint32_t channels, channel;
	uint32_t i;		/* part that is being made */
	uint32_t *rank;		/* in this channel: 0 is the root */
	int ret;		/* of the first that failed */
};

/*
 * Parts of a shard: 1, those of a tree, or one for each rank where a single
 * shard is dealt out. @make is called once for each channel.
 */
struct recipe {
	const char *name;
	uint32_t parts;		/* 0: as many as ranks, in all-reduce */
	void (*make)(struct maker *m);
};

/* ---- building blocks of the recipes ------------------------------------ */

static void send(struct maker *m, uint32_t chunk, uint32_t from, uint32_t to,
		 uint32_t flags)
{
	struct transfer t = {
		.chunk = chunk, .from = (uint16_t)m->rank[from],
		.to = (uint16_t)m->rank[to], .flags = flags & 0xff,
	};

	if (!m->ret)
		m->ret = fxi_schedule_add(m->s, t);
}

/* Part @i of the only shard, in this channel. */
static uint32_t part(const struct maker *m, uint32_t i)
{
	return m->channel * m->parts + i;
}

/* The part that is being made of the shard of the rank @v of this channel. */
static uint32_t shard(const struct maker *m, uint32_t v)
{
	return m->rank[v] * m->parts * m->channels + part(m, m->i);
}

static uint32_t block(const struct maker *m, uint32_t from, uint32_t to)
{
	return (m->rank[from] * m->n + m->rank[to]) * m->parts * m->channels +
	       part(m, 0);
}

/*
 * Every collective but all-to-all is made of two: @gather brings a chunk from
 * rank @v to all, @reduce the sum of all ranks' to rank @v.
 */
struct spread {
	void (*gather)(struct maker *m, uint32_t chunk, uint32_t v);
	void (*reduce)(struct maker *m, uint32_t chunk, uint32_t v);
};

static void make_part(struct maker *m, const struct spread *spread)
{
	uint32_t chunk = part(m, m->i), v;

	switch (m->s->kind) {
	case FABREX_ALL_REDUCE:
		v = m->parts == m->n ? m->i : 0;
		spread->reduce(m, chunk, v);
		spread->gather(m, chunk, v);
		break;
	case FABREX_BROADCAST:
		spread->gather(m, chunk, 0);
		break;
	case FABREX_REDUCE:
		spread->reduce(m, chunk, 0);
		break;
	case FABREX_ALL_GATHER:
		for (v = 0; v < m->n && !m->ret; v++)
			spread->gather(m, shard(m, v), v);
		break;
	default:
		for (v = 0; v < m->n && !m->ret; v++)
			spread->reduce(m, shard(m, v), v);
		break;
	}
}

static void make_spread(struct maker *m, const struct spread *spread)
{
	for (m->i = 0; m->i < m->parts && !m->ret; m->i++)
		make_part(m, spread);
}

/* All pairs, each along the path that @next leads. */
static void make_pairs(struct maker *m,
		       uint32_t (*next)(const struct maker *m, uint32_t at,
					uint32_t to))
{
	uint32_t from, to, at, hop;

	for (from = 0; from < m->n; from++) {
		for (to = 0; to < m->n; to++) {
			for (at = from; at != to && !m->ret; at = hop) {
				hop = next(m, at, to);
				send(m, block(m, from, to), at, hop, 0);
			}
		}
	}
}

/* ---- ring, chain ------------------------------------------------------- */

static void ring_gather(struct maker *m, uint32_t chunk, uint32_t v)
{
	uint32_t hop;

	for (hop = 0; hop + 1 < m->n; hop++)
		send(m, chunk, (v + hop) % m->n, (v + hop + 1) % m->n, 0);
}

static void ring_reduce(struct maker *m, uint32_t chunk, uint32_t v)
{
	uint32_t hop;

	for (hop = 1; hop < m->n; hop++)
		send(m, chunk, (v + hop) % m->n, (v + hop + 1) % m->n,
		     TRANSFER_REDUCE);
}

static uint32_t ring_next(const struct maker *m, uint32_t at, uint32_t to)
{
	(void)to;
	return (at + 1) % m->n;
}

static void make_ring(struct maker *m)
{
	static const struct spread ring = { ring_gather, ring_reduce };

	if (m->s->kind == FABREX_ALL_TO_ALL)
		make_pairs(m, ring_next);
	else
		make_spread(m, &ring);
}

/* From @v to both ends of a line. */
static void chain_gather(struct maker *m, uint32_t chunk, uint32_t v)
{
	uint32_t at;

	for (at = v; at + 1 < m->n; at++)
		send(m, chunk, at, at + 1, 0);
	for (at = v; at > 0; at--)
		send(m, chunk, at, at - 1, 0);
}

static void chain_reduce(struct maker *m, uint32_t chunk, uint32_t v)
{
	uint32_t at;

	for (at = 0; at < v; at++)
		send(m, chunk, at, at + 1, TRANSFER_REDUCE);
	for (at = m->n - 1; at > v; at--)
		send(m, chunk, at, at - 1, TRANSFER_REDUCE);
}

static uint32_t chain_next(const struct maker *m, uint32_t at, uint32_t to)
{
	(void)m;
	return to > at ? at + 1 : at - 1;
}

static void make_chain(struct maker *m)
{
	static const struct spread chain = { chain_gather, chain_reduce };

	if (m->s->kind == FABREX_ALL_TO_ALL)
		make_pairs(m, chain_next);
	else
		make_spread(m, &chain);
}

/* ---- direct ------------------------------------------------------------ */

static void direct_gather(struct maker *m, uint32_t chunk, uint32_t v)
{
	uint32_t hop;

	for (hop = 1; hop < m->n; hop++)
		send(m, chunk, v, (v + hop) % m->n, 0);
}

static void direct_reduce(struct maker *m, uint32_t chunk, uint32_t v)
{
	uint32_t hop;

	for (hop = 1; hop < m->n; hop++)
		send(m, chunk, (v + hop) % m->n, v, TRANSFER_REDUCE);
}

static uint32_t direct_next(const struct maker *m, uint32_t at, uint32_t to)
{
	(void)m;
	(void)at;
	return to;
}

static void make_direct(struct maker *m)
{
	static const struct spread direct = { direct_gather, direct_reduce };

	if (m->s->kind == FABREX_ALL_TO_ALL)
		make_pairs(m, direct_next);
	else
		make_spread(m, &direct);
}

/* ---- halving, doubling ------------------------------------------------- */

static bool power_of_two(uint32_t n)
{
	return !(n & (n - 1));
}

/* Largest power of two below n, 0 if there is none. */
static uint32_t half(uint32_t n)
{
	uint32_t k = 1;

	while (k * 2 < n)
		k *= 2;
	return n > 1 ? k : 0;
}

/* The rank at @offset from @v: on the cube, or around the circle. */
static uint32_t partner(const struct maker *m, uint32_t v, uint32_t offset)
{
	return power_of_two(m->n) ? v ^ offset : (v + offset) % m->n;
}

/* Each step doubles the ranks that have it. */
static void halving_gather(struct maker *m, uint32_t chunk, uint32_t v)
{
	uint32_t k, o;

	for (k = 1; k < m->n; k *= 2)
		for (o = 0; o < k && o + k < m->n; o++)
			send(m, chunk, partner(m, v, o),
			     partner(m, v, o + k), 0);
}

static void halving_reduce(struct maker *m, uint32_t chunk, uint32_t v)
{
	uint32_t k, o;

	for (k = half(m->n); k; k /= 2)
		for (o = 0; o < k && o + k < m->n; o++)
			send(m, chunk, partner(m, v, o + k),
			     partner(m, v, o), TRANSFER_REDUCE);
}

/* The lowest bit of the distance first. */
static uint32_t halving_next(const struct maker *m, uint32_t at, uint32_t to)
{
	uint32_t distance = (to + m->n - at) % m->n;

	return (at + (distance & -distance)) % m->n;
}

static void make_halving(struct maker *m)
{
	static const struct spread halving = {
		halving_gather, halving_reduce
	};

	if (m->s->kind == FABREX_ALL_TO_ALL)
		make_pairs(m, halving_next);
	else
		make_spread(m, &halving);
}

/*
 * All of it in each step; ranks beyond a power of two hand theirs to a partner.
 */
static void make_doubling(struct maker *m)
{
	uint32_t q = power_of_two(m->n) ? m->n : half(m->n), i, k;

	if (m->s->kind != FABREX_ALL_REDUCE) {
		make_halving(m);
		return;
	}
	for (i = q; i < m->n; i++)
		send(m, part(m, 0), i, i - q, TRANSFER_REDUCE);
	for (k = 1; k < q; k *= 2) {
		for (i = 0; i < q; i++) {
			if (i & k)
				continue;
			send(m, part(m, 0), i, i ^ k, TRANSFER_REDUCE);
			send(m, part(m, 0), i ^ k, i,
			     TRANSFER_REDUCE | TRANSFER_JOINED);
		}
	}
	for (i = q; i < m->n; i++)
		send(m, part(m, 0), i - q, i, 0);
}

/* ---- two trees --------------------------------------------------------- */

/* Parent of a place in the tree over 1 .. n - 1, in order; 0 is above it. */
static uint32_t parent(const struct maker *m, uint32_t place)
{
	uint32_t bit = place & -place;
	uint32_t up = (place ^ bit) | bit << 1;

	return up < m->n ? up : place ^ bit;
}

/*
 * The rank at a place; in the second tree places are mirrored, or shifted by
 * one, so that inner ranks of one tree are leaves of the other. As seen from
 * rank @v.
 */
static uint32_t sitting(const struct maker *m, uint32_t v, uint32_t place)
{
	if (place && m->i % 2)
		place = m->n % 2 ? m->n - place : place % (m->n - 1) + 1;
	return (v + place) % m->n;
}

/* Places whose lowest bit is @bit: all of one height. */
static void tree_level(struct maker *m, uint32_t chunk, uint32_t v,
		       uint32_t bit, uint32_t flags)
{
	uint32_t place, low, high;

	for (place = bit; place < m->n; place += 2 * bit) {
		low = sitting(m, v, place);
		high = sitting(m, v, parent(m, place));
		if (flags & TRANSFER_REDUCE)
			send(m, chunk, low, high, flags);
		else
			send(m, chunk, high, low, flags);
	}
}

static void tree_gather(struct maker *m, uint32_t chunk, uint32_t v)
{
	uint32_t bit;

	for (bit = half(m->n); bit; bit /= 2)
		tree_level(m, chunk, v, bit, 0);
}

static void tree_reduce(struct maker *m, uint32_t chunk, uint32_t v)
{
	uint32_t bit;

	for (bit = 1; bit < m->n; bit *= 2)
		tree_level(m, chunk, v, bit, TRANSFER_REDUCE);
}

static void make_tree(struct maker *m)
{
	static const struct spread tree = { tree_gather, tree_reduce };

	make_spread(m, &tree);
}

/* ---- all of them ------------------------------------------------------- */

static const struct recipe recipes[] = {
	{ "ring", 0, make_ring },
	{ "tree", 2, make_tree },
	{ "halving", 0, make_halving },
	{ "doubling", 1, make_doubling },
	{ "direct", 0, make_direct },
	{ "chain", 1, make_chain },
};

/* The recipe that @algorithm names, and the channels behind its "*". */
static const struct recipe *find(const char *algorithm, uint32_t *channels)
{
	size_t n = strcspn(algorithm, "*");
	char *end;
	uint32_t i;

	*channels = 1;
	if (algorithm[n]) {
		*channels = (uint32_t)strtoul(algorithm + n + 1, &end, 10);
		if (*end || algorithm[n + 1] < '1' || algorithm[n + 1] > '9' ||
		    *channels > CHANNELS)
			return NULL;
	}
	for (i = 0; i < sizeof(recipes) / sizeof(recipes[0]); i++)
		if (strlen(recipes[i].name) == n &&
		    !memcmp(recipes[i].name, algorithm, n))
			return &recipes[i];
	return NULL;
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
	return b ? gcd(b, a % b) : a;
}

/* The step number @want of those through all ranks; 0: there are fewer. */
static uint32_t stride(uint32_t n, uint32_t want)
{
	uint32_t s;

	for (s = 1; 2 * s < n || s == 1; s++)
		if (gcd(s, n) == 1 && !want--)
			return s;
	return 0;
}

/*
 * Channels differ by how far the next rank is: 1, -1, then other steps that
 * lead through all ranks, in both directions, as far as there are any.
 */
static void permute(struct maker *m)
{
	uint32_t step = stride(m->n, m->channel / 2), i;

	if (!step)
		step = 1;
	if (m->channel % 2)
		step = m->n - step;
	for (i = 0; i < m->n; i++)
		m->rank[i] = (uint32_t)((m->s->root + (uint64_t)i * step) %
					m->n);
}

static int split(struct maker *m)
{
	uint64_t n = (uint64_t)m->parts * m->channels, i, *weights;
	int ret;

	if (n * fxi_schedule_shards(m->s->kind, m->n) > SCHEDULE_CHUNKS)
		return fxi_error(E2BIG, "%s: more than %u chunks", m->s->name,
				 SCHEDULE_CHUNKS);
	weights = malloc(n * sizeof(*weights));
	if (!weights)
		return fxi_error(ENOMEM, "no memory for a schedule");
	for (i = 0; i < n; i++)
		weights[i] = 1;
	ret = fxi_schedule_split(m->s, weights, (uint32_t)n);
	free(weights);
	return ret;
}

static int make(struct maker *m, const struct recipe *recipe)
{
	m->parts = recipe->parts;
	if (!m->parts)
		m->parts = m->s->kind == FABREX_ALL_REDUCE ? m->n : 1;
	m->rank = malloc(m->n * sizeof(*m->rank));
	if (!m->rank)
		return fxi_error(ENOMEM, "no memory for a schedule");
	m->ret = split(m);
	for (; !m->ret && m->channel < m->channels; m->channel++) {
		permute(m);
		recipe->make(m);
	}
	free(m->rank);
	return m->ret ? m->ret : fxi_schedule_check(m->s);
}

static int refuse(const char *algorithm, const struct recipe *recipe,
		  uint32_t kind, uint32_t ranks, uint32_t root)
{
	if (!fxi_schedule_kind_name(kind))
		return fxi_error(EINVAL, "there are no schedules for collectives of kind %u",
				 kind);
	if (!recipe)
		return fxi_error(EINVAL, "no algorithm \"%s\": there are ring, tree, halving, doubling, direct and chain, and with *2 to *%u for channels",
				 algorithm, CHANNELS);
	if (recipe->make == make_tree && kind == FABREX_ALL_TO_ALL)
		return fxi_error(EOPNOTSUPP, "all-to-all does not go along trees: take halving, or direct");
	if (!ranks || ranks > SCHEDULE_RANKS)
		return fxi_error(EINVAL, "a schedule for %u ranks: there may be 1 to %u",
				 ranks, SCHEDULE_RANKS);
	if (root >= ranks)
		return fxi_error(EINVAL, "root %u is no rank of %u", root,
				 ranks);
	return 0;
}

EXPORT int fabrex_schedule_make(enum fabrex_coll_kind kind,
				const char *algorithm, uint32_t ranks,
				uint32_t root,
				struct fabrex_schedule **schedule)
{
	struct maker m = { .n = ranks };
	const struct recipe *recipe = find(algorithm, &m.channels);
	int ret = refuse(algorithm, recipe, kind, ranks, root);

	if (ret)
		return ret;
	m.s = fxi_schedule_new(algorithm);
	if (!m.s)
		return fxi_error(ENOMEM, "no memory for a schedule");
	m.s->kind = kind;
	m.s->ranks = ranks;
	if (fxi_schedule_has_root(kind))
		m.s->root = root;
	ret = make(&m, recipe);
	if (ret) {
		fabrex_schedule_free(m.s);
		return ret;
	}
	*schedule = m.s;
	return 0;
}
