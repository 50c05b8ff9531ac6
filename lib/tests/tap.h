/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test points in TAP, for programs that are one test each: those of the planner,
 * of topology files, of fabrexctl and fabrex-perf, and with vendors' runtimes.
 */
#ifndef LIB_TESTS_TAP_H
#define LIB_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One of each in a program, whichever of its files count. */
__attribute__((weak)) unsigned int tap_points, tap_failures;

static inline __attribute__((format(printf, 4, 5))) void
tap_point(bool good, const char *file, int line, const char *fmt, ...)
{
	char text[2048], *p;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (p = text; (p = strpbrk(p, "\n#")); p++)
		*p = ' ';
	printf("%sok %u - %s\n", good ? "" : "not ", ++tap_points, text);
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
	return tap_failures || !tap_points;
}

#define ok(cond, ...) tap_point(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
/* Does @text say @part? */
#define has(text, part) \
	tap_point(strstr(text, part) != NULL, __FILE__, __LINE__, \
		  "says \"%s\"%s%s", part, strstr(text, part) ? "" : \
		  " but it says: ", strstr(text, part) ? "" : text)
#define hasnt(text, part) \
	tap_point(!strstr(text, part), __FILE__, __LINE__, \
		  "does not say \"%s\"", part)

#endif
