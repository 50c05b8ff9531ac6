// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collectives, types and operations by name, and bandwidths as
 * doc/PERFORMANCE.md of nccl-tests defines them: algbw is size / time, busbw
 * is algbw times a factor that makes it comparable with what the links between
 * ranks can do, whatever their number.
 */
#include <string.h>

#include "coll.h"

static const struct coll_kind kinds[] = {
	{ "all_reduce", FABREX_ALL_REDUCE, true, false, false, false, true },
	{ "all_gather", FABREX_ALL_GATHER, false, false, false, true, true },
	{ "reduce_scatter", FABREX_REDUCE_SCATTER, true, false, true, false,
	  true },
	{ "broadcast", FABREX_BROADCAST, false, true, false, false, true },
	{ "reduce", FABREX_REDUCE, true, true, false, false, true },
	{ "all_to_all", FABREX_ALL_TO_ALL, false, false, true, true, false },
	{ "sendrecv", 0, false, false, false, false, false },
	{ "barrier", FABREX_BARRIER, false, false, false, false, false },
};

static const char *const types[] = {
	[FABREX_INT8] = "int8", [FABREX_UINT8] = "uint8",
	[FABREX_INT16] = "int16", [FABREX_UINT16] = "uint16",
	[FABREX_INT32] = "int32", [FABREX_UINT32] = "uint32",
	[FABREX_INT64] = "int64", [FABREX_UINT64] = "uint64",
	[FABREX_FLOAT16] = "fp16", [FABREX_BFLOAT16] = "bf16",
	[FABREX_FLOAT32] = "fp32", [FABREX_FLOAT64] = "fp64",
};

static const struct {
	const char *name;
	enum fabrex_datatype type;
} more_types[] = {
	{ "half", FABREX_FLOAT16 }, { "float16", FABREX_FLOAT16 },
	{ "bfloat16", FABREX_BFLOAT16 }, { "float", FABREX_FLOAT32 },
	{ "float32", FABREX_FLOAT32 }, { "double", FABREX_FLOAT64 },
	{ "float64", FABREX_FLOAT64 },
};

static const char *const ops[] = {
	[FABREX_SUM] = "sum", [FABREX_PROD] = "prod", [FABREX_MIN] = "min",
	[FABREX_MAX] = "max", [FABREX_AVG] = "avg",
};

#define LENGTH(array)	(sizeof(array) / sizeof(*(array)))

static bool same_name(const char *a, const char *b)
{
	while (*a && (*a == *b || (*a == '_' && *b == '-'))) {
		a++;
		b++;
	}
	return !*a && !*b;
}

const struct coll_kind *coll_kind_find(const char *name)
{
	size_t i;

	for (i = 0; i < LENGTH(kinds); i++)
		if (same_name(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

bool coll_type_parse(const char *name, enum fabrex_datatype *type)
{
	size_t i;

	for (i = 0; i < LENGTH(types); i++)
		if (types[i] && !strcmp(types[i], name)) {
			*type = (enum fabrex_datatype)i;
			return true;
		}
	for (i = 0; i < LENGTH(more_types); i++)
		if (!strcmp(more_types[i].name, name)) {
			*type = more_types[i].type;
			return true;
		}
	return false;
}

const char *coll_type_name(enum fabrex_datatype type)
{
	return types[type];
}

bool coll_op_parse(const char *name, enum fabrex_redop *op)
{
	size_t i;

	for (i = 0; i < LENGTH(ops); i++)
		if (ops[i] && !strcmp(ops[i], name)) {
			*op = (enum fabrex_redop)i;
			return true;
		}
	return false;
}

const char *coll_op_name(enum fabrex_redop op)
{
	return ops[op];
}

/* ---- sizes ------------------------------------------------------------- */

static bool divided(const struct coll_kind *k)
{
	return k->sends_all || k->recvs_all;
}

uint64_t coll_kind_count(const struct coll_kind *k, uint64_t bytes,
			 size_t element, uint32_t ranks)
{
	if (k->id == FABREX_BARRIER)
		return 0;
	return bytes / element / (divided(k) ? ranks : 1);
}

uint64_t coll_kind_bytes(const struct coll_kind *k, uint64_t count,
			 size_t element, uint32_t ranks)
{
	return count * element * (divided(k) ? ranks : 1);
}

double coll_kind_factor(const struct coll_kind *k, uint32_t ranks)
{
	double others = (double)ranks - 1;

	if (k->id == FABREX_ALL_REDUCE)
		return 2 * others / ranks;
	return divided(k) ? others / ranks : 1;
}

/* ---- calls ------------------------------------------------------------- */

/* To the next rank and from the one before it, as nccl-tests does. */
static int send_and_receive(struct fabrex_comm *comm,
			    const struct coll_call *c)
{
	uint32_t rank = fabrex_comm_rank(comm), n = fabrex_comm_size(comm);
	int ret = fabrex_group_begin(comm), end;

	if (ret)
		return ret;
	ret = fabrex_send(comm, c->send, c->count, c->type, (rank + 1) % n);
	if (!ret)
		ret = fabrex_recv(comm, c->recv, c->count, c->type,
				  (rank + n - 1) % n);
	end = fabrex_group_end(comm);
	return ret ? ret : end;
}

int coll_kind_run(const struct coll_kind *k, struct fabrex_comm *comm,
		  const struct coll_call *c)
{
	switch (k->id) {
	case FABREX_ALL_REDUCE:
		return fabrex_all_reduce(comm, c->send, c->recv, c->count,
					 c->type, c->op);
	case FABREX_ALL_GATHER:
		return fabrex_all_gather(comm, c->send, c->recv, c->count,
					 c->type);
	case FABREX_REDUCE_SCATTER:
		return fabrex_reduce_scatter(comm, c->send, c->recv, c->count,
					     c->type, c->op);
	case FABREX_BROADCAST:
		return fabrex_broadcast(comm, c->send, c->recv, c->count,
					c->type, c->root);
	case FABREX_REDUCE:
		return fabrex_reduce(comm, c->send, c->recv, c->count,
				     c->type, c->op, c->root);
	case FABREX_ALL_TO_ALL:
		return fabrex_all_to_all(comm, c->send, c->recv, c->count,
					 c->type);
	case FABREX_BARRIER:
		return fabrex_barrier(comm);
	default:
		return send_and_receive(comm, c);
	}
}
