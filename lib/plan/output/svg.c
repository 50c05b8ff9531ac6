// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A fabric as SVG, with the load of a schedule and a cut: the page, its legend,
 * colours and numbers. Called through plan_draw().
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plan/draw.h"
#include "plan/output/svg.h"

#define HEAD		64.0	/* title lines */
#define LEGEND		96.0
#define MIN_WIDTH	760.0

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
const char *svg_gbps(double mbps, char buf[24])
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

void svg_text(const struct svg *p, double x, double y, const char *class,
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

double svg_share(const struct svg *p, uint32_t edge)
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

const char *svg_load_colour(double share, char buf[8])
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

const char *svg_kind_colour(enum plan_link_kind kind)
{
	static const char *const colours[PLAN_LINK_KINDS] = {
		[PLAN_PCIE] = "#5f7488", [PLAN_CABLE] = "#2f6fa8",
		[PLAN_ISL] = "#1f8f86", [PLAN_XGMI] = "#c77b1e",
		[PLAN_NVLINK] = "#5a9216", [PLAN_ROOT] = "#7a6a9e",
		[PLAN_SMP] = "#a0568a", [PLAN_OTHER] = "#777777",
	};

	return colours[kind];
}

static int find_loads(struct svg *p, struct plan_error *e)
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

static int mark_cut(struct svg *p, struct plan_error *e)
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

static void draw_head(const struct svg *p, double width, double height)
{
	const struct plan_graph *g = p->g;
	char a[24], b[24];

	fprintf(p->f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<title>",
		width, height, width, height);
	escape(p->f, g->name);
	fprintf(p->f, "</title>\n%s<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		style);
	svg_text(p, SVG_MARGIN, 30, "h", "%s", g->name);
	if (!p->load) {
		svg_text(p, SVG_MARGIN, 50, "s", "%u GPUs; figures are GB/s in each direction",
		     g->nranks);
		return;
	}
	svg_text(p, SVG_MARGIN, 50, "s", "%s of %u GPUs: %s GB/s algorithm, %s GB/s bus bandwidth; busiest: %s to %s",
	     plan_collective_name(p->schedule->collective), p->schedule->nranks,
	     svg_gbps(p->rate, a), svg_gbps(p->rate * plan_ratio_value(
			plan_busbw_factor(p->schedule->collective,
					  p->schedule->nranks)), b),
	     g->nodes[g->edges[p->busiest].from].name,
	     g->nodes[g->edges[p->busiest].to].name);
}

static void legend_load(const struct svg *p, double x, double y)
{
	size_t i;
	char colour[8];

	fputs("<defs><linearGradient id=\"load\">", p->f);
	for (i = 0; i < sizeof(ramp) / sizeof(*ramp); i++)
		fprintf(p->f, "<stop offset=\"%.0f%%\" stop-color=\"%s\"/>",
			100 * ramp[i].at, svg_load_colour(ramp[i].at, colour));
	fprintf(p->f, "</linearGradient></defs>\n<rect x=\"%.1f\" y=\"%.1f\" width=\"160\" height=\"9\" fill=\"url(#load)\"/>\n",
		x, y - 8);
	svg_text(p, x + 170, y, "s", "load: 0 to 100 %% of a link's capacity, the busier direction; labels: carried/capacity, GB/s");
}

/* Kinds that there are, with their colours. */
static void legend_kinds(const struct svg *p, double x, double y)
{
	uint64_t count[PLAN_LINK_KINDS] = { 0 }, low[PLAN_LINK_KINDS];
	uint64_t high[PLAN_LINK_KINDS] = { 0 };
	char a[24], b[24], words[96];
	uint32_t i;

	if (p->load) {
		svg_text(p, x, y, "s", "links, GB/s:");
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
				 plan_link_kind_name(i), svg_gbps(low[i], a));
		else
			snprintf(words, sizeof(words), "%s %s to %s",
				 plan_link_kind_name(i), svg_gbps(low[i], a),
				 svg_gbps(high[i], b));
		if (!p->load) {
			fprintf(p->f, "<path d=\"M%.1f %.1fh22\" stroke=\"%s\" stroke-width=\"2.5\"/>\n",
				x, y - 4, svg_kind_colour(i));
			x += 28;
		}
		svg_text(p, x, y, "s", "%s", words);
		x += 18 + 7 * strlen(words);
	}
}

/* Reductions are bounded by what comes in. */
static bool leads_in(const struct svg *p)
{
	return p->cut->nedges &&
	       p->cut->inside[p->g->edges[p->cut->edges[0]].to];
}

static void draw_legend(const struct svg *p, double y)
{
	char a[24];

	fputs("<g id=\"legend\">\n", p->f);
	legend_kinds(p, SVG_MARGIN, y);
	y += 20;
	if (p->load) {
		legend_load(p, SVG_MARGIN, y);
		y += 20;
	}
	if (p->cut) {
		fprintf(p->f, "<rect class=\"inside\" x=\"%.1f\" y=\"%.1f\" width=\"22\" height=\"11\"/>\n",
			SVG_MARGIN, y - 9);
		svg_text(p, SVG_MARGIN + 28, y, "s n", "cut: %u of %u GPUs inside; %u edge%s (dashed) lead%s %s, %s GB/s together",
		     p->cut->ninside, p->g->nranks, p->cut->nedges,
		     p->cut->nedges == 1 ? "" : "s",
		     p->cut->nedges == 1 ? "s" : "", leads_in(p) ? "in" : "out",
		     svg_gbps(p->cut->capacity, a));
	}
	fputs("</g>\n", p->f);
}

static void draw_page(const struct svg *p)
{
	const struct layout *l = &p->l;
	double width = fmax(l->width + 2 * SVG_MARGIN, MIN_WIDTH);
	double height = HEAD + l->height + LEGEND;
	uint32_t i;

	draw_head(p, width, height);
	fprintf(p->f, "<g transform=\"translate(%.1f %.1f)\">\n",
		(width - l->width) / 2, HEAD);
	for (i = 0; i < l->nunits; i++)
		svg_frame(p, i);
	svg_lines(p);
	for (i = 0; i < l->nunits; i++)
		svg_mesh(p, i);
	for (i = 0; i < l->nitems; i++)
		if (l->items[i].node == PLAN_NONE)
			svg_box(p, &l->items[i]);
		else
			svg_node(p, &l->items[i]);
	fputs("</g>\n", p->f);
	draw_legend(p, HEAD + l->height + 30);
	fputs("</svg>\n", p->f);
}

int plan_draw(const struct plan_graph *g, const struct plan_schedule *schedule,
	      const struct plan_cut *cut, FILE *f, struct plan_error *e)
{
	struct svg p = {
		.g = g, .schedule = schedule, .cut = cut, .f = f,
	};
	int err = 0;

	if (schedule)
		err = find_loads(&p, e);
	if (!err && cut)
		err = mark_cut(&p, e);
	if (!err && (layout_make(g, &p.l) || svg_lines_make(&p)))
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
