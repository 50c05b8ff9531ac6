// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is planned for: graphs from files or from the fabric as it is composed,
 * and the options that plans have in common.
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live.h"
#include "plan/read.h"
#include "plan/simulate.h"
#include "source.h"
#include "topology/scan.h"
#include "topology/topology.h"
#include "visible.h"

/* Nobody means more. */
#define LARGEST (1ull << 42)
#define TEXT_LIMIT (64u << 20)

int source_error(struct ctl *c, const char *object, const struct plan_error *e)
{
	int code = e->code ? e->code : EIO;

	if (!object || strstr(e->text, object))
		return err_set(&c->err, code, object, "%s", e->text);
	return err_set(&c->err, code, object, "%s: %s", object, e->text);
}

int source_name(struct ctl *c, int argc, char **argv, const char **name)
{
	const char *verb = c->verb ? c->verb->name : "";
	const char *gap = c->verb ? " " : "", *cmd = c->command->name;

	if (argc > 1)
		return err_usage(&c->err, argv[1], "%s%s%s: one fabric at a "
				 "time; \"%s\" is too much", cmd, gap, verb,
				 argv[1]);
	if (argc && IS_SET(c, LIVE) && strcmp(argv[0], "live"))
		return err_usage(&c->err, argv[0], "%s%s%s: either --live or "
				 "the file \"%s\"", cmd, gap, verb, argv[0]);
	if (!argc && !IS_SET(c, LIVE))
		return err_usage(&c->err, NULL, "%s%s%s: name a file, or "
				 "\"live\"; see \"fabrexctl help %s\"", cmd,
				 gap, verb, cmd);
	*name = argc ? argv[0] : "live";
	return 0;
}

/* What comes from files goes to terminals, too. */
static void clean_graph(struct plan_graph *g)
{
	uint32_t i;

	visible(g->name);
	for (i = 0; i < g->nwarnings; i++)
		visible(g->warnings[i]);
}

/* A file's *text is the caller's to free; of "live" there is none. */
int source_graph_text(struct ctl *c, const char *name, struct plan_graph **g,
		      char **text, size_t *len)
{
	const struct plan_select select = {
		.host = c->arg[OPT_HOST], .devices = c->arg[OPT_DEVICES],
	};
	const char *file = c->arg[OPT_TOPOLOGY];
	struct plan_error e = { 0 };
	int r;

	*text = NULL;
	if (!strcmp(name, "live")) {
		r = live_graph(c, &select, file, g);
		if (!r)
			clean_graph(*g);
		return r;
	}
	if (file)
		return err_usage(&c->err, name, "--topology completes what is "
				 "seen of the live fabric; %s is a file", name);
	r = source_text(c, name, text, len);
	if (r)
		return r;
	*g = plan_graph_parse(*text, *len, name, &select, &e);
	if (*g) {
		clean_graph(*g);
		return 0;
	}
	free(*text);
	*text = NULL;
	return source_error(c, name, &e);
}

int source_graph(struct ctl *c, const char *name, struct plan_graph **g)
{
	size_t len;
	char *text;
	int r = source_graph_text(c, name, g, &text, &len);

	free(text);
	return r;
}

/* Line of the first element that a sentence names; 0: none has one. */
static uint32_t line_of(const struct plan_graph *g, const char *text)
{
	char *copy = xstrdup(text), *save, *word;
	uint32_t node, line = 0;

	for (word = strtok_r(copy, " ;,", &save); word && !line;
	     word = strtok_r(NULL, " ;,", &save)) {
		node = plan_graph_find(g, word);
		if (node != PLAN_NONE)
			line = g->nodes[node].line;
	}
	free(copy);
	return line;
}

int source_check(struct ctl *c, const char *name, struct plan_graph **g)
{
	struct plan_error e = { 0 };
	uint32_t line;

	if (!plan_graph_check(*g, &e))
		return 0;
	line = line_of(*g, e.text);
	plan_graph_free(*g);
	*g = NULL;
	if (!line)
		return source_error(c, name, &e);
	return err_set(&c->err, e.code, name, "%s:%u: %s", name, line, e.text);
}

int source_plannable(struct ctl *c, const char *name, struct plan_graph **g)
{
	int r = source_graph(c, name, g);

	return r ? r : source_check(c, name, g);
}

static int read_all(int fd, char **text, size_t *len)
{
	size_t room = 65536, n = 0;
	ssize_t got;

	*text = xrealloc(NULL, room);
	do {
		if (room - n < 2)
			*text = xrealloc(*text, room *= 2);
		got = read(fd, *text + n, room - n - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got > 0)
			n += (size_t)got;
		if (n > TEXT_LIMIT) {
			errno = E2BIG;
			got = -1;
		}
	} while (got > 0 || (got < 0 && errno == EINTR));
	(*text)[n] = '\0';
	*len = n;
	return got < 0 ? -errno : 0;
}

int source_text(struct ctl *c, const char *path, char **text, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	*text = NULL;
	r = fd < 0 ? -errno : read_all(fd, text, len);
	if (fd >= 0)
		close(fd);
	if (!r)
		return 0;
	free(*text);
	*text = NULL;
	if (r == -E2BIG)
		return err_set(&c->err, -r, path, "%s: more than %u MiB; no "
			       "fabric takes so much", path, TEXT_LIMIT >> 20);
	return err_set(&c->err, -r, path, "cannot read %s: %s", path,
		       strerror(-r));
}

int source_topology(struct ctl *c, const char *path, struct topology **t)
{
	struct topo_scan scan;
	char *text, why[400];
	size_t len;
	int r = source_text(c, path, &text, &len);

	if (r)
		return r;
	*t = NULL;
	if (!topology_scan(text, len, path, &scan, why, sizeof(why)))
		*t = topology_parse(text, path, why, sizeof(why));
	if (!*t)
		r = err_set(&c->err, EINVAL, path, "%s", why);
	free(text);
	return r;
}

int source_collective(struct ctl *c, enum plan_collective *out)
{
	const char *word = c->arg[OPT_COLLECTIVE];
	unsigned int i;

	*out = word ? plan_collective_parse(word) : PLAN_ALL_REDUCE;
	if (*out)
		return 0;
	err_usage(&c->err, word, "--collective: \"%s\" is none of", word);
	for (i = PLAN_ALL_GATHER; i < PLAN_COLLECTIVES; i++)
		err_append(&c->err, "%s %s", i > PLAN_ALL_GATHER ? "," : "",
			   plan_collective_name(i));
	return -EINVAL;
}

int source_root(struct ctl *c, const struct plan_graph *g,
		enum plan_collective collective, uint32_t *out)
{
	const char *word = c->arg[OPT_ROOT];
	uint64_t rank;
	uint32_t node;

	*out = 0;
	if (!word)
		return 0;
	if (collective != PLAN_BROADCAST && collective != PLAN_REDUCE)
		return err_usage(&c->err, word, "--root: %s has no root",
				 plan_collective_name(collective));
	if (parse_u64(word, 0, g->nranks - 1, &rank)) {
		*out = (uint32_t)rank;
		return 0;
	}
	/* As --devices has it: digits are a number, never a name. */
	node = *word && strspn(word, "0123456789") == strlen(word) ?
	       PLAN_NONE : plan_graph_find(g, word);
	if (node == PLAN_NONE || g->nodes[node].rank == PLAN_NONE)
		return err_usage(&c->err, word, "--root: \"%s\" is no rank; "
				 "ranks are 0 to %u", word, g->nranks - 1);
	*out = g->nodes[node].rank;
	return 0;
}

int source_size(struct ctl *c, uint64_t *out)
{
	static const char units[] = "KMGT";
	const char *word = c->arg[OPT_SIZE];
	const char *unit;
	unsigned int shift = 0;
	uint64_t n = 0;
	char *digits;
	bool good;

	*out = PLAN_SIZE_DEFAULT;
	if (!word)
		return 0;
	digits = xstrdup(word);
	unit = *word ? strchr(units, word[strlen(word) - 1]) : NULL;
	if (unit && *unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		digits[strlen(word) - 1] = '\0';
	}
	good = parse_u64(digits, 1, LARGEST >> shift, &n);
	free(digits);
	if (!good)
		return err_usage(&c->err, word, "--size: \"%s\" is no size; 1 "
				 "to 4T bytes, as in 65536, 64K or 256M", word);
	*out = n << shift;
	return 0;
}

int source_real(struct ctl *c, enum opt o, double otherwise, double min,
		double max, double *out)
{
	const char *word = c->arg[o];
	char *end;
	double v;

	*out = otherwise;
	if (!word)
		return 0;
	v = strtod(word, &end);
	if ((*word >= '0' && *word <= '9') && !*end && isfinite(v) &&
	    v >= min && v <= max) {
		*out = v;
		return 0;
	}
	return err_usage(&c->err, word, "--%s: \"%s\" is no number from %g to "
			 "%g", option_info[o].name, word, min, max);
}
