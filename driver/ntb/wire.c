// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests and answers through the window. Called by the engine through
 * fabrex_wire_ops, and by the thread of link.c.
 *
 * The slot of a request is chosen when it is sent, that of its answer has the
 * same number: so answers come in the order of requests, and none needs room.
 * Payload lies in places that the one who asks has chosen, in either inbox, and
 * are free again when it has the answer; or, in direct mode, in the region already.
 * A slot is valid when it has the stamp of its number and the sender's epoch, which
 * is stored last.
 */
#include "ntb.h"

/* How long payload may take to arrive when its sender has done all. */
#define ARRIVAL		(HZ / 4)

/* As few stores as possible; write combining makes bursts of them. */
static void fntb_store(void __iomem *to, const void *from, u32 bytes)
{
	u32 whole = 0;

	if (IS_ALIGNED((unsigned long)to | (unsigned long)from, 8)) {
		whole = round_down(bytes, 8);
		__iowrite64_copy(to, from, whole / 8);
	}
	if (bytes > whole)
		memcpy_toio(to + whole, from + whole, bytes - whole);
}

/* ---- requests ---------------------------------------------------------- */

/* Is there a place to be chosen, and in which inbox? tx.lock is held. */
static bool fntb_place(struct fntb_port *np, struct fabrex_call *call)
{
	unsigned long *places = call->read ? np->tx.gets : np->tx.puts;
	u32 n = call->read ? np->own.ngets : np->theirs.nputs;
	u32 place;

	call->placed = call->bytes > (call->read ? 0 : FNTB_INLINE_MAX);
	if (!call->placed)
		return true;
	place = find_first_zero_bit(places, n);
	if (place >= n)
		return false;
	__set_bit(place, places);
	call->place = place;
	fntb_known_find(np, call);
	return true;
}

/* tx.lock is held. */
static void fntb_unplace(struct fntb_port *np, const struct fabrex_call *call)
{
	/* What a DMA engine has failed on, it may still store to. */
	if (call->placed && !call->lost)
		__clear_bit(call->place, call->read ? np->tx.gets :
						      np->tx.puts);
	if (call->direct && !call->lost)
		fntb_known_put(np, call);
	np->tx.free++;
}

static int fntb_reserve(struct fabrex_wire *wire, struct fabrex_call *call)
{
	struct fntb_port *np = fntb_port_of(wire);
	struct fntb_tx *tx = &np->tx;
	bool room;

	if (!engine_gate_enter(&tx->gate))
		return -ENOTCONN;
	spin_lock(&tx->lock);
	room = tx->free > (call->urgent ? 0 : FNTB_SPARE) &&
	       fntb_place(np, call);
	if (room)
		tx->free--;
	spin_unlock(&tx->lock);
	if (room)
		return 0;
	engine_gate_leave(&tx->gate);
	return -EAGAIN;
}

static void fntb_cancel(struct fabrex_wire *wire, struct fabrex_call *call)
{
	struct fntb_port *np = fntb_port_of(wire);

	spin_lock(&np->tx.lock);
	fntb_unplace(np, call);
	spin_unlock(&np->tx.lock);
	engine_gate_leave(&np->tx.gate);
	fabrex_engine_room(&np->engine);
}

static u64 fntb_put_at(const struct fntb_port *np, u32 place)
{
	return np->theirs.puts + (u64)place * fntb_stride(&np->theirs);
}

static u64 fntb_get_at(const struct fntb_port *np, u32 place)
{
	return np->theirs.gets + (u64)place * fntb_stride(&np->theirs);
}

/* By a DMA engine, or by the processor. */
static void fntb_move(struct fntb_port *np, const void *user,
		      void __iomem *window, u64 to, const void *from, u32 bytes)
{
	if (!fntb_dma_has(np, user) || !fntb_dma_put(np, to, from, bytes))
		fntb_store(window + to, from, bytes);
}

static void fntb_put(struct fabrex_wire *wire, const struct fabrex_call *call,
		     u32 at, const void *from, u32 bytes)
{
	struct fntb_port *np = fntb_port_of(wire);

	if (!at && !(call->direct && call->stores))
		fntb_dma_begin(np, call, call->direct, call->bytes);
	if (call->direct)
		fntb_move(np, call, np->peer_range.window, call->where + at,
			  from, bytes);
	else
		fntb_move(np, call, np->window,
			  fntb_put_at(np, call->place) + at, from, bytes);
}

/* Where the marker of a payload goes: it takes the same way. */
static u64 fntb_mark_at(const struct fntb_port *np,
			const struct fabrex_call *call)
{
	if (call->direct)
		return call->place * sizeof(__le64);
	return fntb_put_at(np, call->place) + np->theirs.chunk;
}

static bool fntb_draw(struct fabrex_wire *wire, const struct fabrex_call *call,
		      u32 place, u32 at, dma_addr_t from, u32 bytes)
{
	struct fntb_port *np = fntb_port_of(wire);
	const void *user = call ?: (void *)&np->served;
	u32 all = call ? call->bytes : np->reply_bytes;
	u64 to;

	/* A place in an answer is the peer's word. */
	if (!call && (place >= np->theirs.ngets || all > np->theirs.chunk))
		return false;
	/* The processor copies, by way of the channel's buffer. */
	if (call && call->direct && call->stores)
		return false;
	if (!call)
		to = fntb_get_at(np, place);
	else
		to = call->direct ? call->where : fntb_put_at(np, place);
	if (!at && !fntb_dma_begin_far(np, user, call && call->direct,
				       from | to, all))
		return false;
	/* What fails from here on is seen when it is settled. */
	fntb_dma_put_far(np, to + at, from, bytes);
	return true;
}

static bool fntb_settle(struct fabrex_wire *wire, struct fabrex_call *call)
{
	struct fntb_port *np = fntb_port_of(wire);

	call->marker = 0;
	if (!fntb_dma_has(np, call))
		return true;
	call->marker = fntb_dma_end(np, fntb_mark_at(np, call));
	call->lost = !call->marker;
	/* What arrives late must not meet a region that is still in use. */
	if (call->lost && call->direct)
		WRITE_ONCE(np->lost, true);
	return call->marker;
}

static void fntb_stamp_store(void __iomem *to, u32 epoch, u32 count)
{
	/* Whoever sees the stamp sees what it is for. */
	wmb();
	writeq(fntb_stamp(epoch, count), to);
}

static void fntb_request(struct fabrex_wire *wire,
			const struct fabrex_request *req, const void *data,
			const struct fabrex_call *call)
{
	struct fntb_port *np = fntb_port_of(wire);
	struct fabrex_request out = *req;
	struct fntb_tx *tx = &np->tx;
	void __iomem *slot;
	u32 i;

	if (call->bytes && !call->placed && data)
		out.flags |= ENGINE_REQ_INLINE;
	if (call->direct)
		out.flags |= ENGINE_REQ_DIRECT;
	else if (call->ask)
		out.flags |= ENGINE_REQ_LINK;
	if (call->marker) {
		out.flags |= ENGINE_REQ_MARKED;
		out.marker = cpu_to_le32(call->marker);
	}
	spin_lock(&tx->lock);
	i = tx->count & (np->theirs.slots - 1);
	tx->calls[i] = *call;
	tx->sent[i] = jiffies;
	slot = np->window + np->theirs.requests +
	       i * sizeof(struct fntb_request_slot);
	fntb_store(slot, &out, sizeof(out));
	if (out.flags & ENGINE_REQ_INLINE)
		fntb_store(slot + offsetof(struct fntb_request_slot, data),
			   data, call->bytes);
	/* Nobody believes an answer before that. */
	smp_store_release(&tx->count, tx->count + 1);
	fntb_stamp_store(slot + offsetof(struct fntb_request_slot, stamp),
			 np->epoch, tx->count);
	spin_unlock(&tx->lock);
	atomic_set(&tx->unrung, 1);
	engine_gate_leave(&tx->gate);
}

/* The peer says in this host's memory when it wants to be rung. */
static void fntb_ring(struct fntb_port *np, u32 why)
{
	/* What was sent is on its way before the peer's word is read. */
	mb();
	if (le32_to_cpu(READ_ONCE(fntb_inbox_control(np)->bell)) & why)
		ntb_peer_db_set(np->ntb, np->bell_bit);
}

static void fntb_flush(struct fabrex_wire *wire)
{
	struct fntb_port *np = fntb_port_of(wire);

	if (!atomic_read(&np->tx.unrung) || !engine_gate_enter(&np->tx.gate))
		return;
	if (atomic_xchg(&np->tx.unrung, 0))
		fntb_ring(np, FNTB_BELL_REQUESTS);
	engine_gate_leave(&np->tx.gate);
}

/* ---- answers ----------------------------------------------------------- */

/* Has a payload arrived whose marker is to be at @at in this host's memory? */
static bool fntb_marked(const void *at, __le32 marker)
{
	bool there = READ_ONCE(*(__le32 *)at) == marker;

	/* It is read after the marker. */
	dma_rmb();
	return there;
}

/* Has a payload not arrived for so long that it never will? Then the peer has to try
 * its DMA engine again: it does when the link comes up. answers_lock is held.
 */
static bool fntb_overdue(struct fntb_port *np)
{
	if (!np->overdue)
		np->overdue = (jiffies + ARRIVAL) | 1;
	if (time_before(jiffies, np->overdue))
		return false;
	WRITE_ONCE(np->lost, true);
	return true;
}

/* The slot of the next answer, if that is there; answers_lock is held. */
static struct fntb_answer_slot *fntb_answer_slot(struct fntb_port *np)
{
	u32 i = np->answered & (np->own.slots - 1);
	struct fntb_answer_slot *slot = np->inbox + np->own.answers +
				       i * sizeof(*slot);

	if (smp_load_acquire(&np->tx.count) == np->answered ||
	    le64_to_cpu(READ_ONCE(slot->stamp)) !=
	    fntb_stamp(np->peer_epoch, np->answered + 1))
		return NULL;
	/* Its contents are read after the stamp. */
	dma_rmb();
	return slot;
}

static void fntb_answered(struct fntb_port *np, const struct fabrex_call *call,
			  const struct fabrex_answer *answer,
			  const void *payload)
{
	if (call->link) {
		fntb_direct_forgotten(np, call->link, !answer->status);
		return;
	}
	if (call->ask && !answer->status && answer->flags & ENGINE_ANS_LINKED)
		fntb_known_learn(np, call, answer);
	fabrex_engine_answered(&np->wire, call, answer, payload);
}

/* The next answer, if it is there; answers_lock is held. */
static bool fntb_answer(struct fntb_port *np)
{
	struct fntb_answer_slot *slot = fntb_answer_slot(np);
	struct fabrex_answer answer;
	struct fabrex_call call;
	void *payload = NULL;

	if (!slot)
		return false;
	answer = slot->answer;
	call = np->tx.calls[np->answered & (np->theirs.slots - 1)];
	if (call.read && call.placed) {
		payload = np->inbox + np->own.gets +
			  call.place * fntb_stride(&np->own);
		/* Not all of it has arrived. */
		if (answer.flags & ENGINE_ANS_MARKED &&
		    !fntb_marked(payload + np->own.chunk, answer.marker)) {
			if (!fntb_overdue(np))
				return false;
			answer.status = FABREX_WC_RFAULT;
			call.lost = true;
		}
		np->overdue = 0;
	}
	np->answered++;
	if (call.marker && answer.flags & ENGINE_ANS_LOST) {
		fntb_dma_failed(np);
		call.lost = true;
		if (call.direct)
			WRITE_ONCE(np->lost, true);
	}
	/* Something may have been stored before the region was deregistered. */
	if (call.direct && answer.status == FABREX_WC_RKEY)
		answer.status = FABREX_WC_ABORTED;
	fntb_answered(np, &call, &answer, payload);
	spin_lock(&np->tx.lock);
	fntb_unplace(np, &call);
	spin_unlock(&np->tx.lock);
	return true;
}

/**
 * fntb_wire_take() - take answers that have come, unless somebody does
 * @np:  port
 * @most: answers
 *
 * Context: Process; sleeps.
 * Return: true if there were some
 */
bool fntb_wire_take(struct fntb_port *np, u32 most)
{
	u32 n = 0;

	/* Whoever is at it may have looked before the last one came. */
	if (!mutex_trylock(&np->answers_lock)) {
		atomic_set(&np->untaken, 1);
		return false;
	}
	while (n < most && READ_ONCE(np->wire.up) && fntb_answer(np))
		n++;
	mutex_unlock(&np->answers_lock);
	/* The lock is free before that is read, see above. */
	smp_mb();
	if (atomic_read(&np->untaken) && atomic_xchg(&np->untaken, 0))
		fntb_link_wake(np);
	if (n)
		fabrex_engine_room(&np->engine);
	return n;
}

/* A worker does not spend its time on answers to others. */
static bool fntb_poll(struct fabrex_wire *wire)
{
	return fntb_wire_take(fntb_port_of(wire), 16);
}

/**
 * fntb_wire_waits() - are there requests without an answer?
 * @np: port
 *
 * Context: Any.
 * Return: whether there are
 */
bool fntb_wire_waits(struct fntb_port *np)
{
	return READ_ONCE(np->tx.count) != READ_ONCE(np->answered);
}

/**
 * fntb_wire_late() - has the oldest request been without an answer for long?
 * @np:       port
 * @patience: in jiffies
 *
 * Context: The thread.
 * Return: whether it has
 */
bool fntb_wire_late(struct fntb_port *np, unsigned long patience)
{
	u32 oldest = READ_ONCE(np->answered);

	if (smp_load_acquire(&np->tx.count) == oldest)
		return false;
	return time_after(jiffies, np->tx.sent[oldest & (np->theirs.slots - 1)] +
				   patience);
}

static void fntb_wait(struct fabrex_wire *wire)
{
	struct fntb_port *np = fntb_port_of(wire);

	/* What was sent is counted before the bell is read; see fntb_sleep(). */
	smp_mb();
	if (fntb_wire_waits(np) &&
	    !(READ_ONCE(np->bell) & FNTB_BELL_ANSWERS))
		fntb_link_wake(np);
}

/* ---- requests of the peer ---------------------------------------------- */

static bool fntb_reply_settle(struct fntb_port *np, u32 place)
{
	if (!fntb_dma_has(np, &np->served))
		return true;
	np->reply_marker = fntb_dma_end(np, fntb_get_at(np, place) +
					    np->theirs.chunk);
	/* It may still store to this place, which the peer uses again. */
	if (!np->reply_marker && fntb_dma_stuck(np))
		WRITE_ONCE(np->lost, true);
	return np->reply_marker;
}

static bool fntb_reply(struct fabrex_wire *wire, u32 place, u32 at,
		      const void *from, u32 bytes)
{
	struct fntb_port *np = fntb_port_of(wire);

	if (!bytes)
		return fntb_reply_settle(np, place);
	if (place >= np->theirs.ngets || at > np->theirs.chunk ||
	    bytes > np->theirs.chunk - at)
		return false;
	if (!at)
		fntb_dma_begin(np, &np->served, 0, np->reply_bytes);
	fntb_move(np, &np->served, np->window, fntb_get_at(np, place) + at,
		  from, bytes);
	return true;
}

/* Payload of a request that is decoded here, or a reason not to go on with this
 * peer.
 */
static const char *fntb_payload(struct fntb_port *np,
			       const struct fabrex_request *req,
			       const void *data, const void **payload)
{
	u32 bytes = le32_to_cpu(req->bytes), place = le32_to_cpu(req->place);

	*payload = NULL;
	if (bytes > np->own.chunk)
		return "a request is larger than its place";
	if (req->opcode == FABREX_OP_READ || !bytes)
		return NULL;
	if (req->flags & ENGINE_REQ_INLINE) {
		*payload = data;
		return bytes > FNTB_INLINE_MAX ?
		       "a request is larger than its slot" : NULL;
	}
	if (place >= np->own.nputs)
		return "a request names a place that does not exist";
	if (req->flags & ENGINE_REQ_DIRECT && !np->offered)
		return "a request claims direct stores, which this host does not offer";
	if (req->flags & ENGINE_REQ_DIRECT && place >= FNTB_MARKS)
		return "a request with direct stores names a place without a marker";
	*payload = np->inbox + np->own.puts + place * fntb_stride(&np->own);
	return NULL;
}

/* Payload of a DMA engine that says it is done arrives soon, or never; there is no
 * waiting for a second one that does not.
 */
static bool fntb_arrives(struct fntb_port *np, const struct fabrex_request *req,
			 const void *payload)
{
	unsigned long end = jiffies + ARRIVAL;
	const void *at = payload + np->own.chunk;

	if (!(req->flags & ENGINE_REQ_MARKED) ||
	    req->flags & ENGINE_REQ_INLINE || !payload)
		return true;
	if (req->flags & ENGINE_REQ_DIRECT)
		at = np->direct->marks + le32_to_cpu(req->place);
	while (!fntb_marked(at, req->marker)) {
		if (np->missed || time_after(jiffies, end)) {
			np->missed = true;
			return false;
		}
		cond_resched();
	}
	return true;
}

/* What was to be the payload of a request has not arrived. */
static void fntb_refuse(struct fntb_port *np, struct fabrex_request *req,
			struct fabrex_answer *answer)
{
	req->flags |= ENGINE_REQ_CANCEL;
	if (req->opcode == FABREX_OP_WRITE_IMM)
		fabrex_engine_serve(&np->wire, req, NULL, answer);
	*answer = (struct fabrex_answer) {
		.status = FABREX_WC_RFAULT,
		.flags = ENGINE_ANS_LOST,
	};
}

static void fntb_reply_send(struct fntb_port *np,
			   const struct fabrex_answer *answer)
{
	u32 i = np->served & (np->theirs.slots - 1);
	void __iomem *slot = np->window + np->theirs.answers +
			     i * sizeof(struct fntb_answer_slot);

	fntb_store(slot, answer, sizeof(*answer));
	np->served++;
	fntb_stamp_store(slot + offsetof(struct fntb_answer_slot, stamp),
			np->epoch, np->served);
}

/* Answers that the peer has sent before it asked may say where the region is: they are
 * taken first. If that is not possible now, it has to ask again.
 */
static bool fntb_forget(struct fntb_port *np, const struct fabrex_request *req)
{
	u32 n = 0;
	bool all;

	if (!mutex_trylock(&np->answers_lock))
		return false;
	while (n < np->own.slots && fntb_answer(np))
		n++;
	all = !fntb_answer_slot(np);
	mutex_unlock(&np->answers_lock);
	if (n)
		fabrex_engine_room(&np->engine);
	return all && fntb_known_forget(np, le64_to_cpu(req->key));
}

/* Returns false if the peer does what it must not. */
static bool fntb_perform(struct fntb_port *np, struct fabrex_request *req,
			 const void *payload, struct fabrex_answer *answer)
{
	if (req->opcode == FNTB_OP_FORGET) {
		*answer = (struct fabrex_answer) {};
		if (!fntb_forget(np, req))
			answer->status = FABREX_WC_RNR;
		return true;
	}
	if (fntb_arrives(np, req, payload))
		return fabrex_engine_serve(&np->wire, req, payload, answer);
	fntb_refuse(np, req, answer);
	return true;
}

/* The next request, if it is there. */
static bool fntb_serve_one(struct fntb_port *np)
{
	u32 i = np->served & (np->own.slots - 1);
	struct fntb_request_slot *slot = np->inbox + np->own.requests +
					i * sizeof(*slot);
	u8 data[FNTB_INLINE_MAX] __aligned(8);
	struct fabrex_request req;
	struct fabrex_answer answer;
	const void *payload;

	if (le64_to_cpu(READ_ONCE(slot->stamp)) !=
	    fntb_stamp(np->peer_epoch, np->served + 1))
		return false;
	/* Its contents are read after the stamp, and once. */
	dma_rmb();
	memcpy(&req, &slot->req, sizeof(req));
	memcpy(data, slot->data, sizeof(data));
	np->broken = fntb_payload(np, &req, data, &payload);
	if (np->broken)
		return false;
	np->reply_marker = 0;
	np->reply_bytes = le32_to_cpu(req.bytes);
	if (!fntb_perform(np, &req, payload, &answer))
		np->broken = "it has presented too many wrong keys";
	if (np->reply_marker) {
		answer.flags |= ENGINE_ANS_MARKED;
		answer.marker = cpu_to_le32(np->reply_marker);
	}
	fntb_reply_send(np, &answer);
	return !np->broken;
}

/**
 * fntb_wire_serve() - serve all requests that have come
 * @np: port, whose link is up
 *
 * Context: The thread.
 * Return: true if there were some
 */
bool fntb_wire_serve(struct fntb_port *np)
{
	u32 n = 0;

	while (n < np->own.slots && fntb_serve_one(np))
		n++;
	if (n)
		fntb_ring(np, FNTB_BELL_ANSWERS);
	return n;
}

/**
 * fntb_wire_forget() - ask the peer to forget a region that is not linked any more
 * @np: port, whose link is up
 *
 * Context: The thread.
 */
void fntb_wire_forget(struct fntb_port *np)
{
	struct fabrex_request req = { .opcode = FNTB_OP_FORGET };
	struct fntb_link *link = fntb_direct_gone(np);
	struct fabrex_call call = { .link = link, .urgent = true };

	if (!link)
		return;
	if (fntb_reserve(&np->wire, &call)) {
		fntb_direct_forgotten(np, link, false);
		return;
	}
	req.key = cpu_to_le64(link->key);
	fntb_request(&np->wire, &req, NULL, &call);
	fntb_flush(&np->wire);
}

/* ---- up and down ------------------------------------------------------- */

/**
 * fntb_wire_up() - begin with a new epoch
 * @np: port; &fntb_port.theirs is known
 *
 * Context: The thread.
 */
void fntb_wire_up(struct fntb_port *np)
{
	struct fntb_tx *tx = &np->tx;

	mutex_lock(&np->answers_lock);
	spin_lock(&tx->lock);
	tx->count = 0;
	tx->free = min(np->own.slots, np->theirs.slots);
	bitmap_zero(tx->puts, FNTB_PLACES_MAX);
	bitmap_zero(tx->gets, FNTB_PLACES_MAX);
	atomic_set(&tx->unrung, 0);
	np->answered = 0;
	np->served = 0;
	np->broken = NULL;
	np->overdue = 0;
	np->lost = false;
	np->missed = false;
	WRITE_ONCE(np->wire.epoch, np->wire.epoch + 1);
	np->wire.chunk = min(np->own.chunk, np->theirs.chunk);
	spin_unlock(&tx->lock);
	mutex_unlock(&np->answers_lock);
	engine_gate_open(&tx->gate);
	smp_store_release(&np->wire.up, true);
	fabrex_engine_room(&np->engine);
}

/**
 * fntb_wire_down() - end the epoch: whoever waits for an answer gets none
 * @np: port, which was up
 *
 * When this returns, nobody accesses the window.
 *
 * Context: The thread.
 */
void fntb_wire_down(struct fntb_port *np)
{
	u32 i;

	WRITE_ONCE(np->wire.up, false);
	engine_gate_close(&np->tx.gate);
	mutex_lock(&np->answers_lock);
	for (; np->answered != np->tx.count; np->answered++) {
		i = np->answered & (np->theirs.slots - 1);
		/* What the peer was asked to forget, it does with the epoch. */
		if (!np->tx.calls[i].link)
			fabrex_engine_answered(&np->wire, &np->tx.calls[i],
					       NULL, NULL);
	}
	atomic_set(&np->tx.unrung, 0);
	mutex_unlock(&np->answers_lock);
	fabrex_engine_forget(&np->wire);
	fabrex_engine_room(&np->engine);
}

const struct fabrex_wire_ops fntb_wire_ops = {
	.reserve = fntb_reserve,
	.cancel = fntb_cancel,
	.put = fntb_put,
	.draw = fntb_draw,
	.settle = fntb_settle,
	.request = fntb_request,
	.flush = fntb_flush,
	.poll = fntb_poll,
	.wait = fntb_wait,
	.reply = fntb_reply,
	.link = fntb_direct_link,
	.unlink = fntb_direct_unlink,
};
