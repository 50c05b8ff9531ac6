// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Atomic operations under way: each word of the target goes through its steps by
 * completions, several at a time. Used by atomic.c.
 *
 * What cannot be done ends with an error: an element that is not at a multiple
 * of its size (FI_EINVAL); a word, the 8 aligned bytes around an element, that
 * is not in the region as a whole (FI_EREMOTEIO), or not aligned in the memory
 * of the peer because the region begins at an odd place (FI_EINVAL).
 */
#include <string.h>

#include "atomic.h"
#include "vaddr.h"

static struct atomic *atomic_of(const struct request *request)
{
	return (struct atomic *)(void *)request->copy;
}

/* ---- local memory ------------------------------------------------------ */

/* Where byte @at is, if there is such memory. */
static char *place(const struct atomic_memory *memory, uint64_t at,
		   uint64_t *rest)
{
	uint32_t i;

	for (i = 0; i < memory->count; i++) {
		if (at < memory->part[i].bytes) {
			*rest = memory->part[i].bytes - at;
			return memory->part[i].base + at;
		}
		at -= memory->part[i].bytes;
	}
	return NULL;
}

static void gather(const struct atomic_memory *memory, uint64_t at,
		   char *to, size_t bytes)
{
	const char *from;
	uint64_t rest;
	size_t n;

	while (bytes && (from = place(memory, at, &rest))) {
		n = rest < bytes ? (size_t)rest : bytes;
		memcpy(to, from, n);
		at += n;
		to += n;
		bytes -= n;
	}
}

static void scatter(const struct atomic_memory *memory, uint64_t at,
		    const char *from, size_t bytes)
{
	uint64_t rest;
	size_t n;
	char *to;

	while (bytes && (to = place(memory, at, &rest))) {
		n = rest < bytes ? (size_t)rest : bytes;
		memcpy(to, from, n);
		at += n;
		from += n;
		bytes -= n;
	}
}

/* ---- words that are being changed -------------------------------------- */

/*
 * Of the lanes of an endpoint that change the same word one does, and the others
 * wait: they would only spoil each other's swaps, of all that are under way one
 * would succeed at a time. The next one begins with what the last one has left.
 */
static struct atomic_words *words_of(const struct atomic_lane *lane)
{
	uint64_t name = (lane->key ^ lane->offset >> 3) *
			UINT64_C(0x9e3779b97f4a7c15);

	return &lane->request->ep->words[name >> 32 & (ATOMIC_WORDS - 1)];
}

static bool same_word(const struct atomic_lane *a, const struct atomic_lane *b)
{
	return a->offset == b->offset && a->key == b->key &&
	       a->request->peer->number == b->request->peer->number;
}

/* It is to change its word. False: not before another one. */
static bool enter(struct atomic_lane *lane)
{
	struct atomic_words *words = words_of(lane);
	const struct atomic_lane *other = words->last;

	while (other && !same_word(lane, other))
		other = other->prev;
	lane->entered = true;
	lane->next = NULL;
	lane->prev = words->last;
	if (words->last)
		words->last->next = lane;
	else
		words->first = lane;
	words->last = lane;
	return !other;
}

/* Returns who is next, if anybody is. */
static struct atomic_lane *leave(struct atomic_lane *lane)
{
	struct atomic_words *words = words_of(lane);
	struct atomic_lane *other = lane->next;

	if (lane->prev)
		lane->prev->next = lane->next;
	else
		words->first = lane->next;
	if (lane->next)
		lane->next->prev = lane->prev;
	else
		words->last = lane->prev;
	lane->entered = false;
	while (other && !same_word(lane, other))
		other = other->next;
	return other;
}

/* ---- words ------------------------------------------------------------- */

/* What the fabric does by itself; 0: nothing of that. */
static uint8_t native(const struct atomic *a)
{
	bool word = a->datatype == FI_INT64 || a->datatype == FI_UINT64;

	switch ((unsigned int)a->op) {
	case FI_ATOMIC_READ:
		return FABREX_OP_FETCH_ADD;	/* of 0 */
	case FI_SUM:
	case ATOMIC_DIFF:
		return word ? FABREX_OP_FETCH_ADD : 0;
	case FI_CSWAP:
		return word ? FABREX_OP_CMP_SWAP : 0;
	default:
		return 0;
	}
}

static bool take_word(struct atomic *a, struct atomic_lane *lane)
{
	const struct atomic_target *target;
	uint64_t offset, rest;

	while (a->which < a->targets &&
	       a->within == a->target[a->which].bytes) {
		a->which++;
		a->within = 0;
	}
	if (a->which == a->targets)
		return false;
	target = &a->target[a->which];
	offset = target->addr + a->within;
	rest = target->bytes - a->within;
	lane->at = a->at;
	lane->key = target->key;
	lane->first = (uint8_t)(offset & 7);
	lane->offset = offset - lane->first;
	lane->bytes = (uint8_t)(rest < 8u - lane->first ? rest :
				8u - lane->first);
	if (native(a))
		lane->step = STEP_ONLY;
	else
		lane->step = enter(lane) ? STEP_FETCH : STEP_WAIT;
	a->within += lane->bytes;
	a->at += lane->bytes;
	return true;
}

/* What replaces the old word. False: it stays as it is. */
static bool change(const struct atomic *a, struct atomic_lane *lane,
		   uint64_t old)
{
	size_t size = atomic_size(a->datatype), i;
	char operand[8] = { 0 }, compare[8] = { 0 };
	uint64_t new = old;

	gather(&a->operand, lane->at, operand, lane->bytes);
	gather(&a->compare, lane->at, compare, lane->bytes);
	for (i = 0; i < lane->bytes; i += size)
		atomic_apply(a->datatype, a->op,
			     (char *)&new + lane->first + i, operand + i,
			     compare + i);
	lane->old = old;
	lane->new = new;
	lane->step = STEP_SWAP;
	return new != old;
}

/*
 * The word is another lane's, which begins with what is there, if that is known.
 * Even if it changes nothing it has to swap: that was there when somebody else
 * asked, maybe before this one was begun.
 */
static void hand_over(struct atomic_lane *lane, const uint64_t *value)
{
	struct atomic_lane *next = leave(lane);

	if (!next)
		return;
	if (value)
		change(atomic_of(next->request), next, *value);
	else
		next->step = STEP_FETCH;
	if (list_empty(&next->request->node))
		request_retry(next->request);
}

/* ---- posting ----------------------------------------------------------- */

static void describe_only(const struct atomic *a,
			  const struct atomic_lane *lane, struct fabrex_op *op)
{
	uint64_t operand = 0, compare = 0;

	op->opcode = native(a);
	if (a->op == FI_ATOMIC_READ)
		return;
	gather(&a->operand, lane->at, (char *)&operand, 8);
	gather(&a->compare, lane->at, (char *)&compare, 8);
	/* Of what is native there is only the difference besides. */
	op->operand = a->op == FI_SUM || a->op == FI_CSWAP ? operand :
		      0 - operand;
	if (op->opcode == FABREX_OP_CMP_SWAP)
		op->compare = compare;
}

static int post_lane(struct request *request, uint32_t i)
{
	struct atomic *a = atomic_of(request);
	struct atomic_lane *lane = &a->lane[i];
	struct fabrex_op op = {
		.opcode = FABREX_OP_FETCH_ADD,
		.peer = (uint16_t)request->peer->number,
		.user_data = (uintptr_t)request,
		.mr = request->ep->bounces.mr,
		.offset = request->bounce->offset + 8 * i,
		.rkey = lane->key,
		.roffset = lane->offset,
	};
	int ret;

	if (lane->step == STEP_ONLY) {
		describe_only(a, lane, &op);
	} else if (lane->step == STEP_SWAP) {
		op.opcode = FABREX_OP_CMP_SWAP;
		op.compare = lane->old;
		op.operand = lane->new;
	} else if (lane->step == STEP_FETCH) {
		/* Over loopback cheaper than an atomic of the fabric. */
		op.opcode = FABREX_OP_READ;
		op.length = 8;
	} else if (lane->step == STEP_READ) {
		op.opcode = FABREX_OP_READ;
		op.offset += lane->first;
		op.roffset += lane->first;
		op.length = lane->bytes;
	}
	ret = post_operation(request, &op);
	if (ret)
		return ret;
	lane->flying = true;
	a->order[a->tail++ % ATOMIC_LANES] = (uint8_t)i;
	return 0;
}

/* Those that wait first: they are not to have what the others leave. */
static void leave_all(struct atomic *a)
{
	uint32_t i;

	for (i = 0; i < a->lanes; i++)
		if (a->lane[i].entered && a->lane[i].step == STEP_WAIT)
			leave(&a->lane[i]);
	for (i = 0; i < a->lanes; i++)
		if (a->lane[i].entered)
			hand_over(&a->lane[i], NULL);
}

static void end(struct request *request)
{
	struct peer *peer = request->peer;
	int cause = request->status;

	leave_all(atomic_of(request));
	/* It may wait for room. */
	list_remove(&request->node);
	request_end(request, request->length, FI_ADDR_NOTAVAIL);
	/* Then nothing else gets there, either. */
	if (cause == FABREX_WC_UNREACHABLE)
		peer_lose(peer, cause);
}

/*
 * Whatever lanes can do now. -FI_EAGAIN: some could not be posted; otherwise the
 * next completion calls this again, or the request has ended.
 */
static int advance(struct request *request)
{
	struct atomic *a = atomic_of(request);
	struct atomic_lane *lane;
	bool waits = false;
	uint32_t i;
	int ret;

	for (i = 0; i < a->lanes && !request->error; i++) {
		lane = &a->lane[i];
		if (lane->flying || (!lane->step && !take_word(a, lane)))
			continue;
		if (lane->step == STEP_WAIT) {
			waits = true;
			continue;
		}
		ret = post_lane(request, i);
		if (ret == -FI_EAGAIN)
			return ret;
		if (ret)
			request_fail(request, ret);
	}
	if (!request->posted && (!waits || request->error))
		end(request);
	return 0;
}

/* ---- completions ------------------------------------------------------- */

/*
 * Another way, if there is one. Peers may change the word, but not read it: then
 * nothing is added to it. Or they may read it, but not change it: then there is
 * nothing to be atomic with.
 */
static bool fall_back(const struct atomic *a, struct atomic_lane *lane,
		      int status)
{
	if (lane->step == STEP_FETCH && status == FABREX_WC_RACCESS)
		lane->step = STEP_LOAD;
	else if (lane->step == STEP_ONLY && a->op == FI_ATOMIC_READ &&
		 (status == FABREX_WC_RACCESS ||
		  status == FABREX_WC_BAD_OPCODE))
		lane->step = STEP_READ;
	else
		return false;
	return true;
}

static void word_done(struct atomic *a, struct atomic_lane *lane, uint64_t old,
		      uint64_t now)
{
	scatter(&a->result, lane->at, (const char *)&old + lane->first,
		lane->bytes);
	lane->step = STEP_IDLE;
	if (lane->entered)
		hand_over(lane, &now);
}

static void step_done(struct request *request, int status)
{
	struct atomic *a = atomic_of(request);
	uint32_t i = a->order[a->head++ % ATOMIC_LANES];
	struct atomic_lane *lane = &a->lane[i];
	uint64_t old;

	lane->flying = false;
	if (status) {
		if (!fall_back(a, lane, status))
			request_fail(request, status);
		return;
	}
	memcpy(&old, request->bounce->data + 8 * i, 8);
	if (lane->step == STEP_FETCH)
		change(a, lane, old);	/* and swap: a read is not atomic */
	else if (lane->step == STEP_SWAP && old == lane->old)
		word_done(a, lane, old, lane->new);
	else if (lane->step == STEP_ONLY || lane->step == STEP_READ ||
		 !change(a, lane, old))
		word_done(a, lane, old, old);
}

void atomic_completed(struct request *request, const struct fabrex_wc *wc)
{
	if (wc)
		step_done(request, wc->status);
	if (request->error) {
		if (!request->posted)
			end(request);
		return;
	}
	/* Else it has its turn when there is room. */
	if (list_empty(&request->node) && advance(request) == -FI_EAGAIN)
		request_retry(request);
}

/* ---- beginning --------------------------------------------------------- */

/* Elements are at multiples of their size, in a range that there can be. */
static int check_target(const struct atomic *a,
			const struct atomic_target *target)
{
	if (target->addr % atomic_size(a->datatype))
		return FABREX_WC_BAD_DESC;
	if (target->addr > UINT64_MAX - 8 - target->bytes)
		return FABREX_WC_RBOUNDS;
	return 0;
}

/* Addresses become offsets, each of them once. 0, -FI_EAGAIN, or a cause. */
static int resolve(const struct request *request)
{
	struct atomic *a = atomic_of(request);
	bool virtual = request->ep->domain->virt_addr;
	struct atomic_target *target;
	uint64_t base = 0;
	int ret = 0;

	for (; a->resolved < a->targets; a->resolved++) {
		target = &a->target[a->resolved];
		if (virtual)
			ret = vaddr_base(request->peer, target->key, &base);
		if (ret)
			return ret;
		if (target->addr < base)
			return FABREX_WC_RBOUNDS;
		target->addr -= base;
		ret = check_target(a, target);
		if (ret)
			return ret;
	}
	return 0;
}

/* A struct request.resume, once it has begun. */
static int go_on(struct request *request)
{
	if (request->peer->state == PEER_DEAD)
		request_fail(request, request->peer->cause);
	if (!request->error && !request->bounce)
		request->bounce = bounce_take(request->ep, BOUNCE_SMALL);
	if (!request->error && !request->bounce)
		return -FI_EAGAIN;
	return advance(request);
}

int atomic_start(struct request *request)
{
	struct peer *peer = request->peer;
	int ret;

	if (!peer_located(peer) || (request->flags & FI_FENCE && peer->active))
		return -FI_EAGAIN;
	ret = resolve(request);
	if (ret == -FI_EAGAIN)
		return ret;
	if (ret)
		request_fail(request, ret);
	request_begin(request);
	request->resume = go_on;
	if (go_on(request) == -FI_EAGAIN)
		request_retry(request);
	return 0;
}
