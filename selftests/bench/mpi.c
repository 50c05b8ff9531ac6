// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench-mpi BYTES SECONDS: time of MPI_Allreduce, fp32 sum, or with a third word,
 * "pingpong", half of a round trip between ranks 0 and 1; result compared; rank 0
 * prints JSON. Started by mpirun of Open MPI, whose library is loaded
 * at run time: nothing of MPI is needed to build it. Used by peers.py.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARMUP		5
#define ROUND		10	/* operations between two looks at the clock */
#define LONG		(1 << 20) /* bytes from which fewer will do */
#define LONG_WARMUP	2
#define LONG_ROUND	2
#define LIBRARY		"libmpi.so.40"

/* Open MPI's handles are addresses of objects in its library. */
static struct {
	int (*init)(int *argc, char ***argv);
	int (*finalize)(void);
	int (*rank)(void *comm, int *rank);
	int (*size)(void *comm, int *size);
	int (*barrier)(void *comm);
	int (*allreduce)(const void *send, void *recv, int count, void *type,
			 void *op, void *comm);
	int (*send)(const void *buffer, int count, void *type, int to, int tag,
		    void *comm);
	int (*recv)(void *buffer, int count, void *type, int from, int tag,
		    void *comm, void *status);
	void *world, *float32, *float64, *sum, *max;
} mpi;

static void *symbol(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found) {
		fprintf(stderr, "bench-mpi: %s has no %s; it has to be Open MPI's\n",
			LIBRARY, name);
		exit(2);
	}
	return found;
}

static void load(void)
{
	void *l = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);

	if (!l) {
		fprintf(stderr, "bench-mpi: %s; install libopenmpi40\n",
			dlerror());
		exit(2);
	}
	mpi.init = symbol(l, "MPI_Init");
	mpi.finalize = symbol(l, "MPI_Finalize");
	mpi.rank = symbol(l, "MPI_Comm_rank");
	mpi.size = symbol(l, "MPI_Comm_size");
	mpi.barrier = symbol(l, "MPI_Barrier");
	mpi.allreduce = symbol(l, "MPI_Allreduce");
	mpi.send = symbol(l, "MPI_Send");
	mpi.recv = symbol(l, "MPI_Recv");
	mpi.world = symbol(l, "ompi_mpi_comm_world");
	mpi.float32 = symbol(l, "ompi_mpi_float");
	mpi.float64 = symbol(l, "ompi_mpi_double");
	mpi.sum = symbol(l, "ompi_mpi_op_sum");
	mpi.max = symbol(l, "ompi_mpi_op_max");
}

static void check(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "bench-mpi: %s: error %d\n", what, error);
	exit(3);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* There and back; what comes back is what rank 0 has sent. */
static void round_trip(const float *send, float *recv, int count, int rank)
{
	if (!rank)
		check(mpi.send(send, count, mpi.float32, 1, 0, mpi.world),
		      "MPI_Send");
	check(mpi.recv(recv, count, mpi.float32, !rank, 0, mpi.world, NULL),
	      "MPI_Recv");
	if (rank)
		check(mpi.send(recv, count, mpi.float32, 0, 0, mpi.world),
		      "MPI_Send");
}

static void repeat(const float *send, float *recv, int count, int times,
		   int pinging)
{
	for (; pinging >= 0 && times; times--)
		round_trip(send, recv, count, pinging);
	while (times--)
		check(mpi.allreduce(send, recv, count, mpi.float32, mpi.sum,
				    mpi.world), "MPI_Allreduce");
}

static double greatest(double value)
{
	double out;

	check(mpi.allreduce(&value, &out, 1, mpi.float64, mpi.max, mpi.world),
	      "MPI_Allreduce");
	return out;
}

/* Whether element i is the sum over all ranks of rank + i % 8, or that of rank 0. */
static bool right(const float *recv, int count, int size, bool pingpong)
{
	int i;

	if (pingpong)
		size = 1;
	for (i = 0; i < count; i++)
		if (recv[i] != (float)(size * (size - 1) / 2 + size * (i % 8)))
			return false;
	return true;
}

static int measure(int count, double seconds, int rank, int size, bool pingpong)
{
	float *send = malloc((size_t)count * sizeof(*send));
	float *recv = malloc((size_t)count * sizeof(*recv));
	bool is_long = (size_t)count * sizeof(*send) >= LONG;
	int times = is_long ? LONG_ROUND : ROUND;
	double begin, took = 0;
	int i, done = 0, pinging = pingpong ? rank : -1;
	bool good;

	if (!send || !recv) {
		fprintf(stderr, "bench-mpi: out of memory\n");
		return 2;
	}
	for (i = 0; i < count; i++)
		send[i] = (float)(rank + i % 8);
	memset(recv, 0, (size_t)count * sizeof(*recv));
	repeat(send, recv, count, is_long ? LONG_WARMUP : WARMUP, pinging);
	check(mpi.barrier(mpi.world), "MPI_Barrier");
	/* All ranks agree when it is over; that does not count. */
	while (greatest(took) < seconds) {
		check(mpi.barrier(mpi.world), "MPI_Barrier");
		begin = now();
		repeat(send, recv, count, times, pinging);
		took += now() - begin;
		done += times;
	}
	good = !greatest(!right(recv, count, size, pingpong));
	took = greatest(took);
	if (!rank)
		printf("{\"bytes\": %d, \"ranks\": %d, \"operations\": %d, "
		       "\"us\": %.3f, \"right\": %s}\n", count * 4, size, done,
		       took * 1e6 / done / (pingpong ? 2 : 1), good ? "true" : "false");
	free(send);
	free(recv);
	return good ? 0 : 4;
}

int main(int argc, char **argv)
{
	bool pingpong = argc == 4 && !strcmp(argv[3], "pingpong");
	bool good = pingpong || argc == 3;
	int rank, size, ret, bytes = good ? atoi(argv[1]) : 0;
	double seconds = good ? atof(argv[2]) : 0;

	if (bytes < 4 || seconds <= 0) {
		fprintf(stderr, "usage: mpirun ... bench-mpi BYTES SECONDS [pingpong]\n");
		return 1;
	}
	load();
	check(mpi.init(&argc, &argv), "MPI_Init");
	check(mpi.rank(mpi.world, &rank), "MPI_Comm_rank");
	check(mpi.size(mpi.world, &size), "MPI_Comm_size");
	if (pingpong && size != 2) {
		fprintf(stderr, "bench-mpi: two ranks for a ping-pong\n");
		return 1;
	}
	ret = measure(bytes / 4, seconds, rank, size, pingpong);
	check(mpi.finalize(), "MPI_Finalize");
	return ret;
}
