// SPDX-License-Identifier: GPL-2.0-only
/*
 * One-sided operations between all ranks of an MPI program: windows of each kind,
 * epochs of each kind, atomics. TAP on standard output.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"

#define WINDOW	((size_t)1 << 20)

static const size_t sizes[] = { 1, 8, 100, 4096, 70001, WINDOW };
#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))

static int next(void)
{
	return (world.rank + 1) % world.ranks;
}

static int previous(void)
{
	return (world.rank + world.ranks - 1) % world.ranks;
}

/* Put to the next rank and get from the one behind it. */
static void fences(MPI_Win window, void *base, const char *kind)
{
	char *out = memory(WINDOW), *in = memory(WINDOW);

	for (size_t i = 0; i < SIZES; i++) {
		fill(out, sizes[i], world.rank + i);
		MPI_Win_fence(0, window);
		MPI_Put(out, sizes[i], MPI_BYTE, next(), 0, sizes[i], MPI_BYTE,
			window);
		MPI_Win_fence(0, window);
		EXPECT(filled(base, sizes[i], previous() + i));
		MPI_Win_fence(0, window);
		MPI_Get(in, sizes[i], MPI_BYTE, previous(), 0, sizes[i],
			MPI_BYTE, window);
		MPI_Win_fence(0, window);
		EXPECT(filled(in, sizes[i],
			      (previous() + world.ranks - 1) % world.ranks
			      + i));
	}
	free(out);
	free(in);
	point("put and get with fences, %s", kind);
}

/* Only those who have to do with each other wait. */
static void groups(MPI_Win window, void *base)
{
	char *out = memory(WINDOW);
	MPI_Group all, from, to;
	int peer = previous();

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &peer, &from);
	peer = next();
	MPI_Group_incl(all, 1, &peer, &to);
	for (int i = 0; i < 20; i++) {
		fill(out, 5000, world.rank + i);
		MPI_Win_post(from, 0, window);
		MPI_Win_start(to, 0, window);
		MPI_Put(out, 5000, MPI_BYTE, next(), i * 5000, 5000, MPI_BYTE,
			window);
		MPI_Win_complete(window);
		MPI_Win_wait(window);
		EXPECT(filled((char *)base + i * 5000, 5000, previous() + i));
	}
	MPI_Group_free(&from);
	MPI_Group_free(&to);
	MPI_Group_free(&all);
	free(out);
	MPI_Barrier(MPI_COMM_WORLD);
	point("post, start, complete, wait");
}

/* All ranks read, add one and write; nobody's addition is lost. */
static void exclusive(MPI_Win window, int64_t *base)
{
	enum { TIMES = 50 };
	int64_t value;

	*base = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < TIMES; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window);
		MPI_Win_flush(0, window);
		value++;
		MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window);
		MPI_Win_unlock(0, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window);
	MPI_Win_unlock(0, window);
	EXPECT(value == (int64_t)TIMES * world.ranks);
	MPI_Barrier(MPI_COMM_WORLD);
	point("exclusive locks");
}

/* Everyone writes to a part of everyone's window. */
static void shared(MPI_Win window, void *base)
{
	enum { PART = 3000, TIMES = 8 };
	char *out = memory(PART * TIMES), *in = memory(PART * TIMES);
	MPI_Request requests[2];

	MPI_Win_lock_all(0, window);
	fill(out, PART, world.rank);
	for (int to = 0; to < world.ranks; to++)
		MPI_Put(out, PART, MPI_BYTE, to, world.rank * PART, PART,
			MPI_BYTE, window);
	MPI_Win_flush_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(window);
	for (int from = 0; from < world.ranks; from++)
		EXPECT(filled((char *)base + from * PART, PART, from));
	MPI_Rget(in, PART, MPI_BYTE, next(), previous() * PART, PART, MPI_BYTE,
		 window, &requests[0]);
	MPI_Rput(out, PART, MPI_BYTE, next(), 500000, PART, MPI_BYTE, window,
		 &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	EXPECT(filled(in, PART, previous()));
	MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	free(out);
	free(in);
	point("locks of all, flushes, requests");
}

/* What is accumulated from all ranks at once, for a type and an operation. */
#define ACCUMULATE(type, mpi_type, op, begin, own, wanted)		\
	do {								\
		type *at = base, given[64], got[64];			\
									\
		for (int i = 0; i < 64; i++) {				\
			at[i] = begin;					\
			given[i] = own;					\
		}							\
		MPI_Win_fence(0, window);				\
		for (int to = 0; to < world.ranks; to++)		\
			MPI_Accumulate(given, 64, mpi_type, to, 0, 64,	\
				       mpi_type, op, window);		\
		MPI_Win_fence(0, window);				\
		for (int i = 0; i < 64; i++)				\
			EXPECT(at[i] == (type)(wanted));		\
		MPI_Win_fence(0, window);				\
		MPI_Get_accumulate(given, 64, mpi_type, got, 64,	\
				   mpi_type, next(), 0, 64, mpi_type,	\
				   MPI_NO_OP, window);			\
		MPI_Win_fence(0, window);				\
		for (int i = 0; i < 64; i++)				\
			EXPECT(got[i] == (type)(wanted));		\
	} while (0)

static void accumulate(MPI_Win window, void *base)
{
	int sum = world.ranks * (world.ranks - 1) / 2;
	int bits = (1 << world.ranks) - 1;

	ACCUMULATE(int64_t, MPI_INT64_T, MPI_SUM, 5, world.rank + i,
		   5 + sum + i * world.ranks);
	ACCUMULATE(int32_t, MPI_INT32_T, MPI_SUM, -7, world.rank + i,
		   -7 + sum + i * world.ranks);
	ACCUMULATE(int16_t, MPI_INT16_T, MPI_MAX, 0, world.rank + i,
		   world.ranks - 1 + i);
	ACCUMULATE(uint8_t, MPI_UINT8_T, MPI_BOR, 0, 1 << world.rank % 8,
		   bits | (world.ranks > 8 ? 0xff : 0));
	ACCUMULATE(uint64_t, MPI_UINT64_T, MPI_BXOR, 0,
		   UINT64_C(1) << world.rank, (uint64_t)bits);
	ACCUMULATE(float, MPI_FLOAT, MPI_SUM, 0, world.rank + 0.5f,
		   sum + 0.5f * world.ranks);
	ACCUMULATE(double, MPI_DOUBLE, MPI_MIN, 1000, world.rank + i, i);
	ACCUMULATE(double, MPI_DOUBLE, MPI_PROD, 1, 2, bits + 1);
	point("accumulation by all at once");
}

/* Numbers are given out once each. */
static void fetch_and_add(MPI_Win window, void *base)
{
	enum { EACH = 64 };
	int64_t one = 1, *numbers = memory(EACH * sizeof(*numbers));
	int64_t *all = memory(EACH * world.ranks * sizeof(*all));
	char *seen = calloc(EACH, world.ranks);

	memset(base, 0, 64);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, window);
	for (int i = 0; i < EACH; i++) {
		MPI_Fetch_and_op(&one, &numbers[i], MPI_INT64_T, 0, 0, MPI_SUM,
				 window);
		MPI_Win_flush(0, window);
	}
	MPI_Win_unlock_all(window);
	MPI_Gather(numbers, EACH, MPI_INT64_T, all, EACH, MPI_INT64_T, 0,
		   MPI_COMM_WORLD);
	for (int i = 0; !world.rank && i < EACH * world.ranks; i++) {
		if (EXPECT(all[i] >= 0 && all[i] < EACH * world.ranks))
			EXPECT(!seen[all[i]]++);
	}
	free(seen);
	free(all);
	free(numbers);
	point("fetch and add");
}

/* A lock made of one word, around a counter that is not atomic. */
static void compare_and_swap(MPI_Win window, int32_t *base)
{
	enum { TIMES = 20 };
	int32_t none = -1, own = world.rank, was, count;

	base[0] = -1;
	base[1] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, window);
	for (int i = 0; i < TIMES; i++) {
		do {
			MPI_Compare_and_swap(&own, &none, &was, MPI_INT32_T, 0,
					     0, window);
			MPI_Win_flush(0, window);
		} while (was != -1);
		MPI_Get(&count, 1, MPI_INT32_T, 0, 4, 1, MPI_INT32_T, window);
		MPI_Win_flush(0, window);
		count++;
		MPI_Put(&count, 1, MPI_INT32_T, 0, 4, 1, MPI_INT32_T, window);
		MPI_Win_flush(0, window);
		MPI_Compare_and_swap(&none, &own, &was, MPI_INT32_T, 0, 0,
				     window);
		MPI_Win_flush(0, window);
		if (!EXPECT(was == own))
			printf("# it was %d\n", was);
	}
	MPI_Win_unlock_all(window);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!world.rank) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		EXPECT(base[1] == TIMES * world.ranks);
		MPI_Win_unlock(0, window);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	point("compare and swap");
}

static void strided(MPI_Win window, void *base)
{
	enum { N = 100 };
	int32_t out[N * N], *at = base;
	MPI_Datatype column;

	MPI_Type_vector(N, 1, N, MPI_INT32_T, &column);
	MPI_Type_commit(&column);
	for (int i = 0; i < N * N; i++)
		out[i] = i + world.rank;
	MPI_Win_fence(0, window);
	for (int i = 0; i < N; i++)
		MPI_Put(&out[i * N], N, MPI_INT32_T, next(), i * 4, 1, column,
			window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < N * N; i++)
		if (!EXPECT(at[i] == i % N * N + i / N + previous()))
			break;
	MPI_Type_free(&column);
	MPI_Win_fence(0, window);
	point("rows are put as columns");
}

/* Memory that is attached to a window later. */
static void dynamic(void)
{
	char *base = memory(WINDOW), *out = memory(WINDOW);
	MPI_Aint own, other;
	MPI_Win window;

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_attach(window, base, WINDOW);
	MPI_Get_address(base, &own);
	MPI_Sendrecv(&own, 1, MPI_AINT, previous(), 1, &other, 1, MPI_AINT,
		     next(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	fill(out, WINDOW, world.rank);
	MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, window);
	MPI_Put(out, WINDOW, MPI_BYTE, next(), other, WINDOW, MPI_BYTE,
		window);
	MPI_Win_unlock(next(), window);
	MPI_Barrier(MPI_COMM_WORLD);
	EXPECT(filled(base, WINDOW, previous()));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_detach(window, base);
	MPI_Win_free(&window);
	free(base);
	free(out);
	point("a window of attached memory");
}

int main(int argc, char **argv)
{
	void *base, *own = NULL;
	MPI_Win window;
	int provided;

	world_begin(&argc, &argv, MPI_THREAD_SINGLE, &provided);
	own = memory(WINDOW);
	MPI_Win_create(own, WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	fences(window, own, "a window of the program's memory");
	MPI_Win_free(&window);
	free(own);

	MPI_Win_allocate(WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
			 &window);
	fences(window, base, "a window that MPI allocates");
	groups(window, base);
	exclusive(window, base);
	shared(window, base);
	accumulate(window, base);
	fetch_and_add(window, base);
	compare_and_swap(window, base);
	strided(window, base);
	MPI_Win_free(&window);
	dynamic();
	return world_end();
}
