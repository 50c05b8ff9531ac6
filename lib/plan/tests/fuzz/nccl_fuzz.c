// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzer: what NCCL and RCCL write, and the checks of what is written for them.
 * A topology that those libraries would take is written as one that they take,
 * and that is the same graph when it is read.
 */
#include <stdlib.h>
#include <string.h>

#include "nccl.h"
#include "same.h"

/* Was it of this dialect? Each has attributes that the other does not. */
static bool speaks(const struct plan_graph *g, enum plan_dialect d)
{
	const char *version = NULL;
	uint32_t i;

	for (i = 0; i < g->nnodes && !version; i++)
		version = plan_node_get(g, i, "system.version");
	return version && !strcmp(version, d == PLAN_NCCL ? "1" : "2");
}

static void again(const struct plan_graph *g, enum plan_dialect d)
{
	struct plan_error e = { 0 };
	struct plan_graph *back;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int err;

	if (!f)
		abort();
	err = plan_nccl_write(g, d, f, &e);
	fclose(f);
	if (!err) {
		back = plan_nccl_parse(text, size, "again", &e);
		if (!back || (speaks(g, d) && same_graph(g, back)) ||
		    plan_nccl_validate(text, size, "again", &e)) {
			fprintf(stderr, "%s; %s\n%s\n", e.text,
				back ? same_graph(g, back) : "", text);
			abort();
		}
		plan_graph_free(back);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct plan_error e = { 0 };
	struct plan_graph *g = plan_nccl_parse(text, size, "fuzz", &e);

	if (!g && (!e.code || strncmp(e.text, "fuzz", 4)))
		abort();
	if (!plan_nccl_validate(text, size, "fuzz", &e) && g) {
		again(g, PLAN_NCCL);
		again(g, PLAN_RCCL);
	}
	plan_graph_free(g);
	plan_nccl_graph_validate(text, size, "fuzz", &e);
	return 0;
}
