// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Chooses the algorithm of a collective: by rules of kind and size, first those
 * of attr.algorithms or $FABREX_ALGORITHMS, then those below, which are also of
 * the number of ranks. The grammar is in fabrex_coll(7). Called by progress.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "coll/algorithm/algorithm.h"
#include "coll/coll.h"
#include "schedule/schedule.h"

#define NAME		24u
#define ALL_KINDS	0u	/* rule->kind */

struct rule {
	uint32_t kind;		/* or ALL_KINDS */
	char name[NAME];
	uint64_t least, most;	/* bytes */
	uint32_t ranks;		/* at most; 0: any number */
};

/* A schedule that the library has made, when it was first needed. */
struct made {
	struct made *next;
	const struct rule *rule;
	uint32_t kind, root;
	struct fabrex_schedule *schedule; /* NULL: there is none */
};

struct table {
	struct rule *rules;	/* the text's */
	uint32_t nrules;
	struct made *made;
};

static const struct algorithm *const algorithms[] = {
	&fxi_flat, &fxi_bruck, &fxi_zero_copy, &fxi_staged, &fxi_flatv,
};

#define ALGORITHMS	(sizeof(algorithms) / sizeof(*algorithms))

/*
 * Measured on two processors of one machine: docs/benchmarks.md, "Many ranks".
 * The first that fits is taken: those for few ranks come first.
 */
static const struct rule near_rules[] = {
	{ ALL_KINDS, "flat", 0, 1 << 10, 2 },
	{ ALL_KINDS, "direct", 0, UINT64_MAX, 2 },
	{ FABREX_BROADCAST, "flat", 0, 16 << 10, 8 },
	{ ALL_KINDS, "flat", 0, 8 << 10, 8 },
	{ ALL_KINDS, "direct", 0, UINT64_MAX, 8 },
	{ FABREX_ALL_REDUCE, "bruck", 0, 256, SHARE_MANY - 1 },
	{ FABREX_ALL_REDUCE, "doubling", 0, 8 << 10, SHARE_MANY - 1 },
	{ FABREX_ALL_REDUCE, "direct", 0, UINT64_MAX, SHARE_MANY - 1 },
	{ FABREX_ALL_REDUCE, "staged", 0, 64 << 10, 0 },
	{ FABREX_ALL_GATHER, "bruck", 0, 32 << 10, 0 },
	{ FABREX_BROADCAST, "flat", 0, 64 << 10, 0 },
	{ FABREX_REDUCE, "halving", 0, 64 << 10, 0 },
	{ ALL_KINDS, "flat", 0, 8 << 10, 0 },
	{ ALL_KINDS, "direct", 0, UINT64_MAX, 0 },
	{ ALL_KINDS, "flat", 0, UINT64_MAX, 64 },
	{ FABREX_ALL_REDUCE, "tree", 0, 64 << 10, 0 },
	{ FABREX_ALL_REDUCE, "ring", 0, UINT64_MAX, 0 },
	{ FABREX_REDUCE_SCATTER, "ring", 0, UINT64_MAX, 0 },
	{ FABREX_REDUCE, "tree", 0, UINT64_MAX, 0 },
	{ ALL_KINDS, "flat", 0, UINT64_MAX, 0 },
	{ ALL_KINDS, "tree", 0, 64 << 10, 0 },
	{ ALL_KINDS, "ring", 0, UINT64_MAX, 0 },
	{ ALL_KINDS, "tree", 0, UINT64_MAX, 0 },
};

/*
 * From GPU to GPU of a host, in place of "direct": copies and kernels take long
 * to begin. Measured: docs/gpu-real.md.
 */
static const struct rule gpu_rules[] = {
	{ FABREX_ALL_REDUCE, "ring", 64 << 10, UINT64_MAX, 2 },
	{ FABREX_ALL_REDUCE, "ring", 128 << 10, UINT64_MAX, 0 },
	{ FABREX_ALL_GATHER, "ring", 64 << 10, UINT64_MAX, 0 },
	{ FABREX_REDUCE_SCATTER, "ring", 64 << 10, UINT64_MAX, 0 },
	{ FABREX_BROADCAST, "tree", 64 << 10, UINT64_MAX, 0 },
	{ FABREX_REDUCE, "tree", 64 << 10, UINT64_MAX, 0 },
};

static const struct rule far_rules[] = {
	{ FABREX_ALL_REDUCE, "flat", 0, 4 << 10, 64 },
	{ FABREX_ALL_REDUCE, "halving", 0, 512 << 10, 0 },
	{ FABREX_ALL_REDUCE, "ring*2", 0, UINT64_MAX, 0 },
	{ FABREX_ALL_GATHER, "flat", 0, 32 << 10, 0 },
	{ FABREX_ALL_GATHER, "ring*2", 0, UINT64_MAX, 0 },
	{ FABREX_REDUCE_SCATTER, "flat", 0, 32 << 10, 64 },
	{ FABREX_REDUCE_SCATTER, "ring*2", 0, UINT64_MAX, 0 },
	{ FABREX_BROADCAST, "flat", 0, 8 << 10, 0 },
	{ FABREX_BROADCAST, "tree*2", 0, UINT64_MAX, 0 },
	{ FABREX_REDUCE, "flat", 0, 8 << 10, 64 },
	{ FABREX_REDUCE, "tree*2", 0, UINT64_MAX, 0 },
	{ ALL_KINDS, "flat", 0, UINT64_MAX, 0 },
	{ ALL_KINDS, "tree", 0, 64 << 10, 0 },
	{ ALL_KINDS, "ring", 0, UINT64_MAX, 0 },
	{ ALL_KINDS, "tree", 0, UINT64_MAX, 0 },
};

static const struct algorithm *named(const char *name)
{
	size_t i;

	for (i = 0; i < ALGORITHMS; i++)
		if (!strcmp(algorithms[i]->name, name))
			return algorithms[i];
	return NULL;
}

/* ---- reading the text -------------------------------------------------- */

struct reader {
	const char *text, *at;
	uint32_t ranks;
};

static int wrong(const struct reader *r, const char *at, const char *what)
{
	return fxi_error(EINVAL, "algorithms: character %zu, at \"%.20s\": %s; write for example all_reduce:-4K=flat,4K-=direct;broadcast:64K-=tree*2",
			 (size_t)(at - r->text) + 1, at, what);
}

/* Letters, digits, '_' and '*'; its length. */
static size_t word_length(const char *at)
{
	return strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_*");
}

/* The name of a kind, as rules have it: all_reduce for all-reduce. */
static bool is_kind(const char *at, size_t n, uint32_t kind)
{
	const char *name = kind == ALL_KINDS ? "all" : fxi_kind_name(kind);
	size_t i;

	for (i = 0; i < n && name[i]; i++)
		if (at[i] != (name[i] == '-' ? '_' : name[i]))
			return false;
	return i == n && !name[i];
}

static int read_kind(struct reader *r, uint32_t *kind)
{
	size_t n = word_length(r->at);

	_Static_assert(FABREX_ALL_REDUCE == ALL_KINDS + 1, "all, then kinds");
	for (*kind = ALL_KINDS; *kind <= FABREX_BARRIER; ++*kind)
		if (is_kind(r->at, n, *kind))
			break;
	if (*kind > FABREX_BARRIER)
		return wrong(r, r->at, "a collective has to be here, such as all_reduce, or all");
	r->at += n;
	if (*r->at != ':')
		return wrong(r, r->at, "':' has to be behind the collective");
	r->at++;
	return 0;
}

static int read_size(struct reader *r, uint64_t *size)
{
	static const char units[] = "KMG";
	const char *start = r->at, *unit;
	char *end;

	errno = 0;
	*size = strtoull(r->at, &end, 10);
	r->at = end;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		if (*size > UINT64_MAX >> 10 * (unit - units + 1))
			errno = ERANGE;
		*size <<= 10 * (unit - units + 1);
		r->at++;
	}
	return errno ? wrong(r, start, "the size is too large") : 0;
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "4K-64K=", "-64K=", "4K-=", or nothing: all sizes. */
static int read_range(struct reader *r, struct rule *rule)
{
	const char *start = r->at;
	int ret = 0;

	rule->least = 0;
	rule->most = UINT64_MAX;
	if (!digit(*r->at) && *r->at != '-')
		return 0;
	if (digit(*r->at))
		ret = read_size(r, &rule->least);
	if (ret)
		return ret;
	if (*r->at != '-')
		return wrong(r, r->at, "'-' has to be between the sizes of a range");
	r->at++;
	if (digit(*r->at))
		ret = read_size(r, &rule->most);
	if (ret)
		return ret;
	if (rule->least > rule->most)
		return wrong(r, start, "the range ends before it begins");
	if (*r->at != '=')
		return wrong(r, r->at, "'=' has to be behind the range");
	r->at++;
	return 0;
}

/* Can a schedule of that name be made for any kind that the rule covers? */
static bool can_make(const struct reader *r, const struct rule *rule)
{
	struct fabrex_schedule *schedule;
	uint32_t kind;

	for (kind = FABREX_ALL_REDUCE; kind < FABREX_BARRIER; kind++) {
		if (rule->kind != ALL_KINDS && rule->kind != kind)
			continue;
		if (fabrex_schedule_make(kind, rule->name,
					 r->ranks > 1 ? r->ranks : 2, 0,
					 &schedule))
			continue;
		fabrex_schedule_free(schedule);
		return true;
	}
	return false;
}

static bool can_do(const struct reader *r, const struct rule *rule)
{
	const struct algorithm *algorithm = named(rule->name);

	if (!algorithm)
		return can_make(r, rule);
	return rule->kind == ALL_KINDS || algorithm->kinds >> rule->kind & 1;
}

static int read_name(struct reader *r, struct rule *rule)
{
	size_t n = word_length(r->at);

	if (!n || n >= NAME)
		return wrong(r, r->at, "the name of an algorithm has to be here");
	memcpy(rule->name, r->at, n);
	rule->name[n] = 0;
	if (!can_do(r, rule))
		return wrong(r, r->at, "there is no such algorithm for this collective");
	r->at += n;
	if (*r->at && *r->at != ',' && *r->at != ';')
		return wrong(r, r->at, "',' or ';' has to be behind an algorithm");
	return 0;
}

static int add_rule(struct table *table, const struct rule *rule)
{
	struct rule *rules = realloc(table->rules,
				     (table->nrules + 1) * sizeof(*rules));

	if (!rules)
		return fxi_error(ENOMEM, "algorithms: out of memory");
	rules[table->nrules++] = *rule;
	table->rules = rules;
	return 0;
}

/* "kind:" is read; the choices behind it. */
static int read_choices(struct reader *r, struct table *table, uint32_t kind)
{
	struct rule rule;
	int ret;

	do {
		memset(&rule, 0, sizeof(rule));
		rule.kind = kind;
		ret = read_range(r, &rule);
		if (!ret)
			ret = read_name(r, &rule);
		if (!ret)
			ret = add_rule(table, &rule);
	} while (!ret && *r->at == ',' && r->at++);
	return ret;
}

static int read_all(struct reader *r, struct table *table)
{
	uint32_t kind;
	int ret = 0;

	while (!ret && *r->at) {
		ret = read_kind(r, &kind);
		if (!ret)
			ret = read_choices(r, table, kind);
		if (!ret && *r->at == ';')
			r->at++;
	}
	return ret;
}

int fxi_table_make(struct fabrex_comm *comm, const char *text)
{
	struct reader reader = {
		.text = text, .at = text, .ranks = comm->size,
	};
	int ret = 0;
	size_t i;

	comm->table = calloc(1, sizeof(*comm->table));
	if (!comm->table)
		return fxi_error(ENOMEM, "communicator: out of memory");
	if (text)
		ret = read_all(&reader, comm->table);
	for (i = 0; i < ALGORITHMS && !ret; i++)
		if (algorithms[i]->make)
			ret = algorithms[i]->make(comm);
	return ret;
}

void fxi_table_free(struct fabrex_comm *comm)
{
	struct table *table = comm->table;
	struct made *made;
	size_t i;

	for (i = 0; i < ALGORITHMS; i++)
		if (algorithms[i]->free)
			algorithms[i]->free(comm);
	if (!table)
		return;
	while ((made = table->made)) {
		table->made = made->next;
		fabrex_schedule_free(made->schedule);
		free(made);
	}
	free(table->rules);
	free(table);
	comm->table = NULL;
}

/* ---- choosing ---------------------------------------------------------- */

/* Without a schedule the rule is skipped, at all ranks alike. */
static struct made *make(struct fabrex_comm *comm, const struct rule *rule,
			 const struct fabrex_collective *what)
{
	struct made *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->rule = rule;
	made->kind = what->kind;
	made->root = what->root;
	if (fabrex_schedule_make(what->kind, rule->name, comm->size,
				 what->root, &made->schedule))
		made->schedule = NULL;
	made->next = comm->table->made;
	comm->table->made = made;
	return made;
}

static const struct fabrex_schedule *
schedule_of(struct fabrex_comm *comm, const struct rule *rule,
	    const struct fabrex_collective *what)
{
	struct made *made = comm->table->made;

	while (made && (made->rule != rule || made->kind != what->kind ||
			made->root != what->root))
		made = made->next;
	if (!made)
		made = make(comm, rule, what);
	return made ? made->schedule : NULL;
}

static const struct algorithm *
follow(struct fabrex_comm *comm, const struct rule *rules, uint32_t n,
       const struct fabrex_collective *what,
       const struct fabrex_schedule **schedule, const struct rule **which)
{
	const struct algorithm *algorithm;
	uint64_t bytes = fxi_coll_bytes(comm, what);
	const struct rule *rule;

	for (rule = rules; rule < rules + n; rule++) {
		if ((rule->kind != ALL_KINDS && rule->kind != what->kind) ||
		    bytes < rule->least || bytes > rule->most ||
		    (rule->ranks && comm->size > rule->ranks))
			continue;
		algorithm = named(rule->name);
		*which = rule;
		if (algorithm && algorithm->kinds >> what->kind & 1 &&
		    (!algorithm->usable || algorithm->usable(comm, what)))
			return algorithm;
		if (algorithm || what->kind == FABREX_BARRIER)
			continue;
		*schedule = schedule_of(comm, rule, what);
		if (*schedule)
			return &fxi_scheduled;
	}
	return NULL;
}

static const struct algorithm *
choose(struct fabrex_comm *comm, const struct fabrex_collective *what,
       const struct fabrex_schedule **schedule, const struct rule **which)
{
	const struct algorithm *algorithm;
	const struct table *t = comm->table;

	/* Their sizes differ between ranks, so rules of sizes cannot apply. */
	if (fxi_kind_varies(what->kind)) {
		*which = NULL;
		return &fxi_flatv;
	}
	algorithm = follow(comm, t->rules, t->nrules, what, schedule, which);
	if (!algorithm && comm->coherent)
		algorithm = follow(comm, near_rules,
				   sizeof(near_rules) / sizeof(*near_rules),
				   what, schedule, which);
	if (!algorithm && !comm->coherent)
		algorithm = follow(comm, far_rules,
				   sizeof(far_rules) / sizeof(*far_rules),
				   what, schedule, which);
	return algorithm ? algorithm : &fxi_flat;
}

const struct fabrex_schedule *
fxi_table_choose_gpus(struct fabrex_comm *comm,
		      const struct fabrex_collective *what)
{
	const struct fabrex_schedule *schedule = NULL;
	const struct table *t = comm->table;
	const struct rule *which;

	/* Who has asked for direct gets its order of reductions. */
	if (follow(comm, t->rules, t->nrules, what, &schedule, &which))
		return NULL;
	follow(comm, gpu_rules, sizeof(gpu_rules) / sizeof(*gpu_rules), what,
	       &schedule, &which);
	return schedule;
}

/* The user's, if it is for that root. */
static const struct fabrex_schedule *
user_schedule(const struct fabrex_comm *comm,
	      const struct fabrex_collective *what)
{
	const struct fabrex_schedule *schedule = comm->schedules[what->kind];

	if (!schedule || (fxi_schedule_has_root(what->kind) &&
			  schedule->root != what->root))
		return NULL;
	return schedule;
}

const struct algorithm *
fxi_table_choose(struct fabrex_comm *comm,
		 const struct fabrex_collective *what,
		 const struct fabrex_schedule **schedule)
{
	const struct rule *which;

	*schedule = user_schedule(comm, what);
	if (unlikely(*schedule))
		return &fxi_scheduled;
	return choose(comm, what, schedule, &which);
}

/* ---- saying which ------------------------------------------------------ */

/* By that rule, or without one. */
static const char *chosen(struct fabrex_comm *comm,
			  const struct fabrex_collective *what,
			  const struct rule **which)
{
	const struct fabrex_schedule *schedule = NULL;

	*which = NULL;
	return choose(comm, what, &schedule, which) && *which ?
	       (*which)->name : "flat";
}

static const char *origin(const struct fabrex_comm *comm,
			  const struct rule *rule)
{
	const struct table *t = comm->table;

	if (rule >= t->rules && rule < t->rules + t->nrules)
		return "of FABREX_ALGORITHMS or the attributes";
	return comm->coherent ? "built in for memory that is mapped" :
				"built in for memory that is reached by DMA";
}

void fxi_table_say(const struct fabrex_coll *coll)
{
	const struct fabrex_schedule *user = user_schedule(coll->comm,
							   &coll->what);
	char range[64] = "", ranks[32] = "";
	const struct rule *rule;
	const char *name;

	if (user) {
		fxi_coll_say(coll, FXI_DEBUG_COLL, user->name,
			     ", the schedule of fabrex_comm_schedule()");
		return;
	}
	name = chosen(coll->comm, &coll->what, &rule);
	if (!rule) {
		fxi_coll_say(coll, FXI_DEBUG_COLL, name,
			     ", as there is no rule");
		return;
	}
	if (rule->most == UINT64_MAX)
		snprintf(range, sizeof(range), "from %llu bytes",
			 (unsigned long long)rule->least);
	else
		snprintf(range, sizeof(range), "from %llu to %llu bytes",
			 (unsigned long long)rule->least,
			 (unsigned long long)rule->most);
	if (rule->ranks)
		snprintf(ranks, sizeof(ranks), " and up to %u ranks", rule->ranks);
	fxi_coll_say(coll, FXI_DEBUG_COLL, name,
		     ", by the rule for %s %s%s, %s",
		     rule->kind == ALL_KINDS ? "all" :
					       fxi_kind_name(rule->kind),
		     range, ranks, origin(coll->comm, rule));
}

/* ---- public ------------------------------------------------------------ */

static const char *name_of(struct fabrex_comm *comm,
			   enum fabrex_coll_kind kind, uint64_t bytes)
{
	struct fabrex_collective what = {
		.kind = kind, .type = FABREX_UINT8, .count = bytes,
		.op = fxi_schedule_reduces(kind) ? FABREX_SUM : 0,
	};
	const struct fabrex_schedule *schedule = user_schedule(comm, &what);
	const struct rule *which;

	if (schedule)
		return schedule->name;
	if (fxi_kind_varies(kind))
		return fxi_flatv.name;
	if (fxi_coll_bytes(comm, &what) != bytes)
		what.count = bytes / comm->size;
	return chosen(comm, &what, &which);
}

EXPORT int fabrex_comm_algorithm(struct fabrex_comm *comm,
				 enum fabrex_coll_kind kind, uint64_t bytes,
				 char *name, size_t n)
{
	const char *found;

	if (kind < FABREX_ALL_REDUCE || kind == FABREX_SEND ||
	    kind == FABREX_RECV || kind > FABREX_ALL_TO_ALLV)
		return fxi_error(EINVAL, "algorithm: %s has none; ask for a collective",
				 fxi_kind_name(kind));
	fxi_comm_enter(comm);
	found = name_of(comm, kind, bytes);
	fxi_comm_leave(comm);
	if (strlen(found) >= n)
		return fxi_error(ENOSPC, "algorithm: \"%s\" does not fit %zu bytes; give it %zu",
				 found, n, strlen(found) + 1);
	memcpy(name, found, strlen(found) + 1);
	return 0;
}
