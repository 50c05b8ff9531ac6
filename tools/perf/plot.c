// SPDX-License-Identifier: GPL-2.0-only
/*
 * Drawing with gnuplot: its script is fed to it, with the data in blocks.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf.h"
#include "plot.h"

/* "svg" or "png"; NULL: neither. */
static const char *format_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (dot && dot != path && dot[-1] != '/' && strlen(dot) == 4 &&
	    (!strcmp(dot, ".svg") || !strcmp(dot, ".png")))
		return dot + 1;
	return NULL;
}

bool plot_name_ok(const char *path)
{
	if (format_of(path) && !strpbrk(path, "'\n"))
		return true;
	fprintf(stderr, "fabrex-perf: --plot: \"%s\" does not end in .svg or .png\n",
		path);
	return false;
}

static struct plot_series *find_series(struct plot *p, const char *name)
{
	struct plot_series *s;
	uint32_t i;

	for (i = 0; i < p->nseries; i++)
		if (!strcmp(p->series[i].name, name))
			return &p->series[i];
	if (p->nseries == PLOT_SERIES)
		return NULL;
	s = &p->series[p->nseries++];
	snprintf(s->name, sizeof(s->name), "%s", name);
	return s;
}

bool plot_add(struct plot *p, const char *series, double x, double y)
{
	struct plot_series *s = find_series(p, series);
	struct plot_point *points;

	if (!s)
		return false;
	points = realloc(s->points, (s->n + 1) * sizeof(*points));
	if (!points)
		return false;
	points[s->n].x = x;
	points[s->n].y = y;
	s->points = points;
	s->n++;
	return true;
}

void plot_free(struct plot *p)
{
	uint32_t i;

	for (i = 0; i < p->nseries; i++)
		free(p->series[i].points);
	p->nseries = 0;
}

/* Between double quotes, where gnuplot knows escapes. */
static void quote(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		fputc(*text, f);
	}
	fputc('"', f);
}

static void set(FILE *f, const char *what, const char *text)
{
	fprintf(f, "set %s ", what);
	quote(f, text);
	fputc('\n', f);
}

/* Smallest and largest size. */
static void sizes(const struct plot *p, double *low, double *high)
{
	uint32_t i, k;
	double x;

	*low = *high = 0;
	for (i = 0; i < p->nseries; i++)
		for (k = 0; k < p->series[i].n; k++) {
			x = p->series[i].points[k].x;
			*low = !*low || x < *low ? x : *low;
			*high = x > *high ? x : *high;
		}
}

/* Every other power of two from the smallest size on, as people write them;
 * a single size would make gnuplot complain about the range.
 */
static void size_ticks(const struct plot *p, FILE *f)
{
	double low, high, x;
	char text[SIZE_STR];

	sizes(p, &low, &high);
	if (low == high)
		fprintf(f, "set xrange [%g:%g]\n", low / 2, high * 2);
	fprintf(f, "set xtics (");
	for (x = low; x > 0 && x <= high; x *= high / low > 256 ? 4 : 2)
		fprintf(f, "%s\"%s\" %.17g", x > low ? ", " : "",
			size_str((uint64_t)x, text), x);
	fprintf(f, ") nomirror\n");
}

static void head(const char *path, uint32_t beside, FILE *f)
{
	const char *format = format_of(path);

	fprintf(f, "set terminal %s size %u,%u %s noenhanced\n", format,
		beside > 1 ? beside * 480 : 960, 600,
		strcmp(format, "svg") ? "" :
		"background rgb 'white' font 'sans,14'");
	fprintf(f, "set output '%s'\n", path);
}

static void axes(const struct plot *p, FILE *f)
{
	set(f, "title", p->title);
	set(f, "xlabel", p->x);
	set(f, "ylabel", p->y);
	fprintf(f, "set logscale x 2\n%sset grid lc rgb '#d8d8d8'\n"
		"set key tmargin center horizontal\nset border 3\n"
		"set ytics nomirror\n", p->log_y ? "set logscale y 10\n" :
						   "set yrange [0:*]\n");
	size_ticks(p, f);
}

/* @first: of its blocks. */
static void data(const struct plot *p, uint32_t first, FILE *f)
{
	uint32_t i, k;

	for (i = 0; i < p->nseries; i++) {
		fprintf(f, "$series%u << EOD\n", first + i);
		for (k = 0; k < p->series[i].n; k++)
			fprintf(f, "%.17g %.17g\n", p->series[i].points[k].x,
				p->series[i].points[k].y);
		fprintf(f, "EOD\n");
	}
}

/* Colours that also people who confuse red and green tell apart. */
static void lines(const struct plot *p, uint32_t first, FILE *f)
{
	static const char *const colours[] = {
		"#0060a8", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
		"#56b4e9", "#5b3a8c", "#444444",
	};
	uint32_t i, colour;

	fprintf(f, "plot ");
	for (i = 0; i < p->nseries; i++) {
		colour = p->pairs ? i / 2 : i;
		fprintf(f, "%s$series%u using 1:2 with linespoints lw 2%s pt %u ps 0.8 lc rgb '%s' title ",
			i ? ", " : "", first + i,
			p->pairs && i % 2 ? " dt 2" : "", 4 + colour % 10,
			colours[colour % 8]);
		quote(f, p->series[i].name);
	}
	fprintf(f, "\n");
}

static int fail(const char *path, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		fprintf(stderr, "fabrex-perf: --plot needs gnuplot, which is not here; install gnuplot-nox\n");
	else
		fprintf(stderr, "fabrex-perf: gnuplot could not write %s; see above\n",
			path);
	return EXIT_SETUP;
}

static void draw(const struct plot *p, uint32_t n, const char *title,
		 const char *path, FILE *f)
{
	uint32_t i, first = 0;

	head(path, n, f);
	for (i = 0; i < n; first += p[i++].nseries)
		data(&p[i], first, f);
	if (title) {
		fprintf(f, "set multiplot layout 1,%u title ", n);
		quote(f, title);
		fputc('\n', f);
	}
	for (i = 0, first = 0; i < n; first += p[i++].nseries) {
		axes(&p[i], f);
		lines(&p[i], first, f);
	}
}

int plot_draw_beside(const struct plot *p, uint32_t n, const char *title,
		     const char *path)
{
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	FILE *f;
	int status;

	fflush(NULL);
	f = popen("command -v gnuplot >/dev/null 2>&1 || exit 127; exec gnuplot", "w");
	if (!f) {
		fprintf(stderr, "fabrex-perf: cannot start gnuplot: %s\n",
			strerror(errno));
		return EXIT_SETUP;
	}
	draw(p, n, title, path, f);
	status = pclose(f);
	signal(SIGPIPE, before);
	return status ? fail(path, status) : 0;
}

int plot_draw(const struct plot *p, const char *path)
{
	return plot_draw_beside(p, 1, NULL, path);
}
