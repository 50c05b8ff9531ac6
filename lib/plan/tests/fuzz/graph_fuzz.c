// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzer: files of graphs, of all formats. What is refused has a sentence that
 * begins with the file's name; what is accepted comes back the same from a
 * graph file, whatever it was read from.
 */
#include <stdlib.h>
#include <string.h>

#include "read.h"
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
	plan_graph_free(g);
	return 0;
}
