// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Links in a picture: all edges between two items become one line. Its attribute
 * data-edges lists the indices of the edges it stands for, data-cut those of the
 * cut. Called by svg.c and svg_boxes.c.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/output/svg.h"

#define MANY_LINES	6000u	/* that are drawn; a picture shows no more */
#define MANY_LABELS	64u
#define MANY_EDGES	64u	/* that a line lists one by one */

/* ---- from edges to lines ------------------------------------------------ */

struct pair {
	uint32_t unit;		/* meshes: one after the other */
	uint32_t a, b, edge;
};

static int by_pair(const void *x, const void *y)
{
	const struct pair *p = x, *q = y;

	if (p->unit != q->unit)
		return p->unit < q->unit ? -1 : 1;
	if (p->a != q->a)
		return p->a < q->a ? -1 : 1;
	if (p->b != q->b)
		return p->b < q->b ? -1 : 1;
	return p->edge < q->edge ? -1 : p->edge > q->edge;
}

static void add_line(struct svg *p, struct svg_line *lines, uint32_t *nlines,
		     const struct pair *pairs, uint32_t n, uint32_t *used)
{
	struct svg_line *line = NULL;
	uint32_t i;

	for (i = 0; i < n; i++) {
		double share = svg_share(p, pairs[i].edge);

		if (!line || line->a != pairs[i].a || line->b != pairs[i].b) {
			line = &lines[(*nlines)++];
			*line = (struct svg_line){ pairs[i].a, pairs[i].b, *used,
					       0, 0, 0 };
		}
		p->order[(*used)++] = pairs[i].edge;
		line->n++;
		line->share = fmax(line->share, share);
		line->ncut += p->in_cut && p->in_cut[pairs[i].edge];
	}
}

/* Is it drawn in the circle of a box, not as a line between items? */
static bool is_mesh(const struct svg *p, const struct plan_edge *d)
{
	const struct layout *l = &p->l;
	const struct plan_node *n = p->g->nodes;

	if (l->circle || l->unit[d->from] == PLAN_NONE ||
	    l->unit[d->from] != l->unit[d->to])
		return false;
	return l->together ||
	       (n[d->from].kind == PLAN_GPU && n[d->to].kind == PLAN_GPU);
}

static void pair_of(const struct svg *p, uint32_t edge, bool mesh,
		    struct pair *out)
{
	const struct plan_edge *d = &p->g->edges[edge];
	uint32_t a = mesh ? d->from : p->l.item[d->from];
	uint32_t b = mesh ? d->to : p->l.item[d->to];

	*out = (struct pair){
		mesh ? p->l.unit[a] : 0, a < b ? a : b, a < b ? b : a, edge
	};
}

static void index_mesh(struct svg *p)
{
	uint32_t i, u = 0;

	for (i = 0; i < p->nmesh; i++)
		while (u <= p->l.unit[p->mesh[i].a])
			p->mesh_of[u++] = i;
	while (u <= p->l.nunits)
		p->mesh_of[u++] = p->nmesh;
}

int svg_lines_make(struct svg *p)
{
	uint32_t n = p->g->nedges, i, used = 0, way, count;
	struct pair *pairs = malloc((n + 1) * sizeof(*pairs));

	p->order = malloc((n + 1) * sizeof(*p->order));
	p->lines = calloc(n + 1, sizeof(*p->lines));
	p->mesh = calloc(n + 1, sizeof(*p->mesh));
	p->mesh_of = calloc(p->l.nunits + 1, sizeof(*p->mesh_of));
	if (!pairs || !p->order || !p->lines || !p->mesh || !p->mesh_of) {
		free(pairs);
		return -ENOMEM;
	}
	for (way = 0; way < 2; way++) {
		for (i = count = 0; i < n; i++)
			if (is_mesh(p, &p->g->edges[i]) == way)
				pair_of(p, i, way, &pairs[count++]);
		qsort(pairs, count, sizeof(*pairs), by_pair);
		add_line(p, way ? p->mesh : p->lines,
			 way ? &p->nmesh : &p->nlines, pairs, count, &used);
	}
	free(pairs);
	index_mesh(p);
	return 0;
}

/* ---- lines -------------------------------------------------------------- */

/* Sum of the capacities, or loads, of a line's edges one way. */
static double one_way(const struct svg *p, const struct svg_line *line,
		      const double *of, bool back)
{
	const struct plan_edge *edges = p->g->edges;
	uint32_t first = edges[p->order[line->first]].from, i;
	double sum = 0;

	for (i = 0; i < line->n; i++) {
		uint32_t d = p->order[line->first + i];
		bool same = p->l.item[edges[d].from] == p->l.item[first];

		if (same != back)
			sum += of ? of[d] : edges[d].capacity;
	}
	return sum;
}

static void title_edge(const struct svg *p, uint32_t edge)
{
	const struct plan_edge *d = &p->g->edges[edge];
	char a[24], b[24];

	fprintf(p->f, "%s to %s: %s, %s GB/s", p->g->nodes[d->from].name,
		p->g->nodes[d->to].name, plan_link_kind_name(d->kind),
		svg_gbps(d->capacity, a));
	if (p->load)
		fprintf(p->f, ", carries %s (%.0f %%)", svg_gbps(p->load[edge], b),
			100 * svg_share(p, edge));
	if (p->in_cut && p->in_cut[edge])
		fputs(", crosses the cut", p->f);
	fputc('\n', p->f);
}

static void list_edges(const struct svg *p, const struct svg_line *line)
{
	uint32_t i, n = 0;

	fputs(" data-edges=\"", p->f);
	for (i = 0; i < line->n; i++)
		fprintf(p->f, "%s%u", i ? " " : "", p->order[line->first + i]);
	fputc('"', p->f);
	if (!line->ncut)
		return;
	fputs(" data-cut=\"", p->f);
	for (i = 0; i < line->n; i++)
		if (p->in_cut[p->order[line->first + i]])
			fprintf(p->f, "%s%u", n++ ? " " : "",
				p->order[line->first + i]);
	fputc('"', p->f);
}

/* What a line, a mesh and so on have in common: looks, edges, words. */
void svg_line_attributes(const struct svg *p, const struct svg_line *line,
			    double thin)
{
	enum plan_link_kind kind = p->g->edges[p->order[line->first]].kind;
	char colour[8];
	double width = p->load ? thin + 2.6 * thin * line->share : 1.4 * thin;

	fprintf(p->f, " class=\"link%s\" stroke=\"%s\" stroke-width=\"%.2f\"",
		line->ncut ? " cut" : "",
		p->load ? svg_load_colour(line->share, colour) : svg_kind_colour(kind),
		width);
	list_edges(p, line);
}

void svg_line_title(const struct svg *p, const struct svg_line *line)
{
	char a[24], b[24];
	uint32_t i;

	fputs("<title>", p->f);
	if (line->n > MANY_EDGES)
		fprintf(p->f, "%u links: %s GB/s one way, %s the other\n",
			line->n, svg_gbps(one_way(p, line, NULL, false), a),
			svg_gbps(one_way(p, line, NULL, true), b));
	for (i = 0; i < line->n && i < MANY_EDGES; i++)
		title_edge(p, p->order[line->first + i]);
	fputs("</title>", p->f);
}

/* Ends of a line: below the one that is higher, above the one that is lower. */
static void ends(const struct svg *p, const struct svg_line *line,
		 struct svg_point *a, struct svg_point *b)
{
	const struct layout_item *i = &p->l.items[line->a];
	const struct layout_item *k = &p->l.items[line->b];

	*a = (struct svg_point){ i->x, i->y };
	*b = (struct svg_point){ k->x, k->y };
	if (p->l.circle)
		return;
	if (i->y > k->y) {
		a->y -= i->h / 2;
		b->y += k->h / 2;
	} else if (i->y < k->y) {
		a->y += i->h / 2;
		b->y -= k->h / 2;
	} else {	/* bows over, or under if it is the lowest row */
		a->y += i->layer ? -i->h / 2 : i->h / 2;
		b->y = a->y;
	}
}

static void draw_line(const struct svg *p, const struct svg_line *line,
		      double thin)
{
	struct svg_point a, b;
	double bow;

	ends(p, line, &a, &b);
	fprintf(p->f, "<path d=\"M%.1f %.1f", a.x, a.y);
	if (a.y == b.y && !p->l.circle) {
		bow = fmin(14 + 0.05 * fabs(a.x - b.x), LAYOUT_BOW);
		if (p->l.items[line->a].layer)
			bow = -bow;
		fprintf(p->f, "Q%.1f %.1f %.1f %.1f", (a.x + b.x) / 2,
			a.y + 2 * bow, b.x, b.y);
	} else {
		fprintf(p->f, "L%.1f %.1f", b.x, b.y);
	}
	fputs("\" fill=\"none\"", p->f);
	svg_line_attributes(p, line, thin);
	fputc('>', p->f);
	svg_line_title(p, line);
	fputs("</path>\n", p->f);
}

/* "27", "27|13" if it is not the same both ways, "25.3/27" with a schedule. */
static bool label_words(const struct svg *p, const struct svg_line *line,
			char *buf, size_t size)
{
	double there = one_way(p, line, NULL, false);
	double back = one_way(p, line, NULL, true), load;
	char a[24], b[24];

	if (p->load) {
		load = fmax(one_way(p, line, p->load, false),
			    one_way(p, line, p->load, true));
		snprintf(buf, size, "%s/%s", svg_gbps(load, a),
			 svg_gbps(fmax(there, back), b));
		return load >= 0.5;
	}
	if (there == back || !there || !back)
		snprintf(buf, size, "%s", svg_gbps(fmax(there, back), a));
	else
		snprintf(buf, size, "%s|%s", svg_gbps(there, a), svg_gbps(back, b));
	return true;
}

/* Labels so far, and items: what a label must not cover. */
struct taken {
	uint32_t n;
	struct {
		double x, y, w, h;
	} v[LAYOUT_SINGLE * 4 + MANY_LABELS];
};

static bool is_taken(const struct taken *t, double x, double y, double w,
		     double h)
{
	uint32_t i;

	for (i = 0; i < t->n; i++)
		if (fabs(t->v[i].x - x) < (t->v[i].w + w) / 2 &&
		    fabs(t->v[i].y - y) < (t->v[i].h + h) / 2)
			return true;
	return false;
}

static void take(struct taken *t, double x, double y, double w, double h)
{
	if (t->n == sizeof(t->v) / sizeof(*t->v))
		return;
	t->v[t->n].x = x;
	t->v[t->n].y = y;
	t->v[t->n].w = w;
	t->v[t->n++].h = h;
}

/* Near its lower end, where lines of a bundle are apart; else where it can. */
static void label_line(const struct svg *p, const struct svg_line *line,
		       struct taken *taken)
{
	static const double at[] = { 0.7, 0.6, 0.8, 0.5, 0.4, 0.3 };
	struct svg_point from, to;
	double t, x, y, w;
	char words[64];
	size_t i;

	if (!label_words(p, line, words, sizeof(words)))
		return;
	w = 5.6 * strlen(words) + 4;
	ends(p, line, &from, &to);
	for (i = 0; i < sizeof(at) / sizeof(*at); i++) {
		t = from.y > to.y ? 1 - at[i] : at[i];
		x = from.x + t * (to.x - from.x);
		y = from.y + t * (to.y - from.y);
		if (from.y == to.y && !p->l.circle)
			y -= p->l.items[line->a].layer ? 12 : -12;
		if (is_taken(taken, x, y, w, 11))
			continue;
		take(taken, x, y, w, 11);
		svg_text(p, x, y + 3, line->ncut ? "c n" : "c", "%s", words);
		return;
	}
}

/* Those of the cut first: if there is no room for all, they are there. */
static void label_lines(const struct svg *p)
{
	struct taken *taken = calloc(1, sizeof(*taken));
	uint32_t i;
	int way;

	if (!taken)
		return;		/* a picture without labels */
	for (i = 0; i < p->l.nitems; i++)
		take(taken, p->l.items[i].x, p->l.items[i].y,
		     p->l.items[i].w, p->l.items[i].h);
	for (way = 1; way >= 0; way--)
		for (i = 0; i < p->nlines; i++)
			if ((p->lines[i].ncut > 0) == way &&
			    (p->nlines <= MANY_LABELS ||
			     (way && p->cut->nedges <= MANY_LABELS)))
				label_line(p, &p->lines[i], taken);
	free(taken);
}

/* Lines of which there are too many: the ones that are loaded least. */
static double least_share(const struct svg *p)
{
	uint32_t histogram[1001] = { 0 }, i, n = 0;
	int k;

	for (i = 0; i < p->nlines; i++)
		histogram[(int)(p->lines[i].share * 1000)]++;
	for (k = 1000; k >= 0 && n + histogram[k] <= MANY_LINES; k--)
		n += histogram[k];
	return k < 0 ? 0 : (k + 1) / 1000.0;
}

void svg_lines(const struct svg *p)
{
	uint32_t i, drawn = 0;
	double least = p->nlines > MANY_LINES && p->load ? least_share(p) : 0;
	double thin = p->nlines > 1000 ? 0.5 : p->nlines > 200 ? 0.8 : 1.3;
	int way;

	fputs("<g id=\"links\">\n", p->f);
	for (way = 0; way < 2; way++)	/* the cut's on top of the others */
		for (i = 0; i < p->nlines; i++) {
			const struct svg_line *line = &p->lines[i];

			if ((line->ncut > 0) != way)
				continue;
			if (!way && (line->share < least ||
				     drawn >= MANY_LINES))
				continue;
			drawn++;
			draw_line(p, line, thin);
		}
	label_lines(p);
	fputs("</g>\n", p->f);
	if (drawn < p->nlines)
		svg_text(p, SVG_MARGIN, -12, "s", "%u of %u links are drawn",
		     drawn, p->nlines);
}
