// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Who has died, who is silent: noticed by whoever waits, and told to all over
 * the boards, so that nobody waits for it a second time. Called by everything
 * in lib/coll that waits.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "coll/failure.h"
#include "coll/operation.h"

#define SPINS		4096u	/* before the processor is given away */
#define SPINS_BUSY	128u	/* of them without a pause */
#define TICKS		(1u << 19) /* between looks at the clock, about 0.2 ms */
#define LOOK_NS		10000000u /* between looks, where they cost nothing */
#define NOBODY		UINT32_MAX

/* What a rank has last said, and when that was new. */
struct beat {
	uint64_t value, seen_ns;
};

struct watch {
	struct board board;	/* as told to the others */
	struct beat *beats;	/* by rank */
	uint64_t count;		/* own beats */
	uint64_t beat_ns;
	bool suspecting, asking_self;
	uint64_t ticks;		/* at the last look at the clock */
	uint64_t silent_ns;	/* last look for the silent */
	uint64_t quiet_ns;	/* nothing has moved since; 0: not known */
	uint64_t quiet_moved;
	uint32_t left;		/* rank waited for at the last look, that had */
	uint64_t left_moved;	/* left already */
};

int fxi_watch_make(struct fabrex_comm *comm)
{
	struct watch *w = calloc(1, sizeof(*w));

	comm->watch = w;
	comm->failed = calloc(FAILED_WORDS, sizeof(*comm->failed));
	if (w)
		w->beats = calloc(comm->size, sizeof(*w->beats));
	if (!w || !comm->failed || !w->beats)
		return fxi_error(ENOMEM, "port %s: communicator: out of memory",
				 comm->port->attr.name);
	w->left = NOBODY;
	return 0;
}

void fxi_watch_free(struct fabrex_comm *comm)
{
	if (comm->watch)
		free(comm->watch->beats);
	free(comm->watch);
	free(comm->failed);
	comm->watch = NULL;
	comm->failed = NULL;
}

/* ---- boards ------------------------------------------------------------ */

static uint64_t board_check(const struct board *board)
{
	return fxi_hash((const char *)board + sizeof(board->check),
			sizeof(*board) - sizeof(board->check), 1);
}

void fxi_board_publish(struct fabrex_comm *comm)
{
	struct board *b = &comm->watch->board;
	uint32_t rank;

	if (!(b->state & BOARD_DECIDED))
		memcpy(b->failed, comm->failed, sizeof(b->failed));
	b->error = comm->error;
	b->culprit = comm->culprit;
	b->why = comm->why;
	b->check = board_check(b);
	for (rank = 0; rank < comm->size; rank++) {
		if (rank == comm->rank)
			continue;
		fxi_link_post(comm, rank, 0, b, sizeof(*b));
		fxi_link_raise(comm, rank);
	}
	/* Before whatever the caller stores once it knows of the error. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void fxi_board_state(struct fabrex_comm *comm, uint32_t state,
		     const uint64_t *failed)
{
	struct board *b = &comm->watch->board;

	if (!(b->state & BOARD_DECIDED))
		memcpy(b->failed, failed, sizeof(b->failed));
	b->state |= state;
	fxi_board_publish(comm);
}

bool fxi_board_decided(const struct fabrex_comm *comm, uint64_t *failed)
{
	const struct board *b = &comm->watch->board;

	if (b->state & BOARD_DECIDED)
		memcpy(failed, b->failed, sizeof(b->failed));
	return b->state & BOARD_DECIDED;
}

bool fxi_board_read(struct fabrex_comm *comm, uint32_t rank,
		    struct board *board)
{
	const uint64_t *from = fxi_link_board(comm, rank);
	uint64_t words[sizeof(*board) / 8];
	unsigned int i;

	for (i = 0; i < sizeof(words) / 8; i++)
		words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	memcpy(board, words, sizeof(*board));
	return board->check == board_check(board);
}

static uint64_t valid_bits(const struct fabrex_comm *comm, uint32_t word)
{
	if (comm->size >= (word + 1) * 64)
		return ~0ull;
	return comm->size > word * 64 ? (1ull << comm->size % 64) - 1 : 0;
}

/* Only what documented errors there are is taken over. */
static void adopt(struct fabrex_comm *comm, uint32_t rank,
		  const struct board *b)
{
	bool known = b->why >= WHY_DEAD && b->why <= WHY_DISAGREES;

	if (comm->error)
		return;
	comm->error = b->error == -ETIMEDOUT ? -ETIMEDOUT : -ECONNRESET;
	comm->culprit = b->culprit < comm->size && known ? b->culprit : rank;
	comm->why = known ? b->why : WHY_DEAD;
}

bool fxi_board_merge(struct fabrex_comm *comm, uint32_t rank,
		     const struct board *b)
{
	bool news = false;
	uint64_t bits;
	uint32_t i;

	for (i = 0; i < FAILED_WORDS; i++) {
		bits = b->failed[i] & valid_bits(comm, i) & ~comm->failed[i];
		comm->failed[i] |= bits;
		news |= bits != 0;
	}
	if (news || b->error || b->state & BOARD_SHRINK)
		adopt(comm, rank, b);
	return news;
}

/*
 * What the others have found out. All are told before anybody here learns of
 * it, whoever else may have told them: see fxi_comm_alarmed().
 */
static int notice(struct fabrex_comm *comm)
{
	bool news = false;
	struct board b;
	uint32_t rank;

	if (comm->error)
		return comm->error;
	for (rank = 0; rank < comm->size; rank++)
		if (rank != comm->rank && fxi_board_read(comm, rank, &b))
			news |= fxi_board_merge(comm, rank, &b);
	if (news || comm->error)
		fxi_board_publish(comm);
	return comm->error;
}

/* A board that cannot be read is being written: a moment later it can. */
int fxi_comm_notice(struct fabrex_comm *comm)
{
	if (notice(comm) || fxi_comm_suspect(comm))
		return comm->error;
	return fxi_comm_blame(comm, comm->rank, WHY_BROKEN, -ECONNRESET);
}

int fxi_comm_blame(struct fabrex_comm *comm, uint32_t rank,
		   enum failure_why why, int error)
{
	if (fxi_failed(comm, rank))
		return comm->error;
	comm->failed[rank / 64] |= 1ull << rank % 64;
	if (!comm->error) {
		comm->error = error;
		comm->culprit = rank;
		comm->why = why;
	}
	fxi_board_publish(comm);
	return comm->error;
}

/* ---- the dead ---------------------------------------------------------- */

/*
 * If nobody can be reached, it is not the others who have gone: a WRITE to
 * oneself fails then, too, before the port's state tells.
 */
static bool own_link_down(struct fabrex_comm *comm)
{
	uint64_t deadline = fxi_deadline((int)comm->death_ms / 4);
	int ret;

	if (comm->coherent)
		return false;
	comm->watch->asking_self = true;
	do {
		ret = fxi_link_probe(comm, comm->rank);
	} while (ret == -EINPROGRESS && fxi_remaining_ms(deadline));
	comm->watch->asking_self = false;
	return ret == -ECONNRESET;
}

/* What comes in meanwhile is found again. */
static void is_dead(struct fabrex_comm *comm, uint32_t rank)
{
	if (comm->watch->asking_self)
		return;
	if (own_link_down(comm))
		fxi_comm_blame(comm, comm->rank, WHY_PORT, -ECONNRESET);
	else
		fxi_comm_blame(comm, rank, WHY_DEAD, -ECONNRESET);
}

/*
 * One that has left may have sent all that is needed: only if nothing has
 * moved between two looks it is missed.
 */
static void has_left(struct fabrex_comm *comm, uint32_t waiting)
{
	struct watch *w = comm->watch;

	if (w->left == waiting && w->left_moved == comm->moved)
		fxi_comm_blame(comm, waiting, WHY_LEFT, -ECONNRESET);
	w->left = waiting;
	w->left_moved = comm->moved;
}

static void look_at(struct fabrex_comm *comm, uint32_t rank, bool waited_for)
{
	if (!fxi_has_left(comm, rank)) {
		if (fxi_link_probe(comm, rank) != -ECONNRESET)
			return;
		if (!fxi_has_left(comm, rank)) {
			is_dead(comm, rank);
			return;
		}
	}
	if (waited_for)
		has_left(comm, rank);
}

static uint64_t look_period(const struct fabrex_comm *comm)
{
	uint64_t ns = (uint64_t)comm->death_ms * 1000000u / 4;

	return comm->coherent && ns > LOOK_NS ? LOOK_NS : ns;
}

void fxi_look_for_dead(struct fabrex_comm *comm, uint32_t waiting)
{
	uint64_t now = fxi_now_ns();
	uint32_t rank;

	if (now - comm->looked_ns < look_period(comm))
		return;
	comm->looked_ns = now;
	for (rank = 0; rank < comm->size; rank++)
		if (rank != comm->rank && !fxi_failed(comm, rank))
			look_at(comm, rank, rank == waiting);
	if (comm->links->far)
		fxi_link_again(comm);
}

static void ask_all(struct fabrex_comm *comm)
{
	uint32_t rank;

	for (rank = 0; rank < comm->size && !notice(comm); rank++)
		if (rank != comm->rank)
			look_at(comm, rank, false);
}

/* What has failed may have seen the death before the fabric has. */
int fxi_comm_suspect(struct fabrex_comm *comm)
{
	NO_CANCEL();
	uint64_t deadline = fxi_deadline((int)comm->death_ms / 4);

	if (comm->watch->suspecting)
		return comm->error;
	comm->watch->suspecting = true;
	do {
		ask_all(comm);
		if (!comm->error)
			poll(NULL, 0, 1);
	} while (!comm->error && fxi_remaining_ms(deadline));
	comm->watch->suspecting = false;
	return comm->error;
}

/* An own error is often the consequence of a death. */
int fxi_comm_fail(struct fabrex_comm *comm, uint32_t rank, int error)
{
	if (rank != comm->rank && error == -ETIMEDOUT)
		return fxi_comm_blame(comm, rank, WHY_SILENT, error);
	if (rank != comm->rank) {
		is_dead(comm, rank);
		return comm->error;
	}
	if (!comm->error && fxi_comm_suspect(comm)) {
		free(comm->reason);
		comm->reason = NULL;
		return comm->error;
	}
	if (error != -EPROTO)
		return fxi_comm_blame(comm, rank, WHY_BROKEN, error);
	/* Ranks do not call the same: nobody is lost, all can go on. */
	if (!comm->error) {
		comm->error = error;
		comm->culprit = rank;
		comm->why = WHY_DISAGREES;
		fxi_board_publish(comm);
	}
	return comm->error;
}

/* Cheaper than the clock. */
static inline uint64_t ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#else
	return fxi_now_ns();
#endif
}

/* ---- the silent -------------------------------------------------------- */

/* Say that this rank lives, and whom it waits for. */
static void beat(struct fabrex_comm *comm, uint32_t waiting, uint64_t now)
{
	struct watch *w = comm->watch;
	uint64_t value;
	uint32_t rank;

	if (now - w->beat_ns < (uint64_t)comm->silence_ms * 1000000u / 8)
		return;
	w->beat_ns = now;
	value = ++w->count << 32 | waiting;
	for (rank = 0; rank < comm->size; rank++)
		if (rank != comm->rank && !fxi_failed(comm, rank))
			fxi_link_post(comm, rank, BOARD_BEAT, &value,
				      sizeof(value));
}

void fxi_comm_beat(struct fabrex_comm *comm, uint32_t waiting)
{
	uint64_t now = ticks();

	if (!comm->silence_ms || comm->error ||
	    now - comm->watch->ticks < TICKS)
		return;
	comm->watch->ticks = now;
	beat(comm, waiting, fxi_now_ns());
}

static void beats_read(struct fabrex_comm *comm, uint64_t now)
{
	uint64_t value;
	uint32_t rank;

	for (rank = 0; rank < comm->size; rank++) {
		struct beat *b = &comm->watch->beats[rank];
		char *board = fxi_link_board(comm, rank);

		value = __atomic_load_n((uint64_t *)(void *)
					(board + BOARD_BEAT),
					__ATOMIC_RELAXED);
		if (value == b->value)
			continue;
		b->value = value;
		b->seen_ns = now;
	}
}

/* Who waits for another is not the one that is missing. */
static uint32_t missing(const struct fabrex_comm *comm, uint32_t waiting,
			uint64_t now)
{
	uint64_t recent = (uint64_t)comm->silence_ms * 1000000u / 2;
	uint32_t rank = waiting, steps, next;

	for (steps = 0; steps < comm->size; steps++) {
		const struct beat *b = &comm->watch->beats[rank];

		if (!b->seen_ns || now - b->seen_ns > recent)
			return rank;
		next = (uint32_t)b->value;
		if (next >= comm->size || next == comm->rank)
			return waiting;
		rank = next;
	}
	return waiting;
}

/* Time in which this rank itself did not wait does not count. */
static void look_for_silent(struct fabrex_comm *comm, uint32_t waiting)
{
	uint64_t limit = (uint64_t)comm->silence_ms * 1000000u;
	struct watch *w = comm->watch;
	uint64_t now = fxi_now_ns();
	bool away = now - w->silent_ns > limit / 4;

	if (!away && now - w->silent_ns < limit / 64)
		return;
	w->silent_ns = now;
	beat(comm, waiting, now);
	beats_read(comm, now);
	if (away || !w->quiet_ns || w->quiet_moved != comm->moved) {
		w->quiet_ns = now;
		w->quiet_moved = comm->moved;
	}
	if (now - w->quiet_ns > limit && waiting < comm->size &&
	    waiting != comm->rank)
		fxi_comm_blame(comm, missing(comm, waiting, now), WHY_SILENT,
			       -ETIMEDOUT);
}

/* ---- waiting ----------------------------------------------------------- */

static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

void fxi_relax(const struct fabrex_comm *comm, uint32_t patience)
{
	if (comm->crowded || patience >= SPINS)
		sched_yield();
	else if (patience >= SPINS_BUSY)
		cpu_pause();
}

static int look(struct fabrex_comm *comm, uint32_t waiting)
{
	uint64_t now = ticks();

	if (now - comm->watch->ticks < TICKS)
		return 0;
	comm->watch->ticks = now;
	fxi_look_for_dead(comm, waiting);
	if (comm->silence_ms)
		look_for_silent(comm, waiting);
	return comm->error;
}

int fxi_comm_wait(struct fabrex_comm *comm, uint32_t waiting,
		  uint32_t patience)
{
	if (unlikely(comm->error ||
		     __atomic_load_n(comm->links->alarm, __ATOMIC_RELAXED)) &&
	    notice(comm))
		return comm->error;
	fxi_relax(comm, patience);
	if (!patience)
		comm->watch->quiet_ns = 0;
	if (patience % PATIENCE_LOOKS && !comm->crowded && patience < SPINS)
		return 0;
	return look(comm, waiting);
}

/* ---- the end ----------------------------------------------------------- */

/* Nothing of this communicator is touched by it any more. */
static bool has_noticed(struct fabrex_comm *comm, uint32_t rank)
{
	struct board b;

	if (rank == comm->rank || fxi_failed(comm, rank) ||
	    fxi_has_left(comm, rank))
		return true;
	return fxi_board_read(comm, rank, &b) && (b.error || b.state);
}

/*
 * After a failure others may be in the middle of a piece of this rank's
 * buffers. Who is outside of the library finds the alarm before it begins one,
 * so that little is lost by not waiting for it longer.
 */
void fxi_comm_settle(struct fabrex_comm *comm)
{
	uint64_t deadline = fxi_deadline((int)comm->death_ms);
	uint32_t rank, patience = 0;

	for (rank = 0; rank < comm->size; rank++)
		while (!has_noticed(comm, rank) && fxi_remaining_ms(deadline)) {
			fxi_link_progress(comm);
			fxi_look_for_dead(comm, NOBODY);
			fxi_relax(comm, patience++);
		}
}

void fxi_farewell(struct fabrex_comm *comm)
{
	uint64_t deadline = fxi_deadline((int)comm->death_ms);
	const uint64_t left = 1;
	uint32_t rank, repeated;

	for (rank = 0; rank < comm->size; rank++)
		if (rank != comm->rank && !fxi_failed(comm, rank) &&
		    !fxi_has_left(comm, rank))
			fxi_link_post(comm, rank, BOARD_LEFT, &left,
				      sizeof(left));
	if (!comm->links->far)
		return;
	/*
	 * Completions come in order: behind everything that was sent, unless
	 * something had to be sent again.
	 */
	do {
		repeated = comm->links->repeated;
		while (fxi_link_probe(comm, comm->rank) == -EINPROGRESS &&
		       fxi_remaining_ms(deadline))
			sched_yield();
	} while (comm->links->repeated != repeated &&
		 fxi_remaining_ms(deadline));
}

EXPORT int fabrex_comm_abort(struct fabrex_comm *comm)
{
	fxi_comm_enter(comm);
	fxi_comm_blame(comm, comm->rank, WHY_ABORTED, -ECONNRESET);
	fxi_comm_leave(comm);
	return 0;
}

EXPORT int fabrex_comm_failed(struct fabrex_comm *comm, uint32_t *ranks,
			      size_t n)
{
	uint32_t rank;
	int count = 0;

	fxi_comm_enter(comm);
	notice(comm);
	fxi_look_for_dead(comm, NOBODY);
	fxi_comm_leave(comm);
	for (rank = 0; rank < comm->size; rank++) {
		if (!fxi_failed(comm, rank))
			continue;
		if ((size_t)count < n)
			ranks[count] = rank;
		count++;
	}
	return count;
}

/* ---- sentences --------------------------------------------------------- */

static const char *why_text(const struct fabrex_comm *comm)
{
	bool self = comm->culprit == comm->rank;

	switch ((enum failure_why)comm->why) {
	case WHY_SILENT:
		return self ? "was taken for dead by the others, as it took no part for too long" :
			      "has taken no part for the time set (silence_ms)";
	case WHY_LEFT:
		return "has destroyed the communicator before the others were done";
	case WHY_ABORTED:
		return "has aborted";
	case WHY_BROKEN:
		return "has given up after an error of its own";
	case WHY_PORT:
		return "has lost its port or its link to the fabric";
	case WHY_SHRINKS:
		return "shrinks the communicator; do the same";
	case WHY_DISAGREES:
		return "does not call the same as others, or others not the same as it";
	case WHY_DEAD:
		break;
	}
	return self ? "was taken for dead by the others" :
		      "has died or cannot be reached any more";
}

int fxi_comm_error(struct fabrex_comm *comm)
{
	const struct link_card *card = fxi_link_card(comm, comm->culprit);

	if (comm->reason)
		return fxi_error(-comm->error, "%s", comm->reason);
	return fxi_error(-comm->error, "communicator of %u ranks: %srank %u (host %s, process %u) %s; %s",
			 comm->size,
			 comm->culprit == comm->rank ? "this " : "",
			 comm->culprit, card->name, card->pid, why_text(comm),
			 fxi_failed(comm, comm->rank) ?
			 "destroy the communicator" :
			 "go on with fabrex_comm_shrink()");
}
