// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Words that ranks store in each other's mailboxes beside the messages, and
 * probes of whether a rank is still there. Called by failure/ and sendrecv.c.
 */
#include <sched.h>
#include <string.h>

#include "base/barrier.h"
#include "base/clock.h"
#include "coll/link/mailbox.h"

void fxi_link_board_copy(const struct fabrex_comm *comm, uint32_t rank,
			 uint32_t offset, void *to, uint32_t length)
{
	const uint64_t *from = fxi_link_board(comm, rank, offset);
	uint64_t word;
	uint32_t i;

	for (i = 0; i < length / 8; i++) {
		word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
		memcpy((char *)to + 8 * i, &word, 8);
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/* A word at a time, so that a concurrent reader sees whole words. */
static void store_words(uint8_t *to, const uint8_t *from, uint32_t length)
{
	uint64_t word;

	for (; length >= 8; length -= 8, to += 8, from += 8) {
		memcpy(&word, from, 8);
		__atomic_store_n((uint64_t *)(void *)to, word,
				 __ATOMIC_RELAXED);
	}
	memcpy(to, from, length);
}

static int post_far(struct fabrex_comm *comm, uint32_t rank, uint64_t local,
		    uint64_t remote, uint32_t length)
{
	const struct mailbox_job job = {
		.what = WRITE_BOARD, .number = rank * LINK_CHANNELS,
		.mr = comm->links->mailbox->peers[rank].mirror_mr,
		.offset = local, .remote = remote, .length = length,
		.flags = FABREX_SQE_QUIET,
	};

	return fxi_mailbox_write(comm, &job);
}

int fxi_link_post(struct fabrex_comm *comm, uint32_t rank, uint32_t offset,
		  const void *bytes, uint32_t length)
{
	struct mailbox *box = comm->links->mailbox;
	uint64_t theirs = mailbox_board(&box->layout, comm->rank) + offset;
	uint64_t ours = mailbox_board(&box->layout, rank) + offset;
	uint8_t *base = box->peers[rank].base;

	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (base) {
		store_words(base + theirs, bytes, length);
		return 0;
	}
	if (!box->peers[rank].mirror_mr)
		return -ECONNRESET;
	store_words(box->mirror + ours, bytes, length);
	return post_far(comm, rank, ours, theirs, length);
}

void fxi_link_raise(struct fabrex_comm *comm, uint32_t rank)
{
	struct mailbox *box = comm->links->mailbox;
	uint8_t *base = box->peers[rank].base;

	if (base) {
		__atomic_store_n((uint64_t *)(void *)base, 1,
				 __ATOMIC_RELEASE);
	} else if (box->peers[rank].mirror_mr) {
		*(uint64_t *)(void *)box->mirror = 1;
		post_far(comm, rank, 0, 0, 8);
	}
}

/* Through a window it may get lost: the thread that makes calls repeats it. */
static void abort_word(struct fabrex_comm *comm, uint32_t rank,
		       uint64_t offset)
{
	const struct mailbox_peer *peer = &comm->links->mailbox->peers[rank];

	if (peer->base) {
		__atomic_store_n((uint64_t *)(void *)(peer->base + offset), 1,
				 __ATOMIC_RELEASE);
	} else if (peer->pio) {
		*(volatile uint64_t *)(volatile void *)(peer->pio + offset) =
			1;
		barrier_wc();
	}
}

/* All have the word before any is told to look: whoever hears of it has it. */
void fxi_link_abort(struct fabrex_comm *comm)
{
	uint64_t word = mailbox_board(&comm->links->mailbox->layout,
				      comm->rank) + BOARD_AT_ABORT;
	uint32_t rank;

	abort_word(comm, comm->rank, 0);
	for (rank = 0; rank < comm->size; rank++)
		if (rank != comm->rank)
			abort_word(comm, rank, word);
	for (rank = 0; rank < comm->size; rank++)
		if (rank != comm->rank)
			abort_word(comm, rank, 0);
}

/* ---- is it still there? ------------------------------------------------ */

int fxi_link_probe(struct fabrex_comm *comm, uint32_t rank)
{
	struct mailbox *box = comm->links->mailbox;
	struct mailbox_peer *peer = &box->peers[rank];
	const struct mailbox_job job = {
		.what = WRITE_PROBE, .number = rank * LINK_CHANNELS,
		.mr = box->ports[peer->port].mr,
	};

	/* A full queue does not tell anything about the other rank. */
	if (!peer->asking && !peer->unreachable && box->looking)
		return -EINPROGRESS;
	if (!peer->asking && !peer->unreachable) {
		peer->asking = true;
		if (fxi_mailbox_write(comm, &job)) {
			peer->asking = false;
			return fxi_failed(comm, comm->rank) ? -EINPROGRESS :
							      -ECONNRESET;
		}
	}
	fxi_link_progress(comm);
	if (peer->unreachable)
		return -ECONNRESET;
	return peer->asking ? -EINPROGRESS : 0;
}

/* To oneself through that queue of the mailbox's, whose port it is that counts. */
static void self_through(struct fabrex_comm *comm, uint32_t queue)
{
	struct mailbox *box = comm->links->mailbox;
	struct mailbox_peer *self = &box->peers[comm->rank];
	uint8_t port = 0;

	while (queue >= box->ports[port].first + box->ports[port].nqueues)
		port++;
	self->queue = queue;
	self->port = port;
	self->to = box->cards[comm->rank].entrances[port];
}

int fxi_link_probe_self(struct fabrex_comm *comm, uint32_t rank)
{
	const struct mailbox *box = comm->links->mailbox;

	if (!box->peers[comm->rank].asking)
		self_through(comm, box->ports[box->peers[rank].port].first);
	return fxi_link_probe(comm, comm->rank);
}

/* Completions of a queue come in order: a probe is behind all that was sent. */
void fxi_link_drain(struct fabrex_comm *comm, uint64_t deadline)
{
	struct mailbox *box = comm->links->mailbox;
	const struct mailbox_peer *self = &box->peers[comm->rank];
	uint32_t i;

	for (i = 0; i < box->nqueues; i++) {
		/* One that is under way went through another queue. */
		while (self->asking && fxi_remaining_ms(deadline) &&
		       fxi_link_probe(comm, comm->rank) == -EINPROGRESS)
			sched_yield();
		self_through(comm, i);
		while (fxi_link_probe(comm, comm->rank) == -EINPROGRESS &&
		       fxi_remaining_ms(deadline))
			sched_yield();
	}
}

/* The rank has the choice between entrances of @card, if there are several. */
static bool has_choice(const struct link_card *card)
{
	uint32_t i;

	for (i = 1; i < LINK_ENTRANCES; i++)
		if (card->entrances[i].rkey)
			return true;
	return false;
}

void fxi_link_tell_entrances(struct fabrex_comm *comm)
{
	const struct mailbox *box = comm->links->mailbox;
	uint64_t word;
	uint32_t rank;

	for (rank = 0; rank < comm->size; rank++) {
		if (rank == comm->rank || fxi_failed(comm, rank) ||
		    fxi_link_has_left(comm, rank) ||
		    !has_choice(mailbox_card(comm, rank)))
			continue;
		word = 1u + box->peers[rank].entrance;
		/* If that fails, its next operation says so. */
		fxi_link_post(comm, rank, BOARD_AT_ENTRANCE, &word,
			      sizeof(word));
	}
}
