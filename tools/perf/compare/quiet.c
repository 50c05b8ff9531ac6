// SPDX-License-Identifier: GPL-2.0-only
/*
 * Was the machine ours? Processor time of everybody, less that of our own
 * processes, over the time of the comparison.
 */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "compare.h"

#define NOT_QUIET	0.05	/* processors */

/* Seconds that processors were busy since the system started; 0: unknown. */
static double busy(void)
{
	unsigned long long user, nice, system, irq, softirq, steal;
	FILE *f = fopen("/proc/stat", "r");
	int n = 0;

	if (f) {
		n = fscanf(f, "cpu %llu %llu %llu %*u %*u %llu %llu %llu",
			   &user, &nice, &system, &irq, &softirq, &steal);
		fclose(f);
	}
	return n == 6 ? (double)(user + nice + system + irq + softirq + steal) /
			(double)sysconf(_SC_CLK_TCK) : 0;
}

static double seconds_of(const struct rusage *r)
{
	return (double)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) +
	       (double)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) / 1e6;
}

/* Of this process and of all its children that have ended. */
static double own(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return seconds_of(&self) + seconds_of(&children);
}

void cmp_quiet_begin(struct quiet *q)
{
	q->began_ns = now_ns();
	q->others = busy() - own();
}

void cmp_quiet_end(const struct quiet *q, struct comparison *c)
{
	double seconds = (double)(now_ns() - q->began_ns) / 1e9;
	double others = (busy() - own() - q->others) / seconds;

	if (!busy() || c->nnotes == sizeof(c->notes) / sizeof(*c->notes))
		return;
	others = others < 0 ? 0 : others;
	snprintf(c->notes[c->nnotes++], sizeof(c->notes[0]),
		 "other work used %.2f of %u processors meanwhile (%.0f s)%s",
		 others, c->cpus.n, seconds, others > NOT_QUIET * c->cpus.n ?
		 "; the machine was not quiet, figures are not to be relied on" :
		 "");
}
