// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * After a failure: abort, which ranks have failed, and shrink, in which the
 * survivors agree on who they are and make a new communicator. Public half:
 * fabrex_comm_create(3).
 *
 * Every rank writes the set F of failed ranks it knows of to the boards of all,
 * adds what others know, and decides on F once all that are not in F have
 * written the same F. A rank that sees that another one, not in its own F, has
 * decided, decides the same. F only grows until a decision, and boards of ranks
 * in F are ignored. So no two survivors decide differently: each would have had
 * to write its F to the other before the other's. Deaths after the decision are
 * left to the new communicator.
 *
 * A decision is final, also when the exchange fails and is tried again.
 * Attempts are numbered: every rank follows the highest number that it sees, so
 * that none connects to the mailbox of an attempt that was given up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/bootstrap/bootstrap.h"
#include "coll/failure/failure.h"
#include "coll/coll.h"

#define NOBODY		UINT32_MAX

struct shrink {
	struct fabrex_comm *comm;
	const struct fabrex_comm *called; /* what the caller shrinks, which
					   * another thread may abort
					   */
	uint64_t deadline, begun_ns;
	uint32_t waiting;		/* has not joined, or not agreed */
	bool decided;
	uint64_t later;			/* higher attempt that another rank is
					 * at
					 */
	uint64_t agreed[FAILED_WORDS];
};

/* A card on a board; counts if the check fits, for what @id has agreed on. */
struct board_card {
	uint64_t check;
	uint64_t id;
	uint64_t attempt;
	struct link_card card;
};
_Static_assert(sizeof(struct board_card) % 8 == 0, "words");
_Static_assert(BOARD_AT_CARD + sizeof(struct board_card) <= BOARD_BYTES,
	       "boards");

static bool has(const uint64_t *set, uint32_t rank)
{
	return set[rank / 64] >> rank % 64 & 1;
}

/* ---- agreement --------------------------------------------------------- */

/* Has this rank aborted? What is being shrunk then is aborted as well. */
static bool is_aborted(const struct shrink *s)
{
	if (__atomic_load_n(&s->called->aborted, __ATOMIC_RELAXED))
		fabrex_comm_abort(s->comm);
	fxi_comm_over(s->comm);
	return s->comm->error == -ECANCELED;
}

static void wait_a_little(const struct shrink *s, uint32_t patience)
{
	fxi_link_progress(s->comm);
	fxi_look_for_dead(s->comm, NOBODY);
	fxi_backoff(s->comm, patience);
}

static int late(const struct shrink *s, const char *what)
{
	const struct link_card *card = fxi_link_card(s->comm, s->waiting);

	return fxi_error(ETIMEDOUT, "communicator of %u ranks: shrink: rank %u (host %s, process %u) lives, but %s within the time given; it has to call fabrex_comm_shrink() too",
			 s->comm->size, s->waiting, card->name, card->pid,
			 what);
}

/* It lives, but does not take part: silent, as in an operation. */
static void check_silence(struct shrink *s, uint32_t rank)
{
	uint64_t limit = (uint64_t)s->comm->silence_ms * 1000000u;

	if (limit && fxi_now_ns() - s->begun_ns > limit)
		fxi_comm_blame(s->comm, rank, WHY_SILENT, -ETIMEDOUT);
}

/* Reads one rank's board. True: it agrees with us so far. */
static bool hear(struct shrink *s, uint32_t rank, bool *news)
{
	struct fabrex_comm *comm = s->comm;
	bool left = fxi_link_has_left(comm, rank);
	struct rank_status b;
	bool said = fxi_status_read(comm, rank, &b);

	if (said && b.state & STATUS_DECIDED) {
		s->decided = true;
		memcpy(s->agreed, b.failed, sizeof(s->agreed));
		return true;
	}
	if (left) {
		fxi_comm_blame(comm, rank, WHY_LEFT, -ECONNRESET);
		return false;
	}
	if (fxi_status_aborted(comm, rank, news))
		return false;
	if (said && fxi_status_merge(comm, rank, &b))
		*news = true;
	if (said && b.state & STATUS_SHRINK)
		return !memcmp(b.failed, comm->failed, sizeof(b.failed));
	check_silence(s, rank);
	return false;
}

/* Reads all boards once. */
static void round_once(struct shrink *s)
{
	struct fabrex_comm *comm = s->comm;
	uint64_t before[FAILED_WORDS];
	bool all = true, news = false;
	uint32_t rank;

	memcpy(before, comm->failed, sizeof(before));
	for (rank = 0; rank < comm->size && !s->decided; rank++) {
		if (rank == comm->rank || fxi_failed(comm, rank))
			continue;
		if (hear(s, rank, &news))
			continue;
		s->waiting = rank;
		all = false;
	}
	if (s->decided)
		return;
	if (news)
		fxi_status_publish(comm);
	if (all && !memcmp(before, comm->failed, sizeof(before))) {
		s->decided = true;
		memcpy(s->agreed, before, sizeof(before));
	}
}

static int agree(struct shrink *s)
{
	struct fabrex_comm *comm = s->comm;
	uint32_t patience = 0;

	if (is_aborted(s))
		return fxi_comm_error(comm);
	if (fxi_status_decided(comm, s->agreed))
		return 0;
	fxi_status_state(comm, STATUS_SHRINK, comm->failed);
	for (;;) {
		if (is_aborted(s) || fxi_failed(comm, comm->rank))
			return fxi_comm_error(comm);
		round_once(s);
		if (s->decided)
			break;
		if (patience % 16 == 15 && !fxi_remaining_ms(s->deadline))
			return late(s, "has not agreed who is left");
		wait_a_little(s, patience++);
	}
	if (has(s->agreed, comm->rank)) {
		fxi_comm_blame(comm, comm->rank, WHY_DEAD, -ECONNRESET);
		return fxi_comm_error(comm);
	}
	fxi_status_state(comm, STATUS_DECIDED, s->agreed);
	return 0;
}

/* ---- the new communicator ---------------------------------------------- */

static uint64_t card_check(const struct board_card *card)
{
	return fxi_hash((const char *)card + sizeof(card->check),
			sizeof(*card) - sizeof(card->check), 2);
}

static uint64_t agreed_id(const struct shrink *s)
{
	return fxi_hash(s->agreed, sizeof(s->agreed), s->comm->id);
}

static void card_post(struct shrink *s, const void *mine)
{
	struct board_card card = {
		.id = agreed_id(s), .attempt = s->comm->attempt,
	};
	uint32_t rank;

	memcpy(&card.card, mine, sizeof(card.card));
	card.check = card_check(&card);
	for (rank = 0; rank < s->comm->size; rank++)
		if (rank != s->comm->rank && !has(s->agreed, rank))
			fxi_link_post(s->comm, rank, BOARD_AT_CARD, &card,
				      sizeof(card));
}

/* True: it is there. The number of a later attempt is remembered. */
static bool card_read(struct shrink *s, uint32_t rank, struct link_card *out)
{
	struct board_card card;

	fxi_link_board_copy(s->comm, rank, BOARD_AT_CARD, &card, sizeof(card));
	if (card.check != card_check(&card) || card.id != agreed_id(s) ||
	    card.attempt < s->comm->attempt)
		return false;
	if (card.attempt > s->comm->attempt)
		s->later = card.attempt;
	*out = card.card;
	return true;
}

/* It has decided otherwise: this rank was taken for dead and is excluded. */
static bool goes_without(struct shrink *s, uint32_t rank)
{
	struct rank_status b;

	return fxi_status_read(s->comm, rank, &b) &&
	       b.state & STATUS_DECIDED &&
	       memcmp(b.failed, s->agreed, sizeof(b.failed));
}

/* Waits for its card; zeroes if it has died since. */
static int card_await(struct shrink *s, uint32_t rank, struct link_card *out)
{
	uint32_t patience = 0;
	bool gone;

	for (;;) {
		if (is_aborted(s))
			return fxi_comm_error(s->comm);
		gone = fxi_failed(s->comm, rank) ||
		       fxi_link_has_aborted(s->comm, rank) ||
		       fxi_link_has_left(s->comm, rank);
		if (card_read(s, rank, out) || gone)
			break;
		if (goes_without(s, rank)) {
			fxi_comm_blame(s->comm, s->comm->rank, WHY_DEAD,
				       -ECONNRESET);
			return fxi_comm_error(s->comm);
		}
		if (patience % 16 == 15 && !fxi_remaining_ms(s->deadline)) {
			s->waiting = rank;
			return late(s, "has not come to the new one");
		}
		wait_a_little(s, patience++);
	}
	return s->later ? fxi_error(EAGAIN, "communicator of %u ranks: shrink: rank %u tries again",
				    s->comm->size, rank) : 0;
}

static int board_exchange(struct rendezvous *rendezvous, const void *mine,
			  void *all, size_t bytes)
{
	struct shrink *s = rendezvous->state;
	struct link_card *cards = all;
	uint32_t rank, at = 0;
	int ret = 0;

	memset(all, 0, rendezvous->size * bytes);
	card_post(s, mine);
	for (rank = 0; rank < s->comm->size && !ret; rank++) {
		if (has(s->agreed, rank))
			continue;
		if (rank == s->comm->rank)
			memcpy(&cards[at], mine, sizeof(*cards));
		else
			ret = card_await(s, rank, &cards[at]);
		at++;
	}
	return ret;
}

static int rejoin_once(struct shrink *s, struct fabrex_comm **out)
{
	struct fabrex_comm *comm = s->comm;
	const struct fabrex_comm_attr attr = {
		.death_ms = comm->death_ms, .silence_ms = comm->silence_ms,
		.algorithms = comm->algorithms,
		.flags = comm->no_thread ? FABREX_COMM_NO_THREAD : 0,
	};
	struct rendezvous rendezvous = {
		.exchange = board_exchange, .state = s,
		.deadline = s->deadline,
	};
	const uint64_t words[2] = { agreed_id(s), comm->attempt };
	uint32_t rank;

	for (rank = 0; rank < comm->size; rank++) {
		if (rank == comm->rank)
			rendezvous.rank = rendezvous.size;
		rendezvous.size += !has(s->agreed, rank);
	}
	rendezvous.id = fxi_hash(words, sizeof(words), comm->id) | 1;
	return fxi_comm_make(comm->ports, comm->nports, &rendezvous, &attr,
			     out);
}

/* Again as long as another rank is at a later attempt. */
static int rejoin(struct shrink *s, struct fabrex_comm **out)
{
	int ret;

	s->comm->attempt++;
	do {
		if (s->later)
			s->comm->attempt = s->later;
		s->later = 0;
		ret = rejoin_once(s, out);
	} while (ret && s->later);
	return ret;
}

/* ---- public ------------------------------------------------------------ */

/*
 * Called by any thread, and by handlers of signals, while another thread, or
 * the one that was interrupted, is inside of the communicator: stores and a
 * write to an eventfd, not even an error message. own_abort() in failure/ does
 * the rest, in the next round of whatever waits, or in the next call.
 */
EXPORT int fabrex_comm_abort(struct fabrex_comm *comm)
{
	if (!comm)
		return -EINVAL;
	if (comm->pid != getpid())
		return 0;
	__atomic_fetch_add(&comm->aborting, 1, __ATOMIC_ACQ_REL);
	if (!__atomic_exchange_n(&comm->aborted, 1, __ATOMIC_ACQ_REL))
		fxi_link_abort(comm);
	fxi_link_wake(comm);
	/* As soon as this is 0, it may be destroyed. */
	__atomic_fetch_sub(&comm->aborting, 1, __ATOMIC_RELEASE);
	return 0;
}

EXPORT int fabrex_comm_failed(struct fabrex_comm *comm, uint32_t *ranks,
			      size_t n)
{
	uint32_t rank;
	int count = 0;

	fxi_comm_enter(comm);
	fxi_status_notice(comm);
	fxi_look_for_dead(comm, NOBODY);
	for (rank = 0; rank < comm->size; rank++) {
		if (!fxi_failed(comm, rank))
			continue;
		if ((size_t)count < n)
			ranks[count] = rank;
		count++;
	}
	fxi_comm_leave(comm);
	return count;
}

/* From now on operations of this communicator fail, at all ranks. */
static void begin(struct fabrex_comm *comm)
{
	if (!fxi_comm_over(comm)) {
		comm->error = -ECONNRESET;
		comm->culprit = comm->rank;
		comm->why = WHY_SHRINKS;
	}
	fxi_comm_give_up(comm);
}

static int shrink_once(const struct fabrex_comm *called,
		       struct fabrex_comm *comm, uint64_t deadline,
		       struct fabrex_comm **out)
{
	struct shrink s = {
		.called = called, .comm = comm, .deadline = deadline,
		.begun_ns = fxi_now_ns(),
	};
	int ret;

	if (comm->shrunk)
		return fxi_error(EINVAL, "communicator of %u ranks: it has been shrunk already; shrink the communicator that resulted",
				 comm->size);
	fxi_comm_enter(comm);
	begin(comm);
	ret = agree(&s);
	if (!ret) {
		fxi_comm_settle_aborted(comm, deadline);
		ret = rejoin(&s, out);
	}
	comm->shrunk = !ret;
	fxi_comm_leave(comm);
	return ret;
}

EXPORT int fabrex_comm_shrink(struct fabrex_comm *comm, int timeout_ms,
			      struct fabrex_comm **out)
{
	NO_CANCEL();
	uint64_t deadline = fxi_deadline(timeout_ms);
	struct fabrex_comm *next;
	int ret;

	if (!out || comm->grouping)
		return fxi_error(EINVAL, "communicator: shrink: %s",
				 out ? "call fabrex_group_end() first" :
				       "no place for the new communicator");
	*out = NULL;
	ret = shrink_once(comm, comm, deadline, out);
	/* More ranks have died meanwhile: shrink what came of it. */
	while (!ret && (*out)->error) {
		ret = shrink_once(comm, *out, deadline, &next);
		fabrex_comm_destroy(*out);
		*out = ret ? NULL : next;
	}
	return ret;
}
