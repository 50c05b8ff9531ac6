// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations from start to end: the queue of a communicator, one collective
 * after the other, and who waits for them. Public half: fabrex_coll_start(3).
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "coll/operation.h"
#include "coll/peer_buffer.h"
#include "coll/place.h"

#define TEST_ROUNDS	32u	/* tests in vain for each look at failures */

/*
 * Communicators with operations that somebody has a handle of: whoever waits
 * for anything advances them all, so that programs which wait on one while
 * others wait on another end. A lock is only taken of who is listed.
 */
static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fabrex_comm *busy_first;
static atomic_uint busy_count;

void fxi_comm_enter(struct fabrex_comm *comm)
{
	if (comm->listed)
		pthread_mutex_lock(&comm->lock);
}

static void list(struct fabrex_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	pthread_mutex_lock(&busy_lock);
	comm->busy_next = busy_first;
	busy_first = comm;
	busy_count++;
	pthread_mutex_unlock(&busy_lock);
	comm->listed = true;
}

/* The order is: a communicator's lock, then busy_lock. */
static void unlist(struct fabrex_comm *comm)
{
	struct fabrex_comm **link = &busy_first;

	pthread_mutex_lock(&busy_lock);
	while (*link != comm)
		link = &(*link)->busy_next;
	*link = comm->busy_next;
	busy_count--;
	pthread_mutex_unlock(&busy_lock);
	comm->listed = false;
	pthread_mutex_unlock(&comm->lock);
}

/*
 * The communicators are the parent's, whose memory a child has not got, and the
 * lock may be held by a thread that it has not got either.
 */
void fxi_operations_forked(void)
{
	pthread_mutex_init(&busy_lock, NULL);
	busy_first = NULL;
	busy_count = 0;
}

static bool idle(const struct fabrex_comm *comm)
{
	return !comm->first && !fxi_pairs_busy(comm);
}

/*
 * What is still to be taken of a refused SEND is taken by whatever advances
 * next: its sender waits, perhaps before it comes to where this rank goes on.
 */
void fxi_comm_leave(struct fabrex_comm *comm)
{
	if (likely(!comm->listed && !comm->skipping))
		return;
	if (!comm->listed)
		list(comm);
	if (idle(comm))
		unlist(comm);
	else
		pthread_mutex_unlock(&comm->lock);
}

/* Advance what others have started, unless somebody does so already. */
static bool progress_others(const struct fabrex_comm *mine)
{
	struct fabrex_comm *comm;
	bool moved = false;

	if (atomic_load_explicit(&busy_count, memory_order_relaxed) <=
	    mine->listed)
		return false;
	if (pthread_mutex_trylock(&busy_lock))
		return false;
	for (comm = busy_first; comm; comm = comm->busy_next) {
		if (comm == mine || pthread_mutex_trylock(&comm->lock))
			continue;
		moved |= fxi_comm_progress(comm);
		fxi_comm_beat(comm, comm->first ? comm->first->waiting :
						  fxi_pairs_waiting(comm));
		pthread_mutex_unlock(&comm->lock);
	}
	pthread_mutex_unlock(&busy_lock);
	return moved;
}

/* ---- failure ----------------------------------------------------------- */

/* Its caller has a handle, and may never ask. */
static void keep(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;

	coll->next = comm->ended;
	coll->ended = &comm->ended;
	if (coll->next)
		coll->next->ended = &coll->next;
	comm->ended = coll;
}

static void forget(struct fabrex_coll *coll)
{
	*coll->ended = coll->next;
	if (coll->next)
		coll->next->ended = coll->ended;
	free(coll->sentence);
	free(coll);
}

void fxi_coll_ended(struct fabrex_coll *coll, int result)
{
	if (result && !coll->comm->error)
		coll->sentence = strdup(fabrex_strerror_last());
	coll->result = result;
	if (coll->kept)
		keep(coll);
}

static void end_first(struct fabrex_comm *comm, int result)
{
	struct fabrex_coll *coll = comm->first;

	if (coll->begun)
		coll->algorithm->end(coll);
	comm->first = coll->next;
	if (!comm->first) {
		comm->last = NULL;
		if (!comm->npairs)
			fxi_buffers_tidy(comm);
	}
	fxi_coll_ended(coll, result);
}

void fxi_comm_give_up(struct fabrex_comm *comm)
{
	while (comm->first)
		end_first(comm, comm->error);
	fxi_peer_buffers_stop(comm);
	fxi_pairs_give_up(comm, comm->error);
}

int fxi_coll_result(struct fabrex_coll *coll)
{
	int result = coll->result;

	if (result && coll->sentence)
		fxi_error(-result, "%s", coll->sentence);
	else if (result && result == coll->comm->error)
		fxi_comm_error(coll->comm);
	return result;
}

/* ---- agreement --------------------------------------------------------- */

uint32_t fxi_coll_tag(const struct fabrex_coll *coll, uint32_t phase)
{
	return coll->sequence << 16 | (coll->what.root & 0xff) << 8 |
	       coll->what.kind << 4 | phase;
}

/* What of the root is not in the tag is between type and operation. */
uint64_t fxi_coll_word(const struct fabrex_coll *coll)
{
	_Static_assert(FABREX_FLOAT64 < 16 && FABREX_AVG < 16 &&
		       COMM_RANKS <= 1 << 16, "fits");

	return (coll->what.count & 0xffffffffffffull) |
	       (uint64_t)coll->what.type << 48 |
	       (uint64_t)(coll->what.root >> 8 & 0xff) << 52 |
	       (uint64_t)coll->what.op << 60;
}

static int disagree(const struct fabrex_coll *coll, uint32_t rank,
		    const struct link_message *message)
{
	const struct fabrex_collective *what = &coll->what;

	return fxi_error(EPROTO, "ranks %u and %u do not call the same: here the collective %u is %s of %llu elements, type %u, operation %u, root %u; there %u is %s of %llu, type %u, operation %u, root %u",
			 coll->comm->rank, rank, coll->sequence & 0xffff,
			 fxi_kind_name(what->kind),
			 (unsigned long long)what->count, what->type, what->op,
			 what->root, message->tag >> 16,
			 fxi_kind_name(message->tag >> 4 & 0xf),
			 (unsigned long long)message->word & 0xffffffffffffull,
			 (uint32_t)(message->word >> 48) & 0xf,
			 (uint32_t)(message->word >> 60),
			 (message->tag >> 8 & 0xff) |
			 ((uint32_t)(message->word >> 52) & 0xff) << 8);
}

int fxi_coll_check(struct fabrex_coll *coll, uint32_t rank, uint32_t phase,
		   const struct link_message *message)
{
	if (likely(message->tag == fxi_coll_tag(coll, phase) &&
		   message->word == fxi_coll_word(coll)))
		return 0;
	return disagree(coll, rank, message);
}

/* ---- progress ---------------------------------------------------------- */

/* Nobody else takes part: everything is a copy. */
static int alone_start(struct fabrex_coll *coll)
{
	const struct fabrex_collective *what = &coll->what;
	uint64_t bytes = fxi_recv_bytes(coll->comm, what);

	if (!bytes || what->recv == what->send)
		return 0;
	return fxi_coll_copy_own(coll, what->recv, what->send, bytes);
}

static int alone_step(struct fabrex_coll *coll)
{
	(void)coll;
	return 1;
}

static void alone_end(struct fabrex_coll *coll)
{
	(void)coll;
}

static const struct algorithm alone = {
	.name = "alone",
	.start = alone_start,
	.step = alone_step,
	.end = alone_end,
};

static int start_first(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	int ret;

	coll->sequence = comm->sequence++;
	ret = fxi_coll_place(coll);
	if (ret)
		return ret;
	if (comm->size == 1 ||
	    (!coll->what.count && coll->what.kind != FABREX_BARRIER))
		coll->algorithm = &alone;
	else
		coll->algorithm = fxi_table_choose(comm, &coll->what,
						   &coll->schedule);
	if (unlikely(coll->gpu) && coll->algorithm != &alone &&
	    fxi_coll_hosted(coll))
		ret = fxi_coll_host(coll);
	if (!ret)
		ret = coll->algorithm->start(coll);
	coll->begun = !ret;
	return ret;
}

/* As far as collectives go. */
static void advance(struct fabrex_comm *comm)
{
	struct fabrex_coll *coll;
	int ret;

	while ((coll = comm->first)) {
		ret = coll->begun ? 0 : start_first(coll);
		if (!ret)
			ret = coll->algorithm->step(coll);
		if (!ret)
			return;
		if (ret < 0) {
			fxi_comm_break(comm, ret);
			fxi_comm_give_up(comm);
			return;
		}
		comm->moved++;
		end_first(comm, 0);
	}
}

bool fxi_comm_progress(struct fabrex_comm *comm)
{
	uint64_t before = comm->moved;
	int ret;

	if (unlikely(comm->error)) {
		fxi_comm_give_up(comm);
		return true;
	}
	ret = fxi_link_progress(comm);
	if (unlikely(ret)) {
		fxi_comm_break(comm, ret);
		fxi_comm_give_up(comm);
		return true;
	}
	if (comm->first)
		advance(comm);
	return fxi_pairs_progress(comm) | (comm->moved != before);
}

static bool is_pair(const struct fabrex_coll *coll)
{
	return coll->what.kind == FABREX_SEND || coll->what.kind == FABREX_RECV;
}

static uint32_t waits_for(const struct fabrex_coll *coll)
{
	const struct fabrex_comm *comm = coll->comm;

	if (is_pair(coll))
		return coll->what.root;
	return comm->first ? comm->first->waiting : coll->waiting;
}

/* Nothing moves: spin, or let others run, and look whether they live. */
static void pause_for(struct fabrex_coll *coll, uint32_t patience)
{
	struct fabrex_comm *comm = coll->comm;

	if (fxi_comm_wait(comm, waits_for(coll), patience))
		fxi_comm_give_up(comm);
}

int fxi_coll_wait(struct fabrex_coll *coll, uint64_t deadline)
{
	struct fabrex_comm *comm = coll->comm;
	uint32_t patience = 0;

	while (coll->result == GOING) {
		if (fxi_comm_progress(comm)) {
			patience = 0;
			continue;
		}
		pause_for(coll, patience++);
		if (progress_others(comm))
			patience = PATIENCE_LOOKS;
		if (deadline != UINT64_MAX && coll->result == GOING &&
		    fxi_now_ns() >= deadline)
			return fxi_error_static(ETIMEDOUT, "collective: time is up, and it has not ended; wait again");
	}
	return 0;
}

/* ---- beginning --------------------------------------------------------- */

void fxi_coll_begin(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;

	coll->result = GOING;
	if (is_pair(coll))
		return fxi_pair_begin(coll);
	if (comm->last)
		comm->last->next = coll;
	else
		comm->first = coll;
	comm->last = coll;
	if (comm->first == coll)
		advance(comm);
}

int fxi_coll_run(struct fabrex_comm *comm,
		 const struct fabrex_collective *what)
{
	struct fabrex_coll coll = { .comm = comm, .what = *what };
	int ret = fxi_coll_arguments(comm, what);

	if (unlikely(ret))
		return ret;
	if (unlikely(comm->grouping))
		return fabrex_coll_start(comm, what, sizeof(*what), NULL);
	fxi_comm_enter(comm);
	if (unlikely(comm->error)) {
		ret = fxi_comm_error(comm);
	} else {
		fxi_coll_begin(&coll);
		if (is_pair(&coll))
			fxi_pair_alone(&coll);
		fxi_coll_wait(&coll, UINT64_MAX);
		ret = fxi_coll_result(&coll);
		free(coll.sentence);
	}
	fxi_comm_leave(comm);
	return ret;
}

/* ---- handles ----------------------------------------------------------- */

static struct fabrex_coll *make(struct fabrex_comm *comm,
				const struct fabrex_collective *what)
{
	struct fabrex_coll *coll = calloc(1, sizeof(*coll));

	if (!coll) {
		fxi_error(ENOMEM, "%s: out of memory",
			  fxi_kind_name(what->kind));
		return NULL;
	}
	coll->comm = comm;
	coll->what = *what;
	return coll;
}

static int start(struct fabrex_comm *comm,
		 const struct fabrex_collective *what,
		 struct fabrex_coll **out)
{
	struct fabrex_coll *coll = make(comm, what);
	int ret = 0;

	if (!coll)
		return -ENOMEM;
	coll->kept = out != NULL;
	coll->result = GOING;
	if (!comm->listed && !comm->grouping)
		list(comm);
	else
		fxi_comm_enter(comm);
	if (unlikely(comm->error))
		ret = fxi_comm_error(comm);
	else if (out)
		*out = coll;
	if (ret)
		free(coll);
	else if (comm->grouping)
		fxi_group_add(coll);
	else
		fxi_coll_begin(coll);
	fxi_comm_leave(comm);
	return ret;
}

EXPORT int fabrex_coll_start(struct fabrex_comm *comm,
			     const struct fabrex_collective *what, size_t size,
			     struct fabrex_coll **coll)
{
	struct fabrex_collective w = { 0 };
	int ret;

	ret = fxi_copy_in(comm->port, "collective", &w, sizeof(w), what, size);
	if (!ret)
		ret = fxi_coll_arguments(comm, &w);
	if (!ret && !coll && !comm->grouping)
		ret = fxi_error(EINVAL, "%s: no place for the handle; only calls in a group go without",
				fxi_kind_name(w.kind));
	return ret ? ret : start(comm, &w, coll);
}

static int finish(struct fabrex_coll *coll)
{
	int ret = fxi_coll_result(coll);

	forget(coll);
	return ret;
}

EXPORT int fabrex_coll_test(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	int ret = 0;

	fxi_comm_enter(comm);
	if (coll->result == GOING && !comm->grouping &&
	    !fxi_comm_progress(comm) &&
	    !(++comm->tests % TEST_ROUNDS))
		pause_for(coll, comm->tests / TEST_ROUNDS);
	if (coll->result != GOING) {
		comm->tests = 0;
		ret = finish(coll);
		ret = ret ? ret : 1;
	}
	fxi_comm_leave(comm);
	return ret;
}

EXPORT int fabrex_coll_wait(struct fabrex_coll *coll, int timeout_ms)
{
	struct fabrex_comm *comm = coll->comm;
	int ret;

	if (comm->grouping && coll->result == GOING)
		return fxi_error(EINVAL, "%s: it begins when its group ends; call fabrex_group_end() first",
				 fxi_kind_name(coll->what.kind));
	fxi_comm_enter(comm);
	ret = fxi_coll_wait(coll, fxi_deadline(timeout_ms));
	if (!ret)
		ret = finish(coll);
	fxi_comm_leave(comm);
	return ret;
}

/* ---- life -------------------------------------------------------------- */

int fxi_operations_make(struct fabrex_comm *comm, const char *algorithms)
{
	int ret;

	pthread_mutex_init(&comm->lock, NULL);
	ret = fxi_table_make(comm, algorithms);
	if (!ret)
		ret = fxi_pairs_make(comm);
	if (!ret)
		ret = fxi_flat_make(comm);
	if (!ret)
		ret = fxi_direct_make(comm);
	if (!ret)
		ret = fxi_staged_make(comm);
	if (!ret)
		ret = fxi_peer_buffers_make(comm);
	if (ret)
		fxi_operations_free(comm);
	return ret;
}

/* Handles are gone with their communicator. */
static void free_kept(struct fabrex_comm *comm)
{
	struct fabrex_coll *coll, *next;

	for (coll = comm->first; coll; coll = next) {
		next = coll->next;
		if (coll->begun)
			coll->algorithm->end(coll);
		free(coll);
	}
	comm->first = comm->last = NULL;
	while (comm->ended)
		forget(comm->ended);
}

void fxi_operations_free(struct fabrex_comm *comm)
{
	fxi_comm_enter(comm);
	fxi_group_free(comm);
	free_kept(comm);
	fxi_peer_buffers_free(comm);
	fxi_pairs_free(comm);
	fxi_flat_free(comm);
	fxi_direct_free(comm);
	fxi_staged_free(comm);
	fxi_places_free(comm);
	fxi_comm_leave(comm);
	fxi_table_free(comm->table);
	comm->table = NULL;
	pthread_mutex_destroy(&comm->lock);
}
