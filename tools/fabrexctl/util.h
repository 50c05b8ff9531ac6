/* SPDX-License-Identifier: GPL-2.0-only */
/* Small helpers: memory that is there, time, files. Called from everywhere. */
#ifndef CTL_UTIL_H
#define CTL_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);
/* For memory that others ask for: fails as these do if @p is NULL. */
void *xchecked(void *p);
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Seconds of the monotonic clock. */
double now(void);
/* Sleep for so long, or until a signal comes. Return: true */
bool nap(int ms);
/* Nanoseconds since 1970. */
uint64_t realtime_ns(void);
/* First line of a file without its newline. Return: false if unreadable. */
bool read_line(const char *path, char *buf, size_t len);
/* Whole unsigned number in [min, max], all of @s. */
bool parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out);
/* Seconds, fractions allowed, at least 0. */
bool parse_seconds(const char *s, double *out);

/* A list of ids that grows. */
struct ids {
	uint32_t *v;
	size_t n, cap;
};
void ids_add(struct ids *l, uint32_t id);
bool ids_has(const struct ids *l, uint32_t id);
void ids_free(struct ids *l);

#endif
