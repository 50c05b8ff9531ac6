// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Zero copy, where windows are ordinary memory: every rank publishes where its
 * buffers are, does its share of the work straight from everybody's input into
 * everybody's output, and reports that. If the buffers of any rank cannot be
 * reached, all ranks use staged.c or flat.c instead, or, if all are on GPUs, may
 * follow a schedule. Otherwise reductions go from rank 0 to the last. Called through fxi_zero_copy.
 */
#include <errno.h>
#include <stdlib.h>

#include "coll/algorithm/bruck.h"
#include "coll/operation/gpu.h"
#include "coll/operation/peer_buffer.h"
#include "base/debug.h"
#include "base/path.h"
#include "schedule/schedule.h"

#define CHUNK	(512u << 10)	/* bytes between looks at the rest */
#define SLICE	(8u << 10)	/* of one source to several targets */
#define LINE	64u
#define RIGHTS	(FABREX_MR_REMOTE_READ | FABREX_MR_REMOTE_WRITE)

enum { PUBLISH, MOVE, FINISH, INNER };

/* Phases in tags. */
enum { TAG_BUFFERS = 1, TAG_DONE };

#define PAGE	4096u
#define ON_GPU	UINT32_MAX	/* pages, without a key: of ranks that could */

/* Where a buffer is, and how long its region; no key: out of reach. */
struct spot {
	uint64_t key;
	uint64_t offset : 52, tail : 12; /* tail: bytes in the last page */
	uint32_t pages;
} __attribute__((packed, aligned(4)));

/* One line says where both buffers of a rank are. */
struct publication {
	struct spot send, recv;
};
_Static_assert(sizeof(struct publication) <= LINK_SMALL, "no payload");

struct zero_copy {
	uint32_t phase;
	bool missing;		/* at any rank */
	bool gpus;		/* all ranks could follow coll->schedule */
	bool idle;		/* has no share of the work */
	bool stream;
	struct publication mine;
	const char **send;	/* of each rank, in this process */
	char **recv;
	const void **sources;
	void **targets;
	uint32_t skew;
	uint32_t nsources, ntargets;
	uint32_t job, jobs;
	uint64_t at, end;	/* of the job: bytes from sources and targets */
	const struct algorithm *inner;
};

static int zero_copy_make(struct fabrex_comm *comm)
{
	struct zero_copy *d = calloc(1, sizeof(*d));

	comm->zero_copy = d;
	if (!d)
		goto fail;
	d->send = calloc(comm->size, sizeof(*d->send));
	d->recv = calloc(comm->size, sizeof(*d->recv));
	d->sources = calloc(comm->size, sizeof(*d->sources));
	d->targets = calloc(comm->size, sizeof(*d->targets));
	if (d->send && d->recv && d->sources && d->targets)
		return 0;
fail:
	return fxi_error(ENOMEM, "communicator: out of memory");
}

static void zero_copy_free(struct fabrex_comm *comm)
{
	struct zero_copy *d = comm->zero_copy;

	if (!d)
		return;
	free(d->send);
	free(d->recv);
	free(d->sources);
	free(d->targets);
	free(d);
	comm->zero_copy = NULL;
}

static bool zero_copy_usable(const struct fabrex_comm *comm,
			     const struct fabrex_collective *what)
{
	(void)what;
	return comm->coherent &&
	       sizeof(struct publication) <= fxi_bruck_most(comm);
}

/* ---- which buffers ----------------------------------------------------- */

/* Do others read what @rank sends? */
static bool shows_send(const struct fabrex_coll *coll, uint32_t rank)
{
	switch (coll->what.kind) {
	case FABREX_BROADCAST:
		return rank == coll->what.root;
	case FABREX_ALL_GATHER:
		return false;
	default:
		return true;
	}
}

/* Do others write what @rank receives? */
static bool shows_recv(const struct fabrex_coll *coll, uint32_t rank)
{
	switch (coll->what.kind) {
	case FABREX_ALL_REDUCE:
	case FABREX_ALL_GATHER:
	case FABREX_BROADCAST:
		return true;
	case FABREX_REDUCE:
		return rank == coll->what.root;
	default:
		return false;
	}
}

/* Ranks that have a share of the work: the first ones. */
static uint32_t shares(const struct fabrex_coll *coll)
{
	const struct fabrex_comm *comm = coll->comm;
	uint64_t n = fxi_count_bytes(&coll->what) / fxi_share_least(comm);

	if (coll->what.kind == FABREX_ALL_GATHER ||
	    coll->what.kind == FABREX_ALL_TO_ALL ||
	    coll->what.kind == FABREX_REDUCE_SCATTER || n > comm->size)
		return comm->size;
	return n ? (uint32_t)n : 1;
}

static void publish_one(struct fabrex_coll *coll, const void *addr,
			uint64_t bytes, struct spot *spot)
{
	struct peer_buffer buffer;

	fxi_buffer_export(coll->comm, coll->comm->port, addr, bytes, RIGHTS,
			  NULL, &buffer);
	spot->key = buffer.length / PAGE >= ON_GPU ? 0 : buffer.rkey;
	spot->offset = buffer.offset & ((1ull << 52) - 1);
	spot->pages = (uint32_t)(buffer.length / PAGE);
	spot->tail = buffer.length % PAGE;
	if (spot->key)
		return;
	spot->pages = 0;
	coll->comm->zero_copy->missing = true;
}

/* The others need not know more than that all are. */
static void publish_gpu(struct fabrex_coll *coll)
{
	struct zero_copy *d = coll->comm->zero_copy;

	d->gpus = coll->schedule && fxi_coll_suits_gpu(coll, &fxi_scheduled);
	if (!d->gpus)
		return;
	d->mine.send.pages = d->mine.recv.pages = ON_GPU;
	d->missing = true;
}

static bool is_on_gpu(const struct publication *p)
{
	return !p->send.key && p->send.pages == ON_GPU;
}

static int zero_copy_start(struct fabrex_coll *coll)
{
	const struct fabrex_collective *what = &coll->what;
	struct fabrex_comm *comm = coll->comm;
	struct zero_copy *d = comm->zero_copy;
	int ret = fxi_bruck_begin(coll, TAG_BUFFERS, sizeof(d->mine));

	if (ret)
		return ret;
	d->phase = PUBLISH;
	d->inner = NULL;
	d->missing = false;
	d->idle = comm->rank >= shares(coll);
	memset(&d->mine, 0, sizeof(d->mine));
	publish_gpu(coll);
	if (!d->gpus && shows_send(coll, comm->rank))
		publish_one(coll, what->send, fxi_send_bytes(comm, what),
			    &d->mine.send);
	if (!d->gpus && shows_recv(coll, comm->rank))
		publish_one(coll, what->recv, fxi_recv_bytes(comm, what),
			    &d->mine.recv);
	memcpy(fxi_bruck_block(comm, comm->rank), &d->mine, sizeof(d->mine));
	return 0;
}

/* As much as if all ranks had their buffers on GPUs. */
static uint64_t zero_copy_scratch(struct fabrex_coll *coll)
{
	uint64_t bytes;

	if (!coll->schedule || !fxi_coll_suits_gpu(coll, &fxi_scheduled))
		return 0;
	coll->all_gpus = true;
	bytes = fxi_scheduled.scratch(coll);
	coll->all_gpus = false;
	return bytes;
}

static void zero_copy_end(struct fabrex_coll *coll)
{
	struct zero_copy *d = coll->comm->zero_copy;

	if (d->inner)
		d->inner->end(coll);
	d->inner = NULL;
}

/* ---- buffers of others -------------------------------------------------- */

/* Maps a buffer of @length bytes. NULL: it cannot be, and d->missing is set. */
static void *map_one(struct fabrex_coll *coll, uint32_t rank,
		     const struct spot *spot, uint64_t length)
{
	const struct link_card *card = fxi_link_card(coll->comm, rank);
	struct peer_buffer buffer = {
		.rkey = spot->key, .offset = spot->offset,
		.length = (uint64_t)spot->pages * PAGE + spot->tail,
		.peer = card->entrances[0].port.peer,
		.generation = card->entrances[0].port.generation,
		.access = RIGHTS, .heap = 1,
	};

	if (!spot->key) {
		coll->comm->zero_copy->missing = true;
		return NULL;
	}
	if (coll->comm->zero_copy->idle)
		return NULL;
	if (buffer.length < buffer.offset + length)
		buffer.length = buffer.offset + length;
	return fxi_buffer_map(coll->comm, rank, &buffer);
}

/* Its owner has died, or else this rank cannot map. */
static int cannot_map(struct fabrex_comm *comm, uint32_t rank)
{
	int error = errno;

	if (fxi_link_probe(comm, rank) == -ECONNRESET)
		return fxi_comm_fail(comm, rank, -ECONNRESET);
	return -error;
}

/* Maps the buffers of another rank. */
static int locate(struct fabrex_coll *coll, uint32_t rank,
		  const struct publication *theirs)
{
	uint64_t bytes = fxi_coll_bytes(coll->comm, &coll->what);
	struct zero_copy *d = coll->comm->zero_copy;
	bool send = shows_send(coll, rank), recv = shows_recv(coll, rank);

	if (rank == coll->what.root)
		d->skew = theirs->recv.offset % LINE;
	if (recv)
		d->recv[rank] = map_one(coll, rank, &theirs->recv, bytes);
	if (recv && !d->recv[rank] && !d->missing && !d->idle)
		return cannot_map(coll->comm, rank);
	if (send)
		d->send[rank] = map_one(coll, rank, &theirs->send, bytes);
	if (send && !d->send[rank] && !d->missing && !d->idle)
		return cannot_map(coll->comm, rank);
	return 0;
}

/* All that were published. */
static int locate_all(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct publication theirs;
	uint32_t i, rank;
	int ret = 0;

	for (i = 1; i < comm->size && !ret; i++) {
		rank = (comm->rank + i) % comm->size;
		memcpy(&theirs, fxi_bruck_block(comm, rank), sizeof(theirs));
		comm->zero_copy->gpus &= is_on_gpu(&theirs);
		ret = locate(coll, rank, &theirs);
	}
	return ret;
}

/* ---- the work ---------------------------------------------------------- */

/* Byte where share i of n begins, rounded to a line of the target's memory. */
static uint64_t cut(const struct fabrex_coll *coll, uint64_t bytes, uint32_t i)
{
	const struct zero_copy *d = coll->comm->zero_copy;
	uint32_t n = shares(coll);
	uint64_t at;

	if (i >= n)
		return bytes;
	at = bytes / n * i + bytes % n * i / n + d->skew;
	at -= at % LINE;
	at = at > d->skew ? at - d->skew : 0;
	return at - at % fxi_type_size(coll->what.type);
}

static void add_source(struct zero_copy *d, const char *base, uint64_t offset)
{
	d->sources[d->nsources++] = base + offset;
}

static void add_target(struct zero_copy *d, char *base, uint64_t offset)
{
	d->targets[d->ntargets++] = base + offset;
}

/* Is it the root of a broadcast in place? */
static bool has_it(const struct fabrex_coll *coll, uint32_t rank)
{
	const struct zero_copy *d = coll->comm->zero_copy;

	return coll->what.kind == FABREX_BROADCAST &&
	       rank == coll->what.root && d->recv[rank] == d->send[rank];
}

/* Every rank reduces or copies a share, for all that need the result. */
static void share(struct fabrex_coll *coll, uint64_t bytes)
{
	struct fabrex_comm *comm = coll->comm;
	struct zero_copy *d = comm->zero_copy;
	uint32_t rank;

	d->at = cut(coll, bytes, comm->rank);
	d->end = cut(coll, bytes, comm->rank + 1);
	if (d->idle)
		return;
	for (rank = 0; rank < comm->size; rank++) {
		if (shows_send(coll, rank))
			add_source(d, d->send[rank], d->at);
		if (shows_recv(coll, rank) && !has_it(coll, rank))
			add_target(d, d->recv[rank], d->at);
	}
}

static void reduce_own(struct fabrex_coll *coll, uint64_t bytes)
{
	struct fabrex_comm *comm = coll->comm;
	struct zero_copy *d = comm->zero_copy;
	uint32_t rank;

	d->at = 0;
	d->end = bytes;
	for (rank = 0; rank < comm->size; rank++)
		add_source(d, d->send[rank], comm->rank * bytes);
	add_target(d, coll->what.recv, 0);
}

/* Copies this rank's part to all: read once, and not by all of them. */
static void spread(struct fabrex_coll *coll, uint64_t bytes)
{
	struct fabrex_comm *comm = coll->comm;
	struct zero_copy *d = comm->zero_copy;
	const char *send = coll->what.send;
	uint32_t rank;

	d->at = 0;
	d->end = bytes;
	add_source(d, send, 0);
	for (rank = 0; rank < comm->size; rank++)
		if (d->recv[rank] + comm->rank * bytes != send)
			add_target(d, d->recv[rank], comm->rank * bytes);
}

/* Copies what rank @job after this one has for this one. */
static void fetch(struct fabrex_coll *coll, uint64_t bytes)
{
	struct fabrex_comm *comm = coll->comm;
	struct zero_copy *d = comm->zero_copy;
	uint32_t rank = (comm->rank + d->job) % comm->size;

	d->at = 0;
	d->end = bytes;
	add_source(d, d->send[rank], comm->rank * bytes);
	add_target(d, coll->what.recv, rank * bytes);
}

static void set_job(struct fabrex_coll *coll)
{
	uint64_t bytes = fxi_count_bytes(&coll->what);
	struct zero_copy *d = coll->comm->zero_copy;

	d->nsources = d->ntargets = 0;
	switch (coll->what.kind) {
	case FABREX_ALL_GATHER:
		spread(coll, bytes);
		break;
	case FABREX_ALL_TO_ALL:
		fetch(coll, bytes);
		break;
	case FABREX_REDUCE_SCATTER:
		reduce_own(coll, bytes);
		break;
	default:
		share(coll, bytes);
	}
}

/* Bytes of the buffers of all ranks together. */
static uint64_t touched(const struct fabrex_coll *coll)
{
	uint64_t bytes = fxi_count_bytes(&coll->what);
	uint64_t n = coll->comm->size;

	switch (coll->what.kind) {
	case FABREX_ALL_REDUCE:
		return 2 * n * bytes;
	case FABREX_BROADCAST:
	case FABREX_REDUCE:
		return (n + 1) * bytes;
	case FABREX_ALL_TO_ALL:
		return 2 * n * n * bytes;
	default:
		return (n + 1) * n * bytes;
	}
}

/*
 * A copy of as many bytes as fxi_path_mapped() streams touches twice as many;
 * reductions and copies of several ranks gain a little earlier: measured.
 */
static bool streams(const struct fabrex_coll *coll)
{
	uint64_t all = touched(coll);

	return fxi_path_mapped(all - all / 3) == FXI_PATH_STREAM;
}

static void begin_work(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct zero_copy *d = comm->zero_copy;

	d->send[comm->rank] = coll->what.send;
	d->recv[comm->rank] = coll->what.recv;
	if (comm->rank == coll->what.root)
		d->skew = d->mine.recv.offset % LINE;
	d->stream = streams(coll);
	d->job = 0;
	d->jobs = coll->what.kind == FABREX_ALL_TO_ALL ? comm->size : 1;
	set_job(coll);
}

/*
 * Slice by slice: for all targets but the first the source is in the L1 cache.
 */
static void copy_slices(const struct zero_copy *d, uint64_t bytes)
{
	uint64_t at, n;
	uint32_t i;

	for (at = 0; at < bytes; at += n) {
		n = bytes - at < SLICE ? bytes - at : SLICE;
		for (i = 0; i < d->ntargets; i++)
			fxi_copy((char *)d->targets[i] + at,
				 (const char *)d->sources[0] + at, n, false);
	}
}

static void work_on(struct fabrex_coll *coll, uint64_t bytes)
{
	const struct fabrex_collective *what = &coll->what;
	struct zero_copy *d = coll->comm->zero_copy;
	struct reduce r = {
		.dst = d->targets, .src = d->sources,
		.ndst = d->ntargets, .nsrc = d->nsources,
		.type = what->type, .op = what->op ? what->op : FABREX_SUM,
		.divisor = what->op == FABREX_AVG ? coll->comm->size : 0,
	};
	uint32_t i;

	r.count = bytes / fxi_type_size(what->type);
	r.stream = d->stream;
	if (d->nsources == 1 && !d->stream)
		copy_slices(d, bytes);
	else
		fxi_reduce(&r);
	for (i = 0; i < d->nsources; i++)
		d->sources[i] = (const char *)d->sources[i] + bytes;
	for (i = 0; i < d->ntargets; i++)
		d->targets[i] = (char *)d->targets[i] + bytes;
}

/* Does a chunk. 1: that was the last; or a failure, which ends it halfway. */
static int work(struct fabrex_coll *coll)
{
	struct zero_copy *d = coll->comm->zero_copy;
	uint64_t rest = d->end - d->at;
	uint64_t n = rest < CHUNK ? rest : CHUNK;
	int ret = fxi_comm_alarmed(coll->comm);

	if (ret)
		return ret;
	if (n)
		work_on(coll, n);
	d->at += n;
	coll->comm->moved++;
	if (d->at < d->end)
		return 0;
	if (++d->job == d->jobs)
		return 1;
	set_job(coll);
	return 0;
}

/* ---- from the start to the end ----------------------------------------- */

static void say_inner(const struct fabrex_coll *coll)
{
	const struct zero_copy *d = coll->comm->zero_copy;

	if (d->gpus)
		fxi_coll_say(coll, FXI_DEBUG_PATH, coll->schedule->name,
			     " in place of direct: all ranks have their buffers on GPUs");
	else
		fxi_coll_say(coll, FXI_DEBUG_PATH, d->inner->name,
			     " in place of direct: some rank's buffer is not of fabrex_mr_alloc(), or cannot be mapped");
}

static int begin_inner(struct fabrex_coll *coll)
{
	struct zero_copy *d = coll->comm->zero_copy;
	int ret;

	d->phase = INNER;
	d->inner = d->gpus ? &fxi_scheduled :
		   coll->what.kind == FABREX_ALL_REDUCE ? &fxi_staged :
							  &fxi_flat;
	coll->all_gpus = d->gpus;
	if (fxi_debugs(FXI_DEBUG_PATH))
		say_inner(coll);
	ret = d->inner->start(coll);
	if (!ret)
		return 1;
	d->inner = NULL;
	return ret;
}

/* All ranks know by now whether all buffers can be reached. */
static int decide(struct fabrex_coll *coll)
{
	struct zero_copy *d = coll->comm->zero_copy;
	int ret = locate_all(coll);

	if (ret)
		return ret;
	if (!d->missing) {
		begin_work(coll);
		d->phase = MOVE;
		return 1;
	}
	return begin_inner(coll);
}

/* The share is done; that of the others has to be, too. */
static int finish(struct fabrex_coll *coll)
{
	int ret = fxi_bruck_begin(coll, TAG_DONE, 0);

	coll->comm->zero_copy->phase = FINISH;
	return ret ? ret : 1;
}

/* As far as a phase goes. 1: on to the next; 0: waits; or a failure. */
static int step_once(struct fabrex_coll *coll)
{
	int ret;

	if (coll->comm->zero_copy->phase == MOVE) {
		ret = work(coll);
		return ret > 0 ? finish(coll) : ret;
	}
	ret = fxi_bruck_step(coll);
	return ret > 0 ? decide(coll) : ret;
}

static int zero_copy_step(struct fabrex_coll *coll)
{
	struct zero_copy *d = coll->comm->zero_copy;
	int ret;

	while (d->phase == PUBLISH || d->phase == MOVE) {
		ret = step_once(coll);
		if (ret <= 0)
			return ret;
	}
	if (d->phase == INNER)
		return d->inner->step(coll);
	ret = fxi_bruck_step(coll);
	if (ret <= 0)
		return ret;
	ret = fxi_comm_alarmed(coll->comm);
	return ret ? ret : 1;
}

/* Its name in rules: fabrex_coll(7). */
const struct algorithm fxi_zero_copy = {
	.name = "direct",
	.kinds = 1u << FABREX_ALL_REDUCE | 1u << FABREX_ALL_GATHER |
		 1u << FABREX_REDUCE_SCATTER | 1u << FABREX_BROADCAST |
		 1u << FABREX_REDUCE | 1u << FABREX_ALL_TO_ALL,
	.make = zero_copy_make,
	.free = zero_copy_free,
	.usable = zero_copy_usable,
	.scratch = zero_copy_scratch,
	.start = zero_copy_start,
	.step = zero_copy_step,
	.end = zero_copy_end,
};
