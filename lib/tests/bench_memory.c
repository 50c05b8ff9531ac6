// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bench_memory N WHAT [REGIONS | LIBRARY]: N times find a region in a cache
 * of so many (hit), or ask what an address of the host is (query) with a run
 * time loaded or none, or register it and end that (register).
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/core.h"
#include "fakedev.h"

#define RANGE	4096u

static struct fabrex_port *port;
static char *memory;
static unsigned long regions = 1;

static void get(size_t i)
{
	struct fabrex_mr *mr;
	uint64_t offset;

	if (fabrex_mr_cache_get(port, memory + i % regions * RANGE, RANGE, 0,
				&mr, &offset))
		abort();
	fabrex_mr_cache_put(mr);
}

static void query(size_t i)
{
	struct fabrex_memory found;

	(void)i;
	if (fabrex_memory_query(memory, &found, sizeof(found)) ||
	    found.kind != FABREX_MEMORY_HOST)
		abort();
}

static void enroll(size_t i)
{
	struct fabrex_mr *mr;

	(void)i;
	if (fabrex_mr_register(port, memory, RANGE, 0, &mr) ||
	    fabrex_mr_deregister(mr))
		abort();
}

/* A run time that is up, as far as it knows. */
static void load(const char *library)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned int);

	if (!lib)
		abort();
	*(void **)&init = dlsym(lib, "cuInit");
	if (!init)
		*(void **)&init = dlsym(lib, "hipInit");
	if (!init || init(0))
		abort();
}

int main(int argc, char **argv)
{
	unsigned long i, n = strtoul(argv[1], NULL, 10);
	void (*what)(size_t i) = !strcmp(argv[2], "hit") ? get :
				 !strcmp(argv[2], "query") ? query : enroll;
	uint64_t start;

	/* Without its thread, whose work is not the library's. */
	fab.started = true;
	if (argc > 3 && what == get)
		regions = strtoul(argv[3], NULL, 10);
	else if (argc > 3)
		load(argv[3]);
	memory = calloc(regions, RANGE);
	if (!memory || fabrex_open("a.0", &port) ||
	    fabrex_mr_cache_limit(port, regions, UINT64_MAX))
		return 1;
	for (i = 0; i < regions; i++)
		what(i);
	start = fxi_now_ns();
	for (i = 0; i < n; i++)
		what(i);
	printf("%.1f ns\n", (double)(fxi_now_ns() - start) / (double)n);
	fabrex_close(port);
	return 0;
}
