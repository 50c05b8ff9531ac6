// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages to stderr. Each is one write(), so lines of threads do not mix.
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

static bool verbose;

void log_set_verbose(bool on)
{
	verbose = on;
}

static double seconds(void)
{
	static struct timespec start;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!start.tv_sec)
		start = now;
	return (double)(now.tv_sec - start.tv_sec) +
	       (double)(now.tv_nsec - start.tv_nsec) / 1e9;
}

static void emit(const char *level, const char *fmt, va_list ap)
{
	char line[1024];
	int n, m;

	n = snprintf(line, sizeof(line), "draco-emu: [%9.3f] %s", seconds(),
		     level);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	if (m < 0)
		return;
	n += m;
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit("", fmt, ap);
	va_end(ap);
}

void log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit("error: ", fmt, ap);
	va_end(ap);
}

void log_debug(const char *fmt, ...)
{
	va_list ap;

	if (!verbose)
		return;
	va_start(ap, fmt);
	emit("debug: ", fmt, ap);
	va_end(ap);
}
