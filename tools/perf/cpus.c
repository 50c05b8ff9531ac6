// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processors that this process may use, and putting ranks on them round robin.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "group.h"

void cpus_allowed(struct cpus *cpus)
{
	cpu_set_t set;
	int i;

	cpus->n = 0;
	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (i = 0; i < CPU_SETSIZE && cpus->n < 1024; i++)
		if (CPU_ISSET(i, &set))
			cpus->cpu[cpus->n++] = i;
}

bool cpus_pin(const struct cpus *cpus, uint32_t rank)
{
	cpu_set_t set;

	if (!cpus || !cpus->n)
		return true;
	CPU_ZERO(&set);
	CPU_SET(cpus->cpu[rank % cpus->n], &set);
	return !sched_setaffinity(0, sizeof(set), &set);
}

void cpus_text(const struct cpus *cpus, char *text, size_t n)
{
	size_t at = 0;
	uint32_t i;

	if (n)
		text[0] = 0;
	for (i = 0; i < cpus->n && at < n; i++)
		at += (size_t)snprintf(text + at, n - at, "%s%d", i ? "," : "",
				       cpus->cpu[i]);
}
