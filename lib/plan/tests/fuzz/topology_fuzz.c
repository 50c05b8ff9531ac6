// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzer: topology files, by their own parser and as the planner reads them.
 * What is refused has a sentence; what is accepted is written and read again
 * the same, and becomes a graph, which a host's NCCL and RCCL are told of.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/nccl.h"
#include "plan/read.h"
#include "topology/topology.h"

static char *written(const struct topology *t)
{
	char *text = NULL, why[256] = "";
	size_t length;
	FILE *f = open_memstream(&text, &length);

	if (topology_write(t, f, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	fclose(f);
	return text;
}

static void write_again(const struct topology *t)
{
	char why[256] = "", *text = written(t), *same;
	struct topology *again = topology_parse(text, "again", why,
						sizeof(why));

	if (!again) {
		fprintf(stderr, "%s\n%s", why, text);
		abort();
	}
	same = written(again);
	if (strcmp(text, same)) {
		fprintf(stderr, "%s%s", text, same);
		abort();
	}
	topology_free(again);
	free(text);
	free(same);
}

/* What is made up has to be valid, and what is known is no more than speeds. */
static void write_host(const struct plan_graph *g, enum plan_dialect d)
{
	struct plan_error e = { 0 };
	char *text = NULL;
	size_t length;
	FILE *f = open_memstream(&text, &length);
	int err = plan_nccl_write(g, d, f, &e);

	fclose(f);
	if ((err && !*e.text) ||
	    (!err && plan_nccl_validate(text, length, "again", &e))) {
		fprintf(stderr, "%s\n%s", e.text, text);
		abort();
	}
	free(text);
}

/* libconfig's lexer forgets the string that it is in when the syntax is wrong. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:strbuf_\nleak:libconfig_yylex\n";
}

const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan_error e = { 0 };
	struct plan_graph *g;
	struct topology *t;
	char why[256] = "";
	char *text = malloc(size + 1);
	bool fabric;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = 0;
	t = topology_parse(text, "x", why, sizeof(why));
	if (!t && !*why)
		abort();
	fabric = t;
	if (fabric)
		write_again(t);
	topology_free(t);
	free(text);
	g = plan_graph_parse((const char *)data, size, "x", NULL, &e);
	if (!g && !*e.text)
		abort();
	if (g && g->nnodes && g->nranks) {
		plan_graph_check(g, &e);
		/* A graph file may have any attributes. */
		if (fabric) {
			write_host(g, PLAN_NCCL);
			write_host(g, PLAN_RCCL);
		}
	}
	plan_graph_free(g);
	return 0;
}
