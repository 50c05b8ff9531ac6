// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rare part of messages: credits, damaged messages, and everything where
 * mailboxes are reached by WRITEs through a queue ("far"). Called by inline.h,
 * by failure/ and by the algorithms.
 *
 * A far message is written into a mirror of the receiver's mailbox and from
 * there with WRITEs, payload first. WRITEs to one peer take effect in order;
 * the header is FENCEd behind its payload, so that it does not arrive if that
 * failed. An earlier failure, at another rank, is absorbed by a FENCEd NOP in
 * front of both, as nobody would send the header again before this rank's next
 * call. The bytes of the header itself land in any order: it carries a check of
 * all of it and of its number, and is valid only when that fits.
 */
#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "coll/link/mailbox.h"

#define COMPLETIONS	16
#define FULL_TURNS	16u	/* of a full queue between looks */
#define HEADER_BYTES	(offsetof(struct link_slot, check) + sizeof(uint64_t))

static int unreachable(struct fabrex_comm *comm, uint32_t rank)
{
	return comm->links->reports->unreachable(comm, rank);
}

/* ---- WRITEs ------------------------------------------------------------ */

static uint64_t token(enum mailbox_write what, uint32_t number,
		      uint32_t detail)
{
	return (uint64_t)what << 56 | (uint64_t)detail << 32 | number;
}

/* The device gets all that was put into the rank's queue, with one doorbell. */
static int flush(struct fabrex_comm *comm, uint32_t rank)
{
	const struct mailbox *box = comm->links->mailbox;

	if (fabrex_submit(box->queues[box->peers[rank].queue]) >= 0)
		return 0;
	return unreachable(comm, comm->rank);
}

/*
 * The queue is full, and stays so while the link or a peer's flow control
 * stands still: looks for dead ranks as every wait does, for death_ms at most.
 * 0: try again. After an error this waits, too, as news of it has to get out.
 */
static int wait_for_room(struct fabrex_comm *comm, uint32_t rank,
			 uint32_t turns)
{
	struct mailbox *box = comm->links->mailbox;
	uint64_t *full_ns = &box->full_ns[box->peers[rank].queue];
	int ret = flush(comm, rank);

	if (!ret)
		ret = fxi_link_poll(comm);
	if (ret || turns % FULL_TURNS)
		return ret;
	if (!*full_ns)
		*full_ns = fxi_now_ns();
	if (fxi_now_ns() - *full_ns > (uint64_t)comm->death_ms * 1000000u)
		return comm->links->reports->stuck(comm);
	if (box->looking || comm->error) {
		fxi_backoff(comm, turns);
		return 0;
	}
	box->looking = true;
	ret = comm->links->reports->wait(comm, rank, turns);
	box->looking = false;
	return ret;
}

/* Not before flush() has it left this process. */
static int put(struct fabrex_comm *comm, uint32_t rank,
	       const struct fabrex_op *op)
{
	struct mailbox *box = comm->links->mailbox;
	uint32_t turns = 0, queue = box->peers[rank].queue;
	int ret;

	while ((ret = fabrex_prep(box->queues[queue], op))) {
		if (ret == -EAGAIN)
			ret = wait_for_room(comm, rank, ++turns);
		else
			ret = unreachable(comm, comm->rank);
		if (ret)
			return ret;
	}
	box->full_ns[queue] = 0;
	comm->links->asked += !(op->flags & FABREX_SQE_QUIET);
	return 0;
}

static int put_write(struct fabrex_comm *comm, const struct mailbox_job *job)
{
	uint32_t rank = job->number / LINK_CHANNELS;
	const struct link_entrance *to =
		&comm->links->mailbox->peers[rank].to;
	const struct fabrex_op op = {
		.opcode = FABREX_OP_WRITE, .flags = job->flags,
		.peer = (uint16_t)to->port.peer,
		.rkey = job->rkey ? job->rkey : to->rkey,
		.user_data = token(job->what, job->number, job->detail),
		.mr = job->mr, .offset = job->offset, .length = job->length,
		.roffset = job->remote,
	};

	return put(comm, rank, &op);
}

static bool is_asleep(const struct fabrex_comm *comm, uint32_t rank)
{
	return __atomic_load_n(fxi_link_board(comm, rank, BOARD_AT_BELL),
			       __ATOMIC_RELAXED);
}

/* Behind what a rank that sleeps has to see. */
static int put_bell(struct fabrex_comm *comm, uint32_t rank)
{
	const struct link_entrance *to =
		&comm->links->mailbox->peers[rank].to;
	const struct fabrex_op op = {
		.opcode = FABREX_OP_SEND, .flags = FABREX_SQE_QUIET,
		.peer = (uint16_t)to->port.peer, .dest_key = to->bell,
		.user_data = token(WRITE_BELL, rank * LINK_CHANNELS, 0),
	};

	if (likely(!is_asleep(comm, rank)) || !to->bell)
		return 0;
	return put(comm, rank, &op);
}

int fxi_mailbox_write(struct fabrex_comm *comm, const struct mailbox_job *job)
{
	int ret = put_write(comm, job);

	if (!ret && job->what == WRITE_BOARD)
		ret = put_bell(comm, job->number / LINK_CHANNELS);
	return ret ? ret : flush(comm, job->number / LINK_CHANNELS);
}

static int write_nothing(struct fabrex_comm *comm, uint32_t number)
{
	const struct fabrex_op op = {
		.opcode = FABREX_OP_NOP,
		.flags = FABREX_SQE_FENCE | FABREX_SQE_QUIET,
		.user_data = token(WRITE_NOTHING, number, 0),
	};

	return put(comm, number / LINK_CHANNELS, &op);
}

static uint64_t mix(uint64_t value, uint64_t word)
{
	value = (value ^ word) * 0x9e3779b97f4a7c15ull;
	return value ^ value >> 29;
}

/* Over all of a header, which is eight words. */
static uint64_t header_check(const struct link_message *m)
{
	uint64_t words[sizeof(*m) / 8], value = 0x2545f4914f6cdd1dull;
	unsigned int i;

	memcpy(words, m, sizeof(words));
	for (i = 0; i < sizeof(*m) / 8; i++)
		value = mix(value, words[i]);
	return value;
}

/* @flags: FABREX_SQE_FENCE, or 0 where the payload is known to be there. */
static int write_header(struct fabrex_comm *comm, struct link *link,
			uint32_t slot, enum mailbox_write what, uint8_t flags)
{
	struct mailbox *box = comm->links->mailbox;
	uint32_t rank = link->number / LINK_CHANNELS;
	uint32_t ours = comm->rank * LINK_CHANNELS +
			link->number % LINK_CHANNELS;
	const struct mailbox_job job = {
		.what = what, .number = link->number, .detail = slot,
		.mr = box->peers[rank].mirror_mr,
		.offset = mailbox_slot(&box->layout, link->number, slot),
		.remote = mailbox_slot(&box->layout, ours, slot),
		.length = HEADER_BYTES,
		.flags = flags | (what == WRITE_HEADER ? FABREX_SQE_QUIET : 0),
	};
	int ret = put_write(comm, &job);

	if (!ret)
		ret = put_bell(comm, rank);
	return ret ? ret : flush(comm, rank);
}

/*
 * By stores through a window, which may arrive in any order, also before or
 * after WRITEs, hence only if no WRITE has to come first. Lost ones are sent
 * again.
 */
static void store_header(volatile uint8_t *to, const struct link_slot *slot)
{
	volatile uint64_t *words = (volatile uint64_t *)(volatile void *)to;
	uint64_t from[HEADER_BYTES / 8];
	size_t i;

	memcpy(from, slot, sizeof(from));
	for (i = 0; i < HEADER_BYTES / 8; i++)
		words[i] = from[i];
	barrier_wc();
}

/* May what no WRITE has to precede be stored through the window? */
static bool can_store(const struct fabrex_comm *comm, uint32_t rank)
{
	const struct mailbox_peer *peer = &comm->links->mailbox->peers[rank];

	return peer->pio && !peer->again && !is_asleep(comm, rank);
}

/*
 * The message is in the slot; its number makes it valid. @flags: as of
 * write_header(). @placed: its payload is there, by other means than a WRITE.
 */
static int send_header(struct fabrex_comm *comm, struct link *link,
		       enum mailbox_write what, uint8_t flags, bool placed)
{
	struct mailbox *box = comm->links->mailbox;
	uint32_t rank = link->number / LINK_CHANNELS;
	uint32_t ours = comm->rank * LINK_CHANNELS +
			link->number % LINK_CHANNELS;
	uint32_t slot = (link->sent - 1) % LINK_SLOTS;
	struct link_slot *s = &link->out[slot];

	s->message.sequence = link->sent | (uint64_t)link->popped << 32;
	s->check = header_check(&s->message);
	placed = placed || s->message.length <= LINK_SMALL;
	if (!placed || what != WRITE_HEADER || !can_store(comm, rank)) {
		link->stored &= (uint8_t)~(1u << slot);
		return write_header(comm, link, slot, what, flags);
	}
	link->stored |= (uint8_t)(1u << slot);
	store_header(box->peers[rank].pio +
		     mailbox_slot(&box->layout, ours, slot), s);
	return 0;
}

static int write_credit(struct fabrex_comm *comm, struct link *link)
{
	struct mailbox *box = comm->links->mailbox;
	uint32_t ours = comm->rank * LINK_CHANNELS +
			link->number % LINK_CHANNELS;
	const struct mailbox_job job = {
		.what = WRITE_BOARD, .number = link->number,
		.mr = box->peers[link->number / LINK_CHANNELS].mirror_mr,
		.length = 8,
		.offset = mailbox_credit(&box->layout, link->number),
		.remote = mailbox_credit(&box->layout, ours),
		.flags = FABREX_SQE_QUIET,
	};

	return fxi_mailbox_write(comm, &job);
}

/* Has neither side taken anything since the last time? */
static bool stands_still(struct link *link)
{
	bool still = link->again_acked == link->acked &&
		     link->again_popped == link->popped;

	link->again_acked = link->acked;
	link->again_popped = link->popped;
	return still;
}

static void link_again(struct fabrex_comm *comm, struct link *link,
		       struct mailbox_peer *peer, bool all)
{
	uint32_t number, slot;

	if (!stands_still(link) && !all)
		return;
	for (number = link->acked; number != link->sent; number++) {
		slot = number % LINK_SLOTS;
		if (!(link->stored & 1u << slot))
			continue;
		peer->again++;
		link->resending |= (uint8_t)(1u << slot);
		if (write_header(comm, link, slot, WRITE_AGAIN, 0))
			return;
	}
	if (link->credit_stored) {
		link->credit_stored = false;
		write_credit(comm, link);
	}
}

/*
 * Sends again, by WRITE, what was not taken since the last time; that changes
 * nothing where it has arrived. Until these are done later messages are WRITEs,
 * too, so that none is overtaken and overwritten. Likewise credits: one that is
 * overtaken by an older one is sent again the next time.
 */
void fxi_link_again(struct fabrex_comm *comm, bool all)
{
	struct mailbox *box = comm->links->mailbox;
	uint32_t rank, channel;

	for (rank = 0; rank < comm->size; rank++) {
		struct mailbox_peer *peer = &box->peers[rank];

		if (!peer->pio || peer->again || fxi_failed(comm, rank) ||
		    fxi_link_has_left(comm, rank))
			continue;
		for (channel = 0; channel < LINK_CHANNELS; channel++)
			link_again(comm, fxi_link(comm, rank, channel), peer,
				   all);
	}
}

/* @offer: the receiver's slots in device memory, or NULL. */
static int write_payload(struct fabrex_comm *comm, struct link *link,
			 const struct fabrex_mr *mr, uint64_t offset,
			 uint32_t length, const struct device_offer *offer)
{
	uint32_t ours = comm->rank * LINK_CHANNELS +
			link->number % LINK_CHANNELS;
	uint32_t slot = (link->sent - 1) % LINK_SLOTS;
	struct mailbox_job job = {
		.what = WRITE_PAYLOAD, .number = link->number, .mr = mr,
		.offset = offset, .length = length,
		.remote = mailbox_payload(&comm->links->mailbox->layout, ours,
					  slot),
		.flags = FABREX_SQE_QUIET,
	};
	int ret = write_nothing(comm, link->number);

	if (offer) {
		job.rkey = offer->rkey;
		job.remote = fxi_link_device_at(comm, comm->rank, slot);
	}
	link->from = mr;
	link->rkey = job.rkey;
	return ret ? ret : put_write(comm, &job);
}

int fxi_link_send_far(struct fabrex_comm *comm, uint32_t rank,
		      enum link_channel channel)
{
	struct link *link = fxi_link(comm, rank, channel);
	uint32_t slot = (link->sent - 1) % LINK_SLOTS;
	struct mailbox *box = comm->links->mailbox;
	uint32_t length = link->out[slot].message.length;
	int ret = 0;

	if (fxi_failed(comm, rank))
		return comm->error;
	if (length > LINK_SMALL)
		ret = write_payload(comm, link, box->peers[rank].mirror_mr,
				    mailbox_payload(&box->layout, link->number,
						    slot), length, NULL);
	return ret ? ret : send_header(comm, link, WRITE_HEADER,
				       length > LINK_SMALL ?
				       FABREX_SQE_FENCE : 0, false);
}

/* ---- from callers' regions --------------------------------------------- */

/* Through the queue, which can read every kind of memory. */
static int payload_by_queue(struct fabrex_comm *comm, struct link *link,
			    const struct fabrex_mr *mr, uint64_t offset,
			    uint32_t length, const struct device_offer *offer)
{
	int ret = write_payload(comm, link, mr, offset, length, offer);

	if (!ret)
		ret = flush(comm, link->number / LINK_CHANNELS);
	return ret ? ret : fxi_link_poll(comm);
}

static void message_fill(struct fabrex_comm *comm, struct link *link,
			 uint32_t tag, uint64_t word, uint32_t length)
{
	struct link_message *m = &link->out[link->sent % LINK_SLOTS].message;

	m->length = length;
	m->tag = tag;
	m->word = word;
	m->small[0] = 0;
	comm->moved++;
	link->sent++;
	link->told = link->popped;
}

static int send_from_far(struct fabrex_comm *comm, struct link *link,
			 const struct fabrex_mr *mr, uint64_t offset,
			 uint32_t length, const struct device_offer *offer)
{
	int ret = write_payload(comm, link, mr, offset, length, offer);

	if (ret)
		return ret;
	link->flying++;
	return send_header(comm, link, WRITE_FROM, FABREX_SQE_FENCE, false);
}

int fxi_link_send_from(struct fabrex_comm *comm, uint32_t rank,
		       enum link_channel channel, uint32_t tag, uint64_t word,
		       const struct fabrex_mr *mr, uint64_t offset,
		       uint32_t length)
{
	struct link *link = fxi_link(comm, rank, channel);
	bool host = fabrex_mr_kind(mr) == FABREX_MEMORY_HOST;
	const uint8_t *from = (const uint8_t *)fabrex_mr_addr(mr) + offset;
	const struct device_offer *there = &comm->links->offers[rank];
	struct link_message *m;
	int ret = 0;

	if (host && length <= LINK_SMALL)
		return fxi_link_send(comm, rank, channel, tag, word, from,
				     length);
	if (fxi_link_full(comm, link))
		return -EAGAIN;
	m = &link->out[link->sent % LINK_SLOTS].message;
	if (host && link->plain)
		memcpy(fxi_link_out(link), from, length);
	message_fill(comm, link, tag, word, length);
	if (host || channel != LINK_COLL || !there->rkey)
		there = NULL;
	else
		m->small[0] = LINK_ON_DEVICE;
	if (!link->plain)
		return send_from_far(comm, link, mr, offset, length, there);
	if (!host)
		ret = payload_by_queue(comm, link, mr, offset, length, there);
	__atomic_store_n(&m->sequence,
			 link->sent | (uint64_t)link->popped << 32,
			 __ATOMIC_RELEASE);
	return ret;
}

bool fxi_link_sent(struct fabrex_comm *comm, uint32_t rank,
		   enum link_channel channel)
{
	struct link *link = fxi_link(comm, rank, channel);

	if (link->flying)
		fxi_link_progress(comm);
	return !link->flying;
}

/* ---- payloads that are in place ---------------------------------------- */

bool fxi_link_place(struct fabrex_comm *comm, uint32_t rank, uint32_t ahead,
		    uint64_t *at)
{
	struct link *link = fxi_link(comm, rank, LINK_COLL);

	if (link->sent + ahead - link->acked >= LINK_SLOTS) {
		fxi_link_refresh(comm, link);
		if (link->sent + ahead - link->acked >= LINK_SLOTS)
			return false;
	}
	if (fxi_link_resending(link, link->sent + ahead))
		return false;
	*at = fxi_link_device_at(comm, comm->rank,
				 (link->sent + ahead) % LINK_SLOTS);
	return true;
}

int fxi_link_send_placed(struct fabrex_comm *comm, uint32_t rank, uint32_t tag,
			 uint64_t word, uint32_t length)
{
	struct link *link = fxi_link(comm, rank, LINK_COLL);
	struct link_message *m = &link->out[link->sent % LINK_SLOTS].message;

	message_fill(comm, link, tag, word, length);
	m->small[0] = LINK_ON_DEVICE;
	if (!link->plain)
		return fxi_failed(comm, rank) ? comm->error :
		       send_header(comm, link, WRITE_HEADER, 0, true);
	__atomic_store_n(&m->sequence,
			 link->sent | (uint64_t)link->popped << 32,
			 __ATOMIC_RELEASE);
	return 0;
}

/* ---- coming in --------------------------------------------------------- */

/* False: not all of it has arrived. */
static bool take_copy(struct link *link)
{
	const struct link_slot *s = &link->in[link->popped % LINK_SLOTS];
	uint64_t check;

	memcpy(&link->copy, &s->message, sizeof(link->copy));
	check = __atomic_load_n(&s->check, __ATOMIC_ACQUIRE);
	return check == header_check(&link->copy) &&
	       (uint32_t)link->copy.sequence == link->popped + 1;
}

/* Of a far link, or longer than what mailboxes take. */
const struct link_message *fxi_link_take(struct fabrex_comm *comm,
					 uint32_t rank,
					 enum link_channel channel)
{
	struct link *link = fxi_link(comm, rank, channel);
	const struct link_message *m = &link->copy;

	if (link->plain)
		m = &link->in[link->popped % LINK_SLOTS].message;
	else if (link->copied != link->popped + 1 && !take_copy(link))
		return NULL;
	if (m->length > (fxi_link_on_device(m) ? comm->links->device_size :
						 link->size)) {
		unreachable(comm, rank);
		return NULL;
	}
	link->copied = link->popped + 1;
	fxi_link_taken(link, (uint32_t)(m->sequence >> 32));
	return m;
}

/* ---- credits ----------------------------------------------------------- */

/* Not behind payloads that are in the queue. A lost one is sent again. */
static void store_credit(struct fabrex_comm *comm, struct link *link)
{
	struct mailbox *box = comm->links->mailbox;
	uint32_t ours = comm->rank * LINK_CHANNELS +
			link->number % LINK_CHANNELS;
	volatile uint8_t *to = box->peers[link->number / LINK_CHANNELS].pio +
			       mailbox_credit(&box->layout, ours);

	*(volatile uint64_t *)(volatile void *)to = link->popped;
	barrier_wc();
	link->credit_stored = true;
}

void fxi_link_credit(struct fabrex_comm *comm, uint32_t rank,
		     enum link_channel channel)
{
	struct link *link = fxi_link(comm, rank, channel);

	link->told = link->popped;
	__atomic_store_n(link->out_credit, link->popped, __ATOMIC_RELEASE);
	if (link->plain || fxi_failed(comm, rank) ||
	    fxi_link_has_left(comm, rank))
		return;
	if (can_store(comm, rank))
		store_credit(comm, link);
	else
		write_credit(comm, link);
}

/*
 * The slots are full as far as this rank knows. What the others have taken is
 * in their credit, or in messages that wait to be popped here.
 */
bool fxi_link_refresh(struct fabrex_comm *comm, struct link *link)
{
	const struct link_slot *s;
	uint64_t sequence;
	uint32_t i;

	if (!link->plain)
		fxi_link_progress(comm);
	fxi_link_taken(link, (uint32_t)__atomic_load_n(link->in_credit,
						       __ATOMIC_ACQUIRE));
	for (i = 0; i < LINK_SLOTS; i++) {
		s = &link->in[(link->popped + i) % LINK_SLOTS];
		sequence = __atomic_load_n(&s->message.sequence,
					   __ATOMIC_ACQUIRE);
		if ((uint32_t)sequence != link->popped + 1 + i)
			break;
		if (!link->plain && __atomic_load_n(&s->check,
						    __ATOMIC_ACQUIRE) !=
				    header_check(&s->message))
			break;
		fxi_link_taken(link, (uint32_t)(sequence >> 32));
	}
	return link->sent - link->acked < LINK_SLOTS;
}

/* ---- completions ------------------------------------------------------- */

/*
 * The header was FENCED off. Its payload completed before it; if that had
 * failed, the link would be broken: so the payload is there, and the header
 * needs no FENCE now. One would absorb the failure of another payload, whose
 * header is posted after this.
 */
static int header_again(struct fabrex_comm *comm, uint32_t number,
			uint32_t slot, enum mailbox_write what)
{
	struct link *link = &comm->links->link[number];

	/* The failure of its payload is being looked into further out. */
	if (link->broken)
		return comm->error;
	comm->links->repeated++;
	return write_header(comm, link, slot, what, 0);
}

/*
 * Not the other rank's fault: memory that the WRITE was to read is gone. It may
 * be the link or the other rank: those are looked for before this rank is blamed.
 */
static int lost_memory(struct fabrex_comm *comm, uint8_t status)
{
	fxi_error(EIO, "communicator: rank %u: memory that is being sent cannot be read any more: %s; was it freed, or its GPU taken away?",
		  comm->rank, fabrex_wc_str(status));
	return unreachable(comm, comm->rank);
}

/*
 * Memory was given up in the middle of a WRITE, at either end: which key is it
 * that does not hold any more?
 */
static int ask_whose(struct fabrex_comm *comm, uint32_t number)
{
	const struct link *link = &comm->links->link[number];
	const struct mailbox_job job = {
		.what = WRITE_BLAME, .number = number, .mr = link->from,
		.rkey = link->rkey,
	};
	int ret;

	/* Then the operation that has the memory may have ended, too. */
	if (comm->error)
		return comm->error;
	ret = put_write(comm, &job);
	return ret ? ret : flush(comm, number / LINK_CHANNELS);
}

static bool is_own(uint8_t status)
{
	return status == FABREX_WC_LFAULT || status == FABREX_WC_LKEY;
}

/*
 * A WRITE has failed. A rank that has left took its mailbox with it. A header
 * that was only FENCED off by a failure at another rank, which came between it
 * and its payload while the queue was full, is sent again. What is reported
 * here may be looked into by a call that takes further completions: what they
 * need to know comes first.
 */
static int write_failed(struct fabrex_comm *comm, const struct fabrex_wc *wc)
{
	enum mailbox_write what = (enum mailbox_write)(wc->user_data >> 56);
	uint32_t detail = wc->user_data >> 32 & 0xff;
	uint32_t number = (uint32_t)wc->user_data;
	uint32_t rank = number / LINK_CHANNELS;

	if (what == WRITE_PROBE) {
		comm->links->mailbox->peers[rank].unreachable = true;
		return 0;
	}
	if (what == WRITE_NOTHING || what == WRITE_BELL)
		return 0;
	if (what == WRITE_PAYLOAD)
		comm->links->link[number].broken = true;
	if (fxi_failed(comm, rank))
		return comm->error;
	if (wc->status == FABREX_WC_FENCED)
		return header_again(comm, number, detail, what);
	if (fxi_link_has_left(comm, rank))
		return 0;
	if (wc->status == FABREX_WC_ABORTED && what == WRITE_PAYLOAD)
		return ask_whose(comm, number);
	if (is_own(wc->status))
		return lost_memory(comm, wc->status);
	return unreachable(comm, rank);
}

static int completion(struct fabrex_comm *comm, const struct fabrex_wc *wc)
{
	enum mailbox_write what = (enum mailbox_write)(wc->user_data >> 56);
	uint32_t number = (uint32_t)wc->user_data;
	uint32_t detail = wc->user_data >> 32 & 0xff;
	struct mailbox_peer *peer =
		&comm->links->mailbox->peers[number / LINK_CHANNELS];

	if (what == WRITE_PROBE || what == WRITE_FROM || what == WRITE_AGAIN ||
	    what == WRITE_BLAME)
		comm->links->asked--;
	if (what == WRITE_PROBE)
		peer->asking = false;
	if (what == WRITE_AGAIN) {
		peer->again--;
		comm->links->link[number].resending &= (uint8_t)~(1u << detail);
	}
	if (what == WRITE_FROM && wc->status != FABREX_WC_FENCED)
		comm->links->link[number].flying--;
	/* Both are there again: what was aborted is lost all the same. */
	if (what == WRITE_BLAME && wc->status == FABREX_WC_OK)
		return lost_memory(comm, FABREX_WC_ABORTED);
	return wc->status == FABREX_WC_OK ? 0 : write_failed(comm, wc);
}

/* A bell: what it is about is in the mailbox. */
static int heard(struct fabrex_queue *queue)
{
	fabrex_recv_done(queue, 1);
	return 0;
}

static int poll_queue(struct fabrex_comm *comm, struct fabrex_queue *queue)
{
	struct fabrex_wc wc[COMPLETIONS];
	int n, i, ret = 0;

	do {
		n = fabrex_poll(queue, wc, COMPLETIONS);
		if (n < 0)
			return unreachable(comm, comm->rank);
		for (i = 0; i < n; i++) {
			int one = wc[i].opcode == FABREX_OP_RECV ?
				  heard(queue) : completion(comm, &wc[i]);

			ret = ret ? ret : one;
		}
	} while (n == COMPLETIONS);
	return ret;
}

int fxi_link_poll(struct fabrex_comm *comm)
{
	const struct mailbox *box = comm->links->mailbox;
	uint32_t i;
	int ret = 0, one;

	for (i = 0; i < box->nqueues; i++) {
		one = poll_queue(comm, box->queues[i]);
		ret = ret ? ret : one;
	}
	return ret;
}
