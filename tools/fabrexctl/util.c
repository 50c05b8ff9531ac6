// SPDX-License-Identifier: GPL-2.0-only
/* Small helpers. Out of memory ends the program: nothing has been printed. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util.h"

void *xchecked(void *p)
{
	if (!p) {
		fputs("fabrexctl: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	return xchecked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t size)
{
	return xchecked(realloc(p, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return xchecked(strdup(s));
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return xchecked(n < 0 ? NULL : s);
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

bool nap(int ms)
{
	poll(NULL, 0, ms);
	return true;
}

uint64_t realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool read_line(const char *path, char *buf, size_t len)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(buf, len, f);
	fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

bool parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned long long v;
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (errno || *end || v < min || v > max)
		return false;
	*out = v;
	return true;
}

bool parse_seconds(const char *s, double *out)
{
	char *end;
	double v;

	if ((*s < '0' || *s > '9') && *s != '.')
		return false;
	v = strtod(s, &end);
	if (end == s || *end || !isfinite(v) || v > 1e6)
		return false;
	*out = v;
	return true;
}

void ids_add(struct ids *l, uint32_t id)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 16;
		l->v = xrealloc(l->v, l->cap * sizeof(*l->v));
	}
	l->v[l->n++] = id;
}

bool ids_has(const struct ids *l, uint32_t id)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->v[i] == id)
			return true;
	return false;
}

void ids_free(struct ids *l)
{
	free(l->v);
	memset(l, 0, sizeof(*l));
}
