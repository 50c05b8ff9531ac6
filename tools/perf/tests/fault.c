// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands between fabrex-perf and the library in a test: FABREX_PERF_FAULT, a
 * decimal number, is the byte that becomes wrong in every result of fp32, at
 * rank 0 only; "die" lets rank 1 die in its third call instead.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <fabrex/coll.h>

int __real_fabrex_all_reduce(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type, enum fabrex_redop op);
int __wrap_fabrex_all_reduce(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type, enum fabrex_redop op);
int __real_fabrex_all_gather(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type);
int __wrap_fabrex_all_gather(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type);

static void spoil(struct fabrex_comm *comm, char *result, uint64_t bytes)
{
	const char *fault = getenv("FABREX_PERF_FAULT");
	static unsigned int calls;
	uint64_t at;

	if (fault && !strcmp(fault, "die") && fabrex_comm_rank(comm) == 1 &&
	    ++calls == 3)
		raise(SIGKILL);
	if (!fault || fabrex_comm_rank(comm))
		return;
	at = strtoull(fault, NULL, 10);
	if (strcmp(fault, "die") && at < bytes)
		result[at] ^= 1;
}

int __wrap_fabrex_all_reduce(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type, enum fabrex_redop op)
{
	int ret = __real_fabrex_all_reduce(comm, send, recv, count, type, op);

	if (type == FABREX_FLOAT32)
		spoil(comm, recv, count * sizeof(float));
	return ret;
}

int __wrap_fabrex_all_gather(struct fabrex_comm *comm, const void *send,
			     void *recv, uint64_t count,
			     enum fabrex_datatype type)
{
	int ret = __real_fabrex_all_gather(comm, send, recv, count, type);

	if (type == FABREX_FLOAT32)
		spoil(comm, recv, count * sizeof(float) *
		      fabrex_comm_size(comm));
	return ret;
}
