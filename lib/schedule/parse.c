// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads the text of a schedule: docs/schedule.md. Every error names file, line
 * and word; check.c then proves what was read. Public half:
 * fabrex_schedule_parse(3).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/export.h"
#include "schedule/schedule.h"

#define WORD_SHOWN	24u

struct parser {
	const char *at, *end;
	const char *word;	/* that errors show */
	uint32_t line;
	struct fabrex_schedule *schedule;

	/* Weights while they are read. */
	uint64_t *weights;
	uint32_t nweights, weights_room;
	uint32_t shards;	/* that had a line of their own */

	/* Chunks of the statement, and the transfers of its first chunk. */
	struct range { uint32_t first, last; } *ranges;
	uint32_t nranges, ranges_room;
	uint32_t began;		/* its first transfer */
	uint32_t began_line;
	bool reduce, open;	/* open: between [ and ] */
};

/* ---- words ------------------------------------------------------------- */

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* To the next word of this line. False: there is none. */
static bool skip(struct parser *p)
{
	while (p->at < p->end && blank(*p->at))
		p->at++;
	if (p->at < p->end && *p->at == '#')
		while (p->at < p->end && *p->at != '\n')
			p->at++;
	p->word = p->at;
	return p->at < p->end && *p->at != '\n';
}

/* To the next line that has a word. False: the text ends. */
static bool skip_lines(struct parser *p)
{
	while (!skip(p)) {
		if (p->at == p->end)
			return false;
		p->at++;
		p->line++;
	}
	return true;
}

/* The word that is wrong, made printable. */
static const char *word(const struct parser *p, char shown[WORD_SHOWN + 1])
{
	uint32_t n = 0;

	for (; n < WORD_SHOWN && p->word + n < p->end; n++) {
		if (blank(p->word[n]) || p->word[n] == '\n')
			break;
		shown[n] = p->word[n] > ' ' && p->word[n] < 127 ? p->word[n] :
								  '?';
	}
	shown[n] = '\0';
	return n ? shown : "end of line";
}

static int wrong(const struct parser *p, const char *why)
{
	char shown[WORD_SHOWN + 1];

	return fxi_error(EINVAL, "%s:%u: \"%s\": %s", p->schedule->name,
			 p->line, word(p, shown), why);
}

/* A decimal number of at most @max; @at is behind it, or stays on an error. */
static bool number(struct parser *p, uint64_t max, uint64_t *value)
{
	const char *at = p->at;
	uint64_t v = 0;

	if (at == p->end || !digit(*at))
		return false;
	for (; at < p->end && digit(*at); at++) {
		v = v * 10 + (uint64_t)(*at - '0');
		if (v > max)
			return false;
	}
	p->at = at;
	*value = v;
	return true;
}

static bool keyword(struct parser *p, const char *name)
{
	size_t n = strlen(name);

	if ((size_t)(p->end - p->at) < n || memcmp(p->at, name, n))
		return false;
	if (p->at + n < p->end && !blank(p->at[n]) && p->at[n] != '\n')
		return false;
	p->at += n;
	return true;
}

/* A number that the line ends with. */
static int last_number(struct parser *p, uint64_t max, const char *why,
		       uint32_t *value)
{
	uint64_t v;

	skip(p);
	if (!number(p, max, &v))
		return wrong(p, why);
	if (skip(p))
		return wrong(p, "the statement should end before it");
	*value = (uint32_t)v;
	return 0;
}

/* Makes room for another element of an array that doubles. */
static int grow(const struct parser *p, void *array, uint32_t n,
		uint32_t *room, size_t size)
{
	uint32_t more = *room ? *room * 2 : 16;
	void *old, *grown;

	if (n < *room)
		return 0;
	memcpy(&old, array, sizeof(old));
	grown = realloc(old, more * size);
	if (!grown)
		return fxi_error(ENOMEM, "%s:%u: no memory", p->schedule->name,
				 p->line);
	memcpy(array, &grown, sizeof(grown));
	*room = more;
	return 0;
}

/* ---- head -------------------------------------------------------------- */

static int parse_version(struct parser *p)
{
	uint32_t version;
	int ret;

	if (!skip_lines(p) || !keyword(p, "fabrex-schedule"))
		return wrong(p, "a schedule begins with \"fabrex-schedule 1\"");
	ret = last_number(p, UINT32_MAX, "should be the version, 1", &version);
	if (!ret && version != 1)
		return fxi_error(EINVAL,
				 "%s:%u: version %u: this library reads version 1",
				 p->schedule->name, p->line, version);
	return ret;
}

static int parse_kind(struct parser *p)
{
	uint32_t kind;

	if (!skip_lines(p) || !keyword(p, "collective"))
		return wrong(p, "should be \"collective\", the second statement");
	skip(p);
	for (kind = FABREX_ALL_REDUCE; kind <= FABREX_ALL_TO_ALL; kind++)
		if (keyword(p, fxi_schedule_kind_name(kind)))
			break;
	if (kind > FABREX_ALL_TO_ALL)
		return wrong(p, "should be all-reduce, all-gather, reduce-scatter, broadcast, reduce or all-to-all");
	p->schedule->kind = kind;
	return skip(p) ? wrong(p, "the statement should end before it") : 0;
}

static int parse_ranks(struct parser *p)
{
	struct fabrex_schedule *s = p->schedule;
	int ret;

	if (!skip_lines(p) || !keyword(p, "ranks"))
		return wrong(p, "should be \"ranks\", the third statement");
	ret = last_number(p, SCHEDULE_RANKS,
			  "should be the number of ranks, 1 to 4096",
			  &s->ranks);
	if (!ret && !s->ranks)
		return wrong(p, "there is at least 1 rank");
	if (!ret && fxi_schedule_shards(s->kind, s->ranks) > SCHEDULE_CHUNKS)
		return wrong(p, "so many ranks have more pairs than a schedule may have chunks");
	return ret;
}

static int parse_root(struct parser *p)
{
	struct fabrex_schedule *s = p->schedule;

	if (!fxi_schedule_has_root(s->kind))
		return 0;
	if (!skip_lines(p) || !keyword(p, "root"))
		return wrong(p, "should be \"root\", after \"ranks\"");
	return last_number(p, s->ranks - 1,
			   "should be the root, a rank from 0", &s->root);
}

/* ---- chunks ------------------------------------------------------------ */

/* W or WxN. */
static int parse_weight(struct parser *p, uint32_t most)
{
	uint64_t weight, times = 1, i;
	int ret;

	if (!number(p, SCHEDULE_WEIGHT, &weight) || !weight)
		return wrong(p, "should be a weight, 1 to 4294967295");
	if (p->at < p->end && *p->at == 'x') {
		p->at++;
		if (!number(p, SCHEDULE_CHUNKS, &times) || !times)
			return wrong(p, "should be how many of that weight");
	}
	if (p->at < p->end && !blank(*p->at) && *p->at != '\n' &&
	    *p->at != '#')
		return wrong(p, "should be a weight, as 3 or 3x16");
	if (times > most - p->nweights)
		return fxi_error(EINVAL, "%s:%u: more than %u chunks",
				 p->schedule->name, p->line, SCHEDULE_CHUNKS);
	for (i = 0; i < times; i++) {
		ret = grow(p, &p->weights, p->nweights, &p->weights_room,
			   sizeof(*p->weights));
		if (ret)
			return ret;
		p->weights[p->nweights++] = weight;
	}
	return 0;
}

static int parse_split(struct parser *p)
{
	struct fabrex_schedule *s = p->schedule;
	uint32_t most = SCHEDULE_CHUNKS /
		(uint32_t)fxi_schedule_shards(s->kind, s->ranks);
	int ret;

	if (p->shards || p->nweights)
		return wrong(p, "the buffer is split already, above");
	if (!skip(p))
		return wrong(p, "should be weights, as \"split 3 1 1\"");
	do {
		ret = parse_weight(p, most);
		if (ret)
			return ret;
	} while (skip(p));
	return fxi_schedule_split(s, p->weights, p->nweights);
}

/* Weights of all shards end up in one array, and become sums in the end. */
static int parse_shard(struct parser *p)
{
	struct fabrex_schedule *s = p->schedule;
	uint64_t shard;
	int ret;

	if (s->kind != FABREX_ALL_GATHER && s->kind != FABREX_REDUCE_SCATTER)
		return wrong(p, "only all-gather and reduce-scatter have shards to split one by one");
	if (p->nweights && !p->shards)
		return wrong(p, "the buffer is split already, above");
	skip(p);
	if (!number(p, s->ranks - 1, &shard) || shard != p->shards)
		return wrong(p, "shards come in order, from 0 to the last rank");
	if (!s->first)
		s->first = calloc(s->ranks + 1, sizeof(*s->first));
	if (!s->first)
		return fxi_error(ENOMEM, "%s: no memory for shards", s->name);
	if (!skip(p))
		return wrong(p, "should be weights, as \"shard 0 3 1\"");
	do {
		ret = parse_weight(p, SCHEDULE_CHUNKS);
		if (ret)
			return ret;
	} while (skip(p));
	s->first[++p->shards] = p->nweights;
	return 0;
}

static int finish_shards(struct parser *p)
{
	struct fabrex_schedule *s = p->schedule;
	uint32_t i, shard;

	if (p->shards != s->ranks)
		return wrong(p, "every shard needs its line before this");
	for (shard = 0; shard < s->ranks; shard++)
		for (i = s->first[shard] + 1; i < s->first[shard + 1]; i++)
			p->weights[i] += p->weights[i - 1];
	s->ends = p->weights;
	p->weights = NULL;
	s->nshards = s->ranks;
	s->nchunks = p->nweights;
	return 0;
}

/* Before the first transfer. */
static int finish_chunks(struct parser *p)
{
	const uint64_t one = 1;

	if (p->schedule->nchunks)
		return 0;
	if (p->shards)
		return finish_shards(p);
	return fxi_schedule_split(p->schedule, &one, 1);
}

/* ---- transfers --------------------------------------------------------- */

static int parse_chunk(struct parser *p, uint32_t *chunk)
{
	uint64_t v;

	if (!number(p, SCHEDULE_CHUNKS, &v))
		return wrong(p, "should be a chunk, as 3, 0-7 or 0-3,8");
	if (v >= p->schedule->nchunks)
		return fxi_error(EINVAL, "%s:%u: there is no chunk %u: they are 0 to %u",
				 p->schedule->name, p->line, (uint32_t)v,
				 p->schedule->nchunks - 1);
	*chunk = (uint32_t)v;
	return 0;
}

static int parse_range(struct parser *p)
{
	struct range *range;
	int ret;

	ret = grow(p, &p->ranges, p->nranges, &p->ranges_room,
		   sizeof(*p->ranges));
	if (ret)
		return ret;
	range = &p->ranges[p->nranges++];
	ret = parse_chunk(p, &range->first);
	range->last = range->first;
	if (!ret && p->at < p->end && *p->at == '-') {
		p->at++;
		ret = parse_chunk(p, &range->last);
		if (!ret && range->last < range->first)
			return wrong(p, "the range of chunks before this ends before it begins");
	}
	return ret;
}

static int parse_ranges(struct parser *p)
{
	int ret;

	p->nranges = 0;
	skip(p);
	ret = parse_range(p);
	while (!ret && p->at < p->end && *p->at == ',') {
		p->at++;
		ret = parse_range(p);
	}
	if (!ret && p->at < p->end && !blank(*p->at) && *p->at != '\n')
		ret = wrong(p, "should be a blank after the chunks");
	return ret;
}

static int parse_rank(struct parser *p, uint32_t *rank)
{
	uint64_t v;

	if (!number(p, UINT32_MAX, &v))
		return wrong(p, "should be a rank, in a path as 0>1>2");
	if (v >= p->schedule->ranks)
		return fxi_error(EINVAL, "%s:%u: there is no rank %llu: they are 0 to %u",
				 p->schedule->name, p->line,
				 (unsigned long long)v,
				 p->schedule->ranks - 1);
	*rank = (uint32_t)v;
	return 0;
}

/* 0>1>2: each hop a transfer of the first chunk. */
static int parse_path(struct parser *p, bool *joined)
{
	struct transfer t = { .chunk = p->ranges[0].first, .line = p->line };
	uint32_t from, to;
	int ret = parse_rank(p, &from);

	if (!ret && (p->at == p->end || *p->at != '>'))
		return wrong(p, "should be \">\" and the next rank of the path");
	while (!ret && p->at < p->end && *p->at == '>') {
		p->at++;
		ret = parse_rank(p, &to);
		if (ret)
			return ret;
		if (from == to)
			return fxi_error(EINVAL, "%s:%u: rank %u sends to itself",
					 p->schedule->name, p->line, from);
		t.from = (uint16_t)from;
		t.to = (uint16_t)to;
		t.flags = (p->reduce ? TRANSFER_REDUCE : 0) |
			  (*joined ? TRANSFER_JOINED : 0);
		*joined = p->open;
		ret = fxi_schedule_add(p->schedule, t);
		from = to;
	}
	return ret;
}

/* Paths, and [paths] which happen at once, to the end of the line. */
static int parse_paths(struct parser *p)
{
	bool joined = false;
	int ret = 0;

	while (!ret && skip(p)) {
		if (*p->at == '[') {
			if (p->open)
				return wrong(p, "brackets cannot be nested");
			p->open = true;
			p->at++;
			joined = false;
		} else if (*p->at == ']') {
			if (!p->open)
				return wrong(p, "there is no [ to this");
			p->open = false;
			p->at++;
			joined = false;
		} else {
			ret = parse_path(p, &joined);
		}
	}
	if (!ret && p->open)
		ret = wrong(p, "the [ in this line needs its ]");
	return ret;
}

/* The same transfers for the other chunks of the statement. */
static int repeat(struct parser *p)
{
	struct fabrex_schedule *s = p->schedule;
	uint32_t end = s->ntransfers, i, j, chunk;
	int ret;

	if (p->nranges && p->began == end)
		return fxi_error(EINVAL, "%s:%u: the statement has no path, as 0>1",
				 s->name, p->began_line);
	for (i = 0; i < p->nranges; i++) {
		chunk = p->ranges[i].first + !i;
		for (; chunk <= p->ranges[i].last; chunk++) {
			for (j = p->began; j < end; j++) {
				struct transfer t = s->transfers[j];

				t.chunk = chunk;
				ret = fxi_schedule_add(s, t);
				if (ret)
					return ret;
			}
		}
	}
	p->nranges = 0;
	return 0;
}

static int parse_transfers(struct parser *p, bool reduce)
{
	int ret = finish_chunks(p);

	if (!ret && reduce && !fxi_schedule_reduces(p->schedule->kind))
		return fxi_error(EINVAL, "%s:%u: nothing is reduced in %s",
				 p->schedule->name, p->line,
				 fxi_schedule_kind_name(p->schedule->kind));
	if (!ret)
		ret = parse_ranges(p);
	if (ret)
		return ret;
	p->reduce = reduce;
	p->began = p->schedule->ntransfers;
	p->began_line = p->line;
	return parse_paths(p);
}

/* ---- all of it --------------------------------------------------------- */

/* A line that begins with a path goes on with the statement above. */
static int parse_statement(struct parser *p)
{
	int ret;

	if (p->nranges && (digit(*p->at) || *p->at == '['))
		return parse_paths(p);
	ret = repeat(p);
	if (ret)
		return ret;
	if (keyword(p, "copy"))
		return parse_transfers(p, false);
	if (keyword(p, "reduce"))
		return parse_transfers(p, true);
	if (p->schedule->nchunks &&
	    (p->schedule->ntransfers || !p->nweights))
		return wrong(p, "should be \"copy\" or \"reduce\"");
	if (keyword(p, "split"))
		return parse_split(p);
	if (keyword(p, "shard"))
		return parse_shard(p);
	return wrong(p, "should be \"split\", \"shard\", \"copy\" or \"reduce\"");
}

static int parse(struct parser *p)
{
	int ret = parse_version(p);

	if (!ret)
		ret = parse_kind(p);
	if (!ret)
		ret = parse_ranks(p);
	if (!ret)
		ret = parse_root(p);
	while (!ret && skip_lines(p))
		ret = parse_statement(p);
	if (!ret)
		ret = finish_chunks(p);
	return ret ? ret : repeat(p);
}

EXPORT int fabrex_schedule_parse(const char *text, size_t length,
				 const char *name,
				 struct fabrex_schedule **schedule)
{
	struct parser p = { .at = text, .end = text + length, .line = 1 };
	int ret;

	p.schedule = fxi_schedule_new(name ? name : "schedule");
	if (!p.schedule)
		return fxi_error(ENOMEM, "no memory for a schedule");
	ret = parse(&p);
	free(p.weights);
	free(p.ranges);
	if (!ret)
		ret = fxi_schedule_check(p.schedule);
	if (ret) {
		fabrex_schedule_free(p.schedule);
		return ret;
	}
	*schedule = p.schedule;
	return 0;
}

/* All of it, in memory that the caller frees. */
static int read_text(int fd, const char *path, size_t size, char **text)
{
	size_t got = 0;
	ssize_t n = 1;

	*text = malloc(size);
	if (!*text)
		return fxi_error(ENOMEM, "no memory for %s", path);
	while (n > 0 && got < size) {
		n = read(fd, *text + got, size - got);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			got += (size_t)n;
	}
	if (got == size)
		return 0;
	free(*text);
	return fxi_error(n < 0 ? errno : EIO, "cannot read %s: %s", path,
			 n < 0 ? fxi_errno_str(errno) : "it is cut short");
}

static int read_from(int fd, const char *path,
		     struct fabrex_schedule **schedule)
{
	struct stat st;
	char *text;
	int ret;

	if (fstat(fd, &st))
		return fxi_error(errno, "cannot look at %s: %s", path,
				 fxi_errno_str(errno));
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return fxi_error(EINVAL, "%s: not a file that holds a schedule",
				 path);
	ret = read_text(fd, path, (size_t)st.st_size, &text);
	if (ret)
		return ret;
	ret = fabrex_schedule_parse(text, (size_t)st.st_size, path, schedule);
	free(text);
	return ret;
}

EXPORT int fabrex_schedule_read(const char *path,
				struct fabrex_schedule **schedule)
{
	NO_CANCEL();
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return fxi_error(errno, "cannot open %s: %s", path,
				 fxi_errno_str(errno));
	ret = read_from(fd, path, schedule);
	close(fd);
	return ret;
}
