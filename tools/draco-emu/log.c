// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages to stderr. Each is one write(), so lines of threads do not mix.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define LINES_PER_S	200

static bool verbose;

static struct timespec start;

void log_set_verbose(bool on)
{
	verbose = on;
}

static void __attribute__((constructor)) log_start(void)
{
	clock_gettime(CLOCK_MONOTONIC, &start);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start.tv_sec) +
	       (double)(now.tv_nsec - start.tv_nsec) / 1e9;
}

/* A client that is thrown out again and again must not fill a disk. */
static bool too_many(double now, unsigned int *suppressed)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static double since;
	static unsigned int lines;
	bool ret;

	pthread_mutex_lock(&lock);
	*suppressed = 0;
	if (now - since >= 1) {
		*suppressed = lines > LINES_PER_S ? lines - LINES_PER_S : 0;
		since = now;
		lines = 0;
	}
	ret = ++lines > LINES_PER_S;
	pthread_mutex_unlock(&lock);
	return ret;
}

static void emit(const char *level, const char *fmt, va_list ap)
{
	double now = seconds();
	unsigned int lost = 0;
	char line[1024];
	int n, m;

	if (!verbose && too_many(now, &lost))
		return;
	n = snprintf(line, sizeof(line), "draco-emu: [%9.3f] %s", now, level);
	if (lost)
		n += snprintf(line + n, 64, "(%u lines left out) ", lost);
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
