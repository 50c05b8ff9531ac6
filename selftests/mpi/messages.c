// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages between all ranks of an MPI program: sizes, order, matching, probing,
 * cancelling, collectives, threads. TAP on standard output.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"

#define KIB	((size_t)1 << 10)
#define MIB	((size_t)1 << 20)

static const size_t sizes[] = {
	0, 1, 8, 24, 64, 1000, 4 * KIB - 1, 4 * KIB, 16 * KIB + 1, 64 * KIB,
	256 * KIB, MIB, 4 * MIB + 1,
};
#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))
#define LARGEST	(4 * MIB + 1)

/* Nothing is stored behind the buffer of a receive that is too small: so it is over
 * libfabric, and not within Open MPI's own shared memory.
 */
static bool exact;

static int next(void)
{
	return (world.rank + 1) % world.ranks;
}

static int previous(void)
{
	return (world.rank + world.ranks - 1) % world.ranks;
}

/* What rank 0 sends goes round, and comes back as it was. */
static void ring(size_t size)
{
	char *buffer = memory(size), *first = memory(size);
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Status status;
	int count;

	if (!world.rank) {
		fill(first, size, size + 1);
		MPI_Isend(first, size, MPI_BYTE, next(), 1, MPI_COMM_WORLD,
			  &request);
	}
	MPI_Recv(buffer, size, MPI_BYTE, previous(), 1, MPI_COMM_WORLD,
		 &status);
	MPI_Get_count(&status, MPI_BYTE, &count);
	EXPECT((size_t)count == size);
	EXPECT(status.MPI_SOURCE == previous());
	EXPECT(filled(buffer, size, size + 1));
	if (world.rank)
		MPI_Send(buffer, size, MPI_BYTE, next(), 1, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	free(buffer);
	free(first);
	point("a ring of %zu bytes", size);
}

/* All at once in both directions, with persistent requests. */
static void exchange(size_t size)
{
	char *out = memory(size), *in = memory(size);
	MPI_Request requests[2];

	MPI_Send_init(out, size, MPI_BYTE, next(), 2, MPI_COMM_WORLD,
		      &requests[0]);
	MPI_Recv_init(in, size, MPI_BYTE, previous(), 2, MPI_COMM_WORLD,
		      &requests[1]);
	for (int round = 0; round < 10; round++) {
		fill(out, size, world.rank + round);
		MPI_Startall(2, requests);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		EXPECT(filled(in, size, previous() + round));
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
	MPI_Sendrecv_replace(out, size, MPI_BYTE, next(), 3, previous(), 3,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	EXPECT(filled(out, size, previous() + 9));
	free(out);
	free(in);
	point("all exchange %zu bytes", size);
}

/* Messages of one tag do not overtake each other, whatever their sizes. */
static void order(void)
{
	enum { COUNT = 400 };
	static const size_t mixed[] = { 8, 70000, 100, 3000, 300000, 0, 9000 };
	MPI_Request requests[COUNT];
	char *out[COUNT], *in = memory(300000);

	for (int i = 0; i < COUNT; i++) {
		size_t size = mixed[i % 7];

		out[i] = memory(size);
		fill(out[i], size, i);
		MPI_Isend(out[i], size, MPI_BYTE, next(), 4, MPI_COMM_WORLD,
			  &requests[i]);
	}
	for (int i = 0; i < COUNT; i++) {
		MPI_Status status;
		int count;

		MPI_Recv(in, 300000, MPI_BYTE, previous(), 4, MPI_COMM_WORLD,
			 &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		EXPECT((size_t)count == mixed[i % 7]);
		EXPECT(filled(in, count, i));
	}
	MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < COUNT; i++)
		free(out[i]);
	free(in);
	point("%d messages of mixed sizes keep their order", COUNT);
}

/* Rank 0 takes what all have sent, the last tags first. */
static void unexpected(void)
{
	enum { COUNT = 200 };
	size_t large = 200 * KIB;
	char *buffer = memory(large), *out[COUNT];
	MPI_Request requests[COUNT];

	for (int i = 0; i < COUNT; i++) {
		size_t size = i % 50 ? KIB : large;

		out[i] = memory(size);
		fill(out[i], size, world.rank * COUNT + i);
		MPI_Isend(out[i], size, MPI_BYTE, 0, i, MPI_COMM_WORLD,
			  &requests[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = COUNT - 1; !world.rank && i >= 0; i--) {
		size_t size = i % 50 ? KIB : large;

		for (int from = 0; from < world.ranks; from++) {
			MPI_Recv(buffer, large, MPI_BYTE, from, i,
				 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			EXPECT(filled(buffer, size, from * COUNT + i));
		}
	}
	MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < COUNT; i++)
		free(out[i]);
	free(buffer);
	point("%d unexpected messages from each, taken backwards", COUNT);
}

/* From anyone with any tag: each message once. */
static void wildcards(void)
{
	enum { EACH = 50 };
	int from[64] = { 0 }, value[2];
	MPI_Status status;

	if (world.rank) {
		for (int i = 0; i < EACH; i++) {
			value[0] = world.rank;
			value[1] = i;
			MPI_Send(value, 2, MPI_INT, 0, i % 5, MPI_COMM_WORLD);
		}
	}
	for (int i = 0; !world.rank && i < EACH * (world.ranks - 1); i++) {
		MPI_Recv(value, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
			 MPI_COMM_WORLD, &status);
		EXPECT(status.MPI_SOURCE == value[0]);
		EXPECT(status.MPI_TAG == value[1] % 5);
		EXPECT(value[1] == from[value[0] % 64]++);
	}
	point("from any source with any tag");
}

static void probing(void)
{
	char *buffer = memory(LARGEST);
	MPI_Request requests[SIZES];
	MPI_Message message;
	MPI_Status status;
	int count, flag = 0;

	fill(buffer, LARGEST, 3);
	for (size_t i = 0; i < SIZES; i++)
		MPI_Isend(buffer, sizes[i], MPI_BYTE, next(), 5 + i % 2,
			  MPI_COMM_WORLD, &requests[i]);
	for (size_t i = 1; i < SIZES; i += 2) {
		char *in = memory(sizes[i]);

		/* Those of the other tag stay where they are. */
		MPI_Mprobe(previous(), 6, MPI_COMM_WORLD, &message, &status);
		MPI_Get_count(&status, MPI_BYTE, &count);
		EXPECT((size_t)count == sizes[i]);
		MPI_Mrecv(in, count, MPI_BYTE, &message, &status);
		EXPECT(filled(in, count, 3));
		free(in);
	}
	for (size_t i = 0; i < SIZES; i += 2) {
		char *in = memory(sizes[i]);

		while (!flag)
			MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag,
				   &status);
		flag = 0;
		MPI_Get_count(&status, MPI_BYTE, &count);
		EXPECT((size_t)count == sizes[i]);
		MPI_Recv(in, count, MPI_BYTE, status.MPI_SOURCE, 5,
			 MPI_COMM_WORLD, &status);
		EXPECT(filled(in, count, 3));
		free(in);
	}
	MPI_Waitall(SIZES, requests, MPI_STATUSES_IGNORE);
	MPI_Iprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &flag, &status);
	EXPECT(!flag);
	free(buffer);
	point("messages that are probed and claimed");
}

/* A synchronous send is not over before its receive has begun. */
static void synchronous(size_t size)
{
	char *out = memory(size), *in = memory(size);
	MPI_Request request;
	int flag, go = 0;

	fill(out, size, 7);
	MPI_Issend(out, size, MPI_BYTE, next(), 8, MPI_COMM_WORLD, &request);
	for (int i = 0; i < 2000; i++) {
		MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
		if (!EXPECT(!flag))
			break;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Sendrecv(&go, 1, MPI_INT, previous(), 9, &go, 1, MPI_INT, next(),
		     9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Recv(in, size, MPI_BYTE, previous(), 8, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	EXPECT(filled(in, size, 7));
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	free(out);
	free(in);
	point("a synchronous send of %zu bytes waits", size);
}

static void own(void)
{
	char *out = memory(MIB), *in = memory(MIB);
	MPI_Request requests[2];

	for (size_t size = 1; size <= MIB; size *= 32) {
		fill(out, size, 9);
		MPI_Isend(out, size, MPI_BYTE, world.rank, 10, MPI_COMM_WORLD,
			  &requests[0]);
		MPI_Irecv(in, size, MPI_BYTE, world.rank, 10, MPI_COMM_WORLD,
			  &requests[1]);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		EXPECT(filled(in, size, 9));
	}
	free(out);
	free(in);
	point("messages to oneself");
}

/* More than there is room for is an error of the receiver. */
static void truncated(size_t size)
{
	char *out = memory(size), *in = memory(size);
	MPI_Request request;
	int error, kind;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	fill(out, size, 11);
	memset(in, 0x5a, size);
	MPI_Isend(out, size, MPI_BYTE, next(), 11, MPI_COMM_WORLD, &request);
	error = MPI_Recv(in, size / 2, MPI_BYTE, previous(), 11,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Error_class(error, &kind);
	EXPECT(kind == MPI_ERR_TRUNCATE);
	for (size_t i = size / 2; exact && i < size; i++)
		if (!EXPECT(in[i] == 0x5a))
			break;
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	free(out);
	free(in);
	point("a receive of half of %zu bytes fails", size);
}

static void cancelled(void)
{
	MPI_Request requests[20];
	int value[20], flag;

	for (int i = 0; i < 20; i++)
		MPI_Irecv(&value[i], 1, MPI_INT, previous(), 12 + i,
			  MPI_COMM_WORLD, &requests[i]);
	for (int i = 0; i < 20; i += 2) {
		MPI_Status status;

		MPI_Cancel(&requests[i]);
		MPI_Wait(&requests[i], &status);
		MPI_Test_cancelled(&status, &flag);
		EXPECT(flag);
	}
	for (int i = 1; i < 20; i += 2)
		MPI_Send(&i, 1, MPI_INT, next(), 12 + i, MPI_COMM_WORLD);
	for (int i = 1; i < 20; i += 2) {
		MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
		EXPECT(value[i] == i);
	}
	point("every other receive is cancelled");
}

/* Columns of a matrix arrive as rows. */
static void strided(void)
{
	enum { N = 300 };
	double *out = memory(N * N * sizeof(*out));
	double *in = memory(N * N * sizeof(*in));
	MPI_Datatype column;

	MPI_Type_vector(N, 1, N, MPI_DOUBLE, &column);
	MPI_Type_commit(&column);
	for (int i = 0; i < N * N; i++)
		out[i] = i + world.rank;
	for (int i = 0; i < N; i++)
		MPI_Sendrecv(&out[i], 1, column, next(), 40, &in[i * N], N,
			     MPI_DOUBLE, previous(), 40, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	for (int i = 0; i < N * N; i++)
		if (!EXPECT(in[i] == i % N * N + i / N + previous()))
			break;
	MPI_Type_free(&column);
	free(out);
	free(in);
	point("columns arrive as rows");
}

static void collectives(size_t count)
{
	int *out = memory(count * world.ranks * sizeof(int));
	int *in = memory(count * world.ranks * sizeof(int));
	int total = world.ranks * (world.ranks - 1) / 2;

	for (size_t i = 0; i < count * world.ranks; i++)
		out[i] = world.rank + i;
	MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (size_t i = 0; i < count; i++)
		if (!EXPECT(in[i] == total + (int)i * world.ranks))
			break;
	MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
	for (size_t i = 0; i < count * world.ranks; i++)
		if (!EXPECT(in[i] == (int)(i / count + world.rank * count
					   + i % count)))
			break;
	MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
	for (size_t i = 0; i < count * world.ranks; i++)
		if (!EXPECT(in[i] == (int)(i / count + i % count)))
			break;
	for (int from = 0; from < world.ranks; from++) {
		for (size_t i = 0; i < count; i++)
			in[i] = world.rank == from ? from + (int)i : -1;
		MPI_Bcast(in, count, MPI_INT, from, MPI_COMM_WORLD);
		for (size_t i = 0; i < count; i++)
			if (!EXPECT(in[i] == from + (int)i))
				break;
	}
	free(out);
	free(in);
	point("collectives of %zu integers", count);
}

/* Two communicators at once, without waiting in between. */
static void communicators(void)
{
	enum { N = 40 };
	MPI_Request requests[2 * N];
	int out[2 * N], in[2 * N], ranks;
	MPI_Comm all, half;

	MPI_Comm_dup(MPI_COMM_WORLD, &all);
	MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, -world.rank, &half);
	MPI_Comm_size(half, &ranks);
	for (int i = 0; i < N; i++) {
		out[2 * i] = out[2 * i + 1] = i;
		MPI_Iallreduce(&out[2 * i], &in[2 * i], 1, MPI_INT, MPI_SUM,
			       all, &requests[2 * i]);
		MPI_Iallreduce(&out[2 * i + 1], &in[2 * i + 1], 1, MPI_INT,
			       MPI_SUM, half, &requests[2 * i + 1]);
	}
	MPI_Waitall(2 * N, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++) {
		EXPECT(in[2 * i] == i * world.ranks);
		EXPECT(in[2 * i + 1] == i * ranks);
	}
	MPI_Comm_free(&all);
	MPI_Comm_free(&half);
	point("two communicators at once");
}

/* Each thread has a ring of its own. */
static void *thread_main(void *argument)
{
	MPI_Comm comm = *(MPI_Comm *)argument;
	char *out = memory(64 * KIB), *in = memory(64 * KIB);
	bool good = true;

	for (int i = 0; i < 200; i++) {
		size_t size = i % 10 ? 100 : 64 * KIB;

		fill(out, size, i);
		MPI_Sendrecv(out, size, MPI_BYTE, next(), 1, in, 64 * KIB,
			     MPI_BYTE, previous(), 1, comm, MPI_STATUS_IGNORE);
		good = good && filled(in, size, i);
	}
	free(out);
	free(in);
	return good ? argument : NULL;
}

static void threads(void)
{
	enum { THREADS = 3 };
	pthread_t ids[THREADS];
	MPI_Comm comms[THREADS];

	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&ids[i], NULL, thread_main, &comms[i]);
	for (int i = 0; i < THREADS; i++) {
		void *good;

		pthread_join(ids[i], &good);
		EXPECT(good);
		MPI_Comm_free(&comms[i]);
	}
	point("%d threads of each rank at once", THREADS);
}

int main(int argc, char **argv)
{
	int provided;

	world_begin(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	exact = argc > 1 && !strcmp(argv[1], "exact");
	for (size_t i = 0; i < SIZES; i++)
		ring(sizes[i]);
	exchange(8);
	exchange(10000);
	exchange(MIB);
	order();
	unexpected();
	wildcards();
	probing();
	synchronous(8);
	synchronous(MIB);
	own();
	truncated(64);
	truncated(20000);
	truncated(MIB);
	cancelled();
	strided();
	collectives(1);
	collectives(1000);
	collectives(100000);
	communicators();
	if (provided == MPI_THREAD_MULTIPLE)
		threads();
	return world_end();
}
