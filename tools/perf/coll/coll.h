/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fabrex-perf all_reduce and the other collectives, in the manner of
 * nccl-tests. kinds.c is used by compare/, too.
 *
 *   main.c      options
 *   ports.c     the ports of a rank
 *   ranks.c     processes of the ranks, and how they meet
 *   kinds.c     what there is, and bandwidths
 *   stream.c    the same in the order of a stream
 *   traffic.c   where the bytes went, as the ports have counted
 *   data.c      contents that are sent, and that have to arrive
 *   run.c       measures
 *   report.c    table, JSON, picture
 */
#ifndef PERF_COLL_H
#define PERF_COLL_H

#include <fabrex/coll.h>

#include "../environment.h"
#include "../group.h"
#include "../perf.h"

/* ---- kinds.c ----------------------------------------------------------- */

struct coll_kind {
	const char *name;
	uint32_t id;		/* enum fabrex_coll_kind; 0: sendrecv */
	bool reduces, rooted;
	bool sends_all;		/* send has count for each rank */
	bool recvs_all;
	bool in_place;		/* can be */
};

/* One call, the same at every rank. */
struct coll_call {
	const void *send;
	void *recv;
	uint64_t count;
	enum fabrex_datatype type;
	enum fabrex_redop op;
	uint32_t root;
};

/* all_reduce and all-reduce are the same name; NULL: there is none. */
const struct coll_kind *coll_kind_find(const char *name);
/* 0 or a negative errno of the library. */
int coll_kind_run(const struct coll_kind *kind, struct fabrex_comm *comm,
		  const struct coll_call *call);
/* Elements of a call whose size is @bytes as nccl-tests counts: of the larger
 * of the two buffers of a rank.
 */
uint64_t coll_kind_count(const struct coll_kind *kind, uint64_t bytes,
			 size_t element, uint32_t ranks);
uint64_t coll_kind_bytes(const struct coll_kind *kind, uint64_t count,
			 size_t element, uint32_t ranks);
/* What algbw is multiplied with to get busbw. */
double coll_kind_factor(const struct coll_kind *kind, uint32_t ranks);

bool coll_type_parse(const char *name, enum fabrex_datatype *type);
const char *coll_type_name(enum fabrex_datatype type);
bool coll_op_parse(const char *name, enum fabrex_redop *op);
const char *coll_op_name(enum fabrex_redop op);

/* ---- stream.c ---------------------------------------------------------- */

struct coll_stream {
	struct memory *memory;
	void *native;			/* of its GPU, or NULL */
	struct fabrex_stream *stream;
};

/* 0 or an exit code, after its message. */
int coll_stream_open(struct coll_stream *s, struct memory *memory);
void coll_stream_close(struct coll_stream *s);
/* 0 or a negative errno of the library. */
int coll_stream_put(const struct coll_stream *s, const struct coll_kind *kind,
		    struct fabrex_comm *comm, const struct coll_call *call);
/* Until all of it has ended; 0 or not. */
int coll_stream_wait(const struct coll_stream *s);

/* ---- data.c ------------------------------------------------------------ */

/* What every rank sends and gets, as tables that repeat. */
struct coll_data;

struct coll_data *coll_data_make(const struct coll_kind *kind,
				 enum fabrex_datatype type,
				 enum fabrex_redop op, uint32_t root,
				 uint32_t rank, uint32_t ranks);
void coll_data_free(struct coll_data *d);
/* This rank's contribution of @n elements. */
void coll_data_fill(const struct coll_data *d, void *to, uint64_t n);
/* Number of elements of the result that are not what they have to be. */
uint64_t coll_data_wrong(const struct coll_data *d, const void *result,
			 uint64_t count);

/* ---- main.c ------------------------------------------------------------ */

struct coll_options {
	const struct coll_kind *kind;
	const char *device, *bootstrap, *algorithms, *schedule, *plot;
	uint64_t size_from, size_to, size_factor;
	uint64_t iterations;	/* 0: by time */
	double seconds;
	uint32_t warmup, check;
	uint32_t start;		/* local processes; 0: a launcher's */
	uint32_t rank, size;	/* FABREX_RANK_AUTO, 0: as bootstrap says */
	uint32_t root;
	int32_t timeout_ms;
	int32_t death_ms;	/* 0: the library's own */
	enum fabrex_datatype type;
	enum fabrex_redop op;
	enum memory_kind memory;
	bool json, quiet, pin, stream;
	struct environment environment; /* before ranks are pinned */
};

/* ---- ranks.c ----------------------------------------------------------- */

#define COLL_PORTS	8u	/* of a rank, at most */

/* Everything a rank needs. */
struct coll_rank {
	const struct coll_options *o;
	struct fabrex_port *ports[COLL_PORTS];
	uint32_t nports;
	struct fabrex_port *port;	/* the first of them */
	struct fabrex_port_attr attr;	/* of that */
	struct fabrex_comm *comm;
	uint32_t rank, ranks;
};

/* Starts ranks, or is one. Exit code. */
int coll_ranks_run(const struct coll_options *o,
		   int (*run)(struct coll_rank *rank));
/* "fabrex-perf: rank 1: WHAT: " and the library's sentence; an exit code. */
int coll_fail(const struct coll_rank *rank, const char *what);

/* ---- ports.c ----------------------------------------------------------- */

/* "all", names with commas between them, or NULL. 0, or an exit code. */
int coll_ports_open(struct coll_rank *rank, const char *names);
void coll_ports_close(struct coll_rank *rank);

/* ---- traffic.c --------------------------------------------------------- */

struct coll_traffic {
	bool counted;		/* by the ports of all ranks */
	bool speaks[COLL_PORTS]; /* this rank, for each of its ports */
	struct fabrex_stats before[COLL_PORTS];
};

/* Sums over all ports. */
struct coll_moved {
	bool counted;
	uint64_t p2p, host;	/* between endpoints; to or from host memory */
};

/* All ranks call these together. 0, or an exit code after its message. */
int coll_traffic_open(struct coll_traffic *t, const struct coll_rank *rank);
/* What no rank has begun before it returns at all of them is not in it. */
int coll_traffic_begin(struct coll_traffic *t, const struct coll_rank *rank);
/* When all ranks have ended it. */
int coll_traffic_end(const struct coll_traffic *t,
		     const struct coll_rank *rank, struct coll_moved *moved);

/* ---- run.c ------------------------------------------------------------- */

struct coll_place {
	bool done;
	uint64_t iterations;
	double seconds;		/* of one operation, at the slowest rank */
	uint64_t wrong;		/* elements, of all ranks */
	struct coll_moved moved; /* in all iterations */
};

struct coll_row {
	uint64_t bytes, count, iterations;
	struct coll_place out, in;
	char algorithm[48];
};

int coll_run(struct coll_rank *rank);

/* ---- report.c: rank 0 only --------------------------------------------- */

struct coll_report;

struct coll_report *coll_report_begin(const struct coll_rank *rank);
/* On a terminal, not more often than 5 Hz unless it lasts. */
void coll_report_progress(struct coll_report *r, uint64_t bytes,
			  const char *what, double lasts);
void coll_report_row(struct coll_report *r, const struct coll_row *row);
/* Exit code: @code, or that of a picture that could not be drawn. */
int coll_report_end(struct coll_report *r, int code);

#endif
