// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * all_reduce: the average of a vector over all ranks, as often as one likes,
 * and how fast that was. Ranks are processes of one machine or of hosts on a
 * fabric, started by mpirun, srun, or by hand:
 *
 *   FABREX_BOOTSTRAP=fabric:5000 FABREX_SIZE=2 FABREX_RANK=0 all_reduce &
 *   FABREX_BOOTSTRAP=fabric:5000 FABREX_SIZE=2 FABREX_RANK=1 all_reduce
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <fabrex/coll.h>

#define TIMES	20

static int failed(const char *what)
{
	fprintf(stderr, "all_reduce: %s: %s\n", what, fabrex_strerror_last());
	return 1;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The average of 1 to size is (size + 1) / 2, at every element. */
static int check(const struct fabrex_comm *comm, const float *x, uint64_t n)
{
	float expected = (float)(fabrex_comm_size(comm) + 1) / 2;

	while (n--)
		if (x[n] != expected)
			return fprintf(stderr, "all_reduce: element %llu is %g, not %g\n",
				       (unsigned long long)n, (double)x[n],
				       (double)expected);
	return 0;
}

static int work(struct fabrex_comm *comm, float *send, float *recv, uint64_t n)
{
	double start;
	uint64_t i;
	int ret;

	for (i = 0; i < n; i++)
		send[i] = (float)fabrex_comm_rank(comm) + 1;
	ret = fabrex_barrier(comm);
	start = now();
	for (i = 0; i < TIMES && !ret; i++)
		ret = fabrex_all_reduce(comm, send, recv, n, FABREX_FLOAT32,
					FABREX_AVG);
	if (ret)
		return failed("all-reduce");
	if (!fabrex_comm_rank(comm))
		printf("%u ranks, %llu floats: %.1f us\n",
		       fabrex_comm_size(comm), (unsigned long long)n,
		       (now() - start) * 1e6 / TIMES);
	return check(comm, recv, n) != 0;
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 << 20;
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	struct fabrex_mr *mr;
	float *buffer;
	int bad;

	if (fabrex_open(NULL, &port))
		return failed("open");
	if (fabrex_comm_create(port, NULL, 0, &comm))
		return failed("communicator");
	/* Memory of the fabric is the fastest; any other does as well. */
	if (fabrex_mr_alloc(port, 2 * n * sizeof(float), FABREX_MR_ALL, &mr))
		return failed("memory");
	buffer = fabrex_mr_addr(mr);
	bad = work(comm, buffer, buffer + n, n);
	fabrex_comm_destroy(comm);
	fabrex_close(port);
	return bad;
}
