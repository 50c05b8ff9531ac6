// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzer: files of graphs, of all formats. What is refused has a sentence that
 * begins with the file's name; what is accepted comes back the same from a
 * graph file, whatever it was read from, and is XML when written for NCCL.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/nccl.h"
#include "plan/read.h"
#include "same.h"

/* libconfig loses the text of a string that stands where none may. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so\n";
}

static void again(const struct plan_graph *g)
{
	struct plan_error e = { 0 };
	struct plan_graph *back;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f || plan_graphfile_write(g, f, &e) || fclose(f))
		abort();
	back = plan_graphfile_parse(text, "again", &e);
	if (!back || same_graph(g, back) || strcmp(g->name, back->name) ||
	    g->nwarnings != back->nwarnings)
		abort();
	plan_graph_free(back);
	free(text);
}

/* Attributes and names may be anything; but it is XML, or refused. */
static void topology(const struct plan_graph *g, enum plan_dialect d)
{
	struct plan_error e = { 0 };
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int err;

	if (!f)
		abort();
	err = plan_nccl_write(g, d, f, &e);
	fclose(f);
	if (err && !*e.text)
		abort();
	if (!err)
		plan_graph_free(plan_nccl_parse(text, size, "again", &e));
	if (strstr(e.text, "this is no XML")) {
		fprintf(stderr, "%s\n%s", e.text, text);
		abort();
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = plan_graph_parse((const char *)data, size,
						"fuzz", NULL, &e);

	if (!g) {
		if (!e.code || strncmp(e.text, "fuzz", 4))
			abort();
		return 0;
	}
	again(g);
	plan_graph_check(g, &e);
	topology(g, PLAN_NCCL);
	topology(g, PLAN_RCCL);
	plan_graph_free(g);
	return 0;
}
