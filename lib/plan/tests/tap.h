/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Test points in TAP. Each test_*.c is a program of its own. */
#ifndef PLAN_TESTS_TAP_H
#define PLAN_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One of each in a program, whichever of its files count. */
__attribute__((weak)) unsigned int tap_points, tap_failures;

static inline __attribute__((format(printf, 4, 5))) void
tap_point(bool good, const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %u - ", good ? "" : "not ", ++tap_points);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	if (!good) {
		tap_failures++;
		printf("# at %s:%d\n", file, line);
	}
	fflush(stdout);
}

/* Print the plan. Return: the exit status of the test. */
static inline int tap_done(void)
{
	printf("1..%u\n", tap_points);
	return tap_failures != 0;
}

#define ok(cond, ...) tap_point(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
/* Does @text say @part? */
#define has(text, part) \
	tap_point(strstr(text, part) != NULL, __FILE__, __LINE__, \
		  "says \"%s\"%s%s", part, strstr(text, part) ? "" : \
		  " but it says: ", strstr(text, part) ? "" : text)

#endif
