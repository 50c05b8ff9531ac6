// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pictures: SVG of a fabric with the load of a schedule and a cut. Where things
 * stand is layout.c's matter; here they become lines, boxes and words.
 *
 * All links between two items are one line. Its attribute data-edges has the
 * indices of the edges that it stands for, data-cut those of the cut.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "show/layout.h"

#define MARGIN		24.0
#define HEAD		64.0	/* title lines */
#define LEGEND		96.0
#define MIN_WIDTH	760.0
#define MANY_LINES	6000u	/* that are drawn; a picture shows no more */
#define MANY_LABELS	64u
#define MANY_EDGES	64u	/* that a line lists one by one */

/* All edges between two items, in both directions. */
struct line {
	uint32_t a, b;		/* items; circles of meshes: nodes */
	uint32_t first, n;	/* in picture.order */
	double share;		/* of the direction that is loaded most, 0 to 1 */
	uint32_t ncut;
};

struct picture {
	const struct plan_graph *g;
	const struct plan_schedule *schedule;
	const struct plan_cut *cut;
	FILE *f;
	struct layout l;
	double *load;		/* MB/s of each edge; NULL without schedule */
	double rate;		/* MB/s of algbw */
	uint32_t busiest;	/* edge */
	bool *in_cut;		/* of each edge; NULL without cut */
	uint32_t *order;	/* edges by line */
	uint32_t nlines;
	struct line *lines;	/* between items */
	uint32_t nmesh;
	struct line *mesh;	/* between GPUs of a unit, in the same order[] */
	uint32_t *mesh_of;	/* of each unit: its first in mesh, and the end */
};

/* ---- words -------------------------------------------------------------- */

static void escape(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '&')
			fputs("&amp;", f);
		else if (*s == '<')
			fputs("&lt;", f);
		else if (*s == '>')
			fputs("&gt;", f);
		else if (*s == '"')
			fputs("&quot;", f);
		else if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
			fputc('?', f);
		else
			fputc(*s, f);
	}
}

/* "27", "1.28", "0.001": GB/s without needless digits. */
static const char *gbps(double mbps, char buf[24])
{
	double v = mbps / 1000;
	char *end;

	snprintf(buf, 24, v >= 10 ? "%.1f" : v >= 1 ?
		 "%.2f" : "%.3f", v);
	if (strchr(buf, '.')) {
		end = buf + strlen(buf);
		while (end[-1] == '0')
			*--end = '\0';
		if (end[-1] == '.')
			end[-1] = '\0';
	}
	return buf;
}

static __attribute__((format(printf, 5, 6))) void
text(const struct picture *p, double x, double y, const char *class,
     const char *fmt, ...)
{
	char buf[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	fprintf(p->f, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
	escape(p->f, buf);
	fputs("</text>\n", p->f);
}

/* ---- loads and colours -------------------------------------------------- */

static double share_of(const struct picture *p, uint32_t edge)
{
	double s = p->load ? p->load[edge] / p->g->edges[edge].capacity : 0;

	return s > 1 ? 1 : s;
}

static const struct {
	double at;
	int r, g, b;
} ramp[] = {
	{ 0.0, 0xc9, 0xd3, 0xdc },
	{ 0.4, 0x5b, 0x9b, 0xc8 },
	{ 0.7, 0xe0, 0xa0, 0x30 },
	{ 1.0, 0xc8, 0x2a, 0x2a },
};

static const char *load_colour(double share, char buf[8])
{
	size_t i = 1;
	double t;

	while (i < sizeof(ramp) / sizeof(*ramp) - 1 && share > ramp[i].at)
		i++;
	t = (share - ramp[i - 1].at) / (ramp[i].at - ramp[i - 1].at);
	snprintf(buf, 8, "#%02x%02x%02x",
		 (int)lround(ramp[i - 1].r + t * (ramp[i].r - ramp[i - 1].r)),
		 (int)lround(ramp[i - 1].g + t * (ramp[i].g - ramp[i - 1].g)),
		 (int)lround(ramp[i - 1].b + t * (ramp[i].b - ramp[i - 1].b)));
	return buf;
}

static const char *kind_colour(enum plan_link_kind kind)
{
	static const char *const colours[PLAN_LINK_KINDS] = {
		[PLAN_PCIE] = "#5f7488", [PLAN_CABLE] = "#2f6fa8",
		[PLAN_ISL] = "#1f8f86", [PLAN_XGMI] = "#c77b1e",
		[PLAN_NVLINK] = "#5a9216", [PLAN_ROOT] = "#7a6a9e",
		[PLAN_SMP] = "#a0568a", [PLAN_OTHER] = "#777777",
	};

	return colours[kind];
}

static int find_loads(struct picture *p, struct plan_error *e)
{
	const struct plan_schedule *s = p->schedule;
	uint64_t *loads = calloc(p->g->nedges + 1, sizeof(*loads));
	struct plan_ratio rate;
	uint32_t i;
	int err;

	p->load = calloc(p->g->nedges + 1, sizeof(*p->load));
	err = loads && p->load ? plan_schedule_loads(s, p->g, loads) : -ENOMEM;
	if (!err)
		err = plan_schedule_rate(s, p->g, &rate, &p->busiest);
	if (err) {
		free(loads);
		return plan_fail(e, -err, err == -ENOMEM ? "out of memory" :
				 "%s: the schedule has no rate on this graph; draw it on the graph that it was made for",
				 p->g->name);
	}
	p->rate = plan_ratio_value(rate);
	for (i = 0; i < p->g->nedges; i++)
		p->load[i] = p->rate * loads[i] /
			     ((double)s->shard_weight * s->nshards);
	free(loads);
	return 0;
}

static int mark_cut(struct picture *p, struct plan_error *e)
{
	uint32_t i;

	p->in_cut = calloc(p->g->nedges + 1, sizeof(*p->in_cut));
	if (!p->in_cut)
		return plan_fail(e, ENOMEM, "out of memory");
	for (i = 0; i < p->cut->nedges; i++) {
		if (p->cut->edges[i] >= p->g->nedges)
			return plan_fail(e, EINVAL, "%s has no edge %u that the cut names; draw the cut of this graph",
					 p->g->name, p->cut->edges[i]);
		p->in_cut[p->cut->edges[i]] = true;
	}
	return 0;
}

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

static void add_line(struct picture *p, struct line *lines, uint32_t *nlines,
		     const struct pair *pairs, uint32_t n, uint32_t *used)
{
	struct line *line = NULL;
	uint32_t i;

	for (i = 0; i < n; i++) {
		double share = share_of(p, pairs[i].edge);

		if (!line || line->a != pairs[i].a || line->b != pairs[i].b) {
			line = &lines[(*nlines)++];
			*line = (struct line){ pairs[i].a, pairs[i].b, *used,
					       0, 0, 0 };
		}
		p->order[(*used)++] = pairs[i].edge;
		line->n++;
		line->share = fmax(line->share, share);
		line->ncut += p->in_cut && p->in_cut[pairs[i].edge];
	}
}

/* Is it drawn in the circle of a box, not as a line between items? */
static bool is_mesh(const struct picture *p, const struct plan_edge *d)
{
	const struct layout *l = &p->l;
	const struct plan_node *n = p->g->nodes;

	if (l->circle || l->unit[d->from] == PLAN_NONE ||
	    l->unit[d->from] != l->unit[d->to])
		return false;
	return l->together ||
	       (n[d->from].kind == PLAN_GPU && n[d->to].kind == PLAN_GPU);
}

static void pair_of(const struct picture *p, uint32_t edge, bool mesh,
		    struct pair *out)
{
	const struct plan_edge *d = &p->g->edges[edge];
	uint32_t a = mesh ? d->from : p->l.item[d->from];
	uint32_t b = mesh ? d->to : p->l.item[d->to];

	*out = (struct pair){
		mesh ? p->l.unit[a] : 0, a < b ? a : b, a < b ? b : a, edge
	};
}

static void index_mesh(struct picture *p)
{
	uint32_t i, u = 0;

	for (i = 0; i < p->nmesh; i++)
		while (u <= p->l.unit[p->mesh[i].a])
			p->mesh_of[u++] = i;
	while (u <= p->l.nunits)
		p->mesh_of[u++] = p->nmesh;
}

static int make_lines(struct picture *p)
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
static double one_way(const struct picture *p, const struct line *line,
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

static void say_edge(const struct picture *p, uint32_t edge)
{
	const struct plan_edge *d = &p->g->edges[edge];
	char a[24], b[24];

	fprintf(p->f, "%s to %s: %s, %s GB/s", p->g->nodes[d->from].name,
		p->g->nodes[d->to].name, plan_link_kind_name(d->kind),
		gbps(d->capacity, a));
	if (p->load)
		fprintf(p->f, ", carries %s (%.0f %%)", gbps(p->load[edge], b),
			100 * share_of(p, edge));
	if (p->in_cut && p->in_cut[edge])
		fputs(", crosses the cut", p->f);
	fputc('\n', p->f);
}

static void list_edges(const struct picture *p, const struct line *line)
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
static void line_attributes(const struct picture *p, const struct line *line,
			    double thin)
{
	enum plan_link_kind kind = p->g->edges[p->order[line->first]].kind;
	char colour[8];
	double width = p->load ? thin + 2.6 * thin * line->share : 1.4 * thin;

	fprintf(p->f, " class=\"link%s\" stroke=\"%s\" stroke-width=\"%.2f\"",
		line->ncut ? " cut" : "",
		p->load ? load_colour(line->share, colour) : kind_colour(kind),
		width);
	list_edges(p, line);
}

static void line_title(const struct picture *p, const struct line *line)
{
	char a[24], b[24];
	uint32_t i;

	fputs("<title>", p->f);
	if (line->n > MANY_EDGES)
		fprintf(p->f, "%u links: %s GB/s one way, %s the other\n",
			line->n, gbps(one_way(p, line, NULL, false), a),
			gbps(one_way(p, line, NULL, true), b));
	for (i = 0; i < line->n && i < MANY_EDGES; i++)
		say_edge(p, p->order[line->first + i]);
	fputs("</title>", p->f);
}

struct point {
	double x, y;
};

/* Ends of a line: below the one that is higher, above the one that is lower. */
static void ends(const struct picture *p, const struct line *line,
		 struct point *a, struct point *b)
{
	const struct layout_item *i = &p->l.items[line->a];
	const struct layout_item *k = &p->l.items[line->b];

	*a = (struct point){ i->x, i->y };
	*b = (struct point){ k->x, k->y };
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

static void draw_line(const struct picture *p, const struct line *line,
		      double thin)
{
	struct point a, b;
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
	line_attributes(p, line, thin);
	fputc('>', p->f);
	line_title(p, line);
	fputs("</path>\n", p->f);
}

/* "27", "27|13" if it is not the same both ways, "25.3/27" with a schedule. */
static bool label_words(const struct picture *p, const struct line *line,
			char *buf, size_t size)
{
	double there = one_way(p, line, NULL, false);
	double back = one_way(p, line, NULL, true), load;
	char a[24], b[24];

	if (p->load) {
		load = fmax(one_way(p, line, p->load, false),
			    one_way(p, line, p->load, true));
		snprintf(buf, size, "%s/%s", gbps(load, a),
			 gbps(fmax(there, back), b));
		return load >= 0.5;
	}
	if (there == back || !there || !back)
		snprintf(buf, size, "%s", gbps(fmax(there, back), a));
	else
		snprintf(buf, size, "%s|%s", gbps(there, a), gbps(back, b));
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
static void label_line(const struct picture *p, const struct line *line,
		       struct taken *taken)
{
	static const double at[] = { 0.7, 0.6, 0.8, 0.5, 0.4, 0.3 };
	struct point from, to;
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
		text(p, x, y + 3, line->ncut ? "c n" : "c", "%s", words);
		return;
	}
}

/* Those of the cut first: if there is no room for all, they are there. */
static void label_lines(const struct picture *p)
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
static double least_share(const struct picture *p)
{
	uint32_t histogram[1001] = { 0 }, i, n = 0;
	int k;

	for (i = 0; i < p->nlines; i++)
		histogram[(int)(p->lines[i].share * 1000)]++;
	for (k = 1000; k >= 0 && n + histogram[k] <= MANY_LINES; k--)
		n += histogram[k];
	return k < 0 ? 0 : (k + 1) / 1000.0;
}

static void draw_lines(const struct picture *p)
{
	uint32_t i, drawn = 0;
	double least = p->nlines > MANY_LINES && p->load ? least_share(p) : 0;
	double thin = p->nlines > 1000 ? 0.5 : p->nlines > 200 ? 0.8 : 1.3;
	int way;

	fputs("<g id=\"links\">\n", p->f);
	for (way = 0; way < 2; way++)	/* the cut's on top of the others */
		for (i = 0; i < p->nlines; i++) {
			const struct line *line = &p->lines[i];

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
		text(p, MARGIN, -12, "s", "%u of %u links are drawn",
		     drawn, p->nlines);
}

/* ---- boxes and nodes ---------------------------------------------------- */

static bool node_inside(const struct picture *p, uint32_t node)
{
	return p->cut && p->cut->inside[node];
}

/* GPUs of a unit that are inside the cut. */
static uint32_t unit_inside(const struct picture *p, uint32_t u)
{
	const struct layout_unit *unit = &p->l.units[u];
	uint32_t i, n = 0;

	for (i = 0; i < unit->ngpus; i++)
		n += node_inside(p, unit->gpus[i]);
	return n;
}

static void draw_frame(const struct picture *p, uint32_t u)
{
	const struct layout_unit *unit = &p->l.units[u];
	char name[PLAN_NAME];

	if (unit->box == PLAN_NONE || p->l.circle || p->l.together)
		return;
	fprintf(p->f, "<rect class=\"frame%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"10\"/>\n",
		unit_inside(p, u) == unit->ngpus ? " inside" : "", unit->x,
		unit->y, unit->w, unit->h);
	text(p, unit->x + 10, unit->y + unit->h - 8, "t", "%s",
	     layout_box_name(p->g, &p->l, unit, name, sizeof(name)));
}

/* What the mesh of a box carries, in one line. */
struct mesh_sum {
	uint32_t links, ncut;
	uint64_t low, high;	/* capacity */
	double least, most;	/* share */
	double cut;		/* MB/s that cross */
	enum plan_link_kind kind; /* 0: several */
};

static void sum_mesh(const struct picture *p, uint32_t u, struct mesh_sum *s)
{
	uint32_t i, k;

	*s = (struct mesh_sum){ .low = ~0ull, .least = 1 };
	for (i = p->mesh_of[u]; i < p->mesh_of[u + 1]; i++) {
		const struct line *line = &p->mesh[i];

		for (k = 0; k < line->n; k++) {
			uint32_t edge = p->order[line->first + k];
			const struct plan_edge *d = &p->g->edges[edge];
			double share = share_of(p, edge);

			s->kind = s->links && s->kind != d->kind ? 0 : d->kind;
			s->links++;
			s->low = d->capacity < s->low ? d->capacity : s->low;
			s->high = d->capacity > s->high ? d->capacity :
				  s->high;
			s->least = fmin(s->least, share);
			s->most = fmax(s->most, share);
			if (p->in_cut && p->in_cut[edge]) {
				s->ncut++;
				s->cut += d->capacity;
			}
		}
	}
}

/* The words; both directions of a link are one. */
static void mesh_words(const struct picture *p, const struct mesh_sum *s,
		       char *buf, size_t size)
{
	char a[24], b[24];
	int n;

	n = snprintf(buf, size, "%u %s%slink%s, ", (s->links + 1) / 2,
		     s->kind ? plan_link_kind_name(s->kind) : "",
		     s->kind ? " " : "", s->links > 2 ? "s" : "");
	if (s->low == s->high)
		n += snprintf(buf + n, size - n, "%s GB/s", gbps(s->low, a));
	else
		n += snprintf(buf + n, size - n, "%s to %s GB/s",
			      gbps(s->low, a), gbps(s->high, b));
	if (p->load && lround(100 * s->least) == lround(100 * s->most))
		n += snprintf(buf + n, size - n, ", load %.0f %%",
			      100 * s->most);
	else if (p->load)
		n += snprintf(buf + n, size - n, ", load %.0f to %.0f %%",
			      100 * s->least, 100 * s->most);
	if (s->ncut)
		snprintf(buf + n, size - n, "; %u cross the cut: %s GB/s",
			 s->ncut, gbps(s->cut, a));
}

/* Where a GPU is in its box's row: that is its place in the circle. */
static struct point on_circle(const struct layout_unit *unit, uint32_t node)
{
	uint32_t i = 0;
	double angle;

	while (i < unit->ngpus && unit->gpus[i] != node)
		i++;
	angle = 2 * M_PI * i / unit->ngpus - M_PI / 2 + M_PI / unit->ngpus;
	return (struct point){
		unit->chord_x + unit->chord_r * cos(angle),
		unit->chord_y + unit->chord_r * sin(angle),
	};
}

static void draw_chords(const struct picture *p, uint32_t u)
{
	const struct layout_unit *unit = &p->l.units[u];
	uint32_t i, rank;
	struct point a, b;
	char word[16];
	int way;

	for (way = 0; way < 2; way++)
		for (i = p->mesh_of[u]; i < p->mesh_of[u + 1]; i++) {
			if ((p->mesh[i].ncut > 0) != way)
				continue;
			a = on_circle(unit, p->mesh[i].a);
			b = on_circle(unit, p->mesh[i].b);
			fprintf(p->f, "<path d=\"M%.1f %.1fL%.1f %.1f\" fill=\"none\"",
				a.x, a.y, b.x, b.y);
			line_attributes(p, &p->mesh[i], 0.7);
			fputc('>', p->f);
			line_title(p, &p->mesh[i]);
			fputs("</path>\n", p->f);
		}
	for (i = 0; i < unit->ngpus; i++) {
		a = on_circle(unit, unit->gpus[i]);
		rank = p->g->nodes[unit->gpus[i]].rank;
		snprintf(word, sizeof(word), rank == PLAN_NONE ? "-" : "%u",
			 rank);
		fprintf(p->f, "<circle class=\"gpu%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"7.5\"/>\n",
			node_inside(p, unit->gpus[i]) ? " inside" : "", a.x,
			a.y);
		text(p, a.x, a.y + 3, "d", "%s", word);
	}
}

/* A mesh too large for a circle: a bar below the GPUs. */
static void draw_bar(const struct picture *p, uint32_t u)
{
	const struct layout_unit *unit = &p->l.units[u];
	struct line all = p->mesh[p->mesh_of[u]];
	uint32_t i;

	for (i = p->mesh_of[u] + 1; i < p->mesh_of[u + 1]; i++) {
		all.n += p->mesh[i].n;
		all.ncut += p->mesh[i].ncut;
		all.share = fmax(all.share, p->mesh[i].share);
	}
	fprintf(p->f, "<path d=\"M%.1f %.1fH%.1f\" fill=\"none\"",
		unit->x + 14, unit->label_y - 16, unit->x + unit->w - 14);
	line_attributes(p, &all, 2);
	fputs("/>\n", p->f);
}

static void draw_mesh(const struct picture *p, uint32_t u)
{
	const struct layout_unit *unit = &p->l.units[u];
	struct mesh_sum s;
	char words[256];

	if (p->mesh_of[u] == p->mesh_of[u + 1])
		return;
	sum_mesh(p, u, &s);
	mesh_words(p, &s, words, sizeof(words));
	fputs("<g class=\"mesh\">\n", p->f);
	if (!p->l.together && unit->ngpus <= LAYOUT_CHORD)
		draw_chords(p, u);
	else if (!p->l.together)
		draw_bar(p, u);
	if (!p->l.together)
		text(p, unit->x + unit->w / 2, unit->label_y,
		     s.ncut ? "m n" : "m", "%s", words);
	fputs("</g>\n", p->f);
}

static const char *node_class(enum plan_node_kind kind)
{
	switch (kind) {
	case PLAN_GPU:
		return "gpu";
	case PLAN_NIC:
	case PLAN_NET:
		return "nic";
	case PLAN_ROOT_COMPLEX:
	case PLAN_ROOT_PORT:
		return "host";
	default:
		return "switch";
	}
}

static void draw_together(const struct picture *p,
			  const struct layout_item *it)
{
	const struct layout_unit *unit = &p->l.units[it->unit];
	uint32_t inside = unit_inside(p, it->unit);
	char name[PLAN_NAME], words[256], colour[8] = "";
	struct mesh_sum s;

	sum_mesh(p, it->unit, &s);
	mesh_words(p, &s, words, sizeof(words));
	layout_box_name(p->g, &p->l, unit, name, sizeof(name));
	fprintf(p->f, "<g><rect class=\"gpu%s%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"6\"",
		inside == unit->ngpus ? " inside" : inside ? " partly" : "",
		s.ncut ? " cut" : "", it->x - it->w / 2, it->y - it->h / 2,
		it->w, it->h);
	fprintf(p->f, "><title>%s: %u GPUs, %s</title></rect>\n", name,
		unit->ngpus, s.links ? words : "no links inside");
	if (p->load && s.links)
		fprintf(p->f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"4\" fill=\"%s\"/>\n",
			it->x - it->w / 2 + 4, it->y + it->h / 2 - 7,
			it->w - 8, load_colour(s.most, colour));
	text(p, it->x, it->y - 3, "k", "%s", name);
	text(p, it->x, it->y + 10, "d", "%u GPU%s", unit->ngpus,
	     unit->ngpus == 1 ? "" : "s");
	fputs("</g>\n", p->f);
}

static void draw_node(const struct picture *p, const struct layout_item *it)
{
	const struct plan_node *n = &p->g->nodes[it->node];
	bool gpu = n->kind == PLAN_GPU, idle = gpu && n->rank == PLAN_NONE;
	char label[PLAN_NAME];

	fprintf(p->f, "<g><rect class=\"%s%s%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%d\"/>",
		node_class(n->kind), idle ? " idle" : "",
		node_inside(p, it->node) ? " inside" : "", it->x - it->w / 2,
		it->y - it->h / 2, it->w, it->h, gpu ? 5 : 3);
	fprintf(p->f, "<title>%s: %s", n->name, plan_node_kind_name(n->kind));
	if (gpu && !idle)
		fprintf(p->f, ", rank %u", n->rank);
	fprintf(p->f, "%s</title>\n", !p->cut ? "" :
		node_inside(p, it->node) ? ", inside the cut" :
		", outside the cut");
	if (it->h < 20)
		;	/* a dot */
	else if (gpu && !idle) {
		text(p, it->x, it->y - 1, "k", "%s",
		     layout_label(p->g, &p->l, it, label, sizeof(label)));
		text(p, it->x, it->y + 10, "d", "rank %u", n->rank);
	} else {
		text(p, it->x, it->y + 4, "k", "%s",
		     layout_label(p->g, &p->l, it, label, sizeof(label)));
	}
	fputs("</g>\n", p->f);
}

/* ---- the page ----------------------------------------------------------- */

static const char style[] =
	"<style>\n"
	"text{font-family:'DejaVu Sans',Helvetica,Arial,sans-serif;"
	"font-size:11px;fill:#1c2733}\n"
	".h{font-size:17px;font-weight:bold}.s{fill:#4c5b69;font-size:12px}\n"
	".t{font-weight:bold}.k,.d,.c,.m{text-anchor:middle}\n"
	".d{font-size:9px;fill:#4c5b69}.m{font-size:10px;fill:#4c5b69}\n"
	".c{font-size:9px;stroke:#fff;stroke-width:2.5px;paint-order:stroke}\n"
	".n{fill:#7b1fa2;font-weight:bold}\n"
	".frame{fill:#f5f7f9;stroke:#b9c4ce}\n"
	".gpu{fill:#e6f0e2;stroke:#6b8f5a}.idle{fill:#fff;"
	"stroke:#b0b0b0}\n"
	".switch{fill:#e3ebf4;stroke:#5f7f9f}.host{fill:#efe9f5;"
	"stroke:#7a6a9e}\n"
	".nic{fill:#f7efdc;stroke:#a5884a}\n"
	".inside{fill:#f3dff7;stroke:#7b1fa2}.partly{fill:#faf0fc;"
	"stroke:#7b1fa2}\n"
	".cut{stroke-dasharray:6 3}rect.cut{stroke:#7b1fa2;stroke-width:2}\n"
	"</style>\n";

static void draw_head(const struct picture *p, double width, double height)
{
	const struct plan_graph *g = p->g;
	char a[24], b[24];

	fprintf(p->f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<title>",
		width, height, width, height);
	escape(p->f, g->name);
	fprintf(p->f, "</title>\n%s<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		style);
	text(p, MARGIN, 30, "h", "%s", g->name);
	if (!p->load) {
		text(p, MARGIN, 50, "s", "%u GPUs; figures are GB/s in each direction",
		     g->nranks);
		return;
	}
	text(p, MARGIN, 50, "s", "%s of %u GPUs: %s GB/s algorithm, %s GB/s bus bandwidth; busiest: %s to %s",
	     plan_collective_name(p->schedule->collective), p->schedule->nranks,
	     gbps(p->rate, a), gbps(p->rate * plan_ratio_value(
			plan_busbw_factor(p->schedule->collective,
					  p->schedule->nranks)), b),
	     g->nodes[g->edges[p->busiest].from].name,
	     g->nodes[g->edges[p->busiest].to].name);
}

static void legend_load(const struct picture *p, double x, double y)
{
	size_t i;
	char colour[8];

	fputs("<defs><linearGradient id=\"load\">", p->f);
	for (i = 0; i < sizeof(ramp) / sizeof(*ramp); i++)
		fprintf(p->f, "<stop offset=\"%.0f%%\" stop-color=\"%s\"/>",
			100 * ramp[i].at, load_colour(ramp[i].at, colour));
	fprintf(p->f, "</linearGradient></defs>\n<rect x=\"%.1f\" y=\"%.1f\" width=\"160\" height=\"9\" fill=\"url(#load)\"/>\n",
		x, y - 8);
	text(p, x + 170, y, "s", "load: 0 to 100 %% of a link's capacity, the busier direction; labels: carried/capacity, GB/s");
}

/* Kinds that there are, with their colours. */
static void legend_kinds(const struct picture *p, double x, double y)
{
	uint64_t count[PLAN_LINK_KINDS] = { 0 }, low[PLAN_LINK_KINDS];
	uint64_t high[PLAN_LINK_KINDS] = { 0 };
	char a[24], b[24], words[96];
	uint32_t i;

	if (p->load) {
		text(p, x, y, "s", "links, GB/s:");
		x += 84;
	}
	for (i = 0; i < p->g->nedges; i++) {
		const struct plan_edge *d = &p->g->edges[i];

		if (!count[d->kind]++ || d->capacity < low[d->kind])
			low[d->kind] = d->capacity;
		if (d->capacity > high[d->kind])
			high[d->kind] = d->capacity;
	}
	for (i = 1; i < PLAN_LINK_KINDS; i++) {
		if (!count[i])
			continue;
		if (low[i] == high[i])
			snprintf(words, sizeof(words), "%s %s",
				 plan_link_kind_name(i), gbps(low[i], a));
		else
			snprintf(words, sizeof(words), "%s %s to %s",
				 plan_link_kind_name(i), gbps(low[i], a),
				 gbps(high[i], b));
		if (!p->load) {
			fprintf(p->f, "<path d=\"M%.1f %.1fh22\" stroke=\"%s\" stroke-width=\"2.5\"/>\n",
				x, y - 4, kind_colour(i));
			x += 28;
		}
		text(p, x, y, "s", "%s", words);
		x += 18 + 7 * strlen(words);
	}
}

/* Reductions are bounded by what comes in. */
static bool leads_in(const struct picture *p)
{
	return p->cut->nedges &&
	       p->cut->inside[p->g->edges[p->cut->edges[0]].to];
}

static void draw_legend(const struct picture *p, double y)
{
	char a[24];

	fputs("<g id=\"legend\">\n", p->f);
	legend_kinds(p, MARGIN, y);
	y += 20;
	if (p->load) {
		legend_load(p, MARGIN, y);
		y += 20;
	}
	if (p->cut) {
		fprintf(p->f, "<rect class=\"inside\" x=\"%.1f\" y=\"%.1f\" width=\"22\" height=\"11\"/>\n",
			MARGIN, y - 9);
		text(p, MARGIN + 28, y, "s n", "cut: %u of %u GPUs inside; %u edge%s (dashed) lead%s %s, %s GB/s together",
		     p->cut->ninside, p->g->nranks, p->cut->nedges,
		     p->cut->nedges == 1 ? "" : "s",
		     p->cut->nedges == 1 ? "s" : "", leads_in(p) ? "in" : "out",
		     gbps(p->cut->capacity, a));
	}
	fputs("</g>\n", p->f);
}

static void draw_page(const struct picture *p)
{
	const struct layout *l = &p->l;
	double width = fmax(l->width + 2 * MARGIN, MIN_WIDTH);
	double height = HEAD + l->height + LEGEND;
	uint32_t i;

	draw_head(p, width, height);
	fprintf(p->f, "<g transform=\"translate(%.1f %.1f)\">\n",
		(width - l->width) / 2, HEAD);
	for (i = 0; i < l->nunits; i++)
		draw_frame(p, i);
	draw_lines(p);
	for (i = 0; i < l->nunits; i++)
		draw_mesh(p, i);
	for (i = 0; i < l->nitems; i++)
		if (l->items[i].node == PLAN_NONE)
			draw_together(p, &l->items[i]);
		else
			draw_node(p, &l->items[i]);
	fputs("</g>\n", p->f);
	draw_legend(p, HEAD + l->height + 30);
	fputs("</svg>\n", p->f);
}

int plan_draw(const struct plan_graph *g, const struct plan_schedule *schedule,
	      const struct plan_cut *cut, FILE *f, struct plan_error *e)
{
	struct picture p = {
		.g = g, .schedule = schedule, .cut = cut, .f = f,
	};
	int err = 0;

	if (schedule)
		err = find_loads(&p, e);
	if (!err && cut)
		err = mark_cut(&p, e);
	if (!err && (layout_make(g, &p.l) || make_lines(&p)))
		err = plan_fail(e, ENOMEM, "out of memory");
	if (!err) {
		draw_page(&p);
		if (fflush(f) || ferror(f))
			err = plan_fail(e, EIO, "the picture of %s could not be written; is there room left",
					g->name);
	}
	layout_free(&p.l);
	free(p.load);
	free(p.in_cut);
	free(p.order);
	free(p.lines);
	free(p.mesh);
	free(p.mesh_of);
	return err;
}
