/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Points of TAP that all ranks of an MPI program make together, and bytes that can
 * be told apart. Nothing in here or in the programs knows how MPI moves them.
 */
#ifndef POINTS_H
#define POINTS_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

struct world {
	int rank, ranks;
	int wrong;	/* what this rank has found wrong in the current point */
	int points, failed;	/* of all ranks, counted by rank 0 */
};
extern struct world world;

void world_begin(int *argc, char ***argv, int threads, int *provided);
/* Prints the plan; the exit status. */
int world_end(void);

/* Adds to what is wrong, and says so if it is. */
#define EXPECT(condition) \
	expect(condition, #condition, __FILE__, __LINE__)
bool expect(bool good, const char *text, const char *file, int line);

/* All ranks: right if none has found anything wrong since the last one. */
void point(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Bytes that depend on their place and on a seed. */
void fill(void *buffer, size_t size, unsigned int seed);
bool filled(const void *buffer, size_t size, unsigned int seed);
void *memory(size_t size);

#endif
