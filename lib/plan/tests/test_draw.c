// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pictures: XML that is well-formed, each link once, exactly the cut marked. */
#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <time.h>

#include "plan/draw.h"
#include "plan/read.h"
#include "random.h"
#include "tests/tap.h"

/* What there is in a picture. */
struct seen {
	uint32_t nedges;
	uint32_t *drawn, *marked;	/* how often, of each edge */
	uint32_t marks;			/* elements with data-cut */
	uint32_t shaded, paths, bad;
	char *words;			/* all character data */
	size_t nwords;
	FILE *collect;
};

static void count(struct seen *s, const char *list, uint32_t *of)
{
	char *end;

	while (*list) {
		unsigned long i = strtoul(list, &end, 10);

		if (end == list || i >= s->nedges) {
			s->bad++;
			return;
		}
		of[i]++;
		list = end + (*end == ' ');
	}
}

static void XMLCALL begin(void *user, const char *name, const char **attr)
{
	struct seen *s = user;
	bool link = false, cut = false, marked = false;

	s->paths += !strcmp(name, "path");
	for (; *attr; attr += 2) {
		if (!strcmp(attr[0], "data-edges"))
			count(s, attr[1], s->drawn);
		if (!strcmp(attr[0], "data-cut")) {
			count(s, attr[1], s->marked);
			marked = true;
		}
		if (strcmp(attr[0], "class"))
			continue;
		link = !strncmp(attr[1], "link", 4);
		cut = link && strstr(attr[1], " cut");
		s->shaded += !link && strstr(attr[1], "inside") &&
			     !strcmp(name, "rect") && !strstr(attr[1], "frame");
	}
	s->marks += marked;
	s->bad += cut != marked;
}

static void XMLCALL data(void *user, const char *text, int n)
{
	struct seen *s = user;

	fwrite(text, 1, (size_t)n, s->collect);
}

/* Return: whether it is well-formed. */
static bool look(const char *svg, size_t length, uint32_t nedges,
		 struct seen *s)
{
	XML_Parser parser = XML_ParserCreate(NULL);
	bool good;

	memset(s, 0, sizeof(*s));
	s->nedges = nedges;
	s->drawn = calloc(nedges + 1, sizeof(*s->drawn));
	s->marked = calloc(nedges + 1, sizeof(*s->marked));
	s->collect = open_memstream(&s->words, &s->nwords);
	XML_SetUserData(parser, s);
	XML_SetElementHandler(parser, begin, NULL);
	XML_SetCharacterDataHandler(parser, data);
	good = XML_Parse(parser, svg, (int)length, 1) == XML_STATUS_OK;
	if (!good)
		printf("# %s\n", XML_ErrorString(XML_GetErrorCode(parser)));
	XML_ParserFree(parser);
	fclose(s->collect);
	return good;
}

static void forget(struct seen *s)
{
	free(s->drawn);
	free(s->marked);
	free(s->words);
}

static char *draw(const struct plan_graph *g, const struct plan_schedule *s,
		  const struct plan_cut *c, size_t *length)
{
	struct plan_error e = { 0 };
	char *svg = NULL;
	FILE *f = open_memstream(&svg, length);
	int err = plan_draw(g, s, c, f, &e);

	fclose(f);
	if (err)
		printf("# %s\n", e.text);
	return svg;
}

static uint32_t node(struct plan_graph *g, enum plan_node_kind kind,
		     const char *word, uint32_t i, uint32_t box)
{
	char name[PLAN_NAME];

	snprintf(name, sizeof(name), "%s%u", word, i);
	return (uint32_t)plan_graph_add_node(g, kind, name, box, NULL);
}

static void join(struct plan_graph *g, uint32_t a, uint32_t b, uint64_t mbps,
		 enum plan_link_kind kind)
{
	plan_graph_add_link(g, a, b, mbps, 100, kind, NULL);
}

/* Boxes of GPUs with a full mesh, each GPU on a switch of its own number. */
static struct plan_graph *boxes(uint32_t nboxes, uint32_t ngpus,
				uint32_t nswitches)
{
	struct plan_graph *g = plan_graph_new("a <wide> & \"odd\" fabric");
	uint32_t b, i, k, gpu[64], top, *sw;

	sw = calloc(nswitches, sizeof(*sw));
	top = node(g, PLAN_ROOT_COMPLEX, "server", 0, PLAN_NONE);
	for (i = 0; i < nswitches; i++) {
		sw[i] = node(g, PLAN_PARTITION, "switch", i, PLAN_NONE);
		join(g, top, sw[i], 27000, PLAN_ROOT);
	}
	for (b = 0; b < nboxes; b++)
		for (i = 0; i < ngpus; i++) {
			gpu[i] = node(g, PLAN_GPU, "gpu", b * ngpus + i, b);
			join(g, gpu[i], sw[(b + i) % nswitches], 27000,
			     PLAN_CABLE);
			for (k = 0; k < i; k++)
				join(g, gpu[k], gpu[i], 48000, PLAN_XGMI);
		}
	free(sw);
	return g;
}

static struct plan_graph *ring(uint32_t n)
{
	struct plan_graph *g = plan_graph_new("ring");
	uint32_t i;

	for (i = 0; i < n; i++)
		node(g, PLAN_GPU, "g", i, PLAN_NONE);
	for (i = 0; i < n; i++)
		join(g, i, (i + 1) % n, 1000 + i, PLAN_NVLINK);
	return g;
}

/* Everything that is in box 0, or the first half. */
static void make_cut(const struct plan_graph *g, struct plan_cut *c)
{
	uint32_t i;

	memset(c, 0, sizeof(*c));
	c->inside = calloc(g->nnodes, sizeof(*c->inside));
	c->edges = calloc(g->nedges, sizeof(*c->edges));
	for (i = 0; i < g->nnodes; i++) {
		c->inside[i] = g->nboxes ? !g->nodes[i].box :
			       i < g->nnodes / 2;
		c->ninside += c->inside[i] && g->nodes[i].rank != PLAN_NONE;
	}
	for (i = 0; i < g->nedges; i++)
		if (c->inside[g->edges[i].from] &&
		    !c->inside[g->edges[i].to]) {
			c->edges[c->nedges++] = i;
			c->capacity += g->edges[i].capacity;
		}
}

static void drop_cut(struct plan_cut *c)
{
	free(c->inside);
	free(c->edges);
}

/* Every link is drawn once, and of the cut exactly its edges are marked. */
static void check(const struct plan_graph *g, const char *what)
{
	struct plan_cut c;
	struct seen s;
	size_t length, again;
	uint32_t i, wrong = 0, unmarked = 0, in = 0;
	char *svg, *same;

	make_cut(g, &c);
	svg = draw(g, NULL, &c, &length);
	same = draw(g, NULL, &c, &again);
	ok(look(svg, length, g->nedges, &s), "%s: well-formed", what);
	for (i = 0; i < g->nedges; i++) {
		wrong += s.drawn[i] != 1;
		for (in = 0; in < c.nedges && c.edges[in] != i; in++)
			;
		unmarked += s.marked[i] != (in < c.nedges);
	}
	ok(!wrong && !s.bad, "%s: each link is drawn once", what);
	ok(!unmarked && !s.marks == !c.nedges, "%s: the cut's %u edges are marked, no others",
	   what, c.nedges);
	for (i = in = 0; i < g->nnodes; i++)
		in += c.inside[i];
	/* One more is in the legend. */
	ok(s.shaded == in + 1, "%s: its inside is shaded", what);
	ok(length == again && !memcmp(svg, same, length),
	   "%s: the same each time", what);
	ok(strstr(s.words, " out, ") && strstr(s.words, "together"),
	   "%s: and its sum is told", what);
	forget(&s);
	drop_cut(&c);
	free(svg);
	free(same);
}

/* Loads are those of the schedule, and the busiest link is said. */
static void loads(void)
{
	struct plan_graph *g = ring(3);
	struct plan_schedule *p = plan_schedule_new(PLAN_BROADCAST, 3, 0);
	uint32_t way[2] = { 0, 2 };	/* g0 - g1 - g2 */
	struct seen s;
	size_t length;
	char *svg;

	plan_schedule_chunk(p, 0, 0, 1);
	plan_schedule_transfer(p, (uint32_t)plan_schedule_route(p, g, way, 1),
			       false);
	plan_schedule_transfer(p, (uint32_t)plan_schedule_route(p, g, way + 1,
								1), false);
	ok(!plan_schedule_finish(p), "a broadcast along a chain");
	svg = draw(g, p, NULL, &length);
	ok(look(svg, length, g->nedges, &s), "well-formed");
	has(s.words, "broadcast of 3 GPUs: 1 GB/s algorithm");
	has(s.words, "busiest: g0 to g1");
	has(s.words, "g0 to g1: nvlink, 1 GB/s, carries 1 (100 %)");
	has(s.words, "g1 to g2: nvlink, 1 GB/s, carries 1 (100 %)");
	has(s.words, "g2 to g0: nvlink, 1 GB/s, carries 0 (0 %)");
	ok(!s.marks, "no cut, no marks");
	forget(&s);
	free(svg);
	plan_schedule_free(p);
	plan_graph_free(g);
}

/* 1,024 GPUs: boxes are drawn as one, and it takes no time. */
static void large(void)
{
	struct plan_graph *g = boxes(64, 16, 32), *ring4096 = ring(PLAN_GPUS);
	struct plan_cut c;
	struct seen s;
	size_t length;
	clock_t start = clock();
	double took;
	char *svg;

	make_cut(g, &c);
	svg = draw(g, NULL, &c, &length);
	took = (double)(clock() - start) / CLOCKS_PER_SEC;
	ok(look(svg, length, g->nedges, &s) && !s.bad, "1,024: well-formed");
	ok(s.paths > 64 * 15 && s.paths < 64 * 16 + 32 + 16,
	   "1,024: %u lines, meshes are not among them", s.paths);
	ok(length < 2u << 20, "1,024: %zu bytes", length);
	ok(strstr(s.words, "16 GPUs, 120 xgmi links, 48 GB/s"),
	   "1,024: a box says what is inside");
	ok(took < 5, "1,024: %.2f s", took);
	forget(&s);
	drop_cut(&c);
	free(svg);
	plan_graph_free(g);
	svg = draw(ring4096, NULL, NULL, &length);
	ok(look(svg, length, ring4096->nedges, &s) && !s.bad,
	   "a ring of as many GPUs as there can be");
	forget(&s);
	free(svg);
	plan_graph_free(ring4096);
}

static void refused(void)
{
	struct plan_graph *g = ring(4);
	struct plan_schedule *p = plan_schedule_new(PLAN_BROADCAST, 4, 0);
	struct plan_error e = { 0 };
	struct plan_cut c;
	char small[16];
	FILE *f = fmemopen(small, sizeof(small), "w");

	ok(plan_draw(g, p, NULL, f, &e) == -EINVAL,
	   "a schedule that does nothing has no picture");
	has(e.text, "no rate");
	make_cut(g, &c);
	c.edges[0] = 1000;
	ok(plan_draw(g, NULL, &c, f, &e) == -EINVAL, "edges that are not");
	has(e.text, "no edge 1000");
	ok(plan_draw(g, NULL, NULL, f, &e) == -EIO, "no room is told");
	fclose(f);
	drop_cut(&c);
	plan_schedule_free(p);
	plan_graph_free(g);
}

/* A graph with loops in .up, nodes of every kind and nothing joined. */
static void odd(void)
{
	struct plan_graph *g = plan_graph_new("odd");
	struct seen s;
	size_t length;
	uint32_t i, at;
	char *svg;

	svg = draw(g, NULL, NULL, &length);
	ok(look(svg, length, 0, &s), "an empty graph");
	forget(&s);
	free(svg);
	for (i = 1; i < PLAN_NODE_KINDS; i++) {
		at = node(g, i, "n", i, i % 3);
		g->nodes[at].up = i % 5;
	}
	svg = draw(g, NULL, NULL, &length);
	ok(look(svg, length, 0, &s), "nothing is joined, parents in a circle");
	has(s.words, "n9");
	forget(&s);
	free(svg);
	plan_graph_free(g);
}

int main(void)
{
	struct plan_graph *g = boxes(2, 8, 3);
	char what[32];
	uint64_t seed;

	check(g, "two boxes");
	plan_graph_free(g);
	g = boxes(1, 40, 2);
	check(g, "a box of 40");
	plan_graph_free(g);
	g = ring(9);
	check(g, "a ring");
	plan_graph_free(g);
	for (seed = 1; seed <= 30; seed++) {
		g = random_graph(seed, 12, 6);
		snprintf(what, sizeof(what), "random %u", (unsigned int)seed);
		check(g, what);
		plan_graph_free(g);
	}
	loads();
	large();
	refused();
	odd();
	return tap_done();
}
