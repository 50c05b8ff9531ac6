// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads and searches the rules of a tuner's file. They lie in one array, sorted by
 * what a collective has to match and then by size; as rules that match the same do
 * not overlap, one binary search finds the only one that can apply.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table.h"
#include "tuner_abi.h"

#define COLUMNS_MIN	8u
#define COLUMNS_MAX	10u

static const char *const columns[COLUMNS_MAX] = {
	"collective_type", "min_bytes", "max_bytes", "algorithm", "protocol",
	"channels", "nNodes", "nRanks", "numPipeOps", "regBuff",
};

static const char *const collectives[NCCL_COLLECTIVES] = {
	[NCCL_BROADCAST] = "broadcast",
	[NCCL_REDUCE] = "reduce",
	[NCCL_ALL_GATHER] = "allgather",
	[NCCL_REDUCE_SCATTER] = "reducescatter",
	[NCCL_ALL_REDUCE] = "allreduce",
};

static const char *const algorithms[NCCL_ALGORITHMS] = {
	[NCCL_TREE] = "tree",
	[NCCL_RING] = "ring",
	[NCCL_COLLNET_DIRECT] = "collnet_direct",
	[NCCL_COLLNET_CHAIN] = "collnet_chain",
	[NCCL_NVLS] = "nvls",
	[NCCL_NVLS_TREE] = "nvls_tree",
	[NCCL_PAT] = "pat",
};

static const char *const protocols[NCCL_PROTOCOLS] = {
	[NCCL_LL] = "ll",
	[NCCL_LL128] = "ll128",
	[NCCL_SIMPLE] = "simple",
};

/* A rule, and what a collective has to match to take it: the key of its place. */
struct keyed {
	uint64_t places;		/* ranks, nodes */
	uint64_t calls;			/* collective, pipe_ops, registered */
	struct tuner_rule rule;
};

/* Bits of a kind of rule: what it takes any of. The lower, the more specific. */
enum { ANY_REGISTERED = 1, ANY_PIPE_OPS = 2, ANY_NODES = 4, ANY_RANKS = 8 };

struct tuner_table {
	size_t n;
	uint16_t kinds[NCCL_COLLECTIVES];	/* a bit for each kind there is */
	struct keyed entries[];
};

static uint64_t pair(int high, int low)
{
	return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

static uint64_t calls_of(int collective, int pipe_ops, int registered)
{
	return (uint64_t)collective << 40 | (uint64_t)(uint32_t)pipe_ops << 8 |
	       (uint8_t)registered;
}

static unsigned int kind_of(const struct tuner_rule *rule)
{
	return (rule->registered == TUNER_ANY ? ANY_REGISTERED : 0) |
	       (rule->pipe_ops == TUNER_ANY ? ANY_PIPE_OPS : 0) |
	       (rule->nodes == TUNER_ANY ? ANY_NODES : 0) |
	       (rule->ranks == TUNER_ANY ? ANY_RANKS : 0);
}

static void find_kinds(struct tuner_table *table)
{
	size_t i;

	memset(table->kinds, 0, sizeof(table->kinds));
	for (i = 0; i < table->n; i++) {
		const struct tuner_rule *rule = &table->entries[i].rule;

		table->kinds[rule->collective] |= (uint16_t)(1u << kind_of(rule));
	}
}

/* ---- a line -------------------------------------------------------------- */

/* A rule as it is read: in the order of the file, and in a tree. */
struct parsed {
	struct keyed entry;
	unsigned long line;
	struct parsed *next;
};

struct reading {
	const char *path;
	FILE *file;
	void (*complain)(void *arg, const char *sentence);
	void *arg;
	unsigned long line, complaints;
	char text[TABLE_LINE + 1];	/* of the line, as much as fits */
	size_t length;			/* of all of it */
	bool nul;			/* there is one in it */
	struct parsed *first, **last;
	void *tree;			/* of those that are kept */
	size_t n;
};

static void refuse(struct reading *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Says why the line is passed over. */
static void refuse(struct reading *r, const char *fmt, ...)
{
	char what[256], sentence[PATH_MAX + 320];
	va_list args;

	if (r->complaints++ >= TABLE_COMPLAINTS)
		return;
	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	snprintf(sentence, sizeof(sentence),
		 "%s:%lu: %s; the line is passed over", r->path, r->line, what);
	r->complain(r->arg, sentence);
}

static void refuse_rest(struct reading *r)
{
	char sentence[PATH_MAX + 64];

	if (r->complaints <= TABLE_COMPLAINTS)
		return;
	snprintf(sentence, sizeof(sentence),
		 "%s: and %lu more lines are passed over", r->path,
		 r->complaints - TABLE_COMPLAINTS);
	r->complain(r->arg, sentence);
}

/* A column as it can be shown in a log. Return: @shown. */
static const char *show(const char *text, char shown[40])
{
	size_t i;

	for (i = 0; i < 36 && text[i]; i++)
		shown[i] = isascii(text[i]) && isprint((unsigned char)text[i]) ?
			   text[i] : '?';
	shown[i] = 0;
	if (text[i])
		strcat(shown, "...");
	return shown;
}

/* Digits and nothing else. */
static bool number(const char *text, uint64_t *value)
{
	uint64_t v = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		uint64_t digit = (uint64_t)*text - '0';

		if (digit > 9 || v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*value = v;
	return true;
}

static bool take_bytes(struct reading *r, const char *const *fields,
		       unsigned int column, uint64_t *value)
{
	char shown[40];

	if (number(fields[column], value))
		return true;
	refuse(r, "%s is \"%s\": give a number of bytes", columns[column],
	       show(fields[column], shown));
	return false;
}

/* From @min to @max, or -1. */
static bool take_number(struct reading *r, const char *const *fields,
			unsigned int column, int min, int max, int *value)
{
	uint64_t v = 0;
	char shown[40];

	if (!strcmp(fields[column], "-1")) {
		*value = TUNER_ANY;
		return true;
	}
	if (number(fields[column], &v) && v >= (uint64_t)min &&
	    v <= (uint64_t)max) {
		*value = (int)v;
		return true;
	}
	refuse(r, "%s is \"%s\": give a number from %d to %d, or -1",
	       columns[column], show(fields[column], shown), min, max);
	return false;
}

static bool take_name(struct reading *r, const char *const *fields,
		      unsigned int column, const char *const *names, int n,
		      int *value)
{
	char shown[40], known[128] = "";
	int i;

	for (i = 0; i < n; i++) {
		if (!strcmp(fields[column], names[i])) {
			*value = i;
			return true;
		}
		if (i)
			strcat(known, i < n - 1 ? ", " : " or ");
		strcat(known, names[i]);
	}
	refuse(r, "%s is \"%s\": give %s", columns[column],
	       show(fields[column], shown), known);
	return false;
}

static const char *trim(char *text)
{
	static const char space[] = " \t\r\v\f";
	size_t length;

	text += strspn(text, space);
	length = strlen(text);
	while (length && strchr(space, text[length - 1]))
		length--;
	text[length] = 0;
	return text;
}

/* Return: how many columns the line has, of which at most COLUMNS_MAX are kept. */
static unsigned int split(char *text, const char **fields)
{
	unsigned int n = 0;
	char *field;

	while ((field = strsep(&text, ","))) {
		if (n < COLUMNS_MAX)
			fields[n] = trim(field);
		n++;
	}
	return n;
}

static bool take_rule(struct reading *r, const char *const *fields,
		      struct tuner_rule *rule)
{
	if (!take_name(r, fields, 0, collectives, NCCL_COLLECTIVES,
		       &rule->collective) ||
	    !take_bytes(r, fields, 1, &rule->min_bytes) ||
	    !take_bytes(r, fields, 2, &rule->max_bytes) ||
	    !take_name(r, fields, 3, algorithms, NCCL_ALGORITHMS,
		       &rule->algorithm) ||
	    !take_name(r, fields, 4, protocols, NCCL_PROTOCOLS,
		       &rule->protocol) ||
	    !take_number(r, fields, 5, 1, TABLE_CHANNELS, &rule->channels) ||
	    !take_number(r, fields, 6, 1, INT_MAX, &rule->nodes) ||
	    !take_number(r, fields, 7, 1, INT_MAX, &rule->ranks) ||
	    !take_number(r, fields, 8, 1, INT_MAX, &rule->pipe_ops) ||
	    !take_number(r, fields, 9, 0, 1, &rule->registered))
		return false;
	if (rule->min_bytes <= rule->max_bytes)
		return true;
	refuse(r, "%s is more than %s", columns[1], columns[2]);
	return false;
}

/*
 * Return: whether the line is a rule. What spreadsheets make of a short line is
 * understood: commas at its end, and nothing but commas if it was blank.
 */
static bool line_parse(struct reading *r, struct tuner_rule *rule)
{
	const char *fields[COLUMNS_MAX] = { NULL };
	unsigned int n, i;

	if (r->text[strspn(r->text, " \t")] == '#')
		return false;
	if (r->length > TABLE_LINE) {
		refuse(r, "the line is longer than %u characters", TABLE_LINE);
		return false;
	}
	if (r->nul) {
		refuse(r, "there is a NUL in the line");
		return false;
	}
	if (!r->text[strspn(r->text, " \t\r\v\f,")])
		return false;
	n = split(r->text, fields);
	if (n < COLUMNS_MIN || n > COLUMNS_MAX) {
		refuse(r, "the line has %u columns: give %u to %u", n,
		       COLUMNS_MIN, COLUMNS_MAX);
		return false;
	}
	for (i = COLUMNS_MIN; i < COLUMNS_MAX; i++)
		if (!fields[i] || !*fields[i])
			fields[i] = "-1";
	return take_rule(r, fields, rule);
}

/* ---- a file -------------------------------------------------------------- */

/*
 * By what they have to match, then by size: rules that overlap count as equal,
 * which orders those that are kept, as none of these do.
 */
static int compare(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->places != y->places)
		return x->places < y->places ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? -1 : 1;
	if (x->rule.max_bytes < y->rule.min_bytes)
		return -1;
	return x->rule.min_bytes > y->rule.max_bytes;
}

/* The next line without its end, into r->text. Return: false at the file's end. */
static bool line_next(struct reading *r)
{
	int c;

	r->length = 0;
	r->nul = false;
	while ((c = getc_unlocked(r->file)) != EOF && c != '\n') {
		r->nul |= !c;
		if (r->length < TABLE_LINE)
			r->text[r->length] = (char)c;
		r->length++;
	}
	r->text[r->length < TABLE_LINE ? r->length : TABLE_LINE] = 0;
	if (c == EOF && (ferror(r->file) || !r->length))
		return false;
	r->line++;
	return true;
}

/* Takes a rule, unless an earlier one has some of its sizes. Return: 0 or -1. */
static int rule_add(struct reading *r, const struct tuner_rule *rule)
{
	struct parsed *new = malloc(sizeof(*new));
	const struct parsed *const *found;

	if (!new)
		return -1;
	new->entry.places = pair(rule->ranks, rule->nodes);
	new->entry.calls = calls_of(rule->collective, rule->pipe_ops,
				    rule->registered);
	new->entry.rule = *rule;
	new->line = r->line;
	new->next = NULL;
	found = tsearch(&new->entry, &r->tree, compare);
	if (!found) {
		free(new);
		return -1;
	}
	if (*found != new) {
		refuse(r, "its sizes overlap with those of line %lu",
		       (*found)->line);
		free(new);
		return 0;
	}
	*r->last = new;
	r->last = &new->next;
	r->n++;
	return 0;
}

static int read_rules(struct reading *r)
{
	struct tuner_rule rule;

	while (line_next(r))
		if (line_parse(r, &rule) && rule_add(r, &rule))
			return -1;
	return ferror(r->file) ? -1 : 0;
}

static struct tuner_table *make(const struct reading *r)
{
	struct tuner_table *table;
	const struct parsed *rule;

	table = malloc(sizeof(*table) + r->n * sizeof(*table->entries));
	if (!table)
		return NULL;
	table->n = 0;
	for (rule = r->first; rule; rule = rule->next)
		table->entries[table->n++] = rule->entry;
	qsort(table->entries, table->n, sizeof(*table->entries), compare);
	find_kinds(table);
	return table;
}

static void keep_entry(void *entry)
{
	(void)entry;
}

static void forget(struct reading *r)
{
	struct parsed *rule;

	tdestroy(r->tree, keep_entry);
	while ((rule = r->first)) {
		r->first = rule->next;
		free(rule);
	}
}

/*
 * Only a file: the end of anything else may never come, and several processes
 * cannot read it.
 */
static FILE *file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error = 0;
	struct stat st;
	FILE *file;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st))
		error = errno;
	else if (S_ISDIR(st.st_mode))
		error = EISDIR;
	else if (!S_ISREG(st.st_mode))
		error = ESPIPE;
	else if (st.st_size > TABLE_SIZE)
		error = EFBIG;
	file = error ? NULL : fdopen(fd, "r");
	if (!file) {
		error = error ? error : errno;
		close(fd);
		errno = error;
	}
	return file;
}

struct tuner_table *table_read(const char *path,
			       void (*complain)(void *arg, const char *sentence),
			       void *arg)
{
	struct reading r = {
		.path = path, .complain = complain, .arg = arg,
		.last = &r.first,
	};
	struct tuner_table *table = NULL;
	int error;

	r.file = file_open(path);
	if (!r.file)
		return NULL;
	if (!read_rules(&r)) {
		refuse_rest(&r);
		table = make(&r);
	}
	error = errno;
	forget(&r);
	fclose(r.file);
	errno = error;
	return table;
}

void table_free(struct tuner_table *table)
{
	free(table);
}

size_t table_count(const struct tuner_table *table)
{
	return table->n;
}

struct tuner_table *table_keep(struct tuner_table *table, int nodes, int ranks)
{
	struct tuner_table *smaller;
	size_t i, n = 0;

	for (i = 0; i < table->n; i++) {
		const struct tuner_rule *rule = &table->entries[i].rule;

		if ((rule->nodes == TUNER_ANY || rule->nodes == nodes) &&
		    (rule->ranks == TUNER_ANY || rule->ranks == ranks))
			table->entries[n++] = table->entries[i];
	}
	table->n = n;
	find_kinds(table);
	smaller = realloc(table, sizeof(*table) + n * sizeof(*table->entries));
	return smaller ? smaller : table;
}

/* ---- search -------------------------------------------------------------- */

static bool begins_after(const struct keyed *e, uint64_t places, uint64_t calls,
			 uint64_t bytes)
{
	if (e->places != places)
		return e->places > places;
	if (e->calls != calls)
		return e->calls > calls;
	return e->rule.min_bytes > bytes;
}

static const struct tuner_rule *search(const struct tuner_table *table,
				       uint64_t places, uint64_t calls,
				       uint64_t bytes)
{
	size_t low = 0, high = table->n;
	const struct keyed *e;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (begins_after(&table->entries[middle], places, calls, bytes))
			high = middle;
		else
			low = middle + 1;
	}
	if (!low)
		return NULL;
	e = &table->entries[low - 1];
	return e->places == places && e->calls == calls &&
	       e->rule.max_bytes >= bytes ? &e->rule : NULL;
}

const struct tuner_rule *table_find(const struct tuner_table *table,
				    const struct tuner_call *call)
{
	const struct tuner_rule *rule = NULL;
	unsigned int kinds;

	if (call->collective < 0 || call->collective >= NCCL_COLLECTIVES)
		return NULL;
	for (kinds = table->kinds[call->collective]; kinds && !rule;
	     kinds &= kinds - 1) {
		unsigned int any = (unsigned int)__builtin_ctz(kinds);

		rule = search(table,
			pair(any & ANY_RANKS ? TUNER_ANY : call->ranks,
			     any & ANY_NODES ? TUNER_ANY : call->nodes),
			calls_of(call->collective,
				 any & ANY_PIPE_OPS ? TUNER_ANY : call->pipe_ops,
				 any & ANY_REGISTERED ? TUNER_ANY :
				 !!call->registered), call->bytes);
	}
	return rule;
}
