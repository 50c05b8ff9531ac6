// SPDX-License-Identifier: GPL-2.0-only
/* Points of TAP that all ranks make together: points.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "points.h"

struct world world;

void world_begin(int *argc, char ***argv, int threads, int *provided)
{
	MPI_Init_thread(argc, argv, threads, provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

int world_end(void)
{
	int failed;

	if (!world.rank)
		printf("1..%d\n", world.points);
	MPI_Bcast(&world.failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
	failed = world.failed;
	MPI_Finalize();
	return failed ? 1 : 0;
}

bool expect(bool good, const char *text, const char *file, int line)
{
	if (good)
		return true;
	if (!world.wrong++)
		printf("# rank %d: %s:%d: not so: %s\n", world.rank, file,
		       line, text);
	return false;
}

void point(const char *format, ...)
{
	char name[128];
	va_list list;
	int wrong = 0;

	va_start(list, format);
	vsnprintf(name, sizeof(name), format, list);
	va_end(list);
	/* Nobody goes on before: receives from any source are of one point. */
	MPI_Allreduce(&world.wrong, &wrong, 1, MPI_INT, MPI_SUM,
		      MPI_COMM_WORLD);
	world.wrong = 0;
	if (world.rank)
		return;
	printf("%s %d - %s\n", wrong ? "not ok" : "ok", ++world.points, name);
	world.failed += wrong != 0;
}

static unsigned char byte_at(size_t at, unsigned int seed)
{
	return (at * 131 + (at >> 8) * 17 + seed * 29) ^ (at >> 16);
}

void fill(void *buffer, size_t size, unsigned int seed)
{
	unsigned char *bytes = buffer;

	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_at(i, seed);
}

bool filled(const void *buffer, size_t size, unsigned int seed)
{
	const unsigned char *bytes = buffer;

	for (size_t i = 0; i < size; i++)
		if (bytes[i] != byte_at(i, seed))
			return false;
	return true;
}

void *memory(size_t size)
{
	void *found = malloc(size ? size : 1);

	if (!found) {
		fprintf(stderr, "no %zu bytes of memory for a buffer\n", size);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return found;
}
