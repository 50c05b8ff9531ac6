// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How much memory can be allocated without an out-of-memory kill: by the
 * machine, and by the control groups (version 2) of this process. Called by
 * heap.c before large allocations.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

/* The value of a line that begins with name, or alone; "max": no limit. */
static uint64_t value_of(const char *directory, const char *name,
			 const char *key, uint64_t otherwise)
{
	char path[PATH_MAX], line[128];
	uint64_t value = otherwise;
	size_t n = strlen(key);
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	if (!file)
		return otherwise;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, n))
			value = line[n] == 'm' ? UINT64_MAX :
						 strtoull(line + n, NULL, 10);
	fclose(file);
	return value;
}

static uint64_t machine(const char *key)
{
	return value_of("/proc", "meminfo", key, 0) << 10;
}

static uint64_t machine_room(void)
{
	uint64_t room = machine("MemAvailable:") + machine("SwapFree:");

	return room ? room : UINT64_MAX;
}

static uint64_t left(uint64_t limit, uint64_t used)
{
	return limit == UINT64_MAX ? limit : limit > used ? limit - used : 0;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The page cache can be dropped, and other memory swapped out. */
static uint64_t group_room(const char *dir)
{
	uint64_t room = left(value_of(dir, "memory.max", "", UINT64_MAX),
			     value_of(dir, "memory.current", "", 0));
	uint64_t swap = left(value_of(dir, "memory.swap.max", "", 0),
			     value_of(dir, "memory.swap.current", "", 0));

	if (swap > machine("SwapFree:"))
		swap = machine("SwapFree:");
	room = sum(room, value_of(dir, "memory.stat", "inactive_file ", 0));
	room = sum(room, value_of(dir, "memory.stat", "active_file ", 0));
	return sum(room, swap);
}

uint64_t fxi_loop_group_room(const char *root, const char *group)
{
	uint64_t room = UINT64_MAX, here;
	char dir[PATH_MAX];
	char *end;

	snprintf(dir, sizeof(dir), "%s%s", root, group);
	for (;;) {
		here = group_room(dir);
		room = here < room ? here : room;
		end = strrchr(dir, '/');
		if (!end || strlen(dir) <= strlen(root))
			return room;
		*end = 0;
	}
}

uint64_t fxi_loop_room(void)
{
	uint64_t room = machine_room(), group = UINT64_MAX;
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];

	if (!file)
		return room;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "0::/", 4))
			group = fxi_loop_group_room("/sys/fs/cgroup", line + 3);
	}
	fclose(file);
	return group < room ? group : room;
}
