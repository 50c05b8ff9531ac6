/* SPDX-License-Identifier: GPL-2.0-only */
/* Looking into what a command printed, and at files that it wrote. */
#ifndef TESTS_LOOK_H
#define TESTS_LOOK_H

#include <json-c/json.h>
#include <stdbool.h>

/* A command line; good until the next call but 7. */
char *look_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* It fails, with this exit code and a message with @says, and prints nothing. */
void look_refused(struct backend *be, const char *line, int code,
		  const char *says);
/* The document that a command prints with --json; it has to succeed. */
json_object *look_json(struct backend *be, const char *line);
/* "bound.cut.parts.0.edges"; NULL if there is no such thing, or null. */
json_object *look_at(json_object *doc, const char *path);
const char *look_text(json_object *doc, const char *path);	/* "" */
double look_number(json_object *doc, const char *path);	/* NAN */
long look_length(json_object *doc, const char *path);	/* -1: no array */
/* A test point: the number at @path is @want. */
void look_is(json_object *doc, const char *path, double want);

/* A directory of this test's own; removed with what is in it at the end. */
const char *look_dir(void);
void look_clean(void);
/* The path of a file there; good until the next call but 7. */
const char *look_path(const char *name);
void look_write(const char *path, const char *text);
/* To be freed; NULL if it cannot be read. */
char *look_read(const char *path);
/* How many names there are in that directory. */
int look_count(void);

/*
 * executor.c: has libfabrex read and prove a schedule. "all-gather" or the like;
 * NULL: refused, @why.
 */
const char *look_schedule(const char *path, unsigned int *ranks, char *why,
			  size_t len);

#endif
