/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pictures of results: lines over sizes or ranks, drawn by gnuplot.
 */
#ifndef PERF_PLOT_H
#define PERF_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#define PLOT_SERIES	24u

struct plot_point {
	double x, y;
};

struct plot_series {
	char name[64];
	struct plot_point *points;
	uint32_t n;
};

struct plot {
	char title[160], x[80], y[80];
	bool log_y;
	bool pairs;		/* series 2i + 1 is a dashed 2i */
	struct plot_series series[PLOT_SERIES];
	uint32_t nseries;
};

/* Is the name one that plot_draw() can write? Says what is wrong if not. */
bool plot_name_ok(const char *path);
/* False: out of memory, or too many series. */
bool plot_add(struct plot *plot, const char *series, double x, double y);
/* 0 or an exit code, after saying why. */
int plot_draw(const struct plot *plot, const char *path);
/* Several beside each other, with a title above all. */
int plot_draw_beside(const struct plot *plots, uint32_t n, const char *title,
		     const char *path);
void plot_free(struct plot *plot);

#endif
