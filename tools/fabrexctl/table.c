// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables: values as text, columns as wide as they need to be.
 * Reads records only, so a table never says more than the JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "table.h"
#include "util.h"

#define MAX_COLUMNS 32
#define CELL 128

const char *state_color(const char *state)
{
	static const char *const green[] = { "up", "bound", "yes", NULL };
	static const char *const red[] = { "down", "gone", "disabled", "no",
					   NULL };
	static const char *const yellow[] = { "binding", "releasing",
					      "attaching", "unknown", NULL };
	int i;

	for (i = 0; state && green[i]; i++)
		if (!strcmp(state, green[i]))
			return "\033[32m";
	for (i = 0; state && red[i]; i++)
		if (!strcmp(state, red[i]))
			return "\033[31m";
	for (i = 0; state && yellow[i]; i++)
		if (!strcmp(state, yellow[i]))
			return "\033[33m";
	return "";
}

void format_size(char *buf, size_t len, double bytes)
{
	static const char units[] = " KMGTPE";
	int u = 0;

	while (bytes >= 1024 && units[u + 1]) {
		bytes /= 1024;
		u++;
	}
	if (!u)
		snprintf(buf, len, "%.0f", bytes);
	else if (bytes == (unsigned long long)bytes)
		snprintf(buf, len, "%.0f%c", bytes, units[u]);
	else
		snprintf(buf, len, "%.1f%c", bytes, units[u]);
}

static void format_list(char *buf, size_t len, json_object *v)
{
	size_t i, n = 0, count = json_object_array_length(v);

	buf[0] = '\0';
	for (i = 0; i < count && n < len; i++)
		n += snprintf(buf + n, len - n, "%s%s", i ? "," : "",
			      json_object_get_string(
				      json_object_array_get_idx(v, i)));
	if (!count)
		snprintf(buf, len, "-");
}

static void format_link(char *buf, size_t len, json_object *v)
{
	json_object *speed;
	double gt = 0;

	if (json_object_object_get_ex(v, "gigatransfers", &speed))
		gt = json_object_get_double(speed);
	if (gt > 0)
		snprintf(buf, len, "%g GT/s x%d", gt,
			 (int)rec_get_num(v, "width"));
	else
		snprintf(buf, len, "-");
}

void format_value(char *buf, size_t len, json_object *v, enum format format)
{
	if (!v) {
		snprintf(buf, len, "-");
		return;
	}
	switch (format) {
	case F_SIZE:
	case F_RATE:
		format_size(buf, len, json_object_get_double(v));
		break;
	case F_FLAG:
		snprintf(buf, len, "%s", json_object_get_boolean(v) ? "yes"
								    : "no");
		break;
	case F_LINK:
		format_link(buf, len, v);
		break;
	case F_LIST:
		format_list(buf, len, v);
		break;
	case F_SECONDS:
		snprintf(buf, len, "%.2f s", json_object_get_double(v));
		break;
	default:
		snprintf(buf, len, "%s", json_object_get_string(v));
	}
}

static bool right_aligned(enum format format)
{
	return format == F_NUMBER || format == F_SIZE || format == F_RATE ||
	       format == F_SECONDS;
}

static void print_cell(FILE *f, const char *text, size_t width, bool right,
		       bool last, const char *color)
{
	size_t pad = width > strlen(text) ? width - strlen(text) : 0;

	fprintf(f, "%*s%s%s%s", right ? (int)pad : 0, "", color, text,
		*color ? COLOR_OFF : "");
	if (!last)
		fprintf(f, "%*s", (right ? 0 : (int)pad) + 2, "");
}

static void print_rows(FILE *f, char (*cells)[CELL], size_t nrows,
		       const struct column *const *cols, const size_t *width,
		       size_t ncols, bool color)
{
	size_t r, c;

	for (c = 0; c < ncols; c++)
		print_cell(f, cols[c]->title, width[c],
			   right_aligned(cols[c]->format), c + 1 == ncols, "");
	fputc('\n', f);
	for (r = 0; r < nrows; r++) {
		for (c = 0; c < ncols; c++) {
			const char *text = cells[r * ncols + c];

			print_cell(f, text, width[c],
				   right_aligned(cols[c]->format),
				   c + 1 == ncols,
				   color && cols[c]->format == F_STATE ?
				   state_color(text) : "");
		}
		fputc('\n', f);
	}
}

void table_print(FILE *f, json_object *rows, const struct column *columns,
		 bool wide, bool color)
{
	const struct column *cols[MAX_COLUMNS];
	size_t width[MAX_COLUMNS], ncols = 0, r, c;
	size_t nrows = json_object_array_length(rows);
	char (*cells)[CELL];
	json_object *v;

	for (; columns->title && ncols < MAX_COLUMNS; columns++)
		if (wide || !columns->wide)
			cols[ncols++] = columns;
	for (c = 0; c < ncols; c++)
		width[c] = strlen(cols[c]->title);
	cells = xcalloc(nrows * ncols, sizeof(*cells));
	for (r = 0; r < nrows; r++) {
		json_object *row = json_object_array_get_idx(rows, r);

		for (c = 0; c < ncols; c++) {
			char *cell = cells[r * ncols + c];

			json_object_object_get_ex(row, cols[c]->key, &v);
			format_value(cell, CELL, v, cols[c]->format);
			if (strlen(cell) > width[c])
				width[c] = strlen(cell);
		}
	}
	print_rows(f, cells, nrows, cols, width, ncols, color);
	free(cells);
}
