// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures the plan: for each row all contenders in turn, again and again, so
 * that whatever else the machine does meets all of them alike. How many
 * iterations make a sample is found out for each of them before.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"

#define ENOUGH_S	0.004	/* to judge how long one iteration takes */
#define MAX_TRIES	16

static const struct contender *const contenders[] = {
	&cmp_ours, &cmp_mpi, &cmp_mpich, &cmp_ucc, &cmp_gloo, &cmp_ucx,
	&cmp_libfabric, &cmp_tcp, &cmp_memcpy, &cmp_line, &cmp_bound,
};
#define NCONTENDERS	(sizeof(contenders) / sizeof(*contenders))

struct state {
	struct comparison *c;
	uint32_t ranks;
	void *state[C_IDS];
	uint64_t iterations[MAX_PEERS];
};

const struct contender *cmp_contender(enum contender_id id)
{
	size_t i;

	for (i = 0; i < NCONTENDERS; i++)
		if (contenders[i]->id == id)
			return contenders[i];
	return NULL;
}

const char *cmp_name(enum contender_id id)
{
	const struct contender *k = cmp_contender(id);

	return k ? k->name : "limit";
}

const char *cmp_word(enum contender_id id)
{
	const struct contender *k = cmp_contender(id);

	return k ? k->word : "limit";
}

const struct contender *cmp_find(const char *word)
{
	size_t i;

	for (i = 0; i < NCONTENDERS; i++)
		if (!strcmp(contenders[i]->word, word))
			return contenders[i];
	return NULL;
}

static void progress(const struct state *s, const struct row *row,
		     const char *name, uint32_t repetition)
{
	char size[SIZE_STR];

	if (s->c->o.quiet || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r%ld of %u: %s %s, %u ranks: %u of %u, %s\033[K",
		(long)(row - s->c->rows) + 1, s->c->nrows, row->what,
		size_str(row->bytes, size), row->ranks, repetition,
		s->c->o.repetitions, name);
}

static void progress_clear(const struct state *s)
{
	if (!s->c->o.quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}

/* Who shares another's processes has no open(). */
static void *state_of(const struct state *s, const struct contender *k)
{
	return s->state[k->open ? k->id : k->shares];
}

static int measure(struct state *s, struct row *row, uint32_t who,
		   uint64_t iterations, double *seconds)
{
	struct against *a = &row->who[who];
	const struct contender *k = cmp_contender(a->id);
	void *state = state_of(s, k);
	int ret;

	if (!state) {
		snprintf(a->why, sizeof(a->why), "%s", s->c->version[a->id]);
		return -ENOENT;
	}
	ret = k->measure(state, row, iterations / 10 + 1, iterations, seconds,
			 a->why, sizeof(a->why));
	if (!ret && *seconds <= 0) {
		snprintf(a->why, sizeof(a->why), "the clock did not move");
		ret = -ERANGE;
	}
	return ret;
}

static int prepare(struct state *s, const struct row *row, struct against *a)
{
	const struct contender *k = cmp_contender(a->id);
	void *state = state_of(s, k);

	return state && k->prepare ? k->prepare(state, row, a) : 0;
}

/* Iterations of a sample; 0: it cannot take part. */
static uint64_t calibrate(struct state *s, struct row *row, uint32_t who)
{
	uint64_t n = cmp_contender(row->who[who].id)->first;
	double seconds, wanted;
	unsigned int i;

	if (prepare(s, row, &row->who[who]))
		return 0;
	for (i = 0; i < MAX_TRIES; i++, n *= 4) {
		if (interrupted || measure(s, row, who, n, &seconds))
			return 0;
		if (seconds * (double)n >= ENOUGH_S)
			break;
	}
	wanted = s->c->o.seconds / seconds;
	return wanted < 2 ? 2 : wanted > 1e9 ? 1000000000u : (uint64_t)wanted;
}

static void sample(struct state *s, struct row *row, uint32_t who)
{
	struct against *a = &row->who[who];
	double seconds;

	if (!s->iterations[who])
		return;
	if (measure(s, row, who, s->iterations[who], &seconds)) {
		s->iterations[who] = 0;
		a->n = 0;
		return;
	}
	a->seconds[a->n++] = seconds;
}

static void run_row(struct state *s, struct row *row)
{
	uint32_t i, who;

	for (who = 0; who < row->nwho; who++) {
		progress(s, row, "calibration", 0);
		s->iterations[who] = calibrate(s, row, who);
	}
	for (i = 0; i < s->c->o.repetitions; i++)
		for (who = 0; who < row->nwho && !interrupted; who++) {
			progress(s, row, cmp_contender(row->who[who].id)->name,
				 i + 1);
			sample(s, row, who);
		}
}

static bool takes_part(const struct state *s, enum contender_id id)
{
	const struct comparison *c = s->c;
	uint32_t i, who;

	for (i = 0; i < c->nrows; i++)
		for (who = 0; who < c->rows[i].nwho; who++)
			if (c->rows[i].ranks == s->ranks &&
			    (c->rows[i].who[who].id == id ||
			     cmp_contender(c->rows[i].who[who].id)->shares ==
			     id))
				return true;
	return false;
}

static void open_all(struct state *s)
{
	char version[232], why[232];
	size_t i;

	for (i = 0; i < NCONTENDERS; i++) {
		const struct contender *k = contenders[i];

		if (!k->open || !takes_part(s, k->id) || interrupted)
			continue;
		version[0] = why[0] = 0;
		s->state[k->id] = k->open(s->c, s->ranks, version, why,
					  sizeof(why));
		memcpy(s->c->version[k->id], s->state[k->id] ? version : why,
		       sizeof(version));
		s->c->missing[k->id] = !s->state[k->id];
	}
}

static void close_all(struct state *s)
{
	size_t i;

	for (i = 0; i < NCONTENDERS; i++)
		if (contenders[i]->open && s->state[contenders[i]->id])
			contenders[i]->close(s->state[contenders[i]->id]);
}

static void run_ranks(struct comparison *c, uint32_t ranks)
{
	struct state s = { .c = c, .ranks = ranks };
	uint32_t i;

	open_all(&s);
	for (i = 0; i < c->nrows && !interrupted; i++)
		if (c->rows[i].ranks == ranks)
			run_row(&s, &c->rows[i]);
	progress_clear(&s);
	close_all(&s);
}

int cmp_run(struct comparison *c)
{
	struct quiet quiet;
	uint32_t r;

	cmp_quiet_begin(&quiet);
	for (r = 0; r < c->o.nranks; r++)
		run_ranks(c, c->o.ranks[r]);
	cmp_quiet_end(&quiet, c);
	return interrupted ? EXIT_INTERRUPTED : 0;
}
