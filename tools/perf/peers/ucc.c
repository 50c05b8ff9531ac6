// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrex-perf-ucc: UCC, which uses UCX, for fabrex-perf compare. Ranks meet
 * through shared memory; where there are more of them than processors, one that
 * waits gives its processor away.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucc/api/ucc.h>

#include "peer.h"

#define CARD_BYTES	(32u << 10)	/* that a rank says at a time */

/* Two cards for each rank, used in turn: who writes the next but one has seen
 * that all have read the last.
 */
struct card {
	_Atomic uint64_t turn;
	uint8_t bytes[2][CARD_BYTES];
};

struct library {
	struct card *cards;
	uint32_t rank, ranks;
	uint64_t turn;
	void *recv;		/* of the gathering under way */
	size_t size;
	ucc_lib_h lib;
	ucc_context_h context;
	ucc_team_h team;
};

/* ---- gathering without UCC --------------------------------------------- */

static ucc_status_t gather(void *send, void *recv, size_t size, void *info,
			   void **request)
{
	struct library *l = info;
	struct card *mine = &l->cards[l->rank];

	if (size > CARD_BYTES)
		return UCC_ERR_NO_MEMORY;
	l->turn++;
	l->recv = recv;
	l->size = size;
	memcpy(mine->bytes[l->turn % 2], send, size);
	atomic_store_explicit(&mine->turn, l->turn, memory_order_release);
	*request = l;
	return UCC_OK;
}

static ucc_status_t gather_test(void *request)
{
	struct library *l = request;
	uint32_t i;

	for (i = 0; i < l->ranks; i++)
		if (atomic_load_explicit(&l->cards[i].turn,
					 memory_order_acquire) < l->turn) {
			sched_yield();
			return UCC_INPROGRESS;
		}
	for (i = 0; i < l->ranks; i++)
		memcpy((char *)l->recv + i * l->size,
		       l->cards[i].bytes[l->turn % 2], l->size);
	return UCC_OK;
}

static ucc_status_t gather_free(void *request)
{
	(void)request;
	return UCC_OK;
}

static ucc_oob_coll_t meeting(struct library *l)
{
	return (ucc_oob_coll_t){
		.allgather = gather, .req_test = gather_test,
		.req_free = gather_free, .coll_info = l,
		.n_oob_eps = l->ranks, .oob_ep = l->rank,
	};
}

/* ---- operations -------------------------------------------------------- */

static int wait_for(struct peer_rank *r, ucc_coll_req_h request)
{
	struct library *l = r->library;
	ucc_status_t status;

	while ((status = ucc_collective_test(request)) > 0) {
		ucc_context_progress(l->context);
		if (r->crowded)
			sched_yield();
	}
	return status == UCC_OK ? 0 : EIO;
}

static int run(struct peer_rank *r, ucc_coll_args_t *args)
{
	struct library *l = r->library;
	ucc_coll_req_h request;
	ucc_status_t status = ucc_collective_init(args, &request, l->team);
	int ret;

	if (status != UCC_OK)
		return status == UCC_ERR_NOT_SUPPORTED ||
		       status == UCC_ERR_NOT_IMPLEMENTED ? EOPNOTSUPP : EIO;
	status = ucc_collective_post(request);
	ret = status < 0 ? EIO : wait_for(r, request);
	ucc_collective_finalize(request);
	return ret;
}

static ucc_coll_buffer_info_t buffer(float *at, uint64_t count)
{
	return (ucc_coll_buffer_info_t){
		.buffer = at, .count = count, .datatype = UCC_DT_FLOAT32,
		.mem_type = UCC_MEMORY_TYPE_HOST,
	};
}

/* @sends, @recvs: elements of a rank's two buffers. */
static int collective(struct peer_rank *r, ucc_coll_type_t type,
		      uint64_t sends, uint64_t recvs)
{
	ucc_coll_args_t args = {
		.coll_type = type, .op = UCC_OP_SUM,
		.src.info = buffer(r->send, sends),
		.dst.info = buffer(r->recv, recvs),
	};

	return run(r, &args);
}

static int all_reduce(struct peer_rank *r)
{
	return collective(r, UCC_COLL_TYPE_ALLREDUCE, r->count, r->count);
}

static int all_gather(struct peer_rank *r)
{
	return collective(r, UCC_COLL_TYPE_ALLGATHER, r->count,
			  r->count * r->ranks);
}

static int reduce_scatter(struct peer_rank *r)
{
	return collective(r, UCC_COLL_TYPE_REDUCE_SCATTER,
			  r->count * r->ranks, r->count);
}

static int broadcast(struct peer_rank *r)
{
	return collective(r, UCC_COLL_TYPE_BCAST, r->count, r->count);
}

static int reduce(struct peer_rank *r)
{
	return collective(r, UCC_COLL_TYPE_REDUCE, r->count, r->count);
}

static int all_to_all(struct peer_rank *r)
{
	return collective(r, UCC_COLL_TYPE_ALLTOALL, r->count * r->ranks,
			  r->count * r->ranks);
}

static int barrier(struct peer_rank *r)
{
	ucc_coll_args_t args = { .coll_type = UCC_COLL_TYPE_BARRIER };

	return run(r, &args);
}

static const struct peer_operation operations[] = {
	{ "all_reduce", false, all_reduce, NULL },
	{ "all_gather", true, all_gather, NULL },
	{ "reduce_scatter", true, reduce_scatter, NULL },
	{ "broadcast", false, broadcast, NULL },
	{ "reduce", false, reduce, NULL },
	{ "all_to_all", true, all_to_all, NULL },
	{ "barrier", false, barrier, NULL },
};

/* ---- start ------------------------------------------------------------- */

static size_t shared(uint32_t ranks)
{
	return ranks * sizeof(struct card);
}

static ucc_status_t open_context(struct library *l)
{
	const ucc_lib_params_t lib_params = {
		.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCC_THREAD_SINGLE,
	};
	const ucc_context_params_t params = {
		.mask = UCC_CONTEXT_PARAM_FIELD_OOB, .oob = meeting(l),
	};
	ucc_lib_config_h lib_config;
	ucc_context_config_h config;
	ucc_status_t status = ucc_lib_config_read(NULL, NULL, &lib_config);

	if (status != UCC_OK)
		return status;
	status = ucc_init(&lib_params, lib_config, &l->lib);
	ucc_lib_config_release(lib_config);
	if (status == UCC_OK)
		status = ucc_context_config_read(l->lib, NULL, &config);
	if (status != UCC_OK)
		return status;
	status = ucc_context_create(l->lib, &params, config, &l->context);
	ucc_context_config_release(config);
	return status;
}

static ucc_status_t open_team(struct library *l)
{
	const ucc_team_params_t params = {
		.mask = UCC_TEAM_PARAM_FIELD_OOB | UCC_TEAM_PARAM_FIELD_EP |
			UCC_TEAM_PARAM_FIELD_EP_RANGE,
		.oob = meeting(l), .ep = l->rank,
		.ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG,
	};
	ucc_status_t status = ucc_team_create_post(&l->context, 1, &params,
						   &l->team);

	while (status == UCC_OK &&
	       (status = ucc_team_create_test(l->team)) == UCC_INPROGRESS) {
		ucc_context_progress(l->context);
		sched_yield();
		status = UCC_OK;
	}
	return status;
}

static int open_rank(struct peer_rank *r, void *memory)
{
	struct library *l = calloc(1, sizeof(*l));
	ucc_status_t status;

	if (!l)
		return ENOMEM;
	l->cards = memory;
	l->rank = r->rank;
	l->ranks = r->ranks;
	r->library = l;
	status = open_context(l);
	if (status == UCC_OK)
		status = open_team(l);
	if (status == UCC_OK)
		return 0;
	fprintf(stderr, "fabrex-perf-ucc: %s\n", ucc_status_string(status));
	return EIO;
}

static void close_rank(struct peer_rank *r)
{
	struct library *l = r->library;

	while (ucc_team_destroy(l->team) == UCC_INPROGRESS)
		ucc_context_progress(l->context);
	ucc_context_destroy(l->context);
	ucc_finalize(l->lib);
	free(l);
}

static const char *version(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "UCC %s over UCX", ucc_get_version_string());
	return text;
}

int main(int argc, char **argv)
{
	static const struct peer_library library = {
		.program = "fabrex-perf-ucc", .operations = operations,
		.count = sizeof(operations) / sizeof(*operations),
		.barrier = barrier, .open = open_rank, .close = close_rank,
		.version = version, .shared = shared,
	};

	return peer_main(argc, argv, &library);
}
