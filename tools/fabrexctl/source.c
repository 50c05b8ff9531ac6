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

#include "base/size.h"
#include "graph.h"
#include "live.h"
#include "source.h"
#include "topology/scan.h"
#include "topology/topology.h"

/* At which predictions are made that do not say at which. */
#define DEFAULT_SIZE (1ull << 30)
/* Nobody means more. */
#define LARGEST (1ull << 42)
#define TEXT_LIMIT (64u << 20)

int source_error(struct ctl *c, const char *object, int err)
{
	const char *text = fabrex_plan_strerror_last();

	if (!object || strstr(text, object))
		return err_set(&c->err, -err, object, "%s", text);
	return err_set(&c->err, -err, object, "%s: %s", object, text);
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

/* A file's *text is the caller's to free; of "live" there is none. */
int source_graph_text(struct ctl *c, const char *name,
		      struct fabrex_plan_graph **g, char **text, size_t *len)
{
	const struct fabrex_plan_select select = {
		.host = c->arg[OPT_HOST], .devices = c->arg[OPT_DEVICES],
	};
	const char *file = c->arg[OPT_TOPOLOGY];
	int r;

	*text = NULL;
	if (!strcmp(name, "live"))
		return live_graph(c, &select, file, g);
	if (file)
		return err_usage(&c->err, name, "--topology completes what is "
				 "seen of the live fabric; %s is a file", name);
	r = source_text(c, name, text, len);
	if (r)
		return r;
	r = fabrex_plan_graph_parse(*text, *len, name, &select, sizeof(select),
				    g);
	if (!r)
		return 0;
	free(*text);
	*text = NULL;
	return source_error(c, name, r);
}

int source_graph(struct ctl *c, const char *name, struct fabrex_plan_graph **g)
{
	size_t len;
	char *text;
	int r = source_graph_text(c, name, g, &text, &len);

	free(text);
	return r;
}

/* Line of the first element that a sentence names; 0: none has one. */
static uint32_t line_of(const struct fabrex_plan_graph *g, const char *text)
{
	char *copy = xstrdup(text), *save, *word;
	uint32_t node, line = 0;

	for (word = strtok_r(copy, " ;,", &save); word && !line;
	     word = strtok_r(NULL, " ;,", &save)) {
		node = fabrex_plan_node_find(g, word);
		if (node != FABREX_PLAN_NONE)
			line = graph_node(g, node).line;
	}
	free(copy);
	return line;
}

int source_check(struct ctl *c, const char *name, struct fabrex_plan_graph **g)
{
	int r = fabrex_plan_graph_check(*g);
	uint32_t line;

	if (!r)
		return 0;
	line = line_of(*g, fabrex_plan_strerror_last());
	fabrex_plan_graph_free(*g);
	*g = NULL;
	if (!line)
		return source_error(c, name, r);
	return err_set(&c->err, -r, name, "%s:%u: %s", name, line,
		       fabrex_plan_strerror_last());
}

int source_plannable(struct ctl *c, const char *name,
		     struct fabrex_plan_graph **g)
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

int source_collective(struct ctl *c, int *out)
{
	const char *word = c->arg[OPT_COLLECTIVE];
	int i;

	*out = word ? fabrex_plan_collective_parse(word)
		    : FABREX_PLAN_ALL_REDUCE;
	if (*out)
		return 0;
	err_usage(&c->err, word, "--collective: \"%s\" is none of", word);
	for (i = FABREX_PLAN_ALL_GATHER; i <= FABREX_PLAN_REDUCE; i++)
		err_append(&c->err, "%s %s", i > FABREX_PLAN_ALL_GATHER ? ","
			   : "", fabrex_plan_collective_str(i));
	return -EINVAL;
}

int source_root(struct ctl *c, const struct fabrex_plan_graph *g,
		int collective, uint32_t *out)
{
	const char *word = c->arg[OPT_ROOT];
	uint32_t node, ranks = graph_attr(g).ranks;
	uint64_t rank;

	*out = 0;
	if (!word)
		return 0;
	if (collective != FABREX_PLAN_BROADCAST &&
	    collective != FABREX_PLAN_REDUCE)
		return err_usage(&c->err, word, "--root: %s has no root",
				 fabrex_plan_collective_str(collective));
	if (parse_u64(word, 0, ranks - 1, &rank)) {
		*out = (uint32_t)rank;
		return 0;
	}
	/* As --devices has it: digits are a number, never a name. */
	node = *word && strspn(word, "0123456789") == strlen(word) ?
	       FABREX_PLAN_NONE : fabrex_plan_node_find(g, word);
	*out = node == FABREX_PLAN_NONE ? node : graph_node(g, node).rank;
	if (*out == FABREX_PLAN_NONE)
		return err_usage(&c->err, word, "--root: \"%s\" is no rank; "
				 "ranks are 0 to %u", word, ranks - 1);
	return 0;
}

int source_size(struct ctl *c, uint64_t *out)
{
	const char *word = c->arg[OPT_SIZE], *end;

	*out = DEFAULT_SIZE;
	if (!word || (size_parse(word, "KMGT", out, &end) && !*end && *out &&
		      *out <= LARGEST))
		return 0;
	return err_usage(&c->err, word, "--size: \"%s\" is no size; 1 to 4T "
			 "bytes, as in 65536, 64K or 256M", word);
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
