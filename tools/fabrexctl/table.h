/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables drawn from arrays of records. A column names the key it shows.
 * Called by the commands.
 */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

enum format {
	F_TEXT, F_NUMBER, F_SIZE, F_FLAG, F_LINK, F_LIST, F_STATE, F_SECONDS,
	F_RATE
};

struct column {
	const char *title;
	const char *key;
	enum format format;
	bool wide;	/* only with --wide */
};

/**
 * table_print() - draw an array of objects
 * @columns: ends with a NULL title
 * @wide:    with all columns
 */
void table_print(FILE *f, json_object *rows, const struct column *columns,
		 bool wide, bool color);
/* One value as a table shows it. */
void format_value(char *buf, size_t len, json_object *v, enum format format);
/* "64M" */
void format_size(char *buf, size_t len, double bytes);
/* Escape sequence for a state; "" if it has none. */
const char *state_color(const char *state);
#define COLOR_OFF "\033[0m"

#endif
