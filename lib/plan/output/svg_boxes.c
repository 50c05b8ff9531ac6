// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Boxes in a picture, the meshes inside them, and the elements. Called by svg.c.
 */
#include <math.h>
#include <string.h>

#include "plan/output/svg.h"

static bool node_inside(const struct svg *p, uint32_t node)
{
	return p->cut && p->cut->inside[node];
}

/* GPUs of a unit that are inside the cut. */
static uint32_t unit_inside(const struct svg *p, uint32_t u)
{
	const struct layout_unit *unit = &p->l.units[u];
	uint32_t i, n = 0;

	for (i = 0; i < unit->ngpus; i++)
		n += node_inside(p, unit->gpus[i]);
	return n;
}

void svg_frame(const struct svg *p, uint32_t u)
{
	const struct layout_unit *unit = &p->l.units[u];
	char name[PLAN_NAME];

	if (unit->box == PLAN_NONE || p->l.circle || p->l.together)
		return;
	fprintf(p->f, "<rect class=\"frame%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"10\"/>\n",
		unit_inside(p, u) == unit->ngpus ? " inside" : "", unit->x,
		unit->y, unit->w, unit->h);
	svg_text(p, unit->x + 10, unit->y + unit->h - 8, "t", "%s",
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

static void sum_mesh(const struct svg *p, uint32_t u, struct mesh_sum *s)
{
	uint32_t i, k;

	*s = (struct mesh_sum){ .low = ~0ull, .least = 1 };
	for (i = p->mesh_of[u]; i < p->mesh_of[u + 1]; i++) {
		const struct svg_line *line = &p->mesh[i];

		for (k = 0; k < line->n; k++) {
			uint32_t edge = p->order[line->first + k];
			const struct plan_edge *d = &p->g->edges[edge];
			double share = svg_share(p, edge);

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
static void mesh_words(const struct svg *p, const struct mesh_sum *s,
		       char *buf, size_t size)
{
	char a[24], b[24];
	int n;

	n = snprintf(buf, size, "%u %s%slink%s, ", (s->links + 1) / 2,
		     s->kind ? plan_link_kind_name(s->kind) : "",
		     s->kind ? " " : "", s->links > 2 ? "s" : "");
	if (s->low == s->high)
		n += snprintf(buf + n, size - n, "%s GB/s", svg_gbps(s->low, a));
	else
		n += snprintf(buf + n, size - n, "%s to %s GB/s",
			      svg_gbps(s->low, a), svg_gbps(s->high, b));
	if (p->load && lround(100 * s->least) == lround(100 * s->most))
		n += snprintf(buf + n, size - n, ", load %.0f %%",
			      100 * s->most);
	else if (p->load)
		n += snprintf(buf + n, size - n, ", load %.0f to %.0f %%",
			      100 * s->least, 100 * s->most);
	if (s->ncut)
		snprintf(buf + n, size - n, "; %u cross the cut: %s GB/s",
			 s->ncut, svg_gbps(s->cut, a));
}

/* Where a GPU is in its box's row: that is its place in the circle. */
static struct svg_point on_circle(const struct layout_unit *unit, uint32_t node)
{
	uint32_t i = 0;
	double angle;

	while (i < unit->ngpus && unit->gpus[i] != node)
		i++;
	angle = 2 * M_PI * i / unit->ngpus - M_PI / 2 + M_PI / unit->ngpus;
	return (struct svg_point){
		unit->chord_x + unit->chord_r * cos(angle),
		unit->chord_y + unit->chord_r * sin(angle),
	};
}

static void draw_chords(const struct svg *p, uint32_t u)
{
	const struct layout_unit *unit = &p->l.units[u];
	uint32_t i, rank;
	struct svg_point a, b;
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
			svg_line_attributes(p, &p->mesh[i], 0.7);
			fputc('>', p->f);
			svg_line_title(p, &p->mesh[i]);
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
		svg_text(p, a.x, a.y + 3, "d", "%s", word);
	}
}

/* A mesh too large for a circle: a bar below the GPUs. */
static void draw_bar(const struct svg *p, uint32_t u)
{
	const struct layout_unit *unit = &p->l.units[u];
	struct svg_line all = p->mesh[p->mesh_of[u]];
	uint32_t i;

	for (i = p->mesh_of[u] + 1; i < p->mesh_of[u + 1]; i++) {
		all.n += p->mesh[i].n;
		all.ncut += p->mesh[i].ncut;
		all.share = fmax(all.share, p->mesh[i].share);
	}
	fprintf(p->f, "<path d=\"M%.1f %.1fH%.1f\" fill=\"none\"",
		unit->x + 14, unit->label_y - 16, unit->x + unit->w - 14);
	svg_line_attributes(p, &all, 2);
	fputs("/>\n", p->f);
}

void svg_mesh(const struct svg *p, uint32_t u)
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
		svg_text(p, unit->x + unit->w / 2, unit->label_y,
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

void svg_box(const struct svg *p,
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
			it->w - 8, svg_load_colour(s.most, colour));
	svg_text(p, it->x, it->y - 3, "k", "%s", name);
	svg_text(p, it->x, it->y + 10, "d", "%u GPU%s", unit->ngpus,
	     unit->ngpus == 1 ? "" : "s");
	fputs("</g>\n", p->f);
}

void svg_node(const struct svg *p, const struct layout_item *it)
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
		svg_text(p, it->x, it->y - 1, "k", "%s",
		     layout_label(p->g, &p->l, it, label, sizeof(label)));
		svg_text(p, it->x, it->y + 10, "d", "rank %u", n->rank);
	} else {
		svg_text(p, it->x, it->y + 4, "k", "%s",
		     layout_label(p->g, &p->l, it, label, sizeof(label)));
	}
	fputs("</g>\n", p->f);
}
