// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzer: topology XML, graph XML, NCCL_RINGS. What is valid is read, and what
 * is written of it is valid, too. What is read is written for either library
 * and read again: the same text comes back, and the same graph, if it is written
 * as it was read.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/nccl.h"
#include "plan/nccl/tree.h"
#include "same.h"

#define DEVICE(bus, dev) \
	"<pci busid=\"0000:" bus ":00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">" \
	"<gpu dev=\"" dev "\" sm=\"80\"/></pci>"

/* GPUs 0, 1, 10: those of the seeds' graphs. */
static const char three[] = "<system version=\"1\"><cpu numaid=\"0\">"
	DEVICE("01", "0") DEVICE("02", "1") DEVICE("03", "10")
	"</cpu></system>";

static char *written(const struct plan_graph *g, enum plan_dialect d,
		     size_t *length)
{
	struct plan_error e = { 0 };
	char *text = NULL;
	FILE *f = open_memstream(&text, length);
	int err = plan_nccl_write(g, d, f, &e);

	fclose(f);
	if (err && !*e.text)
		abort();
	if (!err)
		return text;
	free(text);
	return NULL;
}

static struct plan_graph *read_again(const char *text, size_t length)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = plan_nccl_parse(text, length, "again", &e);

	if (!g) {
		fprintf(stderr, "%s\n%s", e.text, text);
		abort();
	}
	return g;
}

static void same_text(const struct plan_graph *g, enum plan_dialect d,
		      const char *text)
{
	size_t length;
	char *again = written(g, d, &length);

	if (!again || strcmp(text, again)) {
		fprintf(stderr, "%s%s", text, again ? again : "nothing\n");
		abort();
	}
	free(again);
}

/* @valid: what the graph was read from */
static void write_it(const struct plan_graph *g, enum plan_dialect d,
		     bool valid)
{
	struct plan_error e = { 0 };
	const char *differs = NULL;
	struct plan_graph *again;
	struct nccl_tree t;
	size_t length;
	char *text = written(g, d, &length);

	if (!text)
		return;
	again = read_again(text, length);
	if (nccl_tree(g, d, &t, NULL))
		abort();
	if (t.as_read)
		differs = same_graph(g, again);
	if (valid && plan_nccl_validate(text, length, "again", &e))
		differs = e.text;
	if (differs) {
		fprintf(stderr, "%s\n%s", differs, text);
		abort();
	}
	same_text(again, d, text);
	nccl_tree_free(&t);
	plan_graph_free(again);
	free(text);
}

static void topology(const char *text, size_t length)
{
	struct plan_error e = { 0 }, why = { 0 };
	struct plan_graph *g = plan_nccl_parse(text, length, "x", &e);
	bool valid = !plan_nccl_validate(text, length, "x", &why);

	if ((!g && strncmp(e.text, "x:", 2)) ||
	    (!valid && strncmp(why.text, "x:", 2)))
		abort();
	if (valid && !g) {
		fprintf(stderr, "%s\n", e.text);
		abort();
	}
	if (!g)
		return;
	plan_graph_check(g, &e);
	write_it(g, PLAN_NCCL, valid);
	write_it(g, PLAN_RCCL, valid);
	plan_graph_free(g);
}

static void write_rings(const struct plan_graph *g, uint32_t *order, uint32_t n)
{
	struct plan_rings r = { .nrings = n, .order = order,
				.busbw = plan_ratio(27000, 1) };
	uint32_t *again, count;
	char *text = NULL;
	size_t length;
	FILE *f;

	if (n > 64)	/* NCCL's limit */
		return;
	f = open_memstream(&text, &length);
	if (plan_nccl_graph_write(g, &r, PLAN_NCCL, f, NULL))
		abort();
	fclose(f);
	if (plan_nccl_graph_validate(text, length, "again", NULL) ||
	    plan_nccl_graph_read(g, text, length, "again", &again, &count,
				 NULL) || count != n ||
	    memcmp(order, again, (size_t)n * g->nranks * sizeof(*order)))
		abort();
	free(again);
	free(text);
}

static void graph(const char *text, size_t length)
{
	struct plan_graph *g = read_again(three, strlen(three));
	struct plan_error e = { 0 };
	uint32_t *order, n;

	if (plan_nccl_graph_validate(text, length, "x", &e) && !*e.text)
		abort();
	if (!plan_nccl_graph_read(g, text, length, "x", &order, &n, &e)) {
		write_rings(g, order, n);
		free(order);
	}
	plan_graph_free(g);
}

static void rings(const char *text)
{
	struct plan_graph *g = read_again(three, strlen(three));
	struct plan_rings r = { .nrings = 0 };
	struct plan_error e = { 0 };
	uint32_t *again, n;
	bool by_dev;
	char *string = NULL;
	size_t length;
	FILE *f;

	if (plan_nccl_rings_parse(text, 3, &r.order, &r.nrings, &e)) {
		if (!*e.text)
			abort();
		plan_graph_free(g);
		return;
	}
	f = open_memstream(&string, &length);
	if (plan_nccl_rings_write(g, &r, f, &by_dev))
		abort();
	fclose(f);
	plan_graph_free(g);
	if (plan_nccl_rings_parse(string, 3, &again, &n, &e) ||
	    n != r.nrings || memcmp(again, r.order, n * 3 * sizeof(*again)))
		abort();
	free(string);
	free(again);
	free(r.order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = 0;
	topology((const char *)data, size);
	graph((const char *)data, size);
	rings(text);
	free(text);
	return 0;
}
