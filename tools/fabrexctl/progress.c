// SPDX-License-Identifier: GPL-2.0-only
/* The progress line: drawn by a thread from the second second on. */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"
#include "util.h"

static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool running, stop, shown;
	FILE *f;
	char text[160];
} progress = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.cond = PTHREAD_COND_INITIALIZER,
};

/* Return: false if told to stop. */
static bool sleep_until(double when)
{
	struct timespec ts = { .tv_sec = when };
	int r = 0;

	ts.tv_nsec = (when - ts.tv_sec) * 1e9;
	while (!progress.stop && !r)
		r = pthread_cond_clockwait(&progress.cond, &progress.lock,
					   CLOCK_MONOTONIC, &ts);
	return !progress.stop;
}

static void *draw(void *arg)
{
	double start = now();
	unsigned int s = 1;

	pthread_mutex_lock(&progress.lock);
	while (sleep_until(start + s)) {
		fprintf(progress.f, "\r%s ... %u s\033[K", progress.text, s++);
		fflush(progress.f);
		progress.shown = true;
	}
	pthread_mutex_unlock(&progress.lock);
	return arg;
}

void progress_start(FILE *f, const char *fmt, ...)
{
	va_list ap;

	if (progress.running)
		progress_stop();
	if (!isatty(fileno(f)))
		return;
	va_start(ap, fmt);
	vsnprintf(progress.text, sizeof(progress.text), fmt, ap);
	va_end(ap);
	progress.f = f;
	progress.stop = progress.shown = false;
	progress.running = !pthread_create(&progress.thread, NULL, draw, NULL);
}

void progress_stop(void)
{
	if (!progress.running)
		return;
	pthread_mutex_lock(&progress.lock);
	progress.stop = true;
	pthread_cond_signal(&progress.cond);
	pthread_mutex_unlock(&progress.lock);
	pthread_join(progress.thread, NULL);
	progress.running = false;
	if (progress.shown) {
		fputs("\r\033[K", progress.f);
		fflush(progress.f);
	}
}
