/* SPDX-License-Identifier: GPL-2.0-only */
/* Test points in TAP, and running fabrexctl in this process. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdbool.h>
#include <string.h>

struct backend;

void tap_point(bool ok, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Print the plan. Return: the exit status of the test. */
int tap_done(void);

#define ok(cond, ...) tap_point(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
#define has(text, part) \
	tap_point(strstr(text, part) != NULL, __FILE__, __LINE__, \
		  "says \"%s\"%s%s", part, strstr(text, part) ? "" : \
		  " but it says: ", strstr(text, part) ? "" : text)
#define hasnt(text, part) \
	tap_point(!strstr(text, part), __FILE__, __LINE__, \
		  "does not say \"%s\"", part)

/* Outcome of one run. */
struct run {
	int code;
	char *out, *err;
};

/* "list endpoints --json"; words are parted by one space. */
struct run run_line(struct backend *be, const char *line);
void run_free(struct run *r);

#endif
